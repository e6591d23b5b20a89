"""Public trained models of which every policy, target and number of cores is tested, and what onnxruntime computes."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from acceptance.zoo import Arrays
from chips import chip
from numpy.typing import NDArray

import stepwell
from stepwell.bench.public_models import TRAINED
from stepwell.driver.agreement import onnxruntime_run
from stepwell.examples.models import FetchError
from stepwell.runtime.artifact import Artifact

Array = NDArray[Any]


SUBJECTS = {
    name: TRAINED[name]
    for name in (
        *("ocr-recognition", "ocr-detection", "ocr-orientation", "resnet-thin", "pitch"),
        *("vad-static", "vad-sequence", "vad-branches", "vad-half"),
        *("eeg-seizure", "eeg-seizure-full", "eeg-spindle", "eeg-spindle-intracranial"),
    )
}
ALIKE = ("vad-half", "eeg-seizure-full", "eeg-spindle-intracranial")
"""Another's network with other weights."""
POLICIES = ("fp16", "fp32")


def file(name: str) -> Path:
    """Skips the test if the model is neither here nor can be had."""
    try:
        return SUBJECTS[name].file
    except FetchError as error:
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
