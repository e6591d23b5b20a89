"""Questions that patterns ask about values: who makes them, who uses them, are they constant."""

from typing import TypeVar

import numpy as np
from xdsl.ir import Operation, SSAValue

from ..dialects.graph.constants import constant_value
from ..dialects.graph.op import Array, shape
from .context import CompileContext

Op = TypeVar("Op", bound=Operation)


def producer(value: SSAValue, kind: type[Op]) -> Op | None:
    """The op that makes `value`, if it is of this kind."""
    return value.owner if isinstance(value.owner, kind) else None


def users(value: SSAValue) -> list[Operation]:
    """The ops that use it, each once."""
    return list(dict.fromkeys(use.operation for use in value.uses))


def array_of(value: SSAValue, ctx: CompileContext) -> Array | None:
    """Its array, if it is a constant."""
    return constant_value(value, ctx.weights)


def scalar_of(value: SSAValue, ctx: CompileContext) -> float | None:
    """Its number, if it is a constant of one element."""
    array = array_of(value, ctx)
    return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None


def split_constant(op: Operation, ctx: CompileContext) -> tuple[SSAValue, Array] | None:
    """(computed operand, constant) of a binary op that has one of each, in either order."""
    x, y = op.operands
    if (array := array_of(y, ctx)) is not None:
        return (x, array) if array_of(x, ctx) is None else None
    return (y, array) if (array := array_of(x, ctx)) is not None else None


def split_scalar(op: Operation, ctx: CompileContext) -> tuple[SSAValue, float] | None:
    """As `split_constant`, for a constant of one element that does not enlarge the result."""
    found = split_constant(op, ctx)
    if found is None or found[1].size != 1 or shape(found[0]) != shape(op.results[0]):
        return None
    return found[0], float(np.asarray(found[1]).reshape(-1)[0])
