"""Which ops form one kernel (the heart of `fuse`)."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from ..dialects.graph.constants import ConstantOp
from ..dialects.graph.elementwise import Elementwise
from ..dialects.graph.op import GraphOp, shape
from ..dialects.graph.properties import ints
from ..dialects.graph.reduce import ReduceLoops
from ..dialects.graph.views import PadOp, ReshapeOp
from ..dialects.loops import MultiplyAdd, Window
from .context import CompileContext
from .fuse_views import Absorbed, outward_views
from .values import users

MOST_OPS = 64
"""Ops of one kernel; it bounds the search, real kernels have far fewer."""
MOST_TENSORS = 24
"""Operands and results of one kernel: a launch has registers for few more arguments, and coordinates take some."""


@dataclass(eq=False)
class Group:
    """Ops that become one kernel, in the order of the block."""

    ops: list[GraphOp]


@dataclass
class Grouping:
    """The ops of a block, where they stand, and the groups so far."""

    ctx: CompileContext
    ops: list[GraphOp]
    position: dict[Operation, int]
    absorbed: Absorbed
    groups: list[Group] = field(default_factory=list[Group])
    group: dict[Operation, Group] = field(default_factory=dict[Operation, Group])

    @staticmethod
    def of(block: Block, ctx: CompileContext, absorbed: Absorbed) -> "Grouping":
        """No groups yet."""
        everything = list(block.ops)
        ops = [op for op in everything if isinstance(op, GraphOp) and not isinstance(op, ReshapeOp)]
        return Grouping(ctx, ops, {op: index for index, op in enumerate(everything)}, absorbed)

    def is_open(self, op: object) -> bool:
        """An op of the block that no group has."""
        return (
            isinstance(op, GraphOp) and op in self.position and op not in self.group and not isinstance(op, ReshapeOp)
        )

    def add(self, ops: Sequence[GraphOp]) -> None:
        """Makes a group of them."""
        group = Group(sorted(ops, key=self.position.__getitem__))
        self.groups.append(group)
        self.group |= dict.fromkeys(group.ops, group)

    def depends(self, value: SSAValue, inside: set[Operation]) -> bool:
        """`value`, made outside, needs something made by `inside`. A group needs all that any of its ops needs."""
        first = min(self.position[op] for op in inside)
        seen: set[Operation] = set()
        stack = [value.owner]
        while stack:
            op = stack.pop()
            if not isinstance(op, Operation) or op in seen:
                continue
            if op in inside:
                return True
            seen.add(op)
            group = self.group.get(op)
            members: Sequence[Operation] = group.ops if group is not None else (op,)
            if max(self.position.get(member, -1) for member in members) < first:
                continue
            seen.update(members)
            stack += [
                operand.owner for member in members for operand in member.operands if operand.owner not in members
            ]
        return False


Fits = Callable[[GraphOp, set[Operation]], bool]
"""Whether an op may join the ops that are inside."""


def alone(grouping: Grouping) -> None:
    """A group of its own for each op that has none."""
    for op in grouping.ops:
        if op not in grouping.group:
            grouping.add([op])
    grouping.groups.sort(key=lambda group: grouping.position[group.ops[-1]])


def grow(seed: GraphOp, grouping: Grouping, fits: Fits) -> Iterator[list[GraphOp]]:
    """Adds users of the group, nearest first, while they fit; yields the ops after each step."""
    inside: set[Operation] = {seed}
    ops = [seed]
    yield ops
    queue: list[tuple[int, GraphOp]] = []
    _push_users(seed, grouping, queue)
    while queue and len(ops) < MOST_OPS:
        _, op = heapq.heappop(queue)
        if op in inside or not fits(op, inside):
            continue
        if any(v.owner not in inside and grouping.depends(v, inside) for v in op.operands):
            continue
        if tensors([*ops, op]) > MOST_TENSORS:
            continue
        inside.add(op)
        ops.append(op)
        _push_users(op, grouping, queue)
        yield ops


def _push_users(op: GraphOp, grouping: Grouping, queue: list[tuple[int, GraphOp]]) -> None:
    for user in users(op.results[0]):
        if grouping.is_open(user):
            entry = (grouping.position[user], user)
            if entry not in queue:
                heapq.heappush(queue, entry)  # pyright: ignore[reportArgumentType]


def tensors(ops: Sequence[GraphOp]) -> int:
    """Operands of a kernel of these ops, without constant numbers, and results."""
    inside = set(ops)
    outside = {v for op in ops for v in op.operands if v.owner not in inside}
    numbers = {v for v in outside if isinstance(v.owner, ConstantOp) and all(size == 1 for size in shape(v))}
    return len(outside - numbers) + outputs(ops)


def outputs(ops: Sequence[GraphOp]) -> int:
    """Values that are used outside."""
    inside = set(ops)
    return sum(any(use.operation not in inside for use in op.results[0].uses) for op in ops)


# anchors with an epilogue ---------------------------------------------------------------------------------------------
def grow_epilogues(grouping: Grouping) -> None:
    """Groups of an anchor and elementwise ops on its result; the largest with one result wins."""
    for anchor in grouping.ops:
        if anchor in grouping.group or not is_anchor(anchor):
            continue
        best = 1
        ops = [anchor]
        for ops in grow(anchor, grouping, lambda op, inside, anchor=anchor: fits_epilogue(op, inside, anchor)):
            if outputs(ops) <= 1:
                best = len(ops)
        kept = ops[:best]
        grouping.add([*grouping.absorbed.get(anchor, []), *kept, *outward_views(anchor, kept[-1])])


def is_anchor(op: GraphOp) -> bool:
    """A contraction, a window, or a reduction of axes that are not the last ones."""
    if isinstance(op, ReduceLoops):
        return trailing_axes(op) is None
    return (
        not isinstance(op, (Elementwise, PadOp))
        and op.structure() == "loops"
        and isinstance(op.loops().kernel, (MultiplyAdd, Window))
    )


def fits_epilogue(op: GraphOp, inside: set[Operation], anchor: GraphOp) -> bool:
    """An elementwise op of the anchor's shape, whose operands from outside are numbers, vectors or of that shape."""
    size = shape(anchor.results[0])
    if not isinstance(op, Elementwise) or shape(op.results[0]) != size:
        return False
    return all(shape(v) == size if v.owner in inside else is_epilogue_operand(v, size) for v in op.operands)


def is_epilogue_operand(value: SSAValue, size: tuple[int, ...]) -> bool:
    """A number, a vector along the last axis, or a tensor of this shape."""
    found = shape(value)
    if found == size:
        return True
    return all(extent == 1 for extent in found[:-1]) and found[-1:] in ((), (1,), size[-1:])


def note_near_misses(grouping: Grouping) -> None:
    """Says of each kernel of elementwise ops why it is not the epilogue of an anchor before it."""
    for group in grouping.groups:
        inside = set(group.ops)
        if not all(isinstance(op, Elementwise) for op in group.ops):
            continue
        for op in group.ops:
            for value in op.operands:
                if isinstance(value.owner, GraphOp) and value.owner not in inside and is_anchor(value.owner):
                    _note(op, value, value.owner, grouping.ctx)


def _note(op: GraphOp, value: SSAValue, anchor: GraphOp, ctx: CompileContext) -> None:
    size, rewrite = shape(value), f"fused into the kernel of {anchor.name}"
    others = [v for v in op.operands if v is not value and not is_epilogue_operand(v, size)]
    if shape(op.results[0]) != size:
        ctx.note(rewrite, op, "it has the shape of the result", f"{shape(op.results[0])} for {size}")
    elif others:
        ctx.note(
            rewrite, op, "operands are numbers, vectors along the last axis or of the result's shape", others[0].type
        )
    elif len(users(value)) > 1:
        ctx.note(rewrite, op, "it is the only user of the result", f"{len(users(value))} users")


# row groups -----------------------------------------------------------------------------------------------------------
@dataclass
class Rows:
    """The shape of a row group: all its values are of shape `full`, or of that with 1 from axis `split` on."""

    full: tuple[int, ...]
    split: int | None = None
    """First reduced axis; None while nothing is reduced."""

    @property
    def row(self) -> tuple[int, ...] | None:
        """The shape of one number per row."""
        return None if self.split is None else self.full[: self.split] + (1,) * (len(self.full) - self.split)

    def fits(self, op: GraphOp, inside: set[Operation]) -> bool:
        """`op` may join; the first reduction decides where the columns begin."""
        if isinstance(op, ReduceLoops):
            axis = trailing_axes(op)
            return axis is not None and shape(op.x) == self.full and self.split in (None, axis)
        if not isinstance(op, Elementwise):
            return False
        size = shape(op.results[0])
        if size == self.full:
            return all(np.broadcast_shapes(shape(v), size) == size for v in op.operands)
        return size == self.row

    def joined(self, op: GraphOp) -> None:
        """Takes note of a reduction."""
        if isinstance(op, ReduceLoops):
            self.split = trailing_axes(op)


def trailing_axes(op: ReduceLoops) -> int | None:
    """The first reduced axis, if the reduction runs over it and all that follow, and keeps them."""
    size, axes = shape(op.x), ints(op.properties, "axes")
    first = len(size) - len(axes)
    return first if axes == tuple(range(first, len(size))) and len(shape(op.results[0])) == len(size) else None


def grow_rows(grouping: Grouping) -> None:
    """Groups of elementwise ops and reductions of the last axes."""
    for seed in grouping.ops:
        if seed in grouping.group or not (
            isinstance(seed, Elementwise) or (isinstance(seed, ReduceLoops) and trailing_axes(seed) is not None)
        ):
            continue
        rows = Rows(shape(seed.x) if isinstance(seed, ReduceLoops) else shape(seed.results[0]))
        rows.joined(seed)
        ops = [seed]
        for ops in grow(seed, grouping, rows.fits):
            rows.joined(ops[-1])
        grouping.add([*ops, *_makers(ops, rows, grouping)])


def _makers(ops: Sequence[GraphOp], rows: Rows, grouping: Grouping) -> list[GraphOp]:
    """Ops that make operands of the group and of nothing else, and fit it: they join from above."""
    inside: set[Operation] = set(ops)
    found: list[GraphOp] = []
    stack = list(ops)
    while stack:
        for operand in stack.pop().operands:
            op = operand.owner
            if not isinstance(op, GraphOp) or op in inside or not grouping.is_open(op) or not rows.fits(op, inside):
                continue
            if all(user in inside for user in users(operand)) and tensors([*ops, *found, op]) <= MOST_TENSORS:
                rows.joined(op)
                inside.add(op)
                found.append(op)
                stack.append(op)
    return found
