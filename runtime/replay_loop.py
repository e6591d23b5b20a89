"""The compiled loop of `replay.py`."""

import numpy as np

from .isa import Engine
from .jit import inline, jit
from .replay import END, FACTORS, LOOP, READS, WIDTH, WRITES

MOST_BUFFERS, MOST_SLOTS, MOST_LOOPS, ENGINES = 32, 8, 12, 7
LOAD, STORE = int(Engine.LOAD), int(Engine.STORE)


@jit
def replay_all(rows, scope, values, bounds, handicaps, depth, best, budget, out):  # type: ignore[no-untyped-def]
    """Replays row after row of `values`; what is left of the budget."""
    for c in range(len(values)):
        if budget <= 0:
            return budget
        if bounds[c] + handicaps[c] >= best:
            continue
        cycles, taken = _one(rows, scope, values[c], depth, best - handicaps[c])
        out[c] = max(cycles, bounds[c]) + handicaps[c]
        best = min(best, out[c])
        budget -= taken
    return budget


@inline
def _turn(row, step, scope, v, at, size, extent, ring, slot):  # type: ignore[no-untyped-def]
    """Begins an iteration: how much of the loop is left, and the slots of its buffers."""
    d = row[1]
    extent[d] = min(step, size[d] - at[d])
    for b in range(len(scope)):
        if scope[b, 0] == d:
            slot[b] = ring[d] % np.int64(v[scope[b, 1]])


@inline
def _cost(row, v, extent):  # type: ignore[no-untyped-def]
    """Cycles of an operation."""
    cost = v[row[3]]
    for f in range(FACTORS, READS, 4):
        if row[f] != -1:
            factor = v[row[f + 2]] + (extent[row[f]] * v[row[f + 1]] if row[f] >= 0 else 0.0)
            g = v[row[f + 3]]
            cost *= np.ceil(factor / g) if g > 0 else factor
    return cost + v[row[2]]


@inline
def _free(row, start, ready, used, slot):  # type: ignore[no-untyped-def]
    """When the buffers of an operation are free for it, and how many it has."""
    count = 0
    for f in range(READS, WIDTH):
        b = row[f]
        if b >= 0:
            start = max(start, ready[b, slot[b]])
            count += 1
            if f >= WRITES:
                start = max(start, used[b, slot[b]])
    return start, count


@inline
def _mark(row, end, ready, used, slot):  # type: ignore[no-untyped-def]
    """What an operation read is used, and what it wrote is ready, at its end."""
    for f in range(READS, WIDTH):
        b = row[f]
        if b >= 0 and f < WRITES:
            used[b, slot[b]] = max(end, used[b, slot[b]])
        elif b >= 0:
            ready[b, slot[b]] = end


@jit
def _one(rows, scope, v, depth, limit):  # type: ignore[no-untyped-def]
    """Cycles of one row, inf if they exceed the limit; and the steps that were taken."""
    free, starts, entries = np.zeros(ENGINES), np.zeros((ENGINES, 64)), np.zeros(ENGINES, np.int64)
    at, size, extent, ring = (
        np.zeros(MOST_LOOPS),
        np.zeros(MOST_LOOPS),
        np.zeros(MOST_LOOPS),
        np.zeros(MOST_LOOPS, np.int64),
    )
    ready, used = np.zeros((MOST_BUFFERS, MOST_SLOTS)), np.zeros((MOST_BUFFERS, MOST_SLOTS))
    slot = np.zeros(MOST_BUFFERS, np.int64)
    deep, clock, port, pc, steps = max(1, depth // 3), 0.0, 0.0, 0, 0
    while pc < len(rows):
        row, steps = rows[pc], steps + 1
        pc += 1
        if row[0] == LOOP:
            d, whole = row[1], v[row[2]]
            if row[4] != -1:
                whole = min(whole, v[row[6]] + (extent[row[4]] * v[row[5]] if row[4] >= 0 else 0.0))
            size[d], at[d], clock = whole, 0.0, clock + 1
            _turn(row, v[row[3]], scope, v, at, size, extent, ring, slot)
            if whole <= 0:
                pc = row[7] + 1
        elif row[0] == END:
            d, step = row[1], v[rows[row[2], 3]]
            at[d], ring[d], clock = at[d] + step, ring[d] + 1, clock + 1
            if at[d] < size[d]:
                _turn(row, step, scope, v, at, size, extent, ring, slot)
                pc = row[2] + 1
        else:
            e, cost, fixed = row[1], _cost(row, v, extent), v[row[2]]
            if cost <= 0:
                continue
            n = entries[e]
            clock = max(clock + 3, starts[e, (n - deep) & 63] if n >= deep else 0.0)
            start, buffers = _free(row, max(free[e], clock), ready, used, slot)
            end = start + cost + 2 * buffers
            if e in (LOAD, STORE):
                port += cost - fixed
                end = max(end, fixed + port)
            starts[e, n & 63], entries[e], free[e] = start, n + 1, end
            if end > limit:
                return np.inf, steps
            _mark(row, end, ready, used, slot)
    return max(clock, free.max()), steps
