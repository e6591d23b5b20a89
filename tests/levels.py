"""Runs one program file at every level: as graph, fused graph, tile IR and npu program; all must give the same bits.

A program is a small graph module with a directive in a comment, whose parts are all optional:

    // RUN-LEVELS: seed=3; targets=tiny; precision=fp16,fp32; tolerance=4; %x=uniform(0.1, 9); %y=special

`targets` names those it is for, if not for all. `precision=fp32` (the default) leaves every edge as it is written. An
argument that is not named gets normal values (of integers: small ones); `special` is NaN, infinities, zeros and the
like. `graph.weight "5eed…"` names an array that nobody has: it gets seeded values of its type. `tolerance` multiplies
what the operators state (`TOLERANCE`). `fails=text` pins what is not supported yet: compilation ends with an error that
holds the text.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from chips import chip
from numpy.typing import NDArray
from xdsl.dialects.builtin import Builtin, ModuleOp, StringAttr
from xdsl.dialects.func import Func, FuncOp
from xdsl.ir import SSAValue

from stepwell.backend.errors import BackendError
from stepwell.dialects import tile
from stepwell.dialects.evaluate import entry, evaluate, reference
from stepwell.dialects.evaluate_tile import prepare
from stepwell.dialects.graph import Graph
from stepwell.dialects.graph.constants import NUMPY, WeightOp
from stepwell.dialects.graph.contract import Conv2DOp, Depthwise2DOp, GroupConv2DOp, MatMulOp
from stepwell.dialects.graph.gather import GatherElementsOp, GatherOp
from stepwell.dialects.graph.op import GraphOp, dtype_name, element, shape
from stepwell.dialects.graph.packed import PackedMatMulOp
from stepwell.dialects.graph.pool import Window2DOp
from stepwell.dialects.graph.properties import ints
from stepwell.dialects.graph.structure import LaunchOp
from stepwell.dialects.graph.views import PadOp, SliceOp
from stepwell.dialects.weights import WeightStore
from stepwell.driver.check import check_artifact
from stepwell.driver.compilation import Compilation, Origin, advance, link, options_of
from stepwell.driver.opt import LocatingParser
from stepwell.driver.passmanager import PipelineError, Settings
from stepwell.driver.verify import verify
from stepwell.passes.context import CompileContext
from stepwell.runtime.target import Target

Array = NDArray[Any]
QUICK: Mapping[str, Sequence[int]] = {"tiny": (1, 2), "edge": (1, 2), "odd": (3,)}
"""Targets, and the numbers of cores on each, that show most of what may go wrong."""
SEEDS = (None, 1, 2)
"""Interleavings of the npu level: program order, and two at random."""
TOLERANCE = {"f16": 1e-3, "bf16": 8e-3, "f32": 4e-6}
"""Error of one operator over its largest result; that of a program is this times its operators."""
MAGNITUDES = (math.inf, 0.0, 1.0, 2.5, 6e-8, 60000.0, 88.0)
SPECIAL = (math.nan, *MAGNITUDES, *(-value for value in MAGNITUDES))
_DIRECTIVE = re.compile(r"^// RUN-LEVELS:(.*)$", re.MULTILINE)
_UNIFORM = re.compile(r"uniform\((.*),(.*)\)")


class DepartureError(AssertionError):
    """A level does not hold what it must: `<file>: <level>: <what was found>`."""


@dataclass(frozen=True)
class Directive:
    """How to run a program; see the module."""

    seed: int = 0
    targets: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ("fp32",)
    tolerance: float = 1.0
    fails: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict[str, str])

    @staticmethod
    def parse(text: str) -> "Directive":
        """The parts of a directive. Raises `ValueError` for an unknown one."""
        found: dict[str, Any] = {}
        inputs: dict[str, str] = {}
        for part in filter(None, (part.strip() for part in text.split(";"))):
            name, _, value = (word.strip() for word in part.partition("="))
            if name.startswith("%"):
                inputs[name[1:]] = value
            elif name in _PARTS:
                key, read = _PARTS[name]
                found[key] = read(value)
            else:
                raise ValueError(f"RUN-LEVELS: no part {name}; there are {', '.join(_PARTS)}, %ARGUMENT")
        return Directive(inputs=inputs, **found)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


_PARTS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "seed": ("seed", int),
    "targets": ("targets", _names),
    "precision": ("precisions", _names),
    "tolerance": ("tolerance", float),
    "fails": ("fails", str),
}


@dataclass(frozen=True)
class Program:
    """A file and its directive."""

    name: str
    text: str
    directive: Directive

    @staticmethod
    def read(path: Path) -> "Program":
        """The program of a file that has one directive."""
        text = path.read_text(encoding="utf-8")
        directives = _DIRECTIVE.findall(text)
        if len(directives) != 1:
            raise ValueError(f"{path.name}: one line // RUN-LEVELS: … (found {len(directives)})")
        return Program(path.name, text, Directive.parse(directives[0]))

    def start(self) -> Compilation:
        """The module, parsed and verified, with its weights."""
        ctx = CompileContext()
        for dialect in (Builtin, Func, Graph):
            ctx.load_dialect(dialect)
        module = LocatingParser(ctx, self.text, self.name, 0).parse_module()
        verify(module)
        _seed_weights(module, ctx.weights, self.directive.seed)
        return Compilation(module, Origin(ctx, f"stepwell-opt {self.name} --target tiny", name=self.name))

    def inputs(self, main: FuncOp) -> list[Array]:
        """An array for each argument."""
        found: list[Array] = []
        for number, argument in enumerate(main.body.block.args):
            random = np.random.default_rng([self.directive.seed, number])
            kind = self.directive.inputs.get(argument.name_hint or "", "")
            found.append(random_array(random, argument, kind))
        return found


def _seed_weights(module: ModuleOp, store: WeightStore, seed: int) -> None:
    for op in module.walk():
        if isinstance(op, WeightOp):
            random = np.random.default_rng([seed, int(op.handle.data[-8:], 16)])
            packed = any(isinstance(use.operation, PackedMatMulOp) and use.index == 1 for use in op.result.uses)
            kind = "uniform(0, 256)" if packed else ""
            op.properties["handle"] = StringAttr(store.add(random_array(random, op.result, kind)))


def random_array(random: np.random.Generator, value: SSAValue, kind: str) -> Array:
    """Values of a tensor's type: normal ones, or of the `kind` that a directive names."""
    size, dtype = shape(value), NUMPY[element(value)]
    if (bounds := _UNIFORM.fullmatch(kind)) is not None:
        array = random.uniform(float(bounds[1]), float(bounds[2]), size)
    elif kind == "special":
        array = random.permutation(np.resize(np.array(SPECIAL), math.prod(size))).reshape(size)
    elif dtype == np.bool_:
        array = random.integers(0, 2, size)
    elif dtype.kind in "iu":
        array = random.integers(0 if dtype.kind == "u" else -9, 10, size)
    else:
        array = random.standard_normal(size)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(array).astype(dtype)


# levels ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """A program on its way down in one precision: what it was given, and what every level must give."""

    program: Program
    inputs: Sequence[Array]
    expected: Sequence[Array]

    def demand(self, level: str, found: Sequence[Array]) -> None:
        """Equal bits. Raises `DepartureError`."""
        for number, (array, wanted) in enumerate(zip(found, self.expected, strict=True)):
            if (problem := difference(array, wanted)) is not None:
                self.fail(level, f"result {number} departs: {problem}")

    def fail(self, level: str, problem: str) -> None:
        """Raises `DepartureError`."""
        raise DepartureError(f"{self.program.name}: {level}: {problem}")


def difference(found: Array, expected: Array) -> str | None:
    """Where two arrays differ in a bit, and by how much at most; None if they do not."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"{found.dtype}{list(found.shape)}, expected {expected.dtype}{list(expected.shape)}"
    kind = np.dtype(f"u{expected.dtype.itemsize}")
    bits = [np.ascontiguousarray(array).reshape(-1).view(kind) for array in (found, expected)]
    places = np.flatnonzero(bits[0] != bits[1])
    if not len(places):
        return None
    a, b = (array.astype(np.float64).reshape(-1)[places] for array in (found, expected))
    with np.errstate(invalid="ignore"):
        largest = np.nanmax(np.append(np.abs(a - b), 0))
    first = tuple(int(index) for index in np.unravel_index(places[0], found.shape))
    return (
        f"{len(places)} of {found.size} values, max difference {largest:.3g}; "
        f"the first at {list(first)}: {a[0]:.9g}, expected {b[0]:.9g}"
    )


def run_program(program: Program, machines: Mapping[str, Sequence[int]] = QUICK) -> None:
    """Every level and precision, on targets with so many cores. Raises `DepartureError` for the first that departs."""
    if not program.directive.fails:
        run_levels(program, machines)
        return
    try:
        run_levels(program, machines)
    except (PipelineError, BackendError) as error:
        if program.directive.fails in str(error):
            return
        raise
    raise DepartureError(f"{program.name}: compiles now; remove fails={program.directive.fails}")


def run_levels(program: Program, machines: Mapping[str, Sequence[int]]) -> None:
    """A program that compiles."""
    named = program.directive.targets or tuple(machines)
    for precision in program.directive.precisions:
        run, work = run_graph(program, precision)
        for name in (name for name in machines if name in named):
            for cores in machines[name]:
                run_target(run, work, name, cores, precision)


def run_graph(program: Program, precision: str) -> tuple[Run, Compilation]:
    """The graph level: the exact reference, then the module after `precision` and after each pass behind it."""
    work = program.start()
    inputs = program.inputs(entry(work.module))
    exact = reference(work.module, inputs, work.ctx.weights)
    operators = sum(1 for op in work.module.walk() if isinstance(op, GraphOp))
    runs: list[Run] = []

    def after(this: Any, module: ModuleOp) -> None:
        if this.name == "precision" or runs:
            found = evaluate(module, inputs, work.ctx.weights)
            runs[:] = runs or [Run(program, inputs, found)]
            runs[0].demand(f"graph after {this.name} ({precision})", found)

    advance(work, "graph", options_of(precision, None, {}), Settings(verify="each", after=after))
    (run,) = runs
    for number, (found, wanted) in enumerate(zip(run.expected, exact, strict=True)):
        allowed = _tolerance(work.module, number, precision) * operators * program.directive.tolerance
        if (problem := error_beyond(found, wanted, allowed)) is not None:
            run.fail(f"graph ({precision})", f"result {number} departs from the reference: {problem}")
    return run, work


def _tolerance(module: ModuleOp, number: int, precision: str) -> float:
    name = dtype_name(entry(module).body.block.last_op.operands[number])  # pyright: ignore[reportOptionalMemberAccess]
    if name not in TOLERANCE:
        return 0.0
    return max(TOLERANCE[name], {"fp16": TOLERANCE["f16"], "bf16": TOLERANCE["bf16"]}.get(precision, 0.0))


def error_beyond(found: Array, exact: Array, allowed: float) -> str | None:
    """What is wrong if an array is farther from the exact one than `allowed` times the largest value."""
    if found.dtype.kind in "iu":
        exact = exact.astype(found.dtype)  # docs/numerics.md: exact, then modulo 2ⁿ
    a, b = found.astype(np.float64), exact.astype(np.float64)
    if found.dtype.kind == "f" or found.dtype.itemsize == 2:
        largest = float(np.finfo(np.float16).max) if found.dtype == np.float16 else float(np.finfo(np.float32).max)
        b = np.where(np.abs(b) > largest, np.copysign(np.inf, b), b)
    finite = np.isfinite(b)
    wrong = np.flatnonzero(~(finite | (a == b) | (np.isnan(a) & np.isnan(b))) | (finite & ~np.isfinite(a)))
    if len(wrong):
        return f"NaN or infinity differ, such as value {wrong[0]}: {a.flat[wrong[0]]}, expected {b.flat[wrong[0]]}"
    scale = max(1e-3, float(np.abs(b[finite]).max(initial=0)))
    error = float(np.abs(a[finite] - b[finite]).max(initial=0))
    return None if error <= allowed * scale else f"max error {error:.3g} of {scale:.3g}, {allowed * scale:.3g} allowed"


def run_target(run: Run, graph: Compilation, name: str, cores: int, precision: str) -> None:
    """Tile and npu levels of a module of fused kernels, which stays as it is."""
    where = f"({name}, {cores} {'core' if cores == 1 else 'cores'}, {precision})"
    module = graph.module.clone()
    work = Compilation(module, graph.origin)
    work.ctx.target = chip(name, max(cores, 2))
    bounds = [lower_bound(module, op, work.ctx.target, cores) for op in launches_of(module)]
    options = options_of(precision, cores, {})
    advance(work, "tile", options)
    run.demand(f"tile {where}", evaluate_tiles(module, run.inputs, work.ctx.weights, cores))
    advance(work, "npu", options)
    artifact = link(work, {}, cores)
    inputs = {tensor.name: array for tensor, array in zip(artifact.model.inputs, run.inputs, strict=True)}
    for seed in SEEDS:
        outputs = artifact.model.run(inputs, seed=seed)
        order = "program order" if seed is None else f"interleaving {seed}"
        found = [outputs[tensor.name] for tensor in artifact.model.outputs]
        run.demand(f"npu in {order} {where}", found)
    report = check_artifact(artifact)
    if not report.clean:
        run.fail(f"checker {where}", str(report))
    profile = artifact.model.profile()
    for launch, bound in zip(profile.launches, bounds, strict=True):
        if launch.alone < bound.cycles:
            run.fail(f"timing {where}", f"launch {launch.number}: {launch.alone:g} cycles, {bound.cycles:g} at least")
    if profile.cycles < (least := Bound.of_all(bounds).cycles):
        run.fail(f"timing {where}", f"all launches: {profile.cycles:g} cycles, {least:g} at least")


def launches_of(module: ModuleOp) -> list[LaunchOp]:
    """The launches of `@main`, in order."""
    return [op for op in entry(module).body.block.ops if isinstance(op, LaunchOp)]


def evaluate_tiles(module: ModuleOp, inputs: Sequence[Array], weights: WeightStore, cores: int) -> list[Array]:
    """The results of a module of the tile level; what a kernel does not write is NaN (integers: −1)."""
    kernels = {op.sym_name.data: prepare(op) for op in module.ops if isinstance(op, tile.KernelOp)}

    def launch(op: LaunchOp, operands: Sequence[Array]) -> list[Array]:
        results = [np.zeros(shape(value), NUMPY[element(value)]) for value in op.results]
        for array in results:
            array.reshape(-1).view(np.uint8)[:] = 0xFF
        given = [np.array(operand, order="C") for operand in operands]
        kernels[op.callee].run([*given, *results], cores)
        return results

    return evaluate(module, inputs, weights, launch=launch)


# time -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bound:
    """Cycles that are needed at least: for bytes at the memory port, for multiplications at the cubes' peak."""

    port: float
    cube: float

    @property
    def cycles(self) -> float:
        return max(self.port, self.cube)

    @staticmethod
    def of_all(bounds: Sequence["Bound"]) -> "Bound":
        """Of launches that may overlap."""
        return Bound(sum(bound.port for bound in bounds), sum(bound.cube for bound in bounds))


def lower_bound(module: ModuleOp, launch: LaunchOp, target: Target, cores: int) -> Bound:
    """What a launch needs at least."""
    kernel = next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == launch.callee)
    ops = [op for op in kernel.body.block.ops if isinstance(op, GraphOp)]
    moved = list(launch.results) + [
        operand for operand, inside in zip(launch.operands, kernel.body.block.args, strict=True) if _is_read(inside)
    ]
    nbytes = sum(math.prod(shape(value)) * NUMPY[element(value)].itemsize for value in dict.fromkeys(moved))
    return Bound(nbytes / target.gm_port, sum(_cube_cycles(op, target) for op in ops) / cores)


def _is_read(argument: SSAValue) -> bool:
    """Whether every byte of a kernel's operand is needed."""
    return not any(isinstance(use.operation, _PARTIAL) for use in argument.uses)


_PARTIAL = (SliceOp, PadOp, GatherOp, GatherElementsOp, Conv2DOp, Depthwise2DOp, GroupConv2DOp, Window2DOp)
"""Operators that may leave bytes of an operand unread."""


def _cube_cycles(op: GraphOp, target: Target) -> float:
    """Cycles of one cube that is never idle."""
    macs = math.prod(shape(op.results[0])) * _depth(op)
    kind = dtype_name(op.operands[0])
    cost = target.cube_cost_f32 if kind == "f32" else 1
    k = {"f32": target.cube_k_f32, "i8": target.cube_k_i8, "u8": target.cube_k_i8}.get(kind, target.cube_k_f16)
    return macs * cost / (target.cube_m * target.cube_n * k)


def _depth(op: GraphOp) -> int:
    """Products that one element of the result is the sum of."""
    if isinstance(op, MatMulOp | PackedMatMulOp):
        return shape(op.a)[-1]
    if isinstance(op, Conv2DOp):
        return math.prod(ints(op.properties, "kernel")) * shape(op.x)[3]
    return 0


def programs(folder: Path) -> Iterator[Path]:
    """The files of a folder that hold a directive."""
    return (path for path in sorted(folder.glob("*.mlir")) if "// RUN-LEVELS:" in path.read_text(encoding="utf-8"))
