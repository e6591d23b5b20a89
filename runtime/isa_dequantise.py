"""The feed that makes floats of packed integers on its way; the last instruction of `isa.py`."""

from .isa_form import Access, Engine, Instruction, Space, fed, fields, size

_BLOCKS = "(k0 + k - 1) // block - k0 // block + 1"
"""Blocks that the rows meet."""

# fmt: off
DEQUANTISE = (
    Instruction(
        "feed_q", Engine.FEED,
        "Brings a matrix of integers from L1 to the right operand of the cube, as floats: with a scale, and maybe a"
        " zero point, for each block of rows of a column.",
        "dst[i·ld + j] = cast(cast_ts((q − z)·s)); i < k, j < n; q = element i of column j, from src + j·pitch on;"
        " b = (k0 + i) div block; s = element b from scale + j·spitch on; z = byte b from zero + j·zpitch on if zeros,"
        " else 0",
        fields("""
            dst      address  in L0B
            src      address  in L1
            scale    address  in L1
            zero=0   address  in L1
            k        extent   rows
            n        extent   columns
            ld       integer  elements between rows of L0B, a multiple of 16
            pitch    stride   bytes between columns of src
            spitch   stride   bytes between columns of scales
            zpitch=0 stride   bytes between columns of zero points
            k0=0     integer  row 0, counted from the beginning of the first block
            block    integer  rows of a block, at least 16
            zeros=0  flag     there are zero points; i8 or u8, signed as q
            of       packed   type of q; of 4 bits: two in a byte, the first in its low half
            ts       dtype    type of scales: f16, bf16 or f32
            dtype    dtype    type of dst: f16, bf16 or f32
        """),
        # The path to L0B bounds it: for the 32 bytes of 16 elements at most 21 are read, 16 + 4 + 1.
        cycles=fed("n", "k", "cube_n", "feed_b_bytes"),
        extents=("k", "n"),
        accesses=(
            Access("src", Space.L1, False, (("n", "pitch"),), "(up(k, 2) if of > 7 else k)"),
            Access(
                "scale", Space.L1, False, (("n", "spitch"),), f"({_BLOCKS}) * {size('ts')}",
                start=f"k0 // block * {size('ts')}",
            ),
            Access("zero", Space.L1, False, (("n", "zpitch"),), _BLOCKS, when="zeros", start="k0 // block"),
            Access("dst", Space.L0B, True, (("k", f"ld * {size('dtype')}"),), f"n * {size('dtype')}"),
        ),
    ),
)
# fmt: on
