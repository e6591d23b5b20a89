"""The feed of packed integers: floats in squares of 16 columns by 16 rows, transposed as they are stored.

Integers of 4 bits are looked up: a square holds what each of the 16 stands for in a block of each column.
"""

from .. import isa
from ..jit import inline, kernel
from ..numerics.bits import f32, i32, load_f32, load_i8, load_i32, load_i64, load_u8, load_u16, store_f32, store_i32
from ..numerics.convert import load_half, narrow_real
from ..numerics.scalar import bf16_to_f32
from .core import L0B, L1, OK, SCRATCH, bad_value, element_size, image, memory, positions, rows
from .feeds import LANES, widen_rows
from .lanes import transpose16

FEED_Q = positions("feed_q")
F16, F32 = isa.DTYPES["f16"], isa.DTYPES["f32"]
I8, U8, I4, U4 = (isa.PACKED[name] for name in ("i8", "u8", "i4", "u4"))
LEAST_BLOCK, MOST = 16, 1 << 30
SQUARE = LANES * LANES


@inline
def scale_at(dtype: int, place: int) -> float:
    """A scale as f32."""
    if dtype == F32:
        return load_f32(place, 0)
    return load_half(load_u16(place, 0)) if dtype == F16 else bf16_to_f32(i32(load_u16(place, 0)))


@inline
def rounded(dtype: int, square: int, narrow: int) -> None:
    """The f32 of a square as they are in a type."""
    if dtype != F32:
        narrow_real(square, narrow, element_size(dtype), dtype, SQUARE, narrow + 4 * SQUARE)
        widen_rows(dtype, square, 4 * SQUARE, narrow, 4 * SQUARE, 1, SQUARE)


@kernel
def floats(record: int, core: int, square: int, table: int, column: int, first: int, count: int) -> None:
    """A row of a square for each column: its integers first … first + count, all of one block, as f32; with `table`
    each integer of 4 bits instead, as it is in that block."""
    of, ts, zeros = load_i64(record, FEED_Q.of), load_i64(record, FEED_Q.ts), load_i64(record, FEED_Q.zeros)
    number = (load_i64(record, FEED_Q.k0) + first) // load_i64(record, FEED_Q.block)
    columns = min(LANES, load_i64(record, FEED_Q.n) - column)
    source = memory(core, L1, load_i64(record, FEED_Q.src) + column * load_i64(record, FEED_Q.pitch)) + first
    scales = memory(core, L1, load_i64(record, FEED_Q.scale) + column * load_i64(record, FEED_Q.spitch))
    places = memory(core, L1, load_i64(record, FEED_Q.zero) + column * load_i64(record, FEED_Q.zpitch)) + number
    flip = 8 if of == I4 else 0  # the sign of 4 bits
    for r in range(columns):
        zero = 0
        if zeros:
            zero = load_u8(places, 0) if of in (U8, U4) else load_i8(places, 0)
        scale, target = scale_at(ts, scales + number * element_size(ts)), square + 4 * LANES * r
        if table:
            for q in range(LANES):
                store_f32(target, q, f32((q ^ flip) - flip - zero) * scale)
        elif of == I8:
            for t in range(count):
                store_f32(target, t, f32(load_i8(source, t) - zero) * scale)
        else:
            for t in range(count):
                store_f32(target, t, f32(load_u8(source, t) - zero) * scale)
        source += load_i64(record, FEED_Q.pitch)
        scales += load_i64(record, FEED_Q.spitch)
        places += load_i64(record, FEED_Q.zpitch)


@kernel
def look_up(square: int, table: int, source: int, pitch: int, columns: int, first: int, count: int) -> None:
    """Integers of 4 bits first … first + count of each column, as the table has them."""
    for r in range(columns):
        target, row, at = square + 4 * LANES * r, table + 4 * LANES * r, source + r * pitch
        if first & 1 or count & 1:
            for t in range(count):
                i = first + t
                store_i32(target, t, load_i32(row, (load_u8(at, i >> 1) >> ((i & 1) << 2)) & 15))
            continue
        for t in range(count >> 1):
            both = load_u8(at, (first >> 1) + t)
            store_i32(target, 2 * t, load_i32(row, both & 15))
            store_i32(target, 2 * t + 1, load_i32(row, both >> 4))


@inline
def put(to: int, ld: int, square: int, columns: int, count: int) -> None:
    """Rows of a square as columns."""
    if columns == LANES and count == LANES:
        transpose16(to, ld, square)
        return
    for t in range(count):
        for r in range(columns):
            store_i32(to + t * ld, r, load_i32(square, LANES * r + t))


@kernel
def dequantise(record: int, core: int, target: int, ld: int) -> None:
    """Squares of 16 columns, block by block; `ld` in bytes."""
    k, n, k0 = load_i64(record, FEED_Q.k), load_i64(record, FEED_Q.n), load_i64(record, FEED_Q.k0)
    ts, dtype, block = load_i64(record, FEED_Q.ts), load_i64(record, FEED_Q.dtype), load_i64(record, FEED_Q.block)
    halves, pitch = load_i64(record, FEED_Q.of) >= I4, load_i64(record, FEED_Q.pitch)
    square = load_i64(core, SCRATCH)
    table, narrow = square + 4 * SQUARE, square + 8 * SQUARE
    for i in range(2 * SQUARE):
        store_i32(square, i, 0)
    for j in range(0, n, LANES):
        columns, source = min(LANES, n - j), memory(core, L1, load_i64(record, FEED_Q.src) + j * pitch)
        i = 0
        while i < k:
            end = min(((k0 + i) // block + 1) * block - k0, k)
            if halves:
                floats(record, core, table, 1, j, i, 0)
                rounded(ts, table, narrow)
                if ts != dtype:
                    rounded(dtype, table, narrow)
            for first in range(i, end, LANES):
                count = min(LANES, end - first)
                if halves:
                    look_up(square, table, source, pitch, columns, first, count)
                else:
                    floats(record, core, square, 0, j, first, count)
                    rounded(ts, square, narrow)
                    if ts != dtype:
                        rounded(dtype, square, narrow)
                put(target + first * ld + 4 * j, ld, square, columns, count)
            i = end


@inline
def bad_fields(record: int, core: int) -> int:
    """Checks types, and the fields that divide or count."""
    of, ts, dtype = load_i64(record, FEED_Q.of), load_i64(record, FEED_Q.ts), load_i64(record, FEED_Q.dtype)
    if of != I8 and of != U8 and of != I4 and of != U4:
        return bad_value(core, record, FEED_Q.of, I8, U4)
    if ts < 0 or ts > F32:
        return bad_value(core, record, FEED_Q.ts, 0, F32)
    if dtype < 0 or dtype > F32:
        return bad_value(core, record, FEED_Q.dtype, 0, F32)
    if load_i64(record, FEED_Q.block) < LEAST_BLOCK or load_i64(record, FEED_Q.block) > MOST:
        return bad_value(core, record, FEED_Q.block, LEAST_BLOCK, MOST)
    if load_i64(record, FEED_Q.k0) < 0 or load_i64(record, FEED_Q.k0) > MOST:
        return bad_value(core, record, FEED_Q.k0, 0, MOST)
    return OK


@inline
def check(record: int, core: int, size: int) -> int:
    """Footprints of src, scale, zero and dst."""
    k, n, k0 = load_i64(record, FEED_Q.k), load_i64(record, FEED_Q.n), load_i64(record, FEED_Q.k0)
    length = (k + 1) // 2 if load_i64(record, FEED_Q.of) >= I4 else k
    status = rows(core, L1, 0, FEED_Q.src, load_i64(record, FEED_Q.src), 1, length, n, load_i64(record, FEED_Q.pitch))
    block, wide = load_i64(record, FEED_Q.block), element_size(load_i64(record, FEED_Q.ts))
    first, last = k0 // block, (k0 + k - 1) // block
    if status == OK:
        at, pitch = load_i64(record, FEED_Q.scale) + first * wide, load_i64(record, FEED_Q.spitch)
        status = rows(core, L1, 0, FEED_Q.scale, at, wide, (last - first + 1) * wide, n, pitch)
    if status == OK and load_i64(record, FEED_Q.zeros):
        at, pitch = load_i64(record, FEED_Q.zero) + first, load_i64(record, FEED_Q.zpitch)
        status = rows(core, L1, 0, FEED_Q.zero, at, 1, last - first + 1, n, pitch)
    if status == OK:
        dst, ld = load_i64(record, FEED_Q.dst), load_i64(record, FEED_Q.ld)
        status = rows(core, L0B, 1, FEED_Q.dst, dst, size, n * size, k, ld * size)
    return status


@kernel
def feed_q(record: int, core: int) -> int:
    """Integers in L1 to floats in L0B."""
    status = bad_fields(record, core)
    if status != OK:
        return status
    size = element_size(load_i64(record, FEED_Q.dtype))
    status = check(record, core, size)
    if status == OK:
        dequantise(record, core, image(core, L0B, load_i64(record, FEED_Q.dst), size), 4 * load_i64(record, FEED_Q.ld))
    return status
