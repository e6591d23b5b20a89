"""Einsum: any equation as transposes, sums and matrix products, two operands at a time from the left.

    bij,bjk->bik      a matmul of [b, i, j] and [b, j, k]
    bhwc,hkc->bhwk    h is common and kept, so it is a batch axis: [h, bw, c]·[h, c, k]
    iij->j            the diagonal over i first, then its sum

An ellipsis stands for axes of its own labels, which broadcast.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ..dialects.graph.arithmetic import MulOp
from ..dialects.graph.contract import MatMulOp
from ..dialects.graph.op import InferError, ShapeError, shape
from ..dialects.graph.reduce import ReduceSumOp
from ..dialects.graph.views import ReshapeOp, SliceOp, TransposeOp
from .node import Node, Value, size_of


@dataclass(frozen=True)
class _Labelled:
    """A value whose axes have labels, each once."""

    value: SSAValue
    labels: str


def einsum(node: Node) -> Sequence[Value]:
    """The sum that the equation names."""
    sizes = [size_of(node.given(index)) for index in range(len(node.inputs))]
    terms, target = parse(node.attributes["equation"], [len(size) for size in sizes])
    extents: dict[str, int] = {}
    for term, size in zip(terms, sizes, strict=True):
        for label, extent in zip(term, size, strict=True):
            if extents.setdefault(label, extent) == 1:
                extents[label] = extent
            if extent not in (1, extents[label]):
                raise ShapeError(f"axes of one label agree (found {extents[label]} and {extent} for {label!r})")
    values = [_diagonals(node, node.operand(index), term) for index, term in enumerate(terms)]
    values = [_squeezed(node, x, extents) for x in values]
    result = values[0]
    for position, other in enumerate(values[1:], 2):
        later = "".join(x.labels for x in values[position:]) + target
        result = _pair(node, result, other, later)
    return [_ordered(node, _summed(node, result, target), target)]


def parse(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The labels of each operand and of the result; the axes of an ellipsis are labelled by digits, the last one 0."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise InferError(f"the equation names {len(terms)} operands (found {len(ranks)})", broken=True)
    broadcast = 0
    for i, (term, rank) in enumerate(zip(terms, ranks, strict=True)):
        count = rank - len(term.replace("...", ""))
        if count < 0 or (count and "..." not in term) or count > 10:
            raise ShapeError(f"operand {i} has an axis for each label of {term!r} (found rank {rank})")
        terms[i] = term.replace("...", "".join(map(str, reversed(range(count)))))
        broadcast = max(broadcast, count if "..." in term else 0)
    dots = "".join(map(str, reversed(range(broadcast))))
    if not arrow:
        joined = "".join(terms)
        right = dots + "".join(label for label in sorted(set(joined)) if label.isalpha() and joined.count(label) == 1)
    target = right.replace("...", dots)
    unknown = sorted({label for label in target if label not in "".join(terms)})
    if unknown or len(set(target)) != len(target):
        raise ShapeError(f"each label of the result names an axis of an operand, once (found {right!r})")
    return terms, target


def _diagonals(node: Node, x: SSAValue, term: str) -> _Labelled:
    """A label that an operand has twice walks its diagonal."""
    labels = term
    for label in dict.fromkeys(term):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            order = [first, second, *(i for i in range(len(labels)) if i not in (first, second))]
            size = shape(x)[first]
            x = node.emit(TransposeOp, x, perm=order)
            x = node.emit(ReshapeOp, x, shape=[size * size, *shape(x)[2:]])
            x = node.emit(SliceOp, x, starts=[0], ends=[size * size], axes=[0], steps=[size + 1])
            labels = "".join(labels[i] for i in order[1:])
    return _Labelled(x, labels)


def _squeezed(node: Node, x: _Labelled, extents: dict[str, int]) -> _Labelled:
    """Without axes of extent 1 along which another operand is longer."""
    kept = [i for i, label in enumerate(x.labels) if shape(x.value)[i] == extents[label]]
    if len(kept) == len(x.labels):
        return x
    size = [shape(x.value)[i] for i in kept]
    return _Labelled(node.emit(ReshapeOp, x.value, shape=size), "".join(x.labels[i] for i in kept))


def _summed(node: Node, x: _Labelled, wanted: str) -> _Labelled:
    """Summed over the axes that are not wanted."""
    axes = [i for i, label in enumerate(x.labels) if label not in wanted]
    if not axes:
        return x
    value = node.emit(ReduceSumOp, x.value, axes=axes)
    return _Labelled(value, "".join(label for label in x.labels if label in wanted))


def _pair(node: Node, a: _Labelled, b: _Labelled, later: str) -> _Labelled:
    """The product of two operands, summed over the labels that both have and that nothing needs later."""
    a, b = _summed(node, a, b.labels + later), _summed(node, b, a.labels + later)
    batch = [label for label in a.labels if label in b.labels and label in later]
    inner = [label for label in a.labels if label in b.labels and label not in later]
    rows = [label for label in a.labels if label not in b.labels]
    columns = [label for label in b.labels if label not in a.labels]
    extent = dict(zip(a.labels + b.labels, (*shape(a.value), *shape(b.value)), strict=True))
    kept = [extent[label] for label in (*batch, *rows, *columns)]
    count = {
        name: math.prod(extent[x] for x in group)
        for name, group in zip("brck", (batch, rows, columns, inner), strict=True)
    }
    left = _ordered(node, a, (*batch, *rows, *inner))
    if not inner:
        right = _ordered(node, b, (*batch, *columns))
        left = node.emit(ReshapeOp, left, shape=[count["b"], count["r"], 1])
        right = node.emit(ReshapeOp, right, shape=[count["b"], 1, count["c"]])
        value = node.emit(MulOp, left, right)
    else:
        right = _ordered(node, b, (*batch, *inner, *columns))
        left = node.emit(ReshapeOp, left, shape=[count["b"], count["r"], count["k"]])
        right = node.emit(ReshapeOp, right, shape=[count["b"], count["k"], count["c"]])
        value = node.emit(MatMulOp, left, right)
    return _Labelled(node.emit(ReshapeOp, value, shape=kept), "".join((*batch, *rows, *columns)))


def _ordered(node: Node, x: _Labelled, labels: Sequence[str]) -> SSAValue:
    """The value with its axes in this order."""
    perm = [x.labels.index(label) for label in labels]
    return x.value if perm == sorted(perm) else node.emit(TransposeOp, x.value, perm=perm)
