"""Whose problem an error is, and how it is told.

0  all is well
1  the user's problem: a model, a file, an input, a program; each problem is one line: what, where, expected, what to do
2  the command line is wrong
3  a fault of Stepwell: one line that says so and how to report it; a traceback under --debug only
"""

import sys
import traceback
from dataclasses import dataclass
from errno import ENOMEM
from typing import Any, ClassVar

from ..runtime.problem import Kind, Problem, UserError

OK, PROBLEM, USAGE, INTERNAL = range(4)


class CommandError(UserError, ValueError):
    """What was asked for cannot be done: a line for each problem, `<where>: <rule> (found <what>); <what to do>`."""

    KIND: ClassVar[Kind] = Kind.COMMAND

    def __init__(self, *lines: str, kind: Kind | None = None) -> None:
        super().__init__("; ".join(lines))
        self._lines, self._kind = lines, kind or self.KIND

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Each of them."""
        return tuple(line if isinstance(line, Problem) else Problem(line, self._kind) for line in self._lines)


class Usage(ValueError):
    """The command line is wrong."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error, told: its problems, or the text of a fault of ours."""

    exit_code: int
    kind: str
    problems: tuple[Problem | str, ...]


def describe(error: BaseException) -> Failure:
    """The exit code and the problems for an error."""
    kind = type(error).__name__
    if isinstance(error, Usage):
        return Failure(USAGE, kind, (Problem(str(error), Kind.COMMAND),))
    if isinstance(error, KeyboardInterrupt):
        return Failure(PROBLEM, kind, ("interrupted",))
    if found := problems_of(error):
        return Failure(PROBLEM, kind, found)
    return Failure(INTERNAL, kind, (f"{kind}: {_first_line(error)}",))


def problems_of(error: BaseException) -> tuple[Problem, ...]:
    """What a user can mend; nothing if the error is a fault of ours."""
    if isinstance(error, UserError):
        return error.problems
    if isinstance(error, OSError) and error.filename is not None:
        return (
            Problem(f"{error.filename}: can be opened (found {error.strerror or error}); check the path", Kind.FILE),
        )
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == ENOMEM):
        return (
            Problem(f"this machine: has memory for the work (found {_first_line(error)}); {MORE_MEMORY}", Kind.MEMORY),
        )
    names = {cls.__name__ for cls in type(error).__mro__ if cls.__module__ == "xdsl.utils.exceptions"}
    if "ParseError" in names:
        return (Problem.of_ir(str(error).strip(), "the text of the IR", found=_text_at(error)),)
    if "DiagnosticException" in names:
        return tuple(Problem.of_ir(line, "the IR") for line in str(error).strip().splitlines())
    return ()


def _text_at(error: BaseException) -> str:
    """The line that could not be read."""
    span: Any = getattr(error, "span", None)
    if span is None:
        return "other text"
    content, start = span.input.content, span.start
    line = content[content.rfind("\n", 0, start) + 1 :].partition("\n")[0].strip()
    return line[:80] or "an empty line"


MORE_MEMORY = "free some, raise the limit (ulimit -v), or take a smaller model or target"


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0]


def tell(failure: Failure, error: BaseException, debug: bool) -> None:
    """Writes the failure to standard error, in the one form."""
    for problem in failure.problems:
        code = f" [{problem.kind.value}]" if isinstance(problem, Problem) else ""
        print(f"stepwell: error: {problem}{code}", file=sys.stderr)
    if failure.exit_code == INTERNAL and not debug:
        print(
            "stepwell: this is a fault of Stepwell, not yours; run the command again with --debug "
            "and report its output together with the model, or what makes it",
            file=sys.stderr,
        )
    if debug:
        traceback.print_exception(error)
