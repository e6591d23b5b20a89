"""Contractions, convolutions, pooling and attention against the oracle."""

from typing import Any

import numpy as np
import numpy.typing as npt
import oracle
import pytest

from stepwell.runtime.numerics import contract, host
from stepwell.runtime.numerics.dtype import DType
from stepwell.runtime.numerics.functions import FN, RFN

Array = npt.NDArray[Any]


def numbers(shape: tuple[int, ...], kind: DType, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    if kind.is_float:
        return oracle.cast(rng.standard_normal(shape).astype(np.float32), kind.numpy)
    return rng.integers(np.iinfo(kind.numpy).min, np.iinfo(kind.numpy).max, shape, endpoint=True).astype(kind.numpy)


@pytest.mark.parametrize("kind", [DType.F16, DType.BF16, DType.F32, DType.I8], ids=str)
@pytest.mark.parametrize("m", [1, 3, 4, 13, 24])
def test_matmul(kind: DType, m: int) -> None:
    for k, n in ((1, 1), (7, 16), (33, 21), (64, 150), (5, 140)):
        a, b = numbers((m, k), kind), numbers((k, n), kind, 1)
        found = host.matmul(a, b, dtype=DType.F32 if kind.is_float else DType.I32)
        assert np.array_equal(found, oracle.contract(a, b)), (k, n)
        bias = numbers((n,), DType.F32 if kind.is_float else DType.I32, 2)
        natural = kind if kind.is_float else DType.I32
        assert np.array_equal(host.matmul(a, b, bias), oracle.matmul(a, b, bias, natural.numpy)), (k, n)


def test_segments_are_summed_apart() -> None:
    a, b = numbers((2, 5000), DType.F16), numbers((5000, 3), DType.F16, 1)
    assert np.array_equal(host.matmul(a, b, dtype=DType.F32), oracle.contract(a, b))


def test_batches_broadcast() -> None:
    a, b = numbers((2, 1, 5, 9), DType.F16), numbers((3, 9, 4), DType.F16, 1)
    found = host.matmul(a, b)
    for i, j in np.ndindex(2, 3):
        assert np.array_equal(found[i, j], oracle.matmul(a[i, 0], b[j], None, np.float16))
    assert np.array_equal(host.matmul(a, b[0, :, 0]), host.matmul(a, b[0, :, :1])[..., 0])
    assert np.array_equal(host.matmul(a[0, 0, 0], b[0]), host.matmul(a[0, 0, :1], b[0])[0])
    with pytest.raises(ValueError, match=r"contracted extents differ \(found 9 and 4\)"):
        host.matmul(a, a[..., :4, :])


def test_a_fused_step_rounds_once() -> None:
    a, b, c = (
        np.array([1 + 2**-12], np.float32),
        np.array([1 + 2**-12], np.float32),
        np.array([2**-25 + 2**-40], np.float32),
    )
    assert oracle.fma(a, b, c)[0] != np.float32(a * b) + c
    left, right = np.stack([c, a], axis=1), np.stack([np.array([1], np.float32), b])
    assert host.matmul(left, right)[0, 0] == oracle.fma(a, b, c)[0]


def gemm(a: Array, b: Array, c: Array, init: bool) -> None:
    contract.gemm(
        a.ctypes.data, a.strides[0] // 4, b.ctypes.data, b.strides[0] // 4, c.ctypes.data, c.strides[0] // 4,
        a.shape[0], a.shape[1], b.shape[1], int(init),
    )  # fmt: skip


def test_tiles_change_no_bit() -> None:
    m, k, n = 61, 96, 112
    a, b = numbers((m, k), DType.F32), numbers((k, n), DType.F32, 1)
    whole = np.empty((m, n), np.float32)
    gemm(a, b, whole, True)
    rng = np.random.default_rng(2)
    for _ in range(10):
        c = np.full((m, n), np.nan, np.float32)
        tm, tk, tn = (int(rng.integers(1, limit)) * scale for limit, scale in ((40, 1), (60, 1), (5, 16)))
        for i in range(0, m, tm):
            for j in range(0, n, tn):
                for p in range(0, k, tk):
                    gemm(a[i : i + tm, p : p + tk], b[p : p + tk, j : j + tn], c[i : i + tm, j : j + tn], p == 0)
        assert np.array_equal(c, whole)


def test_special_values_stay_in_their_results() -> None:
    a, b = numbers((4, 8), DType.F16), numbers((8, 5), DType.F16)
    a[1, 2], b[3, 4] = np.inf, np.nan
    found, expected = host.matmul(a, b), oracle.matmul(a, b, None, np.float16)
    assert found.tobytes() == expected.tobytes()
    counters = np.zeros(3, np.int64)
    host.matmul(np.full((2, 9), 200, np.float16), np.full((9, 2), 200, np.float16), counters=counters)
    assert counters.tolist() == [4, 0, 0]


CONVOLUTIONS = {
    "plain": ((2, 6, 7, 5), (3, 3, 5, 6), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "first layer": ((1, 9, 9, 3), (3, 3, 3, 8), (2, 2), (1, 1, 1, 1), (1, 1), 1),
    "two blocks of channels": ((1, 5, 5, 20), (3, 2, 20, 3), (1, 2), (1, 0, 0, 1), (1, 1), 1),
    "dilated": ((1, 8, 9, 4), (3, 3, 4, 2), (1, 1), (2, 1, 0, 2), (2, 3), 1),
    "groups": ((1, 5, 6, 12), (3, 3, 6, 4), (1, 1), (1, 1, 1, 1), (1, 1), 2),
    "depthwise": ((2, 6, 7, 18), (3, 3, 1, 18), (2, 1), (1, 1, 1, 1), (1, 1), 18),
    "depthwise, two outputs": ((1, 5, 5, 3), (3, 3, 1, 6), (1, 1), (1, 1, 1, 1), (1, 1), 3),
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
@pytest.mark.parametrize("kind", [DType.F16, DType.F32, DType.I8], ids=str)
def test_convolutions(case: str, kind: DType) -> None:
    x_shape, w_shape, strides, pads, dilations, groups = CONVOLUTIONS[case]
    x, w = numbers(x_shape, kind), numbers(w_shape, kind, 1)
    dtype = DType.F32 if kind.is_float else DType.I32
    found = host.conv2d(x, w, None, strides, pads, dilations, groups, dtype)
    assert np.array_equal(found, oracle.conv2d(x, w, strides, pads, dilations, groups, dtype.numpy))
    bias = numbers((w_shape[3],), dtype, 2)
    biased = host.conv2d(x, w, bias, strides, pads, dilations, groups)
    assert np.array_equal(biased, oracle.cast(found + bias, biased.dtype))


def test_a_depthwise_inf_stays_in_its_channel() -> None:
    x, w = numbers((1, 4, 4, 5), DType.F16), numbers((3, 3, 1, 5), DType.F16)
    x[..., 2] = np.inf
    assert np.isfinite(host.conv2d(x, w, groups=5)[..., [0, 1, 3, 4]]).all()


@pytest.mark.parametrize("include_pad", [False, True])
@pytest.mark.parametrize("output", [(3, 4), (4, 4)])
def test_pools(include_pad: bool, output: tuple[int, int]) -> None:
    x = numbers((2, 7, 8, 5), DType.F16)
    kernel, strides, pads = (3, 2), (2, 2), (1, 0, 0, 1)
    expected = oracle.pool2d("avg", x, kernel, strides, pads, output, include_pad, np.float16)
    found = host.avg_pool2d(x, kernel, strides, pads, (1, 1), include_pad, output)
    assert np.array_equal(found, expected)
    expected = oracle.pool2d("max", x, kernel, strides, pads, output, include_pad, np.float16)
    assert np.array_equal(host.max_pool2d(x, kernel, strides, pads, (1, 1), output), expected)


def _exp(x: Array) -> Array:
    return host.elementwise(FN.EXP, np.ascontiguousarray(x))


def _attention(q: Array, k: Array, v: Array, scale: float, mask: npt.NDArray[np.bool_]) -> Array:
    """Section 7 from the kernels: what the evaluator and the emulator do."""
    m = np.full((q.shape[0], 1), np.finfo(np.float32).min, np.float32)
    total, out = np.zeros_like(m), np.zeros((q.shape[0], v.shape[1]), np.float32)
    for start in range(0, k.shape[0], 128):
        part = slice(start, start + 128)
        if not mask[:, part].any():
            continue
        scores = host.elementwise(FN.MUL, host.matmul(q, k[part].T, dtype=DType.F32), np.array([scale], np.float32))
        scores = host.elementwise(FN.WHERE, mask[:, part], scores, float("-inf"))
        larger = host.elementwise(FN.MAX, m, host.reduce(RFN.MAX, scores, (1,), True))
        p = _exp(host.elementwise(FN.SUB, scores, larger))
        shrink = _exp(host.elementwise(FN.SUB, m, larger))
        total = host.elementwise(FN.ADD, host.elementwise(FN.MUL, total, shrink), host.reduce(RFN.SUM, p, (1,), True))
        product = host.matmul(host.cast(p, DType.F16), v[part], dtype=DType.F32)
        out = host.elementwise(FN.ADD, host.elementwise(FN.MUL, out, shrink), product)
        m = larger
    empty = host.elementwise(FN.EQ, total, 0.0)
    return host.elementwise(FN.WHERE, empty, 0.0, host.elementwise(FN.DIV, out, total))


def test_attention_and_its_masked_blocks() -> None:
    q, k, v = numbers((6, 32), DType.F16), numbers((300, 32), DType.F16, 1), numbers((300, 16), DType.F16, 2)
    mask = np.random.default_rng(3).random((6, 300)) < 0.7
    mask[:, 128:256] = False  # skipped by one of the two
    mask[4] = False
    found = _attention(q, k, v, 0.17, mask)
    assert np.array_equal(found, oracle.attention(q, k, v, 0.17, mask, _exp))
    assert not found[4].any()
    scores = np.where(mask, q.astype(np.float64) @ k.T.astype(np.float64) * 0.17, -np.inf)[:4]
    weights = np.exp(scores - scores.max(1, keepdims=True))
    assert np.allclose(found[:4], weights @ v / weights.sum(1, keepdims=True), atol=2e-3)
