"""A model on a device: memory and weights in place, ready to run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import border, emulator
from .artifact import Artifact, check_target
from .border import InputError
from .device import Device, Stream
from .emulator import Prepared, RowCounts
from .faults import DeviceFault
from .numerics.dtype import DType
from .plan import Plan, Tensor
from .profile import Profile, host_profile, profile
from .segments import Segment, segments
from .steps import Copy, HostCall, Leaf, Step, dearest, parts_of, walk
from .stream import COMPUTE, COPY_IN, COPY_OUT, HOST

Array = NDArray[Any]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Sticky:
    """What docs/numerics.md §8 counts, for the ONNX nodes of a slot: results that overflowed, NaNs that appeared,
    integers that 32 bits do not hold."""

    nodes: tuple[str, ...]
    kernel: str
    overflow: int
    invalid: int
    wide: int


class Model:
    """An artifact loaded onto a device."""

    def __init__(self, artifact: Artifact, device: Device) -> None:
        check_target(artifact.target, device.target)
        self.artifact = artifact
        self.device = device
        self.cores = artifact.cores or artifact.target.cores
        self._buffer = device.allocate(artifact.nbytes)
        self._counts: list[tuple[Segment, RowCounts]] = []
        self._last: Plan = artifact.plans[0]
        self._run: list[list[Leaf]] = []
        """What the last run did."""
        # By the identity of a plan, which each holds, so that it stays taken.
        self._profiles: dict[int, tuple[Plan, Profile]] = {}
        self._others: dict[int, tuple[Plan, Plan]] = {}
        self._ready: dict[int, tuple[Plan, list[tuple[Segment, Prepared]]]] = {}
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
        """What the first plan gives, in the order of the ONNX model."""
        return [self.artifact.tensors[index] for index in self.artifact.plans[0].outputs]

    def run(
        self,
        inputs: Mapping[str, Array],
        *,
        seed: int | None = None,
        on_launch: Progress | None = None,
        linked: bool | None = None,
    ) -> dict[str, Array]:
        """Outputs by name. `seed` picks one of the legal interleavings; `on_launch(done, all)` follows the progress.

        `linked` False runs launch by launch, so that `on_launch` sees the values between; by default as the plan says.
        Raises `InputError`, and `StreamError` for a fault of the device.
        """
        stream = self.device.default_stream
        outputs = self.enqueue(stream, inputs, seed=seed, on_launch=on_launch, linked=linked)
        stream.synchronise()
        return outputs

    def enqueue(
        self,
        stream: Stream,
        inputs: Mapping[str, Array],
        *,
        seed: int | None = None,
        on_launch: Progress | None = None,
        linked: bool | None = None,
    ) -> dict[str, Array]:
        """Queues copies in, launches and copies out. The arrays returned hold zeros until `stream` is synchronised."""
        plan = self._plan(inputs)
        if linked is not None and linked != plan.linked:
            plan = self._other(plan)
        tensors = self.artifact.tensors
        wanted = [tensors[index] for index in plan.outputs]
        outputs = {t.name: np.zeros(t.shape, t.border_dtype) for t in wanted}  # of the host: replaced
        held: dict[int, Any] = {index: inputs[tensors[index].name] for index in plan.inputs if tensors[index].is_host}
        for tensor in (tensors[index] for index in plan.inputs if not tensors[index].is_host):
            self._copy_in(stream, tensor, inputs[tensor.name])
        self._queue_steps(stream, plan, held, partial(self._run_segments, plan, seed, on_launch))
        passed = plan.passed(tensors)
        for index, tensor in zip(plan.outputs, wanted, strict=True):
            if index in passed and tensor.border_dtype in border.WIDE:
                outputs[tensor.name][...] = inputs[tensors[passed[index]].name].reshape(tensor.shape)
            elif tensor.is_host:
                stream.add(f"result {tensor.name}", HOST, partial(_hand_out, outputs, tensor, held, index), _no_cycles)
            else:
                self._copy_out(stream, tensor, outputs[tensor.name])
        return outputs

    def _queue_steps(self, stream: Stream, plan: Plan, held: dict[int, Any], launch: Callable[[range], None]) -> None:
        """Queues the steps of a plan; `held` has the values of the host."""

        def perform(part: Step | range, first: int, trace: list[Leaf]) -> None:
            if self._run is not traces:
                self._run, self._last, self._counts = traces, plan, []
            for leaf in walk(part, first, self._value, self._set):
                self._perform(leaf, held, launch)
                trace.append(leaf)

        traces: list[list[Leaf]] = []
        for part, first in parts_of(plan.steps):
            traces.append([])
            action, time = partial(perform, part, first, traces[-1]), partial(self._cycles, plan, traces[-1])
            stream.add(self._title(part), self._part_of_device(part), action, time)

    def _perform(self, leaf: Leaf, held: dict[int, Any], launch: Callable[[range], None]) -> None:
        match leaf:
            case range():
                launch(leaf)
            case HostCall():
                inputs = [held[index] for index in leaf.inputs]
                held.update(zip(leaf.outputs, self.artifact.host[leaf.part].run(inputs), strict=True))
            case Copy():
                self._copy(leaf, held)

    def _title(self, part: Step | range) -> str:
        """Of work in a stream."""
        name = f"model {self.artifact.metadata.model}".strip()
        if isinstance(part, Copy):
            return f"copy {self.artifact.tensors[part.source].name}"
        return f"{name}: on the CPU" if isinstance(part, HostCall) else name

    def _part_of_device(self, part: Step | range) -> str:
        """Which part a step occupies."""
        match part:
            case HostCall():
                return HOST
            case Copy():
                source, to = self.artifact.tensors[part.source], self.artifact.tensors[part.to]
                return COPY_IN if source.is_host else COPY_OUT if to.is_host else COMPUTE
            case _:
                return COMPUTE

    def _cycles(self, plan: Plan, trace: Sequence[Leaf]) -> float:
        """Of what was done."""
        cycles = 0.0
        for leaf in trace:
            if isinstance(leaf, range):
                cycles += sum(launch.cycles for launch in self.profile(plan).launches[leaf.start : leaf.stop])
            else:
                cycles += host_profile(self.artifact, leaf).cycles
        return cycles

    def _value(self, index: int) -> int:
        """The value of a tensor of one element."""
        return int(self.peek(self.artifact.tensors[index]).reshape(-1)[0])

    def _set(self, index: int, value: int) -> None:
        tensor = self.artifact.tensors[index]
        self.device.memory.write(self._address(tensor), np.full(tensor.shape, value, DType.parse(tensor.dtype).numpy))

    def _copy(self, step: Copy, held: dict[int, Any]) -> None:
        """A transfer in the middle of a plan."""
        source, to = self.artifact.tensors[step.source], self.artifact.tensors[step.to]
        memory = self.device.memory
        if source.is_host and to.is_host:
            held[step.to] = held[step.source]
        elif source.is_host:
            array = np.asarray(held[step.source])
            if array.size != prod(to.shape):
                rule = f"{source.name}: is of shape {list(to.shape)}"
                raise InputError(f"{rule} (found {list(array.shape)}, made by the CPU); compile the model again")
            if problem := border.too_wide(array, source.name):
                raise InputError(problem)
            memory.write(self._address(to), border.to_device(array, DType.parse(to.dtype)))
        elif to.is_host:
            array = self.peek(source).reshape(to.shape)  # a reshape of what the source holds, maybe
            held[step.to] = border.as_type(array, to.border_dtype)
        else:
            row = 0 if step.row is None else self._value(step.row)
            if step.row is not None and not 0 <= row < to.shape[0]:
                raise InputError(
                    f"{to.name}: a loop has {to.shape[0]} steps (found {row + 1}); compile the model again"
                )
            memory.write(self._address(to) + row * source.nbytes, self.peek(source))

    def sticky(self) -> list[Sticky]:
        """Overflows, NaNs and wide integers of the last run by ONNX nodes, worst first; empty if there were none."""
        found: dict[tuple[tuple[str, ...], str], list[int]] = {}
        for segment, counts in self._counts:
            for index in np.flatnonzero(counts.overflow + counts.invalid + counts.wide):
                nodes = segment.nodes[segment.program[int(index)].slot]
                sums = found.setdefault((nodes, self._kernel_of(segment, int(index))), [0, 0, 0])
                for place, of_rows in enumerate((counts.overflow, counts.invalid, counts.wide)):
                    sums[place] += int(of_rows[index])
        listed = [Sticky(nodes, kernel, *sums) for (nodes, kernel), sums in found.items()]
        return sorted(listed, key=lambda entry: -entry.overflow - entry.invalid - entry.wide)

    def peek(self, tensor: Tensor) -> Array:
        """A copy of what lies at a tensor's place now; temporaries share places."""
        return self.device.memory.read(self._address(tensor), DType.parse(tensor.dtype), tensor.shape)

    def profile(self, plan: Plan | None = None) -> Profile:
        """Cycles by launch and by ONNX node: of the last run, or before any of `dearest`; of a plan, each step once."""
        of_run, plan = plan is None, plan or self._last
        if id(plan) not in self._profiles:
            made = profile(self.artifact, plan, self._buffer.address, self.device.memory.gm)
            self._profiles[id(plan)] = plan, made
        whole = self._profiles[id(plan)][1]
        if not (of_run and plan.decides):
            return whole
        if self._run:
            done = [leaf for trace in self._run for leaf in trace]
        else:
            done = dearest(plan.steps, lambda leaf: self._cycles(plan, [leaf]))
        launches = tuple(whole.launches[n] for leaf in done if isinstance(leaf, range) for n in leaf)
        host = tuple(host_profile(self.artifact, leaf) for leaf in done if not isinstance(leaf, range))
        return replace(whole, launches=launches, host=host)

    def time(self) -> float:
        """Seconds of the last plan at the clock of the target."""
        return self.profile().seconds

    def _other(self, plan: Plan) -> Plan:
        """The same plan, linked if it is not, and the other way round."""
        return self._others.setdefault(id(plan), (plan, replace(plan, linked=not plan.linked)))[1]

    def _segments(self, plan: Plan) -> list[tuple[Segment, Prepared]]:
        """The plan's segments, ready to run; programs that several launches share are prepared once."""
        if id(plan) not in self._ready:
            prepared: dict[int, Prepared] = {}
            made: list[tuple[Segment, Prepared]] = []
            for segment in segments(self.artifact, plan, self._buffer.address):
                key = id(segment.program)
                prepared[key] = prepared.get(key) or emulator.prepare(segment.program)
                made.append((segment, prepared[key]))
            self._ready[id(plan)] = plan, made
        return self._ready[id(plan)][1]

    def _kernel_of(self, segment: Segment, row: int) -> str:
        """The kernel that a row of a segment belongs to."""
        return self.artifact.kernels[self._last.launches[segment.launch_of(row)].kernel].name

    def _address(self, tensor: Tensor) -> int:
        return self._buffer.address + tensor.offset

    def _plan(self, inputs: Mapping[str, Array]) -> Plan:
        """The plan for the shapes given, which the inputs then fit. Raises `InputError`."""
        tensors = self.artifact.tensors
        plans = self.artifact.plans
        shapes = {name: np.shape(array) for name, array in inputs.items() if isinstance(array, np.ndarray)}
        for plan in plans:
            if all(shapes.get(t.name, t.shape) == t.shape for t in (tensors[index] for index in plan.inputs)):
                break
        else:
            plan = plans[0]
            if len(plans) > 1:
                made_for = "; ".join(", ".join(f"{k}={v}" for k, v in p.binding.items()) for p in plans)
                rule = f"inputs: have the shapes of a plan, {made_for}"
                raise InputError(f"{rule} (found {shapes}); compile the model for these shapes")
        border.check(inputs, [tensors[index] for index in plan.inputs], {tensors[n].name for n in plan.unread(tensors)})
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

    def _run_segments(self, plan: Plan, seed: int | None, on_launch: Progress | None, numbers: range) -> None:
        """Runs launches that follow each other."""
        counters = emulator.new_counters()
        for segment, prepared in self._segments(plan):
            if segment.first not in numbers:
                continue
            done = segment.first + len(segment.starts)
            counts = self._run_segment(segment, prepared, counters, None if seed is None else seed + segment.first)
            self._counts.append((segment, counts))
            if on_launch is not None:
                on_launch(done, len(plan.launches))

    def _run_segment(
        self, segment: Segment, prepared: Prepared, counters: NDArray[np.int64], seed: int | None
    ) -> RowCounts:
        try:
            return emulator.run(
                prepared,
                arguments=segment.arguments,
                memory=self.device.memory,
                target=self.device.target,
                counters=counters,
                cores=self.cores,
                seed=seed,
                l1_base=segment.l1,
                ub_base=segment.ub,
                id_base=segment.token,
                nodes=segment.nodes,
            )
        except DeviceFault as fault:
            number = segment.launch_of(max(fault.row, 0))
            kernel = f"{self._kernel_of(segment, max(fault.row, 0))} (launch {number})"
            raise fault.at(replace(fault.place, kernel=kernel)) from None


def _hand_out(outputs: dict[str, Any], tensor: Tensor, held: Mapping[int, Any], index: int) -> None:
    outputs[tensor.name] = held[index]


def _no_cycles() -> float:
    return 0.0
