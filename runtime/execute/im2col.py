"""Patches of an image as rows of the left operand.

The columns of a patch are cut once into *runs*: contiguous channels of one tap. A pixel whose patch lies inside the
image then is a copy for each run, at an offset from the pixel that all pixels share; others check each tap.
"""

from .. import isa
from ..jit import inline, kernel
from ..numerics.bits import bits_f32, f32, i32, load_i32, load_i64, store_i32, store_i64
from .core import L0A, L1, OK, SCRATCH, bad_value, box5, element_size, image, memory, positions, rows
from .feeds import LAST_OPERAND, no_operand, widen_run
from .lanes import widen4, widen16

IM2COL = positions("im2col")
I8 = isa.DTYPES["i8"]

# A run in the scratch memory, in words.
COLUMN, DOWN, ACROSS, OFFSET, CHANNELS, WIDTH, RUN_WORDS = 0, 1, 2, 3, 4, 5, 6
"""First column · tap row and column from the pixel on · bytes from the pixel on · channels that are there · columns."""


@inline
def cut_runs(record: int, runs: int, size: int) -> int:
    """Writes the runs of columns k0 … k0 + k; their number."""
    k, k0, c0, channels = (
        load_i64(record, IM2COL.k),
        load_i64(record, IM2COL.k0),
        load_i64(record, IM2COL.c0),
        load_i64(record, IM2COL.channels),
    )
    kh, kw, dh, dw = (
        load_i64(record, IM2COL.kh),
        load_i64(record, IM2COL.kw),
        load_i64(record, IM2COL.dh),
        load_i64(record, IM2COL.dw),
    )
    row, pixel = load_i64(record, IM2COL.row), load_i64(record, IM2COL.pixel)
    count, column = 0, 0
    while column < k:
        at = k0 + column
        block, c = at // c0, at % c0
        width = c0 - c
        if kh * kw == 1:  # neighbouring blocks are neighbours in memory as well
            width = k
        width = min(width, k - column)
        tap = block % (kh * kw)
        channel = block // (kh * kw) * c0 + c
        down, across = tap // kw * dh, tap % kw * dw
        run = runs + 8 * RUN_WORDS * count
        store_i64(run, COLUMN, column)
        store_i64(run, DOWN, down)
        store_i64(run, ACROSS, across)
        store_i64(run, OFFSET, down * row + across * pixel + channel * size)
        store_i64(run, CHANNELS, max(0, min(width, channels - channel)))
        store_i64(run, WIDTH, width)
        count += 1
        column += width
    return count


@inline
def put(dtype: int, target: int, source: int, size: int, channels: int, width: int) -> None:
    """`channels` elements, then zeros up to `width`."""
    if channels == 16:
        widen16(dtype, target, source)
    elif channels == 4:
        widen4(dtype, target, source)
    else:
        widen_run(dtype, target, source, size, channels)
    for c in range(channels, width):
        store_i32(target, c, 0)


@kernel
def patch(dtype: int, target: int, source: int, size: int, runs: int, count: int) -> None:
    """A row whose taps all lie inside."""
    for r in range(count):
        run = runs + 8 * RUN_WORDS * r
        put(
            dtype,
            target + 4 * load_i64(run, COLUMN),
            source + load_i64(run, OFFSET),
            size,
            load_i64(run, CHANNELS),
            load_i64(run, WIDTH),
        )


@kernel
def border_patch(
    dtype: int,
    target: int,
    source: int,
    size: int,
    runs: int,
    count: int,
    top: int,
    left: int,
    h: int,
    w: int,
    pad: int,
) -> None:
    """A row whose first tap stands at (top, left); taps outside the h × w image read `pad`."""
    for r in range(count):
        run = runs + 8 * RUN_WORDS * r
        y, x = top + load_i64(run, DOWN), left + load_i64(run, ACROSS)
        column, channels, width = load_i64(run, COLUMN), load_i64(run, CHANNELS), load_i64(run, WIDTH)
        if 0 <= y < h and 0 <= x < w:
            put(dtype, target + 4 * column, source + load_i64(run, OFFSET), size, channels, width)
            continue
        for c in range(width):
            store_i32(target, column + c, pad if c < channels else 0)


@inline
def bad_geometry(record: int, core: int) -> int:
    """Checks the fields that divide or count."""
    for field in (IM2COL.ow, IM2COL.kh, IM2COL.kw, IM2COL.sh, IM2COL.sw, IM2COL.dh, IM2COL.dw):
        if load_i64(record, field) < 1 or load_i64(record, field) > 1 << 30:
            return bad_value(core, record, field, 1, 1 << 30)
    for field in (IM2COL.m0, IM2COL.k0, IM2COL.channels, IM2COL.ph, IM2COL.pw, IM2COL.h, IM2COL.w):
        if load_i64(record, field) < 0 or load_i64(record, field) > 1 << 30:
            return bad_value(core, record, field, 0, 1 << 30)
    c0 = load_i64(record, IM2COL.c0)
    if c0 != 4 and c0 != 16:
        return bad_value(core, record, IM2COL.c0, 4, 16)
    if no_operand(load_i64(record, IM2COL.dtype)):
        return bad_value(core, record, IM2COL.dtype, 0, LAST_OPERAND)
    return OK


@inline
def check(record: int, core: int, size: int) -> int:
    """Footprints: the image rows that the pixels can touch, in whole, and the rows of L0A."""
    m, m0, ow, sh = (
        load_i64(record, IM2COL.m),
        load_i64(record, IM2COL.m0),
        load_i64(record, IM2COL.ow),
        load_i64(record, IM2COL.sh),
    )
    ph, h, row = load_i64(record, IM2COL.ph), load_i64(record, IM2COL.h), load_i64(record, IM2COL.row)
    first = max(0, m0 // ow * sh - ph)
    bottom = (m0 + m - 1) // ow * sh - ph + (load_i64(record, IM2COL.kh) - 1) * load_i64(record, IM2COL.dh)
    count, w = min(h, bottom + 1) - first, load_i64(record, IM2COL.w)
    channels = load_i64(record, IM2COL.channels)
    status = OK
    if count > 0 and w > 0 and channels > 0:
        src = load_i64(record, IM2COL.src) + (first - load_i64(record, IM2COL.row0)) * row
        pixel = load_i64(record, IM2COL.pixel)
        status = box5(core, L1, 0, IM2COL.src, src, size, channels * size, count, row, w, pixel, 1, 0, 1, 0, 1, 0)
    if status == OK:
        k, ld = load_i64(record, IM2COL.k), load_i64(record, IM2COL.ld)
        status = rows(core, L0A, 1, IM2COL.dst, load_i64(record, IM2COL.dst), size, k * size, m, ld * size)
    return status


@inline
def padding(record: int, dtype: int) -> int:
    """The word that stands outside the image: `pad` as f32, or as an integer for an integer type."""
    bits = load_i32(record + 8 * IM2COL.pad, 0)
    if dtype < I8:
        return bits
    value = bits_f32(i32(bits))
    return i32(value) if value > f32(-256.0) and value < f32(256.0) else i32(0)


@kernel
def im2col(record: int, core: int) -> int:
    """Patches of an image in L1 to L0A."""
    status = bad_geometry(record, core)
    if status != OK:
        return status
    dtype = load_i64(record, IM2COL.dtype)
    size = element_size(dtype)
    status = check(record, core, size)
    if status != OK:
        return status
    runs = load_i64(core, SCRATCH)
    count = cut_runs(record, runs, size)
    row, pixel = load_i64(record, IM2COL.row), load_i64(record, IM2COL.pixel)
    sh, sw, ph, pw = (
        load_i64(record, IM2COL.sh),
        load_i64(record, IM2COL.sw),
        load_i64(record, IM2COL.ph),
        load_i64(record, IM2COL.pw),
    )
    h, w, ow, m0 = (
        load_i64(record, IM2COL.h),
        load_i64(record, IM2COL.w),
        load_i64(record, IM2COL.ow),
        load_i64(record, IM2COL.m0),
    )
    reach_down = (load_i64(record, IM2COL.kh) - 1) * load_i64(record, IM2COL.dh)
    reach_across = (load_i64(record, IM2COL.kw) - 1) * load_i64(record, IM2COL.dw)
    pad, ld = padding(record, dtype), 4 * load_i64(record, IM2COL.ld)
    target = image(core, L0A, load_i64(record, IM2COL.dst), size)
    panel = memory(core, L1, load_i64(record, IM2COL.src)) - load_i64(record, IM2COL.row0) * row
    oy, ox = m0 // ow, m0 % ow
    for _ in range(load_i64(record, IM2COL.m)):
        top, left = oy * sh - ph, ox * sw - pw
        source = panel + top * row + left * pixel
        if top >= 0 and left >= 0 and top + reach_down < h and left + reach_across < w:
            patch(dtype, target, source, size, runs, count)
        else:
            border_patch(dtype, target, source, size, runs, count, top, left, h, w, pad)
        target += ld
        ox += 1
        if ox == ow:
            oy, ox = oy + 1, 0
    return OK
