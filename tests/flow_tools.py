"""How tests run models whose values decide what runs."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

import stepwell
from stepwell.dialects.evaluate import evaluate
from stepwell.dialects.graph.constants import NUMPY
from stepwell.dialects.graph.host import is_host
from stepwell.dialects.graph.op import element
from stepwell.driver import api
from stepwell.driver.check import check_artifact
from stepwell.driver.compilation import main_of
from stepwell.runtime.artifact import Artifact
from stepwell.runtime.artifact_rules import problems
from stepwell.runtime.steps import Branch, Repeat, every

Array = NDArray[Any]
Feeds = dict[str, Any]

X = np.array([[1, -2, 3], [0.5, 2, -1]], np.float32)
BOTH = (X, -X)


def agree(model: onnx.ModelProto, *feeds: Feeds, target: str = "tiny", precision: str = "fp32") -> Artifact:
    """All levels and the saved file give the same bits, and onnxruntime's values; no launch races with another."""
    artifact = api.compile(model, target=target, precision=precision)
    assert check_artifact(artifact).findings == ()
    assert problems(artifact) == []
    module = api.lower(model, to="graph", target=target, precision=precision)
    apart = api.compile(model, target=target, precision=precision, linked=False)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    for given in feeds:
        found = stepwell.run(artifact, given)
        graph = evaluate(module, arguments(module, given), api.weights_of(module))
        again = apart.model.run(given, seed=1)
        for name, level, expected in zip(found, graph, session.run(None, given), strict=True):
            same(found[name], np.asarray(level).astype(found[name].dtype, copy=False), exact=True)
            same(found[name], again[name], exact=True)
            same(found[name], expected, tolerance=1e-5 if precision == "fp32" else 1e-2)
    return artifact


def arguments(module: ModuleOp, given: Feeds) -> list[Any]:
    """In the types that `@main` takes: it has no i64."""
    taken = zip(main_of(module).body.block.args, given.values(), strict=True)
    return [a if is_host(value) else a.astype(NUMPY[element(value)], copy=False) for value, a in taken]


def same(found: Any, expected: Any, *, exact: bool = False, tolerance: float = 0.0) -> None:
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if exact or expected.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max(initial=0))


def kinds(artifact: Artifact) -> set[str]:
    """Which steps of the plan decide."""
    return {type(step).__name__ for step in every(artifact.plans[0].steps) if isinstance(step, Branch | Repeat)}


def nodes_on_cpu(artifact: Artifact) -> list[str]:
    return [node.name for part in artifact.host for node in part.nodes]
