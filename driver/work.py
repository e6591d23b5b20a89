"""How much work an ONNX node is: its multiplications with addition, from shapes alone."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import onnx

Shape = tuple[int, ...]
Shapes = Sequence[Shape | None]


def macs(node: onnx.NodeProto, inputs: Shapes, outputs: Shapes) -> int:
    """Products that are summed. None stands for a shape that is not known, with which nothing is counted."""
    rule = RULES.get(node.op_type)
    if rule is None:
        return 0
    attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute if each.type}
    try:
        return int(rule(attributes, inputs, outputs))
    except (IndexError, KeyError, TypeError, ValueError):
        return 0


Rule = Callable[[Mapping[str, Any], Shapes, Shapes], int]


def _at(shapes: Shapes, place: int) -> Shape:
    found = shapes[place]
    if found is None:
        raise ValueError("not known")
    return found


def _convolution(weight: int) -> Rule:
    """Each result is a sum over the taps and channels of one filter."""
    return lambda attributes, inputs, outputs: prod(_at(outputs, 0)) * prod(_at(inputs, weight)[1:])


def _transposed(attributes: Mapping[str, Any], inputs: Shapes, outputs: Shapes) -> int:
    """Each element of the operand goes through the filters of its channel."""
    return prod(_at(inputs, 0)) * prod(_at(inputs, 1)[1:])


def _product(attributes: Mapping[str, Any], inputs: Shapes, outputs: Shapes) -> int:
    a = list(_at(inputs, 0))
    depth = a[-2] if attributes.get("transA", 0) and len(a) > 1 else a[-1]
    return prod(_at(outputs, 0)) * depth


def _by_attribute(attributes: Mapping[str, Any], inputs: Shapes, outputs: Shapes) -> int:
    return prod(_at(outputs, 0)) * attributes["K"]


def _recurrent(attributes: Mapping[str, Any], inputs: Shapes, outputs: Shapes) -> int:
    """In each step every sequence goes through all weights."""
    return prod(_at(inputs, 0)[:2]) * (prod(_at(inputs, 1)) + prod(_at(inputs, 2)))


def _einsum(attributes: Mapping[str, Any], inputs: Shapes, outputs: Shapes) -> int:
    equation = attributes["equation"].decode().replace(" ", "")
    terms, extents = equation.partition("->")[0].split(","), dict[str, int]()
    for place, term in enumerate(terms):
        extents |= dict(zip(reversed(term.replace("...", "")), reversed(_at(inputs, place)), strict=False))
    return prod(extents.values()) if len(terms) > 1 else 0


def _attention(past: int) -> Rule:
    """Queries with keys, and weights with values; keys of the past count as well."""

    def rule(attributes: Mapping[str, Any], inputs: Shapes, outputs: Shapes) -> int:
        query, key = _at(inputs, 0), list(_at(inputs, 1))
        keys = key[-2] + (list(_at(inputs, past))[-2] if len(inputs) > past and inputs[past] is not None else 0)
        return keys * (prod(query) + prod(_at(outputs, 0)))

    return rule


def _projected(attributes: Mapping[str, Any], inputs: Shapes, outputs: Shapes) -> int:
    """Attention of com.microsoft: with the projections before it."""
    x, weight = _at(inputs, 0), _at(inputs, 1)
    if len(weight) != 2 or "num_heads" not in attributes or len(x) != 3:
        return _attention(4)(attributes, inputs, outputs)
    return prod(x[:2]) * prod(weight) + 2 * x[1] * prod(_at(outputs, 0))


RULES: Mapping[str, Rule] = {
    "Attention": _projected,
    "Conv": _convolution(1),
    "ConvInteger": _convolution(1),
    "ConvTranspose": _transposed,
    "DeformConv": _convolution(1),
    "DynamicQuantizeLSTM": _recurrent,
    "DynamicQuantizeMatMul": _product,
    "Einsum": _einsum,
    "FusedConv": _convolution(1),
    "FusedGemm": _product,
    "FusedMatMul": _product,
    "FusedMatMulActivation": _product,
    "GRU": _recurrent,
    "Gemm": _product,
    "GemmFastGelu": _product,
    "GroupQueryAttention": _attention(3),
    "LSTM": _recurrent,
    "MatMul": _product,
    "MatMulBnb4": _by_attribute,
    "MatMulInteger": _product,
    "MatMulInteger16": _product,
    "MatMulIntegerToFloat": _product,
    "MatMulNBits": _by_attribute,
    "MultiHeadAttention": _attention(6),
    "NhwcConv": _convolution(1),
    "NhwcFusedConv": _convolution(1),
    "QAttention": _projected,
    "QGemm": _product,
    "QLinearConv": _convolution(3),
    "QLinearMatMul": _product,
    "RNN": _recurrent,
    "TransposeMatMul": _product,
}
"""Operators that multiply and add."""
