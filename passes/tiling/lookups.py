"""Gathers and scatters: tiles of runs whose rows in global memory an index tile names."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...dialects import tile
from ...dialects.graph.op import Lookup, Placement, shape
from ...dialects.tile.attributes import row_major
from ...dialects.tile.builder import Affine, Buffer, KernelBuilder
from .body import Dim, NotTileable, Region
from .space import Spot, balanced, flat_arguments, on_first_core, open_tiles
from .strides import packed


@dataclass(frozen=True)
class Walk:
    """A merged axis: extent, element strides in the table (within its row), in the index, and in the tensor that is
    gathered or scattered."""

    size: int
    table: int
    index: int
    flat: int


@dataclass(frozen=True)
class Walks:
    """The axes before the run, the run, and the table: how many rows it has, and elements from row to row."""

    outer: tuple[Walk, ...]
    run: Walk
    rows: int
    pitch: int

    @staticmethod
    def of(view: Lookup | Placement, size: Sequence[int], table: Sequence[int], index: Sequence[int]) -> "Walks":
        """From the shapes of the gathered or scattered tensor, the table and the index."""
        inside, places = row_major(table), row_major(index)
        walks = [
            Walk(n, 0 if t is None else inside[t], 0 if i is None else places[i], flat)
            for n, t, i, flat in zip(size, view.axes, view.indices, row_major(size), strict=True)
        ]
        merged = _merged(walks)
        is_run = bool(merged) and (merged[-1].table, merged[-1].index) == (1, 0)
        run = merged.pop() if is_run else Walk(1, 1, 0, 1)
        return Walks(tuple(merged), run, table[view.axis], inside[view.axis])


def _merged(walks: Sequence[Walk]) -> list[Walk]:
    """Without axes of one element; neighbours that are contiguous in all three tensors are one."""
    merged: list[Walk] = []
    for walk in walks:
        outer = merged[-1] if merged else None
        if walk.size == 1:
            continue
        if outer and (outer.table, outer.index, outer.flat) == (
            walk.table * walk.size,
            walk.index * walk.size,
            walk.flat * walk.size,
        ):
            merged[-1] = Walk(outer.size * walk.size, walk.table, walk.index, walk.flat)
        else:
            merged.append(walk)
    return merged


def tile_lookup(name: str, region: Region, view: Lookup, limit: int, cores: int) -> tile.KernelOp:
    """result = table at index, tile by tile."""
    k = KernelBuilder(name)
    inputs, (output,) = flat_arguments(k, region)
    (op,) = region.ops
    table, index = (inputs[region.arguments.index(operand)] for operand in op.operands)
    walks = Walks.of(view, view.shape, shape(op.operands[0]), shape(op.operands[1]))
    _emit(k, walks, table, index, output, limit, cores, gathers=True)
    return k.finish()


def tile_placement(name: str, region: Region, view: Placement, limit: int) -> tile.KernelOp:
    """result = table, then updates at index, on one core: rows of several cores could be the same."""
    k = KernelBuilder(name)
    inputs, (output,) = flat_arguments(k, region)
    (op,) = region.ops
    table, index, updates = (inputs[region.arguments.index(operand)] for operand in op.operands)
    size = math.prod(shape(op.operands[0]))
    with on_first_core(k):
        dims = [Dim(size, balanced(size, min(size, limit)), Affine(), size)]
        with open_tiles(k, dims, [0], 1):
            held = k.alloc((dims[0].tile,), output.kind.dtype, "ub", 2)
            k.load(held.box(0, 1), table.box(dims[0].start, 1), [dims[0].extent])
            k.store(output.box(dims[0].start, 1), held.box(0, 1), [dims[0].extent])
        walks = Walks.of(view, shape(op.operands[2]), shape(op.operands[0]), shape(op.operands[1]))
        _emit(k, walks, output, index, updates, limit, 1, gathers=False)
    return k.finish()


def choose_tiles(walks: Walks, limit: int, cores: int) -> list[int]:
    """Extents of a tile, the run's last: at most three axes before it longer than one, the inner ones first."""
    run = balanced(walks.run.size, min(walks.run.size, limit))
    tiles, room = [1] * len(walks.outer), limit // run
    for d in reversed(range(len(tiles))):
        if room > 1 and sum(t > 1 for t in tiles) < 3:
            tiles[d] = balanced(walks.outer[d].size, min(walks.outer[d].size, room))
            room //= tiles[d]
    sizes = [walk.size for walk in (*walks.outer, walks.run)]
    tiles.append(run)
    blocks = math.prod(-(-n // t) for n, t in zip(sizes, tiles, strict=True))
    if cores > 1 and blocks < 2 * cores:
        widest = max(range(len(tiles)), key=lambda d: sizes[d])
        tiles[widest] = balanced(sizes[widest], min(tiles[widest], -(-sizes[widest] // (2 * cores))))
    return tiles


def _emit(
    k: KernelBuilder,
    walks: Walks,
    table: Buffer,
    index: Buffer,
    flat: Buffer,
    limit: int,
    cores: int,
    gathers: bool,
) -> None:
    axes = (*walks.outer, walks.run)
    tiles = choose_tiles(walks, limit, cores)
    dims = [Dim(axis.size, t, Affine(), axis.size) for axis, t in zip(axes, tiles, strict=True)]
    loops = [d for d, dim in enumerate(dims) if dim.blocks > 1]
    if len(loops) > 4:
        raise NotTileable(f"a gather or scatter has at most four outer axes (found {len(loops)})")
    named = [d for d in loops if axes[d].index]
    last = loops.index(named[-1]) if named else -1
    held: list[tuple[Buffer, dict[int, int]]] = []

    def load(spot: Spot) -> None:
        if spot.depth == last:
            held.append(_load_index(k, walks, index, dims))

    with open_tiles(k, dims, loops, cores, at=load):
        _transfer(k, walks, table, held[0], flat, dims, gathers)


def _walked(walks: Walks, dims: Sequence[Dim]) -> list[int]:
    """Axes before the run of which a tile holds more than one element."""
    return [d for d in range(len(walks.outer)) if dims[d].tile > 1]


def _load_index(k: KernelBuilder, walks: Walks, index: Buffer, dims: Sequence[Dim]) -> tuple[Buffer, dict[int, int]]:
    """The index tile and the stride of each axis in it."""
    axes = [d for d in _walked(walks, dims) if walks.outer[d].index]
    strides = packed(axes, [dim.tile for dim in dims])
    held = k.alloc((math.prod(dims[d].tile for d in axes),), "i32", "ub", 2)
    start = sum((dims[d].start * walk.index for d, walk in enumerate(walks.outer)), Affine())
    k.load(
        held.box(0, *([strides[d] for d in axes] or [1])),
        index.box(start, *([walks.outer[d].index for d in axes] or [1])),
        [dims[d].extent for d in axes] or [1],
    )
    return held, strides


def _transfer(
    k: KernelBuilder,
    walks: Walks,
    table: Buffer,
    held: tuple[Buffer, dict[int, int]],
    flat: Buffer,
    dims: Sequence[Dim],
    gathers: bool,
) -> None:
    """One tile, between the table and the flat tensor."""
    axes, run = _walked(walks, dims), len(dims) - 1
    missing = 3 - len(axes)
    strides = packed([*axes, run], [dim.tile for dim in dims])
    every = (*walks.outer, walks.run)
    there = sum((dim.start * axis.flat for dim, axis in zip(dims, every, strict=True)), Affine())
    here = sum((dim.start * axis.table for dim, axis in zip(dims, every, strict=True)), Affine())
    buffer = k.alloc((math.prod(dims[d].tile for d in (*axes, run)),), flat.kind.dtype, "ub", 2)
    index, places = held
    none = [0] * missing
    chip = buffer.box(0, *none, *(strides[d] for d in axes), 1)
    rows = table.box(here, walks.pitch, *none, *(walks.outer[d].table for d in axes), 1)
    named = index.box(0, *none, *(places.get(d, 0) for d in axes))
    extents = [*[1] * missing, *(dims[d].extent for d in (*axes, run))]
    outside = flat.box(there, *(walks.outer[d].flat for d in axes), 1)
    inside = buffer.box(0, *(strides[d] for d in axes), 1)
    if gathers:
        k.gather(chip, rows, named, extents, walks.rows)
        k.store(outside, inside, extents[missing:])
    else:
        k.load(inside, outside, extents[missing:])
        k.scatter(rows, chip, named, extents, walks.rows)
