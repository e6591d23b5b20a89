"""`stepwell reduce` finds the few nodes that show what is wrong with many."""

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import mlp
from PIL import Image

from stepwell.dialects.graph.activations import NegOp
from stepwell.dialects.graph.op import InferError
from stepwell.driver.cli import main
from stepwell.driver.isolate import CrashError, HangError, isolated
from stepwell.driver.reduce import ddmin
from stepwell.driver.report import beside
from stepwell.driver.symptom import Symptom, rule_of
from stepwell.frontend import onnx as onnx_import
from stepwell.passes.fuse import Fuse
from stepwell.passes.recognise import Recognise
from stepwell.runtime import target

pytestmark = pytest.mark.xdist_group("device")

Reduce = Callable[..., dict[str, Any]]
INFO = helper.make_tensor_value_info
LENGTH = 200


@pytest.fixture
def reduce(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Reduce:
    """The data of the command on a model, whose parts lie at part.onnx and part.npz."""

    def call(model: onnx.ModelProto, *options: str) -> dict[str, Any]:
        onnx.save(model, tmp_path / "model.onnx")
        arguments = [str(tmp_path / "model.onnx"), "-o", str(tmp_path / "part.onnx"), "--target", "tiny", "--json"]
        code = main(["reduce", *arguments, "--quiet", *options])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        part = onnx.load(tmp_path / "part.onnx")
        if all(not node.domain for node in part.graph.node):  # of another, no one knows the types
            onnx.checker.check_model(part)
        return json.loads(captured.out)

    return call


def chain(odd: dict[int, onnx.NodeProto] | None = None, length: int = LENGTH) -> onnx.ModelProto:
    """A chain of nodes, some of which take a value from long before as well; an odd one reads and makes what the node
    in its place would."""
    nodes, values = list[onnx.NodeProto](), ["x"]
    for i in range(length):
        result = f"value_{i}"
        operator, operands = ("Tanh", "Abs", "Sigmoid", "Relu")[i % 4], [values[-1]]
        if i % 7 == 3:
            operator, operands = "Add", [values[-1], values[i // 2]]
        node = helper.make_node(operator, operands, [result], f"{operator}_{i}")
        if odd and i in odd:
            node = onnx.NodeProto()
            node.CopyFrom(odd[i])
            node.input[:], node.output[:] = [values[-1], *node.input], [result]
        nodes.append(node)
        values.append(result)
    return model_of(nodes, {"x": [2, 8]}, values[-1])


def model_of(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, list[int]],
    output: str,
    initializers: list[onnx.TensorProto] | None = None,
) -> onnx.ModelProto:
    infos = [INFO(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    graph = helper.make_graph(nodes, "made", infos, [INFO(output, TensorProto.FLOAT, None)], initializers or [])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("acme", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def odd_node(operator: str, domain: str = "", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(operator, [], [], f"Odd_{operator}", domain=domain, **attributes)


NEG, FROB = odd_node("Neg"), odd_node("Frobnicate", "acme")
WIDE = helper.make_node("Cast", [], [], "Odd_Wide", to=TensorProto.DOUBLE)
NARROW = helper.make_node("Cast", [], [], "Odd_Narrow", to=TensorProto.FLOAT)


def fails(capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str) -> str:
    """What the command that a reduction ends with says; it must fail."""
    arguments = command.split()
    assert arguments[0] == "stepwell"
    assert main([*arguments[1:], *(["-o", str(tmp_path / "out.stw")] if arguments[1] == "compile" else [])]) != 0
    captured = capsys.readouterr()
    return captured.out + captured.err


# refusals


@pytest.mark.parametrize("place", [0, 97, LENGTH - 1])
def test_an_unsupported_operator_in_a_chain_is_found(
    reduce: Reduce, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: int
) -> None:
    """onnxruntime does not run this model: what lies before the operator is recorded all the same."""
    data = reduce(chain({place: FROB}))
    assert (data["nodes"], data["of_nodes"], data["operators"]) == (1, LENGTH, ["Frobnicate"])
    assert data["symptom"]["kind"] == "refused"
    assert "the device does not run Frobnicate" in fails(capsys, tmp_path, data["command"])
    border = "x" if place == 0 else f"value_{place - 1}"
    assert data["inputs"]["names"] == [border]
    with np.load(tmp_path / "part.npz") as recorded:
        assert np.array_equal(recorded[border], through(chain(length=place), border, place))


def test_what_the_cpu_runs_is_refused_without_it_only(
    reduce: Reduce, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = chain({60: WIDE, 61: NARROW}, 120)
    data = reduce(model, "--no-host")
    assert (data["symptom"]["kind"], data["operators"]) == ("refused", ["Cast"])
    assert data["inputs"]["names"] == ["value_59"]
    assert data["command"].endswith(" --no-host")
    assert "Odd_Wide: " in fails(capsys, tmp_path, data["command"])
    assert main(["reduce", str(tmp_path / "model.onnx"), "--target", "tiny", "--quiet"]) == 1
    assert "(found that it compiles and agrees)" in capsys.readouterr().err


def test_a_departure_behind_the_cpu_is_reduced_to_what_departs(reduce: Reduce, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value before it is of a type that only the CPU has."""
    monkeypatch.setattr(NegOp, "evaluate", lambda self, x: x)
    wide = numpy_helper.from_array(np.ones((1, 1 << 15), np.float32), "wide")
    nodes = list(chain({20: WIDE, 21: NARROW}, 40).graph.node)
    nodes += [
        helper.make_node("ReduceMax", ["value_39"], ["most"], "Odd_Max", axes=[1], keepdims=1),
        helper.make_node("Mul", ["most", "wide"], ["broad"], "Odd_Mul"),
        helper.make_node("Neg", ["broad"], ["negative"], "Odd_Neg"),
        helper.make_node("Relu", ["negative"], ["y"], "Odd_Relu"),
    ]
    data = reduce(model_of(nodes, {"x": [2, 8]}, "y", [wide]))
    assert (data["symptom"]["kind"], data["operators"]) == ("departs", ["Neg"])


def through(model: onnx.ModelProto, border: str, place: int) -> Any:
    """A value by onnxruntime, for the seeded input."""
    from stepwell.driver.agreement import onnxruntime_run
    from stepwell.driver.inputs import Wanted, random

    inputs = random({"x": Wanted(np.dtype(np.float32), (2, 8))}, 0)
    return onnxruntime_run(model, inputs)[border] if place else inputs["x"]


def test_the_first_of_several_problems_is_reduced(reduce: Reduce) -> None:
    data = reduce(chain({50: FROB, 150: odd_node("Wobble", "acme")}))
    assert data["operators"] == ["Frobnicate"]
    assert [text.split(":")[0] for text in data["others"]] == ["Odd_Wobble"]


def refuse_both(self: Fuse, ctx: Any, op: Any, apply: Any = Fuse.apply) -> None:
    """A pass that cannot stand two operators in one model."""
    from stepwell.passes.context import PassError

    found = {each.name: each for each in op.walk()}
    if "graph.neg" in found and "graph.exp" in found:
        raise PassError("a negation stands alone (found 2 operators)", found["graph.exp"])
    apply(self, ctx, op)


def test_nodes_that_fail_together_are_kept_together(
    reduce: Reduce, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Fuse, "apply", refuse_both)
    data = reduce(chain({20: NEG, 170: odd_node("Exp")}))
    assert sorted(data["operators"]) == ["Exp", "Neg"]
    assert data["symptom"]["where"] == "PassError"
    assert "a negation stands alone" in fails(capsys, tmp_path, data["command"])


def test_a_model_that_is_too_large_is_reduced_to_what_is(
    reduce: Reduce, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message has the name of the file and a number of bytes, which differ from part to part."""
    nodes = steps("pre_", "x", 20, {})
    nodes.append(helper.make_node("Mul", ["pre_value_19", "large"], ["wide"], "Odd_Mul"))
    nodes += [
        helper.make_node("ReduceMax", ["wide"], ["narrow"], "Odd_Max", axes=[0], keepdims=0),
        *steps("post_", "narrow", 20, {}),
    ]
    large = numpy_helper.from_array(np.ones((1 << 16, 1, 1), np.float16), "half")
    nodes.insert(0, helper.make_node("Cast", ["half"], ["large"], "Odd_Cast", to=TensorProto.FLOAT))
    text = (Path(target.__file__).parent / "targets" / "tiny.toml").read_text(encoding="utf-8")
    small = tmp_path / "small.toml"
    small.write_text(re.sub("gm_bytes = .*", "gm_bytes = 1048576", text), encoding="utf-8")
    data = reduce(model_of(nodes, {"x": [2, 8]}, nodes[-1].output[0], [large]), "--target", str(small))
    assert "must fit the" in data["symptom"]["text"]
    assert data["operators"] == ["Mul"]
    assert "must fit the" in fails(capsys, tmp_path, data["command"])


# faults, crashes, hangs


def break_pass(monkeypatch: pytest.MonkeyPatch, action: Callable[[], Any]) -> None:
    """`recognise` acts up where there is a negation."""

    def apply(self: Recognise, ctx: Any, op: Any, inner: Any = Recognise.apply) -> None:
        if any(each.name == "graph.neg" for each in op.walk()):
            action()
        inner(self, ctx, op)

    monkeypatch.setattr(Recognise, "apply", apply)


def raise_fault() -> None:
    raise IndexError("list index out of range")


@pytest.mark.parametrize(
    ("kind", "action", "options"),
    [
        ("fault", raise_fault, []),
        ("crash", os.abort, []),
        ("hang", lambda: time.sleep(30), ["--timeout", "1.5"]),
    ],
)
def test_what_no_compiler_should_do_is_reduced(
    reduce: Reduce, monkeypatch: pytest.MonkeyPatch, kind: str, action: Callable[[], Any], options: list[str]
) -> None:
    break_pass(monkeypatch, action)
    data = reduce(chain({23: NEG}, 40), *options)
    assert data["symptom"]["kind"] == kind
    assert data["operators"] == ["Neg"]


# departures


def test_a_broken_operator_is_found_in_a_chain(
    reduce: Reduce, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NegOp, "evaluate", lambda self, x: x)
    data = reduce(chain({LENGTH - 2: NEG}))
    assert (data["nodes"], data["of_nodes"], data["operators"]) == (1, LENGTH, ["Neg"])
    assert data["symptom"]["kind"] == "departs"
    assert "departs at import: graph.neg of Odd_Neg" in fails(capsys, tmp_path, data["command"])


def test_a_pass_that_loses_an_operator_is_found(
    reduce: Reduce, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs the operator and the one that takes its value."""

    def apply(self: Recognise, ctx: Any, op: Any, inner: Any = Recognise.apply) -> None:
        inner(self, ctx, op)
        for found in op.walk():
            readers = [use.operation.name for result in found.results for use in result.uses]
            if found.name == "graph.relu" and "graph.matmul" in readers:
                found.results[0].replace_all_uses_with(found.operands[0])
                break

    monkeypatch.setattr(Recognise, "apply", apply)
    model = mlp()
    for node in model.graph.node:
        if node.op_type == "Gemm":
            node.op_type, node.name = "MatMul", node.name.replace("Gemm", "MatMul")
            del node.attribute[:], node.input[2:]
    for tensor in model.graph.initializer:
        if len(tensor.dims) == 2:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).T.copy(), tensor.name))
    data = reduce(model)
    assert data["symptom"]["where"] == "graph"
    assert data["operators"] == ["Relu", "MatMul"]
    assert "departs at graph" in fails(capsys, tmp_path, data["command"])


def test_a_bound_goes_along_and_its_text_does_not_contradict_itself(
    reduce: Reduce, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Halves are good to three digits: a bound of ten makes nearly every model one that departs."""
    data = reduce(chain(length=4), "--cosine", "0.9999999999")
    said = fails(capsys, tmp_path, data["command"])
    assert "departs at graph" in said
    found = re.search(r"cosine (\S+) with onnxruntime, 0.9999999999 expected", said)
    assert found is not None
    assert float(found[1]) < 0.9999999999
    assert data["symptom"]["text"].startswith("at graph: ")
    given = ["--target", "tiny", "--quiet", "--cosine", "0.9999999999", "-o", str(tmp_path / "part.onnx")]
    assert main(["reduce", str(tmp_path / "model.onnx"), *given]) == 0
    assert capsys.readouterr().out.startswith("departs at graph: ")


def test_options_of_a_picture_do_not_go_to_the_parts(reduce: Reduce, tmp_path: Path) -> None:
    Image.new("RGB", (2, 2), (10, 200, 90)).save(tmp_path / "a.png")
    model = model_of([helper.make_node("Sigmoid", ["x"], ["y"], "only")], {"x": [1, 3, 2, 2]}, "y")
    data = reduce(model, "--cosine", "0.9999999999", "--input", f"x={tmp_path / 'a.png'}", "--mean", "0.3", "--bgr")
    assert data["operators"] == ["Sigmoid"]
    assert np.load(tmp_path / "part.npz")["x"][0, 2, 0, 0] == pytest.approx(10 / 255 - 0.3)


@pytest.mark.parametrize(
    ("cosine", "least", "text"),
    [
        (0.99951234, 0.9995, "0.999512"),
        (0.99999999, 0.9995, "1.000000"),
        (0.99949999, 0.9995, "0.99949999"),
        (0.99999994, 0.9999999999, "0.9999999"),
        (1 - 2**-53, 1.0, "0.9999999999999999"),
        (1.0, 1.0, "1.000000"),
    ],
)
def test_a_cosine_has_the_digits_that_tell_it_from_its_bound(cosine: float, least: float, text: str) -> None:
    assert beside(cosine, least) == text


# graphs inside of nodes


def branch(name: str, nodes: list[onnx.NodeProto]) -> onnx.GraphProto:
    return helper.make_graph(nodes, name, [], [INFO(nodes[-1].output[0], TensorProto.FLOAT, None)])


def steps(prefix: str, start: str, length: int, odd: dict[int, onnx.NodeProto]) -> list[onnx.NodeProto]:
    """A chain inside of a graph, which begins at a value around it."""
    nodes = list(chain(odd, length).graph.node)
    for node in nodes:
        node.name = f"{prefix}{node.name}"
        node.input[:] = [start if name == "x" else f"{prefix}{name}" for name in node.input]
        node.output[:] = [f"{prefix}{name}" for name in node.output]
    return nodes


def branching(odd: dict[int, onnx.NodeProto]) -> onnx.ModelProto:
    """A chain, an If on what it computes whose branches are chains, and a chain."""
    before = list(chain(length=30).graph.node)
    branches: dict[str, Any] = {
        "then_branch": branch("then", steps("then_", "value_29", 20, odd)),
        "else_branch": branch("else", steps("else_", "value_12", 20, {})),
    }
    nodes = [
        *before,
        helper.make_node("ReduceMax", ["value_29"], ["most"], "ReduceMax_0", keepdims=0),
        helper.make_node("Greater", ["most", "limit"], ["is_large"], "Greater_0"),
        helper.make_node("If", ["is_large"], ["chosen"], "If_0", **branches),
        *steps("after_", "chosen", 30, {}),
    ]
    limit = numpy_helper.from_array(np.array(0.5, np.float32), "limit")
    return model_of(nodes, {"x": [2, 8]}, nodes[-1].output[0], [limit])


importer: Any = onnx_import._Import  # pyright: ignore[reportPrivateUsage]


def test_an_operator_in_a_branch_is_taken_out_of_it(
    reduce: Reduce, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = reduce(branching({11: FROB}))
    assert (data["of_nodes"], data["operators"]) == (103, ["Frobnicate"])
    assert "the device does not run Frobnicate" in fails(capsys, tmp_path, data["command"])


def test_of_a_branch_that_is_needed_its_content_is_not(
    reduce: Reduce, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Any, node: Any) -> Any:
        raise InferError("an If is no friend of ours (found one)")

    monkeypatch.setattr(importer, "_branch", refuse)
    data = reduce(branching({}), "--no-host")
    assert data["operators"] == ["If"]
    assert data["nodes"] == 3  # the If and a constant in each branch
    assert "an If is no friend of ours" in fails(capsys, tmp_path, data["command"])


def test_a_step_of_a_loop_is_taken_out_of_it(
    reduce: Reduce, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = [("step", TensorProto.INT64, []), ("going", TensorProto.BOOL, []), ("state", TensorProto.FLOAT, [2, 8])]
    inner = steps("in_", "state", 20, {7: FROB})
    keep = helper.make_node("Identity", ["going"], ["goes_on"], "Keep_0")
    results = [INFO("goes_on", TensorProto.BOOL, []), INFO(inner[-1].output[0], TensorProto.FLOAT, None)]
    body = helper.make_graph([keep, *inner], "body", [INFO(*each) for each in counts], results)
    nodes = [
        *steps("pre_", "x", 10, {}),
        helper.make_node("Loop", ["count", "", "pre_value_9"], ["looped"], "Loop_0", body=body),
        *steps("post_", "looped", 10, {}),
    ]
    count = numpy_helper.from_array(np.array(3, np.int64), "count")
    data = reduce(model_of(nodes, {"x": [2, 8]}, nodes[-1].output[0], [count]))
    assert data["operators"] == ["Frobnicate"]
    assert "the device does not run Frobnicate" in fails(capsys, tmp_path, data["command"])


def test_a_step_of_a_scan_is_taken_out_of_it(
    reduce: Reduce, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = [
        *steps("in_", "slice", 12, {7: FROB}),
        helper.make_node("Add", ["state", "in_value_11"], ["next"], "Next_0"),
    ]
    infos = [INFO("state", TensorProto.FLOAT, [8]), INFO("slice", TensorProto.FLOAT, [8])]
    body = helper.make_graph(inner, "body", infos, [INFO("next", TensorProto.FLOAT, [8])])
    nodes = [
        *steps("pre_", "x", 10, {}),
        helper.make_node("Scan", ["start", "pre_value_9"], ["scanned"], "Scan_0", num_scan_inputs=1, body=body),
        *steps("post_", "scanned", 10, {}),
    ]
    start = numpy_helper.from_array(np.zeros(8, np.float32), "start")
    data = reduce(model_of(nodes, {"x": [2, 8]}, nodes[-1].output[0], [start]))
    assert data["operators"] == ["Frobnicate"]
    assert "the device does not run Frobnicate" in fails(capsys, tmp_path, data["command"])


# what is no symptom of a part


def test_there_must_be_something_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(chain(length=4), tmp_path / "model.onnx")
    assert main(["reduce", str(tmp_path / "model.onnx"), "--target", "tiny"]) == 1
    assert "(found that it compiles and agrees); there is nothing to reduce" in capsys.readouterr().err


def test_an_input_without_a_shape_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = chain({3: FROB}, 8)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    onnx.save(model, tmp_path / "model.onnx")
    assert main(["reduce", str(tmp_path / "model.onnx")]) == 1
    assert "x: axis 0 has a static extent (found 'n')" in capsys.readouterr().err
    arguments = ["--shape", "x=2,8", "-o", str(tmp_path / "part.onnx")]
    assert main(["reduce", str(tmp_path / "model.onnx"), *arguments]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["m.stw"], "m.stw: must be an .onnx model (found .stw); name the model"),
        (
            ["model.onnx", "-o", "model.onnx"],
            "-o model.onnx: is a file of its own (found the model itself, which would be lost); name another file",
        ),
        (["model.onnx", "--target", "tidy"], "tidy"),
        (["model.onnx", "--target", "tiny", "--cores", "9"], "cores: must be 1 to 1, as tiny has (found 9)"),
        (["model.onnx", "--const", "y=1"], "y: constants name inputs of the model (found none of this name)"),
        (["model.onnx", "-o", "part.npz"], "-o part.npz: must end in .onnx (found .npz); write -o FILE.onnx"),
    ],
)
def test_wrong_files_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: Any, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(chain(length=4), "model.onnx")
    assert main(["reduce", *arguments]) == 1
    assert message in capsys.readouterr().err


# the parts of it


@pytest.mark.parametrize("wanted", [{0}, {57}, {3, 4}, {0, 99}, {1, 30, 31, 77, 98}, set(range(0, 100, 10))])
def test_delta_debugging_finds_what_is_needed(wanted: set[int]) -> None:
    tries = list[int]()

    def shows(part: frozenset[int]) -> bool:
        tries.append(len(part))
        return wanted <= part

    assert ddmin(frozenset(range(100)), shows) == wanted
    assert len(tries) < 75 * len(wanted)


def test_a_rule_is_what_is_common_to_its_messages() -> None:
    names = ["Conv_1", "Conv_12", "a", "x"]
    first = rule_of("Conv_12: a kernel of Conv_1 has 3 axes (found 4); export x again", names)
    assert first == rule_of("Conv_1: a kernel of x has 2 axes (found 7); do", names)
    assert first != rule_of("Conv_1: a kernel of x has 2 taps (found 7); do", names)


def test_a_smaller_departure_is_another_symptom() -> None:
    large = Symptom("departs", "compare", "graph", "", "", measure=0.5, least=0.45)
    small = Symptom("departs", "compare", "graph", "", "", measure=0.1, least=0.09)
    assert large.is_in([large])
    assert not large.is_in([small])
    assert small.is_in([large])
    assert not large.is_in([Symptom("departs", "compare", "tile", "", "", measure=1, least=0.9)])


def test_a_process_of_its_own_may_die() -> None:
    assert isolated(lambda: 6 * 7, 10) == 42
    assert len(isolated(lambda: bytes(10**7), 10)) == 10**7
    with pytest.raises(CrashError, match="SIGABRT"):
        isolated(os.abort, 10)
    with pytest.raises(CrashError, match="no signal"):
        isolated(raise_fault, 10)
    start = time.monotonic()
    with pytest.raises(HangError, match=r"no end after 0\.3 s"):
        isolated(lambda: time.sleep(20), 0.3)
    assert time.monotonic() - start < 5
