"""Patterns of `recognise`: layer normalisation, as exporters write it out.

    m = mean x;  d = x − m;  v = mean d²;  d ÷ √(v + ε)      → layer_norm(x, 1)
    layer_norm(x, 1) · γ                                     → layer_norm(x, γ)
    layer_norm(x, γ) + β                                     → layer_norm(x, γ, β)

The square is d·d or d², of one subtraction or of two equal ones; the quotient may be d·(1 ÷ √(v + ε)) as well. A
transpose between the mean and the subtraction is looked through.
"""

from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation, SSAValue

from ..dialects.graph.activations import ReciprocalOp, RsqrtOp, SqrtOp
from ..dialects.graph.arithmetic import AddOp, DivOp, MulOp, PowOp, SubOp
from ..dialects.graph.emit import Emit
from ..dialects.graph.norm import LayerNormOp
from ..dialects.graph.op import GraphOp, element, shape
from ..dialects.graph.properties import flag, integer, ints, number
from ..dialects.graph.reduce import ReduceMeanOp
from ..dialects.graph.views import TransposeOp
from .context import CompileContext
from .rewrite import Rewriter
from .values import array_of, producer, scalar_of, split_scalar, users


@dataclass(frozen=True)
class Quotient:
    """d ÷ √(v + ε), and the ops that write it."""

    centred: SSAValue
    variance: SSAValue
    epsilon: float
    ops: tuple[Operation, ...]


def quotient(op: GraphOp, ctx: CompileContext) -> Quotient | None:
    """`op` as d ÷ √(v + ε), in one of its spellings."""
    x, y = op.operands
    if isinstance(op, DivOp):
        root = producer(y, SqrtOp)
        return _rooted(x, root, (op, root), ctx) if root is not None else None
    for d, inverse in ((x, y), (y, x)):
        match inverse.owner:
            case RsqrtOp() as rsqrt:
                return _rooted(d, rsqrt, (op, rsqrt), ctx)
            case ReciprocalOp() | DivOp() as one_over:
                under = one_over.operands[-1]
                root = producer(under, SqrtOp)
                if root is not None and (
                    isinstance(one_over, ReciprocalOp) or scalar_of(one_over.operands[0], ctx) == 1
                ):
                    return _rooted(d, root, (op, one_over, root), ctx)
            case _:
                pass
    return None


def _rooted(centred: SSAValue, root: Operation, ops: tuple[Operation, ...], ctx: CompileContext) -> Quotient | None:
    shifted = producer(root.operands[0], AddOp)
    split = split_scalar(shifted, ctx) if shifted is not None else None
    if shifted is None or split is None:
        return None
    return Quotient(centred, split[0], split[1], (*ops, shifted))


def find_layer_norm(op: MulOp | DivOp, rewriter: Rewriter) -> None:
    """(x − mean x) ÷ √(mean (x − mean x)² + ε) → layer_norm(x, 1)."""
    found = quotient(op, rewriter.ctx)
    if found is None:
        return
    mean_square = producer(found.variance, ReduceMeanOp)
    squared = _square(mean_square.x, rewriter.ctx) if mean_square is not None else None
    centre = _centred(found.centred)
    if mean_square is None or squared is None or centre is None:
        return
    other = _centred(squared)
    if other is None or other.x is not centre.x or other.axes != centre.axes:
        rewriter.ctx.note("layer_norm", op, "what is squared is what is divided", "two different differences")
        return
    axes, rank = ints(mean_square.properties, "axes"), len(shape(centre.x))
    if axes != centre.axes or axes != tuple(range(rank - len(axes), rank)):
        rewriter.ctx.note(
            "layer_norm",
            op,
            "both means run over the last axes",
            f"axes {list(centre.axes)} and {list(axes)} of {rank}",
        )
        return
    if not flag(mean_square.properties, "keepdims") or element(op.results[0]) != element(centre.x):
        return
    emit = Emit(op, rewriter)
    value = emit(LayerNormOp, centre.x, emit.constant(1.0), axis=axes[0], epsilon=found.epsilon)
    rewriter.replace_by(op, value, [*found.ops, mean_square, *_owners(mean_square.x), *centre.ops, *other.ops])


@dataclass(frozen=True)
class Centred:
    """x − mean x over `axes`."""

    x: SSAValue
    axes: tuple[int, ...]
    ops: tuple[Operation, ...]


def _centred(value: SSAValue) -> Centred | None:
    """`value` as x − mean x; a transpose of both the difference and its operand is looked through."""
    sub = producer(value, SubOp)
    if sub is None:
        return _transposed_centred(value)
    mean = producer(sub.y, ReduceMeanOp)
    if mean is None or mean.x is not sub.x or not flag(mean.properties, "keepdims"):
        return None
    return Centred(sub.x, ints(mean.properties, "axes"), (sub, mean))


def _transposed_centred(value: SSAValue) -> Centred | None:
    """transpose(x − mean x) as the same of transpose(x), where that transpose exists."""
    transpose = producer(value, TransposeOp)
    inner = _centred(transpose.x) if transpose is not None and not isinstance(transpose.x.owner, TransposeOp) else None
    if transpose is None or inner is None:
        return None
    perm = ints(transpose.properties, "perm")
    for user in users(inner.x):
        if isinstance(user, TransposeOp) and ints(user.properties, "perm") == perm:
            axes = tuple(sorted(perm.index(axis) for axis in inner.axes))
            return Centred(user.result, axes, (*inner.ops, transpose))
    return None


def _square(value: SSAValue, ctx: CompileContext) -> SSAValue | None:
    """x, if the value is x·x or x²."""
    match value.owner:
        case MulOp() as op if op.x is op.y:
            return op.x
        case PowOp() as op if scalar_of(op.y, ctx) == 2:
            return op.x
        case _:
            return None


def _owners(value: SSAValue) -> list[Operation]:
    return [value.owner] if isinstance(value.owner, Operation) else []


def scale_layer_norm(op: MulOp, rewriter: Rewriter) -> None:
    """layer_norm(x, 1)·γ → layer_norm(x, γ)."""
    found = _norm_and_parameter(op, rewriter.ctx)
    if found is None:
        return
    norm, gamma = found
    ones = array_of(norm.scale, rewriter.ctx)
    if norm.bias is not None or ones is None or not np.all(ones == 1):
        return
    _replace_norm(op, norm, (norm.x, gamma), rewriter)


def shift_layer_norm(op: AddOp, rewriter: Rewriter) -> None:
    """layer_norm(x, γ) + β → layer_norm(x, γ, β)."""
    found = _norm_and_parameter(op, rewriter.ctx)
    if found is not None and found[0].bias is None:
        _replace_norm(op, found[0], (found[0].x, found[0].scale, found[1]), rewriter)


def _norm_and_parameter(op: MulOp | AddOp, ctx: CompileContext) -> tuple[LayerNormOp, SSAValue] | None:
    """A normalisation that only `op` uses, and a constant that broadcasts over its rows."""
    for value, other in ((op.x, op.y), (op.y, op.x)):
        norm = producer(value, LayerNormOp)
        if norm is None or array_of(other, ctx) is None or len(users(value)) != 1:
            continue
        rows = shape(norm.x)[integer(norm.properties, "axis") :]
        if len(shape(other)) <= len(rows) and np.broadcast_shapes(shape(other), rows) == rows:
            return norm, other
    return None


def _replace_norm(op: GraphOp, norm: LayerNormOp, operands: tuple[SSAValue, ...], rewriter: Rewriter) -> None:
    axis, epsilon = integer(norm.properties, "axis"), number(norm.properties, "epsilon")
    value = Emit(op, rewriter)(LayerNormOp, *operands, axis=axis, epsilon=epsilon)
    rewriter.replace_by(op, value, [norm])
