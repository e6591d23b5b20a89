"""`stepwell assess` says what a compilation does, node by node, and reads no large weight."""

import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from acceptance.trained import SUBJECTS, file, inputs
from assessments import check, on_cpu
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import REFUSALS, arrays, cases
from onnx_models import bert_layer, small_cnn, text_model

from stepwell.dialects.standin import StandIn, stand_in
from stepwell.driver import api
from stepwell.driver.assess import CLASSES, Assessment, Finding, assess
from stepwell.driver.cli import main
from stepwell.driver.errors import problems_of
from stepwell.driver.work import macs
from stepwell.frontend.onnx import import_onnx
from stepwell.frontend.survey import LARGEST, Survey
from stepwell.runtime.problem import Problem

Array = NDArray[Any]
pytestmark = pytest.mark.xdist_group("device")


model_of = partial(text_model, domains=', "no.such" : 1')
"""With a domain that nobody knows."""


def by_name(found: Assessment) -> Mapping[str, Finding]:
    return {node.name: node for node in found.nodes}


# as a compilation -----------------------------------------------------------------------------------------------------
def agree(model: onnx.ModelProto | Path, **options: Any) -> Assessment | None:
    """What is said of a model, which is what its compilation does; None if there is nothing to say but the error."""
    artifact, error = attempt(lambda: api.compile(model, **options))
    said, fault = attempt(lambda: assess(model, **options))
    if said is None:
        assert fault is not None
        assert error is not None
        assert problems_of(fault) == problems_of(error)
        return None
    assert {node.kind for node in said.nodes} <= set(CLASSES)
    refused = [node for node in said.nodes if node.kind == "unsupported"]
    assert bool(said.exit_code) == (error is not None)
    assert bool(refused) <= (error is not None)  # what is refused may be an output alone
    assert all(node.why and node.help for node in refused)
    if error is not None:
        assert list(said.problems) == list(problems_of(error))
    if artifact is not None:
        check(said, artifact)
    return said


def attempt(make: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """What is made, or why it is not."""
    try:
        return make(), None
    except REFUSALS as error:
        return None, error


PARTS = 20
"""Into which the cases of ONNX are dealt out; the first two are for every day."""


@pytest.mark.parametrize(
    "part", [part if part < 1 else pytest.param(part, marks=pytest.mark.slow) for part in range(0, PARTS, 4)]
)
def test_the_cases_of_onnx(part: int) -> None:
    chosen = [case for found in cases().values() for case in found][part::PARTS]
    assert len(chosen) > 90
    said = 0
    for case in chosen:
        given = arrays(case.data_sets[0][0])
        infos = zip(case.model.graph.input, given, strict=True)
        shapes = {info.name: list(array.shape) for info, array in infos if isinstance(array, np.ndarray)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said += agree(case.model, target="tiny", precision="fp32", shapes=shapes) is not None
    assert said > 90


QUICK = ("vad-static", "vad-branches", "vad-sequence", "eeg-seizure")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SUBJECTS]
)
def test_public_models(name: str) -> None:
    shapes = {key: list(array.shape) for key, array in inputs(name).items()}
    said = agree(file(name), shapes=shapes)
    assert said is not None
    assert said.exit_code == 0
    assert sum(node.macs for node in said.nodes) > 10_000 or on_cpu(said)


def test_a_model_with_an_if_that_a_constant_decides() -> None:
    shapes = {key: list(array.shape) for key, array in inputs("vad-branches").items() if key != "sr"}
    said = agree(file("vad-branches"), shapes=shapes, constants={"sr": 16000})
    assert said is not None
    assert not on_cpu(said)
    assert any(node.inside and node.kind == "native" for node in said.nodes)
    assert any(node.inside and node.why.endswith("never comes to it") for node in said.nodes)


@pytest.mark.parametrize("model", [lambda: bert_layer(1, 24, 256, 4, 512), small_cnn], ids=["bert", "cnn"])
def test_models_with_large_weights(model: Callable[[], onnx.ModelProto]) -> None:
    assert agree(model(), precision="fp32") is not None


# the classes ----------------------------------------------------------------------------------------------------------
def test_every_class() -> None:
    model = model_of(
        "s = Softmax(x) r = Relu(s) d = Shape(x) e = Reshape(r, d) i = NonZero(x) p = Conv(e, w)",
        "float[1,2,8] x",
        "float[1,4,6] p, int64[3,k] i",
        w=np.ones((4, 2, 3), np.float32),
    )
    said = agree(model, target="tiny")
    assert said is not None
    found = by_name(said)
    assert {name: node.kind for name, node in found.items()} == {
        "Softmax_0": "decomposed",
        "Relu_1": "native",
        "Shape_2": "known",
        "Reshape_3": "native",
        "NonZero_4": "host",
        "Conv_5": "native",
    }
    assert found["Softmax_0"].into == ("reduce_max", "sub", "exp", "reduce_sum", "reciprocal", "mul")
    assert found["Relu_1"].into == ("relu",)
    assert "the device does not run NonZero" in found["NonZero_4"].why
    assert found["Conv_5"].macs == 4 * 6 * 2 * 3
    assert found["Conv_5"].nbytes == 4 * (16 + 24 + 24)
    assert found["Shape_2"].nbytes == found["Shape_2"].macs == 0


def test_all_that_is_not_supported_is_told_at_once() -> None:
    inner = helper.make_graph(
        [helper.make_node("Unheard", ["x"], ["u"], name="deep", domain="no.such")],
        "branch",
        [],
        [helper.make_tensor_value_info("u", TensorProto.FLOAT, [4])],
    )
    model = model_of("a = Relu(x) b = no.such.Odd(a) c = Relu(b)", "float[4] x, bool p", "float[4] c, float[4] v")
    model.graph.node.append(helper.make_node("If", ["p"], ["v"], name="if", then_branch=inner, else_branch=inner))
    said = agree(model, target="tiny")
    assert said is not None
    found = [(node.name, node.kind, node.inside) for node in said.nodes]
    assert found == [
        ("Relu_0", "native", ""),
        ("Odd_1", "unsupported", ""),
        ("Relu_2", "unsupported", ""),
        ("if", "unsupported", ""),
        ("deep", "unsupported", "if"),
        ("deep", "unsupported", "if"),
    ]
    assert [node.operator for node in said.nodes][1] == "no.such.Odd"
    assert by_name(said)["Relu_2"].help == "see to that node first"
    assert by_name(said)["if"].help == "see to that node first"
    assert {problem.where for problem in said.problems} == {"Odd_1", "deep", "deep_2"}


def test_without_the_cpu_what_it_would_run_is_not_supported() -> None:
    model = model_of("d = Cast<to = 11>(x) y = Mul(d, d) i = NonZero(x)", "float[2,3] x", "double[2,3] y, int64[2,k] i")
    said = agree(model, target="tiny", host=False)
    assert said is not None
    assert [node.kind for node in said.nodes] == ["unsupported"] * 3


def test_a_node_without_a_kernel_is_found() -> None:
    weights = np.zeros((1, 2064, 2064), np.float32)
    model = model_of(
        "r = Relu(x) h = RNN<hidden_size = 2064>(r, w, u)",
        "float[1,1,1] x",
        "float[1,1,1,2064] h",
        w=weights[:, :, :1],
        u=weights,
    )
    said = agree(model, target="tiny", precision="fp32")
    assert said is not None
    assert by_name(said)["RNN_1"].kind == "host"
    assert "at most 2048 hidden units" in by_name(said)["RNN_1"].why


def test_a_host_result_that_nobody_needs() -> None:
    said = agree(model_of("i = NonZero(x) y = Relu(x)", "float[4] x", "float[4] y"), target="tiny")
    assert said is not None
    assert by_name(said)["NonZero_0"].kind == "known"
    assert by_name(said)["NonZero_0"].why == "nothing needs its result"


def test_the_steps_of_a_loop_count_each() -> None:
    body = model_of(
        "z = MatMul(s, w) n = Identity(s) g = Identity(c)", "int64 i, bool c, float[2,2] s", "bool g, float z"
    )
    body.graph.node[0].name = "inner"
    model = model_of("y = Relu(x)", "float[2,2] x", "float[2,2] r", m=np.array(3), go=np.array(True))
    model.graph.initializer.append(numpy_helper.from_array(np.eye(2, dtype=np.float32), "w"))
    model.graph.node.append(helper.make_node("Loop", ["m", "go", "y"], ["r"], name="loop", body=body.graph))
    said = agree(model, target="tiny")
    assert said is not None
    assert by_name(said)["inner"].macs == 3 * 2 * 2 * 2
    assert by_name(said)["loop"].into[-1] == "the nodes of its graph"


def test_steps_of_a_loop_on_the_cpu_have_the_names_of_the_compilation() -> None:
    first = model_of("n = NonZero(s) c = Cast<to=1>(n) z = ReduceSum<keepdims=0>(c)", "float[2,2] q", "float z")
    other = model_of("z = ReduceSum<keepdims=0>(s)", "float[2,2] q", "float z")
    first.graph.node[0].name = "found"
    for branch in (first, other):
        del branch.graph.input[:]
    body = model_of(
        "k = Constant<value = int64 {2}>() odd = Mod(i, k) b = Cast<to=9>(odd) g = Identity(c)",
        "int64 i, bool c, float[2,2] s",
        "bool g, float[2,2] t",
    )
    choose = helper.make_node("If", ["b"], ["v"], then_branch=first.graph, else_branch=other.graph)
    body.graph.node.extend([choose, helper.make_node("Add", ["s", "v"], ["t"])])
    model = model_of("y = Relu(x)", "float[2,2] x", "float[2,2] r", m=np.array(5), go=np.array(True))
    model.graph.node.append(helper.make_node("Loop", ["m", "go", "y"], ["r"], name="loop", body=body.graph))
    said = agree(model, target="tiny")
    assert said is not None
    steps = by_name(said)["found"]
    assert (steps.steps, list(steps.on_cpu)) == (2, ["found", "found_2"])
    sums = [(node.steps, node.kind) for node in said.nodes if node.operator == "ReduceSum"]
    assert sums == [(3, "native"), (2, "host")]
    assert by_name(said)["loop"].kind == "decomposed"


def test_nodes_of_a_branch_that_are_not_in_order() -> None:
    branch = model_of("z = Relu(t) t = Neg(y)", "float[2,2] q", "float[2,2] z")
    del branch.graph.input[:]
    model = model_of("y = Abs(x)", "float[2,2] x", "float[2,2] r", go=np.array(True))
    model.graph.node.append(helper.make_node("If", ["go"], ["r"], then_branch=branch.graph, else_branch=branch.graph))
    said = agree(model, target="tiny")
    assert said is not None
    kinds = [(node.operator, node.kind) for node in said.nodes if node.inside]
    assert kinds == [("Neg", "known"), ("Relu", "known"), ("Neg", "native"), ("Relu", "native")]


def test_open_shapes_are_the_problem() -> None:
    model = model_of(
        """c = Cast<to = 9>(s) y = If (c) <
            then_branch = g () => (float[n,3] a) { a = Relu(x) },
            else_branch = h () => (float[n,3] b) { b = Neg(x) }>""",
        "float[n,3] x, float s",
        "float[n,3] y",
    )
    said = agree(model, target="tiny")
    assert said is not None
    assert said.exit_code == 1
    assert {node.kind for node in said.nodes} == {"unreached"}
    assert "x" in said.nodes[0].why
    assert "--shape" in said.nodes[0].help
    assert agree(model, target="tiny", shapes={"x": [2, 3]}) is not None


# weights --------------------------------------------------------------------------------------------------------------
def outside(tmp_path: Path, rows: int, columns: int) -> Path:
    """A product with a weight in a file that takes no room on the disk."""
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[rows, columns])
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="w.bin")
    model = model_of("h = MatMul(x, w) y = Softmax(h)", f"float[1,{rows}] x", f"float[1,{columns}] y")
    model.graph.initializer.append(weight)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with (tmp_path / "w.bin").open("wb") as data:
        data.truncate(rows * columns * 4)
    return tmp_path / "m.onnx"


def test_six_gigabytes_of_weights_in_a_second_or_two(tmp_path: Path) -> None:
    path, start = outside(tmp_path, 32768, 49152), time.process_time()
    said = assess(path)
    assert said.exit_code == 0
    assert said.nbytes is not None
    assert said.nbytes > 32768 * 49152 * 2
    assert time.process_time() - start < 5


def test_more_than_the_device_holds(tmp_path: Path) -> None:
    said = assess(outside(tmp_path, 32768, 49152), precision="fp32", target="tiny")
    assert said.exit_code == 1
    assert [problem.kind.value for problem in said.problems] == ["E-memory"]


def test_large_weights_are_not_in_the_store() -> None:
    values = np.arange(1 << 15, dtype=np.float32).reshape(128, 256)
    small = np.ones(256, np.float32)
    model = model_of("h = MatMul(x, w) a = Add(h, b)", "float[4,128] x", "float[4,256] a", w=values, b=small)
    _, weights = import_onnx(model, survey=Survey())
    kept = {weights.get(handle).shape: weights.get(handle) for handle in weights}
    assert isinstance(kept[128, 256], StandIn)
    assert kept[128, 256].strides == (0, 0)
    assert not isinstance(kept[256,], StandIn)
    assert values.nbytes > LARGEST >= small.nbytes


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT8, TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_large_weights_of_narrow_types(kind: int) -> None:
    bits = 4 if kind == TensorProto.INT4 else 8 if kind == TensorProto.UINT8 else 16
    packed = np.random.default_rng(0).integers(0, 60, 512 * 512 * bits // 8, np.uint8).tobytes()
    weight = TensorProto(name="q", data_type=kind, dims=[512, 512], raw_data=packed)
    scale = "DequantizeLinear(q, s)" if bits < 16 else "Cast<to = 1>(q)"
    model = model_of(
        f"w = {scale} y = MatMul(x, w)", "float[2,512] x", "float[2,512] y", 21, s=np.array(0.5, np.float32)
    )
    model.graph.initializer.append(weight)
    said = agree(model)
    assert said is not None
    assert [node.kind for node in said.nodes][1] == "native"
    survey = Survey()
    import_onnx(model, survey=survey)
    assert all(step.inputs[0] is not None for steps in survey.steps.values() for step in steps)


def test_a_large_weight_that_is_too_short_is_refused() -> None:
    model = model_of("y = MatMul(x, w)", "float[2,512] x", "float[2,512] y")
    model.graph.initializer.append(TensorProto(name="w", data_type=1, dims=[512, 512], raw_data=bytes(512 * 512)))
    said = agree(model)
    assert said is not None
    assert [problem.kind.value for problem in said.problems] == ["E-file"]


FUNCTIONS: Sequence[Callable[[Any], Any]] = [
    lambda a: a * 2.5,
    lambda a: 3 + a,
    lambda a: a.astype(np.float16) + a,
    lambda a: a == a[0, 0],
    lambda a: a.T.reshape(-1, 2),
    lambda a: a[1:, ::2],
    lambda a: a[a > 0].ndim,
    lambda a: np.concatenate([a, np.ones((1, 6), a.dtype)]),
    lambda a: np.where(a > 3, a, np.float32(0)),
    lambda a: np.take(a, [0, 2, 2], axis=1),
    lambda a: a.max(axis=0, keepdims=True),
    lambda a: a.sum(axis=1),
    lambda a: np.isfinite(a).all(),
    lambda a: a[..., None] >> np.arange(3) if a.dtype.kind == "i" else a[..., None],
    lambda a: np.matmul(a, a.T),
    lambda a: np.pad(a, 1),
    lambda a: np.expand_dims(a, (0, 2)),
    lambda a: np.split(a, 2, axis=1)[1],
    lambda a: np.broadcast_to(a, (2, 4, 6)),
    lambda a: np.ldexp(a, 2) if a.dtype.kind == "f" else np.divmod(a, 3)[1],
]


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int8, np.float16])
@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_what_numpy_makes_of_a_stand_in_has_the_right_type_and_shape(number: int, dtype: type) -> None:
    real = np.arange(24).reshape(4, 6).astype(dtype)
    with np.errstate(all="ignore"):
        wanted, found = FUNCTIONS[number](real), FUNCTIONS[number](stand_in(np.dtype(dtype), (4, 6)))
    assert np.shape(found) == np.shape(wanted)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    if isinstance(found, np.ndarray) and found.ndim:
        assert isinstance(found, StandIn)
        assert not any(found.strides)


# work -----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("operator", "attributes", "shapes", "result", "wanted"),
    [
        ("Conv", {"group": 2}, [(1, 4, 9, 9), (6, 2, 3, 3)], (1, 6, 7, 7), 6 * 49 * 2 * 9),
        ("ConvTranspose", {}, [(1, 4, 5), (4, 3, 2)], (1, 3, 6), 4 * 5 * 3 * 2),
        ("QLinearConv", {}, [(1, 4, 9), (), (), (6, 4, 3)], (1, 6, 7), 6 * 7 * 12),
        ("Gemm", {"transA": 1}, [(8, 2), (8, 3), (3,)], (2, 3), 48),
        ("MatMul", {}, [(5, 2, 8), (8, 3)], (5, 2, 3), 240),
        ("LSTM", {}, [(7, 2, 3), (1, 16, 3), (1, 16, 4)], (7, 1, 2, 4), 14 * (48 + 64)),
        ("Einsum", {"equation": "bik,bkj->bij"}, [(2, 3, 5), (2, 5, 4)], (2, 3, 4), 2 * 3 * 4 * 5),
        ("Attention", {}, [(1, 2, 3, 8), (1, 2, 5, 8), (1, 2, 5, 8)], (1, 2, 3, 8), 2 * 5 * 48),
        ("MatMulNBits", {"K": 32, "N": 4}, [(2, 32), (4, 1, 16), (4,)], (2, 4), 256),
        ("Relu", {}, [(4,)], (4,), 0),
        ("MatMul", {}, [None, (8, 3)], (5, 3), 0),
    ],
)
def test_macs(
    operator: str, attributes: dict[str, Any], shapes: Sequence[tuple[int, ...] | None], result: tuple[int, ...],
    wanted: int,
) -> None:  # fmt: skip
    node = helper.make_node(operator, [f"i{n}" for n in range(len(shapes))], ["y"], **attributes)
    assert macs(node, shapes, [result]) == wanted


# the command ----------------------------------------------------------------------------------------------------------
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = model_of("y = Softmax(x) i = NonZero(x)", "float[n,3] x", "float[n,3] y, int64[2,k] i")
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    assert main(["assess", str(path), "--target", "tiny", "--shape", "x=2,3"]) == 0
    out = capsys.readouterr().out
    assert "compiles for tiny, 1 node of it on the CPU" in out
    assert "NonZero_1 (NonZero): the device does not run NonZero" in out
    assert main(["assess", str(path), "--target", "tiny", "--shape", "x=2,3", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["compiles"] is True
    assert data["classes"]["host"]["nodes"] == data["classes"]["decomposed"]["nodes"] == 1
    assert [node["kind"] for node in data["nodes"]] == ["decomposed", "host"]
    assert data["inputs"] == [{"name": "x", "dtype": "float32", "shape": [2, 3]}]
    assert data["memory"]["of"] > data["memory"]["bytes"] > 0
    assert main(["assess", str(path), "--target", "tiny", "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["compiles"] is False
    assert data["problems"][0]["where"] == "x"
    assert main(["assess", str(tmp_path / "none.onnx")]) == 1
    assert "none.onnx: is a file (found no such file)" in capsys.readouterr().err


def test_problems_are_whole() -> None:
    said = assess(model_of("y = no.such.Odd(x)", "float[4] x", "float[4] y"), target="tiny")
    assert all(isinstance(problem, Problem) and problem.is_whole for problem in said.problems)
