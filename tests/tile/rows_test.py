"""Reductions of rows: the vector engine takes all rows of a tile at once, as it takes columns."""

import numpy as np
import pytest
from onnx_models import text_model

import stepwell
from stepwell.runtime.device import Device


def cycles(text: str, size: tuple[int, int]) -> float:
    result = [n for n, op in zip(size, ("rows", "columns"), strict=True) if op not in text]
    made = text_model(
        f"y = {text}",
        f"float[{size[0]},{size[1]}] x",
        f"float[{result[0]}] y",
        rows=np.array([0]),
        columns=np.array([1]),
    )
    artifact = stepwell.compile(made, target="edge", precision="fp32", cores=1)
    model = Device(artifact.target).load(artifact)
    x = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    axis = 0 if "rows" in text else 1
    found = model.run({"x": x})["y"]
    np.testing.assert_allclose(found, x.astype(np.float64).sum(axis), rtol=1e-5, atol=1e-5)
    return model.profile().cycles


@pytest.mark.parametrize("width", [2, 3, 12, 100])
def test_many_short_rows_take_as_long_as_columns(width: int) -> None:
    by_row = cycles("ReduceSum <keepdims = 0> (x, columns)", (2048, width))
    by_column = cycles("ReduceSum <keepdims = 0> (x, rows)", (width, 2048))
    assert by_row < 1.5 * by_column
