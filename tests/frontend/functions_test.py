"""Functions of a model: what a call leaves out, overloads, and opsets of their own; onnxruntime is the oracle."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, helper, parser

import stepwell
from stepwell.frontend.cut import Wiring
from stepwell.frontend.onnx import ModelFileError, import_onnx

X = (np.arange(24, dtype=np.float32).reshape(2, 3, 4) % 7 - 3) / 2
OPSETS = (("", 21), ("local", 1))


def model_of(calls: Sequence[NodeProto], functions: Sequence[FunctionProto]) -> ModelProto:
    infos = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, X.shape) for name in ("x", "y")]
    graph = helper.make_graph(calls, "g", infos[:1], infos[1:])
    opsets = [helper.make_opsetid(*entry) for entry in OPSETS]
    return helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=10)


def function(name: str, nodes: Sequence[NodeProto], *free: str, **defaults: Any) -> FunctionProto:
    """From `a` to `c`. `free` are attributes without a default."""
    protos = [helper.make_attribute(key, value) for key, value in defaults.items()]
    opsets = [helper.make_opsetid(*entry) for entry in OPSETS]
    return helper.make_function("local", name, ["a"], ["c"], nodes, opsets, free, protos)


def call(name: str, source: str = "x", result: str = "y", domain: str = "local", **given: Any) -> NodeProto:
    """A node; an attribute that is given as text refers to one of the function around it, of type int."""
    own = {key: value for key, value in given.items() if not isinstance(value, str)}
    node = helper.make_node(name, [source], [result], domain=domain, **own)
    for key, value in given.items():
        if isinstance(value, str):
            kind = AttributeProto.FLOAT if key == "alpha" else AttributeProto.INT
            node.attribute.append(AttributeProto(name=key, type=kind, ref_attr_name=value))
    return node


def softmax(source: str = "a", result: str = "c", **given: Any) -> NodeProto:
    return call("Softmax", source, result, "", **given)


INNER = function("F", [softmax(axis="p")], p=0)
BETWEEN = function("G", [call("F", "a", "c", p="q")], "q")
CHAIN = [call("G", "x", "m"), call("G", "m", "n", q=1), call("G", "n", "y", q=-1)]
TWICE = function("H", [call("G", "a", "b", q="r"), call("F", "b", "c")], r=1)

CASES: dict[str, ModelProto] = {
    "the default": model_of([call("F")], [INNER]),
    "the call": model_of([call("F", p=1)], [INNER]),
    "the default of a float": model_of(
        [call("F")], [function("F", [call("LeakyRelu", "a", "c", "", alpha="slope")], slope=0.5)]
    ),
    "no default": model_of([call("F")], [function("F", [softmax(axis="p")], "p")]),
    "a call in a function, that gives an attribute on or not": model_of(CHAIN, [INNER, BETWEEN]),
    "two calls in a function": model_of([call("H", "x", "m"), call("H", "m", "y", r=0)], [TWICE, BETWEEN, INNER]),
}


def outputs_by_ort(model: ModelProto) -> Any:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": X})[0]


def output(model: Any) -> Any:
    return stepwell.run(stepwell.compile(model, target="tiny", precision="fp32"), {"x": X})["y"]


@pytest.mark.parametrize("name", CASES)
def test_an_attribute_is_that_of_the_call_else_the_default_of_the_function_else_that_of_the_operator(name: str) -> None:
    expected = outputs_by_ort(CASES[name])
    before = CASES[name].SerializeToString()
    np.testing.assert_allclose(output(CASES[name]), expected, rtol=1e-5, atol=1e-6)
    assert CASES[name].SerializeToString() == before
    wiring = Wiring.read(CASES[name])  # of `stepwell reduce` and `extract`
    np.testing.assert_allclose(outputs_by_ort(wiring.proto), expected, rtol=1e-5, atol=1e-6)


def test_a_default_holds_in_the_graphs_of_nodes() -> None:
    branch = helper.make_graph([call("F", "x", "t")], "b", [], [onnx.ValueInfoProto(name="t")])
    other = helper.make_graph([call("F", "x", "e", p=2)], "b", [], [onnx.ValueInfoProto(name="e")])
    node = helper.make_node("If", ["yes"], ["y"], then_branch=branch, else_branch=other)
    model = model_of([node], [INNER])
    model.graph.input.append(helper.make_tensor_value_info("yes", onnx.TensorProto.BOOL, []))
    artifact = stepwell.compile(model, target="tiny", precision="fp32")
    for yes, axis in ((True, 0), (False, 2)):
        e = np.exp(X - X.max(axis, keepdims=True))
        found = stepwell.run(artifact, {"x": X, "yes": np.array(yes)})["y"]
        np.testing.assert_allclose(found, e / e.sum(axis, keepdims=True), rtol=1e-5)


def test_an_overload_is_another_function() -> None:
    functions = [function("F", [softmax(axis="p")], p=n) for n in (0, 1)]
    functions[1].overload = "given1"
    nodes = [call("F", "x", "m"), call("F", "m", "n", p=2), call("F", "n", "o"), call("F", "o", "y")]
    nodes[2].overload = "given1"
    model = model_of(nodes, [*functions])
    np.testing.assert_allclose(output(model), outputs_by_ort(model), rtol=1e-5, atol=1e-6)


def with_opset(version: int, *nodes: NodeProto, **defaults: Any) -> ModelProto:
    made = function("F", nodes, **defaults)
    made.opset_import[0].version = version
    return model_of([call("F")], [made])


def test_a_function_of_an_opset_that_says_the_same_is_one_of_the_models() -> None:
    model = with_opset(17, call("LeakyRelu", "a", "c", "", alpha="slope"), slope=0.25)
    np.testing.assert_allclose(output(model), outputs_by_ort(model), rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_function_of_an_opset_that_says_something_else_is_converted(axis: int) -> None:
    model = with_opset(11, softmax(axis="p"), p=axis) if axis != 1 else with_opset(11, softmax())
    flat = X.reshape(int(np.prod(X.shape[:axis])), -1)
    e = np.exp(flat - flat.max(1, keepdims=True))  # an axis and all behind it
    np.testing.assert_allclose(output(model), (e / e.sum(1, keepdims=True)).reshape(X.shape), rtol=1e-5)


def test_a_domain_that_only_a_function_imports_is_known() -> None:
    made = function("F", [call("Gelu", "a", "b", "com.microsoft"), call("QuickGelu", "b", "c", "com.microsoft")])
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    model = model_of([call("F")], [made])
    np.testing.assert_allclose(output(model), outputs_by_ort(model), rtol=1e-5, atol=1e-6)


def test_functions_that_cannot_be_inlined_are_one_error() -> None:
    model = model_of([call("F")], [function("F", [call("F", "a", "c")], p=1)])
    with pytest.raises(ModelFileError, match=r"the model: its functions can be inlined \(found Cycle .*\); mend"):
        import_onnx(model)


def test_a_file_with_functions_is_read(tmp_path: Path) -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        g (float[2,3,4] x) => (float[2,3,4] y) { y = local.F (x) }
        <domain: "local", opset_import: ["" : 21]>
        F <p: int = 0> (a) => (c) { c = Softmax <axis: int = @p> (a) }
    """
    model = parser.parse_model(text)
    onnx.save(model, tmp_path / "f.onnx")
    np.testing.assert_allclose(output(tmp_path / "f.onnx"), outputs_by_ort(model), rtol=1e-5, atol=1e-6)
