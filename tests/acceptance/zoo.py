"""The models that a release is judged by, their inputs, and what identifies a result."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import models
import numpy as np
import onnx
import pytest
from chips import NAMES, chip, core_counts
from numpy.typing import NDArray
from onnx_models import bert_layer, mlp, packed_mlp, small_cnn

import stepwell
from stepwell.driver.agreement import onnxruntime_run
from stepwell.runtime.artifact import Artifact

Array = NDArray[Any]
Arrays = Mapping[str, Array]
PICTURE = Path(models.__file__).parent / "ocr" / "line.png"


@dataclass(frozen=True)
class Model:
    """A model and how to make it."""

    make: Callable[[], onnx.ModelProto]
    shapes: Mapping[str, Sequence[int]]
    seeded: bool = True
    """Whether its weights are random ones, which need not mean anything."""


def recogniser() -> onnx.ModelProto:
    """PP-OCRv4 rec; skips the test if it is neither here nor can be had."""
    try:
        return onnx.load(models.fetch("ocr")["recognition"])
    except models.FetchError as error:
        pytest.skip(f"offline: {error}")


MODELS = {
    "mlp": Model(mlp, {"x": [4, 64]}),
    "packed": Model(packed_mlp, {"x": [4, 300]}),
    "small_cnn": Model(small_cnn, {"x": [1, 3, 32, 32]}),
    "bert_layer": Model(bert_layer, {"x": [1, 128, 768], "mask": [1, 1, 1, 128]}),
    "ocr": Model(recogniser, {"x": [1, 3, 48, 320]}, seeded=False),
}
FITS = [(name, target) for name in MODELS for target in ("edge", "tiny")]
"""What can be compiled for the small targets."""
EVERYWHERE = [
    pytest.param(name, target, cores, marks=[pytest.mark.slow] if name == "ocr" and cores < chip(target).cores else [])
    for name in MODELS
    for target in NAMES
    for cores in core_counts(target)
]
"""Every model on every target and number of cores."""
SHAPE_WORK = {
    *("Constant", "Shape", "Gather", "Unsqueeze", "Squeeze", "Concat", "Slice", "Cast", "Reshape", "Flatten"),
    "DequantizeLinear",
}
"""Integer arithmetic on shapes and constants, done when compiling, and what moves no byte."""
FUSED = {"Relu", "Clip", "Transpose", "Mul", "Add", "BatchNormalization"}
"""What may become part of another node's instruction, or of its weights."""


@cache
def proto(name: str) -> onnx.ModelProto:
    return MODELS[name].make()


def compiled(name: str, target: str = "edge", precision: str = "fp16", cores: int = 2, **options: Any) -> Artifact:
    """A model compiled once for all tests of a process."""
    return _compiled(name, target, precision, cores, **options)


@cache
def _compiled(name: str, target: str, precision: str, cores: int, **options: Any) -> Artifact:
    model = MODELS[name]
    return stepwell.compile(
        proto(name), target=chip(target), shapes=model.shapes, precision=precision, cores=cores, **options
    )


@cache
def inputs(name: str) -> Arrays:
    """Seeded inputs: a picture's values are in −1 … 1, a mask hides some keys, all else is normal."""
    random = np.random.default_rng(11)
    found: dict[str, Array] = {}
    for key, shape in MODELS[name].shapes.items():
        if key == "mask":
            values = (random.random(shape) < 0.8).astype(np.float32)
        else:
            values = random.standard_normal(shape).astype(np.float32)
        found[key] = np.clip(values, -1, 1) if name == "ocr" else values
    return found


@cache
def reference(name: str) -> Arrays:
    """What onnxruntime computes in fp32."""
    return onnxruntime_run(proto(name), inputs(name))


def digest(outputs: Arrays) -> str:
    """Of names, types, shapes and bytes."""
    found = hashlib.sha256()
    for name, array in outputs.items():
        found.update(f"{name} {array.dtype} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def save(path: Path, arrays: Arrays) -> None:
    """Writes an .npz file."""
    np.savez(path, allow_pickle=False, **dict(arrays))
