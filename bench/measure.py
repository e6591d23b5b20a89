"""The numbers of one case: a model, a target, a batch."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepwell.bench import bounds, models, onnx_graph
from stepwell.driver.agreement import agree
from stepwell.examples.models import fetch
from stepwell.runtime.artifact import Artifact, load
from stepwell.runtime.generator import launch_registers
from stepwell.runtime.isa import Engine
from stepwell.runtime.profile import LaunchProfile, Profile, prepare, profile
from stepwell.runtime.segments import segments
from stepwell.runtime.timing import Timing, time_launch, time_plan
from stepwell.runtime.timing import prepare as prepare_program

Array = NDArray[Any]
Metrics = dict[str, float]
HERE = Path(__file__).parent
MODELS = (*models.MODELS, "ocr")
CLASSIFIERS = ("resnet50", "mobilenetv2", "vit", "ocr")
"""Models whose largest output is an answer."""


class CompileError(RuntimeError):
    """The compiler refused a model; the message is what it said."""


@dataclass(frozen=True, slots=True)
class Case:
    """What is measured."""

    model: str
    target: str = "edge"
    batch: int = 1
    cores: int | None = None
    precision: str = "fp16"

    def __str__(self) -> str:
        cores = f" {self.cores} core{'s' if self.cores > 1 else ''}" if self.cores else ""
        return f"{self.model} {self.target}{cores} batch {self.batch} {self.precision}"

    @property
    def shapes(self) -> Mapping[str, Sequence[int]]:
        """For a model whose file leaves them open."""
        return {"x": (self.batch, 3, 48, 320)} if self.model == "ocr" else {}

    @property
    def file(self) -> Path:
        if self.model == "ocr":
            return fetch("ocr")["recognition"]
        return models.built(self.model, **({"batch": self.batch} if self.batch > 1 else {}))

    def inputs(self) -> dict[str, Array]:
        """Seeded."""
        if self.model != "ocr":
            return models.inputs(self.file)
        random = np.random.default_rng(0)
        return {name: random.uniform(-1, 1, shape).astype(np.float32) for name, shape in self.shapes.items()}


# compiling ------------------------------------------------------------------------------------------------------------


def compile_case(case: Case) -> tuple[Artifact, Metrics]:
    """The artifact, made by a new process, which finds the runtime's compiled code on disk: CPU seconds, peak memory,
    ops. Raises `CompileError`."""
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "model.stw"
        order = {"model": str(case.file), "output": str(output), "target": case.target, "precision": case.precision}
        command = [
            sys.executable,
            str(HERE / "compile_once.py"),
            json.dumps(order | {"shapes": case.shapes, "cores": case.cores}),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise CompileError(done.stderr.strip())
        found = json.loads(done.stdout)
        artifact = load(output)  # its weights stay mapped when the file is gone
    weights = case.file.stat().st_size
    metrics = {
        "compile CPU s": found["seconds"]["save"],
        "of that loading s": found["seconds"]["load"],
        "peak MB": found["peak_bytes"] / 1e6,
        "peak, share of 3 × weights + 400 MB": found["peak_bytes"] / (3 * weights + 400e6),
        "kernels": found["kernels"],
        "launches": found["launches"],
    }
    return artifact, metrics | {f"ops {stage}": float(count) for stage, count in found["ops"].items()}


# timing ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Times:
    """Where the cycles of an artifact go, beside its bounds."""

    profile: Profile
    whole: Timing
    """Of the plan as it runs, linked if it is."""
    alone: Sequence[Timing]
    """Of each launch by itself."""
    bounds: bounds.Bounds
    seconds: float
    """CPU seconds to time the whole plan."""

    def metrics(self) -> Metrics:
        cycles, machine = self.profile.cycles, self.bounds.machine
        moved = sum(launch.gm_bytes for launch in self.profile.launches)
        found = {
            "kilocycles": cycles / 1e3,
            "A %": self.bounds.a / cycles * 100,
            "B %": self.bounds.b / cycles * 100,
            "cube %": self.bounds.macs / machine.macs / cycles * 100,
            "port %": moved / machine.gm_bytes / cycles * 100,
            "GM bytes / compulsory": moved / self.bounds.compulsory,
            "GM bytes / bytes of A": moved / sum(kernel.gm_bytes for kernel in self.bounds.kernels),
            "launch by launch, kilocycles": sum(timing.cycles for timing in self.alone) / 1e3,
            "instructions": float(self.whole.records),
            "ns/instruction timing": self.seconds / self.whole.records * 1e9,
        }
        worst = Engine(int(self.whole.busy.sum(axis=0).argmax()))
        lost = self.lost(worst)
        return found | {f"busiest engine: {cause} %": share * 100 for cause, share in lost.items()}

    def lost(self, engine: Engine) -> dict[str, float]:
        """How an engine spends the time, as shares of it, the mean of the cores. `work` is what it would need alone on
        the port; `launch` is the start of the sequencer; `idle` what comes after its last entry."""
        whole, cycles = self.whole, self.whole.cycles
        busy, port, token, issue = (
            float(part[:, engine].mean()) / cycles for part in (whole.busy, whole.port, whole.token, whole.issue)
        )
        launch = self.profile.target.launch / cycles
        parts = {"work": busy - port, "port": port, "token": token, "issue": issue, "launch": launch}
        return parts | {"idle": max(0.0, 1 - sum(parts.values()))}


def time_case(case: Case, artifact: Artifact) -> Times:
    """As `time_file`."""
    return time_file(case.file, case.shapes, artifact, case.precision)


def time_file(file: Path, shapes: Mapping[str, Sequence[int]], artifact: Artifact, precision: str) -> Times:
    """Times an artifact's plan and its launches; bounds are those of the model it was made of. Raises `TimingError`,
    `GraphError`."""
    plan, cores = artifact.plans[0], artifact.cores or artifact.target.cores
    machine = bounds.Machine.of(artifact.target, cores, precision)
    alone = time_plan(prepare(artifact, plan), artifact.target, cores)
    (segment,) = segments(artifact, plan, 0)
    prepared, registers = prepare_program(segment.program), launch_registers((), cores)
    runs: list[tuple[float, Timing]] = []
    for _ in range(2):  # the first one loads compiled code
        start = time.process_time()
        runs.append((0.0, time_launch(prepared, registers, artifact.target, cores)))
        runs[-1] = time.process_time() - start, runs[-1][1]
    seconds, whole = min(runs, key=lambda run: run[0])
    graph = onnx_graph.read(file, shapes)
    return Times(profile(artifact, plan), whole, alone, bounds.bounds(graph, machine), seconds)


@dataclass
class Row:
    """The launches of one kernel, against the parts of the partition that they compute."""

    kernel: str
    launches: list[LaunchProfile] = field(default_factory=list[LaunchProfile])
    alone: list[Timing] = field(default_factory=list[Timing])
    roofline: float = 0.0
    limits: dict[str, float] = field(default_factory=dict[str, float])
    """Cycles of the roofline by resource that sets it."""
    gm_bytes: float = 0.0
    """Of the partition."""

    @property
    def cycles(self) -> float:
        """By how much its launches make the plan longer."""
        return sum(launch.cycles for launch in self.launches)

    @property
    def lost(self) -> float:
        return self.cycles - self.roofline

    @property
    def engine(self) -> Engine:
        """The one that is busy most."""
        return Engine(int(sum(launch.busy for launch in self.launches).argmax()))  # type: ignore[union-attr]

    def share(self, part: str, engine: Engine) -> float:
        """Of the launches' time by themselves, what an engine spends: `busy`, `token`, `issue` or `port`."""
        cycles = sum(timing.cycles for timing in self.alone)
        return sum(float(getattr(timing, part)[:, engine].mean()) for timing in self.alone) / cycles


def by_kernel(times: Times) -> tuple[list[Row], float]:
    """A row for each kernel, most cycles lost first, and the roofline that no launch answers for.

    A part of the partition belongs to the launches that name its anchor (if none does, any of its nodes), by cycles."""
    rows: dict[str, Row] = {}
    naming: dict[str, list[int]] = {}
    launches = times.profile.launches
    for number, (launch, timing) in enumerate(zip(launches, times.alone, strict=True)):
        row = rows.setdefault(launch.kernel, Row(launch.kernel))
        row.launches.append(launch)
        row.alone.append(timing)
        for node in launch.nodes:
            naming.setdefault(node, []).append(number)
    left = 0.0
    for kernel in times.bounds.kernels:
        names = [kernel.anchor.name, *(node.name for node in kernel.nodes)]
        answering = next((naming[name] for name in names if name in naming), [])
        if kernel.is_product:  # and not those that only lay out its operands
            answering = [number for number in answering if launches[number].cube_cycles] or answering
        needs = kernel.needs(times.bounds.machine)
        limit = max(needs, key=lambda resource: needs[resource])
        if not answering:
            left += needs[limit]
        whole = sum(launches[number].alone for number in answering)
        for number in answering:
            share = launches[number].alone / whole
            row = rows[launches[number].kernel]
            row.roofline += needs[limit] * share
            row.gm_bytes += kernel.gm_bytes * share
            row.limits[limit] = row.limits.get(limit, 0.0) + needs[limit] * share
    return sorted(rows.values(), key=lambda row: -row.lost), left


# values ---------------------------------------------------------------------------------------------------------------


def values_case(case: Case, artifact: Artifact, repetitions: int) -> Metrics:
    """How far the outputs agree with onnxruntime's, and the emulator's time against that of onnxruntime fp32 on one
    thread, turn by turn."""
    session, inputs = _session(case.file), case.inputs()
    npu = artifact.model
    outputs = npu.run(inputs)
    reference = dict(zip(outputs, session.run(list(outputs), inputs), strict=True))
    found = [agree(name, outputs[name], reference[name]) for name in outputs]
    emulator, ours = [], []
    for _ in range(repetitions):  # turn by turn, so that a busy machine slows both
        ours.append(_seconds(lambda: session.run(None, inputs)))
        emulator.append(_seconds(lambda: npu.run(inputs)))
    ratios = [a / b for a, b in zip(emulator, ours, strict=True)]
    chosen = min(agreement.top1 for agreement in found) * 100
    classes = {"same top-1 %": chosen, "top-1 margin": models.margin(next(iter(reference.values())))}
    return {
        "cosine": min(agreement.cosine for agreement in found),
        "error / largest": max(a.max_abs_error / (a.max_abs_reference or 1) for a in found),
        **(classes if case.model in CLASSIFIERS else {}),
        "emulator/ort median": median(ratios),
        "emulator/ort min": min(ratios),
        "emulator s": min(emulator),
    }


def _session(file: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
