"""Constants: small ones stand in the text, large ones in the weight store (`dialects/weights.py`).

They are leaves, not `GraphOp`s: they have no operands to infer a shape from, and no structure.
"""

from typing import Any, ClassVar, Self

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, StringAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, Pure
from xdsl.utils.exceptions import VerifyException

from ..weights import WeightStore
from .op import DTYPE_NAMES, Array, bf16, f16, f32, i1, i8, i16, i32, i64, tensor, u8, u16, u32, u64

INLINE = 64
"""Most elements of a constant that stands in the text."""
NUMPY: dict[Attribute, np.dtype[Any]] = {
    f16: np.dtype(np.float16),
    bf16: np.dtype(ml_dtypes.bfloat16),
    f32: np.dtype(np.float32),
    i8: np.dtype(np.int8),
    u8: np.dtype(np.uint8),
    i32: np.dtype(np.int32),
    i1: np.dtype(np.bool_),
    i64: np.dtype(np.int64),
    i16: np.dtype(np.int16),
    u16: np.dtype(np.uint16),
    u32: np.dtype(np.uint32),
    u64: np.dtype(np.uint64),
}
"""numpy's type for each element type."""
ELEMENTS = {kind: element for element, kind in NUMPY.items()}
"""The element type of each numpy type."""


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A constant of at most 64 elements."""

    name = "graph.constant"
    EXAMPLE: ClassVar[str] = "%0 = graph.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>"

    value = prop_def(DenseIntOrFPElementsAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure(), ConstantLike())

    @staticmethod
    def of(array: Array, element: Attribute | None = None) -> "ConstantOp":
        """`array` as elements of type `element` (default: its own type)."""
        kind = ELEMENTS[array.dtype] if element is None else element
        values: list[Any] = array.astype(NUMPY[kind]).reshape(-1).tolist()
        type_ = TensorType(kind, array.shape)
        value = DenseIntOrFPElementsAttr.from_list(type_, values)  # pyright: ignore[reportArgumentType, reportCallIssue]
        return ConstantOp.create(properties={"value": value}, result_types=[type_])

    @property
    def array(self) -> Array:
        """The value, in numpy's type of the elements."""
        type_ = tensor(self.result)
        return np.array(self.value.get_values(), dtype=NUMPY[type_.element_type]).reshape(type_.get_shape())

    def verify_(self) -> None:
        if self.value.type != self.result.type:
            raise VerifyException(f"value and result have one type (found {self.value.type} and {self.result.type})")
        if len(self.value) > INLINE:
            raise VerifyException(
                f"at most {INLINE} elements stand in text (found {len(self.value)}); use graph.weight"
            )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        value = parser.parse_attribute()
        attributes = parser.parse_optional_attr_dict()
        if not isinstance(value, DenseIntOrFPElementsAttr):
            parser.raise_error("expected dense<...> : tensor<...>")
        return cls.create(properties={"value": value}, attributes=attributes, result_types=[value.type])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        if np.isfinite(self.array.astype(np.float64)).all():
            printer.print_attribute(self.value)
        else:  # xDSL prints an infinity as bits, and reads these as an integer; bytes keep their meaning
            printer.print_string(f'dense<"0x{self.value.data.data.hex().upper()}"> : ')
            printer.print_attribute(self.value.type)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class WeightOp(IRDLOperation):
    """The array of the weight store that has this handle; the type is the array's own."""

    name = "graph.weight"
    EXAMPLE: ClassVar[str] = '%0 = graph.weight "9f86d081884c7d659a2feaa0c55ad015" : tensor<64x3x7x7xf32>'

    handle = prop_def(StringAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure(), ConstantLike())

    @staticmethod
    def of(array: Array, store: WeightStore) -> "WeightOp":
        """Puts `array` into the store."""
        return WeightOp.create(
            properties={"handle": StringAttr(store.add(array))},
            result_types=[TensorType(ELEMENTS[array.dtype], array.shape)],
        )

    def verify_(self) -> None:
        if tensor(self.result).element_type not in DTYPE_NAMES:
            raise VerifyException(f"elements are one of {', '.join(DTYPE_NAMES.values())} (found {self.result.type})")
        if len(self.handle.data) < 16 or set(self.handle.data) - set("0123456789abcdef"):
            raise VerifyException(f'a handle is a digest of 16 or more hexadecimal digits (found "{self.handle.data}")')

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        handle = parser.parse_str_literal()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.create(
            properties={"handle": StringAttr(handle)}, attributes=attributes, result_types=[parser.parse_type()]
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.handle)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


def constant(array: Array, store: WeightStore) -> ConstantOp | WeightOp:
    """The op that holds `array`: in the text if small, else in the store."""
    return ConstantOp.of(array) if array.size <= INLINE else WeightOp.of(array, store)


def constant_value(value: SSAValue | Operation, store: WeightStore | None) -> Array | None:
    """The array of a constant; None if the value is computed."""
    op = value.owner if isinstance(value, SSAValue) else value
    if isinstance(op, ConstantOp):
        return op.array
    if isinstance(op, WeightOp) and store is not None:
        return store.get(op.handle.data)
    return None
