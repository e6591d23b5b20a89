"""The feed of packed integers against a direct statement of its `action`, its faults, its footprint and its time."""

# ruff: noqa: E501 rows of assembly are long

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from stepwell.runtime.assembly import assemble
from stepwell.runtime.checker import Report, check
from stepwell.runtime.emulator import new_counters, run
from stepwell.runtime.faults import AccessFault, DeviceFault, ValueFault
from stepwell.runtime.formulas import evaluate
from stepwell.runtime.isa import BY_NAME, PACKED
from stepwell.runtime.memory import Memory
from stepwell.runtime.numerics.packed import dequantised, pack, row_bytes, unpack
from stepwell.runtime.target import Target

Array = npt.NDArray[Any]
EDGE = Target.load("edge")
FLOATS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
LIMITS = {"i4": (-8, 7), "u4": (0, 15), "i8": (-128, 127), "u8": (0, 255)}


def integers(rng: np.random.Generator, kind: str, *shape: int) -> Array:
    low, high = LIMITS[kind]
    return rng.integers(low, high + 1, shape)


def one_by_one(q: Array, scale: Array, zero: Array | None, k0: int, block: int, dtype: str) -> Array:
    """The action, element by element: [k, n] as f32."""
    n, k = q.shape
    found = np.zeros((k, n), np.float32)
    for i, j in itertools.product(range(k), range(n)):
        b = (k0 + i) // block
        z = 0 if zero is None else int(zero[j, b])
        with np.errstate(over="ignore"):
            product = np.float32(int(q[j, i]) - z) * np.float32(scale[j, b])
            found[i, j] = np.float32(product.astype(scale.dtype).astype(FLOATS[dtype]))
    return found


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("count", [1, 2, 7, 16, 33])
def test_bytes_hold_the_integers(kind: str, count: int) -> None:
    q = integers(np.random.default_rng(count), kind, 3, count)
    packed = pack(q, kind)
    assert packed.shape == (3, row_bytes(kind, count))
    assert np.array_equal(unpack(packed, kind, count), q)


def test_the_first_integer_is_in_the_low_half() -> None:
    assert pack(np.array([[1, 2, -1]]), "i4").tolist() == [[0x21, 0x0F]]


@pytest.mark.parametrize("zeros", [0, 1])
@pytest.mark.parametrize(
    ("ts", "dtype"), [("f16", "f16"), ("f32", "f16"), ("f32", "f32"), ("f16", "bf16"), ("bf16", "bf16")]
)
@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize(
    ("k", "n", "k0", "block"), [(1, 1, 0, 16), (16, 16, 16, 32), (40, 35, 24, 16), (33, 20, 5, 17), (64, 17, 0, 1000)]
)
def test_feed_q(kind: str, ts: str, dtype: str, zeros: int, k: int, n: int, k0: int, block: int) -> None:
    rng = np.random.default_rng(k + n)
    blocks = (k0 + k - 1) // block + 1
    q, zero = integers(rng, kind, n, k), integers(rng, kind, n, blocks) if zeros else None
    scale = rng.standard_normal((n, blocks)).astype(FLOATS[ts])
    scale[0, -1] = 40000.0  # beyond f16 with most integers
    memory, packed = Memory(EDGE, 1 << 16), pack(q, kind)
    size, pitch = scale.itemsize, packed.shape[1] + 3
    memory.write(0, np.pad(packed, ((0, 0), (0, 3))))
    memory.write(16384, scale)
    if zero is not None:
        memory.write(32768, pack(zero, kind[0] + "8"))
    ld, wide = -(-n // 16) * 16, np.dtype(FLOATS[dtype]).itemsize
    execute(
        memory,
        f"""
load dst=0 space=l1 src=0 n4=65536 esize=1 s4=1
feed_q dst={16 * wide} src=0 scale=16384 zero=32768 k={k} n={n} ld={ld} pitch={pitch} spitch={blocks * size} zpitch={blocks} k0={k0} block={block} zeros={zeros} of={kind} ts={ts} dtype={dtype}""",
    )
    got = memory.cores[0].l0b.view(np.uint32)[EDGE.l0b_bytes * (4 // wide - 1) // 4 :][: EDGE.l0b_bytes // wide]
    want = np.full(EDGE.l0b_bytes // wide, 0xFFFFFFFF, np.uint32)
    expected = one_by_one(q, scale, zero, k0, block, dtype)
    for i in range(k):
        want[16 + i * ld : 16 + i * ld + n] = expected[i].view(np.uint32)
    assert np.array_equal(got, want)
    if k0 % block == 0:
        first = k0 // block
        known = dequantised(q, scale[:, first:], None if zero is None else zero[:, first:], block)
        with np.errstate(over="ignore"):
            assert np.array_equal(known.astype(FLOATS[dtype]).astype(np.float32).T, expected)


def execute(memory: Memory, text: str) -> None:
    run(assemble(text), arguments=(), memory=memory, target=EDGE, counters=new_counters(), cores=1)


ROW = "feed_q dst=0 src=0 scale=4096 k=32 n=16 ld=16 pitch=16 spitch=8 block=16 of=i4 ts=f32 dtype=f16"


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (("block=16", "block=8"), ValueFault, "value: block = 8; 16 to "),
        (("ts=f32", "ts=i8"), ValueFault, "value: ts = 3; 0 to 2 was expected"),
        (("dtype=f16", "dtype=i8"), ValueFault, "value: dtype = 3; 0 to 2 was expected"),
        (("spitch=8", "spitch=8 k0=-16"), ValueFault, "value: k0 = -16; 0 to "),
        (("scale=4096", "scale=1048560"), AccessFault, "out-of-bounds: scale reaches bytes 1048560 to "),
        (("scale=4096", "scale=4098"), AccessFault, "misaligned: scale at byte 4098 of L1"),
        (("src=0", "src=1048570"), AccessFault, "out-of-bounds: src reaches bytes 1048570 to 1048826 of L1"),
        (("block=16", "block=16 zeros=1 zero=1048575 zpitch=2"), AccessFault, "out-of-bounds: zero reaches"),
        (("ld=16", "ld=2000"), AccessFault, "out-of-bounds: dst reaches bytes"),
    ],
)
def test_faults(change: tuple[str, str], kind: type[DeviceFault], message: str) -> None:
    with pytest.raises(kind) as caught:
        execute(Memory(EDGE, 4096), ROW.replace(*change))
    assert str(caught.value).startswith(message)


def test_it_costs_as_much_as_a_feed_of_the_floats() -> None:
    fields = {"k": 100, "n": 40, "dtype": 0}
    assert evaluate(BY_NAME["feed_q"].cycles, fields, EDGE) == evaluate(BY_NAME["feed_b"].cycles, fields, EDGE)


ORDERED = """
load dst=0 space=l1 src=0 n4=256 esize=1 s4=1
load dst=4096 space=l1 src=4096 n4=128 esize=1 s4=1
load dst=8192 space=l1 src=8192 n4=32 esize=1 s4=1
set src=load dst=feed id=0
wait src=load dst=feed id=0
feed_q dst=0 src=0 scale=4096 zero=8192 k=32 n=16 ld=16 pitch=16 spitch=8 zpitch=2 block=16 zeros=1 of=u4 ts=f32 dtype=f16
"""


def report(text: str) -> Report:
    return check(assemble(text), target=EDGE, cores=1, gm_size=1 << 14, initialised=[(0, 1 << 14)])


def test_the_checker_knows_what_it_reads() -> None:
    assert report(ORDERED).clean
    rows = ORDERED.strip().splitlines()
    for late in range(3):
        moved = [*(row for i, row in enumerate(rows[:4]) if i != late), rows[late], *rows[4:]]
        (finding,) = report("\n".join(moved)).findings
        assert finding.kind == "race"
        assert "a set/wait from load to feed is missing" in str(finding)


@pytest.mark.parametrize(("first", "second"), [("n4=128", "n4=124"), ("n4=256", "n4=255"), ("n4=32", "n4=31")])
def test_a_byte_that_nothing_loaded_is_found(first: str, second: str) -> None:
    (finding,) = report(ORDERED.replace(first, second, 1)).findings
    assert finding.kind == "unwritten"


def test_blocks_before_the_first_are_not_read() -> None:
    """From row 32 on, blocks 2 and 3 of each column: the first scales and zero points need not be there."""
    text = ORDERED.replace("n4=128", "n4=120").replace("dst=4096", "dst=4104").replace("n4=32 ", "n4=30 ")
    text = text.replace("dst=8192", "dst=8194").replace("spitch=8", "spitch=16").replace("zpitch=2", "zpitch=4")
    text = text.replace("k=32", "k=32 k0=32").replace("n=16", "n=8")
    assert report(text).clean
