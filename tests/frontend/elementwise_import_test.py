"""Elementwise operators in all their forms and types, imported and evaluated: what ONNX's own cases leave out."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnx_models import node_model
from xdsl.dialects.func import FuncOp

from stepwell.dialects.evaluate import evaluate
from stepwell.frontend.onnx import ImportProblems, import_onnx

Array = NDArray[Any]
RANDOM = np.random.default_rng(3)
FLOATS = [np.float32, np.float16, ml_dtypes.bfloat16]
BYTES = np.arange(-128, 128).astype(np.int8)
WORDS = np.array([-(2**31), -(2**31) + 1, -5, -1, 0, 1, 7, 2**30, 2**31 - 1], np.int32)
TYPES = [*FLOATS, np.int8, np.uint8, np.int32, np.bool_]


def run(model: onnx.ModelProto, *inputs: Array) -> Array:
    module, weights = import_onnx(model)
    (found,) = evaluate(module, inputs, weights)
    return found


def computed(operator: str, *inputs: Array, opset: int = 21, constants: Any = (), **attributes: Any) -> Array:
    return run(node_model(operator, inputs, attributes, opset, constants), *inputs)


@pytest.mark.parametrize("target", TYPES, ids=lambda kind: np.dtype(kind).name)
@pytest.mark.parametrize("source", TYPES, ids=lambda kind: np.dtype(kind).name)
def test_every_cast_is_that_of_numpy(source: Any, target: Any) -> None:
    values = np.array([0, 1, -1, 2, 100, -100, 3.5, -3.5])
    x = np.abs(values).astype(source) if source == np.uint8 else values.astype(source)
    expected = np.clip(x, 0, None).astype(target) if target == np.uint8 and x.dtype.kind in "fV" else x.astype(target)
    wanted = int(helper.np_dtype_to_tensor_dtype(np.dtype(target)))
    for found in (computed("Cast", x, to=wanted), computed("CastLike", x, np.zeros(1, target))):
        assert found.dtype == target
        assert np.array_equal(found.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32])
@pytest.mark.parametrize("operator", ["And", "Or", "Xor"])
def test_bits(operator: str, kind: Any) -> None:
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    x, y = RANDOM.integers(low, high, (5, 7), kind, endpoint=True), RANDOM.integers(low, high, 7, kind, endpoint=True)
    function = {"And": np.bitwise_and, "Or": np.bitwise_or, "Xor": np.bitwise_xor}[operator]
    assert np.array_equal(computed(f"Bitwise{operator}", x, y), function(x, y))
    assert np.array_equal(computed("BitwiseNot", x), ~x)


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("x", [BYTES, BYTES.view(np.uint8), WORDS], ids=["i8", "u8", "i32"])
def test_shifts_by_any_count(x: Array, direction: str) -> None:
    bits = x.dtype.itemsize * 8
    counts = np.arange(0 if x.dtype == np.uint8 else -2, bits + 3)[:, None].astype(x.dtype)
    whole = x.astype(np.int64)
    inside = (counts >= 0) & (counts < bits)
    places = np.where(inside, counts, 0).astype(np.int64)
    shifted = whole << places if direction == "LEFT" else whole >> places
    beyond = np.where((whole < 0) & (direction == "RIGHT"), -1, 0)
    expected = np.where(inside, shifted, beyond).astype(x.dtype)
    found = computed("BitShift", np.broadcast_to(x, expected.shape).copy(), counts, opset=28, direction=direction)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int8, np.uint8])
@pytest.mark.parametrize("bounds", [(3, 9), (None, 9), (3, None), (None, None), (9, 3)])
@pytest.mark.parametrize("known", [True, False])
def test_clip_in_every_form(bounds: tuple[int | None, int | None], kind: Any, known: bool) -> None:
    x = np.arange(0, 20).astype(kind)
    low, high = (None if b is None else np.array(b, kind) for b in bounds)
    expected = x if low is None else np.maximum(x, low)
    expected = expected if high is None else np.minimum(expected, high)
    if known:
        found = computed("Clip", x, constants=[low, high], opset=13)
    else:
        given = [array for array in (low, high) if array is not None]
        model = node_model("Clip", [x, *given], {}, 13)
        if low is None and high is not None:
            del model.graph.node[0].input[1:]
            model.graph.node[0].input.extend(["", "x1"])
        found = run(model, x, *given)
    assert found.dtype == kind
    assert np.array_equal(found, expected)


def test_clip_by_a_word_that_f32_does_not_hold() -> None:
    bound = 2**24 + 1
    x = np.array([0, bound - 1, bound, bound + 1, 2**31 - 1], np.int32)
    found = computed("Clip", x, constants=[None, np.array(bound, np.int32)], opset=13)
    assert np.array_equal(found, np.minimum(x, bound))


@pytest.mark.parametrize("y", [np.int32, np.int64, np.int8, np.float32])
@pytest.mark.parametrize("x", [np.float32, np.int32, np.int8])
@pytest.mark.parametrize("known", [True, False])
def test_powers_of_mixed_types(x: Any, y: Any, known: bool) -> None:
    base, exponent = np.arange(-3, 4).astype(x), np.array([0, 1, 2, 3, 2, 5, 4]).astype(y)
    expected = np.power(base.astype(np.float64), exponent.astype(np.float64)).astype(x)
    if known:
        found = computed("Pow", base, constants=[exponent], opset=15)
    else:
        found = computed("Pow", base, exponent, opset=15)
    assert found.dtype == x
    assert np.allclose(found.astype(np.float64), expected.astype(np.float64), rtol=1e-6)


@pytest.mark.parametrize(("negative", "positive"), [(1, 1), (0, 1), (1, 0), (0, 0)])
def test_infinities_of_a_sign(negative: int, positive: int) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 1, 0], np.float32)
    expected = ((x == np.inf) & bool(positive)) | ((x == -np.inf) & bool(negative))
    found = computed("IsInf", x, detect_negative=negative, detect_positive=positive)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("operator", ["Sum", "Mean", "Max", "Min"])
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: np.dtype(kind).name)
def test_any_number_of_inputs(operator: str, count: int, kind: Any) -> None:
    shapes = [(3, 4), (4,), (1, 4), (), (3, 1)][:count]
    inputs = [np.asarray(RANDOM.integers(-8, 9, shape)).astype(kind) for shape in shapes]
    wide = np.stack(np.broadcast_arrays(*(x.astype(np.float64) for x in inputs)))
    expected = {"Sum": np.sum, "Mean": np.mean, "Max": np.max, "Min": np.min}[operator](wide, axis=0)
    found = computed(operator, *inputs)
    assert found.dtype == kind
    assert np.allclose(found.astype(np.float64), expected, rtol=1e-2 if kind != np.float32 else 1e-6)


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: np.dtype(kind).name)
def test_where_broadcasts_every_type(kind: Any) -> None:
    condition = np.array([[True], [False], [True]])
    x, y = np.array([1, 0, 3, 1]).astype(kind), np.array(1).astype(kind)
    found = computed("Where", condition, x, y)
    assert np.array_equal(found, np.where(condition, x, y))


def test_the_mask_of_a_dropout_is_true() -> None:
    x = np.ones((2, 3), np.float32)
    module, weights = import_onnx(node_model("Dropout", [x], {}, 13, outputs=2))
    same, mask = evaluate(module, [x], weights)
    assert np.array_equal(same, x)
    assert mask.dtype == np.bool_
    assert mask.all()


@pytest.mark.parametrize("alpha", [0.0, -1.0])
def test_celu_needs_a_positive_alpha(alpha: float) -> None:
    with pytest.raises(ImportProblems, match=rf"alpha is positive \(found {alpha}\)"):
        computed("Celu", np.ones(3, np.float32), alpha=alpha, opset=12)


# control flow ---------------------------------------------------------------------------------------------------------
X = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])


def branch(name: str, *nodes: onnx.NodeProto, output: str = "inner") -> onnx.GraphProto:
    scale = onnx.numpy_helper.from_array(np.array(2.0 if name == "then" else 3.0, np.float32), "scale")
    result = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
    return helper.make_graph(list(nodes), name, [], [result], [scale])


def conditional(condition: onnx.NodeProto, *more: onnx.NodeProto) -> onnx.ModelProto:
    """y = x · 2 if a condition holds, else x · 3; the branches use the same names."""
    branches: dict[str, Any] = {
        f"{name}_branch": branch(name, helper.make_node("Mul", ["x", "scale"], ["inner"], "product"))
        for name in ("then", "else")
    }
    nodes = [condition, *more, helper.make_node("If", ["c"], ["y"], "choice", **branches)]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "main", [X], [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize(("axis_length", "factor"), [(2, 2.0), (7, 3.0)])
def test_a_condition_on_shapes_takes_a_branch(axis_length: int, factor: float) -> None:
    wanted = helper.make_node("Constant", [], ["n"], value_ints=[axis_length])
    size = helper.make_node("Shape", ["x"], ["s"], end=1)
    model = conditional(wanted, size, helper.make_node("Equal", ["s", "n"], ["c"]))
    x = RANDOM.standard_normal((2, 3)).astype(np.float32)
    assert np.array_equal(run(model, x), x * np.float32(factor))


def test_a_condition_on_values_makes_functions_of_the_branches() -> None:
    total = helper.make_node("ReduceSum", ["x"], ["t"], keepdims=0)
    model = conditional(total, helper.make_node("Cast", ["t"], ["c"], to=TensorProto.BOOL))
    module, _ = import_onnx(model)
    assert [op.sym_name.data for op in module.ops if isinstance(op, FuncOp)] == ["main", "branch0", "branch1"]


def test_a_problem_in_a_branch_names_its_node() -> None:
    model = conditional(
        helper.make_node("Constant", [], ["c"], value=helper.make_tensor("v", TensorProto.BOOL, [], [1]))
    )
    model.graph.node[-1].attribute[0].g.node[0].op_type = "Frobnicate"
    model.graph.node[-1].attribute[1].g.node[0].op_type = "Frobnicate"
    with pytest.raises(ImportProblems, match="product: the device does not run Frobnicate") as caught:
        import_onnx(model)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("broken", [False, True])
def test_what_branches_that_are_not_taken_apart_lack_is_told(broken: bool) -> None:
    total = helper.make_node("ReduceSum", ["x"], ["t"], keepdims=0)
    model = conditional(total, helper.make_node("Grumble" if broken else "Cast", ["t"], ["c"], to=TensorProto.BOOL))
    model.graph.node[-1].attribute[0].g.node[0].op_type = "Frobnicate"
    with pytest.raises(ImportProblems) as caught:
        import_onnx(model)
    *first, inner = caught.value.problems
    assert ["the device does not run Grumble" in problem for problem in first] == [True] * broken
    name = "product" if broken else "product_2"  # the other branch has a node of this name, and was imported before
    assert inner.startswith(f"{name}: the device does not run Frobnicate (found ai.onnx, opset 18); ")


# faults -------------------------------------------------------------------------------------------------------------
def test_no_bare_error_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    from stepwell.frontend import operators

    def broken(node: object) -> list[Any]:
        raise IndexError("list index out of range")

    monkeypatch.setattr(operators, "EXPANSIONS", {**operators.EXPANSIONS, "Pow": broken})
    with pytest.raises(ImportProblems) as caught:
        computed("Pow", np.ones(3, np.float32), np.ones(3, np.float32))
    (problem,) = caught.value.problems
    assert problem.startswith("node: Pow is not supported in this form (found IndexError: list index out of range); ")
