"""What can be wrong with a model, said to the person who has it.

    ValueError
    ├── ModelFileError        the file: missing, empty, not ONNX
    └── ImportProblems        the model: everything that is not supported, at once

Both are mistakes of the input and no bugs, so the driver prints them as they are.
"""

from collections.abc import Sequence
from typing import ClassVar

from ..runtime.problem import Kind, Problem, UserError

BROKEN = "the file breaks a rule of ONNX, so mend the model or export it again (onnx.checker may tell more)"
"""What to do about a node that ONNX does not allow."""


def is_no_network(problem: Problem) -> bool:
    """Whether ONNX does not allow a node for the shapes at hand, so that nothing could run it."""
    return problem.kind is Kind.SHAPE and problem.remedy.endswith(BROKEN)


class ShapeWarning(UserWarning):
    """Shapes that were given make one axis of the model several sizes, which may be meant."""


class ModelFileError(UserError, ValueError):
    """The file cannot be read as an ONNX model: `<file>: <rule> (<found>); <what to do>`."""

    KIND: ClassVar[Kind] = Kind.FILE


class ImportProblems(UserError, ValueError):
    """All that keeps a model from being imported, a line each: `<node>: <rule> (<found>); <what to do>`."""

    KIND: ClassVar[Kind] = Kind.OPERATOR

    def __init__(self, problems: Sequence[str]) -> None:
        self._problems = tuple(p if isinstance(p, Problem) else Problem(p, self.KIND) for p in problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__("\n  ".join([f"the model has {count}, nothing was imported:", *problems]))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Each of them."""
        return self._problems
