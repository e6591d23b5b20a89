"""What stays on the CPU: values that the device does not hold, parts that onnxruntime runs, and the transfers between.

    %1 = graph.download %0 : (tensor<4xf16>) -> !graph.host_value<"tensor(float)[4]">
    %2 = graph.host %1 {part = "9f86…", nodes = [["NonZero_3", "NonZero", "…", "48"]]} : (…) -> !graph.host_value<"…">
    %3 = graph.upload %2 : (!graph.host_value<"tensor(int64)[1,4]">) -> tensor<1x4xi32>

The type of a host value is text as in `runtime/cpu.py`. A part is an ONNX model, by its handle in the weight store.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, StringAttr, TensorType
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...runtime.cpu import HostNode, HostPart, HostType
from ..weights import WeightStore
from .constants import NUMPY
from .op import BORDER, Array, element, i32, shape
from .syntax import parse_op, print_op


@irdl_attr_definition
class HostValueType(ParametrizedAttribute, TypeAttribute):
    """The type of a value that only the CPU holds."""

    name = "graph.host_value"
    text: StringAttr

    @staticmethod
    def of(kind: HostType) -> "HostValueType":
        """As a type of IR."""
        return HostValueType(StringAttr(str(kind)))

    def verify(self) -> None:
        try:
            HostType.parse(self.text.data)
        except ValueError as error:
            raise VerifyException(str(error)) from None


def is_host(value: SSAValue) -> bool:
    """Whether only the CPU holds it."""
    return isinstance(value.type, HostValueType)


def host_type(value: SSAValue) -> HostType:
    """The type of a host value."""
    assert isinstance(value.type, HostValueType)
    return HostType.parse(value.type.text.data)


class HostBase(IRDLOperation):
    """Ops that read like the operators of the dialect."""

    @classmethod
    def parse(cls, parser: Parser) -> "HostBase":
        return parse_op(cls, parser)

    def print(self, printer: Printer) -> None:
        print_op(self, printer)


@irdl_op_definition
class HostOp(HostBase):
    """Nodes that run on the CPU: an ONNX model whose inputs and outputs are the operands and results, in order.

    `nodes` has of each its name, its operator, why the device does not run it, and the bytes that it goes through.
    """

    name = "graph.host"
    EXAMPLE: ClassVar[str] = (
        '%1 = graph.host %0 {part = "9f86d081884c7d65", nodes = [["n", "NonZero", "not supported", "48"]]}'
        ' : (!graph.host_value<"tensor(float)[4]">) -> !graph.host_value<"tensor(int64)[1,?]">'
    )

    inputs = var_operand_def(HostValueType)
    outputs = var_result_def(HostValueType)
    part = prop_def(StringAttr)
    nodes = prop_def(ArrayAttr)
    traits = traits_def(Pure())

    @staticmethod
    def of(
        model: bytes, nodes: Sequence[HostNode], inputs: Sequence[SSAValue], results: Sequence[Attribute],
        store: WeightStore,
    ) -> "HostOp":  # fmt: skip
        """Puts the model into the store."""
        handle = store.add(np.frombuffer(model, np.uint8))
        rows = [[node.name, node.operator, node.reason, str(node.nbytes)] for node in nodes]
        table = ArrayAttr([ArrayAttr([StringAttr(text) for text in row]) for row in rows])
        properties = {"part": StringAttr(handle), "nodes": table}
        return HostOp.create(operands=inputs, result_types=results, properties=properties)

    def host_nodes(self) -> tuple[HostNode, ...]:
        """What runs, and why here."""
        rows: list[Any] = list(self.nodes)
        texts = [[text.data for text in row] for row in rows]
        return tuple(HostNode(name, operator, reason, int(nbytes)) for name, operator, reason, nbytes in texts)

    def host_part(self, store: WeightStore) -> HostPart:
        """With the model, ready to run. Raises `WeightError`."""
        return HostPart(store.get(self.part.data).tobytes(), self.host_nodes())


@irdl_op_definition
class DownloadOp(HostBase):
    """A tensor of the device as a value of the CPU, in the type that the ONNX model has."""

    name = "graph.download"
    EXAMPLE: ClassVar[str] = '%1 = graph.download %0 : (tensor<4xf16>) -> !graph.host_value<"tensor(float)[4]">'

    x = operand_def(TensorType)
    result = result_def(HostValueType)
    traits = traits_def(Pure())

    @staticmethod
    def of(x: SSAValue, dtype: "np.dtype[Any]") -> "DownloadOp":
        """`x` in numpy's type."""
        return DownloadOp.create(operands=[x], result_types=[HostValueType.of(HostType.of(dtype, shape(x)))])

    def value(self, array: Array) -> Array:
        """The result."""
        dtype = host_type(self.result).dtype
        assert dtype is not None
        with np.errstate(all="ignore"):
            return np.asarray(array).astype(dtype, copy=False)


@irdl_op_definition
class UploadOp(HostBase):
    """A value of the CPU as a tensor of the device. Integers of 64 bits must fit 32."""

    name = "graph.upload"
    EXAMPLE: ClassVar[str] = '%1 = graph.upload %0 : (!graph.host_value<"tensor(int64)[4]">) -> tensor<4xi32>'

    x = operand_def(HostValueType)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    @staticmethod
    def of(x: SSAValue, kind: Attribute) -> "UploadOp":
        """`x`, whose extents are known, with elements of a type of the dialect; wider integers become i32."""
        known = host_type(x).shape
        assert known is not None
        return UploadOp.create(operands=[x], result_types=[TensorType(i32 if kind in BORDER else kind, known)])

    def value(self, array: Array) -> Array:
        """The result."""
        return np.asarray(array).astype(NUMPY[element(self.result)])
