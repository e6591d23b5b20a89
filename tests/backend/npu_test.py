"""The npu dialect agrees with the instruction table, with assembly and with the encoding."""

from random import Random

import pytest
from random_programs import any_program
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from stepwell.backend import BackendError, npu_to_program, program_to_npu
from stepwell.dialects import npu
from stepwell.dialects.npu import OPS, Npu
from stepwell.dialects.tile import Tile
from stepwell.dialects.tile.attributes import read_value, value_text
from stepwell.runtime import assembly, encoding, isa
from stepwell.runtime.encoding import Row
from stepwell.runtime.expr import Expr


def parse(text: str) -> ModuleOp:
    ctx = Context()
    for dialect in (Builtin, Tile, Npu):
        ctx.load_dialect(dialect)
    return Parser(ctx, text).parse_module()


def test_there_is_one_op_for_each_instruction() -> None:
    assert list(OPS) == [instruction.name for instruction in isa.INSTRUCTIONS if instruction.name != "end"]
    for name, kind in OPS.items():
        assert kind.name == f"npu.{name}"
        assert isa.BY_NAME[name] is kind.INSTRUCTION
        assert kind.__doc__


@pytest.mark.parametrize("name", [name for name in OPS if name != "loop"])
def test_fields_read_as_in_assembly(name: str) -> None:
    """A row with every field set to something: the op prints the row's text."""
    spec = isa.BY_NAME[name]
    values = [Expr(1 + number % 4) for number in range(len(spec.fields))]
    op = OPS[name].of(values)
    text = assembly.row_text(Row(name, tuple(values)))
    assert str(op) == f"npu.{text}"


@pytest.mark.parametrize("instruction", isa.INSTRUCTIONS, ids=lambda instruction: instruction.name)
def test_a_value_has_the_text_of_assembly(instruction: isa.Instruction) -> None:
    for number, spec in enumerate(instruction.fields):
        for value in (Expr(0), Expr(1), Expr(3), Expr(0x3F800000), Expr(7, clamp=3)):
            text = value_text(spec.kind, value)
            assert read_value(spec.kind, text) == value
            values = [value if other == number else Expr(1) for other in range(len(instruction.fields))]
            shown = value != Expr(spec.default or 0) or spec.default is None
            assert (f" {spec.name}={text}" in assembly.row_text(Row(instruction.name, tuple(values)))) == shown


@pytest.mark.parametrize("seed", range(40))
def test_programs_go_round(seed: int) -> None:
    """Binary → rows → npu ops → text → npu ops → rows → binary."""
    program = any_program(Random(seed), rows=30)
    encoding.check(program)
    kernel = program_to_npu(program, "any", ("gm", "index"), l1=64, ids=2)
    assert npu_to_program(kernel) == program
    module = ModuleOp([kernel])
    again = parse(str(module))
    assert str(again) == str(module)
    (read,) = again.body.block.ops
    assert isinstance(read, npu.KernelOp)
    assert encoding.encode(npu_to_program(read)) == encoding.encode(program)
    assert read.numbers == {"l1": 64, "ub": 0, "ids": 2, "slots": 1 + max(row.slot for row in program)}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("npu.load dat=r28 space=l1 src=r0 n4=1 esize=1 s4=1", "npu.load: no field dat; it has dst, space, src"),
        ("npu.load dst=r28 space=l1 src=r0 esize=1", "npu.load: n4, s4 must be given"),
        ("npu.set", "npu.set: src, dst, id must be given"),
        ("npu.fill twice dst=r28 space=l1 n2=1 esize=1", "npu.fill: 'twice' is no field=value"),
        ("npu.fill dst=r99 space=l1 n2=1 esize=1", "npu.fill: unknown variable 'r99'"),
        ("npu.fill dst=%t space=l1 n2=1 esize=1", "npu.fill: %t is not defined here"),
        ("npu.loop count=3", "expected { on this line"),
    ],
)
def test_text_that_is_no_row_is_answered_by_its_rule(line: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(f"npu.kernel @k(gm) l1=0 ub=0 ids=0 slots=1 {{\n  {line}\n}}")
    assert message in str(caught.value)


def test_a_comment_or_location_may_follow_a_row() -> None:
    text = (
        'npu.kernel @k() l1=0 ub=0 ids=0 slots=1 {\n  npu.mov rd=3 value=4 // four\n  npu.mov rd=4 value=5 loc("a")\n}'
    )
    first, second = next(iter(parse(text).body.block.ops)).regions[0].block.ops
    assert (str(first), str(second)) == ("npu.mov rd=3 value=4", "npu.mov rd=4 value=5")
    assert "a" in str(second.location)


def test_buffers_are_no_addresses() -> None:
    module = parse(
        "npu.kernel @k() l1=0 ub=0 ids=0 slots=1 {\n  %t = npu.buffer ub 64 x 1\n"
        "  npu.fill dst=%t space=ub n2=1 esize=1\n}"
    )
    (kernel,) = module.body.block.ops
    assert isinstance(kernel, npu.KernelOp)
    with pytest.raises(
        BackendError, match=r"npu.buffer: buffers need addresses before encoding .found one without.; run"
    ):
        npu_to_program(kernel)


def test_a_program_that_breaks_the_encoding_is_named() -> None:
    kernel = program_to_npu((Row("fill", (Expr(0), Expr(99), *[Expr(1)] * 7)),), "bad")
    with pytest.raises(BackendError, match=r"npu.kernel @bad: row 0: fill.space: 99; expected one of gm, l1"):
        npu_to_program(kernel)


def test_a_row_needs_all_its_fields() -> None:
    with pytest.raises(VerifyException, match=r"3 fields .found 2."):
        OPS["set"].of([Expr(1), Expr(2)]).verify()
