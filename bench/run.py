"""Measures Stepwell: `make bench`, over models × targets × batches.

    python bench/run.py                                       five models and the OCR recogniser on edge
    python bench/run.py --models resnet50,bert --targets edge,server --batch 1,8
    python bench/run.py --models bert --cores 1 --quick       no values: cycles, bounds and compilation alone
    python bench/run.py --models resnet50 --kernels           its kernels, those that lose most first

Bounds are explained in bench/bounds.py. Only B is a true lower bound; A is that of one fixed partition into kernels.
Ratios come from one run, so that they mean the same on any machine. Each run appends a line to bench/history.jsonl and
is shown beside what was last measured of the same case.
"""

import argparse
import json
import platform
import subprocess
import sys
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

from stepwell.bench.measure import (
    MODELS,
    Case,
    CompileError,
    Metrics,
    Times,
    by_kernel,
    compile_case,
    time_case,
    values_case,
)
from stepwell.driver.report import names, table
from stepwell.runtime.isa import Engine
from stepwell.runtime.target import Target

ROOT = Path(__file__).parents[1]
HISTORY = ROOT / "bench" / "history.jsonl"
WORST = 5
"""Kernels of a case that are shown anyway."""


def measure(case: Case, repetitions: int) -> tuple[Metrics, Times]:
    """All numbers of a case; without values if there are no repetitions. Raises `CompileError`."""
    artifact, metrics = compile_case(case)
    times = time_case(case, artifact)
    metrics |= times.metrics()
    if repetitions:
        metrics |= values_case(case, artifact, repetitions)
        metrics["ns/instruction values"] = metrics["emulator s"] / times.whole.records * 1e9
    return metrics, times


# what is printed ------------------------------------------------------------------------------------------------------

SUMMARY = {
    "kilocycles": "kcycles",
    "A %": "of A",
    "B %": "of B",
    "cube %": "cube",
    "port %": "port",
    "GM bytes / compulsory": "GM/compulsory",
    "compile CPU s": "compile s",
    "peak MB": "peak MB",
    "ops npu": "most ops",
    "emulator/ort median": "emu/ort",
    "cosine": "cosine",
}
"""Of the metrics, those in the first table."""


def show_summary(results: dict[str, Metrics]) -> str:
    """A line for each case."""
    rows = [
        (case, *(_number(metrics[name]) if name in metrics else "–" for name in SUMMARY))
        for case, metrics in results.items()
    ]
    note = "A: sum of the rooflines of a fixed partition, no lower bound. B: the whole network, a true lower bound."
    return table(("", *SUMMARY.values()), rows, indent="") + "\n" + note


def show_changes(results: dict[str, Metrics], before: dict[str, Metrics]) -> str:
    """Every number of every case, beside the last one."""
    rows: list[tuple[str, ...]] = []
    for case, metrics in results.items():
        rows.append((case, "", "", ""))
        for name, value in metrics.items():
            old = before.get(case, {}).get(name)
            change = f"{(value / old - 1) * 100:+.1f} %" if old else ""
            rows.append((f"  {name}", _number(value), _number(old) if old is not None else "", change))
    return table(("", "now", "before", "change"), rows, indent="")


COLUMNS = ("kernel", "×", "cycles", "roofline", "share", "lost", "limit", "busiest", "busy", "port", "token", "issue")
NOTES = """cycles: by how much the launches make the linked plan longer. limit: what sets the roofline. busiest: the
engine that is busy most; busy (port: of that, what sharing it adds), token, issue: its time in a launch by
itself. GM/A: bytes moved over those of the partition."""


def show_worst(times: Times, most: int) -> str:
    """Kernels, those that lose most first."""
    lines: list[tuple[object, ...]] = []
    for row in by_kernel(times)[0][:most]:
        limit = max(row.limits, key=lambda resource: row.limits[resource], default="–")
        numbers = [f"{number:,.0f}" for number in (row.cycles, row.roofline, row.lost)]
        numbers.insert(2, f"{row.roofline / row.cycles:.0%}" if row.cycles else "–")
        spent = [f"{row.share(part, row.engine):.0%}" for part in ("busy", "port", "token", "issue")]
        moved = sum(launch.gm_bytes for launch in row.launches)
        ratio = f"{moved / row.gm_bytes:.2f}" if row.gm_bytes else "–"
        nodes = names(row.launches[0].nodes, 2)
        lines.append((row.kernel, len(row.launches), *numbers, limit, row.engine.name.lower(), *spent, ratio, nodes))
    return table((*COLUMNS, "GM/A", "nodes of the first launch"), lines, indent="")


def show_kernels(times: Times, most: int) -> str:
    """The kernels, what they add up to, and what each engine does."""
    rows, left = by_kernel(times)
    total = sum(row.cycles for row in rows)
    sums = f"{total:,.0f} cycles, A {times.bounds.a:,.0f} ({times.bounds.a / total:.1%}), B {times.bounds.b:,.0f}"
    unanswered = f"; roofline of {left:,.0f} cycles belongs to no launch" if left else ""
    return "\n".join([show_worst(times, most), sums + unanswered, NOTES, "", show_engines(times)])


def show_engines(times: Times) -> str:
    """How each engine spends the time of the plan."""
    rows = [(engine.name.lower(), *(f"{share:.1%}" for share in times.lost(engine).values())) for engine in Engine]
    return table(("engine", *times.lost(Engine.CUBE)), [row for row in rows if row[0] != "scalar"], indent="")


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}" if abs(1 - value) > 1e-3 else f"{value:.7f}"


# history --------------------------------------------------------------------------------------------------------------


def commit() -> str:
    """The commit that is measured; a plus if files have changed since."""
    run = [["git", "rev-parse", "--short", "HEAD"], ["git", "status", "--porcelain", "--untracked-files=no"]]
    head, changed = (subprocess.run(c, cwd=ROOT, capture_output=True, text=True).stdout.strip() for c in run)
    return head + ("+" if changed else "")


def last_results(history: Path) -> dict[str, Metrics]:
    """By case, what was last measured."""
    lines = history.read_text(encoding="utf-8").splitlines() if history.exists() else []
    found: dict[str, Metrics] = {}
    for line in lines:
        for case, metrics in json.loads(line).get("results", {}).items():
            found[case] = found.get(case, {}) | metrics
    return found


def record(history: Path, results: dict[str, Metrics], repetitions: int) -> str:
    """Appends a line to the history. The result: the line."""
    line = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "repetitions": repetitions,
        "results": results,
    }
    text = json.dumps(line)
    with history.open("a", encoding="utf-8") as file:
        file.write(text + "\n")
    return text


# the command ----------------------------------------------------------------------------------------------------------


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def arguments() -> argparse.Namespace:
    """Of the command line."""
    parser = argparse.ArgumentParser(description="Measures Stepwell.")
    add = parser.add_argument
    add("--models", "--model", type=_names, default=list(MODELS), metavar="A,B", help=f"of {', '.join(MODELS)} (all)")
    add("--targets", "--target", type=_names, default=["edge"], metavar="A,B", help=f"of {', '.join(Target.shipped())}")
    add("--batch", type=_names, default=["1"], metavar="N,M")
    add("--cores", type=int, metavar="N", help="use fewer cores than the target has")
    add("--precision", default="fp16", choices=("fp16", "bf16", "fp32"))
    add("--repetitions", type=int, default=5, metavar="N", help="of runs against onnxruntime")
    add("--quick", action="store_true", help="no values, only cycles, bounds and compilation; leaves no history")
    add("--kernels", action="store_true", help="the kernels of each case; implies --quick")
    add("--top", type=int, default=25, metavar="N", help="kernels shown")
    add("--history", type=Path, default=HISTORY, metavar="FILE")
    add("--json", action="store_true", help="print the new line of the history instead of tables")
    args = parser.parse_args()
    if unknown := sorted(set(args.models) - set(MODELS)):
        parser.error(f"--models: must be of {', '.join(MODELS)} (found {', '.join(unknown)})")
    return args


def main() -> int:
    """Measures, prints tables and appends to the history; 1 if a case could not be compiled."""
    args = arguments()
    quick = args.quick or args.kernels
    results: dict[str, Metrics] = {}
    failures: dict[str, str] = {}
    for target, model, batch in product(args.targets, args.models, args.batch):
        case = Case(model, target, int(batch), args.cores, args.precision)
        print(f"measuring {case} …", file=sys.stderr, flush=True)
        try:
            results[str(case)], times = measure(case, 0 if quick else args.repetitions)
        except CompileError as error:
            failures[str(case)] = str(error)
            continue
        if not args.json:
            shown = show_kernels(times, args.top) if args.kernels else show_worst(times, WORST)
            print(f"\n{case}: the kernels that lose most\n{shown}\n", flush=True)
    before = last_results(args.history)
    line = json.dumps({"results": results}) if quick or not results else record(args.history, results, args.repetitions)
    if args.json:
        print(line)
    elif not args.kernels:
        print(show_changes(results, before), show_summary(results), sep="\n\n")
    for case, message in failures.items():
        print(f"\n{case} failed:\n{message}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
