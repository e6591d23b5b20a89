"""The formulas of `isa.py` as compiled functions: what an instruction costs and which bytes it touches.

One module of Python source is generated from the table, a function for each question that branches on the opcode, and compiled by
`jit`. It takes the fields from row `n` of a block of records (`generator.py`) and the target's constants from a vector.
`evaluate` answers a single formula in plain Python.
"""

import ast
import dataclasses
import math
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import isa
from .generator import FIELDS, OPCODE
from .jit import CACHE, jit
from .numerics.functions import FUNCTIONS
from .target import Target

CONSTANTS: tuple[str, ...] = tuple(f.name for f in dataclasses.fields(Target) if f.name != "name")
"""The target's numbers by their index in the vector that the compiled functions take."""

SPACE, ACCESS, ADDRESS, LENGTH, RUNS = range(5)
"""Columns of an access; from `RUNS` on (count, stride) of five axes, outermost first; an axis that is not there counts 1."""
READS, WRITES = 1, 2
"""Bits of the column `ACCESS`."""
MOST_ACCESSES = max(len(instruction.accesses) for instruction in isa.INSTRUCTIONS)
MOST_RUNS = 5
ACCESS_WIDTH = RUNS + 2 * MOST_RUNS


_COST_F32 = "(T.cube_cost_f32 if dtype == 2 else 1)"
_FULL_CUBE = {
    "mma": f"m * n * k / (T.cube_m * T.cube_n * (T.cube_k_f32 if dtype == 2 else T.cube_k_f16 if dtype < 2 else T.cube_k_i8)) * {_COST_F32}",
    "mma_dw": f"m * groups * taps / T.cube_m * {_COST_F32}",
}
"""Cycles of the cube if every multiplier worked in each of them."""


def constants(target: Target) -> NDArray[np.float64]:
    """The vector of a target."""
    return np.array([getattr(target, name) for name in CONSTANTS], np.float64)


def up(a: float, b: float) -> int:
    """⌈a/b⌉"""
    return math.ceil(a / b)


def passes(code: int) -> int:
    """Vector cycles per vector of elements of a function; 1 for a code that does not exist, which is a fault elsewhere."""
    return _PASSES[code] if 0 <= code < len(_PASSES) else 1


_PASSES = tuple(function.passes for function in FUNCTIONS.values())


def evaluate(formula: str, fields: Mapping[str, int], target: Target) -> float:
    """A formula for given fields, for tests and documents."""
    names = {"up": up, "max": max, "min": min, "T": target, **fields}
    if "fn" in fields:
        names["PASSES"] = passes(fields["fn"])
    return float(eval(formula, {"__builtins__": {}}, names))


class _Compiled(ast.NodeTransformer):
    """Replaces fields by columns of a record and `T.name` by elements of the vector."""

    def __init__(self, instruction: isa.Instruction) -> None:
        self.columns = {field.name: FIELDS + i for i, field in enumerate(instruction.fields)}

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:  # noqa: N802 (ast's name)
        return _expression(f"T[{CONSTANTS.index(node.attr)}]")

    def visit_Name(self, node: ast.Name) -> ast.expr:  # noqa: N802
        if node.id == "PASSES":
            return _expression(f"passes(block[n, {self.columns['fn']}])")
        return _expression(f"block[n, {self.columns[node.id]}]") if node.id in self.columns else node


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def fields_in(formula: str, instruction: isa.Instruction) -> list[int]:
    """Positions of the fields that a formula reads."""
    names = {node.id for node in ast.walk(_expression(formula)) if isinstance(node, ast.Name)}
    return [i for i, field in enumerate(instruction.fields) if field.name in names or (field.kind == "fn" and "PASSES" in names)]


def translate(formula: str, instruction: isa.Instruction) -> str:
    """The formula over `block[n, ·]` and `T[·]`."""
    return ast.unparse(_Compiled(instruction).visit(_expression(formula)))


def _cost(name: str, formula: Callable[[isa.Instruction], str], default: str) -> str:
    lines = [f"def {name}(block, n, T):", f"    opcode = block[n, {OPCODE}]"]
    for code, instruction in enumerate(isa.INSTRUCTIONS):
        if (text := formula(instruction)) != default:
            lines += [f"    if opcode == {code}:", f"        return float({translate(text, instruction)})"]
    return "\n".join([*lines, f"    return float({default})", ""])


def _footprint() -> str:
    lines = ["def footprint(block, n, out):", f"    opcode = block[n, {OPCODE}]"]
    for code, instruction in enumerate(isa.INSTRUCTIONS):
        if instruction.accesses:
            lines += [f"    if opcode == {code}:", "        a = 0"]
            lines += ["        " + line for access in instruction.accesses for line in _access(access, instruction)]
            lines += ["        return a"]
    return "\n".join([*lines, "    return 0", ""])


def _access(access: isa.Access, instruction: isa.Instruction) -> list[str]:
    def at(formula: str) -> str:
        return translate(formula, instruction)

    address = access.field
    if instruction.name == "im2col" and access.field == "src":
        address = f"src + ({isa.IM2COL_FIRST_ROW}) * row"
    kind = f"{WRITES} + ({READS} if {at(access.reads)} else 0)" if access.writes else f"{READS}"
    space = at(access.space) if isinstance(access.space, str) else str(int(access.space))
    values = [space, kind, at(address), at(access.length)]
    for count, stride in (*access.runs, *(("1", "0"),) * (MOST_RUNS - len(access.runs))):
        values += [at(count), at(stride)]
    body = [f"out[a, {column}] = {value}" for column, value in enumerate(values)] + ["a += 1"]
    return body if access.when == "1" else [f"if {at(access.when)}:", *("    " + line for line in body)]


def source() -> str:
    """The generated module."""
    return "\n\n".join([
        '"""Generated by formulas.py from isa.py."""\n',
        _cost("cycles", lambda i: i.cycles, "1"),
        _cost("gm_bytes", lambda i: i.gm_bytes, "0"),
        _cost("cube_cycles", lambda i: _FULL_CUBE.get(i.name, "0"), "0"),
        _footprint(),
    ])  # fmt: skip


def _stored(text: str) -> Path:
    """The file that holds the text: numba caches only what comes from a file. Written once, so that its time stamp stays."""
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


def load(compiled: bool = True) -> ModuleType:
    """The generated module with `cycles`, `gm_bytes`, `cube_cycles` and `footprint`, compiled or as plain Python."""
    text = source()
    decorate: Callable[[Any], Any] = jit if compiled else lambda function: function
    module = ModuleType(f"{__package__}.isa_formulas")
    module.__dict__.update(up=decorate(up), passes=decorate(passes))
    path = "<formulas>"
    if compiled:  # numba finds the module again when it loads compiled code
        path = module.__file__ = str(_stored(text))
        sys.modules[module.__name__] = module
    exec(compile(text, path, "exec"), module.__dict__)
    for name in ("cycles", "gm_bytes", "cube_cycles", "footprint"):
        setattr(module, name, decorate(getattr(module, name)))
    return module


_loaded = load()
cycles: Callable[[NDArray[np.int64], int, NDArray[np.float64]], float] = _loaded.cycles
"""`cycles(block, n, constants)`: the fixed part of record n, in cycles, for a record that is no no-op."""
gm_bytes: Callable[[NDArray[np.int64], int, NDArray[np.float64]], float] = _loaded.gm_bytes
"""`gm_bytes(block, n, constants)`: bytes that record n then transfers through the port."""
cube_cycles: Callable[[NDArray[np.int64], int, NDArray[np.float64]], float] = _loaded.cube_cycles
"""`cube_cycles(block, n, constants)`: multiply-accumulates of record n over those that the cube can do in a cycle."""
footprint: Callable[[NDArray[np.int64], int, NDArray[np.int64]], int] = _loaded.footprint
"""`footprint(block, n, out)`: writes the accesses of record n to `out[MOST_ACCESSES, ACCESS_WIDTH]` and gives their number."""
