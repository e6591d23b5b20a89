"""Every matrix product as one of the forms that a kernel has (a part of `decompose`).

    a [m, k] · b [k, n]                      one matrix on the right; a may have further axes before m
    a [batch, m, k] · b [batch, k, n]        one for each

A vector is a matrix of one row, or of one column. Batch axes that broadcast are merged: those that only a has, and that
stand next to m, are further rows; where b has more, a is repeated, and the other way round. Bits stay: k keeps its
order. The cube has no products of i32, and u8 by i8 becomes i8 by i8.
"""

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from ..dialects.graph.arithmetic import AddOp, MulOp, SubOp
from ..dialects.graph.contract import MatMulOp
from ..dialects.graph.elementwise import CastOp
from ..dialects.graph.emit import Emit
from ..dialects.graph.op import broadcast_shapes, element, i8, i32, shape, u8
from ..dialects.graph.properties import flag
from ..dialects.graph.reduce import ReduceSumOp
from ..dialects.graph.views import ExpandOp, ReshapeOp, TransposeOp
from .rewrite import Rewriter

SIGN = 128
"""u8 − 128 is an i8."""


def plain_product(op: MatMulOp, rewriter: Rewriter) -> None:
    """Rewrites a product that has no kernel of its own form."""
    emit = Emit(op, rewriter)
    if op.bias is not None and element(op.bias) == i32:
        y = emit(MatMulOp, op.a, op.b, trans_b=_trans_b(op))
        rewriter.replace(op, [], [emit(AddOp, y, op.bias)])
    elif element(op.a) == i32:
        rewriter.replace(op, [], [_by_elements(op, emit)])
    elif element(op.a) == u8:
        rewriter.replace(op, [], [_signed(op, emit)])
    elif not _is_plain(shape(op.a), shape(op.b)):
        rewriter.replace(op, [], [_product(op, emit)])


def _is_plain(a: Sequence[int], b: Sequence[int]) -> bool:
    if len(a) < 2 or len(b) < 2:
        return False
    return (math.prod(b[:-2]) == 1 and len(b) <= len(a)) or a[:-2] == b[:-2]


def _by_elements(op: MatMulOp, emit: Emit) -> SSAValue:
    """i32: products on the vector engine, then their sum."""
    a, b = op.a, op.b
    left, right = len(shape(a)) > 1, len(shape(b)) > 1
    if right and not flag(op.properties, "trans_b"):
        b = _transposed(emit, b)
    if left and right:
        a = emit.keep(ReshapeOp, a, shape=[*shape(a)[:-1], 1, shape(a)[-1]])
        b = emit.keep(ReshapeOp, b, shape=[*shape(b)[:-2], 1, *shape(b)[-2:]])
    products = emit(MulOp, a, b)
    return emit(ReduceSumOp, products, axes=[-1])


def _signed(op: MatMulOp, emit: Emit) -> SSAValue:
    """u8 by i8: (a − 128)·b + 128·Σ b over k; exact modulo 2³²."""
    place = -1 if flag(op.properties, "trans_b") or len(shape(op.b)) == 1 else -2
    sums = emit(ReduceSumOp, emit(CastOp, op.b, element=i32), axes=[place])
    shift = emit(MulOp, sums, emit.constant(SIGN, i32))
    y = emit(MatMulOp, as_signed(emit, op.a), op.b, trans_b=_trans_b(op))
    if len(shape(op.a)) > 1 and len(shape(shift)) > 1:
        shift = emit(ReshapeOp, shift, shape=[*shape(shift)[:-1], 1, shape(shift)[-1]])
    return emit(AddOp, y, shift)


def _trans_b(op: MatMulOp) -> bool | None:
    return True if flag(op.properties, "trans_b") else None


def as_signed(emit: Emit, x: SSAValue) -> SSAValue:
    """The u8 x as the i8 x − 128."""
    moved = emit(SubOp, x, emit.constant(SIGN, u8), element=u8)
    return emit(CastOp, moved, element=i8)


def _transposed(emit: Emit, x: SSAValue) -> SSAValue:
    axes = list(range(len(shape(x))))
    return emit.keep(TransposeOp, x, perm=[*axes[:-2], axes[-1], axes[-2]])


def _product(op: MatMulOp, emit: Emit) -> SSAValue:
    """Vectors as matrices, batch axes merged or repeated."""
    a, b, trans_b = op.a, op.b, flag(op.properties, "trans_b")
    if len(shape(a)) == 1:
        a = emit.keep(ReshapeOp, a, shape=[1, *shape(a)])
    if len(shape(b)) == 1:
        b, trans_b = emit.keep(ReshapeOp, b, shape=[1, *shape(b)]), True
    batch = broadcast_shapes(shape(a)[:-2], shape(b)[:-2])
    a, b = (_with_batch(emit, x, len(batch)) for x in (a, b))
    rows = len(batch)
    while rows and shape(b)[rows - 1] == 1:
        rows -= 1  # b is the same along the axis: more rows of a
    if rows:
        shared = batch[:rows]
        a = _repeated(emit, a, (*shared, *shape(a)[rows:]))
        b = _repeated(emit, b, (*shared, *shape(b)[rows:]))
        a = emit.keep(ReshapeOp, a, shape=[math.prod(shared), math.prod(shape(a)[rows:-1]), shape(a)[-1]])
        b = emit.keep(ReshapeOp, b, shape=[math.prod(shared), *shape(b)[-2:]])
    else:
        b = emit.keep(ReshapeOp, b, shape=shape(b)[-2:])
    y = emit(MatMulOp, a, b, op.bias, trans_b=True if trans_b else None)
    return emit(ReshapeOp, y, shape=shape(op.result))


def _with_batch(emit: Emit, x: SSAValue, rank: int) -> SSAValue:
    """x with as many batch axes as `rank`."""
    missing = rank + 2 - len(shape(x))
    return emit.keep(ReshapeOp, x, shape=[1] * missing + list(shape(x))) if missing else x


def _repeated(emit: Emit, x: SSAValue, size: Sequence[int]) -> SSAValue:
    return x if shape(x) == tuple(size) else emit.keep(ExpandOp, x, shape=size)
