"""Reductions against the oracle, whole and in pieces."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import oracle
import pytest

from stepwell.runtime.numerics import host, reduction, vector
from stepwell.runtime.numerics.dtype import DType
from stepwell.runtime.numerics.functions import RFN

SHAPES = [(3, 1, 1), (3, 7, 1), (2, 100, 1), (2, 2500, 1), (3, 50, 40), (2, 30, 5), (1, 9, 700), (2, 0, 3)]
KINDS = [DType.F16, DType.BF16, DType.F32, DType.I8, DType.U8, DType.I32]


def numbers(shape: tuple[int, ...], kind: DType, seed: int = 0) -> npt.NDArray[np.generic]:
    rng = np.random.default_rng(seed)
    if kind.is_float:
        return oracle.cast((rng.standard_normal(shape) * 2).astype(np.float32), kind.numpy).reshape(shape)
    return rng.integers(-100, 100, shape).astype(kind.numpy)


def run(
    fn: RFN, x: npt.NDArray[np.generic], dtype: DType, cuts: list[int] | None = None
) -> tuple[npt.NDArray[np.generic], list[int]]:
    """Reduces axis 1 of x[n0, n1, n2] in pieces that end at `cuts`."""
    n0, n1, n2 = x.shape
    out = np.zeros((n0, n2), dtype.numpy)
    state = np.full((n0, n2, 8), 77, np.float32 if DType.of(x).is_float else np.int32)
    scratch, counters = np.empty(vector.SCRATCH_BYTES, np.uint8), np.zeros(3, np.int64)
    carry = np.full((n0, n2, 8), 77, np.int64)
    ends = [0, *(cuts or []), n1]
    for start, end in pairwise(ends):
        piece = x[:, start:end]
        reduction.vreduce(
            int(fn), n0, end - start, n2, out.ctypes.data, out.strides[0], out.strides[1], int(dtype),
            piece.ctypes.data, piece.strides[0], piece.strides[1], piece.strides[2], int(DType.of(x)),
            state.ctypes.data, carry.ctypes.data, start, int(start == 0), int(end == n1),
            scratch.ctypes.data, counters.ctypes.data,
        )  # fmt: skip
    return out, counters.tolist()


@pytest.mark.parametrize("fn", list(RFN), ids=lambda fn: fn.name)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_lanes_and_tree(fn: RFN, kind: DType) -> None:
    for shape in SHAPES:
        x = numbers(shape, kind)
        expected = oracle.reduce(fn.name.lower(), np.moveaxis(x, 1, 0), kind.numpy)
        found, _ = run(fn, x, kind)
        assert np.array_equal(found, expected, equal_nan=kind.is_float), shape
        for layout in (np.asfortranarray(x), x.transpose(2, 1, 0).copy().transpose(2, 1, 0)):
            assert np.array_equal(run(fn, layout, kind)[0], expected, equal_nan=kind.is_float), shape


@pytest.mark.parametrize("kind", [DType.F16, DType.F32, DType.I32], ids=str)
@pytest.mark.parametrize("cuts", [[8], [8, 16, 24], [40], [16, 1024]], ids=str)
def test_pieces_change_no_bit(kind: DType, cuts: list[int]) -> None:
    for shape in [(2, 1100, 1), (2, 1100, 19), (1, 1100, 3)]:
        x = numbers(shape, kind, 1)
        for fn in RFN:
            whole, pieces = run(fn, x, DType.F32), run(fn, x, DType.F32, cuts)
            assert np.array_equal(whole[0], pieces[0], equal_nan=True)
            assert whole[1] == pieces[1]


@pytest.mark.parametrize("width", [1, 20])
def test_invalid_counts_where_the_nan_arises(width: int) -> None:
    x = np.zeros((1, 64, width), np.float32)
    x[0, 3, 0], x[0, 11, 0] = np.inf, -np.inf
    for cuts in (None, [8], [16], [8, 40]):
        found, counts = run(RFN.SUM, x, DType.F32, cuts)
        assert np.isnan(found[0, 0])
        assert counts == [0, 1, 0], cuts
    x[0, 20, 0] = np.nan
    assert run(RFN.SUM, x, DType.F32)[1] == [0, 0, 0], "an operand is NaN"
    x[0, :, 0] = 60000
    assert run(RFN.SUM, x.astype(np.float16), DType.F16)[1] == [1, 0, 0]


def test_signed_zeros_and_nans() -> None:
    x = np.array([[-0.0, 0.0, np.nan], [-0.0, -0.0, 1], [-0.0, 0.0, np.inf]], np.float32)
    assert np.signbit(host.reduce(RFN.MAX, x, (0,))).tolist() == [True, False, False]
    assert np.signbit(host.reduce(RFN.MIN, x, (0,))).tolist() == [True, True, False]
    assert np.isnan(host.reduce(RFN.MAX, x, (0,))).tolist() == [False, False, True]
    assert not np.signbit(host.reduce(RFN.SUM, x, (0,))[0])


@pytest.mark.parametrize("axes", [(0,), (2,), (-1,), (0, 1), (1, 2), (0, 2), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_several_axes_are_one_in_row_major_order(axes: tuple[int, ...], keepdims: bool) -> None:
    x = numbers((5, 13, 21), DType.F16)
    reduced = tuple(sorted(axis % 3 for axis in axes))
    kept = [axis for axis in range(3) if axis not in reduced]
    rows = x.transpose(*reduced, *kept).reshape(-1, *(x.shape[axis] for axis in kept))
    shape = x.sum(axes, keepdims=keepdims).shape
    expected = oracle.reduce("sum", rows, np.float32).reshape(shape)
    assert np.array_equal(host.reduce(RFN.SUM, x, axes, keepdims, DType.F32), expected)


def test_i64_is_refused() -> None:
    with pytest.raises(ValueError, match="i64 is a type of the border only"):
        host.reduce(RFN.SUM, np.zeros(3, np.int64), (0,))


WIDE_CUTS = [None, [8], [16, 40], [8, 16, 24, 32, 40, 48, 56]]


@pytest.mark.parametrize("width", [1, 3, 20])
@pytest.mark.parametrize("cuts", WIDE_CUTS, ids=str)
def test_a_sum_counts_once_if_32_bits_do_not_hold_it(width: int, cuts: list[int] | None) -> None:
    x = np.random.default_rng(3).integers(-(2**31), 2**31, (5, 64, width)).astype(np.int32)
    x[0], x[1] = 0, 0
    x[0, 3], x[0, 50] = 2**31 - 1, 0  # the largest that fits
    x[1, 3], x[1, 50, 0] = 2**31 - 1, 1  # one more, in another lane
    x[2, ::2], x[2, 1::2] = 2**31 - 1, -(2**31) + 1  # lanes of ±2³¹·8 that cancel
    exact = x.astype(np.int64).sum(axis=1)
    found, counts = run(RFN.SUM, x, DType.I32, cuts)
    assert np.array_equal(found, exact.astype(np.int32))
    assert counts == [0, 0, int((exact != exact.astype(np.int32)).sum())]
    assert 0 < counts[2] < 5 * width


@pytest.mark.parametrize("width", [1, 3, 20])
@pytest.mark.parametrize("cuts", WIDE_CUTS, ids=str)
def test_a_product_counts_once_if_32_bits_do_not_hold_it(width: int, cuts: list[int] | None) -> None:
    x = np.ones((6, 64, width), np.int32)
    x[0, ::2] = 2**20  # 2⁶⁴⁰: modulo 2⁶⁴ it is 0
    x[1, ::2], x[1, 41] = 2**20, 0  # 0 after all
    x[2, 3], x[2, 30] = 2**30, -2  # −2³¹ fits
    x[3, 3], x[3, 30] = 2**30, 2  # 2³¹ does not
    x[4, 5], x[4, 13], x[4, 60] = 65536, 65536, 3  # 3·2³²
    found, counts = run(RFN.PROD, x, DType.I32, cuts)
    assert found[:, 0].tolist() == [0, 0, -(2**31), -(2**31), 0, 1]
    assert counts == [0, 0, 3 * width]


def test_largest_and_smallest_fit() -> None:
    x = np.array([[[-(2**31)], [2**31 - 1]]], np.int32)
    for fn, cuts in ((RFN.MAX, None), (RFN.MIN, None)):
        assert run(fn, x, DType.I32, cuts)[1] == [0, 0, 0]
