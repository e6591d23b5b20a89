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
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from .isa import Engine
from .jit import jit

LOOP, END, OP = 0.0, 1.0, 2.0
CONSTANT = -2
"""The loop of a `Dim` whose extent is its `b`."""
WIDTH = 24
MOST_BUFFERS, MOST_SLOTS, MOST_LOOPS, ENGINES = 32, 8, 12, 7
LOAD, STORE = int(Engine.LOAD), int(Engine.STORE)
_READS, _WRITES = 16, 20


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


@dataclass
class Nest:
    """Rows of a loop nest whose numbers are `parameters`, given when it is replayed."""

    parameters: tuple[str, ...]
    rows: list[list[float]] = field(default_factory=list)
    numbers: dict[float, int] = field(default_factory=dict)
    buffers: list[tuple[int, int]] = field(default_factory=list)
    loops: int = 0
    _open: list[int] = field(default_factory=list)

    def __init__(self, *parameters: str):
        self.parameters = parameters
        self.rows, self.numbers, self.buffers, self.loops, self._open = [], {}, [], 0, []

    def _value(self, value: "float | str") -> float:
        """Where a parameter or number stands: parameters first, numbers behind them."""
        if isinstance(value, str):
            return float(self.parameters.index(value))
        return float(len(self.parameters) + self.numbers.setdefault(float(value), len(self.numbers)))

    @contextmanager
    def loop(self, size: "float | str", step: "float | str", inside: Dim | None = None) -> Generator[Dim]:
        """A loop over `size` in steps; with `inside`, over that loop's current extent (times a, plus b), at most
        `size`."""
        number = self.loops
        self.loops += 1
        begin = len(self.rows)
        outer = [-1.0, 0.0, 0.0]
        if inside is not None:
            outer = [float(inside.loop), self._value(inside.a), self._value(inside.b)]
        self.rows.append([LOOP, float(number), self._value(size), self._value(step), *outer, 0.0])
        self._open.append(number)
        yield Dim(number)
        self._open.pop()
        self.rows[begin][7] = float(len(self.rows))
        self.rows.append([END, float(number), float(begin)])

    def buffer(self, slots: "int | str" = 2) -> int:
        """A buffer of the innermost open loop."""
        self.buffers.append((self._open[-1] if self._open else -1, int(self._value(slots))))
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
        row = [OP, float(engine), self._value(fixed), self._value(unit)]
        for n in range(3):
            if n < len(dims):
                row += [float(dims[n].loop), self._value(dims[n].a), self._value(dims[n].b), self._value(dims[n].g)]
            else:
                row += [-1.0, 0.0, 0.0, 0.0]
        row += [float(b) for b in (*reads, -1, -1, -1, -1)][:4]
        row += [float(b) for b in (*writes, -1, -1, -1, -1)][:4]
        self.rows.append(row)

    def table(self) -> NDArray[np.int64]:
        """The rows, as `_replay` reads them."""
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
    numbers = np.array(list(nest.numbers), np.float64)
    table = np.concatenate([values, np.broadcast_to(numbers, (len(values), len(numbers)))], 1)
    scope = np.array(nest.buffers or [(-1, 0)], np.int64)
    out = np.full(len(values), np.inf)
    left = _replay(nest.table(), scope, np.ascontiguousarray(table), bounds, handicaps, depth, best, budget, out)
    return out, int(left)


@jit
def _replay(rows, scope, values, bounds, handicaps, depth, best, budget, out):  # type: ignore[no-untyped-def]
    for c in range(len(values)):
        if budget <= 0:
            return budget
        if bounds[c] + handicaps[c] >= best:
            continue
        cycles, taken = _one(rows, scope, values[c], depth, best - handicaps[c])
        out[c] = max(cycles, bounds[c]) + handicaps[c]
        best = min(best, out[c])
        budget -= taken
    return budget


@jit
def _one(rows, scope, v, depth, limit):  # type: ignore[no-untyped-def]  # noqa: C901
    free = np.zeros(ENGINES)
    ring = np.zeros(MOST_LOOPS, np.int64)
    at, extent = np.zeros(MOST_LOOPS), np.zeros(MOST_LOOPS)
    size = np.zeros(MOST_LOOPS)
    ready, used = np.zeros((MOST_BUFFERS, MOST_SLOTS)), np.zeros((MOST_BUFFERS, MOST_SLOTS))
    starts = np.zeros((ENGINES, 64))
    entries = np.zeros(ENGINES, np.int64)
    slot = np.zeros(MOST_BUFFERS, np.int64)
    deep = max(1, depth // 3)
    clock, port = 0.0, 0.0
    pc, steps = 0, 0
    while pc < len(rows):
        row = rows[pc]
        steps += 1
        kind = row[0]
        if kind == 0:
            d = row[1]
            s = v[row[2]]
            if row[4] != -1:
                s = min(s, v[row[6]] + (extent[row[4]] * v[row[5]] if row[4] >= 0 else 0.0))
            size[d], at[d] = s, 0.0
            extent[d] = min(v[row[3]], s)
            clock += 1
            for b in range(len(scope)):
                if scope[b, 0] == d:
                    slot[b] = ring[d] % np.int64(v[scope[b, 1]])
            if s <= 0:
                pc = row[7]
        elif kind == 1:
            d = row[1]
            step = v[rows[row[2], 3]]
            at[d] += step
            ring[d] += 1
            clock += 1
            if at[d] < size[d]:
                extent[d] = min(step, size[d] - at[d])
                for b in range(len(scope)):
                    if scope[b, 0] == d:
                        slot[b] = ring[d] % np.int64(v[scope[b, 1]])
                pc = row[2]
        else:
            e = row[1]
            cost = v[row[3]]
            syncs = 0
            for f in range(4, 16, 4):
                if row[f] != -1:
                    factor = v[row[f + 2]] + (extent[row[f]] * v[row[f + 1]] if row[f] >= 0 else 0.0)
                    g = v[row[f + 3]]
                    cost *= np.ceil(factor / g) if g > 0 else factor
            cost += v[row[2]]
            if cost > 0:
                n = entries[e]
                clock = max(clock + 3, starts[e, (n - deep) & 63] if n >= deep else 0.0)
                start = max(free[e], clock)
                for f in range(16, 20):
                    b = row[f]
                    if b >= 0:
                        start = max(start, ready[b, slot[b]])
                        syncs += 1
                for f in range(20, 24):
                    b = row[f]
                    if b >= 0:
                        start = max(start, max(used[b, slot[b]], ready[b, slot[b]]))
                        syncs += 1
                end = start + cost + 2 * syncs
                if e in (LOAD, STORE):
                    port += cost - v[row[2]]
                    end = max(end, v[row[2]] + port)
                starts[e, n & 63] = start
                entries[e] = n + 1
                free[e] = end
                if end > limit:
                    return np.inf, steps
                for f in range(16, 20):
                    if row[f] >= 0:
                        used[row[f], slot[row[f]]] = max(end, used[row[f], slot[row[f]]])
                for f in range(20, 24):
                    if row[f] >= 0:
                        ready[row[f], slot[row[f]]] = end
        pc += 1
    return max(clock, free.max()), steps
