"""What the functions of `functions.py` compute: one row of `IMPLEMENTATIONS` each.

A row gives the function of f32 values and, where integers and truth values have one of their own, that of i64 values.
`apply_f32` and `apply_i64` are made from the table: per row a loop over contiguous arrays, chosen by code at run time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types

from .. import jit
from . import scalar
from .bits import (
    FLOAT,
    HALF,
    I32,
    I64,
    absolute,
    ceil,
    floor,
    i32,
    i64,
    load_f32,
    maximum,
    minimum,
    rint,
    sdiv64,
    select,
    sqrt,
    srem64,
    store_f32,
    times,
)
from .convert import largest_bits
from .functions import FN, FUNCTIONS, RFN

__all__ = ["BINARY_MASK", "FN", "IMPLEMENTATIONS", "REAL_MASK", "RFN", "TERNARY_MASK", "WHOLE_MASK", "Implementation",
           "apply_f32", "apply_i64"]  # fmt: skip

_ir: Any = ir
_types: Any = types


@dataclass(frozen=True)
class Implementation:
    """Of operands a, b, c, in f32 (`real`) and in i64 (`whole`); None: not defined.

    `repair` recomputes, after the loop and for `sin` and `cos` alone, what the vectorised form gets wrong."""

    code: FN
    real: Any
    whole: Any
    doc: str
    repair: Any = None

    @property
    def name(self) -> str:
        """As in IR and assembly: `add`."""
        return self.code.name.lower()

    @property
    def arity(self) -> int:
        """The number of operands."""
        return FUNCTIONS[self.name].arity

    @property
    def is_predicate(self) -> bool:
        """Whether the result is 0 or 1."""
        return FN.EQ <= self.code <= FN.GE or self.code in (FN.NOT, FN.ISNAN, FN.ISINF)


ZERO, ONE = scalar.ZERO, scalar.ONE
NONE, UNIT = i64(0), i64(1)
REDUCIBLE_BITS = i32(int(np.float32(scalar.REDUCIBLE).view(np.int32)))


@jit.inline
def _truth(condition: bool) -> float:
    return select(condition, ONE, ZERO)


@jit.inline
def _whole_div(a: int, b: int) -> int:
    """Truncates toward zero; 0 when b is 0."""
    safe = UNIT if b == NONE or b == -UNIT else b
    return NONE if b == NONE else (-a if b == -UNIT else sdiv64(a, safe))


@jit.inline
def _whole_fmod(a: int, b: int) -> int:
    """The remainder with the sign of a; 0 when b is 0."""
    safe = UNIT if b == NONE or b == -UNIT else b
    return srem64(a, safe)


@jit.inline
def _whole_mod(a: int, b: int) -> int:
    """The remainder with the sign of b; 0 when b is 0."""
    rest = _whole_fmod(a, b)
    return rest + b if rest != NONE and (rest < NONE) != (b < NONE) else rest


@jit.inline
def _whole_pow(a: int, b: int) -> int:
    """a to the power b as `times` has it; with b negative, 1 divided by the power. Slow."""
    result, base, left = UNIT, a, abs(b)
    while left > NONE:
        if left & UNIT:
            result = times(result, base)
        base = times(base, base)
        left >>= UNIT
    if b >= NONE:
        return result
    return (a if b & UNIT else UNIT) if a == UNIT or a == -UNIT else NONE


@jit.inline
def _repair(a: int, r: int, n: int, quadrant: int) -> None:
    if largest_bits(a, n) <= REDUCIBLE_BITS:
        return
    for k in range(n):
        x = load_f32(a, k)
        if scalar.REDUCIBLE < absolute(x) < scalar.INF:
            store_f32(r, k, scalar.turn_large(x, quadrant))


@jit.inline
def _repair_sin(a: int, r: int, n: int) -> None:
    _repair(a, r, n, i64(0))


@jit.inline
def _repair_cos(a: int, r: int, n: int) -> None:
    _repair(a, r, n, i64(1))


F = jit.inline

IMPLEMENTATIONS: tuple[Implementation, ...] = (
    Implementation(FN.COPY, F(lambda a: a), F(lambda a: a), "a, cast to the type of the result"),
    Implementation(FN.ADD, F(lambda a, b: a + b), F(lambda a, b: a + b), "a + b"),
    Implementation(FN.SUB, F(lambda a, b: a - b), F(lambda a, b: a - b), "a − b"),
    Implementation(FN.MUL, F(lambda a, b: a * b), F(lambda a, b: a * b), "a · b"),
    Implementation(FN.DIV, F(lambda a, b: a / b), _whole_div, "a ÷ b; of integers truncated, 0 when b is 0"),
    Implementation(FN.MAX, F(lambda a, b: maximum(a, b)), F(lambda a, b: max(a, b)), "the larger; NaN if any is"),
    Implementation(FN.MIN, F(lambda a, b: minimum(a, b)), F(lambda a, b: min(a, b)), "the smaller; NaN if any is"),
    Implementation(FN.MOD, scalar.mod, _whole_mod, "the remainder with the sign of b"),
    Implementation(FN.POW, scalar.pow, _whole_pow, "a to the power b; of integers modulo 2ⁿ"),
    Implementation(FN.EQ, F(lambda a, b: _truth(a == b)), F(lambda a, b: i64(a == b)), "a = b"),
    Implementation(FN.NE, F(lambda a, b: _truth(a != b)), F(lambda a, b: i64(a != b)), "a ≠ b; true if any is NaN"),
    Implementation(FN.LT, F(lambda a, b: _truth(a < b)), F(lambda a, b: i64(a < b)), "a < b"),
    Implementation(FN.LE, F(lambda a, b: _truth(a <= b)), F(lambda a, b: i64(a <= b)), "a ≤ b"),
    Implementation(FN.GT, F(lambda a, b: _truth(a > b)), F(lambda a, b: i64(a > b)), "a > b"),
    Implementation(FN.GE, F(lambda a, b: _truth(a >= b)), F(lambda a, b: i64(a >= b)), "a ≥ b"),
    Implementation(FN.AND, None, F(lambda a, b: a & b), "both are true; of integers bit by bit"),
    Implementation(FN.OR, None, F(lambda a, b: a | b), "any is true; of integers bit by bit"),
    Implementation(FN.XOR, None, F(lambda a, b: a ^ b), "one of them is true; of integers bit by bit"),
    Implementation(FN.NOT, None, F(lambda a: i64(a == NONE)), "a is false"),
    Implementation(FN.WHERE, F(lambda a, b, c: select(a != ZERO, b, c)), F(lambda a, b, c: b if a != NONE else c),
                   "b where a is true, else c; a is b8 or an integer"),
    Implementation(FN.CLIP, F(lambda a, b, c: minimum(maximum(a, b), c)), F(lambda a, b, c: min(max(a, b), c)),
                   "min(max(a, b), c)"),
    Implementation(FN.AFFINE, F(lambda a, b, c: a * b + c), F(lambda a, b, c: a * b + c), "a · b + c, rounded twice"),
    Implementation(FN.NEG, F(lambda a: -a), F(lambda a: -a), "−a"),
    Implementation(FN.ABS, F(lambda a: absolute(a)), F(lambda a: a if a >= NONE else -a), "|a|"),
    Implementation(FN.RELU, F(lambda a: maximum(a, ZERO)), F(lambda a: max(a, NONE)), "max(a, +0)"),
    Implementation(FN.SQRT, F(lambda a: sqrt(a)), None, "√a"),
    Implementation(FN.RSQRT, F(lambda a: ONE / sqrt(a)), None, "1 ÷ √a, rounded twice"),
    Implementation(FN.RECIPROCAL, F(lambda a: ONE / a), None, "1 ÷ a"),
    Implementation(FN.EXP, scalar.exp, None, "eᵃ"),
    Implementation(FN.LOG, scalar.log, None, "ln a"),
    Implementation(FN.SIN, scalar.sin_small, None, "sin a", _repair_sin),
    Implementation(FN.COS, scalar.cos_small, None, "cos a", _repair_cos),
    Implementation(FN.TANH, scalar.tanh, None, "tanh a"),
    Implementation(FN.ERF, scalar.erf, None, "erf a"),
    Implementation(FN.SIGMOID, scalar.sigmoid, None, "1 ÷ (1 + e⁻ᵃ)"),
    Implementation(FN.SILU, scalar.silu, None, "a · sigmoid(a)"),
    Implementation(FN.GELU, scalar.gelu, None, "(a · ½) · (1 + erf(a · √½))"),
    Implementation(FN.HARDSIGMOID, scalar.hardsigmoid, None, "max(0, min(1, b · a + c))"),
    Implementation(FN.HARDSWISH, scalar.hardswish, None, "a · (max(0, min(6, a + 3)) · f32(1/6))"),
    Implementation(FN.SOFTPLUS, scalar.softplus, None, "ln(1 + eᵃ)"),
    Implementation(FN.ELU, scalar.elu, None, "a above 0, else b · (eᵃ − 1)"),
    Implementation(FN.LEAKYRELU, scalar.leakyrelu, None, "a from 0 on, else b · a"),
    Implementation(FN.FLOOR, F(lambda a: floor(a)), F(lambda a: a), "the largest integer ≤ a"),
    Implementation(FN.CEIL, F(lambda a: ceil(a)), F(lambda a: a), "the smallest integer ≥ a"),
    Implementation(FN.ROUND, F(lambda a: rint(a)), F(lambda a: a), "the nearest integer, ties to even"),
    Implementation(FN.SIGN, scalar.sign, F(lambda a: i64(a > NONE) - i64(a < NONE)), "−1, +0 or 1; NaN of NaN"),
    Implementation(FN.ISNAN, F(lambda a: _truth(a != a)), F(lambda a: NONE), "a is NaN"),
    Implementation(FN.ISINF, F(lambda a: _truth(absolute(a) == scalar.INF)), F(lambda a: NONE), "a is ±inf"),
    Implementation(FN.FMOD, scalar.fmod, _whole_fmod, "the remainder with the sign of a"),
    Implementation(FN.ATAN, scalar.atan, None, "arctan a"),
    Implementation(FN.ASINH, scalar.asinh, None, "arsinh a"),
    Implementation(FN.SINH, scalar.sinh, None, "sinh a"),
)  # fmt: skip

assert all(row.code == code for code, row in enumerate(IMPLEMENTATIONS)), "IMPLEMENTATIONS is in the order of FN"

# Bit n is set if function n has a form for integers, or has only that.
WHOLE_MASK = sum(1 << row.code for row in IMPLEMENTATIONS if row.whole is not None)
BINARY_MASK = sum(1 << row.code for row in IMPLEMENTATIONS if row.arity >= 2)
TERNARY_MASK = sum(1 << row.code for row in IMPLEMENTATIONS if row.arity == 3)
REAL_MASK = sum(1 << row.code for row in IMPLEMENTATIONS if row.real is not None)


def _resolve(typing_context: Any, dispatcher: Any, operands: tuple[Any, ...]) -> Any:
    """Compiles `dispatcher` for operands of these types, to its library and description."""
    typing_context.resolve_value_type(dispatcher).get_call_type(typing_context, operands, {})
    return dispatcher.overloads[operands]


def _call(context: Any, builder: Any, compiled: Any, operands: tuple[Any, ...], args: list[Any]) -> Any:
    context.active_code_library.add_linking_library(compiled.library)
    function = context.declare_function(builder.module, compiled.fndesc)
    _, value = context.call_conv.call_function(builder, function, compiled.signature.return_type, operands, args)
    return value


def _emit_loop(
    context: Any, module: Any, row: Implementation, element: Any, kind: Any, compiled: Any, repair: Any
) -> Any:
    """A function r[i] = f(a[i], b[i], c[i]) for i < n whose arrays do not overlap."""
    pointer = element.as_pointer()
    function = _ir.Function(
        module, _ir.FunctionType(_ir.VoidType(), [pointer] * 4 + [I64]), f"stepwell.{row.name}.{element}"
    )
    function.linkage = "internal"
    function.attributes.add("noinline")
    function.attributes.add("nounwind")
    if jit.HAS_AVX512:  # LLVM prefers vectors of 256 bits otherwise
        set.add(function.attributes, '"prefer-vector-width"="512"')
    for argument in function.args[:4]:
        argument.add_attribute("noalias")
    builder = _ir.IRBuilder(function.append_basic_block("entry"))
    arrays, result, count = function.args[: row.arity], function.args[3], function.args[4]
    with cgutils.for_range(builder, count, intp=I64) as loop:
        args = [builder.load(builder.gep(array, [loop.index])) for array in arrays]
        value = _call(context, builder, compiled, (kind,) * row.arity, args)
        builder.store(value, builder.gep(result, [loop.index]))
    if repair is not None:
        ends = [builder.ptrtoint(arrays[0], I64), builder.ptrtoint(result, I64), count]
        _call(context, builder, repair, (_types.int64,) * 3, ends)
    builder.ret_void()
    return function


def _make_apply(kind: Any, element: Any, implementation: Callable[[Implementation], Any]) -> Any:
    """An operation `apply(fn, a, b, c, r, n)` on contiguous arrays at byte addresses; r overlaps none of the others."""
    rows = [row for row in IMPLEMENTATIONS if implementation(row) is not None]

    def definition(typing_context: Any, fn: Any, a: Any, b: Any, c: Any, r: Any, n: Any) -> Any:
        compiled = [_resolve(typing_context, implementation(row), (kind,) * row.arity) for row in rows]
        repairs = [
            _resolve(typing_context, row.repair, (_types.int64,) * 3) if row.repair and kind == _types.float32 else None
            for row in rows
        ]

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointers = [builder.inttoptr(arg, element.as_pointer()) for arg in args[1:5]]
            end = builder.append_basic_block("applied")
            choice = builder.switch(args[0], end)
            for row, function, repair in zip(rows, compiled, repairs, strict=True):
                loop = _emit_loop(context, builder.module, row, element, kind, function, repair)
                block = builder.append_basic_block(row.name)
                choice.add_case(int(row.code), block)
                builder.position_at_end(block)
                builder.call(loop, [*pointers, args[5]])
                builder.branch(end)
            builder.position_at_end(end)
            return context.get_dummy_value()

        return _types.void(*(_types.int64,) * 6), code

    return jit.intrinsic(definition)


Apply = Callable[[int, int, int, int, int, int], None]
apply_f32: Apply = _make_apply(_types.float32, FLOAT, lambda row: row.real)
apply_i64: Apply = _make_apply(_types.int64, I64, lambda row: row.whole)


DIRECT = (FN.COPY, FN.ADD, FN.SUB, FN.MUL, FN.MAX, FN.MIN, FN.RELU) if jit.HAS_F16C else ()
"""Functions so cheap that conversions and passes over memory are what they cost; none where LLVM cannot cast f16."""
DIRECT_MASK = sum(1 << code for code in DIRECT)


def _emit_direct(context: Any, module: Any, row: Implementation, halves: tuple[bool, ...], compiled: Any) -> Any:
    """A function r[i] = f(a[i], b[i]) for i < n, which gives the largest bit pattern of |r|; operands are f16 where
    `halves` says so, else f32."""
    name = f"stepwell.{row.name}.{'.'.join('f16' if half else 'f32' for half in halves)}"
    pointers = [(HALF if half else FLOAT).as_pointer() for half in halves]
    function = _ir.Function(module, _ir.FunctionType(I32, [*pointers, FLOAT.as_pointer(), I64]), name)
    function.linkage = "internal"
    for attribute in ("noinline", "nounwind", *(['"prefer-vector-width"="512"'] if jit.HAS_AVX512 else [])):
        set.add(function.attributes, attribute)
    *arrays, result, count = function.args
    for argument in (*arrays, result):
        argument.add_attribute("noalias")
    builder = _ir.IRBuilder(function.append_basic_block("entry"))
    largest = cgutils.alloca_once_value(builder, I32(0))
    with cgutils.for_range(builder, count, intp=I64) as loop:
        args = [builder.load(builder.gep(array, [loop.index])) for array in arrays]
        args = [builder.fpext(x, FLOAT) if half else x for x, half in zip(args, halves, strict=True)]
        value = _call(context, builder, compiled, (_types.float32,) * row.arity, args)
        builder.store(value, builder.gep(result, [loop.index]))
        bits, seen = builder.and_(builder.bitcast(value, I32), I32(0x7FFFFFFF)), builder.load(largest)
        builder.store(builder.select(builder.icmp_signed(">", bits, seen), bits, seen), largest)
    builder.ret(builder.load(largest))
    return function


def _make_direct() -> Any:
    """An operation `apply_direct(fn, a, a_half, b, b_half, r, n)` for the functions of `DIRECT_MASK`, as `_emit_direct`
    has it."""

    def definition(typing_context: Any, fn: Any, a: Any, a_half: Any, b: Any, b_half: Any, r: Any, n: Any) -> Any:
        rows = [IMPLEMENTATIONS[code] for code in DIRECT]
        compiled = [_resolve(typing_context, row.real, (_types.float32,) * row.arity) for row in rows]

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            fn, a, a_half, b, b_half, r, n = args
            halves = builder.add(builder.shl(a_half, I64(1)), b_half)
            end, before = builder.append_basic_block("applied"), builder.block
            choice = builder.switch(builder.add(builder.shl(fn, I64(2)), halves), end)
            found = [(I32(-1), before)]
            for row, function in zip(rows, compiled, strict=True):
                for number in range(4):
                    kinds = (number & 2 != 0, number & 1 != 0)[: row.arity]
                    if row.arity == 1 and number & 1:
                        continue
                    loop = _emit_direct(context, builder.module, row, kinds, function)
                    block = builder.append_basic_block(row.name)
                    choice.add_case(I64(int(row.code) * 4 + number), block)
                    builder.position_at_end(block)
                    operands = [a, b][: row.arity]
                    pointers = [(HALF if half else FLOAT).as_pointer() for half in kinds]
                    places = [builder.inttoptr(x, kind) for x, kind in zip(operands, pointers, strict=True)]
                    value = builder.call(loop, [*places, builder.inttoptr(r, FLOAT.as_pointer()), n])
                    found.append((value, block))
                    builder.branch(end)
            builder.position_at_end(end)
            result = builder.phi(I32)
            for value, block in found:
                result.add_incoming(value, block)
            return result

        return _types.int32(*(_types.int64,) * 7), code

    return jit.intrinsic(definition)


apply_direct: Callable[[int, int, int, int, int, int, int], int] = _make_direct()
