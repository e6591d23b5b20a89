"""The pass `decompose`: rewrites ONNX's operators into primitives, ops that are one loop nest or one view."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ..dialects.graph import OPERATORS
from ..dialects.graph.contract import MatMulOp
from ..dialects.graph.op import GraphOp
from .context import PassError, compile_context
from .fold import folded, insert_constant
from .products import plain_product
from .rewrite import Pattern, Rewriter, rewrite
from .values import array_of


@dataclass(frozen=True)
class Decompose(ModulePass):
    """Replaces every op that has a `decompose`, until only primitives are left.

    A composite's inner edges are f32, and the edge of its result keeps its type (docs/numerics.md §2). A matrix product
    whose operands are vectors, or whose batch axes broadcast, becomes one that a kernel is made for.

        %0 = graph.softmax %x {axes = [1]} : (tensor<2x8xf16>) -> tensor<2x8xf16>

    becomes

        %0 = graph.reduce_max %x {axes = [1], keepdims = true} : (tensor<2x8xf16>) -> tensor<2x1xf32>
        %1 = graph.sub %x, %0 : (tensor<2x8xf16>, tensor<2x1xf32>) -> tensor<2x8xf32>
        %2 = graph.exp %1 : (tensor<2x8xf32>) -> tensor<2x8xf32>
        %3 = graph.reduce_sum %2 {axes = [1], keepdims = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
        %4 = graph.reciprocal %3 : (tensor<2x1xf32>) -> tensor<2x1xf32>
        %5 = graph.mul %2, %4 : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf16>
    """

    name: ClassVar[str] = "decompose"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        composites = [cls for cls in OPERATORS if cls.structure() == "decompose"]
        patterns: dict[type[Operation], Sequence[Pattern]] = dict.fromkeys(composites, (decompose_op,))
        rewrite(compile_context(ctx), op, patterns | {MatMulOp: (plain_product,)})


def decompose_op(op: GraphOp, rewriter: Rewriter) -> None:
    """Puts the parts in place of the op; one whose operands are constants (the padding of a weight) is computed."""
    arrays = [array_of(operand, rewriter.ctx) for operand in op.operands]
    known = [array for array in arrays if array is not None]
    found = folded(op, known) if len(known) == len(arrays) else None
    values = list(op.decompose(rewriter)) if found is None else [insert_constant(x, rewriter) for x in found]
    for result, value in zip(op.results, values, strict=True):
        if result.type != value.type:
            raise PassError(
                f"decompose keeps the type of the result, {result.type} (found {value.type}); a bug in the operator",
                op,
            )
    rewriter.replace(op, [], values)
