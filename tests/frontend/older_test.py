"""Operators in the oldest opsets, by their own rules: compared with numpy, since onnxruntime starts at opset 7; and
those of opsets from 7 on whose form changed, compared with onnxruntime."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from stepwell.dialects.evaluate import evaluate
from stepwell.frontend.onnx import ImportProblems, import_onnx

Array = NDArray[Any]
RNG = np.random.default_rng(5)


@dataclass(frozen=True)
class Case:
    """A node: inputs at run time, constants, and its results by numpy (None: by onnxruntime)."""

    operator: str
    opset: int
    inputs: Sequence[Array]
    constants: Sequence[Array] = ()
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    wanted: Callable[..., Any] | None = None
    outputs: int = 1

    def __str__(self) -> str:
        return f"{self.operator}-{self.opset} {self.attributes}"

    def model(self) -> onnx.ModelProto:
        given = [*self.inputs, *self.constants]
        names = [f"x{i}" for i in range(len(given))]
        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in zip(names, self.inputs, strict=False)
        ]
        known = [numpy_helper.from_array(x, f"x{i}") for i, x in enumerate(given) if i >= len(self.inputs)]
        results = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.operator, names, results, "node", **self.attributes)
        unknown = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in results]
        graph = helper.make_graph([node], "one", infos, unknown, known)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=4)
        return onnx.shape_inference.infer_shapes(model)


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def normalised(x: Array, s: Array, b: Array, m: Array, v: Array) -> Array:
    return (x - m) / np.sqrt(v + 1e-5) * s + b


def per_channel(*values: Array) -> list[Array]:
    return [value[:, None, None] for value in values]


STATISTICS = [floats(3), floats(3), floats(3), np.abs(floats(3)) + 0.1]
PLACES = [floats(3, 4, 5), floats(3, 4, 5), floats(3, 4, 5), np.abs(floats(3, 4, 5)) + 0.1]
IMAGE = floats(2, 3, 4, 5)
WHOLE = RNG.integers(0, 2, (2, 3, 4, 5)).astype(bool)
PAIRS: dict[str, Callable[..., Array]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Equal": np.equal, "Less": np.less,
    "Greater": np.greater,
}  # fmt: skip
COUNTS = RNG.integers(1, 4, (2, 3, 4, 5)).astype(np.int32)
CASES = [
    *(Case(name, opset, [IMAGE, floats(3, 4)], (), {"broadcast": 1, "axis": 1},
           lambda x, y, f=function: f(x, y[..., None]))
      for name, function in PAIRS.items() for opset in (1, 6) if name in ("Add", "Sub", "Mul", "Div")),
    *(Case(name, 1, [COUNTS, COUNTS[0, :, 0, 0]], (), {"broadcast": 1, "axis": -3},
           lambda x, y, f=PAIRS[name]: f(x, y[:, None, None])) for name in ("Equal",)),
    *(Case(name, 1, [IMAGE, floats(3)], (), {"broadcast": 1, "axis": 1},
           lambda x, y, f=PAIRS[name]: f(x, y[:, None, None])) for name in ("Less", "Greater")),
    *(Case(name, 1, [WHOLE, WHOLE[0, :, :, 0].copy()], (), {"broadcast": 1, "axis": 1},
           lambda x, y, f=function: f(x, y[..., None]))
      for name, function in (("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor))),
    Case("Add", 6, [IMAGE], [floats(5)], {"broadcast": 1}, np.add),
    Case("Add", 6, [IMAGE], [floats(1)], {"broadcast": 1, "axis": 0}, np.add),
    Case("Add", 1, [IMAGE, IMAGE], (), {"consumed_inputs": [0, 0]}, np.add),
    Case("Pow", 1, [np.abs(IMAGE), np.abs(floats(3))], (), {"broadcast": 1, "axis": 1},
         lambda x, y: x ** y[:, None, None]),
    *(Case(name, 1, [np.abs(IMAGE) + 0.1], (), {"consumed_inputs": [0]}, function) for name, function in (
        ("Abs", np.abs), ("Ceil", np.ceil), ("Floor", np.floor), ("Exp", np.exp), ("Log", np.log),
        ("Neg", np.negative), ("Reciprocal", np.reciprocal), ("Sqrt", np.sqrt), ("Tanh", np.tanh),
        ("Relu", lambda x: np.maximum(x, 0)), ("Sigmoid", lambda x: 1 / (1 + np.exp(-x))))),
    Case("Elu", 1, [IMAGE], (), {"alpha": 0.5}, lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
    Case("LeakyRelu", 1, [IMAGE], (), {}, lambda x: np.where(x > 0, x, 0.01 * x)),
    Case("HardSigmoid", 1, [IMAGE], (), {}, lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
    Case("Selu", 1, [IMAGE * 5], (), {}, lambda x: 1.0507 * np.where(x > 0, x, 1.6732 * np.expm1(x))),
    Case("Clip", 1, [IMAGE], (), {"min": -0.5, "max": 0.3}, lambda x: np.clip(x, -0.5, 0.3)),
    Case("Sum", 1, [IMAGE, IMAGE, IMAGE], (), {}, lambda *x: sum(x)),
    Case("Max", 1, [IMAGE, -IMAGE], (), {"consumed_inputs": [0, 0]}, np.maximum),
    Case("Mean", 6, [IMAGE, 2 * IMAGE], (), {}, lambda x, y: (x + y) / 2),
    *(Case("BatchNormalization", opset, [IMAGE], STATISTICS, {"is_test": 1} | more,
           lambda x, *p: normalised(x, *per_channel(*p)))
      for opset, more in ((1, {"consumed_inputs": [0, 0, 0, 1, 1]}), (6, {"spatial": 1}))),
    *(Case("BatchNormalization", opset, [IMAGE], PLACES, {"spatial": 0} | more, normalised)
      for opset, more in ((6, {"is_test": 1}), (7, {}))),
    Case("InstanceNormalization", 1, [IMAGE], STATISTICS[:2], {},
         lambda x, *p: normalised(x, *per_channel(*p), *(f(x, (2, 3), keepdims=True) for f in (np.mean, np.var)))),
    Case("Cast", 1, [IMAGE * 9], (), {"to": "INT32"}, lambda x: x.astype(np.int32)),
    Case("Concat", 1, [IMAGE, IMAGE], (), {}, lambda x, y: np.concatenate([x, y], 1)),
    Case("Dropout", 1, [IMAGE], (), {"is_test": 1}, lambda x: x),
    Case("Dropout", 6, [IMAGE], (), {"is_test": 1}, lambda x: (x, np.ones_like(x)), 2),
    Case("Dropout", 7, [IMAGE], (), {}, lambda x: (x, np.ones_like(x)), 2),
    Case("Gemm", 1, [floats(4, 5), floats(3, 5)], [floats(3)], {"transB": 1, "broadcast": 1, "alpha": 0.5, "beta": 2.0},
         lambda a, b, c: 0.5 * a @ b.T + 2 * c),
    Case("Gemm", 6, [floats(5, 4), floats(5, 3), floats(4, 3)], (), {"transA": 1}, lambda a, b, c: a.T @ b + c),
    *(Case("PRelu", opset, [IMAGE], [slope], {}, lambda x, s: np.where(x > 0, x, s.reshape(-1, 1, 1) * x))
      for opset in (1, 6) for slope in (floats(3), floats(1))),
    Case("LpPool", 1, [IMAGE], (), {"kernel_shape": [2, 2], "p": 1.0},
         lambda x: np.lib.stride_tricks.sliding_window_view(np.abs(x), (2, 2), (2, 3)).sum((-1, -2))),
    Case("GlobalLpPool", 1, [IMAGE], (), {"p": 2.0}, lambda x: np.sqrt((x * x).sum((2, 3), keepdims=True))),
    Case("Reshape", 1, [IMAGE], (), {"shape": [0, -1, 2]}, lambda x: x.reshape(2, -1, 2)),
    Case("Split", 1, [IMAGE], [np.array([1, 4], np.float32)], {"axis": 3},
         lambda x, _: (x[..., :1], x[..., 1:]), 2),
    Case("Split", 1, [IMAGE], (), {"axis": 3, "split": [2, 3]}, lambda x: (x[..., :2], x[..., 2:]), 2),
    Case("Split", 2, [IMAGE], (), {"axis": 2}, lambda x: (x[:, :, :2], x[:, :, 2:]), 2),
    Case("Tile", 1, [IMAGE], [np.array([3], np.float32), np.array([1], np.float32)], {},
         lambda x, *_: np.tile(x, (1, 3, 1, 1))),
    Case("Upsample", 1, [IMAGE], (), {"height_scale": 2.0, "width_scale": 3.0, "mode": "nearest"},
         lambda x: x.repeat(2, 2).repeat(3, 3)),
    Case("Pad", 1, [IMAGE], (), {"paddings": [0, 0, 1, 2, 0, 0, 0, 1], "value": 2.0},
         lambda x: np.pad(x, [(0, 0), (0, 0), (1, 0), (2, 1)], constant_values=2.0)),
    Case("Pad", 2, [IMAGE], (), {"pads": [0, 0, 1, 2, 0, 0, 0, 1], "mode": "reflect"},
         lambda x: np.pad(x, [(0, 0), (0, 0), (1, 0), (2, 1)], mode="reflect")),
    Case("Slice", 1, [IMAGE], (), {"starts": [1, -3], "ends": [9, -1], "axes": [1, 3]}, lambda x: x[:, 1:9, :, -3:-1]),
    Case("TopK", 1, [IMAGE], (), {"k": 2, "axis": 3},
         lambda x: (-np.sort(-x, 3)[..., :2], np.argsort(-x, 3, kind="stable")[..., :2]), 2),
    *(Case(name, 1, [IMAGE], (), {"axis": 2}, lambda x, f=function: f(x.reshape(6, 20)).reshape(x.shape))
      for name, function in (
          ("Softmax", lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
          ("LogSoftmax", lambda x: x - np.log(np.exp(x).sum(1, keepdims=True))),
          ("Hardmax", lambda x: (np.arange(x.shape[1]) == x.argmax(1)[:, None]).astype(np.float32)))),
    *(Case(f"Reduce{name}", 1, [IMAGE], (), {"axes": [1, 3], "keepdims": 0}, lambda x, f=function: f(x, axis=(1, 3)))
      for name, function in (("Sum", np.sum), ("Mean", np.mean), ("Max", np.max), ("Min", np.min), ("Prod", np.prod))),
    Case("AveragePool", 1, [IMAGE], (), {"kernel_shape": [2, 2]},
         lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3)).mean((-1, -2))),
    Case("MaxPool", 1, [IMAGE], (), {"kernel_shape": [2, 2]},
         lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3)).max((-1, -2))),
    Case("Squeeze", 1, [IMAGE[:, :1]], (), {"axes": [1]}, lambda x: x[:, 0]),
    Case("Unsqueeze", 1, [IMAGE], (), {"axes": [0, 3]}, lambda x: x.reshape(1, 2, 3, 1, 4, 5)),
    Case("Flatten", 1, [IMAGE], (), {"axis": 2}, lambda x: x.reshape(6, 20)),
    Case("ArgMax", 1, [IMAGE], (), {"axis": 1, "keepdims": 0}, lambda x: x.argmax(1)),
    Case("Gather", 1, [IMAGE], [np.array([2, 0])], {"axis": 1}, lambda x, i: x[:, i]),
    Case("EyeLike", 9, [floats(3, 5)], (), {"k": 1}, lambda x: np.eye(3, 5, 1, np.float32)),
    Case("EyeLike", 9, [floats(3, 3)], (), {"dtype": TensorProto.INT32}, lambda x: np.eye(3, dtype=np.int32)),
    # by onnxruntime
    *(Case("AveragePool", opset, [IMAGE], (), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]} | more)
      for opset, more in ((7, {"count_include_pad": 1}), (10, {"ceil_mode": 1}), (11, {"ceil_mode": 1}),
                          (19, {"dilations": [2, 1]}))),
    *(Case("Resize", 10, [IMAGE], [np.array([1, 1, *scales], np.float32)], {"mode": mode})
      for mode in ("nearest", "linear") for scales in ((2, 1.6), (0.5, 0.6))),
    *(Case("Upsample", opset, [IMAGE], constants, {"mode": mode} | more) for mode in ("nearest", "linear")
      for opset, constants, more in ((7, (), {"scales": [1.0, 1.0, 2.0, 1.6]}),
                                     (9, (np.array([1, 1, 2, 1.6], np.float32),), {}))),
    *(Case("Softmax", opset, [IMAGE], (), {"axis": axis}) for opset in (7, 11, 13) for axis in (1, 2)),
    *(Case("BatchNormalization", opset, [IMAGE], STATISTICS, {}) for opset in (7, 9, 14, 15)),
    Case("Scatter", 9, [IMAGE, np.array([[[[2, 0]]]]), floats(1, 1, 1, 2)], (), {"axis": 3}),
    Case("TopK", 10, [IMAGE], [np.array([2])], {"axis": 1}, None, 2),
    Case("Squeeze", 13, [IMAGE[:, :1]], [np.array([1])]),
    Case("ReduceSum", 11, [IMAGE], (), {"axes": [-1]}),
    Case("ReduceSum", 13, [IMAGE], [np.array([-1])]),
    Case("ReduceMax", 18, [IMAGE], [np.array([-1])]),
    Case("Clip", 11, [IMAGE], [np.array(-0.5, np.float32), np.array(0.3, np.float32)]),
    Case("Hardmax", 12, [IMAGE], (), {"axis": 1}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_old_form_means_what_it_meant(case: Case) -> None:
    model = case.model()
    module, weights = import_onnx(model)
    module.verify()
    found = evaluate(module, list(case.inputs), weights)
    if case.wanted is None:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        wanted = session.run(None, {f"x{i}": x for i, x in enumerate(case.inputs)})
    else:
        values = case.wanted(*case.inputs, *case.constants)
        wanted = list(values) if isinstance(values, tuple) else [values]
    assert len(found) == len(wanted) == case.outputs
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine.shape == np.shape(theirs)
        assert mine.size
        if mine.dtype.kind == "f":
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (Case("Add", 6, [IMAGE, floats(5)]), "without broadcast the operands have one shape"),
        (Case("Add", 6, [IMAGE, floats(3, 4)], (), {"broadcast": 1, "axis": 3}), "the second operand lies within"),
        (Case("BatchNormalization", 6, [IMAGE], STATISTICS), "is that of inference (found is_test = 0)"),
        (Case("Dropout", 6, [IMAGE]), "is that of inference (found is_test = 0)"),
        (Case("Gemm", 6, [floats(4, 5), floats(5, 3), floats(3)]), "without broadcast c has the shape of the product"),
        (Case("PRelu", 6, [IMAGE], [floats(5)]), "there is one slope, or one for each channel (found 5"),
        (Case("LpPool", 1, [IMAGE], (), {"p": 1.5, "kernel_shape": [2, 2]}), "the order of a norm is a whole number"),
        (Case("Cast", 1, [IMAGE], (), {"to": "REAL"}), "a type is one of ONNX's (found 'REAL')"),
    ],
)
def test_what_an_old_form_forbids_is_said(case: Case, message: str) -> None:
    with pytest.raises(ImportProblems) as caught:
        import_onnx(case.model())
    assert message in str(caught.value)


def test_an_old_form_of_constants_is_not_folded_by_new_rules() -> None:
    """Add along axis 0 of a square: today's rule would take the last axis."""
    x, y = floats(3, 3), floats(3)
    case = Case("Add", 6, [], [x, y], {"broadcast": 1, "axis": 0})
    module, weights = import_onnx(case.model())
    (found,) = evaluate(module, [], weights)
    np.testing.assert_array_equal(found, x + y[:, None])


@pytest.mark.parametrize("operator", ["LSTM", "GRU", "RNN"])
def test_recurrent_networks_of_opset_1_are_those_of_opset_7(operator: str) -> None:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[operator]
    given = [floats(3, 2, 5)], [floats(1, gates * 4, 5), floats(1, gates * 4, 4)]
    results = []
    for opset, more in ((1, {"output_sequence": 1}), (7, {})):
        module, weights = import_onnx(Case(operator, opset, *given, {"hidden_size": 4} | more, outputs=2).model())
        results.append(evaluate(module, given[0], weights)[0])
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("turned", [0, 1])
def test_scan_of_opset_8_runs_each_sequence_of_a_batch(turned: int) -> None:
    value = helper.make_tensor_value_info
    step = [helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Mul", ["t", "x"], ["y"])]
    before, after = ([value(name, TensorProto.FLOAT, [3]) for name in names] for names in ("sx", "ty"))
    body = helper.make_graph(step, "step", before, after)
    node = helper.make_node("Scan", ["", "s0", "xs"], ["s1", "ys"], "scan", body=body, num_scan_inputs=1,
                            directions=[turned])  # fmt: skip
    infos = [value("s0", TensorProto.FLOAT, [2, 3]), value("xs", TensorProto.FLOAT, [2, 4, 3])]
    outputs = [value("s1", TensorProto.FLOAT, [2, 3]), value("ys", TensorProto.FLOAT, [2, 4, 3])]
    model = helper.make_model(
        helper.make_graph([node], "g", infos, outputs), opset_imports=[helper.make_opsetid("", 8)], ir_version=4
    )
    feeds = {"s0": floats(2, 3), "xs": floats(2, 4, 3)}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    module, weights = import_onnx(model)
    for mine, theirs in zip(evaluate(module, list(feeds.values()), weights), session.run(None, feeds), strict=True):
        np.testing.assert_allclose(mine, np.asarray(theirs), rtol=1e-6)
