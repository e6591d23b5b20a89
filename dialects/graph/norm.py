"""Normalisations. They decompose with f32 inside, in the order of docs/numerics.md §6."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def
from xdsl.pattern_rewriter import PatternRewriter

from .activations import RsqrtOp, SqrtOp
from .arithmetic import AddOp, DivOp, EqOp, MulOp, PowOp, SubOp
from .elementwise import WhereOp
from .emit import Emit
from .op import FLOATS, Array, DtypeError, GraphOp, InferError, Onnx, ShapeError, Tensor, broadcast_shapes, i1, shape
from .pool import Window2DOp
from .properties import Properties, attribute, attributes, integer, ints, number
from .reduce import ReduceL1Op, ReduceMeanOp, normal_axes
from .reduce_roots import ReduceL2Op
from .views import ReshapeOp, normal_axis


def _check_floats(operands: Sequence[Tensor]) -> None:
    if not all(operand.element_type in FLOATS for operand in operands):
        raise DtypeError(f"operands are floats (found {', '.join(str(o.element_type) for o in operands)})")


def _check_channels(operands: Sequence[Tensor]) -> None:
    """Every operand after the first has one element per channel of the first."""
    channels = operands[0].get_shape()[1:2]
    for operand in operands[1:]:
        if operand.get_shape() != channels:
            raise ShapeError(f"parameters have one element per channel, {list(channels)} (found {operand})")


def normalized(emit: Emit, x: SSAValue, axes: Sequence[int], epsilon: float, element: Attribute) -> SSAValue:
    """d · 1/√(v + ε): d = x − mean x, v = mean d²; the last step has type `element`."""
    mean = emit(ReduceMeanOp, x, element=emit.inner, axes=axes, keepdims=True)
    centred = emit(SubOp, x, mean, element=emit.inner)
    squares = emit(MulOp, centred, centred, element=emit.inner)
    variance = emit(ReduceMeanOp, squares, element=emit.inner, axes=axes, keepdims=True)
    shifted = emit(AddOp, variance, emit.constant(epsilon), element=emit.inner)
    return emit(MulOp, centred, emit(RsqrtOp, shifted, element=emit.inner), element=element)


def scaled(emit: Emit, x: SSAValue, scale: SSAValue, shift: SSAValue | None) -> SSAValue:
    """x·scale + shift, to the result's type."""
    if shift is None:
        return emit(MulOp, x, scale)
    return emit(AddOp, emit(MulOp, x, scale, element=emit.inner), shift)


def _standard(x: Array, axes: Sequence[int], epsilon: float) -> Array:
    """For `reference`: zero mean and unit variance."""
    return (x - x.mean(tuple(axes), keepdims=True)) / np.sqrt(x.var(tuple(axes), keepdims=True) + epsilon)


def _per_channel(emit: Emit, value: SSAValue, rank: int) -> SSAValue:
    """[C] as [C, 1, …], which broadcasts over a tensor of `rank` with channels second."""
    return emit.keep(ReshapeOp, value, shape=[shape(value)[0], *[1] * (rank - 2)])


class RowNorm(GraphOp):
    """Common to normalisations of the axes from `axis` on, scaled by tensors that broadcast to x."""

    axis = prop_def(IntegerAttr)
    epsilon = prop_def(FloatAttr)
    result = result_def(TensorType)

    @classmethod
    def normalize(cls, operands: Sequence[Tensor], properties: Properties) -> Properties:
        axis = normal_axis(integer(properties, "axis", -1), operands[0].get_num_dims())
        return {**properties, "axis": attribute(axis)}

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        _check_floats(operands)
        x = operands[0].get_shape()
        normal_axis(integer(properties, "axis"), len(x))
        for operand in operands[1:]:
            if broadcast_shapes(operand.get_shape(), x) != x:
                raise ShapeError(f"scale and bias broadcast to {list(x)} (found {operand})")
        return [TensorType(operands[0].element_type, x)]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        if node.get("stash_type", 1) != 1:
            raise InferError(f"means are taken in f32 (found stash_type = {node['stash_type']})")
        return list(range(len(constants))), attributes(
            axis=node.get("axis", -1), epsilon=float(node.get("epsilon", 1e-5))
        )

    @property
    def axes(self) -> range:
        return range(integer(self.properties, "axis"), len(shape(self.result)))


@irdl_op_definition
class LayerNormOp(RowNorm):
    """Zero mean and unit variance over the axes from `axis` on, then ·scale + bias."""

    name = "graph.layer_norm"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("LayerNormalization", 17),)
    EXAMPLE: ClassVar[str] = (
        "%3 = graph.layer_norm %0, %1, %2 {axis = 1, epsilon = 1.0e-05}"
        " : (tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x8xf32>"
    )

    x = operand_def(TensorType)
    scale = operand_def(TensorType)
    bias = opt_operand_def(TensorType)

    def reference(self, x: Array, scale: Array, bias: Array | None = None) -> Array:
        y = _standard(x, self.axes, number(self.properties, "epsilon")) * scale
        return y if bias is None else y + bias

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        y = normalized(emit, self.x, self.axes, number(self.properties, "epsilon"), emit.inner)
        return [scaled(emit, y, self.scale, self.bias)]


@irdl_op_definition
class RMSNormOp(RowNorm):
    """x ÷ √(mean x² + ε) over the axes from `axis` on, then ·scale."""

    name = "graph.rms_norm"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("RMSNormalization", 23),)
    EXAMPLE: ClassVar[str] = (
        "%2 = graph.rms_norm %0, %1 {axis = 1, epsilon = 1.0e-05} : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>"
    )

    x = operand_def(TensorType)
    scale = operand_def(TensorType)

    def reference(self, x: Array, scale: Array) -> Array:
        squares = np.mean(x * x, tuple(self.axes), keepdims=True)
        return x / np.sqrt(squares + number(self.properties, "epsilon")) * scale

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        squares = emit(MulOp, self.x, self.x, element=emit.inner)
        mean = emit(ReduceMeanOp, squares, element=emit.inner, axes=self.axes, keepdims=True)
        shifted = emit(AddOp, mean, emit.constant(number(self.properties, "epsilon")), element=emit.inner)
        y = emit(MulOp, self.x, emit(RsqrtOp, shifted, element=emit.inner), element=emit.inner)
        return [scaled(emit, y, self.scale, None)]


@irdl_op_definition
class BatchNormOp(GraphOp):
    """Inference: (x − mean) ÷ √(variance + ε)·scale + bias per channel.

    Computed as x·s + (bias − mean·s) with s = scale ÷ √(variance + ε). Of constant parameters s and the shift are
    constants too, and two operations are left.
    """

    name = "graph.batch_norm"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("BatchNormalization", 7),)
    EXAMPLE: ClassVar[str] = (
        "%5 = graph.batch_norm %0, %1, %2, %3, %4 {epsilon = 1.0e-05}"
        " : (tensor<1x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x3x4x4xf32>"
    )

    x = operand_def(TensorType)
    scale = operand_def(TensorType)
    bias = operand_def(TensorType)
    mean = operand_def(TensorType)
    variance = operand_def(TensorType)
    epsilon = prop_def(FloatAttr)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        _check_floats(operands)
        if operands[0].get_num_dims() < 2:
            raise ShapeError(f"the operand is [N, C, …] (found rank {operands[0].get_num_dims()})")
        _check_channels(operands)
        return [operands[0]]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        if node.get("training_mode", 0):
            raise InferError("batch normalisation is that of inference (found training_mode = 1)")
        if node.get("spatial", 1) != 1:
            raise InferError("statistics are per channel (found spatial = 0)")
        return [0, 1, 2, 3, 4], attributes(epsilon=float(node.get("epsilon", 1e-5)))

    def reference(self, x: Array, scale: Array, bias: Array, mean: Array, variance: Array) -> Array:
        size = (-1, *[1] * (x.ndim - 2))
        scale, bias, mean, variance = (p.reshape(size) for p in (scale, bias, mean, variance))
        return (x - mean) / np.sqrt(variance + number(self.properties, "epsilon")) * scale + bias

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        rank, inner = len(shape(self.x)), emit.inner
        shifted = emit(AddOp, self.variance, emit.constant(number(self.properties, "epsilon")), element=inner)
        scale = emit(DivOp, self.scale, emit(SqrtOp, shifted, element=inner), element=inner)
        shift = emit(SubOp, self.bias, emit(MulOp, self.mean, scale, element=inner), element=inner)
        return [scaled(emit, self.x, _per_channel(emit, scale, rank), _per_channel(emit, shift, rank))]


@irdl_op_definition
class InstanceNormOp(GraphOp):
    """Zero mean and unit variance of each channel of each image, then ·scale + bias per channel."""

    name = "graph.instance_norm"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("InstanceNormalization", 6),)
    EXAMPLE: ClassVar[str] = (
        "%3 = graph.instance_norm %0, %1, %2 {epsilon = 1.0e-05}"
        " : (tensor<1x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x3x4x4xf32>"
    )

    x = operand_def(TensorType)
    scale = operand_def(TensorType)
    bias = operand_def(TensorType)
    epsilon = prop_def(FloatAttr)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        _check_floats(operands)
        if operands[0].get_num_dims() < 3:
            raise ShapeError(f"the operand is [N, C, …] with further axes (found rank {operands[0].get_num_dims()})")
        _check_channels(operands)
        return [operands[0]]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        return [0, 1, 2], attributes(epsilon=float(node.get("epsilon", 1e-5)))

    def reference(self, x: Array, scale: Array, bias: Array) -> Array:
        size = (-1, *[1] * (x.ndim - 2))
        y = _standard(x, range(2, x.ndim), number(self.properties, "epsilon"))
        return y * scale.reshape(size) + bias.reshape(size)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        rank = len(shape(self.x))
        y = normalized(emit, self.x, range(2, rank), number(self.properties, "epsilon"), emit.inner)
        return [scaled(emit, y, _per_channel(emit, self.scale, rank), _per_channel(emit, self.bias, rank))]


@irdl_op_definition
class GroupNormOp(GraphOp):
    """Zero mean and unit variance of each group of channels of each image, then ·scale + bias per channel."""

    name = "graph.group_norm"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("GroupNormalization", 21),)
    EXAMPLE: ClassVar[str] = (
        "%3 = graph.group_norm %0, %1, %2 {groups = 2, epsilon = 1.0e-05}"
        " : (tensor<1x4x4x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32>"
    )

    x = operand_def(TensorType)
    scale = operand_def(TensorType)
    bias = operand_def(TensorType)
    groups = prop_def(IntegerAttr)
    epsilon = prop_def(FloatAttr)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        _check_floats(operands)
        groups, channels = integer(properties, "groups"), (*operands[0].get_shape(), 0, 0)[1]
        if operands[0].get_num_dims() < 3 or groups < 1 or channels % groups:
            raise ShapeError(f"the groups divide the channels of [N, C, …] (found {groups}, {operands[0]})")
        _check_channels(operands)
        return [operands[0]]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        return [0, 1, 2], attributes(groups=node["num_groups"], epsilon=float(node.get("epsilon", 1e-5)))

    @property
    def grouped(self) -> tuple[int, ...]:
        """x's shape with the channels in two axes."""
        n, channels, *rest = shape(self.x)
        groups = integer(self.properties, "groups")
        return (n, groups, channels // groups, *rest)

    def reference(self, x: Array, scale: Array, bias: Array) -> Array:
        size = (-1, *[1] * (x.ndim - 2))
        y = _standard(x.reshape(self.grouped), range(2, x.ndim + 1), number(self.properties, "epsilon"))
        return y.reshape(x.shape) * scale.reshape(size) + bias.reshape(size)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        size = shape(self.x)
        x = emit.keep(ReshapeOp, self.x, shape=self.grouped)
        y = normalized(emit, x, range(2, len(size) + 1), number(self.properties, "epsilon"), emit.inner)
        y = emit.keep(ReshapeOp, y, shape=size)
        return [scaled(emit, y, _per_channel(emit, self.scale, len(size)), _per_channel(emit, self.bias, len(size)))]


@irdl_op_definition
class MeanVarianceNormOp(GraphOp):
    """Zero mean and unit variance over `axes`: (x − mean) ÷ (√variance + 1e-9)."""

    name = "graph.mean_variance_norm"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("MeanVarianceNormalization", 9),)
    EXAMPLE: ClassVar[str] = (
        "%1 = graph.mean_variance_norm %0 {axes = [0, 2, 3]} : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>"
    )
    EPSILON: ClassVar[float] = 1e-9

    x = operand_def(TensorType)
    axes = prop_def(DenseArrayBase)
    result = result_def(TensorType)

    @classmethod
    def normalize(cls, operands: Sequence[Tensor], properties: Properties) -> Properties:
        given = {"axes": attribute(ints(properties, "axes", (0, 2, 3)))}
        return attributes(axes=normal_axes(given, operands[0].get_num_dims()))

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        _check_floats(operands)
        normal_axes(properties, operands[0].get_num_dims())
        return [operands[0]]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        return [0], attributes(axes=node.get("axes"))

    def reference(self, x: Array) -> Array:
        axes = ints(self.properties, "axes")
        return (x - x.mean(axes, keepdims=True)) / (x.std(axes, keepdims=True) + self.EPSILON)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit, axes = Emit(self, rewriter), ints(self.properties, "axes")
        mean = emit(ReduceMeanOp, self.x, element=emit.inner, axes=axes, keepdims=True)
        centred = emit(SubOp, self.x, mean, element=emit.inner)
        squares = emit(MulOp, centred, centred, element=emit.inner)
        variance = emit(ReduceMeanOp, squares, element=emit.inner, axes=axes, keepdims=True)
        deviation = emit(SqrtOp, variance, element=emit.inner)
        return [emit(DivOp, centred, emit(AddOp, deviation, emit.constant(self.EPSILON), element=emit.inner))]


@irdl_op_definition
class LpNormOp(GraphOp):
    """x divided by its norm of order `p`, 1 or 2, along `axis`; 0 where the norm is 0."""

    name = "graph.lp_norm"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("LpNormalization", 1),)
    EXAMPLE: ClassVar[str] = "%1 = graph.lp_norm %0 {axis = 1, p = 2} : (tensor<2x8xf32>) -> tensor<2x8xf32>"

    x = operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    p = prop_def(IntegerAttr)
    result = result_def(TensorType)

    @classmethod
    def normalize(cls, operands: Sequence[Tensor], properties: Properties) -> Properties:
        axis = normal_axis(integer(properties, "axis", -1), operands[0].get_num_dims())
        return attributes(axis=axis, p=integer(properties, "p", 2))

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        _check_floats(operands)
        normal_axis(integer(properties, "axis"), operands[0].get_num_dims())
        if integer(properties, "p") not in (1, 2):
            raise InferError(f"the order of the norm is 1 or 2 (found {integer(properties, 'p')})")
        return [operands[0]]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        return [0], attributes(axis=node.get("axis"), p=node.get("p"))

    def reference(self, x: Array) -> Array:
        norm = np.linalg.norm(x, integer(self.properties, "p"), integer(self.properties, "axis"), keepdims=True)
        return np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm))

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        kind = ReduceL1Op if integer(self.properties, "p") == 1 else ReduceL2Op
        axes = [integer(self.properties, "axis")]
        norm = emit(kind, self.x, element=emit.inner, axes=axes, keepdims=True)
        none = emit(EqOp, norm, emit.constant(0.0), element=i1)
        ratio = emit(DivOp, self.x, emit(WhereOp, none, emit.constant(1.0), norm, element=emit.inner))
        return [ratio]


@irdl_op_definition
class LRNOp(GraphOp):
    """x ÷ (bias + alpha ÷ size · Σ x²)^beta, the sum over `size` channels around each."""

    name = "graph.lrn"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("LRN", 1),)
    EXAMPLE: ClassVar[str] = (
        "%1 = graph.lrn %0 {size = 3, alpha = 0.0001, beta = 0.75, bias = 1.0}"
        " : (tensor<1x6x4x4xf32>) -> tensor<1x6x4x4xf32>"
    )

    x = operand_def(TensorType)
    size = prop_def(IntegerAttr)
    alpha = prop_def(FloatAttr)
    beta = prop_def(FloatAttr)
    bias = prop_def(FloatAttr)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        _check_floats(operands)
        if operands[0].get_num_dims() < 2 or integer(properties, "size") < 1:
            raise ShapeError(f"1 or more channels of [N, C, …] (found {integer(properties, 'size')}, {operands[0]})")
        return [operands[0]]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        defaults = {"alpha": 1e-4, "beta": 0.75, "bias": 1.0}
        numbers = {name: float(node.get(name, default)) for name, default in defaults.items()}
        return [0], attributes(size=node["size"], **numbers)

    @property
    def around(self) -> tuple[int, int]:
        """Channels below and above that count."""
        size = integer(self.properties, "size")
        return (size - 1) // 2, size // 2

    def reference(self, x: Array) -> Array:
        size, (below, above) = integer(self.properties, "size"), self.around
        alpha, beta, bias = (number(self.properties, name) for name in ("alpha", "beta", "bias"))
        squares = np.pad(x * x, [(below, above) if i == 1 else (0, 0) for i in range(x.ndim)])
        total = sum(squares[:, i : i + x.shape[1]] for i in range(size))
        return x / (bias + alpha / size * total) ** beta

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        """The channels are the rows of an image of width 1, in which a window slides."""
        emit, size, (below, above) = Emit(self, rewriter), integer(self.properties, "size"), self.around
        alpha, beta, bias = (number(self.properties, name) for name in ("alpha", "beta", "bias"))
        n, channels, *rest = shape(self.x)
        squares = emit(MulOp, self.x, self.x, element=emit.inner)
        image = emit.keep(ReshapeOp, squares, shape=[n, channels, 1, math.prod(rest)])
        window = {"kernel": [size, 1], "strides": [1, 1], "pads": [below, 0, above, 0], "dilations": [1, 1]}
        total = emit(Window2DOp, image, element=emit.inner, fn="sum", **window)
        total = emit(MulOp, total, emit.constant(alpha / size), element=emit.inner)
        total = emit(AddOp, total, emit.constant(bias), element=emit.inner)
        divisor = emit(PowOp, total, emit.constant(beta), element=emit.inner)
        return [emit(DivOp, self.x, emit.keep(ReshapeOp, divisor, shape=shape(self.x)))]
