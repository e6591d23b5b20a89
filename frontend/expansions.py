"""ONNX operators that are no op of the dialect but a few of them, or none."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx

from ..dialects.graph.activations import ReluOp
from ..dialects.graph.arithmetic import AddOp, DivOp, FmodOp, MaxOp, MinOp, ModOp, MulOp, PowOp
from ..dialects.graph.elementwise import CastOp
from ..dialects.graph.op import FLOATS, GraphOp, InferError, element, i32, i64
from ..dialects.graph.views import ReshapeOp, normal_axis
from .einsum import einsum
from .inputs import ELEMENTS
from .integer_products import conv_integer, matmul_integer
from .movement import MOVEMENT
from .node import Node, Value, size_of
from .reductions import REDUCTIONS, group_norm, hardmax, layer_norm
from .resizing import resize

Expansion = Callable[[Node], Sequence[Value]]


def identity(node: Node) -> Sequence[Value]:
    """Identity, and Dropout at inference."""
    training = node.known(2) if node.operator == "Dropout" and len(node.inputs) > 2 else None
    if training is not None and training.any():
        raise InferError("dropout is that of inference (found training_mode = true)")
    return [node.given(0)]


def cast(node: Node) -> Sequence[Value]:
    """A change of element type; i64 inside a graph is i32."""
    target = ELEMENTS.get(node.attributes["to"])
    if target is None:
        found = onnx.TensorProto.DataType.Name(node.attributes["to"])
        raise InferError(f"values hold f32, f16, bf16, integers or truth values (found a cast to {found})")
    x, target = node.operand(0), i32 if target == i64 else target
    return [x if element(x) == target else node.emit(CastOp, x, element=target)]


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
        raise InferError(f"an axis that leaves has extent 1 (found {wide[0]})")
    return reshape(node, [n for axis, n in enumerate(size) if axis not in gone])


def unsqueeze(node: Node) -> Sequence[Value]:
    """Axes of extent 1 come in; they are counted in the result."""
    size, axes = list(size_of(node.given(0))), _axes(node)
    if axes is None:
        raise InferError("axes are given (found none)")
    rank = len(size) + len(axes)
    for axis in sorted(normal_axis(axis, rank) for axis in axes):
        size.insert(axis, 1)
    return reshape(node, size)


def variadic(kind: type[GraphOp]) -> Expansion:
    """Two inputs at a time, from the left."""

    def expand(node: Node) -> Sequence[Value]:
        result = node.operand(0)
        for index in range(1, len(node.inputs)):
            result = node.emit(kind, result, node.operand(index))
        return [result]

    return expand


def mean(node: Node) -> Sequence[Value]:
    """The sum, divided by the number of inputs."""
    total = node.materialize(variadic(AddOp)(node)[0])
    return [
        node.emit(DivOp, total, node.builder.constant(np.array(len(node.inputs), np.float32)), element=element(total))
    ]


def remainder(node: Node) -> Sequence[Value]:
    """With the sign of the divisor, or with `fmod` that of the dividend."""
    kind = FmodOp if node.attributes.get("fmod", 0) else ModOp
    return [node.emit(kind, node.operand(0), node.operand(1))]


def power(node: Node) -> Sequence[Value]:
    """x to the power of y; a constant y may have another type than x."""
    x, y = node.operand(0), node.given(1)
    if isinstance(y, np.ndarray) and element(x) in FLOATS and y.dtype.kind in "iu":
        y = y.astype(np.float32)
    exponent = node.materialize(y)
    if element(x) in FLOATS and element(exponent) not in FLOATS:
        exponent = node.emit(CastOp, exponent, element=element(x))
    return [node.emit(PowOp, x, exponent, element=element(x))]


def prelu(node: Node) -> Sequence[Value]:
    """max(x, 0) + slope·min(x, 0)."""
    x, slope = node.operand(0), node.operand(1)
    zero = node.builder.constant(np.array(0, np.float32))
    negative = node.emit(MulOp, node.emit(MinOp, x, zero, element=element(x)), slope, element=element(x))
    return [node.emit(AddOp, node.emit(ReluOp, x), negative)]


EXPANSIONS: Mapping[str, Expansion] = {
    **REDUCTIONS,
    **MOVEMENT,
    "Cast": cast,
    "ConvInteger": conv_integer,
    "Dropout": identity,
    "Einsum": einsum,
    "Flatten": flatten,
    "GroupNormalization": group_norm,
    "Hardmax": hardmax,
    "Identity": identity,
    "LayerNormalization": layer_norm,
    "MatMulInteger": matmul_integer,
    "Max": variadic(MaxOp),
    "Mean": mean,
    "Min": variadic(MinOp),
    "Mod": remainder,
    "PRelu": prelu,
    "Pow": power,
    "Resize": resize,
    "Squeeze": squeeze,
    "Sum": variadic(AddOp),
    "Unsqueeze": unsqueeze,
    "Upsample": resize,
}
"""Operators of the domain ai.onnx by name; they come before the operators of the dialect."""
