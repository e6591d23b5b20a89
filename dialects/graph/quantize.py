"""Between floats and the integers that stand for them: x ≈ (q − zero)·scale; all steps are f32 (numerics.md §6a)."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.utils.exceptions import VerifyException

from .activations import RoundOp
from .arithmetic import AddOp, DivOp, GtOp, MaxOp, MinOp, MulOp, SubOp
from .constants import NUMPY
from .elementwise import CastOp, ClipOp, WhereOp
from .emit import Emit
from .op import (
    FLOATS,
    Array,
    DtypeError,
    GraphOp,
    ShapeError,
    Tensor,
    broadcast_shapes,
    element,
    f32,
    i1,
    i8,
    i32,
    shape,
    u8,
)
from .properties import ints
from .reduce import ReduceMaxOp, ReduceMinOp

BYTES = (i8, u8)
MOST_EXACT = 1 << 24
"""f32 holds every integer up to it."""


class QuantizeBase(GraphOp):
    """Common to what rounds to integers: scale and zero point broadcast to x; the result has the zero point's type.

    It is within `limits`, [least, most], which integers that are no bytes have: those of 16 bits, which are i32, and
    those of fewer bits than the bytes that hold them.
    """

    SOURCES: ClassVar[Sequence[Attribute]] = ()

    x = operand_def(TensorType)
    scale = operand_def(TensorType)
    zero = opt_operand_def(TensorType)
    limits = opt_prop_def(DenseArrayBase)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        x, scale, *zero = operands
        if x.element_type not in cls.SOURCES or scale.element_type not in FLOATS:
            raise DtypeError(f"{cls.name} takes {', '.join(map(str, cls.SOURCES))} and a float (found {x}, {scale})")
        kind = zero[0].element_type if zero else u8
        if kind not in (*BYTES, i32):
            raise DtypeError(f"a zero point is i8, ui8 or i32 (found {zero[0]})")
        _check_parameters(operands)
        return [TensorType(kind, x.get_shape())]

    def verify_(self) -> None:
        super().verify_()
        kind = element(self.result)
        if kind not in (*BYTES, i32) or (self.zero is not None and element(self.zero) != kind):
            raise VerifyException(f"the result is i8, ui8 or i32, as the zero point (found {self.result.type})")
        least, most = self.range
        held = np.iinfo(NUMPY[kind])
        if not max(held.min, -MOST_EXACT) <= least < most <= min(held.max, MOST_EXACT):
            raise VerifyException(f"limits are those of integers within {kind} and 24 bits (found {least} to {most})")

    @property
    def range(self) -> tuple[int, int]:
        """The least and the largest value of the result."""
        held = np.iinfo(NUMPY[element(self.result)])
        least, most = ints(self.properties, "limits", (int(held.min), int(held.max)))
        return least, most

    def rounded(self, x: Array, zero: Array | None) -> Array:
        """For `reference`: to the nearest integer, plus the zero point, within the limits."""
        return np.clip(np.rint(x) + (0 if zero is None else zero), *self.range)

    def finish(self, emit: Emit, x: SSAValue) -> SSAValue:
        """As `rounded`; the cast to bytes clamps."""
        x = emit(RoundOp, x, element=f32)
        if self.zero is not None:
            x = emit(AddOp, x, emit(CastOp, self.zero, element=f32), element=f32)
        if self.limits is not None:
            least, most = self.range
            x = emit(ClipOp, x, element=f32, lo=float(least), hi=float(most))
        return emit(CastOp, x)


def _check_parameters(operands: Sequence[Tensor]) -> None:
    x = operands[0].get_shape()
    for operand in operands[1:]:
        if broadcast_shapes(operand.get_shape(), x) != x:
            raise ShapeError(f"scale and zero point broadcast to {list(x)} (found {operand})")


@irdl_op_definition
class QuantizeOp(QuantizeBase):
    """round(x ÷ scale) + zero, within the range of the integers; ties go to even."""

    name = "graph.quantize"
    EXAMPLE: ClassVar[str] = (
        "%3 = graph.quantize %0, %1, %2 : (tensor<2x8xf32>, tensor<f32>, tensor<i8>) -> tensor<2x8xi8>"
    )
    SOURCES: ClassVar[Sequence[Attribute]] = FLOATS

    def reference(self, x: Array, scale: Array, zero: Array | None = None) -> Array:
        return self.rounded(x / scale, zero)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        return [self.finish(emit, emit(DivOp, self.x, self.scale, element=f32))]


@irdl_op_definition
class RequantizeOp(QuantizeBase):
    """round(x·scale) + zero, within the range of the integers, of the i32 that an integer product gives."""

    name = "graph.requantize"
    EXAMPLE: ClassVar[str] = (
        "%3 = graph.requantize %0, %1, %2 : (tensor<2x8xi32>, tensor<8xf32>, tensor<ui8>) -> tensor<2x8xui8>"
    )
    SOURCES: ClassVar[Sequence[Attribute]] = (i32,)

    def reference(self, x: Array, scale: Array, zero: Array | None = None) -> Array:
        return self.rounded(x * scale, zero)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        x = emit(CastOp, self.x, element=f32)
        return [self.finish(emit, emit(MulOp, x, self.scale, element=f32))]


@irdl_op_definition
class DequantizeOp(GraphOp):
    """(x − zero)·scale."""

    name = "graph.dequantize"
    EXAMPLE: ClassVar[str] = (
        "%3 = graph.dequantize %0, %1, %2 : (tensor<2x8xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x8xf32>"
    )

    x = operand_def(TensorType)
    scale = operand_def(TensorType)
    zero = opt_operand_def(TensorType)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        x, scale, *zero = operands
        if x.element_type not in (*BYTES, i32) or scale.element_type not in FLOATS:
            raise DtypeError(f"the operand is i8, ui8 or i32, the scale a float (found {x}, {scale})")
        if zero and zero[0].element_type != x.element_type:
            raise DtypeError(f"the zero point has the operand's type (found {zero[0]} for {x})")
        _check_parameters(operands)
        return [TensorType(scale.element_type, x.get_shape())]

    def reference(self, x: Array, scale: Array, zero: Array | None = None) -> Array:
        return (x - (0 if zero is None else zero)) * scale

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        x = emit(CastOp, self.x, element=f32)
        if self.zero is not None:
            x = emit(SubOp, x, emit(CastOp, self.zero, element=f32), element=f32)
        return [emit(MulOp, x, self.scale)]


@irdl_op_definition
class DynamicScaleOp(GraphOp):
    """The scale and the zero point with which ui8 covers x and 0: (hi − lo) ÷ 255 and round(−lo ÷ scale).

    hi = max(x, 0), lo = min(x, 0) over all elements. Of zeros alone the scale is 1, as onnxruntime has it, and the zero
    point 0.
    """

    name = "graph.dynamic_scale"
    EXAMPLE: ClassVar[str] = "%1, %2 = graph.dynamic_scale %0 : (tensor<2x8xf32>) -> (tensor<f32>, tensor<ui8>)"

    x = operand_def(TensorType)
    scale = result_def(TensorType)
    zero = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        if operands[0].element_type not in FLOATS:
            raise DtypeError(f"the operand holds floats (found {operands[0]})")
        return [TensorType(f32, []), TensorType(u8, [])]

    def reference(self, x: Array) -> Array:
        return self.reference_all(x)[0]

    def reference_all(self, *operands: Array) -> Sequence[Array]:
        high, low = max(float(operands[0].max()), 0.0), min(float(operands[0].min()), 0.0)
        scale = (high - low) / 255 or 1.0
        return [np.array(scale), np.array(np.clip(np.rint(-low / scale), 0, 255))]

    def evaluate_all(self, *operands: Array) -> Sequence[Array]:
        from ..evaluate import evaluate_structure

        return evaluate_structure(self, operands)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        every = list(range(len(shape(self.x))))
        ends = list[SSAValue]()
        for reduce, choose in ((ReduceMaxOp, MaxOp), (ReduceMinOp, MinOp)):
            end = emit(reduce, self.x, axes=every, element=f32) if every else self.x
            ends.append(emit(choose, end, emit.constant(0.0, f32), element=f32))
        high, low = ends
        width = emit(SubOp, high, low, element=f32)
        some = emit(GtOp, width, emit.constant(0.0, f32), element=i1)
        scale = emit(DivOp, width, emit.constant(255.0, f32), element=f32)
        scale = emit(WhereOp, some, scale, emit.constant(1.0, f32), element=f32)
        places = emit(DivOp, emit(SubOp, emit.constant(0.0, f32), low, element=f32), scale, element=f32)
        zero = emit(RoundOp, places, element=f32)
        return [scale if element(scale) == emit.result else emit(CastOp, scale), emit(CastOp, zero, element=u8)]
