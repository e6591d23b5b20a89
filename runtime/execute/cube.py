"""The cube: matrix products, depthwise products, and the sum of segments."""

from .. import isa
from ..jit import inline, kernel
from ..numerics import contract
from ..numerics.bits import load_f32, load_i64, store_f32
from .core import L0A, L0B, L0C, MISALIGNED, OK, SCRATCH, bad_value, element_size, fault, image, memory, positions, rows
from .feeds import no_operand
from .lanes import copy_bytes

MMA, MMA_DW, FOLD = positions("mma"), positions("mma_dw"), positions("fold")
LANES = 16
I8, U8 = isa.DTYPES["i8"], isa.DTYPES["u8"]
KEPT = 1024
"""Rows whose columns behind c lie in scratch memory at a time."""


@inline
def uneven(core: int, field: int, record: int) -> int:
    """OK, or a fault: the field is no multiple of 16."""
    value = load_i64(record, field)
    return fault(core, MISALIGNED, field, value, LANES, -1, 0) if value % LANES else OK


@inline
def copy_tail(dst: int, d: int, src: int, s: int, m: int, n: int) -> None:
    """Keeps, or puts back, what stands behind the columns of c: the products below are of whole blocks of 16."""
    for i in range(m):
        copy_bytes(dst + 4 * d * i, src + 4 * s * i, 4 * n)


@kernel
def mma(record: int, core: int) -> int:
    """c = (0 if init else c) + a·b."""
    dtype = load_i64(record, MMA.dtype)
    if no_operand(dtype):
        return bad_value(core, record, MMA.dtype, 0, U8)
    size = element_size(dtype)
    dst, a, b = load_i64(record, MMA.dst), load_i64(record, MMA.a), load_i64(record, MMA.b)
    m, n, k = load_i64(record, MMA.m), load_i64(record, MMA.n), load_i64(record, MMA.k)
    lda, ldb, ldc = load_i64(record, MMA.lda), load_i64(record, MMA.ldb), load_i64(record, MMA.ldc)
    status = uneven(core, MMA.ldb, record)
    if status == OK:
        status = uneven(core, MMA.ldc, record)
    if status == OK:
        status = rows(core, L0A, 0, MMA.a, a, size, k * size, m, lda * size)
    if status == OK:
        status = rows(core, L0B, 0, MMA.b, b, size, n * size, k, ldb * size)
    if status == OK:
        status = rows(core, L0C, 1, MMA.dst, dst, 4, n * 4, m, ldc * 4)
    if status != OK:
        return status
    a, b, c = image(core, L0A, a, size), image(core, L0B, b, size), memory(core, L0C, dst)
    kept, init = load_i64(core, SCRATCH), load_i64(record, MMA.init)
    most = KEPT if n % LANES else m
    for i in range(0, m, most):
        count, left, result = min(most, m - i), a + 4 * lda * i, c + 4 * ldc * i
        if n % LANES:
            copy_tail(kept, LANES, result + 4 * n, ldc, count, -n % LANES)
        if dtype < I8:
            contract.gemm(left, lda, b, ldb, result, ldc, count, k, n, init)
        else:
            contract.gemm_int(left, lda, b, ldb, result, ldc, count, k, n, init)
        if n % LANES:
            copy_tail(result + 4 * n, ldc, kept, LANES, count, -n % LANES)
    return OK


@kernel
def mma_dw(record: int, core: int) -> int:
    """Each channel with its own taps."""
    dtype = load_i64(record, MMA_DW.dtype)
    if no_operand(dtype):
        return bad_value(core, record, MMA_DW.dtype, 0, U8)
    size = element_size(dtype)
    dst, a, b = load_i64(record, MMA_DW.dst), load_i64(record, MMA_DW.a), load_i64(record, MMA_DW.b)
    m, groups, taps = load_i64(record, MMA_DW.m), load_i64(record, MMA_DW.groups), load_i64(record, MMA_DW.taps)
    lda, ldc = load_i64(record, MMA_DW.lda), load_i64(record, MMA_DW.ldc)
    columns = groups * taps * LANES
    status = uneven(core, MMA_DW.ldc, record)
    if status == OK:
        status = rows(core, L0A, 0, MMA_DW.a, a, size, columns * size, m, lda * size)
    if status == OK:
        status = rows(core, L0B, 0, MMA_DW.b, b, size, columns * size, 1, 0)
    if status == OK:
        status = rows(core, L0C, 1, MMA_DW.dst, dst, 4, groups * 64, m, ldc * 4)
    if status != OK:
        return status
    a, b, c = image(core, L0A, a, size), image(core, L0B, b, size), memory(core, L0C, dst)
    contract.depthwise(a, lda, b, c, ldc, m, taps, groups * LANES, load_i64(record, MMA_DW.init))
    return OK


@inline
def add_rows(dst: int, src: int, ldc: int, m: int, n: int, init: int) -> None:
    """In f32."""
    for i in range(m):
        to, at = dst + i * ldc, src + i * ldc
        if init:
            copy_bytes(to, at, 4 * n)
            continue
        for j in range(n):
            store_f32(to, j, load_f32(to, j) + load_f32(at, j))


@kernel
def fold(record: int, core: int) -> int:
    """Total and segment."""
    dst, src, ldc = load_i64(record, FOLD.dst), load_i64(record, FOLD.src), load_i64(record, FOLD.ldc)
    m, n = load_i64(record, FOLD.m), load_i64(record, FOLD.n)
    status = rows(core, L0C, 0, FOLD.src, src, 4, n * 4, m, ldc * 4)
    if status == OK:
        status = rows(core, L0C, 1, FOLD.dst, dst, 4, n * 4, m, ldc * 4)
    if status == OK:
        add_rows(memory(core, L0C, dst), memory(core, L0C, src), 4 * ldc, m, n, load_i64(record, FOLD.init))
    return status
