"""Operators of integers whose arithmetic ONNX defines, or onnxruntime, by floats: what they give is exact.

Each is run on the device alone, under every precision, and compared with onnxruntime.
"""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

import stepwell

pytestmark = pytest.mark.xdist_group("device")
Array = NDArray[Any]
RNG = np.random.default_rng(23)
PRECISIONS = ("fp32", "fp16", "bf16")


def model_of(operator: str, inputs: list[Array], constants: list[Any], opset: int, attributes: dict[str, Any]) -> Any:
    """Inputs x0, x1, …, then constants (None: absent); the result has the type of the first input."""
    infos = [
        helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for i, value in enumerate(inputs)
    ]
    known = {f"k{i}": np.asarray(value) for i, value in enumerate(constants) if value is not None}
    names = [*(info.name for info in infos), *(f"k{i}" if f"k{i}" in known else "" for i in range(len(constants)))]
    node = helper.make_node(operator, names, ["y"], **attributes)
    result = helper.make_tensor_value_info("y", infos[0].type.tensor_type.elem_type, None)
    weights = [numpy_helper.from_array(value, name) for name, value in known.items()]
    graph = helper.make_graph([node], "one", infos, [result], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def by_onnxruntime(model: onnx.ModelProto, inputs: list[Array]) -> Array:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {f"x{i}": value for i, value in enumerate(inputs)})[0])


def check(
    operator: str,
    inputs: list[Array],
    constants: list[Any],
    opset: int = 18,
    wanted: Array | None = None,
    **attributes: Any,
) -> None:
    model = model_of(operator, inputs, constants, opset, attributes)
    wanted = by_onnxruntime(model, inputs) if wanted is None else wanted
    for precision in PRECISIONS:
        artifact = stepwell.compile(model, target="tiny", precision=precision, host=False)
        found = stepwell.run(artifact, {f"x{i}": value for i, value in enumerate(inputs)})["y"]
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted, precision)


def whole(kind: Any, low: int, high: int, *size: int) -> Array:
    return RNG.integers(low, high, size).astype(kind)


# reductions -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("operator", ["ReduceL2", "ReduceLogSum", "ReduceLogSumExp"])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_roots_and_logarithms(kind: Any, operator: str) -> None:
    check(operator, [whole(kind, -9 if operator != "ReduceLogSum" else 1, 10, 40, 7)], [np.array([1])], keepdims=0)
    check(operator, [whole(kind, 1, 6000, 3, 20, 2)], [np.array([0, 2])])


def test_a_norm_that_is_a_whole_number_or_just_below_one() -> None:
    """Whose f32 would be that number."""
    n = np.arange(1, 46341, 997, dtype=np.int64)
    roots = [(a, b) for m in n for a in [int((m * m / 2) ** 0.5)] for b in [int((m * m - a * a) ** 0.5)]]
    check("ReduceL2", [np.array(roots, np.int32)], [np.array([1])])
    pythagorean = np.array([[20, 21], [20000, 21000], [19999, 21000], [20000, 20999], [0, 0], [-3, 4]], np.int32)
    check("ReduceL2", [pythagorean], [np.array([1])])


def test_logarithms_of_sums_near_powers_of_e() -> None:
    near = np.array([np.floor(np.exp(k)) + d for k in range(1, 22) for d in (-1, 0, 1, 2)]).astype(np.int32)
    check("ReduceLogSum", [np.stack([near, np.zeros_like(near)], 1)], [np.array([1])], keepdims=0)
    check("ReduceLogSum", [np.array([[0, 0], [-3, 1], [1, 0]], np.int32)], [np.array([1])], keepdims=0)


def test_exponentials_are_integers_as_well() -> None:
    """So that the logarithm is one of how many elements are the largest."""
    tops, gaps = np.meshgrid([-1, -5, -40, -300000, 0, 7, 2**31 - 9], [0, 1, 20, 1000])
    x = np.stack([tops.reshape(-1), (tops - gaps).reshape(-1), tops.reshape(-1)], 1).astype(np.int32)
    check("ReduceLogSumExp", [x], [np.array([1])], keepdims=0)
    check("ReduceLogSumExp", [x], [np.array([0])])
    check("ReduceLogSumExp", [np.array([[-(2**31), 2**31 - 2]], np.int32)], [np.array([1])], keepdims=0)


# elementwise ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64])
@pytest.mark.parametrize(("lambd", "bias"), [(1.5, 0.0), (2.0, 0.99), (3.0, -1.5), (0.5, 2.25)])
def test_shrink(lambd: float, bias: float, kind: Any) -> None:
    held = np.iinfo(kind)
    x = np.unique(np.clip(np.concatenate([np.arange(-130, 260), [30000, -30000, 65535]]), held.min, held.max))
    check("Shrink", [x.astype(kind)], [], lambd=lambd, bias=bias)


# resize ---------------------------------------------------------------------------------------------------------------
RULES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int32])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((2, 3, 5, 7), (2, 3, 11, 10)),
        ((1, 3, 9, 7), (1, 3, 4, 7)),
        ((2, 5, 7, 3), (2, 11, 10, 3)),
        ((2, 5, 7, 3), (2, 5, 10, 3)),
        ((9, 7), (20, 5)),
        ((3, 5, 7), (3, 11, 10)),
        ((1, 2, 3, 4, 5), (1, 2, 5, 9, 8)),
    ],
)
def test_linear_resize(before: tuple[int, ...], after: tuple[int, ...], kind: Any) -> None:
    """In f32, truncated; where the channels of bytes come last, by integers."""
    x = whole(kind, 0 if kind is np.uint8 else -100, 256 if kind is np.uint8 else 100, *before)
    x[..., :2] = x.reshape(-1)[0]  # sums that are whole numbers
    for rule in RULES:
        constants = [None, None, np.array(after)]
        check("Resize", [x], constants, 19, mode="linear", coordinate_transformation_mode=rule)


def test_linear_resize_of_other_axes() -> None:
    """Which onnxruntime does not do: in f32, one axis after the other."""
    x = whole(np.uint8, 0, 256, 4, 1, 1, 1, 1, 6)
    after, exact = np.array([8, 1, 1, 1, 1, 12]), x[:, 0, 0, 0, 0].astype(np.float64)
    for axis in (0, 1):
        places = np.clip((np.arange(2 * exact.shape[axis]) + 0.5) / 2 - 0.5, 0, exact.shape[axis] - 1)
        low = np.floor(places).astype(int)
        high, part = np.minimum(low + 1, exact.shape[axis] - 1), places - low
        part = part.reshape([-1 if i == axis else 1 for i in range(2)])
        exact = np.take(exact, low, axis) * (1 - part) + np.take(exact, high, axis) * part
    wanted = np.trunc(exact).astype(np.uint8).reshape(8, 1, 1, 1, 1, 12)
    check("Resize", [x], [None, None, after], 19, wanted, mode="linear")


# scatters -------------------------------------------------------------------------------------------------------------
WRAPPED = [(kind, name) for kind in (np.uint8, np.int8, np.int16, np.uint16) for name in ("add", "mul", "max", "min")]


@pytest.mark.parametrize(("kind", "reduction"), [*WRAPPED, (np.bool_, "add"), (np.bool_, "mul")])
@pytest.mark.parametrize("operator", ["ScatterElements", "ScatterND"])
def test_scatters_wrap(operator: str, reduction: str, kind: Any) -> None:
    x, updates = whole(kind, 0, 100, 4, 3), whole(kind, 50, 120, 3, 3)
    if kind is np.bool_:
        x, updates = x ^ (RNG.random(x.shape) < 0.5), updates ^ (RNG.random(updates.shape) < 0.5)
    indices = np.array([[1], [-3], [3]]) if operator == "ScatterND" else np.array([[1, 0, 2], [1, 3, 2], [-3, 0, 0]])
    check(operator, [x], [indices, updates], reduction=reduction)
