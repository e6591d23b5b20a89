"""The instruction set, declared once.

Each `Instruction` states its engine, its fields, what it does, what it reads and writes, and what it costs. The
encoding, the assembly text, the range checks, the npu dialect, the timing, the checker's footprints and `docs/isa.md`
are derived from it. A line of fields reads `name,name kind meaning`, or `name=default kind meaning`.

Formulas (`cycles`, `gm_bytes`, runs, lengths, `when`) are Python expressions over the instruction's fields, the
constants of the target (`T.name` of `runtime/target.py`), `PASSES` (vector cycles of the function), `up(a, b)` (⌈a/b⌉).
"""

from .isa_dequantise import DEQUANTISE
from .isa_form import (
    ACTIVATIONS,
    COUNTERS,
    DTYPES,
    ISA_VERSION,
    NAMED_VALUES,
    PACKED,
    REDUCTIONS,
    TOKEN_IDS,
    TOKEN_LIMIT,
    Access,
    Engine,
    Field,
    Instruction,
    Kind,
    Space,
    fed,
    fields,
    runs,
    size,
)
from .isa_indirect import INDIRECT

__all__ = [
    "ACTIVATIONS", "BY_NAME", "COUNTERS", "DTYPES", "INSTRUCTIONS", "ISA_VERSION", "MAX_FIELDS", "NAMED_VALUES",
    "OPCODE", "PACKED", "REDUCTIONS", "TOKEN_IDS", "TOKEN_LIMIT", "Access", "Engine", "Field", "Instruction", "Kind",
    "Space",
]  # fmt: skip

_ES = size("dtype")

# fmt: off
# control -------------------------------------------------------------------------------------------------------------
_TWO = """
    rd  register  target
    a   integer   any expression
    b   integer   any expression
"""

CONTROL = (
    Instruction(
        "loop", None, "Begins a hardware loop; at most five nest.",
        "trips = ⌈count/step⌉ + add; 0 or fewer trips skip to the matching `end`. The loop's index starts at 0; its"
        " ring is not reset.",
        fields("""
            count   extent   upper bound of the loop
            step=1  integer  positive
            add=0   integer  trips added
            ring=0  ring     number of the loop's ring
        """),
    ),
    Instruction("end", None, "Ends the innermost loop.", "index += 1; ring += 1; repeats while index < trips.", ()),
    Instruction(
        "mov", Engine.SCALAR, "Sets a register.", "r[rd] = value",
        fields("""
            rd     register  target
            value  integer   any expression
        """),
    ),
    Instruction("min", Engine.SCALAR, "Minimum of two values.", "r[rd] = min(a, b)", fields(_TWO)),
    Instruction("max", Engine.SCALAR, "Maximum of two values.", "r[rd] = max(a, b)", fields(_TWO)),
    Instruction("div", Engine.SCALAR, "Quotient (b > 0), rounded down.", "r[rd] = ⌊a/b⌋", fields(_TWO)),
    Instruction("mod", Engine.SCALAR, "Remainder (b > 0).", "r[rd] = a − b·⌊a/b⌋", fields(_TWO)),
    Instruction("less", Engine.SCALAR, "Comparison of two values.", "r[rd] = 1 if a < b else 0", fields(_TWO)),
    Instruction(
        "read", Engine.SCALAR, "Reads a register from global memory (page tables, lengths).",
        "r[rd] = the signed integer at src; the issue stalls until it is there",
        fields("""
            rd     register  target
            src    address   in GM
            width  integer   4 or 8 bytes
        """),
        cycles="T.fixed_read", accesses=(Access("src", Space.GM, False, (), "width"),),
    ),
)

# synchronisation -----------------------------------------------------------------------------------------------------
_PAIR = f"""
    src  engine   engine that sets
    dst  engine   engine that waits
    id   integer  0 to {TOKEN_IDS - 1}
"""
_COUNTER = f"""
    engine   engine   whose queue
    counter  integer  0 to {COUNTERS - 1}
"""

SYNC = (
    Instruction(
        "set", None, "Gives one token, in the queue of `src`.",
        f"count[src,dst,id] += 1; beyond {TOKEN_LIMIT} is a fault", fields(_PAIR), cycles="T.fixed_sync",
    ),
    Instruction(
        "wait", None, "Takes one token, in the queue of `dst`.",
        "blocks while count[src,dst,id] = 0; then count −= 1", fields(_PAIR), cycles="T.fixed_sync",
    ),
    Instruction(
        "grant", None, "Gives `n` tokens, in the queue of `dst` (the waiter).",
        "count[src,dst,id] += n", fields(_PAIR + "n integer tokens"), cycles="T.fixed_sync",
    ),
    Instruction(
        "signal", None, "Raises a global counter, in the queue of `engine`, when all before it in that queue is done.",
        "counter[counter] += 1", fields(_COUNTER), cycles="T.fixed_sync",
    ),
    Instruction(
        "await", None, "Blocks the queue of `engine` until a global counter is high enough.",
        "blocks while counter[counter] < value", fields(_COUNTER + "value integer least value"), cycles="T.fixed_sync",
    ),
)

# movement ------------------------------------------------------------------------------------------------------------
_BOX = "n0 n1 n2 n3 n4"


def _moved(step: str) -> str:
    """Bytes that the port moves for a box: whole bursts for each run; a burst for each element if `step` parts them."""
    run = f"(up(n4 * esize, T.gm_burst) * T.gm_burst if {step} == esize else n4 * T.gm_burst)"
    return f"n0 * n1 * n2 * n3 * {run}"


def _in_memory(field: str, step: str, writes: bool) -> Access:
    """The side of a box that lies in GM."""
    letter = step[0]
    outer = runs(f"n0*{letter}0 n1*{letter}1 n2*{letter}2 n3*{letter}3")
    elements = (f"n4 if {step} != esize else 1", step)
    return Access(field, Space.GM, writes, (*outer, elements), f"esize if {step} != esize else n4 * esize")


MOVES = (
    Instruction(
        "load", Engine.LOAD, "Copies a box of up to five dimensions from GM on chip.",
        "dst[i0·d0 + i1·d1 + i2·d2 + i3·d3 + i4·esize] = src[i0·s0 + … + i4·s4] for all i < n",
        fields("""
            dst              address  on chip
            space            space    l1 or ub
            src              address  in GM
            n0,n1,n2,n3=1    extent   outer extents
            n4               extent   innermost extent, elements
            esize            integer  bytes per element: 1, 2, 4 or 8
            d0,d1,d2,d3=0    stride   bytes between on-chip rows
            s0,s1,s2,s3=0    stride   bytes between rows in GM
            s4               stride   bytes between elements in GM; esize: a contiguous run
        """),
        cycles="T.fixed_load", gm_bytes=_moved("s4"), extents=tuple(_BOX.split()),
        accesses=(
            _in_memory("src", "s4", writes=False),
            Access("dst", "space", True, runs("n0*d0 n1*d1 n2*d2 n3*d3"), "n4 * esize"),
        ),
    ),
    Instruction(
        "fill", Engine.LOAD, "Writes a constant on chip (padding, masks).",
        "dst[i0·d0 + i1·d1 + i2·esize] = the low esize bytes of pattern",
        fields("""
            dst        address  on chip
            space      space    l1 or ub
            n0,n1=1    extent   outer extents
            n2         extent   innermost extent, elements
            esize      integer  bytes per element: 1, 2, 4 or 8
            d0,d1=0    stride   bytes between rows
            pattern=0  integer  bits of one element
        """),
        cycles="T.fixed_load + up(n0 * n1 * n2 * esize, T.fill_bytes)", extents=("n0", "n1", "n2"),
        accesses=(Access("dst", "space", True, runs("n0*d0 n1*d1"), "n2 * esize"),),
    ),
    Instruction(
        "store", Engine.STORE, "Copies a box of up to five dimensions from on chip to GM.",
        "dst[i0·d0 + … + i4·d4] = src[i0·s0 + i1·s1 + i2·s2 + i3·s3 + i4·esize] for all i < n",
        fields("""
            dst              address  in GM
            src              address  on chip
            space            space    l1 or ub
            n0,n1,n2,n3=1    extent   outer extents
            n4               extent   innermost extent, elements
            esize            integer  bytes per element: 1, 2, 4 or 8
            d0,d1,d2,d3=0    stride   bytes between rows in GM
            d4               stride   bytes between elements in GM; esize: a contiguous run
            s0,s1,s2,s3=0    stride   bytes between on-chip rows
        """),
        cycles="T.fixed_store", gm_bytes=_moved("d4"), extents=tuple(_BOX.split()),
        accesses=(
            Access("src", "space", False, runs("n0*s0 n1*s1 n2*s2 n3*s3"), "n4 * esize"),
            _in_memory("dst", "d4", writes=True),
        ),
    ),
    Instruction(
        "move", Engine.STORE, "Copies from UB to L1.",
        "dst[i0·d0 + i1·d1 + i2·esize] = src[i0·s0 + i1·s1 + i2·esize]",
        fields("""
            dst      address  in L1
            src      address  in UB
            n0,n1=1  extent   outer extents
            n2       extent   innermost extent, elements
            esize    integer  bytes per element: 1, 2, 4 or 8
            d0,d1=0  stride   bytes between rows in L1
            s0,s1=0  stride   bytes between rows in UB
        """),
        cycles="T.fixed_move + up(n0 * n1 * n2 * esize, T.move_bytes)", extents=("n0", "n1", "n2"),
        accesses=(
            Access("src", Space.UB, False, runs("n0*s0 n1*s1"), "n2 * esize"),
            Access("dst", Space.L1, True, runs("n0*d0 n1*d1"), "n2 * esize"),
        ),
    ),
)

# feeds ---------------------------------------------------------------------------------------------------------------
_IM2COL_ROWS = "max(0, min(h, (m0 + m - 1) // ow * sh - ph + (kh - 1) * dh + 1) - max(0, m0 // ow * sh - ph))"

FEEDS = (
    Instruction(
        "feed_a", Engine.FEED, "Brings a matrix from L1 to the left operand of the cube.",
        "dst[i·ld + j] = src[i, j], or src[j, i] if trans; i < m, j < k",
        fields("""
            dst      address  in L0A
            src      address  in L1
            m        extent   rows
            k        extent   columns
            ld       integer  elements between rows of L0A
            pitch    stride   bytes between rows of src
            trans=0  flag     src is stored [k, m]
            dtype    dtype    element type
        """),
        cycles=fed("m", "k", "cube_m", "feed_a_bytes"),
        extents=("m", "k"),
        accesses=(
            Access("src", Space.L1, False, (("k if trans else m", "pitch"),), f"(m if trans else k) * {_ES}"),
            Access("dst", Space.L0A, True, (("m", f"ld * {_ES}"),), f"k * {_ES}"),
        ),
    ),
    Instruction(
        "feed_b", Engine.FEED, "Brings a matrix from L1 to the right operand of the cube.",
        "dst[i·ld + j] = src[i, j], or src[j, i] if trans; i < k, j < n",
        fields("""
            dst      address  in L0B
            src      address  in L1
            k        extent   rows
            n        extent   columns
            ld       integer  elements between rows of L0B, a multiple of 16
            pitch    stride   bytes between rows of src
            trans=0  flag     src is stored [n, k]
            dtype    dtype    element type
        """),
        cycles=fed("n", "k", "cube_n", "feed_b_bytes"),
        extents=("k", "n"),
        accesses=(
            Access("src", Space.L1, False, (("n if trans else k", "pitch"),), f"(k if trans else n) * {_ES}"),
            Access("dst", Space.L0B, True, (("k", f"ld * {_ES}"),), f"n * {_ES}"),
        ),
    ),
    Instruction(
        "im2col", Engine.FEED,
        "Brings patches of an image (rows × width × channels, channels fastest) from L1 to the left operand.",
        "For pixel p = m0 + i (row p div ow, column p mod ow) and k0 + j = ((c1·kh + y)·kw + x)·c0 + c: dst[i·ld + j]"
        " = the image at row p div ow·sh − ph + y·dh, column p mod ow·sw − pw + x·dw, channel c1·c0 + c; `pad` outside"
        " the image, +0 from channel `channels` on. Image row r stands in L1 at (r − row0)·row.",
        fields("""
            dst       address  in L0A
            src       address  panel in L1: image row row0, column 0, first channel
            m         extent   pixels
            k         extent   columns
            ld        integer  elements between rows of L0A
            m0        integer  first pixel, row-major in the output image
            k0        integer  first column
            ow        integer  width of the output image
            kh        integer  taps down
            kw        integer  taps across
            channels  integer  channels that are there
            c0        integer  channel block: 4 or 16
            sh=1      integer  stride down
            sw=1      integer  stride across
            dh=1      integer  dilation down
            dw=1      integer  dilation across
            ph=0      integer  rows of padding above
            pw=0      integer  columns of padding left
            row0      integer  image row at src; may be negative
            h         integer  height of the image
            w         integer  width of the image
            row       stride   bytes between image rows in L1
            pixel     stride   bytes between pixels
            pad=0     float    value outside the image
            dtype     dtype    element type
        """),
        cycles=fed("m", "k", "cube_m", "feed_a_bytes"),
        extents=("m", "k"),
        accesses=(
            # It reserves the image rows that its pixels can touch, in whole.
            Access(
                "src", Space.L1, False, ((_IM2COL_ROWS, "row"), ("w", "pixel")), f"channels * {_ES}",
                start="(max(0, m0 // ow * sh - ph) - row0) * row",
            ),
            Access("dst", Space.L0A, True, (("m", f"ld * {_ES}"),), f"k * {_ES}"),
        ),
    ),
)

# cube and drain ------------------------------------------------------------------------------------------------------
BLOCK_K = "(T.cube_k_f32 if dtype == 2 else T.cube_k_f16 if dtype < 2 else T.cube_k_i8)"
COST_F32 = "(T.cube_cost_f32 if dtype == 2 else 1)"
_ACC = (("m", "ldc * 4"),)

CUBE = (
    Instruction(
        "mma", Engine.CUBE, "Matrix multiply-accumulate.",
        "c[i, j] = (0 if init else c[i, j]) then fma(a[i, l], b[l, j], ·) for l ascending",
        fields("""
            dst     address  in L0C
            a       address  in L0A
            b       address  in L0B
            m,n,k   extent   extents
            lda     integer  elements
            ldb     integer  elements, a multiple of 16
            ldc     integer  f32 elements, a multiple of 16
            init=0  flag     start from 0
            dtype   dtype    element type
        """),
        cycles=f"T.fixed_mma + up(m, T.cube_m) * up(n, T.cube_n) * up(k, {BLOCK_K}) * {COST_F32}",
        extents=("m", "n", "k"),
        accesses=(
            Access("a", Space.L0A, False, (("m", f"lda * {_ES}"),), f"k * {_ES}"),
            Access("b", Space.L0B, False, (("k", f"ldb * {_ES}"),), f"n * {_ES}"),
            Access("dst", Space.L0C, True, _ACC, "n * 4", reads="init == 0"),
        ),
    ),
    Instruction(
        "mma_dw", Engine.CUBE, "Depthwise multiply-accumulate: a channel meets only its own taps.",
        "c[i, 16·g + j] = (0 if init else ·) then fma(a[i, (g·taps + t)·16 + j], b[(g·taps + t)·16 + j], ·) for t"
        " ascending",
        fields("""
            dst     address  in L0C
            a       address  in L0A
            b       address  in L0B
            m       extent   pixels
            groups  extent   blocks of 16 channels
            taps    extent   taps
            lda     integer  elements
            ldc     integer  f32 elements, a multiple of 16
            init=0  flag     start from 0
            dtype   dtype    element type
        """),
        cycles=f"T.fixed_mma + up(m, T.cube_m) * up(groups * 16, T.cube_n) * taps * {COST_F32}",
        extents=("m", "groups", "taps"),
        accesses=(
            Access("a", Space.L0A, False, (("m", f"lda * {_ES}"),), f"groups * taps * 16 * {_ES}"),
            Access("b", Space.L0B, False, (), f"groups * taps * 16 * {_ES}"),
            Access("dst", Space.L0C, True, _ACC, "groups * 64", reads="init == 0"),
        ),
    ),
    Instruction(
        "fold", Engine.CUBE, "Adds the sum of one segment to the total.",
        "dst[i, j] = src[i, j] if init else dst[i, j] + src[i, j]",
        fields("""
            dst     address  in L0C
            src     address  in L0C
            m,n     extent   extents
            ldc     integer  f32 elements
            init=0  flag     copy
        """),
        cycles="T.fixed_mma + up(m * n * 4, T.fold_bytes)", extents=("m", "n"),
        accesses=(
            Access("src", Space.L0C, False, _ACC, "n * 4"),
            Access("dst", Space.L0C, True, _ACC, "n * 4", reads="init == 0"),
        ),
    ),
)

DRAIN = (
    Instruction(
        "drain", Engine.DRAIN, "Takes results out of L0C: scale, bias, activation, cast.",
        "v = f32(c[i, j]), or c[i, j] itself if acc and dtype are i32 and nothing below applies; v = v·scale if scaled;"
        " v = v + bias[j] if biased; act: relu, or clip to [lo, hi]; dst[i·pitch + j·esize] = cast(v)",
        fields("""
            dst               address  in space
            space             space    ub, l1 or gm
            src               address  in L0C
            m,n               extent   extents
            ldc               integer  f32 elements
            pitch             stride   bytes between rows of dst
            bias=0            address  in UB, n values of f32
            biased=0          flag     add the bias
            scaled=0          flag     multiply by scale
            scale=0x3F800000  float    factor
            act=0             act      none, relu or clip
            lo=0              float    least value
            hi=0              float    largest value
            dtype             dtype    element type
            acc=2             dtype    type of c: f32 or i32
        """),
        cycles="T.fixed_drain + up(m * n, T.drain_elements)",
        gm_bytes=f"(m * up(n * {_ES}, T.gm_burst) * T.gm_burst if space == 0 else 0)",
        extents=("m", "n"),
        accesses=(
            Access("src", Space.L0C, False, _ACC, "n * 4"),
            Access("bias", Space.UB, False, (), "n * 4", when="biased"),
            Access("dst", "space", True, (("m", "pitch"),), f"n * {_ES}"),
        ),
    ),
)

# vector --------------------------------------------------------------------------------------------------------------

def _operand(name: str, when: str = "1") -> Access:
    return Access(name, Space.UB, False, runs(f"n0*{name}0 n1*{name}1 n2*{name}2"), size(f"t{name}"), when=when)


_RESULT = Access("dst", Space.UB, True, runs("n0*d0 n1*d1 n2*d2"), size("td"))
_WIDER = f"max({size('td')}, {size('ta')})"

VECTOR = (
    Instruction(
        "vmap", Engine.VECTOR, "An elementwise function over up to three operands in UB.",
        "dst[i] = cast(fn(a[i], b[i], c[i])) for i < (n0, n1, n2); a stride of 0 broadcasts",
        fields("""
            fn          fn       function
            dst         address  in UB
            a           address  in UB
            b,c=0       address  in UB
            n0,n1=1     extent   outer extents
            n2          extent   innermost extent
            d0,d1,d2=0  stride   byte strides of dst
            a0,a1,a2=0  stride   byte strides of a
            b0,b1,b2=0  stride   byte strides of b
            c0,c1,c2=0  stride   byte strides of c
            td          dtype    type of dst
            ta          dtype    type of a
            tb=2        dtype    type of b
            tc=2        dtype    type of c
            immb=0      float    operand b as a constant
            immc=0      float    operand c as a constant
            bimm=1      flag     b is immb
            cimm=1      flag     c is immc
        """),
        # Rows that follow each other without a gap count as one.
        cycles=f"T.fixed_vector + (up(n0 * n1 * n2 * {_WIDER}, T.vector_bytes)"
        " if d1 == n2 * d2 and (n0 == 1 or d0 == n1 * d1)"
        f" else n0 * n1 * up(n2 * {_WIDER}, T.vector_bytes)) * PASSES",
        extents=("n0", "n1", "n2"),
        accesses=(_operand("a"), _operand("b", "bimm == 0"), _operand("c", "cimm == 0"), _RESULT),
    ),
    Instruction(
        "vreduce", Engine.VECTOR, "A reduction over the middle axis, in eight lanes by absolute index.",
        "lanes of [n0, n2] in state (f32 [n0][n2][8]; i32 for integers): identity if first; lane[(start + i) mod 8] ∘="
        " a[·, i, ·] for i < n1; if last, dst = the tree over the lanes, cast",
        fields("""
            fn        reduction  sum, max, min or prod
            dst       address    in UB
            a         address    in UB
            state=0   address    in UB; unused when first and last
            n0=1      extent     kept, outer
            n1        extent     reduced
            n2=1      extent     kept, inner
            d0,d2=0   stride     byte strides of dst
            a0,a1,a2=0 stride    byte strides of a
            td        dtype      type of dst
            ta        dtype      type of a
            start=0   integer    absolute index of the first element
            first=1   flag       start the lanes
            last=1    flag       finish
        """),
        cycles=f"T.fixed_vector + n0 * up(n1 * n2 * {size('ta')}, T.vector_bytes)"
        " + (n0 * 8 if n2 == 1 else n0 * 8 * up(n2 * 4, T.vector_bytes))",
        extents=("n0", "n1", "n2"),
        accesses=(
            _operand("a"),
            Access("state", Space.UB, True, (), "n0 * n2 * 32", reads="first == 0", when="1 - first * last"),
            Access("dst", Space.UB, True, runs("n0*d0 n2*d2"), size("td"), when="last"),
        ),
    ),
    Instruction(
        "iota", Engine.VECTOR, "Writes an affine function of the position (masks, indices).",
        "dst[i] = cast(base + i0·c0 + i1·c1 + i2·c2)",
        fields("""
            dst         address  in UB
            n0,n1=1     extent   outer extents
            n2          extent   innermost extent
            d0,d1,d2=0  stride   byte strides of dst
            td          dtype    type of dst
            base=0      integer  any expression
            c0,c1,c2=0  integer  coefficient
        """),
        cycles=f"T.fixed_vector + n0 * n1 * up(n2 * {size('td')}, T.vector_bytes)",
        extents=("n0", "n1", "n2"),
        accesses=(_RESULT,),
    ),
)

# fmt: on
INSTRUCTIONS: tuple[Instruction, ...] = CONTROL + SYNC + MOVES + FEEDS + CUBE + DRAIN + VECTOR + INDIRECT + DEQUANTISE
BY_NAME = {instruction.name: instruction for instruction in INSTRUCTIONS}
OPCODE = {instruction.name: code for code, instruction in enumerate(INSTRUCTIONS)}
MAX_FIELDS = max(len(instruction.fields) for instruction in INSTRUCTIONS)
