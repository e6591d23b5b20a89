"""MatMulInteger and ConvInteger: products of bytes less their zero points, exact in i32.

With a' = a − za and b' = b − zb, the sum over k of a'·b' is Σ a·b − za·Σ b − zb·(Σ a − K·za): one product of the bytes
as they are, and sums of one operand each. A u8 is an i8 plus 128, which moves to its zero point.
"""

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from ..dialects.graph.arithmetic import MulOp, SubOp
from ..dialects.graph.contract import MatMulOp
from ..dialects.graph.conv import ConvOp
from ..dialects.graph.elementwise import CastOp
from ..dialects.graph.op import DtypeError, element, i8, i32, shape, u8
from ..dialects.graph.properties import attributes, ints
from ..dialects.graph.reduce import ReduceSumOp
from ..dialects.graph.views import ExpandOp, ReshapeOp
from ..dialects.graph.windows import normal_window, window_from_onnx
from .movement import framed
from .node import Node, Value, size_of

SIGN = 128


Places = tuple[int, int]
"""Which inputs of a node are an operand and its zero point."""


def matmul_integer(node: Node) -> Sequence[Value]:
    """A product of bytes less their zero points."""
    return [matmul_bytes(node, (0, 2), (1, 3))]


def matmul_bytes(node: Node, left: Places, right: Places) -> SSAValue:
    """The product, i32; there is one zero point of a, or one per row; one of b, or one per column."""
    size = [size_of(node.given(index)) for index, _ in (left, right)]
    a, za = _operand(node, *left)
    b, zb = _operand(node, *right)
    a = a if len(size[0]) > 1 else node.emit(ReshapeOp, a, shape=[1, *size[0]])
    b = b if len(size[1]) > 1 else node.emit(ReshapeOp, b, shape=[*size[1], 1])
    y = node.emit(MatMulOp, a, b)
    if za is not None:
        za = node.emit(ReshapeOp, za, shape=[-1, 1]) if len(shape(za)) == 1 and shape(za) != (1,) else za
        y = node.emit(SubOp, y, node.emit(MulOp, za, _summed(node, b, -2)))
    if zb is not None:
        rows = _summed(node, a, -1)
        if za is not None:
            rows = node.emit(SubOp, rows, node.emit(MulOp, za, _number(node, shape(a)[-1])))
        y = node.emit(SubOp, y, node.emit(MulOp, zb, rows))
    target = [
        *shape(y)[:-2],
        *(shape(y)[-2:-1] if len(size[0]) > 1 else ()),
        *(shape(y)[-1:] if len(size[1]) > 1 else ()),
    ]
    return y if shape(y) == tuple(target) else node.emit(ReshapeOp, y, shape=target)


def conv_integer(node: Node) -> Sequence[Value]:
    """A convolution of bytes less their zero points."""
    return [conv_bytes(node, (0, 2), (1, 3))]


def conv_bytes(node: Node, image: Places, kernel: Places) -> SSAValue:
    """The convolution, i32: one zero point of x, which padding has too; one of w, or one per output."""
    x, zx = _operand(node, *image)
    w, zw = _operand(node, *kernel)
    given, rank = window_from_onnx(node.attributes), len(shape(x)) - 2
    window = normal_window(shape(x)[2:], ints(given, "kernel", shape(w)[2:]), given)
    if zx is not None and any(pads := ints(window, "pads")):
        fill = node.emit(CastOp, node.emit(ReshapeOp, zx, shape=[1] * (rank + 2)), element=i8)
        x = framed(node, x, [0, 0, *pads[:rank]], [0, 0, *pads[rank:]], fill)
        window |= attributes(pads=[0] * len(pads))
    groups = node.attributes.get("group", 1)
    y = node.emit(ConvOp, x, w, groups=groups, **window)
    if zx is not None:
        sums = node.emit(ReduceSumOp, node.emit(CastOp, w, element=i32), axes=list(range(1, rank + 2)))
        shift = node.emit(ReshapeOp, node.emit(MulOp, zx, sums), shape=[-1, *[1] * rank])
        y = node.emit(SubOp, y, shift)
    if zw is not None:
        ones = node.emit(ExpandOp, node.builder.constant(np.ones(1, np.int8)), shape=shape(w))
        taps = node.emit(ConvOp, x, ones, groups=groups, **window)
        if zx is not None:
            taps = node.emit(SubOp, taps, node.emit(MulOp, zx, _number(node, math.prod(shape(w)[1:]))))
        if shape(zw) not in ((), (1,)):
            zw = node.emit(ReshapeOp, zw, shape=[-1, *[1] * rank])
        y = node.emit(SubOp, y, node.emit(MulOp, zw, taps))
    return y


def _operand(node: Node, index: int, zero_index: int) -> tuple[SSAValue, SSAValue | None]:
    """An operand as i8, and its zero point as i32, None if that is 0."""
    x = node.operand(index)
    if element(x) not in (i8, u8):
        raise DtypeError(f"{node.operator} takes bytes (found {element(x)})")
    given = node.inputs[zero_index] if zero_index < len(node.inputs) else None
    unsigned = element(x) == u8
    if isinstance(given, SSAValue):
        zero = node.emit(CastOp, given, element=i32)
        zero = node.emit(SubOp, zero, _number(node, SIGN)) if unsigned else zero
    else:
        known = np.zeros((), np.int32) if given is None else given.astype(np.int32)
        known = known - SIGN if unsigned else known
        zero = node.builder.constant(known.astype(np.int32)) if known.any() else None
    if unsigned:
        moved = node.emit(SubOp, x, node.builder.constant(np.array(SIGN, np.uint8)), element=u8)
        x = node.emit(CastOp, moved, element=i8)
    return x, zero


def _number(node: Node, value: int) -> SSAValue:
    return node.builder.constant(np.array(value, np.int32))


def _summed(node: Node, x: SSAValue, axis: int) -> SSAValue:
    return node.emit(ReduceSumOp, node.emit(CastOp, x, element=i32), axes=[axis], keepdims=True)
