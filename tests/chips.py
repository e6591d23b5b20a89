"""The targets that tests run on: those that are shipped, and one quite unlike them, `odd` (tests/targets/odd.toml).

A program runs on one core, on two, and on as many as the target has.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path

from stepwell.runtime.target import Target

ODD = Path(__file__).parent / "targets" / "odd.toml"
NAMES = (*Target.shipped(), "odd")


@cache
def chip(name: str, cores: int = 2) -> Target:
    """A target with its cores, and so many at least."""
    target = Target.load(ODD if name == "odd" else name)
    return replace(target, cores=max(target.cores, cores))


def core_counts(name: str) -> list[int]:
    """The numbers of cores that programs run on."""
    return sorted({1, 2, chip(name).cores})
