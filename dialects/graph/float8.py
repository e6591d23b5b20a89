"""Rounding to floats of 8 bits, whose values every other float type holds (numerics.md §6a)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import BoolAttr, StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, prop_def, result_def
from xdsl.pattern_rewriter import PatternRewriter

from .activations import AbsOp, RoundOp
from .arithmetic import DivOp, EqOp, GtOp, LtOp, MaxOp, MulOp, SubOp
from .elementwise import CastOp, ClipOp, WhereOp
from .emit import Emit
from .op import FLOATS, Array, DtypeError, GraphOp, InferError, ShapeError, Tensor, broadcast_shapes, f32, i1
from .properties import flag, text


@dataclass(frozen=True, slots=True)
class Format:
    """`bits` of the significand that are stored, the exponent of the smallest normal number, the largest number."""

    bits: int
    least: int
    most: float
    infinite: bool = False
    """It has infinities."""
    signed_zero: bool = True


FORMATS: Mapping[str, Format] = {
    "float8_e4m3fn": Format(3, -6, 448.0),
    "float8_e4m3fnuz": Format(3, -7, 240.0, signed_zero=False),
    "float8_e5m2": Format(2, -14, 57344.0, infinite=True),
    "float8_e5m2fnuz": Format(2, -15, 57344.0, signed_zero=False),
}
"""By the name of numpy's type."""
SPLIT = 2.0**23 + 1
"""Veltkamp's factor that leaves one bit of 24."""
BEYOND = 1.125
"""Times the largest number is rounded to a larger one."""


@irdl_op_definition
class RoundFloatOp(GraphOp):
    """x, or x ÷ scale, to the nearest number of a format of 8 bits, ties to even.

    What is beyond its range becomes the largest number with `saturate`, else an infinity, or NaN if there is none.
    """

    name = "graph.round_float"
    EXAMPLE: ClassVar[str] = (
        '%1 = graph.round_float %0 {format = "float8_e4m3fn", saturate = true} : (tensor<2x8xf32>) -> tensor<2x8xf32>'
    )

    x = operand_def(TensorType)
    scale = opt_operand_def(TensorType)
    format = prop_def(StringAttr)
    saturate = opt_prop_def(BoolAttr)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        if text(properties, "format") not in FORMATS:
            raise InferError(f"the format is one of {', '.join(FORMATS)} (found {text(properties, 'kind')!r})")
        if any(operand.element_type not in FLOATS for operand in operands):
            raise DtypeError(f"operands are floats (found {', '.join(map(str, operands))})")
        sizes = [operand.get_shape() for operand in operands]
        if broadcast_shapes(*sizes) != sizes[0]:
            raise ShapeError(f"the scale broadcasts to {list(sizes[0])} (found {operands[1]})")
        return [TensorType(f32, sizes[0])]

    def reference(self, x: Array, scale: Array | None = None) -> Array:
        kind = text(self.properties, "format")
        exact = np.asarray(x if scale is None else x / scale, np.float32)
        with np.errstate(all="ignore"):
            near = exact.astype(getattr(ml_dtypes, kind)).astype(np.float64)
        beyond = ~np.isnan(exact) & ~np.isfinite(near)
        most = np.copysign(FORMATS[kind].most, exact)
        return np.where(beyond & flag(self.properties, "saturate"), most, near)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit, kind = Emit(self, rewriter), FORMATS[text(self.properties, "format")]
        x = self.x if self.scale is None else emit(DivOp, self.x, self.scale, element=f32)
        near = emit(ClipOp, x, element=f32, lo=-BEYOND * kind.most, hi=BEYOND * kind.most)
        step = _step(emit, emit(AbsOp, near, element=f32), kind)
        value = emit(MulOp, emit(RoundOp, emit(DivOp, near, step, element=f32), element=f32), step, element=f32)
        value = _limited(emit, value, kind, flag(self.properties, "saturate"))
        if not kind.signed_zero:
            zero = emit.constant(0.0, f32)
            value = emit(WhereOp, emit(EqOp, value, zero, element=i1), zero, value, element=f32)
        return [value if emit.result == f32 else emit(CastOp, value)]


def _step(emit: Emit, size: SSAValue, kind: Format) -> SSAValue:
    """The distance of neighbours in the format around numbers of a size."""
    scaled = emit(MulOp, size, emit.constant(SPLIT, f32), element=f32)
    power = emit(SubOp, scaled, emit(SubOp, scaled, size, element=f32), element=f32)  # of two, at most one above
    above = emit(GtOp, power, size, element=i1)
    power = emit(WhereOp, above, emit(MulOp, power, emit.constant(0.5, f32), element=f32), power, element=f32)
    power = emit(MaxOp, power, emit.constant(2.0**kind.least, f32), element=f32)
    return emit(MulOp, power, emit.constant(2.0**-kind.bits, f32), element=f32)


def _limited(emit: Emit, value: SSAValue, kind: Format, saturate: bool) -> SSAValue:
    if saturate:
        return emit(ClipOp, value, element=f32, lo=-kind.most, hi=kind.most)
    for beyond, sign in ((GtOp, 1), (LtOp, -1)):
        outside = emit(beyond, value, emit.constant(sign * kind.most, f32), element=i1)
        end = emit.constant(sign * np.inf if kind.infinite else np.nan, f32)
        value = emit(WhereOp, outside, end, value, element=f32)
    return value
