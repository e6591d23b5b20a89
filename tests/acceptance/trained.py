"""Public trained models (`examples/models.py`), inputs that mean something to them, and what onnxruntime computes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import models
import numpy as np
import onnx
import pytest
from acceptance.zoo import Arrays
from chips import chip
from numpy.typing import NDArray
from ocr import demo

import stepwell
from stepwell.driver.agreement import onnxruntime_run
from stepwell.runtime.artifact import Artifact

Array = NDArray[Any]


# inputs ---------------------------------------------------------------------------------------------------------------
def noise(**shapes: Sequence[int]) -> Arrays:
    """Normal values."""
    random = np.random.default_rng(11)
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def line() -> Arrays:
    """The line of the OCR example."""
    return {"x": demo.picture(demo.PICTURE)}


def word() -> Arrays:
    """Its beginning."""
    return {"x": line()["x"][..., :192].copy()}


def page() -> Arrays:
    """That line on a white page."""
    pixels = np.ones((1, 3, 320, 320), np.float32)
    pixels[:, :, 136:184] = line()["x"]
    return {"x": pixels}


def photo() -> Arrays:
    """Soft blots of colour: 8 × 8 of them, in between is interpolated; the mean of each channel subtracted."""
    pixels = np.random.default_rng(11).integers(0, 256, (8, 8, 3)).astype(np.float64)
    for axis in (0, 1):
        places = np.linspace(0, 7, 224)
        before = np.minimum(places.astype(int), 6)
        part = (places - before).reshape(-1, *[1] * (2 - axis))
        pixels = np.take(pixels, before, axis) * (1 - part) + np.take(pixels, before + 1, axis) * part
    return {"input:0": (pixels - [104, 117, 123]).astype(np.float32)[None]}


def sound(samples: int, rate: int, *tones: float) -> Array:
    """16 bits of tones of falling loudness that come and go, and a little noise."""
    time, random = np.arange(samples) / rate, np.random.default_rng(11)
    waves = [np.sin(2 * np.pi * tone * time) * 0.3 / (i + 1) for i, tone in enumerate(tones)]
    loudness = 1 + 0.5 * np.sin(2 * np.pi * 4 * time)
    return (np.rint((sum(waves) * loudness + 0.01 * random.standard_normal(samples)) * 2**15) / 2**15).astype(
        np.float32
    )


def music() -> Arrays:
    """A chord."""
    return {"serving_default_input_2:0": sound(43844, 22050, 440, 554.4, 659.3).reshape(1, -1, 1)}


def voice(**more: Any) -> Arrays:
    """A window of 16 kHz sound, and a state."""
    return {"input": sound(576, 16000, 140, 280, 700).reshape(1, 576), **noise(state=[2, 1, 128]), **more}


def voices() -> Arrays:
    """Four windows."""
    return {"input": sound(4 * 576, 16000, 140, 700).reshape(4, 576), **noise(h=[1, 1, 128], c=[1, 1, 128])}


# models ---------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Trained:
    """A part of one of the `models`, and inputs for it."""

    model: str
    part: str
    inputs: Callable[[], Arrays]
    classes: str = ""
    """The output whose rows are scores of classes, if there is one."""


def brain_waves() -> Arrays:
    """Half a minute, and its spectrogram."""
    return noise(raw_signal=[1, 1, 7500], spectrogram=[1, 15, 7500])


SUBJECTS = {
    "ocr-recognition": Trained("ocr", "recognition", line, "softmax_11.tmp_0"),
    "ocr-detection": Trained("ocr", "detection", page),
    "ocr-orientation": Trained("ocr", "orientation", word, "save_infer_model/scale_0.tmp_1"),
    "resnet-thin": Trained("resnet-thin", "classifier", photo, "outputs"),
    "pitch": Trained("pitch", "notes", music),
    "vad-static": Trained("vad", "static", voice),
    "vad-sequence": Trained("vad", "sequence", voices),
    "vad-branches": Trained("vad", "branches", lambda: voice(sr=np.array(16000))),
    "vad-half": Trained("vad", "half", voice),
    "eeg-seizure": Trained("eeg", "seizure", lambda: noise(x=[1, 100, 100]), "probs"),
    "eeg-seizure-full": Trained("eeg", "seizure-full", lambda: noise(x=[1, 100, 100]), "probs"),
    "eeg-spindle": Trained("eeg", "spindle", brain_waves),
    "eeg-spindle-intracranial": Trained("eeg", "spindle-intracranial", brain_waves),
}
ALIKE = ("vad-half", "eeg-seizure-full", "eeg-spindle-intracranial")
"""Another's network with other weights."""
POLICIES = ("fp16", "fp32")


def file(name: str) -> Path:
    """Skips the test if the model is neither here nor can be had."""
    subject = SUBJECTS[name]
    try:
        return models.fetch(subject.model)[subject.part]
    except models.FetchError as error:
        pytest.skip(f"offline: {error}")


@cache
def proto(name: str) -> onnx.ModelProto:
    """The model, with the scores behind its probabilities as further outputs."""
    model = onnx.load(file(name))
    scores = dict.fromkeys(node.input[0] for node in probabilities(model).values())
    known = {output.name for output in model.graph.output}
    infos = [
        onnx.helper.make_tensor_value_info(key, onnx.TensorProto.FLOAT, None) for key in scores if key not in known
    ]
    model.graph.output.extend(infos)
    return model


def probabilities(model: onnx.ModelProto) -> Mapping[str, onnx.NodeProto]:
    """The outputs that a Softmax or Sigmoid makes, an Identity behind it or not."""
    makers = {key: node for node in model.graph.node for key in node.output}
    found = dict[str, onnx.NodeProto]()
    for output in model.graph.output:
        node = makers.get(output.name)
        while node is not None and node.op_type == "Identity":
            node = makers.get(node.input[0])
        if node is not None and node.op_type in ("Softmax", "Sigmoid"):
            found[output.name] = node
    return found


def inner_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Those of branches, and of branches of these."""
    for branch in (each.g for node in graph.node for each in node.attribute if each.type == onnx.AttributeProto.GRAPH):
        yield from branch.node
        yield from inner_nodes(branch)


@cache
def inputs(name: str) -> Arrays:
    return SUBJECTS[name].inputs()


@cache
def reference(name: str) -> Arrays:
    """What onnxruntime computes in fp32."""
    return exact_sigmoids(proto(name), onnxruntime_run(proto(name), inputs(name)))


def exact_sigmoids(model: onnx.ModelProto, outputs: Arrays) -> Arrays:
    """Sigmoids in float64, of onnxruntime's scores.

    Its own are off by up to 1.4e-7, whatever their size: where all are small, that is more than the policies allow.
    """
    sigmoids = {key: node for key, node in probabilities(model).items() if node.op_type == "Sigmoid"}
    with np.errstate(over="ignore"):
        exact = {key: 1 / (1 + np.exp(-outputs[node.input[0]].astype(np.float64))) for key, node in sigmoids.items()}
    return {**outputs, **exact}


def compiled(name: str, target: str = "edge", policy: str = "fp16", cores: int | None = None) -> Artifact:
    """Compiled once for all tests of a process, on all cores if nothing else is said."""
    return _compiled(name, target, policy, cores or chip(target).cores)


@cache
def _compiled(name: str, target: str, policy: str, cores: int) -> Artifact:
    shapes = {key: list(array.shape) for key, array in inputs(name).items()}
    return stepwell.compile(proto(name), target=chip(target), shapes=shapes, precision=policy, cores=cores)
