"""Whose problem an error is, and how it is told.

0  all is well
1  the user's problem: a model, a file, an input, a program; each problem is one line: what, where, expected, what to do
2  the command line is wrong
3  a fault of Stepwell: one line that says so and how to report it; a traceback under --debug only
"""

import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

OK, PROBLEM, USAGE, INTERNAL = range(4)

USERS = (
    "driver.errors.CommandError",
    "driver.passmanager.PipelineError",
    "driver.opt.UsageError",
    "driver.verify.IRError",
    "frontend.problems.ImportProblems",
    "frontend.problems.ModelFileError",
    "passes.context.PassError",
    "dialects.evaluate.EvaluationError",
    "dialects.evaluate_tile.EvaluationError",
    "dialects.weights.WeightError",
    "runtime.border.InputError",
    "runtime.container.ArtifactError",
    "runtime.encoding.ProgramError",
    "runtime.pool.OutOfMemory",
    "runtime.stream.StreamError",
    "runtime.target.TargetError",
    "runtime.timing.TimingError",
    "xdsl.utils.exceptions.DiagnosticException",
    "xdsl.utils.exceptions.ParseError",
)
"""Errors that a user can mend: module and name of their class, or of a base of it, so that none is imported here."""


class CommandError(ValueError):
    """What was asked for cannot be done: a line for each problem, `<where>: <rule> (<found>); <what to do>`."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Usage(ValueError):
    """The command line is wrong."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error, told."""

    exit_code: int
    kind: str
    problems: tuple[str, ...]


def describe(error: BaseException) -> Failure:
    """The exit code and the lines for an error."""
    kind = type(error).__name__
    if isinstance(error, Usage):
        return Failure(USAGE, kind, (str(error),))
    if isinstance(error, KeyboardInterrupt):
        return Failure(PROBLEM, kind, ("interrupted",))
    if isinstance(error, OSError) and error.filename is not None:
        return Failure(PROBLEM, kind, (f"{error.filename}: {error.strerror or error}; check the path",))
    if _is_users(error):
        return Failure(PROBLEM, kind, _problems(error))
    return Failure(INTERNAL, kind, (f"{kind}: {_first_line(error)}",))


def _is_users(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.filename is not None:
        return True
    names = {f"{cls.__module__.removeprefix(_ROOT)}.{cls.__qualname__}" for cls in type(error).__mro__}
    if "driver.passmanager.PipelineError" in names and error.__cause__ is not None:
        return _is_users(error.__cause__)  # of a pass that failed
    return not names.isdisjoint(USERS)


_ROOT = __name__.removesuffix("driver.errors")
"""`stepwell.`, or whatever the package is called here."""


def _problems(error: BaseException) -> tuple[str, ...]:
    text = str(error).strip()
    lines = [text] if type(error).__name__ == "ParseError" else text.splitlines()  # the lines of one picture
    problems: Sequence[str] = getattr(error, "problems", ()) or lines
    return tuple(problems) or (type(error).__name__,)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0]


def tell(failure: Failure, error: BaseException, command: str, debug: bool) -> None:
    """Writes the failure to standard error, in the one form."""
    for problem in failure.problems:
        print(f"stepwell: error: {problem}", file=sys.stderr)
    if failure.exit_code == USAGE:
        print(f"stepwell: see {command} --help", file=sys.stderr)
    if failure.exit_code == INTERNAL and not debug:
        print(
            "stepwell: this is a fault of Stepwell, not yours; run the command again with --debug "
            "and report its output together with the model, or what makes it",
            file=sys.stderr,
        )
    if debug:
        traceback.print_exception(error)
