"""The schedules of a convolution: panels of image rows, tiles of the cube, where the weights stand.

The panel of input rows under some output rows is whole in L1; the weights of a column block are resident, or stream in
chunks of k. Either the row panels or the column blocks are the outer loop.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...dialects.tile import SIZES
from ...runtime.expr import LEVELS
from ...runtime.replay import Dim, Nest
from ...runtime.target import Target
from .geometry import Image, panel_heights
from .product import SEGMENT, k_steps
from .schedule import (
    PARTS,
    Choices,
    Column,
    Epilogue,
    Estimate,
    Rates,
    Shares,
    Table,
    Work,
    ceil,
    contract,
    distinct,
    fitting,
    inner_loops,
    longest,
    maybe_loop,
    number,
    search,
    share_out,
    shares,
    tile_sizes,
    total,
    working,
)
from .space import up16


class Cut(NamedTuple):
    """Sizes of a convolution's tiles: output rows of a panel, pixels, columns, k; `k1`: chunk of k of weights that are
    not `resident` (all of K of a column block in L1); `slots`: panels of rows at a time."""

    rows: int
    m0: int
    n0: int
    k0: int
    k1: int
    resident: bool
    rows_outer: bool
    slots: int = 2
    parts_0: int = 1
    parts_1: int = 1
    parts_2: int = 1

    @property
    def parts(self) -> tuple[int, int, int]:
        """Into how many parts images, output rows and columns are shared out over the cores."""
        return self.parts_0, self.parts_1, self.parts_2

    def loops(self, image: Image, columns: int) -> tuple[str, ...]:
        """The loops over tiles, from the outside; a loop of one trip is none."""
        order = ("b", "r", "n") if self.rows_outer else ("b", "n", "r")
        trips = {"b": image.batch, "r": -(-image.oh // self.rows), "n": -(-columns // self.n0)}
        return tuple(d for d in order if trips[d] > 1)


def lattice(image: Image, columns: int, r: Rates, cores: int, epilogue: Epilogue) -> Table:
    """All cuts whose tiles fit L0 and UB twice and whose panels fit L1, as columns by the fields of `Cut`; each shared
    out in the one way that suits its tiles best."""
    es, target = r.esize, r.target
    parts: list[NDArray[np.int64]] = []
    for rows in panel_heights(image):
        pixels = rows * image.ow
        sizes = [m for m in tile_sizes(pixels, 512) if not image.two_bounds(rows, m)]
        m0, n0 = (a.ravel() for a in np.meshgrid(sizes, tile_sizes(columns, 512), indexing="ij"))
        fits = (8 * m0 * n0 <= target.l0c_bytes) & (m0 * n0 * epilogue.ub <= target.ub_bytes)
        if not fits.any():
            if rows > 1 or parts or not sizes:
                continue
            fits = fitting(fits, m0 * n0)
        tiles = k_steps(image.depth, m0[fits], n0[fits], es, target)
        parts.append(np.concatenate([np.full((len(tiles), 1), rows), tiles], 1))
    if not parts:
        return {name: np.zeros(0) for name in Cut._fields}
    tiles = np.concatenate(parts)
    depth = up16(min(image.depth, SEGMENT))
    columns_: list[NDArray[np.int64]] = []
    for resident, steps in ((1, 1), (0, 1), (0, 2), (0, 4)):
        for rows_outer in (1, 0):
            k1 = np.minimum(tiles[:, 3] * steps, depth)
            rest = [np.full(len(tiles), v) for v in (resident, rows_outer, 2)]
            columns_.append(np.stack([*tiles.T, k1, *rest], 1))
    table = distinct(np.concatenate(columns_))
    t = {name: table[:, i].astype(np.float64) for i, name in enumerate(Cut._fields[:8])}
    kind = np.where(t["rows_outer"] == 1, 0, np.where(t["resident"] == 1, 1, 2))
    _, first, of = np.unique((table[:, 0] * 1024 + table[:, 2]) * 4 + kind, return_index=True, return_inverse=True)
    split = splits(image, columns, kind[first], t["rows"][first], t["n0"][first], r, cores, epilogue)
    t |= {name: split[of, i] for i, name in enumerate(PARTS)}
    legal = levels(image, columns, t) <= LEVELS
    if not (legal & (l1_need(image, columns, t) <= target.l1_bytes)).any():
        t["slots"] = np.ones_like(t["slots"])  # slow, but better than nothing
    need = l1_need(image, columns, t)
    keep = fitting(legal & (need <= target.l1_bytes), np.where(legal, need, np.inf))
    return {name: column[keep] for name, column in t.items()}


def splits(
    image: Image, columns: int, kind: NDArray[np.int64], rows: Column, n0: Column, r: Rates, cores: int, e: Epilogue
) -> Column:
    """[tiles, 3]: how tiles are shared out; `kind`: row panels stand (0), the weights (1), or neither (2)."""

    def cost(share: Shares, active: Column) -> Column:
        """What the busiest core takes by its busiest engine."""
        g, (b, oh, n) = r.target, share
        size = b * oh * image.ow * n
        panels, whole = ceil(oh, rows), n0 >= columns
        panel = image.panel_rows(np.minimum(rows, oh)) * image.w * image.channels
        a_times = np.where((kind == 0) | (rows >= image.oh), 1, ceil(n, n0))
        w_times = np.where((kind == 1) | (kind == 0) & whole, np.where(whole, 1, b), b * panels)
        moved = (a_times * b * panels * panel + w_times * image.depth * n) * r.esize
        moved = moved + size * (sum(e.whole) + sum(e.results))
        cube = b * ceil(oh * image.ow, g.cube_m) * ceil(n, g.cube_n) * ceil(image.depth, r.block_k) * r.block
        return longest(r, e, size, cube, moved / r.bandwidth(active))

    return share_out((image.batch, image.oh, columns), (1, rows, n0), cores, cost)


def levels(image: Image, columns: int, t: Table) -> Column:
    """Loops that nest."""
    outer = (image.batch > 1) + 1.0 * (t["rows"] < image.oh) + (t["n0"] < columns) + (t["m0"] < t["rows"] * image.ow)
    chunks = (t["resident"] == 0) & (t["k1"] > t["k0"])
    return outer + (image.depth > SEGMENT) + 1 + chunks


def l1_need(image: Image, columns: int, t: Table) -> Column:
    """Bytes in L1: panels twice, unless a core comes to their loop once."""
    es = SIZES[image.dtype]
    b, oh, n = shares((image.batch, image.oh, columns), (1, t["rows"], t["n0"]), t)
    panels, nn, rows_outer = ceil(oh, t["rows"]), ceil(n, t["n0"]), t["rows_outer"] == 1
    once = (b == 1) & (panels == 1) & (rows_outer | (nn == 1) | (t["rows"] >= image.oh))
    panel = image.panel_rows(t["rows"]) * image.w * image.channels * np.where(once, 1, t["slots"])
    depth = np.where(t["resident"] == 1, image.depth, t["k1"])
    width = 16 * ceil(np.minimum(t["n0"], columns), 16)
    single = (t["resident"] == 1) & (nn == 1) & ((b == 1) & (~rows_outer | (panels == 1)) | (t["n0"] >= columns))
    return (panel + depth * width * np.where(single, 1, 2)) * es


def estimate(image: Image, columns: int, t: Table, share: Shares, r: Rates, e: Epilogue) -> Estimate:
    """What the busiest core's engines do."""
    g, es, k = r.target, r.esize, image.depth
    b, oh, n = share
    panels, nn, nk = ceil(oh, t["rows"]), ceil(n, t["n0"]), ceil(k, t["k0"])
    m, nm = oh * image.ow, panels * ceil(t["rows"] * image.ow, t["m0"])
    resident, rows_outer = t["resident"] == 1, t["rows_outer"] == 1
    tiles, chunks = b * nm * nn, ceil(k, t["k1"])
    # A panel stands while loops inside its own run, those of one trip not emitted.
    n_whole = t["n0"] >= columns
    a_times = np.where(rows_outer | (t["rows"] >= image.oh), 1, nn)
    w_stands = resident & (n_whole | ~rows_outer)
    w_times = np.where(w_stands, np.where(n_whole, 1, b), b * np.where(resident, panels, nm))
    line = image.w * image.channels * es
    panel = image.panel_rows(np.minimum(t["rows"], oh)) * line
    left, right = a_times * b * image.loaded_rows(oh, panels) * line, w_times * n * k * es
    sizes = (image.batch, image.oh, columns)
    cores = working(t, sizes, (1, t["rows"], t["n0"]), share, left, right, b * m * n * e.moved)
    transfers = 2 * a_times * b * panels + w_times * nn * np.where(resident, 1, chunks)
    feed = b * k * es * (nn * m / g.feed_a_bytes + nm * n / g.feed_b_bytes) + tiles * 2 * nk * g.fixed_feed
    cube = b * ceil(m, g.cube_m) * ceil(n, g.cube_n) * ceil(k, r.block_k) * r.block + tiles * nk * g.fixed_mma
    first = panel + t["n0"] * np.where(resident, k, t["k1"]) * es
    l1, ub = l1_need(image, columns, t), t["m0"] * t["n0"] * e.ub
    work = Work(b * m * n, tiles, cube, feed, left + right, transfers, first, l1, ub, cores)
    return total(r, e, work)


def nest_of(image: Image, columns: int, cut: Cut, inner: Sequence[bool], r: Rates, e: Epilogue) -> Nest:
    """The loop nest of the cuts that have the structure of `cut`, as `image` emits it; `inner`: its loops over k."""
    nest = Nest("b", "r", "n", "rows", "m0", "n0", "k0", "k1")
    loops = cut.loops(image, columns)
    here = {"b": number(1), "r": number(image.oh), "n": number(columns)}
    run, weights, panel = number(image.w * image.channels), -1, -1
    with ExitStack() as stack:
        for depth in range(-1, len(loops)):
            if depth >= 0:
                d = loops[depth]
                here[d] = stack.enter_context(nest.loop(d, {"b": 1, "r": "rows", "n": "n0"}[d]))
            if cut.resident and (loops.index("n") if "n" in loops else -1) == depth:
                weights = nest.buffer()
                r.load(nest, weights, (number(image.depth),), here["n"])
            if max((loops.index(d) for d in "br" if d in loops), default=-1) == depth:
                panel = nest.buffer(cut.slots)
                load_panel(nest, r, image, panel, here["r"] if "r" in loops else None, (), run)
        pixels, several = here["r"].scaled(image.ow), cut.m0 < cut.rows * image.ow
        m, n = stack.enter_context(maybe_loop(nest, several, image.oh * image.ow, "m0", pixels)), here["n"]
        loaded = e.loads(nest, r, m, n)

        def chunk(k: Dim) -> tuple[int, int]:
            """The panels of the image and of the weights, which are loaded unless they stand."""
            if cut.resident:
                return panel, weights
            streamed = nest.buffer()
            r.load(nest, streamed, (k,), n)
            return panel, streamed

        acc = contract(nest, r, image.depth, inner, m, n, chunk)
        e.emit(nest, r, acc, loaded, m, n)
    return nest


def load_panel(
    nest: Nest, r: Rates, image: Image, into: int, rows: Dim | None, pixels: Sequence[Dim], run: Dim
) -> None:
    """The panel under some output rows, or under all: what the one before it has as well, and the rest."""
    above, stride = image.pads[0], image.strides[0]
    if rows is None:
        height = number(min(image.panel_rows(image.oh) - above, image.h))
    else:
        height = rows.scaled(stride).plus(image.reach - stride - above)
        if above:
            r.load(nest, into, (number(above), *pixels), run)
    r.load(nest, into, (height, *pixels), run)


def choices(image: Image, columns: int, target: Target, cores: int, epilogue: Epilogue) -> Choices:
    """All cuts."""
    r = Rates(target, image.dtype)
    t = lattice(image, columns, r, cores, epilogue)
    sizes = (image.batch, image.oh, columns)
    share = shares(sizes, (1, t["rows"], t["n0"]), t)
    found = estimate(image, columns, t, share, r, epilogue)
    values = np.stack([*share, *(t[name] for name in Cut._fields[:5])], 1)
    rows = np.stack([t[name] for name in Cut._fields], 1).astype(np.int64)
    inner = inner_loops(image.depth, t, t["resident"] == 0)
    several = t["m0"] < t["rows"] * image.ow
    flags = np.stack([t["rows"] < image.oh, t["n0"] < columns, t["resident"], t["rows_outer"], several, *inner.T], 1)
    code = flags.astype(np.int64) @ np.array([64, 32, 16, 8, 4, 2, 1])

    def nest(row: int) -> Nest:
        return nest_of(image, columns, Cut._make(int(v) for v in rows[row]), inner[row], r, epilogue)

    return Choices(rows, found, code, sizes, values, nest)


def schedules(image: Image, columns: int, target: Target, cores: int, epilogue: Epilogue) -> Iterator[Cut]:
    """Cuts, best first."""
    c = choices(image, columns, target, cores, epilogue)
    for row in search(c, target):
        yield Cut._make(int(v) for v in c.schedules[row])
