"""Elements by vectors: widening to the 4-byte words of L0A and L0B, results on their way out, transposing, copying.

`widen_box(dtype, target, ld, source, pitch, m, n)` reads m rows of n elements, `pitch` bytes apart, and writes rows of
words, `ld` bytes apart; floats become f32, integers i32. `widen1(dtype, target, source)` is one element.
`widen_line(dtype, n, target, ld, source, step, count, first, last, pad)` writes `count` rows of n (16, 4 or 1) words:
rows first … last - 1 hold the elements at source + row·step, the others the word `pad`.
`finish(dtype, dst, pitch, c, ldc, bias, step, m, n, scale, low, high)` writes clip(c·scale + bias) as f16 or f32 and
gives the largest bit pattern of a magnitude; NaN, and f16 that are infinite, are not what they should be. Bias is an
f32 for each column, `step` bytes from 16 of them to the next. It may read 15 columns too many.
`transpose16(target, pitch, source)` reads 16 × 16 words, one behind the other.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils, types

from .. import jit

_ir: Any = ir
_types: Any = types
_I8, _I16, _I32, _I64 = (_ir.IntType(n) for n in (8, 16, 32, 64))
_FLOAT, _HALF = _ir.FloatType(), _ir.HalfType()
_LANES = 16
SOURCES = ("f16", "bf16", "f32", "i8", "u8")
"""By the code of the type."""
_SIZES = {"f16": 2, "bf16": 2, "f32": 4, "i8": 1, "u8": 1}


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
    size = _SIZES[kind]
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


def _by_type(b: Any, kinds: Sequence[str], dtype: Any, emit: Callable[[str], Any], otherwise: Any = None) -> Any:
    """What `emit` gives for the kind that `dtype` is at run time; `otherwise` for none."""
    done, before = b.append_basic_block("done"), b.block
    choice = b.switch(dtype, done)
    found: list[tuple[Any, Any]] = [(otherwise, before)]
    for kind in kinds:
        block = b.append_basic_block(kind)
        choice.add_case(SOURCES.index(kind), block)
        b.position_at_end(block)
        found.append((emit(kind), b.block))
        b.branch(done)
    b.position_at_end(done)
    if otherwise is None:
        return None
    result = b.phi(otherwise.type)
    for value, block in found:
        result.add_incoming(value, block)
    return result


def _function(module: Any, name: str, result: Any, arguments: Sequence[Any], body: Callable[..., None]) -> Any:
    """A function of the module, made by `body(builder, *arguments)` if it is not there yet."""
    known = module.globals.get(name)
    if known is not None:
        return known
    function = _ir.Function(module, _ir.FunctionType(result, list(arguments)), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    function.attributes.add("nounwind")
    body(_ir.IRBuilder(function.append_basic_block("entry")), *function.args)
    return function


def _widen1(typing_context: Any, dtype: Any, target: Any, source: Any) -> Any:
    def code(context: Any, b: Any, signature: Any, args: Any) -> Any:
        _by_type(b, SOURCES, args[0], lambda kind: _put(b, _widen(b, kind, args[2], 1), args[1]))
        return context.get_dummy_value()

    return _types.void(_types.int64, _types.int64, _types.int64), code


def _emit_widen_box(kind: str) -> Callable[..., None]:
    """Rows of 16 and of 4 by loops of their own."""
    size = _SIZES[kind]

    def body(b: Any, target: Any, ld: Any, source: Any, pitch: Any, m: Any, n: Any) -> None:
        def run(to: Any, at: Any, start: Any, stop: Any, lanes: int) -> None:
            with cgutils.for_range(b, b.sub(stop, start), intp=_I64) as loop:
                j = b.add(start, loop.index)
                place = b.add(at, b.mul(j, _I64(lanes * size)))
                _put(b, _widen(b, kind, place, lanes), b.add(to, b.mul(j, _I64(4 * lanes))))

        for lanes in (_LANES, 4):
            with b.if_then(b.icmp_signed("==", n, _I64(lanes))):
                with cgutils.for_range(b, m, intp=_I64) as row:
                    place = b.add(source, b.mul(row.index, pitch))
                    _put(b, _widen(b, kind, place, lanes), b.add(target, b.mul(row.index, ld)))
                b.ret_void()
        whole = b.ashr(n, _I64(4))
        with cgutils.for_range(b, m, intp=_I64) as row:
            to, at = b.add(target, b.mul(row.index, ld)), b.add(source, b.mul(row.index, pitch))
            run(to, at, _I64(0), whole, _LANES)
            run(to, at, b.shl(whole, _I64(4)), n, 1)
        b.ret_void()

    return body


def _widen_box(typing_context: Any, dtype: Any, target: Any, ld: Any, source: Any, pitch: Any, m: Any, n: Any) -> Any:
    def code(context: Any, b: Any, signature: Any, args: Any) -> Any:
        def call(kind: str) -> None:
            body = _emit_widen_box(kind)
            b.call(_function(b.module, f"stepwell.widen.{kind}", _ir.VoidType(), [_I64] * 6, body), args[1:])

        _by_type(b, SOURCES, args[0], call)
        return context.get_dummy_value()

    return _types.void(*(_types.int64,) * 7), code


def _emit_widen_line(kind: str, lanes: int) -> Callable[..., None]:
    """Without branches: a row outside reads its own place, and a mask drops what it read."""

    def body(b: Any, target: Any, ld: Any, source: Any, step: Any, count: Any, first: Any, last: Any, pad: Any) -> None:
        outside, inner = _repeated(b, b.trunc(pad, _I32), lanes), b.sub(last, first)
        with cgutils.for_range(b, count, intp=_I64) as row:
            to = b.add(target, b.mul(row.index, ld))
            inside = b.icmp_unsigned("<", b.sub(row.index, first), inner)
            at = b.select(inside, b.add(source, b.mul(row.index, step)), to)
            mask = _repeated(b, b.sext(inside, _I32), lanes)
            words = b.and_(_widen(b, kind, at, lanes), mask)
            _put(b, b.or_(words, b.and_(outside, b.not_(mask))), to)
        b.ret_void()

    return body


def _widen_line(
    typing_context: Any, dtype: Any, n: Any, target: Any, ld: Any, source: Any, step: Any, count: Any, first: Any,
    last: Any, pad: Any,
) -> Any:  # fmt: skip
    def code(context: Any, b: Any, signature: Any, args: Any) -> Any:
        for lanes in (_LANES, 4, 1):

            def call(kind: str, lanes: int = lanes) -> None:
                name, body = f"stepwell.line.{kind}.{lanes}", _emit_widen_line(kind, lanes)
                b.call(_function(b.module, name, _ir.VoidType(), [_I64] * 8, body), args[2:])

            with b.if_then(b.icmp_signed("==", args[1], _I64(lanes))):
                _by_type(b, SOURCES, args[0], call)
        return context.get_dummy_value()

    return _types.void(*(_types.int64,) * 10), code


def _emit_finish(kind: str) -> Callable[..., None]:
    """One loop over vectors of 16 columns, then what is left of a row by way of a buffer."""
    size = _SIZES[kind]
    words, floats = _ir.VectorType(_I32, _LANES), _ir.VectorType(_FLOAT, _LANES)

    def body(
        b: Any, dst: Any, pitch: Any, c: Any, ldc: Any, bias: Any, step: Any, m: Any, n: Any, *limits: Any
    ) -> None:
        scale, low, high = (_repeated(b, x) for x in limits)
        largest = cgutils.alloca_once(b, words)
        buffer = b.ptrtoint(cgutils.alloca_once(b, floats), _I64)
        b.store(_ir.Constant(words, None), largest)

        def compute(at: Any, to: Any, plus: Any, kept: Any) -> None:
            x = b.fmul(b.bitcast(_widen(b, "f32", at, _LANES), floats), scale)
            x = b.fadd(x, b.bitcast(_widen(b, "f32", plus, _LANES), floats))
            x = b.select(b.fcmp_ordered("<=", x, low), low, x)
            x = b.select(b.fcmp_ordered(">=", x, high), high, x)
            bits = b.and_(b.bitcast(x, words), _splat(_LANES, _I32, 0x7FFFFFFF))
            if kept is not None:
                bits = b.select(kept, bits, _ir.Constant(words, None))
            seen = b.load(largest)
            b.store(b.select(b.icmp_unsigned(">", bits, seen), bits, seen), largest)
            if kind == "f16":
                x = b.bitcast(b.fptrunc(x, _ir.VectorType(_HALF, _LANES)), _ir.VectorType(_I16, _LANES))
            b.store(x, b.inttoptr(to, x.type.as_pointer()), align=size)

        whole, rest = b.ashr(n, _I64(4)), b.and_(n, _I64(15))
        lane = _ir.Constant(words, [_ir.Constant(_I32, i) for i in range(_LANES)])
        kept = b.icmp_signed("<", lane, _repeated(b, b.trunc(rest, _I32)))
        with cgutils.for_range(b, m, intp=_I64) as row:
            to, at = b.add(dst, b.mul(row.index, pitch)), b.add(c, b.mul(row.index, ldc))

            def places(j: Any, to: Any = to, at: Any = at) -> tuple[Any, Any, Any]:
                source, target = b.add(at, b.mul(j, _I64(64))), b.add(to, b.mul(j, _I64(16 * size)))
                return source, target, b.add(bias, b.mul(j, step))

            with cgutils.for_range(b, whole, intp=_I64) as block:
                compute(*places(block.index), None)
            with b.if_then(b.icmp_signed("!=", rest, _I64(0))):
                source, target, plus = places(whole)
                compute(source, buffer, plus, kept)
                _emit_copy(b, target, buffer, b.mul(rest, _I64(size)))
        b.ret(_largest(b, b.load(largest)))

    return body


def _finish(
    typing_context: Any, dtype: Any, dst: Any, pitch: Any, c: Any, ldc: Any, bias: Any, step: Any, m: Any, n: Any,
    scale: Any, low: Any, high: Any,
) -> Any:  # fmt: skip
    def code(context: Any, b: Any, signature: Any, args: Any) -> Any:
        def call(kind: str) -> Any:
            kinds = [_I64] * 8 + [_FLOAT] * 3
            return b.call(_function(b.module, f"stepwell.finish.{kind}", _I64, kinds, _emit_finish(kind)), args[1:])

        kinds = ("f16", "f32") if jit.HAS_F16C else ("f32",)  # without it LLVM has no cast to f16
        return _by_type(b, kinds, args[0], call, _I64(0))

    return _types.int64(*(_types.int64,) * 9, *(_types.float32,) * 3), code


def _repeated(b: Any, value: Any, lanes: int = _LANES) -> Any:
    vector = _ir.VectorType(value.type, lanes)
    first = b.insert_element(_ir.Constant(vector, _ir.Undefined), value, _I32(0))
    return b.shuffle_vector(first, first, _ir.Constant(_ir.VectorType(_I32, lanes), [0] * lanes))


def _largest(b: Any, vector: Any) -> Any:
    """Of the lanes, as i64."""
    found = b.extract_element(vector, _I32(0))
    for lane in range(1, _LANES):
        value = b.extract_element(vector, _I32(lane))
        found = b.select(b.icmp_unsigned(">", value, found), value, found)
    return b.zext(found, _I64)


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


def _emit_copy(b: Any, target: Any, source: Any, length: Any) -> None:
    pointer = _I8.as_pointer()
    copy = b.module.declare_intrinsic("llvm.memmove", [pointer, pointer, _I64])
    b.call(copy, [b.inttoptr(target, pointer), b.inttoptr(source, pointer), length, _ir.Constant(_ir.IntType(1), 0)])


def _copy(typing_context: Any, target: Any, source: Any, length: Any) -> Any:
    def code(context: Any, b: Any, signature: Any, args: Any) -> Any:
        _emit_copy(b, *args)
        return context.get_dummy_value()

    return _types.void(_types.int64, _types.int64, _types.int64), code


def _set(typing_context: Any, target: Any, value: Any, length: Any) -> Any:
    def code(context: Any, b: Any, signature: Any, args: Any) -> Any:
        pointer = _I8.as_pointer()
        fill = b.module.declare_intrinsic("llvm.memset", [pointer, _ir.IntType(64)])
        b.call(fill, [b.inttoptr(args[0], pointer), b.trunc(args[1], _I8), args[2], _ir.Constant(_ir.IntType(1), 0)])
        return context.get_dummy_value()

    return _types.void(_types.int64, _types.int64, _types.int64), code


widen1 = cast(Callable[[int, int, int], None], jit.intrinsic(_widen1))
widen_box = cast(Callable[[int, int, int, int, int, int, int], None], jit.intrinsic(_widen_box))
widen_line = cast(Callable[..., None], jit.intrinsic(_widen_line))
finish = cast(Callable[..., int], jit.intrinsic(_finish))
transpose16 = cast(Callable[[int, int, int], None], jit.intrinsic(_transpose))
copy_bytes = cast(Callable[[int, int, int], None], jit.intrinsic(_copy))
set_bytes = cast(Callable[[int, int, int], None], jit.intrinsic(_set))
