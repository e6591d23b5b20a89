"""Sums of bags of rows, as torch writes an EmbeddingBag: a Loop over the bags.

    start = starts[i]; end = ends[i]
    bag = ReduceSum(table[indices[start:end]] · weights[start:end], axis 0)

Only a run tells how long a bag is. All rows in one product with what says which bag each is in are the same sums.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import onnx
from xdsl.ir import SSAValue

from ..dialects.graph.host import is_host
from .model_file import Array
from .node import Node, Value, size_of
from .operators import apply

MOST_PAIRS = 1 << 22
"""Of a bag and a row."""
LAST = np.array([-1])


class Around(Protocol):
    """What is around a node."""

    def value(self, name: str, user: str) -> Value | None: ...


class _Other(Exception):
    """A loop that does something else."""


@dataclass(frozen=True, slots=True)
class _Bags:
    """The loop: names of values around it."""

    table: str
    indices: str
    starts: str
    ends: str
    weights: str
    mean: bool


def bagged(node: Node, around: Around) -> Sequence[Value] | None:
    """The result of a Loop over bags; None for any other, and for one that the device does not hold."""
    if node.operator != "Loop" or len(node.inputs) != 2:
        return None
    count, going = node.inputs
    if not isinstance(count, np.ndarray) or not (going is None or (isinstance(going, np.ndarray) and going.all())):
        return None
    try:
        bags = _Body(node.attributes["body"], node, around).bags()
    except (_Other, AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None
    names = [bags.table, bags.indices, bags.starts, bags.ends, *([bags.weights] if bags.weights else [])]
    values = [around.value(name, node.name) for name in names]
    found = [value for value in values if value is not None and not (isinstance(value, SSAValue) and is_host(value))]
    if len(found) < len(values):
        return None
    return _summed(node, found, int(count.reshape(-1)[0]), bags.mean)


def _summed(node: Node, values: Sequence[Value], count: int, mean: bool) -> Sequence[Value] | None:
    """The sums, or means, of the rows between each start and end."""
    table, indices, starts, ends, *weights = values
    places = size_of(indices)[0]
    if not 0 < count * places <= MOST_PAIRS or {size_of(starts), size_of(ends)} != {(count,)}:
        return None
    place = np.arange(places, dtype=np.int32).reshape(1, places)
    first, end = (_column(node, bound, places) for bound in (starts, ends))
    inside = apply(node, "And", apply(node, "LessOrEqual", first, place), apply(node, "Less", place, end))
    rows = apply(node, "Gather", table, indices, axis=0)
    if weights:
        rows = apply(node, "Mul", rows, apply(node, "Unsqueeze", weights[0], LAST))
    of_bag = apply(node, "CastLike", inside, rows)
    sums = apply(node, "MatMul", of_bag, rows)
    if mean:
        sums = apply(node, "Div", sums, apply(node, "ReduceSum", of_bag, LAST, keepdims=1))
    return [sums]


def _column(node: Node, bound: Value, places: int) -> SSAValue:
    """Bounds of slices as a column; negative ones count from the end."""
    column = apply(node, "Cast", apply(node, "Unsqueeze", bound, LAST), to=onnx.TensorProto.INT32)
    behind = apply(node, "Add", column, np.array(places, np.int32))
    return apply(node, "Where", apply(node, "Less", column, np.zeros((), np.int32)), behind, column)


class _Body:
    """The graph of the loop, read from its results."""

    def __init__(self, graph: onnx.GraphProto, node: Node, around: Around) -> None:
        self._graph, self._node, self._around = graph, node, around
        self._makers = {name: made for made in graph.node for name in made.output}
        self._own = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}

    def bags(self) -> _Bags:
        step, going = (info.name for info in self._graph.input)
        goes_on, bag = (info.name for info in self._graph.output)
        self._check_going(goes_on, going)
        total, (summed, *axes), given = self._made(bag, "ReduceSum", "ReduceMean")
        self._check(given.get("keepdims", 1) == 0 and self._numbers(given, "axes", axes, 0) == [0])
        weights = ""
        if self._makers[summed].op_type == "Mul":
            _, (summed, column), _ = self._made(summed, "Mul")
            _, (weights, *axes), given = self._made(column, "Unsqueeze")
            self._check(self._numbers(given, "axes", axes, 0) in ([1], [-1]))
        _, (table, picked), given = self._made(summed, "Gather")
        self._check(given.get("axis", 0) == 0)
        indices, *bounds = self._between(picked, step)
        if weights:
            weights, *others = self._between(weights, step)
            self._check(others == bounds)
        starts, ends = bounds
        self._check(not self._own & {table, indices, starts, ends, weights})
        self._check(not self._makers.keys() & {table, indices, starts, ends, weights})
        return _Bags(table, indices, starts, ends, weights, total == "ReduceMean")

    def _check(self, holds: bool) -> None:
        if not holds:
            raise _Other

    def _check_going(self, name: str, going: str) -> None:
        """The condition stays as it is."""
        while name != going and name in self._makers and self._makers[name].op_type in ("Cast", "Identity"):
            name = self._makers[name].input[0]
        if name != going:
            self._check(bool(self._constant(name).all()))

    def _made(self, name: str, *operators: str) -> tuple[str, Sequence[str], Mapping[str, Any]]:
        """The operator that makes a value, its inputs, its attributes."""
        made = self._makers[name]
        self._check(made.op_type in operators and made.domain == "")
        return made.op_type, made.input, {a.name: onnx.helper.get_attribute_value(a) for a in made.attribute}

    def _between(self, name: str, step: str) -> tuple[str, str, str]:
        """What is sliced, and of which vectors the bounds are elements."""
        _, (sliced, start, end, *more), given = self._made(name, "Slice")
        self._check(self._numbers(given, "axes", more, 0) == [0])
        self._check(len(more) < 2 or self._numbers(given, "steps", more, 1) == [1])
        return sliced, self._element(start, step), self._element(end, step)

    def _element(self, name: str, step: str) -> str:
        """The vector of which a value is the element of this step, as a vector of one."""
        _, (one, *axes), given = self._made(name, "Unsqueeze")
        self._check(self._numbers(given, "axes", axes, 0) in ([0], [-1]))
        _, (vector, place), given = self._made(one, "Gather")
        self._check(place == step and given.get("axis", 0) == 0)
        return vector

    def _numbers(self, given: Mapping[str, Any], key: str, inputs: Sequence[str], place: int) -> list[int]:
        """Axes or steps: an attribute, or an input that is a constant."""
        return list(given[key]) if key in given else self._constant(inputs[place]).reshape(-1).tolist()

    def _constant(self, name: str) -> Array:
        made = self._makers.get(name)
        if made is not None:
            self._check(made.op_type == "Constant" and made.attribute[0].name == "value")
            return onnx.numpy_helper.to_array(made.attribute[0].t)
        for tensor in self._graph.initializer:
            if tensor.name == name:
                return onnx.numpy_helper.to_array(tensor)
        self._check(name not in self._own)
        value = self._around.value(name, self._node.name)
        if not isinstance(value, np.ndarray):
            raise _Other
        return value
