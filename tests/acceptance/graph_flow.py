"""Branches and loops in a random graph; what stands in them is drawn like everything else, and may take values around
them."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from acceptance.graph_layers import FLOAT, GraphDraw
from acceptance.random_graphs import Array, Graph, Value
from onnx import helper, numpy_helper

MOST_INSIDE = 3
"""Operators of a branch or a body."""
ODD_INSIDE = frozenset({"If", "Loop", "Compress"})


def inside(graph: Graph) -> Graph:
    """A graph in the graph: it sees what is around it."""
    place = f"{graph.prefix}g{len(graph.nodes)}_{graph.parts}_"
    graph.parts += 1
    return Graph(graph.opset, graph.random, list(graph.values), prefix=place)


def closed(inner: Graph, name: str, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[Value]) -> onnx.GraphProto:
    """Its text; what would be inputs are constants."""
    infos = [
        helper.make_tensor_value_info(v.name, helper.np_dtype_to_tensor_dtype(v.array.dtype), None) for v in outputs
    ]
    own = {info.name for info in inputs}
    known = {**inner.inputs, **inner.constants}
    tensors = [numpy_helper.from_array(np.asarray(a), key) for key, a in known.items() if key not in own]
    return helper.make_graph(inner.nodes, name, list(inputs), infos, tensors)


def around(graph: Graph, *inner: Graph) -> dict[str, Value]:
    """The values around them that they use."""
    used = {name for each in inner for name in each.names_used()}
    return {value.name: value for value in graph.values if value.name in used}


def condition(graph: Graph) -> Value | None:
    """A truth value of some numbers."""
    x = graph.take(FLOAT)
    if not x.array.size or not np.isfinite(x.array).all():
        return None
    (most,) = graph.node("ReduceMax", x, keepdims=0) or [None]
    (found,) = (most and graph.node("Greater", most, graph.numbers([]))) or [None]
    return found


def branches(draws: Mapping[str, GraphDraw]) -> GraphDraw:
    names = sorted(draws.keys() - ODD_INSIDE)

    def draw(graph: Graph) -> object:
        decides = condition(graph)
        if decides is None:
            return None
        one, other = inside(graph), inside(graph)
        for _ in range(graph.whole(1, MOST_INSIDE)):
            draws[graph.choose(*names)](one)
        made = [value for value in one.values if value.name in one.made and value.array.size]
        if not made:
            return None
        result = graph.choose(*made)
        same = other.fitted(result.shape, result.kind) or other.fresh(graph.numbers(result.shape, result.kind))
        if graph.maybe():
            same = (other.node("Neg" if same.kind in (FLOAT, "int32") else "Identity", same) or [same])[0]
        texts = closed(one, "then", [], [result]), closed(other, "else", [], [same])
        given = {decides.name: decides, **around(graph, one, other), **_outer(graph, same)}
        return graph.add("If", [decides.name], 1, given, {}, then_branch=texts[0], else_branch=texts[1])

    return draw


def _outer(graph: Graph, value: Value) -> dict[str, Value]:
    return {value.name: value} if value in graph.values else {}


def loops(draws: Mapping[str, GraphDraw]) -> GraphDraw:
    """One state that keeps its shape, and rows that each step gives."""
    names = [name for name in ("Add", "Mul", "Max", "Tanh", "Sigmoid", "Relu", "Neg", "Sub", "Min") if name in draws]

    def draw(graph: Graph) -> object:
        first = graph.take(FLOAT, most=3)
        count = graph.fresh(np.asarray(graph.whole(1, 5)))
        inner = inside(graph)
        arguments = {"i": np.asarray(0), "c": np.asarray(True), "s": first.array}
        infos = [_info(f"{inner.prefix}{key}", array) for key, array in arguments.items()]
        inner.inputs |= {f"{inner.prefix}{key}": array for key, array in arguments.items()}
        inner.values.append(Value(f"{inner.prefix}s", first.array, first.error))
        for _ in range(graph.whole(1, MOST_INSIDE)):
            draws[graph.choose(*names)](inner)
        (going,) = inner.node("Identity", Value(f"{inner.prefix}c", arguments["c"]))
        made = [v for v in inner.values if v.name in inner.made and v.shape == first.shape and v.kind == FLOAT]
        if not made:
            return None
        state, rows = graph.choose(*made), made[-1:] if count.name in graph.constants else []
        body = closed(inner, "body", infos, [going, state, *rows])
        given = {count.name: count, first.name: first, **around(graph, inner)}
        return graph.add("Loop", [count.name, "", first.name], 1 + len(rows), given, {}, body=body)

    return draw


def _info(name: str, array: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
