"""What the device does not run goes to the CPU: placed in few parts, with explicit transfers, and never silently."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx_models import text_model
from xdsl.dialects.builtin import ModuleOp

import stepwell
from stepwell.driver import api
from stepwell.driver.check import check_artifact
from stepwell.driver.cli import main
from stepwell.driver.passmanager import PipelineError
from stepwell.frontend.problems import ImportProblems
from stepwell.runtime.artifact import Artifact, ArtifactError, load
from stepwell.runtime.border import InputError
from stepwell.runtime.cpu import HostType
from stepwell.runtime.steps import Copy, HostCall, Launch
from stepwell.runtime.stream import StreamError

pytestmark = pytest.mark.xdist_group("device")
Array = NDArray[Any]


def agree(model: onnx.ModelProto, feeds: dict[str, Any], **options: Any) -> Artifact:
    """Compiles, runs, compares with onnxruntime; every launch is checked for races, and the file says the same."""
    artifact = api.compile(model, target="tiny", precision="fp32", **options)
    assert check_artifact(artifact).findings == ()
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    found = stepwell.run(artifact, feeds)
    again = stepwell.run(api.compile(model, target="tiny", precision="fp32", linked=False, **options), feeds)
    for info, values in zip(model.graph.output, expected, strict=True):
        same(found[info.name], values)
        same(again[info.name], values)
    assert list(found) == [info.name for info in model.graph.output]
    return artifact


def same(found: Any, expected: Any) -> None:
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
        return
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(found, expected)


def on_cpu(artifact: Artifact) -> list[list[str]]:
    return [[node.name for node in part.nodes] for part in artifact.host]


X = np.array([[1, -2, 3], [0.5, 2, -1]], np.float32)


# placing --------------------------------------------------------------------------------------------------------------
def test_a_model_that_the_device_runs_has_no_part() -> None:
    artifact = agree(text_model("y = Relu(x)", "float[2,3] x", "float[2,3] y"), {"x": X})
    assert artifact.host == ()
    assert all(isinstance(step, Launch) for step in artifact.plans[0].steps)


def test_what_data_decide_stays_on_the_cpu_together() -> None:
    model = text_model(
        "r = Relu(x) i = NonZero(r) t = Transpose(i) v = GatherND(r, t) e = Exp(r)",
        "float[2,3] x",
        "float[n] v, float[2,3] e",
    )
    artifact = agree(model, {"x": X})
    assert on_cpu(artifact) == [["NonZero_1", "Transpose_2", "GatherND_3"]]
    kinds = [type(step) for step in artifact.plans[0].steps]
    assert kinds == [Launch, Copy, HostCall], "one launch, one transfer, one part"


def test_a_value_goes_up_again_where_its_shape_is_known() -> None:
    model = text_model(
        "d = Cast<to = 11>(x) s = Mul(d, d) f = Cast<to = 1>(s) y = MatMul(f, w)",
        "float[2,3] x",
        "float[2,4] y",
        w=np.arange(12, dtype=np.float32).reshape(3, 4),
    )
    artifact = agree(model, {"x": X})
    assert on_cpu(artifact) == [["Cast_0", "Mul_1", "Cast_2"]]
    assert [type(step) for step in artifact.plans[0].steps] == [HostCall, Copy, Launch], "the input stays on the CPU"


def test_the_turns_are_as_few_as_the_longest_chain_demands() -> None:
    """a → CPU → device → CPU → device; the other two can wait for one of these turns."""
    first = "i = NonZero(x) a = Cast<to = 11>(x) b = Cast<to = 1>(a) c = MatMul(b, w)"
    second = "d = Cast<to = 11>(c) e = Cast<to = 1>(d) y = MatMul(e, w) j = NonZero(c)"
    model = text_model(
        f"{first} {second}",
        "float[3,3] x",
        "float[3,3] y, int64[2,n] i, int64[2,m] j",
        w=np.eye(3, dtype=np.float32) * 2,
    )
    artifact = agree(model, {"x": np.ones((3, 3), np.float32)})
    assert len(artifact.host) == 2
    assert "NonZero_0" in on_cpu(artifact)[1], "what only the caller waits for runs last"


def test_small_results_of_the_cpu_stay_there() -> None:
    model = text_model(
        "i = NonZero(x) s = Shape(i) n = Gather(s, one) m = Mul(n, two) l = Unsqueeze(m, axes) y = Expand(v, l)",
        "float[2,3] x",
        "float[k] y",
        one=np.array(1),
        two=np.array(2),
        axes=np.array([0]),
        v=np.ones(1, np.float32),
    )
    artifact = agree(model, {"x": X})
    assert len(artifact.host) == 1
    assert not artifact.plans[0].launches


def test_random_nodes_are_as_many_as_the_model_has() -> None:
    model = text_model(
        "a = RandomNormal<shape = [64]>() b = RandomNormal<shape = [64]>() d = Sub(a, b) y = Add(d, x)",
        "float[64] x",
        "float[64] y",
    )
    artifact = api.compile(model, target="tiny", precision="fp32")
    assert np.any(stepwell.run(artifact, {"x": np.zeros(64, np.float32)})["y"])


# types ----------------------------------------------------------------------------------------------------------------
def test_types_that_the_device_does_not_hold_go_round_it() -> None:
    model = text_model(
        "z = StringConcat(s, s) y = Add(d, d) q = SequenceConstruct(d, y)",
        "string[2] s, double[3] d",
        "string[2] z, double[3] y, seq(double[3]) q",
        opset=20,
    )
    artifact = agree(model, {"s": np.array(["a", "é"], object), "d": np.array([1.0, 2, 1e300])})
    assert [artifact.tensors[n].border for n in artifact.plans[0].inputs] == ["tensor(string)[2]", "tensor(double)[3]"]


def test_wide_integers_that_only_the_cpu_sees_keep_their_bits() -> None:
    model = text_model("i = NonZero(n) y = Unique(n)", "int64[2] n", "int64[1,k] i, int64[k] y")
    agree(model, {"n": np.array([1 << 40, 0])})


def test_an_input_that_is_returned_and_one_returned_twice() -> None:
    model = text_model("y = Identity(s) z = Identity(y)", "string[2] s", "string[2] y, string[2] z")
    agree(model, {"s": np.array(["a", "b"], object)})


def test_a_constant_that_the_device_does_not_hold() -> None:
    model = text_model(
        "y = Identity(c) z = Relu(x)", "float[2,3] x", "double[2] y, float[2,3] z", c=np.array([1.0, 2.0])
    )
    agree(model, {"x": X})


@pytest.mark.parametrize("text", ["tensor(int64)[2,?]", "tensor(float)", "tensor(float)[]", "seq(tensor(string))"])
def test_a_host_type_reads_back(text: str) -> None:
    assert str(HostType.parse(text)) == text


# control flow ---------------------------------------------------------------------------------------------------------
def test_names_inside_the_graphs_of_joined_parts_do_not_meet() -> None:
    """Two nodes with equal names inside, which joining might give to values around them as well."""

    def grown(taken: str, result: str) -> str:
        return f"""{result} = Loop (n, true) <body = g (int64 i, bool c) => (bool d, float[2,m] out) {{
            d = Identity(c) v0 = Add({taken}, {taken}) places = NonZero(v0) out = Cast<to = 1>(places) }}>"""

    text = f"r = Relu(x) {grown('r', 'v1')} w = ReduceSum<keepdims = 0>(v1, axes) {grown('w', 'y')}"
    model = text_model(text, "float[2,3] x, int64 n", "float[k,2,m] y", axes=np.array([0]), true=np.array(True))
    artifact = agree(model, {"x": X, "n": np.array(2)})
    assert on_cpu(artifact) == [["Loop_1", "ReduceSum_2", "Loop_3"]]


def test_steps_of_a_loop_that_is_written_out_meet_on_the_cpu() -> None:
    """Sums of bags, as torch writes EmbeddingBag: only a run tells how long each is, and its sum goes up again."""
    body = """(int64 i, bool c) => (bool d, float[4] bag) { d = Identity(c) first = Gather(starts, i)
        start = Unsqueeze(first, axes) last = Gather(ends, i) end = Unsqueeze(last, axes)
        picked = Slice(indices, start, end, axes) rows = Gather(table, picked) twice = Mul(rows, rows)
        bag = ReduceMax<keepdims = 0>(twice, axes) }"""
    model = text_model(
        f"bags = Loop (three, true) <body = g {body}> y = MatMul(bags, w)",
        "int64[7] indices, int64[3] starts, int64[3] ends",
        "float[3,2] y",
        axes=np.array([0]),
        three=np.array(3),
        true=np.array(True),
        table=np.arange(20, dtype=np.float32).reshape(5, 4) / 8,
        w=np.arange(8, dtype=np.float32).reshape(4, 2) / 4,
    )
    bounds = {"starts": np.array([0, 2, 3]), "ends": np.array([2, 3, 7])}
    artifact = agree(model, {"indices": np.array([4, 0, 1, 3, 3, 2, 1]), **bounds})
    (part,) = artifact.host
    assert {node.operator for node in part.nodes} == {"Slice", "Gather", "Mul", "ReduceMax"}
    assert len({node.name for node in part.nodes}) == len(part.nodes) == 12
    assert artifact.plans[0].launches


def test_a_value_of_the_cpu_by_another_name_is_no_work() -> None:
    model = text_model("i = NonZero(x) a = Identity(i) y = Identity(a) z = Identity(a)", "float[2,3] x",
                       "int64[2,n] y, int64[2,m] z")  # fmt: skip
    artifact = agree(model, {"x": X})
    assert "NonZero_0" in on_cpu(artifact)[0]
    assert not {"Identity_1", "Identity_2"} & {name for part in on_cpu(artifact) for name in part}


def test_an_input_may_be_an_output_of_the_same_name(tmp_path: Path) -> None:
    model = text_model("y = Relu(x)", "float[2,3] x", "float[2,3] y")
    model.graph.output.append(model.graph.input[0])
    agree(model, {"x": X}).save(tmp_path / "m.stw")
    found = stepwell.run(load(tmp_path / "m.stw"), {"x": X})
    np.testing.assert_array_equal(found["x"], X)


# kernels that do not fit ----------------------------------------------------------------------------------------------
def many_units() -> onnx.ModelProto:
    weights = np.random.default_rng(0).standard_normal((1, 2064, 2064), dtype=np.float32) / 64
    return text_model(
        "r = Relu(x) h = RNN<hidden_size = 2064>(r, w, u) y = Relu(h)",
        "float[1,1,1] x",
        "float[1,1,1,2064] y",
        w=weights[:, :, :1],
        u=weights,
    )


def test_a_node_without_a_kernel_for_the_target_is_left_to_the_cpu() -> None:
    artifact = agree(many_units(), {"x": np.ones((1, 1, 1), np.float32)})
    assert on_cpu(artifact) == [["RNN_1", "Relu_2"]]
    assert "at most 2048 hidden units" in artifact.host[0].nodes[0].reason


# refusals -------------------------------------------------------------------------------------------------------------
def test_without_the_cpu_everything_is_named_at_once() -> None:
    model = text_model(
        "d = Cast<to = 11>(x) y = Mul(d, d) i = NonZero(x)", "float[2,3] x", "double[2,3] y, int64[2,k] i"
    )
    with pytest.raises(ImportProblems) as caught:
        api.compile(model, host=False)
    assert [problem.partition(":")[0] for problem in caught.value.problems] == ["Cast_0", "NonZero_2", "Mul_1"]
    with pytest.raises(PipelineError, match="at most 2048 hidden units"):
        api.compile(many_units(), target="tiny", host=False)


def test_what_neither_runs_is_refused_in_the_words_of_the_device() -> None:
    model = text_model("y = Add(x, z)", "float[2,3] x, float[4] z", "float y")
    with pytest.raises(ImportProblems, match="Add_0"):
        api.compile(model)


def test_integers_of_the_cpu_that_32_bits_do_not_hold_are_refused_when_they_go_up() -> None:
    model = text_model(
        "u = Unique(n) r = Reshape(u, one) y = Add(big, r)",
        "int64[1] n",
        "int64[20000] y",
        one=np.array([1]),
        big=np.zeros(20000, np.int64),
    )
    artifact = api.compile(model, target="tiny", precision="fp32")
    assert stepwell.run(artifact, {"n": np.array([7])})["y"][0] == 7
    with pytest.raises(StreamError, match="integers fit 32 bits"):
        stepwell.run(artifact, {"n": np.array([1 << 40])})


def test_a_fault_of_the_cpu_names_the_nodes() -> None:
    model = text_model("y = GatherND(d, i)", "double[2] d, int64[1,1] i", "double[1] y")
    artifact = api.compile(model, target="tiny")
    with pytest.raises(StreamError, match="GatherND_0: onnxruntime must run this part"):
        stepwell.run(artifact, {"d": np.zeros(2), "i": np.array([[5]])})


def test_inputs_of_the_cpu_are_checked() -> None:
    artifact = api.compile(text_model("y = Add(d, d)", "double[3] d", "double[3] y"), target="tiny")
    with pytest.raises(InputError, match=r"d: is tensor\(double\)\[3\] \(found float32\[3\]\); convert the value"):
        stepwell.run(artifact, {"d": np.zeros(3, np.float32)})


# files and times ------------------------------------------------------------------------------------------------------
def test_the_file_holds_the_parts(tmp_path: Path) -> None:
    model = text_model("r = Relu(x) i = NonZero(r)", "float[2,3] x", "int64[2,k] i")
    artifact = api.compile(model, target="tiny")
    path = artifact.save(tmp_path / "a.stw")
    again = load(path)
    assert again.host == artifact.host
    assert again.plans == artifact.plans
    np.testing.assert_array_equal(stepwell.run(again, {"x": X})["i"], np.array(np.nonzero(np.maximum(X, 0))))
    damaged = bytearray(path.read_bytes())
    at = damaged.find(b"NonZero", damaged.find(b"host/0.onnx"))
    damaged[at] ^= 1
    with pytest.raises(ArtifactError, match=r"host/0\.onnx"):
        load(bytes(damaged))


def test_a_profile_counts_parts_and_transfers() -> None:
    model = text_model("r = Relu(x) i = NonZero(r)", "float[2,3] x", "int64[2,k] i")
    artifact = api.compile(model, target="tiny", precision="fp32")
    profile, target = artifact.model.profile(), artifact.target
    (node,) = artifact.host[0].nodes
    assert node.nbytes == 24 + 2 * 8, "an extent that is not known counts as 1"
    part = target.host_node + node.nbytes / target.host_rate
    copy = target.host_latency + 24 / target.host_bytes
    assert profile.host_cycles == part + copy
    assert profile.cycles == profile.launches[0].cycles + part + copy
    assert profile.host_share == profile.host_cycles / profile.cycles


def test_the_graph_evaluates_with_its_parts() -> None:
    from stepwell.dialects.evaluate import evaluate

    model = text_model("r = Relu(x) i = NonZero(r) e = Exp(r)", "float[2,3] x", "int64[2,k] i, float[2,3] e")
    module = api.lower(model, to="graph", target="tiny", precision="fp32")
    assert isinstance(module, ModuleOp)
    indices, _ = evaluate(module, [X], api.weights_of(module))
    np.testing.assert_array_equal(indices, np.array(np.nonzero(np.maximum(X, 0))))


@pytest.mark.parametrize("command", ["compile", "run"])
def test_both_commands_end_with_what_the_cpu_does(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = text_model("r = Relu(x) i = NonZero(r) y = Exp(r)", "float[2,3] x", "float[2,3] y, int64[2,k] i")
    onnx.save(model, tmp_path / "m.onnx")
    given = [command, str(tmp_path / "m.onnx"), "--target", "tiny", *(["--random", "0"] if command == "run" else [])]
    assert main(given) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "on the CPU" in line)
    assert re.fullmatch(r"1 node on the CPU, in 1 part, \d+\.\d% of the time:", line)
    assert main([*given, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert 0 < data["host_share"] < 1
    assert [[node["name"] for node in part] for part in data["host"]] == [["NonZero_1"]]
