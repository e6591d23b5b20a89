"""Pooling over windows of a channels-last image, on the vector engine.

for image, row panel, channel block:
  fill the panel with the neutral value (where there is padding), load the rows that are there
  for each tap: acc = acc ∘ the panel, shifted                           one strided instruction a tap
  divide (mean; where padding does not count, by the taps inside, counted in the same way), cast, epilogue, store
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from ...dialects import tile
from ...dialects.graph.op import GraphOp, dtype_name, shape
from ...dialects.loops import Window
from ...dialects.tile.builder import Affine, Buffer, Index, KernelBuilder, float_bits
from .body import Body, Dim, Held, Machine, Region, first_fitting
from .image import Image, panel_heights
from .space import balanced, flat_arguments, on_first_core, open_tile


@dataclass(frozen=True)
class _Cut:
    rows: int
    channels: int


def tile_window(name: str, region: Region, image: Image, machine: Machine) -> tile.KernelOp:
    """The kernel of one pooling op."""
    cores = machine.cores
    kernel = region.ops[0].loops().kernel
    assert isinstance(kernel, Window)
    return first_fitting(
        (_build(name, region, image, kernel, cut, cores) for cut in _cuts(image)),
        machine,
        "a panel of rows of a window must fit UB",
    )


def _width(image: Image) -> int:
    """Columns of the padded panel."""
    return (image.ow - 1) * image.strides[1] + (image.kernel[1] - 1) * image.dilations[1] + 1


def _is_padded(image: Image) -> bool:
    """Whether a window reaches beyond the image."""
    return image.panel_rows(image.oh) > image.h + image.pads[0] or any(image.pads) or _width(image) > image.w


def _cuts(image: Image) -> Iterator[_Cut]:
    for channels in dict.fromkeys(
        balanced(image.channels, c) for c in (image.channels, 512, 256, 128, 64, 32, 16) if c <= image.channels
    ):
        for rows in panel_heights(image):
            if rows == image.oh or rows * 2 <= image.oh or channels < 64:
                yield _Cut(rows, channels)


def _build(name: str, region: Region, image: Image, kernel: Window, c: _Cut, cores: int) -> tile.KernelOp:
    k = KernelBuilder(name)
    op, *rest = region.ops
    inputs, outputs = flat_arguments(k, region)
    buffers = dict(zip(region.arguments, inputs, strict=True))
    dims = [
        Dim(image.batch, 1, Affine(), 1),
        Dim(image.oh, c.rows, Affine(), image.oh),
        Dim(image.channels, c.channels, Affine(), image.channels),
    ]
    loops = [d for d in (0, 1, 2) if dims[d].blocks > 1]
    body = Body(k, shape(op.results[0]), [(0,), (1,), (2,), (3,)], [])
    with ExitStack() as stack:
        if not loops and cores > 1:
            stack.enter_context(on_first_core(k))
        for depth, d in enumerate(loops):
            stack.enter_context(open_tile(k, dims, d, cores if depth == 0 else 1))
        body.dims = [dims[0], dims[1], Dim(image.ow, image.ow, Affine(), image.ow), dims[2]]
        for value in region.arguments:
            if value is not op.operands[0] or any(value in other.operands for other in rest):
                body.load(value, buffers[value], slots=2)
        held = _pooled(body, op, image, kernel, c, buffers[op.operands[0]])
        held.reusable = op.results[0] not in region.results
        body.held[op.results[0]] = held
        body.emit(rest, region.results)
        for value, buffer in zip(region.results, outputs, strict=True):
            body.store(value, buffer)
    return k.finish()


def _pooled(body: Body, op: GraphOp, image: Image, kernel: Window, c: _Cut, source: Buffer) -> Held:
    """The windows of the current tile."""
    k, (batch, rows, _, block) = body.k, body.dims
    sh, sw = image.strides
    dtype = dtype_name(op.operands[0])
    neutral = {"max": {"f16": 0xFC00, "bf16": 0xFF80, "f32": 0xFF800000}[dtype], "mean": 0}[kernel.fn]
    height, width, channels = image.panel_rows(c.rows), max(_width(image), image.w + image.pads[1]), c.channels
    panel = k.alloc((height, width, channels), dtype, "ub", 2)
    line = image.w * image.channels
    base = batch.start * (image.h * line) + block.start
    if any(image.pads) or width > image.w or height > image.h:
        k.fill(panel.box(0, 1), (height * width * channels,), neutral)
    for row, first, count in _rows_there(k, image, c, rows.start):
        box = source.box(base + first * line, line, image.channels, 1)
        k.load(panel[row, image.pads[1], 0], box, (count, image.w, block.extent))
    acc = k.alloc((c.rows, image.ow, channels), "f32", "ub")
    extents = (rows.extent, image.ow, block.extent)
    _combine(
        k,
        image,
        kernel.fn,
        acc,
        panel,
        (sh * width * channels, sw * channels, 1),
        (width * channels, channels),
        extents,
    )
    held = body.alloc(op.results[0], slots=2)
    out, here = held.buffer.box(0, *acc.strides), acc.box(0, *acc.strides)
    if kernel.fn == "max":
        k.map("copy", out, here, extents=extents)
    elif kernel.count_include_pad or not _is_padded(image):
        k.map("div", out, here, float(image.taps), extents=extents)
    else:
        k.map("div", out, here, _counts(k, image, c, rows).box(0, image.ow, 1, 0), extents=extents)
    return held


def _rows_there(k: KernelBuilder, image: Image, c: _Cut, first: Affine) -> Iterator[tuple[int, Affine, Index]]:
    """(row of the panel, row of the image, how many) of the image rows under output rows from `first` on."""
    above, start = image.pads[0], first * image.strides[0]
    if above and c.rows < image.oh:
        yield 0, start - above, k.clamp(start, above)
    below = min(image.panel_rows(c.rows) - above, image.h)
    yield above, start, k.clamp(image.h - start, below) if first.terms else below


def _combine(
    k: KernelBuilder,
    image: Image,
    fn: str,
    acc: Buffer,
    panel: Buffer,
    strides: Sequence[int],
    taps: tuple[int, int],
    extents: Sequence[Index],
) -> None:
    """acc = the panel's taps by `fn`, in the order (kh, kw); `taps` are the strides of a row and of a column."""
    (kh, kw), (dh, dw) = image.kernel, image.dilations
    here = acc.box(0, *acc.strides)
    for tap in range(kh * kw):
        shifted = panel.box(tap // kw * dh * taps[0] + tap % kw * dw * taps[1], *strides)
        if tap:
            k.map("add" if fn == "mean" else "max", here, here, shifted, extents=extents)
        elif fn == "mean":
            k.map("add", here, shifted, 0.0, extents=extents)  # a −0 becomes +0
        else:
            k.map("copy", here, shifted, extents=extents)


def _counts(k: KernelBuilder, image: Image, c: _Cut, rows: Dim) -> Buffer:
    """f32 [rows, ow]: how many taps of each window lie inside the image: the windows of an image of ones."""
    height, width = image.panel_rows(c.rows), max(_width(image), image.w + image.pads[1])
    ones, counts = k.alloc((height, width), "f32", "ub"), k.alloc((c.rows, image.ow), "f32", "ub")
    k.fill(ones.box(0, 1), (height * width,), 0)
    for row, _, count in _rows_there(k, image, c, rows.start):
        k.fill(ones[row, image.pads[1]], (count, image.w), float_bits(1.0))
    _combine(
        k,
        image,
        "mean",
        counts,
        ones,
        (image.strides[0] * width, image.strides[1]),
        (width, 1),
        (rows.extent, image.ow),
    )
    return counts
