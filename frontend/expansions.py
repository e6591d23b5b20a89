"""ONNX operators that are no op of the dialect but a few of them, or none."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx

from ..dialects.graph.activations import ReluOp
from ..dialects.graph.arithmetic import AddOp, DivOp, FmodOp, MaxOp, MinOp, ModOp, MulOp, PowOp
from ..dialects.graph.elementwise import CastOp
from ..dialects.graph.op import FLOATS, GraphOp, InferError, element, i32, i64
from ..dialects.graph.views import ConcatOp, ExpandOp, ReshapeOp, SliceOp, normal_axis
from .inputs import ELEMENTS
from .node import Node, Value, size_of

Expansion = Callable[[Node], Sequence[Value]]


def identity(node: Node) -> Sequence[Value]:
    """Identity, and Dropout at inference."""
    training = node.known(2) if node.operator == "Dropout" and len(node.inputs) > 2 else None
    if training is not None and training.any():
        raise InferError("dropout is that of inference (found training_mode = true)")
    return [node.given(0)]


def cast(node: Node) -> Sequence[Value]:
    """A change of element type; i64 inside a graph is i32."""
    target = ELEMENTS.get(node.attributes["to"])
    if target is None:
        found = onnx.TensorProto.DataType.Name(node.attributes["to"])
        raise InferError(f"values hold f32, f16, bf16, integers or truth values (found a cast to {found})")
    x, target = node.operand(0), i32 if target == i64 else target
    return [x if element(x) == target else node.emit(CastOp, x, element=target)]


def reshape(node: Node, target: Sequence[int]) -> Sequence[Value]:
    """The first input under another shape."""
    x = node.operand(0)
    return [x if size_of(x) == tuple(target) else node.emit(ReshapeOp, x, shape=target)]


def flatten(node: Node) -> Sequence[Value]:
    """A matrix: the axes before `axis`, and the others."""
    size = size_of(node.given(0))
    axis = node.attributes.get("axis", 1)
    place = axis + len(size) if axis < 0 else axis
    return reshape(node, [math.prod(size[:place]), math.prod(size[place:])])


def _axes(node: Node) -> list[int] | None:
    """An attribute before opset 13, an input from then on."""
    if node.opset < 13:
        return node.attributes.get("axes")
    given = node.known(1)
    return None if given is None else given.reshape(-1).tolist()


def squeeze(node: Node) -> Sequence[Value]:
    """Axes of extent 1 leave."""
    size, axes = size_of(node.given(0)), _axes(node)
    if axes is None:
        return reshape(node, [n for n in size if n != 1])
    gone = {normal_axis(axis, len(size)) for axis in axes}
    wide = [size[axis] for axis in gone if size[axis] != 1]
    if wide:
        raise InferError(f"an axis that leaves has extent 1 (found {wide[0]})")
    return reshape(node, [n for axis, n in enumerate(size) if axis not in gone])


def unsqueeze(node: Node) -> Sequence[Value]:
    """Axes of extent 1 come in; they are counted in the result."""
    size, axes = list(size_of(node.given(0))), _axes(node)
    if axes is None:
        raise InferError("axes are given (found none)")
    rank = len(size) + len(axes)
    for axis in sorted(normal_axis(axis, rank) for axis in axes):
        size.insert(axis, 1)
    return reshape(node, size)


def split(node: Node) -> Sequence[Value]:
    """One slice per output."""
    x = node.operand(0)
    axis, count = normal_axis(node.attributes.get("axis", 0), len(size_of(x))), len(node.proto.output)
    extent, given = size_of(x)[axis], node.attributes.get("split") if node.opset < 13 else node.known(1)
    step = -(-extent // count)
    sizes = [min(step, extent - i * step) for i in range(count)] if given is None else list(map(int, given))
    if sum(sizes) != extent or len(sizes) != count:
        raise InferError(f"the parts make up the axis of {extent} (found {sizes})")
    starts = [sum(sizes[:i]) for i in range(count)]
    return [
        node.emit(SliceOp, x, starts=[start], ends=[start + size], axes=[axis])
        for start, size in zip(starts, sizes, strict=True)
    ]


def variadic(kind: type[GraphOp]) -> Expansion:
    """Two inputs at a time, from the left."""

    def expand(node: Node) -> Sequence[Value]:
        result = node.operand(0)
        for index in range(1, len(node.inputs)):
            result = node.emit(kind, result, node.operand(index))
        return [result]

    return expand


def mean(node: Node) -> Sequence[Value]:
    """The sum, divided by the number of inputs."""
    total = node.materialize(variadic(AddOp)(node)[0])
    return [
        node.emit(DivOp, total, node.builder.constant(np.array(len(node.inputs), np.float32)), element=element(total))
    ]


def remainder(node: Node) -> Sequence[Value]:
    """With the sign of the divisor, or with `fmod` that of the dividend."""
    kind = FmodOp if node.attributes.get("fmod", 0) else ModOp
    return [node.emit(kind, node.operand(0), node.operand(1))]


def power(node: Node) -> Sequence[Value]:
    """x to the power of y; a constant y may have another type than x."""
    x, y = node.operand(0), node.given(1)
    if isinstance(y, np.ndarray) and element(x) in FLOATS and y.dtype.kind in "iu":
        y = y.astype(np.float32)
    exponent = node.materialize(y)
    if element(x) in FLOATS and element(exponent) not in FLOATS:
        exponent = node.emit(CastOp, exponent, element=element(x))
    return [node.emit(PowOp, x, exponent, element=element(x))]


def prelu(node: Node) -> Sequence[Value]:
    """max(x, 0) + slope·min(x, 0)."""
    x, slope = node.operand(0), node.operand(1)
    zero = node.builder.constant(np.array(0, np.float32))
    negative = node.emit(MulOp, node.emit(MinOp, x, zero, element=element(x)), slope, element=element(x))
    return [node.emit(AddOp, node.emit(ReluOp, x), negative)]


def gather(node: Node) -> Sequence[Value]:
    """Constant indices: runs of equal steps are slices, joined."""
    x, indices = node.operand(0), node.known(1)
    size = size_of(x)
    axis = normal_axis(node.attributes.get("axis", 0), len(size))
    if indices is None:
        raise InferError("Gather has indices (found none)")
    wanted = [int(i) + size[axis] if i < 0 else int(i) for i in indices.reshape(-1)]
    runs = _runs(wanted)
    if len(runs) > 16 or not all(0 <= i < size[axis] for i in wanted):
        raise InferError(f"constant indices make up to 16 slices of the axis of {size[axis]} (found {len(runs)})")
    parts = [
        node.emit(SliceOp, x, starts=[r[0]], ends=[r[-1] + (r.step > 0) - (r.step < 0)], axes=[axis], steps=[r.step])
        if r[-1] + r.step >= 0 or r.step > 0
        else node.emit(SliceOp, x, starts=[r[0]], ends=[-(2**31)], axes=[axis], steps=[r.step])
        for r in runs
    ]
    joined = parts[0] if len(parts) == 1 else node.emit(ConcatOp, *parts, axis=axis)
    target = (*size[:axis], *indices.shape, *size[axis + 1 :])
    return [joined if size_of(joined) == target else node.emit(ReshapeOp, joined, shape=target)]


def _runs(indices: Sequence[int]) -> list[range]:
    """The indices as few ranges, one after the other."""
    runs, i = list[range](), 0
    while i < len(indices):
        step = indices[i + 1] - indices[i] if i + 1 < len(indices) else 1
        step = step or 1
        end = i + 1
        while end < len(indices) and indices[end] - indices[end - 1] == step:
            end += 1
        runs.append(range(indices[i], indices[end - 1] + step, step))
        i = end
    return runs


def resize(node: Node) -> Sequence[Value]:
    """Nearest neighbours with whole factors: each element is repeated."""
    x = node.operand(0)
    size, target = size_of(x), _resized(node, size_of(x))
    if node.attributes.get("mode", "nearest") != "nearest":
        raise InferError(f"Resize takes the nearest element (found mode = {node.attributes['mode']})")
    times = [after // before for before, after in zip(size, target, strict=True)]
    for before, after, factor in zip(size, target, times, strict=True):
        if factor * before != after or not _repeats(node, before, factor):
            raise InferError(f"Resize repeats each element a whole number of times (found {before} to {after})")
    spaced = [n for extent in size for n in (extent, 1)]
    wide = [n for extent, factor in zip(size, times, strict=True) for n in (extent, factor)]
    y = node.emit(ExpandOp, node.emit(ReshapeOp, x, shape=spaced), shape=wide)
    return [node.emit(ReshapeOp, y, shape=target)]


def _resized(node: Node, size: Sequence[int]) -> list[int]:
    """The extents that Resize, or Upsample, asks for."""
    first = 1 if node.operator == "Upsample" or node.opset < 11 else 2
    scales = node.attributes.get("scales") or node.known(first)
    extents = node.known(3) if len(node.inputs) > 3 else None
    axes = [normal_axis(axis, len(size)) for axis in node.attributes.get("axes", range(len(size)))]
    target = list(size)
    for i, axis in enumerate(axes):
        if extents is not None and extents.size:
            target[axis] = int(extents[i])
        elif scales is not None and len(scales):
            target[axis] = math.floor(size[axis] * float(scales[i]))
    return target


def _repeats(node: Node, extent: int, factor: int) -> bool:
    """Whether the nearest element of each position is the one that it repeats."""
    place = np.arange(extent * factor)
    older = node.operator == "Upsample" or node.opset < 11
    mode = "asymmetric" if older else node.attributes.get("coordinate_transformation_mode", "half_pixel")
    nearest = "floor" if older else node.attributes.get("nearest_mode", "round_prefer_floor")
    if mode not in ("asymmetric", "half_pixel", "pytorch_half_pixel"):
        return factor == 1
    source = place / factor if mode == "asymmetric" or factor == 1 else (place + 0.5) / factor - 0.5
    rounded = {
        "floor": np.floor(source),
        "ceil": np.ceil(source),
        "round_prefer_floor": np.ceil(source - 0.5),
        "round_prefer_ceil": np.floor(source + 0.5),
    }[nearest]
    return bool(np.array_equal(np.clip(rounded, 0, extent - 1), place // factor))


EXPANSIONS: Mapping[str, Expansion] = {
    "Cast": cast,
    "Dropout": identity,
    "Flatten": flatten,
    "Gather": gather,
    "Identity": identity,
    "Max": variadic(MaxOp),
    "Mean": mean,
    "Min": variadic(MinOp),
    "Mod": remainder,
    "PRelu": prelu,
    "Pow": power,
    "Resize": resize,
    "Split": split,
    "Squeeze": squeeze,
    "Sum": variadic(AddOp),
    "Unsqueeze": unsqueeze,
    "Upsample": resize,
}
"""Operators of the domain ai.onnx by name; they come before the operators of the dialect."""
