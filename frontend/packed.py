"""Products with a constant weight of packed integers, which stays packed: `graph.packed_matmul`.

A weight comes so from MatMulNBits, or from a DequantizeLinear (and Transposes behind it) whose inputs are known. What
that makes is a constant like any other, of which `remember` notes what it was made of; a MatMul or Gemm with it as its
right operand then takes the integers. Small weights, and those with a scale for fewer than 16 elements, are floats.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Attribute, SSAValue

from ..dialects.graph.constants import ELEMENTS
from ..dialects.graph.op import FLOATS, element, shape
from ..dialects.graph.packed import LEAST_BLOCK, PackedMatMulOp
from ..dialects.graph.properties import attributes
from ..dialects.graph.quantize import DequantizeOp
from ..dialects.graph.views import TransposeOp, ViewOp
from ..dialects.standin import in_order
from ..runtime.numerics.packed import pack
from .inputs import ELEMENTS as ONNX_ELEMENTS
from .model_file import Array
from .node import AI_ONNX, Node, Value

LEAST = 1 << 16
"""Elements of a weight that stays packed, at least."""
MAKERS = ((AI_ONNX, "DequantizeLinear"), ("com.microsoft", "DequantizeLinear"), (AI_ONNX, "Transpose"))
"""Operators whose known results are noted."""
KINDS: Mapping[str, str] = {"int4": "i4", "uint4": "u4", "int8": "i8", "uint8": "u8"}


@dataclass(frozen=True, slots=True)
class Packed:
    """The right operand of a product: bytes [n, …], scales and zero points (bytes) [n, blocks]."""

    kind: str
    w: Array
    scale: Array
    zero: Array | None
    block: int


def is_large(n: int, k: int) -> bool:
    """Whether a weight is worth it."""
    return n * k >= LEAST


def packed_product(
    node: Node, a: SSAValue, weight: Packed, bias: SSAValue | None = None, kind: Attribute | None = None
) -> SSAValue:
    """a·wᵀ + bias."""
    w, scale = (node.materialize(in_order(array)) for array in (weight.w, weight.scale))
    zero = None if weight.zero is None else node.materialize(in_order(weight.zero))
    properties = attributes(kind=weight.kind, block=weight.block, zeros=True if zero is not None else None)
    operands = [value for value in (a, w, scale, zero, bias) if value is not None]
    return node.builder.insert(PackedMatMulOp.build_op(operands, properties, kind)).results[0]


# what constants are made of -------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Quantised:
    """(q − zero)·scale of two axes: bytes, and parameters that each stand for so many elements along each axis."""

    kind: str
    q: Array
    scale: Array
    zero: Array | None
    per: tuple[int, int]

    def transposed(self) -> "Quantised":
        """With its axes swapped."""
        zero = None if self.zero is None else self.zero.T
        return Quantised(self.kind, self.q.T, self.scale.T, zero, (self.per[1], self.per[0]))

    def packed(self) -> Packed | None:
        """As the right operand [n, k] of a product; None if it is floats that are taken."""
        (n, k), (one, block) = self.q.shape, self.per
        if not is_large(n, k) or (one != 1 and self.scale.shape[0] != 1):
            return None
        if block < LEAST_BLOCK and self.scale.shape[1] != 1:
            return None
        size = (n, self.scale.shape[1])
        scale, zero = (None if v is None else np.broadcast_to(v, size) for v in (self.scale, self.zero))
        assert scale is not None
        return Packed(self.kind, pack(self.q, self.kind), scale, zero, max(block, LEAST_BLOCK))


def remember(node: Node, outputs: Sequence[Value | None]) -> None:
    """Notes what a known result of DequantizeLinear, or of a Transpose of one, was made of."""
    if (node.domain, node.operator) not in MAKERS or not node.inputs:
        return
    (result, *_), (x, *_) = outputs, node.inputs
    if isinstance(result, SSAValue) or isinstance(x, SSAValue) or result is None or x is None or x.ndim != 2:
        return
    if node.operator == "DequantizeLinear":
        found = _quantised(node, x)
    else:
        known = node.builder.packed.get(id(x))
        found = None if known is None else known[1]
        if found is not None and list(node.attributes.get("perm", (1, 0))) == [1, 0]:
            found = found.transposed()
    if found is not None:
        node.builder.packed[id(result)] = result, found


def _quantised(node: Node, x: Array) -> Quantised | None:
    """What a DequantizeLinear takes; None for other types, and where its result has another type than its scale."""
    scale, zero = node.known(1), node.optional(2)
    kind = KINDS.get(x.dtype.name)
    if kind is None or scale is None or ELEMENTS.get(scale.dtype) not in FLOATS or isinstance(zero, SSAValue):
        return None
    if ONNX_ELEMENTS.get(node.attributes.get("output_dtype", 0), ELEMENTS[scale.dtype]) != ELEMENTS[scale.dtype]:
        return None
    axis, block = node.attributes.get("axis", 1) % 2, node.attributes.get("block_size", 0)
    if scale.size == 1:
        size, per = (1, 1), x.shape
    elif block:
        size, per = scale.shape, (block, 1) if axis == 0 else (1, block)
    else:
        size, per = ((-1, 1), (1, x.shape[1])) if axis == 0 else ((1, -1), (x.shape[0], 1))
    byte = np.int8 if kind[0] == "i" else np.uint8
    zeros = None if zero is None else zero.astype(byte).reshape(size)
    return Quantised(kind, x.astype(byte), scale.reshape(size), zeros, (per[0], per[1]))


# products -------------------------------------------------------------------------------------------------------------
def product_of_packed(node: Node) -> SSAValue | None:
    """The result of a MatMul or Gemm whose right operand was made of integers; None for any other."""
    right = node.optional(1)
    known = None if right is None else node.builder.packed.get(id(right))
    if known is None or node.operator not in ("MatMul", "Gemm") or not isinstance(a := node.given(0), SSAValue):
        return None
    given, turned = node.attributes, node.operator == "Gemm" and node.attributes.get("transB", 0)
    weight = (known[1] if turned else known[1].transposed()).packed()
    rows, n, k = shape(a), *(known[0].shape if turned else known[0].shape[::-1])
    if weight is None or element(a) != ELEMENTS[known[0].dtype] or (weight.kind[1] == "8" and _is_quantised(a)):
        return None
    if node.operator == "MatMul":
        return packed_product(node, a, weight) if len(rows) > 1 and rows[-1] == k else None
    c = node.optional(2)
    if given.get("alpha", 1.0) != 1 or isinstance(c, SSAValue):
        return None
    if c is not None and (given.get("beta", 1.0) != 1 or c.shape not in ((n,), (1, n))):
        return None
    a = node.emit(TransposeOp, a, perm=[1, 0]) if given.get("transA", 0) else a
    if len(shape(a)) != 2 or shape(a)[-1] != k:
        return None
    bias = None if c is None else node.materialize(in_order(c.reshape(n).astype(np.float32)))
    return packed_product(node, a, weight, bias)


def _is_quantised(value: SSAValue) -> bool:
    """Whether a value stands for integers: its product with bytes may be one of integers."""
    while isinstance(value.owner, ViewOp) and len(value.owner.operands) == 1:
        value = value.owner.operands[0]
    return isinstance(value.owner, DequantizeOp)
