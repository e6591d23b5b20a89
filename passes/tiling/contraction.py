"""Kernels around the cube: matrix products and 1×1 convolutions, with bias, activation and an elementwise epilogue.

for m, n (in either order):
  for segment of 2048 k:           only when K is longer than one segment
    for k1:  load panels           or, if all of K fits L1, at the loop that the panel depends on
      for k0:  feed a, feed b, mma
    fold
  drain (bias, relu), epilogue in UB, store
"""

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from xdsl.ir import SSAValue

from ...dialects import tile
from ...dialects.graph.contract import Convolution, MatMulOp
from ...dialects.graph.op import GraphOp, dtype_name, shape
from ...dialects.graph.packed import PackedMatMulOp
from ...dialects.loops import Map
from ...dialects.tile import SIZES
from ...dialects.tile.builder import Affine, Box, Buffer, Index, KernelBuilder
from ...runtime.expr import LEVELS
from ...runtime.numerics.functions import FUNCTIONS
from .body import Body, Dim, Machine, NotTileable, Region, first_fitting
from .packed import Scales, packed_arguments
from .product import Matrix, Product, ProductForm, Tiling
from .schedule import SEGMENT, Epilogue
from .space import Spot, flat_arguments, open_tiles, up16


def tile_product(name: str, region: Region, product: Product, machine: Machine) -> tile.KernelOp:
    """The kernel of a matrix product; the best schedule whose buffers fit."""
    target, cores = machine.target, machine.cores
    machine.need_cube(product.dtype)
    found = ProductForm(target, cores, epilogue_of(region), product).schedules()
    return first_fitting(
        (_build(name, region, product, t, cores) for t in found),
        machine,
        "panels and tiles of a product must fit on chip",
    )


def tile_operands(region: Region) -> list[SSAValue]:
    """Arguments that come with each tile of the result."""
    panels = {region.base(v) for v in region.ops[0].operands}
    return [v for v in region.arguments if v not in panels or any(v in op.operands for op in epilogue(region))]


def bias_of(anchor: GraphOp) -> SSAValue | None:
    """The bias of a contraction."""
    return anchor.bias if isinstance(anchor, MatMulOp | PackedMatMulOp | Convolution) else None


def epilogue_of(region: Region) -> Epilogue:
    """What follows the accumulator of a region, in numbers."""
    return numbers_of(region, epilogue(region), (), SIZES[dtype_name(region.ops[0].results[0])])


def numbers_of(region: Region, ops: Sequence[GraphOp], first: Sequence[tuple[int, int]], drained: int) -> Epilogue:
    """What `ops` do with each tile of the first op's result, in numbers: instructions of the vector engine, those of
    `first` before them, and transfers."""
    anchor, maps = region.ops[0], [op.loops().kernel for op in ops]
    vector = tuple(
        (max(SIZES[dtype_name(v)] for v in (op.operands[0], op.results[0])), FUNCTIONS[kernel.fn].passes)
        for op, kernel in zip(ops, maps, strict=True)
        if isinstance(kernel, Map)
    )
    others = tile_operands(region)
    size = math.prod(shape(anchor.results[0]))
    whole = tuple(SIZES[dtype_name(v)] for v in others if math.prod(shape(v)) == size)
    vectors = (4,) * (bias_of(anchor) is not None) + tuple(
        SIZES[dtype_name(v)] for v in others if math.prod(shape(v)) != size
    )
    results = tuple(SIZES[dtype_name(v)] for v in region.results)
    return Epilogue((*first, *vector), whole, vectors, results, drained)


# emission -------------------------------------------------------------------------------------------------------------
def _build(name: str, region: Region, p: Product, t: Tiling, cores: int) -> tile.KernelOp:
    k = KernelBuilder(name)
    anchor = region.ops[0]
    inputs, outputs = flat_arguments(k, region, packed_arguments(anchor))
    buffers = dict(zip(region.arguments, inputs, strict=True))
    finish = Finish(k, region, buffers, outputs, (p.batch * p.m, p.n))
    m_dim, n_dim = Dim(p.m, min(t.m0, p.m), Affine(), p.m), Dim(p.n, min(t.n0, p.n), Affine(), p.n)
    dims = [Dim(p.batch, 1, Affine(), 1), m_dim, n_dim]
    order = [0, 1, 2] if t.m_outer else [0, 2, 1]
    loops = [d for d in order if dims[d].blocks > 1]
    left = Panel(k, buffers[region.base(anchor.operands[0])], p.dtype, p.a, True, bool(t.a_full))
    source = buffers[region.base(anchor.operands[1])]
    right = Panel(k, source, source.kind.dtype, p.w, False, bool(t.w_full))
    operands = [right, left]  # weights load while the kernel before still makes what the left operand is
    scales = Scales.of(k, anchor, buffers)

    def load(spot: Spot) -> None:
        if scales is not None and right.depth(loops) == spot.depth:
            scales.load(dims[2], spot)
        for panel in operands:
            if panel.full and panel.depth(loops) == spot.depth:
                panel.load(dims, Affine(), spot.reached(panel.whole(p.k)), spot.slots, p.k)

    with open_tiles(k, dims, loops, cores, t.parts, load):
        levels = len(loops) + (not loops and cores > 1)
        row = replace(dims[1], start=dims[0].start * p.m + dims[1].start, size=p.batch * p.m)
        finish.place(row, dims[2])
        if region.outward:
            place = dims[0].start * p.c.batch + dims[1].start * p.c.row + dims[2].start + p.c.offset
            finish.target = outputs[0].box(place, p.c.row, 1)
        streamed = [panel for panel in operands if not panel.full]

        def stream(chunk: Chunk) -> None:
            for panel in streamed:
                panel.load(dims, chunk.first, chunk.count, 2, chunk.size)

        step = _Mma(k, p, t, left, right, dims, scales)
        result = contract(k, p.k, t.k0, t.k1, stream if streamed else None, levels, step)
        finish.run(result)
    return k.finish()


@dataclass
class Panel:
    """One operand of the product in L1: rows × K, whole or a chunk of K, the axis inside that is contiguous in global
    memory."""

    k: KernelBuilder
    source: Buffer
    dtype: str
    matrix: Matrix
    left: bool
    full: bool
    box: Box | None = None
    first: Affine = field(default_factory=Affine)

    def depth(self, loops: Sequence[int]) -> int:
        """Innermost of the open loops that the panel depends on."""
        depends = [0] if self.matrix.batch else []
        depends.append(1 if self.left else 2)
        return max((loops.index(d) for d in depends if d in loops), default=-1)

    def whole(self, depth: int) -> int:
        """k in whole bytes."""
        return depth + depth % 2 if self.dtype in tile.HALVES else depth

    def load(self, dims: Sequence[Dim], first: Affine, count: Index, slots: int, depth: int) -> None:
        """Loads k in [first, first + count), at most `depth` long; `dims` are batch, rows of the left, of the right."""
        at, rows = self.matrix, dims[1 if self.left else 2]
        place = dims[0].start * at.batch + rows.start * at.row + first * at.column + at.offset
        if at.column == 1:
            sizes, strides, extents = (rows.tile, up16(depth)), (at.row, 1), (rows.extent, count)
        else:
            sizes, strides, extents = (depth, up16(rows.tile)), (at.column, 1), (count, rows.extent)
        buffer = self.k.alloc(sizes, self.dtype, "l1", slots)
        self.box = buffer.box(0, sizes[1], 1)
        self.k.load(self.box, self.source.box(place, *strides), extents)
        self.first = first

    def at(self, position: Affine) -> Box:
        """The panel from k = position on, as (rows, k) for the left and (k, columns) for the right operand."""
        assert self.box is not None
        pitch, one = self.box.strides
        row, column = (pitch, one) if self.matrix.column == 1 else (one, pitch)
        inside = (position - self.first) * column
        return Box(self.box.buffer, inside, (row, column) if self.left else (column, row))


@dataclass
class _Mma:
    """Feeds and multiplies one k0 step of a matrix product."""

    k: KernelBuilder
    p: Product
    t: Tiling
    left: Panel
    right: Panel
    dims: Sequence[Dim]
    scales: Scales | None = None

    @property
    def dtype(self) -> str:
        return self.p.dtype

    @property
    def shape(self) -> tuple[int, int]:
        return self.t.m0, up16(self.t.n0)

    @property
    def extents(self) -> tuple[Index, Index]:
        return self.dims[1].extent, self.dims[2].extent

    def __call__(self, acc: Buffer, position: Affine, count: Index, init: Index) -> None:
        t, p = self.t, self.p
        m, n = self.extents
        width = self.shape[1]
        a0 = self.k.alloc((t.m0, t.k0), p.dtype, "l0a", 2)
        b0 = self.k.alloc((t.k0, width), p.dtype, "l0b", 2)
        self.k.feed_a(a0[0, 0], self.left.at(position), (m, count))
        if self.scales is None:
            self.k.feed_b(b0[0, 0], self.right.at(position), (count, n))
        else:
            self.scales.feed(b0[0, 0], self.right.at(position), (count, n), position)
        self.k.mma(acc[0, 0], a0[0, 0], b0[0, 0], (m, n, count), init)


class Step(Protocol):
    """Feeds and multiplies one step of k, operands of `dtype`, into an accumulator of `shape`; `extents` are used."""

    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def extents(self) -> tuple[Index, Index]: ...
    def __call__(self, acc: Buffer, position: Affine, count: Index, init: Index) -> None: ...


@dataclass(frozen=True)
class Grid:
    """Chunks of k that begin at multiples of `unit`, and in a unit at multiples of `size`; each ends with its unit."""

    size: int
    unit: int

    @property
    def parts(self) -> int:
        """Chunks of a unit."""
        return -(-self.unit // self.size)

    def at(self, k: KernelBuilder, position: Affine) -> Affine:
        """Number of the chunk that has a position."""
        unit = k.quotient(position, self.unit)
        if self.parts == 1:
            return unit
        return unit * self.parts + k.quotient(position - unit * self.unit, self.size)


@dataclass(frozen=True)
class Chunk:
    """What is loaded at a time: k in [first, first + count), at most `size` long."""

    first: Affine
    count: Index
    size: int
    unit: Affine = field(default_factory=Affine)
    """Of a grid, the number of its unit,"""
    part: Affine = field(default_factory=Affine)
    """its number in that,"""
    start: Affine = field(default_factory=Affine)
    """and where it begins: before `first`, if in the segment before."""


Stream = Callable[[Chunk], None]
"""Loads the panels that come by chunks."""


def contract(
    k: KernelBuilder,
    depth: int,
    k0: int,
    k1: int,
    stream: Stream | None,
    levels: int,
    step: Step,
    grid: Grid | None = None,
    segment: int = SEGMENT,
) -> Buffer:
    """The loops over k inside `levels` open loops; returns the accumulator in L0C. Chunks are those of `grid`, each
    met by the segments that have a part of it, or begin with their segment. `segment`: all of k, where the sum is of no
    segments."""
    sums = "i32" if step.dtype in ("i8", "u8") else "f32"
    if depth <= segment:
        total = k.alloc(step.shape, sums, "l0c", 2)
        k1 = k0 if levels + 2 > LEVELS else k1
        if grid and stream:
            _by_grid(k, depth, None, k0, grid, stream, step, total)
        else:
            _segment(k, depth, Affine(), depth, k0, k1, stream, step, total)
        return total
    # One slot each is enough: while the total drains, the cube sums the next tile's first segment.
    total = k.alloc(step.shape, sums, "l0c", 1)
    k1 = k0 if levels + 3 > LEVELS else k1
    with k.loop(-(-depth // SEGMENT)) as number:
        s = number * SEGMENT
        if sums == "i32":  # exact, so segments are no more than a loop
            _segment(k, depth, s, k.clamp(depth - s, SEGMENT), k0, k1, stream, step, total, carried=True)
            return total
        part = k.alloc(step.shape, sums, "l0c", 1)
        if grid and stream:
            _by_grid(k, depth, s, k0, grid, stream, step, part)
        else:
            _segment(k, depth, s, k.clamp(depth - s, SEGMENT), k0, k1, stream, step, part)
        k.fold(total[0, 0], part[0, 0], step.extents, k.clamp(1 - number, 1))
    return total


def _segment(
    k: KernelBuilder,
    depth: int,
    first: Affine,
    bound: Index,
    k0: int,
    k1: int,
    stream: Stream | None,
    step: Step,
    acc: Buffer,
    carried: bool = False,
) -> None:
    """One segment: chunks of k1 where panels are streamed, in steps of k0. `carried`: on what `acc` holds."""

    def one(inside: Affine) -> None:
        position = first + inside
        begun = position if carried else inside
        step(acc, position, upto(k, depth, position, k0), k.clamp(1 - begun, 1) if begun.terms else 1)

    if stream is None:
        with maybe_loop(k, bound, k0) as inside:
            one(inside)
        return
    chunks: Index = -(-depth // k1)
    if first.terms:  # a segment is whole chunks
        chunks = k.clamp(chunks - Affine(0, tuple((coef // k1, x, y) for coef, x, y in first.terms)), SEGMENT // k1)
    with maybe_loop(k, chunks, 1) as number:
        chunk = number * k1
        count = upto(k, depth, first + chunk, k1)
        stream(Chunk(first + chunk, count, k1))
        with maybe_loop(k, count, k0) as position:
            one(chunk + position)


def _by_grid(
    k: KernelBuilder, depth: int, segment: Affine | None, k0: int, grid: Grid, stream: Stream, step: Step, acc: Buffer
) -> None:
    """One segment, from k = `segment` on, or all of k, by the chunks of a grid that it meets, in steps of k0."""
    head, chunks = Affine(), -(-depth // grid.unit) * grid.parts
    if segment is not None:
        head = grid.at(k, segment)
        last = grid.at(k, k.smaller(segment + SEGMENT, depth) + Affine(-1))
        chunks = last - head + 1
    with maybe_loop(k, chunks, 1) as number:
        chunk = _chunk(k, depth, segment, grid, head + number)
        stream(chunk)
        with maybe_loop(k, chunk.count if grid.size > k0 else 1, k0) as inside:
            position = chunk.first + inside
            if isinstance(chunk.count, int):
                count = upto(k, chunk.count, inside, k0)
            elif chunk.count.limit is None:
                count = k.clamp(chunk.count - inside, k0)
            else:  # whole steps, but for the last
                count = upto(k, depth, position, k0)
            done = position - (segment or Affine())
            step(acc, position, count, k.clamp(1 - done, 1) if done.terms else 1)


def _chunk(k: KernelBuilder, depth: int, segment: Affine | None, grid: Grid, number: Affine) -> Chunk:
    """A chunk of a grid, or what a segment has of it."""
    unit, part, size = number, Affine(), min(grid.size, SEGMENT)
    if grid.parts > 1:
        unit = k.quotient(number, grid.parts)
        part = number - unit * grid.parts
    start = unit * grid.unit + part * grid.size
    if segment is None:
        if grid.parts == 1:
            count = upto(k, depth, start, grid.size)
        else:
            whole = grid.unit % grid.size == 0
            count = grid.size if whole else k.smaller(grid.size, grid.unit - part * grid.size)
        return Chunk(start, count, size, unit, part, start)
    first = k.larger(start, segment)
    end = k.smaller(start + grid.size, segment + SEGMENT)
    if grid.unit % grid.size:
        end = k.smaller(end, (unit + 1) * grid.unit)
    if depth % grid.unit:
        end = k.smaller(end, depth)
    return Chunk(first, end - first, size, unit, part, start)


def upto(k: KernelBuilder, size: int, position: Affine, limit: int) -> Index:
    """min(limit, size − position), a plain number where it is one."""
    if not position.terms:
        return min(limit, size - position.base)
    return limit if size % limit == 0 else k.clamp(size - position, limit)


@contextmanager
def maybe_loop(k: KernelBuilder, bound: Index, step: int) -> Generator[Affine]:
    """A loop, unless it would run once."""
    most = bound if isinstance(bound, int) else bound.limit
    if most is not None and most <= step:
        yield Affine()
        return
    with k.loop(bound, step=step) as index:
        yield index


# after the accumulator ------------------------------------------------------------------------------------------------
def epilogue(region: Region) -> tuple[GraphOp, ...]:
    """The ops after the contraction that are not folded into the drain."""
    ops = region.ops[1:]
    return ops[1:] if ops and drain_activation(region) else ops


def drain_activation(region: Region) -> tuple[str, float, float] | None:
    """relu or clip right after the contraction, if the drain can do it without changing a bit: bounds that the edge's
    type holds."""
    anchor, *rest = region.ops
    value = anchor.results[0]
    if (
        not rest
        or value in region.results
        or sum(use.operation in region.ops for use in value.uses) != 1
        or rest[0].operands[0] is not value
    ):
        return None
    kernel = rest[0].loops().kernel
    if not isinstance(kernel, Map) or dtype_name(rest[0].results[0]) != dtype_name(value):
        return None
    if kernel.fn == "relu":
        return "relu", 0.0, 0.0
    if kernel.fn == "clip" and len(kernel.immediates) == 2:
        lo, hi = kernel.immediates
        exact = dtype_name(value) == "f32" or (float(np.float16(lo)) == lo and float(np.float16(hi)) == hi)
        return ("clip", lo, hi) if exact and dtype_name(value) in ("f16", "f32") else None
    return None


class Finish:
    """Drains a tile of the result, runs the epilogue on it and stores it."""

    def __init__(
        self,
        k: KernelBuilder,
        region: Region,
        buffers: dict[SSAValue, Buffer],
        outputs: Sequence[Buffer],
        size: tuple[int, int],
    ):
        self.k, self.region, self.buffers, self.outputs = k, region, buffers, outputs
        self.target: Box | None = None
        self.anchor = region.ops[0]
        full = shape(self.anchor.results[0])
        lead = tuple(axis for axis in range(len(full) - 1) if full[axis] > 1)
        self.body = Body(k, full, [lead, (len(full) - 1,)], [Dim(size[0], 1), Dim(size[1], 1)])
        self._check_epilogue()

    def _check_epilogue(self) -> None:
        for op in epilogue(self.region):
            for value in (*op.operands, *op.results):
                sizes = shape(value)
                full = self.body.full
                lead = (1,) * (len(full) - len(sizes)) + tuple(sizes)
                if len({s == f for s, f in zip(lead[:-1], full[:-1], strict=True) if f > 1}) > 1:
                    raise NotTileable(
                        f"{op.name}: an operand of an epilogue is whole or broadcast over all rows"
                        f" (found {sizes} in {full})"
                    )

    def place(self, rows: Dim, columns: Dim) -> None:
        """Sets the current tile and loads what the epilogue needs for it."""
        self.body.dims = [rows, columns]
        # Axes of one extent vanish from the space.
        self.body.groups = [
            self.body.groups[0] if rows.size > 1 else (),
            self.body.groups[1] if columns.size > 1 else (),
        ]
        self.bias: Box | None = None
        if (bias := bias_of(self.anchor)) is not None:
            buffer = self.k.alloc((columns.tile,), "f32", "ub", 2)
            self.k.load(buffer[0], self.buffers[bias].box(columns.start, 1), (columns.extent,))
            self.bias = buffer[0]
        for value in tile_operands(self.region):
            self.body.load(value, self.buffers[value], slots=2)

    def run(self, acc: Buffer) -> None:
        """Drain, epilogue, store."""
        rows, columns = self.body.dims
        ops = epilogue(self.region)
        activation = drain_activation(self.region)
        value = self.region.ops[1].results[0] if activation else self.anchor.results[0]
        held = self.body.alloc(value, slots=2)
        held.reusable = bool(ops) and value not in self.region.results
        pitch = columns.tile if self.body.groups[1] else 1
        act, lo, hi = activation or ("none", 0.0, 0.0)
        self.k.drain(
            held.buffer.box(0, pitch, 1),
            acc[0, 0],
            (rows.extent, columns.extent),
            bias=self.bias,
            act=act,
            lo=lo,
            hi=hi,
        )
        self.body.held[value] = held
        self.body.emit(ops, self.region.results)
        for result, buffer in zip(self.region.results, self.outputs, strict=True):
            if self.target is None:
                self.body.store(result, buffer)
            else:
                held = self.body.held[result]
                own = held.buffer.box(0, columns.tile if self.body.groups[1] else 1, 1)
                self.k.store(self.target, own, (rows.extent, columns.extent))
