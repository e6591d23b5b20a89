"""Every public model compiles, runs on the NPU, and agrees with onnxruntime: what docs/public-models.md shows.

pytest tests/acceptance/public_test.py -k tashkeel
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from assessments import check

import stepwell
from stepwell.bench import public
from stepwell.bench.public_models import LIGHT, PUBLIC, SEED, TEXT, TRAINED
from stepwell.driver.agreement import onnxruntime_run
from stepwell.driver.compare import with_all_values
from stepwell.examples.models import MODELS, FetchError, fetch

QUICK = ("vad-static", "vad-two-rates", "vad-one-branch, by value", "filetype", "tashkeel-rawi-3")
COSINE, FP32 = 0.999, 1e-4
MACS, BYTES, TIME = 0.99, 0.95, 0.95
HALVES = 1e-4
"""How far a quotient may be from the middle of two integers, where another rounding takes the other."""
QUANTISED = [name for name in TRAINED if name.startswith("tashkeel")]


def models(names: Any) -> list[Any]:
    """Those that take a second, and slow ones."""
    return [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.slow]) for n in names]


@pytest.fixture(autouse=True)
def files(request: pytest.FixtureRequest) -> None:
    """Skips the test if its model is neither here nor can be had."""
    name = request.node.callspec.params.get("name") if hasattr(request.node, "callspec") else None
    try:
        _ = PUBLIC[name].file if name else fetch("filetype")
    except FetchError as error:
        pytest.skip(f"offline: {error}")


def test_all_files_are_there() -> None:
    parts = {
        (model, part) for model, source in MODELS.items() for part, file in source.members.items() if "onnx" in file
    }
    assert {(subject.model, subject.part) for subject in TRAINED.values()} == parts
    assert len(parts) == 22
    light = {subject.file for subject in LIGHT.values()}
    assert light == set(next(iter(light)).parent.glob("*.onnx"))
    assert len(light) == 9


@pytest.mark.parametrize("name", models(PUBLIC))
def test_sixteen_bits_agree_with_onnxruntime_and_decide_alike(name: str) -> None:
    found = public.values(name, PUBLIC[name].half)
    assert found.cosine >= COSINE
    assert found.same == found.decisions


@pytest.mark.parametrize("name", models(PUBLIC))
def test_fp32_agrees_with_onnxruntime(name: str) -> None:
    found, alone = public.values(name, "fp32"), public.quantised(name)
    assert bool(alone) == (name in QUANTISED)
    assert found.error <= FP32 or (alone and found.steps <= 1)
    assert all(steps <= 1 for steps in alone.values())
    assert found.same == found.decisions


@pytest.mark.parametrize("name", models(PUBLIC))
def test_the_npu_does_it(name: str) -> None:
    share = public.shares(name)
    assert share.macs > 10_000
    assert share.on_npu >= MACS
    assert share.moved >= BYTES
    assert share.time >= TIME


@pytest.mark.parametrize("name", models(PUBLIC))
def test_assess_says_what_the_compiler_does(name: str) -> None:
    (said, seconds), artifact = public.assessed(name), public.compiled(name, PUBLIC[name].half)
    assert said.exit_code == 0
    check(said, artifact)
    assert seconds < 60  # of a busy machine; 5 s by itself


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, subject in LIGHT.items() if subject.half != "fp16"])
def test_what_leaves_the_range_of_f16_is_reported(name: str) -> None:
    subject, model = PUBLIC[name], onnx.load(PUBLIC[name].file)
    every = onnxruntime_run(with_all_values(model), subject.inputs())
    assert max(np.abs(a).max(initial=0) for a in every.values() if a.dtype == np.float32) > np.finfo(np.float16).max
    artifact = public.compiled(name, "fp16")
    artifact.model.run(dict(subject.inputs()))
    assert any(entry.overflow for entry in artifact.model.sticky())


# why a quantised model may differ by more than floats do --------------------------------------------------------------
@pytest.mark.parametrize("name", models(QUANTISED))
def test_bytes_differ_by_one_and_only_where_a_quotient_lies_between_two(name: str) -> None:
    """A float that is off by a rounding makes another byte there, which no arithmetic of floats can rule out."""
    subject, model = PUBLIC[name], onnx.load(PUBLIC[name].file)
    given = subject.inputs()
    every = onnxruntime_run(with_all_values(model), given)
    nodes = [node for node in model.graph.node if node.op_type == "DynamicQuantizeLinear"]
    known = {output.name for output in model.graph.output}
    for key in dict.fromkeys(key for node in nodes for key in (node.input[0], *node.output) if key not in known):
        kind = onnx.helper.np_dtype_to_tensor_dtype(every[key].dtype)
        model.graph.output.append(onnx.helper.make_tensor_value_info(key, kind, every[key].shape))
    shapes = {key: list(array.shape) for key, array in given.items()}
    ours = stepwell.compile(model, target=public.TARGET, precision="fp32", shapes=shapes).model.run(given)
    assert nodes
    for node in nodes:
        x, (q, scale, zero) = node.input[0], node.output
        assert np.abs(ours[x] - every[x]).max() <= 1e-5 * np.abs(every[x]).max()
        assert ours[zero] == every[zero]
        other = ours[q] != every[q]
        assert other.mean() < 1e-4
        assert np.abs(ours[q].astype(int) - every[q])[other].max(initial=0) <= 1
        quotients = every[x][other].astype(np.float64) / every[scale]
        assert np.abs(np.abs(quotients - np.floor(quotients)) - 0.5).max(initial=0) < HALVES


# what makes the comparison fair ---------------------------------------------------------------------------------------
def test_the_inputs_mean_something() -> None:
    labels = json.loads(fetch("filetype")["labels"].read_text(encoding="utf-8"))["target_labels_space"]
    assert labels[int(public.reference("filetype")["target_label"].argmax())] == "png"
    scores = public.reference("tashkeel-rawi-3")["value"][0]
    assert len(scores) == len(TEXT)
    assert len(set(scores.argmax(-1).tolist())) > 5


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_steps_are_counted(steps: int) -> None:
    values = np.random.default_rng(SEED).integers(0, 250, 100).astype(np.uint8)
    values[:2] = 0, 255
    moved = values.copy()
    moved[50] = values[50] + steps
    assert public.steps_apart(moved, values) == steps
    assert public.steps_apart(moved * np.float32(0.5), values * np.float32(0.5)) == pytest.approx(steps)


def test_the_page_shows_every_model() -> None:
    page = Path(public.PAGE).read_text(encoding="utf-8")
    for name in PUBLIC:
        assert f"\n| {name} |" in page
