"""The schedules of a pool: tiles of rows, columns and channels of the result, chunks of the taps of a window.

A tile has whole rows; or it is of the fewest rows, and of some of their columns; or of the fewest of both, its windows
in chunks.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from ...dialects.loops import Window
from ...dialects.tile import SIZES
from ...runtime.expr import LEVELS
from ...runtime.isa import Engine
from ...runtime.replay import CONSTANT, Dim, Nest
from .geometry import Image
from .schedule import (
    PARTS,
    Column,
    Epilogue,
    Rates,
    Share,
    Shares,
    Table,
    Work,
    ceil,
    fitted,
    maybe_loop,
    number,
    split,
)
from .search import Form, Parts
from .space import balanced

UNROLLED = 64
"""Most taps that are instructions of their own; of more, the rows are a loop."""


@dataclass(frozen=True)
class Axis:
    """A window along one axis."""

    size: int
    out: int
    taps: int
    stride: int
    dilation: int
    pad: int

    @overload
    def span(self, out: int, taps: int) -> int: ...
    @overload
    def span(self, out: Column, taps: Column) -> Column: ...
    def span(self, out: int | Column, taps: int | Column) -> int | Column:
        """Positions under `out` windows of `taps` taps."""
        return (out - 1) * self.stride + (taps - 1) * self.dilation + 1

    @property
    def is_padded(self) -> bool:
        """Whether a window reaches beyond the image."""
        return self.pad > 0 or self.span(self.out, self.taps) > self.size

    def tiles(self) -> list[int]:
        """Windows of a tile to try, many first: the second tile begins behind the padding, the last in the image."""
        parts = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
        found = {balanced(self.out, max(1, self.out // part)) for part in parts} | {1}
        least = min(self.out, max(1, -(-self.pad // self.stride)))
        inside = (n for n in found if (-(-self.out // n) - 1) * n * self.stride <= self.size)
        return sorted((n for n in inside if n >= least), reverse=True)

    def chunks(self) -> list[int]:
        """Taps of a chunk to try, all of them first; the second chunk begins behind the padding."""
        found, chunk = [self.taps], self.taps
        while chunk > 1:
            chunk = -(-chunk // 2)
            if chunk * self.dilation >= self.pad:
                found.append(chunk)
        return found

    def begins_inside(self, out: Column, taps: Column) -> NDArray[np.bool_]:
        """Whether the last chunk of `taps` of the last tile of `out` windows begins in the image, or there is no
        padding before it."""
        last = (ceil(self.out, out) - 1) * out * self.stride + (ceil(self.taps, taps) - 1) * taps * self.dilation
        return (last <= self.size) | (self.pad == 0)

    def loaded(self, out: Column, taps: Column) -> "Loaded":
        """What a panel has of the image, in the mean over tiles of `out` windows and chunks of `taps`."""
        kinds, of = np.unique(np.stack([out, taps], 1), axis=0, return_inverse=True)
        found: list[tuple[float, float, float]] = []
        for tile, chunk in kinds.astype(np.int64).tolist():
            first = np.arange(0, self.out, tile)[:, None] * self.stride
            first = first + np.arange(0, self.taps, chunk) * self.dilation
            below = max(min(self.span(tile, chunk) - self.pad, self.size), 0)
            over, rest = np.minimum(first, self.pad), np.clip(self.size - first, 0, below)
            found.append((float(over.mean()), float((over > 0).mean()), float(rest.mean())))
        over, there, rest = np.array(found)[of.ravel()].T
        return Loaded(over, there, rest)


class Loaded(NamedTuple):
    """Positions of a panel along an axis, and how often the first of its two loads is one."""

    over: Column
    """Those that the first panel would have in the padding."""
    there: Column
    rest: Column


class Cut(NamedTuple):
    """Rows, columns and channels of a tile; taps of a chunk, down and across."""

    rows: int
    columns: int
    channels: int
    down: int
    across: int
    parts: Parts = (1, 1, 1)


@dataclass(frozen=True)
class Pool:
    """A window over an image, and whether the taps inside it are counted."""

    image: Image
    kernel: Window
    held: int = 0
    """Bytes of an element of its result, where that is not what is stored."""

    @cached_property
    def axes(self) -> tuple[Axis, Axis]:
        """Down and across."""
        image = self.image
        extents = ((image.h, image.oh), (image.w, image.ow))
        numbers = zip(extents, image.kernel, image.strides, image.dilations, image.pads, strict=True)
        first, second = (Axis(*extent, *rest) for extent, *rest in numbers)
        return first, second

    @property
    def padded(self) -> bool:
        return any(axis.is_padded for axis in self.axes)

    @property
    def counted(self) -> bool:
        """Whether a mean is over the taps that lie inside the image."""
        return self.kernel.fn == "mean" and not self.kernel.count_include_pad and self.padded

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Of what is shared out."""
        return self.image.batch, self.image.oh, self.image.channels

    def unrolls(self, down: "int | Column", across: "int | Column") -> NDArray[np.bool_]:
        """Whether each tap is an instruction of its own."""
        taps = self.image.kernel
        return np.equal(down, taps[0]) & np.equal(across, taps[1]) & (self.image.taps <= UNROLLED)


def _cuts(p: Pool) -> Iterator[tuple[int, ...]]:
    """Whole rows; then parts of rows; then parts of a window."""
    image, (down, across) = p.image, p.axes
    sizes = (image.channels, 512, 256, 128, 64, 32, 16)
    blocks = [balanced(image.channels, c) for c in sizes if c <= image.channels]
    blocks += [c for c in (8, 4, 2, 1) if c < blocks[-1]]
    rows, columns, (all_down, *few_down) = down.tiles(), across.tiles(), down.chunks()
    for channels in blocks:
        yield from ((n, image.ow, channels, all_down, across.taps) for n in rows)
        yield from ((rows[-1], n, channels, all_down, across.taps) for n in columns)
        yield from ((rows[-1], columns[-1], channels, taps, across.taps) for taps in few_down)
        least = down.chunks()[-1]
        yield from ((rows[-1], columns[-1], channels, least, taps) for taps in across.chunks())


def levels(p: Pool, t: Table) -> Column:
    """Most loops, one in another; a single tile is in one too, that of the first core."""
    image, (down, across) = p.image, p.axes
    tiles = np.full_like(t["rows"], image.batch > 1)
    tiles += (t["rows"] < image.oh) + 1.0 * (t["columns"] < image.ow) + (t["channels"] < image.channels)
    chunks = (t["down"] < down.taps) + 1.0 * (t["across"] < across.taps)
    rest = (across.taps % t["across"] > 0) | (across.taps > UNROLLED)  # the last chunk is shorter: a loop
    taps = (t["down"] > 1) + 1.0 * ((t["across"] > 1) & rest)
    counts = any(axis.is_padded and axis.taps > UNROLLED for axis in p.axes)
    inside = np.where(p.unrolls(t["down"], t["across"]), 0, chunks + taps)
    return np.maximum(1, tiles) + np.maximum(inside, counts)


def panel_bytes(p: Pool, t: Table) -> Column:
    """Bytes of a panel in UB."""
    down, across = p.axes
    pixels = down.span(t["rows"], t["down"]) * across.span(t["columns"], t["across"])
    return pixels * t["channels"] * SIZES[p.image.dtype]


def ub_need(p: Pool, t: Table, e: Epilogue) -> Column:
    """Bytes in UB at least: panels and results twice, the sums once."""
    return t["rows"] * t["columns"] * t["channels"] * (4 + 2 * p.held + e.ub) + 2 * panel_bytes(p, t)


def taps_of(p: Pool, e: Epilogue) -> Epilogue:
    """The taps of a window as what the vector engine does."""
    return replace(e, ops=((4, p.image.taps),))


def splits(p: Pool, t: Table, r: Rates, cores: int, e: Epilogue) -> Table:
    """How the tiles are shared out over the cores, as columns."""
    image = p.image

    def work(share: Shares) -> tuple[Column, Column, Column]:
        b, oh, n = share
        size = b * oh * image.ow * n
        moved = b * image.loaded_rows(oh, ceil(oh, t["rows"])) * image.w * n * r.esize
        return size, taps_of(p, e).vector(r, size, 1, 1, 1), moved

    found = split(r, e, p.sizes, (1, t["rows"], t["channels"]), cores, work)
    return {name: found[:, i] for i, name in enumerate(PARTS)}


def fills(p: Pool, t: Table, r: Rates) -> tuple[Column, Column, float]:
    """Cycles of the load engine that fill a panel, the sums of a tile, and what counts its taps."""
    g, area = r.target, t["rows"] * t["columns"] * t["channels"]
    panel = (g.fixed_load + panel_bytes(p, t) / g.fill_bytes) * p.padded
    sums = (g.fixed_load + area * 4 / g.fill_bytes) * ~p.unrolls(t["down"], t["across"])
    return panel, sums, 8.0 * g.fixed_load * p.counted


def nest_of(p: Pool, cut: Cut, r: Rates, e: Epilogue) -> Nest:
    """The loop nest of the cuts that have the structure of `cut`, as `window` emits it."""
    g, image, (down, across) = r.target, p.image, p.axes
    nest = Nest(
        "b", "r", "n", "rows", "columns", "n0", "down", "across", "height", "width", "left", "top", "side", "corner",
        "taps", "each", "panel", "sums", "above",
    )  # fmt: skip
    trips = {"b": (image.batch > 1, "b", 1), "r": (cut.rows < image.oh, "r", "rows")}
    trips |= {"x": (cut.columns < image.ow, image.ow, "columns"), "n": (cut.channels < image.channels, "n", "n0")}
    here = {"b": number(1), "r": number(image.oh), "x": number(image.ow), "n": number(image.channels)}
    with ExitStack() as stack:
        for d, (several, size, step) in trips.items():
            if several:
                here[d] = stack.enter_context(nest.loop(size, step))
        n = here["n"]
        m = Dim(here["x"].loop, "rows") if trips["x"][0] else here["r"].scaled(image.ow)
        loaded = e.loads(nest, r, m, n)
        acc = nest.buffer(1)
        if not p.unrolls(cut.down, cut.across):
            r.fill(nest, acc, "sums")
        with (
            maybe_loop(nest, cut.down < down.taps, down.taps, "down", number(down.taps)) as y,
            maybe_loop(nest, cut.across < across.taps, across.taps, "across", number(across.taps)) as x,
        ):
            panel = nest.buffer()
            if p.padded:
                r.fill(nest, panel, "panel")
            rows = _positions(down, here["r"], y, "height")
            columns = _positions(across, here["x"], x, "width")
            over = down.pad > 0 and (cut.rows < image.oh or cut.down < down.taps)
            left = across.pad > 0 and (cut.columns < image.ow or cut.across < across.taps)
            for fixed, *part in _loads(g.fixed_load, over, left, rows, columns):
                unit, run = g.gm_burst / g.gm_path, n.scaled(r.esize).blocks(g.gm_burst)
                nest.op(Engine.LOAD, fixed, unit, (*part, run), writes=(panel,))
            dims = (m, n) if n.loop < 0 else (m, n, n.apart("n0", g.vector_bytes / 4))
            nest.op(Engine.VECTOR, "taps", "each", dims, (panel,), (acc,))
        if p.counted:
            loaded = [_counts(nest, p, r), *loaded]
        e.emit(nest, r, acc, loaded, m, n)
    return nest


def _positions(axis: Axis, tile: Dim, chunk: Dim, mean: str) -> Dim:
    """What a panel has along an axis but for the padding's share, of a chunk of taps if that is a loop: a parameter,
    unless all windows lie inside. Those in chunks then come one by one."""
    if axis.is_padded:
        return number(mean)
    if chunk.loop >= 0:
        return chunk.scaled(axis.dilation).plus(1 - axis.dilation)
    return tile.scaled(axis.stride).plus(axis.span(1, axis.taps) - axis.stride)


def _loads(fixed: float, over: bool, left: bool, rows: Dim, columns: Dim) -> Iterator[tuple["float | str", Dim, Dim]]:
    """What is fixed of the loads of a panel, and rows and columns of each."""
    if over and left:
        yield "corner", Dim(CONSTANT, 0, "above"), number("left")
    if over:
        yield "top", Dim(CONSTANT, 0, "above"), columns
    if left:
        yield "side", rows, number("left")
    yield fixed, rows, columns


def _counts(nest: Nest, p: Pool, r: Rates) -> int:
    """How many taps of each window of a tile lie inside the image."""
    ones, counts, fixed = nest.buffer(1), nest.buffer(1), r.target.fixed_vector
    nest.op(Engine.LOAD, 8 * r.target.fixed_load, 1, (), (), (ones,))
    nest.op(Engine.VECTOR, (sum(p.image.kernel) + 1) * fixed, 1, (), (ones,), (counts,))
    return counts


@dataclass(frozen=True)
class PoolForm(Form[Cut]):
    """The cuts of a pool."""

    pool: Pool

    kind: ClassVar = Cut

    @property
    def dtype(self) -> str:
        return self.pool.image.dtype

    @property
    def sizes(self) -> tuple[int, int, int]:
        return self.pool.sizes

    @property
    def halo(self) -> int:
        return self.pool.image.pads[0]

    def tiles(self, t: Table) -> Sequence["Column | float"]:
        return 1, t["rows"], t["channels"]

    def lattice(self) -> Table:
        """All cuts whose loops may nest and whose tiles may fit UB; each shared out in the one way that suits its tiles
        best."""
        p, table = self.pool, np.array([*dict.fromkeys(_cuts(self.pool))], np.float64)
        t = {name: table[:, i] for i, name in enumerate(self.names)}
        down, across = p.axes
        inside = down.begins_inside(t["rows"], t["down"]) & across.begins_inside(t["columns"], t["across"])
        legal = inside & (levels(p, t) <= LEVELS)
        t = fitted(t, legal, ub_need(p, t, self.epilogue), self.target.ub_bytes)
        return t | splits(p, t, self.rates, self.cores, self.epilogue)

    def work(self, t: Table, share: Share) -> Work:
        p, r, g, e, image = self.pool, self.rates, self.target, self.epilogue, self.pool.image
        (down, across), (b, oh, n) = p.axes, share.most
        lines, windows = ceil(oh, t["rows"]), ceil(image.ow, t["columns"])
        tiles, size = b * lines * windows * ceil(n, t["channels"]), b * oh * image.ow * n
        chunks = ceil(down.taps, t["down"]) * ceil(across.taps, t["across"])
        rows, columns = down.loaded(t["rows"], t["down"]), across.loaded(t["columns"], t["across"])
        run = ceil(t["channels"] * r.esize, g.gm_burst) * g.gm_burst
        traffic = tiles * chunks * (rows.over + rows.rest) * (columns.over + columns.rest) * run
        transfers = tiles * chunks * (1 + rows.there) * (1 + columns.there)
        panel, sums, counts = fills(p, t, r)
        taps = taps_of(p, e).vector(r, size, n, t["channels"], image.channels)
        taps += tiles * (image.taps + (sum(image.kernel) + 1) * p.counted) * g.fixed_vector
        none, filled = np.zeros_like(size), tiles * (chunks * panel + sums + counts)
        first, ub = panel_bytes(p, t), ub_need(p, t, e)
        return Work(size, tiles, taps, none, transfers, first, none, ub, both=traffic, fills=filled)

    def _above(self, t: Table, share: Share) -> tuple[NDArray[np.bool_], Column, Column]:
        """Whether cores have one panel; rows that are above one, and how often there are any."""
        down, _ = self.pool.axes
        alone, rows = share.most[1] <= t["rows"], down.loaded(t["rows"], t["down"])
        return alone, np.where(alone, down.pad, rows.over), np.where(alone, 1, rows.there)

    def parameters(self, t: Table, share: Share) -> Sequence[Column]:
        g, p, (down, across) = self.target, self.pool, self.pool.axes
        taps = p.image.taps / (ceil(down.taps, t["down"]) * ceil(across.taps, t["across"]))
        rows, columns = down.loaded(t["rows"], t["down"]), across.loaded(t["columns"], t["across"])
        _, above, there = self._above(t, share)
        fixed = [1 + (g.fixed_load - 1) * often for often in (there, columns.there, there * columns.there)]
        panel, sums, _ = fills(p, t, self.rates)
        loads, vectors = (
            [rows.rest, columns.rest, columns.over, *fixed],
            [taps * g.fixed_vector, taps * 4 / g.vector_bytes],
        )
        return [*(t[name] for name in self.names), *loads, *vectors, panel - 1, sums - 1, above]

    def structure(self, t: Table) -> Sequence[Column | NDArray[np.bool_]]:
        image, (down, across) = self.pool.image, self.pool.axes
        tiles = [t["rows"] < image.oh, t["columns"] < image.ow, t["channels"] < image.channels]
        return [*tiles, t["down"] < down.taps, t["across"] < across.taps]

    def nest(self, schedule: Cut) -> Nest:
        return nest_of(self.pool, schedule, self.rates, self.epilogue)

    def first(self, t: Table, share: Share) -> Column | None:
        """There is nothing above the first panel."""
        alone, above, _ = self._above(t, share)
        return np.where(alone, 0, above)
