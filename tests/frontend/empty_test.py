"""Tensors without elements, through the operators, as inputs and as outputs of a model on the device."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnx_models import node_model

import stepwell
from stepwell.driver.agreement import onnxruntime_run
from stepwell.frontend.onnx import ImportProblems, import_onnx
from stepwell.runtime.artifact import Artifact
from stepwell.runtime.border import InputError

Array = NDArray[Any]
RANDOM = np.random.default_rng(5)


def values(*size: int) -> Array:
    return RANDOM.standard_normal(size).astype(np.float32)


def int64(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def device(model: onnx.ModelProto, inputs: Sequence[Array]) -> tuple[Artifact, dict[str, Array]]:
    """The artifact for `tiny`, and what it gives."""
    given = {f"x{i}": array for i, array in enumerate(inputs)}
    shapes = {name: array.shape for name, array in given.items()}
    artifact = stepwell.compile(model, target="tiny", shapes=shapes, precision="fp32")
    return artifact, artifact.model.run(given)


NONE = int64()
CASES: dict[str, tuple[str, Sequence[Array], Sequence[Array | None], dict[str, Any]]] = {
    **{
        f"slice from {start} to {end} by {step}": ("Slice", [values(5)], list(map(int64, (start, end, 0, step))), {})
        for start, end, step in ((0, 3, -1), (1, 4, -2), (-9, 0, -1), (4, -1, -1), (9, -1, -2), (3, 1, 1), (7, 9, 1))
    },
    **{
        f"elements from {start} to {end} by {step}": ("Slice", [values(5)], list(map(int64, (start, end, 0, step))), {})
        for start, end, step in ((-9, -9, -1), (-9, -6, -2), (9, -9, -2), (-9, 9, 2), (2**62, -(2**62), -3))
    },
    # some operands, or all, without elements; a result with elements
    "concat a constant": ("Concat", [values(1, 4, 3)], [values(1, 0, 3)], {"axis": 1}),
    "concat an input": ("Concat", [values(2, 0, 3), values(2, 4, 3)], [], {"axis": -2}),
    "split": ("Split", [values(2, 5)], [int64(0, 3, 0, 2)], {"axis": 1}),
    "sum": ("ReduceSum", [values(0, 3)], [int64(0)], {}),
    "sum of integers": ("ReduceSum", [np.zeros((2, 0), np.int32)], [int64(1)], {"keepdims": 0}),
    "product": ("ReduceProd", [values(2, 0, 3)], [int64(1)], {}),
    "least": ("ReduceMin", [values(2, 0)], [int64(1)], {}),
    "greatest": ("ReduceMax", [values(2, 0)], [int64(1)], {}),
    "norm": ("ReduceL2", [values(2, 0)], [int64(1)], {}),
    "product of matrices": ("MatMul", [values(2, 3, 0), values(0, 4)], [], {}),
    "product and a sum": ("Gemm", [values(2, 0), values(0, 4), values(4)], [], {"beta": 0.5}),
    "turned product and a sum": ("Gemm", [values(0, 2), values(4, 0), values(2, 1)], [], {"transA": 1, "transB": 1}),
    "product and no sum": ("Gemm", [values(2, 0), values(0, 4)], [], {}),
    "einsum": ("Einsum", [values(2, 0), values(0, 4)], [], {"equation": "ik,kj->ij"}),
    "scatter": ("ScatterND", [values(4, 3), np.zeros((0, 1), np.int64), values(0, 3)], [], {}),
    "scatter elements": ("ScatterElements", [values(4, 3), np.zeros((0, 3), np.int64), values(0, 3)], [], {}),
    "pad": ("Pad", [values(0, 3)], [int64(1, 0, 1, 0), np.array(2, np.float32)], {}),
    "no bounds": ("Slice", [values(4, 3)], [NONE, NONE, NONE], {}),
    "no axes": ("ReduceSum", [values(2, 3)], [NONE], {"noop_with_empty_axes": 1}),
    # a result without elements
    "slice": ("Slice", [values(4, 3)], [int64(2), int64(2), int64(0)], {}),
    "slice backwards": ("Slice", [values(10)], [int64(0), int64(5), int64(0), int64(-1)], {}),
    "slice nothing": ("Slice", [values(0, 3)], [int64(1), int64(9), int64(1)], {}),
    "expand": ("Expand", [values(1, 3)], [int64(0, 3)], {}),
    "tile": ("Tile", [values(2, 3)], [int64(1, 0)], {}),
    "cut off": ("Pad", [values(2, 3)], [int64(-1, 0, -1, 0)], {}),
    "no best ones": ("TopK", [values(2, 3)], [int64(0)], {}),
    "no rows": ("Gather", [values(4, 3), np.zeros((2, 0), np.int64)], [], {}),
    "no constant rows": ("Gather", [values(4, 3)], [NONE], {"axis": 1}),
    "reshape": ("Reshape", [values(0, 6, 2)], [int64(3, 0, 7)], {"allowzero": 1}),
    "reshape as it is": ("Reshape", [values(0, 6)], [int64(0, 3, 2)], {}),
    "transpose": ("Transpose", [values(2, 0, 3)], [], {"perm": [1, 0, 2]}),
    "squeeze": ("Squeeze", [values(0, 1, 3)], [int64(1)], {}),
    "unsqueeze": ("Unsqueeze", [values(0, 3)], [int64(0)], {}),
    "flatten": ("Flatten", [values(0, 4, 3)], [], {"axis": 2}),
    "rows that are summed": ("ReduceSum", [values(0, 3)], [int64(1)], {}),
    "places": ("ArgMax", [values(0, 3)], [], {"axis": 1}),
    "broadcast": ("Add", [values(0, 3), values(1, 3)], [], {}),
    "choose": ("Where", [np.zeros((1, 3), np.bool_), values(0, 3), values(3)], [], {}),
    "compare": ("Less", [values(0, 3), values(3)], [], {}),
    "function": ("Exp", [values(0, 3)], [], {}),
    "cast": ("Cast", [values(0, 3)], [], {"to": onnx.TensorProto.INT64}),
    "softmax": ("Softmax", [values(2, 0)], [], {"axis": 1}),
    "no batch": ("MatMul", [values(0, 2, 3), values(3, 4)], [], {}),
    "no pictures": ("Conv", [values(0, 2, 5, 5)], [values(3, 2, 3, 3)], {}),
    "no pools": ("MaxPool", [values(0, 2, 6, 6)], [], {"kernel_shape": [2, 2]}),
    "normalisation": ("LayerNormalization", [values(0, 3)], [values(3)], {}),
    "running sum": ("CumSum", [values(0, 3)], [int64(0).reshape(())], {}),
}


@pytest.mark.parametrize("case", CASES)
def test_an_operator_of_nothing_is_that_of_onnxruntime(case: str) -> None:
    operator, inputs, constants, attributes = CASES[case]
    outputs = {"split": 4, "no best ones": 2}.get(case, 1)
    model = node_model(operator, inputs, attributes, 18, constants, outputs)
    expected = onnxruntime_run(model, {f"x{i}": array for i, array in enumerate(inputs)})
    _, found = device(model, inputs)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert np.allclose(found[name], array, rtol=1e-6)


def test_a_cache_that_starts_empty() -> None:
    """One model: keys of no step are joined with those of the first, and cut off again."""
    past, new = values(1, 2, 0, 4), values(1, 2, 1, 4)
    joined = onnx.helper.make_node("Concat", ["x0", "x1"], ["present"], "join", axis=2)
    cut = onnx.helper.make_node("Slice", ["present", "start", "start", "axis"], ["none"], "cut")
    infos = [
        onnx.helper.make_tensor_value_info(f"x{i}", onnx.TensorProto.FLOAT, [1, 2, extent, 4])
        for i, extent in enumerate(("P", 1))
    ]
    outputs = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in ("present", "none")]
    known = [onnx.numpy_helper.from_array(int64(n), name) for name, n in (("start", 1), ("axis", 2))]
    graph = onnx.helper.make_graph([joined, cut], "cache", infos, outputs, known)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
    _, found = device(model, [past, new])
    assert np.array_equal(found["present"], new)
    assert found["none"].shape == (1, 2, 0, 4)
    with pytest.raises(InputError, match=r"x0: is float32\[1, 2, 0, 4\] \(found float32\[1, 2, 1, 4\]\); reshape"):
        stepwell.compile(model, target="tiny", shapes={"x0": [1, 2, 0, 4]}).model.run({"x0": new, "x1": new})


def test_an_output_of_nothing_costs_nothing(tmp_path: Any) -> None:
    artifact, _ = device(node_model("Slice", [values(4)], {}, 18, [int64(1), int64(1)]), [values(4)])
    assert artifact.plans[0].steps == ()
    artifact.save(tmp_path / "none.stw")
    found = stepwell.load(tmp_path / "none.stw").model.run({"x0": values(4)})
    assert found["y0"].shape == (0,)


def test_parts_that_do_not_fit_are_told_though_they_are_empty() -> None:
    model = node_model("Concat", [values(1, 4, 3)], {"axis": 1}, 17, [np.zeros((1, 0, 3), np.float32)])
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(values(1, 0, 4), "c0"))
    with pytest.raises(ImportProblems, match=r"operands agree in all axes but 1 \(found \(1, 4, 3\), \(1, 0, 4\)\)"):
        import_onnx(model)


def test_a_mixture_that_nobody_defines_is_told() -> None:
    model = node_model("ScatterND", [values(4, 3), np.zeros((0, 1), np.int64), values(1, 3)], {}, 18)
    with pytest.raises(ImportProblems, match=r"node: there are as many updates as indices \(found only one"):
        import_onnx(model, shapes={"x1": [0, 1]})


def test_an_empty_output_beside_an_input_of_its_type() -> None:
    """Neither has bytes of its own, so that they may begin at one place."""
    graph = helper.make_graph(
        [helper.make_node("Trilu", ["x", "k"], ["y"])],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.INT64, [3, 0, 5]),
            helper.make_tensor_value_info("k", TensorProto.INT64, []),
        ],
        [helper.make_tensor_value_info("y", TensorProto.INT64, [3, 0, 5])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])
    artifact = stepwell.compile(model, target="tiny", shapes={"x": [3, 0, 5], "k": []})
    found = stepwell.run(artifact, {"x": np.zeros((3, 0, 5), np.int64), "k": np.array(1)})
    assert found["y"].shape == (3, 0, 5)
