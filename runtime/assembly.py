"""Assembly text: one row a line, `name field=expression …`, loops indented. Reads back to the same rows.

load dst=ring(0, 0, 2)*8192 space=l1 src=r0 + 16384*i0 n3=clamp(100 - 64*i0, 64) n4=128 esize=2 d3=256 s3=256 s4=2   ;
slot 3
"""

import re
import struct

from . import isa
from .encoding import Program, ProgramError, Row, check, row
from .expr import Expr, ExprSyntaxError, parse
from .numerics.functions import FUNCTIONS

_FIELD = re.compile(r"(\w+)=((?:(?!\s+\w+=).)*)")
_FLOAT = re.compile(r"[-+]?(inf|nan|[\d.]+(e[-+]?\d+)?)")


def _names(kind: str) -> dict[str, int]:
    return {name: code for code, name in enumerate(FUNCTIONS)} if kind == "fn" else isa.NAMED_VALUES.get(kind, {})


def _value_text(spec: isa.Field, value: Expr) -> str:
    if value.is_constant:
        if spec.kind == "float":
            return repr(struct.unpack("<f", struct.pack("<I", value.base & 0xFFFFFFFF))[0])
        for name, code in _names(spec.kind).items():
            if code == value.base:
                return name
    return str(value)


def _read_value(spec: isa.Field, text: str) -> Expr:
    if (code := _names(spec.kind).get(text)) is not None:
        return Expr(code)
    if spec.kind == "float" and _FLOAT.fullmatch(text):
        return Expr(struct.unpack("<I", struct.pack("<f", float(text)))[0])
    return parse(text)


def row_text(r: Row) -> str:
    """One row without indentation or slot; fields at their default are left out."""
    fields = zip(r.instruction.fields, r.fields, strict=True)
    parts = [
        f"{spec.name}={_value_text(spec, value)}"
        for spec, value in fields
        if spec.default is None or value != Expr(spec.default)
    ]
    return " ".join([r.name, *parts])


def disassemble(program: Program) -> str:
    """The text of a program, one row a line."""
    lines: list[str] = []
    depth = 0
    for r in program:
        depth -= r.name == "end"
        lines.append("  " * depth + row_text(r) + (f"   ; slot {r.slot}" if r.slot else ""))
        depth += r.name == "loop"
    return "\n".join(lines) + "\n"


def assemble(text: str) -> Program:
    """Reads assembly text; blank lines and `;` comments are skipped. Raises one `ProgramError` with each bad line."""
    rows: list[Row] = []
    problems: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        code, _, comment = line.partition(";")
        if not code.strip():
            continue
        slot = re.match(r"\s*slot (\d+)", comment)
        try:
            rows.append(parse_row(code, int(slot.group(1)) if slot else 0))
        except (ProgramError, ExprSyntaxError, ValueError) as error:
            problems.append(f"line {number}: {error}")
    if problems:
        raise ProgramError("; ".join(problems))
    program = tuple(rows)
    check(program)
    return program


def parse_row(code: str, slot: int = 0) -> Row:
    """Reads one row; raises `ProgramError` or `ExprSyntaxError`."""
    name, _, rest = code.strip().partition(" ")
    instruction = isa.BY_NAME.get(name)
    if instruction is None:
        raise ProgramError(f"unknown instruction {name!r}")
    specs = {spec.name: spec for spec in instruction.fields}
    fields: dict[str, Expr] = {}
    if stray := _FIELD.sub("", rest).strip():
        raise ProgramError(f"{name}: {stray!r} is no field=expression")
    for key, value in _FIELD.findall(rest):
        if key not in specs:
            raise ProgramError(f"{name}: no field {key}; it has {', '.join(specs)}")
        fields[key] = _read_value(specs[key], value.strip())
    return row(name, slot, **fields)
