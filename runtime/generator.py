"""The block generator: expands a program into records, in one place for the emulator, the timing and the checker.

`flatten` turns rows into arrays once. `next_block` then executes loops and scalar rows itself and writes every
other row, its fields evaluated, as a record of int64, 256 at a time, so that no program is ever expanded whole:

    record    row · opcode · queue · noop · fields … (MAX_FIELDS) · issue

`queue` is the engine whose queue takes the row, -1 for `read`, which the sequencer executes itself (the register is
already set). `noop` is 1 if an extent is 0 or less. `issue` counts the rows sequenced since the record before, this
one included.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import isa
from .encoding import Program, ProgramError
from .expr import CODE, LEVELS, REGISTERS, RINGS, VARIABLES, Expr
from .jit import inline, jit, kernel
from .numerics.bits import i64, load_i32, load_i64, store_i64
from .plan import MOST_ARGUMENTS, R_TOKEN

BLOCK = 256
ROW, OPCODE, QUEUE, NOOP, FIELDS = range(5)
"""Columns of a record; field f of an instruction is in column `FIELDS + f`."""
ISSUE = FIELDS + isa.MAX_FIELDS
WIDTH = ISSUE + 1

PC, ISSUED, FAULT = range(3)
"""`State.cursor`: the next row; rows sequenced since the last record; a fault, or 0. A fault is of the row at `PC`."""
FAULTS = {
    1: "the step of a loop is not positive",
    2: "the divisor is not positive",
    3: "the address lies outside global memory",
    4: "the width is neither 4 nor 8",
}

_QUEUED, _END, _LOOP, _MOV, _MIN, _MAX, _DIV, _MOD, _LESS, _READ = range(10)
_KINDS = {n: i for i, n in enumerate(("end", "loop", "mov", "min", "max", "div", "mod", "less", "read"), _END)}
_CORE, _R0 = CODE["core"], CODE["r0"]
_WRAP = 840
"""lcm(1 … 8): rings are kept modulo this, so that a remainder by n ≤ 8 is a multiplication and a shift."""

H_OPCODE, H_KIND, H_QUEUE, H_COUNT, H_BASE, H_TERMS, H_CLAMPS, H_RINGS, H_STOP = range(9)
H_JUMP, H_LEVEL, H_RING, H_EXTENTS, H_SLOT = range(9, 14)
"""Columns of `Flat.head`. Modifiers of a row lie at [H_TERMS, H_CLAMPS, H_RINGS, H_STOP); extents are field numbers
+ 1, a byte each."""


_HEAD, _MODIFIER = 14, 5
"""Words of a row of `Flat.head` and of `Flat.modifiers`."""


class Flat(NamedTuple):
    """A program as arrays: `head[rows, 14]`, `bases` of all rows one after the other, `modifiers[·, 5]`."""

    head: NDArray[np.int64]
    bases: NDArray[np.int64]
    modifiers: NDArray[np.int64]
    """term: field, x, y, coef · clamp: field, limit · ring: field, ring, offset in 0…n-1, ⌈2¹⁶/n⌉·16 + n, slot"""


class State(NamedTuple):
    """Where the sequencer of a core stands. Only `next_block` writes it."""

    variables: NDArray[np.int64]
    """By variable code: 1, i0…i4, core, r0…r31."""
    rings: NDArray[np.int64]
    trips: NDArray[np.int64]
    cursor: NDArray[np.int64]


def flatten(program: Program) -> Flat:
    """The arrays of a program that `encoding.check` accepts; raises `ProgramError` where a row has no queue."""
    head = np.zeros((len(program), _HEAD), np.int64)
    bases: list[int] = []
    modifiers: list[tuple[int, ...]] = []
    open_loops: list[int] = []
    for number, row in enumerate(program):
        h = head[number]
        h[H_OPCODE], h[H_KIND], h[H_QUEUE] = isa.OPCODE[row.name], _KINDS.get(row.name, _QUEUED), -1
        h[H_COUNT], h[H_BASE], h[H_SLOT] = len(row.fields), len(bases), row.slot
        if h[H_KIND] == _QUEUED:
            h[H_QUEUE] = _queue(number, row.name, row.fields)
        elif row.name == "loop":
            h[H_LEVEL], h[H_RING] = len(open_loops), row["ring"].base
            open_loops.append(number)
        elif row.name == "end":
            begin = open_loops.pop()
            h[H_JUMP], h[H_LEVEL], h[H_RING] = begin + 1, head[begin, H_LEVEL], head[begin, H_RING]
            head[begin, H_JUMP] = number + 1
        extents = [row.instruction.index(name) for name in row.instruction.extents]
        h[H_EXTENTS] = sum(
            (field + 1) << 8 * i for i, field in enumerate(f for f in extents if not _positive(row.fields[f]))
        )
        bases += (field.base for field in row.fields)
        for column, words in zip((H_TERMS, H_CLAMPS, H_RINGS), _modifiers(row.fields), strict=True):
            h[column] = len(modifiers)
            modifiers += words
        h[H_STOP] = len(modifiers)
    words = np.zeros((len(modifiers), _MODIFIER), np.int64)
    for at, word in enumerate(modifiers):
        words[at, : len(word)] = word
    return Flat(head, np.array(bases, np.int64), words)


def new_state(registers: NDArray[np.int64], core: int = 0) -> State:
    """The state at the launch of a kernel on a core; `registers` has 32 entries."""
    variables = np.zeros(len(VARIABLES), np.int64)
    variables[0], variables[_CORE] = 1, core
    variables[_R0:] = registers
    return State(variables, np.zeros(RINGS, np.int64), np.zeros(LEVELS, np.int64), np.zeros(4, np.int64))


def new_block() -> NDArray[np.int64]:
    """Room for the records of one block."""
    return np.zeros((BLOCK, WIDTH), np.int64)


def launch_registers(
    arguments: tuple[int, ...] = (), cores: int = 1, l1: int = 0, ub: int = 0, token: int = 0
) -> NDArray[np.int64]:
    """r0…r31 as docs/program.md §2 has them at a launch."""
    registers = np.zeros(REGISTERS, np.int64)
    registers[: len(arguments)] = arguments
    registers[MOST_ARGUMENTS : R_TOKEN + 1] = cores, l1, ub, token
    return registers


def _queue(number: int, name: str, fields: tuple[Expr, ...]) -> int:
    instruction = isa.BY_NAME[name]
    field = instruction.queue_field
    engine = instruction.engine if field is None else isa.Engine(fields[instruction.index(field)].base)
    if not engine:
        raise ProgramError(f"row {number}: {name}.{field}: scalar; expected an engine with a queue")
    return int(engine)


def _positive(extent: Expr) -> bool:
    return extent.is_constant and extent.base > 0


def _modifiers(fields: tuple[Expr, ...]) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]], list[tuple[int, ...]]]:
    numbered = list(enumerate(fields))
    terms = [(f, CODE[term.x], CODE[term.y], term.coef) for f, field in numbered for term in field.terms]
    clamps = [(f, field.clamp) for f, field in numbered if field.clamp is not None]
    rings = [
        (f, r.loop, r.off % r.n, -(-65536 // r.n) * 16 + r.n, r.slot) for f, field in numbered if (r := field.ring)
    ]
    return [*terms], [*clamps], [*rings]


@jit
def next_block(flat: Flat, state: State, gm: NDArray[np.uint8], out: NDArray[np.int64]) -> int:
    """Writes the next records to `out` and gives their number; 0 when the program has ended or
    `state.cursor[FAULT]` says why not."""
    where = flat.head.ctypes.data, flat.bases.ctypes.data, flat.modifiers.ctypes.data
    core = state.variables.ctypes.data, state.rings.ctypes.data, state.trips.ctypes.data, state.cursor.ctypes.data
    return expand(*where, len(flat.head), *core, gm.ctypes.data, gm.size, out.ctypes.data, len(out))


@kernel
def expand(
    head: int,
    bases: int,
    modifiers: int,
    rows: int,
    variables: int,
    rings: int,
    trips: int,
    cursor: int,
    gm: int,
    gm_size: int,
    out: int,
    most: int,
) -> int:
    """`next_block` by addresses, for at most `most` records."""
    pc, issued, n = load_i64(cursor, PC), load_i64(cursor, ISSUED), 0
    while pc < rows and n < most:
        h, record = head + pc * 8 * _HEAD, out + n * 8 * WIDTH
        kind = load_i64(h, H_KIND)
        issued += 1
        if kind == _END:
            pc = _end(h, pc, variables, rings, trips)
            continue
        _evaluate(h, bases, modifiers, variables, rings, record)
        if kind != _QUEUED:
            fault = 0
            if kind == _READ:
                fault = _read(variables, gm, gm_size, record)
            elif kind == _LOOP:
                pc, fault = _loop(h, pc, variables, trips, record)
            else:
                pc, fault = _scalar(kind, pc, variables, record)
            store_i64(cursor, FAULT, fault)
            if fault:
                break
            if kind != _READ:
                continue
        store_i64(record, ROW, pc)
        store_i64(record, OPCODE, load_i64(h, H_OPCODE))
        store_i64(record, QUEUE, load_i64(h, H_QUEUE))
        store_i64(record, ISSUE, issued)
        noop, extents = 0, load_i64(h, H_EXTENTS)
        while extents:
            noop |= load_i64(record, FIELDS - 1 + (extents & 255)) <= 0
            extents >>= 8
        store_i64(record, NOOP, noop)
        pc, issued, n = pc + 1, 0, n + 1
    store_i64(cursor, PC, pc)
    store_i64(cursor, ISSUED, issued)
    return n


@inline
def _end(h, pc, variables, rings, trips):  # type: ignore[no-untyped-def]
    """Counts an iteration: the next row."""
    level, ring = load_i64(h, H_LEVEL), load_i64(h, H_RING)
    index, finished = load_i64(variables, 1 + level) + 1, load_i64(rings, ring)
    store_i64(variables, 1 + level, index)
    store_i64(rings, ring, 0 if finished == _WRAP - 1 else finished + 1)
    return load_i64(h, H_JUMP) if index < load_i64(trips, level) else pc + 1


@inline
def _evaluate(h, bases, modifiers, variables, rings, record):  # type: ignore[no-untyped-def]
    """The fields of a row into a record: bases, terms, clamps, rings, in this order."""
    base, fields = bases + load_i64(h, H_BASE) * 8, record + FIELDS * 8
    for f in range(load_i64(h, H_COUNT)):
        store_i64(fields, f, load_i64(base, f))
    for m in range(load_i64(h, H_TERMS), load_i64(h, H_CLAMPS)):
        word = modifiers + m * 8 * _MODIFIER
        f, x, y = load_i64(word, 0), load_i64(variables, load_i64(word, 1)), load_i64(variables, load_i64(word, 2))
        store_i64(fields, f, load_i64(fields, f) + load_i64(word, 3) * x * y)
    for m in range(load_i64(h, H_CLAMPS), load_i64(h, H_RINGS)):
        word = modifiers + m * 8 * _MODIFIER
        f = load_i64(word, 0)
        store_i64(fields, f, max(0, min(load_i64(fields, f), load_i64(word, 1))))
    for m in range(load_i64(h, H_RINGS), load_i64(h, H_STOP)):
        word = modifiers + m * 8 * _MODIFIER
        f, x = load_i64(word, 0), load_i64(rings, load_i64(word, 1)) + load_i64(word, 2)
        inverse, slots = load_i64(word, 3) >> 4, load_i64(word, 3) & 15
        store_i64(fields, f, load_i64(fields, f) + (x - (x * inverse >> 16) * slots) * load_i64(word, 4))


@inline
def _loop(h, pc, variables, trips, record):  # type: ignore[no-untyped-def]
    """Enters a loop or skips it: the next row, and a fault or 0."""
    step, level = load_i64(record, FIELDS + 1), load_i64(h, H_LEVEL)
    if step <= 0:
        return pc, 1
    count = -(-load_i64(record, FIELDS) // step) + load_i64(record, FIELDS + 2)
    store_i64(variables, 1 + level, 0)
    store_i64(trips, level, count)
    return (pc + 1 if count > 0 else load_i64(h, H_JUMP)), 0


@inline
def _scalar(kind, pc, variables, record):  # type: ignore[no-untyped-def]
    """Sets a register: the next row, and a fault or 0."""
    b, c = load_i64(record, FIELDS + 1), load_i64(record, FIELDS + 2)
    if kind == _MOV:
        value = b
    elif kind == _MIN:
        value = min(b, c)
    elif kind == _MAX:
        value = max(b, c)
    elif kind == _LESS:
        value = 1 if b < c else 0
    elif c <= 0:
        return pc, 2
    else:
        value = b // c if kind == _DIV else b % c
    store_i64(variables, _R0 + load_i64(record, FIELDS), value)
    return pc + 1, 0


@inline
def _read(variables, gm, gm_size, record):  # type: ignore[no-untyped-def]
    """Loads a register from global memory, little endian and signed; a fault or 0."""
    at, width = load_i64(record, FIELDS + 1), load_i64(record, FIELDS + 2)
    if width != 4 and width != 8:
        return 4
    if at < 0 or at > gm_size - width:
        return 3
    value = load_i64(gm + at, 0) if width == 8 else i64(load_i32(gm + at, 0))
    store_i64(variables, _R0 + load_i64(record, FIELDS), value)
    return 0
