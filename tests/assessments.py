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
    """Nodes and outputs that the CPU runs; those inside of one are a part of it."""
    whole = {node.name: node for node in said.nodes if node.kind == "host"}
    return {n.name: n.why for n in whole.values() if n.inside not in whole} | dict(said.returned)


def borders(artifact: Artifact) -> tuple[list[Tensor], list[Tensor]]:
    """Inputs and outputs."""
    plan = artifact.plans[0]
    return [artifact.tensors[n] for n in plan.inputs], [artifact.tensors[n] for n in plan.outputs]
