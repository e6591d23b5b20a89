"""Places for the temporaries of a plan in global memory.

A temporary lives from its first writer to its last reader; two that live at the same time must not overlap. Several
greedy orders are tried; the search stops at the lower bound, the largest number of bytes alive at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """`size` bytes alive in steps first … last, both included."""

    size: int
    first: int
    last: int

    def meets(self, other: "Interval") -> bool:
        """Whether both are alive in some step."""
        return self.first <= other.last and other.first <= self.last


def plan_memory(intervals: Sequence[Interval], alignment: int) -> tuple[list[int], int]:
    """(offset of each interval, bytes in all), offsets multiples of `alignment`."""
    rounded = [Interval(-(-i.size // alignment) * alignment, i.first, i.last) for i in intervals]
    bound = alive_at_most(rounded)
    best: tuple[list[int], int] | None = None
    for key in _ORDERS:
        offsets = _place(rounded, sorted(range(len(rounded)), key=lambda n: key(rounded[n])))
        total = max((offset + i.size for offset, i in zip(offsets, rounded, strict=True)), default=0)
        if best is None or total < best[1]:
            best = offsets, total
        if total == bound:
            break
    assert best is not None
    return best


def alive_at_most(intervals: Sequence[Interval]) -> int:
    """The lower bound: bytes alive in the fullest step."""
    steps = {i.first for i in intervals}
    return max((sum(i.size for i in intervals if i.first <= step <= i.last) for step in steps), default=0)


_ORDERS: tuple[Callable[[Interval], tuple[int, ...]], ...] = (
    lambda i: (-i.size, i.first),
    lambda i: (-(i.last - i.first) * i.size, i.first),
    lambda i: (i.first, -i.size),
    lambda i: (i.first - i.last, -i.size),
)
"""By size, by area, by birth, by length of life."""


def _place(intervals: Sequence[Interval], order: Sequence[int]) -> list[int]:
    """First fit: each interval at the lowest offset free throughout its life."""
    offsets = [0] * len(intervals)
    placed: list[int] = []
    for n in order:
        taken = sorted((offsets[m], offsets[m] + intervals[m].size) for m in placed if intervals[m].meets(intervals[n]))
        at = 0
        for low, high in taken:
            if at + intervals[n].size <= low:
                break
            at = max(at, high)
        offsets[n] = at
        placed.append(n)
    return offsets
