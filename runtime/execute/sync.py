"""Tokens between the engines of a core, counters between cores, and the dispatch of a record to its family."""

from .. import isa
from ..jit import inline, kernel
from ..numerics.bits import load_i64, store_i64
from . import cube, dequantise, drain, feeds, im2col, indirect, moves, vector
from .core import (
    BLOCKED,
    COUNTER_ID,
    COUNTERS,
    FAULT,
    FAULT_RECORD,
    FIELDS,
    NOOP,
    OK,
    OPCODE,
    PROGRESS,
    TOKEN_ID,
    TOKEN_OVERFLOW,
    TOKENS,
    fault,
    positions,
)

ENGINES, TOKEN_IDS, TOKEN_LIMIT, COUNTER_COUNT = len(isa.Engine), isa.TOKEN_IDS, isa.TOKEN_LIMIT, isa.COUNTERS
PAIRS = ENGINES * ENGINES * TOKEN_IDS
"""Token counts of a core."""
SET, GRANT, SIGNAL, AWAIT = (positions(name) for name in ("set", "grant", "signal", "await"))
_CODE = isa.OPCODE
SET_CODE, WAIT_CODE, GRANT_CODE, SIGNAL_CODE, AWAIT_CODE = (
    _CODE[n] for n in ("set", "wait", "grant", "signal", "await")
)
LOAD, FILL, STORE, MOVE = (_CODE[n] for n in ("load", "fill", "store", "move"))
FEED_A, FEED_B, FEED_Q, IM2COL = (_CODE[n] for n in ("feed_a", "feed_b", "feed_q", "im2col"))
MMA, MMA_DW, FOLD, DRAIN = (_CODE[n] for n in ("mma", "mma_dw", "fold", "drain"))
VMAP, VREDUCE, IOTA = (_CODE[n] for n in ("vmap", "vreduce", "iota"))
GATHER, SCATTER = _CODE["gather"], _CODE["scatter"]
READ = _CODE["read"]


@kernel
def synchronise(record: int, core: int, opcode: int) -> int:
    """Executes set, wait, grant, signal or await; BLOCKED changes nothing."""
    if opcode >= SIGNAL_CODE:
        number = load_i64(record, SIGNAL.counter)
        if number < 0 or number >= COUNTER_COUNT:
            return fault(core, COUNTER_ID, SIGNAL.counter, number, 0, COUNTER_COUNT - 1, 0)
        counter = load_i64(core, COUNTERS) + 8 * number
        if opcode == AWAIT_CODE:
            return OK if load_i64(counter, 0) >= load_i64(record, AWAIT.value) else BLOCKED
        store_i64(counter, 0, load_i64(counter, 0) + 1)
        return OK
    token = load_i64(record, SET.id)
    if token < 0 or token >= TOKEN_IDS:
        return fault(core, TOKEN_ID, SET.id, token, 0, TOKEN_IDS - 1, 0)
    pair = load_i64(record, SET.src) * ENGINES + load_i64(record, SET.dst)
    place = load_i64(core, TOKENS) + 8 * (pair * TOKEN_IDS + token)
    count = load_i64(place, 0)
    if opcode == WAIT_CODE:
        if count == 0:
            return BLOCKED
        store_i64(place, 0, count - 1)
        return OK
    added = load_i64(record, GRANT.n) if opcode == GRANT_CODE else 1
    if added < 0 or count + added > TOKEN_LIMIT:
        return fault(core, TOKEN_OVERFLOW, FIELDS, count, added, token, pair)
    store_i64(place, 0, count + added)
    return OK


@inline
def dispatch(record: int, core: int, opcode: int) -> int:  # noqa: C901 a table, but compiled code has none
    """Executes a record that is no synchronisation."""
    if opcode == LOAD:
        return moves.transfer(record, core, 1)
    if opcode == STORE:
        return moves.transfer(record, core, 0)
    if opcode == FEED_A:
        return feeds.feed_a(record, core)
    if opcode == FEED_B:
        return feeds.feed_b(record, core)
    if opcode == FEED_Q:
        return dequantise.feed_q(record, core)
    if opcode == IM2COL:
        return im2col.im2col(record, core)
    if opcode == MMA:
        return cube.mma(record, core)
    if opcode == DRAIN:
        return drain.drain(record, core)
    if opcode == VMAP:
        return vector.vmap(record, core)
    if opcode == VREDUCE:
        return vector.vreduce(record, core)
    if opcode == IOTA:
        return vector.iota(record, core)
    if opcode == MMA_DW:
        return cube.mma_dw(record, core)
    if opcode == FOLD:
        return cube.fold(record, core)
    if opcode == FILL:
        return moves.fill(record, core)
    if opcode == GATHER:
        return indirect.indirect(record, core, 1)
    if opcode == SCATTER:
        return indirect.indirect(record, core, 0)
    return moves.move(record, core) if opcode == MOVE else OK


@kernel
def step(record: int, core: int) -> int:
    """Executes one record: OK, BLOCKED, or FAULT."""
    opcode = load_i64(record, OPCODE)
    if opcode >= SET_CODE and opcode <= AWAIT_CODE:
        status = synchronise(record, core, opcode)
    elif load_i64(record, NOOP) or opcode == READ:
        status = OK
    else:
        status = dispatch(record, core, opcode)
    if status == OK:
        store_i64(core, PROGRESS, load_i64(core, PROGRESS) + 1)
    elif status == FAULT:
        store_i64(core, FAULT_RECORD, record)
    return status
