"""A model on a device: memory and weights in place, ready to run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import border, emulator
from .artifact import Artifact, check_target
from .border import InputError
from .device import Device, Stream
from .emulator import Prepared, RowCounts
from .numerics.dtype import DType
from .plan import Launch, Plan, Tensor
from .profile import Profile, addresses, profile
from .stream import COMPUTE, COPY_IN, COPY_OUT

Array = NDArray[Any]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Sticky:
    """What docs/numerics.md §8 counts, for the ONNX nodes of a slot: results that overflowed, NaNs that appeared."""

    nodes: tuple[str, ...]
    kernel: str
    overflow: int
    invalid: int


class Model:
    """An artifact loaded onto a device."""

    def __init__(self, artifact: Artifact, device: Device) -> None:
        check_target(artifact.target, device.target)
        self.artifact = artifact
        self.device = device
        self.cores = artifact.cores or artifact.target.cores
        self._buffer = device.allocate(artifact.nbytes)
        self._counts: dict[int, RowCounts] = {}
        self._last: Plan = artifact.plans[0]
        for tensor in artifact.tensors:
            if tensor.role == "weight":
                device.memory.write(self._address(tensor), artifact.weights[tensor.name])
            elif tensor.role == "state":
                device.memory.write(self._address(tensor), np.zeros(tensor.nbytes, np.uint8))

    def free(self) -> None:
        """Gives the model's memory back."""
        self._buffer.free()

    @property
    def inputs(self) -> list[Tensor]:
        """What the first plan takes, in the order of the ONNX model."""
        return [self.artifact.tensors[index] for index in self.artifact.plans[0].inputs]

    @property
    def outputs(self) -> list[Tensor]:
        return [self.artifact.tensors[index] for index in self.artifact.plans[0].outputs]

    def run(
        self, inputs: Mapping[str, Array], *, seed: int | None = None, on_launch: Progress | None = None
    ) -> dict[str, Array]:
        """Outputs by name. `seed` picks one of the legal interleavings; `on_launch(done, all)` follows the progress.

        Raises `InputError`, and `StreamError` for a fault of the device.
        """
        stream = self.device.default_stream
        outputs = self.enqueue(stream, inputs, seed=seed, on_launch=on_launch)
        stream.synchronise()
        return outputs

    def enqueue(
        self, stream: Stream, inputs: Mapping[str, Array], *, seed: int | None = None, on_launch: Progress | None = None
    ) -> dict[str, Array]:
        """Queues copies in, launches and copies out. The arrays returned hold zeros until `stream` is synchronised."""
        plan = self._plan(inputs)
        tensors = self.artifact.tensors
        outputs = {t.name: np.zeros(t.shape, t.border_dtype) for t in (tensors[index] for index in plan.outputs)}
        for tensor in (tensors[index] for index in plan.inputs):
            self._copy_in(stream, tensor, inputs[tensor.name])
        name = f"model {self.artifact.metadata.model}".strip()
        launches = partial(self._launch_all, plan, seed, on_launch)
        stream.add(name, COMPUTE, launches, lambda: self.profile(plan).cycles)
        for tensor in (tensors[index] for index in plan.outputs):
            self._copy_out(stream, tensor, outputs[tensor.name])
        return outputs

    def sticky(self) -> list[Sticky]:
        """Overflows and NaNs of the last run by ONNX nodes, worst first; empty if there were none."""
        found: dict[tuple[tuple[str, ...], str], list[int]] = {}
        for number, counts in self._counts.items():
            launch = self._last.steps[number]
            kernel = self.artifact.kernels[launch.kernel]
            for index in np.flatnonzero(counts.overflow + counts.invalid):
                nodes = launch.nodes[kernel.program[int(index)].slot]
                sums = found.setdefault((nodes, kernel.name), [0, 0])
                sums[0] += int(counts.overflow[index])
                sums[1] += int(counts.invalid[index])
        listed = [Sticky(nodes, kernel, *sums) for (nodes, kernel), sums in found.items()]
        return sorted(listed, key=lambda entry: -entry.overflow - entry.invalid)

    def peek(self, tensor: Tensor) -> Array:
        """A copy of what lies at a tensor's place now; temporaries share places."""
        return self.device.memory.read(self._address(tensor), DType.parse(tensor.dtype), tensor.shape)

    def profile(self, plan: Plan | None = None) -> Profile:
        """Cycles by launch and by ONNX node; measured once."""
        plan = plan or self._last
        if id(plan) not in self._profiles:
            self._profiles[id(plan)] = profile(self.artifact, plan, self._buffer.address, self.device.memory.gm)
        return self._profiles[id(plan)]

    def time(self) -> float:
        """Seconds of the last plan at the clock of the target."""
        return self.profile().seconds

    @cached_property
    def _profiles(self) -> dict[int, Profile]:
        return {}

    @cached_property
    def _prepared(self) -> list[Prepared]:
        return [emulator.prepare(kernel.program) for kernel in self.artifact.kernels]

    def _address(self, tensor: Tensor, offset: int = 0) -> int:
        return self._buffer.address + tensor.offset + offset

    def _plan(self, inputs: Mapping[str, Array]) -> Plan:
        """The plan for the shapes given, which the inputs then fit. Raises `InputError`."""
        tensors = self.artifact.tensors
        plans = self.artifact.plans
        shapes = {name: array.shape for name, array in inputs.items()}
        for plan in plans:
            if all(shapes.get(tensors[index].name) == tensors[index].shape for index in plan.inputs):
                break
        else:
            plan = plans[0]
            if len(plans) > 1:
                made_for = "; ".join(", ".join(f"{k}={v}" for k, v in p.binding.items()) for p in plans)
                raise InputError(f"shapes {shapes}; expected those of one of the plans: {made_for}")
        border.check(inputs, [tensors[index] for index in plan.inputs])
        return plan

    def _copy_in(self, stream: Stream, tensor: Tensor, array: Array) -> None:
        values = border.to_device(array, DType.parse(tensor.dtype))
        address = self._address(tensor)
        memory = self.device.memory
        stream.add(
            f"copy in {tensor.name}", COPY_IN, lambda: memory.write(address, values), lambda: stream.link(values.nbytes)
        )

    def _copy_out(self, stream: Stream, tensor: Tensor, array: Array) -> None:
        def action() -> None:
            array[...] = border.from_device(self.peek(tensor), tensor)

        stream.add(f"copy out {tensor.name}", COPY_OUT, action, lambda: stream.link(tensor.nbytes))

    def _launch_all(self, plan: Plan, seed: int | None, on_launch: Progress | None) -> None:
        counters = emulator.new_counters()
        self._counts, self._last = {}, plan
        for number, launch in enumerate(plan.steps):
            self._counts[number] = self._launch(launch, counters, None if seed is None else seed + number)
            if on_launch is not None:
                on_launch(number + 1, len(plan.steps))

    def _launch(self, launch: Launch, counters: NDArray[np.int64], seed: int | None) -> RowCounts:
        kernel = self.artifact.kernels[launch.kernel]
        return emulator.run(
            self._prepared[launch.kernel],
            arguments=addresses(launch, self.artifact, self._buffer.address),
            memory=self.device.memory,
            target=self.device.target,
            counters=counters,
            cores=self.cores,
            seed=seed,
            kernel=kernel.name,
            l1_base=launch.l1,
            ub_base=launch.ub,
            id_base=launch.token,
            nodes=launch.nodes,
        )
