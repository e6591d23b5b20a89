"""Convolutions whose panels are cut every way the lattice knows: windows of a row, channels or rows of the kernel of a
chunk of k, both.

Random shapes; every cut is offered though the panel would fit, and any of those that cut it is taken. All levels must
give the same bits.
"""

from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from unittest.mock import patch

import levels
import pytest
from schedules import searched_by

from stepwell.passes.tiling import grouped
from stepwell.passes.tiling.geometry import Image
from stepwell.passes.tiling.grouped_space import Cut, Groups, cuts
from stepwell.passes.tiling.schedule import Epilogue
from stepwell.passes.tiling.search import Choices
from stepwell.runtime.target import Target

PROGRAM = """// RUN-LEVELS: seed={seed}; precision={precision}; tolerance=4
builtin.module {{
  func.func @main(%x: {x}) -> {y} {{
    %0 = graph.weight "5eed000000000001" : {w}
    %1 = graph.weight "5eed000000000002" : tensor<{n}xf32>
    %2 = graph.conv %x, %0, %1 {{kernel = {kernel}, strides = {strides}, pads = {pads}, dilations = {dilations}, \
groups = {groups}}} : ({x}, {w}, tensor<{n}xf32>) -> {y}
    func.return %2 : {y}
  }}
}}
"""
MACHINES = {"tiny": (1, 2), "edge": (2,), "odd": (3,)}


def random_program(random: Random, form: str, deep: bool, far: bool = False, tall: bool = False) -> str:
    """A convolution of one of the forms; `deep`: of more than one segment of k; `far`: windows may lie in the padding
    alone; `tall`: with a kernel of many rows."""
    kernel = [random.choice([13, 31, 47] if tall else [1, 2, 3, 5]), random.choice([2, 3, 4])]
    taps = kernel[0] * kernel[1]
    channels = -(-random.randint(2100, 4500) // taps) if deep else random.choice([17, 32, 40, 64, 80])
    groups, outputs = {
        "convolution": (1, random.choice([8, 20, 33])),
        "depthwise": (channels, channels),
        "groups": (2, 2 * random.choice([3, 16, 24])),
    }[form]
    channels += channels % groups
    strides = [random.choice([5, 9, 13] if far else [1, 1, 2, 3]) for _ in range(2)]
    dilations = [1 if deep or tall else random.choice([1, 1, 2, 3]) for _ in range(2)]
    reach = [(n - 1) * d + 1 for n, d in zip(kernel, dilations, strict=True)]
    pads = [random.randint(0, reach[axis % 2] // 2) for axis in range(4)]
    if far:
        pads[:2] = [n + random.randint(0, 3) for n in reach]
    size = [random.randint(1, 5), random.randint(17, 24 if deep else 75)]
    size[0] = max(size[0], reach[0] - pads[0] - pads[2])
    size[1] = max(size[1] * (1 if far else strides[1]), reach[1])
    out = [(size[a] + pads[a] + pads[a + 2] - reach[a]) // strides[a] + 1 for a in range(2)]
    batch = random.choice([1, 1, 2])

    def tensor(*sizes: int) -> str:
        return f"tensor<{'x'.join(map(str, sizes))}xf32>"

    return PROGRAM.format(
        seed=random.randint(1, 99), precision=random.choice(["fp16", "fp32"]), n=outputs, groups=groups,
        x=tensor(batch, channels, *size), y=tensor(batch, outputs, *out),
        w=tensor(outputs, channels // groups, *kernel),
        kernel=kernel, strides=strides, pads=pads, dilations=dilations,
    )  # fmt: skip


def any_cut(random: Random, taken: Counter[str]) -> ExitStack:
    """Panels are large, and schedules that cut them come first, in any order."""

    def order(c: Choices, target: Target) -> Iterable[int]:
        cuts = [c.names.index(name) for name in ("window", "stream", "down") if name in c.names]
        kinds: dict[tuple[int, ...], list[int]] = {}
        for row in range(len(c.schedules)):
            kinds.setdefault(tuple((c.schedules[row, cuts] > 0).astype(int).tolist()), []).append(row)
        several = [kind for kind in kinds if any(kind)] or list(kinds)
        kind = random.choice(several)
        rows = random.sample(kinds[kind], len(kinds[kind]))
        taken[f"{len(c.names)} {kind}"] += 1
        yield from rows

    def ranked(this: Groups, e: Epilogue, target: Target, cores: int) -> list[Cut]:
        return sorted(cuts(this, target), key=lambda c: random.random() - random.choice([c.window, c.k1 > 0]))

    def large(self: Image, channels: int, target: Target) -> bool:
        return True

    stack = ExitStack()
    stack.enter_context(searched_by(order))
    stack.enter_context(patch.object(grouped, "ranked", ranked))
    stack.enter_context(patch.object(Image, "large", large))
    return stack


@pytest.mark.parametrize("seed", range(12))
def test_every_cut_of_a_panel_gives_the_same_bits(seed: int, tmp_path: Path) -> None:
    random, taken = Random(seed), Counter[str]()
    form = ("convolution", "depthwise", "groups", "convolution")[seed % 4]
    path = tmp_path / "cut.mlir"
    path.write_text(random_program(random, form, deep=seed % 4 == 3))
    with any_cut(random, taken):
        levels.run_program(levels.Program.read(path), MACHINES)
    if form != "groups":
        assert any("1" in kind.split(" ", 1)[1] for kind in taken), taken


@pytest.mark.parametrize("seed", range(9))
def test_kernels_of_many_rows_come_by_some_of_them(seed: int, tmp_path: Path) -> None:
    random, taken = Random(seed), Counter[str]()
    path = tmp_path / "tall.mlir"
    form = ("convolution", "depthwise", "groups")[seed % 3]
    path.write_text(random_program(random, form, deep=form != "depthwise" and seed % 2 == 0, tall=True))
    with any_cut(random, taken):
        levels.run_program(levels.Program.read(path), MACHINES)


@pytest.mark.parametrize("seed", range(12))
def test_windows_in_the_padding_take_nothing_from_the_image(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    path = tmp_path / "far.mlir"
    path.write_text(random_program(random, ("convolution", "depthwise", "groups")[seed % 3], deep=False, far=True))
    with any_cut(random, Counter()):
        levels.run_program(levels.Program.read(path), MACHINES)


@pytest.mark.parametrize("kernel", [(1, 1), (3, 3), (5, 4), (1, 25), (12, 12), (96, 3)])
@pytest.mark.parametrize("channels", [3, 17, 64, 200, 960])
def test_a_chunk_has_its_part_of_the_image_in_its_panel(kernel: tuple[int, int], channels: int) -> None:
    image = Image(1, 99, 30, channels, 30, 30, kernel, (1, 1), (1, 1), (0, 0), "f16")
    (height, width), c0 = kernel, image.c0
    for k1 in image.chunks():
        grid, part, end = image.grid(k1), image.part(k1), 0
        for number in range(-(-image.depth // grid.unit) * grid.parts):
            unit, piece = divmod(number, grid.parts)
            start, limit = unit * grid.unit + piece * k1, min((unit + 1) * grid.unit, image.depth)
            assert start == end
            end = min(start + k1, limit)
            blocks = {k // (c0 * image.taps) for k in range(start, end)}
            rows = {k // (c0 * width) % height for k in range(start, end)}
            first = min(blocks) * c0
            assert first == unit * part.channels
            assert min(channels, (max(blocks) + 1) * c0) <= first + part.channels
            assert min(rows) == piece * part.kernel[0]
            assert max(rows) < min(rows) + part.kernel[0]
        assert end == image.depth


def test_a_line_of_pixels_stands_upright_if_nothing_else_lies_in_it() -> None:
    line = Image(2, 1, 900, 7, 1, 450, (1, 5), (1, 2), (1, 3), (0, 4), "f16")
    up = line.upright()
    assert (up.h, up.w, up.oh, up.ow) == (900, 1, 450, 1)
    assert (up.kernel, up.strides, up.dilations, up.pads) == ((5, 1), (2, 1), (3, 1), (4, 0))
    assert (up.depth, up.channels, up.batch) == (line.depth, 7, 2)
    padded = replace(line, kernel=(3, 5), pads=(1, 4))
    assert padded.upright() is padded
