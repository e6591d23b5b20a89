"""Patterns of `recognise`: multiplying and adding constants, folded together and into the weights beside them.

All are computed in f64 and rounded once to the weights' type. They change bits, so they stand before `precision`.
"""

from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation, SSAValue

from ..dialects.graph.activations import NegOp
from ..dialects.graph.arithmetic import AddOp, DivOp, MulOp, SubOp
from ..dialects.graph.constants import NUMPY, constant
from ..dialects.graph.contract import MatMulOp
from ..dialects.graph.conv import ConvOp
from ..dialects.graph.elementwise import AffineOp
from ..dialects.graph.emit import Emit
from ..dialects.graph.norm import BatchNormOp
from ..dialects.graph.op import FLOATS, Array, GraphOp, element, f32, shape
from ..dialects.graph.packed import PackedMatMulOp
from ..dialects.graph.properties import flag, ints, number
from ..dialects.standin import in_order
from .context import CompileContext
from .rewrite import Rewriter
from .values import array_of, users


@dataclass(frozen=True)
class Linear:
    """x·scale + shift with constants of f64."""

    x: SSAValue
    scale: Array
    shift: Array

    @property
    def is_scalar(self) -> bool:
        return self.scale.size == self.shift.size == 1


def linear(op: Operation, ctx: CompileContext) -> Linear | None:
    """What `op` computes, if it multiplies or adds constants and keeps the shape of x."""
    if not isinstance(op, GraphOp) or not op.operands or element(op.results[0]) not in FLOATS:
        return None
    found = _linear(op, ctx)
    return found if found is not None and shape(found.x) == shape(op.results[0]) else None


def _linear(op: GraphOp, ctx: CompileContext) -> Linear | None:
    one, zero = np.ones(()), np.zeros(())
    match op:
        case AffineOp():
            return Linear(op.x, np.asarray(op.immediates[0]), np.asarray(op.immediates[1]))
        case NegOp():
            return Linear(op.x, -one, zero)
        case BatchNormOp():
            return _batch_norm(op, ctx)
        case AddOp() | SubOp() | MulOp() | DivOp():
            pass
        case _:
            return None
    x, y = op.operands
    right = array_of(y, ctx)
    if right is not None and array_of(x, ctx) is None:
        value = right.astype(np.float64)
        return _by_constant(op, value) if not isinstance(op, DivOp) or np.all(value) else None
    left = array_of(x, ctx)
    if left is None or isinstance(op, DivOp):
        return None
    value = left.astype(np.float64)
    if isinstance(op, MulOp):
        return Linear(y, value, zero)
    return Linear(y, one if isinstance(op, AddOp) else -one, value)


def _by_constant(op: AddOp | SubOp | MulOp | DivOp, value: Array) -> Linear:
    """x ∘ value, where no quotient is by 0."""
    one, zero = np.ones(()), np.zeros(())
    match op:
        case AddOp():
            return Linear(op.x, one, value)
        case SubOp():
            return Linear(op.x, one, -value)
        case MulOp():
            return Linear(op.x, value, zero)
        case DivOp():
            return Linear(op.x, 1 / value, zero)


def _batch_norm(op: BatchNormOp, ctx: CompileContext) -> Linear | None:
    """(x − mean)·gamma ÷ sqrt(variance + ε) + beta, per channel, the second axis."""
    arrays = [array_of(operand, ctx) for operand in op.operands[1:]]
    if any(array is None for array in arrays):
        return None
    gamma, beta, mean, variance = (array.astype(np.float64) for array in arrays if array is not None)
    scale = gamma / np.sqrt(variance + number(op.properties, "epsilon"))
    each = (-1, *[1] * (len(shape(op.x)) - 2))
    return Linear(op.x, scale.reshape(each), (beta - mean * scale).reshape(each))


# linear ops with each other -------------------------------------------------------------------------------------------
def merge_linear(op: GraphOp, rewriter: Rewriter) -> None:
    """(x·s + t)·u + v → x·(s·u) + (t·u + v), numbers only."""
    outer = linear(op, rewriter.ctx)
    if outer is None or not outer.is_scalar or len(users(outer.x)) != 1 or not isinstance(outer.x.owner, Operation):
        return
    inner = linear(outer.x.owner, rewriter.ctx)
    if inner is None or not inner.is_scalar:
        return
    scale, shift = inner.scale * outer.scale, inner.shift * outer.scale + outer.shift
    value = emit_linear(Emit(op, rewriter), inner.x, float(scale.item()), float(shift.item()))
    rewriter.replace_by(op, value, [outer.x.owner] if value is not inner.x else [])


def emit_linear(emit: Emit, x: SSAValue, scale: float, shift: float) -> SSAValue:
    """x·scale + shift by as little as that takes."""
    if scale == 1 and shift == 0:
        return x
    if shift == 0:
        return emit(MulOp, x, emit.constant(scale))
    if scale == 1:
        return emit(AddOp, x, emit.constant(shift))
    return emit(AffineOp, x, scale=scale, shift=shift)


def divide_by_multiplying(op: DivOp, rewriter: Rewriter) -> None:
    """x ÷ constant → x·(1 ÷ constant): the vector engine multiplies four times as fast."""
    found = linear(op, rewriter.ctx)
    array = array_of(op.y, rewriter.ctx)
    if found is None or array is None:
        return
    inverse = rewriter.insert(constant(found.scale.reshape(array.shape).astype(array.dtype), rewriter.ctx.weights))
    rewriter.replace_by(op, Emit(op, rewriter)(MulOp, op.x, inverse.results[0]))


def drop_zero(op: AddOp, rewriter: Rewriter) -> None:
    """x + 0 → x, which only −0 can tell."""
    found = linear(op, rewriter.ctx)
    if found is not None and found.x.type == op.result.type and not np.any(found.shift):
        rewriter.replace(op, [], [found.x])


# linear ops into weights ----------------------------------------------------------------------------------------------
def fold_into_conv(op: GraphOp, rewriter: Rewriter) -> None:
    """conv(x, w, b)·s + t → conv(x, w·s, b·s + t); s and t are numbers or per channel."""
    found = linear(op, rewriter.ctx)
    conv = found.x.owner if found is not None else None
    if found is None or not isinstance(conv, ConvOp):
        return
    weight = array_of(conv.weight, rewriter.ctx)
    bias = None if conv.bias is None else array_of(conv.bias, rewriter.ctx)
    rank = len(shape(conv.result))
    scale, shift = (_per_axis(value, rank, 1) for value in (found.scale, found.shift))
    if weight is None or (conv.bias is not None and bias is None) or scale is None or shift is None:
        return
    if len(users(conv.result)) != 1:
        rewriter.ctx.note(
            "folded into a convolution",
            op,
            "it is the only user of the convolution",
            f"{len(users(conv.result))} users",
        )
        return
    outputs = weight.shape[0]
    scaled = weight * np.broadcast_to(scale, outputs).reshape(-1, *[1] * (weight.ndim - 1))
    moved = (0 if bias is None else bias) * scale + shift
    value = _conv_with(conv, op, rewriter, conv.x, scaled, np.broadcast_to(moved, outputs))
    rewriter.replace_by(op, value, [conv])


def fold_into_next_conv(conv: ConvOp, rewriter: Rewriter) -> None:
    """conv(x·s + t, w, b) → conv(x, w·s, b + Σ w·t), where no padding meets t; s and t are numbers."""
    before = conv.x.owner
    found = linear(before, rewriter.ctx) if isinstance(before, Operation) else None
    if found is None or not found.is_scalar or not isinstance(before, Operation) or len(users(conv.x)) != 1:
        return
    weight = array_of(conv.weight, rewriter.ctx)
    bias = np.float64(0) if conv.bias is None else array_of(conv.bias, rewriter.ctx)
    if weight is None or bias is None or (found.shift.item() != 0 and any(ints(conv.properties, "pads"))):
        return
    total = weight.astype(np.float64).reshape(weight.shape[0], -1).sum(axis=1)
    moved = bias + total * found.shift.item()
    value = _conv_with(conv, conv, rewriter, found.x, weight * found.scale.item(), moved)
    rewriter.replace_by(conv, value, [before])


def _conv_with(conv: ConvOp, at: GraphOp, rewriter: Rewriter, x: SSAValue, weight: Array, bias: Array) -> SSAValue:
    """`conv` with another operand, weight and bias, before `at`."""
    kind = NUMPY[element(conv.weight)]
    parts = [constant(in_order(array.astype(kind)), rewriter.ctx.weights) for array in (weight, bias)]
    rewriter.insert(parts)
    new = ConvOp.build_op([x, *(part.results[0] for part in parts)], conv.properties, element(at.results[0]))
    return rewriter.insert(new).results[0]


def fold_into_matmul(op: GraphOp, rewriter: Rewriter) -> None:
    """matmul(a, b)·s + t → matmul(a, b·s, t) with a constant b; matmul(a, b) + t → matmul(a, b, t) with any, also a
    packed one."""
    found = linear(op, rewriter.ctx)
    matmul = found.x.owner if found is not None else None
    if found is None or not isinstance(matmul, MatMulOp | PackedMatMulOp) or element(op.results[0]) != f32:
        return
    if isinstance(matmul, MatMulOp) and len(shape(matmul.b)) < 2:
        return
    scale, shift = (_per_axis(value, len(shape(matmul.result)), -1) for value in (found.scale, found.shift))
    if scale is None or shift is None:
        return
    b, bias = (
        array_of(matmul.b, rewriter.ctx) if isinstance(matmul, MatMulOp) else None,
        np.float64(0) if matmul.bias is None else array_of(matmul.bias, rewriter.ctx),
    )
    if bias is None or (b is None and np.any(scale != 1)):
        return
    if len(users(matmul.result)) != 1:
        rewriter.ctx.note(
            "folded into a matmul", op, "it is the only user of the matmul", f"{len(users(matmul.result))} users"
        )
        return
    moved = np.broadcast_to(bias * scale + shift, shape(matmul.result)[-1:])
    rewriter.replace_by(op, _matmul_with(matmul, op, rewriter, b, scale, moved), [matmul])


def _matmul_with(
    matmul: MatMulOp | PackedMatMulOp,
    at: GraphOp,
    rewriter: Rewriter,
    b: Array | None,
    scale: Array,
    bias: Array,
) -> SSAValue:
    """`matmul` with b scaled along n and another bias, before `at`."""
    operands = [value for value in matmul.operands if value is not matmul.bias]
    if b is not None and np.any(scale != 1):
        per_column = scale.reshape(-1, 1) if flag(matmul.properties, "trans_b") and scale.size > 1 else scale
        scaled = constant(in_order((b * per_column).astype(b.dtype)), rewriter.ctx.weights)
        operands[1] = rewriter.insert(scaled).results[0]
    if np.any(bias) or matmul.bias is not None:
        operands.append(rewriter.insert(constant(in_order(bias.astype(np.float32)), rewriter.ctx.weights)).results[0])
    return rewriter.insert(type(matmul).build_op(operands, matmul.properties, element(at.results[0]))).results[0]


def _per_axis(value: Array, rank: int, axis: int) -> Array | None:
    """`value` as a vector along one axis of a tensor of `rank` (or of one element); None if it varies along another."""
    if value.size == 1:
        return value.reshape(-1)
    sizes = (1,) * (rank - value.ndim) + value.shape
    others = [size for place, size in enumerate(sizes) if place != axis % rank]
    return value.reshape(-1) if len(sizes) == rank and all(size == 1 for size in others) else None
