"""NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: of each place, the score of the class that it should have."""

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Attribute, SSAValue

from ..dialects.graph.activations import NegOp
from ..dialects.graph.arithmetic import DivOp, EqOp, MulOp
from ..dialects.graph.constants import NUMPY
from ..dialects.graph.elementwise import CastOp, WhereOp
from ..dialects.graph.op import FLOATS, InferError, ShapeError, element, f32, i1, shape
from ..dialects.graph.reduce import LogSoftmaxOp, ReduceMeanOp, ReduceSumOp
from ..dialects.graph.views import ReshapeOp
from .movement import along
from .node import Node, Value


def negative_log_likelihood(node: Node) -> Sequence[Value]:
    """−x[n, target[n, …], …] · weight[target], a sum, or a mean by weight; the class `ignore_index` counts nothing."""
    return [_loss(node, node.operand(0))]


def softmax_cross_entropy(node: Node) -> Sequence[Value]:
    """That of the logarithms of a softmax, which are the second output."""
    x = node.operand(0)
    wanted = len(node.proto.output) > 1
    logs = node.emit(LogSoftmaxOp, x, axes=[1], element=element(x) if wanted else f32)
    return [_loss(node, logs), logs]


def _loss(node: Node, logs: SSAValue) -> SSAValue:
    size, target, kind = shape(logs), node.operand(1), element(node.operand(0))
    if kind not in FLOATS or len(size) < 2 or shape(target) != (size[0], *size[2:]):
        raise ShapeError(f"scores are floats [N, C, …], targets [N, …] (found {logs.type} and {target.type})")
    classes = node.materialize(along(np.arange(size[1], dtype=np.int32), 1, len(size)))
    target = node.emit(ReshapeOp, target, shape=[size[0], 1, *size[2:]])
    hit = node.emit(EqOp, target, classes, element=i1)
    chosen = _chosen(node, hit, node.emit(NegOp, logs, element=f32))
    weights = _weights(node, hit, target)
    losses = chosen if weights is None else node.emit(MulOp, chosen, weights, element=f32)
    reduction, every = node.attributes.get("reduction", "mean"), list(range(len(shape(losses))))
    if reduction == "none":
        return _as(node, losses, kind)
    if reduction == "mean" and weights is None:
        return node.emit(ReduceMeanOp, losses, axes=every, element=kind)
    if reduction not in ("mean", "sum"):
        raise InferError(f"reduction is none, sum or mean (found {reduction})", broken=True)
    total = node.emit(ReduceSumOp, losses, axes=every, element=kind if reduction == "sum" else f32)
    if reduction == "sum" or weights is None:
        return total
    return node.emit(DivOp, total, node.emit(ReduceSumOp, weights, axes=every, element=f32), element=kind)


def _chosen(node: Node, hit: SSAValue, values: SSAValue) -> SSAValue:
    """The value of the class that each place hits, 0 if it hits none: a sum with at most one term."""
    none = node.materialize(np.zeros((), NUMPY[element(values)]))
    return node.emit(ReduceSumOp, node.emit(WhereOp, hit, values, none, element=f32), axes=[1], element=f32)


def _weights(node: Node, hit: SSAValue, target: SSAValue) -> SSAValue | None:
    """The weight of each place, None if all are 1."""
    ignored, given = node.attributes.get("ignore_index"), node.inputs[2] if len(node.inputs) > 2 else None
    if given is None and ignored is None:
        return None
    if given is None:
        size = [n for i, n in enumerate(shape(target)) if i != 1]
        weights = node.materialize(np.ones((), np.float32))
        target = node.emit(ReshapeOp, target, shape=size)
    else:
        table = node.emit(ReshapeOp, node.materialize(given), shape=[1, -1, *[1] * (len(shape(hit)) - 2)])
        weights = _chosen(node, hit, table)
        target = node.emit(ReshapeOp, target, shape=shape(weights))
    if ignored is None:
        return weights
    out = node.emit(EqOp, target, node.materialize(np.array(ignored, np.int32)), element=i1)
    return node.emit(WhereOp, out, node.materialize(np.zeros((), np.float32)), weights, element=f32)


def _as(node: Node, x: SSAValue, kind: Attribute) -> SSAValue:
    return x if element(x) == kind else node.emit(CastOp, x, element=kind)
