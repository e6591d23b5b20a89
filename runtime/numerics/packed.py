"""Packed integers in numpy: their bytes, and the floats that they stand for (docs/numerics.md §6a).

Those of 4 bits stand two in a byte, the first in its low half; a row begins with a byte. The kinds are `i4`, `u4`, `i8`
and `u8`.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from . import host
from .dtype import DType

Array = npt.NDArray[Any]


def row_bytes(kind: str, count: int) -> int:
    """Bytes of a row of so many integers."""
    return -(-count // 2) if kind in ("i4", "u4") else count


def pack(values: Array, kind: str) -> Array:
    """Rows of integers as bytes (u8); a row of odd length ends with 0."""
    low = (values.astype(np.int16) & 0xFF).astype(np.uint8)
    if kind not in ("i4", "u4"):
        return low
    low = low & np.uint8(15)
    if low.shape[-1] % 2:
        low = np.concatenate([low, np.zeros((*low.shape[:-1], 1), np.uint8)], -1)
    return low[..., ::2] | (low[..., 1::2] << np.uint8(4))


def unpack(packed: Array, kind: str, count: int) -> Array:
    """The first `count` integers of each row (i16)."""
    if kind not in ("i4", "u4"):
        return packed[..., :count].view(np.dtype(kind.replace("i8", "int8").replace("u8", "uint8"))).astype(np.int16)
    halves = np.stack([packed & np.uint8(15), packed >> np.uint8(4)], -1)
    found = halves.reshape(*packed.shape[:-1], -1)[..., :count].astype(np.int16)
    return (found ^ 8) - 8 if kind == "i4" else found


def dequantised(q: Array, scale: Array, zero: Array | None, block: int) -> Array:
    """(q − zero)·scale of q [n, k] in f32, rounded once to the type of the scales [n, blocks]."""
    columns = np.arange(q.shape[-1]) // block
    shifted = q.astype(np.float32)
    if zero is not None:
        shifted = shifted - zero.astype(np.float32)[:, columns]
    with np.errstate(all="ignore"):
        product = shifted * host.cast(scale, DType.F32)[:, columns]
    return host.cast(product, DType.of(scale))
