"""Chips that nobody has thought of: whatever a target can state, models have the same bits on it, and no race.

pytest tests/targets/random_test.py -k 7      the chip of seed 7
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from acceptance.zoo import digest
from chips import chip
from numpy.typing import NDArray
from onnx_models import bert_layer, mlp, small_cnn

import stepwell
from stepwell.driver.check import check_artifact
from stepwell.runtime.artifact import Artifact
from stepwell.runtime.target import Target

MODELS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "mlp": lambda: mlp(batch=70, sizes=(40, 90, 33)),
    "small_cnn": lambda: small_cnn(size=16),
    "attention": lambda: bert_layer(seq=20, hidden=32, heads=2, ffn=48),
}
QUICK = 8
SEEDS = [pytest.param(seed, marks=[pytest.mark.slow] if seed >= QUICK else []) for seed in range(40)]


def random_chip(seed: int) -> Target:
    """A sound target; memories have a few KiB, so that everything is cut. All numbers are drawn apart."""
    random = np.random.default_rng(seed)

    def one(*choices: int) -> int:
        return int(random.choice(choices))

    def rate(low: float, high: float) -> float:
        return round(float(np.exp(random.uniform(np.log(low), np.log(high)))), 2)

    alignment = one(32, 64, 128, 256)
    sizes = {"l1_bytes": 64, "l0a_bytes": 6, "l0b_bytes": 6, "l0c_bytes": 10, "ub_bytes": 32}
    return Target.of(
        {
            "cores": one(1, 2, 3, 5, 7),
            "clock_mhz": rate(100, 3000),
            "queue_depth": one(4, 5, 7, 16, 64),
            "gm_bytes": 1 << 28,
            **{key: int(least * random.uniform(1, 6)) * 1024 for key, least in sizes.items()},
            "alignment": alignment,
            "cube_m": one(1, 4, 8, 12, 16, 32, 40),
            "cube_n": one(4, 8, 16, 24, 32, 64),
            "cube_k_f16": one(1, 8, 16, 20, 32),
            "cube_k_i8": one(4, 32, 64),
            "cube_k_f32": one(1, 4, 16),
            "cube_cost_f32": one(1, 2, 4, 7),
            "gm_port": rate(4, 600),
            "gm_path": rate(4, 300),
            "gm_burst": one(1, 16, 32, 48, 128),
            "feed_a_bytes": rate(8, 600),
            "feed_b_bytes": rate(8, 600),
            "drain_elements": rate(2, 80),
            "vector_bytes": one(16, 96, 256, 1000),
            "move_bytes": rate(8, 300),
            "fill_bytes": rate(8, 300),
            "fold_bytes": rate(8, 1000),
            **{key: one(0, 1, 9, 40, 300) for key in Target.load("tiny").to_dict() if key.startswith("fixed_")},
            "launch": one(0, 100, 2000),
            "signal_latency": one(0, 10, 900),
            "host_bytes": rate(1, 30),
            "host_latency": one(0, 5000),
            "host_node": one(0, 9000),
            "host_rate": 2.0,
        },
        f"random{seed}",
    )


def inputs(artifact: Artifact) -> dict[str, NDArray[Any]]:
    random = np.random.default_rng(1)
    return {t.name: random.standard_normal(t.shape).astype(t.border_dtype) for t in artifact.model.inputs}


@cache
def bits_on_edge(name: str) -> str:
    artifact = stepwell.compile(MODELS[name](), target=chip("edge"))
    return digest(artifact.model.run(inputs(artifact)))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_chip_gives_the_same_bits(name: str, seed: int) -> None:
    artifact = stepwell.compile(MODELS[name](), target=random_chip(seed))
    for order in (None, 1):
        assert digest(artifact.model.run(inputs(artifact), seed=order)) == bits_on_edge(name)
    assert check_artifact(artifact).findings == ()
    profile = artifact.model.profile()
    for launch in profile.launches:
        assert launch.alone >= max(launch.cube_cycles, launch.gm_bytes / artifact.target.gm_port), launch
