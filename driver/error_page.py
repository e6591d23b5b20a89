"""docs/errors.md: the classes of problems, and every rule that the code can tell a user, read from the code.

A rule is the text that is raised, with what it fills in left as `…`. An error that is made in one place and told in
another (a rule of an operator, or of a form of kernel) has the rule and what was found where it is raised; where, and
what to do, are added where it is told.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..runtime.problem import Kind

ROOT = Path(__file__).parents[1]
FOLDERS = ("runtime", "dialects", "frontend", "passes", "backend", "driver")

ABOUT: Mapping[Kind, str] = {
    Kind.OPERATOR: "An operator of the model, or a form of it, is not supported, or the node is none that ONNX allows.",
    Kind.SHAPE: "Sizes do not fit: operands to each other, an input to what the model says, an array to the input.",
    Kind.DTYPE: "The type of the elements, or a value, is one that the operator, or the device, does not take.",
    Kind.MEMORY: "Something does not fit: a kernel into a core, a model into the device, a device into this machine.",
    Kind.FILE: "A file is missing, is not what its name says, is damaged, or reaches out of its folder.",
    Kind.COMMAND: "An option or argument is wrong, or what was asked for does not go together.",
    Kind.IR: "IR, a program or a pipeline that was written or changed by hand breaks a rule.",
}
"""What each class means."""

OF_IR = "The rules are those of the dialects: docs/ops.md, docs/passes.md, docs/isa.md."

RULES_ONLY: Mapping[str, Kind] = {
    "InferError": Kind.OPERATOR,
    "ShapeError": Kind.SHAPE,
    "DtypeError": Kind.DTYPE,
    "SizeError": Kind.MEMORY,
    "NotTileable": Kind.OPERATOR,
    "DoesNotFit": Kind.MEMORY,
}
"""Errors whose raise has the rule and what was found; who tells them adds the rest."""

WHOLE: Mapping[str, Kind] = {
    "ModelFileError": Kind.FILE,
    "WeightError": Kind.FILE,
    "TargetError": Kind.FILE,
    "OutOfMemory": Kind.MEMORY,
    "HostMemoryError": Kind.MEMORY,
    "InputError": Kind.SHAPE,
    "CommandError": Kind.COMMAND,
    "UsageError": Kind.COMMAND,
    "Usage": Kind.COMMAND,
    "Problem": Kind.OPERATOR,
}
"""Errors whose raise has all parts; the kind is that of one that does not name its own."""


TOLD_ELSEWHERE = re.compile(r"[^;]*: …; ")
"""A text whose rule and what was found come from another place."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A text that is raised, and where."""

    kind: Kind
    text: str
    place: str
    is_whole: bool
    """Whether where and what to do belong to the text."""


def rules() -> Iterator[Rule]:
    """Every rule in the code whose text can be read there."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for function in ast.walk(tree):
                if isinstance(function, ast.FunctionDef):
                    yield from _rules_of(function, path.relative_to(ROOT).as_posix())


def _rules_of(function: ast.FunctionDef, place: str) -> Iterator[Rule]:
    names = {
        target.id: node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call in ast.walk(function):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or not call.args:
            continue
        name = call.func.id
        kind = _named_kind(call) or RULES_ONLY.get(name) or WHOLE.get(name)
        if kind is None:
            continue
        for argument in call.args[:1] if name != "CommandError" else call.args:
            text = template(argument, names)
            if text is not None and " " in text.replace("…", "") and not TOLD_ELSEWHERE.match(text):
                yield Rule(kind, text, place, name in WHOLE)


def _named_kind(call: ast.Call) -> Kind | None:
    """The class that a call gives, as in `Problem(line, Kind.FILE)`."""
    for node in (*call.args[1:], *(keyword.value for keyword in call.keywords)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Kind":
            return Kind[node.attr]
    return None


def template(node: ast.expr, names: Mapping[str, ast.expr], depth: int = 3) -> str | None:
    """A text with `…` for what is filled in; what a name of the function holds is filled in if that is a text too."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name) and node.id in names and depth:
        return template(names[node.id], names, depth - 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [template(side, names, depth) for side in (node.left, node.right)]
        return "".join(part or "…" for part in parts)
    if isinstance(node, ast.Starred) and isinstance(node.value, ast.GeneratorExp):
        return template(node.value.elt, names, depth)
    if not isinstance(node, ast.JoinedStr):
        return None
    parts = [
        part.value
        if isinstance(part, ast.Constant)
        else (isinstance(part, ast.FormattedValue) and template(part.value, names, depth)) or "…"
        for part in node.values
    ]
    return "".join(map(str, parts))


def errors_page() -> str:
    """docs/errors.md."""
    found = sorted({(rule.kind.value, rule.text, rule.is_whole) for rule in rules()})
    parts = [
        "# Errors",
        "Generated from the code. Each problem is one line, on standard error or in `problems` of the error raised:",
        "```text\n<where>: <what was expected> (found <what>); <what to do> [class]\n```",
        "`where` is the node, input, file or option. With `--json`, `parts` has the parts of each problem. In the "
        "lists, `…` stands for what is filled in; rules of operators and kernels are told with their node and what "
        "to do.",
    ]
    for kind in Kind:
        parts += [f"## {kind.value}", ABOUT[kind]]
        lines = [f"- {_inline(text)}" for value, text, _ in found if value == kind.value]
        parts.append("\n".join(lines) or OF_IR)
    return "\n\n".join(parts) + "\n"


def _inline(text: str) -> str:
    return " ".join(text.split()).replace("<", "\\<").replace("*", "\\*").replace("_", "\\_")
