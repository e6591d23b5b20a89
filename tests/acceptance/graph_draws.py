"""What each operator may look like in a random graph, given the values that are there.

A draw adds the nodes that it needs to a graph; it may add none, where the values do not suit.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from acceptance.graph_flow import branches, loops
from acceptance.graph_layers import (
    FLOAT,
    HALF,
    GraphDraw,
    attention,
    axis_of,
    dequantize,
    dynamic_quantize,
    grid_sample,
    group_norm,
    microsoft,
    qlinear_matmul,
    quantize,
    recurrent,
    resize,
    rms_norm,
    rotary,
    whole,
    within,
)
from acceptance.random_graphs import Graph, Operand, Value
from random_nodes import DRAWS as NODES

WHOLE = ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32")
FLOATS = ("float32",) * 6 + ("float16",)
ANY = ("float32",) * 6 + ("int32", "int64", "bool", "float16", "int8", "uint8")


# one value after the other --------------------------------------------------------------------------------------------
def unary(name: str, domain: str, *kinds: str, **attributes: tuple[float, ...]) -> GraphDraw:
    """A function of each element. `domain` says which numbers it is defined for."""

    def draw(graph: Graph) -> object:
        value = within(graph, domain, graph.take(*(kinds or FLOATS)))
        chosen: dict[str, Any] = {
            key: float(graph.choose(*values)) for key, values in attributes.items() if graph.maybe(0.7)
        }
        return value and graph.node(name, value, **chosen)

    return draw


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


def _within_bytes(array: np.ndarray[Any, Any], positive: bool) -> bool:
    return bool((np.abs(array) <= 100).all() and not (positive and (array < 0).any()))


def cast(graph: Graph) -> object:
    x = graph.take(*ANY)
    to = np.dtype(graph.choose("float32", "float32", "int32", "int64", "bool", "float16", "int8", "uint8"))
    code = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10}[to.name]
    if to.kind in "iu" and x.array.dtype.kind == "f" and not _within_bytes(x.array, to.kind == "u"):
        return None  # what does not fit has no defined result
    if graph.opset >= 15 and graph.maybe(0.3):
        return graph.node("CastLike", x, graph.fresh(np.zeros([2], to)))
    return graph.node("Cast", x, to=code)


def shift(graph: Graph) -> object:
    x = graph.take("uint8", "uint32", "uint16")
    amount = graph.random.integers(0, 8, x.shape).astype(x.array.dtype)
    return graph.node("BitShift", x, graph.fresh(amount), direction=graph.choose("LEFT", "RIGHT"))


# movement -------------------------------------------------------------------------------------------------------------
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
    return graph.node(
        "Tile", x, np.array([graph.choose(1, 1, 2, 3, 0 if graph.maybe(0.1) else 1) for _ in x.shape], np.int64)
    )


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
    rows = np.stack(
        [p if shape else graph.random.integers(-n, n, [3, 3]) for p, n in zip(parts, x.shape, strict=False)], -1
    )
    return graph.node("GatherND", x, graph.fresh(rows) if graph.maybe() else rows)


def scatter_elements(graph: Graph) -> object:
    x = graph.take(FLOAT, "int32", least=1)
    axis = axis_of(graph, x)
    if 0 in x.shape:
        return None
    size = [graph.whole(1, n) for n in x.shape]
    places = np.argsort(graph.random.random(x.shape), axis=axis)[tuple(slice(0, n) for n in size)]  # none twice
    mode = {"reduction": graph.choose("add", "mul", "max", "min")} if graph.opset >= 18 and graph.maybe() else {}
    return graph.node(
        "ScatterElements", x, np.asarray(places), graph.fresh(graph.numbers(size, x.kind)), axis=axis, **mode
    )


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
    flags: dict[str, Any] = {name: graph.whole(0, 1) for name in ("exclusive", "reverse")}
    return graph.node("CumSum", x, np.asarray(axis_of(graph, x)), **flags)


def compress(graph: Graph) -> object:
    x = graph.take(*FLOATS, "int32", least=1)
    axis = axis_of(graph, x)
    return graph.node("Compress", x, graph.random.integers(0, 2, x.shape[axis]).astype(bool), axis=axis)


def arg(name: str) -> GraphDraw:
    def draw(graph: Graph) -> object:
        x = graph.take(FLOAT, "int32", "int8", least=1)
        flags: dict[str, Any] = {"keepdims": graph.whole(0, 1), "select_last_index": graph.whole(0, 1)}
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


LOGIC = {name: binary(name, "bool") for name in ("And", "Or", "Xor")}
COMPARE = {
    name: binary(name, *FLOATS, "int32", "int64", *(("bool",) if name == "Equal" else ()))
    for name in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
}
FUNCTIONS: Mapping[str, tuple[str, dict[str, tuple[float, ...]]]] = {
    **dict.fromkeys(("Ceil", "Cos", "Erf", "Floor", "HardSwish", "Identity", "Mish", "Neg", "Relu", "Round"), ("", {})),
    **dict.fromkeys(("Sigmoid", "Sin", "Softplus", "Softsign", "Tanh", "Atan", "Asinh", "IsNaN", "IsInf"), ("", {})),
    **dict.fromkeys(("Abs", "Sign", "Gelu"), ("", {})),
    **dict.fromkeys(["Exp", "Sinh", "Cosh", "Tan"], ("small", {})),
    **dict.fromkeys(["Log", "Sqrt", "Reciprocal"], ("positive", {})),
    **dict.fromkeys(["Acos", "Asin", "Atanh"], ("unit", {})),
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
PLAIN: Mapping[str, GraphDraw] = {
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
DRAWS: Mapping[str, GraphDraw] = {**PLAIN, "If": branches(PLAIN), "Loop": loops(PLAIN)}
