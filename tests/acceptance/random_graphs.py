"""Random graphs of ONNX nodes, whose values are known while they are drawn.

Every node is run by onnxruntime, unoptimised, as soon as it is drawn. So the shapes and types of its results are
known, and how far their bits may be off: with its operands moved by their own error a node must give nearly the same,
or it is not taken. A comparison of equal numbers, a logarithm near 0, a sum that cancels are so left out where they
would say nothing, and nowhere else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Array = NDArray[Any]
Random = np.random.Generator
EXTENTS = (1, 2, 3, 4, 5, 7, 8, 13, 15, 16, 17, 31, 33)
MOST_ELEMENTS, MOST_OPERAND, LARGEST = 1500, 20_000, 1e6
ROUNDING = {"float32": 2e-6, "float16": 2e-3}
"""Error of one node over its largest result."""
WORST = 2e-3
"""Error of a value over its largest number, beyond which a comparison says little."""
EXACT = frozenset((
    "Abs", "And", "ArgMax", "ArgMin", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Ceil",
    "CenterCropPad", "Compress", "Concat", "DepthToSpace", "Dropout", "Equal", "Expand", "EyeLike", "Flatten",
    "Floor", "Gather", "GatherElements", "GatherND", "Greater", "GreaterOrEqual", "Hardmax", "Identity", "IsInf",
    "IsNaN", "Less", "LessOrEqual", "Max", "MaxPool", "Min", "Neg", "Not", "OneHot", "Or", "Pad", "Range", "Relu",
    "Reshape", "ReverseSequence", "Round", "ScatterElements", "ScatterND", "Sign", "Slice", "SpaceToDepth", "Split",
    "Squeeze", "Tile", "TopK", "Transpose", "Trilu", "Unsqueeze", "Where", "Xor"
))  # fmt: skip
"""Operators whose floats are those of an operand, or whole numbers."""


NEEDS_FINITE: Mapping[str, str] = {
    **dict.fromkeys(("ArgMax", "ArgMin", "Hardmax", "TopK"), "onnxruntime finds no largest number, or any, among NaN"),
    "DynamicQuantizeLinear": "a range that holds NaN or infinity has no bytes that are defined",
    "QuantizeLinear": "NaN has no byte that is defined",
}
"""Operators whose operands must be finite for a comparison, and why."""


@dataclass(frozen=True, eq=False)
class Value:
    """A value of the graph, as onnxruntime computes it, and how far another engine's may be from it."""

    name: str
    array: Array
    error: float = 0.0

    @property
    def kind(self) -> str:
        return self.array.dtype.name

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape


Operand = Value | Array | None
"""An array is a constant."""


@dataclass
class Graph:
    """A graph while it is drawn."""

    opset: int
    random: Random
    values: list[Value] = field(default_factory=list[Value])
    """Inputs and results; what a node may take."""
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    inputs: dict[str, Array] = field(default_factory=dict[str, Array])
    made: set[str] = field(default_factory=set[str])
    """Results of nodes."""
    prefix: str = ""
    """Of the names, in a graph that a node holds."""
    parts: int = 0
    """Graphs that were drawn for nodes."""

    # operands ---------------------------------------------------------------------------------------------------------
    def maybe(self, share: float = 0.5) -> bool:
        return bool(self.random.random() < share)

    def whole(self, low: int, high: int) -> int:
        """From `low` up to `high`, both included."""
        return int(self.random.integers(low, high + 1))

    def choose(self, *items: Any) -> Any:
        return items[self.whole(0, len(items) - 1)]

    def shape(self, low: int = 0, high: int = 4) -> list[int]:
        """Extents of a tensor of `low` to `high` axes; now and then one of them is 0."""
        found = [int(self.choose(*EXTENTS)) for _ in range(self.whole(low, high))]
        while np.prod(found, dtype=int) > MOST_ELEMENTS:
            found[self.whole(0, len(found) - 1)] = self.choose(1, 2, 3)
        if found and self.maybe(0.03):
            found[self.whole(0, len(found) - 1)] = 0
        return found

    def numbers(self, shape: Sequence[int], kind: str = "float32") -> Array:
        """Normal values, or few that are often equal; rarely NaN and infinities among them."""
        if kind == "bool":
            return self.random.integers(0, 2, shape).astype(bool)
        if kind.startswith(("int", "uint")):
            return self.random.integers(0 if kind[0] == "u" else -9, 10, shape).astype(kind)
        found = self.random.standard_normal(shape)
        if self.maybe(0.3):
            found = np.rint(found * 4) / 4
        found = np.asarray(found).astype(kind)
        if self.maybe(0.04):
            found = np.where(self.random.random(shape) < 0.1, self.random.choice([np.nan, np.inf, -np.inf]), found)
        return np.asarray(found).astype(kind)

    def fresh(self, array: Array) -> Value:
        """A new input or constant."""
        array = np.asarray(array)
        name = f"{self.prefix}x{len(self.inputs) + len(self.constants)}"
        (self.inputs if self.maybe(0.7) else self.constants)[name] = array
        value = Value(name, array)
        self.values.append(value)
        return value

    def take(self, *kinds: str, least: int = 0, most: int = 9, new: float = 0.15) -> Value:
        """A value of one of the types, with at least and at most so many axes: an old one, or else a new one."""
        kinds = kinds or ("float32",)
        found = [v for v in self.values if v.kind in kinds and least <= v.array.ndim <= most]
        if found and not self.maybe(new):
            return found[
                self.whole(max(0, len(found) - 6), len(found) - 1) if self.maybe(0.7) else self.whole(0, len(found) - 1)
            ]
        return self.fresh(self.numbers(self.shape(least, min(most, 4)), self.choose(*kinds)))

    def partner(self, value: Value) -> Value:
        """A value of the same type whose shape broadcasts with another's."""
        found = [v for v in self.values if v.kind == value.kind and _broadcast(v.shape, value.shape)]
        if self.maybe(0.6):
            return found[self.whole(0, len(found) - 1)] if found else value
        size = [1 if self.maybe(0.25) else n for n in value.shape][
            self.whole(0, value.array.ndim) if self.maybe() else 0 :
        ]
        if value.array.size < 100 and self.maybe(0.2):
            size = [self.whole(1, 3), *size]
        return self.fresh(self.numbers(size, value.kind))

    def fitted(self, shape: Sequence[int], kind: str = "float32") -> Value | None:
        """An old value brought into a shape by moves."""
        found = [v for v in self.values if v.kind == kind and v.array.size and not np.isnan(v.array.sum())]
        if not found:
            return None
        value, size = found[self.whole(0, len(found) - 1)], int(np.prod(shape, dtype=int))
        if value.shape == tuple(shape):
            return value
        if value.array.size != size:
            (flat,) = self.node("Reshape", value, np.array([-1])) or [None]
            if flat is None:
                return None
            if flat.array.size < size:
                (flat,) = self.node("Tile", flat, np.array([-(-size // flat.array.size)])) or [None]
            if flat is not None and flat.array.size > size:
                (flat,) = self.node("Slice", flat, np.array([-size]), np.array([flat.array.size])) or [None]
            if flat is None:
                return None
            value = flat
        return (self.node("Reshape", value, np.array(shape, np.int64)) or [None])[0]

    # nodes ------------------------------------------------------------------------------------------------------------
    def node(
        self, operator: str, *operands: Operand, results: int = 1, domain: str = "", **attributes: Any
    ) -> list[Value]:
        """The results of a new node; none if onnxruntime does not run it, or its results say too little."""
        number, known = len(self.nodes), dict[str, Array]()
        names: list[str] = []
        for place, operand in enumerate(operands):
            name = f"{self.prefix}c{number}_{place}"
            if isinstance(operand, np.ndarray):
                known[name] = operand
            names.append("" if operand is None else operand.name if isinstance(operand, Value) else name)
        given = {operand.name: operand for operand in operands if isinstance(operand, Value)}
        return self.add(operator, names, results, given, known, domain=domain, **attributes)

    def add(
        self, operator: str, names: Sequence[str], results: int, given: Mapping[str, Value], known: Mapping[str, Array],
        **attributes: Any,
    ) -> list[Value]:  # fmt: skip
        """A node by the names of its inputs; `given` and `known`: all values that it sees, and new constants."""
        number = len(self.nodes)
        attributes = {name: value for name, value in attributes.items() if value is not None}
        outputs = [f"{self.prefix}v{number}_{i}" for i in range(results)]
        proto = helper.make_node(operator, names, outputs, f"{self.prefix}n{number}", **attributes)
        if operator in NEEDS_FINITE and not all(_finite(value.array) for value in given.values()):
            return []
        run = self._run(proto, given, known)
        errors = None if run is None else self._errors(operator, given, *run)
        if run is None or errors is None:
            return []
        self.nodes.append(proto)
        self.constants.update(known)
        found = [Value(*entry) for entry in zip(outputs, run[1], errors, strict=True)]
        self.made |= set(outputs)
        self.values += found
        return found

    def names_used(self) -> set[str]:
        """What the nodes take, those of graphs in them among them."""
        return {name for node in self.nodes for name in reads(node)}

    def _run(
        self, proto: onnx.NodeProto, given: Mapping[str, Value], known: Mapping[str, Array]
    ) -> tuple[Any, list[Array]] | None:
        """A session of the node alone, and its results."""
        feeds = {name: value.array for name, value in given.items()}
        try:
            session = session_of(model_of([proto], feeds, known, dict.fromkeys(proto.output), self.opset))
            arrays = [np.asarray(array) for array in session.run(None, feeds)]
        except Exception:  # noqa: BLE001 - what onnxruntime does not run has no class of its own
            return None
        for array, info in zip(arrays, session.get_outputs(), strict=True):
            if any(isinstance(n, int) and n != m for n, m in zip(info.shape, array.shape, strict=False)):
                return None  # onnxruntime infers another shape than it gives (AveragePool with ceil_mode)
        return (session, arrays) if all(map(_moderate, arrays)) else None

    def _errors(
        self, operator: str, given: Mapping[str, Value], session: Any, arrays: Sequence[Array]
    ) -> list[float] | None:
        """How far the results may be off; None if that is too much."""
        own = [0.0 if operator in EXACT else ROUNDING.get(a.dtype.name, 0.0) * _largest(a) for a in arrays]
        found = list(own)
        for step in (1, -1, 2, -2) if any(value.error for value in given.values()) else ():
            feeds = {name: self._moved(value, step) for name, value in given.items()}
            others = [np.asarray(array) for array in session.run(None, feeds)]
            for i, (one, other) in enumerate(zip(arrays, others, strict=True)):
                gap = distance(other, one) if one.shape == other.shape else None
                if gap is None or (gap and one.dtype.kind != "f"):
                    return None
                found[i] = max(found[i], 2 * gap + own[i])
        worst = [WORST * (10 if a.dtype == np.float16 else 1) * max(1e-2, _largest(a)) for a in arrays]
        return found if all(e <= w for e, w in zip(found, worst, strict=True)) else None

    def _moved(self, value: Value, step: int) -> Array:
        """A value moved by its error: each number up or down by it, or all one way."""
        if not value.error:
            return value.array
        way = self.random.choice([-1.0, 1.0], value.shape) if abs(step) == 1 else 0.5
        return np.asarray(value.array + step * value.error * way).astype(value.array.dtype)

    def model(self, outputs: Sequence[Value]) -> onnx.ModelProto:
        """The whole graph."""
        found = {value.name: value.array for value in outputs}
        return model_of(self.nodes, self.inputs, self.constants, found, self.opset)


def reads(node: onnx.NodeProto) -> set[str]:
    """What a node takes, and what graphs in it may take from around it."""
    graphs = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    inner = {name for graph in graphs for each in graph.node for name in reads(each)}
    return {*node.input, *inner, *(info.name for graph in graphs for info in graph.output)}


def _broadcast(one: Sequence[int], other: Sequence[int]) -> bool:
    try:
        return int(np.prod(np.broadcast_shapes(tuple(one), tuple(other)), dtype=int)) <= MOST_ELEMENTS
    except ValueError:
        return False


def _moderate(array: Array) -> bool:
    """Neither many numbers nor, where they are finite, large ones."""
    numbers = np.abs(array[np.isfinite(array)].astype(np.float64)) if array.dtype.kind in "fi" else np.zeros(0)
    return array.size <= MOST_OPERAND and numbers.max(initial=0) <= LARGEST


def _finite(array: Array) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _largest(array: Array) -> float:
    return float(np.abs(array[np.isfinite(array)]).max(initial=0)) if array.dtype.kind == "f" else 0.0


def distance(found: Array, wanted: Array) -> float | None:
    """The largest difference; None where one is NaN or infinite and the other is not the same."""
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    if not (same | finite).all():
        return None
    return float(np.abs(a[finite] - b[finite]).max(initial=0))


def model_of(
    nodes: Sequence[onnx.NodeProto], inputs: Mapping[str, Array], constants: Mapping[str, Array],
    outputs: Mapping[str, Array | None], opset: int,
) -> onnx.ModelProto:  # fmt: skip
    """A model; outputs without an array have no type."""
    used = {name for node in nodes for name in reads(node)}

    def info(name: str, array: Array | None) -> onnx.ValueInfoProto:
        if array is None:
            return helper.make_empty_tensor_value_info(name)
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    graph = helper.make_graph(
        list(nodes),
        "random",
        [info(name, array) for name, array in inputs.items()],
        [info(name, array) for name, array in outputs.items()],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in constants.items() if name in used],
    )
    domains = {node.domain for node in nodes} - {""}
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(name, 1) for name in sorted(domains))]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@cache
def _options() -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options


def session_of(model: onnx.ModelProto) -> Any:
    """A session of onnxruntime that changes nothing of the model."""
    return onnxruntime.InferenceSession(model.SerializeToString(), _options(), ["CPUExecutionProvider"])
