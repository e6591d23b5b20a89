"""What a launch touches, found by one walk over its expanded stream: sizes for the checker's tables, the granule of
each memory, accesses outside a memory."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import isa
from .formulas import ACCESS, ACCESS_WIDTH, ADDRESS, LENGTH, MOST_ACCESSES, MOST_RUNS, RUNS, SPACE, WRITES, footprint
from .generator import FAULT, FIELDS, NOOP, OPCODE, PC, QUEUE, ROW, Flat, new_block, new_state, next_block
from .jit import inline, jit
from .numerics.bits import load_i64, store_i64

ENGINES = len(isa.Engine)
SPACES = len(isa.Space)
PAIRS = ENGINES * ENGINES
GRANULE = 32
"""Largest unit of memory that the checker keeps apart, in bytes; a power of two."""
_SET, _WAIT, _GRANT, _SIGNAL, _AWAIT = (isa.OPCODE[name] for name in ("set", "wait", "grant", "signal", "await"))
OUTSIDE, BAD_TOKEN, BAD_COUNTER, STOPPED = range(1, 5)
"""Kinds of what a survey finds wrong."""


class Survey(NamedTuple):
    """Of one core."""

    bits: NDArray[np.int64]
    """By space: all addresses, strides and lengths, or-ed."""
    written: NDArray[np.int64]
    """By space: the end of the last byte that is written."""
    entries: NDArray[np.int64]
    """By engine: entries of its queue; reads for the scalar engine."""
    given: NDArray[np.int64]
    """By pair: sets."""
    taken: NDArray[np.int64]
    """By pair: waits and grants."""
    signals: NDArray[np.int64]
    """By counter."""
    wrong: NDArray[np.int64]
    """(kind, row, space, first byte, end) of each thing that is wrong, as far as there is room."""
    faults: NDArray[np.int64]
    """How many are wrong."""


def survey(
    flat: Flat, registers: NDArray[np.int64], core: int, gm: NDArray[np.uint8], sizes: NDArray[np.int64]
) -> Survey:
    """Walks the stream of a core; `sizes` are the bytes of each space."""
    found = Survey(
        *(np.zeros(n, np.int64) for n in (SPACES, SPACES, ENGINES, PAIRS, PAIRS, isa.COUNTERS)),
        wrong=np.zeros((32, 5), np.int64),
        faults=np.zeros(1, np.int64),
    )
    state = new_state(registers, core)
    _walk(flat, state, gm, new_block(), new_accesses(), sizes, found)
    if state.cursor[FAULT]:
        _wrong(found.wrong, found.faults, STOPPED, int(state.cursor[PC]), int(state.cursor[FAULT]), 0, 0)
    return found


def new_accesses() -> NDArray[np.int64]:
    """Room for the accesses of one instruction."""
    return np.zeros((MOST_ACCESSES, ACCESS_WIDTH), np.int64)


def granules(bits: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each space log2 of the largest power of two, up to `GRANULE`, that divides all that was or-ed."""
    both = bits | GRANULE
    return np.log2(both & -both).astype(np.int64)


@jit
def _wrong(wrong, count, kind, row, space, low, high):  # type: ignore[no-untyped-def]
    """Writes down one thing for each kind and row."""
    for i in range(min(count[0], len(wrong))):
        if wrong[i, 0] == kind and wrong[i, 1] == row:
            return
    if count[0] < len(wrong):
        wrong[count[0], 0], wrong[count[0], 1], wrong[count[0], 2] = kind, row, space
        wrong[count[0], 3], wrong[count[0], 4] = low, high
    count[0] += 1


@jit
def _walk(flat, state, gm, block, accesses, sizes, found):  # type: ignore[no-untyped-def]
    bits, entries, given, taken = found.bits, found.entries, found.given, found.taken
    signals, wrong, count, written = found.signals, found.wrong, found.faults, found.written
    while True:
        records = next_block(flat, state, gm, block)
        if records == 0:
            return
        for n in range(records):
            row, opcode = block[n, ROW], block[n, OPCODE]
            entries[max(block[n, QUEUE], 0)] += 1
            if _SET <= opcode <= _GRANT:
                pair, token = block[n, FIELDS] * ENGINES + block[n, FIELDS + 1], block[n, FIELDS + 2]
                if token < 0 or token >= isa.TOKEN_IDS or (opcode == _GRANT and block[n, FIELDS + 3] < 0):
                    _wrong(wrong, count, BAD_TOKEN, row, token, 0, 0)
                elif opcode == _SET:
                    given[pair] += 1
                else:
                    taken[pair] += 1
            elif _SIGNAL <= opcode <= _AWAIT:
                counter = block[n, FIELDS + 1]
                if counter < 0 or counter >= isa.COUNTERS:
                    _wrong(wrong, count, BAD_COUNTER, row, counter, 0, 0)
                elif opcode == _SIGNAL:
                    signals[counter] += 1
            elif not block[n, NOOP]:
                for a in range(footprint(block[n].ctypes.data, accesses.ctypes.data)):
                    _extent(accesses, a, bits, written, sizes, row, wrong, count)


@inline
def _extent(accesses, a, bits, written, sizes, row, wrong, count):  # type: ignore[no-untyped-def]
    """Adds an access to the bits and the written part of its space, and checks its bounds."""
    space, low = accesses[a, SPACE], accesses[a, ADDRESS]
    if accesses[a, LENGTH] <= 0:
        return
    every, high = low | accesses[a, LENGTH], low + accesses[a, LENGTH]
    for axis in range(MOST_RUNS):
        times, stride = accesses[a, RUNS + 2 * axis], accesses[a, RUNS + 2 * axis + 1]
        if times <= 0:
            return
        if times > 1:
            every |= stride
            low += min(0, (times - 1) * stride)
            high += max(0, (times - 1) * stride)
    bits[space] |= every
    if accesses[a, ACCESS] & WRITES:
        written[space] = max(written[space], high)
    if low < 0 or high > sizes[space]:
        _wrong(wrong, count, OUTSIDE, row, space, low, high)


@inline
def merge_runs(access):  # type: ignore[no-untyped-def]
    """Makes an access, given by address, of few long runs: drops axes of one step or stride 0, joins axes that
    continue the run. Length of a run, or 0."""
    length = max(0, load_i64(access, LENGTH))
    for axis in range(MOST_RUNS - 1, -1, -1):
        times, stride = load_i64(access, RUNS + 2 * axis), load_i64(access, RUNS + 2 * axis + 1)
        if times <= 0:
            return 0
        if stride == length or stride == 0:
            store_i64(access, RUNS + 2 * axis, 1)
        if stride == length:
            length *= times
    store_i64(access, LENGTH, length)
    return length
