"""Public trained models on the device: as close to onnxruntime as each policy promises, the same bits on every target
and number of cores, and all of it on the device.

pytest tests/acceptance/models_test.py -k pitch
"""

import json
import os
from typing import Any

import numpy as np
import onnx
import pytest
from acceptance.golden_test import BLESS, GOLDEN
from acceptance.trained import (
    ALIKE,
    POLICIES,
    SUBJECTS,
    compiled,
    exact_sigmoids,
    file,
    inner_nodes,
    inputs,
    proto,
    reference,
)
from acceptance.zoo import FUSED, SHAPE_WORK, digest
from chips import core_counts

from stepwell.bench.public_models import noise
from stepwell.driver.agreement import COSINE, agree, agree_all, onnxruntime_run
from stepwell.driver.check import check_artifact
from stepwell.frontend.onnx import ImportProblems, import_onnx
from stepwell.runtime.steps import Launch

TARGETS = ("edge", "tiny", "server", "train")
SMALL = ("vad-static", "eeg-seizure")
"""They take less than a second in all."""
HOSTLESS = (
    SHAPE_WORK
    | FUSED
    | {"ConstantOfShape", "Identity", "If", "Equal", "Not", "And", "Range", "Sub", "Div", "Pad", "Size"}
)
"""What no launch names: it is computed from shapes when the model is compiled, or part of another node's kernel."""


def places() -> list[Any]:
    """Every model on every target that holds it; what is not quick, or alike, is slow."""
    return [
        pytest.param(name, target, policy, marks=[pytest.mark.slow] if target != "edge" or name in ALIKE else [])
        for name in SUBJECTS
        for target in TARGETS
        for policy in POLICIES
    ]


def everywhere() -> list[Any]:
    """The same on every number of cores."""
    return [
        pytest.param(name, target, policy, cores, marks=[pytest.mark.slow] if name not in SMALL else [])
        for name in SUBJECTS
        for target in (*TARGETS, "odd")
        for policy in POLICIES
        for cores in core_counts(target)
    ]


def golden(name: str, policy: str) -> str:
    """The committed hash of the outputs."""
    return json.loads(GOLDEN.read_text(encoding="utf-8"))[name][policy]


@pytest.mark.parametrize(("name", "target", "policy"), places())
def test_a_trained_model_agrees_with_onnxruntime(name: str, target: str, policy: str) -> None:
    found = compiled(name, target, policy).model.run(inputs(name))
    for each in agree_all(found, reference(name)):
        assert each.cosine >= COSINE, each
        if policy == "fp32":
            assert each.max_abs_error <= 1e-4 * each.max_abs_reference, each
        if each.name in SUBJECTS[name].classes:
            assert each.top1 == 1, each


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in ALIKE else []) for name in SUBJECTS]
)
def test_outputs_are_the_committed_ones(name: str, policy: str) -> None:
    found = digest(compiled(name, "edge", policy).model.run(inputs(name)))
    if os.environ.get(BLESS):
        table = json.loads(GOLDEN.read_text(encoding="utf-8"))
        table.setdefault(name, {})[policy] = found
        GOLDEN.write_text(json.dumps(table, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    assert found == golden(name, policy)


@pytest.mark.parametrize(("name", "target", "policy", "cores"), everywhere())
def test_targets_and_cores_change_no_bit(name: str, target: str, policy: str, cores: int) -> None:
    artifact = compiled(name, target, policy, cores)
    assert digest(artifact.model.run(inputs(name))) == golden(name, policy)
    assert check_artifact(artifact).findings == ()


@pytest.mark.parametrize("name", [name for name in SUBJECTS if name not in ALIKE])
def test_the_host_has_nothing_to_do(name: str) -> None:
    artifact = compiled(name)
    (plan,) = artifact.plans
    assert all(type(step) is Launch for step in plan.steps)
    launched = {node for step in plan.launches for nodes in step.nodes for node in nodes}
    graph = proto(name).graph
    branches = list(inner_nodes(graph))
    taken = {node.op_type for node in branches if node.name in launched}
    missing = {node.op_type for node in graph.node if node.name and node.name not in launched}
    missing |= {node.op_type for node in branches} - taken
    assert missing <= HOSTLESS
    touched = {each.tensor for step in plan.launches for each in step.arguments if not isinstance(each, int)}
    assert touched >= set(plan.outputs)


# what makes the comparison fair ---------------------------------------------------------------------------------------
def test_the_inputs_mean_something() -> None:
    """Text is found on the page and read, notes are heard; no classifier is as sure as its numbers allow."""
    assert reference("ocr-detection")["sigmoid_0.tmp_0"].max() > 0.5
    assert (reference("ocr-recognition")["softmax_11.tmp_0"].argmax(-1) > 0).sum() > 5
    assert reference("pitch")["StatefulPartitionedCall:1"].max() > 0.5
    assert 1e-5 < reference("resnet-thin")["outputs"].min() < 0.5


def test_where_there_is_no_text_the_error_is_that_of_onnxruntimes_sigmoid() -> None:
    """All probabilities are below 1e-4, and as exact as on a page of text."""
    blank, model = noise(x=[1, 3, 320, 320]), proto("ocr-detection")
    theirs, ours = onnxruntime_run(model, blank), compiled("ocr-detection", policy="fp32").model.run(blank)
    name = "sigmoid_0.tmp_0"
    exact = exact_sigmoids(model, theirs)[name]
    assert agree(name, ours[name], exact).max_abs_error <= 1e-4 * exact.max()
    error = agree(name, theirs[name], exact).max_abs_error
    assert 1e-4 * exact.max() < error < 2e-7


# branches -------------------------------------------------------------------------------------------------------------
def test_branches_that_shapes_decide_are_taken() -> None:
    """Twelve of them; the same network without any gives the same."""
    graph = proto("vad-branches").graph
    assert sum(node.op_type == "If" for node in (*graph.node, *inner_nodes(graph))) == 12
    for key, array in reference("vad-static").items():
        assert np.allclose(reference("vad-branches")[key], array, atol=1e-6)


def test_a_branch_that_is_no_network_for_the_shapes_is_told() -> None:
    two_rates = file("vad-branches").with_name("silero_vad.onnx")
    with pytest.raises(ImportProblems) as caught:
        import_onnx(onnx.load(two_rates), shapes={"input": [1, 576], "state": [2, 1, 128]})
    inner, outer = caught.value.problems[0], caught.value.problems[-1]
    assert inner.where.endswith("/decoder/rnn/LSTM")
    assert outer.startswith(
        "If_0: both branches of If are networks for these shapes (found one that is none); bind the"
    )
