"""Cutting ONNX models: who reads what, what lies between values, and branches in place of an If."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from stepwell.dialects.graph.host_model import free_names
from stepwell.frontend.cut import Border, Wiring, count_nodes, read_by
from stepwell.frontend.hoist import flattened

INFO = helper.make_tensor_value_info


def graph_of(name: str, output: str, *nodes: onnx.NodeProto, own: tuple[str, ...] = ()) -> onnx.GraphProto:
    tensors = [numpy_helper.from_array(np.ones(2, np.float32), each) for each in own]
    return helper.make_graph(list(nodes), name, [], [INFO(output, TensorProto.FLOAT, None)], tensors)


def choose(condition: str, output: str, then: onnx.GraphProto, other: onnx.GraphProto, name: str) -> onnx.NodeProto:
    branches: dict[str, Any] = {"then_branch": then, "else_branch": other}
    return helper.make_node("If", [condition], [output], name, **branches)


def nested() -> onnx.ModelProto:
    """An If within an If, twice: the branches of both, and those within, define the same names."""
    innermost = graph_of("i", "deep", helper.make_node("Add", ["b", "u"], ["deep"], "Deep"))
    plain = graph_of("p", "deep", helper.make_node("Neg", ["x"], ["deep"], "Plain"))
    inner = choose("second", "inner", innermost, plain, "Inner")
    then = graph_of("t", "inner", helper.make_node("Mul", ["u", "scale"], ["b"], "First"), inner, own=("scale",))
    other = graph_of("e", "b", helper.make_node("Identity", ["u"], ["b"], "Pass"))
    nodes = [
        helper.make_node("Relu", ["x"], ["u"], "U"),
        helper.make_node("Abs", ["x"], ["t"], "T"),
        choose("first", "chosen", then, other, "Outer"),
        choose("first", "again", then, other, "Outer_2"),
        helper.make_node("Max", ["chosen", "again", "t"], ["y"], "S"),
        helper.make_node("Shape", ["u"], ["size"], "Z"),
        helper.make_node("Exp", ["u"], ["side"], "Side"),
    ]
    infos = [INFO("x", TensorProto.FLOAT, [2]), *(INFO(name, TensorProto.BOOL, []) for name in ("first", "second"))]
    outputs = [INFO("y", TensorProto.FLOAT, [2]), INFO("side", TensorProto.FLOAT, [2])]
    graph = helper.make_graph(nodes, "nested", infos, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_a_node_reads_what_its_graphs_take_from_around_them() -> None:
    outer = nested().graph.node[2]
    assert set(read_by(outer)) == {"first", "second", "u", "x"}  # its own b and scale are not around it
    assert list(free_names(nested().graph)) == []
    assert count_nodes(nested().graph.node) == 17


def test_a_part_is_what_lies_between() -> None:
    wiring = Wiring(nested(), None)
    numbers = wiring.numbers
    assert wiring.between(["u"], ["y"]) == {numbers[name] for name in ("Outer", "Outer_2", "S")}
    assert wiring.between([], ["side"]) == {numbers["U"], numbers["Side"]}
    assert wiring.between(["t"], ["side"]) == set()
    part = wiring.between(["u"], ["y"])
    assert set(wiring.borders(part)) == {"first", "second", "u", "x", "t"}
    assert wiring.sinks(part) == ["y"]
    assert wiring.leaving({numbers["U"]}) == ["u"]
    borders = {name: Border(np.zeros(2, np.float32), TensorProto.FLOAT) for name in ("u", "x", "t")}
    borders |= {name: Border(np.array(True), TensorProto.BOOL) for name in ("first", "second")}
    onnx.checker.check_model(wiring.model(part, borders, ["y"], shapes={"y": [2]}), full_check=True)


def test_branches_that_are_taken_stand_in_place_of_an_if() -> None:
    """Names that are taken get others, in the graphs inside as well; what it computes stays the same."""
    model, x = nested(), np.array([-1.5, 2], np.float32)
    for first, second in ((True, True), (True, False), (False, True)):
        given = {"first": np.array(first), "second": np.array(second)}
        flat = model
        while (found := flattened(flat, given)) is not None:
            flat = found
        assert "If" not in [node.op_type for node in flat.graph.node]
        onnx.checker.check_model(flat)
        reference = evaluated(model, {"x": x, **given})
        assert np.array_equal(evaluated(flat, {"x": x, **given}), reference)


def test_an_if_on_what_is_not_known_stays() -> None:
    assert flattened(nested(), {}) is None
    found = flattened(nested(), {"first": np.array(True)})
    assert found is not None
    assert [node.op_type for node in found.graph.node].count("If") == 2


def evaluated(model: onnx.ModelProto, inputs: dict[str, Any]) -> Any:
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["y"], inputs)[0]
