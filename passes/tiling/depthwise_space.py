"""The schedules of a depthwise convolution: panels of image rows and channels, tiles of pixels, steps of the cube.

Its weights are few: all of them stand in L1, and in L0B unless they do not fit. One step multiplies some groups of 16
channels by all of their taps, or one group by a run of them. Where panels or weights are large, they may come with each
group of a tile, for some rows of the kernel at a time.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...dialects.tile import SIZES
from ...runtime.expr import LEVELS
from ...runtime.isa import Engine
from ...runtime.replay import CONSTANT, Dim, Nest
from ...runtime.target import Target
from .convolution import ImageForm, load_panel, load_rows
from .geometry import Image, panel_heights
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
    shares,
    split,
    tile_sizes,
)
from .search import Parts
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
    parts: Parts = (1, 1, 1)

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

    def work(share: Shares) -> tuple[Column, Column, Column]:
        b, oh, n = share
        moved = b * image.loaded_rows(oh, ceil(oh, np.minimum(t["rows"], oh))) * image.w * n * r.esize
        cube = b * ceil(oh * image.ow, r.target.cube_m) * ceil(n, GROUP) * image.taps * r.block
        return b * oh * image.ow * n, cube, moved

    found = split(r, e, (image.batch, image.oh, image.channels), (1, t["rows"], t["n0"]), cores, work)
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


@dataclass(frozen=True)
class DepthwiseForm(ImageForm[Cut]):
    """The cuts of a depthwise convolution."""

    kind: ClassVar = Cut

    @property
    def sizes(self) -> tuple[int, int, int]:
        return self.image.batch, self.image.oh, self.image.channels

    def lattice(self) -> Table:
        """All cuts whose tiles fit L0 and UB twice and whose panels fit L1; each shared out in the one way that suits
        its tiles best."""
        image, r, epilogue, target = self.image, self.rates, self.epilogue, self.target
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
        t = {name: table.reshape(-1, 8)[:, i].astype(np.float64) for i, name in enumerate(self.names)}
        t |= splits(image, t, r, self.cores, epilogue)
        fed = np.where(t["resident"] == 1, image.depth, 2 * t["taps"] * t["g0"]) * r.esize
        legal = (levels(image, t) <= LEVELS) & (fed <= target.l0b_bytes)
        return fitted(t, legal, l1_need(image, t), target.l1_bytes)

    def work(self, t: Table, share: Share) -> Work:
        image, r, g, es, (b, oh, n) = self.image, self.rates, self.target, self.rates.esize, share.most
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
        loaded = b * image.loaded_rows(oh, ceil(oh, rows)) * parts * across * n * es
        runs = ceil(image.kernel[0], np.maximum(1, t["down"]))
        again = ceil(t["rows"] * image.ow, t["m0"]) * (t["window"] == 0) + (t["window"] == 1)
        group = ceil(n, GROUP) * ceil(min(GROUP, image.channels) * es, g.gm_burst) * g.gm_burst  # in whole bursts
        by_rows = b * ceil(oh, rows) * again * parts * runs * heights(image, t) * across * group
        transfers = np.where(down, 2 * tiles * ceil(n0, GROUP) * runs, halo * panels + 1)
        l1, ub = l1_need(image, t), t["m0"] * t["n0"] * self.epilogue.ub
        both, few = np.where(down, by_rows, loaded), np.where(down, weights, kept)
        return Work(b * m * n, tiles, cube, feed, transfers, first, l1, ub, both=both, kept=few)

    def parameters(self, t: Table, share: Share) -> Sequence[Column]:
        run, halo = t["down"] * self.image.kernel[1], np.full_like(t["rows"], self.image.pads[0])
        return [*(t[name] for name in self.names[:5]), run, heights(self.image, t), halo]

    def structure(self, t: Table) -> Sequence[Column | NDArray[np.bool_]]:
        image, run = self.image, t["down"] * self.image.kernel[1]
        tiles = [t["rows"] < image.oh, t["n0"] < image.channels, t["m0"] < t["rows"] * image.ow]
        steps = [t["g0"] < np.minimum(t["n0"], image.channels), t["taps"] < image.taps, t["taps"] < run]
        return [t["window"], t["resident"], *tiles, *steps, run > 0, run >= image.taps]

    def nest(self, schedule: Cut) -> Nest:
        return _Nest(self.image, schedule, self.rates, self.epilogue).build()


@dataclass
class _Nest:
    """The loop nest of the cuts that have the structure of `cut`, as `depthwise` emits it."""

    image: Image
    cut: Cut
    r: Rates
    e: Epilogue

    def build(self) -> Nest:
        image, cut, e = self.image, self.cut, self.e
        self.nest = nest = Nest("b", "r", "n", "rows", "m0", "n0", "g0", "taps", "run", "height", "above")
        self.here = here = {"b": number(1), "r": number(image.oh), "n": number(image.channels), "x": number(image.ow)}
        steps = {"b": ("b", 1), "r": ("r", "rows"), "n": ("n", "n0"), "x": (image.ow, "m0")}
        loops = cut.loops(image)
        with ExitStack() as stack:
            weights = self._weights()
            for d in loops:
                here[d] = stack.enter_context(nest.loop(*steps[d]))
            panel, m = self._panel(loops), here["x"]
            if not cut.window:
                pixels, several = here["r"].scaled(image.ow), cut.m0 < cut.rows * image.ow
                m = stack.enter_context(maybe_loop(nest, several, image.oh * image.ow, "m0", pixels))
            loaded = e.loads(nest, self.r, m, here["n"])
            e.emit(nest, self.r, self._sums(m, panel, *weights), loaded, m, here["n"])
        return nest

    def _weights(self) -> tuple[int, int]:
        """All weights in L1, and in L0B if they are resident; the buffers of both."""
        nest, r = self.nest, self.r
        weights = b0 = nest.buffer()
        if not self.cut.down:
            r.load(nest, weights, (), number(self.image.depth))
        if self.cut.resident:
            b0 = nest.buffer()
            cost = self.image.depth * r.esize / r.target.feed_b_bytes
            nest.op(Engine.FEED, r.target.fixed_feed, cost, (), (weights,), (b0,))
        return weights, b0

    @property
    def _across(self) -> Dim:
        """Input columns of a panel."""
        image = self.image
        columns = self.here["x"].scaled(image.strides[1]).plus(image.across(1) - image.strides[1])
        return columns if self.cut.window else number(image.w)

    def _panel(self, loops: Sequence[str]) -> int:
        """The panel of a tile; −1: it comes by rows of the kernel."""
        image, r, burst = self.image, self.r, self.r.target.gm_burst
        panel, rows = self.nest.buffer(), self.here["r"] if "r" in loops else None
        if self.cut.down:
            return -1
        if self.cut.window or "n" in loops:
            load_panel(self.nest, r, image, panel, rows, (self._across,), self.here["n"].scaled(r.esize).blocks(burst))
        else:
            load_panel(self.nest, r, image, panel, rows, (), number(image.w * image.channels * r.esize / burst))
        return panel

    def _sums(self, m: Dim, panel: int, weights: int, b0: int) -> int:
        """Multiplies group by group, and run of taps by run; the accumulator."""
        nest, image, cut, r, g = self.nest, self.image, self.cut, self.r, self.r.target
        acc, channels, run = nest.buffer(), image.channels, number(image.taps)
        several, block = cut.down * image.kernel[1], GROUP * r.esize
        with ExitStack() as inner:
            more = cut.g0 < min(cut.n0, channels)
            c = inner.enter_context(maybe_loop(nest, more, channels, "g0", self.here["n"]))
            if cut.down:
                run = inner.enter_context(maybe_loop(nest, several < image.taps, image.taps, "run", run))
                panel, weights = nest.buffer(), nest.buffer()
                group = number(-(-min(GROUP, channels) * r.esize // g.gm_burst))
                load_rows(nest, r, panel, Dim(CONSTANT, 0, "height"), (self._across,), group)
                r.load(nest, weights, (), run.scaled(GROUP))
            taps = inner.enter_context(maybe_loop(nest, cut.taps < (several or image.taps), image.taps, "taps", run))
            groups, blocks = c.blocks(GROUP), m.blocks(g.cube_m)
            a0, cost = nest.buffer(), g.cube_m * block / g.feed_a_bytes
            nest.op(Engine.FEED, g.fixed_feed, cost, (blocks, groups, taps), (panel,), (a0,))
            if not cut.resident:
                b0 = nest.buffer()
                nest.op(Engine.FEED, g.fixed_feed, block / g.feed_b_bytes, (groups, taps), (weights,), (b0,))
            nest.op(Engine.CUBE, g.fixed_mma, r.block, (blocks, groups, taps), (a0, b0), (acc,))
        return acc
