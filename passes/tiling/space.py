"""Iteration spaces and the loops over their tiles, common to all forms of kernel."""

import math
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

from ...dialects.graph.op import dtype_name, shape
from ...dialects.loops import Reduce
from ...dialects.tile.builder import Affine, Buffer, KernelBuilder
from .body import Dim, Region, merge_axes


@dataclass(frozen=True)
class Space:
    """The merged iteration space of a vector kernel; dimensions in `whole` are reduced and stay in one tile."""

    full: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    whole: frozenset[int]


def vector_space(region: Region) -> Space:
    """The space of the widest value, its axes merged as far as all values agree."""
    values = [*dict.fromkeys(v for op in region.ops for v in (*op.operands, *op.results))]
    full = max((shape(v) for v in values), key=lambda s: (math.prod(s), len(s)))
    nests = [op.loops() for op in region.ops]
    reduced = frozenset(
        axis + len(full) - len(nest.bounds)
        for nest in nests
        if isinstance(nest.kernel, Reduce)
        for axis in nest.reduced
    )
    groups = tuple(merge_axes(full, values, reduced))
    sizes = tuple(math.prod(full[axis] for axis in group) for group in groups)
    return Space(
        tuple(full), groups, sizes, frozenset(d for d, group in enumerate(groups) if group and group[0] in reduced)
    )


def balanced(size: int, tile: int) -> int:
    """The smallest tile with as many tiles as `tile` gives: equal tiles instead of full ones and a sliver."""
    return -(-size // -(-size // tile))


def up16(size: int) -> int:
    """The next multiple of 16."""
    return -(-size // 16) * 16


def balanced16(size: int, tile: int) -> int:
    """A balanced tile in blocks of 16."""
    return 16 * balanced(-(-size // 16), max(1, tile // 16))


def flat_arguments(k: KernelBuilder, region: Region) -> tuple[list[Buffer], list[Buffer]]:
    """Arguments of the kernel: operands, then results, each as one row-major run of elements."""
    made = [k.argument((math.prod(shape(v)),), dtype_name(v)) for v in (*region.arguments, *region.results)]
    return made[: len(region.arguments)], made[len(region.arguments) :]


def on_first_core(k: KernelBuilder) -> AbstractContextManager[object]:
    """Opens a loop that only the first core enters: for a single tile, which cannot be shared out."""
    return k.loop(k.clamp(1 - k.core(), 1))


@contextmanager
def open_tile(k: KernelBuilder, dims: list[Dim], d: int, cores: int) -> Generator[None]:
    """Opens the loop over the tiles of dimension d, shared out over the cores, and sets its place and extent."""
    dim = dims[d]
    chunk = -(-dim.blocks // cores) * dim.tile
    first = k.core() * chunk if cores > 1 else Affine()
    bound = k.clamp(dim.size - first, chunk) if cores > 1 else dim.size
    with k.loop(bound, step=dim.tile) as index:
        start = first + index
        extent = dim.tile if dim.size % dim.tile == 0 else k.clamp(dim.size - start, dim.tile)
        dims[d] = replace(dim, start=start, extent=extent)
        yield
    dims[d] = dim
