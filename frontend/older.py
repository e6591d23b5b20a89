"""Nodes of old opsets in the form of later ones: attributes that became inputs or rules, defaults that changed."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from xdsl.ir import SSAValue

from ..dialects.graph.op import InferError
from ..dialects.graph.views import ReshapeOp, normal_axis
from .model_file import Array
from .node import AI_ONNX, Node, Value, size_of

Rule = Callable[[Node], Node]


def modern(node: Node) -> Node:
    """The node as the first opset that knows today's form would have it. Raises `InferError`."""
    until, rule = OLDER.get(node.operator, (0, None))
    if rule is None or node.opset >= until or node.domain != AI_ONNX:
        return node
    return replace(rule(node), opset=until)


def _changed(node: Node, drop: tuple[str, ...] = (), inputs: list[Value | None] | None = None, **new: Any) -> Node:
    """The node without some attributes, with others, and with these inputs."""
    gone = {*drop, "consumed_inputs"}
    attributes = {name: value for name, value in node.attributes.items() if name not in gone} | new
    given = list(node.inputs) if inputs is None else inputs
    names = [node.proto.input[i] if i < len(node.proto.input) else f"{node.name}:{i}" for i in range(len(given))]
    proto = helper.make_node(node.operator, names, node.proto.output, node.proto.name, **attributes)
    return replace(node, proto=proto, attributes=attributes, inputs=given)


def _reshaped(node: Node, value: Value, size: list[int]) -> Value:
    return node.emit(ReshapeOp, value, shape=size) if isinstance(value, SSAValue) else value.reshape(size)


def plain(node: Node) -> Node:
    """`consumed_inputs` said which memory may be written over."""
    return _changed(node)


def defaults(**values: Any) -> Rule:
    """Attributes whose defaults changed, or that had none later."""
    return lambda node: _changed(node, **{key: v for key, v in values.items() if key not in node.attributes})


def aligned(node: Node) -> Node:
    """Before opset 7 the second operand is spread over the first one only if `broadcast` says so, from `axis` on."""
    a, b = node.given(0), node.given(1)
    rank, size = len(size_of(a)), size_of(b)
    if not node.attributes.get("broadcast", 0):
        if size != size_of(a):
            raise InferError(f"without broadcast the operands have one shape (found {size_of(a)} and {size})")
    elif "axis" in node.attributes and len(size) < rank and math.prod(size) != 1:
        axis = normal_axis(node.attributes["axis"], rank)
        if axis + len(size) > rank:
            raise InferError(f"the second operand lies within the first (found axis {axis}, {size} of {size_of(a)})")
        b = _reshaped(node, b, [*size, *[1] * (rank - axis - len(size))])
    return _changed(node, ("axis", "broadcast"), [a, b])


def cast(node: Node) -> Node:
    """The type was named by a string."""
    name = node.attributes["to"]
    if name not in TensorProto.DataType.keys():  # noqa: SIM118 - no mapping
        raise InferError(f"a type is one of ONNX's (found {name!r})")
    return _changed(node, to=TensorProto.DataType.Value(name))


def inference(node: Node) -> Node:
    """`is_test` said that a network is not trained."""
    if not node.attributes.get("is_test", 0):
        raise InferError(f"{node.operator} is that of inference (found is_test = 0)")
    return _changed(node, ("is_test",))


def gemm(node: Node) -> Node:
    """c is spread over the product only if `broadcast` says so."""
    a, b, c = (size_of(node.given(index)) for index in range(3))
    if len(a) != 2 or len(b) != 2:
        raise InferError(f"a and b are matrices (found rank {len(a)} and {len(b)})")
    whole = (a[node.attributes.get("transA", 0)], b[1 - node.attributes.get("transB", 0)])
    if not node.attributes.get("broadcast", 0) and c != whole:
        raise InferError(f"without broadcast c has the shape of the product, {whole} (found {c})")
    return _changed(node, ("broadcast",))


def p_relu(node: Node) -> Node:
    """There is one slope, or one for each channel."""
    x, slope = node.given(0), node.given(1)
    count = math.prod(size_of(slope))
    if count != 1 and count != (*size_of(x), 0, 0)[1]:
        raise InferError(f"there is one slope, or one for each channel (found {count} for {size_of(x)})")
    size = [count, *[1] * max(0, len(size_of(x)) - 2)] if count > 1 else [1]
    return _changed(node, inputs=[x, _reshaped(node, slope, size)])


def whole_order(node: Node) -> Node:
    """The order of a norm was a float."""
    p = node.attributes.get("p", 2.0)
    if p != int(p) or p < 1:
        raise InferError(f"the order of a norm is a whole number (found {p})")
    return _changed(node, p=int(p))


def _ints(values: Any) -> Array:
    return np.asarray(values, np.int64).reshape(-1)


def reshape(node: Node) -> Node:
    """The shape was an attribute."""
    if "shape" not in node.attributes:
        raise InferError("Reshape has the attribute shape (found none)")
    return _changed(node, ("shape",), [node.given(0), _ints(node.attributes["shape"])])


def slices(node: Node) -> Node:
    """Starts, ends and axes were attributes."""
    starts, ends = (_ints(node.attributes[name]) for name in ("starts", "ends"))
    axes = _ints(node.attributes.get("axes", range(starts.size)))
    return _changed(node, ("starts", "ends", "axes"), [node.given(0), starts, ends, axes])


def split(node: Node) -> Node:
    """The sizes could be an input."""
    sizes = node.known(1) if len(node.inputs) > 1 else None
    if sizes is None:
        return _changed(node)
    return _changed(node, inputs=[node.given(0)], split=[int(size) for size in sizes.reshape(-1)])


def tile(node: Node) -> Node:
    """There was one axis, and how often."""
    times, axis = node.known(1), node.known(2)
    if times is None or axis is None:
        raise InferError("Tile has tiles and axis (found one of them missing)")
    repeats = np.ones(len(size_of(node.given(0))), np.int64)
    repeats[int(axis.reshape(-1)[0])] = int(times.reshape(-1)[0])
    return _changed(node, inputs=[node.given(0), repeats])


def upsample(node: Node) -> Node:
    """There was a factor of height and one of width."""
    height, width = (float(node.attributes[f"{side}_scale"]) for side in ("height", "width"))
    return _changed(node, ("height_scale", "width_scale"), scales=[1.0, 1.0, height, width])


_FLOATS = (
    *("Abs", "Ceil", "Clip", "Elu", "Exp", "Floor", "HardSigmoid", "InstanceNormalization", "LeakyRelu", "Log"),
    *("Max", "Mean", "Min", "Neg", "Reciprocal", "Relu", "Sigmoid", "Sqrt", "Sum", "Tanh"),
)
_PAIRS = ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")

OLDER: Mapping[str, tuple[int, Rule]] = {
    **dict.fromkeys(_FLOATS, (6, plain)),
    **dict.fromkeys(_PAIRS, (7, aligned)),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), (7, lambda node: _changed(node, ("output_sequence",)))),
    "BatchNormalization": (7, inference),
    "Cast": (6, cast),
    "Concat": (4, defaults(axis=1)),
    "Dropout": (7, inference),
    "Gemm": (7, gemm),
    "GlobalLpPool": (2, whole_order),
    "LpPool": (2, whole_order),
    "PRelu": (7, p_relu),
    "Reshape": (5, reshape),
    "Selu": (6, defaults(alpha=1.6732, gamma=1.0507)),
    "Slice": (10, slices),
    "Split": (2, split),
    "Tile": (6, tile),
    "Upsample": (7, upsample),
}
"""Of each operator the first opset with the later form, and what makes it of an older node."""
