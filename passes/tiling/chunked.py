"""Rows that do not fit UB: a vector kernel with reductions walks each row in chunks, once for every reduction and once
for its results.

    for rows:
      for chunk: load, compute what the first reduction takes, reduce into lanes (carried from chunk to chunk)
      what depends on the reductions alone
      for chunk: load, compute what the second reduction takes, reduce …
      for chunk: load, compute the results, store

A value that covers the row is computed again in each pass that needs it. An element's lane is that of its place in the
whole row, which may run over several dimensions (docs/numerics.md §6).
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

from xdsl.ir import SSAValue

from ...dialects import tile
from ...dialects.graph.op import GraphOp, dtype_name
from ...dialects.loops import Reduce
from ...dialects.tile.builder import Affine, Buffer, KernelBuilder
from ...runtime.expr import LEVELS
from .body import Body, Dim, Held, Machine, NotTileable, Region, first_fitting
from .space import Space, flat_arguments, open_tiles

LANES = 8


def tile_in_chunks(name: str, region: Region, space: Space, machine: Machine) -> tile.KernelOp:
    """The kernel of row-wise ops whose rows are cut along the last reduced dimension, and taken one by one along the
    others."""
    row = max(space.whole)
    kept = sum(size > 1 for d, size in enumerate(space.sizes) if d not in space.whole)
    if kept + len(space.whole) > LEVELS:
        raise NotTileable(f"at most {LEVELS} loops are nested (found {kept + len(space.whole)})")
    kernels = (_build(name, region, space, tiles, machine.cores) for tiles in _candidates(space, row))
    return first_fitting(kernels, machine, "a chunk of a row of every value must fit UB together")


def _candidates(space: Space, row: int) -> Iterator[tuple[int, ...]]:
    """One row of everything else, and ever shorter chunks; a few rows at a time would share nothing."""
    if len(space.whole) > 1:
        yield tuple(size if d == row else 1 for d, size in enumerate(space.sizes))
    chunk = -(-space.sizes[row] // LANES) * LANES
    while chunk > LANES:
        chunk = -(-chunk // (2 * LANES)) * LANES
        yield tuple(chunk if d == row else 1 for d in range(len(space.sizes)))


class _Chunked:
    """One kernel being written: values of the current rows that do not cover the row are held throughout."""

    def __init__(self, body: Body, region: Region, sources: dict[SSAValue, Buffer], whole: frozenset[int]):
        self.body, self.k, self.region, self.sources, self.whole = body, body.k, region, sources, sorted(whole)
        self.row = self.whole[-1]
        self.chunk = body.dims[self.row].tile
        self.size = math.prod(body.dims[d].size for d in self.whole)
        self.producers: dict[SSAValue, GraphOp] = {op.results[0]: op for op in region.ops}

    def covers_row(self, value: SSAValue) -> bool:
        return any(d in self.whole for d in self.body.dims_of(value))

    def run(self, targets: dict[SSAValue, Buffer]) -> None:
        """All passes over the current rows."""
        for value, source in self.sources.items():
            if not self.covers_row(value):
                self.body.load(value, source, slots=2)
        for op in self.region.ops:
            (result,) = op.results
            if isinstance(op.loops().kernel, Reduce) and self.covers_row(op.operands[0]):
                self.reduce(op)
            elif not self.covers_row(result) and all(
                v in self.body.held or v not in self.producers for v in op.operands
            ):
                self.body.emit([op], [result], output_slots=2 if result in targets else 1)
        for value, target in targets.items():
            if not self.covers_row(value):
                self.body.store(value, target)
        long = {value: target for value, target in targets.items() if self.covers_row(value)}
        if long:
            with ExitStack() as stack:
                self.open(stack)
                self.body.emit(self.needed(long), list(long))
                for value, target in long.items():
                    self.body.store(value, target)

    def open(self, stack: ExitStack) -> Affine:
        """Opens the loops over the chunks of a row and returns a chunk's place in it; what is computed inside is
        forgotten behind it."""
        body, place = self.body, Affine()
        stack.callback(self._close, dict(body.held), list(body.dims))
        for d in self.whole:
            dim = body.dims[d]
            if dim.size == 1 and d != self.row:
                continue
            index = stack.enter_context(self.k.loop(dim.size, step=dim.tile))
            extent = dim.tile if dim.size % dim.tile == 0 else self.k.clamp(dim.size - index, dim.tile)
            body.dims[d] = replace(dim, start=index, extent=extent)
            place = place * dim.size + index
        body.forget_scratch()
        return place

    def _close(self, saved: dict[SSAValue, Held], dims: list[Dim]) -> None:
        self.body.held = saved
        self.body.dims = dims
        self.body.forget_scratch()

    def needed(self, values: Sequence[SSAValue] | dict[SSAValue, Buffer]) -> list[GraphOp]:
        """Loads what the values depend on, and returns the ops to compute them, in order."""
        wanted, pending = set[GraphOp](), list(values)
        while pending:
            value = pending.pop()
            if value in self.body.held:
                continue
            if value in self.sources:
                self.body.load(value, self.sources[value], slots=2)
            elif (op := self.producers.get(value)) is not None and op not in wanted:
                wanted.add(op)
                pending += op.operands
        return [op for op in self.region.ops if op in wanted]

    def reduce(self, op: GraphOp) -> None:
        """One pass that ends in a reduction."""
        (operand,), (result,) = op.operands, op.results
        kept = self.body.alloc(result)
        kept.reusable = False
        lanes = self.k.alloc((LANES,), "i32" if dtype_name(operand) in ("i32", "i8", "u8") else "f32", "ub")
        kernel = op.loops().kernel
        assert isinstance(kernel, Reduce)
        if self.row not in self.body.dims_of(operand):
            raise NotTileable(f"{op.name}: a reduction that is cut runs over the last reduced dimension (found others)")
        with ExitStack() as stack:
            index = self.open(stack)
            self.body.emit(self.needed([operand]), [operand], output_slots=1)
            self.k.location = op.location
            last = self.k.clamp(index + (self.chunk - self.size + 1), 1)
            source = self.body.held[operand].buffer
            extents = (1, self.body.dims[self.row].extent, 1)
            first = self.k.clamp(1 - index, 1)
            self.k.reduce(
                kernel.fn, kept.buffer.box(0, 0, 0, 0), source.box(0, 0, 1, 0), extents,
                state=lanes.box(0, 1), start=index, first=first, last=last,
            )  # fmt: skip
        self.body.held[result] = kept


def _build(name: str, region: Region, space: Space, tiles: Sequence[int], cores: int) -> tile.KernelOp:
    k = KernelBuilder(name)
    inputs, outputs = flat_arguments(k, region)
    dims = [Dim(size, tile_size, Affine(), size) for size, tile_size in zip(space.sizes, tiles, strict=True)]
    body = Body(k, space.full, space.groups, dims)
    loops = [d for d, size in enumerate(space.sizes) if d not in space.whole and size > 1]
    with open_tiles(k, body.dims, loops, cores):
        sources = dict(zip(region.arguments, inputs, strict=True))
        _Chunked(body, region, sources, space.whole).run(dict(zip(region.results, outputs, strict=True)))
    return k.finish()
