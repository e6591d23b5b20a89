"""The tables of the checker: clocks, tokens, signals, queues and shadow memories, and the words through which
compiled code reaches them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import isa
from .footprint import ENGINES, SPACES
from .generator import Flat
from .jit import inline
from .numerics.bits import load_i64, store_i64

SLOTS = 64
"""Places of a queue: the greatest depth of a target."""
RING = 16
"""Clocks kept of a token: one more than there may be tokens."""
GM = int(isa.Space.GM)
MOST_CORES = 64


# The words that compiled code starts from: numbers, addresses of arrays, and the places of the memories.
(
    W_CORES,
    W_DEPTH,
    W_KINDS,
    W_BLOCK_SIZE,
    W_ROWS,
    W_GM_SIZE,
    W_FLAT_HEAD,
    W_BASES,
    W_MODIFIERS,
    W_GM,
    W_VARIABLES,
    W_RINGS,
    W_TRIPS,
    W_CURSOR,
    W_BLOCKS,
    W_AT,
    W_QUEUES,
    W_ISSUED,
    W_BEGUN,
    W_CLOCKS,
    W_TICKS,
    W_THREAD_ROWS,
    W_FIRST,
    W_STARTED,
    W_TOKEN_NUMBER,
    W_GIVEN,
    W_TAKEN,
    W_GRANTED,
    W_TOKEN_CLOCKS,
    W_GIVES,
    W_TAKES,
    W_LENGTHS,
    W_SIGNAL_FIRST,
    W_SIGNALS,
    W_INITIAL,
    W_SIGNAL_CLOCKS,
    W_JOINED,
    W_SIGNALLERS,
    W_ASKED,
    W_LOOSE,
    W_WRITER,
    W_WRITTEN,
    W_READ,
    W_HOLDS,
    W_ACCESSES,
    W_FINDINGS,
    W_SHIFT,
) = range(47)
"""The last is the base-2 logarithm of a granule's bytes, by space;"""
W_TRACKED = W_SHIFT + SPACES
"""by space, the granules whose reads are kept: up to the last that is ever written;"""
W_BASE = W_TRACKED + SPACES
W_READERS = W_BASE + MOST_CORES * SPACES
"""by core and space, the first granule; and the first of its readers."""
WORDS = W_READERS + MOST_CORES * SPACES


class Shadow(NamedTuple):
    """What is known of each granule of all memories: GM first, then those of each core."""

    places: NDArray[np.int64]
    """The words of a world from `W_SHIFT` on."""
    writer: NDArray[np.int32]
    """Thread of the last write, or -1."""
    written: NDArray[np.int32]
    """Tick of the last write."""
    read: NDArray[np.int32]
    """Tick of the last read: for each thread that may read there, of the tracked granules."""
    holds: NDArray[np.uint8]
    """0: nobody has written it; L0A, L0B: 1 + dtype."""


class Threads(NamedTuple):
    """Clocks and logs of all threads; ticks go on from launch to launch."""

    clocks: NDArray[np.int64]
    ticks: NDArray[np.int64]
    rows: NDArray[np.int32]
    """Row of each entry of this launch; those of thread t from `first[t]` on."""
    first: NDArray[np.int64]
    started: NDArray[np.int64]
    """Ticks when the launch began."""


class Tokens(NamedTuple):
    """Counts and clocks of the tokens of each core, numbered by `number[pair] · ids + id`."""

    number: NDArray[np.int64]
    given: NDArray[np.int64]
    taken: NDArray[np.int64]
    granted: NDArray[np.int64]
    clocks: NDArray[np.int64]
    gives: NDArray[np.int64]
    """Of each set: core, token, its tick, ticks of the waiter before it."""
    takes: NDArray[np.int64]
    """Of each wait and grant: core, token, its tick, change of the count."""
    lengths: NDArray[np.int64]


class Signals(NamedTuple):
    """The signals of each counter in the order of this interleaving, from `first[counter]` on.

    An await of value v follows the first v of them. That holds for every interleaving if each later signal follows
    all of the first v (`happens_before.is_firm` checks it afterwards). Counters for which it did not are `loose`:
    of the signals of a thread an await then follows only as many as v minus all that the other threads ever give.
    """

    first: NDArray[np.int64]
    counts: NDArray[np.int64]
    initial: NDArray[np.int64]
    clocks: NDArray[np.int64]
    """Of each signal."""
    joined: NDArray[np.int64]
    """Of each signal, with all before it."""
    threads: NDArray[np.int64]
    asked: NDArray[np.uint8]
    """Whether an await has this value."""
    loose: NDArray[np.uint8]


class Cores(NamedTuple):
    """Generators and queues of all cores."""

    variables: NDArray[np.int64]
    rings: NDArray[np.int64]
    trips: NDArray[np.int64]
    cursor: NDArray[np.int64]
    blocks: NDArray[np.int64]
    at: NDArray[np.int64]
    """By core: records in the block, the next one, whether the program has ended."""
    queues: NDArray[np.int64]
    """Records by core and engine, then the tick of the sequencer."""
    issued: NDArray[np.int64]
    begun: NDArray[np.int64]


def new_world(
    flat: Flat,
    gm: NDArray[np.uint8],
    depth: int,
    cores: Cores,
    threads: Threads,
    tokens: Tokens,
    signals: Signals,
    shadow: Shadow,
    accesses: NDArray[np.int64],
    findings: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The words for `walk`: they hold addresses, so keep what they were made of."""
    world = np.zeros(WORDS, np.int64)
    count, kinds = len(cores.issued), tokens.given.shape[1]
    arrays = (*flat, gm, *cores, *threads, *tokens, *signals, *shadow[1:], accesses, findings)
    world[:W_FLAT_HEAD] = count, depth, kinds, cores.blocks.shape[1], len(flat.head), gm.size
    world[W_FLAT_HEAD:W_SHIFT] = [array.ctypes.data for array in arrays]
    world[W_SHIFT:] = shadow.places
    return world


@inline
def item(world, array, index):  # type: ignore[no-untyped-def]
    """An element of an array of the world."""
    return load_i64(load_i64(world, array), index)


@inline
def put(world, array, index, value):  # type: ignore[no-untyped-def]
    """Sets an element of an array of the world."""
    store_i64(load_i64(world, array), index, value)


@inline
def vector(world, array, index):  # type: ignore[no-untyped-def]
    """The address of a clock in an array of clocks."""
    return load_i64(world, array) + index * 8 * ENGINES * load_i64(world, W_CORES)
