"""Nodes without what their operators must have: one clear error, whatever the operator; and what may be left out."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper
from onnx.defs import OpSchema, get_all_schemas_with_history

import stepwell
from stepwell.driver.agreement import onnxruntime_run
from stepwell.driver.assess import assess
from stepwell.frontend.extensions import EXTENSIONS
from stepwell.frontend.onnx import ImportProblems, import_onnx

Array = NDArray[Any]
VALUES: Mapping[int, Any] = {
    AttributeProto.FLOAT: 1.0,
    AttributeProto.INT: 1,
    AttributeProto.STRING: "x",
    AttributeProto.INTS: [1, 1],
    AttributeProto.FLOATS: [1.0],
    AttributeProto.STRINGS: ["x"],
    AttributeProto.TENSOR: helper.make_tensor("t", TensorProto.FLOAT, [1], [1.0]),
    AttributeProto.GRAPH: helper.make_graph([], "g", [], []),
}


def model_of(node: onnx.NodeProto, feeds: Mapping[str, Array], opset: int, known: Mapping[str, Array]) -> ModelProto:
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in feeds.items()
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    tensors = [numpy_helper.from_array(array, name) for name, array in known.items()]
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "g", infos, outputs, tensors)
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def problem_of(operator: str, domain: str, inputs: Sequence[str], opset: int, given: Mapping[str, Any]) -> str:
    """Of a node on matrices."""
    node = helper.make_node(operator, inputs, ["y"], "n", domain=domain, **given)
    model = model_of(node, {name: np.ones((2, 3), np.float32) for name in inputs if name}, opset, {})
    with pytest.raises(ImportProblems) as error:
        import_onnx(model, host=True)
    (problem,) = error.value.problems
    return problem


def forms() -> Iterator[OpSchema]:
    """Operators of ai.onnx in each form that they had."""
    for schema in get_all_schemas_with_history():
        if not schema.domain and not schema.deprecated and schema.inputs and schema.name != "Constant":
            yield schema


def test_an_input_that_must_be_there_is_found_missing_first() -> None:
    count = 0
    for schema in forms():
        names = [f"x{i}" for i in range(max(schema.min_input, len(schema.inputs)))]
        given = {
            name: VALUES[cast("Any", kind.type).value] for name, kind in schema.attributes.items() if kind.required
        }
        for i, form in enumerate(schema.inputs):
            if form.option == OpSchema.FormalParameterOption.Single:
                found = problem_of(schema.name, "", [*names[:i], "", *names[i + 1 :]], schema.since_version, given)
                assert found.startswith(f"n: {schema.name} has an input {i}, {form.name} (found none); the file breaks")
                count += 1
        if schema.min_input:
            found = problem_of(schema.name, "", names[: schema.min_input - 1], schema.since_version, given)
            assert f"n: {schema.name} has {schema.min_input}" in found
    assert count > 400


def test_so_it_is_for_the_operators_of_others() -> None:
    count = 0
    for name, form in EXTENSIONS["com.microsoft"].items():
        names = [f"x{i}" for i in range(form.inputs[0])]
        given = dict.fromkeys(form.required, 1)
        for i in range(len(names)):
            if i not in form.absent and i + 1 < len(names):
                found = problem_of(name, "com.microsoft", [*names[:i], "", *names[i + 1 :]], 17, given)
                assert found.startswith(f"n: {name} has an input {i} (found none); the file breaks")
                count += 1
        assert f"n: {name} has " in problem_of(name, "com.microsoft", [*names[:-1], ""], 17, given)
    assert count > 100


X = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)


def runs(node: onnx.NodeProto, feeds: Mapping[str, Array], opset: int = 21, **known: Any) -> list[str]:
    """What the CPU runs of a model that gives what onnxruntime does."""
    model = model_of(node, feeds, opset, {name: np.asarray(value) for name, value in known.items()})
    right = onnxruntime_run(model, feeds)
    artifact = stepwell.compile(model, target="tiny", precision="fp32")
    found = stepwell.run(artifact, feeds)
    for name, array in right.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6)
    assert assess(model, target="tiny", precision="fp32").exit_code == 0
    return [inner.operator for part in artifact.host for inner in part.nodes]


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("opset", [10, 11, 12, 13])
@pytest.mark.parametrize("end", [3, 2**31 - 1, -1, -9])
def test_a_slice_to_a_computed_end_runs_on_the_cpu_in_each_opset(opset: int, kind: type[Any], end: int) -> None:
    node = helper.make_node("Slice", ["x", "s", "e", "a", "t"], ["y"], "S")
    feeds = {"x": X, "e": np.array([end], kind)}
    assert runs(node, feeds, opset, s=np.array([1], kind), a=np.array([0], kind), t=np.array([1], kind)) == ["Slice"]


@pytest.mark.parametrize(
    ("starts", "ends", "axes"), [([2], [1], [1]), ([1, 9], [3, 12], [0, 1]), ([-1], [-2], [0]), ([-9], [9], [1])]
)
def test_a_slice_by_attributes_is_that_by_inputs(starts: list[int], ends: list[int], axes: list[int]) -> None:
    for opset in (1, 9):
        node = helper.make_node("Slice", ["x"], ["y"], "S", starts=starts, ends=ends, axes=axes)
        assert runs(node, {"x": X}, opset) == []
    node = helper.make_node("Slice", ["x", "s", "e", "a"], ["y"], "S")
    assert runs(node, {"x": X}, 10, s=starts, e=ends, a=axes) == []


@pytest.mark.parametrize("condition", ["", "yes"])
def test_a_loop_has_two_inputs_also_without_names_and_states(condition: str) -> None:
    infos = [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("c", 9, [])]
    nodes = [helper.make_node("Gather", ["x", "i"], ["r"]), helper.make_node("Identity", ["c"], ["d"])]
    results = [helper.make_tensor_value_info("d", TensorProto.BOOL, []), onnx.ValueInfoProto(name="r")]
    node = helper.make_node("Loop", ["n", condition], ["y"], "L", body=helper.make_graph(nodes, "b", infos, results))
    known: dict[str, Any] = {"n": np.array(3)} | ({"yes": np.array(True)} if condition else {})
    assert runs(node, {"x": X}, **known) == []


@pytest.mark.parametrize("more", [{}, {"d": np.array(1.5, np.float32)}])
def test_a_range_of_microsoft_with_computed_ends_runs_on_the_cpu(more: dict[str, Array]) -> None:
    node = helper.make_node("Range", ["a", "b", *more], ["y"], "R", domain="com.microsoft")
    assert runs(node, {"a": np.array(1, np.float32), "b": np.array(5, np.float32), **more}) == ["Range"]
    known = {"a": np.array(1, np.float32), "b": np.array(5, np.float32), **more}
    model = model_of(node, {}, 17, known)
    found = stepwell.run(stepwell.compile(model, target="tiny", host=False), {})["y"]
    assert np.array_equal(found, onnxruntime_run(model, {})["y"])


@pytest.mark.parametrize("operator", ["LpPool", "GlobalLpPool"])
def test_a_norm_of_order_0_runs_on_the_cpu(operator: str) -> None:
    window: dict[str, Any] = {"kernel_shape": [2, 2]} if operator == "LpPool" else {}
    node = helper.make_node(operator, ["x"], ["y"], "P", p=0, **window)
    assert runs(node, {"x": X.reshape(1, 1, 3, 4)}) == [operator]


@pytest.mark.parametrize("operator", ["AveragePool", "MaxPool", "LpPool"])
def test_a_window_that_reaches_out_by_less_than_a_stride_runs_on_the_cpu(operator: str) -> None:
    x = {"x": X.reshape(1, 1, 3, 4)}
    assert runs(helper.make_node(operator, ["x"], ["y"], "P", kernel_shape=[9, 9], strides=[7, 7]), x) == [operator]
    assert runs(helper.make_node(operator, ["x"], ["y"], "P", kernel_shape=[4, 2]), x) == []  # no window
    windows: list[dict[str, Any]] = [{"kernel_shape": [9, 9]}, {"kernel_shape": [9, 9], "strides": [7, 2]}]
    for sizes in windows:
        model = model_of(helper.make_node(operator, ["x"], ["y"], "P", **sizes), x, 21, {})
        with pytest.raises(ImportProblems, match=r"P: the window fits .* \(found 9 taps over 3\); the file breaks"):
            import_onnx(model, host=True)


@pytest.mark.parametrize("name", ["Affine", "ScaledTanh", "LeakyRelu", "HardSigmoid", "Elu"])
@pytest.mark.parametrize("given", [{}, {"activation_alpha": [0.5]}, {"activation_beta": [0.25]}])
def test_an_activation_of_a_cell_may_do_without_parameters(name: str, given: dict[str, Any]) -> None:
    node = helper.make_node("RNN", ["x", "w", "r"], ["y"], "R", hidden_size=1, activations=[name], **given)
    weights = {"w": np.ones((1, 1, 1), np.float32), "r": np.full((1, 1, 1), 0.5, np.float32)}
    host = runs(node, {"x": X.reshape(-1, 1, 1)}, 14, **weights)
    assert host == (["RNN"] if name in ("Affine", "ScaledTanh") else [])  # of which ONNX knows no defaults
