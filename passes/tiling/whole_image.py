"""Pools with one window for each channels-last image: sums and means on the cube, the largest by the vector engine.

A sum is a row of ones times the pixels: the cube adds products along k one after the other, from +0, and a product with
1 is the pixel, so it is that of the taps in their order, to the bit (docs/numerics.md §6, pooling). No segments, then,
however many pixels there are.

ones in L0A
for image, channel block:
  for chunk of pixels: load the panel
    for k0: feed b, mma            of the largest: one reduction, its lanes carried from chunk to chunk
  drain, divide (mean), cast
  epilogue, store
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from ...dialects import tile
from ...dialects.graph.op import shape
from ...dialects.loops import Window
from ...dialects.tile import SIZES
from ...dialects.tile.builder import Affine, Buffer, Index, KernelBuilder
from ...runtime.target import Target
from .body import Body, Dim, Machine, Region, first_fitting
from .chunked import LANES
from .contraction import Chunk, contract, maybe_loop, upto
from .geometry import Image
from .space import balanced16, flat_arguments, open_tiles, up16
from .window_space import Pool

_LEAST_TAPS = 16
"""A block of the cube: fewer are a few instructions of the vector engine."""
_ONES = {"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F800000}
_CHUNKS = 4
"""Chunks of an image at least, where each has a step of its own, so that loads and steps overlap."""


def is_whole_image(image: Image, kernel: Window, target: Target) -> bool:
    """Whether a pool has one window for each image, of pixels alone, that is a kernel of this form."""
    if image.kernel != (image.h, image.w) or Pool(image, kernel).padded or not image.oh == image.ow == 1:
        return False
    summed = kernel.fn == "max" or image.dtype != "f32" or target.cube_cost_f32 > 0
    return summed and image.taps >= _LEAST_TAPS


def tile_whole_image(name: str, region: Region, image: Image, machine: Machine) -> tile.KernelOp:
    """The kernel of a pool with one window for each image. Raises `NotTileable` where a step does not fit."""
    kernel = region.ops[0].loops().kernel
    largest = isinstance(kernel, Window) and kernel.fn == "max"
    form, cuts = (_Largest, _chunks(image, machine)) if largest else (_Sum, _cuts(image, machine))
    kernels = (form(name, region, image, cut, machine.cores).build() for cut in cuts)
    return first_fitting(kernels, machine, "a step of pixels must fit on chip")


@dataclass(frozen=True)
class _Cut:
    """Channels of a tile, pixels of a step and of a chunk."""

    n0: int
    k0: int
    k1: int


def _cuts(image: Image, machine: Machine) -> Iterator[_Cut]:
    """Wide tiles first, of all the pixels that a half of L0A and of L0B holds, but as many as there are cores."""
    target, size = machine.target, SIZES[image.dtype]
    for n0 in _widths(image, machine):
        most = min(target.l0b_bytes // (2 * size * n0), target.l0a_bytes // (16 * size), up16(image.taps))
        k0 = most // 16 * 16
        if k0:
            steps = -(-image.taps // k0)
            wide = max(1, min(steps // _CHUNKS, target.l1_bytes // (4 * size * k0 * n0)))
            yield _Cut(n0, k0, k0 * wide)
            yield _Cut(n0, k0, k0)


def _chunks(image: Image, machine: Machine) -> Iterator[_Cut]:
    """Wide tiles first, of all the pixels that an eighth of UB holds, and fewer."""
    for n0 in _widths(image, machine):
        k1 = min(image.taps, max(1, machine.target.ub_bytes // (8 * SIZES[image.dtype] * n0)))
        while k1:
            yield _Cut(n0, k1, k1)
            k1 //= 2


def _widths(image: Image, machine: Machine) -> Iterator[int]:
    """Channels of a tile: as many as a core's share has, then fewer."""
    share = -(-image.channels // (16 * max(1, machine.cores // image.batch)))
    while share:
        yield balanced16(image.channels, 16 * share)
        share //= 2


@dataclass
class _Form(ABC):
    """One kernel being written."""

    name: str
    region: Region
    image: Image
    cut: _Cut
    cores: int

    @property
    def dtype(self) -> str:
        return self.image.dtype

    def build(self) -> tile.KernelOp:
        self.k = k = KernelBuilder(self.name)
        image, (op, *rest) = self.image, self.region.ops
        inputs, outputs = flat_arguments(k, self.region)
        buffers = dict(zip(self.region.arguments, inputs, strict=True))
        self.source = buffers[op.operands[0]]
        self.prepare()
        sizes = ((image.batch, 1), (1, 1), (1, 1), (image.channels, min(self.cut.n0, image.channels)))
        self.dims = [Dim(size, part, Affine(), part) for size, part in sizes]
        body = Body(k, shape(op.results[0]), [(0,), (1,), (2,), (3,)], [])
        loops = [d for d in (0, 3) if self.dims[d].blocks > 1]
        with open_tiles(k, self.dims, loops, self.cores):
            body.dims = list(self.dims)
            for value in self.region.arguments:
                if value is not op.operands[0] or any(value in other.operands for other in rest):
                    body.load(value, buffers[value], slots=2)
            held = body.alloc(op.results[0], slots=2)
            held.reusable = op.results[0] not in self.region.results
            self.pool(held.buffer, len(loops) + (not loops and self.cores > 1))
            body.held[op.results[0]] = held
            body.emit(rest, self.region.results)
            for value, buffer in zip(self.region.results, outputs, strict=True):
                body.store(value, buffer)
        return k.finish()

    @abstractmethod
    def prepare(self) -> None:
        """What comes before the loops."""

    @abstractmethod
    def pool(self, result: Buffer, levels: int) -> None:
        """The windows of the current tile, inside `levels` open loops."""

    def load(self, first: Affine, count: Index, size: int, memory: str) -> Buffer:
        """`count` pixels of the current tile from `first` on, at most `size`."""
        channels, image = self.dims[3], self.image
        place = (self.dims[0].start * image.taps + first) * image.channels + channels.start
        panel = self.k.alloc((size, self.cut.n0), self.dtype, memory, 2)
        self.k.load(panel[0, 0], self.source.box(place, image.channels, 1), (count, channels.extent))
        return panel


class _Sum(_Form):
    """A sum or a mean; as a `Step`, it feeds and multiplies one step of pixels."""

    @property
    def shape(self) -> tuple[int, int]:
        return 16, self.cut.n0

    @property
    def extents(self) -> tuple[Index, Index]:
        return 1, self.dims[3].extent

    def prepare(self) -> None:
        """The left operand of every step."""
        k, k0 = self.k, self.cut.k0
        panel, self.ones = k.alloc((k0,), self.dtype, "l1"), k.alloc((16, k0), self.dtype, "l0a")
        k.fill(panel[0], (k0,), _ONES[self.dtype])
        k.feed_a(self.ones[0, 0], panel.box(0, k0, 1), (1, k0))

    def pool(self, result: Buffer, levels: int) -> None:
        k, taps, cut, n = self.k, self.image.taps, self.cut, self.dims[3]
        sums = contract(k, taps, cut.k0, cut.k1, self._stream, levels, self, segment=taps)
        kernel = self.region.ops[0].loops().kernel
        mean = isinstance(kernel, Window) and kernel.fn == "mean"
        drained = k.alloc((n.tile,), "f32", "ub") if mean else result
        k.drain(drained.box(0, n.tile, 1), sums[0, 0], self.extents)
        if mean:
            k.map("div", result.box(0, 1), drained.box(0, 1), float(taps), extents=(n.extent,))

    def _stream(self, chunk: Chunk) -> None:
        self.panel, self.first = self.load(chunk.first, chunk.count, chunk.size, "l1"), chunk.first

    def __call__(self, acc: Buffer, position: Affine, count: Index, init: Index) -> None:
        k, (k0, n0) = self.k, (self.cut.k0, self.cut.n0)
        pixels = k.alloc((k0, n0), self.dtype, "l0b", 2)
        k.feed_b(pixels[0, 0], self.panel.box((position - self.first) * n0, n0, 1), (count, self.dims[3].extent))
        k.mma(acc[0, 0], self.ones[0, 0], pixels[0, 0], (*self.extents, count), init)


class _Largest(_Form):
    """The largest pixel of each channel."""

    def prepare(self) -> None:
        """Nothing."""

    def pool(self, result: Buffer, levels: int) -> None:
        k, taps, cut, n = self.k, self.image.taps, self.cut, self.dims[3]
        whole = cut.k1 >= taps
        lanes = None if whole else k.alloc((LANES * n.tile,), "f32", "ub").box(0, 1)
        with maybe_loop(k, taps, cut.k1) as first:
            count = upto(k, taps, first, cut.k1)
            panel = self.load(first, count, cut.k1, "ub")
            k.reduce(
                "max", result.box(0, 0, 0, 1), panel.box(0, 0, cut.n0, 1), (1, count, n.extent),
                state=lanes, start=first, first=1 if whole else k.clamp(1 - first, 1),
                last=1 if whole else k.clamp(first + (cut.k1 - taps + 1), 1),
            )  # fmt: skip
