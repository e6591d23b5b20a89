"""What a kernel's buffers take of each on-chip memory, so that a tiling can be checked before it is compiled."""

from collections.abc import Iterable
from dataclasses import dataclass

from ...runtime.target import Target
from .ops import AllocOp, ForOp, KernelOp


@dataclass(frozen=True, slots=True)
class Need:
    """What a buffer takes of a memory."""

    name: str
    space: str
    size: int
    """Bytes of a slot."""
    slots: int

    def step(self, alignment: int) -> int:
        """Bytes from slot to slot."""
        return -(-self.size // alignment) * alignment

    def total(self, alignment: int) -> int:
        """Bytes of all slots."""
        return self.step(alignment) * self.slots


def capacity(target: Target) -> dict[str, int]:
    """Bytes of each on-chip memory."""
    return {
        "l1": target.l1_bytes,
        "l0a": target.l0a_bytes,
        "l0b": target.l0b_bytes,
        "l0c": target.l0c_bytes,
        "ub": target.ub_bytes,
    }


def needs(kernel: KernelOp) -> list[Need]:
    """The buffers of a kernel in order. One outside all loops uses one slot, whatever its type says."""
    found: list[Need] = []
    for op in kernel.body.walk():
        if isinstance(op, AllocOp):
            kind = op.buffer.type
            slots = kind.slots.data if isinstance(op.parent_op(), ForOp) else 1
            found.append(Need(op.buffer.name_hint or f"buffer {len(found)}", kind.space.data, kind.bytes, slots))
    return found


def totals(buffers: Iterable[Need], target: Target) -> dict[str, int]:
    """Bytes of each memory, slots aligned."""
    sums = dict.fromkeys(capacity(target), 0)
    for buffer in buffers:
        sums[buffer.space] += buffer.total(target.alignment)
    return sums


def footprint(kernel: KernelOp, target: Target) -> dict[str, int]:
    """Bytes of each on-chip memory that the kernel will take on the target; it fits if none exceeds
    `capacity(target)`.
    """
    return totals(needs(kernel), target)
