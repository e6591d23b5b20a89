"""Patterns of `recognise`: activations, as exporters write them out.

    hardswish   x · clip(x + 3, 0, 6) ÷ 6, and x · hardsigmoid(x, 1/6, 1/2)
    silu        x · sigmoid(x)
    gelu        x · ½ · (1 + erf(x ÷ √2)), factors in any order

Products are flattened first, so that the order of factors and where a constant stands do not matter.
"""

import math
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ..dialects.graph.activations import ErfOp, GeluOp, HardSigmoidOp, HardSwishOp, SigmoidOp, SiluOp, TanhOp
from ..dialects.graph.arithmetic import AddOp, DivOp, MulOp, PowOp
from ..dialects.graph.elementwise import ClipOp
from ..dialects.graph.emit import Emit
from ..dialects.graph.op import GraphOp
from .context import CompileContext
from .rewrite import Rewriter
from .values import producer, scalar_of, split_scalar, users

TOLERANCE = 1e-5
"""Relative; exporters write constants in f32, some with five digits."""


MOST_FACTORS = 6


def close(found: float, wanted: float, tolerance: float = TOLERANCE) -> bool:
    """Equal but for the digits that an exporter dropped."""
    return math.isclose(found, wanted, rel_tol=tolerance, abs_tol=tolerance)


@dataclass
class Product:
    """A product of values and a number, and the ops that multiply them."""

    factors: list[SSAValue]
    number: float
    ops: list[Operation]


def product(root: Operation, ctx: CompileContext) -> Product:
    """`root`, a mul or div, with the muls and divs by numbers that only it uses."""
    found = Product([], 1.0, [])
    _flatten(root, ctx, found)
    return found


def _flatten(op: Operation, ctx: CompileContext, found: Product) -> None:
    found.ops.append(op)
    for index, operand in enumerate(op.operands):
        number = scalar_of(operand, ctx)
        if number is not None:
            found.number *= 1 / number if index == 1 and isinstance(op, DivOp) and number else number
            continue
        inner = operand.owner
        if isinstance(inner, (MulOp, DivOp)) and _is_part(inner, ctx) and len(found.ops) < MOST_FACTORS:
            _flatten(inner, ctx, found)
        else:
            found.factors.append(operand)


def _is_part(op: MulOp | DivOp, ctx: CompileContext) -> bool:
    """A factor's factors count if nothing else uses the product, and if it is one: a quotient by a number."""
    return len(users(op.result)) == 1 and (isinstance(op, MulOp) or scalar_of(op.y, ctx) is not None)


def pair(found: Product, kind: type[Operation]) -> tuple[SSAValue, Operation] | None:
    """(x, op) if the product is x times the result of an op of this kind."""
    if len(found.factors) != 2:
        return None
    for x, other in (found.factors, found.factors[::-1]):
        if isinstance(other.owner, kind):
            return x, other.owner
    return None


def to_activation(
    root: GraphOp, kind: type[GraphOp], x: SSAValue, absorbed: list[Operation], rewriter: Rewriter
) -> None:
    """Replaces `root` by the activation of x."""
    rewriter.replace_by(root, Emit(root, rewriter)(kind, x), absorbed)


def find_silu(op: MulOp, rewriter: Rewriter) -> None:
    """x · sigmoid(x) → silu(x)."""
    found = product(op, rewriter.ctx)
    match = pair(found, SigmoidOp)
    if match is None or found.number != 1.0:
        return
    x, sigmoid = match
    if sigmoid.operands[0] is x:
        to_activation(op, SiluOp, x, [*found.ops, sigmoid], rewriter)
        return
    scaled = producer(sigmoid.operands[0], MulOp)
    split = split_scalar(scaled, rewriter.ctx) if scaled is not None else None
    if split is not None and split[0] is x:
        rewriter.ctx.note("silu", op, "the sigmoid's operand is x itself", f"{split[1]}·x")


def find_hardswish(op: MulOp | DivOp, rewriter: Rewriter) -> None:
    """x · clip(x + 3, 0, 6) ÷ 6 → hardswish(x)."""
    found = product(op, rewriter.ctx)
    match = pair(found, ClipOp)
    if match is None:
        return
    x, clip = match
    shift = producer(clip.operands[0], AddOp)
    split = split_scalar(shift, rewriter.ctx) if shift is not None else None
    if shift is None or split is None or split[0] is not x:
        return
    assert isinstance(clip, ClipOp)
    values = (split[1], *clip.immediates, found.number)
    if not all(map(close, values, (3.0, 0.0, 6.0, 1 / 6))):
        if not (close(found.number, 1.0) and users(op.results[0])):  # the division is still to come
            rewriter.ctx.note("hardswish", op, "shift, bounds and factor are 3, 0, 6 and 1/6", values)
        return
    to_activation(op, HardSwishOp, x, [*found.ops, clip, shift], rewriter)


def find_hardswish_of_hardsigmoid(op: MulOp, rewriter: Rewriter) -> None:
    """x · hardsigmoid(x, 1/6, 1/2) → hardswish(x)."""
    found = product(op, rewriter.ctx)
    match = pair(found, HardSigmoidOp)
    if match is None or match[1].operands[0] is not match[0]:
        return
    x, hardsigmoid = match
    assert isinstance(hardsigmoid, HardSigmoidOp)
    values = (*hardsigmoid.immediates, found.number)
    if all(map(close, values, (1 / 6, 0.5, 1.0))):
        to_activation(op, HardSwishOp, x, [*found.ops, hardsigmoid], rewriter)
    else:
        rewriter.ctx.note("hardswish", op, "slope, offset and factor are 1/6, 1/2 and 1", values)


def find_gelu(op: MulOp | DivOp, rewriter: Rewriter) -> None:
    """x · ½ · (1 + erf(x ÷ √2)) → gelu(x)."""
    found = product(op, rewriter.ctx)
    match = pair(found, AddOp)
    if match is None:
        return
    x, one_plus = match
    split = split_scalar(one_plus, rewriter.ctx)
    erf = producer(split[0], ErfOp) if split is not None else None
    if split is None or erf is None or not isinstance(erf.x.owner, (MulOp, DivOp)):
        return
    inner = product(erf.x.owner, rewriter.ctx)
    if inner.factors != [x]:
        return
    values = (split[1], inner.number, found.number)
    if all(map(close, values, (1.0, math.sqrt(0.5), 0.5))):
        to_activation(op, GeluOp, x, [*found.ops, one_plus, erf, *inner.ops], rewriter)
    elif not close(found.number, 1.0):
        rewriter.ctx.note("gelu", op, "the constants are 1, √½ and ½", values)


def _tanh_gelu(op: MulOp | DivOp, ctx: CompileContext) -> tuple[SSAValue, list[Operation]] | None:
    """(x, ops) if `op` is x · ½ · (1 + tanh(√(2/π)·(x + 0.044715·x³)))."""
    found = product(op, ctx)
    match = pair(found, AddOp)
    split = split_scalar(match[1], ctx) if match is not None else None
    tanh = producer(split[0], TanhOp) if split is not None else None
    if match is None or split is None or tanh is None or not isinstance(tanh.x.owner, MulOp):
        return None
    inner = product(tanh.x.owner, ctx)
    numbers = (split[1], found.number, inner.number)
    if not all(map(close, numbers, (1.0, 0.5, math.sqrt(2 / math.pi)))) or not _is_cubic(inner.factors, match[0], ctx):
        return None
    return match[0], [*found.ops, match[1], tanh, *inner.ops]


def find_approximate_gelu(op: MulOp, rewriter: Rewriter) -> None:
    """x · ½ · (1 + tanh(…)) → gelu(x), whose values are up to 5e-4 away."""
    found = _tanh_gelu(op, rewriter.ctx)
    if found is not None:
        to_activation(op, GeluOp, found[0], found[1], rewriter)


def note_approximate_gelu(op: MulOp, rewriter: Rewriter) -> None:
    """The approximation stays as it is, with a note."""
    if _tanh_gelu(op, rewriter.ctx) is not None:
        rewriter.ctx.note(
            "gelu",
            op,
            "the exact form, with erf; recognise{approximate=true} takes the other",
            "the approximation with tanh",
        )


def _is_cubic(factors: list[SSAValue], x: SSAValue, ctx: CompileContext) -> bool:
    """The product is x + 0.044715·x³, or x·(1 + 0.044715·x²)."""
    sums = [factor.owner for factor in factors if isinstance(factor.owner, AddOp)]
    if len(sums) != 1 or any(factor is not x for factor in factors if not isinstance(factor.owner, AddOp)):
        return False
    for term, rest in (sums[0].operands, sums[0].operands[::-1]):
        is_one = scalar_of(term, ctx) == 1 and len(factors) == 2
        if (term is x or is_one) and isinstance(rest.owner, MulOp):
            inner = product(rest.owner, ctx)
            degrees = [_degree(factor, x, ctx) for factor in inner.factors]
            return close(inner.number, 0.044715) and sum(degrees) == (2 if is_one else 3)
    return False


def _degree(value: SSAValue, x: SSAValue, ctx: CompileContext) -> int:
    """n, if the value is xⁿ; far away from any n otherwise."""
    if value is x:
        return 1
    match value.owner:
        case MulOp() as op:
            return sum(_degree(operand, x, ctx) for operand in op.operands)
        case PowOp() as op if op.x is x and (exponent := scalar_of(op.y, ctx)) is not None:
            return int(exponent)
        case _:
            return -100
