"""Time is never less than the arithmetic and the bytes allow, and is that of the slow simulator."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from acceptance.zoo import FITS, MODELS, compiled, proto
from numpy.typing import NDArray
from simulator import Simulator
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from stepwell.dialects.graph.constants import NUMPY
from stepwell.dialects.graph.contract import Conv2DOp, Depthwise2DOp, MatMulOp
from stepwell.dialects.graph.op import GraphOp, dtype_name, element, shape
from stepwell.dialects.graph.properties import ints
from stepwell.dialects.graph.structure import LaunchOp
from stepwell.driver import api
from stepwell.runtime import timing
from stepwell.runtime.artifact import Artifact
from stepwell.runtime.generator import launch_registers
from stepwell.runtime.isa import Engine
from stepwell.runtime.plan import Kernel
from stepwell.runtime.segments import addresses
from stepwell.runtime.target import Target

SIMULATED = [(name, target) for name in ("mlp", "small_cnn") for target in ("tiny", "edge")]


def macs(op: GraphOp) -> int:
    """Multiplications that the mathematics of an operator needs."""
    size = math.prod(shape(op.results[0]))
    if isinstance(op, MatMulOp):
        return size * shape(op.a)[-1]
    if isinstance(op, Conv2DOp):
        return size * math.prod(ints(op.properties, "kernel")) * shape(op.x)[3]
    return size * math.prod(ints(op.properties, "kernel")) if isinstance(op, Depthwise2DOp) else 0


def peak(op: GraphOp, target: Target) -> float:
    """Multiply-accumulates a cycle of one cube that is never idle; a depthwise product uses one column of it."""
    wide = dtype_name(op.operands[0]) == "f32"
    rate = target.cube_m * target.cube_n * (target.cube_k_f32 if wide else target.cube_k_f16)
    return rate / (target.cube_cost_f32 if wide else 1)


@dataclass(frozen=True)
class Least:
    """What a launch cannot do without: cycles of one cube, and bytes that cross the port."""

    cube: float
    nbytes: int


@cache
def least(name: str, target: str, precision: str) -> list[Least]:
    """By launch, from the graph: all multiplications; all results and all right operands of products, padding aside."""
    chip = Target.load(target)
    module = api.lower(proto(name), to="graph", target=chip, shapes=MODELS[name].shapes, precision=precision)
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    found: list[Least] = []
    for launch in functions["main"].body.block.ops:
        if isinstance(launch, LaunchOp):
            ops = [op for op in functions[launch.callee].body.block.ops if isinstance(op, GraphOp)]
            cube = sum(macs(op) / peak(op, chip) for op in ops)
            nbytes = sum(math.prod(shape(value)) * itemsize(value) for value in launch.results)
            found.append(Least(cube, nbytes + sum(weights(op) for op in ops)))
    return found


def itemsize(value: SSAValue) -> int:
    return NUMPY[element(value)].itemsize


def weights(op: GraphOp) -> int:
    """Bytes of the right operand of a product."""
    columns = shape(op.results[0])[-1]
    if isinstance(op, MatMulOp):
        return math.prod(shape(op.operands[1])) * itemsize(op.operands[1])
    if isinstance(op, Conv2DOp):
        return math.prod(ints(op.properties, "kernel")) * shape(op.x)[3] * columns * itemsize(op.operands[1])
    if isinstance(op, Depthwise2DOp):
        return math.prod(ints(op.properties, "kernel")) * columns * itemsize(op.operands[1])
    return 0


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(("name", "target"), FITS)
def test_time_is_never_below_the_bound(name: str, target: str, cores: int) -> None:
    artifact = compiled(name, target, cores=cores)
    chip, profile = artifact.target, artifact.model.profile()
    needs = least(name, target, "fp16")
    for launch, need in zip(profile.launches, needs, strict=True):
        assert launch.alone >= max(need.cube / cores, need.nbytes / chip.gm_port), launch
        assert launch.alone >= max(launch.cube_cycles, launch.gm_bytes / chip.gm_port), launch
        assert launch.cube_cycles * cores >= need.cube * (1 - 1e-9), f"it counts too few multiplications: {launch}"
        assert launch.gm_bytes >= need.nbytes, f"it counts too few bytes: {launch}"
    moved, cube = (sum(getattr(launch, each) for launch in profile.launches) for each in ("gm_bytes", "cube_cycles"))
    assert profile.cycles >= max(moved / chip.gm_port, cube)
    assert 0 < profile.cube_utilisation <= 1
    assert 0 < profile.port_utilisation <= 1


@pytest.mark.parametrize(("name", "target"), FITS)
def test_fp32_is_bounded_as_well(name: str, target: str) -> None:
    artifact = compiled(name, target, "fp32")
    for launch, need in zip(artifact.model.profile().launches, least(name, target, "fp32"), strict=True):
        assert launch.alone >= max(need.cube / 2, need.nbytes / artifact.target.gm_port), launch


@pytest.mark.parametrize(("name", "target"), FITS)
def test_overlapping_launches_gain_no_more_than_there_is(name: str, target: str) -> None:
    """A linked plan is as long as its launches end, and no longer than one with a barrier before each."""
    model = compiled(name, target).model
    (plan,) = model.artifact.plans
    assert plan.linked
    apart = replace(plan, linked=False)
    linked, barriers = model.profile(plan), model.profile(apart)
    assert barriers.cycles == pytest.approx(sum(launch.alone for launch in barriers.launches))
    assert linked.cycles <= barriers.cycles * 1.01
    assert all(launch.cycles >= 0 for launch in linked.launches)


def launches(artifact: Artifact) -> Iterator[tuple[Kernel, NDArray[np.int64]]]:
    """One launch of each kernel, and its registers."""
    seen: set[int] = set()
    for step in artifact.plans[0].launches:
        if step.kernel in seen:
            continue
        seen.add(step.kernel)
        registers = launch_registers(addresses(step, artifact, 0), 1, step.l1, step.ub, step.token)
        yield artifact.kernels[step.kernel], registers


@pytest.mark.parametrize(("name", "target"), SIMULATED)
def test_every_kernel_takes_as_long_as_in_the_simulator(name: str, target: str) -> None:
    artifact = compiled(name, target, cores=1)
    for kernel, registers in launches(artifact):
        found = timing.time_launch(timing.prepare(kernel.program), registers, artifact.target, 1)
        slow = Simulator(kernel.program, registers.tolist(), artifact.target, 1)
        assert found.cycles == pytest.approx(slow.run(), rel=1e-6), kernel.name
        for each in ("busy", "token", "issue"):
            times = [getattr(slow.cores[0].engines[engine], each) for engine in range(1, len(Engine))]
            np.testing.assert_allclose(getattr(found, each)[0, 1:], times, rtol=1e-6, atol=1e-3, err_msg=kernel.name)
