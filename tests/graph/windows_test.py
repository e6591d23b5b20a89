"""What windows, products and slices must not do: multiply with zeros that stand for no element, copy, drop a turn."""

import numpy as np
import pytest
from graph_tools import around, only_function, parse

from stepwell.dialects.evaluate import evaluate
from stepwell.dialects.graph.windows import Sliding
from stepwell.passes.context import CompileContext
from stepwell.passes.decompose import Decompose
from stepwell.passes.fold import Fold

GROUPS = (
    "%2 = graph.conv %0, %1 {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 4}"
    " : (tensor<1x12x6x6xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x6x6xf32>"
)
SPREAD = (
    "%2 = graph.conv_transpose %0, %1 {strides = [3, 2], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 1}"
    " : (tensor<1x2x4x5xf32>, tensor<2x3x2x3xf32>) -> tensor<1x3x11x11xf32>"
)
SHARED = (
    "%2 = graph.matmul %0, %1 {trans_b = true}"
    " : (tensor<2x3x4x5x16xf32>, tensor<2x3x1x7x16xf32>) -> tensor<2x3x4x5x7xf32>"
)
TURNED = "%1 = graph.slice %0 {starts = [2, 0], sizes = [3, 4], steps = [-1, 1]} : (tensor<3x4xf32>) -> tensor<3x4xf32>"


def function(example: str) -> str:
    """A function that returns the result of an example."""
    name, kind = example.partition(" = ")[0], example.rpartition("-> ")[2]
    head, _, tail = around(example).partition(") {")
    return f"{head}) -> {kind} {{{tail.replace('func.return', f'func.return {name} : {kind}')}"


def run(example: str, *inputs: np.ndarray) -> np.ndarray:
    (found,) = evaluate(parse(function(example)), inputs)
    return found


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_is_not_finite_stays_in_its_group(value: float) -> None:
    random = np.random.default_rng(1)
    x, w = (random.standard_normal(size).astype(np.float32) for size in ((1, 12, 6, 6), (8, 3, 3, 3)))
    x[0, 4, 2, 2] = value
    finite = np.isfinite(run(GROUPS, x, w)).all(axis=(0, 2, 3))
    np.testing.assert_array_equal(finite, np.arange(8) // 2 != 1)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_is_not_finite_stays_in_its_window(value: float) -> None:
    random = np.random.default_rng(2)
    x, w = (random.standard_normal(size).astype(np.float32) for size in ((1, 2, 4, 5), (2, 3, 2, 3)))
    x[0, 1, 2, 1] = value
    places = np.argwhere(~np.isfinite(run(SPREAD, x, w)[0, 0]))
    assert places.tolist() == [[row, column] for row in (6, 7) for column in (2, 3, 4)]


def reads(window: Sliding, size: int) -> list[list[int]]:
    """The places of the operand that each window over one axis reads, in order."""
    (count,), (stride, before, dilation) = (
        window.extents([size]),
        (window.strides[0], window.before[0], window.dilations[0]),
    )
    taps = [[o * stride - before + tap * dilation for tap in range(window.kernel[0])] for o in range(count)]
    return [[place for place in places if 0 <= place < size] for places in taps]


def test_a_trimmed_window_reads_the_same_places() -> None:
    random, trimmed = np.random.default_rng(3), 0
    for _ in range(3000):
        size, kernel, stride, dilation = (int(random.integers(1, most)) for most in (9, 30, 12, 9))
        before, after = random.integers(0, 40, 2).tolist()
        window = Sliding((kernel,), (stride,), (before,), (after,), (dilation,))
        if size + before + after < window.reach[0]:
            continue
        least = window.trimmed([size])
        trimmed += least != window
        assert reads(least, size) == reads(window, size)
        assert min(*least.before, *least.after) >= 0
        assert 1 <= least.kernel[0] <= min(kernel, (size - 2 + stride * len(reads(window, size))) // dilation + 2)
    assert trimmed > 500


def test_queries_that_share_a_key_are_rows() -> None:
    module = parse(function(SHARED))
    Decompose().apply(CompileContext(), module)
    names = [op.name for op in only_function(module).body.block.ops]
    assert "graph.matmul" in names
    assert "graph.expand" not in names


def test_a_slice_that_turns_an_axis_is_kept() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    module = parse(function(TURNED))
    Fold().apply(CompileContext(), module)
    np.testing.assert_array_equal(evaluate(module, [x])[0], x[::-1])
