"""Kernels of the vector engine alone: elementwise chains, softmax, normalisations."""

import math
from collections.abc import Iterator, Sequence

from ...dialects import tile
from ...dialects.tile.builder import Affine, Buffer, KernelBuilder
from ...runtime.expr import LEVELS
from .body import Body, Dim, Machine, NotTileable, Region, first_fitting
from .chunked import tile_in_chunks
from .space import Space, balanced, flat_arguments, open_tiles, vector_space

_GRAIN = 16384
"""Bytes of a tile below which it is not cut further only to have more tiles (a transfer's fixed cost is a few hundred
bytes)."""

MOST_WALKED = 3
"""Dimensions that an instruction walks."""


def tile_vector(name: str, region: Region, machine: Machine) -> tile.KernelOp:
    """Loops over tiles that fit UB, double-buffered; the outermost cut dimension is shared out over the cores."""
    space, cores = vector_space(region), machine.cores
    if sum(size > 1 for size in space.sizes) > LEVELS + MOST_WALKED:
        rule = f"values of a kernel have at most {LEVELS + MOST_WALKED} axes that do not merge"
        raise NotTileable(f"{rule} (found {len(space.sizes)} of {space.full})")
    kernels = (_build(name, region, space, tiles, cores) for tiles in _candidates(region, space, cores))
    try:
        return first_fitting(kernels, machine, "a row of every value must fit UB together")
    except NotTileable:
        if not space.whole:
            raise
    return tile_in_chunks(name, region, space, machine)


def _candidates(region: Region, space: Space, cores: int) -> Iterator[tuple[int, ...]]:
    """Tile sizes from large to small: outer dimensions are cut first, until each core has a few tiles; then ever
    smaller."""
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
        walkable = _is_walkable(walked, space)
        deepest = sum(t < s for s, t in zip(space.sizes, tiles, strict=True))
        if walkable and deepest <= LEVELS and (blocks >= 3 * cores or largest <= _GRAIN or not cut):
            yield tuple(tiles)
        if not cut:
            return
        d = cut[0]
        tiles[d] = balanced(space.sizes[d], -(-tiles[d] // 2)) if walkable else 1


def _is_walkable(walked: Sequence[int], space: Space) -> bool:
    """An instruction walks three dimensions; one that reduces, at most one on each side of those, none between. Where
    all reduced axes are of extent 1, it walks two."""
    whole = space.whole
    if not whole:
        return len(walked) <= (2 if space.reduces else MOST_WALKED)
    kept = [d for d in walked if d not in whole]
    before, after = sum(d < min(whole) for d in kept), sum(d > max(whole) for d in kept)
    return len(walked) <= MOST_WALKED and before <= 1 and after <= 1 and before + after == len(kept)


def _build(name: str, region: Region, space: Space, tiles: Sequence[int], cores: int) -> tile.KernelOp:
    k = KernelBuilder(name)
    inputs, outputs = flat_arguments(k, region)
    loops = [d for d, (size, tile_size) in enumerate(zip(space.sizes, tiles, strict=True)) if tile_size < size]
    body = Body(k, space.full, space.groups, [Dim(s, t, Affine(), s) for s, t in zip(space.sizes, tiles, strict=True)])
    with open_tiles(k, body.dims, loops, cores, at=lambda spot: _load_at(body, region, inputs, loops, spot.depth)):
        body.emit(region.ops, region.results)
        for value, buffer in zip(region.results, outputs, strict=True):
            body.store(value, buffer)
    return k.finish()


def _load_at(body: Body, region: Region, inputs: Sequence[Buffer], loops: Sequence[int], depth: int) -> None:
    """Loads the operands whose innermost loop is the one at `depth` (−1: they depend on none)."""
    for value, buffer in zip(region.arguments, inputs, strict=True):
        depends = [loops.index(d) for d in body.dims_of(value) if d in loops]
        if (max(depends) if depends else -1) == depth:
            body.load(value, buffer, slots=1 if depth < 0 else 2)
