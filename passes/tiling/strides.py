"""Strides of contiguous tensors, in elements."""

from collections.abc import Mapping, Sequence


def row_major(size: Sequence[int]) -> tuple[int, ...]:
    """Strides of a contiguous tensor."""
    strides = [1]
    for extent in reversed(size[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides)) if size else ()


def packed(order: Sequence[int], tiles: Mapping[int, int] | Sequence[int]) -> dict[int, int]:
    """Strides by axis of a tile whose axes lie in `order`, one next to the other."""
    return dict(zip(order, row_major([tiles[d] for d in order]), strict=True))
