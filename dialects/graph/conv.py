"""Convolution and matrix product as ONNX has them: NCHW, groups, α and β. They decompose into `contract.py`'s."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, FloatAttr, IntegerAttr, StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, prop_def, result_def
from xdsl.pattern_rewriter import PatternRewriter

from .arithmetic import AddOp, MulOp
from .contract import Conv2DOp, Depthwise2DOp, MatMulOp, pack_conv_weight, pack_depthwise_weight, window_extents
from .elementwise import CastOp
from .emit import Emit
from .op import FLOATS, Array, GraphOp, InferError, Onnx, Tensor, broadcast_shapes, element, f32, promote, shape
from .properties import Properties, attribute, attributes, flag, integer, ints, number, text
from .views import ConcatOp, ReshapeOp, SliceOp, TransposeOp


def window_from_onnx(node: Mapping[str, Any]) -> dict[str, Attribute]:
    """Properties of a sliding window; `auto_pad` stays until the operand's shape is known."""
    auto_pad = node.get("auto_pad", "NOTSET")
    return attributes(
        kernel=node.get("kernel_shape"),
        strides=node.get("strides"),
        pads=node.get("pads"),
        dilations=node.get("dilations"),
        auto_pad=None if auto_pad == "NOTSET" else auto_pad,
    )


def normal_window(size: Sequence[int], kernel: Sequence[int], properties: Properties) -> dict[str, Attribute]:
    """Every property of a window over axes of `size`, with ONNX's defaults and `auto_pad` worked out."""
    rank = len(size)
    strides, dilations = ints(properties, "strides", [1] * rank), ints(properties, "dilations", [1] * rank)
    pads, auto_pad = ints(properties, "pads", [0] * (2 * rank)), text(properties, "auto_pad")
    if not len(kernel) == len(strides) == len(dilations) == rank or len(pads) != 2 * rank:
        raise InferError(f"kernel, strides, pads and dilations fit {rank} axes (found {len(kernel)} for the kernel)")
    if auto_pad.startswith("SAME"):
        reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
        whole = [max(0, (-(-s // t) - 1) * t + r - s) for s, t, r in zip(size, strides, reach, strict=True)]
        before = [w // 2 if auto_pad == "SAME_UPPER" else w - w // 2 for w in whole]
        pads = (*before, *(w - b for w, b in zip(whole, before, strict=True)))
    return attributes(kernel=kernel, strides=strides, pads=pads, dilations=dilations)


def two_axes(properties: Properties) -> dict[str, Attribute]:
    """A window over one axis as one over two, the first of extent 1."""
    found = {name: ints(properties, name) for name in ("kernel", "strides", "pads", "dilations")}
    if len(found["kernel"]) == 1:
        begin, end = found["pads"]
        found = {name: (1, *values) for name, values in found.items()} | {"pads": (0, begin, 0, end)}
    return {name: attribute(values) for name, values in found.items()}


def to_channels_last(emit: Emit, x: SSAValue) -> SSAValue:
    """[N, C, H, W], or [N, C, W], as [N, H, W, C]."""
    size = shape(x)
    if len(size) == 3:
        x = emit.keep(ReshapeOp, x, shape=[size[0], size[1], 1, size[2]])
    return emit.keep(TransposeOp, x, perm=[0, 2, 3, 1])


def from_channels_last(emit: Emit, x: SSAValue, size: Sequence[int]) -> SSAValue:
    """[N, H, W, C] as a tensor of `size`, [N, C, H, W] or [N, C, W]."""
    x = emit.keep(TransposeOp, x, perm=[0, 3, 1, 2])
    return x if len(size) == 4 else emit.keep(ReshapeOp, x, shape=size)


def as_bias(emit: Emit, bias: SSAValue | None) -> SSAValue | None:
    """A bias is f32."""
    return bias if bias is None or element(bias) == f32 else emit(CastOp, bias, element=f32)


@irdl_op_definition
class ConvOp(GraphOp):
    """ONNX's convolution over one or two axes: x [N, C, H, W], weight [O, C/groups, kh, kw], bias [O]."""

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
        if ranks not in ([3, 3], [4, 4]):
            raise InferError(f"a convolution runs over one or two axes (found operands of rank {ranks[0]}, {ranks[1]})")

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        cls._check_ranks(operands)
        x, weight, groups = operands[0].get_shape(), operands[1].get_shape(), integer(properties, "groups")
        if groups < 1 or x[1] != weight[1] * groups or weight[0] % groups:
            raise InferError(
                f"x has groups·{weight[1]} channels, and groups divide the outputs"
                f" (found {x[1]} channels, {weight[0]} outputs, {groups} groups)"
            )
        if ints(properties, "kernel") != weight[2:]:
            raise InferError(f"the kernel has the weight's extents (found {ints(properties, 'kernel')}, {weight[2:]})")
        if len(operands) > 2 and operands[2].get_shape() != weight[:1]:
            raise InferError(f"the bias has {weight[0]} elements (found {operands[2]})")
        if not all(operand.element_type in FLOATS for operand in operands):
            raise InferError(f"operands are floats (found {', '.join(str(o.element_type) for o in operands)})")
        size = (1, *x[2:])[-2:]
        extents = window_extents(size, two_axes(properties))[-len(x[2:]) :]
        return [TensorType(promote(operands[:2]), (x[0], weight[0], *extents))]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        groups = {"groups": attribute(node.get("group", 1))}
        return list(range(len(constants))), window_from_onnx(node) | groups

    def reference(self, x: Array, weight: Array, bias: Array | None = None) -> Array:
        """Sums over taps, group by group."""
        window, groups = two_axes(self.properties), integer(self.properties, "groups")
        (kh, kw), strides, pads, dilations = (ints(window, n) for n in ("kernel", "strides", "pads", "dilations"))
        out, rank = shape(self.result), x.ndim
        x = x.reshape(*x.shape[:2], *(1, *x.shape[2:])[-2:])
        weight = weight.reshape(*weight.shape[:2], kh, kw)
        x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
        height, width = (1, *out[2:])[-2:]
        x = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
        weight = weight.reshape(groups, -1, *weight.shape[1:])
        total = np.zeros((out[0], groups, out[1] // groups, height, width))
        for i in range(kh):
            for j in range(kw):
                rows = x[:, :, :, i * dilations[0] :][:, :, :, : (height - 1) * strides[0] + 1 : strides[0]]
                taps = rows[..., j * dilations[1] :][..., : (width - 1) * strides[1] + 1 : strides[1]]
                total += np.einsum("ngchw,goc->ngohw", taps, weight[..., i, j], optimize=True)
        total = total.reshape(out if rank == 4 else (*out[:2], 1, out[2]))
        total = total if bias is None else total + bias.reshape(-1, 1, 1)
        return total.reshape(out)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        x, bias = to_channels_last(emit, self.x), as_bias(emit, self.bias)
        outputs, channels, *kernel = shape(self.weight)
        weight: SSAValue = self.weight
        if len(kernel) == 1:
            weight = emit.keep(ReshapeOp, weight, shape=[outputs, channels, 1, kernel[0]])
        window, groups = two_axes(self.properties), integer(self.properties, "groups")
        if groups == 1:
            y = _whole(emit, x, weight, bias, window)
        elif channels == 1:
            y = _depthwise(emit, x, weight, bias, window)
        else:
            y = _grouped(emit, x, weight, bias, window, groups)
        return [from_channels_last(emit, y, shape(self.result))]


Window = dict[str, Attribute]


def _whole(emit: Emit, x: SSAValue, weight: SSAValue, bias: SSAValue | None, window: Window) -> SSAValue:
    return emit(Conv2DOp, x, pack_conv_weight(emit, weight), bias, channels=shape(x)[3], **window)


def _depthwise(emit: Emit, x: SSAValue, weight: SSAValue, bias: SSAValue | None, window: Window) -> SSAValue:
    """One input channel per group; with m outputs per group, m depthwise convolutions interleaved."""
    channels, outputs = shape(x)[3], shape(weight)[0]
    times = outputs // channels
    if times == 1:
        return emit(Depthwise2DOp, x, pack_depthwise_weight(emit, weight), bias, **window)
    parts = list[SSAValue]()
    for i in range(times):
        taken = _every(emit, weight, i, times)
        shift = None if bias is None else _every(emit, bias, i, times)
        y = emit(Depthwise2DOp, x, pack_depthwise_weight(emit, taken), shift, **window)
        parts.append(emit(ReshapeOp, y, shape=[*shape(y), 1]))
    joined = emit(ConcatOp, *parts, axis=4)
    return emit(ReshapeOp, joined, shape=[*shape(joined)[:3], outputs])


def _grouped(emit: Emit, x: SSAValue, weight: SSAValue, bias: SSAValue | None, window: Window, groups: int) -> SSAValue:
    """A convolution of each group, joined along the channels."""
    channels, outputs = shape(x)[3] // groups, shape(weight)[0] // groups
    parts = [
        _whole(
            emit,
            _part(emit, x, 3, i * channels, channels),
            _part(emit, weight, 0, i * outputs, outputs),
            None if bias is None else _part(emit, bias, 0, i * outputs, outputs),
            window,
        )
        for i in range(groups)
    ]
    return emit(ConcatOp, *parts, axis=3)


def _part(emit: Emit, value: SSAValue, place: int, start: int, size: int) -> SSAValue:
    """`size` elements from `start` along an axis."""
    return emit.keep(SliceOp, value, starts=[start], ends=[start + size], axes=[place])


def _every(emit: Emit, value: SSAValue, start: int, step: int) -> SSAValue:
    """Each `step`th element of the first axis."""
    return emit.keep(SliceOp, value, starts=[start], ends=[shape(value)[0]], axes=[0], steps=[step])


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
            raise InferError(f"a and b are matrices (found rank {len(a)} and {len(b)})")
        m, k_a = a[::-1] if flag(properties, "trans_a") else a
        k_b, n = b[::-1] if flag(properties, "trans_b") else b
        if k_a != k_b:
            raise InferError(f"the contracted axes agree (found {k_a} and {k_b})")
        if len(operands) > 2 and broadcast_shapes(operands[2].get_shape(), (m, n)) != (m, n):
            raise InferError(f"c broadcasts to [{m}, {n}] (found {operands[2]})")
        if not all(operand.element_type in FLOATS for operand in operands):
            raise InferError(f"operands are floats (found {', '.join(str(o.element_type) for o in operands)})")
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
