"""Forms that rank their cuts by themselves: of a sample of cuts, none is much faster than the one that is picked."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from recurrent_models import node
from schedules import cycles
from xdsl.dialects.func import FuncOp

from stepwell.driver.compilation import advance, options_of, start
from stepwell.passes.graph_to_tile import region_of, tile_kernel
from stepwell.passes.tiling import grouped_space, recurrent
from stepwell.passes.tiling.body import Machine, NotTileable, Region
from stepwell.passes.tiling.contraction import epilogue_of
from stepwell.passes.tiling.grouped_space import Groups
from stepwell.runtime.target import Target

GROUPED = """func.func @main(%x: tensor<1x{c}x{h}x{h}xf32>, %w: tensor<{n}x{d}x{k}x{k}xf32>, %r: tensor<{n}xf32>)
    -> tensor<1x{n}x{o}x{o}xf32> {{
  %0 = graph.conv %x, %w, %r {{kernel = [{k}, {k}], strides = [{s}, {s}], pads = [{p}, {p}, {p}, {p}],
    dilations = [1, 1], groups = {groups}}} : (tensor<1x{c}x{h}x{h}xf32>, tensor<{n}x{d}x{k}x{k}xf32>, tensor<{n}xf32>)
    -> tensor<1x{n}x{o}x{o}xf32>
  func.return %0 : tensor<1x{n}x{o}x{o}xf32>
}}
"""
MACHINES = [Machine(Target.load("edge"), 1), Machine(Target.load("server"), 8)]


def text(form: str, c: int, h: int, k: int, s: int, p: int, n: int = 0, groups: int = 1) -> str:
    """A program of one op."""
    return form.format(c=c, h=h, k=k, s=s, p=p, o=(h + 2 * p - k) // s + 1, n=n, groups=groups, d=c // groups)


def regions(source: Any, machine: Machine) -> Iterator[Region]:
    """The kernels of a program."""
    work = start(source, target=machine.target.name)
    advance(work, "graph", options_of("fp16", None, {}))
    for op in work.module.ops:
        if isinstance(op, FuncOp) and op.sym_visibility is not None and op.sym_visibility.data == "private":
            yield region_of(op)


def program(folder: Path, source: str) -> Path:
    path = folder / "one.mlir"
    path.write_text(source)
    return path


def cuts_of(region: Region, machine: Machine, module: Any, name: str) -> tuple[list[Any], float]:
    """All cuts of a kernel, and the cycles of the one that is picked."""
    found: list[Any] = []
    every: Callable[..., Iterator[Any]] = getattr(module, name)

    def spy(*arguments: Any) -> Iterator[Any]:
        found.extend(every(*arguments))
        return iter(found)

    with patch.object(module, name, spy):
        kernel = tile_kernel("k", region, machine)
    return found, cycles(kernel, machine)


def timed(region: Region, machine: Machine, module: Any, name: str, cut: Any) -> float:
    """Cycles of a cut; infinity if its buffers do not fit."""
    with patch.object(module, name, lambda *_: iter([cut])):
        try:
            return cycles(tile_kernel("k", region, machine), machine)
        except NotTileable:
            return np.inf


def lost(region: Region, machine: Machine, module: Any, name: str, count: int) -> float:
    """Cycles of the picked cut over those of the best of a sample."""
    found, picked = cuts_of(region, machine, module, name)
    some = Random(0).sample(found, min(count, len(found)))
    return picked / min(timed(region, machine, module, name, cut) for cut in some)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.target.name)
@pytest.mark.parametrize(
    "sizes",
    [
        (256, 28, 3, 1, 1, 256, 32),
        (96, 27, 5, 1, 2, 256, 2),
        (128, 28, 3, 2, 1, 128, 32),
        (2048, 112, 3, 2, 1, 64, 2),  # panels that come by chunks of k
    ],
)
def test_of_a_convolution_by_group(sizes: tuple[int, ...], machine: Machine, tmp_path: Path) -> None:
    """And replay agrees with the timing."""
    every = regions(program(tmp_path, text(GROUPED, *sizes)), machine)
    (region,) = (r for r in every if "group" in r.ops[0].name)
    assert lost(region, machine, grouped_space, "cuts", 10) < 1.04
    this, follows = Groups.of(region.ops[0]), epilogue_of(region)
    found = list(grouped_space.cuts(this, machine.target))
    for cut in Random(1).sample(found, 8):
        took = timed(region, machine, grouped_space, "cuts", cut)
        if np.isfinite(took):
            told = grouped_space.replayed(this, cut, follows, machine.target, machine.cores, np.inf)
            assert abs(np.log(told / took)) < (0.17 if machine.cores == 1 else 0.32), cut  # as in schedule_test.py


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.target.name)
@pytest.mark.parametrize("sizes", [("LSTM", 10, 4, 320), ("GRU", 10, 16, 256), ("RNN", 10, 8, 256)])
def test_of_a_recurrence(sizes: tuple[str, int, int, int], machine: Machine) -> None:
    """Rows of a batch that cannot be shared out to advantage stay on one core."""
    operator, time, batch, hidden = sizes
    this = node(operator, time, batch, hidden, hidden)
    (region,) = (r for r in regions(this.model(), machine) if "recurrence" in r.ops[0].name)
    assert lost(region, machine, recurrent, "cuts", 12) < 1.04
