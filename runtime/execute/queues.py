"""Runs the records of a core: in program order, or out of one queue for each engine.

Program order is one legal interleaving as long as no wait blocks; where one does, a later row of another queue may
still set the token, and the queues decide.
"""

from typing import NamedTuple

import numpy as np

from ..generator import FAULT as STOPPED
from ..generator import QUEUE, WIDTH, Flat, State, next_block
from ..jit import inline, jit, kernel
from ..numerics.bits import i64, load_i64, store_i64
from .core import AT, BLOCKED, COUNT, FAULT, L0A, L0B, L0C, L1, MORE, OK, SIZE, TOP, UB, Words, memory
from .lanes import set_bytes
from .sync import ENGINES, step

RECORD_BYTES = 8 * WIDTH


class Queues(NamedTuple):
    """`entries[engine, place]` are records, a ring for each engine; `heads` and `counts` are by engine; `random` is the
    state of xorshift, 0: none."""

    entries: Words
    heads: Words
    counts: Words
    random: Words


def new_queues(depth: int, seed: int = 0) -> Queues:
    """Empty queues. A seed other than 0 makes choices random."""
    entries = np.zeros((ENGINES, depth, WIDTH), np.int64)
    return Queues(entries, np.zeros(ENGINES, np.int64), np.zeros(ENGINES, np.int64), np.array([seed], np.int64))


@kernel
def poison(core: int) -> None:
    """All that the last kernel left on chip becomes 0xFF bytes: NaN in every float type."""
    for space in (L1, L0C, UB):
        set_bytes(memory(core, space, 0), 255, load_i64(core, TOP + space))
        store_i64(core, TOP + space, 0)
    for space in (L0A, L0B):
        top, size = load_i64(core, TOP + space), load_i64(core, SIZE + space)
        set_bytes(memory(core, space, 0), 255, top)
        set_bytes(memory(core, space, size), 255, 2 * top)
        set_bytes(memory(core, space, 3 * size), 255, 4 * top)
        store_i64(core, TOP + space, 0)


@jit
def run_in_order(flat: Flat, state: State, gm: np.ndarray, block: Words, core: int, most: int) -> int:
    """Executes until the program ends (OK), or a wait or await BLOCKS, or a FAULT, which may be the generator's, or
    MORE than so many blocks of records are to be executed."""
    at, count = load_i64(core, AT), load_i64(core, COUNT)
    status = OK
    while True:
        if at == count:
            if most == 0:
                status = MORE
                break
            most -= 1
            at, count = 0, i64(next_block(flat, state, gm, block))
            if count == 0:
                status = FAULT if state.cursor[STOPPED] else OK
                break
        status = step(block.ctypes.data + at * RECORD_BYTES, core)
        if status != OK:
            break
        at += 1
    store_i64(core, AT, at)
    store_i64(core, COUNT, count)
    return status


@jit
def issue(flat: Flat, state: State, gm: np.ndarray, block: Words, core: int, queues: Queues) -> int:
    """Moves records into their queues until one is full; whether the program has been issued whole."""
    depth = queues.entries.shape[1]
    while True:
        at = load_i64(core, AT)
        if at == load_i64(core, COUNT):
            at = 0
            store_i64(core, AT, at)
            store_i64(core, COUNT, i64(next_block(flat, state, gm, block)))
            if load_i64(core, COUNT) == 0:
                return 1
        engine = block[at, QUEUE]
        if engine >= 0:
            count = queues.counts[engine]
            if count == depth:
                return 0
            place = (queues.heads[engine] + count) % depth
            queues.entries[engine, place] = block[at]
            queues.counts[engine] = count + 1
        store_i64(core, AT, at + 1)


@inline
def draw(random: Words) -> int:
    """Xorshift: a number of 0 … 2⁶²; without a seed always 0."""
    x = np.uint64(random[0])
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    random[0] = np.int64(x)
    return i64(int(x >> np.uint64(2)))


@jit
def run_queues(flat: Flat, state: State, gm: np.ndarray, block: Words, core: int, queues: Queues, most: int) -> int:
    """Executes up to `most` entries, each from a queue whose head can run.

    OK at the end of the program, MORE when `most` are done, else BLOCKED or FAULT."""
    depth = queues.entries.shape[1]
    for _ in range(most):
        done = issue(flat, state, gm, block, core, queues)
        if state.cursor[STOPPED]:
            return FAULT
        ran = False
        first = draw(queues.random) % ENGINES
        waiting = 0
        for turn in range(ENGINES):
            engine = (first + turn) % ENGINES
            if queues.counts[engine] == 0:
                continue
            waiting += 1
            head = queues.heads[engine]
            record = queues.entries.ctypes.data + (engine * depth + head) * RECORD_BYTES
            status = step(record, core)
            if status == FAULT:
                return FAULT
            if status == OK:
                queues.heads[engine], queues.counts[engine] = (head + 1) % depth, queues.counts[engine] - 1
                ran = True
                break
        if not ran:
            return OK if done and waiting == 0 else BLOCKED
    return MORE
