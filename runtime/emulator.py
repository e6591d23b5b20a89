"""The functional device: runs a kernel on the memories of a device, value for value, without time.

    prepared = prepare(program)
    counts = run(prepared, arguments=(a, b, c), memory=memory, target=target, counters=new_counters())

Rows run in program order, core after core; a core that has to wait lets the others go on, and where program order
itself blocks, the queues of the engines decide. With a seed every entry comes from a queue chosen at random.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from . import isa
from .encoding import Program, check
from .execute import core as layout
from .execute.diagnosis import Launch
from .execute.queues import Queues, new_queues, poison, run_in_order, run_queues
from .faults import DeviceFault
from .generator import Flat, State, flatten, launch_registers, new_state
from .memory import CoreMemory, Memory
from .plan import MOST_ARGUMENTS
from .target import Target

Words = npt.NDArray[np.int64]
_BURST = 16
"""Most entries that one core executes before another may, under a seed."""
_ENDLESS = 1 << 62
_BLOCKS = 16
"""Blocks of records that a core executes before Python is asked again, so that an interrupt is seen."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A program that is ready to run many times, on any target."""

    program: Program
    flat: Flat


@dataclass(frozen=True, slots=True)
class RowCounts:
    """What docs/numerics.md §8 counts, by row."""

    overflow: Words
    invalid: Words
    wide: Words


def prepare(program: Program) -> Prepared:
    """Checks and flattens a program; raises `ProgramError`."""
    check(program)
    return Prepared(program, flatten(program))


def new_counters() -> Words:
    """The global counters at the start of a plan."""
    return np.zeros(isa.COUNTERS, np.int64)


@dataclass(slots=True)
class Core:
    """A core at work."""

    number: int
    memory: CoreMemory
    state: State
    queues: Queues | None
    status: int = layout.BLOCKED

    @property
    def progress(self) -> int:
        return int(self.memory.words[layout.PROGRESS])


def run(
    program: Program | Prepared,
    *,
    arguments: Sequence[int],
    memory: Memory,
    target: Target,
    counters: Words,
    cores: int | None = None,
    seed: int | None = None,
    kernel: str = "kernel",
    l1_base: int = 0,
    ub_base: int = 0,
    id_base: int = 0,
    nodes: Sequence[Sequence[str]] = (),
) -> RowCounts:
    """Launches a kernel on all cores and runs it to its end.

    `counters` are the global counters of the plan and change in place; `nodes[slot]` names the ONNX nodes of a slot,
    for faults.
    Raises `DeviceFault`; memory then holds what had been written.
    """
    prepared = program if isinstance(program, Prepared) else prepare(program)
    count = target.cores if cores is None else cores
    if not 1 <= count <= len(memory.cores):
        raise ValueError(f"{kernel}: {count} cores; the memory was made for 1 to {len(memory.cores)}")
    if len(arguments) > MOST_ARGUMENTS:
        raise ValueError(f"{kernel}: {len(arguments)} arguments; there are registers for {MOST_ARGUMENTS}")
    if counters.dtype != np.int64 or counters.shape != (isa.COUNTERS,):
        raise ValueError(
            f"{kernel}: counters of {counters.dtype}{list(counters.shape)}; expected int64[{isa.COUNTERS}]"
        )
    registers = launch_registers(tuple(arguments), count, l1_base, ub_base, id_base)
    row_counts = np.zeros((len(prepared.program), layout.ROW_COUNTERS), np.int64)
    depth = target.queue_depth
    working = [
        _begin(
            number,
            memory.cores[number],
            registers,
            row_counts,
            counters,
            None if seed is None else new_queues(depth, seed + 1),
        )
        for number in range(count)
    ]
    where = Launch(prepared.program, kernel, nodes)
    if seed is None:
        _in_order(prepared.flat, memory, working, depth, where)
    else:
        _at_random(prepared.flat, memory, working, seed, where)
    for core in working:
        if core.memory.tokens.any():
            raise where.tokens_left(core.number, core.memory.tokens)
    return RowCounts(*row_counts.T)


def _begin(
    number: int, memory: CoreMemory, registers: Words, row_counts: Words, counters: Words, queues: Queues | None
) -> Core:
    """Poisons the memories of a core and resets it."""
    words = memory.words
    words[layout.ROW_COUNTS], words[layout.COUNTERS] = row_counts.ctypes.data, counters.ctypes.data
    words[layout.AT] = words[layout.COUNT] = words[layout.PROGRESS] = words[layout.FAULT_KIND] = 0
    memory.tokens[:] = 0
    core = Core(number, memory, new_state(registers, number), queues)
    poison(memory.address)
    return core


def _advance(flat: Flat, memory: Memory, core: Core, most: int, where: Launch) -> None:
    block, address = core.memory.block, core.memory.address
    if core.queues is None:
        core.status = layout.MORE
        while core.status == layout.MORE:
            core.status = run_in_order(flat, core.state, memory.gm, block, address, _BLOCKS)
    else:
        core.status = run_queues(flat, core.state, memory.gm, block, address, core.queues, most)
    if core.status == layout.FAULT:
        raise where.fault(core.number, core.memory.words, core.state)


def _in_order(flat: Flat, memory: Memory, cores: list[Core], depth: int, where: Launch) -> None:
    """Each core until it blocks, in turns, until all have ended."""
    waiting = cores
    while waiting:
        before = sum(core.progress for core in waiting)
        for core in waiting:
            _advance(flat, memory, core, _ENDLESS, where)
        if sum(core.progress for core in waiting) == before:
            _unblock(waiting, depth, where)
        waiting = [core for core in waiting if core.status != layout.OK]


def _unblock(cores: list[Core], depth: int, where: Launch) -> None:
    """Nothing moved: cores in program order go over to queues, and if there are none it is a deadlock."""
    blocked = [core for core in cores if core.status == layout.BLOCKED]
    in_order = [core for core in blocked if core.queues is None]
    for core in in_order:
        core.queues = new_queues(depth)
    if blocked and not in_order:
        raise _deadlock(blocked, where)


def _at_random(flat: Flat, memory: Memory, cores: list[Core], seed: int, where: Launch) -> None:
    """Bursts of random length on random cores; a burst of one entry is as likely as any other."""
    random = np.random.default_rng(seed)
    waiting = cores
    alone = len(cores) == 1
    stuck: set[int] = set()
    while waiting:
        core = waiting[int(random.integers(len(waiting)))]
        before = core.progress
        _advance(flat, memory, core, _ENDLESS if alone else int(random.integers(1, _BURST + 1)), where)
        if core.progress != before:
            stuck.clear()
        if core.status == layout.BLOCKED:
            stuck.add(core.number)
            if len(stuck) == len([c for c in waiting if c.status != layout.OK]):
                raise _deadlock(waiting, where)
        waiting = [core for core in waiting if core.status != layout.OK]


def _deadlock(cores: list[Core], where: Launch) -> DeviceFault:
    heads: list[tuple[int, Words]] = []
    for core in cores:
        if core.queues is not None:
            queues = core.queues
            heads += [(core.number, queues.entries[e, queues.heads[e]]) for e in np.flatnonzero(queues.counts)]
    return where.deadlock(heads)
