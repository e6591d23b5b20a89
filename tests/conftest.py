"""What every test may rely on: hypothesis without a deadline, since the first example may compile code; and every
problem that a test sees told has all its parts."""

import os

import pytest
from hypothesis import settings

from stepwell.driver import errors
from stepwell.runtime.problem import Problem

settings.register_profile("stepwell", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("stepwell")


@pytest.fixture(autouse=True)
def whole_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    """A problem that lacks a part fails the test in which it is told."""
    made = errors.Failure

    def failure(exit_code: int, kind: str, problems: tuple[Problem | str, ...]) -> errors.Failure:
        lacking = [p for p in problems if isinstance(p, Problem) and not p.is_whole and p != "a problem"]
        assert not lacking, lacking
        return made(exit_code, kind, problems)

    monkeypatch.setattr(errors, "Failure", failure)
