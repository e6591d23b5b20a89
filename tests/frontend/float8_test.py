"""Casts to floats of 8 bits: every number of each format, the places between them, and what lies beyond."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import stepwell
from stepwell.frontend.float8 import CODES, INNER

LOW = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16}


def places(dtype: "np.dtype[np.generic]") -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
    """The numbers of a format, halfway between neighbours, and a little beside that."""
    numbers = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    half = (numbers[1:] + numbers[:-1]) / 2
    beyond = np.array(
        [0, -0.0, 449, 464, 465, 480, 6e4, 65504, 1e10, -1e10, np.inf, -np.inf, np.nan, 1e-30, -1e-40], np.float32
    )
    up, down = (np.nextafter(half, np.float32(end)) for end in (np.inf, -np.inf))
    return np.concatenate([numbers, half, up, down, beyond]).astype(np.float32)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize(("dtype", "code"), CODES.items(), ids=str)
def test_a_cast_rounds_to_the_nearest_even(dtype: "np.dtype[np.generic]", code: int, precision: str) -> None:
    x = places(dtype)
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 19]>\ngraph (float[{x.size}] x) => (float[{x.size}] y, z) {{'
        f" a = Cast<to={code}, saturate=1>(x) y = Cast<to=1>(a) b = Cast<to={code}, saturate=0>(x) c = Identity(b)"
        " z = CastLike(c, x) }"
    )
    found = stepwell.run(stepwell.compile(model, target="tiny", precision=precision, host=False), {"x": x})
    with np.errstate(all="ignore"):
        seen = x.astype(LOW[precision]).astype(np.float32)
        right = seen.astype(dtype).astype(np.float32)
    most = np.float32(ml_dtypes.finfo(dtype).max)
    held = np.where(~np.isfinite(right) & ~np.isnan(seen), np.copysign(most, seen), right)
    for name, wanted in (("y", held), ("z", right)):
        assert np.array_equal(found[name], wanted, equal_nan=True)
        known = ~np.isnan(wanted)
        assert np.array_equal(np.signbit(found[name][known]), np.signbit(wanted[known]))


@pytest.mark.parametrize("host", [False, True])
@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("dtype", INNER, ids=str)
def test_types_of_few_bits_come_in_and_go_out(
    dtype: "np.dtype[Any]", precision: str, host: bool, tmp_path: Path
) -> None:
    """Computed, moved, as they came in, and known."""
    code = helper.np_dtype_to_tensor_dtype(dtype)
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Add", ["wide", "one"], ["sum"]),
        helper.make_node("Cast", ["sum"], ["y"], to=code),
        helper.make_node("Transpose", ["x"], ["moved"]),
        helper.make_node("Identity", ["x"], ["same"]),
        helper.make_node("Identity", ["c"], ["known"]),
    ]
    constants = [numpy_helper.from_array(np.ones(1, np.float32), "one"), helper.make_tensor("c", code, [2], [1, 1])]
    results = [helper.make_tensor_value_info(name, code, None) for name in ("y", "moved", "same", "known")]
    graph = helper.make_graph(nodes, "one", [helper.make_tensor_value_info("x", code, [2, 3])], results, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
    x = np.array([[0, 1, 0], [1, -1 if dtype.name[0] != "u" else 2, 1]], np.float32).astype(dtype)
    stepwell.compile(model, target="tiny", precision=precision, host=host).save(tmp_path / "m.stw")
    found = stepwell.run(stepwell.load(tmp_path / "m.stw"), {"x": x})
    assert {name: array.dtype for name, array in found.items()} == dict.fromkeys(("y", "moved", "same", "known"), dtype)
    above = (x.astype(np.float32) + 1).astype(dtype)
    for name, wanted in {"y": above, "moved": x.T, "same": x, "known": np.ones(2, np.float32)}.items():
        np.testing.assert_array_equal(found[name].astype(np.float32), wanted.astype(np.float32), name)


def test_quantised_values_come_in_and_go_out() -> None:
    """As a model is that was cut between a QuantizeLinear and its DequantizeLinear."""
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]>\n'
        "graph (int4[2,3] x, float8e4m3fn[2,3] f) => (int4[2,3] y, float8e4m3fn[2,3] g)"
        "<float s = {0.5}, float t = {0.25}>"
        "{ a = DequantizeLinear(x, s) b = Relu(a) y = QuantizeLinear<output_dtype=22>(b, t)"
        " c = DequantizeLinear(f, t) g = QuantizeLinear<output_dtype=17>(c, s) }"
    )
    x = np.array([[-8, -1, 0], [1, 2, 7]], ml_dtypes.int4)
    f = np.array([[-448, 1.75, 0], [0.0625, 3, 448]], ml_dtypes.float8_e4m3fn)
    found = stepwell.run(stepwell.compile(model, target="tiny", host=False), {"x": x, "f": f})
    assert found["y"].dtype == ml_dtypes.int4
    assert found["y"].astype(int).tolist() == [[0, 0, 0], [2, 4, 7]]
    np.testing.assert_array_equal(found["g"], (f.astype(np.float32) / 2).astype(ml_dtypes.float8_e4m3fn))


def test_an_array_of_another_type_is_refused() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]>\ngraph (uint4[2] x) => (float[2] y) { y = Cast<to=1>(x) }'
    )
    artifact = stepwell.compile(model, target="tiny")
    with pytest.raises(ValueError, match=r"x: is uint4\[2\] \(found uint8\[2\]\)"):
        stepwell.run(artifact, {"x": np.zeros(2, np.uint8)})
