"""Strides of tiles whose axes lie in an order of their own, in elements."""

from collections.abc import Mapping, Sequence

from ...dialects.tile.attributes import row_major


def packed(order: Sequence[int], tiles: Mapping[int, int] | Sequence[int]) -> dict[int, int]:
    """Strides by axis of a tile whose axes lie in `order`, one next to the other."""
    return dict(zip(order, row_major([tiles[d] for d in order]), strict=True))
