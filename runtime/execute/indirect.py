"""Moves whose places in GM an index tile in UB names: gather, scatter."""

from ..jit import kernel
from ..numerics.bits import load_i32, load_i64
from .core import BAD_INDEX, BAD_SPACE, GM, L1, OK, UB, bad_value, box5, fault, memory, positions
from .lanes import copy_bytes
from .moves import bad_size

BOX = positions("gather")
assert tuple(BOX) == tuple(positions("scatter"))


@kernel
def check_indirect(record: int, core: int, gathers: int) -> int:
    """Checks the index tile and both sides of a transfer, whatever the indices are."""
    size, space, rows = load_i64(record, BOX.esize), load_i64(record, BOX.space), load_i64(record, BOX.rows)
    if bad_size(size):
        return bad_value(core, record, BOX.esize, 1, 8)
    if rows < 1 or rows > 1 << 31:
        return bad_value(core, record, BOX.rows, 1, 1 << 31)
    if space != L1 and space != UB:
        return fault(core, BAD_SPACE, BOX.space, space, L1, UB, 0)
    length, pitch = load_i64(record, BOX.n3) * size, load_i64(record, BOX.pitch)
    n0, n1, n2 = load_i64(record, BOX.n0), load_i64(record, BOX.n1), load_i64(record, BOX.n2)
    d0, d1, d2 = load_i64(record, BOX.d0), load_i64(record, BOX.d1), load_i64(record, BOX.d2)
    s0, s1, s2 = load_i64(record, BOX.s0), load_i64(record, BOX.s1), load_i64(record, BOX.s2)
    x0, x1, x2 = load_i64(record, BOX.x0), load_i64(record, BOX.x1), load_i64(record, BOX.x2)
    dst, src, at = load_i64(record, BOX.dst), load_i64(record, BOX.src), load_i64(record, BOX.index)
    status = box5(core, UB, 0, BOX.index, at, 4, 4, n0, x0, n1, x1, n2, x2, 1, 0, 1, 0)
    if status == OK and gathers:
        status = box5(core, space, 1, BOX.dst, dst, size, length, n0, d0, n1, d1, n2, d2, 1, 0, 1, 0)
        if status == OK:
            status = box5(core, GM, 0, BOX.src, src, 1, length, n0, s0, n1, s1, n2, s2, rows, pitch, 1, 0)
    elif status == OK:
        status = box5(core, space, 0, BOX.src, src, size, length, n0, s0, n1, s1, n2, s2, 1, 0, 1, 0)
        if status == OK:
            status = box5(core, GM, 1, BOX.dst, dst, 1, length, n0, d0, n1, d1, n2, d2, rows, pitch, 1, 0)
    return status


@kernel
def indirect(record: int, core: int, gathers: int) -> int:
    """`gather`, or `scatter`: run by run in ascending order; stops at the first index that names no row."""
    status = check_indirect(record, core, gathers)
    if status != OK:
        return status
    length, rows = load_i64(record, BOX.n3) * load_i64(record, BOX.esize), load_i64(record, BOX.rows)
    n0, n1, n2 = load_i64(record, BOX.n0), load_i64(record, BOX.n1), load_i64(record, BOX.n2)
    d0, d1, d2 = load_i64(record, BOX.d0), load_i64(record, BOX.d1), load_i64(record, BOX.d2)
    s0, s1, s2 = load_i64(record, BOX.s0), load_i64(record, BOX.s1), load_i64(record, BOX.s2)
    x0, x1, x2 = load_i64(record, BOX.x0), load_i64(record, BOX.x1), load_i64(record, BOX.x2)
    from_pitch = load_i64(record, BOX.pitch) if gathers else 0
    to_pitch = 0 if gathers else load_i64(record, BOX.pitch)
    space = load_i64(record, BOX.space)
    dst = memory(core, space if gathers else GM, load_i64(record, BOX.dst))
    src = memory(core, GM if gathers else space, load_i64(record, BOX.src))
    index = memory(core, UB, load_i64(record, BOX.index))
    for i0 in range(n0):
        for i1 in range(n1):
            for i2 in range(n2):
                named = load_i32(index + i0 * x0 + i1 * x1 + i2 * x2, 0)
                row = named + rows if named < 0 else named
                if row < 0 or row >= rows:
                    return fault(core, BAD_INDEX, BOX.index, named, rows, 0, 0)
                to = dst + i0 * d0 + i1 * d1 + i2 * d2 + row * to_pitch
                copy_bytes(to, src + i0 * s0 + i1 * s1 + i2 * s2 + row * from_pitch, length)
    return OK
