"""The compiled event loop of the timing model (docs/timing.md): cores run ahead as far as their times are known; transfers and
signals are events in the order of time.

A core is a block of 64-bit words, integers and doubles, that compiled code reaches by address: passing arrays on would count
references, which costs more than an instruction's timing.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import isa
from .formulas import CONSTANTS, cube_cycles, cycles, gm_bytes
from .generator import BLOCK, FAULT, FIELDS, ISSUE, ISSUED, NOOP, OPCODE, PC, QUEUE, ROW, WIDTH, Flat, State, new_state, next_block  # fmt: skip
from .jit import inline, jit
from .numerics.bits import bits_f64, f64_bits, load_i64, store_i64

DEADLOCK, OVERFLOW, RANGE = 100, 101, 102
"""Faults beside those of the generator."""
ENGINES = len(isa.Engine)
TOKENS = ENGINES * ENGINES * isa.TOKEN_IDS
SLOTS = 128
"""Places of a queue: a power of two above the depth of any target (64), since the entry under way has left the queue but keeps its place."""
WATCHED = 10
"""Fields that the cost of a row may depend on."""
_PLAIN, _SET, _WAIT, _GRANT, _SIGNAL, _AWAIT = range(6)
_OP_SET, _OP_AWAIT = isa.OPCODE["set"], isa.OPCODE["await"]
_QUEUE_DEPTH, _PORT, _PATH, _READ, _LATENCY = (CONSTANTS.index(n) for n in ("queue_depth", "gm_port", "gm_path", "fixed_read", "signal_latency"))  # fmt: skip
_TOKEN_IDS, _COUNTERS, _LIMIT = isa.TOKEN_IDS, isa.COUNTERS, isa.TOKEN_LIMIT

# The words of a core. Integers:
NUMBER, _COUNT, _AT, _WAITS, _ENDED, RECORDS, FAULTY = range(7)
"""The core's number; records in its block; the next one; the queue that the sequencer waits for, or -1; whether it has ended; records in
all; the row of a fault."""
_ISSUED, _STARTED, _MOVING = 8, 16, 24
"""By engine: entries issued, entries started, whether the last of them is an event to come."""
_VARIABLES, _RINGS, _TRIPS, _CURSOR = 32, 80, 96, 104
_SETS, _TAKEN, _GRANTED = 112, 112 + TOKENS, 112 + 2 * TOKENS
_VISIBLE = 112 + 3 * TOKENS
"""Counters as the core sees them."""
_REALS = _VISIBLE + isa.COUNTERS
# Doubles, by engine from FREE on:
CLOCK, GM_BYTES, CUBE = range(_REALS, _REALS + 3)
"""Time of the sequencer; bytes and cycles of a full cube issued so far."""
FREE, BUSY, TOKEN, STARVED, PORT = range(_REALS + 8, _REALS + 48, 8)
"""End of the last entry; executing; waiting for a token or counter; waiting for the sequencer; what sharing the port adds."""
_BEGIN, _DONE, _START = range(_REALS + 48, _REALS + 72, 8)
"""Of an event: when it is due, or its transfer begins; the work of the port at which that is done; the start of its entry."""
_STARTS = _REALS + 72
"""Start of the last entries."""
_QUEUE = _STARTS + ENGINES * SLOTS
_ENTER, _FIXED, _BYTES, _ROW, _KIND, _ARGUMENT, _VALUE = range(7)
_TIMES = _QUEUE + ENGINES * SLOTS * 8
"""End of the last 16 sets of a token."""
CORE_WORDS = _TIMES + TOKENS * 16

# The words of a row: its cost (doubles), and the fields (plus one, six bits each) and values that it holds for.
_CYCLES, _GM, _CUBE, ROW_BUSY, _WATCH, _SEEN = range(6)
ROW_WORDS = _SEEN + WATCHED
EVENT_WORDS = 6
"""A traced event, doubles: core, engine, row, enter, start, end."""

# The words that all cores share: addresses, the trace's length and limit, live events and transfers, then each event's core and engine.
_CORES, _ROWS, _TRACE, EVENTS, _MOST_EVENTS, _LIVE, _ACTIVE, _EVENT = range(8)
_SHIFT = 8


class Machine(NamedTuple):
    """The state of all cores."""

    cores: NDArray[np.int64]
    rows: NDArray[np.int64]
    shared: NDArray[np.int64]
    trace: NDArray[np.float64]
    blocks: NDArray[np.int64]
    """The records of each core's generator."""


def new_machine(watch: NDArray[np.int64], registers: NDArray[np.int64], cores: int, counters: NDArray[np.int64], launch: float, events: int) -> Machine:  # fmt: skip
    """All cores at the beginning of a launch. `shared` holds addresses of the other arrays, so keep them together."""
    words = np.zeros((cores, CORE_WORDS), np.int64)
    for core in range(cores):
        variables = new_state(registers, core).variables
        words[core, _VARIABLES : _VARIABLES + len(variables)] = variables
    words[:, NUMBER], words[:, _WAITS], words[:, _VISIBLE:_REALS] = np.arange(cores), -1, counters
    words.view(np.float64)[:, [CLOCK, *range(FREE, FREE + ENGINES)]] = launch
    blocks = np.zeros((cores, BLOCK if cores <= 4 else BLOCK // 4, WIDTH), np.int64)
    rows, trace, shared = new_rows(watch), np.zeros((events, EVENT_WORDS)), np.zeros(_EVENT + cores * ENGINES, np.int64)
    shared[: _MOST_EVENTS + 1] = words.ctypes.data, rows.ctypes.data, trace.ctypes.data, 0, events
    return Machine(words, rows, shared, trace, blocks)


def new_rows(watch: NDArray[np.int64]) -> NDArray[np.int64]:
    """The words of all rows, none of them costed."""
    rows = np.zeros((len(watch), ROW_WORDS), np.int64)
    rows[:, _WATCH], rows.view(np.float64)[:, _CYCLES] = watch, -1
    return rows


def by_engine(machine: Machine, column: int) -> NDArray[np.float64]:
    return machine.cores.view(np.float64)[:, column : column + ENGINES].copy()


def final_counters(machine: Machine) -> NDArray[np.int64]:
    return machine.cores[0, _VISIBLE:_REALS].copy()


@inline
def real(base, index):  # type: ignore[no-untyped-def]
    return bits_f64(load_i64(base, index))


@inline
def put_real(base, index, value):  # type: ignore[no-untyped-def]
    store_i64(base, index, f64_bits(value))


@inline
def add_real(base, index, value):  # type: ignore[no-untyped-def]
    put_real(base, index, real(base, index) + value)


@inline
def add(base, index, value):  # type: ignore[no-untyped-def]
    store_i64(base, index, load_i64(base, index) + value)


@inline
def is_costed(row, record):  # type: ignore[no-untyped-def]
    """Whether the cost of a row holds for a record: no field that it depends on has changed."""
    holds = real(row, _CYCLES) >= 0
    fields, at = load_i64(row, _WATCH), _SEEN
    while fields:
        value = load_i64(record, FIELDS - 1 + (fields & 63))
        holds &= load_i64(row, at) == value
        store_i64(row, at, value)
        fields, at = fields >> 6, at + 1
    return holds


@jit
def cost(row, blocks, c, i, constants):  # type: ignore[no-untyped-def]
    """Brings the cost of a row up to date for record i of core c."""
    put_real(row, _CYCLES, cycles(blocks[c], i, constants))
    put_real(row, _GM, gm_bytes(blocks[c], i, constants))
    put_real(row, _CUBE, cube_cycles(blocks[c], i, constants))


@inline
def row_cycles(row):  # type: ignore[no-untyped-def]
    return real(row, _CYCLES)


@inline
def row_bytes(row):  # type: ignore[no-untyped-def]
    return real(row, _GM)


@inline
def token_of(record):  # type: ignore[no-untyped-def]
    """The number of the token of a set, wait or grant, or -1: no such id."""
    token = load_i64(record, FIELDS + 2)
    if token < 0 or token >= _TOKEN_IDS:
        return -1
    return (load_i64(record, FIELDS) * ENGINES + load_i64(record, FIELDS + 1)) * _TOKEN_IDS + token


@inline
def _enqueue(core, row, record, e):  # type: ignore[no-untyped-def]
    """Puts a record into queue e at the sequencer's time; a fault or 0."""
    q = _QUEUE + (e * SLOTS + (load_i64(core, _ISSUED + e) & (SLOTS - 1))) * 8
    opcode, kind, argument = load_i64(record, OPCODE), _PLAIN, 0
    put_real(core, q + _ENTER, real(core, CLOCK))
    store_i64(core, q + _ROW, row)
    put_real(core, q + _BYTES, 0.0)
    if load_i64(record, NOOP):
        put_real(core, q + _FIXED, 1.0)
    else:
        put_real(core, q + _FIXED, row_cycles(row))
        put_real(core, q + _BYTES, row_bytes(row))
        add_real(core, GM_BYTES, row_bytes(row))
        add_real(core, CUBE, real(row, _CUBE))
    if _OP_SET <= opcode <= _OP_AWAIT:
        kind = _SET + opcode - _OP_SET
        argument, value = load_i64(record, FIELDS + 1), load_i64(record, FIELDS + 2)
        if kind <= _GRANT:
            argument, value = token_of(record), load_i64(record, FIELDS + 3)
            if kind == _GRANT and value < 0:
                argument = -1
        elif argument >= _COUNTERS:
            argument = -1
        store_i64(core, q + _VALUE, value)
    store_i64(core, q + _KIND, kind)
    store_i64(core, q + _ARGUMENT, argument)
    add(core, _ISSUED + e, 1)
    return RANGE if argument < 0 else 0


@jit
def _fill(flat, blocks, c, words, gm):  # type: ignore[no-untyped-def]
    """The next records of core c; their number."""
    state = State(words[c, _VARIABLES:_RINGS], words[c, _RINGS:_TRIPS], words[c, _TRIPS:_CURSOR], words[c, _CURSOR:_SETS])
    return next_block(flat, state, gm, blocks[c])


@inline
def _stalled(core, record, depth, read):  # type: ignore[no-untyped-def]
    """Sequences one record: its time. True if its queue is full."""
    e = load_i64(record, QUEUE)
    if e < 0:
        add_real(core, CLOCK, load_i64(record, ISSUE) + read)
        return False
    issued = load_i64(core, _ISSUED + e)
    if issued - load_i64(core, _STARTED + e) >= depth:
        store_i64(core, _WAITS, e)
        return True
    clock = real(core, CLOCK) + load_i64(record, ISSUE)
    if issued >= depth:
        clock = max(clock, real(core, _STARTS + e * SLOTS + ((issued - depth) & (SLOTS - 1))))
    put_real(core, CLOCK, clock)
    return False


@inline
def _start(core, q, ready, now):  # type: ignore[no-untyped-def]
    """When the entry at q starts if it is ready at `ready`; negative while it is blocked. Takes the token of a wait."""
    kind, argument = load_i64(core, q + _KIND), load_i64(core, q + _ARGUMENT)
    if kind == _WAIT:
        needed = load_i64(core, _TAKEN + argument) - load_i64(core, _GRANTED + argument)
        if needed >= load_i64(core, _SETS + argument):
            return -1.0
        add(core, _TAKEN + argument, 1)
        if needed >= 0:
            return max(ready, real(core, _TIMES + 16 * argument + (needed & 15)))
    elif kind == _AWAIT:
        if load_i64(core, _VISIBLE + argument) < load_i64(core, q + _VALUE):
            return -1.0
        return max(ready, now)
    return ready


@inline
def _record(core, shared, e, q, start, end):  # type: ignore[no-untyped-def]
    """Traces an entry, while there is room."""
    event = load_i64(shared, EVENTS)
    if event < load_i64(shared, _MOST_EVENTS):
        at = load_i64(shared, _TRACE) + event * EVENT_WORDS * 8
        put_real(at, 0, float(load_i64(core, NUMBER)))
        put_real(at, 1, float(e))
        put_real(at, 2, float((load_i64(core, q + _ROW) - load_i64(shared, _ROWS)) // (8 * ROW_WORDS)))
        put_real(at, 3, real(core, q + _ENTER))
        put_real(at, 4, start)
        put_real(at, 5, end)
        store_i64(shared, EVENTS, event + 1)


@inline
def _finish(core, shared, e, q, start, end):  # type: ignore[no-untyped-def]
    """The entry at q ends and gives its tokens: the engine that may go on (a bit), or -1: too many tokens."""
    put_real(core, FREE + e, end)
    add_real(core, BUSY + e, end - start)
    add_real(load_i64(core, q + _ROW), ROW_BUSY, end - start)
    _record(core, shared, e, q, start, end)
    kind, argument = load_i64(core, q + _KIND), load_i64(core, q + _ARGUMENT)
    if kind != _SET and kind != _GRANT:
        return 0
    if kind == _SET:
        put_real(core, _TIMES + 16 * argument + (load_i64(core, _SETS + argument) & 15), end)
        add(core, _SETS + argument, 1)
    else:
        add(core, _GRANTED + argument, load_i64(core, q + _VALUE))
    if load_i64(core, _SETS + argument) + load_i64(core, _GRANTED + argument) - load_i64(core, _TAKEN + argument) > _LIMIT:
        store_i64(core, FAULTY, (load_i64(core, q + _ROW) - load_i64(shared, _ROWS)) // (8 * ROW_WORDS))
        return -1
    return 1 << (argument // _TOKEN_IDS % ENGINES) if kind == _SET else 0


@inline
def _execute(core, shared, e, now):  # type: ignore[no-untyped-def]
    """Starts entries of an engine while their times are known: the engines that may go on (bits), or -1: too many tokens."""
    woken = 0
    while load_i64(core, _STARTED + e) < load_i64(core, _ISSUED + e) and not load_i64(core, _MOVING + e):
        k = load_i64(core, _STARTED + e) & (SLOTS - 1)
        q = _QUEUE + (e * SLOTS + k) * 8
        free = real(core, FREE + e)
        ready = max(real(core, q + _ENTER), free)
        start = _start(core, q, ready, now)
        if start < 0:
            break
        add_real(core, STARVED + e, ready - free)
        add_real(core, TOKEN + e, start - ready)
        put_real(core, _STARTS + e * SLOTS + k, start)
        add(core, _STARTED + e, 1)
        if load_i64(core, _WAITS) == e:
            store_i64(core, _WAITS, -1)
        end = start + real(core, q + _FIXED)
        if real(core, q + _BYTES) > 0 or load_i64(core, q + _KIND) == _SIGNAL:
            store_i64(core, _MOVING + e, 1)
            put_real(core, _BEGIN + e, end)
            put_real(core, _DONE + e, np.inf)
            put_real(core, _START + e, start)
            live = load_i64(shared, _LIVE)
            store_i64(shared, _EVENT + live, load_i64(core, NUMBER) << _SHIFT | e)
            store_i64(shared, _LIVE, live + 1)
            break
        bits = _finish(core, shared, e, q, start, end)
        if bits < 0:
            return -1
        woken |= bits
    return woken


@jit
def _advance(flat, words, blocks, gm, constants, shared, c, woken, now):  # type: ignore[no-untyped-def]
    """Lets core c run as far as its times are known; a fault or 0."""
    core, rows, block = load_i64(shared, _CORES) + c * 8 * CORE_WORDS, load_i64(shared, _ROWS), blocks[c].ctypes.data
    depth, read = np.int64(constants[_QUEUE_DEPTH]), constants[_READ]
    while True:
        while load_i64(core, _WAITS) < 0 and not load_i64(core, _ENDED):
            i = load_i64(core, _AT)
            if i == load_i64(core, _COUNT):
                i, count = 0, _fill(flat, blocks, c, words, gm)
                store_i64(core, _COUNT, count)
                add(core, RECORDS, count)
                if count == 0:
                    store_i64(core, _ENDED, 1)
                    add_real(core, CLOCK, load_i64(core, _CURSOR + ISSUED))
                    store_i64(core, FAULTY, load_i64(core, _CURSOR + PC))
                    if load_i64(core, _CURSOR + FAULT):
                        return load_i64(core, _CURSOR + FAULT)
                    break
            record = block + i * 8 * WIDTH
            store_i64(core, _AT, i)
            if _stalled(core, record, depth, read):
                break
            store_i64(core, _AT, i + 1)
            e, row = load_i64(record, QUEUE), rows + load_i64(record, ROW) * 8 * ROW_WORDS
            if e >= 0:
                if not load_i64(record, NOOP) and not is_costed(row, record):
                    cost(row, blocks, c, i, constants)
                fault = _enqueue(core, row, record, e)
                if fault:
                    store_i64(core, FAULTY, load_i64(record, ROW))
                    return fault
                woken |= 1 << e
        if not woken:
            return 0
        for e in range(1, ENGINES):
            if woken >> e & 1:
                bits = _execute(core, shared, e, now)
                if bits < 0:
                    return OVERFLOW
                woken = woken & ~(1 << e) | bits


@inline
def _core(shared, i):  # type: ignore[no-untyped-def]
    """Number, address, engine and queue entry of event i."""
    event = load_i64(shared, _EVENT + i)
    c, e = event >> _SHIFT, event & ((1 << _SHIFT) - 1)
    core = load_i64(shared, _CORES) + c * 8 * CORE_WORDS
    return c, core, e, _QUEUE + (e * SLOTS + ((load_i64(core, _STARTED + e) - 1) & (SLOTS - 1))) * 8


@inline
def _next_event(shared):  # type: ignore[no-untyped-def]
    """The first event that is due and the first transfer to be done: time and index, work and index."""
    begin, done, first, last = np.inf, np.inf, -1, -1
    for i in range(load_i64(shared, _LIVE)):
        _, core, e, _ = _core(shared, i)
        if real(core, _BEGIN + e) < begin:
            begin, first = real(core, _BEGIN + e), i
        if real(core, _DONE + e) < done:
            done, last = real(core, _DONE + e), i
    return begin, first, done, last


@inline
def _end(core, shared, i, e, q, now):  # type: ignore[no-untyped-def]
    """Event i is over."""
    add(shared, _LIVE, -1)
    store_i64(shared, _EVENT + i, load_i64(shared, _EVENT + load_i64(shared, _LIVE)))
    store_i64(core, _MOVING + e, 0)
    _finish(core, shared, e, q, real(core, _START + e), now)


@jit
def _deliver(words, source, others, counter):  # type: ignore[no-untyped-def]
    """A signal of core `source` arrives: at the other cores, or at its own."""
    for c in range(words.shape[0]):
        if (c != source) == others:
            words[c, _VISIBLE + counter] += 1


@jit
def simulate(flat: Flat, machine: Machine, gm: NDArray[np.uint8], constants: NDArray[np.float64]) -> tuple[int, int, float]:  # fmt: skip
    """Runs a launch to its end: a fault or 0, the core (its word FAULTY has the row), and the time of the last event."""
    words, blocks, shared = machine.cores, machine.blocks, machine.shared.ctypes.data
    port, path = constants[_PORT], constants[_PATH]
    alone, everyone = min(path, port), (1 << ENGINES) - 2
    now, work, c = 0.0, 0.0, 0
    mail, sent, received = np.zeros((16, 3)), 0, 0
    for c in range(words.shape[0]):
        fault = _advance(flat, words, blocks, gm, constants, shared, c, 0, now)
        if fault:
            return fault, c, now
    while True:
        begin, first, done, last = _next_event(shared)
        active = load_i64(shared, _ACTIVE)
        rate = min(path, port / max(active, 1))
        end = now + (done - work) / rate if active else np.inf
        arrival = mail[received % len(mail), 0] if received < sent else np.inf
        time = min(begin, end, arrival)
        if time == np.inf:
            break
        work, now = work + rate * (time - now) if active else 0.0, time
        fault = 0
        if end == time:
            c, core, e, q = _core(shared, last)
            work = done
            store_i64(shared, _ACTIVE, active - 1)
            add_real(core, PORT + e, now - real(core, _START + e) - real(core, q + _FIXED) - real(core, q + _BYTES) / alone)
            _end(core, shared, last, e, q, now)
            fault = _advance(flat, words, blocks, gm, constants, shared, c, 1 << e, now)
        elif arrival == time:
            source = np.int64(mail[received % len(mail), 1])
            _deliver(words, source, True, np.int64(mail[received % len(mail), 2]))
            received += 1
            for c in range(words.shape[0]):
                if c != source and not fault:
                    fault = _advance(flat, words, blocks, gm, constants, shared, c, everyone, now)
        else:
            c, core, e, q = _core(shared, first)
            if load_i64(core, q + _KIND) == _SIGNAL:
                if sent - received == len(mail):
                    mail = np.concatenate((mail[received % len(mail) :], mail[: received % len(mail)], np.zeros((len(mail), 3))))
                    sent, received = sent - received, 0
                mail[sent % len(mail), 0], mail[sent % len(mail), 1] = now + constants[_LATENCY], c
                mail[sent % len(mail), 2] = load_i64(core, q + _ARGUMENT)
                sent += 1
                _deliver(words, c, False, load_i64(core, q + _ARGUMENT))
                _end(core, shared, first, e, q, now)
                fault = _advance(flat, words, blocks, gm, constants, shared, c, everyone, now)
            else:
                put_real(core, _BEGIN + e, np.inf)
                put_real(core, _DONE + e, work + real(core, q + _BYTES))
                store_i64(shared, _ACTIVE, active + 1)
        if fault:
            return fault, c, now
    for c in range(words.shape[0]):
        if not words[c, _ENDED] or np.any(words[c, _ISSUED:_STARTED] != words[c, _STARTED:_MOVING]):
            return DEADLOCK, c, now
    return 0, 0, now
