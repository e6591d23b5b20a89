"""Runs a kernel at every level: tile IR by `evaluate_tile`, its program on the emulator, its tokens by the checker."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepwell.backend import CompiledKernel, compile_kernel
from stepwell.dialects import tile
from stepwell.dialects.evaluate_tile import evaluate_kernel
from stepwell.runtime import checker, emulator
from stepwell.runtime.encoding import Program
from stepwell.runtime.memory import Memory
from stepwell.runtime.numerics.dtype import DType
from stepwell.runtime.target import Target

Array = NDArray[Any]
TARGET = dataclasses.replace(Target.load("tiny"), cores=2)
LARGE = Target.load("edge")
GM = 1 << 21


def inputs(kernel: tile.KernelOp, seed: int = 0) -> list[Array]:
    """Small random values for every argument, also those that are written."""
    random = np.random.default_rng(seed)
    kinds = [a.type for a in kernel.body.block.args if isinstance(a.type, tile.BufferType)]
    return [(random.standard_normal(kind.dims) * 0.5).astype(DType.parse(kind.dtype).numpy) for kind in kinds]


def places(arrays: Sequence[Array]) -> list[int]:
    """Addresses for the arrays in global memory, one behind the other."""
    found, at = [], 256
    for array in arrays:
        found.append(at)
        at += -(-array.nbytes // 64) * 64
    assert at <= GM
    return found


def evaluated(kernel: tile.KernelOp, arrays: Sequence[Array], cores: int, scalars: Sequence[int] = ()) -> list[Array]:
    """The arguments after the tile evaluator; scalars come behind the arrays."""
    copies = [array.copy() for array in arrays]
    evaluate_kernel(kernel, [*copies, *scalars], cores)
    return copies


def emulated(
    compiled: CompiledKernel, arrays: Sequence[Array], cores: int, seed: int | None = None, scalars: Sequence[int] = ()
) -> list[Array]:
    """The arguments after the emulator, which interleaves queues by the seed."""
    memory, at = Memory(TARGET, GM), places(arrays)
    for place, array in zip(at, arrays, strict=True):
        memory.write(place, array)
    emulator.run(
        compiled.program,
        arguments=[*at, *scalars],
        memory=memory,
        target=TARGET,
        counters=emulator.new_counters(),
        cores=cores,
        seed=seed,
    )
    return [memory.read(place, DType.of(array), array.shape) for place, array in zip(at, arrays, strict=True)]


def checked(
    program: Program, arrays: Sequence[Array], cores: int, target: Target = TARGET, scalars: Sequence[int] = ()
) -> checker.Report:
    """The checker's report."""
    at = places(arrays)
    whole = [(place, place + -(-array.nbytes // 64) * 64) for place, array in zip(at, arrays, strict=True)]
    arguments = [*at, *scalars]
    return checker.check(program, arguments=arguments, target=target, cores=cores, gm_size=GM, initialised=whole)


def compiled(kernel: tile.KernelOp) -> CompiledKernel:
    return compile_kernel(kernel, TARGET)


def same_bits(left: Sequence[Array], right: Sequence[Array]) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(left, right, strict=True))
