"""The vector body of a kernel: elementwise operators and reductions over the tile of a space.

A *space* is the iteration domain of a kernel with adjacent axes merged; every value of the body covers some of its
dimensions in full and is broadcast along the others. The same code writes a softmax over rows and the epilogue of a
convolution.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from xdsl.ir import SSAValue

from ...dialects import tile
from ...dialects.graph.constants import ELEMENTS, NUMPY, ConstantOp
from ...dialects.graph.op import DTYPE_NAMES, FLOATS, Array, GraphOp, dtype_name, element, shape
from ...dialects.loops import Map, Reduce
from ...dialects.tile import SIZES
from ...dialects.tile.builder import Affine, Box, Buffer, Index, KernelBuilder
from ...dialects.tile.footprint import capacity, footprint
from ...runtime.problem import Kind, UserError
from ...runtime.target import Target

__all__ = ["Body", "Dim", "Machine", "NotTileable", "Region", "first_fitting", "merge_axes"]


MOST_MOVED = 5
"""Dimensions of one move between memories."""


class NotTileable(UserError, ValueError):
    """A kernel has no form on this target: `<rule> (found <what>)`."""

    KIND: ClassVar[Kind] = Kind.OPERATOR
    REMEDY: ClassVar[str] = "export the model without this form of the operator, or take another target or precision"


class DoesNotFit(NotTileable):
    """However a kernel is cut, its buffers do not fit the memories of a core."""

    KIND: ClassVar[Kind] = Kind.MEMORY
    REMEDY: ClassVar[str] = "take smaller shapes or a larger target"


@dataclass(frozen=True)
class Machine:
    """What a kernel is tiled for: the target, the cores that share it, and which of the fitting tilings to take (0: the
    best)."""

    target: Target
    cores: int
    variant: int = 0

    def need_cube(self, dtype: str) -> None:
        """Raises `NotTileable` if the cube cannot multiply elements of `dtype`."""
        if dtype == "f32" and not self.target.cube_cost_f32:
            raise NotTileable("the fp32 policy needs a cube with an fp32 mode (found cube_cost_f32 = 0)")


@dataclass(frozen=True)
class Region:
    """A fused kernel: operand values, the ops in order, the values they yield. Scalar constants are operands of the
    ops.

    views: what re-indexes arguments for the first op; outward: what re-indexes the one result on its way out."""

    arguments: tuple[SSAValue, ...]
    ops: tuple[GraphOp, ...]
    results: tuple[SSAValue, ...]
    views: tuple[GraphOp, ...] = ()
    outward: tuple[GraphOp, ...] = ()

    def chain(self, value: SSAValue) -> tuple[SSAValue, list[GraphOp]]:
        """The argument that a value is a view of, and the views in order."""
        chain: list[GraphOp] = []
        while (maker := next((op for op in self.views if op.results[0] is value), None)) is not None:
            chain.insert(0, maker)
            value = maker.operands[0]
        return value, chain

    def base(self, value: SSAValue) -> SSAValue:
        """The argument that a value is a view of."""
        return self.chain(value)[0]


@dataclass(frozen=True)
class Dim:
    """One dimension of a space: `size` in all, `tile` on chip, the place of the current tile and how much of it is
    there."""

    size: int
    tile: int
    start: Affine = field(default_factory=Affine)
    extent: Index = 0

    @property
    def blocks(self) -> int:
        return -(-self.size // self.tile)


def _scalar(value: SSAValue) -> Array | None:
    """The number, if the value is a constant of one element."""
    owner = value.owner
    return owner.array if isinstance(owner, ConstantOp) and math.prod(shape(value)) == 1 else None


def _parameter(number: float, op: GraphOp) -> Array:
    """A number of a function's own, in the type it computes in."""
    kind = np.dtype(np.float32) if element(op.operands[0]) in FLOATS else NUMPY[element(op.operands[0])]
    if kind.kind in "iu" and number == np.iinfo(kind.name).max:
        kind = np.dtype(np.float32)  # a bound that binds none, nor does it when rounded up
    return np.asarray(number, kind)


def _is_immediate(number: Array) -> bool:
    """Whether an immediate, an f32, holds a number exactly."""
    return float(np.float32(number.item())) == float(number.item())


def merge_axes(
    full: Sequence[int], values: Sequence[SSAValue], reduced: frozenset[int] = frozenset()
) -> list[tuple[int, ...]]:
    """Groups of adjacent axes of `full` along which every value is either whole or broadcast alike; axes of size 1
    vanish.

    `reduced` axes do not merge with others that are kept. Raises `NotTileable` for a value that is neither.
    """
    patterns = {covers(value, full) for value in values}
    groups: list[list[int]] = []
    for ax, size in enumerate(full):
        if size == 1:
            continue
        alike = (
            groups
            and all(p[groups[-1][-1]] == p[ax] for p in patterns)
            and ((groups[-1][-1] in reduced) == (ax in reduced))
        )
        if alike:
            groups[-1].append(ax)
        else:
            groups.append([ax])
    return [tuple(group) for group in groups] or [(len(full) - 1,) if full else ()]


def covers(value: SSAValue, full: Sequence[int]) -> tuple[bool, ...]:
    """Per axis of `full`: whether the value is whole there. Raises `NotTileable` if it is neither whole nor of size
    1."""
    sizes = (1,) * (len(full) - len(shape(value))) + tuple(shape(value))
    if len(sizes) != len(full) or any(s not in (1, f) for s, f in zip(sizes, full, strict=True)):
        raise NotTileable(
            f"every value of a fused kernel broadcasts to its space (found {shape(value)} in {tuple(full)})"
        )
    return tuple(s == f for s, f in zip(sizes, full, strict=True))


def first_fitting(kernels: Iterable[tile.KernelOp], machine: Machine, rule: str) -> tile.KernelOp:
    """The first kernel whose buffers fit the target's memories, or a later one by the machine's variant; raises
    `NotTileable` with `rule` if none does."""
    limits = capacity(machine.target)
    over, chosen, skip = "no tiling was tried", None, machine.variant
    for kernel in kernels:
        sizes = footprint(kernel, machine.target)
        too_large = [
            f"{memory} {sizes[memory]} of {limit} bytes" for memory, limit in limits.items() if sizes[memory] > limit
        ]
        if too_large:
            over = ", ".join(too_large)
            continue
        chosen = kernel
        if skip == 0:
            break
        skip -= 1
    if chosen is None:
        raise DoesNotFit(f"{rule} (found {over})")
    return chosen


@dataclass
class Held:
    """A value on chip: its buffer, and the dimensions it covers."""

    buffer: Buffer
    dims: tuple[int, ...]
    reusable: bool


class Body:
    """Emits a region's ops over the current tile of a space."""

    def __init__(self, k: KernelBuilder, full: Sequence[int], groups: Sequence[tuple[int, ...]], dims: Sequence[Dim]):
        self.k = k
        self.full = tuple(full)
        self.groups = list(groups)
        self.dims = list(dims)
        self.held: dict[SSAValue, Held] = {}
        self._free: list[Held] = []
        self._constants: dict[tuple[int, str], Buffer] = {}

    # values -----------------------------------------------------------------------------------------------------------
    def dims_of(self, value: SSAValue) -> tuple[int, ...]:
        """Dimensions of the space that the value covers in full."""
        whole = covers(value, self.full)
        return tuple(d for d, group in enumerate(self.groups) if group and whole[group[0]] and self.dims[d].size > 1)

    def tile_shape(self, value: SSAValue) -> tuple[int, ...]:
        """Extents of a tile of the value."""
        return tuple(self.dims[d].tile for d in self.dims_of(value)) or (1,)

    def tile_bytes(self, value: SSAValue) -> int:
        """Bytes of a tile of the value."""
        return math.prod(self.tile_shape(value)) * SIZES[dtype_name(value)]

    def extents(self, dims: Sequence[int]) -> list[Index]:
        """How much of the current tile is there, by dimension; 1 for a scalar."""
        return [self.dims[d].extent for d in dims] or [1]

    def global_box(self, buffer: Buffer, value: SSAValue) -> Box:
        """The value's current tile in global memory, where it stands contiguous in row-major order."""
        dims = self.dims_of(value)
        offset, strides, stride = Affine(), [], 1
        for d in reversed(dims):
            offset = offset + self.dims[d].start * stride
            strides.append(stride)
            stride *= self.dims[d].size
        return buffer.box(offset, *(reversed(strides) if strides else [1]))

    def own_box(self, held: Held) -> Box:
        """All of a value on chip."""
        return held.buffer.box(0, *(held.buffer.strides if held.dims else (1,)))

    def alloc(self, value: SSAValue, slots: int = 1) -> Held:
        """A buffer in UB for the value's tile; one of several slots is not used again for other values."""
        buffer = self.k.alloc(self.tile_shape(value), dtype_name(value), "ub", slots)
        return Held(buffer, self.dims_of(value), reusable=slots == 1)

    def load(self, value: SSAValue, source: Buffer, slots: int) -> None:
        """Brings the value's current tile into UB."""
        held = self.alloc(value, slots)
        held.reusable = False
        self.k.load(*self._moved(held, self.own_box(held), self.global_box(source, value)))
        self.held[value] = held

    def store(self, value: SSAValue, target: Buffer) -> None:
        """Takes the value's current tile to global memory."""
        held = self.held[value]
        self.k.store(*self._moved(held, self.global_box(target, value), self.own_box(held)))

    def _moved(self, held: Held, to: Box, of: Box) -> tuple[Box, Box, list[Index]]:
        """A tile's move: its boxes and extents, without dimensions of one position if there are too many to walk."""
        extents = self.extents(held.dims)
        if len(extents) <= MOST_MOVED:
            return to, of, extents
        kept = [i for i, d in enumerate(held.dims) if self.dims[d].tile > 1] or [0]
        boxes = [replace(box, strides=tuple(box.strides[i] for i in kept)) for box in (to, of)]
        return boxes[0], boxes[1], [extents[i] for i in kept]

    def forget_scratch(self) -> None:
        """Buffers made in a loop are not for what follows it."""
        self._free.clear()
        self._constants.clear()

    # ops --------------------------------------------------------------------------------------------------------------
    def emit(self, ops: Sequence[GraphOp], outputs: Sequence[SSAValue], output_slots: int = 2) -> None:
        """Emits ops in order. Buffers of values that are no longer needed are used again; outputs get their own."""
        last: dict[SSAValue, int] = {}
        for position, op in enumerate(ops):
            for operand in op.operands:
                last[operand] = position
        kept = set(outputs)
        for position, op in enumerate(ops):
            (result,) = op.results
            self.k.location = op.location
            dying = [
                self.held[v]
                for v in dict.fromkeys(op.operands)
                if v in self.held and last[v] == position and v not in kept and self.held[v].reusable
            ]
            nest = op.loops()
            in_place = [h for h in dying if isinstance(nest.kernel, Map) and self._fits(h, result)]
            if result in kept:
                target = self.alloc(result, output_slots)
                target.reusable = False
            elif in_place:
                target = in_place[0]
                dying.remove(target)
            else:
                target = next((h for h in self._free if self._fits(h, result)), None) or self.alloc(result)
                self._free = [h for h in self._free if h is not target]
            self._emit_op(op, target)
            self.held[result] = target
            self._free += dying

    def _fits(self, held: Held, value: SSAValue) -> bool:
        return held.dims == self.dims_of(value) and held.buffer.kind.dtype == dtype_name(value)

    def _emit_op(self, op: GraphOp, target: Held) -> None:
        kernel = op.loops().kernel
        if isinstance(kernel, Map):
            self._emit_map(op, kernel, target)
        elif isinstance(kernel, Reduce):
            self._emit_reduce(op, kernel, target)
        else:
            raise NotTileable(f"a vector body has elementwise ops and reductions (found {op.name})")

    def _emit_map(self, op: GraphOp, kernel: Map, target: Held) -> None:
        used = self._axes([target, *(self.held[v] for v in op.operands if v in self.held)])
        given: list[Box | Array] = []
        for position, value in enumerate(op.operands):
            if value in self.held:
                given.append(self._spread(self.held[value], used))
            elif (number := _scalar(value)) is not None:
                given.append(number)
            else:
                raise NotTileable(f"an operand is computed here, or a number (found operand {position} of {op.name})")
        given += [_parameter(number, op) for number in kernel.immediates]
        # A place before that of a box has a box, too, and so has the first.
        boxes = max([0, *(i for i, x in enumerate(given) if isinstance(x, Box) or not _is_immediate(x))])
        nowhere = [0] * max(1, len(used))
        operands = [
            x if isinstance(x, Box) else self._constant(x).box(0, *nowhere) if i <= boxes else float(x.item())
            for i, x in enumerate(given)
        ]
        self.k.map(kernel.fn, self._spread(target, used), *operands, extents=self.extents(used))  # type: ignore[arg-type]

    def _axes(self, helds: Sequence[Held]) -> tuple[int, ...]:
        """Dimensions an instruction must walk; at most three."""
        used = tuple(sorted({d for held in helds for d in held.dims if self.dims[d].tile > 1}))
        if len(used) > 3:
            raise NotTileable(f"a vector instruction walks three dimensions (found {len(used)})")
        return used

    def _spread(self, held: Held, used: Sequence[int]) -> Box:
        strides = dict(zip(held.dims, held.buffer.strides, strict=False))
        return held.buffer.box(0, *([strides.get(d, 0) for d in used] or [1]))

    def _constant(self, number: Array) -> Buffer:
        """A buffer of one element holding a scalar that cannot be an immediate."""
        dtype, array = DTYPE_NAMES[ELEMENTS[number.dtype]], np.ascontiguousarray(number).reshape(1)
        pattern = int(array.view({1: np.uint8, 2: np.uint16, 4: np.uint32}[array.itemsize])[0])
        if (pattern, dtype) not in self._constants:
            buffer = self.k.alloc((1,), dtype, "ub")
            self.k.fill(buffer.box(0, 1), (1,), pattern)
            self._constants[pattern, dtype] = buffer
        return self._constants[pattern, dtype]

    def _emit_reduce(self, op: GraphOp, kernel: Reduce, target: Held) -> None:
        source = self.held[op.operands[0]]
        walked = [d for d in source.dims if self.dims[d].tile > 1]
        reduced = [d for d in walked if d not in target.dims]
        if any(self.dims[d].blocks > 1 for d in source.dims if d not in target.dims):
            raise NotTileable(f"{op.name}: reduced dimensions are whole in a tile (found a part)")
        before, after = walked[:-1], walked[-1:]
        if reduced:  # axes of extent 1 are no dimensions, and may lie anywhere
            before = [d for d in walked if d < reduced[0]]
            after = [d for d in walked if d > reduced[-1]]
        if len(before) > 1 or len(after) > 1 or len(before) + len(reduced) + len(after) < len(walked):
            raise NotTileable(
                f"{op.name}: at most one dimension on each side of the reduced ones (found {len(before)}, {len(after)})"
            )
        # Of what is kept, an instruction takes the inner dimension by vectors, the outer one row by row, each of which
        # pays for the tree over its eight lanes.
        outer, inner = sorted(
            (before[0] if before else None, after[0] if after else None),
            key=lambda d: 1 if d is None else self.dims[d].tile,
        )
        # With nothing between them, reduced dimensions lie in the tile as one.
        three = [outer, reduced[-1] if reduced else None, inner]
        own = dict(zip(source.dims, source.buffer.strides, strict=False))
        out = dict(zip(target.dims, target.buffer.strides, strict=False))
        extents: list[Index] = [1 if d is None else self.dims[d].extent for d in three]
        extents[1] = math.prod(self.dims[d].tile for d in reduced)
        self.k.reduce(
            kernel.fn,
            target.buffer.box(0, *(0 if d is None else out.get(d, 0) for d in three)),
            source.buffer.box(0, *(0 if d is None else own[d] for d in three)),
            extents,
        )
