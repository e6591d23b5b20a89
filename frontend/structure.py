"""What must hold of a file before its nodes are looked at: versions, names, and an order of the nodes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import onnx
from onnx import TensorProto
from onnx.defs import onnx_opset_version

from ..dialects.graph.host_model import inner_graphs
from ..runtime.problem import Kind, Problem
from .extensions import MICROSOFT
from .node import AI_ONNX

AGAIN = "mend the model or export it again"
MOST_NAMED = 4
"""Nodes of a cycle that a message names."""


def file_problems(model: onnx.ModelProto) -> list[Problem]:
    """Versions that are not known, and names that stand for several values."""
    return [Problem(line, Kind.FILE) for line in (*_versions(model), *_tensors(model.graph), *_names(model.graph))]


def _versions(model: onnx.ModelProto) -> Iterator[str]:
    """A later version may mean something else by the same words."""
    known = onnx_opset_version()
    if model.ir_version > onnx.IR_VERSION:
        rule = f"the model: the version of its format is at most {onnx.IR_VERSION}"
        yield f"{rule} (found {model.ir_version}); export it with an older onnx"
    for entry in model.opset_import:
        most = 1 if entry.domain == MICROSOFT else known if entry.domain in ("", AI_ONNX) else entry.version
        if not 1 <= entry.version <= most:
            name = "its opset" if most == known else f"its opset of {entry.domain}"
            yield f"the model: {name} is 1 to {most} (found {entry.version}); export it with one of these"


def _tensors(graph: onnx.GraphProto) -> Iterator[str]:
    """Constants of no known type, or with a negative extent."""
    kinds = set(TensorProto.DataType.values()) - {TensorProto.UNDEFINED}
    for tensor in graph.initializer:
        if tensor.data_type not in kinds:
            yield f"{tensor.name}: a constant has a type that ONNX knows (found number {tensor.data_type}); {AGAIN}"
        if any(size < 0 for size in tensor.dims):
            yield f"{tensor.name}: a constant has extents of 0 or more (found {list(tensor.dims)}); {AGAIN}"


def _names(graph: onnx.GraphProto) -> Iterator[str]:
    """A name stands for one constant, or for what one node makes, or for an input."""
    constants = Counter(tensor.name for tensor in graph.initializer)
    for name, count in constants.items():
        if count > 1:
            yield f"{name}: a constant has a name of its own (found {count} of this name); rename them"
    given = constants.keys() | {info.name for info in graph.input}
    for node in graph.node:
        for name in node.output:
            if name and name in given:
                what = "a constant" if name in constants else "an input"
                rule = f"{node.name or node.op_type}: what a node makes has a name of its own"
                yield f"{rule} (found that of {what}, {name}); rename it"


def in_order(nodes: Sequence[onnx.NodeProto]) -> tuple[Sequence[onnx.NodeProto], list[Problem]]:
    """The nodes, each behind those that make its inputs, else as they stand; and what is wrong if some form a cycle."""
    makers = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    needs = [{makers[name] for name in reads(node) if name in makers} for node in nodes]
    if all(all(j < i for j in wanted) for i, wanted in enumerate(needs)):
        return nodes, []
    order, placed = list[int](), set[int]()
    for start in range(len(nodes)):
        stack, open_ = [start], set[int]()
        while stack:
            i = stack[-1]
            missing = sorted(needs[i] - placed, reverse=True)
            if i in placed or not missing:
                stack.pop()
                open_.discard(i)
                if i not in placed:
                    placed.add(i)
                    order.append(i)
            elif i in open_ and any(j in open_ for j in missing):
                return nodes, [_cycle(nodes, stack, open_)]
            else:
                open_.add(i)
                stack += missing
    return [nodes[i] for i in order], []


def sorted_inside(node: onnx.NodeProto) -> onnx.NodeProto:
    """The node with the nodes of its graphs in order; the same one if they are. Cycles stay as they stand."""
    if not any(_is_unsorted(graph) for graph in inner_graphs(node)):
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for graph in inner_graphs(copy):
        ordered = [sorted_inside(inner) for inner in in_order(list(graph.node))[0]]
        made = onnx.GraphProto(node=ordered)
        graph.ClearField("node")
        graph.node.extend(made.node)
    return copy


def _is_unsorted(graph: onnx.GraphProto) -> bool:
    """Whether some node of the graph, or of one inside it, stands before a maker of its inputs."""
    made, later = set[str](), {name for node in graph.node for name in node.output if name}
    for node in graph.node:
        if any(name in later and name not in made for name in reads(node)):
            return True
        made.update(node.output)
    return any(_is_unsorted(inner) for node in graph.node for inner in inner_graphs(node))


def _cycle(nodes: Sequence[onnx.NodeProto], stack: Sequence[int], open_: set[int]) -> Problem:
    names = [nodes[i].name or nodes[i].op_type for i in dict.fromkeys(stack) if i in open_]
    found = ", ".join(names[-MOST_NAMED:])
    line = f"{names[-1]}: no node needs its own result (found a cycle through {found}); {AGAIN}"
    return Problem(line, Kind.FILE, names[-1])


def reads(node: onnx.NodeProto) -> Iterator[str]:
    """Names that a node, or a graph in it, takes from around it."""
    yield from filter(None, node.input)
    for graph in inner_graphs(node):
        yield from _outer(graph)


def _outer(graph: onnx.GraphProto) -> Iterable[str]:
    own = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {name for node in graph.node for name in node.output}
    wanted = [name for node in graph.node for name in reads(node)] + [info.name for info in graph.output]
    return [name for name in wanted if name not in own]
