"""Constants keep every bit through text, and convolutions agree with the numerics bit for bit."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from graph_tools import parse
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from stepwell.dialects.evaluate import evaluate
from stepwell.dialects.graph.constants import ConstantOp, WeightOp, constant, constant_value
from stepwell.dialects.graph.conv import ConvOp
from stepwell.dialects.graph.op import f16
from stepwell.dialects.weights import WeightStore
from stepwell.frontend.builder import GraphBuilder
from stepwell.runtime.numerics import host

Array = NDArray[Any]
SPECIAL = [0.0, -0.0, 1.5, -2.25, 1e-5, 0.1, np.inf, -np.inf, np.nan]
ARRAYS: list[Array] = [
    *(np.array(SPECIAL).astype(kind) for kind in (np.float32, np.float16, ml_dtypes.bfloat16)),
    np.array([1e-12, 1e-45, 3.4e38, -1e9], np.float32),
    np.array([[True, False], [False, True]]),
    np.array([-128, 127], np.int8),
    np.array([0, 255], np.uint8),
    np.array([-(2**31), 2**31 - 1], np.int32),
    np.array([-(2**63), 2**63 - 1], np.int64),
    np.array(3.0, np.float32),
    np.array(-np.inf, np.float32),
    np.full((2, 2), np.inf, np.float16),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_a_constant_keeps_every_bit_through_text(array: Array) -> None:
    op = ConstantOp.of(array)
    op.verify()
    assert op.array.tobytes() == array.tobytes()
    (again,) = parse(str(ModuleOp([op]))).body.block.ops
    assert isinstance(again, ConstantOp)
    assert again.array.dtype == array.dtype
    assert again.array.tobytes() == array.tobytes()


def test_a_large_constant_goes_to_the_store() -> None:
    store, array = WeightStore(), np.arange(100, dtype=np.float16)
    op = constant(array, store)
    assert isinstance(op, WeightOp)
    found = constant_value(op.result, store)
    assert found is not None
    np.testing.assert_array_equal(found, array)
    assert constant_value(op.result, None) is None


@pytest.mark.parametrize("groups", [1, 2, 40])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_a_convolution_has_the_bits_of_the_numerics(groups: int, kind: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 40, 9, 8)).astype(kind)
    weight = rng.standard_normal((40, 40 // groups, 3, 3)).astype(kind)
    bias = rng.standard_normal(40).astype(np.float32)
    b = GraphBuilder()
    value = b.input("x", x.shape, f16) if kind == np.float16 else b.input("x", x.shape)
    window: dict[str, Any] = {"strides": [2, 1], "pads": [1, 0, 1, 2], "groups": groups}
    b.output("y", b(ConvOp, value, b.constant(weight), b.constant(bias), **window))
    (found,) = evaluate(b.module(), [x], b.weights)
    wanted = host.conv2d(
        x.transpose(0, 2, 3, 1), weight.transpose(2, 3, 1, 0), bias, (2, 1), (1, 0, 1, 2), groups=groups
    )
    assert found.dtype == kind
    assert found.tobytes() == np.ascontiguousarray(wanted.transpose(0, 3, 1, 2)).tobytes()
