"""Elements by vectors: widening to the 4-byte words of L0A and L0B, transposing, copying.

`widen16(dtype, target, source)` reads 16 elements at a byte address and writes 16 words; `widen4`, `widen1` likewise.
Floats become f32, integers i32. `transpose16(target, pitch, source)` reads 16 × 16 words, one behind the other.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

from llvmlite import ir
from numba.core import types

from .. import jit

_ir: Any = ir
_types: Any = types
_I8, _I16, _I32 = (_ir.IntType(n) for n in (8, 16, 32))
_FLOAT, _HALF = _ir.FloatType(), _ir.HalfType()
_LANES = 16
SOURCES = ("f16", "bf16", "f32", "i8", "u8")
"""By the code of the type."""


def _splat(lanes: int, kind: Any, value: float) -> Any:
    return _ir.Constant(_ir.VectorType(kind, lanes), [_ir.Constant(kind, value)] * lanes)


def _widen_half(b: Any, value: Any, lanes: int) -> Any:
    """f16 to f32; without the instruction for it, by moving the bits and scaling by 2¹¹², which is exact."""
    if jit.HAS_F16C:
        half = b.bitcast(value, _ir.VectorType(_HALF, lanes))
        return b.bitcast(b.fpext(half, _ir.VectorType(_FLOAT, lanes)), _ir.VectorType(_I32, lanes))
    words, floats = _ir.VectorType(_I32, lanes), _ir.VectorType(_FLOAT, lanes)
    wide = b.zext(value, words)
    sign = b.shl(b.and_(wide, _splat(lanes, _I32, 0x8000)), _splat(lanes, _I32, 16))
    magnitude = b.shl(b.and_(wide, _splat(lanes, _I32, 0x7FFF)), _splat(lanes, _I32, 13))
    scaled = b.bitcast(b.fmul(b.bitcast(magnitude, floats), _splat(lanes, _FLOAT, 2.0**112)), words)
    special = b.icmp_unsigned(">=", magnitude, _splat(lanes, _I32, 0x0F800000))
    return b.or_(sign, b.select(special, b.or_(magnitude, _splat(lanes, _I32, 0x7F800000)), scaled))


def _widen(b: Any, kind: str, source: Any, lanes: int) -> Any:
    """The words of `lanes` elements at the address `source`."""
    size = {"f16": 2, "bf16": 2, "f32": 4}.get(kind, 1)
    element = {1: _I8, 2: _I16, 4: _I32}[size]
    value = b.load(b.inttoptr(source, _ir.VectorType(element, lanes).as_pointer()), align=size)
    words = _ir.VectorType(_I32, lanes)
    if kind == "f16":
        return _widen_half(b, value, lanes)
    if kind == "bf16":
        return b.shl(b.zext(value, words), _splat(lanes, _I32, 16))
    return value if kind == "f32" else b.sext(value, words) if kind == "i8" else b.zext(value, words)


def _put(b: Any, value: Any, target: Any) -> None:
    b.store(value, b.inttoptr(target, value.type.as_pointer()), align=4)


def _make_widen(lanes: int) -> Callable[[int, int, int], None]:
    def definition(typing_context: Any, dtype: Any, target: Any, source: Any) -> Any:
        def code(context: Any, b: Any, signature: Any, args: Any) -> Any:
            done = b.append_basic_block("widened")
            choice = b.switch(args[0], done)
            for number, kind in enumerate(SOURCES):
                with b.goto_block(block := b.append_basic_block(kind)):
                    _put(b, _widen(b, kind, args[2], lanes), args[1])
                    b.branch(done)
                choice.add_case(number, block)
            b.position_at_end(done)
            return context.get_dummy_value()

        return _types.void(_types.int64, _types.int64, _types.int64), code

    return jit.intrinsic(definition)


def _transposed(b: Any, vectors: Sequence[Any]) -> list[Any]:
    """The columns of a square of vectors, by exchanging ever larger blocks."""
    found = list(vectors)
    step = 1
    while step < len(found):
        low = [i if not i & step else i - step + _LANES for i in range(_LANES)]
        high = [i + step if not i & step else i + _LANES for i in range(_LANES)]
        masks = [_ir.Constant(_ir.VectorType(_I32, _LANES), [_ir.Constant(_I32, i) for i in m]) for m in (low, high)]
        for i in range(_LANES):
            if not i & step:
                pair = found[i], found[i + step]
                found[i], found[i + step] = (b.shuffle_vector(*pair, mask) for mask in masks)
        step *= 2
    return found


def _transpose(typing_context: Any, target: Any, pitch: Any, source: Any) -> Any:
    def code(context: Any, b: Any, signature: Any, args: Any) -> Any:
        to, pitch, at = args
        vectors: list[Any] = []
        for _ in range(_LANES):
            vectors.append(_widen(b, "f32", at, _LANES))
            at = b.add(at, _ir.Constant(at.type, 4 * _LANES))
        for column in _transposed(b, vectors):
            _put(b, column, to)
            to = b.add(to, pitch)
        return context.get_dummy_value()

    return _types.void(_types.int64, _types.int64, _types.int64), code


def _copy(typing_context: Any, target: Any, source: Any, length: Any) -> Any:
    def code(context: Any, b: Any, signature: Any, args: Any) -> Any:
        pointer = _I8.as_pointer()
        copy = b.module.declare_intrinsic("llvm.memmove", [pointer, pointer, _ir.IntType(64)])
        b.call(
            copy, [b.inttoptr(args[0], pointer), b.inttoptr(args[1], pointer), args[2], _ir.Constant(_ir.IntType(1), 0)]
        )
        return context.get_dummy_value()

    return _types.void(_types.int64, _types.int64, _types.int64), code


def _set(typing_context: Any, target: Any, value: Any, length: Any) -> Any:
    def code(context: Any, b: Any, signature: Any, args: Any) -> Any:
        pointer = _I8.as_pointer()
        fill = b.module.declare_intrinsic("llvm.memset", [pointer, _ir.IntType(64)])
        b.call(fill, [b.inttoptr(args[0], pointer), b.trunc(args[1], _I8), args[2], _ir.Constant(_ir.IntType(1), 0)])
        return context.get_dummy_value()

    return _types.void(_types.int64, _types.int64, _types.int64), code


widen16, widen4, widen1 = (_make_widen(lanes) for lanes in (16, 4, 1))
transpose16 = cast(Callable[[int, int, int], None], jit.intrinsic(_transpose))
copy_bytes = cast(Callable[[int, int, int], None], jit.intrinsic(_copy))
set_bytes = cast(Callable[[int, int, int], None], jit.intrinsic(_set))
