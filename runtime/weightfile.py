"""Weights as a safetensors file: written in pieces, and read as views into mapped memory, at any offset."""

import json
import struct
from collections.abc import Mapping
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_NAMES: dict[str, np.dtype[Any]] = {
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F32": np.dtype(np.float32),
    "F64": np.dtype(np.float64),
    "I8": np.dtype(np.int8),
    "U8": np.dtype(np.uint8),
    "I32": np.dtype(np.int32),
    "I64": np.dtype(np.int64),
    "BOOL": np.dtype(np.bool_),
}
_BY_DTYPE = {dtype: name for name, dtype in _NAMES.items()}


class WeightsError(ValueError):
    """The bytes are no safetensors file: what was found; what was expected."""


def pack(weights: Mapping[str, Array]) -> list[bytes | memoryview]:
    """The file in pieces: the header, then each array's bytes, wider types first, so that all are aligned to theirs."""
    names = sorted(weights, key=lambda name: (-weights[name].dtype.itemsize, name))
    header: dict[str, Any] = {}
    at = 0
    for name in names:
        array = weights[name]
        if array.dtype not in _BY_DTYPE:
            raise WeightsError(f"weight {name}: {array.dtype}; expected one of {', '.join(map(str, _BY_DTYPE))}")
        end = at + array.nbytes
        header[name] = {"dtype": _BY_DTYPE[array.dtype], "shape": list(array.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % 64)
    flat = [np.ascontiguousarray(weights[name]).reshape(-1).view(np.uint8) for name in names]
    return [struct.pack("<Q", len(text)) + text, *(bytes_.data for bytes_ in flat if bytes_.size)]


def views(data: memoryview) -> dict[str, Array]:
    """The arrays of a file, by name: read-only views, no copies. Raises `WeightsError`."""
    if len(data) < 8:
        raise WeightsError(f"{len(data)} bytes; expected a header")
    (length,) = struct.unpack_from("<Q", data)
    try:
        header = json.loads(bytes(data[8 : 8 + length]))
        content = data[8 + length :]
        return {name: _view(content, spec) for name, spec in header.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WeightsError(f"a header that does not describe its data ({error}); expected safetensors") from None


def _view(content: memoryview, spec: Mapping[str, Any]) -> Array:
    dtype = _NAMES[spec["dtype"]]
    shape = tuple(spec["shape"])
    begin, end = spec["data_offsets"]
    if not 0 <= begin <= end <= len(content) or end - begin != prod(shape) * dtype.itemsize:
        raise ValueError(f"bytes {begin} to {end} for {dtype} {list(shape)}")
    return np.frombuffer(content[begin:end], dtype).reshape(shape)
