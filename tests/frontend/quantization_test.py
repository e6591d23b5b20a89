"""QuantizeLinear and DequantizeLinear in every policy: integers of 16 and 32 bits are as exact in fp16 as in fp32."""

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

import stepwell
from stepwell.driver.agreement import onnxruntime_run
from stepwell.frontend.float8 import CODES as FLOATS8
from stepwell.runtime.problem import UserError

pytestmark = pytest.mark.xdist_group("device")
Array = NDArray[Any]
POLICIES = ("fp16", "bf16", "fp32")
POINTS = {np.int16: (0, -7, 30000), np.uint16: (0, 7, 32768)}
BOTH = [(kind, zero) for kind, zeros in POINTS.items() for zero in zeros]


def model(nodes: Sequence[onnx.NodeProto], given: Mapping[str, Any], known: Mapping[str, Any]) -> onnx.ModelProto:
    """Its outputs are y and, if a node makes it, q."""
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in given.items()
    ]
    made = {name for node in nodes for name in node.output}
    outputs = [helper.make_empty_tensor_value_info(name) for name in "qy" if name in made]
    constants = [numpy_helper.from_array(np.asarray(array), name) for name, array in known.items()]
    graph = helper.make_graph(nodes, "g", infos, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def agree(
    nodes: Sequence[onnx.NodeProto], given: Mapping[str, Any], known: Mapping[str, Any], policy: str, error: float = 0
) -> None:
    """All results are onnxruntime's, on the device alone; `error` is relative to the largest of y."""
    made = model(nodes, given, known)
    expected = onnxruntime_run(made, given)
    artifact = stepwell.compile(made, target="tiny", precision=policy)
    assert not artifact.host
    for name, found in stepwell.run(artifact, given).items():
        wanted = expected[name]
        assert found.dtype == wanted.dtype
        most = float(np.abs(wanted.astype(np.float64)).max()) if name == "y" else 0
        np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=0, atol=error * most)


def both(**attributes: Any) -> list[onnx.NodeProto]:
    """x to q and back."""
    return [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], **attributes),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], **attributes),
    ]


def spread(*size: int) -> Array:
    """Floats beyond both ends of 16 bits at the scales of these tests."""
    x = np.random.default_rng(3).uniform(-80, 80, size).astype(np.float32)
    x.reshape(-1)[:6] = [-100, 100, 32.76, 32.767, 65.535, 0]
    return x


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("kind", "zero"), BOTH)
def test_integers_of_16_bits_reach_both_ends_of_their_range(kind: Any, zero: int, policy: str) -> None:
    agree(both(), {"x": spread(3, 37)}, {"s": np.float32(0.001), "z": np.array(zero, kind)}, policy)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", POINTS)
@pytest.mark.parametrize("computed", [False, True], ids=["known", "computed"])
def test_scales_of_an_axis_and_of_blocks_are_exact(computed: bool, kind: Any, policy: str) -> None:
    random = np.random.default_rng(5)
    for size, attributes in (((8,), {"axis": 1}), ((3, 2, 5), {"axis": 1, "block_size": 4})):
        scale = random.uniform(0.0007, 0.0013, size).astype(np.float32)
        zero = random.integers(0, 9, size).astype(kind)
        given, known = {"x": spread(3, 8, 5)}, {"z": zero}
        (given if computed else known)["s"] = scale
        agree(both(**attributes), given, known, policy, 1e-7)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_type_that_is_named_and_a_scale_of_f16(policy: str) -> None:
    kind = onnx.TensorProto.INT16
    named = [helper.make_node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=kind)]
    agree(named, {"x": spread(3, 37)}, {"s": np.float32(0.001)}, policy)
    halves = spread(3, 37).astype(np.float16)
    agree(both(), {"x": halves}, {"s": np.float16(0.002), "z": np.array(9, np.uint16)}, policy, 1e-3)


@pytest.mark.parametrize("policy", POLICIES)
def test_what_16_bits_stand_for_comes_back_from_moves_unchanged(policy: str) -> None:
    """The integers are those that were put in; a pool is no move in bf16, which rounds what it gives."""
    pooled = helper.make_node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2])
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["a"]),
        helper.make_node("Transpose", ["a"], ["b"], perm=[0, 1, 3, 2]),
        helper.make_node("Identity", ["b"], ["c"]) if policy == "bf16" else pooled,
        helper.make_node("QuantizeLinear", ["c", "s", "z"], ["q"]),
    ]
    x = np.random.default_rng(7).integers(0, 65536, (1, 2, 9, 7)).astype(np.uint16)
    agree(nodes, {"x": x}, {"s": np.float32(0.001), "z": np.array(32768, np.uint16)}, policy)


@pytest.mark.parametrize("kind", [np.uint16, np.int64])
def test_a_transpose_that_moves_to_an_input_moves_its_narrow_form(kind: Any) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Transpose", ["a"], ["b"], perm=[0, 1, 3, 2]),
        helper.make_node("MaxPool", ["b"], ["y"], kernel_shape=[2, 2]),
    ]
    agree(nodes, {"x": np.random.default_rng(7).integers(0, 65536, (1, 2, 9, 7)).astype(kind)}, {}, "fp32")


@pytest.mark.parametrize("policy", POLICIES)
def test_floats_of_32_bits_leave_the_range_of_f16(policy: str) -> None:
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s"], ["a"]),
        helper.make_node("Relu", ["a"], ["y"]),
    ]
    x = np.array([-5, 0, 257, 70001, 2**24, 2**31 - 1], np.int32)
    agree(nodes, {"x": x}, {"s": np.float32(0.5)}, policy, 4e-3)


@pytest.mark.parametrize("policy", POLICIES)
def test_bytes_of_a_large_scale_leave_the_range_of_f16(policy: str) -> None:
    nodes = [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["a"]), helper.make_node("Abs", ["a"], ["y"])]
    x = np.arange(256, dtype=np.uint8)
    agree(nodes, {"x": x}, {"s": np.float32(1000), "z": np.uint8(3)}, policy, 4e-3)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_float_of_an_integer_is_exact(policy: str) -> None:
    """So that what is compared with it, or made an integer again, is right; bf16 has 8 bits, f16 has 11."""
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Equal", ["a", "s"], ["q"]),
        helper.make_node("Cast", ["a"], ["y"], to=onnx.TensorProto.INT32),
    ]
    x = np.array([256, 257, 258, 4097, 70001], np.int32)
    agree(nodes, {"x": x}, {"s": np.float32(257)}, policy)


FEW = {"UINT4": ml_dtypes.uint4, "INT4": ml_dtypes.int4}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", FEW.values(), ids=FEW)
def test_integers_of_4_bits_pass_between_nodes(kind: Any, policy: str) -> None:
    """Rounded, clamped, moved, and made floats again; with a scale for all, for an axis and for blocks."""
    x = (np.rint(np.random.default_rng(5).uniform(-80, 80, (3, 8, 5))) / 4).astype(np.float32)  # which no policy rounds
    moves = [
        helper.make_node("Transpose", ["q4"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Identity", ["t"], ["i"]),
        helper.make_node("Transpose", ["i"], ["b"], perm=[0, 2, 1]),
    ]
    forms: dict[tuple[int, ...], dict[str, Any]] = {(): {}, (8,): {"axis": 1}, (3, 2, 5): {"axis": 1, "block_size": 4}}
    for size, attributes in forms.items():
        quantise = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q4"], **attributes)
        nodes = [quantise, *moves, helper.make_node("DequantizeLinear", ["b", "s", "z"], ["y"], **attributes)]
        scale = np.full(size, 1.5, np.float32) * np.random.default_rng(6).uniform(0.5, 1.5, size).astype(np.float32)
        known = {"s": scale, "z": np.full(size, 2).astype(kind)}
        agree(nodes, {"x": x}, known, policy, 0 if policy == "fp32" else 4e-3)


@pytest.mark.parametrize("kind", FEW)
@pytest.mark.parametrize("source", [np.float32, np.int32, np.int8, np.uint8, np.int64])
def test_a_cast_to_4_bits_keeps_the_low_ones(source: Any, kind: str) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["q4"], to=getattr(onnx.TensorProto, kind)),
        helper.make_node("Cast", ["q4"], ["byte"], to=onnx.TensorProto.INT8),
        helper.make_node("Add", ["byte", "s"], ["q"]),
        helper.make_node("Cast", ["q4"], ["y"], to=onnx.TensorProto.FLOAT),
    ]
    x = np.array([-9, -8, -1, 0, 7, 8, 15, 16, 17, 100]).astype(source)
    agree(nodes, {"x": x}, {"s": np.int8(100)}, "fp32")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("code", FLOATS8.values(), ids=[dtype.name for dtype in FLOATS8])
def test_floats_of_8_bits_pass_between_nodes(code: int, policy: str) -> None:
    x = np.rint(np.random.default_rng(5).uniform(-128, 128, (3, 8, 5))).astype(np.float32)
    zero = helper.make_tensor("z", code, [], [0])
    made = model(both(), {"x": x}, {"s": np.float32(0.125)})
    made.graph.initializer.append(zero)
    del made.graph.output[0]
    (expected,) = onnxruntime_run(made, {"x": x}).values()
    artifact = stepwell.compile(made, target="tiny", precision=policy)
    assert not artifact.host
    np.testing.assert_array_equal(stepwell.run(artifact, {"x": x})["y"], expected)


def test_the_zero_point_of_floats_is_zero() -> None:
    made = model([*both()[:1], helper.make_node("Cast", ["q"], ["y"], to=1)], {"x": spread(9)}, {"s": np.float32(1)})
    made.graph.initializer.append(helper.make_tensor("z", onnx.TensorProto.FLOAT8E5M2, [], [1]))
    del made.graph.output[0]
    with pytest.raises(UserError, match="the zero point of floats is a known 0"):
        stepwell.compile(made, target="tiny", host=False)


def test_the_type_of_an_output_that_nothing_declares_is_that_of_its_value() -> None:
    """ONNX's inference knows no operators of com.microsoft."""
    domain, kinds = "com.microsoft", (np.int16, np.uint16, np.uint8)
    for kind in kinds:
        node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], domain=domain)
        made = model([node], {"x": spread(9)}, {"s": np.float32(0.01), "z": np.array(3, kind)})
        made.opset_import.append(helper.make_opsetid(domain, 1))
        found = stepwell.run(stepwell.compile(made, target="tiny", precision="fp32"), {"x": spread(9)})["q"]
        assert found.dtype == kind
        np.testing.assert_array_equal(found, onnxruntime_run(made, {"x": spread(9)})["q"])


@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.int32])
def test_a_constant_output_has_the_type_of_the_model(kind: Any) -> None:
    x = np.zeros((2, 3), kind)
    made = model([helper.make_node("EyeLike", ["x"], ["y"])], {"x": x}, {})
    found = stepwell.run(stepwell.compile(made, target="tiny"), {"x": x})["y"]
    assert found.dtype == kind
    np.testing.assert_array_equal(found, np.eye(2, 3))


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 1, 0, 1], [0, 0, 1, 2]], ids=str)
def test_the_last_window_of_a_pool_that_counts_padding(pads: list[int], count: int) -> None:
    """onnxruntime divides by the whole kernel, also where `ceil_mode` takes it beyond the padding; within one step."""
    node = helper.make_node(
        "QLinearAveragePool", ["x", "s", "z", "s", "z"], ["q"], domain="com.microsoft", kernel_shape=[2, 3],
        strides=[3, 3], ceil_mode=1, count_include_pad=count, pads=pads,
    )  # fmt: skip
    x = np.random.default_rng(5).integers(0, 256, (2, 3, 7, 8)).astype(np.uint8)
    made = model([node], {"x": x}, {"s": np.float32(0.02), "z": np.uint8(131)})
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    found = stepwell.run(stepwell.compile(made, target="tiny", precision="fp32"), {"x": x})["q"]
    np.testing.assert_allclose(found.astype(int), onnxruntime_run(made, {"x": x})["q"].astype(int), rtol=0, atol=1)


@pytest.mark.parametrize("kind", [ml_dtypes.int4, ml_dtypes.uint4])
def test_the_device_gathers_from_tables_of_4_bits_with_computed_scales(kind: Any) -> None:
    node = helper.make_node("GatherBlockQuantized", ["w", "i", "s"], ["y"], domain="com.microsoft", block_size=16)
    given = {"i": np.array([4, 0]), "s": np.random.default_rng(1).random((6, 2)).astype(np.float32)}
    made = model([node], given, {"w": (np.arange(192) % 7).reshape(6, 32).astype(kind)})
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    artifact = stepwell.compile(made, target="tiny", precision="fp32", host=False)
    np.testing.assert_array_equal(stepwell.run(artifact, given)["y"], onnxruntime_run(made, given)["y"])
