"""Kernels that are shared out over a grid of cores: programs of random sizes give the same bits at every level, on any
number of cores, and no core waits for ever or reads what another one still writes.
"""

from pathlib import Path
from random import Random

import levels
import pytest
from chips import chip

from stepwell.dialects.tile import GridOp, KernelOp
from stepwell.driver.compilation import Compilation, advance, options_of
from stepwell.passes.tiling.space import even_parts

PROGRAM = """// RUN-LEVELS: seed={seed}; targets=tiny; precision=fp16
func.func @main(%a: tensor<{b}x{m}x{k}xf32>, %b: tensor<{b}x{k}x{n}xf32>, %w: tensor<{k}x{n}xf32>, {image})
    -> (tensor<{b}x{m}x{n}xf32>, tensor<{b}x{k}x{n}xf32>, tensor<{b}x{m}x{n}xf32>, {found}, {image_type}) {{
  %0 = graph.matmul %a, %b : (tensor<{b}x{m}x{k}xf32>, tensor<{b}x{k}x{n}xf32>) -> tensor<{b}x{m}x{n}xf32>
  %1 = graph.softmax %b {{axes = [2]}} : (tensor<{b}x{k}x{n}xf32>) -> tensor<{b}x{k}x{n}xf32>
  %2 = graph.matmul %a, %w : (tensor<{b}x{m}x{k}xf32>, tensor<{k}x{n}xf32>) -> tensor<{b}x{m}x{n}xf32>
  %3 = graph.conv %x, %f {{{window}, groups = 1}} : ({image_type}, tensor<{n}x{c}x3x3xf32>) -> {found}
  %4 = graph.max_pool %x {{{window}}} : ({image_type}) -> {image_type}
  func.return %0, %1, %2, %3, %4
    : tensor<{b}x{m}x{n}xf32>, tensor<{b}x{k}x{n}xf32>, tensor<{b}x{m}x{n}xf32>, {found}, {image_type}
}}
"""


def random_program(random: Random, seed: int) -> str:
    """Two products, a softmax, a convolution and a pool."""
    b, m, n, k = (random.choice(sizes) for sizes in ((1, 2, 3, 5), (1, 33, 70, 100), (17, 50, 130), (20, 64, 300)))
    c, h, w = random.choice((16, 20)), random.choice((5, 9, 14)), random.choice((7, 12))
    image = f"tensor<{random.choice((1, 2))}x{c}x{h}x{w}xf32>"
    window = "kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]"
    arguments = f"%x: {image}, %f: tensor<{n}x{c}x3x3xf32>"
    sizes = {"b": b, "m": m, "n": n, "k": k, "c": c}
    found = image.replace(f"x{c}x", f"x{n}x", 1)
    return PROGRAM.format(seed=seed, image=arguments, image_type=image, found=found, window=window, **sizes)


@pytest.mark.parametrize("cores", [3, 6, 8, 32])
@pytest.mark.parametrize("seed", range(4))
def test_any_number_of_cores_gives_the_same_bits(tmp_path: Path, seed: int, cores: int) -> None:
    path = tmp_path / "random.mlir"
    path.write_text(random_program(Random(seed), seed))
    run, work = levels.run_graph(levels.Program.read(path), "fp16")
    levels.run_target(run, work, "tiny", cores, "fp16")


def test_kernels_have_grids(tmp_path: Path) -> None:
    path = tmp_path / "random.mlir"
    path.write_text(random_program(Random(1), 1))
    _, work = levels.run_graph(levels.Program.read(path), "fp16")
    tiled = Compilation(work.module, work.origin)
    tiled.ctx.target = chip("tiny", 32)
    advance(tiled, "tile", options_of("fp16", 32, {}))
    kernels = [op for op in tiled.module.ops if isinstance(op, KernelOp)]
    assert any(isinstance(op, GridOp) for kernel in kernels for op in kernel.body.block.ops)


@pytest.mark.parametrize(
    ("blocks", "cores", "parts"),
    [
        ([7], 8, (7,)),
        ([7, 2], 8, (7, 1)),
        ([7, 2], 16, (7, 2)),
        ([12, 13], 32, (6, 5)),
        ([3, 10], 32, (3, 10)),
        ([3, 1000], 32, (1, 32)),
        ([2, 2, 2], 8, (2, 2, 2)),
        ([1000, 1000], 2, (2, 1)),
        ([], 4, ()),
    ],
)
def test_the_most_even_grid(blocks: list[int], cores: int, parts: tuple[int, ...]) -> None:
    assert even_parts(blocks, cores) == parts
