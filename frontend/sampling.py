"""Windows whose places matter: MaxPool with positions, DeformConv."""

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from ..dialects.graph.arithmetic import AddOp, DivOp, EqOp, ModOp, MulOp
from ..dialects.graph.constants import NUMPY
from ..dialects.graph.contract import MatMulOp
from ..dialects.graph.elementwise import AffineOp, WhereOp
from ..dialects.graph.gather import GatherOp
from ..dialects.graph.op import FLOATS, DtypeError, ShapeError, element, f32, i1, i32, shape
from ..dialects.graph.pool import MaxPoolOp
from ..dialects.graph.properties import ints
from ..dialects.graph.reduce import ReduceMaxOp, ReduceMinOp
from ..dialects.graph.sample import GridSampleOp
from ..dialects.graph.views import ConcatOp, PadOp, ReshapeOp, SliceOp
from .node import Node, Value


def max_pool(node: Node) -> Sequence[Value]:
    """The largest values; if they are asked for, their places in the whole operand, the first of equal ones."""
    if len(node.proto.output) < 2 or not node.proto.output[1]:
        return [node.one(MaxPoolOp)]
    attributes = {name: value for name, value in node.attributes.items() if name != "storage_order"}
    _, properties = MaxPoolOp.from_onnx(attributes, node.constants(), node.opset)
    x = node.operand(0)
    y = node.emit(MaxPoolOp, x, **properties)
    assert isinstance(y.owner, MaxPoolOp)
    (n, channels, *space), found = shape(x), shape(y)[2:]
    table = _window_places(space, found, y.owner)
    lowest = -math.inf if element(x) in FLOATS else float(np.iinfo(NUMPY[element(x)]).min)
    flat = node.emit(ReshapeOp, x, shape=[n, channels, math.prod(space)])
    flat = node.emit(PadOp, flat, before=[0, 0, 0], after=[0, 0, 1], value=lowest or None)
    taps = node.emit(GatherOp, flat, node.materialize(table), axis=2)
    top = node.emit(ReduceMaxOp, taps, axes=[2], keepdims=True, element=element(x))
    beyond = node.materialize(np.array(math.prod(space), np.int32))
    places = node.emit(WhereOp, node.emit(EqOp, taps, top, element=i1), node.materialize(table), beyond, element=i32)
    first = node.emit(ReduceMinOp, places, axes=[2], element=i32)
    if node.attributes.get("storage_order", 0):
        first = _by_columns(node, first, space)
    before = np.arange(n * channels, dtype=np.int32).reshape(n, channels, 1) * math.prod(space)
    first = node.emit(AddOp, first, node.materialize(before))
    return [y, node.emit(ReshapeOp, first, shape=shape(y))]


def _window_places(
    space: Sequence[int], found: Sequence[int], pool: MaxPoolOp
) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    """[taps, windows]: the place of each tap in the image, one beyond its end for padding."""
    kernel, strides, pads, dilations = (
        ints(pool.properties, name) for name in ("kernel", "strides", "pads", "dilations")
    )
    places, inside = np.zeros([1, 1], np.int64), np.ones([1, 1], bool)
    taps = windows = 1
    for i, extent in enumerate(space):
        at = np.arange(kernel[i])[:, None] * dilations[i] + np.arange(found[i])[None] * strides[i] - pads[i]
        taps, windows = taps * kernel[i], windows * found[i]
        places = (places[:, None, :, None] * extent + at[None, :, None, :]).reshape(taps, windows)
        within = (at >= 0) & (at < extent)
        inside = (inside[:, None, :, None] & within[None, :, None, :]).reshape(taps, windows)
    return np.where(inside, places, math.prod(space)).astype(np.int32)


def _by_columns(node: Node, places: SSAValue, space: Sequence[int]) -> SSAValue:
    """Places counted with the first axis of the image fastest."""
    found: SSAValue | None = None
    left, step = places, math.prod(space)
    for extent in reversed(space):
        step //= extent
        size = node.materialize(np.array(extent, np.int32))
        part = node.emit(MulOp, node.emit(ModOp, left, size), node.materialize(np.array(step, np.int32)))
        left = node.emit(DivOp, left, size)
        found = part if found is None else node.emit(AddOp, found, part)
    assert found is not None
    return found


def deform_conv(node: Node) -> Sequence[Value]:
    """A convolution whose taps are moved by offsets, between elements, and weighed by a mask."""
    x, weight = node.operand(0), node.operand(1)
    (n, channels, *space), (outputs, depth, *kernel) = shape(x), shape(weight)
    if len(space) != 2 or element(x) not in FLOATS:
        raise DtypeError(f"DeformConv is over images of floats (found {x.type})")
    groups, shared = node.attributes.get("offset_group", 1), node.attributes.get("group", 1)
    taps, found = math.prod(kernel), shape(node.operand(2))[2:]
    if channels % groups or channels != depth * shared or outputs % shared:
        raise ShapeError(f"groups divide the channels (found {groups} and {shared} of {channels} and {outputs})")
    grid = _moved_grid(node, space, kernel, found, groups)
    x = node.emit(ReshapeOp, x, shape=[n * groups, channels // groups, *space])
    columns = node.emit(GridSampleOp, x, grid, mode="linear", padding="zeros")
    if len(node.inputs) > 4 and node.inputs[4] is not None:
        mask = node.emit(ReshapeOp, node.operand(4), shape=[n * groups, 1, taps * found[0], found[1]])
        columns = node.emit(MulOp, columns, mask, element=element(x))
    columns = node.emit(ReshapeOp, columns, shape=[n, shared, depth * taps, math.prod(found)])
    rows = node.emit(ReshapeOp, weight, shape=[shared, outputs // shared, depth * taps])
    y = node.emit(MatMulOp, rows, columns, element=element(x))
    y = node.emit(ReshapeOp, y, shape=[n, outputs, *found])
    if len(node.inputs) > 3 and node.inputs[3] is not None:
        y = node.emit(AddOp, y, node.emit(ReshapeOp, node.operand(3), shape=[outputs, 1, 1]), element=element(x))
    return [y]


def _moved_grid(node: Node, space: Sequence[int], kernel: Sequence[int], found: Sequence[int], groups: int) -> SSAValue:
    """The places of all taps [N·groups, taps·rows, columns, (x, y)], from −1 to 1 between borders."""
    offset, taps = node.operand(2), math.prod(kernel)
    strides, dilations = (node.attributes.get(name, [1, 1]) for name in ("strides", "dilations"))
    pads, n = node.attributes.get("pads", [0] * 4), shape(offset)[0]
    split = node.emit(ReshapeOp, offset, shape=[n * groups, taps, 2, *found])
    parts = list[SSAValue]()
    for axis in (1, 0):
        moved = node.emit(SliceOp, split, starts=[0, 0, axis, 0, 0], sizes=[n * groups, taps, 1, *found], steps=[1] * 5)
        moved = node.emit(ReshapeOp, moved, shape=[n * groups, taps, *found])
        tap = np.indices(kernel)[axis].reshape(taps, 1, 1) * dilations[axis] - pads[axis]
        fixed = tap + np.indices(found)[axis][None] * strides[axis]
        place = node.emit(AddOp, moved, node.materialize(fixed.astype(np.float32)), element=f32)
        scale = 2 / space[axis]
        parts.append(node.emit(AffineOp, place, scale=scale, shift=1 / space[axis] - 1, element=f32))
    stacked = [node.emit(ReshapeOp, part, shape=[*shape(part), 1]) for part in parts]
    grid = node.emit(ConcatOp, *stacked, axis=4)
    return node.emit(ReshapeOp, grid, shape=[n * groups, taps * found[0], found[1], 2])
