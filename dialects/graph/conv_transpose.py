"""ONNX's transposed convolution, as convolutions: one for the positions of the result that meet the same taps.

With stride s, position f = s·q + r of the whole result (before `pads` cut it) gets x[q − m]·w[t] for each tap t with
t·dilation = s·m + r. So the residue r chooses the taps, and all q of one residue are a convolution of x. Residues with
equally many taps from the same m on share one convolution, as outputs of it; nothing is multiplied with a zero that
stands for no element.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, prod
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def
from xdsl.pattern_rewriter import PatternRewriter

from .conv import convolve
from .elementwise import CastOp
from .emit import Emit
from .op import FLOATS, Array, DtypeError, GraphOp, Onnx, ShapeError, Tensor, element, promote, shape
from .properties import Properties, attributes, integer, ints, text
from .views import ConcatOp, ExpandOp, ReshapeOp, SliceOp, TransposeOp
from .windows import Sliding, as_bias, from_channels_last, split_pads, to_channels_last


@irdl_op_definition
class ConvTransposeOp(GraphOp):
    """Each element of x [N, C, …] adds itself times the weight [C, O/groups, …] to a window of the result.

    Windows start `strides` apart; `pads` are cut off the result, or added where they are negative. A bias [O] is added.
    """

    name = "graph.conv_transpose"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("ConvTranspose", 1),)
    EXAMPLE: ClassVar[str] = (
        "%2 = graph.conv_transpose %0, %1 {strides = [2, 2], pads = [1, 1, 0, 0], dilations = [1, 1], groups = 1}"
        " : (tensor<1x3x4x4xf32>, tensor<3x5x3x3xf32>) -> tensor<1x5x8x8xf32>"
    )

    x = operand_def(TensorType)
    weight = operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    strides = prop_def(DenseArrayBase)
    pads = prop_def(DenseArrayBase)
    dilations = prop_def(DenseArrayBase)
    groups = prop_def(IntegerAttr)
    result = result_def(TensorType)

    @classmethod
    def normalize(cls, operands: Sequence[Tensor], properties: Properties) -> Properties:
        """Output padding is cut less at the end; `output_shape` and `auto_pad` decide how much is cut."""
        size, kernel = operands[0].get_shape()[2:], operands[1].get_shape()[2:]
        rank = len(size)
        strides, dilations = ints(properties, "strides", [1] * rank), ints(properties, "dilations", [1] * rank)
        extra, pads = ints(properties, "output_padding", [0] * rank), ints(properties, "pads", [0] * (2 * rank))
        if not len(kernel) == len(strides) == len(dilations) == len(extra) == rank or len(pads) != 2 * rank:
            raise ShapeError(
                f"kernel, strides, pads and dilations fit {rank} axes (found {len(kernel)} for the kernel)"
            )
        auto_pad, wanted = text(properties, "auto_pad"), ints(properties, "output_shape")[-rank:]
        if auto_pad == "VALID":
            pads = (0,) * (2 * rank)
        if wanted or auto_pad.startswith("SAME"):
            wanted = wanted or [n * s for n, s in zip(size, strides, strict=True)]
            whole = [n + e for n, e in zip(_whole(size, kernel, strides, dilations), extra, strict=True)]
            cut = [max(0, n - w) for n, w in zip(whole, wanted, strict=True)]
            pads = split_pads(cut, "SAME_UPPER" if auto_pad == "SAME_UPPER" else "SAME_LOWER")
            extra = [e + w - n + c for e, n, w, c in zip(extra, whole, wanted, cut, strict=True)]
        ends = [end - e for end, e in zip(pads[rank:], extra, strict=True)]
        return attributes(
            strides=strides, pads=[*pads[:rank], *ends], dilations=dilations, groups=integer(properties, "groups", 1)
        )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> Sequence[Tensor]:
        x, weight, groups = operands[0].get_shape(), operands[1].get_shape(), integer(properties, "groups")
        rank = len(x) - 2
        strides, pads, dilations = (ints(properties, name) for name in ("strides", "pads", "dilations"))
        if len(weight) != len(x) or rank < 1 or x[1] != weight[0] or groups < 1 or x[1] % groups:
            raise ShapeError(
                f"x is [N, C, …], the weight [C, O/groups, …], and groups divide C"
                f" (found {list(x)}, {list(weight)}, {groups} groups)"
            )
        if not len(strides) == len(dilations) == rank or len(pads) != 2 * rank or min(*strides, *dilations) < 1:
            raise ShapeError(f"strides and dilations are {rank} numbers of 1 or more (found {strides}, {dilations})")
        if min(pads[:rank]) < 0:
            raise ShapeError(f"pads are 0 or more (found {list(pads)})")
        if not all(operand.element_type in FLOATS for operand in operands):
            raise DtypeError(f"operands are floats (found {', '.join(str(o.element_type) for o in operands)})")
        outputs = weight[1] * groups
        if len(operands) > 2 and operands[2].get_shape() != (outputs,):
            raise ShapeError(f"the bias has {outputs} elements (found {operands[2]})")
        whole = _whole(x[2:], weight[2:], strides, dilations)
        size = [whole[i] - pads[i] - pads[rank + i] for i in range(rank)]
        if min(size) < 1:
            raise ShapeError(f"pads leave something of the result (found {size})")
        return [TensorType(promote(operands[:2]), (x[0], outputs, *size))]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        auto_pad = node.get("auto_pad", "NOTSET")
        names = ("strides", "pads", "dilations", "output_padding", "output_shape")
        given = {name: node.get(name) for name in names}
        return list(range(len(constants))), attributes(
            **given, groups=node.get("group", 1), auto_pad=None if auto_pad == "NOTSET" else auto_pad
        )

    def reference(self, x: Array, weight: Array, bias: Array | None = None) -> Array:
        """Adds up what each tap does."""
        groups, size, rank = integer(self.properties, "groups"), x.shape[2:], x.ndim - 2
        strides, pads, dilations = (ints(self.properties, name) for name in ("strides", "pads", "dilations"))
        out = shape(self.result)
        whole = _whole(size, weight.shape[2:], strides, dilations)
        wide = np.zeros(
            (out[0], groups, weight.shape[1], *(max(w, p + n) for w, p, n in zip(whole, pads, out[2:], strict=False)))
        )
        x = x.reshape(x.shape[0], groups, -1, *size)
        weight = weight.reshape(groups, -1, *weight.shape[1:])
        for tap in np.ndindex(weight.shape[3:]):
            places = zip(tap, dilations, size, strides, strict=True)
            spots = tuple(slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in places)
            wide[(..., *spots)] += np.einsum("ngc...,gco->ngo...", x, weight[(..., *tap)])
        y = wide[(..., *(slice(p, p + n) for p, n in zip(pads, out[2:], strict=False)))].reshape(out)
        return y if bias is None else y + bias.reshape(-1, *[1] * rank)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        strides, pads, dilations = (ints(self.properties, name) for name in ("strides", "pads", "dilations"))
        weight = self.weight
        if len(shape(self.x)) == 3:  # a second axis, of extent 1
            strides, dilations, pads = (*strides, 1), (*dilations, 1), (pads[0], 0, pads[1], 0)
            weight = emit.keep(ReshapeOp, weight, shape=[*shape(weight), 1])
        x, groups = to_channels_last(emit, self.x), integer(self.properties, "groups")
        rank = len(strides)
        size = [*shape(self.result)[2:], 1][:rank]
        reach = [before + n for before, n in zip(pads, size, strict=False)]
        y = _Transposed(emit, x, weight, as_bias(emit, self.bias), strides, dilations, groups, reach).run()
        return [from_channels_last(emit, _cut(emit, y, pads[:rank], size), shape(self.result))]


def _whole(size: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> list[int]:
    """Extents of the result before anything is cut."""
    axes = zip(size, kernel, strides, dilations, strict=True)
    return [(n - 1) * stride + (k - 1) * dilation + 1 for n, k, stride, dilation in axes]


def _cut(emit: Emit, y: SSAValue, before: Sequence[int], size: Sequence[int]) -> SSAValue:
    """`size` positions of y [N, …, O] from `before` on."""
    starts, ends = list(before), [b + n for b, n in zip(before, size, strict=True)]
    return emit.keep(SliceOp, y, starts=starts, ends=ends, axes=list(range(1, 1 + len(size))))


@dataclass(frozen=True)
class _Taps:
    """Along one axis: residues of the result's positions that meet taps alike; tap j of residue i is first[i] + j·step,
    and meets x at q − (start + j·dilation)."""

    residues: tuple[int, ...]
    first: tuple[int, ...]
    count: int
    step: int
    start: int
    dilation: int


def _taps(kernel: int, stride: int, dilation: int) -> list[_Taps]:
    """All residues of an axis."""
    common = gcd(stride, dilation)
    step = stride // common
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for residue in range(stride):
        taps = [t for t in range(kernel) if t * dilation % stride == residue]
        start = taps[0] * dilation // stride if taps else 0
        found.setdefault((len(taps), start), []).append((residue, taps[0] if taps else 0))
    return [
        _Taps(tuple(r for r, _ in alike), tuple(t for _, t in alike), count, step, start, dilation // common)
        for (count, start), alike in found.items()
    ]


@dataclass(frozen=True)
class _Transposed:
    """The positions [N, …, O] of a transposed convolution of x [N, …, C] from the first on, at least `size` of them."""

    emit: Emit
    x: SSAValue
    weight: SSAValue
    bias: SSAValue | None
    strides: Sequence[int]
    dilations: Sequence[int]
    groups: int
    size: Sequence[int]

    @property
    def axes(self) -> range:
        return range(len(self.strides))

    @property
    def rows(self) -> list[int]:
        """Positions q of each axis."""
        return [-(-n // stride) for n, stride in zip(self.size, self.strides, strict=True)]

    def run(self) -> SSAValue:
        """[N, q…, r…, O], joined residue by residue, then q and r brought together."""
        classes = [_taps(shape(self.weight)[2 + i], self.strides[i], self.dilations[i]) for i in self.axes]
        rank = len(classes)
        parts = {chosen: self._alike(chosen) for chosen in product(*classes)}
        for i in reversed(self.axes):
            order = [residue for one in classes[i] for residue in one.residues]
            parts = {
                chosen: self._joined([parts[(*chosen, one)] for one in classes[i]], order, 1 + rank + i)
                for chosen in product(*classes[:i])
            }
        perm = [0, *(axis for i in self.axes for axis in (1 + i, 1 + rank + i)), 1 + 2 * rank]
        y = self.emit.keep(TransposeOp, parts[()], perm=perm)
        size = [q * stride for q, stride in zip(self.rows, self.strides, strict=True)]
        return self.emit.keep(ReshapeOp, y, shape=[shape(y)[0], *size, shape(y)[-1]])

    def _joined(self, parts: Sequence[SSAValue], order: Sequence[int], axis: int) -> SSAValue:
        """The parts joined along the axis of residues, in ascending order."""
        emit = self.emit
        joined = parts[0] if len(parts) == 1 else emit(ConcatOp, *parts, axis=axis)
        if list(order) == sorted(order):
            return joined
        places = [order.index(residue) for residue in range(len(order))]
        return emit(ConcatOp, *(_sliced(emit, joined, axis, place, 1) for place in places), axis=axis)

    def _alike(self, chosen: Sequence[_Taps]) -> SSAValue:
        """[N, q…, r…, O] of residues that one convolution gives."""
        emit, rows, size = self.emit, self.rows, shape(self.x)[1:-1]
        n, residues, outputs = shape(self.x)[0], [len(one.residues) for one in chosen], shape(self.weight)[1]
        if not all(one.count for one in chosen):
            alone = emit.constant(0.0, emit.result) if self.bias is None else emit(CastOp, self.bias)
            return emit(ExpandOp, alone, shape=[n, *rows, *residues, outputs * self.groups])
        window = Sliding(
            kernel=tuple(one.count for one in chosen),
            strides=(1,) * len(chosen),
            before=tuple(one.start + (one.count - 1) * one.dilation for one in chosen),
            after=tuple(max(0, q - have - one.start) for q, have, one in zip(rows, size, chosen, strict=True)),
            dilations=tuple(one.dilation for one in chosen),
        )
        y = convolve(emit, self.x, self._weight(chosen), self._bias(prod(residues)), window, self.groups)
        y = _cut(emit, y, [0] * len(rows), rows)
        y = emit.keep(ReshapeOp, y, shape=[n, *rows, self.groups, *residues, outputs])
        rank = len(rows)
        y = emit.keep(TransposeOp, y, perm=[*range(1 + rank), *range(2 + rank, 2 + 2 * rank), 1 + rank, 2 + 2 * rank])
        return emit.keep(ReshapeOp, y, shape=[n, *rows, *residues, outputs * self.groups])

    def _bias(self, times: int) -> SSAValue | None:
        """The bias of each group `times` times."""
        if self.bias is None:
            return None
        size = (self.groups, 1, shape(self.weight)[1])
        bias = self.emit.keep(ReshapeOp, self.bias, shape=size)
        bias = self.emit.keep(ExpandOp, bias, shape=(size[0], times, size[2]))
        return self.emit.keep(ReshapeOp, bias, shape=[prod(size) * times])

    def _weight(self, chosen: Sequence[_Taps]) -> SSAValue:
        """[groups·r…·O, C, taps…]: of each residue the taps that it meets, those of later positions of x last."""
        emit, weight = self.emit, self.weight
        channels, outputs = shape(weight)[:2]
        for i, one in enumerate(chosen):  # axes (C, O, r, taps, r, taps, …, the kernel's axes that are left)
            weight = _residues(emit, weight, 2 + 2 * i, one)
        size, rank = shape(weight)[2:], len(chosen)
        weight = emit.keep(ReshapeOp, weight, shape=[self.groups, channels // self.groups, outputs, *size])
        residues, taps = [3 + 2 * i for i in range(rank)], [4 + 2 * i for i in range(rank)]
        weight = emit.keep(TransposeOp, weight, perm=[0, *residues, 2, 1, *taps])
        whole = self.groups * outputs * prod(size[::2])
        return emit.keep(ReshapeOp, weight, shape=[whole, channels // self.groups, *size[1::2]])


def _residues(emit: Emit, weight: SSAValue, axis: int, one: _Taps) -> SSAValue:
    """An axis of taps as two: residues, and the taps that each meets, in descending order."""
    size, parts = shape(weight), list[SSAValue]()
    for first in one.first:
        last = first + (one.count - 1) * one.step
        part = _sliced(emit, weight, axis, last, one.count, -one.step)
        parts.append(emit.keep(ReshapeOp, part, shape=[*size[:axis], 1, one.count, *size[axis + 1 :]]))
    return parts[0] if len(parts) == 1 else emit(ConcatOp, *parts, element=element(weight), axis=axis)


def _sliced(emit: Emit, x: SSAValue, axis: int, start: int, count: int, step: int = 1) -> SSAValue:
    """`count` elements along an axis from `start` on."""
    size = shape(x)
    starts, steps, sizes = [0] * len(size), [1] * len(size), list(size)
    starts[axis], steps[axis], sizes[axis] = start, step, count
    return emit.keep(SliceOp, x, starts=starts, sizes=sizes, steps=steps)
