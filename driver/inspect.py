"""`stepwell inspect`: sections, kernels, launches, and the disassembly with the ONNX node of each row."""

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any

from ..runtime.artifact import Artifact, load
from ..runtime.assembly import disassemble
from ..runtime.plan import Kernel
from ..runtime.steps import Branch, Copy, HostCall, Launch, Repeat, Step, TensorRef
from .errors import CommandError
from .progress import Progress
from .report import Report, extents, form, names, plural, size, table


def inspect_artifact(args: argparse.Namespace, progress: Progress) -> Report:
    """What is in a file. Raises `ArtifactError`, `CommandError`."""
    with progress.step("verifying the file"):
        artifact = load(args.artifact)
    known = {kernel.name: kernel for kernel in artifact.kernels}
    if unknown := [name for name in args.kernel if name not in known]:
        raise CommandError(
            *(
                f"--kernel {name}: is a kernel of the file (found none of this name); there are {names(list(known), 8)}"
                for name in unknown
            )
        )
    data = _data(artifact)
    texts = [_overview(artifact, args.artifact.stat().st_size)]
    if args.steps:
        texts.append(_steps(artifact))
    listings = {name: listing(artifact, known[name]) for name in args.kernel}
    texts += [f"kernel {name}\n{text}" for name, text in listings.items()]
    if listings:
        data["disassembly"] = listings
    return Report(data, "\n\n".join(texts))


def _overview(artifact: Artifact, nbytes: int) -> str:
    target, versions = artifact.target, artifact.versions
    options = ", ".join(f"{key} {value}" for key, value in artifact.metadata.options.items()) or "no options"
    cores = plural(artifact.cores or target.cores, "core")
    kernels = ("kernel", "rows", "bytes", "L1", "UB", "tokens", "launches", "nodes")
    parts = [
        f"{artifact.metadata.model or 'model'}: {size(nbytes)}, for {target.name} ({cores}), {options}\n"
        f"made by Stepwell {versions.compiler}; format {versions.format}, ISA {versions.isa}",
        table(("section", "content"), _sections(artifact), indent=""),
        table(("border", "name", "type", "shape", "on the device"), _borders(artifact), indent=""),
        table(kernels, _kernel_rows(artifact), indent=""),
    ]
    return "\n\n".join(parts)


def _sections(artifact: Artifact) -> list[tuple[str, str]]:
    sizes = _bytes(artifact)
    return [
        ("program", f"{plural(len(artifact.kernels), 'kernel')}, {size(sizes['program'])}"),
        ("weights", f"{plural(len(artifact.weights), 'array')}, {size(sizes['weights'])}"),
        ("memory", f"{size(sizes['memory'])}, of which arena {size(sizes['arena'])}"),
        ("plans", ", ".join(plural(len(plan.launches), "launch") for plan in artifact.plans)),
        ("debug", ", ".join(artifact.debug) or "–"),
    ]


def _bytes(artifact: Artifact) -> dict[str, int]:
    return {
        "program": sum(len(kernel.code) for kernel in artifact.kernels),
        "weights": sum(array.nbytes for array in artifact.weights.values()),
        "arena": max(plan.arena_bytes for plan in artifact.plans),
        "memory": artifact.nbytes,
    }


def _borders(artifact: Artifact) -> list[tuple[object, ...]]:
    plan = artifact.plans[0]
    tensors = [artifact.tensors[index] for index in (*plan.inputs, *plan.outputs)]
    return [(t.role, t.name, *form(t), t.dtype) for t in tensors]


def _launches(artifact: Artifact, kernel: Kernel) -> list[Launch]:
    index = artifact.kernels.index(kernel)
    return [step for plan in artifact.plans for step in plan.launches if step.kernel == index]


def _kernel_rows(artifact: Artifact) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for kernel in artifact.kernels:
        launches = _launches(artifact, kernel)
        nodes = list(dict.fromkeys(name for launch in launches for slot in launch.nodes for name in slot))
        numbers = (len(kernel.program), len(kernel.code), kernel.l1, kernel.ub, kernel.ids, len(launches))
        rows.append((kernel.name, *numbers, names(nodes)))
    return rows


def _steps(artifact: Artifact) -> str:
    rows = list(_rows(artifact, artifact.plans[0].steps, count(), ""))
    return table(("step", "kernel", "arguments", "nodes"), rows, indent="")


def _rows(
    artifact: Artifact, steps: Sequence[Step], numbers: Iterator[int], indent: str
) -> Iterator[tuple[object, ...]]:
    """Launches by number; what the runtime does in between; what is in a branch or a loop, indented."""
    for step in steps:
        match step:
            case Launch():
                arguments = " ".join(_argument(artifact, argument) for argument in step.arguments)
                yield next(numbers), indent + artifact.kernels[step.kernel].name, arguments, names(_nodes(step))
            case Copy():
                row = "" if step.row is None else f", row {_name(artifact, step.row)}"
                yield "", f"{indent}copy", f"{_name(artifact, step.source)} → {_name(artifact, step.to)}{row}", ""
            case HostCall():
                inputs, outputs = (" ".join(_name(artifact, n) for n in each) for each in (step.inputs, step.outputs))
                nodes = [node.name for node in artifact.host[step.part].nodes]
                yield "", f"{indent}on the CPU", f"{inputs} → {outputs}", names(nodes)
            case Branch():
                yield "", f"{indent}if {_name(artifact, step.condition)}", "", ""
                yield from _rows(artifact, step.then, numbers, f"{indent}  ")
                yield "", f"{indent}else", "", ""
                yield from _rows(artifact, step.otherwise, numbers, f"{indent}  ")
            case Repeat():
                yield "", f"{indent}repeat", _bounds(artifact, step), ""
                yield from _rows(artifact, step.steps, numbers, f"{indent}  ")


def _bounds(artifact: Artifact, step: Repeat) -> str:
    times = "" if step.count is None else f"{_name(artifact, step.count)} times, "
    first = "" if step.condition is None else f"{_name(artifact, step.condition)}, then "
    return f"{times}while {first}{_name(artifact, step.next)}"


def _nodes(launch: Launch) -> list[str]:
    return list(dict.fromkeys(name for slot in launch.nodes for name in slot))


def _name(artifact: Artifact, tensor: int) -> str:
    return _argument(artifact, TensorRef(tensor))


def _argument(artifact: Artifact, argument: int | TensorRef) -> str:
    if isinstance(argument, int):
        return str(argument)
    name = artifact.tensors[argument.tensor].name
    name = name if len(name) <= 16 else f"{name[:13]}…"
    return f"{name}+{argument.offset}" if argument.offset else name


def listing(artifact: Artifact, kernel: Kernel) -> str:
    """The kernel's rows, each with the ONNX nodes that it serves; where launches differ, those of the first."""
    lines = disassemble(kernel.program).splitlines()
    texts = [line.partition("   ; slot")[0] for line in lines]
    launches = _launches(artifact, kernel)
    width = min(max((len(text) for text in texts), default=0), 120)
    out: list[str] = []
    if len(launches) > 1:
        out.append(f"; launched {len(launches)} times; the nodes are those of the first")
    for number, (row, text) in enumerate(zip(kernel.program, texts, strict=True)):
        nodes = launches[0].nodes[row.slot] if launches else ()
        out.append(f"{number:4}  {text:<{width}}  ; {names(nodes)}" if nodes else f"{number:4}  {text}")
    return "\n".join(out)


def _data(artifact: Artifact) -> dict[str, Any]:
    plan = artifact.plans[0]
    return {
        "model": artifact.metadata.model,
        "target": artifact.target.name,
        "cores": artifact.cores or artifact.target.cores,
        "options": dict(artifact.metadata.options),
        "versions": {name: getattr(artifact.versions, name) for name in ("format", "isa", "compiler")},
        "bytes": _bytes(artifact),
        "inputs": [_tensor(artifact, index) for index in plan.inputs],
        "outputs": [_tensor(artifact, index) for index in plan.outputs],
        "kernels": [
            {"name": k.name, "rows": len(k.program), "bytes": len(k.code), "l1": k.l1, "ub": k.ub, "ids": k.ids,
             "launches": len(_launches(artifact, k))}
            for k in artifact.kernels
        ],
        "steps": [_step(artifact, step) for step in plan.steps],
    }  # fmt: skip


def _step(artifact: Artifact, step: Step) -> dict[str, Any]:
    name = partial(_name, artifact)
    match step:
        case Launch():
            arguments = [_argument(artifact, argument) for argument in step.arguments]
            return {"kernel": artifact.kernels[step.kernel].name, "arguments": arguments, "nodes": step.nodes}
        case Copy():
            row = {} if step.row is None else {"row": name(step.row)}
            return {"copy": name(step.source), "to": name(step.to), **row}
        case HostCall():
            nodes = [node.name for node in artifact.host[step.part].nodes]
            return {"host": nodes, "inputs": [*map(name, step.inputs)], "outputs": [*map(name, step.outputs)]}
        case Branch():
            then, other = ([_step(artifact, inner) for inner in each] for each in (step.then, step.otherwise))
            return {"if": name(step.condition), "then": then, "otherwise": other}
        case Repeat():
            bounds = {"count": step.count, "condition": step.condition, "next": step.next}
            named = {key: None if n is None else name(n) for key, n in bounds.items()}
            return {"repeat": [_step(artifact, inner) for inner in step.steps], **named}


def _tensor(artifact: Artifact, index: int) -> dict[str, Any]:
    tensor = artifact.tensors[index]
    return {"name": tensor.name, "dtype": tensor.border, "shape": extents(tensor), "device_dtype": tensor.dtype}
