"""`stepwell inspect`: sections, kernels, launches, and the disassembly with the ONNX node of each row."""

import argparse
from typing import Any

from ..runtime.artifact import Artifact
from ..runtime.assembly import disassemble
from ..runtime.plan import Kernel
from ..runtime.steps import Launch, TensorRef
from .commands import load_file
from .errors import CommandError
from .progress import Progress
from .report import Report, names, plural, shape, size, table


def inspect_artifact(args: argparse.Namespace, progress: Progress) -> Report:
    """What is in a file. Raises `ArtifactError`, `CommandError`."""
    with progress.step("verifying the file"):
        artifact = load_file(args.artifact)
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
    return [(t.role, t.name, t.border, shape(t.shape), t.dtype) for t in tensors]


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
    rows: list[tuple[object, ...]] = []
    for number, step in enumerate(artifact.plans[0].launches):
        arguments = [_argument(artifact, argument) for argument in step.arguments]
        nodes = list(dict.fromkeys(name for slot in step.nodes for name in slot))
        rows.append((number, artifact.kernels[step.kernel].name, " ".join(arguments), names(nodes)))
    return table(("step", "kernel", "arguments", "nodes"), rows, indent="")


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
        "steps": [
            {"kernel": artifact.kernels[step.kernel].name,
             "arguments": [_argument(artifact, argument) for argument in step.arguments], "nodes": step.nodes}
            for step in plan.launches
        ],
    }  # fmt: skip


def _tensor(artifact: Artifact, index: int) -> dict[str, Any]:
    tensor = artifact.tensors[index]
    return {"name": tensor.name, "dtype": tensor.border, "shape": list(tensor.shape), "device_dtype": tensor.dtype}
