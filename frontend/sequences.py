"""Sequences whose length is known: lists of values, which no instruction touches.

What only a run tells, a place in a list or a list that comes in, leaves the operator to the CPU, which then gets the
list as a sequence (`hosting`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from xdsl.ir import SSAValue

from ..dialects.graph.constants import NUMPY
from ..dialects.graph.op import InferError, element
from ..dialects.graph.views import ReshapeOp, SliceOp, normal_axis
from .listed import Listed
from .movement import concat as joined
from .node import Node, Value, size_of


def _listed(node: Node) -> Listed:
    value = node.given(0)
    if not isinstance(value, Listed):
        raise InferError("the length of a sequence is known (found one that comes in)")
    return value


def _element(node: Node, index: int) -> Value:
    """What goes into a sequence."""
    value = node.given(index)
    if isinstance(value, Listed) or (index < len(node.kinds) and node.kinds[index] is not None):
        raise InferError("sequences of the device hold tensors of types of its own (found others)")
    return value


def _place(node: Node, index: int, count: int, default: int) -> int:
    """A place in a list of `count`, from the end if it is negative."""
    given = node.known(index)
    place = default if given is None else int(given.reshape(-1)[0])
    place += count if place < 0 else 0
    if not 0 <= place < count:
        raise InferError(f"a place is one of {count} (found {place})")
    return place


def construct(node: Node) -> Sequence[Value]:
    """The inputs in a list."""
    return [Listed.of([_element(node, index) for index in range(len(node.inputs))])]


def empty(node: Node) -> Sequence[Value]:
    """A list of nothing."""
    return [Listed.of([], node.attributes.get("dtype", 0))]


def insert(node: Node) -> Sequence[Value]:
    """A list with one more value, before that of a place or as the last."""
    listed = _listed(node)
    values = list(listed.values)
    values.insert(_place(node, 2, len(values) + 1, len(values)), _element(node, 1))
    return [Listed.of(values)]


def erase(node: Node) -> Sequence[Value]:
    """A list without the value of a place, or the last."""
    listed = _listed(node)
    place = _place(node, 1, len(listed.values), -1)
    return [Listed.of([*listed.values[:place], *listed.values[place + 1 :]], listed.kind)]


def at(node: Node) -> Sequence[Value]:
    """The value of a place."""
    values = _listed(node).values
    return [values[_place(node, 1, len(values), 0)]]


def length(node: Node) -> Sequence[Value]:
    """How many there are."""
    return [np.array(len(_listed(node).values), np.int64)]


def split(node: Node) -> Sequence[Value]:
    """Parts along an axis: of one size, of the sizes given, or of one element, whose axis may leave."""
    x, given = _element(node, 0), node.known(1)
    axis = normal_axis(node.attributes.get("axis", 0), len(size_of(x)))
    extent = size_of(x)[axis]
    if given is None or given.ndim == 0:
        step = 1 if given is None else int(given)
        if step < 1:
            raise InferError(f"parts have a size (found {step})", broken=True)
        sizes = [min(step, extent - start) for start in range(0, extent, step)]
    else:
        sizes = [int(size) for size in given]
    if sum(sizes) != extent or min(sizes, default=0) < 0:
        raise InferError(f"the parts make up the axis of {extent} (found {sizes})", broken=True)
    starts = np.cumsum([0, *sizes]).tolist()
    parts = [_part(node, x, axis, start, size) for start, size in zip(starts, sizes, strict=False)]
    if given is None and not node.attributes.get("keepdims", 1):
        size = [n for place, n in enumerate(size_of(x)) if place != axis]
        parts = [_shaped(node, part, size) for part in parts]
    return [Listed.of(parts)]


def _part(node: Node, x: Value, axis: int, start: int, size: int) -> Value:
    if isinstance(x, SSAValue) and size:
        return node.emit(SliceOp, x, starts=[start], ends=[start + size], axes=[axis])
    if isinstance(x, SSAValue):
        return np.zeros([0 if place == axis else n for place, n in enumerate(size_of(x))], NUMPY[element(x)])
    return np.take(x, range(start, start + size), axis)


def concat(node: Node) -> Sequence[Value]:
    """The values one behind the other, or along a new axis."""
    values, axis = _listed(node).values, node.attributes["axis"]
    if not values:
        raise InferError("ConcatFromSequence has values (found none)")
    if node.attributes.get("new_axis", 0):
        place = normal_axis(axis, len(size_of(values[0])) + 1)
        values = tuple(_shaped(node, value, [*size_of(value)[:place], 1, *size_of(value)[place:]]) for value in values)
    arrays = [value for value in values if not isinstance(value, SSAValue)]
    if len(arrays) == len(values):
        return [np.concatenate(arrays, axis)]
    return joined(replace(node, inputs=values, attributes={"axis": axis}))


def _shaped(node: Node, x: Value, size: Sequence[int]) -> Value:
    return node.emit(ReshapeOp, x, shape=size) if isinstance(x, SSAValue) else x.reshape(size)


SEQUENCES: Mapping[str, Callable[[Node], Sequence[Value]]] = {
    "ConcatFromSequence": concat,
    "SequenceAt": at,
    "SequenceConstruct": construct,
    "SequenceEmpty": empty,
    "SequenceErase": erase,
    "SequenceInsert": insert,
    "SequenceLength": length,
    "SplitToSequence": split,
}
"""By operator."""
