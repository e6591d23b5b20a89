"""Rows that are added where indices say, many of them: a product, in which no infinity leaves its place."""

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx_models import text_model

import stepwell
from stepwell.driver.agreement import onnxruntime_run
from stepwell.frontend import indexed

Array = NDArray[Any]
RNG = np.random.default_rng(6)
PLACES, ROWS, WIDTH = 9, 40, 5
X = RNG.standard_normal((PLACES, WIDTH)).astype(np.float32)
U = RNG.standard_normal((ROWS, WIDTH)).astype(np.float32)
INDEX = RNG.integers(-PLACES, PLACES, ROWS)


def model(text: str, update: str = "float[40,5]", **constants: Array) -> onnx.ModelProto:
    last = {"last": np.array([-1]), "size": np.array([ROWS, WIDTH])}
    used: dict[str, Any] = {name: value for name, value in (last | constants).items() if name in text}
    inputs = f"float[9,5] x, {update} u" + ("" if "index" in used else ", int64[40] index")
    return text_model(text, inputs, "float[9,5] y", **used)


ADD = 'y = ScatterElements <axis = 0, reduction = "add"> (x, wide, u)'
EXPANDED = model(f"i = Unsqueeze(index, last) wide = Expand(i, size) {ADD}")
FORMS = {
    "elements": EXPANDED,
    "rows": model('i = Unsqueeze(index, last) y = ScatterND <reduction = "add"> (x, i, u)'),
    "known": model(ADD.replace("wide", "index"), index=np.repeat(INDEX[:, None], WIDTH, 1)),
    "fewer columns": model(
        f"i = Unsqueeze(index, last) wide = Expand(i, size) {ADD}", "float[40,3]", size=np.array([ROWS, 3])
    ),
}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is small goes by products as well."""
    monkeypatch.setattr(indexed, "MOST_COMPARED", 100)


def ops(made: onnx.ModelProto) -> set[str]:
    return {op.name for op in stepwell.lower(made, to="graph", target="tiny", precision="fp32").walk()}


def run(made: onnx.ModelProto, feeds: dict[str, Array], precision: str = "fp32") -> tuple[Array, Array]:
    artifact = stepwell.compile(made, target="tiny", precision=precision, host=False)
    return stepwell.run(artifact, feeds)["y"], onnxruntime_run(made, feeds)["y"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("precision", "allowed"), [("fp32", 1e-5), ("fp16", 2e-2)])
def test_rows_are_added_by_a_product(form: str, precision: str, allowed: float) -> None:
    made = FORMS[form]
    names = {info.name for info in made.graph.input}
    update = U[:, :3] if form == "fewer columns" else U
    feeds = {name: value for name, value in {"x": X, "u": update, "index": INDEX}.items() if name in names}
    found, wanted = run(made, feeds, precision)
    np.testing.assert_allclose(found, wanted, rtol=allowed, atol=allowed)
    assert "graph.matmul" in ops(made)


def test_what_is_no_finite_number_stays_in_its_place() -> None:
    updates, places = np.ones((ROWS, WIDTH), np.float32), np.arange(ROWS) % PLACES
    updates[3, 0], updates[4, 1], updates[5, 2] = np.inf, -np.inf, np.nan
    updates[6, 3], updates[15, 3], updates[16, 4], updates[7, 4] = np.inf, -np.inf, np.inf, np.inf
    found, wanted = run(EXPANDED, {"x": np.zeros_like(X), "u": updates, "index": places})
    np.testing.assert_array_equal(found, wanted)
    assert np.isfinite(wanted).sum() == wanted.size - 5


def test_indices_of_elements_are_compared() -> None:
    wide = RNG.integers(0, PLACES, (ROWS, WIDTH))
    made = model(ADD.replace("wide", "index"), index=wide)
    found, wanted = run(made, {"x": X, "u": U})
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert "graph.matmul" not in ops(made)


def test_the_cpu_goes_through_very_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexed, "MOST_PAIRS", PLACES * ROWS - 1)
    (part,) = stepwell.compile(EXPANDED, target="tiny").host
    assert part.nodes[-1].reason == "at most 359 pairs of an index and a place are compared (found 360)"
