"""Convolutions over an image in channels-last layout: the panel of input rows stands in L1, patches are cut by
`im2col`.

for image, row panel (r output rows), column block n (in either order of the last two):
  load panel: the halo above (not for the first panel) and the rows from its first output row on
  for pixel block of the panel:
    for k0: im2col, feed b, mma
    drain, epilogue, store
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

from ...dialects import tile
from ...dialects.tile import SIZES
from ...dialects.tile.builder import Affine, Box, Buffer, Index, KernelBuilder
from ...runtime.target import Target
from .body import Dim, Machine, NotTileable, Region, first_fitting
from .contraction import SEGMENT, Finish, Product, Tiling, balanced16, contract, epilogue_cost, estimate
from .space import balanced, flat_arguments, on_first_core, open_tile


@dataclass(frozen=True)
class Image:
    """Geometry of a window over [batch, h, w, channels]: pads above, left (below and right follow from the output
    size)."""

    batch: int
    h: int
    w: int
    channels: int
    oh: int
    ow: int
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int]
    dtype: str

    @property
    def c0(self) -> int:
        """Channel block of the k order (docs/numerics.md §5)."""
        return 4 if self.channels <= 4 else 16

    @property
    def taps(self) -> int:
        return self.kernel[0] * self.kernel[1]

    @property
    def depth(self) -> int:
        """Length of k, padding included."""
        return -(-self.channels // self.c0) * self.c0 * self.taps

    @property
    def reach(self) -> int:
        """Input rows under one output row."""
        return (self.kernel[0] - 1) * self.dilations[0] + 1

    @property
    def least_rows(self) -> int:
        """Output rows of a panel at least, so that the halo of the second panel lies inside the image."""
        return max(1, -(-self.pads[0] // self.strides[0]))

    def panel_rows(self, rows: int) -> int:
        """Input rows of a panel of `rows` output rows."""
        return (rows - 1) * self.strides[0] + self.reach

    def two_bounds(self, rows: int, m0: int) -> bool:
        """Whether a block of m0 pixels would end with its panel or with the image, whichever comes first: no field has
        two bounds."""
        return m0 < rows * self.ow and rows * self.ow % m0 != 0 and self.oh % rows != 0

    def fields(self) -> dict[str, Index]:
        """The fields of `im2col` that do not move."""
        (kh, kw), (sh, sw), (dh, dw), (ph, pw) = self.kernel, self.strides, self.dilations, self.pads
        return {
            "ow": self.ow,
            "kh": kh,
            "kw": kw,
            "c0": self.c0,
            "sh": sh,
            "sw": sw,
            "dh": dh,
            "dw": dw,
            "ph": ph,
            "pw": pw,
            "h": self.h,
            "w": self.w,
        }


@dataclass(frozen=True)
class Cut:
    """Sizes of a convolution's tiles: output rows of a panel, pixels, columns, k; `resident`: all of K of a column
    block is in L1."""

    rows: int
    m0: int
    n0: int
    k0: int
    resident: bool
    rows_outer: bool = True


def tile_convolution(name: str, region: Region, image: Image, columns: int, machine: Machine) -> tile.KernelOp:
    """The kernel of a convolution (one group)."""
    target, cores = machine.target, machine.cores
    machine.need_cube(image.dtype)
    extra = epilogue_cost(region, target)
    ranked = sorted(
        _cuts(image, columns, target, cores), key=lambda c: _estimate(image, columns, c, target, cores, extra)
    )
    return first_fitting(
        (_build(name, region, image, columns, c, cores) for c in ranked),
        machine,
        "a panel of rows and the tiles of a convolution must fit on chip",
    )


def _cuts(image: Image, columns: int, target: Target, cores: int) -> Iterator[Cut]:
    es = SIZES[image.dtype]
    for rows in panel_heights(image):
        pixels = rows * image.ow
        for m in (512, 256, 128, 64, 32, 16):
            m0 = balanced16(pixels, m)
            if image.two_bounds(rows, m0):
                continue
            for n in (256, 128, 64, 32, 16):
                n0 = balanced16(columns, n)
                if (m > 16 and m >= 2 * m0) or (n > 16 and n >= 2 * n0) or 4 * m0 * n0 > target.l0c_bytes:
                    continue
                for k in (512, 256, 128, 64, 32, 16):
                    k0 = balanced16(image.depth, k) if image.depth <= SEGMENT else k
                    if (
                        (k > 16 and k >= 2 * k0)
                        or 2 * m0 * k0 * es > target.l0a_bytes
                        or 2 * n0 * k0 * es > target.l0b_bytes
                    ):
                        continue
                    for resident in (True, False):
                        for rows_outer in (True, False):
                            yield Cut(rows, m0, n0, k0, resident, rows_outer)


def panel_heights(image: Image) -> list[int]:
    """Candidate numbers of output rows of a panel, large ones first; no panel begins in the padding below."""
    heights = {
        balanced(image.oh, max(1, image.oh // parts)) for parts in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
    } | {1}
    inside = (h for h in heights if (-(-image.oh // h) - 1) * h * image.strides[0] <= image.h)
    return sorted((h for h in inside if h >= min(image.least_rows, image.oh)), reverse=True)


def _estimate(image: Image, columns: int, c: Cut, target: Target, cores: int, extra: float) -> float:
    """The estimate of a product of the same size, plus the traffic of overlapping panels."""
    panels = -(-image.oh // c.rows)
    blocks = panels * -(-c.rows * image.ow // c.m0)
    product = Product(image.batch, blocks * c.m0, columns, image.depth, True, False, image.dtype)
    tiling = Tiling(c.m0, c.n0, c.k0, c.k0, c.rows_outer, True, c.resident)
    nn = 1 if c.rows_outer else -(-columns // c.n0)
    es = SIZES[image.dtype]
    bandwidth = min(target.gm_path, target.gm_port / cores)
    real = image.batch * nn * panels * image.panel_rows(c.rows) * image.w * image.channels * es / bandwidth / cores
    assumed = image.batch * blocks * c.m0 * image.depth * es / bandwidth / cores
    first = min(image.h, image.panel_rows(c.rows)) * image.w * image.channels * es / bandwidth
    outer = panels if c.rows_outer else -(-columns // c.n0)
    idle = -(-outer // cores) * cores / outer
    return (estimate(product, tiling, target, cores, extra) + max(0, real - assumed)) * idle + first


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

    def load(self, b: Affine, first: Affine, slots: int, block: Dim | None = None) -> None:
        """Loads the input rows under output rows [first, first + rows) of image b; channels of `block`, or all."""
        image = self.image
        line = image.w * image.channels
        above, step = image.pads[0], image.strides[0]
        height = image.panel_rows(self.rows)
        self.buffer = self.k.alloc((height, image.w, self.width), image.dtype, "l1", slots)
        base = b * (image.h * line) + (block.start if block else 0)
        if above and self.rows < image.oh:
            self._copy(0, base + (first * step - above) * line, self.k.clamp(first * step, above), block)
        below = min(height - above, image.h)
        count = self.k.clamp(image.h - first * step, below) if first.terms else below
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
    weights = _Weights(k, buffers[anchor.operands[1]], image, columns)
    dims = [
        Dim(image.batch, 1, Affine(), 1),
        Dim(image.oh, c.rows, Affine(), image.oh),
        Dim(columns, min(c.n0, columns), Affine(), columns),
    ]
    loops = [d for d in ([0, 1, 2] if c.rows_outer else [0, 2, 1]) if dims[d].blocks > 1]
    with ExitStack() as stack:
        if not loops and cores > 1:
            stack.enter_context(on_first_core(k))
        for depth in range(-1, len(loops)):
            if depth >= 0:
                stack.enter_context(open_tile(k, dims, loops[depth], cores if depth == 0 else 1))
            if max((loops.index(d) for d in (0, 1) if d in loops), default=-1) == depth:
                rows.load(dims[0].start, dims[1].start, 2 if depth >= 0 else 1)
            if c.resident and (loops.index(2) if 2 in loops else -1) == depth:
                weights.load(dims[2], Affine(), image.depth, 2 if depth >= 0 else 1, image.depth)
        levels = len(loops) + (not loops and cores > 1)
        with pixel_blocks(k, image, c.rows, c.m0, dims[1]) as (pixel, count, inside):
            first = dims[0].start * (image.oh * image.ow) + pixel
            finish.place(Dim(image.batch * image.oh * image.ow, min(c.m0, c.rows * image.ow), first, count), dims[2])
            step = _Step(k, image, c, rows, weights, dims[2], pixel, count)

            def stream(first: Affine, count: Index, chunk: int) -> None:
                weights.load(dims[2], first, count, 2, chunk)

            acc = contract(k, image.depth, c.k0, c.k0, None if c.resident else stream, levels + inside, step)
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
class _Weights:
    """Packed weights [K, columns] in L1: all of K of a column block, or a chunk of it."""

    k: KernelBuilder
    source: Buffer
    image: Image
    columns: int
    box: Box | None = None
    first: Affine = field(default_factory=Affine)

    def load(self, dim: Dim, first: Affine, count: Index, slots: int, depth: int) -> None:
        """Loads k in [first, first + count), at most `depth` long."""
        width = -(-dim.tile // 16) * 16
        buffer = self.k.alloc((depth, width), self.image.dtype, "l1", slots)
        self.k.load(
            buffer[0, 0], self.source.box(first * self.columns + dim.start, self.columns, 1), (count, dim.extent)
        )
        self.box, self.first = buffer[0, 0], first


@dataclass
class _Step:
    """One k0 step of a convolution."""

    k: KernelBuilder
    image: Image
    c: Cut
    rows: Rows
    weights: _Weights
    dim: Dim
    pixel: Affine
    count: Index

    @property
    def dtype(self) -> str:
        return self.image.dtype

    @property
    def shape(self) -> tuple[int, int]:
        return self.c.m0, -(-self.c.n0 // 16) * 16

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
        assert self.weights.box is not None
        inside = position - self.weights.first
        self.k.feed_b(b0[0, 0], Box(self.weights.box.buffer, inside * width, (width, 1)), (count, n))
        self.k.mma(acc[0, 0], a0[0, 0], b0[0, 0], (m, n, count), init)
