"""How long a program takes: docs/timing.md as functions. Data-independent but for `read`, and apart from values.

prepared = prepare(program)
timing = time_launch(prepared, launch_registers((x, y), cores=2), target)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import formulas, isa
from .encoding import Program
from .generator import (  # fmt: skip
    FAULT,
    FAULTS,
    FIELDS,
    H_OPCODE,
    H_SLOT,
    ISSUE,
    ISSUED,
    NOOP,
    OPCODE,
    PC,
    QUEUE,
    ROW,
    WIDTH,
    Flat,
    flatten,
    new_block,
    new_state,
    next_block,
)
from .jit import inline, jit
from .numerics.bits import load_i64
from .target import Target
from .timed_words import (
    BUSY,
    CLOCK,
    CUBE,
    ENGINES,
    EVENTS,
    FAULTY,
    FREE,
    GM_BYTES,
    PORT,
    RECORDS,
    ROW_BUSY,
    ROW_WORDS,
    SLOTS,
    STARVED,
    TOKEN,
    TOKENS,
    WATCHED,
)
from .timeline import (
    DEADLOCK,
    OVERFLOW,
    RANGE,
    by_engine,
    final_counters,
    is_costed,
    new_machine,
    new_rows,
    row_bytes,
    row_cycles,
    simulate,
    token_of,
)

NO_MEMORY = np.zeros(0, np.uint8)
_FAULTS = {
    **FAULTS,
    DEADLOCK: "deadlock: every queue is blocked",
    OVERFLOW: f"more than {isa.TOKEN_LIMIT} tokens of one kind",
    RANGE: "a token id or counter out of range, or a negative grant",
}


class TimingError(ValueError):
    """The program cannot run to its end: `core <n>: row <m> <name>: <what is wrong>`."""


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


def replay(
    prepared: Prepared, registers: NDArray[np.int64], target: Target, core: int = 0, gm: NDArray[np.uint8] = NO_MEMORY
) -> float:
    """A fast estimate for ranking schedules: one core, each transfer at the port's share of a core, in a single
    pass in program order.

    Raises `TimingError` if a wait comes before its set in program order, which only `time_launch` follows."""
    rate = min(target.gm_path, target.gm_port / target.cores)
    rows = new_rows(prepared.watch)
    state = new_state(registers, core)
    constants = formulas.constants(target)
    cycles = _replay(prepared.flat, state, gm, new_block(), constants, rate, target.queue_depth, rows)
    if fault := int(state.cursor[FAULT]):
        raise TimingError(f"core {core}: row {state.cursor[PC]}: {_FAULTS[fault]}")
    if cycles < 0:
        raise TimingError(f"core {core}: a wait comes before its set in program order")
    return cycles + target.launch


_OP_SET, _OP_WAIT, _OP_GRANT = (isa.OPCODE[name] for name in ("set", "wait", "grant"))
_READ_CYCLES = formulas.CONSTANTS.index("fixed_read")


@inline
def _exchange(record, times, counts, start, length):  # type: ignore[no-untyped-def]
    """Gives or takes a token at `start`: the start of a wait, which its token may delay, or -1: there is none."""
    token, opcode = token_of(record), load_i64(record, OPCODE)
    if token < 0:
        return -1.0
    sets, needed = counts[token, 0], counts[token, 1]
    if opcode == _OP_SET:
        times[token, sets & 15] = start + length
        counts[token, 0] += 1
    elif opcode == _OP_GRANT:
        counts[token, 1] -= load_i64(record, FIELDS + 3)
    else:
        counts[token, 1] += 1
        if needed >= sets:
            return -1.0
        if needed >= 0:
            start = max(start, times[token, needed & 15])
    return start


@jit
def _replay(flat, state, gm, block, constants, rate, depth, rows):  # type: ignore[no-untyped-def]
    """start = max(end before it in its queue, issue, token); end = start + cycles + bytes / rate. Negative: a token
    is missing."""
    free, starts, issued = np.zeros(ENGINES), np.zeros((ENGINES, SLOTS)), np.zeros(ENGINES, np.int64)
    times, counts = np.zeros((TOKENS, 16)), np.zeros((TOKENS, 2), np.int64)
    clock = 0.0
    while True:
        count = next_block(flat, state, gm, block)
        if count == 0:
            return max(clock + state.cursor[ISSUED], free.max())
        for n in range(count):
            record = block.ctypes.data + n * 8 * WIDTH
            e, opcode = load_i64(record, QUEUE), load_i64(record, OPCODE)
            row = rows.ctypes.data + load_i64(record, ROW) * 8 * ROW_WORDS
            clock += load_i64(record, ISSUE)
            if e < 0:
                clock += constants[_READ_CYCLES]
                continue
            k = issued[e]
            if k >= depth:
                clock = max(clock, starts[e, (k - depth) & (SLOTS - 1)])
            start, length = max(clock, free[e]), 1.0
            if not load_i64(record, NOOP):
                if not is_costed(row, record):
                    formulas.cost(record, constants.ctypes.data, row)
                length = row_cycles(row) + row_bytes(row) / rate
            if _OP_SET <= opcode <= _OP_GRANT:
                start = _exchange(record, times, counts, start, length)
                if start < 0:
                    return -1.0
            starts[e, k & (SLOTS - 1)], issued[e], free[e] = start, k + 1, start + length
