"""The file of a compiled model: a ZIP archive in one fixed form, so that no byte of it goes unchecked.

Members are stored, each begins at a multiple of 64, one follows the other, and the archive's comment is the SHA-256 of
the first. All other bytes follow from the members' names, sizes and CRCs: `read` works them out again and compares. Any
unzip reads it.
"""

import mmap
import os
import secrets
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import ClassVar

from .problem import Kind, Problem, UserError

ALIGNMENT = 64
_COMMENT = "stepwell sha256 {}"
_COMMENT_BYTES = len(_COMMENT.format("0" * 64))
_DATE, _VERSION, _PADDING = 0x0021, 45, 0x5753  # 1 January 1980; the first with 64-bit sizes; our extra field
_64, _16 = 0xFFFFFFFF, 0xFFFF  # "see the 64-bit field"

_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_LOCAL_EXTRA = struct.Struct("<HHQQHH")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_CENTRAL_EXTRA = struct.Struct("<HHQQQ")
_END64 = struct.Struct("<4sQHHIIQQQQ")
_LOCATOR = struct.Struct("<4sIQI")
_END = struct.Struct("<4sHHHHIIH")
_TAIL_BYTES = _END64.size + _LOCATOR.size + _END.size + _COMMENT_BYTES

Chunk = bytes | memoryview


class ArtifactError(UserError, ValueError):
    """A file that is no sound artifact for this device: `<part>: is <expected> (found …); <what to do>`."""

    KIND: ClassVar[Kind] = Kind.FILE

    def __init__(self, part: str, found: object, expected: object, remedy: str, file: str = "") -> None:
        self._where = part if not file else file if part == "file" else f"{file}: {part}"
        super().__init__(f"{self._where}: is {expected} (found {' '.join(str(found).split())}); {remedy}")
        self.part = part
        self.found = str(found)
        self.expected = str(expected)
        self.remedy = remedy

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The one."""
        return (Problem(str(self), self.KIND, self._where),)

    def within(self, path: Path) -> "ArtifactError":
        """The same, which names the file."""
        return ArtifactError(self.part, self.found, self.expected, self.remedy, str(path))


AGAIN = "copy the file again, or compile the model again"


@dataclass(frozen=True, slots=True)
class Entry:
    """A member: its name, size and CRC, and the offset of its local header."""

    name: str
    size: int
    crc: int
    header: int

    @property
    def start(self) -> int:
        """Where its content begins."""
        return -(-(self.header + _LOCAL.size + len(self.name) + _LOCAL_EXTRA.size) // ALIGNMENT) * ALIGNMENT

    @property
    def end(self) -> int:
        return self.start + self.size

    def local(self) -> bytes:
        """Its local header, padded to where the content begins."""
        padding = self.start - self.header - _LOCAL.size - len(self.name) - _LOCAL_EXTRA.size
        sizes = (_64, _64, len(self.name), _LOCAL_EXTRA.size + padding)
        fixed = _LOCAL.pack(b"PK\3\4", _VERSION, 0, 0, 0, _DATE, self.crc, *sizes)
        extra = _LOCAL_EXTRA.pack(1, 16, self.size, self.size, _PADDING, padding)
        return fixed + self.name.encode("ascii") + extra + bytes(padding)

    def central(self) -> bytes:
        """Its entry in the directory."""
        sizes = (_64, _64, len(self.name), _CENTRAL_EXTRA.size, 0, 0, 0, 0, _64)
        fixed = _CENTRAL.pack(b"PK\1\2", _VERSION, _VERSION, 0, 0, 0, _DATE, self.crc, *sizes)
        return fixed + self.name.encode("ascii") + _CENTRAL_EXTRA.pack(1, 24, self.size, self.size, self.header)


def _tail(entries: Sequence[Entry], digest: str) -> bytes:
    """All that follows the last member."""
    directory = b"".join(entry.central() for entry in entries)
    at = entries[-1].end
    count = len(entries)
    end64 = _END64.pack(b"PK\6\6", _END64.size - 12, _VERSION, _VERSION, 0, 0, count, count, len(directory), at)
    locator = _LOCATOR.pack(b"PK\6\7", 0, at + len(directory), 1)
    end = _END.pack(b"PK\5\6", _16, _16, _16, _16, _64, _64, _COMMENT_BYTES)
    return directory + end64 + locator + end + _COMMENT.format(digest).encode("ascii")


def write(path: Path, members: Sequence[tuple[str, Sequence[Chunk]]]) -> None:
    """Writes the archive: in whole, or nothing at all. Equal members give equal bytes."""
    entries: list[Entry] = []
    for name, chunks in members:
        header = entries[-1].end if entries else 0
        crc = list(accumulate(chunks, lambda crc, chunk: zlib.crc32(chunk, crc), initial=0))[-1]
        entries.append(Entry(name, sum(memoryview(chunk).nbytes for chunk in chunks), crc, header))
    digest = sha256(b"".join(members[0][1])).hexdigest()
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        with scratch.open("xb") as file:
            for entry, (_, chunks) in zip(entries, members, strict=True):
                file.write(entry.local())
                for chunk in chunks:
                    file.write(chunk)
            file.write(_tail(entries, digest))
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


@dataclass(frozen=True)
class Container:
    """An archive in memory (mapped, not read), its form verified. The content of all but the first member is not."""

    data: memoryview
    entries: dict[str, Entry]

    def content(self, name: str) -> memoryview:
        """The bytes of a member. Raises `ArtifactError` if it is not there."""
        if name not in self.entries:
            raise ArtifactError(name, "no such member", "it in the archive", AGAIN)
        entry = self.entries[name]
        return self.data[entry.start : entry.end]


def read(path: Path) -> Container:
    """Maps an archive that `write` made. Raises `ArtifactError` for any other file."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b"")
    except OSError as error:
        raise ArtifactError("file", error.strerror or "an error", "a file that can be read", "check the path") from None
    return parse(data)


def parse(data: memoryview) -> Container:
    """The archive in `data`. Raises `ArtifactError`."""
    if bytes(data[:4]) != b"PK\3\4":
        begin = bytes(data[:4]).hex(" ") or "nothing"
        raise ArtifactError(
            "file", f"{begin} at its beginning", "a ZIP archive (50 4b 03 04)", "name a file that Stepwell wrote"
        )
    entries = _directory(data)
    manifest = data[entries[0].start : entries[0].end]
    for entry in entries:
        _compare(data, entry.header, entry.local(), f"header of {entry.name}")
    tail = _tail(entries, sha256(manifest).hexdigest())
    digest_at = len(data) - _COMMENT_BYTES
    _compare(data, entries[-1].end, tail[:-_COMMENT_BYTES], "directory")
    _compare(data, digest_at, tail[-_COMMENT_BYTES:], f"{entries[0].name} by its digest")
    return Container(data, {entry.name: entry for entry in entries})


def _directory(data: memoryview) -> list[Entry]:
    """The members, by the directory at the end of the file; it need not tell the truth, but lies within the file."""
    at = len(data) - _TAIL_BYTES
    if at < 0 or bytes(data[at : at + 4]) != b"PK\6\6":
        raise ArtifactError("end of the archive", "other bytes", "the directory's end record (truncated?)", AGAIN)
    *_, count, size, start = _END64.unpack_from(data, at)
    if start + size != at or count < 1:
        raise ArtifactError(
            "directory", f"{count} members in {size} bytes at {start}", f"at least one, and to end at {at}", AGAIN
        )
    entries: list[Entry] = []
    while start < at and len(entries) < count:
        entry, start = _entry(data, start, at)
        entries.append(entry)
    if start != at or len(entries) != count or len({entry.name for entry in entries}) != count:
        raise ArtifactError("directory", f"{len(entries)} members up to {start}", f"{count} up to {at}", AGAIN)
    headers = [0, *(entry.end for entry in entries[:-1])]
    if [entry.header for entry in entries] != headers or entries[-1].end != at - size:
        raise ArtifactError("directory", "members with gaps or overlaps", "one after the other", AGAIN)
    return entries


def _entry(data: memoryview, at: int, limit: int) -> tuple[Entry, int]:
    """One entry of the directory, and where the next begins."""
    damaged = ArtifactError("directory", f"no entry at byte {at}", "an entry for each member", AGAIN)
    if at + _CENTRAL.size > limit:
        raise damaged
    fixed = _CENTRAL.unpack_from(data, at)
    crc, length = fixed[7], fixed[10]
    name_at = at + _CENTRAL.size
    extra_at = name_at + length
    if fixed[0] != b"PK\1\2" or extra_at + _CENTRAL_EXTRA.size > limit or not bytes(data[name_at:extra_at]).isascii():
        raise damaged
    name = bytes(data[name_at:extra_at]).decode("ascii")
    size, _, header = _CENTRAL_EXTRA.unpack_from(data, extra_at)[2:]
    return Entry(name, size, crc, header), extra_at + _CENTRAL_EXTRA.size


def _compare(data: memoryview, at: int, expected: bytes, part: str) -> None:
    found = bytes(data[at : at + len(expected)])
    if found == expected:
        return
    byte = next((i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), len(found))
    what = f"{found[byte]:#04x} at byte {at + byte}" if byte < len(found) else f"the end at byte {at + byte}"
    raise ArtifactError(part, what, f"{expected[byte]:#04x} (damaged, or packed by another tool)", AGAIN)
