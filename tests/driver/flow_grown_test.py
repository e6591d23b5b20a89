"""Loops whose results grow by data: the CPU holds them, the device makes their rows."""

from pathlib import Path

import numpy as np
import pytest
from flow_tools import X, agree, kinds, nodes_on_cpu, same
from onnx_models import text_model

import stepwell
from stepwell.driver.assess import assess
from stepwell.runtime.artifact import load
from stepwell.runtime.steps import HostCall, Repeat

pytestmark = pytest.mark.xdist_group("device")
W = np.array([0.5, 1, 2], np.float32)

GROWN: dict[str, tuple[str, str, list[str]]] = {
    "a tensor": ("float[2,3] u) { co = Identity(ci) t = Mul(s, w) u = Neg(t) }", "float[k,2,3] v", ["v"] * 3),
    "the state": ("float[2,3] t) { co = Identity(ci) t = Mul(s, w) }", "float[k,2,3] v", ["v"] * 3),
    "the number of the step": ("int64 u) { co = Identity(ci) t = Mul(s, w) u = Identity(i) }", "int64[k] v", ["v"] * 3),
    "truth values": ("bool[2,3] u) { co = Identity(ci) t = Mul(s, w) u = Less(t, s) }", "bool[k,2,3] v", ["v"] * 3),
    "a constant": (
        "float[3] u) { co = Identity(ci) t = Mul(s, w) u = Identity(w) }",
        "float[k,3] v",
        ["v", "u", "v", "v"],
    ),
    "a condition": (
        "float m) { t = Mul(s, w) m = ReduceMax<keepdims = 0>(t) co = Less(m, limit) }",
        "float[k] v",
        ["v"] * 3,
    ),
    "a value of the CPU": (
        "double[2,3] u) { co = Identity(ci) t = Mul(s, w) u = Cast<to = 11>(t) }",
        "double[k,2,3] v",
        ["v", "Cast_3"],
    ),
}
"""What is behind a body's states, the result, and nodes on the CPU, among others."""


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("name", GROWN)
def test_results_that_grow_by_data_are_held_by_the_cpu_and_made_by_the_device(name: str, precision: str) -> None:
    rows, result, on_cpu = GROWN[name]
    model = text_model(
        f"""y, v = Loop (n, , x) <body = g (int64 i, bool ci, float[2,3] s) => (bool co, float[2,3] t, {rows}>
            z = Identity(v)""",
        "int64 n, float[2,3] x",
        f"float[2,3] y, {result.replace(' v', ' z')}",
        w=W * 1.25,
        limit=np.array(4, np.float32),
    )
    artifact = agree(model, *({"n": np.array(n), "x": X} for n in (0, 1, 2, 7)), precision=precision)
    assert kinds(artifact) == {"Repeat"}
    found = nodes_on_cpu(artifact)
    assert set(on_cpu) <= set(found)
    assert not [name for name in found if name.startswith(("Mul", "Neg", "Less", "Loop"))]


@pytest.mark.parametrize("kind", ["float", "int64"])
def test_the_device_has_room_for_the_rows_of_a_loop_of_few_steps(kind: str) -> None:
    """As a decoder that stops by itself: the number of steps is bounded, and only rows that were made come out."""
    row = {"float": "u = Neg(t)", "int64": "l = Cast <to = 7> (t) u = Add(l, l)"}[kind]
    model = text_model(
        f"""y, v = Loop (five, begin, x) <body = g (int64 i, bool ci, float[2,3] s) =>
            (bool co, float[2,3] t, {kind}[2,3] u)
            {{ t = Add(s, w) {row} m = ReduceMax <keepdims = 0> (t) co = Less(m, limit) }}> z = Identity(v)""",
        "bool begin, float[2,3] x",
        f"float[2,3] y, {kind}[k,2,3] z",
        w=np.ones(3, np.float32),
        five=np.array(5),
        limit=np.array(4, np.float32),
    )
    for precision in ("fp32", "fp16"):
        begun = ({"begin": np.array(True), "x": np.full((2, 3), start, np.float32)} for start in (-9, 0, 1, 3, 8))
        none = {"begin": np.array(False), "x": X}
        artifact = agree(model, *begun, none, precision=precision)
        assert sorted({node.operator for part in artifact.host for node in part.nodes}) == ["Reshape", "Slice"]
        (repeat,) = (step for step in artifact.plans[0].steps if isinstance(step, Repeat))
        assert not any(isinstance(step, HostCall) for step in repeat.steps)


def test_a_saved_loop_whose_results_grow_by_data(tmp_path: Path) -> None:
    rows, result, _ = GROWN["a tensor"]
    model = text_model(
        f"y, v = Loop (n, , x) <body = g (int64 i, bool ci, float[2,3] s) => (bool co, float[2,3] t, {rows}>",
        "int64 n, float[2,3] x",
        f"float[2,3] y, {result}",
        w=W,
    )
    given = {"n": np.array(3), "x": X}
    artifact = agree(model, given)
    artifact.save(tmp_path / "m.stw")
    again = stepwell.run(load(tmp_path / "m.stw"), given)
    for name, value in stepwell.run(artifact, given).items():
        same(again[name], value, exact=True)
    nodes = {node.name: node.kind for node in assess(model, target="tiny").nodes}
    assert nodes == {"Loop_0": "decomposed", "Identity_1": "native", "Mul_2": "native", "Neg_3": "native"}


def test_rows_whose_extents_values_decide_leave_a_loop_to_the_cpu() -> None:
    model = text_model(
        """y, v = Loop (n, , x) <body = g (int64 i, bool ci, float[2,3] s) => (bool co, float[2,3] t, int64[2,m] u) {
            co = Identity(ci) t = Mul(s, w) u = NonZero(t) }>""",
        "int64 n, float[2,3] x",
        "float[2,3] y, int64[k,2,m] v",
        w=W,
    )
    artifact = agree(model, {"n": np.array(3), "x": X})
    assert nodes_on_cpu(artifact) == ["Loop_0"]


def test_a_loop_that_grows_in_a_loop_that_grows() -> None:
    model = text_model(
        """y, v = Loop (n, , x) <body = g (int64 i, bool ci, float[2,3] s) => (bool co, float[2,3] t, float[2,3] r) {
            co = Identity(ci)
            t, u = Loop (n, , s) <body = h (int64 j, bool cj, float[2,3] a) => (bool ck, float[2,3] b, float[2,3] e) {
                ck = Identity(cj) b = Mul(a, w) e = Neg(b) }>
            r = ReduceSum<keepdims = 0>(u, axes) }>""",
        "int64 n, float[2,3] x",
        "float[2,3] y, float[k,2,3] v",
        w=W,
        axes=np.array([0]),
    )
    artifact = agree(model, *({"n": np.array(n), "x": X} for n in (1, 3)))
    assert kinds(artifact) == {"Repeat"}
    assert not [name for name in nodes_on_cpu(artifact) if name.startswith(("Mul", "Neg", "Loop"))]
