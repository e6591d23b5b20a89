"""Reductions whose sum goes through a root or a logarithm. Of integers they are exact: what is rounded toward zero is
compared with integers.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition
from xdsl.pattern_rewriter import PatternRewriter

from .activations import ExpOp, LogOp, SqrtOp
from .arithmetic import AddOp, AndOp, DivOp, EqOp, GeOp, GtOp, LeOp, LtOp, MulOp, SubOp
from .elementwise import CastOp, ClipOp, WhereOp
from .emit import Emit
from .op import Array, Onnx, f32, i1, i32, shape
from .properties import ints
from .reduce import ReduceMaxOp, ReduceParts, ReduceSumOp
from .views import ReshapeOp

MOST_F32 = float(np.finfo(np.float32).max)
INT32 = np.iinfo(np.int32)
POWERS = np.ceil(np.exp(np.arange(1, 22, dtype=np.float64)))
"""The least integers from e, e², … on, as far as i32 reaches."""


@irdl_op_definition
class ReduceL2Op(ReduceParts):
    """The Euclidean norm over axes; of integers, toward zero."""

    name = "graph.reduce_l2"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("ReduceL2", 1),)
    EXAMPLE: ClassVar[str] = (
        "%1 = graph.reduce_l2 %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>"
    )

    def reference(self, x: Array) -> Array:
        norm = self.across(np.sum, x * x) ** 0.5
        return np.trunc(norm) if x.dtype.kind == "i" else norm

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        squares = emit(MulOp, self.x, self.x, element=emit.inner)
        total = self.summed(emit, squares)
        return [root(emit, total) if emit.result == i32 else emit(SqrtOp, total)]


@irdl_op_definition
class ReduceLogSumOp(ReduceParts):
    """The logarithm of the sum over axes; of integers, toward zero, and the least one unless the sum is positive."""

    name = "graph.reduce_log_sum"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("ReduceLogSum", 1),)
    EXAMPLE: ClassVar[str] = (
        "%1 = graph.reduce_log_sum %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>"
    )

    def reference(self, x: Array) -> Array:
        total = self.across(np.sum, x)
        if x.dtype.kind != "i":
            return np.log(total)
        return np.where(total > 0, np.trunc(np.log(np.maximum(total, 1))), INT32.min)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        total = self.summed(emit, self.x)
        return [logarithm(emit, total) if emit.result == i32 else emit(LogOp, total)]


@irdl_op_definition
class ReduceLogSumExpOp(ReduceParts):
    """The logarithm of the sum of exponentials over axes: m + log Σ e^(x − m), m = max x, finite.

    Of integers, toward zero; so is each e^(x − m), as onnxruntime has it: 1 where x is m, else 0.
    """

    name = "graph.reduce_log_sum_exp"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("ReduceLogSumExp", 1),)
    EXAMPLE: ClassVar[str] = (
        "%1 = graph.reduce_log_sum_exp %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>"
    )

    def reference(self, x: Array) -> Array:
        top = np.clip(x.max(ints(self.properties, "axes"), keepdims=True), -MOST_F32, MOST_F32)
        powers = np.exp(x - top) if x.dtype.kind == "f" else np.equal(x, top)
        total = np.log(np.sum(powers, ints(self.properties, "axes"), keepdims=True)) + top
        return (np.trunc(total) if x.dtype.kind == "i" else total).reshape(shape(self.result))

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        if emit.result == i32:
            return [log_sum_exp(emit, self.x, ints(self.properties, "axes"), shape(self.result))]
        top = emit(ReduceMaxOp, self.x, element=emit.inner, axes=self.axes, keepdims=True)
        top = emit(ClipOp, top, element=emit.inner, lo=-MOST_F32, hi=MOST_F32)
        powers = emit(ExpOp, emit(SubOp, self.x, top, element=emit.inner), element=emit.inner)
        total = emit(LogOp, self.summed(emit, powers), element=emit.inner)
        return [emit(AddOp, total, emit.keep(ReshapeOp, top, shape=shape(self.result)))]


# of integers ----------------------------------------------------------------------------------------------------------
def root(emit: Emit, x: SSAValue) -> SSAValue:
    """√x of integers from 0 on."""
    one = _whole(emit, 1)
    found = emit(CastOp, emit(SqrtOp, emit(CastOp, x, element=f32), element=f32), element=i32)  # at most 1 off
    above = emit(GtOp, found, emit(DivOp, x, found), element=i1)
    found = emit(WhereOp, above, emit(SubOp, found, one), found)
    more = emit(AddOp, found, one)
    return emit(WhereOp, emit(LeOp, more, emit(DivOp, x, more), element=i1), more, found)


def logarithm(emit: Emit, x: SSAValue) -> SSAValue:
    """log x of integers; the least integer where x is not positive."""
    found = _powers_within(emit, x)
    least = _whole(emit, int(INT32.min))
    return emit(WhereOp, emit(LeOp, x, _whole(emit, 0), element=i1), least, found)


def log_sum_exp(emit: Emit, x: SSAValue, axes: Sequence[int], size: Sequence[int]) -> SSAValue:
    """m + log Σ e^(x − m) of integers over axes, m = max x, each summand toward zero: 1 where x is m, else 0.

    The sum over axes has the shape `size`.
    """
    top = emit(ReduceMaxOp, x, axes=axes, keepdims=True)
    count = emit(ReduceSumOp, emit(CastOp, emit(EqOp, x, top, element=i1)), axes=axes, keepdims=True)
    top, count = (emit(ReshapeOp, value, shape=size) for value in (top, count))
    zero, one = _whole(emit, 0), _whole(emit, 1)
    found = emit(AddOp, top, _powers_within(emit, count))
    up = emit(AndOp, emit(GtOp, count, one, element=i1), emit(LtOp, found, zero, element=i1), element=i1)
    return emit(WhereOp, up, emit(AddOp, found, one), found)


def _powers_within(emit: Emit, x: SSAValue) -> SSAValue:
    """How many powers of e from the first on each element reaches."""
    size = shape(x)
    reached = emit(GeOp, emit.keep(ReshapeOp, x, shape=[*size, 1]), emit.constant(POWERS, i32), element=i1)
    return emit(ReduceSumOp, emit(CastOp, reached), axes=[len(size)])


def _whole(emit: Emit, value: int) -> SSAValue:
    return emit.constant(np.array(value), i32)
