"""Damaged models, each compiled in a process of its own with little memory and time.

    python tests/acceptance/mutants.py 10000 --seed 0        prints what became of them

A mutant is a small model with flipped bits, cut off, or with a part of another in it. It compiles, or one error of the
user is told; a traceback, a crash, more than `MOST_SECONDS` or more than `MOST_BYTES` is a fault.
"""

import argparse
import os
import pickle
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).parents[1])]

MOST_SECONDS = 10
MOST_BYTES = 2**30
"""Of memory that is written to, beside what the modules took before."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a mutant: `compiled`, the class of its first problem, or the fault."""

    number: int
    text: str
    seconds: float = 0.0

    @property
    def is_fault(self) -> bool:
        return self.text.startswith("FAULT")


def bases() -> list[bytes]:
    """Small models of many kinds."""
    from acceptance import hostile_graphs as graphs
    from acceptance import hostile_models as models

    tables = (models.CONVOLUTIONS, models.PRODUCTS, models.REST, graphs.OUTPUTS, graphs.MOVES, graphs.ONES)
    found = [make().SerializeToString() for table in tables for make in table.values()]
    return [data for data in found if len(data) < 8000]


def mutant(random: Random, models: Sequence[bytes]) -> bytes:
    """A model, damaged in one of a few ways."""
    data = bytearray(random.choice(models))
    kind = random.choice(("bits", "bits", "bytes", "cut", "splice", "repeat", "drop"))
    at = random.randrange(len(data))
    if kind == "bits":
        for _ in range(random.choice((1, 1, 2, 4, 16))):
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    elif kind == "bytes":
        for _ in range(random.choice((1, 3))):
            data[random.randrange(len(data))] = random.choice((0, 1, 127, 128, 255))
    elif kind == "cut":
        del data[at:]
    elif kind == "splice":
        other = random.choice(models)
        start = random.randrange(len(other))
        part = other[start : start + random.randrange(1, 200)]
        data[at : at + random.choice((0, len(part)))] = part
    else:
        part = data[at : at + random.randrange(1, 100)]
        data[at : at + len(part)] = part * 2 if kind == "repeat" else b""
    return bytes(data)


def outcomes(count: int, seed: int) -> Iterator[Outcome]:
    """What becomes of `count` mutants. Each is compiled in a fork of this process, which has all modules loaded."""
    import stepwell
    from stepwell.driver.compilation import start  # noqa: F401 - loaded before the forks

    models = bases()
    for data in models[:20]:
        stepwell.compile(data, target="tiny")
    for number in range(count):
        yield _forked(number, mutant(Random(f"{seed}:{number}"), models))


def _forked(number: int, data: bytes) -> Outcome:
    reader, writer = os.pipe()
    began, process = time.perf_counter(), os.fork()
    if not process:
        os.close(reader)
        text = "FAULT: the process ended"
        try:
            text = _limited(data)
        finally:
            os.write(writer, pickle.dumps(text[:2000]))
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(process, 0)
    seconds = time.perf_counter() - began
    if status:
        late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
        return Outcome(number, f"FAULT: {'too slow' if late else f'status {status}'}", seconds)
    return Outcome(number, pickle.loads(told), seconds)


def _limited(data: bytes) -> str:
    """Compiles within the limits."""
    import stepwell
    from stepwell.driver.errors import INTERNAL, describe
    from stepwell.runtime.problem import Problem

    used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (used + MOST_BYTES, used + MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(MOST_SECONDS)
    try:
        stepwell.compile(data, target="tiny")
    except Exception as error:
        failure = describe(error)
        problems = failure.problems
        whole = all(isinstance(problem, Problem) and problem.is_whole for problem in problems)
        if failure.exit_code == INTERNAL or not problems or not whole:
            return f"FAULT: {type(error).__name__}: {str(error)[:1500]}"
        if isinstance(error, MemoryError):
            return f"FAULT: out of memory: {str(error)[:1500]}"
        first = problems[0]
        return first.kind.value if isinstance(first, Problem) else str(first)
    return "compiled"


def main(arguments: Sequence[str]) -> int:
    """Prints a table of the outcomes, and each fault."""
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    slowest = 0.0
    for outcome in outcomes(args.count, args.seed):
        counts["FAULT" if outcome.is_fault else outcome.text] += 1
        slowest = max(slowest, outcome.seconds)
        if outcome.is_fault:
            print(outcome.number, outcome.text, flush=True)
    print(args.count, f"mutants, seed {args.seed}:", dict(counts.most_common()), f"slowest {slowest:.1f} s")
    return 1 if counts["FAULT"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
