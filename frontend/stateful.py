"""CausalConvWithState and LinearAttention: what they keep from one run to the next is an operand and a result."""

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from ..dialects.graph.activations import ExpOp, SiluOp
from ..dialects.graph.arithmetic import AddOp, MulOp, SubOp
from ..dialects.graph.constants import NUMPY
from ..dialects.graph.contract import MatMulOp
from ..dialects.graph.conv import ConvOp
from ..dialects.graph.elementwise import CastOp
from ..dialects.graph.op import FLOATS, InferError, ShapeError, element, f32, shape
from ..dialects.graph.views import ConcatOp, ExpandOp, PadOp, ReshapeOp, SliceOp, TransposeOp
from .movement import join
from .node import Node, Value

MOST_STEPS = 64
"""Time steps of LinearAttention, which are a few kernels each; a stream that is decoded has one."""
RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}
"""Whether the state decays, and whether what it already holds is subtracted."""


def _optional(node: Node, index: int) -> SSAValue | None:
    given = node.inputs[index] if index < len(node.inputs) else None
    return None if given is None or 0 in getattr(given, "shape", ()) else node.materialize(given)


# convolution ----------------------------------------------------------------------------------------------------------
def causal_conv(node: Node) -> Sequence[Value]:
    """Each channel by its own kernel over itself and what came before; the end of it is the next state."""
    x, weight, past = node.operand(0), node.operand(1), _optional(node, 3)
    if element(x) not in FLOATS or len(shape(x)) != 3 or len(shape(weight)) != 3:
        raise ShapeError(f"the operand is [N, C, positions], the weight [C, 1, k] (found {x.type} and {weight.type})")
    (n, channels, count), before = shape(x), shape(weight)[2] - 1
    whole = node.emit(PadOp, x, before=[0, 0, before], after=[0, 0, 0]) if past is None and before else x
    whole = whole if past is None else node.emit(ConcatOp, past, x, axis=2)
    bias, unit = _optional(node, 2), [1]
    y = node.emit(
        ConvOp, whole, weight, bias, kernel=[before + 1], strides=unit, pads=[0, 0], dilations=unit, groups=channels
    )
    activation = node.attributes.get("activation", "none")
    if activation not in ("none", "silu", "swish"):
        raise InferError(f"activation is none, silu or swish (found {activation})", broken=True)
    y = y if activation == "none" else node.emit(SiluOp, y)
    if not before:
        return [y, np.zeros([n, channels, 0], NUMPY[element(x)])]
    return [y, node.emit(SliceOp, whole, starts=[0, 0, count], sizes=[n, channels, before], steps=[1, 1, 1])]


# attention ------------------------------------------------------------------------------------------------------------
def linear_attention(node: Node) -> Sequence[Value]:
    """S ← exp(g)·S + k ⊗ v, or with β·(v − Sᵀ·k) for v; y = scale·Sᵀ·q: one step after the other."""
    rule = node.attributes.get("update_rule", "gated_delta")
    heads, shared = node.attributes["q_num_heads"], node.attributes["kv_num_heads"]
    if rule not in RULES or heads % shared:
        raise InferError(f"update_rule is one of {', '.join(RULES)}, heads are shared evenly (found {rule}, {heads})")
    gated, corrected = RULES[rule]
    q, k, v = (node.operand(index) for index in range(3))
    n, steps, width = shape(q)
    depth, values = width // heads, shape(v)[2] // shared
    if steps > MOST_STEPS:
        raise InferError(f"LinearAttention has at most {MOST_STEPS} positions in one run (found {steps})")
    q = node.emit(MulOp, q, _number(node, node.attributes.get("scale", 0.0) or 1 / math.sqrt(depth)), element=f32)
    q = _by_step(node, q, shared, heads // shared, depth)
    k, v = _by_step(node, k, shared, depth, 1), _by_step(node, v, shared, 1, values)
    decay = _by_step(node, node.emit(ExpOp, node.operand(4), element=f32), shared, None, 1) if gated else None
    rate = _rate(node, shared) if corrected else None
    given = _optional(node, 3)
    kind = element(node.operand(0)) if given is None else element(given)
    nothing = node.materialize(np.zeros((), np.float32))
    state = node.emit(ExpandOp, nothing, shape=[n, shared, depth, values]) if given is None else _wide(node, given)
    found = list[SSAValue]()
    for step in range(steps):
        key, value = _at(node, k, step), _at(node, v, step)
        if decay is not None:
            state = node.emit(MulOp, state, _at(node, decay, step), element=f32)
        if rate is not None:
            row = node.emit(ReshapeOp, key, shape=[n, shared, 1, depth])
            value = node.emit(SubOp, value, node.emit(MatMulOp, row, state, element=f32), element=f32)
            value = node.emit(MulOp, value, _at(node, rate, step), element=f32)
        state = node.emit(AddOp, state, node.emit(MulOp, key, value, element=f32), element=f32)
        y = node.emit(MatMulOp, _at(node, q, step), state, element=element(node.operand(0)))
        found.append(node.emit(ReshapeOp, y, shape=[n, 1, heads * values]))
    return [join(node, found, 1), state if kind == f32 else node.emit(CastOp, state, element=kind)]


def _by_step(node: Node, x: SSAValue, heads: int, rows: int | None, columns: int) -> SSAValue:
    """[N, steps, heads·rows·columns] as [steps, N, heads, rows, columns], f32."""
    n, steps, width = shape(x)
    rows = width // (heads * columns) if rows is None else rows
    if width != heads * rows * columns:
        raise ShapeError(f"the features are {heads} heads of {rows * columns} (found {width})")
    x = node.emit(TransposeOp, _wide(node, x), perm=[1, 0, 2])
    return node.emit(ReshapeOp, x, shape=[steps, n, heads, rows, columns])


def _rate(node: Node, heads: int) -> SSAValue:
    """β of each step and head, or of all heads."""
    beta = node.operand(5)
    return _by_step(node, beta, 1 if shape(beta)[2] == 1 else heads, 1, 1)


def _at(node: Node, x: SSAValue, step: int) -> SSAValue:
    size = shape(x)[1:]
    part = node.emit(SliceOp, x, starts=[step, 0, 0, 0, 0], sizes=[1, *size], steps=[1] * 5)
    return node.emit(ReshapeOp, part, shape=size)


def _wide(node: Node, x: SSAValue) -> SSAValue:
    return x if element(x) == f32 else node.emit(CastOp, x, element=f32)


def _number(node: Node, value: float) -> SSAValue:
    return node.builder.constant(np.array(value, np.float32))
