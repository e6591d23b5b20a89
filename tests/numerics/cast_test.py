"""Casts between all types against the oracle, and the two ways to convert f16 against each other."""

import ml_dtypes
import numpy as np
import numpy.typing as npt
import oracle
import pytest

from stepwell.runtime import jit
from stepwell.runtime.numerics import bits, host, scalar
from stepwell.runtime.numerics.dtype import DType

KINDS = list(DType)


def samples(kind: DType) -> npt.NDArray[np.generic]:
    rng = np.random.default_rng(int(kind))
    if kind.size == 1:
        return np.arange(256, dtype=np.uint8).view(kind.numpy) if kind != DType.B8 else np.array([False, True])
    if kind.size == 2:
        return np.arange(65536, dtype=np.uint16).view(kind.numpy)
    if kind == DType.F32:
        halfway = np.arange(0, 2**32, 65521, dtype=np.uint64).astype(np.uint32) & np.uint32(0xFFFFF000)
        return np.concatenate([halfway, halfway | 1, halfway - 1, halfway | 0x8000]).view(np.float32)
    limits = np.iinfo(kind.numpy)
    wide = rng.integers(limits.min, limits.max, 3000, dtype=np.int64, endpoint=True)
    scaled = wide >> rng.integers(0, limits.bits - 1, 3000)
    ties = np.array([(2 * k + 1) << s for k in range(128, 260) for s in range(limits.bits - 12)], np.int64)
    return np.concatenate([scaled, ties, ties + 1, ties - 1, -ties, [limits.min, limits.max]]).astype(kind.numpy)


@pytest.mark.parametrize("target", KINDS, ids=str)
@pytest.mark.parametrize("source", KINDS, ids=str)
def test_casts(source: DType, target: DType) -> None:
    x = samples(source)
    found, expected = host.cast(x, target), oracle.cast(x, target.numpy)
    wrong = np.flatnonzero(found.view(f"u{target.size}") != expected.view(f"u{target.size}"))
    assert len(wrong) == 0, [(x[i], found[i], expected[i]) for i in wrong[:5]]


def test_any_other_byte_than_0_is_true() -> None:
    x = np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    assert host.cast(x, DType.F32).tolist() == [0, 1, 1, 1]
    assert host.cast(x, DType.I32).tolist() == [0, 1, 1, 1]


@jit.kernel
def _differing_halves(count: int) -> int:
    """Halves whose conversion by the CPU and by bit operations differ."""
    found = 0
    for h in range(count):
        fast, slow = bits.half_extend(h), scalar.half_to_f32(h)
        found += bits.f32_bits(fast) != bits.f32_bits(slow)
    return found


@jit.kernel
def _differing_floats(start: int, step: int, count: int) -> int:
    """The same for f32 to f16, NaNs apart."""
    found = 0
    for k in range(count):
        x = bits.bits_f32(start + k * step)
        found += x == x and bits.half_truncate(x) != scalar.f32_to_half(x)
    return found


@pytest.mark.skipif(not jit.HAS_F16C, reason="this CPU has one way only")
def test_bit_operations_convert_f16_as_the_cpu_does() -> None:
    assert _differing_halves(65536) == 0
    assert _differing_floats(0, 211, 2**32 // 211) == 0
    assert _differing_floats(0x38000000, 1, 1 << 20) == 0, "around the smallest normal f16"


def test_f16_agrees_with_numpy() -> None:
    x = np.random.default_rng(0).integers(0, 2**32, 1 << 20, dtype=np.uint32).view(np.float32)
    x = x[~np.isnan(x)]
    with np.errstate(over="ignore"):
        assert np.array_equal(host.cast(x, DType.F16), x.astype(np.float16))
        assert np.array_equal(host.cast(x, DType.BF16).view(np.uint16), x.astype(ml_dtypes.bfloat16).view(np.uint16))
