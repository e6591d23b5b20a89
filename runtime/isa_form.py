"""What the declaration of an instruction consists of; `isa.py` holds the declarations."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, cast

ISA_VERSION = 1


class Engine(IntEnum):
    """In-order queues; all run at once. The scalar engine issues to the others."""

    SCALAR = 0
    LOAD = 1
    FEED = 2
    CUBE = 3
    DRAIN = 4
    VECTOR = 5
    STORE = 6


class Space(IntEnum):
    """Memories; an address is a byte offset in one of them."""

    GM = 0
    L1 = 1
    L0A = 2
    L0B = 3
    L0C = 4
    UB = 5


DTYPES = {"f16": 0, "bf16": 1, "f32": 2, "i8": 3, "u8": 4, "i32": 5, "b8": 6}
PACKED = {"i8": 3, "u8": 4, "i4": 8, "u4": 9}
"""Integers that a feed makes floats of; those of 4 bits stand two in a byte, the first in its low half."""
ACTIVATIONS = {"none": 0, "relu": 1, "clip": 2}
REDUCTIONS = {"sum": 0, "max": 1, "min": 2, "prod": 3}
TOKEN_IDS = 8
TOKEN_LIMIT = 15
"""Counts are 4 bits wide: a set beyond this is a fault."""
COUNTERS = 1024
"""Global counters for synchronisation between cores and kernels."""

Kind = Literal[
    "address", "extent", "stride", "integer", "flag", "float", "dtype", "packed", "space", "engine", "fn", "act",
    "reduction", "register", "ring",
]  # fmt: skip

NAMED_VALUES: dict[str, dict[str, int]] = {
    "dtype": DTYPES,
    "packed": PACKED,
    "act": ACTIVATIONS,
    "reduction": REDUCTIONS,
    "space": {space.name.lower(): int(space) for space in Space},
    "engine": {engine.name.lower(): int(engine) for engine in Engine},
}
"""Kinds whose constants have names in assembly text (`fn` is named by `runtime.numerics`)."""


@dataclass(frozen=True, slots=True)
class Field:
    """One 64-bit field of an instruction. `float` fields hold the bits of an f32."""

    name: str
    kind: Kind
    doc: str
    default: int | None = None
    """Value that assembly text may leave out; None: must be written."""


@dataclass(frozen=True, slots=True)
class Access:
    """Bytes an operand touches: `runs` is (count, stride) per outer axis, `length` the innermost contiguous run.

    `space` is a memory or the name of the field that holds it. The operand exists only if the formula `when` is not 0.
    """

    field: str
    space: Space | str
    writes: bool
    runs: tuple[tuple[str, str], ...]
    length: str
    reads: str = "0"
    """For a written operand: it is read as well if this formula is not 0."""
    when: str = "1"
    start: str = "0"
    """Bytes from the address to the first run."""


_QUEUE_FIELDS = {"set": "src", "wait": "dst", "grant": "dst", "signal": "engine", "await": "engine"}


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. If any field in `extents` is 0 it does nothing (tokens still flow through its queue)."""

    name: str
    engine: Engine | None
    doc: str
    action: str
    fields: tuple[Field, ...]
    cycles: str = "1"
    gm_bytes: str = "0"
    extents: tuple[str, ...] = ()
    accesses: tuple[Access, ...] = ()

    @property
    def queue_field(self) -> str | None:
        """The field that names the engine whose queue takes the row; None: the instruction's own engine."""
        return _QUEUE_FIELDS.get(self.name)

    def index(self, field: str) -> int:
        """Position of a field; raises KeyError for an unknown name."""
        for position, spec in enumerate(self.fields):
            if spec.name == field:
                return position
        raise KeyError(f"{self.name} has no field {field!r}; it has {', '.join(f.name for f in self.fields)}")


def fields(table: str) -> tuple[Field, ...]:
    """Fields from lines `name,name kind meaning` or `name=default kind meaning`."""
    found: list[Field] = []
    for line in filter(None, map(str.strip, table.splitlines())):
        names, kind, doc = line.split(None, 2)
        names, _, default = names.partition("=")
        value = int(default, 0) if default else None
        found += [Field(name, cast(Kind, kind), doc, value) for name in names.split(",")]
    return tuple(found)


def runs(text: str) -> tuple[tuple[str, str], ...]:
    """Outer axes from `n0*d0 n1*d1`."""
    return tuple((count, stride) for count, _, stride in (pair.partition("*") for pair in text.split()))


def size(field: str) -> str:
    """Bytes of an element whose type stands in a field."""
    return f"(2 if {field} < 2 else 4 if {field} == 2 or {field} == 5 else 1)"


def fed(rows: str, columns: str, block: str, path: str) -> str:
    """Cycles to bring a matrix over a path: in whole blocks, of as many rows as the cube's and 32 bytes."""
    return f"T.fixed_feed + up(up({rows}, T.{block}) * T.{block} * up({columns} * {size('dtype')}, 32) * 32, T.{path})"
