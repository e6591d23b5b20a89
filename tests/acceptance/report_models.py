"""Graphs of the kinds that users of other compilers reported as computed wrongly: the reported form and further ones.

Each output is one form. Constants are initialisers, so that what is an input stays one; onnxruntime is the oracle,
or where it departs from ONNX, the values that stand here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

Array = NDArray[Any]
MOST, LEAST = 2**63 - 1, -(2**63)


@dataclass(frozen=True)
class Report:
    """`inputs` are declarations as in ONNX's text; an input without `feeds` is normal, or an integer of 0 to 7.

    `sets` are feeds of which each is compiled for its shapes; `expected` overrules onnxruntime; `steps` is how many
    integers results may depart.
    """

    opset: int
    inputs: str
    body: str
    outputs: str
    constants: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sets: Sequence[Mapping[str, Any]] = ({},)
    expected: Mapping[str, Any] = field(default_factory=dict[str, Any])
    rtol: float = 1e-4
    atol: float = 1e-5
    steps: int = 0

    def model(self) -> onnx.ModelProto:
        """The model; constants that are lists are of i64."""
        outputs = ", ".join(self.outputs.split())
        body = self.body.replace("'", '"')
        text = f"graph ({self.inputs}) => ({outputs}) {{ {body} }}"
        made = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {self.opset}]>\n{text}')
        made.graph.initializer.extend(_tensor(value, name) for name, value in self.constants.items())
        return made

    def feeds(self, given: Mapping[str, Any]) -> dict[str, Array]:
        """Values of all inputs."""
        random, found = np.random.default_rng(len(self.body)), dict[str, Array]()
        for info in self.model().graph.input:
            kind = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
            shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
            if info.name in given:
                found[info.name] = np.asarray(given[info.name], kind)
            elif kind.kind == "f":
                found[info.name] = random.standard_normal(shape).astype(kind)
            else:
                found[info.name] = random.integers(0, 2 if kind == np.bool_ else 8, shape).astype(kind)
        return found


def _tensor(value: Any, name: str) -> onnx.TensorProto:
    if isinstance(value, onnx.TensorProto):
        value.name = name
        return value
    kind = None if isinstance(value, np.ndarray | np.generic) else np.int64
    return onnx.numpy_helper.from_array(np.asarray(value, kind), name)


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> Array:
    """Floats of f32."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def floats(*values: float) -> Array:
    """Floats of f32, as a list."""
    return np.array(values, np.float32)


OPERATORS = {
    "convolutions by groups along one axis": Report(
        13,
        "float[1,32,39] x, float[2,6,9] v, float16[5] h, int64[3] i",
        "a = Conv<group=16, pads=[8,8]>(x, w) b = Conv<group=3, pads=[1,2], dilations=[2]>(v, u)"
        " c = Conv<group=6, strides=[2]>(v, t) d = Gather(h, i)",
        "a b c d",
        {"w": normal(32, 2, 16), "u": normal(6, 2, 4), "t": normal(12, 1, 2)},
        [{"i": [4, 0, 2]}],
    ),
    "softmax before opset 13 is over all axes from one on": Report(
        11,
        "float[2,3,4] x, float[2,2,3,2] v, float[5] w",
        "a = Softmax(x) b = LogSoftmax<axis=1>(x) c = Hardmax<axis=1>(x) d = Softmax<axis=2>(v) "
        "e = LogSoftmax<axis=0>(v) f = Softmax<axis=-2>(v) g = Hardmax<axis=0>(w)",
        "a b c d e f g",
    ),
    "softmax from opset 13 on is over one axis": Report(
        13, "float[2,3,4] x", "a = Softmax(x) b = LogSoftmax<axis=1>(x) c = Hardmax<axis=0>(x)", "a b c"
    ),
    "slices backwards": Report(
        13,
        "float[10] x, float[3,4] z, int64[1] s, int64[1] e, int64[2] s2, int64[2] e2",
        "a = Slice(x, nine, zero, zero, minus) b = Slice(x, minus, least, zero, minus)"
        " c = Slice(x, zero, five, zero, minus)"
        " d = Slice(z, three, zero, minus, minus) f = Slice(z, both, floor, axes, two) g = Slice(x, s, e, zero, minus)"
        " h = Slice(z, s2, e2, axes, two) i = Slice(x, minus, far, zero, four)",
        "a b c d f g h i",
        {
            "nine": [9],
            "zero": [0],
            "minus": [-1],
            "least": [LEAST],
            "five": [5],
            "three": [3],
            "both": [-1, -1],
            "floor": [LEAST, -9],
            "axes": [0, -1],
            "two": [-2, -1],
            "far": [-100],
            "four": [-4],
        },
        [{"s": [7], "e": [2], "s2": [2, 3], "e2": [0, LEAST]}, {"s": [-1], "e": [LEAST], "s2": [9, 9], "e2": [-9, 1]}],
    ),
    "slices backwards to the largest integer are empty": Report(
        13,
        "float[4] x, float[2,3] z, int64[1] e",
        "a = Slice(x, minus, most, zero, minus) b = Slice(z, minus, most, minus, minus)"
        " c = Slice(x, minus, e, zero, minus)",
        "a b c",
        {"minus": [-1], "most": [MOST], "zero": [0]},
        [{"e": [MOST]}, {"e": [2**31 - 1]}, {"e": [9]}],
        {"a": np.zeros(0, np.float32), "b": np.zeros((2, 0), np.float32), "c": np.zeros(0, np.float32)},
    ),
    "images of one pixel": Report(
        18,
        "float[1,1,1,10] x, float[1,1,6,4] z",
        "a = Resize<mode='linear', coordinate_transformation_mode='pytorch_half_pixel'>(x, , , one)"
        " b = Resize<mode='linear', coordinate_transformation_mode='half_pixel'>(x, , , one)"
        " c = Resize<mode='linear', coordinate_transformation_mode='align_corners'>(x, , , one)"
        " d = Resize<mode='linear', coordinate_transformation_mode='pytorch_half_pixel'>(z, , , single)"
        " e = Resize<mode='linear', coordinate_transformation_mode='half_pixel'>(z, , , single)"
        " f = Resize<mode='linear', coordinate_transformation_mode='align_corners'>(z, , , column)",
        "a b c d e f",
        {"one": [1, 1, 1, 1], "single": [1, 1, 1, 1], "column": [1, 1, 3, 1]},
    ),
    "transposed convolutions that keep the size": Report(
        11,
        "float[1,2,3,3] x, float[1,2,5] v",
        "a = ConvTranspose<auto_pad='SAME_UPPER', strides=[2,2]>(x, w)"
        " b = ConvTranspose<auto_pad='SAME_LOWER', strides=[2,2]>(x, w) c = ConvTranspose<auto_pad='SAME_UPPER'>(x, w)"
        " d = ConvTranspose<group=2, strides=[2,2], pads=[1,0,0,1], output_padding=[1,1]>(x, w)"
        " e = ConvTranspose<auto_pad='SAME_LOWER', strides=[3]>(v, u)"
        " f = ConvTranspose<auto_pad='SAME_UPPER', strides=[2], dilations=[2]>(v, u)",
        "a b c d e f",
        {"w": normal(2, 1, 3, 3), "u": normal(2, 3, 4, seed=1)},
    ),
    "pools whose last window is cut": Report(
        22,
        "float[1,2,9] x, float[1,1,6,2] v, float[1,1,5] w, float[1,1,7,7] u",
        "a = AveragePool<kernel_shape=[7], strides=[3], pads=[3,3], ceil_mode=1, count_include_pad=1>(x)"
        " b = AveragePool<kernel_shape=[7], strides=[3], pads=[3,3], ceil_mode=1>(x)"
        " c = AveragePool<kernel_shape=[5,1], auto_pad='SAME_LOWER', count_include_pad=1>(v)"
        " d = AveragePool<kernel_shape=[2], strides=[3], ceil_mode=1, pads=[0,1]>(w)"
        " e = AveragePool<kernel_shape=[3,2], strides=[2,3], pads=[1,1,1,0], ceil_mode=1, count_include_pad=1>(u)"
        " f = AveragePool<kernel_shape=[4], strides=[4], ceil_mode=1, pads=[2,1], count_include_pad=1>(x)",
        "a b c d e f",
    ),
    "pools without a window in the padding behind": Report(
        22,
        "float[1,1,2,2] x, float[1,1,8] v, float[1,2,5] w",
        "a = MaxPool<kernel_shape=[1,1], strides=[2,2], ceil_mode=1>(x)"
        " b = MaxPool<kernel_shape=[3], strides=[4], dilations=[2], pads=[1,1], ceil_mode=1>(v)"
        " c = AveragePool<kernel_shape=[3], strides=[4], dilations=[2], pads=[1,1], ceil_mode=1>(v)"
        " d = MaxPool<kernel_shape=[2], strides=[3], pads=[0,1], ceil_mode=1>(w)"
        " e = MaxPool<kernel_shape=[2,1], strides=[1,2], ceil_mode=1>(x)",
        "a b c d e",
    ),
    "indices from the end": Report(
        16,
        "float[3,4] x, int64[2] i, int64 j, int64[3,2] k, int64[2,2] n, float[1,4] u, int64[1,4] m, int64[2,1] p",
        "a = Gather<axis=0>(x, i) b = Gather<axis=1>(x, j) c = GatherElements<axis=1>(x, k) d = GatherND(x, n)"
        " e = ScatterElements<axis=0>(x, m, u) s = Shape(x) f = Gather(s, i) g = GatherElements<axis=-2>(x, m)"
        " h = ScatterND(x, p, v) l = Gather<axis=-1>(x, p)",
        "a b c d e f g h l",
        {"v": normal(2, 4)},
        [
            {
                "i": [0, -1],
                "j": -2,
                "k": [[0, -1], [-4, 3], [1, -3]],
                "n": [[-1, -1], [0, -4]],
                "m": [[-1, 0, -2, 1]],
                "p": [[-1], [-3]],
            },
            {
                "i": [-2, 1],
                "j": -4,
                "k": [[-1, -1], [-2, 0], [3, -4]],
                "n": [[-3, 3], [2, -1]],
                "m": [[-3, -3, 2, -1]],
                "p": [[1], [-1]],
            },
        ],
    ),
    "gated units that reset before or after": Report(
        14,
        "float[3,3,2] x, float[1,3,4] h",
        "a, b = GRU<hidden_size=4>(x, w, r, bias) c, d = GRU<hidden_size=4, linear_before_reset=1>(x, w, r, bias)"
        " e, f = GRU<hidden_size=4, linear_before_reset=1>(x, w, r)"
        " g, i = GRU<hidden_size=4, linear_before_reset=1, direction='reverse'>(x, w, r, bias, , h)"
        " j, k = GRU<hidden_size=4, linear_before_reset=1, direction='bidirectional'>(x, w2, r2, bias2)",
        "a b c d e f g i j k",
        {
            "w": normal(1, 12, 2),
            "r": normal(1, 12, 4, seed=1),
            "bias": normal(1, 24, seed=2),
            "w2": normal(2, 12, 2),
            "r2": normal(2, 12, 4, seed=1),
            "bias2": normal(2, 24, seed=2),
        },
    ),
    "recurrences over sequences of several lengths": Report(
        14,
        "float[4,2,3] x, float[1,2,2] h, int32[2] n",
        "a, b = GRU<hidden_size=2, direction='reverse'>(x, w, r, , n, h)"
        " c, d = RNN<hidden_size=2, direction='reverse'>(x, w1, r1, , n, h)"
        " e, f, g = LSTM<hidden_size=2, direction='reverse'>(x, w4, r4, , n) i,"
        " j = GRU<hidden_size=2>(x, w, r, , n, h)",
        "a b c d e f g i j",
        {
            "w": normal(1, 6, 3),
            "r": normal(1, 6, 2, seed=1),
            "w1": normal(1, 2, 3),
            "r1": normal(1, 2, 2, seed=1),
            "w4": normal(1, 8, 3),
            "r4": normal(1, 8, 2, seed=1),
        },
        [{"n": [2, 4]}, {"n": [4, 1]}],
    ),
    "the first of equals": Report(
        13,
        "float[16] x, int32[2,5] v",
        "a, b = TopK(x, k) c, d = TopK<largest=0>(x, k) e = ArgMax(x) f = ArgMax<select_last_index=1>(x)"
        " g = ArgMin<axis=1>(v) h = ArgMin<axis=-1, keepdims=0, select_last_index=1>(v) i, j = TopK<axis=0>(v, one)",
        "a b c d e f g h i j",
        {"k": [5], "one": [2]},
        [{"x": [1, 3, 3, 2, 3, 1, 1, 2] * 2, "v": [[2, 1, 1, 2, 1], [2, 2, 1, 2, 1]]}],
    ),
    "batch statistics of training": Report(
        15,
        "float[2,3,4] x, float[3,2,2,2] v",
        "a, b, c = BatchNormalization<training_mode=1, momentum=0.8, epsilon=0.1>(x, s, o, m, q)"
        " d = BatchNormalization<epsilon=0.1>(x, s, o, m, q)"
        " e, f, g = BatchNormalization<training_mode=1>(v, s2, o2, m2, q2)",
        "a b c d e f g",
        {
            "s": normal(3),
            "o": normal(3, seed=1),
            "m": normal(3, seed=2),
            "q": abs(normal(3, seed=3)) + 1,
            "s2": normal(2),
            "o2": normal(2, seed=1),
            "m2": normal(2, seed=2),
            "q2": abs(normal(2, seed=3)) + 1,
        },
    ),
    "clips without a bound": Report(
        13,
        "int32[6] x, float[6] v, int64[4] z, uint8[5] u, int32 hi, float lo",
        "a = Clip(x, , hi) b = Clip(v, lo) c = Clip(z) d = Clip(v, two, one) e = Clip(u, three, five) f = Clip(v)"
        " g = Clip(x) h = Clip(x, hi)",
        "a b c d e f g h",
        {
            "two": np.array(2, np.float32),
            "one": np.array(1, np.float32),
            "three": np.array(3, np.uint8),
            "five": np.array(5, np.uint8),
        },
        [{"hi": 3, "lo": -0.5, "z": [LEAST, MOST, 0, 2**40]}],
    ),
    "integers of 64 bits that nothing computes with": Report(
        17,
        "int64[2,2] x, uint64[3] u, int64[3] v",
        "a = Identity(x) b = Reshape(x, four) c = Identity(u) d = Neg(v) e = Identity(v)",
        "a b c d e",
        {"four": [4]},
        [{"x": [[LEAST, MOST], [2**32, -1]], "u": [2**64 - 1, 2**63, 0], "v": [1, -2, 3]}],
    ),
    "slopes by broadcasting": Report(
        16,
        "float[2,4,3,4] x, float[3,3] v",
        "a = PRelu(x, s) b = PRelu(x, t) c = PRelu(x, u) d = PRelu(x, one) e = PRelu(v, w) f = PRelu(x, full)",
        "a b c d e f",
        {
            "s": normal(4),
            "t": normal(4, 1, 1),
            "u": normal(3, 1),
            "one": normal(1),
            "w": normal(3),
            "full": normal(4, 3, 4),
        },
    ),
    "tensors without axes": Report(
        18,
        "float x, float y, float[1,1] v",
        "a = ReduceSum(x) b = ReduceMax<keepdims=1>(x) c = Shape(x) d = Unsqueeze(x, zero) e = Reshape(v, none)"
        " f = Add(x, y) g = Expand(x, twos) h = Squeeze(v) i = ReduceMean<keepdims=0>(v) j = Unsqueeze(y, pair)",
        "a b c d e f g h i j",
        {"zero": [0], "none": [], "twos": [2, 2], "pair": [0, 1]},
    ),
    "samples of images": Report(
        16,
        "float[1,2,4,5] x, float[1,3,3,2] g",
        " ".join(
            f"{name} = GridSample<mode='{mode}', align_corners={corners}, padding_mode='{padding}'>(x, g)"
            for name, mode, corners, padding in [
                ("a", "bilinear", 0, "zeros"),
                ("b", "bilinear", 1, "zeros"),
                ("c", "bilinear", 0, "border"),
                ("d", "bilinear", 1, "border"),
                ("e", "bilinear", 0, "reflection"),
                ("f", "bilinear", 1, "reflection"),
                ("h", "nearest", 0, "zeros"),
                ("i", "nearest", 1, "border"),
                ("j", "nearest", 0, "reflection"),
            ]
        ),
        "a b c d e f h i j",
    ),
    "sums over letters": Report(
        12,
        "float[2,3,4] x, float[2,4,2] y, float[3,3] m, float[3,2] n, float[5] v, float[2,2,3] z",
        "a = Einsum<equation='bij, bjk -> bik'>(x, y) b = Einsum<equation='ii->i'>(m)"
        " c = Einsum<equation='ij,jk'>(m, n)"
        " d = Einsum<equation='...ij->...ji'>(x) e = Einsum<equation='i,i->'>(v, v) f = Einsum<equation='ij->j'>(n)"
        " g = Einsum<equation='ba'>(n) h = Einsum<equation='...ij,jk->...ik'>(z, m) i = Einsum<equation='ii'>(m)"
        " j = Einsum<equation='i,j->ij'>(v, v)",
        "a b c d e f g h i j",
    ),
    "groups with a scale for each channel": Report(
        21,
        "float[2,4,3] x, float[1,6,2,2] v",
        "a = GroupNormalization<num_groups=2, epsilon=0.5>(x, s, o) b = GroupNormalization<num_groups=4>(x, s, o)"
        " c = GroupNormalization<num_groups=3>(v, t, u)",
        "a b c",
        {"s": normal(4), "o": normal(4, seed=1), "t": normal(6), "u": normal(6, seed=1)},
    ),
    "groups with a scale each": Report(
        18,
        "float[2,4,3] x, float[1,6,2,2] v",
        "a = GroupNormalization<num_groups=2, epsilon=0.5>(x, s, o) b = GroupNormalization<num_groups=3>(v, t, u)"
        " c = GroupNormalization<num_groups=1>(x, one, two)",
        "a b c",
        {
            "s": normal(2),
            "o": normal(2, seed=1),
            "t": normal(3),
            "u": normal(3, seed=1),
            "one": normal(1),
            "two": normal(1, seed=1),
        },
    ),
}

SHAPES = {
    "two reshapes, the second with a literal zero": Report(
        14,
        "float[0,6,2] x, float[2,0,3] v",
        "p = Reshape(x, first) a = Reshape<allowzero=1>(p, second) b = Reshape<allowzero=1>(v, second)"
        " q = Reshape(v, copy) c = Reshape<allowzero=1>(q, flat)",
        "a b c",
        {"first": [3, 2, -1], "second": [0, 0, 3], "copy": [0, 0, 3], "flat": [0, 7]},
    ),
    "places in a tensor without axes": Report(
        13,
        "float x, bool y, int64 z",
        "a = NonZero(x) b = NonZero(y) c = NonZero(z)",
        "a b c",
        sets=[{"x": 3.0, "y": True, "z": -1}],
        expected=dict.fromkeys("abc", np.zeros((0, 1), np.int64)),
    ),
    "no places in a tensor without axes": Report(
        13,
        "float x, bool y, int64 z",
        "a = NonZero(x) b = NonZero(y) c = NonZero(z)",
        "a b c",
        sets=[{"x": 0.0, "y": False, "z": 0}],
        expected=dict.fromkeys("abc", np.zeros((0, 0), np.int64)),
    ),
    "as many places as there are": Report(
        13,
        "int64[2,3] x, bool[4] m",
        "p = NonZero(x) a = Sub(p, p) t = Transpose(p) b = Shape(t) c = GatherND(x, t) d = NonZero(m) e = Shape(d)",
        "a b c d e",
        sets=[
            {"x": [[0, 0, 0], [0, 0, 0]], "m": [0, 0, 0, 0]},
            {"x": [[0, 5, 0], [0, 0, -2]], "m": [0, 1, 0, 1]},
            {"x": [[1, 2, 3], [4, 5, 6]], "m": [1, 1, 1, 1]},
        ],
    ),
    "expansion both ways": Report(
        13,
        "float[3,1] x, float[D,4] y, float[3,4] z, float[2,1,1] v",
        "a = Expand(x, one) b = Expand(x, wide) c = Expand(x, twos) d = Add(y, z) e = Expand(v, wide) f = Mul(z, y)",
        "a b c d e f",
        {"one": [1], "wide": [3, 4], "twos": [2, 1, 6]},
        [{"y": normal(1, 4)}, {"y": normal(3, 4)}],
    ),
    "caches that begin empty": Report(
        17,
        "float[1,2,P,4] past, float[1,2,1,4] new, float[P,3] rows",
        "all = Concat<axis=2>(past, new) half = Cast<to=10>(all) k = Cast<to=1>(half) t = Transpose<perm=[0,1,3,2]>(k)"
        " s = MatMul(new, t) a = Softmax(s) b = ReduceSum<keepdims=1>(past, two) c = MatMul(a, k)"
        " d = ReduceSum<keepdims=0>(rows, zero) e = Concat<axis=0>(rows, extra)"
        " f = ReduceProd<axes=[2], keepdims=1>(past)",
        "a b c d e f",
        {"two": [2], "zero": [0], "extra": normal(2, 3)},
        [
            {"past": np.zeros((1, 2, 0, 4)), "rows": np.zeros((0, 3))},
            {"past": normal(1, 2, 3, 4), "rows": normal(3, 3)},
        ],
        rtol=1e-3,
        atol=1e-3,
    ),
    "products of several open extents": Report(
        13,
        "float[B,2,S,4] q, float[B,2,4,S] k, float[1,1,S,S] mask",
        "p = MatMul(q, k) a = Add(p, mask) b = MatMul(a, q) c = MatMul(k, q)",
        "a b c",
        sets=[
            {"q": normal(n, 2, s, 4), "k": normal(n, 2, 4, s, seed=1), "mask": normal(1, 1, s, s)}
            for n, s in [(1, 1), (2, 5), (3, 2)]
        ],
    ),
    "convolutions of open extents that keep the size": Report(
        13,
        "float[1,2,H,W] x",
        "a = Conv<auto_pad='SAME_UPPER', strides=[2,2]>(x, w) b = Conv<auto_pad='SAME_LOWER', strides=[2,2]>(x, w)"
        " c = Conv<auto_pad='SAME_UPPER', strides=[3,2]>(x, even)"
        " d = MaxPool<auto_pad='SAME_LOWER', kernel_shape=[2,2], strides=[2,2]>(x)",
        "a b c d",
        {"w": normal(3, 2, 3, 3), "even": normal(3, 2, 2, 4)},
        [{"x": normal(1, 2, 7, 5)}, {"x": normal(1, 2, 4, 6)}],
    ),
    "parts that are not equal": Report(
        18,
        "float[7,2] x, float[N,6] y, float[2,5] v",
        "a, b, c = Split<num_outputs=3, axis=0>(x) d, e, f = Split<axis=-1>(y, sizes)"
        " g, h = Split<num_outputs=2, axis=1>(v) i, j = Split<axis=0>(y, ends)",
        "a b c d e f g h i j",
        {"sizes": [1, 2, 3], "ends": [1, 3]},
        [{"y": normal(4, 6)}],
    ),
}
