"""The shape of the code: who may import whom, how long a file may be, and no nameless errors.

Imports inside functions and under TYPE_CHECKING count as well: a direction that only bends is not a direction.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# folder: the folders it may import. "" is the face, the root's __init__.py.
MAY_IMPORT: dict[str, set[str]] = {
    "runtime": set(),
    "dialects": {"runtime"},
    "frontend": {"runtime", "dialects"},
    "passes": {"runtime", "dialects"},
    "backend": {"runtime", "dialects"},
    "driver": {"runtime", "dialects", "frontend", "passes", "backend"},
    "": {"runtime", "driver"},
}
# (importer, imported): the only modules it may take.
MAY_TAKE = {("dialects", "runtime"): {"cpu", "expr", "isa", "numerics", "problem", "target"}}
# folder: libraries that must not be needed there.
MUST_NOT_NEED = {"runtime": {"onnx", "xdsl"}}
# A file aims at 500 lines; the rest is tolerance.
MOST_LINES = 520

PRODUCT_FOLDERS = [folder for folder in MAY_IMPORT if folder]
OTHER_FOLDERS = ["bench", "examples", "tests"]


@dataclass(frozen=True)
class Import:
    """One imported module: `parts` counts from the root if `relative`, else it is an absolute name."""

    line: int
    relative: bool
    parts: tuple[str, ...]


def imports(tree: ast.Module, path: Path) -> Iterator[Import]:
    """Every import of the module at `path` (relative to the root); `from x import y` counts as `x.y`.

    A relative import that climbs above the root comes back with the part "..".
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, False, tuple(name.name.split("."))) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            package = path.parent.parts
            if node.level > len(package) + 1:
                module = ("..", *module)
            elif node.level:
                module = package[: len(package) + 1 - node.level] + module
            yield from (Import(node.lineno, node.level > 0, (*module, name.name)) for name in node.names)


def import_fault(folder: str, found: Import) -> str | None:
    """The rule that an import in `folder` breaks, if any."""
    top, *rest = found.parts
    if not found.relative:
        if top == "stepwell" or top in PRODUCT_FOLDERS:
            return f"imports of our own are relative (import {'.'.join(found.parts)})"
        if top in MUST_NOT_NEED.get(folder, ()):
            return f"{folder} does not need {top}"
        return None
    if top == folder or (top not in MAY_IMPORT and top != ".."):
        return None
    if top not in MAY_IMPORT[folder]:
        return f"{folder or 'the face'} does not import {top}"
    allowed = MAY_TAKE.get((folder, top))
    if allowed is not None and rest[0] not in allowed:
        return f"{folder} takes only {', '.join(sorted(allowed))} from {top} (found {rest[0]})"
    return None


def nameless_errors(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Bare `except:`, and `raise Exception`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            yield node.lineno, "`except:` names what it catches"
        if isinstance(node, ast.Raise):
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(raised, ast.Name) and raised.id in ("Exception", "BaseException"):
                yield node.lineno, f"an error has a type of its own (raise {raised.id})"


def faults(path: Path, source: str) -> list[str]:
    """Every rule that a file breaks, as `path:line: rule`; `path` is relative to the root of the repository."""
    tree = ast.parse(source, str(path))
    found = list(nameless_errors(tree))
    folder = path.parts[0] if len(path.parts) > 1 else ""
    if folder in MAY_IMPORT:
        found += [(i.line, rule) for i in imports(tree, path) if (rule := import_fault(folder, i))]
    length = source.count("\n")
    if length > MOST_LINES:
        found.append((length, f"a file has at most 500 lines (found {length}): it tells more than one thing"))
    return [f"{path}:{line}: {rule}" for line, rule in sorted(found)]


def sources() -> list[Path]:
    folders = [ROOT / folder for folder in PRODUCT_FOLDERS + OTHER_FOLDERS]
    files = [ROOT / "__init__.py", *(file for folder in folders for file in sorted(folder.rglob("*.py")))]
    return [file.relative_to(ROOT) for file in files]


def test_the_code_keeps_its_shape() -> None:
    found = [fault for path in sources() for fault in faults(path, (ROOT / path).read_text(encoding="utf-8"))]
    assert not found, "\n" + "\n".join(found)


def test_nothing_else_lies_at_the_root() -> None:
    assert [file.name for file in ROOT.glob("*.py")] == ["__init__.py"]


@pytest.mark.parametrize(
    ("path", "source", "rule"),
    [
        ("runtime/device.py", "import onnx", "runtime does not need onnx"),
        ("runtime/device.py", "def f():\n    from xdsl.ir import Operation", "2: runtime does not need xdsl"),
        ("runtime/device.py", "from ..dialects import npu", "runtime does not import dialects"),
        ("runtime/device.py", "from .. import driver", "runtime does not import driver"),
        ("dialects/tile.py", "from ..passes.fuse import Fuse", "dialects does not import passes"),
        ("dialects/npu.py", "from ..runtime.device import Device", "takes only cpu, expr, isa, numerics, problem"),
        ("dialects/npu.py", "from ..runtime import isa, Device", "from runtime (found Device)"),
        ("dialects/graph/conv.py", "from ...runtime import pool", "from runtime (found pool)"),
        ("frontend/onnx.py", "from ..passes import fold", "frontend does not import passes"),
        ("passes/fuse.py", "from ..backend import select", "passes does not import backend"),
        ("backend/select.py", "from ..frontend import onnx", "backend does not import frontend"),
        ("backend/select.py", "from ..driver import pipeline", "backend does not import driver"),
        ("driver/cli.py", "from .. import compile\nfrom ...outside import x", "driver does not import .."),
        ("driver/cli.py", "import stepwell.runtime", "imports of our own are relative (import stepwell.runtime)"),
        (
            "driver/cli.py",
            "from dialects.graph import op",
            "imports of our own are relative (import dialects.graph.op)",
        ),
        ("__init__.py", "from .passes import fold", "the face does not import passes"),
        ("tests/some_test.py", "try:\n    f()\nexcept:\n    pass", "3: `except:` names what it catches"),
        ("bench/run.py", "raise Exception('no')", "an error has a type of its own (raise Exception)"),
        ("driver/cli.py", "raise BaseException", "an error has a type of its own (raise BaseException)"),
        ("driver/cli.py", "x = 1\n" * 521, "a file has at most 500 lines (found 521)"),
    ],
)
def test_a_broken_rule_is_named(path: str, source: str, rule: str) -> None:
    (fault,) = faults(Path(path), source)
    assert rule in fault


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("runtime/device.py", "import numpy\nimport onnxruntime\nfrom . import isa\nfrom .isa import Field"),
        (
            "dialects/graph/conv.py",
            "from xdsl.ir import Operation\nfrom ...runtime.target import Target\nfrom .op import Op",
        ),
        ("dialects/npu.py", "from ..runtime import expr, isa, numerics, target\nfrom . import loops"),
        ("passes/fuse.py", "from ..dialects.graph import op\nfrom ..runtime.target import Target"),
        ("driver/pipeline.py", "from ..backend import select\nfrom ..passes import fuse\nfrom ..frontend import onnx"),
        ("__init__.py", "from .driver.api import compile\nfrom .runtime.target import Target"),
        ("tests/some_test.py", "from stepwell.runtime import isa\nimport onnx"),
        ("bench/run.py", "try:\n    f()\nexcept ValueError as error:\n    raise"),
    ],
)
def test_what_is_allowed_passes(path: str, source: str) -> None:
    assert faults(Path(path), source) == []
