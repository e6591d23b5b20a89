"""Operators of the domain com.microsoft whose weights are integers of few bits: they are made floats at import.

What a weight is, (q − zero)·scale, is rounded once, to the type of the scales; so nothing is lost but room.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..dialects.graph.arithmetic import AddOp
from ..dialects.graph.contract import MatMulOp
from ..dialects.graph.op import InferError, element, f32
from ..dialects.graph.views import normal_axis
from ..dialects.standin import in_order
from .model_file import Array
from .node import Node, Value
from .operators import apply


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
    blocks = -(-k // block)
    q = unpacked(_constant(node, 1).reshape(n, blocks, -1), bits)
    scales, zeros = _constant(node, 2).reshape(n, blocks, 1), _zeros(node, n, blocks, bits)
    known = block_weights(q[..., :block], scales, zeros).reshape(n, blocks * block)[:, :k]
    x = node.operand(0)
    bias = node.optional(5)
    y = node.emit(
        MatMulOp,
        x,
        node.materialize(in_order(known)),
        trans_b=True,
        element=f32 if bias is not None else element(x),
    )
    return [y if bias is None else node.emit(AddOp, y, node.materialize(bias), element=element(x))]


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
