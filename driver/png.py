"""PNG files into arrays, with the standard library: 8 bits a channel, not interlaced."""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import CommandError

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by colour type; 3 is an index into a palette


def read(path: Path) -> NDArray[np.uint8]:
    """The pixels [height, width, channels], one channel or three; alpha is laid over white. Raises `CommandError`."""
    data = path.read_bytes()
    if not data.startswith(_SIGNATURE):
        raise CommandError(f"{path}: must be a PNG file (found {data[:8].hex(' ') or 'nothing'}); convert it")
    try:
        chunks = list(_chunks(data))
        width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[0][1])
        if depth != 8 or interlaced or colour not in _CHANNELS:
            found = f"{depth} bits, colour type {colour}{', interlaced' if interlaced else ''}"
            raise CommandError(f"{path}: must have 8 bits a channel and no interlacing (found {found}); convert it")
        rows = _unfilter(
            zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT")), height, width, colour
        )
        palette = next((body for kind, body in chunks if kind == b"PLTE"), b"")
    except (struct.error, zlib.error, IndexError, ValueError) as error:
        if isinstance(error, CommandError):
            raise
        raise CommandError(f"{path}: is a sound PNG file (found {error}); make or copy it again") from None
    if colour == 3:
        rows = np.frombuffer(palette, np.uint8).reshape(-1, 3)[rows[:, :, 0]]
    return _flatten(rows)


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + length]
        if len(body) != length or zlib.crc32(kind + body) != struct.unpack_from(">I", data, at + 8 + length)[0]:
            raise ValueError(f"chunk {kind!r} at byte {at}")
        yield kind, body
        at += 12 + length


def _unfilter(data: bytes, height: int, width: int, colour: int) -> NDArray[np.uint8]:
    """Undoes the filter of each row (PNG specification, section 9)."""
    channels = _CHANNELS[colour]
    lines = np.frombuffer(data, np.uint8).reshape(height, 1 + width * channels)
    out = np.zeros((height, width, channels), np.uint8)
    above = np.zeros((width, channels), np.uint8)
    for y in range(height):
        line = lines[y, 1:].reshape(width, channels)
        above = out[y] = _row(int(lines[y, 0]), line, above)
    return out


def _row(kind: int, line: NDArray[np.uint8], above: NDArray[np.uint8]) -> NDArray[np.uint8]:
    if kind == 0:
        return line
    if kind == 1:
        return np.cumsum(line, axis=0, dtype=np.uint8)
    if kind == 2:
        return line + above
    if kind not in (3, 4):
        raise ValueError(f"filter {kind}")
    out = np.zeros_like(line)
    for c in range(line.shape[1]):
        out[:, c] = _predicted(kind, line[:, c].tolist(), above[:, c].tolist())
    return out


def _predicted(kind: int, line: list[int], above: list[int]) -> list[int]:
    """A channel of a row that is predicted from its left, upper and upper left neighbours."""
    left = corner = 0
    out: list[int] = []
    for value, up in zip(line, above, strict=True):
        left = (value + ((left + up) // 2 if kind == 3 else _paeth(left, up, corner))) & 255
        out.append(left)
        corner = up
    return out


def _paeth(left: int, up: int, corner: int) -> int:
    estimate = left + up - corner
    return min((left, up, corner), key=lambda value: abs(estimate - value))


def _flatten(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Without alpha."""
    if pixels.shape[2] in (1, 3):
        return np.ascontiguousarray(pixels)
    colour, alpha = pixels[:, :, :-1].astype(np.uint16), pixels[:, :, -1:].astype(np.uint16)
    return ((colour * alpha + 255 * (255 - alpha) + 127) // 255).astype(np.uint8)
