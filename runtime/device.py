"""An emulated accelerator, with the usual nouns.

device = Device("edge")
model = device.load(artifact)              # memory allocated, weights copied, once
outputs = model.run({"x": x})

stream = device.stream()                   # or step by step, in virtual time
buffer = device.allocate(x.nbytes)
stream.copy_in(buffer, x)
stream.synchronise()
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import stream as streams
from .artifact import Artifact, load
from .border import InputError
from .memory import Memory
from .numerics.dtype import DType
from .pool import Pool, PoolStatistics
from .problem import ArgumentError
from .stream import COPY_IN, COPY_OUT, Clock, Event, StreamError
from .target import Target

if TYPE_CHECKING:
    from .model import Model

__all__ = ["Buffer", "Device", "Event", "Stream", "StreamError", "run"]

Array = NDArray[Any]


class Device:
    """A chip of a target: memories, pool, clock. `gm_bytes` limits its global memory, whose pages exist once used."""

    def __init__(self, target: Target | str | Path = "edge", gm_bytes: int | None = None) -> None:
        self.target = target if isinstance(target, Target) else Target.load(target)
        self._size = min(gm_bytes or self.target.gm_bytes, self.target.gm_bytes)
        self.pool = Pool(self._size)
        self.clock = Clock()
        self._streams: list[Stream] = []

    @cached_property
    def memory(self) -> Memory:
        """The bytes of all memories, made when the first of them is used."""
        return Memory(self.target, self._size)

    def allocate(self, nbytes: int) -> "Buffer":
        """A block of global memory; its content is undefined. Raises `OutOfMemory`."""
        return Buffer(self, self.pool.allocate(nbytes), nbytes)

    def stream(self) -> "Stream":
        """A new queue of work."""
        made = Stream(self)
        self._streams.append(made)
        return made

    @cached_property
    def default_stream(self) -> "Stream":
        return self.stream()

    def synchronise(self) -> None:
        """Runs all that is queued in any stream. Raises `StreamError` for the first that failed."""
        for stream in self._streams:
            stream.synchronise()

    def load(self, artifact: Artifact) -> "Model":
        """Puts a model onto the device. Raises `ArtifactError` for another target, `OutOfMemory`."""
        from .model import Model

        if not isinstance(artifact, Artifact):
            raise ArgumentError.of("artifact", "is a compiled model", artifact, "stepwell.load reads the file of one")
        return Model(artifact, self)

    def statistics(self) -> PoolStatistics:
        """What the pool has handed out."""
        return self.pool.statistics()

    @property
    def seconds(self) -> float:
        """Virtual time: when the work done so far had ended."""
        return max((stream.time for stream in self._streams), default=0.0) / (self.target.clock_mhz * 1e6)


@dataclass
class Buffer:
    """A block of global memory; `with device.allocate(n) as buffer:` frees it at the end."""

    device: Device = field(repr=False)
    address: int
    nbytes: int
    _freed: bool = field(default=False, repr=False)

    def peek(self, dtype: DType | str, shape: Sequence[int], offset: int = 0) -> Array:
        """A copy of what the memory holds now: stale, if work that writes it is still queued."""
        kind = DType.parse(dtype) if isinstance(dtype, str) else dtype
        return self.device.memory.read(self.address + offset, kind, shape)

    def free(self) -> None:
        """Gives the block back, once."""
        if not self._freed:
            self._freed = True
            self.device.pool.free(self.address)

    def __enter__(self) -> "Buffer":
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def check(self, offset: int, nbytes: int) -> None:
        """Raises `ValueError` for a copy that does not fit."""
        if self._freed:
            raise ValueError(f"the buffer at {self.address} has been freed")
        if offset < 0 or offset + nbytes > self.nbytes:
            raise ValueError(f"bytes {offset} to {offset + nbytes}; the buffer at {self.address} has {self.nbytes}")


class Stream(streams.Stream):
    """A queue of work on a device. Nothing of it happens before it is synchronised."""

    def __init__(self, device: Device) -> None:
        super().__init__(device.clock)
        self.device = device

    def copy_in(self, buffer: Buffer, array: Array, offset: int = 0, pinned: bool = False) -> None:
        """Host to device. Pageable memory is copied aside now; pinned memory is read when the copy runs."""
        buffer.check(offset, array.nbytes)
        source = array if pinned else array.copy()
        memory, address = self.device.memory, buffer.address + offset
        self.add("copy in", COPY_IN, lambda: memory.write(address, source), lambda: self.link(source.nbytes))

    def copy_out(self, array: Array, buffer: Buffer, offset: int = 0) -> None:
        """Device to host: `array` keeps its old values until the stream is synchronised."""
        buffer.check(offset, array.nbytes)
        memory, address = self.device.memory, buffer.address + offset
        dtype = DType.of(array)

        def action() -> None:
            array[...] = memory.read(address, dtype, array.shape)

        self.add("copy out", COPY_OUT, action, lambda: self.link(array.nbytes))

    def link(self, nbytes: int) -> float:
        """Cycles of a copy between host and device."""
        target = self.device.target
        return target.host_latency + nbytes / target.host_bytes


def run(artifact: "Artifact | str | PathLike[str]", inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Runs a model, or the file of one, on a device of its own, which is kept with the artifact.

    Raises `InputError`, `StreamError`, `ArtifactError` for a file that is refused, `ArgumentError` for what is neither.
    """
    if not isinstance(artifact, Artifact | str | PathLike):
        remedy = "compile the model first: stepwell.compile"
        raise ArgumentError.of("artifact", "is a compiled model, or the path of one", artifact, remedy)
    if not isinstance(inputs, Mapping):
        raise InputError(f'inputs: are arrays by name (found {type(inputs).__name__}); write {{"x": x}}')
    artifact = artifact if isinstance(artifact, Artifact) else load(artifact)
    model = artifact.model
    as_they_are = {t.name for t in model.inputs if t.is_host and t.host_type.dtype is None}
    return model.run({name: v if name in as_they_are else np.asarray(v) for name, v in inputs.items()})
