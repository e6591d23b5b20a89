"""A bench for one program: its queues are stepped by hand, in any legal order, on the emulator's instructions.

An instruction takes time, and its results come byte by byte. So an order may also keep one entry *in flight*: from its
start its destination holds garbage, until it ends. What reads or writes those bytes meanwhile shows in the outputs.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from acceptance.exploration import SPACES, Entry, Exploration
from numpy.typing import NDArray

from stepwell.runtime import isa
from stepwell.runtime.execute import core as layout
from stepwell.runtime.execute.queues import poison
from stepwell.runtime.execute.sync import step
from stepwell.runtime.generator import WIDTH
from stepwell.runtime.memory import Memory
from stepwell.runtime.target import Target

Bytes = NDArray[np.uint8]
GARBAGE = 0xFF
_ENGINES = len(isa.Engine)
_CELL = 4
"""Bytes that the emulator spends on an element of L0A and L0B."""
_SIZES = {isa.DTYPES[name]: size for name, size in {"f16": 2, "bf16": 2, "f32": 4, "i32": 4}.items()}


class Stuck(Exception):
    """The program stopped: a fault, or queues that wait for ever."""


@dataclass
class Bench:
    """A program's queues on a device, to be run again and again from the same contents of global memory."""

    explored: Exploration
    target: Target
    before: Bytes
    """Global memory when the kernel starts."""
    memory: Memory
    records: NDArray[np.int64] = field(init=False)
    done: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.records = np.zeros((len(self.explored.entries), WIDTH), np.int64)
        for record, entry in zip(self.records, self.explored.entries, strict=True):
            record[: layout.FIELDS] = entry.row, isa.OPCODE[entry.name], entry.queue % _ENGINES, entry.noop
            record[layout.FIELDS : layout.FIELDS + len(entry.values)] = entry.values
        self.counts = np.zeros((int(self.records[:, 0].max(initial=0)) + 1, layout.ROW_COUNTERS), np.int64)
        self.counters = np.zeros(isa.COUNTERS, np.int64)
        self.done = []

    def reset(self) -> None:
        """As at a launch."""
        for core in self.memory.cores:
            core.words[layout.ROW_COUNTS], core.words[layout.COUNTERS] = (
                self.counts.ctypes.data,
                self.counters.ctypes.data,
            )
            core.tokens[:] = 0
            poison(core.address)
        self.counters[:] = 0
        self.memory.gm[: len(self.before)] = self.before
        self.done = [0] * len(self.explored.queues)

    def head(self, queue: int) -> int:
        """The next entry of a queue, or -1."""
        waiting = self.explored.queues[queue]
        return waiting[self.done[queue]] if self.done[queue] < len(waiting) else -1

    def advance(self, queue: int) -> bool:
        """Executes the head of a queue; False if it waits. Raises `Stuck` for a fault."""
        status = step(self.records[self.head(queue)].ctypes.data, self.memory.cores[queue // _ENGINES].address)
        if status == layout.FAULT:
            raise Stuck(f"fault in row {self.explored.entries[self.head(queue)].row}")
        self.done[queue] += status == layout.OK
        return status == layout.OK

    def go(self, order: Sequence[int], held: int = -1, until: int = -1, before: int = -1) -> None:
        """Always the first queue of `order` that can go on, without `held`.

        Stops when `until` is done, or when `before` is next in its queue.
        """
        entries, place = self.explored.entries, self.explored.place
        while True:
            if until >= 0 and self.done[entries[until].queue] > place[until]:
                return
            if before >= 0 and self.head(entries[before].queue) == before:
                return
            for queue in order:
                head = self.head(queue)
                if head >= 0 and head != held and self.advance(queue):
                    break
            else:
                return

    def finish(self, order: Sequence[int]) -> Bytes:
        """Runs to the end: global memory afterwards. Raises `Stuck`."""
        self.go(order)
        if any(self.head(queue) >= 0 for queue in order):
            raise Stuck("deadlock")
        if any(core.tokens.any() for core in self.memory.cores):
            raise Stuck("tokens left over")
        return self.memory.gm[: len(self.before)].copy()

    def run(self, order: Sequence[int]) -> Bytes:
        """The program with one order of preference among its queues."""
        self.reset()
        return self.finish(order)

    def run_torn(self, writer: int, other: int, order: Sequence[int]) -> Bytes:
        """`other` is executed while `writer` is in flight; both orders of the two must be possible."""
        self.reset()
        self.go(order, held=other, before=writer)
        entry = self.explored.entries[writer]
        with self.in_flight(entry):
            self.go(order, held=writer, until=other)
        self.advance(entry.queue)
        return self.finish(order)

    @contextmanager
    def in_flight(self, entry: Entry) -> Generator[None]:
        """Garbage in what the entry writes. What it also reads it gets back at the end."""
        kept: list[tuple[Bytes, NDArray[np.intp], Bytes]] = []
        for where, mask in entry.writes.items():
            array, places = self.bytes_of(entry, where % SPACES, mask)
            if entry.reads.get(where, 0) & mask:
                kept.append((array, places, array[places]))
            array[places] = GARBAGE
        yield
        for array, places, values in kept:
            array[places] = values

    def bytes_of(self, entry: Entry, space: int, mask: int) -> tuple[Bytes, NDArray[np.intp]]:
        """The emulator's bytes behind those of a memory."""
        core, kind = self.memory.cores[entry.core], isa.Space(space)
        bits = np.frombuffer(mask.to_bytes(mask.bit_length() // 8 + 1, "little"), np.uint8)
        places = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
        array = self.memory.gm if kind is isa.Space.GM else getattr(core, kind.name.lower())
        if kind not in (isa.Space.L0A, isa.Space.L0B):
            return array, places
        dtype = entry.values[isa.BY_NAME[entry.name].index("dtype")]
        size, whole = _SIZES.get(dtype, 1), int(core.words[layout.SIZE + space])
        cells = whole * (_CELL // size - 1) + np.unique(places // size) * _CELL
        return array, (cells[:, None] + np.arange(_CELL)).reshape(-1)


def orders(cores: int = 1) -> list[tuple[int, ...]]:
    """Each queue first, each last, and each pair of neighbours first: the most lopsided schedules."""
    queues = [core * _ENGINES + engine for core in range(cores) for engine in range(1, _ENGINES)]
    first = [(q, *(x for x in queues if x != q)) for q in queues]
    pairs = [(b, a, *(x for x in queues if x not in (a, b))) for a, b in pairwise(queues)]
    return [*first, *(each[::-1] for each in first), *pairs]


# exhaustive -----------------------------------------------------------------------------------------------------------


def outcomes(bench: Bench, most: int) -> tuple[set[bytes], bool]:
    """Contents of global memory at the ends of *all* interleavings, and whether one of them stops; for tiny programs
    of one core.

    Raises `OverflowError` beyond `most` states.
    """
    bench.reset()
    ends, stops = set[bytes](), False
    start = _State.of(bench)
    pending, seen = [start], {start.key}
    while pending:
        state = pending.pop()
        alive = [queue for queue in range(1, _ENGINES) if state.head(bench, queue) >= 0]
        moved = False
        for queue in alive:
            state.restore(bench)
            try:
                if not bench.advance(queue):
                    continue
            except Stuck:
                stops = True
                continue
            finally:
                moved |= bench.done != list(state.done)
            after = _State.of(bench)
            if after.key not in seen:
                seen.add(after.key)
                pending.append(after)
        if not alive:
            ends.add(state.memories[0])
        stops |= not moved and (bool(alive) or any(state.tokens))
        if len(seen) > most:
            raise OverflowError(f"more than {most} states")
    return ends, stops


@dataclass(frozen=True, slots=True)
class _State:
    """How far each queue is, and all that memories hold."""

    done: tuple[int, ...]
    tokens: bytes
    memories: tuple[bytes, ...]

    @property
    def key(self) -> int:
        return hash((self.done, self.memories))

    @staticmethod
    def of(bench: Bench) -> "_State":
        core = bench.memory.cores[0]
        return _State(tuple(bench.done), core.tokens.tobytes(), tuple(m.tobytes() for m in _State.arrays(bench)))

    @staticmethod
    def arrays(bench: Bench) -> list[Bytes]:
        core = bench.memory.cores[0]
        return [bench.memory.gm[: len(bench.before)], core.ub, core.l1]

    def restore(self, bench: Bench) -> None:
        bench.done = list(self.done)
        bench.memory.cores[0].tokens[:] = np.frombuffer(self.tokens, np.int64)
        for array, content in zip(_State.arrays(bench), self.memories, strict=True):
            array[:] = np.frombuffer(content, np.uint8)

    def head(self, bench: Bench, queue: int) -> int:
        waiting = bench.explored.queues[queue]
        return waiting[self.done[queue]] if self.done[queue] < len(waiting) else -1
