"""Reductions over axes, and what is made of them: means, softmax."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def
from xdsl.pattern_rewriter import PatternRewriter

from ..loops import Axis, LoopNest, Reduce, axis, identity
from .activations import AbsOp, ExpOp, LogOp, ReciprocalOp
from .arithmetic import DivOp, MulOp, SubOp
from .emit import Emit
from .op import FLOATS, Array, DtypeError, GraphOp, InferError, Onnx, Tensor, i8, i32, shape, u8
from .properties import Properties, attribute, flag, ints
from .views import normal_axis


def normal_axes(properties: Properties, rank: int) -> list[int]:
    """The property `axes`, counted from 0 and sorted; all of them if there is none."""
    axes = sorted({normal_axis(i, rank) for i in ints(properties, "axes", range(rank))})
    return axes or list(range(rank))


def axes_from_onnx(
    node: Mapping[str, Any], constants: Sequence[Array | None], opset: int, since: int
) -> dict[str, Attribute]:
    """`axes`, an attribute before opset `since` and an input from then on; and `keepdims`."""
    axes = node.get("axes")
    if opset >= since and len(constants) > 1:
        if constants[1] is None:
            raise InferError("axes are constants (found one that is computed)")
        axes = constants[1].tolist() if constants[1].size else None
    found = {"axes": attribute(axes)} if axes else {}
    return found | ({"keepdims": attribute(True)} if node.get("keepdims", 1) else {})


class ReduceBase(GraphOp):
    """Common to the reductions: `axes`, which stay with extent 1 under `keepdims`."""

    AXES_INPUT: ClassVar[int] = 18
    """The opset that made `axes` an input."""
    TYPES: ClassVar[tuple[Attribute, ...]] = (*FLOATS, i32)
    """Element types that it takes."""

    x = operand_def(TensorType)
    axes = prop_def(DenseArrayBase)
    keepdims = opt_prop_def(BoolAttr)
    result = result_def(TensorType)

    @classmethod
    def normalize(cls, operands: Sequence[Tensor], properties: Properties) -> Properties:
        keep = {"keepdims": attribute(True)} if flag(properties, "keepdims") else {}
        return {"axes": attribute(normal_axes(properties, operands[0].get_num_dims())), **keep}

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        (x,) = operands
        if x.element_type not in cls.TYPES:
            raise DtypeError(f"the operand holds {cls._types()} (found {x.element_type})")
        axes, keep = normal_axes(properties, x.get_num_dims()), flag(properties, "keepdims")
        size = [1 if i in axes else n for i, n in enumerate(x.get_shape()) if keep or i not in axes]
        return [TensorType(x.element_type, size)]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        return [0], axes_from_onnx(node, constants, opset, cls.AXES_INPUT)

    @classmethod
    def _types(cls) -> str:
        integers = [str(kind) for kind in cls.TYPES if kind not in FLOATS]
        return " or ".join(["floats", *([", ".join(integers)] if integers else [])])

    @property
    def count(self) -> int:
        """Elements that one result is made of."""
        return math.prod(shape(self.x)[i] for i in ints(self.properties, "axes"))

    def across(self, function: Any, x: Array) -> Array:
        """numpy's reduction over the axes."""
        return function(x, axis=ints(self.properties, "axes"), keepdims=flag(self.properties, "keepdims"))


class ReduceLoops(ReduceBase):
    """A reduction that is one loop nest."""

    FN: ClassVar[str] = ""

    def loops(self) -> LoopNest:
        bounds, axes = shape(self.x), ints(self.properties, "axes")
        kept = [
            (dim, dim in axes) for dim in range(len(bounds)) if flag(self.properties, "keepdims") or dim not in axes
        ]
        output = tuple(Axis() if reduced else axis(dim) for dim, reduced in kept)
        return LoopNest(bounds, (identity(len(bounds)),), output, Reduce(self.FN))


@irdl_op_definition
class ReduceSumOp(ReduceLoops):
    """The sum over axes."""

    name = "graph.reduce_sum"
    FN: ClassVar[str] = "sum"
    AXES_INPUT: ClassVar[int] = 13
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("ReduceSum", 1),)
    EXAMPLE: ClassVar[str] = (
        "%1 = graph.reduce_sum %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>"
    )

    def reference(self, x: Array) -> Array:
        return self.across(np.sum, x)


@irdl_op_definition
class ReduceMaxOp(ReduceLoops):
    """The largest over axes."""

    name = "graph.reduce_max"
    FN: ClassVar[str] = "max"
    TYPES: ClassVar[tuple[Attribute, ...]] = (*FLOATS, i32, i8, u8)
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("ReduceMax", 1),)
    EXAMPLE: ClassVar[str] = "%1 = graph.reduce_max %0 {axes = [0]} : (tensor<2x8xf32>) -> tensor<8xf32>"

    def reference(self, x: Array) -> Array:
        return self.across(np.max, x)


@irdl_op_definition
class ReduceMinOp(ReduceLoops):
    """The smallest over axes."""

    name = "graph.reduce_min"
    FN: ClassVar[str] = "min"
    TYPES: ClassVar[tuple[Attribute, ...]] = (*FLOATS, i32, i8, u8)
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("ReduceMin", 1),)
    EXAMPLE: ClassVar[str] = "%1 = graph.reduce_min %0 {axes = [0]} : (tensor<2x8xf32>) -> tensor<8xf32>"

    def reference(self, x: Array) -> Array:
        return self.across(np.min, x)


@irdl_op_definition
class ReduceProdOp(ReduceLoops):
    """The product over axes."""

    name = "graph.reduce_prod"
    FN: ClassVar[str] = "prod"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("ReduceProd", 1),)
    EXAMPLE: ClassVar[str] = "%1 = graph.reduce_prod %0 {axes = [0]} : (tensor<2x8xf32>) -> tensor<8xf32>"

    def reference(self, x: Array) -> Array:
        return self.across(np.prod, x)


class ReduceParts(ReduceBase):
    """A reduction that is made of others."""

    def summed(self, emit: Emit, x: SSAValue, element: Attribute | None = None) -> SSAValue:
        """The sum of x over the axes; an inner edge unless `element` is given."""
        return emit(ReduceSumOp, x, element=element or emit.inner, **self.properties)


@irdl_op_definition
class ReduceMeanOp(ReduceParts):
    """The mean over axes: the sum, divided by the count; of integers, truncated."""

    name = "graph.reduce_mean"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("ReduceMean", 1),)
    EXAMPLE: ClassVar[str] = (
        "%1 = graph.reduce_mean %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>"
    )

    def reference(self, x: Array) -> Array:
        mean = self.across(np.mean, x)
        return np.trunc(mean) if x.dtype.kind == "i" else mean

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        return [emit(DivOp, self.summed(emit, self.x), emit.constant(float(self.count)))]


@irdl_op_definition
class ReduceL1Op(ReduceParts):
    """The sum of absolute values over axes."""

    name = "graph.reduce_l1"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("ReduceL1", 1),)
    EXAMPLE: ClassVar[str] = (
        "%1 = graph.reduce_l1 %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>"
    )

    def reference(self, x: Array) -> Array:
        return self.across(np.sum, np.abs(x))

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        return [self.summed(emit, emit(AbsOp, self.x, element=emit.inner), emit.result)]


@irdl_op_definition
class ReduceSumSquareOp(ReduceParts):
    """The sum of squares over axes."""

    name = "graph.reduce_sum_square"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("ReduceSumSquare", 1),)
    EXAMPLE: ClassVar[str] = (
        "%1 = graph.reduce_sum_square %0 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>"
    )

    def reference(self, x: Array) -> Array:
        return self.across(np.sum, x * x)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        return [self.summed(emit, emit(MulOp, self.x, self.x, element=emit.inner), emit.result)]


class SoftmaxBase(GraphOp):
    """Common to softmax and its logarithm: `axes` are those that one row runs over."""

    x = operand_def(TensorType)
    axes = prop_def(DenseArrayBase)
    result = result_def(TensorType)

    @classmethod
    def normalize(cls, operands: Sequence[Tensor], properties: Properties) -> Properties:
        """From ONNX's terms: `axis`, of opset 13, is one axis; `first`, of older ones, an axis with all that follow."""
        rank = operands[0].get_num_dims()
        if "axis" in properties:
            return {"axes": attribute([normal_axis(ints(properties, "axis")[0], rank)])}
        if "first" in properties:
            return {"axes": attribute(range(normal_axis(ints(properties, "first")[0], rank), rank))}
        return {"axes": attribute(normal_axes(properties, rank))}

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        (x,) = operands
        if x.element_type not in FLOATS:
            raise DtypeError(f"the operand holds floats (found {x.element_type})")
        normal_axes(properties, x.get_num_dims())
        return [TensorType(x.element_type, x.get_shape())]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        if opset < 13:
            return [0], {"first": attribute([node.get("axis", 1)])}
        return [0], {"axis": attribute([node.get("axis", -1)])}

    def shifted(self, emit: Emit) -> SSAValue:
        """x − max x, f32."""
        top = emit(ReduceMaxOp, self.x, element=emit.inner, axes=self.axes, keepdims=True)
        return emit(SubOp, self.x, top, element=emit.inner)

    def exponentials(self, x: Array) -> tuple[Array, Array, Array]:
        """(x − max x, its exponential, the sum of that), for `reference`."""
        axes = ints(self.properties, "axes")
        shifted = x - x.max(axes, keepdims=True)
        powers = np.exp(shifted)
        return shifted, powers, powers.sum(axes, keepdims=True)


@irdl_op_definition
class SoftmaxOp(SoftmaxBase):
    """e^(x − max x) divided by its sum."""

    name = "graph.softmax"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Softmax", 1),)
    EXAMPLE: ClassVar[str] = "%1 = graph.softmax %0 {axes = [1]} : (tensor<2x8xf32>) -> tensor<2x8xf32>"

    def reference(self, x: Array) -> Array:
        _, powers, total = self.exponentials(x)
        return powers / total

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        powers = emit(ExpOp, self.shifted(emit), element=emit.inner)
        total = emit(ReduceSumOp, powers, element=emit.inner, axes=self.axes, keepdims=True)
        return [emit(MulOp, powers, emit(ReciprocalOp, total, element=emit.inner))]


@irdl_op_definition
class LogSoftmaxOp(SoftmaxBase):
    """(x − max x) minus the logarithm of the sum of its exponentials."""

    name = "graph.log_softmax"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("LogSoftmax", 1),)
    EXAMPLE: ClassVar[str] = "%1 = graph.log_softmax %0 {axes = [1]} : (tensor<2x8xf32>) -> tensor<2x8xf32>"

    def reference(self, x: Array) -> Array:
        shifted, _, total = self.exponentials(x)
        return shifted - np.log(total)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        shifted = self.shifted(emit)
        powers = emit(ExpOp, shifted, element=emit.inner)
        total = emit(ReduceSumOp, powers, element=emit.inner, axes=self.axes, keepdims=True)
        return [emit(SubOp, shifted, emit(LogOp, total, element=emit.inner))]
