"""The matrix product with a weight of packed integers: what they stand for appears on the way to the cube alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, var_operand_def

from ...runtime.isa import PACKED
from ...runtime.numerics import host
from ...runtime.numerics.dtype import DType
from ...runtime.numerics.packed import dequantised, row_bytes, unpack
from ..loops import Axis, LoopNest, MultiplyAdd, axis
from .op import FLOATS, Array, DtypeError, GraphOp, InferError, ShapeError, Tensor, f32, i8, shape, u8
from .properties import flag, integer, text

LEAST_BLOCK = 16
"""Elements that share a scale, at least; if there are fewer, all do."""


@irdl_op_definition
class PackedMatMulOp(GraphOp):
    """The product of a [.., k] with n columns of integers, (q − zero)·scale, and a bias along the last axis.

    w is [n, bytes]: q of `kind` i4 or u4 stands two in a byte, the first in its low half, else (i8, u8) one. Each
    `block` of k of a column has a scale, [n, blocks], and with `zeros` a zero point, i8 or ui8 as q is signed. What q
    stands for is rounded to the type of the scales, then to that of a; the product is that of `matmul`.
    """

    name = "graph.packed_matmul"
    EXAMPLE: ClassVar[str] = (
        '%3 = graph.packed_matmul %0, %1, %2 {kind = "i4", block = 16}'
        " : (tensor<2x32xf16>, tensor<5x16xui8>, tensor<5x2xf16>) -> tensor<2x5xf16>"
    )

    a = operand_def(TensorType)
    w = operand_def(TensorType)
    scale = operand_def(TensorType)
    more = var_operand_def(TensorType)
    kind = prop_def(StringAttr)
    block = prop_def(IntegerAttr)
    zeros = opt_prop_def(BoolAttr)
    result = result_def(TensorType)

    @property
    def zero(self) -> SSAValue | None:
        """The zero points."""
        return self.more[0] if flag(self.properties, "zeros") else None

    @property
    def bias(self) -> SSAValue | None:
        """The bias."""
        return self.more[-1] if len(self.more) > flag(self.properties, "zeros") else None

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        a, w, scale, *more = operands
        kind, block, zeros = text(properties, "kind"), integer(properties, "block"), flag(properties, "zeros")
        if kind not in PACKED:
            raise DtypeError(f"the kind is one of {', '.join(PACKED)} (found {kind!r})")
        if len(more) not in (zeros, zeros + 1):
            raise InferError(
                f"behind the scales are zero points, if any, and a bias (found {len(more)} operands, zeros = {zeros})"
            )
        if a.element_type not in FLOATS or scale.element_type not in FLOATS or w.element_type != u8:
            raise DtypeError(f"operands are floats, bytes (ui8) and floats (found {a}, {w} and {scale})")
        if a.get_num_dims() < 2 or w.get_num_dims() != 2:
            raise ShapeError(f"the left operand is a matrix, or several, the right one is one (found {a} and {w})")
        k, n = a.get_shape()[-1], w.get_shape()[0]
        if block < LEAST_BLOCK:
            raise ShapeError(f"a block has {LEAST_BLOCK} elements or more (found {block})")
        wanted = {"w": ([n, row_bytes(kind, k)], u8), "scale": ([n, math.ceil(k / block)], scale.element_type)}
        wanted["zero"] = (wanted["scale"][0], u8 if kind[0] == "u" else i8)
        wanted["bias"] = ([n], f32)
        given = {"w": w, "scale": scale, **dict(zip(["zero"] * zeros + ["bias"], more, strict=False))}
        for name, found in given.items():
            if found != (expected := TensorType(wanted[name][1], wanted[name][0])):
                raise ShapeError(f"{name} is a {expected} (found {found})")
        return [TensorType(a.element_type, (*a.get_shape()[:-1], n))]

    def reference(self, a: Array, w: Array, scale: Array, *more: Array) -> Array:
        """Sums of (q − zero)·scale."""
        kind, k = text(self.properties, "kind"), a.shape[-1]
        bits = int(kind[1])
        q = np.stack([w >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)], -1).reshape(len(w), -1)[:, :k]
        if kind[0] == "i":
            q = np.where(q >= 1 << bits - 1, q - (1 << bits), q)
        number = np.arange(k) // integer(self.properties, "block")
        zero, bias = (more[0][:, number], more[1:]) if flag(self.properties, "zeros") else (0, more)
        return a @ ((q - zero) * scale[:, number]).T + (bias[0] if bias else 0)

    def weights(self, w: Array, scale: Array, zero: Array | None, kind: DType) -> Array:
        """What the integers stand for, [n, k]."""
        q = unpack(w, text(self.properties, "kind"), shape(self.a)[-1])
        return host.cast(dequantised(q, scale, zero, integer(self.properties, "block")), kind)

    def evaluate(self, *operands: Array) -> Array:
        from ..evaluate import result_type, run_nest

        a, w, scale, *more = operands
        zeros = flag(self.properties, "zeros")
        dense = self.weights(w, scale, more[0] if zeros else None, DType.of(a))
        nest = self.loops()
        columns = (axis(len(nest.bounds) - 2), axis(len(nest.bounds) - 1))
        plain = replace(nest, inputs=(nest.inputs[0], columns, *nest.inputs[3 + zeros :]))
        return run_nest(plain, [a, dense, *more[zeros:]], shape(self.result), result_type(self))

    def loops(self) -> LoopNest:
        out, kind = shape(self.result), text(self.properties, "kind")
        k, n = len(out), axis(len(out) - 1)
        rows = tuple(axis(dim) for dim in range(k - 1))
        of_block = (n, Axis(((k, 1),), per=integer(self.properties, "block")))
        packed = (n, Axis(((k, 1),), per=8 // int(kind[1])))
        more = (*((of_block,) if self.zero is not None else ()), *(((n,),) if self.bias is not None else ()))
        inputs = ((*rows, axis(k)), packed, of_block, *more)
        return LoopNest((*out, shape(self.a)[-1]), inputs, tuple(axis(dim) for dim in range(k)), MultiplyAdd())


def pitch_of(op: PackedMatMulOp) -> int:
    """Integers from column to column of the packed weight."""
    return shape(op.w)[1] * (8 // int(text(op.properties, "kind")[1]))
