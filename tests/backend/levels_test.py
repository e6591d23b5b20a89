"""Each hand-built kernel gives the same bits as tile IR and on the emulator, whatever the interleaving, and its
program has no race.
"""

from collections.abc import Callable

import pytest
from tile import kernels
from tile.harness import TARGET, checked, compiled, emulated, evaluated, inputs, same_bits

from stepwell.dialects.tile import KernelOp

CASES: dict[str, Callable[[], KernelOp]] = {
    **{f"elementwise {rows}": lambda rows=rows: kernels.elementwise(rows) for rows in (1, 33, 64, 65, 96, 300)},
    **{
        f"elementwise f32 one slot {rows}": lambda rows=rows: kernels.elementwise(rows, slots=1, dtype="f32")
        for rows in (32, 100)
    },
    "gemm with tails": lambda: kernels.gemm(70, 50, 300),
    "gemm of one block": lambda: kernels.gemm(5, 3, 7),
    "gemm with folds": lambda: kernels.gemm(40, 33, 4200),
    "gemm bf16": lambda: kernels.gemm(33, 40, 130, dtype="bf16"),
    "gemm f32": lambda: kernels.gemm(33, 20, 70, m0=16, n0=16, k0=32, k1=64, dtype="f32"),
    "gemm one slot": lambda: kernels.gemm(66, 33, 200, slots=1),
    "gemm three slots": lambda: kernels.gemm(66, 33, 200, m0=16, n0=16, k0=32, k1=64, slots=3),
    **{
        f"convolution {height}": lambda height=height: kernels.convolution(height, 6, 32, 20)
        for height in (1, 4, 9, 17)
    },
    **{f"depthwise {height}": lambda height=height: kernels.depthwise(height, 5, 1, rows=2) for height in (1, 2, 7)},
    **{
        f"softmax {rows}x{columns}": lambda rows=rows, columns=columns: kernels.softmax(rows, columns)
        for rows, columns in ((1, 5), (8, 64), (20, 150))
    },
    **{f"chain {blocks}": lambda blocks=blocks: kernels.chain(blocks) for blocks in (1, 2, 3, 7)},
    **{f"update {rows}": lambda rows=rows: kernels.update(rows) for rows in (1, 16, 50)},
}
ONE_CORE = ("softmax", "chain", "update")
"""Kernels whose loops are not divided: every core would do all of it."""


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_every_level_gives_the_same_bits(name: str, cores: int) -> None:
    if cores == 2 and name.startswith(ONE_CORE):
        pytest.skip("not divided among cores")
    kernel = CASES[name]()
    arrays = inputs(kernel)
    program = compiled(kernel)
    expected = evaluated(kernel, arrays, cores)
    assert str(checked(program.program, arrays, cores)) == "clean"
    for seed in (None, 1, 2, 3):
        assert same_bits(emulated(program, arrays, cores, seed), expected), f"seed {seed}"


@pytest.mark.parametrize("rows", [0, 1, 8, 9, 16, 17, 24, 64])
def test_one_program_serves_every_trip_count(rows: int) -> None:
    """0, 1, 2, 3 and many trips, with and without tails."""
    kernel = kernels.scalar()
    arrays = inputs(kernel)
    program = compiled(kernel)
    expected = evaluated(kernel, arrays, 1, [rows])
    assert str(checked(program.program, arrays, 1, scalars=[rows])) == "clean"
    for seed in (None, 1, 2, 3):
        assert same_bits(emulated(program, arrays, 1, seed, [rows]), expected), f"seed {seed}"


def test_kernels_fit_the_target_as_their_footprint_says() -> None:
    from stepwell.dialects.tile import footprint

    kernel = kernels.gemm(70, 50, 300)
    numbers = compiled(kernel).numbers
    sums = footprint(kernel, TARGET)
    assert (numbers["l1"], numbers["ub"]) == (sums["l1"], sums["ub"])
