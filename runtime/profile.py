"""Where the cycles of a plan go: by launch, by engine, by ONNX node."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from . import timing
from .generator import launch_registers
from .isa import Engine
from .plan import Launch, Plan, TensorRef
from .target import Target

if TYPE_CHECKING:
    from .artifact import Artifact

Cycles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LaunchProfile:
    """One step of a plan. `busy` is [engine], summed over the cores."""

    number: int
    kernel: str
    nodes: tuple[str, ...]
    cycles: float
    busy: Cycles
    cube_cycles: float
    gm_bytes: float
    records: int
    slots: Mapping[int, float]
    """Busy cycles by slot of the kernel's location table."""
    names: tuple[tuple[str, ...], ...]

    @property
    def bottleneck(self) -> Engine:
        """The engine that is busy most."""
        return Engine(int(self.busy.argmax()))


@dataclass(frozen=True)
class Profile:
    """The steps of a plan, one after the other."""

    target: Target
    cores: int
    launches: tuple[LaunchProfile, ...]

    @cached_property
    def cycles(self) -> float:
        return sum(launch.cycles for launch in self.launches)

    @property
    def seconds(self) -> float:
        """Time at the target's clock."""
        return self.cycles / (self.target.clock_mhz * 1e6)

    @property
    def cube_utilisation(self) -> float:
        """Multiply-accumulates over what the cubes could have done in this time, 0 to 1."""
        return sum(launch.cube_cycles for launch in self.launches) / self.cycles if self.cycles else 0.0

    @property
    def port_utilisation(self) -> float:
        """Bytes of global memory over what its port could have moved, 0 to 1."""
        moved = sum(launch.gm_bytes for launch in self.launches)
        return moved / (self.cycles * self.target.gm_port) if self.cycles else 0.0

    def engine_utilisation(self) -> dict[Engine, float]:
        """The share of the time that each engine executed, over all cores."""
        busy = sum((launch.busy for launch in self.launches), np.zeros(len(Engine)))
        return {engine: float(busy[engine]) / (self.cycles * self.cores or 1) for engine in Engine}

    def by_node(self) -> dict[tuple[str, ...], float]:
        """Cycles by ONNX nodes, most first: a launch's cycles, shared out by the busy cycles of its slots."""
        found: dict[tuple[str, ...], float] = {}
        for launch in self.launches:
            busy = sum(launch.slots.values()) or 1.0
            for slot, cycles in launch.slots.items():
                # Slot 0 is the kernel itself: what serves all of it, such as its loads.
                nodes = launch.names[slot] or launch.nodes
                found[nodes] = found.get(nodes, 0.0) + launch.cycles * cycles / busy
        return dict(sorted(found.items(), key=lambda item: -item[1]))


def addresses(launch: Launch, artifact: "Artifact", base: int) -> tuple[int, ...]:
    """The arguments as numbers, for an allocation that begins at `base`."""
    tensors = artifact.tensors
    return tuple(
        base + tensors[a.tensor].offset + a.offset if isinstance(a, TensorRef) else a for a in launch.arguments
    )


def profile(artifact: "Artifact", plan: Plan, base: int = 0, gm: NDArray[np.uint8] = timing.NO_MEMORY) -> Profile:
    """Times a plan. `gm` is the memory that the kernels' `read` rows see. Raises `TimingError`."""
    target, cores = artifact.target, artifact.cores or artifact.target.cores
    launches = prepare(artifact, plan, base)
    timings = timing.time_plan(launches, target, cores, gm)
    found = enumerate(zip(plan.steps, launches, timings, strict=True))
    profiles = (_launch(number, artifact, step, prepared, timed) for number, (step, (prepared, _), timed) in found)
    return Profile(target, cores, tuple(profiles))


def prepare(artifact: "Artifact", plan: Plan, base: int = 0) -> list[tuple[timing.Prepared, NDArray[np.int64]]]:
    """The launches of a plan, ready to be timed: programs and registers."""
    cores = artifact.cores or artifact.target.cores
    prepared = [timing.prepare(kernel.program) for kernel in artifact.kernels]
    return [
        (prepared[step.kernel], launch_registers(addresses(step, artifact, base), cores, step.l1, step.ub, step.token))
        for step in plan.steps
    ]


def _launch(
    number: int, artifact: "Artifact", step: Launch, prepared: timing.Prepared, timed: timing.Timing
) -> LaunchProfile:
    nodes = tuple(dict.fromkeys(name for slot in step.nodes for name in slot))
    return LaunchProfile(
        number,
        artifact.kernels[step.kernel].name,
        nodes,
        timed.cycles,
        timed.busy.sum(axis=0),
        timed.cube_cycles,
        timed.gm_bytes,
        timed.records,
        timing.by_slot(prepared, timed),
        step.nodes,
    )
