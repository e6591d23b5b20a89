"""Operators of the domain com.microsoft that onnxruntime's optimiser makes of several: products, activations,
normalisations, convolutions. What an operator leaves between its parts is f32.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ..dialects.graph.arithmetic import AddOp, MulOp, SubOp
from ..dialects.graph.composites import SwishOp
from ..dialects.graph.contract import MatMulOp
from ..dialects.graph.elementwise import CastOp, ClipOp
from ..dialects.graph.gather import GatherOp
from ..dialects.graph.op import FLOATS, InferError, element, f32, i32, shape
from ..dialects.graph.reduce import ReduceSumOp
from ..dialects.graph.views import ReshapeOp, SliceOp, TransposeOp, normal_axis
from .node import Node, Value, size_of
from .operators import apply, apply_all


def number(node: Node, value: float) -> SSAValue:
    """An f32 constant."""
    return node.builder.constant(np.array(value, np.float32))


def sum_of(node: Node, *values: Value | None) -> SSAValue:
    """The sum of what is there, from the left, an f32 edge."""
    total, *others = (node.materialize(value) for value in values if value is not None)
    for other in others:
        total = node.emit(AddOp, total, other, element=f32)
    return total


def narrow(node: Node, value: SSAValue, like: SSAValue) -> SSAValue:
    """The value with elements of another's type."""
    return value if element(value) == element(like) else node.emit(CastOp, value, element=element(like))


# activations ----------------------------------------------------------------------------------------------------------
def gelu(node: Node) -> Sequence[Value]:
    """The exact one."""
    return [apply(node, "Gelu", node.given(0))]


def biased_gelu(approximate: str) -> Callable[[Node], Sequence[Value]]:
    """GELU of the operand, plus a bias if there is one."""

    def expand(node: Node) -> Sequence[Value]:
        x = node.operand(0)
        y = apply(node, "Gelu", sum_of(node, x, node.optional(1)), approximate=approximate)
        return [narrow(node, y, x)]

    return expand


def quick_gelu(node: Node) -> Sequence[Value]:
    """x·sigmoid(α·x)."""
    return [node.emit(SwishOp, node.operand(0), alpha=float(node.attributes.get("alpha", 1.702)))]


def bias_split_gelu(node: Node) -> Sequence[Value]:
    """Of x + bias, the left half times GELU of the right half."""
    x = node.operand(0)
    y, half = sum_of(node, x, node.given(1)), shape(x)[-1] // 2
    left, right = (
        node.emit(SliceOp, y, starts=[start], ends=[start + half], axes=[len(shape(x)) - 1]) for start in (0, half)
    )
    return [node.emit(MulOp, left, node.emit(CastOp, apply(node, "Gelu", right), element=f32), element=element(x))]


def swi_glu(node: Node) -> Sequence[Value]:
    """g·sigmoid(α·g)·(u + β) of a gate and another tensor, or of the two halves of one; both may be clipped."""
    x, up, given = node.operand(0), node.optional(1), node.attributes
    if up is None:
        half, last = shape(x)[-1] // 2, len(shape(x)) - 1
        gate, up = (node.emit(SliceOp, x, starts=[start], ends=[start + half], axes=[last]) for start in (0, half))
    else:
        gate, up = x, node.materialize(up)
    if (limit := float(given.get("limit", 0.0))) > 0:
        gate = node.emit(ClipOp, gate, hi=limit)
        up = node.emit(ClipOp, up, lo=-limit, hi=limit)
    kind = element(x) if given.get("round_activation", 0) else f32
    active = node.emit(SwishOp, gate, alpha=float(given.get("activation_alpha", 1.0)), element=kind)
    if beta := float(given.get("activation_beta", 0.0)):
        up = node.emit(AddOp, up, number(node, beta), element=f32)
    return [node.emit(MulOp, active, up, element=element(x))]


def scaled_silu(node: Node) -> Sequence[Value]:
    """z·sigmoid(z) of z = scale·x, each rounded."""
    x, scale = node.operand(0), node.optional(1)
    by = number(node, node.attributes.get("alpha", 1.0)) if scale is None else node.materialize(scale)
    z = node.emit(MulOp, x, by, element=element(x))
    return [node.emit(MulOp, z, apply(node, "Sigmoid", z))]


def activated(node: Node, y: SSAValue, name: str, parameters: Sequence[float], like: SSAValue) -> SSAValue:
    """The activation that is fused behind an operator, in the type of its operand."""
    if name in ("Gelu", "HardSwish", "Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"):
        y = apply(node, name, y)
    elif name == "Clip":
        y = node.emit(ClipOp, y, lo=float(parameters[0]), hi=float(parameters[1]))
    elif name in ("LeakyRelu", "Elu", "ThresholdedRelu"):
        y = apply(node, name, y, **dict(zip(("alpha",), map(float, parameters), strict=False)))
    elif name == "HardSigmoid":
        y = apply(node, name, y, **dict(zip(("alpha", "beta"), map(float, parameters), strict=False)))
    elif name:
        raise InferError(f"the fused activation is a known one (found {name!r})")
    return narrow(node, y, like)


# products -------------------------------------------------------------------------------------------------------------
def fused_matmul(node: Node) -> Sequence[Value]:
    """α·a·b, either transposed or with its first axis behind the batch; then an activation, if one is named."""
    a, b = (_turned(node, index, letter) for index, letter in enumerate("AB"))
    alpha, name = float(node.attributes.get("alpha", 1.0)), node.attributes.get("activation", "")
    inner = f32 if (alpha != 1 or name) and element(a) in FLOATS else None
    y = node.emit(MatMulOp, a, b, element=inner)
    if alpha != 1:
        y = node.emit(MulOp, y, number(node, alpha), element=f32)
    if name == "Softmax":
        y = apply(node, "Softmax", y, axis=node.attributes.get("activation_axis", -1))
        return [narrow(node, y, a)]
    return [activated(node, y, name, _given(node, "activation_alpha", "activation_beta"), a)]


def _turned(node: Node, index: int, letter: str) -> SSAValue:
    """An operand of a product, transposed as the node says."""
    x = node.operand(index)
    perm = list(range(len(shape(x))))
    if len(perm) > 1 and node.attributes.get(f"transBatch{letter}", 0):
        perm = [*perm[1:-1], 0, perm[-1]]
    if len(perm) > 1 and node.attributes.get(f"trans{letter}", 0):
        perm[-2:] = perm[:-3:-1]
    return x if perm == sorted(perm) else node.emit(TransposeOp, x, perm=perm)


def _given(node: Node, *names: str) -> list[float]:
    """The parameters that a node has."""
    return [node.attributes[name] for name in names if name in node.attributes]


def fused_gemm(node: Node) -> Sequence[Value]:
    """Gemm and an activation."""
    names = ("alpha", "beta", "transA", "transB")
    given = {name: node.attributes[name] for name in names if name in node.attributes}
    a = node.operand(0)
    y = apply(node, "Gemm", a, node.given(1), node.optional(2), **given)
    parameters = _given(node, "activation_alpha", "activation_beta", "activation_gamma")
    return [activated(node, y, node.attributes.get("activation", ""), parameters, a)]


def gemm_fast_gelu(node: Node) -> Sequence[Value]:
    """GELU, by tanh, of a product plus a bias."""
    x = node.operand(0)
    y = node.emit(MatMulOp, x, node.operand(1), element=f32)
    return [narrow(node, apply(node, "Gelu", sum_of(node, y, node.optional(2)), approximate="tanh"), x)]


def c_dist(node: Node) -> Sequence[Value]:
    """The distance of each row of a to each row of b."""
    a, b, metric = node.operand(0), node.operand(1), node.attributes.get("metric", "sqeuclidean")
    if metric not in ("sqeuclidean", "euclidean"):
        raise InferError(f"distances are euclidean or sqeuclidean (found {metric})")
    rows, columns = node.emit(ReshapeOp, a, shape=[shape(a)[0], 1, -1]), node.emit(ReshapeOp, b, shape=[1, *shape(b)])
    apart = node.emit(SubOp, rows, columns, element=f32)
    total = node.emit(ReduceSumOp, node.emit(MulOp, apart, apart, element=f32), axes=[2])
    return [narrow(node, apply(node, "Sqrt", total) if metric == "euclidean" else total, a)]


def matmul_integer_16(node: Node) -> Sequence[Value]:
    """The exact product, modulo 2³²."""
    return [node.emit(MatMulOp, node.operand(0), node.operand(1))]


# convolutions and windows ---------------------------------------------------------------------------------------------
WINDOW = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides", "ceil_mode", "count_include_pad")


def window_of(node: Node) -> dict[str, Any]:
    """The attributes that say where windows stand."""
    return {name: node.attributes[name] for name in WINDOW if name in node.attributes}


def channels_first(node: Node, x: Value) -> SSAValue:
    """[N, …, C] as [N, C, …]."""
    rank = len(size_of(x))
    return node.emit(TransposeOp, node.materialize(x), perm=[0, rank - 1, *range(1, rank - 1)])


def channels_last(node: Node, x: Value) -> SSAValue:
    """[N, C, …] as [N, …, C]."""
    rank = len(size_of(x))
    return node.emit(TransposeOp, node.materialize(x), perm=[0, *range(2, rank), 1])


def fused_conv(last: bool) -> Callable[[Node], Sequence[Value]]:
    """Convolution, plus z, then an activation; with `last`, x and the result are [N, …, C]."""

    def expand(node: Node) -> Sequence[Value]:
        x, z = node.operand(0), node.optional(3)
        y = apply(
            node,
            "Conv",
            channels_first(node, x) if last else x,
            node.given(1),
            node.optional(2),
            **window_of(node),
        )
        y = channels_last(node, y) if last else y
        y = y if z is None else sum_of(node, y, z)
        name, parameters = node.attributes.get("activation", ""), node.attributes.get("activation_params", ())
        return [activated(node, y, name, parameters, x)]

    return expand


def nhwc_max_pool(node: Node) -> Sequence[Value]:
    """The largest of each window over [N, …, C]."""
    y = apply(node, "MaxPool", channels_first(node, node.given(0)), **window_of(node))
    return [channels_last(node, y)]


def conv_transpose(node: Node) -> Sequence[Value]:
    """ConvTranspose whose padding is an input."""
    pads, names = node.known(2), ("auto_pad", "dilations", "group", "kernel_shape", "output_padding", "strides")
    given: dict[str, Any] = {name: node.attributes[name] for name in names if name in node.attributes}
    if pads is not None and pads.size:
        given["pads"] = pads.reshape(-1).tolist()
    return [apply(node, "ConvTranspose", node.given(0), node.given(1), node.optional(3), **given)]


# normalisations -------------------------------------------------------------------------------------------------------
def skip_layer_norm(node: Node) -> Sequence[Value]:
    """Layer normalisation of input + skip + bias; the last output is that sum."""
    x, skip, gamma, beta, bias = (node.optional(index) for index in range(5))
    return _skipped(node, "LayerNormalization", [x, skip, bias], [gamma, beta], 1e-12)


def skip_simplified_layer_norm(node: Node) -> Sequence[Value]:
    """Root mean square normalisation of input + skip + bias; the last output is that sum."""
    x, skip, gamma, bias = (node.optional(index) for index in range(4))
    return _skipped(node, "RMSNormalization", [x, skip, bias], [gamma], 1e-12)


def _skipped(
    node: Node, operator: str, parts: Sequence[Value | None], rest: Sequence[Value | None], epsilon: float
) -> Sequence[Value]:
    if any(node.proto.output[1:3]):
        raise InferError(f"{node.operator} gives the result and the sum (found a use of the mean or the deviation)")
    x = node.operand(0)
    total = sum_of(node, *parts)
    y = apply(node, operator, total, *rest, axis=-1, epsilon=float(node.attributes.get("epsilon", epsilon)))
    y = narrow(node, y, x)
    if len(node.proto.output) < 4:
        return [y]
    return [y, y, y, narrow(node, total, x)]


def simplified_layer_norm(node: Node) -> Sequence[Value]:
    """The one that onnxruntime also has in the domain ai.onnx."""
    outputs = max(1, len(node.proto.output))
    return apply_all(node, node.operator, node.given(0), node.given(1), outputs=outputs, **node.attributes)


def embed_layer_norm(node: Node) -> Sequence[Value]:
    """Layer normalisation of the rows of three tables, one for the word, the place and the segment, added up."""
    words, segments, word, position, segment, gamma, beta, mask, places = (node.optional(i) for i in range(9))
    if words is None or word is None or position is None:
        raise InferError("there are words, their table and that of places (found one of them missing)")
    count = size_of(words)[-1]
    where = np.arange(count, dtype=np.int32).reshape(1, count) if places is None else places
    parts: list[Value | None] = [_rows(node, word, words), _rows(node, position, where)]
    if segment is not None and segments is not None:
        parts.append(_rows(node, segment, segments))
    total, like = sum_of(node, *parts), node.materialize(word)
    y = apply(node, "LayerNormalization", total, gamma, beta, axis=-1, epsilon=node.attributes.get("epsilon", 1e-12))
    return [narrow(node, y, like), words_kept(node, words, mask), narrow(node, total, like)]


def words_kept(node: Node, words: Value, mask: Value | None) -> Value:
    """How many words of each row are not masked; 0 without a mask."""
    if mask is None:
        return np.zeros(size_of(words)[0], np.int32)
    return node.emit(ReduceSumOp, node.materialize(mask), axes=[1])


def _rows(node: Node, table: Value, indices: Value) -> Value:
    return node.emit(GatherOp, node.materialize(table), node.materialize(indices), axis=0)


def group_norm(node: Node) -> Sequence[Value]:
    """Of x, or of x + skip + bias, which is the second output; then SiLU if asked for."""
    x, gamma, beta = (node.operand(index) for index in range(3))
    last = bool(node.attributes.get("channels_last", 1))
    skip, bias = (node.optional(index) for index in (3, 4))
    if skip is not None and len(size_of(skip)) == 2:
        n, channels = size_of(skip)
        skip = node.emit(ReshapeOp, node.materialize(skip), shape=[n, *[1] * (len(shape(x)) - 2), channels])
    if not last and (skip is not None or bias is not None):
        raise InferError("what is added has the channels last (found channels_last = 0)")
    total = sum_of(node, x, skip, bias)
    y = apply(
        node,
        "GroupNormalization",
        channels_first(node, total) if last else total,
        gamma,
        beta,
        epsilon=float(node.attributes.get("epsilon", 1e-5)),
        num_groups=node.attributes["groups"],
    )
    y = channels_last(node, y) if last else y
    if node.attributes.get("activation", 0):
        y = node.emit(SwishOp, y, alpha=1.0)
    return [narrow(node, y, x), narrow(node, total, x)]


def bias_softmax(node: Node) -> Sequence[Value]:
    """Softmax over the axes from one on of x + bias."""
    x, bias = node.operand(0), node.operand(1)
    size, place = shape(x), normal_axis(node.attributes.get("axis", 1), len(shape(x)))
    if not node.attributes["is_inner_broadcast"] and len(shape(bias)) < len(size):
        bias = node.emit(ReshapeOp, bias, shape=[*[1] * (len(size) - len(shape(bias))), *shape(bias)])
    flat = [math.prod(size[:place]), math.prod(size[place:])]
    y = node.emit(ReshapeOp, sum_of(node, x, bias), shape=flat)
    return [narrow(node, node.emit(ReshapeOp, apply(node, "Softmax", y, axis=-1), shape=size), x)]


# sums and products of parts -------------------------------------------------------------------------------------------
def bias_add(node: Node) -> Sequence[Value]:
    """x + bias + skip."""
    return [narrow(node, sum_of(node, *(node.given(index) for index in range(3))), node.operand(0))]


def mul_integer(node: Node) -> Sequence[Value]:
    """(a − its zero)·(b − its zero), exact."""
    return [node.emit(MulOp, *(whole(node, index, index + 1) for index in (0, 2)))]


def whole(node: Node, index: int, zero_index: int) -> SSAValue:
    """Bytes less their zero point, i32."""
    x, zero = node.emit(CastOp, node.operand(index), element=i32), node.optional(zero_index)
    return x if zero is None else node.emit(SubOp, x, node.emit(CastOp, node.materialize(zero), element=i32))


def reduce_sum_integer(node: Node) -> Sequence[Value]:
    """The exact sum of bytes."""
    x = node.emit(CastOp, node.operand(0), element=i32)
    keep = bool(node.attributes["keepdims"])
    return [node.emit(ReduceSumOp, x, axes=node.attributes["axes"], keepdims=keep or None)]


def expand_dims(node: Node) -> Sequence[Value]:
    """An axis of extent 1 more."""
    axis = node.known(1)
    assert axis is not None
    size = list(size_of(node.given(0)))
    size.insert(normal_axis(int(axis.reshape(-1)[0]), len(size) + 1), 1)
    return [node.emit(ReshapeOp, node.operand(0), shape=size)]


def alias(operator: str, opset: int = 0) -> Callable[[Node], Sequence[Value]]:
    """An operator of ai.onnx under the same name, or under its older one."""

    def expand(node: Node) -> Sequence[Value]:
        outputs = max(1, len(node.proto.output))
        return apply_all(node, operator, *node.inputs, outputs=outputs, opset=opset, **node.attributes)

    return expand


FUSED: Mapping[str, Callable[[Node], Sequence[Value]]] = {
    "BiasAdd": bias_add,
    "BiasGelu": biased_gelu("none"),
    "BiasSoftmax": bias_softmax,
    "BiasSplitGelu": bias_split_gelu,
    "CDist": c_dist,
    "CausalConvWithState": alias("CausalConvWithState"),
    "ConvTransposeWithDynamicPads": conv_transpose,
    "EmbedLayerNormalization": embed_layer_norm,
    "ExpandDims": expand_dims,
    "FastGelu": biased_gelu("tanh"),
    "FusedConv": fused_conv(last=False),
    "FusedGemm": fused_gemm,
    "FusedMatMul": fused_matmul,
    "FusedMatMulActivation": fused_matmul,
    "GatherND": alias("GatherND"),
    "Gelu": gelu,
    "GemmFastGelu": gemm_fast_gelu,
    "GridSample": alias("GridSample", 16),
    "GroupNorm": group_norm,
    "LinearAttention": alias("LinearAttention"),
    "MatMulInteger16": matmul_integer_16,
    "MulInteger": mul_integer,
    "NhwcConv": fused_conv(last=True),
    "NhwcFusedConv": fused_conv(last=True),
    "NhwcMaxPool": nhwc_max_pool,
    "Pad": alias("Pad"),
    "QuickGelu": quick_gelu,
    "Range": alias("Range"),
    "ReduceSumInteger": reduce_sum_integer,
    "ScaledSiLU": scaled_silu,
    "SimplifiedLayerNormalization": simplified_layer_norm,
    "SkipGroupNorm": group_norm,
    "SkipLayerNormalization": skip_layer_norm,
    "SkipSimplifiedLayerNormalization": skip_simplified_layer_norm,
    "SwiGLU": swi_glu,
    "TransposeMatMul": fused_matmul,
    "Trilu": alias("Trilu"),
}
"""By operator."""
