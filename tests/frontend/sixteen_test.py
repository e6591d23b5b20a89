"""Integers of 16 bits: exact modulo 2¹⁶ on the device, whatever follows the operator that overflowed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import stepwell

pytestmark = pytest.mark.xdist_group("device")
ENDS = {np.int16: [-32768, -32767, -300, -1, 0, 1, 2, 300, 32767], np.uint16: [0, 1, 2, 255, 256, 300, 32768, 65535, 7]}
CODES = {np.int16: TensorProto.INT16, np.uint16: TensorProto.UINT16}


def run(kind: Any, nodes: list[Any], results: Mapping[str, int], *inputs: Any) -> dict[str, Any]:
    """The results of nodes over x, y and the constant c = 3."""
    infos = [helper.make_tensor_value_info(name, CODES[kind], [9]) for name in "xy"]
    outputs = [helper.make_tensor_value_info(name, code, [9]) for name, code in results.items()]
    graph = helper.make_graph(nodes, "g", infos, outputs, [numpy_helper.from_array(np.array(3, kind), "c")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    return dict(stepwell.run(stepwell.compile(model, target="tiny"), dict(zip("xy", inputs, strict=True))))


@pytest.mark.parametrize("kind", [np.int16, np.uint16])
def test_what_overflows_wraps_and_is_compared_as_it_is(kind: Any) -> None:
    x = np.array(ENDS[kind], kind)
    y = x[::-1].copy()
    nodes = [
        helper.make_node("Add", ["x", "y"], ["sum"]),
        helper.make_node("Mul", ["sum", "c"], ["product"]),
        helper.make_node("Less", ["product", "x"], ["less"]),
        helper.make_node("Cast", ["product"], ["float"], to=TensorProto.FLOAT),
        helper.make_node("Max", ["product", "y"], ["most"]),
        helper.make_node("BitwiseNot", ["x"], ["turned"]),
    ]
    code = CODES[kind]
    results = {"product": code, "less": TensorProto.BOOL, "float": TensorProto.FLOAT, "most": code, "turned": code}
    found = run(kind, nodes, results, x, y)
    with np.errstate(over="ignore"):
        product = (x + y) * kind(3)
    assert found["product"].dtype == kind
    np.testing.assert_array_equal(found["product"], product)
    np.testing.assert_array_equal(found["less"], product < x)
    np.testing.assert_array_equal(found["float"], product.astype(np.float32))
    np.testing.assert_array_equal(found["most"], np.maximum(product, y))
    np.testing.assert_array_equal(found["turned"], ~x)


@pytest.mark.parametrize("kind", [np.int16, np.uint16])
def test_a_cast_to_16_bits_keeps_the_low_ones(kind: Any) -> None:
    x = np.array(ENDS[kind], kind)
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.INT32),
        helper.make_node("Mul", ["wide", "wide"], ["square"]),
        helper.make_node("Cast", ["square"], ["z"], to=CODES[kind]),
        helper.make_node("Add", ["z", "y"], ["sum"]),
    ]
    found = run(kind, nodes, {"z": CODES[kind], "sum": CODES[kind]}, x, x)
    square = (x.astype(np.int64) ** 2).astype(kind)
    np.testing.assert_array_equal(found["z"], square)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found["sum"], square + x)


@pytest.mark.parametrize("kind", [np.int16, np.uint16])
def test_a_cast_to_more_bits_is_no_integer_of_16_bits(kind: Any) -> None:
    x = np.array(ENDS[kind], kind)
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.INT32),
        helper.make_node("Add", ["wide", "wide"], ["twice"]),
        helper.make_node("Add", ["x", "x"], ["sum"]),
    ]
    found = run(kind, nodes, {"twice": TensorProto.INT32, "sum": CODES[kind]}, x, x)
    np.testing.assert_array_equal(found["twice"], 2 * x.astype(np.int32))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found["sum"], x + x)
