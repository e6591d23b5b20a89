"""The functions of one f32 value: own algorithms from `+ − × ÷`, exact rounding operations and integer operations.

No fma, no libm, no reassociation, so that a result is the same on every CPU; no branches (but for what a docstring
calls slow), so that a loop over any of them vectorises. Errors are in units of the last place of f32, measured
against f64 over every 211th of all f32 values (erf: every 1477th); special cases follow C99 annex F. The
polynomials are minimax fits (Lawson's iteration) with their coefficients rounded to f32 one after the other; in f64
they are Taylor series.

`pow`, `sin`, `cos`, `sinh`, `asinh` and `atan` compute in f64, which is where their extra precision comes from:
rounding is then their only noticeable error.
"""

from ..jit import inline
from .bits import (
    absolute,
    add32,
    and32,
    bits_f32,
    bits_f64,
    copysign,
    f32,
    f32_bits,
    f64,
    f64_bits,
    i32,
    i64,
    maximum,
    minimum,
    or32,
    polynomial,
    rint,
    select,
    select32,
    select64,
    shl32,
    shr32,
    sqrt,
    sqrt64,
    sub32,
    u64,
)

INF = f32(float("inf"))
NAN = f32(float("nan"))
ZERO, HALF, ONE, TWO, THREE, SIX = (f32(v) for v in (0.0, 0.5, 1.0, 2.0, 3.0, 6.0))
SIXTH = f32(1 / 6)
SQRT_HALF = f32(0.5**0.5)
MAGIC = f32(1.5 * 2**23)  # x + MAGIC rounds x to an integer, which then sits in the low bits
MAGIC_BITS = i32(0x4B400000)
LOG2_E = f32(1.4426950408889634)
LN2_HIGH = f32(0.693359375)  # ten bits: n · LN2_HIGH is exact
LN2_LOW = f32(-2.12194440e-4)
EXP_LOW, EXP_HIGH = f32(-104.0), f32(89.0)  # beyond them exp is 0 and inf

_exp_tail = polynomial(0.49999994, 0.166665211, 0.0416682772, 0.00836868677, 0.00138198258)
_expm1_tail = polynomial(0.166666672, 0.0416666642, 0.00833317637, 0.00138891139, 0.00019964244, 2.48158776e-05)
_log_tail = polynomial(
    0.333333135,
    -0.250000089,
    0.200020716,
    -0.166679889,
    0.142203584,
    -0.124062337,
    0.118835486,
    -0.116700992,
    0.067492716,
)
_tanh_tail = polynomial(-0.333333313, 0.133332223, -0.053948462, 0.0217087492, -0.00819508638, 0.00215763575)
_erf_near = polynomial(
    0.128379166, -0.376126289, 0.112836242, -0.026855588, 0.0051919478, -0.000804383948, 7.96966342e-05
)
_erf_far = polynomial(
    0.128551751, 0.635625243, 0.105262779, -0.022674242, 0.00293023256, -4.96170214e-05, -4.55748195e-05, 4.93767493e-06
)


@inline
def power_of_two(n: int) -> float:
    """2ⁿ for −126 ≤ n ≤ 127."""
    return bits_f32(shl32(add32(n, i32(127)), i32(23)))


@inline
def _exp_shift(x: float) -> float:
    """x ÷ ln 2 rounded to an integer, plus MAGIC."""
    return x * LOG2_E + MAGIC


@inline
def _exp_rest(x: float, shifted: float) -> float:
    """e^r with x = n·ln 2 + r, |r| ≤ ½ ln 2 (Cody and Waite)."""
    n = shifted - MAGIC
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    return ONE + (r + (r * r) * _exp_tail(r))


@inline
def exp(x: float) -> float:
    """eˣ, scaled by 2ⁿ in two steps so that subnormals round once; error below 0.96."""
    x = select(x > EXP_HIGH, EXP_HIGH, select(x < EXP_LOW, EXP_LOW, x))
    shifted = _exp_shift(x)
    k = sub32(f32_bits(shifted), MAGIC_BITS)
    half = shr32(k, i32(1))
    return (_exp_rest(x, shifted) * power_of_two(half)) * power_of_two(sub32(k, half))


@inline
def _exp_moderate(x: float) -> float:
    """The same for |x| < 80."""
    shifted = _exp_shift(x)
    return _exp_rest(x, shifted) * power_of_two(sub32(f32_bits(shifted), MAGIC_BITS))


@inline
def expm1(x: float) -> float:
    """eˣ − 1: a polynomial below ½, exp above; error below 1.2 for x < 0."""
    near = x + (x * x) * (HALF + x * _expm1_tail(x))
    return select(absolute(x) < HALF, near, exp(x) - ONE)


@inline
def log(x: float) -> float:
    """ln x with x = 2ᵉ·m, √½ ≤ m < √2; error below 0.76."""
    small = x < f32(1.17549435e-38)
    bits = f32_bits(select(small, x * f32(8388608.0), x))
    e = shr32(sub32(bits, i32(0x3F3504F3)), i32(23))
    f = bits_f32(sub32(bits, shl32(e, i32(23)))) - ONE
    n = f32(sub32(e, select32(small, i32(23), i32(0))))
    square = f * f
    y = f * square * _log_tail(f) + n * LN2_LOW
    y = (f + (y - HALF * square)) + n * LN2_HIGH
    y = select(x == INF, INF, select(x == ZERO, -INF, y))
    return select(x >= ZERO, y, NAN)


@inline
def log1p_unit(x: float) -> float:
    """ln(1 + x) for 0 ≤ x ≤ 1, corrected for the rounding of 1 + x."""
    u = ONE + x
    return log(u) + (x - (u - ONE)) / u


@inline
def tanh(x: float) -> float:
    """An odd polynomial below 0.625, 1 − 2 ÷ (e²ˣ + 1) above; error below 1.24."""
    a = absolute(x)
    square = x * x
    near = x + x * (square * _tanh_tail(square))
    far = ONE - TWO / (_exp_moderate(TWO * select(a > f32(10.0), f32(10.0), a)) + ONE)
    return select(a < f32(0.625), near, copysign(far, x))


@inline
def erf(x: float) -> float:
    """An odd polynomial below 0.93, 1 − e^(−a − a·P(a)) above; error below 1.07."""
    a = absolute(x)
    near = x + x * _erf_near(x * x)
    t = select(a > f32(4.0), f32(4.0), a)
    far = ONE - _exp_moderate(-(t + t * _erf_far(t)))
    return select(a < f32(0.93), near, copysign(far, x))


@inline
def sigmoid(x: float) -> float:
    """1 ÷ (1 + e⁻ˣ); error below 2.3; below −88.73 it is 0, where the exact value is subnormal."""
    return ONE / (ONE + exp(-x))


@inline
def silu(x: float) -> float:
    """x · sigmoid(x)."""
    return x * sigmoid(x)


@inline
def gelu(x: float) -> float:
    """(x · ½) · (1 + erf(x · √½))."""
    return (x * HALF) * (ONE + erf(x * SQRT_HALF))


@inline
def softplus(x: float) -> float:
    """max(x, 0) + ln(1 + e^−|x|); error below 1.87."""
    return maximum(x, ZERO) + log1p_unit(exp(-absolute(x)))


@inline
def elu(x: float, alpha: float) -> float:
    """x above 0, else α · (eˣ − 1)."""
    return select(x > ZERO, x, alpha * expm1(x))


@inline
def leakyrelu(x: float, alpha: float) -> float:
    """x from 0 on, else α · x."""
    return select(x >= ZERO, x, alpha * x)


@inline
def hardsigmoid(x: float, alpha: float, beta: float) -> float:
    """max(0, min(1, α · x + β))."""
    return maximum(ZERO, minimum(ONE, alpha * x + beta))


@inline
def hardswish(x: float) -> float:
    """x · (max(0, min(6, x + 3)) · f32(1/6))."""
    return x * (maximum(ZERO, minimum(SIX, x + THREE)) * SIXTH)


@inline
def sign(x: float) -> float:
    """−1, +0 or 1; NaN of NaN."""
    return select(x > ZERO, ONE, select(x < ZERO, -ONE, select(x == ZERO, ZERO, x)))


# ---- in f64

LOG2_E_64 = 1.4426950408889634
LN2_64 = 0.6931471805599453
MAGIC_64 = 1.5 * 2.0**52
INF_64 = float("inf")

_atanh_tail = polynomial(*(1 / (2 * k + 1) for k in range(11)), double=True)
_exp_64 = polynomial(
    1.0, 1.0, 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040, 1 / 40320, 1 / 362880, 1 / 3628800, 1 / 39916800,
    1 / 479001600, double=True,
)  # fmt: skip


@inline
def _log2_64(a: float) -> float:
    """log₂ a for a ≥ 0, relative error below 2⁻⁴⁸: 2·atanh((m − 1) ÷ (m + 1)) of the significand."""
    bits = f64_bits(a)
    e = (bits - i64(0x3FE6A09E667F3BCD)) >> i64(52)
    m = bits_f64(bits - (e << i64(52)))
    s = (m - 1.0) / (m + 1.0)
    y = f64(i32(e)) + (2.0 * LOG2_E_64) * (s * _atanh_tail(s * s))
    return select64(a == 0.0, -INF_64, select64(a == INF_64, INF_64, y))


@inline
def _exp2_64(t: float) -> float:
    """2ᵗ, for any t that is not NaN; beyond ±200 as if at ±200."""
    t = select64(t > 200.0, 200.0, select64(t < -200.0, -200.0, t))
    shifted = t + MAGIC_64
    n = f64_bits(shifted) - i64(0x4338000000000000)
    return _exp_64((t - (shifted - MAGIC_64)) * LN2_64) * bits_f64((n + i64(1023)) << i64(52))


@inline
def _pow_general(x: float, y: float) -> float:
    """|x|ʸ by logarithm and exponential, with the sign and the special cases of C99."""
    a = absolute(x)
    magnitude = f32(_exp2_64(f64(y) * _log2_64(f64(a))))
    whole = rint(y) == y
    half = y * HALF
    odd = whole & (rint(half) != half)
    result = select(odd, copysign(magnitude, x), magnitude)
    result = select((x < ZERO) & (a != INF) & (not whole), NAN, result)
    result = select((x != x) | (y != y), NAN, result)
    return select((y == ZERO) | (x == ONE) | ((a == ONE) & (absolute(y) == INF)), ONE, result)


@inline
def pow(x: float, y: float) -> float:
    """xʸ: products and roots where the contract says so, else the general rule with an error below 0.501."""
    result = select(y == HALF, sqrt(x), _pow_general(x, y))
    result = select(y == -ONE, ONE / x, result)
    square = x * x
    result = select(y == THREE, square * x, select(y == TWO, square, result))
    return select(y == ONE, x, result)


_sinh_near = polynomial(1.0, 1 / 6, 1 / 120, 1 / 5040, 1 / 362880, 1 / 39916800, 1 / 6227020800, double=True)
_atan_tail = polynomial(*((-1) ** k / (2 * k + 1) for k in range(11)), double=True)
PI_HALF_64 = 1.5707963267948966


@inline
def sinh(x: float) -> float:
    """(eˣ − e⁻ˣ) ÷ 2, a polynomial below 1; error below 0.501."""
    wide = f64(absolute(x))
    power = _exp2_64(wide * LOG2_E_64)
    y = select64(wide < 1.0, wide * _sinh_near(wide * wide), 0.5 * (power - 1.0 / power))
    return copysign(f32(y), x)


@inline
def asinh(x: float) -> float:
    """ln(|x| + √(x² + 1)) with the sign of x, as ln(1 + y) corrected for the rounding of 1 + y; error below 0.501."""
    wide = f64(absolute(x))
    y = wide + wide * wide / (1.0 + sqrt64(1.0 + wide * wide))
    one = 1.0 + y
    log = _log2_64(one) * LN2_64 + (y - (one - 1.0)) / one
    return copysign(select(absolute(x) == INF, INF, f32(log)), x)


@inline
def atan(x: float) -> float:
    """The arc tangent of |x| or 1 ÷ |x|, halved twice by r ÷ (1 + √(1 + r²)) for a series; error below 0.501."""
    wide = f64(absolute(x))
    y = select64(wide > 1.0, 1.0 / wide, wide)
    r = y / (1.0 + sqrt64(1.0 + y * y))
    r = r / (1.0 + sqrt64(1.0 + r * r))
    angle = 4.0 * (r * _atan_tail(r * r))
    return copysign(f32(select64(wide > 1.0, PI_HALF_64 - angle, angle)), x)


PI_HALF_HIGH = 1.5707963267341256  # 33 bits: n · PI_HALF_HIGH is exact for n < 2²⁰
PI_HALF_LOW = 6.077100506506192e-11
TWO_OVER_PI = 0.6366197723675814
REDUCIBLE = f32(1.0e6)  # up to here Cody and Waite's reduction holds

_sin_64 = polynomial(
    1.0, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800, 1 / 6227020800, -1 / 1307674368000, double=True
)
_cos_64 = polynomial(
    1.0, -1 / 2, 1 / 24, -1 / 720, 1 / 40320, -1 / 3628800, 1 / 479001600, -1 / 87178291200, double=True
)


@inline
def _turn(r: float, quadrant: int) -> float:
    """sin(r + quadrant · π/2) for |r| ≤ π/4."""
    square = r * r
    odd = (quadrant & i64(1)) != i64(0)
    y = select64(odd, _cos_64(square), r * _sin_64(square))
    return f32(select64((quadrant & i64(2)) != i64(0), -y, y))


@inline
def _turn_small(x: float, quadrant: int) -> float:
    wide = f64(x)
    shifted = wide * TWO_OVER_PI + MAGIC_64
    n = shifted - MAGIC_64
    r = (wide - n * PI_HALF_HIGH) - n * PI_HALF_LOW
    return _turn(r, f64_bits(shifted) + i64(quadrant))


@inline
def sin_small(x: float) -> float:
    """sin x for |x| ≤ REDUCIBLE; NaN of inf and NaN; error below 0.501."""
    return _turn_small(x, i64(0))


@inline
def cos_small(x: float) -> float:
    """cos x for |x| ≤ REDUCIBLE; NaN of inf and NaN; error below 0.501."""
    return _turn_small(x, i64(1))


# The bits of 2/π from weight 2⁶³ down, the first 64 being zeros.
_TWO_OVER_PI_BITS = tuple(
    u64(w) for w in (0, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561)
)


@inline
def _window(position: int) -> int:
    """64 bits of 2/π from bit `position` of the table."""
    word, offset = position >> i64(6), position & i64(63)
    high = _TWO_OVER_PI_BITS[word] << u64(offset)
    return high | ((_TWO_OVER_PI_BITS[word + 1] >> u64(1)) >> u64(i64(63) - offset))


@inline
def turn_large(x: float, quadrant: int) -> float:
    """sin(x + quadrant · π/2) for finite |x| > REDUCIBLE. Slow.

    By Payne and Hanek: x · 2/π modulo 4 from the 96 bits of 2/π that matter."""
    bits = f32_bits(x)
    exponent = i64((bits >> i64(23)) & i64(255)) - i64(150)  # |x| = significand · 2^exponent
    significand = u64((bits & i64(0x7FFFFF)) | i64(0x800000))
    position = exponent + i64(62)  # of weight 2¹ after scaling by 2^exponent
    product = significand * _window(position) + ((significand * (_window(position + i64(64)) >> u64(32))) >> u64(32))
    n = (product + u64(1 << 61)) >> u64(62)
    r = f64(i64(product - (n << u64(62)))) * (2.0**-62 * 1.5707963267948966)
    n = i64(n)
    if bits < i64(0):  # sin(−y + q·π/2) with y = r + n·π/2
        return _turn(-r, i64(quadrant) - n)
    return _turn(r, i64(quadrant) + n)


@inline
def fmod(x: float, y: float) -> float:
    """The exact remainder with the sign of x (C99), by long division, 39 bits a step. Slow."""
    a, b = absolute(x), absolute(y)
    if not (a < INF and b > ZERO):
        return NAN
    if not a >= b:
        return select(b != b, NAN, x)
    p, q = i64(f32_bits(a)), i64(f32_bits(b))
    ex, ey = max(p >> i64(23), i64(1)), max(q >> i64(23), i64(1))
    mx = p - ((ex - i64(1)) << i64(23))
    my = q - ((ey - i64(1)) << i64(23))
    shift = ex - ey
    rest = mx % my
    while shift > i64(0):
        step = min(shift, i64(39))
        rest = (rest << step) % my
        shift -= step
    return copysign(f32(f64(rest) * bits_f64((ey + i64(873)) << i64(52))), x)


@inline
def mod(x: float, y: float) -> float:
    """fmod moved to the sign of y: one rounded addition. Slow."""
    rest = fmod(x, y)
    if rest == ZERO:
        return copysign(rest, y)
    return select((rest < ZERO) != (y < ZERO), rest + y, rest)


# ---- types of 16 bits


@inline
def half_to_f32(h: int) -> float:
    """The value of the 16 bits of an f16, without help of the CPU."""
    magnitude = shl32(and32(h, i32(0x7FFF)), i32(13))
    special = and32(magnitude, i32(0x0F800000)) == i32(0x0F800000)
    normal = add32(magnitude, select32(special, i32((255 - 31) << 23), i32((127 - 15) << 23)))
    quiet = select32(magnitude > i32(0x0F800000), i32(0x00400000), i32(0))
    subnormal = sub32(f32_bits(bits_f32(add32(magnitude, i32(113 << 23))) - bits_f32(i32(113 << 23))), i32(0))
    result = select32(magnitude < i32(1 << 23), subnormal, or32(normal, quiet))
    return bits_f32(or32(result, shl32(and32(h, i32(0x8000)), i32(16))))


@inline
def f32_to_half(x: float) -> int:
    """The 16 bits of x rounded to f16 (a NaN canonical), without help of the CPU."""
    bits = f32_bits(x)
    magnitude = and32(bits, i32(0x7FFFFFFF))
    bias = add32(i32(0xFFF - ((127 - 15) << 23)), and32(shr32(magnitude, i32(13)), i32(1)))
    normal = shr32(add32(magnitude, bias), i32(13))
    subnormal = sub32(f32_bits(bits_f32(magnitude) + HALF), i32(126 << 23))
    result = select32(magnitude < i32(113 << 23), subnormal, normal)
    result = select32(magnitude >= i32(0x477FF000), i32(0x7C00), result)
    result = or32(result, and32(shr32(bits, i32(16)), i32(0x8000)))
    return select32(x != x, i32(0x7E00), result)


@inline
def bf16_to_f32(h: int) -> float:
    """The value of the 16 bits of a bf16."""
    return bits_f32(shl32(h, i32(16)))


@inline
def f32_to_bf16(x: float) -> int:
    """The 16 bits of x rounded to bf16, a NaN canonical."""
    bits = f32_bits(x)
    odd = and32(shr32(bits, i32(16)), i32(1))
    return select32(x != x, i32(0x7FC0), shr32(add32(bits, add32(odd, i32(0x7FFF))), i32(16)))
