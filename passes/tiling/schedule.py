"""The search for a schedule: a lattice of choices, ranked by an estimate, the best of them replayed.

A form of kernel describes its choices as columns of numbers, one row for each; estimates all rows at once; and gives
for the rows of one structure (which loops there are, what stays in L1) the loop nest to replay. What is built in the
end is the first schedule, in the order found here, whose buffers fit.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...dialects.tile import SIZES
from ...runtime.isa import Engine
from ...runtime.replay import CONSTANT, Dim, Nest, replay
from ...runtime.target import Target

REPLAYED = 256
"""Schedules that are replayed, the best by estimate."""
STEPS = 150_000
"""Steps of the replay, in all, for one kernel: about 5 ms."""

TRAFFIC = 0.15
"""Part of the time of its transfers that a schedule costs the kernels around it."""

Column = NDArray[np.float64]
Table = dict[str, Column]
"""The choices of a form, one column for each."""
Shares = tuple[Column, Column, Column]
"""What the busiest core does of three dimensions."""


def ceil(a: "Column | float", b: "Column | float") -> Column:
    """⌈a/b⌉, by element."""
    return np.ceil(np.asarray(a, np.float64) / b)


def tile_sizes(size: int, most: int, block: int = 16) -> list[int]:
    """Balanced tiles of `size`, multiples of `block` up to `most`: for each number of tiles, the smallest that gives
    it; dense where tiles are large."""
    blocks = -(-size // block)
    steps = [*range(1, 17), 20, 24, 28, 32, 40, 48, 56, 64, 96, 128]
    return sorted({block * -(-blocks // -(-blocks // n)) for n in steps if n * block <= max(most, block)})


@dataclass(frozen=True)
class Rates:
    """What a core's engines cost, for elements of one type, when `cores` share the port."""

    target: Target
    dtype: str
    cores: int

    @property
    def esize(self) -> int:
        return SIZES[self.dtype]

    @property
    def bandwidth(self) -> float:
        """Bytes a cycle between global memory and one core."""
        return min(self.target.gm_path, self.target.gm_port / self.cores)

    @property
    def block_k(self) -> int:
        t = self.target
        return {"f32": t.cube_k_f32, "i8": t.cube_k_i8, "u8": t.cube_k_i8}.get(self.dtype, t.cube_k_f16)

    @property
    def block(self) -> float:
        """Cycles of the cube for a block."""
        return self.target.cube_cost_f32 if self.dtype == "f32" else 1

    # operations of a nest ---------------------------------------------------------------------------------------------
    def load(self, nest: Nest, into: int, rows: Sequence[Dim], run: Dim, esize: int = 0) -> None:
        """A load of runs of contiguous elements."""
        t = self.target
        bytes_ = replace(run.scaled(esize or self.esize), g=t.gm_burst)
        nest.op(Engine.LOAD, t.fixed_load, t.gm_burst / self.bandwidth, (*rows, bytes_), writes=(into,))

    def store(self, nest: Nest, source: int, rows: Dim, run: Dim, esize: int) -> None:
        """A store of rows."""
        t = self.target
        bytes_ = replace(run.scaled(esize), g=t.gm_burst)
        nest.op(Engine.STORE, t.fixed_store, t.gm_burst / self.bandwidth, (rows, bytes_), reads=(source,))

    def feed(self, nest: Nest, source: int, into: int, rows: Dim, k: Dim, left: bool) -> None:
        """A feed of the left or the right operand, in whole blocks."""
        t = self.target
        block, rate = (t.cube_m, t.feed_a_bytes) if left else (t.cube_n, t.feed_b_bytes)
        bytes_ = replace(k.scaled(self.esize), g=32)
        whole = replace(rows, g=block)
        nest.op(Engine.FEED, t.fixed_feed, block * 32 / rate, (whole, bytes_), reads=(source,), writes=(into,))

    def mma(self, nest: Nest, a: int, b: int, acc: int, m: Dim, n: Dim, k: Dim) -> None:
        """One product of tiles."""
        t = self.target
        dims = (replace(m, g=t.cube_m), replace(n, g=t.cube_n), replace(k, g=self.block_k))
        nest.op(Engine.CUBE, t.fixed_mma, self.block, dims, reads=(a, b), writes=(acc,))


@dataclass(frozen=True)
class Epilogue:
    """What follows an accumulator, per tile: the ops of the vector engine and the operands that they load."""

    instructions: int
    cost: float
    """Vector cycles per element, of all of them."""
    whole: tuple[int, ...]
    """Element sizes of the operands of the result's shape."""
    vectors: tuple[int, ...]
    """Element sizes of the operands along its columns, the bias among them."""
    results: tuple[int, ...]
    """Element sizes of what is stored."""
    drained: int
    """Element size of what is drained."""

    @property
    def ub(self) -> int:
        """Bytes of UB per element of a tile: everything twice."""
        return 2 * (sum(self.whole) + self.drained + (sum(self.results) if self.instructions else 0))

    def emit(self, nest: Nest, r: Rates, acc: int, loaded: Sequence[int], m: Dim, n: Dim) -> None:
        """Drain, vector ops, store."""
        t = r.target
        held = nest.buffer()
        nest.op(
            Engine.DRAIN,
            t.fixed_drain,
            1 / t.drain_elements,
            (m, n),
            (acc, *loaded[: 1 if self.vectors else 0]),
            (held,),
        )
        out = held
        if self.instructions:
            out = nest.buffer()
            nest.op(Engine.VECTOR, t.fixed_vector * self.instructions, self.cost, (m, n), (held, *loaded)[:4], (out,))
        for esize in self.results:
            r.store(nest, out, m, n, esize)

    def loads(self, nest: Nest, r: Rates, m: Dim, n: Dim) -> list[int]:
        """The operands that come with each tile."""
        buffers: list[int] = []
        for esize in self.vectors:
            buffers.append(nest.buffer())
            r.load(nest, buffers[-1], (), n, esize)
        for esize in self.whole:
            buffers.append(nest.buffer())
            r.load(nest, buffers[-1], (m,), n, esize)
        return buffers


class Work(NamedTuple):
    """What the busiest core does, by engine."""

    size: Column
    """Elements of the result."""
    tiles: Column
    cube: Column
    """Cycles."""
    feed: Column
    """Cycles."""
    traffic: Column
    """Bytes of the operands' panels."""
    transfers: Column
    first: Column
    """Bytes before the first product."""
    l1: Column
    """Bytes of the panels."""
    ub: Column
    """Bytes of the result's tiles and of what is combined with them."""


class Estimate(NamedTuple):
    """What is said of each row without a replay."""

    cycles: Column
    bound: Column
    """Cycles that it takes at least."""
    handicap: Column
    """What it costs the kernels around it, in cycles."""


def total(r: Rates, e: Epilogue, w: Work) -> Estimate:
    """The busiest engine, and with it filling the pipeline and emptying it.

    What a schedule moves delays the loads of the kernel after it, if ever so little; what takes more than half of L1 or
    UB keeps that kernel from beginning."""
    g = r.target
    loaded = w.traffic + w.size * sum(e.whole)
    load = loaded / r.bandwidth + (w.transfers + w.tiles * (len(e.whole) + len(e.vectors))) * g.fixed_load
    drain = w.size / g.drain_elements + w.tiles * g.fixed_drain
    vector = w.size * e.cost + w.tiles * g.fixed_vector * e.instructions
    stored = w.size * sum(e.results)
    store = stored / r.bandwidth + w.tiles * g.fixed_store
    port = (loaded + stored) * r.cores / g.gm_port
    bound = np.maximum.reduce([w.cube, w.feed, load, store, drain, vector, port])
    first, last = w.first / r.bandwidth, (drain + vector + store) / w.tiles
    alone = (w.l1 > g.l1_bytes / 2) | (w.ub > g.ub_bytes / 2)
    return Estimate(bound + first + last, bound, TRAFFIC * port + np.where(alone, first, 0))


def search(
    found: Estimate,
    structures: NDArray[np.int64],
    values: NDArray[np.float64],
    nest_of: Callable[[int], Nest],
    target: Target,
) -> Iterator[int]:
    """Rows of the lattice, best first: those that were replayed by their cycles, then the others by estimate.

    `structures` numbers the structure of each row; `nest_of` gives the loop nest of a row's structure."""
    order = np.argsort(found.cycles + found.handicap, kind="stable")
    tried = order[:REPLAYED]
    cycles = np.full(len(tried), np.inf)
    best, left = np.inf, STEPS
    kinds, first = np.unique(structures[tried], return_index=True)
    for kind in kinds[np.argsort(first)]:
        members = np.flatnonzero(structures[tried] == kind)
        rows = tried[members]
        cycles[members], left = replay(
            nest_of(int(rows[0])), values[rows], found.bound[rows], found.handicap[rows], target.queue_depth, best, left
        )
        best = min(best, float(cycles[members].min()))
    yield from (int(row) for row in tried[np.argsort(cycles, kind="stable")])
    yield from (int(row) for row in order[REPLAYED:])


def fitting(t: Table, need: Column, limit: float, fits: NDArray[np.bool_] | bool = True) -> Table:
    """The rows that need no more than the limit; if there are none, the one that needs least, to say what is found."""
    keep = (need <= limit) & fits
    if not keep.any() and len(need):
        keep = np.arange(len(need)) == np.argmin(np.where(fits, need, np.inf))
    return {name: column[keep] for name, column in t.items()}


def number(value: float) -> Dim:
    """An extent that no loop changes."""
    return Dim(CONSTANT, 0, value)
