"""Reductions with eight lanes by absolute index (section 6), so that cutting one at multiples of 8 changes no bit.

Real values reduce in f32; integers in i64 whose low 32 bits are the contract's i32, and state holds these. The rest of
an i64 only tells whether the result has left 32 bits (section 8): of a sum it is exact, of a product as `times` has it.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from .. import jit
from .bits import (
    FLOAT,
    I64,
    declare,
    i32,
    i64,
    load_f32,
    load_i32,
    load_i64,
    maximum,
    minimum,
    store_f32,
    store_i32,
    store_i64,
    times,
)
from .convert import CHUNK, count_wide, narrow_real, narrow_whole, size_of, widen_real, widen_whole
from .dtype import F32 as F32_CODE
from .functions import RFN
from .scalar import INF, ONE, ZERO

_ir: Any = ir
_types: Any = types
SUM, MAX, MIN, PROD = (i64(f) for f in RFN)
F32 = i64(F32_CODE)
N0, N1, N2, N4, N7, N8 = (i64(n) for n in (0, 1, 2, 4, 7, 8))
WIDTH = i64(CHUNK)
COLUMNS = i64(256)  # of an outer reduction at a time: 8 lanes of them are 16 KiB at most
LOWEST, HIGHEST = i64(-(2**31)), i64(2**31 - 1)
LANES_SIZE = i64(32)  # of a reduction's lanes in memory
AREA = CHUNK * 8


@jit.inline
def combine(fn: int, x: float, y: float) -> float:
    """x ∘ y of f32."""
    if fn == SUM:
        return x + y
    if fn == MAX:
        return maximum(x, y)
    return minimum(x, y) if fn == MIN else x * y


@jit.inline
def combine_whole(fn: int, x: int, y: int) -> int:
    """x ∘ y of integers."""
    if fn == SUM:
        return x + y
    if fn == MAX:
        return max(x, y)
    return min(x, y) if fn == MIN else times(x, y)


@jit.inline
def identity(fn: int) -> float:
    """What `combine` starts from."""
    if fn == SUM:
        return ZERO
    if fn == MAX:
        return -INF
    return INF if fn == MIN else ONE


@jit.inline
def identity_whole(fn: int) -> int:
    """What `combine_whole` starts from."""
    if fn == SUM:
        return N0
    if fn == MAX:
        return LOWEST
    return HIGHEST if fn == MIN else N1


def _vector_steps(real: bool) -> tuple[Callable[[Any, Any, Any], Any], ...]:
    """The steps of SUM, MAX, MIN and, of floats, PROD on vectors of 8."""
    if real:
        return (
            lambda b, x, y: b.fadd(x, y),
            lambda b, x, y: declare(b, "llvm.maximum.v8f32", x, y),
            lambda b, x, y: declare(b, "llvm.minimum.v8f32", x, y),
            lambda b, x, y: b.fmul(x, y),
        )
    return (
        lambda b, x, y: b.add(x, y),
        lambda b, x, y: b.select(b.icmp_signed(">", x, y), x, y),
        lambda b, x, y: b.select(b.icmp_signed("<", x, y), x, y),
    )


def _make_lanes(element: Any) -> Callable[[int, int, int, int], None]:
    """An operation `lanes(fn, lane, x, blocks)`: combines `blocks` times 8 elements at x into the 8 at `lane`."""
    vector = _ir.VectorType(element, 8)

    def emit(builder: Any, step: Callable[[Any, Any, Any], Any], lane: Any, x: Any, blocks: Any) -> None:
        register = cgutils.alloca_once(builder, vector)
        builder.store(builder.load(lane, align=4), register)
        with cgutils.for_range(builder, blocks, intp=I64) as loop:
            value = builder.load(builder.gep(x, [loop.index]), align=4)
            builder.store(step(builder, builder.load(register), value), register)
        builder.store(builder.load(register), lane, align=4)

    def definition(typing_context: Any, fn: Any, lane: Any, x: Any, blocks: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            lane, x = (builder.inttoptr(arg, vector.as_pointer()) for arg in args[1:3])
            end = builder.append_basic_block("reduced")
            choice = builder.switch(args[0], end)
            for number, step in enumerate(_vector_steps(element == FLOAT)):
                block = builder.append_basic_block(f"step{number}")
                choice.add_case(number, block)
                builder.position_at_end(block)
                emit(builder, step, lane, x, args[3])
                builder.branch(end)
            builder.position_at_end(end)
            return context.get_dummy_value()

        return _types.void(*(_types.int64,) * 4), code

    return jit.intrinsic(definition)


lanes_f32 = _make_lanes(FLOAT)
lanes_i64 = _make_lanes(I64)


@jit.inline
def _resumed(state: int, carry: int, j: int) -> int:
    """Lane j of integers, with what `carry` has of it beyond 32 bits, which is taken away."""
    low = i64(load_i32(state, j))
    if carry == N0:
        return low
    kept = load_i64(carry, j)
    store_i64(carry, j, N0)
    return kept if i64(i32(kept)) == low else low


@jit.inline
def _start_lanes(whole: bool, fn: int, state: int, carry: int, first: int, lane: int, step: int) -> None:
    """Eight lanes, `step` elements apart, from state or from the identity."""
    if whole:
        for j in range(N8):
            store_i64(lane, j * step, identity_whole(fn) if first != N0 else _resumed(state, carry, j))
    else:
        for j in range(N8):
            store_f32(lane, j * step, identity(fn) if first != N0 else load_f32(state, j))


@jit.inline
def _save_lanes(whole: bool, state: int, carry: int, lane: int, step: int) -> None:
    if whole:
        for j in range(N8):
            store_i32(state, j, i32(load_i64(lane, j * step)))
            if carry != N0:
                store_i64(carry, j, load_i64(lane, j * step))
    else:
        for j in range(N8):
            store_f32(state, j, load_f32(lane, j * step))


@jit.inline
def _fold_lanes(whole: bool, fn: int, lane: int, step: int) -> None:
    """The tree of section 6: the result is in lane 0."""
    s = N4
    while s > N0:
        for j in range(s):
            near, far = j * step, (j + s) * step
            if whole:
                store_i64(lane, near, combine_whole(fn, load_i64(lane, near), load_i64(lane, far)))
            else:
                store_f32(lane, near, combine(fn, load_f32(lane, near), load_f32(lane, far)))
        s >>= N1


@jit.inline
def _accumulate(whole: bool, fn: int, lane: int, x: int, phase: int, n: int) -> None:
    """Element k of x goes to lane (phase + k) mod 8."""
    k = N0
    while k < n and (phase + k) & N7 != N0:
        j = (phase + k) & N7
        if whole:
            store_i64(lane, j, combine_whole(fn, load_i64(lane, j), load_i64(x, k)))
        else:
            store_f32(lane, j, combine(fn, load_f32(lane, j), load_f32(x, k)))
        k += N1
    blocks = N0 if whole and fn == PROD else (n - k) >> i64(3)
    if whole:
        lanes_i64(fn, lane, x + k * N8, blocks)
    else:
        lanes_f32(fn, lane, x + k * N4, blocks)
    k += blocks * N8
    for j in range(n - k):
        if whole:
            store_i64(lane, j & N7, combine_whole(fn, load_i64(lane, j & N7), load_i64(x, k + j)))
        else:
            store_f32(lane, j, combine(fn, load_f32(lane, j), load_f32(x, k + j)))


@jit.inline
def _has_nan(x: int, step: int, n: int) -> bool:
    """Whether any of n f32 values, `step` elements apart, is NaN."""
    found = False
    for k in range(n):
        value = load_f32(x, k * step)
        found |= value != value
    return found


@jit.kernel
def _operand_is_nan(a: int, stride: int, at: int, n: int, scratch: int) -> int:
    """Whether any of n elements is NaN."""
    for k in range(N0, n, WIDTH):
        count = min(WIDTH, n - k)
        widen_real(a + k * stride, stride, at, scratch, count, scratch + i64(AREA))
        if _has_nan(scratch, N1, count):
            return N1
    return N0


@jit.inline
def _is_invalid(
    lane: int, step: int, carried: bool, a: int, stride: int, at: int, n: int, state: int, scratch: int
) -> bool:
    """Whether a NaN in the lanes came from no operand: neither an element nor a lane that was carried in."""
    if not _has_nan(lane, step, N8) or (carried and _has_nan(state, N1, N8)):
        return False
    return _operand_is_nan(a, stride, at, n, scratch) == N0


@jit.inline
def _reduce_row(
    whole: bool, fn: int, a: int, stride: int, at: int, n: int, start: int, lane: int, row: int, raw: int
) -> None:
    """All elements of one reduction into its lanes."""
    for k in range(N0, n, WIDTH):
        count = min(WIDTH, n - k)
        x = row
        if whole:
            widen_whole(a + k * stride, stride, at, row, count, raw)
        elif at == F32 and stride == N4:
            x = a + k * stride
        else:
            widen_real(a + k * stride, stride, at, row, count, raw)
        _accumulate(whole, fn, lane, x, start + k, count)


@jit.inline
def _write_results(whole: int, x: int, d: int, stride: int, dtype: int, n: int, raw: int) -> int:
    """Casts n results; integers are of 32 bits. Returns overflows."""
    if whole == N0:
        return narrow_real(x, d, stride, dtype, n, raw)
    for k in range(n):
        store_i64(x, k, i64(i32(load_i64(x, k))))
    return narrow_whole(x, d, stride, dtype, n, raw)


@jit.inline
def _count(counters: int, overflows: int, invalid: int, wide: int) -> None:
    store_i64(counters, N0, load_i64(counters, N0) + overflows)
    store_i64(counters, N1, load_i64(counters, N1) + invalid)
    store_i64(counters, N2, load_i64(counters, N2) + wide)


@jit.inline
def _carry_of(carry: int, number: int) -> int:
    """Where the lanes of a reduction stand in `carry`, 0 if there is none."""
    return N0 if carry == N0 else carry + number * (N2 * LANES_SIZE)


@jit.kernel
def _reduce_inner(
    fn: int, whole: int, n0: int, n1: int, n2: int, d: int, ds0: int, ds2: int, dt: int,
    a: int, as0: int, as1: int, as2: int, at: int, state: int, carry: int, start: int, first: int, last: int,
    scratch: int, counters: int,
) -> None:  # fmt: skip
    """One reduction after the other."""
    is_whole = whole != N0
    row, raw, out, lane = scratch, scratch + i64(AREA), scratch + i64(2 * AREA), scratch + i64(3 * AREA)
    touches = first == N0 or last == N0
    overflows, invalid, wide = N0, N0, N0
    for i0 in range(n0):
        for j in range(N0, n2, WIDTH):
            count = min(WIDTH, n2 - j)
            for k in range(count):
                source = a + i0 * as0 + (j + k) * as2
                place = state + (i0 * n2 + j + k) * LANES_SIZE if touches else state
                held = _carry_of(carry, i0 * n2 + j + k)
                _start_lanes(is_whole, fn, place, held, first, lane, N1)
                _reduce_row(is_whole, fn, source, as1, at, n1, start, lane, row, raw)
                if last != N0:
                    _fold_lanes(is_whole, fn, lane, N1)
                if not is_whole and _is_invalid(lane, N1, first == N0, source, as1, at, n1, place, scratch):
                    invalid += N1
                if last == N0:
                    _save_lanes(is_whole, place, held, lane, N1)
                elif is_whole:
                    store_i64(out, k, load_i64(lane, N0))
                else:
                    store_f32(out, k, load_f32(lane, N0))
            if last != N0:
                wide += count_wide(out, count) if is_whole else N0
                overflows += _write_results(whole, out, d + i0 * ds0 + j * ds2, ds2, dt, count, raw)
    _count(counters, overflows, invalid, wide)


@jit.kernel
def _combine_rows(whole: int, fn: int, lane: int, x: int, n: int) -> None:
    """lane[k] = lane[k] ∘ x[k]."""
    if whole != N0:
        for k in range(n):
            store_i64(lane, k, combine_whole(fn, load_i64(lane, k), load_i64(x, k)))
    elif fn == SUM:
        for k in range(n):
            store_f32(lane, k, load_f32(lane, k) + load_f32(x, k))
    else:
        for k in range(n):
            store_f32(lane, k, combine(fn, load_f32(lane, k), load_f32(x, k)))


@jit.inline
def _collect_rows(
    whole: int,
    fn: int,
    a: int,
    as1: int,
    as2: int,
    at: int,
    n1: int,
    n: int,
    start: int,
    lanes: int,
    row: int,
    raw: int,
) -> None:
    """Element i1 of n reductions side by side goes to the row of its lane."""
    size = N8 if whole != N0 else N4
    for i1 in range(n1):
        x = row
        if whole != N0:
            widen_whole(a + i1 * as1, as2, at, row, n, raw)
        elif at == F32 and as2 == N4:
            x = a + i1 * as1
        else:
            widen_real(a + i1 * as1, as2, at, row, n, raw)
        _combine_rows(whole, fn, lanes + ((start + i1) & N7) * COLUMNS * size, x, n)


@jit.inline
def _fold_rows(whole: int, fn: int, lanes: int, n: int) -> None:
    """The tree of section 6, for n reductions side by side."""
    step = COLUMNS * (N8 if whole != N0 else N4)
    s = N4
    while s > N0:
        for p in range(s):
            _combine_rows(whole, fn, lanes + p * step, lanes + (p + s) * step, n)
        s >>= N1


@jit.kernel
def _reduce_outer(
    fn: int, whole: int, n0: int, n1: int, n2: int, d: int, ds0: int, ds2: int, dt: int,
    a: int, as0: int, as1: int, as2: int, at: int, state: int, carry: int, start: int, first: int, last: int,
    scratch: int, counters: int,
) -> None:  # fmt: skip
    """COLUMNS reductions at a time, row by row."""
    is_whole = whole != N0
    size = N8 if is_whole else N4
    row, raw, lanes = scratch, scratch + i64(AREA), scratch + i64(2 * AREA)
    overflows, invalid, wide = N0, N0, N0
    for i0 in range(n0):
        for j in range(N0, n2, COLUMNS):
            n = min(COLUMNS, n2 - j)
            source = a + i0 * as0 + j * as2
            place = state + (i0 * n2 + j) * LANES_SIZE
            for k in range(n):
                held = _carry_of(carry, i0 * n2 + j + k)
                _start_lanes(is_whole, fn, place + k * LANES_SIZE, held, first, lanes + k * size, COLUMNS)
            _collect_rows(whole, fn, source, as1, as2, at, n1, n, start, lanes, row, raw)
            if last != N0:
                _fold_rows(whole, fn, lanes, n)
            if not is_whole:
                for k in range(n):
                    lane, kept, x = lanes + k * size, place + k * LANES_SIZE, source + k * as2
                    invalid += i64(_is_invalid(lane, COLUMNS, first == N0, x, as1, at, n1, kept, scratch))
            if last != N0:
                wide += count_wide(lanes, n) if is_whole else N0
                overflows += _write_results(whole, lanes, d + i0 * ds0 + j * ds2, ds2, dt, n, raw)
            else:
                for k in range(n):
                    held = _carry_of(carry, i0 * n2 + j + k)
                    _save_lanes(is_whole, place + k * LANES_SIZE, held, lanes + k * size, COLUMNS)
    _count(counters, overflows, invalid, wide)


@jit.kernel
def vreduce(
    fn: int, n0: int, n1: int, n2: int, d: int, ds0: int, ds2: int, dt: int,
    a: int, as0: int, as1: int, as2: int, at: int, state: int, carry: int, start: int, first: int, last: int,
    scratch: int, counters: int,
) -> None:  # fmt: skip
    """d[i0, i2] = a[i0, 0, i2] ∘ a[i0, 1, i2] ∘ …, by the rule of 8 lanes; `fn` is an `RFN`, any type but i64.

    A reduction may come in pieces: `start` is the absolute index of the first element; `first` starts the lanes,
    otherwise they are those at `state`, an array [n0][n2][8] of f32 (i32); `last` folds them and writes d, otherwise
    they go to `state`. `carry`, an array of i64 of the same shape or 0, keeps what the counts need of integer lanes."""
    if n0 <= N0 or n2 <= N0:
        return
    whole = i64(at > F32)
    size = size_of(at)
    if n2 >= i64(16) and (as2 == size or as1 != size):
        _reduce_outer(fn, whole, n0, n1, n2, d, ds0, ds2, dt, a, as0, as1, as2, at, state, carry, start, first, last,
                      scratch, counters)  # fmt: skip
    elif n2 == N1:  # [n0, n1, 1] is [1, n1, n0]: state and results lie the same way, and d is written in one row
        _reduce_inner(fn, whole, N1, n1, n0, d, N0, ds0, dt, a, N0, as1, as0, at, state, carry, start, first, last,
                      scratch, counters)  # fmt: skip
    else:
        _reduce_inner(fn, whole, n0, n1, n2, d, ds0, ds2, dt, a, as0, as1, as2, at, state, carry, start, first, last,
                      scratch, counters)  # fmt: skip
