"""A model written by hand, for tests of what comes behind the compiler: `y = x + w`, `z = y + y`, on 64 f16 values."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepwell.runtime.artifact import Artifact, Kernel, Launch, Metadata, Plan, Tensor, TensorRef
from stepwell.runtime.assembly import assemble
from stepwell.runtime.target import Target

N = 64
EXTENT = f"clamp({N} - {N}*core, {N})"
ADD = f"""
load dst=r29 space=ub src=r0 n4={EXTENT} esize=2 s4=2
load dst=r29 + 128 space=ub src=r1 n4={EXTENT} esize=2 s4=2
set src=load dst=vector id=r30
wait src=load dst=vector id=r30
vmap fn=add dst=r29 + 256 a=r29 b=r29 + 128 n2={EXTENT} d2=2 a2=2 b2=2 td=f16 ta=f16 tb=f16 bimm=0 ; slot 1
set src=vector dst=store id=r30
wait src=vector dst=store id=r30
store dst=r2 src=r29 + 256 space=ub n4={EXTENT} esize=2 d4=2
"""
"""r0, r1: operands; r2: result; core 0 does it all."""


def toy_artifact(target: str = "tiny", text: str = ADD) -> Artifact:
    """The model on a target; `text` may replace its kernel."""
    kernel = Kernel("add", assemble(text), ub=384, ids=1, slots=2)
    shape = (1, N)
    tensors = (
        Tensor("x", "f16", shape, "input", 0, "float32"),
        Tensor("y", "f16", shape, "temp", 128),
        Tensor("z", "f16", shape, "output", 256, "float32"),
        Tensor("w", "f16", shape, "weight", 384),
    )
    x, y, z, w = (TensorRef(index) for index in range(4))
    steps = (Launch(0, (x, w, y), ((), ("Add_0",))), Launch(0, (y, y, z), ((), ("Add_1",))))
    metadata = Metadata("toy", {"precision": "fp16"}, {"alphabet": "a\nб\n字"})
    return Artifact(
        Target.load(target), (kernel,), tensors, {"w": weight()}, (Plan({"N": 1}, 384, steps, (0,), (2,)),), metadata
    )


def weight() -> NDArray[Any]:
    return np.linspace(-4, 4, N, dtype=np.float16).reshape(1, N)


def toy_input(seed: int = 0) -> NDArray[Any]:
    return np.random.default_rng(seed).normal(size=(1, N)).astype(np.float32)


def toy_result(x: NDArray[Any]) -> NDArray[Any]:
    y = x.astype(np.float16) + weight()
    return (y + y).astype(np.float32)
