"""What reports ask for beside values: narrow policies, twins, time, cycles, names in a profile, refusals that name."""

from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import onnx
import pytest
from acceptance.report_graphs import MEMORY, PRECISION
from acceptance.report_models import Report, normal
from numpy.typing import NDArray

import stepwell
from stepwell.driver.agreement import onnxruntime_run
from stepwell.driver.errors import describe
from stepwell.runtime.isa import Engine
from stepwell.runtime.target import Target

Array = NDArray[Any]


def run(report: Report, precision: str = "fp32") -> tuple[dict[str, Array], dict[str, Array]]:
    """The results of the first feeds here, and in onnxruntime."""
    feeds = report.feeds(report.sets[0])
    artifact = stepwell.compile(report.model(), target="tiny", precision=precision)
    return artifact.model.run(feeds), onnxruntime_run(report.model(), feeds)


# narrow policies ------------------------------------------------------------------------------------------------------
def test_under_fp16_statistics_of_large_numbers_stay_wide() -> None:
    found, right = run(PRECISION["normalisation of large numbers written out"], "fp16")
    for name, array in found.items():
        assert np.allclose(array, right[name], rtol=1e-2, atol=1e-2), name


def test_under_fp16_masks_of_large_numbers_make_no_nan() -> None:
    found, _ = run(PRECISION["masks of large numbers"], "fp16")
    for name, array in found.items():
        assert np.isfinite(array).all(), name
        assert np.allclose(array.sum(-1), 1, atol=5e-3), name


# twins ----------------------------------------------------------------------------------------------------------------
def twin(**changes: Any) -> Report:
    """A product of names and shapes that its twins share."""
    given: dict[str, Any] = {
        "w": normal(4, 5),
        "b": normal(5),
        "body": "p = MatMul(x, w) s = Add(p, b) y = Relu(s)",
        "rows": 3,
    } | changes
    constants = {"w": given["w"], "b": given["b"]}
    return Report(13, f"float[{given['rows']},4] x", given["body"], "y", constants)


TWINS: Mapping[str, Report] = {
    "weights negated": twin(w=-normal(4, 5)),
    "another bias": twin(b=normal(5, seed=1)),
    "one more row": twin(rows=4),
    "another operator": twin(body="p = MatMul(x, w) s = Sub(p, b) y = Relu(s)"),
}


@pytest.mark.parametrize("name", TWINS)
def test_models_of_one_structure_keep_apart(name: str) -> None:
    for report in (twin(), TWINS[name], twin()):
        found, right = run(report)
        assert np.allclose(found["y"], right["y"], 1e-5, 1e-5)


# time and cycles ------------------------------------------------------------------------------------------------------
def chain(stages: int) -> Report:
    """Each stage reads all before it."""
    known, body = MEMORY["tensors that grow along a chain"], list[str]()
    for i in range(stages):
        body += [f"m{i} = Mul(x{i}, c) a{i} = Add(m{i}, x{i}) t{i} = Relu(a{i})"]
        body += [f"r{i} = ReduceMean<axes=[1]>(t{i}) x{i + 1} = Concat<axis=1>(x{i}, r{i})"]
    return replace(known, body=" ".join(body), outputs=f"x{stages}")


@pytest.mark.slow
def test_a_long_chain_compiles_in_time_about_linear() -> None:
    seconds = dict[int, float]()
    for stages in (30, 60, 120):
        begin = perf_counter()
        stepwell.compile(chain(stages).model(), target="tiny", precision="fp32")
        seconds[stages] = perf_counter() - begin
    assert seconds[120] < 20
    assert seconds[120] < 3 * seconds[60]


@pytest.mark.parametrize("size", [1, 3, 4, 5, 9])
def test_a_systolic_array_of_4_by_4_takes_the_cycles_of_the_textbook(size: int) -> None:
    """Rows + columns − 2 to fill it, then one for each k and block: 4×4×4 takes 10."""
    tiny = Target.load("tiny")
    array = replace(tiny, name="array", cube_m=4, cube_n=4, cube_k_f32=1, cube_cost_f32=1, fixed_mma=6, fixed_sync=0)
    report = Report(13, f"float[{size},{size}] x", "y = MatMul(x, w)", "y", {"w": normal(size, size)})
    artifact = stepwell.compile(report.model(), target=array, precision="fp32")
    (launch,) = artifact.model.profile().launches
    blocks = -(-size // 4)
    assert launch.busy[Engine.CUBE] == 6 + blocks * blocks * size
    feeds = report.feeds({})
    assert np.allclose(artifact.model.run(feeds)["y"], feeds["x"] @ normal(size, size), 1e-5, 1e-6)


# names in a profile ---------------------------------------------------------------------------------------------------
PROFILED = {
    "blocks of a convolution": Report(
        15,
        "float[1,3,8,8] x",
        "c = Conv<pads=[1,1,1,1]>(x, w) n = BatchNormalization(c, s, o, m, q) r = Relu(n) d = Conv(r, v)"
        " k = BatchNormalization(d, s, o, m, q) l = Relu(k) p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(l)"
        " f = Flatten(p) y = Softmax(f)",
        "y",
        {"w": normal(3, 3, 3, 3), "v": normal(3, 3, 3, 3)} | {key: abs(normal(3)) + 1 for key in "somq"},
    ),
    "a product with an activation": Report(
        17,
        "float[4,8] x",
        "p = MatMul(x, w) a = Add(p, b) s = Sigmoid(a) y = Mul(a, s)",
        "y",
        {"w": normal(8, 8), "b": normal(8)},
    ),
    "a residual": Report(
        17,
        "float[4,8] x",
        "a = LayerNormalization(x, s) p = MatMul(a, w) g = Tanh(p) y = Add(g, x)",
        "y",
        {"s": normal(8), "w": normal(8, 8)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROFILED)
def test_a_profile_has_every_node_under_its_own_name(name: str) -> None:
    model = PROFILED[name].model()
    for number, node in enumerate(model.graph.node):
        node.name = f"block{number}/{node.op_type}"
    artifact = stepwell.compile(model, target="tiny", precision="fp32")
    profile = artifact.model.profile()
    found = {name for launch in profile.launches for names in launch.names for name in names}
    moved = {node.name for node in model.graph.node if node.op_type in ("Flatten", "BatchNormalization")}
    assert found | moved == {node.name for node in model.graph.node}
    assert sum(launch.cycles for launch in profile.launches) == pytest.approx(profile.cycles)


# independence of buffers ----------------------------------------------------------------------------------------------
def test_outputs_that_are_views_may_be_written() -> None:
    report = MEMORY["outputs that are views of each other"]
    feeds = report.feeds({})
    before = {name: array.copy() for name, array in feeds.items()}
    artifact = stepwell.compile(report.model(), target="tiny", precision="fp32")
    first = artifact.model.run(feeds)
    kept = {name: array.copy() for name, array in first.items()}
    for name in first:
        first[name][...] = -99
        assert all(np.array_equal(first[other], kept[other]) for other in first if other != name)
        first[name][...] = kept[name]
    for array in first.values():
        array[...] = -99
    assert all(np.array_equal(feeds[name], before[name]) for name in feeds)
    again = artifact.model.run(feeds)
    assert all(np.array_equal(again[name], kept[name]) for name in kept)


# refusals -------------------------------------------------------------------------------------------------------------
def text(body: str, opset: str = '"": 17', inputs: str = "float[4] x") -> onnx.ModelProto:
    return onnx.parser.parse_model(f"<ir_version: 8, opset_import: [{opset}]>\ngraph ({inputs}) => (y) {{ {body} }}")


def short(dims: list[int], nbytes: int) -> onnx.ModelProto:
    """A constant whose bytes are not as many as its extents say."""
    model = text("y = Add(x, short_weight)")
    model.graph.initializer.append(
        onnx.TensorProto(name="short_weight", data_type=onnx.TensorProto.FLOAT, dims=dims, raw_data=bytes(nbytes))
    )
    return model


ACME = '"": 13, "com.acme": 1, "org.lab": 1'
REFUSED: Mapping[str, tuple[onnx.ModelProto, tuple[str, ...]]] = {
    "a later opset": (text("y = Relu(x)", '"": 99'), ("99",)),
    "an opset of 0": (text("y = Relu(x)", '"": 0'), ("opset", "0")),
    "a later opset of another domain": (
        text("y = Relu(x)", '"": 17, "com.microsoft": 98'), ("98", "com.microsoft")
    ),
    "a value that nobody makes": (text("y = Add(x, missing_640)"), ("missing_640",)),
    "an output that nobody makes": (text("z = Neg(x)"), ("y",)),
    "a value that nobody makes, in a branch": (
        text(
            'z = If(c)<then_branch = g () => (float[4] a) { a = Add(x, missing_7) }, else_branch = h () => (float[4] b)'
            " { b = Neg(x) }> y = Neg(z)",
            inputs="float[4] x, bool c",
        ),
        ("missing_7",),
    ),
    "a value of two nodes": (text("dup_t = Neg(x) dup_t = Abs(x) y = Relu(dup_t)"), ("dup_t",)),
    "a value twice of one node": (text("dup_t, dup_t = Split<axis=0>(x) y = Relu(dup_t)"), ("dup_t",)),
    "a value of the name of an input": (text("x = Neg(x) y = Relu(x)"), ("x",)),
    "an axis that a number lacks": (
        text("y = LayerNormalization<axis=-3>(x, s)", inputs="float x, float[2,7] s"), ("LayerNormalization", "axis")
    ),
    "an axis behind the last": (text("y = Softmax<axis=5>(x)"), ("Softmax", "axis")),
    "a normalisation of too few axes": (
        text("y = InstanceNormalization(x, s, s)", inputs="float[3] x, float[3] s"), ("InstanceNormalization",)
    ),
    "too few bytes": (short([4], 8), ("short_weight", "[4]", "size 2")),
    "too many bytes": (short([2], 16), ("short_weight", "[2]", "size 4")),
    "an extent below 0": (short([-4], 16), ("short_weight", "-4")),
    "operators of others": (
        text("a = com.acme.FancyPool(x) b = Neg(a) d = org.lab.Warp(b) y = org.lab.Warp(d)", ACME),
        ("FancyPool", "Warp"),
    ),
    "operators of others, in a branch": (
        text(
            "a = com.acme.FancyPool(x) y = If(c)<then_branch = g () => (float[4] p) { p = com.acme.Deep(x) },"
            " else_branch = h () => (float[4] q) { q = org.lab.Warp(x) }>",
            ACME,
            "float[4] x, bool c",
        ),
        ("FancyPool", "Deep", "Warp"),
    ),
    "operators of others, behind one": (
        text("a = com.acme.First(x) y = com.acme.Second(a)", ACME), ("First", "Second")
    ),
    "letters that no input has": (text("y = Einsum<equation=\"i,j->z\">(x, x)"), ("Einsum",)),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_that_is_wrong_is_refused_by_name(name: str) -> None:
    model, mentioned = REFUSED[name]
    with pytest.raises(ValueError, match="found") as error:
        stepwell.compile(model, target="tiny")
    told = "\n".join(describe(error.value).problems)
    assert all(word in told for word in mentioned), told


CONTRADICTIONS = {
    "another extent": ("bad_out = Relu(x)", "float[2,4] bad_out", (2, 3)),
    "another rank": ("bad_out = Transpose(x)", "float[6] bad_out", (3, 2)),
    "an extent of a reduction": ("bad_out = ReduceMax<axes=[1], keepdims=1>(x)", "float[2,3] bad_out", (2, 1)),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_an_output_that_is_declared_wrongly_has_its_true_shape_or_is_refused(name: str) -> None:
    body, declared, shape = CONTRADICTIONS[name]
    source = f'<ir_version: 8, opset_import: ["": 17]>\ngraph (float[2,3] x) => ({declared}) {{ {body} }}'
    assert _outcome(onnx.parser.parse_model(source)) in (shape, "refused")


def _outcome(model: onnx.ModelProto) -> tuple[int, ...] | str:
    """The shape of the result, or that it was refused by its name."""
    try:
        artifact = stepwell.compile(model, target="tiny")
    except ValueError as error:
        return "refused" if "bad_out" in str(error) else str(error)
    return artifact.model.run({"x": normal(2, 3)})["bad_out"].shape
