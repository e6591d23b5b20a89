"""The border of the device: ONNX types on the caller's side, device types on the other (docs/program.md §4)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .numerics.convert import narrow_real
from .numerics.dtype import DType
from .plan import Tensor
from .problem import Kind, Problem, UserError

Array = NDArray[Any]
_CANONICAL_NAN = {DType.F16: 0x7E00, DType.BF16: 0x7FC0, DType.F32: 0x7FC00000}


WIDE = (np.dtype(np.int64), np.dtype(np.uint32), np.dtype(np.uint64))
"""Integers that the device narrows to `i32`, whose range they must fit."""


class InputError(UserError, ValueError):
    """The arrays given do not fit the model: each problem with its name, what was expected and what was found."""

    KIND: ClassVar[Kind] = Kind.SHAPE

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self._problems = tuple(p if isinstance(p, Problem) else Problem(p, self.KIND) for p in problems)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Each of them."""
        return self._problems


def check(inputs: Mapping[str, Array], tensors: Sequence[Tensor], unread: Collection[str] = ()) -> None:
    """Names, types, shapes, and ranges of integers, but for those that the device does not read (`unread`).

    Raises one `InputError` for all problems.
    """
    known = {tensor.name: tensor for tensor in tensors}
    problems = [_problem(inputs.get(tensor.name), tensor, tensor.name in unread) for tensor in tensors]
    problems += [
        Problem(
            f"{name}: is an input of the model (found {name}, but it has {', '.join(known)}); rename the array",
            Kind.COMMAND,
        )
        for name in inputs
        if name not in known
    ]
    if found := [problem for problem in problems if problem]:
        raise InputError(*found)


def _problem(array: Array | None, tensor: Tensor, unread: bool) -> Problem | None:
    rule = f"{tensor.name}: is {tensor.host_type if tensor.is_host else f'{tensor.border}{list(tensor.shape)}'}"
    if array is None:
        return Problem(f"{rule} (found nothing); give an array of this name", Kind.COMMAND)
    if tensor.is_host:
        found = tensor.host_type.misfit(array)
        return Problem(f"{rule} (found {found}); convert the value", Kind.DTYPE) if found else None
    found = f"{array.dtype}{list(array.shape)}"
    if array.shape != tensor.shape:
        return Problem(f"{rule} (found {found}); reshape the array, or compile for its shape", Kind.SHAPE)
    if array.dtype != tensor.border_dtype:
        return Problem(f"{rule} (found {found}); convert it with astype({str(tensor.border_dtype)!r})", Kind.DTYPE)
    return None if unread else too_wide(array, tensor.name)


def too_wide(array: Array, name: str) -> Problem | None:
    """What is wrong with integers that 32 bits do not hold."""
    if array.dtype in WIDE and array.size:
        low, high = int(array.min()), int(array.max())
        if low < -(1 << 31) or high >= 1 << 31:
            rule = f"{name}: integers fit 32 bits, as those of the device"
            return Problem(f"{rule} (found {low} to {high}); take smaller ones", Kind.DTYPE)
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
    return as_type(array, tensor.border_dtype)


def as_type(array: Array, dtype: "np.dtype[Any]") -> Array:
    """An array of the device as one of the host."""
    if array.dtype == np.bool_:
        array = np.asarray(array.view(np.uint8) != 0)
    with np.errstate(all="ignore"):
        return array.astype(dtype)
