"""The models of the benchmark: they run, keep to the range of fp16, tell inputs apart, mean the same in all forms."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

from stepwell.bench import models

Array = NDArray[Any]
SMALL: dict[str, dict[str, Any]] = {
    "resnet50": {"size": 64, "layers": (1, 1, 1, 2), "width": 16, "classes": 50},
    "mobilenetv2": {"size": 64, "classes": 50, "last": 320},
    "bert": {"seq": 24, "layers": 2, "hidden": 64, "heads": 4, "vocabulary": 100},
    "vit": {"size": 64, "layers": 2, "hidden": 64, "heads": 4, "classes": 50},
    "llama": {"seq": 16, "hidden": 64, "heads": 8, "kv_heads": 2, "inner": 128},
}
LLAMA = {"hidden": 64, "heads": 8, "kv_heads": 2, "inner": 128}
FINITE = 65504.0


def run(model: onnx.ModelProto, inputs: dict[str, Array]) -> dict[str, Array]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return {name: np.asarray(array) for name, array in zip(names, session.run(names, inputs), strict=True)}


def close(a: Array, b: Array) -> bool:
    return bool(np.abs(a - b).max() <= 2e-5 * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize("name", models.MODELS)
def test_shapes_are_as_declared(name: str) -> None:
    model = models.build(name, batch=2, **SMALL[name])
    onnx.checker.check_model(model)
    found = run(model, models.inputs(model))
    for output in model.graph.output:
        assert found[output.name].shape == tuple(d.dim_value for d in output.type.tensor_type.shape.dim)
        assert found[output.name].dtype == np.float32


@pytest.mark.parametrize("name", models.MODELS)
def test_every_value_keeps_to_the_range_of_fp16(name: str) -> None:
    model = models.build(name, **SMALL[name])
    inputs = models.inputs(model)
    names = [output for node in model.graph.node if node.op_type != "Constant" for output in node.output]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=output) for output in names)
    for value, array in run(model, inputs).items():
        if array.dtype != np.float32:
            continue
        # A mask hides by the lowest f32, and so do scores that it was added to.
        seen = array[array > models.encoders.HIDDEN_BY_MASK * 0.9] if name in ("bert", "llama") else array
        assert np.isfinite(array).all(), value
        assert np.abs(seen).max(initial=0) < 100, value


@pytest.mark.parametrize("name", models.MODELS)
def test_inputs_are_told_apart(name: str) -> None:
    model = models.build(name, **SMALL[name])
    first, other = (next(iter(run(model, models.inputs(model, seed)).values())) for seed in (0, 1))
    assert models.likeness(first, other) < 0.98
    assert first.std() > 0.3
    if name in ("resnet50", "mobilenetv2", "vit"):
        assert models.margin(first) > 0.01


@pytest.mark.parametrize("name", ["resnet50", "mobilenetv2"])
def test_rounding_errors_do_not_grow(name: str) -> None:
    """Rounding the input and all weights to fp16 stays below the tolerance of outputs."""
    model = models.build(name, **SMALL[name])
    inputs = models.inputs(model)
    exact = run(model, inputs)["output"]
    for tensor in model.graph.initializer:
        rounded = onnx.numpy_helper.to_array(tensor).astype(np.float16).astype(np.float32)
        tensor.CopyFrom(onnx.numpy_helper.from_array(rounded, tensor.name))
    found = run(model, {key: array.astype(np.float16).astype(np.float32) for key, array in inputs.items()})["output"]
    assert float(np.linalg.norm(found - exact) / np.linalg.norm(exact)) < 0.01


@pytest.mark.parametrize("name", models.MODELS)
def test_the_weights_do_not_depend_on_the_batch(name: str) -> None:
    one, two = models.build(name, **SMALL[name]), models.build(name, batch=2, **SMALL[name])
    inputs = models.inputs(two)
    pair, last = run(two, inputs), run(one, {key: array[1:] for key, array in inputs.items()})
    for output, array in last.items():
        assert close(array, pair[output][1:])


@pytest.mark.parametrize("name", ["bert", "vit"])
def test_a_norm_in_parts_is_the_same_norm(name: str) -> None:
    whole, parts = (models.build(name, norm_as_op=as_op, **SMALL[name]) for as_op in (True, False))
    assert {node.op_type for node in whole.graph.node} - {node.op_type for node in parts.graph.node} == {
        "LayerNormalization"
    }
    for output, array in run(parts, models.inputs(whole)).items():
        assert close(array, run(whole, models.inputs(whole))[output])


def test_what_a_mask_hides_has_no_effect() -> None:
    model = models.build("bert", **SMALL["bert"])
    inputs = models.inputs(model)
    other = dict(inputs, input_ids=np.where(inputs["attention_mask"] > 0, inputs["input_ids"], 7))
    assert (inputs["input_ids"] != other["input_ids"]).any()
    seen = inputs["attention_mask"][0] > 0
    a, b = (run(model, x)["last_hidden_state"][:, seen] for x in (inputs, other))
    assert np.array_equal(a, b)


def cached(seq: int, past: int, x: Array, keys: Array, values: Array) -> dict[str, Array]:
    """Tokens `past` to `past + seq` of a sequence, after the keys and values of those before."""
    model = models.build("llama", seq=seq, past=past, **LLAMA)
    rows, columns = np.indices((1, 1, seq, past + seq))[-2:]
    mask = np.where(columns <= rows + past, 0, models.encoders.HIDDEN_BY_MASK).astype(np.float32)
    inputs = {"hidden_states": x, "position_ids": np.arange(past, past + seq)[None], "attention_mask": mask}
    return run(model, inputs | {"past_key": keys, "past_value": values})


def test_a_cache_continues_a_sequence() -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((1, 8, 64)).astype(np.float32)
    keys, values = random.standard_normal((2, 1, 2, 2, 8)).astype(np.float32)
    at_once = cached(8, 2, x, keys, values)
    first = cached(5, 2, x[:, :5], keys, values)
    second = cached(3, 7, x[:, 5:], first["present_key"], first["present_value"])
    assert close(np.concatenate([first["output"], second["output"]], 1), at_once["output"])
    assert close(second["present_key"], at_once["present_key"])
    assert close(second["present_value"], at_once["present_value"])


def test_prefill_is_a_sequence_without_a_past() -> None:
    model = models.build("llama", seq=8, **LLAMA)
    x = models.inputs(model)
    hidden = models.build("llama", seq=8, past=1, **LLAMA)
    inputs = models.inputs(hidden) | x | {"position_ids": np.arange(8)[None]}
    inputs["attention_mask"][..., 0] = models.encoders.HIDDEN_BY_MASK
    assert close(run(hidden, inputs)["output"], run(model, x)["output"])


def test_heads_share_keys_and_positions_matter() -> None:
    model = models.build("llama", seq=8, past=4, **LLAMA)
    inputs = models.inputs(model)
    before = run(model, inputs)
    moved = run(model, inputs | {"position_ids": inputs["position_ids"] + np.arange(8)})
    assert not close(moved["output"], before["output"])
    assert before["present_key"].shape == (1, 2, 12, 8)


def test_a_file_is_built_once_and_anew_for_new_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_CACHE", str(tmp_path))
    options = {"seq": 8, **LLAMA}
    file = models.built("llama", **options)
    assert file.parent == tmp_path / "models" / "built"
    assert onnx.load(file) == models.build("llama", **options)
    assert {path.name for path in file.parent.iterdir()} == {file.name, file.with_suffix(".json").name}
    file.write_bytes(b"")
    assert models.built("llama", **options).read_bytes() == b""
    monkeypatch.setattr(models, "_digest", lambda: "of other code")
    assert onnx.load(models.built("llama", **options)) == models.build("llama", **options)


def test_an_unknown_model_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert models.main(["resnet51"]) == 1
    assert capsys.readouterr().err.startswith("resnet51: no such model; there are resnet50, mobilenetv2, bert")
