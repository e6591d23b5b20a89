"""`Emit`: what a `decompose` writes its parts with.

    emit = Emit(self, rewriter)
    squares = emit(MulOp, x, x, element=emit.inner)     # an f32 edge inside
    return [emit(SqrtOp, squares)]                      # the edge of the result

Each op goes before the one that is decomposed, has its location, and has the element type that the edge asks for.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from .constants import ConstantOp
from .op import FLOATS, Array, GraphOp, element, f32
from .properties import Value, attributes


class Emit:
    """Builds ops before `op`, at its location; see the module."""

    def __init__(self, op: Operation, rewriter: PatternRewriter) -> None:
        self._op = op
        self._rewriter = rewriter
        self.result: Attribute = element(op.results[0])
        """Element type of the op's result, which a result edge has when none is named."""
        self.inner: Attribute = f32 if self.result in FLOATS else self.result
        """Element type of an edge inside a composite (docs/numerics.md §2)."""

    def __call__(
        self,
        kind: type[GraphOp],
        *operands: SSAValue | None,
        element: Attribute | None = None,
        **properties: Value | None,
    ) -> SSAValue:
        """The result of a new `kind`; operands and properties that are None are left out."""
        given = [operand for operand in operands if operand is not None]
        op = kind.build_op(given, attributes(**properties), element or self.result)
        return self._insert(op).results[0]

    def all(self, kind: type[GraphOp], *operands: SSAValue | None, **properties: Value | None) -> Sequence[SSAValue]:
        """All results of a new `kind`, of the types that it infers; what is None is left out."""
        given = [operand for operand in operands if operand is not None]
        return self._insert(kind.build_op(given, attributes(**properties))).results

    def keep(self, kind: type[GraphOp], operand: SSAValue, **properties: Value | None) -> SSAValue:
        """As calling, for an op that only moves elements: the result has the operand's element type."""
        return self(kind, operand, element=element(operand), **properties)

    def constant(self, value: Array | float, kind: Attribute | None = None) -> SSAValue:
        """A constant of at most 64 elements, of the element type of the inner edges unless `kind` is given."""
        return self._insert(ConstantOp.of(np.asarray(value), kind or self.inner)).results[0]

    def _insert(self, op: Any) -> Any:
        op.location = self._op.location
        return self._rewriter.insert(op)
