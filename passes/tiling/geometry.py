"""Geometry of windows over a channels-last image."""

from dataclasses import dataclass, replace
from typing import overload

import numpy as np
from numpy.typing import NDArray

from ...dialects.tile import SIZES
from ...dialects.tile.builder import Index
from ...runtime.target import Target
from .contraction import Grid
from .schedule import Column, tile_sizes
from .space import balanced, up16


@dataclass(frozen=True)
class Image:
    """Geometry of a window over [batch, h, w, channels]: pads above, left (below and right follow from the output
    size)."""

    batch: int
    h: int
    w: int
    channels: int
    oh: int
    ow: int
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int]
    dtype: str

    @property
    def c0(self) -> int:
        """Channel block of the k order (docs/numerics.md §5)."""
        return 4 if self.channels <= 4 else 16

    @property
    def taps(self) -> int:
        return self.kernel[0] * self.kernel[1]

    @property
    def depth(self) -> int:
        """Length of k, padding included."""
        return -(-self.channels // self.c0) * self.c0 * self.taps

    @property
    def reach(self) -> int:
        """Input rows under one output row."""
        return (self.kernel[0] - 1) * self.dilations[0] + 1

    def upright(self) -> "Image":
        """The image itself, or of one line of pixels the same pixels one under another: in memory and in the order of k
        that is the same, and rows are what panels are cut by."""
        if (self.h, self.oh, self.kernel[0], self.pads[0]) != (1, 1, 1, 0):
            return self
        turned = ("kernel", "strides", "dilations", "pads")
        swapped = {name: getattr(self, name)[::-1] for name in turned}
        return replace(self, h=self.w, w=1, oh=self.ow, ow=1, **swapped)

    @property
    def least_rows(self) -> int:
        """Output rows of a panel at least: one tile of pixels, where a row is one pixel; so many that the halo of the
        second panel lies inside the image."""
        if self.ow == 1:
            return min(16, self.oh)
        return max(1, -(-self.pads[0] // self.strides[0]))

    @overload
    def panel_rows(self, rows: int) -> int: ...
    @overload
    def panel_rows(self, rows: Column) -> Column: ...
    def panel_rows(self, rows: int | Column) -> int | Column:
        """Input rows of a panel of `rows` output rows; of all, and of cropped panels, those that there are. One, where
        all lie in the padding."""
        size = (rows - 1) * self.strides[0] + self.reach
        if isinstance(rows, int):
            return self.panel_rows(np.array([float(rows)])).astype(int).tolist()[0]
        there = np.where(rows >= self.oh, np.clip(size - self.pads[0], 1, self.h), size)
        return np.where(self.cropped(rows), np.minimum(size, self.h), there)

    @overload
    def cropped(self, rows: int) -> bool: ...
    @overload
    def cropped(self, rows: Column) -> NDArray[np.bool_]: ...
    def cropped(self, rows: int | Column) -> bool | NDArray[np.bool_]:
        """Whether panels of `rows` output rows are what there is under them of the image, since some begin in the
        padding below, or the first so far above that more than one lies in the padding; else the padding above is in
        the panel."""
        stride, above = self.strides[0], self.pads[0]
        last = (-(-self.oh // rows) - 1) * rows * stride
        return (rows < self.oh) & ((last > self.h) | (rows * stride < above) | (self.reach <= above))

    def loaded_rows(self, rows: Column, panels: Column) -> Column:
        """Input rows that the panels of `rows` output rows load in all."""
        return np.maximum(1, np.minimum(self.h, self.panel_rows(rows)) + (panels - 1) * (self.reach - self.strides[0]))

    @overload
    def across(self, columns: int) -> int: ...
    @overload
    def across(self, columns: Column) -> Column: ...
    def across(self, columns: int | Column) -> int | Column:
        """Input columns under a window of so many output columns."""
        return (columns - 1) * self.strides[1] + (self.kernel[1] - 1) * self.dilations[1] + 1

    def large(self, channels: int, target: Target) -> bool:
        """Whether the smallest panel of so many channels, with another one, leaves less than half of L1."""
        whole = (h for h in panel_heights(self, False))
        rows = min(self.panel_rows(h) for h in whole)
        return 4 * rows * self.w * channels * SIZES[self.dtype] > target.l1_bytes

    def pixel_tiles(self, rows: int) -> list[int]:
        """Pixels of a tile under panels of so many output rows."""
        return [m for m in tile_sizes(rows * self.ow, 512) if not self.two_bounds(rows, m)]

    def window_tiles(self) -> list[int]:
        """Pixels of a tile that is part of one output row, with a panel of its own: such windows lie inside the image
        but for the padding left of the first and what the last one lacks."""
        sw, left, end = self.strides[1], self.pads[1], self.ow - 1
        sizes = [m for m in tile_sizes(self.ow, 512) if m <= end and m * sw >= left and self.across(m) <= self.w]
        return [m for m in sizes if end // m * m * sw - left < self.w]

    def grid(self, k1: int) -> Grid:
        """Chunks of k that have all taps of some blocks of channels, or of one block some rows of the kernel."""
        block = self.c0 * self.taps
        return Grid(k1, k1 if k1 >= block else block)

    def pieces(self, k1: int) -> int:
        """Chunks of the grid."""
        grid = self.grid(k1)
        return -(-self.depth // grid.unit) * grid.parts

    def part(self, k1: int) -> "Image":
        """What a chunk of the grid has of the image: its channels, and the rows of the kernel."""
        blocks = k1 // (self.c0 * self.taps)
        if blocks:
            return replace(self, channels=min(blocks * self.c0, self.channels))
        rows = k1 // (self.c0 * self.kernel[1])
        return replace(self, channels=min(self.c0, self.channels), kernel=(rows, self.kernel[1]))

    def chunks(self) -> list[int]:
        """Sizes of chunks that have a part of the image: whole blocks of channels, or rows of the kernel."""
        row, (down, _) = self.c0 * self.kernel[1], self.kernel
        sizes = [row * down << n for n in range(8)]
        sizes += [row * -(-down // (1 << n)) for n in range(1, down.bit_length() + 1)]
        return [k1 for k1 in dict.fromkeys(sizes) if k1 < self.depth and k1 % 16 == 0]

    @overload
    def height(self, rows: int) -> int: ...
    @overload
    def height(self, rows: Column) -> Column: ...
    def height(self, rows: int | Column) -> int | Column:
        """Input rows that any `rows` output rows see of the image at most."""
        size = (rows - 1) * self.strides[0] + self.reach
        return min(size, self.h) if isinstance(rows, int) else np.minimum(size, self.h)

    def two_bounds(self, rows: int, m0: int) -> bool:
        """Whether a block of m0 pixels would end with its panel or with the image, whichever comes first: no field has
        two bounds."""
        return m0 < rows * self.ow and rows * self.ow % m0 != 0 and self.oh % rows != 0

    def fields(self) -> dict[str, Index]:
        """The fields of `im2col` that do not move."""
        (kh, kw), (sh, sw), (dh, dw), (ph, pw) = self.kernel, self.strides, self.dilations, self.pads
        return {
            "ow": self.ow,
            "kh": kh,
            "kw": kw,
            "c0": self.c0,
            "sh": sh,
            "sw": sw,
            "dh": dh,
            "dw": dw,
            "ph": ph,
            "pw": pw,
            "h": self.h,
            "w": self.w,
        }


def panel_heights(image: Image, large: bool) -> list[int]:
    """Candidate numbers of output rows of a panel, large ones first; panels are cropped only where they are large."""
    parts = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
    if image.ow == 1:  # in whole tiles
        tiles = (-(-image.oh // (1 << n)) for n in range(image.oh.bit_length()))
        heights = {min(image.oh, up16(h) if h < 512 else 256 * -(-h // 256)) for h in tiles}
    else:
        heights = {balanced(image.oh, max(1, image.oh // n)) for n in parts} | {1}
    least = min(image.least_rows, image.oh) if not large or image.ow == 1 else 1
    return sorted((h for h in heights if h >= least and (large or not image.cropped(h))), reverse=True)
