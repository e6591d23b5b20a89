"""How close the device is to onnxruntime in fp32, for each policy; and that the models can tell right from wrong."""

import numpy as np
import pytest
from acceptance.subjects import MODELS as SMALL
from acceptance.zoo import FITS, FUSED, MODELS, PICTURE, SHAPE_WORK, compiled, inputs, proto, reference
from ocr import demo
from onnx_models import bert_layer, mlp, small_cnn

from stepwell.driver.agreement import COSINE, agree, agree_all, onnxruntime_run
from stepwell.runtime.steps import Launch


@pytest.mark.parametrize(("name", "target"), FITS)
def test_fp16_is_close_and_decides_the_same(name: str, target: str) -> None:
    for found in agree_all(compiled(name, target).model.run(inputs(name)), reference(name)):
        assert found.cosine >= COSINE, found
        assert found.top1 == 1, found


@pytest.mark.parametrize(("name", "target"), FITS)
def test_fp32_is_exact_to_a_ten_thousandth(name: str, target: str) -> None:
    for found in agree_all(compiled(name, target, "fp32").model.run(inputs(name)), reference(name)):
        assert found.max_abs_error <= 1e-4 * found.max_abs_reference, found
        assert found.top1 == 1, found


@pytest.mark.parametrize(("name", "target"), FITS)
def test_bf16_is_close(name: str, target: str) -> None:
    """Its eight bits of precision: 0.998 of the deepest of these models."""
    for found in agree_all(compiled(name, target, "bf16").model.run(inputs(name)), reference(name)):
        assert found.cosine >= 0.998, found
        assert found.top1 >= 0.95, found


@pytest.mark.parametrize("name", MODELS)
def test_policies_differ(name: str) -> None:
    """A policy that does nothing would be close as well."""
    errors = [
        agree_all(compiled(name, "edge", precision).model.run(inputs(name)), reference(name))[0].max_abs_error
        for precision in ("fp32", "fp16", "bf16")
    ]
    assert errors[0] * 10 < errors[1] < errors[2]


SEEDED = {
    "mlp": mlp,
    "small_cnn": small_cnn,
    "bert_layer": bert_layer,
    "bert_layer without a mask": lambda: bert_layer(masked=False),
    **{f"small {name}": make for name, make in SMALL.items()},
}


@pytest.mark.parametrize("name", SEEDED)
def test_seeded_weights_tell_inputs_apart(name: str) -> None:
    """Else equal outputs would prove nothing."""
    model = SEEDED[name]()
    outputs = []
    for seed in (1, 2):
        random = np.random.default_rng(seed)
        arrays = {
            each.name: random.standard_normal([d.dim_value for d in each.type.tensor_type.shape.dim]).astype(np.float32)
            for each in model.graph.input
        }
        outputs.append(onnxruntime_run(model, arrays))
    for key, array in outputs[0].items():
        found = agree(key, array, outputs[1][key])
        assert found.cosine < 0.99, found


@pytest.mark.parametrize("name", MODELS)
def test_nothing_runs_on_the_host(name: str) -> None:
    artifact = compiled(name)
    (plan,) = artifact.plans
    assert plan.steps
    assert all(type(step) is Launch for step in plan.steps)
    launched = {node for step in plan.launches for nodes in step.nodes for node in nodes}
    missing = [
        f"{each.op_type} {each.name}"
        for each in proto(name).graph.node
        if each.name not in launched and each.op_type not in SHAPE_WORK | FUSED
    ]
    assert not missing
    written = {step.arguments[-1].tensor for step in plan.launches if not isinstance(step.arguments[-1], int)}
    assert written >= set(plan.outputs)


@pytest.mark.parametrize("precision", ["fp16", "fp32"])
def test_the_picture_reads_as_onnxruntime_reads_it(precision: str) -> None:
    if not PICTURE.exists():
        pytest.skip("no picture in examples/ocr")
    artifact = compiled("ocr", "edge", precision)
    image = {"x": demo.picture(PICTURE)}
    (found,), (expected,) = artifact.model.run(image).values(), onnxruntime_run(proto("ocr"), image).values()
    characters = demo.alphabet(artifact.metadata.onnx["character"])
    text = demo.text(found[0], characters)
    assert text == demo.text(expected[0], characters)
    assert len(text) > 5
    assert agree("picture", found, expected).cosine >= COSINE
