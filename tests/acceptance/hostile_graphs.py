"""Graphs of a hostile user: several outputs, outputs that are inputs, unused inputs, shared weights, integers."""

from typing import Any

import numpy as np
from acceptance.hostile_models import BOOL, FLOAT16, INT32, INT64, UINT8, Make, W, made, noise

TWO_BY_SIX = np.array([2, 6])
PARTS = np.array([2, 3, 4])
NORM: dict[str, Any] = {
    "s": noise(5),
    "b": noise(5, seed=1),
    "m": noise(5, seed=2),
    "v": np.abs(noise(5, seed=3)) + np.float32(0.1),
}
KERNEL = noise(5, 4, 3, 3, scale=0.2)
CHAIN = "; ".join(f"v{i + 1} = Add({f'v{i}' if i else 'x'}, x)" for i in range(60))
FAN = "e = Exp(x); v1 = Mul(e, x); v2 = Mul(e, v1); v3 = Mul(e, v2); v4 = Mul(e, v3); y = Sum(v1, v2, v3, v4)"

OUTPUTS: dict[str, Make] = {
    "two outputs, one made of the other": made("a = Relu(x); b = Add(a, x)", "a b", x=[3, 5]),
    "an output inside a fused kernel": made("a = MatMul(x, w); r = Relu(a); y = Add(r, a)", "y a r", x=[4, 8], w=W),
    "equal outputs": made("a = Relu(x); b = Relu(x)", "a b", x=[3, 5]),
    "an output that is a reshaped input": made("y = Reshape(x, s)", x=[3, 4], s=TWO_BY_SIX),
    "an output and the same reshaped": made("a = Relu(x); b = Reshape(a, s)", "a b", x=[3, 4], s=TWO_BY_SIX),
    "an output that is a constant": made("a = Relu(x); b = Add(c, c)", "a b", x=[3, 4], c=noise(2, 3)),
    "an output that is a weight": made("a = MatMul(x, w)", "a w", x=[4, 8], w=W),
    "nothing but the identity": made("y = Identity(x)", x=[3, 5]),
    "no input": made("b = Add(c, c)", c=noise(2, 3)),
    "an input that nobody uses": made("a = Relu(x)", x=[3, 5], z=[7]),
    "split, all used": made("a, b, c = Split(x, n, axis=1)", "a b c", x=[3, 9], n=PARTS),
    "split, one used": made("a, b, c = Split(x, n, axis=1)", "b", x=[3, 9], n=PARTS),
    "a chain of 60": made(CHAIN, x=[7, 33]),
    "a fan": made(FAN, "y v3", x=[7, 33]),
}
WEIGHTS: dict[str, Make] = {
    "a weight of two products": made("a = MatMul(x, w); b = MatMul(a, w)", x=[4, 8], w=W),
    "a weight, once transposed": made("a = MatMul(x, w); b = Gemm(a, w, transB=1)", x=[4, 8], w=W),
    "a weight that is also added": made("a = MatMul(x, w); b = Add(a, w)", x=[8, 8], w=W),
    "two equal weights": made("a = MatMul(x, w); b = MatMul(a, v)", x=[4, 8], w=W, v=W.copy()),
    # The convolution is used twice, so the normalisation must not change its weights.
    "a normalisation beside its convolution": made(
        "a = Conv(x, w, pads=[1, 1, 1, 1]); n = BatchNormalization(a, s, b, m, v); y = Add(a, n)",
        x=[1, 4, 6, 6],
        w=KERNEL,
        **NORM,
    ),
    "two convolutions of one weight, one scaled": made(
        "a = Conv(x, w, pads=[1, 1, 1, 1]); n = Mul(a, s); b = Conv(x, w, pads=[1, 1, 1, 1]); y = Add(n, b)",
        x=[1, 4, 6, 6],
        w=KERNEL,
        s=noise(5, 1, 1),
    ),
    "a bias of shape [1, 1, n]": made("a = MatMul(x, w); y = Add(a, b)", x=[3, 4, 8], w=W, b=noise(1, 1, 8)),
    "a bias that is a number": made("a = MatMul(x, w); y = Add(a, b)", x=[3, 4, 8], w=W, b=noise()),
    "a bias by batch": made("a = MatMul(x, z); y = Add(a, b)", x=[2, 4, 8], z=[2, 8, 5], b=noise(2, 1, 5)),
    "a residual of one column": made("a = MatMul(x, w); y = Add(a, z)", x=[4, 8], z=[4, 1], w=W),
    "a factor that is an input": made("a = MatMul(x, w); y = Mul(a, z)", x=[4, 8], z=[], w=W),
}
INTEGERS: dict[str, Make] = {
    "int64 indices, cast": made("f = Cast(i, to=1); y = Mul(f, x)", types={"i": INT64}, i=[5], x=[5]),
    "int64, added": made("y = Add(i, i)", types={"i": INT64, "y": INT64}, i=[5]),
    "int32, multiplied": made("y = Mul(i, i)", types={"i": INT32, "y": INT32}, i=[5]),
    "int32, divided": made("y = Div(i, j)", types={"i": INT32, "j": INT32, "y": INT32}, i=[5], j=[5]),
    "to int64 at the end": made("y = Cast(x, to=7)", types={"y": INT64}, x=[5]),
    "there and back": made("i = Cast(x, to=6); y = Cast(i, to=1)", x=[3, 5]),
    "an index that is an input": made("y = Gather(w, i)", types={"i": INT64}, w=noise(8, 8), i=[5]),
    "constant indices": made("y = Gather(x, i)", x=[5, 3], i=np.array([3, 1])),
    "a negative index": made("y = Gather(x, i, axis=1)", x=[5, 3], i=np.array(-1)),
    "a truth value chooses": made("y = Where(c, x, z)", types={"c": BOOL}, c=[3, 1], x=[3, 5], z=[5]),
    "truth values come out": made("y = Greater(x, z)", types={"y": BOOL}, x=[3, 5], z=[5]),
    "f16 in and out": made("y = MatMul(x, w)", types={"x": FLOAT16, "y": FLOAT16}, x=[3, 8], w=W.astype(np.float16)),
    "bytes": made("y = Cast(x, to=1)", types={"x": UINT8}, x=[3, 5]),
    "a large integer, cast": made(
        "j = Mul(i, k); f = Cast(j, to=1); y = Mul(f, c)",
        types={"i": INT32},
        i=[5],
        k=np.array(20000, np.int32),
        c=np.asarray(np.float32(1e-3)),
    ),
}
SLICES: dict[str, Any] = {
    "a": np.array([0, 1]),
    "s": np.array([6, -1]),
    "e": np.array([0, -9]),
    "t": np.array([-2, -3]),
}
BEYOND: dict[str, Any] = {"a": np.array([1]), "s": np.array([1]), "e": np.array([1000]), "t": np.array([3])}
NEAREST = "Resize(x, _, n, mode='nearest', nearest_mode='floor', coordinate_transformation_mode='asymmetric')"
MOVES: dict[str, Make] = {
    "concat, one twice": made("y = Concat(x, z, x, axis=1)", x=[3, 5, 2], z=[3, 1, 2]),
    "concat along the last axis": made("y = Concat(x, z, axis=-1)", x=[3, 5], z=[3, 4]),
    "backwards in steps": made("y = Slice(x, s, e, a, t)", x=[7, 9], **SLICES),
    "a slice beyond the end": made("y = Slice(x, s, e, a, t)", x=[7, 9], **BEYOND),
    "expand": made("y = Expand(x, s)", x=[3, 1], s=np.array([2, 3, 4])),
    "pad": made("y = Pad(x, p)", x=[3, 5], p=np.array([1, 2, 0, 3])),
    "pad an axis of 1": made("y = Pad(x, p)", x=[3, 1], p=np.array([0, 1, 0, 1])),
    "pad a single number": made("y = Pad(x, p)", x=[1], p=np.array([1, 0])),
    "flatten all": made("a = Relu(x); y = Flatten(a, axis=0)", x=[3, 4, 5]),
    "nearest neighbours": made(f"y = {NEAREST}", x=[1, 3, 4, 4], n=np.array([1, 1, 2, 2], np.float32)),
    "largest of three": made("y = Max(x, z, v)", x=[3, 5], z=[5], v=[3, 1]),
    "mean of three": made("y = Mean(x, z, v)", x=[3, 5], z=[5], v=[3, 1]),
    "sum of one": made("y = Sum(x)", x=[3, 5]),
}
ONES: dict[str, Make] = {
    "1×1 product of a constant": made("y = MatMul(x, w)", x=[3, 1], w=noise(1, 1)),
    "a bias of one number": made("a = MatMul(x, w); y = Add(a, b)", x=[4, 8], w=W[:, :1].copy(), b=noise(1)),
    "a convolution of one weight": made("y = Conv(x, w, b)", x=[1, 1, 3, 3], w=noise(1, 1, 1, 1), b=noise(1, seed=1)),
    "concat with a constant of one": made("y = Concat(x, c, axis=0)", x=[3], c=noise(1)),
    "a quotient of a constant of one": made("y = Div(c, x)", x=[3], c=noise(1)),
}
