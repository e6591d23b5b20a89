"""Reads an ONNX file; initialisers become arrays, those in external files mapped and not read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from ..dialects.weights import map_file
from .problems import ModelFileError
from .wire import WireError, without_weights

Array = NDArray[Any]
Source = Path | str | bytes | onnx.ModelProto

_RAW: Mapping[int, np.dtype[Any]] = {
    TensorProto.FLOAT: np.dtype(np.float32),
    TensorProto.FLOAT16: np.dtype(np.float16),
    TensorProto.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
    TensorProto.DOUBLE: np.dtype(np.float64),
    TensorProto.INT8: np.dtype(np.int8),
    TensorProto.UINT8: np.dtype(np.uint8),
    TensorProto.INT16: np.dtype(np.int16),
    TensorProto.INT32: np.dtype(np.int32),
    TensorProto.INT64: np.dtype(np.int64),
    TensorProto.BOOL: np.dtype(np.bool_),
}
"""Types whose bytes are taken as they lie in the file."""


def read_model(source: Source, mapped: bool = False) -> tuple[onnx.ModelProto, Path | None]:
    """The model, and the folder that its external data lies in. Raises `ModelFileError`.

    `mapped`: large weights stay in the file, as external data of it, and are not read.
    """
    if isinstance(source, onnx.ModelProto):
        return source, None
    if isinstance(source, bytes):
        return _parse(source, "the model"), None
    path = Path(source)
    if not path.is_file():
        found = "a folder" if path.is_dir() else "nothing"
        raise ModelFileError(f"{path}: a model is a file (found {found}); check the path")
    data = _without_weights(path) if mapped else path.read_bytes()
    return _parse(data, str(path)), path.parent


def _without_weights(path: Path) -> bytes:
    """The file without its large weights; whole if it is none that can be taken apart."""
    if path.stat().st_size == 0:
        return b""
    data = map_file(path)
    try:
        return without_weights(data, path.name)[0]
    except WireError:
        return bytes(data)


def _parse(data: bytes, name: str) -> onnx.ModelProto:
    if not data:
        raise ModelFileError(f"{name}: an ONNX file is not empty (found 0 bytes); fetch or export it again")
    if data.startswith(b"version https://git-lfs"):
        raise ModelFileError(
            f"{name}: is a model (found a pointer of Git LFS to one); run git lfs pull, or fetch or export it again"
        )
    try:
        model = onnx.load_model_from_string(data)
    except DecodeError as error:
        found = f"{str(error).strip() or 'broken data'}, {len(data)} bytes"
        raise ModelFileError(f"{name}: cannot be read as ONNX ({found}); fetch or export it again") from None
    if not model.graph.output or not model.opset_import:
        rule = f"an ONNX model has a graph with outputs, and an opset (found {len(data)} bytes without)"
        raise ModelFileError(f"{name}: {rule}; fetch or export it again")
    return model


def to_array(tensor: TensorProto, folder: Path | None) -> Array:
    """The value of an initialiser. Raises `ModelFileError`."""
    kind = _RAW.get(tensor.data_type)
    shape = tuple(tensor.dims)
    data = _external(tensor, folder, kind) if tensor.data_location == TensorProto.EXTERNAL else None
    try:
        if data is not None and kind is not None:
            return np.frombuffer(data, kind).reshape(shape)
        if kind is not None and tensor.HasField("raw_data"):
            return np.frombuffer(tensor.raw_data, kind).reshape(shape)
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        raise ModelFileError(
            f"{tensor.name}: the data fits the shape {list(shape)} ({error}); fetch or export the model again"
        ) from None


def _external(tensor: TensorProto, folder: Path | None, kind: np.dtype[Any] | None) -> memoryview:
    """The mapped bytes of a tensor that lies in another file."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    if folder is None or kind is None:
        raise ModelFileError(
            f"{tensor.name}: its data lies in the file {entries.get('location')!r}; import the model by its path"
        )
    path = (folder / entries.get("location", "")).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise ModelFileError(f"{tensor.name}: external data lies beside the model (found no {path}); copy it there")
    try:
        start = int(entries.get("offset", 0))
        length = int(entries.get("length", int(np.prod(tensor.dims)) * kind.itemsize))
    except ValueError as error:
        raise ModelFileError(f"{tensor.name}: offset and length are numbers ({error}); export it again") from None
    size = path.stat().st_size
    if not 0 <= start <= start + length <= size:
        found = f"bytes {start} to {start + length} of {size}"
        raise ModelFileError(f"{tensor.name}: its data lies within {path.name} (found {found}); fetch it again")
    return map_file(path)[start : start + length]
