"""What a hostile user compiles gives onnxruntime's answer, with the bits of the graph, or it gives one clear line."""

import re
from typing import Any

import numpy as np
import pytest
from acceptance import hostile_graphs as graphs
from acceptance import hostile_models as models
from acceptance.hostile_models import INT64, Make, made, zeros
from chips import chip as target_of
from numpy.typing import NDArray
from onnx_models import ModelWriter, node_model
from xdsl.dialects.func import FuncOp

import stepwell
from stepwell.dialects.evaluate import evaluate
from stepwell.dialects.graph.constants import NUMPY
from stepwell.dialects.graph.op import element
from stepwell.driver import api
from stepwell.driver.agreement import agree, onnxruntime_run
from stepwell.driver.check import check_artifact
from stepwell.driver.errors import PROBLEM, describe
from stepwell.runtime.artifact import Artifact

Array = NDArray[Any]
CONFIGURATIONS = [
    pytest.param("fp16", "edge", {}),
    pytest.param("fp32", "tiny", {}),
    pytest.param("bf16", "edge", {"enabled": False, "variant": 2}, marks=pytest.mark.slow),
]
LEAST = {"fp16": 0.9995, "bf16": 0.99, "fp32": 0.9999999}
TABLES = {
    "convolution": models.CONVOLUTIONS,
    "product": models.PRODUCTS,
    "operator": models.REST,
    "outputs": graphs.OUTPUTS,
    "weights": graphs.WEIGHTS,
    "integers": graphs.INTEGERS,
    "moves": graphs.MOVES,
    "ones": graphs.ONES,
}
CASES = {f"{table}: {name}": make for table, cases in TABLES.items() for name, make in cases.items()}


def inputs(artifact: Artifact) -> dict[str, Array]:
    """Normal values; integers are from 1 to 7, so that one may divide by them."""
    random, found = np.random.default_rng(5), dict[str, Array]()
    for tensor in artifact.model.inputs:
        kind = tensor.border_dtype
        values = random.standard_normal(tensor.shape) if kind.kind == "f" else random.integers(1, 8, tensor.shape)
        found[tensor.name] = np.asarray(values > 4 if kind == np.bool_ else values).astype(kind)
    return found


def graph_level(make: Make, precision: str, arrays: dict[str, Array]) -> list[Array]:
    """The results of the module after the graph stage, as callers see them."""
    module = api.lower(make(), to="graph", precision=precision)
    main = next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main")
    given = [
        array.astype(NUMPY[element(argument)])
        for argument, array in zip(main.body.block.args, arrays.values(), strict=True)
    ]
    return evaluate(module, given, api.weights_of(module))


def demand(make: Make, precision: str, target: str, options: dict[str, Any]) -> None:
    """Right values, equal bits in several interleavings, no race."""
    model, chip = make(), target_of(target)
    artifact = stepwell.compile(model, target=chip, precision=precision, **options)
    arrays = inputs(artifact)
    bits = graph_level(make, precision, arrays)
    outputs = artifact.model.run(arrays)
    for seed in (1, 2):
        again = artifact.model.run(arrays, seed=seed, linked=seed == 1)
        assert all(again[name].tobytes() == array.tobytes() for name, array in outputs.items()), f"seed {seed}"
    for (name, array), of_graph in zip(outputs.items(), bits, strict=True):
        assert array.tobytes() == of_graph.astype(array.dtype).tobytes(), f"{name} departs from the graph"
    for name, expected in onnxruntime_run(model, arrays).items():
        found = agree(name, outputs[name], expected)
        assert outputs[name].shape == expected.shape
        assert outputs[name].dtype == expected.dtype
        assert found.cosine >= LEAST[precision], found
        if precision == "fp32":
            assert found.max_abs_error <= 1e-4 * found.max_abs_reference, found
    found = check_artifact(artifact)
    assert found.clean, found


@pytest.mark.parametrize(("precision", "target", "options"), CONFIGURATIONS)
@pytest.mark.parametrize("name", CASES)
def test_odd_models_compute_what_they_say(name: str, precision: str, target: str, options: dict[str, Any]) -> None:
    demand(CASES[name], precision, target, options)


# refusals -------------------------------------------------------------------------------------------------------------


REFUSED: dict[str, tuple[Make, str]] = {
    "an unknown extent": (
        lambda: ModelWriter().model({"x": ["n", 4]}, []),
        "x: axis 0 has a static extent .found 'n'.; give --shape x=N,",
    ),
    "an operator that is not supported": (models.one("NonZero", (3, 50)), "node: the device does not run NonZero"),
    "double": (
        lambda: node_model("Relu", [zeros(3).astype(np.float64)]),
        "x0: inputs hold floats of at most 32 bits, integers or truth values .found DOUBLE.; convert the model",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done_is_refused_in_one_line(name: str) -> None:
    make, message = REFUSED[name]
    with pytest.raises(ValueError, match="found") as error:
        stepwell.compile(make(), host=False)
    failure = describe(error.value)
    assert failure.exit_code == PROBLEM
    assert any(re.match(message, problem) for problem in failure.problems), failure
    assert all("\n" not in problem for problem in failure.problems)


def test_all_problems_of_a_model_are_told_at_once() -> None:
    make = made("first = NonZero(x); second = Unique(x)", "first second", types={"first": INT64}, x=[5, 5])
    with pytest.raises(ValueError, match="first: the device does not run NonZero") as error:
        stepwell.compile(make(), host=False)
    assert any(
        problem.startswith("second: the device does not run Unique") for problem in describe(error.value).problems
    )
