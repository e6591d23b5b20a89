"""The manifest: an artifact's tables as JSON, and back, every value checked for its type on the way."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .container import AGAIN, ArtifactError
from .cpu import HostNode
from .plan import Kernel, Metadata, Plan, Tensor, Versions
from .steps import Argument, Branch, Copy, HostCall, Launch, Repeat, Step, TensorRef

MANIFEST = "manifest.json"
PROGRAM = "program.bin"
WEIGHTS = "weights.safetensors"
DEBUG = "debug/"


def host_member(part: int) -> str:
    """The member with the ONNX model of a part that runs on the CPU."""
    return f"host/{part}.onnx"


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """A kernel as the manifest has it: its program is a range of `program.bin`."""

    name: str
    offset: int
    size: int
    l1: int
    ub: int
    ids: int
    slots: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """All tables of an artifact."""

    versions: Versions
    target: Mapping[str, Any]
    cores: int
    metadata: Metadata
    kernels: tuple[KernelEntry, ...]
    tensors: tuple[Tensor, ...]
    plans: tuple[Plan, ...]
    host: tuple[tuple[HostNode, ...], ...]
    """The nodes of each part that runs on the CPU."""
    members: Mapping[str, tuple[int, str]]
    """Size and SHA-256 of every other member."""


def kernel_entries(kernels: Sequence[Kernel]) -> Iterator[KernelEntry]:
    """Where each kernel lies in `program.bin`."""
    at = 0
    for kernel in kernels:
        yield KernelEntry(kernel.name, at, len(kernel.code), kernel.l1, kernel.ub, kernel.ids, kernel.slots)
        at += len(kernel.code)


def dump(manifest: Manifest) -> bytes:
    """The JSON text; equal manifests give equal bytes."""
    names = dict[str, int]()  # node names stand in one list and are referred to by index
    plans = [_dump_plan(plan, names) for plan in manifest.plans]
    value = {
        "format": manifest.versions.format,
        "isa": manifest.versions.isa,
        "compiler": manifest.versions.compiler,
        "target": dict(manifest.target),
        "cores": manifest.cores,
        "model": manifest.metadata.model,
        "options": dict(manifest.metadata.options),
        "onnx": dict(manifest.metadata.onnx),
        "kernels": [_fields(entry) for entry in manifest.kernels],
        "tensors": [_fields(tensor) for tensor in manifest.tensors],
        "plans": plans,
        "host": [[_fields(node) for node in nodes] for nodes in manifest.host],
        "nodes": list(names),
        "members": {name: {"size": size, "sha256": digest} for name, (size, digest) in manifest.members.items()},
    }
    return (json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _fields(data: Any) -> dict[str, Any]:
    return {name: getattr(data, name) for name in data.__slots__}


def _dump_plan(plan: Plan, names: dict[str, int]) -> dict[str, Any]:
    steps = [_dump_step(step, names) for step in plan.steps]
    borders = {"inputs": list(plan.inputs), "outputs": list(plan.outputs), "linked": int(plan.linked)}
    return {"binding": dict(plan.binding), "arena_bytes": plan.arena_bytes, "steps": steps, **borders}


def _dump_step(step: Step, names: dict[str, int]) -> dict[str, Any]:
    match step:
        case Launch():
            arguments = [a if isinstance(a, int) else [a.tensor, a.offset] for a in step.arguments]
            nodes = [[names.setdefault(name, len(names)) for name in slot] for slot in step.nodes]
            base = {"l1": step.l1, "ub": step.ub, "token": step.token}
            return {"launch": step.kernel, "arguments": arguments, "nodes": nodes, **base}
        case Copy():
            return {"copy": step.source, "to": step.to, "row": _or_none(step.row)}
        case HostCall():
            return {"host": step.part, "inputs": list(step.inputs), "outputs": list(step.outputs)}
        case Branch():
            branches = {"then": step.then, "otherwise": step.otherwise}
            return {"if": step.condition} | {k: [_dump_step(s, names) for s in steps] for k, steps in branches.items()}
        case Repeat():
            numbers = {"step": step.step, "going": step.going, "next": step.next}
            bounds = {"count": _or_none(step.count), "condition": _or_none(step.condition)}
            return {"repeat": [_dump_step(inner, names) for inner in step.steps], **numbers, **bounds}


def _or_none(index: int | None) -> int:
    return -1 if index is None else index


class Value:
    """A value of the manifest and where it stands; each reader raises `ArtifactError` for a value of another type."""

    def __init__(self, value: Any, path: str) -> None:
        self.value = value
        self.path = path

    def refuse(self, expected: str, found: object = None) -> ArtifactError:
        """The error for a value that is not what was expected."""
        text = repr(self.value) if found is None else str(found)
        return ArtifactError(f"{MANIFEST} {self.path}", text if len(text) <= 80 else text[:77] + "...", expected, AGAIN)

    def integer(self) -> int:
        """An integer; a bool is none."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.refuse("an integer")
        return self.value

    def count(self) -> int:
        """An integer of at least 0."""
        if self.integer() < 0:
            raise self.refuse("an integer of 0 or more")
        return self.integer()

    def text(self) -> str:
        """A string."""
        if not isinstance(self.value, str):
            raise self.refuse("a string")
        return self.value

    def items(self) -> list["Value"]:
        """A list."""
        if not isinstance(self.value, list):
            raise self.refuse("a list")
        return [Value(item, f"{self.path}[{index}]") for index, item in enumerate(self.value)]

    def table(self) -> dict[str, "Value"]:
        """An object with any keys."""
        if not isinstance(self.value, dict):
            raise self.refuse("an object")
        table: dict[str, Any] = self.value
        return {key: Value(item, f"{self.path}.{key}".lstrip(".")) for key, item in table.items()}

    def record(self, *keys: str) -> dict[str, "Value"]:
        """An object with exactly these keys."""
        table = self.table()
        if set(table) != set(keys):
            raise self.refuse(f"the keys {', '.join(sorted(keys))}", f"the keys {', '.join(sorted(table))}")
        return table

    def texts(self) -> dict[str, str]:
        """An object whose values are strings."""
        return {key: item.text() for key, item in self.table().items()}


def root(data: bytes) -> Value:
    """The whole manifest. Raises `ArtifactError` for what is no JSON object."""
    try:
        value = json.loads(data)
    except ValueError as error:
        raise ArtifactError(MANIFEST, f"no JSON ({error})", "a JSON object", AGAIN) from None
    found = Value(value, "")
    found.table()
    return found


def versions(manifest: Value) -> Versions:
    """What made the artifact: readable of any version. Raises `ArtifactError`."""
    table = manifest.table()
    for key in ("format", "isa", "compiler"):
        if key not in table:
            raise ArtifactError(MANIFEST, f"no {key}", "the versions of format, isa and compiler", AGAIN)
    return Versions(table["format"].integer(), table["isa"].integer(), table["compiler"].text())


def load(manifest: Value) -> Manifest:
    """All tables. Raises `ArtifactError` for the first value of another type."""
    table = manifest.record(
        *("format", "isa", "compiler", "target", "cores", "model", "options", "onnx"),
        *("kernels", "tensors", "plans", "host", "nodes", "members"),
    )
    names = [name.text() for name in table["nodes"].items()]
    metadata = Metadata(table["model"].text(), table["options"].texts(), table["onnx"].texts())
    return Manifest(
        versions(manifest),
        {key: item.value for key, item in table["target"].table().items()},
        table["cores"].count(),
        metadata,
        tuple(_load_kernel(item) for item in table["kernels"].items()),
        tuple(_load_tensor(item) for item in table["tensors"].items()),
        tuple(_load_plan(item, names) for item in table["plans"].items()),
        tuple(tuple(_load_host_node(node) for node in part.items()) for part in table["host"].items()),
        {name: _load_member(item) for name, item in table["members"].table().items()},
    )


def _load_member(value: Value) -> tuple[int, str]:
    table = value.record("size", "sha256")
    return table["size"].count(), table["sha256"].text()


def _load_kernel(value: Value) -> KernelEntry:
    table = value.record(*KernelEntry.__slots__)
    return KernelEntry(
        table["name"].text(), *(table[key].count() for key in ("offset", "size", "l1", "ub", "ids", "slots"))
    )


def _load_tensor(value: Value) -> Tensor:
    table = value.record(*Tensor.__slots__)
    shape = tuple(extent.count() for extent in table["shape"].items())
    name, dtype, role, border = (table[key].text() for key in ("name", "dtype", "role", "border"))
    return Tensor(name, dtype, shape, role, table["offset"].count(), border)  # pyright: ignore[reportArgumentType] - Artifact checks it


def _load_plan(value: Value, names: list[str]) -> Plan:
    table = value.record("binding", "arena_bytes", "steps", "inputs", "outputs", "linked")
    return Plan(
        {key: item.integer() for key, item in table["binding"].table().items()},
        table["arena_bytes"].count(),
        tuple(_load_step(item, names) for item in table["steps"].items()),
        tuple(item.count() for item in table["inputs"].items()),
        tuple(item.count() for item in table["outputs"].items()),
        bool(table["linked"].count()),
    )


def _load_host_node(value: Value) -> HostNode:
    table = value.record(*HostNode.__slots__)
    name, operator, reason = (table[key].text() for key in ("name", "operator", "reason"))
    return HostNode(name, operator, reason, table["nbytes"].count())


def _load_step(value: Value, names: list[str]) -> Step:
    table = value.table()
    if "copy" in table:
        table = value.record("copy", "to", "row")
        row = table["row"].integer()
        return Copy(table["copy"].count(), table["to"].count(), None if row < 0 else row)
    if "host" in table:
        table = value.record("host", "inputs", "outputs")
        inputs, outputs = (tuple(item.count() for item in table[key].items()) for key in ("inputs", "outputs"))
        return HostCall(table["host"].count(), inputs, outputs)
    if "if" in table:
        table = value.record("if", "then", "otherwise")
        then, otherwise = (tuple(_load_step(s, names) for s in table[key].items()) for key in ("then", "otherwise"))
        return Branch(table["if"].count(), then, otherwise)
    if "repeat" in table:
        table = value.record("repeat", "step", "going", "next", "count", "condition")
        count, condition = (table[key].integer() for key in ("count", "condition"))
        step, going, following = (table[key].count() for key in ("step", "going", "next"))
        steps = tuple(_load_step(inner, names) for inner in table["repeat"].items())
        bounds = None if count < 0 else count, None if condition < 0 else condition
        return Repeat(*bounds, step, going, following, steps)
    return _load_launch(value, names)


def _load_launch(value: Value, names: list[str]) -> Launch:
    table = value.record("launch", "arguments", "nodes", "l1", "ub", "token")
    nodes = tuple(tuple(_name(item, names) for item in slot.items()) for slot in table["nodes"].items())
    arguments = tuple(_load_argument(item) for item in table["arguments"].items())
    return Launch(
        table["launch"].count(), arguments, nodes, table["l1"].count(), table["ub"].count(), table["token"].count()
    )


def _load_argument(value: Value) -> Argument:
    if not isinstance(value.value, list):
        return value.integer()
    parts = value.items()
    if len(parts) != 2:
        raise value.refuse("an integer, or a tensor and an offset")
    return TensorRef(parts[0].count(), parts[1].integer())


def _name(value: Value, names: list[str]) -> str:
    if value.count() >= len(names):
        raise value.refuse(f"an index into {len(names)} node names")
    return names[value.count()]
