"""Resize and Upsample: where each place of the result lies in the operand, by ONNX's rules, in f32 as runtimes do."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Attribute, SSAValue

from ..dialects.graph.arithmetic import DivOp
from ..dialects.graph.elementwise import CastOp, WhereOp
from ..dialects.graph.op import FLOATS, Array, DtypeError, InferError, ShapeError, element, f32, i8, i32, shape, u8
from ..dialects.graph.resize import ResampleOp
from ..dialects.graph.views import ReshapeOp, normal_axis
from .movement import along, repeat, take
from .node import Node, Value, size_of

_ONE, _HALF = np.float32(1), np.float32(0.5)
FIXED = 1024
"""What 1 is among the weights of bytes whose channels come last, which are integers."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis that may change: extents before and after, the factor, the part of the operand (of 0 … 1)."""

    place: int
    before: int
    after: int
    scale: float
    roi: tuple[float, float]

    @property
    def stays(self) -> bool:
        return self.before == self.after and self.scale == 1 and self.roi == (0.0, 1.0)


def resize(node: Node) -> Sequence[Value]:
    """A gather (nearest) or a weighted sum of a few places (linear, cubic) for each axis that changes."""
    attributes = dict(node.attributes)
    if node.operator == "Upsample" or node.opset < 11:
        downward = "simple"
        attributes |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": downward}
    mode = attributes.get("mode", "nearest")
    x = node.operand(0)
    if mode not in ("nearest", "linear", "bilinear", "cubic"):
        raise InferError(f"mode is nearest, linear or cubic (found {mode})", broken=True)
    if mode != "nearest" and element(x) not in FLOATS:
        _check_integers(mode, attributes, element(x))
    crops = attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    axes = [axis for axis in axes_of(node, crops) if not axis.stays]
    if mode == "nearest" and (repeated := _repeated(node, x, axes, attributes)) is not None:
        return [repeated]
    outside = np.zeros([1] * len(size_of(x)), bool)
    for axis in sorted(axes, key=lambda axis: axis.after / axis.before):
        places = coordinates(axis, attributes)
        if crops:
            beyond = (places < 0) | (places > axis.before - 1)
            outside = outside | along(beyond, axis.place, len(size_of(x)))
        if mode != "nearest" and element(x) not in FLOATS:
            continue
        if mode == "nearest":
            x = take(node, x, axis.place, nearest(places, axis, attributes).tolist())
            continue
        if attributes.get("antialias", 0) and axis.scale < 1:
            indices, weights = antialiased(places, axis, attributes)
        else:
            indices, weights = cubic(places, axis, attributes) if mode == "cubic" else linear(places, axis)
        tables = (node.materialize(indices.astype(np.int32)), node.materialize(weights.astype(np.float32)))
        x = node.emit(ResampleOp, x, *tables, axis=axis.place)
    if mode != "nearest" and element(x) not in FLOATS and axes:
        x = _linear_of_integers(node, x, axes_of(node, crops), attributes)
    if outside.any():
        value = np.array(attributes.get("extrapolation_value", 0.0), np.float32)
        filling = node.materialize(value) if element(x) in FLOATS else node.materialize(value.astype(np.int32))
        x = node.emit(WhereOp, node.materialize(outside), filling, x, element=element(x))
    return [x]


def _check_integers(mode: str, attributes: Mapping[str, Any], kind: Attribute) -> None:
    if mode == "cubic" or attributes.get("antialias", 0) or kind not in (i8, u8, i32):
        form = "antialias" if attributes.get("antialias", 0) else f"mode = {mode}"
        raise DtypeError(f"Resize with {form} is of floats (found {kind})")


def _linear_of_integers(node: Node, x: SSAValue, axes: Sequence[Axis], attributes: Mapping[str, Any]) -> SSAValue:
    """Toward zero; as onnxruntime weighs, all neighbours of a place at once, so that the same sums are rounded."""
    kind, rank, moving = element(x), len(axes), [axis for axis in axes if not axis.stays]
    bytes_last = rank == 4 and not axes[1].stays and axes[3].stays
    plane = axes[1:3] if bytes_last else axes[2:] if rank > 3 else axes
    together = rank in (2, 3, 4, 5) and all(axis in plane for axis in moving)
    if together and bytes_last and kind in (i8, u8):
        total = _resampled(node, x, plane, _neighbours(plane, attributes, FIXED), i32)
        whole = node.emit(DivOp, total, node.materialize(np.array(FIXED**2, np.int32)))
        return node.emit(CastOp, whole, element=kind)
    groups = [plane] if together else [[axis] for axis in moving]
    for group in groups:
        x = _resampled(node, x, group, _neighbours(group, attributes), kind if group is groups[-1] else f32)
    return x


def _neighbours(group: Sequence[Axis], attributes: Mapping[str, Any], steps: int = 0) -> tuple[Array, Array]:
    """[2ⁿ, places] for the plane of n axes: indices into it, and weights: f32, or integers of which `steps` are 1."""
    kind = np.dtype(np.int32 if steps else np.float32)
    one, half = np.array(steps or 1, kind), np.array((steps or 1) / 2, kind)
    indices, weights = np.zeros((1, 1), np.int32), np.full((1, 1), 1, kind)
    for axis in reversed(group):
        places = np.clip(coordinates(axis, attributes), 0, axis.before - 1).astype(np.float32)
        low = np.floor(places).astype(np.int32)
        ends = np.stack([low, np.minimum(low + 1, axis.before - 1)])
        at = (places * np.float32(steps or 1)).astype(kind)
        shares = np.where(ends[0] == ends[1], half, np.abs(at - ends[::-1].astype(kind) * one))
        extent = math.prod(other.before for other in group[group.index(axis) + 1 :])
        size = (2 * len(indices), -1)
        indices = (ends[:, None, :, None] * extent + indices[:, None, :]).reshape(size)
        weights = (shares[:, None, :, None] * weights[:, None, :]).reshape(size)
    return indices, weights


def _resampled(
    node: Node, x: SSAValue, group: Sequence[Axis], tables: tuple[Array, Array], kind: Attribute
) -> SSAValue:
    """The sums over neighbours in a plane of axes."""
    first, last, size = group[0].place, group[-1].place + 1, shape(x)
    x = node.emit(ReshapeOp, x, shape=[*size[:first], math.prod(size[first:last]), *size[last:]])
    x = node.emit(ResampleOp, x, *map(node.materialize, tables), axis=first, element=kind)
    return node.emit(ReshapeOp, x, shape=[*size[:first], *(axis.after for axis in group), *size[last:]])


def _repeated(node: Node, x: SSAValue, axes: Sequence[Axis], attributes: Mapping[str, Any]) -> SSAValue | None:
    """Every element repeated along all axes at once; None if that is not what the axes ask for."""
    times = [1] * len(shape(x))
    for axis in axes:
        factor = axis.after // axis.before
        wanted = np.arange(axis.after) // max(1, factor)
        if factor * axis.before != axis.after or axis.roi != (0.0, 1.0):
            return None
        if not np.array_equal(nearest(coordinates(axis, attributes), axis, attributes), wanted):
            return None
        times[axis.place] = factor
    return repeat(node, x, times)


def axes_of(node: Node, crops: bool) -> list[Axis]:
    """The axes with what the node says of them. Raises `InferError`."""
    size = size_of(node.given(0))
    old = node.operator == "Upsample" or node.opset < 11
    named = [normal_axis(axis, len(size)) for axis in node.attributes.get("axes", range(len(size)))]
    given = node.attributes.get("scales")
    scales = _numbers(node, 1 if old else 2) if given is None else given
    sizes = [] if old else _numbers(node, 3)
    roi = [] if old or not crops else _numbers(node, 1)
    if not len(scales) and not len(sizes):
        raise InferError("Resize has scales or sizes (found neither)", broken=True)
    if len(sizes):
        extents = _kept_aspect(node, [size[axis] for axis in named], [int(n) for n in sizes])
        pairs = [(after, scale) for after, scale in extents]
    else:
        factors = [np.float32(scale) for scale in scales]
        pairs = [(math.floor(np.float32(size[a]) * f), float(f)) for a, f in zip(named, factors, strict=True)]
    if min(after for after, _ in pairs) < 1:
        raise ShapeError(f"Resize leaves elements (found extents {[after for after, _ in pairs]})", broken=False)
    parts = [(float(roi[i]), float(roi[i + len(named)])) if len(roi) else (0.0, 1.0) for i in range(len(named))]
    return [
        Axis(place, size[place], after, scale, part)
        for place, (after, scale), part in zip(named, pairs, parts, strict=True)
    ]


def _numbers(node: Node, index: int) -> Sequence[float]:
    """An input that is a list of constants; none if it is absent."""
    found = node.known(index)
    return [] if found is None else found.reshape(-1).tolist()


def _kept_aspect(node: Node, before: Sequence[int], sizes: Sequence[int]) -> list[tuple[int, float]]:
    """Extents and factors for `sizes` under the node's policy."""
    policy = node.attributes.get("keep_aspect_ratio_policy", "stretch")
    factors = [np.float32(after) / np.float32(n) for after, n in zip(sizes, before, strict=True)]
    if policy == "stretch":
        return [(after, float(factor)) for after, factor in zip(sizes, factors, strict=True)]
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [(math.floor(factor * np.float32(n) + _HALF), float(factor)) for n in before]


def coordinates(axis: Axis, attributes: Mapping[str, Any]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The place in the operand of each place of the result. Raises `InferError` for an unknown rule."""
    place, scale = np.arange(axis.after, dtype=np.float32), np.float32(axis.scale)
    before, after = np.float32(axis.before), np.float32(axis.after)
    rule = attributes.get("coordinate_transformation_mode", "half_pixel")
    match rule:
        case "half_pixel":
            return (place + _HALF) / scale - _HALF
        case "pytorch_half_pixel":
            return (place + _HALF) / scale - _HALF if axis.after > 1 else place * 0
        case "half_pixel_symmetric":
            middle = before / 2 * (1 - after / (scale * before))
            return np.float32(middle) + (place + _HALF) / scale - _HALF
        case "asymmetric":
            return place / scale
        case "tf_half_pixel_for_nn":
            return (place + _HALF) / scale
        case "align_corners":
            return place * (before - _ONE) / (after - _ONE) if axis.after > 1 else place * 0
        case "tf_crop_and_resize":
            start, end = map(np.float32, axis.roi)
            if axis.after == 1:
                return place + _HALF * (start + end) * (before - _ONE)
            return start * (before - _ONE) + place * (end - start) * (before - _ONE) / (after - _ONE)
        case _:
            raise InferError(f"coordinate_transformation_mode is one of ONNX's (found {rule})", broken=True)


def nearest(places: np.ndarray[Any, Any], axis: Axis, attributes: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """The element nearest to each place."""
    rule = attributes.get("nearest_mode", "round_prefer_floor")
    if rule == "simple":
        rule = "ceil" if axis.scale < 1 else "floor"
    rounded = {
        "floor": np.floor(places),
        "ceil": np.ceil(places),
        "round_prefer_floor": np.ceil(places - _HALF),
        "round_prefer_ceil": np.floor(places + _HALF),
    }
    if rule not in rounded:
        raise InferError(f"nearest_mode is one of {', '.join(rounded)} (found {rule})", broken=True)
    return np.clip(rounded[rule], 0, axis.before - 1).astype(np.int64)


def linear(places: np.ndarray[Any, Any], axis: Axis) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The two elements around each place, and their weights; beyond the ends, the last one."""
    inside = np.clip(places, 0, axis.before - 1)
    low = np.floor(inside).astype(np.int64)
    part = inside - low.astype(np.float32)
    return np.stack([low, np.minimum(low + 1, axis.before - 1)]), np.stack([_ONE - part, part])


def cubic(
    places: np.ndarray[Any, Any], axis: Axis, attributes: Mapping[str, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The four elements around each place, and their weights."""
    a = np.float32(attributes.get("cubic_coeff_a", -0.75))
    low = np.floor(places)
    taps, weights = list[np.ndarray[Any, Any]](), list[np.ndarray[Any, Any]]()
    for tap in (-1, 0, 1, 2):
        d = np.abs(places - low - tap)
        weights.append(cubic_kernel(d, a))
        taps.append(low.astype(np.int64) + tap)
    indices, factors = np.stack(taps), np.stack(weights)
    if attributes.get("exclude_outside", 0):
        factors = np.where((indices < 0) | (indices >= axis.before), 0, factors)
        factors = factors / factors.sum(axis=0)
    return np.clip(indices, 0, axis.before - 1), factors


def cubic_kernel(d: np.ndarray[Any, Any], a: np.float32) -> np.ndarray[Any, Any]:
    """The weight at each distance up to 2."""
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((d - 5) * d + 8) * d * a - 4 * a
    return np.where(d <= 1, near, far)


def antialiased(
    places: np.ndarray[Any, Any], axis: Axis, attributes: Mapping[str, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """All elements that a kernel as wide as the distance of two places meets, and their weights, whose sum is 1."""
    wide, scale = (2 if attributes.get("mode") == "cubic" else 1), np.float32(axis.scale)
    reach, low = math.ceil(wide / axis.scale), np.floor(places)
    indices = low.astype(np.int64) + np.arange(-reach, reach + 1)[:, None]
    d = np.abs(indices.astype(np.float32) - places) * scale
    kernel = cubic_kernel(d, np.float32(attributes.get("cubic_coeff_a", -0.75))) if wide == 2 else _ONE - d
    weights = np.where(d < wide, kernel, 0)
    if attributes.get("exclude_outside", 0):
        weights = np.where((indices < 0) | (indices >= axis.before), 0, weights)
    used = weights.any(axis=1)
    indices, weights = np.clip(indices[used], 0, axis.before - 1), weights[used]
    return indices, weights / weights.sum(axis=0)
