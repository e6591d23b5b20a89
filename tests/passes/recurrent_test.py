"""Recurrences as kernels: every level agrees, the loop over time is on the device, cuts and their time."""

from dataclasses import dataclass, field
from typing import Literal

import levels
import numpy as np
import pytest
from recurrent_models import Array, Case, Node, node, random_node, standard_cases
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from stepwell.dialects import npu, tile
from stepwell.driver.agreement import COSINE, agree
from stepwell.driver.api import compile, lower
from stepwell.driver.compilation import Compilation, start
from stepwell.driver.passmanager import PipelineError
from stepwell.runtime.target import Target


@dataclass(frozen=True)
class NodeProgram:
    """A recurrent node as a program of `levels`."""

    node: Node
    name: str = "node"
    directive: levels.Directive = field(default_factory=lambda: levels.Directive(tolerance=20))

    def start(self) -> Compilation:
        return start(self.node.model(), target="tiny")

    def inputs(self, main: FuncOp) -> list[Array]:
        return list(self.node.feeds.values())


def run_levels(this: Node, precision: str) -> None:
    """All levels on both targets, and the result against onnxruntime."""
    run, work = levels.run_graph(NodeProgram(this, str(this)), precision)  # pyright: ignore[reportArgumentType]
    for found, wanted in zip(run.expected, this.expected(), strict=True):
        limit = 1e-4 if precision == "fp32" else 2e-2
        assert np.max(np.abs(found - wanted)) <= limit * max(1e-3, np.max(np.abs(wanted))), this
    for name, machines in levels.QUICK.items():
        for cores in machines:
            levels.run_target(run, work, name, cores, precision)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("seed", range(100, 106))
def test_any_node_at_every_level(seed: int, precision: str) -> None:
    run_levels(random_node(seed), precision)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(106, 150))
def test_many_nodes_at_every_level(seed: int) -> None:
    run_levels(random_node(seed), ("fp32", "fp16", "bf16")[seed % 2])


@pytest.mark.parametrize("case", standard_cases(), ids=str)
@pytest.mark.parametrize("target", ["tiny", "edge"])
def test_the_nodes_of_the_standard_on_the_device(case: Case, target: str) -> None:
    artifact = compile(case.model, target=target, precision="fp32")
    names = [tensor.name for tensor in artifact.model.inputs]
    found = artifact.model.run(dict(zip(names, case.inputs, strict=True)))
    for tensor, wanted in zip(artifact.model.outputs, case.outputs, strict=True):
        np.testing.assert_allclose(found[tensor.name], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("hidden", [1, 2, 64, 130, 512])
def test_hidden_sizes_from_1_to_512(hidden: int) -> None:
    this = node("LSTM", 4, 1, 8, hidden)
    for target in ("tiny", "edge"):
        artifact = compile(this.model(), target=target)
        found = artifact.model.run(this.feeds)
        for name, wanted in zip(this.outputs, this.expected(), strict=True):
            assert agree(name, found[name], wanted).cosine >= COSINE


def recurrence_ops(time: int, to: Literal["tile", "npu"]) -> list[Operation]:
    """The ops of the kernel of a GRU, the only one that moves a state to L1."""
    module = lower(node("GRU", time, 1, 16, 48).model(), to=to, target="edge")
    kernels = [list(op.walk()) for op in module.ops if isinstance(op, (tile.KernelOp, npu.KernelOp))]
    (found,) = (ops for ops in kernels if any(op.name == f"{to}.move" for op in ops))
    return found


def test_the_loop_over_time_runs_on_the_device() -> None:
    assert [op.name for op in recurrence_ops(7, "npu")] == [op.name for op in recurrence_ops(700, "npu")]
    loops = [op for op in recurrence_ops(700, "tile") if isinstance(op, tile.ForOp)]
    assert any(str(op.bound.data[0]) == "700" for op in loops)


def cycles(this: Node, cores: int = 1) -> float:
    """Of the recurrence alone."""
    artifact = compile(this.model(), target="edge", cores=cores)
    return max(launch.alone for launch in artifact.model.profile().launches)


def test_two_directions_take_the_time_of_one_on_two_cores() -> None:
    one = cycles(node("LSTM", 20, 1, 16, 64))
    both = cycles(node("LSTM", 20, 1, 16, 64, direction="bidirectional"), cores=2)
    assert both <= 1.1 * one


def per_step(hidden: int) -> float:
    few, many = (cycles(node("LSTM", time, 1, 16, hidden)) for time in (10, 30))
    return (many - few) / 20


def test_a_step_takes_what_the_feed_needs_and_the_way_of_one_block() -> None:
    """The weights by the feed (those that do not stay in L0A), and the fixed costs of the engines from h to h."""
    target = Target.load("edge")
    chain = 10 * target.fixed_vector + target.fixed_feed + target.fixed_mma + target.fixed_drain + target.fixed_move
    for hidden in (64, 128, 256):
        nbytes = 4 * hidden * hidden * 2
        feed = nbytes / target.feed_a_bytes if nbytes > target.l0a_bytes else 0
        assert per_step(hidden) <= 1.4 * feed + 1.75 * chain, hidden


def test_weights_beyond_l1_come_at_the_rate_of_memory() -> None:
    target = Target.load("edge")
    beyond = 4 * 512 * 512 * 2 - target.l1_bytes
    assert per_step(512) <= 1.4 * beyond / target.gm_path


def test_too_many_units_are_refused() -> None:
    with pytest.raises(PipelineError, match=r"rec: .*at most 2048 hidden units \(found 2064\)"):
        compile(node("RNN", 1, 1, 1, 2064).model(), target="edge", host=False)
