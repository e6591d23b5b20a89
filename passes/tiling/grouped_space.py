"""The cuts of a convolution by group: panels of image rows, blocks of groups, tiles of pixels; the best by an estimate
are ranked by replay. A panel may come with each tile, what a chunk of k has of it at a time."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ...dialects.graph.contract import GroupConv2DOp, packed_depth
from ...dialects.graph.op import GraphOp, dtype_name, shape
from ...dialects.graph.properties import ints
from ...dialects.tile import SIZES
from ...runtime.expr import LEVELS
from ...runtime.isa import Engine
from ...runtime.replay import Dim, Nest, replay
from ...runtime.target import Target
from .convolution import load_panel, load_rows
from .geometry import Image, panel_heights
from .schedule import SEGMENT, Epilogue, Rates, contract, maybe_loop, number
from .space import balanced, balanced16, even_parts, up16

REPLAYED = 32
"""Cuts that are replayed, the best by estimate."""


@dataclass(frozen=True)
class Groups:
    """Geometry of a convolution by group: `image` with all channels; groups, and the channels and outputs of one."""

    image: Image
    count: int
    channels: int
    outputs: int

    @staticmethod
    def of(op: GraphOp) -> "Groups":
        """The geometry of a `graph.group_conv2d`."""
        assert isinstance(op, GroupConv2DOp)
        batch, h, w, count, channels = shape(op.x)
        _, oh, ow, outputs = shape(op.result)
        kernel, strides, dilations, pads = (
            ints(op.properties, name) for name in ("kernel", "strides", "dilations", "pads")
        )
        first, second, third, fourth = ((n[0], n[1]) for n in (kernel, strides, dilations, pads))
        image = Image(batch, h, w, count * channels, oh, ow, first, second, third, fourth, dtype_name(op.x))
        return Groups(image.upright(), count, channels, outputs // count)

    @property
    def depth(self) -> int:
        """Length of k."""
        return packed_depth(self.channels, self.image.taps)

    @property
    def inner(self) -> Image:
        """One group."""
        return replace(self.image, channels=self.channels)


@dataclass(frozen=True)
class Cut:
    """Output rows of a panel; pixels, groups and outputs of each for a tile; k of a step; `resident`: all weights of a
    block are in L1; `window`: a panel is for m0 pixels of one row; `k1`: it has a chunk of k, if that is not 0."""

    rows: int
    m0: int
    groups: int
    n0: int
    k0: int
    resident: bool
    window: bool = False
    k1: int = 0

    @property
    def width(self) -> int:
        """Columns of an accumulator."""
        return up16(self.groups * self.n0)


def ranked(this: Groups, e: Epilogue, target: Target, cores: int) -> list[Cut]:
    """All cuts, best first; those that do not fit last."""

    def order(c: Cut) -> tuple[bool, float]:
        return not _fits(this, c, e, target, cores), _Cost(this, c, e, target, cores).cycles()

    found = sorted(cuts(this, target), key=order)
    best, times = math.inf, list[float]()
    for cut in found[:REPLAYED]:
        times.append(replayed(this, cut, e, target, cores, best))
        best = min(best, times[-1])
    return [found[n] for n in np.argsort(times, kind="stable")] + found[REPLAYED:]


def cuts(this: Groups, target: Target) -> Sequence[Cut]:
    """Cuts that may fit L1; if none does, the one that needs least."""
    found = [*_cuts(this, target)]
    fits = [c for c in found if _bytes(this, c) <= target.l1_bytes]
    return fits or sorted(found, key=lambda c: _bytes(this, c))[:1]


def _cuts(this: Groups, target: Target) -> Iterator[Cut]:
    """Cuts whose tiles fit L0 twice."""
    image, es = this.image, SIZES[this.image.dtype]
    large = image.large(this.channels, target)
    panels = [(rows, _pixels(image, rows), False) for rows in panel_heights(image, large)]
    if large:
        panels.append((1, image.window_tiles(), True))
    for rows, sizes, window in panels:
        for groups, n0, resident in _blocks(this):
            width = up16(groups * n0)
            for m0 in sizes:
                if 8 * m0 * width > target.l0c_bytes:
                    continue
                most = min(target.l0a_bytes // (2 * m0 * es), target.l0b_bytes // (2 * up16(n0) * es))
                yield from _deep(this, Cut(rows, m0, groups, n0, 0, resident, window), most, large)


def _deep(this: Groups, cut: Cut, most: int, large: bool) -> Iterator[Cut]:
    """The cut with steps of at most so many k, and if panels are large with chunks of k."""
    for k in (512, 256, 128, 64, 32, 16):
        k0 = balanced16(this.depth, k) if this.depth <= SEGMENT else k
        found = replace(cut, k0=k0)
        if (k == 16 or k < 2 * k0) and k0 <= most and _nests(this, found):
            yield found
            break
    if large and cut.groups == 1 and _pixel_blocks(this, cut) == 1:
        for k1 in this.inner.chunks():
            k0 = max((16 * d for d in range(1, k1 // 16 + 1) if k1 // 16 % d == 0 and 16 * d <= most), default=0)
            found = replace(cut, k0=k0, k1=k1)
            if k0 and _nests(this, found):
                yield found


def _pixels(image: Image, rows: int) -> list[int]:
    """Pixels of a tile under panels of so many output rows."""
    sizes = [(m, balanced16(rows * image.ow, m)) for m in (256, 128, 64, 32, 16)]
    return [m0 for m, m0 in sizes if (m == 16 or m < 2 * m0) and not image.two_bounds(rows, m0)]


def _blocks(this: Groups) -> Iterator[tuple[int, int, bool]]:
    """(groups, outputs of each, whether the weights stay): several groups whole, or one group and part of it."""
    if this.depth <= SEGMENT:
        parts = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
        several = dict.fromkeys(balanced(this.count, -(-this.count // n)) for n in parts)
        yield from ((groups, this.outputs, True) for groups in several if groups > 1)
    for n0 in dict.fromkeys(min(this.outputs, balanced16(this.outputs, n)) for n in (256, 128, 64, 32, 16)):
        yield from ((1, n0, resident) for resident in (True, False))


def _levels(this: Groups, c: Cut) -> int:
    """Loops, one in another."""
    image = this.image
    tiles = (image.batch > 1, c.rows < image.oh, c.groups < this.count, c.n0 < this.outputs)
    steps = (c.m0 < c.rows * image.ow, c.groups > 1, c.k0 < (c.k1 or this.depth), this.depth > SEGMENT, c.k1 > 0)
    return max(1, sum(tiles)) + sum(steps)


def _nests(this: Groups, c: Cut) -> bool:
    """Whether no more loops nest than may, images and their panels of rows being able to have one."""
    return _levels(this, c) <= LEVELS + (this.image.batch > 1 and c.rows < this.image.oh)


def joins(this: Groups, c: Cut) -> bool:
    """Whether images and panels of a cut have one loop, since more loops would nest than may."""
    return _levels(this, c) > LEVELS


def _pixel_blocks(this: Groups, c: Cut) -> int:
    """Blocks of the pixels of a panel."""
    return 1 if c.window else -(-c.rows * this.image.ow // c.m0)


def _panel_size(this: Groups, c: Cut) -> tuple[int, int, int, int]:
    """Input rows, columns and channels of a panel, and how many there are of one place."""
    image, inner = this.image, this.inner
    across = image.across(c.m0) if c.window else image.w
    if not c.k1:
        return image.panel_rows(c.rows), across, this.channels * c.groups, 1
    part = inner.part(c.k1)
    return part.height(c.rows), across, part.channels, inner.pieces(c.k1)


def _bytes(this: Groups, c: Cut, panels: int = 1, weights: int = 1) -> int:
    """Bytes in L1 with so many panels and weights at a time."""
    height, across, channels, _ = _panel_size(this, c)
    depth = this.depth * c.groups if c.resident else min(SEGMENT, c.k1 or c.k0)
    return (panels * height * across * channels + weights * depth * up16(c.n0)) * SIZES[this.image.dtype]


def _fits(this: Groups, c: Cut, e: Epilogue, target: Target, cores: int) -> bool:
    """Whether L1 and UB hold everything twice, but for what a core has once."""
    blocks = trips(this, c)
    parts = even_parts(blocks, cores)
    panels = 1 if not c.k1 and all(n <= p for n, p in zip(blocks[:4], parts[:4], strict=True)) else 2
    weights = 1 if c.resident and max(blocks) == 1 else 2
    ub = c.m0 * c.groups * c.n0 * e.ub
    return _bytes(this, c, panels, weights) <= target.l1_bytes and ub <= target.ub_bytes


def trips(this: Groups, c: Cut) -> list[int]:
    """Trips of the loops over images, rows, windows, groups and outputs."""
    image = this.image
    sizes = (image.batch, image.oh, image.ow, this.count, this.outputs)
    tiles = (1, c.rows, c.m0 if c.window else image.ow, c.groups, c.n0)
    return [-(-size // part) for size, part in zip(sizes, tiles, strict=True)]


@dataclass(frozen=True)
class _Cost:
    """What a cut costs: engines of the busiest core; a tile is a block of outputs on a panel, in blocks of pixels."""

    this: Groups
    cut: Cut
    epilogue: Epilogue
    target: Target
    cores: int

    def cycles(self) -> float:
        """The busiest engine, plus the first load and the last pixel block's way out."""
        this, c, t, e = self.this, self.cut, self.target, self.epilogue
        r = Rates(t, this.image.dtype)
        blocks = trips(this, c)
        parts = even_parts(blocks, self.cores)
        turns = [-(-n // p) for n, p in zip(blocks, parts, strict=True)]
        panels, tiles, active = math.prod(turns[:4]), math.prod(turns), math.prod(parts)
        pixels = _pixel_blocks(this, c)
        rows = c.m0 if c.window else c.rows * this.image.ow
        each, size = tiles * pixels, tiles * rows * c.groups * c.n0
        bandwidth = min(t.gm_path, t.gm_port / active)
        (panel, begins), (weights, starts) = self._panel(), self._weights(pixels)
        if c.k1:  # panels come with each tile
            panels = tiles * _panel_size(this, c)[3]
        loaded = panels * panel + tiles * weights + size * sum(e.whole)
        fixed = (panels * begins + tiles * starts + each * (len(e.whole) + len(e.vectors))) * t.fixed_load
        stored = size * sum(e.results)
        cube, feed = self._multiplied(r, rows, pixels)
        drain = size / t.drain_elements + each * t.fixed_drain
        vector = size * sum(n * passes for n, passes in e.ops) / t.vector_bytes + each * len(e.ops) * t.fixed_vector
        store = stored / bandwidth + each * t.fixed_store
        port = (loaded + stored) * math.prod(blocks) / tiles / t.gm_port + (active > 1) * fixed
        first = (panel + weights / (1 if c.resident else pixels * self._loads)) / bandwidth + 2 * t.fixed_load
        load, work = loaded / bandwidth + fixed, max(tiles * feed, tiles * cube, drain, vector, store)
        last = (drain + vector + store) / each + tiles * (feed + cube) / 32
        return max(max(port, load) + work / panels, first + work) + last

    @property
    def _steps(self) -> int:
        return -(-self.this.depth // self.cut.k0)

    @property
    def _loads(self) -> int:
        """Loads of weights that do not stand, for a block of pixels."""
        return _panel_size(self.this, self.cut)[3] if self.cut.k1 else self._steps

    def _panel(self) -> tuple[float, int]:
        """Bytes of a panel, and its loads."""
        c, image = self.cut, self.this.image
        height, across, width, _ = _panel_size(self.this, c)
        run, burst = width * SIZES[image.dtype], self.target.gm_burst
        if width < image.channels:
            run = -(-run // burst) * burst
        halo = image.pads[0] > 0 and c.rows < image.oh and not (c.k1 or image.cropped(c.rows))
        return height * across * run, 1 + halo

    def _weights(self, pixels: int) -> tuple[float, int]:
        """Bytes of the weights of a tile, and their loads."""
        c, burst = self.cut, self.target.gm_burst
        run = -(-c.n0 * SIZES[self.this.image.dtype] // burst) * burst
        times = 1 if c.resident else pixels
        return times * c.groups * self.this.depth * run, times * (1 if c.resident else self._loads)

    def _multiplied(self, r: Rates, rows: int, pixels: int) -> tuple[float, float]:
        """Cycles of the cube and of the feeds for a tile."""
        this, c, t = self.this, self.cut, self.target
        steps, depth = c.groups * pixels * self._steps, -(-this.depth // r.block_k)
        cube = c.groups * -(-rows // t.cube_m) * -(-c.n0 // t.cube_n) * depth * r.block + steps * t.fixed_mma
        line = c.groups * this.depth * r.esize
        fed = line * (up16(rows) / t.feed_a_bytes + pixels * up16(c.n0) / t.feed_b_bytes)
        return cube, fed + 2 * steps * t.fixed_feed


# replay ---------------------------------------------------------------------------------------------------------------
class _Place(NamedTuple):
    """The dimensions of the current tile: rows, pixels of a window, groups, and outputs of a group."""

    rows: Dim
    window: Dim
    groups: Dim
    outputs: Dim


def replayed(this: Groups, c: Cut, e: Epilogue, target: Target, cores: int, best: float) -> float:
    """Cycles of the cores that have most, as many as work; infinity if not better than `best`."""
    blocks = trips(this, c)
    parts = even_parts(blocks, cores)
    turns = [-(-n // p) for n, p in zip(blocks, parts, strict=True)]
    nest = nest_of(this, c, e, Rates(target, this.image.dtype), [n > 1 for n in blocks], turns)
    sizes, halo, active = (c.groups * c.n0, c.k0, c.k1 or c.k0), this.image.pads[0], math.prod(parts)
    first = active // parts[1] if turns[1] == 1 < blocks[1] else 0  # there is nothing above the first panel
    values, working = np.array([[[*sizes, halo], [*sizes, 0]]], np.float64), np.array([[active - first, first]], float)
    none = np.zeros(1)
    (cycles,), _ = replay(nest, values, working, np.zeros((1, len(Engine))), none, none, target, best)
    return float(cycles)


def nest_of(this: Groups, c: Cut, e: Epilogue, r: Rates, several: list[bool], turns: list[int]) -> Nest:
    """The loop nest of a cut, as `grouped` emits it: which loops there are, of images, rows, windows, groups and
    outputs, and the trips of a core."""
    image = this.image
    nest = Nest("n0", "k0", "k1", "above")
    sizes = (image.batch, image.oh, image.ow, this.count, this.outputs)
    steps = (1, c.rows, c.m0 if c.window else image.ow, c.groups, c.n0)
    dims, panel = [number(size) for size in sizes], -1
    load = partial(_panel_load, nest, r, this, c, several, dims)
    with ExitStack() as stack:
        for d in range(5):
            if several[d]:
                share = min(sizes[d], turns[d] * steps[d])
                dims[d] = stack.enter_context(nest.loop(share, steps[d]))
            if d == 3 and not c.k1:
                panel = load()
        place, weights = _Place(*dims[1:]), -1
        if c.resident:
            weights = nest.buffer()
            r.load(nest, weights, (place.groups.scaled(this.depth),), place.outputs)
        m = place.window
        if not c.window:
            more = c.m0 < c.rows * image.ow
            m = stack.enter_context(maybe_loop(nest, more, image.oh * image.ow, c.m0, place.rows.scaled(image.ow)))
        n = place.outputs if c.groups == 1 else place.groups.scaled(this.outputs)
        loaded = e.loads(nest, r, m, n)
        acc = _sums(nest, r, this, c, place, m, load if c.k1 else lambda: panel, weights)
        e.emit(nest, r, acc, loaded, m, n)
    return nest


def _panel_load(nest: Nest, r: Rates, this: Groups, c: Cut, several: list[bool], dims: list[Dim]) -> int:
    """The panel of a block of groups, or a chunk's part of it."""
    image, burst = this.image, r.target.gm_burst
    into = nest.buffer()
    pixels, run = (number(image.w),), dims[3].scaled(this.channels * r.esize).blocks(burst)
    if c.window:
        pixels = (dims[2].scaled(image.strides[1]).plus(image.across(1) - image.strides[1]),)
    elif c.groups == this.count:
        pixels, run = (), number(image.w * image.channels * r.esize / burst)
    if c.k1:
        height, _, width, _ = _panel_size(this, c)
        load_rows(nest, r, into, number(height), pixels, number(-(-width * r.esize // burst)))
    else:
        load_panel(nest, r, image, into, dims[1] if several[1] else None, pixels, run)
    return into


def _sums(
    nest: Nest, r: Rates, this: Groups, c: Cut, place: _Place, m: Dim, panel: Callable[[], int], weights: int
) -> int:
    """The products of a tile, group by group; the accumulator. `panel` loads what comes by chunks of k."""
    most = min(this.depth, SEGMENT)
    if c.groups == 1:

        def chunk(k: Dim) -> tuple[int, int]:
            """The panel and the weights of a chunk; those that do not stand are loaded."""
            streamed = weights
            if not c.resident:
                streamed = nest.buffer()
                r.load(nest, streamed, (k,), place.outputs)
            return panel(), streamed

        size = (c.k1 or c.k0) if c.k1 or not c.resident else most
        inner = (size < most, c.k0 < min(size, most))
        return contract(nest, r, this.depth, inner, m, place.outputs, chunk)
    acc = nest.buffer()
    with (
        nest.loop(c.groups, 1, place.groups),
        maybe_loop(nest, c.k0 < most, this.depth, "k0", number(this.depth)) as k,
    ):
        a0, b0 = nest.buffer(), nest.buffer()
        r.feed(nest, panel(), a0, m, k, left=True)
        r.feed(nest, weights, b0, place.outputs, k, left=False)
        r.mma(nest, a0, b0, acc, m, place.outputs, k)
    return acc
