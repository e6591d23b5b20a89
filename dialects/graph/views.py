"""Operators that only re-index: the result holds the operands' elements, in another order or shape, unchanged."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from .op import (
    Array,
    Frame,
    GraphOp,
    InferError,
    Join,
    Onnx,
    Reshape,
    ShapeError,
    Strided,
    Tensor,
    View,
    broadcast_shapes,
    element,
    shape,
)
from .properties import attribute, attributes, integer, ints, number


class ViewOp(GraphOp):
    """Moves elements; the result has the operands' element type."""

    result = result_def(TensorType)

    def verify_(self) -> None:
        super().verify_()
        kinds = {element(operand) for operand in self.operands} | {element(self.results[0])}
        if len(kinds) != 1:
            raise VerifyException(
                f"elements keep their type (found {', '.join(sorted(map(str, kinds)))}); use graph.cast"
            )


def normal_axis(axis: int, rank: int) -> int:
    """`axis` counted from 0; raises `InferError` if there is none."""
    if not -rank <= axis < rank:
        raise ShapeError(f"an axis of a tensor of rank {rank} lies in [{-rank}, {rank}) (found {axis})")
    return axis % rank


@irdl_op_definition
class ReshapeOp(ViewOp):
    """The same elements in row-major order under another shape."""

    name = "graph.reshape"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Reshape", 5),)
    EXAMPLE: ClassVar[str] = "%1 = graph.reshape %0 {shape = [2, 6]} : (tensor<3x4xf32>) -> tensor<2x6xf32>"

    x = operand_def(TensorType)
    shape = prop_def(DenseArrayBase)

    @classmethod
    def normalize(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
        """Fills in 0 (the operand's extent) and −1 (what is left)."""
        source, wanted = operands[0].get_shape(), list(ints(properties, "shape"))
        for i, size in enumerate(wanted):
            if size == 0 and i < len(source):
                wanted[i] = source[i]
        known = math.prod(size for size in wanted if size != -1)
        if wanted.count(-1) == 1 and known > 0 and math.prod(source) % known == 0:
            wanted[wanted.index(-1)] = math.prod(source) // known
        return {"shape": attribute(wanted)}

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        source, target = operands[0].get_shape(), ints(properties, "shape")
        if min(target, default=1) < 1 or math.prod(source) != math.prod(target):
            raise ShapeError(f"a reshape keeps the number of elements (found {list(source)} to {list(target)})")
        return [TensorType(operands[0].element_type, target)]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        target = constants[1]
        if target is None:
            raise InferError("the shape must be a constant (found one that is computed)")
        if node.get("allowzero", 0) and 0 in target:
            raise ShapeError(f"a tensor has elements (found shape {target.tolist()} with allowzero)", broken=False)
        return [0], {"shape": attribute(target.tolist())}

    def reference(self, x: Array) -> Array:
        return x.reshape(shape(self.result))

    def view(self) -> View:
        return Reshape(shape(self.result))


@irdl_op_definition
class TransposeOp(ViewOp):
    """Axes in another order: axis i of the result is axis perm[i] of the operand."""

    name = "graph.transpose"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Transpose", 1),)
    EXAMPLE: ClassVar[str] = (
        "%1 = graph.transpose %0 {perm = [0, 2, 3, 1]} : (tensor<1x3x4x5xf32>) -> tensor<1x4x5x3xf32>"
    )

    x = operand_def(TensorType)
    perm = prop_def(DenseArrayBase)

    @classmethod
    def normalize(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
        """Axes reversed if no order is given."""
        rank = operands[0].get_num_dims()
        return {"perm": attribute([normal_axis(i, rank) for i in ints(properties, "perm", range(rank)[::-1])])}

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        source, perm = operands[0].get_shape(), ints(properties, "perm")
        if sorted(perm) != list(range(len(source))):
            raise ShapeError(f"perm names each of the {len(source)} axes once (found {list(perm)})")
        return [TensorType(operands[0].element_type, [source[i] for i in perm])]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        return [0], attributes(perm=node.get("perm"))

    def reference(self, x: Array) -> Array:
        return x.transpose(ints(self.properties, "perm"))

    def view(self) -> View:
        perm = ints(self.properties, "perm")
        return Strided(shape(self.result), perm, (0,) * len(perm), (1,) * len(perm))


@irdl_op_definition
class SliceOp(ViewOp):
    """sizes[i] elements of each axis from starts[i] by steps[i]."""

    name = "graph.slice"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Slice", 1),)
    EXAMPLE: ClassVar[str] = (
        "%1 = graph.slice %0 {starts = [0, 1], sizes = [2, 3], steps = [1, 2]} : (tensor<2x8xf32>) -> tensor<2x3xf32>"
    )

    x = operand_def(TensorType)
    starts = prop_def(DenseArrayBase)
    sizes = prop_def(DenseArrayBase)
    steps = prop_def(DenseArrayBase)

    @classmethod
    def normalize(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
        """From ONNX's terms, `ends` in place of `sizes` and only some axes, by `sliced`."""
        if "ends" not in properties:
            return properties
        source = operands[0].get_shape()
        starts, ends = ints(properties, "starts"), ints(properties, "ends")
        axes = ints(properties, "axes", range(len(starts)))
        steps = ints(properties, "steps", [1] * len(starts))
        ranges = [range(size) for size in source]
        for i, start, end, step in zip(axes, starts, ends, steps, strict=True):
            place = normal_axis(i, len(source))
            ranges[place] = sliced(start, end, step, source[place])
        return attributes(
            starts=[r.start for r in ranges], sizes=[len(r) for r in ranges], steps=[r.step for r in ranges]
        )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        source = operands[0].get_shape()
        starts, sizes, steps = (ints(properties, name) for name in ("starts", "sizes", "steps"))
        if not len(source) == len(starts) == len(sizes) == len(steps):
            raise ShapeError(f"starts, sizes and steps name every axis of the operand (found rank {len(source)})")
        for extent, start, size, step in zip(source, starts, sizes, steps, strict=True):
            last = start + (size - 1) * step
            if size < 1 or not (0 <= start < extent and 0 <= last < extent):
                raise ShapeError(
                    f"a slice lies inside its axis of {extent} (found {size} elements from {start} by {step})"
                )
        return [TensorType(operands[0].element_type, sizes)]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        names = ("starts", "ends", "axes", "steps")[: len(constants) - 1]
        values = dict(zip(names, constants[1:], strict=True))
        computed = [name for name, value in values.items() if value is None]
        if computed:
            raise InferError(f"bounds of a slice are constants (found {', '.join(computed)}, which are computed)")
        given = {name: value.tolist() for name, value in values.items() if value is not None}
        return [0], attributes(**{name: found for name, found in given.items() if found or name in ("starts", "ends")})

    def reference(self, x: Array) -> Array:
        starts, sizes, steps = (ints(self.properties, name) for name in ("starts", "sizes", "steps"))
        picked = [start + step * np.arange(size) for start, size, step in zip(starts, sizes, steps, strict=True)]
        return x[np.ix_(*picked)]

    def view(self) -> View:
        starts, sizes, steps = (ints(self.properties, name) for name in ("starts", "sizes", "steps"))
        return Strided(sizes, tuple(range(len(sizes))), starts, steps)


def sliced(start: int, end: int, step: int, extent: int) -> range:
    """ONNX's slice of an axis: bounds below 0 count from the end, and then are taken to the nearest place that there
    is: backwards, a first element that lies before the axis is element 0."""
    if step == 0:
        raise InferError("the step of a slice is not 0 (found 0)", broken=True)
    first, last = (0, extent) if step > 0 else (-1, extent - 1)
    start, end = (bound + extent if bound < 0 else bound for bound in (start, end))
    return range(min(max(start, 0), last), min(max(end, first), last), step)


@irdl_op_definition
class ExpandOp(ViewOp):
    """Repeats the operand along axes of extent 1, and along new ones, until it has the shape."""

    name = "graph.expand"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Expand", 8),)
    EXAMPLE: ClassVar[str] = "%1 = graph.expand %0 {shape = [2, 3, 4]} : (tensor<3x1xf32>) -> tensor<2x3x4xf32>"

    x = operand_def(TensorType)
    shape = prop_def(DenseArrayBase)

    @classmethod
    def normalize(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
        return {"shape": attribute(broadcast_shapes(operands[0].get_shape(), ints(properties, "shape")))}

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        target = ints(properties, "shape")
        if broadcast_shapes(operands[0].get_shape(), target) != target:
            raise ShapeError(f"the operand broadcasts to the shape (found {operands[0].get_shape()} to {target})")
        return [TensorType(operands[0].element_type, target)]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        target = constants[1]
        if target is None:
            raise InferError("the shape must be a constant (found one that is computed)")
        return [0], {"shape": attribute(target.tolist())}

    def reference(self, x: Array) -> Array:
        return np.broadcast_to(x, shape(self.result))

    def view(self) -> View:
        source, target = shape(self.x), shape(self.result)
        new = len(target) - len(source)
        axes = tuple(i - new if i >= new else None for i in range(len(target)))
        steps = tuple(0 if i is None or source[i] == 1 else 1 for i in axes)
        return Strided(target, axes, (0,) * len(target), steps)


@irdl_op_definition
class ConcatOp(ViewOp):
    """The operands one after the other along an axis."""

    name = "graph.concat"
    EXAMPLE: ClassVar[str] = (
        "%2 = graph.concat %0, %1 {axis = 1} : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>"
    )

    parts = var_operand_def(TensorType)
    axis = prop_def(IntegerAttr)

    @classmethod
    def normalize(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
        return {"axis": attribute(normal_axis(integer(properties, "axis"), operands[0].get_num_dims()))}

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        if not operands:
            raise InferError("there is something to join (found no operands)", broken=True)
        shapes = [operand.get_shape() for operand in operands]
        place = normal_axis(integer(properties, "axis"), len(shapes[0]))
        others = {(*size[:place], *size[place + 1 :]) for size in shapes}
        if len(others) != 1:
            raise ShapeError(f"operands agree in all axes but {place} (found {', '.join(map(str, shapes))})")
        target = list(shapes[0])
        target[place] = sum(size[place] for size in shapes)
        return [TensorType(operands[0].element_type, target)]

    def reference(self, *parts: Array) -> Array:
        return np.concatenate(parts, integer(self.properties, "axis"))

    def view(self) -> View:
        return Join(integer(self.properties, "axis"))


@irdl_op_definition
class PadOp(ViewOp):
    """The operand inside a larger tensor of one value, 0 if none is given: `before` and `after` elements on each axis.
    Negative ones cut the operand off.
    """

    name = "graph.pad"
    EXAMPLE: ClassVar[str] = (
        "%1 = graph.pad %0 {before = [0, 1], after = [0, 2]} : (tensor<2x3xf32>) -> tensor<2x6xf32>"
    )

    x = operand_def(TensorType)
    before = prop_def(DenseArrayBase)
    after = prop_def(DenseArrayBase)
    value = opt_prop_def(FloatAttr)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        source, before, after = operands[0].get_shape(), ints(properties, "before"), ints(properties, "after")
        if not len(source) == len(before) == len(after):
            raise ShapeError(f"padding is given for each of {len(source)} axes (found {before} and {after})")
        target = [sum(n) for n in zip(source, before, after, strict=True)]
        if min(target, default=1) < 1:
            raise ShapeError(f"padding leaves elements of {list(source)} (found {before} and {after})", broken=False)
        return [TensorType(operands[0].element_type, target)]

    def reference(self, x: Array) -> Array:
        """Element by element from its place in the operand, if it has one there."""
        size = shape(self.result)
        places = [np.arange(n) - before for n, before in zip(size, ints(self.properties, "before"), strict=True)]
        clipped = np.ix_(*(np.clip(place, 0, n - 1) for place, n in zip(places, x.shape, strict=True)))
        there = np.ones(size, bool)
        for axis, (place, n) in enumerate(zip(places, x.shape, strict=True)):
            there &= ((place >= 0) & (place < n)).reshape([-1 if i == axis else 1 for i in range(len(size))])
        return np.where(there, x[clipped], np.asarray(number(self.properties, "value")).astype(x.dtype))

    def view(self) -> View:
        return Frame(shape(self.result), ints(self.properties, "before"), number(self.properties, "value"))
