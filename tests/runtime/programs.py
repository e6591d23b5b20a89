"""Hand-written programs with their data and the results they must give: for the emulator, the timing and the checker.

Each function returns a `Case`. `Case.memory()` places the inputs in a new device; `Case.failures(memory)` compares.
"""

# ruff: noqa: E501 rows of assembly are long

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from stepwell.runtime.assembly import assemble
from stepwell.runtime.encoding import Program
from stepwell.runtime.memory import Memory
from stepwell.runtime.numerics.dtype import DType
from stepwell.runtime.target import Target

Array = npt.NDArray[Any]
_ALIGN = 64


def up(a: int, b: int) -> int:
    """⌈a/b⌉."""
    return -(-a // b)


@dataclass
class Case:
    """A program with buffers in global memory: `arguments[i]` is the address of buffer i."""

    text: str
    inputs: Sequence[Array] = ()
    expected: Sequence[Array] = ()
    """Outputs follow the inputs in the registers; filled with 0x55 before the run."""
    target: Target = field(default_factory=lambda: Target.load("tiny"))
    cores: int = 1

    @property
    def program(self) -> Program:
        return assemble(self.text)

    @property
    def arguments(self) -> tuple[int, ...]:
        sizes = [array.nbytes for array in (*self.inputs, *self.expected)]
        return tuple(sum(up(size, _ALIGN) * _ALIGN for size in sizes[:i]) for i in range(len(sizes)))

    @property
    def gm_size(self) -> int:
        return sum(up(array.nbytes, _ALIGN) * _ALIGN for array in (*self.inputs, *self.expected))

    def memory(self) -> Memory:
        """A device that holds the inputs."""
        memory = Memory(self.target, self.gm_size)
        self.place(memory)
        return memory

    def place(self, memory: Memory) -> None:
        memory.gm[:] = 0x55
        for address, array in zip(self.arguments, self.inputs, strict=False):
            memory.write(address, array)

    def results(self, memory: Memory) -> list[Array]:
        places = self.arguments[len(self.inputs) :]
        return [memory.read(at, DType.of(a), a.shape) for at, a in zip(places, self.expected, strict=True)]

    def failures(self, memory: Memory) -> list[str]:
        """Where the bytes of an output differ from what they must be."""
        found: list[str] = []
        for number, (got, want) in enumerate(zip(self.results(memory), self.expected, strict=True)):
            wrong = np.argwhere(bits(got) != bits(want))
            if len(wrong):
                at = tuple(wrong[0].tolist())
                found.append(
                    f"output {number}: {len(wrong)} of {want.size} differ, first at {at}: {got[at]} for {want[at]}"
                )
        return found


def bits(array: Array) -> Array:
    """The elements as unsigned integers."""
    return np.ascontiguousarray(array).view({1: np.uint8, 2: np.uint16, 4: np.uint32}[array.dtype.itemsize])


def halves(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def sequential_matmul(a: Array, b: Array) -> Array:
    """docs/numerics.md §5 for f16, one segment: products are exact in f32, so each step is an addition."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        total += np.outer(a[:, k].astype(np.float32), b[k].astype(np.float32))
    return total


def gemm(
    m: int,
    k: int,
    n: int,
    tile: tuple[int, int, int] = (32, 32, 32),
    cores: int = 1,
    seed: int = 0,
    synchronised: bool = True,
) -> Case:
    """C = relu(A·B + bias), f16, tiled with tails, two slots in L1, L0 and L0C, row blocks dealt to the cores.

    Without `synchronised` the feed does not wait for the load: a race.
    """
    tm, tk, tn = tile
    a, b = halves(seed, m, k), halves(seed + 1, k, n)
    bias = halves(seed + 2, n).astype(np.float32)
    expected = np.maximum(sequential_matmul(a, b) + bias, np.float32(0)).astype(np.float16)
    wide = up(tn, 16) * 16
    rows, columns = f"clamp({m} - {tm}*core - {tm * cores}*i0, {tm})", f"clamp({n} - {tn}*i1, {tn})"
    depth = f"clamp({k} - {tk}*i2, {tk})"
    a_slot, b_slot, c_slot = (up(size, 64) * 64 for size in (2 * tm * tk, 2 * tk * wide, 4 * tm * wide))
    text = f"""
grant src=feed dst=load id=0 n=2
grant src=cube dst=feed id=0 n=2
grant src=drain dst=cube id=0 n=2
load dst=0 space=ub src=r2 n4={n} esize=4 s4=4
set src=load dst=drain id=1
wait src=load dst=drain id=1
loop count={up(m, tm)} - core step={cores} ring=2
  loop count={up(n, tn)} ring=1
    wait src=drain dst=cube id=0
    loop count={up(k, tk)} ring=0
      wait src=feed dst=load id=0
      load dst=ring(0, 0, 2)*{a_slot} space=l1 src=r0 + {2 * k * tm}*core + {2 * k * tm * cores}*i0 + {2 * tk}*i2 n3={rows} n4={depth} esize=2 d3={2 * tk} s3={2 * k} s4=2
      load dst={2 * a_slot} + ring(0, 0, 2)*{b_slot} space=l1 src=r1 + {2 * n * tk}*i2 + {2 * tn}*i1 n3={depth} n4={columns} esize=2 d3={2 * wide} s3={2 * n} s4=2
      set src=load dst=feed id=0
      wait src=cube dst=feed id=0
      {"wait src=load dst=feed id=0" if synchronised else ""}
      feed_a dst=ring(0, 0, 2)*{a_slot} src=ring(0, 0, 2)*{a_slot} m={rows} k={depth} ld={tk} pitch={2 * tk} dtype=f16
      feed_b dst=ring(0, 0, 2)*{b_slot} src={2 * a_slot} + ring(0, 0, 2)*{b_slot} k={depth} n={columns} ld={wide} pitch={2 * wide} dtype=f16
      {"" if synchronised else "wait src=load dst=feed id=0"}
      set src=feed dst=load id=0
      set src=feed dst=cube id=0
      wait src=feed dst=cube id=0
      mma dst=ring(1, 0, 2)*{c_slot} a=ring(0, 0, 2)*{a_slot} b=ring(0, 0, 2)*{b_slot} m={rows} n={columns} k={depth} lda={tk} ldb={wide} ldc={wide} init=clamp(1 - i2, 1) dtype=f16
      set src=cube dst=feed id=0
    end
    set src=cube dst=drain id=0
    wait src=cube dst=drain id=0
    drain dst=r3 + {2 * n * tm}*core + {2 * n * tm * cores}*i0 + {2 * tn}*i1 space=gm src=ring(1, 0, 2)*{c_slot} m={rows} n={columns} ldc={wide} pitch={2 * n} bias={4 * tn}*i1 biased=1 act=relu dtype=f16
    set src=drain dst=cube id=0
  end
end
loop count=2
  wait src=feed dst=load id=0
  wait src=cube dst=feed id=0
  wait src=drain dst=cube id=0
end
"""
    target = Target.load("tiny" if cores == 1 else "edge")
    return Case(text, (a, b, bias), (expected,), target, cores)


@dataclass(frozen=True)
class Conv:
    """A convolution of an image [h, w, c]."""

    h: int
    w: int
    c: int
    n: int
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Top, left, bottom, right."""

    @property
    def c0(self) -> int:
        return 4 if self.c <= 4 else 16

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the result."""
        reach = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]
        t, left, b, r = self.pads
        return (self.h + t + b - reach[0]) // self.stride[0] + 1, (self.w + left + r - reach[1]) // self.stride[1] + 1

    def column(self, index: int) -> tuple[int, int, int]:
        """Tap row, tap column and channel of a column."""
        kh, kw = self.kernel
        block, c = divmod(index, self.c0)
        c1, tap = divmod(block, kh * kw)
        return (*divmod(tap, kw), c1 * self.c0 + c)

    @property
    def depth(self) -> int:
        """Columns."""
        return up(self.c, self.c0) * self.kernel[0] * self.kernel[1] * self.c0

    def patches(self, image: Array, fill: float = 0.0) -> Array:
        """The left operand, by the definition of `im2col`."""
        oh, ow = self.size
        found = np.zeros((oh * ow, self.depth), image.dtype)
        for p in range(oh * ow):
            for j in range(self.depth):
                y, x, channel = self.column(j)
                row = p // ow * self.stride[0] - self.pads[0] + y * self.dilation[0]
                column = p % ow * self.stride[1] - self.pads[1] + x * self.dilation[1]
                if channel < self.c:
                    inside = 0 <= row < self.h and 0 <= column < self.w
                    found[p, j] = image[row, column, channel] if inside else fill
        return found

    def right(self, weights: Array) -> Array:
        """The right operand of weights [n, c, kh, kw]."""
        found = np.zeros((self.depth, self.n), weights.dtype)
        for j in range(self.depth):
            y, x, channel = self.column(j)
            if channel < self.c:
                found[j] = weights[:, channel, y, x]
        return found

    def im2col_fields(self) -> str:
        """What does not change from tile to tile."""
        (kh, kw), (sh, sw), (dh, dw), (ph, pw, *_) = self.kernel, self.stride, self.dilation, self.pads
        return (
            f"ow={self.size[1]} kh={kh} kw={kw} channels={self.c} c0={self.c0} sh={sh} sw={sw} dh={dh} dw={dw} ph={ph} pw={pw} "
            f"row0=0 h={self.h} w={self.w} row={2 * self.w * self.c} pixel={2 * self.c} dtype=f16"
        )


def conv(shape: Conv, tile: tuple[int, int] = (24, 40), seed: int = 0) -> Case:
    """The image and the weights lie in L1 whole; pixels and columns are tiled (a tile may cut a tap)."""
    image, weights = halves(seed, shape.h, shape.w, shape.c), halves(seed + 1, shape.n, shape.c, *shape.kernel)
    right = shape.right(weights)
    pixels, depth, n = shape.size[0] * shape.size[1], shape.depth, shape.n
    expected = sequential_matmul(shape.patches(image), right).astype(np.float16)
    tm, tk = tile
    wide, weights_at = up(n, 16) * 16, up(image.nbytes, 64) * 64
    a_slot, b_slot = up(2 * tm * tk, 64) * 64, 2 * tk * wide
    rows, columns = f"clamp({pixels} - {tm}*i0, {tm})", f"clamp({depth} - {tk}*i1, {tk})"
    text = f"""
load dst=0 space=l1 src=r0 n4={image.size} esize=2 s4=2
load dst={weights_at} space=l1 src=r1 n4={right.size} esize=2 s4=2
set src=load dst=feed id=0
wait src=load dst=feed id=0
grant src=cube dst=feed id=0 n=2
grant src=drain dst=cube id=0 n=1
loop count={up(pixels, tm)}
  wait src=drain dst=cube id=0
  loop count={up(depth, tk)} ring=1
    wait src=cube dst=feed id=0
    im2col dst=ring(1, 0, 2)*{a_slot} src=0 m={rows} k={columns} ld={tk} m0={tm}*i0 k0={tk}*i1 {shape.im2col_fields()}
    feed_b dst=ring(1, 0, 2)*{b_slot} src={weights_at} + {2 * tk * n}*i1 k={columns} n={n} ld={wide} pitch={2 * n} dtype=f16
    set src=feed dst=cube id=0
    wait src=feed dst=cube id=0
    mma dst=0 a=ring(1, 0, 2)*{a_slot} b=ring(1, 0, 2)*{b_slot} m={rows} n={n} k={columns} lda={tk} ldb={wide} ldc={wide} init=clamp(1 - i1, 1) dtype=f16
    set src=cube dst=feed id=0
  end
  set src=cube dst=drain id=0
  wait src=cube dst=drain id=0
  drain dst=r2 + {2 * n * tm}*i0 space=gm src=0 m={rows} n={n} ldc={wide} pitch={2 * n} dtype=f16
  set src=drain dst=cube id=0
end
wait src=cube dst=feed id=0
wait src=cube dst=feed id=0
wait src=drain dst=cube id=0
"""
    return Case(text, (image, right), (expected,), Target.load("edge"))


def depthwise(shape: Conv, seed: int = 0) -> Case:
    """One tap of each channel with its own weight; the image is [h, w, c], c a multiple of 16."""
    kh, kw = shape.kernel
    groups, taps, pixels = shape.c // 16, kh * kw, shape.size[0] * shape.size[1]
    image, weights = halves(seed, shape.h, shape.w, shape.c), halves(seed + 1, shape.c, kh, kw)
    taps_of = shape.patches(image).reshape(pixels, groups, taps, 16).astype(np.float32)
    right = weights.reshape(groups, 16, taps).transpose(0, 2, 1)
    total = np.zeros((pixels, groups, 16), np.float32)
    for t in range(taps):
        total += taps_of[:, :, t] * right[:, t].astype(np.float32)
    expected = total.reshape(pixels, shape.c).astype(np.float16)
    columns = groups * taps * 16
    text = f"""
load dst=0 space=l1 src=r0 n4={image.size} esize=2 s4=2
load dst={up(image.nbytes, 64) * 64} space=l1 src=r1 n4={columns} esize=2 s4=2
set src=load dst=feed id=0
wait src=load dst=feed id=0
im2col dst=0 src=0 m={pixels} k={columns} ld={columns} m0=0 k0=0 {shape.im2col_fields()}
feed_b dst=0 src={up(image.nbytes, 64) * 64} k=1 n={columns} ld={columns} pitch={2 * columns} dtype=f16
set src=feed dst=cube id=0
wait src=feed dst=cube id=0
mma_dw dst=0 a=0 b=0 m={pixels} groups={groups} taps={taps} lda={columns} ldc={shape.c} init=1 dtype=f16
set src=cube dst=drain id=0
wait src=cube dst=drain id=0
drain dst=r2 space=gm src=0 m={pixels} n={shape.c} ldc={shape.c} pitch={2 * shape.c} dtype=f16
"""
    return Case(text, (image, right.copy()), (expected,), Target.load("edge"))


def hand_over(cores: int = 2) -> Case:
    """Core 0 copies a block, core 1 waits for it by a counter and copies the copy, core 0 waits for that and copies again."""
    block = halves(0, 64)
    text = """
loop count=1 - core
  load dst=0 space=ub src=r0 n4=64 esize=2 s4=2
  set src=load dst=store id=0
  wait src=load dst=store id=0
  store dst=r1 src=0 space=ub n4=64 esize=2 d4=2
  signal engine=store counter=3
  await engine=load counter=4 value=1
  load dst=256 space=ub src=r2 n4=64 esize=2 s4=2
  set src=load dst=store id=0
  wait src=load dst=store id=0
  store dst=r3 src=256 space=ub n4=64 esize=2 d4=2
end
loop count=core
  await engine=load counter=3 value=1
  load dst=0 space=ub src=r1 n4=64 esize=2 s4=2
  set src=load dst=store id=0
  wait src=load dst=store id=0
  store dst=r2 src=0 space=ub n4=64 esize=2 d4=2
  signal engine=store counter=4
end
"""
    return Case(text, (block,), (block, block, block), Target.load("edge"), cores)


def late_set() -> Case:
    """The wait stands before its set in program order: only the queues can run it."""
    block = halves(0, 32)
    text = """
wait src=load dst=store id=0
store dst=r1 src=0 space=ub n4=32 esize=2 d4=2
load dst=0 space=ub src=r0 n4=32 esize=2 s4=2
set src=load dst=store id=0
"""
    return Case(text, (block,), (block,))
