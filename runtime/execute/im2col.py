"""Patches of an image as rows of the left operand.

The columns of a patch are cut into *runs*: contiguous channels of one tap. The pixels of an output row whose tap lies
inside the image are neighbours, so that a run of theirs is a box with strides; the others get the fill value.
"""

from .. import isa
from ..jit import inline, kernel
from ..numerics.bits import bits_f32, f32, i32, load_i32, load_i64, store_i32
from .core import L0A, L1, OK, SCRATCH, bad_value, box5, element_size, image, memory, positions, rows
from .feeds import LANES, LAST_OPERAND, no_operand, widen_rows
from .lanes import widen_line

IM2COL = positions("im2col")
F32, I8 = isa.DTYPES["f32"], isa.DTYPES["i8"]


@inline
def set_rows(target: int, ld: int, words: int, m: int, n: int) -> None:
    """Each of m rows becomes n equal words; `words` holds 16 of them."""
    for j in range(0, n, LANES):
        widen_rows(F32, target + 4 * j, ld, words, 0, m, min(LANES, n - j))


@inline
def positive_quotient(a: int, b: int) -> int:
    """⌈a / b⌉, and no less than 0."""
    return (a + b - 1) // b if a > 0 else 0


@inline
def widen_tap(record: int, target: int, ld: int, image: int, down: int, across: int, n: int, pad: int) -> None:
    """Column by column alike: n elements (16, 4 or 1) at the tap (down, across) of each pixel; `pad` stands outside
    the image."""
    dtype, row, pixel = load_i64(record, IM2COL.dtype), load_i64(record, IM2COL.row), load_i64(record, IM2COL.pixel)
    sh, sw, ow, h, w = (
        load_i64(record, IM2COL.sh),
        load_i64(record, IM2COL.sw),
        load_i64(record, IM2COL.ow),
        load_i64(record, IM2COL.h),
        load_i64(record, IM2COL.w),
    )
    left, m, m0 = across - load_i64(record, IM2COL.pw), load_i64(record, IM2COL.m), load_i64(record, IM2COL.m0)
    low, high = positive_quotient(-left, sw), positive_quotient(w - left, sw)  # pixels whose tap is inside
    y, x = m0 // ow * sh - load_i64(record, IM2COL.ph) + down, m0 % ow
    while m > 0:
        count = min(ow - x, m)
        first = max(low - x, 0)
        last = max(high - x, first) if y >= 0 and y < h else first
        source = image + y * row + (x * sw + left) * pixel
        widen_line(dtype, n, target, ld, source, sw * pixel, count, first, last, pad)
        target += count * ld
        m -= count
        x, y = 0, y + sh


@kernel
def patches(record: int, target: int, ld: int, image: int, size: int, pad: int, zeros: int) -> None:
    """Cuts the runs of columns k0 … k0 + k."""
    k, k0, c0, channels = (
        load_i64(record, IM2COL.k),
        load_i64(record, IM2COL.k0),
        load_i64(record, IM2COL.c0),
        load_i64(record, IM2COL.channels),
    )
    kh, kw, m = load_i64(record, IM2COL.kh), load_i64(record, IM2COL.kw), load_i64(record, IM2COL.m)
    column = 0
    while column < k:
        at = k0 + column
        block, c = at // c0, at % c0
        width = c0 - c
        if kh * kw == 1:  # neighbouring blocks are neighbours in memory as well
            width = k
        width = min(width, k - column)
        tap = block % (kh * kw)
        channel = block // (kh * kw) * c0 + c
        there = max(0, min(width, channels - channel))
        down, across = tap // kw * load_i64(record, IM2COL.dh), tap % kw * load_i64(record, IM2COL.dw)
        run, source, j = target + 4 * column, image + channel * size, 0
        while j < there:  # the last piece may be more than is there, since that is faster
            n = LANES if width - j >= LANES else 4 if width - j >= 4 else 1
            widen_tap(record, run + 4 * j, ld, source + j * size, down, across, n, pad)
            j += n
        if there < width:
            set_rows(run + 4 * there, ld, zeros, m, width - there)
        column += width


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
    zeros = load_i64(core, SCRATCH)
    for i in range(LANES):
        store_i32(zeros, i, 0)
    target = image(core, L0A, load_i64(record, IM2COL.dst), size)
    source = memory(core, L1, load_i64(record, IM2COL.src)) - load_i64(record, IM2COL.row0) * load_i64(
        record, IM2COL.row
    )
    patches(record, target, 4 * load_i64(record, IM2COL.ld), source, size, padding(record, dtype), zeros)
    return OK
