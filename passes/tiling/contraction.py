"""Kernels around the cube: matrix products and 1×1 convolutions, with bias, activation and an elementwise epilogue.

for m, n (in either order):
  for segment of 2048 k:           only when K is longer than one segment
    for k1:  load panels           or, if all of K fits L1, at the loop that the panel depends on
      for k0:  feed a, feed b, mma
    fold
  drain (bias, relu), epilogue in UB, store
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from xdsl.ir import SSAValue

from ...dialects import tile
from ...dialects.graph.op import GraphOp, dtype_name, shape
from ...dialects.loops import Map
from ...dialects.tile import SIZES
from ...dialects.tile.builder import Affine, Box, Buffer, Index, KernelBuilder
from ...runtime.expr import LEVELS
from ...runtime.numerics.functions import FUNCTIONS
from ...runtime.target import Target
from .body import Body, Dim, Machine, NotTileable, Region, first_fitting
from .space import balanced, flat_arguments, on_first_core, open_tile

SEGMENT = 2048
"""k positions whose products are summed before the sums are added (docs/numerics.md §5)."""


@dataclass(frozen=True)
class Product:
    """c[b, m, n] = Σ a[b, m, k]·w[b, k, n]: sizes; `shared`: w has no batch; `transposed`: w is stored [n, k]."""

    batch: int
    m: int
    n: int
    k: int
    shared: bool
    transposed: bool
    dtype: str

    @property
    def esize(self) -> int:
        return SIZES[self.dtype]


@dataclass(frozen=True)
class Tiling:
    """Tile sizes and the place of each panel: `a_full`, `w_full` (all of K, at the loop it depends on) or by k1."""

    m0: int
    n0: int
    k0: int
    k1: int
    m_outer: bool
    a_full: bool
    w_full: bool


def tile_product(name: str, region: Region, product: Product, machine: Machine) -> tile.KernelOp:
    """The kernel of a matrix product; the best tiling by estimate whose buffers fit."""
    target, cores = machine.target, machine.cores
    machine.need_cube(product.dtype)
    extra = epilogue_cost(region, target)
    fitting = (t for t in _tilings(product, target) if l1_need(product, t) <= target.l1_bytes)
    ranked = sorted(fitting, key=lambda t: estimate(product, t, target, cores, extra))
    return first_fitting(
        (_build(name, region, product, t, cores) for t in ranked),
        machine,
        "panels and tiles of a product must fit on chip",
    )


def _tilings(p: Product, target: Target) -> Iterator[Tiling]:
    """Tile sizes whose L0 tiles fit twice."""
    for m in (256, 128, 64, 32, 16):
        for n in (256, 128, 64, 32, 16):
            m0, n0 = balanced16(p.m, m), balanced16(p.n, n)
            if (m > 16 and m >= 2 * m0) or (n > 16 and n >= 2 * n0) or 4 * m0 * n0 > target.l0c_bytes:
                continue
            for k in (512, 256, 128, 64, 32, 16):
                k0 = balanced16(min(p.k, SEGMENT), k) if p.k <= SEGMENT else k
                if (
                    (k > 16 and k >= 2 * k0)
                    or 2 * m0 * k0 * p.esize > target.l0a_bytes
                    or 2 * n0 * k0 * p.esize > target.l0b_bytes
                ):
                    continue
                chunk = _chunk(m0 + n0, p, target)
                k1 = k0 * max(1, min(chunk, p.k) // k0) if p.k <= SEGMENT else max(chunk, k0)
                for m_outer in (True, False):
                    for a_full, w_full in ((True, True), (True, False), (False, True), (False, False)):
                        yield Tiling(m0, n0, k0, k1, m_outer, a_full, w_full)


def _chunk(rows: int, p: Product, target: Target) -> int:
    """k positions of a chunk: 512, halved until two chunks of `rows` rows fit L1."""
    chunk = 512
    while chunk > 16 and 2 * rows * chunk * p.esize > target.l1_bytes:
        chunk //= 2
    return chunk


def l1_need(p: Product, t: Tiling) -> int:
    """Bytes of the panels in L1: twice, unless the loop they depend on runs once."""
    single = p.batch == 1
    a = t.m0 * (p.k if t.a_full else t.k1) * (1 if t.a_full and single and t.m0 >= p.m else 2)
    w = t.n0 * (p.k if t.w_full else t.k1) * (1 if t.w_full and (single or p.shared) and t.n0 >= p.n else 2)
    return (a + w) * p.esize


def balanced16(size: int, tile_size: int) -> int:
    """A balanced tile in blocks of 16."""
    return 16 * balanced(-(-size // 16), max(1, tile_size // 16))


def epilogue_cost(region: Region, target: Target) -> float:
    """Vector cycles per element of the result."""
    passes = [FUNCTIONS[op.loops().kernel.fn].passes for op in epilogue(region) if isinstance(op.loops().kernel, Map)]  # type: ignore[union-attr]
    return sum(passes) * 2 / target.vector_bytes


def estimate(p: Product, t: Tiling, target: Target, cores: int, extra: float) -> float:
    """Cycles of the busiest core: the busiest engine, plus filling and emptying the pipeline."""
    nm, nn, nk = -(-p.m // t.m0), -(-p.n // t.n0), -(-p.k // t.k0)
    outer = p.batch if p.batch > 1 else nm if t.m_outer else nn
    share = -(-outer // cores) / outer
    tiles = p.batch * nm * nn * share
    block_k = target.cube_k_f32 if p.dtype == "f32" else target.cube_k_f16
    cost = target.cube_cost_f32 if p.dtype == "f32" else 1
    cube = tiles * (
        -(-t.m0 // target.cube_m) * -(-t.n0 // target.cube_n) * -(-p.k // block_k) * cost + nk * target.fixed_mma
    )
    feed = tiles * (
        p.k * p.esize * (t.m0 / target.feed_a_bytes + t.n0 / target.feed_b_bytes) + 2 * nk * target.fixed_feed
    )
    a_times = 1 if (t.a_full and (t.m_outer or nm == 1)) or nn == 1 else nn
    w_times = 1 if (t.w_full and (not t.m_outer or nn == 1)) or nm == 1 else nm
    loads = (
        p.batch
        * share
        * (a_times * nm * (1 if t.a_full else -(-p.k // t.k1)) + w_times * nn * (1 if t.w_full else -(-p.k // t.k1)))
    )
    bandwidth = min(target.gm_path, target.gm_port / cores)
    w_batches = 1 if p.shared else p.batch
    load = (
        a_times * p.batch * p.m + w_times * w_batches * p.n
    ) * p.k * p.esize * share / bandwidth + loads * target.fixed_load
    area = t.m0 * t.n0
    drain = tiles * (area / target.drain_elements + target.fixed_drain)
    vector = tiles * (area * extra + target.fixed_vector)
    store = tiles * (area * p.esize / bandwidth + target.fixed_store)
    first = (t.m0 + t.n0) * min(p.k, p.k if t.a_full or t.w_full else t.k1) * p.esize / bandwidth
    last = (drain + vector + store) / tiles
    return max(cube, feed, load + store, drain, vector) + first + last


# emission -------------------------------------------------------------------------------------------------------------
def _build(name: str, region: Region, p: Product, t: Tiling, cores: int) -> tile.KernelOp:
    k = KernelBuilder(name)
    anchor = region.ops[0]
    inputs, outputs = flat_arguments(k, region)
    buffers = dict(zip(region.arguments, inputs, strict=True))
    finish = Finish(k, region, buffers, outputs, (p.batch * p.m, p.n))
    m_dim, n_dim = Dim(p.m, min(t.m0, p.m), Affine(), p.m), Dim(p.n, min(t.n0, p.n), Affine(), p.n)
    dims = [Dim(p.batch, 1, Affine(), 1), m_dim, n_dim]
    order = [0, 1, 2] if t.m_outer else [0, 2, 1]
    loops = [d for d in order if dims[d].blocks > 1]
    operands = [
        Panel(k, buffers[anchor.operands[0]], p, t, left=True),
        Panel(k, buffers[anchor.operands[1]], p, t, left=False),
    ]
    with ExitStack() as stack:
        if not loops and cores > 1:
            stack.enter_context(on_first_core(k))
        for depth in range(-1, len(loops)):
            if depth >= 0:
                stack.enter_context(open_tile(k, dims, loops[depth], cores if depth == 0 else 1))
            for panel in operands:
                if panel.full and panel.depth(loops) == depth:
                    panel.load(dims, Affine(), p.k, 2 if depth >= 0 else 1, p.k)
        levels = len(loops) + (not loops and cores > 1)
        row = replace(dims[1], start=dims[0].start * p.m + dims[1].start, size=p.batch * p.m)
        finish.place(row, dims[2])
        streamed = [panel for panel in operands if not panel.full]

        def stream(first: Affine, count: Index, chunk: int) -> None:
            for panel in streamed:
                panel.load(dims, first, count, 2, chunk)

        result = contract(k, p.k, t.k0, t.k1, stream if streamed else None, levels, _Mma(k, p, t, operands, dims))
        finish.run(result)
    return k.finish()


@dataclass
class Panel:
    """One operand of the product in L1: rows × K (or K × columns), whole or a chunk of K."""

    k: KernelBuilder
    source: Buffer
    p: Product
    t: Tiling
    left: bool
    box: Box | None = None
    first: Affine = field(default_factory=Affine)

    @property
    def full(self) -> bool:
        return self.t.a_full if self.left else self.t.w_full

    def depth(self, loops: Sequence[int]) -> int:
        """Innermost of the open loops that the panel depends on."""
        depends = [0] if self.left or not self.p.shared else []
        depends.append(1 if self.left else 2)
        return max((loops.index(d) for d in depends if d in loops), default=-1)

    def load(self, dims: Sequence[Dim], first: Affine, count: Index, slots: int, depth: int) -> None:
        """Loads k in [first, first + count), at most `depth` long."""
        p, rows = self.p, self.left or self.p.transposed
        pitch = -(-depth // 16) * 16
        dim = dims[1 if self.left else 2]
        batch = dims[0].start * (p.m if self.left else p.n) * p.k if self.left or not p.shared else Affine()
        if rows:
            buffer = self.k.alloc((dim.tile, pitch), p.dtype, "l1", slots)
            source = self.source.box(batch + dim.start * p.k + first, p.k, 1)
            self.k.load(buffer.box(0, pitch, 1), source, (dim.extent, count))
            self.box = buffer.box(0, pitch, 1)
        else:
            width = -(-dim.tile // 16) * 16
            buffer = self.k.alloc((depth, width), p.dtype, "l1", slots)
            self.k.load(
                buffer.box(0, width, 1), self.source.box(batch + first * p.n + dim.start, p.n, 1), (count, dim.extent)
            )
            self.box = buffer.box(0, width, 1)
        self.first = first

    def at(self, position: Affine) -> Box:
        """The panel from k = position on, as (rows, k) for the left and (k, columns) for the right operand."""
        assert self.box is not None
        inside = position - self.first
        pitch, one = self.box.strides
        if self.left:
            return Box(self.box.buffer, inside, (pitch, one))
        return (
            Box(self.box.buffer, inside, (one, pitch))
            if self.p.transposed
            else Box(self.box.buffer, inside * pitch, (pitch, one))
        )


@dataclass
class _Mma:
    """Feeds and multiplies one k0 step of a matrix product."""

    k: KernelBuilder
    p: Product
    t: Tiling
    operands: Sequence[Panel]
    dims: Sequence[Dim]

    @property
    def dtype(self) -> str:
        return self.p.dtype

    @property
    def shape(self) -> tuple[int, int]:
        return self.t.m0, -(-self.t.n0 // 16) * 16

    @property
    def extents(self) -> tuple[Index, Index]:
        return self.dims[1].extent, self.dims[2].extent

    def __call__(self, acc: Buffer, position: Affine, count: Index, init: Index) -> None:
        t, p = self.t, self.p
        m, n = self.extents
        width = self.shape[1]
        a0 = self.k.alloc((t.m0, t.k0), p.dtype, "l0a", 2)
        b0 = self.k.alloc((t.k0, width), p.dtype, "l0b", 2)
        self.k.feed_a(a0[0, 0], self.operands[0].at(position), (m, count))
        self.k.feed_b(b0[0, 0], self.operands[1].at(position), (count, n))
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


Stream = Callable[[Affine, Index, int], None]
"""Loads the panels that come by chunks: k in [first, first + count), at most `chunk` long."""


def contract(k: KernelBuilder, depth: int, k0: int, k1: int, stream: Stream | None, levels: int, step: Step) -> Buffer:
    """The loops over k inside `levels` open loops; returns the accumulator in L0C."""
    sums = "i32" if step.dtype in ("i8", "u8") else "f32"
    total = k.alloc(step.shape, sums, "l0c", 2)
    if depth <= SEGMENT:
        k1 = k0 if levels + 2 > LEVELS else k1
        _segment(k, depth, Affine(), depth, k0, k1, stream, step, total)
        return total
    k1 = k0 if levels + 3 > LEVELS else k1
    with k.loop(depth, step=SEGMENT) as s:
        part = k.alloc(step.shape, sums, "l0c", 2)
        _segment(k, depth, s, k.clamp(depth - s, SEGMENT), k0, k1, stream, step, part)
        k.fold(total[0, 0], part[0, 0], step.extents, k.clamp(1 - s, 1))
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
) -> None:
    """One segment: chunks of k1 where panels are streamed, in steps of k0."""

    def one(inside: Affine) -> None:
        position = first + inside
        step(acc, position, upto(k, depth, position, k0), k.clamp(1 - inside, 1) if inside.terms else 1)

    if stream is None:
        with maybe_loop(k, bound, k0) as inside:
            one(inside)
        return
    with maybe_loop(k, bound, k1) as chunk:
        count = upto(k, depth, first + chunk, k1)
        stream(first + chunk, count, k1)
        with maybe_loop(k, count, k0) as position:
            one(chunk + position)


def upto(k: KernelBuilder, size: int, position: Affine, limit: int) -> Index:
    """min(limit, size − position), a plain number where it is one."""
    if not position.terms:
        return min(limit, size - position.base)
    return limit if size % limit == 0 else k.clamp(size - position, limit)


@contextmanager
def maybe_loop(k: KernelBuilder, bound: Index, step: int) -> Generator[Affine]:
    """A loop, unless it would run once."""
    if isinstance(bound, int) and bound <= step:
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
        if len(self.anchor.operands) > 2:
            buffer = self.k.alloc((columns.tile,), "f32", "ub", 2)
            self.k.load(buffer[0], self.buffers[self.anchor.operands[2]].box(columns.start, 1), (columns.extent,))
            self.bias = buffer[0]
        for value in self.region.arguments:
            if value not in self.anchor.operands or any(value in op.operands for op in epilogue(self.region)):
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
            self.body.store(result, buffer)
