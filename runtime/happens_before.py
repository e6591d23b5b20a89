"""The compiled half of the checker: one interleaving of a launch, in which every queue keeps a vector clock.

A *thread* is a queue of a core, or its sequencer: core · ENGINES + engine. Entry number n of a thread has tick n; `clocks[t, u]` is the last tick of
u that has ended, in every interleaving, before the present entry of t starts. An access is compared with the last write and the last reads of each
granule that it touches.
What is ordered does not depend on the interleaving walked; only a counter with several signallers needs care (`Signals`).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import isa
from .footprint import ENGINES, SPACES, merge_runs
from .formulas import ACCESS, ADDRESS, LENGTH, MOST_RUNS, READS, RUNS, SPACE, WRITES, footprint
from .generator import FIELDS, NOOP, OPCODE, QUEUE, ROW, WIDTH, Flat, State, next_block
from .jit import jit

SLOTS = 64
"""Places of a queue: the greatest depth of a target."""
RING = 16
"""Clocks kept of a token: one more than there may be tokens."""
GM = int(isa.Space.GM)
GM_READERS = (int(isa.Engine.SCALAR), int(isa.Engine.LOAD))
_SET, _WAIT, _GRANT, _SIGNAL, _AWAIT = (isa.OPCODE[name] for name in ("set", "wait", "grant", "signal", "await"))
_IDS, _LIMIT = isa.TOKEN_IDS, isa.TOKEN_LIMIT
_TYPED = np.array([s in (isa.Space.L0A, isa.Space.L0B) for s in isa.Space])
_DTYPE_FIELD = np.array([next((FIELDS + n for n, f in enumerate(i.fields) if f.name == "dtype"), -1) for i in isa.INSTRUCTIONS])
_CLASS = np.array([1 + isa.DTYPES["i8"] if name == "u8" else 1 + code for name, code in isa.DTYPES.items()])
"""What L0A and L0B hold, by dtype: i8 and u8 may stand for each other."""

WRITE_READ, READ_WRITE, WRITE_WRITE, UNWRITTEN, DTYPE, OVERFLOW = range(10, 16)
"""Kinds of findings: (kind, thread and tick before, thread and tick after, space, first byte, end, times seen). For `UNWRITTEN` there is no entry
before; of an `OVERFLOW` only the thread counts, and its row stands for the first byte."""
FINDING_WIDTH = 9


class Shadow(NamedTuple):
    """What is known of each granule of all memories: GM first, then those of each core. `base[core, space]` is the first granule,
    `readers[core, space]` the first of its columns in `read`."""

    shift: NDArray[np.int64]
    base: NDArray[np.int64]
    readers: NDArray[np.int64]
    writer: NDArray[np.int16]
    written: NDArray[np.int32]
    """Tick of the last write."""
    read: NDArray[np.int32]
    """Tick of the last read, for each engine that may read there."""
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

    An await of value v follows the first v of them. That holds for every interleaving if each later signal follows all of the first v
    (`is_firm` checks it afterwards). Counters for which it did not are `loose`: of the signals of a thread an await then follows only as many as
    v minus all that the other threads ever give.
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


@jit
def walk(flat: Flat, gm: NDArray[np.uint8], cores: Cores, threads: Threads, tokens: Tokens, signals: Signals, shadow: Shadow, accesses: NDArray[np.int64],
         depth: int, findings: NDArray[np.int64], count: NDArray[np.int64]) -> None:  # fmt: skip
    """Runs all cores until nothing can go on, or a token overflows the ring of clocks."""
    moved = True
    while moved:
        moved = False
        for c in range(len(cores.issued)):
            moved |= _sequence(flat, gm, cores, c, threads, shadow, accesses, depth, findings, count)
            running = True
            while running:
                running = False
                for e in range(1, ENGINES):
                    done = _execute(cores, c, e, threads, tokens, signals, shadow, accesses, findings, count)
                    if done < 0:
                        return
                    running |= done > 0
                moved |= running


@jit
def _execute(cores, c, e, threads, tokens, signals, shadow, accesses, findings, count):  # type: ignore[no-untyped-def]
    """Executes what queue e can: the number of entries, or -1 after an overflow."""
    queues, begun, t, done = cores.queues, cores.begun, c * ENGINES + e, 0
    while begun[c, e] < cores.issued[c, e]:
        k = begun[c, e] & (SLOTS - 1)
        record = queues[c, e, k]
        status = _synchronise(record, t, c, threads, tokens, signals, findings, count)
        if status <= 0:
            return done if status == 0 else -1
        _tick(threads, t, record[ROW])
        threads.clocks[t, c * ENGINES] = max(threads.clocks[t, c * ENGINES], record[WIDTH])
        if _SET <= record[OPCODE] <= _AWAIT:
            _give(record, t, c, threads, tokens, signals)
        elif not record[NOOP]:
            _touch_all(queues[c, e], k, t, c, threads.clocks, threads.ticks, shadow, accesses, findings, count)
        begun[c, e] += 1
        done += 1
    return done


@jit
def _sequence(flat, gm, cores, c, threads, shadow, accesses, depth, findings, count):  # type: ignore[no-untyped-def]
    """Issues one record, so that entries run in program order as far as they can. Whether it was possible."""
    blocks, at, queues, issued = cores.blocks, cores.at, cores.queues, cores.issued
    if at[c, 0] == at[c, 1] and not at[c, 2]:
        state = State(cores.variables[c], cores.rings[c], cores.trips[c], cores.cursor[c])
        at[c, 0], at[c, 1] = next_block(flat, state, gm, blocks[c]), 0
        at[c, 2] = at[c, 0] == 0
    if at[c, 2]:
        return False
    i = at[c, 1]
    e, sequencer = blocks[c, i, QUEUE], c * ENGINES
    if e < 0:
        _tick(threads, sequencer, blocks[c, i, ROW])
        _touch_all(blocks[c], i, sequencer, c, threads.clocks, threads.ticks, shadow, accesses, findings, count)
    else:
        if issued[c, e] - cores.begun[c, e] >= depth:
            return False
        k = issued[c, e] & (SLOTS - 1)
        queues[c, e, k, :WIDTH] = blocks[c, i]
        queues[c, e, k, WIDTH] = threads.ticks[sequencer]
        issued[c, e] += 1
    at[c, 1] += 1
    return True


@jit
def _tick(threads, t, row):  # type: ignore[no-untyped-def]
    """The next entry of a thread."""
    threads.rows[threads.first[t] + threads.ticks[t] - threads.started[t]] = row
    threads.ticks[t] += 1
    threads.clocks[t, t] = threads.ticks[t]


@jit
def _join(clock, other):  # type: ignore[no-untyped-def]
    for u in range(len(clock)):
        clock[u] = max(clock[u], other[u])


@jit
def _token(record, tokens):  # type: ignore[no-untyped-def]
    return tokens.number[record[FIELDS] * ENGINES + record[FIELDS + 1]] * _IDS + record[FIELDS + 2]


@jit
def _synchronise(record, t, c, threads, tokens, signals, findings, count):  # type: ignore[no-untyped-def]
    """What an entry has to wait for: 0, not there yet; 1, there, and its clock taken over; -1, the interleaving ends in an overflow."""
    opcode = record[OPCODE]
    if opcode == _WAIT:
        k = _token(record, tokens)
        needed = tokens.taken[c, k] - tokens.granted[c, k]
        if needed >= tokens.given[c, k]:
            return 0
        if needed >= 0:
            _join(threads.clocks[t], tokens.clocks[c, k, needed & (RING - 1)])
    elif opcode == _SET or opcode == _GRANT:
        k = _token(record, tokens)
        more = 1 if opcode == _SET else record[FIELDS + 3]
        if tokens.given[c, k] + tokens.granted[c, k] - tokens.taken[c, k] + more > _LIMIT:
            report(findings, count, OVERFLOW, t, 0, t, 0, k, record[ROW], 0)
            return -1
    elif opcode == _AWAIT:
        counter = record[FIELDS + 1]
        value = record[FIELDS + 2] - signals.initial[counter]
        if value > signals.counts[counter]:
            return 0
        if value > 0:
            _follow(threads.clocks[t], counter, value, signals)
    return 1


@jit
def _follow(clock, counter, value, signals):  # type: ignore[no-untyped-def]
    """Joins the clocks of the signals that an await of `value` follows."""
    first = signals.first[counter]
    signals.asked[first + value - 1] = 1
    if not signals.loose[counter]:
        _join(clock, signals.joined[first + value - 1])
        return
    total = signals.first[counter + 1] - first
    for i in range(signals.counts[counter]):
        rank, others = 0, total
        for j in range(total):
            if signals.threads[first + j] == signals.threads[first + i]:
                rank += j <= i
                others -= 1
        if rank <= value - others:
            _join(clock, signals.clocks[first + i])


@jit
def _give(record, t, c, threads, tokens, signals):  # type: ignore[no-untyped-def]
    """What a set, wait, grant or signal changes."""
    opcode, clock = record[OPCODE], threads.clocks[t]
    if opcode == _SIGNAL:
        counter = record[FIELDS + 1]
        at = signals.first[counter] + signals.counts[counter]
        signals.clocks[at] = clock
        signals.joined[at] = clock
        if signals.counts[counter]:
            _join(signals.joined[at], signals.joined[at - 1])
        signals.threads[at] = t
        signals.counts[counter] += 1
    elif opcode != _AWAIT:
        k = _token(record, tokens)
        if opcode == _SET:
            tokens.clocks[c, k, tokens.given[c, k] & (RING - 1)] = clock
            tokens.given[c, k] += 1
            give = tokens.gives[tokens.lengths[0]]
            give[0], give[1], give[2], give[3] = c, k, threads.ticks[t], clock[c * ENGINES + record[FIELDS + 1]]
            tokens.lengths[0] += 1
            return
        change = np.int64(-1)
        if opcode == _WAIT:
            tokens.taken[c, k] += 1
        else:
            change = record[FIELDS + 3]
            tokens.granted[c, k] += change
        take = tokens.takes[tokens.lengths[1]]
        take[0], take[1], take[2], take[3] = c, k, threads.ticks[t], change
        tokens.lengths[1] += 1


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


@jit
def report(findings, count, kind, before, before_tick, after, after_tick, space, low, high):  # type: ignore[no-untyped-def]
    """Writes down a finding, if there is room."""
    if count[0] < len(findings):
        f = findings[count[0]]
        f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7] = kind, before, before_tick, after, after_tick, space, low, high
    count[0] += 1


@jit
def _touch_all(records, n, t, c, clocks, ticks, shadow, accesses, findings, count):  # type: ignore[no-untyped-def]
    """All accesses of record n by thread t; then its reads count as done."""
    dtype = _DTYPE_FIELD[records[n, OPCODE]]
    wanted = _CLASS[records[n, dtype]] if dtype >= 0 else 0
    for a in range(footprint(records, n, accesses)):
        if merge_runs(accesses, a):
            _touch(accesses[a], t, c, clocks[t], ticks[t], wanted, shadow, findings, count)


@jit
def _touch(access, t, c, clock, tick, wanted, shadow, findings, count):  # type: ignore[no-untyped-def]
    """One access, run by run: (count, stride) of five axes and the length of a run."""
    space = access[SPACE]
    shift, base, reader = shadow.shift[space], shadow.base[c, space], shadow.readers[c, space]
    readers = SPACES
    own = t % ENGINES
    if space == GM:
        readers = 2 * len(shadow.base)
        own = 2 * c + (0 if own == GM_READERS[0] else 1)
    else:
        readers = ENGINES
    typed = wanted if _TYPED[space] else 0
    for i0 in range(access[RUNS]):
        for i1 in range(access[RUNS + 2]):
            for i2 in range(access[RUNS + 4]):
                for i3 in range(access[RUNS + 6]):
                    for i4 in range(access[RUNS + 8]):
                        at = access[ADDRESS] + i0 * access[RUNS + 1] + i1 * access[RUNS + 3] + i2 * access[RUNS + 5] + i3 * access[RUNS + 7] + i4 * access[RUNS + 9]
                        low, high = at >> shift, (at + access[LENGTH]) >> shift
                        if access[ACCESS] & READS:
                            _read(shadow, base, low, high, t, clock, typed, tick, findings, count, space)
                        if access[ACCESS] & WRITES:
                            _write(shadow, base, reader, readers, c, low, high, t, clock, max(typed, 1), tick, findings, count, space)
                        elif access[ACCESS] & READS:
                            for g in range(low, high):
                                shadow.read[reader + g * readers + own] = tick


@jit
def _read(shadow, base, low, high, t, clock, typed, tick, findings, count, space):  # type: ignore[no-untyped-def]
    """Checks that a run of granules was written, with this type, before."""
    shift = shadow.shift[space]
    writer, written, holds = shadow.writer, shadow.written, shadow.holds
    known = -1
    for g in range(low, high):
        kind, held, w = 0, holds[base + g], writer[base + g]
        if held == 0:
            kind = UNWRITTEN
        elif w >= 0 and w != t and clock[w] < written[base + g]:
            kind = WRITE_READ
        elif typed and held != typed:
            kind = DTYPE
        if kind and known >= 0 and findings[known, 0] == kind and findings[known, 7] == g << shift and (kind == UNWRITTEN or findings[known, 2] == written[base + g]):
            findings[known, 7] = (g + 1) << shift
        elif kind:
            known = count[0] if count[0] < len(findings) else -1
            report(findings, count, kind, w, written[base + g], t, tick, space, g << shift, (g + 1) << shift)


@jit
def _write(shadow, base, reader, readers, c, low, high, t, clock, holds, tick, findings, count, space):  # type: ignore[no-untyped-def]
    """Checks that the last write and reads of a run of granules come before, and writes."""
    shift = shadow.shift[space]
    known = -1
    for g in range(low, high):
        w, before = shadow.writer[base + g], shadow.written[base + g]
        kind, other = 0, np.int64(w)
        if w >= 0 and w != t and clock[w] < before:
            kind = WRITE_WRITE
        else:
            for s in range(readers):
                u = (s // 2 * ENGINES + (GM_READERS[0] if s % 2 == 0 else GM_READERS[1])) if space == GM else c * ENGINES + s
                r = shadow.read[reader + g * readers + s]
                if u != t and r > clock[u]:
                    kind, other, before = READ_WRITE, u, r
                    break
        shadow.writer[base + g], shadow.written[base + g], shadow.holds[base + g] = t, tick, holds
        if kind and known >= 0 and findings[known, 0] == kind and findings[known, 7] == g << shift and findings[known, 1] == other and findings[known, 2] == before:
            findings[known, 7] = (g + 1) << shift
        elif kind:
            known = count[0] if count[0] < len(findings) else -1
            report(findings, count, kind, other, before, t, tick, space, g << shift, (g + 1) << shift)
