"""DFT and STFT: products with a constant table, the transform of each unit vector."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ..dialects.graph.arithmetic import MulOp
from ..dialects.graph.constants import NUMPY
from ..dialects.graph.contract import MatMulOp
from ..dialects.graph.op import FLOATS, DtypeError, InferError, ShapeError, element, shape
from ..dialects.graph.views import ReshapeOp, TransposeOp, normal_axis
from ..dialects.standin import in_order
from .movement import take
from .node import Node, Value

Array = np.ndarray[Any, Any]
MOST_LENGTH = 4096
"""Elements of a transform; its table has up to four numbers for each pair of them."""


def dft(node: Node) -> Sequence[Value]:
    """Complex numbers are pairs on the last axis, real ones have extent 1 there."""
    x, given = node.operand(0), node.known(1)
    rank = len(shape(x))
    if node.opset < 20:
        axis = node.attributes.get("axis", 1)
    else:
        named = node.known(2)
        axis = -2 if named is None or not named.size else int(named.reshape(-1)[0])
    place = normal_axis(axis, rank)
    inverse, onesided = (bool(node.attributes.get(name, 0)) for name in ("inverse", "onesided"))
    if element(x) not in FLOATS or place == rank - 1 or shape(x)[-1] not in (1, 2):
        raise DtypeError(f"the operand holds floats [N, …, 1 or 2] and has the axis (found {x.type}, axis {axis})")
    size = shape(x)[place]
    length = 2 * (size - 1) if inverse and onesided else size
    length = length if given is None or not given.size else int(given.reshape(-1)[0])
    table = _table(size, shape(x)[-1], length, inverse, onesided)
    perm = [*(i for i in range(rank - 1) if i != place), place, rank - 1]
    x = x if perm == list(range(rank)) else node.emit(TransposeOp, x, perm=perm)
    y = _transformed(node, x, table)
    return [y if perm == list(range(rank)) else node.emit(TransposeOp, y, perm=[perm.index(i) for i in range(rank)])]


def _table(size: int, parts: int, length: int, inverse: bool, onesided: bool) -> Array:
    """[size, parts, places, parts of the result]: the transform of each unit vector, real or imaginary."""
    if max(size, length) > MOST_LENGTH:
        raise InferError(f"a transform has at most {MOST_LENGTH} elements (found {max(size, length)})")
    units = np.eye(size)[:, None] * (np.array([1, 1j])[:parts, None])
    if inverse and onesided:
        return np.fft.irfft(units, length)[..., None]
    found = np.fft.ifft(units, length) if inverse else np.fft.fft(units, length)
    found = found[..., : length // 2 + 1] if onesided else found
    return np.stack([found.real, found.imag], -1)


def _transformed(node: Node, x: SSAValue, table: Array) -> SSAValue:
    """The last two axes, elements and their parts, times the table."""
    *outer, size, parts = shape(x)
    wide = in_order(table.reshape(size * parts, math.prod(table.shape[2:])).astype(NUMPY[element(x)]))
    x = node.emit(ReshapeOp, x, shape=[*outer, size * parts])
    y = node.emit(MatMulOp, x, node.materialize(wide), element=element(x))
    return node.emit(ReshapeOp, y, shape=[*outer, *table.shape[2:]])


def stft(node: Node) -> Sequence[Value]:
    """The transforms of frames that follow each other, times a window."""
    x, step, length = node.operand(0), node.known(1), node.known(3)
    window = node.inputs[2] if len(node.inputs) > 2 else None
    if element(x) not in FLOATS or step is None or len(shape(x)) not in (2, 3):
        raise DtypeError(f"the operand holds floats [N, signal, 1 or 2], the step is known (found {x.type}, {step})")
    x = x if len(shape(x)) == 3 else node.emit(ReshapeOp, x, shape=[*shape(x), 1])
    n, count, parts = shape(x)
    known = shape(window) if isinstance(window, SSAValue) else () if window is None else window.shape
    size = int(length.reshape(-1)[0]) if length is not None and length.size else known[0] if known else count
    hop = int(step.reshape(-1)[0])
    if not 1 <= size <= count or hop < 1 or known not in ((), (size,)):
        raise ShapeError(f"frames of {size} lie in the signal, with a window of {size} (found {count} and {known})")
    frames = (count - size) // hop + 1
    places = [start * hop + i for start in range(frames) for i in range(size)]
    x = node.emit(ReshapeOp, take(node, x, 1, places), shape=[n, frames, size, parts])
    table = _table(size, parts, size, inverse=False, onesided=bool(node.attributes.get("onesided", 1)))
    if isinstance(window, SSAValue):
        x = node.emit(MulOp, x, node.emit(ReshapeOp, window, shape=[size, 1]), element=element(x))
    elif window is not None:
        table = table * window[:, None, None, None]
    return [_transformed(node, x, table)]
