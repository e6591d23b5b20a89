"""The pass `fold`: computes constants, removes identities, merges equal ops and drops dead ones. No bit changes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ..dialects.graph import OPERATORS
from ..dialects.graph.arithmetic import DivOp, MulOp, PowOp, SubOp
from ..dialects.graph.constants import NUMPY, constant, constant_value
from ..dialects.graph.elementwise import CastOp, CopyOp, Elementwise
from ..dialects.graph.emit import Emit
from ..dialects.graph.op import FLOATS, Array, GraphOp, element, f32, shape
from ..dialects.graph.properties import ints
from ..dialects.graph.views import ConcatOp, ExpandOp, PadOp, ReshapeOp, SliceOp, TransposeOp, ViewOp
from ..dialects.standin import StandIn, in_order, stand_in
from ..runtime.numerics import host
from .context import compile_context
from .rewrite import Pattern, Rewriter, merge_equal_ops, rewrite
from .values import producer


@dataclass(frozen=True)
class Fold(ModulePass):
    """Computes what is constant, removes what does nothing.

    A constant is computed by docs/numerics.md, as the device would; the result goes to the weight store. A result may
    be four times as large as its operands, or 4 KiB: what only repeats a constant is cheaper left in the graph. What
    leaves 32 bits stays too, so that the device counts it.

        %0 = graph.constant dense<2.0> : tensor<f32>
        %1 = graph.mul %0, %0 : (tensor<f32>, tensor<f32>) -> tensor<f32>
        %2 = graph.transpose %x {perm = [1, 0]} : (tensor<2x3xf32>) -> tensor<3x2xf32>
        %3 = graph.transpose %2 {perm = [1, 0]} : (tensor<3x2xf32>) -> tensor<2x3xf32>
        %4 = graph.add %3, %1 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>

    becomes

        %1 = graph.constant dense<4.0> : tensor<f32>
        %4 = graph.add %x, %1 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    """

    name: ClassVar[str] = "fold"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        context = compile_context(ctx)
        patterns = patterns_of_fold()
        while rewrite(context, op, patterns) + merge_equal_ops(op):
            pass


def patterns_of_fold() -> dict[type[Operation], Sequence[Pattern]]:
    """Every operator folds constants; some have identities as well."""
    own: dict[type[Operation], tuple[Pattern, ...]] = {
        CastOp: (drop_same_type, merge_casts),
        CopyOp: (drop_same_type,),
        MulOp: (drop_neutral,),
        DivOp: (drop_neutral,),
        SubOp: (drop_neutral,),
        PowOp: (drop_neutral,),
        TransposeOp: (drop_same_type_transpose, merge_transposes, transpose_to_reshape),
        ReshapeOp: (drop_same_type, merge_reshapes),
        SliceOp: (drop_whole_slice,),
        ExpandOp: (drop_same_type,),
        PadOp: (drop_empty_frame,),
        ConcatOp: (drop_single,),
    }
    return {
        cls: (fold_constant, *own.get(cls, ()), *((drop_expand,) if issubclass(cls, Elementwise) else ()))
        for cls in OPERATORS
    }


# constants ------------------------------------------------------------------------------------------------------------
LEAST_BYTES = 4096
MOST_GROWTH = 4


def fold_constant(op: GraphOp, rewriter: Rewriter) -> None:
    """An op of constants is a constant; one that leaves 32 bits stays, so that the device counts it."""
    if not op.operands:
        return
    arrays = [constant_value(operand, rewriter.ctx.weights) for operand in op.operands]
    known = [array for array in arrays if array is not None]
    if len(known) < len(arrays) or len(op.results) != 1:
        return
    size = math.prod(shape(op.results[0])) * known[0].itemsize
    if size > max(LEAST_BYTES, MOST_GROWTH * sum(array.nbytes for array in known)):
        return
    if (found := folded(op, known)) is not None:
        rewriter.replace_by(op, insert_constant(found[0], rewriter))


def folded(op: GraphOp, known: Sequence[Array]) -> list[Array] | None:
    """The results of an op of constants; None if an integer leaves 32 bits, which the device is to count."""
    with host.counting() as counts:
        found = [computed(op, known)] if len(op.results) == 1 else list(op.evaluate_all(*known))
    return None if counts[host.WIDE] else found


def computed(op: GraphOp, known: Sequence[Array]) -> Array:
    """The result of an op of constants; of stand-ins, another."""
    if any(isinstance(array, StandIn) for array in known):
        return stand_in(NUMPY[element(op.results[0])], shape(op.results[0]))
    return op.reference(*known) if isinstance(op, ViewOp) else op.evaluate(*known)  # moving needs no arithmetic


def insert_constant(array: Array, rewriter: Rewriter) -> SSAValue:
    """A constant before the op at hand; its bytes are in the store unless it is small."""
    return rewriter.insert(constant(in_order(array), rewriter.ctx.weights)).results[0]


# identities -----------------------------------------------------------------------------------------------------------
def drop_same_type(op: GraphOp, rewriter: Rewriter) -> None:
    """A copy, or a view or cast that changes nothing; their results then have the operand's type."""
    if op.results[0].type == op.operands[0].type:
        rewriter.replace(op, [], [op.operands[0]])


def drop_empty_frame(op: PadOp, rewriter: Rewriter) -> None:
    """Nothing before and after the operand, and nothing cut off."""
    if not any((*ints(op.properties, "before"), *ints(op.properties, "after"))):
        drop_same_type(op, rewriter)


def drop_whole_slice(op: SliceOp, rewriter: Rewriter) -> None:
    """All elements in the order that they are in; a step of −1 turns it round."""
    if min(ints(op.properties, "steps"), default=1) > 0:
        drop_same_type(op, rewriter)


def drop_same_type_transpose(op: TransposeOp, rewriter: Rewriter) -> None:
    """transpose(x) in the order the axes are in already."""
    perm = ints(op.properties, "perm")
    if perm == tuple(range(len(perm))):
        rewriter.replace(op, [], [op.x])


NEUTRAL: dict[type[Operation], float] = {MulOp: 1.0, DivOp: 1.0, SubOp: 0.0, PowOp: 1.0}
"""y for which the op gives x, bit for bit. x + 0 is not one of them: it turns −0 to +0."""


def drop_neutral(op: GraphOp, rewriter: Rewriter) -> None:
    """x·1, 1·x, x ÷ 1, x − 0, x¹."""
    pairs = [(op.operands[0], op.operands[1])]
    if isinstance(op, MulOp):
        pairs.append((op.operands[1], op.operands[0]))
    for value, other in pairs:
        array = constant_value(other, rewriter.ctx.weights) if value.type == op.results[0].type else None
        if array is not None and bool(np.all(array == NEUTRAL[type(op)])) and not bool(np.any(np.signbit(array))):
            rewriter.replace(op, [], [value])
            return


def merge_casts(op: CastOp, rewriter: Rewriter) -> None:
    """cast(cast(x)) where the inner one is exact: only the outer one counts."""
    inner = producer(op.x, CastOp)
    if inner is None or element(inner.x) not in FLOATS or element(op.x) != f32 or element(op.result) not in FLOATS:
        return
    rewriter.replace_by(op, Emit(op, rewriter)(CastOp, inner.x), [inner])


def merge_transposes(op: TransposeOp, rewriter: Rewriter) -> None:
    """transpose(transpose(x)) is one transpose."""
    inner = producer(op.x, TransposeOp)
    if inner is None:
        return
    first, second = ints(inner.properties, "perm"), ints(op.properties, "perm")
    perm = [first[axis] for axis in second]
    rewriter.replace_by(op, Emit(op, rewriter)(TransposeOp, inner.x, perm=perm), [inner])


def transpose_to_reshape(op: TransposeOp, rewriter: Rewriter) -> None:
    """A transpose that only moves axes of extent 1 moves no element."""
    source, perm = shape(op.x), ints(op.properties, "perm")
    moved = [axis for axis in perm if source[axis] != 1]
    if moved == sorted(moved):
        rewriter.replace_by(op, Emit(op, rewriter)(ReshapeOp, op.x, shape=shape(op.result)))


def merge_reshapes(op: ReshapeOp, rewriter: Rewriter) -> None:
    """reshape(reshape(x)) is one reshape."""
    inner = producer(op.x, ReshapeOp)
    if inner is not None:
        rewriter.replace_by(op, Emit(op, rewriter)(ReshapeOp, inner.x, shape=shape(op.result)), [inner])


def drop_single(op: ConcatOp, rewriter: Rewriter) -> None:
    """concat(x)."""
    if len(op.operands) == 1:
        rewriter.replace(op, [], [op.operands[0]])


def drop_expand(op: Elementwise, rewriter: Rewriter) -> None:
    """An elementwise op repeats its operands itself, if the shape of the result does not hang on the expanded one."""
    for index, operand in enumerate(op.operands):
        expand = producer(operand, ExpandOp)
        if expand is None:
            continue
        shapes = [shape(expand.x) if other == index else shape(value) for other, value in enumerate(op.operands)]
        if np.broadcast_shapes(*shapes) == shape(op.result):
            op.operands[index] = expand.x
            rewriter.notify_op_modified(op)
            return
