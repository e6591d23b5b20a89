"""The schedules of a matrix product: a lattice of tile sizes and residencies, an estimate to rank it, a loop nest to
replay.

A schedule says how large the tiles are, which loop is outside, and what stands in L1: a whole panel of an operand (all
of K for its tile) or a chunk of K at a time. The cube's tile sizes decide the traffic from L1, the residency that from
global memory.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...dialects.tile import SIZES
from ...runtime.replay import Dim, Nest
from ...runtime.target import Target
from .schedule import (
    PARTS,
    SEGMENT,
    Column,
    Epilogue,
    Rates,
    Share,
    Shares,
    Table,
    Work,
    ceil,
    contract,
    distinct,
    fitted,
    fitting,
    inner_loops,
    number,
    shares,
    split,
    tile_sizes,
)
from .search import Form, Parts
from .space import up16


@dataclass(frozen=True)
class Matrix:
    """Where a matrix stands in a tensor: the element of its first, and strides of batch, row and column; one of the
    last two is 1."""

    offset: int
    batch: int
    row: int
    column: int


@dataclass(frozen=True)
class Packing:
    """A w of integers that become floats as they are fed: their bits, and the bytes that stand beside a whole column,
    of scales and of zero points."""

    bits: int
    beside: tuple[int, ...]


@dataclass(frozen=True)
class Product:
    """c[b, m, n] = Σ a[b, m, k]·w[b, n, k]: sizes, and where the matrices stand (w by rows of n)."""

    batch: int
    m: int
    n: int
    k: int
    dtype: str
    a: Matrix
    w: Matrix
    c: Matrix
    packing: Packing | None = None

    @staticmethod
    def plain(m: int, n: int, k: int, dtype: str) -> "Product":
        """Row-major matrices [m, k] and [k, n]."""
        return Product(1, m, n, k, dtype, Matrix(0, 0, k, 1), Matrix(0, 0, 1, n), Matrix(0, 0, n, 1))

    @property
    def esize(self) -> int:
        return SIZES[self.dtype]

    @property
    def shared(self) -> bool:
        """All batches have the same w."""
        return self.w.batch == 0

    @property
    def w_size(self) -> float:
        """Bytes of an element of w in memory and in L1."""
        return self.esize if self.packing is None else self.packing.bits / 8

    @property
    def column_bytes(self) -> float:
        """Bytes of a column of w, and of what stands beside it."""
        return self.k * self.w_size + sum(self.beside)

    @property
    def beside(self) -> tuple[int, ...]:
        """Bytes beside a column of w."""
        return () if self.packing is None else self.packing.beside


class Tiling(NamedTuple):
    """Tile sizes and the place of each panel: `a_full`, `w_full` (all of K, at the loop it depends on) or by k1."""

    m0: int
    n0: int
    k0: int
    k1: int
    m_outer: bool
    a_full: bool
    w_full: bool
    parts: Parts = (1, 1, 1)

    def loops(self, p: Product) -> tuple[str, ...]:
        """The loops over tiles, from the outside; a loop of one trip is none."""
        order = ("b", "m", "n") if self.m_outer else ("b", "n", "m")
        blocks = {"b": p.batch, "m": -(-p.m // self.m0), "n": -(-p.n // self.n0)}
        return tuple(d for d in order if blocks[d] > 1)


def splits(
    p: Product, m0: NDArray[np.int64], n0: NDArray[np.int64], r: Rates, cores: int, e: Epilogue
) -> NDArray[np.float64]:
    """[3, tiles, 3]: how tiles are shared out if the left panels stand, the right ones, or none."""
    rows, columns = (np.tile(size.astype(np.float64), 3) for size in (m0, n0))
    left, right = (np.repeat([kind == side for kind in range(3)], len(m0)) for side in range(2))

    def work(share: Shares) -> tuple[Column, Column, Column]:
        g, (b, m, n) = r.target, share
        a_times = np.where(left, 1, ceil(n, columns))
        w_times = np.where(right | left & (columns >= p.n), 1, ceil(m, rows)) * (1 if p.shared else b)
        cube = b * ceil(m, g.cube_m) * ceil(n, g.cube_n) * ceil(p.k, r.block_k) * r.block
        return b * m * n, cube, a_times * b * m * p.k * p.esize + w_times * n * p.column_bytes

    return split(r, e, (p.batch, p.m, p.n), (1, rows, columns), cores, work).reshape(3, -1, 3)


def k_steps(depth: int, tiles: NDArray[np.int64], esize: int, target: Target) -> NDArray[np.int64]:
    """[tiles, (…, m0, n0, k0)]: steps of k for which both operands fit L0 twice: the longest, and its half and quarter.
    The last columns of `tiles` are m0 and n0."""
    m0, n0 = tiles[:, -2:].T
    most = np.minimum(target.l0a_bytes // (2 * esize * m0), target.l0b_bytes // (2 * esize * n0)) // 16
    blocks = -(-min(depth, SEGMENT) // 16)
    found: list[NDArray[np.int64]] = []
    for share in (1, 2, 4):
        k0 = np.minimum(most // share, blocks)
        ok = k0 >= 1
        k0 = np.maximum(k0, 1)
        if depth > SEGMENT:  # segments are whole steps
            k0 = 2 ** np.floor(np.log2(k0)).astype(np.int64)
        else:
            k0 = -(-blocks // -(-blocks // k0))
        found.append(np.concatenate([tiles, 16 * k0[:, None]], 1)[ok])
    return distinct(np.concatenate(found))


def l1_need(p: Product, t: Table) -> Column:
    """Bytes of the panels in L1: twice, unless a core comes to their loop once."""
    b, m, n = shares((p.batch, p.m, p.n), (1, t["m0"], t["n0"]), t)
    nm, nn, m_outer = ceil(m, t["m0"]), ceil(n, t["n0"]), t["m_outer"] == 1
    once_a = (t["a_full"] == 1) & (b == 1) & (nm == 1) & (m_outer | (nn == 1) | (t["m0"] >= p.m))
    once_n = (nn == 1) & ((b == 1) & (~m_outer | (nm == 1)) | (t["n0"] >= p.n) & (p.shared | (b == 1)))
    once_w = (t["w_full"] == 1) & once_n
    k = up16(p.k)
    a = t["m0"] * np.where(t["a_full"] == 1, k, t["k1"]) * np.where(once_a, 1, 2)
    w = t["n0"] * np.where(t["w_full"] == 1, k, t["k1"]) * np.where(once_w, 1, 2)
    return a * p.esize + w * p.w_size + t["n0"] * sum(p.beside) * np.where(once_n, 1, 2)


class Structure(NamedTuple):
    """What the nests of tilings have in common."""

    loops: tuple[str, ...]
    inner: tuple[bool, ...]
    """A row of `inner_loops`."""
    full: tuple[bool, bool]
    """Of the left and the right operand, as below."""
    along: tuple[bool, bool]
    """Whether k is contiguous in global memory."""
    shared: bool
    depth: int | None
    """k, if it has several segments."""
    packing: Packing | None = None


@lru_cache(maxsize=512)
def nest_of(s: Structure, r: Rates, e: Epilogue) -> Nest:
    """The loop nest of the tilings of one structure, as `contraction` emits it."""
    nest = Nest("b", "m", "n", "m0", "n0", "k0", "k1", "all m", "all n", "all k")
    depth = s.depth or "all k"
    here = {"b": number(1), "m": number("all m"), "n": number("all n")}
    sides = (("w", 1, "n" if s.shared else "bn"), ("a", 0, "bm"))
    with ExitStack() as stack:
        panels: dict[str, int] = {}
        for level in range(-1, len(s.loops)):
            if level >= 0:
                d = s.loops[level]
                here[d] = stack.enter_context(nest.loop(d, {"b": 1, "m": "m0", "n": "n0"}[d]))
            for side, place, depends in sides:
                at = max((s.loops.index(d) for d in depends if d in s.loops), default=-1)
                if s.packing is not None and side == "w" and at == level:
                    for size in s.packing.beside:
                        r.load(nest, nest.buffer(), (), here["n"], size)
                if s.full[place] and at == level:
                    panels[side] = nest.buffer()
                    panel_load(nest, r, s, side, panels[side], here, number(depth))
        m, n = here["m"], here["n"]
        loaded = e.loads(nest, r, m, n)

        def chunk(k: Dim) -> tuple[int, int]:
            """The panels of both operands, those that do not stand loaded."""
            for side, _, _ in sides:
                if side not in panels:
                    panels[side] = nest.buffer()
                    panel_load(nest, r, s, side, panels[side], here, k)
            return panels["a"], panels["w"]

        acc = contract(nest, r, depth, s.inner, m, n, chunk)
        e.emit(nest, r, acc, loaded, m, n)
    return nest


def panel_load(nest: Nest, r: Rates, s: Structure, side: str, into: int, here: dict[str, Dim], k: Dim) -> None:
    """A panel in the order that its operand is stored in."""
    rows = here["m" if side == "a" else "n"]
    if side == "w" and s.packing is not None:
        r.load(nest, into, (rows,), k, s.packing.bits / 8)
    elif s.along[side == "w"]:
        r.load(nest, into, (rows,), k)
    else:
        r.load(nest, into, (k,), rows)


KINDS = np.array(
    [
        (steps, m_outer, *full)
        for steps, m_outer, *full in product((1, 2, 4, 8), (1, 0), (1, 0), (1, 0))
        if steps == 1 or full != [1, 1]
    ]
).T[:, :, None]
"""Of tilings: steps of k0 in k1, `m_outer`, `a_full`, `w_full`."""


@dataclass(frozen=True)
class ProductForm(Form[Tiling]):
    """The tilings of a product."""

    p: Product

    kind: ClassVar = Tiling

    @property
    def dtype(self) -> str:
        return self.p.dtype

    @property
    def sizes(self) -> tuple[int, int, int]:
        return self.p.batch, self.p.m, self.p.n

    def tiles(self, t: Table) -> Sequence["Column | float"]:
        return 1, t["m0"], t["n0"]

    def lattice(self) -> Table:
        """All tilings whose tiles fit L0 and UB twice and whose panels fit L1; each shared out in the one way that
        suits its tiles best."""
        p, r, epilogue, target = self.p, self.rates, self.epilogue, self.target
        m0, n0 = (a.ravel() for a in np.meshgrid(tile_sizes(p.m, 512), tile_sizes(p.n, 512), indexing="ij"))
        fits = fitting((8 * m0 * n0 <= target.l0c_bytes) & (m0 * n0 * epilogue.ub <= target.ub_bytes), m0 * n0)
        m0, n0 = m0[fits], n0[fits]
        depth = up16(min(p.k, SEGMENT))
        tiles = k_steps(p.k, np.stack([m0, n0], 1), p.esize, target)
        rows, columns, k0 = tiles.T
        steps, m_outer, a_full, w_full = KINDS
        several = (rows < p.m) & (columns < p.n)  # otherwise there is but one order of loops
        wanted = (k0 * steps < 2 * depth) & (several | (m_outer == 1))  # not covered by fewer steps
        k1 = np.minimum(k0 * steps, depth)
        fields = zip(self.names, (rows, columns, k0, k1, m_outer, a_full, w_full), strict=True)
        t = {name: np.broadcast_to(field, wanted.shape)[wanted].astype(np.float64) for name, field in fields}
        parts = splits(p, m0, n0, r, self.cores, epilogue)
        kind = np.where((m_outer & a_full) == 1, 0, np.where((w_full == 1) & ((m_outer == 0) | ~several), 1, 2))
        tile = np.searchsorted(m0 * 1024 + n0, rows * 1024 + columns)
        t |= {name: parts[kind, tile, i][wanted] for i, name in enumerate(PARTS)}
        return fitted(t, True, l1_need(p, t), target.l1_bytes)

    def work(self, t: Table, share: Share) -> Work:
        p, r, g, es = self.p, self.rates, self.target, self.p.esize
        b, m, n = share.most
        nm, nn, nk = ceil(m, t["m0"]), ceil(n, t["n0"]), ceil(p.k, t["k0"])
        a_full, w_full, m_outer = t["a_full"] == 1, t["w_full"] == 1, t["m_outer"] == 1
        tiles, chunks = b * nm * nn, ceil(p.k, t["k1"])
        # A panel stands while loops inside its own run, those of one trip not emitted.
        m_whole, n_whole = t["m0"] >= p.m, t["n0"] >= p.n
        a_times = np.where((a_full & (m_outer | m_whole)) | (nn == 1), 1, nn)
        w_once = (w_full & (~m_outer | n_whole)) | (nm == 1)
        w_times = np.where(w_once, 1, nm) * np.where(w_once & p.shared & n_whole, 1, b)
        left, right = a_times * b * m * p.k * es, w_times * n * p.column_bytes
        w_loads = np.where(w_full, 1, chunks) + len(p.beside)
        transfers = a_times * b * nm * np.where(a_full, 1, chunks) + w_times * nn * w_loads
        feed = b * p.k * es * (nn * m / g.feed_a_bytes + nm * n / g.feed_b_bytes) + tiles * 2 * nk * g.fixed_feed
        cube = b * ceil(m, g.cube_m) * ceil(n, g.cube_n) * ceil(p.k, r.block_k) * r.block + tiles * nk * g.fixed_mma
        first = t["m0"] * np.where(a_full, p.k, t["k1"]) * es
        first += t["n0"] * (np.where(w_full, p.k, t["k1"]) * p.w_size + sum(p.beside))
        l1, ub = l1_need(p, t), t["m0"] * t["n0"] * self.epilogue.ub
        return Work(b * m * n, tiles, cube, feed, transfers, first, l1, ub, left, right)

    def parameters(self, t: Table, share: Share) -> Sequence[Column]:
        whole = (np.full_like(t["m0"], size) for size in (self.p.m, self.p.n, self.p.k))
        return [*(t[name] for name in ("m0", "n0", "k0", "k1")), *whole]

    def structure(self, t: Table) -> Sequence["Column | NDArray[np.bool_]"]:
        rows_loop, columns_loop = t["m0"] < self.p.m, t["n0"] < self.p.n
        m_outer = rows_loop & columns_loop & (t["m_outer"] == 1)
        inner = inner_loops(self.p.k, t["k0"], t["k1"], (t["a_full"] == 0) | (t["w_full"] == 0))
        return [rows_loop, columns_loop, m_outer, t["a_full"], t["w_full"], *inner]

    def nest(self, schedule: Tiling) -> Nest:
        p, x = self.p, schedule
        inner = inner_loops(p.k, x.k0, x.k1, not (x.a_full and x.w_full))
        along, depth = (p.a.column == 1, p.w.column == 1), p.k if p.k > SEGMENT else None
        full = bool(x.a_full), bool(x.w_full)
        s = Structure(x.loops(p), (bool(inner[0]), bool(inner[1])), full, along, p.shared, depth, p.packing)
        return nest_of(s, self.rates, self.epilogue)
