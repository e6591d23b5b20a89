"""Recurrent networks as ONNX has them. Each becomes

x·W + b of all time steps     one matmul, with an f32 result
h·R and the cell, in time     one `graph.recurrence`
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, BoolAttr, DenseArrayBase, FloatAttr, StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, var_operand_def
from xdsl.pattern_rewriter import PatternRewriter

from ..recurrence import ACTIVATIONS, Activation
from .arithmetic import AddOp
from .constants import ConstantOp
from .contract import MatMulOp
from .elementwise import CastOp
from .emit import Emit
from .op import Array, InferError, Onnx, ShapeError, Tensor, element, f32, shape
from .properties import Properties, attributes, flag, ints, number, text
from .recurrence import FUNCTIONS, GATES, STATES, RecurrenceOp, Recurrent, Sequences, activations_of, check_shape
from .views import ConcatOp, ExpandOp, ReshapeOp, SliceOp, TransposeOp

DIRECTIONS = {"forward": (0,), "reverse": (1,), "bidirectional": (0, 1)}
X, W, R, BIAS, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES = range(8)
"""ONNX's inputs."""


class OnnxRecurrent(Recurrent):
    """Common to LSTM, GRU and RNN: `inputs` has the place in ONNX's list of each operand, as some may be absent.

    x is [T, B, I] and y [T, D, B, H], states [D, B, H]; with `layout` 1, [B, T, I], [B, T, D, H] and [B, D, H].
    """

    x = operand_def(TensorType)
    w = operand_def(TensorType)
    r = operand_def(TensorType)
    more = var_operand_def(TensorType)
    inputs = prop_def(DenseArrayBase)
    direction = prop_def(StringAttr)
    activations = prop_def(ArrayAttr)
    clip = opt_prop_def(FloatAttr)
    layout = opt_prop_def(BoolAttr)
    y = result_def(TensorType)
    y_h = result_def(TensorType)

    KIND: ClassVar[str]
    ORDER: ClassVar[tuple[int, ...]]
    """ONNX's gates in the order of the cell."""
    FLAG: ClassVar[str | None] = None
    """The attribute that only this operator has."""

    @classmethod
    def kind(cls, properties: Properties) -> str:
        """The cell."""
        return cls.KIND

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        given = dict(zip(ints(properties, "inputs"), operands, strict=False))
        if len(given) != len(operands) or not {X, W, R} <= set(given):
            raise InferError(f"inputs has the place of each operand (found {sorted(given)}, {len(operands)} operands)")
        if any(given[place].get_num_dims() != 3 for place in (X, W, R)):
            raise ShapeError(f"X, W and R have three axes (found {', '.join(str(given[i]) for i in (X, W, R))})")
        if text(properties, "direction") not in DIRECTIONS:
            raise InferError(
                f"the direction is one of {', '.join(DIRECTIONS)} (found {text(properties, 'direction')!r})",
                broken=True,
            )
        directions, count = len(DIRECTIONS[text(properties, "direction")]), GATES[cls.KIND]
        functions = len(activations_of(properties))
        if functions != directions * len(FUNCTIONS[cls.KIND]):
            raise InferError(
                f"each direction has {len(FUNCTIONS[cls.KIND])} activations (found {functions})", broken=True
            )
        first, second, size = given[X].get_shape()
        layout, hidden = flag(properties, "layout"), given[R].get_shape()[2]
        time, batch = (second, first) if layout else (first, second)
        state = (batch, directions, hidden) if layout else (directions, batch, hidden)
        wanted = {
            W: (directions, count * hidden, size),
            R: (directions, count * hidden, hidden),
            BIAS: (directions, 2 * count * hidden),
            LENGTHS: (batch,),
            INITIAL_H: state,
            INITIAL_C: state,
            PEEPHOLES: (directions, 3 * hidden),
        }
        for place, operand in given.items():
            if place != X:
                check_shape(
                    operand, wanted[place], ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")[place]
                )
        y = (batch, time, directions, hidden) if layout else (time, directions, batch, hidden)
        kind = given[R].element_type
        return [TensorType(kind, y), *[TensorType(f32, state)] * STATES[cls.KIND]]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        given = [i for i, value in enumerate(constants) if value is None or value.size]
        direction = node.get("direction", "forward")
        count = len(DIRECTIONS.get(direction, ()))
        names = [name.lower() for name in node.get("activations", FUNCTIONS[cls.KIND] * count)]
        parameters = [iter(node.get(f"activation_{name}", ())) for name in ("alpha", "beta")]
        functions = [str(_activation(name, parameters)) for name in names]
        own = {} if cls.FLAG is None else {cls.FLAG: bool(node.get(cls.FLAG, 0)) or None}
        return given, attributes(
            inputs=given,
            direction=direction,
            activations=ArrayAttr([StringAttr(name) for name in functions]),
            clip=float(node["clip"]) if node.get("clip") else None,
            layout=bool(node.get("layout", 0)) or None,
            **own,
        )

    def given(self, place: int) -> SSAValue | None:
        """The operand of an ONNX input."""
        found = dict(zip(ints(self.properties, "inputs"), self.operands, strict=True))
        return found.get(place)

    def reference_all(self, *operands: Array) -> Sequence[Array]:
        given = dict(zip(ints(self.properties, "inputs"), operands, strict=True))
        layout, kind, functions = flag(self.properties, "layout"), self.kind(self.properties), FUNCTIONS[self.KIND]
        x, states = given[X], [given.get(INITIAL_H), given.get(INITIAL_C)][: STATES[kind]]
        if layout:
            x, states = x.swapaxes(0, 1), [None if s is None else s.swapaxes(0, 1) for s in states]
        (time, batch, _), hidden, order = x.shape, given[R].shape[2], list(self.ORDER)
        found: list[list[Array]] = []
        for d, reverse in enumerate(DIRECTIONS[text(self.properties, "direction")]):
            w, r = (given[i][d].reshape(len(order), hidden, -1)[order] for i in (W, R))
            bias = (
                given[BIAS][d].reshape(2, len(order), hidden)[:, order]
                if BIAS in given
                else np.zeros((2, len(order), 1))
            )
            after = kind == "gru_after"
            add = bias[0] + np.concatenate([bias[1][:-1], 0 * bias[1][-1:]]) if after else bias.sum(0)
            peepholes = given[PEEPHOLES][d].reshape(3, hidden)[[0, 2, 1]] if PEEPHOLES in given else None
            names = activations_of(self.properties)[d * len(functions) : (d + 1) * len(functions)]
            run = Sequences(
                kind,
                names,
                number(self.properties, "clip"),
                flag(self.properties, "input_forget"),
                r,
                bias[1][-1:] if after else peepholes,
            )
            begin = [np.zeros((batch, hidden)) if s is None else s[d] for s in states]
            gates = np.einsum("tbi,ghi->tgbh", x, w) + add[:, None]
            found.append(run(gates, begin, given.get(LENGTHS, np.full(batch, time)), bool(reverse)))
        y, *ends = [np.stack(parts, 1 if i == 0 else 0) for i, parts in enumerate(zip(*found, strict=True))]
        return [y.transpose(2, 0, 1, 3), *(end.swapaxes(0, 1) for end in ends)] if layout else [y, *ends]

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        """One recurrence for all directions, or one for each if their activations differ."""
        emit = Emit(self, rewriter)
        functions, count = activations_of(self.properties), len(DIRECTIONS[text(self.properties, "direction")])
        each = len(functions) // count
        alike = functions[:each] == functions[-each:]
        layout = flag(self.properties, "layout")
        x = emit.keep(TransposeOp, self.x, perm=[1, 0, 2]) if layout else self.x
        groups = [range(count)] if alike else [range(d, d + 1) for d in range(count)]
        parts = [self._directions(emit, x, group, functions[group.start * each :][:each]) for group in groups]
        results: list[SSAValue] = []
        for i, (values, wanted) in enumerate(zip(zip(*parts, strict=True), self.results, strict=True)):
            value = values[0] if alike else emit(ConcatOp, *values, element=element(values[0]), axis=0 if i else 1)
            if layout:
                value = emit.keep(TransposeOp, value, perm=[1, 0, 2] if i else [2, 0, 1, 3])
            results.append(_as(emit, value, element(wanted)))
        return results

    def _directions(self, emit: Emit, x: SSAValue, group: range, functions: Sequence[Activation]) -> Sequence[SSAValue]:
        """The results of some directions."""
        kind, order = self.kind(self.properties), self.ORDER
        hidden, size, count = shape(self.r)[2], shape(self.w)[2], len(self.ORDER)
        part = partial(_part, emit, axis=0, start=group.start, size=len(group))
        w, r = (
            _select(emit, emit.keep(ReshapeOp, part(value), shape=[len(group), count, hidden, k]), order)
            for value, k in ((self.w, size), (self.r, hidden))
        )
        bias, inside = self._bias(emit, part)
        flat = [len(group) * count * hidden]
        gates = emit(
            MatMulOp,
            x,
            emit.keep(ReshapeOp, w, shape=[*flat, size]),
            None if bias is None else emit.keep(ReshapeOp, bias, shape=flat),
            element=f32,
            trans_b=True,
        )
        states = {i: self.given(place) for i, place in enumerate((INITIAL_H, INITIAL_C)[: STATES[kind]])}
        known = {i: _as(emit, self._state(emit, part, value), f32) for i, value in states.items() if value is not None}
        if (peepholes := self.given(PEEPHOLES)) is not None:
            inside = emit.keep(ReshapeOp, part(_as(emit, peepholes, f32)), shape=[len(group), 3, hidden])
            inside = _select(emit, inside, (0, 2, 1))
        return emit.all(
            RecurrenceOp,
            gates,
            _pack(emit, r, kind),
            *known.values(),
            inside,
            _needed(self.given(LENGTHS), shape(gates)[0]),
            cell=kind,
            activations=ArrayAttr([StringAttr(str(function)) for function in functions]),
            reverse=DIRECTIONS[text(self.properties, "direction")][group.start : group.stop],
            initial=list(known),
            clip=self.clip,
            coupled=flag(self.properties, "input_forget") or None,
            peephole=None if peepholes is None else True,
        )

    def _bias(self, emit: Emit, part: "partial[SSAValue]") -> tuple[SSAValue | None, SSAValue | None]:
        """(what x·W takes: [D, G, H], what h·R takes inside the cell: [D, 1, H] of a `gru_after`)."""
        count, hidden = len(self.ORDER), shape(self.r)[2]
        bias, after = self.given(BIAS), self.kind(self.properties) == "gru_after"
        if bias is None:
            directions = shape(part(self.r))[0]
            zero = np.zeros((1, 1, 1), np.float32)
            return None, emit.keep(ExpandOp, emit.constant(zero, f32), shape=[directions, 1, hidden]) if after else None
        bias = part(_as(emit, bias, f32))
        both = emit.keep(ReshapeOp, bias, shape=[shape(bias)[0], 2 * count, hidden])
        own, recurrent = (
            _select(emit, _part(emit, both, axis=1, start=start, size=count), self.ORDER) for start in (0, count)
        )
        if not after:
            return emit(AddOp, own, recurrent, element=f32), None
        outer = [_part(emit, value, axis=1, start=0, size=2) for value in (own, recurrent)]
        new = [_part(emit, value, axis=1, start=2, size=1) for value in (own, recurrent)]
        total = emit(AddOp, *outer, element=f32)
        return emit(ConcatOp, total, new[0], element=f32, axis=1), new[1]

    def _state(self, emit: Emit, part: "partial[SSAValue]", value: SSAValue) -> SSAValue:
        """[D, B, H] of an initial state."""
        return part(emit.keep(TransposeOp, value, perm=[1, 0, 2]) if flag(self.properties, "layout") else value)


def _activation(name: str, parameters: Sequence[Iterator[float]]) -> Activation:
    """An activation; those with parameters take the next ones of the node's lists. Raises `InferError`."""
    if name not in ACTIVATIONS:
        raise InferError(f"an activation is one of {', '.join(ACTIVATIONS)} (found {name!r})", broken=True)
    found = [next(values, default) for values, default in zip(parameters, ACTIVATIONS[name], strict=False)]
    given = tuple(float(value) for value in found if value is not None)
    if len(given) < len(found):
        raise InferError(f"{name} has activation_alpha and activation_beta (found none)")
    return Activation(name, given)


def _as(emit: Emit, value: SSAValue, kind: Attribute) -> SSAValue:
    """The value with elements of a type."""
    return value if element(value) == kind else emit(CastOp, value, element=kind)


def _part(emit: Emit, value: SSAValue, axis: int, start: int, size: int) -> SSAValue:
    """Some positions of an axis."""
    extents = list(shape(value))
    if extents[axis] == size:
        return value
    starts = [start if i == axis else 0 for i in range(len(extents))]
    extents[axis] = size
    return emit.keep(SliceOp, value, starts=starts, sizes=extents, steps=[1] * len(extents))


def _select(emit: Emit, value: SSAValue, order: Sequence[int]) -> SSAValue:
    """Positions of axis 1 in another order."""
    if list(order) == list(range(len(order))):
        return value
    parts = [_part(emit, value, axis=1, start=place, size=1) for place in order]
    return emit(ConcatOp, *parts, element=element(value), axis=1)


def _pack(emit: Emit, weight: SSAValue, cell: str) -> SSAValue:
    """[D, G, H, H] as the [D, G·H, H] of `graph.recurrence`: rows (unit, gate), of a `gru` in two parts."""
    directions, count, hidden, _ = shape(weight)
    parts: list[SSAValue] = []
    for start, size in ((0, 2), (2, 1)) if cell == "gru" else ((0, count),):
        part = emit.keep(TransposeOp, _part(emit, weight, axis=1, start=start, size=size), perm=[0, 2, 1, 3])
        parts.append(emit.keep(ReshapeOp, part, shape=[directions, size * hidden, hidden]))
    return parts[0] if len(parts) == 1 else emit(ConcatOp, *parts, element=element(weight), axis=1)


def _needed(lengths: SSAValue | None, time: int) -> SSAValue | None:
    """The lengths, unless all are known to be those of the whole."""
    known = lengths.owner if lengths is not None else None
    return None if isinstance(known, ConstantOp) and bool(np.all(known.array == time)) else lengths


@irdl_op_definition
class LstmOp(OnnxRecurrent):
    """LSTM: i, o, f = σ(x·W + h·R + b [+ p·c]), c = f·c + i·tanh(…), h = o·tanh(c).

    Gates of W, R and B are in ONNX's order i, o, f, c. `input_forget`: f = 1 − i.
    """

    name = "graph.lstm"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("LSTM", 7),)
    EXAMPLE: ClassVar[str] = (
        '%4, %5, %6 = graph.lstm %0, %1, %2, %3 {inputs = [0, 1, 2, 3], direction = "forward",'
        ' activations = ["sigmoid", "tanh", "tanh"]}'
        " : (tensor<2x2x3xf32>, tensor<1x16x3xf32>, tensor<1x16x4xf32>, tensor<1x32xf32>)"
        " -> (tensor<2x1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>)"
    )
    KIND: ClassVar[str] = "lstm"
    ORDER: ClassVar[tuple[int, ...]] = (0, 2, 1, 3)
    FLAG: ClassVar[str | None] = "input_forget"

    input_forget = opt_prop_def(BoolAttr)
    y_c = result_def(TensorType)


@irdl_op_definition
class GruOp(OnnxRecurrent):
    """GRU: z, r = σ(x·W + h·R + b), n = tanh(x·W + (r·h)·R + b), h = (1 − z)·n + z·h.

    With `linear_before_reset`, n = tanh(x·W + b + r·(h·R + b)).
    """

    name = "graph.gru"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("GRU", 7),)
    EXAMPLE: ClassVar[str] = (
        '%3, %4 = graph.gru %0, %1, %2 {inputs = [0, 1, 2], direction = "reverse", activations = ["sigmoid", "tanh"]}'
        " : (tensor<2x2x3xf32>, tensor<1x12x3xf32>, tensor<1x12x4xf32>) -> (tensor<2x1x2x4xf32>, tensor<1x2x4xf32>)"
    )
    KIND: ClassVar[str] = "gru"
    ORDER: ClassVar[tuple[int, ...]] = (0, 1, 2)
    FLAG: ClassVar[str | None] = "linear_before_reset"

    linear_before_reset = opt_prop_def(BoolAttr)

    @classmethod
    def kind(cls, properties: Properties) -> str:
        return "gru_after" if flag(properties, "linear_before_reset") else "gru"


@irdl_op_definition
class RnnOp(OnnxRecurrent):
    """RNN: h = tanh(x·W + h·R + b)."""

    name = "graph.rnn"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("RNN", 7),)
    EXAMPLE: ClassVar[str] = (
        '%3, %4 = graph.rnn %0, %1, %2 {inputs = [0, 1, 2], direction = "bidirectional",'
        ' activations = ["tanh", "tanh"]} : (tensor<2x2x3xf32>, tensor<2x4x3xf32>, tensor<2x4x4xf32>)'
        " -> (tensor<2x2x2x4xf32>, tensor<2x2x4xf32>)"
    )
    KIND: ClassVar[str] = "rnn"
    ORDER: ClassVar[tuple[int, ...]] = (0,)
