"""Arrays that take no memory: in place of weights whose values nobody reads.

    array = stand_in(np.dtype(np.float32), (4096, 4096))     # all elements are one
    array.astype(np.float16), array * 2, array.T             # stand-ins of the right type and shape

What numpy makes of a stand-in is one. The one value says nothing: no comparison finds it equal to another.
"""

import hashlib
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

VALUE = 0.75
"""Of floats: neither 0 nor 1, and held by each of them. Integers are 0, which is an index of any axis."""

_numbers = count()


class StandIn(np.ndarray[Any, np.dtype[Any]]):
    """See the module."""

    identity: str | None

    def __array_finalize__(self, obj: Any) -> None:
        self.identity = None

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "__call__" and ufunc.signature is None and not options.get("out"):
            with np.errstate(all="ignore"):
                found = ufunc(*map(_one, inputs), **options)
            if ufunc in (np.equal, np.not_equal) and inputs[0] is not inputs[1]:
                found = np.full_like(found, ufunc is np.not_equal)
            size = np.broadcast_shapes(*map(np.shape, inputs))
            many = found if isinstance(found, tuple) else (found,)
            made = tuple(np.broadcast_to(np.reshape(each, -1)[:1].reshape(()), size).view(StandIn) for each in many)
            return made if isinstance(found, tuple) else made[0]
        if method == "reduce":
            inputs = (_thin(inputs[0], options.get("axis", 0)), *inputs[1:])
        with np.errstate(all="ignore"):
            return _emptied(getattr(ufunc, method)(*map(_plain, inputs), **options))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            return _emptied(func(*map(_plain, args), **{key: _plain(value) for key, value in kwargs.items()}))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, np.ndarray) and key.dtype == np.bool_ and key.shape == self.shape and self.size:
            kept = self.size if isinstance(key, StandIn) and key.flat[0] else int(np.count_nonzero(key))
            return stand_in(self.dtype, (kept,))
        return _emptied(_plain(self)[_plain(key)])

    def astype(self, dtype: Any, *_: Any, **__: Any) -> "StandIn":  # pyright: ignore[reportIncompatibleMethodOverride]
        """The same values in another type."""
        if np.dtype(dtype) == self.dtype:
            return self
        made = stand_in(np.dtype(dtype), self.shape)
        made.identity = _handle(f"{identity_of(self)} as {made.dtype.name}")
        return made

    def copy(self, order: Any = "C") -> "StandIn":  # pyright: ignore[reportIncompatibleMethodOverride]
        """Itself: nobody writes to it."""
        return self


def stand_in(dtype: "np.dtype[Any]", shape: Sequence[int]) -> StandIn:
    """An array of this type and shape."""
    value = np.asarray(0 if dtype.kind in "iub" else VALUE).astype(dtype)
    return np.broadcast_to(value, tuple(shape)).view(StandIn)


def identity_of(array: StandIn) -> str:
    """What stands for a digest of the content that it has not."""
    if array.identity is None:
        array.identity = _handle(str(next(_numbers)))
    return array.identity


def in_order(array: Array) -> Array:
    """The array with its elements in row-major order; a stand-in stays one."""
    return array if isinstance(array, StandIn) else np.asarray(array, order="C")


def _handle(text: str) -> str:
    return hashlib.sha256(f"stand-in {text}".encode()).hexdigest()


def _one(value: Any) -> Any:
    """One element of an array, with as many axes."""
    return _plain(value)[(slice(0, 1),) * value.ndim] if isinstance(value, np.ndarray) else value


def _thin(value: Any, axis: Any) -> Any:
    """One element of each axis that a reduction takes away."""
    taken = range(value.ndim) if axis is None else np.atleast_1d(axis) % max(value.ndim, 1)
    return _plain(value)[tuple(slice(0, 1) if i in taken else slice(None) for i in range(value.ndim))]


def _plain(value: Any) -> Any:
    """The same as numpy's own array, also inside of lists."""
    if isinstance(value, StandIn):
        return value.view(np.ndarray)
    if isinstance(value, list | tuple):
        return type(value)(_plain(each) for each in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value


def _emptied(found: Any) -> Any:
    """A result without the memory of its elements."""
    if isinstance(found, list | tuple):
        return type(found)(_emptied(each) for each in found)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if not isinstance(found, np.ndarray) or not found.size:
        return found
    return np.broadcast_to(found[(0,) * found.ndim], found.shape).view(StandIn)
