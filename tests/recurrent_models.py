"""One LSTM, GRU or RNN node with seeded inputs, and random ones over all that the standard allows."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

Array = NDArray[Any]

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
INPUTS = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")
WEIGHTS = ("W", "R", "B", "P")
FUNCTIONS = {
    "Relu": 0, "Tanh": 0, "Sigmoid": 0, "Affine": 2, "LeakyRelu": 1, "ThresholdedRelu": 1, "ScaledTanh": 2,
    "HardSigmoid": 2, "Elu": 1, "Softsign": 0, "Softplus": 0,
}  # fmt: skip
"""ONNX's activations and how many parameters each takes."""


@dataclass(frozen=True)
class Node:
    """A recurrent node: its inputs by ONNX's names and its attributes. With `layout` the inputs are batch first."""

    operator: str
    inputs: Mapping[str, Array]
    attributes: Mapping[str, Any]

    def __str__(self) -> str:
        sizes = ", ".join(f"{name} {list(array.shape)}" for name, array in self.inputs.items())
        return f"{self.operator} {dict(self.attributes)} {sizes}"

    @property
    def feeds(self) -> dict[str, Array]:
        """The inputs that are no weights."""
        return {name: array for name, array in self.inputs.items() if name not in WEIGHTS}

    @property
    def outputs(self) -> list[str]:
        return ["Y", "Y_h", "Y_c"][: 3 if self.operator == "LSTM" else 2]

    def model(self, outputs: Sequence[str] | None = None, known: Sequence[str] = WEIGHTS) -> onnx.ModelProto:
        """The node alone; `known` inputs are initialisers. Outputs that are empty names are left out."""
        outputs = self.outputs if outputs is None else outputs
        names = [name if name in self.inputs else "" for name in INPUTS]
        while not names[-1]:
            names.pop()
        node = helper.make_node(self.operator, names, outputs, "rec", **self.attributes)
        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in self.inputs.items()
            if name not in known
        ]
        results = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs if name]
        weights = [numpy_helper.from_array(self.inputs[name], name) for name in known if name in self.inputs]
        graph = helper.make_graph([node], "one", infos, results, weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def expected(self) -> list[Array]:
        """What onnxruntime gives; it does not run `layout`, so axes are swapped around it."""
        attributes = {key: value for key, value in self.attributes.items() if key != "layout"}
        first = bool(self.attributes.get("layout"))
        swapped = ("X", "initial_h", "initial_c") if first else ()
        inputs = {name: x.swapaxes(0, 1) if name in swapped else x for name, x in self.inputs.items()}
        plain = Node(self.operator, inputs, attributes)
        session = onnxruntime.InferenceSession(plain.model().SerializeToString(), providers=["CPUExecutionProvider"])
        y, *states = [np.asarray(value) for value in session.run(None, plain.feeds)]
        return [y.transpose(2, 0, 1, 3), *(s.swapaxes(0, 1) for s in states)] if first else [y, *states]


@dataclass(frozen=True)
class Case:
    """A node test of the ONNX standard."""

    name: str
    model: onnx.ModelProto
    inputs: Sequence[Array]
    outputs: Sequence[Array]

    def __str__(self) -> str:
        return self.name


def standard_cases() -> list[Case]:
    """Those of the recurrent operators."""
    with warnings.catch_warnings(action="ignore"):  # of the values that the other cases are made of
        cases: list[Any] = list(collect_testcases(""))
    recurrent = [case for case in cases if case.model.graph.node[0].op_type in GATES]
    return [Case(case.name, case.model, *case.data_sets[0]) for case in recurrent]


def node(
    operator: str,
    time: int,
    batch: int,
    size: int,
    hidden: int,
    *,
    direction: str = "forward",
    seed: int = 0,
    more: Sequence[str] = ("B",),
    **attributes: Any,
) -> Node:
    """A node with weights that keep the states in range; `more` names its optional inputs."""
    rng = np.random.default_rng(seed)
    directions, gates = 2 if direction == "bidirectional" else 1, GATES[operator]

    def normal(*shape: int, scale: float) -> Array:
        return (rng.standard_normal(shape) * scale).astype(np.float32)

    inputs = {
        "X": normal(time, batch, size, scale=1),
        "W": normal(directions, gates * hidden, size, scale=size**-0.5),
        "R": normal(directions, gates * hidden, hidden, scale=hidden**-0.5),
        "B": normal(directions, 2 * gates * hidden, scale=0.5),
        "sequence_lens": rng.integers(1, time + 1, batch).astype(np.int32),
        "initial_h": normal(directions, batch, hidden, scale=0.5),
        "initial_c": normal(directions, batch, hidden, scale=0.5),
        "P": normal(directions, 3 * hidden, scale=0.5),
    }
    given = {name: inputs[name] for name in INPUTS if name in ("X", "W", "R", *more)}
    if attributes.get("layout"):
        swapped = ("X", "initial_h", "initial_c")
        given = {n: np.ascontiguousarray(x.swapaxes(0, 1)) if n in swapped else x for n, x in given.items()}
    return Node(operator, given, {"hidden_size": hidden, "direction": direction, **attributes})


def random_node(seed: int) -> Node:
    """Any node: sizes from 1 on, every optional input and attribute with some likelihood."""
    rng = np.random.default_rng(seed)

    def sometimes(likelihood: float) -> bool:
        return bool(rng.random() < likelihood)

    operator = str(rng.choice(list(GATES)))
    direction = str(rng.choice(["forward", "reverse", "bidirectional"]))
    optional = [("B", 0.6), ("sequence_lens", 0.5), ("initial_h", 0.5)]
    attributes: dict[str, Any] = {}
    if operator == "LSTM":
        optional += [("initial_c", 0.5), ("P", 0.4)]
        attributes |= {"input_forget": 1} if sometimes(0.2) else {}
    if operator == "GRU" and sometimes(0.5):
        attributes["linear_before_reset"] = 1
    if sometimes(0.3):
        attributes["clip"] = float(rng.uniform(0.3, 2))
    if sometimes(0.5):
        attributes |= _activations(rng, {"LSTM": 3, "GRU": 2, "RNN": 1}[operator], 1 + (direction == "bidirectional"))
    if sometimes(0.2):
        attributes["layout"] = 1
    time, size, batch, hidden = (
        int(rng.choice(some)) for some in (range(1, 9), range(1, 20), (1, 1, 2, 3, 5, 17, 40), (1, 2, 3, 5, 16, 17, 40))
    )
    more = [name for name, likelihood in optional if sometimes(likelihood)]
    return node(operator, time, batch, size, hidden, direction=direction, seed=seed, more=more, **attributes)


def _activations(rng: np.random.Generator, count: int, directions: int) -> dict[str, Any]:
    """The same functions in each direction, or others. Those that grow are left out: they would leave f16's range."""
    bounded = [name for name in FUNCTIONS if name not in ("Relu", "Affine", "LeakyRelu", "ThresholdedRelu", "Softplus")]
    if rng.random() < 0.5:
        names = [str(name) for name in rng.choice(bounded, count)] * directions
    else:
        names = [str(name) for name in rng.choice(bounded, count * directions)]
    alpha = [float(rng.uniform(0.2, 0.8)) for name in names if FUNCTIONS[name] > 0]
    beta = [float(rng.uniform(0.2, 0.8)) for name in names if FUNCTIONS[name] > 1]
    found: dict[str, Any] = {"activations": names}
    return found | ({"activation_alpha": alpha} if alpha else {}) | ({"activation_beta": beta} if beta else {})
