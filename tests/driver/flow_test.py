"""Branches and loops that values decide: functions of the module, whose launches the runtime sequences."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from flow_tools import BOTH, X, agree, kinds, nodes_on_cpu
from onnx_models import text_model
from xdsl.dialects.func import FuncOp

import stepwell
from stepwell.driver import api
from stepwell.runtime.artifact import Artifact, load
from stepwell.runtime.steps import Branch, every

pytestmark = pytest.mark.xdist_group("device")
# If -------------------------------------------------------------------------------------------------------------------
CHOICE = "r = Relu(x) s = ReduceSum<keepdims = 0>(x) c = Greater(s, zero) "
ZERO, W = np.array(0, np.float32), np.array([0.5, 1, 2], np.float32)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_branch_takes_values_around_it(precision: str) -> None:
    model = text_model(
        CHOICE
        + """y = If (c) <
            then_branch = t () => (float[2,3] a) { p = Add(r, w) a = Exp(p) },
            else_branch = e () => (float[2,3] b) { q = Mul(x, w) b = Tanh(q) }>
        z = Neg(y)""",
        "float[2,3] x",
        "float[2,3] z",
        zero=ZERO,
        w=W,
    )
    artifact = agree(model, *({"x": x} for x in BOTH), precision=precision)
    assert kinds(artifact) == {"Branch"}
    assert artifact.host == ()


def test_a_branch_may_pass_on_what_it_takes() -> None:
    model = text_model(
        CHOICE
        + """y, v = If (c) <
            then_branch = t () => (float[2,3] a, float[2,3] b) { a = Identity(r) b = Identity(x) },
            else_branch = e () => (float[2,3] d, float[2,3] f) { d = Identity(x) f = Identity(x) }>""",
        "float[2,3] x",
        "float[2,3] y, float[2,3] v",
        zero=ZERO,
    )
    assert kinds(agree(model, *({"x": x} for x in BOTH))) == {"Branch"}


def test_a_branch_may_give_constants() -> None:
    model = text_model(
        CHOICE
        + """y, n = If (c) <
            then_branch = t () => (float[3] a, int64 b) { a = Identity(w) b = Constant<value_int = 7>() },
            else_branch = e () => (float[3] d, int64 f) { d = Neg(w) f = Constant<value_int = -7>() }>
        k = Mul(n, n)""",
        "float[2,3] x",
        "float[3] y, int64 n, int64 k",
        zero=ZERO,
        w=W,
    )
    agree(model, *({"x": x} for x in BOTH))


def test_branches_of_branches() -> None:
    model = text_model(
        CHOICE
        + """m = ReduceMax<keepdims = 0>(x) d = Greater(m, two)
        y = If (c) <
            then_branch = t () => (float[2,3] a) {
                a = If (d) <
                    then_branch = tt () => (float[2,3] aa) { aa = Add(r, w) },
                    else_branch = te () => (float[2,3] ab) { ab = Sub(r, w) }> },
            else_branch = e () => (float[2,3] b) { b = Mul(x, w) }>""",
        "float[2,3] x",
        "float[2,3] y",
        zero=ZERO,
        two=np.array(2, np.float32),
        w=W,
    )
    artifact = agree(model, {"x": X}, {"x": -X}, {"x": np.full_like(X, 0.5)})
    assert sum(isinstance(step, Branch) for step in every(artifact.plans[0].steps)) == 2


def test_shapes_that_differ_are_held_by_the_cpu() -> None:
    model = text_model(
        CHOICE
        + """y = If (c) <
            then_branch = t () => (float[p, 3] a) { a = Concat<axis = 0>(r, x) },
            else_branch = e () => (float[q, 3] b) { b = Neg(x) }>""",
        "float[2,3] x",
        "float[n,3] y",
        zero=ZERO,
    )
    artifact = agree(model, *({"x": x} for x in BOTH))
    assert kinds(artifact) == {"Branch"}
    assert nodes_on_cpu(artifact) == []


def test_a_branch_with_a_node_on_the_cpu() -> None:
    model = text_model(
        CHOICE
        + """y = If (c) <
            then_branch = t () => (float[2,3] a) {
                i = NonZero(x) k = Shape(i) n = Gather(k, one) f = Cast<to = 1>(n) g = MatMul(x, sq) a = Mul(g, f) },
            else_branch = e () => (float[2,3] b) { b = Neg(x) }>""",
        "float[2,3] x",
        "float[2,3] y",
        zero=ZERO,
        one=np.array(1),
        sq=np.arange(9, dtype=np.float32).reshape(3, 3),
    )
    artifact = agree(model, *({"x": x} for x in BOTH))
    assert kinds(artifact) == {"Branch"}
    assert not any(node.startswith("MatMul") for node in nodes_on_cpu(artifact))


# Loop -----------------------------------------------------------------------------------------------------------------
TRUE, ZERO_INT = np.array(True), np.array(0)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_states_that_change_places_until_a_condition_fails(precision: str) -> None:
    model = text_model(
        """r = Relu(x)
        y, n, a, b = Loop (, true, r, zero, x, r) <body = g
            (int64 i, bool ci, float[2,3] st, int64 k, float[2,3] p, float[2,3] q) =>
            (bool co, float[2,3] st2, int64 k2, float[2,3] p2, float[2,3] q2) {
                st2 = Mul(st, half) m = ReduceMax<keepdims = 0>(st2) co = Greater(m, one) k2 = Add(k, i)
                p2 = Identity(q) q2 = Add(p, st2) }>""",
        "float[2,3] x",
        "float[2,3] y, int64 n, float[2,3] a, float[2,3] b",
        true=TRUE,
        zero=ZERO_INT,
        half=np.array(0.5, np.float32),
        one=np.array(1, np.float32),
    )
    artifact = agree(model, {"x": X * 20}, {"x": X}, precision=precision)
    assert kinds(artifact) == {"Repeat"}
    assert artifact.host == ()


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_count_that_is_an_input(count: int) -> None:
    model = text_model(
        """y = Loop (n, , x) <body = g (int64 i, bool ci, float[2,3] s) => (bool co, float[2,3] t) {
            co = Identity(ci) f = Cast<to = 1>(i) u = Add(s, f) t = Mul(u, w) }>""",
        "int64 n, float[2,3] x",
        "float[2,3] y",
        w=W,
    )
    artifact = agree(model, {"n": np.array(count), "x": X})
    assert kinds(artifact) == {"Repeat"}


def test_a_condition_that_is_false_at_first() -> None:
    model = text_model(
        """y = Loop (, c, x) <body = g (int64 i, bool ci, float[2,3] s) => (bool co, float[2,3] t) {
            t = Neg(s) z = ReduceMin<keepdims = 0>(t) co = Greater(z, zero) }>""",
        "bool c, float[2,3] x",
        "float[2,3] y",
        zero=ZERO,
    )
    agree(model, {"c": np.array(False), "x": X}, {"c": np.array(True), "x": X})


def test_loops_in_branches_in_loops() -> None:
    model = text_model(
        """y = Loop (n, , x) <body = g (int64 i, bool ci, float[2,3] s) => (bool co, float[2,3] t) {
            co = Identity(ci) m = ReduceSum<keepdims = 0>(s) c = Greater(m, zero)
            t = If (c) <
                then_branch = tb () => (float[2,3] a) {
                    a = Loop (i, , s) <body = h (int64 j, bool cj, float[2,3] u) => (bool ck, float[2,3] v) {
                        ck = Identity(cj) v = Sub(u, w) }> },
                else_branch = eb () => (float[2,3] b) { b = Neg(s) }> }>""",
        "int64 n, float[2,3] x",
        "float[2,3] y",
        zero=ZERO,
        w=W,
    )
    artifact = agree(model, {"n": np.array(4), "x": X}, {"n": np.array(3), "x": -X})
    assert kinds(artifact) == {"Branch", "Repeat"}


def test_a_state_that_only_the_cpu_holds() -> None:
    model = text_model(
        """y, z = Loop (n, , x, d) <body = g (int64 i, bool ci, float[2,3] s, double[3] e) =>
                (bool co, float[2,3] t, double[3] f) { co = Identity(ci) t = Mul(s, w) f = Add(e, e) }>""",
        "int64 n, float[2,3] x, double[3] d",
        "float[2,3] y, double[3] z",
        w=W,
    )
    artifact = agree(model, {"n": np.array(3), "x": X, "d": np.array([1e-300, 1, 2])})
    assert nodes_on_cpu(artifact) == ["Add_3"]
    assert kinds(artifact) == {"Repeat"}


def test_a_state_that_decides_is_read_before_the_next_one_is_there() -> None:
    model = text_model(
        """y = Loop (n, , q) <body = g (int64 i, bool ci, bool s) => (bool co, bool t) {
            co = Identity(s) t = Not(s) }>""",
        "int64 n, bool q",
        "bool y",
    )
    artifact = agree(model, *({"n": np.array(n), "q": np.array(q)} for n in (0, 1, 4) for q in (True, False)))
    assert kinds(artifact) == {"Repeat"}


DOUBLES = np.array([1.0, 2, 3])
ON_CPU: dict[str, tuple[str, str, str, dict[str, Any], list[str]]] = {
    "a condition": (
        "double[3] p) => (bool co, double[3] q) { q = Add(p, p) m = ReduceMax(q) co = Less(m, k) }",
        "double[3] a",
        "double[3] y",
        {"k": np.array(20.0)},
        ["Add_1", "ReduceMax_2", "Less_3"],
    ),
    "a state that is a constant": (
        "double[3] p) => (bool co, double[3] q) { co = Identity(ci) q = Identity(k) }",
        "double[3] a",
        "double[3] y",
        {"k": DOUBLES},
        ["q"],
    ),
    "texts": (
        "string[2] p) => (bool co, string[2] q) { co = Identity(ci) q = StringConcat(p, k) }",
        "string[2] a",
        "string[2] y",
        {"k": np.array(["u", "v"], np.object_)},
        ["StringConcat_2"],
    ),
}


@pytest.mark.parametrize("name", ON_CPU)
def test_what_the_cpu_holds_in_a_loop(name: str) -> None:
    body, inputs, outputs, constants, nodes = ON_CPU[name]
    first = np.array(["p", "q"], np.object_) if "string" in inputs else DOUBLES + 4
    loop = f"y = Loop (n, , a) <body = g (int64 i, bool ci, {body}>"
    model = text_model(loop, f"int64 n, {inputs}", outputs, opset=20, **constants)
    artifact = agree(model, *({"n": np.array(n), "a": first} for n in (0, 1, 3, 9)))
    assert kinds(artifact) == {"Repeat"}
    assert nodes_on_cpu(artifact) == nodes


def test_first_states_that_are_constants_of_the_cpu() -> None:
    model = text_model(
        """y = Loop (n, , k) <body = g (int64 i, bool ci, double[3] p) => (bool co, double[3] q) {
            co = Identity(ci) q = Add(p, a) }>""",
        "int64 n, double[3] a",
        "double[3] y",
        k=DOUBLES,
    )
    artifact = agree(model, *({"n": np.array(n), "a": DOUBLES} for n in (0, 2)))
    assert nodes_on_cpu(artifact) == ["p", "Add_2"]


def test_a_truth_value_of_the_cpu_becomes_a_state_of_the_device() -> None:
    model = text_model(
        """y, f = Loop (n, , a, x) <body = g (int64 i, bool ci, double[3] p, bool s) => (bool co, double[3] q, bool t) {
            co = Identity(s) q = Add(p, p) m = ReduceMax<keepdims = 0>(q) t = Less(m, k) }>""",
        "int64 n, double[3] a, bool x",
        "double[3] y, bool f",
        k=np.array(20.0),
    )
    given = [{"n": np.array(n), "a": DOUBLES, "x": np.array(x)} for n in (0, 1, 9) for x in (True, False)]
    assert kinds(agree(model, *given)) == {"Repeat"}


def test_a_branch_may_give_nothing() -> None:
    model = text_model(
        """y = If (c) <
            then_branch = t () => (float[0] a) { a = Identity(none) },
            else_branch = e () => (float[1] b) { b = Neg(k) }> z = ReduceSum(y)""",
        "bool c, float[1] k",
        "float[m] y, float[1] z",
        none=np.zeros(0, np.float32),
    )
    artifact = agree(model, *({"c": np.array(c), "k": W[1:2]} for c in (True, False)))
    assert kinds(artifact) == {"Branch"}


def test_steps_that_were_tried_leave_nothing_behind() -> None:
    model = text_model(
        """y = Loop (n, , x) <body = g (int64 i, bool ci, float[2,3] s) => (bool co, float[2,3] t) {
            co = Identity(ci) m = ReduceSum<keepdims = 0>(s) c = Less(m, big)
            t = If (c) <
                then_branch = tb () => (float[2,3] a) { a = Mul(s, w) },
                else_branch = eb () => (float[2,3] b) { b = Neg(s) }> }>""",
        "float[2,3] x",
        "float[2,3] y",
        n=np.array(70),
        w=W,
        big=np.array(100, np.float32),
    )
    artifact = agree(model, {"x": X}, {"x": X * 50})
    module = api.lower(model, to="graph", target="tiny", precision="fp32")
    names = {op.sym_name.data for op in module.ops if isinstance(op, FuncOp)}
    assert len({name for name in names if name.startswith(("body", "branch"))}) == 3
    assert [launch.nodes for launch in artifact.plans[0].launches][-1] == (("Neg_6",),)


def test_no_node_takes_the_name_of_another() -> None:
    model = text_model(
        """y = If (c) <
            then_branch = t () => (double[3] a) { a = Neg(x) },
            else_branch = e () => (double[3] b) { b = Exp(x) }> z = Neg(y)""",
        "bool c, double[3] x",
        "double[3] z",
    )
    assert model.graph.node[1].name == "Neg_1", "as the first node of a branch would be called, being the second"
    artifact = agree(model, {"c": np.array(True), "x": DOUBLES})
    assert nodes_on_cpu(artifact) == ["Neg_1_2", "Exp_2", "Neg_1"]


# many known steps -----------------------------------------------------------------------------------------------------
def test_a_long_loop_whose_results_grow() -> None:
    model = text_model(
        """y, v, c = Loop (n, , x) <body = g
            (int64 i, bool ci, float[2,3] s) => (bool co, float[2,3] t, float[2,3] u, int64 j) {
            co = Identity(ci) t = Mul(s, w) u = Neg(t) j = Mul(i, i) }>""",
        "float[2,3] x",
        "float[2,3] y, float[70,2,3] v, int64[70] c",
        n=np.array(70),
        w=np.array(0.99, np.float32),
    )
    artifact = agree(model, {"x": X})
    assert kinds(artifact) == {"Repeat"}
    assert len(artifact.plans[0].launches) < 20


@pytest.mark.parametrize("kind", ["float", "float16", "bool", "int8", "uint16", "int64"])
def test_rows_of_one_number(kind: str) -> None:
    model = text_model(
        f"""y, v, e = Loop (n, , x) <body = g
            (int64 i, bool ci, {kind}[3] s) => (bool co, {kind}[3] t, {kind}[3] u, {kind} r) {{
            co = Identity(ci) t = Identity(s) u = Identity(s) r = Gather(s, one) }}>""",
        f"{kind}[3] x",
        f"{kind}[3] y, {kind}[66,3] v, {kind}[66] e",
        n=np.array(66),
        one=np.array(1),
    )
    dtype = onnx.helper.tensor_dtype_to_np_dtype(model.graph.input[0].type.tensor_type.elem_type)
    artifact = agree(model, {"x": np.array([1, 0, 3]).astype(dtype)})
    assert kinds(artifact) == {"Repeat"}


@pytest.mark.parametrize("backward", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_long_scan(axis: int, backward: int) -> None:
    size = "70,4" if axis == 0 else "4,70"
    model = text_model(
        f"""h, y = Scan <num_scan_inputs = 1, scan_input_axes = [{axis}], scan_input_directions = [{backward}],
            scan_output_axes = [{axis}], scan_output_directions = [{1 - backward}],
            body = g (float[4] s, float[4] e) => (float[4] t, float[4] o) {{
                u = Mul(s, half) t = Add(u, e) o = Tanh(t) }}> (s, x)""",
        f"float[4] s, float[{size}] x",
        f"float[4] h, float[{size}] y",
        half=np.array(0.5, np.float32),
    )
    x = np.random.default_rng(3).standard_normal([70, 4] if axis == 0 else [4, 70]).astype(np.float32)
    artifact = agree(model, {"s": np.ones(4, np.float32), "x": x})
    assert kinds(artifact) == {"Repeat"}


# what a run says ------------------------------------------------------------------------------------------------------
def counted(precision: str = "fp32") -> Artifact:
    model = text_model(
        """y = Loop (n, , x) <body = g (int64 i, bool ci, float[2,3] s) => (bool co, float[2,3] t) {
            co = Identity(ci) t = Mul(s, w) }>""",
        "int64 n, float[2,3] x",
        "float[2,3] y",
        w=W,
    )
    return api.compile(model, target="tiny", precision=precision)


def test_a_profile_counts_what_was_taken() -> None:
    artifact = counted()
    cycles = list[float]()
    for count in (1, 2, 6):
        stepwell.run(artifact, {"n": np.array(count), "x": X})
        profile = artifact.model.profile()
        assert [launch.nodes for launch in profile.launches].count(("Mul_0",)) in (0, count)
        assert profile.host_share == 0
        assert profile.copy_cycles > 0
        assert profile.cycles == pytest.approx(sum(each.cycles for each in profile.launches) + profile.copy_cycles)
        cycles.append(profile.cycles)
    assert cycles[2] - cycles[1] == pytest.approx(4 * (cycles[1] - cycles[0]))


def test_overflows_of_all_steps_are_counted() -> None:
    artifact = counted("fp16")
    stepwell.run(artifact, {"n": np.array(3), "x": np.full((2, 3), 60000, np.float32)})
    (sticky,) = artifact.model.sticky()
    assert sticky.overflow == 2, "60000 · 2 in the first step; infinities stay what they are"


def test_a_saved_model_decides_as_before(tmp_path: Path) -> None:
    artifact = counted()
    artifact.save(tmp_path / "m.stw")
    again = load(tmp_path / "m.stw")
    assert again.plans == artifact.plans
    for count in (0, 3):
        given = {"n": np.array(count), "x": X}
        np.testing.assert_array_equal(stepwell.run(again, given)["y"], stepwell.run(artifact, given)["y"])
