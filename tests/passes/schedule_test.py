"""The search for schedules: what it ranks by agrees with the timing, and whatever it can choose is right."""

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import levels
import numpy as np
import pytest
from numpy.typing import NDArray
from schedules import choices_of, cycles, replayed, scheduled, searched_by, searched_kernels

from stepwell.driver.compilation import advance, options_of
from stepwell.passes.tiling.body import Machine, Region
from stepwell.passes.tiling.search import Choices, search
from stepwell.runtime.isa import Engine
from stepwell.runtime.replay import Nest, replay
from stepwell.runtime.target import Target

CONV = """func.func @main(%x: tensor<{b}x{c}x{h}x{w}xf32>, %f: tensor<{n}x{cg}x{kh}x{kw}xf32>, %r: tensor<{n}xf32>)
    -> tensor<{b}x{n}x{oh}x{ow}xf32> {{
  %0 = graph.conv %x, %f, %r {{kernel = [{kh}, {kw}], strides = [{s}, {s}], pads = [{p}, {p}, {p}, {p}],
    dilations = [1, 1], groups = {groups}}} : (tensor<{b}x{c}x{h}x{w}xf32>, tensor<{n}x{cg}x{kh}x{kw}xf32>,
    tensor<{n}xf32>) -> tensor<{b}x{n}x{oh}x{ow}xf32>
  %1 = graph.{act} %0 : (tensor<{b}x{n}x{oh}x{ow}xf32>) -> tensor<{b}x{n}x{oh}x{ow}xf32>
  func.return %1 : tensor<{b}x{n}x{oh}x{ow}xf32>
}}
"""
POOL = """func.func @main(%x: tensor<{b}x{c}x{h}x{w}xf32>) -> tensor<{b}x{c}x{oh}x{ow}xf32> {{
  %0 = graph.{fn}_pool %x {{kernel = [{k}, {k}], strides = [{s}, {s}], pads = [{p}, {p}, {p}, {p}], dilations = [1, 1]}}
    : (tensor<{b}x{c}x{h}x{w}xf32>) -> tensor<{b}x{c}x{oh}x{ow}xf32>
  %1 = graph.{act} %0 : (tensor<{b}x{c}x{oh}x{ow}xf32>) -> tensor<{b}x{c}x{oh}x{ow}xf32>
  func.return %1 : tensor<{b}x{c}x{oh}x{ow}xf32>
}}
"""
PRODUCT = """func.func @main(%a: tensor<{b}x{m}x{k}xf32>, %w: tensor<{batch}{k}x{n}xf32>, %r: tensor<{b}x{m}x{n}xf32>)
    -> tensor<{b}x{m}x{n}xf32> {{
  %0 = graph.matmul %a, %w : (tensor<{b}x{m}x{k}xf32>, tensor<{batch}{k}x{n}xf32>) -> tensor<{b}x{m}x{n}xf32>
  %1 = graph.add %0, %r : (tensor<{b}x{m}x{n}xf32>, tensor<{b}x{m}x{n}xf32>) -> tensor<{b}x{m}x{n}xf32>
  func.return %1 : tensor<{b}x{m}x{n}xf32>
}}
"""
PACKED = """func.func @main(%a: tensor<{m}x{k}xf32>) -> tensor<{m}x{n}xf32> {{
  %w = graph.weight "5eed0000000000000000000000000000" : tensor<{n}x{half}xui8>
  %s = graph.weight "5eed0000000000000000000000000001" : tensor<{n}x{blocks}xf16>
  %z = graph.weight "5eed0000000000000000000000000002" : tensor<{n}x{blocks}xui8>
  %0 = graph.packed_matmul %a, %w, %s, %z {{kind = "u4", block = 32, zeros = true}}
    : (tensor<{m}x{k}xf32>, tensor<{n}x{half}xui8>, tensor<{n}x{blocks}xf16>, tensor<{n}x{blocks}xui8>)
    -> tensor<{m}x{n}xf32>
  func.return %0 : tensor<{m}x{n}xf32>
}}
"""
VIEWS = """func.func @main(%a: tensor<1x{m}x{h}x{k}xf32>, %w: tensor<1x{n}x{h}x{k}xf32>) -> tensor<1x{m}x{h}x{n}xf32> {{
  %0 = graph.transpose %a {{perm = [0, 2, 1, 3]}} : (tensor<1x{m}x{h}x{k}xf32>) -> tensor<1x{h}x{m}x{k}xf32>
  %1 = graph.transpose %w {{perm = [0, 2, 3, 1]}} : (tensor<1x{n}x{h}x{k}xf32>) -> tensor<1x{h}x{k}x{n}xf32>
  %2 = graph.matmul %0, %1 : (tensor<1x{h}x{m}x{k}xf32>, tensor<1x{h}x{k}x{n}xf32>) -> tensor<1x{h}x{m}x{n}xf32>
  %3 = graph.transpose %2 {{perm = [0, 2, 1, 3]}} : (tensor<1x{h}x{m}x{n}xf32>) -> tensor<1x{m}x{h}x{n}xf32>
  func.return %3 : tensor<1x{m}x{h}x{n}xf32>
}}
"""
KINDS = ("product", "packed", "convolution", "depthwise", "pool")
ALL_KINDS = (*KINDS, "views", "segmented")
"""Also products of heads that lie between others, and convolutions whose sums are cut into segments."""


def text_of(kind: str, random: Random, large: bool) -> str:
    """A program of one searched kernel of random sizes."""
    head = f"// RUN-LEVELS: seed={random.randrange(99)}; precision=fp16; tolerance=4\n"
    scale = 4 if large else 1
    if kind == "product":
        b, m = random.choice([1, 1, 3]), random.choice([1, 33, 70, 128])
        n, k = random.choice([17, 64, 150]) * scale, random.choice([20, 64, 300, 2100 if large else 128])
        return head + PRODUCT.format(b=b, m=m, n=n, k=k, batch=random.choice(["", f"{b}x"]))
    if kind == "packed":
        m, n, k = random.choice([1, 7, 128]), random.choice([65, 150]) * scale, random.choice([128, 300, 511]) * scale
        return head + PACKED.format(m=m, n=n, k=k, half=-(-k // 2), blocks=-(-k // 32))
    if kind == "views":
        m, n, h, k = (random.choice(sizes) for sizes in ([33, 70, 128], [17, 64, 150], [2, 3, 5], [20, 64, 128]))
        return head + VIEWS.format(m=m, n=n, h=h, k=k)
    size, s, p = random.choice([3, 5]), random.choice([1, 2]), random.choice([0, 1])
    h, w, c = random.choice([9, 14]) * scale, random.choice([7, 12]) * scale, random.choice([16, 24, 40, 64])
    if kind == "segmented":
        size, h, w, c = 5, 9, 7, random.choice([96, 176])
    if kind == "pool":
        size, p, b = random.choice([2, 3, 5, 9]), random.choice([0, 1]), random.choice([1, 1, 2])
        sizes = {"b": b, "c": c, "h": h, "w": w, "k": min(size, h, w), "s": s, "p": p}
        oh, ow = ((x + 2 * p - sizes["k"]) // s + 1 for x in (h, w))
        return head + POOL.format(fn=random.choice(["max", "avg"]), act="hardswish", oh=oh, ow=ow, **sizes)
    n = c if kind == "depthwise" else random.choice([16, 33, 96])
    groups, cg = (c, 1) if kind == "depthwise" else (1, c)
    oh, ow = ((x + 2 * p - size) // s + 1 for x in (h, w))
    sizes = {"c": c, "cg": cg, "n": n, "groups": groups, "h": h, "w": w, "oh": oh, "ow": ow, "kh": size, "kw": size}
    return head + CONV.format(b=random.choice([1, 1, 2]), s=s, p=p, act=random.choice(["relu", "hardswish"]), **sizes)


def program(folder: Path, text: str) -> levels.Program:
    path = folder / "random.mlir"
    path.write_text(text)
    return levels.Program.read(path)


def one_region(folder: Path, text: str, target: Target) -> Region:
    work = program(folder, text).start()
    work.ctx.target = target
    advance(work, "graph", options_of("fp16", None, {}))
    ((_, region),) = searched_kernels(work)
    return region


def odd_target() -> Target:
    """Numbers that no shipped target has."""
    table = Target.load("edge").to_dict()
    table |= {"l1_bytes": 300_000, "l0a_bytes": 24_576, "l0c_bytes": 98_304, "ub_bytes": 150_000, "queue_depth": 20}
    table |= {"gm_port": 70.0, "gm_path": 50.0, "feed_a_bytes": 300.0, "fixed_load": 90, "fixed_feed": 30, "cube_n": 32}
    return Target.of(table, "odd")


TARGETS = {"tiny": Target.load("tiny"), "edge": Target.load("edge"), "odd": odd_target()}


def sampled(region: Region, machine: Machine, c: Choices, random: Random, count: int) -> NDArray[np.float64]:
    """[schedules, 3]: of random schedules that fit: replay, timing, timing and handicap."""
    rows = random.sample(range(len(c.schedules)), min(count, len(c.schedules)))
    timed = {row: cycles(k, machine) for row in rows if (k := scheduled(region, machine, row))}
    took = np.array(list(timed.values()))
    return np.stack([replayed(c, list(timed), machine), took, took + c.found.handicap[list(timed)]], 1)


def picked(region: Region, machine: Machine, c: Choices) -> float:
    """Cycles and handicap of the kernel that the search chooses."""
    kernels = ((row, scheduled(region, machine, row)) for row in search(c, machine.target))
    row, kernel = next((row, kernel) for row, kernel in kernels if kernel)
    return cycles(kernel, machine) + float(c.found.handicap[row])


def rank_agreement(pairs: NDArray[np.float64]) -> float:
    """Correlation of the ranks."""
    ranks = pairs.argsort(0).argsort(0)
    return float(np.corrcoef(ranks[:, 0], ranks[:, 1])[0, 1])


class Bounds(NamedTuple):
    """How far replay may be from the timing, as a logarithm, over the schedules of one kernel."""

    median: float
    worst: float
    rank: float
    """Correlation of the ranks, at least, median over kernels."""
    lost: float
    """Cycles and handicap of what is picked over those of the best of a sample, median over kernels."""
    most_lost: float


ALONE = Bounds(median=0.04, worst=0.17, rank=0.96, lost=1.01, most_lost=1.01)
PRODUCTS = Bounds(median=0.04, worst=0.17, rank=0.98, lost=1.01, most_lost=1.12)
"""Of products on several cores; kernels of 500 cycles among them."""
IMAGES = Bounds(median=0.12, worst=0.32, rank=0.92, lost=1.02, most_lost=1.14)
"""Of convolutions on several cores: replay gives the first and the last rows of an image the panel of those inside."""
POOLS = Bounds(median=0.35, worst=0.6, rank=0.97, lost=1.01, most_lost=1.05)
"""Of pools: their panels are what they are in the mean, which is far off for few large ones, and ranks as well."""


def agree(folder: Path, name: str, kind: str, cores: int, kernels: int, count: int) -> None:
    """Replay and timing of random schedules of random kernels, by ratio and by rank; and none of those schedules is
    much better than the one that is picked."""
    random, machine = Random(f"{name} {kind} {cores}"), Machine(replace(TARGETS[name], cores=cores), cores)
    several = PRODUCTS if kind in ("product", "packed") else IMAGES
    bounds = POOLS if kind == "pool" else ALONE if cores == 1 else several
    lost, ranks = list[float](), list[float]()
    while len(lost) < kernels:
        region = one_region(folder, text_of(kind, random, name != "tiny"), machine.target)
        c, _ = choices_of(region, machine)
        pairs = sampled(region, machine, c, random, count)
        if len(pairs) < 10:
            continue
        off = np.log(pairs[:, 0] / pairs[:, 1])
        assert abs(np.median(off)) < bounds.median
        assert np.abs(off).max() < bounds.worst
        ranks.append(rank_agreement(pairs))
        lost.append(picked(region, machine, c) / pairs[:, 2].min())
    assert np.median(ranks) > bounds.rank
    assert np.median(lost) < bounds.lost
    assert max(lost) < bounds.most_lost


@pytest.mark.parametrize(("name", "cores"), [("tiny", 1), ("edge", 2), ("odd", 3)])
@pytest.mark.parametrize("kind", KINDS)
def test_replay_agrees_with_the_timing(tmp_path: Path, name: str, kind: str, cores: int) -> None:
    agree(tmp_path, name, kind, cores, kernels=2, count=16)


@pytest.mark.slow
@pytest.mark.parametrize("cores", [1, 2, 4])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TARGETS)
def test_replay_agrees_with_the_timing_of_many(tmp_path: Path, name: str, kind: str, cores: int) -> None:
    agree(tmp_path, name, kind, cores, kernels=5, count=40)


def test_a_tile_narrower_than_its_buffer_goes_row_by_row(tmp_path: Path) -> None:
    """The epilogue of 8 columns in a tile of 16 takes a vector for each row."""
    machine = Machine(Target.load("edge"), 1)
    head = "// RUN-LEVELS: seed=0; precision=fp16; tolerance=4\n"
    region = one_region(tmp_path, head + PRODUCT.format(b=1, m=448, k=64, n=24, batch=""), machine.target)
    c, _ = choices_of(region, machine)
    narrow = np.flatnonzero(c.schedules[:, 1] == 16).tolist()
    timed = {row: cycles(k, machine) for row in Random(0).sample(narrow, 8) if (k := scheduled(region, machine, row))}
    off = np.log(replayed(c, list(timed), machine) / np.array(list(timed.values())))
    assert np.median(np.abs(off)) < 0.01
    assert off.min() > -0.01


def right(folder: Path, name: str, kind: str, seed: int) -> None:
    """A random schedule of a random kernel gives the bits of the graph at all levels, and is clean."""
    random = Random(f"{kind} {seed}")
    run, work = levels.run_graph(program(folder, text_of(kind, random, name != "tiny")), "fp16")
    with searched_by(lambda c, target: random.sample(range(len(c.schedules)), len(c.schedules))):
        levels.run_target(run, work, name, random.randint(1, max(3, Target.load(name).cores)), "fp16")


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("name", Target.shipped())
def test_any_schedule_is_right(tmp_path: Path, name: str, kind: str) -> None:
    right(tmp_path, name, kind, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("name", Target.shipped())
def test_any_schedule_of_many_is_right(tmp_path: Path, name: str, kind: str, seed: int) -> None:
    right(tmp_path, name, kind, seed)


# replay ---------------------------------------------------------------------------------------------------------------
def alone(nest: Nest, values: list[float], target: Target) -> float:
    """Cycles of one candidate."""
    return together(nest, [values], [1], target)


def together(nest: Nest, values: list[list[float]], cores: list[float], target: Target) -> float:
    """Cycles of one candidate on several cores, by class."""
    none = np.zeros(1)
    (found,), _ = replay(nest, np.array([values]), np.array([cores]), np.zeros((1, len(Engine))), none, none, target)
    return float(found)


def stream(slots: int) -> Nest:
    """Load and compute, over a buffer of so many slots."""
    nest = Nest("trips", "load", "work")
    with nest.loop("trips", 1):
        tile = nest.buffer(slots)
        nest.op(Engine.LOAD, 0, "load", writes=(tile,))
        nest.op(Engine.VECTOR, 0, "work", reads=(tile,))
    return nest


def test_two_slots_overlap_and_one_does_not() -> None:
    target = replace(Target.load("edge"), fixed_sync=0)
    assert alone(stream(1), [100, 500, 700], target) == pytest.approx(100 * (500 + 700), rel=0.01)
    assert alone(stream(2), [100, 500, 700], target) == pytest.approx(500 + 100 * 700, rel=0.01)


def test_what_does_not_fit_the_queue_is_issued_late() -> None:
    """A slow engine with a short queue stops the sequencer, and with it all others."""
    nest = Nest("trips")
    with nest.loop("trips", 1):
        nest.op(Engine.CUBE, 0, 1000)
        nest.op(Engine.VECTOR, 0, 10)
    last = Nest("trips")
    with last.loop("trips", 1):
        last.op(Engine.CUBE, 0, 1000)
    last.op(Engine.VECTOR, 0, 5000)
    target = replace(Target.load("edge"), queue_depth=8)
    assert alone(nest, [20], target) == pytest.approx(20_000, rel=0.01)
    assert alone(last, [20], target) == pytest.approx(20_000, rel=0.01)  # begins when the 12th product does
    assert alone(last, [8], target) == pytest.approx(8_000, rel=0.01)


def test_a_load_and_a_store_share_the_port() -> None:
    nest = Nest("trips")
    with nest.loop("trips", 1):
        nest.op(Engine.LOAD, 0, 100)
        nest.op(Engine.STORE, 0, 100)
    target = Target.load("edge")
    assert alone(nest, [50], replace(target, gm_port=2 * target.gm_path)) == pytest.approx(50 * 100, rel=0.02)
    assert alone(nest, [50], target) == pytest.approx(50 * 200, rel=0.02)


def test_cores_share_the_port() -> None:
    """Two that load 50 times, and one that loads 20 times: the port is shared by three, then by two."""
    nest = Nest("trips")
    with nest.loop("trips", 1):
        nest.op(Engine.LOAD, 0, 100)
    target = Target.load("edge")
    both = [[50.0], [20.0]]
    assert together(nest, both, [2, 1], target) == pytest.approx(120 * 100, rel=0.02)
    assert together(nest, both, [2, 1], replace(target, gm_port=2 * target.gm_path)) == pytest.approx(6000, rel=0.02)
    assert together(nest, both, [2, 0], target) == pytest.approx(100 * 100, rel=0.02)


def test_a_candidate_that_cannot_be_best_is_left_out() -> None:
    values, cores = np.array([[[100.0, 500, 700]], [[100, 500, 900]], [[100, 500, 600]]]), np.ones((3, 1))
    busy, none = np.zeros((3, len(Engine))), np.zeros(3)
    busy[:, Engine.VECTOR] = [70_000, 90_000, 60_000]
    target = Target.load("edge")
    found, left = replay(stream(2), values, cores, busy, busy.max(1), none, target, budget=10_000)
    assert np.isfinite(found).tolist() == [True, False, True]
    assert 0 < left < 10_000
    found, left = replay(stream(2), values, cores, busy, busy.max(1), none, target, budget=1)
    assert np.isfinite(found).tolist() == [True, False, False]
    assert left < 0
