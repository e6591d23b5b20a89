"""Single nodes with random attributes and inputs: contractions, windows, normalisations and reductions.

`frontend/random_nodes_test.py` tries each by itself, `acceptance/random_graphs.py` makes graphs of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Random = np.random.Generator


@dataclass(frozen=True)
class Drawn:
    """A node: its runtime inputs, attributes, constants behind them, and results."""

    inputs: Sequence[Array]
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    constants: Sequence[Array | None] = ()
    opset: int = 18
    outputs: int = 1


Draw = Callable[[Random], Drawn]


def normal(random: Random, *size: int) -> Array:
    return random.standard_normal(size).astype(np.float32)


def sizes(random: Random, rank: int, low: int = 1, high: int = 6) -> list[int]:
    return random.integers(low, high, rank).tolist()


def maybe(random: Random, share: float = 0.5) -> bool:
    return bool(random.random() < share)


# contractions ---------------------------------------------------------------------------------------------------------
def operands(random: Random) -> tuple[list[int], list[int]]:
    """Shapes that a product takes: vectors too, batch axes that broadcast."""
    (m, k, n), batch = sizes(random, 3), sizes(random, int(random.integers(0, 3)), 2, 4)
    left, right = (batch[int(random.integers(0, len(batch) + 1)) :] for _ in range(2))
    a, b = ([1 if maybe(random, 0.3) else size for size in axes] for axes in (left, right))
    left = [k] if maybe(random, 0.2) else [*a, m, k]
    return left, [k] if maybe(random, 0.2) else [*b, k, n]


def matmul(random: Random) -> Drawn:
    a, b = operands(random)
    if maybe(random, 0.2):
        return Drawn([random.integers(-(2**31), 2**31, size).astype(np.int32) for size in (a, b)])
    return Drawn([normal(random, *a), normal(random, *b)])


def matmul_integer(random: Random) -> Drawn:
    a, b = operands(random)
    kinds = [np.uint8 if maybe(random) else np.int8 for _ in "ab"]
    if kinds[1] == np.int8 and maybe(random):
        kinds[0] = np.uint8
    given = [bytes_of(random, kind, size) for kind, size in zip(kinds, (a, b), strict=True)]
    zeros = [bytes_of(random, kinds[0], []), bytes_of(random, kinds[1], b[-1:] if len(b) > 1 and maybe(random) else [])]
    form = int(random.integers(4))
    if form == 0:
        return Drawn(given)
    if form == 1:
        return Drawn(given, {}, [zeros[0]])
    return Drawn([*given, *zeros]) if form == 2 else Drawn(given, {}, zeros)


def bytes_of(random: Random, kind: Any, size: Sequence[int]) -> Array:
    limits = np.iinfo(kind)
    return np.asarray(random.integers(limits.min, limits.max + 1, size)).astype(kind)


def gemm(random: Random) -> Drawn:
    m, k, n = sizes(random, 3)
    flags = {name: int(maybe(random)) for name in ("transA", "transB")}
    a = normal(random, *((k, m) if flags["transA"] else (m, k)))
    b = normal(random, *((n, k) if flags["transB"] else (k, n)))
    shapes = [(m, n), (n,), (1, n), (m, 1), (1, 1), (1,), ()]
    c = [normal(random, *shapes[int(random.integers(len(shapes)))])] if maybe(random, 0.8) else []
    numbers = {name: float(random.choice([1.0, 0.5, -2.0, 0.0])) for name in ("alpha", "beta")}
    return Drawn([a, b, *c], flags | numbers)


EQUATIONS = {
    "ij,jk->ik": ["ij", "jk"],
    "bij,bjk->bik": ["bij", "bjk"],
    "bhqd,bhkd->bhqk": ["bhqd", "bhkd"],
    "bhwc,hkc->bhwk": ["bhwc", "hkc"],
    "ij,kl->lijk": ["ij", "kl"],
    "i,i": ["i", "i"],
    "ii->i": ["ii"],
    "iij->j": ["iij"],
    "bijbj->ib": ["bijbj"],
    "ijk->kj": ["ijk"],
    "ij->": ["ij"],
    "ij,jk,kl->il": ["ij", "jk", "kl"],
    "ij,ij,ij->j": ["ij", "ij", "ij"],
    "...ij,...jk->...ik": ["0ij", "10jk"],
    "i...,...j": ["i0", "0j"],
    "...ii->...i": ["01ii"],
    "jb,ka": ["jb", "ka"],
}


def einsum(random: Random) -> Drawn:
    equation = str(random.choice(list(EQUATIONS)))
    extent = {label: int(random.integers(1, 5)) for term in EQUATIONS[equation] for label in term}
    return Drawn([normal(random, *(extent[x] for x in term)) for term in EQUATIONS[equation]], {"equation": equation})


# windows --------------------------------------------------------------------------------------------------------------
def window(random: Random, rank: int, dilate: bool = True) -> tuple[list[int], dict[str, Any]]:
    """The extents of an image, and attributes that fit it."""
    kernel = sizes(random, rank, 1, 4)
    strides = [int(random.integers(1, k + 2)) for k in kernel]
    dilations = sizes(random, rank, 1, 3) if dilate and maybe(random) else [1] * rank
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    size = [r + int(random.integers(0, 6)) for r in reach]
    found: dict[str, Any] = {"kernel_shape": kernel}
    if maybe(random, 0.8):
        found["strides"] = strides
    if dilations != [1] * rank:
        found["dilations"] = dilations
    auto = str(random.choice(["NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]))
    if auto == "NOTSET" and maybe(random, 0.8):
        found["pads"] = [int(random.integers(0, k)) for k in kernel * 2]
    elif dilations == [1] * rank and all(k >= s for k, s in zip(kernel, strides, strict=True)):
        # Windows apart, or dilated, are where onnxruntime departs from ONNX.
        found["auto_pad"] = auto
    return size, found


def conv(random: Random) -> Drawn:
    size, found = window(random, int(random.integers(1, 4)))
    groups = int(random.choice([1, 1, 2, 3, 4]))
    per_group, outputs = sizes(random, 2, 1, 6)
    x = normal(random, int(random.integers(1, 3)), groups * per_group, *size)
    w = normal(random, groups * outputs, per_group, *found["kernel_shape"])
    bias = [normal(random, groups * outputs)] if maybe(random) else []
    known = maybe(random)
    return Drawn([x] if known else [x, w, *bias], found | {"group": groups}, [w, *bias] if known else ())


def conv_integer(random: Random) -> Drawn:
    size, found = window(random, 2)
    groups = int(random.choice([1, 1, 2, 3]))
    per_group, outputs = sizes(random, 2, 1, 4)
    x = bytes_of(random, np.uint8, [1, groups * per_group, *size])
    w = bytes_of(random, np.uint8, [groups * outputs, per_group, *found["kernel_shape"]])
    zeros = [bytes_of(random, np.uint8, []), bytes_of(random, np.uint8, [])][: int(random.integers(0, 3))]
    return Drawn([x], found | {"group": groups}, [w, *zeros]) if maybe(random) else Drawn(
        [x, w, *zeros], found | {"group": groups}
    )  # fmt: skip


def conv_transpose(random: Random) -> Drawn:
    rank = int(random.integers(1, 4))
    kernel, strides, dilations = sizes(random, rank, 1, 5), sizes(random, rank, 1, 4), sizes(random, rank, 1, 3)
    size, groups = sizes(random, rank, 1, 5), int(random.choice([1, 1, 2, 3]))
    per_group, outputs = sizes(random, 2, 1, 5)
    found: dict[str, Any] = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "group": groups}
    reach = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(size, strides, kernel, dilations, strict=True)]
    form = int(random.integers(4))
    if form == 0:
        found["pads"] = [int(random.integers(0, 1 + min(2, (r - 1) // 2))) for r in reach * 2]
        found["output_padding"] = [int(random.integers(0, max(s, d))) for s, d in zip(strides, dilations, strict=True)]
    elif form == 1 and all(k >= s for k, s in zip(kernel, strides, strict=True)):  # else onnxruntime departs from ONNX
        found["auto_pad"] = str(random.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    elif form == 2:
        found["output_shape"] = [max(1, r - int(random.integers(0, 3))) for r in reach]
    x = normal(random, int(random.integers(1, 3)), groups * per_group, *size)
    w = normal(random, groups * per_group, outputs, *kernel)
    bias = [normal(random, groups * outputs)] if maybe(random) else []
    known = maybe(random)
    return Drawn([x] if known else [x, w, *bias], found, [w, *bias] if known else ())


def pool(random: Random, **extra: int) -> Drawn:
    size, found = window(random, int(random.integers(1, 4)))
    if "auto_pad" not in found and maybe(random):
        found["ceil_mode"] = 1
    x = normal(random, *sizes(random, 2, 1, 5), *size)
    return Drawn([x], found | {name: value for name, value in extra.items() if maybe(random)}, opset=19)


def max_pool(random: Random) -> Drawn:
    drawn = pool(random)
    if "dilations" not in drawn.attributes and len(drawn.inputs[0].shape) == 4 and maybe(random, 0.3):
        kind = np.uint8 if maybe(random) else np.int8
        return Drawn([bytes_of(random, kind, drawn.inputs[0].shape)], drawn.attributes)
    return drawn


def lp_pool(random: Random) -> Drawn:
    drawn = pool(random)
    drawn.attributes["p"] = int(random.integers(1, 4))
    return Drawn(drawn.inputs, drawn.attributes, opset=18)


def global_pool(random: Random) -> Drawn:
    return Drawn([normal(random, *sizes(random, int(random.integers(3, 6))))])


# normalisations -------------------------------------------------------------------------------------------------------
def layer_norm(random: Random) -> Drawn:
    rank = int(random.integers(1, 5))
    size, axis = sizes(random, rank, 2, 6), int(random.integers(0, rank))
    constants = [normal(random, *size[axis:]) for _ in range(1 + maybe(random))]
    attributes = {"axis": axis - rank if maybe(random) else axis, "epsilon": 1e-3}
    return Drawn([normal(random, *size)], attributes, constants, outputs=3 if maybe(random) else 1)


def channels_norm(random: Random) -> Drawn:
    size = sizes(random, int(random.integers(3, 6)), 2, 6)
    return Drawn([normal(random, *size)], {"epsilon": 1e-3}, [normal(random, size[1]) for _ in range(2)])


def batch_norm(random: Random) -> Drawn:
    size = sizes(random, int(random.integers(2, 6)), 1, 6)
    known = [normal(random, size[1]) for _ in range(3)] + [np.abs(normal(random, size[1])) + np.float32(0.5)]
    x = normal(random, *size)
    return Drawn([x], {}, known) if maybe(random) else Drawn([x, *known])


def lp_norm(random: Random) -> Drawn:
    size = sizes(random, int(random.integers(1, 4)))
    return Drawn([normal(random, *size)], {"axis": int(random.integers(-len(size), len(size))), "p": 1 + maybe(random)})


def mean_variance_norm(random: Random) -> Drawn:
    axes = sorted(random.choice(4, int(random.integers(1, 4)), replace=False).tolist())
    return Drawn([normal(random, *sizes(random, 4, 3, 6))], {"axes": axes})


def lrn(random: Random) -> Drawn:
    size = sizes(random, 4)
    found = {"size": 1 + 2 * int(random.integers(0, 3)), "alpha": 0.1, "beta": 0.6, "bias": 1.5}
    return Drawn([normal(random, *size)], found)


# reductions -----------------------------------------------------------------------------------------------------------
def softmax(random: Random) -> Drawn:
    size = sizes(random, int(random.integers(1, 5)))
    axis = int(random.integers(-len(size), len(size)))
    return Drawn([normal(random, *size)], {"axis": axis}, opset=int(random.choice([11, 13])))


def reduction(random: Random, integers: bool = False, positive: bool = False) -> Drawn:
    rank = int(random.integers(1, 5))
    size = sizes(random, rank)
    x = random.integers(-9, 10, size).astype(np.int32) if integers and maybe(random, 0.3) else normal(random, *size)
    x = np.abs(x) + np.float32(0.1) if positive else x
    found: dict[str, Any] = {"keepdims": int(maybe(random))}
    axes = random.choice(rank, int(random.integers(0, rank + 1)), replace=False)
    axes = np.array([axis - rank if maybe(random) else axis for axis in axes], np.int64)
    if not len(axes):
        return Drawn([x], found | {"noop_with_empty_axes": int(maybe(random))})
    return Drawn([x], found, [axes])


DRAWS: dict[str, Draw] = {
    "MatMul": matmul,
    "MatMulInteger": matmul_integer,
    "Gemm": gemm,
    "Einsum": einsum,
    "Conv": conv,
    "ConvInteger": conv_integer,
    "ConvTranspose": conv_transpose,
    "MaxPool": max_pool,
    "AveragePool": lambda random: pool(random, count_include_pad=1),
    "LpPool": lp_pool,
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), global_pool),
    "LayerNormalization": layer_norm,
    "InstanceNormalization": channels_norm,
    "BatchNormalization": batch_norm,
    "LpNormalization": lp_norm,
    "MeanVarianceNormalization": mean_variance_norm,
    "LRN": lrn,
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), softmax),
    **dict.fromkeys(("ReduceProd", "ReduceL2", "ReduceLogSumExp"), reduction),
    "ReduceLogSum": lambda random: reduction(random, positive=True),
    **dict.fromkeys(
        ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceSumSquare"),
        lambda random: reduction(random, integers=True),
    ),
}
