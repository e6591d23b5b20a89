"""Models of a hostile user: odd shapes, and graphs at the edge of what ONNX allows."""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx_models import node_model

Array = NDArray[Any]
Make = Callable[[], onnx.ModelProto]
INT64, INT32, BOOL, FLOAT16, UINT8 = (getattr(TensorProto, n) for n in ("INT64", "INT32", "BOOL", "FLOAT16", "UINT8"))
FLOAT: int = TensorProto.FLOAT


def noise(*shape: int, seed: int = 0, scale: float = 1.0) -> Array:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


def made(
    source: str, outputs: str = "", types: Mapping[str, int] | None = None, **values: Sequence[int] | Array
) -> Make:
    """A model of several nodes, as `a = MatMul(x, w); y = Add(a, b)`; `_` is an input left out.

    Of `values`, shapes are inputs and arrays are constants. Without `outputs` the last result is the output. Inputs
    and outputs are f32 unless `types` says otherwise.
    """

    def make() -> onnx.ModelProto:
        nodes = [_node(statement) for statement in ast.parse(source).body]
        names, kinds = outputs.split() or nodes[-1].output, types or {}
        inputs = {name: value for name, value in values.items() if not isinstance(value, np.ndarray)}
        infos = [helper.make_tensor_value_info(n, kinds.get(n, FLOAT), shape) for n, shape in inputs.items()]
        results = [helper.make_tensor_value_info(n, kinds.get(n, FLOAT), None) for n in names]
        constants = [numpy_helper.from_array(a, n) for n, a in values.items() if isinstance(a, np.ndarray)]
        graph = helper.make_graph(nodes, "hostile", infos, results, constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model)

    return make


def _node(statement: ast.stmt) -> onnx.NodeProto:
    """A node, named after its first result."""
    assert isinstance(statement, ast.Assign)
    call = statement.value
    assert isinstance(call, ast.Call)
    results = ast.unparse(statement.targets[0]).strip("()").split(", ")
    operands = [ast.unparse(each).replace("_", "") for each in call.args]
    attributes = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    return helper.make_node(ast.unparse(call.func), operands, results, results[0], **attributes)


def conv(x: Sequence[int], filters: int, *kernel: int, **attributes: Any) -> Make:
    def make() -> onnx.ModelProto:
        depth = x[1] // attributes.get("group", 1)
        weight = noise(filters, depth, *kernel, scale=float(1 / np.sqrt(depth * np.prod(kernel))))
        return node_model("Conv", [zeros(*x)], attributes, constants=[weight, noise(filters, seed=1)])

    return make


def matmul(a: Sequence[int], b: Sequence[int], constant: bool = True) -> Make:
    def make() -> onnx.ModelProto:
        weight = noise(*b, scale=float(1 / np.sqrt(a[-1])))
        return (
            node_model("MatMul", [zeros(*a)], constants=[weight])
            if constant
            else node_model("MatMul", [zeros(*a), weight])
        )

    return make


def one(
    operator: str, *inputs: Sequence[int], constants: Sequence[Array | None] = (), opset: int = 17, **attributes: Any
) -> Make:
    return lambda: node_model(operator, [zeros(*shape) for shape in inputs], attributes, opset, constants)


def attention(heads: int, m: int, n: int, depth: int) -> Make:
    return made(
        "s = MatMul(q, k); t = Mul(s, c); p = Softmax(t, axis=-1); y = MatMul(p, v)",
        q=[1, heads, m, depth],
        k=[1, heads, depth, n],
        v=[1, heads, n, depth],
        c=np.asarray(np.float32(0.3)),
    )


PAD = [1, 1, 1, 1]
W = noise(8, 8, seed=3, scale=0.4)
CONVOLUTIONS: dict[str, Make] = {
    "batch 3": conv((3, 5, 9, 7), 6, 3, 3, pads=PAD),
    "batch 3, stride 2, 17 to 33 channels": conv((3, 17, 9, 7), 33, 3, 3, pads=PAD, strides=[2, 2]),
    "1×1 image": conv((1, 16, 1, 1), 16, 1, 1),
    "1×1 image under a 3×3 kernel": conv((2, 3, 1, 1), 4, 3, 3, pads=PAD),
    "1 channel": conv((1, 1, 8, 8), 5, 3, 3, pads=PAD),
    "17 channels": conv((1, 17, 8, 8), 17, 3, 3),
    "33 channels, 1×1": conv((1, 33, 5, 6), 33, 1, 1),
    "33 channels, 1×1, stride 2": conv((1, 33, 5, 6), 33, 1, 1, strides=[2, 2]),
    "4 channels, 1×1": conv((1, 4, 5, 6), 5, 1, 1),
    "kernel larger than the image": conv((1, 3, 4, 4), 5, 7, 7, pads=[3, 3, 3, 3]),
    "kernel larger than the image, lopsided": conv((1, 3, 2, 3), 5, 5, 7, pads=[4, 0, 0, 6]),
    "kernel as large as the image": conv((1, 8, 6, 6), 5, 6, 6),
    "dilated": conv((1, 8, 12, 12), 5, 3, 3, dilations=[3, 2], pads=[2, 1, 0, 3]),
    "two groups": conv((2, 6, 7, 7), 10, 3, 3, group=2, pads=PAD),
    "three groups of 17": conv((1, 51, 7, 7), 33, 3, 3, group=3, pads=PAD),
    "groups of one channel, two filters each": conv((1, 8, 9, 9), 16, 3, 3, group=8, pads=PAD),
    "depthwise, 17 channels": conv((2, 17, 9, 9), 17, 3, 3, group=17, pads=PAD),
    "depthwise, 1×1 image": conv((1, 33, 1, 1), 33, 3, 3, group=33, pads=PAD),
    "depthwise, 5×5, strides 3 and 2": conv((1, 20, 11, 13), 20, 5, 5, group=20, pads=[2] * 4, strides=[3, 2]),
    "padding larger than the kernel": conv((1, 3, 4, 4), 5, 1, 1, pads=[2, 2, 2, 2]),
    "padding larger than the kernel, 16 channels": conv((1, 16, 4, 4), 5, 1, 1, pads=[2, 2, 2, 2]),
    "stride larger than the kernel": conv((1, 16, 9, 9), 5, 1, 1, strides=[4, 5]),
    "wide": conv((1, 3, 2, 700), 5, 1, 9, pads=[0, 4, 0, 4]),
    "tall": conv((1, 16, 700, 2), 5, 9, 1, pads=[4, 0, 4, 0]),
    "rest at the border": conv((1, 5, 10, 10), 7, 3, 3, strides=[3, 4]),
    "SAME_UPPER": conv((1, 5, 10, 11), 7, 4, 4, strides=[2, 2], auto_pad="SAME_UPPER"),
    "SAME_LOWER": conv((1, 5, 10, 11), 7, 4, 4, strides=[2, 2], auto_pad="SAME_LOWER"),
    "deep": conv((1, 300, 3, 3), 7, 3, 3, pads=PAD),
    "one axis": conv((2, 5, 20), 7, 5, pads=[2, 2], strides=[2]),
    "weights that are an input": one("Conv", (1, 4, 6, 6), (5, 4, 3, 3)),
    "transposed": one("ConvTranspose", (1, 5, 4, 4), constants=[noise(5, 3, 2, 2)], strides=[2, 2]),
    "transposed, 3×3, stride 2": one("ConvTranspose", (1, 2, 3, 3), constants=[noise(2, 3, 3, 3)], strides=[2, 2]),
    "transposed, everything odd": one(
        "ConvTranspose", (3, 17, 4, 5), constants=[noise(17, 6, 3, 3)],
        strides=[2, 3], pads=[1, 0, 1, 1], output_padding=[1, 0],
    ),
}  # fmt: skip
PRODUCTS: dict[str, Make] = {
    "n = 1": matmul((5, 7), (7, 1)),
    "k = 1": matmul((5, 1), (1, 7)),
    "m = 1": matmul((1, 7), (7, 5)),
    "k = 2048": matmul((17, 2048), (2048, 17)),
    "k = 2049": matmul((3, 2049), (2049, 5)),
    "k = 4097": matmul((2, 4097), (4097, 33)),
    "n = 6625": matmul((3, 20), (20, 6625)),
    "n = 6625, computed": matmul((3, 20), (20, 6625), constant=False),
    "m = 2000": matmul((2000, 3), (3, 3)),
    "odd": matmul((33, 300), (300, 47)),
    "batches": matmul((2, 3, 5, 7), (2, 3, 7, 3), constant=False),
    "7 odd batches": matmul((7, 3, 33), (7, 33, 5), constant=False),
    "1000 batches": matmul((1000, 1, 8), (1000, 8, 8), constant=False),
    "batch of rows, k = 2049": matmul((3, 1, 2049), (3, 2049, 1), constant=False),
    "right operand without batch": matmul((4, 5, 7), (7, 3), constant=False),
    "a matrix by itself": made("y = MatMul(x, x)", x=[9, 9]),
    "a matrix by its transpose": made("t = Transpose(x, perm=[1, 0]); y = MatMul(x, t)", x=[9, 13]),
    "Gemm, all transposed": one("Gemm", (7, 5), (9, 7), (5, 1), transA=1, transB=1, alpha=0.5, beta=2.0),
    "Gemm with a number": one("Gemm", (5, 7), constants=[noise(7, 9), np.float32(3) * noise(1)[0]]),
    "one query": attention(1, 1, 200, 16),
    "odd attention": attention(3, 17, 33, 13),
}  # fmt: skip


REST: dict[str, Make] = {
    **{f"softmax of {s} over {axis}": one("Softmax", s, axis=axis) for s, axis in (
        ((3, 6625), -1), ((5, 1), -1), ((7, 5), 0), ((2, 5, 3, 4), 1), ((1,), 0), ((33, 257), -1), ((2, 1, 3, 2, 9), 3)
    )},
    "softmax of opset 11": one("Softmax", (2, 3, 4), opset=11, axis=1),
    "log softmax": one("LogSoftmax", (5, 300), axis=-1),
    **{f"transpose {p}": one("Transpose", s, perm=p) for s, p in (
        ((2, 3, 4, 5, 6), (4, 1, 3, 0, 2)), ((3, 2, 5, 1, 7), (4, 3, 2, 1, 0)),
        ((2, 3, 2, 3, 2, 3), (5, 0, 3, 1, 4, 2)),
        ((17, 33, 65), (0, 2, 1)), ((17, 33, 65), (1, 0, 2)), ((300, 500), (1, 0)),
    )},
    "scalars": one("Add", (), ()),
    "a scalar, broadcast": one("Mul", (3, 4), ()),
    "sum to a scalar": one("ReduceSum", (3, 4, 5), keepdims=0),
    "mean over the first and last axis": one("ReduceMean", (3, 14, 5), keepdims=0, axes=[0, 2]),
    "mean over the middle axis": one("ReduceMean", (3, 14, 5), keepdims=0, axes=[1]),
    "max over a long first axis": one("ReduceMax", (1000, 70), axes=[0]),
    "mean over axes 1 and 3 of five": one("ReduceMean", (2, 3, 2, 3, 2), axes=[1, 3]),
    "max pool": one("MaxPool", (3, 17, 9, 9), kernel_shape=[3, 3], strides=[2, 2], pads=PAD),
    "max pool, ceil": one("MaxPool", (3, 17, 8, 8), kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    "max pool of the whole image": one("MaxPool", (3, 17, 9, 9), kernel_shape=[9, 9]),
    "average pool": one("AveragePool", (3, 17, 9, 9), kernel_shape=[3, 3], strides=[2, 2]),
    "average pool that counts padding": one(
        "AveragePool", (1, 3, 9, 9), kernel_shape=[3, 3], pads=PAD, count_include_pad=1
    ),
    "average pool of the whole image": one("AveragePool", (3, 17, 9, 9), kernel_shape=[9, 9]),
    "global average pool, 1×1": one("GlobalAveragePool", (2, 33, 1, 1)),
    "global average pool": one("GlobalAveragePool", (3, 17, 7, 9)),
    "outer sum": one("Add", (3, 1), (1, 4)),
    "broadcast from the middle": one("Add", (4, 1, 5), (1, 3, 1)),
    "broadcast over six axes": one("Add", (2, 1, 3, 1, 5, 1), (1, 4, 1, 2, 1, 3)),
    "broadcast over seven axes": one("Add", (2, 1, 2, 1, 2, 1, 2), (1, 3, 1, 5, 1, 2, 1)),
    "broadcast over eight axes": one("Mul", (2, 1, 2, 1, 2, 1, 2, 1), (1, 2, 1, 3, 1, 2, 1, 17)),
    "three inner axes of seven, summed": one(
        "ReduceSum", (2, 3, 2, 3, 2, 3, 2), constants=[np.array([1, 3, 5])], keepdims=0
    ),
    "broadcast over five axes": one("Mul", (2, 1, 3, 1, 5), (1, 4, 1, 2, 1)),
    "broadcast by channel": one("Add", (2, 17, 5, 5), (17, 1, 1)),
    "smaller operand first": one("Sub", (5,), (3, 5)),
    "a prime number of elements": one("Exp", (100003,)),
    "layer norm of 129": one("LayerNormalization", (3, 7, 129), constants=[noise(129), noise(129, seed=1)], axis=-1),
    "layer norm over two axes": one(
        "LayerNormalization", (3, 7, 13), constants=[noise(7, 13), noise(7, 13, seed=1)], axis=1
    ),
    "instance norm": one("InstanceNormalization", (2, 5, 7, 7), constants=[noise(5), noise(5, seed=1)]),
    "clip from above": one("Clip", (3, 5), constants=[None, np.asarray(np.float32(0.3))]),
}  # fmt: skip
