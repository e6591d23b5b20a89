"""Operators in a random graph that have a form of their own: layers, recurrences, quantisation, attention, and the
nodes of `random_nodes`."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from acceptance.random_graphs import Graph, Operand, Value
from random_nodes import Draw

GraphDraw = Callable[[Graph], object]
FLOAT, HALF = "float32", "float16"


def within(graph: Graph, domain: str, value: Value | None) -> Value | None:
    """The value, or what nodes make of it that lies in a domain."""
    if value is None or not domain or value.kind not in (FLOAT, HALF):
        return value
    names, number = DOMAINS[domain]
    for name in names.split():
        arguments = [np.asarray(number, value.array.dtype)] if name in ("Add", "Mul") else []
        found: list[Value] = graph.node(name, value, *arguments)
        if not found:
            return None
        value = found[0]
    return value


DOMAINS: Mapping[str, tuple[str, float]] = {
    "positive": ("Abs Add", 0.25),
    "unit": ("Tanh Mul", 0.75),
    "above one": ("Abs Add", 1.5),
    "small": ("Tanh Mul", 1.25),
}


def axis_of(graph: Graph, x: Value, extra: int = 0) -> int:
    rank = x.array.ndim + extra
    return graph.whole(-rank, rank - 1)


UNVARIED = frozenset({"MeanVarianceNormalization"})
"""onnxruntime subtracts squares, which gives NaN for equal numbers; so these are not made of repeated ones."""


# of the nodes of random_nodes, and other whole nodes ------------------------------------------------------------------
def whole(name: str, draw: Draw) -> GraphDraw:
    """A node with operands of its own, some of which are made of values that are there."""

    def drawn(graph: Graph) -> object:
        node = draw(graph.random)
        operands: list[Operand] = []
        for array in node.inputs:
            fits = name not in UNVARIED and array.size and graph.maybe(0.7)
            value = graph.fitted(array.shape) if fits and array.dtype == np.float32 else None
            operands.append(value or graph.fresh(array))
        if name == "ReduceLogSum":
            operands = [within(graph, "positive", operands[0] if isinstance(operands[0], Value) else None)]
        constants, attributes = list(node.constants), dict(node.attributes)
        if name.startswith("Reduce") and name != "ReduceSum" and graph.opset < 18:
            attributes.pop("noop_with_empty_axes", None)
            axes = constants.pop() if constants else None
            attributes |= {} if axes is None else {"axes": axes.tolist()}
        if name in ("AveragePool", "LpPool") and graph.opset < 19:
            attributes.pop("dilations", None)
            attributes.pop("ceil_mode", None) if name == "LpPool" else None
        return graph.node(name, *operands, *constants, results=node.outputs, **attributes)

    return drawn


def group_norm(graph: Graph) -> object:
    groups, each = graph.whole(1, 4), graph.whole(1, 4)
    size = [graph.whole(1, 2), groups * each, *(graph.choose(1, 3, 5, 7) for _ in range(graph.whole(1, 2)))]
    count = size[1] if graph.opset >= 21 else groups
    x = graph.fitted(size) or graph.fresh(graph.numbers(size))
    return graph.node(
        "GroupNormalization", x, graph.numbers([count]), graph.numbers([count]), num_groups=groups, epsilon=1e-2
    )


def rms_norm(graph: Graph) -> object:
    x = graph.take(FLOAT, least=1)
    axis = axis_of(graph, x)
    return graph.node("RMSNormalization", x, graph.numbers(x.shape[axis:]), axis=axis, epsilon=1e-2)


def recurrent(name: str, gates: int) -> GraphDraw:
    def draw(graph: Graph) -> object:
        steps, batch, size, hidden = (
            graph.choose(1, 2, 5),
            graph.choose(1, 2, 3),
            graph.choose(1, 3, 17),
            graph.choose(1, 3, 16),
        )
        way = graph.choose("forward", "reverse", "bidirectional")
        both = 2 if way == "bidirectional" else 1
        x = graph.fitted([steps, batch, size]) or graph.fresh(graph.numbers([steps, batch, size]))
        w, r = (
            graph.random.standard_normal([both, gates * hidden, n]).astype(np.float32) * 0.3 for n in (size, hidden)
        )
        bias = graph.random.standard_normal([both, 2 * gates * hidden]).astype(np.float32) * 0.3
        more: dict[str, Any] = {"linear_before_reset": graph.whole(0, 1)} if name == "GRU" else {}
        operands = [
            x,
            w.astype(np.float32),
            r.astype(np.float32),
            *([bias.astype(np.float32)] if graph.maybe() else []),
        ]
        return graph.node(
            name, *operands, results=3 if name == "LSTM" else 2, hidden_size=hidden, direction=way, **more
        )

    return draw


def resize(graph: Graph) -> object:
    size = [graph.whole(1, 2), graph.whole(1, 3), graph.choose(1, 3, 5, 7), graph.choose(1, 2, 4, 8)]
    x = graph.fitted(size) or graph.fresh(graph.numbers(size))
    mode = graph.choose("nearest", "linear", "linear", "cubic")
    form = {
        "coordinate_transformation_mode": graph.choose(
            "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"
        )
    }
    more = {"nearest_mode": graph.choose("floor", "ceil", "round_prefer_floor")} if mode == "nearest" else {}
    if graph.maybe():
        scales = np.array([1, 1, graph.choose(1, 2, 0.5), graph.choose(1, 2, 1.5)], np.float32)
        return graph.node("Resize", x, None, scales, mode=mode, **form, **more)
    goal = np.array([*size[:2], graph.choose(1, 3, 6, 11), graph.choose(1, 2, 5, 9)])
    return graph.node("Resize", x, None, None, goal, mode=mode, **form, **more)


def grid_sample(graph: Graph) -> object:
    size, goal = (
        [1, graph.whole(1, 3), graph.choose(2, 3, 5), graph.choose(2, 4, 7)],
        [graph.choose(1, 3), graph.choose(1, 5)],
    )
    x = graph.fitted(size) or graph.fresh(graph.numbers(size))
    grid = graph.fresh(graph.random.uniform(-1.1, 1.1, [1, *goal, 2]).astype(np.float32))
    mode = (
        graph.choose("bilinear", "nearest", "bicubic")
        if graph.opset < 20
        else graph.choose("linear", "nearest", "cubic")
    )
    padding = graph.choose("zeros", "border", "reflection")
    return graph.node("GridSample", x, grid, mode=mode, padding_mode=padding, align_corners=graph.whole(0, 1))


def quantize(graph: Graph) -> object:
    x = graph.take(FLOAT)
    kind = graph.choose("int8", "uint8")
    scale, zero = np.asarray(graph.choose(0.25, 0.1, 0.03), np.float32), np.asarray(graph.whole(0, 40)).astype(kind)
    found = graph.node("QuantizeLinear", x, scale, zero)
    return graph.node("DequantizeLinear", found[0], scale, zero) if found and graph.maybe() else found


def dequantize(graph: Graph) -> object:
    x = graph.take("int8", "uint8", least=1)
    zero = np.asarray(graph.whole(0, 40)).astype(x.array.dtype)
    if graph.maybe():
        axis = axis_of(graph, x)
        scale = graph.random.uniform(0.1, 1, x.shape[axis]).astype(np.float32)
        return graph.node("DequantizeLinear", x, scale, np.full(x.shape[axis], zero), axis=axis)
    return graph.node("DequantizeLinear", x, np.asarray(0.125, np.float32), zero)


def dynamic_quantize(graph: Graph) -> object:
    x = graph.take(FLOAT)
    return x.array.size and graph.node("DynamicQuantizeLinear", x, results=3)


def qlinear_matmul(graph: Graph) -> object:
    m, k, n = graph.choose(1, 5, 17), graph.choose(1, 16, 33), graph.choose(1, 3, 15)
    kind = graph.choose("int8", "uint8")
    a, b = (graph.random.integers(0, 100, size).astype(kind) for size in ([m, k], [k, n]))
    zero, one, two = np.asarray(3).astype(kind), np.asarray(0.0625, np.float32), np.asarray(8.0, np.float32)
    x = graph.fresh(a)
    return graph.node("QLinearMatMul", x, one, zero, graph.fresh(b), one, zero, two, zero)


def attention(graph: Graph) -> object:
    heads, m, n, width = graph.choose(1, 2, 3), graph.choose(1, 5, 17), graph.choose(1, 3, 16), graph.choose(1, 4, 8)
    q, k, v = (
        graph.fitted(s) or graph.fresh(graph.numbers(s)) for s in ([1, heads, m, width], *[[1, heads, n, width]] * 2)
    )
    return graph.node("Attention", q, k, v, is_causal=graph.whole(0, 1))


def rotary(graph: Graph) -> object:
    heads, length, width = graph.choose(1, 2, 3), graph.choose(1, 5, 7), graph.choose(2, 4, 8)
    size = [1, heads, length, width]
    x = graph.fitted(size) or graph.fresh(graph.numbers(size))
    angles = [graph.random.uniform(-1, 1, [1, length, width // 2]).astype(np.float32) for _ in range(2)]
    return graph.node("RotaryEmbedding", x, *angles, interleaved=graph.whole(0, 1))


# com.microsoft --------------------------------------------------------------------------------------------------------
def microsoft(name: str) -> GraphDraw:
    """Activations, fused products and skip normalisations."""

    def draw(graph: Graph) -> object:
        put = partial(graph.node, domain="com.microsoft")
        x = graph.take(FLOAT, least=2)
        last = x.shape[-1]
        if name in ("Gelu", "FastGelu", "QuickGelu"):
            return put(name, x)
        if name == "BiasGelu":
            return put(name, x, graph.fresh(graph.numbers([last])))
        if name == "FusedMatMul":
            b = graph.fresh(graph.numbers([graph.choose(1, 5, 17), last]))
            return put(name, x, b, transB=1, alpha=graph.choose(0.5, 2.0))
        size = [graph.whole(1, 2), graph.choose(1, 5), graph.choose(3, 16, 17)]
        x = graph.fitted(size) or graph.fresh(graph.numbers(size))
        skip = graph.fresh(graph.numbers(size))
        return put(
            name, x, skip, *(graph.numbers(size[2:]) for _ in range(1 if "Simplified" in name else 2)), epsilon=1e-2
        )

    return draw
