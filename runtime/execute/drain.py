"""Drain: results of the cube out of L0C, with scale, bias, activation and the one cast."""

from .. import isa
from ..jit import HAS_F16C, inline, kernel
from ..numerics.bits import f32, f32_bits, load_f32, load_i32, load_i64, maximum, minimum, select, store_f32, store_i64
from ..numerics.convert import F16_LIMIT, INF_BITS, largest_bits, narrow_real
from .core import (
    BAD_SPACE,
    L0C,
    L1,
    OK,
    ROW,
    ROW_COUNTERS,
    ROW_COUNTS,
    SCRATCH,
    UB,
    bad_value,
    element_size,
    fault,
    memory,
    positions,
    rows,
)
from .lanes import copy_bytes, finish

DRAIN = positions("drain")
CHUNK = 1024
"""Columns at a time, in scratch memory."""
ZERO, ONE, INF = f32(0.0), f32(1.0), f32(float("inf"))
F16, F32, I32, B8 = (isa.DTYPES[name] for name in ("f16", "f32", "i32", "b8"))
FINISHED = F16 if HAS_F16C else F32
"""With f32, the types of results that `finish` knows."""
RELU, CLIP = isa.ACTIVATIONS["relu"], isa.ACTIVATIONS["clip"]


@inline
def bounds(record: int) -> tuple[float, float]:
    """An activation as a clip."""
    act = load_i64(record, DRAIN.act)
    if act == CLIP:
        return load_f32(record + 8 * DRAIN.lo, 0), load_f32(record + 8 * DRAIN.hi, 0)
    return (ZERO if act == RELU else -INF), INF


@kernel
def compute(v: int, c: int, scale: float, bias: int, low: float, high: float, n: int) -> None:
    """v = clip(c·scale + bias): scale 1, bias −0 and infinite bounds change nothing."""
    for j in range(n):
        store_f32(v, j, load_f32(c, j) * scale + load_f32(bias, j))
    if f32_bits(low) == 0 and high == INF:  # relu
        for j in range(n):
            x = load_f32(v, j)
            store_f32(v, j, select(x <= ZERO, ZERO, x))
    elif low > -INF or high < INF:
        for j in range(n):
            store_f32(v, j, minimum(maximum(load_f32(v, j), low), high))


@kernel
def count_special(record: int, core: int, c: int, bias: int, v: int, n: int) -> None:
    """Counts results that are infinite though the bias is finite, and NaN though neither c nor the bias is.

    `bias` is 0 where there is none."""
    whole = load_i64(record, DRAIN.acc) == I32
    infinite, invalid = 0, 0
    for j in range(n):
        x, b = load_f32(v, j), load_f32(bias, j) if bias else ZERO
        acc = ZERO if whole else load_f32(c, j)
        infinite += (x - x != ZERO) & (x == x) & (b - b == ZERO)
        invalid += (x != x) & (acc == acc) & (b == b)
    count(record, core, infinite, invalid, 0)


@inline
def count(record: int, core: int, overflow: int, invalid: int, wide: int) -> None:
    """Adds to the sticky counters of the row."""
    counts, row = load_i64(core, ROW_COUNTS), ROW_COUNTERS * load_i64(record, ROW)
    store_i64(counts, row, load_i64(counts, row) + overflow)
    store_i64(counts, row + 1, load_i64(counts, row + 1) + invalid)
    store_i64(counts, row + 2, load_i64(counts, row + 2) + wide)


@kernel
def drain_run(
    record: int, core: int, c: int, scale: float, bias: int, low: float, high: float, dst: int, size: int, n: int
) -> None:
    """At most CHUNK elements of a row; `bias` 0: none."""
    v = load_i64(core, SCRATCH)
    whole, neutral = v + 4 * CHUNK, v + 8 * CHUNK
    source = c
    if load_i64(record, DRAIN.acc) == I32:
        for j in range(n):
            store_f32(whole, j, f32(load_i32(c, j)))
        source = whole
    compute(v, source, scale, bias if bias else neutral, low, high, n)
    if largest_bits(v, n) >= INF_BITS:
        count_special(record, core, c, bias, v, n)
    dtype = load_i64(record, DRAIN.dtype)
    found = narrow_real(v, dst, size, dtype, n, v + 4 * CHUNK)
    if found:
        count(record, core, 0 if dtype == I32 else found, 0, found if dtype == I32 else 0)


@inline
def is_raw(record: int) -> bool:
    """Whether integers leave as they are."""
    changed = load_i64(record, DRAIN.biased) | load_i64(record, DRAIN.scaled) | load_i64(record, DRAIN.act)
    return load_i64(record, DRAIN.acc) == I32 and load_i64(record, DRAIN.dtype) == I32 and changed == 0


@inline
def in_vectors(record: int, core: int, space: int, low: float, high: float) -> bool:
    """Whether `finish` gives the bits of `drain_run`: an order of bounds in which zeros need no care, and a bias that
    is not written over."""
    dtype, n, pitch = load_i64(record, DRAIN.dtype), load_i64(record, DRAIN.n), load_i64(record, DRAIN.pitch)
    if load_i64(record, DRAIN.acc) != F32 or (dtype != F32 and dtype != FINISHED):
        return False
    dst, bias = load_i64(record, DRAIN.dst), load_i64(record, DRAIN.bias)
    reach = (load_i64(record, DRAIN.m) - 1) * pitch
    before = bias + 4 * n <= dst + min(0, reach)
    if space == UB and load_i64(record, DRAIN.biased) and not before and bias < dst + max(0, reach) + n * 4:
        return False
    return low <= high and f32_bits(low) != f32_bits(-ZERO) and f32_bits(high) != f32_bits(ZERO)


@inline
def check(record: int, core: int, space: int, size: int, biased: int) -> int:
    """Footprints of dst, src and bias."""
    m, n, pitch, ldc = (
        load_i64(record, DRAIN.m),
        load_i64(record, DRAIN.n),
        load_i64(record, DRAIN.pitch),
        load_i64(record, DRAIN.ldc),
    )
    status = rows(core, space, 1, DRAIN.dst, load_i64(record, DRAIN.dst), size, n * size, m, pitch)
    if status == OK:
        status = rows(core, L0C, 0, DRAIN.src, load_i64(record, DRAIN.src), 4, n * 4, m, ldc * 4)
    if status == OK and biased:
        status = rows(core, UB, 0, DRAIN.bias, load_i64(record, DRAIN.bias), 4, n * 4, 1, 0)
    return status


@kernel
def drain(record: int, core: int) -> int:
    """L0C to UB, L1 or GM."""
    dtype, space, acc = load_i64(record, DRAIN.dtype), load_i64(record, DRAIN.space), load_i64(record, DRAIN.acc)
    size = element_size(dtype)
    if size == 0:
        return bad_value(core, record, DRAIN.dtype, 0, B8)
    if acc != F32 and acc != I32:
        return bad_value(core, record, DRAIN.acc, F32, I32)
    if space != 0 and space != L1 and space != UB:
        return fault(core, BAD_SPACE, DRAIN.space, space, L1, UB, 1)
    biased = load_i64(record, DRAIN.biased)
    status = check(record, core, space, size, biased)
    if status != OK:
        return status
    n, pitch, ldc = load_i64(record, DRAIN.n), load_i64(record, DRAIN.pitch), 4 * load_i64(record, DRAIN.ldc)
    c, dst = memory(core, L0C, load_i64(record, DRAIN.src)), memory(core, space, load_i64(record, DRAIN.dst))
    bias = memory(core, UB, load_i64(record, DRAIN.bias)) if biased else 0
    raw = is_raw(record)
    scale = load_f32(record + 8 * DRAIN.scale, 0) if load_i64(record, DRAIN.scaled) else ONE
    low, high = bounds(record)
    neutral, m = load_i64(core, SCRATCH) + 8 * CHUNK, load_i64(record, DRAIN.m)
    for j in range(0 if biased else min(CHUNK, n + 16)):
        store_f32(neutral, j, -ZERO)
    if in_vectors(record, core, space, low, high):
        plus, by = (bias, 64) if biased else (neutral, 0)
        largest = finish(dtype, dst, pitch, c, ldc, plus, by, m, n, scale, low, high)
        if largest < (F16_LIMIT if dtype == F16 else INF_BITS):
            return OK
    for i in range(m):
        if raw:
            copy_bytes(dst + i * pitch, c + i * ldc, 4 * n)
            continue
        for j in range(0, n, CHUNK):
            drain_run(
                record,
                core,
                c + i * ldc + 4 * j,
                scale,
                bias + 4 * j if biased else 0,
                low,
                high,
                dst + i * pitch + j * size,
                size,
                min(CHUNK, n - j),
            )
    return OK
