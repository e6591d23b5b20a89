"""`stepwell check`: what the happens-before checker says of all launches of a model, with the ONNX nodes."""

import argparse
from dataclasses import dataclass
from typing import Any

from ..runtime import checker
from ..runtime.artifact import Artifact
from ..runtime.checker import Finding, Place
from ..runtime.generator import launch_registers
from ..runtime.plan import ALIGNMENT
from ..runtime.segments import Segment, segments
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
        checker.Launch(s.program, launch_registers(s.arguments, cores, s.l1, s.ub, s.token), str(number))
        for number, s in enumerate(segments(artifact, plan, 0))
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


@dataclass(frozen=True, slots=True)
class Where:
    """An instruction of a finding in the model's terms."""

    kernel: str
    launch: int
    nodes: tuple[str, ...]


def where(artifact: Artifact, place: Place) -> Where:
    """The launch, the kernel and the ONNX nodes of an instruction."""
    segment: Segment = segments(artifact, artifact.plans[0], 0)[int(place.kernel)]
    number = segment.launch_of(place.row)
    step = artifact.plans[0].steps[number]
    whole = tuple(dict.fromkeys(name for slot in step.nodes for name in slot))
    return Where(artifact.kernels[step.kernel].name, number, tuple(segment.nodes[place.slot]) or whole)


def _places(artifact: Artifact, finding: Finding) -> list[str]:
    """A line for each instruction of a finding that serves known nodes."""
    places = [(place, where(artifact, place)) for place in (finding.before, finding.place) if place is not None]
    return [
        f"  row {place.row}, kernel {found.kernel} (launch {found.launch}), is of {names(found.nodes)}"
        for place, found in places
        if found.nodes
    ]


def _data(artifact: Artifact, finding: Finding) -> dict[str, Any]:
    places = [(place, where(artifact, place)) for place in (finding.before, finding.place) if place is not None]
    return {
        "kind": finding.kind,
        "text": finding.text,
        "places": [
            {
                "kernel": found.kernel,
                "launch": found.launch,
                "core": place.core,
                "row": place.row,
                "instruction": place.text,
                "engine": place.engine,
                "nodes": list(found.nodes),
            }
            for place, found in places
        ],
    }
