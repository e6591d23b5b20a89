"""Feeds: matrices from L1 to the operands of the cube, widened to words of 4 bytes."""

from .. import isa
from ..jit import inline, kernel
from ..numerics.bits import load_i64
from .core import L0A, L0B, L1, OK, SCRATCH, bad_value, element_size, image, memory, positions, rows
from .lanes import transpose16, widen1, widen16

FEED_A, FEED_B = positions("feed_a"), positions("feed_b")
LANES = 16
LAST_OPERAND = isa.DTYPES["u8"]


@inline
def no_operand(dtype: int) -> bool:
    """Whether the cube has no operands of this type."""
    return dtype < 0 or dtype > LAST_OPERAND


@inline
def widen_run(dtype: int, target: int, source: int, size: int, count: int) -> None:
    """`count` contiguous elements."""
    whole = count // LANES * LANES
    for i in range(0, whole, LANES):
        widen16(dtype, target + 4 * i, source + size * i)
    for i in range(whole, count):
        widen1(dtype, target + 4 * i, source + size * i)


@kernel
def widen_rows(dtype: int, target: int, ld: int, source: int, pitch: int, size: int, m: int, n: int) -> None:
    """A matrix [m, n]; `ld` and `pitch` in bytes."""
    if ld == 4 * n and pitch == size * n:
        m, n = 1, m * n
    for i in range(m):
        widen_run(dtype, target + i * ld, source + i * pitch, size, n)


@kernel
def widen_transposed(
    dtype: int, target: int, ld: int, source: int, pitch: int, size: int, m: int, n: int, scratch: int
) -> None:
    """The matrix [m, n] that the source holds as [n, m]: squares of 16, then the edges one by one."""
    rows, columns = m // LANES * LANES, n // LANES * LANES
    for j in range(0, columns, LANES):
        for i in range(0, rows, LANES):
            for r in range(LANES):
                widen16(dtype, scratch + 64 * r, source + (j + r) * pitch + i * size)
            transpose16(target + i * ld + 4 * j, ld, scratch)
        for i in range(rows, m):
            for r in range(LANES):
                widen1(dtype, target + i * ld + 4 * (j + r), source + (j + r) * pitch + i * size)
    for j in range(columns, n):
        for i in range(m):
            widen1(dtype, target + i * ld + 4 * j, source + j * pitch + i * size)


@inline
def feed(
    core: int,
    space: int,
    word: int,
    dst: int,
    src: int,
    m: int,
    n: int,
    ld: int,
    pitch: int,
    trans: int,
    dtype: int,
    dst_word: int,
    src_word: int,
) -> int:
    """dst[i·ld + j] = src[i, j], or src[j, i]; `word`: 4."""
    size = element_size(dtype)
    status = rows(core, L1, 0, src_word, src, size, (m if trans else n) * size, n if trans else m, pitch)
    if status == OK:
        status = rows(core, space, 1, dst_word, dst, size, n * size, m, ld * size)
    if status != OK:
        return status
    target, source = image(core, space, dst, size), memory(core, L1, src)
    if trans:
        widen_transposed(dtype, target, word * ld, source, pitch, size, m, n, load_i64(core, SCRATCH))
    else:
        widen_rows(dtype, target, word * ld, source, pitch, size, m, n)
    return OK


@kernel
def feed_a(record: int, core: int) -> int:
    """L1 to L0A."""
    dtype = load_i64(record, FEED_A.dtype)
    if no_operand(dtype):
        return bad_value(core, record, FEED_A.dtype, 0, LAST_OPERAND)
    return feed(
        core,
        L0A,
        4,
        load_i64(record, FEED_A.dst),
        load_i64(record, FEED_A.src),
        load_i64(record, FEED_A.m),
        load_i64(record, FEED_A.k),
        load_i64(record, FEED_A.ld),
        load_i64(record, FEED_A.pitch),
        load_i64(record, FEED_A.trans),
        dtype,
        FEED_A.dst,
        FEED_A.src,
    )


@kernel
def feed_b(record: int, core: int) -> int:
    """L1 to L0B."""
    dtype = load_i64(record, FEED_B.dtype)
    if no_operand(dtype):
        return bad_value(core, record, FEED_B.dtype, 0, LAST_OPERAND)
    return feed(
        core,
        L0B,
        4,
        load_i64(record, FEED_B.dst),
        load_i64(record, FEED_B.src),
        load_i64(record, FEED_B.k),
        load_i64(record, FEED_B.n),
        load_i64(record, FEED_B.ld),
        load_i64(record, FEED_B.pitch),
        load_i64(record, FEED_B.trans),
        dtype,
        FEED_B.dst,
        FEED_B.src,
    )
