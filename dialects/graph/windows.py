"""Windows as ONNX has them: over any number of axes after the second, with defaults and `auto_pad`.

The machine's windows slide over two axes of a channels-last tensor. One over a single axis gets a second one of extent
1 behind it, since an image is cut between its rows; of one over three, `fold_axis` makes the taps of the first axis
further channels.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from xdsl.ir import Attribute, SSAValue

from .elementwise import CastOp
from .emit import Emit
from .op import FLOATS, ShapeError, element, f32, shape
from .properties import Properties, attributes, ints, text
from .views import ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp

NUMBERS = ("kernel", "strides", "pads", "dilations")


@dataclass(frozen=True)
class Sliding:
    """Numbers of a window, one per axis."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    dilations: tuple[int, ...]

    @staticmethod
    def of(properties: Properties, rank: int) -> "Sliding":
        """The window of an op over `rank` axes; raises `InferError`."""
        found = {name: ints(properties, name) for name in NUMBERS}
        for name, values in found.items():
            count, least = (2 * rank, 0) if name == "pads" else (rank, 1)
            if len(values) != count or min(values) < least:
                raise ShapeError(f"{name} are {count} numbers of {least} or more (found {list(values)})")
        pads = found["pads"]
        return Sliding(found["kernel"], found["strides"], pads[:rank], pads[rank:], found["dilations"])

    @property
    def reach(self) -> list[int]:
        """Positions that a window spans, by axis."""
        return [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]

    def extents(self, size: Sequence[int]) -> list[int]:
        """Windows along each axis of an operand of `size`; raises `InferError`.

        ONNX's inference rounds to zero: a window that reaches out by less than a stride is one to it, not none.
        """
        rooms = [n + b + a - r for n, b, a, r in zip(size, self.before, self.after, self.reach, strict=True)]
        if min(rooms) < 0:
            i = next(i for i, room in enumerate(rooms) if room < 0)
            raise ShapeError(
                f"the window fits into the padded operand (found {self.kernel[i]} taps over {size[i]})",
                broken=any(room <= -stride for room, stride in zip(rooms, self.strides, strict=True)),
            )
        return [room // stride + 1 for room, stride in zip(rooms, self.strides, strict=True)]

    def part(self, axes: slice) -> "Sliding":
        """The window over some of the axes."""
        return replace(self, **{name: getattr(self, name)[axes] for name in _FIELDS})

    def trimmed(self, size: Sequence[int]) -> "Sliding":
        """The same windows without the first and last taps that read nothing but padding in each of them."""
        axes = zip(size, self.extents(size), *(getattr(self, name) for name in _FIELDS), strict=True)
        return Sliding(*zip(*(_trimmed(*axis) for axis in axes), strict=True))

    def two_axes(self) -> dict[str, Any]:
        """Properties of a window over two axes; of one over a single axis, the second has extent 1."""
        one = len(self.kernel) == 1
        unit, zero = ((1,), (0,)) if one else ((), ())
        return {
            "kernel": (*self.kernel, *unit),
            "strides": (*self.strides, *unit),
            "pads": (*self.before, *zero, *self.after, *zero),
            "dilations": (*self.dilations, *unit),
        }


_FIELDS = tuple(field.name for field in fields(Sliding))


def _trimmed(
    size: int, count: int, kernel: int, stride: int, before: int, after: int, dilation: int
) -> tuple[int, int, int, int, int]:
    """One axis of a window, of which there are `count`, without taps that read only padding; none is cropped."""
    last = (count - 1) * stride  # where the last window starts, in the padded operand
    first_tap = min(max(0, -(-(before - last) // dilation)), before // dilation, kernel - 1)
    end = before + size - 1  # of the operand
    last_tap = min(kernel - 1, max(end // dilation, -(-(end - last) // dilation), first_tap))
    if last_tap < kernel - 1:
        after = last + dilation * last_tap - end
    return last_tap - first_tap + 1, stride, before - first_tap * dilation, after, dilation


def window_from_onnx(node: Mapping[str, Any]) -> dict[str, Attribute]:
    """Properties of a sliding window; `auto_pad` stays until the operand's shape is known."""
    auto_pad = node.get("auto_pad", "NOTSET")
    return attributes(
        kernel=node.get("kernel_shape"),
        strides=node.get("strides"),
        pads=node.get("pads"),
        dilations=node.get("dilations"),
        auto_pad=None if auto_pad == "NOTSET" else auto_pad,
    )


def normal_window(size: Sequence[int], kernel: Sequence[int], properties: Properties) -> dict[str, Attribute]:
    """Every property of a window over axes of `size`, with ONNX's defaults and `auto_pad` worked out."""
    rank = len(size)
    strides, dilations = ints(properties, "strides", [1] * rank), ints(properties, "dilations", [1] * rank)
    pads, auto_pad = ints(properties, "pads", [0] * (2 * rank)), text(properties, "auto_pad")
    if not len(kernel) == len(strides) == len(dilations) == rank or len(pads) != 2 * rank:
        raise ShapeError(f"kernel, strides, pads and dilations fit {rank} axes (found {len(kernel)} for the kernel)")
    if auto_pad == "VALID":
        pads = (0,) * (2 * rank)
    if auto_pad.startswith("SAME"):
        reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
        whole = [max(0, (-(-s // t) - 1) * t + r - s) for s, t, r in zip(size, strides, reach, strict=True)]
        pads = split_pads(whole, auto_pad)
    return attributes(kernel=kernel, strides=strides, pads=pads, dilations=dilations)


def split_pads(whole: Sequence[int], auto_pad: str) -> tuple[int, ...]:
    """Begins, then ends; the odd one is at the end, or at the beginning with SAME_LOWER."""
    before = [w - w // 2 if auto_pad == "SAME_LOWER" else w // 2 for w in whole]
    return (*before, *(w - b for w, b in zip(whole, before, strict=True)))


def to_channels_last(emit: Emit, x: SSAValue) -> SSAValue:
    """[N, C, …] as [N, …, C] with at least two axes in between."""
    size = shape(x)
    if len(size) == 3:
        x = emit.keep(ReshapeOp, x, shape=[*size, 1])
    return emit.keep(TransposeOp, x, perm=[0, *range(2, len(shape(x))), 1])


def from_channels_last(emit: Emit, x: SSAValue, size: Sequence[int]) -> SSAValue:
    """[N, …, C] as a tensor of `size`, [N, C, …]."""
    rank = len(shape(x))
    x = emit.keep(TransposeOp, x, perm=[0, rank - 1, *range(1, rank - 1)])
    return x if len(size) == rank else emit.keep(ReshapeOp, x, shape=size)


def as_bias(emit: Emit, bias: SSAValue | None) -> SSAValue | None:
    """A bias of floats is f32."""
    if bias is None or element(bias) == f32 or element(bias) not in FLOATS:
        return bias
    return emit(CastOp, bias, element=f32)


def padded(emit: Emit, x: SSAValue, before: Sequence[int], after: Sequence[int]) -> SSAValue:
    """x [N, …, C] with zeros around the axes in between."""
    if not any((*before, *after)):
        return x
    return emit.keep(PadOp, x, before=[0, *before, 0], after=[0, *after, 0])


def fold_axis(emit: Emit, x: SSAValue, window: Sliding, groups: int) -> SSAValue:
    """x [N, D, …, C] as [N, OD, …, taps·C]: the taps over D of each window are channels, in each of `groups`."""
    (depth,) = window.part(slice(1)).extents(shape(x)[1:2])
    rank = len(shape(x))
    x = padded(emit, x, [window.before[0]] + [0] * (rank - 3), [window.after[0]] + [0] * (rank - 3))
    step, parts = window.strides[0], list[SSAValue]()
    for tap in range(window.kernel[0]):
        first = tap * window.dilations[0]
        part = emit.keep(SliceOp, x, starts=[first], ends=[first + (depth - 1) * step + 1], axes=[1], steps=[step])
        size = shape(part)
        parts.append(emit.keep(ReshapeOp, part, shape=[*size[:-1], groups, size[-1] // groups]))
    joined = parts[0] if len(parts) == 1 else emit(ConcatOp, *parts, element=element(x), axis=rank)
    return emit.keep(ReshapeOp, joined, shape=[*shape(joined)[:-2], math.prod(shape(joined)[-2:])])
