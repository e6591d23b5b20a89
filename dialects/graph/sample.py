"""Sampling at places that are computed: ONNX's GridSample (docs/numerics.md §6b)."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import BoolAttr, StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def
from xdsl.pattern_rewriter import PatternRewriter

from .activations import AbsOp, FloorOp, RoundOp
from .arithmetic import AddOp, AndOp, FmodOp, GeOp, LeOp, MinOp, MulOp, SubOp
from .elementwise import AffineOp, CastOp, ClipOp, WhereOp
from .emit import Emit
from .gather import GatherOp
from .op import FLOATS, Array, DtypeError, GraphOp, InferError, Onnx, ShapeError, Tensor, element, f32, i1, i32, shape
from .properties import attributes, flag, text
from .views import ReshapeOp, SliceOp, TransposeOp

ALPHA = -0.75
"""Of the cubic kernel."""
MODES: Mapping[str, Sequence[int]] = {"nearest": (0,), "linear": (0, 1), "cubic": (-1, 0, 1, 2)}
"""Taps from the place downwards, along each axis."""
PADDINGS = ("zeros", "border", "reflection")


@irdl_op_definition
class GridSampleOp(GraphOp):
    """x [N, C, …] at the places of a grid [N, …, axes], whose last axis counts the axes of x from the last one on.

    Places go from −1 to 1: from the middle of the first element to that of the last one with `align_corners`, else from
    border to border. `mode`: nearest, linear, cubic; `padding`: zeros, border, reflection.
    """

    name = "graph.grid_sample"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("GridSample", 16),)
    EXAMPLE: ClassVar[str] = (
        '%2 = graph.grid_sample %0, %1 {mode = "linear", padding = "zeros"} : '
        "(tensor<2x3x4x5xf32>, tensor<2x6x7x2xf32>) -> tensor<2x3x6x7xf32>"
    )

    x = operand_def(TensorType)
    grid = operand_def(TensorType)
    mode = prop_def(StringAttr)
    padding = prop_def(StringAttr)
    align_corners = opt_prop_def(BoolAttr)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        x, grid = operands
        size, places = list(x.get_shape()), list(grid.get_shape())
        if x.element_type not in FLOATS or grid.element_type not in FLOATS:
            raise DtypeError(f"operands are floats (found {x} and {grid})")
        if len(size) < 3 or len(places) != len(size) or places[-1] != len(size) - 2 or places[0] != size[0]:
            raise ShapeError(f"the grid is [{size[0]}, …, {len(size) - 2}] of rank {len(size)} (found {grid})")
        if text(properties, "mode") not in MODES or text(properties, "padding") not in PADDINGS:
            found = f"{text(properties, 'mode')}, {text(properties, 'padding')}"
            raise InferError(
                f"modes are {', '.join(MODES)}, paddings {', '.join(PADDINGS)} (found {found})", broken=True
            )
        return [TensorType(x.element_type, [*size[:2], *places[1:-1]])]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        mode = node.get("mode", "linear").removeprefix("bi")
        aligned = bool(node.get("align_corners", 0)) or None
        return [0, 1], attributes(mode=mode, padding=node.get("padding_mode", "zeros"), align_corners=aligned)

    # in plain numpy ---------------------------------------------------------------------------------------------------
    def reference(self, x: Array, grid: Array) -> Array:
        rank, found = x.ndim - 2, np.zeros(shape(self.result), np.float64)
        for n, *place in np.ndindex(grid.shape[0], *grid.shape[1:-1]):
            axes = [self._reference_axis(grid[(n, *place, rank - 1 - i)], x.shape[2 + i]) for i in range(rank)]
            for taps in product(*axes):
                if all(index is not None for index, _ in taps):
                    weight = np.prod([weight for _, weight in taps])
                    found[(n, slice(None), *place)] += weight * x[(n, slice(None), *(index for index, _ in taps))]
        return found

    def _reference_axis(self, g: float, extent: int) -> list[tuple[int | None, float]]:
        """Index (None: outside) and weight of each tap along an axis."""
        mode, aligned = text(self.properties, "mode"), flag(self.properties, "align_corners")
        place = (g + 1) / 2 * (extent - 1) if aligned else ((g + 1) * extent - 1) / 2
        place = float(np.rint(place)) if mode == "nearest" else place
        place = self._reference_inside(place, extent)
        base = int(np.floor(place))
        found = list[tuple[int | None, float]]()
        for tap in MODES[mode]:
            distance = abs(place - base - tap)
            weight = 1.0 if mode == "nearest" else 1 - distance if mode == "linear" else _cubic(distance)
            index = base + tap
            if text(self.properties, "padding") == "zeros":
                found.append((index if 0 <= index < extent else None, weight))
            elif text(self.properties, "padding") == "border":
                found.append((min(max(index, 0), extent - 1), weight))
            else:
                found.append((int(self._reference_inside(float(index), extent)), weight))
        return found

    def _reference_inside(self, place: float, extent: int) -> float:
        low, high = self.border(extent)
        if low <= place <= high or text(self.properties, "padding") == "zeros":
            return place
        if text(self.properties, "padding") == "border":
            return place if text(self.properties, "mode") == "cubic" else min(max(place, 0), extent - 1)
        if low == high:
            return low
        turn, rest = divmod(low - place if place < low else place - high, high - low)
        from_low = (place < low) == (turn % 2 == 0)
        return low + rest if from_low else high - rest

    def border(self, extent: int) -> tuple[float, float]:
        """Between which places an axis lies."""
        return (0.0, extent - 1.0) if flag(self.properties, "align_corners") else (-0.5, extent - 0.5)

    # in parts ---------------------------------------------------------------------------------------------------------
    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        (n, channels, *space), count = shape(self.x), int(np.prod(shape(self.grid)[1:-1]))
        grid = emit.keep(ReshapeOp, self.grid, shape=[n, count, len(space)])
        axes = [self._axis(emit, grid, i, len(space) - 1 - i, extent) for i, extent in enumerate(space)]
        rows = emit.keep(ReshapeOp, self.x, shape=[n, channels, int(np.prod(space))])
        rows = emit.keep(TransposeOp, rows, perm=[0, 2, 1])
        total: SSAValue | None = None
        for taps in product(*axes):
            value = self._tap(emit, rows, taps, [int(np.prod(space[i + 1 :])) for i in range(len(space))])
            total = value if total is None else emit(AddOp, total, value, element=f32)
        assert total is not None
        total = total if element(total) == emit.result else emit(CastOp, total)
        total = emit.keep(TransposeOp, total, perm=[0, 2, 1])
        return [emit.keep(ReshapeOp, total, shape=shape(self.result))]

    def _axis(
        self, emit: Emit, grid: SSAValue, number: int, column: int, extent: int
    ) -> list[tuple[SSAValue, SSAValue | None, SSAValue | None]]:
        """Of each tap along an axis: its index (i32), its weight (None: 1), whether it lies inside (None: yes)."""
        n, count, _ = shape(grid)
        g = emit.keep(SliceOp, grid, starts=[0, 0, column], sizes=[n, count, 1], steps=[1, 1, 1])
        place = self._place(emit, g, extent)
        if text(self.properties, "mode") == "nearest":
            base = place = self._inside(emit, emit(RoundOp, place, element=f32), extent)
        else:
            place = self._inside(emit, place, extent)
            base = emit(FloorOp, place, element=f32)
        found = list[tuple[SSAValue, SSAValue | None, SSAValue | None]]()
        rest = emit(SubOp, place, base, element=f32)
        for tap in MODES[text(self.properties, "mode")]:
            index = emit(AffineOp, base, scale=1.0, shift=float(tap), element=f32) if tap else base
            inside = self._is_inside(emit, index, extent)
            if text(self.properties, "padding") == "reflection":
                index = self._inside(emit, index, extent)
            index = emit(ClipOp, index, lo=0.0, hi=extent - 1.0, element=f32)
            found.append((emit(CastOp, index, element=i32), self._weight(emit, rest, tap), inside))
        return found

    def _place(self, emit: Emit, g: SSAValue, extent: int) -> SSAValue:
        """From −1 … 1 to elements: (g + 1)·½·(extent − 1), or ((g + 1)·extent − 1)·½."""
        g = emit(AddOp, g, emit.constant(1.0, f32), element=f32)
        if flag(self.properties, "align_corners"):
            g = emit(MulOp, g, emit.constant(0.5, f32), element=f32)
            return emit(MulOp, g, emit.constant(extent - 1.0, f32), element=f32)
        g = emit(AffineOp, g, scale=float(extent), shift=-1.0, element=f32)
        return emit(MulOp, g, emit.constant(0.5, f32), element=f32)

    def _inside(self, emit: Emit, place: SSAValue, extent: int) -> SSAValue:
        """A place beyond the border: held there, or reflected (docs/numerics.md §6b)."""
        padding, (low, high) = text(self.properties, "padding"), self.border(extent)
        if padding == "zeros":
            return place
        if padding == "reflection" and high > low:
            width = emit.constant(2 * (high - low), f32)
            t = emit(AbsOp, emit(AffineOp, place, scale=1.0, shift=-low, element=f32), element=f32)
            t = emit(FmodOp, t, width, element=f32)
            t = emit(MinOp, t, emit(SubOp, width, t, element=f32), element=f32)
            return emit(AffineOp, t, scale=1.0, shift=low, element=f32)
        if text(self.properties, "mode") == "cubic":
            return place  # only its taps are held
        return emit(ClipOp, place, lo=0.0, hi=extent - 1.0, element=f32)

    def _is_inside(self, emit: Emit, index: SSAValue, extent: int) -> SSAValue | None:
        if text(self.properties, "padding") != "zeros":
            return None
        return self._between(emit, index, 0.0, extent - 1.0)

    @staticmethod
    def _between(emit: Emit, x: SSAValue, low: float, high: float) -> SSAValue:
        above = emit(GeOp, x, emit.constant(low, f32), element=i1)
        return emit(AndOp, above, emit(LeOp, x, emit.constant(high, f32), element=i1), element=i1)

    def _weight(self, emit: Emit, rest: SSAValue, tap: int) -> SSAValue | None:
        """Of a tap, from its distance."""
        mode = text(self.properties, "mode")
        if mode == "nearest":
            return None
        near = tap in (0, 1)
        distance = emit(AffineOp, rest, scale=1.0 if tap <= 0 else -1.0, shift=float(abs(tap)), element=f32)
        if mode == "linear":
            return emit(AffineOp, distance, scale=-1.0, shift=1.0, element=f32)
        if near:  # ((α + 2)·d − (α + 3))·d·d + 1
            y = emit(AffineOp, distance, scale=ALPHA + 2, shift=-(ALPHA + 3), element=f32)
            y = emit(MulOp, emit(MulOp, y, distance, element=f32), distance, element=f32)
            return emit(AffineOp, y, scale=1.0, shift=1.0, element=f32)
        y = emit(AffineOp, distance, scale=ALPHA, shift=-5 * ALPHA, element=f32)  # ((α·d − 5·α)·d + 8·α)·d − 4·α
        y = emit(AffineOp, emit(MulOp, y, distance, element=f32), scale=1.0, shift=8 * ALPHA, element=f32)
        return emit(AffineOp, emit(MulOp, y, distance, element=f32), scale=1.0, shift=-4 * ALPHA, element=f32)

    def _tap(
        self,
        emit: Emit,
        rows: SSAValue,
        taps: Sequence[tuple[SSAValue, SSAValue | None, SSAValue | None]],
        strides: Sequence[int],
    ) -> SSAValue:
        """One tap of every axis: rows [N, places, C] by their weights, 0 outside."""
        row: SSAValue | None = None
        weight: SSAValue | None = None
        inside: SSAValue | None = None
        for (index, own, within), stride in zip(taps, strides, strict=True):
            scaled = index if stride == 1 else emit(MulOp, index, emit.constant(stride, i32), element=i32)
            row = scaled if row is None else emit(AddOp, row, scaled, element=i32)
            weight = own if weight is None or own is None else emit(MulOp, weight, own, element=f32)
            inside = within if inside is None or within is None else emit(AndOp, inside, within, element=i1)
        assert row is not None
        row = emit.keep(ReshapeOp, row, shape=shape(row)[:2])
        value = emit(GatherOp, rows, row, element=element(rows), axis=1, batch_dims=1)
        if inside is not None:
            value = emit(WhereOp, inside, value, emit.constant(0.0, element(value)), element=element(value))
        return value if weight is None else emit(MulOp, value, weight, element=f32)


def _cubic(distance: float) -> float:
    """The cubic kernel, for `reference`."""
    d = distance
    if d <= 1:
        return ((ALPHA + 2) * d - (ALPHA + 3)) * d * d + 1
    return ((ALPHA * d - 5 * ALPHA) * d + 8 * ALPHA) * d - 4 * ALPHA
