"""Nodes that onnxruntime computes otherwise than ONNX says, as nodes that it computes right."""

from collections.abc import Mapping, Sequence
from itertools import count

import numpy as np
import onnx
from onnx.helper import make_node

from ..runtime.cpu import HostType
from .model_file import Array

Correction = tuple[Sequence[onnx.NodeProto], Mapping[str, Array]]
MOST = np.iinfo(np.int32).max - 1
"""No axis is longer; to onnxruntime the largest i32 and i64 are ends of their own."""


def corrected(proto: onnx.NodeProto, kinds: Mapping[str, HostType]) -> Correction:
    """The nodes in place of one of `ai.onnx`, or it alone; and constants that they read."""
    if proto.domain in ("", "ai.onnx"):
        if proto.op_type == "NonZero" and proto.input[0] in kinds and kinds[proto.input[0]].shape == ():
            return _no_axes(proto)
        if proto.op_type == "Slice" and len(proto.input) > 4 and proto.input[2] in kinds:
            return _bounded(proto, kinds[proto.input[2]])
    return [proto], {}


def _no_axes(proto: onnx.NodeProto) -> Correction:
    """The places in a tensor without axes have no coordinates: NonZero has the shape [0, n] (onnxruntime: [1, n])."""
    found, none = _unused(proto, 2)
    first = onnx.NodeProto()
    first.CopyFrom(proto)
    first.output[:] = [found]
    return [first, make_node("Gather", [found, none], proto.output, axis=0)], {none: np.zeros(0, np.int64)}


def _bounded(proto: onnx.NodeProto, ends: HostType) -> Correction:
    """Ends behind the last element are the last element, also of a negative step.

    By Less and Where, since Min takes no integers before opset 12.
    """
    bound, most, less = _unused(proto, 3)
    second = onnx.NodeProto()
    second.CopyFrom(proto)
    second.input[2] = bound
    smaller = make_node("Less", [proto.input[2], most], [less])
    first = make_node("Where", [less, proto.input[2], most], [bound])
    return [smaller, first, second], {most: np.array(MOST, ends.dtype)}


def _unused(proto: onnx.NodeProto, wanted: int) -> list[str]:
    """Names that the node does not have."""
    names = (f"{proto.op_type}.{n}" for n in count())
    taken = {*proto.input, *proto.output}
    found = (name for name in names if name not in taken)
    return [next(found) for _ in range(wanted)]
