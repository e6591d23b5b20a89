"""Pooling: a channels-last window as machines see it, and ONNX's forms, which decompose into it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def
from xdsl.pattern_rewriter import PatternRewriter

from ..loops import LoopNest, Window, axis
from .activations import AbsOp, SqrtOp
from .arithmetic import DivOp, MulOp, PowOp
from .contract import window_axes, window_extents
from .elementwise import CastOp
from .emit import Emit
from .op import FLOATS, Array, DtypeError, GraphOp, InferError, Onnx, ShapeError, Tensor, element, f16, i8, shape, u8
from .properties import Properties, attribute, attributes, flag, integer, ints, text
from .reduce import ReduceSumOp
from .views import ReshapeOp
from .windows import Sliding, from_channels_last, normal_window, padded, to_channels_last, window_from_onnx


def _check_float(x: Tensor) -> None:
    if x.element_type not in FLOATS:
        raise DtypeError(f"the operand holds floats (found {x.element_type})")


@irdl_op_definition
class Window2DOp(GraphOp):
    """`mean`, `sum` or `max` over a window that slides over the two middle axes of x [N, H, W, C].

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
            raise ShapeError(f"the operand is [N, H, W, C] (found rank {x.get_num_dims()})")
        if text(properties, "fn") not in ("mean", "sum", "max"):
            raise InferError(f"fn is mean, sum or max (found {text(properties, 'fn')!r})")
        _check_float(x)
        n, *size, channels = x.get_shape()
        return [TensorType(x.element_type, (n, *window_extents(size, properties), channels))]

    def reference(self, x: Array) -> Array:
        fn = text(self.properties, "fn")
        taps = _taps(x, self.properties, shape(self.result), -np.inf if fn == "max" else 0.0)
        if fn != "mean":
            return np.max(taps, axis=0) if fn == "max" else np.sum(taps, axis=0)
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
    """ONNX's pooling over the axes after the second."""

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
        if not flag(properties, "ceil_mode"):
            return {**window, **cls.kept(properties)}
        pads, overhang = _ceil_pads(size, Sliding.of(window, len(size)))
        return {**window, "pads": attribute(pads), **cls.kept(properties, overhang)}

    @classmethod
    def kept(cls, properties: Properties, overhang: Sequence[int] = ()) -> dict[str, Attribute]:
        """What else the op has."""
        return {}

    @classmethod
    def check_type(cls, x: Tensor) -> None:
        """Raises `InferError` for elements that it does not take."""
        _check_float(x)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        (x,) = operands
        if x.get_num_dims() < 3:
            raise ShapeError(f"pooling runs over the axes after the second (found rank {x.get_num_dims()})")
        cls.check_type(x)
        n, channels, *size = x.get_shape()
        return [TensorType(x.element_type, (n, channels, *Sliding.of(properties, len(size)).extents(size)))]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        if node.get("storage_order", 0):
            raise InferError("positions are not computed (found storage_order = 1)")
        flags = {n: True if node.get(n) else None for n in ("ceil_mode", "count_include_pad")}
        return [0], window_from_onnx(node) | attributes(**flags)

    @property
    def window(self) -> Sliding:
        return Sliding.of(self.properties, len(shape(self.x)) - 2)

    def taps(self, x: Array, fill: float, window: Sliding | None = None) -> Array:
        """What each tap reads, stacked, for `reference`."""
        window, out = window or self.window, shape(self.result)[2:]
        x = np.pad(x, [(0, 0), (0, 0), *zip(window.before, window.after, strict=True)], constant_values=fill)
        found = list[Array]()
        for tap in np.ndindex(window.kernel):
            places = zip(tap, window.dilations, out, window.strides, strict=True)
            found.append(x[(..., *(slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in places))])
        return np.stack(found)

    def pooled(self, emit: Emit, x: SSAValue, window: Sliding, include: bool = False) -> SSAValue:
        """The result from x [N, …, C], in the type of the result or of x, if that holds no floats."""
        y = slide(emit, x, window, self.FN, emit.result if emit.result in FLOATS else element(x), include)
        return from_channels_last(emit, y, shape(self.result))


def slide(emit: Emit, x: SSAValue, window: Sliding, fn: str, kind: Attribute, include: bool = False) -> SSAValue:
    """Windows over x [N, …, C], as elements of `kind`. Of more than two axes the last two come first, then one more at
    a time: a mean is one of means."""
    if len(window.kernel) <= 2:
        return _slide(emit, x, window, fn, kind, include)
    n, depth, *size, channels = shape(x)
    images = emit.keep(ReshapeOp, x, shape=[n * depth, *size, channels])
    y = slide(emit, images, window.part(slice(1, None)), fn, kind if fn == "max" else emit.inner, include)
    size = shape(y)[1:-1]
    y = emit.keep(ReshapeOp, y, shape=[n, depth, math.prod(size), channels])
    first = window.part(slice(1))
    down = Sliding(
        kernel=(*first.kernel, 1),
        strides=(*first.strides, 1),
        before=(*first.before, 0),
        after=(*first.after, 0),
        dilations=(*first.dilations, 1),
    )
    y = _slide(emit, y, down, fn, kind, include)
    return emit.keep(ReshapeOp, y, shape=[n, shape(y)[1], *size, channels])


def _slide(emit: Emit, x: SSAValue, window: Sliding, fn: str, kind: Attribute, include: bool) -> SSAValue:
    """`slide` over one axis or two, without taps that read nothing but padding."""
    least = window.trimmed(shape(x)[1 : 1 + len(window.kernel)])
    if not (include and fn == "mean"):
        return emit(Window2DOp, x, element=kind, fn=fn, **least.two_axes())
    if least == window:
        return emit(Window2DOp, x, element=kind, fn=fn, **window.two_axes(), count_include_pad=True)
    sums = emit(Window2DOp, x, element=emit.inner, fn="sum", **least.two_axes())
    return emit(DivOp, sums, emit.constant(float(math.prod(window.kernel))), element=kind)


def _ceil_pads(size: Sequence[int], window: Sliding) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Pads with which rounding down gives the extents that rounding up would, and how much was added to the ends; no
    window starts beyond the operand and the padding before it."""
    ends = list[int]()
    for i, reach in enumerate(window.reach):
        room = size[i] + window.before[i]
        count = -(-(room + window.after[i] - reach) // window.strides[i]) + 1
        if (count - 1) * window.strides[i] >= room:
            count -= 1
        ends.append(max(window.after[i], (count - 1) * window.strides[i] + reach - room))
    return (*window.before, *ends), tuple(e - a for e, a in zip(ends, window.after, strict=True))


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

    @classmethod
    def check_type(cls, x: Tensor) -> None:
        if x.element_type not in (*FLOATS, i8, u8):
            raise DtypeError(f"the operand holds floats or bytes (found {x.element_type})")

    def reference(self, x: Array) -> Array:
        least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        return np.max(self.taps(x, least), axis=0)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit, x = Emit(self, rewriter), to_channels_last(Emit(self, rewriter), self.x)
        if emit.result in FLOATS:
            return [self.pooled(emit, x, self.window)]
        y = self.pooled(emit, emit(CastOp, x, element=f16), self.window)  # f16 holds every byte
        return [emit(CastOp, y)]


@irdl_op_definition
class AvgPoolOp(Pool):
    """The mean of each window; padding counts only with `count_include_pad`.

    The last `overhang` of the padding at each end, which `ceil_mode` added, never counts.
    """

    name = "graph.avg_pool"
    FN: ClassVar[str] = "mean"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("AveragePool", 1),)
    EXAMPLE: ClassVar[str] = (
        "%1 = graph.avg_pool %0 {kernel = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1]}"
        " : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>"
    )

    count_include_pad = opt_prop_def(BoolAttr)
    overhang = opt_prop_def(DenseArrayBase)

    @classmethod
    def kept(cls, properties: Properties, overhang: Sequence[int] = ()) -> dict[str, Attribute]:
        if not flag(properties, "count_include_pad"):
            return {}
        overhang = ints(properties, "overhang", overhang)
        return attributes(count_include_pad=True, overhang=overhang if any(overhang) else None)

    def reference(self, x: Array) -> Array:
        window, rank = self.window, x.ndim - 2
        inside = np.ones_like(x)
        if flag(self.properties, "count_include_pad"):
            beyond = ints(self.properties, "overhang", [0] * rank)
            counted = [a - o for a, o in zip(window.after, beyond, strict=True)]
            inside = np.pad(inside, [(0, 0), (0, 0), *zip(window.before, counted, strict=True)], constant_values=1)
            window = replace(window, before=(0,) * rank, after=beyond)
        count = self.taps(inside, 0.0, window).sum(axis=0)
        return self.taps(x, 0.0).sum(axis=0) / count

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit, window = Emit(self, rewriter), self.window
        x, overhang = to_channels_last(emit, self.x), ints(self.properties, "overhang")
        if not overhang:
            return [self.pooled(emit, x, window, flag(self.properties, "count_include_pad"))]
        # The padding that counts becomes part of the image.
        zero = (0,) * len(overhang)
        counted = [a - o for a, o in zip(window.after, overhang, strict=True)]
        unit = [0] * (len(shape(x)) - 2 - len(overhang))
        x = padded(emit, x, [*window.before, *unit], [*counted, *unit])
        return [self.pooled(emit, x, replace(window, before=zero, after=overhang))]


@irdl_op_definition
class LpPoolOp(Pool):
    """The norm of order `p` of each window: (Σ |x|^p)^(1/p)."""

    name = "graph.lp_pool"
    FN: ClassVar[str] = "sum"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("LpPool", 2),)
    EXAMPLE: ClassVar[str] = (
        "%1 = graph.lp_pool %0 {kernel = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1], p = 2}"
        " : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>"
    )

    p = prop_def(IntegerAttr)

    @classmethod
    def kept(cls, properties: Properties, overhang: Sequence[int] = ()) -> dict[str, Attribute]:
        return attributes(p=integer(properties, "p", 2))

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        operands, properties = super().from_onnx(node, constants, opset)
        return operands, properties | attributes(p=_order(node))

    def reference(self, x: Array) -> Array:
        p = integer(self.properties, "p")
        return np.sum(self.taps(np.abs(x) ** p, 0.0), axis=0) ** (1 / p)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit, p = Emit(self, rewriter), integer(self.properties, "p")
        x = to_channels_last(emit, powers(emit, self.x, p))
        y = slide(emit, x, self.window, self.FN, emit.inner)
        return [from_channels_last(emit, root(emit, y, p), shape(self.result))]


def _order(node: Mapping[str, Any]) -> int:
    """That of a norm. Raises `InferError`."""
    p = int(node.get("p", 2))
    if p == 0:
        raise InferError("the order of a norm is not 0 (found 0)")
    return p


def powers(emit: Emit, x: SSAValue, p: int) -> SSAValue:
    """|x|^p, an inner edge."""
    if p == 2:
        return emit(MulOp, x, x, element=emit.inner)
    x = emit(AbsOp, x, element=emit.inner)
    return x if p == 1 else emit(PowOp, x, emit.constant(float(p)), element=emit.inner)


def root(emit: Emit, x: SSAValue, p: int) -> SSAValue:
    """x^(1/p), to the result's type."""
    if p == 1:
        return emit(CastOp, x)
    return emit(SqrtOp, x) if p == 2 else emit(PowOp, x, emit.constant(1 / p))


class GlobalPool(GraphOp):
    """One window over everything after the second axis; those axes stay, with extent 1."""

    FN: ClassVar[str] = ""

    x = operand_def(TensorType)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        (x,) = operands
        if x.get_num_dims() < 3:
            raise ShapeError(f"pooling runs over the axes after the second (found rank {x.get_num_dims()})")
        _check_float(x)
        return [TensorType(x.element_type, (*x.get_shape()[:2], *[1] * (x.get_num_dims() - 2)))]

    def reference(self, x: Array) -> Array:
        axes = tuple(range(2, x.ndim))
        return x.max(axes, keepdims=True) if self.FN == "max" else x.mean(axes, keepdims=True)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit, (n, channels, *size) = Emit(self, rewriter), shape(self.x)
        x = self.x
        if len(size) > 2:
            x = emit.keep(ReshapeOp, x, shape=[n, channels, math.prod(size[:-1]), size[-1]])
        x = to_channels_last(emit, x)
        kernel = shape(x)[1:3]
        y = emit(Window2DOp, x, fn=self.FN, kernel=kernel, strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1])
        y = from_channels_last(emit, y, (n, channels, 1, 1))
        return [y if len(size) == 2 else emit.keep(ReshapeOp, y, shape=shape(self.result))]


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


@irdl_op_definition
class GlobalLpPoolOp(GlobalPool):
    """The norm of order `p` of each channel."""

    name = "graph.global_lp_pool"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("GlobalLpPool", 2),)
    EXAMPLE: ClassVar[str] = "%1 = graph.global_lp_pool %0 {p = 2} : (tensor<1x3x8x8xf32>) -> tensor<1x3x1x1xf32>"

    p = prop_def(IntegerAttr)

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        return [0], attributes(p=_order(node))

    def reference(self, x: Array) -> Array:
        p = integer(self.properties, "p")
        return np.sum(np.abs(x) ** p, tuple(range(2, x.ndim)), keepdims=True) ** (1 / p)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit, p = Emit(self, rewriter), integer(self.properties, "p")
        axes = range(2, len(shape(self.x)))
        total = emit(ReduceSumOp, powers(emit, self.x, p), element=emit.inner, axes=axes, keepdims=True)
        return [root(emit, total, p)]
