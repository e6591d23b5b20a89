"""Operators of the domain com.microsoft: imported, evaluated and run on the device, compared with onnxruntime.

Those that onnxruntime has no CPU kernel for are compared with numpy. Bytes may differ by a step in few places, where
the order of onnxruntime's operations decides a tie.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import stepwell
from stepwell.dialects.evaluate import evaluate
from stepwell.frontend.extensions import EXTENSIONS
from stepwell.frontend.onnx import ImportProblems, import_onnx

pytestmark = pytest.mark.xdist_group("device")
Array = NDArray[Any]
RNG = np.random.default_rng(41)


@dataclass(frozen=True)
class Case:
    """A node: inputs at run time, then constants (None: absent). `numpy` stands for onnxruntime where it has no kernel.

    `step` is by how many steps bytes may differ, `scale` multiplies what floats may.
    """

    operator: str
    inputs: Sequence[Array | None]
    constants: Sequence[Any] = ()
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    outputs: Sequence[int] = (TensorProto.FLOAT,)
    numpy: Callable[..., Sequence[Array]] | None = None
    step: int = 0
    scale: float = 1.0
    valid: Callable[[Array], Array] = lambda array: array

    def __str__(self) -> str:
        shapes = ",".join("" if a is None else "x".join(map(str, a.shape)) for a in self.inputs)
        return f"{self.operator} {shapes} {self.attributes}"


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def whole(low: int, high: int, *shape: int, kind: Any = np.int64) -> Array:
    return RNG.integers(low, high, shape).astype(kind)


def quantised(*shape: int, kind: Any = np.uint8, scale: float = 0.02) -> list[Any]:
    """Bytes, their scale, their zero point."""
    low = np.iinfo(kind).min
    return [whole(low, low + 256, *shape, kind=kind), np.float32(scale), np.array(low + 131, kind)]


def model_of(case: Case) -> onnx.ModelProto:
    """The node as a model: inputs x0, x1, …, outputs y0, y1, …"""
    names, infos, known = list[str](), list[Any](), list[Any]()
    for i, value in enumerate((*case.inputs, *case.constants)):
        names.append("" if value is None else f"x{i}")
        if value is None:
            continue
        if i < len(case.inputs):
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            infos.append(helper.make_tensor_value_info(names[-1], kind, value.shape))
        else:
            array = value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value))
            array.name = names[-1]
            known.append(array)
    results = [helper.make_tensor_value_info(f"y{i}", kind, None) for i, kind in enumerate(case.outputs) if kind]
    outputs = [f"y{i}" if kind else "" for i, kind in enumerate(case.outputs)]
    node = helper.make_node(case.operator, names, outputs, "node", domain="com.microsoft", **case.attributes)
    graph = helper.make_graph([node], "one", infos, results, known)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def feeds(case: Case) -> dict[str, Array]:
    return {f"x{i}": value for i, value in enumerate(case.inputs) if value is not None}


def wanted(case: Case, model: onnx.ModelProto) -> list[Array]:
    if case.numpy is not None:
        return [np.asarray(value) for value in case.numpy(*case.inputs, *case.constants)]
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 3  # each thread rounds the states that it has
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(value) for value in session.run(None, feeds(case))]


def agree(case: Case, mine: Array, theirs: Array) -> None:
    mine, theirs = case.valid(mine), case.valid(theirs)
    assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
    assert theirs.size
    error = np.abs(mine.astype(np.float64) - theirs.astype(np.float64))
    if theirs.dtype.kind != "f":
        assert error.max() <= case.step
        assert np.mean(error > 0) <= 0.02
        return
    assert error.max() <= 1e-5 * case.scale * max(1.0, float(np.abs(theirs).max()))


# products, activations, normalisations --------------------------------------------------------------------------------
def softmax_of(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gelu_of(x: Array) -> Array:
    from math import erf

    return (x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2)))).astype(np.float32)


def group_norm_of(x: Array, gamma: Array, beta: Array, groups: int, epsilon: float = 1e-5) -> Array:
    """[N, H, W, C]."""
    n, h, w, c = x.shape
    y = x.astype(np.float64).reshape(n, h, w, groups, c // groups)
    y = (y - y.mean((1, 2, 4), keepdims=True)) / np.sqrt(y.var((1, 2, 4), keepdims=True) + epsilon)
    return (y.reshape(x.shape) * gamma + beta).astype(np.float32)


def silu_of(x: Array, alpha: float) -> Array:
    return (x / (1 + np.exp(-alpha * x))).astype(np.float32)


def conv_of(x: Array, w: Array, b: Array, relu: bool) -> Array:
    """[N, H, W, C], strides 2 and 1."""
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))[:, ::2]
    y = np.einsum("nhwcij,ocij->nhwo", windows, w) + b
    return np.maximum(y, 0) if relu else y


CHANNELS = [floats(8), floats(8)]
PLAIN = [
    *(Case("FusedMatMul", [a, b], (), more) for a, b, more in (
        (floats(5, 7), floats(7, 3), {"alpha": 0.3}),
        (floats(7, 5), floats(3, 7), {"transA": 1, "transB": 1}),
        (floats(2, 3, 7, 5), floats(2, 3, 7, 4), {"transA": 1, "alpha": 2.0}),
        (floats(5, 2, 3, 7), floats(2, 3, 7, 4), {"transBatchA": 1}),
        (floats(5, 2, 3, 7), floats(4, 2, 3, 7), {"transBatchA": 1, "transBatchB": 1, "transB": 1}),
        (floats(7), floats(7, 3), {}),
    )),
    Case("TransposeMatMul", [floats(3, 7, 5), floats(7, 4)], (), {"transA": 1}),
    Case("FusedMatMulActivation", [floats(5, 7), floats(7, 3)], (),
         {"activation": "LeakyRelu", "activation_alpha": 0.2, "alpha": 0.5},
         numpy=lambda a, b: [np.where((y := a @ b * 0.5) > 0, y, 0.2 * y).astype(np.float32)]),
    Case("Gelu", [floats(3, 37)]),
    Case("FastGelu", [floats(3, 37)], scale=10),
    Case("FastGelu", [floats(3, 5, 37), floats(37)], scale=10),
    Case("QuickGelu", [floats(3, 37)]),
    Case("QuickGelu", [floats(3, 37)], (), {"alpha": 1.0}),
    Case("BiasGelu", [floats(3, 5, 37), floats(37)]),
    Case("BiasSplitGelu", [floats(2, 3, 10)], [floats(10)],
         numpy=lambda x, b: [(x + b)[..., :5] * gelu_of((x + b)[..., 5:])]),
    Case("ScaledSiLU", [floats(3, 9)], (), {"alpha": 1.5},
         numpy=lambda x: [(1.5 * x / (1 + np.exp(-1.5 * x))).astype(np.float32)]),
    Case("FusedGemm", [floats(5, 7), floats(3, 7)], [floats(3)],
         {"transB": 1, "activation": "Relu", "alpha": 0.5, "beta": 2.0}),
    Case("FusedGemm", [floats(5, 7), floats(7, 3)], (), {"activation": "LeakyRelu", "activation_alpha": 0.3}),
    *(Case("FusedConv", [floats(2, 4, 7, 9)], [floats(6, 2, 3, 3), floats(6), None if z is None else z],
           {"group": 2, "pads": [1, 1, 1, 1], "activation": name} | more)
      for name, more, z in (
          ("Relu", {}, None), ("Relu", {}, floats(2, 6, 7, 9)), ("Tanh", {}, None), ("Sigmoid", {}, None),
          ("Clip", {"activation_params": [0.0, 1.0]}, None), ("LeakyRelu", {"activation_params": [0.2]}, None),
          ("HardSigmoid", {"activation_params": [0.2, 0.5]}, None))),
    Case("NhwcMaxPool", [whole(0, 256, 2, 7, 9, 5, kind=np.uint8)], (), {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1]},
         [TensorProto.UINT8]),
    Case("SkipLayerNormalization", [floats(2, 5, 37), floats(2, 5, 37)], [floats(37), floats(37)], {"epsilon": 1e-5}),
    Case("SkipLayerNormalization", [floats(2, 5, 37), floats(5, 37)], [floats(37), floats(37), floats(37)], {},
         [1, 0, 0, 1]),
    Case("SkipLayerNormalization", [floats(2, 5, 37), floats(2, 5, 37)], [floats(37)]),
    Case("SkipSimplifiedLayerNormalization", [floats(2, 5, 37), floats(2, 5, 37)], [floats(37)], {}, [1, 0, 0, 1]),
    Case("SkipSimplifiedLayerNormalization", [floats(2, 5, 37), floats(2, 5, 37)], [floats(37), floats(37)],
         {"epsilon": 1e-3}),
    Case("EmbedLayerNormalization", [whole(0, 11, 2, 5, kind=np.int32), whole(0, 2, 2, 5, kind=np.int32)],
         [floats(11, 8), floats(6, 8), floats(2, 8), *CHANNELS, np.array([[1] * 5, [1, 1, 1, 0, 0]], np.int32)],
         {"epsilon": 1e-6}, [1, TensorProto.INT32, 1]),
    Case("EmbedLayerNormalization", [whole(0, 11, 2, 5, kind=np.int32), None],
         [floats(11, 8), floats(6, 8), None, *CHANNELS], {}, [1, TensorProto.INT32]),
    Case("SwiGLU", [floats(3, 10), floats(3, 10)], (), {"activation_alpha": 1.7, "activation_beta": 1.0, "limit": 0.8},
         numpy=lambda g, u: [silu_of(np.minimum(g, np.float32(0.8)), 1.7) * (np.clip(u, -0.8, 0.8).astype("f4") + 1)]),
    Case("SwiGLU", [floats(3, 10)], numpy=lambda x: [silu_of(x[:, :5], 1.0) * x[:, 5:]]),
    Case("GemmFastGelu", [floats(3, 5)], [floats(5, 4), floats(4)],
         numpy=lambda x, w, b: [(y := x @ w + b) * np.float32(0.5) * (
             1 + np.tanh(np.float32(0.7978845608) * (y + np.float32(0.044715) * y**3)))]),
    Case("CDist", [floats(5, 7), floats(4, 7)], scale=10),
    Case("CDist", [floats(5, 7), floats(4, 7)], (), {"metric": "euclidean"}, scale=10),
    Case("ConvTransposeWithDynamicPads", [floats(1, 3, 5, 6)],
         [floats(3, 4, 3, 3), np.array([1, 0, 1, 1]), floats(4)], {"strides": [2, 2]}),
    Case("LinearAttention", [floats(2, 5, 12), floats(2, 5, 12), floats(2, 5, 12)], (),
         {"q_num_heads": 3, "kv_num_heads": 3, "update_rule": "linear"}, [1, 1], scale=10),
    Case("CausalConvWithState", [floats(2, 3, 7)], [floats(3, 1, 4), floats(3)], {"activation": "silu"}, [1, 1]),
    Case("GroupNorm", [floats(2, 3, 5, 8)], CHANNELS, {"groups": 4, "activation": 0},
         numpy=lambda x, g, b: [group_norm_of(x, g, b, 4)]),
    Case("SkipGroupNorm", [floats(2, 3, 5, 8)], [*CHANNELS, floats(2, 8), floats(8)], {"groups": 2, "activation": 1},
         [1, 1],
         numpy=lambda x, g, b, skip, bias: [
             (y := group_norm_of(x + skip[:, None, None] + bias, g, b, 2)) / (1 + np.exp(-y)),
             x + skip[:, None, None] + bias]),
    Case("SimplifiedLayerNormalization", [floats(2, 5, 37)], [floats(37)], {"epsilon": 1e-3, "axis": 1},
         numpy=lambda x, g: [x / np.sqrt((x * x).mean((1, 2), keepdims=True) + 1e-3) * g]),
    *(Case(f"Nhwc{name}", [floats(2, 7, 9, 4)], [floats(6, 4, 3, 3), floats(6)], {"strides": [2, 1]} | more,
           numpy=lambda x, w, b, more=more: [conv_of(x, w, b, bool(more))])
      for name, more in (("Conv", {}), ("FusedConv", {"activation": "Relu"}))),
    Case("BiasSoftmax", [floats(2, 3, 4, 5)], [floats(2, 1, 1, 5)], {"axis": 3, "is_inner_broadcast": 1},
         numpy=lambda x, b: [softmax_of(x + b)]),
    Case("BiasAdd", [floats(2, 5, 8)], [floats(8), floats(2, 5, 8)], numpy=lambda x, b, s: [x + b + s]),
    Case("ExpandDims", [floats(2, 5)], [np.array(-2, np.int32)]),
    Case("ReduceSumInteger", [whole(0, 256, 3, 40, kind=np.uint8)], (), {"axes": [1], "keepdims": 1},
         [TensorProto.INT32], numpy=lambda x: [x.sum(1, keepdims=True, dtype=np.int32)]),
    Case("MulInteger", [whole(0, 256, 3, 40, kind=np.uint8)],
         [np.uint8(7), whole(0, 256, 40, kind=np.uint8), np.uint8(9)], {}, [TensorProto.INT32],
         numpy=lambda a, z, b, y: [(a.astype(np.int32) - z) * (b.astype(np.int32) - y)]),
    Case("MatMulInteger16", [whole(-300, 300, 3, 8, kind=np.int16), whole(-300, 300, 8, 5, kind=np.int16)], (), {},
         [TensorProto.INT32]),
    Case("GatherND", [floats(3, 4, 5), whole(0, 3, 6, 2, kind=np.int64)]),
    Case("GridSample", [floats(1, 2, 5, 6), floats(1, 3, 4, 2) * 0.5], (), {"mode": "bilinear"}),
    Case("Pad", [floats(3, 4)], [np.array([1, 0, 2, 3]), np.array(1.5, np.float32)]),
    Case("Trilu", [floats(4, 5)], (), {"upper": 0}),
]  # fmt: skip


# attention ------------------------------------------------------------------------------------------------------------
def attention_of(q: Array, k: Array, v: Array) -> Array:
    """[N, positions, heads, features] each."""
    weights = softmax_of(np.einsum("nqhd,nkhd->nhqk", q, k) / np.float32(q.shape[-1] ** 0.5))
    return np.einsum("nhqk,nkhd->nqhd", weights, v).reshape(*q.shape[:2], -1)


W = [floats(12, 36) * 0.3, floats(36)]
LEFT = np.array([[0, 0, 1, 1, 1], [0, 1, 1, 1, 1]], np.int32)
RIGHT = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]], np.int32)
HEADS = {"num_heads": 3}
INT32 = np.int32
ATTENTION = [
    Case("Attention", [floats(2, 5, 12)], W, HEADS),
    Case("Attention", [floats(2, 5, 12)], W, HEADS | {"unidirectional": 1, "scale": 0.4}),
    *(Case("Attention", [floats(2, 5, 12)], [*W, mask], HEADS | more) for mask, more in (
        (RIGHT, {}), (LEFT, {"unidirectional": 1}), (RIGHT, {"mask_filter_value": -100.0}),
        (np.array([4, 3], INT32), {}), (np.array([5, 5, 1, 2], INT32), {}),
        (whole(0, 2, 2, 5, 5, kind=INT32), {}))),
    Case("Attention", [floats(2, 5, 12), *W, RIGHT], (), HEADS),
    Case("Attention", [floats(2, 5, 12)], [*W, None, None, floats(2, 3, 5, 5)], HEADS),
    Case("Attention", [floats(2, 5, 12), *W, None, floats(2, 2, 3, 4, 4)], (), HEADS | {"unidirectional": 1}, [1, 1]),
    Case("Attention", [floats(2, 5, 12)], [floats(12, 42) * 0.3, floats(42)],
         HEADS | {"qkv_hidden_sizes": [12, 12, 18]}),
    Case("MultiHeadAttention", [floats(2, 5, 12), floats(2, 7, 12), floats(2, 7, 18)], (), HEADS),
    Case("MultiHeadAttention", [floats(2, 5, 12), floats(2, 7, 12), floats(2, 7, 12), floats(36)], (),
         HEADS | {"scale": 0.7}),
    Case("MultiHeadAttention", [floats(2, 5, 12), floats(2, 5, 12), floats(2, 5, 12), None, RIGHT], (), HEADS),
    Case("MultiHeadAttention", [floats(2, 5, 12), floats(2, 5, 12), floats(2, 5, 12), None, None, floats(1, 3, 5, 5)],
         (), HEADS | {"unidirectional": 1}),
    Case("MultiHeadAttention", [floats(2, 5, 12), floats(2, 5, 12), floats(2, 5, 12), None, None, None,
                                floats(2, 3, 4, 4), floats(2, 3, 4, 4)], (), HEADS, [1, 1, 1]),
    Case("MultiHeadAttention", [floats(2, 5, 3, 3, 4)], (), HEADS,
         numpy=lambda x: [attention_of(*(x[:, :, :, i] for i in range(3)))]),
    Case("MultiHeadAttention", [floats(2, 5, 12), floats(2, 7, 3, 2, 4)], (), HEADS,
         numpy=lambda q, kv: [attention_of(q.reshape(2, 5, 3, 4), kv[:, :, :, 0], kv[:, :, :, 1])]),
    Case("MultiHeadAttention", [floats(2, 5, 12), floats(2, 3, 7, 4), floats(2, 3, 7, 4)], (), HEADS),
    *(Case("RotaryEmbedding", [floats(2, 5, 24), places], [floats(9, 4), floats(9, 4)], more) for places, more in (
        (np.array([3]), {}), (whole(0, 9, 2, 5), {"interleaved": 1}))),
    Case("RotaryEmbedding", [floats(2, 3, 5, 8), whole(0, 9, 2, 5)], [floats(9, 4), floats(9, 4)]),
    Case("RotaryEmbedding", [floats(2, 5, 24), whole(0, 9, 2, 5)], [floats(9, 2), floats(9, 2)],
         {"num_heads": 3, "rotary_embedding_dim": 4}),
]  # fmt: skip

GROUPS = {"num_heads": 4, "kv_num_heads": 2}
LAST = lambda size: np.full(size, 4, INT32)  # noqa: E731


def known_keys(array: Array) -> Array:
    """Of keys and values those that every sequence has; what stands behind them is nobody's."""
    return array[:, :, :4] if array.ndim == 4 else array


TABLES = [floats(16, 8), floats(16, 8)]
GROUPED = [
    *(Case("GroupQueryAttention", [floats(2, 5, 64), floats(2, 5, 32), floats(2, 5, 32), None, None],
           [LAST(2), np.array(5, INT32), *tables], GROUPS | more, [1, 1, 1]) for tables, more in (
        ((), {}), (TABLES, {"do_rotary": 1}), (TABLES, {"do_rotary": 1, "rotary_interleaved": 1}),
        ((), {"local_window_size": 2}), ((), {"softcap": 3.0, "scale": 0.5}), ((), {"smooth_softmax": 1}),
        ([None] * 4 + [floats(4)], {}), ([None] * 4 + [floats(4)], {"softcap": 3.0, "local_window_size": 2}))),
    Case("GroupQueryAttention", [floats(1, 5, 128), None, None, None, None], [LAST(1), np.array(5, INT32), *TABLES],
         GROUPS | {"do_rotary": 1}, [1, 1, 1]),
    *(Case("GroupQueryAttention", [floats(2, n, 64), floats(2, n, 32), floats(2, n, 32), floats(2, 2, 6, 16),
                                   floats(2, 2, 6, 16)],
           [np.full(2, total - 1, INT32), np.array(total, INT32), *TABLES], GROUPS | more, [1, 1, 1])
      for n, total, more in ((1, 7, {"do_rotary": 1}), (1, 7, {"local_window_size": 3}))),
    Case("GroupQueryAttention", [floats(1, 3, 64), floats(1, 3, 32), floats(1, 3, 32), floats(1, 2, 6, 16),
                                 floats(1, 2, 6, 16)],
         [np.full(1, 8, INT32), np.array(9, INT32), *TABLES], GROUPS | {"do_rotary": 1}, [1, 1, 1]),
    *(Case("GroupQueryAttention", [floats(2, 1, 64), floats(2, 1, 32), floats(2, 1, 32), floats(2, 2, 9, 16),
                                   floats(2, 2, 9, 16), np.array([3, 7], INT32)],
           [np.array(8, INT32), *TABLES], GROUPS | {"do_rotary": 1} | more, [1, 1, 1], valid=known_keys)
      for more in ({}, {"local_window_size": 4}, {"smooth_softmax": 1})),
]  # fmt: skip

# bytes ----------------------------------------------------------------------------------------------------------------
TABLES_OF_BYTES = [whole(0, 256, *size, kind=np.uint8) for size in ((11, 8), (6, 8), (2, 8), (8,), (8,))]
U8, I8 = [TensorProto.UINT8], [TensorProto.INT8]
SCALE = [np.float32(0.03), np.uint8(120)]
SIGNED = [np.float32(0.03), np.int8(-20)]
BYTES = [
    *(Case(f"QLinear{name}", [a], [s, z, *quantised(*size), *SCALE], {}, U8, step=1) for name in ("Add", "Mul")
      for a, s, z in [quantised(3, 5, 37)] for size in ((37,), (3, 5, 37), (5, 1))),
    *(Case(f"QLinear{name}", [a], [s, z, *quantised(37, kind=np.int8), *SIGNED], {}, I8, step=1)
      for name in ("Add", "Mul") for a, s, z in [quantised(3, 37, kind=np.int8)]),
    Case("QLinearSigmoid", [quantised(3, 37)[0]], [np.float32(0.05), np.uint8(131), np.float32(1 / 256), np.uint8(0)],
         {}, U8, step=1),
    Case("QLinearLeakyRelu", [quantised(3, 37)[0]], [np.float32(0.05), np.uint8(131), np.float32(0.04), np.uint8(100)],
         {"alpha": 0.2}, U8, step=1),
    *(Case("QLinearSoftmax", [quantised(3, 4, 9)[0]], [np.float32(0.03), np.uint8(131), np.float32(1 / 256),
                                                       np.uint8(0)], {"opset": opset, "axis": axis}, U8, step=1)
      for opset, axis in ((13, -1), (12, 1))),
    Case("QLinearConcat", [], [*SCALE, *quantised(3, 4), *quantised(3, 5, scale=0.05)], {"axis": 1}, U8, step=1),
    Case("QLinearAveragePool", [quantised(2, 3, 7, 9)[0]], [np.float32(0.02), np.uint8(131), *SCALE],
         {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1]}, U8, step=1),
    Case("QLinearAveragePool", [quantised(2, 7, 9, 3)[0]], [np.float32(0.02), np.uint8(131), *SCALE],
         {"kernel_shape": [3, 2], "channels_last": 1, "strides": [2, 2]}, U8, step=1),
    *(Case("QLinearGlobalAveragePool", [quantised(2, 3, 7, 9)[0]], [np.float32(0.02), np.uint8(131), *SCALE],
           {"channels_last": last}, U8, step=1) for last in (0, 1)),
    Case("QLinearWhere", [whole(0, 2, 3, 7, kind=bool)], [*quantised(3, 7), *quantised(7, scale=0.05), *SCALE], {}, U8,
         step=1),
    Case("QLinearReduceMean", [quantised(3, 7, 5)[0]], [np.float32(0.02), np.uint8(131), np.float32(0.01),
                                                         np.uint8(120)], {"axes": [1], "keepdims": 1}, U8, step=1,
         numpy=lambda x, *_: [np.clip(np.rint((x - 131.0).mean(1, keepdims=True) * 2) + 120, 0, 255).astype("u1")]),
    Case("QGemm", [quantised(5, 7)[0]], [np.float32(0.02), np.uint8(131), *quantised(3, 7, kind=np.int8)[:2],
                                         np.int8(0), whole(-900, 900, 3, kind=INT32), *SCALE],
         {"transB": 1}, U8, step=1),
    Case("QGemm", [quantised(5, 7)[0]], [np.float32(0.02), np.uint8(131), quantised(7, 3, kind=np.int8)[0],
                                         np.abs(floats(3)) / 40, np.zeros(3, np.int8), whole(-9, 9, 3, kind=INT32)],
         {"alpha": 0.5}),
    Case("MatMulIntegerToFloat", [quantised(5, 7)[0]], [quantised(7, 3, kind=np.int8)[0], np.float32(0.02),
                                                        np.abs(floats(3)) / 40, np.uint8(131),
                                                        whole(-9, 9, 3, kind=np.int8), floats(3)]),
    Case("DynamicQuantizeMatMul", [floats(2, 5, 7)], [quantised(7, 3, kind=np.int8)[0], np.abs(floats(3)) / 40,
                                                      whole(-9, 9, 3, kind=np.int8), floats(3)]),
    Case("DynamicQuantizeMatMul", [floats(5, 7)], [quantised(7, 3)[0], np.float32(0.02), np.uint8(131)]),
    Case("QLinearConv", [quantised(2, 7, 9, 4)[0]],
         [np.float32(0.02), np.uint8(131), quantised(6, 4, 3, 3, kind=np.int8)[0], np.float32(0.02), np.int8(0),
          np.float32(0.3), np.uint8(120), whole(-900, 900, 6, kind=INT32)],
         {"channels_last": 1, "pads": [1, 1, 1, 1]}, U8, step=1),
    Case("QAttention", [quantised(2, 5, 12)[0]],
         [whole(-128, 128, 12, 36, kind=np.int8), floats(36), np.float32(0.02), np.float32(0.005), None, np.uint8(131),
          np.int8(3)], HEADS),
    Case("QEmbedLayerNormalization", [whole(0, 11, 2, 5, kind=INT32), whole(0, 2, 2, 5, kind=INT32)],
         [*TABLES_OF_BYTES[:5], np.array(LEFT[::-1]), *map(np.float32, (0.1, 0.05, 0.02, 0.01, 0.03)),
          *map(np.uint8, (120, 130, 110, 0, 128))], {}, [1, TensorProto.INT32]),
    Case("QuantizeLinear", [floats(3, 5, 37)], [np.float32(0.03), np.uint8(120)], {}, U8),
    Case("QuantizeLinear", [floats(3, 37)], [np.float32(0.001), np.uint16(30000)], {}, [TensorProto.UINT16]),
    Case("QuantizeLinear", [floats(3, 37) * 30], [np.float32(0.001), np.int16(-30)], {}, [TensorProto.INT16]),
    Case("QuantizeLinear", [floats(3, 5, 7)], [np.abs(floats(5)) / 50, whole(0, 255, 5, kind=np.uint8)], {"axis": 1},
         U8),
    Case("DequantizeLinear", [whole(0, 65536, 3, 37, kind=np.uint16)], [np.float32(0.001), np.uint16(30000)]),
    Case("DequantizeLinear", [whole(-128, 128, 3, 37, kind=np.int8)], [np.float32(0.1), np.int8(3)]),
    Case("DequantizeLinear", [], [whole(-8, 8, 3, 37, kind=np.int8).astype(ml_dtypes.int4), np.float32(0.1),
                                  np.array(3, ml_dtypes.int4)]),
    Case("DequantizeLinear", [whole(-999, 999, 3, 37, kind=INT32)], [np.float32(0.1), np.int32(0)]),
]  # fmt: skip


# weights --------------------------------------------------------------------------------------------------------------
def blocks(bits: int, block: int, n: int = 6, k: int = 40) -> tuple[list[Any], dict[str, int]]:
    count = -(-k // block)
    packed = whole(0, 256, n, count, block * bits // 8, kind=np.uint8)
    return [packed, np.abs(floats(n, count)) / 8], {"N": n, "K": k, "bits": bits, "block_size": block}


def nbits(bits: int, block: int, zeros: str = "", bias: bool = False) -> Case:
    given, attributes = blocks(bits, block)
    n, count, _ = given[0].shape
    more: list[Any] = []
    if zeros == "packed":
        more = [whole(0, 256, n, -(-count * bits // 8), kind=np.uint8)]
    elif zeros:
        more = [floats(n, count) + 5]
    if bias:
        more = [*(more or [None]), None, floats(n)]
    return Case("MatMulNBits", [floats(3, 40)], [*given, *more], attributes)


def lstm(direction: str, kind: Any, rows: bool, more: Sequence[Any] = (), **attributes: Any) -> Case:
    """Input sizes are small enough that rounding x and the states to bytes shows."""
    d, hidden, size = 2 if direction == "bidirectional" else 1, 8, 6
    scale = (d, 4 * hidden) if rows else (d,)
    low = np.iinfo(kind).min
    zero = np.full(scale, 0 if kind == np.int8 else 128, kind)
    w, r = (whole(low, low + 256, d, k, 4 * hidden, kind=kind) for k in (size, hidden))
    scales = [(RNG.random(scale) * 0.004 + 0.002).astype(np.float32) for _ in "wr"]
    constants = [w, r, floats(d, 8 * hidden) * 0.1, *(more or [None] * 4), scales[0], zero, scales[1], zero]
    return Case("DynamicQuantizeLSTM", [floats(7, 2, size)], constants,
                {"hidden_size": hidden, "direction": direction, **attributes}, [1, 1, 1])  # fmt: skip


WEIGHTS = [
    *(nbits(bits, block, zeros, bias) for bits, block, zeros, bias in (
        (4, 16, "", False), (4, 32, "packed", False), (4, 16, "floats", True), (8, 16, "", True),
        (8, 32, "packed", False))),
    *(Case("MatMulBnb4", [floats(3, 40)], [whole(0, 256, 120, kind=np.uint8), np.abs(floats(15))],
           {"N": 6, "K": 40, "block_size": 16, "quant_type": kind}) for kind in (0, 1)),
    Case("GatherBlockQuantized", [], [whole(-8, 8, 9, 32, kind=np.int8).astype(ml_dtypes.int4), whole(0, 9, 2, 3),
                                      np.abs(floats(9, 2))], {"block_size": 16}),
    Case("GatherBlockQuantized", [], [whole(0, 256, 9, 16, kind=np.uint8), whole(0, 9, 2, 3), np.abs(floats(9, 2)),
                                      whole(0, 256, 9, 1, kind=np.uint8)], {"block_size": 16}),
    *(lstm(direction, kind, rows) for direction in ("forward", "reverse", "bidirectional")
      for kind, rows in ((np.int8, False), (np.uint8, True))),
    lstm("bidirectional", np.int8, False, [None, floats(2, 2, 8) * 0.5, floats(2, 2, 8), None]),
    lstm("bidirectional", np.int8, True, [None, floats(2, 2, 8) * 0.5, floats(2, 2, 8), floats(2, 24)],
         clip=0.7, input_forget=1),
    lstm("bidirectional", np.uint8, False, [None, floats(2, 2, 8) * 0.5, None, floats(2, 24)],
         activations=["Sigmoid", "Tanh", "Tanh", "Sigmoid", "Softsign", "Relu"]),
    *(lstm("forward", np.int8, False, [np.array([n, 7], INT32), None, None, None]) for n in (4, 7)),
]  # fmt: skip

CASES = [*PLAIN, *ATTENTION, *GROUPED, *BYTES, *WEIGHTS]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_operator_agrees_with_onnxruntime(case: Case) -> None:
    model = model_of(case)
    results = wanted(case, model)
    module, weights = import_onnx(model)
    module.verify()
    found = evaluate(module, list(feeds(case).values()), weights)
    assert len(found) == len(results) == sum(map(bool, case.outputs))
    for mine, theirs in zip(found, results, strict=True):
        agree(case, mine, theirs)


def test_every_operator_has_a_case() -> None:
    assert {case.operator for case in CASES} >= EXTENSIONS["com.microsoft"].keys() - {"Range"}


@pytest.mark.parametrize("case", {case.operator: case for case in CASES}.values(), ids=str)
def test_an_operator_runs_on_the_device(case: Case) -> None:
    """What evaluation gives, to the bit."""
    model = model_of(case)
    module, weights = import_onnx(model)
    wanted = evaluate(module, list(feeds(case).values()), weights)
    found = stepwell.run(stepwell.compile(model, target="tiny", precision="fp32"), feeds(case))
    for info, value in zip(model.graph.output, wanted, strict=True):
        np.testing.assert_array_equal(found[info.name], value)


def refusal(case: Case, opset: int = 1) -> str:
    model = model_of(case)
    model.opset_import[1].version = opset
    with pytest.raises(ImportProblems) as caught:
        import_onnx(model)
    return str(caught.value)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (Case("FusedMatMul", [floats(2, 3), floats(3, 2)], (), {"beta": 2.0}), "FusedMatMul has the attributes alpha"),
        (Case("FusedMatMul", [floats(2, 3)]), "FusedMatMul has 2 inputs (found 1)"),
        (Case("MultiHeadAttention", [floats(1, 2, 8)] * 3), "has the attribute num_heads (found none)"),
        (Case("MoE", [floats(2, 3)]), "the device does not run MoE (found com.microsoft, opset 1)"),
        (
            Case("MatMulNBits", [floats(3, 40)], [*blocks(4, 16)[0], None, np.full(40, 3, INT32)], blocks(4, 16)[1]),
            "g_idx has one of 3 groups for each of 40 columns (found 3)",
        ),
        (Case("FusedConv", [floats(1, 2, 5, 5), floats(3, 2, 3, 3)], (), {"activation": "Sinh"}), "(found 'Sinh')"),
    ],
)  # fmt: skip
def test_what_a_form_does_not_support_is_said(case: Case, message: str) -> None:
    assert message in refusal(case)


def test_an_opset_of_the_future_is_refused() -> None:
    found = refusal(Case("Gelu", [floats(2, 3)]), opset=2)
    assert "its opset of com.microsoft is 1 to 1 (found 2)" in found


def test_a_node_of_another_domain_is_not_taken_for_one_of_onnx() -> None:
    """Not even if all is known of it."""
    case = Case("Add", [], [floats(3), floats(3)])
    assert "the device does not run Add (found com.microsoft, opset 1)" in refusal(case)


def test_what_onnxruntime_has_in_the_domain_of_onnx_itself() -> None:
    case = Case("SimplifiedLayerNormalization", [floats(2, 5, 37)], [floats(37)], {"epsilon": 1e-3, "axis": -1}, [1, 1])
    model = model_of(case)
    model.graph.node[0].domain = ""
    results = wanted(case, model)
    module, weights = import_onnx(model)
    for mine, theirs in zip(evaluate(module, list(feeds(case).values()), weights), results, strict=True):
        agree(case, mine, theirs)
