"""Integers of 16 bits: inside a graph they are i32, brought back into their range after operators that may leave it.
Unsigned ones of 32 and 64 bits are i32 too, checked at the border as those of 64 bits are; what leaves 32 bits wraps.

So sums, products and the like are exact modulo 2¹⁶, as ONNX has them, and comparisons see the right values.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.defs import SchemaError, get_schema
from xdsl.ir import SSAValue

from ..dialects.graph.arithmetic import AndOp, SubOp, XorOp
from ..dialects.graph.elementwise import CopyOp
from ..dialects.graph.op import element, i32
from .float8 import INNER
from .node import AI_ONNX, Node, Value

DTYPES = (np.dtype(np.int16), np.dtype(np.uint16))
TAGGED = (*DTYPES, np.dtype(np.uint32), np.dtype(np.uint64), *INNER)
"""Types that are i32 inside a graph, or f32, or bytes, and known to the rules of operators."""
MASK, HALF = 0xFFFF, 0x8000
WITHIN = {
    *("Identity", "Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Expand", "ExpandDims", "Tile", "Concat"),
    *("Split", "Slice", "Gather", "GatherElements", "GatherND", "Pad", "DepthToSpace", "SpaceToDepth", "Trilu"),
    *("Where", "Max", "Min", "Clip", "And", "Or", "BitwiseAnd", "BitwiseOr", "Mod", "TopK", "ReduceMax", "ReduceMin"),
    *("If", "Loop", "Scan", "QuantizeLinear"),
}
"""Operators whose results are in the range of their operands."""

CASTS = ("Cast", "CastLike", "BitCast")
"""Their result, where it is the operand as it is, has another type in the model."""

Tags = Mapping[SSAValue, np.dtype[Any]]


def kinds_in(values: Sequence[Value | None], tags: Tags) -> list[np.dtype[Any] | None]:
    """Of each value its type, if that is `TAGGED`."""
    found = [tags.get(v) if isinstance(v, SSAValue) else None if v is None else v.dtype for v in values]
    return [kind if kind in TAGGED else None for kind in found]


def kinds_of(node: Node, tags: Tags) -> list[np.dtype[Any] | None]:
    """Of each output of a node its type, if that is `TAGGED`."""
    given = kinds_in(node.inputs, tags)
    wanted = node.attributes.get("to") if node.operator in CASTS else node.attributes.get("output_dtype")
    if isinstance(wanted, int) and wanted:
        kind = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(wanted))
        return [kind if kind in TAGGED else None]
    if not any(given):
        return []
    if node.domain != AI_ONNX:
        place = 2 if node.operator == "QuantizeLinear" else 0  # of the zero point, or of what is moved
        return [given[place]] if node.operator in WITHIN and len(given) > place else []
    try:
        schema = get_schema(node.operator, min(node.opset, onnx.defs.onnx_opset_version()), "")
    except SchemaError:
        return []
    named: dict[str, np.dtype[Any] | None] = {}
    for index, kind in enumerate(given):
        if kind is not None:
            named[schema.inputs[min(index, len(schema.inputs) - 1)].type_str] = kind
    return [named.get(output.type_str) for output in schema.outputs]


def within(node: Node, value: Value | None, kind: np.dtype[Any]) -> Value | None:
    """The value brought into the range of a type."""
    if not isinstance(value, SSAValue) or element(value) != i32 or node.operator in WITHIN or kind not in DTYPES:
        return value
    mask = node.builder.constant(np.array(MASK, np.int32))
    if kind == np.uint16:
        return node.emit(AndOp, value, mask)
    half = node.builder.constant(np.array(HALF, np.int32))
    return node.emit(SubOp, node.emit(XorOp, node.emit(AndOp, value, mask), half), half)  # none leaves 32 bits


def tagged(node: Node, results: Sequence[Value | None], tags: dict[SSAValue, np.dtype[Any]]) -> Sequence[Value | None]:
    """The results of a node, those of 16 bits within their range; `tags` remembers them."""
    kinds = kinds_of(node, tags) or [None]
    found = list(results)
    if node.operator in CASTS and isinstance(found[0], SSAValue) and tags.get(found[0], kinds[0]) != kinds[0]:
        found[0] = node.emit(CopyOp, found[0])
    for index, kind in enumerate(kinds[: len(found)]):
        if kind is None:
            continue
        value = within(node, found[index], kind)
        found[index] = value
        if isinstance(value, SSAValue):
            tags[value] = kind
    return found
