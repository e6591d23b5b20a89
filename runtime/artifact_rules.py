"""What holds in every artifact that a device can run, beside the types: indices, places, sizes."""

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from .isa import TOKEN_IDS
from .numerics.dtype import DType
from .plan import ALIGNMENT, BORDERS, MOST_ARGUMENTS, ROLES, Kernel, Plan, Tensor
from .steps import Branch, Copy, HostCall, Launch, Repeat, Step, TensorRef, inside

if TYPE_CHECKING:
    from .artifact import Artifact

_DTYPES = {dtype.label for dtype in DType if dtype is not DType.I64}
_TRUTH, _NUMBER = DType.B8, DType.I32


def problems(artifact: "Artifact") -> list[str]:
    """Every broken rule, as `<part>: <what was found>; <what was expected>`; empty for a sound artifact."""
    found = [p for tensor in artifact.tensors for p in _tensor(tensor, artifact)]
    if found:
        return found  # the rules below need sizes
    found += [p for kernel in artifact.kernels for p in _kernel(kernel, artifact)]
    found += _places(artifact)
    found += [f"weight {name}: has no tensor" for name in sorted(artifact.weights.keys() - _names(artifact, "weight"))]
    found += [p for number, plan in enumerate(artifact.plans) for p in _plan(plan, f"plan {number}", artifact)]
    if not artifact.plans:
        found.append("no plan; at least one was expected")
    if not 0 <= artifact.cores <= artifact.target.cores:
        found.append(f"{artifact.cores} cores; {artifact.target.name} has {artifact.target.cores}")
    if artifact.nbytes > artifact.target.gm_bytes:
        found.append(f"{artifact.nbytes} bytes of global memory; {artifact.target.name} has {artifact.target.gm_bytes}")
    return found


def _names(artifact: "Artifact", role: str) -> set[str]:
    return {tensor.name for tensor in artifact.tensors if tensor.role == role}


def _tensor(tensor: Tensor, artifact: "Artifact") -> Iterator[str]:
    part = f"tensor {tensor.name}"
    if tensor.is_host:
        yield from _host_value(tensor, part)
        return
    if tensor.dtype not in _DTYPES:
        yield f"{part}: type {tensor.dtype}; one of {', '.join(sorted(_DTYPES))} was expected"
        return
    if tensor.role not in ROLES:
        yield f"{part}: role {tensor.role}; one of {', '.join(ROLES)} was expected"
    if tensor.offset % ALIGNMENT or tensor.offset < 0:
        yield f"{part}: offset {tensor.offset}; a multiple of {ALIGNMENT} was expected"
    if tensor.role in ("input", "output") and tensor.dtype not in BORDERS.get(tensor.border, ()):
        yield f"{part}: border type {tensor.border or 'none'} of {tensor.dtype}; see docs/program.md §4"
    if tensor.role == "weight":
        array = artifact.weights.get(tensor.name)
        if array is None:
            yield f"{part}: has no weights"
        elif array.shape != tensor.shape or array.dtype not in _weight_dtypes(DType.parse(tensor.dtype)):
            found, expected = f"{array.dtype}{list(array.shape)}", f"{tensor.dtype}{list(tensor.shape)}"
            yield f"{part}: weights of {found}; {expected} was expected"


def _host_value(tensor: Tensor, part: str) -> Iterator[str]:
    if tensor.role not in ("input", "output", "temp"):
        yield f"{part}: role {tensor.role}; a value of the host is an input, an output or a temp"
    try:
        kind = tensor.host_type
    except ValueError as error:
        yield f"{part}: type {tensor.border!r}; {error}"
        return
    extents = (kind.shape or ()) if kind.is_static else ()
    if tensor.shape != extents:
        yield f"{part}: extents {list(tensor.shape)}; {list(extents)}, those of {kind}, were expected"


def _weight_dtypes(dtype: DType) -> tuple[object, ...]:
    return (np.dtype(np.bool_), np.dtype(np.uint8)) if dtype is DType.B8 else (dtype.numpy,)


def _kernel(kernel: Kernel, artifact: "Artifact") -> Iterator[str]:
    part, target = f"kernel {kernel.name}", artifact.target
    for what, used, limit in (
        ("bytes of L1", kernel.l1, target.l1_bytes),
        ("bytes of UB", kernel.ub, target.ub_bytes),
        ("token ids", kernel.ids, TOKEN_IDS),
    ):
        if not 0 <= used <= limit:
            yield f"{part}: {used} {what}; at most {limit} were expected"
    last = max((row.slot for row in kernel.program), default=0)
    if last >= kernel.slots:
        yield f"{part}: a row of slot {last}; its table has {kernel.slots}"


def _places(artifact: "Artifact") -> Iterator[str]:
    """Arena first, then weights, then state; nothing that is kept overlaps."""
    arena = max((plan.arena_bytes for plan in artifact.plans), default=0)
    for tensor in artifact.tensors:
        inside = tensor.is_host or tensor.offset + tensor.nbytes <= arena
        if tensor.role not in ("weight", "state") and not inside:
            yield f"tensor {tensor.name}: ends at {tensor.offset + tensor.nbytes}; the arena has {arena} bytes"
    end, before = arena, "the arena"
    kept = [tensor for tensor in artifact.tensors if tensor.role in ("weight", "state")]
    for tensor in sorted(kept, key=lambda tensor: tensor.offset):
        if tensor.offset < end:
            yield f"tensor {tensor.name}: begins at {tensor.offset}; {before} ends at {end}"
        end, before = max(end, tensor.offset + tensor.nbytes), tensor.name


def _plan(plan: Plan, part: str, artifact: "Artifact") -> Iterator[str]:
    for role, borders in (("input", plan.inputs), ("output", plan.outputs)):
        for index in borders:
            if index >= len(artifact.tensors) or artifact.tensors[index].role != role:
                yield f"{part}: tensor {index} is no {role}"
    for what, indices in (("inputs", plan.inputs), ("outputs", plan.outputs)):
        names = [artifact.tensors[i].name for i in indices if i < len(artifact.tensors)]
        if len(set(names)) != len(names):
            yield f"{part}: {what} with equal names; each has its own"
    yield from _steps(plan.steps, part, artifact)
    known = set(plan.inputs)
    yield from _held(plan.steps, known, part, artifact)
    yield from _made(plan.outputs, known, f"{part} outputs", artifact)


def _steps(steps: Sequence[Step], part: str, artifact: "Artifact") -> Iterator[str]:
    for number, step in enumerate(steps):
        place = f"{part} step {number}"
        match step:
            case Launch():
                yield from _launch(step, place, artifact)
            case Copy():
                yield from _copy(step, place, artifact)
            case HostCall():
                yield from _host_call(step, place, artifact)
            case Branch():
                yield from _single(_TRUTH, [step.condition], place, artifact)
                yield from _steps(step.then, f"{place} then", artifact)
                yield from _steps(step.otherwise, f"{place} otherwise", artifact)
            case Repeat():
                yield from _single(_NUMBER, [step.count, step.step], place, artifact)
                yield from _single(_TRUTH, [step.condition, step.going, step.next], place, artifact)
                yield from _steps(step.steps, place, artifact)


def _single(dtype: DType, indices: Sequence[int | None], part: str, artifact: "Artifact") -> Iterator[str]:
    """What the host reads to decide, or writes: tensors of one element."""
    for index in (index for index in indices if index is not None):
        tensor = artifact.tensors[index] if index < len(artifact.tensors) else None
        if tensor is None or tensor.dtype != dtype.label or prod(tensor.shape) != 1:
            yield f"{part}: tensor {index}; one value of {dtype.label} was expected"


def _copy(step: Copy, part: str, artifact: "Artifact") -> Iterator[str]:
    tensors = artifact.tensors
    if max(step.source, step.to) >= len(tensors):
        yield f"{part}: tensors {step.source} and {step.to}; there are {len(tensors)}"
        return
    source, to = tensors[step.source], tensors[step.to]
    on_device = not source.is_host and not to.is_host
    if step.row is not None:
        yield from _single(_NUMBER, [step.row], part, artifact)
        if not on_device or not to.shape or source.dtype != to.dtype or prod(to.shape[1:]) != prod(source.shape):
            yield f"{part}: tensor {step.source} is no row of tensor {step.to}"
    elif (on_device and source.dtype != to.dtype) or (not source.is_host and prod(to.shape) != prod(source.shape)):
        yield f"{part}: tensor {step.to} has no place for tensor {step.source}; one of its type and size was expected"


def _held(steps: Sequence[Step], known: set[int], part: str, artifact: "Artifact") -> Iterator[str]:
    """Values of the host are made before they are used. `known` grows by those that the steps make for certain."""
    for number, step in enumerate(steps):
        place, nested = f"{part} step {number}", [known.copy() for _ in inside(step)]
        for these, inner in zip(nested, inside(step), strict=True):
            yield from _held(inner, these, place, artifact)
        if isinstance(step, Branch):
            known |= nested[0] & nested[1]
        elif isinstance(step, Copy | HostCall):
            used, made = ((step.source,), (step.to,)) if isinstance(step, Copy) else (step.inputs, step.outputs)
            yield from _made(used, known, place, artifact)
            known.update(made)


def _made(indices: Sequence[int], known: set[int], part: str, artifact: "Artifact") -> Iterator[str]:
    for index in indices:
        if index < len(artifact.tensors) and artifact.tensors[index].is_host and index not in known:
            yield f"{part}: tensor {index} of the host has no value yet; one that is made before was expected"


def _host_call(step: HostCall, part: str, artifact: "Artifact") -> Iterator[str]:
    if step.part >= len(artifact.host):
        yield f"{part}: part {step.part} on the host; there are {len(artifact.host)}"
    for index in (*step.inputs, *step.outputs):
        if index >= len(artifact.tensors) or not artifact.tensors[index].is_host:
            yield f"{part}: tensor {index} is no value of the host"


def _launch(launch: Launch, part: str, artifact: "Artifact") -> Iterator[str]:
    if launch.kernel >= len(artifact.kernels):
        yield f"{part}: kernel {launch.kernel}; there are {len(artifact.kernels)}"
        return
    kernel, target = artifact.kernels[launch.kernel], artifact.target
    part = f"{part} (kernel {kernel.name})"
    if len(launch.nodes) != kernel.slots:
        yield f"{part}: nodes for {len(launch.nodes)} slots; the kernel has {kernel.slots}"
    if len(launch.arguments) > MOST_ARGUMENTS:
        yield f"{part}: {len(launch.arguments)} arguments; at most {MOST_ARGUMENTS} were expected"
    for what, end, limit in (
        ("L1", launch.l1 + kernel.l1, target.l1_bytes),
        ("UB", launch.ub + kernel.ub, target.ub_bytes),
        ("token ids", launch.token + kernel.ids, TOKEN_IDS),
    ):
        if end > limit:
            yield f"{part}: {what} up to {end}; {target.name} has {limit}"
    for number, argument in enumerate(launch.arguments):
        if isinstance(argument, TensorRef):
            yield from _reference(argument, f"{part} argument {number}", artifact)
        elif not -(1 << 63) <= argument < 1 << 63:
            yield f"{part} argument {number}: {argument}; 64 bits were expected"


def _reference(argument: TensorRef, part: str, artifact: "Artifact") -> Iterator[str]:
    if argument.tensor >= len(artifact.tensors):
        yield f"{part}: tensor {argument.tensor}; there are {len(artifact.tensors)}"
        return
    tensor = artifact.tensors[argument.tensor]
    if tensor.is_host:
        yield f"{part}: {tensor.name}, a value of the host; a tensor of the device was expected"
    if not 0 <= argument.offset <= tensor.nbytes:
        yield f"{part}: byte {argument.offset} of {tensor.name}, which has {tensor.nbytes}"
