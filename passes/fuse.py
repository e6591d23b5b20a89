"""The pass `fuse`: groups ops into kernels, so that the values between them stay on chip."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint
from xdsl.rewriter import Rewriter as IRRewriter

from ..dialects.graph.constants import ConstantOp
from ..dialects.graph.op import GraphOp, shape
from ..dialects.graph.structure import KernelOp, LaunchOp, YieldOp
from ..dialects.loops import Map
from .context import compile_context
from .fuse_groups import Grouping, alone, grow_epilogues, grow_rows, note_near_misses
from .fuse_views import absorb_operands
from .location import fuse_locations
from .rewrite import erase_dead_ops
from .turns import take_turns


@dataclass(frozen=True)
class Fuse(ModulePass):
    """Puts each op but constants and reshapes into a `graph.kernel`, together with others where that saves traffic.

    A kernel is one of
    - a contraction (matmul, conv2d, depthwise2d), a pooling or a reduction of inner axes, with an *epilogue*:
      elementwise ops of its result's shape, whose other operands are numbers, vectors along the last axis or tensors
      of that shape; a matmul takes the views (transposes, slices) of its operands and of its result with it, as
      strides of its loads and stores;
    - a *row group*: elementwise ops and reductions over the last axes, of one shape [rows…, columns…] or [rows…, 1…],
      such as a whole softmax or layer normalisation; it may have several results;
    - one op that moves elements: a transpose, slice, concatenation, expansion or pad.

    No value is computed twice, but a view may be, and a group never waits for something that waits for the group. Each
    edge keeps its type, so no bit changes; with `enabled=false`, every op is a kernel of its own.
    Functions that are launched are kernels already.

        func.func @main(%a: tensor<4x8xf16>, %b: tensor<8x2xf16>) -> tensor<4x2xf16> {
          %0 = graph.matmul %a, %b : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
          %1 = graph.relu %0 : (tensor<4x2xf16>) -> tensor<4x2xf16>
          func.return %1 : tensor<4x2xf16>
        }

    becomes

        func.func @main(%a: tensor<4x8xf16>, %b: tensor<8x2xf16>) -> tensor<4x2xf16> {
          %1 = graph.kernel(%x = %a, %y = %b) : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16> {
            %2 = graph.matmul %x, %y : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
            %3 = graph.relu %2 : (tensor<4x2xf16>) -> tensor<4x2xf16>
            graph.yield %3 : tensor<4x2xf16>
          }
          func.return %1 : tensor<4x2xf16>
        }
    """

    name: ClassVar[str] = "fuse"

    enabled: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        context = compile_context(ctx)
        kernels = {launch.callee for launch in op.walk() if isinstance(launch, LaunchOp)}
        for function in list(op.walk()):
            if not isinstance(function, FuncOp) or not function.body.blocks or function.sym_name.data in kernels:
                continue
            block = function.body.block
            absorbed = absorb_operands(block) if self.enabled else {}
            erase_dead_ops(function)
            grouping = Grouping.of(block, context, absorbed)
            if self.enabled:
                grow_epilogues(grouping)
                grow_rows(grouping)
            alone(grouping)
            if self.enabled:
                note_near_misses(grouping)
            for group in grouping.groups:
                outline(group.ops)
            sort_block(block)
            take_turns(block)
        erase_dead_ops(op)


def outline(ops: Sequence[GraphOp]) -> KernelOp:
    """Moves ops, given in order, into a kernel in place of the last one."""
    inside = set(ops)
    numbers = {v for op in ops for v in op.operands if is_number(v, inside)}
    inputs = list(dict.fromkeys(v for op in ops for v in op.operands if v.owner not in inside and v not in numbers))
    outputs = [result for op in ops for result in op.results if any(use.operation not in inside for use in result.uses)]
    kernel = KernelOp.of(inputs, [value.type for value in outputs])
    kernel.location = fuse_locations(op.location for op in ops)
    IRRewriter.insert_op(kernel, InsertPoint.after(ops[-1]))
    for value, result in zip(outputs, kernel.results, strict=True):
        value.replace_uses_with_if(result, lambda use: use.operation not in inside)
        result.name_hint = value.name_hint
    arguments: dict[SSAValue, SSAValue] = dict(zip(inputs, kernel.block.args, strict=True))
    for value, argument in arguments.items():
        argument.name_hint = value.name_hint
    for op in ops:
        op.detach()
        for index, operand in enumerate(op.operands):
            if operand.owner not in inside and operand not in arguments:
                arguments[operand] = _copy_number(operand, kernel.block)
            op.operands[index] = arguments.get(operand, operand)
        kernel.block.add_op(op)
    kernel.block.add_op(YieldOp.of(*outputs))
    return kernel


def is_number(value: SSAValue, inside: Set[GraphOp]) -> bool:
    """A constant of one element that only elementwise ops of the kernel take: it becomes an immediate there."""
    if not isinstance(value.owner, ConstantOp) or any(size != 1 for size in shape(value)):
        return False
    return all(is_elementwise(use.operation) for use in value.uses if use.operation in inside)


def is_elementwise(op: Operation) -> bool:
    """One loop nest, a function of each element."""
    return isinstance(op, GraphOp) and op.structure() == "loops" and isinstance(op.loops().kernel, Map)


def _copy_number(value: SSAValue, block: Block) -> SSAValue:
    assert isinstance(value.owner, ConstantOp)
    copy = value.owner.clone()
    block.add_op(copy)
    return copy.result


def sort_block(block: Block) -> None:
    """Puts each op after the ops of its operands, else as they were; needed where a kernel has several results."""
    order: dict[Operation, None] = {}
    for op in block.ops:
        stack = [op]
        while stack:
            this = stack[-1]
            missing = [
                v.owner
                for v in this.operands
                if isinstance(v.owner, Operation) and v.owner.parent is block and v.owner not in order
            ]
            if missing and this not in order:
                stack += missing
            else:
                order[this] = None
                stack.pop()
    if list(order) == list(block.ops):
        return
    for op in order:
        op.detach()
    block.add_ops(order)
