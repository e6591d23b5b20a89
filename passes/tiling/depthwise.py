"""Depthwise convolutions: each channel meets only its own taps, 16 channels at a time.

load the weights, feed them
for image, row panel or window of a row, channel block n:
  load panel (rows × width × n)
  for pixel block:
    for each few groups of 16 channels: im2col of all taps, mma_dw
    drain, epilogue, store

Weights that are too many for L0B are fed with each step; taps that are too many for L0A come in runs. Panels and
weights that are too large for L1 come with each group, for some rows of the kernel at a time.
"""

from collections.abc import Sequence
from dataclasses import replace

from ...dialects import tile
from ...dialects.tile.builder import Affine, Buffer, Index, KernelBuilder
from .body import Dim, Machine, Region, first_fitting
from .contraction import Finish, epilogue_of, maybe_loop, upto
from .depthwise_space import GROUP, Cut, DepthwiseForm
from .geometry import Image
from .image import Rows, pixel_blocks, with_windows
from .space import Spot, flat_arguments, open_tiles


def tile_depthwise(name: str, region: Region, image: Image, machine: Machine) -> tile.KernelOp:
    """The kernel of a depthwise convolution; the best schedule whose buffers fit."""
    target, cores, image = machine.target, machine.cores, image.upright()
    machine.need_cube(image.dtype)
    found = DepthwiseForm(target, cores, epilogue_of(region), image).schedules()
    return first_fitting(
        (_build(name, region, image, c, cores) for c in found),
        machine,
        "a panel of rows and the tiles of a depthwise convolution must fit on chip",
    )


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
        Dim(image.ow, c.m0 if c.window else image.ow, Affine(), image.ow),
    ]
    rows = Rows(k, buffers[anchor.operands[0]], image, c.rows, c.m0 if c.window else None)
    loops = [d for d in (0, 1, 3, 2) if dims[d].blocks > 1]
    weights: list[Buffer] = []

    def load(spot: Spot) -> None:
        if c.down:
            return
        if spot.depth < 0:
            weights.append(_weights(k, image, buffers[anchor.operands[1]], c.resident, spot))
        if spot.depth == len(loops) - 1:
            rows.load(dims[0].start, dims[1].start, spot, dims[2], dims[3].start)

    opened = open_tiles(k, dims, loops, cores, with_windows(c.parts, dims[3], cores), load)
    with opened, pixel_blocks(k, image, c, dims[1], dims[3]) as (pixel, count, _):
        first = dims[0].start * (image.oh * image.ow) + pixel
        finish.place(Dim(pixels, min(c.m0, c.rows * image.ow), first, count), dims[2])
        place = rows.first(dims[1].start, pixel)
        if c.down:
            finish.run(_by_rows(k, image, c, rows, buffers[anchor.operands[1]], dims, place, count))
        else:
            finish.run(_taps(k, image, c, rows, weights[0], dims[2], place, count))
    return k.finish()


def _weights(k: KernelBuilder, image: Image, source: Buffer, resident: bool, spot: Spot) -> Buffer:
    """All weights in L1, or in L0B if they are to be resident."""
    groups = -(-image.channels // GROUP) * image.taps
    weights = k.alloc((groups * GROUP,), image.dtype, "l1")
    k.load(weights[0], source.box(0, 1), (spot.reached(groups * GROUP),))
    if not resident:
        return weights
    b0 = k.alloc((groups, GROUP), image.dtype, "l0b")
    k.feed_b(b0[0, 0], weights.box(0, GROUP, 1), (spot.reached(groups), GROUP))
    return b0


def _taps(
    k: KernelBuilder, image: Image, c: Cut, rows: Rows, weights: Buffer, block: Dim, pixel: Affine, count: Index
) -> Buffer:
    """Multiplies a few groups of channels at a time; returns the accumulator of the tile."""
    width, most, channels = c.n0 // GROUP, c.g0 // GROUP, image.channels
    acc = k.alloc((c.m0, c.n0), "f32", "l0c", 2)
    fields = rows.fields() | {"c0": GROUP}
    # Steps end with their tile; where they do not all fit, tiles are whole and the loop counts groups.
    even, last = c.even(image), -(-min(c.n0, channels) // GROUP)
    bound, step, scale = (block.extent, c.g0, 1) if even else (last, most, GROUP)
    with maybe_loop(k, bound, step) as index, maybe_loop(k, image.taps, c.taps) as tap:
        inside = index * scale
        channel = block.start + inside
        taps = upto(k, image.taps, tap, c.taps)

        def part(size: int) -> Index:
            """How much of a step is there, `size` for each run of its taps or each of its groups."""
            if c.taps < image.taps:
                return upto(k, image.taps * size, tap * size, c.taps * size)
            if even:
                return most * image.taps * size
            return upto(k, last * image.taps * size, index * (image.taps * size), most * image.taps * size)

        a0 = k.alloc((c.m0, most * c.taps * GROUP), image.dtype, "l0a", 2)
        if c.resident:
            b0 = weights.box(channel * image.taps + tap * GROUP, 1)
        else:
            buffer = k.alloc((most * c.taps, GROUP), image.dtype, "l0b", 2)
            k.feed_b(buffer[0, 0], weights.box(channel * image.taps + tap * GROUP, GROUP, 1), (part(1), GROUP))
            b0 = buffer.box(0, 1)
        cut = not even and width * GROUP < channels
        present = k.clamp(c.n0 - inside if cut else channels - channel, c.g0)
        moving = {"m0": pixel, "k0": tap * GROUP, "channels": present}
        k.im2col(a0[0, 0], rows.patches(inside), (count, part(GROUP)), **moving, **fields)
        groups = most if even else upto(k, last, index, most)
        k.mma_dw(acc.box(inside, c.n0, 1), a0[0, 0], b0, (count, groups, taps), k.clamp(1 - tap, 1))
    return acc


def _by_rows(
    k: KernelBuilder, image: Image, c: Cut, rows: Rows, source: Buffer, dims: Sequence[Dim], pixel: Affine, count: Index
) -> Buffer:
    """Multiplies group by group, by some rows of the kernel at a time, which come with what they see of the image;
    returns the accumulator of the tile."""
    width, channels, block = image.kernel[1], image.channels, dims[2]
    acc = k.alloc((c.m0, c.n0), "f32", "l0c", 2)
    run, size = c.down * width, min(GROUP, channels)
    part = replace(image, channels=size, kernel=(c.down, width))
    with maybe_loop(k, block.extent, GROUP) as inside, maybe_loop(k, image.kernel[0], c.down) as y:
        channel, first = block.start + inside, y * width
        there = k.clamp(channels - channel, size) if channel.terms else size
        group = Dim(channels, size, channel, there)
        rows.load_rows(dims[0].start, dims[1].start, dims[3].start, 2, group, part, y * image.dilations[0])
        weights = k.alloc((run, GROUP), image.dtype, "l1", 2)
        taps = upto(k, image.taps, first, run)
        loaded = upto(k, image.taps * GROUP, first * GROUP, run * GROUP)
        k.load(weights.box(0, 1), source.box(channel * image.taps + first * GROUP, 1), (loaded,))
        with maybe_loop(k, taps, c.taps) as tap:

            def step(each: int, tap: Affine = tap, first: Affine = first) -> Index:
                """Taps of the step, `each` for one."""
                return upto(k, image.taps * each, (first + tap) * each, c.taps * each)

            a0 = k.alloc((c.m0, c.taps * GROUP), image.dtype, "l0a", 2)
            b0 = k.alloc((c.taps, GROUP), image.dtype, "l0b", 2)
            k.feed_b(b0[0, 0], weights.box(tap * GROUP, GROUP, 1), (step(1), GROUP))
            fields = rows.fields() | {"c0": GROUP, "m0": pixel, "k0": tap * GROUP, "channels": rows.present}
            k.im2col(a0[0, 0], rows.patches(), (count, step(GROUP)), **fields)
            done = first + tap
            init = k.clamp(1 - done, 1) if done.terms else 1
            k.mma_dw(acc.box(inside, c.n0, 1), a0[0, 0], b0.box(0, 1), (count, 1, step(1)), init)
    return acc
