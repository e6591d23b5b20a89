"""What is inside of a node's graph, in place of the node: a branch of an If, one step of a Loop or a Scan.

Also the node as it is, with graphs that only return what is recorded.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .cut import graphs_of, name_nodes
from .model_file import Array


def hoisted(model: onnx.ModelProto, node: onnx.NodeProto, recorded: Mapping[str, Array]) -> Iterator[onnx.ModelProto]:
    """Models in which less stands in place of a node of the main graph that holds graphs."""
    number = [other.name for other in model.graph.node].index(node.name)
    graphs = graphs_of(node)
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
    if all(len(graph.node) <= len(graph.output) for graph in graphs_of(node)):
        return None
    short = onnx.NodeProto()
    short.CopyFrom(node)
    for graph in graphs_of(short):
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
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    kept = list(model.graph.node)
    del changed.graph.node[:]
    changed.graph.node.extend([*kept[:number], *nodes, *kept[number + 1 :]])
    changed.graph.initializer.extend(tensors)
    name_nodes(changed)
    return changed
