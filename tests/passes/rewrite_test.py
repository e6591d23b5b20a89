"""The rewriting loop and what it keeps: locations, and its bound."""

from collections.abc import Sequence

import pytest
from graph_tools import parse
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from stepwell.dialects.graph.activations import NegOp, ReluOp, TanhOp
from stepwell.dialects.graph.emit import Emit
from stepwell.passes.context import CompileContext, Note, PassError
from stepwell.passes.location import node_names
from stepwell.passes.rewrite import Pattern, Rewriter, merge_equal_ops, rewrite

TWO = """
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32> loc("A")
  %1 = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32> loc("B")
  %2 = graph.neg %1 : (tensor<4xf32>) -> tensor<4xf32> loc("C")
  func.return %0, %2 : tensor<4xf32>, tensor<4xf32>
}"""


def names(module: ModuleOp) -> dict[str, list[str]]:
    return {op.name: node_names(op.location) for op in module.walk() if op.name.startswith("graph.")}


def test_a_new_op_stands_for_the_one_it_replaces() -> None:
    def to_tanh(op: NegOp, rewriter: Rewriter) -> None:
        rewriter.replace_by(op, Emit(op, rewriter)(TanhOp, op.x))

    module = parse(TWO)
    assert rewrite(CompileContext(), module, {NegOp: (to_tanh,)}) == 1
    assert names(module) == {"graph.relu": ["B"], "graph.tanh": ["C"]}


def test_an_op_stands_for_all_that_it_absorbs() -> None:
    def absorb(op: NegOp, rewriter: Rewriter) -> None:
        if isinstance(inner := op.x.owner, ReluOp):
            rewriter.replace_by(op, Emit(op, rewriter)(TanhOp, inner.x), [inner])

    module = parse(TWO)
    rewrite(CompileContext(), module, {NegOp: (absorb,)})
    assert names(module) == {"graph.relu": ["A"], "graph.tanh": ["C", "B"]}


def test_equal_ops_become_one_that_stands_for_both() -> None:
    module = parse(TWO)
    assert merge_equal_ops(module) == 1
    assert names(module) == {"graph.relu": ["A", "B"], "graph.neg": ["C"]}


def test_rewrites_that_do_not_settle_are_a_bug_of_a_pattern() -> None:
    def flip(kind: type[Operation]) -> Sequence[Pattern]:
        def pattern(op: ReluOp, rewriter: Rewriter) -> None:
            rewriter.replace_by(op, Emit(op, rewriter)(kind, op.x))  # pyright: ignore[reportArgumentType]

        return (pattern,)

    with pytest.raises(PassError, match=r"of A: rewrites must settle \(found more than \d+\); this is a bug"):
        rewrite(CompileContext(), parse(TWO), {ReluOp: flip(TanhOp), TanhOp: flip(ReluOp)})


def test_a_cloned_context_shares_the_weights_and_not_the_notes() -> None:
    ctx = CompileContext(notes=[Note("gelu", "x", "c", "1")])
    copy = ctx.clone()
    copy.notes.clear()
    assert copy.weights is not ctx.weights or len(ctx.weights) == 0
    handle = ctx.weights
    assert ctx.clone().weights is handle
    assert str(ctx.notes[0]) == "x: not gelu: c (found 1)"
