"""Floats of 8 bits: inside a graph they are f32, rounded where a value becomes one of them.

They stand between nodes, as in a model that was quantised to them; the border of the device has no such type.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto
from xdsl.ir import SSAValue

from ..dialects.graph.activations import AbsOp, RoundOp
from ..dialects.graph.arithmetic import DivOp, EqOp, GtOp, LtOp, MaxOp, MulOp, SubOp
from ..dialects.graph.elementwise import CastOp, ClipOp, WhereOp
from ..dialects.graph.op import element, f32
from .node import Node


@dataclass(frozen=True, slots=True)
class Format:
    """`bits` of the significand that are stored, the exponent of the smallest normal number, the largest number."""

    bits: int
    least: int
    most: float
    infinite: bool = False
    """It has infinities."""
    signed_zero: bool = True


FORMATS: Mapping[int, Format] = {
    TensorProto.FLOAT8E4M3FN: Format(3, -6, 448.0),
    TensorProto.FLOAT8E4M3FNUZ: Format(3, -7, 240.0, signed_zero=False),
    TensorProto.FLOAT8E5M2: Format(2, -14, 57344.0, infinite=True),
    TensorProto.FLOAT8E5M2FNUZ: Format(2, -15, 57344.0, signed_zero=False),
}
DTYPES = tuple(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code)) for code in FORMATS)
CODES = dict(zip(DTYPES, FORMATS, strict=True))
SPLIT = 2.0**23 + 1
"""Veltkamp's factor that leaves one bit of 24."""
BEYOND = 1.125
"""Times the largest number is rounded to a larger one, and f16 holds it."""

assert all(ml_dtypes.finfo(dtype).max == FORMATS[code].most for dtype, code in CODES.items())


def rounded(node: Node, x: SSAValue, code: int) -> SSAValue:
    """The values of x in a format, as f32: to nearest even, beyond its range by the attribute `saturate`."""
    kind = FORMATS[code]
    if element(x) != f32:
        x = node.emit(CastOp, x, element=f32)
    near = node.emit(ClipOp, x, lo=-BEYOND * kind.most, hi=BEYOND * kind.most)
    step = _step(node, node.emit(AbsOp, near), kind)
    value = node.emit(MulOp, node.emit(RoundOp, node.emit(DivOp, near, step)), step)
    value = _limited(node, value, kind, bool(node.attributes.get("saturate", 1)))
    if kind.signed_zero:
        return value
    zero = _number(node, 0.0)
    return node.emit(WhereOp, node.emit(EqOp, value, zero), zero, value)


def _step(node: Node, size: SSAValue, kind: Format) -> SSAValue:
    """The distance of neighbours in the format around numbers of a size."""
    scaled = node.emit(MulOp, size, _number(node, SPLIT))
    power = node.emit(SubOp, scaled, node.emit(SubOp, scaled, size))  # of two, at most one above
    above = node.emit(GtOp, power, size)
    power = node.emit(WhereOp, above, node.emit(MulOp, power, _number(node, 0.5)), power)
    power = node.emit(MaxOp, power, _number(node, 2.0**kind.least))
    return node.emit(MulOp, power, _number(node, 2.0**-kind.bits))


def _limited(node: Node, value: SSAValue, kind: Format, saturate: bool) -> SSAValue:
    if saturate:
        return node.emit(ClipOp, value, lo=-kind.most, hi=kind.most)
    high, low = (np.inf, -np.inf) if kind.infinite else (np.nan, np.nan)
    value = node.emit(WhereOp, node.emit(GtOp, value, _number(node, kind.most)), _number(node, high), value)
    return node.emit(WhereOp, node.emit(LtOp, value, _number(node, -kind.most)), _number(node, low), value)


def _number(node: Node, value: float) -> SSAValue:
    return node.builder.constant(np.array(value, np.float32))
