"""The npu dialect: a kernel as instructions in hardware loops; one op for each instruction of `runtime/isa.py`.

Fields are written as in assembly (`runtime/assembly.py`), one instruction a line. Before addresses are chosen, an
address may begin with an on-chip buffer, and `[-1]` names the slot that was the current one an iteration of the
buffer's loop ago:

    npu.kernel @relu(gm, gm) l1=0 ub=0 ids=0 slots=1 {
      npu.loop count=1000 step=128 {
        %t = npu.buffer ub 16384 x 2
        npu.load dst=%t space=ub src=r0 + 16384*i0 n3=clamp(1000 - 128*i0, 128) n4=64 esize=2 d3=128 s3=128 s4=2
        npu.vmap fn=relu dst=%t a=%t …
        npu.store dst=r1 + 16384*i0 src=%t space=ub …
      }
    }

`synchronise` adds `npu.set`, `npu.wait` and `npu.grant`; `allocate` replaces buffers by addresses (`r29 + ring(1, 0,
2)*16384`) and gives the kernel its numbers. Then each op is one row of the program (`backend/encode.py`). `slot=3` is
the row's place in the location table, 0 if left out.

Grammar:

    kernel = npu.kernel @NAME ( [gm | index, …] ) l1=N ub=N ids=N slots=N { op … }
    op     = %b = npu.buffer (l1 | l0a | l0b | l0c | ub) BYTES x SLOTS        belongs to the loop around it
           | npu.loop FIELDS { op … }                                         i0 … i4 count from 0 by depth
           | npu.INSTRUCTION FIELDS
    FIELDS = name=VALUE …  [slot=N]                           to the end of the line (for a loop, to the brace)
    VALUE  = EXPR | NAME | FLOAT | %b [ [-AGO] ] [+ EXPR]
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr, SymbolNameConstraint
from xdsl.ir import Attribute, Block, Data, Dialect, Operation, ParametrizedAttribute, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    opt_prop_def,
    param_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from ..runtime.expr import LEVELS, MAX_SLOTS, Expr, ExprSyntaxError, parse
from ..runtime.isa import BY_NAME, INSTRUCTIONS, Access, Engine, Instruction, Space
from .tile.attributes import read_value, value_text

ON_CHIP = ("l1", "l0a", "l0b", "l0c", "ub")
KINDS = ("gm", "index")
"""What an argument register holds: the address of a buffer in global memory, or a number."""


@irdl_attr_definition
class FieldsAttr(Data[tuple[Expr, ...]]):
    """The fields of an instruction in the order of its declaration."""

    name = "npu.fields"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Expr, ...]:
        return tuple(
            parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: parse(parser.parse_str_literal()))
        )

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<" + ", ".join(f'"{e}"' for e in self.data) + ">")


@irdl_attr_definition
class PlacesAttr(Data[tuple[tuple[int, int], ...]]):
    """For each buffer operand the field whose value it begins, and how many iterations ago its slot was the current
    one.
    """

    name = "npu.places"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[int, int], ...]:
        def pair() -> tuple[int, int]:
            field = parser.parse_integer()
            parser.parse_punctuation(":")
            return field, parser.parse_integer()

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, pair))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<" + ", ".join(f"{field} : {ago}" for field, ago in self.data) + ">")


@irdl_attr_definition
class HandleType(ParametrizedAttribute, TypeAttribute):
    """`!npu.handle<"l1">`: a buffer of a memory, before it has an address."""

    name = "npu.handle"
    space: StringAttr = param_def()


@irdl_op_definition
class BufferOp(IRDLOperation):
    """A buffer on chip without an address yet. It belongs to the loop around it; each iteration uses the next slot.

    %a = npu.buffer l1 32768 x 2
    """

    name = "npu.buffer"
    space = prop_def(StringAttr)
    bytes = prop_def(IntAttr)
    slots = prop_def(IntAttr)
    handle = result_def(HandleType)

    def __init__(self, space: str, size: int, slots: int = 1):
        properties: dict[str, Attribute] = {"space": StringAttr(space), "bytes": IntAttr(size), "slots": IntAttr(slots)}
        super().__init__(properties=properties, result_types=[HandleType(StringAttr(space))])

    @classmethod
    def parse(cls, parser: Parser) -> "BufferOp":
        space = parser.parse_identifier()
        size = parser.parse_integer()
        parser.parse_characters("x")
        return cls(space, size, parser.parse_integer())

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.space.data} {self.bytes.data} x {self.slots.data}")

    def verify_(self) -> None:
        if self.space.data not in ON_CHIP:
            raise VerifyException(f"the memory is one of {', '.join(ON_CHIP)} (found {self.space.data})")
        if self.bytes.data < 1 or not 1 <= self.slots.data <= MAX_SLOTS:
            raise VerifyException(
                f"at least 1 byte and 1 to {MAX_SLOTS} slots (found {self.bytes.data} x {self.slots.data})"
            )


class RowOp(IRDLOperation):
    """A row of a program: the fields of an instruction, some addresses of which begin with a buffer."""

    INSTRUCTION: ClassVar[Instruction] = BY_NAME["end"]

    buffers = var_operand_def(HandleType)
    fields = prop_def(FieldsAttr)
    places = opt_prop_def(PlacesAttr)
    slot = opt_prop_def(IntAttr)

    @classmethod
    def of(
        cls,
        fields: Sequence[Expr],
        slot: int = 0,
        buffers: Sequence[SSAValue] = (),
        places: Sequence[tuple[int, int]] = (),
        regions: Sequence[Region] = (),
    ) -> "RowOp":
        """A row by its fields in order; operand k begins field `places[k][0]`, `places[k][1]` iterations ago."""
        properties: dict[str, Attribute] = {"fields": FieldsAttr(tuple(fields))}
        if places:
            properties["places"] = PlacesAttr(tuple(places))
        if slot:
            properties["slot"] = IntAttr(slot)
        return cls.create(operands=buffers, properties=properties, regions=regions)

    def __getitem__(self, field: str) -> Expr:
        return self.fields.data[self.INSTRUCTION.index(field)]

    @property
    def slot_number(self) -> int:
        """Slot in the kernel's location table; 0: the kernel itself."""
        return self.slot.data if self.slot is not None else 0

    @property
    def placed(self) -> tuple[tuple[int, int], ...]:
        """For each buffer (the field that it begins, iterations ago)."""
        return self.places.data if self.places is not None else ()

    @property
    def queue(self) -> Engine | None:
        """The engine whose queue takes the row; None for what the sequencer executes."""
        field = self.INSTRUCTION.queue_field
        engine = self.INSTRUCTION.engine if field is None else Engine(self[field].base)
        return engine or None

    def accesses(self) -> Iterator[tuple[int, Access, str]]:
        """(field, access, memory) of every operand in memory; of operands that a flag may switch off, those that are
        there.
        """
        instruction = self.INSTRUCTION
        for access in instruction.accesses:
            field = instruction.index(access.field)
            if self._absent(access, field):
                continue
            space = self[access.space].base if isinstance(access.space, str) else access.space
            yield field, access, Space(space).name.lower()

    def _absent(self, access: Access, field: int) -> bool:
        if access.when == "1" or any(at == field for at, _ in self.placed):
            return False
        return self.fields.data[field] == Expr() or self._switched_off(access.when)

    def _switched_off(self, flag: str) -> bool:
        names = {"biased": 0, "bimm == 0": 1, "cimm == 0": 1}
        name = flag.partition(" ")[0]
        return flag in names and self[name] == Expr(names[flag])

    # text -----------------------------------------------------------------------------------------------------------
    def print(self, printer: Printer) -> None:
        begins = {field: (buffer, ago) for buffer, (field, ago) in zip(self.buffers, self.placed, strict=True)}
        for number, (spec, value) in enumerate(zip(self.INSTRUCTION.fields, self.fields.data, strict=True)):
            if number in begins:
                printer.print_string(f" {spec.name}=")
                printer.print_ssa_value(begins[number][0])
                printer.print_string((f"[-{begins[number][1]}]" if begins[number][1] else "") + _added(value))
            elif spec.default is None or value != Expr(spec.default):
                printer.print_string(f" {spec.name}={value_text(spec.kind, value)}")
        if self.slot_number:
            printer.print_string(f" slot={self.slot_number}")

    @classmethod
    def parse(cls, parser: Parser) -> "RowOp":
        start = parser.pos
        return cls._read(parser, start, _line(parser, "\n"))

    @classmethod
    def _read(cls, parser: Parser, start: int, text: str, regions: Sequence[Region] = ()) -> "RowOp":
        try:
            return _row(parser, cls, text, regions)
        except (ExprSyntaxError, ValueError) as error:
            parser.raise_error(f"npu.{cls.INSTRUCTION.name}: {error}", start, start + len(text))

    def verify_(self) -> None:
        for problem in self._problems():
            raise VerifyException(problem)

    def _problems(self) -> Iterator[str]:
        expected, found = len(self.INSTRUCTION.fields), len(self.fields.data)
        if expected != found:
            yield f"{expected} fields (found {found})"
        elif len(self.placed) != len(self.buffers):
            yield f"each buffer begins one field (found {len(self.buffers)} buffers, {len(self.placed)} fields)"
        else:
            yield from self._place_problems()
            yield from self._variable_problems()

    def _place_problems(self) -> Iterator[str]:
        spaces = {field: space for field, _, space in self.accesses()}
        for buffer, (field, ago) in zip(self.buffers, self.placed, strict=True):
            name, kind = self.INSTRUCTION.fields[field].name, buffer.type
            assert isinstance(kind, HandleType)
            if field not in spaces:
                yield f"{name} is an address (found {kind.space.data} where there is none)"
            elif spaces[field] != kind.space.data:
                yield f"{name} lies in {spaces[field]} (found a buffer of {kind.space.data})"
            slots = buffer.owner.slots.data if isinstance(buffer.owner, BufferOp) else MAX_SLOTS
            if not 0 <= ago <= slots:
                yield f"{name} names a slot of at most {slots} iterations ago (found {ago})"

    def _variable_problems(self) -> Iterator[str]:
        depth = sum(1 for _ in loops_around(self))
        for spec, value in zip(self.INSTRUCTION.fields, self.fields.data, strict=True):
            names = [name for term in value.terms for name in (term.x, term.y)]
            for name in names:
                if name.startswith("i") and int(name[1:]) >= depth:
                    yield f"{spec.name}: {name} is no loop around this row (found {value})"


def _added(value: Expr) -> str:
    text = str(value)
    return "" if text == "0" else f" - {text[1:]}" if text.startswith("-") else f" + {text}"


_FIELD = re.compile(r"(\w+)=((?:(?!\s+\w+=).)*)")
_PLACE = re.compile(r"%([\w$.-]+?)\s*(?:\[-(\d+)\])?\s*(?:\+(.*)|(-.*))?")
_COMMENT = re.compile(r"//| loc\(")


def _line(parser: Parser, end: str) -> str:
    """The text up to a newline (or brace), where parsing then goes on; empty if the line has ended already."""
    content, start = str(parser.lexer.input.content), parser.pos
    before = start
    while before and content[before - 1].isspace():
        before -= 1
        if content[before] == "\n":
            return ""
    stop = content.find("\n", start)
    stop = len(content) if stop < 0 else stop
    if end != "\n":
        stop = content.find(end, start, stop)
        if stop < 0:
            parser.raise_error(f"expected {end} on this line")
    elif comment := _COMMENT.search(content, start, stop):
        stop = comment.start()
    parser._resume_from(stop)  # pyright: ignore[reportPrivateUsage] - xDSL offers no way to read text of one's own
    return content[start:stop]


def _row(parser: Parser, kind: type[RowOp], text: str, regions: Sequence[Region]) -> RowOp:
    specs = {spec.name: (number, spec) for number, spec in enumerate(kind.INSTRUCTION.fields)}
    fields: dict[int, Expr] = {}
    buffers: list[SSAValue] = []
    places: list[tuple[int, int]] = []
    slot = 0
    if stray := _FIELD.sub("", text).strip():
        raise ValueError(f"{stray!r} is no field=value")
    for name, value in _FIELD.findall(text):
        if name == "slot":
            slot = int(value)
            continue
        if name not in specs:
            raise ValueError(f"no field {name}; it has {', '.join(specs)}")
        number, spec = specs[name]
        if (place := _PLACE.fullmatch(value.strip())) is not None:
            buffers.append(_buffer(parser, place.group(1)))
            places.append((number, int(place.group(2) or 0)))
            value = place.group(3) or place.group(4) or "0"
        fields[number] = read_value(spec.kind, value.strip())
    if missing := [name for name, (number, spec) in specs.items() if spec.default is None and number not in fields]:
        raise ValueError(f"{', '.join(missing)} must be given")
    values = [fields.get(number, Expr(spec.default or 0)) for number, spec in specs.values()]
    return kind.of(values, slot, buffers, places, regions)


def _buffer(parser: Parser, name: str) -> SSAValue:
    values = parser.ssa_values.get(name)
    if values is None:
        raise ValueError(f"%{name} is not defined here")
    return values[0]


@irdl_op_definition
class LoopOp(RowOp):
    """A hardware loop, `loop` … `end` of the program."""

    name = "npu.loop"
    INSTRUCTION: ClassVar = BY_NAME["loop"]
    body = region_def("single_block")
    traits = traits_def(NoTerminator())

    @classmethod
    def parse(cls, parser: Parser) -> "RowOp":
        start = parser.pos
        text = _line(parser, "{")
        return cls._read(parser, start, text, [_parse_body(parser)])

    def print(self, printer: Printer) -> None:
        super().print(printer)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    def verify_(self) -> None:
        if (depth := 1 + sum(1 for _ in loops_around(self))) > LEVELS:
            raise VerifyException(f"loops nest at most {LEVELS} deep (found {depth})")
        super().verify_()


def _parse_body(parser: Parser) -> Region:
    region = parser.parse_region()
    if not region.blocks:  # `{}`
        region.add_block(Block())
    return region


def _define(instruction: Instruction) -> type[RowOp]:
    """The op of an instruction."""
    title = "".join(word.capitalize() for word in instruction.name.split("_"))
    body: dict[str, Any] = {
        "name": f"npu.{instruction.name}",
        "__doc__": f"{instruction.doc}\n\n    {instruction.action}\n",
        "__module__": __name__,
        "__annotations__": {"INSTRUCTION": ClassVar[Instruction]},
        "INSTRUCTION": instruction,
    }
    return irdl_op_definition(type(f"{title}Op", (RowOp,), body))


OPS: Mapping[str, type[RowOp]] = {
    "loop": LoopOp,
    **{
        instruction.name: _define(instruction)
        for instruction in INSTRUCTIONS
        if instruction.name not in ("loop", "end")
    },
}
"""The op of each instruction by name; `end` is the end of a loop's region."""


def row_op(name: str, slot: int = 0, /, **fields: Expr | int) -> RowOp:
    """An op by named fields, without buffers; those with a default may be left out."""
    kind = OPS[name]
    values = [fields.pop(spec.name, spec.default or 0) for spec in kind.INSTRUCTION.fields]
    if fields:
        raise ValueError(f"npu.{name}: no field {', '.join(fields)}")
    return kind.of([value if isinstance(value, Expr) else Expr(value) for value in values], slot)


@irdl_op_definition
class KernelOp(IRDLOperation):
    """A kernel: its arguments in r0, r1 …, the bytes of L1 and UB and the token ids it uses, the size of its location
    table.
    """

    name = "npu.kernel"
    sym_name = prop_def(SymbolNameConstraint())
    arguments = prop_def(ArrayAttr[StringAttr])
    l1 = prop_def(IntAttr)
    ub = prop_def(IntAttr)
    ids = prop_def(IntAttr)
    slots = prop_def(IntAttr)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface(), NoTerminator())

    NUMBERS: ClassVar = ("l1", "ub", "ids", "slots")

    def __init__(
        self,
        sym_name: str,
        arguments: Iterable[str],
        body: Region | None = None,
        *,
        l1: int = 0,
        ub: int = 0,
        ids: int = 0,
        slots: int = 1,
    ):
        numbers = {"l1": l1, "ub": ub, "ids": ids, "slots": slots}
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr(sym_name),
            "arguments": ArrayAttr([StringAttr(kind) for kind in arguments]),
            **{name: IntAttr(value) for name, value in numbers.items()},
        }
        super().__init__(properties=properties, regions=[body or Region(Block())])

    @property
    def kinds(self) -> tuple[str, ...]:
        """What each argument register holds."""
        return tuple(kind.data for kind in self.arguments)

    @property
    def numbers(self) -> dict[str, int]:
        return {"l1": self.l1.data, "ub": self.ub.data, "ids": self.ids.data, "slots": self.slots.data}

    def set_number(self, name: str, value: int) -> None:
        self.properties[name] = IntAttr(value)

    @classmethod
    def parse(cls, parser: Parser) -> "KernelOp":
        name = parser.parse_symbol_name().data
        kinds = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_identifier)
        numbers: dict[str, int] = {}
        for key in cls.NUMBERS:
            parser.parse_keyword(key)
            parser.parse_punctuation("=")
            numbers[key] = parser.parse_integer()
        return cls(name, kinds, _parse_body(parser), **numbers)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        numbers = " ".join(f"{key}={value}" for key, value in self.numbers.items())
        printer.print_string(f"({', '.join(self.kinds)}) {numbers} ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    def verify_(self) -> None:
        if wrong := [kind for kind in self.kinds if kind not in KINDS]:
            raise VerifyException(f"an argument is {' or '.join(KINDS)} (found {', '.join(wrong)})")
        for op in self.body.walk():
            if not isinstance(op, (RowOp, BufferOp)):
                raise VerifyException(f"holds buffers and instructions only (found {op.name})")


def loops_around(op: Operation) -> Iterator[LoopOp]:
    """The loops around an op, innermost first."""
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, LoopOp):
            yield parent
        parent = parent.parent_op()


Npu = Dialect("npu", [KernelOp, BufferOp, *OPS.values()], [FieldsAttr, PlacesAttr, HandleType])
