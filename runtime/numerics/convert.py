"""Values between memory and the types that are computed in: every float in f32, every integer in i64.

`widen_*` reads a strided row of any type into a contiguous array, `narrow_*` casts a contiguous array into a strided
row (section 3 of the contract) and counts overflows (section 8). A type is a code at run time, a stride is in bytes.
`raw` is a work area of CHUNK · 8 bytes; rows are at most CHUNK elements (those next to each other as many as wanted).
"""

from .. import jit
from . import dtype as t
from .bits import (
    and32,
    f32,
    f64,
    half_extend,
    half_truncate,
    i32,
    i64,
    load_f32,
    load_i8,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    select,
    select32,
    store_f32,
    store_i8,
    store_i16,
    store_i32,
    store_i64,
)
from .scalar import NAN, ONE, ZERO, bf16_to_f32, f32_to_bf16, f32_to_half, half_to_f32

CHUNK = 1024  # elements of a work area
F16, BF16, F32, I8, U8, I32, B8, I64 = t.F16, t.BF16, t.F32, t.I8, t.U8, t.I32, t.B8, t.I64
ZERO_I, ONE_I, TWO, FOUR, EIGHT = (i64(n) for n in (0, 1, 2, 4, 8))

load_half = half_extend if jit.HAS_F16C else half_to_f32
store_half = half_truncate if jit.HAS_F16C else f32_to_half


@jit.inline
def size_of(dtype: int) -> int:
    """Bytes of an element."""
    if dtype == F32 or dtype == I32:  # noqa: SIM109 (compiled code: a tuple would be slower)
        return FOUR
    if dtype == F16 or dtype == BF16:  # noqa: SIM109
        return TWO
    return EIGHT if dtype == I64 else i64(1)


@jit.inline
def _widen_real(s: int, dtype: int, r: int, n: int) -> None:  # noqa: C901 (a branch per type)
    """Contiguous to contiguous f32."""
    if dtype == F16:
        for k in range(n):
            store_f32(r, k, load_half(load_u16(s, k)))
    elif dtype == F32:
        for k in range(n):
            store_i32(r, k, load_i32(s, k))
    elif dtype == BF16:
        for k in range(n):
            store_f32(r, k, bf16_to_f32(i32(load_u16(s, k))))
    elif dtype == I8:
        for k in range(n):
            store_f32(r, k, f32(load_i8(s, k)))
    elif dtype == U8:
        for k in range(n):
            store_f32(r, k, f32(load_u8(s, k)))
    elif dtype == I32:
        for k in range(n):
            store_f32(r, k, f32(load_i32(s, k)))
    elif dtype == B8:
        for k in range(n):
            store_f32(r, k, select(load_u8(s, k) != i32(0), ONE, ZERO))
    else:
        for k in range(n):
            store_f32(r, k, f32(load_i64(s, k)))


@jit.inline
def _to_i64(x: float) -> int:
    """Truncated toward zero and clamped; 0 for NaN."""
    if x != x:
        return ZERO_I
    if x >= f32(2.0**63):
        return i64(0x7FFFFFFFFFFFFFFF)
    return i64(max(f64(x), -(2.0**63)))


@jit.inline
def _widen_whole(s: int, dtype: int, r: int, n: int) -> None:  # noqa: C901 (a branch per type)
    """Contiguous to contiguous i64; floats as a cast does."""
    if dtype == I8:
        for k in range(n):
            store_i64(r, k, i64(load_i8(s, k)))
    elif dtype == U8:
        for k in range(n):
            store_i64(r, k, i64(load_u8(s, k)))
    elif dtype == I32:
        for k in range(n):
            store_i64(r, k, i64(load_i32(s, k)))
    elif dtype == B8:
        for k in range(n):
            store_i64(r, k, i64(load_u8(s, k) != i32(0)))
    elif dtype == I64:
        for k in range(n):
            store_i64(r, k, load_i64(s, k))
    else:
        for k in range(n):
            if dtype == F16:
                store_i64(r, k, _to_i64(load_half(load_u16(s, k))))
            elif dtype == BF16:
                store_i64(r, k, _to_i64(bf16_to_f32(i32(load_u16(s, k)))))
            else:
                store_i64(r, k, _to_i64(load_f32(s, k)))


@jit.inline
def _gather(s: int, stride: int, size: int, r: int, n: int) -> None:
    """Copies strided elements next to each other."""
    if size == TWO:
        for k in range(n):
            store_i16(r, k, i32(load_u16(s + k * stride, ZERO_I)))
    elif size == FOUR:
        for k in range(n):
            store_i32(r, k, load_i32(s + k * stride, ZERO_I))
    elif size == EIGHT:
        for k in range(n):
            store_i64(r, k, load_i64(s + k * stride, ZERO_I))
    else:
        for k in range(n):
            store_i8(r, k, load_i8(s + k * stride, ZERO_I))


@jit.inline
def _scatter(s: int, d: int, stride: int, size: int, n: int) -> None:
    """The inverse of `_gather`."""
    if size == TWO:
        for k in range(n):
            store_i16(d + k * stride, ZERO_I, i32(load_u16(s, k)))
    elif size == FOUR:
        for k in range(n):
            store_i32(d + k * stride, ZERO_I, load_i32(s, k))
    elif size == EIGHT:
        for k in range(n):
            store_i64(d + k * stride, ZERO_I, load_i64(s, k))
    else:
        for k in range(n):
            store_i8(d + k * stride, ZERO_I, load_i8(s, k))


@jit.kernel
def widen_real(s: int, stride: int, dtype: int, r: int, n: int, raw: int) -> None:
    """n elements at s, s + stride, … to f32 at r; stride 0 repeats one. Integers beyond 2²⁴ are rounded."""
    size = size_of(dtype)
    count = ONE_I if stride == ZERO_I else n
    if stride != size and stride != ZERO_I:
        _gather(s, stride, size, raw, n)
        s = raw
    _widen_real(s, dtype, r, count)
    if stride == ZERO_I:
        value = load_f32(r, ZERO_I)
        for k in range(n):
            store_f32(r, k, value)


@jit.kernel
def widen_whole(s: int, stride: int, dtype: int, r: int, n: int, raw: int) -> None:
    """n elements at s, s + stride, … to i64 at r; stride 0 repeats one. Floats are truncated and clamped."""
    size = size_of(dtype)
    count = ONE_I if stride == ZERO_I else n
    if stride != size and stride != ZERO_I:
        _gather(s, stride, size, raw, n)
        s = raw
    _widen_whole(s, dtype, r, count)
    if stride == ZERO_I:
        value = load_i64(r, ZERO_I)
        for k in range(n):
            store_i64(r, k, value)


@jit.inline
def largest_bits(s: int, n: int) -> int:
    """The largest bit pattern of |x| over f32 at s: tells in one pass whether any is NaN, infinite or large."""
    largest = i32(0)
    for k in range(n):
        bits = and32(load_i32(s, k), i32(0x7FFFFFFF))
        largest = select32(bits > largest, bits, largest)
    return largest


INF_BITS = i32(0x7F800000)
F16_LIMIT = i32(0x477FF000)  # 65520: the first value that rounds to inf
BF16_LIMIT = i32(0x7F7F8000)


@jit.inline
def _count_overflow(s: int, n: int, limit: int) -> int:
    """How many finite values round to inf."""
    count = i32(0)
    for k in range(n):
        bits = and32(load_i32(s, k), i32(0x7FFFFFFF))
        count = i32(count + i32((bits >= limit) & (bits < INF_BITS)))
    return i64(count)


@jit.inline
def count_wide(s: int, n: int) -> int:
    """How many of n i64 values i32 does not hold."""
    count = ZERO_I
    for k in range(n):
        value = load_i64(s, k)
        count += i64(value != i64(i32(value)))
    return count


@jit.inline
def _count_beyond(s: int, n: int) -> int:
    """How many f32 values, infinities too, lie beyond i32."""
    count = i32(0)
    for k in range(n):
        x = load_f32(s, k)
        count = i32(count + i32((x >= f32(2147483648.0)) | (x < f32(-2147483648.0))))
    return i64(count)


@jit.inline
def _to_i32(x: float) -> int:
    """Truncated toward zero and clamped; 0 for NaN. In f64, where the bounds are exact."""
    wide = f64(select(x != x, ZERO, x))
    wide = min(max(wide, -2147483648.0), 2147483647.0)
    return i32(wide)


@jit.inline
def _clamped(x: float, low: int, high: int) -> int:
    return min(max(_to_i32(x), low), high)


@jit.inline
def _narrow_floats(s: int, d: int, dtype: int, n: int) -> int:
    """To a contiguous row of floats; returns overflows."""
    largest = largest_bits(s, n)
    if dtype == F16:
        if largest < F16_LIMIT:
            for k in range(n):
                store_i16(d, k, store_half(load_f32(s, k)))
            return ZERO_I
        for k in range(n):
            x = load_f32(s, k)
            store_i16(d, k, select32(x != x, i32(0x7E00), store_half(x)))
        return _count_overflow(s, n, F16_LIMIT)
    if dtype == BF16:
        for k in range(n):
            store_i16(d, k, f32_to_bf16(load_f32(s, k)))
        return _count_overflow(s, n, BF16_LIMIT) if largest >= BF16_LIMIT else ZERO_I
    if largest <= INF_BITS:
        for k in range(n):
            store_i32(d, k, load_i32(s, k))
        return ZERO_I
    for k in range(n):
        x = load_f32(s, k)
        store_f32(d, k, select(x != x, NAN, x))
    return ZERO_I


@jit.inline
def narrow_small(s: int, d: int, dtype: int, n: int) -> None:
    """To a contiguous row of f16 or f32, values of which none overflows or is NaN."""
    if dtype == F16:
        for k in range(n):
            store_i16(d, k, store_half(load_f32(s, k)))
    else:
        for k in range(n):
            store_i32(d, k, load_i32(s, k))


@jit.inline
def _narrow_real(s: int, d: int, dtype: int, n: int) -> int:
    """To a contiguous row of any type; returns overflows, of i32 how many are beyond it."""
    if dtype <= F32:
        return _narrow_floats(s, d, dtype, n)
    if dtype == B8:
        for k in range(n):
            store_i8(d, k, select32(load_f32(s, k) == ZERO, i32(0), i32(1)))
    elif dtype == I8:
        for k in range(n):
            store_i8(d, k, i32(_clamped(load_f32(s, k), i32(-128), i32(127))))
    elif dtype == U8:
        for k in range(n):
            store_i8(d, k, i32(_clamped(load_f32(s, k), i32(0), i32(255))))
    elif dtype == I32:
        for k in range(n):
            store_i32(d, k, _to_i32(load_f32(s, k)))
        return _count_beyond(s, n)
    else:
        for k in range(n):
            store_i64(d, k, _to_i64(load_f32(s, k)))
    return ZERO_I


@jit.inline
def _whole_to_f32(value: int, dtype: int) -> float:
    """An f32 that rounds to `dtype` as the integer itself does: bits beyond 24 are folded into the lowest one kept."""
    scale = ONE
    if dtype != F32:
        while abs(value) >= i64(1 << 24):
            value = (value >> EIGHT) | i64((value & i64(255)) != ZERO_I)
            scale *= f32(256.0)
    return f32(value) * scale


@jit.inline
def _narrow_whole(s: int, d: int, dtype: int, n: int) -> int:
    """To a contiguous row of any type; returns overflows, of i32 how many are beyond it."""
    if dtype == I8 or dtype == U8:  # noqa: SIM109
        for k in range(n):
            store_i8(d, k, i32(load_i64(s, k)))
    elif dtype == I32:
        for k in range(n):
            store_i32(d, k, i32(load_i64(s, k)))
        return count_wide(s, n)
    elif dtype == B8:
        for k in range(n):
            store_i8(d, k, i32(load_i64(s, k) != ZERO_I))
    elif dtype == I64:
        for k in range(n):
            store_i64(d, k, load_i64(s, k))
    else:
        for k in range(n):  # in place: 4 bytes into 8, ascending
            store_f32(s, k, _whole_to_f32(load_i64(s, k), dtype))
        return _narrow_floats(s, d, dtype, n)
    return ZERO_I


@jit.kernel
def narrow_real(s: int, d: int, stride: int, dtype: int, n: int, raw: int) -> int:
    """n f32 values at s, cast to d, d + stride, …; returns how many finite ones became infinite, or are beyond i32."""
    size = size_of(dtype)
    overflows = _narrow_real(s, d if stride == size else raw, dtype, n)
    if stride != size:
        _scatter(raw, d, stride, size, n)
    return overflows


@jit.kernel
def narrow_whole(s: int, d: int, stride: int, dtype: int, n: int, raw: int) -> int:
    """n i64 values at s (overwritten), cast to d, d + stride, …; returns how many became infinite, or leave i32."""
    size = size_of(dtype)
    overflows = _narrow_whole(s, d if stride == size else raw, dtype, n)
    if stride != size:
        _scatter(raw, d, stride, size, n)
    return overflows
