"""How long a loop nest over tiles takes: a model to rank schedules by, without a program.

A `Nest` says what a kernel does, engine by engine, with its sizes left open; `replay` runs it for many choices of those
sizes. It is the recurrence of docs/timing.md in program order (max-plus): an operation starts when its engine is free,
the buffers that it reads are filled, and the slots that it overwrites are read:

    start = max(end of the operation before it on its engine, enter, ready of what it reads, last use of what it writes)
    end   = start + fixed + unit · ∏ ⌈(a·extent + b) / g⌉

A buffer's slots advance with the loop that it belongs to. Transfers go at a fixed rate, and none ends before the port
has moved what comes before it.

    nest = Nest("m", "m0", "fixed", "cost")
    with nest.loop("m", "m0") as m:
        tile = nest.buffer(2)
        nest.op(Engine.LOAD, "fixed", "cost", (m,), writes=(tile,))
        nest.op(Engine.VECTOR, "fixed", "cost", (m,), reads=(tile,))
    cycles, _ = replay(nest, values=[[1000, 128, 64, 0.5], [1000, 256, 64, 0.5]], bounds=…, handicaps=…, depth=32)
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

LOOP, END, OP = 0, 1, 2
"""Rows of a table:

    LOOP  number  size  step  outer  a  b  end      over size, at most a·(extent of outer) + b
    END   number  begin
    OP    engine  fixed  unit  3 × (loop  a  b  g)  4 × buffer read  4 × buffer written

`size`, `a` and the like name a parameter; a loop or buffer of −1 is none."""
CONSTANT = -2
"""The loop of a `Dim` whose extent is its `b`."""
FACTORS, READS, WRITES, WIDTH = 4, 16, 20, 24
"""Where the parts of an operation begin, and the words of a row."""


@dataclass(frozen=True, slots=True)
class Dim:
    """A loop's extent as a factor of a cost: ⌈(a·extent + b) / g⌉; a, b and g are numbers or parameters."""

    loop: int
    a: "float | str" = 1
    b: "float | str" = 0
    g: "float | str" = 0
    """0: not rounded."""

    def scaled(self, factor: float) -> "Dim":
        """Times a number."""
        return replace(self, a=_times(self.a, factor), b=_times(self.b, factor))

    def plus(self, more: float) -> "Dim":
        """More by a number."""
        if isinstance(self.b, str):
            raise ValueError("a parameter cannot be added to")
        return replace(self, b=self.b + more)


def _times(value: "float | str", factor: float) -> "float | str":
    if isinstance(value, str):
        raise ValueError("a parameter cannot be scaled")
    return value * factor


class Nest:
    """Rows of a loop nest whose numbers are `parameters`, given when it is replayed."""

    def __init__(self, *parameters: str):
        self.parameters = parameters
        self.rows: list[list[int]] = []
        self.numbers: dict[float, int] = {}
        self.buffers: list[tuple[int, int]] = []
        """The loop that each belongs to, and its slots."""
        self.loops = 0
        self._open: list[int] = []

    def _value(self, value: "float | str") -> int:
        """Where a parameter or number stands: parameters first, numbers behind them."""
        if isinstance(value, str):
            return self.parameters.index(value)
        return len(self.parameters) + self.numbers.setdefault(float(value), len(self.numbers))

    @contextmanager
    def loop(self, size: "float | str", step: "float | str", inside: Dim | None = None) -> Generator[Dim]:
        """A loop over `size` in steps; with `inside`, over that loop's current extent (times a, plus b), at most
        `size`."""
        number = self.loops
        self.loops += 1
        begin = len(self.rows)
        outer = [-1, 0, 0] if inside is None else [inside.loop, self._value(inside.a), self._value(inside.b)]
        self.rows.append([LOOP, number, self._value(size), self._value(step), *outer, 0])
        self._open.append(number)
        yield Dim(number)
        self._open.pop()
        self.rows[begin][7] = len(self.rows)
        self.rows.append([END, number, begin])

    def buffer(self, slots: "int | str" = 2) -> int:
        """A buffer of the innermost open loop."""
        self.buffers.append((self._open[-1] if self._open else -1, self._value(slots)))
        return len(self.buffers) - 1

    def op(
        self,
        engine: int,
        fixed: "float | str",
        unit: "float | str",
        dims: Sequence[Dim] = (),
        reads: Sequence[int] = (),
        writes: Sequence[int] = (),
    ) -> None:
        """An operation; a cost of zero fixed and zero unit is none."""
        factors = [f for d in dims for f in (d.loop, self._value(d.a), self._value(d.b), self._value(d.g))]
        row = [OP, int(engine), self._value(fixed), self._value(unit), *factors, *[-1] * (12 - len(factors))]
        for buffers in (reads, writes):
            row += [*buffers, *[-1] * (4 - len(buffers))]
        self.rows.append(row)

    def table(self) -> NDArray[np.int64]:
        """The rows, as the compiled loop reads them."""
        table = np.zeros((len(self.rows), WIDTH), np.int64)
        for row, out in zip(self.rows, table, strict=True):
            out[: len(row)] = row
        return table


def replay(
    nest: Nest,
    values: NDArray[np.float64],
    bounds: NDArray[np.float64],
    handicaps: NDArray[np.float64],
    depth: int,
    best: float = np.inf,
    budget: int = 1 << 62,
) -> tuple[NDArray[np.float64], int]:
    """Cycles plus handicap of each row of `values` [candidates, parameters], and what is left of the budget of steps.

    `bounds` are cycles that a row takes at least. A row that cannot be better than `best` or than one before it, or for
    which the budget was used up, has inf."""
    from .replay_loop import replay_all  # loads the compiler

    numbers = np.array(list(nest.numbers), np.float64)
    table = np.concatenate([values, np.broadcast_to(numbers, (len(values), len(numbers)))], 1)
    scope = np.array(nest.buffers or [(-1, 0)], np.int64)
    out = np.full(len(values), np.inf)
    left = replay_all(nest.table(), scope, np.ascontiguousarray(table), bounds, handicaps, depth, best, budget, out)
    return out, int(left)
