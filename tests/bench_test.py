"""The bounds of the benchmark, by hand, and what it says of where cycles go."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_models import ModelWriter

from stepwell.bench import measure, models, onnx_graph, run
from stepwell.bench.bounds import Bounds, Machine, bounds, partition
from stepwell.driver import api
from stepwell.runtime.target import Target

EDGE = Target.load("edge")
ONE = Machine.of(EDGE, cores=1)
SMALL = {"size": 64, "layers": (1, 1, 1, 2), "width": 16, "classes": 50}
BERT = {"seq": 24, "layers": 2, "hidden": 64, "heads": 4, "vocabulary": 100}


def of(model: onnx.ModelProto, machine: Machine = ONE) -> Bounds:
    return bounds(onnx_graph.read(model), machine)


def operators(found: Bounds) -> list[str]:
    return [" ".join(node.operator for node in kernel.nodes) for kernel in found.kernels]


def test_rates_are_those_of_the_cores_in_use() -> None:
    assert (ONE.macs, ONE.depthwise, ONE.vector_bytes) == (4096, 256, 256)
    both = Machine.of(EDGE)
    assert (both.macs, both.vector_bytes, both.gm_bytes) == (8192, 512, min(EDGE.gm_port, 2 * EDGE.gm_path))
    assert (Machine.of(EDGE, 1, "fp32").macs, Machine.of(EDGE, 1, "fp32").size) == (1024, 4)


def test_a_product_takes_bias_activation_and_add_along() -> None:
    w = ModelWriter()
    y = w.node("Add", w.node("MatMul", "x", w.weight(64, 96)), w.constant(np.ones(96, np.float32)))
    y = w.node("Add", w.node("Relu", y), "r")
    found = of(w.model({"x": [32, 64], "r": [32, 96]}, [y]))
    (kernel,) = found.kernels
    assert operators(found) == ["MatMul Add Relu Add"]
    assert (kernel.macs, kernel.depthwise) == (32 * 64 * 96, 0)
    assert kernel.gm_bytes == 2 * (32 * 64 + 64 * 96 + 96 + 32 * 96 + 32 * 96)
    assert kernel.vector_bytes == 2 * 32 * 96  # of the add; bias and ReLU are the drain's
    assert found.compulsory == kernel.gm_bytes
    needs = kernel.needs(ONE)
    assert needs == {"cube": 48.0, "gm": kernel.gm_bytes / 128, "vector": 24.0}
    assert found.a == kernel.roofline(ONE) == needs["gm"] == found.b


def test_views_and_constants_cost_nothing() -> None:
    w = ModelWriter()
    table = w.node("Exp", w.constant(np.ones((8, 4), np.float32)))
    y = w.node("Reshape", w.node("Transpose", w.node("Relu", "x"), perm=[1, 0]), w.constant(np.array([8, 4])))
    y = w.node("Slice", w.node("Mul", y, table), w.constant(np.array([0])), w.constant(np.array([2])))
    found = of(w.model({"x": [4, 8]}, [w.node("Concat", y, y, axis=0)]))
    assert operators(found) == ["Relu Mul"]
    assert found.kernels[0].gm_bytes == 2 * (32 + 32 + 32)  # x, the folded table, the product


def test_an_operand_is_read_once_and_no_more_than_is_shown_of_it() -> None:
    w = ModelWriter()
    y = w.node("MatMul", "x", w.weight(16, 48))
    parts = [w.node("Slice", y, *(w.constant(np.array([v])) for v in (16 * i, 16 * i + 16, 1))) for i in range(2)]
    product = w.node("MatMul", parts[0], w.node("Transpose", parts[1], perm=[1, 0]))
    found = of(w.model({"x": [8, 16]}, [w.node("Softmax", product)]))
    first, second, third = found.kernels
    assert first.gm_bytes == 2 * (8 * 16 + 16 * 48 + 8 * 48)
    assert second.gm_bytes == 2 * (2 * 8 * 16 + 8 * 8)
    assert third.gm_bytes == 2 * (2 * 8 * 8)
    assert third.vector_bytes == 4 * 8 * 8 * 11  # f32 inside; max, sub, exp (4), sum, div (4)


def test_depthwise_products_have_a_rate_of_their_own() -> None:
    w = ModelWriter()
    y = w.node("Conv", "x", w.weight(32, 1, 3, 3), group=32, pads=[1, 1, 1, 1])
    found = of(w.model({"x": [1, 32, 8, 8]}, [w.node("Conv", y, w.weight(16, 32, 1, 1))]))
    first, second = found.kernels
    assert (first.macs, first.depthwise) == (0, 32 * 64 * 9)
    assert first.needs(ONE)["cube"] == 32 * 64 * 9 / 256
    assert (second.macs, second.depthwise) == (16 * 64 * 32, 0)
    assert found.macs == 32 * 64 * 9 + 16 * 64 * 32


def test_only_the_rows_that_are_gathered_are_read() -> None:
    found = of(models.build("bert", **BERT))
    gathers = [kernel for kernel in found.kernels if any(node.operator == "Gather" for node in kernel.nodes)]
    assert sum(kernel.gm_bytes for kernel in gathers) < 2 * 24 * 64 * 8
    other = of(models.build("bert", **BERT | {"vocabulary": 10_000}))
    assert (other.a, other.compulsory) == (found.a, found.compulsory)


def test_a_norm_in_parts_has_the_kernels_of_the_norm() -> None:
    whole, parts = (of(models.build("bert", norm_as_op=as_op, **BERT)) for as_op in (True, False))
    assert len(whole.kernels) == len(parts.kernels)
    assert whole.macs == parts.macs
    assert sum(k.gm_bytes for k in parts.kernels) == pytest.approx(sum(k.gm_bytes for k in whole.kernels), rel=1e-3)
    assert parts.a == pytest.approx(whole.a, rel=0.15)


def test_the_square_under_a_root_mean_belongs_to_the_norm() -> None:
    found = of(models.build("llama", seq=16, hidden=64, heads=8, kv_heads=2, inner=128))
    norms = [kernel for kernel in operators(found) if "ReduceMean" in kernel]
    assert norms == ["Pow ReduceMean Add Sqrt Div Mul Mul"] * 2


@pytest.mark.parametrize(("name", "giga", "kernels"), [("resnet50", 4.089, 56), ("mobilenetv2", 0.3008, 54)])
def test_the_work_is_that_of_the_publications(name: str, giga: float, kernels: int) -> None:
    found = of(models.build(name))
    assert found.macs / 1e9 == pytest.approx(giga, rel=1e-3)
    assert len(found.kernels) == kernels  # convolutions, pools, classifier
    assert found.b < found.a


def test_bert_layers_have_eleven_kernels() -> None:
    one, two = (partition(onnx_graph.read(models.build("bert", **BERT | {"layers": n}))) for n in (1, 2))
    assert len(two) - len(one) == 11  # 6 products, 2 of attention, softmax, 2 norms


def test_an_unknown_operator_is_named() -> None:
    w = ModelWriter()
    model = w.model({"x": [1, 4, 4]}, [w.node("Det", "x", name="it")])
    with pytest.raises(onnx_graph.GraphError, match="it: the vector passes of Det must be known"):
        of(model)


def test_shapes_that_depend_on_values_are_those_of_a_run() -> None:
    w = ModelWriter()
    rest = w.node("Slice", w.node("Shape", "x"), *(w.constant(np.array([v])) for v in (1, 3)))
    shape = w.node("Concat", w.constant(np.array([-1])), w.node("Abs", rest), axis=0)
    y = w.node("Relu", w.node("Reshape", "x", shape))
    model = w.model({"x": ["n", 2, 3]}, [y])
    graph = onnx_graph.read(model, {"x": (5, 2, 3)})
    assert graph.nodes[-1].outputs[0].shape == (5, 2, 3)


@pytest.fixture(scope="module")
def times(tmp_path_factory: pytest.TempPathFactory) -> measure.Times:
    file = tmp_path_factory.mktemp("bench") / "small.onnx"
    onnx.save(models.build("resnet50", **SMALL), file)
    return measure.time_file(file, {}, api.compile(file, target="edge"), "fp16")


def test_no_program_is_faster_than_bound_b(times: measure.Times) -> None:
    assert 0 < times.bounds.b <= times.profile.cycles
    found = times.metrics()
    assert found["A %"] == pytest.approx(100 * times.bounds.a / (1000 * found["kilocycles"]))
    assert found["GM bytes / compulsory"] >= 1


def test_causes_add_up_to_the_time(times: measure.Times) -> None:
    for engine in measure.Engine:
        assert sum(times.lost(engine).values()) == pytest.approx(1, abs=1e-6)


def test_kernels_add_up_to_the_plan(times: measure.Times) -> None:
    rows, left = measure.by_kernel(times)
    assert sum(row.cycles for row in rows) == pytest.approx(times.profile.cycles)
    assert sum(row.roofline for row in rows) + left == pytest.approx(times.bounds.a)
    assert left == 0
    assert [row.lost for row in rows] == sorted((row.lost for row in rows), reverse=True)
    text = run.show_kernels(times, 5)
    assert rows[0].kernel in text.splitlines()[1]


def test_the_last_measurement_of_each_case_is_found(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    assert run.last_results(history) == {}
    history.write_text(json.dumps({"metrics": {"of an older form": 1}}) + "\n")
    run.record(history, {"a": {"x": 1.0, "y": 2.0}, "b": {"x": 3.0}}, 5)
    run.record(history, {"a": {"x": 4.0}}, 5)
    assert run.last_results(history) == {"a": {"x": 4.0, "y": 2.0}, "b": {"x": 3.0}}
    assert "+300.0 %" in run.show_changes({"a": {"x": 4.0}}, {"a": {"x": 1.0}})


@pytest.mark.slow
def test_a_case_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STEPWELL_CACHE", str(tmp_path))
    monkeypatch.setitem(models.MODELS, "resnet50", lambda **options: models.convnets.resnet50(**SMALL, **options))  # pyright: ignore[reportArgumentType]
    case = measure.Case("resnet50", "edge", batch=2, cores=1)
    found, _ = run.measure(case, 1)
    assert found["cosine"] > 0.9995
    assert found["same top-1 %"] == 100
    assert found["compile CPU s"] > 0
    assert found["peak MB"] > 10


def test_a_model_that_cannot_be_compiled_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "det.onnx"
    w = ModelWriter()
    onnx.save(w.model({"x": [1, 4, 4]}, [w.node("Unique", "x", name="it")]), file)
    monkeypatch.setattr(measure.Case, "file", file)
    with pytest.raises(measure.CompileError, match=r"^it: .*Unique"):
        measure.compile_case(measure.Case("bert"))
