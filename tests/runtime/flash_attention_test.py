"""The hand-written flash attention of examples/: values against an oracle of its own, every interleaving, tokens, time.

The oracle is written from docs/numerics.md; only `exp`, which is defined by its algorithm, comes from the runtime.
"""

import dataclasses
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from flash_attention.kernel import FEW, Attention, Tiles, fit, time
from numpy.typing import NDArray

from stepwell.runtime.checker import check
from stepwell.runtime.emulator import Prepared, new_counters, prepare, run
from stepwell.runtime.encoding import Program, Row
from stepwell.runtime.findings import Report
from stepwell.runtime.isa import Engine
from stepwell.runtime.memory import Memory
from stepwell.runtime.numerics import host
from stepwell.runtime.numerics.dtype import DType
from stepwell.runtime.numerics.function import FN
from stepwell.runtime.plan import Kernel
from stepwell.runtime.target import Target

Array = NDArray[Any]
EDGE = Target.load("edge")
TINY = dataclasses.replace(Target.load("tiny"), cores=2)
TARGETS = {"edge": EDGE, "tiny": TINY}
KEYS = (0, 1, 127, 128, 129, 1000)
GUARD = 256
"""Bytes around each array that must stay as they are."""
F32 = np.float32


@cache
def kernel(target: str, d: int) -> tuple[Kernel, Prepared]:
    made = fit(TARGETS[target], d)
    return made, prepare(made.program)


@cache
def operands(case: Attention) -> tuple[Array, Array, Array]:
    """q, k, v as [heads, length, d]; scores spread over more than one binade, so that the running maximum moves."""
    random = np.random.default_rng(case.keys * 7 + case.queries + case.d)
    key_heads = case.heads // case.group
    shapes = ((case.heads, case.queries), (key_heads, case.rows), (key_heads, case.rows))
    q, k, v = (random.normal(size=(*shape, case.d)).astype(np.float16) for shape in shapes)
    k[:, case.keys :] = v[:, case.keys :] = np.nan
    return 3 * q, k, v


def lane_sum(p: Array) -> Array:
    """Section 6 over the last axis."""
    lanes = np.zeros((*p.shape[:-1], 8), F32)
    for i in range(0, p.shape[-1], 8):
        part = p[..., i : i + 8]
        lanes[..., : part.shape[-1]] += part
    for step in (4, 2, 1):
        lanes = lanes[..., :step] + lanes[..., step : 2 * step]
    return lanes[..., 0]


def contract(a: Array, b: Array) -> Array:
    """Section 5: a[h, m, k]·b[h, k, n], k ascending. A product of f16 values is exact in f32."""
    total = np.zeros((a.shape[0], a.shape[1], b.shape[2]), F32)
    for i in range(a.shape[2]):
        total += a[:, :, i, None].astype(F32) * b[:, None, i, :].astype(F32)
    return total


def exp(x: Array) -> Array:
    return host.elementwise(FN.EXP, np.ascontiguousarray(x))


@cache
def oracle(case: Attention) -> Array:
    """Section 7, block by block, with no block skipped; f16 [heads, queries, d]."""
    q, k, v = operands(case)
    k, v = (np.repeat(x[:, : case.keys], case.group, 0) for x in (k, v))
    m = np.full((case.heads, case.queries, 1), np.finfo(F32).min, F32)
    total, o = np.zeros_like(m), np.zeros((case.heads, case.queries, case.d), F32)
    for start in range(0, case.keys, 128):
        k_block, v_block = k[:, start : start + 128], v[:, start : start + 128]
        s = contract(q, k_block.transpose(0, 2, 1)) * F32(case.scale)
        if case.causal:
            query, key = np.arange(case.queries)[:, None] + case.offset, np.arange(k_block.shape[1]) + start
            s = np.where(key > query, F32(-np.inf), s)
        new = np.maximum(m, s.max(-1, keepdims=True))
        p, a = exp(s - new), exp(m - new)
        total = total * a + lane_sum(p)[..., None]
        o = o * a + contract(p.astype(np.float16), v_block)
        m = new
    return np.where(total == 0, F32(0), o / np.where(total == 0, F32(1), total)).astype(np.float16)


@dataclasses.dataclass(frozen=True)
class Placement:
    """Where q, k, v and y lie in global memory, `GUARD` bytes apart, and its size."""

    places: tuple[int, ...]
    sizes: tuple[int, ...]
    gm: int

    @staticmethod
    def of(arrays: Sequence[Array]) -> "Placement":
        places, at = list[int](), GUARD
        for x in arrays:
            places.append(at)
            at += -(-x.nbytes // 64) * 64 + GUARD
        return Placement(tuple(places), tuple(x.nbytes for x in arrays), at)

    @property
    def intervals(self) -> list[tuple[int, int]]:
        return [(place, place + size) for place, size in zip(self.places, self.sizes, strict=True)]


def launch(case: Attention, target: str, cores: int = 1, **how: Any) -> Array:
    """The result of the kernel, which must leave the rest of global memory as it is, and have nothing to count.

    `how` goes to `run`: a seed, or where the launch places the kernel.
    """
    arrays = [np.moveaxis(x, 0, 1) if case.heads_inside else x for x in operands(case)]
    placed = Placement.of([*arrays, arrays[0]])
    memory = Memory(TARGETS[target], placed.gm)
    memory.gm[:] = 0xA5
    for place, x in zip(placed.places, arrays, strict=False):
        memory.write(place, x)
    before = memory.gm.copy()
    counts = run(
        kernel(target, case.d)[1], arguments=case.arguments(*placed.places), memory=memory, target=TARGETS[target],
        counters=new_counters(), cores=cores, **how,
    )  # fmt: skip
    assert not counts.overflow.any()
    assert not counts.invalid.any()
    y = memory.read(placed.places[-1], DType.F16, arrays[0].shape)
    memory.write(placed.places[-1], before[slice(*placed.intervals[-1])])
    np.testing.assert_array_equal(memory.gm, before)
    return np.moveaxis(y, 1, 0) if case.heads_inside else y


def assert_exact(case: Attention, target: str, **how: Any) -> None:
    expected = oracle(case)
    np.testing.assert_array_equal(launch(case, target, **how).view(np.uint16), expected.view(np.uint16))


def findings(
    program: Program, case: Attention, target: Target, cores: int = 1, l1: int = 0, ub: int = 0, token: int = 0
) -> Report:
    q, k, v = operands(case)
    placed = Placement.of((q, k, v, q))
    return check(
        program, arguments=case.arguments(*placed.places), l1=l1, ub=ub, token=token, target=target, cores=cores,
        gm_size=placed.gm, initialised=placed.intervals[:3], outputs=placed.intervals[3:],
    )  # fmt: skip


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("queries", [1, 100, 130])
@pytest.mark.parametrize("d", [64, 40])
@pytest.mark.parametrize("target", TARGETS)
def test_the_bits_are_those_of_the_document(target: str, d: int, queries: int, keys: int, causal: bool) -> None:
    case = Attention(3, queries, keys, d, causal, offset=keys - queries)
    for cores in (1, 2):
        assert_exact(case, target, cores=cores)


OTHER_CASES = {
    "rows without keys, blocks skipped": Attention(2, 200, 300, 40, causal=True, offset=-70),
    "prefill": Attention(2, 150, 150, 64, causal=True),
    "queries behind all keys": Attention(1, 20, 30, 64, causal=True, offset=100),
    "key heads shared": Attention(6, 40, 129, 40, group=3),
    "heads inside": Attention(4, 40, 129, 40, causal=True, offset=89, group=2, heads_inside=True),
    "a cache with room to grow": Attention(2, 1, 129, 64, causal=True, offset=128, capacity=200),
    "no queries": Attention(2, 0, 129, 64),
}


@pytest.mark.parametrize("case", OTHER_CASES.values(), ids=OTHER_CASES)
@pytest.mark.parametrize("target", TARGETS)
def test_other_layouts_and_masks(target: str, case: Attention) -> None:
    assert_exact(case, target, cores=2)


def test_a_row_without_keys_is_plus_zero() -> None:
    case = OTHER_CASES["rows without keys, blocks skipped"]
    y = launch(case, "edge").view(np.uint16)
    assert not y[:, : -case.offset].any()
    assert y[:, -case.offset :].any(axis=-1).all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(6))
def test_every_interleaving_gives_the_same_bytes(target: str, seed: int) -> None:
    assert_exact(Attention(3, 130, 300, 40, causal=True, offset=170), target, cores=2, seed=seed)


def test_the_kernel_runs_where_the_launch_places_it() -> None:
    assert_exact(Attention(2, 30, 140, 40), "edge", l1_base=4096, ub_base=1024, id_base=5)


CHECKED = [
    Attention(3, 130, 300, 64, causal=True, offset=170),
    Attention(3, 130, 129, 40),
    Attention(3, 100, 0, 40, causal=True, offset=-100),
    Attention(5, 20, 1000, 64),
    OTHER_CASES["rows without keys, blocks skipped"],
]


@pytest.mark.parametrize("case", CHECKED, ids=str)
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("target", TARGETS)
def test_the_checker_finds_nothing(target: str, cores: int, case: Attention) -> None:
    report = findings(kernel(target, case.d)[0].program, case, TARGETS[target], cores)
    assert report.clean, str(report)


def test_the_checker_finds_nothing_with_short_queues_and_other_places() -> None:
    target = dataclasses.replace(EDGE, queue_depth=4)
    report = findings(kernel("edge", 40)[0].program, CHECKED[1], target, 2, l1=4096, ub=1024, token=5)
    assert report.clean, str(report)


def without(program: Program, token: tuple[int, ...]) -> Program:
    return tuple(r for r in program if token_of(r) != token)


def token_of(r: Row) -> tuple[int, ...] | None:
    return tuple(r[f].base for f in ("src", "dst", "id")) if r.name in ("set", "wait", "grant") else None


def test_no_token_can_be_spared() -> None:
    """With more slots, blocks or parts of a block, one token may follow from others: each is needed in one of these."""
    kernels = [fit(EDGE, 40, Tiles(16, 32, 40, slots)).program for slots in (FEW, FEW | {"v": 2, "p": 2})]
    cases = [Attention(5, 40, 20, 40), Attention(5, 40, 300, 40)]
    unproved = {token for r in kernels[0] if (token := token_of(r))}
    assert len(unproved) == 24
    for program, case in product(kernels, cases):
        assert findings(program, case, EDGE).clean
        for token in sorted(unproved):
            found = findings(without(program, token), case, EDGE).findings
            assert {finding.kind for finding in found} <= {"race", "unwritten"}
            if found:
                unproved.remove(token)
    assert not unproved


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("target", TARGETS)
def test_no_launch_is_faster_than_its_engines(target: str, causal: bool) -> None:
    case, t = Attention(4, 300, 300, 64, causal), TARGETS[target]
    one, two = (time(kernel(target, 64)[0], case, t, cores) for cores in (1, 2))
    for timing in (one, two):
        assert timing.cycles >= max(timing.cube_cycles, timing.gm_bytes / t.gm_port, timing.busy.max())
    assert two.cycles < one.cycles


def test_the_vector_engine_is_never_idle() -> None:
    """Nothing else bounds the kernel on `edge`; a causal mask saves the blocks that it skips."""
    full, causal = (time(kernel("edge", 64)[0], Attention(4, 1000, 1000, 64, masked), EDGE) for masked in (False, True))
    for timing in (full, causal):
        assert timing.busy[:, Engine.VECTOR].min() > 0.98 * timing.cycles
    assert causal.cycles < 0.62 * full.cycles
