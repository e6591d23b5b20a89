"""The guides in docs/ are followed: what they quote is what the code says, what they run prints what they say."""

from pathlib import Path

import pytest
from pages import ROOT, Block, PageError, check_quote, follow, quoted

from stepwell.driver import progress

GUIDES = {"adding-an-op.md": 8, "adding-a-pass.md": 6, "adding-a-target.md": 6}
"""Each with the least number of blocks that it must have."""


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_holds(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "PATIENCE", 1e6)
    assert follow((ROOT / "docs" / name).read_text(encoding="utf-8")) >= GUIDES[name]


def test_a_quote_that_drifted_is_found() -> None:
    text = quoted((ROOT / "passes" / "border.py").read_text(encoding="utf-8"), "Border.apply")
    check_quote(Block("quote", "passes/border.py Border.apply", "python", text))
    with pytest.raises(PageError, match=r"passes/border\.py Border\.apply is\n"):
        check_quote(Block("quote", "passes/border.py Border.apply", "python", text.replace("main", "other")))
    with pytest.raises(PageError, match=r"Border\.shrink: no such class, function or table"):
        quoted((ROOT / "passes" / "border.py").read_text(encoding="utf-8"), "Border.shrink")


def test_a_command_that_prints_something_else_is_found() -> None:
    with pytest.raises(PageError, match="the page says:\n9 cores"):
        follow("```console\n$ stepwell targets validate edge\n9 cores\n```\n")


def test_no_block_is_left_unread() -> None:
    with pytest.raises(PageError, match="a block is executed, quoted or a file"):
        follow("```toml\ncores = 3\n```\n")
