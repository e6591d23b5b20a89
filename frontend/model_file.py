"""Reads an ONNX file; initialisers become arrays, those in external files mapped and not read."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from ..dialects.standin import stand_in
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

MOST_BYTES = 2**31
"""Of a message of protocol buffers."""

OTHERS: Mapping[bytes, tuple[str, str]] = {
    b"version https://git-lfs": (
        "a pointer of Git LFS to one",
        "run git lfs pull, or fetch or export it again",
    ),
    b"PK\3\4": ("a ZIP archive: a .stw, .npz or .pt file", "name the .onnx file, or export one"),
    b"\x89PNG": ("a PNG image", "name the .onnx file"),
    b"\x1f\x8b": ("a gzip archive", "unpack it"),
    b"\x89HDF": ("an HDF5 file", "export an .onnx file from it"),
    b"<": ("a page of text", "fetch it again"),
}
"""How other files begin."""


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
    size = path.stat().st_size
    if size == 0:
        return b""
    data = map_file(path)
    try:
        return without_weights(data, path.name)[0]
    except WireError as error:
        if size > MOST_BYTES:
            rule = f"{path}: is ONNX (found broken data, {error}, in {size} bytes)"
            raise ModelFileError(f"{rule}; fetch or export it again") from None
        return bytes(data)


def _parse(data: bytes, name: str) -> onnx.ModelProto:
    if not data:
        raise ModelFileError(f"{name}: an ONNX file is not empty (found 0 bytes); fetch or export it again")
    for begin, (what, advice) in OTHERS.items():
        if data.startswith(begin):
            raise ModelFileError(f"{name}: is ONNX (found {what}); {advice}")
    try:
        model = onnx.load_model_from_string(data)
    except DecodeError as error:
        found = f"{str(error).strip() or 'broken data'}, {len(data)} bytes"
        raise ModelFileError(f"{name}: is ONNX (found {found}); fetch or export it again") from None
    if not model.graph.output or not model.opset_import:
        rule = f"an ONNX model has a graph with outputs, and an opset (found {len(data)} bytes without)"
        raise ModelFileError(f"{name}: {rule}; fetch or export it again")
    if broken := next((text for text in _texts(model) if isinstance(text, bytes)), None):
        raise ModelFileError(f"{name}: names are text in UTF-8 (found {broken!r}); fetch or export it again")
    return model


def _texts(message: Message) -> Iterator[str | bytes]:
    """Every text in a message and those inside; one that is none comes as bytes."""
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_STRING:
            yield from (value,) if isinstance(value, str | bytes) else value
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in (value,) if isinstance(value, Message) else value:
                yield from _texts(inner)


def to_array(tensor: TensorProto, folder: Path | None, most: int | None = None) -> Array:
    """The value of an initialiser; of one of more than `most` bytes a stand-in. Raises `ModelFileError`."""
    kind = _RAW.get(tensor.data_type)
    shape = tuple(tensor.dims)
    if any(size < 0 for size in shape):
        raise ModelFileError(f"{tensor.name}: extents are 0 or more (found {list(shape)}); {AGAIN}")
    data = _external(tensor, folder) if tensor.data_location == TensorProto.EXTERNAL else None
    if most is not None and (found := _stand_in(tensor, shape, data, most)) is not None:
        return found
    try:
        if data is not None and kind is not None:
            return np.frombuffer(data, kind).reshape(shape)
        if kind is not None and tensor.HasField("raw_data"):
            return np.frombuffer(tensor.raw_data, kind).reshape(shape)
        if data is not None:
            tensor = TensorProto(data_type=tensor.data_type, dims=shape, raw_data=bytes(data))
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError) as error:
        raise ModelFileError(
            f"{tensor.name}: the data fits the shape {list(shape)} and its type (found {error}); {AGAIN}"
        ) from None


def embedded(node: onnx.NodeProto, folder: Path | None) -> onnx.NodeProto:
    """The node with the data of its attributes and its graphs in itself; the same one if nothing lies in other files.

    Raises `ModelFileError`.
    """
    if all(tensor.data_location != TensorProto.EXTERNAL for tensor in _tensors(node)):
        return node
    made, total = onnx.NodeProto(), 0
    made.CopyFrom(node)
    for tensor in _tensors(made):
        if tensor.data_location == TensorProto.EXTERNAL:
            data = _external(tensor, folder)
            total += len(data)  # tensors may share their bytes
            if total > MOST_BYTES:
                rule = f"{node.name or node.op_type}: its tensors have less than 2 GB together"
                raise ModelFileError(f"{rule} (found {total} bytes, those of {tensor.name} the last); {AGAIN}")
            tensor.raw_data = bytes(data)
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
    return made


def _tensors(node: onnx.NodeProto) -> Iterator[TensorProto]:
    """Those of attributes, and of graphs in them."""
    for attribute in node.attribute:
        yield from (attribute.t, *attribute.tensors)
        for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
            yield from (sparse.values, sparse.indices)
        for graph in (attribute.g, *attribute.graphs):
            yield from graph.initializer
            for sparse in graph.sparse_initializer:
                yield from (sparse.values, sparse.indices)
            for inner in graph.node:
                yield from _tensors(inner)


def _stand_in(tensor: TensorProto, shape: tuple[int, ...], data: memoryview | None, most: int) -> Array | None:
    """In place of an initialiser of more than `most` bytes; None for a smaller one, and for one that is broken."""
    if tensor.data_type in (TensorProto.UNDEFINED, TensorProto.STRING):
        return None
    try:
        kind = _RAW.get(tensor.data_type) or onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except KeyError:
        return None
    bits = next((bits for bits, names in _NARROW.items() if kind.name in names), 8 * kind.itemsize)
    nbytes = -(-math.prod(shape) * bits // 8)
    raw = tensor.raw_data if data is None and tensor.HasField("raw_data") else data
    return stand_in(kind, shape) if nbytes > most and (raw is None or len(raw) == nbytes) else None


_NARROW: Mapping[int, tuple[str, ...]] = {2: ("int2", "uint2"), 4: ("int4", "uint4", "float4_e2m1fn")}
"""Types of which a byte has several, by their bits."""

AGAIN = "fetch or export the model again"


def _external(tensor: TensorProto, folder: Path | None) -> memoryview:
    """The mapped bytes of a tensor that lies in another file, in the model's folder or below it."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        rule = f"{tensor.name}: its bytes are at hand (found them in the file {location!r})"
        raise ModelFileError(f"{rule}; import the model by its path")
    path = _beside(tensor.name, location, folder)
    try:
        start = int(entries.get("offset", 0))
        length = int(entries.get("length", _bytes_of(tensor, path.stat().st_size - start)))
    except ValueError as error:
        raise ModelFileError(f"{tensor.name}: offset and length are numbers (found {error}); {AGAIN}") from None
    size = path.stat().st_size
    if not 0 <= start <= start + length <= size:
        found = f"bytes {start} to {start + length} of {size}"
        raise ModelFileError(f"{tensor.name}: its data lies within {path.name} (found {found}); {AGAIN}")
    return map_file(path)[start : start + length]


def _bytes_of(tensor: TensorProto, rest: int) -> int:
    """Bytes of a tensor of whole bytes; of another, all that the file has."""
    kind = _RAW.get(tensor.data_type)
    return rest if kind is None else math.prod(tensor.dims) * kind.itemsize


def _beside(name: str, location: str, folder: Path) -> Path:
    """The file that holds a tensor. What a path or a link names outside of the model's folder is not looked at."""
    rule = f"{name}: its data lies in a file in the model's folder"
    place = PurePath(location)
    if not location or "\0" in location or place.is_absolute() or ".." in place.parts:
        raise ModelFileError(f"{rule} (found the path {location!r}); put it there and export the model again")
    try:
        path = (folder / place).resolve()
    except (OSError, RuntimeError) as error:
        raise ModelFileError(f"{rule} (found {error}); copy the file there") from None
    if not path.is_relative_to(folder.resolve()):
        raise ModelFileError(f"{rule} (found a link out of it, {location}); copy the file there")
    if not path.is_file():
        raise ModelFileError(f"{rule} (found no file {location}); copy it there")
    return path
