"""The programs that a plan runs: one for each launch, or a single stream for launches that follow each other, if it is
linked."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .encoding import Program
from .linker import link
from .plan import Plan
from .steps import Launch, TensorRef, runs_of

if TYPE_CHECKING:
    from .artifact import Artifact


@dataclass(frozen=True, slots=True)
class Segment:
    """What runs between two barriers. `nodes`: ONNX nodes by slot."""

    program: Program
    arguments: tuple[int, ...]
    nodes: tuple[tuple[str, ...], ...]
    starts: tuple[int, ...]
    """First row of each launch."""
    first: int
    """Number of the first launch in the plan."""
    l1: int = 0
    ub: int = 0
    token: int = 0

    def launch_of(self, row: int) -> int:
        """Number of the launch that a row belongs to."""
        return self.first + bisect_right(self.starts, row) - 1


def segments(artifact: "Artifact", plan: Plan, base: int) -> list[Segment]:
    """The segments of a plan, for a model that lies from address `base` on. Raises `LinkError`."""
    cores = artifact.cores or artifact.target.cores
    launches = plan.launches
    if not plan.linked:
        return [_alone(artifact, launch, number, base) for number, launch in enumerate(launches)]
    made: list[Segment] = []
    for numbers in runs_of(plan.steps):
        some = launches[numbers.start : numbers.stop]
        linked = link(some, artifact.kernels, artifact.tensors, base, artifact.target, cores)
        made.append(Segment(linked.program, (), linked.nodes, linked.starts, numbers.start))
    return made


def _alone(artifact: "Artifact", launch: Launch, number: int, base: int) -> Segment:
    program = artifact.kernels[launch.kernel].program
    bases = (launch.l1, launch.ub, launch.token)
    return Segment(program, addresses(launch, artifact, base), launch.nodes, (0,), number, *bases)


def addresses(launch: Launch, artifact: "Artifact", base: int) -> tuple[int, ...]:
    """The arguments as numbers, for an allocation that begins at `base`."""
    tensors = artifact.tensors
    return tuple(
        base + tensors[a.tensor].offset + a.offset if isinstance(a, TensorRef) else a for a in launch.arguments
    )
