"""Measures the search for schedules: how long it takes, and how far from the best schedule of its lattice it ends.

    python bench/search.py resnet50 bert --target edge --cores 1 --kernels 20

Of some kernels of the models of `models.py` (all of them, if none is named), schedules are really built and timed: all
of a small lattice; of a larger one a uniform sample, and as many that are the best by replay.
"""

import argparse
import sys
import time
from pathlib import Path
from random import Random
from statistics import mean, median
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).parents[1] / "tests")]

from schedules import choices_of, cycles, replayed, scheduled, searched_kernels  # noqa: E402 - of tests/

from stepwell.bench.models import MODELS, built  # noqa: E402
from stepwell.driver import compilation  # noqa: E402
from stepwell.driver.report import table  # noqa: E402
from stepwell.passes.tiling.body import Machine, Region  # noqa: E402
from stepwell.passes.tiling.search import search  # noqa: E402
from stepwell.runtime.target import Target  # noqa: E402


class Found(NamedTuple):
    """One kernel."""

    name: str
    form: str
    lattice: int
    timed: int
    whole: bool
    """Whether all that fit were timed."""
    milliseconds: float
    """CPU time of the search."""
    picked: float
    """Cycles."""
    best: float
    """Cycles of the best schedule that was timed, the costs to its neighbours made equal."""
    fastest: float
    """Cycles of the fastest one."""


def kernels(model: str, target: str) -> list[tuple[str, Region]]:
    """Those of a model whose schedules are searched."""
    work = compilation.start(built(model), target=target, shapes={})
    compilation.advance(work, "graph", compilation.options_of("fp16", None, {}))
    return [(f"{model} {name}", region) for name, region in searched_kernels(work)]


def measure(name: str, region: Region, machine: Machine, most: int, random: Random) -> Found:
    """Search, and time others."""
    c, _ = choices_of(region, machine)  # may compile code
    taken: list[float] = []
    for _ in range(5):
        start = time.process_time()
        choices_of(region, machine)
        taken.append(time.process_time() - start)
    rows = list(range(len(c.schedules)))
    whole = len(rows) <= 2 * most
    if not whole:
        best = (replayed(c, rows, machine) + c.found.handicap).argsort(kind="stable")[:most]
        rows = random.sample(rows, most) + best.tolist()
    timed = {row: cycles(k, machine) for row in dict.fromkeys(rows) if (k := scheduled(region, machine, row))}
    picked, kernel = next((row, k) for row in search(c, machine.target) if (k := scheduled(region, machine, row)))
    timed[picked] = cycles(kernel, machine)
    score = {row: value + float(c.found.handicap[row]) for row, value in timed.items()}
    best = min(score, key=lambda row: score[row])
    form, gap = region.ops[0].name.removeprefix("graph."), score[picked] - score[best]
    cost, least = timed[picked], min(timed.values())
    return Found(name, form, len(c.schedules), len(timed), whole, min(taken) * 1e3, cost, cost - gap, least)


def show(found: list[Found]) -> None:
    """A table, and what it comes to."""
    rows = [
        (f.name, f.form, f.lattice, "all" if f.whole else f.timed, f"{f.milliseconds:.1f}", f"{f.picked:.0f}",
         f"{f.picked / f.best - 1:.2%}", f"{f.picked / f.fastest - 1:.2%}")
        for f in found
    ]  # fmt: skip
    headings = ("kernel", "form", "lattice", "timed", "search ms", "cycles", "to the best", "to the fastest")
    print(table(headings, rows))
    best, fastest = ([f.picked / value - 1 for f, value in zip(found, values, strict=True)]
                     for values in ([f.best for f in found], [f.fastest for f in found]))  # fmt: skip
    print(f"  all schedules timed: {sum(f.whole for f in found)} of {len(found)} kernels")
    print(f"  search: mean {mean(f.milliseconds for f in found):.1f} ms")
    print(f"  to the best: mean {mean(best):.2%}, median {median(best):.2%}, most {max(best):.2%}")
    print(f"  to the fastest: mean {mean(fastest):.2%}, median {median(fastest):.2%}, most {max(fastest):.2%}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="How good the search for schedules is, and how long it takes.")
    parser.add_argument("models", nargs="*", help=f"of {', '.join(MODELS)}; all, if none is named")
    parser.add_argument("--target", default="edge")
    parser.add_argument("--cores", type=int, help="all of the target, if not said")
    parser.add_argument("--kernels", type=int, default=20)
    parser.add_argument("--schedules", type=int, default=300, help="by replay, and as many at random, of each kernel")
    parser.add_argument("--seed", type=int, default=0, help="other kernels and schedules")
    options = parser.parse_args()
    target, random = Target.load(options.target), Random(options.seed)
    machine = Machine(target, options.cores or target.cores)
    every = [kernel for model in options.models or MODELS for kernel in kernels(model, options.target)]
    some = sorted(random.sample(range(len(every)), min(options.kernels, len(every))))
    show([measure(*every[number], machine, options.schedules, random) for number in some])


if __name__ == "__main__":
    main()
