"""The bits of whole models: the same on every target, tiling, core count, interleaving and CPU, fused or not.

tests/golden.json holds their hashes. A change of docs/numerics.md, or of a pass before `precision`, changes them on
purpose: then STEPWELL_BLESS=1 writes them anew.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from acceptance import graph_oracle
from acceptance.zoo import EVERYWHERE, MODELS, compiled, digest, inputs, proto, save
from chips import NAMES, chip
from onnx_models import bert_layer, mlp, packed_mlp, small_cnn

from stepwell.dialects.evaluate import evaluate
from stepwell.driver import api
from stepwell.driver.check import check_artifact
from stepwell.driver.passmanager import PipelineError, Settings
from stepwell.runtime import jit

GOLDEN = Path(__file__).parents[1] / "golden.json"
BLESS = "STEPWELL_BLESS"
PRECISIONS = ("fp16", "bf16", "fp32")
TILED = [
    pytest.param(name, variant, marks=[pytest.mark.slow] if name == "ocr" and variant > 1 else [])
    for name in MODELS
    for variant in (1, 3, 7)
]
"""Other tilings than the best; those of the recogniser take some seconds each."""
ON_ALL_CORES = [
    pytest.param(name, target, marks=[pytest.mark.slow] if name == "ocr" and target != "edge" else [])
    for name in MODELS
    for target in NAMES
]
SEEDS = (1, 2, 3)


def hash_of(name: str, target: str, precision: str = "fp16", cores: int = 2, **options: Any) -> str:
    """The hash of a model's outputs on the emulator in program order."""
    return digest(compiled(name, target, precision, cores, **options).model.run(inputs(name)))


def golden(name: str, precision: str = "fp16") -> str:
    """The committed hash."""
    return json.loads(GOLDEN.read_text(encoding="utf-8"))[name][precision]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_outputs_are_the_committed_ones(name: str, precision: str) -> None:
    found = hash_of(name, "edge", precision)
    if os.environ.get(BLESS):
        table = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}
        table.setdefault(name, {})[precision] = found
        GOLDEN.write_text(json.dumps(table, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    assert found == golden(name, precision), f"other bits; if that is meant: {BLESS}=1 pytest {Path(__file__).name}"


@pytest.mark.parametrize(("name", "target", "cores"), EVERYWHERE)
def test_targets_and_cores_change_no_bit(name: str, target: str, cores: int) -> None:
    assert hash_of(name, target, cores=cores) == golden(name)


@pytest.mark.parametrize(("name", "target", "cores"), EVERYWHERE)
def test_no_target_and_number_of_cores_makes_a_race(name: str, target: str, cores: int) -> None:
    assert check_artifact(compiled(name, target, cores=cores)).findings == ()


@pytest.mark.parametrize(("name", "target"), ON_ALL_CORES)
@pytest.mark.parametrize("precision", ["bf16", "fp32"])
def test_targets_change_no_bit_of_another_precision(name: str, target: str, precision: str) -> None:
    assert hash_of(name, target, precision, chip(target).cores) == golden(name, precision)


@pytest.mark.parametrize(("name", "variant"), TILED)
def test_other_tilings_change_no_bit(name: str, variant: int) -> None:
    artifact = compiled(name, variant=variant)
    assert [k.code for k in artifact.kernels] != [k.code for k in compiled(name).kernels], "another tiling is the same"
    assert hash_of(name, "edge", variant=variant) == golden(name)


@pytest.mark.parametrize("name", MODELS)
def test_fusion_changes_no_bit(name: str) -> None:
    artifact = compiled(name, enabled=False)
    assert len(artifact.plans[0].launches) > len(compiled(name).plans[0].launches)
    assert hash_of(name, "edge", enabled=False) == golden(name)


@pytest.mark.parametrize(("name", "target"), ON_ALL_CORES)
@pytest.mark.parametrize("linked", [True, False])
def test_interleavings_change_no_bit(name: str, target: str, linked: bool) -> None:
    """Of one stream of all launches, and of launches one by one."""
    model = compiled(name, target, cores=chip(target).cores).model
    assert {digest(model.run(inputs(name), seed=seed, linked=linked)) for seed in SEEDS} == {golden(name)}


@pytest.mark.parametrize("name", MODELS)
def test_the_graph_level_gives_the_same_bits(name: str) -> None:
    module = api.lower(proto(name), to="graph", shapes=MODELS[name].shapes)
    outputs = evaluate(module, list(inputs(name).values()), api.weights_of(module))
    names = [tensor.name for tensor in compiled(name).model.outputs]
    assert digest(dict(zip(names, outputs, strict=True))) == golden(name)


def test_a_model_that_does_not_fit_says_why() -> None:
    small = replace(chip("tiny"), l1_bytes=1024)
    with pytest.raises(PipelineError) as error:
        api.compile(proto("ocr"), target=small, shapes=MODELS["ocr"].shapes, host=False)
    rule = "a panel of rows and the tiles of a convolution must fit on chip"
    assert re.search(
        rf"graph.conv2d of p2o.BatchNormalization.\d+, p2o.Conv.\d+: {rule} \(found l1 \d+ of 1024 bytes\)",
        str(error.value),
    )
    assert "reproduce with: stepwell-opt " in str(error.value)
    assert "\n" not in str(error.value)


# the oracle -----------------------------------------------------------------------------------------------------------

SMALL = {
    "mlp": mlp,
    "packed": packed_mlp,
    "small_cnn": lambda: small_cnn(size=16),
    "attention": lambda: bert_layer(seq=12, hidden=32, heads=2, ffn=48),
}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", SMALL)
def test_the_slow_oracle_gives_the_same_bits(name: str, precision: str) -> None:
    model = SMALL[name]()
    settings = Settings(stop_after="decompose")
    module = api.lower(model, to="graph", precision=precision, settings=settings)
    artifact = api.compile(model, target="tiny", precision=precision)
    random = np.random.default_rng(4)
    arrays = {t.name: random.standard_normal(t.shape).astype(t.border_dtype) for t in artifact.model.inputs}
    outputs = graph_oracle.run(module, list(arrays.values()), api.weights_of(module))
    names = [tensor.name for tensor in artifact.model.outputs]
    assert digest(dict(zip(names, outputs, strict=True))) == digest(artifact.model.run(arrays))


# other CPUs -----------------------------------------------------------------------------------------------------------

SCRIPT = """
import sys
from dataclasses import replace
from pathlib import Path
import numpy as np
import stepwell
from acceptance.zoo import digest

for folder in sys.argv[1:]:
    folder = Path(folder)
    print(digest(stepwell.run(stepwell.load(folder / "model.stw"), dict(np.load(folder / "inputs.npz")))))
"""


def hashes_on(cpu: str, tmp_path: Path) -> list[str]:
    """The hashes of all models in a process that compiles for `cpu`."""
    for name in MODELS:
        (tmp_path / name).mkdir()
        compiled(name).save(tmp_path / name / "model.stw")
        save(tmp_path / name / "inputs.npz", inputs(name))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_CPU")}
    environment |= {"NUMBA_CPU_NAME": cpu, "PYTHONPATH": os.pathsep.join(map(str, sys.path))}
    command = [sys.executable, "-c", SCRIPT, *(str(tmp_path / name) for name in MODELS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(not jit.HAS_FMA, reason="this CPU is less than x86-64-v3")
def test_a_cpu_with_avx2_gives_the_same_bits(tmp_path: Path) -> None:
    assert hashes_on("x86-64-v3", tmp_path) == [golden(name) for name in MODELS]


@pytest.mark.slow
def test_a_cpu_without_fma_and_f16c_gives_the_same_bits(tmp_path: Path) -> None:
    assert hashes_on("x86-64-v2", tmp_path) == [golden(name) for name in MODELS]
