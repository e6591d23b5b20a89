"""Whole programs on the emulated device: values, interleavings, races."""

from typing import Any

import numpy as np
import pytest

from stepwell.runtime import emulator
from stepwell.runtime.emulator import new_counters, prepare, run
from stepwell.runtime.execute.core import MORE
from stepwell.runtime.memory import Memory

from .programs import Case, Conv, conv, depthwise, gemm, hand_over, late_set

SEEDS = [None, 1, 2, 3, 7]


def launch(case: Case, memory: Memory, seed: int | None = None) -> None:
    run(
        case.program,
        arguments=case.arguments,
        memory=memory,
        target=case.target,
        counters=new_counters(),
        cores=case.cores,
        seed=seed,
    )


def check(case: Case, seed: int | None = None) -> None:
    memory = case.memory()
    launch(case, memory, seed)
    assert not case.failures(memory)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("shape", "tile", "cores"),
    [
        ((64, 64, 64), (32, 32, 32), 1),
        ((33, 70, 45), (16, 32, 32), 1),
        ((5, 7, 3), (32, 32, 32), 1),
        ((100, 96, 40), (24, 40, 20), 1),
        ((130, 200, 90), (32, 64, 48), 2),
        ((16, 50, 33), (32, 32, 32), 2),
    ],
)
def test_gemm(shape: tuple[int, int, int], tile: tuple[int, int, int], cores: int, seed: int | None) -> None:
    check(gemm(*shape, tile, cores), seed)


def test_python_is_asked_between_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt is seen there; no value hangs on where."""
    healthy, calls = emulator.run_in_order, list[int]()

    def counted(*arguments: Any) -> int:
        calls.append(healthy(*arguments))
        return calls[-1]

    monkeypatch.setattr(emulator, "run_in_order", counted)
    monkeypatch.setattr(emulator, "_BLOCKS", 1)
    check(gemm(130, 200, 90, (16, 16, 16), 2))
    assert calls.count(MORE) > 4


CONVS = {
    "3x3 s2 p1 c3": Conv(13, 11, 3, 8, stride=(2, 2), pads=(1, 1, 1, 1)),
    "3x3 s2 p1 c20": Conv(9, 10, 20, 24, stride=(2, 2), pads=(1, 1, 1, 1)),
    "dilated": Conv(12, 12, 16, 16, dilation=(2, 3), pads=(2, 3, 2, 3)),
    "asymmetric": Conv(8, 14, 6, 5, kernel=(2, 5), stride=(1, 3), pads=(1, 0, 0, 4)),
    "1x1": Conv(7, 5, 40, 17, kernel=(1, 1)),
    "1x1 s2": Conv(7, 5, 33, 17, kernel=(1, 1), stride=(2, 2)),
    "one channel": Conv(10, 10, 1, 3, kernel=(5, 5), pads=(2, 2, 2, 2)),
}


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("name", CONVS)
def test_conv(name: str, seed: int | None) -> None:
    check(conv(CONVS[name]), seed)


@pytest.mark.parametrize(
    "shape",
    [Conv(9, 8, 32, 32, pads=(1, 1, 1, 1)), Conv(9, 9, 16, 16, stride=(2, 2), kernel=(5, 5), pads=(2, 2, 2, 2))],
)
def test_depthwise(shape: Conv) -> None:
    check(depthwise(shape))


@pytest.mark.parametrize("seed", SEEDS)
def test_counters_order_cores(seed: int | None) -> None:
    check(hand_over(), seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_wait_before_its_set_is_left_to_the_queues(seed: int | None) -> None:
    check(late_set(), seed)


def test_a_race_changes_bytes_under_some_seed() -> None:
    case = gemm(64, 64, 64, synchronised=False)
    memory = case.memory()
    launch(case, memory)
    assert not case.failures(memory), "program order hides the race"
    wrong = 0
    for seed in range(20):
        case.place(memory)
        launch(case, memory, seed)
        wrong += bool(case.failures(memory))
    assert wrong > 0


def test_a_prepared_program_runs_again() -> None:
    case = gemm(33, 70, 45)
    memory, prepared = case.memory(), prepare(case.program)
    for _ in range(3):
        case.place(memory)
        run(prepared, arguments=case.arguments, memory=memory, target=case.target, counters=new_counters())
        assert not case.failures(memory)


def test_on_chip_memory_is_poisoned_between_kernels() -> None:
    case = late_set()
    memory = case.memory()
    launch(case, memory)
    assert not np.all(memory.cores[0].ub[:64] == 0xFF)
    run(prepare(()), arguments=(), memory=memory, target=case.target, counters=new_counters())
    assert np.all(memory.cores[0].ub == 0xFF)
