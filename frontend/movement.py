"""ONNX operators that move elements, and those that find or place them by comparing: gathers, padding, top-k …"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ..dialects.graph.arithmetic import AddOp, EqOp, GtOp, LtOp, OrOp
from ..dialects.graph.constants import NUMPY
from ..dialects.graph.elementwise import CastOp, WhereOp
from ..dialects.graph.gather import GatherOp
from ..dialects.graph.op import FLOATS, InferError, ShapeError, Tensor, element, i1, i32, shape, tensor
from ..dialects.graph.reduce import ReduceMaxOp, ReduceMinOp
from ..dialects.graph.views import ConcatOp, ExpandOp, PadOp, ReshapeOp, SliceOp, TransposeOp, normal_axis
from .fold import repeated_value
from .node import Node, Value, size_of

MOST_RUNS = 8
"""Pieces of constant indices up to which slices and a join are cheaper than a gather."""
MOST_PARTS = 24
"""Operands of one join; a kernel has few more arguments."""
MOST_K = 64
"""Elements that TopK finds one after the other."""
MOST_F16 = 65504.0


# gathers --------------------------------------------------------------------------------------------------------------
def gather(node: Node) -> Sequence[Value]:
    """Rows of an axis: constant indices that form few runs are slices, joined."""
    x, indices = node.operand(0), node.given(1)
    size = shape(x)
    axis = normal_axis(node.attributes.get("axis", 0), len(size))
    if isinstance(indices, SSAValue):
        return [node.emit(GatherOp, x, indices, axis=axis)]
    wanted = [_inside(int(i), size[axis]) for i in indices.reshape(-1)]
    if not wanted:
        raise InferError("Gather has indices (found none)", broken=True)
    return [_shaped(node, take(node, x, axis, wanted), [*size[:axis], *indices.shape, *size[axis + 1 :]])]


def _inside(index: int, extent: int) -> int:
    if not -extent <= index < extent:
        raise ShapeError(f"an index lies in [{-extent}, {extent}) (found {index})")
    return index % extent


def take(node: Node, x: SSAValue, axis: int, wanted: Sequence[int]) -> SSAValue:
    """Rows of an axis by constant indices from 0 on."""
    runs = _runs(wanted)
    if len(runs) > 1 and (repeated := _repeated(node, x, axis, wanted)) is not None:
        return repeated
    if len(runs) > MOST_RUNS:
        return node.emit(GatherOp, x, node.materialize(np.array(wanted, np.int32)), axis=axis)
    return join(node, [_run(node, x, axis, run) for run in runs], axis)


def _runs(indices: Sequence[int]) -> list[Sequence[int]]:
    """The indices as few runs of equal steps, one after the other."""
    runs, i = list[Sequence[int]](), 0
    while i < len(indices):
        end = i + 2
        while end < len(indices) and indices[end] - indices[end - 1] == indices[i + 1] - indices[i]:
            end += 1
        runs.append(indices[i:end])
        i = end
    return runs


def _run(node: Node, x: SSAValue, axis: int, run: Sequence[int]) -> SSAValue:
    """One run of equal steps."""
    size, step = shape(x), run[1] - run[0] if len(run) > 1 else 1
    count = len(run) if step else 1
    if (run[0], count, step) != (0, size[axis], 1):
        starts, sizes, steps = [0] * len(size), list(size), [1] * len(size)
        starts[axis], sizes[axis], steps[axis] = run[0], count, step or 1
        x = node.emit(SliceOp, x, starts=starts, sizes=sizes, steps=steps)
    return x if step else node.emit(ExpandOp, x, shape=[*size[:axis], len(run), *size[axis + 1 :]])


def _repeated(node: Node, x: SSAValue, axis: int, wanted: Sequence[int]) -> SSAValue | None:
    """All rows in order, each as often as the others; None if it is not that."""
    size = shape(x)
    times, rest = divmod(len(wanted), size[axis])
    if rest or list(wanted) != [i // times for i in range(len(wanted))]:
        return None
    return repeat(node, x, [times if i == axis else 1 for i in range(len(size))])


def repeat(node: Node, x: SSAValue, times: Sequence[int]) -> SSAValue:
    """Every element so many times along each axis, one after the other."""
    pairs = list(zip(shape(x), times, strict=True))
    spaced = [n for size, count in pairs for n in ((size, 1) if count > 1 else (size,))]
    wide = [n for size, count in pairs for n in ((size, count) if count > 1 else (size,))]
    y = node.emit(ExpandOp, _shaped(node, x, spaced), shape=wide)
    return _shaped(node, y, [size * count for size, count in pairs])


def _shaped(node: Node, x: SSAValue, size: Sequence[int]) -> SSAValue:
    return x if shape(x) == tuple(size) else node.emit(ReshapeOp, x, shape=size)


# joins and parts ------------------------------------------------------------------------------------------------------
def concat(node: Node) -> Sequence[Value]:
    """The inputs one after the other, but for those without elements."""
    given = [value for value in node.inputs if value is not None]
    if not given:
        raise InferError("Concat has inputs (found none)", broken=True)
    sizes = [size_of(value) for value in given]
    axis = normal_axis(node.attributes.get("axis", 1), len(sizes[0]))
    if len({(*size[:axis], *size[axis + 1 :]) for size in sizes}) != 1:
        raise ShapeError(f"operands agree in all axes but {axis} (found {', '.join(map(str, sizes))})")
    parts = [node.materialize(value) for value in given if 0 not in size_of(value)]
    return [join(node, parts, axis) if parts else given[0]]


def join(node: Node, parts: Sequence[SSAValue], axis: int) -> SSAValue:
    """A tree of joins, of one join if the parts are few."""
    while len(parts) > MOST_PARTS:
        groups = [parts[i : i + MOST_PARTS] for i in range(0, len(parts), MOST_PARTS)]
        parts = [join(node, group, axis) for group in groups]
    return parts[0] if len(parts) == 1 else node.emit(ConcatOp, *parts, axis=axis)


def split(node: Node) -> Sequence[Value]:
    """One slice per output."""
    x = node.operand(0)
    axis, count = normal_axis(node.attributes.get("axis", 0), len(shape(x))), len(node.proto.output)
    extent = shape(x)[axis]
    given = node.attributes.get("split") if node.opset < 13 else node.known(1)
    step = -(-extent // node.attributes.get("num_outputs", count))
    sizes = [min(step, extent - i * step) for i in range(count)] if given is None else list(map(int, given))
    if sum(sizes) != extent or len(sizes) != count or min(sizes) < 0:
        raise ShapeError(f"the parts make up the axis of {extent} (found {sizes})")
    starts = [sum(sizes[:i]) for i in range(count)]
    empty = np.zeros([0 if i == axis else n for i, n in enumerate(shape(x))], NUMPY[element(x)])
    return [
        node.emit(SliceOp, x, starts=[start], ends=[start + size], axes=[axis]) if size else empty
        for start, size in zip(starts, sizes, strict=True)
    ]


def tile(node: Node) -> Sequence[Value]:
    """The operand again and again along each axis."""
    x, times = node.operand(0), node.known(1)
    size = shape(x)
    if times is None or times.size != len(size) or times.min(initial=1) < 1:
        raise ShapeError(f"Tile repeats each of {len(size)} axes once or more (found {times})", broken=False)
    repeated = [axis for axis, count in enumerate(times.tolist()) if count > 1]
    for axes in (repeated[i : i + 2] for i in range(0, len(repeated), 2)):  # more at once: too many axes for a kernel
        pairs = [(int(times[axis]) if axis in axes else 1, n) for axis, n in enumerate(shape(x))]
        spaced = _shaped(node, x, [n for _, extent in pairs for n in (1, extent)])
        y = node.emit(ExpandOp, spaced, shape=[n for pair in pairs for n in pair])
        x = _shaped(node, y, [count * n for count, n in pairs])
    return [x]


# padding --------------------------------------------------------------------------------------------------------------
def pad(node: Node) -> Sequence[Value]:
    """A frame of one value, or of elements of the operand; negative padding cuts off."""
    x = node.operand(0)
    rank = len(shape(x))
    pads, value, axes = _padding(node, rank)
    before, after = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        before[axis], after[axis] = int(pads[i]), int(pads[i + len(axes)])
    mode = node.attributes.get("mode", "constant")
    if mode == "constant":
        if element(x) in FLOATS and MOST_F16 < abs(value) < math.inf:
            return [_framed(node, x, before, after, value)]
        return [node.emit(PadOp, x, before=before, after=after, value=float(value) if value else None)]
    if mode not in ("reflect", "edge", "wrap"):
        raise InferError(f"mode is constant, reflect, edge or wrap (found {mode})", broken=True)
    for axis, (low, high) in enumerate(zip(before, after, strict=True)):
        extent = shape(x)[axis]
        kept = np.arange(max(0, -low), extent - max(0, -high))
        if low == high == 0:
            continue
        if not len(kept):
            raise ShapeError(f"padding leaves elements of an axis of {extent} (found {low} and {high})", broken=False)
        x = take(node, x, axis, np.pad(kept, (max(0, low), max(0, high)), mode=mode).tolist())
    return [x]


def _padding(node: Node, rank: int) -> tuple[Sequence[int], float, list[int]]:
    """What is added before and after the axes, the value, and the axes."""
    axes: Sequence[int] = range(rank)
    if node.opset < 11:
        pads = node.attributes["pads"] if "pads" in node.attributes else node.attributes["paddings"]
        value = node.attributes.get("value", 0.0)
    else:
        given, found = node.known(1), node.known(2)
        if given is None:
            raise InferError("Pad says how much is added (found nothing)", broken=True)
        pads = given.reshape(-1).tolist()
        value = 0.0 if found is None or not found.size else found.reshape(-1)[0]
        named = node.known(3)
        axes = axes if named is None else named.reshape(-1).tolist()
    if len(pads) != 2 * len(axes):
        raise ShapeError(f"padding is given before and after each of {len(axes)} axes (found {len(pads)} numbers)")
    return pads, float(value), [normal_axis(axis, rank) for axis in axes]


def center_crop_pad(node: Node) -> Sequence[Value]:
    """The middle of the operand, or the operand in the middle of zeros."""
    x, wanted = node.operand(0), node.known(1)
    rank, (before, after) = len(shape(x)), ([0] * len(shape(x)) for _ in range(2))
    if wanted is None:
        raise InferError("CenterCropPad has a shape (found none)", broken=True)
    for axis, target in zip(node.attributes.get("axes", range(rank)), wanted.reshape(-1).tolist(), strict=True):
        place = normal_axis(axis, rank)
        more = target - shape(x)[place]
        before[place] = more // 2 if more > 0 else -(-more // 2)
        after[place] = more - before[place]
    return [node.emit(PadOp, x, before=before, after=after)]


def _framed(node: Node, x: SSAValue, before: Sequence[int], after: Sequence[int], value: float) -> SSAValue:
    """A frame of a value that a narrow type may not hold, as a constant that says so."""
    cut = [[min(0, n) for n in side] for side in (before, after)]
    x = node.emit(PadOp, x, before=cut[0], after=cut[1]) if any(map(any, cut)) else x
    low, high = ([max(0, n) for n in side] for side in (before, after))
    return framed(node, x, low, high, node.materialize(np.array(value, NUMPY[element(x)])))


def framed(node: Node, x: SSAValue, before: Sequence[int], after: Sequence[int], number: SSAValue) -> SSAValue:
    """A frame of a number, which may be computed."""
    for axis in range(len(shape(x))):
        size = shape(x)
        sides = [[*size[:axis], side[axis], *size[axis + 1 :]] for side in (before, after)]
        low, high = ([node.emit(ExpandOp, number, shape=side)] if side[axis] else [] for side in sides)
        x = join(node, [*low, x, *high], axis)
    return x


# blocks ---------------------------------------------------------------------------------------------------------------
def depth_to_space(node: Node) -> Sequence[Value]:
    """Channels become blocks of pixels."""
    x, block = node.operand(0), int(node.attributes["blocksize"])
    n, c, *space = _image(x)
    if c % block**2:
        raise ShapeError(f"channels are a multiple of {block**2} (found {c})")
    deep = c // block**2
    mode = node.attributes.get("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise InferError(f"mode is DCR or CRD (found {mode})", broken=True)
    split_up, perm = (
        ([n, block, block, deep, *space], [0, 3, 4, 1, 5, 2])
        if mode == "DCR"
        else ([n, deep, block, block, *space], [0, 1, 4, 2, 5, 3])
    )
    y = node.emit(TransposeOp, node.emit(ReshapeOp, x, shape=split_up), perm=perm)
    return [node.emit(ReshapeOp, y, shape=[n, deep, space[0] * block, space[1] * block])]


def space_to_depth(node: Node) -> Sequence[Value]:
    """Blocks of pixels become channels."""
    x, block = node.operand(0), int(node.attributes["blocksize"])
    n, c, height, width = _image(x)
    if height % block or width % block:
        raise ShapeError(f"the image is made of blocks of {block} (found {height} × {width})")
    split_up = [n, c, height // block, block, width // block, block]
    mode = node.attributes.get("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise InferError(f"mode is DCR or CRD (found {mode})", broken=True)
    perm = [0, 3, 5, 1, 2, 4] if mode == "DCR" else [0, 1, 3, 5, 2, 4]
    y = node.emit(TransposeOp, node.emit(ReshapeOp, x, shape=split_up), perm=perm)
    return [node.emit(ReshapeOp, y, shape=[n, c * block**2, height // block, width // block])]


def _image(x: SSAValue) -> tuple[int, ...]:
    if len(shape(x)) != 4:
        raise ShapeError(f"the operand is an image of rank 4 (found rank {len(shape(x))})")
    return shape(x)


# comparing ------------------------------------------------------------------------------------------------------------
def trilu(node: Node) -> Sequence[Value]:
    """One side of the diagonal of matrices; the other is 0."""
    x, given = node.operand(0), node.known(1)
    if len(shape(x)) < 2:
        raise ShapeError(f"Trilu is of matrices (found rank {len(shape(x))})")
    side = np.triu if node.attributes.get("upper", 1) else np.tril
    kept = side(np.ones(shape(x)[-2:], bool), 0 if given is None or not given.size else int(given.reshape(-1)[0]))
    zero = node.materialize(np.zeros((), NUMPY[element(x)]))
    return [node.emit(WhereOp, node.materialize(kept), x, zero, element=element(x))]


def one_hot(node: Node) -> Sequence[Value]:
    """values[1] where the new axis counts to the index, else values[0]."""
    indices, depth = node.operand(0), node.known(1)
    values = node.given(2)
    size = shape(indices)
    axis = normal_axis(node.attributes.get("axis", -1), len(size) + 1)
    count = int(np.asarray(depth).reshape(-1)[0])
    if element(indices) != i32:
        indices = node.emit(CastOp, indices, element=i32)
    most, zero = node.materialize(np.array(count, np.int32)), node.materialize(np.array(0, np.int32))
    negative = node.emit(LtOp, indices, zero, element=i1)
    wrapped = node.emit(WhereOp, negative, node.emit(AddOp, indices, most, element=i32), indices, element=i32)
    wrapped = _shaped(node, wrapped, [*size[:axis], 1, *size[axis:]])
    places = node.materialize(along(np.arange(count, dtype=np.int32), axis, len(size) + 1))
    hot = node.emit(EqOp, wrapped, places, element=i1)
    if isinstance(values, SSAValue):
        off, on = (
            _shaped(node, node.emit(SliceOp, values, starts=[i], sizes=[1], steps=[1]), [1] * (len(size) + 1))
            for i in (0, 1)
        )
    else:
        off, on = (node.materialize(np.asarray(values[i])) for i in (0, 1))
    return [node.emit(WhereOp, hot, on, off, element=element(on))]


def along(array: np.ndarray[Any, Any], axis: int, rank: int) -> np.ndarray[Any, Any]:
    """A vector on an axis of a tensor of the rank."""
    return array.reshape([-1 if i == axis else 1 for i in range(rank)])


def arg(smallest: bool, node: Node) -> Sequence[Value]:
    """The place of the largest (smallest) element along an axis: of equal ones the first, or the last."""
    x = node.operand(0)
    size = shape(x)
    axis = normal_axis(node.attributes.get("axis", 0), len(size))
    places = node.materialize(along(np.arange(size[axis], dtype=np.int32), axis, len(size)))
    best = node.emit(ReduceMinOp if smallest else ReduceMaxOp, x, axes=[axis], keepdims=True, element=element(x))
    worse = node.emit(GtOp if smallest else LtOp, x, best, element=i1)
    last = bool(node.attributes.get("select_last_index", 0))
    none = node.materialize(np.array(-1 if last else size[axis], np.int32))
    candidates = node.emit(WhereOp, worse, none, places, element=i32)
    kept = bool(node.attributes.get("keepdims", 1))
    return [node.emit(ReduceMaxOp if last else ReduceMinOp, candidates, axes=[axis], keepdims=kept, element=i32)]


def top_k(node: Node) -> Sequence[Value]:
    """The k largest (smallest) elements along an axis and their places, one after the other; of equal ones the first
    comes first."""
    x = node.operand(0)
    k = int(node.attributes["k"]) if node.opset < 10 else int(np.asarray(node.known(1)).reshape(-1)[0])
    size = shape(x)
    axis = normal_axis(node.attributes.get("axis", -1), len(size))
    if not 1 <= k <= min(MOST_K, size[axis]):
        raise ShapeError(f"TopK finds 1 to {min(MOST_K, size[axis])} elements (found k = {k})", broken=False)
    perm = [*(i for i in range(len(size)) if i != axis), axis]
    turned = perm != list(range(len(size)))
    y = node.emit(TransposeOp, x, perm=perm) if turned else x
    values, places = _best(node, y, k, smallest=not node.attributes.get("largest", 1))
    results = [join(node, parts, len(size) - 1) for parts in (values, places)]
    if turned:
        back = [perm.index(i) for i in range(len(perm))]
        results = [node.emit(TransposeOp, result, perm=back) for result in results]
    return results


def _best(node: Node, x: SSAValue, k: int, smallest: bool) -> tuple[list[SSAValue], list[SSAValue]]:
    """The k best along the last axis, each with an axis of extent 1, and their places."""
    rank, extent, kind = len(shape(x)), shape(x)[-1], tensor(x)
    places = node.materialize(along(np.arange(extent, dtype=np.int32), rank - 1, rank))
    none, worst = node.materialize(np.array(extent, np.int32)), node.materialize(_worst(kind, smallest))
    values, found = list[SSAValue](), list[SSAValue]()
    left, taken = x, None
    truth = partial(node.emit, element=i1)
    for turn in range(k):
        best = node.emit(
            ReduceMinOp if smallest else ReduceMaxOp, left, axes=[rank - 1], keepdims=True, element=element(x)
        )
        worse = truth(GtOp if smallest else LtOp, left, best)
        out = worse if taken is None else truth(OrOp, worse, taken)
        candidates = node.emit(WhereOp, out, none, places, element=i32)
        place = node.emit(ReduceMinOp, candidates, axes=[rank - 1], keepdims=True, element=i32)
        values.append(best)
        found.append(place)
        if turn < k - 1:
            here = truth(EqOp, places, place)
            taken = here if taken is None else truth(OrOp, taken, here)
            left = node.emit(WhereOp, here, worst, left, element=element(x))
    return values, found


def _worst(kind: Tensor, smallest: bool) -> np.ndarray[Any, Any]:
    """A value that no other one is beaten by."""
    dtype = NUMPY[kind.element_type]
    if kind.element_type in FLOATS:
        return np.array(math.inf if smallest else -math.inf, dtype)
    limits = np.iinfo(dtype)
    return np.array(limits.max if smallest else limits.min, dtype)


def compress(node: Node) -> Sequence[Value]:
    """The rows of an axis for which a constant condition holds."""
    x, condition = node.operand(0), node.known(1)
    axis = node.attributes.get("axis")
    if axis is None:
        x, axis = _shaped(node, x, [math.prod(shape(x))]), 0
    wanted = [] if condition is None else np.flatnonzero(condition).tolist()
    if not wanted:
        raise InferError("Compress leaves elements (found a condition that never holds)")
    axis = normal_axis(axis, len(shape(x)))
    return [take(node, x, axis, [_inside(i, shape(x)[axis]) for i in wanted])]


def constant_of_shape(node: Node) -> Sequence[Value]:
    """One value again and again; smaller ones are evaluated (`fold.py`)."""
    size = node.known(0)
    assert size is not None
    return [node.emit(ExpandOp, node.materialize(repeated_value(node.attributes)), shape=size.tolist())]


MOVEMENT: Mapping[str, Callable[[Node], Sequence[Value]]] = {
    "ArgMax": partial(arg, False),
    "ArgMin": partial(arg, True),
    "CenterCropPad": center_crop_pad,
    "Compress": compress,
    "Concat": concat,
    "ConstantOfShape": constant_of_shape,
    "DepthToSpace": depth_to_space,
    "Gather": gather,
    "OneHot": one_hot,
    "Pad": pad,
    "SpaceToDepth": space_to_depth,
    "Split": split,
    "Tile": tile,
    "TopK": top_k,
    "Trilu": trilu,
}
"""Operators of ai.onnx by name."""
