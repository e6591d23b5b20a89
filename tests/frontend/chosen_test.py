"""Rows that a mask chooses and a sum takes: no node on the CPU, where every row goes its own way."""

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx_models import text_model

import stepwell
from stepwell.driver.agreement import onnxruntime_run
from stepwell.frontend.chosen import plan

Array = NDArray[Any]
RNG = np.random.default_rng(8)
X = RNG.standard_normal((5, 8)).astype(np.float32)
MASK = np.array([[1, 0, 0, 1, 0], [0, 0, 1, 0, 0]], bool)
CONSTANTS = {
    "w": RNG.standard_normal((8, 8)).astype(np.float32),
    "zero": np.array([0]),
    "one": np.array([1]),
    "last": np.array([-1]),
    "halves": np.array([1, 1]),
    "nothing": np.zeros((5, 8), np.float32),
    "flat": np.array([-1, 8]),
    "ones": np.ones(8, np.float32),
}
PLACES = """found = NonZero(mask) slot, token = Split <axis = 0> (found, halves)
    slots = Squeeze(slot, zero) tokens = Squeeze(token, zero)"""
EXPERT = "rows = Gather <axis = 0> (x, tokens) a = MatMul(rows, w) b = Sigmoid(a) c = Mul(a, b)"
GATED = """s = Unsqueeze(slots, last) t = Unsqueeze(tokens, last) at = Concat <axis = -1> (t, s) g = GatherND(gates, at)
    gate = Unsqueeze(g, last) updates = Mul(c, gate)"""
SUMMED = "index = Unsqueeze(tokens, last) y = ScatterND <reduction = "


def model(*parts: str, output: str = "float[5,8] y", opset: int = 18) -> onnx.ModelProto:
    inputs = "float[5,8] x, bool[2,5] mask, float[5,2] gates"
    text = " ".join(parts)
    used: dict[str, Any] = {name: value for name, value in CONSTANTS.items() if name in text}
    return text_model(text, inputs, output, opset, **used)


def feeds(mask: Array = MASK) -> dict[str, Array]:
    return {"x": X, "mask": mask, "gates": np.linspace(0.5, 2, 10, dtype=np.float32).reshape(5, 2)}


INDEXED = """updates = Mul(c, c) extents = Shape(updates) wide = Unsqueeze(tokens, last) index = Expand(wide, extents)
    y = ScatterElements <axis = 0, reduction = "add"> (nothing, index, updates)"""
VIEWED = """batch = Unsqueeze(x, zero) more = Gather <axis = 1> (batch, tokens) rows = Reshape(more, flat)
    updates = LayerNormalization <axis = -1> (rows, ones)"""
FORMS = {
    "routed": model(PLACES, EXPERT, GATED, f'{SUMMED}"add"> (nothing, index, updates)'),
    "index_add": model(PLACES, EXPERT, INDEXED),
    "of_one_more_axis": model(
        PLACES, VIEWED, f'{SUMMED}"add"> (x, index, updates)'
    ),
    "transposed": model(
        "found = NonZero(mask) pairs = Transpose <perm = [1, 0]> (found) token = Gather <axis = 1> (pairs, one)",
        "tokens = Squeeze(token, last)", EXPERT, 'e = ReduceMax(c, last) updates = Sub(c, e)',
        f'{SUMMED}"add"> (x, index, updates)',
    ),
    "total": model(PLACES, EXPERT, "y = ReduceSum <keepdims = 0> (c, zero)", output="float[8] y"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mask", [MASK, ~MASK, np.zeros_like(MASK)], ids=["some", "others", "none"])
def test_the_device_sums_the_rows_that_are_chosen(form: str, mask: Array) -> None:
    artifact = stepwell.compile(FORMS[form], target="tiny", precision="fp32", host=False)
    found, wanted = stepwell.run(artifact, feeds(mask)), onnxruntime_run(FORMS[form], feeds(mask))
    np.testing.assert_allclose(found["y"], wanted["y"], rtol=1e-5, atol=1e-5)


def test_a_row_that_is_not_chosen_may_be_no_number() -> None:
    given = feeds()
    given["x"] = X.copy()
    given["x"][1] = np.inf
    assert not MASK[:, 1].any()
    found = stepwell.run(stepwell.compile(FORMS["routed"], target="tiny", precision="fp32"), given)
    assert np.isfinite(found["y"]).all()


OTHERS = {
    "rows are an output": (f'{SUMMED}"add"> (nothing, index, c)', "float[5,8] y, float[n,8] c"),
    "their number is an output": (f'n = Shape(c) {SUMMED}"add"> (nothing, index, c)', "float[5,8] y, int64[2] n"),
    "rows meet": (f'd = Softmax <axis = 0> (c) {SUMMED}"add"> (nothing, index, d)', "float[5,8] y"),
    "their mean": ("y = ReduceMean <keepdims = 0> (c, zero)", "float[8] y"),
    "the largest": (f'{SUMMED}"max"> (nothing, index, c)', "float[5,8] y"),
    "put in place": (f'{SUMMED}"none"> (nothing, index, c)', "float[5,8] y"),
    "an index among the values": (
        "n = ReduceSum <keepdims = 0> (rows, last) i = Cast <to = 7> (n) e = Gather <axis = 0> (w, i)"
        f' {SUMMED}"add"> (nothing, index, e)', "float[5,8] y",
    ),
    "a place among the values": (
        'm = Mul(tokens, one) index = Unsqueeze(m, last) y = ScatterND <reduction = "add"> (nothing, index, c)',
        "float[5,8] y",
    ),
    "by their number": (
        f'e = Shape(c) f = Cast <to = 1> (e) d = Div(c, f) {SUMMED}"add"> (nothing, index, d)', "float[5,8] y",
    ),
}  # fmt: skip


@pytest.mark.parametrize("reason", OTHERS)
def test_what_hangs_on_the_number_of_rows_stays_on_the_cpu(reason: str) -> None:
    text, output = OTHERS[reason]
    made = model(PLACES, EXPERT, text, output=output)
    assert plan(made, made.graph.node) == ({}, set())
    if reason != "by their number":  # two rows have no eight extents
        artifact = stepwell.compile(made, target="tiny", precision="fp32")
        assert "NonZero" in {node.operator for part in artifact.host for node in part.nodes}
        found, wanted = stepwell.run(artifact, feeds()), onnxruntime_run(made, feeds())
        for name, array in wanted.items():
            np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("operator", ["NonZero", "Split", "ScatterND", "Gather", "Squeeze", "Constant"])
def test_nodes_that_break_rules_are_left_for_the_importer_to_tell(operator: str) -> None:
    made = model(PLACES, EXPERT, GATED, f'{SUMMED}"add"> (nothing, index, updates)')
    tensor = onnx.TensorProto(dims=[2], data_type=onnx.TensorProto.INT64, raw_data=b"\0")
    made.graph.initializer.append(onnx.TensorProto(name="short", dims=[3], data_type=1, raw_data=b"\0"))
    for name in ("", "NonZero_0:0"):
        made.graph.node.append(onnx.NodeProto(op_type=operator, input=[name] * (name != "")))
        made.graph.node.append(onnx.helper.make_node(operator, [name], [f"more{name}"], value=tensor))
    plan(made, made.graph.node)
