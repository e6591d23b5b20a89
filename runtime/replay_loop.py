"""The compiled loop of `replay.py`: the event loop of docs/timing.md over a nest.

Cores of one class do the same in step, so each class is followed once. A core runs ahead as far as its times are known;
only the ends of transfers, which depend on all cores, are events.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .isa import Engine
from .jit import inline, jit
from .replay import END, LOOP, OP, SET, WAIT

MOST_LOOPS, ENGINES, QUEUE, OUTSTANDING = 12, 7, 64, 16
LOAD, STORE = int(Engine.LOAD), int(Engine.STORE)
Reals: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


class State(NamedTuple):
    """All cores, by class first."""

    values: Reals
    """[class, parameters and numbers]."""
    at: Reals
    extent: Reals
    size: Reals
    """By loop: where it is, what its step has, and to where it goes."""
    cost: Reals
    seen: Integers
    """By row: what it costs by extents of this version, `at_row[:, VERSION]`."""
    place: Integers
    """The row of the sequencer, and the version of its extents."""
    clock: Reals
    """Of the sequencer."""
    entered: Reals
    started: Reals
    entry: Integers
    """Of the entries of a queue [class, engine, QUEUE]: when they entered and started, and their rows."""
    charge: Reals
    """What an entry costs."""
    ends: Integers
    """[class, engine, 2]: entries that have started, and that have entered."""
    free: Reals
    done: Reals
    """By engine: when it is free, and how long it has worked."""
    given: Integers
    taken: Integers
    when: Reals
    """By class of tokens: how many were set and waited for, and when they were set."""
    begin: Reals
    left: Reals
    """By engine: when its transfer begins, infinity if it has none, and what is left of that."""


PLACE, VERSION = range(2)
HEAD, TAIL = range(2)


@jit
def replay_all(  # type: ignore[no-untyped-def]
    rows, granted, values, numbers, cores, busy, bounds, handicaps, depth, sync, share, best, budget, out
):
    """Replays row after row of `values`; what is left of the budget."""
    count, parameters = values.shape[1:]
    s = _state(count, len(rows), len(granted), parameters + len(numbers))
    for c in range(len(values)):
        if budget <= 0:
            return budget
        if bounds[c] + handicaps[c] >= best:
            continue
        s.values[:, :parameters], s.values[:, parameters:] = values[c], numbers
        _reset(s, granted)
        cycles, taken = _together(s, rows, cores[c], busy[c], depth, sync, share, best - handicaps[c])
        out[c] = max(cycles, bounds[c]) + handicaps[c]
        best = min(best, out[c])
        budget -= taken
    return budget


@inline
def _state(classes, rows, tokens, values):  # type: ignore[no-untyped-def]
    loops, engines, queues = (classes, MOST_LOOPS), (classes, ENGINES), (classes, ENGINES, QUEUE)
    return State(
        np.zeros((classes, values)),
        np.zeros(loops),
        np.zeros(loops),
        np.zeros(loops),
        np.zeros((classes, rows)),
        np.zeros((classes, rows), np.int64),
        np.zeros((classes, 2), np.int64),
        np.zeros(classes),
        np.zeros(queues),
        np.zeros(queues),
        np.zeros(queues, np.int64),
        np.zeros(queues),
        np.zeros((classes, ENGINES, 2), np.int64),
        np.zeros(engines),
        np.zeros(engines),
        np.zeros((classes, tokens), np.int64),
        np.zeros((classes, tokens), np.int64),
        np.zeros((classes, tokens, OUTSTANDING)),
        np.zeros(engines),
        np.zeros(engines),
    )


@inline
def _reset(s, granted):  # type: ignore[no-untyped-def]
    s.place[:, PLACE] = 0
    s.place[:, VERSION] += 1
    s.clock[:] = np.count_nonzero(granted)
    s.extent[:] = 0
    s.ends[:] = 0
    s.free[:] = 0
    s.done[:] = 0
    s.given[:] = granted
    s.taken[:] = 0
    s.when[:] = 0
    s.begin[:] = np.inf


@inline
def _extent(s, g, rows, pc, field):  # type: ignore[no-untyped-def]
    """a·extent + b of a loop, or b alone; the fields are loop, a, b."""
    value = s.values[g, rows[pc, field + 2]]
    if rows[pc, field] >= 0:
        value += s.extent[g, rows[pc, field]] * s.values[g, rows[pc, field + 1]]
    return value


@inline
def _cost(s, g, rows, pc):  # type: ignore[no-untyped-def]
    """What grows with the extents; nothing to do is 0."""
    cost = s.values[g, rows[pc, 3]]
    for f in range(4, 16, 4):
        if rows[pc, f] != -1:
            factor, block = _extent(s, g, rows, pc, f), s.values[g, rows[pc, f + 3]]
            cost *= np.ceil(factor / block) if block > 0 else factor
    return cost


@inline
def _turn(s, g, rows, pc):  # type: ignore[no-untyped-def]
    """Where a row of a loop leads."""
    loop = rows[pc, 1]
    if rows[pc, 0] == LOOP:
        s.size[g, loop], s.at[g, loop] = s.values[g, rows[pc, 2]], 0.0
        if rows[pc, 4] != -1:
            s.size[g, loop] = min(s.size[g, loop], _extent(s, g, rows, pc, 4))
        begin, out = pc, rows[pc, 7]
    else:
        begin, out = rows[pc, 2], pc
        s.at[g, loop] += s.values[g, rows[begin, 3]]
    if s.at[g, loop] >= s.size[g, loop]:
        return out
    was, s.extent[g, loop] = s.extent[g, loop], min(s.values[g, rows[begin, 3]], s.size[g, loop] - s.at[g, loop])
    s.place[g, VERSION] += was != s.extent[g, loop]
    return begin


@inline
def _issue(s, g, rows, depth):  # type: ignore[no-untyped-def]
    """The sequencer goes on until a queue is full; how many rows it passed."""
    pc, clock, steps = s.place[g, PLACE], s.clock[g], 0
    while pc < len(rows):
        if rows[pc, 0] <= END:
            clock += 1
            pc = _turn(s, g, rows, pc)
        else:
            e = rows[pc, 1]
            n = s.ends[g, e, TAIL]
            clock += 1
            if n >= depth:
                if n - depth >= s.ends[g, e, HEAD]:
                    clock -= 1
                    break
                clock = max(clock, s.started[g, e, (n - depth) & (QUEUE - 1)])
            if rows[pc, 0] == OP:
                if s.seen[g, pc] != s.place[g, VERSION]:
                    s.cost[g, pc], s.seen[g, pc] = _cost(s, g, rows, pc), s.place[g, VERSION]
                s.charge[g, e, n & (QUEUE - 1)] = s.cost[g, pc]
            s.entered[g, e, n & (QUEUE - 1)], s.entry[g, e, n & (QUEUE - 1)] = clock, pc
            s.ends[g, e, TAIL] = n + 1
        steps += 1
        pc += 1
    s.place[g, PLACE], s.clock[g] = pc, clock
    return steps


@inline
def _drive(s, g, e, rows, sync):  # type: ignore[no-untyped-def]
    """An engine takes entries until one waits for what is not known yet, or transfers."""
    head, free = s.ends[g, e, HEAD], s.free[g, e]
    while head < s.ends[g, e, TAIL] and free < np.inf:
        n = head & (QUEUE - 1)
        pc = s.entry[g, e, n]
        kind, c = rows[pc, 0], rows[pc, 2]
        start = max(free, s.entered[g, e, n])
        if kind == WAIT:
            if s.taken[g, c] >= s.given[g, c]:
                break
            start = max(start, s.when[g, c, s.taken[g, c] & (OUTSTANDING - 1)])
            s.taken[g, c] += 1
            free = start + sync
        elif kind == SET:
            free = start + sync
            s.when[g, c, s.given[g, c] & (OUTSTANDING - 1)] = free
            s.given[g, c] += 1
        else:
            fixed, cost = s.values[g, c], s.charge[g, e, n]
            s.done[g, e] += fixed + cost
            if cost <= 0:
                free = start + 1
            elif e == LOAD or e == STORE:
                s.begin[g, e], s.left[g, e] = start + fixed, cost
                free = np.inf
            else:
                free = start + fixed + cost
        s.started[g, e, n] = start
        head += 1
    moved = head != s.ends[g, e, HEAD]
    s.ends[g, e, HEAD], s.free[g, e] = head, free
    return moved


@inline
def _ahead(s, g, rows, depth, sync):  # type: ignore[no-untyped-def]
    """A core goes on as far as its times are known; how many rows its sequencer passed."""
    steps, moved = 0, True
    while moved:
        steps += _issue(s, g, rows, depth)
        moved = False
        for e in range(ENGINES):
            if s.ends[g, e, HEAD] < s.ends[g, e, TAIL] and s.free[g, e] < np.inf:
                moved |= _drive(s, g, e, rows, sync)
    return steps


@inline
def _least(s, busy):  # type: ignore[no-untyped-def]
    """When the first class ends at the earliest."""
    least = 0.0
    for e in range(ENGINES):
        free = s.begin[0, e] + s.left[0, e] if s.free[0, e] == np.inf else s.free[0, e]
        least = max(least, free + max(0.0, busy[e] - s.done[0, e]))
    return least


@jit
def _together(s, rows, cores, busy, depth, sync, share, limit):  # type: ignore[no-untyped-def]
    """Cycles of all cores, infinity if they are more than `limit`, and the rows that were passed. `share`: the port's
    rate over that of a core's path."""
    now, steps = 0.0, 0
    for g in range(len(cores)):
        if cores[g] > 0:
            steps += _ahead(s, g, rows, depth, sync)
    while True:
        under_way, event = 0.0, np.inf
        for g in range(len(cores)):
            for e in (LOAD, STORE):
                if s.begin[g, e] <= now:
                    under_way += cores[g]
                else:
                    event = min(event, s.begin[g, e])
        rate = min(1.0, share / under_way) if under_way > 0 else 1.0
        for g in range(len(cores)):
            for e in (LOAD, STORE):
                if s.begin[g, e] <= now:
                    event = min(event, now + s.left[g, e] / rate)
        if event == np.inf:
            break
        passed, now, first = event - now, event, False
        for g in range(len(cores)):
            ended = False
            for e in (LOAD, STORE):
                if s.begin[g, e] < now:
                    s.left[g, e] -= passed * rate
                    if s.left[g, e] <= 1e-9 * now:
                        s.begin[g, e], s.free[g, e], ended = np.inf, now, True
            if ended:
                steps += _ahead(s, g, rows, depth, sync)
                first |= g == 0
        if first and _least(s, busy) > limit:
            return np.inf, steps
    for g in range(len(cores)):
        if cores[g] > 0:
            now = max(now, s.clock[g], s.free[g].max())
    return now, steps
