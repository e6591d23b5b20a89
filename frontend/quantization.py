"""QuantizeLinear and its kin: parameters of one tensor, of an axis or of blocks become operands that broadcast."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto
from xdsl.ir import Attribute, SSAValue

from ..dialects.graph.arithmetic import AddOp, DivOp, MulOp
from ..dialects.graph.constants import ELEMENTS as CONSTANTS
from ..dialects.graph.constants import NUMPY
from ..dialects.graph.elementwise import CastOp
from ..dialects.graph.op import DtypeError, InferError, ShapeError, element, f32, i32, shape
from ..dialects.graph.quantize import DequantizeOp, DynamicScaleOp, QuantizeOp, RequantizeOp
from ..dialects.graph.views import ReshapeOp, SliceOp, normal_axis
from .float8 import DTYPES as FLOATS8
from .float8 import FEW_BITS, INNER, inner_type, limits, rounded
from .inputs import ELEMENTS
from .integer_products import conv_bytes, matmul_bytes
from .movement import repeat
from .node import Node, Value

SIXTEEN = (np.dtype(np.int16), np.dtype(np.uint16))
QUANTISED = (*INNER, *SIXTEEN, np.dtype(np.int8), np.dtype(np.uint8))
"""What a QuantizeLinear gives."""


def quantize_linear(node: Node) -> Sequence[Value]:
    """Values of the zero point's type, or of `output_dtype`: bytes, integers of 16 bits, which are i32 inside a graph,
    or of fewer than 8, which are bytes, or floats of 8 bits."""
    x, scale = node.operand(0), _parameter(node, 1)
    assert scale is not None
    if node.attributes.get("precision", 0) not in (0, TensorProto.FLOAT):
        raise InferError(f"the quotient is taken in f32 (found precision = {_type_name(node.attributes['precision'])})")
    kind, zero = _quantised_type(node), _parameter(node.with_inputs([_bytes(value) for value in node.inputs]), 2)
    if kind in FLOATS8:
        return [rounded(node, x, kind, scale)]
    held = np.iinfo(kind) if kind not in FEW_BITS else None
    least, most = limits(kind) if held is None else (int(held.min), int(held.max))
    target = i32 if kind in SIXTEEN else CONSTANTS[np.dtype(FEW_BITS.get(kind, kind))]
    bounds = None if target != i32 and held is not None else [least, most]
    return [node.emit(QuantizeOp, x, scale, zero, element=target, limits=bounds)]


def _quantised_type(node: Node) -> "np.dtype[Any]":
    """The type of the model that a QuantizeLinear gives. Raises `InferError`."""
    zero, code = node.optional(2), node.attributes.get("output_dtype", 0) or TensorProto.UINT8
    if zero is None:
        kind = inner_type(code) or NUMPY[ELEMENTS.get(code, f32)]
    else:
        kind = node.kinds[2] if len(node.kinds) > 2 else None
        kind = kind or (zero.dtype if isinstance(zero, np.ndarray) else NUMPY[element(zero)])
    if kind not in QUANTISED:
        found = _type_name(code) if zero is None else kind
        raise DtypeError(f"results are integers of at most 16 bits, or floats of 8 (found {found})")
    if kind in FLOATS8 and zero is not None and (isinstance(zero, SSAValue) or zero.astype(np.float32).any()):
        raise DtypeError("the zero point of floats is a known 0 (found another)")
    return kind


def dequantize_linear(node: Node) -> Sequence[Value]:
    """Floats of the scale's type, or of `output_dtype`. Constants of fewer bits than a byte are bytes."""
    node = node.with_inputs([_bytes(value) for value in node.inputs])
    scale, wanted = _parameter(node, 1), ELEMENTS.get(node.attributes.get("output_dtype", 0))
    assert scale is not None
    if node.kinds and node.kinds[0] in FLOATS8:
        return [node.emit(MulOp, node.operand(0), scale, element=wanted or element(scale))]
    return [node.emit(DequantizeOp, node.operand(0), scale, _parameter(node, 2), element=wanted)]


def _bytes(value: Value | None) -> Value | None:
    if not isinstance(value, np.ndarray) or value.dtype not in INNER:
        return value
    return value.astype(FEW_BITS.get(value.dtype, np.float32))


def dynamic_quantize_linear(node: Node) -> Sequence[Value]:
    """Bytes, and the scale and zero point that their range asks for."""
    x = node.operand(0)
    scale, zero = node.builder.insert(DynamicScaleOp.build_op([x])).results
    return [node.emit(QuantizeOp, x, scale, zero), scale, zero]


def _type_name(number: int) -> str:
    return TensorProto.DataType.Name(number)


def _parameter(node: Node, index: int) -> SSAValue | None:
    """A scale or zero point that broadcasts to the first input: of all, of an axis, or of blocks along it."""
    given = node.inputs[index] if index < len(node.inputs) else None
    if given is None:
        return None
    value, size = node.materialize(given), shape(node.operand(0))
    if shape(value) in ((), (1,)):
        return node.emit(ReshapeOp, value, shape=[]) if shape(value) else value
    axis = normal_axis(node.attributes.get("axis", 1), len(size))
    block = node.attributes.get("block_size", 0)
    if block:
        if len(shape(value)) != len(size) or shape(value)[axis] * block < size[axis]:
            raise ShapeError(f"there is a scale for each block of {block} (found {value.type} for {list(size)})")
        wide = repeat(node, value, [block if i == axis else 1 for i in range(len(size))])
        zeros, ones = [0] * len(size), [1] * len(size)
        return wide if shape(wide) == size else node.emit(SliceOp, wide, starts=zeros, sizes=size, steps=ones)
    return node.emit(ReshapeOp, value, shape=[-1 if i == axis else 1 for i in range(len(size))])


# integer products -----------------------------------------------------------------------------------------------------
def qlinear_matmul(node: Node) -> Sequence[Value]:
    """The exact product of bytes less their zero points, rounded once to bytes."""
    y = matmul_bytes(node, (0, 2), (3, 5))
    rows, columns = (node.given(index) for index in (1, 4))
    return [requantized(node, y, [spread(node, rows, -2, y), spread(node, columns, -1, y)], 6)]


def qlinear_conv(node: Node) -> Sequence[Value]:
    """The exact convolution of bytes less their zero points, plus an i32 bias, rounded once to bytes."""
    y = conv_bytes(node, (0, 2), (3, 5))
    if len(node.inputs) > 8 and node.inputs[8] is not None:
        y = node.emit(AddOp, y, along_axis(node, node.operand(8), 1, len(shape(y))))
    return [requantized(node, y, [node.given(1), spread(node, node.given(4), 1, y)], 6)]


def spread(node: Node, scale: Value, axis: int, y: SSAValue) -> Value:
    """A vector of scales along an axis of the product."""
    size = shape(scale) if isinstance(scale, SSAValue) else scale.shape
    if len(size) != 1 or size == (1,):
        return scale
    rank = len(shape(y))
    if isinstance(scale, SSAValue):
        return along_axis(node, scale, axis, rank)
    return scale.reshape([-1 if i == axis % rank else 1 for i in range(rank)])


def along_axis(node: Node, vector: SSAValue, axis: int, rank: int) -> SSAValue:
    """A vector on an axis of a tensor of the rank."""
    return node.emit(ReshapeOp, vector, shape=[-1 if i == axis % rank else 1 for i in range(rank)])


def requantized(
    node: Node, y: SSAValue, scales: Sequence[Value], index: int, kind: Attribute | None = None
) -> SSAValue:
    """The i32 product times its scales, divided by that of the result, which is input `index`; then its zero point.

    Without a zero point, bytes of type `kind`.
    """
    a, b = scales
    by, zero = node.given(index), node.optional(index + 1)
    if all(isinstance(value, np.ndarray) for value in (a, b, by)):
        known: list[np.ndarray[Any, Any]] = [np.asanyarray(value, np.float32) for value in (a, b, by)]
        factor = node.materialize(np.asanyarray(known[0] * known[1] / known[2], np.float32))
    else:
        product = node.emit(MulOp, wide(node, a), wide(node, b), element=f32)
        factor = node.emit(DivOp, product, wide(node, by), element=f32)
    if zero is None:
        return node.emit(RequantizeOp, y, _number(node, factor), element=kind)
    return node.emit(RequantizeOp, y, _number(node, factor), _number(node, node.materialize(zero)))


def wide(node: Node, value: Value) -> SSAValue:
    """The value as f32."""
    x = node.materialize(value)
    return x if element(x) == f32 else node.emit(CastOp, x, element=f32)


def _number(node: Node, value: SSAValue) -> SSAValue:
    return node.emit(ReshapeOp, value, shape=[]) if shape(value) == (1,) else value
