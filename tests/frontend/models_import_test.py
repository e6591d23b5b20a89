"""Whole models: imported, evaluated in f32, and compared with onnxruntime."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from graph_tools import only_function
from models import FetchError, fetch
from numpy.typing import NDArray
from onnx_models import bert_layer, mlp, small_cnn
from xdsl.dialects.builtin import ModuleOp, NameLoc, StringAttr

from stepwell.dialects.evaluate import evaluate, reference
from stepwell.frontend.onnx import import_onnx

Array = NDArray[Any]
TOLERANCE = 1e-4  # of the largest value


def by_onnxruntime(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(value) for value in session.run(None, dict(feeds))]


def close(found: Array, wanted: Array) -> bool:
    return bool(np.max(np.abs(found - wanted)) <= TOLERANCE * np.max(np.abs(wanted)))


def cosine(x: Array, y: Array) -> float:
    x, y = x.reshape(-1), y.reshape(-1)
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


def random_feeds(shapes: Mapping[str, Sequence[int]], seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def operators(module: ModuleOp) -> Counter[str]:
    return Counter(op.name.removeprefix("graph.") for op in only_function(module).body.block.ops)


@pytest.mark.parametrize(
    ("model", "shapes"),
    [
        (mlp(), {"x": [4, 64]}),
        (small_cnn(), {"x": [1, 3, 32, 32]}),
        (small_cnn(batch=2, size=28), {"x": [2, 3, 28, 28]}),
        (bert_layer(seq=16, hidden=64, heads=4, ffn=128), {"x": [1, 16, 64], "mask": [1, 1, 1, 16]}),
    ],
    ids=["mlp", "small_cnn", "small_cnn of two", "small bert_layer"],
)
def test_a_model_agrees_with_onnxruntime(model: onnx.ModelProto, shapes: dict[str, list[int]]) -> None:
    module, weights = import_onnx(model)
    module.verify()
    results = list[Array]()
    for seed in (0, 1):
        feeds = random_feeds(shapes, seed)
        if "mask" in feeds:
            feeds["mask"] = (np.arange(feeds["mask"].size) < 10).astype(np.float32).reshape(feeds["mask"].shape)
        (wanted,) = by_onnxruntime(model, feeds)
        (found,) = evaluate(module, list(feeds.values()), weights)
        assert close(found, wanted)
        (exact,) = reference(module, list(feeds.values()), weights)
        assert close(exact, wanted)
        results.append(found)
    assert cosine(*results) < 0.99


def test_a_layer_of_bert_base_agrees_with_onnxruntime() -> None:
    model = bert_layer()
    module, weights = import_onnx(model)
    found_operators = operators(module)
    assert found_operators["matmul"] == 8
    assert not found_operators.keys() & {"expand", "slice"}
    feeds = random_feeds({"x": [1, 128, 768]}, 0)
    feeds["mask"] = (np.arange(128) < 100).astype(np.float32).reshape(1, 1, 1, 128)
    (found,) = evaluate(module, list(feeds.values()), weights)
    assert close(found, by_onnxruntime(model, feeds)[0])


@pytest.fixture(scope="module")
def ocr() -> Path:
    try:
        return fetch("ocr")["recognition"]
    except FetchError as error:
        pytest.skip(str(error))


SHAPES = {"x": [1, 3, 48, 320]}


def test_text_recognition_agrees_with_onnxruntime(ocr: Path) -> None:
    module, weights = import_onnx(ocr, shapes=SHAPES)
    module.verify()
    feeds = random_feeds(SHAPES, 0)
    (found,) = evaluate(module, list(feeds.values()), weights)
    assert found.shape == (1, 40, 6625)
    assert close(found, by_onnxruntime(onnx.load(ocr), feeds)[0])


def test_text_recognition_imports_in_a_second(ocr: Path) -> None:
    start = time.process_time()
    module, _ = import_onnx(ocr, shapes=SHAPES)
    assert time.process_time() - start < 1
    found = operators(module)
    assert found["conv"] == 38
    assert found["softmax"] == 3
    assert sum(found.values()) < 700  # of 860 nodes, constants among them


def test_each_op_names_its_node(ocr: Path) -> None:
    module, _ = import_onnx(ocr, shapes=SHAPES)
    names = {StringAttr(node.name) for node in onnx.load(ocr).graph.node}
    for op in only_function(module).body.block.ops:
        if op.name not in ("func.return", "graph.constant", "graph.weight"):
            assert isinstance(op.location, NameLoc)
            assert op.location.parameters[0] in names
