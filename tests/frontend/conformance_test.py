"""ONNX's own test cases of every operator that can be imported: each agrees, or is refused with the reason.

pytest tests/frontend/conformance_test.py -k Softmax

An operator is found through its class (`GraphOp.ONNX`); a new one needs nothing here. Cases give shapes, axes and the
like as inputs; where these must be known, the inputs after the first become constants.
"""

import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx.backend.test.case.node import collect_testcases

from stepwell.dialects.evaluate import evaluate
from stepwell.frontend.onnx import TABLE, ImportProblems, import_onnx

Array = NDArray[Any]
NO_CASE = {"GlobalLpPool", "ReduceLogSumExp"}
"""Operators of which ONNX has no case, or only some in f64."""
pytestmark = pytest.mark.xdist_group("conformance")  # one process makes the cases, which takes seconds


@cache
def cases() -> Mapping[str, Sequence[Any]]:
    """Cases of one node, by operator."""
    found: dict[str, list[Any]] = defaultdict(list)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collected = collect_testcases(None)  # pyright: ignore[reportArgumentType]
    for case in collected:
        model: Any = case.model
        nodes = model.graph.node
        if len(nodes) == 1 and nodes[0].domain in ("", "ai.onnx") and not model.functions:
            found[nodes[0].op_type].append(case)
    return found


def arrays(values: Sequence[Any]) -> list[Array] | None:
    """The values of a case; None if one of them is a sequence or an optional value."""
    found = [onnx.numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in values]
    return found if all(isinstance(value, np.ndarray | np.generic) for value in found) else None


def with_constants(model: onnx.ModelProto, inputs: Sequence[Array]) -> onnx.ModelProto:
    """The inputs after the first as constants."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    known = [(info.name, array) for info, array in zip(model.graph.input, inputs, strict=True)][1:]
    del changed.graph.input[1:]
    changed.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in known)
    return changed


def outputs(model: onnx.ModelProto, inputs: Sequence[Array]) -> list[Array]:
    """What the imported model computes. Raises `ImportProblems`."""
    try:
        module, weights = import_onnx(model)
    except ImportProblems:
        inputs, model = inputs[:1], with_constants(model, inputs)
        module, weights = import_onnx(model)
    return evaluate(module, inputs, weights)


def departure(case: Any, found: Sequence[Array], wanted: Sequence[Array]) -> str | None:
    """Where results are others than the case's, by its own tolerances."""
    for mine, theirs in zip(found, wanted, strict=True):
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
            return f"{case.name}: {mine.dtype}{mine.shape}, expected {theirs.dtype}{theirs.shape}"
        a, b = mine.astype(np.float64), theirs.astype(np.float64)
        if not np.allclose(a, b, rtol=max(case.rtol, 1e-5), atol=max(case.atol, 1e-6), equal_nan=True):
            return f"{case.name}: {mine}, expected {theirs}"
    return None


@pytest.mark.parametrize("operator", [name for name in TABLE if name not in NO_CASE])
def test_an_operator_agrees_with_the_cases_of_onnx(operator: str) -> None:
    agreed = 0
    for case in cases()[operator]:
        for given, expected in case.data_sets:
            inputs, wanted = arrays(given), arrays(expected)
            if inputs is None or wanted is None:
                continue
            try:
                found = outputs(case.model, inputs)
            except ImportProblems:
                continue
            assert departure(case, found, wanted) is None
            agreed += 1
    assert agreed, f"none of the {len(cases()[operator])} cases of {operator} can be imported"
