"""Kernels that only move elements: transposes, slices, broadcasts and joins that no other kernel absorbs.

A tile is loaded with its innermost *source* axis contiguous, re-ordered in UB by a strided copy, and stored with its
innermost *result* axis contiguous.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from ...dialects import tile
from ...dialects.graph.op import Join, Reshape, Strided, dtype_name, shape
from ...dialects.tile.builder import Affine, Buffer, KernelBuilder
from ...runtime.target import Target
from .body import Dim, Machine, NotTileable, Region, first_fitting
from .space import balanced, on_first_core, open_tile


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


def tile_movement(name: str, region: Region, machine: Machine) -> tile.KernelOp:
    """The kernel of one view op: one nest for each operand."""
    target, cores = machine.target, machine.cores
    moves = moves_of(region)
    return first_fitting(
        (_build(name, region, moves, limit, cores) for limit in _limits(target)),
        machine,
        "a tile of a move must fit UB",
    )


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
    assert isinstance(view, Strided)
    own = row_major(shape(op.operands[0]))
    first = sum(start * own[ax] for ax, start in zip(view.axes, view.starts, strict=True) if ax is not None)
    runs = [
        Run(size, 0 if ax is None else own[ax] * step, stride)
        for size, ax, step, stride in zip(view.shape, view.axes, view.steps, strides, strict=True)
    ]
    return [Move(0, merge_runs(runs), first, 0)]


def row_major(size: Sequence[int]) -> tuple[int, ...]:
    """Element strides of a contiguous tensor."""
    strides = [1]
    for extent in reversed(size[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides)) if size else ()


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


def _build(name: str, region: Region, moves: Sequence[Move], limit: int, cores: int) -> tile.KernelOp:
    k = KernelBuilder(name)
    sources = {value: k.argument((math.prod(shape(value)),), dtype_name(value)) for value in region.arguments}
    (op,) = region.ops
    output = k.argument((math.prod(shape(op.results[0])),), dtype_name(op.results[0]))
    for move in moves:
        _emit(k, move, sources[op.operands[move.operand]], output, limit, cores)
    return k.finish()


def choose_tile(runs: Sequence[Run], limit: int) -> list[int]:
    """Extents of a tile: at most three axes longer than one, the innermost of source and of result first."""
    tiles = [1] * len(runs)
    inner = len(runs) - 1
    source_inner = min(range(len(runs)), key=lambda d: abs(runs[d].source) or math.inf)
    side = limit if inner == source_inner else math.isqrt(limit)
    for d in dict.fromkeys((inner, source_inner)):
        tiles[d] = balanced(runs[d].size, max(1, min(runs[d].size, side)))
    for d in reversed(range(len(runs))):
        room = limit // math.prod(tiles)
        if tiles[d] < runs[d].size and room > 1 and (tiles[d] > 1 or sum(t > 1 for t in tiles) < 3):
            tiles[d] = balanced(runs[d].size, min(runs[d].size, tiles[d] * room))
    return tiles


def _emit(k: KernelBuilder, move: Move, source: Buffer, output: Buffer, limit: int, cores: int) -> None:
    runs = move.runs
    tiles = choose_tile(runs, limit)
    blocks = math.prod(-(-r.size // t) for r, t in zip(runs, tiles, strict=True))
    if blocks < 2 * cores and cores > 1 and runs[0].size >= 2 * cores:
        tiles[0] = min(tiles[0], -(-runs[0].size // (2 * cores)))
    dims = [Dim(r.size, t, Affine(), r.size) for r, t in zip(runs, tiles, strict=True)]
    loops = [d for d, dim in enumerate(dims) if dim.blocks > 1]
    if len(loops) > 5:
        raise NotTileable(f"a move has at most five outer axes (found {len(loops)})")
    dtype = output.kind.dtype
    walked = [d for d, t in enumerate(tiles) if t > 1] or [len(runs) - 1]
    with ExitStack() as stack:
        if not loops and cores > 1:
            stack.enter_context(on_first_core(k))
        for depth, d in enumerate(loops):
            stack.enter_context(open_tile(k, dims, d, cores if depth == 0 else 1))
        here = sum((dims[d].start * runs[d].source for d in range(len(runs))), Affine(move.source))
        there = sum((dims[d].start * runs[d].result for d in range(len(runs))), Affine(move.result))
        arrives = sorted(walked, key=lambda d: -abs(runs[d].source))  # as the source lies in memory
        leaves = sorted(walked, key=lambda d: -runs[d].result)
        staged = _strides(arrives, tiles)
        inbound = k.alloc((math.prod(tiles),), dtype, "ub", 2)
        k.load(
            inbound.box(0, *(staged[d] for d in arrives)),
            source.box(here, *(runs[d].source for d in arrives)),
            [dims[d].extent for d in arrives],
        )
        outbound, final = inbound, staged
        if arrives != leaves:
            final = _strides(leaves, tiles)
            outbound = k.alloc((math.prod(tiles),), dtype, "ub", 2)
            k.map(
                "copy",
                outbound.box(0, *(final[d] for d in leaves)),
                inbound.box(0, *(staged[d] for d in leaves)),
                extents=[dims[d].extent for d in leaves],
            )
        k.store(
            output.box(there, *(runs[d].result for d in leaves)),
            outbound.box(0, *(final[d] for d in leaves)),
            [dims[d].extent for d in leaves],
        )


def _strides(order: Sequence[int], tiles: Sequence[int]) -> dict[int, int]:
    """Row-major strides of a tile whose axes lie in `order`."""
    strides: dict[int, int] = {}
    stride = 1
    for d in reversed(order):
        strides[d] = stride
        stride *= tiles[d]
    return strides
