"""ONNX models made here: exporter-style graphs with seeded weights that keep activations in range."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]


class ModelWriter:
    """Nodes and initialisers of a model, in order."""

    def __init__(self, opset: int = 17, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self._opset = opset
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[onnx.TensorProto] = []

    def node(self, operator: str, *inputs: str, name: str = "", outputs: int = 1, **attributes: Any) -> str:
        """The first output of a new node, named after it."""
        name = name or f"{operator}_{len(self._nodes)}"
        results = [f"{name}:{i}" for i in range(outputs)]
        self._nodes.append(helper.make_node(operator, list(inputs), results, name, **attributes))
        return results[0]

    def constant(self, array: Array | np.generic, name: str = "") -> str:
        name = name or f"constant_{len(self._initializers)}"
        self._initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape: int, scale: float | None = None) -> str:
        """Normal values; by default scaled by the square root of 2 ÷ what one output sums over."""
        fan_in = np.prod(shape[1:]) if len(shape) == 4 else shape[0]
        scale = float(np.sqrt(2 / fan_in)) if scale is None else scale
        return self.constant((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def model(self, inputs: dict[str, Sequence[int | str]], outputs: Sequence[str]) -> onnx.ModelProto:
        """A checked model with f32 inputs."""
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
        results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self._nodes, "made", infos, results, self._initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self._opset)], ir_version=8)
        model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
        onnx.checker.check_model(model)
        return model


def mlp(batch: int = 4, sizes: Sequence[int] = (64, 128, 96, 10)) -> onnx.ModelProto:
    """Gemm and Relu, a Softmax at the end."""
    w = ModelWriter(seed=1)
    x = "x"
    for i, (k, n) in enumerate(pairwise(sizes)):
        bias = w.constant((w.rng.standard_normal(n) * 0.1).astype(np.float32))
        x = w.node("Gemm", x, w.weight(n, k, scale=float(np.sqrt(2 / k))), bias, transB=1)
        if i < len(sizes) - 2:
            x = w.node("Relu", x)
    return w.model({"x": [batch, sizes[0]]}, [w.node("Softmax", x, axis=-1)])


def _batch_norm(w: ModelWriter, x: str, channels: int) -> str:
    parameters = [
        1 + 0.1 * w.rng.standard_normal(channels),
        0.1 * w.rng.standard_normal(channels),
        0.1 * w.rng.standard_normal(channels),
        1 + 0.5 * w.rng.random(channels),
    ]
    return w.node("BatchNormalization", x, *(w.constant(p.astype(np.float32)) for p in parameters))


def small_cnn(batch: int = 1, size: int = 32, classes: int = 10) -> onnx.ModelProto:
    """A first layer of 3 channels, a residual block, a depthwise-separable one, a grouped one with a gate; Gemm."""
    w = ModelWriter(seed=2)
    x = w.node("Conv", "x", w.weight(16, 3, 3, 3), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    x = w.node("Relu", _batch_norm(w, x, 16))
    x = w.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    y = w.node("Relu", _batch_norm(w, w.node("Conv", x, w.weight(16, 16, 3, 3), pads=[1, 1, 1, 1]), 16))
    y = _batch_norm(w, w.node("Conv", y, w.weight(16, 16, 3, 3), pads=[1, 1, 1, 1]), 16)
    x = w.node("Relu", w.node("Add", x, y))
    x = w.node("Conv", x, w.weight(16, 1, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1], group=16)
    x = w.node("Clip", x, w.constant(np.float32(0)), w.constant(np.float32(6)))
    x = w.node("Conv", x, w.weight(24, 16, 1, 1), w.constant(w.rng.standard_normal(24).astype(np.float32) * 0.1))
    x = w.node("HardSwish", w.node("Conv", x, w.weight(24, 12, 3, 3), pads=[1, 1, 1, 1], group=2))
    gate = w.node("Conv", w.node("GlobalAveragePool", x), w.weight(24, 24, 1, 1))
    x = w.node("Mul", x, w.node("HardSigmoid", gate, alpha=0.2, beta=0.5))
    x = w.node("Flatten", w.node("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2]), axis=1)
    return w.model({"x": [batch, 3, size, size]}, [w.node("Gemm", x, w.weight(24 * (size // 8) ** 2, classes))])


def _layer_norm(w: ModelWriter, x: str, hidden: int) -> str:
    """As exporters before opset 17 write it."""
    mean = w.node("ReduceMean", x, axes=[-1], keepdims=1)
    centred = w.node("Sub", x, mean)
    variance = w.node("ReduceMean", w.node("Pow", centred, w.constant(np.float32(2))), axes=[-1], keepdims=1)
    deviation = w.node("Sqrt", w.node("Add", variance, w.constant(np.float32(1e-12))))
    scale = w.constant((1 + 0.1 * w.rng.standard_normal(hidden)).astype(np.float32))
    shift = w.constant((0.1 * w.rng.standard_normal(hidden)).astype(np.float32))
    return w.node("Add", w.node("Mul", w.node("Div", centred, deviation), scale), shift)


def _gelu(w: ModelWriter, x: str) -> str:
    erf = w.node("Erf", w.node("Div", x, w.constant(np.float32(np.sqrt(2)))))
    return w.node("Mul", w.node("Mul", x, w.node("Add", erf, w.constant(np.float32(1)))), w.constant(np.float32(0.5)))


def _linear(w: ModelWriter, x: str, k: int, n: int) -> str:
    product = w.node("MatMul", x, w.weight(k, n, scale=1 / float(np.sqrt(k))))
    return w.node("Add", product, w.constant((0.1 * w.rng.standard_normal(n)).astype(np.float32)))


def _heads(w: ModelWriter, x: str, heads: int, size: int, perm: Sequence[int]) -> str:
    """[batch, seq, hidden] by heads; the shape is computed, as exporters do."""
    shape = w.node("Shape", x)
    extents = [w.node("Gather", shape, w.constant(np.int64(i)), axis=0) for i in (0, 1)]
    extents = [w.node("Unsqueeze", extent, w.constant(np.array([0]))) for extent in extents]
    target = w.node("Concat", *extents, w.constant(np.array([heads, size])), axis=0)
    return w.node("Transpose", w.node("Reshape", x, target), perm=list(perm))


def bert_layer(
    batch: int = 1, seq: int = 128, hidden: int = 768, heads: int = 12, ffn: int = 3072, masked: bool = True
) -> onnx.ModelProto:
    """One layer of BERT, decomposed: attention with a mask of large negative numbers, GELU by Erf, two norms."""
    w, size = ModelWriter(opset=14, seed=3), hidden // heads
    q, k, v = (_linear(w, "x", hidden, hidden) for _ in range(3))
    q, v = (_heads(w, t, heads, size, (0, 2, 1, 3)) for t in (q, v))
    k = _heads(w, k, heads, size, (0, 2, 3, 1))
    scores = w.node("Div", w.node("MatMul", q, k), w.constant(np.float32(np.sqrt(size))))
    if masked:
        hidden_keys = w.node("Sub", w.constant(np.float32(1)), "mask")
        scores = w.node("Add", scores, w.node("Mul", hidden_keys, w.constant(np.float32(-10000))))
    context = w.node("MatMul", w.node("Softmax", scores, axis=-1), v)
    context = w.node("Transpose", context, perm=[0, 2, 1, 3])
    context = w.node("Reshape", context, w.constant(np.array([0, 0, hidden])))
    x = _layer_norm(w, w.node("Add", _linear(w, context, hidden, hidden), "x"), hidden)
    y = _linear(w, _gelu(w, _linear(w, x, hidden, ffn)), ffn, hidden)
    result = _layer_norm(w, w.node("Add", y, x), hidden)
    inputs: dict[str, Sequence[int | str]] = {"x": [batch, seq, hidden]}
    return w.model(inputs | ({"mask": [batch, 1, 1, seq]} if masked else {}), [result])


def node_model(
    operator: str,
    inputs: Sequence[Array],
    attributes: dict[str, Any] | None = None,
    opset: int = 17,
    constants: Sequence[Array | None] = (),
    outputs: int = 1,
) -> onnx.ModelProto:
    """One node: its `inputs` are the model's inputs, then come `constants` (None: left out)."""
    names = [f"x{i}" for i in range(len(inputs))]
    known = [(f"c{i}" if value is not None else "", value) for i, value in enumerate(constants)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(operator, [*names, *(name for name, _ in known)], results, "node", **(attributes or {}))
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in zip(names, inputs, strict=True)
    ]
    unknown = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in results]
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in known if value is not None]
    graph = helper.make_graph([node], "one", infos, unknown, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model, strict_mode=True)


def text_model(
    nodes: str, inputs: str, outputs: str, opset: int = 18, domains: str = "", **constants: Array
) -> onnx.ModelProto:
    """A model from ONNX's text, `y = Relu(x) z = Exp(y)`, its nodes named by operator and number.

    `domains` are further opsets as the text has them: `, "some.domain" : 1`.
    """
    head = f'<ir_version: 9, opset_import: ["" : {opset}{domains}]>'
    model = onnx.parser.parse_model(f"{head} g ({inputs}) => ({outputs}) {{ {nodes} }}")
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    for number, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}_{number}"
    return model


def packed_mlp(batch: int = 4, sizes: Sequence[int] = (300, 256, 272, 244)) -> onnx.ModelProto:
    """Weights of few bits: MatMulNBits with and without zero points, a MatMul behind a DequantizeLinear."""
    rng, nodes, known, x = np.random.default_rng(9), list[onnx.NodeProto](), dict[str, Array](), "x"

    def scales(fan_in: int, *size: int) -> Array:
        return ((0.5 + rng.random(size)) / (4 * np.sqrt(fan_in))).astype(np.float32)

    for i, (k, n) in enumerate(pairwise(sizes)):
        result = f"product_{i}"
        if i < 2:
            block, names = (32, 16)[i], [f"w{i}", f"s{i}", f"z{i}"][: 3 - i]
            blocks = -(-k // block)
            known[names[0]] = rng.integers(0, 256, (n, blocks, block // 2)).astype(np.uint8)
            known[names[1]] = scales(k, n, blocks)
            if i == 0:
                known[names[2]] = rng.integers(0x66, 0x99, (n, -(-blocks // 2))).astype(np.uint8)
            more: dict[str, Any] = {"domain": "com.microsoft", "N": n, "K": k, "bits": 4, "block_size": block}
            nodes.append(helper.make_node("MatMulNBits", [x, *names], [result], result, **more))
            known[f"b{i}"] = rng.standard_normal(n).astype(np.float32)
            nodes.append(helper.make_node("Add", [result, f"b{i}"], [f"sum_{i}"], f"sum_{i}"))
            x = f"act_{i}"
            nodes.append(helper.make_node("Relu", [f"sum_{i}"], [x], x))
        else:
            known[f"w{i}"] = rng.integers(-8, 8, (n, k)).astype(ml_dtypes.int4)
            known[f"s{i}"] = scales(k, n, -(-k // 64))
            nodes.append(
                helper.make_node("DequantizeLinear", [f"w{i}", f"s{i}"], [f"f{i}"], f"f{i}", axis=1, block_size=64)
            )  # right before a MatMul, onnxruntime would round the activations to bytes
            nodes.append(helper.make_node("Transpose", [f"f{i}"], [f"t{i}"], f"t{i}", perm=[1, 0]))
            nodes.append(helper.make_node("MatMul", [x, f"t{i}"], [result], result))
            x = result
    infos = [helper.make_tensor_value_info(*each) for each in (("x", 1, [batch, sizes[0]]), (x, 1, [batch, sizes[-1]]))]
    constants = [numpy_helper.from_array(array, name) for name, array in known.items()]
    graph = helper.make_graph(nodes, "packed", infos[:1], infos[1:], constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)
