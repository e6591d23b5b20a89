"""The pass `host-parts`: joins what the CPU runs into as few parts as possible."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import onnx
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint
from xdsl.rewriter import Rewriter as IRRewriter

from ..dialects.graph.host import HostOp
from ..dialects.graph.host_model import join
from ..dialects.weights import WeightStore
from .context import compile_context
from .fuse import sort_block
from .location import fuse_locations
from .turns import last_turns


@dataclass(frozen=True)
class HostParts(ModulePass):
    """Joins `graph.host` ops that need nothing of the device between them.

    The CPU and the device take turns. Each op of the CPU runs in the last turn in which it still can: so there are as
    many parts as the longest chain of turns demands, and no more.

        func.func @main(%x: !graph.host_value<"tensor(double)[4]">) -> !graph.host_value<"tensor(double)[4]"> {
          %1 = graph.host %x {part = "ce748f34ccc17dec4412e260297a4a2a", nodes = [["a", "Add", "double", "64"]]} :
            (!graph.host_value<"tensor(double)[4]">) -> !graph.host_value<"tensor(double)[4]">
          %2 = graph.host %1 {part = "3ab8c983d2b2ad6960e60688a3f1c54b", nodes = [["b", "Exp", "double", "64"]]} :
            (!graph.host_value<"tensor(double)[4]">) -> !graph.host_value<"tensor(double)[4]">
          func.return %2 : !graph.host_value<"tensor(double)[4]">
        }

    becomes

        func.func @main(%x: !graph.host_value<"tensor(double)[4]">) -> !graph.host_value<"tensor(double)[4]"> {
          %1 = graph.host %x {part = "abaaecae148bafb03e97a196867b3409", nodes = [["a", "Add", "double", "64"],
            ["b", "Exp", "double", "64"]]} :
            (!graph.host_value<"tensor(double)[4]">) -> !graph.host_value<"tensor(double)[4]">
          func.return %1 : !graph.host_value<"tensor(double)[4]">
        }
    """

    name: ClassVar[str] = "host-parts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        store = compile_context(ctx).weights
        for function in op.ops:
            if isinstance(function, FuncOp) and function.body.blocks:
                _join_all(function.body.block, store)


def _join_all(block: Block, store: WeightStore) -> None:
    turns = defaultdict[int, list[HostOp]](list)
    for op, turn in last_turns(block).items():
        turns[turn].append(op)
    for ops in turns.values():
        if len(ops) > 1:
            _join(ops, store)
    if turns:
        sort_block(block)


def _join(ops: Sequence[HostOp], store: WeightStore) -> None:
    """One op in place of several; the block is not sorted."""
    inside = set[Operation](ops)
    results: list[SSAValue] = [
        result for op in ops for result in op.results if any(use.operation not in inside for use in result.uses)
    ]
    models = [onnx.ModelProto.FromString(store.get(op.part.data).tobytes()) for op in ops]
    model, inputs = join(list(zip(ops, models, strict=True)), results)
    nodes = [node for op in ops for node in op.host_nodes()]
    joined = HostOp.of(model.SerializeToString(), nodes, inputs, [value.type for value in results], store)
    joined.location = fuse_locations(op.location for op in ops)
    IRRewriter.insert_op(joined, InsertPoint.after(ops[-1]))
    for value, new in zip(results, joined.results, strict=True):
        new.name_hint = value.name_hint
        value.replace_uses_with_if(new, lambda use: use.operation not in inside)
    for op in reversed(ops):
        op.detach()
        op.erase()
