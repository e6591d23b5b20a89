"""What the checker says: findings as data, and their texts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import isa
from .footprint import BAD_COUNTER, BAD_TOKEN, OUTSIDE
from .generator import FAULTS, FIELDS
from .shadow import DTYPE, READ_WRITE, WRITE_READ, WRITE_WRITE


@dataclass(frozen=True, slots=True)
class Place:
    """An instruction: where it stands, and whose queue on which core executed it."""

    kernel: str
    row: int
    text: str
    slot: int
    engine: str
    core: int

    def __str__(self) -> str:
        return f"row {self.row} `{self.text}` ({self.engine})"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong.

    `kind` is race, deadlock, overflow, left-over, outside, unwritten, dtype, range, fault or output.
    """

    kind: str
    text: str
    before: Place | None = None
    """For a race: the instruction that the walk met first."""
    place: Place | None = None
    space: str = ""
    low: int = 0
    high: int = 0

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Report:
    """What was found, the first occurrence of each."""

    findings: tuple[Finding, ...]

    @property
    def clean(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        return "\n".join(str(finding) for finding in self.findings) or "clean"


RACES = {WRITE_READ: ("writes", "reads"), READ_WRITE: ("reads", "writes"), WRITE_WRITE: ("writes", "writes")}


def memory_finding(kind: int, first: Place | None, second: Place, space: str, low: int, high: int) -> Finding:
    """A race, or (without a `first`) a read of what was never written or with another dtype."""
    where = f"{space} bytes {low} to {high - 1}"
    if first is None:
        name, fault = ("dtype", "written with another dtype") if kind == DTYPE else ("unwritten", "which nobody wrote")
        return Finding(name, f"core {second.core}: {second} reads {where}, {fault}", None, second, space, low, high)
    before, after = RACES[kind]
    if first.core == second.core:
        here, missing = f"core {second.core}: ", f"a set/wait from {first.engine} to {second.engine} is missing"
        if first.engine == "scalar":
            missing = "the read has to come earlier in the program"
        if second.engine == "scalar":
            missing = f"a read cannot wait for {first.engine}; it belongs into a later launch"
        text = f"{here}nothing orders {first} before {second}"
    else:
        signal, wait = (
            f"a signal of {first.engine} on core {first.core}",
            f"an await in {second.engine} on core {second.core}",
        )
        missing = f"{signal} and {wait} are missing"
        text = f"nothing orders {first} of core {first.core} before {second} of core {second.core}"
    text += f": the first {before} and the second {after} {where}; {missing}"
    return Finding("race", text, first, second, space, low, high)


def overflow(place: Place) -> Finding:
    """A set or grant that may come too often."""
    text = (
        f"core {place.core}: {place} can give more than {isa.TOKEN_LIMIT} tokens: the waiter may not have taken any yet"
    )
    return Finding("overflow", text, None, place)


def wanted(name: str, record: NDArray[np.int64]) -> str:
    """What the instruction of a record waits for, if it is one that does."""
    if name == "await":
        return f" waits for counter {record[FIELDS + 1]} to reach {record[FIELDS + 2]}"
    return f" waits for token {record[FIELDS + 2]}" if name == "wait" else ""


def survey_finding(kind: int, place: Place, space: int, low: int, high: int, size: int) -> Finding:
    """Something that `footprint.survey` found wrong: `space` may be a token, a counter or a fault as well."""
    where = f"core {place.core}: row {place.row} `{place.text}`"
    if kind == OUTSIDE:
        name = isa.Space(space).name
        text = f"{where} touches {name} bytes {low} to {high - 1}; {name} has {size}"
        return Finding("outside", text, None, place, name, low, high)
    if kind == BAD_TOKEN:
        text = f"{where} names token {space}; ids are 0 to {isa.TOKEN_IDS - 1}, and a grant is not negative"
        return Finding("range", text, None, place)
    if kind == BAD_COUNTER:
        return Finding("range", f"{where} names counter {space}; they are 0 to {isa.COUNTERS - 1}", None, place)
    return Finding("fault", f"{where}: {FAULTS[space]}", None, place)
