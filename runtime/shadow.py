"""What the checker knows of memory: each granule's last write and last reads, compared with the clocks of who comes
next."""

import numpy as np
from numpy.typing import NDArray

from . import isa
from .checker_world import (
    GM,
    W_ACCESSES,
    W_BASE,
    W_CLOCKS,
    W_CORES,
    W_FINDINGS,
    W_HOLDS,
    W_READ,
    W_READERS,
    W_SHIFT,
    W_TICKS,
    W_TRACKED,
    W_WRITER,
    W_WRITTEN,
    item,
    vector,
)
from .footprint import ENGINES, SPACES, merge_runs
from .formulas import ACCESS, ACCESS_WIDTH, ADDRESS, READS, RUNS, SPACE, WRITES, footprint
from .generator import FIELDS, OPCODE
from .jit import inline, kernel
from .numerics.bits import i64, load_i32, load_i64, load_u8, store_i8, store_i32, store_i64


def _readers() -> list[list[int]]:
    """The engines that may read each space; on chip a space may be that of a field."""
    may: list[set[int]] = [set() for _ in isa.Space]
    for instruction in isa.INSTRUCTIONS:
        for access in instruction.accesses:
            if not access.writes and instruction.engine is not None:
                spaces = range(1, SPACES) if isinstance(access.space, str) else [int(access.space)]
                for space in spaces:
                    may[space].add(int(instruction.engine))
    return [sorted(engines) for engines in may]


READERS = _readers()
_COUNT: NDArray[np.int64] = np.array([len(engines) for engines in READERS])
_ENGINE: NDArray[np.int64] = np.array([engines + [0] * (ENGINES - len(engines)) for engines in READERS])
_COLUMN: NDArray[np.int64] = np.array(
    [[engines.index(e) if e in engines else -1 for e in range(ENGINES)] for engines in READERS]
)
"""Readers of a space: how many, the engine of each, and the number of each engine. In GM each core has its own."""
_TYPED = np.array([s in (isa.Space.L0A, isa.Space.L0B) for s in isa.Space])
_DTYPE_FIELD = np.array(
    [next((FIELDS + n for n, f in enumerate(i.fields) if f.name == "dtype"), -1) for i in isa.INSTRUCTIONS]
)
_CLASS: NDArray[np.int64] = np.array(
    [1 + isa.DTYPES["i8"] if name == "u8" else 1 + code for name, code in isa.DTYPES.items()]
)
"""What L0A and L0B hold, by dtype: i8 and u8 may stand for each other."""

WRITE_READ, READ_WRITE, WRITE_WRITE, UNWRITTEN, DTYPE = range(10, 15)
"""Kinds of findings: (kind, thread and tick before, thread and tick after, space, first byte, end). Nothing comes
before an `UNWRITTEN`.

Findings begin with a header: how many there are, the most, 1 + the row of a set or grant that overflowed, and its
thread."""
FINDING_WIDTH = 8


@inline
def report(findings, kind, before, before_tick, after, after_tick, space, low, high):  # type: ignore[no-untyped-def]
    """Writes down a finding, if there is room: its index, or -1. `findings` is an address."""
    n = load_i64(findings, 0)
    if n == load_i64(findings, 1):
        return -1
    store_i64(findings, 0, n + 1)
    at = findings + 8 * (n + 1) * FINDING_WIDTH
    for word, value in enumerate((kind, before, before_tick, after, after_tick, space, low, high)):
        store_i64(at, word, value)
    return n


@kernel
def touch_all(world: int, record: int, t: int) -> None:
    """All accesses of a record by thread t."""
    word = i64(_DTYPE_FIELD[load_i64(record, OPCODE)])
    dtype = i64(_CLASS[load_i64(record, word)]) if word >= 0 else 0
    accesses = load_i64(world, W_ACCESSES)
    for a in range(footprint(record, accesses)):
        access = accesses + a * 8 * ACCESS_WIDTH
        touch(world, access, t, dtype if _TYPED[load_i64(access, SPACE)] else 1)


@kernel
def touch(world: int, access: int, t: int, holds: int) -> None:
    """One access, run by run. What a granule holds after a write is `holds`."""
    length = merge_runs(access)
    if length == 0:
        return
    space, core, findings = load_i64(access, SPACE), t // ENGINES, load_i64(world, W_FINDINGS)
    clock, tick = vector(world, W_CLOCKS, t), item(world, W_TICKS, t)
    shift, at = load_i64(world, W_SHIFT + space), load_i64(access, ADDRESS)
    granule = load_i64(world, W_BASE + core * SPACES + space)
    reader = load_i64(world, W_READERS + core * SPACES + space)
    readers, own = i64(_COUNT[space]), i64(_COLUMN[space, t % ENGINES])
    tracked = load_i64(world, W_TRACKED + space)
    if space == GM:
        own += core * readers
    reads, writes = load_i64(access, ACCESS) & READS, load_i64(access, ACCESS) & WRITES
    n0, s0, n1, s1, n2, s2, n3, s3, n4, s4 = _axes(access)
    for i0 in range(n0):
        for i1 in range(n1):
            for i2 in range(n2):
                for i3 in range(n3):
                    for i4 in range(n4):
                        low = at + i0 * s0 + i1 * s1 + i2 * s2 + i3 * s3 + i4 * s4
                        first, last = low >> shift, (low + length) >> shift
                        if reads:
                            _read(world, granule, first, last, t, clock, holds, tick, findings, space)
                        if writes:
                            _write(world, granule, reader, readers, first, last, t, clock, holds, tick, findings, space)
                        else:
                            read = load_i64(world, W_READ) + 4 * (reader + own * tracked)
                            for g in range(first, min(last, tracked)):
                                store_i32(read, g, tick)


@inline
def _axes(access):  # type: ignore[no-untyped-def]
    """(count, stride) of the five axes."""
    n0, n1, n2 = load_i64(access, RUNS), load_i64(access, RUNS + 2), load_i64(access, RUNS + 4)
    n3, n4 = load_i64(access, RUNS + 6), load_i64(access, RUNS + 8)
    s0, s1, s2 = load_i64(access, RUNS + 1), load_i64(access, RUNS + 3), load_i64(access, RUNS + 5)
    return n0, s0, n1, s1, n2, s2, n3, load_i64(access, RUNS + 7), n4, load_i64(access, RUNS + 9)


@inline
def _extend(findings, known, kind, other, before, t, tick, space, g):  # type: ignore[no-untyped-def]
    """A finding at granule g (its first byte and end): part of finding `known` if that ends there and has the same
    cause. Its index."""
    low, high = g
    at = findings + 8 * (known + 1) * FINDING_WIDTH
    if (
        known >= 0
        and load_i64(at, 0) == kind
        and load_i64(at, 1) == other
        and load_i64(at, 2) == before
        and load_i64(at, 7) == low
    ):
        store_i64(at, 7, high)
        return known
    return report(findings, kind, other, before, t, tick, space, low, high)


@inline
def _read(world, granule, first, last, t, clock, holds, tick, findings, space):  # type: ignore[no-untyped-def]
    """Checks that a run of granules was written, with this type, before."""
    writer, written = load_i64(world, W_WRITER) + 4 * granule, load_i64(world, W_WRITTEN) + 4 * granule
    held, shift, known = load_i64(world, W_HOLDS) + granule, load_i64(world, W_SHIFT + space), -1
    for g in range(first, last):
        w, before, h = i64(load_i32(writer, g)), i64(load_i32(written, g)), i64(load_u8(held, g))
        kind = 0
        if h == 0:
            kind, w, before = UNWRITTEN, -1, 0
        elif w >= 0 and w != t and load_i64(clock, w) < before:
            kind = WRITE_READ
        elif h != holds and _TYPED[space]:
            kind = DTYPE
        if kind:
            known = _extend(findings, known, kind, w, before, t, tick, space, (g << shift, (g + 1) << shift))


@inline
def _write(world, granule, reader, readers, first, last, t, clock, holds, tick, findings, space):  # type: ignore[no-untyped-def]
    """Checks that the last write and reads of a run of granules come before, and writes."""
    writer, written = load_i64(world, W_WRITER) + 4 * granule, load_i64(world, W_WRITTEN) + 4 * granule
    held, shift, known = load_i64(world, W_HOLDS) + granule, load_i64(world, W_SHIFT + space), -1
    for g in range(first, last):
        w, before = i64(load_i32(writer, g)), i64(load_i32(written, g))
        if w >= 0 and w != t and load_i64(clock, w) < before:
            known = _extend(findings, known, WRITE_WRITE, w, before, t, tick, space, (g << shift, (g + 1) << shift))
        store_i32(writer, g, t)
        store_i32(written, g, tick)
        store_i8(held, g, holds)
    step, core, cores = 4 * load_i64(world, W_TRACKED + space), t // ENGINES, 1
    if space == GM:
        core, cores = 0, load_i64(world, W_CORES)
    read = load_i64(world, W_READ) + 4 * reader - step
    for c in range(core, core + cores):
        for column in range(readers):
            read += step
            u = c * ENGINES + i64(_ENGINE[space, column])
            ordered, known = load_i64(clock, u), -1
            if u == t or ordered >= item(world, W_TICKS, u):
                continue
            for g in range(first, last):
                r = i64(load_i32(read, g))
                if r > ordered:
                    known = _extend(findings, known, READ_WRITE, u, r, t, tick, space, (g << shift, (g + 1) << shift))
