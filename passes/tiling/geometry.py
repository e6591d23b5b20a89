"""Geometry of windows over a channels-last image."""

from dataclasses import dataclass
from typing import overload

import numpy as np

from ...dialects.tile.builder import Index
from .schedule import Column
from .space import balanced


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

    @property
    def least_rows(self) -> int:
        """Output rows of a panel at least, so that the halo of the second panel lies inside the image."""
        return max(1, -(-self.pads[0] // self.strides[0]))

    @overload
    def panel_rows(self, rows: int) -> int: ...
    @overload
    def panel_rows(self, rows: Column) -> Column: ...
    def panel_rows(self, rows: int | Column) -> int | Column:
        """Input rows of a panel of `rows` output rows."""
        return (rows - 1) * self.strides[0] + self.reach

    def loaded_rows(self, rows: Column, panels: Column) -> Column:
        """Input rows that the panels of `rows` output rows load in all."""
        return np.minimum(self.h, self.panel_rows(rows)) + (panels - 1) * (self.reach - self.strides[0])

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


def panel_heights(image: Image) -> list[int]:
    """Candidate numbers of output rows of a panel, large ones first; no panel begins in the padding below."""
    heights = {
        balanced(image.oh, max(1, image.oh // parts)) for parts in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
    } | {1}
    inside = (h for h in heights if (-(-image.oh // h) - 1) * h * image.strides[0] <= image.h)
    return sorted((h for h in inside if h >= min(image.least_rows, image.oh)), reverse=True)
