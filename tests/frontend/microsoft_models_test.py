"""Models as onnxruntime's own tools write them, with operators of com.microsoft: optimised, and quantised."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx_models import bert_layer, small_cnn
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

import stepwell

pytestmark = pytest.mark.xdist_group("device")
Array = NDArray[Any]
LEVEL = onnxruntime.GraphOptimizationLevel


def normal(*size: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(size).astype(np.float32)


def session(model: Path | onnx.ModelProto, optimised: Path | None = None) -> Any:
    """onnxruntime on a model as it stands; with `optimised`, the place of what its optimiser makes of it."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = LEVEL.ORT_ENABLE_EXTENDED if optimised else LEVEL.ORT_DISABLE_ALL
    options.optimized_model_filepath = str(optimised or "")
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def extensions(path: Path) -> set[str]:
    """The operators of com.microsoft in a file."""
    return {node.op_type for node in onnx.load(path).graph.node if node.domain == "com.microsoft"}


def agree(path: Path, feeds: dict[str, Array], allowed: float, precision: str) -> None:
    (wanted,) = session(path).run(None, feeds)
    found = stepwell.run(stepwell.compile(path, target="edge", precision=precision), feeds)
    (mine,) = found.values()
    assert mine.shape == wanted.shape
    assert np.abs(mine - wanted).max() <= allowed * np.abs(wanted).max()


@pytest.mark.parametrize(("precision", "allowed"), [("fp32", 1e-5), ("fp16", 1e-2)])
def test_a_transformer_that_was_optimised(precision: str, allowed: float, tmp_path: Path) -> None:
    feeds = {"x": normal(1, 24, 48), "mask": np.ones((1, 1, 1, 24), np.float32)}
    feeds["mask"][..., 17:] = 0
    path = tmp_path / "optimised.onnx"
    session(bert_layer(1, 24, 48, 4, 96), path)
    assert extensions(path) >= {"FusedMatMul", "SkipLayerNormalization"}
    agree(path, feeds, allowed, precision)


@pytest.mark.parametrize(("precision", "allowed"), [("fp32", 1e-5), ("fp16", 1e-2)])
def test_a_network_of_convolutions_that_was_optimised(precision: str, allowed: float, tmp_path: Path) -> None:
    path = tmp_path / "optimised.onnx"
    session(small_cnn(), path)
    assert extensions(path) >= {"FusedConv"}
    agree(path, {"x": normal(1, 3, 32, 32)}, allowed, precision)


class Samples(CalibrationDataReader):
    """What ranges are taken of."""

    def __init__(self) -> None:
        self.left: Iterator[int] = iter(range(3))

    def get_next(self) -> Any:
        seed = next(self.left, None)
        return None if seed is None else {"x": normal(1, 3, 32, 32, seed=seed + 1)}


def test_a_network_of_bytes(tmp_path: Path) -> None:
    """Quantised to integer operators; steps of the result are what it may differ by."""
    onnx.save(small_cnn(), tmp_path / "model.onnx")
    path = tmp_path / "quantised.onnx"
    quantize_static(
        tmp_path / "model.onnx",
        path,
        Samples(),
        quant_format=QuantFormat.QOperator,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    assert extensions(path) >= {"QLinearAdd", "QLinearMul", "QGemm"}
    agree(path, {"x": normal(1, 3, 32, 32)}, 0.02, "fp32")


def test_a_transformer_of_bytes(tmp_path: Path) -> None:
    """Weights quantised, operands by their range at run time; then optimised."""
    onnx.save(bert_layer(1, 24, 48, 4, 96, masked=False), tmp_path / "model.onnx")
    quantize_dynamic(tmp_path / "model.onnx", tmp_path / "quantised.onnx", weight_type=QuantType.QInt8)
    path = tmp_path / "optimised.onnx"
    session(tmp_path / "quantised.onnx", path)
    assert extensions(path) >= {"DynamicQuantizeMatMul"}
    agree(path, {"x": normal(1, 24, 48)}, 1e-3, "fp32")
