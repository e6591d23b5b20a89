"""Resampling of one axis; ONNX's Resize is one of these, or a gather, for each axis that changes."""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def
from xdsl.pattern_rewriter import PatternRewriter

from .arithmetic import AddOp, MulOp
from .elementwise import CastOp
from .emit import Emit
from .gather import GatherOp
from .op import FLOATS, Array, DtypeError, GraphOp, Tensor, element, f32, i32, shape
from .properties import attributes, integer
from .views import ReshapeOp, SliceOp, TransposeOp, normal_axis

SHORT_RUN = 16
"""Elements next to each other below which a gather is slower than turning the tensor round."""


@irdl_op_definition
class ResampleOp(GraphOp):
    """result[…, o, …] = Σₜ weights[t, o] · x[…, indices[t, o], …] along an axis, t ascending, in the type of the
    weights: f32, or i32 for integers."""

    name = "graph.resample"
    EXAMPLE: ClassVar[str] = (
        "%3 = graph.resample %0, %1, %2 {axis = 1} : "
        "(tensor<2x60x4xf32>, tensor<2x7xi32>, tensor<2x7xf32>) -> tensor<2x7x4xf32>"
    )

    x = operand_def(TensorType)
    indices = operand_def(TensorType)
    weights = operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    result = result_def(TensorType)

    @classmethod
    def normalize(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
        return attributes(axis=normal_axis(integer(properties, "axis"), operands[0].get_num_dims()))

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        x, indices, weights = (operand.get_shape() for operand in operands)
        axis = normal_axis(integer(properties, "axis"), len(x))
        if operands[2].element_type not in ((*FLOATS,) if operands[0].element_type in FLOATS else (f32, i32)):
            raise DtypeError(f"weights are floats, or i32 for integers (found {operands[2]} for {operands[0]})")
        if len(indices) != 2 or indices != weights or operands[1].element_type != i32:
            raise DtypeError(f"indices (i32) and weights are [taps, places] (found {operands[1]}, {operands[2]})")
        return [TensorType(operands[0].element_type, [*x[:axis], indices[1], *x[axis + 1 :]])]

    def reference(self, x: Array, indices: Array, weights: Array) -> Array:
        axis = integer(self.properties, "axis")
        matrix = np.zeros((indices.shape[1], x.shape[axis]))
        for taps, values in zip(indices, weights, strict=True):
            matrix[np.arange(len(taps)), taps.astype(np.int64)] += values
        found = np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)
        return found if element(self.result) in FLOATS else np.trunc(found)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        """A gather, a product and a sum for each tap, where the axis has long runs behind it."""
        emit, x, axis = Emit(self, rewriter), self.x, integer(self.properties, "axis")
        inner = i32 if element(self.weights) == i32 else f32
        perm = _turned(shape(x), axis)
        if perm is not None:
            x, axis = emit.keep(TransposeOp, x, perm=perm), perm.index(axis)
        taps, places = shape(self.indices)
        column = [places, *[1] * (len(shape(x)) - axis - 1)]
        total: SSAValue | None = None
        for tap in range(taps):
            index, weight = (
                emit.keep(SliceOp, table, starts=[tap, 0], sizes=[1, places], steps=[1, 1])
                for table in (self.indices, self.weights)
            )
            row = emit.keep(ReshapeOp, index, shape=[places])
            found = emit(GatherOp, x, row, element=element(x), axis=axis)
            weight = emit.keep(ReshapeOp, weight, shape=column)
            if element(x) not in FLOATS:
                found = emit(CastOp, found, element=inner)
            part = emit(MulOp, found, weight, element=emit.result if taps == 1 else inner)
            kind = emit.result if tap == taps - 1 else inner
            total = part if total is None else emit(AddOp, total, part, element=kind)
        assert total is not None
        if perm is not None:
            back = [perm.index(place) for place in range(len(perm))]
            total = emit.keep(TransposeOp, total, perm=back)
        return [total]


def _turned(size: Sequence[int], axis: int) -> list[int] | None:
    """The order of axes in which a run behind `axis` is long enough; None: the one it has. An image becomes
    channels-last, as its convolutions are."""
    if len(size) == 4 and axis >= 2 and size[1] >= SHORT_RUN:
        return [0, 2, 3, 1]
    if math.prod(size[axis + 1 :]) >= min(SHORT_RUN, math.prod(size) // size[axis]):
        return None
    return [axis, *(place for place in range(len(size)) if place != axis)]
