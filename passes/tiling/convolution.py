"""The schedules of a convolution: panels of image rows, tiles of the cube, where the weights stand.

The panel of input rows under some output rows is whole in L1; the weights of a column block are resident, or stream in
chunks of k. Either the row panels or the column blocks are the outer loop. Where panels are large, one may also be cut:
into windows of one output row; and it may come with each tile, what a chunk of k has of it at a time: some blocks of
channels, or of one block some rows of the kernel. Where a segment of k ends inside a chunk, both its parts load it.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...dialects.tile import SIZES
from ...runtime.expr import LEVELS
from ...runtime.isa import Engine
from ...runtime.replay import CONSTANT, Dim, Nest
from ...runtime.target import Target
from .geometry import Image, panel_heights
from .product import k_steps
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
    maybe_loop,
    number,
    shares,
    split,
    tile_sizes,
)
from .search import Form, Parts
from .space import up16


class Cut(NamedTuple):
    """Sizes of a convolution's tiles: output rows of a panel, pixels, columns, k; `k1`: chunk of k of weights that are
    not `resident` (all of K of a column block in L1); `slots`: panels of rows at a time; `window`: a panel is for m0
    pixels of one row; `stream`: it holds the part of a chunk of k."""

    rows: int
    m0: int
    n0: int
    k0: int
    k1: int
    resident: bool
    rows_outer: bool
    slots: int = 2
    window: bool = False
    stream: bool = False
    parts: Parts = (1, 1, 1)

    def loops(self, image: Image, columns: int) -> tuple[str, ...]:
        """The loops over tiles, from the outside; a loop of one trip is none."""
        order = ("b", "r", "x", "n") if self.rows_outer else ("b", "n", "r", "x")
        windows = -(-image.ow // self.m0) if self.window else 1
        trips = {"b": image.batch, "r": -(-image.oh // self.rows), "x": windows, "n": -(-columns // self.n0)}
        return tuple(d for d in order if trips[d] > 1)


SIZED = Cut._fields[:-1]
"""The fields but for the parts."""
SLOT = np.array([name == "slots" for name in SIZED], np.int64)
"""What a cut with one slot has less than one with two: slow, but better than nothing."""


def _ordered(image: Image, columns: int, table: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Of rows of `SIZED`, whether the order of their loops makes a difference."""
    t = dict(zip(SIZED, table.T, strict=True))
    return (t["n0"] < columns) & ((t["rows"] < image.oh) | (t["window"] == 1))


def _tiles(
    rows: int, sizes: Sequence[int], columns: int, r: Rates, epilogue: Epilogue, least: bool = False
) -> NDArray[np.int64]:
    """[tiles, (rows, m0, n0)] that fit L0C and UB twice; if none does, the `least`."""
    m0, n0 = (a.ravel() for a in np.meshgrid(sizes, tile_sizes(columns, 512), indexing="ij"))
    fits = (8 * m0 * n0 <= r.target.l0c_bytes) & (m0 * n0 * epilogue.ub <= r.target.ub_bytes)
    if least:
        fits = fitting(fits, m0 * n0)
    return np.stack([np.full_like(m0, rows), m0, n0], 1)[fits]


KINDS = np.array([(*kind, outer) for kind in ((1, 1), (0, 1), (0, 2), (0, 4)) for outer in (1, 0)]).T[:, :, None]
"""Of cuts with panels of all channels: `resident`, steps of k0 in k1, `rows_outer`."""
STREAMS = np.array([(resident, outer) for resident in (1, 0) for outer in (1, 0)]).T[:, :, None]
"""Of others `resident` and `rows_outer`."""


def _whole(image: Image, tiles: NDArray[np.int64], window: bool = False) -> NDArray[np.int64]:
    """Cuts of tiles (rows, m0, n0, k0) with panels of all channels, as rows of `SIZED`."""
    resident, steps, rows_outer = KINDS
    k1 = np.minimum(tiles[:, 3] * steps, up16(min(image.depth, SEGMENT)))
    return _rows(tiles, k1, resident, rows_outer, 2, window, False)


def _rows(tiles: NDArray[np.int64], *fields: "int | NDArray[np.int64]") -> NDArray[np.int64]:
    """Rows of `SIZED`: tiles (rows, m0, n0, k0), and the fields behind, by kind of cut."""
    return np.stack(np.broadcast_arrays(*tiles.T, *fields), -1).reshape(-1, len(SIZED))


def _cut_panels(image: Image, columns: int, r: Rates, epilogue: Epilogue) -> Iterator[NDArray[np.int64]]:
    """Cuts whose panel is the window under one tile, has the part of a chunk of k, or both."""
    shapes = [(1, m, True) for m in image.window_tiles()]
    shapes += [(rows, up16(rows * image.ow), False) for rows in panel_heights(image, True) if rows * image.ow <= 512]
    for rows, m, window in shapes:
        found = _tiles(rows, [m], columns, r, epilogue)
        if window:
            yield _whole(image, k_steps(image.depth, found, r.esize, r.target), window)
        for k1 in image.chunks():
            k0 = _steps_of(k1, found[:, 1], found[:, 2], r)
            tiles = np.concatenate([found, k0[:, None]], 1)[k0 > 0]
            yield _rows(tiles, k1, *STREAMS, 2, window, True)


def _steps_of(k1: int, m0: NDArray[np.int64], n0: NDArray[np.int64], r: Rates) -> NDArray[np.int64]:
    """k0 by tile: the longest that chunks are whole steps of and of which both operands fit L0 twice; 0: none."""
    most = np.minimum(r.target.l0a_bytes // m0, r.target.l0b_bytes // n0) // (2 * r.esize)
    steps = np.array([0, *(16 * d for d in range(1, k1 // 16 + 1) if k1 // 16 % d == 0)])
    return steps[np.searchsorted(steps, most, side="right") - 1]


def splits(
    image: Image, columns: int, kind: NDArray[np.int64], rows: Column, n0: Column, r: Rates, cores: int, e: Epilogue
) -> Column:
    """[tiles, 3]: how tiles are shared out; `kind`: row panels stand (0), the weights (1), or neither (2); panels come
    by chunks (3), and the weights stand (4)."""

    def work(share: Shares) -> tuple[Column, Column, Column]:
        g, (b, oh, n) = r.target, share
        panels, whole = ceil(oh, rows), n0 >= columns
        panel = image.panel_rows(np.minimum(rows, oh)) * image.w * image.channels
        a_times = np.where((kind == 0) | (kind < 3) & (rows >= image.oh), 1, ceil(n, n0))
        stands = (kind == 1) | (kind == 4)
        w_times = np.where(stands | (kind == 0) & whole, np.where(whole, 1, b), b * panels)
        cube = b * ceil(oh * image.ow, g.cube_m) * ceil(n, g.cube_n) * ceil(image.depth, r.block_k) * r.block
        return b * oh * image.ow * n, cube, (a_times * b * panels * panel + w_times * image.depth * n) * r.esize

    return split(r, e, (image.batch, image.oh, columns), (1, rows, n0), cores, work)


def levels(image: Image, columns: int, t: Table) -> Column:
    """Loops that nest."""
    outer = (image.batch > 1) + 1.0 * (t["rows"] < image.oh) + (t["n0"] < columns) + (t["m0"] < t["rows"] * image.ow)
    chunks = ((t["resident"] == 0) | (t["stream"] == 1)) & (t["k1"] > t["k0"])
    return outer + (image.depth > SEGMENT) + 1 + chunks


def joinable(image: Image, t: Table) -> NDArray[np.bool_]:
    """Whether images and their panels of rows can have one loop."""
    return (image.batch > 1) & (t["rows"] < image.oh) & (t["rows_outer"] == 1)


def joins(image: Image, columns: int, cut: Cut) -> bool:
    """Whether images and panels of a cut have one loop, since more loops would nest than may."""
    t = {name: np.array([float(value)]) for name, value in zip(SIZED, cut[:-1], strict=True)}
    return bool(joinable(image, t)[0] and levels(image, columns, t)[0] > LEVELS)


def windows(image: Image, t: Table) -> Column:
    """Windows of an output row."""
    return np.where(t["window"] == 1, ceil(image.ow, t["m0"]), 1)


class Panel(NamedTuple):
    """Input rows, columns and channels of a panel, and how many there are of one place."""

    height: Column
    across: Column
    width: Column
    chunks: Column


def panel_size(image: Image, t: Table) -> Panel:
    """The panels of cuts."""
    across = np.where(t["window"] == 1, image.across(t["m0"]), image.w)
    height, width = image.panel_rows(t["rows"]), np.full_like(across, image.channels)
    chunks = np.ones_like(across)
    for k1 in np.unique(t["k1"][t["stream"] == 1]):
        here = (t["stream"] == 1) & (t["k1"] == k1)
        part = image.part(int(k1))
        height[here], width[here] = part.height(t["rows"][here]), part.channels
        chunks[here] = image.pieces(int(k1))
    return Panel(height, across, width, chunks)


def run_bytes(image: Image, t: Table, width: Column, target: Target) -> Column:
    """Bytes that a pixel of a panel takes of the port: whole bursts, where pixels do not follow each other."""
    size, burst = width * SIZES[image.dtype], target.gm_burst
    return np.where((t["window"] == 1) | (t["stream"] == 1), ceil(size, burst) * burst, size)


def l1_need(image: Image, columns: int, t: Table) -> Column:
    """Bytes in L1: panels twice, unless a core comes to their loop once."""
    es = SIZES[image.dtype]
    b, oh, n = shares((image.batch, image.oh, columns), (1, t["rows"], t["n0"]), t)
    panels, nn, rows_outer = ceil(oh, t["rows"]) * windows(image, t), ceil(n, t["n0"]), t["rows_outer"] == 1
    once = (b == 1) & (panels == 1) & (rows_outer | (nn == 1) | (t["rows"] >= image.oh)) & (t["stream"] == 0)
    height, across, width, _ = panel_size(image, t)
    panel = height * across * width * np.where(once, 1, t["slots"])
    depth = np.where(t["resident"] == 1, image.depth, np.minimum(t["k1"], SEGMENT))
    single = (t["resident"] == 1) & (nn == 1) & ((b == 1) & (~rows_outer | (panels == 1)) | (t["n0"] >= columns))
    wide = 16 * ceil(np.minimum(t["n0"], columns), 16)
    return (panel + depth * wide * np.where(single, 1, 2)) * es


def nest_of(image: Image, columns: int, cut: Cut, r: Rates, e: Epilogue) -> Nest:
    """The loop nest of the cuts that have the structure of `cut`, as `image` emits it."""
    nest = Nest("b", "r", "n", "rows", "m0", "n0", "k0", "k1", "run", "height", "above")
    loops = cut.loops(image, columns)
    inner = [bool(n) for n in inner_loops(image.depth, cut.k0, cut.k1, not cut.resident or cut.stream)]
    here = {"b": number(1), "r": number(image.oh), "n": number(columns), "x": number(image.ow)}
    weights, panel = -1, -1
    steps = {"b": ("b", 1), "r": ("r", "rows"), "n": ("n", "n0"), "x": (image.ow, "m0")}

    def load() -> int:
        return _panel(nest, r, image, cut, here["x"], here["r"] if "r" in loops else None)

    with ExitStack() as stack:
        for depth in range(-1, len(loops)):
            if depth >= 0:
                d = loops[depth]
                here[d] = stack.enter_context(nest.loop(*steps[d]))
            if cut.resident and (loops.index("n") if "n" in loops else -1) == depth:
                weights = nest.buffer()
                r.load(nest, weights, (number(image.depth),), here["n"])
            if max((loops.index(d) for d in "brx" if d in loops), default=-1) == depth and not cut.stream:
                panel = load()
        m, n = here["x"], here["n"]
        if not cut.window:
            pixels, several = here["r"].scaled(image.ow), cut.m0 < cut.rows * image.ow
            m = stack.enter_context(maybe_loop(nest, several, image.oh * image.ow, "m0", pixels))
        loaded = e.loads(nest, r, m, n)

        def chunk(k: Dim) -> tuple[int, int]:
            """The panels of the image and of the weights; those that do not stand are loaded."""
            streamed = weights
            if not cut.resident:
                streamed = nest.buffer()
                r.load(nest, streamed, (k,), n)
            return load() if cut.stream else panel, streamed

        acc = contract(nest, r, image.depth, inner, m, n, chunk)
        e.emit(nest, r, acc, loaded, m, n)
    return nest


def _panel(nest: Nest, r: Rates, image: Image, cut: Cut, columns: Dim, rows: Dim | None) -> int:
    """Loads the panel under output columns, and under some rows or all; what a chunk of k has of it."""
    into, run = nest.buffer(cut.slots), Dim(CONSTANT, 0, "run")
    across = columns.scaled(image.strides[1]).plus(image.across(1) - image.strides[1])
    pixels = (across,) if cut.window else (number(image.w),) if cut.stream else ()
    if cut.stream:
        load_rows(nest, r, into, Dim(CONSTANT, 0, "height"), pixels, run)
    else:
        load_panel(nest, r, image, into, rows, pixels, run)
    return into


def load_panel(
    nest: Nest, r: Rates, image: Image, into: int, rows: Dim | None, pixels: Sequence[Dim], run: Dim
) -> None:
    """The panel under some output rows, or under all: what the one before it has as well, and the rest. `run`:
    bursts of a pixel, or without `pixels` of a row; these then follow each other without a gap. The nest's parameter
    `above` is how many rows the panel before it has as well."""
    if rows is None:
        load_rows(nest, r, into, number(image.panel_rows(image.oh)), pixels, run)
        return
    above, stride = image.pads[0], image.strides[0]
    if above:
        load_rows(nest, r, into, Dim(CONSTANT, 0, "above"), pixels, run)
    below = rows.scaled(stride).plus(max(image.reach - above, 0) - stride)
    load_rows(nest, r, into, below, pixels, run)


def load_rows(nest: Nest, r: Rates, into: int, rows: Dim, pixels: Sequence[Dim], run: Dim) -> None:
    """Some rows of a panel."""
    t = r.target
    nest.op(Engine.LOAD, t.fixed_load, t.gm_burst / t.gm_path, (rows, *pixels, run), writes=(into,))


S = TypeVar("S")


@dataclass(frozen=True)
class ImageForm(Form[S]):
    """A form with panels of rows of an image, tiles of so many `rows` and `n0` columns."""

    image: Image

    @property
    def dtype(self) -> str:
        return self.image.dtype

    @property
    def halo(self) -> int:
        return self.image.pads[0]

    def tiles(self, t: Table) -> Sequence["Column | float"]:
        return 1, t["rows"], t["n0"]

    def first(self, t: Table, share: Share) -> Column | None:
        """There is nothing above the panel of the core that has the first, if that is all it has."""
        return np.where(share.most[1] <= t["rows"], 0, self.halo)


@dataclass(frozen=True)
class ConvolutionForm(ImageForm[Cut]):
    """The cuts of a convolution."""

    columns: int

    kind: ClassVar = Cut

    @property
    def sizes(self) -> tuple[int, int, int]:
        return self.image.batch, self.image.oh, self.columns

    def lattice(self) -> Table:
        """All cuts whose tiles fit L0 and UB twice and whose panels fit L1; each shared out in the one way that suits
        its tiles best."""
        image, columns, r, epilogue, target = self.image, self.columns, self.rates, self.epilogue, self.target
        parts: list[NDArray[np.int64]] = []
        large = image.large(image.channels, target)
        tiles: list[NDArray[np.int64]] = []
        for rows in panel_heights(image, large):
            found = _tiles(rows, image.pixel_tiles(rows), columns, r, epilogue, rows == 1 and not tiles)
            if found.size:
                tiles.append(found)
        if tiles:
            parts.append(_whole(image, k_steps(image.depth, np.concatenate(tiles), r.esize, target)))
        if large:
            parts += _cut_panels(image, columns, r, epilogue)
            parts += [part - SLOT for part in parts]
        if not parts:
            return {name: np.zeros(0) for name in (*SIZED, *PARTS)}
        table = np.concatenate(parts)
        table = table[(table[:, SIZED.index("rows_outer")] == 1) | _ordered(image, columns, table)]
        heights, table[:, 0] = np.unique(table[:, 0], return_inverse=True)
        table = distinct(table)
        table[:, 0] = heights[table[:, 0]]
        t = {name: table[:, i].astype(np.float64) for i, name in enumerate(SIZED)}
        kind = np.where(t["stream"] == 1, 3, np.where(t["rows_outer"] == 1, 0, 2))
        kind = np.where((t["resident"] == 1) & (t["rows_outer"] == 0), 1 + 3 * (t["stream"] == 1), kind)
        _, first, of = np.unique((table[:, 0] * 1024 + table[:, 2]) * 8 + kind, return_index=True, return_inverse=True)
        split = splits(image, columns, kind[first], t["rows"][first], t["n0"][first], r, self.cores, epilogue)
        t |= {name: split[of, i] for i, name in enumerate(PARTS)}
        legal = levels(image, columns, t) - joinable(image, t) <= LEVELS
        return fitted(t, legal, l1_need(image, columns, t), target.l1_bytes)

    def work(self, t: Table, share: Share) -> Work:
        image, columns, g, es, k = self.image, self.columns, self.target, self.rates.esize, self.image.depth
        r, (b, oh, n) = self.rates, share.most
        lines, nn, nk = ceil(oh, t["rows"]), ceil(n, t["n0"]), ceil(k, t["k0"])
        panels = lines * windows(image, t)
        m, nm = oh * image.ow, np.where(t["window"] == 1, panels, lines * ceil(t["rows"] * image.ow, t["m0"]))
        resident, rows_outer, stream = t["resident"] == 1, t["rows_outer"] == 1, t["stream"] == 1
        tiles, chunks = b * nm * nn, ceil(k, t["k1"])
        # A panel stands while loops inside its own run, those of one trip not emitted.
        n_whole = t["n0"] >= columns
        a_times = np.where(~stream & (rows_outer | (panels == 1) & (t["rows"] >= image.oh)), 1, nn)
        w_stands = resident & (n_whole | ~rows_outer)
        w_times = np.where(w_stands, np.where(n_whole, 1, b), b * np.where(resident, panels, nm))
        height, across, width, times = panel_size(image, t)
        line = across * run_bytes(image, t, width, g)
        panel = np.where(stream, height, image.panel_rows(np.minimum(t["rows"], oh))) * line
        loaded = np.where(stream, lines * height, image.loaded_rows(oh, lines))
        left = a_times * b * loaded * windows(image, t) * times * line
        right = w_times * n * k * es
        panel_loads = np.where(stream, 1, 2) * a_times * b * panels * times
        transfers = panel_loads + w_times * nn * np.where(resident, 1, chunks)
        feed = b * k * es * (nn * m / g.feed_a_bytes + nm * n / g.feed_b_bytes) + tiles * 2 * nk * g.fixed_feed
        cube = b * ceil(m, g.cube_m) * ceil(n, g.cube_n) * ceil(k, r.block_k) * r.block + tiles * nk * g.fixed_mma
        first = panel + t["n0"] * np.where(resident, k, t["k1"]) * es
        alone = t["slots"] == 1
        turns = left * alone, (feed + panel_loads * g.fixed_load) * alone
        l1, ub = l1_need(image, columns, t), t["m0"] * t["n0"] * self.epilogue.ub
        return Work(b * m * n, tiles, cube, feed, transfers, first, l1, ub, left, right, turns=turns)

    def parameters(self, t: Table, share: Share) -> Sequence[Column]:
        image = self.image
        height, _, width, _ = panel_size(image, t)
        pixels = np.where((t["window"] == 1) | (t["stream"] == 1), 1, image.w)
        run = pixels * run_bytes(image, t, width, self.target) / self.target.gm_burst
        return [*(t[name] for name in SIZED[:5]), run, height, np.full_like(width, image.pads[0])]

    def structure(self, t: Table) -> Sequence[Column | NDArray[np.bool_]]:
        image, flags = self.image, [t[name] for name in ("window", "stream", "resident", "rows_outer")]
        loops = [t["rows"] < image.oh, t["n0"] < self.columns, t["m0"] < t["rows"] * image.ow]
        return [t["slots"] == 1, *flags, *loops, *_inner(image, t)]

    def nest(self, schedule: Cut) -> Nest:
        return nest_of(self.image, self.columns, schedule, self.rates, self.epilogue)


def _inner(image: Image, t: Table) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which loops over k there are."""
    return inner_loops(image.depth, t["k0"], t["k1"], (t["resident"] == 0) | (t["stream"] == 1))
