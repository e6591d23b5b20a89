"""Whole graphs of the kinds that users reported: fusions, shared buffers, control flow, quantised numbers."""

import numpy as np
import onnx
from acceptance.report_models import Report, floats, normal

ONE = np.array(1, np.float32)


def _norm(channels: int, seed: int) -> dict[str, np.ndarray]:  # pyright: ignore[reportMissingTypeArgument]
    """Scale, shift, mean and variance, named with the seed."""
    values = {key: normal(channels, seed=seed + i) for i, key in enumerate("somq")}
    return {f"{key}{seed}": abs(value) + 1 if key == "q" else value for key, value in values.items()}


def _bits(kind: int, shape: tuple[int, ...], *values: int) -> onnx.TensorProto:
    return onnx.helper.make_tensor("", kind, shape, values)


def _bytes(low: int, high: int, *shape: int, seed: int = 0, kind: type = np.int8) -> np.ndarray:  # pyright: ignore[reportMissingTypeArgument]
    return np.random.default_rng(seed).integers(low, high, shape).astype(kind)


def _unsorted(taken: bool) -> Report:
    """Nodes in no order, also inside both branches, for which onnxruntime has no answer."""
    x, k = floats(1, -2, 3), normal(3, seed=4)
    square = np.square(x + k)
    return Report(
        13,
        "bool c, float[3] x",
        "y = Relu(b) d = Add(x, k) b = Mul(d, d) z = If(c)<then_branch = g () => (float[3] o) { o = Relu(t)"
        " t = Sub(b, k) },"
        " else_branch = h () => (float[3] p) { p = Neg(u) u = Mul(v, x) v = Add(x, k) }> w = Neg(q) q = Add(z, y)",
        "y z w",
        {"k": k},
        [{"c": taken, "x": x}],
        {"y": square, "z": (z := np.maximum(square - k, 0) if taken else -(x + k) * x), "w": -(z + square)},
    )


def _standard(x: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:  # pyright: ignore[reportMissingTypeArgument]
    """Mean 0 and variance 1 along an axis, computed in f64."""
    wide = x.astype(np.float64)
    found = wide - wide.mean(axis, keepdims=True)
    return (found / np.sqrt(np.square(found).mean(axis, keepdims=True) + 1e-5)).astype(np.float32)


HIGH = {
    "x": floats(90000, 90001, 90002, 90003)[None],
    "v": np.rint(normal(1, 2, 6, scale=5)) + 10000,
    "w": np.rint(normal(2, 8, scale=5)) - 50000,
}

FUSIONS = {
    "a convolution is returned, and read beside its normalisation": Report(
        15,
        "float[1,2,5,5] x, float[1,2,5] v",
        "a = Conv(x, w) n = BatchNormalization(a, s0, o0, m0, q0) r = Relu(n) b = Add(r, a) c = Conv(v, u)"
        " k = BatchNormalization(c, s5, o5, m5, q5) d = Mul(k, c) e = Relu(k)",
        "a b c d e",
        {"w": normal(4, 2, 3, 3), "u": normal(3, 2, 2, seed=1)} | _norm(4, 0) | _norm(3, 5),
    ),
    "what goes into an activation is read again": Report(
        13,
        "float[1,2,4,4] x, float[3,4] m",
        "c = Conv(x, w) r = Relu(c) n = Neg(c) a = Add(r, n) p = MatMul(m, z) s = Mul(p, half) b = Add(p, s)"
        " d = Conv(x, u) t = Add(c, d) f = Relu(t) e = Sub(f, d) g = Sigmoid(p) h = Mul(g, p) i = Add(h, s)",
        "a b e i",
        {"w": normal(3, 2, 3, 3), "u": normal(3, 2, 3, 3, seed=1), "z": normal(4, 5), "half": floats(0.5)},
    ),
    "a weight of several convolutions": Report(
        15,
        "float[1,2,4,4] x, float[1,2,3,5] v",
        "c = Conv(x, w) a = BatchNormalization(c, s0, o0, m0, q0) d = Conv(x, w)"
        " b = BatchNormalization(d, s7, o7, m7, q7)"
        " e = Conv(x, w) f = Conv(v, w) g = BatchNormalization(f, s0, o0, m0, q0) h = Relu(w) i = Conv(v, h)",
        "a b e g h i",
        {"w": normal(3, 2, 2, 2)} | _norm(3, 0) | _norm(3, 7),
    ),
    "a convolution by groups and a map that is no bias": Report(
        13,
        "float[1,8,4,4] x, float[2,8,3] v",
        "c = Conv<group=4>(x, w, bias) a = Add(c, full) b = Add(c, channels) d = Add(c, image) e = Mul(c, channels)"
        " f = Add(c, row) u = Conv<group=2>(v, t) g = Add(u, places) h = Mul(u, places)",
        "a b d e f g h",
        {
            "w": normal(8, 2, 1, 1),
            "bias": normal(8),
            "full": normal(1, 8, 4, 4),
            "channels": normal(8, 1, 1),
            "image": normal(1, 1, 4, 4),
            "row": normal(4),
            "t": normal(4, 4, 1),
            "places": normal(3),
        },
    ),
    "a product and a sum that is no bias": Report(
        13,
        "float[3,4] x, float[2,3,4] v",
        "p = MatMul(x, w) a = Add(p, column) b = Add(p, ranks) c = Add(p, bias)"
        " d = Gemm<alpha=0.5, beta=2.0, transB=1>(x, t, column) g = Gemm(x, w) q = Reshape(g, three) e = Add(q, deep)"
        " m = MatMul(v, w) f = Add(m, column) h = Gemm<transA=1, beta=0.0>(x, y, one) i = Add(m, square)",
        "a b c d e f h i",
        {
            "w": normal(4, 5),
            "t": normal(5, 4),
            "column": normal(3, 1),
            "ranks": normal(1, 1, 1, 5),
            "bias": normal(5),
            "three": [1, 3, 5],
            "deep": normal(1, 3, 5),
            "y": normal(3, 2),
            "one": ONE,
            "square": normal(2, 3, 5),
        },
    ),
    "a table of bytes that is looked up and multiplied": Report(
        19,
        "int64[3] ids, float[2,4] h, float[2,6] g",
        "d = DequantizeLinear<axis=0>(e, s) a = Gather(d, ids) k = DequantizeLinear<axis=0>(e, s)"
        " t = Transpose<perm=[1,0]>(k) b = MatMul(h, t) c = MatMul(g, d) f = Gather<axis=1>(k, ids)",
        "a b c f",
        {"e": _bytes(-128, 128, 6, 4), "s": abs(normal(6)) + np.float32(0.1)},
        [{"ids": [0, 3, 2]}],
    ),
    "identities around branches": Report(
        13,
        "bool c, float[3] a, float[3] b",
        "i = Identity(a) k = Identity(b) x = If(c)<then_branch = g () => (float[3] y) { y = Identity(i) },"
        " else_branch = h () => (float[3] z) { z = Add(k, k) }>"
        " v = If(c)<then_branch = p () => (float[3] q) { t = Identity(k) q = Mul(t, i) },"
        " else_branch = r () => (float[3] u) { w = Identity(i) u = Identity(w) }>",
        "i x v k",
        sets=[{"c": True}, {"c": False}],
    ),
    "normalisations written out": Report(
        17,
        "float[2,3,8] x, float[2,3,8] skip",
        "p = Add(x, skip) r = Add(p, bias) m = ReduceMean<axes=[-1]>(r) d = Sub(r, m) q = Pow(d, two)"
        " v = ReduceMean<axes=[-1]>(q) w = Add(v, eps) t = Sqrt(w) n = Div(d, t) g = Mul(n, scale) k = Add(g, bias)"
        " a = Add(k, r) m1 = ReduceMean<axes=[1]>(a) d1 = Sub(a, m1) q1 = Pow(d1, two) v1 = ReduceMean<axes=[1]>(q1)"
        " w1 = Add(v1, eps) t1 = Sqrt(w1) n1 = Div(d1, t1) g1 = Mul(n1, scale) b = Add(g1, bias) c = Add(t, t1)",
        "a b c",
        {"bias": normal(8), "scale": normal(8, seed=1), "two": floats(2), "eps": floats(1e-5)},
    ),
    "nodes in any order, the first branch": _unsorted(True),
    "nodes in any order, the other branch": _unsorted(False),
}

MEMORY = {
    "a loop that returns its counter": Report(
        13,
        "float[2] x, float[2] outer",
        "last, n, before, copy = Loop(four, , x)<body = b (int64 i, bool c, float[2] s) => (bool k, float[2] t,"
        " int64 j,"
        " float[2] p, float[2] o) { k = Identity(c) t = Add(s, outer) j = Identity(i) p = Identity(s)"
        " o = Identity(outer) }>",
        "last n before copy",
        {"four": np.array(4)},
    ),
    "loops of a computed number of rounds": Report(
        13,
        "int64 n, bool c, float[2] x, float[2] outer",
        "y, s = Loop(n, , x)<body = b (int64 i, bool k, float[2] v) => (bool t, float[2] w, float[2] o) {"
        " t = Constant<value = bool {1}>() w = Add(v, outer) o = Mul(v, v) }>"
        " z = If(c)<then_branch = g () => (float[2] p) { p = Add(y, x) }, else_branch = h () => (float[2] q) {"
        " q = Neg(y) }>",
        "y s z",
        sets=[{"n": 0, "c": True}, {"n": 1, "c": False}, {"n": 3, "c": True}],
    ),
    "two sums of one shape that live at a time": Report(
        13,
        "float[4,8] x",
        "g = MatMul(x, wg) u = MatMul(x, wu) s = Sigmoid(g) h = Mul(g, s) k = Mul(h, u) d = MatMul(k, wd) a = Add(d, x)"
        " p = MatMul(a, wg) q = MatMul(a, wu) t = Tanh(q) b = Mul(p, t) c = Sub(q, p)",
        "a b c",
        {"wg": normal(8, 8), "wu": normal(8, 8, seed=1), "wd": normal(8, 8, seed=2)},
    ),
    "views of a value that is read late": Report(
        13,
        "float[4,6] x",
        "t = Exp(x) v = Reshape(t, shape) e = Unsqueeze(v, zero) f = Squeeze(e, zero) n = Neg(t) r = Relu(n)"
        " big = MatMul(r, w) more = MatMul(big, w) back = Reshape(more, shape) g = Add(f, back) l = Reshape(t, shape)"
        " y = Add(g, l) z = Transpose(v) k = Flatten<axis=0>(t)",
        "y v z k",
        {"shape": [6, 4], "zero": [0], "w": normal(6, 6, scale=0.1)},
    ),
    "branches of several depths that join": Report(
        13,
        "float[3,7] x",
        "t = Relu(x) a = Neg(t) b0 = Exp(t) b = Neg(b0) c = Abs(t) d0 = Sqrt(t) d1 = Neg(d0) d = Exp(d1) e = Mul(t, t)"
        " y = Sum(a, b, c, d, e) z = Max(a, c, e) w = Mean(b, d, t)",
        "y z w",
    ),
    "outputs that are views of each other": Report(
        13,
        "float[1,6] x",
        "a = Identity(x) t = Abs(x) b = Reshape(t, shape) c = Identity(k) d = Transpose(x) e = Identity(t)"
        " f = Flatten(k)",
        "a b t c d e f",
        {"shape": [2, 3], "k": normal(2, 2)},
    ),
    "tensors that grow along a chain": Report(
        13,
        "float[1,2,3] x0",
        " ".join(
            f"m{i} = Mul(x{i}, c) a{i} = Add(m{i}, x{i}) t{i} = Relu(a{i}) r{i} = ReduceMean<axes=[1]>(t{i})"
            f" x{i + 1} = Concat<axis=1>(x{i}, r{i})"
            for i in range(12)
        ),
        "x12 x5 t11",
        {"c": floats(0.5)},
    ),
}

PRECISION = {
    "layer normalisation of halves": Report(
        17,
        "float16[2,64] x, float16[2,3,8] v",
        "a = LayerNormalization(x, s, o) b = LayerNormalization<axis=1>(v, t)"
        " c = LayerNormalization<axis=-1, epsilon=0.1>(v, u)",
        "a b c",
        {
            "s": normal(64).astype(np.float16),
            "o": normal(64, seed=1).astype(np.float16),
            "t": normal(3, 8).astype(np.float16),
            "u": normal(8).astype(np.float16),
        },
        [{"x": normal(2, 64, scale=300) + 30000 * np.eye(2, 64), "v": normal(2, 3, 8, scale=2000)}],
        rtol=5e-3,
        atol=5e-3,
    ),
    "normalisation of large numbers written out": Report(
        17,
        "float[3,32] x, float[2,16] v",
        "m = ReduceMean<axes=[-1]>(x) d = Sub(x, m) q = Pow(d, two) w = ReduceMean<axes=[-1]>(q) e = Add(w, eps)"
        " r = Sqrt(e) a = Div(d, r) f = Mul(v, v) g = ReduceMean<axes=[-1]>(f) h = Add(g, eps) i = Sqrt(h)"
        " b = Div(v, i)"
        " j = ReduceSum<keepdims=1>(f, last) k = Sqrt(j) c = Div(v, k)",
        "a b c",
        {"two": floats(2), "eps": floats(1e-5), "last": [-1]},
        [{"x": normal(3, 32, scale=400), "v": normal(2, 16, seed=1, scale=700)}],
    ),
    "masks of large numbers": Report(
        13,
        "float[3,4] s, float[3,4] mask, float[2,4] v",
        "i = Sub(one, mask) j = Mul(i, huge) p = Add(s, j) a = Softmax(p) b = Softmax(v) q = Add(s, low)"
        " r = Where(keep, s, q)"
        " c = Softmax(r) u = Clip(s, floor, ceiling) d = Softmax(u)",
        "a b c d",
        {
            "one": floats(1),
            "huge": floats(-1e12),
            "low": floats(-1e9),
            "keep": np.array([True, False, True, False]),
            "floor": np.array(-3e38, np.float32),
            "ceiling": np.array(np.inf, np.float32),
        },
        [{"mask": [[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]], "v": [[60000, 59000, -60000, 0], [1, 2, 3, 4]]}],
    ),
    "quantisation of halves and of what is too large": Report(
        13,
        "float[14] x",
        "a = QuantizeLinear(x, one, z) b = QuantizeLinear(x, half, z) c = QuantizeLinear(x, one, three)"
        " d = QuantizeLinear(x, one, mid) e = QuantizeLinear(x, half) f = QuantizeLinear(x, quarter, low)",
        "a b c d e f",
        {
            "one": ONE,
            "half": ONE / 2,
            "quarter": ONE / 4,
            "z": np.int8(0),
            "three": np.int8(3),
            "mid": np.uint8(128),
            "low": np.int8(-128),
        },
        [{"x": [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, -129, -128, 127.5, 200, -200, 0.125, -0.375]}],
    ),
    "softmax of bytes": Report(
        19,
        "int8[2,4] x, uint8[2,4] u",
        "d = DequantizeLinear(x, half) s = Softmax(d) a = QuantizeLinear(s, fine, low)"
        " f = DequantizeLinear(u, half, mid)"
        " g = Softmax(f) b = QuantizeLinear(g, fine) h = Sigmoid(d) c = QuantizeLinear(h, fine, low)",
        "a b c",
        {"half": ONE / 2, "fine": ONE / 256, "low": np.int8(-128), "mid": np.uint8(128)},
        [{"x": [[127, -128, -128, -128], [1, 2, 3, 4]], "u": [[0, 0, 255, 0], [9, 8, 7, 6]]}],
    ),
    "scales of blocks": Report(
        21,
        "int8[2,4] x, int8[2,3,6] v, int8[5,2] w",
        "a = DequantizeLinear<axis=1, block_size=2>(x, s, z) b = DequantizeLinear<axis=2, block_size=3>(v, t)"
        " c = DequantizeLinear<axis=0, block_size=2>(w, u) d = DequantizeLinear<axis=-1, block_size=4>(v, y)",
        "a b c d",
        {
            "s": abs(normal(2, 2)),
            "z": _bytes(-9, 9, 2, 2),
            "t": abs(normal(2, 3, 2)),
            "u": abs(normal(3, 2)),
            "y": abs(normal(2, 3, 2, seed=1)),
        },
    ),
    "an odd number of halves of bytes": Report(
        21,
        "float[2,3] x, float[2,7] v",
        "w = DequantizeLinear<axis=0>(p, s) a = MatMul(x, w) b = DequantizeLinear(q, one, eight)"
        " r = DequantizeLinear<axis=1>(p, t)"
        " c = MatMul(x, r) d = Mul(v, b)",
        "a b c d",
        {
            "p": _bits(onnx.TensorProto.INT4, (3, 5), *range(-8, 7)),
            "q": _bits(onnx.TensorProto.UINT4, (7,), 0, 15, 8, 7, 3, 12, 1),
            "eight": _bits(onnx.TensorProto.UINT4, (), 8),
            "s": abs(normal(3)),
            "t": abs(normal(5)),
            "one": ONE / 2,
        },
    ),
    "products of bytes that leave their range": Report(
        10,
        "int8[2,64] a, uint8[2,64] u, uint8[2,2048] w, int8[1,3] n",
        "x = QLinearMatMul(a, one, z, b, one, z, s, z) y = QLinearMatMul(u, one, uz, ub, one, uz, s, mid)"
        " v = MatMulInteger(w, most) r = QLinearMatMul(n, one, z, k, one, z, one, z)",
        "x y v r",
        {
            "b": _bytes(-128, 128, 64, 3),
            "ub": _bytes(0, 256, 64, 3, kind=np.uint8),
            "one": ONE,
            "s": ONE * 64,
            "z": np.int8(0),
            "uz": np.uint8(0),
            "mid": np.uint8(128),
            "most": np.full((2048, 2), 127, np.int8),
            "k": np.array([[100, -100], [100, -100], [1, 1]], np.int8),
        },
        [
            {
                "a": _bytes(-128, 128, 2, 64, seed=1),
                "u": _bytes(0, 256, 2, 64, seed=2, kind=np.uint8),
                "w": np.full((2, 2048), 255),
                "n": [[100, 100, 7]],
            }
        ],
    ),
    "sums of bytes of other scales": Report(
        19,
        "int8[256] a, int8[256] b",
        "p = DequantizeLinear(a, s, i) q = DequantizeLinear(b, t, j) r = Add(p, q) x = QuantizeLinear(r, u, j)"
        " m = Mul(p, q) y = QuantizeLinear(m, v, i) n = Sub(p, q) z = QuantizeLinear(n, t, i)",
        "x y z",
        {
            "s": np.float32(0.0080107),
            "t": np.float32(0.0062271),
            "u": np.float32(0.0068735),
            "v": ONE / 50,
            "i": np.int8(7),
            "j": np.int8(-128),
        },
        [{"a": np.arange(-128, 128), "b": _bytes(-128, 128, 256)}],
        steps=1,
    ),
    "normalisation around a large mean": Report(
        17,
        "float[1,4] x, float[1,2,6] v, float[2,8] w",
        "a = LayerNormalization(x, ones) b = InstanceNormalization(v, s, o) c = LayerNormalization(w, eight)",
        "a b c",
        {"ones": np.ones(4, np.float32), "s": np.ones(2, np.float32), "o": normal(2), "eight": np.ones(8, np.float32)},
        [HIGH],
        {"a": _standard(HIGH["x"], 1), "b": _standard(HIGH["v"], 2) + normal(2)[:, None], "c": _standard(HIGH["w"], 1)},
        rtol=1e-3,
        atol=1e-3,
    ),
    "floats to integers": Report(
        18,
        "float[8] x, float16[3] h, float[5] n",
        "a = Cast<to=3>(x) b = Cast<to=2>(y) c = Cast<to=6>(x) d = Cast<to=7>(x) e = Cast<to=9>(n) y = Abs(x)"
        " f = Cast<to=6>(h) g = Cast<to=9>(h) i = Cast<to=5>(x)",
        "a b c d e f g i",
        sets=[
            {"x": [-1.9, 1.9, -0.5, 0.5, 126.9, -127.9, 3, -3], "h": [1.5, -2.5, 0], "n": [0, -0.0, np.nan, 1e-30, 9]}
        ],
    ),
}
