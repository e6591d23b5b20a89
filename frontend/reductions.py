"""Reductions and normalisations of which ONNX has further forms: no axes, truth values, more results."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import SSAValue

from ..dialects.graph.activations import AbsOp, LogOp, ReciprocalOp, SqrtOp
from ..dialects.graph.arithmetic import AddOp, EqOp, MulOp, SubOp
from ..dialects.graph.elementwise import CastOp, WhereOp
from ..dialects.graph.norm import BatchNormOp, GroupNormOp, LayerNormOp, RMSNormOp
from ..dialects.graph.op import ShapeError, element, f32, i1, i32, shape, u8
from ..dialects.graph.properties import integer, number
from ..dialects.graph.reduce import (
    ReduceBase,
    ReduceL1Op,
    ReduceMaxOp,
    ReduceMeanOp,
    ReduceMinOp,
    ReduceProdOp,
    ReduceSumOp,
    ReduceSumSquareOp,
)
from ..dialects.graph.reduce_roots import ReduceL2Op, ReduceLogSumExpOp, ReduceLogSumOp
from ..dialects.graph.views import ExpandOp, ReshapeOp, normal_axis
from .movement import along
from .node import Node, Value

Reduction = Callable[[Node], Sequence[Value]]


def reduction(kind: type[ReduceBase]) -> Reduction:
    """A reduction; over no axes (a scalar's, or with `noop_with_empty_axes`), what it does to each element is left."""

    def expand(node: Node) -> Sequence[Value]:
        axes, x = node.attributes.get("axes") if node.opset < kind.AXES_INPUT else node.known(1), node.operand(0)
        empty = axes is None or not len(axes)
        if not shape(x) or (empty and node.attributes.get("noop_with_empty_axes", 0)):
            return [_alone(node, kind)]
        if element(x) != i1 or kind not in (ReduceMaxOp, ReduceMinOp):
            return [node.one(kind)]
        _, properties = kind.from_onnx(node.attributes, node.constants(), node.opset)
        found = node.emit(kind, node.emit(CastOp, x, element=u8), **properties)
        return [node.emit(CastOp, found, element=i1)]

    return expand


def _alone(node: Node, kind: type[ReduceBase]) -> Value:
    x = node.operand(0)
    if kind in (ReduceL1Op, ReduceL2Op):
        return node.emit(AbsOp, x)
    if kind is ReduceSumSquareOp:
        return node.emit(MulOp, x, x)
    if kind is not ReduceLogSumOp:
        return x
    if element(x) != i32:
        return node.emit(LogOp, x)
    return node.emit(kind, node.emit(ReshapeOp, x, shape=[*shape(x), 1]), axes=[len(shape(x))])


def hardmax(node: Node) -> Sequence[Value]:
    """1 where a row has its largest value for the first time, else 0; up to opset 12 a row is all axes from one on."""
    x = node.operand(0)
    size, kind = shape(x), element(x)
    place = normal_axis(node.attributes.get("axis", 1 if node.opset < 13 else -1), len(size))
    if node.opset < 13:
        x = node.emit(ReshapeOp, x, shape=[math.prod(size[:place]), math.prod(size[place:])])
        place = 1
    count = shape(x)[place]
    places = node.builder.constant(along(np.arange(count, dtype=np.int32), place, len(shape(x))))
    beyond = node.builder.constant(np.array(count, np.int32))
    top = node.emit(ReduceMaxOp, x, axes=[place], keepdims=True)
    found = node.emit(WhereOp, node.emit(EqOp, x, top), places, beyond)
    first = node.emit(ReduceMinOp, found, axes=[place], keepdims=True)
    return [node.emit(ReshapeOp, node.emit(CastOp, node.emit(EqOp, places, first), element=kind), shape=size)]


def layer_norm(node: Node) -> Sequence[Value]:
    """The normalised tensor; if they are asked for, the mean and the inverse of the standard deviation, f32."""
    y = node.one(LayerNormOp)
    if not any(node.proto.output[1:]):
        return [y]
    _, properties = LayerNormOp.from_onnx(node.attributes, node.constants(), node.opset)
    x, epsilon = node.operand(0), number(properties, "epsilon")
    rank = len(shape(x))
    axes = list(range(normal_axis(integer(properties, "axis"), rank), rank))
    mean = node.emit(ReduceMeanOp, x, element=f32, axes=axes, keepdims=True)
    centred = node.emit(SubOp, x, mean, element=f32)
    squares = node.emit(MulOp, centred, centred, element=f32)
    variance = node.emit(ReduceMeanOp, squares, element=f32, axes=axes, keepdims=True)
    shifted = node.emit(AddOp, variance, node.builder.constant(np.array(epsilon, np.float32)), element=f32)
    return [y, mean, node.emit(ReciprocalOp, node.emit(SqrtOp, shifted))]


def simplified_layer_norm(node: Node) -> Sequence[Value]:
    """Root mean square normalisation as onnxruntime writes it, in the domain ai.onnx; then the inverse root, f32."""
    y = node.one(RMSNormOp)
    if not any(node.proto.output[1:]):
        return [y]
    _, properties = RMSNormOp.from_onnx(node.attributes, node.constants(), node.opset)
    x, rank = node.operand(0), len(shape(node.operand(0)))
    axes = list(range(normal_axis(integer(properties, "axis"), rank), rank))
    squares = node.emit(MulOp, x, x, element=f32)
    mean = node.emit(ReduceMeanOp, squares, element=f32, axes=axes, keepdims=True)
    shifted = node.emit(AddOp, mean, node.builder.constant(np.array(number(properties, "epsilon"), np.float32)))
    return [y, node.emit(ReciprocalOp, node.emit(SqrtOp, shifted))]


def batch_norm(node: Node) -> Sequence[Value]:
    """That of inference; in training mode by the batch's own mean and variance, which move the running ones."""
    if node.opset < 9 and not node.attributes.get("spatial", 1):
        return [_per_place(node)]
    if not node.attributes.get("training_mode", 0):
        return [node.one(BatchNormOp)]
    x, epsilon = node.operand(0), float(node.attributes.get("epsilon", 1e-5))
    axes = [axis for axis in range(len(shape(x))) if axis != 1]
    mean = node.emit(ReduceMeanOp, x, element=f32, axes=axes, keepdims=True)
    centred = node.emit(SubOp, x, mean, element=f32)
    variance = node.emit(ReduceMeanOp, node.emit(MulOp, centred, centred, element=f32), axes=axes, element=f32)
    mean = node.emit(ReshapeOp, mean, shape=[shape(x)[1]])
    y = node.emit(BatchNormOp, x, node.operand(1), node.operand(2), mean, variance, epsilon=epsilon)
    return [y, *(_moving(node, index, own) for index, own in ((3, mean), (4, variance)))]


def _per_place(node: Node) -> SSAValue:
    """With statistics of each place of each channel, which was a form before opset 9."""
    x, size = node.operand(0), shape(node.operand(0))
    count = math.prod(size[1:])
    flat = [node.emit(ReshapeOp, node.operand(index), shape=[count]) for index in range(1, 5)]
    y = node.emit(ReshapeOp, x, shape=[size[0], count])
    y = node.emit(BatchNormOp, y, *flat, epsilon=float(node.attributes.get("epsilon", 1e-5)))
    return node.emit(ReshapeOp, y, shape=size)


def _moving(node: Node, index: int, own: SSAValue) -> SSAValue:
    """What was known, by the momentum, and what is new."""
    momentum, before = float(node.attributes.get("momentum", 0.9)), node.operand(index)
    old = node.emit(MulOp, before, node.builder.constant(np.array(momentum, np.float32)), element=f32)
    new = node.emit(MulOp, own, node.builder.constant(np.array(1 - momentum, np.float32)), element=f32)
    return node.emit(AddOp, old, new, element=element(before))


def group_norm(node: Node) -> Sequence[Value]:
    """Before opset 21, scale and bias are per group."""
    if node.opset >= 21:
        return [node.one(GroupNormOp)]
    x, groups = node.operand(0), node.attributes["num_groups"]
    channels = (*shape(x), 0, 0)[1]
    if groups < 1 or channels % groups:
        raise ShapeError(f"the groups divide the channels (found {groups} and {channels})")
    size = (groups, channels // groups)
    given = [node.emit(ReshapeOp, node.operand(index), shape=[groups, 1]) for index in (1, 2)]
    wide = [node.emit(ExpandOp, value, shape=size) for value in given]
    flat = [node.emit(ReshapeOp, value, shape=[math.prod(size)]) for value in wide]
    _, properties = GroupNormOp.from_onnx(node.attributes, node.constants(), node.opset)
    return [node.emit(GroupNormOp, x, *flat, **properties)]


REDUCTIONS: dict[str, Reduction] = {
    form.name: reduction(kind)
    for kind in (
        *(ReduceSumOp, ReduceMeanOp, ReduceMaxOp, ReduceMinOp, ReduceProdOp),
        *(ReduceL1Op, ReduceL2Op, ReduceSumSquareOp, ReduceLogSumOp, ReduceLogSumExpOp),
    )
    for form in kind.ONNX
}
