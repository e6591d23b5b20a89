"""Elementwise functions against the oracle: every f16 value, every type, strides, aliasing, counters."""

import ml_dtypes
import numpy as np
import numpy.typing as npt
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.runtime.numerics import host, vector
from stepwell.runtime.numerics.dtype import DType
from stepwell.runtime.numerics.function import IMPLEMENTATIONS, Implementation
from stepwell.runtime.numerics.functions import FN

HALVES = np.arange(65536, dtype=np.uint16).view(np.float16)
EDGES = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -3.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.1754944e-38, 3.4028235e38,
     -3.4028235e38, 88.7, 89.0, -87.3, -103.9, -104.5, 65504.0, 65519.99, 65520.0, 6e-8,
     2.9802322e-8, 2.9802326e-8, 0.625, 0.93,
     2.5, -2.5, 1e6, 1e30],
    np.float32,
)  # fmt: skip
REAL = [row for row in IMPLEMENTATIONS if row.real is not None]
WHOLE = [row for row in IMPLEMENTATIONS if row.whole is not None]
FLOATS = [DType.F16, DType.BF16, DType.F32]


def named(row: Implementation) -> str:
    return row.name


def operands_of(row: Implementation, seed: int = 0) -> list[npt.NDArray[np.float32]]:
    """Every pair of edges (so equal and special operands meet), then random values of all magnitudes."""
    rng = np.random.default_rng(seed)
    pairs = np.stack(np.meshgrid(EDGES, EDGES, indexing="ij")).reshape(2, -1)
    count = 3000
    values = (rng.standard_normal((3, count)) * 10.0 ** rng.uniform(-6, 6, (3, count))).astype(np.float32)
    third = np.resize(EDGES[::-1], pairs.shape[1])
    return [np.concatenate([p, q]) for p, q in zip((pairs[0], pairs[1], third), values, strict=True)][: row.arity]


def same_bits(found: npt.NDArray[np.generic], expected: npt.NDArray[np.generic]) -> None:
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes(), np.flatnonzero(
        np.frombuffer(found.tobytes(), np.uint8) != np.frombuffer(expected.tobytes(), np.uint8)
    )[:8]


def check_real(row: Implementation, operands: list[npt.NDArray[np.generic]], dtype: DType) -> None:
    """Bit equality, or for f32 results the stated error and the right special values."""
    found = host.elementwise(row.code, *operands, dtype=dtype)
    if row.name in oracle.EXACT:
        same_bits(found, oracle.elementwise(row.name, *operands, dtype=dtype.numpy))
        return
    function, bound, absolute = oracle.APPROXIMATE[row.name]
    with np.errstate(all="ignore"):
        exact = function(*(x.astype(np.float64) for x in operands))
        rounded = exact.astype(np.float32)
    found = found.astype(np.float64)
    if row.name in ("silu", "gelu"):  # −inf · 0
        exact = np.where(np.asarray(operands[0]) == -np.inf, np.nan, exact)
        rounded = exact.astype(np.float32)
    assert np.array_equal(np.isnan(found), np.isnan(exact))
    finite = np.isfinite(rounded) & np.isfinite(found)
    assert np.array_equal(found[~finite], rounded[~finite].astype(np.float64), equal_nan=True)
    error = np.abs(found[finite] - exact[finite])
    allowed = bound * oracle.ulp(exact[finite]) + absolute
    assert np.all(error <= allowed), (error / oracle.ulp(exact[finite])).max()


@pytest.mark.parametrize("row", [row for row in REAL if row.arity == 1], ids=named)
def test_every_half(row: Implementation) -> None:
    check_real(row, [HALVES], DType.F32)


@pytest.mark.parametrize("row", [row for row in REAL if row.name != "pow"], ids=named)
def test_edges_and_magnitudes(row: Implementation) -> None:
    check_real(row, [*operands_of(row)], DType.F32)


@pytest.mark.parametrize("dtype", [t for t in DType if t != DType.I64], ids=str)
@pytest.mark.parametrize("name", ["add", "max", "where", "affine", "lt", "copy"])
def test_float_operands_of_any_type_to_any_type(name: str, dtype: DType) -> None:
    row = IMPLEMENTATIONS[FN[name.upper()]]
    for source in FLOATS:
        operands = [oracle.cast(x, source.numpy) for x in operands_of(row, 1)]
        same_bits(
            host.elementwise(row.code, *operands, dtype=dtype),
            oracle.elementwise(row.name, *operands, dtype=dtype.numpy),
        )


@pytest.mark.parametrize("row", WHOLE, ids=named)
@pytest.mark.parametrize("kind", [DType.I8, DType.U8, DType.I32, DType.B8], ids=str)
def test_integers(row: Implementation, kind: DType) -> None:
    rng = np.random.default_rng(2)
    low, high = (0, 2) if kind == DType.B8 else (np.iinfo(kind.numpy).min, np.iinfo(kind.numpy).max + 1)
    operands = [rng.integers(low, high, 400).astype(kind.numpy) for _ in range(row.arity)]
    if kind != DType.B8:
        for x in operands:
            x[rng.integers(0, 400, 60)] = rng.integers(-2 if low else 0, 3, 60).astype(kind.numpy)
    if row.name == "pow":
        operands[1] = (operands[1] % 9).astype(kind.numpy) - (0 if kind in (DType.B8, DType.U8) else 3)
        operands[1] = operands[1].astype(kind.numpy)
    for dtype in (kind, DType.I32, DType.I8, DType.B8):
        same_bits(
            host.elementwise(row.code, *operands, dtype=dtype), oracle.whole(row.name, *operands, dtype=dtype.numpy)
        )


def test_power_follows_its_exact_rules_and_c99() -> None:
    x, y = (a.ravel() for a in np.meshgrid(EDGES, np.concatenate([EDGES, np.array([7, -2, -7, 0.25], np.float32)])))
    found = host.elementwise(FN.POW, x, y)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
        rules = {1.0: x, 2.0: x * x, 3.0: (x * x) * x, -1.0: 1 / x, 0.5: np.sqrt(x), 0.0: np.ones_like(x)}
        for value, result in rules.items():
            assert np.array_equal(found[y == value], result[y == value], equal_nan=True), value
        other = ~np.isin(y, list(rules))
        error = np.abs(found[other] - exact[other])
        close = (error <= 0.51 * oracle.ulp(exact[other])) | (found[other] == exact[other].astype(np.float32))
    assert np.all(close | (np.isnan(found[other]) & np.isnan(exact[other])))
    signed = ~np.isnan(found[other])
    assert np.array_equal(np.signbit(found[other][signed]), np.signbit(exact[other][signed]))


@pytest.mark.parametrize("function", [FN.SIN, FN.COS])
def test_angles_of_all_magnitudes(function: FN) -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(0, 2**32, 1 << 18, dtype=np.uint32).view(np.float32)
    x = np.concatenate([x[np.isfinite(x)], (np.arange(1, 4000) * (np.pi / 2)).astype(np.float32)])
    check_real(IMPLEMENTATIONS[function], [x], DType.F32)


@pytest.mark.parametrize("shape", [(1,), (15,), (17,), (1023,), (1025,), (3, 1), (5, 17, 33), (2, 3, 4, 5), (0, 4), ()])
def test_shapes_strides_and_broadcasts(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal(shape).astype(np.float16)
    views = [x, x[::-1], x[..., ::2], x.T, np.broadcast_to(x, (2, *shape))] if shape else [x]
    for view in views:
        y = rng.standard_normal(view.shape[-1:]).astype(np.float32)
        same_bits(host.elementwise(FN.ADD, view, y), (view.astype(np.float32) + y).astype(np.float16))
        same_bits(host.elementwise(FN.SUB, y, view), y - view.astype(np.float32))


@pytest.mark.parametrize("kind", list(DType), ids=str)
def test_strided_results_touch_nothing_else(kind: DType) -> None:
    out = np.full((6, 14), 7).astype(kind.numpy)
    expected = out.copy()
    x = np.arange(-6, 6).reshape(3, 4).astype(np.float32)
    expected[1::2, 2:10:2] = oracle.cast(x, kind.numpy) if kind != DType.I64 else x.astype(np.int64)
    host.elementwise(FN.COPY, x, out=out[1::2, 2:10:2])
    same_bits(out, expected)


@pytest.mark.parametrize("kind", [DType.F16, DType.F32, DType.I32], ids=str)
def test_a_result_may_replace_an_operand(kind: DType) -> None:
    a = np.random.default_rng(5).integers(-9, 9, (7, 300)).astype(kind.numpy)
    b = a[::-1].copy()
    expected = host.elementwise(FN.MUL, a, b)
    host.elementwise(FN.MUL, a, b, out=a)
    same_bits(a, expected)


def test_immediates_act_as_operands() -> None:
    x = np.linspace(-4, 4, 1500).astype(np.float16)
    out = np.empty_like(x)
    scratch, counters = np.empty(vector.SCRATCH_BYTES, np.uint8), np.zeros(3, np.int64)
    place = (x.ctypes.data, 0, 0, 2, int(DType.F16))
    vector.vmap(
        int(FN.CLIP), 1, 1, 1500, out.ctypes.data, 0, 0, 2, int(DType.F16), *place, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        -1.5, 2.25, 1, 1, scratch.ctypes.data, counters.ctypes.data,
    )  # fmt: skip
    same_bits(out, np.clip(x, np.float16(-1.5), np.float16(2.25)))


def test_counters_tell_overflow_from_invalid() -> None:
    counters = np.zeros(3, np.int64)
    x = np.array([60000, np.inf, 1, np.nan, -60000], np.float16)
    y = np.array([60000, 1, 1, 1, -60000], np.float16)
    host.elementwise(FN.ADD, x, y, counters=counters)
    assert counters.tolist() == [2, 0, 0]
    host.elementwise(
        FN.SUB, np.array([np.inf, np.nan, 1], np.float32), np.array([np.inf, 1, 1], np.float32), counters=counters
    )
    assert counters.tolist() == [2, 1, 0]
    host.elementwise(FN.MUL, np.array([3e38, 2], np.float32), np.array([3e38, 2], np.float32), counters=counters)
    assert counters.tolist() == [2, 1, 0], "the f32 product itself is infinite"
    host.cast(np.array([3.4e38, 65519], np.float32), DType.BF16, counters=counters)
    assert counters.tolist() == [3, 1, 0]


def test_written_nans_are_canonical() -> None:
    x = np.array([0xFFC00001, 0x7F800001, 0xFFFFFFFF], np.uint32).view(np.float32)
    for kind, bits in ((DType.F16, 0x7E00), (DType.BF16, 0x7FC0), (DType.F32, 0x7FC00000)):
        found = host.elementwise(FN.NEG, x, dtype=kind)
        assert set(found.view(f"u{kind.size}").tolist()) == {bits}


@given(
    st.lists(st.floats(width=32), min_size=1, max_size=40),
    st.sampled_from(["add", "mul", "div", "max", "min", "mod", "fmod", "sub"]),
    st.sampled_from(FLOATS),
)
def test_any_values(values: list[float], name: str, kind: DType) -> None:
    x = np.array(values, np.float32)
    y = x[::-1].copy()
    same_bits(host.elementwise(FN[name.upper()], x, y, dtype=kind), oracle.elementwise(name, x, y, dtype=kind.numpy))


def test_a_wrong_number_of_operands_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"add takes 2 operands \(found 1\)"):
        host.elementwise(FN.ADD, HALVES)
    with pytest.raises(ValueError, match="float64 has no device type"):
        host.elementwise(FN.ADD, np.zeros(3), np.zeros(3))


def test_types_name_each_other() -> None:
    assert [DType.of(np.zeros(1, t.numpy)) for t in DType] == list(DType)
    assert DType.parse("bf16").numpy == np.dtype(ml_dtypes.bfloat16)
    with pytest.raises(ValueError, match="'F16' is no type"):
        DType.parse("F16")
