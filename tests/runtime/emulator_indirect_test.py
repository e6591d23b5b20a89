"""`gather` and `scatter` by themselves against a direct statement of their `action` in `runtime/isa_indirect.py`."""

import itertools
import re

import numpy as np
import pytest

from stepwell.runtime.assembly import assemble
from stepwell.runtime.checker import check
from stepwell.runtime.emulator import new_counters, run
from stepwell.runtime.faults import ValueFault
from stepwell.runtime.memory import Memory
from stepwell.runtime.target import Target

EDGE = Target.load("edge")
BYTES = 1 << 16
INDICES = 1 << 15
"""Where the index tile stands, in GM and in UB."""


def execute(memory: Memory, text: str) -> None:
    run(assemble(text), arguments=(), memory=memory, target=EDGE, counters=new_counters(), cores=1)


def device(seed: int, indices: list[int]) -> Memory:
    """Random bytes, and the indices."""
    memory = Memory(EDGE, BYTES)
    memory.gm[:] = np.random.default_rng(seed).integers(0, 256, BYTES)
    memory.write(INDICES, np.array(indices, np.int32))
    return memory


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ["gather", "scatter"])
def test_runs_go_where_the_index_says(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, rows = int(rng.choice([1, 2, 4, 8])), int(rng.integers(1, 9))
    n = [int(v) for v in rng.integers(1, 4, 4)]
    chip = [int(v) * size for v in rng.permutation([1200 // size, 300 // size, 80 // size])]
    outer, pitch = [int(v) for v in rng.integers(0, 40, 3)], int(rng.integers(0, 300))
    steps = [int(v) * 4 for v in rng.integers(0, 4, 3)]
    indices = [int(v) for v in rng.integers(-rows, rows, 64)]
    memory = device(seed, indices)
    before = memory.gm.copy()
    to, at = (64, 333) if name == "gather" else (333, 64)
    sides = (chip, outer) if name == "gather" else (outer, chip)
    strides = [
        f"{letter}{axis}={s}"
        for letter, side in zip("dsx", (*sides, steps), strict=True)
        for axis, s in enumerate(side)
    ]
    execute(
        memory,
        f"load dst=0 space=ub src=0 n4={BYTES} esize=1 s4=1\n"
        f"{name} dst={to} space=ub src={at} index={INDICES} rows={rows} pitch={pitch} "
        f"n0={n[0]} n1={n[1]} n2={n[2]} n3={n[3]} esize={size} {' '.join(strides)}",
    )
    want = before.copy()
    for i in itertools.product(*map(range, n[:3])):
        row = indices[sum(a * b for a, b in zip(i, steps, strict=True)) // 4] % rows
        here = 64 + sum(a * b for a, b in zip(i, chip, strict=True))
        there = 333 + row * pitch + sum(a * b for a, b in zip(i, outer, strict=True))
        if name == "gather":
            want[here : here + n[3] * size] = before[there : there + n[3] * size]
        else:
            want[there : there + n[3] * size] = before[here : here + n[3] * size]
    assert np.array_equal(memory.cores[0].ub[:BYTES] if name == "gather" else memory.gm, want)


@pytest.mark.parametrize("name", ["gather", "scatter"])
@pytest.mark.parametrize(("index", "text"), [(5, "index = 5; -5 to 4"), (-6, "index = -6; -5 to 4")])
def test_an_index_that_names_no_row_is_a_fault(name: str, index: int, text: str) -> None:
    memory = device(0, [0, index])
    rows = (
        f"load dst=0 space=ub src=0 n4={BYTES} esize=1 s4=1\n"
        f"{name} dst=0 space=ub src=0 index={INDICES} rows=5 pitch=8 n2=2 n3=8 esize=1 d2=8 s2=8 x2=4"
    )
    with pytest.raises(ValueFault, match=re.escape(f"value: {text} was expected")):
        execute(memory, rows)


def test_the_checker_takes_all_rows_as_read() -> None:
    """Whatever the indices, the table must be written and lie within the memory."""
    text = (
        "load dst=0 space=ub src=0 n4=8 esize=4 s4=4\n"
        "gather dst=64 space=ub src=64 index=0 rows={rows} pitch=64 n2=8 n3=16 esize=4 d2=64 x2=4"
    )

    def found(rows: int) -> list[str]:
        program = assemble(text.format(rows=rows))
        report = check(program, target=EDGE, cores=1, gm_size=1024, initialised=[(0, 512)])
        return [finding.kind for finding in report.findings]

    assert found(7) == []
    assert found(8) == ["unwritten"]
    assert found(16) == ["outside"]
