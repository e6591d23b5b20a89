"""A core as a block of 64-bit words, and the checks that every operand passes before a byte is touched.

Compiled code gets two addresses: `record`, an evaluated row (its fields from word `FIELDS` on), and `core`, the block
below. It returns `OK`, `BLOCKED` (a wait or await that cannot go on yet) or `FAULT`, whose particulars then stand in
the block.
"""

from collections import namedtuple
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from .. import isa, jit
from ..numerics.bits import i64, load_i64, store_i64

Words = npt.NDArray[np.int64]

OK, BLOCKED, FAULT, MORE = 0, 1, 2, 3

# The record of a row.
ROW, OPCODE, ENGINE, NOOP, FIELDS = 0, 1, 2, 3, 4

# The block of a core, in words.
SPACES = len(isa.Space)
BASE = 0
"""Host address of each memory."""
SIZE = BASE + SPACES
TOP = SIZE + SPACES
"""End of the bytes written so far, by memory: what the next kernel has to poison."""
TOKENS = TOP + SPACES
COUNTERS = TOKENS + 1
ROW_COUNTS = COUNTERS + 1
"""Address of (overflow, invalid, wide) for each row."""
ROW_COUNTERS = 3
SCRATCH = ROW_COUNTS + 1
CARRY = SCRATCH + 1
"""Address of two words for each word of UB: lanes of integer reductions with what goes beyond 32 bits."""
BLOCK = CARRY + 1
"""Address of the records that the generator wrote, their number, and the next one to execute."""
COUNT = BLOCK + 1
AT = COUNT + 1
PROGRESS = AT + 1
"""Entries executed."""
FAULT_KIND = PROGRESS + 1
FAULT_RECORD = FAULT_KIND + 1
FAULT_FIELD = FAULT_RECORD + 1
FAULT_VALUES = FAULT_FIELD + 1
WORDS = FAULT_VALUES + 4

# Kinds of faults; `emulator.py` has their texts.
OUT_OF_BOUNDS, MISALIGNED, BAD_VALUE, BAD_SPACE, TOKEN_ID, TOKEN_OVERFLOW, COUNTER_ID, BAD_INDEX = range(1, 9)

L1, L0A, L0B, L0C, UB, GM = (int(isa.Space[name]) for name in ("L1", "L0A", "L0B", "L0C", "UB", "GM"))


def positions(name: str) -> Any:
    """The word of each field of an instruction in its record, as attributes."""
    fields = [spec.name for spec in isa.BY_NAME[name].fields]
    kind = cast(Any, namedtuple)(name.upper(), fields)  # a named tuple, since compiled code knows its fields
    return kind(*range(FIELDS, FIELDS + len(fields)))


@jit.inline
def fault(core: int, kind: int, field: int, a: int, b: int, c: int, d: int) -> int:
    """Writes down a fault; `field` is the word of the record that it concerns."""
    store_i64(core, FAULT_KIND, kind)
    store_i64(core, FAULT_FIELD, field)
    store_i64(core, FAULT_VALUES, a)
    store_i64(core, FAULT_VALUES + 1, b)
    store_i64(core, FAULT_VALUES + 2, c)
    store_i64(core, FAULT_VALUES + 3, d)
    return FAULT


@jit.inline
def memory(core: int, space: int, address: int) -> int:
    """The host address of a byte of GM, L1, UB or L0C."""
    return load_i64(core, BASE + space) + address


@jit.inline
def image(core: int, space: int, address: int, size: int) -> int:
    """The host address of an element of L0A or L0B, which hold a word of 4 bytes for each element.

    Elements of 4, 2 and 1 bytes have images of their own, one behind the other, so that buffers of different types at
    disjoint byte addresses stay disjoint.
    """
    return load_i64(core, BASE + space) + load_i64(core, SIZE + space) * (4 // size - 1) + address // size * 4


@jit.inline
def element_size(dtype: int) -> int:
    """Bytes of an element of a type; 0 for no type."""
    if dtype == 2 or dtype == 5:
        return 4
    if dtype == 0 or dtype == 1:
        return 2
    return 1 if dtype == 3 or dtype == 4 or dtype == 6 else 0


@jit.kernel
def box5(
    core: int,
    space: int,
    writes: int,
    field: int,
    address: int,
    align: int,
    length: int,
    n0: int,
    s0: int,
    n1: int,
    s1: int,
    n2: int,
    s2: int,
    n3: int,
    s3: int,
    n4: int,
    s4: int,
) -> int:
    """Checks a box of runs of `length` bytes. Extents are positive; f64 keeps wild strides from wrapping around."""
    low = float(address)
    high = low + float(length)
    seen = address
    for n, s in ((n0, s0), (n1, s1), (n2, s2), (n3, s3), (n4, s4)):
        if n > 1:
            reach = float(n - 1) * float(s)
            low += min(reach, 0.0)
            high += max(reach, 0.0)
            seen |= s
    size = load_i64(core, SIZE + space)
    if low < 0.0 or high > float(size):
        bound = 9.0e18
        return fault(core, OUT_OF_BOUNDS, field, i64(max(low, -bound)), i64(min(high, bound)), size, space)
    if seen & (align - 1):
        return fault(core, MISALIGNED, field, address, align, space, 0)
    if writes:
        store_i64(core, TOP + space, max(load_i64(core, TOP + space), i64(high)))
    return OK


@jit.kernel
def rows(core: int, space: int, writes: int, field: int, address: int, align: int, length: int, n: int, s: int) -> int:
    """Checks `n` runs of `length` bytes, `s` apart."""
    low = float(address)
    high = low + float(length)
    seen = address
    if n > 1:
        reach = float(n - 1) * float(s)
        low += min(reach, 0.0)
        high += max(reach, 0.0)
        seen |= s
    size = load_i64(core, SIZE + space)
    if low < 0.0 or high > float(size) or seen & (align - 1):
        return box5(core, space, writes, field, address, align, length, n, s, 1, 0, 1, 0, 1, 0, 1, 0)
    if writes:
        store_i64(core, TOP + space, max(load_i64(core, TOP + space), i64(high)))
    return OK


@jit.inline
def bad_value(core: int, record: int, field: int, least: int, most: int) -> int:
    """A fault: the field lies outside `least` … `most`."""
    return fault(core, BAD_VALUE, field, load_i64(record, field), least, most, 0)
