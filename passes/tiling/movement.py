"""Kernels that only move elements: transposes, slices, broadcasts, joins and frames that no other kernel absorbs.

A tile is loaded with its innermost *source* axis contiguous, each element once; re-ordered in UB by a strided copy if
that axis is not the innermost one of the *result*; and stored with that one contiguous.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from ...dialects import tile
from ...dialects.graph.op import Frame, Join, Lookup, Placement, Reshape, Strided, dtype_name, shape
from ...dialects.tile.attributes import row_major
from ...dialects.tile.builder import Affine, Buffer, Index, KernelBuilder
from ...runtime.target import Target
from .body import Dim, Machine, NotTileable, Region, first_fitting
from .frames import emit_frame
from .joins import is_joinable, tile_join
from .lookups import tile_lookup, tile_placement
from .space import balanced, open_tiles
from .strides import packed


@dataclass(frozen=True)
class Run:
    """A merged axis of a move: extent, element stride in the source (0: broadcast) and in the result."""

    size: int
    source: int
    result: int


@dataclass(frozen=True)
class Move:
    """result[to + Σ i·result] = source[from + Σ i·source]; `operand` is the position of the source."""

    operand: int
    runs: tuple[Run, ...]
    source: int
    result: int


Staged = tuple[Buffer, int, Mapping[int, int]]
"""A tile in UB: the buffer, the place of the first element, the stride of each axis."""
MOST_COPIES = 16
"""Instructions that copy one tile in UB."""
MOST_RINGS = 12
"""Moves of one kernel that have buffers of two slots: a core counts the iterations of few loops."""


def tile_movement(name: str, region: Region, machine: Machine) -> tile.KernelOp:
    """The kernel of one view op: one nest for each operand, but a loop over rows that lie next to each other."""
    view = region.ops[0].view()
    limits = list(_limits(machine.target))
    if isinstance(view, Lookup):
        kernels = (tile_lookup(name, region, view, limit, machine.cores) for limit in limits)
    elif isinstance(view, Placement):
        kernels = (tile_placement(name, region, view, limit) for limit in limits)
    else:
        moves, burst = moves_of(region), machine.target.gm_burst
        kernels = (_build(name, region, moves, limit, machine.cores, burst) for limit in limits)
        if isinstance(view, Join) and is_joinable(region, view, machine.target):
            kernels = (tile_join(name, region, view, limit, machine.cores, burst) for limit in limits)
    return first_fitting(kernels, machine, "a tile of a move must fit UB")


def moves_of(region: Region) -> list[Move]:
    """The view as strided copies."""
    (op,) = region.ops
    view, out = op.view(), shape(op.results[0])
    strides = row_major(out)
    if isinstance(view, Join):
        moves: list[Move] = []
        start = 0
        for position, operand in enumerate(op.operands):
            size = shape(operand)
            runs = zip(size, row_major(size), strides, strict=True)
            moves.append(Move(position, merge_runs([Run(*r) for r in runs]), 0, start * strides[view.axis]))
            start += size[view.axis]
        return moves
    if isinstance(view, Reshape):
        return [Move(0, (Run(math.prod(out), 1, 1),), 0, 0)]
    own = row_major(shape(op.operands[0]))
    if isinstance(view, Frame):
        places = list(zip(view.before, shape(op.operands[0]), out, strict=True))
        kept = [min(there, before + here) - max(0, before) for before, here, there in places]
        first = sum(max(0, -before) * stride for before, stride in zip(view.before, own, strict=True))
        start = sum(max(0, before) * stride for before, stride in zip(view.before, strides, strict=True))
        runs = [Run(*r) for r in zip(kept, own, strides, strict=True)]
        return [Move(0, merge_runs(runs), first, start)] if min(kept, default=1) > 0 else []
    assert isinstance(view, Strided)
    first = sum(start * own[ax] for ax, start in zip(view.axes, view.starts, strict=True) if ax is not None)
    runs = [
        Run(size, 0 if ax is None else own[ax] * step, stride)
        for size, ax, step, stride in zip(view.shape, view.axes, view.steps, strides, strict=True)
    ]
    return [Move(0, merge_runs(runs), first, 0)]


def merge_runs(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Drops axes of one element and joins neighbours that are contiguous in both tensors."""
    merged: list[Run] = []
    for run in runs:
        if run.size == 1:
            continue
        if merged and merged[-1].source == run.source * run.size and merged[-1].result == run.result * run.size:
            merged[-1] = Run(merged[-1].size * run.size, run.source, run.result)
        else:
            merged.append(run)
    return tuple(merged) or (Run(1, 1, 1),)


def _limits(target: Target) -> Iterator[int]:
    """Elements of a tile to try."""
    limit = target.ub_bytes // 4
    while limit >= 16:
        yield limit
        limit //= 2


def _build(name: str, region: Region, moves: Sequence[Move], limit: int, cores: int, burst: int) -> tile.KernelOp:
    k = KernelBuilder(name)
    sources = {value: k.argument((math.prod(shape(value)),), dtype_name(value)) for value in region.arguments}
    (op,) = region.ops
    view = op.view()
    output = k.argument((math.prod(shape(op.results[0])),), dtype_name(op.results[0]))
    if isinstance(view, Frame):
        emit_frame(k, view, shape(op.operands[0]), op.results[0], output, limit, cores)
    slots = 2 if len(moves) <= MOST_RINGS else 1
    for move in moves:
        emit_move(k, move, sources[op.operands[move.operand]], output, limit, cores, burst, slots)
    return k.finish()


def choose_tile(runs: Sequence[Run], limit: int) -> list[int]:
    """Extents of a tile, the innermost axes of source and of result first; at most five are longer than one."""
    tiles = [1] * len(runs)
    inner = len(runs) - 1
    source_inner = min(range(len(runs)), key=lambda d: abs(runs[d].source) or math.inf)
    side = limit if inner == source_inner else math.isqrt(limit)
    for d in dict.fromkeys((inner, source_inner)):
        tiles[d] = balanced(runs[d].size, max(1, min(runs[d].size, side)))
    for d in reversed(range(len(runs))):
        room = limit // math.prod(tiles)
        if tiles[d] < runs[d].size and room > 1:
            grown = balanced(runs[d].size, min(runs[d].size, tiles[d] * room))
            if tiles[d] > 1 or is_walkable([*tiles[:d], grown, *tiles[d + 1 :]], runs):
                tiles[d] = grown
    return tiles


def is_walkable(tiles: Sequence[int], runs: Sequence[Run]) -> bool:
    """A transfer walks five axes, a copy in UB three of them: it is done again for each place on the others, if those
    are short and whole."""
    longer = sorted((d for d, t in enumerate(tiles) if t > 1), key=lambda d: -tiles[d])
    others = longer[3:]
    return (
        len(longer) <= 5
        and math.prod(tiles[d] for d in others) <= MOST_COPIES
        and all(tiles[d] == runs[d].size for d in others)
    )


def emit_move(
    k: KernelBuilder, move: Move, source: Buffer, output: Buffer, limit: int, cores: int, burst: int, slots: int
) -> None:
    """The nest of one move; raises `NotTileable`."""
    runs = move.runs
    tiles = choose_tile(runs, limit)
    blocks = math.prod(-(-r.size // t) for r, t in zip(runs, tiles, strict=True))
    if blocks < 2 * cores and cores > 1 and runs[0].size >= 2 * cores:
        tiles[0] = min(tiles[0], -(-runs[0].size // (2 * cores)))
    dims = [Dim(r.size, t, Affine(), r.size) for r, t in zip(runs, tiles, strict=True)]
    loops = [d for d, dim in enumerate(dims) if dim.blocks > 1]
    if len(loops) > 5:
        raise NotTileable(f"a move has at most five outer axes (found {len(loops)})")
    walked = [d for d, t in enumerate(tiles) if t > 1] or [len(runs) - 1]
    with open_tiles(k, dims, loops, cores):
        here = sum((dims[d].start * runs[d].source for d in range(len(runs))), Affine(move.source))
        there = sum((dims[d].start * runs[d].result for d in range(len(runs))), Affine(move.result))
        staged, first, strides = _arrive(k, source, here, [(d, runs[d].source) for d in walked], dims, burst, slots)
        leaves = sorted(walked, key=lambda d: -runs[d].result)
        extents = [dims[d].extent for d in leaves]
        if strides[leaves[-1]] != 1 and tiles[leaves[-1]] > 1:
            final = packed(leaves, tiles)
            outbound = k.alloc((math.prod(tiles),), output.kind.dtype, "ub", slots)
            _copy(k, (outbound, 0, final), (staged, first, strides), {d: dims[d].extent for d in leaves})
            staged, first, strides = outbound, 0, final
        last = [*(strides[d] for d in leaves[:-1]), 1]
        outside, inside, extents = joined_axes([runs[d].result for d in leaves], last, extents)
        k.store(output.box(there, *outside), staged.box(first, *inside), extents)


def _copy(k: KernelBuilder, target: Staged, source: Staged, extents: Mapping[int, Index]) -> None:
    """From one order in UB to another, axes from the outermost of the target on: again and again for all places on
    short axes that are too many for an instruction."""
    by_length = sorted(extents, key=lambda d: (isinstance(extents[d], int), -_most(extents[d])))
    walked = [d for d in extents if d in by_length[:3]]
    others = {d: extent for d in by_length[3:] if isinstance(extent := extents[d], int)}
    if len(walked) + len(others) < len(extents):
        raise NotTileable(f"a copy in UB walks three axes that end in a part (found {len(extents) - len(others)})")
    if others and by_length[0] in walked:  # the target has gaps: the longest axis is that of the vectors
        walked = [*(d for d in walked if d != by_length[0]), by_length[0]]
    for place in product(*map(range, others.values())):
        (into, to), (out, at) = (
            (buffer, start + sum(i * strides[d] for i, d in zip(place, others, strict=True)))
            for buffer, start, strides in (target, source)
        )
        k.map(
            "copy",
            into.box(to, *(target[2][d] for d in walked)),
            out.box(at, *(source[2][d] for d in walked)),
            extents=[extents[d] for d in walked],
        )


def _most(extent: Index) -> int:
    """The largest value of an extent."""
    return extent if isinstance(extent, int) else extent.limit or 0


def _arrive(
    k: KernelBuilder,
    source: Buffer,
    here: Affine,
    axes: Sequence[tuple[int, int]],
    dims: Sequence[Dim],
    burst: int,
    slots: int,
) -> Staged:
    """Loads each element of a tile once: its buffer, the first element's place in it, the stride of each axis.

    Elements a few bytes apart come with what lies between them, in runs.
    """
    order = sorted((axis for axis in axes if axis[1]), key=lambda axis: -abs(axis[1]))
    if not order:
        only = k.alloc((1,), source.kind.dtype, "ub", slots)
        k.load(only.box(0, 1), source.box(here, 1), [1])
        return only, 0, {d: 0 for d, _ in axes}
    widths = {d: dims[d].tile for d, _ in order}
    extents: dict[int, Index] = {d: dims[d].extent for d, _ in order}
    steps, first = dict(axes), 0
    inner, step = order[-1]
    between = abs(step)
    spans = 1 < between * source.kind.esize <= burst and (step > 0 or isinstance(dims[inner].extent, int))
    if spans and step != 1 and dims[inner].tile > 1:
        widths[inner] = (dims[inner].tile - 1) * between + 1
        if step < 0:
            first = widths[inner] - 1
            here = here - first
            extents[inner] = widths[inner]
        elif isinstance(dims[inner].extent, int):
            extents[inner] = widths[inner]
        else:
            extents[inner] = k.clamp((dims[inner].size - dims[inner].start) * between + (1 - between), widths[inner])
        steps[inner] = 1
    strides = packed([d for d, _ in order], widths)
    staged = k.alloc((math.prod(widths.values()),), source.kind.dtype, "ub", slots)
    within = [d for d, _ in order]
    outside, inside, counts = joined_axes(
        [steps[d] for d in within], [strides[d] for d in within], [extents[d] for d in within]
    )
    k.load(staged.box(0, *inside), source.box(here, *outside), counts)
    if steps[inner] != step:
        strides[inner] = step
    return staged, first, {d: strides.get(d, 0) for d, _ in axes}


def joined_axes(
    outside: Sequence[int], inside: Sequence[int], extents: Sequence[Index]
) -> tuple[list[int], list[int], list[Index]]:
    """Strides of both sides of a transfer, and extents: inner axes that lie end to end on both sides are one run, for
    which memory moves whole bursts."""
    axes = list(zip(outside, inside, extents, strict=True))
    (out, on, count), rest = axes[-1], axes[:-1]
    while rest and isinstance(count, int) and rest[-1][:2] == (out * count, on * count):
        count = scaled(rest.pop()[2], count)
    rest.append((out, on, count))
    return [axis[0] for axis in rest], [axis[1] for axis in rest], [axis[2] for axis in rest]


def scaled(extent: Index, by: int) -> Index:
    """An extent, clamped or not, times a constant."""
    if isinstance(extent, int) or extent.limit is None:
        return extent * by
    return Affine(extent.base * by, tuple((coef * by, x, y) for coef, x, y in extent.terms), extent.limit * by)
