"""`stepwell assess`: will a model run, and what is in the way? It is compiled with weights that nobody reads.

Every node is in one class:

native       one op of the graph dialect that a kernel does, with views and casts around it, or no work at all
decomposed   several such ops
known        computed when the model is imported, or never needed
host         the CPU runs it, with the reason
unsupported  neither does; with the reason, and what would help
unreached    nobody came to it, since there is a problem with the model as a whole, such as an open shape
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..dialects.graph.elementwise import CastOp
from ..dialects.graph.op import GraphOp
from ..frontend.survey import Step, Survey
from ..passes.location import node_names
from ..runtime.artifact import Artifact
from ..runtime.plan import Tensor
from ..runtime.problem import Problem
from ..runtime.target import Target
from .errors import OK, PROBLEM, CommandError, problems_of
from .passmanager import Settings
from .progress import Progress
from .report import Report, extents, form, plural, size, table
from .work import macs

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

Parts = Mapping[str, Sequence[type[GraphOp]]]
"""The primitives that an ONNX node became, by its name."""
CLASSES = ("native", "decomposed", "known", "host", "unsupported", "unreached")
HOLDERS = ("If", "Loop", "Scan")
_MOST_LINES = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """What becomes of a node."""

    name: str
    operator: str
    kind: str
    """One of `CLASSES`."""
    why: str = ""
    """Of a node that is not for the device."""
    help: str = ""
    """Of one that is not supported: what would help."""
    into: tuple[str, ...] = ()
    """Ops of the graph dialect."""
    inside: str = ""
    """The node in whose graph it stands."""
    macs: int = 0
    nbytes: int = 0
    """Of operands and results."""
    steps: int = 1
    """How often it is gone through: a node of a loop that is written out, once in each step."""
    on_cpu: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of a node that the CPU runs: the names of its steps there, and why each is."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """The findings, in the order of the model."""

    target: Target
    nodes: Sequence[Finding]
    problems: Sequence[Problem] = ()
    """What keeps the model from being compiled."""
    inputs: Sequence[Tensor] = ()
    outputs: Sequence[Tensor] = ()
    nbytes: int | None = None
    """Of the device's memory: weights, inputs, outputs and what is between; None if it does not compile."""
    returned: Mapping[str, str] = field(default_factory=dict[str, str])
    """What else the CPU does, and why: outputs that it returns as they are, branches that are no networks."""

    @property
    def exit_code(self) -> int:
        """0 if it compiles."""
        return PROBLEM if self.problems else OK


@dataclass
class _Parts:
    """What composites are made of, by ONNX node; it looks at the module when `decompose` is done."""

    of: dict[str, list[type[GraphOp]]] = field(default_factory=lambda: defaultdict[str, list[type[GraphOp]]](list))

    def after(self, this: ModulePass, module: ModuleOp) -> None:
        if this.name != "decompose":
            return
        for op in module.walk():
            if isinstance(op, GraphOp):
                for name in node_names(op.location):
                    self.of[name].append(type(op))


def assess(
    model: "str | Path | bytes | ModelProto",
    *,
    target: str | Path | Target = "edge",
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, Any] | None = None,
    precision: str = "fp16",
    cores: int | None = None,
    host: bool = True,
) -> Assessment:
    """What a compilation with these options would say of each node. Raises `ModelFileError` for what is no model, and
    `CommandError` for options that are wrong."""
    from .compilation import compiled_to, link, options_of

    chip = target if isinstance(target, Target) else Target.load(target)
    survey, parts = Survey(), _Parts()
    source: dict[str, Any] = {"target": chip, "shapes": shapes, "constants": constants, "cores": cores}
    options, settings = options_of(precision, cores, {}), Settings(after=parts.after, verify="never")
    artifact, problems = None, tuple[Problem, ...]()
    try:
        work = compiled_to("npu", model, options, settings, host=host, survey=survey, **source)
        artifact = link(work, {"precision": precision}, cores)
    except Exception as error:  # what a user can mend is told, all else is raised again
        problems = tuple(each for each in problems_of(error) if isinstance(each, Problem))
        if not problems or not survey.nodes:
            raise
    nodes = _findings(survey, parts.of, artifact, problems)
    if artifact is None:
        return Assessment(chip, nodes, problems)
    inputs, outputs = (
        [artifact.tensors[n] for n in row] for row in (artifact.plans[0].inputs, artifact.plans[0].outputs)
    )
    names = {name for steps in survey.steps.values() for name in (step.name for step in steps)}
    returned = {name: reason for name, reason in _host_reasons(artifact).items() if name not in names}
    return Assessment(chip, nodes, (), inputs, outputs, artifact.nbytes, returned)


def _host_reasons(artifact: Artifact) -> dict[str, str]:
    return {node.name: node.reason for part in artifact.host for node in part.nodes}


# nodes ----------------------------------------------------------------------------------------------------------------
def _findings(survey: Survey, parts: Parts, artifact: Artifact | None, problems: Sequence[Problem]) -> list[Finding]:
    reasons = None if artifact is None else _host_reasons(artifact)
    told = {problem.where: problem for problem in problems}
    found = list[Finding]()
    for place, (proto, outer) in enumerate(survey.nodes):
        steps = survey.steps.get(place, [])
        holder = None if outer is None else found[outer]
        label = proto.name or next((step.name for step in steps), f"{proto.op_type}_{place}")
        operator = proto.op_type if proto.domain in ("", "ai.onnx") else f"{proto.domain}.{proto.op_type}"
        finding = Finding(label, operator, "", inside=holder.name if holder else "")
        judged = _of_holder(finding, holder, steps, told) or _judged(finding, steps, parts, reasons, told)
        if place in survey.left:
            judged = replace(finding, kind="known", why=survey.left[place])
        if judged is None:
            judged = _unreached(finding, holder, problems)
        found.append(_measured(judged, proto, steps))
    return found


def _of_holder(
    finding: Finding, holder: Finding | None, steps: Sequence[Step], told: Mapping[str, Problem]
) -> Finding | None:
    """A node whose fate is that of the node in whose graph it stands."""
    if holder is None or holder.kind == "unreached" or finding.name in told:
        return None
    if holder.kind == "host":
        return replace(finding, kind="host", why=f"it is part of {holder.name}, which the CPU runs")
    if holder.kind == "unsupported" and (holder.name in told or not steps):
        return replace(finding, kind="unsupported", why=f"it is part of {holder.name}", help=f"see {holder.name}")
    if not steps:
        return replace(finding, kind="known", why=f"{holder.name} never comes to it")
    return None


def _judged(
    finding: Finding,
    steps: Sequence[Step],
    parts: Parts,
    reasons: Mapping[str, str] | None,
    told: Mapping[str, Problem],
) -> Finding | None:
    """A node that the import came to; None for any other."""
    names = [step.name for step in steps]
    problem = next((told[name] for name in (*names, finding.name) if name in told), None)
    if problem is not None:
        why = f"{problem.expected} (found {problem.found})" if problem.found else problem.expected
        return replace(finding, kind="unsupported", why=why, help=problem.remedy)
    if not steps:
        return None
    on_host = [step for step in steps if step.on_host and (reasons is None or step.name in reasons)]
    if on_host:
        return replace(
            finding, kind="host", why=on_host[0].on_host, on_cpu={step.name: step.on_host for step in on_host}
        )
    if any(step.blocked for step in steps):
        why = "what it reads is not made, since a node before it is not supported"
        return replace(finding, kind="unsupported", why=why, help="see to that node first")
    if finding.operator in HOLDERS and not any(any(step.outputs) for step in steps):
        why = "it holds a node that is not supported"
        return replace(finding, kind="unsupported", why=why, help="see to that node first")
    if all(step.is_known for step in steps):
        return replace(finding, kind="known")
    if all(step.on_host for step in steps):
        return replace(finding, kind="known", why="nothing needs its result")
    return _on_device(finding, steps, parts)


def _on_device(finding: Finding, steps: Sequence[Step], parts: Parts) -> Finding:
    """Native or decomposed."""
    made = [_ops(step, parts) for step in steps]
    into = tuple(dict.fromkeys(op.name.removeprefix("graph.") for ops in made for op in ops))
    if finding.operator in HOLDERS:
        return replace(finding, kind="decomposed", into=(*into, "the nodes of its graph"))
    several = any(sum(op is not CastOp and op.structure() != "view" for op in ops) > 1 for ops in made)
    return replace(finding, kind="decomposed" if several else "native", into=into)


def _ops(step: Step, parts: Parts) -> Sequence[type[GraphOp]]:
    """The ops of a step; in place of one that is made of others, these."""
    composite = any(op.structure() == "decompose" for op in step.ops)
    return parts.get(step.name, step.ops) if composite else step.ops


def _unreached(finding: Finding, holder: Finding | None, problems: Sequence[Problem]) -> Finding:
    """A node that no import came to: there is a problem with the model as a whole."""
    assert problems, f"{finding.name} was not imported"
    first = problems[0]
    return replace(finding, kind="unreached", why=f"nodes are looked at when {first.where} is right", help=first.remedy)


def _measured(finding: Finding, proto: "NodeProto", steps: Sequence[Step]) -> Finding:
    """With its work; what is known, and what stands in a node that the CPU runs, has none of its own."""
    if finding.kind == "known" or (finding.operator in HOLDERS and finding.kind != "host"):
        return finding
    if finding.inside and finding.kind == "host" and not any(step.on_host for step in steps):
        return finding
    count, nbytes = 0, 0
    for step in steps:
        inputs, outputs = ([place.shape if place else None for place in row] for row in (step.inputs, step.outputs))
        count += macs(proto, inputs, outputs)
        nbytes += sum(place.nbytes for place in (*step.inputs, *step.outputs) if place)
    return replace(finding, macs=count, nbytes=nbytes, steps=max(len(steps), 1))


# the report -----------------------------------------------------------------------------------------------------------
def assess_model(args: argparse.Namespace, progress: Progress) -> Report:
    """The command."""
    from .commands import chosen, need_file

    path: Path = args.model
    need_file(path)
    if path.suffix in (".stw", ".mlir"):
        raise CommandError(f"{path}: is an ONNX model (found a {path.suffix} file); name the .onnx model")
    with progress.step(f"assessing {path.name} for {args.target}"):
        found = assess(path, **chosen(args))
    return Report(_data(found), _text(path, found), found.exit_code)


def _data(found: Assessment) -> dict[str, Any]:
    return {
        "compiles": not found.problems,
        "target": found.target.name,
        "classes": {kind: dict(zip(("nodes", "macs", "bytes"), _sums(found, kind), strict=True)) for kind in CLASSES},
        "operators": {
            operator: {kind: counts[kind] for kind in CLASSES if counts[kind]}
            for operator, counts in _by_operator(found).items()
        },
        "nodes": [asdict(node) for node in found.nodes],
        "inputs": [_tensor_data(tensor) for tensor in found.inputs],
        "outputs": [_tensor_data(tensor) for tensor in found.outputs],
        "returned": dict(found.returned),
        "memory": {"bytes": found.nbytes, "of": found.target.gm_bytes},
        "problems": [problem.to_dict() for problem in found.problems],
    }


def _sums(found: Assessment, kind: str) -> tuple[int, int, int]:
    nodes = [node for node in found.nodes if node.kind == kind]
    return len(nodes), sum(node.macs for node in nodes), sum(node.nbytes for node in nodes)


def _by_operator(found: Assessment) -> dict[str, Counter[str]]:
    counts = defaultdict[str, Counter[str]](Counter)
    for node in found.nodes:
        counts[node.operator][node.kind] += 1
    return dict(sorted(counts.items()))


def _tensor_data(tensor: Tensor) -> dict[str, Any]:
    return {"name": tensor.name, "dtype": tensor.border, "shape": extents(tensor)}


def _text(path: Path, found: Assessment) -> str:
    parts = [_verdict(path, found), "", _class_table(found), "", _operator_table(found)]
    tensors = [(kind, tensor) for kind in ("input", "output") for tensor in getattr(found, f"{kind}s")]
    rows = [(kind, tensor.name, *form(tensor)) for kind, tensor in tensors]
    if rows:
        parts += ["", table(("", "name", "type", "shape"), rows)]
    for kind, title in (("host", "on the CPU"), ("unsupported", "not supported")):
        lines = [_line(node) for node in found.nodes if node.kind == kind and not _follows(node)]
        lines += [f"  {name}: {why}" for name, why in found.returned.items() if kind == "host"]
        parts += ["", f"{title}:", *_first(lines)] if lines else []
    if found.problems:
        parts += ["", f"{plural(len(found.problems), 'problem')}:", *_first([f"  {p}" for p in found.problems])]
    return "\n".join(parts)


def _verdict(path: Path, found: Assessment) -> str:
    if found.problems:
        return f"{path}: does not compile for {found.target.name}"
    host = sum(len(node.on_cpu) for node in found.nodes) + len(found.returned)
    inside = sum(node.kind == "host" and not node.on_cpu for node in found.nodes)
    with_cpu = f", {plural(host, 'node')} of it on the CPU" if host else ""
    with_cpu += f", with {inside:,} inside" if inside else ""
    used, whole = found.nbytes or 0, found.target.gm_bytes
    memory = f"{size(used)} of {size(whole)} of memory ({used / whole:.1%})"
    return f"{path}: compiles for {found.target.name}{with_cpu}; {memory}"


def _class_table(found: Assessment) -> str:
    sums = {kind: _sums(found, kind) for kind in CLASSES}
    totals = [sum(row[column] for row in sums.values()) for column in range(3)]
    rows = [
        (kind, f"{count:,}", _share(count, totals[0]), _share(mac, totals[1]), _share(nbytes, totals[2]))
        for kind, (count, mac, nbytes) in sums.items()
    ]
    return table(("class", "nodes", "of nodes", "of MACs", "of bytes"), rows)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "–"


def _operator_table(found: Assessment) -> str:
    into = defaultdict[str, dict[str, None]](dict)
    for node in found.nodes:
        into[node.operator] |= dict.fromkeys(node.into)
    rows = [
        (operator, *(f"{counts[kind]:,}" if counts[kind] else "" for kind in CLASSES), ", ".join(into[operator]))
        for operator, counts in _by_operator(found).items()
    ]
    return table(("operator", *CLASSES, "graph ops"), rows)


def _follows(node: Finding) -> bool:
    """Whether its reason is only that of the node around it."""
    return bool(node.inside) and node.why.startswith(f"it is part of {node.inside}")


def _line(node: Finding) -> str:
    often = f", in {len(node.on_cpu)} of its {node.steps} steps" if node.steps > 1 and node.on_cpu else ""
    return f"  {node.name} ({node.operator}){often}: {node.why}" + (f"; {node.help}" if node.help else "")


def _first(lines: Sequence[str]) -> list[str]:
    rest = [f"  and {len(lines) - _MOST_LINES} more; all with --json"] if len(lines) > _MOST_LINES else []
    return [*lines[:_MOST_LINES], *rest]
