"""Iteration spaces and the loops over their tiles, common to all forms of kernel."""

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from ...dialects.graph.op import dtype_name, shape
from ...dialects.loops import Reduce
from ...dialects.tile.builder import Affine, Buffer, Index, KernelBuilder
from .body import Dim, Region, merge_axes


@dataclass(frozen=True)
class Space:
    """The merged iteration space of a vector kernel; dimensions in `whole` are reduced and stay in one tile."""

    full: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    whole: frozenset[int]
    reduces: bool
    """Whether an op reduces: its axes may all be of extent 1, and so no dimensions."""


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
    whole = frozenset(d for d, group in enumerate(groups) if group and group[0] in reduced)
    return Space(tuple(full), groups, sizes, whole, bool(reduced))


def balanced(size: int, tile: int) -> int:
    """The smallest tile with as many tiles as `tile` gives: equal tiles instead of full ones and a sliver."""
    return -(-size // -(-size // tile))


def up16(size: int) -> int:
    """The next multiple of 16."""
    return -(-size // 16) * 16


def balanced16(size: int, tile: int) -> int:
    """A balanced tile in blocks of 16."""
    return 16 * balanced(-(-size // 16), max(1, tile // 16))


def flat_arguments(
    k: KernelBuilder, region: Region, packed: Mapping[SSAValue, tuple[int, str]] | None = None
) -> tuple[list[Buffer], list[Buffer]]:
    """Arguments of the kernel: operands, then results, each as one row-major run of elements. `packed`: how many of
    what type some of them hold."""
    kinds = {v: (math.prod(shape(v)), dtype_name(v)) for v in (*region.arguments, *region.results)} | dict(packed or {})
    made = [k.argument((kinds[v][0],), kinds[v][1]) for v in (*region.arguments, *region.results)]
    return made[: len(region.arguments)], made[len(region.arguments) :]


def on_first_core(k: KernelBuilder) -> AbstractContextManager[object]:
    """Opens a loop that only the first core enters: for a single tile, which cannot be shared out."""
    return k.loop(k.clamp(1 - k.core(), 1))


@dataclass(frozen=True)
class Spot:
    """A place in the loops over tiles, where panels may be loaded."""

    depth: int
    """Loops that are open, less one: −1 is outside all of them."""
    slots: int
    """Slots of a buffer: two, unless a core gets here once."""
    k: KernelBuilder
    idle: int
    """Cores without work that get here, from the last."""
    cores: int

    def reached(self, count: int) -> Index:
        """`count` on cores that have work, 0 on the others."""
        return self.k.clamp((self.cores - self.idle - self.k.core()) * count, count) if self.idle else count


@dataclass
class Joined:
    """One loop over the tiles of the first two of some dimensions, where too many loops would nest: a dimension of its
    own, behind the others. The first has tiles of equal size."""

    k: KernelBuilder
    dims: list[Dim]

    def __post_init__(self) -> None:
        self.number = len(self.dims)
        self.inner = self.dims[1].blocks
        blocks = self.dims[0].blocks * self.inner
        self.dims.append(Dim(blocks, 1, Affine(), 1))

    def loops(self, loops: Sequence[int]) -> list[int]:
        """The loops, those over the two being one where the outer of them is."""
        return [self.number if d == 0 else d for d in loops if d != 1]

    def enter(self) -> None:
        """Sets the two dimensions from the loop, inside it."""
        outer, inner = self.dims[:2]
        number = self.dims[self.number].start
        place = self.k.quotient(number, self.inner)
        start = (number - place * self.inner) * inner.tile
        extent = inner.tile if inner.size % inner.tile == 0 else self.k.clamp(inner.size - start, inner.tile)
        self.dims[0] = replace(outer, start=place * outer.tile, extent=outer.tile)
        self.dims[1] = replace(inner, start=start, extent=extent)


@contextmanager
def open_tiles(
    k: KernelBuilder,
    dims: list[Dim],
    loops: Sequence[int],
    cores: int,
    parts: Sequence[int] | None = None,
    at: Callable[[Spot], None] = lambda spot: None,
) -> Generator[None]:
    """Opens the loops over the tiles of some dimensions, shared out over the cores: `parts` of each dimension, or the
    most even grid. A single tile is the first core's. `at` is called in each loop, and first outside all of them."""
    blocks = [dims[d].blocks for d in loops]
    counts = even_parts(blocks, cores) if parts is None else [parts[d] for d in loops]
    assert math.prod(counts) <= cores, f"{counts} parts for {cores} cores"
    assert cores == 1 or not loops or math.prod(counts) > 1, "every core would do everything"
    with ExitStack() as stack:
        if not loops and cores > 1:
            stack.enter_context(on_first_core(k))
        places = _places(k, counts)
        idle = cores - math.prod(counts) if loops else 0
        at(Spot(-1, 1, k, idle, cores))
        for depth, (d, count, place) in enumerate(zip(loops, counts, places, strict=True)):
            stack.enter_context(_open_tile(k, dims, d, count, place))
            once = all(n <= count for n, count in zip(blocks[: depth + 1], counts, strict=False))
            idle = 0 if count > 1 else idle  # they do not enter a loop that is shared out
            at(Spot(depth, 1 if once else 2, k, idle, cores))
        yield


def _places(k: KernelBuilder, counts: Sequence[int]) -> list[Affine]:
    """Which part of each loop is the core's; those beyond the last are empty."""
    shared = [depth for depth, count in enumerate(counts) if count > 1]
    cells = k.grid(*(counts[depth] for depth in shared[1:])) if len(shared) > 1 else [k.core()] if shared else []
    found = dict(zip(shared, cells, strict=True))
    return [found.get(depth, Affine()) for depth in range(len(counts))]


def even_parts(blocks: Sequence[int], cores: int) -> tuple[int, ...]:
    """Parts of nested loops of so many tiles: the grid whose busiest core has the fewest, of outer loops rather than of
    inner ones."""
    if not blocks:
        return ()
    found: list[tuple[int, ...]] = []
    for count in sorted({cores // n for n in range(1, cores + 1)}, reverse=True):
        chunk = -(-blocks[0] // count)
        count = -(-blocks[0] // chunk)
        found.append((count, *even_parts(blocks[1:], cores // count)))
    return min(found, key=lambda parts: math.prod(-(-n // p) for n, p in zip(blocks, parts, strict=True)))


@contextmanager
def _open_tile(k: KernelBuilder, dims: list[Dim], d: int, parts: int, place: Affine) -> Generator[None]:
    """Opens the loop over the tiles of dimension d in the core's part, and sets its place and extent."""
    dim = dims[d]
    chunk = -(-dim.blocks // parts) * dim.tile
    first = place * chunk if parts > 1 else Affine()
    bound = k.clamp(dim.size - first, chunk) if parts > 1 else dim.size
    with k.loop(bound, step=dim.tile) as index:
        start = first + index
        extent = dim.tile if dim.size % dim.tile == 0 else k.clamp(dim.size - start, dim.tile)
        dims[d] = replace(dim, start=start, extent=extent)
        yield
    dims[d] = dim
