"""What ONNX says of the sizes and values of a node's inputs and what no op of the dialect looks at."""

from collections.abc import Callable, Mapping

import numpy as np

from ..dialects.graph.op import ShapeError
from .node import Node, size_of


def check_values(node: Node) -> None:
    """Raises `ShapeError` for the first thing that the standard forbids."""
    rule = RULES.get(node.operator)
    if rule is not None and node.proto.domain in ("", "ai.onnx"):
        rule(node)


def _lengths(node: Node) -> None:
    """Lengths of sequences, if they are known, are those of steps."""
    given = node.inputs[4] if len(node.inputs) > 4 else None
    size = size_of(node.given(0))
    if not isinstance(given, np.ndarray) or not given.size or len(size) != 3:
        return
    steps = size[1 if node.attributes.get("layout", 0) else 0]
    if given.min() < 0 or given.max() > steps:
        raise ShapeError(f"sequence_lens are 0 to {steps}, the steps of X (found {given.reshape(-1).tolist()[:8]})")


def _window(node: Node) -> None:
    """The kernel of a convolution lies in the padded image, unless that is without elements."""
    places = {"QLinearConv": (0, 3)}
    x, weight = (size_of(node.given(index)) for index in places.get(node.operator, (0, 1)))
    rank = len(x) - 2
    same = node.attributes.get("auto_pad", "NOTSET").startswith("SAME")
    pads = node.attributes.get("pads", [0] * (2 * rank))
    dilations = node.attributes.get("dilations", [1] * rank)
    if same or 0 in x or 0 in weight or rank < 1 or len(weight) != len(x):
        return
    if len(pads) != 2 * rank or len(dilations) != rank:
        return  # told by the op
    if node.attributes.get("auto_pad") == "VALID":
        pads = [0] * (2 * rank)
    for i, (size, taps, dilation) in enumerate(zip(x[2:], weight[2:], dilations, strict=True)):
        reach, room = dilation * (taps - 1) + 1, size + pads[i] + pads[rank + i]
        if reach > room:
            found = f"{taps} taps that reach over {reach} of the {room} of an image {list(x[2:])}"
            raise ShapeError(f"the kernel {list(weight[2:])} lies in the padded image (found {found})")


RULES: Mapping[str, Callable[[Node], None]] = {
    "Conv": _window,
    "ConvInteger": _window,
    "DeformConv": _window,
    "GRU": _lengths,
    "LSTM": _lengths,
    "QLinearConv": _window,
    "RNN": _lengths,
}
