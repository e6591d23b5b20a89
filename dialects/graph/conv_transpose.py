"""ONNX's transposed convolution: a convolution of pixels that then spread, or of an image with gaps."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def
from xdsl.pattern_rewriter import PatternRewriter

from .contract import Conv2DOp, pack_conv_weight
from .conv import as_bias, from_channels_last, to_channels_last
from .emit import Emit
from .op import FLOATS, Array, GraphOp, InferError, Onnx, Tensor, promote, shape
from .properties import Properties, attributes, ints
from .views import ExpandOp, PadOp, ReshapeOp, SliceOp, TransposeOp


@irdl_op_definition
class ConvTransposeOp(GraphOp):
    """Each element of x [N, C, H, W] adds itself times the weight [C, O, kh, kw] to a window of the result.

    Windows start `strides` apart; `pads` are cut off the result. A bias [O] is added.
    """

    name = "graph.conv_transpose"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("ConvTranspose", 1),)
    EXAMPLE: ClassVar[str] = (
        "%2 = graph.conv_transpose %0, %1 {strides = [2, 2], pads = [1, 1, 0, 0]}"
        " : (tensor<1x3x4x4xf32>, tensor<3x5x3x3xf32>) -> tensor<1x5x8x8xf32>"
    )

    x = operand_def(TensorType)
    weight = operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    strides = prop_def(DenseArrayBase)
    pads = prop_def(DenseArrayBase)
    result = result_def(TensorType)

    @classmethod
    def normalize(cls, operands: Sequence[Tensor], properties: Properties) -> Properties:
        """Output padding is cut less at the end; a stated kernel is the weight's."""
        pads = list(ints(properties, "pads", [0] * 4))
        for i, extra in enumerate(ints(properties, "output_padding", [0, 0])):
            pads[2 + i] -= extra
        return attributes(strides=ints(properties, "strides", [1, 1]), pads=pads)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        x, weight = operands[0].get_shape(), operands[1].get_shape()
        strides, pads = ints(properties, "strides"), ints(properties, "pads")
        if not len(x) == len(weight) == len(pads) == 4 or len(strides) != 2 or x[1] != weight[0]:
            raise InferError(f"x is [N, C, H, W] and the weight [C, O, kh, kw] (found {list(x)}, {list(weight)})")
        if min(pads[:2]) < 0 or min(strides) < 1:
            raise InferError(f"strides are 1 or more and pads 0 or more (found {list(strides)}, {list(pads)})")
        if not all(operand.element_type in FLOATS for operand in operands):
            raise InferError(f"operands are floats (found {', '.join(str(o.element_type) for o in operands)})")
        if len(operands) > 2 and operands[2].get_shape() != weight[1:2]:
            raise InferError(f"the bias has {weight[1]} elements (found {operands[2]})")
        size = [(x[2 + i] - 1) * strides[i] + weight[2 + i] - pads[i] - pads[2 + i] for i in range(2)]
        if min(size) < 1:
            raise InferError(f"pads leave something of the result (found {size})")
        return [TensorType(promote(operands[:2]), (x[0], weight[1], *size))]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        if node.get("group", 1) != 1 or any(d != 1 for d in node.get("dilations", ())):
            raise InferError("a transposed convolution has one group and no dilation (found others)")
        if node.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID") or "output_shape" in node:
            raise InferError("pads are given as numbers (found auto_pad or output_shape)")
        given = {name: node.get(name) for name in ("strides", "pads", "output_padding")}
        return list(range(len(constants))), attributes(**given)

    def reference(self, x: Array, weight: Array, bias: Array | None = None) -> Array:
        (_, _, height, width), (_, outputs, kh, kw) = x.shape, weight.shape
        (sh, sw), (top, left, _, _) = ints(self.properties, "strides"), ints(self.properties, "pads")
        rows, columns = shape(self.result)[2:]
        wide = np.zeros((x.shape[0], outputs, max(top + rows, height * sh + kh), max(left + columns, width * sw + kw)))
        for i in range(kh):
            for j in range(kw):
                part = np.einsum("nchw,co->nohw", x, weight[:, :, i, j])
                wide[:, :, i : i + height * sh : sh, j : j + width * sw : sw] += part
        y = wide[:, :, top : top + rows, left : left + columns]
        return y if bias is None else y + bias.reshape(-1, 1, 1)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        x, bias = to_channels_last(emit, self.x), as_bias(emit, self.bias)
        apart = shape(self.weight)[2:] == ints(self.properties, "strides") and not any(ints(self.properties, "pads"))
        y = self._spread(emit, x, bias) if apart else self._gapped(emit, x, bias)
        return [from_channels_last(emit, y, shape(self.result))]

    def _spread(self, emit: Emit, x: SSAValue, bias: SSAValue | None) -> SSAValue:
        """Windows that do not overlap: a convolution of single pixels with O·kh·kw outputs, which then spread."""
        (n, height, width, _), (channels, outputs, kh, kw) = shape(x), shape(self.weight)
        weight = emit.keep(TransposeOp, self.weight, perm=[2, 3, 1, 0])
        weight = emit.keep(ReshapeOp, weight, shape=[kh * kw * outputs, channels, 1, 1])
        if bias is not None:
            bias = emit.keep(ExpandOp, bias, shape=[kh * kw, outputs])
            bias = emit.keep(ReshapeOp, bias, shape=[kh * kw * outputs])
        y = _convolution(emit, x, weight, bias, [0, 0, 0, 0])
        y = emit(ReshapeOp, y, shape=[n, height, width, kh, kw, outputs])
        y = emit(TransposeOp, y, perm=[0, 1, 3, 2, 4, 5])
        return emit(ReshapeOp, y, shape=[n, height * kh, width * kw, outputs])

    def _gapped(self, emit: Emit, x: SSAValue, bias: SSAValue | None) -> SSAValue:
        """A convolution of x with zeros between its pixels and the weight turned by half a circle."""
        (n, height, width, channels), (_, _, kh, kw) = shape(x), shape(self.weight)
        (sh, sw), pads = ints(self.properties, "strides"), ints(self.properties, "pads")
        x = emit.keep(ReshapeOp, x, shape=[n, height, 1, width, 1, channels])
        x = emit.keep(PadOp, x, before=[0] * 6, after=[0, 0, sh - 1, 0, sw - 1, 0])
        x = emit.keep(ReshapeOp, x, shape=[n, height * sh, width * sw, channels])
        # The gap after the last pixel is part of the border, which is kernel − 1 wide, less what pads cut off.
        border = [kh - 1 - pads[0], kw - 1 - pads[1], kh - pads[2] - sh, kw - pads[3] - sw]
        x = _cropped(emit, x, [min(0, b) for b in border])
        weight = emit.keep(SliceOp, self.weight, starts=[-1, -1], ends=[-(2**62)] * 2, axes=[2, 3], steps=[-1, -1])
        weight = emit.keep(TransposeOp, weight, perm=[1, 0, 2, 3])
        return _convolution(emit, x, weight, bias, [max(0, b) for b in border])


def _convolution(emit: Emit, x: SSAValue, weight: SSAValue, bias: SSAValue | None, pads: Sequence[int]) -> SSAValue:
    """A convolution with an OIHW weight."""
    return emit(
        Conv2DOp,
        x,
        pack_conv_weight(emit, weight),
        bias,
        kernel=shape(weight)[2:],
        strides=[1, 1],
        pads=pads,
        dilations=[1, 1],
        channels=shape(x)[3],
    )


def _cropped(emit: Emit, x: SSAValue, border: Sequence[int]) -> SSAValue:
    """x without the −border elements at the top, left, bottom and right."""
    if not any(border):
        return x
    height, width = shape(x)[1:3]
    starts, ends = [-border[0], -border[1]], [height + border[2], width + border[3]]
    return emit.keep(SliceOp, x, starts=starts, ends=ends, axes=[1, 2])
