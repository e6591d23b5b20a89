"""RoiAlign: regions of images, whose places are computed, as grids of the same size."""

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from ..dialects.graph.activations import FloorOp
from ..dialects.graph.arithmetic import AddOp, GtOp, LtOp, MaxOp, MinOp, MulOp, OrOp, SubOp
from ..dialects.graph.elementwise import AffineOp, CastOp, WhereOp
from ..dialects.graph.gather import GatherOp
from ..dialects.graph.op import FLOATS, InferError, element, f32, i32, shape
from ..dialects.graph.reduce import ReduceMaxOp, ReduceMeanOp
from ..dialects.graph.views import ReshapeOp, SliceOp, TransposeOp
from .node import Node, Value

HALF_PIXEL = 16
"""The opset from which on places count from the middle of the first element, if nothing else is said."""


def roi_align(node: Node) -> Sequence[Value]:
    """Of each cell of each region the mean (or the largest) of samples between elements.

    With mode = max, of all elements with the weights that a sample gives them.
    """
    x, rois, images, given = node.operand(0), node.operand(1), node.operand(2), node.attributes
    if len(shape(x)) != 4 or element(x) not in FLOATS:
        raise InferError(f"RoiAlign is of images of floats (found {x.type})")
    samples, mode = given.get("sampling_ratio", 0), given.get("mode", "avg")
    if samples < 1:
        raise InferError("each cell has as many samples as sampling_ratio says (found 0: by the size of the region)")
    if mode not in ("avg", "max"):
        raise InferError(f"mode is avg or max (found {mode})")
    n, channels, height, width = shape(x)
    count, cells = shape(rois)[0], [given.get(f"output_{side}", 1) for side in ("height", "width")]
    ys, xs = (
        _taps(node, rois, axis, size, cell, samples)
        for axis, size, cell in ((1, height, cells[0]), (0, width, cells[1]))
    )
    table = node.emit(ReshapeOp, node.emit(TransposeOp, x, perm=[0, 2, 3, 1]), shape=[n * height * width, channels])
    images = images if element(images) == i32 else node.emit(CastOp, images, element=i32)
    first = node.emit(MulOp, node.emit(ReshapeOp, images, shape=[count, 1, 1]), _integer(node, height * width))
    parts = [_weighed(node, table, first, width, y, x_) for y in ys for x_ in xs]
    total = parts[0]
    for part in parts[1:]:
        total = node.emit(MaxOp if mode == "max" else AddOp, total, part, element=f32)
    total = node.emit(ReshapeOp, total, shape=[count, cells[0], samples, cells[1], samples, channels])
    pooled = node.emit(ReduceMaxOp if mode == "max" else ReduceMeanOp, total, axes=[2, 4], element=element(x))
    return [node.emit(TransposeOp, pooled, perm=[0, 3, 1, 2])]


Tap = tuple[SSAValue, SSAValue]
"""Places [regions, samples], i32, and weights, f32."""


def _taps(node: Node, rois: SSAValue, axis: int, extent: int, cells: int, samples: int) -> tuple[Tap, Tap]:
    """The elements before and after each sample along an axis of `extent`, whose ends are columns of `rois`."""
    given, count = node.attributes, shape(rois)[0]
    default = "half_pixel" if node.opset >= HALF_PIXEL else "output_half_pixel"
    half = given.get("coordinate_transformation_mode", default) == "half_pixel"
    scale = float(given.get("spatial_scale", 1.0))
    ends = [node.emit(SliceOp, rois, starts=[0, column], sizes=[count, 1], steps=[1, 1]) for column in (axis, axis + 2)]
    start, end = (node.emit(AffineOp, x, scale=scale, shift=-0.5 if half else 0.0, element=f32) for x in ends)
    size = node.emit(SubOp, end, start, element=f32)
    if not half:
        size = node.emit(MaxOp, size, _number(node, 1.0), element=f32)
    # a sample stands in the middle of its part of a cell
    steps = (np.arange(cells)[:, None] + (np.arange(samples) + 0.5) / samples).reshape(1, -1) / cells
    place = node.emit(MulOp, size, node.materialize(steps.astype(np.float32)), element=f32)
    place = node.emit(AddOp, start, place, element=f32)
    outside = node.emit(
        OrOp, node.emit(LtOp, place, _number(node, -1.0)), node.emit(GtOp, place, _number(node, float(extent)))
    )
    last = _number(node, float(extent - 1))
    place = node.emit(MinOp, node.emit(MaxOp, place, _number(node, 0.0), element=f32), last, element=f32)
    low = node.emit(FloorOp, place, element=f32)
    high = node.emit(MinOp, node.emit(AddOp, low, _number(node, 1.0), element=f32), last, element=f32)
    after = node.emit(SubOp, place, low, element=f32)
    before = node.emit(SubOp, _number(node, 1.0), after, element=f32)
    weights = (node.emit(WhereOp, outside, _number(node, 0.0), weight, element=f32) for weight in (before, after))
    first, second = zip((node.emit(CastOp, end, element=i32) for end in (low, high)), weights, strict=True)
    return first, second


def _weighed(node: Node, table: SSAValue, first: SSAValue, width: int, y: Tap, x: Tap) -> SSAValue:
    """[regions, rows, columns, channels]: elements times their weights."""
    count, (rows, columns) = shape(first)[0], (shape(y[0])[1], shape(x[0])[1])
    down, across = [count, rows, 1], [count, 1, columns]
    place = node.emit(AddOp, first, node.emit(MulOp, node.emit(ReshapeOp, y[0], shape=down), _integer(node, width)))
    place = node.emit(AddOp, place, node.emit(ReshapeOp, x[0], shape=across))
    found = node.emit(GatherOp, table, node.emit(ReshapeOp, place, shape=[count * rows * columns]), axis=0)
    weight = node.emit(MulOp, *(node.emit(ReshapeOp, w, shape=s) for w, s in ((y[1], down), (x[1], across))))
    found = node.emit(ReshapeOp, found, shape=[count, rows, columns, shape(table)[1]])
    return node.emit(MulOp, found, node.emit(ReshapeOp, weight, shape=[count, rows, columns, 1]), element=f32)


def _number(node: Node, value: float) -> SSAValue:
    return node.builder.constant(np.array(value, np.float32))


def _integer(node: Node, value: int) -> SSAValue:
    return node.builder.constant(np.array(value, np.int32))
