"""The search for a schedule: a lattice of choices, ranked by an estimate, the best of them replayed.

A form of kernel describes its choices as columns of numbers, one row for each; estimates all rows at once; and gives
for the rows of one structure (which loops there are, what stays in L1) the loop nest to replay. What is built in the
end is the first schedule, in the order found here, whose buffers fit.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, Generic, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ...runtime.replay import Nest, replay
from ...runtime.target import Target
from .schedule import PARTS, Column, Epilogue, Estimate, Rates, Share, Table, Work, numbered, total

REPLAYED = 320
"""Schedules that are replayed, the best by estimate."""

STEPS = 400_000
"""Steps of the replay, in all, for one kernel: about 5 ms."""

SURE = 0.97
"""Part of the estimated work of its busiest engine that a schedule takes at least: last panels count as whole ones."""
LIKELY = 0.88
"""Part of its estimate that a schedule takes at least: what cannot win if that is so is not replayed."""

Parts = tuple[int, int, int]
"""Into how many parts three dimensions are shared out over the cores."""


class Choices(NamedTuple):
    """A lattice as the search sees it, by row."""

    names: Sequence[str]
    """Of the columns of schedules."""
    schedules: NDArray[np.int64]
    found: Estimate
    structures: NDArray[np.int64]
    """Numbers; rows of one number have one loop nest."""
    sizes: tuple[int, int, int]
    """Of the dimensions that are shared out."""
    values: NDArray[np.float64]
    """The parameters of the nest, what the busiest core does of those dimensions first."""
    nest_of: Callable[[int], Nest]
    """The loop nest of a row's structure."""
    first: Column | None = None
    """The last parameter of the core that has the first part of the second dimension, if it is another one there."""


LAST, FIRST = 1, 2
"""Parts of a dimension that may be unlike the others."""


def classes(
    sizes: tuple[int, int, int], parts: NDArray[np.int64], share: NDArray[np.float64], first: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """[rows, classes] cores that do the same; [rows, classes, 3] what they do of three dimensions in so many parts, of
    which the busiest core has `share`; [classes, 3] which part that is. In each dimension all parts are equal, but for
    the last, and `first` says by row whether the first of the second dimension is another."""
    last = sizes - (parts - 1) * share
    uneven = (last < share).astype(np.float64)
    others = np.zeros_like(uneven)
    others[:, 1] = first & (parts[:, 1] - uneven[:, 1] > 1)
    kinds = [[0] + [LAST] * bool(uneven[:, d].any()) + [FIRST] * bool(others[:, d].any()) for d in range(3)]
    which = np.array([*product(*kinds)])
    counts = np.stack([parts - uneven - others, uneven, others])[which, :, range(3)].prod(1)
    extents = np.stack([share, last, share])[which, :, range(3)]
    return counts.T.copy(), extents.transpose(2, 0, 1), which


def replay_rows(
    c: Choices, rows: NDArray[np.int64], target: Target, best: float = np.inf, budget: int = STEPS
) -> Column:
    """Cycles and handicap of rows, those of one structure after those of another, but first of all the first of each;
    see `replay`."""
    f, found = c.found, np.full(len(rows), np.inf)
    first = c.values[rows, -1] if c.first is None else c.first[rows]
    other = first != c.values[rows, -1]
    cores, extents, which = classes(c.sizes, c.schedules[rows, -3:], c.values[rows, :3], other)
    values = np.repeat(c.values[rows, None], cores.shape[1], 1)
    values[:, :, :3] = extents
    values[:, which[:, 1] == FIRST, -1] = first[:, None]
    sure = SURE * f.bound
    promise = np.maximum(sure[rows], LIKELY * f.cycles[rows]) + f.handicap[rows]
    nests, alike = dict[int, Nest](), dict[int, list[int]]()
    for place, kind in enumerate(c.structures[rows].tolist()):
        alike.setdefault(kind, []).append(place)
    others = sorted((kind for kind in alike if len(alike[kind]) > 1), key=lambda kind: alike[kind][1])
    for kind, part in (*((kind, alike[kind][:1]) for kind in alike), *((kind, alike[kind][1:]) for kind in others)):
        some = np.array(part)
        some = some[promise[some] < best]
        if some.size:
            these = rows[some]
            if kind not in nests:
                nests[kind] = c.nest_of(int(these[0]))
            least = SURE * f.busy[these], sure[these], f.handicap[these]
            found[some], budget = replay(nests[kind], values[some], cores[some], *least, target, best, budget)
            best = min(best, float(found[some].min()))
    return found


def search(c: Choices, target: Target) -> Iterator[int]:
    """Rows of the lattice, best first: those that were replayed by their cycles, then the others by estimate."""
    order = np.argsort(c.found.cycles + c.found.handicap, kind="stable")
    tried = order[:REPLAYED]
    yield from (int(row) for row in tried[np.argsort(replay_rows(c, tried, target), kind="stable")])
    yield from (int(row) for row in order[REPLAYED:])


S = TypeVar("S")


@dataclass(frozen=True)
class Form(ABC, Generic[S]):
    """A form of kernel on some cores of a target: its schedules, each a row of a table.

    A schedule is a named tuple `S` of numbers that ends with `parts`, the parts of three dimensions."""

    target: Target
    cores: int
    epilogue: Epilogue
    kind: ClassVar[type[NamedTuple]]
    """`S`."""

    @property
    def rates(self) -> Rates:
        """What its engines cost."""
        return Rates(self.target, self.dtype)

    @property
    def names(self) -> Sequence[str]:
        """Fields of a schedule but for its parts."""
        return self.kind._fields[:-1]

    @property
    @abstractmethod
    def dtype(self) -> str:
        """Of the operands."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, int, int]:
        """Of the dimensions that are shared out."""

    @property
    def halo(self) -> int:
        """Rows above the panel of a part of the second dimension, but for the first."""
        return 0

    @abstractmethod
    def tiles(self, t: Table) -> Sequence["Column | float"]:
        """Of the dimensions that are shared out."""

    @abstractmethod
    def lattice(self) -> Table:
        """All schedules, as columns by `names` and `PARTS`."""

    @abstractmethod
    def work(self, t: Table, share: Share) -> Work:
        """What the busiest core's engines do."""

    @abstractmethod
    def parameters(self, t: Table, share: Share) -> Sequence[Column]:
        """Of the nest, behind what the busiest core does of the dimensions that are shared out."""

    @abstractmethod
    def structure(self, t: Table) -> Sequence[Column | NDArray[np.bool_]]:
        """Flags: schedules in which all are the same have one loop nest."""

    @abstractmethod
    def nest(self, schedule: S) -> Nest:
        """The loop nest of a schedule's structure, as the kernel is emitted."""

    def first(self, t: Table, share: Share) -> Column | None:
        """See `Choices`."""
        return None

    def schedule(self, row: Sequence[int]) -> S:
        """A row of `Choices.schedules`."""
        *fields, first, second, third = row
        return cast("S", self.kind._make((*fields, (first, second, third))))

    def choices(self) -> Choices:
        """All schedules."""
        t = self.lattice()
        share = Share.of(self.sizes, self.tiles(t), t)
        found = total(self.rates, self.epilogue, self.work(t, share), share, self.halo)
        values = np.stack([*share.most, *self.parameters(t, share)], 1)
        names = (*self.names, *PARTS)
        rows = np.stack([t[name] for name in names], 1).astype(np.int64)

        def nest(row: int) -> Nest:
            return self.nest(self.schedule(rows[row].tolist()))

        return Choices(names, rows, found, numbered(*self.structure(t)), self.sizes, values, nest, self.first(t, share))

    def schedules(self) -> Iterator[S]:
        """Schedules, best first."""
        c = self.choices()
        for row in search(c, self.target):
            yield self.schedule(c.schedules[row].tolist())
