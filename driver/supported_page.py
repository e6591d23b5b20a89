"""docs/supported-ops.md: every ONNX operator, how the device does it, and the rules of what it does not do.

The rules are those that the code raises `InferError` and its kin with, read from its source.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import onnx

from ..dialects.graph.constants import ELEMENTS
from ..dialects.graph.op import GraphOp
from ..frontend.expansions import EXPANSIONS
from ..frontend.extensions import EXTENSIONS
from ..frontend.onnx import KNOWN_ONLY, UNROLLED, supported
from ..frontend.operators import TABLE

ERRORS = ("InferError", "ShapeError", "DtypeError", "SizeError")
MOST_RULES = 6
CONFORMANCE = Path(__file__).parents[1] / "docs" / "conformance.md"

HEAD = """# Supported operators

Generated from the code. *native*: one op of the graph dialect, which has a kernel of its own; *decomposed*: one that is
rewritten into such ops, or several; *known*: computed when the model is imported, as is every operator whose operands
are known; *host*: the CPU runs it. A node that breaks a rule of the last column goes to the CPU as well, if onnxruntime
runs it; `stepwell assess` says which. Types are those that ONNX allows for the first operand and the device holds, i64
and integers of 16 bits as i32; others go to the CPU. Tested: of ONNX's own cases ([conformance](conformance.md)), which
have the shapes, those that run on the device, are known, need the CPU, are refused. Rules are those that the operator's
own code states, with … for what hangs on the node; those that all operators share are not repeated. Which weights of 4
and 8 bits stay so until they are multiplied, and which are made floats, is in
[decision 0010](decisions/0010-packed-weights-are-bytes.md).
"""


def supported_page() -> str:
    """The page."""
    opsets, tested = supported(), _tested()
    schemas = {s.name: s for s in onnx.defs.get_all_schemas() if s.domain == ""}
    own = [_row(n, "", opsets.get(n, ""), schemas.get(n), tested) for n in sorted({*schemas, *TABLE, *EXPANSIONS})]
    parts = [HEAD, "## ai.onnx", _table(own)]
    for domain, extensions in EXTENSIONS.items():
        rows = [_row(name, domain, opsets[f"{domain}.{name}"], None, tested) for name in sorted(extensions)]
        parts += [f"## {domain}", _table(rows)]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _table(rows: Sequence[Sequence[str]]) -> str:
    from .docs import table

    return table(("operator", "opsets", "how", "types", "tested", "rules"), rows)


def _row(
    name: str, domain: str, opsets: str, schema: Any, tested: Mapping[str, Sequence[str]]
) -> tuple[str, str, str, str, str, str]:
    counts = tested.get(f"{domain}.{name}" if domain else name)
    words = ("device", "known", "host", "refused")
    cases = ", ".join(f"{count} {word}" for count, word in zip(counts or (), words, strict=False) if count)
    rules = _rules(name, domain) if opsets else []
    more = f"; and {len(rules) - MOST_RULES} more" if len(rules) > MOST_RULES else ""
    return name, opsets, _how(name, domain, opsets), _types(schema), cases, "; ".join(rules[:MOST_RULES]) + more


def _how(name: str, domain: str, opsets: str) -> str:
    """Class, and the ops of the graph dialect if there is one that stands for the operator."""
    if not opsets:
        return "host"
    if domain:
        return "decomposed"
    if name in KNOWN_ONLY:
        return "known"
    if name in UNROLLED or name == "If":
        return "decomposed: the nodes of its graph, which the runtime sequences where values decide"
    if name in EXPANSIONS:
        return "decomposed"
    kinds = list(dict.fromkeys(kind for _, _, kind in TABLE[name]))
    native = all(kind.structure() != "decompose" for kind in kinds)
    return f"{'native' if native else 'decomposed'}: {', '.join(f'`{kind.name}`' for kind in kinds)}"


def _types(schema: Any) -> str:
    """Element types of the first operand."""
    if schema is None or not schema.inputs:
        return ""
    held = {str(kind) for kind in ELEMENTS}
    names = {"float": "float32", "double": "float64"}
    found = [text.removeprefix("tensor(").removesuffix(")") for text in sorted(schema.inputs[0].types)]
    return ", ".join(name for name in (names.get(text, text) for text in found) if name in held)


# rules ----------------------------------------------------------------------------------------------------------------
def _rules(name: str, domain: str) -> list[str]:
    """What the code that makes the operator refuses."""
    if domain:
        made: list[Any] = [EXTENSIONS[domain][name].expand]
    elif name in EXPANSIONS:
        made = [EXPANSIONS[name]]
    else:
        made = [kind for _, _, kind in TABLE.get(name, ())]
    found = dict[str, None]()
    for each in made:
        for part in _sources(each):
            found |= dict.fromkeys(_raised(part))
    return list(found)


def _sources(made: "type[GraphOp] | Callable[..., Any]") -> Iterator[str]:
    """The source of a function, or of the methods that check an op, inherited ones as well."""
    if not isinstance(made, type):
        if inspect.isfunction(made):
            yield inspect.getsource(made)
        return
    for method in ("from_onnx", "normalize", "infer"):
        function = getattr(made, method).__func__
        if function.__module__ != GraphOp.__module__:
            yield inspect.getsource(function)


@cache
def _raised(source: str) -> tuple[str, ...]:
    """The rules of the errors that a piece of code raises, in order; what is computed is …."""
    found = list[str]()
    for node in ast.walk(ast.parse(textwrap.dedent(source))):
        if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args):
            continue
        if isinstance(node.exc.func, ast.Name) and node.exc.func.id in ERRORS:
            rule = _text(node.exc.args[0]).split(" (found")[0].strip()
            if rule.strip("… "):
                found.append(rule)
    return tuple(dict.fromkeys(found))


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return "…"


def _tested() -> dict[str, Sequence[str]]:
    """Of each operator how many of ONNX's cases end how: native, known, host, refused."""
    lines = CONFORMANCE.read_text(encoding="utf-8").splitlines() if CONFORMANCE.exists() else []
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {row[0]: row[3:7] for row in rows if len(row) >= 7}
