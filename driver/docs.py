"""Generates the pages of docs/ that the code already knows: the instruction set, the passes, the operators
of the graph dialect and of ONNX, the errors.

    python -m stepwell.driver.docs            write them
    python -m stepwell.driver.docs --check    fail if one is stale

`make check` runs the second.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.passes import ModulePass, get_pass_option_infos

from ..runtime import isa
from ..runtime.numerics.functions import CODES, FUNCTIONS
from . import pipeline
from .error_page import errors_page
from .supported_page import supported_page

if TYPE_CHECKING:
    from ..dialects.graph.op import GraphOp, Onnx

DOCS = Path(__file__).parents[1] / "docs"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a bar inside a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(text: str) -> str:
    """A formula or a name in code style; nothing stays nothing."""
    if not text:
        return ""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


# the instruction set --------------------------------------------------------------------------------------------------
GROUPS: tuple[tuple[str, tuple[isa.Instruction, ...]], ...] = (
    ("Control", isa.CONTROL),
    ("Synchronisation", isa.SYNC),
    ("Moves", isa.MOVES),
    ("Feeding the cube", isa.FEEDS + isa.DEQUANTISE),
    ("The cube", isa.CUBE),
    ("Drain", isa.DRAIN),
    ("Vector", isa.VECTOR),
    ("Indirect moves", isa.INDIRECT),
)


def isa_page() -> str:
    """docs/isa.md: the head written by hand, then tables from `runtime/isa.py`."""
    head = (DOCS / "isa.head.md").read_text(encoding="utf-8").rstrip()
    parts = [head, "## Instructions", overview()]
    for title, instructions in GROUPS:
        parts += [f"## {title}", *(instruction_text(instruction) for instruction in instructions)]
    return "\n\n".join([*parts, "## Functions", functions_text(), "## Named values", named_values_text()]) + "\n"


def overview() -> str:
    """All instructions on one screen."""
    rows = [
        [str(isa.OPCODE[i.name]), f"[`{i.name}`](#{i.name})", engine(i), i.doc] for _, group in GROUPS for i in group
    ]
    return table(["code", "name", "engine", ""], rows)


def engine(instruction: isa.Instruction) -> str:
    """The queue it runs in."""
    if instruction.engine is not None:
        return instruction.engine.name.lower()
    return "sequencer" if instruction.name in ("loop", "end") else "named by a field"


def instruction_text(instruction: isa.Instruction) -> str:
    """One instruction: what it does, its fields, its cost and what it touches."""
    facts = [f"*{engine(instruction)}* · cycles {code(instruction.cycles)}"]
    if instruction.gm_bytes != "0":
        facts.append(f"GM bytes {code(instruction.gm_bytes)}")
    if instruction.extents:
        facts.append(f"no-op if any of {', '.join(map(code, instruction.extents))} is 0")
    parts = [f"### {instruction.name}", f"{instruction.doc} {code(instruction.action)}", " · ".join(facts)]
    if instruction.fields:
        parts.append(table(["field", "kind", "", "default"], map(field_row, instruction.fields)))
    if instruction.accesses:
        parts.append(table(["touches", "space", "how", "runs", "bytes", "when"], map(access_row, instruction.accesses)))
    return "\n\n".join(parts)


def field_row(field: isa.Field) -> list[str]:
    """A field of an instruction."""
    return [code(field.name), field.kind, field.doc, "" if field.default is None else default_text(field)]


def default_text(field: isa.Field) -> str:
    """A default as assembly text would write it."""
    assert field.default is not None
    names = {value: name for name, value in isa.NAMED_VALUES.get(field.kind, {}).items()}
    return (
        hex(field.default) if field.kind == "float" and field.default else names.get(field.default, str(field.default))
    )


def access_row(access: isa.Access) -> list[str]:
    """The bytes that an operand touches."""
    how = "reads, writes" if access.reads and access.writes else "writes" if access.writes else "reads"
    space = access.space.name.lower() if isinstance(access.space, isa.Space) else f"`{access.space}`"
    runs = ", ".join(f"`{count}` × `{stride}`" for count, stride in access.runs)
    place = code(access.field if access.start == "0" else f"{access.field} + {access.start}")
    return [place, space, how, runs, code(access.length), "" if access.when == "1" else code(access.when)]


def functions_text() -> str:
    """The functions of `vmap` by code."""
    rows = [[str(CODES[f.name]), code(f.name), str(f.arity), f.kind, str(f.passes)] for f in FUNCTIONS.values()]
    return table(["code", "function", "operands", "kind", "`PASSES`"], rows)


def named_values_text() -> str:
    """Names that assembly text knows for constants."""
    rows = [
        [kind, ", ".join(f"`{name}` {value}" for name, value in values.items())]
        for kind, values in isa.NAMED_VALUES.items()
    ]
    return table(["kind", "values"], rows)


# passes ---------------------------------------------------------------------------------------------------------------
def passes_page() -> str:
    """docs/passes.md: the pipeline's table, then each pass from its docstring."""
    parts = [
        "# Passes",
        "Generated from `driver/pipeline.py` and the passes' docstrings. `stepwell-opt --list-passes` prints the list.",
    ]
    for stage in pipeline.STAGES:
        if stage.steps:
            rows = [[f"[`{name}`](#{name})", why] for name, why in stage.steps]
            parts += [f"## Stage {stage.name}", table(["pass", "why"], rows)]
    parts += [
        "## Order",
        table(["before", "after", "because"], [[code(a), code(b), why] for a, b, why in pipeline.ORDER]),
    ]
    seen: set[str] = set()
    for stage in pipeline.STAGES:
        for name, _ in stage.steps:
            if name not in seen:
                seen.add(name)
                parts.append(pass_text(name, stage.folder))
    return "\n\n".join(parts) + "\n"


def pass_text(name: str, folder: str) -> str:
    """One pass; its docstring's indented blocks are IR."""
    try:
        cls = pipeline.load_pass(name, folder)
    except ModuleNotFoundError:
        return f"## {name}\n\nNot written yet."
    parts = [f"## {name}", fenced(cleandoc(cls.__doc__ or ""))]
    if options := options_table(cls):
        parts.append(options)
    return "\n\n".join(parts)


def options_table(cls: type[ModulePass]) -> str:
    """The options of a pass, if it has any."""
    rows = [
        [code(o.name.replace("_", "-")), o.expected_type, code(o.default_value or "")]
        for o in get_pass_option_infos(cls)
    ]
    return table(["option", "type", "default"], rows) if rows else ""


def fenced(text: str) -> str:
    """Text whose indented blocks become fenced blocks of MLIR."""
    out: list[str] = []
    inside = False
    for line in text.splitlines():
        indented = line.startswith("    ")
        if indented and not inside:
            out.append("```mlir")
        if not indented and inside and line.strip():
            _close(out)
        inside = indented or (inside and not line.strip())
        out.append(line[4:] if indented else line)
    if inside:
        _close(out)
    return "\n".join(out)


def _close(out: list[str]) -> None:
    """Ends a fenced block before the blank lines that follow it."""
    blanks = 0
    while out[-1] == "":
        out.pop()
        blanks += 1
    out += ["```", *[""] * blanks]


# operators ------------------------------------------------------------------------------------------------------------
def ops_page() -> str:
    """docs/ops.md: the operators of the graph dialect from their classes."""
    parts = ["# Operators of the graph dialect", "Generated from the op classes in `dialects/graph/`."]
    classes = list(operators())
    rows = [[f"[`{op.name}`](#{op.name.replace('.', '')})", onnx_names(op), op.structure()] for op in classes]
    parts.append(table(["op", "ONNX", "structure"], rows))
    parts += [op_text(op) for op in classes]
    return "\n\n".join(parts) + "\n"


def operators() -> Iterator["type[GraphOp]"]:
    """The operator classes by name."""
    from ..dialects.graph import Graph
    from ..dialects.graph.op import GraphOp

    found = [op for op in Graph.operations if issubclass(op, GraphOp)]
    yield from sorted(found, key=lambda op: op.name)


def onnx_names(op: "type[GraphOp]") -> str:
    """The ONNX operators it stands for, with opset ranges."""

    def text(onnx: "Onnx") -> str:
        last = f"–{onnx.until}" if onnx.until else "" if onnx.since == 1 else "–"
        return f"{onnx.domain + '.' if onnx.domain else ''}{onnx.name}" + (f" {onnx.since}{last}" if last else "")

    return ", ".join(map(text, op.ONNX))


def op_text(op: "type[GraphOp]") -> str:
    """One operator: docstring and example."""
    parts = [f"## {op.name}", fenced(cleandoc(op.__doc__ or ""))]
    if op.EXAMPLE:
        parts.append(f"```mlir\n{cleandoc(op.EXAMPLE)}\n```")
    return "\n\n".join(parts)


PAGES: dict[str, Callable[[], str]] = {
    "isa.md": isa_page,
    "passes.md": passes_page,
    "ops.md": ops_page,
    "errors.md": errors_page,
    "supported-ops.md": supported_page,
}


def main(args: Sequence[str]) -> int:
    """Writes the pages, or with --check says which ones are stale."""
    stale: list[str] = []
    for name, page in PAGES.items():
        path, text = DOCS / name, page()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in args:
            path.write_text(text, encoding="utf-8")
    if "--check" not in args:
        print(*(f"docs/{name}: written" for name in stale), sep="\n", end="\n" if stale else "")
        return 0
    for name in stale:
        print(f"docs/{name}: stale; run python -m stepwell.driver.docs", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
