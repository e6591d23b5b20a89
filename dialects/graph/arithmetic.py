"""Elementwise operators of two operands: arithmetic, comparisons, logic."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition

from .elementwise import Binary, Unary
from .op import Array, DtypeError, InferError, Onnx, i1


@irdl_op_definition
class AddOp(Binary):
    """x + y."""

    name = "graph.add"
    FUNCTION: ClassVar[str] = "add"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Add", 7),)

    def reference(self, x: Array, y: Array) -> Array:
        return x + y


@irdl_op_definition
class SubOp(Binary):
    """x − y."""

    name = "graph.sub"
    FUNCTION: ClassVar[str] = "sub"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Sub", 7),)

    def reference(self, x: Array, y: Array) -> Array:
        return x - y


@irdl_op_definition
class MulOp(Binary):
    """x·y."""

    name = "graph.mul"
    FUNCTION: ClassVar[str] = "mul"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Mul", 7),)

    def reference(self, x: Array, y: Array) -> Array:
        return x * y


@irdl_op_definition
class DivOp(Binary):
    """x ÷ y; integers truncate toward zero, and by zero give 0."""

    name = "graph.div"
    FUNCTION: ClassVar[str] = "div"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Div", 7),)

    def reference(self, x: Array, y: Array) -> Array:
        if x.dtype.kind == "f":
            return x / y
        quotient = np.abs(x) // np.where(y == 0, 1, np.abs(y))
        return np.where(y == 0, 0, quotient * np.sign(x) * np.sign(y))


@irdl_op_definition
class ModOp(Binary):
    """The remainder of x ÷ y, with the sign of y; integers by zero give 0."""

    name = "graph.mod"
    FUNCTION: ClassVar[str] = "mod"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Mod", 10),)

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        if node.get("fmod", 0):
            raise InferError("the remainder has the sign of the divisor (found fmod = 1)")
        return [0, 1], {}

    def reference(self, x: Array, y: Array) -> Array:
        if x.dtype.kind == "f":
            return np.mod(x, y)
        return np.where(y == 0, 0, np.mod(x, np.where(y == 0, 1, y)))


@irdl_op_definition
class FmodOp(Binary):
    """The remainder of x ÷ y, with the sign of x; integers by zero give 0. ONNX's Mod with fmod = 1."""

    name = "graph.fmod"
    FUNCTION: ClassVar[str] = "fmod"

    def reference(self, x: Array, y: Array) -> Array:
        if x.dtype.kind == "f":
            return np.fmod(x, y)
        return np.where(y == 0, 0, np.fmod(x, np.where(y == 0, 1, y)))


@irdl_op_definition
class MaxOp(Binary):
    """The larger one; a NaN gives NaN."""

    name = "graph.max"
    FUNCTION: ClassVar[str] = "max"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Max", 8),)

    def reference(self, x: Array, y: Array) -> Array:
        return np.maximum(x, y)


@irdl_op_definition
class MinOp(Binary):
    """The smaller one; a NaN gives NaN."""

    name = "graph.min"
    FUNCTION: ClassVar[str] = "min"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Min", 8),)

    def reference(self, x: Array, y: Array) -> Array:
        return np.minimum(x, y)


@irdl_op_definition
class PowOp(Binary):
    """x to the power of y."""

    name = "graph.pow"
    FUNCTION: ClassVar[str] = "pow"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Pow", 7),)

    def reference(self, x: Array, y: Array) -> Array:
        return np.power(x, y)


@irdl_op_definition
class EqOp(Binary):
    """x = y."""

    name = "graph.eq"
    FUNCTION: ClassVar[str] = "eq"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Equal", 7),)

    def reference(self, x: Array, y: Array) -> Array:
        return np.equal(x, y)


@irdl_op_definition
class NeOp(Binary):
    """x ≠ y; true for a NaN."""

    name = "graph.ne"
    FUNCTION: ClassVar[str] = "ne"

    def reference(self, x: Array, y: Array) -> Array:
        return np.not_equal(x, y)


@irdl_op_definition
class LtOp(Binary):
    """x < y."""

    name = "graph.lt"
    FUNCTION: ClassVar[str] = "lt"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Less", 7),)

    def reference(self, x: Array, y: Array) -> Array:
        return np.less(x, y)


@irdl_op_definition
class LeOp(Binary):
    """x ≤ y."""

    name = "graph.le"
    FUNCTION: ClassVar[str] = "le"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("LessOrEqual", 12),)

    def reference(self, x: Array, y: Array) -> Array:
        return np.less_equal(x, y)


@irdl_op_definition
class GtOp(Binary):
    """x > y."""

    name = "graph.gt"
    FUNCTION: ClassVar[str] = "gt"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Greater", 7),)

    def reference(self, x: Array, y: Array) -> Array:
        return np.greater(x, y)


@irdl_op_definition
class GeOp(Binary):
    """x ≥ y."""

    name = "graph.ge"
    FUNCTION: ClassVar[str] = "ge"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("GreaterOrEqual", 12),)

    def reference(self, x: Array, y: Array) -> Array:
        return np.greater_equal(x, y)


@irdl_op_definition
class AndOp(Binary):
    """Both hold; of integers bit by bit."""

    name = "graph.and"
    FUNCTION: ClassVar[str] = "and"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("And", 7), Onnx("BitwiseAnd", 18))

    def reference(self, x: Array, y: Array) -> Array:
        return np.bitwise_and(x, y)


@irdl_op_definition
class OrOp(Binary):
    """At least one holds; of integers bit by bit."""

    name = "graph.or"
    FUNCTION: ClassVar[str] = "or"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Or", 7), Onnx("BitwiseOr", 18))

    def reference(self, x: Array, y: Array) -> Array:
        return np.bitwise_or(x, y)


@irdl_op_definition
class XorOp(Binary):
    """Exactly one holds; of integers bit by bit."""

    name = "graph.xor"
    FUNCTION: ClassVar[str] = "xor"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Xor", 7), Onnx("BitwiseXor", 18))

    def reference(self, x: Array, y: Array) -> Array:
        return np.bitwise_xor(x, y)


@irdl_op_definition
class NotOp(Unary):
    """It does not hold."""

    name = "graph.not"
    FUNCTION: ClassVar[str] = "not"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Not", 1),)

    @classmethod
    def check_logic(cls, elements: Sequence[Attribute]) -> None:
        if elements[0] != i1:
            raise DtypeError(f"operands are truth values, i1 (found {elements[0]})")

    def reference(self, x: Array) -> Array:
        return np.logical_not(x)
