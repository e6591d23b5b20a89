"""Operators on constants alone, those that make too much of them, and what random graphs found besides."""

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx_models import node_model, text_model

import stepwell
from stepwell.driver.agreement import onnxruntime_run
from stepwell.frontend import fold
from stepwell.frontend.onnx import ImportProblems, import_onnx

Array = NDArray[Any]
FIVE = np.arange(60, dtype=np.float32).reshape(1, 3, 4, 5)
CONSTANT: dict[str, tuple[list[Array], dict[str, Any]]] = {
    "GlobalMaxPool": ([FIVE[0]], {}),
    "LRN": ([FIVE], {"size": 3, "alpha": 0.1}),
    "LpNormalization": ([FIVE], {"p": 1, "axis": 1}),
    "BitShift": ([np.arange(80, dtype=np.uint32), np.ones(80, np.uint32)], {"direction": "LEFT"}),
    "ReduceSumSquare": ([FIVE.astype(np.int32), np.array([1])], {}),
    "GRU": (
        [FIVE[:, :, 0].reshape(5, 1, 3) / 60, np.full((1, 6, 3), 0.1, np.float32), np.full((1, 6, 2), 0.2, np.float32)],
        {"hidden_size": 2, "direction": "reverse"},
    ),
}


def agrees(model: onnx.ModelProto, inputs: dict[str, Array]) -> None:
    found = stepwell.run(stepwell.compile(model, target="tiny", precision="fp32"), inputs)
    wanted = onnxruntime_run(model, inputs)
    assert found.keys() == wanted.keys() != set()
    for name, array in wanted.items():
        assert (found[name].shape, found[name].dtype) == (array.shape, array.dtype)
        np.testing.assert_allclose(found[name], array, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("operator", CONSTANT)
def test_a_node_of_constants_gives_what_onnxruntime_does(operator: str) -> None:
    constants, attributes = CONSTANT[operator]
    agrees(node_model(operator, [], attributes, 18, constants), {})


def test_infinite_slopes_of_prelu_meet_negative_numbers_only() -> None:
    x, slope = np.array([-2, -1, 1, 2], np.float32), np.array([0.5, np.inf, np.inf, -np.inf], np.float32)
    agrees(node_model("PRelu", [x, slope]), {"x0": x, "x1": slope})


def test_the_cpu_gets_a_value_in_the_shape_that_a_reshape_gave_it() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Reshape", ["a", "s"], ["b"]),
        helper.make_node("TopK", ["b", "k"], ["y", "i"]),
    ]
    known = [numpy_helper.from_array(np.array([size]), name) for name, size in (("s", -1), ("k", 70))]
    ends = [helper.make_tensor_value_info("y", 1, [70]), helper.make_tensor_value_info("i", 7, [70])]
    graph = helper.make_graph(nodes, "top", [helper.make_tensor_value_info("x", 1, [8, 10])], ends, known)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    artifact = stepwell.compile(model, target="tiny", precision="fp32")
    assert [node.operator for part in artifact.host for node in part.nodes] == ["TopK"]
    agrees(model, {"x": np.arange(80, dtype=np.float32).reshape(8, 10)})


@pytest.mark.parametrize("expanded", [False, True])
def test_what_repeats_a_value_is_left_to_the_device_if_it_is_large(
    expanded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No constant of its size is made."""
    monkeypatch.setattr(fold, "MOST_BYTES", 1 << 10)
    value = "ConstantOfShape<value = float[1] {0.25}>(d)" if not expanded else "Expand(v, d)"
    model = text_model(
        f"w = {value} y = Gemm<transB = 1>(x, w, b)", "float[3,40] x", "float[3,50] y",
        d=np.array([50, 40]), v=np.full((1, 1), 0.25, np.float32), b=np.arange(50, dtype=np.float32),
    )  # fmt: skip
    _, weights = import_onnx(model)
    assert weights.nbytes < 1 << 10
    agrees(model, {"x": np.random.default_rng(3).standard_normal((3, 40)).astype(np.float32)})


def test_what_repeats_a_value_has_a_bound() -> None:
    model = text_model("w = ConstantOfShape(d) y = Add(x, w)", "float[1] x", "float[n] y", d=np.array([1 << 31]))
    with pytest.raises(ImportProblems, match=r"a constant has at most 4,294,967,296 bytes \(found 8,589,934,592"):
        import_onnx(model)


@pytest.mark.parametrize(
    ("operator", "attributes", "constants"),
    [
        ("Gather", {}, [np.array([2, 7]), np.array(1)]),
        ("Cast", {"to": onnx.TensorProto.INT32}, [np.array(7)]),
        ("Squeeze", {}, [np.array([7])]),
        ("Slice", {}, [np.array([7]), np.array([0]), np.array([1])]),
        ("Reshape", {}, [np.array([7]), np.zeros(0, np.int64)]),
        ("Div", {}, [np.array(14), np.array(2)]),
        ("Div", {}, [np.float32(14), np.float32(2)]),
        ("Sub", {}, [np.array(9), np.array(2)]),
    ],
)
def test_a_folded_value_of_rank_0_is_an_array(operator: str, attributes: dict[str, Any], constants: list[Any]) -> None:
    node = helper.make_node(operator, [f"x{i}" for i in range(len(constants))], ["y"], "n")
    (found,) = fold.fold(node, attributes, [np.asarray(value) for value in constants], 18) or []
    assert isinstance(found, np.ndarray)


def test_queries_in_groups_whose_keys_are_counted_by_the_shape_of_the_mask() -> None:
    """As onnxruntime-genai writes it: the number of keys is an entry of a shape, a constant of rank 0."""
    model = text_model(
        """kept = ReduceSum <keepdims = 1> (mask, axis) last = Sub(kept, axis) ends = Cast <to = 6> (last)
        extents = Shape(mask) count = Gather <axis = 0> (extents, one) total = Cast <to = 6> (count)
        y, key, value = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2>
            (q, k, v, past_key, past_value, ends, total)""",
        "float[1,2,32] q, float[1,2,16] k, float[1,2,16] v, float[1,2,3,8] past_key, float[1,2,3,8] past_value, "
        "int64[1,n] mask",
        "float[1,2,32] y, float[1,2,5,8] key, float[1,2,5,8] value",
        domains=', "com.microsoft" : 1',
        axis=np.array([1]),
        one=np.array(1),
    )
    rng = np.random.default_rng(5)
    known = {info.name: [d.dim_value for d in info.type.tensor_type.shape.dim] for info in model.graph.input[:-1]}
    inputs: dict[str, Array] = {name: rng.standard_normal(size).astype(np.float32) for name, size in known.items()}
    inputs["mask"] = np.ones((1, 5), np.int64)
    artifact = stepwell.compile(model, target="tiny", precision="fp32", host=False, shapes={"mask": [1, 5]})
    found, wanted = stepwell.run(artifact, inputs), onnxruntime_run(model, inputs)
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-5)
