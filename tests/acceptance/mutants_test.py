"""Damaged models compile, or one error of the user is told; nothing crashes, hangs, or takes much memory."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("mutants.py")


def _run(count: int, seed: int) -> str:
    """What became of the mutants; in a process of its own, since it forks."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(count), "--seed", str(seed)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    return done.stdout.splitlines()[-1]


def test_500_damaged_models() -> None:
    told = _run(500, seed=1)
    for outcome in ("compiled", "E-file", "E-shape", "E-operator"):
        assert outcome in told, told


@pytest.mark.slow
def test_10000_damaged_models() -> None:
    assert "10000 mutants" in _run(10_000, seed=0)
