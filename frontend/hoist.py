"""What is inside of a node's graph, in place of the node: a branch of an If, one step of a Loop or a Scan.

Also the node as it is, with graphs that only return what is recorded. `flattened` does it for each If whose condition
is known, which is what the importer does.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..dialects.graph.host_model import free_names, inner_graphs
from .cut import name_nodes
from .model_file import Array


def flattened(model: onnx.ModelProto, known: Mapping[str, Array]) -> onnx.ModelProto | None:
    """The model with the branch that is taken in place of each If whose condition is known; None if there is none.

    What the branch holds may be an If again, whose condition `known` does not say yet.
    """
    nodes, tensors, changed = list[onnx.NodeProto](), list[onnx.TensorProto](), False
    taken = {name for node in model.graph.node for name in node.output}
    taken |= {item.name for item in (*model.graph.input, *model.graph.initializer)}
    for node in model.graph.node:
        condition = known.get(node.input[0]) if node.op_type == "If" and node.input else None
        if condition is None or condition.size != 1:
            nodes.append(node)
            continue
        wanted = "then_branch" if condition.reshape(-1)[0] else "else_branch"
        graph = _distinct(next(a.g for a in node.attribute if a.name == wanted), f"{node.name}:", taken)
        taken |= {name for inner in graph.node for name in inner.output} | {item.name for item in graph.initializer}
        nodes += [*graph.node, *_renamed(graph.output, node.output)]
        tensors += graph.initializer
        changed = True
    return _rebuilt(model, nodes, tensors) if changed else None


def _distinct(graph: onnx.GraphProto, prefix: str, taken: Collection[str]) -> onnx.GraphProto:
    """The graph, in which what it defines has names that are not taken."""
    own = {name for node in graph.node for name in node.output} | {item.name for item in graph.initializer}
    names = {name: prefix + name for name in own if name in taken}
    changed = onnx.GraphProto()
    changed.CopyFrom(graph)
    if names:
        _rename(changed, names)
    return changed


def _rename(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """Other names for values, also where graphs inside read them."""
    for item in (*graph.initializer, *graph.output, *graph.value_info):
        item.name = names.get(item.name, item.name)
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        for inner in inner_graphs(node):
            _rename(inner, {name: new for name, new in names.items() if name in free_names(inner)})


def hoisted(model: onnx.ModelProto, node: onnx.NodeProto, recorded: Mapping[str, Array]) -> Iterator[onnx.ModelProto]:
    """Models in which less stands in place of a node of the main graph that holds graphs."""
    number = [other.name for other in model.graph.node].index(node.name)
    graphs = inner_graphs(node)
    if node.op_type == "If":
        for graph in graphs:
            yield _with(model, number, [*graph.node, *_renamed(graph.output, node.output)], graph.initializer)
    elif node.op_type == "Loop" and node.input[2:]:
        (body,) = graphs
        counter, going, *states = [info.name for info in body.input]
        given = [
            numpy_helper.from_array(np.array(0, np.int64), counter),
            numpy_helper.from_array(np.array(True), going),
        ]
        entry = [helper.make_node("Identity", [a], [b]) for a, b in zip(node.input[2:], states, strict=False)]
        exits = _renamed(body.output[1 : 1 + len(states)], node.output)
        yield _with(model, number, [*entry, *body.node, *exits], [*body.initializer, *given])
    elif node.op_type == "Scan":
        yield _scan_step(model, number, node, graphs[0])
    shortened = _shortened(node, recorded)
    if shortened is not None:
        yield _with(model, number, [shortened], [])


def _scan_step(model: onnx.ModelProto, number: int, node: onnx.NodeProto, body: onnx.GraphProto) -> onnx.ModelProto:
    """The body on the first slices."""
    attributes = {attribute.name: attribute for attribute in node.attribute}
    count = attributes["num_scan_inputs"].i
    states = len(body.input) - count
    axes = list(attributes["scan_input_axes"].ints) if "scan_input_axes" in attributes else [0] * count
    first = numpy_helper.from_array(np.array(0, np.int64), f"{node.name}:first")
    pairs = list(zip(node.input, (info.name for info in body.input), strict=True))
    entry = [helper.make_node("Identity", [a], [b]) for a, b in pairs[:states]]
    slices = zip(pairs[states:], axes, strict=True)
    entry += [helper.make_node("Gather", [a, first.name], [b], axis=axis) for (a, b), axis in slices]
    exits = _renamed(body.output[:states], node.output) or _renamed(body.output, node.output)
    return _with(model, number, [*entry, *body.node, *exits], [*body.initializer, first])


def _shortened(node: onnx.NodeProto, recorded: Mapping[str, Array]) -> onnx.NodeProto | None:
    """An If whose branches return recorded values; None if they do already, or are not recorded."""
    if node.op_type != "If" or any(name not in recorded for name in node.output if name):
        return None
    if all(len(graph.node) <= len(graph.output) for graph in inner_graphs(node)):
        return None
    short = onnx.NodeProto()
    short.CopyFrom(node)
    for graph in inner_graphs(short):
        del graph.node[:]
        del graph.initializer[:]
        for info, name in zip(graph.output, node.output, strict=False):
            value = numpy_helper.from_array(recorded[name])
            graph.node.append(helper.make_node("Constant", [], [info.name], value=value))
    return short


def _renamed(outputs: Sequence[onnx.ValueInfoProto], names: Sequence[str]) -> list[onnx.NodeProto]:
    """The outputs of a graph under the names of its node's."""
    return [
        helper.make_node("Identity", [info.name], [name]) for info, name in zip(outputs, names, strict=False) if name
    ]


def _with(
    model: onnx.ModelProto, number: int, nodes: Sequence[onnx.NodeProto], tensors: Sequence[onnx.TensorProto]
) -> onnx.ModelProto:
    """A copy with other nodes in place of one."""
    kept = list(model.graph.node)
    return _rebuilt(model, [*kept[:number], *nodes, *kept[number + 1 :]], tensors)


def _rebuilt(
    model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto], tensors: Sequence[onnx.TensorProto]
) -> onnx.ModelProto:
    """A copy with other nodes, and more initialisers."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del changed.graph.node[:]
    changed.graph.node.extend(copies)
    changed.graph.initializer.extend(tensors)
    name_nodes(changed)
    return changed
