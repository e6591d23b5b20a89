"""Kernels written by hand with `KernelBuilder`, one of each form, with sizes that leave tails."""

from stepwell.dialects.tile import KernelOp
from stepwell.dialects.tile.builder import KernelBuilder

SEGMENT = 2048
CORES = 2
"""Blocks of the outermost loop are dealt to this many cores."""


def elementwise(rows: int, columns: int = 48, step: int = 32, slots: int = 2, dtype: str = "f16") -> KernelOp:
    """y = gelu(x + b), b one row; x [rows, columns], b [columns], y like x."""
    k = KernelBuilder("elementwise")
    x, b, y = (
        k.argument((rows, columns), dtype, "x"),
        k.argument((columns,), dtype, "b"),
        k.argument((rows, columns), dtype, "y"),
    )
    bias = k.alloc((columns,), dtype, "ub", name="bias")
    k.load(bias[0], b[0], (columns,))
    with k.loop(rows - k.core() * step, CORES * step) as i:
        m = i + k.core() * step
        t, u = k.alloc((step, columns), dtype, "ub", slots, "t"), k.alloc((step, columns), "f32", "ub", slots, "u")
        v = k.alloc((step, columns), dtype, "ub", slots, "v")
        extents = (k.clamp(rows - m, step), columns)
        k.load(t[0, 0], x[m, 0], extents)
        k.map("add", u[0, 0], t[0, 0], bias.box(0, 0, 1), extents=extents)
        k.map("gelu", v[0, 0], u[0, 0], extents=extents)
        k.store(y[m, 0], v[0, 0], extents)
    return k.finish()


def gemm(
    m: int, n: int, k: int, m0: int = 32, n0: int = 32, k0: int = 64, k1: int = 128, slots: int = 2, dtype: str = "f16"
) -> KernelOp:
    """y = relu(x·w + bias): x [m, k], w [k, n], bias f32 [n], y [m, n]; segments are folded if k is longer than one."""
    b = KernelBuilder("gemm")
    x, w, bias, y = (
        b.argument((m, k), dtype, "x"),
        b.argument((k, n), dtype, "w"),
        b.argument((n,), "f32", "bias"),
        b.argument((m, n), dtype, "y"),
    )
    cut = k > SEGMENT
    with b.loop(m - b.core() * m0, CORES * m0) as mm:
        row = mm + b.core() * m0
        em = b.clamp(m - row, m0)
        with b.loop(n, n0) as nn:
            en = b.clamp(n - nn, n0)
            c0, out = b.alloc((m0, n0), "f32", "l0c", slots, "c"), b.alloc((m0, n0), dtype, "ub", slots, "out")
            row_bias = b.alloc((n0,), "f32", "ub", slots, "row_bias")
            total = b.alloc((m0, n0), "f32", "l0c", 1, "total") if cut else c0
            b.load(row_bias[0], bias[nn], (en,))
            with b.loop(k, SEGMENT) as s:
                with b.loop(b.clamp(k - s, SEGMENT), k1) as kk:
                    a1, w1 = b.alloc((m0, k1), dtype, "l1", slots, "a1"), b.alloc((k1, n0), dtype, "l1", slots, "w1")
                    ek1 = b.clamp(k - s - kk, k1)
                    b.load(a1[0, 0], x[row, s + kk], (em, ek1))
                    b.load(w1[0, 0], w[s + kk, nn], (ek1, en))
                    with b.loop(ek1, k0) as kkk:
                        a0, w0 = (
                            b.alloc((m0, k0), dtype, "l0a", slots, "a0"),
                            b.alloc((k0, n0), dtype, "l0b", slots, "w0"),
                        )
                        ek0 = b.clamp(k - s - kk - kkk, k0)
                        b.feed_a(a0[0, 0], a1[0, kkk], (em, ek0))
                        b.feed_b(w0[0, 0], w1[kkk, 0], (ek0, en))
                        b.mma(c0[0, 0], a0[0, 0], w0[0, 0], (em, en, ek0), b.clamp(1 - kk - kkk, 1))
                if cut:
                    b.fold(total[0, 0], c0[0, 0], (em, en), b.clamp(1 - s, 1))
            b.drain(out[0, 0], total[0, 0], (em, en), bias=row_bias[0], act="relu")
            b.store(y[row, nn], out[0, 0], (em, en))
    return b.finish()


def convolution(
    height: int, width: int, channels: int, filters: int, rows: int = 4, k0: int = 48, slots: int = 2
) -> KernelOp:
    """3×3 convolution with padding 1 and stride 1: x [height, width, channels], w [9·channels, filters], y [height,
    width, filters]; channels a multiple of 16.
    """
    b = KernelBuilder("convolution")
    depth = 9 * channels
    x, w, y = (
        b.argument((height, width, channels), "f16", "x"),
        b.argument((depth, filters), "f16", "w"),
        b.argument((height * width, filters), "f16", "y"),
    )
    weights = b.alloc((depth, filters), "f16", "l1", name="weights")
    b.load(weights[0, 0], w[0, 0], (depth, filters))
    pixels = rows * width
    with b.loop(height - b.core() * rows, CORES * rows) as rr:
        r = rr + b.core() * rows
        panel = b.alloc((rows + 2, width, channels), "f16", "l1", slots, "panel")
        # The panel begins at image row r − 1, which the first one does not have.
        b.load(panel[1, 0, 0], x[r, 0, 0], (b.clamp(height - r, rows + 1), width, channels))
        b.load(panel[0, 0, 0], x[r - 1, 0, 0], (b.clamp(r, 1), width, channels))
        em = b.clamp((height - r) * width, pixels)
        c0, out = (
            b.alloc((pixels, filters), "f32", "l0c", slots, "c"),
            b.alloc((pixels, filters), "f16", "ub", slots, "out"),
        )
        with b.loop(depth, k0) as kk:
            a0, w0 = b.alloc((pixels, k0), "f16", "l0a", slots, "a0"), b.alloc((k0, filters), "f16", "l0b", slots, "w0")
            ek = b.clamp(depth - kk, k0)
            b.im2col(
                a0[0, 0], panel[0, 0, 0], (em, ek),
                m0=r * width, k0=kk, ow=width, kh=3, kw=3, channels=channels, c0=16,
                sh=1, sw=1, dh=1, dw=1, ph=1, pw=1, row0=r - 1, h=height, w=width,
            )  # fmt: skip
            b.feed_b(w0[0, 0], weights[kk, 0], (ek, filters))
            b.mma(c0[0, 0], a0[0, 0], w0[0, 0], (em, filters, ek), b.clamp(1 - kk, 1))
        b.drain(out[0, 0], c0[0, 0], (em, filters), act="clip", lo=0.0, hi=6.0)
        b.store(y[r * width, 0], out[0, 0], (em, filters))
    return b.finish()


def depthwise(height: int, width: int, groups: int, rows: int = 4, slots: int = 2) -> KernelOp:
    """3×3 depthwise convolution, padding 1: x [height, width, 16·groups], w [9·16·groups] by (group, tap, channel), y
    like x; drained to GM.
    """
    b = KernelBuilder("depthwise")
    channels, taps = 16 * groups, 9
    x, w, y = (
        b.argument((height, width, channels), "f16", "x"),
        b.argument((taps * channels,), "f16", "w"),
        b.argument((height * width, channels), "f16", "y"),
    )
    weights, fed = (
        b.alloc((1, taps * channels), "f16", "l1", name="weights"),
        b.alloc((1, taps * channels), "f16", "l0b", name="fed"),
    )
    b.load(weights[0, 0], w.box(0, 0, 1), (1, taps * channels))
    b.feed_b(fed[0, 0], weights[0, 0], (1, taps * channels))
    pixels = rows * width
    with b.loop(height - b.core() * rows, CORES * rows) as rr:
        r = rr + b.core() * rows
        panel = b.alloc((rows + 2, width, channels), "f16", "l1", slots, "panel")
        b.load(panel[1, 0, 0], x[r, 0, 0], (b.clamp(height - r, rows + 1), width, channels))
        b.load(panel[0, 0, 0], x[r - 1, 0, 0], (b.clamp(r, 1), width, channels))
        em = b.clamp((height - r) * width, pixels)
        a0, c0 = (
            b.alloc((pixels, taps * channels), "f16", "l0a", slots, "a0"),
            b.alloc((pixels, channels), "f32", "l0c", slots, "c"),
        )
        b.im2col(
            a0[0, 0], panel[0, 0, 0], (em, taps * channels),
            m0=r * width, k0=0, ow=width, kh=3, kw=3, channels=channels, c0=16,
            ph=1, pw=1, row0=r - 1, h=height, w=width,
        )  # fmt: skip
        b.mma_dw(c0[0, 0], a0[0, 0], fed.box(0, 1), (em, groups, taps), 1)
        b.drain(y[r * width, 0], c0[0, 0], (em, channels))
    return b.finish()


def softmax(rows: int, columns: int, step: int = 8, piece: int = 64, slots: int = 2) -> KernelOp:
    """y = softmax(x) along rows, in f32, x and y f16 [rows, columns]; the reductions are cut into pieces that a loop
    carries.
    """
    k = KernelBuilder("softmax")
    x, y = k.argument((rows, columns), "f16", "x"), k.argument((rows, columns), "f16", "y")
    with k.loop(rows, step) as m:
        t, e, out = (
            k.alloc((step, columns), "f16", "ub", slots, "t"),
            k.alloc((step, columns), "f32", "ub", 1, "e"),
            k.alloc((step, columns), "f16", "ub", slots, "out"),
        )
        peak, total, lanes = (
            k.alloc((step,), "f32", "ub", 1, "peak"),
            k.alloc((step,), "f32", "ub", 1, "total"),
            k.alloc((step, 8), "f32", "ub", 1, "lanes"),
        )
        em = k.clamp(rows - m, step)
        k.load(t[0, 0], x[m, 0], (em, columns))
        with k.loop(columns, piece) as c:
            en = k.clamp(columns - c, piece)
            last = k.clamp(c + (piece + 1) - columns, 1)
            k.reduce(
                "max",
                peak.box(0, 1, 0, 0),
                t.box(c, columns, 1, 0),
                (em, en, 1),
                state=lanes[0, 0],
                start=c,
                first=k.clamp(1 - c, 1),
                last=last,
            )
        k.map("sub", e[0, 0], t[0, 0], peak.box(0, 1, 0), extents=(em, columns))
        k.map("exp", e[0, 0], e[0, 0], extents=(em, columns))
        k.reduce("sum", total.box(0, 1, 0, 0), e.box(0, columns, 1, 0), (em, columns, 1))
        k.map("div", out[0, 0], e[0, 0], total.box(0, 1, 0), extents=(em, columns))
        k.store(y[m, 0], out[0, 0], (em, columns))
    return k.finish()


def chain(blocks: int, rows: int = 16, depth: int = 32, block: int = 32) -> KernelOp:
    """y[j] = exp(q·k[j]ᵀ)·v[j] for blocks j of keys, as in attention: q [rows, depth], k and v [blocks·block, depth],
    y [blocks·rows, depth].

    The second product of a block runs an iteration later, so that the cube works while the vector engine computes.
    """
    b = KernelBuilder("chain")
    q, keys, values, y = (
        b.argument((n, depth), "f16", name)
        for n, name in ((rows, "q"), (blocks * block, "k"), (blocks * block, "v"), (blocks * rows, "y"))
    )
    q1, q0 = b.alloc((rows, depth), "f16", "l1", name="q1"), b.alloc((rows, depth), "f16", "l0a", name="q0")
    b.load(q1[0, 0], q[0, 0], (rows, depth))
    b.feed_a(q0[0, 0], q1[0, 0], (rows, depth))
    with b.loop(blocks, 1, add=1) as j:
        k1, k0 = b.alloc((block, depth), "f16", "l1", 2, "k1"), b.alloc((depth, block), "f16", "l0b", 2, "k0")
        s0, s, p = (
            b.alloc((rows, block), "f32", "l0c", 2, "s0"),
            b.alloc((rows, block), "f32", "ub", 2, "s"),
            b.alloc((rows, block), "f16", "ub", 2, "p"),
        )
        p1, p0 = b.alloc((rows, block), "f16", "l1", 2, "p1"), b.alloc((rows, block), "f16", "l0a", 2, "p0")
        v1, v0 = b.alloc((block, depth), "f16", "l1", 2, "v1"), b.alloc((block, depth), "f16", "l0b", 2, "v0")
        o0, o = b.alloc((rows, depth), "f32", "l0c", 2, "o0"), b.alloc((rows, depth), "f16", "ub", 2, "o")
        now, before = (
            b.clamp((blocks - j) * rows, rows),
            b.clamp(j * rows, rows),
        )  # 0 rows in the iteration too many; in the first one
        b.load(k1[0, 0], keys[j * block, 0], (b.clamp((blocks - j) * block, block), depth))
        b.feed_b(k0[0, 0], k1.box(0, 1, depth), (depth, b.clamp((blocks - j) * block, block)))
        b.mma(s0[0, 0], q0[0, 0], k0[0, 0], (now, block, depth), 1)
        b.drain(s[0, 0], s0[0, 0], (now, block), scale=0.125)
        b.load(v1[0, 0], values[(j - 1) * block, 0], (b.clamp(j * block, block), depth))
        b.feed_a(p0[0, 0], p1.box(0, block, 1, ago=1), (before, block))
        b.feed_b(v0[0, 0], v1[0, 0], (b.clamp(j * block, block), depth))
        b.mma(o0[0, 0], p0[0, 0], v0[0, 0], (before, depth, block), 1)
        b.drain(o[0, 0], o0[0, 0], (before, depth))
        b.store(y[(j - 1) * rows, 0], o[0, 0], (before, depth))
        b.map("exp", p[0, 0], s[0, 0], extents=(now, block))
        b.move(p1[0, 0], p[0, 0], (now, block))
    return b.finish()


def update(rows: int, columns: int = 32, step: int = 16) -> KernelOp:
    """x = relu(x) in place, x f16 [rows, columns]: the argument is read and written."""
    k = KernelBuilder("update")
    x = k.argument((rows, columns), "f16", "x")
    with k.loop(rows, step) as m:
        t = k.alloc((step, columns), "f16", "ub", 2, "t")
        extents = (k.clamp(rows - m, step), columns)
        k.load(t[0, 0], x[m, 0], extents)
        k.map("relu", t[0, 0], t[0, 0], extents=extents)
        k.store(x[m, 0], t[0, 0], extents)
    return k.finish()


def scalar(most: int = 64, columns: int = 32, step: int = 8) -> KernelOp:
    """y = x·x for the first n rows, n a scalar argument: the trip count is known at launch only."""
    k = KernelBuilder("scalar")
    x, y, n = k.argument((most, columns), "f16", "x"), k.argument((most, columns), "f16", "y"), k.scalar("n")
    with k.loop(n, step) as m:
        t, u = k.alloc((step, columns), "f16", "ub", 3, "t"), k.alloc((step, columns), "f16", "ub", 2, "u")
        extents = (k.clamp(n - m, step), columns)
        k.load(t[0, 0], x[m, 0], extents)
        k.map("mul", u[0, 0], t[0, 0], t[0, 0], extents=extents)
        k.store(y[m, 0], u[0, 0], extents)
    return k.finish()
