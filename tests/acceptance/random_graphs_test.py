"""Random graphs over all native operators: the device gives the bits of the graph level, and onnxruntime's values.

pytest tests/acceptance/random_graphs_test.py -m ''           # the long count as well
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from acceptance.graph_draws import DRAWS
from acceptance.random_graphs import Graph, Value, distance, session_of
from chips import chip
from hypothesis import HealthCheck, assume, given, seed, settings
from hypothesis import strategies as st
from levels import difference
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from stepwell.dialects.evaluate import entry, evaluate
from stepwell.dialects.graph.constants import NUMPY
from stepwell.dialects.graph.op import element
from stepwell.driver.compilation import compiled_to, link, options_of
from stepwell.driver.passmanager import Settings
from stepwell.frontend.expansions import EXPANSIONS
from stepwell.frontend.operators import TABLE
from stepwell.frontend.sequences import SEQUENCES

Array = NDArray[Any]
_ALONE = "only in ONNX's cases of the operator so far: random attributes seldom fit"
LEFT_OUT: dict[str, str] = {
    **dict.fromkeys(("Scatter", "Upsample"), "before opset 13 only"),
    **dict.fromkeys(("DFT", "STFT", "SwiGLU"), "onnxruntime passes none of ONNX's cases"),
    **dict.fromkeys(("BitCast", "CumProd", "Det", "TfIdfVectorizer"), "mostly runs on the host"),
    **dict.fromkeys(("AffineGrid", "CausalConvWithState", "Col2Im", "DeformConv", "LinearAttention"), _ALONE),
    **dict.fromkeys(("MaxUnpool", "QLinearConv", "RoiAlign", "TensorScatter"), _ALONE),
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), _ALONE),
    **dict.fromkeys(SEQUENCES, "no arithmetic: lists of values, which no instruction touches"),
    "SimplifiedLayerNormalization": "as RMSNormalization",
    "CastLike": "drawn as Cast",
    "ConstantOfShape": "evaluated at import unless it is large",
}
"""Native operators that no graph holds, and why."""
NEWEST = onnx.defs.onnx_opset_version()


@dataclass(frozen=True)
class Recipe:
    """What a graph is drawn from."""

    opset: int
    seed: int
    operators: Sequence[str]
    precision: str = "fp32"


RECIPES = st.builds(
    Recipe,
    opset=st.integers(13, NEWEST),
    seed=st.integers(0, 2**32 - 1),
    operators=st.lists(st.sampled_from(sorted(DRAWS)), min_size=1, max_size=10),
    precision=st.sampled_from(["fp32", "fp32", "fp32", "fp16"]),
)


@dataclass
class Tally:
    """What was compared."""

    graphs: Counter[str] = field(default_factory=Counter[str])
    drawn: Counter[str] = field(default_factory=Counter[str])
    host: Counter[str] = field(default_factory=Counter[str])
    values: int = 0


def graph_of(recipe: Recipe) -> tuple[Graph, list[Value]]:
    """The graph of a recipe, and its outputs: some results, on the way or at the end, some of them twice."""
    graph = Graph(recipe.opset, np.random.default_rng(recipe.seed))
    for operator in recipe.operators:
        DRAWS[operator](graph)
    results = [value for value in graph.values if value.name in graph.made]
    if not results:
        return graph, []
    used = {name for node in graph.nodes for name in node.input}
    chosen = [v for v in results if (v.name not in used and graph.maybe(0.8)) or graph.maybe(0.15)] or results[-1:]
    if graph.maybe(0.15):
        chosen += graph.node("Identity", chosen[0])
    if graph.maybe(0.15):  # the last node a second time
        last = graph.nodes[-1]
        twin = onnx.NodeProto()
        twin.CopyFrom(last)
        twin.name, twin.output[:] = "twin", [f"{name}t" for name in last.output]
        graph.nodes.append(twin)
        found = next((v for v in results if v.name == last.output[0]), None)
        chosen += [Value(twin.output[0], found.array, found.error)] if found else []
    if graph.maybe(0.15):
        graph.inputs["unused"] = graph.numbers(graph.shape())
    return graph, chosen


def demand(recipe: Recipe, tally: Tally) -> None:
    """Equal bits at the graph level and on the device; with fp32 onnxruntime's values, too."""
    graph, outputs = graph_of(recipe)
    assume(len(outputs) > 0)
    model = graph.model(outputs)
    wanted = [np.asarray(array) for array in session_of(model).run(None, graph.inputs)]
    saved: list[ModuleOp] = []

    def after(this: Any, module: ModuleOp) -> None:
        if this.name == "precision":
            saved[:] = [module.clone()]

    shapes = {name: list(array.shape) for name, array in graph.inputs.items()}
    chosen = options_of(recipe.precision, None, {})
    work = compiled_to("npu", model, chosen, Settings(after=after), target=chip("tiny"), shapes=shapes)
    artifact = link(work, {}, None)
    found = artifact.model.run(graph.inputs)
    (module,) = saved
    names = [tensor.name for tensor in artifact.model.inputs]
    given = [
        graph.inputs[name].astype(NUMPY[element(argument)])
        for name, argument in zip(names, entry(module).body.block.args, strict=True)
    ]
    bits = evaluate(module, given, work.ctx.weights)
    for value, array, theirs in zip(outputs, bits, wanted, strict=True):
        mine = found[value.name]
        problem = difference(mine, array.astype(mine.dtype))
        assert problem is None, f"{value.name}: the device departs from the graph: {problem}"
        form = f"{mine.dtype}{mine.shape}, onnxruntime has {theirs.dtype}{theirs.shape}"
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype), f"{value.name}: {form}"
        if recipe.precision == "fp32":
            near(value, mine, theirs)
        tally.values += mine.size
    tally.graphs[recipe.precision] += 1
    tally.drawn.update(f"{node.domain}.{node.op_type}".lstrip(".") for node in graph.nodes)
    tally.host.update(node.operator for part in artifact.host for node in part.nodes)


def near(value: Value, mine: Array, theirs: Array) -> None:
    """Within a small multiple of the error that the value's own arithmetic has."""
    gap = distance(mine, theirs)
    assert gap is not None, f"{value.name}: NaN or infinity where onnxruntime has {theirs}, found {mine}"
    allowed = 0.0 if theirs.dtype.kind != "f" else 4 * value.error
    assert gap <= allowed, f"{value.name}: {gap:.3g} from onnxruntime, {allowed:.3g} allowed: {mine} {theirs}"


def explore(count: int, number: int) -> Tally:
    """So many graphs of a seed."""
    tally = Tally()

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        derandomize=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        print_blob=False,
    )
    @given(recipe=RECIPES)
    def run(recipe: Recipe) -> None:
        demand(recipe, tally)

    run()
    return tally


def check(tally: Tally, count: int) -> None:
    """Something was compared, nearly all of it on the device."""
    assert tally.graphs.total() >= count
    assert tally.values >= 100 * count
    assert tally.graphs["fp16"] >= count // 10
    assert sum(tally.host.values()) <= tally.drawn.total() // 100, tally.host


def test_every_native_operator_is_drawn_or_has_a_reason() -> None:
    native = TABLE.keys() | EXPANSIONS.keys()
    assert native - DRAWS.keys() == LEFT_OUT.keys()


def test_three_hundred_graphs_compute_what_onnxruntime_does() -> None:
    check(explore(300, 1), 300)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(101, 111))
def test_five_thousand_graphs_compute_what_onnxruntime_does(number: int) -> None:
    tally = explore(500, number)
    check(tally, 500)
    assert len(DRAWS.keys() & tally.drawn.keys()) >= 0.9 * len(DRAWS)
