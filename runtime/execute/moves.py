"""Moves of bytes: load, store, move, fill."""

from ..jit import inline, kernel
from ..numerics.bits import load_i32, load_i64, load_u8, load_u16, store_i8, store_i16, store_i32, store_i64
from .core import BAD_SPACE, GM, L1, OK, UB, bad_value, box5, fault, memory, positions
from .lanes import copy_bytes

LOAD, STORE, MOVE, FILL = (positions(name) for name in ("load", "store", "move", "fill"))
assert (LOAD.dst, LOAD.n0, LOAD.esize, LOAD.d0) == (STORE.dst, STORE.n0, STORE.esize, STORE.d0)


@inline
def bad_size(size: int) -> bool:
    """Whether no element has this size."""
    return size != 1 and size != 2 and size != 4 and size != 8


@kernel
def scatter(dst: int, d: int, src: int, s: int, count: int, size: int) -> None:
    """Copies `count` elements between byte strides."""
    if size == 1:
        for i in range(count):
            store_i8(dst + i * d, 0, load_u8(src + i * s, 0))
    elif size == 2:
        for i in range(count):
            store_i16(dst + i * d, 0, load_u16(src + i * s, 0))
    elif size == 4:
        for i in range(count):
            store_i32(dst + i * d, 0, load_i32(src + i * s, 0))
    else:
        for i in range(count):
            store_i64(dst + i * d, 0, load_i64(src + i * s, 0))


@kernel
def copy_box(
    dst: int,
    src: int,
    n0: int,
    n1: int,
    n2: int,
    n3: int,
    length: int,
    d0: int,
    d1: int,
    d2: int,
    d3: int,
    s0: int,
    s1: int,
    s2: int,
    s3: int,
) -> None:
    """Copies runs of `length` bytes, joining those that lie end to end on both sides."""
    if n3 == 1 or (d3 == length and s3 == length):
        n3, length = 1, length * n3
        if n2 == 1 or (d2 == length and s2 == length):
            n2, length = 1, length * n2
            if n1 == 1 or (d1 == length and s1 == length):
                n1, length = 1, length * n1
    for i0 in range(n0):
        for i1 in range(n1):
            for i2 in range(n2):
                to = dst + i0 * d0 + i1 * d1 + i2 * d2
                at = src + i0 * s0 + i1 * s1 + i2 * s2
                for i3 in range(n3):
                    copy_bytes(to + i3 * d3, at + i3 * s3, length)


@kernel
def scatter_box(
    dst: int,
    src: int,
    n0: int,
    n1: int,
    n2: int,
    n3: int,
    n4: int,
    size: int,
    d0: int,
    d1: int,
    d2: int,
    d3: int,
    d4: int,
    s0: int,
    s1: int,
    s2: int,
    s3: int,
    s4: int,
) -> None:
    """Copies elements of `size` bytes one by one."""
    for i0 in range(n0):
        for i1 in range(n1):
            for i2 in range(n2):
                for i3 in range(n3):
                    to = dst + i0 * d0 + i1 * d1 + i2 * d2 + i3 * d3
                    at = src + i0 * s0 + i1 * s1 + i2 * s2 + i3 * s3
                    scatter(to, d4, at, s4, n4, size)


@inline
def check_side(
    record: int, core: int, space: int, writes: int, address: int, n: int, strides: int, inner: int, align: int
) -> int:
    """Checks a side of a transfer. Words of the record: its address, the first extent, its first stride; `inner`: bytes
    between its elements."""
    size, count = load_i64(record, n + 5), load_i64(record, n + 4)
    length = size
    if inner == size:
        length, count = count * size, 1
    n0, n1, n2, n3 = load_i64(record, n), load_i64(record, n + 1), load_i64(record, n + 2), load_i64(record, n + 3)
    s0, s1, s2, s3 = (
        load_i64(record, strides),
        load_i64(record, strides + 1),
        load_i64(record, strides + 2),
        load_i64(record, strides + 3),
    )
    at = load_i64(record, address)
    return box5(core, space, writes, address, at, align, length, n0, s0, n1, s1, n2, s2, n3, s3, count, inner)


@inline
def check_transfer(record: int, core: int, load: int, space: int, outer: int) -> int:
    """Checks both sides of a transfer; `outer`: bytes between elements in GM, where runs may begin anywhere."""
    size = load_i64(record, LOAD.esize)
    align = 1 if outer == size else size
    if load:
        status = check_side(record, core, space, 1, LOAD.dst, LOAD.n0, LOAD.d0, size, size)
        if status == OK:
            status = check_side(record, core, GM, 0, LOAD.src, LOAD.n0, LOAD.s0, outer, align)
    else:
        status = check_side(record, core, space, 0, STORE.src, STORE.n0, STORE.s0, size, size)
        if status == OK:
            status = check_side(record, core, GM, 1, STORE.dst, STORE.n0, STORE.d0, outer, align)
    return status


@kernel
def transfer(record: int, core: int, load: int) -> int:
    """`load`, or `store`, with GM on one side and L1 or UB on the other."""
    size, space = load_i64(record, LOAD.esize), load_i64(record, LOAD.space if load else STORE.space)
    if bad_size(size):
        return bad_value(core, record, LOAD.esize, 1, 8)
    if space != L1 and space != UB:
        return fault(core, BAD_SPACE, LOAD.space if load else STORE.space, space, L1, UB, 0)
    outer = load_i64(record, LOAD.s4 if load else STORE.d4)
    status = check_transfer(record, core, load, space, outer)
    if status != OK:
        return status
    n, d, s = LOAD.n0, LOAD.d0, LOAD.s0 if load else STORE.s0
    n0, n1, n2, n3 = load_i64(record, n), load_i64(record, n + 1), load_i64(record, n + 2), load_i64(record, n + 3)
    d0, d1, d2, d3 = load_i64(record, d), load_i64(record, d + 1), load_i64(record, d + 2), load_i64(record, d + 3)
    s0, s1, s2, s3 = load_i64(record, s), load_i64(record, s + 1), load_i64(record, s + 2), load_i64(record, s + 3)
    n4 = load_i64(record, n + 4)
    dst = memory(core, space if load else GM, load_i64(record, LOAD.dst))
    src = memory(core, GM if load else space, load_i64(record, LOAD.src if load else STORE.src))
    if outer == size:
        copy_box(dst, src, n0, n1, n2, n3, n4 * size, d0, d1, d2, d3, s0, s1, s2, s3)
    elif load:
        scatter_box(dst, src, n0, n1, n2, n3, n4, size, d0, d1, d2, d3, size, s0, s1, s2, s3, outer)
    else:
        scatter_box(dst, src, n0, n1, n2, n3, n4, size, d0, d1, d2, d3, outer, s0, s1, s2, s3, size)
    return OK


@kernel
def move(record: int, core: int) -> int:
    """UB to L1."""
    size = load_i64(record, MOVE.esize)
    if bad_size(size):
        return bad_value(core, record, MOVE.esize, 1, 8)
    dst, src = load_i64(record, MOVE.dst), load_i64(record, MOVE.src)
    n0, n1, length = load_i64(record, MOVE.n0), load_i64(record, MOVE.n1), load_i64(record, MOVE.n2) * size
    d0, d1, s0, s1 = (
        load_i64(record, MOVE.d0),
        load_i64(record, MOVE.d1),
        load_i64(record, MOVE.s0),
        load_i64(record, MOVE.s1),
    )
    status = box5(core, UB, 0, MOVE.src, src, size, length, n0, s0, n1, s1, 1, 0, 1, 0, 1, 0)
    if status == OK:
        status = box5(core, L1, 1, MOVE.dst, dst, size, length, n0, d0, n1, d1, 1, 0, 1, 0, 1, 0)
    if status == OK:
        copy_box(memory(core, L1, dst), memory(core, UB, src), 1, 1, n0, n1, length, 0, 0, d0, d1, 0, 0, s0, s1)
    return status


@kernel
def fill(record: int, core: int) -> int:
    """A constant into L1 or UB: the first run by elements, the others as copies of it."""
    size, space = load_i64(record, FILL.esize), load_i64(record, FILL.space)
    if bad_size(size):
        return bad_value(core, record, FILL.esize, 1, 8)
    if space != L1 and space != UB:
        return fault(core, BAD_SPACE, FILL.space, space, L1, UB, 0)
    n0, n1, n2 = load_i64(record, FILL.n0), load_i64(record, FILL.n1), load_i64(record, FILL.n2)
    d0, d1, at = load_i64(record, FILL.d0), load_i64(record, FILL.d1), load_i64(record, FILL.dst)
    status = box5(core, space, 1, FILL.dst, at, size, n2 * size, n0, d0, n1, d1, 1, 0, 1, 0, 1, 0)
    if status != OK:
        return status
    dst = memory(core, space, at)
    scatter(dst, size, record + 8 * FILL.pattern, 0, n2, size)
    for i0 in range(n0):
        for i1 in range(n1):
            copy_bytes(dst + i0 * d0 + i1 * d1, dst, n2 * size)
    return OK
