"""Executes the commands of docs/tutorial-1.md, in order, and compares what they print with the page."""

import re
import runpy
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest

from stepwell.driver import cli, opt, progress

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorial-1.md"
EXAMPLE = ROOT / "examples" / "add_mul"
TOOLS: dict[str, Callable[[Sequence[str]], int]] = {"stepwell": cli.main, "stepwell-opt": opt.main}
"""Run in this process, which has imported everything; other commands by the shell."""


class Command(NamedTuple):
    """A line of the page after `$`, and what the page says that it prints."""

    text: str
    output: str


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def commands(page: str) -> Iterator[Command]:
    """The commands of all console blocks."""
    for block in blocks(page, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            text, _, output = part.partition("\n")
            yield Command(text, output)


def execute(text: str) -> str:
    """Standard output and error of a command."""
    words = shlex.split(text)
    if words[0] == "python":
        runpy.run_path(words[1])
        return ""
    if words[0] not in TOOLS:
        done = subprocess.run(
            text, shell=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        return done.stdout
    stream = StringIO()
    with redirect_stdout(stream), redirect_stderr(stream):
        TOOLS[words[0]](words[1:])
    return stream.getvalue()


def pattern(output: str) -> str:
    """A line `…` matches any lines, a `…` in a line any text."""
    lines = [
        r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"\n" for line in output.splitlines()
    ]
    return "".join(lines)


def matches(output: str, found: str) -> bool:
    lines = [line.rstrip() for line in found.splitlines()]
    return re.fullmatch(pattern(output), "".join(f"{line}\n" for line in lines)) is not None


def test_every_command_prints_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(EXAMPLE / "model.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "PATIENCE", 1e6)
    listed = list(commands(PAGE.read_text(encoding="utf-8")))
    assert len(listed) > 10
    for command in listed:
        found = execute(command.text)
        assert matches(command.output, found), f"$ {command.text}\n{found}\nthe page says:\n{command.output}"


def test_the_page_shows_the_model() -> None:
    (code,) = blocks(PAGE.read_text(encoding="utf-8"), "python")
    assert (EXAMPLE / "model.py").read_text(encoding="utf-8").endswith(f"\n\n{code}")


def test_output_is_elided_by_dots() -> None:
    assert matches("a\n…\nd\n", "a\nb\nc\nd\n")
    assert matches("a … (c)\n", "a b (c) \n")
    assert not matches("a\n", "a\nb\n")
    assert not matches("a … d\n", "a b c\n")
