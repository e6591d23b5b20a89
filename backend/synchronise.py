"""Synchronisation: tokens, derived from the buffers alone.

Engines run their queues independently, so whenever one engine writes a buffer and another reads it, or writes it
again, a token has to order them (docs/program.md §1). Where tokens belong follows from *who touches a buffer, in
which order, in the body of the loop it belongs to*; neither trip counts nor extents matter, so the result is right
for 0, 1 or many iterations.

**One buffer.** A buffer with n slots belongs to a loop, its *scope*. Iteration t works on generation t in slot t mod
n; an access written `%b[-1]` works on generation t − 1. The scope's body is a list of children (instructions and
inner loops), numbered 0, 1, …; in

    npu.loop count=1000 step=128 {
      %t = npu.buffer ub 16384 x 2
      npu.load dst=%t …                 child 0: load writes
      npu.vmap a=%t dst=%t …            child 1: vector reads and writes
      npu.store src=%t …                child 2: store reads
    }

generation g is written by load, then used by vector, then read by store; the next generation in the same slot, g + 2,
is written by load after that. Each such pair on different engines is a *class*: `a after child p → b before child q,
d iterations later`:

    load 0 → vector 1, d = 0        vector 1 → store 2, d = 0        store 2 → load 0, d = 2

To find them all, list the accesses of one generation in the order in which they happen, by (iterations ago, child),
and walk that list twice, for generations g and g + n, with the set of last writers and of readers since: a reader
comes after the last writers, a writer after the last writers and readers. d is the difference of the iterations.

**Inner loops.** A child that is a loop may contain accesses of several engines. To the outside it is one child for
each of them. Inside, the slot does not change from one iteration to the next, so the same is done for its body with
the buffer as if it had n = 1: a class with d = 1 carries the order from iteration to iteration.

**Kernel scope.** A buffer outside all loops belongs to the kernel, which counts as a loop of one trip. A buffer in
global memory that a kernel touches with several engines, one of them writing, is treated the same way; two
*different* arguments are taken to be different memory.

**Tokens.** A class is a pair of rows: `set` in the queue of a after child p, `wait` in the queue of b before child q.
With d > 0 the first d iterations have nothing to wait for: b grants itself d tokens when the kernel starts, and takes
the last d when it ends, so that counts begin and end at 0. Tokens count (0 to 15), so one id serves a class whatever
n is, and they survive leaving and entering the loop again, as the iterations of a loop are counted through. At most n
can be outstanding.

**Fewer tokens.** Of one class at several distances the smallest remains. A class that follows from others and the
order within queues is dropped.

**Ids** are numbered for each pair of engines. Classes share an id if their sets come in the same order as their waits,
as then the k-th wait still takes the k-th token: classes of one body and one distance that do not cross, and classes of
distance 0 in different bodies, as long as no more than 15 tokens can be outstanding. If more than 8 ids remain, so do
classes of one distance d > 0 in loops that follow one another, one of each: with one grant of d for all, the k-th wait
takes the token of the set d iterations before, whichever loop that was in, which is that of the loop itself or a later
one. If that is not enough,
classes of one body merge into a stricter one (set later, wait earlier) while that is possible; then it is an error
that names the buffers.

The class `Synchronise` shows a kernel before and after.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ..dialects import npu
from ..runtime.expr import Expr, Term
from ..runtime.isa import TOKEN_IDS, TOKEN_LIMIT, Engine
from ..runtime.plan import R_TOKEN
from .errors import BackendError, buffer_name, place

TOKEN_BASE = f"r{R_TOKEN}"
"""Register that holds the kernel's first token id."""


@dataclass(frozen=True, slots=True)
class Touch:
    """An engine touches a buffer within a child of a loop body, `ago` iterations of the scope ago."""

    ago: int
    child: int
    engine: Engine
    writes: bool


@dataclass(frozen=True, slots=True)
class TokenClass:
    """`before` (of a queue) must be done with child p before `after` begins child q, `distance` iterations later, in
    one loop body.
    """

    body: Block
    p: int
    before: Engine
    q: int
    after: Engine
    distance: int
    slots: int = field(default=1, compare=False)
    """Tokens that can be outstanding."""
    buffers: frozenset[str] = field(default_factory=frozenset[str], compare=False)

    @property
    def pair(self) -> tuple[Engine, Engine]:
        return self.before, self.after

    def __str__(self) -> str:
        ends = f"{self.before.name.lower()} {self.p} → {self.after.name.lower()} {self.q}"
        return f"{ends}, d = {self.distance} ({', '.join(sorted(self.buffers))})"


@dataclass(frozen=True, slots=True)
class Shared:
    """A buffer as this pass sees it: on chip, or an argument in global memory."""

    name: str
    slots: int
    scope: Block
    touches: Callable[[npu.RowOp], Iterator[tuple[int, bool]]]
    """(iterations ago, writes) of each access of an instruction."""


# accesses -------------------------------------------------------------------------------------------------------------
def shared_buffers(kernel: npu.KernelOp) -> list[Shared]:
    """The on-chip buffers, and those arguments in global memory that several engines touch, one of them writing."""
    found: list[Shared] = []
    for op in kernel.body.walk():
        if isinstance(op, npu.BufferOp):
            block = op.parent_block()
            assert block is not None
            slots = 1 if block is kernel.body.block else op.slots.data
            found.append(Shared(buffer_name(op.handle, len(found)), slots, block, _touches_of(op.handle)))
    for register, kind in enumerate(kernel.kinds):
        if kind == "gm":
            found.append(Shared(f"argument {register}", 1, kernel.body.block, _touches_of_argument(f"r{register}")))
    return found


def _touches_of(handle: SSAValue) -> Callable[[npu.RowOp], Iterator[tuple[int, bool]]]:
    def touches(op: npu.RowOp) -> Iterator[tuple[int, bool]]:
        if handle not in op.operands:
            return
        writes = {number: access.writes for number, access, _ in op.accesses()}
        for buffer, (number, ago) in zip(op.buffers, op.placed, strict=True):
            if buffer is handle:
                yield ago, writes[number]

    return touches


def _touches_of_argument(register: str) -> Callable[[npu.RowOp], Iterator[tuple[int, bool]]]:
    base = Term(1, register)

    def touches(op: npu.RowOp) -> Iterator[tuple[int, bool]]:
        for number, access, space in op.accesses():
            if space == "gm" and base in op.fields.data[number].terms:
                yield 0, access.writes

    return touches


def touches_in(child: Operation, buffer: Shared) -> dict[tuple[int, Engine], bool]:
    """(iterations ago, engine) → writes, of all accesses within a child."""
    found: dict[tuple[int, Engine], bool] = {}
    for op in child.walk():
        if isinstance(op, npu.RowOp) and (engine := op.queue) is not None:
            for ago, writes in buffer.touches(op):
                found[ago, engine] = found.get((ago, engine), False) or writes
    return found


# classes --------------------------------------------------------------------------------------------------------------
def derive(kernel: npu.KernelOp) -> list[TokenClass]:
    """All classes of a kernel, unreduced. Raises `BackendError` if a buffer is read before it can have been written."""
    return [
        found
        for buffer in shared_buffers(kernel)
        for found in _derive_body(buffer, buffer.scope, buffer.slots, lambda ago: True)
    ]


def _derive_body(buffer: Shared, body: Block, slots: int, chosen: Callable[[int], bool]) -> Iterator[TokenClass]:
    """The classes of a body and of the loops in it; `chosen` says which accesses count, by `ago`.

    In a loop within the scope the slot stands still: accesses of one slot are treated with `slots` = 1 and no `ago`.
    """
    in_scope = body is buffer.scope
    order: list[Touch] = []
    inner: list[tuple[npu.LoopOp, set[int]]] = []
    for number, child in enumerate(body.ops):
        found = {key: writes for key, writes in touches_in(child, buffer).items() if chosen(key[0])}
        order += [Touch(ago if in_scope else 0, number, engine, writes) for (ago, engine), writes in found.items()]
        if isinstance(child, npu.LoopOp) and len({engine for _, engine in found}) > 1:
            inner.append((child, {ago % buffer.slots for ago, _ in found}))
    yield from _meetings(buffer, body, slots, order)
    for loop, residues in inner:
        for residue in sorted(residues):
            yield from _derive_body(
                buffer, loop.body.block, 1, lambda ago, residue=residue: ago % buffer.slots == residue and chosen(ago)
            )


def _meetings(buffer: Shared, body: Block, slots: int, order: list[Touch]) -> Iterator[TokenClass]:
    """Walks the accesses of two generations of one slot."""
    order.sort(key=lambda touch: (touch.ago, touch.child))
    steps: list[list[Touch]] = []
    for touch in order:
        if steps and (steps[-1][0].ago, steps[-1][0].child) == (touch.ago, touch.child):
            steps[-1].append(touch)
        else:
            steps.append([touch])
    writers: list[tuple[int, Touch]] = []
    readers: list[tuple[int, Touch]] = []
    for generation in (0, slots):
        for step in steps:
            for touch in step:
                for earlier, other in writers + (readers if touch.writes else []):
                    if other.engine != touch.engine:
                        yield _class(buffer, body, slots, other, touch, touch.ago - other.ago + generation - earlier)
            written = [(generation, touch) for touch in step if touch.writes]
            read = [(generation, touch) for touch in step if not touch.writes]
            writers, readers = (written, read) if written else (writers, readers + read)


def _class(buffer: Shared, body: Block, slots: int, first: Touch, then: Touch, distance: int) -> TokenClass:
    if distance < 0 or (distance == 0 and first.child >= then.child):
        raise BackendError(
            f"{buffer.name}: with {buffer.slots} slots, {then.engine.name.lower()} (child {then.child} of its loop) "
            f"needs what {first.engine.name.lower()} (child {first.child}) does only later; "
            "give it more slots or change their order"
        )
    return TokenClass(
        body, first.child, first.engine, then.child, then.engine, distance, slots, frozenset((buffer.name,))
    )


# fewer classes --------------------------------------------------------------------------------------------------------
def reduce_classes(classes: Iterable[TokenClass]) -> list[TokenClass]:
    """The classes without those that others imply."""
    smallest: dict[tuple[int, int, Engine, int, Engine], TokenClass] = {}
    for each in classes:
        key = (id(each.body), each.p, each.before, each.q, each.after)
        known = smallest.get(key)
        smallest[key] = each if known is None else _stricter(known, each, each.p, each.q)
    by_body: dict[int, list[TokenClass]] = {}
    for each in smallest.values():
        by_body.setdefault(id(each.body), []).append(each)
    return [kept for group in by_body.values() for kept in _without_implied(group)]


def _stricter(one: TokenClass, other: TokenClass, p: int, q: int) -> TokenClass:
    """A class of the same body and engines that implies both."""
    return replace(
        one,
        p=p,
        q=q,
        distance=min(one.distance, other.distance),
        slots=min(one.slots, other.slots),
        buffers=one.buffers | other.buffers,
    )


def _without_implied(classes: list[TokenClass]) -> list[TokenClass]:
    kept = list(classes)
    for each in sorted(classes, key=lambda c: (-c.distance, abs(c.q - c.p))):
        others = [other for other in kept if other is not each]
        if is_implied(each, others):
            kept = others
    return kept


def is_implied(wanted: TokenClass, others: Sequence[TokenClass]) -> bool:
    """Whether classes of the same body, with the order within queues, order the two children anyway.

    Follows the earliest (iteration, position) at which each engine is known to come after the start; position 2·q is
    just before child q, 2·p + 1 just behind child p.
    """
    reached = {wanted.before: (0, 2 * wanted.p + 1)}
    pending = [wanted.before]
    while pending:
        engine = pending.pop()
        iteration, position = reached[engine]
        for other in others:
            if other.before != engine:
                continue
            at = iteration if 2 * other.p + 1 >= position else iteration + 1
            arrival = (at + other.distance, 2 * other.q)
            if arrival[0] <= wanted.distance and (other.after not in reached or arrival < reached[other.after]):
                reached[other.after] = arrival
                pending.append(other.after)
    return wanted.after in reached and reached[wanted.after] <= (wanted.distance, 2 * wanted.q)


# ids ------------------------------------------------------------------------------------------------------------------
def assign_ids(classes: Sequence[TokenClass], ids: int = TOKEN_IDS) -> list[tuple[TokenClass, int]]:
    """An id for each class, from 0 for each pair of engines. Raises `BackendError` naming the buffers of a pair that
    needs too many.
    """
    pairs: dict[tuple[Engine, Engine], list[TokenClass]] = {}
    for each in classes:
        pairs.setdefault(each.pair, []).append(each)
    result: list[tuple[TokenClass, int]] = []
    for (before, after), group in pairs.items():
        shared = _share(group)
        if len(shared) > ids:
            shared = _share(group, across=True)
        while len(shared) > ids and (merged := _merge_two(group)) is not None:
            group = merged
            shared = _share(group, across=True)
        if len(shared) > ids:
            names = sorted({name for each in group for name in each.buffers})
            raise BackendError(
                f"{before.name.lower()} → {after.name.lower()}: at most {ids} token ids (found {len(shared)}); "
                f"fewer buffers may be handed over between them, or fewer loops do so (found {', '.join(names)})"
            )
        result += [(each, number) for number, members in enumerate(shared) for each in members]
    return result


def _share(group: Sequence[TokenClass], across: bool = False) -> list[list[TokenClass]]:
    """Classes of a pair by id, each in the first one that it can share; `across`: loops that follow one another do."""
    shared: list[list[TokenClass]] = []
    for each in group:
        for members in shared:
            if _outstanding([*members, each]) <= TOKEN_LIMIT and all(
                _can_share(member, each, across) for member in members
            ):
                members.append(each)
                break
        else:
            shared.append([each])
    return shared


def _outstanding(members: Sequence[TokenClass]) -> int:
    """Tokens of an id at a time. Beyond the limit also where classes of one distance > 0 are not one for each body."""
    bodies = {id(member.body) for member in members}
    if members[0].distance == 0 or len(bodies) == 1:
        return sum(member.slots for member in members)
    return max(member.slots for member in members) if len(bodies) == len(members) else TOKEN_LIMIT + 1


def _can_share(one: TokenClass, other: TokenClass, across: bool) -> bool:
    """Whether the sets of two classes come in the same order as their waits."""
    if one.body is other.body:
        return one.distance == other.distance and (one.p - other.p) * (one.q - other.q) >= 0
    if one.distance or other.distance:
        apart = across and _child_with(one.body, other.body) is None and _child_with(other.body, one.body) is None
        return apart and one.distance == other.distance
    for outer, inner in ((one, other), (other, one)):
        child = _child_with(outer.body, inner.body)
        if child is not None:
            return outer.q <= child or outer.p >= child
    return True


def _child_with(outer: Block, inner: Block) -> int | None:
    """The number of the child of `outer` that contains `inner`, if one does."""
    op = inner.parent_op()
    while op is not None and op.parent_block() is not outer:
        op = op.parent_op()
    return None if op is None else list(outer.ops).index(op)


def _merge_two(group: list[TokenClass]) -> list[TokenClass] | None:
    """Replaces the two classes that lose least by one that implies both; None if no two can merge."""
    best: tuple[int, int, int, TokenClass] | None = None
    for i, one in enumerate(group):
        for j in range(i):
            other = group[j]
            merged = _stricter(one, other, max(one.p, other.p), min(one.q, other.q))
            if one.body is not other.body or (merged.distance == 0 and merged.p >= merged.q):
                continue
            cost = abs(one.p - other.p) + abs(one.q - other.q) + 100 * abs(one.distance - other.distance)
            if best is None or cost < best[0]:
                best = cost, i, j, merged
    if best is None:
        return None
    _, i, j, merged = best
    return [each for k, each in enumerate(group) if k not in (i, j)] + [merged]


# rows -----------------------------------------------------------------------------------------------------------------
def synchronise_kernel(kernel: npu.KernelOp, ids: int = TOKEN_IDS) -> None:
    """Adds tokens to a kernel that has none, in place, and sets its number `ids`. Raises `BackendError`."""
    insert(kernel, assign_ids(reduce_classes(derive(kernel)), ids))


def insert(kernel: npu.KernelOp, classes: Sequence[tuple[TokenClass, int]]) -> None:
    """Writes the rows of numbered classes."""
    children: dict[int, list[Operation]] = {}
    for each, number in classes:
        ops = children.setdefault(id(each.body), list(each.body.ops))
        first, then = ops[each.p], ops[each.q]
        each.body.insert_op_after(_row("set", each, number, first), first)
        if each.distance and each.body is kernel.body.block:
            continue  # a body of one trip: the grant and this wait would cancel
        each.body.insert_op_before(_row("wait", each, number, then), then)
    _insert_ends(kernel, [(each, number) for each, number in classes if each.distance])
    kernel.set_number("ids", 1 + max((number for _, number in classes), default=-1))


def _insert_ends(kernel: npu.KernelOp, classes: Sequence[tuple[TokenClass, int]]) -> None:
    """Grants before everything else, and the waits for what is then left over behind everything else."""
    block = kernel.body.block
    begin = block.first_op
    tokens: dict[tuple[Engine, Engine, int], dict[int, int]] = {}
    first: dict[tuple[Engine, Engine, int], TokenClass] = {}
    for each, number in classes:
        key = (*each.pair, number)
        of_body = tokens.setdefault(key, {})
        of_body[id(each.body)] = of_body.get(id(each.body), 0) + each.distance
        first.setdefault(key, each)
    for key, of_body in tokens.items():
        each, number = first[key], key[2]
        count = max(of_body.values())  # equal, where several loops share the id
        for _ in range(count):
            block.add_op(_row("wait", each, number, kernel))
        if each.body is not block:
            assert begin is not None
            block.insert_op_before(_row("grant", each, number, kernel, n=count), begin)


def _row(name: str, each: TokenClass, number: int, near: Operation, **more: int) -> npu.RowOp:
    slot = near.slot_number if isinstance(near, npu.RowOp) else 0
    token = Expr(number, (Term(1, TOKEN_BASE),))
    row = npu.row_op(name, slot, src=int(each.before), dst=int(each.after), id=token, **more)
    row.location = near.location
    return row


@dataclass(frozen=True)
class Synchronise(ModulePass):
    """Adds the tokens that order the engines sharing a buffer; uses at most `ids` of each pair of engines.

    npu.loop count=1000 step=128 {                       npu.grant src=store dst=load id=r30 n=2
      %t = npu.buffer ub 16384 x 2                       npu.loop count=1000 step=128 {
      npu.load dst=%t …                                    %t = npu.buffer ub 16384 x 2
      npu.store src=%t …                                   npu.wait src=store dst=load id=r30
    }                                                      npu.load dst=%t …
                                                 ⟶         npu.set src=load dst=store id=r30
                                                           npu.wait src=load dst=store id=r30
                                                           npu.store src=%t …
                                                           npu.set src=store dst=load id=r30
                                                         }
                                                         npu.wait src=store dst=load id=r30
                                                         npu.wait src=store dst=load id=r30
    """

    name = "synchronise"
    ids: int = TOKEN_IDS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.body.block.ops:
            if isinstance(kernel, npu.KernelOp):
                try:
                    synchronise_kernel(kernel, self.ids)
                except BackendError as error:
                    raise BackendError(f"{place(kernel)} @{kernel.sym_name.data}: {error}") from None
