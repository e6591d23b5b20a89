"""The feed of packed integers: floats in squares of 16 columns by 16 rows, transposed as they are stored."""

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
def dequantise_run(of: int, target: int, source: int, first: int, count: int, scale: float, zero: int) -> None:
    """Elements first … first + count of a column, all of one block, as f32."""
    if of >= I4:
        flip = 8 if of == I4 else 0  # the sign of 4 bits
        for t in range(count):
            i = first + t
            q = (load_u8(source, i >> 1) >> ((i & 1) << 2)) & 15
            store_f32(target, t, f32((q ^ flip) - flip - zero) * scale)
    elif of == I8:
        for t in range(count):
            store_f32(target, t, f32(load_i8(source, first + t) - zero) * scale)
    else:
        for t in range(count):
            store_f32(target, t, f32(load_u8(source, first + t) - zero) * scale)


@inline
def dequantise_column(record: int, core: int, target: int, column: int, first: int, count: int) -> None:
    """Elements first … first + count of a column, block by block, as f32."""
    of, ts, block = load_i64(record, FEED_Q.of), load_i64(record, FEED_Q.ts), load_i64(record, FEED_Q.block)
    source = memory(core, L1, load_i64(record, FEED_Q.src) + column * load_i64(record, FEED_Q.pitch))
    scales = memory(core, L1, load_i64(record, FEED_Q.scale) + column * load_i64(record, FEED_Q.spitch))
    zeros = memory(core, L1, load_i64(record, FEED_Q.zero) + column * load_i64(record, FEED_Q.zpitch))
    done = 0
    while done < count:
        at = load_i64(record, FEED_Q.k0) + first + done
        number = at // block
        some = min((number + 1) * block - at, count - done)
        zero = 0
        if load_i64(record, FEED_Q.zeros):
            zero = load_u8(zeros, number) if of in (U8, U4) else load_i8(zeros, number)
        scale = scale_at(ts, scales + number * element_size(ts))
        dequantise_run(of, target + 4 * done, source, first + done, some, scale, zero)
        done += some


@inline
def rounded(dtype: int, square: int, count: int, narrow: int) -> None:
    """The f32 of a square as they are in a type."""
    if dtype != F32:
        narrow_real(square, narrow, element_size(dtype), dtype, count, narrow + 4 * SQUARE)
        widen_rows(dtype, square, 4 * count, narrow, 4 * count, 1, count)


@kernel
def dequantise(record: int, core: int, target: int, ld: int) -> None:
    """All squares; `ld` in bytes."""
    k, n = load_i64(record, FEED_Q.k), load_i64(record, FEED_Q.n)
    ts, dtype = load_i64(record, FEED_Q.ts), load_i64(record, FEED_Q.dtype)
    square = load_i64(core, SCRATCH)
    narrow = square + 4 * SQUARE
    for i in range(SQUARE):
        store_i32(square, i, 0)
    for j in range(0, n, LANES):
        columns = min(LANES, n - j)
        for i in range(0, k, LANES):
            count = min(LANES, k - i)
            for column in range(columns):
                dequantise_column(record, core, square + 4 * LANES * column, j + column, i, count)
            rounded(ts, square, SQUARE, narrow)
            if ts != dtype:
                rounded(dtype, square, SQUARE, narrow)
            to = target + i * ld + 4 * j
            if columns == LANES and count == LANES:
                transpose16(to, ld, square)
                continue
            for r in range(count):
                for column in range(columns):
                    store_i32(to + r * ld, column, load_i32(square, LANES * column + r))


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
