"""Weights are left in the file: what is parsed is small, what is computed the same."""

import tracemalloc
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from stepwell.frontend.model_file import read_model, to_array
from stepwell.frontend.onnx import import_onnx
from stepwell.frontend.wire import WireError, without_weights


def model_with(*arrays: np.ndarray) -> onnx.ModelProto:
    """y = x·w₀ + w₁ …; the weights are initialisers."""
    nodes, value = [], "x"
    for n, array in enumerate(arrays):
        nodes.append(helper.make_node("MatMul" if array.ndim == 2 else "Add", [value, f"w{n}"], [f"v{n}"]))
        value = f"v{n}"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, arrays[0].shape[0]])
    y = helper.make_tensor_value_info(value, TensorProto.FLOAT, None)
    weights = [numpy_helper.from_array(array, f"w{n}") for n, array in enumerate(arrays)]
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_large_weights_stay_in_the_file_and_small_ones_do_not(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    large, small = random.standard_normal((64, 32)).astype(np.float32), np.ones(32, np.float32)
    path = tmp_path / "model.onnx"
    onnx.save(model_with(large, small), path)
    model, folder = read_model(path, mapped=True)
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    assert not tensors["w0"].raw_data
    assert tensors["w0"].data_location == TensorProto.EXTERNAL
    assert len(tensors["w1"].raw_data) == small.nbytes
    assert np.array_equal(to_array(tensors["w0"], folder), large)
    whole, _ = read_model(path)
    assert [node.SerializeToString() for node in whole.graph.node] == [
        node.SerializeToString() for node in model.graph.node
    ]


def test_a_model_is_imported_without_reading_its_weights(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model_with(*(np.full((1024, 1024), n, np.float32) for n in range(8))), path)
    tracemalloc.start()
    _, store = import_onnx(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert store.nbytes == 8 << 22
    assert peak < 8 << 20, f"{peak} bytes for a file of {path.stat().st_size}"


@pytest.mark.parametrize("cut", [1, 7, 100, 5000])
def test_a_cut_message_is_no_message(tmp_path: Path, cut: int) -> None:
    data = model_with(np.ones((64, 64), np.float32)).SerializeToString()
    with pytest.raises(WireError):
        without_weights(memoryview(data[: len(data) - cut]), "model.onnx")
