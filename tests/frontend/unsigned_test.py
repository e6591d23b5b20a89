"""Unsigned integers of 32 and 64 bits: i32 on the device, right for all values that fit; what does not fit is told."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import stepwell
from stepwell.frontend.onnx import ImportProblems

pytestmark = pytest.mark.xdist_group("device")
CODES = {np.uint32: TensorProto.UINT32, np.uint64: TensorProto.UINT64}
ENDS = [0, 1, 2, 3, 7, 255, 65536, 2**31 - 2, 2**31 - 1]


def model_of(kind: Any, nodes: list[Any], results: Mapping[str, int], known: Any = 3) -> Any:
    infos = [helper.make_tensor_value_info(name, CODES[kind], [9]) for name in "xy"]
    outputs = [helper.make_tensor_value_info(name, code, None) for name, code in results.items()]
    graph = helper.make_graph(nodes, "g", infos, outputs, [numpy_helper.from_array(np.array(known, kind), "c")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
def test_values_that_fit_are_right(kind: Any, tmp_path: Path) -> None:
    code, truth = CODES[kind], TensorProto.BOOL
    nodes = [
        helper.make_node("Div", ["x", "c"], ["div"]),
        helper.make_node("Mod", ["x", "c"], ["mod"]),
        helper.make_node("BitShift", ["x", "c"], ["right"], direction="RIGHT"),
        helper.make_node("Greater", ["x", "y"], ["greater"]),
        helper.make_node("Max", ["x", "y"], ["most"]),
        helper.make_node("Min", ["x", "c"], ["least"]),
        helper.make_node("Cast", ["x"], ["float"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["right"], ["narrow"], to=TensorProto.UINT8),
        helper.make_node("Cast", ["float"], ["back"], to=code),
    ]
    results = dict.fromkeys(("div", "mod", "right", "most", "least"), code)
    results |= {"greater": truth, "float": TensorProto.FLOAT, "narrow": TensorProto.UINT8}
    model = model_of(kind, nodes, results)
    x = np.array(ENDS, kind)
    feeds = {"x": x, "y": x[::-1].copy()}
    path = tmp_path / "model.stw"
    stepwell.compile(model, target="tiny").save(path)
    found = stepwell.run(stepwell.load(path), feeds)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for name, wanted in zip(results, session.run(list(results), feeds), strict=True):
        assert found[name].dtype == np.asarray(wanted).dtype, name
        np.testing.assert_array_equal(found[name], wanted, name)


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
def test_results_wrap_as_their_type_does(kind: Any) -> None:
    nodes = [helper.make_node("Sub", ["x", "y"], ["z"]), helper.make_node("BitwiseNot", ["x"], ["turned"])]
    artifact = stepwell.compile(model_of(kind, nodes, {"z": CODES[kind], "turned": CODES[kind]}), target="tiny")
    x = np.array(ENDS, kind)
    found = stepwell.run(artifact, {"x": x, "y": x[::-1].copy()})
    np.testing.assert_array_equal(found["z"], x - x[::-1])
    np.testing.assert_array_equal(found["turned"], ~x)


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
def test_what_does_not_fit_is_told(kind: Any) -> None:
    nodes = [helper.make_node("Add", ["x", "c"], ["z"])]
    artifact = stepwell.compile(model_of(kind, nodes, {"z": CODES[kind]}), target="tiny")
    x = np.array(ENDS, kind)
    with pytest.raises(ValueError, match=r"x: integers fit 32 bits, .* \(found 0 to 2147483648\)"):
        stepwell.run(artifact, {"x": np.maximum(x, np.where(x == 1, kind(2**31), 0)).astype(kind), "y": x})
    with pytest.raises(ImportProblems, match="integers fit 32 bits"):
        stepwell.compile(model_of(kind, nodes, {"z": CODES[kind]}, 2**31), target="tiny", host=False)


def test_an_artifact_with_integers_of_16_bits_is_read_back(tmp_path: Path) -> None:
    info = helper.make_tensor_value_info("x", TensorProto.UINT16, [9])
    result = helper.make_tensor_value_info("y", TensorProto.UINT16, [9])
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "g", [info], [result])
    path = tmp_path / "model.stw"
    stepwell.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), target="tiny").save(path)
    x = np.arange(60000, 60009).astype(np.uint16)
    np.testing.assert_array_equal(stepwell.run(stepwell.load(path), {"x": x})["y"], x + x)
