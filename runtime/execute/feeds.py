"""Feeds: matrices from L1 to the operands of the cube, widened to words of 4 bytes."""

from .. import isa
from ..jit import inline, kernel
from ..numerics.bits import load_i64
from .core import L0A, L0B, L1, OK, SCRATCH, bad_value, element_size, image, memory, positions, rows
from .lanes import transpose16, widen1, widen_box

FEED = positions("feed_a")
assert tuple(FEED) == tuple(positions("feed_b"))
LANES = 16
LAST_OPERAND = isa.DTYPES["u8"]


@inline
def no_operand(dtype: int) -> bool:
    """Whether the cube has no operands of this type."""
    return dtype < 0 or dtype > LAST_OPERAND


@kernel
def widen_rows(dtype: int, target: int, ld: int, source: int, pitch: int, m: int, n: int) -> None:
    """A matrix [m, n]; `ld` and `pitch` in bytes."""
    widen_box(dtype, target, ld, source, pitch, m, n)


@kernel
def widen_transposed(
    dtype: int, target: int, ld: int, source: int, pitch: int, size: int, m: int, n: int, scratch: int
) -> None:
    """The matrix [m, n] that the source holds as [n, m]: squares of 16, then the edges one by one."""
    rows, columns = m // LANES * LANES, n // LANES * LANES
    for j in range(0, columns, LANES):
        for i in range(0, rows, LANES):
            widen_rows(dtype, scratch, 4 * LANES, source + j * pitch + i * size, pitch, LANES, LANES)
            transpose16(target + i * ld + 4 * j, ld, scratch)
        for i in range(rows, m):
            for r in range(LANES):
                widen1(dtype, target + i * ld + 4 * (j + r), source + (j + r) * pitch + i * size)
    for j in range(columns, n):
        for i in range(m):
            widen1(dtype, target + i * ld + 4 * j, source + j * pitch + i * size)


@inline
def feed(record: int, core: int, space: int) -> int:
    """dst[i·ld + j] = src[i, j], or src[j, i]. The fields of `feed_b` stand in the places of those of `feed_a`."""
    dtype = load_i64(record, FEED.dtype)
    if no_operand(dtype):
        return bad_value(core, record, FEED.dtype, 0, LAST_OPERAND)
    size = element_size(dtype)
    dst, src, trans = load_i64(record, FEED.dst), load_i64(record, FEED.src), load_i64(record, FEED.trans)
    m, n = load_i64(record, FEED.m), load_i64(record, FEED.k)
    ld, pitch = load_i64(record, FEED.ld), load_i64(record, FEED.pitch)
    status = rows(core, L1, 0, FEED.src, src, size, (m if trans else n) * size, n if trans else m, pitch)
    if status == OK:
        status = rows(core, space, 1, FEED.dst, dst, size, n * size, m, ld * size)
    if status != OK:
        return status
    target, source = image(core, space, dst, size), memory(core, L1, src)
    if trans:
        widen_transposed(dtype, target, 4 * ld, source, pitch, size, m, n, load_i64(core, SCRATCH))
    else:
        if ld == n and pitch == size * n:  # one row
            m, n = 1, m * n
        widen_rows(dtype, target, 4 * ld, source, pitch, m, n)
    return OK


@kernel
def feed_a(record: int, core: int) -> int:
    """L1 to L0A."""
    return feed(record, core, L0A)


@kernel
def feed_b(record: int, core: int) -> int:
    """L1 to L0B."""
    return feed(record, core, L0B)
