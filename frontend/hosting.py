"""Nodes that the device does not run, as parts for the CPU: `graph.host` ops, one node each (`passes/host_parts.py`
joins them).

onnxruntime is asked at import whether it runs a node, and of which types and extents its results are.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.shape_inference import InferenceError
from xdsl.ir import SSAValue

from ..dialects.graph.constants import ELEMENTS, NUMPY
from ..dialects.graph.host import DownloadOp, HostOp, HostValueType, UploadOp, host_type, is_host
from ..dialects.graph.host_model import captured, graphs_of, value_info
from ..dialects.graph.op import InferError, element, i32, shape
from ..dialects.standin import StandIn
from ..runtime.cpu import HostError, HostNode, HostType
from .builder import GraphBuilder
from .corrections import corrected
from .listed import Listed
from .model_file import Array, embedded
from .node import AI_ONNX, Node, Value
from .trial import TRIAL, Output

MOST_RESIDUE = 1 << 14
"""Elements of a result that are few enough to stay on the CPU, where the operands are."""


class Hosting:
    """Makes host ops; see the module. `model` gives opsets and the types of values, `folder` has its external data."""

    def __init__(self, model: onnx.ModelProto, folder: Path | None = None) -> None:
        self.builder = GraphBuilder()
        self._folder = folder
        self._model = model
        self._types: Mapping[str, int] | None = None
        versions = [entry.version for entry in model.opset_import if entry.domain in ("", AI_ONNX)]
        self._opset = max(versions, default=0)

    # transfers --------------------------------------------------------------------------------------------------------
    def on_device(self, value: SSAValue) -> SSAValue:
        """A host value as a tensor, copied once. Raises `InferError` for one that the device cannot hold."""
        if not is_host(value):
            return value
        kind = host_type(value)
        if value not in self.builder.cache.uploads:
            if kind.dtype is None or kind.dtype not in ELEMENTS:
                raise InferError(f"the device holds f32, f16, bf16, integers and truth values (found {kind.kind})")
            if not kind.is_static:
                raise InferError(f"shapes are known when the model is compiled (found {kind}, `?` known at run time)")
            op = self.builder.insert(UploadOp.of(value, ELEMENTS[kind.dtype]))
            self.builder.cache.uploads[value] = op.results[0]
        return self.builder.cache.uploads[value]

    def on_host(self, value: SSAValue, name: str) -> SSAValue:
        """A tensor as a host value of the type that the ONNX model gives the name. Raises `HostError`."""
        if is_host(value):
            return value
        dtype = self._dtype(value, name)
        key = value, str(dtype)
        if key not in self.builder.cache.downloads:
            self.builder.cache.downloads[key] = self.builder.insert(DownloadOp.of(value, dtype)).results[0]
        return self.builder.cache.downloads[key]

    def _dtype(self, value: SSAValue, name: str) -> "np.dtype[Any]":
        """numpy's type of a value by the model: an i32 may stand for wider and narrower integers."""
        if element(value) != i32:
            return NUMPY[element(value)]
        if self._types is None:
            self._types = element_types(self._model)
        code = self._types.get(name.rpartition(".")[0] if name not in self._types else name, onnx.TensorProto.INT32)
        found = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code))
        return found if found.kind in "iu" else np.dtype(np.int32)

    # nodes ------------------------------------------------------------------------------------------------------------
    def run(self, node: Node, values: Mapping[str, Value | None], reason: str) -> list[Value | None]:
        """The results of a node on the CPU; `values` has what it reads, by name. Raises `HostError`."""
        names = list(dict.fromkeys((*filter(None, node.proto.input), *captured(node.proto))))
        computed, known = self._parted({name: values[name] for name in names})
        made = iter(self._insert(node.proto, node.name, computed, known, reason))
        return [_known_if_empty(next(made)) if output else None for output in node.proto.output]

    def constant(self, array: Array, name: str, reason: str) -> SSAValue:
        """A value of the CPU that is known."""
        return self._identity({}, {"value": array}, name, reason)

    def copy(self, value: SSAValue, name: str, reason: str) -> SSAValue:
        """A host value once more: an output has a value of its own."""
        return self._identity({"value": value}, {}, name, reason)

    def none_of(self, row: HostType, name: str, reason: str) -> SSAValue:
        """No rows of a type, of which there may be any number."""
        assert row.dtype is not None
        assert row.shape is not None
        array, whole = np.zeros((0, *row.shape), row.dtype), HostType(row.kind, (-1, *row.shape))
        proto = onnx.helper.make_node("Identity", ["value"], ["result"])
        (made,) = self._insert(proto, name, {}, {"value": array}, reason, [whole])
        return made

    def append(self, rows: SSAValue, row: SSAValue, name: str, reason: str) -> SSAValue:
        """Rows and one more."""
        known = {"axis": np.zeros(1, np.int64)} if self._opset >= 13 else {}
        attributes: dict[str, Any] = {} if known else {"axes": [0]}
        proto = onnx.helper.make_node("Unsqueeze", ["row", *known], ["one"], **attributes)
        (one,) = self._insert(proto, name, {"row": row}, known, reason)
        proto = onnx.helper.make_node("Concat", ["rows", "one"], ["more"], axis=0)
        (more,) = self._insert(proto, name, {"rows": rows, "one": one}, {}, reason)
        return more

    def first_of(self, rows: SSAValue, count: SSAValue, name: str, reason: str) -> SSAValue:
        """As many rows of a tensor as a run counts. Raises `HostError`."""
        counted = self.on_host(count, "")
        proto = onnx.helper.make_node("Reshape", ["count", "one"], ["end"])
        (end,) = self._insert(proto, name, {"count": counted}, {"one": np.ones(1, np.int64)}, reason)
        proto = onnx.helper.make_node("Slice", ["rows", "start", "end"], ["kept"])
        whole = self.on_host(rows, name)
        kind = HostType(host_type(whole).kind, (-1, *shape(rows)[1:]))
        computed, known = {"rows": whole, "end": end}, {"start": np.zeros(1, np.int32)}
        (kept,) = self._insert(proto, name, computed, known, reason, [kind])
        return kept

    def sequence(self, listed: Listed, name: str) -> SSAValue:
        """A list as a sequence. Raises `HostError`."""
        computed, known = self._parted({f"{name}.{place}": value for place, value in enumerate(listed.values)})
        if listed.values:
            names = [f"{name}.{place}" for place in range(len(listed.values))]
            proto = onnx.helper.make_node("SequenceConstruct", names, ["sequence"])
        else:
            proto = onnx.helper.make_node("SequenceEmpty", [], ["sequence"], dtype=listed.kind)
        (made,) = self._insert(proto, name, computed, known, "the CPU takes a sequence")
        return made

    def _identity(
        self, computed: Mapping[str, SSAValue], known: Mapping[str, Array], name: str, reason: str
    ) -> SSAValue:
        """The one value of either kind, `value`, as the CPU makes it."""
        proto = onnx.helper.make_node("Identity", ["value"], ["result"], name=name)
        (made,) = self._insert(proto, name, computed, known, reason)
        return made

    def _insert(
        self,
        proto: onnx.NodeProto,
        name: str,
        computed: Mapping[str, SSAValue],
        known: Mapping[str, Array],
        reason: str,
        wider: Sequence[HostType] | None = None,
    ) -> Sequence[SSAValue]:
        """The results of a node, of the types that onnxruntime finds, or of `wider` ones."""
        kinds = {name: host_type(value) for name, value in computed.items()}
        text, found = self._model_of(_named(proto, name), known, kinds)
        results = found if wider is None else wider
        nbytes = sum(array.nbytes for array in known.values())
        nbytes += sum(kind.nbytes() for kind in (*kinds.values(), *results))
        return self._part(text, HostNode(name, proto.op_type, reason, nbytes), computed, results)

    def _parted(self, values: Mapping[str, Value | None]) -> tuple[dict[str, SSAValue], dict[str, Array]]:
        """Those that are computed, on the CPU, and those that are known. Raises `HostError`."""
        values = {n: self.sequence(v, n) if isinstance(v, Listed) else v for n, v in values.items()}
        computed = {name: self.on_host(value, name) for name, value in values.items() if isinstance(value, SSAValue)}
        return computed, {n: v for n, v in values.items() if not isinstance(v, SSAValue) and v is not None}

    def _part(
        self, text: bytes, node: HostNode, computed: Mapping[str, SSAValue], results: Sequence[HostType]
    ) -> Sequence[SSAValue]:
        """The results of a model, `text`, that stands for a node."""
        kinds = [HostValueType.of(kind) for kind in results]
        return self.builder.insert(
            HostOp.of(text, [node], list(computed.values()), kinds, self.builder.weights)
        ).results

    def leave(
        self, graph: onnx.GraphProto, values: Mapping[str, Value], node: HostNode, likes: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """The outputs of a graph on the CPU, which only a run finds to be a network or none; their types are taken for
        those of `likes`, and shapes of inputs are not said. Raises `HostError`."""
        computed, known = self._parted(values)
        kinds = {name: HostType(host_type(value).kind) for name, value in computed.items()}
        names = [info.name for info in graph.output]
        taken = "taken" + "_" * max(map(len, [*values, *names]), default=0)
        proto = onnx.helper.make_node("If", [taken], names, then_branch=graph, else_branch=graph)
        text, found = self._model_of(proto, {**known, taken: np.array(True)}, kinds)
        wanted = [
            host_type(value) if is_host(value) else HostType.of(self._dtype(value, name), shape(value))
            for value, name in zip(likes, names, strict=True)
        ]
        if [kind.kind for kind in found] != [kind.kind for kind in wanted]:
            raise HostError(f"{', '.join(map(str, found))} for {', '.join(map(str, wanted))}")
        return self._part(text, node, computed, wanted)

    def _model_of(
        self, proto: onnx.NodeProto, known: Mapping[str, Array], kinds: Mapping[str, HostType]
    ) -> tuple[bytes, list[HostType]]:
        """The model of one node, as bytes, and the types of its outputs. Raises `HostError`."""
        model = self._one_node(proto, known, kinds)
        text = model.SerializeToString()
        results = result_types(model, text)
        if unknown := [kind.kind for kind in (*kinds.values(), *results) if not kind.is_known]:
            raise HostError(f"the CPU takes no values of {', '.join(unknown)}")
        return text, results

    def _one_node(
        self, proto: onnx.NodeProto, known: Mapping[str, Array], kinds: Mapping[str, HostType]
    ) -> onnx.ModelProto:
        nodes, made = corrected(embedded(proto, self._folder), kinds)
        known = {**known, **made}
        graph = onnx.GraphProto(name=proto.name or proto.op_type, node=nodes)
        graph.input.extend(value_info(name, kind) for name, kind in kinds.items())
        for name, array in known.items():
            if isinstance(array, StandIn) and self._opset >= 9:  # else there is no ConstantOfShape
                _add_stand_in(graph, name, array)
            else:
                graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in proto.output if name)
        return onnx.ModelProto(
            graph=graph, opset_import=self._model.opset_import, ir_version=max(self._model.ir_version, 4)
        )


def _named(proto: onnx.NodeProto, name: str) -> onnx.NodeProto:
    """The node by the name that it has here: in each step of a loop that is written out, another one."""
    if proto.name in ("", name):
        return proto
    copy = onnx.NodeProto()
    copy.CopyFrom(proto)
    copy.name = name
    return copy


def _add_stand_in(graph: onnx.GraphProto, name: str, array: StandIn) -> None:
    """A value that the part makes itself, since only its type counts."""
    size, value = np.array(array.shape, np.int64), np.zeros(1, array.dtype)
    graph.initializer.append(onnx.numpy_helper.from_array(size, f"{name}:shape"))
    attribute = onnx.numpy_helper.from_array(value, "value")
    made = onnx.helper.make_node("ConstantOfShape", [f"{name}:shape"], [name], value=attribute)
    graph.node.insert(0, made)


def _known_if_empty(value: SSAValue) -> Value:
    kind = host_type(value)
    if kind.is_static and kind.dtype in ELEMENTS and kind.shape is not None and 0 in kind.shape:
        with suppress(ValueError):  # other extents are too large for numpy
            return np.zeros(kind.shape, kind.dtype)
    return value


def result_types(model: onnx.ModelProto, text: bytes) -> list[HostType]:
    """The types of a model's outputs, as onnxruntime infers them; `text` is the model as bytes.

    Raises `HostError` for what it does not run.
    """
    outputs = TRIAL.outputs(text)
    if all(extents for _, _, extents in outputs):
        ranks: dict[str, int] = {}
    else:  # onnxruntime gives an unknown shape and that of a number alike
        ranks = {info.name: 0 for info in _inferred(model) if info.type.tensor_type.HasField("shape")}
    return [_result_type(output, output[0] in ranks) for output in outputs]


def _inferred(model: onnx.ModelProto) -> Sequence[onnx.ValueInfoProto]:
    """The outputs by ONNX's inference; nothing if it stops."""
    try:
        return TRIAL.infer(model, data_prop=True).graph.output
    except InferenceError:
        return ()


def _result_type(output: Output, has_shape: bool) -> HostType:
    _, kind, extents = output
    if not kind.startswith("tensor(") or (not extents and not has_shape):
        return HostType(kind)
    return HostType(kind, tuple(size if isinstance(size, int) and size >= 0 else -1 for size in extents))


def element_types(model: onnx.ModelProto) -> dict[str, int]:
    """The element type of each value that ONNX's shape inference knows; graphs inside nodes count as well."""
    bare = onnx.ModelProto()
    bare.CopyFrom(_without_data(model))
    found: dict[str, int] = {}
    try:
        _collect(TRIAL.infer(bare).graph, found)
    except Exception:  # noqa: BLE001 - what the model itself states must do
        _collect(bare.graph, found)
    return found


def _without_data(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its initialisers as inputs."""
    graph = onnx.GraphProto(name=model.graph.name, node=model.graph.node, output=model.graph.output)
    given = {info.name for info in model.graph.input}
    graph.input.extend(model.graph.input)
    graph.input.extend(
        onnx.helper.make_tensor_value_info(t.name, t.data_type, list(t.dims))
        for t in model.graph.initializer
        if t.name not in given
    )
    graph.value_info.extend(model.graph.value_info)
    return onnx.ModelProto(graph=graph, opset_import=model.opset_import, ir_version=model.ir_version)


def _collect(graph: onnx.GraphProto, found: dict[str, int]) -> None:
    for info in (*graph.input, *graph.value_info, *graph.output):
        if info.type.WhichOneof("value") == "tensor_type":
            found.setdefault(info.name, info.type.tensor_type.elem_type)
        elif info.type.WhichOneof("value") == "sequence_type":  # of what it holds
            found.setdefault(info.name, info.type.sequence_type.elem_type.tensor_type.elem_type)
    for tensor in graph.initializer:
        found.setdefault(tensor.name, tensor.data_type)
    for node in graph.node:
        for attribute in node.attribute:
            for inner in graphs_of(attribute):
                _collect(inner, found)
