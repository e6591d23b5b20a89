"""An ONNX model as the bounds see it: nodes in order, shapes of all values, what is constant, what is but a view."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

VIEWS = frozenset({
    "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout", "Transpose", "Slice", "Split", "Concat",
    "Expand", "Pad", "Tile", "DepthToSpace", "SpaceToDepth",
})  # fmt: skip
"""Operators that only say where values lie."""
_KNOWN = frozenset({"Constant", "ConstantOfShape", "Shape", "Size"})
"""Operators whose results depend on shapes alone."""
_LARGE = 4096
_FLOATS: frozenset[int] = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE})
_BYTES: dict[int, int] = {TensorProto.BOOL: 1, TensorProto.INT8: 1, TensorProto.UINT8: 1}


class GraphError(ValueError):
    """A model that no bound can be computed for; the message names the node."""


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor."""

    name: str
    element: int
    shape: tuple[int, ...]
    constant: bool

    @property
    def elements(self) -> int:
        return prod(self.shape)

    def nbytes(self, size: int) -> int:
        """`size`: bytes of a float. Integers have 4 on the device, or 1."""
        return self.elements * (size if self.element in _FLOATS else _BYTES.get(self.element, 4))


@dataclass(frozen=True, slots=True)
class Node:
    """An operator that is computed when the model runs."""

    name: str
    operator: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    attributes: Mapping[str, Any]


@dataclass
class Graph:
    """A model. `nodes` leaves out what is constant and what is a view."""

    nodes: list[Node] = field(default_factory=list[Node])
    inputs: list[Value] = field(default_factory=list[Value])
    outputs: list[Value] = field(default_factory=list[Value])
    _shown: dict[str, list[Value]] = field(default_factory=dict[str, list[Value]])

    def sources(self, value: Value) -> list[Value]:
        """The values that a view shows; of any other value, itself."""
        return self._shown.get(value.name, [value])

    def show(self, view: Value, parts: Sequence[Value]) -> None:
        """Says that a value is a view of others."""
        found = (source for part in parts for source in self.sources(part) if not source.constant)
        self._shown[view.name] = list({source.name: source for source in found}.values())


def read(model: onnx.ModelProto | Path, shapes: Mapping[str, Sequence[int]] | None = None) -> Graph:
    """A model with shapes for its inputs. Raises `GraphError` where a shape cannot be inferred."""
    whole = model if isinstance(model, onnx.ModelProto) else onnx.load(model)
    proto = _with_shapes(whole, shapes or {})
    types = {
        info.name: info.type.tensor_type for info in [*proto.graph.input, *proto.graph.value_info, *proto.graph.output]
    }
    values = {
        tensor.name: Value(tensor.name, tensor.data_type, tuple(tensor.dims), True)
        for tensor in proto.graph.initializer
    }
    graph = Graph()
    for info in proto.graph.input:
        if info.name not in values:
            values[info.name] = _value(info.name, types, False, "the model's input")
            graph.inputs.append(values[info.name])
    for node in proto.graph.node:
        taken = tuple(values[name] for name in node.input if name)
        constant = node.op_type in _KNOWN or all(value.constant for value in taken)
        made = tuple(_value(name, types, constant, f"node {node.name}") for name in node.output if name)
        values |= {value.name: value for value in made}
        if not constant and (node.op_type in VIEWS or (node.op_type == "Gather" and taken[1].constant)):
            for value in made:
                graph.show(value, taken if node.op_type == "Concat" else taken[:1])
        elif not constant:
            attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            graph.nodes.append(Node(node.name or made[0].name, node.op_type, taken, made, attributes))
    graph.outputs = [values[info.name] for info in proto.graph.output]
    return graph


def _with_shapes(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> onnx.ModelProto:
    """The model with all types, without its large weights. Shapes that cannot be inferred are those of a run."""
    proto = onnx.ModelProto()
    proto.CopyFrom(model)
    for tensor in proto.graph.initializer:
        if len(tensor.raw_data) > _LARGE:
            tensor.ClearField("raw_data")
    for info in proto.graph.input:
        for dimension, extent in zip(info.type.tensor_type.shape.dim, shapes.get(info.name, ()), strict=False):
            dimension.dim_value = extent
    if shapes:  # what the file says of other values may contradict them
        del proto.graph.value_info[:]
        for info in proto.graph.output:
            info.type.tensor_type.ClearField("shape")
    proto = onnx.shape_inference.infer_shapes(proto, data_prop=True)
    infos = [*proto.graph.input, *proto.graph.value_info, *proto.graph.output]
    known = {info.name for info in infos if _is_known(info.type.tensor_type)}
    unknown = [name for node in proto.graph.node for name in node.output if name and name not in known]
    if unknown and shapes:
        found = {info.name: info for info in [*infos, *_observed(model, shapes, unknown)]}
        outputs = [found[info.name] for info in model.graph.output]
        del proto.graph.value_info[:], proto.graph.output[:]
        proto.graph.value_info.extend(found.values())
        proto.graph.output.extend(outputs)
    return proto


def _is_known(found: onnx.TypeProto.Tensor) -> bool:
    return found.HasField("shape") and all(extent.HasField("dim_value") for extent in found.shape.dim)


def _observed(
    model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]], names: Sequence[str]
) -> Iterator[onnx.ValueInfoProto]:
    """Types of values, as onnxruntime finds them for inputs of zeros."""
    import onnxruntime

    proto = onnx.ModelProto()
    proto.CopyFrom(model)
    del proto.graph.output[:]
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    types = {info.name: helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type) for info in model.graph.input}
    zeros = {name: np.zeros(shape, types[name]) for name, shape in shapes.items()}
    for name, found in zip(names, session.run(list(names), zeros), strict=True):
        array = np.asarray(found)
        yield helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def _value(name: str, types: Mapping[str, onnx.TypeProto.Tensor], constant: bool, where: str) -> Value:
    found = types.get(name)
    dimensions = list(found.shape.dim) if found is not None and found.HasField("shape") else None
    if constant and dimensions is None:
        return Value(name, TensorProto.INT64, (), True)
    if found is None or dimensions is None or not _is_known(found):
        raise GraphError(f"{where}: the shape of {name} must be inferable (found none); give the inputs' shapes")
    return Value(name, found.elem_type, tuple(d.dim_value for d in dimensions), constant)
