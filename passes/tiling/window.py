"""Pooling over windows of a channels-last image, on the vector engine.

for image, row block, column block, channel block:
  for chunk of taps (all of them, unless the window is too large):
    fill the panel with the neutral value (where there is padding), load the pixels that are there
    for each tap: acc = acc ∘ the panel, shifted                         one strided instruction a tap
  divide (mean; where padding does not count, by the taps inside: those down times those across), cast, epilogue, store
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ...dialects import tile
from ...dialects.graph.op import GraphOp, dtype_name, shape
from ...dialects.loops import Window
from ...dialects.tile import SIZES
from ...dialects.tile.builder import Affine, Box, Buffer, Index, KernelBuilder, float_bits
from ...runtime.numerics.functions import FUNCTIONS
from .body import Body, Dim, Held, Machine, Region, first_fitting
from .contraction import maybe_loop, numbers_of, upto
from .geometry import Image
from .image import with_windows
from .space import flat_arguments, open_tiles
from .window_space import UNROLLED, Axis, Cut, Pool, PoolForm

LEAST_F32 = float_bits(-math.inf)


def tile_window(name: str, region: Region, image: Image, machine: Machine) -> tile.KernelOp:
    """The kernel of one pooling op; the best schedule whose buffers fit."""
    kernel = region.ops[0].loops().kernel
    assert isinstance(kernel, Window)
    result, last = region.ops[0].results[0], (4, FUNCTIONS["div" if kernel.fn == "mean" else "copy"].passes)
    pool = Pool(image, kernel, 0 if result in region.results else SIZES[dtype_name(result)])
    follows = numbers_of(region, region.ops[1:], [last], drained=0)
    found = PoolForm(machine.target, machine.cores, follows, pool).schedules()
    return first_fitting(
        (_Pool(name, region, pool, cut, machine.cores).build() for cut in found),
        machine,
        "a window of one channel must fit UB",
    )


@dataclass
class _Pool:
    """One kernel being written."""

    name: str
    region: Region
    pool: Pool
    cut: Cut
    cores: int

    @property
    def image(self) -> Image:
        return self.pool.image

    @property
    def axes(self) -> tuple[Axis, Axis]:
        return self.pool.axes

    @property
    def alone(self) -> bool:
        """Whether each tap is an instruction of its own."""
        return bool(self.pool.unrolls(self.cut.down, self.cut.across))

    def build(self) -> tile.KernelOp:
        self.k = k = KernelBuilder(self.name)
        image, c = self.image, self.cut
        op, *rest = self.region.ops
        inputs, outputs = flat_arguments(k, self.region)
        buffers = dict(zip(self.region.arguments, inputs, strict=True))
        sizes = ((image.batch, 1), (image.oh, c.rows), (image.ow, c.columns), (image.channels, c.channels))
        self.dims = [Dim(size, part, Affine(), part) for size, part in sizes]
        loops = [d for d in range(4) if self.dims[d].blocks > 1]
        body = Body(k, shape(op.results[0]), [(0,), (1,), (2,), (3,)], [])
        images, rows, channels, columns = with_windows(c.parts, self.dims[2], self.cores)
        with open_tiles(k, self.dims, loops, self.cores, (images, rows, columns, channels)):
            body.dims = list(self.dims)
            for value in self.region.arguments:
                if value is not op.operands[0] or any(value in other.operands for other in rest):
                    body.load(value, buffers[value], slots=2)
            held = self._pooled(body, op, buffers[op.operands[0]])
            held.reusable = op.results[0] not in self.region.results
            body.held[op.results[0]] = held
            body.emit(rest, self.region.results)
            for value, buffer in zip(self.region.results, outputs, strict=True):
                body.store(value, buffer)
        return k.finish()

    @property
    def extents(self) -> tuple[Index, Index, Index]:
        """Rows, columns and channels of the current tile."""
        return self.dims[1].extent, self.dims[2].extent, self.dims[3].extent

    def _pooled(self, body: Body, op: GraphOp, source: Buffer) -> Held:
        """The windows of the current tile."""
        k, c = self.k, self.cut
        acc = k.alloc((c.rows, c.columns, c.channels), "f32", "ub")
        here = acc.box(0, *acc.strides)
        down, across = (axis.taps for axis in self.axes)
        if not self.alone:
            k.fill(acc.box(0, 1), (math.prod(acc.kind.dims),), LEAST_F32 if self.pool.kernel.fn == "max" else 0)
        with maybe_loop(k, down, c.down) as first, maybe_loop(k, across, c.across) as second:
            panel = self._panel(source, dtype_name(op.operands[0]), (first, second))
            self._combine(here, panel, (upto(k, down, first, c.down), upto(k, across, second, c.across)))
        held = body.alloc(op.results[0], slots=2)
        out, extents = held.buffer.box(0, *acc.strides), self.extents
        if self.pool.kernel.fn != "mean":
            k.map("copy", out, here, extents=extents)
        elif self.pool.counted:
            k.map("div", out, here, self._counts().box(0, c.columns, 1, 0), extents=extents)
        else:
            k.map("div", out, here, float(down * across), extents=extents)
        return held

    def _panel(self, source: Buffer, dtype: str, firsts: tuple[Affine, Affine]) -> Buffer:
        """The pixels under the windows of the current tile, for the chunk of taps from `firsts` on."""
        k, image, c = self.k, self.image, self.cut
        neutral = {"f16": 0xFC00, "bf16": 0xFF80, "f32": LEAST_F32}[dtype] if self.pool.kernel.fn == "max" else 0
        tiles, taps = (c.rows, c.columns), (c.down, c.across)
        height, width = (axis.span(*n) for axis, *n in zip(self.axes, tiles, taps, strict=True))
        panel = k.alloc((height, width, c.channels), dtype, "ub", 2)
        if self.pool.padded:
            k.fill(panel.box(0, 1), (height * width * c.channels,), neutral)
        line = image.w * image.channels
        base = self.dims[0].start * (image.h * line) + self.dims[3].start
        for row, y, count in self._there(0, firsts[0], height):
            for column, x, across in self._there(1, firsts[1], width):
                box = source.box(base + y * line + x * image.channels, line, image.channels, 1)
                k.load(panel[row, column, 0], box, (count, across, self.dims[3].extent))
        return panel

    def _there(self, place: int, first: Affine, length: int) -> Iterator[tuple[int, Affine, Index]]:
        """(place in a panel of `length`, place in the image, how many) of what there is of the image along an axis."""
        axis, dim = self.axes[place], self.dims[1 + place]
        start = dim.start * axis.stride + first * axis.dilation
        if axis.pad and start.terms:
            yield 0, start - axis.pad, self.k.clamp(start, axis.pad)
        below = min(length - axis.pad, axis.size)
        if below > 0:
            yield axis.pad, start, self.k.clamp(axis.size - start, below) if start.terms else below

    def _combine(self, acc: Box, panel: Buffer, taps: tuple[Index, Index]) -> None:
        """acc = the panel's taps, one by one, row by row."""
        k, largest, alone = self.k, self.pool.kernel.fn == "max", self.alone
        (down, across), (_, width, channels) = self.axes, panel.kind.dims
        strides = (down.stride * width * channels, across.stride * channels, 1)
        for y in _each(k, taps[0], alone):
            for x in _each(k, taps[1], alone or across.taps <= UNROLLED):
                shifted = panel.box(y * (down.dilation * width * channels) + x * (across.dilation * channels), *strides)
                if not alone:
                    k.map("max" if largest else "add", acc, acc, shifted, extents=self.extents)
                elif largest:
                    k.map("copy", acc, shifted, extents=self.extents)
                else:
                    k.map("add", acc, shifted, 0.0, extents=self.extents)  # a −0 becomes +0
                alone = False

    def _counts(self) -> Buffer:
        """f32 [rows, columns]: how many taps of each window lie inside the image."""
        k, c = self.k, self.cut
        down, across = self._inside(0, c.rows), self._inside(1, c.columns)
        counts = k.alloc((c.rows, c.columns), "f32", "ub")
        k.map("mul", counts.box(0, c.columns, 1), down.box(0, 1, 0), across.box(0, 0, 1), extents=self.extents[:2])
        return counts

    def _inside(self, place: int, tile_size: int) -> Buffer:
        """f32 [windows]: how many taps lie inside along an axis: the windows over ones."""
        k, axis = self.k, self.axes[place]
        length = axis.span(tile_size, axis.taps)
        ones, counts = k.alloc((length,), "f32", "ub"), k.alloc((tile_size,), "f32", "ub")
        k.fill(ones.box(0, 1), (length,), 0)
        for position, _, count in self._there(place, Affine(), length):
            k.fill(ones[position], (count,), float_bits(1.0))
        k.fill(counts.box(0, 1), (tile_size,), 0)
        extents = self.extents[place : place + 1]
        for tap in _each(k, axis.taps, axis.taps <= UNROLLED):
            k.map("add", counts[0], counts[0], ones.box(tap * axis.dilation, axis.stride), extents=extents)
        return counts


def _each(k: KernelBuilder, taps: Index, unroll: bool) -> Iterator[Affine]:
    """Each tap: a number, or the index of a loop that is open until the next is asked for."""
    if isinstance(taps, int) and (unroll or taps == 1):
        yield from (Affine(tap) for tap in range(taps))
    else:
        with k.loop(taps) as tap:
            yield tap
