"""`stepwell check`: what the happens-before checker says of all launches of a model, with the ONNX nodes."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..runtime import checker
from ..runtime.artifact import Artifact
from ..runtime.checker import Finding, Place
from ..runtime.generator import launch_registers
from ..runtime.plan import ALIGNMENT, Plan
from ..runtime.segments import Segment, segments
from ..runtime.steps import Branch, Copy, Repeat, every
from .commands import artifact_of
from .errors import PROBLEM
from .progress import Progress
from .report import OK, Report, names, plural


def check_model(args: argparse.Namespace, progress: Progress) -> Report:
    """The exit code is 1 if anything is wrong."""
    artifact = artifact_of(args, progress)
    with progress.step("checking"):
        stretch = segments(artifact, artifact.plans[0], 0)
        findings = check_segments(artifact, stretch).findings
        places = [[(p, where(artifact, stretch, p)) for p in (f.before, f.place) if p is not None] for f in findings]
    launches = plural(len(artifact.plans[0].launches), "launch")
    rows = plural(sum(len(artifact.kernels[step.kernel].program) for step in artifact.plans[0].launches), "row")
    verdict = plural(len(findings), "finding") if findings else "clean, every interleaving gives the same bytes"
    told = list(zip(findings, places, strict=True))
    lines = [line for finding, at in told for line in (f"{finding.kind}: {finding}", *_lines(at))]
    data = {"clean": not findings, "findings": [_data(finding, at) for finding, at in told]}
    return Report(data, "\n".join([*lines, f"{launches}, {rows}: {verdict}"]), PROBLEM if findings else OK)


def check_artifact(artifact: Artifact) -> checker.Report:
    """The checker's report on the launches of the first plan: inputs and weights are there before, outputs after."""
    return check_segments(artifact, segments(artifact, artifact.plans[0], 0))


def check_segments(artifact: Artifact, stretch: Sequence[Segment]) -> checker.Report:
    """The checker's report on the segments of the first plan; a launch of its findings is named by its number."""
    cores, plan = artifact.cores or artifact.target.cores, artifact.plans[0]
    written, read = by_runtime(plan)
    launches = [
        checker.Launch(s.program, launch_registers(s.arguments, cores, s.l1, s.ub, s.token), str(number), plan.linked)
        for number, s in enumerate(stretch)
    ]
    return checker.check_launches(
        launches,
        target=artifact.target,
        cores=cores,
        gm_size=-(-artifact.nbytes // ALIGNMENT) * ALIGNMENT,
        initialised=[*_bytes(artifact, "input", "weight", "state"), *_places(artifact, written)],
        outputs=[*_bytes(artifact, "output"), *_places(artifact, read)],
    )


def by_runtime(plan: Plan) -> tuple[list[int], list[int]]:
    """The tensors that the runtime writes between launches, and those that it reads."""
    written, read = list[int](), list[int]()
    for step in every(plan.steps):
        match step:
            case Copy():
                written.append(step.to)
                read.append(step.source)
            case Branch():
                read.append(step.condition)
            case Repeat():
                written += [step.step, step.going]
                read += [n for n in (step.count, step.condition, step.next) if n is not None]
            case _:
                pass
    return written, read


def _bytes(artifact: Artifact, *roles: str) -> list[tuple[int, int]]:
    return _places(artifact, [index for index, tensor in enumerate(artifact.tensors) if tensor.role in roles])


def _places(artifact: Artifact, indices: Sequence[int]) -> list[tuple[int, int]]:
    tensors = [artifact.tensors[index] for index in indices]
    return [(tensor.offset, tensor.offset + tensor.nbytes) for tensor in tensors if tensor.nbytes]


@dataclass(frozen=True, slots=True)
class Where:
    """An instruction of a finding in the model's terms."""

    kernel: str
    launch: int
    nodes: tuple[str, ...]


def where(artifact: Artifact, stretch: Sequence[Segment], place: Place) -> Where:
    """The launch, the kernel and the ONNX nodes of an instruction."""
    segment = stretch[int(place.kernel)]
    number = segment.launch_of(place.row)
    step = artifact.plans[0].launches[number]
    whole = tuple(dict.fromkeys(name for slot in step.nodes for name in slot))
    return Where(artifact.kernels[step.kernel].name, number, tuple(segment.nodes[place.slot]) or whole)


Places = Sequence[tuple[Place, Where]]


def _lines(places: Places) -> list[str]:
    """A line for each instruction of a finding that serves known nodes."""
    return [
        f"  row {place.row}, kernel {found.kernel} (launch {found.launch}), is of {names(found.nodes)}"
        for place, found in places
        if found.nodes
    ]


def _data(finding: Finding, places: Places) -> dict[str, Any]:
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
