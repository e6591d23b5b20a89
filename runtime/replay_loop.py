"""The compiled loop of `replay.py`."""

import numpy as np

from .isa import Engine
from .jit import inline, jit
from .replay import END, LOOP, SET, WAIT

MOST_LOOPS, ENGINES, QUEUE, OUTSTANDING = 12, 7, 64, 16
LAST = 4
"""Transfers of an engine that another one may still overlap."""
LOAD, STORE = int(Engine.LOAD), int(Engine.STORE)


@jit
def replay_all(rows, granted, values, busy, bounds, handicaps, depth, sync, best, budget, out):  # type: ignore[no-untyped-def]
    """Replays row after row of `values`; what is left of the budget."""
    for c in range(len(values)):
        if budget <= 0:
            return budget
        if bounds[c] + handicaps[c] >= best:
            continue
        cycles, taken = _one(rows, granted, values[c], busy[c], depth, sync, best - handicaps[c])
        out[c] = max(cycles, bounds[c]) + handicaps[c]
        best = min(best, out[c])
        budget -= taken
    return budget


@inline
def _extent(rows, pc, field, extent, v):  # type: ignore[no-untyped-def]
    """a·extent + b of a loop, or b alone; the fields are loop, a, b."""
    value = v[rows[pc, field + 2]]
    if rows[pc, field] >= 0:
        value += extent[rows[pc, field]] * v[rows[pc, field + 1]]
    return value


@inline
def _cost(rows, pc, extent, v):  # type: ignore[no-untyped-def]
    """What grows with the extents; nothing to do is 0."""
    cost = v[rows[pc, 3]]
    for f in range(4, 16, 4):
        if rows[pc, f] != -1:
            factor, g = _extent(rows, pc, f, extent, v), v[rows[pc, f + 3]]
            cost *= np.ceil(factor / g) if g > 0 else factor
    return cost


@inline
def _moved(begin, cost, crowd, last, moves, of, free):  # type: ignore[no-untyped-def]
    """When a transfer ends that shares the port with the last ones of an engine, which it delays as well.

    A row of `last`: begin, end, and how long the engine did something else before it."""
    now, left, late = begin, cost, 0.0
    for n in range(max(0, moves[of] - LAST), moves[of]):
        move = n & (LAST - 1)
        last[of, move, 2], late = max(0.0, last[of, move, 2] - late), max(0.0, late - last[of, move, 2])
        since, until = last[of, move, 0] + late, last[of, move, 1] + late
        alone = min(left, max(0.0, since - now))
        both = min(left - alone, until - max(now, since)) if until > now else 0.0
        if both > 0:
            now, left = max(now, since) + both * (1 + crowd), left - alone - both
            until, late = until + both * crowd, late + both * crowd
        last[of, move, 0], last[of, move, 1] = since, until
    free[of] += late
    return now + left


@inline
def _turn(rows, pc, at, extent, size, v):  # type: ignore[no-untyped-def]
    """Where a row of a loop leads, and whether the loop's extent has changed."""
    loop = rows[pc, 1]
    if rows[pc, 0] == LOOP:
        size[loop], at[loop] = v[rows[pc, 2]], 0.0
        if rows[pc, 4] != -1:
            size[loop] = min(size[loop], _extent(rows, pc, 4, extent, v))
        begin, out = pc, rows[pc, 7]
    else:
        begin, out = rows[pc, 2], pc
        at[loop] += v[rows[begin, 3]]
    if at[loop] >= size[loop]:
        return out, False
    was, extent[loop] = extent[loop], min(v[rows[begin, 3]], size[loop] - at[loop])
    return begin, was != extent[loop]


@jit
def _one(rows, granted, v, busy, depth, sync, limit):  # type: ignore[no-untyped-def]
    at, extent, size = np.zeros(MOST_LOOPS), np.zeros(MOST_LOOPS), np.zeros(MOST_LOOPS)
    cost, seen, version = np.zeros(len(rows)), np.zeros(len(rows), np.int64), 1
    free, done = np.zeros(ENGINES), np.zeros(ENGINES)
    starts, entries = np.zeros((ENGINES, QUEUE)), np.zeros(ENGINES, np.int64)
    last, moves = np.zeros((ENGINES, LAST, 3)), np.zeros(ENGINES, np.int64)
    given, taken = granted.copy(), np.zeros(len(granted), np.int64)
    when, mark = np.zeros((len(granted), OUTSTANDING, 2)), np.zeros((len(granted), OUTSTANDING), np.int64)
    clock, pc, steps = float(np.count_nonzero(granted)), 0, 0
    while pc < len(rows):
        kind, e, c = rows[pc, 0], rows[pc, 1], rows[pc, 2]
        steps += 1
        clock += 1
        if kind <= END:
            pc, changed = _turn(rows, pc, at, extent, size, v)
            version += changed
        else:
            n = entries[e]
            if n >= depth:
                clock = max(clock, starts[e, (n - depth) & (QUEUE - 1)])
            start = max(free[e], clock)
            end = start + sync
            if kind == WAIT:
                token, by = taken[c] & (OUTSTANDING - 1), rows[pc, 3]
                taken[c] += 1
                ready, move = when[c, token, 0], mark[c, token]
                if move > max(0, moves[by] - LAST):  # its transfer may have been delayed since
                    ready = max(ready, last[by, (move - 1) & (LAST - 1), 1] + when[c, token, 1])
                start = max(start, ready)
                end = start + sync
            elif kind == SET:
                token = given[c] & (OUTSTANDING - 1)
                given[c] += 1
                when[c, token, 0], when[c, token, 1] = end, end - last[e, (moves[e] - 1) & (LAST - 1), 1]
                mark[c, token] = moves[e]
            else:
                if seen[pc] != version:
                    cost[pc], seen[pc] = _cost(rows, pc, extent, v), version
                begin = start + v[c]
                end = begin + cost[pc] if cost[pc] > 0 else start + 1
                if e in (LOAD, STORE) and cost[pc] > 0:
                    end = _moved(begin, cost[pc], v[rows[pc, 16]], last, moves, LOAD + STORE - e, free)
                    move = moves[e] & (LAST - 1)
                    apart = start - last[e, (move - 1) & (LAST - 1), 1]
                    last[e, move, 0], last[e, move, 1], last[e, move, 2] = begin, end, apart
                    moves[e] += 1
                done[e] += v[c] + cost[pc]
                if end + max(0.0, busy[e] - done[e]) > limit:
                    return np.inf, steps
            starts[e, n & (QUEUE - 1)] = start
            entries[e] = n + 1
            free[e] = end
        pc += 1
    return max(clock, free.max()), steps
