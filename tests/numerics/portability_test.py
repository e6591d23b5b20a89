"""The same bits on every CPU: a digest of results under narrower instruction sets; and the cache of compiled code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stepwell.runtime import jit

SCRIPT = """
import hashlib
import numpy as np
from stepwell.runtime.numerics import host
from stepwell.runtime.numerics.dtype import DType
from stepwell.runtime.numerics.function import IMPLEMENTATIONS
from stepwell.runtime.numerics.functions import RFN

digest = hashlib.sha256()
rng = np.random.default_rng(0)
halves = np.arange(65536, dtype=np.uint16).view(np.float16)
floats = (rng.standard_normal(65536) * 10.0 ** rng.uniform(-9, 9, 65536)).astype(np.float32)
for row in IMPLEMENTATIONS:
    for x in (halves, floats) if row.real is not None else ():
        digest.update(host.elementwise(row.code, *[x, x[::-1], np.roll(x, 77)][: row.arity]).tobytes())
a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((37, 100), (100, 70)))
digest.update(host.matmul(a, b).tobytes())
digest.update(host.reduce(RFN.SUM, a, (1,)).tobytes())
digest.update(host.reduce(RFN.MAX, a, (0,)).tobytes())
digest.update(host.cast(floats, DType.F16).tobytes() + host.cast(floats, DType.BF16).tobytes())
print(digest.hexdigest())
"""
# Of the results above: changing it changes the numerics of every compiled program.
GOLDEN = "0743e100889de76da41c39034eb5fb224fe74e59f14845e2fb08e6e365717703"


def digest_on(cpu: str | None) -> str:
    """Runs the script in a process that compiles for `cpu`."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_CPU")}
    if cpu:
        environment["NUMBA_CPU_NAME"] = cpu
    result = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    return result.stdout.strip()


def test_this_cpu() -> None:
    assert digest_on(None) == GOLDEN


@pytest.mark.skipif(not jit.HAS_FMA, reason="this CPU is less than that")
def test_a_cpu_with_avx2() -> None:
    assert digest_on("x86-64-v3") == GOLDEN


@pytest.mark.slow
def test_a_cpu_without_fma_and_f16c() -> None:
    assert digest_on("x86-64-v2") == GOLDEN


def test_first_compilation_is_announced_and_later_ones_are_silent(tmp_path: Path) -> None:
    script = """
from stepwell.runtime import jit
from stepwell.runtime.numerics.vector import fill
jit.on_compile(lambda name, seconds: print(name, seconds is not None))
fill(0, 4, 2, 0, 0)
"""
    environment = {**os.environ, "STEPWELL_CACHE": str(tmp_path)}
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert outputs == ["vector.fill False\nvector.fill True\n", ""]


@jit.kernel
def _double(x: int) -> int:
    """Not loaded before its caller runs."""
    return x + x


@jit.kernel
def _caller(x: int) -> int:
    """Contains nothing of `_double`."""
    return _double(x) + 1


def test_compiled_code_reaches_a_kernel_that_is_not_loaded_yet() -> None:
    assert _caller(20) == 41
    assert _double(4) == 8
