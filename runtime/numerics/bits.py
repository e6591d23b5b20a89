"""Operations of compiled code that numba has no name for: memory by address, bit patterns, selects, polynomials.

Each is a line or two of LLVM IR. Addresses are bytes (int64); an index counts elements, so that LLVM sees the
stride of a loop and vectorises it. In Python these functions do not run; their types here are for the reader.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba.core import types

from .. import jit

_ir: Any = ir
_types: Any = types

I1, I8, I16, I32, I64 = (_ir.IntType(n) for n in (1, 8, 16, 32, 64))
FLOAT, DOUBLE, HALF = _ir.FloatType(), _ir.DoubleType(), _ir.HalfType()

# Conversions by name: in compiled code a literal is f64, and `f32(0.5)` is the constant of type f32.
f32 = cast(Callable[[float], float], np.float32)
f64 = cast(Callable[[float], float], np.float64)
i32 = cast(Callable[[float], int], np.int32)
i64 = cast(Callable[[float], int], np.int64)
u64 = cast(Callable[[float], int], np.uint64)


def declare(builder: Any, name: str, *arguments: Any) -> Any:
    """Calls the LLVM intrinsic `name`, whose result has the type of its arguments."""
    kind = arguments[0].type
    function_type = _ir.FunctionType(kind, [kind] * len(arguments))
    known = builder.module.globals.get(name)
    return builder.call(known or _ir.Function(builder.module, function_type, name), arguments)


def address(builder: Any, base: Any, index: Any, element: Any) -> Any:
    """A pointer to element `index` of the array at byte address `base`."""
    return builder.gep(builder.inttoptr(base, element.as_pointer()), [index])


def _load(element: Any, result: Any) -> Callable[[int, int], Any]:
    def definition(typing_context: Any, base: Any, index: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = builder.load(address(builder, args[0], args[1], element))
            if element in (HALF, FLOAT):
                return value
            wide = context.get_value_type(result)
            extend = builder.sext if result.signed else builder.zext
            return value if wide == element else extend(value, wide)

        return result(_types.int64, _types.int64), code

    return jit.intrinsic(definition)


def _store(element: Any, operand: Any) -> Callable[[int, int, Any], None]:
    def definition(typing_context: Any, base: Any, index: Any, value: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = args[2]
            if value.type != element:
                value = builder.trunc(value, element)
            builder.store(value, address(builder, args[0], args[1], element))
            return context.get_dummy_value()

        return _types.void(_types.int64, _types.int64, operand), code

    return jit.intrinsic(definition)


load_f32: Callable[[int, int], float] = _load(FLOAT, _types.float32)
load_i64: Callable[[int, int], int] = _load(I64, _types.int64)
load_i32: Callable[[int, int], int] = _load(I32, _types.int32)
load_u16: Callable[[int, int], int] = _load(I16, _types.uint32)
load_i8: Callable[[int, int], int] = _load(I8, _types.int32)
load_u8: Callable[[int, int], int] = _load(I8, _types.uint32)
store_f32: Callable[[int, int, float], None] = _store(FLOAT, _types.float32)
store_i64: Callable[[int, int, int], None] = _store(I64, _types.int64)
store_i32: Callable[[int, int, int], None] = _store(I32, _types.int32)
store_i16: Callable[[int, int, int], None] = _store(I16, _types.int32)
store_i8: Callable[[int, int, int], None] = _store(I8, _types.int32)


def _convert(source: Any, target: Any, emit: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """An operation of one operand."""

    def definition(typing_context: Any, value: Any) -> Any:
        return target(source), lambda context, builder, signature, args: emit(builder, args[0])

    return jit.intrinsic(definition)


f32_bits: Callable[[float], int] = _convert(_types.float32, _types.int32, lambda b, x: b.bitcast(x, I32))
bits_f32: Callable[[int], float] = _convert(_types.int32, _types.float32, lambda b, x: b.bitcast(x, FLOAT))
f64_bits: Callable[[float], int] = _convert(_types.float64, _types.int64, lambda b, x: b.bitcast(x, I64))
bits_f64: Callable[[int], float] = _convert(_types.int64, _types.float64, lambda b, x: b.bitcast(x, DOUBLE))
half_extend: Callable[[int], float] = _convert(
    _types.uint32, _types.float32, lambda b, x: b.fpext(b.bitcast(b.trunc(x, I16), HALF), FLOAT)
)
half_truncate: Callable[[float], int] = _convert(
    _types.float32, _types.int32, lambda b, x: b.zext(b.bitcast(b.fptrunc(x, HALF), I16), I32)
)


def _unary(name: str) -> Callable[[float], float]:
    return _convert(_types.float32, _types.float32, lambda b, x: declare(b, f"llvm.{name}.f32", x))


absolute, floor, ceil, rint, sqrt = (_unary(name) for name in ("fabs", "floor", "ceil", "rint", "sqrt"))
sqrt64: Callable[[float], float] = _convert(_types.float64, _types.float64, lambda b, x: declare(b, "llvm.sqrt.f64", x))


def _binary(operand: Any, emit: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def definition(typing_context: Any, x: Any, y: Any) -> Any:
        return operand(operand, operand), lambda context, builder, signature, args: emit(builder, *args)

    return jit.intrinsic(definition)


maximum: Callable[[float, float], float] = _binary(_types.float32, lambda b, x, y: declare(b, "llvm.maximum.f32", x, y))
minimum: Callable[[float, float], float] = _binary(_types.float32, lambda b, x, y: declare(b, "llvm.minimum.f32", x, y))
copysign: Callable[[float, float], float] = _binary(
    _types.float32, lambda b, x, y: declare(b, "llvm.copysign.f32", x, y)
)

# i32 arithmetic modulo 2³²: numba's own operators widen to i64, which halves the width of a vectorised loop.
add32: Callable[[int, int], int] = _binary(_types.int32, lambda b, x, y: b.add(x, y))
sub32: Callable[[int, int], int] = _binary(_types.int32, lambda b, x, y: b.sub(x, y))
and32: Callable[[int, int], int] = _binary(_types.int32, lambda b, x, y: b.and_(x, y))
or32: Callable[[int, int], int] = _binary(_types.int32, lambda b, x, y: b.or_(x, y))
shl32: Callable[[int, int], int] = _binary(_types.int32, lambda b, x, y: b.shl(x, y))
shr32: Callable[[int, int], int] = _binary(_types.int32, lambda b, x, y: b.ashr(x, y))
sdiv64: Callable[[int, int], int] = _binary(_types.int64, lambda b, x, y: b.sdiv(x, y))
srem64: Callable[[int, int], int] = _binary(_types.int64, lambda b, x, y: b.srem(x, y))

BEYOND = i64(1 << 40)


@jit.inline
def times(x: int, y: int) -> int:
    """x·y modulo 2³² as an i32 where that is the product, else `BEYOND` more: so products of any length are known to
    have left 32 bits, unless a factor is 0."""
    low, other = i64(i32(x)), i64(i32(y))
    exact = low * other
    result = i64(i32(exact))
    left = (exact != result) | ((x != low) & (y != i64(0))) | ((y != other) & (x != i64(0)))
    return result + (BEYOND if left else i64(0))


def _choose(kind: Any) -> Callable[[bool, Any, Any], Any]:
    def definition(typing_context: Any, condition: Any, x: Any, y: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.select(args[0], args[1], args[2])

        return kind(_types.boolean, kind, kind), code

    return jit.intrinsic(definition)


# Both values are computed: no branch, so that a loop around it vectorises.
select: Callable[[bool, float, float], float] = _choose(_types.float32)
select32: Callable[[bool, int, int], int] = _choose(_types.int32)
select64: Callable[[bool, float, float], float] = _choose(_types.float64)


def polynomial(*coefficients: float, double: bool = False) -> Callable[[float], float]:
    """x ↦ c₀ + c₁x + c₂x² + … by Horner's rule, each step a rounded product and a rounded sum."""
    kind, constant = (_types.float64, DOUBLE) if double else (_types.float32, FLOAT)
    values = coefficients if double else tuple(float(np.float32(c)) for c in coefficients)

    def emit(builder: Any, x: Any) -> Any:
        result = _ir.Constant(constant, values[-1])
        for value in reversed(values[:-1]):
            result = builder.fadd(builder.fmul(result, x), _ir.Constant(constant, value))
        return result

    return _convert(kind, kind, emit)
