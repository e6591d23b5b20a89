"""The schedules of a depthwise convolution: panels of image rows and channels, tiles of pixels, steps of the cube.

Its weights are few: all of them stand in L1, and in L0B unless they do not fit. One step multiplies some groups of 16
channels by all of their taps, or one group by a run of them. Where panels or weights are large, they may come with each
group of a tile, for some rows of the kernel at a time.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np

from ...dialects.tile import SIZES
from ...runtime.expr import LEVELS
from ...runtime.isa import Engine
from ...runtime.replay import CONSTANT, Dim, Nest
from ...runtime.target import Target
from .convolution import first_halo, load_panel, load_rows
from .geometry import Image, panel_heights
from .schedule import (
    PARTS,
    Choices,
    Column,
    Epilogue,
    Estimate,
    Rates,
    Shares,
    Table,
    Work,
    ceil,
    drifting,
    fitting,
    longest,
    maybe_loop,
    number,
    numbered,
    search,
    share_out,
    shares,
    tile_sizes,
    total,
    working,
)
from .space import balanced

GROUP = 16
"""Channels that one block of `mma_dw` takes."""


class Cut(NamedTuple):
    """Output rows of a panel; pixels and channels of a tile; channels and taps of a step; `resident`: all
    weights stand in L0B; `window`: a panel is for m0 pixels of one row; `down`: panels and weights are for a group
    and so many rows of the kernel, if that is not 0."""

    rows: int
    m0: int
    n0: int
    g0: int
    taps: int
    resident: bool
    window: bool = False
    down: int = 0
    parts_0: int = 1
    parts_1: int = 1
    parts_2: int = 1

    @property
    def parts(self) -> tuple[int, int, int]:
        """Into how many parts images, output rows and channels are shared out over the cores."""
        return self.parts_0, self.parts_1, self.parts_2

    def loops(self, image: Image) -> tuple[str, ...]:
        """The loops over panels, from the outside; a loop of one trip is none."""
        windows = -(-image.ow // self.m0) if self.window else 1
        blocks = -(-image.channels // self.n0)
        trips = {"b": image.batch, "r": -(-image.oh // self.rows), "x": windows, "n": blocks}
        return tuple(d for d, count in trips.items() if count > 1)

    def even(self, image: Image) -> bool:
        """Whether all steps have the same groups."""
        blocks, groups = -(-image.channels // GROUP), self.g0 // GROUP
        return self.n0 // GROUP % groups == 0 and blocks % groups == 0


def lattice(image: Image, r: Rates, cores: int, epilogue: Epilogue) -> Table:
    """All cuts whose tiles fit L0 and UB twice and whose panels fit L1, as columns by the fields of `Cut`; each shared
    out in the one way that suits its tiles best."""
    target = r.target
    cuts: list[tuple[int, ...]] = []
    large = image.large(min(image.channels, GROUP), target)
    panels = [(h, image.pixel_tiles(h), 0) for h in panel_heights(image, large)]
    if large:
        panels.append((1, image.window_tiles(), 1))
    for rows, sizes, window in panels:
        for n0 in tile_sizes(image.channels, 512):
            for m0 in sizes:
                if 8 * m0 * n0 <= target.l0c_bytes and m0 * n0 * epilogue.ub <= target.ub_bytes:
                    cuts += [(window, rows, m0, n0, *step) for step in _steps(image, m0, n0, target)]
    found = [(*cut, resident, window, 0) for window, *cut in cuts for resident in (1, 0)]
    if large or 4 * image.depth * r.esize > target.l1_bytes:
        tiles = dict.fromkeys(cut[:4] for cut in cuts)
        found += [(*cut, *step) for window, *cut in tiles for step in _rows(image, cut[1], bool(window), target)]
    table = np.array(found, np.int64)
    t = {name: table.reshape(-1, 8)[:, i].astype(np.float64) for i, name in enumerate(Cut._fields[:8])}
    t |= splits(image, t, r, cores, epilogue)
    fed = np.where(t["resident"] == 1, image.depth, 2 * t["taps"] * t["g0"]) * r.esize
    legal, need = (levels(image, t) <= LEVELS) & (fed <= target.l0b_bytes), l1_need(image, t)
    keep = fitting(legal & (need <= target.l1_bytes), np.where(legal, need, np.inf))
    return {name: column[keep] for name, column in t.items()}


def _steps(image: Image, m0: int, n0: int, target: Target) -> Iterator[tuple[int, int]]:
    """(channels, taps) of the steps of a tile: as long as L0A holds two, and shorter."""
    most = target.l0a_bytes // (2 * m0 * GROUP * SIZES[image.dtype])
    blocks, width = -(-image.channels // GROUP), n0 // GROUP
    if most < image.taps:
        if most:
            yield GROUP, balanced(image.taps, most)
        return
    most = min(most // image.taps, width)
    for groups in sorted({balanced(width, g) for g in (most, max(1, most // 2), 1)}):
        # A step ends with its tile, or with the image: no field has two bounds.
        whole = width >= blocks or (blocks % width == 0 and image.channels % GROUP == 0)
        if whole or (width % groups == 0 and blocks % groups == 0):
            yield groups * GROUP, image.taps


def _rows(image: Image, m0: int, window: bool, target: Target) -> Iterator[tuple[int, int, int, int, int]]:
    """What a cut has behind m0 and n0 if panels come by rows of the kernel: these are whole steps of as many taps as L0
    holds two of."""
    (height, width), most = image.kernel, _taps(m0, image.dtype, target)
    for down in sorted({balanced(height, -(-height // (1 << n))) for n in range(height.bit_length() + 1)}):
        taps = max((n for n in range(1, most + 1) if down * width % n == 0), default=0)
        if taps:
            yield GROUP, taps, 0, int(window), down


def _taps(m0: int, dtype: str, target: Target) -> int:
    """Taps of a group of which L0 holds two steps."""
    return min(target.l0a_bytes // m0, target.l0b_bytes) // (2 * GROUP * SIZES[dtype])


def levels(image: Image, t: Table) -> Column:
    """Loops that nest."""
    count = np.full_like(t["m0"], image.batch > 1)
    count += t["rows"] < image.oh
    count += t["n0"] < image.channels
    count += t["m0"] < t["rows"] * image.ow
    count += t["g0"] < t["n0"]
    run = np.where(t["down"] > 0, t["down"] * image.kernel[1], image.taps)
    return count + (run < image.taps) + (t["taps"] < run)


def splits(image: Image, t: Table, r: Rates, cores: int, e: Epilogue) -> Table:
    """How the panels are shared out over the cores, as columns."""

    def cost(share: Shares, active: Column) -> Column:
        """What the busiest core takes by its busiest engine."""
        b, oh, n = share
        rows, size = np.minimum(t["rows"], oh), b * oh * image.ow * n
        moved = b * image.loaded_rows(oh, ceil(oh, rows)) * image.w * n * r.esize
        moved = moved + size * (sum(e.whole) + sum(e.results))
        cube = b * ceil(oh * image.ow, r.target.cube_m) * ceil(n, GROUP) * image.taps * r.block
        return longest(r, e, size, cube, moved / r.bandwidth(active))

    found = share_out((image.batch, image.oh, image.channels), (1, t["rows"], t["n0"]), cores, cost)
    return {name: found[:, i] for i, name in enumerate(PARTS)}


def windows(image: Image, t: Table) -> tuple[Column, Column]:
    """Input columns of a panel, and panels of a row."""
    window = t["window"] == 1
    return np.where(window, image.across(t["m0"]), image.w), np.where(window, ceil(image.ow, t["m0"]), 1)


def l1_need(image: Image, t: Table) -> Column:
    """Bytes in L1: panels twice, unless a core has one; the weights."""
    b, oh, n = shares((image.batch, image.oh, image.channels), (1, t["rows"], t["n0"]), t)
    once = (b == 1) & (oh <= t["rows"]) & (n <= t["n0"]) & (t["window"] == 0)
    across, _ = windows(image, t)
    panel = image.panel_rows(t["rows"]) * across * np.minimum(t["n0"], image.channels)
    need = panel * np.where(once, 1, 2) + image.depth
    part = heights(image, t) * across * min(GROUP, image.channels) + t["down"] * image.kernel[1] * GROUP
    return np.where(t["down"] > 0, 2 * part, need) * SIZES[image.dtype]


def heights(image: Image, t: Table) -> Column:
    """Input rows of panels for some rows of the kernel."""
    return np.minimum((t["rows"] - 1) * image.strides[0] + (t["down"] - 1) * image.dilations[0] + 1, image.h)


def estimate(image: Image, t: Table, share: Shares, r: Rates, e: Epilogue) -> Estimate:
    """What the busiest core's engines do."""
    g, es = r.target, r.esize
    b, oh, n = share
    rows, n0 = np.minimum(t["rows"], oh), np.minimum(t["n0"], n)
    across, parts = windows(image, t)
    panels, nn = b * ceil(oh, rows) * parts * ceil(n, n0), ceil(n, n0)
    m, nm = oh * image.ow, ceil(oh, rows) * ceil(rows * image.ow, t["m0"])
    tiles = b * nm * nn
    steps = tiles * ceil(n0, t["g0"]) * ceil(image.taps, t["taps"])
    products = b * ceil(n, GROUP) * image.taps
    cube = products * ceil(m, g.cube_m) * r.block + steps * g.fixed_mma
    kept, down = image.depth * es, t["down"] > 0
    weights = np.where(t["resident"] == 1, kept, tiles * ceil(n0, GROUP) * image.taps * GROUP * es)
    fixed = np.where(t["resident"] == 1, steps + 1, 2 * steps) * g.fixed_feed
    feed = products * GROUP * es * m / g.feed_a_bytes + weights / g.feed_b_bytes + fixed
    first = np.where(down, l1_need(image, t) / 2, image.panel_rows(rows) * across * n0 * es + kept)
    halo = 1.0 + ((t["rows"] < image.oh) & (image.pads[0] > 0))
    l1, ub = l1_need(image, t), t["m0"] * t["n0"] * e.ub
    loaded = b * image.loaded_rows(oh, ceil(oh, rows)) * parts * across * n * es
    sizes, none = (image.batch, image.oh, image.channels), np.zeros_like(n)
    cores = working(t, sizes, (1, t["rows"], t["n0"]), share, none, none, loaded + b * m * n * e.moved)
    runs = ceil(image.kernel[0], np.maximum(1, t["down"]))
    again = ceil(t["rows"] * image.ow, t["m0"]) * (t["window"] == 0) + (t["window"] == 1)
    group = ceil(n, GROUP) * ceil(min(GROUP, image.channels) * es, g.gm_burst) * g.gm_burst  # in whole bursts
    by_rows = b * ceil(oh, rows) * again * parts * runs * heights(image, t) * across * group
    transfers = np.where(down, 2 * tiles * ceil(n0, GROUP) * runs, halo * panels + 1)
    traffic = np.where(down, by_rows + weights, loaded + kept)
    vector = e.vector(r, b * m * n, n, t["n0"], image.channels)
    work = Work(
        b * m * n,
        tiles,
        vector,
        cube,
        feed,
        traffic,
        transfers,
        first,
        l1,
        ub,
        cores,
        drifting(t, sizes, share, image.pads[0]),
    )
    return total(r, e, work)


def nest_of(image: Image, cut: Cut, r: Rates, e: Epilogue) -> Nest:
    """The loop nest of the cuts that have the structure of `cut`, as `depthwise` emits it."""
    g = r.target
    nest = Nest("b", "r", "n", "rows", "m0", "n0", "g0", "taps", "run", "height", "above")
    loops = cut.loops(image)
    here = {"b": number(1), "r": number(image.oh), "n": number(image.channels), "x": number(image.ow)}
    steps = {"b": ("b", 1), "r": ("r", "rows"), "n": ("n", "n0"), "x": (image.ow, "m0")}
    block, kept = GROUP * r.esize, image.depth * r.esize
    with ExitStack() as stack:
        weights = b0 = nest.buffer()
        if not cut.down:
            r.load(nest, weights, (), number(image.depth))
        if cut.resident:
            b0 = nest.buffer()
            nest.op(Engine.FEED, g.fixed_feed, kept / g.feed_b_bytes, (), (weights,), (b0,))
        for d in loops:
            here[d] = stack.enter_context(nest.loop(*steps[d]))
        panel, rows = nest.buffer(), here["r"] if "r" in loops else None
        columns = here["x"].scaled(image.strides[1]).plus(image.across(1) - image.strides[1])
        across = columns if cut.window else number(image.w)
        if cut.down:
            panel = -1
        elif cut.window or "n" in loops:
            run = here["n"].scaled(r.esize).blocks(g.gm_burst)
            load_panel(nest, r, image, panel, rows, (across,), run)
        else:
            load_panel(nest, r, image, panel, rows, (), number(image.w * image.channels * r.esize / g.gm_burst))
        m = here["x"]
        if not cut.window:
            pixels, several = here["r"].scaled(image.ow), cut.m0 < cut.rows * image.ow
            m = stack.enter_context(maybe_loop(nest, several, image.oh * image.ow, "m0", pixels))
        loaded = e.loads(nest, r, m, here["n"])
        acc = nest.buffer()
        groups = maybe_loop(nest, cut.g0 < min(cut.n0, image.channels), image.channels, "g0", here["n"])
        several, run = cut.down * image.kernel[1], number(image.taps)
        with ExitStack() as inner:
            c = inner.enter_context(groups)
            if cut.down:
                run = inner.enter_context(maybe_loop(nest, several < image.taps, image.taps, "run", run))
                panel, weights = nest.buffer(), nest.buffer()
                group = number(-(-min(GROUP, image.channels) * r.esize // g.gm_burst))
                load_rows(nest, r, panel, Dim(CONSTANT, 0, "height"), (across,), group)
                r.load(nest, weights, (), run.scaled(GROUP))
            taps = inner.enter_context(maybe_loop(nest, cut.taps < (several or image.taps), image.taps, "taps", run))
            groups, blocks = c.blocks(GROUP), m.blocks(g.cube_m)
            a0 = nest.buffer()
            cost = g.cube_m * block / g.feed_a_bytes
            nest.op(Engine.FEED, g.fixed_feed, cost, (blocks, groups, taps), (panel,), (a0,))
            if not cut.resident:
                b0 = nest.buffer()
                nest.op(Engine.FEED, g.fixed_feed, block / g.feed_b_bytes, (groups, taps), (weights,), (b0,))
            nest.op(Engine.CUBE, g.fixed_mma, r.block, (blocks, groups, taps), (a0, b0), (acc,))
        e.emit(nest, r, acc, loaded, m, here["n"])
    return nest


def choices(image: Image, target: Target, cores: int, epilogue: Epilogue) -> Choices:
    """All cuts."""
    r = Rates(target, image.dtype)
    t = lattice(image, r, cores, epilogue)
    sizes = (image.batch, image.oh, image.channels)
    share = shares(sizes, (1, t["rows"], t["n0"]), t)
    found = estimate(image, t, share, r, epilogue)
    halo = np.full_like(t["rows"], image.pads[0])
    run, height = t["down"] * image.kernel[1], heights(image, t)
    values = np.stack([*share, *(t[name] for name in Cut._fields[:5]), run, height, halo], 1)
    rows = np.stack([t[name] for name in Cut._fields], 1).astype(np.int64)
    code = numbered(
        t["window"],
        t["rows"] < image.oh,
        t["n0"] < image.channels,
        t["resident"],
        t["m0"] < t["rows"] * image.ow,
        t["g0"] < np.minimum(t["n0"], image.channels),
        t["taps"] < image.taps,
        t["taps"] < run,
        run > 0,
        run >= image.taps,
    )

    def nest(row: int) -> Nest:
        return nest_of(image, Cut._make(int(v) for v in rows[row]), r, epilogue)

    return Choices(rows, found, code, sizes, values, nest, first_halo(image, t, share))


def schedules(image: Image, target: Target, cores: int, epilogue: Epilogue) -> Iterator[Cut]:
    """Cuts, best first."""
    c = choices(image, target, cores, epilogue)
    for row in search(c, target):
        yield Cut._make(int(v) for v in c.schedules[row])
