"""Takes the weights out of an ONNX file without reading them, by the wire format of protocol buffers.

    slim, taken = without_weights(mapped_file)      # a small model; each large tensor says where its bytes lie

A message is a run of fields: a key (number · 8 + wire type, a varint), then a varint, 8 bytes, a length and so many
bytes, or 4 bytes. What is not a large initialiser of the main graph is copied as it stands; of those the field
`raw_data` is left out, and `data_location` and `external_data` are added, as if the file were the model's own external
data.
"""

from collections.abc import Iterator
from typing import NamedTuple

LEAST = 1024
"""Bytes from which a tensor is left in the file."""

MOST_FIELDS = 2**20
"""Of a message: more than any model has, and few enough to look at in a second."""

_GRAPH, _INITIALIZER = 7, 5
_RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 9, 13, 14
_KEY, _VALUE = 1, 2
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_IS_EXTERNAL = 1


class WireError(ValueError):
    """The bytes are no message."""


class Field(NamedTuple):
    """A field of a message: it stands at [start, end), its value at [value, end)."""

    number: int
    kind: int
    start: int
    value: int
    end: int


def without_weights(data: memoryview, location: str) -> tuple[bytes, int]:
    """The model without the bytes of its large initialisers, which lie in the file `location`; and how many bytes were
    left out.

    Raises `WireError` for what is no protocol buffer.
    """
    parts, left = [], 0
    for field in fields(data, 0, len(data)):
        if field.number == _GRAPH and field.kind == _BYTES:
            graph, count = _graph(data, field, location)
            parts.append(_message(_GRAPH, graph))
            left += count
        else:
            parts.append(bytes(data[field.start : field.end]))
    return b"".join(parts), left


def _graph(data: memoryview, graph: Field, location: str) -> tuple[bytes, int]:
    parts, left, copied = list[bytes](), 0, graph.value
    for field in fields(data, graph.value, graph.end):
        if field.number != _INITIALIZER or field.kind != _BYTES or field.end - field.value < LEAST:
            continue
        raw = [f for f in fields(data, field.value, field.end) if f.number == _RAW_DATA and f.kind == _BYTES]
        if len(raw) != 1 or raw[0].end - raw[0].value < LEAST:
            continue
        parts += [bytes(data[copied : field.start]), _message(_INITIALIZER, _tensor(data, field, raw[0], location))]
        copied = field.end
        left += raw[0].end - raw[0].value
    parts.append(bytes(data[copied : graph.end]))
    return b"".join(parts), left


def _tensor(data: memoryview, tensor: Field, raw: Field, location: str) -> bytes:
    """A tensor whose data lies in the file."""
    place = {"location": location, "offset": str(raw.value), "length": str(raw.end - raw.value)}
    entries = [_message(_KEY, key.encode()) + _message(_VALUE, value.encode()) for key, value in place.items()]
    return b"".join(
        [
            bytes(data[tensor.value : raw.start]),
            bytes(data[raw.end : tensor.end]),
            *(_message(_EXTERNAL_DATA, entry) for entry in entries),
            _varint(_DATA_LOCATION * 8 + _VARINT) + _varint(_IS_EXTERNAL),
        ]
    )


def fields(data: memoryview, start: int, end: int) -> Iterator[Field]:
    """The fields of the message at [start, end). Raises `WireError`."""
    for _ in range(MOST_FIELDS):
        if start >= end:
            return
        key, at = _read_varint(data, start, end)
        kind = key & 7
        if not key >> 3:
            raise WireError(f"byte {start}: field 0")
        if kind == _VARINT:
            value, (_, stop) = at, _read_varint(data, at, end)
        elif kind == _BYTES:
            length, value = _read_varint(data, at, end)
            stop = value + length
        elif kind in (_EIGHT, _FOUR):
            value, stop = at, at + (8 if kind == _EIGHT else 4)
        else:
            raise WireError(f"byte {start}: wire type {kind}")
        if stop > end:
            raise WireError(f"byte {start}: a field ends at {stop}, its message at {end}")
        yield Field(key >> 3, kind, start, value, stop)
        start = stop
    raise WireError(f"byte {start}: the message goes on after {MOST_FIELDS} fields")


def _read_varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
    raise WireError(f"byte {at}: a number without end")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _message(number: int, content: bytes) -> bytes:
    return _varint(number * 8 + _BYTES) + _varint(len(content)) + content
