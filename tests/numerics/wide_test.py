"""Integers that 32 bits do not hold are counted (docs/numerics.md §8): functions at their bounds, casts, the rest."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from stepwell.runtime.numerics import host
from stepwell.runtime.numerics.dtype import DType
from stepwell.runtime.numerics.functions import FN, RFN

LOW, HIGH = -(2**31), 2**31 - 1


def counted(fn: FN, *operands: Any, **keywords: Any) -> list[int]:
    """The counters of one call."""
    counters = np.zeros(3, np.int64)
    host.elementwise(fn, *(np.array(x, np.int32) for x in operands), counters=counters, **keywords)
    return counters.tolist()


@pytest.mark.parametrize(
    ("fn", "operands", "wide"),
    [
        (FN.ADD, ([HIGH - 1, HIGH, LOW + 1, LOW], [1, 1, -1, -1]), 2),
        (FN.SUB, ([HIGH - 1, HIGH, LOW + 1, LOW], [-1, -1, 1, 1]), 2),
        (FN.MUL, ([2**30, 2**30, 2**16, 46340, 46341, LOW], [-2, 2, 2**16, 46340, 46341, -1]), 4),
        (FN.NEG, ([HIGH, LOW, 0],), 1),
        (FN.ABS, ([HIGH, LOW, LOW + 1],), 1),
        (FN.DIV, ([LOW, LOW, HIGH, 1], [-1, 1, -1, 0]), 1),
        (FN.MOD, ([LOW, HIGH, 1], [-1, LOW, 0]), 0),
        (FN.POW, ([2, 2, -2, -2, 2, 2, 3, 3, 0, 5], [30, 31, 31, 32, 32, 64, 19, 20, 99, -1]), 5),
        (FN.AFFINE, ([2**20, 2**20, 3], [2**11, 2**11, 4], [-1, 0, 5]), 1),
        (FN.MAX, ([LOW, HIGH], [HIGH, LOW]), 0),
        (FN.XOR, ([LOW, HIGH], [HIGH, -1]), 0),
        (FN.RELU, ([LOW, HIGH],), 0),
        (FN.COPY, ([LOW, HIGH],), 0),
        (FN.SIGN, ([LOW, HIGH],), 0),
    ],
    ids=lambda value: value.name if isinstance(value, FN) else "",
)
def test_integer_functions_at_their_bounds(fn: FN, operands: tuple[list[int], ...], wide: int) -> None:
    assert counted(fn, *operands) == [0, 0, wide]


def test_rows_and_strides_count_each_result_once() -> None:
    x = np.zeros((70, 90), np.int32)
    x[::7, ::3] = HIGH
    for view in (x, x.T, x[:, ::2], x[::3, 5:61]):
        assert counted(FN.ADD, view, 1) == [0, 0, int((view == HIGH).sum())]


def cast(values: list[float] | npt.NDArray[Any], kind: Any, dtype: DType) -> list[int]:
    """The counters of a cast."""
    counters = np.zeros(3, np.int64)
    host.cast(np.array(values, kind), dtype, counters)
    return counters.tolist()


def test_casts_of_floats_beyond_32_bits() -> None:
    fits = [2147483520.0, -2147483648.0, 0.5, np.nan]  # the largest f32 below 2³¹; NaN is 0
    beyond = [2147483648.0, -2147483904.0, 1e30, np.inf, -np.inf]
    assert cast(fits, np.float32, DType.I32) == [0, 0, 0]
    assert cast(fits + beyond, np.float32, DType.I32) == [0, 0, 5]
    assert cast([65504, np.inf], np.float16, DType.I32) == [0, 0, 1]


def test_other_types_are_not_counted_as_wide() -> None:
    assert cast([1e30, -1e30], np.float32, DType.I8) == [0, 0, 0], "clamped"
    assert cast([300, HIGH], np.int32, DType.U8) == [0, 0, 0], "modulo 2⁸, as ONNX has it"
    assert cast([HIGH], np.int32, DType.F32) == [0, 0, 0]
    assert cast([HIGH], np.int32, DType.F16) == [1, 0, 0], "an overflow of floats"
    counters = np.zeros(3, np.int64)
    host.elementwise(FN.ADD, np.array([127], np.int8), np.array([127], np.int8), counters=counters)
    host.elementwise(FN.MUL, np.array([3e38], np.float32), np.array([3e38], np.float32), counters=counters)
    assert counters.tolist() == [0, 0, 0]


def test_counting_adds_up_all_that_is_inside() -> None:
    x = np.array([HIGH, 1], np.int32)
    with host.counting() as counts:
        host.elementwise(FN.ADD, x, x)
        host.reduce(RFN.SUM, x, (0,))
        with host.counting() as inner:
            host.cast(np.array([7e4], np.float32), DType.F16)
        assert inner.tolist() == [1, 0, 0]
    host.elementwise(FN.ADD, x, x)
    assert counts.tolist() == [0, 0, 2]
