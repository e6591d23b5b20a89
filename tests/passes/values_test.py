"""What the graph passes do to values: close before `precision`, the same bits from there on, for whole models."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_models
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from stepwell.dialects.evaluate import evaluate, reference
from stepwell.dialects.graph.structure import LaunchOp
from stepwell.driver.passmanager import Settings
from stepwell.driver.pipeline import lower
from stepwell.frontend.onnx import import_onnx
from stepwell.passes.context import CompileContext

Arrays = list[NDArray[Any]]
LARGEST_ERROR = {"fp32": 1e-5, "fp16": 1e-2, "bf16": 8e-2}
"""Against float64, relative to the largest value of the result."""


@dataclass
class Lowered:
    """A model after the graph stage, its inputs, and the results after each pass."""

    module: ModuleOp
    ctx: CompileContext
    exact: Arrays
    results: list[tuple[str, Arrays]]

    @property
    def launches(self) -> int:
        return sum(isinstance(op, LaunchOp) for op in self.module.walk())

    @property
    def kernels(self) -> int:
        return sum(isinstance(op, FuncOp) for op in self.module.walk()) - 1


def lower_model(model: onnx.ModelProto, inputs: Arrays, **options: Any) -> Lowered:
    module, weights = import_onnx(model)
    ctx = CompileContext()
    ctx.weights.update(weights)
    exact = reference(module, inputs, ctx.weights)
    results = [("import", evaluate(module, inputs, ctx.weights))]

    def after(this: ModulePass, module: ModuleOp) -> None:
        results.append((this.name, evaluate(module, inputs, ctx.weights)))

    lower(ctx, module, "graph", options, Settings(verify="each", after=after))
    return Lowered(module, ctx, exact, results)


def inputs_of(*shapes: tuple[int, ...]) -> Arrays:
    random = np.random.default_rng(7)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def error(found: Arrays, wanted: Arrays) -> float:
    """Relative to the largest value."""
    return max(float(np.max(np.abs(a - b)) / np.max(np.abs(b))) for a, b in zip(found, wanted, strict=True))


def same_bits(a: Arrays, b: Arrays) -> bool:
    return all(x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


def bert_inputs(batch: int, seq: int, hidden: int) -> Arrays:
    mask = np.ones((batch, 1, 1, seq), np.float32)
    mask[..., seq // 2 :] = 0
    return [*inputs_of((batch, seq, hidden)), mask]


MODELS: dict[str, tuple[Callable[[], onnx.ModelProto], Arrays]] = {
    "mlp": (onnx_models.mlp, inputs_of((4, 64))),
    "small_cnn": (onnx_models.small_cnn, inputs_of((1, 3, 32, 32))),
    "bert": (lambda: onnx_models.bert_layer(2, 16, 64, 4, 128), bert_inputs(2, 16, 64)),
}


@pytest.mark.parametrize("policy", LARGEST_ERROR)
@pytest.mark.parametrize("name", MODELS)
def test_values_survive_the_graph_stage(name: str, policy: str) -> None:
    build, inputs = MODELS[name]
    lowered = lower_model(build(), inputs, policy=policy)
    names = [step for step, _ in lowered.results]
    turn = names.index("precision")
    for step, values in lowered.results[:turn]:
        assert error(values, lowered.exact) < 1e-5, step
    for step, values in lowered.results[turn:]:
        assert error(values, lowered.exact) < LARGEST_ERROR[policy], step
        assert same_bits(values, lowered.results[turn][1]), step


@pytest.mark.parametrize("name", MODELS)
def test_fusing_changes_no_bit(name: str) -> None:
    build, inputs = MODELS[name]
    fused, alone = lower_model(build(), inputs), lower_model(build(), inputs, enabled=False)
    assert same_bits(fused.results[-1][1], alone.results[-1][1])
    assert fused.launches < alone.launches


def test_a_bert_layer_is_fifteen_launches_and_the_mask() -> None:
    build, inputs = MODELS["bert"]
    lowered = lower_model(build(), inputs)
    assert lowered.launches <= 17
    assert lowered.kernels < lowered.launches  # the three projections are one kernel


def test_a_launch_names_the_nodes_of_its_operators() -> None:
    build, inputs = MODELS["mlp"]
    lowered = lower_model(build(), inputs)
    nodes = [str(op.attributes["nodes"]) for op in lowered.module.walk() if isinstance(op, LaunchOp)]
    assert any("Gemm_0" in text and "Relu_1" in text for text in nodes)
