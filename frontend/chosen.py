"""Rows that a mask chooses, where only their sum is kept: the experts of a network to which tokens are sent.

    places = NonZero(mask)                           [axes, n], n known to a run alone
    rows = Gather(x, places[1]); y = expert(rows)    [n, …]
    result = ScatterND <reduction = add> (result, places[1], y)

If every row goes its own way between the two, as in products with weights, functions of elements and sums along other
axes, then n need not be known: all places of the mask are rows, and those that it does not choose add 0. What rows are
gathered by is places: an index among the values may be one only where the mask chooses. `plan` finds this from the
nodes alone; the importer asks `Chosen` at the two ends.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx.shape_inference import InferenceError
from xdsl.ir import SSAValue

from ..dialects.graph.constants import NUMPY
from ..dialects.graph.host import is_host
from ..dialects.graph.host_model import captured
from ..dialects.graph.op import InferError, element
from ..dialects.graph.views import normal_axis
from .model_file import Array
from .node import AI_ONNX, Node, Value, size_of
from .operators import apply
from .trial import TRIAL

MOST_PLACES = 1 << 16
"""Of a mask; the CPU finds the few of more."""
MOST_SMALL = 64
"""Elements of a constant that may say axes or a shape."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What has a row for each place that a mask chooses: the NonZero by its output, and the axis of the rows."""

    source: str
    axis: int
    is_place: bool = False
    """Its numbers are coordinates of the place."""


@dataclass(frozen=True, slots=True)
class Extents:
    """The shape of rows, or what was computed from it."""

    source: str


Kind = Rows | Extents
_MALFORMED = (AttributeError, IndexError, TypeError, ValueError)
"""What a node or a tensor that breaks a rule of ONNX may raise; the importer says so when it comes to it."""


@dataclass(frozen=True, slots=True)
class End:
    """An input whose rows are summed."""

    source: str
    index: int
    axis: int


class Unfit(Exception):
    """A node between whose rows there are relations, or of which nobody knows."""


@dataclass
class Walk:
    """The nodes in order: what each value is, and where rows end."""

    ranks: Mapping[str, Sequence[int | None]]
    constants: Mapping[str, Array]
    opset: int
    kinds: dict[str, Kind] = field(default_factory=dict[str, Kind])
    ends: dict[str, End] = field(default_factory=dict[str, End])
    unfit: set[str] = field(default_factory=set[str])

    def step(self, node: onnx.NodeProto) -> None:
        """What a node makes of rows."""
        alone = len(node.input) == len(node.output) == 1 and node.input[0] not in self.kinds
        if node.op_type == "NonZero" and node.domain in ("", AI_ONNX) and alone:
            self.kinds[node.output[0]] = Rows(node.output[0], 1, is_place=True)
            return
        met = [self.kinds[name] for name in (*node.input, *captured(node)) if name in self.kinds]
        sources = {kind.source for kind in met}
        if not sources or not node.output:
            return
        try:
            if (
                len(sources) > 1
                or node.domain not in ("", AI_ONNX)
                or any(name in self.kinds for name in captured(node))
            ):
                raise Unfit
            found = RULES[node.op_type](
                self, node, {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            )
        except (Unfit, InferError, KeyError, *_MALFORMED):
            self.unfit |= sources
            return
        if isinstance(found, End):
            self.ends[node.output[0]] = found
        else:
            self.kinds |= dict.fromkeys(filter(None, node.output), found)

    # facts ------------------------------------------------------------------------------------------------------------
    def rows(self, name: str) -> Rows:
        kind = self.kinds.get(name)
        if not isinstance(kind, Rows):
            raise Unfit
        return kind

    def places(self, name: str) -> Rows:
        rows = self.rows(name)
        if not rows.is_place:
            raise Unfit
        return rows

    def rank(self, name: str) -> int:
        return len(self.ranks[name])

    def numbers(self, name: str) -> list[int]:
        """The value of a constant."""
        return [int(number) for number in self.constants[name].reshape(-1)]

    def axes(self, node: onnx.NodeProto, given: Mapping[str, Any], added: int = 0) -> list[int]:
        """Axes that an attribute or the second input says; of a result with `added` more."""
        found = given["axes"] if "axes" in given else self.numbers(node.input[1])
        return [normal_axis(axis, self.rank(node.input[0]) + added) for axis in found]

    def free(self, node: onnx.NodeProto, *, but: int) -> None:
        """No input but one has to do with rows."""
        if any(name in self.kinds for place, name in enumerate(node.input) if place != but):
            raise Unfit


Rule = Callable[[Walk, onnx.NodeProto, Mapping[str, Any]], Kind | End]


def _elementwise(walk: Walk, node: onnx.NodeProto, given: Mapping[str, Any]) -> Kind:
    """Rows meet rows of the same place, or what is the same for all."""
    names = [name for name in node.input if name]
    extents = next((kind for name in names if isinstance(kind := walk.kinds.get(name), Extents)), None)
    if extents is not None:
        return extents
    if len(names) == 1:
        rows = walk.rows(names[0])
        return rows if node.op_type in ("Cast", "Identity") else replace(rows, is_place=False)
    behind = {walk.rank(name) - walk.rows(name).axis for name in names if name in walk.kinds}
    whole = max(map(walk.rank, names))
    (place,) = behind
    for name in names:
        if name not in walk.kinds and walk.rank(name) >= place and walk.ranks[name][-place] != 1:
            raise Unfit
    source = next(walk.kinds[name].source for name in names if name in walk.kinds)
    return Rows(source, whole - place)


def _product(walk: Walk, node: onnx.NodeProto, given: Mapping[str, Any]) -> Kind:
    rows = walk.rows(node.input[0])
    walk.free(node, but=0)
    if rows.axis == walk.rank(node.input[0]) - 1 or walk.rank(node.input[1]) != 2 or given.get("transA", 0):
        raise Unfit
    return replace(rows, is_place=False)


def _gather(walk: Walk, node: onnx.NodeProto, given: Mapping[str, Any]) -> Kind:
    data, index = node.input
    axis = given.get("axis", 0)
    if isinstance(kind := walk.kinds.get(data), Extents):
        walk.free(node, but=0)
        return kind
    axis = normal_axis(axis, walk.rank(data))
    if index in walk.kinds:
        walk.free(node, but=1)
        rows = walk.places(index)
        return Rows(rows.source, axis + rows.axis)
    rows = walk.rows(data)
    if axis == rows.axis:
        raise Unfit
    return rows if axis > rows.axis else replace(rows, axis=rows.axis - 1 + walk.rank(index))


def _gather_nd(walk: Walk, node: onnx.NodeProto, given: Mapping[str, Any]) -> Kind:
    walk.free(node, but=1)
    rows = walk.places(node.input[1])
    if given.get("batch_dims", 0) or rows.axis == walk.rank(node.input[1]) - 1:
        raise Unfit
    return replace(rows, is_place=False)


def _scatter(walk: Walk, node: onnx.NodeProto, given: Mapping[str, Any]) -> End:
    """Rows are added to what has none."""
    index, updates = walk.places(node.input[1]), walk.rows(node.input[2])
    if node.input[0] in walk.kinds or given.get("reduction") != b"add" or given.get("axis", 0) != 0:
        raise Unfit
    if index.axis or updates.axis or (node.op_type == "ScatterND" and walk.rank(node.input[1]) < 2):
        raise Unfit
    return End(updates.source, 2, 0)


def _concat(walk: Walk, node: onnx.NodeProto, given: Mapping[str, Any]) -> Kind:
    kinds = [walk.kinds.get(name) for name in node.input]
    extents = next((kind for kind in kinds if isinstance(kind, Extents)), None)
    if extents is not None:
        return extents
    first, axis = walk.rows(node.input[0]), normal_axis(given["axis"], walk.rank(node.input[0]))
    if any(kind != first for kind in kinds) or axis == first.axis:
        raise Unfit
    return first


def _along(walk: Walk, node: onnx.NodeProto, given: Mapping[str, Any]) -> Kind:
    """Along an axis that is not that of the rows."""
    walk.free(node, but=0)
    rows, axis = walk.rows(node.input[0]), given.get("axis", 0 if node.op_type == "Split" else -1)
    axis = normal_axis(axis, walk.rank(node.input[0]))
    flat = node.op_type in ("Softmax", "LogSoftmax") and walk.opset < 13
    if axis == rows.axis or (axis < rows.axis and node.op_type != "Split") or flat:
        raise Unfit
    return rows if node.op_type == "Split" else replace(rows, is_place=False)


def _squeeze(walk: Walk, node: onnx.NodeProto, given: Mapping[str, Any]) -> Kind:
    if isinstance(kind := walk.kinds[node.input[0]], Extents):
        return kind
    axes = walk.axes(node, given)
    if kind.axis in axes:
        raise Unfit
    return replace(kind, axis=kind.axis - sum(axis < kind.axis for axis in axes))


def _unsqueeze(walk: Walk, node: onnx.NodeProto, given: Mapping[str, Any]) -> Kind:
    if isinstance(kind := walk.kinds[node.input[0]], Extents):
        return kind
    count = len(given["axes"] if "axes" in given else walk.numbers(node.input[1]))
    axes = walk.axes(node, given, count)
    kept = [axis for axis in range(walk.rank(node.input[0]) + count) if axis not in axes]
    return replace(kind, axis=kept[kind.axis])


def _slice(walk: Walk, node: onnx.NodeProto, given: Mapping[str, Any]) -> Kind:
    walk.free(node, but=0)
    if isinstance(kind := walk.kinds[node.input[0]], Extents):
        return kind
    known = len(node.input) > 3 and node.input[3]
    starts = given["starts"] if "starts" in given else walk.numbers(node.input[1])
    axes = walk.numbers(node.input[3]) if known else given.get("axes", range(len(starts)))
    if kind.axis in [normal_axis(axis, walk.rank(node.input[0])) for axis in axes]:
        raise Unfit
    return kind


def _transpose(walk: Walk, node: onnx.NodeProto, given: Mapping[str, Any]) -> Kind:
    rows = walk.rows(node.input[0])
    order = given.get("perm") or list(reversed(range(walk.rank(node.input[0]))))
    return replace(rows, axis=list(order).index(rows.axis))


def _reduce(walk: Walk, node: onnx.NodeProto, given: Mapping[str, Any]) -> Kind | End:
    walk.free(node, but=0)
    rows, axes = walk.rows(node.input[0]), walk.axes(node, given)
    if rows.axis in axes or not axes:
        if node.op_type != "ReduceSum" or not axes:
            raise Unfit
        return End(rows.source, 0, rows.axis)
    gone = 0 if given.get("keepdims", 1) else sum(axis < rows.axis for axis in axes)
    return Rows(rows.source, rows.axis - gone)


def _reshape(walk: Walk, node: onnx.NodeProto, given: Mapping[str, Any]) -> Kind:
    """Rows stay the first axis, of whatever form they are."""
    walk.free(node, but=0)
    if isinstance(kind := walk.kinds[node.input[0]], Extents):
        return kind
    size, target = walk.ranks[node.input[0]], walk.numbers(node.input[1])
    before, behind = size[: kind.axis], size[kind.axis + 1 :]
    if any(extent != 1 for extent in before) or target[0] != -1 or None in behind or 0 in target:
        raise Unfit
    if prod(extent for extent in behind if extent is not None) != prod(target[1:]):
        raise Unfit
    return replace(kind, axis=0)


def _expand(walk: Walk, node: onnx.NodeProto, given: Mapping[str, Any]) -> Kind:
    rows = walk.rows(node.input[0])
    if not isinstance(walk.kinds.get(node.input[1]), Extents):
        raise Unfit
    return replace(rows, axis=rows.axis + len(walk.ranks[node.output[0]]) - walk.rank(node.input[0]))


def _extents(walk: Walk, node: onnx.NodeProto, given: Mapping[str, Any]) -> Kind:
    return Extents(walk.rows(node.input[0]).source)


_OF_ELEMENTS = (
    "Abs", "Add", "And", "Cast", "Clip", "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "HardSwish",
    "Identity", "LeakyRelu", "Less", "Log", "Max", "Min", "Mul", "Neg", "Not", "Or", "Pow", "Reciprocal", "Relu",
    "Sigmoid", "Sign", "Softplus", "Sqrt", "Sub", "Tanh", "Where",
)  # fmt: skip
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_OF_ELEMENTS, _elementwise),
    **dict.fromkeys(("Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization", "Split"), _along),
    **dict.fromkeys(("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"), _reduce),
    **dict.fromkeys(("MatMul", "Gemm"), _product),
    **dict.fromkeys(("ScatterND", "ScatterElements"), _scatter),
    "Concat": _concat,
    "Expand": _expand,
    "Gather": _gather,
    "GatherND": _gather_nd,
    "Reshape": _reshape,
    "Shape": _extents,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}


class Chosen:
    """The two ends, for the importer: which NonZero gives all places, and which inputs are masked."""

    def __init__(self, model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> None:
        self._kept: dict[str, SSAValue] = {}
        self._ends, self._sources = plan(model, nodes) if any(n.op_type == "NonZero" for n in nodes) else ({}, set())

    def places(self, node: Node) -> Sequence[Value] | None:
        """All places of the mask, if those that it does not choose will not count."""
        name = node.proto.output[0] if node.proto.output else ""
        if node.operator != "NonZero" or name not in self._sources:
            return None
        mask = node.given(0)
        if not isinstance(mask, SSAValue) or is_host(mask):
            return None
        size = size_of(mask)
        if not size or not 0 < prod(size) <= MOST_PLACES:
            return None
        self._kept[name] = apply(node, "Reshape", apply(node, "Cast", mask, to=onnx.TensorProto.BOOL), np.array([-1]))
        return [np.stack(np.nonzero(np.ones(size, bool))).astype(np.int64)]

    def masked(self, node: Node) -> Node:
        """A node that sums rows, with 0 in place of those that do not count."""
        end = self._ends.get(node.proto.output[0]) if node.proto.output else None
        if end is None or end.source not in self._kept:
            return node
        rows = node.operand(end.index)
        size = [1] * len(size_of(rows))
        size[end.axis] = -1
        kept = apply(node, "Reshape", self._kept[end.source], np.array(size))
        summed = apply(node, "Where", kept, rows, np.zeros((), NUMPY[element(rows)]))
        return node.with_inputs([summed if place == end.index else value for place, value in enumerate(node.inputs)])


def plan(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> tuple[dict[str, End], set[str]]:
    """The inputs whose rows are summed, by the first outputs of the nodes, and the NonZeros that end in such alone."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in nodes:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            tensors[node.output[0]] = node.attribute[0].t
    values: dict[str, Array] = {}
    for name, tensor in tensors.items():
        if 0 <= prod(tensor.dims) <= MOST_SMALL and tensor.data_location != tensor.EXTERNAL:
            with suppress(*_MALFORMED):
                values[name] = onnx.numpy_helper.to_array(tensor)
    opset = max((entry.version for entry in model.opset_import if entry.domain in ("", AI_ONNX)), default=0)
    walk = Walk(_ranks(model, set(values)), values, opset)
    for node in nodes:
        walk.step(node)
    outputs = {walk.kinds[info.name].source for info in model.graph.output if info.name in walk.kinds}
    fit = {end.source for end in walk.ends.values()} - walk.unfit - outputs
    return {name: end for name, end in walk.ends.items() if end.source in fit}, fit


def _ranks(model: onnx.ModelProto, small: set[str]) -> dict[str, list[int | None]]:
    """The extents of each value that ONNX's inference finds, from small constants alone; None for an open one."""
    bare = onnx.ModelProto(opset_import=model.opset_import, ir_version=model.ir_version)
    bare.graph.CopyFrom(onnx.GraphProto(name="g", node=model.graph.node, input=model.graph.input))
    bare.graph.output.extend(onnx.ValueInfoProto(name=info.name) for info in model.graph.output)
    given = {info.name for info in model.graph.input}
    for tensor in model.graph.initializer:
        if tensor.name in small:
            bare.graph.initializer.append(tensor)
        elif tensor.name not in given:
            info = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            bare.graph.input.append(info)
    try:
        graph = TRIAL.infer(bare, data_prop=True).graph
    except (InferenceError, InferError):
        return {}
    found = {tensor.name: list[int | None](tensor.dims) for tensor in model.graph.initializer}
    for info in (*graph.input, *graph.value_info, *graph.output):
        if info.type.tensor_type.HasField("shape"):
            dims = info.type.tensor_type.shape.dim
            found[info.name] = [d.dim_value if d.HasField("dim_value") else None for d in dims]
    return found
