"""Sparse constants, wherever a model may have them; onnxruntime and numpy are the oracles."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, SparseTensorProto, TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

import stepwell
from stepwell.driver.agreement import onnxruntime_run
from stepwell.driver.assess import assess
from stepwell.driver.cli import main
from stepwell.frontend import sparse
from stepwell.frontend.cut import Wiring
from stepwell.frontend.onnx import ImportProblems, import_onnx
from stepwell.runtime.problem import Kind

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
W = np.zeros((3, 4), np.float32)
W[[0, 1, 2], [1, 3, 0]] = [1.5, -2, 3]


def tensor_of(
    array: NDArray[Any] = W, name: str = "w", linear: bool = False, kind: type[Any] = np.int64
) -> SparseTensorProto:
    places = np.flatnonzero(array) if linear else np.argwhere(array)
    values = numpy_helper.from_array(array[np.nonzero(array)], name)
    return helper.make_sparse_tensor(values, numpy_helper.from_array(places.astype(kind), f"{name}:i"), array.shape)


def model_of(nodes: Sequence[NodeProto], *tensors: SparseTensorProto, **more: Any) -> ModelProto:
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, X.shape) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], sparse_initializer=tensors)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, **more)


def node(operator: str, *names: str, result: str = "y", **given: Any) -> NodeProto:
    return helper.make_node(operator, names, [result], operator, **given)


def constant(linear: bool, result: str = "w") -> NodeProto:
    return node("Constant", result=result, sparse_value=tensor_of(linear=linear))


def in_branch(*nodes: NodeProto, tensors: Sequence[SparseTensorProto] = ()) -> ModelProto:
    """Where a condition on values is true."""
    out = [onnx.ValueInfoProto(name="z")]
    then = helper.make_graph([*nodes, node("Add", "x", "w", result="z")], "t", [], out, sparse_initializer=tensors)
    other = helper.make_graph([node("Neg", "x", result="z")], "e", [], out)
    test = [node("ReduceMax", "x", result="m", keepdims=0), node("Greater", "m", "half", result="c")]
    half = node("Constant", result="half", value_float=0.5)
    return model_of([half, *test, node("If", "c", then_branch=then, else_branch=other)])


def in_function(linear: bool) -> ModelProto:
    body = [constant(linear), node("Add", "a", "w", result="b")]
    made = helper.make_function("local", "F", ["a"], ["b"], body, [helper.make_opsetid("", 21)])
    return model_of([helper.make_node("F", ["x"], ["y"], "F", domain="local")], functions=[made])


PLACES = {
    "an initialiser": lambda linear: model_of([node("Add", "x", "w")], tensor_of(linear=linear)),
    "a node": lambda linear: model_of([constant(linear), node("Add", "x", "w")]),
    "an initialiser of a branch": lambda linear: in_branch(tensors=[tensor_of(linear=linear)]),
    "a node of a branch": lambda linear: in_branch(constant(linear)),
    "a node of a function": in_function,
}


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_a_sparse_constant_is_a_dense_one(place: str, linear: bool) -> None:
    model = PLACES[place](linear)
    before = model.SerializeToString()
    artifact = stepwell.compile(model, target="tiny", precision="fp32")
    assert not artifact.host
    assert np.array_equal(stepwell.run(artifact, {"x": X})["y"], X + W)
    assert model.SerializeToString() == before
    assert assess(model, target="tiny", precision="fp32").exit_code == 0
    wiring = Wiring.read(model)  # of `stepwell extract` and `reduce`
    assert np.array_equal(onnxruntime_run(wiring.proto, {"x": X})["y"], X + W)


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32])
def test_indices_are_of_any_type_of_integers(kind: type[Any]) -> None:
    model = model_of([node("Add", "x", "w")], tensor_of(kind=kind))
    assert np.array_equal(stepwell.run(stepwell.compile(model, target="tiny", precision="fp32"), {"x": X})["y"], X + W)


def test_a_sparse_constant_may_hold_nothing_and_any_numbers() -> None:
    model = model_of([node("Cast", "w", result="f", to=1), node("Add", "x", "f")], tensor_of(W.astype(np.int64)))
    expected = onnxruntime_run(model, {"x": X})["y"]
    assert np.array_equal(
        stepwell.run(stepwell.compile(model, target="tiny", precision="fp32"), {"x": X})["y"], expected
    )
    model = model_of([node("Add", "x", "w")], tensor_of(0 * W))
    assert np.array_equal(stepwell.run(stepwell.compile(model, target="tiny", precision="fp32"), {"x": X})["y"], X)


def test_its_values_may_lie_in_another_file(tmp_path: Path) -> None:
    model = model_of([node("Add", "x", "w")], tensor_of())
    for tensor in (model.graph.sparse_initializer[0].values, model.graph.sparse_initializer[0].indices):
        (tmp_path / tensor.name.replace(":", "_")).write_bytes(tensor.raw_data)
        set_external_data(tensor, tensor.name.replace(":", "_"))
        tensor.ClearField("raw_data")
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    artifact = stepwell.compile(tmp_path / "m.onnx", target="tiny", precision="fp32")
    assert np.array_equal(stepwell.run(artifact, {"x": X})["y"], X + W)


def test_it_is_known_where_a_node_is_computed_at_import() -> None:
    nodes = [node("NonZero", "w", result="u"), node("Cast", "u", result="f", to=1)]
    model = model_of([*nodes, node("ReduceSum", "f", result="s", keepdims=0), node("Add", "x", "s")], tensor_of())
    expected = onnxruntime_run(model, {"x": X})["y"]
    assert np.array_equal(
        stepwell.run(stepwell.compile(model, target="tiny", precision="fp32"), {"x": X})["y"], expected
    )


def wrong(dims: Sequence[int] = (3, 4), indices: Any = ((0, 1), (2, 3)), values: Any = (1.0, 2.0)) -> SparseTensorProto:
    made = SparseTensorProto(dims=dims)
    made.values.CopyFrom(numpy_helper.from_array(np.array(values, np.float32), "w"))
    made.indices.CopyFrom(numpy_helper.from_array(np.asarray(indices), "i"))
    return made


@pytest.mark.parametrize(
    ("tensor", "message", "kind"),
    [
        (wrong(indices=[[0, 1], [3, 0]]), r"lie in its shape \[3, 4\] \(found \[3, 0\]\)", Kind.FILE),
        (wrong(indices=[0, 12]), r"lie in its shape \[3, 4\] \(found 12\)", Kind.FILE),
        (wrong(indices=[-1, 2]), r"lie in its shape \[3, 4\] \(found -1\)", Kind.FILE),
        (wrong(indices=[5, 5]), r"is there once \(found 5 again\)", Kind.FILE),
        (wrong(indices=[1, 2, 3]), r"of shape \[2\] or \[2, 2\] \(found \[3\]\)", Kind.FILE),
        (wrong(indices=[0.5, 1]), r"are integers \(found float64\)", Kind.FILE),
        (wrong(values=[[1.0, 2.0]]), r"have one axis \(found shape \[1, 2\]\)", Kind.FILE),
        (wrong([0, 4], [0, 1]), r"lie in its shape \[0, 4\] \(found 0\)", Kind.FILE),
        (wrong([-3, 4]), r"extents of 0 or more \(found shape \[-3, 4\]\)", Kind.FILE),
        (wrong([2**20, 2**20]), r"at most 1,073,741,824 bytes .*\(found 4,398,046,511,104 .*take smaller", Kind.MEMORY),
        (wrong([2**62, 2**62]), r"at most 1,073,741,824 bytes", Kind.MEMORY),
    ],
)
def test_what_is_wrong_with_one_is_one_problem(tensor: SparseTensorProto, message: str, kind: Kind) -> None:
    by_node = [node("Constant", result="w", sparse_value=tensor), node("Add", "x", "w")]
    for model in (model_of([node("Add", "x", "w")], tensor), model_of(by_node)):
        with pytest.raises(ImportProblems, match=message) as error:
            import_onnx(model)
        (problem,) = error.value.problems
        assert problem.kind is kind
        assert problem.where in ("w", "Constant")
        with pytest.raises(ImportProblems, match=message):
            Wiring.read(model)


def test_an_assessment_makes_no_large_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    plain = numpy_helper.from_array
    monkeypatch.setattr(sparse.numpy_helper, "from_array", lambda a, name: made.append(a.nbytes) or plain(a, name))
    large = np.zeros((4, 1 << 16), np.float32)
    large[1, [3, 9]] = 1
    model = model_of([node("MatMul", "x", "w", result="z"), node("ReduceSum", "z", "a")], tensor_of(large))
    model.graph.initializer.append(plain(np.array([1]), "a"))
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 1
    assert assess(model, target="tiny", precision="fp32").exit_code == 0
    assert max(made, default=0) < 1000
    found = stepwell.run(stepwell.compile(model, target="tiny", precision="fp32"), {"x": X})["y"]
    np.testing.assert_allclose(found, X @ large.sum(axis=1, keepdims=True), rtol=1e-6)
    assert made.count(large.nbytes) == 1


@pytest.mark.parametrize("place", ["an initialiser", "a node"])
def test_a_model_with_one_is_compared(place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(PLACES[place](False), tmp_path / "m.onnx")
    given = ["--target", "tiny", "--precision", "fp32", "--random", "0", "--quiet"]
    assert main(["compare", str(tmp_path / "m.onnx"), *given]) == 0
    assert "every stage agrees" in capsys.readouterr().out
