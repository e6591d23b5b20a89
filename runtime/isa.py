"""The instruction set, declared once.

Each `Instruction` states its engine, its fields, what it does, what it reads and writes, and what it costs. The encoding, the assembly
text, the range checks, the npu dialect, the timing, the checker's footprints and `docs/isa.md` are derived from this table.

Formulas (`cycles`, `gm_bytes`, `runs`) are Python expressions over the instruction's fields, the constants of the target
(`T.name`, see `runtime/target.py`) and `up(a, b) = ⌈a/b⌉`.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

ISA_VERSION = 1


class Engine(IntEnum):
    """In-order queues; all run at once. The scalar engine issues to the others."""

    SCALAR = 0
    LOAD = 1
    FEED = 2
    CUBE = 3
    DRAIN = 4
    VECTOR = 5
    STORE = 6


class Space(IntEnum):
    """Memories; an address is a byte offset in one of them."""

    GM = 0
    L1 = 1
    L0A = 2
    L0B = 3
    L0C = 4
    UB = 5


DTYPES = {"f16": 0, "bf16": 1, "f32": 2, "i8": 3, "u8": 4, "i32": 5, "b8": 6}
ACTIVATIONS = {"none": 0, "relu": 1, "clip": 2}
REDUCTIONS = {"sum": 0, "max": 1, "min": 2, "prod": 3}
TOKEN_IDS = 8
TOKEN_LIMIT = 15
"""Counts are 4 bits wide: a set beyond this is a fault."""
COUNTERS = 1024
"""Global counters for synchronisation between cores and kernels."""

Kind = Literal[
    "address",
    "extent",
    "stride",
    "integer",
    "flag",
    "float",
    "dtype",
    "space",
    "engine",
    "fn",
    "act",
    "reduction",
    "register",
    "ring",
]

NAMED_VALUES: dict[str, dict[str, int]] = {
    "dtype": DTYPES,
    "act": ACTIVATIONS,
    "reduction": REDUCTIONS,
    "space": {space.name.lower(): int(space) for space in Space},
    "engine": {engine.name.lower(): int(engine) for engine in Engine},
}
"""Kinds whose constants have names in assembly text (`fn` is named by `runtime.numerics`)."""


@dataclass(frozen=True, slots=True)
class Field:
    """One 64-bit field of an instruction. `float` fields hold the bits of an f32."""

    name: str
    kind: Kind
    doc: str
    default: int | None = None
    """Value that assembly text may leave out; None: must be written."""


@dataclass(frozen=True, slots=True)
class Access:
    """Bytes an operand touches: `runs` is (count, stride) per outer axis and the length of the innermost contiguous run.

    `space` is a memory or the name of the field that holds it. `when`: the operand exists only if this formula is not 0.
    """

    field: str
    space: Space | str
    writes: bool
    runs: tuple[tuple[str, str], ...]
    length: str
    reads: str = "0"
    """For a written operand: it is read as well if this formula is not 0."""
    when: str = "1"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `extents`: if any of these fields is 0 the instruction does nothing (tokens still flow through its queue)."""

    name: str
    engine: Engine | None
    doc: str
    action: str
    fields: tuple[Field, ...]
    cycles: str = "1"
    gm_bytes: str = "0"
    extents: tuple[str, ...] = ()
    accesses: tuple[Access, ...] = ()

    def index(self, field: str) -> int:
        """Position of a field; raises KeyError for an unknown name."""
        for position, spec in enumerate(self.fields):
            if spec.name == field:
                return position
        raise KeyError(f"{self.name} has no field {field!r}; it has {', '.join(f.name for f in self.fields)}")


def _address(name: str, doc: str) -> Field:
    return Field(name, "address", doc)


def _extents(names: str, doc: str, default: int | None = None) -> tuple[Field, ...]:
    return tuple(Field(name, "extent", doc, default) for name in names.split())


def _strides(names: str, doc: str, default: int | None = 0) -> tuple[Field, ...]:
    return tuple(Field(name, "stride", doc, default) for name in names.split())


def _float(name: str, doc: str, bits: int | None = 0) -> Field:
    return Field(name, "float", doc, bits)


_DTYPE = Field("dtype", "dtype", "element type")
_ESIZE = Field("esize", "integer", "bytes per element: 1, 2, 4 or 8")
_PAIR = (
    Field("src", "engine", "engine that sets"),
    Field("dst", "engine", "engine that waits"),
    Field("id", "integer", f"0 to {TOKEN_IDS - 1}"),
)
_ONE_F32 = 0x3F800000


CONTROL = (
    Instruction(
        "loop", None, "Begins a hardware loop; at most five nest.",
        "trips = ⌈count/step⌉ + add; 0 or fewer trips skip to the matching `end`. The loop's index starts at 0; its ring is not reset.",
        (Field("count", "extent", "upper bound of the loop"), Field("step", "integer", "positive", 1), Field("add", "integer", "trips added", 0),
         Field("ring", "ring", "number of the loop's ring", 0)),
    ),
    Instruction("end", None, "Ends the innermost loop.", "index += 1; ring += 1; repeats while index < trips.", ()),
    Instruction("mov", Engine.SCALAR, "Sets a register.", "r[rd] = value", (Field("rd", "register", "target"), Field("value", "integer", "any expression"))),
    *(
        Instruction(name, Engine.SCALAR, f"{doc} of two values.", f"r[rd] = {action}",
                    (Field("rd", "register", "target"), Field("a", "integer", "any expression"), Field("b", "integer", "any expression")))
        for name, doc, action in (
            ("min", "Minimum", "min(a, b)"), ("max", "Maximum", "max(a, b)"), ("div", "Quotient, rounded down (b > 0)", "⌊a/b⌋"),
            ("mod", "Remainder (b > 0)", "a − b·⌊a/b⌋"), ("less", "Comparison", "1 if a < b else 0"),
        )
    ),
    Instruction(
        "read", Engine.SCALAR, "Reads a register from global memory (page tables, lengths).", "r[rd] = the signed integer at src; the issue stalls until it is there",
        (Field("rd", "register", "target"), _address("src", "in GM"), Field("width", "integer", "4 or 8 bytes")),
        cycles="T.fixed_read", accesses=(Access("src", Space.GM, False, (), "width"),),
    ),
)  # fmt: skip

SYNC = (
    Instruction("set", None, "Gives one token, in the queue of `src`.", f"count[src,dst,id] += 1; beyond {TOKEN_LIMIT} is a fault", _PAIR, cycles="T.fixed_sync"),
    Instruction("wait", None, "Takes one token, in the queue of `dst`.", "blocks while count[src,dst,id] = 0; then count −= 1", _PAIR, cycles="T.fixed_sync"),
    Instruction("grant", None, "Gives `n` tokens, in the queue of `dst` (the waiter).", "count[src,dst,id] += n",
                (*_PAIR, Field("n", "integer", "tokens")), cycles="T.fixed_sync"),
    Instruction("signal", None, "Raises a global counter, in the queue of `engine`, when all before it in that queue is done.", "counter[counter] += 1",
                (Field("engine", "engine", "whose queue"), Field("counter", "integer", f"0 to {COUNTERS - 1}")), cycles="T.fixed_sync"),
    Instruction("await", None, "Blocks the queue of `engine` until a global counter is high enough.", "blocks while counter[counter] < value",
                (Field("engine", "engine", "whose queue"), Field("counter", "integer", f"0 to {COUNTERS - 1}"), Field("value", "integer", "least value")),
                cycles="T.fixed_sync"),
)  # fmt: skip

_N5 = "n0 n1 n2 n3 n4"
_MOVE_BYTES = "n0 * n1 * n2 * n3 * {inner}"
_RUN = "(up(n4 * esize, T.gm_burst) * T.gm_burst if {s} == esize else n4 * T.gm_burst)"

MOVES = (
    Instruction(
        "load", Engine.LOAD, "Copies a box of up to five dimensions from GM on chip.",
        "dst[i0·d0 + i1·d1 + i2·d2 + i3·d3 + i4·esize] = src[i0·s0 + … + i4·s4] for all i < n",
        (_address("dst", "on chip"), Field("space", "space", "l1 or ub"), _address("src", "in GM"), *_extents("n0 n1 n2 n3", "outer extents", 1),
         *_extents("n4", "innermost extent, elements"), _ESIZE, *_strides("d0 d1 d2 d3", "bytes between on-chip rows"),
         *_strides("s0 s1 s2 s3", "bytes between rows in GM"), Field("s4", "stride", "bytes between elements in GM; esize: a contiguous run")),
        cycles="T.fixed_load", gm_bytes=_MOVE_BYTES.format(inner=_RUN.format(s="s4")), extents=tuple(_N5.split()),
        accesses=(Access("src", Space.GM, False, (("n0", "s0"), ("n1", "s1"), ("n2", "s2"), ("n3", "s3"), ("n4 if s4 != esize else 1", "s4")), "esize if s4 != esize else n4 * esize"),
                  Access("dst", "space", True, (("n0", "d0"), ("n1", "d1"), ("n2", "d2"), ("n3", "d3")), "n4 * esize")),
    ),
    Instruction(
        "fill", Engine.LOAD, "Writes a constant on chip (padding, masks).", "dst[i0·d0 + i1·d1 + i2·esize] = the low esize bytes of pattern",
        (_address("dst", "on chip"), Field("space", "space", "l1 or ub"), *_extents("n0 n1", "outer extents", 1), *_extents("n2", "innermost extent, elements"), _ESIZE,
         *_strides("d0 d1", "bytes between rows"), Field("pattern", "integer", "bits of one element", 0)),
        cycles="T.fixed_load + up(n0 * n1 * n2 * esize, T.fill_bytes)", extents=("n0", "n1", "n2"),
        accesses=(Access("dst", "space", True, (("n0", "d0"), ("n1", "d1")), "n2 * esize"),),
    ),
    Instruction(
        "store", Engine.STORE, "Copies a box of up to five dimensions from on chip to GM.",
        "dst[i0·d0 + … + i4·d4] = src[i0·s0 + i1·s1 + i2·s2 + i3·s3 + i4·esize] for all i < n",
        (_address("dst", "in GM"), _address("src", "on chip"), Field("space", "space", "l1 or ub"), *_extents("n0 n1 n2 n3", "outer extents", 1),
         *_extents("n4", "innermost extent, elements"), _ESIZE, *_strides("d0 d1 d2 d3", "bytes between rows in GM"),
         Field("d4", "stride", "bytes between elements in GM; esize: a contiguous run"), *_strides("s0 s1 s2 s3", "bytes between on-chip rows")),
        cycles="T.fixed_store", gm_bytes=_MOVE_BYTES.format(inner=_RUN.format(s="d4")), extents=tuple(_N5.split()),
        accesses=(Access("src", "space", False, (("n0", "s0"), ("n1", "s1"), ("n2", "s2"), ("n3", "s3")), "n4 * esize"),
                  Access("dst", Space.GM, True, (("n0", "d0"), ("n1", "d1"), ("n2", "d2"), ("n3", "d3"), ("n4 if d4 != esize else 1", "d4")), "esize if d4 != esize else n4 * esize")),
    ),
    Instruction(
        "move", Engine.STORE, "Copies from UB to L1.", "dst[i0·d0 + i1·d1 + i2·esize] = src[i0·s0 + i1·s1 + i2·esize]",
        (_address("dst", "in L1"), _address("src", "in UB"), *_extents("n0 n1", "outer extents", 1), *_extents("n2", "innermost extent, elements"), _ESIZE,
         *_strides("d0 d1", "bytes between rows in L1"), *_strides("s0 s1", "bytes between rows in UB")),
        cycles="T.fixed_move + up(n0 * n1 * n2 * esize, T.move_bytes)", extents=("n0", "n1", "n2"),
        accesses=(Access("src", Space.UB, False, (("n0", "s0"), ("n1", "s1")), "n2 * esize"), Access("dst", Space.L1, True, (("n0", "d0"), ("n1", "d1")), "n2 * esize")),
    ),
)  # fmt: skip

_ES = "(4 if dtype == 2 or dtype == 5 else 2 if dtype < 2 else 1)"
_FEED = "T.fixed_feed + up(up({rows}, 16) * 16 * up({cols} * " + _ES + ", 32) * 32, T.{path})"

FEEDS = (
    Instruction(
        "feed_a", Engine.FEED, "Brings a matrix from L1 to the left operand of the cube.", "dst[i·ld + j] = src[i, j], or src[j, i] if trans; i < m, j < k",
        (_address("dst", "in L0A"), _address("src", "in L1"), *_extents("m", "rows"), *_extents("k", "columns"), Field("ld", "integer", "elements between rows of L0A"),
         Field("pitch", "stride", "bytes between rows of src"), Field("trans", "flag", "src is stored [k, m]", 0), _DTYPE),
        cycles=_FEED.format(rows="m", cols="k", path="feed_a_bytes"), extents=("m", "k"),
        accesses=(Access("src", Space.L1, False, (("k if trans else m", "pitch"),), f"(m if trans else k) * {_ES}"),
                  Access("dst", Space.L0A, True, (("m", f"ld * {_ES}"),), f"k * {_ES}")),
    ),
    Instruction(
        "feed_b", Engine.FEED, "Brings a matrix from L1 to the right operand of the cube.", "dst[i·ld + j] = src[i, j], or src[j, i] if trans; i < k, j < n",
        (_address("dst", "in L0B"), _address("src", "in L1"), *_extents("k", "rows"), *_extents("n", "columns"), Field("ld", "integer", "elements between rows of L0B, a multiple of 16"),
         Field("pitch", "stride", "bytes between rows of src"), Field("trans", "flag", "src is stored [n, k]", 0), _DTYPE),
        cycles=_FEED.format(rows="n", cols="k", path="feed_b_bytes"), extents=("k", "n"),
        accesses=(Access("src", Space.L1, False, (("n if trans else k", "pitch"),), f"(k if trans else n) * {_ES}"),
                  Access("dst", Space.L0B, True, (("k", f"ld * {_ES}"),), f"n * {_ES}")),
    ),
    Instruction(
        "im2col", Engine.FEED, "Brings patches of an image (rows × width × channels, channels fastest) from L1 to the left operand.",
        "For pixel p = m0 + i (row p div ow, column p mod ow) and k0 + j = ((c1·kh + y)·kw + x)·c0 + c: dst[i·ld + j] = the image at row p div ow·sh − ph + y·dh, "
        "column p mod ow·sw − pw + x·dw, channel c1·c0 + c; `pad` outside the image, +0 from channel `c` on. Image row r stands in L1 at (r − row0)·row.",
        (_address("dst", "in L0A"), _address("src", "panel in L1: image row row0, column 0, first channel"), *_extents("m", "pixels"), *_extents("k", "columns"), Field("ld", "integer", "elements between rows of L0A"),
         Field("m0", "integer", "first pixel, row-major in the output image"), Field("k0", "integer", "first column"), Field("ow", "integer", "width of the output image"),
         Field("kh", "integer", "taps down"), Field("kw", "integer", "taps across"), Field("channels", "extent", "channels that are there"), Field("c0", "integer", "channel block: 4 or 16"),
         Field("sh", "integer", "stride down", 1), Field("sw", "integer", "stride across", 1), Field("dh", "integer", "dilation down", 1), Field("dw", "integer", "dilation across", 1),
         Field("ph", "integer", "rows of padding above", 0), Field("pw", "integer", "columns of padding left", 0), Field("row0", "integer", "image row at src; may be negative"),
         Field("h", "integer", "height of the image"), Field("w", "integer", "width of the image"), Field("row", "stride", "bytes between image rows in L1"),
         Field("pixel", "stride", "bytes between pixels"), _float("pad", "value outside the image"), _DTYPE),
        cycles=_FEED.format(rows="m", cols="k", path="feed_a_bytes"), extents=("m", "k"),
        # It reserves the image rows that its pixels can touch, in whole.
        accesses=(Access("src", Space.L1, False,
                         (("max(0, min(h, (m0 + m - 1) // ow * sh - ph + (kh - 1) * dh + 1) - max(0, m0 // ow * sh - ph))", "row"), ("w", "pixel")), f"channels * {_ES}"),
                  Access("dst", Space.L0A, True, (("m", f"ld * {_ES}"),), f"k * {_ES}")),
    ),
)  # fmt: skip
IM2COL_FIRST_ROW = "max(0, m0 // ow * sh - ph) - row0"
"""Row of the panel at which the footprint of `im2col` begins."""

_BK = "(T.cube_k_f32 if dtype == 2 else T.cube_k_f16 if dtype < 2 else T.cube_k_i8)"
_ACC = (("m", "ldc * 4"),)

CUBE = (
    Instruction(
        "mma", Engine.CUBE, "Matrix multiply-accumulate.", "c[i, j] = (0 if init else c[i, j]) then fma(a[i, l], b[l, j], ·) for l ascending",
        (_address("dst", "in L0C"), _address("a", "in L0A"), _address("b", "in L0B"), *_extents("m n k", "extents"), Field("lda", "integer", "elements"), Field("ldb", "integer", "elements, a multiple of 16"),
         Field("ldc", "integer", "f32 elements, a multiple of 16"), Field("init", "flag", "start from 0", 0), _DTYPE),
        cycles=f"T.fixed_mma + up(m, T.cube_m) * up(n, T.cube_n) * up(k, {_BK}) * (T.cube_cost_f32 if dtype == 2 else 1)", extents=("m", "n", "k"),
        accesses=(Access("a", Space.L0A, False, (("m", f"lda * {_ES}"),), f"k * {_ES}"), Access("b", Space.L0B, False, (("k", f"ldb * {_ES}"),), f"n * {_ES}"),
                  Access("dst", Space.L0C, True, _ACC, "n * 4", reads="init == 0")),
    ),
    Instruction(
        "mma_dw", Engine.CUBE, "Depthwise multiply-accumulate: a channel meets only its own taps.",
        "c[i, 16·g + j] = (0 if init else ·) then fma(a[i, (g·taps + t)·16 + j], b[(g·taps + t)·16 + j], ·) for t ascending",
        (_address("dst", "in L0C"), _address("a", "in L0A"), _address("b", "in L0B"), *_extents("m", "pixels"), *_extents("groups", "blocks of 16 channels"), *_extents("taps", "taps"),
         Field("lda", "integer", "elements"), Field("ldc", "integer", "f32 elements, a multiple of 16"), Field("init", "flag", "start from 0", 0), _DTYPE),
        cycles="T.fixed_mma + up(m, T.cube_m) * groups * taps * (T.cube_cost_f32 if dtype == 2 else 1)", extents=("m", "groups", "taps"),
        accesses=(Access("a", Space.L0A, False, (("m", f"lda * {_ES}"),), f"groups * taps * 16 * {_ES}"), Access("b", Space.L0B, False, (), f"groups * taps * 16 * {_ES}"),
                  Access("dst", Space.L0C, True, _ACC, "groups * 64", reads="init == 0")),
    ),
    Instruction(
        "fold", Engine.CUBE, "Adds the sum of one segment to the total.", "dst[i, j] = src[i, j] if init else dst[i, j] + src[i, j]",
        (_address("dst", "in L0C"), _address("src", "in L0C"), *_extents("m n", "extents"), Field("ldc", "integer", "f32 elements"), Field("init", "flag", "copy", 0)),
        cycles="T.fixed_mma + up(m * n * 4, T.fold_bytes)", extents=("m", "n"),
        accesses=(Access("src", Space.L0C, False, _ACC, "n * 4"), Access("dst", Space.L0C, True, _ACC, "n * 4", reads="init == 0")),
    ),
)  # fmt: skip

DRAIN = (
    Instruction(
        "drain", Engine.DRAIN, "Takes results out of L0C: scale, bias, activation, cast.",
        "v = f32(c[i, j]), or c[i, j] itself if acc and dtype are i32 and nothing below applies; v = v·scale if scaled; v = v + bias[j] if biased; act: relu, or clip to [lo, hi]; dst[i·pitch + j·esize] = cast(v)",
        (_address("dst", "in space"), Field("space", "space", "ub, l1 or gm"), _address("src", "in L0C"), *_extents("m n", "extents"), Field("ldc", "integer", "f32 elements"),
         Field("pitch", "stride", "bytes between rows of dst"), Field("bias", "address", "in UB, n values of f32", 0), Field("biased", "flag", "add the bias", 0),
         Field("scaled", "flag", "multiply by scale", 0), _float("scale", "factor", _ONE_F32), Field("act", "act", "none, relu or clip", 0), _float("lo", "least value"), _float("hi", "largest value"), _DTYPE,
         Field("acc", "dtype", "type of c: f32 or i32", 2)),
        cycles="T.fixed_drain + up(m * n, T.drain_elements)", gm_bytes=f"(m * up(n * {_ES}, T.gm_burst) * T.gm_burst if space == 0 else 0)", extents=("m", "n"),
        accesses=(Access("src", Space.L0C, False, _ACC, "n * 4"), Access("bias", Space.UB, False, (), "n * 4", when="biased"), Access("dst", "space", True, (("m", "pitch"),), f"n * {_ES}")),
    ),
)  # fmt: skip


def _size(field: str) -> str:
    return f"(2 if {field} < 2 else 4 if {field} == 2 or {field} == 5 else 1)"


def _operand(name: str, when: str = "1") -> Access:
    return Access(
        name,
        Space.UB,
        False,
        (("n0", f"{name}0"), ("n1", f"{name}1"), ("n2", f"{name}2")),
        _size(f"t{name}"),
        when=when,
    )


_VECTOR_ROW = f"max({_size('td')}, {_size('ta')})"

VECTOR = (
    Instruction(
        "vmap", Engine.VECTOR, "An elementwise function over up to three operands in UB.", "dst[i] = cast(fn(a[i], b[i], c[i])) for i < (n0, n1, n2); a stride of 0 broadcasts",
        (Field("fn", "fn", "function"), _address("dst", "in UB"), _address("a", "in UB"), Field("b", "address", "in UB", 0), Field("c", "address", "in UB", 0), *_extents("n0 n1", "outer extents", 1), *_extents("n2", "innermost extent"),
         *_strides("d0 d1 d2", "byte strides of dst"), *_strides("a0 a1 a2", "byte strides of a"), *_strides("b0 b1 b2", "byte strides of b"), *_strides("c0 c1 c2", "byte strides of c"),
         Field("td", "dtype", "type of dst"), Field("ta", "dtype", "type of a"), Field("tb", "dtype", "type of b", 2), Field("tc", "dtype", "type of c", 2),
         _float("immb", "operand b as a constant"), _float("immc", "operand c as a constant"), Field("bimm", "flag", "b is immb", 1), Field("cimm", "flag", "c is immc", 1)),
        cycles=f"T.fixed_vector + (up(n0 * n1 * n2 * {_VECTOR_ROW}, T.vector_bytes) if d1 == n2 * d2 and (n0 == 1 or d0 == n1 * d1) else n0 * n1 * up(n2 * {_VECTOR_ROW}, T.vector_bytes)) * PASSES",
        extents=("n0", "n1", "n2"),
        accesses=(_operand("a"), _operand("b", "bimm == 0"), _operand("c", "cimm == 0"),
                  Access("dst", Space.UB, True, (("n0", "d0"), ("n1", "d1"), ("n2", "d2")), _size("td"))),
    ),
    Instruction(
        "vreduce", Engine.VECTOR, "A reduction over the middle axis, in eight lanes by absolute index.",
        "lanes of [n0, n2] in state (f32 [n0][n2][8]; i32 for integers): identity if first; lane[(start + i) mod 8] ∘= a[·, i, ·] for i < n1; if last, dst = the tree over the lanes, cast",
        (Field("fn", "reduction", "sum, max, min or prod"), _address("dst", "in UB"), _address("a", "in UB"), Field("state", "address", "in UB; unused when first and last", 0), *_extents("n0", "kept, outer", 1),
         *_extents("n1", "reduced"), *_extents("n2", "kept, inner", 1), *_strides("d0 d2", "byte strides of dst"), *_strides("a0 a1 a2", "byte strides of a"), Field("td", "dtype", "type of dst"), Field("ta", "dtype", "type of a"),
         Field("start", "integer", "absolute index of the first element", 0), Field("first", "flag", "start the lanes", 1), Field("last", "flag", "finish", 1)),
        cycles=f"T.fixed_vector + n0 * up(n1 * n2 * {_size('ta')}, T.vector_bytes) + (n0 * 8 if n2 == 1 else n0 * 8 * up(n2 * 4, T.vector_bytes))",
        extents=("n0", "n1", "n2"),
        accesses=(Access("a", Space.UB, False, (("n0", "a0"), ("n1", "a1"), ("n2", "a2")), _size("ta")),
                  Access("state", Space.UB, True, (), "n0 * n2 * 32", reads="first == 0", when="1 - first * last"),
                  Access("dst", Space.UB, True, (("n0", "d0"), ("n2", "d2")), _size("td"), when="last")),
    ),
    Instruction(
        "iota", Engine.VECTOR, "Writes an affine function of the position (masks, indices).", "dst[i] = cast(base + i0·c0 + i1·c1 + i2·c2)",
        (_address("dst", "in UB"), *_extents("n0 n1", "outer extents", 1), *_extents("n2", "innermost extent"), *_strides("d0 d1 d2", "byte strides of dst"), Field("td", "dtype", "type of dst"),
         Field("base", "integer", "any expression", 0), *(Field(f"c{axis}", "integer", "coefficient", 0) for axis in range(3))),
        cycles=f"T.fixed_vector + n0 * n1 * up(n2 * {_size('td')}, T.vector_bytes)", extents=("n0", "n1", "n2"),
        accesses=(Access("dst", Space.UB, True, (("n0", "d0"), ("n1", "d1"), ("n2", "d2")), _size("td")),),
    ),
)  # fmt: skip

INSTRUCTIONS: tuple[Instruction, ...] = CONTROL + SYNC + MOVES + FEEDS + CUBE + DRAIN + VECTOR
BY_NAME = {instruction.name: instruction for instruction in INSTRUCTIONS}
OPCODE = {instruction.name: code for code, instruction in enumerate(INSTRUCTIONS)}
MAX_FIELDS = max(len(instruction.fields) for instruction in INSTRUCTIONS)
