"""What `evaluate_tile` does in numpy: strided copies, fills, packed integers, and patches of an image."""

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...runtime.numerics import host
from ...runtime.numerics.dtype import DType
from ...runtime.numerics.packed import dequantised, row_bytes, unpack

Array = NDArray[Any]
_WORDS = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}


class Temporary:
    """Memory of f32 that grows; a call gives its address, for at least `count` values."""

    def __init__(self) -> None:
        self.array = np.zeros(1 << 16, np.float32)

    def __call__(self, count: int) -> int:
        if count > self.array.size:
            self.array = np.zeros(2 * count, np.float32)
        return self.array.ctypes.data


def view(address: int, dtype: np.dtype[Any], shape: Sequence[int], strides: Sequence[int]) -> Array:
    """Memory at an address as an array; strides in bytes."""
    before = sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if s < 0)
    behind = sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if s > 0)
    memory = (ctypes.c_uint8 * (behind - before + dtype.itemsize)).from_address(address + before)
    return np.ndarray(shape, dtype, memory, -before, strides)  # pyright: ignore[reportArgumentType] - ctypes has the buffer protocol


def copy(
    dst: int, dst_strides: Sequence[int], src: int, src_strides: Sequence[int], shape: Sequence[int], size: int
) -> None:
    """dst[i] = src[i] for elements of `size` bytes."""
    view(dst, _WORDS[size], shape, dst_strides)[...] = view(src, _WORDS[size], shape, src_strides)


def fill(dst: int, strides: Sequence[int], shape: Sequence[int], size: int, pattern: int) -> None:
    """dst[i] = the low bytes of pattern."""
    view(dst, _WORDS[size], shape, strides)[...] = pattern & ((1 << 8 * size) - 1)


def indirect(
    dst: int, dst_strides: Sequence[int], src: int, src_strides: Sequence[int],
    index: int, index_strides: Sequence[int], rows: int, shape: Sequence[int], size: int, gathers: bool,
) -> None:  # fmt: skip
    """dst[i] = src[row, i] (of a scatter: dst[row, i] = src[i]), row = the i32 at index[i], wrapped; the strides of
    `src` (`dst`) begin with that of the rows. Raises `IndexError`."""
    named = view(index, np.dtype(np.int32), shape[:3], index_strides).astype(np.int64)
    place = np.where(named < 0, named + rows, named)
    wrong = named[(place < 0) | (place >= rows)]
    if wrong.size:
        raise IndexError(f"an index lies in [{-rows}, {rows}) (found {wrong[0]})")
    word, within = _WORDS[size], np.ix_(*map(np.arange, shape[:3]))
    if gathers:
        table = view(src, word, (rows, *shape), src_strides)
        view(dst, word, shape, dst_strides)[...] = table[place, *within]
    else:
        view(dst, word, (rows, *shape), dst_strides)[place, *within] = view(src, word, shape, src_strides)


def dequantise(
    dst: int, ld: int, dtype: str, src: int, pitch: int, of: str, scale: int, scale_pitch: int, scale_type: str,
    zero: int, zero_pitch: int, k: int, n: int, k0: int, block: int,
) -> None:  # fmt: skip
    """dst[i, j] = (q − zero)·scale of element i of column j as words of f32; row 0 is number `k0` of its blocks."""
    packed = view(src, _WORDS[1], (n, row_bytes(of, k)), (pitch, 1))
    kind, blocks = DType.parse(scale_type), (k0 + k - 1) // block + 1
    scales = view(scale, kind.numpy, (n, blocks), (scale_pitch, kind.size))
    zeros = view(zero, np.dtype(f"{'u' * (of[0] == 'u')}int8"), (n, blocks), (zero_pitch, 1)) if zero else None
    q = np.pad(unpack(packed, of, k), ((0, 0), (k0, 0)))
    found = host.cast(host.cast(dequantised(q, scales, zeros, block)[:, k0:], DType.parse(dtype)), DType.F32)
    view(dst, np.dtype(np.float32), (k, n), (4 * ld, 4))[...] = found.T


@lru_cache(256)
def _columns(
    k0: int, k: int, kh: int, kw: int, channels: int, c0: int, dh: int, dw: int
) -> tuple[Array, Array, Array, Array]:
    """Tap row, tap column and channel of columns k0 … k0 + k, and whether the channel is there."""
    block, c = np.divmod(np.arange(k0, k0 + k), c0)
    c1, tap = np.divmod(block, kh * kw)
    y, x = np.divmod(tap, kw)
    channel = c1 * c0 + c
    return y * dh, x * dw, channel, channel < channels


@lru_cache(256)
def _pixels(m0: int, m: int, ow: int, sh: int, sw: int, ph: int, pw: int) -> tuple[Array, Array]:
    """Image row and column of the first tap of each pixel."""
    y, x = np.divmod(np.arange(m0, m0 + m), ow)
    return y * sh - ph, x * sw - pw


@lru_cache(64)
def _gather(
    m: int, k: int, row: int, pixel: int, m0: int, k0: int, ow: int, kh: int, kw: int, channels: int, c0: int,
    sh: int, sw: int, dh: int, dw: int, ph: int, pw: int, row0: int, h: int, w: int,
) -> tuple[Array, Array | None, Array]:  # fmt: skip
    """Element of the panel for each place of the patches; where there is none (None: everywhere there is); whether
    the channel is there.
    """
    down, across, channel, there = _columns(k0, k, kh, kw, channels, c0, dh, dw)
    top, left = _pixels(m0, m, ow, sh, sw, ph, pw)
    y, x = top[:, None] + down, left[:, None] + across
    elements = (y - row0) * row + x * pixel + channel
    inside = (y >= 0) & (y < h) & (x >= 0) & (x < w) & there
    if inside.all():
        return elements, None, there
    return np.where(inside, elements, 0), ~inside, there


def im2col(
    dst: int, ld: int, panel: int, offset: int, size: int, row: int, pixel: int, dtype: str, m: int, k: int,
    reach: Callable[[int, int], None], *,
    m0: int, k0: int, ow: int, kh: int, kw: int, channels: int, c0: int, sh: int, sw: int, dh: int, dw: int,
    ph: int, pw: int, row0: int, h: int, w: int, pad: int,
) -> None:  # fmt: skip
    """Patches [m, k] of an image of which rows row0 … stand at element `offset` of a panel of `size` elements, as
    words of 4 bytes.

    `reach(low, high)` checks the elements, relative to the offset, of all image rows that the pixels can touch.
    """
    first = max(0, m0 // ow * sh - ph)
    last = min(h, (m0 + m - 1) // ow * sh - ph + (kh - 1) * dh + 1) - 1
    if last >= first and w > 0 and channels > 0:
        reach((first - row0) * row, (last - row0) * row + (w - 1) * pixel + channels - 1)
    kind = DType.parse(dtype)
    elements, missing, there = _gather(
        m, k, row, pixel, m0, k0, ow, kh, kw, channels, c0, sh, sw, dh, dw, ph, pw, row0, h, w
    )
    source = view(panel, kind.numpy, (size,), (kind.size,))
    word = np.dtype(np.float32) if kind.is_float else np.dtype(np.int32)
    target = view(dst, word, (m, k), (4 * ld, 4))
    outside = np.array(pad & 0xFFFFFFFF, np.uint32).view(np.float32)
    if missing is None:
        target[...] = source[elements + offset]
        return
    elements = np.where(missing, 0, elements + offset)
    target[...] = source[elements]
    target[missing] = outside if kind.is_float else int(outside)
    target[:, ~there] = 0
