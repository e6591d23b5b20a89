"""A compilation, step by step: `start` imports, `advance` lowers stage by stage, `link` makes the artifact."""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from math import prod
from operator import index
from os import PathLike
from pathlib import Path
from shlex import quote
from typing import Any
from weakref import WeakKeyDictionary

from onnx import ModelProto
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..backend.encode import encode_kernel
from ..backend.plan import build_artifact, names_of
from ..dialects import npu
from ..dialects.graph.constants import NUMPY
from ..dialects.graph.host import HostOp, host_type, is_host
from ..dialects.graph.op import element, shape
from ..dialects.weights import WeightStore
from ..frontend.bound import bind
from ..frontend.model_file import read_model
from ..frontend.onnx import import_onnx
from ..frontend.problems import ImportProblems
from ..frontend.survey import Survey
from ..passes.context import CompileContext
from ..passes.location import node_names
from ..runtime.artifact import Artifact
from ..runtime.cpu import HOST, HostError
from ..runtime.plan import Kernel, Metadata, Tensor
from ..runtime.problem import ArgumentError, Kind
from ..runtime.target import Target
from . import pipeline
from .constants import Constant, option, recorded
from .constants import read as read_constants
from .errors import CommandError
from .passmanager import DEFAULT, Settings, Timing
from .verify import IRError, verify

Shapes = Mapping[str, Sequence[int]]
PRECISIONS = ("fp16", "bf16", "fp32")


class OptionError(CommandError, TypeError):
    """A keyword that neither the function nor a pass takes."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a module comes from, and what belongs to it."""

    ctx: CompileContext
    command: str
    """`stepwell-opt` with the model, its shapes and its target."""
    shapes: Shapes = field(default_factory=dict[str, Sequence[int]])
    name: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of the ONNX file."""
    constants: Mapping[str, Constant] = field(default_factory=dict[str, Constant])
    """Inputs that became constants, with their arrays."""
    left: Mapping[str, str] | None = None
    """Nodes that were left to the CPU, each with a reason, since an attempt found no kernel; None: no attempt may."""
    done: str = "import"
    """The last stage that the module has passed."""


@dataclass
class Compilation:
    """A module on its way down."""

    module: ModuleOp
    origin: Origin
    timings: list[Timing] = field(default_factory=list[Timing])
    ops: dict[str, int] = field(default_factory=dict[str, int])
    """Ops of the module after each stage."""
    ir: dict[str, str] = field(default_factory=dict[str, str])
    """Its text after each stage, if that was asked for."""

    @property
    def ctx(self) -> CompileContext:
        return self.origin.ctx

    @property
    def target(self) -> Target:
        return self.ctx.need_target()


_origins: "WeakKeyDictionary[ModuleOp, Origin]" = WeakKeyDictionary()
"""Of the modules that `remember` handed out."""


def remember(work: Compilation) -> ModuleOp:
    """The module, which can be given to `start` again."""
    _origins[work.module] = work.origin
    return work.module


def origin_of(module: ModuleOp) -> Origin | None:
    """Of a module that `remember` gave."""
    return _origins.get(module)


def start(
    model: str | Path | bytes | ModelProto | ModuleOp,
    *,
    target: str | Path | Target = "edge",
    shapes: Shapes | None = None,
    constants: Mapping[str, Any] | None = None,
    cores: int | None = None,
    weights: str | Path | None = None,
    host: bool = True,
    leave: Mapping[str, str] | None = None,
    survey: Survey | None = None,
) -> Compilation:
    """The model as a module of the graph dialect; a module, or IR text (a path to `.mlir`), where it stands.

    `weights` is the file with the arrays that IR text names; `constants` binds inputs of an ONNX model; without `host`,
    nothing is left to the CPU; the nodes that `leave` names are, each with a reason; with a `survey`, the weights of an
    ONNX model are stand-ins.
    """
    chip = target if isinstance(target, Target) else Target.load(target)
    if not isinstance(model, str | PathLike | bytes | ModelProto | ModuleOp):
        rule = "is the path, the bytes or the ModelProto of an ONNX model, or a module"
        raise ArgumentError.of("model", rule, model, "name the .onnx file")
    model = Path(model) if isinstance(model, PathLike) else model
    if weights is not None and not isinstance(weights, str | PathLike):
        raise ArgumentError.of("weights", "is the path of a .safetensors file", weights, "name the file")
    if cores is not None and not isinstance(cores, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise CommandError(f"cores: must be a whole number (found {cores!r}); convert it")
    if cores is not None and not 1 <= cores <= chip.cores:
        raise CommandError(
            f"cores: must be 1 to {chip.cores}, as {chip.name} has (found {cores}); take fewer, or another target"
        )
    place = chip.name if isinstance(target, Target) else str(target)
    is_ir = isinstance(model, ModuleOp) or (isinstance(model, str | Path) and Path(model).suffix == ".mlir")
    if constants and is_ir:
        rule = f"constants: bind inputs of an ONNX model (found {', '.join(constants)} for IR)"
        raise CommandError(f"{rule}; bind them where the ONNX model is imported")
    if isinstance(model, ModuleOp):
        work = _continued(model, place)
    elif isinstance(model, str | Path) and Path(model).suffix == ".mlir":
        work = _parsed(Path(model), place, weights)
    else:
        if weights is not None:
            raise CommandError(f"weights: are of IR text, an ONNX model has its own (found {weights}); leave them out")
        given = _Given(_whole(shapes or {}), read_constants(constants or {}), host, leave or {}, survey)
        work = _imported(model, given, place)
        _check_inputs(work, chip)
    work.ctx.target = chip
    return work


def _check_inputs(work: Compilation, chip: Target) -> None:
    """Raises `CommandError` for inputs that no tiling brings into the device's memory."""
    inputs = [value for value in main_of(work.module).body.block.args if not is_host(value)]
    found = sum(prod(shape(value)) for value in inputs)  # at least a byte each
    if found > chip.gm_bytes:
        rule = f"{work.origin.name or 'the model'}: must fit the {chip.gm_bytes:,} bytes of {chip.name}'s memory"
        found_text = f"found {found:,} elements of its inputs alone"
        raise CommandError(f"{rule} ({found_text}); take smaller shapes or a larger target", kind=Kind.MEMORY)


def _whole(shapes: Shapes) -> Shapes:
    """The same with Python's integers: numpy's will do as well. Raises `CommandError`."""
    try:
        return {name: [index(size) for size in extents] for name, extents in shapes.items()}
    except (TypeError, AttributeError):
        raise CommandError(
            f'shapes: must be sizes by input, {{"x": [1, 3, 48, 320]}} (found {shapes!r}); write it so'
        ) from None


@dataclass(frozen=True, slots=True)
class _Given:
    """What the user says about an ONNX model."""

    shapes: Shapes
    constants: Mapping[str, Constant]
    host: bool
    leave: Mapping[str, str]
    survey: Survey | None = None

    def arguments(self, folder: Path | None) -> dict[str, Any]:
        """For `import_onnx`."""
        constants = {name: constant.value for name, constant in self.constants.items()}
        given = {"shapes": self.shapes, "constants": constants, "host": self.host, "leave": self.leave}
        return {**given, "folder": folder, "survey": self.survey}

    def options(self) -> list[str]:
        """The same on the command line."""
        sizes = [f"--shape {quote(name + '=' + ','.join(map(str, extents)))}" for name, extents in self.shapes.items()]
        bound = [option(name, constant.text) for name, constant in self.constants.items()]
        return [*sizes, *bound, *([] if self.host else ["--no-host"])]


def _imported(model: str | Path | bytes | ModelProto, given: "_Given", target: str) -> Compilation:
    ctx = CompileContext()
    source = Path(model) if isinstance(model, str) else model
    proto, folder = read_model(source, mapped=True)
    arguments = given.arguments(folder)
    try:
        module, weights = import_onnx(proto, **arguments)
    except ImportProblems as error:
        raise error if given.host else _all_problems(error, proto, arguments) from None
    ctx.weights.update(weights)
    file = str(source) if isinstance(source, Path) else "MODEL.onnx"
    command = " ".join(["stepwell-opt", quote(file), *given.options(), "--target", quote(target)])
    name = source.stem if isinstance(source, Path) else proto.graph.name
    arrays, _ = bind(proto.graph, arguments["constants"], given.shapes)
    kept = {name: Constant(array, given.constants[name].text) for name, array in arrays.items()}
    notes = {entry.key: entry.value for entry in proto.metadata_props}
    left = given.leave if given.host else None
    return Compilation(module, Origin(ctx, command, given.shapes, name, notes, kept, left))


def _all_problems(error: ImportProblems, proto: ModelProto, arguments: Mapping[str, Any]) -> ImportProblems:
    """The problems of a model without the CPU; with it, an import also sees what hangs on the nodes that have one."""
    try:
        everything: dict[str, Any] = {**arguments, "host": True, "survey": arguments["survey"] and Survey()}
        module, _ = import_onnx(proto, **everything)
    except ImportProblems:
        return error
    nodes = [node for op in module.walk() if isinstance(op, HostOp) for node in op.host_nodes()]
    known = {problem.partition(":")[0] for problem in error.problems}
    more = [
        f"{node.name}: {_found(node.reason)}; leave out --no-host"
        for node in nodes
        if node.name not in known and not any(f"{name}: " in node.reason for name in known)  # or follows from one told
    ]
    return ImportProblems([*error.problems, *more])


def _found(reason: str) -> str:
    """A reason in the form of an error."""
    return reason if "(found " in reason else f"the device must run every node (found {reason})"


def _parsed(source: Path, target: str, weights: str | Path | None) -> Compilation:
    """IR text. Raises `CommandError` for a rule that it breaks, and xDSL's `ParseError`."""
    from .opt import LocatingParser, register_dialects

    ctx = CompileContext()
    register_dialects(ctx)
    command = f"stepwell-opt {quote(str(source))} --target {quote(target)}"
    if weights is not None:
        ctx.weights.update(WeightStore.load(weights))
        command += f" --weights {quote(str(weights))}"
    try:
        module = LocatingParser(ctx, source.read_text(encoding="utf-8"), str(source), 0).parse_module()
    except UnicodeDecodeError as error:
        raise CommandError(f"{source}: must be IR as UTF-8 text (found {error}); name an .mlir file") from None
    except RecursionError:
        raise CommandError(
            f"{source}: is nested so that it can be read (found too deep a nesting); check the braces", kind=Kind.IR
        ) from None
    try:
        verify(module)
    except IRError as error:
        raise CommandError(*error.problems) from None
    return Compilation(module, Origin(ctx, command, name=source.stem, done=level_of(module, "import")))


def _continued(module: ModuleOp, target: str) -> Compilation:
    command = f"stepwell-opt MODULE.mlir --target {quote(target)}"
    known = origin_of(module) or Origin(CompileContext(), command)
    return Compilation(module, replace(known, command=command, done=level_of(module, known.done)))


def main_of(module: ModuleOp) -> FuncOp:
    """The function `@main` of a module. Raises `CommandError`."""
    if (main := functions_of(module).get("main")) is not None:
        return main
    raise CommandError("module: must have a function @main (found none); see docs/program.md")


def functions_of(module: ModuleOp) -> dict[str, FuncOp]:
    """All functions of a module."""
    return {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}


def inputs_of(work: Compilation) -> list[Tensor]:
    """The inputs of an imported model, with the types that callers pass."""
    main = main_of(work.module)
    names, _ = names_of(main)
    return [
        Tensor(name, HOST, host_type(value).shape or (), "input", 0, str(host_type(value)))
        if is_host(value)
        else Tensor(name, "", shape(value), "input", 0, str(NUMPY[element(value)]))
        for name, value in zip(names, main.body.block.args, strict=True)
    ]


def level_of(module: ModuleOp, otherwise: str) -> str:
    """The last stage that a module has passed, by the dialects in it."""
    names = {op.name for op in module.walk()}
    dialects = {name.partition(".")[0] for name in names}
    if "npu" in dialects or "tile" in dialects:
        return "npu" if "npu" in dialects else "tile"
    return "graph" if "graph.launch" in names else otherwise


def options_of(
    precision: str, cores: int | None, options: Mapping[str, Any], own: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Options of passes, checked; `own` are the other keywords that a caller takes. Raises `CommandError`."""
    if precision not in PRECISIONS:
        raise CommandError(f"precision: must be one of {', '.join(PRECISIONS)} (found {precision!r}); take one of them")
    known = {name for stage in pipeline.STAGES for name in _options_known(stage)}
    if unknown := sorted(set(options) - known):
        raise OptionError(*(_unknown_option(name, sorted(own or ()), sorted(known)) for name in unknown))
    return {"policy": precision, "cores": cores or 0, **options}


def _unknown_option(name: str, own: Collection[str], of_passes: Collection[str]) -> str:
    """What is wrong with a keyword that nothing takes, and what may be meant."""
    near = get_close_matches(name, [*own, *of_passes], n=1)
    meant = f"did you mean {near[0]}? it" if near else "it"
    rule = f"{name}: is a keyword of the function, or an option of a pass (found none of this name)"
    return f"{rule}; {meant} has {', '.join(own)}; passes have {', '.join(of_passes)}"


def _options_known(stage: pipeline.Stage) -> set[str]:
    classes = [pipeline.load_pass(name, stage.folder) for name, _ in stage.steps]
    return {name for cls in classes for name in cls.__dataclass_fields__}


def compiled_to(
    to: str,
    model: str | Path | bytes | ModelProto | ModuleOp,
    options: Mapping[str, Any],
    settings: Settings | None = None,
    on_stage: Callable[[str], None] | None = None,
    keep_ir: bool = False,
    *,
    host: bool = True,
    **source: Any,
) -> Compilation:
    """`start` and `advance`; what the target has no kernel for goes to the CPU as well, in a new attempt."""
    leave: Mapping[str, str] = {}
    while True:
        work = start(model, host=host, leave=leave, **source)
        try:
            advance(work, to, options, settings, on_stage, keep_ir)
            return work
        except pipeline.PipelineError as error:
            leave = more_to_leave(work, error)


def more_to_leave(work: Compilation, error: pipeline.PipelineError) -> Mapping[str, str]:
    """What a new attempt leaves to the CPU: what this one did, and the nodes that it found no kernel for.

    Raises the error itself if there are none, or the CPU may not help.
    """
    refused: Mapping[str, str] = getattr(error.__cause__, "refused", {})
    if work.origin.left is None or not refused.keys() - work.origin.left.keys():
        raise error
    return {**work.origin.left, **refused}


@contextmanager
def on_the_cpu() -> Generator[None]:
    """Raises `CommandError` for what onnxruntime refuses at run time."""
    try:
        yield
    except HostError as error:
        line = "; ".join((str(error), "give other inputs"))
        raise CommandError(line) from None


def advance(
    work: Compilation,
    to: str,
    options: Mapping[str, Any],
    settings: Settings | None = None,
    on_stage: Callable[[str], None] | None = None,
    keep_ir: bool = False,
) -> None:
    """Takes a module through the stages that it has not passed, up to `to`, in place."""
    names = ["import", *(stage.name for stage in pipeline.STAGES)]
    if names.index(work.origin.done) > names.index(to):
        raise CommandError(f"module: is past {to} already (found {work.origin.done}); lower the model itself")
    passed: list[pipeline.Stage] = []
    for stage in pipeline.STAGES[names.index(work.origin.done) : names.index(to)]:
        if on_stage is not None:
            on_stage(stage.name)
        command = _command(work.origin.command, passed, options)
        used = replace(settings or DEFAULT, command=command)
        work.timings += pipeline.run_stage(work.ctx, work.module, stage, options, used)
        work.origin = replace(work.origin, done=stage.name)
        passed.append(stage)
        work.ops[stage.name] = sum(1 for _ in work.module.walk())
        if keep_ir:
            work.ir[stage.name] = str(work.module)


def _command(command: str, passed: Sequence[pipeline.Stage], options: Mapping[str, Any]) -> str:
    """The command that makes the module as it stands, for the line that reproduces a failure."""
    if not passed:
        return command
    stages: list[str] = []
    for stage in passed:
        known = sorted(_options_known(stage) & options.keys())
        values = " ".join(f"{key}={options[key]}" for key in known)
        stages.append(f"stage-{stage.name}" + (f"{{{values}}}" if values else ""))
    target = command[command.index(" --target ") :]
    made = f"{command} -p {quote(','.join(stages))} --weights-out before.safetensors -o before.mlir"
    return f"{made} && stepwell-opt before.mlir --weights before.safetensors{target}"


def link(work: Compilation, options: Mapping[str, str], cores: int | None, linked: bool = True) -> Artifact:
    """The artifact of a module of the npu dialect. Raises `CommandError` for one without `@main`."""
    main_of(work.module)
    compiled = [encode_kernel(op) for op in work.module.ops if isinstance(op, npu.KernelOp)]
    slots = {kernel.name: [tuple(node_names(place)) for place in kernel.slot_locations] for kernel in compiled}
    origin = work.origin
    artifact = build_artifact(
        work.module,
        [Kernel(kernel.name, kernel.program, **kernel.numbers) for kernel in compiled],
        slots,
        work.ctx.weights,
        work.target,
        cores or work.target.cores,
        _binding(origin.shapes),
        Metadata(origin.name, {**options, **recorded(origin.constants)}, origin.metadata),
        linked,
    )
    if artifact.nbytes > work.target.gm_bytes:
        found = f"found {artifact.nbytes:,} for its weights and values"
        rule = (
            f"{origin.name or 'the model'}: must fit the {work.target.gm_bytes:,} bytes of {work.target.name}'s memory"
        )
        raise CommandError(f"{rule} ({found}); take smaller shapes or a larger target", kind=Kind.MEMORY)
    return replace(artifact, debug=work.ir)


def _binding(shapes: Shapes) -> dict[str, int]:
    """The sizes that were chosen for a plan: `x[0]`: 1."""
    return {f"{name}[{axis}]": int(size) for name, extents in shapes.items() for axis, size in enumerate(extents)}
