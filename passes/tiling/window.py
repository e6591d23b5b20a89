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
from ...dialects.loops import Map, Window
from ...dialects.tile import SIZES
from ...dialects.tile.builder import Affine, Box, Buffer, Index, KernelBuilder, float_bits
from ...runtime.expr import LEVELS
from ...runtime.numerics.functions import FUNCTIONS
from .body import Body, Dim, Held, Machine, Region, first_fitting
from .contraction import maybe_loop, upto
from .geometry import Image
from .space import balanced, even_parts, flat_arguments, open_tiles

UNROLLED = 64
"""Most taps that are instructions of their own; of more, the rows are a loop."""
LEAST_F32 = float_bits(-math.inf)


@dataclass(frozen=True)
class _Axis:
    """A window along one axis."""

    size: int
    out: int
    taps: int
    stride: int
    dilation: int
    pad: int

    def span(self, out: int, taps: int) -> int:
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

    def begins_inside(self, out: int, taps: int) -> bool:
        """Whether the last chunk of `taps` of the last tile of `out` windows begins in the image, or there is no
        padding before it."""
        tiles, chunks = -(-self.out // out), -(-self.taps // taps)
        last = (tiles - 1) * out * self.stride + (chunks - 1) * taps * self.dilation
        return self.pad == 0 or last <= self.size


@dataclass(frozen=True)
class _Cut:
    """Rows, columns and channels of a tile; taps of a chunk, down and across."""

    rows: int
    columns: int
    channels: int
    down: int
    across: int

    def unrolls(self, axes: "tuple[_Axis, _Axis]") -> bool:
        """Whether each tap is an instruction of its own."""
        down, across = (axis.taps for axis in axes)
        return (self.down, self.across) == (down, across) and down * across <= UNROLLED

    def levels(self, image: Image, axes: "tuple[_Axis, _Axis]") -> int:
        """Most loops, one in another; a single tile is in one too, that of the first core."""
        down, across = axes
        cut = [image.batch > 1, self.rows < image.oh, self.columns < image.ow, self.channels < image.channels]
        chunks = [self.down < down.taps, self.across < across.taps]
        rest = across.taps % self.across > 0  # the last chunk is shorter: a loop
        taps = [self.down > 1, self.across > 1 and (rest or across.taps > UNROLLED)]
        counts = any(axis.is_padded and axis.taps > UNROLLED for axis in axes)
        return max(1, sum(cut)) + max(0 if self.unrolls(axes) else sum(chunks) + sum(taps), counts)

    def legal(self, image: Image, axes: "tuple[_Axis, _Axis]") -> bool:
        """Whether its loops may nest, and its loads lie in the image."""
        down, across = axes
        inside = down.begins_inside(self.rows, self.down) and across.begins_inside(self.columns, self.across)
        return inside and self.levels(image, axes) <= LEVELS


def tile_window(name: str, region: Region, image: Image, machine: Machine) -> tile.KernelOp:
    """The kernel of one pooling op."""
    kernel = region.ops[0].loops().kernel
    assert isinstance(kernel, Window)
    axes = _axes(image)
    cuts = [cut for cut in _cuts(image, axes) if cut.legal(image, axes)]
    cuts.sort(key=lambda cut: _estimate(region, image, axes, cut, machine))
    return first_fitting(
        (_Pool(name, region, image, axes, kernel, cut, machine.cores).build() for cut in cuts),
        machine,
        "a window of one channel must fit UB",
    )


def _axes(image: Image) -> tuple[_Axis, _Axis]:
    extents = ((image.h, image.oh), (image.w, image.ow))
    numbers = zip(extents, image.kernel, image.strides, image.dilations, image.pads, strict=True)
    first, second = (_Axis(*extent, *rest) for extent, *rest in numbers)
    return first, second


def _cuts(image: Image, axes: tuple[_Axis, _Axis]) -> Iterator[_Cut]:
    """Whole rows first; then parts of rows, few channels of them; then parts of a window."""
    down, across = axes
    sizes = (image.channels, 512, 256, 128, 64, 32, 16)
    blocks = list(dict.fromkeys(balanced(image.channels, c) for c in sizes if c <= image.channels))
    for channels in blocks:
        for rows in down.tiles():
            if rows == image.oh or rows * 2 <= image.oh or channels < 64:
                yield _Cut(rows, image.ow, channels, down.taps, across.taps)
    rows = down.tiles()[-1]
    for columns in across.tiles()[1:]:
        yield _Cut(rows, columns, blocks[-1], down.taps, across.taps)
    columns = across.tiles()[-1]
    for channels in blocks:
        yield from (_Cut(rows, columns, channels, taps, across.taps) for taps in down.chunks()[1:])
    for taps in across.chunks()[1:]:
        yield _Cut(rows, columns, blocks[-1], down.chunks()[-1], taps)
    for channels in (8, 4, 2, 1):
        if channels < blocks[-1]:
            yield _Cut(rows, columns, channels, down.chunks()[-1], across.chunks()[-1])


def _estimate(region: Region, image: Image, axes: tuple[_Axis, _Axis], c: _Cut, machine: Machine) -> float:
    """Cycles of the busiest core: the busiest engine, plus the first load and the last tile's way out."""
    t, (op, *rest), (down, across) = machine.target, region.ops, axes
    sizes, tile_ = (image.batch, image.oh, image.ow, image.channels), (1, c.rows, c.columns, c.channels)
    blocks = [-(-size // part) for size, part in zip(sizes, tile_, strict=True)]
    parts = even_parts(blocks, machine.cores)
    tiles = math.prod(-(-n // p) for n, p in zip(blocks, parts, strict=True))
    bandwidth = min(t.gm_path, t.gm_port / math.prod(parts))
    esize, area = SIZES[dtype_name(op.operands[0])], math.prod(tile_)

    def moved(pixels: int, esize: int) -> float:
        """Cycles of a transfer of pixels."""
        whole = c.channels == image.channels
        run = c.channels * esize if whole else -(-c.channels * esize // t.gm_burst) * t.gm_burst
        return pixels * run / bandwidth

    def instruction(esize: int, passes: int = 1) -> float:
        """Cycles of the vector engine for the tile."""
        return t.fixed_vector + passes * area * esize / t.vector_bytes

    chunks = -(-down.taps // c.down) * -(-across.taps // c.across)
    pixels = min(down.span(c.rows, c.down), down.size) * min(across.span(c.columns, c.across), across.size)
    loads = (1 + (down.pad > 0 and blocks[1] > 1)) * (1 + (across.pad > 0 and blocks[2] > 1))
    load = loads * t.fixed_load + moved(pixels, esize)
    if down.is_padded or across.is_padded:
        panel = down.span(c.rows, c.down) * across.span(c.columns, c.across) * c.channels
        load += t.fixed_load + panel * esize / t.fill_bytes
    vector = (down.taps * across.taps + (not c.unrolls(axes)) + 1) * instruction(4)
    for other in rest:
        kernel, values = other.loops().kernel, (*other.operands, *other.results)
        passes = FUNCTIONS[kernel.fn].passes if isinstance(kernel, Map) else 1
        vector += instruction(max(SIZES[dtype_name(value)] for value in values), passes)
    others = [v for v in region.arguments if v is not op.operands[0]]
    extra = sum(t.fixed_load + moved(c.rows * c.columns, SIZES[dtype_name(v)]) for v in others)
    store = sum(t.fixed_store + moved(c.rows * c.columns, SIZES[dtype_name(v)]) for v in region.results)
    both = [SIZES[dtype_name(v)] for v in (*others, *region.results)]
    transfers = chunks * moved(pixels, esize) + sum(moved(c.rows * c.columns, size) for size in both)
    together = math.prod(parts) > 1  # cores in step wait for the first byte at the same time
    port = math.prod(blocks) * transfers * bandwidth / t.gm_port + together * tiles * chunks * loads * t.fixed_load
    last = vector / chunks
    engines = max(tiles * (chunks * load + extra) + last, load + tiles * vector, load + last + (tiles - 1) * store)
    return max(port + last, engines + store)


@dataclass
class _Pool:
    """One kernel being written."""

    name: str
    region: Region
    image: Image
    axes: tuple[_Axis, _Axis]
    kernel: Window
    cut: _Cut
    cores: int

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
        with open_tiles(k, self.dims, loops, self.cores):
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
        if not c.unrolls(self.axes):
            k.fill(acc.box(0, 1), (math.prod(acc.kind.dims),), LEAST_F32 if self.kernel.fn == "max" else 0)
        with maybe_loop(k, down, c.down) as first, maybe_loop(k, across, c.across) as second:
            panel = self._panel(source, dtype_name(op.operands[0]), (first, second))
            self._combine(here, panel, (upto(k, down, first, c.down), upto(k, across, second, c.across)))
        held = body.alloc(op.results[0], slots=2)
        out, extents = held.buffer.box(0, *acc.strides), self.extents
        if self.kernel.fn != "mean":
            k.map("copy", out, here, extents=extents)
        elif self.kernel.count_include_pad or not any(axis.is_padded for axis in self.axes):
            k.map("div", out, here, float(down * across), extents=extents)
        else:
            k.map("div", out, here, self._counts().box(0, c.columns, 1, 0), extents=extents)
        return held

    def _panel(self, source: Buffer, dtype: str, firsts: tuple[Affine, Affine]) -> Buffer:
        """The pixels under the windows of the current tile, for the chunk of taps from `firsts` on."""
        k, image, c = self.k, self.image, self.cut
        neutral = {"f16": 0xFC00, "bf16": 0xFF80, "f32": LEAST_F32}[dtype] if self.kernel.fn == "max" else 0
        tiles, taps = (c.rows, c.columns), (c.down, c.across)
        height, width = (axis.span(*n) for axis, *n in zip(self.axes, tiles, taps, strict=True))
        panel = k.alloc((height, width, c.channels), dtype, "ub", 2)
        if any(axis.is_padded for axis in self.axes):
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
        k, largest, alone = self.k, self.kernel.fn == "max", self.cut.unrolls(self.axes)
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
