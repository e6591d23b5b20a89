"""Finds the masks that are added to the operand of a softmax, and the sums: the pass `precision` leaves them in f32."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from ..dialects.graph.activations import NegOp
from ..dialects.graph.arithmetic import AddOp, MaxOp, MinOp, MulOp, SubOp
from ..dialects.graph.elementwise import AffineOp, CastOp, ClipOp, Elementwise, WhereOp
from ..dialects.graph.gather import IndexedOp
from ..dialects.graph.host import UploadOp
from ..dialects.graph.op import FLOATS, element, f32
from ..dialects.graph.reduce import ReduceMaxOp
from ..dialects.graph.views import ViewOp
from .context import CompileContext
from .values import array_of, users

SUMS = (AddOp, SubOp, WhereOp)
"""What masks scores."""
SCORES = (*SUMS, MaxOp, MinOp, ClipOp, ViewOp)
"""What may stand between scores and their softmax."""
MASKS = (*SCORES, MulOp, NegOp, AffineOp, CastOp, IndexedOp)
"""What makes a mask of inputs, truth values and numbers."""
LARGE = 1024.0
"""From here on neighbours in f16 are a whole one apart, as far as the scores of keys may be."""


def masks_of_scores(body: Sequence[Operation], ctx: CompileContext) -> set[Operation]:
    """The ops that make masks, add them to scores, and stand from there on before the softmax.

    A row of scores that are all masked keeps its weights in f32, and a mask of −3.4e38 stays finite; types of 16 bits
    would round the first to one number, and the second to minus infinity.
    """
    ends = [op.operands[0] for op in body if op.name in ("graph.softmax", "graph.log_softmax")]
    before = _reached(ends, lambda op: isinstance(op, MASKS))
    kinds = _Kinds(ctx)
    for op in body:
        if op in before:
            kinds.add(op)
    kept = kinds.masks | kinds.masked
    found = _reached([end for end in ends if end in kinds.masked], lambda op: op.results[0] in kept)
    values = {value for op in found for value in (op.results[0], *_floats(op))}
    return found | {user for value in values for user in users(value) if isinstance(user, ReduceMaxOp)}


@dataclass
class _Kinds:
    """Which values are masks, and which are scores with masks; an op comes after its operands."""

    ctx: CompileContext
    masks: set[SSAValue] = field(default_factory=set[SSAValue])
    masked: set[SSAValue] = field(default_factory=set[SSAValue])

    def add(self, op: Operation) -> None:
        result, floats = op.results[0], _floats(op)
        if element(result) != f32:
            return
        numbers = {operand: array for operand in floats if (array := array_of(operand, self.ctx)) is not None}
        masks = [operand for operand in floats if self._is_mask(operand, numbers.get(operand))]
        known = set(masks) | (set() if isinstance(op, IndexedOp) else set(numbers))
        if known.issuperset(floats) and (masks or isinstance(op, CastOp) or _has_large(op)):
            self.masks.add(result)
        if (masks and len(floats) > 1 and isinstance(op, SUMS)) or (
            isinstance(op, SCORES) and self.masked.intersection(floats)
        ):
            self.masked.add(result)

    def _is_mask(self, value: SSAValue, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]] | None) -> bool:
        """Whether it is large numbers, or made of inputs and truth values alone."""
        if array is not None:
            return bool(np.any(np.abs(array) >= LARGE))
        return value in self.masks or (isinstance(value.owner, Block | UploadOp) and element(value) == f32)


def _has_large(op: Operation) -> bool:
    return isinstance(op, Elementwise) and any(abs(number) >= LARGE for number in op.immediates)


def _floats(op: Operation) -> list[SSAValue]:
    return [operand for operand in op.operands if element(operand) in FLOATS]


def _reached(values: Iterable[SSAValue], wanted: Callable[[Operation], bool]) -> set[Operation]:
    """The ops behind values, as long as they are wanted."""
    found, front = set[Operation](), [value.owner for value in values]
    while front:
        op = front.pop()
        if isinstance(op, Operation) and op not in found and wanted(op):
            found.add(op)
            front += [operand.owner for operand in _floats(op)]
    return found
