"""Pooling: a channels-last window as machines see it, and ONNX's forms, which decompose into it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def
from xdsl.pattern_rewriter import PatternRewriter

from ..loops import LoopNest, Window, axis
from .contract import window_axes, window_extents
from .conv import from_channels_last, normal_window, to_channels_last, two_axes, window_from_onnx
from .emit import Emit
from .op import FLOATS, Array, GraphOp, InferError, Onnx, Tensor, shape
from .properties import Properties, attribute, attributes, flag, ints, text


def _check_float(x: Tensor) -> None:
    if x.element_type not in FLOATS:
        raise InferError(f"the operand holds floats (found {x.element_type})")


@irdl_op_definition
class Window2DOp(GraphOp):
    """`mean` or `max` over a window that slides over the two middle axes of x [N, H, W, C].

    `mean` divides by the taps that lie inside the operand, or by all of them with `count_include_pad`.
    """

    name = "graph.window2d"
    EXAMPLE: ClassVar[str] = (
        '%1 = graph.window2d %0 {fn = "max",'
        " kernel = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1]}"
        " : (tensor<1x8x8x3xf32>) -> tensor<1x4x4x3xf32>"
    )

    x = operand_def(TensorType)
    fn = prop_def(StringAttr)
    kernel = prop_def(DenseArrayBase)
    strides = prop_def(DenseArrayBase)
    pads = prop_def(DenseArrayBase)
    dilations = prop_def(DenseArrayBase)
    count_include_pad = opt_prop_def(BoolAttr)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        (x,) = operands
        if x.get_num_dims() != 4:
            raise InferError(f"the operand is [N, H, W, C] (found rank {x.get_num_dims()})")
        if text(properties, "fn") not in ("mean", "max"):
            raise InferError(f"fn is mean or max (found {text(properties, 'fn')!r})")
        _check_float(x)
        n, *size, channels = x.get_shape()
        return [TensorType(x.element_type, (n, *window_extents(size, properties), channels))]

    def reference(self, x: Array) -> Array:
        fn = text(self.properties, "fn")
        fill = 0.0 if fn == "mean" else -np.inf
        taps = _taps(x, self.properties, shape(self.result), fill)
        if fn == "max":
            return np.max(taps, axis=0)
        inside = _taps(np.ones_like(x), self.properties, shape(self.result), 0.0)
        count = len(taps) if flag(self.properties, "count_include_pad") else np.sum(inside, axis=0)
        return np.sum(taps, axis=0) / count

    def loops(self) -> LoopNest:
        """Dimensions (n, oh, ow, c, kh, kw)."""
        x_map = (axis(0), *window_axes(self.properties, (1, 4), (2, 5)), axis(3))
        kernel = Window(text(self.properties, "fn"), flag(self.properties, "count_include_pad"))
        bounds = (*shape(self.result), *ints(self.properties, "kernel"))
        return LoopNest(bounds, (x_map,), tuple(axis(dim) for dim in range(4)), kernel)


def _taps(x: Array, properties: Properties, out: Sequence[int], fill: float) -> list[Array]:
    """What each tap of a channels-last window reads, for `reference`."""
    kernel, strides, pads, dilations = (ints(properties, n) for n in ("kernel", "strides", "pads", "dilations"))
    padded = np.pad(x, ((0, 0), (pads[0], pads[2]), (pads[1], pads[3]), (0, 0)), constant_values=fill)
    found = list[Array]()
    for tap in range(math.prod(kernel)):
        h, w = tap // kernel[1] * dilations[0], tap % kernel[1] * dilations[1]
        rows = padded[:, h : h + (out[1] - 1) * strides[0] + 1 : strides[0]]
        found.append(rows[:, :, w : w + (out[2] - 1) * strides[1] + 1 : strides[1]])
    return found


class Pool(GraphOp):
    """ONNX's pooling over the axes after the second, one or two of them."""

    FN: ClassVar[str] = ""

    x = operand_def(TensorType)
    kernel = prop_def(DenseArrayBase)
    strides = prop_def(DenseArrayBase)
    pads = prop_def(DenseArrayBase)
    dilations = prop_def(DenseArrayBase)
    result = result_def(TensorType)

    @classmethod
    def normalize(cls, operands: Sequence[Tensor], properties: Properties) -> Properties:
        """With `ceil_mode`, pads at the end that reach as far as the last window."""
        size = operands[0].get_shape()[2:]
        window = normal_window(size, ints(properties, "kernel"), properties)
        if flag(properties, "ceil_mode"):
            padding = _ceil_pads(size, window)
            if flag(properties, "count_include_pad") and padding != ints(window, "pads"):
                raise InferError("the mean counts padding, so windows end inside it (found ceil_mode)")
            window["pads"] = attribute(padding)
        return {**window, **_kept(properties)}

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        (x,) = operands
        if x.get_num_dims() not in (3, 4):
            raise InferError(f"pooling runs over one or two axes (found rank {x.get_num_dims()})")
        _check_float(x)
        n, channels, *size = x.get_shape()
        extents = window_extents((1, *size)[-2:], two_axes(properties))[-len(size) :]
        return [TensorType(x.element_type, (n, channels, *extents))]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        if node.get("storage_order", 0):
            raise InferError("positions are not computed (found storage_order = 1)")
        flags = {n: True if node.get(n) else None for n in ("ceil_mode", "count_include_pad")}
        return [0], window_from_onnx(node) | attributes(**flags)

    def reference(self, x: Array) -> Array:
        window, out = two_axes(self.properties), shape(self.result)
        image = x.reshape(*x.shape[:2], *(1, *x.shape[2:])[-2:]).transpose(0, 2, 3, 1)
        wide = (out[0], *(1, *out[2:])[-2:], out[1])
        taps = np.stack(_taps(image, window, wide, np.nan))
        if flag(self.properties, "count_include_pad"):
            taps = np.nan_to_num(taps, nan=0.0)
        y = np.nanmax(taps, axis=0) if self.FN == "max" else np.nanmean(taps, axis=0)
        return y.transpose(0, 3, 1, 2).reshape(out)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        window = two_axes(self.properties) | _kept(self.properties)
        y = emit(Window2DOp, to_channels_last(emit, self.x), fn=self.FN, **window)
        return [from_channels_last(emit, y, shape(self.result))]


def _kept(properties: Properties) -> dict[str, Attribute]:
    return {"count_include_pad": attribute(True)} if flag(properties, "count_include_pad") else {}


def _ceil_pads(size: Sequence[int], window: Properties) -> tuple[int, ...]:
    """Pads with which rounding down gives the extents that rounding up would; no window starts beyond the operand."""
    kernel, strides, pads, dilations = (ints(window, n) for n in ("kernel", "strides", "pads", "dilations"))
    rank, ends = len(size), list[int]()
    for i in range(rank):
        reach = dilations[i] * (kernel[i] - 1) + 1
        count = -(-(size[i] + pads[i] + pads[rank + i] - reach) // strides[i]) + 1
        if (count - 1) * strides[i] >= size[i] + pads[i]:
            count -= 1
        ends.append(max(pads[rank + i], (count - 1) * strides[i] + reach - size[i] - pads[i]))
    return (*pads[:rank], *ends)


@irdl_op_definition
class MaxPoolOp(Pool):
    """The largest value of each window; padding does not count."""

    name = "graph.max_pool"
    FN: ClassVar[str] = "max"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("MaxPool", 1),)
    EXAMPLE: ClassVar[str] = (
        "%1 = graph.max_pool %0 {kernel = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1]}"
        " : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>"
    )


@irdl_op_definition
class AvgPoolOp(Pool):
    """The mean of each window; padding counts only with `count_include_pad`."""

    name = "graph.avg_pool"
    FN: ClassVar[str] = "mean"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("AveragePool", 1),)
    EXAMPLE: ClassVar[str] = (
        "%1 = graph.avg_pool %0 {kernel = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1]}"
        " : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>"
    )

    count_include_pad = opt_prop_def(BoolAttr)


class GlobalPool(GraphOp):
    """One window over everything after the second axis; those axes stay, with extent 1."""

    FN: ClassVar[str] = ""

    x = operand_def(TensorType)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        (x,) = operands
        if x.get_num_dims() not in (3, 4):
            raise InferError(f"pooling runs over one or two axes (found rank {x.get_num_dims()})")
        _check_float(x)
        return [TensorType(x.element_type, (*x.get_shape()[:2], *[1] * (x.get_num_dims() - 2)))]

    def reference(self, x: Array) -> Array:
        axes = tuple(range(2, x.ndim))
        return x.max(axes, keepdims=True) if self.FN == "max" else x.mean(axes, keepdims=True)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        x = to_channels_last(emit, self.x)
        size = shape(x)[1:3]
        y = emit(Window2DOp, x, fn=self.FN, kernel=size, strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1])
        return [from_channels_last(emit, y, shape(self.result))]


@irdl_op_definition
class GlobalAveragePoolOp(GlobalPool):
    """The mean of each channel."""

    name = "graph.global_average_pool"
    FN: ClassVar[str] = "mean"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("GlobalAveragePool", 1),)
    EXAMPLE: ClassVar[str] = "%1 = graph.global_average_pool %0 : (tensor<1x3x8x8xf32>) -> tensor<1x3x1x1xf32>"


@irdl_op_definition
class GlobalMaxPoolOp(GlobalPool):
    """The largest value of each channel."""

    name = "graph.global_max_pool"
    FN: ClassVar[str] = "max"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("GlobalMaxPool", 1),)
    EXAMPLE: ClassVar[str] = "%1 = graph.global_max_pool %0 : (tensor<1x3x8x8xf32>) -> tensor<1x3x1x1xf32>"
