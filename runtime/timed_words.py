"""Where the timing keeps its state: the words of a core, of a row, and of all cores together (see `timeline.py`)."""

from . import formulas, isa

ENGINES = len(isa.Engine)
TOKENS = ENGINES * ENGINES * isa.TOKEN_IDS
SLOTS = 128
"""Places of a queue: a power of two above the depth of any target (64), since the entry under way has left the
queue but keeps its place."""
WATCHED = 10
"""Fields that the cost of a row may depend on."""
PLAIN, SET, WAIT, GRANT, SIGNAL, AWAIT = range(6)
_NAMES = ("queue_depth", "gm_port", "gm_path", "fixed_read", "signal_latency")
QUEUE_DEPTH, GM_PORT, GM_PATH, FIXED_READ, SIGNAL_LATENCY = (formulas.CONSTANTS.index(name) for name in _NAMES)

# The words of a core. Integers:
NUMBER, COUNT, AT, WAITS, ENDED, RECORDS, FAULTY = range(7)
"""The core's number; records in its block; the next one; the queue that the sequencer waits for, or -1; whether it
has ended; records in all; the row of a fault."""
ISSUED, STARTED, MOVING = 8, 16, 24
"""By engine: entries issued, entries started, whether the last of them is an event to come."""
VARIABLES, RINGS, TRIPS, CURSOR = 32, 80, 96, 104
SETS, TAKEN, GRANTED = 112, 112 + TOKENS, 112 + 2 * TOKENS
VISIBLE = 112 + 3 * TOKENS
"""Counters as the core sees them."""
REALS = VISIBLE + isa.COUNTERS
# Doubles, by engine from FREE on:
CLOCK, GM_BYTES, CUBE = range(REALS, REALS + 3)
"""Time of the sequencer; bytes and cycles of a full cube issued so far."""
FREE, BUSY, TOKEN, STARVED, PORT = range(REALS + 8, REALS + 48, 8)
"""End of the last entry; executing; waiting for a token or counter; waiting for the sequencer; what sharing the
port adds."""
EVENT_BEGIN, EVENT_DONE, EVENT_START = range(REALS + 48, REALS + 72, 8)
"""Of an event: when it is due, or its transfer begins; the work of the port at which that is done; the start of its
entry."""
STARTS = REALS + 72
"""Start of the last entries."""
ENTRIES = STARTS + ENGINES * SLOTS
ENTERED, ENTRY_CYCLES, ENTRY_BYTES, ENTRY_ROW, KIND, ARGUMENT, VALUE = range(7)
TIMES = ENTRIES + ENGINES * SLOTS * 8
"""End of the last 16 sets of a token."""
CORE_WORDS = TIMES + TOKENS * 16

# The words of a row: its cost (doubles), and the fields (plus one, six bits each) and values that it holds for.
ROW_CYCLES, ROW_BYTES, ROW_CUBE, ROW_BUSY, WATCH, SEEN = range(6)
ROW_WORDS = SEEN + WATCHED
EVENT_WORDS = 6
"""A traced event, doubles: core, engine, row, enter, start, end."""

# The words that all cores share: addresses; the trace's length and limit; records in a block; live events and
# transfers; the constants; of the program head, bases, modifiers, number of rows, global memory, its size; then
# each event's core and engine.
CORES, ROWS, TRACE, EVENTS, MOST_EVENTS, BLOCKS, BLOCK_SIZE, LIVE, ACTIVE, CONSTANTS, PROGRAM = range(11)
FIRST_EVENT = PROGRAM + 6
EVENT_SHIFT = 8
