"""Operators of the domain com.microsoft on bytes: products are exact, the rest is computed in f32 and rounded once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ..dialects.graph.arithmetic import AddOp, MulOp
from ..dialects.graph.elementwise import CastOp, WhereOp
from ..dialects.graph.op import InferError, element, f32, shape
from ..dialects.graph.quantize import DequantizeOp, DynamicScaleOp, QuantizeOp
from ..dialects.graph.views import ConcatOp, ReshapeOp, TransposeOp
from .integer_products import conv_bytes, matmul_bytes
from .microsoft import channels_first, channels_last, number, sum_of, whole, window_of, words_kept
from .node import Node, Value, size_of
from .operators import apply
from .quantization import along_axis, requantized, spread, wide


def dequantized(node: Node, index: int) -> SSAValue:
    """Bytes with their scale and zero point, which are the two inputs behind them, as f32."""
    return dequantize(node, node.given(index), node.given(index + 1), node.optional(index + 2))


def dequantize(node: Node, x: Value, scale: Value, zero: Value | None) -> SSAValue:
    """(x − zero)·scale, of one scale and zero point."""
    return node.emit(DequantizeOp, node.materialize(x), _one(node, scale), None if zero is None else _one(node, zero))


def quantize(node: Node, y: SSAValue, index: int, like: Value) -> SSAValue:
    """Bytes by the scale that is input `index` and the zero point behind it; without one, of another's type."""
    zero = node.optional(index + 1)
    kind = element(node.materialize(like))
    scale = _one(node, node.given(index))
    if zero is None:
        return node.emit(QuantizeOp, y, scale, element=kind)
    return node.emit(QuantizeOp, y, scale, _one(node, zero))


def _one(node: Node, value: Value) -> SSAValue:
    """A parameter of the whole tensor, as a scalar."""
    if size_of(value) not in ((), (1,)):
        raise InferError(f"there is one scale, and one zero point, of a tensor (found shape {list(size_of(value))})")
    found = node.materialize(value)
    return node.emit(ReshapeOp, found, shape=[]) if shape(found) else found


# element by element ---------------------------------------------------------------------------------------------------
def add(node: Node) -> Sequence[Value]:
    """a + b."""
    y = node.emit(AddOp, dequantized(node, 0), dequantized(node, 3))
    return [quantize(node, y, 6, node.given(0))]


def multiply(node: Node) -> Sequence[Value]:
    """The exact product of bytes less their zero points, scaled and rounded once."""
    product = node.emit(MulOp, whole(node, 0, 2), whole(node, 3, 5))
    return [requantized(node, product, [node.given(1), node.given(4)], 6, element(node.operand(0)))]


def function(operator: str, *names: str) -> Callable[[Node], Sequence[Value]]:
    """A function of one number; its parameters have the names."""

    def expand(node: Node) -> Sequence[Value]:
        given = {name: node.attributes[name] for name in names if name in node.attributes}
        return [quantize(node, apply(node, operator, dequantized(node, 0), **given), 3, node.given(0))]

    return expand


def softmax(node: Node) -> Sequence[Value]:
    """Softmax by the rules of the opset that the node names."""
    opset, axis = node.attributes["opset"], node.attributes.get("axis", -1)
    y = apply(node, "Softmax", dequantized(node, 0), opset=opset, axis=axis)
    return [quantize(node, y, 3, node.given(0))]


def where(node: Node) -> Sequence[Value]:
    """x or y, brought to the scale of the result."""
    parts = [quantize(node, dequantized(node, index), 7, node.given(1)) for index in (1, 4)]
    return [node.emit(WhereOp, node.operand(0), *parts)]


def concat(node: Node) -> Sequence[Value]:
    """The parts, each brought to the scale of the result, one after the other."""
    if len(node.inputs) % 3 != 2:
        raise InferError(f"each part has a scale and a zero point (found {len(node.inputs)} inputs)")
    indices = range(2, len(node.inputs), 3)
    parts = [quantize(node, dequantized(node, index), 0, node.given(index)) for index in indices]
    axis = node.attributes["axis"]
    return [parts[0] if len(parts) == 1 else node.emit(ConcatOp, *parts, axis=axis % len(shape(parts[0])))]


def average(operator: str) -> Callable[[Node], Sequence[Value]]:
    """The mean over windows, or over all places."""

    def expand(node: Node) -> Sequence[Value]:
        last, x = bool(node.attributes.get("channels_last", 0)), dequantized(node, 0)
        x = channels_first(node, x) if last else x
        y = apply(node, operator, x, **_whole_windows(window_of(node), shape(x)[2:]))
        return [quantize(node, channels_last(node, y) if last else y, 3, node.given(0))]

    return expand


def _whole_windows(window: Mapping[str, Any], space: Sequence[int]) -> Mapping[str, Any]:
    """A window that counts padding, of onnxruntime's QLinearAveragePool: the last one, by `ceil_mode`, counts what it
    has beyond the padding as well, so that is padding too."""
    automatic = window.get("auto_pad", "NOTSET") != "NOTSET"
    if automatic or not (window.get("ceil_mode", 0) and window.get("count_include_pad", 0)):
        return window
    rank = len(space)
    ones = [1] * rank
    pads = list(window.get("pads", [0] * 2 * rank))
    strides, dilations = (window.get(key, ones) for key in ("strides", "dilations"))
    for i, (size, taps) in enumerate(zip(space, window["kernel_shape"], strict=True)):
        room = size + pads[i] + pads[rank + i] - dilations[i] * (taps - 1) - 1
        more = -room % strides[i]
        starts_inside = room + more < size + pads[i]
        pads[rank + i] += more if starts_inside else 0
    return {**window, "pads": pads, "ceil_mode": 0}


def reduce_mean(node: Node) -> Sequence[Value]:
    """The mean over axes."""
    axes = np.array(node.attributes["axes"], np.int64)
    y = apply(node, "ReduceMean", dequantized(node, 0), axes, keepdims=node.attributes["keepdims"])
    return [quantize(node, y, 3, node.given(0))]


def embed_layer_norm(node: Node) -> Sequence[Value]:
    """As EmbedLayerNormalization; tables, scale and bias are bytes, of which each row that is read is made floats."""
    words, segments = node.given(0), node.optional(1)
    count = size_of(words)[-1]
    places: list[Value | None] = [words, np.arange(count, dtype=np.int32).reshape(1, count), segments]
    parts = [
        dequantize(node, apply(node, "Gather", node.given(2 + i), rows), node.given(8 + i), node.optional(13 + i))
        for i, rows in enumerate(places)
        if rows is not None
    ]
    gamma, beta = (dequantize(node, node.given(5 + i), node.given(11 + i), node.optional(16 + i)) for i in range(2))
    epsilon = node.attributes.get("epsilon", 1e-12)
    y = apply(node, "LayerNormalization", sum_of(node, *parts), gamma, beta, axis=-1, epsilon=epsilon)
    return [y, words_kept(node, words, node.optional(7))]


# products -------------------------------------------------------------------------------------------------------------
def matmul_to_float(node: Node) -> Sequence[Value]:
    """The exact product, scaled, plus a bias."""
    y = matmul_bytes(node, (0, 4), (1, 5))
    rows, columns = spread(node, node.given(2), -2, y), spread(node, node.given(3), -1, y)
    return [_scaled(node, y, node.emit(MulOp, wide(node, rows), wide(node, columns)), node.optional(6))]


def dynamic_matmul(node: Node) -> Sequence[Value]:
    """a is made bytes by its range; then the exact product, scaled, plus a bias."""
    x = node.operand(0)
    scale, zero = node.builder.insert(DynamicScaleOp.build_op([x])).results
    a = node.emit(QuantizeOp, x, scale, zero)
    part = node.with_inputs([a, node.given(1), zero, node.optional(3)])
    y = matmul_bytes(part, (0, 2), (1, 3))
    columns = spread(node, node.given(2), -1, y)
    return [_scaled(node, y, node.emit(MulOp, scale, wide(node, columns)), node.optional(4))]


def _scaled(node: Node, y: SSAValue, factor: SSAValue, bias: Value | None) -> SSAValue:
    y = node.emit(MulOp, node.emit(CastOp, y, element=f32), factor)
    return y if bias is None else node.emit(AddOp, y, node.materialize(bias))


def gemm(node: Node) -> Sequence[Value]:
    """α·(a·b + c) as floats, or as bytes if the result has a scale; a and b as they are or transposed."""
    given = list(node.inputs)
    for index, letter in ((0, "A"), (3, "B")):
        if node.attributes.get(f"trans{letter}", 0):
            given[index] = node.emit(TransposeOp, node.operand(index), perm=[1, 0])
    part = node.with_inputs(given)
    y = matmul_bytes(part, (0, 2), (3, 5))
    if (c := node.optional(6)) is not None:
        y = node.emit(AddOp, y, node.materialize(c))
    scales: list[Value] = [node.given(1), spread(node, node.given(4), -1, y)]
    alpha = float(node.attributes.get("alpha", 1.0))
    if alpha != 1:
        scales[0] = node.emit(MulOp, wide(node, scales[0]), number(node, alpha))
    if node.optional(7) is not None:
        return [requantized(node, y, scales, 7, element(node.operand(0)))]
    factor = node.emit(MulOp, *(wide(node, scale) for scale in scales))
    return [node.emit(MulOp, node.emit(CastOp, y, element=f32), factor)]


def conv(node: Node) -> Sequence[Value]:
    """The exact convolution, plus an i32 bias, rounded once; x and the result may be [N, …, C]."""
    last = bool(node.attributes.get("channels_last", 0))
    given = [channels_first(node, node.given(0)) if last else node.given(0), *node.inputs[1:]]
    part = node.with_inputs(given)
    y = conv_bytes(part, (0, 2), (3, 5))
    if (bias := node.optional(8)) is not None:
        y = node.emit(AddOp, y, along_axis(node, node.materialize(bias), 1, len(shape(y))))
    y = requantized(node, y, [node.given(1), spread(node, node.given(4), 1, y)], 6, element(node.operand(0)))
    return [channels_last(node, y) if last else y]


# one tensor -----------------------------------------------------------------------------------------------------------
def quantize_linear(node: Node) -> Sequence[Value]:
    """As that of ai.onnx."""
    return [apply(node, "QuantizeLinear", *node.inputs, **node.attributes)]


def dequantize_linear(node: Node) -> Sequence[Value]:
    """As that of ai.onnx."""
    return [apply(node, "DequantizeLinear", *node.inputs, **node.attributes)]


INTEGERS: Mapping[str, Callable[[Node], Sequence[Any]]] = {
    "DequantizeLinear": dequantize_linear,
    "DynamicQuantizeMatMul": dynamic_matmul,
    "MatMulIntegerToFloat": matmul_to_float,
    "QEmbedLayerNormalization": embed_layer_norm,
    "QGemm": gemm,
    "QLinearAdd": add,
    "QLinearAveragePool": average("AveragePool"),
    "QLinearConcat": concat,
    "QLinearConv": conv,
    "QLinearGlobalAveragePool": average("GlobalAveragePool"),
    "QLinearLeakyRelu": function("LeakyRelu", "alpha"),
    "QLinearMul": multiply,
    "QLinearReduceMean": reduce_mean,
    "QLinearSigmoid": function("Sigmoid"),
    "QLinearSoftmax": softmax,
    "QLinearWhere": where,
    "QuantizeLinear": quantize_linear,
}
"""By operator."""
