"""Allocation: every on-chip buffer gets its address, every loop with multi-buffers its ring.

Buffers of a memory lie one behind the other in the order of their definition, each slot aligned as the target says.
No two share bytes: tokens are derived from buffers, so bytes that two buffers share would need tokens of their own.
Addresses in L1 and UB count from r28 and r29, so that two kernels can be resident; L0A, L0B and L0C belong to one
kernel at a time and begin at 0. Ring 0 is for loops without multi-buffers, the others have one each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ..dialects import npu
from ..dialects.tile.footprint import Need, capacity, totals
from ..runtime.expr import RINGS, Expr, Ring, Term
from ..runtime.plan import R_L1, R_UB
from ..runtime.target import Target
from .errors import BackendError, MemoryExceeded, buffer_name, place

BASES = {"l1": f"r{R_L1}", "ub": f"r{R_UB}"}
"""Registers that hold the first byte of a kernel's part of a memory."""


def needs(kernel: npu.KernelOp) -> list[Need]:
    """The buffers of a kernel in order. One outside all loops uses one slot, whatever it says."""
    buffers = [op for op in kernel.body.walk() if isinstance(op, npu.BufferOp)]
    return [
        Need(buffer_name(op.handle, number), op.space.data, op.bytes.data, used_slots(op))
        for number, op in enumerate(buffers)
    ]


def used_slots(op: npu.BufferOp) -> int:
    """Slots of a buffer, 1 outside all loops."""
    return op.slots.data if isinstance(op.parent_op(), npu.LoopOp) else 1


def check_fit(kernel: npu.KernelOp, target: Target) -> dict[str, int]:
    """Bytes of each memory. Raises one `MemoryExceeded` that names each memory that overflows, with every buffer in it
    and its size.
    """
    buffers = needs(kernel)
    sums = totals(buffers, target)
    over: list[str] = []
    for space, limit in capacity(target).items():
        if sums[space] > limit:
            parts = ", ".join(f"{b.name} {b.slots} × {b.step(target.alignment)}" for b in buffers if b.space == space)
            over.append(f"{space} of {target.name} has {limit} bytes (found {sums[space]}: {parts})")
    if over:
        raise MemoryExceeded(
            f"{place(kernel)} @{kernel.sym_name.data}: {' and '.join(over)}; use smaller tiles or fewer slots"
        )
    return sums


@dataclass(frozen=True, slots=True)
class Home:
    """Where a buffer lies: first byte from the base of its memory, bytes from slot to slot, slots, ring of its loop."""

    space: str
    start: int
    step: int
    slots: int
    ring: int

    def address(self, rest: Expr, ago: int) -> Expr:
        """`rest` bytes behind the beginning of the slot of `ago` iterations ago."""
        base = Expr(self.start, (Term(1, BASES[self.space]),) if self.space in BASES else ())
        total = base + rest
        return replace(total, ring=Ring(self.ring, -ago, self.slots, self.step)) if self.slots > 1 else total


def allocate_kernel(kernel: npu.KernelOp, target: Target) -> None:
    """Replaces buffers by addresses, in place, and sets the kernel's numbers `l1` and `ub`. Raises `BackendError`."""
    sums = check_fit(kernel, target)
    homes = _place(kernel, target.alignment, _rings(kernel))
    for op in kernel.body.walk():
        if isinstance(op, npu.RowOp) and op.placed:
            _address(op, homes)
    for op in [op for op in kernel.body.walk() if isinstance(op, npu.BufferOp)]:
        op.detach()
        op.erase()
    kernel.set_number("l1", sums["l1"])
    kernel.set_number("ub", sums["ub"])


def _rings(kernel: npu.KernelOp) -> dict[npu.LoopOp, int]:
    """The ring of each loop that owns a multi-buffer; written to the loop as well. Raises `BackendError` if there are
    too many.
    """
    rings: dict[npu.LoopOp, int] = {}
    for op in kernel.body.walk():
        if isinstance(op, npu.BufferOp) and op.slots.data > 1 and isinstance(loop := op.parent_op(), npu.LoopOp):
            rings.setdefault(loop, len(rings) + 1)
    if len(rings) >= RINGS:
        raise BackendError(
            f"{place(kernel)} @{kernel.sym_name.data}: at most {RINGS - 1} loops own buffers of several slots "
            f"(found {len(rings)})"
        )
    position = npu.LoopOp.INSTRUCTION.index("ring")
    for loop, ring in rings.items():
        fields = list(loop.fields.data)
        fields[position] = Expr(ring)
        loop.fields = npu.FieldsAttr(tuple(fields))
    return rings


def _place(kernel: npu.KernelOp, alignment: int, rings: Mapping[npu.LoopOp, int]) -> dict[SSAValue, Home]:
    homes: dict[SSAValue, Home] = {}
    ends: dict[str, int] = {}
    for op in kernel.body.walk():
        if isinstance(op, npu.BufferOp):
            need = Need("", op.space.data, op.bytes.data, used_slots(op))
            loop = op.parent_op()
            ring = rings.get(loop, 0) if isinstance(loop, npu.LoopOp) else 0
            homes[op.handle] = Home(need.space, ends.get(need.space, 0), need.step(alignment), need.slots, ring)
            ends[need.space] = ends.get(need.space, 0) + need.total(alignment)
    return homes


def _address(op: npu.RowOp, homes: Mapping[SSAValue, Home]) -> None:
    """Replaces the buffers of a row."""
    fields = list(op.fields.data)
    for buffer, (number, ago) in zip(op.buffers, op.placed, strict=True):
        fields[number] = homes[buffer].address(fields[number], ago)
    op.fields = npu.FieldsAttr(tuple(fields))
    op.operands = ()
    del op.properties["places"]


@dataclass(frozen=True)
class Allocate(ModulePass):
    """Gives buffers addresses, loops with multi-buffers rings; `target` names a chip other than the driver's.

    npu.kernel @relu(gm, gm) l1=0 ub=0 ids=1 slots=1 {
      npu.loop count=1000 step=128 {
        %t = npu.buffer ub 16384 x 2
        npu.load dst=%t space=ub …
    ⟶
    npu.kernel @relu(gm, gm) l1=0 ub=32768 ids=1 slots=1 {
      npu.loop count=1000 step=128 ring=1 {
        npu.load dst=r29 + ring(1, 0, 2)*16384 space=ub …
    """

    name = "allocate"
    target: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = Target.load(self.target) if self.target else getattr(ctx, "target", None)
        if not isinstance(target, Target):
            raise BackendError(
                "allocate: needs a target (found none); give one with --target, for example --target edge"
            )
        for kernel in op.body.block.ops:
            if isinstance(kernel, npu.KernelOp):
                allocate_kernel(kernel, target)
