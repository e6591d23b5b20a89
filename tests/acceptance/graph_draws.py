"""What each operator may look like in a random graph, given the values that are there.

A draw adds the nodes that it needs to a graph; it may add none, where the values do not suit.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from acceptance.random_graphs import Graph, Operand, Value
from random_nodes import DRAWS as NODES
from random_nodes import Draw

GraphDraw = Callable[[Graph], object]
WHOLE = ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32")
FLOATS = ("float32",) * 6 + ("float16",)
ANY = ("float32",) * 6 + ("int32", "int64", "bool", "float16", "int8", "uint8")
FLOAT, HALF = "float32", "float16"


# one value after the other --------------------------------------------------------------------------------------------
def unary(name: str, domain: str, *kinds: str, **attributes: tuple[float, ...]) -> GraphDraw:
    """A function of each element. `domain` says which numbers it is defined for."""

    def draw(graph: Graph) -> object:
        value = within(graph, domain, graph.take(*(kinds or FLOATS)))
        chosen = {key: float(graph.choose(*values)) for key, values in attributes.items() if graph.maybe(0.7)}
        return value and graph.node(name, value, **chosen)

    return draw


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


def binary(name: str, *kinds: str, divides: bool = False) -> GraphDraw:
    """A function of two values that broadcast."""

    def draw(graph: Graph) -> object:
        a = graph.take(*kinds)
        b: Value | None = graph.partner(a)
        if divides and graph.maybe(0.9):
            b = within(graph, "positive", b) if a.kind in (FLOAT, HALF) else graph.fresh(
                np.maximum(graph.numbers(b.shape, a.kind), 1)
            )  # fmt: skip
        swap = graph.maybe() and not divides
        return b and graph.node(name, *((b, a) if swap else (a, b)))

    return draw


def power(graph: Graph) -> object:
    base = within(graph, graph.choose("positive", "small"), graph.take(*FLOATS))
    exponent = np.asarray(graph.choose(2.0, 3.0, 0.5, -1.0, 0.0, 1.0), np.float32)
    return base and graph.node("Pow", base, exponent.astype(base.array.dtype))


def modulo(graph: Graph) -> object:
    a = graph.take(FLOAT, *WHOLE)
    b = np.asarray(graph.choose(2, 3, 7, 1.5) if a.kind == FLOAT else graph.whole(1, 9)).astype(a.array.dtype)
    return graph.node("Mod", a, b, fmod=1 if a.kind == FLOAT or graph.maybe() else 0)


def variadic(name: str, *kinds: str) -> GraphDraw:
    def draw(graph: Graph) -> object:
        first = graph.take(*kinds)
        return graph.node(name, first, *(graph.partner(first) for _ in range(graph.whole(0, 2))))

    return draw


def where(graph: Graph) -> object:
    first = graph.take(*ANY)
    other = graph.partner(first)
    sizes = [graph.take("bool"), graph.fresh(graph.numbers(first.shape, "bool"))]
    return graph.node("Where", sizes[int(graph.maybe())], first, other)


def clip(graph: Graph) -> object:
    x = graph.take(*FLOATS, "int32", "int8", "uint8")
    low, high = sorted(graph.numbers([2], x.kind).tolist())
    bounds = [np.asarray(n).astype(x.array.dtype) if graph.maybe(0.8) else None for n in (low, high)]
    while bounds and bounds[-1] is None:
        bounds.pop()
    return graph.node("Clip", x, *bounds)


def prelu(graph: Graph) -> object:
    x = graph.take(FLOAT, least=1)
    slope = [1 if graph.maybe(0.3) else n for n in x.shape][graph.whole(0, x.array.ndim) :]
    return graph.node("PRelu", x, graph.numbers(slope))


def cast(graph: Graph) -> object:
    x = graph.take(*ANY)
    to = np.dtype(graph.choose("float32", "float32", "int32", "int64", "bool", "float16", "int8", "uint8"))
    code = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10}[to.name]
    if to.kind in "iu" and x.array.dtype.kind == "f":  # what does not fit has no defined result
        if not np.isfinite(x.array).all() or np.abs(x.array).max(initial=0) > 100 or (to.kind == "u" and (x.array < 0).any()):
            return None
    if graph.opset >= 15 and graph.maybe(0.3):
        return graph.node("CastLike", x, graph.fresh(np.zeros([2], to)))
    return graph.node("Cast", x, to=code)


def shift(graph: Graph) -> object:
    x = graph.take("uint8", "uint32", "uint16")
    amount = graph.random.integers(0, 8, x.shape).astype(x.array.dtype)
    return graph.node("BitShift", x, graph.fresh(amount), direction=graph.choose("LEFT", "RIGHT"))


# movement -------------------------------------------------------------------------------------------------------------
def axis_of(graph: Graph, x: Value, extra: int = 0) -> int:
    rank = x.array.ndim + extra
    return graph.whole(-rank, rank - 1)


def reshape(graph: Graph) -> object:
    x = graph.take(*ANY)
    size, left = list[int](), x.array.size
    for _ in range(graph.whole(0, 3)):
        part = graph.choose(*[n for n in range(1, left + 1) if left % n == 0]) if left else 1
        size.append(part)
        left //= part
    size.append(left)
    if x.array.size and graph.maybe(0.4):
        size[graph.whole(0, len(size) - 1)] = -1
    if x.shape and size[0] == x.shape[0] and graph.maybe(0.5) and size[0]:
        size[0] = 0
    return graph.node("Reshape", x, np.array(size, np.int64))


def transpose(graph: Graph) -> object:
    x = graph.take(*ANY, least=1)
    perm = graph.random.permutation(x.array.ndim).tolist() if graph.maybe(0.8) else None
    return graph.node("Transpose", x, perm=perm)


def slices(graph: Graph) -> object:
    x = graph.take(*ANY, least=1)
    axes = graph.random.permutation(x.array.ndim)[: graph.whole(1, x.array.ndim)]
    starts, ends, steps = list[int](), list[int](), list[int]()
    for axis in axes:
        n = x.shape[axis]
        a, b, step = graph.whole(-n - 1, n), graph.whole(-n - 2, n + 2), graph.choose(1, 1, 2, 3, -1, -2)
        if graph.maybe(0.7):  # not often empty
            a, b = (0, n + 5) if step > 0 else (n + 3, -n - 9)
            a = a + int(graph.maybe()) if step > 0 else a
        starts, ends, steps = [*starts, a], [*ends, b], [*steps, step]
    signed = np.array([int(a) - x.array.ndim if graph.maybe() else int(a) for a in axes])
    return graph.node("Slice", x, np.array(starts), np.array(ends), signed, np.array(steps))


def concat(graph: Graph) -> object:
    x = graph.take(*ANY, least=1)
    axis = axis_of(graph, x)
    parts: list[Operand] = [x]
    for _ in range(graph.whole(0, 2)):
        size = list(x.shape)
        size[axis] = graph.choose(0, 1, 2, 3, 17)
        parts.append(x if graph.maybe(0.3) else graph.fresh(graph.numbers(size, x.kind)))
    return graph.node("Concat", *graph.random.permutation(np.array([*parts, None], object)[:-1]), axis=axis)


def split(graph: Graph) -> object:
    x = graph.take(*ANY, least=1)
    axis = axis_of(graph, x)
    n, parts = x.shape[axis], graph.whole(1, 3)
    cuts = sorted(graph.whole(0, n) for _ in range(parts - 1))
    sizes = np.diff([0, *cuts, n])
    return graph.node("Split", x, sizes.astype(np.int64), results=parts, axis=axis)


def expand(graph: Graph) -> object:
    x = graph.take(*ANY)
    size = [graph.choose(1, 2, 3, 5) if n == 1 else graph.choose(1, n) for n in x.shape]
    if x.array.size < 200 and graph.maybe(0.4):
        size = [graph.whole(1, 3), *size]
    return graph.node("Expand", x, np.array(size, np.int64))


def tile(graph: Graph) -> object:
    x = graph.take(*ANY, least=1)
    return graph.node("Tile", x, np.array([graph.choose(1, 1, 2, 3, 0 if graph.maybe(0.1) else 1) for _ in x.shape], np.int64))


def pad(graph: Graph) -> object:
    x = graph.take(*FLOATS, "int32", "int64", least=1)
    mode = graph.choose("constant", "constant", "edge", "reflect", "wrap")
    low = -1 if mode == "constant" and graph.maybe(0.2) else 0
    most = [3 if mode == "constant" else max(0, min(3, n - 1)) for n in x.shape]
    pads = np.array([graph.whole(low, n) for n in [*most, *most]], np.int64)
    value = [graph.numbers([], x.kind)] if mode == "constant" and graph.maybe() else []
    return graph.node("Pad", x, pads, *value, mode=mode)


def flatten(graph: Graph) -> object:
    x = graph.take(*ANY)
    return graph.node("Flatten", x, axis=graph.whole(-x.array.ndim, x.array.ndim))


def squeeze(graph: Graph) -> object:
    x = graph.take(*ANY)
    ones = [axis - x.array.ndim if graph.maybe() else axis for axis, n in enumerate(x.shape) if n == 1]
    return graph.node("Squeeze", x, *([np.array(ones, np.int64)] if ones and graph.maybe() else []))


def unsqueeze(graph: Graph) -> object:
    x = graph.take(*ANY, most=3)
    axes = sorted(set(graph.random.integers(0, x.array.ndim + 1, graph.whole(1, 2)).tolist()))
    rank = x.array.ndim + len(axes)
    return graph.node("Unsqueeze", x, np.array([a - rank if graph.maybe() else a for a in axes], np.int64))


def indices(graph: Graph, count: int, shape: list[int]) -> Value | np.ndarray[Any, Any]:
    found = graph.random.integers(-count, count, shape).astype(graph.choose("int64", "int64", "int32"))
    return graph.fresh(found) if graph.maybe() else found


def gather(graph: Graph) -> object:
    x = graph.take(*ANY, least=1)
    axis = axis_of(graph, x)
    return x.shape[axis] and graph.node("Gather", x, indices(graph, x.shape[axis], graph.shape(0, 2)[:2]), axis=axis)


def gather_elements(graph: Graph) -> object:
    x = graph.take(*ANY, least=1)
    axis = axis_of(graph, x)
    size = [graph.whole(1, n) if n else 0 for n in x.shape]
    return x.shape[axis] and graph.node("GatherElements", x, indices(graph, x.shape[axis], size), axis=axis)


def gather_nd(graph: Graph) -> object:
    x = graph.take(*FLOATS, "int32", "int64", least=1)
    depth = graph.whole(1, x.array.ndim)
    if 0 in x.shape:
        return None
    parts = [graph.random.integers(-n, n, [graph.choose(1, 3, 5)] * 2) for n in x.shape[:depth]]
    shape = np.broadcast_shapes(*(p.shape[:1] for p in parts)) if len({p.shape for p in parts}) == 1 else None
    rows = np.stack([p if shape else graph.random.integers(-n, n, [3, 3]) for p, n in zip(parts, x.shape, strict=False)], -1)
    return graph.node("GatherND", x, graph.fresh(rows) if graph.maybe() else rows)


def scatter_elements(graph: Graph) -> object:
    x = graph.take(FLOAT, "int32", least=1)
    axis = axis_of(graph, x)
    if 0 in x.shape:
        return None
    size = [graph.whole(1, n) for n in x.shape]
    places = np.argsort(graph.random.random(x.shape), axis=axis)[tuple(slice(0, n) for n in size)]  # none twice
    mode = {"reduction": graph.choose("add", "mul", "max", "min")} if graph.opset >= 18 and graph.maybe() else {}
    return graph.node("ScatterElements", x, np.asarray(places), graph.fresh(graph.numbers(size, x.kind)), axis=axis, **mode)


def scatter_nd(graph: Graph) -> object:
    x = graph.take(FLOAT, "int32", least=1)
    if 0 in x.shape:
        return None
    rows = graph.random.permutation(x.shape[0])[: graph.whole(1, x.shape[0])].reshape(-1, 1)
    updates = graph.fresh(graph.numbers([len(rows), *x.shape[1:]], x.kind))
    return graph.node("ScatterND", x, rows, updates)


def depth_space(name: str) -> GraphDraw:
    def draw(graph: Graph) -> object:
        block, c, h, w = graph.choose(1, 2, 3), graph.whole(1, 3), graph.choose(1, 3, 5), graph.choose(1, 2, 7)
        size = [1, c * block * block, h, w] if name == "DepthToSpace" else [1, c, h * block, w * block]
        mode = {"mode": graph.choose("DCR", "CRD")} if name == "DepthToSpace" else {}
        return graph.node(name, graph.fitted(size) or graph.fresh(graph.numbers(size)), blocksize=block, **mode)

    return draw


def trilu(graph: Graph) -> object:
    x = graph.take(FLOAT, "int64", least=2)
    return graph.node("Trilu", x, np.asarray(graph.whole(-3, 3)), upper=graph.whole(0, 1))


def reverse_sequence(graph: Graph) -> object:
    x = graph.take(FLOAT, least=2)
    time = graph.whole(0, 1)
    lengths = graph.random.integers(1, max(2, x.shape[time] + 1), x.shape[1 - time])
    return 0 not in x.shape and graph.node("ReverseSequence", x, lengths, time_axis=time, batch_axis=1 - time)


def one_hot(graph: Graph) -> object:
    x = graph.fresh(graph.random.integers(-3, 4, graph.shape(0, 2)))
    return graph.node("OneHot", x, np.asarray(graph.choose(3, 5, 17)), graph.numbers([2]), axis=axis_of(graph, x, 1))


def eye_like(graph: Graph) -> object:
    return graph.node("EyeLike", graph.take(FLOAT, "int32", least=2, most=2), k=graph.whole(-2, 2))


def cumulative(graph: Graph) -> object:
    x = graph.take(FLOAT, "int32", least=1)
    flags = {name: graph.whole(0, 1) for name in ("exclusive", "reverse")}
    return graph.node("CumSum", x, np.asarray(axis_of(graph, x)), **flags)


def compress(graph: Graph) -> object:
    x = graph.take(*FLOATS, "int32", least=1)
    axis = axis_of(graph, x)
    return graph.node("Compress", x, graph.random.integers(0, 2, x.shape[axis]).astype(bool), axis=axis)


def arg(name: str) -> GraphDraw:
    def draw(graph: Graph) -> object:
        x = graph.take(FLOAT, "int32", "int8", least=1)
        flags = {"keepdims": graph.whole(0, 1), "select_last_index": graph.whole(0, 1)}
        return graph.node(name, x, axis=axis_of(graph, x), **flags)

    return draw


def top_k(graph: Graph) -> object:
    x = graph.take(FLOAT, least=1)
    axis = axis_of(graph, x)
    k = np.array([graph.whole(0, x.shape[axis])])
    return graph.node("TopK", x, k, results=2, axis=axis, largest=graph.whole(0, 1))


def crop(graph: Graph) -> object:
    x = graph.take(FLOAT, least=1)
    return graph.node("CenterCropPad", x, np.array([graph.choose(1, 3, n + 2, n) for n in x.shape]))


def dropout(graph: Graph) -> object:
    return graph.node("Dropout", graph.take(*FLOATS), results=graph.whole(1, 2))


# of the nodes of random_nodes, and other whole nodes ------------------------------------------------------------------
def whole(name: str, draw: Draw) -> GraphDraw:
    """A node with operands of its own, some of which are made of values that are there."""

    def drawn(graph: Graph) -> object:
        node = draw(graph.random)
        operands: list[Operand] = []
        for array in node.inputs:
            value = graph.fitted(array.shape) if array.dtype == np.float32 and array.size and graph.maybe(0.7) else None
            operands.append(value or graph.fresh(array))
        if name == "ReduceLogSum":
            operands = [within(graph, "positive", operands[0] if isinstance(operands[0], Value) else None)]
        constants, attributes = list(node.constants), dict(node.attributes)
        if name.startswith("Reduce") and name != "ReduceSum" and graph.opset < 18:
            attributes.pop("noop_with_empty_axes", None)
            attributes |= {"axes": constants.pop().tolist()} if constants and constants[0] is not None else {}
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
    return graph.node("GroupNormalization", x, graph.numbers([count]), graph.numbers([count]), num_groups=groups, epsilon=1e-2)


def rms_norm(graph: Graph) -> object:
    x = graph.take(FLOAT, least=1)
    axis = axis_of(graph, x)
    return graph.node("RMSNormalization", x, graph.numbers(x.shape[axis:]), axis=axis, epsilon=1e-2)


def recurrent(name: str, gates: int) -> GraphDraw:
    def draw(graph: Graph) -> object:
        steps, batch, size, hidden = graph.choose(1, 2, 5), graph.choose(1, 2, 3), graph.choose(1, 3, 17), graph.choose(1, 3, 16)
        way = graph.choose("forward", "reverse", "bidirectional")
        both = 2 if way == "bidirectional" else 1
        x = graph.fitted([steps, batch, size]) or graph.fresh(graph.numbers([steps, batch, size]))
        w, r = (graph.random.standard_normal([both, gates * hidden, n]).astype(np.float32) * 0.3 for n in (size, hidden))
        bias = graph.random.standard_normal([both, 2 * gates * hidden]).astype(np.float32) * 0.3
        more = {"linear_before_reset": graph.whole(0, 1)} if name == "GRU" else {}
        operands = [x, w.astype(np.float32), r.astype(np.float32), *([bias.astype(np.float32)] if graph.maybe() else [])]
        return graph.node(name, *operands, results=3 if name == "LSTM" else 2, hidden_size=hidden, direction=way, **more)

    return draw


def resize(graph: Graph) -> object:
    size = [graph.whole(1, 2), graph.whole(1, 3), graph.choose(1, 3, 5, 7), graph.choose(1, 2, 4, 8)]
    x = graph.fitted(size) or graph.fresh(graph.numbers(size))
    mode = graph.choose("nearest", "linear", "linear", "cubic")
    form = {"coordinate_transformation_mode": graph.choose("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")}
    more = {"nearest_mode": graph.choose("floor", "ceil", "round_prefer_floor")} if mode == "nearest" else {}
    if graph.maybe():
        scales = np.array([1, 1, graph.choose(1, 2, 0.5), graph.choose(1, 2, 1.5)], np.float32)
        return graph.node("Resize", x, None, scales, mode=mode, **form, **more)
    goal = np.array([*size[:2], graph.choose(1, 3, 6, 11), graph.choose(1, 2, 5, 9)])
    return graph.node("Resize", x, None, None, goal, mode=mode, **form, **more)


def grid_sample(graph: Graph) -> object:
    size, goal = [1, graph.whole(1, 3), graph.choose(2, 3, 5), graph.choose(2, 4, 7)], [graph.choose(1, 3), graph.choose(1, 5)]
    x = graph.fitted(size) or graph.fresh(graph.numbers(size))
    grid = graph.fresh(graph.random.uniform(-1.1, 1.1, [1, *goal, 2]).astype(np.float32))
    mode = graph.choose("bilinear", "nearest", "bicubic") if graph.opset < 20 else graph.choose("linear", "nearest", "cubic")
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
    q, k, v = (graph.fitted(s) or graph.fresh(graph.numbers(s)) for s in ([1, heads, m, width], *[[1, heads, n, width]] * 2))
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
        return put(name, x, skip, *(graph.numbers(size[2:]) for _ in range(1 if "Simplified" in name else 2)), epsilon=1e-2)

    return draw


LOGIC = {name: binary(name, "bool") for name in ("And", "Or", "Xor")}
COMPARE = {
    name: binary(name, *FLOATS, "int32", "int64", *(("bool",) if name == "Equal" else ()))
    for name in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
}
FUNCTIONS: Mapping[str, tuple[str, dict[str, tuple[float, ...]]]] = {
    **dict.fromkeys("Ceil Cos Erf Floor HardSwish Identity Mish Neg Relu Round Sigmoid Sin".split(), ("", {})),
    **dict.fromkeys("Softplus Softsign Tanh Atan Asinh IsNaN IsInf Abs Sign Gelu".split(), ("", {})),
    **dict.fromkeys("Exp Sinh Cosh Tan".split(), ("small", {})),
    **dict.fromkeys("Log Sqrt Reciprocal".split(), ("positive", {})),
    **dict.fromkeys("Acos Asin Atanh".split(), ("unit", {})),
    "Acosh": ("above one", {}),
    "Celu": ("", {"alpha": (0.5, 2.0)}),
    "Elu": ("", {"alpha": (0.5, 2.0)}),
    "Swish": ("", {"alpha": (0.5, 2.0)}),
    "HardSigmoid": ("", {"alpha": (0.1, 0.5), "beta": (0.25, 0.75)}),
    "LeakyRelu": ("", {"alpha": (0.5, 0.1, -1.0)}),
    "Selu": ("", {"alpha": (0.5, 2.0), "gamma": (1.0, 2.0)}),
    "Shrink": ("", {"lambd": (0.25, 1.0), "bias": (0.5, 0.0)}),
    "ThresholdedRelu": ("", {"alpha": (0.5, 1.0)}),
}
DRAWS: Mapping[str, GraphDraw] = {
    **{name: unary(name, domain, **attributes) for name, (domain, attributes) in FUNCTIONS.items()},
    **{name: binary(name, *FLOATS, "int32", "int64", "int8", "uint8") for name in ("Add", "Sub", "Mul")},
    "Div": binary("Div", *FLOATS, "int32", "int64", divides=True),
    **LOGIC, **COMPARE,
    **{name: binary(name, "int32", "uint8", "int8", "int64") for name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    "BitwiseNot": unary("BitwiseNot", "", "int32", "uint8", "int64"),
    "Not": unary("Not", "", "bool"),
    "Neg": unary("Neg", "", *FLOATS, "int32", "int8", "int64"),
    "Abs": unary("Abs", "", *FLOATS, "int32", "int8", "int64"),
    **{name: variadic(name, *FLOATS, "int32", "int64") for name in ("Max", "Min")},
    **{name: variadic(name, *FLOATS) for name in ("Sum", "Mean")},
    "Pow": power, "Mod": modulo, "Where": where, "Clip": clip, "PRelu": prelu, "Cast": cast, "BitShift": shift,
    "Reshape": reshape, "Transpose": transpose, "Slice": slices, "Concat": concat, "Split": split, "Expand": expand,
    "Tile": tile, "Pad": pad, "Flatten": flatten, "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Gather": gather,
    "GatherElements": gather_elements, "GatherND": gather_nd, "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd, "DepthToSpace": depth_space("DepthToSpace"), "SpaceToDepth": depth_space("SpaceToDepth"),
    "Trilu": trilu, "ReverseSequence": reverse_sequence, "OneHot": one_hot, "EyeLike": eye_like, "CumSum": cumulative,
    "Compress": compress, "ArgMax": arg("ArgMax"), "ArgMin": arg("ArgMin"), "TopK": top_k, "CenterCropPad": crop,
    "Dropout": dropout, "GroupNormalization": group_norm, "RMSNormalization": rms_norm, "RNN": recurrent("RNN", 1),
    "GRU": recurrent("GRU", 3), "LSTM": recurrent("LSTM", 4), "Resize": resize, "GridSample": grid_sample,
    "QuantizeLinear": quantize, "DequantizeLinear": dequantize, "DynamicQuantizeLinear": dynamic_quantize,
    "QLinearMatMul": qlinear_matmul, "Attention": attention, "RotaryEmbedding": rotary,
    **{name: whole(name, draw) for name, draw in NODES.items()},
    **{
        f"com.microsoft.{name}": microsoft(name)
        for name in ("Gelu", "FastGelu", "QuickGelu", "BiasGelu", "FusedMatMul", "SkipLayerNormalization",
                     "SkipSimplifiedLayerNormalization")
    },
}  # fmt: skip
