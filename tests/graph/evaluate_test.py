"""The evaluator: kernels and launches, one rounding per edge, and what it refuses."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from graph_tools import example_op, only_function, parse
from numpy.typing import NDArray
from xdsl.dialects.builtin import NameLoc, StringAttr, UnknownLoc
from xdsl.ir import Block
from xdsl.pattern_rewriter import PatternRewriter

from stepwell.dialects.evaluate import EvaluationError, evaluate, read, reference
from stepwell.dialects.graph import OPERATORS
from stepwell.dialects.graph.activations import ReluOp
from stepwell.dialects.graph.arithmetic import AddOp, MulOp
from stepwell.dialects.graph.contract import MatMulOp
from stepwell.dialects.graph.op import GraphOp, element, f16, i32
from stepwell.dialects.graph.structure import LaunchOp
from stepwell.dialects.loops import Axis, axis
from stepwell.frontend.builder import GraphBuilder

Array = NDArray[Any]

KERNEL = """
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %z = graph.kernel(%a = %x, %b = %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    %c = graph.mul %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf16>
    %d = graph.add %c, %a : (tensor<4xf16>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %d : tensor<4xf32>
  }
  func.return %z : tensor<4xf32>
}"""
LAUNCH = """
builtin.module {
  func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %y, %z = graph.launch @double(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    func.return %y, %z : tensor<4xf32>, tensor<4xf32>
  }
  func.func @double(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %y = graph.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return %y, %x : tensor<4xf32>, tensor<4xf32>
  }
}"""
X = np.array([0.1, 1.7, -2.3, 1e4], np.float32)


def test_each_edge_rounds_once_inside_a_kernel_too() -> None:
    y = np.array([0.3, 3.1, 0.7, 1e4], np.float32)
    with np.errstate(over="ignore"):
        wanted = (X * y).astype(np.float16).astype(np.float32) + X
    np.testing.assert_array_equal(evaluate(parse(KERNEL), [X, y])[0], wanted)


def test_a_launch_runs_the_kernel_of_the_module() -> None:
    y, z = evaluate(parse(LAUNCH), [X])
    np.testing.assert_array_equal(y, 2 * X)
    np.testing.assert_array_equal(z, X)


def test_a_launch_can_be_run_elsewhere() -> None:
    seen: list[str] = []

    def launch(op: LaunchOp, operands: Sequence[Array]) -> list[Array]:
        seen.append(op.callee)
        return [operands[0] * 3, operands[0]]

    y, _ = evaluate(parse(LAUNCH), [X], launch=launch)
    np.testing.assert_array_equal(y, 3 * X)
    assert seen == ["double"]


def test_every_value_is_kept_on_request() -> None:
    b = GraphBuilder()
    x = b.input("x", [4])
    square = b(MulOp, x, x)
    b.output("y", b(ReluOp, b(AddOp, square, x)))
    values: dict[Any, Array] = {}
    evaluate(b.module(), [X], values=values)
    np.testing.assert_array_equal(values[square], X * X)
    assert len(values) == 4


def test_the_reference_is_float64() -> None:
    b = GraphBuilder()
    x = b.input("x", [2, 3], f16)
    b.output("y", b(MatMulOp, x, b.constant(np.ones((3, 2), np.float16))))
    module, values = b.module(), np.arange(6, dtype=np.float16).reshape(2, 3) / 3
    (found,) = reference(module, [values.astype(np.float64)], b.weights)
    assert found.dtype == np.float64


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "@main: takes 2 inputs (found 0)"),
        ([X, X[:3]], "input 1: is tensor<4xf32> (found shape [3], float32)"),
        ([X, X.astype(np.float64)], "input 1: is tensor<4xf32> (found shape [4], float64)"),
    ],
)
def test_inputs_that_do_not_fit_are_named(inputs: list[Array], message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        evaluate(parse(KERNEL), inputs)
    assert message in str(caught.value)


def test_what_cannot_be_run_is_named() -> None:
    with pytest.raises(EvaluationError, match="@main: no function of the module has this name"):
        evaluate(parse("builtin.module {}"), [])
    weight = 'func.func @main() { %0 = graph.weight "00112233445566778899" : tensor<80xf32> func.return }'
    with pytest.raises(EvaluationError, match="no weight store was given"):
        evaluate(parse(weight), [])
    with pytest.raises(EvaluationError, match="@double: no function"):
        evaluate(
            only_function(
                parse(LAUNCH.replace("@double(%x: ", "@other(%x: ").partition("  func.func @other")[0] + "}")
            ),
            [X],
        )


@pytest.mark.parametrize("cls", [c for c in OPERATORS if c.structure() == "decompose"], ids=lambda c: c.name)
def test_a_decomposition_keeps_location_and_result_type(cls: type[GraphOp]) -> None:
    for kind in ("f32", "f16"):
        op = example_op(cls.EXAMPLE.replace("f32", kind))
        op.location = NameLoc(StringAttr("here"), UnknownLoc())
        block = op.parent
        assert isinstance(block, Block)
        values = op.decompose(PatternRewriter(op))
        assert [value.type for value in values] == list(op.result_types)
        parts = list(block.ops)[:-1]
        assert all(part.location == op.location for part in parts)
        for part in parts:
            part.verify()


@pytest.mark.parametrize("batch", [(), (2,), (2, 1, 3)])
def test_matmul_broadcasts_and_adds_its_bias(batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    b = GraphBuilder()
    x, w, bias = b.input("x", [*batch, 5, 7]), b.input("w", [9, 7]), b.input("bias", [9])
    b.output("y", b(MatMulOp, x, w, bias, trans_b=True))
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((*batch, 5, 7), (9, 7), (9,))]
    wanted = arrays[0] @ arrays[1].T + arrays[2]
    np.testing.assert_allclose(evaluate(b.module(), arrays)[0], wanted, rtol=1e-5, atol=1e-5)


def test_integer_contraction_is_exact() -> None:
    op = example_op("%2 = graph.matmul %0, %1 : (tensor<3x50xi8>, tensor<50x4xi8>) -> tensor<3x4xi32>")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, s).astype(np.int8) for s in ((3, 50), (50, 4)))
    np.testing.assert_array_equal(op.evaluate(a, b), a.astype(np.int32) @ b.astype(np.int32))
    assert element(op.results[0]) == i32


def test_read_fills_what_lies_outside() -> None:
    x = np.arange(5)
    window = (Axis(((0, 2), (1, 1)), -1),)
    assert read(x, window, (3, 3), -9).tolist() == [[-9, 0, 1], [1, 2, 3], [3, 4, -9]]
    assert read(x, (axis(0, -1, 4),), (5,)).tolist() == [4, 3, 2, 1, 0]
    assert read(np.arange(6).reshape(2, 3), (axis(1), axis(0)), (3, 2)).tolist() == [[0, 3], [1, 4], [2, 5]]


def test_a_slice_of_one_element_may_have_any_step() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for step in (2**63 - 1, -(2**63) + 1, 2**40):
        properties = f"{{starts = [0, 3], sizes = [3, 1], steps = [1, {step}]}}"
        module = parse(
            "func.func @main(%0: tensor<3x4xf32>) -> tensor<3x1xf32> {\n"
            f"%1 = graph.slice %0 {properties} : (tensor<3x4xf32>) -> tensor<3x1xf32>\n"
            "func.return %1 : tensor<3x1xf32>\n}"
        )
        (found,) = evaluate(module, [x])
        assert np.array_equal(found, x[:, 3:])
        (expected,) = reference(module, [x])
        assert np.array_equal(expected, x[:, 3:])
