"""A recurrence as data: what a recurrent operator does in each time step, independent of any machine.

A step of the recurrence computes *registers*, tensors [batch, hidden], in *phases*. A phase multiplies one row
register (the state h, rounded to the type of the weights) by the recurrent weights of its gates, and then runs *steps*,
functions of the vector engine in f32. An RNN without options:

    phase   row 0 times gate 0
      temp 0 = add(product 0, input 0)           input: the gate's x·W + b of this time step
      row 0  = tanh(temp 0)                      rounded to the type of the weights

A cell may have steps *between*, which run at the start and after each time step: first those that reduce a register to
a scalar and compute with scalars, then others. So an LSTM rounds h to bytes by its range before it is multiplied.

| space | what it holds | lives for |
|---|---|---|
| `product`, `input` | of each gate of the phase: h·R, and x·W + b | the phase |
| `temp` | f32 | the phase |
| `state` | f32 | the sequence |
| `row` | of the weights' type | the sequence |
| `vector` | f32 operands [hidden]: peepholes, a bias | everything |
| `scalar` | one f32 number of each register that was reduced, and what is computed of them | the step |
| `mask` | whether the sequence of a batch element goes on in this step | the step |
| `initial`, `final` | f32: the operands that the sequence starts with, the results it ends with | its begin, its end |

A step of width n works on n registers from each place on; numbers, `mask`, `scalar` and `vector` of one index are
broadcast.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Space = Literal["product", "input", "temp", "state", "row", "vector", "scalar", "mask", "initial", "final"]


@dataclass(frozen=True, slots=True)
class Ref:
    """A register; those of `product` and `input` count within their phase."""

    space: Space
    index: int = 0


Operand = Ref | float


@dataclass(frozen=True, slots=True)
class Step:
    """out = fn(operands), a function of `runtime.numerics.functions`, on `width` registers; or a reduction of all of a
    register to a scalar, `reduce_max` or `reduce_min`."""

    fn: str
    out: Ref
    operands: tuple[Operand, ...]
    width: int = 1

    @property
    def reduction(self) -> str:
        """`max` or `min`; nothing for a function."""
        return self.fn.removeprefix("reduce_") if self.fn.startswith("reduce_") else ""


@dataclass(frozen=True, slots=True)
class Phase:
    """`row` times the weights of gates `first` … `first + gates − 1`, then the steps."""

    row: int
    first: int
    gates: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One time step of any recurrent operator; `y`, a row or a state, is what is written out. What stands `between`
    takes all sequences and units together."""

    phases: tuple[Phase, ...]
    start: tuple[Step, ...]
    finish: tuple[Step, ...]
    y: Ref = Ref("row")
    between: tuple[Step, ...] = ()

    def steps(self) -> Iterator[Step]:
        """Every step."""
        yield from self.start
        for phase in self.phases:
            yield from phase.steps
        yield from self.between
        yield from self.finish

    def count(self, space: Space) -> int:
        """Registers of a space."""
        places = [(ref, step.width) for step in self.steps() for ref in (step.out, *step.operands)]
        return max((r.index + width for r, width in places if isinstance(r, Ref) and r.space == space), default=0)

    @property
    def gates(self) -> int:
        return sum(phase.gates for phase in self.phases)

    @property
    def fed(self) -> frozenset[int]:
        """The rows that are multiplied."""
        return frozenset(phase.row for phase in self.phases)


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A cell over `time` steps of `batch` sequences with `hidden` units, in each of the directions.

    Operands: gates [time, batch, directions·gates·hidden], f32; weight [directions, gates·hidden, hidden], of each
    phase the rows (unit, gate); the initial registers, each [directions, batch, hidden], f32; with vectors, all of
    them as [directions, vectors, hidden], f32; with a mask, the lengths [batch], i32. Results: the rows y as [time,
    directions, batch, hidden] and the final registers, each [directions, batch, hidden], f32.
    """

    cell: Cell
    reverse: tuple[bool, ...]
    """Of each direction whether its time runs backwards."""
    initial: tuple[int, ...]
    """The initial registers that operands give; the others are +0."""
    time: int
    batch: int
    hidden: int


@dataclass(frozen=True, slots=True)
class Activation:
    """A function that ONNX names, with its parameters."""

    name: str
    parameters: tuple[float, ...] = ()

    @staticmethod
    def parse(text: str) -> "Activation":
        """`tanh`, `scaledtanh(1.5, 0.7)`. Raises `ValueError`."""
        name, _, rest = text.removesuffix(")").partition("(")
        found = Activation(name, tuple(float(part) for part in rest.split(",") if part.strip()))
        if name not in ACTIVATIONS or len(found.parameters) != len(ACTIVATIONS[name]):
            raise ValueError(f"an activation is one of {', '.join(ACTIVATIONS)} with its parameters (found {text!r})")
        return found

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.parameters))})" if self.parameters else self.name

    def steps(self, x: Ref, out: Ref, spare: Ref, width: int = 1) -> list[Step]:
        """out = f(x) by way of `spare`."""
        a, b = (*self.parameters, 0.0, 0.0)[:2]
        match self.name:
            case "scaledtanh":
                parts: list[tuple[str, Ref, tuple[Operand, ...]]] = [
                    ("mul", spare, (x, b)),
                    ("tanh", spare, (spare,)),
                    ("mul", out, (spare, a)),
                ]
            case "thresholdedrelu":
                parts = [("ge", spare, (x, a)), ("where", out, (spare, x, 0.0))]
            case "softsign":
                parts = [("abs", spare, (x,)), ("add", spare, (spare, 1.0)), ("div", out, (x, spare))]
            case _:
                parts = [(self.name, out, (x, *self.parameters))]
        return [Step(fn, target, operands, width) for fn, target, operands in parts]


ACTIVATIONS: dict[str, tuple[float | None, ...]] = {
    "relu": (),
    "tanh": (),
    "sigmoid": (),
    "affine": (None, None),
    "leakyrelu": (0.01,),
    "thresholdedrelu": (1.0,),
    "scaledtanh": (None, None),
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0,),
    "softsign": (),
    "softplus": (),
}
"""By name in lower case the parameters, alpha before beta, with ONNX's defaults; None: the standard has none."""


# cells ----------------------------------------------------------------------------------------------------------------
def _refs(space: Space, count: int) -> list[Ref]:
    return [Ref(space, index) for index in range(count)]


_MASK = Ref("mask")
_ROW, _STATE, _SCALE = Ref("row"), Ref("state"), Ref("scalar")
LEAST_SCALE = 2.0**-126
"""Of zeros alone: not 0, by which nothing can be divided."""


@dataclass(frozen=True, slots=True)
class Options:
    """What all cells share: the bound of what goes into gates' activations (0: none), and lengths."""

    clip: float = 0.0
    masked: bool = False

    def clipped(self, x: Ref, width: int = 1) -> list[Step]:
        """x within the bound."""
        return [Step("clip", x, (x, -self.clip, self.clip), width)] if self.clip else []

    def kept(self, new: Ref, old: Ref) -> list[Step]:
        """old = new where the sequence goes on."""
        return [Step("where", old, (_MASK, new, old))]


def lstm(
    activations: Sequence[Activation],
    options: Options,
    *,
    peephole: bool = False,
    coupled: bool = False,
    rounded: bool = False,
) -> Cell:
    """Gates i, f, o, c̃; row 0 is h, state 0 is c. `vector`s are the peepholes of i, f and o; `coupled`: f = 1 − i.

    `rounded`: state 1 is h, row 0 that as bytes less their zero point, with a range in which sequences that have ended
    are 0; the weights are integers, whose scales, four more vectors, stand behind the peepholes.
    """
    f, g, h = activations
    i, forget, o, new = _refs("temp", 4)
    spare, c = Ref("temp", 4), _STATE
    steps = _gates(i, Ref("vector", 3 * peephole) if rounded else None)
    if peephole:
        steps += [Step("affine", gate, (Ref("vector", n), c, gate)) for n, gate in enumerate((i, forget))]
        steps += [*options.clipped(i, 2), *f.steps(i, i, spare, 2), *options.clipped(new)]
    else:
        steps += [*options.clipped(i, 4), *f.steps(i, i, spare, 3)]
    steps += g.steps(new, new, spare)
    if coupled:
        steps.append(Step("affine", forget, (i, -1.0, 1.0)))
    current = forget if options.masked else c
    steps += [Step("mul", new, (i, new)), Step("affine", current, (forget, c, new))]
    if peephole:
        steps += [Step("affine", o, (Ref("vector", 2), current, o)), *options.clipped(o), *f.steps(o, o, spare)]
    steps += h.steps(current, new, spare)
    kept = Ref("state", 1) if rounded else _ROW
    y = Ref("state", 2) if rounded else Ref("row", 1)
    if options.masked:
        steps += [Step("mul", y, (o, new)), *options.kept(current, c), *options.kept(y, kept)]
        steps.append(Step("where", y, (_MASK, y, 0.0)))
    else:
        y = kept
        steps.append(Step("mul", y, (o, new)))
    start = (Step("copy", kept, (Ref("initial"),)), Step("copy", c, (Ref("initial", 1),)))
    if rounded and options.masked:
        start = (*start, Step("copy", y, (kept,)))
    finish = (Step("copy", Ref("final"), (kept,)), Step("copy", Ref("final", 1), (c,)))
    between = _to_bytes(y, _ROW, Ref("temp")) if rounded else ()
    return Cell((Phase(0, 0, 4, tuple(steps)),), start, finish, y, between)


def _gates(out: Ref, scales: Ref | None) -> list[Step]:
    """All that an activation takes but peepholes: of integers, their products times both scales."""
    product, x = Ref("product"), Ref("input")
    if scales is None:
        return [Step("add", out, (product, x), 4)]
    return [Step("mul", out, (product, scales), 4), Step("affine", out, (out, _SCALE, x), 4)]


def _to_bytes(x: Ref, out: Ref, spare: Ref) -> tuple[Step, ...]:
    """out = round(x ÷ s) + z within 0 and 255, less z, with the scale s and zero point z of the range of x and 0."""
    zero, low = Ref("scalar", 1), Ref("scalar", 2)
    return (
        Step("reduce_max", _SCALE, (x,)),
        Step("reduce_min", low, (x,)),
        Step("max", _SCALE, (_SCALE, 0.0)),
        Step("min", low, (low, 0.0)),
        Step("sub", _SCALE, (_SCALE, low)),
        Step("div", _SCALE, (_SCALE, 255.0)),
        Step("max", _SCALE, (_SCALE, LEAST_SCALE)),
        Step("neg", zero, (low,)),
        Step("div", zero, (zero, _SCALE)),
        Step("round", zero, (zero,)),
        Step("div", spare, (x, _SCALE)),
        Step("round", spare, (spare,)),
        Step("add", spare, (spare, zero)),
        Step("clip", spare, (spare, 0.0, 255.0)),
        Step("sub", out, (spare, zero)),
    )


def gru(activations: Sequence[Activation], options: Options, *, reset_after: bool = False) -> Cell:
    """Gates z, r, h̃; state 0 is h in f32, row 0 is h rounded. `reset_after`: r multiplies h·R + b (`vector` 0)."""
    f, g = activations
    z, r = _refs("temp", 2)
    spare = Ref("temp", 3 if reset_after else 2)
    gates = [Step("add", z, (Ref("product"), Ref("input")), 2), *options.clipped(z, 2), *f.steps(z, z, spare, 2)]
    if reset_after:
        new, rest = Ref("temp", 2), Ref("temp", 1)
        gates += [
            Step("add", new, (Ref("product", 2), Ref("vector"))),
            Step("affine", new, (r, new, Ref("input", 2))),
            *options.clipped(new),
            *g.steps(new, new, spare),
        ]
        phases = [Phase(0, 0, 3, (*gates, *_blended(z, new, rest, options)))]
    else:
        update, new, rest = Ref("state", 1), Ref("temp"), Ref("temp", 1)
        fed = Ref("row", 1)
        gates += [Step("mul", fed, (r, _STATE)), Step("copy", update, (z,))]
        last = [
            Step("add", new, (Ref("product"), Ref("input"))),
            *options.clipped(new),
            *g.steps(new, new, spare),
        ]
        phases = [Phase(0, 0, 2, tuple(gates)), Phase(1, 2, 1, (*last, *_blended(update, new, rest, options)))]
    start = (Step("copy", _STATE, (Ref("initial"),)), Step("copy", _ROW, (_STATE,)))
    return Cell(tuple(phases), start, (Step("copy", Ref("final"), (_STATE,)),), Ref("row", 2 if options.masked else 0))


def _blended(z: Ref, new: Ref, rest: Ref, options: Options) -> tuple[Step, ...]:
    """h = z·h + (1 − z)·new, and its rows."""
    steps = [Step("affine", rest, (z, -1.0, 1.0)), Step("mul", rest, (rest, new))]
    if not options.masked:
        return (*steps, Step("affine", _STATE, (z, _STATE, rest)), Step("copy", _ROW, (_STATE,)))
    y = Ref("row", 2)
    return (
        *steps,
        Step("affine", rest, (z, _STATE, rest)),
        *options.kept(rest, _STATE),
        Step("copy", _ROW, (_STATE,)),
        Step("where", y, (_MASK, _ROW, 0.0)),
    )


def rnn(activations: Sequence[Activation], options: Options) -> Cell:
    """One gate; row 0 is h."""
    (f,) = activations
    x, y = Ref("temp"), Ref("row", 1) if options.masked else _ROW
    steps = [Step("add", x, (Ref("product"), Ref("input"))), *options.clipped(x), *f.steps(x, y, Ref("temp", 1))]
    if options.masked:
        steps += [*options.kept(y, _ROW), Step("where", y, (_MASK, y, 0.0))]
    start = (Step("copy", _ROW, (Ref("initial"),)),)
    return Cell((Phase(0, 0, 1, tuple(steps)),), start, (Step("copy", Ref("final"), (_ROW,)),), y)
