"""The border of the device: ONNX types on the caller's side, device types on the other (docs/program.md §4)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .numerics.convert import narrow_real
from .numerics.dtype import DType
from .plan import Tensor

Array = NDArray[Any]
_CANONICAL_NAN = {DType.F16: 0x7E00, DType.BF16: 0x7FC0, DType.F32: 0x7FC00000}


WIDE = (np.dtype(np.int64), np.dtype(np.uint32), np.dtype(np.uint64))
"""Integers that the device narrows to `i32`, whose range they must fit."""


class InputError(ValueError):
    """The arrays given do not fit the model; the message lists every problem: name, found, expected."""


def check(inputs: Mapping[str, Array], tensors: Sequence[Tensor]) -> None:
    """Names, types, shapes, and ranges of integers. Raises one `InputError` for all of them."""
    known = {tensor.name: tensor for tensor in tensors}
    problems = [_problem(inputs.get(tensor.name), tensor) for tensor in tensors]
    problems += [f"{name}: no such input; there are {', '.join(known)}" for name in inputs if name not in known]
    if found := [problem for problem in problems if problem]:
        raise InputError("; ".join(found))


def _problem(array: Array | None, tensor: Tensor) -> str | None:
    wanted = f"{tensor.border}{list(tensor.shape)}"
    if array is None:
        return f"{tensor.name}: found nothing; expected {wanted}"
    if array.shape != tensor.shape or array.dtype != tensor.border_dtype:
        return f"{tensor.name}: found {array.dtype}{list(array.shape)}; expected {wanted}"
    if array.dtype in WIDE and array.size:
        low, high = int(array.min()), int(array.max())
        if low < -(1 << 31) or high >= 1 << 31:
            return f"{tensor.name}: found values from {low} to {high}; expected 32 bits, as the device's indices have"
    return None


def to_device(array: Array, dtype: DType) -> Array:
    """The array in a device type, by docs/numerics.md §3: rounded to nearest even, NaN canonical; always a copy."""
    if not dtype.is_float:
        return np.array(array, dtype.numpy, order="C")
    if array.dtype == np.float32 and dtype is not DType.F32:  # many times faster than numpy
        source, values = np.ascontiguousarray(array), np.empty(array.shape, dtype.numpy)
        narrow_real(source.ctypes.data, values.ctypes.data, dtype.size, int(dtype), source.size, 0)
        return values
    with np.errstate(all="ignore"):
        values = np.array(array, dtype.numpy, order="C")
    bits = values.view(np.uint32 if dtype is DType.F32 else np.uint16)
    if dtype is not DType.F32 and (nan := np.isnan(values)).any():
        bits[nan] = _CANONICAL_NAN[dtype]
    return values


def from_device(array: Array, tensor: Tensor) -> Array:
    """The array in the type that callers see; every device type fits."""
    if array.dtype == np.bool_:
        array = array.view(np.uint8) != 0
    with np.errstate(all="ignore"):
        return array.astype(tensor.border_dtype)
