"""Pooling over windows of a channels-last image, on the vector engine.

for image, row panel, channel block:
  fill the panel with the neutral value (where there is padding), load the rows that are there
  for each tap: acc = acc ∘ the panel, shifted                           one strided instruction a tap
  divide (mean), cast, epilogue, store
"""

import math
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from ...dialects import tile
from ...dialects.graph.op import dtype_name, shape
from ...dialects.loops import Window
from ...dialects.tile_builder import Affine, KernelBuilder
from ...runtime.target import Target
from .body import Dim, Machine, NotTileable, Region, first_fitting
from .image import Image, panel_heights
from .vector import balanced, open_tile


@dataclass(frozen=True)
class _Cut:
    rows: int
    channels: int


def tile_window(name: str, region: Region, image: Image, machine: Machine) -> tile.KernelOp:
    """The kernel of one pooling op."""
    target, cores = machine.target, machine.cores
    (op,) = region.ops
    kernel = op.loops().kernel
    assert isinstance(kernel, Window)
    padded = image.panel_rows(image.oh) > image.h + image.pads[0] or any(image.pads) or _width(image) > image.w
    if kernel.fn == "mean" and padded and not kernel.count_include_pad:
        raise NotTileable(
            "a mean over windows that reach into the padding has one count for all of them (found count_include_pad = 0)"
        )
    return first_fitting(
        (_build(name, region, image, kernel, cut, cores) for cut in _cuts(image)),
        machine,
        "a panel of rows of a window must fit UB",
    )


def _width(image: Image) -> int:
    """Columns of the padded panel."""
    return (image.ow - 1) * image.strides[1] + (image.kernel[1] - 1) * image.dilations[1] + 1


def _cuts(image: Image) -> Iterator[_Cut]:
    for channels in dict.fromkeys(
        balanced(image.channels, c) for c in (image.channels, 512, 256, 128, 64, 32, 16) if c <= image.channels
    ):
        for rows in panel_heights(image):
            if rows == image.oh or rows * 2 <= image.oh or channels < 64:
                yield _Cut(rows, channels)


def _build(name: str, region: Region, image: Image, kernel: Window, c: _Cut, cores: int) -> tile.KernelOp:
    k = KernelBuilder(name)
    (op,) = region.ops
    source = k.argument((math.prod(shape(op.operands[0])),), dtype_name(op.operands[0]))
    output = k.argument((math.prod(shape(op.results[0])),), dtype_name(op.results[0]))
    dims = [
        Dim(image.batch, 1, Affine(), 1),
        Dim(image.oh, c.rows, Affine(), image.oh),
        Dim(image.channels, c.channels, Affine(), image.channels),
    ]
    loops = [d for d in (0, 1, 2) if dims[d].blocks > 1]
    (kh, kw), (sh, sw), (dh, dw), (ph, pw) = image.kernel, image.strides, image.dilations, image.pads
    height, width, channels = image.panel_rows(c.rows), max(_width(image), image.w + pw), c.channels
    dtype = dtype_name(op.operands[0])
    with ExitStack() as stack:
        if not loops and cores > 1:
            stack.enter_context(k.loop(k.clamp(1 - k.core(), 1)))
        for depth, d in enumerate(loops):
            stack.enter_context(open_tile(k, dims, d, cores if depth == 0 else 1))
        first, block = dims[1].start, dims[2]
        panel = k.alloc((height, width, channels), dtype, "ub", 2)
        line = image.w * image.channels
        base = dims[0].start * (image.h * line) + block.start
        if ph or pw or width > image.w or height > image.h:
            neutral = {"max": {"f16": 0xFC00, "bf16": 0xFF80, "f32": 0xFF800000}[dtype], "mean": 0}[kernel.fn]
            k.fill(panel.box(0, 1), (height * width * channels,), neutral)
        if ph and c.rows < image.oh:
            k.load(
                panel[0, pw, 0],
                source.box(base + (first * sh - ph) * line, line, image.channels, 1),
                (k.clamp(first * sh, ph), image.w, block.extent),
            )
        below = min(height - ph, image.h)
        count = k.clamp(image.h - first * sh, below) if first.terms else below
        k.load(
            panel[ph, pw, 0],
            source.box(base + first * sh * line, line, image.channels, 1),
            (count, image.w, block.extent),
        )
        acc = k.alloc((c.rows, image.ow, channels), "f32", "ub")
        result = k.alloc((c.rows, image.ow, channels), dtype_name(op.results[0]), "ub", 2)
        extents = (dims[1].extent, image.ow, block.extent)
        here = acc.box(0, *acc.strides)
        for tap in range(kh * kw):
            row, column = tap // kw * dh, tap % kw * dw
            shifted = panel.box((row * width + column) * channels, sh * width * channels, sw * channels, 1)
            if tap == 0:
                k.map(
                    "add" if kernel.fn == "mean" else "copy",
                    here,
                    shifted,
                    *((0.0,) if kernel.fn == "mean" else ()),
                    extents=extents,
                )
            else:
                k.map("add" if kernel.fn == "mean" else "max", here, here, shifted, extents=extents)
        out = result.box(0, *result.strides)
        k.map(*(("div", out, here, float(kh * kw)) if kernel.fn == "mean" else ("copy", out, here)), extents=extents)  # type: ignore[arg-type]
        place = (
            dims[0].start * (image.oh * image.ow * image.channels) + first * (image.ow * image.channels) + block.start
        )
        k.store(output.box(place, image.ow * image.channels, image.channels, 1), out, extents)
    return k.finish()
