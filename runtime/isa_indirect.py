"""Moves whose places in global memory an index tile names; the last instructions of `isa.py`."""

from .isa_form import Access, Engine, Instruction, Space, fields, runs

_INDEX = "an index tile of i32 in UB"
_PLACE = (
    "j = index[i0·x0 + i1·x1 + i2·x2], plus rows if it is negative; one outside 0 … rows − 1 is a fault, duplicates"
    " take effect in ascending order of (i0, i1, i2)"
)
_INDICES = Access("index", Space.UB, False, runs("n0*x0 n1*x1 n2*x2"), "4")
_MOVED = "n0 * n1 * n2 * up(n3 * esize, T.gm_burst) * T.gm_burst"
"""Bytes that the port moves: whole bursts for each run."""


def _in_memory(field: str, writes: bool) -> Access:
    """The side in GM: whatever the indices, all that they can reach."""
    letter = field[0]
    axes = runs(f"rows*pitch n0*{letter}0 n1*{letter}1 n2*{letter}2")
    return Access(field, Space.GM, writes, axes, "n3 * esize")


# fmt: off
INDIRECT = (
    Instruction(
        "gather", Engine.LOAD, f"Copies runs of elements from the rows of GM that {_INDEX} names.",
        f"dst[i0·d0 + i1·d1 + i2·d2 + i3·esize] = src[j·pitch + i0·s0 + i1·s1 + i2·s2 + i3·esize] for i < n; {_PLACE}",
        fields("""
            dst          address  on chip
            space        space    l1 or ub
            src          address  in GM, of row 0
            index        address  in UB
            rows         integer  rows that there are
            pitch        stride   bytes between rows
            n0,n1,n2=1   extent   runs
            n3           extent   elements of a run
            esize        integer  bytes per element: 1, 2, 4 or 8
            d0,d1,d2=0   stride   bytes between runs on chip
            s0,s1,s2=0   stride   bytes between runs in GM, within a row
            x0,x1,x2=0   stride   bytes between indices
        """),
        cycles="T.fixed_load + n0 * n1 * n2", gm_bytes=_MOVED, extents=("n0", "n1", "n2", "n3"),
        accesses=(
            _INDICES,
            _in_memory("src", writes=False),
            Access("dst", "space", True, runs("n0*d0 n1*d1 n2*d2"), "n3 * esize"),
        ),
    ),
    Instruction(
        "scatter", Engine.STORE, f"Copies runs of elements to the rows of GM that {_INDEX} names.",
        f"dst[j·pitch + i0·d0 + i1·d1 + i2·d2 + i3·esize] = src[i0·s0 + i1·s1 + i2·s2 + i3·esize] for i < n; {_PLACE}",
        fields("""
            dst          address  in GM, of row 0
            space        space    l1 or ub
            src          address  on chip
            index        address  in UB
            rows         integer  rows that there are
            pitch        stride   bytes between rows
            n0,n1,n2=1   extent   runs
            n3           extent   elements of a run
            esize        integer  bytes per element: 1, 2, 4 or 8
            d0,d1,d2=0   stride   bytes between runs in GM, within a row
            s0,s1,s2=0   stride   bytes between runs on chip
            x0,x1,x2=0   stride   bytes between indices
        """),
        cycles="T.fixed_store + n0 * n1 * n2", gm_bytes=_MOVED, extents=("n0", "n1", "n2", "n3"),
        accesses=(
            _INDICES,
            Access("src", "space", False, runs("n0*s0 n1*s1 n2*s2"), "n3 * esize"),
            _in_memory("dst", writes=True),
        ),
    ),
)
# fmt: on
