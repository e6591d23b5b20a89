"""What is wrong with a model, in a form in which a part of it can be asked whether the same is wrong with it.

| kind | the same if |
|---|---|
| refused | the error has the same class and says the same rule; names, numbers and what was found do not count |
| fault | an exception of the same class comes from the same function of the compiler, or of what it calls |
| crash | the process dies of the same signal |
| hang | it does not end in the time that it has |
| departs | the same stage of `compare` departs, and by (nine tenths of) as much or more |
"""

import argparse
import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .errors import INTERNAL, PROBLEM, describe
from .isolate import CrashError, HangError, isolated
from .passmanager import PipelineError
from .progress import Progress

Kind = Literal["refused", "fault", "crash", "hang", "departs"]
Phase = Literal["compile", "compare"]

_LEAST = 0.9
"""Of the measure of a departure: the recorded values of a part differ a little from those inside."""
_OURS = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Symptom:
    """One thing that is wrong."""

    kind: Kind
    phase: Phase
    where: str
    """The class of an error, or that and the function of a fault; the signal of a crash; the stage that departs."""
    rule: str
    """The text of a refusal without what differs from model to model."""
    text: str
    """As it is told, behind the kind."""
    nodes: tuple[str, ...] = ()
    """Nodes that it names."""
    measure: float = 0.0
    """Of a departure: 1 − the least cosine of an output."""
    least: float = 0.0
    """Of a departure: what the measure of the same one is at least."""

    def is_in(self, others: Sequence["Symptom"]) -> bool:
        """Whether one of the others is the same."""
        return any(
            (self.kind, self.phase, self.where, self.rule) == (other.kind, other.phase, other.where, other.rule)
            and other.measure >= self.least
            for other in others
        )


def symptoms(args: argparse.Namespace, phases: Sequence[Phase], names: Sequence[str], seconds: float) -> list[Symptom]:
    """What is wrong with `args.model`, by the first of the phases that finds something.

    `names` are those of the nodes and values of the whole, which texts are freed of.
    """
    for phase in phases:
        try:
            found = isolated(lambda phase=phase: _symptoms(args, phase, names), seconds)
        except CrashError as error:
            text = f"{args.model}: {phase} ends without a result ({error})"
            found = [Symptom("crash", phase, str(error.signal), "", text)]
        except HangError as error:
            found = [Symptom("hang", phase, "", "", f"{args.model}: {phase} does not end ({error})")]
        if found:
            return found
    return []


def _symptoms(args: argparse.Namespace, phase: Phase, names: Sequence[str]) -> list[Symptom]:
    try:
        return _compiled(args) if phase == "compile" else _compared(args)
    except Exception as error:  # noqa: BLE001 - errors are what this looks for
        return _told(args, error, phase, names)


def _compiled(args: argparse.Namespace) -> list[Symptom]:
    from .commands import compile_onnx

    compile_onnx(args.model, args, Progress(quiet=True))
    return []


def _compared(args: argparse.Namespace) -> list[Symptom]:
    from .compare import stages_of

    for stage in stages_of(args, Progress(quiet=True)):
        if stage.departure is not None:
            by_outputs = 1 - min(output.cosine for output in stage.outputs)
            bits = stage.name in ("tile", "npu")
            measure = 1.0 if bits else by_outputs
            least = _LEAST * min(measure, stage.departure.measure)
            text = f"at {stage.name}: {stage.departure}"
            return [Symptom("departs", "compare", stage.name, "", text, stage.departure.nodes, measure, least)]
    return []


def _told(args: argparse.Namespace, error: Exception, phase: Phase, names: Sequence[str]) -> list[Symptom]:
    """The symptoms of an error: each of its problems is one."""
    failure, names = describe(error), [*names, str(args.model)]
    cause = error.__cause__ if isinstance(error, PipelineError) and error.__cause__ is not None else error
    kind = type(cause).__name__
    texts = [str(text).partition("; reproduce with: ")[0] for text in failure.problems]
    if failure.exit_code == INTERNAL:
        where = f"{kind} in {_function(cause)}"
        return [Symptom("fault", phase, where, "", texts[0], _named(str(error), names))]
    assert failure.exit_code == PROBLEM
    return [Symptom("refused", phase, kind, rule_of(text, names), text, _named(text, names)) for text in texts]


def _function(error: BaseException) -> str:
    """Where an exception comes from: the innermost of our functions."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(_OURS)]
    frame = (ours or frames)[-1]
    return f"{Path(frame.filename).name}:{frame.name}"


def rule_of(text: str, names: Sequence[str]) -> str:
    """The rule that a message states, without names, numbers, what was found and what to do."""
    rule = re.sub(r" \(found.*", "", text, flags=re.DOTALL)
    return re.sub(r"\d+", "#", _pattern(names).sub("·", rule) if names else rule)


def _named(text: str, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_pattern(names).findall(text))) if names else ()


def _pattern(names: Sequence[str]) -> re.Pattern[str]:
    """Any of the names, as whole words."""
    words = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<![\w/.:])(?:{words})(?![\w/])")
