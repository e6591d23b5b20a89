"""Convolutions over an image in channels-last layout: the panel of input rows stands in L1, patches are cut by
`im2col`.

for image, row panel (r output rows), column block n (in either order of the last two):
  load panel: the halo above (not for the first panel) and the rows from its first output row on
  for pixel block of the panel:
    for k0: im2col, feed b, mma
    drain, epilogue, store
"""

from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from ...dialects import tile
from ...dialects.tile.builder import Affine, Box, Buffer, Index, KernelBuilder
from .body import Dim, Machine, NotTileable, Region, first_fitting
from .contraction import Finish, Panel, contract, epilogue_of
from .convolution import Cut, schedules
from .geometry import Image
from .product import Matrix
from .space import Spot, flat_arguments, open_tiles, up16


def tile_convolution(name: str, region: Region, image: Image, columns: int, machine: Machine) -> tile.KernelOp:
    """The kernel of a convolution (one group); the best schedule whose buffers fit."""
    target, cores = machine.target, machine.cores
    machine.need_cube(image.dtype)
    found = schedules(image, columns, target, cores, epilogue_of(region, target))
    return first_fitting(
        (_build(name, region, image, columns, c, cores) for c in found),
        machine,
        "a panel of rows and the tiles of a convolution must fit on chip",
    )


# emission -------------------------------------------------------------------------------------------------------------
@dataclass
class Rows:
    """The panel of input rows in L1 for the current row panel: all channels, or a block of them."""

    k: KernelBuilder
    source: Buffer
    image: Image
    rows: int
    width: int
    """Channels of the panel."""
    buffer: Buffer | None = None
    row0: Affine = field(default_factory=Affine)

    def load(self, b: Affine, first: Affine, spot: Spot, block: Dim | None = None) -> None:
        """Loads the input rows under output rows [first, first + rows) of image b; channels of `block`, or all."""
        image = self.image
        line = image.w * image.channels
        above, step = image.pads[0], image.strides[0]
        height = image.panel_rows(self.rows)
        self.buffer = self.k.alloc((height, image.w, self.width), image.dtype, "l1", spot.slots)
        base = b * (image.h * line) + (block.start if block else 0)
        if above and self.rows < image.oh:
            self._copy(0, base + (first * step - above) * line, self.k.clamp(first * step, above), block)
        below = min(height - above, image.h)
        count = (
            self.k.clamp(image.h - first * step, below)
            if first.terms
            else below
            if spot is None
            else spot.reached(below)
        )
        self._copy(above, base + first * step * line, count, block)
        self.row0 = first * step - above

    def _copy(self, row: int, place: Affine, count: Index, block: Dim | None) -> None:
        image, pixel = self.image, self.image.channels
        assert self.buffer is not None
        if self.width == pixel:
            line = image.w * pixel
            self.k.load(self.buffer.box(row * line, line, 1), self.source.box(place, line, 1), (count, line))
            return
        assert block is not None
        self.k.load(
            self.buffer[row, 0, 0], self.source.box(place, image.w * pixel, pixel, 1), (count, image.w, block.extent)
        )

    def patches(self, channel: Affine | int = 0) -> Box:
        """The panel as `im2col` reads it, from a channel of the panel on."""
        assert self.buffer is not None
        return self.buffer.box(channel, self.image.w * self.width, self.width, 1)


def _build(name: str, region: Region, image: Image, columns: int, c: Cut, cores: int) -> tile.KernelOp:
    k = KernelBuilder(name)
    anchor = region.ops[0]
    inputs, outputs = flat_arguments(k, region)
    buffers = dict(zip(region.arguments, inputs, strict=True))
    finish = Finish(k, region, buffers, outputs, (image.batch * image.oh * image.ow, columns))
    rows = Rows(k, buffers[anchor.operands[0]], image, c.rows, image.channels)
    weights = Panel(k, buffers[anchor.operands[1]], image.dtype, Matrix(0, 0, 1, columns), False, c.resident)
    dims = [
        Dim(image.batch, 1, Affine(), 1),
        Dim(image.oh, c.rows, Affine(), image.oh),
        Dim(columns, min(c.n0, columns), Affine(), columns),
    ]
    loops = [d for d in ([0, 1, 2] if c.rows_outer else [0, 2, 1]) if dims[d].blocks > 1]
    panel_depth = max((loops.index(d) for d in (0, 1) if d in loops), default=-1)

    def load(spot: Spot) -> None:
        if c.resident and weights.depth(loops) == spot.depth:
            weights.load(dims, Affine(), spot.reached(image.depth), spot.slots, image.depth)
        if panel_depth == spot.depth:
            rows.load(dims[0].start, dims[1].start, replace(spot, slots=min(spot.slots, c.slots)))

    with open_tiles(k, dims, loops, cores, c.parts, load):
        levels = len(loops) + (not loops and cores > 1)
        with pixel_blocks(k, image, c.rows, c.m0, dims[1]) as (pixel, count, inside):
            first = dims[0].start * (image.oh * image.ow) + pixel
            finish.place(Dim(image.batch * image.oh * image.ow, min(c.m0, c.rows * image.ow), first, count), dims[2])
            step = _Step(k, image, c, rows, weights, dims[2], pixel, count)

            def stream(first: Affine, count: Index, chunk: int) -> None:
                weights.load(dims, first, count, 2, chunk)

            acc = contract(k, image.depth, c.k0, c.k1, None if c.resident else stream, levels + inside, step)
            finish.run(acc)
    return k.finish()


class pixel_blocks:  # noqa: N801  (used as a with statement)
    """The loop over the pixel blocks of a row panel: yields (first pixel in the image, pixels of the block, loops
    opened)."""

    def __init__(self, k: KernelBuilder, image: Image, rows: int, m0: int, panel: Dim):
        self.k, self.image, self.m0, self.panel = k, image, m0, panel
        self.whole = rows * image.ow
        self.stack = ExitStack()

    def __enter__(self) -> tuple[Affine, Index, int]:
        ow = self.image.ow
        first = self.panel.start * ow
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
            raise NotTileable(f"pixel blocks of {self.m0} cut both the panel of {self.whole} pixels and the image")
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
    dim: Dim
    pixel: Affine
    count: Index

    @property
    def dtype(self) -> str:
        return self.image.dtype

    @property
    def shape(self) -> tuple[int, int]:
        return self.c.m0, up16(self.c.n0)

    @property
    def extents(self) -> tuple[Index, Index]:
        return self.count, self.dim.extent

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
            k0=position,
            channels=image.channels,
            row0=self.rows.row0,
            **image.fields(),
        )
        self.k.feed_b(b0[0, 0], self.weights.at(position), (count, n))
        self.k.mma(acc[0, 0], a0[0, 0], b0[0, 0], (m, n, count), init)
