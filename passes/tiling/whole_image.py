"""Sums and means of whole channels-last images, on the cube: a row of ones times the pixels.

The cube adds products along k one after the other, from +0, and a product with 1 is the pixel: the sum is that of the
taps in their order, to the bit (docs/numerics.md §6, pooling). No segments, then, however many pixels there are.

ones in L0A
for image, channel block:
  for chunk of pixels: load the panel
    for k0: feed b, mma
  drain; divide (mean), cast, epilogue, store
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ...dialects import tile
from ...dialects.graph.op import GraphOp, shape
from ...dialects.loops import Window
from ...dialects.tile import SIZES
from ...dialects.tile.builder import Affine, Buffer, Index, KernelBuilder
from ...runtime.target import Target
from .body import Body, Dim, Held, Machine, Region, first_fitting
from .contraction import Chunk, contract
from .geometry import Image
from .space import balanced16, flat_arguments, open_tiles, up16
from .window_space import Pool

_LEAST_TAPS = 16
"""A block of the cube: fewer are a few instructions of the vector engine."""
_ONES = {"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F800000}
_CHUNKS = 4
"""Chunks of an image at least, where each has a step of its own, so that loads and steps overlap."""


def is_whole_sum(image: Image, kernel: Window, target: Target) -> bool:
    """Whether a pool adds all pixels of each image, and the cube can."""
    pool = Pool(image, kernel)
    sums = kernel.fn != "max" and image.taps >= _LEAST_TAPS and (image.dtype != "f32" or target.cube_cost_f32 > 0)
    return sums and image.kernel == (image.h, image.w) and not pool.padded and image.oh == image.ow == 1


def tile_whole_sum(name: str, region: Region, image: Image, machine: Machine) -> tile.KernelOp:
    """The kernel of a pool with one window for each image. Raises `NotTileable` where a step does not fit."""
    cuts = _cuts(image, machine)
    kernels = (_WholeSum(name, region, image, cut, machine.cores).build() for cut in cuts)
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
    blocks = -(-image.channels // 16)
    share = -(-blocks // max(1, machine.cores // image.batch))
    while share:
        n0 = balanced16(image.channels, 16 * share)
        most = min(target.l0b_bytes // (2 * size * n0), target.l0a_bytes // (16 * size), up16(image.taps))
        k0 = most // 16 * 16
        if k0:
            steps = -(-image.taps // k0)
            wide = max(1, min(steps // _CHUNKS, target.l1_bytes // (4 * size * k0 * n0)))
            yield _Cut(n0, k0, k0 * wide)
            yield _Cut(n0, k0, k0)
        share //= 2


@dataclass
class _WholeSum:
    """One kernel being written; as a `Step`, it feeds and multiplies one step of pixels."""

    name: str
    region: Region
    image: Image
    cut: _Cut
    cores: int

    @property
    def dtype(self) -> str:
        return self.image.dtype

    @property
    def shape(self) -> tuple[int, int]:
        return 16, self.cut.n0

    @property
    def extents(self) -> tuple[Index, Index]:
        return 1, self.dims[3].extent

    def build(self) -> tile.KernelOp:
        self.k = k = KernelBuilder(self.name)
        image, op = self.image, self.region.ops[0]
        inputs, outputs = flat_arguments(k, self.region)
        buffers = dict(zip(self.region.arguments, inputs, strict=True))
        self.source = buffers[op.operands[0]]
        self.ones = self._ones()
        sizes = ((image.batch, 1), (1, 1), (1, 1), (image.channels, min(self.cut.n0, image.channels)))
        self.dims = [Dim(size, part, Affine(), part) for size, part in sizes]
        body = Body(k, shape(op.results[0]), [(0,), (1,), (2,), (3,)], [])
        rest = self.region.ops[1:]
        loops = [d for d in (0, 3) if self.dims[d].blocks > 1]
        with open_tiles(k, self.dims, loops, self.cores):
            body.dims = list(self.dims)
            for value in self.region.arguments:
                if value is not op.operands[0] or any(value in other.operands for other in rest):
                    body.load(value, buffers[value], slots=2)
            levels = len(loops) + (not loops and self.cores > 1)
            sums = contract(k, image.taps, self.cut.k0, self.cut.k1, self._load, levels, self, segment=image.taps)
            body.held[op.results[0]] = self._result(body, op, sums)
            body.emit(rest, self.region.results)
            for value, buffer in zip(self.region.results, outputs, strict=True):
                body.store(value, buffer)
        return k.finish()

    def _ones(self) -> Buffer:
        """The left operand of every step."""
        k, k0 = self.k, self.cut.k0
        panel, ones = k.alloc((k0,), self.dtype, "l1"), k.alloc((16, k0), self.dtype, "l0a")
        k.fill(panel[0], (k0,), _ONES[self.dtype])
        k.feed_a(ones[0, 0], panel.box(0, k0, 1), (1, k0))
        return ones

    def _load(self, chunk: Chunk) -> None:
        """The pixels of a chunk."""
        channels, image = self.dims[3], self.image
        place = (self.dims[0].start * image.taps + chunk.first) * image.channels + channels.start
        self.panel = self.k.alloc((chunk.size, self.cut.n0), self.dtype, "l1", 2)
        self.first = chunk.first
        self.k.load(self.panel[0, 0], self.source.box(place, image.channels, 1), (chunk.count, channels.extent))

    def __call__(self, acc: Buffer, position: Affine, count: Index, init: Index) -> None:
        k, (k0, n0) = self.k, (self.cut.k0, self.cut.n0)
        pixels = k.alloc((k0, n0), self.dtype, "l0b", 2)
        k.feed_b(pixels[0, 0], self.panel.box((position - self.first) * n0, n0, 1), (count, self.dims[3].extent))
        k.mma(acc[0, 0], self.ones[0, 0], pixels[0, 0], (*self.extents, count), init)

    def _result(self, body: Body, op: GraphOp, sums: Buffer) -> Held:
        """The pool's result from the sums of a tile."""
        kernel, n = op.loops().kernel, self.dims[3]
        held = body.alloc(op.results[0], slots=2)
        held.reusable = op.results[0] not in self.region.results
        mean = isinstance(kernel, Window) and kernel.fn == "mean"
        drained = self.k.alloc((n.tile,), "f32", "ub") if mean else held.buffer
        self.k.drain(drained.box(0, n.tile, 1), sums[0, 0], self.extents)
        if mean:
            taps = float(self.image.taps)
            self.k.map("div", held.buffer.box(0, 1), drained.box(0, 1), taps, extents=(n.extent,))
        return held
