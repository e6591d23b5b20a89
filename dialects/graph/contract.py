"""Contractions as machines see them: `matmul`, and channels-last convolutions with packed weights (numerics.md §5)."""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, prop_def, result_def

from ..loops import Axis, IndexMap, LoopNest, MultiplyAdd, axis, broadcast
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
    f32,
    i8,
    i32,
    promote,
    shape,
    u8,
)
from .properties import flag, integer, ints
from .views import PadOp, ReshapeOp, TransposeOp

LANES = 16
"""Channels that a depthwise weight keeps together, and that a convolution's k takes in one step (of more than 4)."""


def inner_channels(channels: int) -> int:
    """c₀ of docs/numerics.md §5."""
    return 4 if channels <= 4 else LANES


def ceil_div(a: int, b: int) -> int:
    """a ÷ b, rounded up."""
    return -(-a // b)


def check_contraction(operands: Sequence[Tensor], outputs: int) -> Attribute:
    """The default element type of a contraction of the first two operands.

    The third one, the bias, is f32 (or i32) and has `outputs` elements.
    """
    kinds = [operand.element_type for operand in operands]
    if all(kind in FLOATS for kind in kinds[:2]):
        result, bias = promote(operands[:2]), f32
    elif (kinds[0] in (i8, u8) and kinds[1] == i8) or kinds[:2] == [i32, i32]:
        result, bias = i32, i32
    else:
        raise DtypeError(f"operands are floats, i8/ui8 by i8, or i32 (found {kinds[0]} and {kinds[1]})")
    if len(operands) > 2 and (kinds[2] != bias or operands[2].get_shape() != (outputs,)):
        raise ShapeError(f"the bias is a tensor<{outputs}x{bias}> (found {operands[2]})")
    return result


@irdl_op_definition
class MatMulOp(GraphOp):
    """The matrix product, batch axes broadcast as in numpy; a bias is added along the last axis.

    With `trans_b` the last two axes of b are swapped: b is [n, k].
    """

    name = "graph.matmul"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("MatMul", 1),)
    EXAMPLE: ClassVar[str] = "%2 = graph.matmul %0, %1 : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>"

    a = operand_def(TensorType)
    b = operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    trans_b = opt_prop_def(BoolAttr)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        a, b = operands[0].get_shape(), operands[1].get_shape()
        if not a or not b or (flag(properties, "trans_b") and len(b) < 2):
            raise ShapeError(f"operands are matrices or vectors (found rank {len(a)} and {len(b)})")
        (k_b, n), batch = cls._columns(b, flag(properties, "trans_b")), broadcast_shapes(a[:-2], b[:-2])
        if a[-1] != k_b:
            raise ShapeError(f"the contracted axes agree (found {a[-1]} and {k_b})")
        element = check_contraction(operands, math.prod(n))
        return [TensorType(element, (*batch, *a[-2:-1], *n))]

    @staticmethod
    def _columns(b: Sequence[int], trans_b: bool) -> tuple[int, tuple[int, ...]]:
        """(k, the extent n unless b is a vector)."""
        if len(b) == 1:
            return b[0], ()
        return (b[-1], (b[-2],)) if trans_b else (b[-2], (b[-1],))

    def reference(self, a: Array, b: Array, bias: Array | None = None) -> Array:
        product = np.matmul(a, b.swapaxes(-1, -2) if flag(self.properties, "trans_b") else b)
        return product if bias is None else product + bias

    def loops(self) -> LoopNest:
        a, b, out = shape(self.a), shape(self.b), shape(self.result)
        k = len(out)
        batch = out[: max(len(a), len(b)) - 2] if max(len(a), len(b)) > 2 else ()
        bounds = (*out, a[-1])
        rows = (axis(len(batch)),) if len(a) > 1 else ()
        columns = (axis(k - 1),) if len(b) > 1 else ()
        tail_b = (*columns, axis(k)) if flag(self.properties, "trans_b") else (axis(k), *columns)
        map_a = (*broadcast(a[:-2], batch), *rows, axis(k))
        map_b = (*broadcast(b[:-2], batch), *tail_b)
        bias = () if self.bias is None else (columns or (Axis(),),)
        return LoopNest(bounds, (map_a, map_b, *bias), tuple(axis(dim) for dim in range(k)), MultiplyAdd())


class Convolution(GraphOp):
    """Common to the channels-last convolutions: x is [N, H, W, C], `pads` are (top, left, bottom, right)."""

    x = operand_def(TensorType)
    weight = operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    kernel = prop_def(DenseArrayBase)
    strides = prop_def(DenseArrayBase)
    pads = prop_def(DenseArrayBase)
    dilations = prop_def(DenseArrayBase)
    result = result_def(TensorType)

    def reference(self, x: Array, weight: Array, bias: Array | None = None) -> Array:
        """Sums over taps."""
        kernel, strides, pads, dilations = window_properties(self.properties)
        out = shape(self.result)
        around = [(0, 0), (pads[0], pads[2]), (pads[1], pads[3])]
        padded = np.pad(x, around + [(0, 0)] * (x.ndim - 3))
        total = np.zeros(out, np.float64 if x.dtype.kind == "f" else np.int64)
        for tap in range(math.prod(kernel)):
            h, w = tap // kernel[1] * dilations[0], tap % kernel[1] * dilations[1]
            rows = padded[:, h : h + (out[1] - 1) * strides[0] + 1 : strides[0]]
            total += self.contribution(rows[:, :, w : w + (out[2] - 1) * strides[1] + 1 : strides[1]], weight, tap)
        return total if bias is None else total + bias

    def contribution(self, x: Array, weight: Array, tap: int) -> Array:
        """What one tap adds, for `reference`."""
        raise NotImplementedError


def window_properties(properties: Mapping[str, Attribute]) -> tuple[tuple[int, ...], ...]:
    """(kernel, strides, pads, dilations) of a window over two axes; raises `InferError`."""
    found = {name: ints(properties, name) for name in ("kernel", "strides", "pads", "dilations")}
    for name, values in found.items():
        count, least = (4, 0) if name == "pads" else (2, 1)
        if len(values) != count or min(values) < least:
            raise ShapeError(f"{name} are {count} numbers of {least} or more (found {list(values)})")
    return tuple(found.values())


def window_extents(size: Sequence[int], properties: Mapping[str, Attribute]) -> list[int]:
    """Extents of the result of a window that slides over axes of `size`."""
    kernel, strides, pads, dilations = window_properties(properties)
    result = list[int]()
    for i in range(2):
        room = size[i] + pads[i] + pads[i + 2] - dilations[i] * (kernel[i] - 1) - 1
        if room < 0:
            raise ShapeError(f"the window fits into the padded operand (found {kernel[i]} taps over {size[i]})")
        result.append(room // strides[i] + 1)
    return result


def window_axes(properties: Mapping[str, Attribute], rows: tuple[int, int], columns: tuple[int, int]) -> IndexMap:
    """Index of the two axes that a window slides over; `rows` and `columns` are (output dimension, tap dimension)."""
    _, strides, pads, dilations = window_properties(properties)
    return tuple(
        Axis(((out, strides[i]), (tap, dilations[i])), -pads[i]) for i, (out, tap) in enumerate((rows, columns))
    )


def _check_image(x: Tensor) -> tuple[int, ...]:
    if x.get_num_dims() != 4:
        raise ShapeError(f"the operand is [N, H, W, C] (found rank {x.get_num_dims()})")
    return x.get_shape()


@irdl_op_definition
class Conv2DOp(Convolution):
    """The convolution of x [N, H, W, C] with a packed weight [K, O], K = (c₁, kh, kw, c₀): see `pack_conv_weight`.

    `channels` is C; positions of K beyond it hold zeros.
    """

    name = "graph.conv2d"
    EXAMPLE: ClassVar[str] = (
        "%2 = graph.conv2d %0, %1"
        " {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], channels = 3}"
        " : (tensor<1x8x8x3xf32>, tensor<36x5xf32>) -> tensor<1x8x8x5xf32>"
    )

    channels = prop_def(IntegerAttr)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        n, *size, channels = _check_image(operands[0])
        if channels != integer(properties, "channels"):
            raise ShapeError(f"channels is the last extent of x (found {integer(properties, 'channels')}, {channels})")
        extents, weight = window_extents(size, properties), operands[1].get_shape()
        depth = packed_depth(channels, math.prod(ints(properties, "kernel")))
        if len(weight) != 2 or weight[0] != depth:
            raise ShapeError(f"the packed weight is [{depth}, outputs] (found {list(weight)})")
        return [TensorType(check_contraction(operands, weight[1]), (n, *extents, weight[1]))]

    def loops(self) -> LoopNest:
        out, (kh, kw) = shape(self.result), ints(self.properties, "kernel")
        c0 = inner_channels(shape(self.x)[3])
        c1 = ceil_div(shape(self.x)[3], c0)
        x_map = (axis(0), *window_axes(self.properties, (1, 5), (2, 6)), Axis(((4, c0), (7, 1))))
        depth = Axis(((4, kh * kw * c0), (5, kw * c0), (6, c0), (7, 1)))
        bias = () if self.bias is None else ((axis(3),),)
        output = (axis(0), axis(1), axis(2), axis(3))
        return LoopNest((*out, c1, kh, kw, c0), (x_map, (depth, axis(3)), *bias), output, MultiplyAdd())

    def contribution(self, x: Array, weight: Array, tap: int) -> Array:
        channels, taps = x.shape[3], math.prod(ints(self.properties, "kernel"))
        c0 = inner_channels(channels)
        whole = weight.reshape(-1, taps, c0, weight.shape[1])[:, tap].reshape(-1, weight.shape[1])
        return x @ whole[:channels]


@irdl_op_definition
class GroupConv2DOp(Convolution):
    """Convolutions of x [N, H, W, G, C] by group: each has a packed weight of its own, together [G, K, O/G].

    The result is [N, H, W, O], groups one after the other.
    """

    name = "graph.group_conv2d"
    EXAMPLE: ClassVar[str] = (
        "%2 = graph.group_conv2d %0, %1 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]}"
        " : (tensor<1x8x8x2x3xf32>, tensor<2x36x5xf32>) -> tensor<1x8x8x10xf32>"
    )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        if operands[0].get_num_dims() != 5:
            raise ShapeError(f"the operand is [N, H, W, G, C] (found rank {operands[0].get_num_dims()})")
        n, *size, groups, channels = operands[0].get_shape()
        extents, weight = window_extents(size, properties), operands[1].get_shape()
        depth = packed_depth(channels, math.prod(ints(properties, "kernel")))
        if len(weight) != 3 or weight[:2] != (groups, depth):
            raise ShapeError(f"the packed weight is [{groups}, {depth}, outputs] (found {list(weight)})")
        outputs = groups * weight[2]
        return [TensorType(check_contraction(operands, outputs), (n, *extents, outputs))]

    def loops(self) -> LoopNest:
        """Dimensions (n, oh, ow, g, o, c₁, kh, kw, c₀)."""
        (n, height, width, _), (kh, kw) = shape(self.result), ints(self.properties, "kernel")
        groups, channels = shape(self.x)[3:]
        outputs, c0 = shape(self.weight)[2], inner_channels(channels)
        x_map = (axis(0), *window_axes(self.properties, (1, 6), (2, 7)), axis(3), Axis(((5, c0), (8, 1))))
        depth = Axis(((5, kh * kw * c0), (6, kw * c0), (7, c0), (8, 1)))
        column = Axis(((3, outputs), (4, 1)))
        bias = () if self.bias is None else ((column,),)
        bounds = (n, height, width, groups, outputs, ceil_div(channels, c0), kh, kw, c0)
        output = (axis(0), axis(1), axis(2), column)
        return LoopNest(bounds, (x_map, (axis(3), depth, axis(4)), *bias), output, MultiplyAdd())

    def contribution(self, x: Array, weight: Array, tap: int) -> Array:
        channels, taps = x.shape[4], math.prod(ints(self.properties, "kernel"))
        c0 = inner_channels(channels)
        whole = weight.reshape(len(weight), -1, taps, c0, weight.shape[2])[:, :, tap]
        whole = whole.reshape(len(weight), -1, weight.shape[2])[:, :channels]
        return np.einsum("nhwgc,gco->nhwgo", x, whole).reshape(*x.shape[:3], -1)


def packed_depth(channels: int, taps: int) -> int:
    """K of a packed weight."""
    c0 = inner_channels(channels)
    return ceil_div(channels, c0) * c0 * taps


@irdl_op_definition
class Depthwise2DOp(Convolution):
    """Each channel of x [N, H, W, C] convolved with taps of its own.

    The weight is packed, [⌈C/16⌉, taps, 16]: see `pack_depthwise_weight`.
    """

    name = "graph.depthwise2d"
    EXAMPLE: ClassVar[str] = (
        "%2 = graph.depthwise2d %0, %1 {kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1]}"
        " : (tensor<1x8x8x20xf32>, tensor<2x9x16xf32>) -> tensor<1x4x4x20xf32>"
    )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        n, *size, channels = _check_image(operands[0])
        extents, weight = window_extents(size, properties), operands[1].get_shape()
        wanted = (ceil_div(channels, LANES), math.prod(ints(properties, "kernel")), LANES)
        if weight != wanted:
            raise ShapeError(f"the packed weight is {list(wanted)} (found {list(weight)})")
        return [TensorType(check_contraction(operands, channels), (n, *extents, channels))]

    def loops(self) -> LoopNest:
        """Dimensions (n, oh, ow, c₁, c₀, kh, kw); what lies beyond the last channel of the result is not written."""
        (n, height, width, channels), (kh, kw) = shape(self.result), ints(self.properties, "kernel")
        channel = Axis(((3, LANES), (4, 1)))
        x_map = (axis(0), *window_axes(self.properties, (1, 5), (2, 6)), channel)
        w_map = (axis(3), Axis(((5, kw), (6, 1))), axis(4))
        bias = () if self.bias is None else ((channel,),)
        bounds = (n, height, width, ceil_div(channels, LANES), LANES, kh, kw)
        output = (axis(0), axis(1), axis(2), channel)
        return LoopNest(bounds, (x_map, w_map, *bias), output, MultiplyAdd(depthwise=True))

    def contribution(self, x: Array, weight: Array, tap: int) -> Array:
        return x * weight[:, tap].reshape(-1)[: x.shape[3]]


def pack_conv_weight(emit: Emit, weight: SSAValue) -> SSAValue:
    """[O, C, kh, kw] as the [K, O] of `conv2d`: padded to whole c₀, then (c₁, kh, kw, c₀, O)."""
    outputs, channels, kh, kw = shape(weight)
    c0 = inner_channels(channels)
    c1 = ceil_div(channels, c0)
    weight = pad_axis(emit, weight, 1, c1 * c0)
    weight = emit.keep(ReshapeOp, weight, shape=[outputs, c1, c0, kh, kw])
    weight = emit.keep(TransposeOp, weight, perm=[1, 3, 4, 2, 0])
    return emit.keep(ReshapeOp, weight, shape=[c1 * kh * kw * c0, outputs])


def pack_depthwise_weight(emit: Emit, weight: SSAValue) -> SSAValue:
    """[C, 1, kh, kw] as the [C₁, taps, 16] of `depthwise2d`."""
    channels, _, kh, kw = shape(weight)
    c1 = ceil_div(channels, LANES)
    weight = pad_axis(emit, weight, 0, c1 * LANES)
    weight = emit.keep(ReshapeOp, weight, shape=[c1, LANES, kh * kw])
    return emit.keep(TransposeOp, weight, perm=[0, 2, 1])


def pad_axis(emit: Emit, value: SSAValue, place: int, size: int) -> SSAValue:
    """`value` with zeros after its elements along an axis, up to `size`."""
    extents = shape(value)
    if extents[place] == size:
        return value
    after = [size - extents[place] if i == place else 0 for i in range(len(extents))]
    return emit.keep(PadOp, value, before=[0] * len(extents), after=after)
