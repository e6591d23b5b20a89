"""Floats of 8 bits and integers of fewer: inside a graph they are f32, and bytes in the range of their type.

They stand between nodes, as in a model that was quantised to them, and callers see them; the border of a part for the
CPU has no such types.
"""

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto
from xdsl.ir import SSAValue

from ..dialects.graph.arithmetic import AddOp, AndOp, SubOp
from ..dialects.graph.constants import ELEMENTS
from ..dialects.graph.elementwise import CastOp
from ..dialects.graph.float8 import FORMATS, RoundFloatOp
from ..dialects.graph.op import element, i32
from .node import Node

_CODES = TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ
CODES: Mapping["np.dtype[Any]", int] = {np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code)): code for code in _CODES}
"""ONNX's number of each float of 8 bits."""
DTYPES = tuple(CODES)
FEW_BITS: Mapping["np.dtype[Any]", type[np.integer[Any]]] = {
    **dict.fromkeys((np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.int2)), np.int8),
    **dict.fromkeys((np.dtype(ml_dtypes.uint4), np.dtype(ml_dtypes.uint2)), np.uint8),
}
"""Integers that have no place of their own in memory, and the bytes that hold them."""
INNER = (*DTYPES, *FEW_BITS)
"""Types of values that the device holds as others."""
_BY_CODE: Mapping[int, "np.dtype[Any]"] = {onnx.helper.np_dtype_to_tensor_dtype(dtype): dtype for dtype in INNER}

assert [dtype.name for dtype in DTYPES] == list(FORMATS)
assert all(ml_dtypes.finfo(dtype).max == FORMATS[dtype.name].most for dtype in DTYPES)


def inner_type(code: int) -> "np.dtype[Any] | None":
    """Of one of ONNX's numbers, if it is one of `INNER`."""
    return _BY_CODE.get(code)


def holder(kind: "np.dtype[Any]") -> "np.dtype[Any]":
    """The type that holds the values of one of `INNER`."""
    return np.dtype(FEW_BITS.get(kind, np.float32))


def rounded(node: Node, x: SSAValue, kind: "np.dtype[Any]", scale: SSAValue | None = None) -> SSAValue:
    """x, or x ÷ scale, as values of a float of 8 bits: to nearest even, beyond by the attribute `saturate`."""
    saturate = bool(node.attributes.get("saturate", 1)) or None
    return node.emit(RoundFloatOp, x, scale, format=kind.name, saturate=saturate)


def limits(kind: "np.dtype[Any]") -> tuple[int, int]:
    """The least and the largest integer of a type of few bits."""
    held = ml_dtypes.iinfo(kind)
    return int(held.min), int(held.max)


def low_bits(node: Node, x: SSAValue, kind: "np.dtype[Any]") -> SSAValue:
    """x as an integer of few bits, modulo 2ⁿ."""
    least, most = limits(kind)
    x = x if element(x) == i32 else node.emit(CastOp, x, element=i32)
    mask, offset = (node.builder.constant(np.array(value, np.int32)) for value in (most - least, -least))
    shifted = x if not least else node.emit(AddOp, x, offset)
    kept = node.emit(AndOp, shifted, mask)
    return node.emit(
        CastOp, kept if not least else node.emit(SubOp, kept, offset), element=ELEMENTS[np.dtype(FEW_BITS[kind])]
    )
