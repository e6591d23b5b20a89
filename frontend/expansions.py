"""ONNX operators that are no op of the dialect but a few of them, or none."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from xdsl.ir import SSAValue

from ..dialects.graph.constants import NUMPY
from ..dialects.graph.op import InferError, ShapeError, element
from ..dialects.graph.views import ReshapeOp, normal_axis
from .attention import attention, rotary_embedding
from .einsum import einsum
from .elementwise import ELEMENTWISE
from .indexed import INDEXED
from .integer_products import conv_integer, matmul_integer
from .losses import negative_log_likelihood, softmax_cross_entropy
from .matrices import det
from .movement import MOVEMENT
from .ngrams import tf_idf
from .node import Node, Value, size_of
from .quantization import (
    dequantize_linear,
    dynamic_quantize_linear,
    qlinear_conv,
    qlinear_matmul,
    quantize_linear,
)
from .reductions import REDUCTIONS, batch_norm, group_norm, hardmax, layer_norm, simplified_layer_norm
from .regions import roi_align
from .resizing import resize
from .sampling import deform_conv, max_pool
from .sequences import SEQUENCES
from .spectral import dft, stft
from .stateful import causal_conv, linear_attention

Expansion = Callable[[Node], Sequence[Value]]


def identity(node: Node) -> Sequence[Value]:
    """The input itself."""
    return [node.given(0)]


def dropout(node: Node) -> Sequence[Value]:
    """That of inference drops nothing: the input, and a mask that is true."""
    training = node.known(2) if len(node.inputs) > 2 else None
    ratio = node.known(1) if len(node.inputs) > 1 else None
    if training is not None and training.any() and (ratio is None or ratio.any()):
        raise InferError("dropout is that of inference (found training_mode = true)")
    x = node.given(0)
    kind = np.bool_ if node.opset >= 10 else NUMPY[element(x)] if isinstance(x, SSAValue) else x.dtype
    return [x, np.ones(size_of(x), kind)]


def eye_like(node: Node) -> Sequence[Value]:
    """Ones on a diagonal of a matrix of zeros; of the operand only the shape matters."""
    x, kind = node.given(0), node.attributes.get("dtype", 0)
    if len(size_of(x)) != 2:
        raise InferError(f"EyeLike is of a matrix (found rank {len(size_of(x))})")
    like = NUMPY[element(x)] if isinstance(x, SSAValue) else x.dtype
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind) if kind else like
    return [np.eye(*size_of(x), k=node.attributes.get("k", 0), dtype=dtype)]


def reshape(node: Node, target: Sequence[int]) -> Sequence[Value]:
    """The first input under another shape."""
    x = node.operand(0)
    return [x if size_of(x) == tuple(target) else node.emit(ReshapeOp, x, shape=target)]


def flatten(node: Node) -> Sequence[Value]:
    """A matrix: the axes before `axis`, and the others."""
    size = size_of(node.given(0))
    axis = node.attributes.get("axis", 1)
    place = axis + len(size) if axis < 0 else axis
    return reshape(node, [math.prod(size[:place]), math.prod(size[place:])])


def _axes(node: Node) -> list[int] | None:
    """An attribute before opset 13, an input from then on."""
    if node.opset < 13:
        return node.attributes.get("axes")
    given = node.known(1)
    return None if given is None else given.reshape(-1).tolist()


def squeeze(node: Node) -> Sequence[Value]:
    """Axes of extent 1 leave."""
    size, axes = size_of(node.given(0)), _axes(node)
    if axes is None:
        return reshape(node, [n for n in size if n != 1])
    gone = {normal_axis(axis, len(size)) for axis in axes}
    wide = [size[axis] for axis in gone if size[axis] != 1]
    if wide:
        raise ShapeError(f"an axis that leaves has extent 1 (found {wide[0]})")
    return reshape(node, [n for axis, n in enumerate(size) if axis not in gone])


def unsqueeze(node: Node) -> Sequence[Value]:
    """Axes of extent 1 come in; they are counted in the result."""
    size, axes = list(size_of(node.given(0))), _axes(node)
    if axes is None:
        raise InferError("axes are given (found none)", broken=True)
    rank = len(size) + len(axes)
    for axis in sorted(normal_axis(axis, rank) for axis in axes):
        size.insert(axis, 1)
    return reshape(node, size)


EXPANSIONS: Mapping[str, Expansion] = {
    **REDUCTIONS,
    **MOVEMENT,
    **ELEMENTWISE,
    **INDEXED,
    **SEQUENCES,
    "Attention": attention,
    "BatchNormalization": batch_norm,
    "CausalConvWithState": causal_conv,
    "ConvInteger": conv_integer,
    "DFT": dft,
    "DeformConv": deform_conv,
    "Det": det,
    "DequantizeLinear": dequantize_linear,
    "Dropout": dropout,
    "DynamicQuantizeLinear": dynamic_quantize_linear,
    "Einsum": einsum,
    "EyeLike": eye_like,
    "Flatten": flatten,
    "GroupNormalization": group_norm,
    "Hardmax": hardmax,
    "Identity": identity,
    "LayerNormalization": layer_norm,
    "LinearAttention": linear_attention,
    "MatMulInteger": matmul_integer,
    "MaxPool": max_pool,
    "NegativeLogLikelihoodLoss": negative_log_likelihood,
    "QLinearConv": qlinear_conv,
    "QLinearMatMul": qlinear_matmul,
    "QuantizeLinear": quantize_linear,
    "Resize": resize,
    "RoiAlign": roi_align,
    "RotaryEmbedding": rotary_embedding,
    "STFT": stft,
    "SimplifiedLayerNormalization": simplified_layer_norm,
    "SoftmaxCrossEntropyLoss": softmax_cross_entropy,
    "Squeeze": squeeze,
    "TfIdfVectorizer": tf_idf,
    "Unsqueeze": unsqueeze,
    "Upsample": resize,
}
"""Operators of the domain ai.onnx by name; they come before the operators of the dialect."""
