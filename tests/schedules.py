"""Kernels by any schedule of their lattice: for tests of the search, and to measure it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.func import FuncOp

from stepwell.backend.encode import compile_kernel
from stepwell.dialects.graph.contract import Conv2DOp, Depthwise2DOp, MatMulOp
from stepwell.dialects.graph.packed import PackedMatMulOp
from stepwell.dialects.graph.pool import Window2DOp
from stepwell.dialects.tile import KernelOp
from stepwell.driver.compilation import Compilation
from stepwell.passes.graph_to_tile import region_of, tile_kernel
from stepwell.passes.tiling import search as searching
from stepwell.passes.tiling.body import Machine, NotTileable, Region
from stepwell.passes.tiling.search import Choices, replay_rows, search
from stepwell.runtime.generator import launch_registers
from stepwell.runtime.target import Target
from stepwell.runtime.timing import prepare, time_launch

Search = Callable[[Choices, Target], Iterable[int]]


def searched_by(order: Search) -> AbstractContextManager[object]:
    """Rows of a lattice are tried in another order."""
    return patch.object(searching, "search", order)


def searched_kernels(work: Compilation) -> Iterator[tuple[str, Region]]:
    """The kernels of a module of the graph level whose schedules are searched."""
    for op in work.module.ops:
        if isinstance(op, FuncOp) and op.sym_visibility is not None and op.sym_visibility.data == "private":
            region = region_of(op)
            if isinstance(region.ops[0], (MatMulOp, PackedMatMulOp, Conv2DOp, Depthwise2DOp, Window2DOp)):
                yield op.sym_name.data, region


class _Stopped(Exception):
    """There is no need to build the kernel."""


def choices_of(region: Region, machine: Machine) -> tuple[Choices, int]:
    """The lattice of a kernel, and the row that is tried first."""
    found: list[tuple[Choices, int]] = []

    def order(c: Choices, target: Target) -> Iterable[int]:
        found.append((c, next(iter(search(c, target)))))
        raise _Stopped

    with searched_by(order), suppress(_Stopped):
        tile_kernel("k", region, machine)
    (result,) = found
    return result


def scheduled(region: Region, machine: Machine, row: int) -> KernelOp | None:
    """The kernel by one row of its lattice; None if its buffers do not fit."""
    with searched_by(lambda c, target: [row]):
        try:
            return tile_kernel("k", region, machine)
        except NotTileable:
            return None


def cycles(kernel: KernelOp, machine: Machine) -> float:
    """What a launch takes alone, from its first instruction on."""
    target, cores = machine.target, machine.cores
    arguments = tuple(0 for _ in kernel.body.block.args)
    program = compile_kernel(kernel, target).program
    return time_launch(prepare(program), launch_registers(arguments, cores), target, cores).cycles - target.launch


def replayed(c: Choices, rows: Sequence[int], machine: Machine) -> NDArray[np.float64]:
    """Cycles of rows by replay, each replayed to its end."""
    free = np.zeros_like(c.found.bound)
    found = c.found._replace(busy=np.zeros_like(c.found.busy), bound=free, handicap=free)
    plain = c._replace(found=found)
    return np.array([replay_rows(plain, np.array([row]), machine.target)[0] for row in rows])
