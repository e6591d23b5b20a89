"""Det: the determinant of small matrices, by elimination."""

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from ..dialects.graph.activations import AbsOp
from ..dialects.graph.arithmetic import DivOp, EqOp, MulOp, SubOp
from ..dialects.graph.elementwise import CastOp, WhereOp
from ..dialects.graph.op import FLOATS, InferError, element, f32, shape
from ..dialects.graph.reduce import ReduceMaxOp, ReduceMinOp, ReduceSumOp
from ..dialects.graph.views import ReshapeOp, SliceOp
from .node import Node, Value

MOST_ROWS = 16
"""Each row is some ops."""


def det(node: Node) -> Sequence[Value]:
    """The product of the pivots; of each column the largest element is the pivot, and a change of rows one of sign.

    All of it in f32; two rows at the end are a·d − b·c.
    """
    x = node.operand(0)
    *batch, rows, columns = (1, *shape(x)) if len(shape(x)) < 2 else shape(x)
    if rows != columns or rows > MOST_ROWS or len(shape(x)) < 2 or element(x) not in FLOATS:
        raise InferError(f"matrices are floats, square, of {MOST_ROWS} rows at most (found {x.type})")
    y = node.emit(ReshapeOp, x, shape=[int(np.prod(batch)), rows, rows])
    y = y if element(y) == f32 else node.emit(CastOp, y, element=f32)
    factor: SSAValue | None = None
    while shape(y)[1] > 2:
        pivot, y = _eliminated(node, y)
        factor = pivot if factor is None else node.emit(MulOp, factor, pivot)
    last = y if rows == 1 else _two(node, y)
    total = last if factor is None else node.emit(MulOp, factor, last)
    result = node.emit(ReshapeOp, total, shape=batch)
    return [result if element(x) == f32 else node.emit(CastOp, result, element=element(x))]


def _two(node: Node, y: SSAValue) -> SSAValue:
    """[N, 1, 1]: a·d − b·c."""
    n = shape(y)[0]
    a, b, c, d = (_part(node, y, [0, i, j], [n, 1, 1]) for i in range(2) for j in range(2))
    return node.emit(SubOp, node.emit(MulOp, a, d), node.emit(MulOp, b, c))


def _part(node: Node, y: SSAValue, starts: Sequence[int], sizes: Sequence[int]) -> SSAValue:
    return node.emit(SliceOp, y, starts=starts, sizes=sizes, steps=[1] * len(starts))


def _eliminated(node: Node, y: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The pivot with its sign, [N, 1, 1], and the matrices that are left, a row and a column smaller.

    The row of the pivot is written into the place of the first row, and that one into its place.
    """
    n, rows, _ = shape(y)
    column = _part(node, y, [0, 0, 0], [n, rows, 1])
    size = node.emit(AbsOp, column)
    places = node.builder.constant(np.arange(rows, dtype=np.int32).reshape(1, rows, 1))
    none, zero = (node.builder.constant(np.array(v, np.int32)) for v in (rows - 1, 0))
    largest = node.emit(EqOp, size, node.emit(ReduceMaxOp, size, axes=[1], keepdims=True))
    place = node.emit(ReduceMinOp, node.emit(WhereOp, largest, places, none), axes=[1], keepdims=True)
    chosen = node.emit(EqOp, places, place)
    nothing = node.builder.constant(np.array(0, np.float32))
    row = node.emit(ReduceSumOp, node.emit(WhereOp, chosen, y, nothing), axes=[1], keepdims=True)
    first = _part(node, y, [0, 0, 0], [n, 1, rows])
    swapped = node.emit(WhereOp, chosen, first, y)
    pivot = _part(node, row, [0, 0, 0], [n, 1, 1])
    below = _part(node, swapped, [0, 1, 0], [n, rows - 1, rows])
    left = _part(node, below, [0, 0, 0], [n, rows - 1, 1])
    empty = node.emit(EqOp, pivot, nothing)
    one = node.builder.constant(np.array(1, np.float32))
    share = node.emit(DivOp, left, node.emit(WhereOp, empty, one, pivot))
    rest = node.emit(
        SubOp,
        _part(node, below, [0, 0, 1], [n, rows - 1, rows - 1]),
        node.emit(MulOp, share, _part(node, row, [0, 0, 1], [n, 1, rows - 1])),
    )
    minus = node.builder.constant(np.array(-1, np.float32))
    sign = node.emit(WhereOp, node.emit(EqOp, place, zero), one, minus)
    return node.emit(MulOp, pivot, sign), rest
