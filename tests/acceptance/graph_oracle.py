"""Runs a module that `decompose` has passed by the slow oracle of tests/oracle.py, without the product's numerics.

Only functions that the page docs/numerics.md gives by algorithm and not by formula (exp, erf …) come from the
product: the oracle knows them to an error only. GELU is the page's formula around that erf.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import oracle
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue

from stepwell.dialects.graph.constants import NUMPY, ConstantOp, WeightOp
from stepwell.dialects.graph.op import GraphOp, element, shape
from stepwell.dialects.graph.properties import flag, integer, ints, number, text
from stepwell.dialects.weights import WeightStore
from stepwell.runtime.numerics import host
from stepwell.runtime.numerics.dtype import DType
from stepwell.runtime.numerics.function import FN

Array = NDArray[Any]
Properties = Mapping[str, Attribute]
F32 = np.dtype(np.float32)


def run(module: ModuleOp, inputs: Sequence[Array], weights: WeightStore) -> list[Array]:
    """The results of `@main`."""
    main = next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main")
    values: dict[SSAValue, Array] = dict(zip(main.body.block.args, inputs, strict=True))
    for op in main.body.block.ops:
        operands = [values[operand] for operand in op.operands]
        if isinstance(op, ReturnOp):
            return operands
        (result,) = op.results
        values[result] = _result(op, operands, weights).reshape(shape(result))
    raise AssertionError("@main ends with func.return")


def _result(op: Operation, operands: list[Array], weights: WeightStore) -> Array:
    if isinstance(op, ConstantOp):
        return op.array
    if isinstance(op, WeightOp):
        return weights.get(op.handle.data)
    assert isinstance(op, GraphOp)
    kind = NUMPY[element(op.results[0])]
    name = op.name.removeprefix("graph.")
    if name in _OPS:
        return _OPS[name](op.properties, operands, shape(op.results[0]), kind)
    return _elementwise(name, op.properties, operands, kind)


def _elementwise(name: str, properties: Properties, operands: list[Array], kind: np.dtype[Any]) -> Array:
    name = "copy" if name == "cast" else name
    constants = [np.asarray(number(properties, key), F32) for key in _CONSTANTS.get(name, ())]
    if name == "clip":
        constants = [np.asarray(number(properties, key, d), F32) for key, d in (("lo", -math.inf), ("hi", math.inf))]
    if name == "gelu":
        x = operands[0].astype(F32)
        erf = _by_algorithm("erf", np.asarray(x * np.float32(math.sqrt(0.5)), F32))
        return oracle.cast((x * np.float32(0.5)) * (np.float32(1) + erf), kind)
    if name in oracle.APPROXIMATE:
        return oracle.cast(_by_algorithm(name, *(x.astype(F32) for x in operands)), kind)
    return oracle.elementwise(name, *operands, *constants, dtype=kind)


_CONSTANTS = {"affine": ("scale", "shift"), "hardsigmoid": ("alpha", "beta"), "leakyrelu": ("alpha",)}


def _by_algorithm(name: str, *operands: Array) -> Array:
    return host.elementwise(FN[name.upper()], *operands, dtype=DType.F32)


def _matmul(p: Properties, operands: list[Array], size: Sequence[int], kind: np.dtype[Any]) -> Array:
    a, b = operands[:2]
    b = np.swapaxes(b, -1, -2) if flag(p, "trans_b") else b
    batch = tuple(size[:-2])
    rows = np.broadcast_to(a, (*batch, *a.shape[-2:])).reshape(-1, *a.shape[-2:])
    columns = np.broadcast_to(b, (*batch, *b.shape[-2:])).reshape(-1, *b.shape[-2:])
    bias = operands[2] if len(operands) > 2 else None
    return np.stack([oracle.matmul(x, y, bias, kind) for x, y in zip(rows, columns, strict=True)])


def _packed_matmul(p: Properties, operands: list[Array], size: Sequence[int], kind: np.dtype[Any]) -> Array:
    """Section 6a: (q − z)·s in f32, rounded to the type of s, then to that of a."""
    a, w, scale, *more = operands
    bits, signed, k = int(text(p, "kind")[1]), text(p, "kind")[0] == "i", a.shape[-1]
    zero = more.pop(0) if flag(p, "zeros") else np.zeros(scale.shape, np.int64)
    columns = np.empty((k, len(w)), a.dtype)
    for i in range(k):
        q = w[:, i * bits // 8].astype(np.int64) >> i * bits % 8 & (1 << bits) - 1
        q = q - ((q >> bits - 1) << bits) if signed else q
        block = i // integer(p, "block")
        difference = (q - zero[:, block]).astype(np.float32)
        columns[i] = oracle.cast(oracle.cast(difference * scale[:, block].astype(np.float32), scale.dtype), a.dtype)
    return oracle.matmul(a.reshape(-1, k), columns, more[0] if more else None, kind)


def _taps(p: Properties, x: Array, size: Sequence[int]) -> list[Array]:
    """x under each tap of the kernel, row-major: [n, oh, ow, c] each; +0 outside."""
    (kh, kw), (sh, sw), (dh, dw) = (ints(p, name) for name in ("kernel", "strides", "dilations"))
    top, left, bottom, right = ints(p, "pads")
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    return [
        padded[:, i * dh :, j * dw :][:, : (size[1] - 1) * sh + 1 : sh, : (size[2] - 1) * sw + 1 : sw]
        for i in range(kh)
        for j in range(kw)
    ]


def _conv2d(p: Properties, operands: list[Array], size: Sequence[int], kind: np.dtype[Any]) -> Array:
    assert integer(p, "channels") == operands[0].shape[3]
    return _convolution(p, operands, size, kind)


def _convolution(p: Properties, operands: list[Array], size: Sequence[int], kind: np.dtype[Any]) -> Array:
    x, weight, *bias = operands
    channels = x.shape[3]
    block = 4 if channels <= 4 else 16
    x = np.pad(x, ((0, 0), (0, 0), (0, 0), (0, -channels % block)))
    taps = _taps(p, x, size)
    columns = [tap[..., c : c + block] for c in range(0, x.shape[3], block) for tap in taps]
    rows = np.concatenate(columns, axis=-1).reshape(-1, weight.shape[0])
    return oracle.matmul(rows, weight, bias[0] if bias else None, kind)


def _group_conv2d(p: Properties, operands: list[Array], size: Sequence[int], kind: np.dtype[Any]) -> Array:
    x, weight, *bias = operands
    groups, _, outputs = weight.shape
    parts: list[Array] = []
    for group in range(groups):
        own = [bias[0][group * outputs : (group + 1) * outputs]] if bias else []
        one = [np.ascontiguousarray(x[:, :, :, group]), weight[group], *own]
        parts.append(_convolution(p, one, size, kind).reshape(*size[:3], outputs))
    return np.concatenate(parts, axis=3)


def _depthwise2d(p: Properties, operands: list[Array], size: Sequence[int], kind: np.dtype[Any]) -> Array:
    x, weight, *bias = operands
    channels = x.shape[3]
    total = np.zeros((*size[:3], channels), F32)
    for place, tap in enumerate(_taps(p, x, size)):
        factors = weight[:, place].reshape(-1)[:channels].astype(F32)
        total = oracle.fma(tap.astype(F32), np.broadcast_to(factors, tap.shape), total)
    return oracle.cast(total + bias[0].astype(F32) if bias else total, kind)


def _window2d(p: Properties, operands: list[Array], size: Sequence[int], kind: np.dtype[Any]) -> Array:
    kernel, strides, pads = (ints(p, name) for name in ("kernel", "strides", "pads"))
    name = {"mean": "avg", "max": "max"}[text(p, "fn")]
    return oracle.pool2d(name, operands[0], kernel, strides, pads, size[1:3], flag(p, "count_include_pad"), kind)


def _reduction(name: str) -> Callable[..., Array]:
    def reduce(p: Properties, operands: list[Array], size: Sequence[int], kind: np.dtype[Any]) -> Array:
        axes = [axis % operands[0].ndim for axis in ints(p, "axes")]
        x = np.moveaxis(operands[0], axes, range(len(axes)))
        return oracle.reduce(name, x.reshape(-1, *x.shape[len(axes) :]), kind)

    return reduce


def _slice(p: Properties, operands: list[Array], size: Sequence[int], kind: np.dtype[Any]) -> Array:
    parts = zip(ints(p, "starts"), size, ints(p, "steps"), strict=True)
    index = tuple(start + step * np.arange(count) for start, count, step in parts)
    return operands[0][np.ix_(*index)]


_OPS: dict[str, Callable[[Properties, list[Array], Sequence[int], np.dtype[Any]], Array]] = {
    "matmul": _matmul,
    "packed_matmul": _packed_matmul,
    "conv2d": _conv2d,
    "depthwise2d": _depthwise2d,
    "group_conv2d": _group_conv2d,
    "window2d": _window2d,
    **{f"reduce_{name}": _reduction(name) for name in ("sum", "max", "min", "prod")},
    "slice": _slice,
    "reshape": lambda p, operands, size, kind: operands[0].reshape(size),
    "transpose": lambda p, operands, size, kind: operands[0].transpose(ints(p, "perm")),
    "pad": lambda p, operands, size, kind: np.pad(
        operands[0], [*zip(ints(p, "before"), ints(p, "after"), strict=True)]
    ),
    "expand": lambda p, operands, size, kind: np.broadcast_to(operands[0], size),
    "concat": lambda p, operands, size, kind: np.concatenate(operands, axis=integer(p, "axis")),
}
