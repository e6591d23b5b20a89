"""The arithmetic of the vector engine: elementwise functions, reductions and index patterns over strided operands.

Operands are byte addresses with byte strides and a type code, so one compiled function serves every type and shape.
Work goes in chunks that stay in the L1 cache: widen the operands, compute on contiguous arrays, narrow the result.
`scratch` is a private area of SCRATCH_BYTES; `counters` addresses three int64, overflow, invalid and wide, that are
added to (section 8).
"""

from .. import jit
from .bits import and32, i32, i64, load_i32, load_i64, store_f32, store_i8, store_i16, store_i32, store_i64
from .convert import (
    CHUNK,
    F16_LIMIT,
    INF_BITS,
    largest_bits,
    narrow_real,
    narrow_small,
    narrow_whole,
    size_of,
    widen_real,
    widen_whole,
)
from .dtype import F16 as F16_CODE
from .dtype import F32 as F32_CODE
from .dtype import I32 as I32_CODE
from .function import (
    BINARY_MASK,
    DIRECT_MASK,
    REAL_MASK,
    TERNARY_MASK,
    WHOLE_MASK,
    apply_direct,
    apply_f32,
    apply_i64,
)
from .functions import FN
from .reduction import vreduce

__all__ = ["CHUNK", "SCRATCH_BYTES", "fill", "iota", "narrow_real", "narrow_whole", "vmap", "vreduce", "widen_real",
           "widen_whole"]  # fmt: skip

AREA = CHUNK * 8
SCRATCH_BYTES = 5 * AREA
F16, F32, I32 = i64(F16_CODE), i64(F32_CODE), i64(I32_CODE)
N0, N1, N2, N4, N8 = (i64(n) for n in (0, 1, 2, 4, 8))
WIDTH, NARROW = i64(CHUNK), i64(16)
WHERE = i64(FN.WHERE)


@jit.inline
def _bit(mask: int, fn: int) -> bool:
    return (i64(mask) >> fn) & N1 != N0


@jit.inline
def is_whole(fn: int, dtype: int) -> bool:
    """Whether `fn` on operands of this type computes in integers."""
    return (dtype > F32 and _bit(WHOLE_MASK, fn)) or not _bit(REAL_MASK, fn)


@jit.inline
def widen(whole: bool, s: int, stride: int, dtype: int, r: int, n: int, raw: int) -> None:
    """`widen_whole` or `widen_real`."""
    if whole:
        widen_whole(s, stride, dtype, r, n, raw)
    else:
        widen_real(s, stride, dtype, r, n, raw)


@jit.inline
def narrow(whole: bool, s: int, d: int, stride: int, dtype: int, n: int, raw: int) -> int:
    """`narrow_whole` or `narrow_real`."""
    return narrow_whole(s, d, stride, dtype, n, raw) if whole else narrow_real(s, d, stride, dtype, n, raw)


@jit.inline
def add_count(counters: int, index: int, count: int) -> None:
    """counters[index] += count."""
    if count != N0:
        store_i64(counters, index, load_i64(counters, index) + count)


@jit.inline
def _repeat(whole: bool, value: float, r: int, n: int) -> None:
    """Fills the first n elements of an area with an immediate."""
    if whole:
        for k in range(n):
            store_i64(r, k, i64(value))
    else:
        for k in range(n):
            store_f32(r, k, value)


@jit.inline
def is_nan_at(s: int, k: int) -> bool:
    """Whether the f32 at s[k] is NaN."""
    return and32(load_i32(s, k), i32(0x7FFFFFFF)) > INF_BITS


@jit.inline
def _count_invalid(a: int, b: int, c: int, r: int, n: int) -> int:
    """Results that are NaN though no operand is."""
    count = N0
    for k in range(n):
        if is_nan_at(r, k) and not (is_nan_at(a, k) or is_nan_at(b, k) or is_nan_at(c, k)):
            count += N1
    return count


@jit.inline
def _fetch(whole: bool, s: int, s1: int, s2: int, dtype: int, rows: int, n: int, area: int, raw: int) -> int:
    """`rows` rows of n elements, widened next to each other; returns where: f32 in one row is used where it lies."""
    if rows == N1 and dtype == F32 and s2 == N4 and not whole:
        return s
    step = n * (N8 if whole else N4)
    for row in range(rows):
        widen(whole, s + row * s1, s2, dtype, area + row * step, n, raw)
    return area


@jit.inline
def _short(dtype: int, stride: int) -> bool:
    """Whether a row is contiguous f16 or f32."""
    return (dtype == F16 and stride == N2) or (dtype == F32 and stride == N4)


@jit.kernel
def _direct_rows(
    fn: int, rows: int, n: int, d: int, ds1: int, dt: int, a: int, as1: int, at: int, b: int, bs1: int, bt: int, r: int
) -> int:
    """Rows of a function of `DIRECT_MASK` by way of r; 0, and d as it was, if a result is NaN or overflows."""
    largest = i32(0)
    for row in range(rows):
        found = apply_direct(fn, a + row * as1, i64(at == F16), b + row * bs1, i64(bt == F16), r + row * n * N4, n)
        largest = max(largest, found)
    if largest >= (F16_LIMIT if dt == F16 else INF_BITS):
        return N0
    for row in range(rows):
        narrow_small(r + row * n * N4, d + row * ds1, dt, n)
    return N1


@jit.kernel
def _vmap_rows(
    fn: int, whole: int, n0: int, n1: int, n2: int,
    d: int, ds0: int, ds1: int, ds2: int, dt: int,
    a: int, as0: int, as1: int, as2: int, at: int,
    b: int, bs0: int, bs1: int, bs2: int, bt: int,
    c: int, cs0: int, cs1: int, cs2: int, ct: int,
    bimm: int, cimm: int, scratch: int, counters: int,
) -> None:  # fmt: skip
    """`vmap` after its extents are merged; immediates fill their areas already."""
    area_a, area_b, area_c, area_r, raw = (
        scratch, scratch + i64(AREA), scratch + i64(2 * AREA), scratch + i64(3 * AREA), scratch + i64(4 * AREA)
    )  # fmt: skip
    is_whole = whole != N0
    step = N8 if is_whole else N4
    block = max(N1, WIDTH // n2)
    direct = _bit(DIRECT_MASK, fn) and not is_whole and _short(at, as2) and _short(dt, ds2)
    direct = direct and (bimm != N0 or _short(bt, bs2))
    for i0 in range(n0):
        for i1 in range(N0, n1, block):
            rows = min(block, n1 - i1)
            for j in range(N0, n2, WIDTH):
                n = min(WIDTH, n2 - j)
                if direct:
                    target, left = d + i0 * ds0 + i1 * ds1 + j * ds2, a + i0 * as0 + i1 * as1 + j * as2
                    right, rt = (b + i0 * bs0 + i1 * bs1 + j * bs2, bt) if bimm == N0 else (area_b, F32)
                    if _direct_rows(fn, rows, n, target, ds1, dt, left, as1, at, right, bs1, rt, area_r) != N0:
                        continue
                pa = _fetch(is_whole, a + i0 * as0 + i1 * as1 + j * as2, as1, as2, at, rows, n, area_a, raw)
                pb, pc = area_b, area_c
                if bimm == N0:
                    pb = _fetch(is_whole, b + i0 * bs0 + i1 * bs1 + j * bs2, bs1, bs2, bt, rows, n, area_b, raw)
                if cimm == N0:
                    pc = _fetch(is_whole, c + i0 * cs0 + i1 * cs1 + j * cs2, cs1, cs2, ct, rows, n, area_c, raw)
                total = rows * n
                if is_whole:
                    apply_i64(fn, pa, pb, pc, area_r, total)
                else:
                    apply_f32(fn, pa, pb, pc, area_r, total)
                    if dt <= F32 and largest_bits(area_r, total) > INF_BITS:
                        add_count(counters, N1, _count_invalid(pa, pb, pc, area_r, total))
                overflows = N0
                for row in range(rows):
                    target = d + i0 * ds0 + (i1 + row) * ds1 + j * ds2
                    overflows += narrow(is_whole, area_r + row * n * step, target, ds2, dt, n, raw)
                add_count(counters, N2 if dt == I32 else N0, overflows)


@jit.kernel
def vmap(
    fn: int, n0: int, n1: int, n2: int,
    d: int, ds0: int, ds1: int, ds2: int, dt: int,
    a: int, as0: int, as1: int, as2: int, at: int,
    b: int, bs0: int, bs1: int, bs2: int, bt: int,
    c: int, cs0: int, cs1: int, cs2: int, ct: int,
    immb: float, immc: float, bimm: int, cimm: int, scratch: int, counters: int,
) -> None:  # fmt: skip
    """d[i0, i1, i2] = fn(a, b, c) at every index, cast to `dt`; d may be one of the operands, exactly.

    Operand x is at x + i0·xs0 + i1·xs1 + i2·xs2 (bytes; 0 broadcasts). With `bimm` (`cimm`) not 0, b (c) is the
    immediate. The type of a decides whether the computation is in integers or in f32, for `where` that of b (of c if
    b is an immediate, of d if both are); other operands are cast to it."""
    if n0 <= N0 or n1 <= N0 or n2 <= N0:
        return
    if not _bit(BINARY_MASK, fn):
        bimm = N1
    if not _bit(TERNARY_MASK, fn):
        cimm = N1
    decides = at
    if fn == WHERE:  # its first operand only chooses
        decides = (dt if cimm != N0 else ct) if bimm != N0 else bt
    whole = is_whole(fn, decides)
    most = min(WIDTH, n0 * n1 * n2)
    if bimm != N0:
        bs0, bs1, bs2 = N0, N0, N0
        _repeat(whole, immb, scratch + i64(AREA), most)
    if cimm != N0:
        cs0, cs1, cs2 = N0, N0, N0
        _repeat(whole, immc, scratch + i64(2 * AREA), most)
    for _ in range(2):
        if n1 == N1 or (ds1 == n2 * ds2 and as1 == n2 * as2 and bs1 == n2 * bs2 and cs1 == n2 * cs2):
            n2, n1, n0 = n2 * n1, n0, N1
            ds1, as1, bs1, cs1 = ds0, as0, bs0, cs0
        elif ds0 == n1 * ds1 and as0 == n1 * as1 and bs0 == n1 * bs1 and cs0 == n1 * cs1:
            n1, n0 = n1 * n0, N1
    if n2 < NARROW and n2 < n1:  # short rows: column by column
        n1, ds1, as1, bs1, cs1, n2, ds2, as2, bs2, cs2 = n2, ds2, as2, bs2, cs2, n1, ds1, as1, bs1, cs1
    _vmap_rows(
        fn, i64(whole), n0, n1, n2, d, ds0, ds1, ds2, dt, a, as0, as1, as2, at, b, bs0, bs1, bs2, bt,
        c, cs0, cs1, cs2, ct, bimm, cimm, scratch, counters,
    )  # fmt: skip


@jit.kernel
def iota(
    d: int, ds0: int, ds1: int, ds2: int, dt: int, n0: int, n1: int, n2: int,
    base: int, c0: int, c1: int, c2: int, scratch: int,
) -> None:  # fmt: skip
    """d[i0, i1, i2] = base + c0·i0 + c1·i1 + c2·i2, computed in i64 and cast to `dt`."""
    raw = scratch + i64(AREA)
    for i0 in range(n0):
        for i1 in range(n1):
            for j in range(N0, n2, WIDTH):
                n = min(WIDTH, n2 - j)
                first = base + c0 * i0 + c1 * i1 + c2 * j
                for k in range(n):
                    store_i64(scratch, k, first + c2 * k)
                narrow_whole(scratch, d + i0 * ds0 + i1 * ds1 + j * ds2, ds2, dt, n, raw)


@jit.kernel
def fill(d: int, stride: int, dtype: int, n: int, bits: int) -> None:
    """n elements at d, d + stride, … become the pattern `bits`."""
    size = size_of(dtype)
    if size == i64(2):
        for k in range(n):
            store_i16(d + k * stride, N0, i32(bits))
    elif size == N4:
        for k in range(n):
            store_i32(d + k * stride, N0, i32(bits))
    elif size == N8:
        for k in range(n):
            store_i64(d + k * stride, N0, bits)
    else:
        for k in range(n):
            store_i8(d + k * stride, N0, i32(bits))
