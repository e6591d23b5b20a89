"""TfIdfVectorizer: how often each n-gram of a pool stands in a row of integers."""

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from ..dialects.graph.arithmetic import AddOp, EqOp, MinOp, MulOp
from ..dialects.graph.contract import MatMulOp
from ..dialects.graph.elementwise import CastOp
from ..dialects.graph.op import InferError, element, f32, i32, shape
from ..dialects.graph.reduce import ReduceMinOp, ReduceSumOp
from ..dialects.graph.views import ReshapeOp
from .movement import take
from .node import Node, Value

Grams = np.ndarray[tuple[int, ...], np.dtype[np.int32]]
MOST_COMPARED = 2**24
"""Elements of one comparison of all places with all n-grams of a size."""


def tf_idf(node: Node) -> Sequence[Value]:
    """Counts, or with mode IDF whether there are any; times the weights but for mode TF."""
    x, given = node.operand(0), node.attributes
    if "pool_strings" in given or element(x) != i32:
        found = "pool_strings" if "pool_strings" in given else x.type
        raise InferError(f"n-grams are of integers of 32 or 64 bits (found {found})")
    if len(shape(x)) not in (1, 2):
        raise InferError(f"the operand is one row or several (found rank {len(shape(x))})")
    columns, mode = np.array(given["ngram_indexes"]), given["mode"]
    width = int(columns.max()) + 1
    weights = np.ones(width, np.float32)
    if mode != "TF" and "weights" in given:
        weights[columns] = given["weights"]
    rows = x if len(shape(x)) == 2 else node.emit(ReshapeOp, x, shape=[1, shape(x)[0]])
    total: SSAValue | None = None
    first = 0
    for size, grams in _pools(node):
        own, first = columns[first : first + len(grams)], first + len(grams)
        if not len(grams) or not given["min_gram_length"] <= size <= given["max_gram_length"]:
            continue
        places = np.zeros((len(grams), width), np.float32)
        places[np.arange(len(grams)), own] = 1
        counts = _counts(node, rows, grams, given["max_skip_count"] if size > 1 else 0)
        if counts is not None:
            part = node.emit(MatMulOp, counts, node.materialize(places))
            total = part if total is None else node.emit(AddOp, total, part)
    size = [width] if len(shape(x)) == 1 else [shape(x)[0], width]
    if total is None:
        return [np.zeros(size, np.float32)]
    if mode == "IDF":
        total = node.emit(MinOp, total, node.builder.constant(np.array(1, np.float32)))
    y = total if mode == "TF" else node.emit(MulOp, total, node.materialize(weights))
    return [y if shape(y) == tuple(size) else node.emit(ReshapeOp, y, shape=size)]


def _pools(node: Node) -> Sequence[tuple[int, Grams]]:
    """Of each size the n-grams, [count, size]."""
    pool, starts = np.array(node.attributes["pool_int64s"]), [*node.attributes["ngram_counts"]]
    ends = [*starts[1:], len(pool)]
    return [
        (size, pool[start:end].reshape(-1, size).astype(np.int32))
        for size, (start, end) in enumerate(zip(starts, ends, strict=True), 1)
    ]


def _counts(node: Node, rows: SSAValue, grams: Grams, most: int) -> SSAValue | None:
    """[N, n-grams]: at how many places each stands, its parts up to `most` apart."""
    (batch, extent), (count, size) = shape(rows), grams.shape
    starts = [
        [first + part * (skip + 1) for part in range(size)]
        for skip in range(most + 1)
        for first in range(extent - (size - 1) * (skip + 1))
    ]
    if not starts:
        return None
    if len(starts) * batch * count * size > MOST_COMPARED:
        raise InferError(f"2^24 comparisons at most (found {len(starts)}·{batch}·{count}·{size})")
    parts = take(node, rows, 1, [place for places in starts for place in places])
    parts = node.emit(ReshapeOp, parts, shape=[batch, len(starts), 1, size])
    same = node.emit(CastOp, node.emit(EqOp, parts, node.materialize(grams[None, None])), element=i32)
    there = node.emit(ReduceMinOp, same, axes=[3])
    return node.emit(CastOp, node.emit(ReduceSumOp, there, axes=[1]), element=f32)
