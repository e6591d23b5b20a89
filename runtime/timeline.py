"""The compiled event loop of the timing model (docs/timing.md): cores run ahead as far as their times are known;
transfers and signals are events in the order of time.

A core is a block of 64-bit words, integers and doubles, that compiled code reaches by address: passing arrays on
would count references, which costs more than an instruction's timing.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import isa
from . import timed_words as w
from .formulas import cost, load_f64, store_f64
from .generator import (  # fmt: skip
    BLOCK,
    FAULT,
    FIELDS,
    ISSUE,
    ISSUED,
    NOOP,
    OPCODE,
    PC,
    QUEUE,
    ROW,
    WIDTH,
    Flat,
    expand,
    new_state,
)
from .jit import inline, jit, kernel
from .numerics.bits import bits_f64, f64_bits, i64, load_i64, store_i64

DEADLOCK, OVERFLOW, RANGE = 100, 101, 102
"""Faults beside those of the generator."""
_OP_SET, _OP_AWAIT = isa.OPCODE["set"], isa.OPCODE["await"]
_TOKEN_IDS, _COUNTERS, _LIMIT = isa.TOKEN_IDS, isa.COUNTERS, isa.TOKEN_LIMIT


class Machine(NamedTuple):
    """The state of all cores."""

    cores: NDArray[np.int64]
    rows: NDArray[np.int64]
    shared: NDArray[np.int64]
    trace: NDArray[np.float64]
    blocks: NDArray[np.int64]
    """The records of each core's generator."""


def new_machine(
    watch: NDArray[np.int64],
    registers: NDArray[np.int64],
    cores: int,
    counters: NDArray[np.int64],
    launch: float,
    events: int,
) -> Machine:
    """All cores at the beginning of a launch. `shared` holds addresses of the other arrays, so keep them together."""
    words = np.zeros((cores, w.CORE_WORDS), np.int64)
    for core in range(cores):
        variables = new_state(registers, core).variables
        words[core, w.VARIABLES : w.VARIABLES + len(variables)] = variables
    words[:, w.NUMBER], words[:, w.WAITS], words[:, w.VISIBLE : w.REALS] = np.arange(cores), -1, counters
    words.view(np.float64)[:, [w.CLOCK, *range(w.FREE, w.FREE + w.ENGINES)]] = launch
    blocks = np.zeros((cores, BLOCK if cores <= 4 else BLOCK // 4, WIDTH), np.int64)
    rows, trace, shared = (
        new_rows(watch),
        np.zeros((events, w.EVENT_WORDS)),
        np.zeros(w.FIRST_EVENT + cores * w.ENGINES, np.int64),
    )
    shared[: w.BLOCK_SIZE + 1] = (
        words.ctypes.data,
        rows.ctypes.data,
        trace.ctypes.data,
        0,
        events,
        blocks.ctypes.data,
        blocks.shape[1],
    )
    return Machine(words, rows, shared, trace, blocks)


def new_rows(watch: NDArray[np.int64]) -> NDArray[np.int64]:
    """The words of all rows, none of them costed."""
    rows = np.zeros((len(watch), w.ROW_WORDS), np.int64)
    rows[:, w.WATCH], rows.view(np.float64)[:, w.ROW_CYCLES] = watch, -1
    return rows


def by_engine(machine: Machine, column: int) -> NDArray[np.float64]:
    """A column of doubles as [core, engine]."""
    return machine.cores.view(np.float64)[:, column : column + w.ENGINES].copy()


def final_counters(machine: Machine) -> NDArray[np.int64]:
    """The counters, after all signals have arrived."""
    return machine.cores[0, w.VISIBLE : w.REALS].copy()


@inline
def add_real(base, index, value):  # type: ignore[no-untyped-def]
    """Adds to a double."""
    store_f64(base, index, load_f64(base, index) + value)


@inline
def add(base, index, value):  # type: ignore[no-untyped-def]
    """Adds to an integer."""
    store_i64(base, index, load_i64(base, index) + value)


@inline
def is_costed(row, record):  # type: ignore[no-untyped-def]
    """Whether the cost of a row holds for a record: no field that it depends on has changed."""
    holds = load_f64(row, w.ROW_CYCLES) >= 0
    fields, at = load_i64(row, w.WATCH), w.SEEN
    while fields:
        value = load_i64(record, FIELDS - 1 + (fields & 63))
        holds &= load_i64(row, at) == value
        store_i64(row, at, value)
        fields, at = fields >> 6, at + 1
    return holds


@inline
def row_cycles(row):  # type: ignore[no-untyped-def]
    """The fixed part of a row's cost."""
    return load_f64(row, w.ROW_CYCLES)


@inline
def row_bytes(row):  # type: ignore[no-untyped-def]
    """The bytes that a row then transfers."""
    return load_f64(row, w.ROW_BYTES)


@inline
def token_of(record):  # type: ignore[no-untyped-def]
    """The number of the token of a set, wait or grant, or -1: no such id."""
    token = load_i64(record, FIELDS + 2)
    if token < 0 or token >= _TOKEN_IDS:
        return -1
    return (load_i64(record, FIELDS) * w.ENGINES + load_i64(record, FIELDS + 1)) * _TOKEN_IDS + token


@inline
def _enqueue(core, row, record, e):  # type: ignore[no-untyped-def]
    """Puts a record into queue e at the sequencer's time; a fault or 0."""
    q = w.ENTRIES + (e * w.SLOTS + (load_i64(core, w.ISSUED + e) & (w.SLOTS - 1))) * 8
    opcode, kind, argument = load_i64(record, OPCODE), w.PLAIN, 0
    store_f64(core, q + w.ENTERED, load_f64(core, w.CLOCK))
    store_i64(core, q + w.ENTRY_ROW, row)
    store_f64(core, q + w.ENTRY_BYTES, 0.0)
    if load_i64(record, NOOP):
        store_f64(core, q + w.ENTRY_CYCLES, 1.0)
    else:
        store_f64(core, q + w.ENTRY_CYCLES, row_cycles(row))
        store_f64(core, q + w.ENTRY_BYTES, row_bytes(row))
        add_real(core, w.GM_BYTES, row_bytes(row))
        add_real(core, w.CUBE, load_f64(row, w.ROW_CUBE))
    if _OP_SET <= opcode <= _OP_AWAIT:
        kind = w.SET + opcode - _OP_SET
        argument, value = load_i64(record, FIELDS + 1), load_i64(record, FIELDS + 2)
        if kind <= w.GRANT:
            argument, value = token_of(record), load_i64(record, FIELDS + 3)
            if kind == w.GRANT and value < 0:
                argument = -1
        elif argument >= _COUNTERS:
            argument = -1
        store_i64(core, q + w.VALUE, value)
    store_i64(core, q + w.KIND, kind)
    store_i64(core, q + w.ARGUMENT, argument)
    add(core, w.ISSUED + e, 1)
    return RANGE if argument < 0 else 0


@inline
def _fill(core, shared, block):  # type: ignore[no-untyped-def]
    """The next records of a core; their number."""
    flat, most = shared + 8 * w.PROGRAM, load_i64(shared, w.BLOCK_SIZE)
    variables, rings = core + 8 * w.VARIABLES, core + 8 * w.RINGS
    trips, cursor = core + 8 * w.TRIPS, core + 8 * w.CURSOR
    rows = load_i64(flat, 0), load_i64(flat, 1), load_i64(flat, 2), load_i64(flat, 3)
    return expand(*rows, variables, rings, trips, cursor, load_i64(flat, 4), load_i64(flat, 5), block, most)


@inline
def _stalled(core, record, depth, read):  # type: ignore[no-untyped-def]
    """Sequences one record: its time. True if its queue is full."""
    e = load_i64(record, QUEUE)
    if e < 0:
        add_real(core, w.CLOCK, load_i64(record, ISSUE) + read)
        return False
    issued = load_i64(core, w.ISSUED + e)
    if issued - load_i64(core, w.STARTED + e) >= depth:
        store_i64(core, w.WAITS, e)
        return True
    clock = load_f64(core, w.CLOCK) + load_i64(record, ISSUE)
    if issued >= depth:
        clock = max(clock, load_f64(core, w.STARTS + e * w.SLOTS + ((issued - depth) & (w.SLOTS - 1))))
    store_f64(core, w.CLOCK, clock)
    return False


@inline
def _start(core, q, ready, now):  # type: ignore[no-untyped-def]
    """When the entry at q starts if it is ready at `ready`; negative while it is blocked. Takes the token of a wait."""
    kind, argument = load_i64(core, q + w.KIND), load_i64(core, q + w.ARGUMENT)
    if kind == w.WAIT:
        needed = load_i64(core, w.TAKEN + argument) - load_i64(core, w.GRANTED + argument)
        if needed >= load_i64(core, w.SETS + argument):
            return -1.0
        add(core, w.TAKEN + argument, 1)
        if needed >= 0:
            return max(ready, load_f64(core, w.TIMES + 16 * argument + (needed & 15)))
    elif kind == w.AWAIT:
        if load_i64(core, w.VISIBLE + argument) < load_i64(core, q + w.VALUE):
            return -1.0
        return max(ready, now)
    return ready


@inline
def _record(core, shared, e, q, start, end):  # type: ignore[no-untyped-def]
    """Traces an entry, while there is room."""
    event = load_i64(shared, w.EVENTS)
    if event < load_i64(shared, w.MOST_EVENTS):
        at = load_i64(shared, w.TRACE) + event * w.EVENT_WORDS * 8
        store_f64(at, 0, float(load_i64(core, w.NUMBER)))
        store_f64(at, 1, float(e))
        store_f64(at, 2, float((load_i64(core, q + w.ENTRY_ROW) - load_i64(shared, w.ROWS)) // (8 * w.ROW_WORDS)))
        store_f64(at, 3, load_f64(core, q + w.ENTERED))
        store_f64(at, 4, start)
        store_f64(at, 5, end)
        store_i64(shared, w.EVENTS, event + 1)


@inline
def _finish(core, shared, e, q, start, end):  # type: ignore[no-untyped-def]
    """The entry at q ends and gives its tokens: the engine that may go on (a bit), or -1: too many tokens."""
    store_f64(core, w.FREE + e, end)
    add_real(core, w.BUSY + e, end - start)
    add_real(load_i64(core, q + w.ENTRY_ROW), w.ROW_BUSY, end - start)
    _record(core, shared, e, q, start, end)
    kind, argument = load_i64(core, q + w.KIND), load_i64(core, q + w.ARGUMENT)
    if kind != w.SET and kind != w.GRANT:
        return 0
    if kind == w.SET:
        store_f64(core, w.TIMES + 16 * argument + (load_i64(core, w.SETS + argument) & 15), end)
        add(core, w.SETS + argument, 1)
    else:
        add(core, w.GRANTED + argument, load_i64(core, q + w.VALUE))
    if (
        load_i64(core, w.SETS + argument) + load_i64(core, w.GRANTED + argument) - load_i64(core, w.TAKEN + argument)
        > _LIMIT
    ):
        store_i64(core, w.FAULTY, (load_i64(core, q + w.ENTRY_ROW) - load_i64(shared, w.ROWS)) // (8 * w.ROW_WORDS))
        return -1
    return 1 << (argument // _TOKEN_IDS % w.ENGINES) if kind == w.SET else 0


@inline
def _execute(core, shared, e, now):  # type: ignore[no-untyped-def]
    """Starts entries of an engine while their times are known: the engines that may go on (bits), or -1: too many
    tokens."""
    woken = 0
    while load_i64(core, w.STARTED + e) < load_i64(core, w.ISSUED + e) and not load_i64(core, w.MOVING + e):
        k = load_i64(core, w.STARTED + e) & (w.SLOTS - 1)
        q = w.ENTRIES + (e * w.SLOTS + k) * 8
        free = load_f64(core, w.FREE + e)
        ready = max(load_f64(core, q + w.ENTERED), free)
        start = _start(core, q, ready, now)
        if start < 0:
            break
        add_real(core, w.STARVED + e, ready - free)
        add_real(core, w.TOKEN + e, start - ready)
        store_f64(core, w.STARTS + e * w.SLOTS + k, start)
        add(core, w.STARTED + e, 1)
        if load_i64(core, w.WAITS) == e:
            store_i64(core, w.WAITS, -1)
        end = start + load_f64(core, q + w.ENTRY_CYCLES)
        if load_f64(core, q + w.ENTRY_BYTES) > 0 or load_i64(core, q + w.KIND) == w.SIGNAL:
            store_i64(core, w.MOVING + e, 1)
            store_f64(core, w.EVENT_BEGIN + e, end)
            store_f64(core, w.EVENT_DONE + e, np.inf)
            store_f64(core, w.EVENT_START + e, start)
            live = load_i64(shared, w.LIVE)
            store_i64(shared, w.FIRST_EVENT + live, load_i64(core, w.NUMBER) << w.EVENT_SHIFT | e)
            store_i64(shared, w.LIVE, live + 1)
            break
        bits = _finish(core, shared, e, q, start, end)
        if bits < 0:
            return -1
        woken |= bits
    return woken


@inline
def _issue(core, shared):  # type: ignore[no-untyped-def]
    """Sequences rows until a queue is full or the program has ended: the engines that have new entries (bits), or
    minus a fault."""
    constants, rows, woken = load_i64(shared, w.CONSTANTS), load_i64(shared, w.ROWS), 0
    block = load_i64(shared, w.BLOCKS) + load_i64(core, w.NUMBER) * load_i64(shared, w.BLOCK_SIZE) * 8 * WIDTH
    depth, read = i64(load_f64(constants, w.QUEUE_DEPTH)), load_f64(constants, w.FIXED_READ)
    i, count = load_i64(core, w.AT), load_i64(core, w.COUNT)
    while True:
        if i == count:
            i, count = 0, _fill(core, shared, block)
            store_i64(core, w.COUNT, count)
            add(core, w.RECORDS, count)
            if count == 0:
                store_i64(core, w.ENDED, 1)
                add_real(core, w.CLOCK, load_i64(core, w.CURSOR + ISSUED))
                store_i64(core, w.FAULTY, load_i64(core, w.CURSOR + PC))
                return -load_i64(core, w.CURSOR + FAULT) if load_i64(core, w.CURSOR + FAULT) else woken
        record = block + i * 8 * WIDTH
        if _stalled(core, record, depth, read):
            store_i64(core, w.AT, i)
            return woken
        i += 1
        e, row = load_i64(record, QUEUE), rows + load_i64(record, ROW) * 8 * w.ROW_WORDS
        if e >= 0:
            if not load_i64(record, NOOP) and not is_costed(row, record):
                cost(record, constants, row)
            if _enqueue(core, row, record, e):
                store_i64(core, w.FAULTY, load_i64(record, ROW))
                return -RANGE
            woken |= 1 << e


@kernel
def advance(core: int, shared: int, woken: int, now_bits: int) -> int:
    """Lets a core run as far as its times are known; a fault or 0. `now_bits` are those of the time, a double."""
    now = bits_f64(now_bits)
    while True:
        if load_i64(core, w.WAITS) < 0 and not load_i64(core, w.ENDED):
            bits = _issue(core, shared)
            if bits < 0:
                return -bits
            woken |= bits
        if not woken:
            return 0
        for e in range(1, w.ENGINES):
            if woken >> e & 1:
                bits = _execute(core, shared, e, now)
                if bits < 0:
                    return OVERFLOW
                woken = woken & ~(1 << e) | bits


@inline
def _core(shared, i):  # type: ignore[no-untyped-def]
    """Number, address, engine and queue entry of event i."""
    event = load_i64(shared, w.FIRST_EVENT + i)
    c, e = event >> w.EVENT_SHIFT, event & ((1 << w.EVENT_SHIFT) - 1)
    core = load_i64(shared, w.CORES) + c * 8 * w.CORE_WORDS
    return c, core, e, w.ENTRIES + (e * w.SLOTS + ((load_i64(core, w.STARTED + e) - 1) & (w.SLOTS - 1))) * 8


@inline
def _next_event(shared):  # type: ignore[no-untyped-def]
    """The first event that is due and the first transfer to be done: time and index, work and index."""
    begin, done, first, last = np.inf, np.inf, -1, -1
    for i in range(load_i64(shared, w.LIVE)):
        _, core, e, _ = _core(shared, i)
        if load_f64(core, w.EVENT_BEGIN + e) < begin:
            begin, first = load_f64(core, w.EVENT_BEGIN + e), i
        if load_f64(core, w.EVENT_DONE + e) < done:
            done, last = load_f64(core, w.EVENT_DONE + e), i
    return begin, first, done, last


@inline
def _end(core, shared, i, e, q, now):  # type: ignore[no-untyped-def]
    """Event i is over."""
    add(shared, w.LIVE, -1)
    store_i64(shared, w.FIRST_EVENT + i, load_i64(shared, w.FIRST_EVENT + load_i64(shared, w.LIVE)))
    store_i64(core, w.MOVING + e, 0)
    _finish(core, shared, e, q, load_f64(core, w.EVENT_START + e), now)


@inline
def _end_transfer(shared, i, now, alone):  # type: ignore[no-untyped-def]
    """The transfer of event i is done; alone it would have had the rate `alone`. A fault or 0, and the core."""
    c, core, e, q = _core(shared, i)
    took = now - load_f64(core, w.EVENT_START + e) - load_f64(core, q + w.ENTRY_CYCLES)
    add_real(core, w.PORT + e, took - load_f64(core, q + w.ENTRY_BYTES) / alone)
    add(shared, w.ACTIVE, -1)
    _end(core, shared, i, e, q, now)
    return advance(core, shared, 1 << e, f64_bits(now)), c


@inline
def _deliver(shared, cores, source, others, counter, now):  # type: ignore[no-untyped-def]
    """A signal of core `source` arrives, at its own core or at the others. A fault or 0, and the core."""
    for c in range(cores):
        if (c != source) == others:
            core = load_i64(shared, w.CORES) + c * 8 * w.CORE_WORDS
            add(core, w.VISIBLE + counter, 1)
            fault = advance(core, shared, (1 << w.ENGINES) - 2, f64_bits(now))
            if fault:
                return fault, c
    return 0, 0


@inline
def _with_room(mail, sent, received):  # type: ignore[no-untyped-def]
    """The ring of signals on their way, twice as long if it was full, and its two ends."""
    if sent - received < len(mail):
        return mail, sent, received
    at = received % len(mail)
    return np.concatenate((mail[at:], mail[:at], np.zeros((len(mail), 3)))), sent - received, 0


@inline
def _place(at, flat, gm):  # type: ignore[no-untyped-def]
    """Addresses of a program and of global memory."""
    store_i64(at, 0, flat.head.ctypes.data)
    store_i64(at, 1, flat.bases.ctypes.data)
    store_i64(at, 2, flat.modifiers.ctypes.data)
    store_i64(at, 3, len(flat.head))
    store_i64(at, 4, gm.ctypes.data)
    store_i64(at, 5, gm.size)


@jit
def simulate(flat: Flat, machine: Machine, gm: NDArray[np.uint8], constants: NDArray[np.float64]) -> tuple[int, int]:
    """Runs a launch to its end: a fault or 0, and the core, whose word w.FAULTY has the row."""
    words, shared, cores = machine.cores, machine.shared.ctypes.data, len(machine.cores)
    store_i64(shared, w.CONSTANTS, constants.ctypes.data)
    _place(shared + 8 * w.PROGRAM, flat, gm)
    port, path = constants[w.GM_PORT], constants[w.GM_PATH]
    now, work = 0.0, 0.0
    mail, sent, received = np.zeros((16, 3)), 0, 0
    for c in range(cores):
        fault = advance(load_i64(shared, w.CORES) + c * 8 * w.CORE_WORDS, shared, 0, f64_bits(now))
        if fault:
            return fault, c
    while True:
        begin, first, done, last = _next_event(shared)
        active = load_i64(shared, w.ACTIVE)
        rate = min(path, port / max(active, 1))
        end = now + (done - work) / rate if active else np.inf
        letter = mail[received % len(mail)]
        arrival = letter[0] if received < sent else np.inf
        time = min(begin, end, arrival)
        if time == np.inf:
            return _deadlock(words)
        work, now = work + rate * (time - now) if active else 0.0, time
        fault, c = 0, 0
        if end == time:
            work = done
            fault, c = _end_transfer(shared, last, now, min(path, port))
        elif arrival == time:
            received += 1
            fault, c = _deliver(shared, cores, np.int64(letter[1]), True, np.int64(letter[2]), now)
        else:
            c, core, e, q = _core(shared, first)
            if load_i64(core, q + w.KIND) == w.SIGNAL:
                mail, sent, received = _with_room(mail, sent, received)
                letter = mail[sent % len(mail)]
                letter[0], letter[1], letter[2] = now + constants[w.SIGNAL_LATENCY], c, load_i64(core, q + w.ARGUMENT)
                sent += 1
                _end(core, shared, first, e, q, now)
                fault, c = _deliver(shared, cores, c, False, load_i64(core, q + w.ARGUMENT), now)
            else:
                store_f64(core, w.EVENT_BEGIN + e, np.inf)
                store_f64(core, w.EVENT_DONE + e, work + load_f64(core, q + w.ENTRY_BYTES))
                store_i64(shared, w.ACTIVE, active + 1)
        if fault:
            return fault, c


@jit
def _deadlock(words):  # type: ignore[no-untyped-def]
    """The first core that has not come to its end, as a fault; or 0."""
    for c in range(len(words)):
        if not words[c, w.ENDED] or np.any(words[c, w.ISSUED : w.STARTED] != words[c, w.STARTED : w.MOVING]):
            return DEADLOCK, c
    return 0, 0
