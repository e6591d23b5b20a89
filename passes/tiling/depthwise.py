"""Depthwise convolutions: each channel meets only its own taps, 16 channels at a time.

for image, row panel, channel block n:
  load panel (rows × width × n)
  for pixel block:
    for each 16 channels: for each run of taps: im2col, feed b, mma_dw
    drain, epilogue, store
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from ...dialects import tile
from ...dialects.tile import SIZES
from ...dialects.tile.builder import Affine, Buffer, Index, KernelBuilder
from ...runtime.expr import LEVELS
from ...runtime.target import Target
from .body import Dim, Machine, Region, first_fitting
from .contraction import Finish, maybe_loop, upto
from .geometry import Image, panel_heights
from .image import Rows, pixel_blocks
from .space import balanced, balanced16, flat_arguments, on_first_core, open_tile

GROUP = 16
"""Channels that one `mma_dw` block takes."""


@dataclass(frozen=True)
class Cut:
    """Output rows of a panel; pixels and channels of a tile; taps of a step."""

    rows: int
    m0: int
    n0: int
    taps: int


def tile_depthwise(name: str, region: Region, image: Image, machine: Machine) -> tile.KernelOp:
    """The kernel of a depthwise convolution; the best cut by estimate whose buffers fit."""
    target, cores = machine.target, machine.cores
    machine.need_cube(image.dtype)
    cuts = sorted(_cuts(image, target, cores), key=lambda c: _estimate(image, c, target, cores))
    return first_fitting(
        (_build(name, region, image, c, cores) for c in cuts),
        machine,
        "a panel of rows and the tiles of a depthwise convolution must fit on chip",
    )


def _cuts(image: Image, target: Target, cores: int) -> Iterator[Cut]:
    """Cuts whose tiles fit L0 twice and whose panel fits L1 twice."""
    es = SIZES[image.dtype]
    runs = sorted({balanced(image.taps, -(-image.taps // parts)) for parts in range(1, image.taps + 1)}, reverse=True)
    for rows in panel_heights(image):
        for n in (256, 128, 64, 32, 16):
            n0 = balanced16(image.channels, n)
            panel = image.panel_rows(rows) * image.w * min(n0, image.channels) * es
            if (n > 16 and n >= 2 * n0) or 2 * panel > target.l1_bytes:
                continue
            for m in (256, 128, 64, 48, 32, 16):
                m0 = balanced16(rows * image.ow, m)
                if (m > 16 and m >= 2 * m0) or 8 * m0 * n0 > target.l0c_bytes or image.two_bounds(rows, m0):
                    continue
                levels = [image.batch > 1, rows < image.oh, n0 < image.channels, m0 < rows * image.ow, True]
                fitting = [taps for taps in runs if 2 * m0 * taps * GROUP * es <= target.l0a_bytes]
                if fitting and sum(levels) + (fitting[0] < image.taps) <= LEVELS:
                    yield Cut(rows, m0, n0, fitting[0])


def _estimate(image: Image, c: Cut, target: Target, cores: int) -> float:
    """Cycles of the busiest core: the busiest engine, plus the first load and the last tile's way out."""
    es = SIZES[image.dtype]
    outer = image.batch * -(-image.oh // c.rows)
    blocks = -(-image.channels // c.n0)
    share = -(-outer // cores) if outer > 1 else -(-blocks // cores) / blocks
    pixels, steps = -(-c.rows * image.ow // c.m0), -(-image.taps // c.taps)
    groups = pixels * -(-image.channels // GROUP)
    cost = target.cube_cost_f32 if image.dtype == "f32" else 1
    cube = groups * (-(-c.m0 // target.cube_m) * image.taps * cost + steps * target.fixed_mma)
    feed = groups * (
        image.taps * GROUP * es * (c.m0 / target.feed_a_bytes + 1 / target.feed_b_bytes) + 2 * steps * target.fixed_feed
    )
    tiles = pixels * blocks
    drain = tiles * (c.m0 * c.n0 / target.drain_elements + target.fixed_drain)
    bandwidth = min(target.gm_path, target.gm_port / cores)
    load = image.panel_rows(c.rows) * image.w * image.channels * es / bandwidth + 2 * blocks * target.fixed_load
    store = tiles * (c.m0 * c.n0 * es / bandwidth + target.fixed_store)
    return share * max(cube, feed, drain, load + store) + load / blocks + (drain + store) / tiles


def _build(name: str, region: Region, image: Image, c: Cut, cores: int) -> tile.KernelOp:
    k = KernelBuilder(name)
    anchor = region.ops[0]
    inputs, outputs = flat_arguments(k, region)
    buffers = dict(zip(region.arguments, inputs, strict=True))
    pixels = image.batch * image.oh * image.ow
    finish = Finish(k, region, buffers, outputs, (pixels, image.channels))
    dims = [
        Dim(image.batch, 1, Affine(), 1),
        Dim(image.oh, c.rows, Affine(), image.oh),
        Dim(image.channels, min(c.n0, image.channels), Affine(), image.channels),
    ]
    rows = Rows(k, buffers[anchor.operands[0]], image, c.rows, dims[2].tile)
    loops = [d for d in (0, 1, 2) if dims[d].blocks > 1]
    length = -(-image.channels // GROUP) * image.taps * GROUP
    with ExitStack() as stack:
        if not loops and cores > 1:
            stack.enter_context(on_first_core(k))
        weights = k.alloc((length,), image.dtype, "l1")
        k.load(weights[0], buffers[anchor.operands[1]].box(0, 1), (length,))
        for depth, d in enumerate(loops):
            stack.enter_context(open_tile(k, dims, d, cores if depth == 0 else 1))
        rows.load(dims[0].start, dims[1].start, 2 if loops else 1, dims[2])
        with pixel_blocks(k, image, c.rows, c.m0, dims[1]) as (pixel, count, _):
            first = dims[0].start * (image.oh * image.ow) + pixel
            finish.place(Dim(pixels, min(c.m0, c.rows * image.ow), first, count), dims[2])
            finish.run(_taps(k, image, c, rows, weights, dims[2], pixel, count))
    return k.finish()


def _taps(
    k: KernelBuilder, image: Image, c: Cut, rows: Rows, weights: Buffer, block: Dim, pixel: Affine, count: Index
) -> Buffer:
    """Multiplies 16 channels at a time; returns the accumulator of the tile."""
    width, span = -(-c.n0 // GROUP) * GROUP, c.taps * GROUP
    acc = k.alloc((c.m0, width), "f32", "l0c", 2)
    fields = image.fields() | {"c0": GROUP}
    with k.loop(block.extent, step=GROUP) as g:
        channel = block.start + g
        with maybe_loop(k, image.taps, c.taps) as tap:
            taps = upto(k, image.taps, tap, c.taps)
            columns = upto(k, image.taps * GROUP, tap * GROUP, span)
            a0 = k.alloc((c.m0, span), image.dtype, "l0a", 2)
            b0 = k.alloc((1, span), image.dtype, "l0b", 2)
            place = weights.box(channel * image.taps + tap * GROUP, span, 1)
            present = k.clamp(image.channels - channel, GROUP)
            moving = {"m0": pixel, "k0": tap * GROUP, "channels": present, "row0": rows.row0}
            k.im2col(a0[0, 0], rows.patches(g), (count, columns), **moving, **fields)
            k.feed_b(b0[0, 0], place, (1, columns))
            k.mma_dw(acc.box(g, width, 1), a0[0, 0], b0.box(0, 1), (count, 1, taps), k.clamp(1 - tap, 1))
    return acc
