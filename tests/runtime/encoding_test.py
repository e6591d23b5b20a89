"""Programs as rows, bytes and text: round trips, and what each reader refuses."""

import re
import struct
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_programs import any_expression, any_program

from stepwell.runtime import isa
from stepwell.runtime.assembly import assemble, disassemble
from stepwell.runtime.encoding import WORD, Program, ProgramError, check, decode, encode, row
from stepwell.runtime.expr import Expr, ExprSyntaxError, parse


@given(st.integers(0, 1 << 32), st.integers(0, 40))
def test_bytes_and_text_read_back(seed: int, rows: int) -> None:
    program = any_program(Random(seed), rows)
    assert decode(encode(program)) == program
    assert assemble(disassemble(program)) == program


@given(st.integers(0, 1 << 32), st.integers(0, 5))
def test_expressions_read_back(seed: int, depth: int) -> None:
    expression = any_expression(Random(seed), depth)
    assert parse(str(expression)) == expression


def decoded(code: bytes) -> Program | str:
    """The program, or why it was refused."""
    try:
        return decode(code)
    except ProgramError as error:
        return str(error)


@given(st.integers(0, 1 << 32), st.data())
def test_any_bytes_decode_to_what_encodes_to_them_or_are_refused(seed: int, data: st.DataObject) -> None:
    code = bytearray(encode(any_program(Random(seed), 4)))
    code[data.draw(st.integers(0, len(code) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    found = decoded(bytes(code))
    assert found if isinstance(found, str) else encode(found) == code


@given(st.integers(0, 1 << 32), st.data())
def test_a_cut_program_is_refused_or_is_its_beginning(seed: int, data: st.DataObject) -> None:
    program = any_program(Random(seed), 6)
    code = encode(program)
    found = decoded(code[: data.draw(st.integers(0, len(code) - 1))])
    if isinstance(found, str):
        assert re.search(r"ends inside a header|bytes, \d+ are left|without an end", found)
    else:
        assert found == program[: len(found)]


SET = encode(assemble("set src=load dst=feed id=core + r1 + ring(0, 0, 2)*4"))


def patched(at: int, value: int) -> bytes:
    return SET[:at] + bytes([value]) + SET[at + 1 :]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (b"\0" * 7, "row 0 at byte 0: the program ends inside a header"),
        (
            patched(0, 200),
            f"row 0 at byte 0: opcode 200; this ISA (version {isa.ISA_VERSION}) has 0 to {len(isa.INSTRUCTIONS) - 1}",
        ),
        (SET[:-WORD], "row 0 at byte 0: set needs 96 bytes, 80 are left"),
        (patched(1, 9), "byte 1: 9; 0 was expected"),
        (patched(12, 9), "byte 12: 9; 0 was expected"),
        (patched(40, 9), "byte 40: 9; 0 was expected"),
        (patched(48, 7), "modifier kind 7; 1 (term), 2 (clamp) or 3 (ring) was expected"),
        (patched(49, 3), "modifier of field 3"),
        (patched(50, 39), "with variables 39, 0"),
        (patched(82, 16), "ring 16 of 2 slots; rings are 0 to 15 with 1 to 8 slots"),
        (patched(83, 9), "ring 0 of 9 slots"),
        (patched(16, 7), "row 0: set.src: 7; expected one of scalar, load"),
        (patched(16, 0), "row 0: set.src: scalar; expected an engine with a queue"),
        (SET[:48] + SET[64:80] + SET[48:64] + SET[80:], ""),
        (SET[:48] + SET[80:] + SET[48:80], "follow in order"),
        (
            encode(assemble("mov rd=3 value=0"))[:16] + struct.pack("<qq", 32, 0),
            "row 0: mov.rd: register 32; expected 0 to 31",
        ),
    ],
)
def test_malformed_bytes_are_refused(code: bytes, message: str) -> None:
    if not message:
        assert encode(decode(code)) == code
        return
    with pytest.raises(ProgramError, match=re.escape(message)):
        decode(code)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ((row("end"),), "row 0: end at depth -1; loops nest up to 5 deep and each end closes one"),
        ((row("loop", count=1),) * 6, "row 5: loop at depth 6"),
        ((row("loop", count=1),), "1 loop(s) without an end"),
        ((row("loop", count=1, ring=16), row("end")), "row 0: loop.ring: ring 16; expected 0 to 15"),
        ((row("loop", count=1, ring=parse("r0")), row("end")), "row 0: loop.ring: ring r0; expected 0 to 15"),
        ((row("mov", rd=1, value=parse("i0")),), "row 0: mov.value: i0 is no loop around this row"),
        ((row("loop", count=parse("i0")), row("end")), "row 0: loop.count: i0 is no loop around this row"),
        ((row("mov", rd=1, value=1 << 63),), "row 0: mov.value: 9223372036854775808; its numbers must fit 64 bits"),
        ((row("mov", rd=1, value=parse("ring(0, 2147483648, 2)*1")),), "(the offset of a ring 32)"),
        ((row("mov", rd=1, value=Expr(0, (), -1)),), "row 0: mov.value: clamp to -1; it must not be negative"),
        ((row("set", src=9, dst=1, id=0), row("mov", rd=40, value=0)), "row 1: mov.rd: register 40"),
        ((row("set", src=9, dst=1, id=0), row("mov", rd=40, value=0)), "row 0: set.src: 9; expected one of"),
    ],
)
def test_check_names_the_row_and_the_rule(program: Program, message: str) -> None:
    with pytest.raises(ProgramError, match=re.escape(message)):
        check(program)
    with pytest.raises(ProgramError, match=re.escape(message)):
        encode(program)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fly high", "line 1: unknown instruction 'fly'"),
        ("; nothing\nset src=load", "line 2: set: dst, id must be given"),
        ("set src=load dst=feed id=0 to=3", "line 1: set: no field to; it has src, dst, id"),
        ("set src=load dst=feed id=", "expected a value, found 'the end'"),
        ("set loudly src=load dst=feed id=0", "line 1: set: 'loudly' is no field=expression"),
        ("set src=load dst=feed id=2*", "line 1: expected a value, found 'the end' in '2*'"),
        ("set src=load dst=feed id=x", "line 1: unknown variable 'x' in 'x'"),
        ("set src=load dst=feed id=r1*r2*r3", "a term has at most two variables, found r1*r2*r3"),
        ("mov rd=1 value=0\nset src=ship dst=feed id=0", "line 2: unknown variable 'ship'"),
        ("fly\nset src=load", "line 1: unknown instruction 'fly'; line 2: set: dst, id must be given"),
        ("mov rd=1 value=-clamp(r1, 3)", "a clamp is neither negative nor over a ring"),
        ("mov rd=1 value=ring(0, 1)*2", "expected ,, found ')'"),
    ],
)
def test_malformed_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ProgramError, match=re.escape(message)):
        assemble(text)


def test_floats_are_written_as_numbers_and_may_be_expressions() -> None:
    text = "fill dst=0 space=ub n2=1 esize=4"
    assert assemble(text)[0]["pattern"] == Expr(0)
    program = assemble("drain dst=0 space=ub src=0 m=1 n=1 ldc=16 pitch=4 scaled=1 scale=0.5 lo=-inf hi=r3 dtype=f32")
    assert program[0]["scale"] == Expr(0x3F000000)
    assert program[0]["lo"] == Expr(0xFF800000)
    assert program[0]["hi"] == parse("r3")
    assert "scale=0.5 lo=-inf hi=r3" in disassemble(program)


def test_slots_and_indentation() -> None:
    text = "loop count=r0\n  set src=load dst=feed id=i0   ; slot 7\nend\n"
    assert disassemble(assemble(text)) == text
    assert assemble(text)[1].slot == 7


def test_expression_errors_are_of_their_own_type() -> None:
    with pytest.raises(ExprSyntaxError, match="unexpected '\\)' in '3\\)'"):
        parse("3)")
