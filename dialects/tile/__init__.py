"""The tile dialect: one kernel as loops over on-chip tiles, before addresses and tokens are chosen.

A `tile.kernel` is a function of global-memory buffers and index scalars. Its ops name buffers, not addresses; each op
is one operation of one engine (`runtime/isa.py`) on *boxes*: an element offset and element strides in a buffer, with
the extents that all operands of the op share.

    tile.kernel @relu(%x: !tile.buffer<1000x64xf16, gm>, %y: !tile.buffer<1000x64xf16, gm>) {
      tile.for %m = 0 to "1000" step 128 {
        %t = tile.alloc : !tile.buffer<128x64xf16, ub, 2>
        tile.load %t["0" : 64, 1], %x["64*i0" : 64, 1] extents ["clamp(1000 - i0, 128)", "64"] at (%m)
        tile.map %t["0" : 64, 1], %t["0" : 64, 1] extents ["clamp(1000 - i0, 128)", "64"] fields {fn = "relu"} at (%m)
        tile.store %y["64*i0" : 64, 1], %t["0" : 64, 1] extents ["clamp(1000 - i0, 128)", "64"] at (%m)
      }
    }

Grammar:

    kernel  = tile.kernel @NAME ( %ARG: (TYPE | index), … ) { op … }
    op      = tile.for %i = 0 to EXPR step N [add N] [at (%i, …)] { op … }
            | %b = tile.alloc : TYPE
            | %i, … = tile.grid N, …                    coordinates of the core in a grid; outside all loops
            | %r = tile.scalar FN EXPR, EXPR [at (%i, …)]   min, max, or div: the quotient rounded down
            | tile.OP box, … extents [EXPR, …] [fields {NAME = EXPR, …}] [at (%i, …)]
    box     = %b [ EXPR : STRIDE, … ] [ago N]           the destination first; N: the slot of N iterations ago
    TYPE    = !tile.buffer< SHAPE x ELEMENT, gm | l1 | l0a | l0b | l0c | ub [, SLOTS] >
    EXPR    = a field expression (runtime/expr.py) in quotes; enumerated fields by name, floats as numbers

In an expression i0, i1 … are the op's own index operands (`at`): loop indices, which count by the step of their loop,
index arguments of the kernel, coordinates of the core in a grid, or scalars; `core` is the core's number. In
`%i, %j, %k = tile.grid 4, 2` the core is (%i·4 + %j)·2 + %k with %j < 4 and %k < 2. A buffer with n slots belongs to
the loop around its `tile.alloc`: each iteration uses the next slot. Strides belong to the extents from left to right; 0
repeats an element. Extents of 0 make the op do nothing. Elements of 4 bits stand two in a byte: boxes of them begin
with a byte, and so do their rows; an odd extent takes its last byte whole.

`ops.py` has the structure, `engine_ops.py` the operations, `rules.py` what they demand of their boxes, `builder.py`
makes kernels in Python.
"""

from .attributes import (
    DTYPES,
    HALVES,
    LANES,
    NAMES,
    SIZES,
    SPACES,
    BufferType,
    ExprsAttr,
    FieldsAttr,
    ShapeAttr,
    StridesAttr,
)
from .engine_ops import (
    ENGINE_OPS,
    DrainOp,
    FeedAOp,
    FeedBOp,
    FeedQOp,
    FillOp,
    FoldOp,
    GatherOp,
    Im2colOp,
    IotaOp,
    LoadOp,
    MapOp,
    MmaDwOp,
    MmaOp,
    MoveOp,
    ReduceOp,
    ScatterOp,
    StoreOp,
    Tile,
)
from .footprint import capacity, footprint
from .ops import AllocOp, ForOp, GridOp, KernelOp, Operand, ScalarOp, TileOp, walk_loops

__all__ = [
    "DTYPES", "HALVES", "LANES", "NAMES", "SIZES", "SPACES",
    "BufferType", "ExprsAttr", "FieldsAttr", "ShapeAttr", "StridesAttr",
    "ENGINE_OPS", "AllocOp", "DrainOp", "FeedAOp", "FeedBOp", "FeedQOp", "FillOp", "FoldOp", "ForOp", "GatherOp",
    "GridOp", "Im2colOp", "IotaOp", "KernelOp", "LoadOp", "MapOp", "MmaDwOp", "MmaOp", "MoveOp", "Operand", "ReduceOp",
    "ScalarOp", "ScatterOp", "StoreOp", "Tile", "TileOp", "capacity", "footprint", "walk_loops",
]  # fmt: skip
