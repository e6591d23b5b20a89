"""The compiled half of the checker: one interleaving of a launch, in which every queue keeps a vector clock.

A *thread* is a queue of a core, or its sequencer: core · ENGINES + engine. Entry number n of a thread has tick n;
`clocks[t, u]` is the last tick of u that has ended, in every interleaving, before the present entry of t starts. An
access is compared with the last write and the last reads of each granule that it touches. What is ordered does not
depend on the interleaving walked; only a counter with several signallers needs care (`Signals`).
"""

import numpy as np

from . import isa
from .checker_world import (
    RING,
    SLOTS,
    W_ASKED,
    W_AT,
    W_BASES,
    W_BEGUN,
    W_BLOCK_SIZE,
    W_BLOCKS,
    W_CLOCKS,
    W_CORES,
    W_CURSOR,
    W_DEPTH,
    W_FINDINGS,
    W_FIRST,
    W_FLAT_HEAD,
    W_GIVEN,
    W_GIVES,
    W_GM,
    W_GM_SIZE,
    W_GRANTED,
    W_INITIAL,
    W_ISSUED,
    W_JOINED,
    W_KINDS,
    W_LENGTHS,
    W_LOOSE,
    W_MODIFIERS,
    W_QUEUES,
    W_RINGS,
    W_ROWS,
    W_SIGNAL_CLOCKS,
    W_SIGNAL_FIRST,
    W_SIGNALLERS,
    W_SIGNALS,
    W_STARTED,
    W_TAKEN,
    W_TAKES,
    W_THREAD_ROWS,
    W_TICKS,
    W_TOKEN_CLOCKS,
    W_TOKEN_NUMBER,
    W_TRIPS,
    W_VARIABLES,
    Signals,
    item,
    put,
    vector,
)
from .expr import LEVELS, RINGS, VARIABLES
from .footprint import ENGINES
from .generator import FIELDS, NOOP, OPCODE, QUEUE, ROW, WIDTH, expand
from .jit import inline, jit, kernel
from .numerics.bits import load_i64, load_u8, store_i8, store_i32, store_i64
from .shadow import touch_all

_SET, _WAIT, _GRANT, _SIGNAL, _AWAIT = (isa.OPCODE[name] for name in ("set", "wait", "grant", "signal", "await"))
_IDS, _LIMIT = isa.TOKEN_IDS, isa.TOKEN_LIMIT


@kernel
def walk(world: int) -> None:
    """Runs all cores until nothing can go on, or a token overflows."""
    cores = load_i64(world, W_CORES)
    moved = 1
    while moved:
        moved = 0
        for c in range(cores):
            moved |= _sequence(world, c)
            running = 1
            while running:
                running = 0
                for e in range(1, ENGINES):
                    done = _execute(world, c, e)
                    if done < 0:
                        return
                    running |= done
                moved |= running


@inline
def _entry(world, c, e, number):  # type: ignore[no-untyped-def]
    """The address of an entry of a queue."""
    return load_i64(world, W_QUEUES) + ((c * ENGINES + e) * SLOTS + (number & (SLOTS - 1))) * 8 * (WIDTH + 1)


@inline
def _execute(world, c, e):  # type: ignore[no-untyped-def]
    """Executes what queue e can: 1 if that was anything, or -1 after an overflow."""
    t, done = c * ENGINES + e, 0
    begun = item(world, W_BEGUN, t)
    clock = vector(world, W_CLOCKS, t)
    while begun < item(world, W_ISSUED, t):
        record = _entry(world, c, e, begun)
        status = _synchronise(world, record, clock, t, c)
        if status < 0:
            return -1
        if status == 0:
            break
        _tick(world, t, load_i64(record, ROW))
        store_i64(clock, c * ENGINES, max(load_i64(clock, c * ENGINES), load_i64(record, WIDTH)))
        opcode = load_i64(record, OPCODE)
        if _SET <= opcode <= _AWAIT:
            _give(world, record, clock, t, c)
        elif not load_i64(record, NOOP):
            touch_all(world, record, t)
        begun, done = begun + 1, 1
        put(world, W_BEGUN, t, begun)
    return done


@inline
def _sequence(world, c):  # type: ignore[no-untyped-def]
    """Issues one record, so that entries run in program order as far as they can: 1 if it was possible."""
    at, size = load_i64(world, W_AT) + 24 * c, load_i64(world, W_BLOCK_SIZE)
    block = load_i64(world, W_BLOCKS) + c * size * 8 * WIDTH
    if load_i64(at, 0) == load_i64(at, 1) and not load_i64(at, 2):
        count = _generate(world, c, block, size)
        store_i64(at, 0, count)
        store_i64(at, 1, 0)
        store_i64(at, 2, 1 if count == 0 else 0)
    if load_i64(at, 2):
        return 0
    record, sequencer = block + load_i64(at, 1) * 8 * WIDTH, c * ENGINES
    e = load_i64(record, QUEUE)
    if e < 0:
        _tick(world, sequencer, load_i64(record, ROW))
        touch_all(world, record, sequencer)
    else:
        issued = item(world, W_ISSUED, sequencer + e)
        if issued - item(world, W_BEGUN, sequencer + e) >= load_i64(world, W_DEPTH):
            return 0
        entry = _entry(world, c, e, issued)
        for word in range(WIDTH):
            store_i64(entry, word, load_i64(record, word))
        store_i64(entry, WIDTH, item(world, W_TICKS, sequencer))
        put(world, W_ISSUED, sequencer + e, issued + 1)
    store_i64(at, 1, load_i64(at, 1) + 1)
    return 1


@inline
def _generate(world, c, block, size):  # type: ignore[no-untyped-def]
    """The next records of a core; their number."""
    program = load_i64(world, W_FLAT_HEAD), load_i64(world, W_BASES), load_i64(world, W_MODIFIERS)
    variables, rings = load_i64(world, W_VARIABLES) + 8 * c * len(VARIABLES), load_i64(world, W_RINGS) + 8 * c * RINGS
    trips, cursor = load_i64(world, W_TRIPS) + 8 * c * LEVELS, load_i64(world, W_CURSOR) + 8 * c * 4
    state = variables, rings, trips, cursor
    return expand(
        *program, load_i64(world, W_ROWS), *state, load_i64(world, W_GM), load_i64(world, W_GM_SIZE), block, size
    )


@inline
def _tick(world, t, row):  # type: ignore[no-untyped-def]
    """The next entry of a thread."""
    tick = item(world, W_TICKS, t)
    at = item(world, W_FIRST, t) + tick - item(world, W_STARTED, t)
    store_i32(load_i64(world, W_THREAD_ROWS), at, row)
    put(world, W_TICKS, t, tick + 1)
    store_i64(vector(world, W_CLOCKS, t), t, tick + 1)


@inline
def _join(clock, other, length):  # type: ignore[no-untyped-def]
    """The later of each two ticks."""
    for u in range(length):
        store_i64(clock, u, max(load_i64(clock, u), load_i64(other, u)))


@inline
def _token(world, record, c):  # type: ignore[no-untyped-def]
    """The place of a token in the arrays of tokens."""
    pair = load_i64(record, FIELDS) * ENGINES + load_i64(record, FIELDS + 1)
    kind = item(world, W_TOKEN_NUMBER, pair) * _IDS + load_i64(record, FIELDS + 2)
    return c * load_i64(world, W_KINDS) + kind


@inline
def _synchronise(world, record, clock, t, c):  # type: ignore[no-untyped-def]
    """What an entry has to wait for: 0, not there yet; 1, there, and its clock taken over; -1, an overflow."""
    opcode = load_i64(record, OPCODE)
    if opcode < _SET or opcode > _AWAIT or opcode == _SIGNAL:
        return 1
    length = load_i64(world, W_CORES) * ENGINES
    if opcode == _AWAIT:
        counter = load_i64(record, FIELDS + 1)
        value = load_i64(record, FIELDS + 2) - item(world, W_INITIAL, counter)
        if value > item(world, W_SIGNALS, counter):
            return 0
        if value > 0:
            follow(world, clock, counter, value)
        return 1
    k = _token(world, record, c)
    given, taken, granted = item(world, W_GIVEN, k), item(world, W_TAKEN, k), item(world, W_GRANTED, k)
    if opcode == _WAIT:
        if taken - granted >= given:
            return 0
        if taken >= granted:
            _join(clock, vector(world, W_TOKEN_CLOCKS, k * RING + ((taken - granted) & (RING - 1))), length)
        return 1
    more = 1 if opcode == _SET else load_i64(record, FIELDS + 3)
    if given + granted - taken + more <= _LIMIT:
        return 1
    store_i64(load_i64(world, W_FINDINGS), 2, 1 + load_i64(record, ROW))
    store_i64(load_i64(world, W_FINDINGS), 3, t)
    return -1


@kernel
def follow(world: int, clock: int, counter: int, value: int) -> None:
    """Joins the clocks of the signals that an await of `value` follows."""
    first, length = item(world, W_SIGNAL_FIRST, counter), load_i64(world, W_CORES) * ENGINES
    store_i8(load_i64(world, W_ASKED), first + value - 1, 1)
    if not load_u8(load_i64(world, W_LOOSE), counter):
        _join(clock, vector(world, W_JOINED, first + value - 1), length)
        return
    total = item(world, W_SIGNAL_FIRST, counter + 1) - first
    for i in range(item(world, W_SIGNALS, counter)):
        rank, others = 0, total
        for j in range(total):
            if item(world, W_SIGNALLERS, first + j) == item(world, W_SIGNALLERS, first + i):
                rank += 1 if j <= i else 0
                others -= 1
        if rank <= value - others:
            _join(clock, vector(world, W_SIGNAL_CLOCKS, first + i), length)


@inline
def _copy(clock, to, length):  # type: ignore[no-untyped-def]
    for u in range(length):
        store_i64(to, u, load_i64(clock, u))


@inline
def _give(world, record, clock, t, c):  # type: ignore[no-untyped-def]
    """What a set, wait, grant or signal changes."""
    opcode, length = load_i64(record, OPCODE), load_i64(world, W_CORES) * ENGINES
    if opcode == _AWAIT:
        return
    if opcode == _SIGNAL:
        counter = load_i64(record, FIELDS + 1)
        count = item(world, W_SIGNALS, counter)
        at = item(world, W_SIGNAL_FIRST, counter) + count
        _copy(clock, vector(world, W_SIGNAL_CLOCKS, at), length)
        _copy(clock, vector(world, W_JOINED, at), length)
        if count:
            _join(vector(world, W_JOINED, at), vector(world, W_JOINED, at - 1), length)
        put(world, W_SIGNALLERS, at, t)
        put(world, W_SIGNALS, counter, count + 1)
        return
    k, kinds, tick = _token(world, record, c), load_i64(world, W_KINDS), load_i64(clock, t)
    if opcode == _SET:
        given = item(world, W_GIVEN, k)
        _copy(clock, vector(world, W_TOKEN_CLOCKS, k * RING + (given & (RING - 1))), length)
        put(world, W_GIVEN, k, given + 1)
        met = load_i64(clock, c * ENGINES + load_i64(record, FIELDS + 1))
        _log(world, W_GIVES, 0, c, k - c * kinds, tick, met)
    else:
        change = -1 if opcode == _WAIT else load_i64(record, FIELDS + 3)
        array = W_TAKEN if opcode == _WAIT else W_GRANTED
        put(world, array, k, item(world, array, k) + abs(change))
        _log(world, W_TAKES, 1, c, k - c * kinds, tick, change)


@inline
def _log(world, array, which, c, k, tick, value):  # type: ignore[no-untyped-def]
    """Appends a give or a take."""
    length = item(world, W_LENGTHS, which)
    at = load_i64(world, array) + 32 * length
    store_i64(at, 0, c)
    store_i64(at, 1, k)
    store_i64(at, 2, tick)
    store_i64(at, 3, value)
    put(world, W_LENGTHS, which, length + 1)


@jit
def is_firm(signals: Signals, counter: int) -> bool:
    """Whether the awaits of a counter follow the same signals in every interleaving."""
    first, end = signals.first[counter], signals.first[counter] + signals.counts[counter]
    width = signals.clocks.shape[1]
    least = np.full(width, np.int64(1) << 62)
    for i in range(end - 1, first, -1):
        for u in range(width):
            least[u] = min(least[u], signals.clocks[i, u])
        if signals.asked[i - 1]:
            for j in range(first, i):
                t = signals.threads[j]
                if least[t] < signals.clocks[j, t]:
                    return False
    return True
