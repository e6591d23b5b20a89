"""How an operator of the graph dialect reads: `graph.name operands {properties} : (types) -> type`.

    %1 = graph.reduce_sum %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>

Properties and other attributes stand in one dictionary, as numbers, lists, strings and `true`. A property that holds
integers is a dense array of i64 in memory, which builds and compares faster than a list of attributes.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, FloatAttr, IntegerAttr, f64, i1, i64
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser
from xdsl.printer import Printer

Op = TypeVar("Op", bound=IRDLOperation)


def print_op(op: Operation, printer: Printer) -> None:
    """All of an op but its results and its name."""
    if op.operands:
        printer.print_string(" ")
        printer.print_list(op.operands, printer.print_ssa_value)
    print_dictionary({**op.properties, **op.attributes}, printer)
    printer.print_string(" : ")
    print_signature(op, printer)


def print_signature(op: Operation, printer: Printer) -> None:
    """`(operand types) -> type`, with parentheses around any other number of results than one."""
    with printer.in_parens():
        printer.print_list(op.operand_types, printer.print_attribute)
    printer.print_string(" -> ")
    if len(op.results) == 1:
        printer.print_attribute(op.results[0].type)
        return
    with printer.in_parens():
        printer.print_list(op.result_types, printer.print_attribute)


def print_dictionary(entries: Mapping[str, Attribute], printer: Printer) -> None:
    """Properties and attributes, if there are any."""
    if not entries:
        return
    printer.print_string(" {")
    for position, (name, value) in enumerate(entries.items()):
        printer.print_string(f"{', ' if position else ''}{name} = ")
        print_value(value, printer)
    printer.print_string("}")


def print_value(value: Attribute, printer: Printer) -> None:
    """A property without its type where that is the default one."""
    match value:
        case DenseArrayBase() if value.elt_type == i64:
            printer.print_string(f"[{', '.join(map(str, integers(value)))}]")
        case IntegerAttr() if value.type == i64:
            printer.print_string(str(value.value.data))
        case IntegerAttr() if value.type == i1:
            printer.print_string("true" if value.value.data else "false")
        case FloatAttr() if value.type == f64 and math.isfinite(value.value.data):
            printer.print_string(float_text(value.value.data))
        case _:
            printer.print_attribute(value)


def integers(value: DenseArrayBase) -> tuple[int, ...]:
    """The elements of a dense array of integers."""
    return tuple(int(item) for item in value.elt_type.unpack(value.data.data, len(value)))


def float_text(value: float) -> str:
    """The shortest decimal that reads as `value`, with the point that MLIR asks for: `0.2`, `1.0e-05`."""
    mantissa, e, exponent = repr(value).partition("e")
    return mantissa + ("" if "." in mantissa else ".0") + e + exponent


def parse_op(cls: type[Op], parser: Parser) -> Op:
    """What `print_op` prints."""
    operands = parser.parse_optional_undelimited_comma_separated_list(
        parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
    )
    entries = {name: _dense(value) for name, value in parser.parse_optional_attr_dict().items()}
    inputs, outputs, position = parse_signature(parser)
    known = cls.get_irdl_definition().properties
    return cls.create(
        operands=parser.resolve_operands(operands or [], inputs, position),
        result_types=outputs,
        properties={name: value for name, value in entries.items() if name in known},
        attributes={name: value for name, value in entries.items() if name not in known},
    )


def parse_signature(parser: Parser) -> tuple[Sequence[Attribute], Sequence[Attribute], int]:
    """`: (operand types) -> type`; also where it stands, for errors."""
    parser.parse_punctuation(":")
    position = parser.pos
    signature = parser.parse_function_type()
    return signature.inputs.data, signature.outputs.data, position


def _dense(value: Attribute) -> Attribute:
    """A list of integers as the dense array that a property holds."""
    if isinstance(value, ArrayAttr) and all(isinstance(item, IntegerAttr) for item in value):
        return DenseArrayBase.from_list(i64, [item.value.data for item in value if isinstance(item, IntegerAttr)])
    return value
