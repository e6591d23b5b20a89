"""ONNX operators whose places are computed: scatters that combine, caches, sequences turned round, windows undone."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ..dialects.graph.arithmetic import AddOp, AndOp, EqOp, LtOp, MaxOp, MinOp, ModOp, MulOp, NotOp, SubOp
from ..dialects.graph.constants import NUMPY
from ..dialects.graph.contract import MatMulOp
from ..dialects.graph.elementwise import CastOp, WhereOp
from ..dialects.graph.gather import GatherOp, ScatterElementsOp, ScatterNDOp
from ..dialects.graph.op import FLOATS, GraphOp, InferError, ShapeError, element, i1, i32, shape, u8
from ..dialects.graph.properties import ints
from ..dialects.graph.reduce import ReduceMaxOp, ReduceMinOp, ReduceProdOp, ReduceSumOp
from ..dialects.graph.views import ConcatOp, ExpandOp, PadOp, ReshapeOp, SliceOp, TransposeOp, normal_axis
from ..dialects.graph.windows import normal_window, window_from_onnx
from .movement import along, framed
from .node import Node, Value

COMBINE: Mapping[str, tuple[type[GraphOp], type[GraphOp], float]] = {
    "add": (ReduceSumOp, AddOp, 0.0),
    "mul": (ReduceProdOp, MulOp, 1.0),
    "max": (ReduceMaxOp, MaxOp, -math.inf),
    "min": (ReduceMinOp, MinOp, math.inf),
}
"""What a scatter with a reduction does to the updates of one place, and to x; and what changes nothing."""
MOST_COMPARED = 1 << 20
"""Elements that are compared with all places; more that go by rows are added by a product."""
MOST_PAIRS = 1 << 28
"""Of an index and a place; the CPU goes through more of them sooner."""

AS_TRUTH = {"add": "max", "mul": "min"}
"""What reductions are of truth values."""


# scatters -------------------------------------------------------------------------------------------------------------
def scatter_elements(node: Node) -> Sequence[Value]:
    """x with updates in place of elements, or combined with them."""
    if node.attributes.get("reduction", "none") == "none":
        return [node.one(ScatterElementsOp)]
    x, indices, updates = (node.operand(index) for index in range(3))
    given = node.given(1)
    if isinstance(given, np.ndarray) and given.ndim > 1:
        first = given[:, *[slice(1)] * (given.ndim - 1)]
        if (given == first).all():
            indices = node.emit(ExpandOp, node.materialize(first), shape=given.shape)
    return [_combined(node, x, indices, updates, normal_axis(node.attributes.get("axis", 0), len(shape(x))))]


def scatter_nd(node: Node) -> Sequence[Value]:
    """As `scatter_elements`, whole rows at once."""
    if node.attributes.get("reduction", "none") == "none":
        return [node.one(ScatterNDOp)]
    x, indices, updates = (node.operand(index) for index in range(3))
    size, depth = shape(x), shape(indices)[-1]
    count, inner = math.prod(shape(indices)[:-1]), math.prod(size[depth:])
    extents = np.array(size[:depth], np.int32)
    steps = np.array([math.prod(size[i + 1 : depth]) for i in range(depth)], np.int32)
    wrapped = _from_zero(node, indices, node.materialize(extents))
    rows = node.emit(ReduceSumOp, node.emit(MulOp, wrapped, node.materialize(steps)), axes=[-1], element=i32)
    rows = node.emit(ExpandOp, node.emit(ReshapeOp, rows, shape=[count, 1]), shape=[count, inner])
    table = node.emit(ReshapeOp, x, shape=[math.prod(size[:depth]), inner])
    found = _combined(node, table, rows, node.emit(ReshapeOp, updates, shape=[count, inner]), 0)
    return [node.emit(ReshapeOp, found, shape=size)]


def _from_zero(node: Node, indices: SSAValue, extent: SSAValue) -> SSAValue:
    """Negative indices count from the end."""
    negative = node.emit(LtOp, indices, node.materialize(np.zeros((), np.int32)), element=i1)
    return node.emit(WhereOp, negative, node.emit(AddOp, indices, extent), indices, element=i32)


def _combined(node: Node, x: SSAValue, indices: SSAValue, updates: SSAValue, axis: int) -> SSAValue:
    """Each place compares its number with all indices; those that are it are reduced, then combined with x."""
    reduction, size, kind = node.attributes["reduction"], shape(x), element(x)
    if reduction not in COMBINE:
        raise InferError(f"reduction is none, {', '.join(COMBINE)} (found {reduction})", broken=True)
    if shape(updates) != shape(indices) or element(updates) != kind or element(indices) != i32:
        raise ShapeError(f"there is an update of x's type for each index (found {updates.type} and {indices.type})")
    if kind not in (*FLOATS, i32) and reduction in ("add", "mul"):  # bytes wrap, truth values are 0 or 1
        wide = [node.emit(CastOp, value, element=u8 if kind == i1 else i32) for value in (x, updates)]
        means = node.with_attributes(reduction=AS_TRUTH[reduction]) if kind == i1 else node
        return node.emit(CastOp, _combined(means, wide[0], indices, wide[1], axis), element=kind)
    reduce, combine, neutral = COMBINE[reduction]
    nothing = node.materialize(_neutral(NUMPY[kind], kind in FLOATS, neutral))
    by_row = _rows(indices) if axis == 0 and reduction == "add" and kind in FLOATS else None
    compared = math.prod(shape(indices)) * size[axis]
    rows = by_row if compared > MOST_COMPARED else None
    pairs = compared if rows is None else shape(indices)[0] * size[0]
    if pairs > MOST_PAIRS:
        raise InferError(f"at most {MOST_PAIRS:,} pairs of an index and a place are compared (found {pairs:,})")
    if rows is not None:
        found = _added(node, rows, updates, size[0])
    else:
        places = node.materialize(along(np.arange(size[axis], dtype=np.int32), axis + 1, len(size) + 1))
        wide = [*shape(indices)[: axis + 1], 1, *shape(indices)[axis + 1 :]]
        indices = _from_zero(node, indices, node.materialize(np.array(size[axis], np.int32)))
        here = node.emit(EqOp, node.emit(ReshapeOp, indices, shape=wide), places, element=i1)
        candidates = node.emit(WhereOp, here, node.emit(ReshapeOp, updates, shape=wide), nothing, element=kind)
        found = node.emit(reduce, candidates, axes=[axis], element=kind)
    beyond = [n - m for n, m in zip(size, shape(found), strict=True)]
    if any(beyond):
        found = framed(node, found, [0] * len(size), beyond, nothing)
    return node.emit(combine, x, found, element=kind)


def _rows(indices: SSAValue) -> SSAValue | None:
    """The place of each row, [rows, 1], if all elements of a row go to one."""
    rank = len(shape(indices))
    if rank == 1:
        return indices
    made = indices.owner
    if not isinstance(made, ExpandOp):
        return None
    size = (1,) * (rank - len(shape(made.x))) + tuple(shape(made.x))
    return made.x if size[0] == shape(indices)[0] and set(size[1:]) <= {1} else None


def _added(node: Node, rows: SSAValue, updates: SSAValue, extent: int) -> SSAValue:
    """Sums of rows by place: a product with what says which row goes where. What is no finite number is counted on its
    own, since its product with 0 is none."""
    kind, count = element(updates), shape(updates)[0]
    inner = math.prod(shape(updates)[1:])
    column = _from_zero(
        node, node.emit(ReshapeOp, rows, shape=[1, count]), node.materialize(np.array(extent, np.int32))
    )
    places = node.materialize(np.arange(extent, dtype=np.int32).reshape(extent, 1))
    here = node.emit(CastOp, node.emit(EqOp, column, places, element=i1), element=kind)
    table = node.emit(ReshapeOp, updates, shape=[count, inner])
    zero, most = (node.materialize(np.array(value, NUMPY[kind])) for value in (0, math.inf))
    least = node.materialize(np.array(-math.inf, NUMPY[kind]))
    below, above = (node.emit(LtOp, *pair, element=i1) for pair in ((table, most), (least, table)))
    finite = node.emit(WhereOp, node.emit(AndOp, below, above), table, zero, element=kind)
    flags = [node.emit(CastOp, node.emit(NotOp, each), element=kind) for each in (below, above)]
    sums = node.emit(MatMulOp, here, node.emit(ConcatOp, finite, *flags, axis=1))
    total, high, low = (
        node.emit(SliceOp, sums, starts=[start], ends=[start + inner], axes=[1]) for start in range(0, 3 * inner, inner)
    )
    is_high, is_low = (node.emit(LtOp, zero, each, element=i1) for each in (high, low))
    nan = node.materialize(np.array(math.nan, NUMPY[kind]))
    ends = node.emit(WhereOp, is_low, least, total, element=kind)
    both = node.emit(WhereOp, is_low, nan, most, element=kind)
    found = node.emit(WhereOp, is_high, both, ends, element=kind)
    return node.emit(ReshapeOp, found, shape=[extent, *shape(updates)[1:]])


def _neutral(dtype: np.dtype[Any], is_float: bool, value: float) -> np.ndarray[Any, Any]:
    if is_float or math.isfinite(value):
        return np.array(value, dtype)
    limits = np.iinfo(dtype)
    return np.array(limits.max if value > 0 else limits.min, dtype)


def tensor_scatter(node: Node) -> Sequence[Value]:
    """A cache with new rows from a place on that each sequence of the batch names; `circular`: around its end."""
    cache, update = node.operand(0), node.operand(1)
    size, fresh = shape(cache), shape(update)
    axis = normal_axis(node.attributes.get("axis", -2), len(size))
    mode = node.attributes.get("mode", "linear")
    if axis == 0 or mode not in ("linear", "circular"):
        raise InferError(
            f"the axis is not that of the batch, mode is linear or circular (found {axis} and {mode})", broken=True
        )
    first = node.inputs[2] if len(node.inputs) > 2 else None
    first = np.zeros(size[0], np.int32) if first is None else first
    starts = node.emit(ReshapeOp, node.materialize(first), shape=[size[0], *[1] * (len(size) - 1)])
    places = node.emit(AddOp, starts, node.materialize(along(np.arange(fresh[axis], dtype=np.int32), axis, len(size))))
    if mode == "circular":
        places = node.emit(ModOp, places, node.materialize(np.array(size[axis], np.int32)))
    return [node.emit(ScatterElementsOp, cache, node.emit(ExpandOp, places, shape=fresh), update, axis=axis)]


def max_unpool(node: Node) -> Sequence[Value]:
    """Zeros, but for the values at the places that MaxPool found them: those of the result, whose size may be given."""
    x, places = node.operand(0), node.operand(1)
    n, channels, *space = shape(x)
    kernel = node.attributes["kernel_shape"]
    rank = len(kernel)
    if rank != len(space):
        raise ShapeError(f"there is a number of taps for each of {len(space)} axes (found {kernel})")
    strides, pads = node.attributes.get("strides", [1] * rank), node.attributes.get("pads", [0] * 2 * rank)
    inferred = [(space[i] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + rank] for i in range(rank)]
    given = node.known(2)
    size = [n, channels, *inferred] if given is None else given.reshape(-1).tolist()
    if (
        len(size) != rank + 2
        or size[:2] != [n, channels]
        or any(a < b for a, b in zip(size[2:], inferred, strict=True))
    ):
        raise ShapeError(f"the result has at least the size [{n}, {channels}, {inferred}] (found {size})")
    count, total = math.prod(shape(x)), math.prod(size)
    if isinstance(node.inputs[1], np.ndarray):
        outside = node.inputs[1][(node.inputs[1] < 0) | (node.inputs[1] >= total)]
        if outside.size:
            raise InferError(f"indices are those of the {total} elements of the result (found {outside.flat[0]})")
    zeros = node.emit(ExpandOp, node.materialize(np.zeros((), NUMPY[element(x)])), shape=[total])
    flat, rows = (node.emit(ReshapeOp, value, shape=[count]) for value in (x, places))
    return [node.emit(ReshapeOp, node.emit(ScatterElementsOp, zeros, rows, flat, axis=0), shape=size)]


# gathers --------------------------------------------------------------------------------------------------------------
def reverse_sequence(node: Node) -> Sequence[Value]:
    """The first elements of each sequence, as many as it is long, in reverse order."""
    x, lengths = node.operand(0), node.operand(1)
    batch, time = node.attributes.get("batch_axis", 1), node.attributes.get("time_axis", 0)
    if {batch, time} != {0, 1} or len(shape(x)) < 2:
        raise ShapeError(f"batch and time are the first two axes (found {batch} and {time} of rank {len(shape(x))})")
    perm = [1, 0, *range(2, len(shape(x)))]
    x = node.emit(TransposeOp, x, perm=perm) if time == 0 else x
    n, steps = shape(x)[:2]
    places = node.materialize(np.arange(steps, dtype=np.int32)[None])
    lengths = node.emit(ReshapeOp, lengths, shape=[n, 1])
    last = node.emit(SubOp, lengths, node.materialize(np.ones((), np.int32)))
    turned = node.emit(SubOp, last, places)
    inside = node.emit(LtOp, places, lengths, element=i1)
    y = node.emit(GatherOp, x, node.emit(WhereOp, inside, turned, places, element=i32), axis=1, batch_dims=1)
    return [node.emit(TransposeOp, y, perm=perm) if time == 0 else y]


def col2im(node: Node) -> Sequence[Value]:
    """Each element of an image is the sum of all elements of columns that windows took from it."""
    x, image, block = node.operand(0), node.known(1), node.known(2)
    if image is None or block is None or element(x) not in FLOATS:
        raise ShapeError(f"the columns are floats, image and block have sizes (found {x.type}, {image}, {block})")
    kernel, space = [int(k) for k in block.reshape(-1)], [int(n) for n in image.reshape(-1)]
    window = normal_window(space, kernel, window_from_onnx({**node.attributes, "kernel_shape": kernel}))
    sources = _columns(space, kernel, window)
    (n, rows, count), taps = shape(x), math.prod(kernel)
    channels = rows // taps
    if rows != channels * taps or sources.max(initial=0) > taps * count:
        raise ShapeError(f"there is a column for each window (found {x.type} for {space} in {kernel})")
    flat = node.emit(ReshapeOp, x, shape=[n, channels, taps * count])
    flat = node.emit(PadOp, flat, before=[0, 0, 0], after=[0, 0, 1])
    table = node.materialize(np.where(sources < 0, taps * count, sources).astype(np.int32))
    found = node.emit(GatherOp, flat, table, axis=2)
    y = node.emit(ReduceSumOp, found, axes=[2], element=element(x))
    return [node.emit(ReshapeOp, y, shape=[n, channels, *space])]


def _columns(space: Sequence[int], kernel: Sequence[int], window: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """[terms, pixels]: of each pixel its places (tap, window) in the columns, −1 where there are fewer."""
    strides, pads, dilations = (ints(window, name) for name in ("strides", "pads", "dilations"))
    rank = len(space)
    counts = [
        (space[i] + pads[i] + pads[i + rank] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1
        for i in range(rank)
    ]
    found: list[list[int]] = [[] for _ in range(math.prod(space))]
    for tap, taps in enumerate(np.ndindex(*kernel)):
        for place, places in enumerate(np.ndindex(*counts)):
            at = [p * s + t * d - b for p, s, t, d, b in zip(places, strides, taps, dilations, pads, strict=False)]
            if all(0 <= a < n for a, n in zip(at, space, strict=True)):
                found[int(np.ravel_multi_index(at, space))].append(tap * math.prod(counts) + place)
    most = max(map(len, found))
    return np.array([terms + [-1] * (most - len(terms)) for terms in found]).T


def affine_grid(node: Node) -> Sequence[Value]:
    """The places of an image, turned and moved by a matrix for each: [N, …, axes], from −1 to 1."""
    theta, given = node.operand(0), node.known(1)
    if given is None or len(shape(theta)) != 3:
        raise ShapeError(f"there is a matrix for each image, and a size (found {theta.type} and {given})")
    n, _, *space = (int(extent) for extent in given)
    align = bool(node.attributes.get("align_corners", 0))
    steps = [np.linspace(-1, 1, k) if align else (np.arange(k) * 2 + 1) / k - 1 for k in space]
    lines = [axis.reshape(-1) for axis in np.meshgrid(*steps, indexing="ij")][::-1]
    points = np.stack([*lines, np.ones_like(lines[0])], 1).astype(NUMPY[element(theta)])
    y = node.emit(MatMulOp, node.materialize(points), theta, trans_b=True, element=element(theta))
    return [node.emit(ReshapeOp, y, shape=[n, *space, len(space)])]


INDEXED: Mapping[str, Callable[[Node], Sequence[Value]]] = {
    "AffineGrid": affine_grid,
    "Col2Im": col2im,
    "MaxUnpool": max_unpool,
    "ReverseSequence": reverse_sequence,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "TensorScatter": tensor_scatter,
}
"""By operator."""
