"""A product with packed weights at every level: tile IR, its program in several interleavings, the checker."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tile import harness
from xdsl.utils.exceptions import VerifyException

from stepwell.backend.errors import BackendError
from stepwell.backend.select import select_kernel
from stepwell.dialects import tile
from stepwell.dialects.tile.builder import KernelBuilder
from stepwell.runtime.isa import Engine
from stepwell.runtime.numerics import host
from stepwell.runtime.numerics.dtype import DType
from stepwell.runtime.numerics.packed import dequantised, pack, row_bytes

Array = NDArray[Any]
K0 = 32
LOAD, FEED = int(Engine.LOAD), int(Engine.FEED)


def product(
    m: int, n: int, k: int, kind: str, block: int, ts: str = "f32", dtype: str = "f16", zeros: bool = True, n0: int = 32
) -> tile.KernelOp:
    """y [m, n] = x [m, k]·w, w [n, k] packed, with scales and zero points [n, blocks]; k in chunks of 64."""
    b = KernelBuilder("product")
    pitch = row_bytes(kind, k) * (2 if kind in tile.HALVES else 1)
    blocks = -(-k // block)
    x, w = b.argument((m, k), dtype, "x"), b.argument((n, pitch), kind, "w")
    s = b.argument((n * blocks,), ts, "s")
    z = b.argument((n * blocks,), f"{kind[0]}8", "z") if zeros else None
    y = b.argument((m, n), dtype, "y")
    with b.loop(n, n0) as j:
        columns = b.clamp(n - j, n0)
        run = b.clamp((n - j) * blocks, n0 * blocks)
        s1 = b.alloc((n0 * blocks,), ts, "l1", 2, "s1")
        b.load(s1[0], s[j * blocks], (run,))
        z1 = None
        if z is not None:
            z1 = b.alloc((n0 * blocks,), f"{kind[0]}8", "l1", 2, "z1")
            b.load(z1[0], z[j * blocks], (run,))
        acc = b.alloc((m, n0), "f32", "l0c", 2)
        with b.loop(k, 2 * K0) as kk:
            count = b.clamp(k - kk, 2 * K0)
            x1, w1 = b.alloc((m, 2 * K0), dtype, "l1", 2, "x1"), b.alloc((n0, 2 * K0), kind, "l1", 2, "w1")
            b.load(x1[0, 0], x[0, kk], (m, count))
            b.load(w1[0, 0], w[j, kk], (columns, count))
            with b.loop(count, K0) as inside:
                some = b.clamp(k - kk - inside, K0)
                a0, b0 = b.alloc((m, K0), dtype, "l0a", 2), b.alloc((K0, n0), dtype, "l0b", 2)
                b.feed_a(a0[0, 0], x1[0, inside], (m, some))
                scale, zero = s1.box(0, blocks, 1), z1.box(0, blocks, 1) if z1 is not None else None
                b.feed_q(b0[0, 0], w1.box(inside, 1, 2 * K0), scale, zero, (some, columns), kk + inside, block)
                b.mma(acc[0, 0], a0[0, 0], b0[0, 0], (m, columns, some), b.clamp(1 - kk - inside, 1))
        out = b.alloc((m, n0), dtype, "ub", 2)
        b.drain(out[0, 0], acc[0, 0], (m, columns))
        b.store(y[0, j], out[0, 0], (m, columns))
    return b.finish()


CASES = [
    (5, 40, 100, "i4", 32, "f32", "f16", True),
    (1, 33, 129, "u4", 16, "f16", "f16", True),
    (16, 16, 64, "i4", 64, "f16", "bf16", False),
    (3, 70, 77, "u8", 24, "f32", "f32", True),
    (7, 20, 95, "i8", 95, "bf16", "bf16", False),
]


@pytest.mark.parametrize(("m", "n", "k", "kind", "block", "ts", "dtype", "zeros"), CASES)
def test_all_levels_agree(m: int, n: int, k: int, kind: str, block: int, ts: str, dtype: str, zeros: bool) -> None:
    rng = np.random.default_rng(k)
    low, high = {"i4": (-8, 8), "u4": (0, 16), "i8": (-128, 128), "u8": (0, 256)}[kind]
    blocks = -(-k // block)
    q = rng.integers(low, high, (n, k))
    scale = host.cast(rng.standard_normal((n, blocks)).astype(np.float32), DType.parse(ts))
    zero = rng.integers(low, high, (n, blocks)).astype(np.int8 if kind[0] == "i" else np.uint8) if zeros else None
    x = host.cast(rng.standard_normal((m, k)).astype(np.float32), DType.parse(dtype))
    y = np.zeros((m, n), x.dtype)
    weights = host.cast(dequantised(q, scale, zero, block), DType.parse(dtype))
    expected = host.cast(host.matmul(x, np.ascontiguousarray(weights.T), dtype=DType.F32), DType.parse(dtype))
    arrays = [x, pack(q, kind), scale, *([] if zero is None else [zero]), y]
    kernel = product(m, n, k, kind, block, ts, dtype, zeros)
    assert np.array_equal(harness.evaluated(kernel, arrays, 1)[-1], expected)
    made = harness.compiled(kernel)
    for seed in (None, 1, 2):
        assert np.array_equal(harness.emulated(made, arrays, 1, seed)[-1], expected)
    assert str(harness.checked(made.program, arrays, 1)) == "clean"


def test_a_wait_for_the_scales_cannot_be_left_out() -> None:
    """The order of the load queue makes one wait enough for scales, zero points and weights: the checker misses it."""
    made = harness.compiled(product(5, 64, 128, "i4", 32))
    arrays = [np.zeros((5, 128), np.float16), np.zeros((64, 64), np.uint8), np.zeros((64, 4), np.float32)]
    arrays += [np.zeros((64, 4), np.int8), np.zeros((5, 64), np.float16)]
    rows = list(made.program)
    waits = [i for i, r in enumerate(rows) if r.name == "wait" and [f.base for f in r.fields[:2]] == [LOAD, FEED]]
    assert waits
    found = list[str]()
    for i in waits:
        report = harness.checked((*rows[:i], *rows[i + 1 :]), arrays, 1)
        assert {"race", "left-over"} & {finding.kind for finding in report.findings}
        found += [str(finding) for finding in report.findings if finding.kind == "race"]
    assert any("feed_q" in text and "from load to feed is missing" in text for text in found)


def test_boxes_of_half_bytes_begin_with_a_byte() -> None:
    b = KernelBuilder("odd")
    w = b.argument((4, 32), "i4")
    t = b.alloc((4, 32), "i4", "l1")
    with pytest.raises(VerifyException, match=r"a box of i4 begins with a byte, as do its rows .found offset 3"):
        b.load(t[0, 0], w[0, 3], (4, 16))
    with pytest.raises(VerifyException, match=r"half bytes are loaded, and read by a tile.feed_q .found dst of i4"):
        b.fill(t[0, 0], (4, 32))
    with pytest.raises(VerifyException, match=r"a row of i4 is whole bytes .found \[4, 31\] elements"):
        b.alloc((4, 31), "i4", "l1")
    with b.loop(5) as i:
        b.load(t[0, 0], w[0, i], (4, 16))
    with pytest.raises(BackendError, match=r"half bytes begin with a byte, whatever the indices"):
        select_kernel(b.finish())


@pytest.mark.parametrize(
    ("strides", "block", "zero", "message"),
    [
        ((32, 1), 32, "i8", r"the stride of src along k is 1 .found \[32, 1\]"),
        ((1, 32), 8, "i8", r"block is a constant of at least 16 .found 8"),
        ((1, 32), 32, "u8", r"zero points of i4 are i8 .found u8"),
    ],
)
def test_what_a_feed_demands(strides: tuple[int, int], block: int, zero: str, message: str) -> None:
    b = KernelBuilder("rules")
    w, s, z = b.alloc((16, 32), "i4", "l1"), b.alloc((16, 1), "f16", "l1"), b.alloc((16, 1), zero, "l1")
    dst = b.alloc((32, 16), "f16", "l0b")
    with pytest.raises(VerifyException, match=message):
        b.feed_q(dst[0, 0], w.box(0, *strides), s[0, 0], z[0, 0], (16, 16), 0, block)
