"""A slow second implementation of `docs/numerics.md`, sections 3 to 7, from that page alone: numpy, ml_dtypes, float64.

It shares no code with `runtime/numerics`. Everything is exact to the bit but for the functions in `APPROXIMATE`,
which are float64 values with the error, in units of the last place of f32, that the page allows.
"""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

F16, BF16, F32 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)
FLOATS = (F16, BF16, F32)
# precision, exponent of the smallest step, largest finite value, bits of the canonical NaN
_FORMATS: dict[np.dtype[Any], tuple[int, int, float, Any]] = {
    F16: (11, -24, 65504.0, np.uint16(0x7E00)),
    BF16: (8, -133, float.fromhex("0x1.fep127"), np.uint16(0x7FC0)),
    F32: (24, -149, float.fromhex("0x1.fffffep127"), np.uint32(0x7FC00000)),
}


def is_float(dtype: np.dtype[Any]) -> bool:
    return dtype in FLOATS


def _int_to_float(value: int, precision: int) -> float:
    """An integer of any size, rounded to `precision` bits."""
    drop = max(0, abs(value).bit_length() - precision)
    kept, rest = divmod(abs(value), 1 << drop)
    half = (1 << drop) >> 1
    kept += drop > 0 and (rest > half or (rest == half and kept % 2 == 1))
    return math.copysign(float(kept << drop), value)


def _to_float(x: Array, dtype: np.dtype[Any]) -> Array:
    precision, smallest, largest, nan = _FORMATS[dtype]
    if is_float(x.dtype):
        wide = x.astype(np.float64)
        _, exponent = np.frexp(np.where(np.isfinite(wide), wide, 0.0))
        step = np.maximum(exponent - precision, smallest)
        rounded = np.where(np.isfinite(wide), np.ldexp(np.rint(np.ldexp(wide, -step)), step), wide)
    else:
        rounded = np.array([_int_to_float(int(v), precision) for v in x.ravel()], np.float64).reshape(x.shape)
    rounded = np.where(np.abs(rounded) > largest, np.copysign(np.inf, rounded), rounded)
    result = rounded.astype(np.float32).astype(dtype)
    result.view(nan.dtype)[np.isnan(rounded)] = nan
    return result


def cast(x: Array, dtype: np.dtype[Any] | type) -> Array:
    """Section 3."""
    to = np.dtype(dtype)
    x = np.atleast_1d(x)
    with np.errstate(all="ignore"):
        if to == np.bool_:
            return (x.astype(np.float64) != 0) if is_float(x.dtype) else x != 0
        if is_float(to):
            return _to_float(x, to)
        if not is_float(x.dtype):
            return x.astype(np.int64).astype(to)
        info = np.iinfo(to)
        values = [0 if v != v else int(max(info.min, min(info.max, v))) for v in x.astype(np.float64).ravel().tolist()]
        return np.array(values, to).reshape(x.shape)


def _wide(x: Array) -> Array:
    return x.astype(np.float32)


def _max(a: Array, b: Array) -> Array:
    larger = np.where((a > b) | ((a == b) & ~np.signbit(a)), a, b)
    return np.where(np.isnan(a) | np.isnan(b), np.float32(np.nan), larger).astype(np.float32)


def _min(a: Array, b: Array) -> Array:
    return -_max(-a, -b)


def _remainder(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.fmod(a, b).astype(np.float32)


def _modulo(a: Array, b: Array) -> Array:
    rest = _remainder(a, b)
    moved = np.where((rest != 0) & (np.signbit(rest) != np.signbit(b)), rest + b, rest)
    return np.where(rest == 0, np.copysign(rest, b), moved).astype(np.float32)


_ONE, _ZERO = np.float32(1), np.float32(0)

# f32 arrays to an f32 or boolean array, to the bit.
EXACT: dict[str, Callable[..., Array]] = {
    "copy": lambda a: a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "max": _max,
    "min": _min,
    "mod": _modulo,
    "fmod": _remainder,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "where": lambda a, b, c: np.where(a != 0, b, c),
    "clip": lambda a, b, c: _min(_max(a, b), c),
    "affine": lambda a, b, c: a * b + c,
    "neg": lambda a: -a,
    "abs": np.abs,
    "relu": lambda a: _max(a, np.zeros_like(a)),
    "sqrt": np.sqrt,
    "rsqrt": lambda a: _ONE / np.sqrt(a),
    "reciprocal": lambda a: _ONE / a,
    "hardsigmoid": lambda a, b, c: _max(np.zeros_like(a), _min(np.ones_like(a), b * a + c)),
    "hardswish": lambda a: (
        a * (_max(np.zeros_like(a), _min(np.full_like(a, 6), a + np.float32(3))) * np.float32(1 / 6))
    ),
    "leakyrelu": lambda a, b: np.where(a >= 0, a, b * a),
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "sign": lambda a: np.where(np.isnan(a), a, np.where(a > 0, _ONE, np.where(a < 0, -_ONE, _ZERO))),
    "isnan": np.isnan,
    "isinf": np.isinf,
}

_erf: Callable[[Array], Array] = np.vectorize(math.erf, otypes=[np.float64])
_ROOT_HALF = math.sqrt(0.5)


def _sigmoid(a: Array) -> Array:
    return 1 / (1 + np.exp(-a))


# float64 arrays to float64, with the largest error in units of the last place of f32 and an absolute one.
# silu and gelu are products with a factor that has an error of its own near 0: theirs is absolute, relative to x.
APPROXIMATE: dict[str, tuple[Callable[..., Array], float, float]] = {
    "exp": (np.exp, 1.0, 0.0),
    "log": (np.log, 1.0, 0.0),
    "sin": (np.sin, 0.51, 0.0),
    "cos": (np.cos, 0.51, 0.0),
    "tanh": (np.tanh, 1.5, 0.0),
    "erf": (_erf, 1.1, 0.0),
    "sinh": (np.sinh, 0.51, 0.0),
    "asinh": (np.arcsinh, 0.51, 0.0),
    "atan": (np.arctan, 0.51, 0.0),
    "pow": (np.power, 0.51, 0.0),
    "sigmoid": (_sigmoid, 2.5, 2.0**-127),
    "silu": (lambda a: a * _sigmoid(a), 3.0, 2.0**-120),
    "gelu": (lambda a: a * 0.5 * (1 + _erf(a * _ROOT_HALF)), 4.0, 2.0**-21),
    "softplus": (lambda a: np.maximum(a, 0) + np.log1p(np.exp(-np.abs(a))), 2.0, 0.0),
    "elu": (lambda a, b: np.where(a > 0, a, b * np.expm1(np.minimum(a, 0))), 2.5, 0.0),
}


def ulp(x: Array) -> Array:
    """The unit in the last place of f32 at float64 x."""
    _, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    return np.ldexp(1.0, np.maximum(exponent - 24, -149))


def elementwise(name: str, *operands: Array, dtype: np.dtype[Any] | type) -> Array:
    """Section 4 on float operands: widen, compute in f32, cast once."""
    with np.errstate(all="ignore"):
        result = EXACT[name](*np.broadcast_arrays(*(_wide(x) for x in operands)))
        return cast(result, dtype)


def _truncated(a: int, b: int) -> int:
    return 0 if b == 0 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


def _power(a: int, b: int) -> int:
    return a**b if b >= 0 else _truncated(1, a ** min(-b, 2 - b % 2))


WHOLE: dict[str, Callable[..., int]] = {
    "copy": lambda a: a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _truncated,
    "max": max,
    "min": min,
    "mod": lambda a, b: a % b if b else 0,
    "fmod": lambda a, b: a - b * _truncated(a, b) if b else 0,
    "pow": _power,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "not": lambda a: a == 0,
    "where": lambda a, b, c: b if a else c,
    "clip": lambda a, b, c: min(max(a, b), c),
    "affine": lambda a, b, c: a * b + c,
    "neg": lambda a: -a,
    "abs": lambda a: abs(a),
    "relu": lambda a: max(a, 0),
    "floor": lambda a: a,
    "ceil": lambda a: a,
    "round": lambda a: a,
    "sign": lambda a: (a > 0) - (a < 0),
    "isnan": lambda a: 0,
    "isinf": lambda a: 0,
}


def whole(name: str, *operands: Array, dtype: np.dtype[Any] | type) -> Array:
    """Section 4 on integers: exact, then modulo 2ⁿ (to b8: not zero)."""
    to = np.dtype(dtype)
    arrays = np.broadcast_arrays(*operands)
    values = [int(WHOLE[name](*(int(v) for v in row))) for row in zip(*(x.ravel() for x in arrays), strict=True)]
    if to == np.bool_:
        return np.array([v != 0 for v in values]).reshape(arrays[0].shape)
    return np.array([v & 0xFFFFFFFFFFFFFFFF for v in values], np.uint64).astype(to).reshape(arrays[0].shape)


def fma(a: Array, b: Array, c: Array) -> Array:
    """a·b + c of f32, rounded once: the product is exact in f64, where the sum is rounded to odd before it goes to
    f32."""
    with np.errstate(all="ignore"):
        x, y = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
        total = x + y
        back = total - x
        error = (x - (total - back)) + (y - back)
        even = (total.view(np.int64) & 1) == 0
        odd = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
        exact = (error == 0) | ~np.isfinite(total) | ~even
        return np.where(exact, total, odd).astype(np.float32)


def contract(a: Array, b: Array) -> Array:
    """Section 5: the f32 sums of a[m, k] · b[k, n]."""
    if not is_float(a.dtype):
        return (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
    a, b = _wide(a), _wide(b)
    total = None
    for start in range(0, max(a.shape[1], 1), 2048):
        part = np.zeros((a.shape[0], b.shape[1]), np.float32)
        for k in range(start, min(start + 2048, a.shape[1])):
            part = fma(a[:, k, None], b[k], part)
        total = part if total is None else total + part
    assert total is not None
    return total


def matmul(a: Array, b: Array, bias: Array | None, dtype: np.dtype[Any] | type) -> Array:
    """a[m, k] · b[k, n] + bias[n]."""
    total = contract(a, b)
    return cast(total if bias is None else total + bias.astype(total.dtype), dtype)


def conv2d(
    x: Array, w: Array, strides: Sequence[int], pads: Sequence[int], dilations: Sequence[int], groups: int,
    dtype: np.dtype[Any] | type,
) -> Array:  # fmt: skip
    """x[n, h, w, c] * w[kh, kw, c / groups, o], one position and one output channel after the other."""
    kh, kw, size, outputs = w.shape
    block = 4 if size <= 4 else 16
    depthwise = size == 1 and groups == x.shape[3] and groups > 1
    padded = np.pad(x, ((0, 0), (pads[0], pads[2]), (pads[1], pads[3]), (0, 0)))
    oh = (padded.shape[1] - dilations[0] * (kh - 1) - 1) // strides[0] + 1
    ow = (padded.shape[2] - dilations[1] * (kw - 1) - 1) // strides[1] + 1
    out = np.empty((x.shape[0], oh, ow, outputs), np.float32 if is_float(x.dtype) else np.int32)
    for o in range(outputs):
        group = o // (outputs // groups)
        rows: list[Array] = []
        column: list[Any] = []
        channels = range(1) if depthwise else range(-(-size // block) * block)
        for c1 in range(0, len(channels), block):
            for i in range(kh):
                for j in range(kw):
                    for c in channels[c1 : c1 + block]:
                        top, left = i * dilations[0], j * dilations[1]
                        ys = slice(top, top + (oh - 1) * strides[0] + 1, strides[0])
                        xs = slice(left, left + (ow - 1) * strides[1] + 1, strides[1])
                        tap = padded[:, ys, xs, group * size + c] if c < size else np.zeros(out.shape[:3], x.dtype)
                        rows.append(tap.ravel())
                        column.append(w[i, j, c, o] if c < size else w.dtype.type(0))
        sums = contract(np.stack(rows, axis=1), np.array(column, w.dtype)[:, None])
        out[..., o] = sums.reshape(out.shape[:3])
    return cast(out, dtype)


def _combine(name: str, real: bool) -> tuple[Callable[[Array, Array], Array], Any]:
    table: dict[str, tuple[Callable[[Array, Array], Array], Any, Any]] = {
        "sum": (np.add, 0, 0),
        "max": (_max if real else np.maximum, -np.inf, -(2**31)),
        "min": (_min if real else np.minimum, np.inf, 2**31 - 1),
        "prod": (np.multiply, 1, 1),
    }
    step, start, whole_start = table[name]
    return step, start if real else whole_start


def reduce(name: str, x: Array, dtype: np.dtype[Any] | type) -> Array:
    """Section 6 over the first axis."""
    real = is_float(x.dtype)
    kind = np.float32 if real else np.int32
    step, start = _combine(name, real)
    with np.errstate(all="ignore"):
        lanes = [np.full(x.shape[1:], start, kind) for _ in range(8)]
        for i in range(x.shape[0]):
            lanes[i % 8] = step(lanes[i % 8], x[i].astype(kind))
        for s in (4, 2, 1):
            for j in range(s):
                lanes[j] = step(lanes[j], lanes[j + s])
        return cast(lanes[0], dtype).reshape(x.shape[1:])


def pool2d(
    name: str, x: Array, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int], output: Sequence[int],
    include_pad: bool, dtype: np.dtype[Any] | type,
) -> Array:  # fmt: skip
    """Average ("avg") and max pooling of x[n, h, w, c], position by position."""
    n, h, w, c = x.shape
    out = np.empty((n, *output, c), np.float32)
    for oy in range(output[0]):
        for ox in range(output[1]):
            total = np.full((n, c), 0 if name == "avg" else -np.inf, np.float32)
            count = 0
            for i in range(kernel[0]):
                for j in range(kernel[1]):
                    y, z = oy * strides[0] - pads[0] + i, ox * strides[1] - pads[1] + j
                    if 0 <= y < h and 0 <= z < w:
                        value = _wide(x[:, y, z])
                        total = total + value if name == "avg" else _max(total, value)
                    inside = y < h + pads[2] and z < w + pads[3] if include_pad else 0 <= y < h and 0 <= z < w
                    count += inside
            out[:, oy, ox] = total / np.float32(count) if name == "avg" else total
    return cast(out, dtype)


def attention(
    q: Array, k: Array, v: Array, scale: float, mask: npt.NDArray[np.bool_], exp: Callable[[Array], Array]
) -> Array:
    """Section 7 for f16 q[m, d], k[n, d], v[n, e], to f32; `mask[m, n]` is true where a key counts, `exp` is that of
    f32."""
    rows = q.shape[0]
    m = np.full(rows, -np.finfo(np.float32).max, np.float32)
    total = np.zeros(rows, np.float32)
    out = np.zeros((rows, v.shape[1]), np.float32)
    for start in range(0, k.shape[0], 128):
        part = slice(start, start + 128)
        scores = contract(q, np.ascontiguousarray(k[part].T)) * np.float32(scale)
        scores = np.where(mask[:, part], scores, np.float32(-np.inf))
        largest = _max(m, reduce("max", np.ascontiguousarray(scores.T), np.float32))
        p = exp(scores - largest[:, None])
        shrink = exp(m - largest)
        total = total * shrink + reduce("sum", np.ascontiguousarray(p.T), np.float32)
        out = out * shrink[:, None] + contract(cast(p, F16), v[part])
        m = largest
    with np.errstate(all="ignore"):
        return np.where(total[:, None] == 0, np.float32(0), out / total[:, None]).astype(np.float32)
