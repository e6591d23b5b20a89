"""Views as strides: where the elements of a re-indexed tensor stand in the tensor that it was made of."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...dialects.graph.op import GraphOp, Reshape, Strided, View, shape
from ...dialects.tile.attributes import row_major


@dataclass(frozen=True)
class Access:
    """Element i of a tensor of `shape` is element offset + Σ i·strides of its base."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @staticmethod
    def whole(extents: Sequence[int]) -> "Access":
        """A tensor that is its own base, in row-major order."""
        return Access(tuple(extents), row_major(extents))

    @staticmethod
    def of(base: Sequence[int], views: Iterable[GraphOp]) -> "Access | None":
        """A base of extents `base` through views, in order; None if strides cannot say it."""
        found: Access | None = Access.whole(base)
        for op in views:
            found = found.through(op.view()) if found is not None else None
        return found

    def through(self, view: View) -> "Access | None":
        """A view of this."""
        if isinstance(view, Reshape):
            return self.reshaped(view.shape)
        if not isinstance(view, Strided):
            return None
        offset, strides = self.offset, list[int]()
        for axis, start, step in zip(view.axes, view.starts, view.steps, strict=True):
            stride = 0 if axis is None else self.strides[axis]
            offset += start * stride
            strides.append(stride * step)
        return Access(view.shape, tuple(strides), offset)

    def reshaped(self, extents: Sequence[int]) -> "Access | None":
        """The same elements in the same order under other extents, if strides can say it."""
        strides = [0] * len(extents)
        old = [axis for axis, size in enumerate(self.shape) if size > 1]
        new = [axis for axis, size in enumerate(extents) if size > 1]
        while new:
            group, split = [old.pop()], [new.pop()]
            while (a := math.prod(self.shape[i] for i in group)) != (b := math.prod(extents[i] for i in split)):
                (group if a < b else split).append((old if a < b else new).pop())
            stride = self.merged(group[::-1])
            if stride is None:
                return None
            for axis in split:
                strides[axis] = stride
                stride *= extents[axis]
        return Access(tuple(extents), tuple(strides), self.offset)

    def merged(self, axes: Iterable[int]) -> int | None:
        """The stride of some axes, outermost first, walked as one; None if they have none. Of a single element: 0."""
        stride, size = 0, 1
        for axis in reversed([axis for axis in axes if self.shape[axis] > 1]):
            if size == 1:
                stride = self.strides[axis]
            elif self.strides[axis] != stride * size:
                return None
            size *= self.shape[axis]
        return stride


def stored(views: Sequence[GraphOp]) -> Access | None:
    """Where the elements of a value go if what is stored is made of it by `views`, in order; None if strides cannot
    say it, or if not all its elements are stored once."""
    found: Access | None = Access.whole(shape(views[-1].results[0]))
    for op in reversed(views):
        source, view = shape(op.operands[0]), op.view()
        if isinstance(view, Reshape):
            found = found.reshaped(source)
        elif isinstance(view, Strided) and sorted(view.axes, key=str) == sorted(range(len(source)), key=str):
            if any(view.starts) or any(step != 1 for step in view.steps) or math.prod(view.shape) != math.prod(source):
                return None
            places = {axis: found.strides[at] for at, axis in enumerate(view.axes)}
            found = Access(tuple(source), tuple(places[axis] for axis in range(len(source))), found.offset)
        else:
            return None
        if found is None:
            return None
    return found
