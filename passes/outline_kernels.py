"""The pass `outline-kernels`: makes each kernel a function; equal kernels are one."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint
from xdsl.rewriter import Rewriter as IRRewriter

from ..dialects.graph.op import GraphOp
from ..dialects.graph.structure import KernelOp, LaunchOp, YieldOp
from .location import fuse_locations, node_names

NODES = "nodes"
"""Attribute of a launch: for each operator of the kernel, in order, the ONNX nodes that it stands for there."""


@dataclass(frozen=True)
class OutlineKernels(ModulePass):
    """Moves each `graph.kernel` into a private function `@kN` and launches it; equal kernels share one function.

    Two kernels are equal if they hold the same ops with the same properties and types, connected in the same way.
    Weights are operands, so the twelve layers of a model are one set of kernels. A launch keeps the location of its
    kernel, and in `nodes` the ONNX nodes of each operator in it (constants are not counted).

        func.func @main(%0: tensor<4xf16>) -> tensor<4xf16> {
          %1 = graph.kernel(%x = %0) : (tensor<4xf16>) -> tensor<4xf16> {
            %2 = graph.relu %x : (tensor<4xf16>) -> tensor<4xf16> loc("Relu_7")
            graph.yield %2 : tensor<4xf16>
          }
          func.return %1 : tensor<4xf16>
        }

    becomes

        func.func @main(%0: tensor<4xf16>) -> tensor<4xf16> {
          %1 = graph.launch @k0(%0) {nodes = [["Relu_7"]]} : (tensor<4xf16>) -> tensor<4xf16>
          func.return %1 : tensor<4xf16>
        }

        func.func private @k0(%x: tensor<4xf16>) -> tensor<4xf16> {
          %2 = graph.relu %x : (tensor<4xf16>) -> tensor<4xf16>
          func.return %2 : tensor<4xf16>
        }
    """

    name: ClassVar[str] = "outline-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        taken = {function.sym_name.data for function in op.ops if isinstance(function, FuncOp)}
        fresh = (name for number in count() if (name := f"k{number}") not in taken)
        names: dict[Hashable, str] = {}
        for kernel in [inner for inner in op.walk() if isinstance(inner, KernelOp)]:
            key = signature(kernel)
            if key not in names:
                names[key] = next(fresh)
                op.body.block.add_op(as_function(kernel, names[key]))
            replace_by_launch(kernel, names[key])


def signature(kernel: KernelOp) -> Hashable:
    """What makes kernels equal: ops, properties, types and connections; neither names nor locations."""
    number: dict[SSAValue, int] = {value: index for index, value in enumerate(kernel.block.args)}
    parts: list[Hashable] = [tuple(kernel.block.arg_types)]
    for op in kernel.block.ops:
        operands = tuple(number[operand] for operand in op.operands)
        parts.append(
            (
                op.name,
                operands,
                frozenset(op.properties.items()),
                frozenset(op.attributes.items()),
                tuple(op.result_types),
            )
        )
        for result in op.results:
            number[result] = len(number)
    return tuple(parts)


def as_function(kernel: KernelOp, name: str) -> FuncOp:
    """A private function with a copy of the body."""
    block = Block(arg_types=kernel.block.arg_types)
    values: dict[SSAValue, SSAValue] = dict(zip(kernel.block.args, block.args, strict=True))
    for old, new in values.items():
        new.name_hint = old.name_hint
    for op in kernel.block.ops:
        if isinstance(op, YieldOp):
            block.add_op(ReturnOp(*(values[operand] for operand in op.operands)))
        else:
            block.add_op(op.clone(values))
    function = FuncOp(name, (tuple(kernel.block.arg_types), tuple(kernel.result_types)), Region(block), "private")
    function.location = kernel.location
    return function


def replace_by_launch(kernel: KernelOp, name: str) -> None:
    """Launches the function in place of the kernel."""
    launch = LaunchOp.of(name, kernel.operands, list(kernel.result_types))
    launch.location = fuse_locations([kernel.location])
    launch.attributes[NODES] = node_attribute(kernel.block.ops)
    IRRewriter.insert_op(launch, InsertPoint.before(kernel))
    for old, new in zip(kernel.results, launch.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    kernel.detach()
    kernel.erase()


def node_attribute(ops: Iterable[Operation]) -> Attribute:
    """The ONNX nodes of each operator among `ops`."""
    names = [node_names(op.location) for op in ops if isinstance(op, GraphOp)]
    return ArrayAttr([ArrayAttr([StringAttr(name) for name in some]) for some in names])
