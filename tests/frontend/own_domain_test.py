"""An operator of a domain of its own is one class, like any other."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper
from onnx_models import text_model
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition
from xdsl.pattern_rewriter import PatternRewriter

import stepwell
from stepwell.dialects.graph.activations import AbsOp, Composite
from stepwell.dialects.graph.arithmetic import AddOp, DivOp
from stepwell.dialects.graph.emit import Emit
from stepwell.dialects.graph.op import Onnx
from stepwell.driver.errors import problems_of
from stepwell.frontend import extensions
from stepwell.frontend import onnx as importer
from stepwell.frontend.problems import ImportProblems
from stepwell.passes import decompose

Array = NDArray[Any]
DOMAIN = "com.example"


@irdl_op_definition
class SlowSignOp(Composite):
    """x ÷ (2 + |x|)."""

    name = "graph.slow_sign"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("SlowSign", domain=DOMAIN),)
    EXAMPLE: ClassVar[str] = "%1 = graph.slow_sign %0 : (tensor<4xf32>) -> tensor<4xf32>"

    def reference(self, x: Array) -> Array:
        return x / (2 + np.abs(x))

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        size = emit(AbsOp, self.x, element=emit.inner)
        return [emit(DivOp, self.x, emit(AddOp, size, emit.constant(2.0), element=emit.inner))]


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    both = {**extensions.EXTENSIONS, **extensions.by_classes([SlowSignOp])}
    monkeypatch.setattr(importer, "EXTENSIONS", both)
    monkeypatch.setattr(decompose, "OPERATORS", (*decompose.OPERATORS, SlowSignOp))


def model_of(count: int = 1, version: int = 7, **attributes: Any) -> onnx.ModelProto:
    model = text_model("y = Identity(x)", "float[2,3] x", "float[2,3] y", domains=f', "{DOMAIN}" : {version}')
    model.graph.node[0].CopyFrom(helper.make_node("SlowSign", ["x"] * count, ["y"], "s", domain=DOMAIN, **attributes))
    return model


def test_it_runs_on_the_device() -> None:
    x = np.array([[1, -2, 3], [0, -0.5, 100]], np.float32)
    artifact = stepwell.compile(model_of(), target="tiny", precision="fp32")
    assert artifact.host == ()
    np.testing.assert_allclose(stepwell.run(artifact, {"x": x})["y"], x / (2 + np.abs(x)), rtol=1e-6)


@pytest.mark.parametrize(
    ("model", "found"),
    [(model_of(alpha=1.0), "(found alpha)"), (model_of(count=2), "SlowSign has 1 inputs (found 2)")],
)
def test_what_the_class_does_not_know_is_refused(model: onnx.ModelProto, found: str) -> None:
    with pytest.raises(ImportProblems) as caught:
        stepwell.compile(model, target="tiny")
    (problem,) = problems_of(caught.value)
    assert problem.where == "s"
    assert found in problem
