"""The allocator of global memory: one arena, blocks at multiples of 64, best fit, neighbours joined when freed."""

from bisect import bisect_left, insort
from dataclasses import dataclass
from typing import ClassVar

from .problem import Kind, UserError

ALIGNMENT = 64


class OutOfMemory(UserError, MemoryError):
    """No free block is large enough: what was asked for, what is there."""

    KIND: ClassVar[Kind] = Kind.MEMORY


@dataclass(frozen=True, slots=True)
class PoolStatistics:
    """Bytes, as the pool rounds them."""

    capacity: int
    in_use: int
    peak: int
    blocks: int
    largest_free: int
    allocations: int
    """Since the pool was made."""

    @property
    def fragmentation(self) -> float:
        """The share of the free bytes that one allocation could not have."""
        free = self.capacity - self.in_use
        return 1 - self.largest_free / free if free else 0.0


class Pool:
    """Addresses from `ALIGNMENT` up to `size`; 0 is never the address of a block."""

    def __init__(self, size: int) -> None:
        self._capacity = max(0, size // ALIGNMENT * ALIGNMENT - ALIGNMENT)
        self._free = [(ALIGNMENT, self._capacity)] if self._capacity else []  # (address, bytes), by address
        self._used: dict[int, int] = {}
        self._in_use = self._peak = self._allocations = 0

    def allocate(self, nbytes: int) -> int:
        """The address of a new block. Raises `OutOfMemory`."""
        size = max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)
        fitting = [(space, address) for address, space in self._free if space >= size]
        if not fitting:
            stats = self.statistics()
            raise OutOfMemory(
                f"global memory: has {nbytes} bytes free in one piece (found {stats.largest_free} in one, "
                f"{stats.capacity - stats.in_use} in all of {stats.capacity}); free buffers, or take a larger target"
            )
        space, address = min(fitting)
        self._free.remove((address, space))
        if space > size:
            insort(self._free, (address + size, space - size))
        self._used[address] = size
        self._in_use += size
        self._peak = max(self._peak, self._in_use)
        self._allocations += 1
        return address

    def free(self, address: int) -> None:
        """Returns a block. Raises `ValueError` for an address that is not one, or no longer."""
        if address not in self._used:
            raise ValueError(f"address {address}: no block begins there; free each block once")
        size = self._used.pop(address)
        self._in_use -= size
        index = bisect_left(self._free, (address, 0))
        if index < len(self._free) and self._free[index][0] == address + size:
            size += self._free.pop(index)[1]
        if index and sum(self._free[index - 1]) == address:
            address, before = self._free.pop(index - 1)
            size += before
        insort(self._free, (address, size))

    def statistics(self) -> PoolStatistics:
        """What has been handed out, and what is left."""
        largest = max((space for _, space in self._free), default=0)
        return PoolStatistics(self._capacity, self._in_use, self._peak, len(self._used), largest, self._allocations)
