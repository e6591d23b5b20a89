"""Contractions, windows, normalisations and reductions with random attributes: imported, evaluated, compared with
onnxruntime, as is the float64 reference.

pytest tests/frontend/random_nodes_test.py -k ConvTranspose
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx_models import node_model
from random_nodes import DRAWS

from stepwell.dialects.evaluate import evaluate, reference
from stepwell.frontend.onnx import import_onnx

Array = NDArray[Any]
SEEDS = 20


def by_onnxruntime(model: onnx.ModelProto, inputs: Sequence[Array]) -> list[Array]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [np.asarray(value) for value in session.run(None, {f"x{i}": value for i, value in enumerate(inputs)})]


def agree(found: Array, wanted: Array) -> None:
    assert found.shape == wanted.shape
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found.astype(wanted.dtype), wanted)
        return
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(np.isfinite(found), finite)
    scale = max(1.0, float(np.max(np.abs(wanted[finite]), initial=0)))
    assert np.max(np.abs(found[finite] - wanted[finite]), initial=0) <= 2e-5 * scale


@pytest.mark.parametrize("operator", list(DRAWS))
def test_random_attributes_agree_with_onnxruntime(operator: str) -> None:
    compared = 0
    for seed in range(SEEDS):
        drawn = DRAWS[operator](np.random.default_rng([seed, len(operator)]))
        model = node_model(
            operator, drawn.inputs, drawn.attributes, drawn.opset, drawn.constants, outputs=drawn.outputs
        )
        try:
            wanted = by_onnxruntime(model, drawn.inputs)
        except Exception as error:  # noqa: BLE001 - what onnxruntime does not run has no class of its own
            assert type(error).__name__ in ("NotImplemented", "InvalidArgument"), error  # noqa: PT017
            continue
        compared += 1
        module, weights = import_onnx(model)
        module.verify()
        for level in (evaluate, reference):
            for mine, value in zip(level(module, drawn.inputs, weights), wanted, strict=True):
                agree(mine, value)
    assert compared >= SEEDS // 2
