"""Operators that are several ops of the dialect, over odd sizes: compiled, run, compared with onnxruntime.

In fp16 the results are near, and so are all places where a rounding does not decide which element is meant.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx_models import node_model

import stepwell
from stepwell.frontend.onnx import ImportProblems

pytestmark = pytest.mark.xdist_group("device")
Array = NDArray[Any]


@dataclass(frozen=True)
class Case:
    """A node: inputs at run time, then constants; `half` is the error in fp16, relative to the largest value."""

    operator: str
    inputs: Sequence[Array]
    constants: Sequence[Any] = ()
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    opset: int = 21
    outputs: int = 1
    half: float = 5e-3

    def __str__(self) -> str:
        shapes = ",".join("x".join(map(str, array.shape)) for array in self.inputs)
        return f"{self.operator}-{self.opset} {shapes} {self.attributes}"


RNG = np.random.default_rng(17)


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def whole(low: int, high: int, *shape: int, kind: Any = np.int64) -> Array:
    return RNG.integers(low, high, shape).astype(kind)


def quantised(*shape: int, kind: Any) -> list[Any]:
    """Bytes, their scale, their zero point."""
    low = np.iinfo(kind).min
    return [whole(low, low + 255, *shape, kind=kind), np.float32(0.02), np.array(low + 131, kind)]


HEADS = {"q_num_heads": 6, "kv_num_heads": 2}
CASES = [
    Case("Attention", [floats(2, 3, 17, 20), floats(2, 3, 33, 20), floats(2, 3, 33, 9)], opset=23),
    Case("Attention", [floats(1, 17, 60), floats(1, 33, 20), floats(1, 33, 20)], (), HEADS | {"is_causal": 1}, 23),
    Case("Attention", [floats(2, 17, 60), floats(2, 33, 20), floats(2, 33, 20), floats(17, 33)], (), HEADS, 23),
    Case("Attention", [floats(1, 2, 5, 8), floats(1, 2, 7, 8), floats(1, 2, 7, 8), floats(1, 2, 5, 7) > -1],
         (), {"softcap": 2.0, "scale": 0.3}, 23),
    Case("RotaryEmbedding", [floats(2, 3, 7, 10)], [floats(11, 5), floats(11, 5), whole(0, 11, 2, 7)], opset=23),
    Case("RotaryEmbedding", [floats(1, 7, 30), floats(1, 7, 3), floats(1, 7, 3)], (),
         {"num_heads": 3, "rotary_embedding_dim": 6, "interleaved": 1}, 23),
    Case("RMSNormalization", [floats(3, 5, 37), floats(37)], (), {}, 23),
    Case("QuantizeLinear", [floats(3, 5, 37)], [np.float32(0.03), np.uint8(120)], half=3e-2),
    Case("QuantizeLinear", [floats(3, 5, 37)], [np.abs(floats(5)) / 50 + 0.01, whole(-9, 9, 5, kind=np.int8)],
         half=3e-2),
    Case("DequantizeLinear", [whole(-128, 128, 3, 5, 37, kind=np.int8)],
         [np.abs(floats(37)), whole(-9, 9, 37, kind=np.int8)], {"axis": 2}),
    Case("DequantizeLinear", [whole(-9999, 9999, 3, 37, kind=np.int32)], [np.float32(0.01)]),
    Case("DynamicQuantizeLinear", [floats(3, 5, 37)], outputs=3, half=3e-2),
    Case("DynamicQuantizeLinear", [np.zeros((3, 5), np.float32)], outputs=3),
    Case("QLinearMatMul", [quantised(3, 13, 37, kind=np.uint8)[0]],
         [*quantised(1, kind=np.uint8)[1:], *quantised(37, 9, kind=np.int8), np.float32(0.2), np.uint8(90)], half=0),
    Case("QLinearConv", [quantised(2, 5, 9, 8, kind=np.uint8)[0]],
         [*quantised(1, kind=np.uint8)[1:], quantised(7, 5, 3, 3, kind=np.int8)[0], np.abs(floats(7)) / 50,
          np.zeros(7, np.int8), np.float32(0.4), np.uint8(3), whole(-999, 999, 7, kind=np.int32)],
         {"pads": [1, 1, 0, 2], "strides": [2, 1]}, half=0),
    *(Case("ScatterElements", [floats(5, 37), whole(-37, 37, 3, 50), floats(3, 50)], (),
           {"axis": 1, "reduction": reduction}, 18, half=2e-2) for reduction in ("add", "max", "min", "mul")),
    Case("ScatterND", [floats(4, 5, 6), whole(-4, 4, 9, 2), floats(9, 6)], (), {"reduction": "add"}, 18),
    Case("ScatterND", [whole(-9, 9, 4, 5, kind=np.int32), whole(-4, 4, 9, 1), whole(-9, 9, 9, 5, kind=np.int32)], (),
         {"reduction": "max"}, 18, half=0),
    Case("ReverseSequence", [floats(7, 3, 5), np.array([7, 1, 4])], (), {}, 10),
    Case("ReverseSequence", [floats(3, 7), np.array([2, 7, 3])], (), {"batch_axis": 0, "time_axis": 1}, 10),
    Case("TensorScatter", [floats(3, 2, 9, 5), floats(3, 2, 4, 5), np.array([7, 0, 5])], (), {"mode": "circular"}, 24),
    Case("Col2Im", [floats(2, 18, 20)], [np.array([7, 6]), np.array([3, 3])], {}, 18),
    *(Case("GridSample", [floats(2, 3, 9, 7), floats(2, 5, 6, 2) * 0.7], (),
           {"mode": mode, "padding_mode": padding, "align_corners": aligned}, 20, half=3e-2)
      for mode, padding, aligned in (("linear", "zeros", 0), ("cubic", "border", 1), ("linear", "reflection", 0))),
    Case("AffineGrid", [floats(2, 3, 4)], [np.array([2, 1, 3, 5, 7])], {}, 20),
    *(Case("MaxPool", [floats(2, 5, 9, 11)], (),
           {"kernel_shape": [3, 2], "strides": [2, 1], "storage_order": order} | more, 12, 2, half=0.1)
      for order, more in ((0, {"pads": [1, 1, 1, 0]}), (1, {"dilations": [2, 3]}))),
    Case("MaxUnpool", [floats(1, 2, 3, 4), np.arange(24).reshape(1, 2, 3, 4) * 4], (),
         {"kernel_shape": [2, 2], "strides": [2, 2]}, 11),
    Case("MaxUnpool", [floats(1, 2, 3, 4), whole(0, 5, 1, 2, 3, 4) + np.arange(24).reshape(1, 2, 3, 4) * 5],
         [np.array([1, 2, 7, 9])], {"kernel_shape": [2, 2], "strides": [2, 2]}, 11),
    Case("DeformConv", [floats(2, 6, 7, 8)], [floats(4, 3, 3, 2), floats(2, 24, 3, 4), floats(4), floats(2, 12, 3, 4)],
         {"strides": [2, 2], "pads": [0, 1, 0, 0], "group": 2, "offset_group": 2}, 19, half=3e-2),
    *(Case("Resize", [floats(1, 3, 17, 13)], [None, None, np.array([1, 3, 7, 5])],
           {"mode": mode, "antialias": 1}, 18) for mode in ("linear", "cubic")),
    Case("BatchNormalization", [floats(4, 5, 3, 7)], [floats(5), floats(5), floats(5), np.abs(floats(5))],
         {"training_mode": 1, "momentum": 0.7}, 15, 3),
    *(Case("DFT", [floats(2, 15, parts)], (), {"axis": 1} | more, 17, half=2e-2)
      for parts, more in ((1, {"onesided": 1}), (2, {}), (2, {"inverse": 1}))),
    Case("STFT", [floats(2, 50, 1)], [np.int64(7), np.hanning(16).astype(np.float32)], {}, 17, half=2e-2),
    *(Case("NegativeLogLikelihoodLoss", [floats(3, 7, 5), whole(0, 7, 3, 5)], [np.abs(floats(7))],
           {"reduction": reduction, "ignore_index": 2}, 13) for reduction in ("none", "mean", "sum")),
    *(Case("RoiAlign", [floats(2, 3, 9, 11), np.array([[0.5, 1, 8, 7], [-3, -2, 5, 4], [2, 2, 2, 2], [4, 3, 30, 20]],
                                                     np.float32), np.array([0, 1, 1, 0])], (),
           {"output_height": 3, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 0.7} | more, opset, half=3e-2)
      for opset, more in ((10, {}), (16, {}), (16, {"coordinate_transformation_mode": "output_half_pixel"}),
                          (16, {"mode": "max"}))),
    *(Case("Det", [floats(*size)], (), {}, 11, half=3e-2) for size in ((1, 1), (3, 3), (2, 3, 5, 5), (2, 8, 8))),
    *(Case("TfIdfVectorizer", [whole(0, 4, *size)], (),
           {"ngram_counts": [0, 3, 9], "ngram_indexes": [5, 0, 2, 1, 4, 3, 6], "mode": mode, "min_gram_length": low,
            "max_gram_length": 3, "max_skip_count": skip, "pool_int64s": [1, 2, 3, 0, 1, 2, 3, 1, 1, 0, 1, 2],
            "weights": [0.5, 1.0, 2.0, 0.1, 3.0, 0.7, 0.3]}, 9)
      for size, mode, low, skip in (((20,), "TF", 1, 0), ((3, 20), "IDF", 1, 3), ((3, 9), "TFIDF", 2, 5),
                                    ((4,), "TF", 3, 9))),
    Case("SoftmaxCrossEntropyLoss", [floats(13, 37), whole(0, 37, 13)], (), {}, 13, 2),
]  # fmt: skip


def outputs_of(model: Any, inputs: Sequence[Array]) -> list[Array]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [np.asarray(value) for value in session.run(None, {f"x{i}": value for i, value in enumerate(inputs)})]


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_operator_agrees_with_onnxruntime_on_the_device(case: Case, precision: str) -> None:
    model = node_model(case.operator, case.inputs, case.attributes, case.opset, case.constants, case.outputs)
    artifact = stepwell.compile(model, target="tiny", precision=precision)
    found = stepwell.run(artifact, {f"x{i}": value for i, value in enumerate(case.inputs)})
    wanted = outputs_of(model, case.inputs)
    assert len(wanted) == case.outputs
    for info, theirs in zip(model.graph.output, wanted, strict=True):
        mine = found[info.name]
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        error = np.abs(mine.astype(np.float64) - theirs.astype(np.float64))
        if theirs.dtype.kind != "f" and precision == "fp32":
            assert not error.any()
            continue
        if theirs.dtype == np.int64:  # places: those of equal values may differ in fp16
            assert np.mean(error > 0) <= case.half
            continue
        allowed = 2e-5 if precision == "fp32" else case.half
        assert error.max() <= allowed * max(1.0, float(np.abs(theirs.astype(np.float64)).max()))


def test_an_index_of_max_unpool_outside_the_result_is_one_clear_error() -> None:
    x, places = floats(1, 1, 1, 2), np.array([0, 8]).reshape(1, 1, 1, 2)
    attributes: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    with pytest.raises(ImportProblems, match=r"those of the 8 elements of the result \(found 8\)"):
        stepwell.compile(node_model("MaxUnpool", [x], attributes, 11, [places]), target="tiny", host=False)
