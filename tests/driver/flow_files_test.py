"""Files of models that decide by values: what is damaged is refused, and what holds sequences is reported."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_models import text_model

from stepwell.driver import api
from stepwell.driver.cli import main
from stepwell.runtime.artifact import Artifact
from stepwell.runtime.artifact_rules import problems
from stepwell.runtime.steps import Branch, HostCall, Repeat, Step

pytestmark = pytest.mark.xdist_group("device")

X = np.array([[1, -2, 3], [0.5, 2, -1]], np.float32)


def sequences() -> onnx.ModelProto:
    return text_model(
        """q = SequenceConstruct(x)
        y, z = Loop (n, , q, x) <body = g (int64 i, bool ci, seq(float[2,3]) s, float[2,3] p) =>
                (bool co, seq(float[2,3]) t, float[2,3] pp) {
            co = Identity(ci) pp = Neg(p) t = SequenceInsert(s, pp) }>""",
        "int64 n, float[2,3] x",
        "seq(float[2,3]) y, float[2,3] z",
    )


def on_host() -> onnx.ModelProto:
    """A branch with a part for the CPU on either side."""
    return text_model(
        """y = If (c) <
            then_branch = t () => (double[3] a) { a = Neg(x) },
            else_branch = e () => (double[3] b) { b = Exp(x) }>
        z = Cast<to = 1>(y)""",
        "bool c, double[3] x",
        "float[3] z",
    )


def with_steps(artifact: Artifact, steps: Sequence[Step]) -> Artifact:
    return replace(artifact, plans=(replace(artifact.plans[0], steps=tuple(steps)),))


def test_values_of_the_cpu_are_made_before_they_are_used() -> None:
    artifact = api.compile(on_host(), target="tiny")
    steps = artifact.plans[0].steps
    assert problems(artifact) == []
    place, branch = next((n, step) for n, step in enumerate(steps) if isinstance(step, Branch))
    one_sided = replace(branch, otherwise=())
    for wrong in (steps[::-1], steps[:place], [*steps[:place], one_sided, *steps[place + 1 :]]):
        (*_, problem) = problems(with_steps(artifact, wrong))
        assert "of the host has no value yet; one that is made before was expected" in problem


def test_what_a_loop_makes_may_not_be_there_behind_it() -> None:
    artifact = api.compile(sequences(), target="tiny")
    assert problems(artifact) == []
    steps = artifact.plans[0].steps
    (loop,) = (step for step in steps if isinstance(step, Repeat))
    (made,) = (step.outputs[0] for step in loop.steps if isinstance(step, HostCall))
    plan = replace(artifact.plans[0], outputs=(made,))
    tensors = list(artifact.tensors)
    tensors[made] = replace(tensors[made], role="output")
    wrong = replace(artifact, plans=(plan,), tensors=tuple(tensors))
    assert any(f"plan 0 outputs: tensor {made} of the host has no value yet" in each for each in problems(wrong))


def test_values_of_the_cpu_have_the_extents_of_their_type() -> None:
    artifact = api.compile(on_host(), target="tiny")
    (index,) = (n for n, t in enumerate(artifact.tensors) if t.is_host and t.role == "input")
    tensors = list(artifact.tensors)
    tensors[index] = replace(tensors[index], shape=(1 << 70,))
    (problem,) = problems(replace(artifact, tensors=tuple(tensors)))
    assert problem == f"tensor x: extents [{1 << 70}]; [3], those of tensor(double)[3], were expected"


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_run_reports_sequences(tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    onnx.save(sequences(), tmp_path / "m.onnx")
    np.savez(tmp_path / "in.npz", n=np.array(2), x=X)
    arguments = ["run", str(tmp_path / "m.onnx"), "--target", "tiny", "--input", str(tmp_path / "in.npz"), "--quiet"]
    code = main([*arguments, "--verify", str(tmp_path / "m.onnx"), *(["--json"] if form == "json" else [])])
    text = capsys.readouterr().out
    assert code == 0
    if form == "json":
        outputs = json.loads(text)["outputs"]
        assert outputs["y"] == {"dtype": "sequence", "shape": [3]}
        assert outputs["z"]["dtype"] == "float32"
    else:
        assert text.splitlines()[1].split() == ["y", "sequence", "3", "–", "–", "–"]
