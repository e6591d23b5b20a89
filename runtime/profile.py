"""Where the cycles of a plan go: by launch, by engine, by ONNX node."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from . import timing
from .cpu import HostNode
from .generator import launch_registers
from .isa import Engine
from .plan import Plan
from .segments import Segment, addresses, segments
from .steps import Copy, HostCall, Launch, every
from .target import Target

if TYPE_CHECKING:
    from .artifact import Artifact

Cycles = NDArray[np.float64]
_ROW, _END = 2, 5
"""Columns of the timing's trace."""


@dataclass(frozen=True, slots=True)
class LaunchProfile:
    """One step of a plan. `busy` is [engine], summed over the cores."""

    number: int
    kernel: str
    nodes: tuple[str, ...]
    cycles: float
    """By how much it makes the plan longer; in a linked plan neighbours overlap."""
    alone: float
    """Cycles of the launch by itself."""
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


@dataclass(frozen=True, slots=True)
class HostProfile:
    """A part on the CPU (by `nodes`), or a transfer (no nodes): between device and host, or the device's own."""

    nodes: tuple[HostNode, ...]
    cycles: float
    nbytes: int = 0
    """That a transfer moves."""
    inside: bool = False
    """The transfer is the device's own."""


@dataclass(frozen=True)
class Profile:
    """The steps of a plan, one after the other."""

    target: Target
    cores: int
    launches: tuple[LaunchProfile, ...]
    host: tuple[HostProfile, ...] = ()

    @cached_property
    def cycles(self) -> float:
        """Of the whole plan."""
        return sum(launch.cycles for launch in self.launches) + self.host_cycles + self.copy_cycles

    @cached_property
    def host_cycles(self) -> float:
        """Of the parts on the CPU, with the transfers to them and from them."""
        return sum(part.cycles for part in self.host if not part.inside)

    @cached_property
    def copy_cycles(self) -> float:
        """Of the device's own copies between launches."""
        return sum(part.cycles for part in self.host if part.inside)

    @property
    def host_share(self) -> float:
        """Of the whole time, 0 to 1."""
        return self.host_cycles / self.cycles if self.host else 0.0

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


def profile(artifact: "Artifact", plan: Plan, base: int = 0, gm: NDArray[np.uint8] = timing.NO_MEMORY) -> Profile:
    """Times a plan. `gm` is the memory that the kernels' `read` rows see. Raises `TimingError`."""
    target, cores = artifact.target, artifact.cores or artifact.target.cores
    launches = prepare(artifact, plan, base)
    timings = timing.time_plan(launches, target, cores, gm)
    cycles = [timed.cycles for timed in timings]
    for segment in segments(artifact, plan, base) if plan.linked else ():
        numbers = slice(segment.first, segment.first + len(segment.starts))
        cycles[numbers] = _linked_cycles(artifact, segment, sum(timed.records for timed in timings[numbers]))
    found = enumerate(zip(plan.launches, launches, timings, cycles, strict=True))
    profiles = (_launch(n, artifact, step, prepared, timed, share) for n, (step, (prepared, _), timed, share) in found)
    host = (host_profile(artifact, step) for step in every(plan.steps) if isinstance(step, Copy | HostCall))
    return Profile(target, cores, tuple(profiles), tuple(host))


def host_profile(artifact: "Artifact", step: Copy | HostCall) -> HostProfile:
    """A step that launches nothing."""
    target = artifact.target
    if isinstance(step, HostCall):
        part = artifact.host[step.part]
        return HostProfile(part.nodes, part.cycles(target))
    source, to = artifact.tensors[step.source], artifact.tensors[step.to]
    nbytes = max(source.nbytes, to.nbytes)
    if source.is_host and to.is_host:
        return HostProfile((), 0.0)
    if source.is_host or to.is_host:
        return HostProfile((), target.host_latency + nbytes / target.host_bytes, nbytes)
    return HostProfile(
        (), target.fixed_load + target.fixed_store + 2 * source.nbytes / target.gm_port, source.nbytes, True
    )


def _linked_cycles(artifact: "Artifact", segment: Segment, records: int) -> list[float]:
    """By how much each launch of a stream makes it longer: from the end of those before it to its own end."""
    cores = artifact.cores or artifact.target.cores
    prepared, registers = timing.prepare(segment.program), launch_registers((), cores)
    events = 2 * records  # awaits and signals come on top of the launches' own entries
    while True:
        timed = timing.time_launch(prepared, registers, artifact.target, cores, events=events)
        if len(timed.trace) < events:
            break
        events *= 2
    launch = np.searchsorted(np.array(segment.starts), timed.trace[:, _ROW], side="right") - 1
    ends = np.zeros(len(segment.starts))
    np.maximum.at(ends, launch, timed.trace[:, _END])
    ends[-1] = timed.cycles
    return np.diff(np.maximum.accumulate(ends), prepend=0.0).tolist()


def prepare(artifact: "Artifact", plan: Plan, base: int = 0) -> list[tuple[timing.Prepared, NDArray[np.int64]]]:
    """The launches of a plan, ready to be timed: programs and registers."""
    cores = artifact.cores or artifact.target.cores
    prepared = [timing.prepare(kernel.program) for kernel in artifact.kernels]
    return [
        (prepared[step.kernel], launch_registers(addresses(step, artifact, base), cores, step.l1, step.ub, step.token))
        for step in plan.launches
    ]


def _launch(
    number: int,
    artifact: "Artifact",
    step: Launch,
    prepared: timing.Prepared,
    timed: timing.Timing,
    cycles: float,
) -> LaunchProfile:
    nodes = tuple(dict.fromkeys(name for slot in step.nodes for name in slot))
    return LaunchProfile(
        number,
        artifact.kernels[step.kernel].name,
        nodes,
        cycles,
        timed.cycles,
        timed.busy.sum(axis=0),
        timed.cube_cycles,
        timed.gm_bytes,
        timed.records,
        timing.by_slot(prepared, timed),
        step.nodes,
    )
