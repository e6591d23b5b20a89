"""DynamicQuantizeLSTM: the products of an LSTM in integers.

x is rounded to bytes by its range, W and R are bytes, and in each step h is rounded to bytes by the range that it has
over all sequences. x·W is one integer product of all time steps, h·R a part of the recurrence, whose weights are
integers; what an integer stands for is multiplied to the products.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, SSAValue

from ..dialects.graph.arithmetic import AddOp, LtOp, MulOp
from ..dialects.graph.elementwise import CastOp, WhereOp
from ..dialects.graph.op import f32, i1, shape
from ..dialects.graph.properties import attributes, flag, number, text
from ..dialects.graph.quantize import DequantizeOp, DynamicScaleOp, QuantizeOp
from ..dialects.graph.recurrence import RecurrenceOp
from ..dialects.graph.recurrent import DIRECTIONS, LstmOp
from ..dialects.graph.reduce import ReduceMaxOp
from ..dialects.graph.views import ConcatOp, ExpandOp, ReshapeOp, SliceOp, TransposeOp
from ..dialects.standin import in_order
from .integer_products import matmul_bytes
from .node import Node, Value, size_of
from .operators import apply
from .quantization import wide

GATES, ORDER = 4, (0, 2, 1, 3)
"""ONNX's gates i, o, f, c in the order of the cell."""
KEPT = ("activation_alpha", "activation_beta", "activations", "clip", "direction", "input_forget")
X, W, R, BIAS, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES, W_SCALE, W_ZERO, R_SCALE, R_ZERO = range(12)
"""Inputs. W is [D, I, 4·H] and R [D, H, 4·H], the transposes of those of LSTM; scales and zero points are [D] or
[D, 4·H]."""


def dynamic_quantize_lstm(node: Node) -> Sequence[Value]:
    """One recurrence for all directions, or one for each if their activations differ."""
    _, given = LstmOp.from_onnx({key: node.attributes[key] for key in KEPT if key in node.attributes}, [], 7)
    functions = given["activations"]
    assert isinstance(functions, ArrayAttr)
    directions = len(DIRECTIONS[text(given, "direction")])
    each = len(functions) // directions
    alike = functions.data[:each] == functions.data[-each:]
    x = node.operand(X)
    scale, zero = node.builder.insert(DynamicScaleOp.build_op([_steps(node, x)])).results
    q = node.emit(QuantizeOp, x, scale, zero)
    groups = [range(directions)] if alike else [range(d, d + 1) for d in range(directions)]
    parts = [
        _Part(node, group).recurrence((q, scale, zero), given, functions.data[group.start * each :][:each])
        for group in groups
    ]
    if alike:
        return parts[0]
    return [node.emit(ConcatOp, *values, axis=0 if i else 1) for i, values in enumerate(zip(*parts, strict=True))]


def _steps(node: Node, x: SSAValue) -> SSAValue:
    """x [T, B, I] where one of the sequences goes on, beyond that 0, which every range includes, or nothing."""
    lengths, (time, batch, size) = node.optional(LENGTHS), shape(x)
    if lengths is None:
        return x
    if isinstance(lengths, np.ndarray):
        longest = max(int(lengths.max()), 1)
        if longest >= time:
            return x
        return node.emit(SliceOp, x, starts=[0] * 3, sizes=[longest, batch, size], steps=[1] * 3)
    steps = node.materialize(np.arange(time, dtype=np.int32).reshape(time, 1, 1))
    inside = node.emit(LtOp, steps, node.emit(ReduceMaxOp, lengths, axes=[0]), element=i1)
    return node.emit(WhereOp, inside, x, node.materialize(np.zeros((), np.float32)))


class _Part:
    """Some directions of a node. What is known is arranged at once, all else by ops."""

    def __init__(self, node: Node, group: range) -> None:
        self.node, self.group = node, group
        self.hidden = size_of(node.given(R))[1]
        self.every = len(group) * GATES * self.hidden

    def recurrence(
        self, x: tuple[SSAValue, SSAValue, SSAValue], given: Mapping[str, Attribute], functions: Sequence[Attribute]
    ) -> Sequence[SSAValue]:
        """y and the last states; x as bytes, its scale and its zero point."""
        node, states = self.node, {i: self._of(place) for i, place in enumerate((INITIAL_H, INITIAL_C))}
        known = {i: wide(node, value) for i, value in states.items() if value is not None}
        vectors = [self._peepholes(), self._columns(R_SCALE, (GATES, self.hidden))]
        inside = [node.materialize(value) for value in vectors if value is not None]
        lengths = node.optional(LENGTHS)
        if isinstance(lengths, np.ndarray) and bool(np.all(lengths == shape(x[0])[0])):
            lengths = None
        reverse = DIRECTIONS[text(given, "direction")][self.group.start : self.group.stop]
        turned = [] if lengths is None else reverse
        operands = [
            self._turned(self._gates(x), 2, lengths, turned),
            node.materialize(self._weight()),
            *known.values(),
            inside[0] if len(inside) == 1 else node.emit(ConcatOp, *inside, axis=1),
            *([] if lengths is None else [node.materialize(lengths)]),
        ]
        properties = attributes(
            cell="lstm",
            activations=ArrayAttr(functions),
            reverse=reverse if lengths is None else [0] * len(reverse),
            initial=list(known),
            clip=number(given, "clip") or None,
            coupled=flag(given, "input_forget") or None,
            peephole=True if len(inside) > 1 else None,
            rounded=True,
        )
        y, *last = node.builder.insert(RecurrenceOp.build_op(operands, properties)).results
        return [self._turned(y, 1, lengths, turned), *last]

    def _turned(self, value: SSAValue, axis: int, lengths: Value | None, reverse: Sequence[int]) -> SSAValue:
        """[T, …] with the time of each sequence reversed where a direction, a part of an axis, runs backwards: so all
        sequences begin at one step, and those that have ended make no range wider."""
        if lengths is None or not any(reverse):
            return value
        each, parts = shape(value)[axis] // len(reverse), list[SSAValue]()
        for d, backwards in enumerate(reverse):
            part = self.node.materialize(self._cut(value, axis, d * each, each))
            if backwards:
                size = shape(part)
                rows = self._reshaped(part, (size[0], size[-2], size[-1]))
                rows = apply(self.node, "ReverseSequence", rows, lengths, batch_axis=1, time_axis=0)
                part = self.node.materialize(self._reshaped(rows, size))
            parts.append(part)
        return parts[0] if len(parts) == 1 else self.node.emit(ConcatOp, *parts, axis=axis)

    def _gates(self, x: tuple[SSAValue, SSAValue, SSAValue]) -> SSAValue:
        """x·W + b in f32, [T, B, D·4·H]."""
        node, (q, scale, zero) = self.node, x
        weight = self._in_cell_order(self._all(W))
        weight = self._moved(weight, (1, 0, 2), (size_of(weight)[1], self.every))
        y = matmul_bytes(node.with_inputs([q, weight, zero, self._columns(W_ZERO)]), (0, 2), (1, 3))
        columns = node.materialize(self._columns(W_SCALE))
        y = node.emit(MulOp, node.emit(CastOp, y, element=f32), node.emit(MulOp, scale, columns))
        if (bias := self._of(BIAS)) is None:
            return y
        own, recurrent = (
            node.materialize(self._reshaped(self._in_cell_order(value), (self.every,))) for value in self._halves(bias)
        )
        return node.emit(AddOp, y, node.emit(AddOp, own, recurrent))

    def _weight(self) -> Value:
        """R less its zero point, f32 [D, 4·H, H], whose rows are (unit, gate)."""
        q, zero = self._all(R), self._columns(R_ZERO, (1, GATES * self.hidden), order=False)
        if isinstance(q, np.ndarray) and isinstance(zero, np.ndarray):
            less: Value = np.asanyarray(q.astype(np.float32) - zero.astype(np.float32))
        else:
            parameters = [self.node.materialize(value) for value in (np.array(1, np.float32), zero)]
            less = self.node.emit(DequantizeOp, self.node.materialize(q), *parameters)
        four = self._reshaped(self._in_cell_order(less), (len(self.group), self.hidden, GATES, self.hidden))
        return self._moved(four, (0, 3, 2, 1), (len(self.group), GATES * self.hidden, self.hidden))

    def _peepholes(self) -> Value | None:
        """[D, 3, H] of the gates i, f, o, from ONNX's i, o, f."""
        value = self._of(PEEPHOLES)
        return None if value is None else self._taken(self._reshaped(value, (-1, 3, self.hidden)), 1, (0, 2, 1))

    def _columns(self, place: int, size: tuple[int, ...] = (), order: bool = True) -> Value:
        """A parameter of each direction's every column, [D, *size]; [D·4·H] without a size."""
        value, rows = self._all(place), GATES * self.hidden
        value = self._reshaped(value, (len(self.group), -1))
        if size_of(value)[1] == 1:
            target = (len(self.group), rows)
            if isinstance(value, np.ndarray):
                value = np.repeat(value, rows, 1)
            else:
                value = self.node.emit(ExpandOp, value, shape=target)
        value = self._in_cell_order(value) if order else value
        return self._reshaped(value, (len(self.group), *size) if size else (self.every,))

    # arranging --------------------------------------------------------------------------------------------------------
    def _of(self, place: int) -> Value | None:
        """An input's part for the directions, None if it is absent."""
        return None if self.node.optional(place) is None else self._all(place)

    def _all(self, place: int) -> Value:
        value, group = self.node.given(place), self.group
        return value if len(group) == size_of(value)[0] else self._cut(value, 0, group.start, len(group))

    def _cut(self, value: Value, axis: int, start: int, size: int) -> Value:
        """Some positions of an axis."""
        if isinstance(value, np.ndarray):
            return np.take(value, range(start, start + size), axis)
        extents = [*shape(value)]
        starts = [start if i == axis else 0 for i in range(len(extents))]
        extents[axis] = size
        return self.node.emit(SliceOp, value, starts=starts, sizes=extents, steps=[1] * len(extents))

    def _halves(self, value: Value) -> tuple[Value, Value]:
        """[D, 2·n] as two [D, n]."""
        half = size_of(value)[1] // 2
        return self._cut(value, 1, 0, half), self._cut(value, 1, half, half)

    def _taken(self, value: Value, axis: int, order: Sequence[int]) -> Value:
        """Positions of an axis in another order."""
        if isinstance(value, np.ndarray):
            return np.take(value, order, axis)
        parts = [self.node.materialize(self._cut(value, axis, place, 1)) for place in order]
        return self.node.emit(ConcatOp, *parts, axis=axis)

    def _in_cell_order(self, value: Value) -> Value:
        """[…, 4·H] with the gates in the order of the cell."""
        size = size_of(value)
        four = self._reshaped(value, (*size[:-1], GATES, self.hidden))
        return self._reshaped(self._taken(four, len(size) - 1, ORDER), size)

    def _reshaped(self, value: Value, size: Sequence[int]) -> Value:
        if isinstance(value, np.ndarray):
            return value.reshape(size)
        return value if shape(value) == tuple(size) else self.node.emit(ReshapeOp, value, shape=list(size))

    def _moved(self, value: Value, perm: Sequence[int], size: Sequence[int]) -> Value:
        """The axes in another order, then another shape."""
        if isinstance(value, np.ndarray):
            return in_order(value.transpose(perm)).reshape(size)
        return self._reshaped(self.node.emit(TransposeOp, value, perm=list(perm)), size)


LSTM: Mapping[str, Callable[[Node], Sequence[Any]]] = {"DynamicQuantizeLSTM": dynamic_quantize_lstm}
"""By operator."""
