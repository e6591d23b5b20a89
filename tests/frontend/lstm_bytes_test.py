"""DynamicQuantizeLSTM where `microsoft_test.py` does not look: weights that are inputs, what a batch does, the CPU."""

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import stepwell
from stepwell.driver.agreement import onnxruntime_run

Array = NDArray[Any]
WEIGHTS = ("W", "R", "B", "ws", "wz", "rs", "rz")


def weights(directions: int, size: int, hidden: int) -> dict[str, Array]:
    random = np.random.default_rng(5)
    w, r = (random.integers(-127, 128, (directions, k, 4 * hidden)).astype(np.int8) for k in (size, hidden))
    scale, zero = np.full(directions, 0.004, np.float32), np.zeros(directions, np.int8)
    bias = (random.standard_normal((directions, 8 * hidden)) * 0.1).astype(np.float32)
    return {"W": w, "R": r, "B": bias, "ws": scale, "wz": zero, "rs": scale, "rz": zero}


def model(known: dict[str, Array], given: dict[str, Array], hidden: int) -> onnx.ModelProto:
    """x and what else is `given` are inputs."""
    node = helper.make_node(
        "DynamicQuantizeLSTM", ["x", "W", "R", "B", "", "", "", "", "ws", "wz", "rs", "rz"], ["y"], "lstm",
        domain="com.microsoft", hidden_size=hidden, direction="bidirectional",
    )  # fmt: skip
    infos = [
        helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for key, array in given.items()
    ]
    (time, batch, _) = given["x"].shape
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [time, 2, batch, hidden])
    constants = [numpy_helper.from_array(array, key) for key, array in known.items()]
    graph = helper.make_graph([node], "one", infos, [y], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def sound(*size: int) -> Array:
    return np.random.default_rng(7).standard_normal(size).astype(np.float32)


@pytest.mark.parametrize("inputs", [("W",), ("R", "rs", "rz"), WEIGHTS], ids=", ".join)
def test_weights_may_be_inputs(inputs: tuple[str, ...]) -> None:
    every, x = weights(2, 12, 16), sound(4, 2, 12)
    given = {"x": x, **{key: every[key] for key in inputs}}
    known = {key: every[key] for key in WEIGHTS if key not in inputs}
    expected = onnxruntime_run(model(every, {"x": x}, 16), {"x": x})["y"]
    artifact = stepwell.compile(model(known, given, 16), target="tiny", precision="fp32")
    assert not artifact.host
    np.testing.assert_allclose(stepwell.run(artifact, given)["y"], expected, atol=1e-6)


@pytest.mark.parametrize("precision", ["fp16", "fp32", "bf16"])
def test_integers_are_exact_in_every_policy(precision: str) -> None:
    """x is small integers, which no policy rounds, so that all give the same bytes."""
    every, x = weights(2, 12, 16), np.rint(sound(6, 3, 12) * 4).astype(np.float32)
    found, exact = (
        stepwell.run(stepwell.compile(model(every, {"x": x}, 16), target="tiny", precision=policy), {"x": x})["y"]
        for policy in (precision, "fp32")
    )
    np.testing.assert_array_equal(found, exact)


def test_the_range_is_that_of_all_sequences() -> None:
    """What a quiet sequence gives hangs on a loud one, as onnxruntime's does on one thread."""
    every, x = weights(2, 12, 16), sound(6, 2, 12)
    x[:, 0] *= 0.01
    alone, both = (
        stepwell.run(stepwell.compile(model(every, {"x": part}, 16), target="tiny", precision="fp32"), {"x": part})["y"]
        for part in (x[:, :1], x)
    )
    np.testing.assert_allclose(both, onnxruntime_run(model(every, {"x": x}, 16), {"x": x})["y"], atol=1e-6)
    assert np.abs(both[:, :, :1] - alone).max() > 1e-3


@pytest.mark.parametrize("known", [True, False], ids=["known", "computed"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_what_lies_beyond_the_sequences_counts_for_nothing(direction: str, known: bool) -> None:
    """Not in the range of x, nor in that of h, whose first value is the state that is given, in either direction."""
    count = 2 if direction == "bidirectional" else 1
    x, random = sound(6, 3, 12), np.random.default_rng(11)
    lengths = np.array([4, 1, 3], np.int32)
    for b, length in enumerate(lengths):
        x[length:, b] = 2 if length < 4 else 1000
    every = weights(count, 12, 16)
    states = {key: random.standard_normal((count, 3, 16)).astype(np.float32) for key in ("h0", "c0")}
    node = helper.make_node(
        "DynamicQuantizeLSTM", ["x", "W", "R", "B", "n", "h0", "c0", "", "ws", "wz", "rs", "rz"], ["y", "yh", "yc"],
        "lstm", domain="com.microsoft", hidden_size=16, direction=direction,
    )  # fmt: skip
    given = {"x": x} if known else {"x": x, "n": lengths}
    constants = {**every, **states, **({"n": lengths} if known else {})}
    made = model(constants, given, 16)
    made.graph.node[0].CopyFrom(node)
    del made.graph.output[:]
    made.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in node.output)
    artifact = stepwell.compile(made, target="tiny", precision="fp32")
    assert not artifact.host
    found, expected = stepwell.run(artifact, given), onnxruntime_run(made, given)
    for name in node.output:
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5)


def test_a_batch_whose_states_do_not_fit_is_for_the_cpu() -> None:
    every, x = weights(2, 12, 64), sound(2, 40, 12)
    artifact = stepwell.compile(model(every, {"x": x}, 64), target="tiny", precision="fp32")
    ((node,),) = (part.nodes for part in artifact.host)
    assert "must fit on chip" in node.reason
    expected = onnxruntime_run(model(every, {"x": x}, 64), {"x": x})["y"]
    np.testing.assert_allclose(stepwell.run(artifact, {"x": x})["y"], expected, atol=1e-6)
