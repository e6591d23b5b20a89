"""Where weights lie: IR names them by a digest of their content, the bytes stay in mapped files.

    store = WeightStore()
    handle = store.add(array)          # "9f86d081884c7d65…": equal arrays have one handle
    store.get(handle)                  # the array, read-only
    store.save(path); WeightStore.load(path)

A store is saved as safetensors. Loading maps the file and reads nothing but its header.
"""

import hashlib
import json
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ..runtime.problem import Kind, UserError
from .standin import StandIn, identity_of

Array = NDArray[Any]

DIGITS = 32
"""Length of a handle: 128 bits of SHA-256."""
ALIGNMENT = 64

# safetensors name: numpy type.
_TYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(kind)
    for name, kind in {
        "F16": np.float16,
        "BF16": ml_dtypes.bfloat16,
        "F32": np.float32,
        "F64": np.float64,
        "I8": np.int8,
        "U8": np.uint8,
        "I16": np.int16,
        "I32": np.int32,
        "I64": np.int64,
        "U16": np.uint16,
        "U32": np.uint32,
        "U64": np.uint64,
        "BOOL": np.bool_,
    }.items()
}
_NAMES = {kind: name for name, kind in _TYPES.items()}


class WeightError(UserError, ValueError):
    """A handle that the store does not hold, or a file that is no store."""

    KIND: ClassVar[Kind] = Kind.FILE


class WeightStore:
    """Arrays by a digest of type, shape and content. They are held as they come, mapped ones stay mapped."""

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}

    def add(self, array: Array) -> str:
        """The handle of `array`, which must not change from now on."""
        handle = digest(array)
        if handle not in self._arrays:
            view = array.view()
            view.flags.writeable = False
            self._arrays[handle] = view
        return handle

    def get(self, handle: str) -> Array:
        """The array of a handle, read-only. Raises `WeightError`."""
        if handle not in self._arrays:
            rule = f"an array has this handle (found none among {len(self._arrays)})"
            raise WeightError(f"weight {handle}: {rule}; load the store of this module")
        return self._arrays[handle]

    def __contains__(self, handle: str) -> bool:
        return handle in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self._arrays.values())

    def update(self, other: "WeightStore") -> None:
        """Takes over what `other` holds."""
        self._arrays |= other._arrays

    def save(self, path: Path | str) -> None:
        """Writes a safetensors file: tensors by falling element size, so that each is aligned to its elements."""
        arrays = sorted(self._arrays.items(), key=lambda item: (-item[1].itemsize, item[0]))
        header, position = dict[str, Any](), 0
        for handle, array in arrays:
            end = position + array.nbytes
            header[handle] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [position, end]}
            position = end
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-(len(text) + 8) % ALIGNMENT)
        with Path(path).open("wb") as file:
            file.write(len(text).to_bytes(8, "little"))
            file.write(text)
            for _, array in arrays:
                file.write(_bytes(array))

    @staticmethod
    def load(path: Path | str) -> "WeightStore":
        """A store over the mapped file. Raises `WeightError`."""
        store = WeightStore()
        data = map_file(Path(path))
        size = int.from_bytes(data[:8], "little")
        try:
            header = json.loads(bytes(data[8 : 8 + size]))
            for handle, entry in header.items():
                if handle != "__metadata__":
                    store._arrays[handle] = _tensor(data, 8 + size, entry)
        except (ValueError, KeyError, TypeError) as error:
            raise WeightError(f"{path}: is a safetensors file (found {error}); save the store again") from None
        return store


def digest(array: Array) -> str:
    """The handle of an array: SHA-256 of its type, shape and bytes."""
    if array.dtype not in _NAMES:
        raise WeightError(f"a weight: has a type that safetensors knows (found {array.dtype}); cast the array")
    if isinstance(array, StandIn):
        return identity_of(array)[:DIGITS]
    state = hashlib.sha256(f"{_NAMES[array.dtype]}{array.shape}".encode())
    state.update(_bytes(array))
    return state.hexdigest()[:DIGITS]


_mapped: "WeakValueDictionary[tuple[int, ...], mmap.mmap]" = WeakValueDictionary()
"""Files that are mapped now, by device, inode, size and time of change."""


def map_file(path: Path) -> memoryview:
    """The bytes of a file, mapped read-only; all that need them share one mapping."""
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        if found.st_size == 0:
            return memoryview(b"")
        key = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
        area = _mapped.get(key)
        if area is None:
            area = _mapped[key] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return memoryview(area)


def _bytes(array: Array) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _tensor(data: memoryview, base: int, entry: dict[str, Any]) -> Array:
    start, stop = entry["data_offsets"]
    return np.frombuffer(data[base + start : base + stop], _TYPES[entry["dtype"]]).reshape(entry["shape"])
