"""The operations of the engines, one class each."""

from typing import ClassVar

from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition

from .attributes import ATTRIBUTES
from .ops import AllocOp, ForOp, GridOp, KernelOp, Operand, ScalarOp, TileOp

FLOATS = "f16 bf16 f32"
NUMBERS = f"{FLOATS} i8 u8"


@irdl_op_definition
class LoadOp(TileOp):
    """Copies a box from global memory to L1 or UB. Elements in GM may be strided, those on chip are next to each
    other.
    """

    name = "tile.load"
    OPERANDS: ClassVar = (Operand("dst", "l1 ub"), Operand("src", "gm", like="dst"))
    INSTRUCTION: ClassVar = "load"


@irdl_op_definition
class FillOp(TileOp):
    """Writes one bit pattern (field `pattern`) into a box of L1 or UB."""

    name = "tile.fill"
    OPERANDS: ClassVar = (Operand("dst", "l1 ub"),)
    RANK: ClassVar = (1, 3)
    INSTRUCTION: ClassVar = "fill"
    FIELDS: ClassVar = "pattern"


@irdl_op_definition
class StoreOp(TileOp):
    """Copies a box from L1 or UB to global memory."""

    name = "tile.store"
    OPERANDS: ClassVar = (Operand("dst", "gm"), Operand("src", "l1 ub", like="dst"))
    INSTRUCTION: ClassVar = "store"


@irdl_op_definition
class MoveOp(TileOp):
    """Copies a box from UB to L1."""

    name = "tile.move"
    OPERANDS: ClassVar = (Operand("dst", "l1"), Operand("src", "ub", like="dst"))
    RANK: ClassVar = (1, 3)
    INSTRUCTION: ClassVar = "move"


@irdl_op_definition
class FeedAOp(TileOp):
    """Brings extents (m, k) from L1 to L0A; a source with strides (1, pitch) is transposed on the way."""

    name = "tile.feed_a"
    OPERANDS: ClassVar = (Operand("dst", "l0a", types=NUMBERS), Operand("src", "l1", like="dst"))
    RANK: ClassVar = (2, 2)
    INSTRUCTION: ClassVar = "feed_a"


@irdl_op_definition
class FeedBOp(TileOp):
    """Brings extents (k, n) from L1 to L0B; a source with strides (1, pitch) is transposed on the way."""

    name = "tile.feed_b"
    OPERANDS: ClassVar = (Operand("dst", "l0b", types=NUMBERS), Operand("src", "l1", like="dst"))
    RANK: ClassVar = (2, 2)
    INSTRUCTION: ClassVar = "feed_b"


@irdl_op_definition
class FeedQOp(TileOp):
    """Brings extents (k, n) of integers, k contiguous (strides 1, pitch), from L1 to L0B as floats: (q − zero)·scale.

    `scale` and `zero` hold a row for each column (strides pitch, 1), in it an element for each `block` of k; `k0` is
    the first k, counted from the beginning of those rows.
    """

    name = "tile.feed_q"
    OPERANDS: ClassVar = (
        Operand("dst", "l0b", types=FLOATS),
        Operand("src", "l1", types="i4 u4 i8 u8"),
        Operand("scale", "l1", axes=(1, -1), types=FLOATS),
        Operand("zero", "l1", axes=(1, -1), optional=True, types="i8 u8"),
    )
    RANK: ClassVar = (2, 2)
    INSTRUCTION: ClassVar = "feed_q"
    FIELDS: ClassVar = "k0 block"


@irdl_op_definition
class Im2colOp(TileOp):
    """Brings extents (m, k) of image patches from a panel in L1 (strides row, pixel, 1) to L0A; geometry in the
    fields.
    """

    name = "tile.im2col"
    OPERANDS: ClassVar = (Operand("dst", "l0a", types=NUMBERS), Operand("src", "l1", axes=(-1, -1, -1), like="dst"))
    RANK: ClassVar = (2, 2)
    INSTRUCTION: ClassVar = "im2col"
    FIELDS: ClassVar = "m0 k0 ow kh kw channels c0 sh sw dh dw ph pw row0 h w pad"


@irdl_op_definition
class MmaOp(TileOp):
    """dst[m, n] = (0 if init else dst) + a[m, k]·b[k, n]; extents (m, n, k)."""

    name = "tile.mma"
    OPERANDS: ClassVar = (
        Operand("dst", "l0c", axes=(0, 1)),
        Operand("a", "l0a", axes=(0, 2), types=NUMBERS),
        Operand("b", "l0b", axes=(2, 1), types=NUMBERS),
    )
    RANK: ClassVar = (3, 3)
    INSTRUCTION: ClassVar = "mma"
    FIELDS: ClassVar = "init"


@irdl_op_definition
class MmaDwOp(TileOp):
    """Depthwise multiply-accumulate; extents (m, groups of 16 channels, taps). `b` is a row of groups·taps·16
    elements.
    """

    name = "tile.mma_dw"
    OPERANDS: ClassVar = (
        Operand("dst", "l0c", axes=(0, -1)),
        Operand("a", "l0a", axes=(0, -1), types=NUMBERS),
        Operand("b", "l0b", axes=(-1,), row=True, types=NUMBERS),
    )
    RANK: ClassVar = (3, 3)
    INSTRUCTION: ClassVar = "mma_dw"
    FIELDS: ClassVar = "init"


@irdl_op_definition
class FoldOp(TileOp):
    """Adds a segment's sum to the total: dst[m, n] = src (if init) or dst + src."""

    name = "tile.fold"
    OPERANDS: ClassVar = (Operand("dst", "l0c", types="f32"), Operand("src", "l0c", types="f32"))
    RANK: ClassVar = (2, 2)
    INSTRUCTION: ClassVar = "fold"
    FIELDS: ClassVar = "init"


@irdl_op_definition
class DrainOp(TileOp):
    """Takes extents (m, n) out of L0C with scale, bias, activation and cast."""

    name = "tile.drain"
    OPERANDS: ClassVar = (
        Operand("dst", "ub l1 gm"),
        Operand("src", "l0c", types="f32 i32"),
        Operand("bias", "ub", axes=(1,), optional=True, row=True, types="f32"),
    )
    RANK: ClassVar = (2, 2)
    INSTRUCTION: ClassVar = "drain"
    FIELDS: ClassVar = "scaled scale act lo hi"


@irdl_op_definition
class MapOp(TileOp):
    """An elementwise function (field `fn`) of up to three boxes; missing ones are the constants `immb`, `immc`."""

    name = "tile.map"
    OPERANDS: ClassVar = (
        Operand("dst", "ub"),
        Operand("a", "ub"),
        Operand("b", "ub", optional=True),
        Operand("c", "ub", optional=True),
    )
    RANK: ClassVar = (1, 3)
    INSTRUCTION: ClassVar = "vmap"
    FIELDS: ClassVar = "fn immb immc"


@irdl_op_definition
class ReduceOp(TileOp):
    """A reduction (field `fn`) over the middle of extents (n0, n1, n2); `state` carries the lanes when it is cut."""

    name = "tile.reduce"
    OPERANDS: ClassVar = (
        Operand("dst", "ub", axes=(0, 1, 2)),
        Operand("a", "ub"),
        Operand("state", "ub", axes=(-1,), optional=True, row=True, types="f32 i32"),
    )
    RANK: ClassVar = (3, 3)
    INSTRUCTION: ClassVar = "vreduce"
    FIELDS: ClassVar = "fn start first last"


@irdl_op_definition
class IotaOp(TileOp):
    """Writes `base + i0·c0 + i1·c1 + i2·c2`."""

    name = "tile.iota"
    OPERANDS: ClassVar = (Operand("dst", "ub"),)
    RANK: ClassVar = (1, 3)
    INSTRUCTION: ClassVar = "iota"
    FIELDS: ClassVar = "base c0 c1 c2"


@irdl_op_definition
class GatherOp(TileOp):
    """Copies runs, extents (n0, n1, n2, run), from the rows of a buffer in global memory that an index tile names to
    L1 or UB. The first stride of `src` is from row to row; field `rows`: how many there are.
    """

    name = "tile.gather"
    OPERANDS: ClassVar = (
        Operand("dst", "l1 ub"),
        Operand("src", "gm", axes=(-1, 0, 1, 2, 3), like="dst"),
        Operand("index", "ub", axes=(0, 1, 2), types="i32"),
    )
    RANK: ClassVar = (4, 4)
    INSTRUCTION: ClassVar = "gather"
    FIELDS: ClassVar = "rows"


@irdl_op_definition
class ScatterOp(TileOp):
    """Copies runs, extents (n0, n1, n2, run), from L1 or UB to the rows of a buffer in global memory that an index tile
    names. The first stride of `dst` is from row to row; field `rows`: how many there are.
    """

    name = "tile.scatter"
    OPERANDS: ClassVar = (
        Operand("dst", "gm", axes=(-1, 0, 1, 2, 3)),
        Operand("src", "l1 ub", like="dst"),
        Operand("index", "ub", axes=(0, 1, 2), types="i32"),
    )
    RANK: ClassVar = (4, 4)
    INSTRUCTION: ClassVar = "scatter"
    FIELDS: ClassVar = "rows"


ENGINE_OPS: tuple[type[TileOp], ...] = (
    LoadOp, FillOp, StoreOp, MoveOp, FeedAOp, FeedBOp, FeedQOp, Im2colOp,
    MmaOp, MmaDwOp, FoldOp, DrainOp, MapOp, ReduceOp, IotaOp, GatherOp, ScatterOp,
)  # fmt: skip

Tile = Dialect("tile", [KernelOp, ForOp, AllocOp, GridOp, ScalarOp, *ENGINE_OPS], ATTRIBUTES)
