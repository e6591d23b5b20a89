"""Kernels of the vector engine alone: elementwise chains, softmax, normalisations."""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from ...dialects import tile
from ...dialects.graph.op import dtype_name, shape
from ...dialects.loops import Reduce
from ...dialects.tile_builder import Affine, Buffer, KernelBuilder
from ...runtime.target import Target
from .body import Body, Dim, Machine, NotTileable, Region, first_fitting, merge_axes

_GRAIN = 16384
"""Bytes of a tile below which it is not cut further only to have more tiles (a transfer's fixed cost is a few hundred bytes)."""


@dataclass(frozen=True)
class Space:
    """The merged iteration space of a vector kernel; dimensions in `whole` are reduced and stay in one tile."""

    full: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    whole: frozenset[int]


def tile_vector(name: str, region: Region, machine: Machine) -> tile.KernelOp:
    """Loops over tiles that fit UB, double-buffered; the outermost cut dimension is shared out over the cores."""
    target, cores = machine.target, machine.cores
    space = vector_space(region)
    return first_fitting(
        (_build(name, region, space, tiles, cores) for tiles in _candidates(region, space, cores)),
        machine,
        "a row of every value must fit UB together",
    )


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


def _candidates(region: Region, space: Space, cores: int) -> Iterator[tuple[int, ...]]:
    """Tile sizes from large to small: outer dimensions are cut first, until each core has a few tiles; then ever smaller."""
    tiles = list(space.sizes)
    while True:
        body = Body(
            KernelBuilder("estimate"),
            space.full,
            space.groups,
            [Dim(s, t) for s, t in zip(space.sizes, tiles, strict=True)],
        )
        walked = [d for d, size in enumerate(tiles) if size > 1]
        cut = [d for d in walked if d not in space.whole]
        blocks = math.prod(-(-s // t) for s, t in zip(space.sizes, tiles, strict=True))
        largest = max(body.tile_bytes(v) for v in (*region.arguments, *region.results))
        if len(walked) <= 3 and (blocks >= 3 * cores or largest <= _GRAIN or not cut):
            yield tuple(tiles)
        if not cut:
            return
        d = cut[0]
        tiles[d] = 1 if len(walked) > 3 else balanced(space.sizes[d], -(-tiles[d] // 2))


def balanced(size: int, tile: int) -> int:
    """The smallest tile with as many tiles as `tile` gives: equal tiles instead of full ones and a sliver."""
    return -(-size // -(-size // tile))


def _build(name: str, region: Region, space: Space, tiles: Sequence[int], cores: int) -> tile.KernelOp:
    k = KernelBuilder(name)
    inputs = [k.argument((math.prod(shape(v)),), dtype_name(v)) for v in region.arguments]
    outputs = [k.argument((math.prod(shape(v)),), dtype_name(v)) for v in region.results]
    loops = [d for d, (size, tile_size) in enumerate(zip(space.sizes, tiles, strict=True)) if tile_size < size]
    body = Body(k, space.full, space.groups, [Dim(s, t, Affine(), s) for s, t in zip(space.sizes, tiles, strict=True)])
    with ExitStack() as stack:
        if not loops and cores > 1:  # a single tile: the first core does it
            stack.enter_context(k.loop(k.clamp(1 - k.core(), 1)))
        _load_at(body, region, inputs, loops, -1)
        for depth, d in enumerate(loops):
            stack.enter_context(open_tile(k, body.dims, d, cores if depth == 0 else 1))
            _load_at(body, region, inputs, loops, depth)
        body.emit(region.ops, region.results)
        for value, buffer in zip(region.results, outputs, strict=True):
            body.store(value, buffer)
    return k.finish()


@contextmanager
def open_tile(k: KernelBuilder, dims: list[Dim], d: int, cores: int) -> Iterator[None]:
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


def _load_at(body: Body, region: Region, inputs: Sequence[Buffer], loops: Sequence[int], depth: int) -> None:
    """Loads the operands whose innermost loop is the one at `depth` (−1: they depend on none)."""
    for value, buffer in zip(region.arguments, inputs, strict=True):
        depends = [loops.index(d) for d in body.dims_of(value) if d in loops]
        if (max(depends) if depends else -1) == depth:
            body.load(value, buffer, slots=1 if depth < 0 else 2)


__all__ = ["NotTileable", "Space", "balanced", "open_tile", "tile_vector", "vector_space"]
