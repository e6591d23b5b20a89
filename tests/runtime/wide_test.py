"""What the emulator counts as integers beyond 32 bits, by row: each kind of instruction, pieces, bytes beside."""

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from stepwell.runtime.assembly import assemble
from stepwell.runtime.emulator import RowCounts, new_counters, run
from stepwell.runtime.memory import Memory
from stepwell.runtime.target import Target

EDGE = Target.load("edge")
LOW, HIGH = -(2**31), 2**31 - 1


def executed(text: str, *arrays: npt.NDArray[Any], seed: int | None = None) -> tuple[npt.NDArray[np.uint8], RowCounts]:
    """UB after the program; the arrays stand in it at multiples of 16384, among the largest integers."""
    memory = Memory(EDGE, 1 << 17)
    memory.gm.view(np.int32)[:] = HIGH
    for number, array in enumerate(arrays):
        memory.write(16384 * number, array)
    load = f"load dst=0 space=ub src=0 n4={16384 * len(arrays)} esize=1 s4=1\nset src=load dst=vector id=0\n"
    program = assemble(load + "wait src=load dst=vector id=0\n" + text)
    counts = run(program, arguments=(), memory=memory, target=EDGE, counters=new_counters(), cores=1, seed=seed)
    return memory.cores[0].ub, counts


def told(counts: RowCounts) -> list[tuple[int, int, int]]:
    """The counts of the rows behind the first three."""
    return [*zip(*(of.tolist()[3:] for of in (counts.overflow, counts.invalid, counts.wide)), strict=True)]


@pytest.mark.parametrize("seed", [None, 1])
def test_vmap_counts_by_row_and_only_its_extents(seed: int | None) -> None:
    x = np.array([[HIGH, HIGH - 1, LOW], [5, HIGH, 7]], np.int32)
    padded = np.full((2, 8), HIGH, np.int32)
    padded[:, :3] = x
    common = "dst=8192 a=0 n1=2 n2=3 d1=32 d2=4 a1=32 a2=4 td=i32 ta=i32"
    calls = (("add", 1.0), ("neg", 0.0), ("mul", 1.0), ("gt", 0.0))
    text = "\n".join(f"vmap fn={fn} {common} immb={b}" for fn, b in calls)
    _, counts = executed(text, padded, seed=seed)
    assert told(counts) == [(0, 0, 2), (0, 0, 1), (0, 0, 0), (0, 0, 0)]


def test_casts_and_floats_have_counters_of_their_own() -> None:
    x = np.array([3e9, -3e9, 70000, 2147483520, np.inf], np.float32)
    common = "dst=8192 a=0 n2=5 a2=4 ta=f32"
    _, counts = executed(f"vmap fn=copy {common} d2=4 td=i32\nvmap fn=copy {common} d2=2 td=f16", x)
    assert told(counts) == [(0, 0, 3), (4, 0, 0)]


@pytest.mark.parametrize("cuts", [[40], [8, 40], [16, 24, 32, 40]], ids=str)
@pytest.mark.parametrize("columns", [1, 5, 24])
@pytest.mark.parametrize("name", ["sum", "prod"])
def test_vreduce_counts_results_whatever_the_pieces(name: str, columns: int, cuts: list[int]) -> None:
    a = np.random.default_rng(1).integers(-(2**31), 2**31, (3, 40, columns)).astype(np.int32)
    if name == "prod":
        a[:] = 1
        a[1, 4], a[1, 33] = 65536, 65536
    else:
        a[1], a[2] = HIGH, 0
        a[2, 0], a[2, 8], a[2, 30] = HIGH, 1, -1  # a lane leaves 32 bits, the sum does not
    strides = f"n0=3 n2={columns} d0={4 * columns} d2=4 a0={160 * columns} a1={4 * columns} a2=4"
    head = f"vreduce fn={name} dst=32768 {strides} td=i32 ta=i32"
    lines = list[str]()
    for start, end in pairwise([0, *cuts]):
        piece = f"state=49152 start={start} first={int(start == 0)} last={int(end == 40)}"
        lines.append(f"{head} a={4 * columns * start} n1={end - start} {piece}")
    ub, counts = executed("\n".join(lines), a, np.zeros(4, np.int32))
    exact = [[(sum if name == "sum" else np.prod)(a[i, :, j].astype(object)) for j in range(columns)] for i in range(3)]
    wide = sum(not LOW <= value <= HIGH for row in exact for value in row)
    found = ub[32768 : 32768 + 12 * columns].view(np.int32).reshape(3, columns)
    assert found.tolist() == [[(int(value) - LOW) % 2**32 + LOW for value in row] for row in exact]
    assert told(counts)[-1] == (0, 0, wide)
    assert all(entry == (0, 0, 0) for entry in told(counts)[:-1])
    assert wide > 0


def test_what_a_reduction_left_behind_counts_for_no_other() -> None:
    """State that another instruction wrote has no past."""
    a = np.full((1, 8, 1), 2**30, np.int32)
    twice = "vreduce fn=sum dst=8192 n0=1 n2=1 n1=8 a0=32 a1=4 a2=4 td=i32 ta=i32 a=0 state=4096 last=0"
    again = "vreduce fn=sum dst=8192 n0=1 n2=1 n1=8 a0=32 a1=4 a2=4 td=i32 ta=i32 a=0 state=4096 start=8 first=0 last=0"
    clear = "vmap fn=copy dst=4096 a=64 n2=8 d2=4 a2=0 td=i32 ta=i32"
    last = (
        "vreduce fn=sum dst=8192 n0=1 n2=1 n1=8 a0=32 a1=4 a2=4 td=i32 ta=i32 a=128 state=4096 start=16 first=0 last=1"
    )
    memory = np.zeros(64, np.int32)
    memory[:8], memory[16] = a.reshape(-1), 9
    ub, counts = executed("\n".join([twice, again, clear, last]), memory)
    assert ub[8192:8196].view(np.int32)[0] == 72
    assert told(counts) == [(0, 0, 0)] * 4


def test_a_drain_to_integers_counts_what_it_clamps() -> None:
    memory = Memory(EDGE, 1 << 16)
    memory.write(0, np.ones(1, np.float32))
    memory.write(4096, np.array([3e9, -3e9, 5, *[4e9] * 13], np.float32))
    text = """
load dst=0 space=l1 src=0 n4=8192 esize=1 s4=1
feed_a dst=0 src=0 m=1 k=1 ld=1 pitch=4 dtype=f32
feed_b dst=0 src=4096 k=1 n=16 ld=16 pitch=64 dtype=f32
mma dst=0 a=0 b=0 m=1 n=16 k=1 lda=1 ldb=16 ldc=16 init=1 dtype=f32
drain dst=64 space=ub src=0 m=1 n=3 ldc=16 pitch=64 dtype=i32
"""
    counts = run(assemble(text), arguments=(), memory=memory, target=EDGE, counters=new_counters(), cores=1)
    assert (counts.overflow.tolist()[-1], counts.invalid.tolist()[-1], counts.wide.tolist()[-1]) == (0, 0, 2)
    assert memory.cores[0].ub[64:76].view(np.int32).tolist() == [HIGH, LOW, 5]
