"""What users of other compilers reported: right values here, in the form reported and in further ones of its kind."""

from typing import Any

import numpy as np
import pytest
from acceptance.report_graphs import FUSIONS, MEMORY, PRECISION
from acceptance.report_models import OPERATORS, SHAPES, Report
from numpy.typing import NDArray

import stepwell
from stepwell.driver.agreement import onnxruntime_run

Array = NDArray[Any]
VALUES = OPERATORS | SHAPES | FUSIONS | MEMORY | PRECISION
FORMS = 3
"""The reported form and two further ones, at least."""


def differs(found: Array, right: Array, report: Report) -> str | None:
    """What is wrong with an output: its type, its shape, its values."""
    if (found.dtype, found.shape) != (right.dtype, right.shape):
        return f"{found.dtype}{list(found.shape)} for {right.dtype}{list(right.shape)}"
    if right.dtype.kind == "f":
        wide = found.astype(np.float64), right.astype(np.float64)
        return None if np.allclose(*wide, report.rtol, report.atol, equal_nan=True) else f"{found} for {right}"
    far = np.abs(found.astype(np.int64) - right.astype(np.int64)) > report.steps if report.steps else found != right
    return f"{found} for {right}" if np.any(far) else None


def check(report: Report) -> None:
    """Each set of feeds, compiled for its shapes."""
    for given in report.sets:
        feeds = report.feeds(given)
        shapes = {name: array.shape for name, array in feeds.items()}
        artifact = stepwell.compile(report.model(), target="tiny", precision="fp32", shapes=shapes)
        found = artifact.model.run(feeds)
        right: dict[str, Any] = dict(report.expected)
        if not right.keys() >= found.keys():
            right = onnxruntime_run(report.model(), feeds) | right
        assert list(found) == report.outputs.split()
        problems = {name: differs(found[name], right[name], report) for name in found}
        assert not any(problems.values()), problems


@pytest.mark.parametrize("name", VALUES)
def test_a_kind_of_report_has_the_right_values(name: str) -> None:
    check(VALUES[name])


@pytest.mark.parametrize("name", VALUES)
def test_each_kind_has_further_forms(name: str) -> None:
    assert len(VALUES[name].outputs.split()) * len(VALUES[name].sets) >= FORMS
