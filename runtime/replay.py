"""How long a loop nest over tiles takes: a model to rank schedules by, without a program.

A `Nest` says what a kernel does, engine by engine, with its sizes left open; `replay` runs it for many choices of those
sizes. It is the model of docs/timing.md: rows enter the queues of their engines one a cycle, an entry starts when it
has entered, the one before it has ended and its token is there, and takes

    fixed + unit · ∏ ⌈(a·extent + b) / g⌉

The tokens follow from the buffers, whose slots advance with the loop that they belong to (`replay_tokens.py`).
The variable part of a load or store is a transfer, which takes longer while others share the port of global memory:
those of the same core, and of all the others. Cores whose sizes are the same do the same in step: they are a class, and
replayed once.

    nest = Nest("m", "m0", "fixed", "cost")
    with nest.loop("m", "m0") as m:
        tile = nest.buffer(2)
        nest.op(Engine.LOAD, "fixed", "cost", (m,), writes=(tile,))
        nest.op(Engine.VECTOR, "fixed", "cost", (m,), reads=(tile,))
    # two ways to do 2,600 rows on three cores: of two cores 1,000, of one 600
    values = [[[1000, 128, 64, 0.5], [600, 128, 64, 0.5]], [[1000, 256, 64, 0.5], [600, 256, 64, 0.5]]]
    cycles, _ = replay(nest, values, cores=[[2, 1], [2, 1]], busy, bounds, handicaps, target)
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .replay_tokens import Child, loops, tokens
from .target import Target

LOOP, END, OP, WAIT, SET = range(5)
CONSTANT, NAMED = -2, -3
"""The loop of a `Dim` whose extent is its b, and of one where it is a·b, b a parameter."""
APART = -4
"""Less the loop: that of a `Dim` made by `apart`."""
WIDTH = 16
NOTHING = (0,) * WIDTH
OUT, BEGIN = 7, 2
"""Fields: of the row of a loop its last row, and of that the first."""


class Dim(NamedTuple):
    """A loop's extent as a factor of a cost: ⌈(a·extent + b) / g⌉; a, b and g are numbers or parameters."""

    loop: int
    a: "float | str" = 1
    b: "float | str" = 0
    g: "float | str" = 0
    """0: not rounded."""

    def scaled(self, factor: float) -> "Dim":
        """Times a number."""
        if self.loop == NAMED:
            return Dim(NAMED, _times(self.a, factor), self.b, self.g)
        return Dim(self.loop, _times(self.a, factor), _times(self.b, factor), self.g)

    def plus(self, more: float) -> "Dim":
        """More by a number."""
        if isinstance(self.b, str):
            raise ValueError("a parameter cannot be added to")
        return Dim(self.loop, self.a, self.b + more, self.g)

    def blocks(self, size: float) -> "Dim":
        """In whole blocks of a size."""
        return Dim(self.loop, self.a, self.b, size)

    def apart(self, tile: "float | str", size: float) -> "Dim":
        """By what rows that are not one run cost more, a·extent of a loop in blocks of a size over itself; 1 if it is
        `tile`."""
        return Dim(APART - self.loop, self.a, tile, size)


def _times(value: "float | str", factor: float) -> "float | str":
    if isinstance(value, str):
        raise ValueError("a parameter cannot be scaled")
    return value * factor


class _Places(dict["float | str", int]):
    """Where values stand; a new one comes last."""

    def __missing__(self, value: "float | str") -> int:
        place = self[value] = len(self)
        return place


class Nest:
    """Rows of a loop nest whose numbers are `parameters`, given when it is replayed."""

    def __init__(self, *parameters: str):
        self.rows: list[tuple[int, ...]] = []
        self.values = _Places((name, place) for place, name in enumerate(parameters))
        """Places of the parameters, and behind them of numbers."""
        self.parameters = len(parameters)
        self.buffers: list[tuple[int, int]] = []
        """Loop (-1: none) and slots."""
        self.loops = 0
        self._bodies: list[tuple[int, list[Child]]] = [(-1, [])]
        self._table: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    @contextmanager
    def loop(self, size: "float | str", step: "float | str", inside: Dim | None = None) -> Generator[Dim]:
        """A loop over `size` in steps; with `inside`, over that loop's current extent (times a, plus b), at most
        `size`."""
        number, begin = self.loops, len(self.rows)
        self.loops += 1
        outer, place = (-1, 0, 0), self.values
        if inside is not None:
            outer = (inside.loop, place[inside.a], place[inside.b])
        self.rows.append((LOOP, number, place[size], place[step], *outer))
        self._bodies.append((number, []))
        yield Dim(number)
        self.rows.append((END, number))
        _, children = self._bodies.pop()
        self._bodies[-1][1].append((begin, len(self.rows) - 1, number, tuple(children)))

    def buffer(self, slots: int = 2) -> int:
        """A buffer of the innermost open loop; outside all loops it has one slot."""
        loop, _ = self._bodies[-1]
        self.buffers.append((loop, slots if loop >= 0 else 1))
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
        """An operation on buffers."""
        place = self.values
        row = [OP, int(engine), place[fixed], place[unit]]
        for loop, a, b, g in dims:
            row += (loop, place[a], place[b], place[g])
        row += (-1, 0, 0, 0) * (3 - len(dims))
        touched = {b: b in writes for b in (*reads, *writes)}
        self._bodies[-1][1].append((len(self.rows), int(engine), tuple(touched.items())))
        self.rows.append(tuple(row))

    def table(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows with their tokens, as `replay_loop.py` reads them, and what each class of tokens begins with; all
        rows must be there."""
        if self._table is not None:
            return self._table
        table, places, granted = _layout(tuple(self._bodies[0][1]), tuple(self.buffers), len(self.rows))
        table = table.copy()
        table[places] += np.array([(*row, *NOTHING[len(row) :]) for row in self.rows], np.int64)
        self._table = table, granted
        return self._table


@lru_cache(maxsize=1024)
def _layout(
    children: tuple[Child, ...], buffers: tuple[tuple[int, int], ...], count: int
) -> tuple[NDArray[np.int64], list[int], NDArray[np.int64]]:
    """The table of a nest of so many rows, with nothing in it but tokens and where loops lead; the places of the rows
    in it; what each class of tokens begins with."""
    found, begins = tokens(children, buffers), {last: first for first, last in loops(children)}
    rows: list[list[int]] = []
    places: list[int] = []
    for number in range(count):
        rows += [[WAIT, engine, which] for engine, which in found.before.get(number, ())]
        places.append(len(rows))
        rows.append([])
        if number in begins:
            begin = places[begins[number]]
            rows[begin], rows[-1] = [0] * OUT + [len(rows) - 1], [0] * BEGIN + [begin]
        rows += [[SET, engine, which] for engine, which in found.behind.get(number, ())]
    table = np.array([(*row, *NOTHING[len(row) :]) for row in rows], np.int64)
    return table, places, np.array(found.granted, np.int64)


def replay(
    nest: Nest,
    values: NDArray[np.float64],
    cores: NDArray[np.float64],
    busy: NDArray[np.float64],
    bounds: NDArray[np.float64],
    handicaps: NDArray[np.float64],
    target: Target,
    best: float = np.inf,
    budget: int = 1 << 62,
) -> tuple[NDArray[np.float64], int]:
    """Cycles plus handicap of each row of `values` [candidates, classes, parameters], and what is left of the budget of
    steps.

    `cores` [candidates, classes] says how many cores are of each class, the first of which takes longest. `busy`
    [candidates, engines] are cycles that each engine of it works at least, `bounds` those that a row takes. A row that
    cannot be better than `best` or than one before it, or for which the budget was used up, has inf."""
    from .replay_loop import cores_of, replay_all  # loads the compiler

    numbers = np.array([*nest.values][nest.parameters :], np.float64)
    rows, granted = nest.table()
    out = np.full(len(values), np.inf)
    table, least = (np.ascontiguousarray(values), numbers), (busy, bounds, handicaps)
    chip = (target.queue_depth, float(target.fixed_sync), target.gm_port / target.gm_path)
    words = cores_of(values.shape[1], values.shape[2] + len(numbers), len(rows), len(granted))
    left = replay_all(words, rows, granted, table, cores, least, chip, best, budget, out)
    return out, int(left)
