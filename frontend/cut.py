"""Parts of an ONNX model: which nodes lie between values, and the model that some of them are by themselves.

    wiring = Wiring.read("model.onnx")
    part = wiring.between(["x"], ["y"])                 # numbers of nodes of the main graph
    model = wiring.model(part, wiring.borders(part), ["y"])

Nodes of the main graph are taken whole, with the graphs that they hold and what those read from outside. Functions are
inlined first. Weights stay in their file until a part is written.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ..dialects.graph.host_model import captured, inner_graphs
from .functions import inlined
from .model_file import Array, Source, read_model, to_array
from .problems import ModelFileError
from .sparse import dense
from .trial import TRIAL

Extents = Sequence[int | None] | None
"""Of a value; None for one that is not known."""

LARGEST = 2**30
"""Bytes of weights that one file holds with the model; beyond, they lie in a file beside it."""


@dataclass(frozen=True, slots=True)
class Border:
    """What a part takes as an input: its value and its ONNX type."""

    array: Array
    element: int


@dataclass
class Wiring:
    """The nodes of a model's main graph by number, each with a name of its own, and the values between them."""

    proto: onnx.ModelProto
    folder: Path | None
    reads: list[tuple[str, ...]] = field(init=False)
    """Of each node the values of the main graph that it reads, those that its graphs read among them."""
    makers: dict[str, int] = field(init=False)
    readers: dict[str, list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.reads = [tuple(dict.fromkeys(read_by(node))) for node in self.nodes]
        self.makers = {name: i for i, node in enumerate(self.nodes) for name in node.output if name}
        self.readers = {}
        for i, names in enumerate(self.reads):
            for name in names:
                self.readers.setdefault(name, []).append(i)

    @staticmethod
    def read(source: Source) -> "Wiring":
        """The wiring of a model file. Raises `ModelFileError`."""
        proto, folder = read_model(source, mapped=True)
        proto = inlined(dense(proto, folder))
        name_nodes(proto)
        return Wiring(proto, folder)

    @property
    def nodes(self) -> Sequence[onnx.NodeProto]:
        return self.proto.graph.node

    @cached_property
    def initializers(self) -> dict[str, TensorProto]:
        return {tensor.name: tensor for tensor in self.proto.graph.initializer}

    @cached_property
    def inputs(self) -> list[str]:
        """Inputs that are no initialisers."""
        return [info.name for info in self.proto.graph.input if info.name not in self.initializers]

    @cached_property
    def outputs(self) -> list[str]:
        return [info.name for info in self.proto.graph.output]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Nodes by name."""
        return {node.name: i for i, node in enumerate(self.nodes)}

    @cached_property
    def elements(self) -> dict[str, int]:
        """The ONNX type of each value, as far as it is declared or ONNX's inference finds it."""
        graph = self.proto.graph
        try:
            inferred = TRIAL.infer(self.proto).graph.value_info
        except Exception:  # noqa: BLE001 - an odd model; what it declares is known all the same
            inferred = graph.value_info
        infos = [*inferred, *graph.value_info, *graph.input, *graph.output]
        found = {info.name: info.type.tensor_type.elem_type for info in infos if info.type.HasField("tensor_type")}
        return {**found, **{name: tensor.data_type for name, tensor in self.initializers.items()}}

    @cached_property
    def dynamic(self) -> set[str]:
        """The values that depend on an input."""
        found = set(self.inputs)
        for node, names in zip(self.nodes, self.reads, strict=True):
            if any(name in found for name in names):
                found.update(name for name in node.output if name)
        return found

    def between(self, starts: Collection[str], ends: Iterable[str]) -> set[int]:
        """The nodes on the ways from any of `starts` (all of what `ends` depend on, if there are none) to `ends`."""
        after = None if not starts else self.after(starts)
        found, left = set[int](), [name for name in ends if name not in starts]
        while left:
            maker = self.makers.get(left.pop())
            if maker is None or maker in found or (after is not None and maker not in after):
                continue
            found.add(maker)
            left += [name for name in self.reads[maker] if name not in starts]
        return found

    def after(self, starts: Collection[str]) -> set[int]:
        """The nodes that depend on any of `starts`."""
        known, found = set(starts), set[int]()
        for i, names in enumerate(self.reads):
            if any(name in known for name in names):
                found.add(i)
                known.update(self.nodes[i].output)
        return found

    def with_constants(self, part: Collection[int], known: Collection[str]) -> set[int]:
        """The part with the nodes that make what it reads and what depends on no input, but for what is `known`."""
        found, left = set(part), list(part)
        while left:
            for name in self.reads[left.pop()]:
                maker = self.makers.get(name)
                if maker is not None and maker not in found and name not in self.dynamic and name not in known:
                    found.add(maker)
                    left.append(maker)
        return found

    def borders(self, part: Collection[int], known: Collection[str] = ()) -> list[str]:
        """What a part reads that it does not make, without initialisers and what is `known`."""
        made = self.made(part)
        names = dict.fromkeys(name for i in sorted(part) for name in self.reads[i])
        defined = self.makers.keys() | set(self.inputs)
        return [name for name in names if name in defined and name not in made and name not in known]

    def made(self, part: Collection[int]) -> set[str]:
        """The values that a part makes."""
        return {name for i in part for name in self.nodes[i].output if name}

    def sinks(self, part: Collection[int]) -> list[str]:
        """What a part makes and does not read."""
        read = {name for i in part for name in self.reads[i]}
        return [name for i in sorted(part) for name in self.nodes[i].output if name and name not in read]

    def leaving(self, part: Collection[int]) -> list[str]:
        """What a part makes that others, or the outputs of the model, take."""
        others = {name for i, names in enumerate(self.reads) if i not in part for name in names} | set(self.outputs)
        return [name for i in sorted(part) for name in self.nodes[i].output if name in others]

    def model(
        self,
        part: Collection[int],
        borders: Mapping[str, Border],
        outputs: Sequence[str],
        known: Mapping[str, Array] | None = None,
        shapes: Mapping[str, Extents] | None = None,
    ) -> onnx.ModelProto:
        """A part as a model: `borders` are its inputs, values that are `known` become initialisers.

        `shapes` are those of outputs, as far as they are known.
        """
        known, shapes = known or {}, shapes or {}
        made = self.made(part)
        names = dict.fromkeys(name for i in sorted(part) for name in self.reads[i] if name not in made)
        inputs = [
            helper.make_tensor_value_info(name, borders[name].element, borders[name].array.shape)
            for name in names
            if name in borders
        ]
        tensors = [
            numpy_helper.from_array(np.asarray(known[name]), name)
            if name in known
            else with_data(self.initializers[name], self.folder)
            for name in names
            if name not in borders and (name in known or name in self.initializers)
        ]
        results = [_info(name, self.elements.get(name), shapes.get(name)) for name in outputs]
        graph = helper.make_graph([self.nodes[i] for i in sorted(part)], "part", inputs, results, tensors)
        model = helper.make_model(graph, opset_imports=list(self.proto.opset_import))
        model.ir_version = self.proto.ir_version
        return model


def _info(name: str, element: int | None, size: Extents) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, size) if element else onnx.ValueInfoProto(name=name)


def read_by(node: onnx.NodeProto) -> list[str]:
    """The values that a node reads, those that its graphs take from around them among them."""
    return [name for name in node.input if name] + captured(node)


def count_nodes(nodes: Iterable[onnx.NodeProto]) -> int:
    """Nodes, those inside of graphs among them."""
    return sum(1 + sum(count_nodes(graph.node) for graph in inner_graphs(node)) for node in nodes)


def name_nodes(proto: onnx.ModelProto) -> None:
    """Gives each node of the main graph a name that no other has."""
    taken = set[str]()
    for number, node in enumerate(proto.graph.node):
        stem = node.name or f"{node.op_type}_{number}"
        name, count = stem, 1
        while name in taken:
            count += 1
            name = f"{stem}_{count}"
        node.name = name
        taken.add(name)


def with_data(tensor: TensorProto, folder: Path | None) -> TensorProto:
    """A tensor with its data in it."""
    if tensor.data_location != TensorProto.EXTERNAL:
        return tensor
    array = to_array(tensor, folder)
    return TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, raw_data=array.tobytes())


def save(model: onnx.ModelProto, path: Path) -> None:
    """Writes a part; large weights go to a file beside it. Raises `ModelFileError`."""
    size = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    try:
        if size > LARGEST:
            beside = path.with_name(f"{path.name}.data")
            beside.unlink(missing_ok=True)
            onnx.save(model, path, save_as_external_data=True, location=beside.name)
        else:
            onnx.save(model, path)
    except OSError as error:
        raise ModelFileError(f"{path}: can be written (found {error.strerror or error}); name another file") from None
