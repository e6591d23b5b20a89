"""Elementwise operators: the families, and those that choose or convert.

The function of each is one of `runtime/numerics/functions.py`. Arithmetic and comparisons are in `arithmetic.py`,
functions of one number in `activations.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import FloatAttr, TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from ...runtime.numerics.functions import FUNCTIONS
from ..loops import LoopNest, Map, broadcast, identity
from .constants import NUMPY
from .op import (
    FLOATS,
    Array,
    DtypeError,
    GraphOp,
    InferError,
    Onnx,
    Tensor,
    broadcast_shapes,
    element,
    i1,
    i16,
    promote,
    shape,
    u16,
    u32,
    u64,
)
from .properties import attributes, number


class Elementwise(GraphOp):
    """One function of the vector engine applied element by element, operands broadcast as in numpy."""

    FUNCTION: ClassVar[str] = ""

    result = result_def(TensorType)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "name" in cls.__dict__ and not cls.EXAMPLE:
            cls.EXAMPLE = _example(cls.__dict__["name"], cls.FUNCTION)
            cls.__annotations__["EXAMPLE"] = ClassVar[str]  # xDSL takes an unannotated field for a mistake
        super().__init_subclass__(**kwargs)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        size = broadcast_shapes(*(operand.get_shape() for operand in operands))
        return [TensorType(cls.infer_element(operands), size)]

    @classmethod
    def infer_element(cls, operands: Sequence[Tensor]) -> Attribute:
        """The default element type of the result; raises `InferError` for operands that the function does not take."""
        kind = FUNCTIONS[cls.FUNCTION].kind
        elements = [operand.element_type for operand in operands]
        found = ", ".join(map(str, elements))
        if kind == "logic":
            cls.check_logic(elements)
            return elements[0]
        floats = all(element in FLOATS for element in elements)
        if kind == "float":
            _check(floats, f"operands are floats (found {found})")
        _check(floats or len(set(elements)) == 1, f"operands are all floats, or all of one type (found {found})")
        return i1 if kind == "compare" else promote(operands)

    @classmethod
    def check_logic(cls, elements: Sequence[Attribute]) -> None:
        """Raises `InferError` unless a function of kind `logic` takes these."""
        whole = len(set(elements)) == 1 and elements[0] not in FLOATS
        found = ", ".join(map(str, elements))
        _check(whole, f"operands are truth values, i1, or integers of one type (found {found})")

    @property
    def immediates(self) -> tuple[float, ...]:
        """The trailing operands of the function that are properties."""
        return ()

    def loops(self) -> LoopNest:
        bounds = shape(self.result)
        maps = tuple(broadcast(shape(operand), bounds) for operand in self.operands)
        return LoopNest(bounds, maps, identity(len(bounds)), Map(self.FUNCTION, self.immediates))


class Unary(Elementwise):
    """A function of one operand."""

    x = operand_def(TensorType)


class Binary(Elementwise):
    """A function of two operands."""

    x = operand_def(TensorType)
    y = operand_def(TensorType)


def _check(holds: bool, rule: str) -> None:
    if not holds:
        raise DtypeError(rule)


def _example(name: str, function: str) -> str:
    """The smallest example of an operator without properties."""
    kind, arity = FUNCTIONS[function].kind, FUNCTIONS[function].arity
    source = "tensor<4xi1>" if kind == "logic" else "tensor<4xf32>"
    target = "tensor<4xi1>" if kind in ("logic", "compare") else "tensor<4xf32>"
    operands = ", ".join(f"%{i}" for i in range(arity))
    return f"%{arity} = {name} {operands} : ({', '.join([source] * arity)}) -> {target}"


@irdl_op_definition
class CastOp(Unary):
    """Converts to the element type of the result (docs/numerics.md §3)."""

    name = "graph.cast"
    FUNCTION: ClassVar[str] = "copy"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Cast", 6),)
    EXAMPLE: ClassVar[str] = "%1 = graph.cast %0 : (tensor<4xf32>) -> tensor<4xf16>"

    def evaluate(self, *operands: Array) -> Array:
        if {element(self.x), element(self.result)} & {i16, u16, u32, u64}:
            return operands[0].astype(NUMPY[element(self.result)])  # integers alone: modulo 2ⁿ
        return super().evaluate(*operands)

    def reference(self, x: Array) -> Array:
        target = NUMPY[self.result.type.element_type]  # pyright: ignore[reportAttributeAccessIssue]
        if target == np.bool_:
            return x != 0
        if target.kind in "iu" and x.dtype.kind == "f":
            limits = np.iinfo(target)
            return np.clip(np.nan_to_num(np.trunc(x), nan=0), limits.min, limits.max).astype(np.int64)
        return x.astype(target).astype(np.int64) if target.kind in "iu" else x.astype(np.float64)


@irdl_op_definition
class CopyOp(Unary):
    """The operand itself."""

    name = "graph.copy"
    FUNCTION: ClassVar[str] = "copy"

    def reference(self, x: Array) -> Array:
        return x


@irdl_op_definition
class WhereOp(Elementwise):
    """x where the condition holds, else y."""

    name = "graph.where"
    FUNCTION: ClassVar[str] = "where"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Where", 9),)
    EXAMPLE: ClassVar[str] = "%3 = graph.where %0, %1, %2 : (tensor<4xi1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>"

    condition = operand_def(TensorType)
    x = operand_def(TensorType)
    y = operand_def(TensorType)

    @classmethod
    def infer_element(cls, operands: Sequence[Tensor]) -> Attribute:
        _check(operands[0].element_type == i1, f"the condition is a truth value, i1 (found {operands[0].element_type})")
        return super().infer_element(operands[1:])

    def reference(self, condition: Array, x: Array, y: Array) -> Array:
        return np.where(condition, x, y)


@irdl_op_definition
class ClipOp(Unary):
    """min(max(x, lo), hi); a bound that is left out does not bind."""

    name = "graph.clip"
    FUNCTION: ClassVar[str] = "clip"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Clip", 6),)
    EXAMPLE: ClassVar[str] = "%1 = graph.clip %0 {lo = 0.0, hi = 6.0} : (tensor<4xf32>) -> tensor<4xf32>"

    lo = opt_prop_def(FloatAttr)
    hi = opt_prop_def(FloatAttr)

    @property
    def immediates(self) -> tuple[float, ...]:
        bounds = number(self.properties, "lo", -np.inf), number(self.properties, "hi", np.inf)
        if element(self.x) in FLOATS:
            return bounds
        limits = np.iinfo(NUMPY[element(self.x)])  # an infinity is no integer
        return tuple(float(min(max(bound, limits.min), limits.max)) for bound in bounds)

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        if opset < 11:
            return [0], attributes(lo=node.get("min"), hi=node.get("max"))
        bounds = [_scalar(constants, 1), _scalar(constants, 2)]
        return [0], attributes(lo=bounds[0], hi=bounds[1])

    def reference(self, x: Array) -> Array:
        lo, hi = self.immediates
        return np.minimum(np.maximum(x, lo), hi).astype(x.dtype)


def _scalar(constants: Sequence[Array | None], index: int) -> float | None:
    """A bound of Clip; None if the node does not have it. The importer passes an absent input as an empty array."""
    if index >= len(constants):
        return None
    value = constants[index]
    if value is None:
        raise InferError(f"min and max must be constants (found input {index}, which is computed)")
    return float(value.reshape(-1)[0]) if value.size else None


@irdl_op_definition
class AffineOp(Unary):
    """x·scale + shift."""

    name = "graph.affine"
    FUNCTION: ClassVar[str] = "affine"
    EXAMPLE: ClassVar[str] = "%1 = graph.affine %0 {scale = 2.0, shift = -1.0} : (tensor<4xf32>) -> tensor<4xf32>"

    scale = prop_def(FloatAttr)
    shift = prop_def(FloatAttr)

    @property
    def immediates(self) -> tuple[float, ...]:
        return number(self.properties, "scale"), number(self.properties, "shift")

    def reference(self, x: Array) -> Array:
        return x * self.immediates[0] + self.immediates[1]
