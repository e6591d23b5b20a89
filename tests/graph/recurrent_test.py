"""LSTM, GRU and RNN at the graph level: against onnxruntime, cut into pieces, over thousands of steps, mistakes."""

import numpy as np
import pytest
from graph_tools import around, parse
from recurrent_models import WEIGHTS, Array, Case, Node, node, random_node, standard_cases
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from stepwell.dialects.evaluate import evaluate, reference
from stepwell.dialects.graph.recurrence import RecurrenceOp
from stepwell.dialects.graph.recurrent import LstmOp
from stepwell.dialects.weights import WeightStore
from stepwell.driver.agreement import COSINE, agree
from stepwell.driver.api import lower, weights_of
from stepwell.frontend.onnx import ImportProblems, import_onnx

OPERATORS = ("LSTM", "GRU", "RNN")


def graph(model: Node, precision: str = "fp32") -> tuple[ModuleOp, WeightStore]:
    """Everything decomposed, with the types of a policy."""
    module = lower(model.model(), to="graph", precision=precision, target="edge")
    return module, weights_of(module)


@pytest.mark.parametrize("seed", range(60))
def test_any_node_agrees_with_onnxruntime(seed: int) -> None:
    this = random_node(seed)
    module, weights = import_onnx(this.model())
    inputs = list(this.feeds.values())
    for run in (evaluate, reference):
        for found, wanted in zip(run(module, inputs, weights), this.expected(), strict=True):
            assert found.shape == wanted.shape
            assert np.max(np.abs(found - wanted)) <= 1e-5 * max(1, np.max(np.abs(wanted))), this


@pytest.mark.parametrize("case", standard_cases(), ids=str)
def test_the_nodes_of_the_standard(case: Case) -> None:
    module, weights = import_onnx(case.model)
    for found, wanted in zip(evaluate(module, case.inputs, weights), case.outputs, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_a_sequence_in_pieces_gives_the_same_bits(operator: str, precision: str) -> None:
    states = ("initial_h", "initial_c")[: 2 if operator == "LSTM" else 1]
    whole = node(operator, 9, 2, 5, 7, more=("B", *states))
    module, weights = graph(whole, precision)
    y, *ends = evaluate(module, list(whole.feeds.values()), weights)
    carried: list[Array] = [whole.inputs[name] for name in states]
    parts: list[Array] = []
    for piece in (slice(0, 4), slice(4, 5), slice(5, 9)):
        inputs = {**whole.inputs, "X": whole.inputs["X"][piece], **dict(zip(states, carried, strict=True))}
        module, weights = graph(Node(operator, inputs, whole.attributes), precision)
        part, *carried = evaluate(module, [inputs["X"], *carried], weights)
        parts.append(part)
    np.testing.assert_array_equal(np.concatenate(parts), y)
    for found, wanted in zip(carried, ends, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("operator", OPERATORS)
def test_fp16_stays_close_over_thousands_of_steps(operator: str) -> None:
    this = node(operator, 3000, 1, 4, 12, more=("B",))
    module, weights = graph(this, "fp16")
    found = evaluate(module, list(this.feeds.values()), weights)
    for mine, wanted in zip((found[0], found[0][-500:]), (this.expected()[0], this.expected()[0][-500:]), strict=True):
        assert agree("Y", mine, wanted).cosine >= COSINE


def test_a_sequence_of_length_0_ends_where_it_began() -> None:
    this = node("LSTM", 4, 2, 3, 5, more=("sequence_lens", "initial_h", "initial_c"))
    this.inputs["sequence_lens"][:] = (0, 3)
    module, weights = import_onnx(this.model())
    y, h, c = evaluate(module, list(this.feeds.values()), weights)
    assert not y[:, 0, 0].any()
    np.testing.assert_array_equal(h[0, 0], this.inputs["initial_h"][0, 0])
    np.testing.assert_array_equal(c[0, 0], this.inputs["initial_c"][0, 0])


def test_weights_are_packed_when_compiled_and_time_is_one_op() -> None:
    for time in (3, 300):
        module, _ = graph(node("LSTM", time, 2, 5, 7, direction="bidirectional"))
        found = [op.name for op in module.walk() if op.name.startswith("graph.")]
        assert sorted(name for name in found if name not in ("graph.constant", "graph.weight")) == [
            "graph.launch",
            "graph.launch",
            "graph.matmul",
            "graph.recurrence",
        ]


@pytest.mark.parametrize(("length", "operands"), [(4, 2), (3, 3)])
def test_lengths_that_are_the_whole_cost_nothing(length: int, operands: int) -> None:
    this = node("LSTM", 4, 2, 3, 5, more=("sequence_lens",))
    this.inputs["sequence_lens"][:] = length
    module = lower(this.model(known=(*WEIGHTS, "sequence_lens")), to="graph", target="edge")
    (op,) = (op for op in module.walk() if isinstance(op, RecurrenceOp))
    assert len(op.operands) == operands


MISTAKES = [
    ('direction = "forward"', 'direction = "backward"', "the direction is one of forward, reverse, bidirectional"),
    ('"sigmoid", "tanh", "tanh"', '"sigmoid", "tanh"', r"each direction has 3 activations \(found 2\)"),
    ('"sigmoid", "tanh", "tanh"', '"sigmoid", "tanh", "sin"', r"an activation is one of relu, .* \(found 'sin'\)"),
    ('"sigmoid", "tanh", "tanh"', '"elu", "tanh", "tanh"', r"with its parameters \(found 'elu'\)"),
    ("inputs = [0, 1, 2, 3]", "inputs = [0, 1, 2]", r"the place of each operand \(found \[0, 1, 2\], 4 operands\)"),
    ("tensor<1x16x4xf32>", "tensor<1x12x4xf32>", r"R is \[1, 16, 4\] \(found tensor<1x12x4xf32>\)"),
    ("tensor<1x32xf32>", "tensor<1x16xf32>", r"B is \[1, 32\] \(found tensor<1x16xf32>\)"),
]


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES)
def test_mistakes_are_named(old: str, new: str, message: str) -> None:
    assert old in LstmOp.EXAMPLE
    with pytest.raises(VerifyException, match=message):
        parse(around(LstmOp.EXAMPLE.replace(old, new)))


def test_an_activation_without_its_parameters_is_refused_by_name() -> None:
    this = node("RNN", 2, 1, 3, 4, activations=["ScaledTanh"])
    with pytest.raises(
        ImportProblems, match=r"rec: scaledtanh has activation_alpha and activation_beta \(found none\)"
    ):
        import_onnx(this.model())
