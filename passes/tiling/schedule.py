"""What schedules cost, as columns of numbers: what the engines of a core do, how a lattice is shared out over cores, an
estimate of the cycles; and the parts of loop nests that forms of kernel have in common."""

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...dialects.tile import SIZES
from ...runtime.isa import Engine
from ...runtime.replay import CONSTANT, NAMED, Dim, Nest
from ...runtime.target import Target

SEGMENT = 2048
"""k positions whose products are summed before the sums are added (docs/numerics.md §5)."""

TRAFFIC = 0.15
"""Part of the time of its transfers that a schedule costs the kernels around it."""

APART = 0.2
"""Part of an engine's time that no other engine's hides, as long as no schedule is known;"""
ASIDE = 0.03
"""and for an estimate of one."""

Column = NDArray[np.float64]
Table = dict[str, Column]
"""The choices of a form, one column for each."""
Shares = tuple[Column, Column, Column]
"""What the busiest core does of three dimensions."""
PARTS = ("parts_0", "parts_1", "parts_2")
"""Columns of a table with the parts into which three dimensions are shared out."""


def ceil(a: "Column | float", b: "Column | float") -> Column:
    """⌈a/b⌉, by element."""
    return np.ceil(np.asarray(a, np.float64) / b)


def tile_sizes(size: int, most: int, block: int = 16) -> list[int]:
    """Balanced tiles of `size`, multiples of `block` up to `most`: for each number of tiles, the smallest that gives
    it; dense where tiles are large."""
    blocks = -(-size // block)
    steps = [*range(1, 17), 20, 24, 28, 32, 40, 48, 56, 64, 96, 128]
    return sorted({block * -(-blocks // -(-blocks // n)) for n in steps if n * block <= max(most, block)})


def distinct(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct rows of a table of small numbers from 0 on, in ascending order."""
    key, radix = rows[:, 0], (rows.max(0, initial=0) + 1).tolist()
    assert math.prod(radix) < 1 << 63, "a row does not fit one number"
    for column, size in enumerate(radix[1:], 1):
        key = key * size + rows[:, column]
    return rows[np.unique(key, return_index=True)[1]]


@dataclass(frozen=True)
class Rates:
    """What a core's engines cost, for elements of one type."""

    target: Target
    dtype: str

    @property
    def esize(self) -> int:
        return SIZES[self.dtype]

    def bandwidth(self, cores: Column) -> Column:
        """Bytes a cycle between global memory and one of so many cores that work."""
        return np.minimum(self.target.gm_path, self.target.gm_port / cores)

    @property
    def block_k(self) -> int:
        t = self.target
        return {"f32": t.cube_k_f32, "i8": t.cube_k_i8, "u8": t.cube_k_i8}.get(self.dtype, t.cube_k_f16)

    @property
    def block(self) -> float:
        """Cycles of the cube for a block."""
        return self.target.cube_cost_f32 if self.dtype == "f32" else 1

    # operations of a nest ---------------------------------------------------------------------------------------------
    def load(self, nest: Nest, into: int, rows: Sequence[Dim], run: Dim, esize: float = 0) -> None:
        """A load of runs of contiguous elements."""
        t = self.target
        bytes_ = run.scaled(esize or self.esize).blocks(t.gm_burst)
        nest.op(Engine.LOAD, t.fixed_load, t.gm_burst / t.gm_path, (*rows, bytes_), writes=(into,))

    def fill(self, nest: Nest, into: int, cycles: str) -> None:
        """A fill by the load engine: a parameter's cycles, and one that counts as a transfer's."""
        nest.op(Engine.LOAD, cycles, 1, (), writes=(into,))

    def store(self, nest: Nest, source: int, rows: Dim, run: Dim, esize: int) -> None:
        """A store of rows."""
        t = self.target
        bytes_ = run.scaled(esize).blocks(t.gm_burst)
        nest.op(Engine.STORE, t.fixed_store, t.gm_burst / t.gm_path, (rows, bytes_), reads=(source,))

    def feed(self, nest: Nest, source: int, into: int, rows: Dim, k: Dim, left: bool) -> None:
        """A feed of the left or the right operand, in whole blocks."""
        t = self.target
        block, rate = (t.cube_m, t.feed_a_bytes) if left else (t.cube_n, t.feed_b_bytes)
        bytes_ = k.scaled(self.esize).blocks(32)
        whole = rows.blocks(block)
        nest.op(Engine.FEED, t.fixed_feed, block * 32 / rate, (whole, bytes_), reads=(source,), writes=(into,))

    def mma(self, nest: Nest, a: int, b: int, acc: int, m: Dim, n: Dim, k: Dim) -> None:
        """One product of tiles."""
        t = self.target
        dims = (m.blocks(t.cube_m), n.blocks(t.cube_n), k.blocks(self.block_k))
        nest.op(Engine.CUBE, t.fixed_mma, self.block, dims, reads=(a, b), writes=(acc,))


@dataclass(frozen=True)
class Epilogue:
    """What follows an accumulator, per tile: the ops of the vector engine and the operands that they load.

    An instruction takes a tile as one run, but row by row where a tile is narrower than its buffer."""

    ops: tuple[tuple[int, int], ...]
    """Of each instruction of the vector engine the element size and the passes."""
    whole: tuple[int, ...]
    """Element sizes of the operands of the result's shape."""
    vectors: tuple[int, ...]
    """Element sizes of the operands along its columns, the bias among them."""
    results: tuple[int, ...]
    """Element sizes of what is stored."""
    drained: int
    """Element size of what is drained from L0C; 0: the vector engine computes it."""

    @property
    def moved(self) -> int:
        """Bytes per element of a tile that are loaded or stored."""
        return sum(self.whole) + sum(self.results)

    @property
    def ub(self) -> int:
        """Bytes of UB per element of a tile: everything twice."""
        return 2 * (sum(self.whole) + self.drained + (sum(self.results) if self.ops else 0))

    def vector(
        self, r: Rates, size: "Column | float", n: "Column | float", n0: "Column | float", columns: int
    ) -> Column:
        """Cycles of the vector engine for `size` elements, but for what is fixed: of n of `columns`, in tiles of
        n0."""
        runs = np.asarray(size * sum(esize * passes for esize, passes in self.ops) / r.target.vector_bytes)
        rest = np.where(n0 < columns, n % n0, 0)
        if not self.ops or not rest.any():
            return runs
        rows = sum(passes * ceil(rest * esize, r.target.vector_bytes) for esize, passes in self.ops)
        return runs * (n - rest) / n + size / n * rows

    def drain(self, r: Rates, size: Column, tiles: Column) -> Column:
        """Cycles of the drain for `size` elements in so many tiles."""
        return (size / r.target.drain_elements + tiles * r.target.fixed_drain) * (self.drained > 0)

    def emit(self, nest: Nest, r: Rates, acc: int, loaded: Sequence[int], m: Dim, n: Dim) -> None:
        """Drain, vector ops, store."""
        t, held = r.target, acc
        if self.drained:
            held = nest.buffer()
            reads = (acc, *loaded[: 1 if self.vectors else 0])
            nest.op(Engine.DRAIN, t.fixed_drain, 1 / t.drain_elements, (m, n), reads, (held,))
        out = held
        if self.ops:
            out = nest.buffer()
            self._emit_ops(nest, r, (held, *loaded)[:4], out, m, n)
        for esize in self.results:
            r.store(nest, out, m, n, esize)

    def _emit_ops(self, nest: Nest, r: Rates, reads: Sequence[int], out: int, m: Dim, n: Dim) -> None:
        """The ops, those of one element size as one."""
        for esize in sorted({esize for esize, _ in self.ops}):
            passes, run = [p for size, p in self.ops if size == esize], r.target.vector_bytes / esize
            dims = (m, n) if n.loop < 0 else (m, n, n.apart("n0", run))
            nest.op(Engine.VECTOR, r.target.fixed_vector * len(passes), sum(passes) / run, dims, reads, (out,))

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
    """Cycles of the engine that computes the tiles: if nothing is drained, the vector engine."""
    feed: Column
    """Cycles."""
    transfers: Column
    """Of the operands' panels."""
    first: Column
    """Bytes before the first product."""
    l1: Column
    """Bytes of the panels."""
    ub: Column
    """Bytes of the result's tiles and of what is combined with them."""
    left: "Column | float" = 0
    """Bytes of panels that have the first two dimensions,"""
    right: "Column | float" = 0
    """the first and the last,"""
    both: "Column | float" = 0
    """all three,"""
    kept: "Column | float" = 0
    """and none."""
    fills: "Column | float" = 0
    """Cycles that the load engine fills buffers."""
    turns: "tuple[Column | float, Column | float]" = (0, 0)
    """Bytes of panels that have one slot, and cycles that do not overlap with their transfers: feeds, and what is fixed
    of the loads."""


class Share(NamedTuple):
    """How three dimensions are shared out: in all, in tiles, and what the busiest core does of each."""

    sizes: tuple[int, int, int]
    tiles: Sequence["Column | float"]
    parts: Shares
    most: Shares

    @staticmethod
    def of(sizes: tuple[int, int, int], tiles: Sequence["Column | float"], t: Table) -> "Share":
        """As a table says."""
        first, second, third = (t[name] for name in PARTS)
        return Share(sizes, tiles, (first, second, third), shares(sizes, tiles, t))

    def working(self, left: "Column | float", right: "Column | float", result: Column) -> Column:
        """What all cores transfer over what the busiest does, which moves so many bytes of a left operand, which has
        the first two dimensions, of a right one, which has the first and the last, and of results."""
        more = [size / part for size, part in zip(self.sizes, self.most, strict=True)]
        _, rows, columns = (
            ceil(size, tile) / ceil(part, tile)
            for size, tile, part in zip(self.sizes, self.tiles, self.most, strict=True)
        )
        moved = left * more[1] * columns + right * rows * more[2] + result * more[1] * more[2]
        return np.maximum(1, more[0] * moved / (left + right + result))

    def drifts(self, halo: int) -> NDArray[np.bool_]:
        """Whether some cores do less than others, and so do not transfer in step with them: their parts are smaller, or
        they have no halo of so many rows."""
        uneven = [most * part != size for most, part, size in zip(self.most, self.parts, self.sizes, strict=True)]
        return np.logical_or.reduce(uneven) | (self.parts[1] > 1) & (halo > 0)


def longest(r: Rates, e: Epilogue, size: Column, cube: Column, transfers: Column) -> Column:
    """About how many cycles a core's share takes, whatever the schedule: `size` elements of the result, cycles of the
    cube and of transfers."""
    drain, vector = e.drain(r, size, np.zeros_like(size)), e.vector(r, size, 1, 1, 1)
    engines = [cube, drain, vector] if e.drained else [cube + vector]
    return np.maximum.reduce([*engines, transfers]) + TRAFFIC * transfers + APART * sum(engines)


class Estimate(NamedTuple):
    """What is said of each row without a replay."""

    cycles: Column
    busy: Column
    """[rows, engines]: cycles that each engine works at least."""
    bound: Column
    """Cycles that it takes at least."""
    handicap: Column
    """What it costs the kernels around it, in cycles."""
    cores: Column
    """Cores that transfer, on average."""


def total(r: Rates, e: Epilogue, w: Work, share: Share, halo: int) -> Estimate:
    """The busiest engine, and with it filling the pipeline before it and emptying it behind it; and a little of what
    the others do. `halo`: rows above a part of the second dimension, but for the first.

    What a schedule moves delays the loads of the kernel after it, if ever so little; what takes more than half of L1 or
    UB keeps that kernel from beginning."""
    g, drift = r.target, share.drifts(halo)
    loaded = w.left + w.right + w.both + w.kept + w.size * sum(e.whole)
    cores = share.working(w.left, w.right, w.both + w.size * e.moved)
    bandwidth = r.bandwidth(cores)
    loads = (w.transfers + w.tiles * (len(e.whole) + len(e.vectors))) * g.fixed_load + w.fills
    drain = e.drain(r, w.size, w.tiles)
    vector = e.vector(r, w.size, share.most[2], share.tiles[2], share.sizes[2])
    vector = vector + w.tiles * g.fixed_vector * len(e.ops)
    stored, stores = w.size * sum(e.results), w.tiles * g.fixed_store
    port = (loaded + stored) * cores / g.gm_port
    busy = np.zeros((len(Engine), len(port)))
    busy[Engine.FEED], busy[Engine.DRAIN], busy[Engine.VECTOR] = w.feed, drain, vector
    busy[Engine.CUBE if e.drained else Engine.VECTOR] += w.cube
    busy[Engine.LOAD], busy[Engine.STORE] = loaded / g.gm_path + loads, stored / g.gm_path + stores
    inner = busy[Engine.FEED : Engine.VECTOR + 1].max(0)

    def pipeline(rate: "Column | float") -> Column:
        """Cycles, if transfers go at this rate. What is fixed of them goes on while other cores have the port."""
        load, store = (
            np.where(drift, np.maximum(moved / rate, moved / g.gm_path + fixed), moved / rate + fixed)
            for moved, fixed in ((loaded, loads), (stored, stores))
        )
        load = np.maximum(load, w.turns[0] / rate + w.turns[1])
        after = np.maximum(store, inner)
        return np.maximum(port, np.maximum(load, w.first / rate + after) + (drain + vector + store) / w.tiles)

    alone = (w.l1 > g.l1_bytes / 2) | (w.ub > g.ub_bytes / 2)
    handicap = TRAFFIC * port + np.where(alone, w.first / bandwidth, 0)
    cycles = pipeline(bandwidth) + ASIDE * (busy.sum(0) - busy.max(0))
    return Estimate(cycles, np.ascontiguousarray(busy.T), pipeline(g.gm_path), handicap, cores)


@cache
def grids(cores: int, dims: int) -> NDArray[np.float64]:
    """[grids, dims]: parts of nested dimensions, as many as there are cores for."""
    if dims == 1:
        return np.array([[float(cores)]])
    found = [
        (float(count), *rest)
        for count in sorted({cores // n for n in range(1, cores + 1)}, reverse=True)
        for rest in grids(cores // count, dims - 1).tolist()
    ]
    return np.array(found)


def share_out(
    sizes: Sequence[int], tiles: Sequence["Column | float"], cores: int, cost: Callable[[Shares, Column], Column]
) -> Column:
    """[rows, 3]: parts of three dimensions in tiles of so many elements, by row the grid of least cost. `cost` is given
    the busiest core's elements of each dimension and the number of cores that work."""
    size = np.array(sizes, np.float64)[:, None]
    tile = np.stack(np.broadcast_arrays(*tiles)).astype(np.float64)
    blocks = ceil(size, tile)
    several = [d for d in range(3) if (blocks[d] > 1).any()] or [0]
    grid = np.ones((len(grids(cores, len(several))), 3))
    grid[:, several] = grids(cores, len(several))
    chunk = ceil(blocks, grid[:, :, None])
    parts = ceil(blocks, chunk)
    active = parts.prod(1)
    share = np.minimum(size, chunk * tile)
    costs = cost((share[:, 0], share[:, 1], share[:, 2]), active)
    costs[(active == 1) & (blocks.prod(0) > 1)] = np.inf
    return parts[costs.argmin(0), :, np.arange(parts.shape[2])]


def shares(sizes: Sequence[int], tiles: Sequence["Column | float"], t: Table) -> Shares:
    """What the busiest core does of three dimensions in tiles, shared out as the table says."""
    b, m, n = (
        np.minimum(size, ceil(ceil(size, tile), t[part]) * tile)
        for size, tile, part in zip(sizes, tiles, PARTS, strict=True)
    )
    return b, m, n


def split(
    r: Rates,
    e: Epilogue,
    sizes: tuple[int, int, int],
    tiles: Sequence["Column | float"],
    cores: int,
    work: Callable[[Shares], tuple[Column, Column, Column]],
) -> Column:
    """[rows, 3]: parts of three dimensions, those for which the busiest core takes least by its busiest engine. `work`
    is given what it does of each, and says elements of the result, cycles of the cube and bytes of panels."""

    def cost(share: Shares, active: Column) -> Column:
        size, cube, panels = work(share)
        moved = panels + size * (sum(e.whole) + sum(e.results))
        return longest(r, e, size, cube, moved / r.bandwidth(active))

    return share_out(sizes, tiles, cores, cost)


def fitting(fits: NDArray[np.bool_], need: Column) -> NDArray[np.bool_]:
    """The rows that fit; if none does, the one that needs least, so that it can be said what is too much."""
    if fits.any() or not need.size:
        return fits
    return np.arange(len(need)) == np.argmin(need)


def fitted(t: Table, legal: "NDArray[np.bool_] | bool", need: Column, room: int) -> Table:
    """The legal rows that need no more bytes than there are; if none does, the one that needs least."""
    keep = fitting(legal & (need <= room), np.where(legal, need, np.inf))
    return {name: column[keep] for name, column in t.items()}


# nests ----------------------------------------------------------------------------------------------------------------
def number(value: "float | str") -> Dim:
    """An extent that no loop changes, a number or a parameter."""
    return Dim(NAMED, 1, value) if isinstance(value, str) else Dim(CONSTANT, 0, value)


@contextmanager
def maybe_loop(nest: Nest, several: bool, size: "float | str", step: "float | str", inside: Dim) -> Generator[Dim]:
    """A loop, unless it would run once."""
    if not several:
        yield inside
        return
    with nest.loop(size, step, inside) as dim:
        yield dim


def numbered(*flags: Column | NDArray[np.bool_]) -> NDArray[np.int64]:
    """A number for each row, the same if all flags are."""
    return np.stack(flags, 1).astype(np.int64) @ (1 << np.arange(len(flags)))


def inner_loops(
    depth: int, k0: "Column | int", k1: "Column | int", streamed: "NDArray[np.bool_] | bool"
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether a segment of `depth` has several chunks of k1, where panels are streamed, and a chunk several steps of
    k0."""
    most = min(depth, SEGMENT)
    return np.logical_and(streamed, np.less(k1, most)), np.less(k0, np.where(streamed, np.minimum(k1, most), most))


def contract(
    nest: Nest,
    r: Rates,
    depth: "int | str",
    loops: Sequence[bool],
    m: Dim,
    n: Dim,
    panels: Callable[[Dim], tuple[int, int]],
) -> int:
    """The loops over k, as `contraction.contract` emits them; the accumulator. `depth`: a parameter only where k is one
    segment. `loops`: a row of `inner_loops`. `panels` loads the panels of a chunk, unless they stand, and returns the
    left and the right one."""
    segmented = not isinstance(depth, str) and depth > SEGMENT
    acc = part = nest.buffer(1 if segmented else 2)
    with ExitStack() as stack:
        segment = number(depth)
        if segmented:
            segment = stack.enter_context(nest.loop(depth, SEGMENT))
            part = nest.buffer(1) if r.esize > 1 else acc  # sums of bytes are exact: no segment is summed apart
        with maybe_loop(nest, loops[0], depth, "k1", segment) as chunk:
            a, b = panels(chunk)
            with maybe_loop(nest, loops[1], depth, "k0", chunk) as k:
                a0, b0 = nest.buffer(), nest.buffer()
                r.feed(nest, a, a0, m, k, left=True)
                r.feed(nest, b, b0, n, k, left=False)
                r.mma(nest, a0, b0, part, m, n, k)
        if part != acc:
            nest.op(Engine.CUBE, r.target.fixed_mma, 4 / r.target.fold_bytes, (m, n), (part,), (acc,))
    return acc
