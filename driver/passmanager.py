"""Runs passes: checks, dumps and times each, and names the culprit when one fails.

    timings = run(ctx, module, [Fold(), Recognise()], Settings(verify="each", dump_dir=Path("dump")))

An exception that is no error of ours is reported in the same way, as a bug of the pass.
"""

import gc
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import ClassVar, Literal

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from ..passes.context import CompileContext, PassError
from ..passes.location import where
from ..runtime.problem import Kind, Problem, UserError
from .verify import IRError, signature, verify


class PipelineError(UserError, RuntimeError):
    """A pass failed: one line that names the pass, the op with its ONNX nodes, and the command that reproduces it."""

    KIND: ClassVar[Kind] = Kind.IR

    def __init__(self, message: str, problems: Sequence[Problem] | None = None) -> None:
        super().__init__(message)
        self._problems = (Problem.of_ir(message, "the pipeline"),) if problems is None else tuple(problems)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What a user can mend; nothing if the pass has a fault."""
        return self._problems


@dataclass(frozen=True, slots=True)
class Timing:
    """CPU seconds of a pass, and how many ops it left."""

    name: str
    seconds: float
    ops: int

    def __str__(self) -> str:
        return f"{self.name:<40} {self.seconds * 1e3:9.1f} ms {self.ops:7} ops"


@dataclass(frozen=True, slots=True)
class Settings:
    """How to run passes.

    verify: when to check the module: after `each` pass, at the `end`, or `never`.
    dump_dir: write the IR before the first and after every pass to a numbered file there.
    crash_dir: write the input of a pass that fails there (`dump_dir` serves as well).
    stop_after: the last pass to run.
    command: the `stepwell-opt` command, without passes, that makes the module; for the line that reproduces a failure.
    after: is called with every pass and its result.
    """

    verify: Literal["each", "end", "never"] = "end"
    dump_dir: Path | None = None
    crash_dir: Path | None = None
    stop_after: str | None = None
    command: str = "stepwell-opt"
    after: Callable[[ModulePass, ModuleOp], None] | None = field(default=None, compare=False)


DEFAULT = Settings()


def run(
    ctx: CompileContext, module: ModuleOp, passes: Sequence[ModulePass], settings: Settings = DEFAULT
) -> list[Timing]:
    """Applies the passes in order. Raises `PipelineError`."""
    passes = _until(passes, settings.stop_after)
    timings: list[Timing] = []
    with no_garbage_collection():
        if settings.dump_dir is not None:
            _dump(module, settings.dump_dir, 0, "input")
        for number, this in enumerate(passes, 1):
            saved = _text(module) if settings.crash_dir or settings.dump_dir else None
            start = time.process_time()
            try:
                this.apply(ctx, module)
                if settings.verify == "each" or (settings.verify == "end" and number == len(passes)):
                    verify(module)
            except Exception as error:  # named and raised again
                command = _command(passes[:number], saved, settings)
                text = f"{this.name}: {describe(error)}; reproduce with: {command}"
                raise PipelineError(text, _problems(error, this.name, command)) from error
            timings.append(Timing(str(this.spec()), time.process_time() - start, sum(1 for _ in module.walk())))
            if settings.dump_dir is not None:
                _dump(module, settings.dump_dir, number, this.name)
            if settings.after is not None:
                settings.after(this, module)
    return timings


def _until(passes: Sequence[ModulePass], last: str | None) -> Sequence[ModulePass]:
    if last is None:
        return passes
    names = [this.name for this in passes]
    if last not in names:
        raise PipelineError(
            f"{last}: is a pass of this pipeline (found none of this name); it has {', '.join(dict.fromkeys(names))}"
        )
    return passes[: names.index(last) + 1]


def _command(passes: Sequence[ModulePass], saved: str | None, settings: Settings) -> str:
    """How to see a failure again; writes the pass's input, if a folder for it is given."""
    this = passes[-1]
    folder = settings.crash_dir or settings.dump_dir
    if saved is None or folder is None:
        return f"{settings.command} -p {quote(','.join(str(p.spec()) for p in passes))}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"before-{this.name}.mlir"
    path.write_text(saved, encoding="utf-8")
    return f"stepwell-opt {quote(str(path))} -p {quote(str(this.spec()))}"


def _problems(error: Exception, name: str, command: str) -> list[Problem]:
    """What a user can mend, by the op of each; nothing for a bug of the pass."""
    again = f"reproduce with: {command}"
    if isinstance(error, PassError):
        return [
            Problem(
                f"{name}: {part}; {part.remedy or 'change the IR or the options of the pass'}; {again}",
                part.kind,
                _at(name, part.op),
            )
            for part in error.parts
        ]
    if isinstance(error, IRError):
        text = f"{name}: {describe(error)}; {again}"
        return [Problem.of_ir(text, name, _at(name, error.op), found=signature(error.op))]
    if not isinstance(error, UserError | DiagnosticException):
        return []
    kind = error.KIND if isinstance(error, UserError) else Kind.IR
    return [Problem.of_ir(f"{name}: {describe(error)}; {again}", name, kind=kind)]


def _at(name: str, op: Operation | None) -> str:
    return name if op is None else f"{name}: {where(op)}"


def describe(error: Exception) -> str:
    """What went wrong, on one line; an exception that is not ours is a bug and says its type."""
    if isinstance(error, IRError):
        return f"{where(error.op)}: {error.rule}"
    text = (str(error).strip().splitlines() or [""])[0]
    ours = type(error).__module__.partition(".")[0] == __name__.partition(".")[0]
    return text if ours or isinstance(error, DiagnosticException) else f"bug: {type(error).__name__}: {text}"


def _text(module: ModuleOp) -> str:
    from io import StringIO

    from xdsl.printer import Printer

    stream = StringIO()
    Printer(stream, print_debuginfo=True).print_op(module)
    return stream.getvalue() + "\n"


def _dump(module: ModuleOp, folder: Path, number: int, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{number:02}-{name}.mlir").write_text(_text(module), encoding="utf-8")


@contextmanager
def no_garbage_collection() -> Generator[None]:
    """IR is all cycles and lives to the end: collecting in between costs a third of the time and frees nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
