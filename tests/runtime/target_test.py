"""A chip's description is refused as a whole, with every problem."""

from typing import Any

import pytest

from stepwell.runtime.target import Target, TargetError


def edge(**changes: Any) -> dict[str, Any]:
    table = Target.load("edge").to_dict()
    del table["name"]
    return table | changes


@pytest.mark.parametrize("name", Target.shipped())
def test_shipped_targets_are_sound(name: str) -> None:
    assert Target.load(name).problems() == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clock_mhz": float("inf")}, "clock_mhz = inf; expected a finite number"),
        ({"gm_port": float("nan")}, "gm_port = nan; expected a finite number"),
        ({"ub_bytes": 64}, "ub_bytes = 64; expected at least 4096, two of the smallest tiles"),
        ({"cores": 0}, "cores = 0; expected more than 0"),
        ({"alignment": 48}, "alignment = 48; expected a power of two of at least 32"),
        ({"cores": "two"}, "cores = 'two'; expected int"),
        ({"coers": 2}, "unknown key 'coers'"),
    ],
)
def test_what_no_chip_can_be(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TargetError) as caught:
        Target.of(edge(**changes), "odd")
    assert message in str(caught.value)


def test_all_problems_at_once() -> None:
    with pytest.raises(TargetError) as caught:
        Target.of(edge(cores=0, queue_depth=1), "odd")
    assert "cores = 0" in str(caught.value)
    assert "queue_depth = 1" in str(caught.value)
