"""The compiled loop of `replay.py`: the event loop of docs/timing.md over a nest.

Cores of one class do the same in step, so each class is followed once. A core runs ahead as far as its times are known;
only the ends of transfers, which depend on all cores, are events.

A core is a block of 64-bit words, reached by address, as in `timeline.py`.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .formulas import load_f64, store_f64
from .isa import Engine
from .jit import inline, jit
from .numerics.bits import load_i64, store_i64
from .replay import APART, END, LOOP, NAMED, OP, WAIT, WIDTH

MOST_LOOPS, ENGINES, QUEUE, OUTSTANDING = 12, 7, 64, 16
LOAD, STORE = int(Engine.LOAD), int(Engine.STORE)

# The words of a core. Of the sequencer: its row, the version of the loops' extents, its time; addresses of the values
# of parameters and numbers, of the words of rows, and of tokens.
PLACE, VERSION, CLOCK, VALUES, ROWS, TOKENS = range(6)
LOOPS = 6
"""By loop: where it is, what its step has, and where it ends."""
AT, EXTENT, SIZE = range(3)
ENGINE = LOOPS + 3 * MOST_LOOPS
"""By engine: entries that have started, and entered; when it is free (infinity during a transfer), and how long it has
worked; when its transfer begins (infinity if there is none), and what is left of that."""
HEAD, TAIL, FREE, DONE, BEGIN, LEFT = range(6)
ENTRIES = ENGINE + 6 * ENGINES
"""By entry of a queue: when it entered and started, its row, and the variable part of its cost."""
ENTERED, STARTED, ROW, CHARGE = range(4)
CORE_WORDS = ENTRIES + 4 * ENGINES * QUEUE
# The words of a row: its cost by the extents of a version. Those of a class of tokens: how many were set and waited
# for, and when the last were set.
COST, SEEN = range(2)
GIVEN, TAKEN, WHEN = range(3)
TOKEN_WORDS = WHEN + OUTSTANDING


@lru_cache(maxsize=256)
def cores_of(classes: int, values: int, rows: int, tokens: int) -> NDArray[np.int64]:
    """The words of a core of each class, with room for so many values, rows and classes of tokens. They are used again:
    what a replay leaves in them is of another version than the next."""
    words = np.zeros((classes, CORE_WORDS + values + 2 * rows + TOKEN_WORDS * tokens), np.int64)
    for core in words:
        base = core.ctypes.data + 8 * CORE_WORDS
        core[VALUES], core[ROWS], core[TOKENS] = base, base + 8 * values, base + 8 * (values + 2 * rows)
    return words


@jit
def replay_all(words, rows, granted, table, cores, least, chip, best, budget, out):  # type: ignore[no-untyped-def]
    """Replays row after row of `values` on the cores of `words`; what is left of the budget."""
    (values, numbers), (busy, bounds, handicaps), (depth, sync, share) = table, least, chip
    count, parameters = values.shape[1:]
    addresses = words.ctypes.data + 8 * words.shape[1] * np.arange(count)
    for c in range(len(values)):
        if budget <= 0:
            return budget
        if bounds[c] + handicaps[c] >= best:
            continue
        for g in range(count):
            core = addresses[g]
            _reset(core, granted)
            for n in range(parameters):
                store_f64(load_i64(core, VALUES), n, values[c, g, n])
            for n in range(len(numbers)):
                store_f64(load_i64(core, VALUES), parameters + n, numbers[n])
        limit = best - handicaps[c]
        cycles, taken = _together(addresses, cores[c], busy[c], rows.ctypes.data, len(rows), depth, sync, share, limit)
        out[c] = max(cycles, bounds[c]) + handicaps[c]
        best = min(best, out[c])
        budget -= taken
    return budget


@inline
def _reset(core, granted):  # type: ignore[no-untyped-def]
    """A core before its first row."""
    store_i64(core, PLACE, 0)
    store_i64(core, VERSION, load_i64(core, VERSION) + 1)
    store_f64(core, CLOCK, float(np.count_nonzero(granted)))
    for loop in range(MOST_LOOPS):
        store_f64(core, LOOPS + 3 * loop + EXTENT, 0.0)
    for e in range(ENGINES):
        engine = core + 8 * (ENGINE + 6 * e)
        store_i64(engine, HEAD, 0)
        store_i64(engine, TAIL, 0)
        store_f64(engine, FREE, 0.0)
        store_f64(engine, DONE, 0.0)
        store_f64(engine, BEGIN, np.inf)
    for c in range(len(granted)):
        token = load_i64(core, TOKENS) + 8 * TOKEN_WORDS * c
        store_i64(token, GIVEN, granted[c])
        store_i64(token, TAKEN, 0)
        for n in range(OUTSTANDING):
            store_f64(token, WHEN + n, 0.0)


@inline
def _value(core, index):  # type: ignore[no-untyped-def]
    """A parameter or number."""
    return load_f64(load_i64(core, VALUES), index)


@inline
def _extent(core, row, field):  # type: ignore[no-untyped-def]
    """a·extent + b of a loop, b alone, or a·b; the fields are loop, a, b."""
    value, loop = _value(core, load_i64(row, field + 2)), load_i64(row, field)
    if loop >= 0:
        value += load_f64(core, LOOPS + 3 * loop + EXTENT) * _value(core, load_i64(row, field + 1))
    elif loop == NAMED:
        value *= _value(core, load_i64(row, field + 1))
    return value


@inline
def _cost(core, row):  # type: ignore[no-untyped-def]
    """What grows with the extents; nothing to do is 0."""
    cost = _value(core, load_i64(row, 3))
    for f in range(4, 16, 4):
        if load_i64(row, f) != -1:
            block = _value(core, load_i64(row, f + 3))
            if load_i64(row, f) <= APART:
                extent = load_f64(core, LOOPS + 3 * (APART - load_i64(row, f)) + EXTENT)
                extent *= _value(core, load_i64(row, f + 1))
                if extent != _value(core, load_i64(row, f + 2)):
                    cost *= np.ceil(extent / block) * block / extent
            else:
                factor = _extent(core, row, f)
                cost *= np.ceil(factor / block) if block > 0 else factor
    return cost


@inline
def _charge(core, row, pc):  # type: ignore[no-untyped-def]
    """The cost of a row, computed anew when an extent has changed."""
    known, version = load_i64(core, ROWS) + 16 * pc, load_i64(core, VERSION)
    if load_i64(known, SEEN) != version:
        store_f64(known, COST, _cost(core, row))
        store_i64(known, SEEN, version)
    return load_f64(known, COST)


@inline
def _turn(core, rows, pc):  # type: ignore[no-untyped-def]
    """Where a row of a loop leads."""
    row = rows + 8 * WIDTH * pc
    loop = core + 8 * (LOOPS + 3 * load_i64(row, 1))
    if load_i64(row, 0) == LOOP:
        begin, out, at, size = pc, load_i64(row, 7), 0.0, _value(core, load_i64(row, 2))
        step = _value(core, load_i64(row, 3))
        if load_i64(row, 4) != -1:
            size = min(size, _extent(core, row, 4))
        store_f64(loop, SIZE, size)
    else:
        begin, out, size = load_i64(row, 2), pc, load_f64(loop, SIZE)
        step = _value(core, load_i64(rows + 8 * WIDTH * begin, 3))
        at = load_f64(loop, AT) + step
    store_f64(loop, AT, at)
    if at >= size:
        return out
    extent = min(step, size - at)
    if load_f64(loop, EXTENT) != extent:
        store_f64(loop, EXTENT, extent)
        store_i64(core, VERSION, load_i64(core, VERSION) + 1)
    return begin


@inline
def _issue(core, rows, count, depth):  # type: ignore[no-untyped-def]
    """The sequencer goes on until a queue is full; how many rows it passed."""
    pc, clock, steps = load_i64(core, PLACE), load_f64(core, CLOCK), 0
    while pc < count:
        row = rows + 8 * WIDTH * pc
        kind, e = load_i64(row, 0), load_i64(row, 1)
        if kind <= END:
            pc = _turn(core, rows, pc)
            clock += 1
        else:
            engine = core + 8 * (ENGINE + 6 * e)
            entries, n = core + 8 * (ENTRIES + 4 * QUEUE * e), load_i64(engine, TAIL)
            if n - depth >= load_i64(engine, HEAD):
                break
            clock += 1
            if n >= depth:
                clock = max(clock, load_f64(entries + 32 * ((n - depth) & (QUEUE - 1)), STARTED))
            entry = entries + 32 * (n & (QUEUE - 1))
            if kind == OP:
                store_f64(entry, CHARGE, _charge(core, row, pc))
            store_f64(entry, ENTERED, clock)
            store_i64(entry, ROW, row)
            store_i64(engine, TAIL, n + 1)
        steps += 1
        pc += 1
    store_i64(core, PLACE, pc)
    store_f64(core, CLOCK, clock)
    return steps


@inline
def _drive(core, e, sync):  # type: ignore[no-untyped-def]
    """An engine takes entries until one waits for what is not known yet, or transfers; whether it took any."""
    engine, entries = core + 8 * (ENGINE + 6 * e), core + 8 * (ENTRIES + 4 * QUEUE * e)
    first, tail, free = load_i64(engine, HEAD), load_i64(engine, TAIL), load_f64(engine, FREE)
    head = first
    while head < tail and free < np.inf:
        entry = entries + 32 * (head & (QUEUE - 1))
        row = load_i64(entry, ROW)
        kind, c = load_i64(row, 0), load_i64(row, 2)
        start = max(free, load_f64(entry, ENTERED))
        if kind == OP:
            fixed, cost = _value(core, c), load_f64(entry, CHARGE)
            store_f64(engine, DONE, load_f64(engine, DONE) + fixed + cost)
            free = start + fixed + cost if cost > 0 else start + 1
            if cost > 0 and e in (LOAD, STORE):
                store_f64(engine, BEGIN, start + fixed)
                store_f64(engine, LEFT, cost)
                free = np.inf
        else:
            token = load_i64(core, TOKENS) + 8 * TOKEN_WORDS * c
            given, taken = load_i64(token, GIVEN), load_i64(token, TAKEN)
            if kind == WAIT:
                if taken >= given:
                    break
                start = max(start, load_f64(token, WHEN + (taken & (OUTSTANDING - 1))))
                store_i64(token, TAKEN, taken + 1)
            else:
                store_f64(token, WHEN + (given & (OUTSTANDING - 1)), start + sync)
                store_i64(token, GIVEN, given + 1)
            free = start + sync
        store_f64(entry, STARTED, start)
        head += 1
    store_i64(engine, HEAD, head)
    store_f64(engine, FREE, free)
    return head != first


@inline
def _waits(core, e):  # type: ignore[no-untyped-def]
    """Whether an engine has entries and may take them."""
    engine = core + 8 * (ENGINE + 6 * e)
    return load_i64(engine, HEAD) < load_i64(engine, TAIL) and load_f64(engine, FREE) < np.inf


@jit
def _ahead(core, rows, count, depth, sync):  # type: ignore[no-untyped-def]
    """A core goes on as far as its times are known; how many rows its sequencer passed."""
    steps, moved = 0, True
    while moved:
        steps += _issue(core, rows, count, depth)
        moved = False
        for e in range(ENGINES):
            if _waits(core, e):
                moved |= _drive(core, e, sync)
    return steps


@inline
def _least(core, busy):  # type: ignore[no-untyped-def]
    """When a core ends at the earliest."""
    least = 0.0
    for e in range(ENGINES):
        engine = core + 8 * (ENGINE + 6 * e)
        free = load_f64(engine, FREE)
        if free == np.inf:
            free = load_f64(engine, BEGIN) + load_f64(engine, LEFT)
        least = max(least, free + max(0.0, busy[e] - load_f64(engine, DONE)))
    return least


@inline
def _next(addresses, cores, now, share):  # type: ignore[no-untyped-def]
    """The rate of transfers, and when the next begins or ends."""
    active, event, least = 0.0, np.inf, np.inf
    for g in range(len(cores)):
        for e in (LOAD, STORE):
            engine = addresses[g] + 8 * (ENGINE + 6 * e)
            begin = load_f64(engine, BEGIN)
            if begin <= now:
                active, least = active + cores[g], min(least, load_f64(engine, LEFT))
            else:
                event = min(event, begin)
    rate = min(1.0, share / active) if active > 0 else 1.0
    return rate, min(event, now + least / rate)


@inline
def _move(core, before, now, moved):  # type: ignore[no-untyped-def]
    """Transfers of a core go on; whether one ended."""
    ended = False
    for e in (LOAD, STORE):
        engine = core + 8 * (ENGINE + 6 * e)
        if load_f64(engine, BEGIN) <= before:
            left = load_f64(engine, LEFT) - moved
            store_f64(engine, LEFT, left)
            if left <= 1e-9 * now:
                store_f64(engine, BEGIN, np.inf)
                store_f64(engine, FREE, now)
                ended = True
    return ended


@jit
def _together(addresses, cores, busy, rows, count, depth, sync, share, limit):  # type: ignore[no-untyped-def]
    """Cycles of all cores, infinity if they are more than `limit`, and the rows that were passed. `share`: the port's
    rate over that of a core's path."""
    now, steps = 0.0, 0
    for g in range(len(cores)):
        if cores[g] > 0:
            steps += _ahead(addresses[g], rows, count, depth, sync)
    while True:
        before = now
        rate, now = _next(addresses, cores, before, share)
        if now == np.inf:
            break
        for g in range(len(cores)):
            if _move(addresses[g], before, now, (now - before) * rate):
                steps += _ahead(addresses[g], rows, count, depth, sync)
                if g == 0 and _least(addresses[0], busy) > limit:
                    return np.inf, steps
    last = 0.0
    for g in range(len(cores)):
        if cores[g] > 0:
            last = max(last, load_f64(addresses[g], CLOCK))
            for e in range(ENGINES):
                last = max(last, load_f64(addresses[g], ENGINE + 6 * e + FREE))
    return last, steps
