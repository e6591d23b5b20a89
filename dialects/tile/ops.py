"""Structure of the tile dialect: kernels, loops, buffers, and what all operations of engines share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import IndexType, IntAttr, StringAttr, SymbolNameConstraint
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from ...runtime.expr import LEVELS, Expr, ExprSyntaxError
from ...runtime.isa import BY_NAME, Engine
from .attributes import (
    BufferType,
    ExprsAttr,
    FieldsAttr,
    ShapeAttr,
    StridesAttr,
    parse_expr,
    read_value,
    row_major,
    value_text,
)


@irdl_op_definition
class KernelOp(IRDLOperation):
    """A kernel: a function of buffers in global memory (written ones included) and index scalars."""

    name = "tile.kernel"
    sym_name = prop_def(SymbolNameConstraint())
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface(), NoTerminator())

    def __init__(self, sym_name: str, argument_types: Sequence[Attribute]):
        super().__init__(
            properties={"sym_name": StringAttr(sym_name)}, regions=[Region(Block(arg_types=argument_types))]
        )

    @classmethod
    def parse(cls, parser: Parser) -> "KernelOp":
        name = parser.parse_symbol_name()
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        op = cls(name.data, [])
        op.detach_region(op.body)
        op.add_region(_parse_body(parser, arguments))
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string("(")
        printer.print_list(self.body.block.args, lambda argument: _print_argument(argument, printer))
        printer.print_string(") ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    def verify_(self) -> None:
        for argument in self.body.block.args:
            if isinstance(argument.type, BufferType):
                if argument.type.space.data != "gm" or argument.type.slots.data != 1:
                    raise VerifyException(f"arguments live in gm with one slot (found {argument.type})")
            elif not isinstance(argument.type, IndexType):
                raise VerifyException(f"arguments are buffers or index scalars (found {argument.type})")
        for op in self.body.block.ops:
            _verify_inside(op)


@irdl_op_definition
class ForOp(IRDLOperation):
    """A loop: `%i` runs from 0 to the bound by `step`; `add` runs it that many iterations longer (to empty a skewed
    pipeline).
    """

    name = "tile.for"
    indices = var_operand_def(IndexType())
    bound = prop_def(ExprsAttr)
    step = prop_def(IntAttr)
    add = opt_prop_def(IntAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())

    def __init__(self, bound: Expr, step: int, indices: Sequence[SSAValue] = (), add: int = 0):
        properties: dict[str, Attribute] = {"bound": ExprsAttr((bound,)), "step": IntAttr(step)}
        if add:
            properties["add"] = IntAttr(add)
        super().__init__(
            operands=[list(indices)], properties=properties, regions=[Region(Block(arg_types=[IndexType()]))]
        )

    @property
    def index(self) -> SSAValue:
        return self.body.block.args[0]

    @property
    def more_trips(self) -> int:
        return self.add.data if self.add is not None else 0

    @classmethod
    def parse(cls, parser: Parser) -> "ForOp":
        index = parser.parse_argument(expect_type=False).resolve(IndexType())
        for word in ("=", "0"):
            parser.parse_characters(word)
        parser.parse_keyword("to")
        bound = parse_expr(parser)
        parser.parse_keyword("step")
        step = parser.parse_integer()
        add = parser.parse_integer() if parser.parse_optional_keyword("add") else 0
        op = cls(bound, step, _parse_indices(parser), add)
        op.detach_region(op.body)
        op.add_region(_parse_body(parser, [index]))
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.index)
        printer.print_string(f' = 0 to "{self.bound.data[0]}" step {self.step.data}')
        if self.add is not None:
            printer.print_string(f" add {self.add.data}")
        _print_indices(printer, self.indices)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    def verify_(self) -> None:
        if self.step.data < 1:
            raise VerifyException(f"the step is 1 or more (found {self.step.data})")
        if (depth := 1 + sum(1 for _ in walk_loops(self))) > LEVELS:
            raise VerifyException(f"loops nest at most {LEVELS} deep (found {depth})")
        for op in self.body.block.ops:
            _verify_inside(op)
        _verify_expressions(self, self.bound.data, len(self.indices))


def _verify_inside(op: Operation) -> None:
    if not isinstance(op, (ForOp, AllocOp, GridOp, ScalarOp, TileOp)):
        raise VerifyException(f"a kernel holds loops, buffers, grids, scalars and tile ops only (found {op.name})")


@irdl_op_definition
class GridOp(IRDLOperation):
    """The cores of a kernel as a grid: coordinates of this core, the last one varies fastest. All but the first have a
    size; the first goes as far as there are cores.

    %i, %j, %k = tile.grid 4, 2          core = (8·%i + 2·%j) + %k, %j < 4, %k < 2
    """

    name = "tile.grid"
    sizes = prop_def(ShapeAttr)
    coordinates = var_result_def(IndexType())

    def __init__(self, sizes: Sequence[int]):
        super().__init__(properties={"sizes": ShapeAttr(tuple(sizes))}, result_types=[[IndexType()] * (len(sizes) + 1)])

    @property
    def steps(self) -> tuple[int, ...]:
        """Cores from one value of a coordinate to the next, by coordinate."""
        return row_major((1, *self.sizes.data))

    @classmethod
    def parse(cls, parser: Parser) -> "GridOp":
        return cls(parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_integer))

    def print(self, printer: Printer) -> None:
        printer.print_string(" " + ", ".join(map(str, self.sizes.data)))

    def verify_(self) -> None:
        sizes = list(self.sizes.data)
        if not sizes or min(sizes) < 1:
            raise VerifyException(f"there is a size for each coordinate but the first, 1 or more (found {sizes})")
        if len(self.coordinates) != len(sizes) + 1:
            raise VerifyException(f"{len(sizes) + 1} coordinates (found {len(self.coordinates)})")
        if not isinstance(self.parent_op(), KernelOp):
            raise VerifyException("a grid stands outside all loops")


@irdl_op_definition
class ScalarOp(IRDLOperation):
    """A number that no field expression can say: the smaller or the larger of two expressions, or their quotient
    rounded down (the second positive).

    %q = tile.scalar div "i0 + 5", "7" at (%m)
    """

    name = "tile.scalar"
    FUNCTIONS: ClassVar[tuple[str, ...]] = ("min", "max", "div")
    indices = var_operand_def(IndexType())
    fn = prop_def(StringAttr)
    values = prop_def(ExprsAttr)
    result = result_def(IndexType())

    def __init__(self, fn: str, a: Expr, b: Expr, indices: Sequence[SSAValue] = ()):
        properties: dict[str, Attribute] = {"fn": StringAttr(fn), "values": ExprsAttr((a, b))}
        super().__init__(operands=[list(indices)], properties=properties, result_types=[IndexType()])

    @classmethod
    def parse(cls, parser: Parser) -> "ScalarOp":
        fn = parser.parse_identifier()
        a = parse_expr(parser)
        parser.parse_punctuation(",")
        return cls(fn, a, parse_expr(parser), _parse_indices(parser))

    def print(self, printer: Printer) -> None:
        a, b = self.values.data
        printer.print_string(f' {self.fn.data} "{a}", "{b}"')
        _print_indices(printer, self.indices)

    def verify_(self) -> None:
        if self.fn.data not in self.FUNCTIONS:
            raise VerifyException(f"a scalar is one of {', '.join(self.FUNCTIONS)} (found {self.fn.data})")
        if len(self.values.data) != 2:
            raise VerifyException(f"a scalar is of two expressions (found {len(self.values.data)})")
        _verify_expressions(self, self.values.data, len(self.indices))


@irdl_op_definition
class AllocOp(IRDLOperation):
    """A buffer on chip. It belongs to the loop around it, which gives each iteration the next of its slots."""

    name = "tile.alloc"
    buffer = result_def(BufferType)
    assembly_format = "attr-dict `:` type($buffer)"

    def __init__(self, kind: BufferType):
        super().__init__(result_types=[kind])

    def verify_(self) -> None:
        if self.buffer.type.space.data == "gm":
            raise VerifyException("a buffer lives on chip; buffers in gm are arguments (found gm)")


@dataclass(frozen=True, slots=True)
class Operand:
    """A rule for a buffer operand: where it may live and which extents its strides belong to.

    `axes`: position of the extent of each stride, None for all extents in order. `row`: the buffer is read as a
    contiguous row, so its strides say nothing but 1. `like`: has the dtype of that operand. `types`: dtypes it may
    have.
    """

    role: str
    spaces: str
    axes: tuple[int, ...] | None = None
    optional: bool = False
    row: bool = False
    like: str | None = None
    types: str = ""

    def rank(self, extents: int) -> int:
        return extents if self.axes is None else len(self.axes)


class TileOp(IRDLOperation):
    """One operation of an engine. `OPERANDS` has the rule of each buffer; `RANK` is the least and largest number of
    extents.
    """

    OPERANDS: ClassVar[tuple[Operand, ...]] = ()
    RANK: ClassVar[tuple[int, int]] = (1, 5)
    INSTRUCTION: ClassVar[str] = ""
    FIELDS: ClassVar[str] = ""
    """Fields of the instruction that the op takes by name; the others follow from its boxes."""

    buffers = var_operand_def(BufferType)
    indices = var_operand_def(IndexType())
    extents = prop_def(ExprsAttr)
    offsets = prop_def(ExprsAttr)
    strides = prop_def(StridesAttr)
    fields = opt_prop_def(FieldsAttr)
    skews = opt_prop_def(StridesAttr)
    """Per buffer how many iterations of its loop ago the slot was the current one (software pipelines); all 0 if
    missing.
    """
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        buffers: Sequence[SSAValue],
        indices: Sequence[SSAValue],
        extents: Sequence[Expr],
        offsets: Sequence[Expr],
        strides: Sequence[Sequence[int]],
        fields: dict[str, Expr] | None = None,
        skews: Sequence[int] = (),
    ):
        properties: dict[str, Attribute] = {
            "extents": ExprsAttr(tuple(extents)),
            "offsets": ExprsAttr(tuple(offsets)),
            "strides": StridesAttr(tuple(tuple(row) for row in strides)),
        }
        if fields:
            properties["fields"] = FieldsAttr(tuple(sorted(fields.items())))
        if any(skews):
            properties["skews"] = StridesAttr((tuple(skews),))
        super().__init__(operands=[list(buffers), list(indices)], properties=properties)

    @property
    def engine(self) -> Engine:
        engine = BY_NAME[self.INSTRUCTION].engine
        assert engine is not None
        return engine

    @property
    def roles(self) -> dict[str, int]:
        """Position of each buffer operand that is there, by role."""
        return {rule.role: position for position, rule in enumerate(self.OPERANDS[: len(self.buffers)])}

    @property
    def named(self) -> tuple[tuple[str, Expr], ...]:
        """The fields given by name."""
        return self.fields.data if self.fields is not None else ()

    def field(self, name: str, default: int = 0) -> Expr:
        return self.fields.value(name, default) if self.fields is not None else Expr(default)

    def skew(self, position: int) -> int:
        return self.skews.data[0][position] if self.skews is not None else 0

    def kind(self, position: int) -> BufferType:
        kind = self.buffers[position].type
        assert isinstance(kind, BufferType)
        return kind

    @classmethod
    def parse(cls, parser: Parser) -> "TileOp":
        boxes = [_parse_box(parser)]
        while parser.parse_optional_punctuation(","):
            boxes.append(_parse_box(parser))
        parser.parse_keyword("extents")
        extents = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_expr(parser))
        fields = None
        if parser.parse_optional_keyword("fields"):
            fields = dict(parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: cls._parse_field(parser)))
        indices = _parse_indices(parser)
        return cls(
            [b[0] for b in boxes],
            indices,
            extents,
            [b[1] for b in boxes],
            [b[2] for b in boxes],
            fields,
            [b[3] for b in boxes],
        )

    @classmethod
    def _parse_field(cls, parser: Parser) -> tuple[str, Expr]:
        name = parser.parse_identifier()
        if name not in (known := cls.FIELDS.split()):
            parser.raise_error(f"{cls.name}: no field {name}; it takes {', '.join(known) or 'none'}")
        parser.parse_punctuation("=")
        spec = BY_NAME[cls.INSTRUCTION]
        try:
            return name, read_value(spec.fields[spec.index(name)].kind, parser.parse_str_literal())
        except ExprSyntaxError as error:
            parser.raise_error(f"{cls.name}: {name}: {error}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        for position, buffer in enumerate(self.buffers):
            printer.print_string(", " if position else "")
            printer.print_ssa_value(buffer)
            strides = ", ".join(map(str, self.strides.data[position]))
            skew = f" ago {self.skew(position)}" if self.skew(position) else ""
            printer.print_string(f'["{self.offsets.data[position]}" : {strides}]{skew}')
        printer.print_string(" extents [" + ", ".join(f'"{e}"' for e in self.extents.data) + "]")
        spec = BY_NAME[self.INSTRUCTION]
        texts = [f'{name} = "{value_text(spec.fields[spec.index(name)].kind, value)}"' for name, value in self.named]
        if texts:
            printer.print_string(" fields {" + ", ".join(texts) + "}")
        _print_indices(printer, self.indices)

    def verify_(self) -> None:
        from .rules import verify_op

        _verify_expressions(
            self, [*self.extents.data, *self.offsets.data, *(value for _, value in self.named)], len(self.indices)
        )
        verify_op(self)


def lookup(parser: Parser) -> SSAValue:
    """An operand that is already defined (its type follows from the definition)."""
    operand = parser.parse_unresolved_operand()
    values = parser.ssa_values.get(operand.operand_name)
    if values is None:
        parser.raise_error(f"%{operand.operand_name} is not defined here", operand.span)
    return values[0]


def _parse_box(parser: Parser) -> tuple[SSAValue, Expr, tuple[int, ...], int]:
    buffer = lookup(parser)
    parser.parse_punctuation("[")
    offset = parse_expr(parser)
    strides: list[int] = []
    while parser.parse_optional_punctuation(":") or parser.parse_optional_punctuation(","):
        strides.append(parser.parse_integer())
    parser.parse_punctuation("]")
    skew = parser.parse_integer() if parser.parse_optional_keyword("ago") else 0
    return buffer, offset, tuple(strides), skew


def _parse_body(parser: Parser, arguments: Sequence[Parser.Argument]) -> Region:
    region = parser.parse_region(arguments)
    if not region.blocks:  # `{}`
        region.add_block(Block(arg_types=[argument.type for argument in arguments]))
    return region


def _parse_indices(parser: Parser) -> list[SSAValue]:
    if not parser.parse_optional_keyword("at"):
        return []
    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: lookup(parser))


def _print_argument(argument: SSAValue, printer: Printer) -> None:
    """Without a location, which xDSL prints but does not read."""
    printer.print_ssa_value(argument)
    printer.print_string(": ")
    printer.print_attribute(argument.type)


def _print_indices(printer: Printer, indices: Sequence[SSAValue]) -> None:
    if indices:
        printer.print_string(" at (")
        printer.print_list(indices, printer.print_ssa_value)
        printer.print_string(")")


def _verify_expressions(op: Operation, expressions: Sequence[Expr], indices: int) -> None:
    for expression in expressions:
        for term in expression.terms:
            for name in (term.x, term.y):
                if name.startswith("r") or (name.startswith("i") and int(name[1:]) >= indices):
                    there = (
                        f"i0 to i{indices - 1} (the indices after `at`) and core"
                        if indices
                        else "core only (there are no indices after `at`)"
                    )
                    raise VerifyException(f"{expression} uses {name}; there are {there}")
        if expression.ring is not None:
            raise VerifyException(f"{expression} has a ring; slots are chosen by the buffer's type")


def walk_loops(op: Operation) -> Iterator[ForOp]:
    """The loops around an op, innermost first."""
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, ForOp):
            yield parent
        parent = parent.parent_op()
