"""The formulas of `isa.py` as compiled functions: what an instruction costs and which bytes it touches.

One module of Python source is generated from the table, a function for each question that branches on the opcode,
and compiled as a `kernel`. They take the address of a record (`generator.py`) and that of the target's constants.
`evaluate` answers a single formula in plain Python.
"""

import ast
import dataclasses
import math
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import isa
from .generator import FIELDS, OPCODE
from .jit import CACHE, inline, jit, kernel
from .numerics.bits import bits_f64, f64_bits, load_i64, store_i64
from .numerics.functions import FUNCTIONS
from .target import Target

CONSTANTS: tuple[str, ...] = tuple(f.name for f in dataclasses.fields(Target) if f.name != "name")
"""The target's numbers by their index in the vector that the compiled functions take."""

SPACE, ACCESS, ADDRESS, LENGTH, RUNS = range(5)
"""Columns of an access; from `RUNS` on (count, stride) of five axes, outermost first; an axis that is not there
counts 1."""
READS, WRITES = 1, 2
"""Bits of the column `ACCESS`."""
MOST_ACCESSES = max(len(instruction.accesses) for instruction in isa.INSTRUCTIONS)
MOST_RUNS = 5
ACCESS_WIDTH = RUNS + 2 * MOST_RUNS

_FULL_CUBE = {
    "mma": f"m * n * k / (T.cube_m * T.cube_n * {isa.BLOCK_K}) * {isa.COST_F32}",
    "mma_dw": f"m * groups * 16 * taps / (T.cube_m * T.cube_n) * {isa.COST_F32}",
}
"""Cycles of the cube if every multiplier worked in each of them."""


def constants(target: Target) -> NDArray[np.float64]:
    """The vector of a target."""
    return np.array([getattr(target, name) for name in CONSTANTS], np.float64)


def up(a: float, b: float) -> int:
    """⌈a/b⌉"""
    return math.ceil(a / b)


def passes(code: int) -> int:
    """Vector cycles per vector of elements; 1 for a code that does not exist, which is a fault elsewhere."""
    return _PASSES[code] if 0 <= code < len(_PASSES) else 1


_PASSES = tuple(function.passes for function in FUNCTIONS.values())


def evaluate(formula: str, fields: Mapping[str, int], target: Target) -> float:
    """A formula for given fields, for tests and documents."""
    names = {"up": up, "max": max, "min": min, "T": target, **fields}
    if "fn" in fields:
        names["PASSES"] = passes(fields["fn"])
    return float(eval(formula, {"__builtins__": {}}, names))


class _Compiled(ast.NodeTransformer):
    """Replaces fields by words of a record and `T.name` by elements of the vector."""

    def __init__(self, instruction: isa.Instruction) -> None:
        self.words = {field.name: FIELDS + i for i, field in enumerate(instruction.fields)}

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return _expression(f"load_f64(constants, {CONSTANTS.index(node.attr)})")

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == "PASSES":
            return _expression(f"passes(load_i64(record, {self.words['fn']}))")
        return _expression(f"load_i64(record, {self.words[node.id]})") if node.id in self.words else node


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@cache
def fields_in(formula: str, instruction: isa.Instruction) -> list[int]:
    """Positions of the fields that a formula reads."""
    names = {node.id for node in ast.walk(_expression(formula)) if isinstance(node, ast.Name)}
    return [
        i
        for i, field in enumerate(instruction.fields)
        if field.name in names or (field.kind == "fn" and "PASSES" in names)
    ]


def translate(formula: str, instruction: isa.Instruction) -> str:
    """The formula over the words of `record` and `constants`."""
    return ast.unparse(_Compiled(instruction).visit(_expression(formula)))


def _function(head: str, bodies: Mapping[str, list[str]], end: str) -> str:
    lines = [f"def {head}:", f"    opcode = load_i64(record, {OPCODE})"]
    for name, body in bodies.items():
        lines += [f"    if opcode == {isa.OPCODE[name]}:", *(f"        {line}" for line in body)]
    return "\n".join([*lines, f"    {end}", ""])


def _cost(instruction: isa.Instruction) -> list[str]:
    formulas = instruction.cycles, instruction.gm_bytes, _FULL_CUBE.get(instruction.name, "0")
    return [f"store_f64(out, {i}, float({translate(f, instruction)}))" for i, f in enumerate(formulas)] + ["return"]


def _footprint(instruction: isa.Instruction) -> list[str]:
    lines = (line for access in instruction.accesses for line in _access(access, instruction))
    return ["a = 0", *lines, "return a"]


def _access(access: isa.Access, instruction: isa.Instruction) -> list[str]:
    def at(formula: str) -> str:
        return translate(formula, instruction)

    address = access.field if access.start == "0" else f"{access.field} + {access.start}"
    kind = f"{WRITES} + ({READS} if {at(access.reads)} else 0)" if access.writes else f"{READS}"
    space = at(access.space) if isinstance(access.space, str) else str(int(access.space))
    values = [space, kind, at(address), at(access.length)]
    for count, stride in (*access.runs, *(("1", "0"),) * (MOST_RUNS - len(access.runs))):
        values += [at(count), at(stride)]
    body = [f"store_i64(out, a * {ACCESS_WIDTH} + {i}, {value})" for i, value in enumerate(values)] + ["a += 1"]
    return body if access.when == "1" else [f"if {at(access.when)}:", *("    " + line for line in body)]


def source() -> str:
    """The generated module."""
    costs = {
        i.name: _cost(i)
        for i in isa.INSTRUCTIONS
        if i.engine is not isa.Engine.SCALAR and i.name not in ("loop", "end")
    }
    accesses = {i.name: _footprint(i) for i in isa.INSTRUCTIONS if i.accesses}
    return "\n\n".join([
        '"""Generated by formulas.py from isa.py."""\n',
        _function("cost(record: int, constants: int, out: int) -> None", costs, "return"),
        _function("footprint(record: int, out: int) -> int", accesses, "return 0"),
    ])  # fmt: skip


def _stored(text: str) -> Path:
    """The file that holds the text: numba caches only what comes from a file. Written once, so that its time stamp
    stays."""
    path = CACHE / "isa_formulas.py"
    try:
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            with tempfile.NamedTemporaryFile("w", dir=CACHE, delete=False, encoding="utf-8") as file:
                file.write(text)
            Path(file.name).replace(path)
    except OSError:  # a read-only home
        path = Path(tempfile.mkdtemp()) / path.name
        path.write_text(text, encoding="utf-8")
    return path


@inline
def load_f64(base, index):  # type: ignore[no-untyped-def]
    """A double at an address."""
    return bits_f64(load_i64(base, index))


@inline
def store_f64(base, index, value):  # type: ignore[no-untyped-def]
    """Stores a double."""
    store_i64(base, index, f64_bits(value))


def _load() -> ModuleType:
    """The generated module, compiled."""
    text = source()
    module = ModuleType(f"{__package__}.isa_formulas")
    path = module.__file__ = str(_stored(text))
    sys.modules[module.__name__] = module  # numba looks it up when it loads compiled code
    module.__dict__.update(
        up=jit(up), passes=jit(passes), load_i64=load_i64, store_i64=store_i64, load_f64=load_f64, store_f64=store_f64
    )
    exec(compile(text, path, "exec"), module.__dict__)
    for name in ("cost", "footprint"):
        setattr(module, name, kernel(getattr(module, name)))
    return module


def plain() -> dict[str, Any]:
    """`cost` and `footprint` in plain Python, on arrays in place of addresses."""

    def load(base: Any, index: int) -> Any:
        return base[index].item()

    def store(base: Any, index: int, value: float) -> None:
        base[index] = value

    names: dict[str, Any] = {
        "up": up,
        "passes": passes,
        "load_i64": load,
        "load_f64": load,
        "store_i64": store,
        "store_f64": store,
    }
    exec(source(), names)
    return names


_compiled = _load()
cost: Callable[[int, int, int], None] = _compiled.cost
"""`cost(record, constants, out)`, addresses: writes three doubles for a record that is no no-op: cycles of the
fixed part; bytes then transferred through the port; multiply-accumulates over those that the cube can do in a
cycle."""
footprint: Callable[[int, int], int] = _compiled.footprint
"""`footprint(record, out)`, addresses: writes the accesses, `ACCESS_WIDTH` words each and at most `MOST_ACCESSES`,
and gives their number."""
