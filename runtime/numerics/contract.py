"""Contractions (section 5): matrix products and depthwise products with one sequential fma chain per result.

A result depends on its own k order alone: not on tiling, on the vector width or on the register blocks here. Where the
CPU has no fma instruction LLVM calls the fmaf of libm, which is slow and gives the same bits. Operands are images, f32
(or i32 for integers) at byte addresses; leading dimensions count elements. The micro-kernel is LLVM IR: the results
of a block of rows and columns stay in registers while k runs.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from .. import jit
from .bits import FLOAT, I32, I64, i64, load_f32, store_f32

_ir: Any = ir
_types: Any = types

BLOCK = 16  # columns are padded to it
SEGMENT = 2048  # of k; `fold` adds the sums of segments

# Of a register block, for 32 registers of 16 lanes, and 16 of 8 (or 4). Each number of rows up to ROWS has one.
LANES, ROWS, COLUMNS = (16, 14, 2 * BLOCK) if jit.HAS_AVX512 else (8, 6, BLOCK) if jit.HAS_FMA else (4, 3, BLOCK)


def _fma(builder: Any, x: Any, y: Any, z: Any) -> Any:
    name = f"llvm.fma.v{x.type.count}f32"
    function_type = _ir.FunctionType(x.type, [x.type] * 3)
    known = builder.module.globals.get(name)
    return builder.call(known or _ir.Function(builder.module, function_type, name), [x, y, z])


def _multiply_add(builder: Any, x: Any, y: Any, z: Any) -> Any:
    return builder.add(builder.mul(x, y), z)


def _splat(builder: Any, value: Any, lanes: int) -> Any:
    vector = _ir.VectorType(value.type, lanes)
    undefined = _ir.Constant(vector, _ir.Undefined)
    first = builder.insert_element(undefined, value, I32(0))
    return builder.shuffle_vector(first, undefined, _ir.Constant(_ir.VectorType(I32, lanes), [0] * lanes))


def _emit_block(module: Any, element: Any, step: Callable[..., Any], rows: int, columns: int) -> Any:
    """A function (a, lda, b, ldb, k, c, ldc, init) for `rows` by `columns` results."""
    lanes = min(LANES, columns)
    vectors = columns // lanes
    vector = _ir.VectorType(element, lanes)
    pointer = element.as_pointer()
    arguments = [pointer, I64, pointer, I64, I64, pointer, I64, I64]
    name = f"stepwell.block.{element}.{rows}x{columns}"
    function = _ir.Function(module, _ir.FunctionType(_ir.VoidType(), arguments), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    function.attributes.add("nounwind")
    builder = _ir.IRBuilder(function.append_basic_block("entry"))
    a, lda, b, ldb, depth, c, ldc, init = function.args

    def vector_at(base: Any, offset: Any, j: int) -> Any:
        place = builder.gep(base, [builder.add(offset, I64(j * lanes))])
        return builder.bitcast(place, vector.as_pointer())

    sums = [[cgutils.alloca_once(builder, vector) for _ in range(vectors)] for _ in range(rows)]
    c_offsets = [builder.mul(ldc, I64(i)) for i in range(rows)]
    a_rows = [builder.gep(a, [builder.mul(lda, I64(i))]) for i in range(rows)]
    with builder.if_else(builder.icmp_signed("!=", init, I64(0))) as (fresh, carried):
        with fresh:
            for i in range(rows):
                for j in range(vectors):
                    builder.store(_ir.Constant(vector, None), sums[i][j])
        with carried:
            for i in range(rows):
                for j in range(vectors):
                    builder.store(builder.load(vector_at(c, c_offsets[i], j), align=4), sums[i][j])
    with cgutils.for_range(builder, depth, intp=I64) as loop:
        offset = builder.mul(loop.index, ldb)
        right = [builder.load(vector_at(b, offset, j), align=4) for j in range(vectors)]
        for i in range(rows):
            left = _splat(builder, builder.load(builder.gep(a_rows[i], [loop.index])), lanes)
            for j in range(vectors):
                builder.store(step(builder, left, right[j], builder.load(sums[i][j])), sums[i][j])
    for i in range(rows):
        for j in range(vectors):
            builder.store(builder.load(sums[i][j]), vector_at(c, c_offsets[i], j), align=4)
    builder.ret_void()
    return function


def _make_block(element: Any, step: Callable[..., Any], most: int, columns: int) -> Any:
    """The micro-kernels as an operation (rows, a, lda, b, ldb, k, c, ldc, init) of compiled code, with byte addresses,
    for up to `most` rows."""

    def definition(
        typing_context: Any, rows: Any, a: Any, lda: Any, b: Any, ldb: Any, depth: Any, c: Any, ldc: Any, init: Any
    ) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = element.as_pointer()
            operands = [builder.inttoptr(x, pointer) if i in (0, 2, 5) else x for i, x in enumerate(args[1:])]
            done = builder.append_basic_block("done")
            choice = builder.switch(args[0], done)
            for rows in range(1, most + 1):
                name = f"stepwell.block.{element}.{rows}x{columns}"
                function = builder.module.globals.get(name)
                function = function or _emit_block(builder.module, element, step, rows, columns)
                block = builder.append_basic_block(f"rows{rows}")
                choice.add_case(rows, block)
                builder.position_at_end(block)
                builder.call(function, operands)
                builder.branch(done)
            builder.position_at_end(done)
            return context.get_dummy_value()

        return _types.void(*(_types.int64,) * 9), code

    return jit.intrinsic(definition)


N0, N1, N4 = (i64(n) for n in (0, 1, 4))
WIDE, NARROW, PANEL = i64(COLUMNS), i64(BLOCK), i64(8 * BLOCK)


def _make_gemm(element: Any, step: Callable[..., Any], most: int) -> Any:
    """Loops over register blocks of nearly equal heights; one row takes more columns to keep the fma units busy."""
    wide, narrow = (_make_block(element, step, most, c) for c in (COLUMNS, BLOCK))
    panel = _make_block(element, step, 1, 8 * BLOCK)
    row_block = i64(most)

    @jit.inline
    def single_row(a: int, b: int, ldb: int, c: int, k: int, n: int, init: int) -> None:
        j = N0
        while n - j >= PANEL:
            panel(N1, a, k, b + j * N4, ldb, k, c + j * N4, n, init)
            j += PANEL
        while j < n:
            narrow(N1, a, k, b + j * N4, ldb, k, c + j * N4, n, init)
            j += NARROW

    @jit.inline
    def loops(a: int, lda: int, b: int, ldb: int, c: int, ldc: int, m: int, k: int, n: int, init: int) -> None:
        columns = (n + NARROW - N1) // NARROW * NARROW
        if m == N1:
            single_row(a, b, ldb, c, k, columns, init)
            return
        count = (m + row_block - N1) // row_block
        height = (m + count - N1) // max(count, N1)
        for j in range(N0, columns, WIDE):
            for i in range(N0, m, height):
                rows, left, result = min(height, m - i), a + i * lda * N4, c + (i * ldc + j) * N4
                if columns - j >= WIDE:
                    wide(rows, left, lda, b + j * N4, ldb, k, result, ldc, init)
                else:
                    narrow(rows, left, lda, b + j * N4, ldb, k, result, ldc, init)

    return loops


_gemm_f32 = _make_gemm(FLOAT, _fma, ROWS)
_gemm_i32 = _make_gemm(I32, _multiply_add, min(ROWS, 6))


@jit.kernel
def gemm(a: int, lda: int, b: int, ldb: int, c: int, ldc: int, m: int, k: int, n: int, init: int) -> None:
    """c[m, n] = (init ? +0 : c) + a[m, k] · b[k, n], each by fma over ascending k.

    b and c have n rounded up to 16 columns."""
    _gemm_f32(a, lda, b, ldb, c, ldc, m, k, n, init)


@jit.kernel
def gemm_int(a: int, lda: int, b: int, ldb: int, c: int, ldc: int, m: int, k: int, n: int, init: int) -> None:
    """The same in i32 modulo 2³²."""
    _gemm_i32(a, lda, b, ldb, c, ldc, m, k, n, init)


def _make_taps(rows: int) -> Callable[[int, int, int, int, int, int, int], None]:
    """An operation (a, lda, b, taps, c, ldc, init): 16 channels of each row at c by fma over taps of 16 at a and b;
    lda and ldc in bytes."""
    vector = _ir.VectorType(FLOAT, BLOCK)

    def definition(typing_context: Any, a: Any, lda: Any, b: Any, taps: Any, c: Any, ldc: Any, init: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def places(base: Any, pitch: Any) -> list[Any]:
                starts = [builder.add(base, builder.mul(pitch, I64(i))) for i in range(rows)]
                return [builder.inttoptr(start, vector.as_pointer()) for start in starts]

            a_rows, c_rows = places(args[0], args[1]), places(args[4], args[5])
            b = builder.inttoptr(args[2], vector.as_pointer())
            totals = [cgutils.alloca_once(builder, vector) for _ in range(rows)]
            fresh = builder.icmp_signed("!=", args[6], I64(0))
            for total in totals:
                builder.store(_ir.Constant(vector, None), total)
            with builder.if_then(builder.not_(fresh)):
                for total, c in zip(totals, c_rows, strict=True):
                    builder.store(builder.load(c, align=4), total)
            with cgutils.for_range(builder, args[3], intp=I64) as loop:
                right = builder.load(builder.gep(b, [loop.index]), align=4)
                for total, a in zip(totals, a_rows, strict=True):
                    left = builder.load(builder.gep(a, [loop.index]), align=4)
                    builder.store(_fma(builder, left, right, builder.load(total)), total)
            for total, c in zip(totals, c_rows, strict=True):
                builder.store(builder.load(total), c, align=4)
            return context.get_dummy_value()

        return _types.void(*(_types.int64,) * 7), code

    return jit.intrinsic(definition)


TOGETHER = i64(8 if jit.HAS_AVX512 else 4)
"""Rows whose chains run side by side."""
_many_taps, _taps = _make_taps(int(TOGETHER)), _make_taps(1)


@jit.kernel
def depthwise(a: int, lda: int, b: int, c: int, ldc: int, m: int, taps: int, channels: int, init: int) -> None:
    """c[m, channels] = (init ? +0 : c) + Σ over taps of a · b, each channel by fma over ascending taps.

    A row of a, and b, is [channels / 16][taps][16]; c has channels rounded up to 16."""
    blocks = (channels + NARROW - N1) // NARROW
    size, down, across = taps * NARROW * N4, lda * N4, ldc * N4
    for block in range(blocks):
        left, right, result, i = a + block * size, b + block * size, c + block * NARROW * N4, N0
        while m - i >= TOGETHER:
            _many_taps(left + i * down, down, right, taps, result + i * across, across, init)
            i += TOGETHER
        while i < m:
            _taps(left + i * down, down, right, taps, result + i * across, across, init)
            i += N1


@jit.kernel
def fold(dst: int, src: int, ldc: int, m: int, n: int, init: int) -> None:
    """dst[m, n] = init ? src : dst + src, on f32 images of n rounded up to 16 columns: the sums of segments."""
    columns = (n + NARROW - N1) // NARROW * NARROW
    for i in range(m):
        d, s = dst + i * ldc * N4, src + i * ldc * N4
        if init != N0:
            for k in range(columns):
                store_f32(d, k, load_f32(s, k))
        else:
            for k in range(columns):
                store_f32(d, k, load_f32(d, k) + load_f32(s, k))
