"""Operators of the domain com.microsoft whose weights are integers of few bits.

What a weight is, (q − zero)·scale, is rounded once, to the type of the scales. That of a product stays packed if it is
large; any other is made floats at import.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ..dialects.graph.arithmetic import AddOp, AndOp, DivOp
from ..dialects.graph.contract import MatMulOp
from ..dialects.graph.elementwise import CastOp
from ..dialects.graph.op import InferError, ShapeError, element, f32, i8, i32, shape, u8
from ..dialects.graph.packed import LEAST_BLOCK
from ..dialects.graph.views import ReshapeOp, normal_axis
from ..dialects.standin import in_order
from ..runtime.numerics.packed import pack, row_bytes
from .float8 import FEW_BITS
from .model_file import Array
from .movement import take
from .node import Node, Value, size_of
from .operators import apply
from .packed import Packed, is_large, packed_product


# packed integers ------------------------------------------------------------------------------------------------------
def unpacked(packed: Array, bits: int) -> Array:
    """Bytes as the unsigned integers of 2, 4 or 8 bits that stand in each, lowest bits first, along the last axis."""
    if bits not in (2, 4, 8):
        raise InferError(f"weights have 2, 4 or 8 bits (found {bits})")
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return parts.reshape(*packed.shape[:-1], -1).astype(np.uint8)


def block_weights(q: Array, scales: Array, zeros: Array | float) -> Array:
    """(q − zero)·scale in f32, rounded to the type of the scales."""
    known = (q.astype(np.float32) - np.asanyarray(zeros, np.float32)) * scales.astype(np.float32)
    return known.astype(scales.dtype)


def _constant(node: Node, index: int) -> Array:
    value = node.known(index)
    if value is None:
        raise InferError(f"{node.operator} has an input {index} (found {len(node.inputs)} inputs)")
    return value


def matmul_nbits(node: Node) -> Sequence[Value]:
    """a·bᵀ + bias, b [N, K] being integers of few bits with a scale for each block of K or group in `g_idx`."""
    given = node.attributes
    n, k, bits, block = given["N"], given["K"], given.get("bits", 4), given["block_size"]
    if given.get("weight_prepacked", 0):
        raise InferError("weights are as the standard packs them (found weight_prepacked)")
    x, bias, groups = node.operand(0), node.optional(5), _groups(node, k, -(-k // block))
    if shape(x)[-1:] != (k,):
        raise ShapeError(f"the last axis of the left operand has K = {k} elements (found {list(shape(x))})")
    kind, order = f32 if bias is not None else element(x), _order(groups, block)
    large = len(shape(x)) > 1 and is_large(n, k)
    packed = None if order is None or not large else _packed(node, n, k, bits, block, order)
    if order is not None and packed is not None:
        turned = (np.diff(order) != 1).any()
        y = packed_product(node, take(node, x, len(shape(x)) - 1, order.tolist()) if turned else x, packed, kind=kind)
    else:
        y = node.emit(MatMulOp, x, node.materialize(_floats(node, n, k, bits, groups)), trans_b=True, element=kind)
    return [y if bias is None else node.emit(AddOp, y, node.materialize(bias), element=element(x))]


def _groups(node: Node, k: int, blocks: int) -> Array:
    """Of each column of a weight the number of its scale."""
    given = node.known(4)
    if given is None:
        return np.arange(k) // node.attributes["block_size"]
    found = given.reshape(-1)[:k].astype(np.int64)
    outside = found[(found < 0) | (found >= blocks)]
    if found.size != k or outside.size:
        number = f"{outside[0]}" if outside.size else f"{found.size} of them"
        raise InferError(f"g_idx has one of {blocks} groups for each of {k} columns (found {number})", broken=True)
    return found


def _order(groups: Array, block: int) -> Array | None:
    """The columns group by group, if these are as large as blocks are; else None."""
    order = np.argsort(groups, kind="stable")
    return order if (groups[order] == np.arange(groups.size) // block).all() else None


def _floats(node: Node, n: int, k: int, bits: int, groups: Array) -> Array:
    """The weight [n, k] of a MatMulNBits as floats."""
    blocks = -(-k // node.attributes["block_size"])
    q = unpacked(_constant(node, 1).reshape(n, -1), bits)[:, :k]
    scales, zeros = _constant(node, 2).reshape(n, blocks), _zeros(node, n, blocks, bits)
    return in_order(block_weights(q, scales[:, groups], zeros[:, groups] if isinstance(zeros, np.ndarray) else zeros))


def _packed(node: Node, n: int, k: int, bits: int, block: int, order: Array) -> Packed | None:
    """The weight of a MatMulNBits as it is, its columns in an order: 4 bits for 2, signed where there are no zero
    points. None if these are floats."""
    blocks, zeros = -(-k // block), node.known(3)
    if (zeros is not None and zeros.dtype != np.uint8) or block < LEAST_BLOCK:
        return None
    wide, middle = max(bits, 4), 1 << (bits - 1)
    data = _constant(node, 1).reshape(n, -1)
    if bits != wide or (np.diff(order) != 1).any():
        data = pack(unpacked(data, bits)[:, order], f"u{wide}")
    data, scales = data[:, : row_bytes(f"u{wide}", k)], _constant(node, 2).reshape(n, blocks)
    if zeros is not None:
        return Packed(f"u{wide}", data, scales, unpacked(zeros.reshape(n, -1), bits)[:, :blocks], block)
    if bits != wide:
        return Packed(f"u{wide}", data, scales, np.full((n, blocks), middle, np.uint8), block)
    flip = middle | middle << 4 if bits == 4 else middle  # q − middle, as a signed integer
    return Packed(f"i{wide}", data ^ np.uint8(flip), scales, None, block)


FP4 = (0.0, 0.00520833333, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
"""Magnitudes of the codes 0 to 7; those from 8 on are negative."""
NF4 = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
    *(-0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634),
    *(0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)
"""Quantiles of the normal distribution, one for each code."""


def matmul_bnb4(node: Node) -> Sequence[Value]:
    """a·bᵀ, b [N, K] being codes of 4 bits, the first in the high half of a byte, with a scale for each block."""
    given = node.attributes
    n, k, kind = given["N"], given["K"], given["quant_type"]
    if kind not in (0, 1) or not given.get("transB", 1):
        raise InferError(
            f"weights are FP4 or NF4, [N, K] (found quant_type = {kind}, transB = {given.get('transB', 1)})"
        )
    codes = unpacked(_constant(node, 1), 4).reshape(-1, 2)[:, ::-1].reshape(-1)[: n * k]
    table = np.array([*FP4, *(-value for value in FP4)] if kind == 0 else NF4, np.float32)
    scales = _constant(node, 2).reshape(-1)
    wide = np.repeat(scales, given["block_size"])[: n * k].astype(np.float32)
    known = (table[codes] * wide).astype(scales.dtype).reshape(n, k)
    x = node.operand(0)
    return [node.emit(MatMulOp, x, node.materialize(known), trans_b=True, element=element(x))]


def _zeros(node: Node, n: int, blocks: int, bits: int) -> Array | float:
    """The zero points [N, blocks]: packed as the weights are, or numbers; half the range where there are none."""
    zeros = node.known(3)
    if zeros is None:
        return float(1 << (bits - 1))
    if zeros.dtype == np.uint8:
        return unpacked(zeros.reshape(n, -1), bits)[:, :blocks]
    return zeros.reshape(n, blocks)


# tables ---------------------------------------------------------------------------------------------------------------
def gather_block_quantized(node: Node) -> Sequence[Value]:
    """Rows of a table of integers of few bits with a scale for each block of an axis."""
    given, scales = node.attributes, node.given(2)
    data, zeros = _bytes_of_table(node)
    axis, rows = (
        normal_axis(given.get(f"{name}_axis", i), len(size_of(data))) for name, i in (("quantize", 1), ("gather", 0))
    )
    block, indices = given.get("block_size", 128), node.given(1)
    if not isinstance(data, SSAValue) and not isinstance(scales, SSAValue) and not isinstance(zeros, SSAValue):
        return [apply(node, "Gather", _table(data, scales, zeros, axis, block), indices, axis=rows)]
    parts = [data, scales, zeros]
    if rows != axis:  # only the rows that are wanted become floats
        parts = [v if v is None or not size_of(v) else apply(node, "Gather", v, indices, axis=rows) for v in parts]
        axis += len(size_of(indices)) - 1 if rows < axis else 0
    y = apply(node, "DequantizeLinear", *parts, axis=axis, block_size=block)
    return [y if rows != axis else apply(node, "Gather", y, indices, axis=rows)]


def _bytes_of_table(node: Node) -> tuple[Value, Value | None]:
    """The integers of a table as bytes, and their zero points, which are half the range of packed ones without any."""
    data, zeros, bits = node.given(0), node.optional(3), node.attributes.get("bits", 4)
    if isinstance(data, SSAValue) and element(data) not in (i8, u8):
        raise InferError(f"the table holds integers of few bits (found {data.type})")
    if (data.dtype == np.uint8) if isinstance(data, np.ndarray) else (element(data) == u8 and not any(node.kinds[:1])):
        packed = [None if value is None else _unpacked_value(node, value, bits) for value in (data, zeros)]
        assert packed[0] is not None
        return packed[0], np.array(1 << (bits - 1), np.uint8) if packed[1] is None else packed[1]
    if isinstance(data, np.ndarray) and data.dtype not in FEW_BITS:
        raise InferError(f"the table holds integers of few bits (found {data.dtype})")
    narrow = [v.astype(FEW_BITS[v.dtype]) if isinstance(v, np.ndarray) else v for v in (data, zeros)]
    assert narrow[0] is not None
    return narrow[0], narrow[1]


def _unpacked_value(node: Node, packed: Value, bits: int) -> Value:
    """As `unpacked`, also of bytes that are computed."""
    if isinstance(packed, np.ndarray):
        return unpacked(packed, bits)
    if bits not in (2, 4, 8):
        raise InferError(f"weights have 2, 4 or 8 bits (found {bits})")
    if bits == 8:
        return packed
    size, wide = shape(packed), node.emit(CastOp, packed, element=i32)
    steps = node.materialize(np.array([1 << shift for shift in range(0, 8, bits)], np.int32))
    wide = node.emit(DivOp, node.emit(ReshapeOp, wide, shape=[*size, 1]), steps)
    parts = node.emit(AndOp, wide, node.materialize(np.array((1 << bits) - 1, np.int32)))
    parts = node.emit(ReshapeOp, parts, shape=[*size[:-1], size[-1] * (8 // bits)])
    return node.emit(CastOp, parts, element=u8)


def _table(data: Array, scales: Array, zeros: Array | None, axis: int, block: int) -> Array:
    """The table as floats."""

    def wide(values: Array) -> Array:
        if values.ndim == 0:
            return values
        return np.take(np.repeat(values, block, axis), np.arange(data.shape[axis]), axis)

    kept = zeros if zeros is None or not zeros.ndim else np.take(zeros, np.arange(scales.shape[axis]), axis)
    return block_weights(data, wide(scales), wide(np.array(0) if kept is None else kept))


WEIGHTS: Mapping[str, Callable[[Node], Sequence[Any]]] = {
    "GatherBlockQuantized": gather_block_quantized,
    "MatMulBnb4": matmul_bnb4,
    "MatMulNBits": matmul_nbits,
}
"""By operator."""
