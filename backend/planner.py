"""From the function `main` to steps: which storage each value has, and for how long.

A value's *storage* is an input, a weight, or a temporary; a reshape shares its operand's. The functions of branches and
loops are walked where they are called: what they take has its storage already, and what they give is copied to that of
the results, or of the states of the loop.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from ..dialects.graph.constants import ConstantOp, WeightOp
from ..dialects.graph.flow import IfOp, LoopOp
from ..dialects.graph.host import DownloadOp, HostOp, UploadOp, host_type, is_host
from ..dialects.graph.op import dtype_name, shape
from ..dialects.graph.structure import LaunchOp
from ..dialects.graph.views import ReshapeOp
from ..dialects.standin import StandIn
from ..dialects.weights import Array, WeightStore
from ..runtime.cpu import HOST, HostPart
from ..runtime.numerics.dtype import DType
from ..runtime.plan import Role
from ..runtime.steps import Branch, Copy, HostCall, Launch, Repeat, Step, TensorRef
from .errors import BackendError, place

Call = LaunchOp | HostOp | UploadOp | DownloadOp | IfOp | LoopOp
Slots = Mapping[str, Sequence[tuple[str, ...]]]


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
class Planner:
    """Walks `main` once. `kernels`: their numbers; `slots`: the ONNX nodes of each kernel's slots."""

    store: WeightStore
    kernels: Mapping[str, int]
    slots: Slots
    functions: Mapping[str, FuncOp]
    first: Mapping[str, LaunchOp]
    """Of each kernel the first launch in the module."""
    storages: list[Storage] = field(default_factory=list[Storage])
    of: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    parts: list[HostPart] = field(default_factory=list[HostPart])
    clock: int = 0
    """Steps so far."""

    def add(self, value: SSAValue, storage: Storage) -> int:
        """Gives a value a storage; its number."""
        self.of[value] = len(self.storages)
        self.storages.append(storage)
        return self.of[value]

    def steps(self, block: Block) -> list[Step]:
        """The steps of a function."""
        return [step for op in block.ops for step in self.visit(op)]

    def visit(self, op: Operation) -> Iterator[Step]:
        """The steps of an op."""
        match op:
            case WeightOp() | ConstantOp():
                self.constant(op)
            case ReshapeOp():
                self.of[op.result] = self.of[op.x]
            case LaunchOp():
                reads, writes = self.call(op)
                nodes = nodes_of(op, self.slots[op.callee], self.first[op.callee])
                yield Launch(self.kernels[op.callee], tuple(TensorRef(n) for n in (*reads, *writes)), nodes)
            case HostOp():
                reads, writes = self.call(op)
                self.parts.append(op.host_part(self.store))
                yield HostCall(len(self.parts) - 1, tuple(reads), tuple(writes))
            case UploadOp() | DownloadOp():
                reads, writes = self.call(op)
                yield Copy(reads[0], writes[0])
            case IfOp():
                yield self.branch(op)
            case LoopOp():
                yield from self.loop(op)
            case ReturnOp():
                pass
            case _:
                raise BackendError(f"{place(op)}: main holds constants, reshapes, launches and what the host does")

    def constant(self, op: WeightOp | ConstantOp) -> None:
        """A weight, once for equal ones; nothing for a constant that only kernels hold."""
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
        value = values if isinstance(values, StandIn) else np.asarray(values, order="C")
        self.add(op.result, Storage(name, "weight", dtype, tuple(array.shape), value=value))

    def call(self, op: Call) -> tuple[list[int], list[int]]:
        """One step: the storages that it reads and writes."""
        reads = [self.of[value] for value in op.operands]
        self.keep(reads)
        writes = [self.temporary(value) for value in op.results]
        self.clock += 1
        return reads, writes

    def temporary(self, value: SSAValue) -> int:
        """The storage of a value that is written now; a new one, unless `aim` chose it."""
        if value in self.of:
            return self.of[value]
        return self.add(value, storage_of(value, f"t{len(self.storages)}", "temp", self.clock))

    def keep(self, storages: Sequence[int]) -> None:
        """They are read now."""
        for n in storages:
            self.storages[n].last = max(self.storages[n].last, self.clock)

    def copies(self, pairs: Sequence[tuple[int, int]]) -> Iterator[Step]:
        """From storages to others."""
        for source, to in pairs:
            if source != to:
                self.keep([source, to])
                self.clock += 1
                yield Copy(source, to)

    def branch(self, op: IfOp) -> Step:
        """Both functions, each with copies to the results."""
        results = [self.temporary(value) for value in op.results]
        found: list[tuple[Step, ...]] = []
        for name, taken in op.branches:
            block = self.enter(name, [self.of[value] for value in taken])
            self.aim(block, results)
            steps = self.steps(block)
            given = [self.of[value] for value in returned(block)]
            found.append((*steps, *self.copies(list(zip(given, results, strict=True)))))
        self.keep([*results, *(self.of[value] for value in op.operands)])
        self.clock += 1
        return Branch(self.of[op.condition], found[0], found[1])

    def aim(self, block: Block, results: Sequence[int]) -> None:
        """What a launch of a branch makes and the branch gives is written to the result at once."""
        for value, storage in zip(returned(block), results, strict=True):
            if isinstance(value.owner, LaunchOp) and value not in self.of:
                self.of[value] = storage

    def loop(self, op: LoopOp) -> Iterator[Step]:
        """Copies to the states; then the function again and again, with copies of what it gives to the states and to
        the rows of what grows."""
        results = [self.temporary(value) for value in op.results]
        states, grown = results[: len(op.first_states)], results[len(op.first_states) :]
        first = [self.of[value] for value in op.first_states]
        yield from self.copies(list(zip(first, states, strict=True)))
        block = self.functions[op.body.string_value()].body.block
        step, going = (self.temporary(argument) for argument in block.args[:2])
        self.enter(op.body.string_value(), [step, going, *states, *(self.of[value] for value in op.rest)])
        steps = self.steps(block)
        following, *given = [self.of[value] for value in returned(block)]
        self.keep([following])
        for source, to in zip(given[len(states) :], grown, strict=True):
            self.keep([source, to])
            self.clock += 1
            steps.append(Copy(source, to, step))
        steps += self.next_states(given[: len(states)], states)
        bounds = [None if value is None else self.of[value] for value in (op.count, op.condition)]
        self.keep([step, going, following, *results, *(self.of[value] for value in op.operands)])
        self.clock += 1
        yield Repeat(bounds[0], bounds[1], step, going, following, tuple(steps))

    def next_states(self, given: Sequence[int], states: Sequence[int]) -> Iterator[Step]:
        """Copies of what a step gives; a state that another one becomes is put aside first."""
        aside = dict[int, int]()
        for n in dict.fromkeys(n for n, state in zip(given, states, strict=True) if n in states and n != state):
            like = self.storages[n]
            aside[n] = len(self.storages)
            self.storages.append(
                Storage(f"t{aside[n]}", "temp", like.dtype, like.shape, self.clock, self.clock, like.border)
            )
        yield from self.copies(list(aside.items()))
        yield from self.copies([(aside.get(n, n) if n != s else n, s) for n, s in zip(given, states, strict=True)])

    def enter(self, name: str, storages: Sequence[int]) -> Block:
        """The block of a function whose arguments have these storages."""
        block = self.functions[name].body.block
        self.of.update(zip(block.args, storages, strict=True))
        return block


def returned(block: Block) -> Sequence[SSAValue]:
    """What a function gives."""
    assert block.last_op is not None
    return block.last_op.operands


def storage_of(value: SSAValue, name: str, role: Role, step: int = 0, border: str = "") -> Storage:
    """The storage of a value that is made in a step."""
    if not is_host(value):
        return Storage(name, role, dtype_name(value), shape(value), step, step, border)
    kind = host_type(value)
    return Storage(name, role, HOST, (kind.shape or ()) if kind.is_static else (), step, step, str(kind))


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
