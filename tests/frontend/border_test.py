"""What may stand at the border of a graph: all that onnxruntime takes, without the CPU's help."""

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

import stepwell
from stepwell.driver.agreement import onnxruntime_run
from stepwell.runtime.border import InputError

Array = NDArray[Any]

GRAPHS = {
    "an input is the output": "(float[2,3] x) => (float[2,3] x) { }",
    "inputs among the outputs": "(float[2,3] x, int64[2] n, bool[3] b) => (x, float[2,3] y, n, bool[3] b)"
    " { y = Relu(x) }",
    "one output twice": "(float[2,3] x) => (float[2,3] y, float[2,3] y) { y = Relu(x) }",
    "an input twice": "(float[2,3] x) => (float[2,3] x, float[2,3] x) { }",
    "one value of two names": "(float[2,3] x) => (float[2,3] y, float[2,3] z) { y = Relu(x) z = Identity(y) }",
    "equal nodes": "(float[2,3] x) => (float[2,3] y, float[2,3] z) { y = Relu(x) z = Relu(x) }",
    "an intermediate": "(float[2,3] x) => (float[2,3] y, float[2,3] z, v)"
    " { y = Relu(x) z = Neg(y) v = Exp(z) }",
    "constants": "(float[2] x) => (y, w, k, float[2] v) <float[2] w = {1,2}, int64[2] k = {3,4}>"
    " { y = Add(x, w) v = Neg(w) }",
    "a constant alone": "() => (float[2] w) <float[2] w = {1,2}> { }",
    "inputs without use": "(float[2] x, float[3] u, int64[4] v, bool[1] b) => (float[2] y) { y = Relu(x) }",
    "no input in use": "(float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Neg(w) }",
    "an input with a value of its own": "(float[2] x, float[2] w) => (y) <float[2] w = {1,2}> { y = Add(x, w) }",
    "such an input as output": "(float[2] x, float[2] w) => (y, float[2] w) <float[2] w = {1,2}> { y = Add(x, w) }",
    "an output left out": "(float[2,4] x) => (y, z) { y, = Dropout(x) z = Relu(y) }",
    "a rank of outputs": "(float[4,6] x) => (float[2,6] a, c) { a, c = Split<axis=0>(x) }",
    "no rows": "(float[0,3] x) => (float[0,3] y) { y = Relu(x) }",
    "no rows, and sums": "(float[0,3] x, float[2,0] w) => (y, z, v, x) <int64[1] a = {0}> { y = ReduceSum(x, a)"
    " z = MatMul(w, x) v = Concat<axis=0>(x, y) }",
    "no columns": "(float[2,0] x, float[2,3] u) => (y, z) { y = Concat<axis=1>(x, u) z = Transpose(x) }",
    "outputs of no type": "(float[2,3] x, int64[2] n) => (y, s, m, t)"
    " { y = Relu(x) s = Shape(x) m = Neg(n) t = ArgMax(x) }",
}  # fmt: skip


def model_of(graph: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]>\ngraph {graph}')


def feeds_of(model: onnx.ModelProto) -> dict[str, Array]:
    """Small integers in the type of each input that has no value of its own."""
    known, random = {tensor.name for tensor in model.graph.initializer}, np.random.default_rng(1)
    infos = {info.name: info.type.tensor_type for info in model.graph.input if info.name not in known}
    return {
        name: random.integers(-3, 4, [d.dim_value for d in kind.shape.dim]).astype(
            onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        )
        for name, kind in infos.items()
    }


@pytest.mark.parametrize("name", GRAPHS)
def test_the_border_is_as_onnxruntime_has_it(name: str) -> None:
    model = model_of(GRAPHS[name])
    feeds = feeds_of(model)
    artifact = stepwell.compile(model, target="tiny", precision="fp32", host=False)
    found, right = stepwell.run(artifact, feeds), onnxruntime_run(model, feeds)
    assert found.keys() == right.keys()
    for key, array in right.items():
        assert found[key].dtype == array.dtype
        assert found[key].shape == array.shape
        assert np.array_equal(found[key], array), key


def test_an_input_that_has_a_value_may_get_another() -> None:
    model, w = model_of(GRAPHS["such an input as output"]), np.array([5, -6], np.float32)
    x = np.array([1, 2], np.float32)
    right = onnxruntime_run(model, {"x": x, "w": w})
    bound = stepwell.compile(model, target="tiny", precision="fp32", constants={"w": w})
    given = stepwell.compile(model, target="tiny", precision="fp32", shapes={"w": [2]})
    for found in (stepwell.run(bound, {"x": x}), stepwell.run(given, {"x": x, "w": w})):
        assert all(np.array_equal(found[name], right[name]) for name in right)


def test_integers_that_are_only_passed_on_keep_64_bits() -> None:
    x = np.array([-(2**63), 2**63 - 1], np.int64)
    passed = stepwell.compile(
        model_of("(int64[2] x) => (int64[2] x, int64[1,2] y) <int64[2] s = {1,2}> { y = Reshape(x, s) }")
    )
    found = stepwell.run(passed, {"x": x})
    assert np.array_equal(found["x"], x)
    assert np.array_equal(found["y"], x[None])
    computed = stepwell.compile(model_of("(int64[2] x) => (x, int64[2] y) { y = Neg(x) }"))
    with pytest.raises(InputError, match="x: integers fit 32 bits"):
        stepwell.run(computed, {"x": x})


def test_integers_are_passed_on_beside_inputs_without_elements() -> None:
    for kind in (np.int64, np.uint32, np.uint64):
        name = np.dtype(kind).name
        graph = (
            f"({name}[3] x, {name}[0] e, {name}[0] f) => ({name}[3] y, {name}[0] z) {{ y = Identity(x) z = Neg(e) }}"
        )
        if kind != np.int64:
            graph = graph.replace("Neg(e)", "Identity(e)")
        artifact = stepwell.compile(model_of(graph), target="tiny")
        x, none = np.array([0, 1, np.iinfo(kind).max], kind), np.zeros(0, kind)
        found = stepwell.run(artifact, {"x": x, "e": none, "f": none})
        assert found["y"].dtype == found["z"].dtype == kind
        assert np.array_equal(found["y"], x)
        assert found["z"].shape == (0,)


READERS: dict[str, tuple[str, Array]] = {
    "Reshape": ("{t = Cast<to=7>(s) y = Reshape(x, t)}", np.array([2, 6])),
    "Expand": ("{t = Cast<to=7>(s) y = Expand(x, t)}", np.array([2, 3, 4])),
    "TopK": ("{t = Cast<to=7>(s) y, v = TopK(x, t)}", np.array([2])),
    "Compress": ("{t = Cast<to=9>(s) y = Compress<axis=0>(x, t)}", np.array([0, 1, 1])),
    "two casts": (
        "{t = Cast<to=7>(s) u = Cast<to=9>(s) z = Reshape(x, t) y = Compress<axis=0>(z, u)}",
        np.array([3, 4]),
    ),
    "the input as well": (
        "{t = Cast<to=7>(s) z = Reshape(x, t) r, v = TopK<axis=0>(s, k) q = Cast<to=1>(r) y = Add(z, q)}",
        np.array([3, 4]),
    ),
}


KINDS = ("int32", "int64", "int16", "int8", "uint8", "uint32")


@pytest.mark.parametrize(
    ("name", "kind"),
    [(n, k) for n in READERS for k in (KINDS[:2] if n == "the input as well" else KINDS)],  # those that TopK takes
)
def test_an_input_that_the_cpu_reads_as_another_type_has_its_own(name: str, kind: str) -> None:
    nodes, s = READERS[name]
    model = model_of(f"(float[3,4] x, {kind}[{len(s)}] s) => (y) <int64[1] k = {{1}}> {nodes}")
    feeds = {"x": np.arange(12, dtype=np.float32).reshape(3, 4), "s": s.astype(kind)}
    artifact = stepwell.compile(model, target="tiny", precision="fp32")
    inputs = [artifact.tensors[index] for index in artifact.plans[0].inputs]
    assert {tensor.name: tensor.border_dtype for tensor in inputs} == {n: v.dtype for n, v in feeds.items()}
    found, right = stepwell.run(artifact, feeds), onnxruntime_run(model, feeds)
    assert np.array_equal(found["y"], right["y"])
    assert found["y"].dtype == right["y"].dtype
