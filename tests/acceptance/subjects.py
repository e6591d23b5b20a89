"""Programs to mutate: kernels of small models, each with the memory that it starts from, a few kernels written by hand,
and whole models as one linked stream on two cores."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx_models import bert_layer, mlp, small_cnn
from tile import kernels
from tile.harness import compiled, inputs, places

from stepwell.dialects.tile import KernelOp
from stepwell.driver import api
from stepwell.runtime import emulator
from stepwell.runtime.artifact import Artifact
from stepwell.runtime.encoding import Program
from stepwell.runtime.generator import launch_registers
from stepwell.runtime.memory import Memory
from stepwell.runtime.numerics.dtype import DType
from stepwell.runtime.segments import addresses, segments
from stepwell.runtime.target import Target

TINY = replace(Target.load("tiny"), cores=2)
MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "mlp": lambda: mlp(batch=70, sizes=(40, 90, 33)),
    "small_cnn": lambda: small_cnn(size=16),
    "attention": lambda: bert_layer(seq=20, hidden=32, heads=2, ffn=48),
}
HAND_MADE = {
    "elementwise": lambda: kernels.elementwise(200, slots=2),
    "one slot": lambda: kernels.elementwise(140, slots=1),
    "gemm": lambda: kernels.gemm(70, 50, 200),
    "gemm with folds": lambda: kernels.gemm(20, 20, 2300),
    "convolution": lambda: kernels.convolution(10, 6, 16, 20),
    "depthwise": lambda: kernels.depthwise(9, 5, 1, rows=2),
    "softmax": lambda: kernels.softmax(20, 150),
    "chain": lambda: kernels.chain(5),
    "update": lambda: kernels.update(50),
}


@dataclass(frozen=True, eq=False)
class Subject:
    """A program, ready to be launched on `tiny`."""

    name: str
    program: Program
    registers: NDArray[np.int64]
    before: NDArray[np.uint8]
    """Global memory."""
    arguments: tuple[int, ...]
    cores: int = 1


def run(subject: Subject, memory: Memory, seed: int | None) -> NDArray[np.uint8]:
    """Global memory after the program on the emulator. Raises `DeviceFault`."""
    memory.gm[: len(subject.before)] = subject.before
    emulator.run(
        subject.program,
        arguments=subject.arguments,
        memory=memory,
        target=TINY,
        counters=emulator.new_counters(),
        cores=subject.cores,
        seed=seed,
    )
    return memory.gm[: len(subject.before)].copy()


@cache
def subjects() -> tuple[Subject, ...]:
    """All kernels, of the models and by hand."""
    return *hand_made(), *(each for name in MODELS for each in of_model(name))


def hand_made() -> Iterator[Subject]:
    """The kernels of tests/tile/kernels.py, whose inputs are random."""
    for name, make in HAND_MADE.items():
        yield by_hand(name, make())


def by_hand(name: str, kernel: KernelOp) -> Subject:
    """A kernel of tile IR with random arguments."""
    arrays = inputs(kernel, 7)
    at = places(arrays)
    memory = np.zeros(-(-(at[-1] + arrays[-1].nbytes) // 64) * 64, np.uint8)
    for place, array in zip(at, arrays, strict=True):
        memory[place : place + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return Subject(name, compiled(kernel).program, launch_registers(tuple(at), 1), memory, tuple(at))


def of_model(name: str) -> Iterator[Subject]:
    """The kernels of a model, one launch of each, with what the launches before it left."""
    artifact = api.compile(MODELS[name](), target=TINY, cores=1)
    memory = loaded(artifact)
    seen: set[int] = set()
    for step in artifact.plans[0].launches:
        arguments = addresses(step, artifact, 0)
        kernel = artifact.kernels[step.kernel]
        subject = Subject(
            f"{name} {kernel.name}", kernel.program, launch_registers(arguments, 1), memory.gm.copy(), arguments
        )
        run(subject, memory, None)
        if step.kernel not in seen:
            seen.add(step.kernel)
            yield subject


LINKED: dict[str, Callable[[], onnx.ModelProto]] = {
    "mlp": lambda: mlp(batch=40, sizes=(20, 24, 10)),
    "small_cnn": lambda: small_cnn(size=8),
    "attention": lambda: bert_layer(seq=6, hidden=32, heads=2, ffn=48),
}


@cache
def linked() -> tuple[Subject, ...]:
    """Whole models, each one stream of rows for two cores."""
    found: list[Subject] = []
    for name, make in LINKED.items():
        artifact = api.compile(make(), target=TINY, cores=2)
        assert artifact.plans[0].linked
        (segment,) = segments(artifact, artifact.plans[0], 0)
        found.append(Subject(f"linked {name}", segment.program, launch_registers((), 2), loaded(artifact).gm, (), 2))
    return tuple(found)


def loaded(artifact: Artifact) -> Memory:
    """A device's memory with the weights and random inputs in it; what is not yet computed is noise."""
    random, size = np.random.default_rng(5), -(-artifact.nbytes // 64) * 64
    memory = Memory(TINY, size)
    memory.gm[:] = random.integers(0, 256, size, np.uint8)
    for tensor in artifact.tensors:
        if tensor.role == "weight":
            memory.write(tensor.offset, artifact.weights[tensor.name])
        elif tensor.role == "input":
            memory.write(tensor.offset, random.standard_normal(tensor.shape).astype(DType.parse(tensor.dtype).numpy))
    return memory
