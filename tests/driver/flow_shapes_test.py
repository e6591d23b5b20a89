"""An If by values of which one branch is no network for the shapes at hand: what the other one gives goes on on the
device, and whoever takes the first is told."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from assessments import check
from onnx_models import text_model

import stepwell
from stepwell.driver import api
from stepwell.driver.assess import assess
from stepwell.driver.cli import main
from stepwell.driver.errors import problems_of
from stepwell.frontend.problems import ImportProblems
from stepwell.runtime.artifact import Artifact
from stepwell.runtime.steps import Branch, HostCall, every
from stepwell.runtime.stream import StreamError

pytestmark = pytest.mark.xdist_group("device")

X = np.linspace(-1, 2, 12, dtype=np.float32).reshape(2, 6)
RESHAPE = """u = Neg(y) r = Constant<value_ints = [5, 3]>() t = Reshape(u, r)
    f = Constant<value_ints = [2, 6]>() b = Reshape(t, f)"""
CONV = """i = Constant<value_ints = [1, 2, 6]>() u = Reshape(y, i) t = Conv(u, kernel)
    m = ReduceMax<keepdims = 0>(t) b = Add(y, m)"""
NESTED = """yes = Constant<value = bool {1}>() t = If (yes) <
        then_branch = n () => (float[2,6] k) { k = Gemm(y, wide) },
        else_branch = o () => (float[2,6] l) { l = Exp(y) }>
    b = Relu(t)"""
CONSTANTS: dict[str, Any] = {"kernel": np.ones((1, 2, 9), np.float32), "wide": np.ones((5, 6), np.float32)}


def model_of(
    bad: str, good: str = "a = Relu(y)", kind: str = "float[2,6]", behind: str = "z = Exp(r)"
) -> onnx.ModelProto:
    """`go` chooses between both."""
    return text_model(
        f"""y = Abs(x) r = If (go) <
            then_branch = g () => ({kind} a) {{ {good} }},
            else_branch = h () => ({kind} b) {{ {bad} }}>
        {behind}""",
        "float[2,6] x, bool go",
        "float[2,6] z",
        **CONSTANTS,
    )


def outside_branches(artifact: Artifact) -> list[str]:
    """Nodes on the CPU that run whichever branch is taken."""
    calls = [step for step in artifact.plans[0].steps if isinstance(step, HostCall)]
    return [node.name for call in calls for node in artifact.host[call.part].nodes]


@pytest.mark.parametrize("bad", [RESHAPE, CONV, NESTED])
def test_the_other_branch_runs_on_the_device(bad: str) -> None:
    model = model_of(bad)
    artifact = api.compile(model, target="tiny", precision="fp32")
    assert outside_branches(artifact) == []
    (branch,) = (step for step in artifact.plans[0].steps if isinstance(step, Branch))
    assert not any(isinstance(step, HostCall) for step in every(branch.then))
    assert [type(step) for step in every(branch.otherwise)].count(HostCall) == 1
    found = stepwell.run(artifact, {"x": X, "go": np.array(True)})["z"]
    np.testing.assert_allclose(found, np.exp(np.abs(X)), rtol=1e-6)


@pytest.mark.parametrize(("bad", "node"), [(RESHAPE, "Reshape"), (CONV, "Conv"), (NESTED, "Gemm")])
def test_taking_it_is_an_error_that_names_the_node(bad: str, node: str) -> None:
    artifact = api.compile(model_of(bad), target="tiny")
    with pytest.raises(StreamError, match=rf"onnxruntime must run this part on the CPU \(found .*{node}"):
        stepwell.run(artifact, {"x": X, "go": np.array(False)})


@pytest.mark.parametrize("bad", [RESHAPE, CONV, NESTED])
def test_assess_says_the_same(bad: str) -> None:
    model = model_of(bad)
    said = assess(model, target="tiny")
    check(said, api.compile(model, target="tiny"))
    assert list(said.returned) == ["If_1.else_branch"]
    left = [node for node in said.nodes if node.why.startswith("its branch is no network for these shapes (")]
    assert {(node.kind, node.inside) for node in left} == {("known", "If_1")}
    assert {node.kind for node in said.nodes} == {"native", "decomposed", "known"}


def test_results_may_be_integers_and_constants() -> None:
    model = text_model(
        """y = Abs(x) r, n = If (go) <
            then_branch = g () => (float[2,6] a, int64[2] c) { a = Identity(y) c = Constant<value_ints = [3, -4]>() },
            else_branch = h () => (float[2,6] b, int64[2] d) { b = Gemm(y, wide) d = Constant<value_ints = [1, 1]>() }>
        k = Add(n, n)""",
        "float[2,6] x, bool go",
        "float[2,6] r, int64[2] k",
        **CONSTANTS,
    )
    found = stepwell.run(api.compile(model, target="tiny", precision="fp32"), {"x": X, "go": np.array(True)})
    np.testing.assert_array_equal(found["r"], np.abs(X))
    np.testing.assert_array_equal(found["k"], [6, -8])


def test_results_may_be_values_of_the_cpu() -> None:
    good = "n = NonZero(y) c = Cast<to = 1>(n) m = ReduceSum<keepdims = 0>(c) a = Add(y, m)"
    model = model_of(RESHAPE, good)
    found = stepwell.run(api.compile(model, target="tiny", precision="fp32"), {"x": X, "go": np.array(True)})["z"]
    places = np.array(np.nonzero(np.abs(X))).sum()
    np.testing.assert_allclose(found, np.exp(np.abs(X) + places), rtol=1e-5)


def test_two_such_branches_are_told() -> None:
    model = model_of(RESHAPE, "a = Gemm(y, wide)")
    with pytest.raises(ImportProblems) as caught:
        api.compile(model, target="tiny", host=False)
    assert any("both branches of If are networks for these shapes" in problem for problem in problems_of(caught.value))


def test_without_the_cpu_it_is_told_once() -> None:
    with pytest.raises(ImportProblems) as caught:
        api.compile(model_of(RESHAPE), target="tiny", host=False)
    assert [problem.where for problem in problems_of(caught.value)] == ["Reshape_5", "If_1"]


def test_compare_takes_the_other_branch(tmp_path: Path) -> None:
    model = model_of(CONV)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "n"  # or onnxruntime refuses the file
    onnx.save(model, tmp_path / "m.onnx")
    np.save(tmp_path / "go.npy", np.array(True))
    np.save(tmp_path / "x.npy", X)
    given = [*("--shape", "x=2,6"), *(f"--input={name}={tmp_path / name}.npy" for name in ("x", "go"))]
    assert main(["compare", str(tmp_path / "m.onnx"), "--target", "tiny", *given]) == 0
