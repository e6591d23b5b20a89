"""The ONNX models of parts that the CPU runs: their types, and how several become one."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256

import numpy as np
import onnx
from xdsl.ir import SSAValue

from ...runtime.cpu import NAMES, NUMPY, HostType
from .host import HostOp, host_type


def value_info(name: str, kind: HostType) -> onnx.ValueInfoProto:
    """An input of a part."""
    return onnx.ValueInfoProto(name=name, type=_type_proto(kind.kind, kind.shape))


def _type_proto(text: str, shape: Sequence[int] | None) -> onnx.TypeProto:
    """A type in onnxruntime's words: `tensor(int64)`, `seq(tensor(float))`, `optional(seq(tensor(float)))`."""
    outer, _, inner = text.partition("(")
    inner = inner[:-1]
    if outer == "seq":
        return onnx.helper.make_sequence_type_proto(_type_proto(inner, None))
    if outer == "optional":
        return onnx.helper.make_optional_type_proto(_type_proto(inner, None))
    if outer == "map":
        key, _, value = inner.partition(",")
        code = onnx.helper.np_dtype_to_tensor_dtype(NUMPY[key])
        return onnx.helper.make_map_type_proto(code, _type_proto(value, None))
    code = onnx.helper.np_dtype_to_tensor_dtype(NUMPY[inner])
    return onnx.helper.make_tensor_type_proto(code, None if shape is None else [None if s < 0 else s for s in shape])


def type_text(kind: onnx.TypeProto) -> str:
    """The inverse: a type in onnxruntime's words, without extents. Raises `ValueError` for a kind it does not have."""
    match kind.WhichOneof("value"):
        case "sequence_type":
            return f"seq({type_text(kind.sequence_type.elem_type)})"
        case "optional_type":
            return f"optional({type_text(kind.optional_type.elem_type)})"
        case "map_type":
            return f"map({_name(kind.map_type.key_type)},{type_text(kind.map_type.value_type)})"
        case "tensor_type":
            return f"tensor({_name(kind.tensor_type.elem_type)})"
        case found:
            raise ValueError(f"a value is a tensor, a sequence, a map or optional (found {found})")


def _name(code: int) -> str:
    """onnxruntime's name of an element type."""
    names = {number: name for name, number in onnx.TensorProto.DataType.items()}
    if code == onnx.TensorProto.UNDEFINED or code not in names:
        return f"type {code}"
    return NAMES.get(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code)), names[code].lower())


def captured(node: onnx.NodeProto) -> list[str]:
    """Names that the graphs of a node take from around it, in order."""
    found: dict[str, None] = {}
    for graph in inner_graphs(node):
        found.update(dict.fromkeys(free_names(graph)))
    return list(found)


def free_names(graph: onnx.GraphProto) -> Iterator[str]:
    """Names that a graph takes from around it."""
    own = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        yield from (name for name in (*node.input, *captured(node)) if name and name not in own)
        own.update(node.output)
    yield from (info.name for info in graph.output if info.name not in own)


def graphs_of(attribute: onnx.AttributeProto) -> Sequence[onnx.GraphProto]:
    """The graphs that an attribute holds."""
    return [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs


def inner_graphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs that a node holds."""
    return [graph for attribute in node.attribute for graph in graphs_of(attribute)]


# joining --------------------------------------------------------------------------------------------------------------
def join(
    parts: Sequence[tuple[HostOp, onnx.ModelProto]], results: Sequence[SSAValue]
) -> tuple[onnx.ModelProto, list[SSAValue]]:
    """One model for the parts, given in an order in which they can run, with outputs for `results`; and the values that
    are its inputs."""
    graph, names, constants = onnx.GraphProto(name="part"), dict[SSAValue, str](), dict[str, str]()
    made = {result for op, _ in parts for result in op.results}
    inputs = list(dict.fromkeys(value for op, _ in parts for value in op.operands if value not in made))
    prefix = _unused_prefix([model.graph for _, model in parts])
    for value in (*inputs, *made):
        names[value] = f"{prefix}{len(names)}"
    graph.input.extend(value_info(names[value], host_type(value)) for value in inputs)
    for number, (op, model) in enumerate(parts):
        here = {tensor.name: _constant(tensor, graph, constants, prefix) for tensor in model.graph.initializer}
        here |= {info.name: names[v] for info, v in zip(model.graph.input, op.operands, strict=True)}
        here |= {info.name: names[v] for info, v in zip(model.graph.output, op.results, strict=True)}
        for node in model.graph.node:
            here |= {name: f"{prefix}{number}.{name}" for name in node.output if name and name not in here}
            graph.node.append(_renamed(node, here))
    graph.output.extend(onnx.ValueInfoProto(name=names[value]) for value in results)
    first = parts[0][1]
    return onnx.ModelProto(graph=graph, opset_import=first.opset_import, ir_version=first.ir_version), inputs


def _unused_prefix(graphs: Sequence[onnx.GraphProto]) -> str:
    """No name inside the graphs of nodes begins with it."""
    prefix, inner = "v", {name for graph in graphs for node in graph.node for name in _inner_names(node)}
    while any(name.startswith(prefix) for name in inner):
        prefix += "_"
    return prefix


def _inner_names(node: onnx.NodeProto) -> Iterator[str]:
    """Names of values that the graphs of a node make."""
    for graph in inner_graphs(node):
        yield from (info.name for info in (*graph.input, *graph.output))
        yield from (tensor.name for tensor in graph.initializer)
        for inner in graph.node:
            yield from (*inner.output, *_inner_names(inner))


def _constant(tensor: onnx.TensorProto, graph: onnx.GraphProto, known: dict[str, str], prefix: str) -> str:
    """The name of an initialiser in the graph; equal ones are one."""
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    copy.name = ""
    key = sha256(copy.SerializeToString(deterministic=True)).hexdigest()
    if key not in known:
        known[key] = copy.name = f"{prefix}c{len(known)}"
        graph.initializer.append(copy)
    return known[key]


def _renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """The node with other names for values, also in its graphs, whose own names hide those around them."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [names.get(name, name) for name in node.input]
    copy.output[:] = [names.get(name, name) for name in node.output]
    for attribute in copy.attribute:
        for graph in graphs_of(attribute):
            _rename(graph, names)
    return copy


def _rename(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    own = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {name for node in graph.node for name in node.output}
    outer = {name: new for name, new in names.items() if name not in own}
    for position, node in enumerate(list(graph.node)):
        graph.node[position].CopyFrom(_renamed(node, outer))
    for info in graph.output:
        info.name = outer.get(info.name, info.name)
