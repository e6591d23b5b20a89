"""The rewriting loop of the graph passes: patterns by op type, a worklist, a bound, and locations kept.

It is xDSL's greedy driver with three differences: patterns are found by the type of the op and not tried one by one,
the number of rewrites is bounded, and an op that replaces another inherits its location.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.traits import is_side_effect_free

from .context import CompileContext, PassError
from .location import absorb, fuse_locations, leaves

Pattern = Callable[[Any, "Rewriter"], None]
"""Looks at one op, and rewrites through the rewriter if it matches."""
Patterns = Mapping[type[Operation], Sequence[Pattern]]


class Rewriter(PatternRewriter):
    """xDSL's rewriter at one op, with the context and rewrites that keep locations."""

    def __init__(self, op: Operation, ctx: CompileContext) -> None:
        super().__init__(op)
        self.root = op
        self.ctx = ctx
        self.operation_insertion_handler.append(self._locate)

    def _locate(self, op: Operation) -> None:
        if not leaves(op.location):
            op.location = self.root.location

    def replace_by(
        self, op: Operation, values: Sequence[SSAValue] | SSAValue, absorbed: Sequence[Operation] = ()
    ) -> None:
        """Replaces `op` by values made before it, whose ops now stand for it and for the `absorbed` ops as well."""
        values = [values] if isinstance(values, SSAValue) else values
        for value in values:
            if isinstance(value.owner, Operation) and absorbed:
                absorb(value.owner, op, *absorbed)
        self.replace(op, [], list(values))


@dataclass
class _Worklist:
    """Ops to look at, each once, first in first out."""

    queue: deque[Operation]
    waiting: set[Operation]

    def push(self, op: Operation) -> None:
        if op not in self.waiting:
            self.waiting.add(op)
            self.queue.append(op)

    def drop(self, op: Operation) -> None:
        self.waiting.discard(op)

    def pop(self) -> Operation | None:
        while self.queue:
            op = self.queue.popleft()
            if op in self.waiting:
                self.waiting.discard(op)
                return op
        return None


def rewrite(ctx: CompileContext, module: ModuleOp, patterns: Patterns) -> int:
    """Applies the patterns until none matches, dropping ops that die; returns the number of rewrites.

    Raises `PassError` if they do not settle.
    """
    ops = [op for op in module.walk() if op is not module]
    work = _Worklist(deque(ops), set(ops))
    budget = 20 * len(ops) + 1000
    done = 0
    while (op := work.pop()) is not None:
        if op.parent is None:
            continue
        if is_dead(op):
            erase_dead(op, work.push, work.drop)
            continue
        for pattern in patterns.get(type(op), ()):
            if not _apply(pattern, op, ctx, work):
                continue
            done += 1
            if done > budget:
                raise PassError(f"rewrites must settle (found more than {budget}); this is a bug in a pattern", op)
            if op.parent is not None:
                work.push(op)
            break
    return done


def _apply(pattern: Pattern, op: Operation, ctx: CompileContext, work: _Worklist) -> bool:
    rewriter = Rewriter(op, ctx)

    def inserted(new: Operation) -> None:
        work.push(new)

    def removed(old: Operation) -> None:
        work.drop(old)
        for operand in old.operands:
            if isinstance(operand.owner, Operation):
                work.push(operand.owner)

    def replaced(old: Operation, values: Sequence[SSAValue | None]) -> None:
        for result in old.results:
            for use in result.uses:
                work.push(use.operation)

    rewriter.operation_insertion_handler.append(inserted)
    rewriter.operation_removal_handler.append(removed)
    rewriter.operation_replacement_handler.append(replaced)
    rewriter.operation_modification_handler.append(work.push)
    pattern(op, rewriter)
    return rewriter.has_done_action


def is_dead(op: Operation) -> bool:
    """No one uses it and it does nothing but compute."""
    return bool(op.results) and not any(result.uses for result in op.results) and is_side_effect_free(op)


def erase_dead(op: Operation, push: Callable[[Operation], None], drop: Callable[[Operation], None]) -> None:
    """Erases a dead op; its operands' ops are pushed, since they may be dead now."""
    owners = [operand.owner for operand in op.operands if isinstance(operand.owner, Operation)]
    drop(op)
    op.detach()
    op.erase()
    for owner in owners:
        push(owner)


def erase_dead_ops(module: Operation) -> int:
    """Erases all dead ops, users before producers; returns how many."""
    count = 0
    for op in list(module.walk(reverse=True)):
        if op.parent is not None and is_dead(op):
            op.detach()
            op.erase()
            count += 1
    return count


def merge_equal_ops(module: ModuleOp) -> int:
    """Merges ops of a block that compute the same from the same values; the one that stays gets both locations."""
    count = 0
    for block in blocks(module):
        seen: dict[object, Operation] = {}
        for op in list(block.ops):
            if op.regions or not op.results or not is_side_effect_free(op):
                continue
            key = (
                type(op),
                tuple(op.operands),
                tuple(op.result_types),
                frozenset(op.properties.items()),
                frozenset(op.attributes.items()),
            )
            first = seen.setdefault(key, op)
            if first is op:
                continue
            first.location = fuse_locations([first.location, op.location])
            for old, new in zip(op.results, first.results, strict=True):
                old.replace_all_uses_with(new)
            op.detach()
            op.erase()
            count += 1
    return count


def blocks(module: ModuleOp) -> Iterator[Any]:
    """Every block of the module, outermost first."""
    for op in module.walk():
        for region in op.regions:
            yield from region.blocks
