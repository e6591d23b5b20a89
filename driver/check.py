"""`stepwell check`: what the happens-before checker says of all launches of a model, with the ONNX nodes."""

import argparse
from collections.abc import Sequence
from typing import Any

from ..runtime import checker
from ..runtime.artifact import Artifact
from ..runtime.checker import Finding, Place
from ..runtime.generator import launch_registers
from ..runtime.plan import ALIGNMENT
from ..runtime.profile import addresses
from .commands import artifact_of
from .errors import PROBLEM
from .progress import Progress
from .report import OK, Report, names, plural


def check_model(args: argparse.Namespace, progress: Progress) -> Report:
    """The exit code is 1 if anything is wrong."""
    artifact = artifact_of(args, progress)
    with progress.step("checking"):
        findings = check_artifact(artifact).findings
    launches = plural(len(artifact.plans[0].steps), "launch")
    rows = plural(sum(len(artifact.kernels[step.kernel].program) for step in artifact.plans[0].steps), "row")
    verdict = plural(len(findings), "finding") if findings else "clean, every interleaving gives the same bytes"
    lines = [line for finding in findings for line in (f"{finding.kind}: {finding}", *_places(artifact, finding))]
    data = {"clean": not findings, "findings": [_data(artifact, finding) for finding in findings]}
    return Report(data, "\n".join([*lines, f"{launches}, {rows}: {verdict}"]), PROBLEM if findings else OK)


def check_artifact(artifact: Artifact) -> checker.Report:
    """The checker's report on the launches of the first plan: inputs and weights are there before, outputs after."""
    plan, cores = artifact.plans[0], artifact.cores or artifact.target.cores
    launches = [
        checker.Launch(
            artifact.kernels[step.kernel].program,
            launch_registers(addresses(step, artifact, 0), cores, step.l1, step.ub, step.token),
            artifact.kernels[step.kernel].name,
        )
        for step in plan.steps
    ]
    return checker.check_launches(
        launches,
        target=artifact.target,
        cores=cores,
        gm_size=-(-artifact.nbytes // ALIGNMENT) * ALIGNMENT,
        initialised=_bytes(artifact, "input", "weight", "state"),
        outputs=_bytes(artifact, "output"),
    )


def _bytes(artifact: Artifact, *roles: str) -> list[tuple[int, int]]:
    return [(t.offset, t.offset + t.nbytes) for t in artifact.tensors if t.role in roles and t.nbytes]


def nodes_of(artifact: Artifact, place: Place) -> Sequence[str]:
    """The ONNX nodes of an instruction, in the first launch of its kernel."""
    for step in artifact.plans[0].steps:
        if artifact.kernels[step.kernel].name == place.kernel:
            return step.nodes[place.slot] or tuple(dict.fromkeys(name for slot in step.nodes for name in slot))
    return ()


def _places(artifact: Artifact, finding: Finding) -> list[str]:
    """A line for each instruction of a finding that serves known nodes."""
    return [
        f"  kernel {place.kernel}, row {place.row} is of {names(nodes)}"
        for place in (finding.before, finding.place)
        if place is not None and (nodes := nodes_of(artifact, place))
    ]


def _data(artifact: Artifact, finding: Finding) -> dict[str, Any]:
    places = [place for place in (finding.before, finding.place) if place is not None]
    return {
        "kind": finding.kind,
        "text": finding.text,
        "places": [
            {"kernel": p.kernel, "core": p.core, "row": p.row, "instruction": p.text, "engine": p.engine,
             "nodes": list(nodes_of(artifact, p))}
            for p in places
        ],
    }  # fmt: skip
