"""The block generator against a walk over the rows that evaluates each field by its definition."""

from collections.abc import Iterator, Mapping
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_programs import any_program

from stepwell.runtime import isa
from stepwell.runtime.assembly import assemble
from stepwell.runtime.encoding import Program, ProgramError, Row
from stepwell.runtime.expr import RINGS, Expr
from stepwell.runtime.generator import (
    BLOCK,
    FAULT,
    FAULTS,
    FIELDS,
    ISSUE,
    ISSUED,
    WIDTH,
    Flat,
    State,
    flatten,
    launch_registers,
    new_state,
    next_block,
)

NO_MEMORY = np.zeros(0, np.uint8)
QUEUE_OF = {"set": "src", "wait": "dst", "grant": "dst", "signal": "engine", "await": "engine"}


class Walk:
    """The slow reference: yields (row number, queue, noop, fields, rows issued)."""

    def __init__(self, program: Program, registers: Mapping[str, int], core: int) -> None:
        self.program = program
        self.variables = {"core": core, **{f"r{n}": 0 for n in range(32)}, **registers}
        self.rings = [0] * RINGS
        self.issued = 0

    def fields(self, row: Row) -> list[int]:
        return [field.value(self.variables, self.rings) for field in row.fields]

    def run(self, first: int = 0, level: int = 0) -> Iterator[tuple[int, int, int, list[int], int]]:
        number = first
        while number < len(self.program) and self.program[number].name != "end":
            row = self.program[number]
            self.issued += 1
            fields = self.fields(row)
            if row.name == "loop":
                count, step, add, ring = fields
                for self.variables[f"i{level}"] in range(-(-count // step) + add):
                    yield from self.run(number + 1, level + 1)
                    self.issued += 1
                    self.rings[ring] += 1
                number = self.after(number)
            elif row.instruction.engine is isa.Engine.SCALAR:
                self.scalar(row.name, *fields)
            else:
                yield (
                    number,
                    self.queue(row),
                    int(any(row_extent <= 0 for row_extent in self.extents(row, fields))),
                    fields,
                    self.issued,
                )
                self.issued = 0
            number += 1

    def after(self, number: int) -> int:
        depth = 0
        while True:
            depth += {"loop": 1, "end": -1}.get(self.program[number].name, 0)
            if not depth:
                return number
            number += 1

    def scalar(self, name: str, rd: int, a: int, b: int = 0) -> None:
        value = {
            "mov": lambda: a,
            "min": lambda: min(a, b),
            "max": lambda: max(a, b),
            "div": lambda: a // b,
            "mod": lambda: a % b,
            "less": lambda: int(a < b),
        }[name]()
        self.variables[f"r{rd}"] = value

    @staticmethod
    def queue(row: Row) -> int:
        return row[QUEUE_OF[row.name]].base if row.name in QUEUE_OF else int(row.instruction.engine or 0)

    @staticmethod
    def extents(row: Row, fields: list[int]) -> list[int]:
        return [fields[row.instruction.index(name)] for name in row.instruction.extents]


def records(flat: Flat, state: State, memory: np.ndarray, most: int = BLOCK) -> list[list[int]]:
    block = np.full((most, WIDTH), -99, np.int64)
    found: list[list[int]] = []
    while count := next_block(flat, state, memory, block):
        found += block[:count].tolist()
    return found


@given(st.integers(0, 1 << 32), st.integers(1, 40), st.sampled_from([1, 3, BLOCK]))
def test_records_are_what_the_rows_say(seed: int, rows: int, most: int) -> None:
    random = Random(seed)
    program = any_program(random, rows)
    core, arguments = random.randrange(4), (random.randint(-5, 5), random.randint(-5, 5))
    walk = Walk(program, {"r0": arguments[0], "r1": arguments[1], "r27": 4}, core)
    expected = list(walk.run())
    state = new_state(launch_registers(arguments, cores=4), core)
    found = records(flatten(program), state, NO_MEMORY, most)
    assert [(r[0], r[2], r[3], r[FIELDS : FIELDS + len(program[r[0]].fields)], r[ISSUE]) for r in found] == expected
    assert [isa.INSTRUCTIONS[r[1]].name for r in found] == [program[r[0]].name for r in found]
    assert (state.cursor[ISSUED], state.cursor[FAULT]) == (walk.issued, 0)


def test_rings_count_beyond_their_wrap() -> None:
    program = assemble(
        "loop count=2000 ring=3\n"
        + "\n".join(
            f"await engine=load counter=ring(3, {off}, {n})*1 value=i0" for n in range(1, 9) for off in (-9, 0, 5)
        )
        + "\nend"
    )
    found = iter(records(flatten(program), new_state(launch_registers()), NO_MEMORY))
    for trip in range(2000):
        for n in range(1, 9):
            for off in (-9, 0, 5):
                assert next(found)[FIELDS + 1 : FIELDS + 3] == [(trip + off) % n, trip]


def test_read_sets_a_register_before_the_next_row() -> None:
    memory = np.frombuffer((-7).to_bytes(4, "little", signed=True) + (1 << 40).to_bytes(8, "little"), np.uint8).copy()
    program = assemble(
        "read rd=4 src=0 width=4\nread rd=5 src=4 width=8\nmov rd=6 value=r4\nsignal engine=load counter=r5 - r6"
    )
    found = records(flatten(program), new_state(launch_registers()), memory)
    assert [r[2] for r in found] == [-1, -1, 1]
    assert found[-1][FIELDS + 1] == (1 << 40) + 7
    assert [r[ISSUE] for r in found] == [1, 1, 2]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("loop count=3 step=r0\nend", "the step of a loop is not positive"),
        ("div rd=1 a=3 b=r0", "the divisor is not positive"),
        ("mod rd=1 a=3 b=0", "the divisor is not positive"),
        ("read rd=1 src=-1 width=4", "the address lies outside global memory"),
        ("read rd=1 src=13 width=4", "the address lies outside global memory"),
        ("read rd=1 src=0 width=2", "the width is neither 4 nor 8"),
    ],
)
def test_a_fault_ends_the_stream(text: str, fault: str) -> None:
    state = new_state(launch_registers())
    found = records(
        flatten(assemble("signal engine=load counter=0\n" + text + "\nsignal engine=load counter=0")),
        state,
        np.zeros(16, np.uint8),
    )
    assert len(found) == 1
    assert (FAULTS[int(state.cursor[FAULT])], state.cursor[0]) == (fault, 1)


def test_an_engine_without_a_queue_is_refused() -> None:
    _, dst, token = assemble("set src=load dst=feed id=0")[0].fields
    with pytest.raises(ProgramError, match=r"row 0: set\.src: scalar; expected an engine with a queue"):
        flatten((Row("set", (Expr(int(isa.Engine.SCALAR)), dst, token)),))
