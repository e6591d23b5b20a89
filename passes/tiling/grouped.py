"""Convolutions by group: a panel holds the channels of a block of groups, an accumulator their outputs side by side.

for image, row panel or window of a row, block of groups:
  load the panel (rows × width × channels of the block) and the block's weights
  for pixel block:
    for each group: for k0: im2col, feed b, mma
    drain, epilogue, store

A block of one group may also be cut by its outputs, and may bring its weights step by step, and with each tile what a
chunk of k has of the panel.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ...dialects import tile
from ...dialects.graph.contract import GroupConv2DOp, inner_channels, packed_depth
from ...dialects.graph.op import GraphOp, dtype_name, shape
from ...dialects.graph.properties import ints
from ...dialects.tile import SIZES
from ...dialects.tile.builder import Affine, Box, Buffer, Index, KernelBuilder
from ...runtime.expr import LEVELS
from ...runtime.target import Target
from .body import Dim, Machine, Region, first_fitting
from .contraction import SEGMENT, Chunk, Finish, contract, maybe_loop, upto
from .geometry import Image, panel_heights
from .image import Rows, pixel_blocks
from .space import Joined, Spot, balanced, balanced16, flat_arguments, open_tiles, up16


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


def tile_groups(name: str, region: Region, machine: Machine) -> tile.KernelOp:
    """The kernel of a convolution by group; the best cut by estimate whose buffers fit."""
    this, target, cores = Groups.of(region.ops[0]), machine.target, machine.cores
    machine.need_cube(this.image.dtype)
    cuts = sorted(fitting_cuts(this, target), key=lambda c: _estimate(this, c, target, cores))
    return first_fitting(
        (_Grouped(name, region, this, c, cores).build() for c in cuts),
        machine,
        "a panel of rows and the tiles of one group must fit on chip",
    )


def fitting_cuts(this: Groups, target: Target) -> Sequence[Cut]:
    """Cuts that may fit L1; if none does, the one that needs least."""
    cuts = [*_cuts(this, target)]
    fits = [c for c in cuts if _least(this, c) <= target.l1_bytes]
    return fits or sorted(cuts, key=lambda c: _least(this, c))[:1]


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
                yield from _deep(this, Cut(rows, m0, groups, n0, 0, resident, window), most, large, target)


def _deep(this: Groups, cut: Cut, most: int, large: bool, target: Target) -> Iterator[Cut]:
    """The cut with steps of at most so many k, and if panels are large with chunks of k."""
    for k in (512, 256, 128, 64, 32, 16):
        k0 = balanced16(this.depth, k) if this.depth <= SEGMENT else k
        found = replace(cut, k0=k0)
        if (k == 16 or k < 2 * k0) and k0 <= most and _levels(this, found) <= _most_levels(this, cut):
            yield found
            break
    if large and cut.groups == 1 and _pixels_of(this, cut) == 1:
        for k1 in this.inner.chunks():
            k0 = max((16 * d for d in range(1, k1 // 16 + 1) if k1 // 16 % d == 0 and 16 * d <= most), default=0)
            found = replace(cut, k0=k0, k1=k1)
            if k0 and _levels(this, found) <= _most_levels(this, cut):
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


def _most_levels(this: Groups, c: Cut) -> int:
    """Loops that may nest, images and their panels of rows being able to have one."""
    return LEVELS + (this.image.batch > 1 and c.rows < this.image.oh)


def _pixels_of(this: Groups, c: Cut) -> int:
    """Tiles of the pixels of a panel."""
    return 1 if c.window else -(-c.rows * this.image.ow // c.m0)


def _least(this: Groups, c: Cut) -> int:
    """Bytes in L1 at least."""
    image, part = this.image, this.inner.part(c.k1) if c.k1 else replace(this.image, channels=this.channels * c.groups)
    across = image.across(c.m0) if c.window else image.w
    rows = part.height(c.rows) if c.k1 else image.panel_rows(c.rows)
    depth = this.depth * c.groups if c.resident else min(SEGMENT, c.k1 or c.k0)
    return (rows * across * part.channels + depth * up16(c.n0)) * SIZES[image.dtype]


def _estimate(this: Groups, c: Cut, target: Target, cores: int) -> float:
    """Cycles of the busiest core: the busiest engine, plus the first load and the last tile's way out."""
    image, es = this.image, SIZES[this.image.dtype]
    windows, across = (-(-image.ow // c.m0), image.across(c.m0)) if c.window else (1, image.w)
    outer, blocks = image.batch * -(-image.oh // c.rows) * windows, -(-this.count // c.groups)
    share = -(-outer // cores) if outer > 1 else -(-blocks // cores) / blocks
    pixels, steps = _pixels_of(this, c), -(-this.depth // c.k0)
    wide = image.dtype == "f32"
    block_k, cost = (target.cube_k_f32, target.cube_cost_f32) if wide else (target.cube_k_f16, 1)
    cells = -(-c.m0 // target.cube_m) * -(-c.n0 // target.cube_n) * -(-this.depth // block_k) * cost
    parts = -(-this.outputs // c.n0)
    each = pixels * this.count * parts
    cube = each * (cells + steps * target.fixed_mma)
    feed = each * (
        this.depth * es * (c.m0 / target.feed_a_bytes + c.n0 / target.feed_b_bytes) + 2 * steps * target.fixed_feed
    )
    tiles, area = pixels * blocks * parts, c.m0 * c.groups * c.n0
    drain = tiles * (area / target.drain_elements + target.fixed_drain)
    bandwidth = min(target.gm_path, target.gm_port / cores)
    times = 1 if c.resident else pixels
    weights = this.count * this.depth * this.outputs * es * times
    chunks = -(-this.depth // c.k1) if c.k1 else 0
    height = this.inner.part(c.k1).height(c.rows) * chunks * parts if c.k1 else image.panel_rows(c.rows)
    load = (height * across * image.channels * es + weights) / bandwidth
    loads = (0 if c.resident else chunks or steps) + chunks
    load += blocks * (1 + parts * times * max(1, loads)) * target.fixed_load
    store = tiles * (area * es / bandwidth + target.fixed_store)
    return share * max(cube, feed, drain, load + store) + load / blocks + (drain + store) / tiles


@dataclass
class _Grouped:
    """One kernel being written."""

    name: str
    region: Region
    this: Groups
    cut: Cut
    cores: int

    def build(self) -> tile.KernelOp:
        self.k = k = KernelBuilder(self.name)
        this, image, c, anchor = self.this, self.this.image, self.cut, self.region.ops[0]
        inputs, outputs = flat_arguments(k, self.region)
        buffers = dict(zip(self.region.arguments, inputs, strict=True))
        pixels = image.batch * image.oh * image.ow
        finish = Finish(k, self.region, buffers, outputs, (pixels, this.count * this.outputs))
        window = (image.ow, c.m0 if c.window else image.ow)
        sizes = ((image.batch, 1), (image.oh, c.rows), (this.count, c.groups), (this.outputs, c.n0), window)
        self.dims = dims = [Dim(size, part, Affine(), part) for size, part in sizes]
        rows = Rows(k, buffers[anchor.operands[0]], image, c.rows, c.m0 if c.window else None)
        self.weights = _Weights(k, buffers[anchor.operands[1]], this, c)
        loops = [d for d in (0, 1, 4, 2, 3) if dims[d].blocks > 1]
        joined = Joined(k, dims) if _levels(this, c) > LEVELS else None
        loops = joined.loops(loops) if joined else loops
        levels, slots = max(1, len(loops)), 2 if loops else 1

        def load(spot: Spot) -> None:
            if joined and spot.depth >= 0 and loops[spot.depth] == joined.number:
                joined.enter()
            if spot.depth == len([d for d in loops if d != 3]) - 1 and not c.k1:
                rows.load(dims[0].start, dims[1].start, spot, _scaled(k, dims[2], this.channels), dims[4].start)

        with open_tiles(k, dims, loops, self.cores, at=load):
            if c.resident:
                self.weights.load(dims, Affine(), this.depth, slots, this.depth)
            with pixel_blocks(k, image, c, dims[1], dims[4]) as (pixel, count, inside):
                first = dims[0].start * (image.oh * image.ow) + pixel
                finish.place(Dim(pixels, min(c.m0, c.rows * image.ow), first, count), self._columns())
                finish.run(self._sums(rows, rows.first(dims[1].start, pixel), count, levels + inside))
        return k.finish()

    def _columns(self) -> Dim:
        """The outputs of the current tile among all."""
        block, part = self.dims[2:4]
        columns = _scaled(self.k, block, self.this.outputs)
        if part.blocks == 1:
            return columns
        return replace(columns, tile=part.tile, start=columns.start + part.start, extent=part.extent)

    def _sums(self, rows: Rows, pixel: Affine, count: Index, levels: int) -> Buffer:
        """Multiplies group by group; returns the accumulator of the tile."""
        k, this, c = self.k, self.this, self.cut
        step = _Step(k, this, c, rows, self.weights, pixel, count, self.dims[3].extent)
        if c.groups == 1:

            def stream(chunk: Chunk) -> None:
                if not c.resident:
                    self.weights.load(self.dims, chunk.first, chunk.count, 2, chunk.size)
                if c.k1:
                    b, row, block, _, x = self.dims[:5]
                    group = _scaled(k, block, this.channels)
                    rows.load_part(b.start, row.start, x.start, group, c.k1, chunk, 2)
                    step.start = chunk.start

            grid = this.inner.grid(c.k1) if c.k1 else None
            loads = stream if c.k1 or not c.resident else None
            return contract(k, this.depth, c.k0, c.k1 or c.k0, loads, levels, step, grid)
        sums = "i32" if this.image.dtype in ("i8", "u8") else "f32"
        acc = k.alloc((c.m0, c.width), sums, "l0c", 2)
        with k.loop(self.dims[2].extent) as group, maybe_loop(k, this.depth, c.k0) as position:
            step.group = group
            init = k.clamp(1 - position, 1) if position.terms else 1
            step(acc, position, upto(k, this.depth, position, c.k0), init)
        return acc


def _scaled(k: KernelBuilder, block: Dim, each: int) -> Dim:
    """A block of groups as one of their channels, outputs or rows of weights."""
    size, part = block.size * each, block.tile * each
    extent = part if block.size % block.tile == 0 else k.clamp(size - block.start * each, part)
    return replace(block, size=size, tile=part, start=block.start * each, extent=extent)


@dataclass
class _Weights:
    """Packed weights of the current tile in L1: all of k of each group of the block, or some k of one group."""

    k: KernelBuilder
    source: Buffer
    this: Groups
    c: Cut
    buffer: Buffer | None = None
    first: Affine = field(default_factory=Affine)

    def load(self, dims: list[Dim], first: Affine, count: Index, slots: int, depth: int) -> None:
        """Loads k in [first, first + count), at most `depth` long, of each group."""
        this, (block, part) = self.this, dims[2:4]
        rows = _scaled(self.k, block, this.depth)
        several = self.c.groups > 1
        self.buffer = self.k.alloc((rows.tile if several else depth, up16(self.c.n0)), this.image.dtype, "l1", slots)
        place = (rows.start + first) * this.outputs + part.start
        extents = (rows.extent if several else count, part.extent)
        self.k.load(self.buffer[0, 0], self.source.box(place, this.outputs, 1), extents)
        self.first = first

    def at(self, group: Affine, position: Affine) -> Box:
        """The weights of a group of the block from k = position on."""
        assert self.buffer is not None
        width = up16(self.c.n0)
        return self.buffer.box((group * self.this.depth + position - self.first) * width, width, 1)


@dataclass
class _Step:
    """One k0 step of a group of the block."""

    k: KernelBuilder
    this: Groups
    c: Cut
    rows: Rows
    weights: _Weights
    pixel: Affine
    count: Index
    columns: Index
    group: Affine = field(default_factory=Affine)
    start: Affine = field(default_factory=Affine)
    """The first k that the panel has."""

    @property
    def dtype(self) -> str:
        return self.this.image.dtype

    @property
    def shape(self) -> tuple[int, int]:
        return self.c.m0, self.c.width

    @property
    def extents(self) -> tuple[Index, Index]:
        return self.count, self.columns

    def __call__(self, acc: Buffer, position: Affine, count: Index, init: Index) -> None:
        k, this = self.k, self.this
        m, n = self.extents
        a0 = k.alloc((self.c.m0, self.c.k0), self.dtype, "l0a", 2)
        b0 = k.alloc((self.c.k0, up16(self.c.n0)), self.dtype, "l0b", 2)
        channels = self.rows.present if self.c.k1 else this.channels
        moving = {"m0": self.pixel, "k0": position - self.start, "channels": channels}
        fixed = self.rows.fields() | {"c0": inner_channels(this.channels)}
        k.im2col(a0[0, 0], self.rows.patches(self.group * this.channels), (m, count), **moving, **fixed)
        k.feed_b(b0[0, 0], self.weights.at(self.group, position), (count, n))
        columns = acc.box(self.group * this.outputs, self.c.width, 1)
        k.mma(columns, a0[0, 0], b0[0, 0], (m, n, count), init)
