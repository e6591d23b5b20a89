"""Executes the commands of docs/tutorial-1.md, in order, and compares what they print with the page."""

import shutil
from pathlib import Path

import pytest
from pages import ROOT, blocks, check_command, commands, matches

from stepwell.driver import progress

PAGE = ROOT / "docs" / "tutorial-1.md"
EXAMPLE = ROOT / "examples" / "add_mul"


def test_every_command_prints_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(EXAMPLE / "model.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "PATIENCE", 1e6)
    consoles = [block.text for block in blocks(PAGE.read_text(encoding="utf-8")) if block.language == "console"]
    listed = [command for text in consoles for command in commands(text)]
    assert len(listed) > 10
    for command in listed:
        check_command(command)


def test_the_page_shows_the_model() -> None:
    (code,) = (block.text for block in blocks(PAGE.read_text(encoding="utf-8")) if block.language == "python")
    assert (EXAMPLE / "model.py").read_text(encoding="utf-8").endswith(f"\n\n{code}")


def test_output_is_elided_by_dots() -> None:
    assert matches("a\n…\nd\n", "a\nb\nc\nd\n")
    assert matches("a … (c)\n", "a b (c) \n")
    assert not matches("a\n", "a\nb\n")
    assert not matches("a … d\n", "a b c\n")
