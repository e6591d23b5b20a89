"""The tile evaluator: bounds, arguments, slots, and what it has in common with numpy."""

import numpy as np
import pytest
from tile import kernels
from tile.harness import inputs

from stepwell.dialects.evaluate_tile import EvaluationError, evaluate_kernel, prepare
from stepwell.dialects.tile import BufferType
from stepwell.dialects.tile.builder import KernelBuilder


def test_a_box_that_leaves_its_buffer_is_named() -> None:
    k = KernelBuilder("tail")
    x = k.argument((100,), "f16")
    with k.loop(100, 32) as i:
        t = k.alloc((32,), "f16", "ub")
        k.load(t[0], x[i], (32,))
    rule = r"tile.kernel @tail: op 0, tile.load: src lies within its 100 elements .found 96 to 127."
    with pytest.raises(EvaluationError, match=rule):
        evaluate_kernel(k.finish(), [np.zeros(100, np.float16)])


def test_image_rows_outside_the_panel_are_named() -> None:
    k = KernelBuilder("panel")
    panel, a = k.alloc((2, 4, 16), "f16", "l1"), k.alloc((8, 144), "f16", "l0a")
    geometry = {"m0": 0, "k0": 0, "ow": 4, "kh": 3, "kw": 3, "channels": 16, "c0": 16, "ph": 1, "pw": 1}
    k.im2col(a[0, 0], panel[0, 0, 0], (8, 144), **geometry, row0=0, h=4, w=4)
    with pytest.raises(EvaluationError, match=r"tile.im2col: src lies within its 128 elements .found 0 to 191."):
        evaluate_kernel(k.finish(), [])


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ([], r"tile.kernel @update: 1 arguments .found 0."),
        ([3], r"argument 0: a contiguous, writeable array of f16 .found int."),
        ([np.zeros(8, np.float16)], r"argument 0: 512 elements of f16 .found 8 of float16."),
        ([np.zeros((16, 32), np.float32)], r"argument 0: 512 elements of f16 .found 512 of float32."),
        ([np.zeros((32, 16), np.float16).T], r"argument 0: a contiguous, writeable array"),
    ],
)
def test_arguments_must_fit(arguments: list[object], rule: str) -> None:
    with pytest.raises(EvaluationError, match=rule):
        evaluate_kernel(kernels.update(16), arguments)  # type: ignore[arg-type]


def test_scalars_bound_loops_and_place_boxes() -> None:
    """The first n rows of x are negated, rows beyond stay."""
    k = KernelBuilder("scalar")
    x, n = k.argument((8, 4), "f32"), k.scalar()
    with k.loop(n, 2) as i:
        t = k.alloc((2, 4), "f32", "ub", 2)
        extents = (k.clamp(n - i, 2), 4)
        k.load(t[0, 0], x[i, 0], extents)
        k.map("neg", t[0, 0], t[0, 0], extents=extents)
        k.store(x[i, 0], t[0, 0], extents)
    kernel = prepare(k.finish())
    for rows in (0, 1, 5, 8):
        values = np.arange(32, dtype=np.float32).reshape(8, 4)
        expected = np.where(np.arange(8)[:, None] < rows, -values, values)
        kernel.run([values, rows])
        assert np.array_equal(values, expected)


def test_slots_keep_what_earlier_iterations_wrote() -> None:
    """y[i] = x[i − 2]: with three slots the one of two iterations ago is still there."""
    k = KernelBuilder("late")
    x, y = k.argument((8,), "f32"), k.argument((8,), "f32")
    with k.loop(8) as i:
        t = k.alloc((1,), "f32", "ub", 3)
        k.load(t[0], x[i], (1,))
        k.store(y[i], t.box(0, 1, ago=2), (k.clamp(i - 1, 1),))
    values, result = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    evaluate_kernel(k.finish(), [values, result])
    assert result.tolist() == [0, 0, 0, 1, 2, 3, 4, 5]


def test_convolution_agrees_with_its_definition() -> None:
    kernel = kernels.convolution(9, 6, 16, 20)
    arrays = inputs(kernel)
    evaluate_kernel(kernel, arrays, kernels.CORES)
    x = np.pad(arrays[0].astype(np.float64), ((1, 1), (1, 1), (0, 0)))
    w = arrays[1].astype(np.float64).reshape(3, 3, 16, 20)
    exact = sum(x[i : i + 9, j : j + 6] @ w[i, j] for i in range(3) for j in range(3))
    assert np.abs(arrays[2].reshape(9, 6, 20) - np.clip(exact, 0, 6)).max() < 0.01


def test_depthwise_agrees_with_its_definition() -> None:
    kernel = kernels.depthwise(7, 5, 1, rows=2)
    arrays = inputs(kernel)
    evaluate_kernel(kernel, arrays, kernels.CORES)
    x = np.pad(arrays[0].astype(np.float64), ((1, 1), (1, 1), (0, 0)))
    w = arrays[1].astype(np.float64).reshape(3, 3, 16)
    exact = sum(x[i : i + 7, j : j + 5] * w[i, j] for i in range(3) for j in range(3))
    assert np.abs(arrays[2].reshape(7, 5, 16) - exact).max() < 0.01


def test_softmax_agrees_with_its_definition() -> None:
    kernel = kernels.softmax(20, 150)
    arrays = inputs(kernel)
    evaluate_kernel(kernel, arrays)
    e = np.exp(arrays[0].astype(np.float64) - arrays[0].max(axis=1, keepdims=True))
    assert np.abs(arrays[1] - e / e.sum(axis=1, keepdims=True)).max() < 1e-3


def test_rows_of_l0b_and_l0c_are_padded() -> None:
    assert BufferType.of((3, 20), "f32", "l0c").strides == (32, 1)
    assert BufferType.of((3, 20), "f16", "l0b").bytes == 3 * 32 * 2
    assert BufferType.of((3, 20), "f16", "l0a").strides == (20, 1)
