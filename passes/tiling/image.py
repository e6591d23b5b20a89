"""Convolutions over an image in channels-last layout: the panel of input rows stands in L1, patches are cut by
`im2col`.

for image, row panel (r output rows) or window of one output row, column block n (in either order of the last two):
  load panel: the halo above (not for the first panel) and the rows from its first output row on
  for pixel block of the panel:
    for k1: load what comes by chunks: the weights, the channels of the panel
      for k0: im2col, feed b, mma
    drain, epilogue, store

k runs over blocks of channels, and over the taps inside them: a chunk of it needs some blocks, or of one block some
rows of the kernel.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Protocol

from ...dialects import tile
from ...dialects.tile.builder import Affine, Box, Buffer, Index, KernelBuilder
from .body import Dim, Machine, NotTileable, Region, first_fitting
from .contraction import Chunk, Finish, Panel, contract, epilogue_of
from .convolution import ConvolutionForm, Cut, joins
from .geometry import Image
from .product import Matrix
from .space import Joined, Spot, even_parts, flat_arguments, open_tiles, up16


def tile_convolution(name: str, region: Region, image: Image, columns: int, machine: Machine) -> tile.KernelOp:
    """The kernel of a convolution (one group); the best schedule whose buffers fit."""
    target, cores, image = machine.target, machine.cores, image.upright()
    machine.need_cube(image.dtype)
    found = ConvolutionForm(target, cores, epilogue_of(region), image, columns).schedules()
    return first_fitting(
        (_build(name, region, image, columns, c, cores) for c in found),
        machine,
        "a panel of rows and the tiles of a convolution must fit on chip",
    )


# emission -------------------------------------------------------------------------------------------------------------
@dataclass
class Rows:
    """The panel of input rows in L1 under some output rows, or under a window of one output row: all channels, or a
    block of them."""

    k: KernelBuilder
    source: Buffer
    image: Image
    rows: int
    columns: int | None = None
    """Output columns of a window; None: lines are whole."""
    buffer: Buffer | None = None
    width: int = 0
    """Channels of the panel."""
    row0: Affine = field(default_factory=Affine)
    left: Affine = field(default_factory=Affine)
    """First output column of the window."""
    present: Index = 0
    """Channels of the panel that there are."""
    down: dict[str, Index] = field(default_factory=dict)
    """Fields of `im2col` along the columns of the image."""

    @property
    def across(self) -> int:
        """Input columns of the panel."""
        return self.image.w if self.columns is None else self.image.across(self.columns)

    def load(self, b: Affine, first: Affine, spot: Spot, block: Dim | None = None, left: Affine | None = None) -> None:
        """Loads the input rows under output rows [first, first + rows) of image b; channels of `block`, or all; of a
        window those under the output columns from `left` on."""
        image = self.image
        if image.cropped(self.rows):
            self.load_rows(b, first, left or Affine(), spot.slots, block, image, Affine())
            return
        line = image.w * image.channels
        above, step = image.pads[0] if self.rows < image.oh else 0, image.strides[0]
        height = image.panel_rows(self.rows)
        self.width = self.present = block.tile if block else image.channels
        self.left = left or Affine()
        self.buffer = self.k.alloc((height, self.across, self.width), image.dtype, "l1", spot.slots)
        base = b * (image.h * line) + (block.start if block else 0)
        part = self.rows * step
        for done in range(0, above, part):
            # As much as lies over one panel: all of it is inside the image, or nothing. A low panel ends there.
            over, top = min(part, above - done), first * step - done
            count = min(over, height - (above - done - over))
            if count > 0:
                self._copy(above - done - over, base + (top - over) * line, self.k.clamp(top, count), block)
        below = min(height - above, image.h)
        if below > 0:
            count = self.k.clamp(image.h - first * step, below) if first.terms else spot.reached(below)
            self._copy(above, base + first * step * line, count, block)
        self.row0 = first * step - above

    def load_part(
        self, b: Affine, first: Affine, left: Affine, group: Dim | None, k1: int, chunk: Chunk, slots: int
    ) -> None:
        """Loads what a chunk of k has under output rows [first, first + rows) of image b, and under the output columns
        from `left` on of a window; k is of the channels of a group, if it is not of all."""
        size = group.tile if group else self.image.channels
        part = replace(self.image, channels=size).part(k1)
        channel = chunk.unit * part.channels
        there = self.k.clamp(size - channel, part.channels) if channel.terms else part.channels
        place = channel + group.start if group else channel
        tap = chunk.part * (part.kernel[0] * self.image.dilations[0])
        self.load_rows(b, first, left, slots, Dim(size, part.channels, place, there), part, tap)

    def load_rows(
        self, b: Affine, first: Affine, left: Affine, slots: int, block: Dim | None, part: Image, tap: Affine
    ) -> None:
        """Loads what there is of the rows under those taps that `part` has, from `tap` rows below the first one on. To
        `im2col` they are a kernel of its own."""
        image, k, (above, _), (step, _) = self.image, self.k, self.image.pads, self.image.strides
        height, place = part.height(self.rows), first * step + tap - above
        self.width, self.present = (block.tile, block.extent) if block else (image.channels, image.channels)
        self.left, line = left, image.w * image.channels
        self.buffer = k.alloc((height, self.across, self.width), image.dtype, "l1", slots)
        top = k.larger(place, 0) if above else place
        rest = k.smaller(place + ((self.rows - 1) * step + part.reach), image.h) - top
        count = k.clamp(rest, height) if rest.terms else max(0, rest.base)
        self._copy(0, b * (image.h * line) + (block.start if block else 0) + top * line, count, block)
        # The taps before those of the part lie in the padding above, if there is enough of it.
        beyond = k.larger(tap - above, 0) if tap.terms else Affine()
        below = k.clamp(image.h - beyond, image.h) if tap.terms else image.h
        self.down = {"row0": top - beyond, "kh": part.kernel[0], "ph": beyond - tap + above, "h": below}

    def _copy(self, row: int, place: Affine, count: Index, block: Dim | None) -> None:
        image, pixel, across = self.image, self.image.channels, self.across
        assert self.buffer is not None
        line, row = image.w * pixel, row * across * self.width
        if self.columns is None and self.width == pixel:
            whole = count * line if isinstance(count, int) else _times(count, line)
            self.k.load(self.buffer.box(row, 1), self.source.box(place, 1), (whole,))
            return
        channels = block.extent if block else pixel
        into = self.buffer.box(row, across * self.width, self.width, 1)
        if self.columns is None:
            self.k.load(into, self.source.box(place, line, pixel, 1), (count, across, channels))
            return
        pad, step, x = image.pads[1], image.strides[1], self.left
        if pad:  # the first window begins at the image's edge
            there = self.k.clamp(1 - x, 1)
            source = self.source.box(place, line, line, pixel, 1)
            self.k.load(self._four(into), source, (there, count, across, channels))
        there = self.k.clamp(x, 1) if pad else 1
        source = self.source.box(place + (x * step - pad) * pixel, line, line, pixel, 1)
        self.k.load(self._four(into), source, (there, count, self._columns_from(x), channels))

    def _four(self, box: Box) -> Box:
        """The box with an outer axis of one or none."""
        return replace(box, strides=(box.strides[0], *box.strides))

    def _columns_from(self, x: Affine) -> Index:
        """Input columns of the window that are there."""
        image = self.image
        return self.k.clamp(image.w + image.pads[1] - x * image.strides[1], self.across)

    def patches(self, channel: Affine | int = 0) -> Box:
        """The panel as `im2col` reads it, from a channel of the panel on."""
        assert self.buffer is not None
        return self.buffer.box(channel, self.across * self.width, self.width, 1)

    def first(self, row: Affine, pixel: Affine) -> Affine:
        """What `im2col` calls a pixel of the output image, of output row `row`, with which a tile begins."""
        return pixel if self.columns is None else row * self.columns

    def fields(self) -> dict[str, Index]:
        """The fields of `im2col` that say where the panel lies in the image. In those of a window, output rows are as
        long as it is."""
        fields = self.image.fields() | {"row0": self.row0} | self.down
        if self.columns is None:
            return fields
        pad, x = self.image.pads[1], self.left
        pw = self.k.clamp(pad - x * self.image.strides[1], pad) if pad else 0
        return fields | {"ow": self.columns, "pw": pw, "w": self._columns_from(x)}


def _times(value: Affine, factor: int) -> Affine:
    """A clamped value times a number."""
    assert value.limit is not None
    return replace(Affine(value.base, value.terms) * factor, limit=value.limit * factor)


def _build(name: str, region: Region, image: Image, columns: int, c: Cut, cores: int) -> tile.KernelOp:
    k = KernelBuilder(name)
    anchor = region.ops[0]
    inputs, outputs = flat_arguments(k, region)
    buffers = dict(zip(region.arguments, inputs, strict=True))
    finish = Finish(k, region, buffers, outputs, (image.batch * image.oh * image.ow, columns))
    rows = Rows(k, buffers[anchor.operands[0]], image, c.rows, c.m0 if c.window else None)
    weights = Panel(k, buffers[anchor.operands[1]], image.dtype, Matrix(0, 0, 1, columns), False, c.resident)
    dims = [
        Dim(image.batch, 1, Affine(), 1),
        Dim(image.oh, c.rows, Affine(), image.oh),
        Dim(columns, min(c.n0, columns), Affine(), columns),
        Dim(image.ow, c.m0 if c.window else image.ow, Affine(), image.ow),
    ]
    order = (0, 1, 3, 2) if c.rows_outer else (0, 2, 1, 3)
    loops = [d for d in order if dims[d].blocks > 1]
    joined = Joined(k, dims) if joins(image, columns, c) else None
    loops = joined.loops(loops) if joined else loops
    panel_depth = max((loops.index(d) for d in (0, 1, 3, 4) if d in loops), default=-1)

    def load(spot: Spot) -> None:
        if joined and spot.depth >= 0 and loops[spot.depth] == joined.number:
            joined.enter()
        if c.resident and weights.depth(loops) == spot.depth:
            weights.load(dims[:3], Affine(), spot.reached(image.depth), spot.slots, image.depth)
        if panel_depth == spot.depth and not c.stream:
            slots = min(spot.slots, c.slots)
            rows.load(dims[0].start, dims[1].start, replace(spot, slots=slots), left=dims[3].start)

    parts = (*with_windows(c.parts, dims[3], cores), c.parts[0] * c.parts[1])
    with open_tiles(k, dims, loops, cores, parts, load):
        levels = len(loops) + (not loops and cores > 1)
        with pixel_blocks(k, image, c, dims[1], dims[3]) as (pixel, count, inside):
            first = dims[0].start * (image.oh * image.ow) + pixel
            finish.place(Dim(image.batch * image.oh * image.ow, min(c.m0, c.rows * image.ow), first, count), dims[2])
            step = _Step(k, image, c, rows, weights, dims, rows.first(dims[1].start, pixel), count)
            stream = step.load if c.stream or not c.resident else None
            grid = image.grid(c.k1) if c.stream else None
            acc = contract(k, image.depth, c.k0, c.k1, stream, levels + inside, step, grid)
            finish.run(acc)
    return k.finish()


def with_windows(parts: Sequence[int], windows: Dim, cores: int) -> tuple[int, ...]:
    """Parts of images, rows and columns, and of windows of a row: these are shared out if nothing else is."""
    alone = windows.blocks > 1 and max(parts) == 1
    return (*parts, *(even_parts([windows.blocks], cores) if alone else (1,)))


class Pixels(Protocol):
    """What a schedule says of pixels: output rows of a panel, pixels of a tile, whether a panel is a window of one
    row."""

    @property
    def rows(self) -> int: ...
    @property
    def m0(self) -> int: ...
    @property
    def window(self) -> bool: ...


class pixel_blocks:  # noqa: N801  (used as a with statement)
    """The loop over the pixel blocks of a row panel: yields (first pixel in the image, pixels of the block, loops
    opened)."""

    def __init__(self, k: KernelBuilder, image: Image, c: Pixels, panel: Dim, window: Dim):
        self.k, self.image, self.m0, self.panel = k, image, c.m0, panel
        self.whole, self.window = c.rows * image.ow, window if c.window else None
        self.stack = ExitStack()

    def __enter__(self) -> tuple[Affine, Index, int]:
        ow = self.image.ow
        first = self.panel.start * ow
        if self.window:
            return first + self.window.start, self.window.extent, 0
        tail = self.image.oh % self.panel.tile != 0
        if self.whole <= self.m0:
            count: Index = self.k.clamp((self.image.oh - self.panel.start) * ow, self.whole) if tail else self.whole
            return first, count, 0
        bound = self.k.clamp((self.image.oh - self.panel.start) * ow, self.whole) if tail else self.whole
        index = self.stack.enter_context(self.k.loop(bound, step=self.m0))
        # A block ends with its panel, or with the image.
        if self.whole % self.m0 == 0 and not tail:
            count = self.m0
        elif self.whole % self.m0 == 0:
            count = self.k.clamp(self.image.oh * ow - first - index, self.m0)
        elif not tail:
            count = self.k.clamp(self.whole - index, self.m0)
        else:
            raise NotTileable(f"pixel blocks cut the panel or the image, not both (found {self.m0} of {self.whole})")
        return first + index, count, 1

    def __exit__(self, *error: object) -> None:
        self.stack.close()


@dataclass
class _Step:
    """One k0 step of a convolution."""

    k: KernelBuilder
    image: Image
    c: Cut
    rows: Rows
    weights: Panel
    dims: Sequence[Dim]
    """Batch, rows, columns, pixels of a row."""
    pixel: Affine
    count: Index
    start: Affine = field(default_factory=Affine)
    """The first k that the panel has."""

    def load(self, chunk: Chunk) -> None:
        """Loads what comes by chunks of k: the weights, the part of the panel."""
        if not self.c.resident:
            self.weights.load(self.dims[:3], chunk.first, chunk.count, 2, chunk.size)
        if self.c.stream:
            b, row, _, x = (dim.start for dim in self.dims[:4])
            self.rows.load_part(b, row, x, None, self.c.k1, chunk, self.c.slots)
            self.start = chunk.start

    @property
    def dtype(self) -> str:
        return self.image.dtype

    @property
    def shape(self) -> tuple[int, int]:
        return self.c.m0, up16(self.c.n0)

    @property
    def extents(self) -> tuple[Index, Index]:
        return self.count, self.dims[2].extent

    def __call__(self, acc: Buffer, position: Affine, count: Index, init: Index) -> None:
        m, n = self.extents
        width = self.shape[1]
        image = self.image
        a0 = self.k.alloc((self.c.m0, self.c.k0), image.dtype, "l0a", 2)
        b0 = self.k.alloc((self.c.k0, width), image.dtype, "l0b", 2)
        self.k.im2col(
            a0[0, 0],
            self.rows.patches(),
            (m, count),
            m0=self.pixel,
            k0=position - self.start,
            channels=self.rows.present,
            **self.rows.fields(),
        )
        self.k.feed_b(b0[0, 0], self.weights.at(position), (count, n))
        self.k.mma(acc[0, 0], a0[0, 0], b0[0, 0], (m, n, count), init)
