"""Operators of the domain com.microsoft whose weights are integers of few bits.

What a weight is, (q − zero)·scale, is rounded once, to the type of the scales. That of a product stays packed if it is
large; any other is made floats at import.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..dialects.graph.arithmetic import AddOp
from ..dialects.graph.contract import MatMulOp
from ..dialects.graph.op import InferError, ShapeError, element, f32, shape
from ..dialects.graph.packed import LEAST_BLOCK
from ..dialects.graph.views import normal_axis
from ..dialects.standin import in_order
from ..runtime.numerics.packed import pack, row_bytes
from .model_file import Array
from .node import Node, Value
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
    """a·bᵀ + bias, b [N, K] being integers of few bits with a scale for each block along K."""
    given = node.attributes
    n, k, bits, block = given["N"], given["K"], given.get("bits", 4), given["block_size"]
    if node.optional(4) is not None:
        raise InferError("blocks follow one another (found g_idx, which says the block of each column)")
    if given.get("weight_prepacked", 0):
        raise InferError("weights are as the standard packs them (found weight_prepacked)")
    x, bias = node.operand(0), node.optional(5)
    if shape(x)[-1:] != (k,):
        raise ShapeError(f"the last axis of the left operand has K = {k} elements (found {list(shape(x))})")
    kind = f32 if bias is not None else element(x)
    packed = _packed(node, n, k, bits, block) if len(shape(x)) > 1 and is_large(n, k) else None
    if packed is not None:
        y = packed_product(node, x, packed, kind=kind)
    else:
        y = node.emit(MatMulOp, x, node.materialize(_floats(node, n, k, bits, block)), trans_b=True, element=kind)
    return [y if bias is None else node.emit(AddOp, y, node.materialize(bias), element=element(x))]


def _floats(node: Node, n: int, k: int, bits: int, block: int) -> Array:
    """The weight [n, k] of a MatMulNBits as floats."""
    blocks = -(-k // block)
    q = unpacked(_constant(node, 1).reshape(n, blocks, -1), bits)
    scales, zeros = _constant(node, 2).reshape(n, blocks, 1), _zeros(node, n, blocks, bits)
    return in_order(block_weights(q[..., :block], scales, zeros).reshape(n, blocks * block)[:, :k])


def _packed(node: Node, n: int, k: int, bits: int, block: int) -> Packed | None:
    """The weight of a MatMulNBits as it is: 4 bits for 2, signed where there are no zero points. None if these are
    floats."""
    blocks, zeros = -(-k // block), node.known(3)
    if (zeros is not None and zeros.dtype != np.uint8) or block < LEAST_BLOCK:
        return None
    wide, middle = max(bits, 4), 1 << (bits - 1)
    data = _constant(node, 1).reshape(n, -1)
    if bits != wide:
        data = pack(unpacked(data, bits)[:, :k], f"u{wide}")
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
    """The zero points [N, blocks, 1]: packed as the weights are, or numbers; half the range where there are none."""
    zeros = node.known(3)
    if zeros is None:
        return float(1 << (bits - 1))
    if zeros.dtype == np.uint8:
        zeros = unpacked(zeros.reshape(n, -1), bits)[:, :blocks]
    return zeros.reshape(n, blocks, 1)


def gather_block_quantized(node: Node) -> Sequence[Value]:
    """Rows of a table of integers of few bits with a scale for each block of an axis."""
    given, data, scales, zeros = node.attributes, _constant(node, 0), _constant(node, 2), node.known(3)
    bits, block = given.get("bits", 4), given.get("block_size", 128)
    if data.dtype == np.uint8:
        data = unpacked(data, bits)
        zeros = np.array(1 << (bits - 1)) if zeros is None else unpacked(zeros, bits)
    elif data.dtype.name not in ("int4", "uint4"):
        raise InferError(f"the table holds integers of few bits (found {data.dtype})")
    axis = normal_axis(given.get("quantize_axis", 1), data.ndim)
    extent = data.shape[axis]

    def wide(values: Array) -> Array:
        if values.ndim == 0:
            return values
        return np.take(np.repeat(values, block, axis), np.arange(extent), axis)

    zeros = (
        np.array(0)
        if zeros is None
        else np.take(zeros.astype(np.int8), np.arange(scales.shape[axis]), axis)
        if zeros.ndim
        else zeros
    )
    known = block_weights(data, wide(scales), wide(zeros))
    return [apply(node, "Gather", known, node.given(1), axis=given.get("gather_axis", 0))]


WEIGHTS: Mapping[str, Callable[[Node], Sequence[Any]]] = {
    "GatherBlockQuantized": gather_block_quantized,
    "MatMulBnb4": matmul_bnb4,
    "MatMulNBits": matmul_nbits,
}
"""By operator."""
