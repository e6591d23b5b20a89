"""The primitive of recurrent networks: h·R and the cell, step by step.

Its weights lie as the cube takes them, the gates of a unit next to each other. `recurrent.py` makes one of ONNX's
operators.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, BoolAttr, DenseArrayBase, FloatAttr, StringAttr, TensorType
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)

from ..recurrence import Activation, Cell, Options, Recurrence, gru, lstm, rnn
from .op import Array, DtypeError, GraphOp, InferError, ShapeError, Tensor, f32, i32, shape
from .properties import Properties, flag, ints, number, text

GATES = {"lstm": 4, "gru": 3, "gru_after": 3, "rnn": 1}
STATES = {"lstm": 2, "gru": 1, "gru_after": 1, "rnn": 1}
"""Gates of a cell, and the states that it carries from step to step: h, and c of an LSTM."""

FUNCTIONS = {
    "lstm": ("sigmoid", "tanh", "tanh"),
    "gru": ("sigmoid", "tanh"),
    "gru_after": ("sigmoid", "tanh"),
    "rnn": ("tanh",),
}
"""ONNX's default activations: f, g and h of the standard."""


class Recurrent(GraphOp):
    """Common to all: several results, of which `reference` and `evaluate` give the first."""

    def reference(self, *operands: Any, **_: Any) -> Array:
        return self.reference_all(*operands)[0]

    def reference_all(self, *operands: Any) -> Sequence[Array]:
        raise NotImplementedError

    def evaluate_all(self, *operands: Array) -> Sequence[Array]:
        from ..evaluate import evaluate_structure

        return evaluate_structure(self, operands)


def activations_of(properties: Properties) -> list[Activation]:
    """The property `activations`; raises `InferError`."""
    found = properties.get("activations")
    names = [item.data for item in found if isinstance(item, StringAttr)] if isinstance(found, ArrayAttr) else []
    try:
        return [Activation.parse(name) for name in names]
    except ValueError as error:
        raise InferError(str(error)) from None


def check_shape(operand: Tensor, size: Sequence[int], what: str) -> None:
    """Raises `InferError` for an operand of another shape."""
    if operand.get_shape() != tuple(size):
        raise ShapeError(f"{what} is {list(size)} (found {operand})")


@irdl_op_definition
class RecurrenceOp(Recurrent):
    """The time steps of an LSTM, GRU or RNN in each direction: h and c from what came before and the gates' x·W + b.

    Operands: gates [T, B, D·G·H], f32, gate by gate in the cell's order (lstm: i, f, o, c̃; gru: z, r, h̃); the
    recurrent weight [D, G·H, H], whose rows are (unit, gate), of a `gru` those of h̃ behind the others; the states of
    the property `initial` (0: h, 1: c), f32 [D, B, H], the others start at 0; with `peephole` those of i, f, o, f32
    [D, 3, H], of a `gru_after` (r multiplies h·R + b) that b, f32 [D, 1, H]; and lengths, i32 [B], or none.

    With `rounded` the weight of an lstm holds integers, the vectors have their scales behind the peepholes, f32
    [D, 4, H], and each step rounds h of all sequences to bytes by their range before it multiplies it; time with
    lengths runs forwards then, so that all sequences begin at one step.

    Results: h of every step [T, D, B, H], of the weight's type (f32 if `rounded`) and 0 beyond a sequence's length;
    then the last states, f32 [D, B, H]. `reverse` has for each direction whether its time runs backwards.
    """

    name = "graph.recurrence"
    EXAMPLE: ClassVar[str] = (
        '%2, %3 = graph.recurrence %0, %1 {cell = "rnn", activations = ["tanh"], reverse = [0], initial = []}'
        " : (tensor<2x2x4xf32>, tensor<1x4x4xf32>) -> (tensor<2x1x2x4xf32>, tensor<1x2x4xf32>)"
    )

    gates = operand_def(TensorType)
    weight = operand_def(TensorType)
    more = var_operand_def(TensorType)
    cell = prop_def(StringAttr)
    activations = prop_def(ArrayAttr)
    reverse = prop_def(DenseArrayBase)
    initial = prop_def(DenseArrayBase)
    clip = opt_prop_def(FloatAttr)
    coupled = opt_prop_def(BoolAttr)
    peephole = opt_prop_def(BoolAttr)
    rounded = opt_prop_def(BoolAttr)
    result = result_def(TensorType)
    states = var_result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        gates, weight, *more = operands
        cell, functions = text(properties, "cell"), len(activations_of(properties))
        if cell not in GATES or functions != len(FUNCTIONS[cell]):
            raise InferError(
                f"the cell is one of {', '.join(GATES)}, with an activation for each kind of gate"
                f" (found {cell!r}, {functions})"
            )
        directions, count = len(ints(properties, "reverse")), GATES[cell]
        if weight.get_num_dims() != 3 or gates.get_num_dims() != 3:
            raise ShapeError(f"gates and weight have three axes (found {gates} and {weight})")
        (time, batch, _), hidden = gates.get_shape(), weight.get_shape()[2]
        check_shape(weight, (directions, count * hidden, hidden), "the weight")
        check_shape(gates, (time, batch, directions * count * hidden), "gates")
        initial, vectors = len(ints(properties, "initial")), _vectors(properties)
        if not initial + bool(vectors) <= len(more) <= initial + bool(vectors) + 1:
            raise ShapeError(
                f"operands are gates, weight, {initial} states, {bool(vectors):d} vectors and lengths (found"
                f" {len(operands)})"
            )
        for state in more[:initial]:
            check_shape(state, (directions, batch, hidden), "a state")
        if vectors:
            check_shape(more[initial], (directions, vectors, hidden), "peepholes or bias")
        for lengths in more[initial + bool(vectors) :]:
            check_shape(lengths, (batch,), "lengths")
            if lengths.element_type != i32:
                raise DtypeError(f"lengths are i32 (found {lengths})")
            if flag(properties, "rounded") and any(ints(properties, "reverse")):
                raise InferError("what is rounded runs forwards where sequences have lengths (found reverse)")
        kind = f32 if flag(properties, "rounded") else weight.element_type
        y = TensorType(kind, (time, directions, batch, hidden))
        return [y, *[TensorType(f32, (directions, batch, hidden))] * STATES[cell]]

    @property
    def is_masked(self) -> bool:
        """Whether sequences have lengths of their own."""
        return len(self.more) > len(ints(self.properties, "initial")) + bool(_vectors(self.properties))

    def recurrence(self) -> Recurrence:
        time, batch, _ = shape(self.gates)
        reverse = tuple(map(bool, ints(self.properties, "reverse")))
        initial = ints(self.properties, "initial")
        return Recurrence(self._cell(), reverse, initial, time, batch, shape(self.weight)[2])

    def _cell(self) -> Cell:
        functions = activations_of(self.properties)
        options = Options(number(self.properties, "clip"), self.is_masked)
        match text(self.properties, "cell"):
            case "lstm":
                peephole, coupled = flag(self.properties, "peephole"), flag(self.properties, "coupled")
                rounded = flag(self.properties, "rounded")
                return lstm(functions, options, peephole=peephole, coupled=coupled, rounded=rounded)
            case "rnn":
                return rnn(functions, options)
            case name:
                return gru(functions, options, reset_after=name == "gru_after")

    def reference_all(self, *operands: Array) -> Sequence[Array]:
        gates, weight, *more = operands
        cell, (time, batch, _) = text(self.properties, "cell"), shape(self.gates)
        hidden, count = weight.shape[2], GATES[cell]
        initial, vectors = ints(self.properties, "initial"), _vectors(self.properties)
        states = [np.zeros((len(weight), batch, hidden))] * STATES[cell]
        for place, operand in zip(initial, more, strict=False):
            states[place] = operand
        xs = gates.reshape(time, batch, -1, count, hidden)
        found: list[list[Array]] = []
        for d, reverse in enumerate(ints(self.properties, "reverse")):
            run = Sequences(
                cell,
                activations_of(self.properties),
                number(self.properties, "clip"),
                flag(self.properties, "coupled"),
                _unpacked(weight[d], cell),
                more[len(initial)][d] if vectors else None,
                flag(self.properties, "rounded"),
            )
            lengths = more[-1] if self.is_masked else np.full(batch, time)
            found.append(run(xs[:, :, d].transpose(0, 2, 1, 3), [s[d] for s in states], lengths, bool(reverse)))
        return [np.stack(parts, 1 if i == 0 else 0) for i, parts in enumerate(zip(*found, strict=True))]


def _unpacked(weight: Array, cell: str) -> Array:
    """[gates, hidden, hidden] of one direction's packed weight."""
    hidden = weight.shape[1]
    parts = np.split(weight, [2 * hidden]) if cell == "gru" else [weight]
    return np.concatenate([part.reshape(hidden, -1, hidden).transpose(1, 0, 2) for part in parts])


def _vectors(properties: Properties) -> int:
    """Vectors that the cell takes: peepholes and scales of the weights, or the bias inside a `gru_after`."""
    if text(properties, "cell") == "gru_after":
        return 1
    return 3 * flag(properties, "peephole") + 4 * flag(properties, "rounded")


# reference ------------------------------------------------------------------------------------------------------------
def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


_NUMPY: Mapping[str, Callable[..., Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "affine": lambda x, a, b: a * x + b,
    "leakyrelu": lambda x, a: np.where(x < 0, a * x, x),
    "thresholdedrelu": lambda x, a: np.where(x >= a, x, 0),
    "scaledtanh": lambda x, a, b: a * np.tanh(b * x),
    "hardsigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "elu": lambda x, a: np.where(x < 0, a * np.expm1(x), x),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "softplus": lambda x: np.logaddexp(x, 0),
}


@dataclass(frozen=True)
class Sequences:
    """One direction in numpy: gates in the cell's order, `recurrent` [gates, hidden, hidden], `vectors` peepholes and
    scales or the bias inside a `gru_after`; `rounded`: h is made bytes before it is multiplied."""

    cell: str
    activations: Sequence[Activation]
    clip: float
    coupled: bool
    recurrent: Array
    vectors: Array | None
    rounded: bool = False

    def __call__(self, gates: Array, states: Sequence[Array], lengths: Array, reverse: bool) -> list[Array]:
        """y [T, B, H] and the last states, from gates [T, G, B, H]."""
        y, time = np.zeros((len(gates), *gates.shape[2:])), range(len(gates))
        goes_on = np.ones((gates.shape[2], 1), np.bool_)
        for t in reversed(time) if reverse else time:
            fed = _as_bytes(np.where(goes_on, states[0], 0)) if self.rounded else states[0]
            goes_on = (t < lengths)[:, None]
            after = self.step(gates[t], fed, *states[1:])
            states = [np.where(goes_on, new, old) for new, old in zip(after, states, strict=True)]
            y[t] = np.where(goes_on, states[0], 0)
        return [y, *states]

    def apply(self, which: int, x: Array) -> Array:
        """An activation, of what is clipped."""
        return self._function(which, np.clip(x, -self.clip, self.clip) if self.clip else x)

    def _function(self, which: int, x: Array) -> Array:
        function = self.activations[which]
        return _NUMPY[function.name](x, *function.parameters)

    def step(self, x: Array, h: Array, c: Array | None = None) -> list[Array]:
        """The states after one step."""
        if c is not None:
            return self._lstm(x, h, c)
        if self.cell == "rnn":
            return [self.apply(0, x[0] + h @ self.recurrent[0].T)]
        z, r = (self.apply(0, x[i] + h @ self.recurrent[i].T) for i in range(2))
        if self.vectors is None:
            new = x[2] + (r * h) @ self.recurrent[2].T
        else:
            new = x[2] + r * (h @ self.recurrent[2].T + self.vectors[0])
        return [(1 - z) * self.apply(1, new) + z * h]

    def _lstm(self, x: Array, h: Array, c: Array) -> list[Array]:
        p = np.zeros((3, 1)) if self.vectors is None or len(self.vectors) == 4 else self.vectors[:3]
        scales = self.vectors[-4:] if self.rounded and self.vectors is not None else np.ones((4, 1))
        i, f, o, new = (x[n] + h @ self.recurrent[n].T * scales[n] for n in range(4))
        i = self.apply(0, i + p[0] * c)
        f = 1 - i if self.coupled else self.apply(0, f + p[1] * c)
        c = f * c + i * self.apply(1, new)
        return [self.apply(0, o + p[2] * c) * self._function(2, c), c]


def _as_bytes(x: Array) -> Array:
    """x as bytes by its range, and back."""
    low, high = min(x.min(), 0), max(x.max(), 0)
    scale = (high - low) / 255 or 1.0
    zero = np.rint(-low / scale)
    return (np.clip(np.rint(x / scale) + zero, 0, 255) - zero) * scale
