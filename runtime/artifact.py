"""A compiled model: kernels, tensors, weights and plans, in memory or in one file (docs/program.md §5).

    artifact.save("model.stw")
    artifact = load("model.stw")

A file is written in whole or not at all, and equal artifacts give equal bytes. Loading maps the file and verifies all
of it before anything is allocated; what is wrong is refused as `ArtifactError`: part, found, expected, what to do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from . import container, manifest, weightfile
from .artifact_rules import problems
from .container import AGAIN, ArtifactError, Container
from .cpu import HostPart
from .encoding import ProgramError, decode
from .isa import ISA_VERSION
from .manifest import DEBUG, MANIFEST, PROGRAM, WEIGHTS, KernelEntry, Manifest, host_member
from .plan import Kernel, Metadata, Plan, Tensor, Versions
from .problem import ArgumentError, FileError
from .steps import Launch, TensorRef
from .target import Target, TargetError

if TYPE_CHECKING:
    from .model import Model

__all__ = [
    "Artifact", "ArtifactError", "Kernel", "Launch", "Metadata", "Plan", "Tensor", "TensorRef", "load",
]  # fmt: skip

FORMAT_VERSION = 3
OURS = Versions(FORMAT_VERSION, ISA_VERSION, __version__)
Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Artifact:
    """A model compiled for a target. Tensors of role `weight` have their values in `weights`, by name."""

    target: Target
    kernels: tuple[Kernel, ...]
    tensors: tuple[Tensor, ...]
    weights: Mapping[str, Array]
    plans: tuple[Plan, ...]
    metadata: Metadata = field(default_factory=Metadata)
    cores: int = 0
    """Cores that its kernels run on; 0: all of the target."""
    versions: Versions = OURS
    debug: Mapping[str, str] = field(default_factory=dict[str, str])
    """IR by stage, as text."""
    host: tuple[HostPart, ...] = ()
    """What runs on the CPU."""

    @cached_property
    def nbytes(self) -> int:
        """Global memory that it needs: arena, weights and state."""
        arena = max((plan.arena_bytes for plan in self.plans), default=0)
        return max([arena, *(tensor.offset + tensor.nbytes for tensor in self.tensors)])

    @cached_property
    def model(self) -> "Model":
        """The artifact on a device of its own, loaded on first use."""
        from .device import Device

        return Device(self.target).load(self)

    def bytes_of(self, role: str) -> int:
        """Bytes of all tensors of a role."""
        return sum(tensor.nbytes for tensor in self.tensors if tensor.role == role)

    def save(self, path: "str | PathLike[str]") -> Path:
        """Writes the file, conventionally `*.stw`. Raises `FileError` if it cannot be written, `ArgumentError` for what
        is no path, and `ValueError` for an artifact that no device could run."""
        if not isinstance(path, str | PathLike):
            raise ArgumentError.of("path", "is that of the file to write", path, 'write save("model.stw")')
        path = Path(path)
        if path.is_dir():
            raise FileError(f"{path}: is a file (found a folder); name a file, conventionally *.stw")
        if found := problems(self):
            raise ValueError("this artifact breaks its own rules: " + "; ".join(found))
        members: dict[str, list[container.Chunk]] = {
            PROGRAM: [kernel.code for kernel in self.kernels],
            WEIGHTS: [*weightfile.pack(self.weights)],
            **{host_member(n): [part.model] for n, part in enumerate(self.host)},
            **{f"{DEBUG}{name}.mlir": [text.encode()] for name, text in sorted(self.debug.items())},
        }
        head = manifest.dump(_manifest(self, members))
        try:
            container.write(path, [(MANIFEST, [head]), *members.items()])
        except OSError as error:
            rule = f"{path}: can be written (found {error.strerror or error})"
            raise FileError(f"{rule}; name a file in a folder that can be written", error) from None
        return path

    @staticmethod
    def load(source: "str | PathLike[str] | bytes", target: Target | str | Path | None = None) -> "Artifact":
        """As the function `load`."""
        return load(source, target)


def load(source: "str | PathLike[str] | bytes", target: Target | str | Path | None = None) -> Artifact:
    """Reads and verifies a file (its path, or all its bytes), for the device `target` if given; weights stay mapped.

    Raises `ArtifactError`, and `ArgumentError` for what is neither a path nor bytes.
    """
    device = target if target is None or isinstance(target, Target) else Target.load(target)
    if isinstance(source, bytes):
        return _read(container.parse(memoryview(source)), device)
    if not isinstance(source, str | PathLike):
        rule = "is the path of a compiled model, or its bytes"
        raise ArgumentError.of("source", rule, source, "compile a model, and save it, first")
    path = Path(source)
    try:
        if path.suffix in MODELS and path.is_file():
            remedy = "compile it first: stepwell.compile, or the command stepwell compile"
            raise ArtifactError("file", f"a {path.suffix} file", "a compiled model, .stw", remedy)
        return _read(container.read(path), device)
    except ArtifactError as error:
        raise error.within(path) from None


MODELS = (".onnx", ".mlir")
"""How files are called that are compiled first."""


def _read(file: Container, target: Target | None) -> Artifact:
    root = manifest.root(bytes(file.content(MANIFEST)))
    _check_versions(manifest.versions(root))
    tables = manifest.load(root)
    _check_members(file, tables)
    built_for = _target(tables)
    if target is not None:
        check_target(built_for, target)
    artifact = Artifact(
        built_for,
        tuple(_kernel(entry, file.content(PROGRAM)) for entry in tables.kernels),
        tables.tensors,
        _weights(file.content(WEIGHTS)),
        tables.plans,
        tables.metadata,
        tables.cores,
        tables.versions,
        {name[len(DEBUG) : -len(".mlir")]: str(file.content(name), "utf-8") for name in _debug(file)},
        tuple(HostPart(bytes(file.content(host_member(n))), nodes) for n, nodes in enumerate(tables.host)),
    )
    if found := problems(artifact):
        raise ArtifactError(MANIFEST, "; ".join(found), "tables that agree", AGAIN)
    return artifact


def _manifest(artifact: Artifact, members: Mapping[str, list[container.Chunk]]) -> Manifest:
    digests: dict[str, tuple[int, str]] = {}
    for name, chunks in members.items():
        digest = sha256()
        for chunk in chunks:
            digest.update(chunk)
        digests[name] = (sum(memoryview(chunk).nbytes for chunk in chunks), digest.hexdigest())
    return Manifest(
        artifact.versions,
        artifact.target.to_dict(),
        artifact.cores,
        artifact.metadata,
        tuple(manifest.kernel_entries(artifact.kernels)),
        artifact.tensors,
        artifact.plans,
        tuple(part.nodes for part in artifact.host),
        digests,
    )


def _check_versions(found: Versions) -> None:
    made = f"made by Stepwell {found.compiler}"
    for part, version, ours in (("format", found.format, OURS.format), ("ISA", found.isa, OURS.isa)):
        if version != ours:
            remedy = f"compile the model again with Stepwell {__version__}, or run it with the version that made it"
            raise ArtifactError(f"{part} version", f"{version} ({made})", ours, remedy)


def _check_members(file: Container, tables: Manifest) -> None:
    """Every member is listed, all that is listed is there, and every byte is as it was."""
    for name in (PROGRAM, WEIGHTS, *tables.members):
        file.content(name)
        if name not in tables.members:
            raise ArtifactError(MANIFEST, f"no digest of {name}", "one of every member", AGAIN)
    for name in file.entries:
        if name == MANIFEST:
            continue
        if name not in tables.members:
            raise ArtifactError(name, "a member that the manifest does not list", "only listed ones", AGAIN)
        size, digest = tables.members[name]
        content = file.content(name)
        if len(content) != size:
            raise ArtifactError(name, f"{len(content)} bytes", f"{size}", AGAIN)
        if (found := sha256(content).hexdigest()) != digest:
            raise ArtifactError(name, f"SHA-256 {found[:16]}…", f"{digest[:16]}…", AGAIN)


def _target(tables: Manifest) -> Target:
    table = dict(tables.target)
    try:
        return Target.of({key: value for key, value in table.items() if key != "name"}, str(table.get("name")))
    except TargetError as error:
        raise ArtifactError(f"{MANIFEST} target", str(error), "the description of a chip", AGAIN) from None


def check_target(built_for: Target, device: Target) -> None:
    """Raises `ArtifactError` if a model built for one target cannot run on another."""
    ours, theirs = device.to_dict(), built_for.to_dict()
    differing = [key for key in ours if key != "name" and ours[key] != theirs[key]]
    if not differing:
        return
    listed = ", ".join(f"{key} {theirs[key]}" for key in differing[:4])
    wanted = ", ".join(f"{key} {ours[key]}" for key in differing[:4])
    more = f" and {len(differing) - 4} more" if len(differing) > 4 else ""
    found, expected = f"{built_for.name} ({listed}{more})", f"{device.name} ({wanted}{more})"
    remedy = f"compile the model for {device.name}, or run it on {built_for.name}"
    raise ArtifactError("target", found, expected, remedy)


def _kernel(entry: KernelEntry, code: memoryview) -> Kernel:
    if entry.offset + entry.size > len(code):
        place = f"bytes {entry.offset} to {entry.offset + entry.size} of {len(code)}"
        raise ArtifactError(f"kernel {entry.name}", place, f"a part of {PROGRAM}", AGAIN)
    try:
        program = decode(bytes(code[entry.offset : entry.offset + entry.size]))
    except ProgramError as error:
        raise ArtifactError(f"kernel {entry.name}", str(error), "a program that decodes", AGAIN) from None
    return Kernel(entry.name, program, entry.l1, entry.ub, entry.ids, entry.slots)


def _weights(content: memoryview) -> dict[str, np.ndarray[Any, Any]]:
    try:
        return weightfile.views(content)
    except weightfile.WeightsError as error:
        raise ArtifactError(WEIGHTS, str(error), "safetensors", AGAIN) from None


def _debug(file: Container) -> list[str]:
    return [name for name in file.entries if name.startswith(DEBUG)]
