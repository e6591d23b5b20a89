"""Numpy-facing numerics: what the graph and tile evaluators compute with, by the kernels that the emulator uses.

Arrays have a numpy type of `dtype.DType` (bf16 through ml_dtypes); a Python number among the operands is a constant of
the type the others compute in. `counters`, an int64[3], is where overflows, invalid and wide results are added up
(section 8).
"""

import math
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from . import contract, reduction, vector
from .dtype import DType
from .function import IMPLEMENTATIONS
from .functions import FN, RFN
from .vector import SCRATCH_BYTES

Array = npt.NDArray[Any]
Number = float | int | bool

_IM2COL_BYTES = 4 << 20  # of the matrix that a convolution builds at a time
OVERFLOW, INVALID, WIDE = range(3)
"""What the counters are of."""
_counting: ContextVar[npt.NDArray[np.int64] | None] = ContextVar("counting", default=None)


def _work() -> Array:
    return np.empty(SCRATCH_BYTES // 8, np.int64)


def _as_operands(operands: Sequence[Array | Number]) -> list[Array]:
    """Numbers become arrays of no dimension: f32 next to floats, else of the type of the first array."""
    arrays = [x for x in operands if isinstance(x, np.ndarray)]
    kinds = [DType.of(x) for x in arrays]
    kind = DType.F32 if not kinds or any(k.is_float for k in kinds) else kinds[-1]
    return [x if isinstance(x, np.ndarray) else np.asarray(x, kind.numpy) for x in operands]


def _merged(shape: Sequence[int], strides: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """The same walk with as few dimensions as possible; `strides` is per dimension, per operand."""
    extents: list[int] = []
    kept: list[list[int]] = []
    for extent, step in zip(shape, strides, strict=True):
        if extent == 1:
            continue
        if kept and all(outer == inner * extent for outer, inner in zip(kept[-1], step, strict=True)):
            extents[-1] *= extent
            kept[-1] = step
        else:
            extents.append(extent)
            kept.append(step)
    return extents, kept


def _walks(
    shape: Sequence[int], arrays: Sequence[Array]
) -> Iterator[tuple[list[int], list[tuple[int, int, int, int]]]]:
    """Cuts a walk into ones of three dimensions: their extents, and per operand its address and strides."""
    strides = [[a.strides[i] for a in arrays] for i in range(len(shape))]
    extents, steps = _merged(shape, strides)
    while len(extents) < 3:
        extents.insert(0, 1)
        steps.insert(0, [0] * len(arrays))
    bases = [a.ctypes.data for a in arrays]
    for index in product(*(range(n) for n in extents[:-3])):
        places = [
            base + sum(i * step[k] for i, step in zip(index, steps[:-3], strict=True)) for k, base in enumerate(bases)
        ]
        inner = steps[-3:]
        yield extents[-3:], [(p, inner[0][k], inner[1][k], inner[2][k]) for k, p in enumerate(places)]


def elementwise(
    fn: FN,
    *operands: Array | Number,
    dtype: DType | None = None,
    out: Array | None = None,
    counters: npt.NDArray[np.int64] | None = None,
) -> Array:
    """fn(a, b, c) with numpy's broadcasting, cast to `dtype`: that of `out`, else b8 for predicates, else that of a
    (of b for `where`). ValueError if the number of operands is not that of the function."""
    row = IMPLEMENTATIONS[fn]
    if len(operands) != row.arity:
        raise ValueError(f"{row.name} takes {row.arity} operands (found {len(operands)})")
    arrays = _as_operands(operands)
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    if out is None:
        natural = DType.B8 if row.is_predicate else DType.of(arrays[1 if fn == FN.WHERE else 0])
        out = np.empty(shape, (natural if dtype is None else dtype).numpy)
    kinds = [int(DType.of(a)) for a in (out, *arrays)]
    work, counts = _work(), np.zeros(3, np.int64)
    views = [out, *(np.broadcast_to(a, shape) for a in arrays)]
    absent = ((0, 0, 0, 0), 0)
    for extents, places in _walks(shape, views):
        slots = [*zip(places, kinds, strict=True), absent, absent][:4]
        flat = [value for place, kind in slots for value in (*place, kind)]
        immediates = (0.0, 0.0, int(row.arity < 2), int(row.arity < 3))
        arguments: list[Any] = [int(fn), *extents, *flat, *immediates, work.ctypes.data, counts.ctypes.data]
        vector.vmap(*arguments)
    _add(counters, counts)
    return out


def _add(counters: npt.NDArray[np.int64] | None, counts: npt.NDArray[np.int64]) -> None:
    for total in (counters, _counting.get()):
        if total is not None:
            total += counts


@contextmanager
def counting() -> Generator[npt.NDArray[np.int64]]:
    """Counters of all that is computed inside."""
    counters = np.zeros(3, np.int64)
    before = _counting.set(counters)
    try:
        yield counters
    finally:
        _counting.reset(before)


def cast(x: Array, dtype: DType, counters: npt.NDArray[np.int64] | None = None) -> Array:
    """The values of x in another type (section 3)."""
    return elementwise(FN.COPY, x, dtype=dtype, counters=counters)


def reduce(
    fn: RFN,
    x: Array,
    axes: Sequence[int],
    keepdims: bool = False,
    dtype: DType | None = None,
    counters: npt.NDArray[np.int64] | None = None,
) -> Array:
    """Section 6 over several axes in the row-major order of their index; `dtype` is by default that of x."""
    kind = DType.of(x)
    if kind == DType.I64:
        raise ValueError("reduce: i64 is a type of the border only; cast to i32 first")
    reduced = sorted({axis % x.ndim for axis in axes})
    kept = [axis for axis in range(x.ndim) if axis not in reduced]
    shape = [x.shape[axis] for axis in kept]
    length = math.prod(x.shape[axis] for axis in reduced)
    adjacent = len(reduced) > 0 and reduced[-1] - reduced[0] == len(reduced) - 1
    order = list(range(x.ndim)) if adjacent else kept + reduced
    before = math.prod(x.shape[: reduced[0]] if adjacent else shape)
    after = math.prod(x.shape[reduced[-1] + 1 :]) if adjacent else 1
    rows = np.ascontiguousarray(x.transpose(order)).reshape(before, length, after)
    out = np.empty((before, after), (kind if dtype is None else dtype).numpy)
    counts = np.zeros(3, np.int64)
    work = _work()
    reduction.vreduce(
        int(fn), before, length, after, out.ctypes.data, out.strides[0], out.strides[1], int(DType.of(out)),
        rows.ctypes.data, rows.strides[0], rows.strides[1], rows.strides[2], int(kind), 0, 0, 0, 1, 1,
        work.ctypes.data, counts.ctypes.data,
    )  # fmt: skip
    _add(counters, counts)
    return out.reshape([1 if a in reduced else n for a, n in enumerate(x.shape)] if keepdims else shape)


def _image(x: Array, whole: bool, columns: int | None = None) -> Array:
    """A contiguous f32 (i32) copy of a matrix, columns padded with zeros to `columns`."""
    kind = DType.I32 if whole else DType.F32
    if columns is None or columns == x.shape[-1]:
        return x if x.dtype == kind.numpy and x.flags.c_contiguous else cast(x, kind)
    image = np.zeros((*x.shape[:-1], columns), kind.numpy)
    elementwise(FN.COPY, x, out=image[..., : x.shape[-1]])
    return image


def _product(a: Array, b: Array) -> Array:
    """a[m, k] · b[k, n16] of images, in segments."""
    (m, depth), n = a.shape, b.shape[1]
    total, part = np.empty((m, n), a.dtype), np.empty((m, n), a.dtype)
    if a.dtype == np.int32:
        contract.gemm_int(a.ctypes.data, depth, b.ctypes.data, n, total.ctypes.data, n, m, depth, n, 1)
        return total
    for start in range(0, max(depth, 1), contract.SEGMENT):
        length = min(contract.SEGMENT, depth - start)
        target = total if start == 0 else part
        contract.gemm(
            a.ctypes.data + 4 * start, depth, b.ctypes.data + 4 * start * n, n, target.ctypes.data, n, m, length, n, 1
        )
        if start:
            contract.fold(total.ctypes.data, part.ctypes.data, n, m, n, 0)
    return total


def _finish(
    sums: Array, bias: Array | None, dtype: DType | None, natural: DType, counters: npt.NDArray[np.int64] | None
) -> Array:
    """Adds the bias in f32 (i32) and rounds once."""
    kind = natural if dtype is None else dtype
    if bias is None:
        return elementwise(FN.COPY, sums, dtype=kind, counters=counters)
    return elementwise(FN.ADD, sums, bias, dtype=kind, counters=counters)


def _natural(x: Array) -> DType:
    kind = DType.of(x)
    return kind if kind.is_float else DType.I32


def _padded(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


def matmul(
    a: Array,
    b: Array,
    bias: Array | None = None,
    dtype: DType | None = None,
    counters: npt.NDArray[np.int64] | None = None,
) -> Array:
    """a[…, m, k] · b[…, k, n] + bias with numpy's rules for batches and vectors.

    `dtype` is by default that of a for floats, and i32 for integers."""
    if a.ndim == 1:
        return matmul(a[None], b, bias, dtype, counters)[..., 0, :]
    if b.ndim == 1:
        return matmul(a, b[:, None], bias, dtype, counters)[..., 0]
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"matmul: the contracted extents differ (found {a.shape[-1]} and {b.shape[-2]})")
    whole = not DType.of(a).is_float
    if b.ndim == 2:  # one matrix on the right: all rows at once
        sums = _product(
            _image(a.reshape(-1, a.shape[-1]), whole), _image(b, whole, _padded(b.shape[1], contract.BLOCK))
        )
        sums = sums.reshape(*a.shape[:-1], -1)
    else:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        left = _image(a, whole)
        right = _image(b, whole, _padded(b.shape[-1], contract.BLOCK))
        left, right = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (left, right))
        sums = np.empty((*batch, a.shape[-2], right.shape[-1]), left.dtype)
        for index in np.ndindex(*batch):
            sums[index] = _product(left[index], right[index])
    return _finish(sums[..., : b.shape[-1]], bias, dtype, _natural(a), counters)


@dataclass(frozen=True)
class _Window:
    """A kernel that moves over an image: extents, pads top, left, bottom, right, and the extents of the result."""

    kernel: tuple[int, int]
    strides: Sequence[int]
    pads: Sequence[int]
    dilations: Sequence[int]
    out: tuple[int, int]

    @staticmethod
    def over(
        x: Array,
        kernel: Sequence[int],
        strides: Sequence[int],
        pads: Sequence[int],
        dilations: Sequence[int],
        output: Sequence[int] | None = None,
    ) -> "_Window":
        """With the extents that the image allows, unless `output` states them."""
        reach = [dilations[i] * (kernel[i] - 1) + 1 for i in (0, 1)]
        rows, columns = output or [
            (x.shape[1 + i] + pads[i] + pads[2 + i] - reach[i]) // strides[i] + 1 for i in (0, 1)
        ]
        return _Window((kernel[0], kernel[1]), strides, pads, dilations, (rows, columns))

    def padded(self, x: Array, block: int, whole: bool) -> Array:
        """An f32 (i32) image [n, h, w, c1, c0] with zeros around it."""
        n, h, w, c = x.shape
        top, left, bottom, right = self.pads
        channels = _padded(c, block)
        image = np.zeros((n, h + top + bottom, w + left + right, channels), np.int32 if whole else np.float32)
        elementwise(FN.COPY, x, out=image[:, top : top + h, left : left + w, :c])
        return image.reshape(*image.shape[:3], channels // block, block)

    def gathered(self, image: Array) -> Array:
        """A view [n, oh, ow, c1, kh, kw, c0] of a padded image."""
        n, h, w, c1, c0 = image.strides
        rows, columns = self.strides
        down, across = self.dilations
        return np.lib.stride_tricks.as_strided(
            image,
            (image.shape[0], *self.out, image.shape[3], *self.kernel, image.shape[4]),
            (n, h * rows, w * columns, c1, h * down, w * across, c0),
            writeable=False,
        )

    def reached(self, axis: int, tap: int, extent: int) -> tuple[slice, slice]:
        """The results for which a tap of one axis lies inside an image of that extent, and the inputs that they
        read."""
        stride = self.strides[axis]
        offset = tap * self.dilations[axis] - self.pads[axis]
        first = max(0, -(offset // stride))
        last = max(first, min(self.out[axis], (extent - 1 - offset) // stride + 1))
        begin = first * stride + offset
        return slice(first, last), slice(begin, begin + (last - first - 1) * stride + 1, stride)

    def counts(self, axis: int, extent: int, include_pad: bool) -> npt.NDArray[np.int64]:
        """How many taps of one axis lie inside the image (or the padded one), per result."""
        taps = np.arange(self.kernel[axis]) * self.dilations[axis] - self.pads[axis]
        position = np.arange(self.out[axis])[:, None] * self.strides[axis] + taps
        low, high = (-self.pads[axis], extent + self.pads[2 + axis]) if include_pad else (0, extent)
        return ((position >= low) & (position < high)).sum(axis=1)


def conv2d(
    x: Array,
    w: Array,
    bias: Array | None = None,
    strides: Sequence[int] = (1, 1),
    pads: Sequence[int] = (0, 0, 0, 0),
    dilations: Sequence[int] = (1, 1),
    groups: int = 1,
    dtype: DType | None = None,
    counters: npt.NDArray[np.int64] | None = None,
) -> Array:
    """x[n, h, w, c] * w[kh, kw, c / groups, o] + bias[o], pads top, left, bottom, right; result [n, oh, ow, o].

    The weights are HWIO: their rows are rows of the matrix that im2col is multiplied with."""
    channels, outputs = w.shape[2:]
    if x.shape[3] != channels * groups:
        raise ValueError(f"conv2d: the input has {channels * groups} channels by the weights (found {x.shape[3]})")
    window = _Window.over(x, w.shape[:2], strides, pads, dilations)
    whole = not DType.of(x).is_float
    if channels == 1 and groups == x.shape[3] and groups > 1:
        sums = _depthwise(x, w, window, whole)
    else:
        each = outputs // groups
        sums = np.concatenate(
            [
                _convolve(x[..., g * channels : (g + 1) * channels], w[..., g * each : (g + 1) * each], window, whole)
                for g in range(groups)
            ],
            axis=-1,
        )
    return _finish(sums, bias, dtype, _natural(x), counters)


def _convolve(x: Array, w: Array, window: _Window, whole: bool) -> Array:
    """The f32 (i32) sums of one group, k in the order (c1, kh, kw, c0)."""
    kh, kw, channels, outputs = w.shape
    block = 4 if channels <= 4 else 16
    image = window.padded(x, block, whole)
    weights = np.zeros((kh, kw, _padded(channels, block), _padded(outputs, contract.BLOCK)), image.dtype)
    elementwise(FN.COPY, w, out=weights[:, :, :channels, :outputs])
    weights = weights.reshape(kh, kw, -1, block, weights.shape[3]).transpose(2, 0, 1, 3, 4)
    right = np.ascontiguousarray(weights).reshape(-1, weights.shape[4])
    gathered = window.gathered(image)
    sums = np.empty((x.shape[0], *window.out, right.shape[1]), image.dtype)
    rows = max(1, _IM2COL_BYTES // max(1, window.out[1] * right.shape[0] * 4))
    for n, first in product(range(x.shape[0]), range(0, window.out[0], rows)):
        left = np.ascontiguousarray(gathered[n, first : first + rows]).reshape(-1, right.shape[0])
        sums[n, first : first + rows] = _product(left, right).reshape(-1, window.out[1], right.shape[1])
    return sums[..., :outputs]


def _depthwise(x: Array, w: Array, window: _Window, whole: bool) -> Array:
    """The f32 (i32) sums with one input channel per output, taps in the order (kh, kw)."""
    taps, outputs = w.shape[0] * w.shape[1], w.shape[3]
    image = window.padded(np.repeat(x, outputs // x.shape[3], axis=3), contract.BLOCK, whole)
    columns = _padded(outputs, contract.BLOCK)
    weights = np.zeros((taps, columns), image.dtype)
    elementwise(FN.COPY, w.reshape(taps, outputs), out=weights[:, :outputs])
    right = np.ascontiguousarray(weights.reshape(taps, -1, contract.BLOCK).transpose(1, 0, 2))
    gathered = window.gathered(image)
    width = window.out[1]
    sums = np.empty((x.shape[0], *window.out, columns), image.dtype)
    for n, row in product(range(x.shape[0]), range(window.out[0])):
        left = np.ascontiguousarray(gathered[n, row]).reshape(width, -1, taps, contract.BLOCK)
        if whole:
            sums[n, row] = (left * right).sum(axis=2, dtype=np.int32).reshape(width, columns)
            continue
        place = (sums[n, row].ctypes.data, columns, width, taps, columns, 1)
        contract.depthwise(left.ctypes.data, columns * taps, right.ctypes.data, *place)
    return sums[..., :outputs]


def _pool(fn: FN, start: float, x: Array, window: _Window) -> Array:
    """Combines the taps inside the image, from `start`, in f32 (i32)."""
    kind = np.float32 if DType.of(x).is_float else np.int32
    total = np.full((x.shape[0], *window.out, x.shape[3]), start, kind)
    for i, j in product(range(window.kernel[0]), range(window.kernel[1])):
        rows, from_rows = window.reached(0, i, x.shape[1])
        columns, from_columns = window.reached(1, j, x.shape[2])
        if rows.stop > rows.start and columns.stop > columns.start:
            view = total[:, rows, columns]
            elementwise(fn, view, x[:, from_rows, from_columns], out=view)
    return total


def max_pool2d(
    x: Array,
    kernel: Sequence[int],
    strides: Sequence[int] = (1, 1),
    pads: Sequence[int] = (0, 0, 0, 0),
    dilations: Sequence[int] = (1, 1),
    output: Sequence[int] | None = None,
    dtype: DType | None = None,
) -> Array:
    """The largest of the taps inside x[n, h, w, c]; `output` states the extents where rounding up makes them larger."""
    kind = DType.of(x)
    start = -np.inf if kind.is_float else -(2**31)
    total = _pool(FN.MAX, start, x, _Window.over(x, kernel, strides, pads, dilations, output))
    return cast(total, kind if dtype is None else dtype)


def avg_pool2d(
    x: Array,
    kernel: Sequence[int],
    strides: Sequence[int] = (1, 1),
    pads: Sequence[int] = (0, 0, 0, 0),
    dilations: Sequence[int] = (1, 1),
    count_include_pad: bool = False,
    output: Sequence[int] | None = None,
    dtype: DType | None = None,
    counters: npt.NDArray[np.int64] | None = None,
) -> Array:
    """The mean of the taps inside x[n, h, w, c], or of those inside the padded image with zeros for the padding."""
    window = _Window.over(x, kernel, strides, pads, dilations, output)
    total = _pool(FN.ADD, 0.0, x, window)
    counts = [window.counts(axis, x.shape[1 + axis], count_include_pad) for axis in (0, 1)]
    count = np.multiply.outer(counts[0], counts[1]).astype(np.float32)[None, :, :, None]
    return elementwise(FN.DIV, total, count, dtype=_natural(x) if dtype is None else dtype, counters=counters)
