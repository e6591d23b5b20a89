"""A chip's description is refused as a whole, with every problem."""

from typing import Any

import pytest
from chips import NAMES, chip

from stepwell.runtime import isa
from stepwell.runtime.formulas import evaluate
from stepwell.runtime.target import TARGETS, Target, TargetError


def edge(**changes: Any) -> dict[str, Any]:
    table = Target.load("edge").to_dict()
    del table["name"]
    return table | changes


def test_the_four_targets_are_shipped() -> None:
    cores = {name: Target.load(name).cores for name in Target.shipped()}
    assert cores.items() >= {"tiny": 1, "edge": 2, "server": 8, "train": 32}.items()


@pytest.mark.parametrize("name", NAMES)
def test_the_targets_of_the_tests_are_sound(name: str) -> None:
    assert chip(name).problems() == []


@pytest.mark.parametrize("name", [name for name in Target.shipped() if name != "tiny"])
def test_every_number_has_its_source(name: str) -> None:
    section = ""
    for line in (TARGETS / f"{name}.toml").read_text(encoding="utf-8").splitlines():
        number, _, source = line.partition("#")
        section = line if line.startswith("[") else section
        if "=" in number:
            assert source.strip() or "all assumed" in section, line


def test_odd_shares_no_number_with_another_target() -> None:
    """But the few that most chips have in common."""
    odd = chip("odd").to_dict()
    for name in Target.shipped():
        same = {key for key, value in Target.load(name).to_dict().items() if value == odd[key]}
        assert same <= {"cube_k_i8"}, name


def cycles(instruction: str, target: str, **fields: int) -> float:
    return evaluate(isa.BY_NAME[instruction].cycles, fields, chip(target))


def test_the_cost_of_the_cube_follows_its_shape() -> None:
    product = {"m": 32, "n": 64, "k": 64, "dtype": isa.DTYPES["f16"]}
    assert cycles("mma", "edge", **product) == 12 + 2 * 4 * 4
    assert cycles("mma", "odd", **product) == 21 + 4 * 2 * 2
    channels = {"m": 32, "groups": 3, "taps": 9, "dtype": isa.DTYPES["f16"]}
    assert cycles("mma_dw", "edge", **channels) == 12 + 2 * 3 * 9
    assert cycles("mma_dw", "odd", **channels) == 21 + 4 * 2 * 9
    narrow = {"m": 4, "n": 4, "k": 16, "dtype": isa.DTYPES["f16"]}
    assert cycles("feed_a", "odd", **narrow) == 3 + -(-8 * 32 // 96)
    assert cycles("feed_b", "odd", **narrow) == 3 + -(-32 * 32 // 384)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clock_mhz": float("inf")}, "clock_mhz is a finite number (found inf)"),
        ({"gm_port": float("nan")}, "gm_port is a finite number (found nan)"),
        ({"ub_bytes": 64}, "ub_bytes is at least 4096, two of the smallest tiles (found 64)"),
        ({"cores": 0}, "cores is more than 0 (found 0)"),
        ({"alignment": 48}, "alignment is a power of two of at least 32 (found 48)"),
        ({"cores": "two"}, "cores is int (found 'two')"),
        ({"coers": 2}, "a key is one of a target (found 'coers')"),
    ],
)
def test_what_no_chip_can_be(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TargetError) as caught:
        Target.of(edge(**changes), "odd")
    assert message in str(caught.value)


def test_all_problems_at_once() -> None:
    with pytest.raises(TargetError) as caught:
        Target.of(edge(cores=0, queue_depth=1), "odd")
    assert "cores is more than 0 (found 0)" in str(caught.value)
    assert "queue_depth is 4 to 64 (found 1)" in str(caught.value)
