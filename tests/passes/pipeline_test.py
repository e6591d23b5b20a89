"""The runner and the pipeline: order, borders, and what a failure says."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import onnx
import pytest
from graph_tools import parse
from onnx_models import bert_layer, small_cnn
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from stepwell.driver import pipeline
from stepwell.driver.opt import main
from stepwell.driver.passmanager import PipelineError, Settings, run
from stepwell.driver.verify import IRError, verify
from stepwell.frontend.onnx import import_onnx
from stepwell.passes.context import CompileContext
from stepwell.passes.fold import Fold
from stepwell.passes.fuse import Fuse
from stepwell.passes.outline_kernels import OutlineKernels

TEXT = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32> loc("Relu_7")
  func.return %0 : tensor<4xf32>
}"""


@dataclass(frozen=True)
class Break(ModulePass):
    """Puts an op before the one that it uses."""

    name: ClassVar[str] = "break"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        relu = next(inner for inner in op.walk() if inner.name == "graph.relu")
        copy = relu.clone()
        copy.operands[0] = relu.results[0]
        block = relu.parent_block()
        assert block is not None
        block.insert_op_before(copy, relu)


@dataclass(frozen=True)
class Crash(ModulePass):
    """Has a bug."""

    name: ClassVar[str] = "crash"
    depth: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise KeyError("no such thing")


def test_a_pass_that_breaks_dominance_is_named_with_the_node() -> None:
    with pytest.raises(PipelineError) as e:
        run(
            CompileContext(),
            parse(TEXT),
            [Fold(), Break(), Fuse()],
            Settings(verify="each", command="stepwell-opt m.onnx"),
        )
    assert str(e.value) == (
        "break: graph.relu of Relu_7: operand 0 is defined before it is used (found the result of a later graph.relu); "
        "reproduce with: stepwell-opt m.onnx -p fold,break"
    )


def test_a_bug_says_so_and_leaves_its_input(tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as e:
        run(CompileContext(), parse(TEXT), [Fold(), Crash(depth=3)], Settings(crash_dir=tmp_path))
    file = tmp_path / "before-crash.mlir"
    assert str(e.value).startswith("crash: bug: KeyError: 'no such thing'; reproduce with: ")
    assert str(e.value).endswith(f"stepwell-opt {file} -p 'crash{{depth=3}}'")
    assert 'loc("Relu_7")' in file.read_text()


def test_dumps_are_numbered(tmp_path: Path) -> None:
    timings = run(CompileContext(), parse(TEXT), [Fold(), Fuse(enabled=False)], Settings(dump_dir=tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["00-input.mlir", "01-fold.mlir", "02-fuse.mlir"]
    assert [timing.name for timing in timings] == ["fold", "fuse{enabled=false}"]


def test_a_stage_leaves_only_its_dialects() -> None:
    module = parse(TEXT)
    with pytest.raises(PipelineError, match=r"^stage npu must leave only .* \(found func.func"):
        pipeline.check_leaves(module, pipeline.Stage("npu", "backend", (), frozenset({"builtin", "npu", "graph"})))


def test_options_go_to_the_passes_that_have_them() -> None:
    passes = pipeline.stage_passes(pipeline.GRAPH, {"policy": "fp32", "enabled": False})
    specs = [str(this.spec()) for this in passes]
    assert 'precision{policy="fp32"}' in specs
    assert "fuse{enabled=false}" in specs
    with pytest.raises(
        PipelineError, match=r"stage graph: options are those of its passes \(found polcy\); known: .*policy"
    ):
        pipeline.stage_passes(pipeline.GRAPH, {"polcy": "fp32"})


@pytest.mark.parametrize("make", [small_cnn, bert_layer])
def test_a_stage_that_is_run_twice_is_refused_and_its_kernels_stay(make: Callable[[], onnx.ModelProto]) -> None:
    module, weights = import_onnx(make())
    context, passes = CompileContext(), pipeline.stage_passes(pipeline.stage("graph"))
    context.weights.update(weights)
    run(context, module, passes)
    once = str(module)
    for policy in ("fp16", "fp32"):
        again = pipeline.stage_passes(pipeline.stage("graph"), {"policy": policy})
        with pytest.raises(PipelineError, match=r"before kernels are made \(found a launch\)") as caught:
            run(context, module.clone(), again)
        assert all(problem.is_whole for problem in caught.value.problems)
    run(context, module, [Fuse(), OutlineKernels()])
    assert str(module) == once


def test_kernels_that_come_later_have_other_names() -> None:
    """Of a module with kernels, to which someone adds an op."""
    module = parse(
        """
        func.func @main(%0: tensor<4xf16>) -> tensor<4xf16> {
          %1 = graph.launch @k0(%0) : (tensor<4xf16>) -> tensor<4xf16>
          %2 = graph.neg %1 : (tensor<4xf16>) -> tensor<4xf16>
          func.return %2 : tensor<4xf16>
        }
        func.func private @k0(%0: tensor<4xf16>) -> tensor<4xf16> {
          %1 = graph.relu %0 : (tensor<4xf16>) -> tensor<4xf16>
          func.return %1 : tensor<4xf16>
        }
        """
    )
    run(CompileContext(), module, [Fuse(), OutlineKernels()])
    verify(module)
    assert "graph.launch @k1" in str(module)


def test_a_wrong_order_is_refused_with_the_reason() -> None:
    with pytest.raises(PipelineError, match=r"^layout must come before fuse: a transpose between two ops"):
        pipeline.check_order(["fold", "fuse", "layout"])


def test_verify_names_op_and_rule() -> None:
    module = parse(TEXT)
    Break().apply(Context(), module)
    with pytest.raises(IRError, match="operand 0 is defined before it is used"):
        verify(module)


def test_weights_go_through_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "in.mlir"
    text.write_text(
        "func.func @main() -> tensor<100xf32> {\n"
        "  %0 = graph.constant dense<1.0> : tensor<f32>\n"
        "  %1 = graph.expand %0 {shape = [100]} : (tensor<f32>) -> tensor<100xf32>\n"
        "  func.return %1 : tensor<100xf32>\n"
        "}\n"
    )
    out, weights = tmp_path / "out.mlir", tmp_path / "w.safetensors"
    assert main([str(text), "-p", "fold", "--weights-out", str(weights), "-o", str(out)]) == 0
    assert "graph.weight" in out.read_text()
    assert main([str(out), "-p", "precision", "--weights", str(weights)]) == 0
    assert main([str(out), "-p", "precision"]) == 0
    assert main([str(out), "-p", "recognise", "--weights", str(tmp_path / "none")]) == 1
    assert "none: can be opened (found No such file or directory)" in capsys.readouterr().err
