"""Convolutions by group: a panel holds the channels of a block of groups, an accumulator their outputs side by side.

for image, row panel or window of a row, block of groups:
  load the panel (rows × width × channels of the block) and the block's weights
  for pixel block:
    for each group: for k0: im2col, feed b, mma
    drain, epilogue, store

A block of one group may also be cut by its outputs, and may bring its weights step by step, and with each tile what a
chunk of k has of the panel.
"""

from dataclasses import dataclass, field, replace

from ...dialects import tile
from ...dialects.graph.contract import inner_channels
from ...dialects.tile.builder import Affine, Box, Buffer, Index, KernelBuilder
from .body import Dim, Machine, Region, first_fitting
from .contraction import Chunk, Finish, contract, epilogue_of, maybe_loop, upto
from .grouped_space import Cut, Groups, joins, ranked
from .image import Rows, pixel_blocks
from .space import Joined, Spot, flat_arguments, open_tiles, up16


def tile_groups(name: str, region: Region, machine: Machine) -> tile.KernelOp:
    """The kernel of a convolution by group; the best cut whose buffers fit."""
    this, target, cores = Groups.of(region.ops[0]), machine.target, machine.cores
    machine.need_cube(this.image.dtype)
    found = ranked(this, epilogue_of(region), target, cores)
    return first_fitting(
        (_Grouped(name, region, this, c, cores).build() for c in found),
        machine,
        "a panel of rows and the tiles of one group must fit on chip",
    )


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
        joined = Joined(k, dims) if joins(this, c) else None
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
