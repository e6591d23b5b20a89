"""What stops the device.

DeviceFault             a fault of a running program; one line says what, where and what was expected
  AccessFault           out-of-bounds, misaligned
  ValueFault            value: a field that no instruction accepts
    IndexFault          value: an index in memory, of the user's data, that names no row
  TokenFault            token-overflow, token-left-over
  DeadlockFault         deadlock: every queue is blocked
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fault happened; what is not known stays at its default."""

    kernel: str
    core: int
    row: int = -1
    engine: str = ""
    slot: int = 0
    text: str = ""
    """The row in assembly."""
    nodes: Sequence[str] = ()
    """ONNX nodes of the slot."""

    def __str__(self) -> str:
        parts = [f"kernel {self.kernel}", f"core {self.core}"]
        if self.row >= 0:
            parts.append(f"row {self.row} ({self.engine}): {self.text}")
        if self.nodes:
            parts.append(f"node {', '.join(self.nodes)}")
        return ", ".join(parts)


class DeviceFault(RuntimeError):
    """`<kind>: <what was found>; <what was expected> [<where>]`."""

    def __init__(self, kind: str, place: Place, found: str, expected: str):
        super().__init__(f"{kind}: {found}; {expected} [{place}]")
        self.kind = kind
        self.place = place
        self.found, self.expected = found, expected

    @property
    def detail(self) -> str:
        return f"{self.found}; {self.expected}"

    def at(self, place: Place) -> "DeviceFault":
        """The same fault, its place in other words."""
        return type(self)(self.kind, place, self.found, self.expected)

    @property
    def kernel(self) -> str:
        return self.place.kernel

    @property
    def core(self) -> int:
        return self.place.core

    @property
    def row(self) -> int:
        return self.place.row

    @property
    def engine(self) -> str:
        return self.place.engine

    @property
    def slot(self) -> int:
        return self.place.slot


class AccessFault(DeviceFault):
    """An operand reaches outside its memory, or is not aligned to its elements."""


class ValueFault(DeviceFault):
    """A field holds a value that the instruction does not define."""


class IndexFault(ValueFault):
    """An index that lies in memory, so one that was given or computed, names none of the `rows`."""

    def __init__(self, place: Place, index: int, rows: int):
        super().__init__("value", place, f"index = {index}", f"{-rows} to {rows - 1} was expected")
        self.index, self.rows = index, rows

    def at(self, place: Place) -> "IndexFault":
        return IndexFault(place, self.index, self.rows)


class TokenFault(DeviceFault):
    """A token count went over its limit, or was not 0 at the end."""


class DeadlockFault(DeviceFault):
    """No queue of any core can go on."""
