"""One ONNX node while it is imported: what it has, and how ops are built for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from xdsl.ir import Attribute, SSAValue

from ..dialects.graph.constants import ELEMENTS
from ..dialects.graph.op import DtypeError, GraphOp, InferError, ShapeError, shape
from ..dialects.graph.properties import Value as PropertyValue
from .builder import GraphBuilder
from .model_file import Array

Value = SSAValue | Array
"""A value that is computed at run time, or one that is known."""

AI_ONNX = "ai.onnx"
"""The domain of ONNX's own operators, which nodes may leave out."""
INT32 = np.iinfo(np.int32)


@dataclass(frozen=True, slots=True)
class Node:
    """`inputs` holds None for an input that is absent."""

    name: str
    proto: onnx.NodeProto
    attributes: Mapping[str, Any]
    inputs: Sequence[Value | None]
    opset: int
    builder: GraphBuilder
    kinds: "Sequence[np.dtype[Any] | None]" = ()
    """Of each input the type that it has in the model, if that is one of `sixteen.TAGGED`, which are i32 here."""

    @property
    def operator(self) -> str:
        return self.proto.op_type

    @property
    def domain(self) -> str:
        return self.proto.domain or AI_ONNX

    def optional(self, index: int) -> Value | None:
        """An input, None if it is absent."""
        return self.inputs[index] if index < len(self.inputs) else None

    def given(self, index: int) -> Value:
        """An input that the node must have; raises `InferError`."""
        value = self.inputs[index] if index < len(self.inputs) else None
        if value is None:
            raise InferError(f"{self.operator} has an input {index} (found {len(self.inputs)} inputs)", broken=True)
        return value

    def with_inputs(self, inputs: "Sequence[Value | None]") -> "Node":
        """The node with other inputs."""
        return replace(self, inputs=inputs)

    def with_attributes(self, **attributes: Any) -> "Node":
        """The node with some of its attributes changed."""
        return replace(self, attributes={**self.attributes, **attributes})

    def known(self, index: int) -> Array | None:
        """The value of an input, None if it is absent; raises `InferError` if it is computed."""
        value = self.inputs[index] if index < len(self.inputs) else None
        if isinstance(value, SSAValue):
            raise InferError(f"input {index} is a constant (found one that is computed)")
        return value

    def constants(self) -> list[Array | None]:
        """Of each input its value, None where it is computed; an absent input is an empty array."""
        empty = np.zeros(0, np.int64)
        return [None if isinstance(v, SSAValue) else empty if v is None else v for v in self.inputs]

    def operand(self, index: int) -> SSAValue:
        """An input as a value of IR."""
        return self.materialize(self.given(index))

    def materialize(self, value: Value) -> SSAValue:
        """A known value becomes a constant; i64 is narrowed to i32, whose range it must fit."""
        return value if isinstance(value, SSAValue) else self.builder.constant(narrowed(value))

    def one(self, kind: type[GraphOp]) -> SSAValue:
        """The result of the one op of a class that stands for the node; raises `InferError`."""
        indices, properties = kind.from_onnx(self.attributes, self.constants(), self.opset)
        operands = [self.operand(index) for index in indices if self.inputs[index] is not None]
        return self.emit(kind, *operands, **properties)

    def emit(
        self,
        kind: type[GraphOp],
        *operands: SSAValue | None,
        element: Attribute | None = None,
        **properties: PropertyValue | None,
    ) -> SSAValue:
        """The result of a new op of this node."""
        return self.builder(kind, *operands, element=element, **properties)


def size_of(value: Value) -> tuple[int, ...]:
    """The shape of a value."""
    return shape(value) if isinstance(value, SSAValue) else value.shape


def narrowed(array: Array) -> Array:
    """A constant as it stands inside a graph; raises `InferError` for types that the dialect does not have."""
    if array.dtype.name in ("int64", "uint32", "uint64"):
        if array.size and (array.min() < INT32.min or array.max() > INT32.max):
            raise DtypeError(f"integers fit 32 bits (found {array.min()} to {array.max()})")
        return array.astype(np.int32)
    if array.dtype.name in ("int16", "uint16"):
        array = array.astype(np.int32)
    if array.dtype not in ELEMENTS:
        raise DtypeError(f"values hold f32, f16, bf16, i32, i8, ui8 or truth values (found {array.dtype})")
    if array.size == 0:
        raise ShapeError(f"a tensor has elements (found shape {list(array.shape)})", broken=False)
    return array
