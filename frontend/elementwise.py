"""ONNX's elementwise operators that are no op of the dialect but a few of them, or that come in several forms."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, SSAValue

from ..dialects.graph.activations import GeluOp, IsInfOp, SiluOp
from ..dialects.graph.arithmetic import (
    AddOp,
    DivOp,
    EqOp,
    FmodOp,
    LtOp,
    MaxOp,
    MinOp,
    ModOp,
    MulOp,
    PowOp,
    SubOp,
    XorOp,
)
from ..dialects.graph.composites import GeluTanhOp, SwishOp
from ..dialects.graph.constants import ELEMENTS as CONSTANTS
from ..dialects.graph.constants import NUMPY
from ..dialects.graph.elementwise import CastOp, ClipOp, WhereOp
from ..dialects.graph.op import BORDER, FLOATS, DtypeError, GraphOp, InferError, element, f32, i32, u8, u32, u64
from .float8 import DTYPES as FLOATS8
from .float8 import INNER, inner_type, low_bits, rounded
from .inputs import ELEMENTS
from .node import Node, Value

UNSIGNED = (np.dtype(np.uint32), np.dtype(np.uint64))
"""Of which the device holds those that fit 31 bits."""
Expansion = Callable[[Node], Sequence[Value]]


# conversions ----------------------------------------------------------------------------------------------------------
def cast(node: Node) -> Sequence[Value]:
    """A change of element type; those of the border are i32 inside a graph."""
    if (kind := inner_type(node.attributes["to"])) is not None:
        return [_inner(node, kind)]
    target = ELEMENTS.get(node.attributes["to"])
    if target is None:
        found = onnx.TensorProto.DataType.Name(node.attributes["to"])
        raise DtypeError(f"values hold f32, f16, bf16, integers or truth values (found a cast to {found})")
    return [converted(node, node.operand(0), i32 if target in BORDER else target)]


def _inner(node: Node, kind: "np.dtype[Any]") -> SSAValue:
    """The first input as a float of 8 bits, or as an integer of fewer."""
    x = node.operand(0)
    if kind not in FLOATS8:
        return low_bits(node, x, kind)
    return rounded(node, x if element(x) in FLOATS else node.emit(CastOp, x, element=f32), kind)


def cast_like(node: Node) -> Sequence[Value]:
    """To the element type of the second input."""
    like = node.given(1)
    kind = node.kinds[1] if len(node.kinds) > 1 else None
    if kind is not None and kind in INNER:
        return [_inner(node, kind)]
    if isinstance(like, SSAValue):
        return [converted(node, node.operand(0), element(like))]
    target = CONSTANTS.get(like.dtype)
    if target is None:
        raise DtypeError(f"values hold f32, f16, bf16, integers or truth values (found a cast to {like.dtype})")
    return [converted(node, node.operand(0), i32 if target in BORDER else target)]


def bit_cast(node: Node) -> Sequence[Value]:
    """The same bits as another integer of as many: modulo 2ⁿ. Of 16 bits and more both are i32."""
    target, x = ELEMENTS.get(node.attributes["to"]), node.operand(0)
    if target in FLOATS or element(x) in FLOATS or target in (None, u32, u64) or node.kinds[0] in UNSIGNED:
        raise InferError(
            "bits are read as other integers of the device (found floats, or unsigned ones that it narrows)"
        )
    return [converted(node, x, i32 if target in BORDER else target)]


def converted(node: Node, x: SSAValue, target: Attribute) -> SSAValue:
    """x with elements of type `target`."""
    return x if element(x) == target else node.emit(CastOp, x, element=target)


# arithmetic -----------------------------------------------------------------------------------------------------------
def variadic(kind: type[GraphOp]) -> Expansion:
    """Two inputs at a time, from the left."""

    def expand(node: Node) -> Sequence[Value]:
        result = node.operand(0)
        for index in range(1, len(node.inputs)):
            result = node.emit(kind, result, node.operand(index))
        return [result]

    return expand


def mean(node: Node) -> Sequence[Value]:
    """The sum, divided by the number of inputs."""
    total = node.materialize(variadic(AddOp)(node)[0])
    return [
        node.emit(DivOp, total, node.builder.constant(np.array(len(node.inputs), np.float32)), element=element(total))
    ]


def remainder(node: Node) -> Sequence[Value]:
    """With the sign of the divisor, or with `fmod` that of the dividend."""
    kind = FmodOp if node.attributes.get("fmod", 0) else ModOp
    return [node.emit(kind, node.operand(0), node.operand(1))]


def power(node: Node) -> Sequence[Value]:
    """x to the power of y; the result has the type of x, whatever that of y."""
    x, y = node.operand(0), node.given(1)
    if isinstance(y, np.ndarray) and element(x) in FLOATS and y.dtype.kind in "iu":
        y = y.astype(np.float32)
    exponent, target = node.materialize(y), element(x)
    if target in FLOATS:
        exponent = exponent if element(exponent) in FLOATS else converted(node, exponent, f32)
    elif element(exponent) != target:  # both in the wider type; what does not fit the narrow one wraps
        wide = f32 if element(exponent) in FLOATS else i32
        x, exponent = converted(node, x, wide), converted(node, exponent, wide)
    result = node.emit(PowOp, x, exponent, element=target if target in FLOATS else element(x))
    return [converted(node, result, target)]


def shift(node: Node) -> Sequence[Value]:
    """By powers of two modulo 2ⁿ: that of a negative number is 0, that of all bits or more too, and so is x ÷ 0."""
    x, y, direction = node.operand(0), node.operand(1), node.attributes["direction"]
    if element(x) in FLOATS or element(x) != element(y):
        raise DtypeError(f"operands are integers of one type (found {element(x)}, {element(y)})")
    if direction not in ("LEFT", "RIGHT"):
        raise InferError(f"direction is LEFT or RIGHT (found {direction!r})", broken=True)
    if direction == "LEFT" or element(x) == u8:
        return [node.emit(MulOp if direction == "LEFT" else DivOp, x, _power_of_two(node, y))]
    return [_shifted_right(node, x, y)]


def _shifted_right(node: Node, x: SSAValue, y: SSAValue) -> SSAValue:
    """Signed: quotients rounded down. All bits but one, or more, or fewer than none leave the sign alone."""
    last, kind = _integer(node, NUMPY[element(x)].itemsize * 8 - 1), element(x)
    x, y = converted(node, x, i32), converted(node, y, i32)
    count = node.emit(WhereOp, node.emit(LtOp, y, _integer(node, 0)), last, node.emit(MinOp, y, last))
    first = node.emit(MinOp, count, _integer(node, 30))  # 2³¹ is no i32
    for part in (first, node.emit(SubOp, count, first)):
        factor = _power_of_two(node, part)
        x = node.emit(DivOp, node.emit(SubOp, x, node.emit(ModOp, x, factor)), factor)
    return converted(node, x, kind)


def _power_of_two(node: Node, y: SSAValue) -> SSAValue:
    return node.emit(PowOp, node.builder.constant(np.array(2, NUMPY[element(y)])), y)


def _integer(node: Node, value: int) -> SSAValue:
    return node.builder.constant(np.array(value, np.int32))


def complement(node: Node) -> Sequence[Value]:
    """x xor a word of ones."""
    x = node.operand(0)
    if element(x) in FLOATS:
        raise DtypeError(f"operands are integers (found {element(x)})")
    return [node.emit(XorOp, x, node.builder.constant(np.invert(np.array(0, NUMPY[element(x)]))))]


def clip(node: Node) -> Sequence[Value]:
    """Between numbers; bounds that are computed, or that f32 does not hold, are operands of max and min."""
    if node.opset < 11:
        return [node.one(ClipOp) if {"min", "max"} & node.attributes.keys() else node.operand(0)]
    bounds = [node.inputs[index] if index < len(node.inputs) else None for index in (1, 2)]
    if all(bound is None for bound in bounds):
        return [node.operand(0)]
    if all(bound is None or (isinstance(bound, np.ndarray) and _immediate(bound)) for bound in bounds):
        return [node.one(ClipOp)]
    x = node.operand(0)
    for bound, kind in zip(bounds, (MaxOp, MinOp), strict=True):
        x = x if bound is None else node.emit(kind, x, node.materialize(bound), element=element(x))
    return [x]


def _immediate(bound: np.ndarray) -> bool:  # pyright: ignore[reportMissingTypeArgument]
    """Whether an instruction's immediate, an f32, holds a number exactly."""
    return bound.size == 1 and bool(np.all(bound.astype(np.float32).astype(np.float64) == bound.astype(np.float64)))


# functions of one number ----------------------------------------------------------------------------------------------
def is_inf(node: Node) -> Sequence[Value]:
    """Of both signs, of one, or of none."""
    x = node.operand(0)
    negative, positive = (bool(node.attributes.get(f"detect_{sign}", 1)) for sign in ("negative", "positive"))
    if negative and positive:
        return [node.one(IsInfOp)]
    if not negative and not positive:
        return [node.emit(LtOp, x, x)]  # never
    bound = np.array(np.inf if positive else -np.inf, np.float32)
    return [node.emit(EqOp, x, node.builder.constant(bound))]


def prelu(node: Node) -> Sequence[Value]:
    """slope·x where x is negative, else x."""
    x, slope = node.operand(0), node.operand(1)
    zero = node.builder.constant(np.array(0, NUMPY[element(x)] if element(x) not in FLOATS else np.float32))
    below = node.emit(LtOp, x, zero, element=i1)
    return [node.emit(WhereOp, below, node.emit(MulOp, x, slope, element=element(x)), x, element=element(x))]


def gelu(node: Node) -> Sequence[Value]:
    """The exact one, or its approximation with tanh."""
    if node.attributes.get("approximate") == "tanh":
        return [node.emit(GeluTanhOp, node.operand(0))]
    return [node.one(GeluOp)]


def swish(node: Node) -> Sequence[SSAValue]:
    """x·sigmoid(α·x)."""
    x = node.operand(0)
    alpha = float(node.attributes.get("alpha", 1.0))
    return [node.emit(SiluOp, x) if alpha == 1.0 else node.emit(SwishOp, x, alpha=alpha)]


def swiglu(node: Node) -> Sequence[Value]:
    """The gate's x·sigmoid(α·x), times the other input."""
    return [node.emit(MulOp, swish(node)[0], node.operand(1))]


ELEMENTWISE: Mapping[str, Expansion] = {
    "BitCast": bit_cast,
    "BitShift": shift,
    "BitwiseNot": complement,
    "Cast": cast,
    "CastLike": cast_like,
    "Clip": clip,
    "Gelu": gelu,
    "IsInf": is_inf,
    "Max": variadic(MaxOp),
    "Mean": mean,
    "Min": variadic(MinOp),
    "Mod": remainder,
    "PRelu": prelu,
    "Pow": power,
    "Sum": variadic(AddOp),
    "SwiGLU": swiglu,
    "Swish": swish,
}
"""By operator."""
