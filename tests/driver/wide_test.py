"""Integers of 64 bits that leave the 32 of the device: told by node, whatever the target, cores and tiling."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from stepwell.driver import api
from stepwell.driver.cli import main
from stepwell.runtime.model import Sticky

pytestmark = pytest.mark.xdist_group("device")

Array = npt.NDArray[Any]
LOW, HIGH = -(2**31), 2**31 - 1
MACHINES = (("tiny", 1), ("edge", 1), ("edge", 2), ("server", 3))


def model(
    nodes: list[onnx.NodeProto], inputs: dict[str, Array], outputs: list[str], **constants: Array
) -> onnx.ModelProto:
    """Nodes named by their operator; types of the outputs are inferred."""
    for node in nodes:
        node.name = node.name or node.op_type
    kinds = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in inputs.items()}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, kinds[name], array.shape) for name, array in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return onnx.shape_inference.infer_shapes(made)


def run(
    proto: onnx.ModelProto, inputs: dict[str, Array], target: str, cores: int
) -> tuple[dict[str, Array], list[Sticky]]:
    artifact = api.compile(proto, target=target, cores=cores)
    assert not artifact.host, "all of it on the device"
    return artifact.model.run(inputs), artifact.model.sticky()


def wide(found: list[Sticky]) -> dict[str, int]:
    """Results beyond 32 bits by node; nothing else was counted."""
    assert not any(entry.overflow or entry.invalid for entry in found)
    totals: dict[str, int] = {}
    for entry in found:
        totals[entry.nodes[0]] = totals.get(entry.nodes[0], 0) + entry.wide
    return totals


def beyond(exact: Array) -> int:
    return int(((exact < LOW) | (exact > HIGH)).sum())


@pytest.mark.parametrize(("target", "cores"), MACHINES)
def test_each_result_counts_once_on_every_machine(target: str, cores: int) -> None:
    x = np.random.default_rng(5).integers(LOW, HIGH, (211, 333), endpoint=True)
    row = np.arange(333, dtype=np.int64)[None] * 6_000_000
    row[0, 7] = LOW
    inputs = {"x": x, "row": row}
    nodes = [
        helper.make_node("Add", ["x", "x"], ["sum"]),
        helper.make_node("Neg", ["row"], ["minus"]),
        helper.make_node("Mul", ["row", "three"], ["product"]),  # one row, used by all
        helper.make_node("Sub", ["x", "product"], ["difference"]),
        helper.make_node("ReduceSum", ["x", "first"], ["columns"], "columns"),
        helper.make_node("ReduceSum", ["x", "second"], ["rows"], "rows"),
    ]
    constants = {"three": np.array(3), "first": np.array([0]), "second": np.array([1])}
    proto = model(nodes, inputs, ["sum", "minus", "difference", "columns", "rows"], **constants)
    outputs, found = run(proto, inputs, target, cores)
    product = row * 3
    exact = {"Add": x + x, "Mul": product, "Sub": x - product.astype(np.int32), "columns": x.sum(0), "rows": x.sum(1)}
    expected = {name: beyond(values) for name, values in exact.items()} | {"Neg": beyond(-row)}
    assert wide(found) == {name: count for name, count in expected.items() if count}
    assert min(expected[name] for name in exact) > 0
    assert np.array_equal(outputs["rows"].reshape(-1), x.sum(1).astype(np.int32))


@pytest.mark.parametrize(("target", "cores"), MACHINES)
def test_what_fits_is_not_counted(target: str, cores: int) -> None:
    x = np.zeros((45, 77), np.int64)
    x[0, 0], x[3, 5], x[44, 76] = HIGH, LOW, HIGH
    nodes = [
        helper.make_node("Sub", ["zero", "x"], ["difference"]),  # −(2³¹ − 1) fits
        helper.make_node("Max", ["x", "zero"], ["largest"]),
        helper.make_node("Add", ["x", "largest"], ["all"]),
        helper.make_node("ReduceSum", ["x"], ["total"]),
        helper.make_node("Cast", ["x"], ["bytes"], to=TensorProto.UINT8),
    ]
    proto = model(nodes, {"x": x}, ["difference", "total", "bytes"], zero=np.array(0))
    _, found = run(proto, {"x": x}, target, cores)
    assert wide(found) == {"Sub": 1}, "0 − (−2³¹) alone; HIGH + LOW + HIGH fits"


@pytest.mark.parametrize(
    ("nodes", "x", "outputs", "count"),
    [
        ([("CumSum", ["x", "zero"], {})], [2**30, 2**30 - 1, 1, -5], [2**30, 2**31 - 1, LOW, HIGH - 4], None),
        ([("MatMul", ["x", "x"], {})], [2**15, 2**15, 1, 2], [2**30 + 2**15, 2**30 + 2**16, 2**15 + 2, 2**15 + 4], 0),
        ([("MatMul", ["x", "x"], {})], [2**16, 3, 0, 1], [0, 3 * 2**16 + 3, 0, 1], 1),
        ([("Pow", ["x", "four"], {})], [2, 3, -(2**8), 2**16], [16, 81, 0, 0], 2),
        ([("Abs", ["x"], {})], [LOW, HIGH, -1, 0], [LOW, HIGH, 1, 0], 1),
        ([("ReduceProd", ["x"], {})], [2**20, 2**20, 2**20, 2**20], [0], 1),
        ([("ReduceProd", ["x"], {})], [2**20, 2**20, 2**20, 0], [0], 0),
    ],
    ids=lambda value: value[0][0] if isinstance(value, list) and isinstance(value[0], tuple) else "",
)
def test_operators_that_add_and_multiply(
    nodes: list[tuple[str, list[str], dict[str, Any]]], x: list[int], outputs: list[int], count: int | None
) -> None:
    matrix = nodes[0][0] == "MatMul"
    inputs = {"x": np.array(x).reshape((2, 2) if matrix else (4,))}
    made = [helper.make_node(kind, names, ["y"], **attributes) for kind, names, attributes in nodes]
    proto = model(made, inputs, ["y"], zero=np.array(0), four=np.array(4))
    found, sticky = run(proto, inputs, "tiny", 1)
    assert found["y"].reshape(-1).tolist() == outputs
    told = wide(sticky).get(nodes[0][0], 0)
    assert told > 0 if count is None else told == count


def test_a_shift_by_a_constant_beyond_32_bits_is_not_folded_away() -> None:
    inputs = {"x": np.array([1, 1], np.uint64)}
    node = helper.make_node("BitShift", ["x", "by"], ["y"], direction="LEFT")
    proto = model([node], inputs, ["y"], by=np.array([33, 30], np.uint64))
    outputs, found = run(proto, inputs, "tiny", 1)
    assert outputs["y"].tolist() == [0, 2**30]
    assert wide(found) == {"BitShift": 1}


def test_integers_of_16_bits_wrap_as_onnx_has_it() -> None:
    inputs = {"x": np.array([32767, -32768, 300], np.int16), "z": np.array([HIGH, LOW, 65535], np.int32)}
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["y"]),
        helper.make_node("Cast", ["z"], ["narrow"], to=TensorProto.INT16),
    ]
    outputs, found = run(model(nodes, inputs, ["y", "narrow"]), inputs, "tiny", 1)
    assert outputs["y"].tolist() == [1, 0, 24464]
    assert outputs["narrow"].tolist() == [-1, 0, -1]
    assert wide(found) == {}


def test_the_command_line_tells_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.array([2**20, 1])
    onnx.save(model([helper.make_node("Mul", ["x", "x"], ["y"], "Mul_0")], {"x": x}, ["y"]), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", x)
    assert main(["compile", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "m.stw"), "--target", "tiny"]) == 0
    run = ["run", str(tmp_path / "m.stw"), "--input", f"x={tmp_path / 'x.npy'}"]
    capsys.readouterr()
    assert main(run) == 0
    out = capsys.readouterr().out
    assert "integers that left 32 bits (arithmetic wrapped, casts clamped):\n  Mul_0: 1 result beyond 32 bits" in out
    assert "overflow" not in out
    assert main([*run, "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["overflow"]
    assert entry == {"nodes": ["Mul_0"], "kernel": entry["kernel"], "overflow": 0, "invalid": 0, "wide": 1}
    np.save(tmp_path / "x.npy", np.array([46340, -46340]))
    assert main(run) == 0
    assert "nothing overflowed" in capsys.readouterr().out
