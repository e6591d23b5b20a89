"""How long a program takes: docs/timing.md as functions. Data-independent but for `read`, and apart from values.

prepared = prepare(program)
timing = time_launch(prepared, launch_registers((x, y), cores=2), target)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import formulas, isa
from .encoding import Program
from .generator import (  # fmt: skip
    FAULTS,
    H_OPCODE,
    H_SLOT,
    Flat,
    flatten,
)
from .problem import Kind, UserError
from .target import Target
from .timed_words import (
    BUSY,
    CLOCK,
    CUBE,
    EVENTS,
    FAULTY,
    FREE,
    GM_BYTES,
    PORT,
    RECORDS,
    ROW_BUSY,
    STARVED,
    TOKEN,
    WATCHED,
)
from .timeline import (
    DEADLOCK,
    OVERFLOW,
    RANGE,
    by_engine,
    final_counters,
    new_machine,
    simulate,
)

NO_MEMORY = np.zeros(0, np.uint8)
_FAULTS = {
    **FAULTS,
    DEADLOCK: "deadlock: every queue is blocked",
    OVERFLOW: f"more than {isa.TOKEN_LIMIT} tokens of one kind",
    RANGE: "a token id or counter out of range, or a negative grant",
}


class TimingError(UserError, ValueError):
    """The program cannot run to its end: `core <n>: row <m> <name>: <what is wrong>`."""

    KIND: ClassVar[Kind] = Kind.IR


class Prepared(NamedTuple):
    """A program ready to be timed: its arrays, and for each row the fields that its cost depends on (field + 1, six
    bits each)."""

    flat: Flat
    watch: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Timing:
    """What a launch, or several one after the other, took. Arrays are [core, engine], in cycles; index engines by
    `isa.Engine`."""

    cycles: float
    """From the launch to the end of the last entry of all cores."""
    busy: NDArray[np.float64]
    """Executing entries, `port` included."""
    token: NDArray[np.float64]
    """Waiting for a token or a counter."""
    issue: NDArray[np.float64]
    """Empty, because the sequencer had not issued the next entry yet."""
    port: NDArray[np.float64]
    """By how much sharing the port lengthened the transfers."""
    gm_bytes: float
    cube_cycles: float
    """Multiply-accumulates over the rate of the cube, of the core that has most: no launch is shorter."""
    records: int
    """Rows that went into queues, and reads."""
    rows: NDArray[np.float64]
    """Busy cycles by row, of all cores."""
    counters: NDArray[np.int64]
    """Global counters afterwards."""
    trace: NDArray[np.float64]
    """(core, engine, row, enter, start, end) of each entry, as far as it was asked for."""


def prepare(program: Program) -> Prepared:
    """Once per program; raises `ProgramError` as `flatten` does."""
    watch = np.zeros(len(program), np.int64)
    for number, row in enumerate(program):
        instruction = row.instruction
        text = [formulas.fields_in(f, instruction) for f in (instruction.cycles, instruction.gm_bytes)]
        varying = sorted({field for found in text for field in found if not row.fields[field].is_constant})
        if len(varying) > WATCHED:
            raise AssertionError(f"{row.name}: a cost that depends on more than {WATCHED} fields")
        watch[number] = sum((field + 1) << 6 * i for i, field in enumerate(varying))
    return Prepared(flatten(program), watch)


def time_launch(
    prepared: Prepared,
    registers: NDArray[np.int64],
    target: Target,
    cores: int | None = None,
    gm: NDArray[np.uint8] = NO_MEMORY,
    counters: NDArray[np.int64] | None = None,
    events: int = 0,
) -> Timing:
    """Times one launch on `cores` cores (all, if None). `gm` serves `read`; `counters` are the global ones before;
    up to `events` entries are traced. Raises `TimingError` where the program cannot run: the timing is for programs
    that pass the checker."""
    cores = target.cores if cores is None else cores
    before = np.zeros(isa.COUNTERS, np.int64) if counters is None else counters
    machine = new_machine(prepared.watch, registers, cores, before, float(target.launch), events)
    fault, core = simulate(prepared.flat, machine, gm, formulas.constants(target))
    if fault:
        row = int(machine.cores[core, FAULTY])
        name = "" if fault == DEADLOCK else f"row {row} {isa.INSTRUCTIONS[prepared.flat.head[row, H_OPCODE]].name}: "
        raise TimingError(f"core {core}: {name}{_FAULTS[fault]}")
    words, reals = machine.cores, machine.cores.view(np.float64)
    timing = Timing(
        cycles=max(float(by_engine(machine, FREE).max()), float(reals[:, CLOCK].max())),
        busy=by_engine(machine, BUSY),
        token=by_engine(machine, TOKEN),
        issue=by_engine(machine, STARVED),
        port=by_engine(machine, PORT),
        gm_bytes=float(reals[:, GM_BYTES].sum()),
        cube_cycles=float(reals[:, CUBE].max()),
        records=int(words[:, RECORDS].sum()),
        rows=machine.rows.view(np.float64)[:, ROW_BUSY].copy(),
        counters=final_counters(machine),
        trace=machine.trace[: int(machine.shared[EVENTS])],
    )
    least = max(timing.cube_cycles, timing.gm_bytes / target.gm_port)
    assert timing.cycles * (1 + 1e-9) >= least, f"{timing.cycles} cycles, but the cube or the port needs {least}"
    return timing


def by_slot(prepared: Prepared, timing: Timing) -> dict[int, float]:
    """Busy cycles by slot of the kernel's location table."""
    slots, places = np.unique(prepared.flat.head[:, H_SLOT], return_inverse=True)
    return dict(zip(slots.tolist(), np.bincount(places, timing.rows).tolist(), strict=True))


def time_plan(
    launches: Iterable[tuple[Prepared, NDArray[np.int64]]],
    target: Target,
    cores: int | None = None,
    gm: NDArray[np.uint8] = NO_MEMORY,
) -> list[Timing]:
    """Times launches that run one after the other, with the global counters carried on. A launch that neither reads
    memory nor uses counters is timed once for equal registers."""
    known: dict[tuple[int, bytes], Timing] = {}
    counters = np.zeros(isa.COUNTERS, np.int64)
    timings: list[Timing] = []
    outside = [isa.OPCODE[name] for name in ("read", "signal", "await")]
    for prepared, registers in launches:
        key = (id(prepared.watch), registers.tobytes())
        timing = known.get(key)
        if timing is None:
            timing = time_launch(prepared, registers, target, cores, gm, counters)
            if not np.isin(prepared.flat.head[:, H_OPCODE], outside).any():
                known[key] = timing
        counters = timing.counters
        timings.append(timing)
    return timings
