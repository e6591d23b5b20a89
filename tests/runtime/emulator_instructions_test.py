"""Every instruction by itself against a direct statement of its `action` in `runtime/isa.py`."""

# ruff: noqa: E501 rows of assembly are long

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from stepwell.runtime.assembly import assemble
from stepwell.runtime.emulator import RowCounts, new_counters, run
from stepwell.runtime.memory import Memory
from stepwell.runtime.target import Target

from .programs import Conv, bits, sequential_matmul

Array = npt.NDArray[Any]
EDGE = Target.load("edge")
TYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "i8": np.int8,
    "u8": np.uint8,
}
BYTES = 1 << 16


def device(seed: int = 0, *arrays: Array) -> Memory:
    """Random bytes, with arrays from address 0 on at multiples of 4096."""
    memory = Memory(EDGE, BYTES)
    memory.gm[:] = np.random.default_rng(seed).integers(0, 256, BYTES)
    for number, array in enumerate(arrays):
        memory.write(4096 * number, array)
    return memory


def execute(memory: Memory, text: str) -> RowCounts:
    return run(assemble(text), arguments=(), memory=memory, target=EDGE, counters=new_counters(), cores=1)


def numbers(rng: np.random.Generator, dtype: str, *shape: int) -> Array:
    if dtype in ("i8", "u8"):
        info = np.iinfo(TYPES[dtype])
        return rng.integers(info.min, info.max + 1, shape).astype(TYPES[dtype])
    return rng.standard_normal(shape).astype(TYPES[dtype])


def words(array: Array) -> Array:
    """The elements as L0A and L0B hold them."""
    wide = array.astype(np.int32 if array.dtype.kind in "iu" else np.float32)
    return wide.view(np.uint32)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ["load", "store"])
def test_load_and_store_copy_a_box(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.choice([1, 2, 4, 8]))
    n = [int(v) for v in rng.integers(1, 4, 5)]
    dense = [size * n[4] * int(np.prod(n[axis + 1 : 4])) for axis in range(4)]
    chip = (
        dense
        if seed % 3 == 0
        else [int(v) * size for v in rng.permutation([1200 // size, 300 // size, 80 // size, 24 // size + 5])]
    )
    outer = dense if seed % 3 == 0 else [int(v) * size for v in rng.integers(0, 40, 4)]
    last = size if seed % 2 == 0 else size * int(rng.integers(0, 5))
    chip_at, outer_at = 64, 8 * int(rng.integers(0, 100))
    memory = device(seed)
    before = memory.gm.copy()
    extents = " ".join(f"n{axis}={v}" for axis, v in enumerate(n)) + f" esize={size}"
    box = " ".join(f"{'ds'[name == 'store']}{axis}={v}" for axis, v in enumerate(chip))
    box += " " + " ".join(f"{'sd'[name == 'store']}{axis}={v}" for axis, v in enumerate([*outer, last]))
    if name == "load":
        execute(memory, f"load dst={chip_at} space=ub src={outer_at} {extents} {box}")
        want, got = np.full(BYTES, 0xFF, np.uint8), memory.cores[0].ub[:BYTES]
        source = before
    else:
        execute(
            memory,
            f"load dst=0 space=l1 src=0 n4={BYTES} esize=1 s4=1\nstore dst={outer_at} src={chip_at} space=l1 {extents} {box}",
        )
        want, got, source = before.copy(), memory.gm, before
    for index in itertools.product(*(range(v) for v in n)):
        near = chip_at + sum(i * s for i, s in zip(index[:4], chip, strict=True)) + index[4] * size
        far = outer_at + sum(i * s for i, s in zip(index, [*outer, last], strict=True))
        to, at = (near, far) if name == "load" else (far, near)
        want[to : to + size] = source[at : at + size]
    assert np.array_equal(got, want)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_move_and_fill(size: int) -> None:
    memory = device(size)
    execute(
        memory,
        f"""
load dst=0 space=ub src=0 n4=4096 esize=1 s4=1
fill dst=0 space=l1 n2=8192 esize=1 pattern=7
move dst=64 src=32 n0=3 n1=4 n2=5 esize={size} d0={64 * size} d1={8 * size} s0={8 * size} s1={32 * size}
fill dst=4096 space=l1 n0=2 n1=3 n2=4 esize={size} d0={40 * size} d1={8 * size} pattern=72623859790382856
""",
    )
    want = np.full(8192, 7, np.uint8)
    pattern = np.array([72623859790382856]).view(np.uint8)[:size]
    for i, j in itertools.product(range(3), range(4)):
        to, at = 64 + 64 * size * i + 8 * size * j, 32 + 8 * size * i + 32 * size * j
        want[to : to + 5 * size] = memory.gm[at : at + 5 * size]
    for i, j in itertools.product(range(2), range(3)):
        to = 4096 + size * (40 * i + 8 * j)
        want[to : to + 4 * size] = np.tile(pattern, 4)
    assert np.array_equal(memory.cores[0].l1[:8192], want)


@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (16, 16), (17, 35), (40, 33)])
@pytest.mark.parametrize("trans", [0, 1])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["feed_a", "feed_b"])
def test_feeds_widen(name: str, dtype: str, trans: int, shape: tuple[int, int]) -> None:
    m, n = shape
    stored = (
        numbers(
            np.random.default_rng(m),
            dtype,
            *(shape[::-1] if trans else shape),
        )
        if trans
        else numbers(np.random.default_rng(m), dtype, *shape)
    )
    size, ld = stored.dtype.itemsize, n + 3
    pitch = (stored.shape[1] + 2) * size
    padded = np.zeros((stored.shape[0], stored.shape[1] + 2), stored.dtype)
    padded[:, : stored.shape[1]] = stored
    memory = device(0, padded.view(np.uint8))
    extents = f"m={m} k={n}" if name == "feed_a" else f"k={m} n={n}"
    execute(
        memory,
        f"load dst=0 space=l1 src=0 n4=16384 esize=1 s4=1\n{name} dst={16 * size} src=0 {extents} ld={ld} pitch={pitch} trans={trans} dtype={dtype}",
    )
    core = memory.cores[0]
    space, total = (core.l0a, EDGE.l0a_bytes) if name == "feed_a" else (core.l0b, EDGE.l0b_bytes)
    got = space.view(np.uint32)[total * (4 // size - 1) // 4 :][: total // size]
    want = np.full(total // size, 0xFFFFFFFF, np.uint32)
    for i in range(m):
        want[16 + i * ld : 16 + i * ld + n] = words(stored[:, i] if trans else stored[i])
    assert np.array_equal(got, want)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "shape",
    [
        Conv(9, 7, 3, 1, stride=(2, 1), pads=(1, 1, 1, 1)),
        Conv(7, 9, 20, 1, pads=(1, 2, 0, 0)),
        Conv(11, 8, 33, 1, kernel=(2, 3), dilation=(3, 2), pads=(2, 0, 1, 3)),
        Conv(5, 5, 24, 1, kernel=(1, 1)),
    ],
)
def test_im2col_takes_any_window_of_the_patches(shape: Conv, dtype: str) -> None:
    image = numbers(np.random.default_rng(1), dtype, shape.h, shape.w, shape.c)
    size = image.dtype.itemsize
    patches = words(shape.patches(image, 2.0))
    rng = np.random.default_rng(shape.c)
    for _ in range(6):
        m0, k0 = int(rng.integers(0, len(patches))), int(rng.integers(0, shape.depth))
        m, k = int(rng.integers(1, len(patches) - m0 + 1)), int(rng.integers(1, shape.depth - k0 + 1))
        m = min(m, EDGE.l0a_bytes // size // (k + 1))
        fields = shape.im2col_fields().replace(f"row={2 * shape.w * shape.c}", f"row={size * shape.w * shape.c}")
        fields = fields.replace(f"pixel={2 * shape.c}", f"pixel={size * shape.c}").replace(
            "dtype=f16", f"dtype={dtype}"
        )
        memory = device(0, image.view(np.uint8))
        execute(
            memory,
            f"load dst=0 space=l1 src=0 n4={image.nbytes} esize=1 s4=1\nim2col dst=0 src=0 m={m} k={k} ld={k + 1} m0={m0} k0={k0} pad=2.0 {fields}",
        )
        image_of_size = memory.cores[0].l0a.view(np.uint32)[EDGE.l0a_bytes * (4 // size - 1) // 4 :]
        got = image_of_size[: m * (k + 1)].reshape(m, k + 1)
        assert np.array_equal(got[:, :k], patches[m0 : m0 + m, k0 : k0 + k])
        assert np.all(got[:, k] == 0xFFFFFFFF)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 16, 9), (13, 40, 33), (30, 24, 70), (15, 100, 8), (1500, 5, 3)])
def test_mma_accumulates_and_leaves_its_neighbours(shape: tuple[int, int, int], dtype: str) -> None:
    m, n, k = shape
    rng = np.random.default_rng(n)
    a, b = numbers(rng, dtype, m, k), numbers(rng, dtype, k, n)
    if dtype == "f32":  # an fma without an fma: make products exact
        a, b = (x.astype(np.float16).astype(np.float32) for x in (a, b))
    size, ld = a.dtype.itemsize, -(-n // 16) * 16
    memory = device(0, a.view(np.uint8))
    memory.write(32768, b.view(np.uint8))
    execute(
        memory,
        f"""
load dst=0 space=l1 src=0 n4=65536 esize=1 s4=1
feed_a dst=0 src=0 m={m} k={k} ld={k} pitch={k * size} dtype={dtype}
feed_b dst=0 src=32768 k={k} n={n} ld={ld} pitch={n * size} dtype={dtype}
mma dst=0 a=0 b=0 m={m} n={n} k={k} lda={k} ldb={ld} ldc={ld} init=1 dtype={dtype}
mma dst=0 a=0 b=0 m={m} n={n} k={k} lda={k} ldb={ld} ldc={ld} init=0 dtype={dtype}
""",
    )
    got = memory.cores[0].l0c.view(np.uint32)[: m * ld].reshape(m, ld)
    if dtype in ("i8", "u8"):
        want = words(2 * (a.astype(np.int32) @ b.astype(np.int32)))
    else:
        want = words(sequential_matmul(np.hstack([a, a]), np.vstack([b, b])))
    assert np.array_equal(got[:, :n], want)
    assert np.all(got[:, n:] == 0xFFFFFFFF)


@pytest.mark.parametrize("m", [5, 19])
def test_mma_dw_keeps_an_inf_in_its_channel(m: int) -> None:
    rng = np.random.default_rng(0)
    groups, taps = 2, 9
    columns = groups * taps * 16
    a, b = numbers(rng, "f16", m, columns), numbers(rng, "f16", 1, columns)
    a[2, 16 * 4 + 3] = np.inf
    memory = device(0, a)
    memory.write(32768, b)
    execute(
        memory,
        f"""
load dst=0 space=l1 src=0 n4=65536 esize=1 s4=1
feed_a dst=0 src=0 m={m} k={columns} ld={columns} pitch={2 * columns} dtype=f16
feed_b dst=0 src=32768 k=1 n={columns} ld={columns} pitch={2 * columns} dtype=f16
mma_dw dst=0 a=0 b=0 m={m} groups={groups} taps={taps} lda={columns} ldc=48 init=1 dtype=f16
mma_dw dst=0 a=0 b=0 m={m} groups={groups} taps={taps} lda={columns} ldc=48 init=0 dtype=f16
""",
    )
    want = np.zeros((m, groups, 16), np.float32)
    for t in [*range(taps), *range(taps)]:
        want += a.reshape(m, groups, taps, 16)[:, :, t].astype(np.float32) * b.reshape(groups, taps, 16)[:, t].astype(
            np.float32
        )
    got = memory.cores[0].l0c.view(np.float32)[: m * 48].reshape(m, 48)
    assert np.array_equal(bits(got[:, :32].copy()), bits(want.reshape(m, 32)))
    assert np.isinf(got[:, :32]).sum() == 1


def drained(
    values: Array, fields: str, dtype: str, bias: Array | None = None, acc: str = "f32"
) -> tuple[Array, RowCounts]:
    """`values` [m, n] brought to L0C as they are, by a product with the unit matrix, then drained to L1."""
    m, n = values.shape
    unit = np.eye(m, dtype=values.dtype)
    of = "f32" if acc == "f32" else "i8"
    size = values.dtype.itemsize
    memory = device(0, unit.view(np.uint8), values.view(np.uint8), np.zeros(n, np.float32) if bias is None else bias)
    counts = execute(
        memory,
        f"""
load dst=0 space=l1 src=0 n4=16384 esize=1 s4=1
load dst=0 space=ub src=8192 n4={n} esize=4 s4=4
feed_a dst=0 src=0 m={m} k={m} ld={m} pitch={m * size} dtype={of}
feed_b dst=0 src=4096 k={m} n={n} ld=48 pitch={n * size} dtype={of}
mma dst=0 a=0 b=0 m={m} n={n} k={m} lda={m} ldb=48 ldc=48 init=1 dtype={of}
drain dst=32768 space=l1 src=0 m={m} n={n} ldc=48 pitch=256 {fields} biased={int(bias is not None)} dtype={dtype} acc={acc}
""",
    )
    kind = np.dtype({**TYPES, "i32": np.int32, "b8": np.uint8}[dtype])
    rows = memory.cores[0].l1[32768 : 32768 + 256 * m].reshape(m, 256)
    assert np.all(rows[:, n * kind.itemsize :] == 0xFF)
    return rows[:, : n * kind.itemsize].copy().view(kind), counts


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "i8", "u8", "i32", "b8"])
def test_drain_applies_scale_bias_and_activation_then_casts_once(dtype: str) -> None:
    rng = np.random.default_rng(0)
    values, bias = (rng.standard_normal((6, 40)) * 100).astype(np.float32), rng.standard_normal(40).astype(np.float32)
    for fields, apply in {
        "": lambda v: v,
        "act=relu": lambda v: np.maximum(v, 0),
        "act=clip lo=-3.0 hi=6.0": lambda v: np.clip(v, np.float32(-3), np.float32(6)),
    }.items():
        want = apply(values * np.float32(0.37) + bias)
        if dtype in ("i8", "u8"):
            want = np.clip(np.trunc(want), np.iinfo(TYPES[dtype]).min, np.iinfo(TYPES[dtype]).max)
        want = (want != 0).astype(np.uint8) if dtype == "b8" else want.astype({**TYPES, "i32": np.int32}[dtype])
        got, counts = drained(values, f"scaled=1 scale={np.float32(0.37)!s} {fields}", dtype, bias)
        assert np.array_equal(bits(got), bits(want)), fields
        assert not counts.overflow.any()
        assert not counts.invalid.any()


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize("columns", [5, 32])
def test_drain_keeps_the_signs_of_zeros(columns: int, dtype: str) -> None:
    values = np.resize(np.array([0.0, 1, -1, 1e-30, -1e-30], np.float32), (3, columns))
    for low, high in itertools.product((-1, -0.0, 0.0), (-0.0, 0.0, 1)):
        got, _ = drained(values, f"scaled=1 scale=-1.0 act=clip lo={low} hi={high}", dtype)
        for x, found in zip(-values.reshape(-1), got.reshape(-1), strict=True):
            order = lambda v: (v, not np.signbit(v))  # noqa: E731 a negative zero is the smaller one
            want = min(max(x, np.float32(low), key=order), np.float32(high), key=order)
            assert bits(found[None]) == bits(want.astype(TYPES[dtype])[None]), (x, low, high)


def test_drain_over_its_own_bias() -> None:
    """Bias is read row by row."""
    values = np.ones((2, 16), np.float32)
    memory = device(0, values, np.ones(1, np.float32), np.full(16, 5, np.float32))
    execute(
        memory,
        """
load dst=0 space=l1 src=0 n4=8192 esize=1 s4=1
load dst=64 space=ub src=8192 n4=64 esize=1 s4=1
feed_a dst=0 src=0 m=2 k=1 ld=1 pitch=4 dtype=f32
feed_b dst=0 src=0 k=1 n=16 ld=16 pitch=64 dtype=f32
mma dst=0 a=0 b=0 m=2 n=16 k=1 lda=1 ldb=16 ldc=16 init=1 dtype=f32
drain dst=64 space=ub src=0 m=2 n=16 ldc=16 pitch=64 bias=64 biased=1 dtype=f32
""",
    )
    assert np.array_equal(memory.cores[0].ub[64:192].view(np.float32), np.repeat(np.array([6, 7], np.float32), 16))


def test_drain_counts_overflow_and_invalid() -> None:
    values = np.zeros((2, 40), np.float32)
    values[0, :3], values[1, 0] = 70000, -1e30
    bias = np.zeros(40, np.float32)
    bias[5] = np.inf
    got, counts = drained(values, "", "f16", bias)
    assert np.isinf(got).sum() == 6
    assert (counts.overflow[-1], counts.invalid[-1]) == (4, 0)
    got, counts = drained(np.zeros((1, 40), np.float32), "scaled=1 scale=inf", "f16")
    assert np.all(got.view(np.uint16) == 0x7E00)
    assert (counts.overflow[-1], counts.invalid[-1]) == (0, 40)


def test_drain_of_integers() -> None:
    values = np.random.default_rng(0).integers(-128, 128, (6, 40)).astype(np.int8)
    got, _ = drained(values, "", "i32", acc="i32")
    assert np.array_equal(got, values.astype(np.int32))
    got, _ = drained(values, "scaled=1 scale=0.5", "f32", acc="i32")
    assert np.array_equal(got, values.astype(np.float32) / 2)


def test_fold_adds_segments() -> None:
    values = np.random.default_rng(0).standard_normal((4, 20)).astype(np.float32)
    unit = np.eye(4, dtype=np.float32)
    memory = device(0, unit, values)
    execute(
        memory,
        """
load dst=0 space=l1 src=0 n4=8192 esize=1 s4=1
feed_a dst=0 src=0 m=4 k=4 ld=4 pitch=16 dtype=f32
feed_b dst=0 src=4096 k=4 n=20 ld=32 pitch=80 dtype=f32
mma dst=0 a=0 b=0 m=4 n=20 k=4 lda=4 ldb=32 ldc=32 init=1 dtype=f32
fold dst=4096 src=0 m=4 n=20 ldc=32 init=1
fold dst=4096 src=0 m=4 n=19 ldc=32
""",
    )
    got = memory.cores[0].l0c.view(np.float32)[1024 : 1024 + 128].reshape(4, 32)
    want = values.copy()
    want[:, :19] += values[:, :19]
    assert np.array_equal(got[:, :20], want)
    assert np.all(np.isnan(got[:, 20:]))


def vector(text: str, *arrays: Array) -> tuple[Array, RowCounts]:
    """UB after the program; the arrays stand in it at multiples of 4096."""
    memory = device(0, *arrays)
    counts = execute(memory, f"load dst=0 space=ub src=0 n4={4096 * len(arrays)} esize=1 s4=1\n" + text)
    return memory.cores[0].ub, counts


def test_vmap_with_strides_and_broadcasts() -> None:
    rng = np.random.default_rng(0)
    a, b = numbers(rng, "f16", 4, 6, 10), numbers(rng, "f32", 10)
    ub, _ = vector(
        "vmap fn=mul dst=16384 a=0 b=4096 n0=4 n1=6 n2=10 d0=20 d1=80 d2=2 a0=120 a1=20 a2=2 b2=4 td=f16 ta=f16 tb=f32 bimm=0",
        a,
        b,
    )
    want = (a.astype(np.float32) * b).astype(np.float16)
    got = ub[16384 : 16384 + 480].view(np.float16).reshape(6, 4, 10)
    assert np.array_equal(bits(got.transpose(1, 0, 2)), bits(want))


def test_vmap_of_short_rows() -> None:
    a, b = (numbers(np.random.default_rng(n), "f16", 3, 40) for n in range(2))
    ub, _ = vector("vmap fn=sub dst=8192 a=0 b=4096 n1=40 n2=3 d1=8 d2=2 a1=2 a2=80 b1=2 b2=80 td=f16 ta=f16 tb=f16 bimm=0", a, b)  # fmt: skip
    got = ub[8192 : 8192 + 320].view(np.float16).reshape(40, 4)
    assert np.array_equal(got[:, :3], (a.astype(np.float32) - b).astype(np.float16).T)
    assert np.all(got[:, 3].view(np.uint16) == 0xFFFF)


def test_vmap_where_compare_and_constants() -> None:
    rng = np.random.default_rng(0)
    a, b = numbers(rng, "f32", 100), numbers(rng, "f32", 100)
    ub, _ = vector(
        """
vmap fn=gt dst=8192 a=0 b=4096 n2=100 d2=1 a2=4 b2=4 td=b8 ta=f32 bimm=0
vmap fn=where dst=12288 a=8192 b=0 n2=100 d2=4 a2=1 b2=4 td=f32 ta=b8 bimm=0 immc=-2.5
""",
        a,
        b,
    )
    assert np.array_equal(ub[8192:8292], (a > b).astype(np.uint8))
    assert np.array_equal(ub[12288 : 12288 + 400].view(np.float32), np.where(a > b, a, np.float32(-2.5)))


def test_vmap_counts_by_row() -> None:
    a = np.array([1e5, 0.0, -0.0, 3.0], np.float32)
    _, counts = vector(
        "vmap fn=copy dst=8192 a=0 n2=4 d2=2 a2=4 td=f16 ta=f32\nvmap fn=div dst=8192 a=0 b=0 n2=4 d2=4 a2=4 b2=4 td=f32 ta=f32 bimm=0",
        a,
    )
    assert counts.overflow.tolist() == [0, 1, 0]
    assert counts.invalid.tolist() == [0, 0, 2]


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
def test_vreduce_in_pieces_is_the_whole(name: str) -> None:
    a = numbers(np.random.default_rng(0), "f32", 3, 40, 5)
    head = f"vreduce fn={name} dst=16384 n0=3 n2=5 d0=20 d2=4 a0=800 a1=20 a2=4 td=f32 ta=f32 "
    whole, _ = vector(head + "a=0 n1=40", a)
    pieces, _ = vector(
        head + "a=0 n1=24 state=24576 last=0\n" + head + f"a={24 * 20} n1=16 state=24576 start=24 first=0", a
    )
    lanes = a.reshape(3, 5, 8, 5)
    operation = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}[name]
    value = lanes[:, 0]
    if name == "sum":
        value = value + np.float32(0)
    for i in range(1, 5):
        value = operation(value, lanes[:, i])
    for s in (4, 2, 1):
        value = operation(value[:, :s], value[:, s : 2 * s])
    for ub in (whole, pieces):
        assert np.array_equal(ub[16384 : 16384 + 60].view(np.float32).reshape(3, 5), value[:, 0])


@pytest.mark.parametrize(("dtype", "kind"), [("i32", np.int32), ("f16", np.float16), ("i8", np.int8)])
def test_iota(dtype: str, kind: Any) -> None:
    size = np.dtype(kind).itemsize
    ub, _ = vector(
        f"iota dst=4096 n0=2 n1=3 n2=7 d0={30 * size} d1={10 * size} d2={size} td={dtype} base=-5 c0=20 c1=-7 c2=2",
        np.zeros(4, np.int32),
    )
    i0, i1, i2 = np.indices((2, 3, 7))
    got = ub[4096 : 4096 + 60 * size].view(kind).reshape(2, 3, 10)[:, :, :7]
    assert np.array_equal(got, (-5 + 20 * i0 - 7 * i1 + 2 * i2).astype(kind))


def test_an_extent_of_zero_does_nothing() -> None:
    memory = device()
    execute(
        memory,
        "load dst=999999999 space=l1 src=0 n4=0 esize=3 s4=1\nmma dst=1 a=1 b=1 m=-1 n=1 k=1 lda=1 ldb=1 ldc=1 dtype=f16",
    )
    assert np.all(memory.cores[0].l1 == 0xFF)
