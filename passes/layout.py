"""The pass `layout`: moves transposes until they meet and cancel, and transposes weights at compile time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ..dialects.graph.contract import MatMulOp
from ..dialects.graph.elementwise import Elementwise
from ..dialects.graph.emit import Emit
from ..dialects.graph.op import GraphOp, element, shape
from ..dialects.graph.properties import flag, ints
from ..dialects.graph.reduce import ReduceLoops, ReduceMaxOp, ReduceMinOp, ReduceProdOp, ReduceSumOp
from ..dialects.graph.views import ReshapeOp, TransposeOp
from .context import compile_context
from .fold import patterns_of_fold
from .layout_regions import moves_nothing, permute_regions
from .rewrite import Pattern, Rewriter, merge_equal_ops, rewrite
from .values import producer, users


@dataclass(frozen=True)
class Layout(ModulePass):
    """Chooses the order of axes region by region, so that few bytes are transposed.

    A *region* is a set of connected ops that do not care about the order of axes: elementwise ops, concatenations,
    slices, pads and reductions. Convolutions want channels last, models come with channels first, so transposes stand
    around the regions. For each order that a transpose at the border suggests, the bytes that would have to be
    transposed are counted, and the region takes the cheapest. Between regions, transposes pass reshapes, and a matmul
    takes a transposed operand as `trans_b`. No bit changes: several reduced axes keep their order.

        %0 = graph.transpose %x {perm = [0, 3, 1, 2]} : (tensor<1x4x5x8xf16>) -> tensor<1x8x4x5xf16>
        %1 = graph.relu %0 : (tensor<1x8x4x5xf16>) -> tensor<1x8x4x5xf16>
        %2 = graph.transpose %1 {perm = [0, 2, 3, 1]} : (tensor<1x8x4x5xf16>) -> tensor<1x4x5x8xf16>

    becomes

        %2 = graph.relu %x : (tensor<1x4x5x8xf16>) -> tensor<1x4x5x8xf16>
    """

    name: ClassVar[str] = "layout"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        context = compile_context(ctx)
        patterns = patterns_of_layout()
        rewrite(context, op, dict.fromkeys((ReduceSumOp, ReduceMaxOp, ReduceMinOp, ReduceProdOp), (keep_dims,)))
        for _ in range(MOST_ROUNDS):
            rewrite(context, op, patterns)
            merge_equal_ops(op)
            if not permute_regions(context, op):
                break
        rewrite(context, op, patterns)


MOST_ROUNDS = 16
"""Each round lowers the bytes that are transposed, so few are needed; this is a bound, not a tuning knob."""


def patterns_of_layout() -> dict[type[Operation], Sequence[Pattern]]:
    """Folding, which cancels transposes and computes those of weights, and the moves."""
    folds = patterns_of_fold()
    sinks = {cls: (*folds[cls], sink_reshape) for cls in folds if issubclass(cls, Elementwise)}
    return (
        folds
        | sinks
        | {
            ReshapeOp: (*folds[ReshapeOp], sink_transpose),
            MatMulOp: (*folds[MatMulOp], transpose_into_matmul),
        }
    )


def keep_dims(op: ReduceLoops, rewriter: Rewriter) -> None:
    """A reduction that drops axes is one that keeps them with extent 1, and a reshape."""
    if flag(op.properties, "keepdims"):
        return
    emit = Emit(op, rewriter)
    kept = emit(type(op), op.x, axes=ints(op.properties, "axes"), keepdims=True)
    rewriter.replace(op, [], [emit(ReshapeOp, kept, shape=shape(op.results[0]))])


def sink_reshape(op: Elementwise, rewriter: Rewriter) -> None:
    """relu(reshape(x)) → reshape(relu(x)), so that the op follows what computes x; operands may be numbers."""
    moved = [operand for operand in op.operands if math.prod(shape(operand)) != 1]
    reshapes = [producer(operand, ReshapeOp) for operand in moved]
    if not moved or None in reshapes or any(shape(operand) != shape(op.results[0]) for operand in moved):
        return
    sources = {operand: reshape.x for operand, reshape in zip(moved, reshapes, strict=True) if reshape is not None}
    sizes = {shape(x) for x in sources.values()}
    if len(sizes) != 1 or not all(isinstance(x.owner, GraphOp) and len(users(x)) == 1 for x in sources.values()):
        return
    rank = len(sizes.copy().pop())
    if any(len(shape(operand)) > rank for operand in op.operands if operand not in sources):
        return
    new = type(op).build_op(
        [sources.get(operand, operand) for operand in op.operands], op.properties, element(op.results[0])
    )
    value = rewriter.insert(new).results[0]
    rewriter.replace(op, [], [Emit(op, rewriter).keep(ReshapeOp, value, shape=shape(op.results[0]))])


def transpose_into_matmul(op: MatMulOp, rewriter: Rewriter) -> None:
    """matmul(a, transpose(b)) → matmul(a, b) with the other `trans_b`, if that leaves a cheaper transpose, or none."""
    inner = producer(op.b, TransposeOp)
    rank = len(shape(op.b))
    if inner is None or rank < 2:
        return
    perm = ints(inner.properties, "perm")
    swapped = (*perm[:-2], perm[-1], perm[-2])
    if _awkwardness(swapped, shape(inner.x)) >= _awkwardness(perm, shape(inner.x)):
        return
    emit = Emit(op, rewriter)
    b = emit.keep(TransposeOp, inner.x, perm=swapped)
    trans_b = None if flag(op.properties, "trans_b") else True
    rewriter.replace_by(op, emit(MatMulOp, op.a, b, op.bias, trans_b=trans_b), [inner])


def _awkwardness(perm: Sequence[int], source: Sequence[int]) -> int:
    """0: nothing moves; 1: the innermost axis stays, so whole runs move; 2: single elements move."""
    if moves_nothing(perm, source):
        return 0
    return 1 if perm[-1] == len(perm) - 1 else 2


def sink_transpose(op: ReshapeOp, rewriter: Rewriter) -> None:
    """reshape(transpose(x)) → transpose(reshape(x)), where axes are split, or joined with neighbours."""
    inner = producer(op.x, TransposeOp)
    if inner is None or len(users(inner.result)) != 1:
        return
    perm, source, target = ints(inner.properties, "perm"), shape(inner.x), shape(op.result)
    groups = matching_groups([source[axis] for axis in perm], target)
    if groups is None:
        return
    parts = [([perm[i] for i in before if source[perm[i]] != 1], after) for before, after in groups]
    if not all(_are_neighbours(axes, source) for axes, _ in parts):
        return
    order = sorted(range(len(parts)), key=lambda i: (parts[i][0][0] if parts[i][0] else -1, i))
    moved = [axis for i in order for axis in parts[i][1]]
    emit = Emit(op, rewriter)
    reshaped = emit.keep(ReshapeOp, inner.x, shape=[target[axis] for axis in moved])
    back = [moved.index(axis) for axis in range(len(moved))]
    rewriter.replace_by(op, emit.keep(TransposeOp, reshaped, perm=back), [inner])


def _are_neighbours(axes: Sequence[int], source: Sequence[int]) -> bool:
    """The axes follow each other, with nothing but axes of extent 1 between."""
    return all(a < b and math.prod(source[a + 1 : b]) == 1 for a, b in pairwise(axes))


def matching_groups(before: Sequence[int], after: Sequence[int]) -> list[tuple[list[int], list[int]]] | None:
    """The finest pairs of runs of axes with equal products, (axes before, axes after); None if there is but one."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        left, right = [i] if i < len(before) else [], [j] if j < len(after) else []
        i, j = i + len(left), j + len(right)
        while (a := math.prod(before[axis] for axis in left)) != (b := math.prod(after[axis] for axis in right)):
            if a < b:
                left.append(i)
                i += 1
            else:
                right.append(j)
                j += 1
        groups.append((left, right))
    return groups if len(groups) > 1 else None
