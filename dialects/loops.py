"""A loop nest as data: what an operator does, independent of any machine. Fusion, tiling and cost read it; nothing else
defines them.

A nest runs over `bounds`. Each operand is read, and the result written, at an index that is affine in the loop
indices:

    matmul [m,k]·[k,n]   bounds (m, n, k)   a: (d0, d2)  b: (d2, d1)   out: (d0, d1)   MultiplyAdd
    add x[b,s,c] + y[c]  bounds (b, s, c)   x: (d0, d1, d2)  y: (d2)   out: (d0, d1, d2)   Map("add")
    sum over the last    bounds (r, c)      x: (d0, d1)   out: (d0, 0)   Reduce("sum")
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Axis:
    """Index along one tensor axis: ⌊(Σ coef·d[dim] + offset) / per⌋. No terms: the axis is broadcast, at `offset`."""

    terms: tuple[tuple[int, int], ...] = ()
    """Pairs (dim, coef)."""
    offset: int = 0
    per: int = 1
    """Places of the loops that share an element: a byte of packed integers, a scale of a block."""

    @property
    def dim(self) -> int | None:
        """The loop dimension if the index is exactly that dimension."""
        alone = len(self.terms) == 1 and self.terms[0][1] == 1 and self.offset == 0 and self.per == 1
        return self.terms[0][0] if alone else None


IndexMap = tuple[Axis, ...]


def axis(dim: int, coef: int = 1, offset: int = 0) -> Axis:
    """The index coef·d[dim] + offset."""
    return Axis(((dim, coef),), offset)


def identity(rank: int) -> IndexMap:
    """Each axis at its own dimension."""
    return tuple(axis(dim) for dim in range(rank))


def broadcast(shape: Sequence[int], bounds: Sequence[int]) -> IndexMap:
    """Map of an operand of `shape` under numpy broadcasting to `bounds`."""
    first = len(bounds) - len(shape)
    return tuple(axis(first + i) if size == bounds[first + i] and size != 1 else Axis() for i, size in enumerate(shape))


@dataclass(frozen=True, slots=True)
class Map:
    """Elementwise: `fn` of `runtime.numerics.functions`; `immediates` are trailing operands that are constants."""

    fn: str
    immediates: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Reduce:
    """`sum`, `max`, `min` or `prod` over the dimensions that the output map does not use (docs/numerics.md §6)."""

    fn: str


@dataclass(frozen=True, slots=True)
class MultiplyAdd:
    """a·b summed over the dimensions that the output map does not use, then bias (a third operand), in f32
    (docs/numerics.md §5)."""

    depthwise: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """`mean`, `sum` or `max` over taps of a window in the order of the nest (docs/numerics.md §6, pooling)."""

    fn: str
    count_include_pad: bool = False


Kernel = Map | Reduce | MultiplyAdd | Window


@dataclass(frozen=True, slots=True)
class LoopNest:
    """One operator. A position that a map puts outside its input (padding) reads the kernel's neutral value."""

    bounds: tuple[int, ...]
    inputs: tuple[IndexMap, ...]
    output: IndexMap
    kernel: Kernel

    @property
    def reduced(self) -> tuple[int, ...]:
        """Dimensions that do not appear in the output."""
        used = {dim for ax in self.output for dim, _ in ax.terms}
        return tuple(dim for dim in range(len(self.bounds)) if dim not in used)
