"""What goes wrong while a model runs, as the user reads it: whose fault it is, where, and what to do."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import stepwell
from stepwell.driver import cli
from stepwell.driver.report import extents, form
from stepwell.runtime.cpu import explained
from stepwell.runtime.faults import AccessFault, DeadlockFault, Place, TokenFault, ValueFault
from stepwell.runtime.plan import Tensor
from stepwell.runtime.problem import Kind
from stepwell.runtime.stream import StreamError

pytestmark = pytest.mark.xdist_group("device")


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}')


GATHER = "[look] e = Gather(w, i) [act] y = Relu(e)"
SCATTER = "[put] e = ScatterND(w, j, u) [act] y = Relu(e)"
LOOKUPS = {
    "look": (f"g (float[50,8] w, int64[3] i) => (float[3,8] y) {{ {GATHER} }}", "i"),
    "put": (f"g (float[50,8] w, int64[3,1] j, float[3,8] u) => (float[50,8] y) {{ {SCATTER} }}", "j"),
}


def fed(model: onnx.ModelProto, **given: Any) -> dict[str, Any]:
    shapes = {info.name: [d.dim_value for d in info.type.tensor_type.shape.dim] for info in model.graph.input}
    return {name: given.get(name, np.ones(shape, np.float32)) for name, shape in shapes.items()}


@pytest.mark.parametrize("index", [50, -51, 99])
@pytest.mark.parametrize("node", LOOKUPS)
def test_an_index_that_names_no_row_is_the_users(node: str, index: int) -> None:
    text, name = LOOKUPS[node]
    model = parsed(text)
    artifact = stepwell.compile(model, target="tiny")
    indices = np.array([1, index, 3]).reshape([d.dim_value for d in model.graph.input[1].type.tensor_type.shape.dim])
    with pytest.raises(StreamError) as caught:
        stepwell.run(artifact, fed(model, **{name: indices}))
    (problem,) = caught.value.problems
    assert problem.kind is Kind.DTYPE
    found = f"found {index}" if node == "look" and index != 50 else "found 50, or a tuple with an index outside of its"
    assert problem.startswith(f"{node}: an index names one of 50 rows, -50 to 49 ({found}")
    assert problem.remedy == "give indices in this range"


PLACE = Place("k", 0, 3, "load", 0, "load …", ("n",))
FAULTS = {
    "token": (TokenFault("token-overflow", PLACE, "9", "less"), True),
    "deadlock": (DeadlockFault("deadlock", PLACE, "none", "one that can go on"), True),
    "access": (AccessFault("out-of-bounds", PLACE, "dst", "it has 5 bytes"), False),
    "value": (ValueFault("value", PLACE, "fn = 200", "0 to 9 was expected"), False),
}


@pytest.mark.parametrize("name", FAULTS)
def test_only_faults_of_synchronisation_are_for_the_checker(name: str) -> None:
    fault, waits = FAULTS[name]
    (problem,) = StreamError("model g", fault, "").problems
    assert problem.is_whole
    assert problem.kind is Kind.IR
    assert ("stepwell check" in problem) is waits


# parts on the CPU -----------------------------------------------------------------------------------------------------

HELPER = "/onnxruntime_src/onnxruntime/core/providers/cpu/tensor/reshape_helper.h:91 "
SIGNED = "onnxruntime::ReshapeHelper::ReshapeHelper(const onnxruntime::TensorShape&, onnxruntime::Vector&, bool) "
RUNNING = "Non-zero status code returned while running"
TEXTS = {
    "checked": (
        f"[ONNXRuntimeError] : 1 : FAIL : {RUNNING} Reshape node. Name:'Reshape_2' Status Message: {HELPER}{SIGNED}"
        "input_size == size was false. The input tensor cannot be reshaped.\n",
        ("Reshape_2", "Reshape", "The input tensor cannot be reshaped."),
    ),
    "unexplained": (
        f"[ONNXRuntimeError] : 1 : FAIL : {RUNNING} Foo node. Name:'it's' Status Message: /a/b/foo.cc:7 "
        "onnxruntime::common::Status onnxruntime::Foo<T>::Compute(onnxruntime::OpKernelContext*) const "
        "[with T = float] a == b was false.",
        ("it's", "Foo", "a == b was false."),
    ),
    "short": (
        f"[ONNXRuntimeError] : 1 : FAIL : {RUNNING} MatMul node. Name:'mm' Status Message: matmul_helper.h:59 Compute "
        "MatMul dimension mismatch",
        ("mm", "MatMul", "MatMul dimension mismatch"),
    ),
    "nested": (
        f"[ONNXRuntimeError] : 1 : FAIL : {RUNNING} Loop node. Name:'lo' Status Message: {RUNNING} Add node. "
        "Name:'inner' Status Message: x [1] : no",
        ("inner", "Add", "x [1] : no"),
    ),
    "unnamed": (
        f"[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : {RUNNING} Expand node. Name:'' Status Message: invalid shape",
        ("", "Expand", "Expand: invalid shape"),
    ),
    "import": (
        "[ONNXRuntimeError] : 1 : FAIL : Node (cc) Op (Concat) [ShapeInferenceError] Can't merge. Inferred=4",
        ("cc", "Concat", "Can't merge. Inferred=4"),
    ),
    "other": ("no text of onnxruntime", ("", "", "no text of onnxruntime")),
}


@pytest.mark.parametrize("name", TEXTS)
def test_an_error_of_onnxruntime_is_taken_apart(name: str) -> None:
    text, expected = TEXTS[name]
    found = explained(RuntimeError(text))
    assert (found.node, found.operator, str(found)) == expected


def test_a_part_of_the_cpu_fails_in_one_line_that_begins_with_the_node() -> None:
    nodes = "[one] a = Neg(d) [two] b = Abs(a) [three] c = Reshape(b, s) [four] e = Neg(c) [five] y = Neg(e)"
    model = parsed(f"g (double[2,3] d, int64[1] s) => (double[n] y) {{ {nodes} }}")
    artifact = stepwell.compile(model, target="tiny")
    assert len(artifact.host[0].nodes) == 5
    with pytest.raises(StreamError) as caught:
        stepwell.run(artifact, {"d": np.zeros((2, 3)), "s": np.array([4])})
    (problem,) = caught.value.problems
    assert problem == (
        "three: onnxruntime must run this part on the CPU (found The input tensor cannot be reshaped to the requested "
        "shape. Input shape:{2,3}, requested shape:{4}); look at the values that go in"
    )
    assert problem.where == "three"


def test_the_reference_fails_in_one_line_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    onnx.save(parsed(LOOKUPS["look"][0]), tmp_path / "m.onnx")
    np.savez(tmp_path / "x.npz", allow_pickle=False, w=np.ones((50, 8), np.float32), i=np.array([1, 99, 3]))
    given = ["compare", str(tmp_path / "m.onnx"), "--input", str(tmp_path / "x.npz"), "--target", "tiny", "--quiet"]
    assert cli.main(given) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("stepwell: error: look: onnxruntime, the reference, runs it (found indices element out of")
    assert line.endswith("give other inputs [E-command]")


# shapes that only a run knows -----------------------------------------------------------------------------------------

OPEN = """g (float[2,3] x, string[2] t, double q) => (int64[a,b] places, string[n] kept, double one, float[3,2] z) {
    places = NonZero(x) m = Constant<value = bool[2] {1, 0}>() kept = Compress(t, m) one = Neg(q) z = Transpose(x) }"""


def test_a_shape_that_only_a_run_knows_is_shown_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(parsed(OPEN), tmp_path / "m.onnx")
    stepwell.compile(str(tmp_path / "m.onnx"), target="tiny").save(tmp_path / "m.stw")
    commands = {"assess": ["assess", "m.onnx", "--target", "tiny"], "inspect": ["inspect", "m.stw"]}
    for name, (command, file, *rest) in commands.items():
        given = [command, str(tmp_path / file), *rest, "--quiet"]
        assert cli.main(given) == 0
        rows = {
            line.split()[1]: line.split()[:4] for line in capsys.readouterr().out.splitlines() if " " in line.strip()
        }
        assert rows["places"] == ["output", "places", "tensor(int64)", "2×?"], name
        assert rows["kept"][2:] == ["tensor(string)", "?"]
        assert rows["one"][2:] == ["tensor(double)", "scalar"]
        assert rows["z"][2:] == ["float32", "3×2"]
        assert rows["t"][2:] == ["tensor(string)", "2"]
        assert cli.main([*given, "--json"]) == 0
        shapes = {each["name"]: each["shape"] for each in json.loads(capsys.readouterr().out)["outputs"]}
        assert shapes == {"places": [2, None], "kept": [None], "one": [], "z": [3, 2]}


def test_a_shape_of_unknown_rank_is_none() -> None:
    tensor = Tensor("y", "host", (), "output", 0, "tensor(float)")
    assert (extents(tensor), form(tensor)) == (None, ("tensor(float)", "unknown"))


def test_what_is_cast_at_the_border_is_no_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = parsed("g (float[3,8] x, float[8,4] w) => (float[3,4] y) { [act] t = Tanh(x) [product] y = MatMul(t, w) }")
    onnx.save(model, tmp_path / "m.onnx")
    np.savez(tmp_path / "x.npz", x=np.full((3, 8), -1e30, np.float32), w=np.ones((8, 4), np.float32))
    command = ["run", str(tmp_path / "m.onnx"), "--input", str(tmp_path / "x.npz"), "--target", "tiny", "--profile"]
    assert cli.main(command) == 0
    told = capsys.readouterr().out
    assert "overflowed:\n  inputs and outputs, as they are cast: 24 overflows, 0 new NaNs" in told
    assert any(line.endswith("%  inputs and outputs, as they are cast") for line in told.splitlines())
