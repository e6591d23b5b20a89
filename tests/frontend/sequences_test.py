"""Sequences of a known length are lists of values; of others the CPU keeps all."""

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx_models import text_model

import stepwell
from stepwell.driver.agreement import onnxruntime_run

Array = NDArray[Any]
X = np.arange(28, dtype=np.float32).reshape(2, 7, 2) / 8
I = np.arange(14, dtype=np.int64).reshape(7, 2) - 5  # noqa: E741
CONSTANTS = {
    "zero": np.array(0),
    "one": np.array(1),
    "two": np.array(2),
    "three": np.array(3),
    "last": np.array(-1),
    "sizes": np.array([2, 0, 5]),
    "true": np.array(True),
    "start": np.zeros((2, 2), np.float32),
    "zeros": np.array([0]),
    "twos": np.array([2]),
    "ones": np.array([1]),
}


def model(text: str, outputs: str, more: str = "") -> onnx.ModelProto:
    used: dict[str, Any] = {name: value for name, value in CONSTANTS.items() if name in text}
    return text_model(text, f"float[2,7,2] x, int64[7,2] i{more}", outputs, **used)


def on_cpu(made: onnx.ModelProto, more: dict[str, Array] | None = None, host: bool = True) -> list[str]:
    """The operators that the CPU runs, of a model whose results are right."""
    feeds = {"x": X, "i": I} | (more or {})
    artifact = stepwell.compile(made, target="tiny", precision="fp32", host=host)
    found, wanted = stepwell.run(artifact, feeds), onnxruntime_run(made, feeds)
    assert wanted
    for name, value in wanted.items():
        if isinstance(value, list):
            assert [item.tolist() for item in found[name]] == [item.tolist() for item in value]
        else:
            assert (found[name].shape, found[name].dtype) == (value.shape, value.dtype)
            np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6)
    return [node.operator for part in artifact.host for node in part.nodes]


KNOWN = {
    "parts of a size": (
        "s = SplitToSequence <axis = 1> (x, three) a = SequenceAt(s, zero) b = SequenceAt(s, last)"
        " y = Relu(a) z = Exp(b)",
        "float[2,3,2] y, float[2,1,2] z",
    ),
    "parts of sizes": (
        "s = SplitToSequence <axis = -2> (x, sizes) a = SequenceAt(s, zero) b = SequenceAt(s, two)"
        " e = SequenceAt(s, one) n = SequenceLength(s)"
        " c = Slice(b, zeros, twos, ones) t = SequenceConstruct(a, c, a)"
        " y = ConcatFromSequence <axis = 2> (t) z = Concat <axis = 1> (e, a)",
        "float[2,2,6] y, float[2,2,2] z, int64 n",
    ),
    "nothing among them": (
        "s = SplitToSequence <axis = 1> (x, sizes) e = SequenceAt(s, one) t = SequenceConstruct(e, x)"
        " y = ConcatFromSequence <axis = 1> (t)",
        "float[2,7,2] y",
    ),
    "elements": (
        "s = SplitToSequence <axis = 0, keepdims = 0> (i) y = ConcatFromSequence <axis = -1, new_axis = 1> (s)",
        "int64[2,7] y",
    ),
    "elements of an axis that stays": (
        "s = SplitToSequence (i) t = SequenceErase(s, one) u = SequenceErase(t) y = ConcatFromSequence <axis = 0> (u)",
        "int64[5,2] y",
    ),
    "put in": (
        "e = SequenceEmpty() r = Relu(x) s = SequenceInsert(e, x) t = SequenceInsert(s, r, zero)"
        " u = SequenceInsert(t, x, last) v = Identity(u) y = ConcatFromSequence <axis = 0, new_axis = 1> (v)",
        "float[3,2,7,2] y",
    ),
    "in the steps of a loop": (
        """e = SequenceEmpty() h, s = Loop (three, true, start, e) <body = g
        (int64 step, bool c, float[2,2] h0, seq(float[2,2]) s0) => (bool d, float[2,2] h1, seq(float[2,2]) s1)
        { d = Identity(c) part = Gather <axis = 1> (x, step) sum = Add(part, h0) h1 = Tanh(sum)
        s1 = SequenceInsert(s0, h1) }> y = ConcatFromSequence <axis = 0, new_axis = 1> (s)""",
        "float[3,2,2] y, float[2,2] h",
    ),
}


@pytest.mark.parametrize("kind", KNOWN)
def test_sequences_of_a_known_length_are_no_work(kind: str) -> None:
    assert on_cpu(model(*KNOWN[kind]), host=False) == []


OTHERS = {
    "a place that is computed": (
        "s = SplitToSequence(i) y = SequenceAt(s, place)", "int64[1,2] y", "SequenceAt",
    ),
    "one that the model returns": (
        "r = Relu(x) y = SequenceConstruct(r, x)", "seq(float[2,7,2]) y", "SequenceConstruct",
    ),
    "integers that the model returns": (
        "j = Add(i, i) y = SequenceConstruct(j, i)", "seq(int64[7,2]) y", "SequenceConstruct",
    ),
    "steps that a run counts": (
        """s = SplitToSequence <axis = 1> (x) n = Abs(place) y = Loop (n, true, start) <body = g
        (int64 step, bool c, float[2,2] h0) => (bool d, float[2,2] h1)
        { d = Identity(c) part = SequenceAt(s, step) all = Squeeze(part, ones) h1 = Add(all, h0) }>""",
        "float[2,2] y", "Loop",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", OTHERS)
def test_what_a_run_tells_leaves_them_to_the_cpu(kind: str) -> None:
    text, outputs, operator = OTHERS[kind]
    made = model(text, outputs, ", int64 place" if "place" in text else "")
    assert operator in on_cpu(made, {"place": np.array(-3)} if "place" in text else None)
