"""Faults of compiled code in words: which row, which operand, what was found and what was expected."""

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .. import isa
from ..assembly import row_text
from ..encoding import Program
from ..faults import AccessFault, DeadlockFault, DeviceFault, IndexFault, Place, TokenFault, ValueFault
from ..generator import FAULT, FAULTS, PC, WIDTH, State
from . import core as layout
from .core import Words
from .sync import ENGINES

_SPACES = [space.name if space != isa.Space.GM else "global memory" for space in isa.Space]
_ENGINES = [engine.name.lower() for engine in isa.Engine]
_READ_OUTSIDE = 3
"""The generator's fault of a `read` outside global memory."""


def _pair(pair: int) -> str:
    return f"{_ENGINES[pair // ENGINES]}→{_ENGINES[pair % ENGINES]}"


@dataclass(frozen=True, slots=True)
class Launch:
    """What a fault needs to name its place."""

    program: Program
    kernel: str
    nodes: Sequence[Sequence[str]] = ()

    def place(self, core: int, row: int, engine: int) -> Place:
        """Where a row of the program stands."""
        r = self.program[row]
        nodes = self.nodes[r.slot] if r.slot < len(self.nodes) else ()
        return Place(self.kernel, core, row, _ENGINES[engine], r.slot, row_text(r), tuple(nodes))

    def fault(self, core: int, words: Words, state: State) -> DeviceFault:
        """The fault that stands in the block of a core, or in the state of its sequencer."""
        if state.cursor[FAULT]:
            return self._sequencer(core, state)
        record = np.array((ctypes.c_int64 * WIDTH).from_address(int(words[layout.FAULT_RECORD])))
        place = self.place(core, int(record[layout.ROW]), int(record[layout.ENGINE]))
        fields = self.program[place.row].instruction.fields
        field = fields[int(words[layout.FAULT_FIELD]) - layout.FIELDS].name
        a, b, c, d = (int(v) for v in words[layout.FAULT_VALUES : layout.FAULT_VALUES + 4])
        return _fault(int(words[layout.FAULT_KIND]), place, field, a, b, c, d)

    def _sequencer(self, core: int, state: State) -> DeviceFault:
        place, code = self.place(core, int(state.cursor[PC]), isa.Engine.SCALAR), int(state.cursor[FAULT])
        if code == _READ_OUTSIDE:
            return AccessFault("out-of-bounds", place, FAULTS[code], "an address inside it was expected")
        return ValueFault("value", place, FAULTS[code], "see the instruction")

    def tokens_left(self, core: int, tokens: Words) -> DeviceFault:
        """Tokens that nothing took."""
        counts = tokens.reshape(-1, isa.TOKEN_IDS)
        found = [f"{counts[pair, i]} of {_pair(pair)} id {i}" for pair, i in np.argwhere(counts).tolist()]
        return TokenFault("token-left-over", Place(self.kernel, core), ", ".join(found), "every count is 0 at the end")

    def deadlock(self, heads: Iterable[tuple[int, Words]]) -> DeviceFault:
        """Every queue is blocked; `heads` are (core, record)."""
        places = [(self.place(core, int(r[layout.ROW]), int(r[layout.ENGINE])), r) for core, r in heads]
        found = "; ".join(f"core {place.core} {place.engine}: {self._waiting(place, r)}" for place, r in places)
        first = places[0][0] if places else Place(self.kernel, 0)
        return DeadlockFault("deadlock", first, found, "at least one queue can go on")

    def _waiting(self, place: Place, record: Words) -> str:
        name, fields = self.program[place.row].name, [int(v) for v in record[layout.FIELDS :]]
        if name == "wait":
            return f"row {place.row} waits for {_pair(fields[0] * ENGINES + fields[1])} id {fields[2]}"
        return f"row {place.row} awaits counter {fields[1]} ≥ {fields[2]}" if name == "await" else f"row {place.row}"


def _fault(kind: int, place: Place, field: str, a: int, b: int, c: int, d: int) -> DeviceFault:
    """`a` … `d` are the values that `execute/core.py` wrote down."""
    if kind == layout.OUT_OF_BOUNDS:
        return AccessFault(
            "out-of-bounds", place, f"{field} reaches bytes {a} to {b} of {_SPACES[d]}", f"it has {c} bytes"
        )
    if kind == layout.MISALIGNED and c < 0:
        return AccessFault("misaligned", place, f"{field} = {a}", f"a multiple of {b} was expected")
    if kind == layout.MISALIGNED:
        return AccessFault(
            "misaligned",
            place,
            f"{field} at byte {a} of {_SPACES[c]} or one of its strides is not aligned",
            f"multiples of {b} were expected",
        )
    if kind == layout.BAD_INDEX:
        return IndexFault(place, a, b)
    if kind == layout.BAD_SPACE:
        allowed = "ub, l1 or gm" if d else "l1 or ub"
        return ValueFault("value", place, f"{field} = {isa.Space(a).name.lower()}", f"{allowed} was expected")
    if kind == layout.TOKEN_OVERFLOW:
        return TokenFault(
            "token-overflow",
            place,
            f"{a} + {b} tokens of {_pair(d)} id {c}",
            f"a count stays in 0 to {isa.TOKEN_LIMIT}",
        )
    return ValueFault("value", place, f"{field} = {a}", f"{b} to {c} was expected")
