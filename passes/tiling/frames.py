"""The border of a frame: one value, stored again and again from a tile in UB that holds nothing else."""

from collections.abc import Iterator, Sequence

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.graph.constants import NUMPY
from ...dialects.graph.op import Frame, element
from ...dialects.tile.builder import Affine, Buffer, KernelBuilder
from .body import Dim, NotTileable
from .space import open_tiles

Slab = tuple[tuple[int, int], ...]
"""For each axis the first place, and how many."""


def emit_frame(
    k: KernelBuilder, view: Frame, inside: Sequence[int], result: SSAValue, output: Buffer, limit: int, cores: int
) -> None:
    """Fills what the operand, of the extents `inside`, leaves free."""
    slabs = [_runs(slab, view.shape) for slab in slabs_of(view, inside)]
    if not slabs:
        return
    size = min(limit, max(runs[-1][0] for _, runs in slabs))
    number = np.asarray(view.value).astype(NUMPY[element(result)]).reshape(1)
    value = k.alloc((size,), output.kind.dtype, "ub")
    k.fill(value.box(0, 1), (size,), int(number.view(f"u{number.itemsize}")[0]))
    for start, runs in slabs:
        _store(k, start, runs, value, output, size, cores)


def slabs_of(view: Frame, inside: Sequence[int]) -> Iterator[Slab]:
    """Boxes that cover the border, none of them twice: before and after the operand on each axis, within it on the axes
    before."""
    kept: list[tuple[int, int]] = []
    for axis, (extent, before, size) in enumerate(zip(view.shape, view.before, inside, strict=True)):
        low = min(max(before, 0), extent)
        high = max(low, min(extent, before + size))
        for start, count in ((0, low), (high, extent - high)):
            if count:
                yield (*kept, (start, count), *((0, n) for n in view.shape[axis + 1 :]))
        if high == low:
            return
        kept.append((low, high - low))


def _runs(slab: Slab, size: Sequence[int]) -> tuple[int, list[tuple[int, int]]]:
    """First element of a slab, and its (extent, stride), axes joined that are contiguous."""
    start, stride, runs = 0, 1, list[tuple[int, int]]()
    for (first, count), extent in zip(reversed(slab), reversed(size), strict=True):
        start += first * stride
        if runs and runs[0][0] * runs[0][1] == stride:
            runs[0] = (runs[0][0] * count, runs[0][1])
        elif count > 1 or not runs:
            runs.insert(0, (count, stride))
        stride *= extent
    return start, runs


def _store(
    k: KernelBuilder, first: int, runs: Sequence[tuple[int, int]], value: Buffer, output: Buffer, size: int, cores: int
) -> None:
    """One store of up to five axes; those before, and what is longer than the tile of values, in loops."""
    tiles = [n if d >= len(runs) - 5 else 1 for d, (n, _) in enumerate(runs)]
    tiles[-1] = min(tiles[-1], size)
    if cores > 1 and tiles[0] == runs[0][0] >= cores:
        tiles[0] = -(-runs[0][0] // cores)
    dims = [Dim(n, t, Affine(), n) for (n, _), t in zip(runs, tiles, strict=True)]
    loops = [d for d, dim in enumerate(dims) if dim.blocks > 1]
    if len(loops) > 5:
        raise NotTileable(f"a frame has at most ten axes (found {len(runs)})")
    with open_tiles(k, dims, loops, cores):
        there = sum((dim.start * stride for dim, (_, stride) in zip(dims, runs, strict=True)), Affine(first))
        walked = [d for d in range(len(runs)) if tiles[d] > 1 or d == len(runs) - 1]
        k.store(
            output.box(there, *(runs[d][1] for d in walked)),
            value.box(0, *[0] * (len(walked) - 1), 1),
            [dims[d].extent for d in walked],
        )
