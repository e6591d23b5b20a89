"""Operators whose places an index tensor names: gathers and scatters.

Indices are i32 and count from the end if they are negative; one that names no element is a fault of the device.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.utils.exceptions import VerifyException

from .arithmetic import AddOp, GeOp, LtOp, MulOp, OrOp
from .elementwise import WhereOp
from .emit import Emit
from .op import (
    DTYPE_NAMES,
    Array,
    DtypeError,
    GraphOp,
    InferError,
    Lookup,
    Onnx,
    Placement,
    ShapeError,
    Tensor,
    View,
    element,
    i1,
    i32,
    shape,
)
from .properties import attributes, integer
from .views import ReshapeOp, SliceOp, normal_axis


class IndexedOp(GraphOp):
    """Moves elements of `x`; the result has its element type."""

    x = operand_def(TensorType)
    indices = operand_def(TensorType)
    result = result_def(TensorType)

    def verify_(self) -> None:
        super().verify_()
        kind = element(self.x)
        if element(self.result) != kind:
            raise VerifyException(f"elements keep their type (found {kind} and {element(self.result)}); use graph.cast")

    @staticmethod
    def indexed(operands: Sequence[Tensor]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Shapes of the operand and of the indices; raises `InferError`."""
        if operands[1].element_type != i32:
            found = DTYPE_NAMES.get(operands[1].element_type, operands[1].element_type)
            raise DtypeError(f"indices are i32 (found {found})")
        return operands[0].get_shape(), operands[1].get_shape()


@irdl_op_definition
class GatherOp(IndexedOp):
    """Rows of an axis: the indices take its place in the result. The first `batch_dims` axes belong to both operands.

    result[b…, i…, j…, k…] = x[b…, i…, indices[b…, j…], k…]
    """

    name = "graph.gather"
    EXAMPLE: ClassVar[str] = (
        "%2 = graph.gather %0, %1 {axis = 1} : (tensor<2x60x4xf32>, tensor<3xi32>) -> tensor<2x3x4xf32>"
    )

    axis = prop_def(IntegerAttr)
    batch_dims = opt_prop_def(IntegerAttr)

    @classmethod
    def normalize(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
        batch = integer(properties, "batch_dims")
        axis = normal_axis(integer(properties, "axis"), operands[0].get_num_dims())
        return attributes(axis=axis, batch_dims=batch or None)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        x, indices = cls.indexed(operands)
        axis, batch = normal_axis(integer(properties, "axis"), len(x)), integer(properties, "batch_dims")
        if not 0 <= batch <= min(axis, len(indices)) or x[:batch] != indices[:batch]:
            raise ShapeError(f"the first {batch} axes belong to both operands (found {list(x)} and {list(indices)})")
        return [TensorType(operands[0].element_type, [*x[:axis], *indices[batch:], *x[axis + 1 :]])]

    def reference(self, x: Array, indices: Array) -> Array:
        axis, batch = integer(self.properties, "axis"), integer(self.properties, "batch_dims")
        found = np.empty([*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :]], x.dtype)
        for place in np.ndindex(*x.shape[:batch]):
            found[place] = np.take(x[place], indices[place].astype(np.int64), axis=axis - batch)
        return found

    def view(self) -> View:
        rank, wide = len(shape(self.x)), len(shape(self.indices))
        axis, batch = integer(self.properties, "axis"), integer(self.properties, "batch_dims")
        axes = (*range(axis), *[None] * (wide - batch), *range(axis + 1, rank))
        indices = (*range(batch), *[None] * (axis - batch), *range(batch, wide), *[None] * (rank - axis - 1))
        return Lookup(shape(self.result), axes, indices, axis)


class ElementsOp(IndexedOp):
    """Indices name a place along one axis for each element; along the others it is the index's own."""

    axis = prop_def(IntegerAttr)

    @classmethod
    def normalize(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
        axis = normal_axis(integer(properties, "axis"), operands[0].get_num_dims())
        return {**properties, **attributes(axis=axis)}

    @classmethod
    def within(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> tuple[int, ...]:
        """The shape of the indices; raises `InferError` if they do not lie in the operand."""
        x, indices = cls.indexed(operands)
        axis = normal_axis(integer(properties, "axis"), len(x))
        if len(x) != len(indices) or any(n > m for i, (n, m) in enumerate(zip(indices, x, strict=True)) if i != axis):
            raise ShapeError(f"indices lie within all axes but {axis} (found {list(indices)} in {list(x)})")
        return indices

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        return list(range(len(constants))), attributes(axis=node.get("axis", 0))

    def _walk(self) -> tuple[tuple[int | None, ...], tuple[int, ...], int]:
        axis, rank = integer(self.properties, "axis"), len(shape(self.x))
        return tuple(None if i == axis else i for i in range(rank)), tuple(range(rank)), axis


@irdl_op_definition
class GatherElementsOp(ElementsOp):
    """result[i, j, k] = x[i, indices[i, j, k], k] for axis 1."""

    name = "graph.gather_elements"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("GatherElements", 11),)
    EXAMPLE: ClassVar[str] = (
        "%2 = graph.gather_elements %0, %1 {axis = 1} : (tensor<2x60xf32>, tensor<2x3xi32>) -> tensor<2x3xf32>"
    )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        return [TensorType(operands[0].element_type, cls.within(operands, properties))]

    def reference(self, x: Array, indices: Array) -> Array:
        axis = integer(self.properties, "axis")
        cut = x[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(indices.shape))]
        return np.take_along_axis(cut, indices.astype(np.int64) % x.shape[axis], axis)

    def view(self) -> View:
        return Lookup(shape(self.result), *self._walk())


@irdl_op_definition
class ScatterElementsOp(ElementsOp):
    """The operand, but result[i, indices[i, j, k], k] = updates[i, j, k] for axis 1; the last of several counts."""

    name = "graph.scatter_elements"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("ScatterElements", 11), Onnx("Scatter", 9, 10))
    EXAMPLE: ClassVar[str] = (
        "%3 = graph.scatter_elements %0, %1, %2 {axis = 1} : "
        "(tensor<2x60xf32>, tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<2x60xf32>"
    )

    x = operand_def(TensorType)
    indices = operand_def(TensorType)
    updates = operand_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        indices = cls.within(operands, properties)
        _check_updates(operands, indices)
        return [operands[0]]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        _check_reduction(node)
        return super().from_onnx(node, constants, opset)

    def reference(self, x: Array, indices: Array, updates: Array) -> Array:
        axis, found = integer(self.properties, "axis"), np.array(x)
        for place in np.ndindex(*indices.shape):
            found[(*place[:axis], int(indices[place]), *place[axis + 1 :])] = updates[place]
        return found

    def view(self) -> View:
        return Placement(*self._walk())


@irdl_op_definition
class ScatterRowsOp(IndexedOp):
    """The operand, but result[indices[i], …] = updates[i, …]; the last of several counts."""

    name = "graph.scatter_rows"
    EXAMPLE: ClassVar[str] = (
        "%3 = graph.scatter_rows %0, %1, %2 : (tensor<60x4xf32>, tensor<3xi32>, tensor<3x4xf32>) -> tensor<60x4xf32>"
    )

    x = operand_def(TensorType)
    indices = operand_def(TensorType)
    updates = operand_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        x, indices = cls.indexed(operands)
        if not x or len(indices) != 1:
            raise ShapeError(f"indices are a vector, the operand has rows (found {list(indices)} and {list(x)})")
        _check_updates(operands, (*indices, *x[1:]))
        return [operands[0]]

    def reference(self, x: Array, indices: Array, updates: Array) -> Array:
        found = np.array(x)
        for row, update in zip(indices.astype(np.int64), updates, strict=True):
            found[row] = update
        return found

    def view(self) -> View:
        rest = range(1, len(shape(self.x)))
        return Placement((None, *rest), (0, *[None] * len(rest)), 0)


def _check_updates(operands: Sequence[Tensor], size: Sequence[int]) -> None:
    if operands[2].get_shape() != tuple(size) or operands[2].element_type != operands[0].element_type:
        raise ShapeError(f"updates are {list(size)} of the operand's type (found {operands[2]} for {operands[0]})")


def _check_reduction(node: Mapping[str, Any]) -> None:
    if node.get("reduction", "none") != "none":
        raise InferError(f"what is scattered replaces (found reduction = {node['reduction']})")


# tuples of indices ----------------------------------------------------------------------------------------------------


def flat_rows(emit: Emit, indices: SSAValue, extents: Sequence[int]) -> SSAValue:
    """The row of each tuple on the last axis of `indices` in a tensor whose leading axes have the extents. A tuple with
    a part outside its axis names no row: it becomes `math.prod(extents)`.
    """
    size, count = shape(indices), math.prod(extents)
    truth = partial(emit, element=i1)
    row: SSAValue | None = None
    outside: SSAValue | None = None
    for place, extent in enumerate(extents):
        starts, sizes = [0] * (len(size) - 1) + [place], [*size[:-1], 1]
        part = emit.keep(SliceOp, indices, starts=starts, sizes=sizes, steps=[1] * len(size))
        zero, most = emit.constant(0, i32), emit.constant(extent, i32)
        wrapped = emit(AddOp, part, most, element=i32)
        part = emit(WhereOp, truth(LtOp, part, zero), wrapped, part, element=i32)
        wrong = truth(OrOp, truth(LtOp, part, zero), truth(GeOp, part, most))
        step = emit.constant(math.prod(extents[place + 1 :]), i32)
        scaled = emit(MulOp, part, step, element=i32)
        row = scaled if row is None else emit(AddOp, row, scaled, element=i32)
        outside = wrong if outside is None else truth(OrOp, outside, wrong)
    assert row is not None
    assert outside is not None
    return emit(WhereOp, outside, emit.constant(count, i32), row, element=i32)


def _check_tuples(x: Sequence[int], indices: Sequence[int], batch: int) -> None:
    if not indices or not x or not 1 <= indices[-1] <= len(x) - batch:
        raise ShapeError(f"the last axis of the indices names axes of the operand (found {list(indices)} of {list(x)})")


@irdl_op_definition
class GatherNDOp(IndexedOp):
    """result[b…, i…, k…] = x[b…, *indices[b…, i…, :], k…], b over `batch_dims` axes."""

    name = "graph.gather_nd"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("GatherND", 11),)
    EXAMPLE: ClassVar[str] = "%2 = graph.gather_nd %0, %1 : (tensor<12x13x4xf32>, tensor<3x2xi32>) -> tensor<3x4xf32>"

    batch_dims = opt_prop_def(IntegerAttr)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        (x, indices), batch = cls.indexed(operands), integer(properties, "batch_dims")
        if not 0 <= batch < len(indices) or x[:batch] != indices[:batch]:
            raise ShapeError(f"the first {batch} axes belong to both operands (found {list(x)} and {list(indices)})")
        _check_tuples(x, indices, batch)
        return [TensorType(operands[0].element_type, [*indices[:-1], *x[batch + indices[-1] :]])]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        return [0, 1], attributes(batch_dims=node.get("batch_dims", 0) or None)

    def reference(self, x: Array, indices: Array) -> Array:
        batch, found = integer(self.properties, "batch_dims"), np.empty(shape(self.result), x.dtype)
        for place in np.ndindex(*indices.shape[:-1]):
            found[place] = x[(*place[:batch], *indices[place].astype(np.int64))]
        return found

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit, x, indices = Emit(self, rewriter), shape(self.x), shape(self.indices)
        batch = integer(self.properties, "batch_dims")
        extents = x[batch : batch + indices[-1]]
        batches, rows, inner = math.prod(x[:batch]), math.prod(extents), math.prod(x[batch + indices[-1] :])
        row = flat_rows(emit, self.indices, extents)
        row = emit.keep(ReshapeOp, row, shape=[batches, math.prod(indices[batch:-1])])
        table = emit.keep(ReshapeOp, self.x, shape=[batches, rows, inner])
        found = emit(GatherOp, table, row, element=element(table), axis=1, batch_dims=1)
        return [emit.keep(ReshapeOp, found, shape=shape(self.result))]


@irdl_op_definition
class ScatterNDOp(IndexedOp):
    """The operand, but result[*indices[i…, :], k…] = updates[i…, k…]; the last of several counts."""

    name = "graph.scatter_nd"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("ScatterND", 11),)
    EXAMPLE: ClassVar[str] = (
        "%3 = graph.scatter_nd %0, %1, %2 : "
        "(tensor<12x13x4xf32>, tensor<3x2xi32>, tensor<3x4xf32>) -> tensor<12x13x4xf32>"
    )

    x = operand_def(TensorType)
    indices = operand_def(TensorType)
    updates = operand_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        x, indices = cls.indexed(operands)
        _check_tuples(x, indices, 0)
        _check_updates(operands, (*indices[:-1], *x[indices[-1] :]))
        return [operands[0]]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        _check_reduction(node)
        return [0, 1, 2], {}

    def reference(self, x: Array, indices: Array, updates: Array) -> Array:
        found = np.array(x)
        for place in np.ndindex(*indices.shape[:-1]):
            found[tuple(indices[place].astype(np.int64))] = updates[place]
        return found

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit, x, indices = Emit(self, rewriter), shape(self.x), shape(self.indices)
        extents, count = x[: indices[-1]], math.prod(indices[:-1])
        rows, inner = math.prod(extents), math.prod(x[indices[-1] :])
        row = emit.keep(ReshapeOp, flat_rows(emit, self.indices, extents), shape=[count])
        table = emit.keep(ReshapeOp, self.x, shape=[rows, inner])
        updates = emit.keep(ReshapeOp, self.updates, shape=[count, inner])
        found = emit(ScatterRowsOp, table, row, updates, element=element(table))
        return [emit.keep(ReshapeOp, found, shape=x)]
