"""Regions of ops that do not care about the order of axes, and the cheapest order for each (the heart of `layout`).

In a region that takes the order `perm`, each value is what it was, transposed by `perm`. A value that comes in may be
the transpose of another, so that the two cancel; a value that goes out is transposed back, or straight to what a
transpose outside wanted.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.rewriter import Rewriter as IRRewriter

from ..dialects.graph.constants import NUMPY
from ..dialects.graph.elementwise import Elementwise
from ..dialects.graph.op import GraphOp, element, shape
from ..dialects.graph.properties import attribute, integer, ints
from ..dialects.graph.reduce import ReduceLoops
from ..dialects.graph.views import ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp
from .context import CompileContext
from .rewrite import blocks
from .values import array_of, producer, users

Perm = tuple[int, ...]


@dataclass(frozen=True)
class Region:
    """Connected ops of one rank, in the order of the block."""

    ops: tuple[GraphOp, ...]

    @property
    def rank(self) -> int:
        return len(shape(self.ops[0].results[0]))

    def inputs(self) -> list[SSAValue]:
        """Values that come in, each once."""
        inside = set(self.ops)
        return list(dict.fromkeys(v for op in self.ops for v in op.operands if v.owner not in inside))

    def outputs(self) -> Iterator[tuple[SSAValue, list[Operation]]]:
        """Values that go out, with their users outside."""
        inside = set(self.ops)
        for op in self.ops:
            outside = [user for user in users(op.results[0]) if user not in inside]
            if outside:
                yield op.results[0], outside


def permute_regions(ctx: CompileContext, module: ModuleOp) -> int:
    """Gives each region its cheapest order; returns how many changed."""
    changed = 0
    for block in list(blocks(module)):
        for region in find_regions([op for op in block.ops if is_indifferent(op)]):
            perm = cheapest(region, ctx)
            if perm is not None:
                permute(region, perm)
                changed += 1
    return changed


def is_indifferent(op: Operation) -> bool:
    """The op computes the same whatever the order of axes."""
    if not isinstance(op, (Elementwise, ConcatOp, SliceOp, PadOp, ReduceLoops)):
        return False
    if isinstance(op, ReduceLoops) and len(shape(op.x)) != len(shape(op.results[0])):
        return False
    return len(shape(op.results[0])) >= 2


def find_regions(ops: Sequence[Operation]) -> list[Region]:
    """Connected ops of one rank; union-find over the values between them."""
    parent = {op: op for op in ops}

    def root(op: Operation) -> Operation:
        while parent[op] is not op:
            parent[op] = parent[parent[op]]
            op = parent[op]
        return op

    for op in ops:
        rank = len(shape(op.results[0]))
        for operand in op.operands:
            if operand.owner in parent and len(shape(operand)) == rank:
                parent[root(operand.owner)] = root(op)  # pyright: ignore[reportArgumentType]
    groups: dict[Operation, list[GraphOp]] = {}
    for op in ops:
        assert isinstance(op, GraphOp)
        groups.setdefault(root(op), []).append(op)
    return [Region(tuple(group)) for group in groups.values()]


# costs ----------------------------------------------------------------------------------------------------------------
def cheapest(region: Region, ctx: CompileContext) -> Perm | None:
    """The order with the fewest transposed bytes, if it beats leaving the region as it is.

    If an order is as good as staying and undoes a transpose that comes in, it wins: the transpose sinks through the
    region. The region then follows its producer directly, and the transpose may meet another further down. It cannot
    come back.
    """
    stay = tuple(range(region.rank))
    sinking, others = (
        dict.fromkeys(p for p in found if p != stay and _allowed(region, p))
        for found in (_incoming(region), _outgoing(region))
    )
    if not sinking and not others:
        return None
    costs = {perm: cost(region, perm, ctx) for perm in (*sinking, stay, *others)}
    best = min(costs, key=costs.__getitem__)  # the first of equals
    return best if best != stay else None


def _incoming(region: Region) -> Iterator[Perm]:
    """Orders that undo a transpose that comes in."""
    for value in region.inputs():
        transpose = producer(value, TransposeOp)
        if transpose is not None and len(shape(value)) == region.rank:
            yield inverse(ints(transpose.properties, "perm"))


def _outgoing(region: Region) -> Iterator[Perm]:
    """Orders that a transpose outside asks for."""
    for _, outside in region.outputs():
        for user in outside:
            if isinstance(user, TransposeOp):
                yield ints(user.properties, "perm")


def _allowed(region: Region, perm: Perm) -> bool:
    """Reduced axes keep their order among each other, since sums are taken in that order."""
    for op in region.ops:
        if isinstance(op, ReduceLoops):
            places = [perm.index(axis) for axis in ints(op.properties, "axes")]
            if places != sorted(places):
                return False
    return True


def cost(region: Region, perm: Perm, ctx: CompileContext) -> int:
    """Bytes transposed at the border of the region in this order."""
    stay = perm == tuple(range(region.rank))
    inside = set(region.ops)
    total = 0
    for value in region.inputs():
        if array_of(value, ctx) is not None:
            continue
        transpose = producer(value, TransposeOp)
        if transpose is None or len(shape(value)) != region.rank:
            total += _bytes_moved(_aligned(value, region.rank), perm, value)
            continue
        if stay:
            alone = all(user in inside for user in users(value))
            total += _bytes_moved(shape(transpose.x), ints(transpose.properties, "perm"), value) if alone else 0
            continue
        first = ints(transpose.properties, "perm")
        total += _bytes_moved(shape(transpose.x), tuple(first[axis] for axis in perm), value)
    for value, outside in region.outputs():
        wanted = {
            ints(user.properties, "perm") if isinstance(user, TransposeOp) else tuple(range(region.rank))
            for user in outside
        }
        size = tuple(shape(value)[axis] for axis in perm)
        total += sum(_bytes_moved(size, tuple(perm.index(axis) for axis in want), value) for want in wanted)
    return total


def _bytes_moved(source: Sequence[int], perm: Sequence[int], value: SSAValue) -> int:
    """Bytes of a transpose; none for one that is only a reshape."""
    if moves_nothing(perm, source):
        return 0
    return math.prod(source) * NUMPY[element(value)].itemsize


def moves_nothing(perm: Sequence[int], source: Sequence[int]) -> bool:
    """Axes of extent other than 1 keep their order."""
    moved = [axis for axis in perm if source[axis] != 1]
    return moved == sorted(moved)


def inverse(perm: Sequence[int]) -> Perm:
    """The transpose that undoes `perm`."""
    return tuple(perm.index(axis) for axis in range(len(perm)))


def _aligned(value: SSAValue, rank: int) -> tuple[int, ...]:
    """The shape with leading axes of extent 1 up to `rank`, as broadcasting sees it."""
    size = shape(value)
    return (1,) * (rank - len(size)) + size


# rewriting ------------------------------------------------------------------------------------------------------------
def permute(region: Region, perm: Perm) -> None:
    """Rebuilds the region in the order `perm`, with transposes at its border."""
    new: dict[SSAValue, SSAValue] = {}
    for op in region.ops:
        operands = [_operand(value, op, perm, new) for value in op.operands]
        result = op.results[0]
        made = type(op).build_op(operands, _properties(op, perm), element(result))
        made.location = op.location
        IRRewriter.insert_op(made, InsertPoint.before(op))
        made.results[0].name_hint = result.name_hint
        new[result] = made.results[0]
    for value, outside in list(region.outputs()):
        back = _insert(TransposeOp, new[value], {"perm": attribute(inverse(perm))}, value.owner, after=True)
        value.replace_uses_with_if(back, lambda use, outside=outside: use.operation in outside)
    for op in reversed(region.ops):
        op.detach()
        op.erase()


def _operand(value: SSAValue, op: Operation, perm: Perm, new: dict[SSAValue, SSAValue]) -> SSAValue:
    """`value` in the order `perm`, made once."""
    if value not in new:
        size = _aligned(value, len(perm))
        aligned = value
        if len(shape(value)) != len(perm):
            if math.prod(size) == 1:
                return value
            aligned = _insert(ReshapeOp, value, {"shape": attribute(size)}, op)
        new[value] = _insert(TransposeOp, aligned, {"perm": attribute(perm)}, op)
    return new[value]


def _insert(
    kind: type[GraphOp], value: SSAValue, properties: dict[str, Attribute], at: object, after: bool = False
) -> SSAValue:
    assert isinstance(at, Operation)
    made = kind.build_op([value], properties, element(value))
    made.location = at.location
    IRRewriter.insert_op(made, InsertPoint.after(at) if after else InsertPoint.before(at))
    return made.results[0]


def _properties(op: GraphOp, perm: Perm) -> dict[str, Attribute]:
    """The op's properties with axes in the order `perm`."""
    found = dict(op.properties)
    for name in ("starts", "sizes", "steps", "before", "after"):
        if name in found and isinstance(op, (SliceOp, PadOp)):
            values = ints(found, name)
            found[name] = attribute([values[axis] for axis in perm])
    if isinstance(op, ConcatOp):
        found["axis"] = attribute(perm.index(integer(found, "axis")))
    if isinstance(op, ReduceLoops):
        found["axes"] = attribute(sorted(perm.index(axis) for axis in ints(found, "axes")))
    return found
