"""Loops over bags of rows (EmbeddingBag): sums that the device makes, however long a bag turns out to be."""

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx_models import text_model

import stepwell
from stepwell.driver.agreement import onnxruntime_run

Array = NDArray[Any]
RNG = np.random.default_rng(4)
TABLE = RNG.standard_normal((11, 6)).astype(np.float32)
FEEDS = {
    "indices": np.array([3, 10, 0, 3, 7, 7, 1]),
    "offsets": np.array([0, 3, 4]),
    "weights": np.linspace(-1, 2, 7, dtype=np.float32),
}


def model(bag: str, opset: int = 18, ends: str = "Concat <axis = 0> (behind, size)", more: str = "") -> onnx.ModelProto:
    """As torch's exporter writes it: the ends are the other starts, and the number of indices."""
    body = f"""g (int64 i, bool c) => (bool d, float[6] bag) {{
        d = Cast <to = 9> (c) one = Gather <axis = 0> (offsets, i) start = Unsqueeze(one, zero)
        two = Gather <axis = 0> (ends, i) end = Unsqueeze(two, zero)
        picked = Slice(indices, start, end, zero) rows = Gather <axis = 0> (table, picked) {bag} }}"""
    text = f"""size = Shape(indices) behind = Slice(offsets, first, far, zero) ends = {ends}
        bags = Loop (count, going) <body = {body}> y = MatMul(bags, w)"""
    inputs = f"int64[7] indices, int64[3] offsets, float[7] weights{more}"
    return text_model(
        text, inputs, "float[3,2] y", opset,
        zero=np.array([0]), first=np.array([1]), far=np.array([1 << 62]), count=np.array(3), going=np.array(True),
        table=TABLE, w=np.ones((6, 2), np.float32) / 4,
    )  # fmt: skip


SUM = "bag = ReduceSum <keepdims = 0> (rows, zero)"
MEAN = "bag = ReduceMean <keepdims = 0> (rows, zero)"
WEIGHTED = f"""some = Slice(weights, start, end, zero) column = Unsqueeze(some, first) scaled = Mul(rows, column)
    {SUM.replace("rows", "scaled")}"""


def agrees(made: onnx.ModelProto, feeds: dict[str, Array], host: bool) -> None:
    artifact = stepwell.compile(made, target="tiny", precision="fp32", host=host)
    assert bool(artifact.host) == host
    found, wanted = stepwell.run(artifact, feeds), onnxruntime_run(made, feeds)
    np.testing.assert_allclose(found["y"], wanted["y"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("bag", [SUM, MEAN, WEIGHTED], ids=["sum", "mean", "weighted"])
@pytest.mark.parametrize("offsets", [[0, 3, 4], [0, 1, 6], [2, 2, 5]])
def test_the_device_sums_bags(bag: str, offsets: list[int]) -> None:
    if bag == MEAN and len(set(offsets)) < len(offsets):
        offsets = [2, 3, 5]  # a mean of none is no number
    agrees(model(bag), FEEDS | {"offsets": np.array(offsets)}, host=False)


def test_bounds_may_count_from_the_end() -> None:
    made = model(SUM, ends="Sub(offsets, offsets)")
    agrees(made, FEEDS | {"offsets": np.array([-1, -7, 2])}, host=False)
    made = model(SUM, ends="Identity(others)", more=", int64[3] others")
    agrees(made, FEEDS | {"offsets": np.array([0, -5, -3]), "others": np.array([-4, 9, -1])}, host=False)


OTHERS = {
    "the largest": "bag = ReduceMax <keepdims = 0> (rows, zero)",
    "by a table of the step": f"turned = Mul(rows, rows) {SUM.replace('rows', 'turned')}",
    "with weights of other places": WEIGHTED.replace("(weights, start, end, zero)", "(weights, zero, size, zero)"),
}


@pytest.mark.parametrize("reason", OTHERS)
def test_other_loops_are_gone_through(reason: str) -> None:
    made = model(OTHERS[reason])
    feeds = FEEDS | {"offsets": np.array([0, 3, 4])}
    if reason == "with weights of other places":  # as many as there are rows: one bag that has them all
        made = model(OTHERS[reason], ends="Add(offsets, size)")
        feeds["offsets"] = np.array([0, 0, 0])
    agrees(made, feeds, host=True)
