"""Pages of docs/ that cannot drift: their blocks are executed, or compared with what they show.

A fenced block is one of

    ```console                             commands after `$`, and what each prints
    ```python                              executed
    <!-- quote: PATH [NAME] -->            the text of a file, or in it of a class, function or table (`GRAPH`, `A.b`)
    <!-- file: NAME -->                    written into the working folder, for the commands after it

A line `…` stands for any lines, a `…` in a line for any text.
"""

import ast
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

from stepwell.driver import cli, docs, opt

ROOT = Path(__file__).parents[1]
TOOLS: dict[str, Callable[[Sequence[str]], int]] = {"stepwell": cli.main, "stepwell-opt": opt.main}
"""Run in this process, which has imported everything."""
OF_THE_CHECKOUT = ("pytest", "lit")
"""Run in the root of the checkout."""
_BLOCK = re.compile(r"^(?:<!-- (quote|file): (.*?) -->\n+)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class PageError(AssertionError):
    """A page does not say what is true."""


class Command(NamedTuple):
    """A line of a page after `$`, and what the page says that it prints."""

    text: str
    output: str


class Block(NamedTuple):
    """A fenced block; `kind` is `quote`, `file` or nothing."""

    kind: str
    of: str
    language: str
    text: str


def blocks(page: str) -> list[Block]:
    """All fenced blocks, in order."""
    return [Block(*found) for found in _BLOCK.findall(page)]


def commands(text: str) -> Iterator[Command]:
    """The commands of a console block."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield Command(command, output)


def follow(page: str) -> int:
    """Does what a page says, in the working folder; the number of its blocks. Raises `PageError`."""
    found = blocks(page)
    for block in found:
        if block.kind == "quote":
            check_quote(block)
        elif block.kind == "file":
            Path(block.of).write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            for command in commands(block.text):
                check_command(command)
        elif block.language == "python":
            exec(compile(block.text, "page", "exec"), {"__name__": "page"})
        else:
            raise PageError(f"a block is executed, quoted or a file (found {block.language}: {block.text[:60]!r})")
    return len(found)


def check_command(command: Command) -> None:
    """Raises `PageError` if a command prints something else."""
    found = execute(command.text)
    if not matches(command.output, found):
        raise PageError(f"$ {command.text}\n{found}\nthe page says:\n{command.output}")


def check_quote(block: Block) -> None:
    """Raises `PageError` if the file holds something else."""
    path, _, name = block.of.partition(" ")
    text = (ROOT / path).read_text(encoding="utf-8")
    found = quoted(text, name) if name else text
    if not matches(block.text, found):
        raise PageError(f"{block.of} is\n{found}\nthe page says:\n{block.text}")


def quoted(text: str, name: str) -> str:
    """The source of a class, function or table of a module; `A.b` is what is in a class. Raises `PageError`."""
    body: Sequence[ast.stmt] = ast.parse(text).body
    node: ast.stmt | None = None
    for part in name.split("."):
        node = next((each for each in body if part in names(each)), None)
        if node is None:
            raise PageError(f"{name}: no such class, function or table")
        body = getattr(node, "body", ())
    assert node is not None
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return dedent("\n".join(text.splitlines()[first - 1 : node.end_lineno]) + "\n")


def names(node: ast.stmt) -> list[str]:
    """What a statement defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def execute(text: str) -> str:
    """Standard output and error of a command."""
    words = shlex.split(text)
    stream = StringIO()
    with redirect_stdout(stream), redirect_stderr(stream):
        if words[0] in TOOLS:
            TOOLS[words[0]](words[1:])
            return stream.getvalue()
        if words[:3] == ["python", "-m", "stepwell.driver.docs"]:
            docs.main(words[3:])
            return stream.getvalue()
        if words[0] == "python":
            runpy.run_path(words[1])
            return stream.getvalue()
    environment = dict(os.environ)
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    folder = ROOT if words[0] in OF_THE_CHECKOUT else None
    done = subprocess.run(
        text, shell=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder, env=environment
    )
    return done.stdout


def pattern(output: str) -> str:
    """A line `…` matches any lines, a `…` in a line any text."""
    lines = [
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line).replace("…", ".*") + r"\n"
        for line in output.splitlines()
    ]
    return "".join(lines)


def matches(output: str, found: str) -> bool:
    """Whether text is what a page says."""
    lines = [line.rstrip() for line in found.splitlines()]
    return re.fullmatch(pattern(output), "".join(f"{line}\n" for line in lines)) is not None
