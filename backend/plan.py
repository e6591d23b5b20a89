"""The plan of a module: where each tensor lies in global memory, and the launches in order; together with the kernels,
an artifact.

The function `main` after `graph-to-tile` holds constants, reshapes (which move nothing), launches and a return. A
value's *storage* is an input, a weight, or a temporary; a reshape shares its operand's. Temporaries get places by
their lives (`backend/memory.py`).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from ..dialects.graph.constants import ConstantOp, WeightOp
from ..dialects.graph.host import DownloadOp, HostOp, UploadOp, host_type, is_host
from ..dialects.graph.op import dtype_name, shape
from ..dialects.graph.structure import LaunchOp
from ..dialects.graph.views import ReshapeOp
from ..dialects.standin import StandIn
from ..dialects.weights import Array, WeightStore
from ..runtime.artifact import Artifact
from ..runtime.cpu import HOST, HostPart
from ..runtime.numerics.dtype import DType
from ..runtime.plan import (
    ALIGNMENT,
    Copy,
    HostCall,
    Kernel,
    Launch,
    Metadata,
    Plan,
    Role,
    Step,
    Tensor,
    TensorRef,
)  # fmt: skip
from ..runtime.target import Target
from .errors import BackendError, place
from .memory import Interval, plan_memory

Call = LaunchOp | HostOp | UploadOp | DownloadOp

_NUMPY = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "i8": "int8", "u8": "uint8", "i32": "int32", "i64": "int64",
    "b8": "bool", "i16": "int16", "u16": "uint16", "u32": "uint32", "u64": "uint64",
}  # fmt: skip
"""numpy's names of the types that callers see."""


@dataclass
class Storage:
    """Bytes in global memory that one or more values share, alive from step `first` to step `last`."""

    name: str
    role: Role
    dtype: str
    shape: tuple[int, ...]
    first: int = 0
    last: int = 0
    border: str = ""
    value: Array | None = None
    same_as: int | None = None
    """Another storage whose bytes these are."""

    @property
    def nbytes(self) -> int:
        return 0 if self.dtype == HOST else math.prod(self.shape) * DType.parse(self.dtype).size


@dataclass
class _Planner:
    """Walks `main` once."""

    store: WeightStore
    kernels: Mapping[str, int]
    storages: list[Storage] = field(default_factory=list[Storage])
    of: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    calls: list[tuple[Call, list[int], list[int]]] = field(default_factory=list[tuple[Call, list[int], list[int]]])
    """Each step: what it reads and writes."""
    parts: list[HostPart] = field(default_factory=list[HostPart])

    def add(self, value: SSAValue, storage: Storage) -> None:
        self.of[value] = len(self.storages)
        self.storages.append(storage)

    def visit(self, op: Operation) -> None:
        if isinstance(op, (WeightOp, ConstantOp)):
            self.constant(op)
        elif isinstance(op, ReshapeOp):
            self.of[op.result] = self.of[op.x]
        elif isinstance(op, Call):
            self.call(op)
        elif not isinstance(op, ReturnOp):
            raise BackendError(f"{place(op)}: main holds constants, reshapes, launches and what the host does")

    def constant(self, op: WeightOp | ConstantOp) -> None:
        if not any(isinstance(use.operation, (Call, ReshapeOp, ReturnOp)) for use in op.result.uses):
            return
        array = self.store.get(op.handle.data) if isinstance(op, WeightOp) else op.array
        if not array.size:  # an output that nothing writes
            self.add(op.result, Storage(f"t{len(self.storages)}", "temp", dtype_name(op.result), tuple(array.shape)))
            return
        name = f"weight {len(self.storages)}" if isinstance(op, ConstantOp) else op.handle.data
        known = next((n for n, s in enumerate(self.storages) if s.name == name), None)
        if known is not None:
            self.of[op.result] = known
            return
        dtype = dtype_name(op.result)
        values = array.astype(np.uint8) if dtype == "b8" else array
        value = values if isinstance(values, StandIn) else np.ascontiguousarray(values)
        self.add(op.result, Storage(name, "weight", dtype, tuple(array.shape), value=value))

    def call(self, op: Call) -> None:
        step = len(self.calls)
        reads = [self.of[value] for value in op.operands]
        for n in reads:
            self.storages[n].last = step
        for value in op.results:
            self.add(value, storage_of(value, f"t{len(self.storages)}", "temp", step))
        self.calls.append((op, reads, [self.of[value] for value in op.results]))

    def steps(self, slots: Mapping[str, Sequence[tuple[str, ...]]]) -> Iterator[Step]:
        """The steps of the plan."""
        first = {op.callee: op for op, _, _ in reversed(self.calls) if isinstance(op, LaunchOp)}
        for op, reads, writes in self.calls:
            if isinstance(op, LaunchOp):
                nodes = nodes_of(op, slots[op.callee], first[op.callee])
                yield Launch(self.kernels[op.callee], tuple(TensorRef(n) for n in (*reads, *writes)), nodes)
            elif isinstance(op, HostOp):
                self.parts.append(op.host_part(self.store))
                yield HostCall(len(self.parts) - 1, tuple(reads), tuple(writes))
            else:
                yield Copy(reads[0], writes[0])


def storage_of(value: SSAValue, name: str, role: Role, step: int = 0, border: str = "") -> Storage:
    """The storage of a value that is made in a step."""
    if not is_host(value):
        return Storage(name, role, dtype_name(value), shape(value), step, step, border)
    kind = host_type(value)
    return Storage(name, role, HOST, (kind.shape or ()) if kind.is_static else (), step, step, str(kind))


def build_artifact(
    module: ModuleOp,
    kernels: Sequence[Kernel],
    slots: Mapping[str, Sequence[tuple[str, ...]]],
    store: WeightStore,
    target: Target,
    cores: int,
    binding: Mapping[str, int],
    metadata: Metadata,
    linked: bool = True,
) -> Artifact:
    """The artifact of a module whose kernels are compiled; `slots` has the ONNX nodes of each kernel's slots.

    Raises `BackendError` for an output that no launch writes.
    """
    main = next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main")
    planner = _Planner(store, {kernel.name: n for n, kernel in enumerate(kernels)})
    inputs, outputs = names_of(main)
    for name, argument, border in zip(inputs, main.body.block.args, _borders(main, "input_borders"), strict=True):
        planner.add(argument, storage_of(argument, name, "input", border=border))
    for op in main.body.block.ops:
        planner.visit(op)
    results = _mark_outputs(planner, main, outputs)
    tensors, arena = _place(planner.storages)
    steps = tuple(planner.steps(slots))
    plan = Plan(binding, arena, steps, tuple(range(len(inputs))), tuple(results), linked)
    weights = {s.name: s.value for s in planner.storages if s.value is not None}
    host = tuple(planner.parts)
    return Artifact(target, tuple(kernels), tuple(tensors), weights, (plan,), metadata, cores, host=host)


def names_of(main: FuncOp) -> tuple[list[str], list[str]]:
    """Names of the model's inputs and outputs."""

    def read(key: str, count: int) -> list[str]:
        found = main.attributes.get(key)
        if isinstance(found, ArrayAttr):
            return [item.data for item in found if isinstance(item, StringAttr)]
        return [f"{key.split('_')[0]}{n}" for n in range(count)]

    return read("input_names", len(main.function_type.inputs)), read("output_names", len(main.function_type.outputs))


def _borders(main: FuncOp, key: str) -> list[str]:
    """The element types that callers see, as numpy calls them."""
    found = main.attributes.get(key)
    if isinstance(found, ArrayAttr):
        return [_NUMPY.get(item.data, item.data) for item in found if isinstance(item, StringAttr)]
    last = main.body.block.last_op
    assert last is not None
    return [_NUMPY[dtype_name(value)] for value in (main.body.block.args if key == "input_borders" else last.operands)]


def _mark_outputs(planner: _Planner, main: FuncOp, names: Sequence[str]) -> list[int]:
    """Makes the storages of returned values outputs; one that is an input, or returned before, gets a second name."""
    returned = main.body.block.last_op
    assert returned is not None
    results: list[int] = []
    for name, value, border in zip(names, returned.operands, _borders(main, "output_borders"), strict=True):
        n = planner.of[value]
        storage = planner.storages[n]
        storage.last = len(planner.calls)
        if storage.role == "weight":
            raise BackendError(f"output {name}: it is a constant; the pass border copies it")
        if storage.role == "temp":
            storage.name, storage.role, storage.border = name, "output", border
            storage.shape = storage.shape if is_host(value) else shape(value)
            results.append(n)
        else:
            results.append(len(planner.storages))
            planner.storages.append(Storage(name, "output", storage.dtype, shape(value), border=border, same_as=n))
    return results


def _place(storages: Sequence[Storage]) -> tuple[list[Tensor], int]:
    """Offsets: the arena (inputs, outputs, temporaries), then the weights."""
    arena = [n for n, s in enumerate(storages) if s.role != "weight" and s.same_as is None and s.dtype != HOST]
    # Inputs are there before the first step; every role shares the arena by its life.
    offsets, size = plan_memory(
        [Interval(storages[n].nbytes, storages[n].first, storages[n].last) for n in arena], ALIGNMENT
    )
    places = dict(zip(arena, offsets, strict=True))
    end = size
    for n, storage in enumerate(storages):
        if storage.role == "weight":
            places[n] = end
            end += -(-storage.nbytes // ALIGNMENT) * ALIGNMENT
        elif storage.same_as is not None:
            places[n] = places[storage.same_as]
        elif storage.dtype == HOST:
            places[n] = 0
    return [Tensor(s.name, s.dtype, s.shape, s.role, places[n], s.border) for n, s in enumerate(storages)], size


def nodes_of(op: LaunchOp, table: Sequence[tuple[str, ...]], first: LaunchOp) -> tuple[tuple[str, ...], ...]:
    """For each slot of the launched kernel the ONNX nodes of *this* launch.

    `table` has the nodes of each slot in the kernel's `first` launch; launches list the nodes of their operators in
    the same order. An operator without a slot, such as an activation that the drain applies, counts to the slot of the
    one before it.
    """
    here, there = _operators(op), _operators(first)
    if len(here) != len(there):
        return tuple(table)
    slots, absorbed, owner = set(table), dict[tuple[str, ...], list[str]](), None
    for names, own in zip(there, here, strict=True):
        owner = names if names in slots else owner
        if names not in slots and owner is not None:
            absorbed.setdefault(owner, []).extend(own)
    return tuple(
        tuple(dict.fromkeys((*here[there.index(names)], *absorbed.get(names, ())))) if names in there else ()
        for names in table
    )


def _operators(op: LaunchOp) -> list[tuple[str, ...]]:
    found = op.attributes.get("nodes")
    entries = [entry for entry in found if isinstance(entry, ArrayAttr)] if isinstance(found, ArrayAttr) else []
    return [tuple(name.data for name in entry if isinstance(name, StringAttr)) for entry in entries]
