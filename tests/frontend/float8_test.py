"""Casts to floats of 8 bits: every number of each format, the places between them, and what lies beyond."""

import ml_dtypes
import numpy as np
import onnx
import pytest

import stepwell
from stepwell.frontend.float8 import CODES
from stepwell.frontend.onnx import import_onnx
from stepwell.frontend.problems import ImportProblems

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


def test_the_border_has_no_floats_of_8_bits() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 19]>\ngraph (float[3] x) => (float8e4m3fn[3] y) { y = Cast<to=17>(x) }'
    )
    with pytest.raises(ImportProblems, match=r"y: outputs hold .* \(found float8_e4m3fn\); convert the model"):
        import_onnx(model, host=True)
