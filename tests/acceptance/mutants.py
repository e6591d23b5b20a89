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
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from onnx import ModelProto

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
    kind = random.choice(("bits", "bytes", "cut", "splice", "repeat", "drop", "fields", "fields", "fields", "fields"))
    if kind == "fields":
        return _with_other_fields(random, random.choice(models))
    data = bytearray(random.choice(models))
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


def _with_other_fields(random: Random, data: bytes) -> bytes:
    """A model that can still be parsed: a few of its fields have other values, are left out or stand twice."""
    model = ModelProto.FromString(data)
    for _ in range(random.choice((1, 1, 2, 3))):
        places = list(_places(model))
        message, field = random.choice(places)
        if field.is_repeated:
            values = getattr(message, field.name)
            at = random.randrange(len(values))
            if field.message_type is not None or random.random() < 0.3:
                change = random.choice(("drop", "twice", "swap"))
                items = list(values)
                if change == "twice":
                    items.insert(at, items[at])
                elif change == "swap":
                    random.shuffle(items)
                else:
                    del items[at]
                kept = [
                    type(item).FromString(item.SerializeToString()) if field.message_type else item for item in items
                ]
                message.ClearField(field.name)
                getattr(message, field.name).extend(kept)
            else:
                with suppress(ValueError, TypeError):
                    values[at] = _other(random, values[at], places)
        elif random.random() < 0.2:
            message.ClearField(field.name)
        elif field.message_type is None:
            with suppress(ValueError, TypeError):  # of an enumeration, or too large for the field
                setattr(message, field.name, _other(random, getattr(message, field.name), places))
    return model.SerializeToString()


def _places(message: Any) -> Iterator[tuple[Any, Any]]:
    """Each field that is set, in a message and those inside of it."""
    for field, value in message.ListFields():
        yield message, field
        if field.message_type is not None:
            for inner in value if field.is_repeated else (value,):
                yield from _places(inner)


def _other(random: Random, value: Any, places: Sequence[tuple[Any, Any]]) -> Any:
    """Another value of the same type; of text, often one that stands elsewhere in the model."""
    if isinstance(value, float):
        return random.choice((0.0, -1.0, float("nan"), float("inf"), 1e30, value * 2))
    if isinstance(value, int):
        return random.choice((0, 1, 2, 3, 7, value + 1, max(0, value - 1), random.randrange(20), 1000, 2**31 - 1))
    if isinstance(value, bytes):
        return random.choice((b"", value[:-1], value * 2, bytes(len(value)), b"VALID", b"\xff\xfe"))
    texts = [text for message, field in places if isinstance(text := getattr(message, field.name), str)]
    names = [
        name for message, field in places if field.name in ("input", "output") for name in getattr(message, field.name)
    ]
    return random.choice([*texts, *names, "", "nowhere", "Relu", "Conv", "Reshape", "Loop", "If"])


def outcomes(count: int, seed: int) -> Iterator[Outcome]:
    """What becomes of `count` mutants. Each is compiled in a fork of this process, which has all modules loaded."""
    import stepwell

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
    except Exception as error:  # noqa: BLE001 - whatever it is, it must be told well
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
