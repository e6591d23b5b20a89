"""Convolution and matrix product as ONNX has them: NCHW, groups, α and β. They decompose into `contract.py`'s."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, FloatAttr, IntegerAttr, StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, prop_def, result_def
from xdsl.pattern_rewriter import PatternRewriter

from .arithmetic import AddOp, MulOp
from .contract import Conv2DOp, Depthwise2DOp, GroupConv2DOp, MatMulOp, pack_conv_weight, pack_depthwise_weight
from .elementwise import CastOp
from .emit import Emit
from .op import (
    FLOATS,
    Array,
    DtypeError,
    GraphOp,
    Onnx,
    ShapeError,
    Tensor,
    broadcast_shapes,
    element,
    f16,
    f32,
    i8,
    i32,
    promote,
    shape,
)
from .properties import Properties, attribute, attributes, flag, integer, ints, number
from .views import ExpandOp, ReshapeOp, TransposeOp
from .windows import Sliding, as_bias, fold_axis, from_channels_last, normal_window, to_channels_last, window_from_onnx


def check_operands(operands: Sequence[Tensor]) -> Attribute:
    """The default element type of the result of a convolution; raises `InferError`."""
    kinds = [operand.element_type for operand in operands]
    if all(kind in FLOATS for kind in kinds):
        return promote(operands[:2])
    if kinds == [i8, i8, i32][: len(kinds)]:
        return i32
    raise DtypeError(f"operands are floats, or i8 with an i32 bias (found {', '.join(map(str, kinds))})")


@irdl_op_definition
class ConvOp(GraphOp):
    """ONNX's convolution over one or more axes: x [N, C, …], weight [O, C/groups, …], bias [O]."""

    name = "graph.conv"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Conv", 1),)
    EXAMPLE: ClassVar[str] = (
        "%2 = graph.conv %0, %1"
        " {kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1}"
        " : (tensor<1x3x8x8xf32>, tensor<5x3x3x3xf32>) -> tensor<1x5x4x4xf32>"
    )

    x = operand_def(TensorType)
    weight = operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    kernel = prop_def(DenseArrayBase)
    strides = prop_def(DenseArrayBase)
    pads = prop_def(DenseArrayBase)
    dilations = prop_def(DenseArrayBase)
    groups = prop_def(IntegerAttr)
    auto_pad = opt_prop_def(StringAttr)
    result = result_def(TensorType)

    @classmethod
    def normalize(cls, operands: Sequence[Tensor], properties: Properties) -> Properties:
        cls._check_ranks(operands)
        weight = operands[1].get_shape()
        window = normal_window(operands[0].get_shape()[2:], ints(properties, "kernel", weight[2:]), properties)
        return {**window, "groups": attribute(integer(properties, "groups", 1))}

    @staticmethod
    def _check_ranks(operands: Sequence[Tensor]) -> None:
        ranks = [operand.get_num_dims() for operand in operands[:2]]
        if ranks[0] != ranks[1] or ranks[0] < 3:
            raise ShapeError(f"a convolution runs over the axes after the second (found operands of rank {ranks})")

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        cls._check_ranks(operands)
        x, weight, groups = operands[0].get_shape(), operands[1].get_shape(), integer(properties, "groups")
        if groups < 1 or x[1] != weight[1] * groups or weight[0] % groups:
            raise ShapeError(
                f"x has groups·{weight[1]} channels, and groups divide the outputs"
                f" (found {x[1]} channels, {weight[0]} outputs, {groups} groups)"
            )
        if ints(properties, "kernel") != weight[2:]:
            raise ShapeError(f"the kernel has the weight's extents (found {ints(properties, 'kernel')}, {weight[2:]})")
        if len(operands) > 2 and operands[2].get_shape() != weight[:1]:
            raise ShapeError(f"the bias has {weight[0]} elements (found {operands[2]})")
        extents = Sliding.of(properties, len(x) - 2).extents(x[2:])
        return [TensorType(check_operands(operands), (x[0], weight[0], *extents))]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        groups = {"groups": attribute(node.get("group", 1))}
        return list(range(len(constants))), window_from_onnx(node) | groups

    @property
    def window(self) -> Sliding:
        return Sliding.of(self.properties, len(shape(self.x)) - 2)

    def reference(self, x: Array, weight: Array, bias: Array | None = None) -> Array:
        """Sums over taps, group by group."""
        window, groups, out = self.window, integer(self.properties, "groups"), shape(self.result)
        x = np.pad(x, [(0, 0), (0, 0), *zip(window.before, window.after, strict=True)])
        x = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
        weight = weight.reshape(groups, -1, *weight.shape[1:])
        total = np.zeros((out[0], groups, out[1] // groups, *out[2:]), x.dtype)
        for tap in np.ndindex(window.kernel):
            firsts = [t * d for t, d in zip(tap, window.dilations, strict=True)]
            places = zip(firsts, out[2:], window.strides, strict=True)
            taps = x[(..., *(slice(f, f + (n - 1) * s + 1, s) for f, n, s in places))]
            total += np.einsum("ngc...,goc->ngo...", taps, weight[(..., *tap)])
        total = total.reshape(out)
        return total if bias is None else total + bias.reshape(-1, *[1] * (x.ndim - 3))

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit, groups = Emit(self, rewriter), integer(self.properties, "groups")
        x, whole = to_channels_last(emit, self.x), emit.result == i32
        bias = None if whole else as_bias(emit, self.bias)
        y = convolve(emit, x, self.weight, bias, self.window, groups)
        if whole and self.bias is not None:
            y = emit(AddOp, y, self.bias)
        return [from_channels_last(emit, y, shape(self.result))]


FAR = 64
"""The largest dilation of a window over one axis whose taps are read from one panel of rows."""


def convolve(
    emit: Emit, x: SSAValue, weight: SSAValue, bias: SSAValue | None, window: Sliding, groups: int
) -> SSAValue:
    """The convolution of x [N, …, C], two axes or more in between, with a weight [O, C/groups, …]."""
    if len(window.kernel) > 2:
        return _folded(emit, x, weight, bias, window, groups)
    outputs, channels, *kernel = shape(weight)
    if len(kernel) == 1:
        if window.dilations[0] > FAR and kernel[0] > 1 and (channels > 1 or groups == 1):
            return _spread(emit, x, weight, bias, window, groups)
        weight = emit.keep(ReshapeOp, weight, shape=[outputs, channels, kernel[0], 1])
    if groups == 1:
        return _whole(emit, x, weight, bias, window)
    if channels == 1:
        return _depthwise(emit, x, weight, bias, window)
    return _grouped(emit, x, weight, bias, window, groups)


def _folded(emit: Emit, x: SSAValue, weight: SSAValue, bias: SSAValue | None, window: Sliding, groups: int) -> SSAValue:
    """One axis less: the taps over the first one are channels, its windows are images."""
    outputs, channels, taps, *kernel = shape(weight)
    x = fold_axis(emit, x, window, groups)
    n, depth, *size = shape(x)
    weight = emit.keep(TransposeOp, weight, perm=[0, 2, 1, *range(3, 3 + len(kernel))])
    weight = emit.keep(ReshapeOp, weight, shape=[outputs, taps * channels, *kernel])
    images = emit.keep(ReshapeOp, x, shape=[n * depth, *size])
    y = convolve(emit, images, weight, bias, window.part(slice(1, None)), groups)
    return emit.keep(ReshapeOp, y, shape=[n, depth, *shape(y)[1:]])


def _spread(emit: Emit, x: SSAValue, weight: SSAValue, bias: SSAValue | None, window: Sliding, groups: int) -> SSAValue:
    """Over one axis, with taps so far apart that what lies between them is not worth keeping: they are channels."""
    outputs, channels, taps = shape(weight)
    x = fold_axis(emit, x, window, groups)
    weight = emit.keep(TransposeOp, weight, perm=[0, 2, 1])
    weight = emit.keep(ReshapeOp, weight, shape=[outputs, taps * channels, 1])
    return convolve(emit, x, weight, bias, Sliding((1,), (1,), (0,), (0,), (1,)), groups)


def _whole(emit: Emit, x: SSAValue, weight: SSAValue, bias: SSAValue | None, window: Sliding) -> SSAValue:
    return emit(Conv2DOp, x, pack_conv_weight(emit, weight), bias, channels=shape(x)[3], **window.two_axes())


def _depthwise(emit: Emit, x: SSAValue, weight: SSAValue, bias: SSAValue | None, window: Sliding) -> SSAValue:
    """One input channel per group; with m outputs per group, each channel stands m times."""
    *size, channels = shape(x)
    times = shape(weight)[0] // channels
    if times > 1:
        x = emit.keep(ReshapeOp, x, shape=[*size, channels, 1])
        x = emit.keep(ExpandOp, x, shape=[*size, channels, times])
        x = emit.keep(ReshapeOp, x, shape=[*size, channels * times])
    if element(x) != i8:
        return emit(Depthwise2DOp, x, pack_depthwise_weight(emit, weight), bias, **window.two_axes())
    # The cube has no such form of bytes; as floats they are exact: 2¹⁴·taps is at most 2²⁴.
    x, weight = (emit(CastOp, value, element=f16) for value in (x, weight))
    y = emit(Depthwise2DOp, x, pack_depthwise_weight(emit, weight), element=f32, **window.two_axes())
    return emit(CastOp, y)


def _grouped(
    emit: Emit, x: SSAValue, weight: SSAValue, bias: SSAValue | None, window: Sliding, groups: int
) -> SSAValue:
    """All groups in one op."""
    *size, channels = shape(x)
    outputs = shape(weight)[0]
    x = emit.keep(ReshapeOp, x, shape=[*size, groups, channels // groups])
    packed = pack_conv_weight(emit, weight)  # [K, O]
    packed = emit.keep(ReshapeOp, packed, shape=[shape(packed)[0], groups, outputs // groups])
    packed = emit.keep(TransposeOp, packed, perm=[1, 0, 2])
    return emit(GroupConv2DOp, x, packed, bias, **window.two_axes())


@irdl_op_definition
class GemmOp(GraphOp):
    """α·a·b + β·c, a and b as they are or transposed; c broadcasts."""

    name = "graph.gemm"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Gemm", 7),)
    EXAMPLE: ClassVar[str] = (
        "%3 = graph.gemm %0, %1, %2 {trans_b = true}"
        " : (tensor<2x3xf32>, tensor<4x3xf32>, tensor<4xf32>) -> tensor<2x4xf32>"
    )

    a = operand_def(TensorType)
    b = operand_def(TensorType)
    c = opt_operand_def(TensorType)
    alpha = opt_prop_def(FloatAttr)
    beta = opt_prop_def(FloatAttr)
    trans_a = opt_prop_def(BoolAttr)
    trans_b = opt_prop_def(BoolAttr)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        a, b = operands[0].get_shape(), operands[1].get_shape()
        if len(a) != 2 or len(b) != 2:
            raise ShapeError(f"a and b are matrices (found rank {len(a)} and {len(b)})")
        m, k_a = a[::-1] if flag(properties, "trans_a") else a
        k_b, n = b[::-1] if flag(properties, "trans_b") else b
        if k_a != k_b:
            raise ShapeError(f"the contracted axes agree (found {k_a} and {k_b})")
        if len(operands) > 2 and broadcast_shapes(operands[2].get_shape(), (m, n)) != (m, n):
            raise ShapeError(f"c broadcasts to [{m}, {n}] (found {operands[2]})")
        if not all(operand.element_type in FLOATS for operand in operands):
            raise DtypeError(f"operands are floats (found {', '.join(str(o.element_type) for o in operands)})")
        return [TensorType(promote(operands[:2]), (m, n))]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
        return list(range(len(constants))), attributes(
            alpha=None if alpha == 1 else alpha,
            beta=None if beta == 1 else beta,
            trans_a=True if node.get("transA") else None,
            trans_b=True if node.get("transB") else None,
        )

    def reference(self, a: Array, b: Array, c: Array | None = None) -> Array:
        a, b = (x.T if flag(self.properties, name) else x for x, name in ((a, "trans_a"), (b, "trans_b")))
        product = number(self.properties, "alpha", 1.0) * (a @ b)
        return product if c is None else product + number(self.properties, "beta", 1.0) * c

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        a = emit.keep(TransposeOp, self.a, perm=[1, 0]) if flag(self.properties, "trans_a") else self.a
        trans_b = True if flag(self.properties, "trans_b") else None
        alpha, beta = number(self.properties, "alpha", 1.0), number(self.properties, "beta", 1.0)
        c, columns = self.c, shape(self.result)[1]
        if c is None and alpha == 1:
            return [emit(MatMulOp, a, self.b, trans_b=trans_b)]
        if c is not None and alpha == beta == 1 and shape(c) in ((columns,), (1, columns)):
            bias = c if len(shape(c)) == 1 else emit.keep(ReshapeOp, c, shape=[columns])
            return [emit(MatMulOp, a, self.b, as_bias(emit, bias), trans_b=trans_b)]
        y = emit(MatMulOp, a, self.b, element=emit.inner, trans_b=trans_b)
        if alpha != 1:
            y = emit(MulOp, y, emit.constant(alpha), element=emit.inner if c is not None else None)
        if c is None:
            return [y]
        if beta != 1:
            c = emit(MulOp, c, emit.constant(beta), element=emit.inner)
        return [emit(AddOp, y, c)]
