"""Programs as rows of field expressions, and their binary form.

The unit is a word of 16 bytes. A row is one header word, its field bases (8 bytes each, padded to a word) and one word
for each modifier (a term, a clamp or a ring of one field), so a row's length follows from its header alone:

    header    opcode u8 · 0 u8 · modifiers u16 · slot u32 · 0 u64
    bases     s64 for each field of the instruction
    modifier  kind u8 · field u8 · x u8 · y u8 · aux s32 · value s64

`slot` is an index into the launch's table of ONNX nodes. A modifier is a term value·x·y, a clamp to `value`, or the
ring of loop x with n = y, off = aux and slot = value.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from . import isa
from .expr import CODE, LEVELS, MAX_SLOTS, RINGS, VARIABLES, Expr, Ring, Term
from .problem import Kind, UserError

WORD = 16
TERM, CLAMP, RING = 1, 2, 3
_HEADER = struct.Struct("<BxHIxxxxxxxx")
_MODIFIER = struct.Struct("<BBBBiq")


class ProgramError(UserError, ValueError):
    """A program, its text or its bytes are malformed: `<where>: <what was found>; <what was expected>`."""

    KIND: ClassVar[Kind] = Kind.IR


@dataclass(frozen=True, slots=True)
class Row:
    """One static instruction: its fields in the order of the declaration; the slot binds it to an ONNX node."""

    name: str
    fields: tuple[Expr, ...]
    slot: int = 0

    @property
    def instruction(self) -> isa.Instruction:
        return isa.BY_NAME[self.name]

    def __getitem__(self, field: str) -> Expr:
        return self.fields[self.instruction.index(field)]


Program = tuple[Row, ...]


def row(name: str, slot: int = 0, /, **fields: Expr | int) -> Row:
    """A row by field names; fields with a default may be left out. Raises `ProgramError` naming every wrong field."""
    instruction = isa.BY_NAME.get(name)
    if instruction is None:
        raise ProgramError(f"unknown instruction {name!r}")
    known = {spec.name for spec in instruction.fields}
    missing = [spec.name for spec in instruction.fields if spec.default is None and spec.name not in fields]
    if unknown := sorted(set(fields) - known):
        raise ProgramError(
            f"{name}: no field {', '.join(unknown)}; it has {', '.join(f.name for f in instruction.fields)}"
        )
    if missing:
        raise ProgramError(f"{name}: {', '.join(missing)} must be given")
    values = (fields.get(spec.name, spec.default or 0) for spec in instruction.fields)
    return Row(name, tuple(value if isinstance(value, Expr) else Expr(int(value)) for value in values), slot)


def encode(program: Program) -> bytes:
    """The binary form; raises `ProgramError` if `check` does."""
    check(program)
    return b"".join(_encode_row(r) for r in program)


def _encode_row(r: Row) -> bytes:
    modifiers = b"".join(m for index, field in enumerate(r.fields) for m in _encode_modifiers(index, field))
    header = _HEADER.pack(isa.OPCODE[r.name], len(modifiers) // WORD, r.slot)
    bases = b"".join(struct.pack("<q", field.base) for field in r.fields)
    return header + bases + bytes(-len(bases) % WORD) + modifiers


def _encode_modifiers(index: int, field: Expr) -> list[bytes]:
    words = [_MODIFIER.pack(TERM, index, CODE[t.x], CODE[t.y], 0, t.coef) for t in field.terms]
    if field.clamp is not None:
        words.append(_MODIFIER.pack(CLAMP, index, 0, 0, 0, field.clamp))
    if field.ring is not None:
        words.append(_MODIFIER.pack(RING, index, field.ring.loop, field.ring.n, field.ring.off, field.ring.slot))
    return words


def decode(data: bytes) -> Program:
    """Reads the binary form; raises `ProgramError` for anything that `encode` does not write."""
    rows: list[Row] = []
    at = 0
    while at < len(data):
        where = f"row {len(rows)} at byte {at}"
        if at + WORD > len(data):
            raise ProgramError(f"{where}: the program ends inside a header")
        opcode, modifiers, slot = _HEADER.unpack_from(data, at)
        if opcode >= len(isa.INSTRUCTIONS):
            raise ProgramError(
                f"{where}: opcode {opcode}; this ISA (version {isa.ISA_VERSION}) has 0 to {len(isa.INSTRUCTIONS) - 1}"
            )
        instruction = isa.INSTRUCTIONS[opcode]
        count = len(instruction.fields)
        bases_end = at + WORD + -(-8 * count // WORD) * WORD
        end = bases_end + modifiers * WORD
        if end > len(data):
            raise ProgramError(f"{where}: {instruction.name} needs {end - at} bytes, {len(data) - at} are left")
        bases = struct.unpack_from(f"<{count}q", data, at + WORD)
        fields = _decode_fields(bases, data[bases_end:end], where)
        rows.append(Row(instruction.name, fields, slot))
        at = end
    program = tuple(rows)
    if (again := encode(program)) != data:
        at = next(i for i, (a, b) in enumerate(zip(again, data, strict=True)) if a != b)
        raise ProgramError(
            f"byte {at}: {data[at]}; {again[at]} was expected (unused bits are 0; terms, clamp and ring of each field"
            " follow in order, each clamp and ring once)"
        )
    return program


def _decode_fields(bases: Sequence[int], words: bytes, where: str) -> tuple[Expr, ...]:
    terms: list[list[Term]] = [[] for _ in bases]
    clamps: list[int | None] = [None] * len(bases)
    rings: list[Ring | None] = [None] * len(bases)
    for kind, index, x, y, aux, value in _MODIFIER.iter_unpack(words):
        if index >= len(bases) or (kind == TERM and max(x, y) >= len(VARIABLES)):
            raise ProgramError(
                f"{where}: modifier of field {index} with variables {x}, {y}; neither may be out of range"
            )
        if kind == TERM:
            terms[index].append(Term(value, VARIABLES[x], VARIABLES[y]))
        elif kind == CLAMP:
            clamps[index] = value
        elif kind == RING:
            rings[index] = Ring(x, aux, y, value)
        else:
            raise ProgramError(f"{where}: modifier kind {kind}; 1 (term), 2 (clamp) or 3 (ring) was expected")
    return tuple(Expr(base, tuple(terms[i]), clamps[i], rings[i]) for i, base in enumerate(bases))


def check(program: Program) -> None:
    """Structure and ranges: loops nest and close, rings and slots are in range, enumerated fields hold known values.

    Raises one `ProgramError` that lists every violation.
    """
    problems: list[str] = []
    depth = 0
    for number, r in enumerate(program):
        depth += {"loop": 1, "end": -1}.get(r.name, 0)
        if depth > LEVELS or depth < 0:
            problems.append(
                f"row {number}: {r.name} at depth {depth}; loops nest up to {LEVELS} deep and each end closes one"
            )
            break
        for spec, value in zip(r.instruction.fields, r.fields, strict=True):
            found = _field_problems(spec, value, depth - (r.name == "loop"))
            problems += [f"row {number}: {r.name}.{spec.name}: {problem}" for problem in found]
    else:
        if depth:
            problems.append(f"{depth} loop(s) without an end")
    if problems:
        raise ProgramError("; ".join(problems))


def _field_problems(spec: isa.Field, value: Expr, depth: int) -> list[str]:
    problems: list[str] = []
    for term in value.terms:
        problems += [
            f"{v} is no loop around this row" for v in (term.x, term.y) if v.startswith("i") and int(v[1:]) >= depth
        ]
    if (ring := value.ring) and not (0 <= ring.loop < RINGS and 1 <= ring.n <= MAX_SLOTS):
        problems.append(f"ring {ring.loop} of {ring.n} slots; rings are 0 to {RINGS - 1} with 1 to {MAX_SLOTS} slots")
    if value.clamp is not None and value.clamp < 0:
        problems.append(f"clamp to {value.clamp}; it must not be negative")
    numbers = (
        value.base,
        value.clamp or 0,
        ring.slot if ring else 0,
        (ring.off << 32) if ring else 0,
        *(t.coef for t in value.terms),
    )
    if not all(-(1 << 63) <= number < 1 << 63 for number in numbers):
        problems.append(f"{value}; its numbers must fit 64 bits (the offset of a ring 32)")
    names = isa.NAMED_VALUES.get(spec.kind)
    if names and (not value.is_constant or value.base not in names.values()):
        problems.append(f"{value}; expected one of {', '.join(names)}")
    if spec.kind == "engine" and value == Expr(0):
        problems.append("scalar; expected an engine with a queue")
    if spec.kind == "register" and not (value.is_constant and 0 <= value.base < 32):
        problems.append(f"register {value}; expected 0 to 31")
    if spec.kind == "ring" and not (value.is_constant and 0 <= value.base < RINGS):
        problems.append(f"ring {value}; expected 0 to {RINGS - 1}")
    return problems
