"""The vector engine: checks of the operands in UB, then the arithmetic of `runtime/numerics`."""

from .. import isa
from ..jit import inline, kernel
from ..numerics import reduction, vector
from ..numerics.bits import load_f32, load_i64
from ..numerics.functions import FUNCTIONS
from .core import (
    CARRY,
    OK,
    ROW,
    ROW_COUNTERS,
    ROW_COUNTS,
    SCRATCH,
    UB,
    bad_value,
    box5,
    element_size,
    memory,
    positions,
)

VMAP, VREDUCE, IOTA = positions("vmap"), positions("vreduce"), positions("iota")
FUNCTION_COUNT, REDUCTION_COUNT, LAST_TYPE = len(FUNCTIONS), len(isa.REDUCTIONS), max(isa.DTYPES.values())


@inline
def operand(record: int, core: int, writes: int, address: int, strides: int, dtype: int, extents: int) -> int:
    """Checks a box in UB. The words of the record: address, first of three strides, type, first of three extents."""
    size = element_size(load_i64(record, dtype))
    if size == 0:
        return bad_value(core, record, dtype, 0, LAST_TYPE)
    n0, n1, n2 = load_i64(record, extents), load_i64(record, extents + 1), load_i64(record, extents + 2)
    s0, s1, s2 = load_i64(record, strides), load_i64(record, strides + 1), load_i64(record, strides + 2)
    return box5(core, UB, writes, address, load_i64(record, address), size, size, n0, s0, n1, s1, n2, s2, 1, 0, 1, 0)


@inline
def place(record: int, core: int, address: int) -> int:
    """The host address of an operand."""
    return memory(core, UB, load_i64(record, address))


@inline
def counters(record: int, core: int) -> int:
    """The address of the row's counters."""
    return load_i64(core, ROW_COUNTS) + 8 * ROW_COUNTERS * load_i64(record, ROW)


@kernel
def vmap(record: int, core: int) -> int:
    """An elementwise function."""
    if load_i64(record, VMAP.fn) < 0 or load_i64(record, VMAP.fn) >= FUNCTION_COUNT:
        return bad_value(core, record, VMAP.fn, 0, FUNCTION_COUNT - 1)
    bimm, cimm = load_i64(record, VMAP.bimm), load_i64(record, VMAP.cimm)
    status = operand(record, core, 0, VMAP.a, VMAP.a0, VMAP.ta, VMAP.n0)
    if status == OK and not bimm:
        status = operand(record, core, 0, VMAP.b, VMAP.b0, VMAP.tb, VMAP.n0)
    if status == OK and not cimm:
        status = operand(record, core, 0, VMAP.c, VMAP.c0, VMAP.tc, VMAP.n0)
    if status == OK:
        status = operand(record, core, 1, VMAP.dst, VMAP.d0, VMAP.td, VMAP.n0)
    if status != OK:
        return status
    vector.vmap(
        load_i64(record, VMAP.fn),
        load_i64(record, VMAP.n0),
        load_i64(record, VMAP.n1),
        load_i64(record, VMAP.n2),
        place(record, core, VMAP.dst),
        load_i64(record, VMAP.d0),
        load_i64(record, VMAP.d1),
        load_i64(record, VMAP.d2),
        load_i64(record, VMAP.td),
        place(record, core, VMAP.a),
        load_i64(record, VMAP.a0),
        load_i64(record, VMAP.a1),
        load_i64(record, VMAP.a2),
        load_i64(record, VMAP.ta),
        place(record, core, VMAP.b),
        load_i64(record, VMAP.b0),
        load_i64(record, VMAP.b1),
        load_i64(record, VMAP.b2),
        load_i64(record, VMAP.tb),
        place(record, core, VMAP.c),
        load_i64(record, VMAP.c0),
        load_i64(record, VMAP.c1),
        load_i64(record, VMAP.c2),
        load_i64(record, VMAP.tc),
        load_f32(record + 8 * VMAP.immb, 0),
        load_f32(record + 8 * VMAP.immc, 0),
        bimm,
        cimm,
        load_i64(core, SCRATCH),
        counters(record, core),
    )
    return OK


@inline
def reduced(record: int, core: int, state: int, last: int) -> int:
    """Checks the operands of vreduce."""
    n0, n2 = load_i64(record, VREDUCE.n0), load_i64(record, VREDUCE.n2)
    status = operand(record, core, 0, VREDUCE.a, VREDUCE.a0, VREDUCE.ta, VREDUCE.n0)
    if status == OK and state:
        at = load_i64(record, VREDUCE.state)
        status = box5(core, UB, 1, VREDUCE.state, at, 4, 32, n0, 32 * min(n2, 1 << 32), n2, 32, 1, 0, 1, 0, 1, 0)
    if status != OK or not last:
        return status
    size = element_size(load_i64(record, VREDUCE.td))
    if size == 0:
        return bad_value(core, record, VREDUCE.td, 0, LAST_TYPE)
    d0, d2 = load_i64(record, VREDUCE.d0), load_i64(record, VREDUCE.d2)
    return box5(core, UB, 1, VREDUCE.dst, load_i64(record, VREDUCE.dst), size, size, n0, d0, n2, d2, 1, 0, 1, 0, 1, 0)


@kernel
def vreduce(record: int, core: int) -> int:
    """A reduction over the middle axis."""
    if load_i64(record, VREDUCE.fn) < 0 or load_i64(record, VREDUCE.fn) >= REDUCTION_COUNT:
        return bad_value(core, record, VREDUCE.fn, 0, REDUCTION_COUNT - 1)
    if load_i64(record, VREDUCE.start) < 0:
        return bad_value(core, record, VREDUCE.start, 0, 1 << 48)
    first, last = load_i64(record, VREDUCE.first), load_i64(record, VREDUCE.last)
    status = reduced(record, core, not (first and last), last)
    if status != OK:
        return status
    reduction.vreduce(
        load_i64(record, VREDUCE.fn),
        load_i64(record, VREDUCE.n0),
        load_i64(record, VREDUCE.n1),
        load_i64(record, VREDUCE.n2),
        place(record, core, VREDUCE.dst),
        load_i64(record, VREDUCE.d0),
        load_i64(record, VREDUCE.d2),
        load_i64(record, VREDUCE.td),
        place(record, core, VREDUCE.a),
        load_i64(record, VREDUCE.a0),
        load_i64(record, VREDUCE.a1),
        load_i64(record, VREDUCE.a2),
        load_i64(record, VREDUCE.ta),
        place(record, core, VREDUCE.state),
        load_i64(core, CARRY) + 2 * load_i64(record, VREDUCE.state),
        load_i64(record, VREDUCE.start),
        first,
        last,
        load_i64(core, SCRATCH),
        counters(record, core),
    )
    return OK


@kernel
def iota(record: int, core: int) -> int:
    """An affine function of the position."""
    status = operand(record, core, 1, IOTA.dst, IOTA.d0, IOTA.td, IOTA.n0)
    if status != OK:
        return status
    vector.iota(
        place(record, core, IOTA.dst),
        load_i64(record, IOTA.d0),
        load_i64(record, IOTA.d1),
        load_i64(record, IOTA.d2),
        load_i64(record, IOTA.td),
        load_i64(record, IOTA.n0),
        load_i64(record, IOTA.n1),
        load_i64(record, IOTA.n2),
        load_i64(record, IOTA.base),
        load_i64(record, IOTA.c0),
        load_i64(record, IOTA.c1),
        load_i64(record, IOTA.c2),
        load_i64(core, SCRATCH),
    )
    return OK
