"""The importer: what it folds, keeps and refuses, and the words it refuses with."""

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from graph_tools import only_function
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx_models import ModelWriter, mlp, node_model
from xdsl.dialects.builtin import ArrayAttr, NameLoc, StringAttr

from stepwell.dialects.evaluate import evaluate
from stepwell.dialects.graph.constants import ConstantOp, WeightOp
from stepwell.driver import cli
from stepwell.frontend.onnx import ImportProblems, ModelFileError, import_onnx, supported

Array = NDArray[Any]


def model_of(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, Any],
    outputs: dict[str, Any],
    initializers: dict[str, Array] | None = None,
    opset: int = 17,
    kind: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "made",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, type_, None) for name, type_ in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in (initializers or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def relu(shape: list[Any]) -> onnx.ModelProto:
    return model_of([helper.make_node("Relu", ["x"], ["y"], "relu")], {"x": shape}, {"y": TensorProto.FLOAT})


def problems(model: onnx.ModelProto, **options: Any) -> tuple[str, ...]:
    with pytest.raises(ImportProblems) as caught:
        import_onnx(model, **options)
    return caught.value.problems


def names_of_ops(model: onnx.ModelProto, **options: Any) -> list[str]:
    module, _ = import_onnx(model, **options)
    module.verify()
    *ops, last = only_function(module).body.block.ops
    assert last.name == "func.return"
    return [op.name.removeprefix("graph.") for op in ops]


# files ----------------------------------------------------------------------------------------------------------------
def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"none\.onnx: a model is a file \(found nothing\); check the path"):
        import_onnx(tmp_path / "none.onnx")
    with pytest.raises(ModelFileError, match="found a folder"):
        import_onnx(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "an ONNX file is not empty"),
        (b"this is a text and no model at all", "is ONNX (found"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "found a pointer of Git LFS to one"),
        (mlp().SerializeToString()[:5000], "is ONNX (found"),
        (b"\x08\x08", "an ONNX model has a graph with outputs"),
    ],
)
def test_a_broken_file_is_one_clear_error(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    with pytest.raises(ModelFileError) as caught:
        import_onnx(path)
    assert message in str(caught.value)
    assert "fetch or export it again" in str(caught.value)


def test_external_data_is_mapped(tmp_path: Path) -> None:
    model = mlp()
    path = tmp_path / "model.onnx"
    onnx.save_model(copy.deepcopy(model), path, save_as_external_data=True, location="data.bin", size_threshold=256)
    module, weights = import_onnx(path)
    x = np.ones((4, 64), np.float32)
    inside, held = import_onnx(model)
    np.testing.assert_array_equal(evaluate(module, [x], weights)[0], evaluate(inside, [x], held)[0])
    assert not all(weights.get(handle).flags.owndata for handle in weights)
    (tmp_path / "data.bin").unlink()
    with pytest.raises(ModelFileError, match="its data lies in a file in the model's folder"):
        import_onnx(path)


# shapes ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("extent", ["N", "?", -1, None])
def test_a_dynamic_axis_needs_a_shape(extent: Any) -> None:
    (problem,) = problems(relu([extent, 3]))
    assert problem.startswith("x: axis 0 has a static extent (found ")
    assert f"give --shape x={'N' if extent == 'N' else 'D0'},3 or shapes=" in problem
    assert names_of_ops(relu([extent, 3]), shapes={"x": [2, 3]}) == ["relu"]


def test_an_axis_of_extent_zero_is_one_unless_the_caller_gives_another() -> None:
    assert "relu" not in names_of_ops(relu([0, 3]))
    assert names_of_ops(relu([0, 3]), shapes={"x": [2, 3]}) == ["relu"]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"x": [2]}, "x: the shape has 2 axes (found 1)"),
        ({"x": [2, 4]}, "x: axis 1 is fixed at 3 by the model (found 4)"),
        ({"x": [-1, 3]}, "x: axis 0 has an extent of 0 or more (found -1)"),
        ({"x": [2, 3], "z": [1]}, "z: shapes name inputs of the model (found none of this name); its inputs are x"),
    ],
)
def test_a_shape_that_does_not_fit_is_named(shapes: dict[str, list[int]], message: str) -> None:
    assert problems(relu(["N", 3]), shapes=shapes)[0].startswith(message)


# folding --------------------------------------------------------------------------------------------------------------
def test_shape_arithmetic_leaves_nothing() -> None:
    w = ModelWriter()
    shape = w.node("Shape", "x")
    batch = w.node("Gather", shape, w.constant(np.array([0])), axis=0)
    rest = w.node("Slice", shape, w.constant(np.array([1])), w.constant(np.array([3])))
    size = w.node("ReduceProd", rest, keepdims=1)
    target = w.node("Concat", batch, w.node("Cast", size, to=TensorProto.INT64), axis=0)
    model = w.model({"x": ["N", 3, 4]}, [w.node("Reshape", "x", target)])
    assert names_of_ops(model, shapes={"x": [2, 3, 4]}) == ["reshape"]


def test_constants_are_computed() -> None:
    w = ModelWriter()
    mask = w.node(
        "ConstantOfShape", w.constant(np.array([2, 2])), value=numpy_helper.from_array(np.ones(1, np.float32))
    )
    triangle = w.node("Trilu", mask, upper=0)  # by onnx's reference
    scale = w.node("Sqrt", w.constant(np.float32(16)))
    model = w.model({"x": [2, 2]}, [w.node("Add", "x", w.node("Div", triangle, scale))])
    module, weights = import_onnx(model)
    assert names_of_ops(model) == ["constant", "add"]
    x = np.zeros((2, 2), np.float32)
    np.testing.assert_array_equal(evaluate(module, [x], weights)[0], np.tril(np.full((2, 2), 0.25, np.float32)))


def test_small_constants_stand_in_the_text_and_large_ones_in_the_store() -> None:
    small, large = np.ones(64, np.float32), np.ones(65, np.float32)
    nodes = [
        helper.make_node("Add", ["x", "c"], ["y"]),
        helper.make_node("Add", ["z", "d"], ["w"]),
        helper.make_node("Mul", ["w", "e"], ["v"]),
    ]
    outputs = {"y": TensorProto.FLOAT, "v": TensorProto.FLOAT}
    model = model_of(nodes, {"x": [64], "z": [65]}, outputs, {"c": small, "d": large, "e": large.copy()})
    module, weights = import_onnx(model)
    ops = list(only_function(module).body.block.ops)
    assert [type(op) for op in ops if isinstance(op, ConstantOp | WeightOp)] == [ConstantOp, WeightOp]
    assert len(weights) == 1  # equal arrays are one


# names and types at the border ---------------------------------------------------------------------------------------
def test_inputs_and_outputs_keep_their_names() -> None:
    module, _ = import_onnx(relu([2, 3]))
    function = only_function(module)
    assert function.sym_name.data == "main"
    assert function.attributes["input_names"] == ArrayAttr([StringAttr("x")])
    assert function.attributes["output_names"] == ArrayAttr([StringAttr("y")])


def test_every_op_has_the_unique_name_of_its_node() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Relu", ["a"], ["b"], "twin")]
    nodes += [helper.make_node("Exp", ["b"], ["c"], "twin"), helper.make_node("Neg", ["c"], ["y"])]
    module, _ = import_onnx(model_of(nodes, {"x": [2]}, {"y": TensorProto.FLOAT}))
    locations = [op.location for op in only_function(module).body.block.ops][:-1]
    assert [loc.parameters[0] for loc in locations if isinstance(loc, NameLoc)] == [
        StringAttr(name) for name in ("Relu_0", "twin", "twin_2", "Neg_3")
    ]


def test_integers_of_64_bits_are_narrow_inside() -> None:
    node = [helper.make_node("Add", ["x", "c"], ["y"])]
    model = model_of(node, {"x": [3]}, {"y": TensorProto.INT64}, {"c": np.array([1, 2, 3])}, kind=TensorProto.INT64)
    assert names_of_ops(model) == ["cast", "constant", "add", "cast"]
    module, weights = import_onnx(model)
    (found,) = evaluate(module, [np.array([10, 20, 30])], weights)
    assert found.dtype == np.int64
    assert found.tolist() == [11, 22, 33]
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array([1, 2, 2**40]), "c"))
    assert problems(model)[0].startswith("Add_0: integers fit 32 bits (found 1 to 1099511627776)")


# problems -------------------------------------------------------------------------------------------------------------
def test_all_problems_are_reported_at_once() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "fine"),
        helper.make_node("Unique", ["a"], ["b"], "first"),
        helper.make_node("Add", ["b", "a"], ["c"], "depends on first"),
        helper.make_node("Frobnicate", ["c"], ["d"], "second", domain="my.own"),
        helper.make_node("Add", ["a", "w"], ["e"], "third"),
        helper.make_node("SequenceMap", ["d"], ["y"], "fourth", body=relu([2]).graph),
    ]
    model = model_of(nodes, {"x": [2, 3]}, {"y": TensorProto.FLOAT}, {"w": np.ones(7, np.float32)})
    found = problems(model)
    assert len(found) == 4
    assert found[0].startswith("first: the device does not run Unique (found ai.onnx, opset 17); ")
    assert found[1].startswith("second: the device does not run Frobnicate (found my.own, opset 0); ")
    assert found[2].startswith("third: operands must broadcast together (found 2×3, 7); ")
    assert found[3] == (
        "fourth: the device does not run SequenceMap (found ai.onnx, opset 17); export the model without control flow"
    )
    with pytest.raises(ImportProblems, match="the model has 4 problems, nothing was imported:\n  first: "):
        import_onnx(model)


X = np.ones((1, 2, 4, 4), np.float32)
SCALES = np.array([1, 1, 2, 2], np.float32)
I64 = np.int64


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (node_model("Expand", [X], {}, 7, [np.array([2, 2])]), "Expand is supported in opsets 8 to now (found ai.onnx"),
        (
            node_model("BatchNormalization", [X], {}, 9, [np.ones(2, np.float32)] * 4, 5),
            "has one output (found a use of 'y1')",
        ),
        (node_model("Reshape", [X, np.array([2, 16])]), "the shape must be a constant (found one that is computed)"),
        (node_model("Resize", [X], {"coordinate_transformation_mode": "?"}, 18, [None, SCALES]), "ONNX's (found ?)"),
        (node_model("Gelu", [X], {"approximate": "none?"}, 20), "GELU is the exact one"),
        (node_model("Cast", [X], {"to": TensorProto.DOUBLE}), "(found a cast to DOUBLE)"),
        (node_model("Conv", [X], {}, 17, [np.ones((2, 3, 2, 2), np.float32)]), "(found 2 channels,"),
        (node_model("Abs", [X.astype(np.float64)]), "x0: inputs hold floats of at most 32 bits"),
        (
            node_model("Gather", [X], {"axis": 2}, 17, [np.array([0, 99])]),
            "an index lies in [-4, 4) (found 99)",
        ),
    ],
)  # fmt: skip
def test_what_a_form_does_not_support_is_said(model: onnx.ModelProto, message: str) -> None:
    (problem,) = problems(model)
    assert message in problem
    assert "; " in problem


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (helper.make_node("Relu", ["x", "x"], ["y"], "r"), "r: Relu has 1 input (found 2); "),
        (helper.make_node("Add", ["x"], ["y"], "r"), "r: Add has 2 inputs (found 1); "),
        (
            helper.make_node("Softmax", ["x"], ["y"], "r", axis="a"),
            "r: the attribute axis of Softmax is INT (found STR",
        ),
        (helper.make_node("Concat", ["x", "x"], ["y"], "r"), "r: Concat has the attribute axis (found none); "),
    ],
)
def test_a_node_that_the_standard_forbids_is_told(node: onnx.NodeProto, message: str) -> None:
    (problem,) = problems(model_of([node], {"x": [2, 3]}, {"y": TensorProto.FLOAT}))
    assert problem.startswith(message)


def test_names_are_unique() -> None:
    nodes = [helper.make_node(kind, ["x"], ["y"], kind) for kind in ("Relu", "Neg")]
    model = model_of(nodes, {"x": [2]}, {"y": TensorProto.FLOAT})
    assert problems(model)[0].startswith("Neg: every value has one node that makes it (found 'y' of Relu again); ")
    model = relu([2])
    model.graph.input.append(model.graph.input[0])
    assert problems(model) == ("x: every input has a name of its own (found 2 of this name); rename them",)


def test_an_input_without_a_shape_needs_one() -> None:
    model = relu([2])
    model.graph.input[0].type.tensor_type.ClearField("shape")
    assert problems(model)[0].startswith(
        "x: an input has a shape (found none in the model); give --shape x=D0,D1,…, with"
    )
    assert names_of_ops(model, shapes={"x": [3, 4]}) == ["relu"]


def test_an_opset_of_the_future_and_a_huge_input_are_refused() -> None:
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": [2]}, {"y": TensorProto.FLOAT}, opset=999)
    assert "the model: its opset is 1 to " in problems(model)[0]
    assert "at most 2^40 elements" in problems(relu([2**40, 2**40]))[0]


def test_a_shape_is_advised_as_the_command_line_takes_it() -> None:
    (problem,) = problems(relu(["N", 3]))
    assert problem.endswith('give --shape x=N,3 or shapes={"x": [N, 3]}, with numbers for N')


NAMES = {
    "input:0": ("unk__653", "UNK__653"),
    "it's $HOME; `x` > <y>": ("sequence length", "SEQUENCE_LENGTH"),
    "a=b": ("2*n", "D_2_N"),
    "-x": ("<?>", "D0"),
    "two\nlines\\'": ("é", "D0"),
}


@pytest.mark.parametrize("name", NAMES)
def test_the_advised_shape_can_be_pasted_in_a_shell(name: str) -> None:
    """Once numbers stand for the placeholders, the shell and the command line find the name as it is."""
    dim, placeholder = NAMES[name]
    node = helper.make_node("Relu", [name], ["y"])
    model = model_of([node], {name: [dim, 3]}, {"y": TensorProto.FLOAT})
    (problem,) = problems(model)
    option = problem[problem.rindex("; give ") + len("; give ") : problem.rindex(" or shapes={")]
    assert option.rstrip("'").endswith(f"{placeholder},3")
    pasted = option.removesuffix(f"{placeholder},3") + "5,3"
    show = "import json, sys; print(json.dumps(sys.argv[1:]))"
    done = subprocess.run(
        ["bash", "-c", f'"$0" -c "$1" {pasted}', sys.executable, show], capture_output=True, text=True, check=True
    )
    args = cli.build_parser().parse_args(["compile", "m.onnx", *json.loads(done.stdout)])
    assert args.shape == [(name, (5, 3))]


def test_open_axes_of_one_name_are_one_placeholder_and_others_are_not() -> None:
    (problem,) = problems(relu(["a.b", "a b", "a.b", "n"]))
    assert "x=A_B_0,A_B_1,A_B_0,N" in problem
    (problem,) = problems(relu(["n", 4, "n", "?"]))
    assert problem.endswith('--shape x=N,4,N,D3 or shapes={"x": [N, 4, N, D3]}, with numbers for N and D3')


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("offset", "abc", "offset and length are numbers"),
        ("offset", "-5", "lies within w.bin"),
        ("length", "99", "of 16)"),
    ],
)
def test_a_wrong_place_of_external_data_is_told(key: str, value: str, message: str, tmp_path: Path) -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for name, text in (("location", "w.bin"), (key, value)):
        tensor.external_data.add(key=name, value=text)
    model = model_of([helper.make_node("Add", ["x", "w"], ["y"])], {"x": [4]}, {"y": TensorProto.FLOAT})
    model.graph.initializer.append(tensor)
    (tmp_path / "w.bin").write_bytes(bytes(16))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelFileError, match=message.replace(")", r"\)")):
        import_onnx(tmp_path / "m.onnx")


def test_a_value_that_no_one_defines_is_named() -> None:
    model = model_of([helper.make_node("Relu", ["nowhere"], ["y"], "r")], {"x": [2]}, {"y": TensorProto.FLOAT})
    assert problems(model)[0].startswith(
        "r: values are defined before use (found no 'nowhere'); the file breaks a rule"
    )


def test_the_table_of_operators_names_opsets() -> None:
    table = supported()
    assert table["Add"] == "1 …"
    assert table["Expand"] == "8 …"
    assert {"Conv", "Softmax", "Shape", "Squeeze", "Constant"} <= table.keys()
