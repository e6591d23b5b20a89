"""Measures Stepwell: `make bench`. Ratios come from one run, so that they mean the same on any machine.

    emulator / onnxruntime    time to run a model against onnxruntime fp32 on one thread, turn by turn
    compile                   CPU seconds from file to artifact, and the ops of each stage
    ns per instruction        of the emulator's values, and of the timing

Each run appends a line to bench/history.jsonl and is shown beside the line before.
"""

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).parents[1]
HISTORY = ROOT / "bench" / "history.jsonl"
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tests")]

import models  # noqa: E402 - of examples/
import onnx  # noqa: E402
import onnx_models  # noqa: E402 - of tests/

from stepwell.driver import compilation  # noqa: E402
from stepwell.driver.agreement import agree  # noqa: E402
from stepwell.driver.report import table  # noqa: E402
from stepwell.runtime.artifact import Artifact  # noqa: E402
from stepwell.runtime.generator import launch_registers  # noqa: E402
from stepwell.runtime.segments import segments  # noqa: E402
from stepwell.runtime.timing import Timing, prepare, time_launch  # noqa: E402

Array = NDArray[Any]
Metrics = dict[str, float]


@dataclass(frozen=True, slots=True)
class Case:
    """A model, the shapes it is compiled for, and its inputs."""

    name: str
    model: onnx.ModelProto
    shapes: Mapping[str, tuple[int, ...]]
    inputs: Mapping[str, Array]


def cases() -> list[Case]:
    """The BERT-base layer at sequence 128, and the OCR recogniser on a line of 48 × 320."""
    random = np.random.default_rng(0)
    bert = onnx_models.bert_layer()
    recogniser = onnx.load(models.fetch("ocr")["recognition"])
    line = random.uniform(-1, 1, (1, 3, 48, 320)).astype(np.float32)
    return [
        Case("bert", bert, {}, {info.name: _values(info, random) for info in bert.graph.input}),
        Case("ocr", recogniser, {"x": line.shape}, {"x": line}),
    ]


def _values(info: onnx.ValueInfoProto, random: np.random.Generator) -> Array:
    """Standard normal values; of a mask all but the last tenth is 1."""
    shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
    if info.name == "mask":
        return (np.indices(shape)[-1] < shape[-1] * 0.9).astype(np.float32)
    return random.standard_normal(shape).astype(np.float32)


def seconds(action: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def measure(case: Case, target: str, repetitions: int) -> Metrics:
    """All numbers of one model."""
    compiled, found = compile_case(case, target)
    metrics = {f"{case.name} {key}": value for key, value in found.items()}
    session = _session(case.model)
    npu = compiled.model
    outputs = npu.run(case.inputs)
    reference = dict(zip(outputs, session.run(list(outputs), dict(case.inputs)), strict=True))
    metrics[f"{case.name} cosine"] = min(agree(name, outputs[name], reference[name]).cosine for name in outputs)
    emulator, ours = [], []
    for _ in range(repetitions):  # turn by turn, so that a busy machine slows both
        ours.append(seconds(lambda: session.run(None, dict(case.inputs))))
        emulator.append(seconds(lambda: npu.run(case.inputs)))
    ratios = [a / b for a, b in zip(emulator, ours, strict=True)]
    metrics |= {f"{case.name} emulator/ort median": median(ratios), f"{case.name} emulator/ort min": min(ratios)}
    timed, timing = time_plan(compiled)
    records = timed.records
    return metrics | {
        f"{case.name} instructions": records,
        f"{case.name} ns/instruction values": min(emulator) / records * 1e9,
        f"{case.name} ns/instruction timing": timing / records * 1e9,
        f"{case.name} kilocycles": npu.profile().cycles / 1e3,
        f"{case.name} cube %": npu.profile().cube_utilisation * 100,
    }


def time_plan(artifact: Artifact) -> tuple[Timing, float]:
    """What the timing of the linked plan says, and the CPU seconds that it takes to say it, at best."""
    (segment,) = segments(artifact, artifact.plans[0], 0)
    cores = artifact.cores or artifact.target.cores
    prepared, registers = prepare(segment.program), launch_registers((), cores)
    runs: list[tuple[float, Timing]] = []
    for _ in range(6):
        start = time.process_time()
        timed = time_launch(prepared, registers, artifact.target, cores)
        runs.append((time.process_time() - start, timed))
    best, timed = min(runs, key=lambda run: run[0])
    return timed, best


def compile_case(case: Case, target: str) -> tuple[Artifact, Metrics]:
    """The artifact, the CPU seconds (the better of two) and the ops after each stage."""
    found: list[tuple[float, Artifact, Metrics]] = []
    for _ in range(2):
        start = time.process_time()
        work = compilation.start(case.model, target=target, shapes=case.shapes)
        compilation.advance(work, "npu", compilation.options_of("fp16", None, {}))
        artifact = compilation.link(work, {}, None)
        ops = {f"ops {stage}": float(count) for stage, count in work.ops.items()}
        found.append((time.process_time() - start, artifact, ops))
    best, artifact, ops = min(found, key=lambda run: run[0])
    return artifact, {"compile CPU s": best, **ops, "kernels": float(len(artifact.kernels))}


def _session(model: onnx.ModelProto) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def commit() -> str:
    """The commit that is measured; a plus if files have changed since."""
    run = [["git", "rev-parse", "--short", "HEAD"], ["git", "status", "--porcelain", "--untracked-files=no"]]
    head, changed = (subprocess.run(c, cwd=ROOT, capture_output=True, text=True).stdout.strip() for c in run)
    return head + ("+" if changed else "")


def last_metrics() -> Metrics:
    """Of the line before, if there is one."""
    lines = HISTORY.read_text(encoding="utf-8").splitlines() if HISTORY.exists() else []
    return json.loads(lines[-1])["metrics"] if lines else {}


def show(metrics: Metrics, before: Metrics) -> str:
    """A line for each number, beside the last one."""
    rows: list[tuple[str, str, str, str]] = []
    for name, value in metrics.items():
        old = before.get(name)
        change = f"{(value / old - 1) * 100:+.1f} %" if old else ""
        rows.append((name, _number(value), _number(old) if old is not None else "", change))
    return table(("", "now", "before", "change"), rows, indent="")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}" if abs(1 - value) > 1e-3 else f"{value:.7f}"


def main() -> int:
    """Measures, prints a table and appends to the history."""
    parser = argparse.ArgumentParser(description="Measures Stepwell.")
    parser.add_argument("--repetitions", type=int, default=7, metavar="N")
    parser.add_argument("--target", default="edge")
    parser.add_argument("--json", action="store_true", help="print the new line of the history instead of a table")
    args = parser.parse_args()
    before, metrics = last_metrics(), dict[str, float]()
    for case in cases():
        print(f"measuring {case.name} …", file=sys.stderr, flush=True)
        metrics |= measure(case, args.target, args.repetitions)
    line = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "target": args.target,
        "repetitions": args.repetitions,
        "metrics": metrics,
    }
    with HISTORY.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(line) if args.json else show(metrics, before))
    return 0


if __name__ == "__main__":
    sys.exit(main())
