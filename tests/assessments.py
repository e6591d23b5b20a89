"""What `assess` says of a model beside what its compilation made of it."""

from stepwell.driver.assess import Assessment
from stepwell.runtime.artifact import Artifact
from stepwell.runtime.plan import Tensor


def check(said: Assessment, artifact: Artifact) -> None:
    """The memory, what the CPU runs and why, and the inputs and outputs are those of the artifact."""
    assert said.nbytes == artifact.nbytes
    assert on_cpu(said) == {node.name: node.reason for part in artifact.host for node in part.nodes}
    assert (list(said.inputs), list(said.outputs)) == borders(artifact)


def on_cpu(said: Assessment) -> dict[str, str]:
    """What the CPU runs, by the names of an artifact: outputs, and nodes, in each of their steps."""
    return {name: why for node in said.nodes for name, why in node.on_cpu.items()} | dict(said.returned)


def borders(artifact: Artifact) -> tuple[list[Tensor], list[Tensor]]:
    """Inputs and outputs."""
    plan = artifact.plans[0]
    return [artifact.tensors[n] for n in plan.inputs], [artifact.tensors[n] for n in plan.outputs]
