"""`stepwell compare` finds the stage and the op at which a model departs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx_models import ModelWriter, bert_layer, mlp, small_cnn

from stepwell.dialects.evaluate_tile import Prepared
from stepwell.dialects.graph.activations import ReluOp
from stepwell.driver.cli import main
from stepwell.driver.compare import best_cosine, differing, name_nodes, with_all_values
from stepwell.runtime.cpu import HostPart

pytestmark = pytest.mark.xdist_group("device")

Compare = Callable[[onnx.ModelProto], tuple[int, dict[str, Any]]]


@pytest.fixture
def compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Compare:
    """Exit code and data of the command on a model."""

    def call(model: onnx.ModelProto) -> tuple[int, dict[str, Any]]:
        onnx.save(model, tmp_path / "model.onnx")
        code = main(["compare", str(tmp_path / "model.onnx"), "--target", "tiny", "--random", "0", "--json"])
        return code, json.loads(capsys.readouterr().out)

    return call


@pytest.mark.parametrize("model", [mlp(), small_cnn(), bert_layer(seq=16, hidden=64, heads=4, ffn=128)])
def test_models_agree_at_every_stage(compare: Compare, model: onnx.ModelProto) -> None:
    code, data = compare(model)
    assert code == 0
    assert data["departs"] is None
    assert [stage["name"] for stage in data["stages"]] == ["import", "graph", "tile", "npu"]
    assert all(stage["checked"] > 2 for stage in data["stages"])
    graph, *others = ([o["max_abs_error"] for o in stage["outputs"]] for stage in data["stages"][1:])
    assert all(other == graph for other in others)


def test_unnamed_nodes_are_compared_as_well(compare: Compare) -> None:
    model = mlp()
    for node in model.graph.node:
        node.name = ""
    code, data = compare(model)
    assert code == 0
    assert data["stages"][0]["checked"] == len(model.graph.node)


def test_a_wrong_importer_is_found(compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReluOp, "evaluate", lambda self, x: np.abs(x))
    code, data = compare(mlp())
    assert code == 1
    assert data["departs"] == "import"
    first = data["stages"][0]["departure"]
    assert (first["op"], first["nodes"]) == ("graph.relu", ["Relu_1"])
    assert first["found"].endswith("with onnxruntime, 0.9995 expected")


def test_a_wrong_pass_is_found(compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    from stepwell.passes.precision import Precision

    def broken(self: Precision, ctx: Any, op: Any, apply: Any = Precision.apply) -> None:
        apply(self, ctx, op)
        for found in op.walk():
            if found.name == "graph.relu":
                found.results[0].replace_all_uses_with(found.operands[0])
                break

    monkeypatch.setattr(Precision, "apply", broken)
    code, data = compare(mlp())
    assert code == 1
    assert data["departs"] == "graph"
    assert data["stages"][1]["departure"]["nodes"][0] == "Gemm_2"  # the first to take the value without Relu_1


def test_a_wrong_tile_kernel_is_found(compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Prepared, arguments: Any, cores: int = 1, run: Any = Prepared.run) -> None:
        run(self, arguments, cores)
        if self.kernel.sym_name.data == "k1":
            arguments[-1].reshape(-1)[3] += 1

    monkeypatch.setattr(Prepared, "run", broken)
    code, data = compare(mlp())
    assert code == 1
    assert data["departs"] == "tile"
    first = data["stages"][2]["departure"]
    assert first["op"] == "launch 1 (@k1)"
    assert first["found"].startswith("1 of ")
    assert first["found"].endswith("values differ from the graph's")


def test_a_wrong_program_is_found(compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from stepwell.driver import compilation
    from stepwell.runtime.encoding import Row
    from stepwell.runtime.expr import Expr
    from stepwell.runtime.plan import Kernel

    def broken(module: Any, kernels: list[Kernel], *rest: Any, build: Any = compilation.build_artifact) -> Any:
        """In the kernel that multiplies, the drain of the results loses its activation or bias."""
        made = list(kernels)
        for number, kernel in enumerate(made):
            rows = [_unbiased(row) for row in kernel.program]
            if tuple(rows) != kernel.program:
                made[number] = replace(kernel, program=tuple(rows))
                break
        return build(module, made, *rest)

    def _unbiased(row: Row) -> Row:
        if row.name != "drain" or row["biased"] != Expr(1):
            return row
        at = row.instruction.index("biased")
        return replace(row, fields=(*row.fields[:at], Expr(0), *row.fields[at + 1 :]))

    monkeypatch.setattr(compilation, "build_artifact", broken)
    code, data = compare(mlp())
    assert code == 1
    assert data["departs"] == "npu"
    first = data["stages"][3]["departure"]
    assert first["op"].startswith("launch 1 ")
    assert "Gemm_0" in first["nodes"]


def test_the_text_names_the_first_that_departs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReluOp, "evaluate", lambda self, x: np.abs(x))
    onnx.save(mlp(), tmp_path / "m.onnx")
    assert main(["compare", str(tmp_path / "m.onnx"), "--target", "tiny", "--random", "0"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["stage", "output", "cosine"]
    assert lines[-1].startswith("departs at import: graph.relu of Relu_1: cosine 0.")


def test_a_stage_of_which_the_reference_has_outputs_only_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """onnxruntime gives no values from inside of a loop."""
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[4] x, int64 n, bool go) => (float[4] y) {
        y = Loop(n, go, x) <body = b (int64 i, bool on, float[4] v) => (bool more, float[4] w) {
            more = Identity(on) w = Tanh(v) }> }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    np.savez(tmp_path / "i.npz", x=np.ones(4, np.float32), n=np.array(3), go=np.array(True))
    given = ["compare", str(tmp_path / "m.onnx"), "--target", "tiny", "--quiet", "--input", str(tmp_path / "i.npz")]
    assert main(given) == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert rows["graph"].endswith("outputs only")
    assert rows["npu"].split()[-1] not in ("0", "only")


# with the CPU


def with_the_cpu() -> onnx.ModelProto:
    """Outputs of the device, of a size that data decide, of texts, and of a sequence."""
    text = """<ir_version: 9, opset_import: ["" : 20]>
    g (float[4,16] x, string[3] s) => (float[4,16] y, float[n] g, string[3] c, seq(double[4,16]) q) {
        t = Tanh(x)  d = Cast<to = 11>(t)  p = Exp(d)  f = Cast<to = 1>(p)  y = MatMul(f, w)
        i = NonZero(t)  j = Transpose(i)  g = GatherND(t, j)  c = StringConcat(s, s)  q = SequenceConstruct(d, p)
    }"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(numpy_helper.from_array(np.eye(16, dtype=np.float32), "w"))
    return model


def test_every_stage_runs_with_the_cpu(compare: Compare) -> None:
    code, data = compare(with_the_cpu())
    assert code == 0
    assert [stage["name"] for stage in data["stages"]] == ["import", "graph", "tile", "npu"]
    assert all(output["cosine"] > 0.9999 for stage in data["stages"] for output in stage["outputs"])
    assert {node["operator"] for part in data["host"] for node in part} >= {"NonZero", "StringConcat", "Exp"}


def test_what_the_cpu_gives_is_compared_as_well(compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: HostPart, values: Any, run: Any = HostPart.run) -> list[Any]:
        return [text[::-1] if text.dtype == object else text for text in run(self, values)]

    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 20]>
    g (float[4,16] x, string[3] s) => (float[4,16] y, string[3] c) { y = Tanh(x)  c = StringConcat(s, s) }""")
    monkeypatch.setattr(HostPart, "run", broken)
    code, data = compare(model)
    assert (code, data["departs"]) == (1, "import")
    assert data["stages"][0]["departure"]["op"] == "output c"


def many_units() -> onnx.ModelProto:
    """A recurrence of more units than `tiny` has a kernel for."""
    w, hidden = ModelWriter(seed=7), 2064
    weights = (w.weight(1, hidden, 1), w.weight(1, hidden, hidden, scale=0.01))
    found = w.node("RNN", w.node("Relu", "x"), *weights, hidden_size=hidden)
    return w.model({"x": [1, 1, 1]}, [w.node("Tanh", found)])


def test_a_node_without_a_kernel_goes_to_the_cpu(compare: Compare) -> None:
    code, data = compare(many_units())
    assert code == 0
    assert [stage["name"] for stage in data["stages"]] == ["import", "graph", "tile", "npu"]
    ((node, behind),) = data["host"]
    assert (node["name"], behind["name"]) == ("RNN_1", "Tanh_2")
    assert "at most 2048 hidden units" in node["reason"]


def test_the_nodes_on_the_cpu_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(many_units(), tmp_path / "m.onnx")
    given = [str(tmp_path / "m.onnx"), "--target", "tiny", "--quiet"]
    assert main(["compare", *given, "--random", "0"]) == 0
    *_, verdict, heading, line, _ = capsys.readouterr().out.splitlines()
    assert verdict == "every stage agrees"
    assert heading == "2 nodes on the CPU, in 1 part:"
    assert line.startswith("  RNN_1 (RNN): ")
    assert main(["compare", *given, "--random", "0", "--no-host"]) == 1
    assert "at most 2048 hidden units" in capsys.readouterr().err
    assert main(["check", *given]) == 0
    assert "clean, every interleaving gives the same bytes" in capsys.readouterr().out


def test_moved_axes_are_recognised() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(1, 4, 6, 8)).astype(np.float32)
    assert best_cosine(x.transpose(0, 2, 3, 1), x) == pytest.approx(1)
    assert best_cosine(x.reshape(4, 48), x) == pytest.approx(1)
    assert best_cosine(x.transpose(0, 3, 2, 1).reshape(-1), x) == pytest.approx(1)  # by the values alone
    other = random.normal(size=(1, 4, 6, 8))
    assert best_cosine(other, x) is not None
    assert best_cosine(other, x) < 0.9  # type: ignore[operator]
    assert best_cosine(x[:, :3], x) is None


def test_differing_bits_are_counted() -> None:
    a = np.array([0.0, 1.0, np.nan], np.float16)
    assert differing(a, a.copy()) == 0
    assert differing(np.array([-0.0, 1.0, np.nan], np.float16), a) == 1


def test_every_value_becomes_an_output_once() -> None:
    model = mlp()
    assert not name_nodes(model)
    outputs = [output.name for output in with_all_values(model).graph.output]
    assert len(outputs) == len(set(outputs)) == len(model.graph.node)
