"""`stepwell extract` gives parts whose bits are those of the values inside the whole."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import ModelWriter, bert_layer, mlp, small_cnn

import stepwell
from stepwell.driver.cli import main
from stepwell.driver.compilation import options_of
from stepwell.driver.extract import Extraction, Part
from stepwell.driver.inside import Inside
from stepwell.frontend import cut
from stepwell.frontend.cut import Wiring
from stepwell.runtime.target import Target

pytestmark = pytest.mark.xdist_group("device")

Extract = Callable[..., tuple[int, dict[str, Any], str]]
INFO = helper.make_tensor_value_info
BERT = bert_layer(seq=16, hidden=64, heads=4, ffn=128)


@pytest.fixture
def extract(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Extract:
    """Exit code, data and standard error of the command, in a folder where the model is model.onnx."""
    monkeypatch.chdir(tmp_path)

    def call(model: onnx.ModelProto | None, *options: str) -> tuple[int, dict[str, Any], str]:
        if model is not None:
            onnx.save(model, "model.onnx")
        given = ["--target", "tiny", "--random", "0", "-o", "part.onnx", "--json", "--quiet"]
        capsys.readouterr()
        code = main(["extract", "model.onnx", *given, *options])
        captured = capsys.readouterr()
        return code, json.loads(captured.out), captured.err

    return call


def runs_alike(data: dict[str, Any]) -> onnx.ModelProto:
    """The part, which is checked, compiled and run by the command that was named: its bits are those inside."""
    part = onnx.load("part.onnx")
    onnx.checker.check_model(part, full_check=True)
    words = data["command"].split()
    assert main([*words[1:], "-o", "found.npz", "--verify", "part.onnx", "--quiet"]) in (0, 1)
    with np.load("found.npz") as found, np.load("part.outputs.npz") as expected:
        assert expected.files == data["outputs"]["names"]
        for name in expected.files:
            assert found[name].dtype == expected[name].dtype
            assert found[name].tobytes() == expected[name].tobytes()
    return part


CUTS: list[tuple[onnx.ModelProto, str, str, int]] = [
    (mlp(), "Gemm_0:0", "Gemm_2:0", 2),
    (mlp(), "Gemm_2", "Relu_3,Gemm_4", 3),
    (small_cnn(), "Relu_2:0", "Add_9:0", 7),
    (small_cnn(), "Conv_13:0", "Mul_19:0", 6),
    (BERT, "Add_1:0,Add_3:0,mask", "Softmax_35:0", 10),
    (BERT, "Add_41:0", "Add_69:0", 28),
]


@pytest.mark.parametrize("precision", ["fp16", "bf16", "fp32"])
@pytest.mark.parametrize(("model", "start", "end", "nodes"), CUTS, ids=[f"{a}-{b}" for _, a, b, _ in CUTS])
def test_a_part_has_the_bits_of_the_whole(
    extract: Extract, model: onnx.ModelProto, start: str, end: str, nodes: int, precision: str
) -> None:
    code, data, err = extract(model, "--from", start, "--to", end, "--precision", precision)
    assert code == 0, err
    assert (data["nodes"], data["of_nodes"], data["notes"]) == (nodes, len(model.graph.node), [])
    part = runs_alike(data)
    assert list(part.opset_import) == list(model.opset_import)


def test_the_outputs_of_the_whole_are_those_of_a_part(extract: Extract, capsys: pytest.CaptureFixture[str]) -> None:
    """Not only by the evaluator: the whole on the emulated device gives what the part gives."""
    code, data, _ = extract(BERT, "--from", "Add_60:0")
    assert code == 0
    runs_alike(data)
    assert main(["run", "model.onnx", "--target", "tiny", "--random", "0", "-o", "whole.npz", "--quiet"]) == 0
    with np.load("whole.npz") as whole, np.load("found.npz") as found:
        assert whole.files == found.files == ["Add_69:0"]
        assert whole["Add_69:0"].tobytes() == found["Add_69:0"].tobytes()


def test_without_names_it_is_the_whole(extract: Extract) -> None:
    code, data, _ = extract(mlp())
    assert code == 0
    assert (data["nodes"], data["inputs"]["names"], data["outputs"]["names"]) == (6, ["x"], ["Softmax_5:0"])
    runs_alike(data)


# composites, folding, islands


def test_a_start_within_a_composite_moves_before_it(extract: Extract) -> None:
    code, data, _ = extract(BERT, "--from", "Pow_63:0", "--to", "Add_69:0")
    assert code == 0
    assert data["inputs"]["names"] == ["Add_60:0"]
    (note,) = data["notes"]
    assert note.startswith("Pow_63:0 lies within graph.layer_norm (Add_69, Mul_68, Div_67, Sqrt_66, ")
    assert note.endswith("): the part starts before it")
    runs_alike(data)


@pytest.mark.parametrize(
    ("end", "within", "instead"),
    [
        ("Sqrt_66:0", "graph.layer_norm of Add_69, Mul_68", "Add_69:0"),
        ("Erf_54", "graph.gelu of Mul_57, Mul_56", "Mul_57:0"),
        ("MatMul_58:0", "graph.matmul of Add_59, MatMul_58", "Add_59:0"),
    ],
)
def test_an_end_within_a_composite_is_refused(extract: Extract, end: str, within: str, instead: str) -> None:
    code, _, err = extract(BERT, "--to", end)
    assert code == 1
    assert f"must be a value that is computed (found it within one {within}" in err
    assert err.strip().endswith(f"; end at {instead} [E-command]")


def test_a_convolution_without_its_scale_is_no_part(extract: Extract) -> None:
    code, _, err = extract(small_cnn(), "--to", "Conv_4:0")
    assert code == 1
    assert "(found it within one graph.conv of BatchNormalization_5, Conv_4); end at BatchNormalization_5:0" in err
    code, data, _ = extract(None, "--from", "Conv_4:0", "--to", "Relu_6:0")
    assert code == 0
    assert data["inputs"]["names"] == ["MaxPool_3:0"]
    runs_alike(data)


def shared() -> onnx.ModelProto:
    """A convolution that two read, so that its scale is not folded; in a part of it, one does."""
    w = ModelWriter(seed=5)
    conv = w.node("Conv", "x", w.weight(4, 3, 3, 3), kernel_shape=[3, 3])
    scaled = w.node("Mul", conv, w.constant(np.full((1, 4, 1, 1), 1.1, np.float32)))
    return w.model({"x": [1, 3, 8, 8]}, [w.node("Add", w.node("Relu", scaled), w.node("Tanh", conv))])


def test_what_leaves_a_part_keeps_it_as_it_is(extract: Extract) -> None:
    code, data, _ = extract(shared(), "--from", "x", "--to", "Relu_2:0")
    assert code == 0
    assert data["notes"] == ["Conv_0:0 leave the part, and are outputs as well"]
    runs_alike(data)
    assert [output.name for output in onnx.load("part.onnx").graph.output] == ["Relu_2:0", "Conv_0:0"]


def islands() -> onnx.ModelProto:
    """An island of f32 that begins with squares and ends with a quotient, and one that a root behind it makes."""
    w = ModelWriter(seed=6)
    x = w.node("Tanh", "x")
    squares = w.node("Mul", x, x)
    total = w.node("Add", squares, w.node("Neg", squares))
    ratio = w.node("Div", x, w.node("Add", total, w.constant(np.float32(1))))
    small = w.node("Add", w.node("Abs", ratio), w.constant(np.float32(1e-7)))
    return w.model({"x": [4, 8]}, [w.node("Relu", w.node("Sqrt", small))])


def test_a_start_in_an_island_moves_before_it(extract: Extract) -> None:
    code, data, _ = extract(islands(), "--from", "Add_3:0", "--to", "Div_5:0")
    assert code == 0
    assert data["inputs"]["names"] == ["Tanh_0:0"]
    assert data["notes"] == ["Add_3:0 is f32 inside, where an input would be rounded: the part starts before it"]
    runs_alike(data)
    code, data, _ = extract(None, "--from", "Add_3:0", "--to", "Div_5:0", "--precision", "fp32")
    assert data["inputs"]["names"] == ["Add_3:0", "Tanh_0:0"]
    runs_alike(data)


def test_what_makes_an_end_f32_is_taken_along(extract: Extract) -> None:
    code, data, _ = extract(islands(), "--from", "Div_5:0", "--to", "Add_7:0")
    assert code == 0
    (note,) = data["notes"]
    assert note == "graph.add is f32 inside, for what comes behind it: that is taken along"
    part = runs_alike(data)
    assert [node.op_type for node in part.graph.node] == ["Abs", "Add", "Sqrt", "Relu"]


@pytest.mark.parametrize("seed", range(8))
def test_random_parts_of_random_models(seed: int) -> None:
    """Every part that ends in a value that is computed has the bits of the whole, compiled for the device."""
    model, rng = random_model(seed), np.random.default_rng(seed)
    wiring, target = Wiring.read(model), Target.load("tiny")
    options = options_of("fp16", None, {})
    whole = Inside(wiring.proto, None, options, target)
    inputs = {name: rng.standard_normal((4, 16)).astype(np.float32) for name in ("x", "y")}
    values, parts = whole.evaluate(inputs), list[Part]()
    for _ in range(60):
        first, last = sorted(rng.choice(len(wiring.nodes), 2, replace=False))
        start, end = wiring.nodes[first].output[0], wiring.nodes[last].output[0]
        if wiring.between([start], [end]) and whole.find([end]):  # else it is not computed
            parts.append(Extraction(wiring, whole, values, options, target).run([start], [end]))
    assert len(parts) >= 5
    for part in (min(parts, key=lambda each: len(each.model.graph.node)), parts[-1]):
        found = stepwell.run(stepwell.compile(part.model, target="tiny"), part.inputs)
        for name, array in part.outputs.items():
            assert found[name].tobytes() == array.tobytes()


def random_model(seed: int) -> onnx.ModelProto:
    w, rng = ModelWriter(seed=seed), np.random.default_rng(seed)
    values = ["x", "y"]

    def old() -> str:
        return values[max(0, len(values) - 1 - int(rng.geometric(0.5)))]

    for _ in range(24):
        match rng.integers(9):
            case 0 | 1:
                found = w.node(str(rng.choice(["Relu", "Tanh", "Abs", "Neg"])), old())
            case 2:
                x = old()
                found = w.node("Mul", x, w.node("Sigmoid", x))
            case 3:
                found = w.node("Softmax", old(), axis=-1)
            case 4:
                found = w.node("MatMul", old(), w.weight(16, 16, scale=0.2))
                if rng.integers(2):
                    found = w.node("Add", found, w.weight(16, scale=0.2))
            case 5:
                found = w.node("Mul", old(), w.constant(np.float32(rng.uniform(0.5, 1.5))))
            case 6:
                x = old()
                found = w.node("Tanh", w.node("Mul", x, x))
            case 7:
                eps = w.constant(np.float32(1e-7))
                found = w.node("Tanh", w.node("Sqrt", w.node("Add", w.node("Abs", old()), eps)))
            case _:
                found = w.node("Add", w.node("Tanh", old()), old())
        values.append(found)
    return w.model({"x": [4, 16], "y": [4, 16]}, [w.node("Add", values[-1], w.node("Add", values[-2], values[-3]))])


# what models are made of


def test_a_part_takes_what_it_needs_along(extract: Extract) -> None:
    """Integers and truth values at the borders, shapes that are known, a function, data in another file."""
    inner = [helper.make_node("Mul", ["a", "b"], ["m"]), helper.make_node("Relu", ["m"], ["r"])]
    function = helper.make_function("own", "Scaled", ["a", "b"], ["r"], inner, [helper.make_opsetid("", 17)])
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"], "T"),
        helper.make_node("Gather", ["t", "rows"], ["g"], "G", axis=0),
        helper.make_node("Scaled", ["g", "big"], ["s"], "S", domain="own"),
        helper.make_node("Shape", ["x"], ["size"], "Z"),
        helper.make_node("Slice", ["size", "one", "two"], ["last"], "L"),
        helper.make_node("Concat", ["minus", "last"], ["form"], "C", axis=0),
        helper.make_node("Reshape", ["s", "form"], ["flat"], "R"),
        helper.make_node("Add", ["rows", "rows"], ["twice"], "D"),
        helper.make_node("Greater", ["flat", "zero"], ["positive"], "P"),
        helper.make_node("Where", ["positive", "flat", "zero"], ["y"], "W"),
        helper.make_node("Cast", ["twice"], ["count"], "K", to=TensorProto.INT64),
    ]
    big = np.random.default_rng(0).standard_normal((6, 64)).astype(np.float32)
    arrays = {"big": big, "one": [1], "two": [2], "minus": [-1], "zero": np.zeros((), np.float32)}
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()]
    infos = [INFO("x", TensorProto.FLOAT, [4, 64]), INFO("rows", TensorProto.INT64, [6])]
    outputs = [INFO("y", TensorProto.FLOAT, [6, 64]), INFO("count", TensorProto.INT64, [6])]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    graph = helper.make_graph(nodes, "g", infos, outputs, tensors)
    model = helper.make_model(graph, functions=[function], opset_imports=opsets, ir_version=9)
    onnx.save(model, "model.onnx", save_as_external_data=True, location="weights", size_threshold=256)
    rows = np.array([0, 3, -1, 1, 2, 2])
    np.savez("in.npz", rows=rows)
    code, data, err = extract(None, "--input", "in.npz", "--from", "g,twice", "--to", "positive,count")
    assert code == 0, err
    assert data["inputs"]["names"] == ["g", "twice"]
    part = runs_alike(data)
    assert {tensor.name: list(tensor.dims) for tensor in part.graph.initializer}["big"] == [6, 64]
    assert not any(tensor.external_data for tensor in part.graph.initializer)
    with np.load("part.npz") as inputs, np.load("part.outputs.npz") as found:
        assert np.array_equal(inputs["twice"], 2 * rows)
        assert inputs["twice"].dtype == np.int64
        assert found["positive"].dtype == np.bool_
    code, data, err = extract(None, "--input", "in.npz", "--from", "positive", "--to", "y")
    assert code == 0, err
    assert data["inputs"]["names"] == ["positive", "flat"]
    runs_alike(data)


def test_large_weights_lie_beside_a_part(extract: Extract, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut, "LARGEST", 10_000)
    code, data, err = extract(mlp(), "--from", "Gemm_0:0", "--to", "Gemm_4:0")
    assert code == 0, err
    assert Path("part.onnx").stat().st_size < 10_000 < Path("part.onnx.data").stat().st_size
    onnx.checker.check_model("part.onnx")
    assert main([*data["command"].split()[1:], "-o", "found.npz", "--verify", "part.onnx", "--quiet"]) == 0
    with np.load("found.npz") as found, np.load("part.outputs.npz") as expected:
        assert found["Gemm_4:0"].tobytes() == expected["Gemm_4:0"].tobytes()
    code, _, err = extract(None, "--from", "Gemm_0:0", "--to", "Gemm_4:0")
    assert code == 0, err  # over what is there


def branching(condition: str) -> onnx.ModelProto:
    """An If whose branches read values around it, one of which has the name of a value of the other branch."""

    def branch(name: str, *nodes: onnx.NodeProto) -> onnx.GraphProto:
        return helper.make_graph(list(nodes), name, [], [INFO(nodes[-1].output[0], TensorProto.FLOAT, None)])

    then = branch(
        "then", helper.make_node("Exp", ["t"], ["inner"], "E"), helper.make_node("Add", ["inner", "x"], ["a"])
    )
    other = branch(
        "else", helper.make_node("Neg", ["t"], ["inner"], "N"), helper.make_node("Mul", ["inner", "x"], ["b"])
    )
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"], "T"),
        helper.make_node("If", [condition], ["chosen"], "If_0", then_branch=then, else_branch=other),  # pyright: ignore[reportArgumentType]
        helper.make_node("If", [condition], ["again"], "If_1", then_branch=then, else_branch=other),  # pyright: ignore[reportArgumentType]
        helper.make_node("Sub", ["chosen", "again"], ["d"], "D"),
        helper.make_node("Relu", ["d"], ["y"], "R"),
    ]
    infos = [INFO("x", TensorProto.FLOAT, [2, 8]), INFO(condition, TensorProto.BOOL, [])]
    graph = helper.make_graph(nodes, "g", infos, [INFO("y", TensorProto.FLOAT, [2, 8])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize(("value", "operators"), [("true", ["Add", "Sub"]), ("false", ["Mul", "Sub"])])
def test_a_part_may_begin_within_a_branch(extract: Extract, value: str, operators: Sequence[str]) -> None:
    """The branch that a constant chooses is part of the main graph; the second one's names are made its own."""
    bound = ["--const", f"taken={value}", "--precision", "fp32"]
    code, data, err = extract(branching("taken"), *bound, "--from", "inner,again", "--to", "D")
    assert code == 0, err
    assert data["inputs"]["names"] == ["inner", "x", "again"]
    part = runs_alike(data)
    assert [node.op_type for node in part.graph.node if node.op_type != "Identity"] == operators
    code, data, err = extract(None, *bound, "--from", "If_1:inner", "--to", "again")
    assert code == 0, err
    runs_alike(data)


# what the CPU runs


def with_the_cpu() -> onnx.ModelProto:
    """The device, then the CPU in types of its own and shapes that data decide, then the device again."""
    text = """<ir_version: 9, opset_import: ["" : 20]>
    g (float[4,16] x, string[4,1] s) => (float[4,16] y, float[n] g, float[4,5] e, float[4,16] z) {
        t = Tanh(x)  m = MatMul(t, w)  r = Relu(m)
        d = Cast<to = 11>(r)  p = Exp(d)  f = Cast<to = 1>(p)  h = MatMul(f, w)  y = Sigmoid(h)
        i = NonZero(r)  j = Transpose(i)  g = GatherND(r, j)
        v, k = TopK(h, five)  o = Cast<to = 1>(k)  u = Mul(v, o)  e = Sigmoid(u)
        c = StringConcat(s, s)  b = Equal(c, word)  a = Where(b, h, t)  z = Exp(a)
        q = SequenceConstruct(d, p)  l = SequenceAt(q, one)  last = Identity(l)
    }"""
    model = onnx.parser.parse_model(text)
    weights = np.random.default_rng(3).standard_normal((16, 16)).astype(np.float32) / 4
    arrays = {"w": weights, "five": np.array([5]), "word": np.array("11", object), "one": np.array(1)}
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    for node in model.graph.node:
        node.name = f"{node.op_type}_{node.output[0]}"
    model.graph.output.append(INFO("last", TensorProto.DOUBLE, [4, 16]))
    return model


@pytest.mark.parametrize("precision", ["fp16", "fp32"])
@pytest.mark.parametrize(
    ("start", "end", "inputs", "operators"),
    [
        ("t", "r", ["t"], ["MatMul", "Relu"]),
        ("m", "p", ["m"], ["Relu", "Cast", "Exp"]),
        ("d", "p", ["d"], ["Exp"]),
        ("d", "y", ["d"], ["Exp", "Cast", "MatMul", "Sigmoid"]),
        ("p", "h", ["p"], ["Cast", "MatMul"]),
        ("f", "y", ["f"], ["MatMul", "Sigmoid"]),
        ("r", "j", ["r"], ["NonZero", "Transpose"]),
        ("i", "g", ["i", "r"], ["Transpose", "GatherND"]),
        ("t", "g", ["t"], ["MatMul", "Relu", "NonZero", "Transpose", "GatherND"]),
        ("h", "k,v", ["h"], ["TopK"]),
        ("v,k", "e", ["k", "v"], ["Cast", "Mul", "Sigmoid"]),
        ("s", "c", ["s"], ["StringConcat"]),
        ("c", "z", ["c", "h", "t"], ["Equal", "Where", "Exp"]),
        ("b", "a", ["b", "h", "t"], ["Where"]),
    ],
)
def test_a_part_begins_and_ends_where_the_cpu_has_a_tensor(
    extract: Extract, start: str, end: str, inputs: list[str], operators: list[str], precision: str
) -> None:
    code, data, err = extract(with_the_cpu(), "--from", start, "--to", end, "--precision", precision)
    assert code == 0, err
    assert data["inputs"]["names"] == inputs, data["notes"]
    assert [node.op_type for node in runs_alike(data).graph.node] == operators


def test_the_types_of_the_cpu_are_recorded(extract: Extract) -> None:
    code, _, err = extract(with_the_cpu(), "--from", "c,d,r", "--to", "b,p,i")
    assert code == 0, err
    with np.load("part.npz", allow_pickle=False) as inputs, np.load("part.outputs.npz", allow_pickle=False) as found:
        assert (inputs["d"].dtype, inputs["c"].dtype.kind) == (np.float64, "U")
        assert all(text == 2 * text[0] for text in inputs["c"].ravel())
        assert (found["i"].dtype, found["p"].dtype, found["b"].dtype) == (np.int64, np.float64, np.bool_)
        assert np.array_equal(found["p"] > 1, inputs["d"] > 0)


def test_outputs_that_do_not_depend_on_the_start_are_none_of_the_part(extract: Extract) -> None:
    code, data, err = extract(with_the_cpu(), "--from", "v,k")
    assert code == 0, err
    assert data["outputs"]["names"] == ["e"]
    runs_alike(data)


def test_a_sequence_is_no_border(extract: Extract) -> None:
    code, data, err = extract(with_the_cpu(), "--from", "q", "--to", "last")
    assert code == 0, err
    assert data["inputs"]["names"] == ["d", "p"]
    assert data["notes"] == ["q is seq(tensor(double)), no tensor: the part starts before it"]
    runs_alike(data)
    code, _, err = extract(None, "--to", "q")
    assert code == 1
    assert "--to q: must be a tensor (found seq(tensor(double))); name a value before or behind it" in err


def test_integers_that_no_input_takes_are_no_border(extract: Extract) -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]>
    g (int64[3] n) => (int64[1,k] i) { u = Unique(n)  m = Mul(u, u)  i = NonZero(m) }"""
    np.savez("in.npz", n=np.array([1 << 20, 0, 3]))
    code, data, err = extract(onnx.parser.parse_model(text), "--input", "in.npz", "--from", "m")
    assert code == 0, err
    assert data["inputs"]["names"] == ["n"], "the device would multiply what it is given for u"
    assert "m has integers that 32 bits do not hold (0 to 1099511627776): the part starts before it" in data["notes"]
    runs_alike(data)


def test_a_node_without_a_kernel_is_on_the_cpu_in_a_part_as_well(extract: Extract) -> None:
    w, hidden = ModelWriter(seed=7), 2064
    weights = (w.weight(1, hidden, 1), w.weight(1, hidden, hidden, scale=0.01))
    found = w.node("RNN", w.node("Relu", "x"), *weights, hidden_size=hidden)
    model = w.model({"x": [3, 1, 1]}, [w.node("Tanh", found)])
    code, data, err = extract(model, "--from", "Relu_0:0", "--to", found)
    assert code == 0, err
    assert data["inputs"]["names"] == ["Relu_0:0"]
    runs_alike(data)
    code, _, err = extract(None, "--no-host", "--from", "Relu_0:0", "--to", found)
    assert code == 0, err  # the values of the graph, of which the device has no program


# what is refused


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        (["--from", "a,b", "--to", "Gemm"], ["--from a: must be a value or a node", "--from b: ", "--to Gemm: "]),
        (["--to", "Gemm_22"], ["--to Gemm_22: must be a value or a node of the main graph (found none of this name)"]),
        (["--to", "constant_0"], ["--to constant_0: must be a computed value (found an initialiser)"]),
        (["--from", "Relu_3:0", "--to", "Gemm_2:0"], ["--to Gemm_2:0: must depend on --from (found no node from Relu"]),
        (["--from", "Relu_3:0", "--to", "Gemm_2:0,Gemm_4:0"], ["--to Gemm_2:0: must depend on --from (found no node"]),
        (
            ["--from", "x,Softmax_5:0", "--to", "Relu_1"],
            ["--from Softmax_5:0: must lie on a way to --to (found no node"],
        ),
        (["--to", "x"], ["--to x: must be made by a node (found an input)"]),
        (["-o", "part.stw"], ["-o part.stw: must end in .onnx (found .stw)"]),
        (["-o", "model.onnx"], ["-o model.onnx: is a file of its own (found the model itself, which would be lost)"]),
    ],
)
def test_wrong_names_are_refused(extract: Extract, options: list[str], messages: list[str]) -> None:
    code, _, err = extract(mlp(), *options)
    assert code == 1
    lines = err.strip().splitlines()
    assert len(lines) == len(messages)
    for line, message in zip(lines, messages, strict=True):
        assert line.startswith(f"stepwell: error: {message}")
