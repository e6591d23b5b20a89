"""The pass `border`: gives inputs and outputs a form that a plan can place."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects.graph.constants import NUMPY, ConstantOp, WeightOp, constant, constant_value
from ..dialects.graph.elementwise import CastOp, CopyOp
from ..dialects.graph.host import DownloadOp, host_type, is_host
from ..dialects.graph.op import BORDER, FLOATS, GraphOp, dtype_name, element, i32, shape
from ..dialects.graph.views import ViewOp
from ..dialects.weights import WeightStore
from .context import compile_context

INPUTS, OUTPUTS = "input_borders", "output_borders"
"""Attributes of `main`: for each input, each output the element type that callers see."""


@dataclass(frozen=True)
class Border(ModulePass):
    """Integers of 64 and of 16 bits stop at the border: inside, an input or output of i64 is i32, which the runtime
    converts with a check of the range. Types that the frontend has named stay named: those of 8 bits and fewer that
    f32 or bytes stand for. An output that is a constant is copied, so that every output has a place of its own; one
    without elements needs none.

        func.func @main(%x: tensor<4xi64>) -> tensor<4xi64> {
          %0 = graph.cast %x : (tensor<4xi64>) -> tensor<4xi32>
          %1 = graph.add %0, %0 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
          %2 = graph.cast %1 : (tensor<4xi32>) -> tensor<4xi64>
          func.return %2 : tensor<4xi64>
        }

    becomes

        func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> attributes {input_borders = ["i64"], output_borders =
        ["i64"]} {
          %1 = graph.add %x, %x : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
          func.return %1 : tensor<4xi32>
        }
    """

    name: ClassVar[str] = "border"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp) and function.sym_name.data == "main":
                _narrow(function, compile_context(ctx).weights)


def _narrow(main: FuncOp, weights: WeightStore) -> None:
    block = main.body.block
    last = block.last_op
    assert last is not None
    for argument in list(block.args):
        _keep_on_host(argument)
    for key, values in ((INPUTS, list(block.args)), (OUTPUTS, list(last.operands))):
        main.attributes[key] = _names(values, main.attributes.get(key))
    for argument in list(block.args):
        if not is_host(argument) and element(argument) in BORDER:
            _narrow_value(argument)
    for position, value in enumerate(list(last.operands)):
        last.operands[position] = _placeable(value, last, weights)
    main.properties["function_type"] = type(main.function_type).from_lists(
        [argument.type for argument in block.args], [value.type for value in last.operands]
    )


def _narrow_value(value: SSAValue) -> None:
    """A value that comes in, and what views make of it, as i32: casts to i32 go."""
    value = Rewriter.replace_value_with_new_type(value, TensorType(i32, shape(value)))
    for use in list(value.uses):
        user = use.operation
        if isinstance(user, CastOp) and element(user.result) == i32:
            user.result.replace_all_uses_with(value)
            user.detach()
            user.erase()
        elif isinstance(user, ViewOp) and len(user.operands) == 1:
            _narrow_value(user.results[0])


def _keep_on_host(argument: SSAValue) -> None:
    """An input that only the CPU takes, in the type that it has, does not go to the device."""
    casts = [use.operation for use in argument.uses if isinstance(use.operation, CastOp)]
    readers = [use.operation for value in (argument, *(c.result for c in casts)) for use in value.uses]
    downloads = [op for op in readers if isinstance(op, DownloadOp)]
    kind = downloads[0].result.type if downloads else None
    if len(downloads) + len(casts) < len(readers) or any(op.result.type != kind for op in downloads) or kind is None:
        return
    if any(element(cast.result) in FLOATS for cast in casts):
        return
    if host_type(downloads[0].result).dtype != NUMPY[element(argument)]:  # the device converts it
        return
    value = Rewriter.replace_value_with_new_type(argument, kind)
    for op in downloads:
        op.result.replace_all_uses_with(value)
    for op in (*downloads, *casts):
        op.detach()
        op.erase()


def _placeable(value: SSAValue, last: Operation, weights: WeightStore) -> SSAValue:
    """What is returned in place of `value`."""
    if is_host(value):
        return value
    value = _narrow_views(value, last)
    owner = value.owner
    if isinstance(owner, CastOp) and element(value) in BORDER:
        value, cast = owner.x, owner
        if sum(1 for _ in cast.result.uses) == 1:
            last.operands[list(last.operands).index(cast.result)] = value
            cast.detach()
            cast.erase()
        owner = value.owner
    if isinstance(owner, (ConstantOp, WeightOp)):
        array = constant_value(value, weights)
        assert array is not None
        made = constant(array.astype(np.int32) if element(value) in BORDER else array, weights)
        copies = [CopyOp.build_op([made.result])] if array.size else []
        for op in (made, *copies):
            op.location = owner.location
            Rewriter.insert_op(op, InsertPoint.before(last))
        return copies[0].result if copies else made.result
    return value


def _narrow_views(value: SSAValue, last: Operation) -> SSAValue:
    """Views of a cast to a type of the border as the cast of the views."""
    views: list[ViewOp] = []
    inner = value
    while isinstance(inner.owner, ViewOp) and len(inner.owner.operands) == 1:
        views.append(inner.owner)
        inner = inner.owner.operands[0]
    if not views or not isinstance(inner.owner, CastOp) or element(value) not in BORDER:
        return value
    cast, moved = inner.owner, inner.owner.x
    for view in reversed(views):
        moved = _insert(type(view).build_op([moved], view.properties), view, last)
    wide = _insert(CastOp.build_op([moved], element=element(value)), cast, last)
    last.operands[list(last.operands).index(value)] = wide
    for op in (*views, cast):
        if not any(True for _ in op.results[0].uses):
            op.detach()
            op.erase()
    return wide


def _insert(op: GraphOp, like: Operation, last: Operation) -> SSAValue:
    op.location = like.location
    Rewriter.insert_op(op, InsertPoint.before(last))
    return op.results[0]


def _names(values: Sequence[SSAValue], given: Attribute | None) -> Attribute:
    """The types that callers see: those that are given, else those of the values."""
    found = [str(host_type(v)) if is_host(v) else dtype_name(v) for v in values]
    if isinstance(given, ArrayAttr):
        seen = [item.data if isinstance(item, StringAttr) else "" for item in given]
        found = [border or own for border, own in zip(seen, found, strict=True)]
    return ArrayAttr([StringAttr(name) for name in found])
