"""`stepwell-opt`: reads IR or a model, runs passes, prints IR.

    stepwell-opt kernel.mlir -p fold,cse
    stepwell-opt model.onnx --shape x=1,3,48,320 -p 'stage-graph{policy=fp32}' --dump-dir dump
    stepwell-opt model.onnx --target edge -p stage-graph,stage-tile --time-passes

It is xDSL's driver with Stepwell's dialects and passes, a short list of upstream ones, and errors of one line.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from io import StringIO
from pathlib import Path
from shlex import quote
from typing import IO, TYPE_CHECKING, Any, ClassVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Dialect
from xdsl.parser import Parser
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, UnregisteredConstructException
from xdsl.xdsl_opt_main import xDSLOptMain

from ..runtime.problem import Kind, Problem, UserError
from . import pipeline
from .errors import problems_of
from .passmanager import PipelineError, Settings, describe, run
from .verify import IRError, verify

if TYPE_CHECKING:
    from ..dialects.weights import WeightStore
    from ..passes.context import CompileContext

OWN_DIALECTS = {"graph": "graph:Graph", "tile": "tile:Tile", "npu": "npu:Npu"}
UPSTREAM_DIALECTS = {
    "builtin": "builtin:Builtin",
    "func": "func:Func",
    "arith": "arith:Arith",
    "scf": "scf:Scf",
    "affine": "affine:Affine",
    "memref": "memref:MemRef",
    "tensor": "tensor:Tensor",
}
"""Nothing else of xDSL's seventy dialects is known: a stray op is an error, not a surprise three passes later."""

UPSTREAM_PASSES = {
    "canonicalize": "canonicalize:CanonicalizePass",
    "cse": "common_subexpression_elimination:CommonSubexpressionElimination",
    "dce": "dead_code_elimination:DeadCodeElimination",
    "loop-invariant-code-motion": "loop_invariant_code_motion:LoopInvariantCodeMotionPass",
}
STAGE_PREFIX = "stage-"


class UsageError(UserError, ValueError):
    """The command line is wrong; one line says what, and what is possible."""

    KIND: ClassVar[Kind] = Kind.COMMAND


def _load(place: str, package: str, anchor: str | None = None) -> Any:
    """The object `module:Name` in a package, imported now."""
    module, name = place.split(":")
    return getattr(import_module(f"{package}.{module}", anchor), name)


def own_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Every pass of the pipeline by name, imported when it is asked for."""
    return {
        name: lambda name=name, folder=stage.folder: pipeline.load_pass(name, folder)
        for stage in pipeline.STAGES
        for name, _ in stage.steps
    }


def available_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Own and upstream passes by name."""
    upstream = {name: lambda place=place: _load(place, "xdsl.transforms") for name, place in UPSTREAM_PASSES.items()}
    return own_passes() | upstream


def parse_passes(text: str) -> list[ModulePass]:
    """The passes of a pipeline text; `stage-NAME` stands for a stage. Raises `UsageError`."""
    try:
        specs = list(parse_pipeline(text))
    except ArgSpecParseError as error:
        lines = str(error).splitlines()
        raise UsageError(
            f"-p: is a list of passes (found {text!r}: {lines[-1].strip(' ^')}); write pass,pass{{option=value}}"
        ) from None
    known = available_passes()
    passes: list[ModulePass] = []
    for spec in specs:
        if spec.name.startswith(STAGE_PREFIX):
            passes += _stage(spec)
        elif spec.name in known:
            passes.append(_configure(known[spec.name](), spec))
        else:
            raise UsageError(_unknown(spec.name, [*known, *(STAGE_PREFIX + s.name for s in pipeline.STAGES)]))
    return passes


def _stage(spec: ArgSpec) -> list[ModulePass]:
    this = pipeline.stage(spec.name.removeprefix(STAGE_PREFIX))
    options = {
        key: values[0] if len(values) == 1 else values
        for key, values in spec.normalize_parameter_names().parameters.items()
    }
    return pipeline.stage_passes(this, options)


def _configure(cls: type[ModulePass], spec: ArgSpec) -> ModulePass:
    try:
        return cls.from_spec(spec)
    except ValueError as error:
        from xdsl.passes import get_pass_option_infos

        options = [
            f"{o.name.replace('_', '-')} ({o.expected_type}, default {o.default_value})"
            for o in get_pass_option_infos(cls)
        ]
        raise UsageError(
            f"{spec.name}: takes its own options (found {error}); options: {', '.join(options) or 'none'}"
        ) from None


def _unknown(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(known))}"
    return f"{name}: is a pass (found none of this name); {hint}"


class OptMain(xDSLOptMain):
    """The driver; see the module."""

    ctx: "CompileContext"  # pyright: ignore[reportIncompatibleVariableOverride]

    def register_all_dialects(self) -> None:
        """The first hook of xDSL's driver: here the context becomes our own."""
        from ..passes.context import CompileContext

        self.ctx = CompileContext()
        register_dialects(self.ctx)

    def register_all_passes(self) -> None:
        """Passes are looked up by `parse_passes`."""

    def register_all_frontends(self) -> None:
        """Inputs are read by `parse_chunk`; the table is what xDSL's driver checks extensions against."""
        self.available_frontends = {"mlir": _unused, "onnx": _unused}

    def register_all_targets(self) -> None:
        """IR text is the one output."""
        self.available_targets = {"mlir": _unused}

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        """Own arguments; xDSL's that make no sense here keep their defaults."""
        add = arg_parser.add_argument
        add("input_file", nargs="?", help="an .mlir or .onnx file (default: IR from standard input)")
        add(
            "-p",
            "--passes",
            default="",
            metavar="PIPELINE",
            help="pass,pass{option=value},stage-graph …; see --list-passes",
        )
        add("-o", "--output-file", metavar="FILE", help="write the IR here")
        add("--target", dest="chip", metavar="NAME", help="a shipped target or a .toml file")
        add("--shape", action="append", default=[], metavar="INPUT=D0,D1,…", help="the shape of a model's input")
        add("--no-host", dest="host", action="store_false", help="refuse what the device does not run")
        add("--const", action="append", default=[], metavar="INPUT=VALUE", help="bind a model's input to a constant")
        add("--weights", metavar="FILE", help="a .safetensors file with the weights of an .mlir input")
        add("--weights-out", metavar="FILE", help="write the weights that the result uses here")
        add("--notes", action="store_true", help="print what almost matched, and why not, to standard error")
        add("--list-passes", action="store_true", help="list passes and stages")
        add("--verify-each", action="store_true", help="check the IR after every pass")
        add("--dump-dir", type=Path, metavar="DIR", help="write the IR after every pass here")
        add("--crash-dir", type=Path, metavar="DIR", help="write the input of a pass that fails here")
        add("--stop-after", metavar="PASS", help="the last pass to run")
        add("--time-passes", action="store_true", help="print CPU time and ops of each pass to standard error")
        add("--split-input-file", action="store_true", help="process the parts between // ----- lines one by one")
        add(
            "--verify-diagnostics",
            action="store_true",
            help="print errors to standard output and go on with exit code 0",
        )
        add("--print-op-generic", action="store_true", help="print ops in the generic form")
        add("--print-debuginfo", action="store_true", help="print locations")
        add("--disable-verify", action="store_true", help="do not check the input")
        unused = {"frontend": None, "allow_unregistered_dialect": False, "syntax_highlight": False, "shrink": False}
        arg_parser.set_defaults(target="mlir", parsing_diagnostics=False, no_implicit_module=False, **unused)

    def setup_pipeline(self) -> None:
        """Reads the pipeline and the files that passes need, before any input is read."""
        if self.args.list_passes:
            return
        file = self.args.input_file
        if file is not None and Path(file).is_dir():
            raise UsageError(f"{file}: is a file (found a folder); name an .mlir or .onnx file")
        if file is not None and Path(file).suffix not in (".mlir", ".onnx"):
            raise UsageError(f"{file}: must be .mlir or .onnx (found {Path(file).suffix or 'no suffix'}); rename it")
        self.passes = parse_passes(self.args.passes)
        if self.args.chip:
            from ..runtime.target import Target

            self.ctx.target = Target.load(self.args.chip)
        if self.args.weights:
            from ..dialects.weights import WeightStore

            self.ctx.weights.update(WeightStore.load(Path(self.args.weights)))

    def run(self) -> None:
        """Lists passes, or processes the input."""
        if self.args.list_passes:
            print(list_passes())
            return
        super().run()
        if self.args.output_file is not None:
            Path(self.args.output_file).write_text(self._output.getvalue(), encoding="utf-8")
        if self.args.notes:
            print(*self.ctx.notes, sep="\n", file=sys.stderr)

    def prepare_output(self) -> IO[str]:
        """A file is written when all went well: it may be the input, and may hold something."""
        if self.args.output_file is None:
            return sys.stdout
        self._output = _Kept()
        return self._output

    def parse_chunk(self, chunk: IO[bytes], file_extension: str, start_offset: int = 0) -> ModuleOp | None:
        """The module of a part of the input, checked."""
        if file_extension == "onnx":
            return self._import_model()
        module = LocatingParser(self.ctx, chunk.read().decode(), self.get_input_name(), start_offset).parse_module(True)
        if not self.args.disable_verify:
            self._diagnose(lambda: verify(module))
        return module

    def _import_model(self) -> ModuleOp:
        from ..frontend.onnx import import_onnx
        from .constants import given, read

        shapes = parse_shapes(self.args.shape)
        bound = read(given([parse_const(text) for text in self.args.const]))
        constants = {name: constant.value for name, constant in bound.items()}
        source = Path(self.args.input_file)
        module, weights = import_onnx(source, shapes=shapes, constants=constants, host=self.args.host)
        self.ctx.weights.update(weights)
        return module

    def apply_passes(self, prog: ModuleOp) -> None:
        """Runs the pipeline."""
        settings = Settings(
            verify="each" if self.args.verify_each else "end",
            dump_dir=self.args.dump_dir,
            crash_dir=self.args.crash_dir,
            stop_after=self.args.stop_after,
            command=self._command(),
        )
        timings = self._diagnose(lambda: run(self.ctx, prog, self.passes, settings))
        if self.args.time_passes:
            print(*timings, sep="\n", file=sys.stderr)

    def _diagnose(self, action: Callable[[], Any]) -> Any:
        """Errors of IR and of passes in the form that xDSL's driver prints under --verify-diagnostics."""
        try:
            return action()
        except IRError as error:
            text, name = describe(error), self.get_input_name()
            raise DiagnosticException(text if text.startswith(name) else f"{name}: {text}") from error
        except PipelineError as error:
            if not self.args.verify_diagnostics:
                raise
            raise DiagnosticException(str(error)) from error

    def output_resulting_program(self, prog: ModuleOp) -> str:
        """The IR as text; the weights it uses go to their file."""
        from xdsl.printer import Printer

        if self.args.weights_out:
            used_weights(prog, self.ctx.weights).save(Path(self.args.weights_out))
        stream = StringIO()
        Printer(
            stream, print_generic_format=self.args.print_op_generic, print_debuginfo=self.args.print_debuginfo
        ).print_op(prog)
        return stream.getvalue() + "\n"

    def _command(self) -> str:
        """The command line up to the passes."""
        parts = ["stepwell-opt", self.get_input_name() if self.args.input_file else "-"]
        parts += [f"--shape {shape}" for shape in self.args.shape]
        parts += [f"--const {quote(text)}" for text in self.args.const]
        parts += [] if self.args.host else ["--no-host"]
        parts += [
            f"--{name} {quote(value)}"
            for name, value in (("target", self.args.chip), ("weights", self.args.weights))
            if value
        ]
        return " ".join(parts)


class _Kept(StringIO):
    """Text that can be had after xDSL's driver has closed the stream."""

    def close(self) -> None:
        """Keeps what was written."""


class LocatingParser(Parser):
    """xDSL's parser, which also gives an op without a location its place in the file."""

    def __init__(self, ctx: "CompileContext", text: str, name: str, first_line: int) -> None:
        super().__init__(ctx, text, name)
        self._text = text
        self._name = name
        self._line = first_line + 1
        self._counted = 0

    def parse_operation(self) -> Any:
        """An op; one without `loc` is located where its text begins."""
        from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr, UnknownLoc

        start = self._current_token.span.start
        self._line += self._text.count("\n", self._counted, start)
        self._counted = start
        line, column = self._line, start - self._text.rfind("\n", 0, start)
        op = super().parse_operation()
        if isinstance(op.location, UnknownLoc):
            op.location = FileLineColLoc(StringAttr(self._name), IntAttr(line), IntAttr(column))
        return op


def register_dialects(ctx: "CompileContext") -> None:
    """What IR text may hold."""
    for name, place in OWN_DIALECTS.items():
        ctx.register_dialect(name, _dialect(place, "..dialects", __package__))
    for name, place in UPSTREAM_DIALECTS.items():
        ctx.register_dialect(name, _dialect(place, "xdsl.dialects", None))


def _dialect(place: str, package: str, anchor: str | None) -> Callable[[], Dialect]:
    return lambda: _load(place, package, anchor)


def _unused() -> Any:
    raise NotImplementedError("replaced by an override of xDSL's driver")


def used_weights(module: ModuleOp, store: "WeightStore") -> "WeightStore":
    """The weights that the module names."""
    from ..dialects.graph.constants import WeightOp
    from ..dialects.graph.host import HostOp
    from ..dialects.weights import WeightStore

    used = WeightStore()
    for op in module.walk():
        if isinstance(op, WeightOp | HostOp):
            used.add(store.get(op.handle.data if isinstance(op, WeightOp) else op.part.data))
    return used


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """`x=1,3,48,320`. Raises `UsageError`."""
    name, equals, sizes = text.rpartition("=")
    parts = sizes.split(",") if sizes else []
    if not equals or not name or not all(part.strip().isdigit() for part in parts):
        raise UsageError(f"--shape: is INPUT=D0,D1,… of whole numbers (found {text!r}); write --shape x=1,3,48,320")
    return name, tuple(int(part) for part in parts)


def parse_shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Each shape by its input. Raises `UsageError` for an input that is given twice."""
    found: dict[str, tuple[int, ...]] = {}
    for name, size in map(parse_shape, texts):
        if name in found:
            raise UsageError(f"--shape {name}: is given once (found it again); leave out the others")
        found[name] = size
    return found


def parse_const(text: str) -> tuple[str, str]:
    """`sr=16000`. Raises `UsageError`."""
    from .constants import parse

    try:
        return parse(text)
    except ValueError:
        rule = f"--const: must be INPUT=VALUE, INPUT=V0,V1,… or INPUT=@FILE.npy (found {text!r})"
        raise UsageError(f"{rule}; write it so") from None


def list_passes() -> str:
    """Stages and passes, one line each."""
    lines: list[str] = []
    for stage in pipeline.STAGES:
        lines.append(f"{STAGE_PREFIX}{stage.name}:")
        lines += [f"  {name:<20} {why}" for name, why in stage.steps]
    return "\n".join([*lines, f"upstream: {', '.join(UPSTREAM_PASSES)}"])


def main(args: Sequence[str] | None = None) -> int:
    """The entry point; returns the exit code: 0, or 1 and what is wrong on standard error."""
    try:
        OptMain("Reads IR or a model, runs passes, prints IR.", args).run()
    except BrokenPipeError:
        return 1
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - told in one form, by its kind
        for problem in _told(error):
            code = f" [{problem.kind.value}]" if isinstance(problem, Problem) else ""
            print(f"stepwell-opt: error: {problem}{code}", file=sys.stderr)
        return 1
    return 0


def _told(error: BaseException) -> Sequence[str]:
    """The problems of an error. Raises what is a fault of ours."""
    match error:
        case KeyboardInterrupt():
            return ["interrupted"]
        case RecursionError():
            rule = "the input: is nested so that it can be read (found too deep a nesting); check its braces"
            return [Problem(rule, Kind.IR)]
        case UnicodeDecodeError():
            return [Problem(f"the input: is IR as UTF-8 text (found {error}); name an .mlir file", Kind.IR)]
        case UnregisteredConstructException():
            return [Problem.of_ir(str(error).strip(), "the IR")]
        case _:
            found = problems_of(error)
    if found:
        return found
    if isinstance(error, PipelineError | ValueError):
        return [str(error).strip() or type(error).__name__]
    raise error


if __name__ == "__main__":
    sys.exit(main())
