"""Every operator: its example reads and prints, evaluation agrees with the reference, and mistakes are named."""

import numpy as np
import pytest
from graph_tools import around, example_op, parse, random_inputs
from xdsl.utils.exceptions import VerifyException

from stepwell.dialects.evaluate import widened
from stepwell.dialects.graph import OPERATORS
from stepwell.dialects.graph.constants import NUMPY, ConstantOp, WeightOp
from stepwell.dialects.graph.op import GraphOp, InferError, Tensor, dtype_name, element, shape
from stepwell.dialects.graph.structure import KernelOp, LaunchOp
from stepwell.dialects.loops import LoopNest
from stepwell.runtime.numerics.functions import FUNCTIONS

EXAMPLES = [kind.EXAMPLE for kind in (*OPERATORS, ConstantOp, WeightOp, KernelOp, LaunchOp)]
NAMES = [kind.name for kind in OPERATORS]
# Relative to the largest value of the result.
TOLERANCE = {"f32": 2e-6, "f16": 1e-3, "bf16": 8e-3, "b8": 0, "i8": 0, "u8": 0}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.partition(" = ")[2].split()[0])
def test_the_example_reads_and_prints(example: str) -> None:
    text = str(parse(around(example)))
    assert "\n".join(line.strip() for line in example.splitlines()) in "\n".join(
        line.strip() for line in text.splitlines()
    )
    assert str(parse(text)) == text


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("cls", OPERATORS, ids=NAMES)
def test_evaluation_agrees_with_the_reference(cls: type[GraphOp], kind: str) -> None:
    op = example_op(cls.EXAMPLE.replace("f32", kind))
    inputs = random_inputs(op)
    pairs = zip(op.evaluate_all(*inputs), op.reference_all(*map(widened, inputs)), op.results, strict=True)
    for found, wanted, result in pairs:
        if result is op.results[0]:
            assert found.dtype == NUMPY[element(result)]
        assert found.shape == np.shape(wanted) == shape(result)
        scale = max(1e-3, float(np.max(np.abs(wanted.astype(np.float64)))))
        error = np.max(np.abs(found.astype(np.float64) - wanted.astype(np.float64))) / scale
        assert error <= TOLERANCE[dtype_name(op.results[0])]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "max", "min", "mod", "fmod", "eq", "lt", "ge"])
def test_integers_are_exact(name: str) -> None:
    result = "i1" if name in ("eq", "lt", "ge") else "i32"
    op = example_op(f"%2 = graph.{name} %0, %1 : (tensor<64xi32>, tensor<64xi32>) -> tensor<64x{result}>")
    inputs = random_inputs(op)
    np.testing.assert_array_equal(op.evaluate(*inputs), op.reference(*map(widened, inputs)))


def test_every_function_has_an_operator() -> None:
    assert set(FUNCTIONS) <= {kind.name.removeprefix("graph.") for kind in OPERATORS}


@pytest.mark.parametrize("cls", [c for c in OPERATORS if c.structure() == "loops"], ids=lambda c: c.name)
def test_a_loop_nest_reads_each_operand_and_covers_the_result(cls: type[GraphOp]) -> None:
    op = example_op(cls.EXAMPLE)
    nest = op.loops()
    assert isinstance(nest, LoopNest)
    assert len(nest.inputs) == len(op.operands)
    for operand, index in zip(op.operands, nest.inputs, strict=True):
        assert len(index) == len(shape(operand))
    for extent, ax in zip(shape(op.results[0]), nest.output, strict=True):
        reach = ax.offset + sum(coef * (nest.bounds[dim] - 1) for dim, coef in ax.terms)
        assert reach + 1 >= extent


def test_a_class_without_a_facet_does_not_define() -> None:
    with pytest.raises(
        TypeError, match=r"HalfOp: an operator defines infer, reference, .* missing reference, structures none"
    ):

        class HalfOp(GraphOp):  # pyright: ignore[reportUnusedClass]
            """Half an operator."""

            name = "graph.half"

            @classmethod
            def infer(cls, operands: object, properties: object) -> list[Tensor]:
                return []


MISTAKES = [
    (
        "%2 = graph.add %0, %1 : (tensor<2x3xf32>, tensor<4xf32>) -> tensor<2x3xf32>",
        "must broadcast together (found 2×3, 4)",
    ),
    ("%2 = graph.add %0, %1 : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>", "all floats, or all of one type"),
    ("%1 = graph.exp %0 : (tensor<2xi32>) -> tensor<2xi32>", "operands are floats (found i32)"),
    ("%1 = graph.exp %0 : (tensor<2xf32>) -> tensor<3xf32>", "result has shape 3, its operands give 2"),
    ("%1 = graph.not %0 : (tensor<2xf32>) -> tensor<2xi1>", "truth values, i1 (found f32)"),
    (
        "%3 = graph.where %0, %1, %2 : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>",
        "the condition is a truth value, i1 (found f32)",
    ),
    (
        "%2 = graph.matmul %0, %1 : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>",
        "the contracted axes agree (found 3 and 4)",
    ),
    (
        "%3 = graph.matmul %0, %1, %2 : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<5xf32>) -> tensor<2x4xf32>",
        "the bias is a tensor<4xf32> (found tensor<5xf32>)",
    ),
    (
        "%3 = graph.matmul %0, %1, %2 : (tensor<2x3xf16>, tensor<3x4xf16>, tensor<4xf16>) -> tensor<2x4xf16>",
        "the bias is a tensor<4xf32> (found tensor<4xf16>)",
    ),
    (
        "%2 = graph.conv2d %0, %1 {"
        "kernel = [3, 3], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], channels = 8}"
        " : (tensor<1x8x8x8xf32>, tensor<72x5xf32>) -> tensor<1x6x6x5xf32>",
        "the packed weight is [144, outputs] (found [72, 5])",
    ),
    (
        "%2 = graph.conv %0, %1 {"
        "kernel = [9, 9], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 1}"
        " : (tensor<1x3x8x8xf32>, tensor<5x3x9x9xf32>) -> tensor<1x5x1x1xf32>",
        "the window fits into the padded operand (found 9 taps over 8)",
    ),
    (
        "%2 = graph.conv %0, %1 {"
        "kernel = [3, 3], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 2}"
        " : (tensor<1x3x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x6x6xf32>",
        "(found 3 channels, 4 outputs, 2 groups)",
    ),
    (
        "%1 = graph.window2d %0 {"
        'fn = "min", kernel = [2, 2], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]}'
        " : (tensor<1x8x8x3xf32>) -> tensor<1x7x7x3xf32>",
        "fn is mean, sum or max (found 'min')",
    ),
    ("%1 = graph.reshape %0 {shape = [5]} : (tensor<2x3xf32>) -> tensor<5xf32>", "keeps the number of elements"),
    (
        "%1 = graph.transpose %0 {perm = [0, 0]} : (tensor<2x3xf32>) -> tensor<2x2xf32>",
        "perm names each of the 2 axes once",
    ),
    (
        "%1 = graph.transpose %0 {perm = [1, 0]} : (tensor<2x3xf32>) -> tensor<3x2xf16>",
        "elements keep their type (found f16, f32)",
    ),
    (
        "%1 = graph.slice %0 {starts = [1], sizes = [3], steps = [2]} : (tensor<5xf32>) -> tensor<3xf32>",
        "a slice lies inside its axis of 5 (found 3 elements from 1 by 2)",
    ),
    (
        "%2 = graph.concat %0, %1 {axis = 0} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<4x3xf32>",
        "operands agree in all axes but 0",
    ),
    ("%1 = graph.reduce_sum %0 {axes = [2]} : (tensor<2x3xf32>) -> tensor<2xf32>", "lies in [-2, 2) (found 2)"),
    (
        "%0 = graph.constant dense<0.0> : tensor<65xf32>",
        "at most 64 elements stand in text (found 65); use graph.weight",
    ),
    ('%0 = graph.weight "xyz" : tensor<65xf32>', "16 or more hexadecimal digits"),
    (
        "%2 = graph.gather_nd %0, %1 {batch_dims = -9} : (tensor<3x4xf32>, tensor<1x1xi32>) -> tensor<1xf32>",
        "the first -9 axes belong to both operands (found [3, 4] and [1, 1])",
    ),
    ("%0 = graph.clip %1 {lo = 0} : (tensor<2xf32>) -> tensor<2xf32>", "lo"),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_a_mistake_is_named(text: str, message: str) -> None:
    with pytest.raises(VerifyException) as caught:
        parse(around(text))
    assert message in str(caught.value)


def test_the_builder_raises_without_the_op_name() -> None:
    from xdsl.dialects.builtin import TensorType, f32

    from stepwell.dialects.graph.arithmetic import AddOp

    with pytest.raises(InferError, match="must broadcast together"):
        AddOp.infer([TensorType(f32, [2]), TensorType(f32, [3])], {})
