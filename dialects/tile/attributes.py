"""Types and attributes of the tile dialect: buffer types, field expressions, named fields, strides."""

import re
import struct
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    IntAttr,
    IntegerType,
    Signedness,
    StringAttr,
    i1,
)
from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...runtime.expr import MAX_SLOTS, Expr, ExprSyntaxError, parse
from ...runtime.isa import NAMED_VALUES, Kind, Space
from ...runtime.numerics.functions import CODES

DTYPES: dict[str, Attribute] = {
    "f16": Float16Type(),
    "bf16": BFloat16Type(),
    "f32": Float32Type(),
    "i8": IntegerType(8),
    "u8": IntegerType(8, Signedness.UNSIGNED),
    "i32": IntegerType(32),
    "b8": i1,
    "i4": IntegerType(4),
    "u4": IntegerType(4, Signedness.UNSIGNED),
}
"""Element types of the device by name; in text `u8` is `ui8` and `b8` is `i1`."""
NAMES = {attribute: name for name, attribute in DTYPES.items()}
SIZES = {"f16": 2, "bf16": 2, "f32": 4, "i8": 1, "u8": 1, "i32": 4, "b8": 1}
"""Bytes of an element."""
HALVES = ("i4", "u4")
"""Types of which two elements stand in a byte, the first in its low half."""
SPACES = tuple(space.name.lower() for space in Space)
LANES = 16
"""Rows of L0B and L0C are padded to a multiple of this many elements."""

_FLOAT = re.compile(r"[-+]?(inf|nan|[\d.]+(e[-+]?\d+)?)")


def names_of(kind: Kind) -> dict[str, int]:
    """The values of an enumerated kind of field by name; empty for the other kinds."""
    return CODES if kind == "fn" else NAMED_VALUES.get(kind, {})


def value_text(kind: Kind, value: Expr) -> str:
    """A field's value as assembly has it: `relu`, `0.5`, `4096 + 128*i0`."""
    if value.is_constant:
        if kind == "float":
            return repr(struct.unpack("<f", struct.pack("<I", value.base & 0xFFFFFFFF))[0])
        for name, code in names_of(kind).items():
            if code == value.base:
                return name
    return str(value)


def read_value(kind: Kind, text: str) -> Expr:
    """The inverse of `value_text`. Raises `ExprSyntaxError`."""
    if (code := names_of(kind).get(text)) is not None:
        return Expr(code)
    if kind == "float" and _FLOAT.fullmatch(text):
        return Expr(struct.unpack("<I", struct.pack("<f", float(text)))[0])
    return parse(text)


def parse_expr(parser: AttrParser) -> Expr:
    """A field expression in quotes."""
    text = parser.parse_str_literal()
    try:
        return parse(text)
    except ExprSyntaxError as error:
        parser.raise_error(str(error))


@irdl_attr_definition
class ExprsAttr(Data[tuple[Expr, ...]]):
    """A list of field expressions."""

    name = "tile.exprs"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Expr, ...]:
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: parse_expr(parser)))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<" + ", ".join(f'"{e}"' for e in self.data) + ">")


@irdl_attr_definition
class FieldsAttr(Data[tuple[tuple[str, Expr], ...]]):
    """Named fields of the instruction that are neither box nor extent, sorted by name."""

    name = "tile.fields"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[str, Expr], ...]:
        def field() -> tuple[str, Expr]:
            name = parser.parse_identifier()
            parser.parse_punctuation("=")
            return name, parse_expr(parser)

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, field))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<" + ", ".join(f'{name} = "{e}"' for name, e in self.data) + ">")

    def __contains__(self, name: str) -> bool:
        return any(key == name for key, _ in self.data)

    def value(self, name: str, default: int = 0) -> Expr:
        """The field's value, or `default` where it is not given."""
        return next((value for key, value in self.data if key == name), Expr(default))


@irdl_attr_definition
class StridesAttr(Data[tuple[tuple[int, ...], ...]]):
    """A list of integers for each buffer operand: its element strides by axis."""

    name = "tile.strides"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[int, ...], ...]:
        def row() -> tuple[int, ...]:
            return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, row))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<" + ", ".join(str(list(row)) for row in self.data) + ">")


@irdl_attr_definition
class ShapeAttr(Data[tuple[int, ...]]):
    """A static shape."""

    name = "tile.shape"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[int, ...]:
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_integer))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<" + ", ".join(map(str, self.data)) + ">")


@irdl_attr_definition
class BufferType(ParametrizedAttribute, TypeAttribute):
    """`!tile.buffer<128x64xf16, ub, 2>`: elements, memory, slots (1 if left out)."""

    name = "tile.buffer"
    shape: ShapeAttr = param_def()
    element: Attribute = param_def()
    space: StringAttr = param_def()
    slots: IntAttr = param_def()

    @staticmethod
    def of(shape: Sequence[int], dtype: str, space: str, slots: int = 1) -> "BufferType":
        """A buffer type from plain values."""
        return BufferType(ShapeAttr(tuple(shape)), DTYPES[dtype], StringAttr(space), IntAttr(slots))

    @property
    def dims(self) -> tuple[int, ...]:
        return self.shape.data

    @property
    def dtype(self) -> str:
        return NAMES[self.element]

    @property
    def esize(self) -> int:
        """Bytes of an element; of what two elements share, 1."""
        return SIZES.get(self.dtype, 1)

    @property
    def per_byte(self) -> int:
        """Elements that share a byte."""
        return 2 if self.dtype in HALVES else 1

    @property
    def strides(self) -> tuple[int, ...]:
        """Row-major element strides; rows of L0B and L0C of rank 2 or more are padded to 16 elements."""
        return row_major(self.padded_dims)

    @property
    def padded_dims(self) -> tuple[int, ...]:
        """The shape as it is stored."""
        dims = self.dims
        if self.space.data in ("l0b", "l0c") and dims:
            return (*dims[:-1], -(-dims[-1] // LANES) * LANES)
        return dims

    @property
    def elements(self) -> int:
        """Elements of one slot as stored."""
        total = 1
        for size in self.padded_dims:
            total *= size
        return total

    @property
    def bytes(self) -> int:
        """Bytes of one slot as stored."""
        return self.elements * self.esize // self.per_byte

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape, element = parser.parse_ranked_shape()
            parser.parse_punctuation(",")
            space = parser.parse_identifier()
            slots = parser.parse_integer() if parser.parse_optional_punctuation(",") else 1
        return ShapeAttr(tuple(shape)), element, StringAttr(space), IntAttr(slots)

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string("<" + "".join(f"{size}x" for size in self.dims))
        printer.print_attribute(self.element)
        printer.print_string(f", {self.space.data}" + (f", {self.slots.data}" if self.slots.data != 1 else "") + ">")

    def verify(self) -> None:
        if self.space.data not in SPACES:
            raise VerifyException(f"memory {self.space.data!r}; expected one of {', '.join(SPACES)}")
        if self.element not in NAMES:
            raise VerifyException(f"element type {self.element}; expected one of {', '.join(DTYPES)}")
        if not 1 <= self.slots.data <= MAX_SLOTS:
            raise VerifyException(f"{self.slots.data} slots; expected 1 to {MAX_SLOTS}")
        if self.element in (DTYPES["i4"], DTYPES["u4"]) and (not self.dims or self.dims[-1] % 2):
            raise VerifyException(f"a row of {NAMES[self.element]} is whole bytes (found {list(self.dims)} elements)")
        if any(size < 1 for size in self.dims):
            raise VerifyException(f"shape {list(self.dims)}; every size is at least 1 (sizes that vary are extents)")


def row_major(dims: Sequence[int]) -> tuple[int, ...]:
    """The element strides of a contiguous array."""
    strides = [1]
    for size in reversed(dims[1:]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides)) if dims else ()


ATTRIBUTES: list[Any] = [BufferType, ShapeAttr, ExprsAttr, FieldsAttr, StridesAttr]
