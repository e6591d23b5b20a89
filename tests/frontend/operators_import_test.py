"""ONNX's operators one by one, over opsets, types and shapes: imported, evaluated, compared with onnxruntime."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator
from onnx_models import node_model

from stepwell.dialects.evaluate import evaluate
from stepwell.frontend.onnx import import_onnx

Array = NDArray[Any]
RNG = np.random.default_rng(7)


@dataclass(frozen=True)
class Case:
    """A node: runtime inputs of these shapes, then constants, attributes and an opset."""

    operator: str
    shapes: Sequence[Sequence[int]]
    constants: Sequence[Any] = ()
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    opset: int = 17
    kind: Any = np.float32
    positive: bool = False
    outputs: int = 1
    tolerance: float = 5e-6
    by_onnx: bool = False
    """Compared with onnx's own reference, because onnxruntime does not run it."""

    def __str__(self) -> str:
        shapes = ",".join("x".join(map(str, shape)) for shape in self.shapes)
        return f"{self.operator}-{self.opset} {shapes} {np.dtype(self.kind).name} {self.attributes}"


def ints(*values: int) -> Array:
    return np.array(values, dtype=np.int64)


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


UNARY = ["Neg", "Abs", "Relu", "Exp", "Sin", "Cos", "Tanh", "Erf", "Sigmoid", "Softplus", "Floor", "Ceil", "Round",
         "Sign", "HardSwish", "Identity"]  # fmt: skip
BINARY = ["Add", "Sub", "Mul", "Div", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"]
REDUCE = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2"]
POOL = {"kernel_shape": [3, 3], "strides": [2, 2]}

CASES = [
    *(Case(name, [(2, 3, 5)]) for name in UNARY),
    *(Case(name, [(3, 4)], positive=True) for name in ("Sqrt", "Log", "Reciprocal")),
    *(Case(name, [(2, 1, 5), (3, 1)]) for name in BINARY),
    *(Case(name, [(4, 5), (5,)], kind=np.int32) for name in ("Add", "Sub", "Mul", "Equal", "Less")),
    Case("Div", [(64,)], [np.full(1, 3, np.int32)], kind=np.int32),
    Case("Mod", [(64,)], [np.full(1, -5, np.int32)], kind=np.int32),
    Case("Mod", [(64,)], [np.full(1, 0.75, np.float32)], {"fmod": 1}),
    *(Case(name, [(7,), (7,)], kind=np.bool_) for name in ("And", "Or", "Xor", "Equal")),
    Case("Not", [(7,)], kind=np.bool_),
    Case("Pow", [(3, 4)], [np.float32(2)]),
    Case("Pow", [(3, 4)], [np.int64(3)], opset=13),
    Case("Pow", [(3, 4), (3, 4)], positive=True, tolerance=1e-5),
    *(Case(name, [(2, 3), (3,), (2, 1)]) for name in ("Max", "Min", "Sum", "Mean")),
    Case("Max", [(2, 3)], opset=8),
    Case("Clip", [(9,)], [np.float32(-0.5), np.float32(0.5)]),
    Case("Clip", [(9,)], [None, np.float32(0.5)]),
    Case("Clip", [(9,)], [np.float32(0)]),
    Case("Clip", [(9,)], attributes={"min": 0.0, "max": 6.0}, opset=6),
    Case("Clip", [(9,)], attributes={"max": 0.25}, opset=10),
    Case("Clip", [(9,)], [np.int32(-2), np.int32(2)], kind=np.int32),
    Case("HardSigmoid", [(9,)]),
    Case("HardSigmoid", [(9,)], attributes={"alpha": 0.3, "beta": 0.4}),
    Case("Elu", [(9,)], attributes={"alpha": 0.5}),
    Case("LeakyRelu", [(9,)]),
    Case("PRelu", [(2, 3, 4)], [floats(3, 1)]),
    Case("Gelu", [(9,)], opset=20),
    Case("IsNaN", [(9,)]),
    Case("IsInf", [(9,)]),
    Case("Where", [(2, 3)], [floats(2, 3), np.float32(1)], kind=np.bool_),
    Case("Cast", [(9,)], attributes={"to": 10}),
    Case("Cast", [(9,)], attributes={"to": 6}),
    Case("Cast", [(9,)], attributes={"to": 7}),
    Case("Cast", [(9,)], attributes={"to": 9}),
    Case("Cast", [(9,)], attributes={"to": 1}, kind=np.int64),
    Case("Cast", [(9,)], attributes={"to": 1}, kind=np.uint8),
    Case("MatMul", [(4, 5), (5, 6)]),
    Case("MatMul", [(2, 1, 4, 5), (3, 5, 6)]),
    Case("MatMul", [(5,), (5, 6)]),
    Case("MatMul", [(3, 4, 5), (5,)]),
    Case("MatMul", [(5,), (5,)]),
    Case("MatMul", [(2, 3, 4100)], [floats(4100, 3)], tolerance=2e-5),
    Case("Gemm", [(4, 5), (5, 6), (6,)]),
    Case("Gemm", [(5, 4), (6, 5), (4, 6)], attributes={"alpha": 0.5, "beta": 2.0, "transA": 1, "transB": 1}),
    Case("Gemm", [(4, 5), (5, 6), (4, 1)], opset=9),
    Case("Gemm", [(4, 5), (5, 6)], attributes={"alpha": 2.0}, opset=11),
    Case("Conv", [(1, 3, 9, 8), (5, 3, 3, 3), (5,)]),
    Case("Conv", [(2, 20, 9, 8)], [floats(7, 20, 3, 2)], {"strides": [2, 1], "pads": [1, 0, 2, 1]}),
    Case("Conv", [(1, 4, 9, 9)], [floats(6, 4, 3, 3)], {"dilations": [2, 2], "pads": [2, 2, 2, 2]}),
    Case("Conv", [(1, 4, 9, 9)], [floats(6, 4, 3, 3)], {"dilations": [2, 2], "auto_pad": "SAME_UPPER"}, by_onnx=True),
    Case("Conv", [(1, 4, 9, 9)], [floats(6, 4, 2, 2)], {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    Case("Conv", [(1, 4, 9, 9)], [floats(6, 4, 3, 3)], {"auto_pad": "VALID"}, opset=1),
    Case("Conv", [(1, 18, 7, 7)], [floats(18, 1, 3, 3), floats(18)], {"group": 18, "pads": [1, 1, 1, 1]}),
    Case("Conv", [(1, 6, 7, 7)], [floats(12, 1, 3, 3), floats(12)], {"group": 6}),
    Case("Conv", [(1, 12, 7, 7)], [floats(9, 4, 3, 3), floats(9)], {"group": 3}),
    Case("Conv", [(2, 5, 17)], [floats(4, 5, 3), floats(4)], {"pads": [1, 2], "strides": [2]}),
    Case("Conv", [(2, 6, 17)], [floats(6, 1, 3)], {"group": 6, "dilations": [2]}),
    Case("Conv", [(1, 300, 5, 5)], [floats(4, 300, 3, 3)], tolerance=2e-5),
    *(Case("MaxPool", [(2, 5, 9, 10)], attributes=POOL | a) for a in ({}, {"pads": [1, 0, 1, 2]}, {"ceil_mode": 1})),
    Case("MaxPool", [(2, 5, 9, 10)], attributes=POOL | {"dilations": [2, 2]}, opset=12),
    Case("MaxPool", [(2, 5, 9)], attributes={"kernel_shape": [2]}, opset=8),
    *(Case("AveragePool", [(2, 5, 9, 10)], attributes=POOL | a)
      for a in ({}, {"pads": [1, 0, 1, 2]}, {"pads": [1, 1, 1, 1], "count_include_pad": 1}, {"auto_pad": "SAME_UPPER"},
                {"ceil_mode": 1})),
    Case("GlobalAveragePool", [(2, 5, 4, 3)]),
    Case("GlobalMaxPool", [(2, 5, 4)]),
    *(Case(name, [(2, 3, 20)], attributes={"axes": [-1], "keepdims": 0}, opset=11) for name in REDUCE),
    *(Case(name, [(2, 3, 20)], [ints(0, 2)], opset=18) for name in REDUCE),
    *(Case(name, [(2, 3, 20)], opset=13) for name in REDUCE),
    Case("ReduceSum", [(2, 3, 20)], [ints(1)], opset=13),
    *(Case("Softmax", [(2, 3, 4)], attributes=a, opset=o)
      for a in ({}, {"axis": 1}, {"axis": 2}, {"axis": -2}) for o in (11, 13)),
    *(Case("LogSoftmax", [(2, 3, 4)], attributes={"axis": 1}, opset=o) for o in (11, 13)),
    Case("LayerNormalization", [(2, 3, 8)], [floats(8), floats(8)]),
    Case("LayerNormalization", [(2, 3, 8)], [floats(3, 8)], {"axis": 1, "epsilon": 1e-3}),
    *(Case("BatchNormalization", [(2, 3, 4, 4)], [floats(3), floats(3), floats(3), np.abs(floats(3)) + 0.5], opset=o)
      for o in (7, 9, 14, 15)),
    Case("InstanceNormalization", [(2, 3, 4, 4)], [floats(3), floats(3)], tolerance=2e-5),
    Case("GroupNormalization", [(2, 6, 4, 4)], [floats(6), floats(6)], {"num_groups": 3}, opset=21, tolerance=2e-5,
         by_onnx=True),
    Case("Reshape", [(2, 3, 4)], [ints(0, -1)]),
    Case("Reshape", [(2, 3, 4)], [ints(4, 6)]),
    Case("Transpose", [(2, 3, 4)]),
    Case("Transpose", [(2, 3, 4)], attributes={"perm": [1, 2, 0]}),
    Case("Flatten", [(2, 3, 4)], attributes={"axis": 2}),
    Case("Flatten", [(2, 3, 4)], attributes={"axis": 0}),
    Case("Squeeze", [(1, 3, 1)], opset=11),
    Case("Squeeze", [(1, 3, 1)], attributes={"axes": [0]}, opset=11),
    Case("Squeeze", [(1, 3, 1)], [ints(-1)], opset=13),
    Case("Unsqueeze", [(3, 4)], attributes={"axes": [0, 3]}, opset=11),
    Case("Unsqueeze", [(3, 4)], [ints(-1, 1)], opset=13),
    Case("Slice", [(5, 8)], attributes={"starts": [1, -3], "ends": [9, 2**31 - 1], "axes": [0, 1]}, opset=9),
    Case("Slice", [(5, 8)], [ints(1, 0), ints(-1, 7)]),
    Case("Slice", [(5, 8)], [ints(-1), ints(-(2**63)), ints(1), ints(-2)]),
    Case("Slice", [(5, 8)], [ints(6), ints(1), ints(-1), ints(-2)]),
    Case("Expand", [(3, 1)], [ints(2, 1, 4)]),
    Case("Concat", [(2, 3), (2, 4)], attributes={"axis": -1}),
    Case("Pad", [(2, 3)], attributes={"pads": [0, 1, 1, 2]}, opset=2),
    Case("Pad", [(2, 3)], [ints(0, 1, 1, 2)], opset=13),
    Case("Pad", [(2, 3, 4)], [ints(1, 2), np.float32(0), ints(-1)], opset=18),
    Case("Split", [(6, 4)], attributes={"split": [1, 5]}, opset=11, outputs=2),
    Case("Split", [(6, 4)], [ints(1, 2, 3)], opset=13, outputs=3),
    Case("Split", [(7, 4)], attributes={"num_outputs": 2}, opset=18, outputs=2),
    Case("Split", [(4, 6)], attributes={"axis": 1}, opset=13, outputs=3),
    Case("Gather", [(5, 6)], [np.int64(-1)]),
    Case("Gather", [(5, 6)], [ints(4, 3, 2, 1, 0)]),
    Case("Gather", [(5, 6)], [np.array([[0, 2], [4, 1]])], {"axis": 1}),
    Case("Dropout", [(4,)], opset=13),
    Case("ConvTranspose", [(1, 3, 4, 5)], [floats(3, 4, 2, 2), floats(4)], {"strides": [2, 2]}),
    Case("ConvTranspose", [(2, 3, 4, 5)], [floats(3, 4, 3, 3), floats(4)], {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    Case("ConvTranspose", [(1, 20, 4, 5)], [floats(20, 4, 3, 2)], {"strides": [3, 1], "output_padding": [1, 0]}),
    Case("ConvTranspose", [(1, 3, 4, 5)], [floats(3, 4, 1, 2)], {"strides": [2, 3], "pads": [0, 1, 0, 0]}),
    Case("Resize", [(1, 2, 3, 4)], [None, np.array([1, 1, 2, 3], np.float32)], {"mode": "nearest"}),
    Case("Resize", [(1, 2, 3, 4)], [None, None, ints(1, 2, 6, 4)], {"nearest_mode": "floor",
         "coordinate_transformation_mode": "asymmetric"}),
    Case("Resize", [(1, 2, 3, 4)], [np.array([1, 1, 2, 2], np.float32)], opset=10),
    Case("Upsample", [(1, 2, 3, 4)], [np.array([1, 1, 2, 2], np.float32)], opset=9),
    *(Case(name, [(3, 8), (8,)], kind=np.float16, tolerance=1e-3) for name in ("Add", "Div", "MatMul", "Greater")),
    *(Case(name, [(3, 8)], kind=np.float16, tolerance=1e-3) for name in ("Softmax", "ReduceMean", "Sigmoid")),
    Case("Conv", [(1, 8, 6, 6), (4, 8, 3, 3), (4,)], kind=np.float16, tolerance=1e-3),
    Case("Add", [(9,), (9,)], kind=np.int64),
    Case("Transpose", [(3, 8)], kind=np.int8),
]  # fmt: skip


def random_array(case: Case, shape: Sequence[int], rng: np.random.Generator) -> Array:
    kind = np.dtype(case.kind)
    if kind == np.bool_:
        return rng.random(shape) > 0.5
    if kind.kind in "iu":
        return rng.integers(0 if kind.kind == "u" else -20, 20, shape).astype(kind)
    values = rng.standard_normal(shape) * 2
    return (np.abs(values) + 0.1 if case.positive else values).astype(kind)


def outputs(model: onnx.ModelProto, case: Case, inputs: Sequence[Array]) -> list[Array]:
    feeds = {f"x{i}": value for i, value in enumerate(inputs)}
    if case.by_onnx:
        return [np.asarray(value) for value in ReferenceEvaluator(model).run(None, feeds)]
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [np.asarray(value) for value in session.run(None, feeds)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_operator_agrees_with_onnxruntime(case: Case) -> None:
    rng = np.random.default_rng(11)
    inputs = [random_array(case, shape, rng) for shape in case.shapes]
    model = node_model(case.operator, inputs, case.attributes, case.opset, case.constants, case.outputs)
    module, weights = import_onnx(model)
    module.verify()
    found = evaluate(module, inputs, weights)
    for mine, wanted in zip(found, outputs(model, case, inputs), strict=True):
        assert mine.dtype == wanted.dtype
        assert mine.shape == wanted.shape
        if wanted.dtype.kind != "f":
            np.testing.assert_array_equal(mine, wanted)
            continue
        scale = max(1.0, float(np.max(np.abs(wanted))))
        assert np.max(np.abs(mine - wanted)) <= case.tolerance * scale
