"""ONNX's own test cases, each compiled, run on the emulated device and compared: what `conformance_test.py` asks.

    python tests/onnx_cases.py                 # all of them, and docs/conformance.md anew (minutes)
    python tests/onnx_cases.py Softmax Conv    # those of some operators, a line each

Many cases give shapes, axes and the like as inputs. A case is tried as it stands; then with its integers, without and
with the first input, then with all inputs but the first as constants; last with all of them, for operators that make
something of sizes. A case that is refused in every form is tried as it stands with the CPU's help.
"""

import signal
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx.backend.test.case.node import collect_testcases

import stepwell
from stepwell.backend.errors import BackendError
from stepwell.driver.api import compile as compile_model
from stepwell.driver.errors import CommandError
from stepwell.driver.passmanager import PipelineError
from stepwell.frontend.problems import ImportProblems, ModelFileError

Array = NDArray[Any]
REFUSALS = (BackendError, CommandError, ImportProblems, ModelFileError, PipelineError)
FUNCTION = " (function)"
NARROW = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
"""A unit in the last place of 1."""
SECONDS = 60
"""That one case may take."""
KNOWN = {
    *("BlackmanWindow", "Constant", "ConstantOfShape", "EyeLike", "HammingWindow", "HannWindow", "MelWeightMatrix"),
    *("Range", "Shape", "Size"),
}
"""Operators that make something of sizes: theirs may be constants all of them."""


@dataclass(frozen=True)
class Verdict:
    """What became of a case. `state` is `native`, `known` (computed at import), `host` (the CPU has a part in it),
    `refused`, `wrong` or `crash`."""

    name: str
    operator: str
    state: str
    reason: str = ""
    constants: str = ""
    """Which inputs were constants."""
    onnxruntime: bool = False
    """Whether onnxruntime gives what the case expects."""


@cache
def cases() -> Mapping[str, Sequence[Any]]:
    """All cases by operator; those of the nodes that it is defined by, if it is a function, as `Softmax (function)`."""
    found: dict[str, list[Any]] = defaultdict(list)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collected: list[Any] = collect_testcases(None)  # pyright: ignore[reportArgumentType, reportAssignmentType]
    alone = {case.name: operator_of(case.model) for case in collected}
    for case in collected:
        stem, expanded, _ = case.name.partition("_expanded")
        found[alone[stem] + FUNCTION if expanded and stem in alone else alone[case.name]].append(case)
    return dict(sorted(found.items()))


def operator_of(model: onnx.ModelProto) -> str:
    """The operator that a case is of: that of its last node."""
    node = model.graph.node[-1]
    domain = "" if node.domain in ("", "ai.onnx") else f"{node.domain}."
    return f"{domain}{node.op_type}"


def arrays(values: Sequence[Any]) -> list[Any]:
    """The values of a case: arrays, lists of arrays, None."""
    return [_value(value) for value in values]


def _value(value: Any) -> Any:
    match value:
        case onnx.TensorProto():
            return onnx.numpy_helper.to_array(value)
        case onnx.SequenceProto():
            return onnx.numpy_helper.to_list(value)
        case onnx.OptionalProto():
            return _value(onnx.numpy_helper.to_optional(value))
        case list():
            return [_value(part) for part in value]
        case None:
            return None
        case _:
            return np.asarray(value)


# forms ----------------------------------------------------------------------------------------------------------------


def forms(
    model: onnx.ModelProto, inputs: Sequence[Any], operator: str
) -> Iterator[tuple[str, onnx.ModelProto, list[int]]]:
    """The model with more and more constants: which they are, the model, and the inputs that are left."""
    tried: list[list[int]] = []
    if not all(isinstance(value, np.ndarray) for value in inputs):
        return  # a sequence, or nothing
    integers = [i for i, array in enumerate(inputs) if i == 0 or array.dtype != np.int64]
    for name, left in (
        ("", list(range(len(inputs)))),
        ("integers", integers),
        ("all integers", [i for i, array in enumerate(inputs) if array.dtype.name not in ("int64", "bool")]),
        ("all but the first", [0]),
        ("all", []),
    ):
        if (
            left not in tried
            and len(left) <= len(inputs)
            and (left or not inputs or operator.removesuffix(FUNCTION) in KNOWN)
        ):
            tried.append(left)
            yield name, with_constants(model, inputs, left), left


def with_constants(model: onnx.ModelProto, inputs: Sequence[Array], left: Sequence[int]) -> onnx.ModelProto:
    """The inputs but `left` as constants."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    infos = list(model.graph.input)
    del changed.graph.input[:]
    changed.graph.input.extend(infos[i] for i in left)
    changed.graph.initializer.extend(
        onnx.numpy_helper.from_array(array, infos[i].name) for i, array in enumerate(inputs) if i not in left
    )
    return changed


# one case -------------------------------------------------------------------------------------------------------------


def judge(operator: str, case: Any, target: str = "tiny") -> Verdict:
    """Compiles and runs a case in every form, until one is not refused."""
    expected = by_onnxruntime(case)
    state, reason, constants = "refused", "", ""
    passes = expected is not None
    for number, (given, results) in enumerate(case.data_sets):
        inputs, wanted = arrays(given), arrays(results)
        also = None if expected is None else expected[number]
        passes = passes and also is not None and departure(case, also, wanted) is None
        state, reason, constants = settle(operator, case, inputs, (wanted, also), target)
        if state not in ("native", "known", "host"):
            break
    return Verdict(case.name, operator, state, reason, constants, passes)


def settle(
    operator: str, case: Any, inputs: Sequence[Any], wanted: Sequence[Sequence[Any] | None], target: str
) -> tuple[str, str, str]:
    """State, reason and constants. `wanted` holds what the case expects, and what onnxruntime gives."""
    refusals: list[str] = []
    tries = [(*form, False) for form in forms(case.model, inputs, operator)]
    for constants, model, left, host in (*tries, ("", case.model, list(range(len(inputs))), True)):
        try:
            with at_most(SECONDS), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = compute(model, [inputs[i] for i in left], target, host)
        except REFUSALS as error:
            refusals.append(summary(error))
            continue
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
            return "crash", f"{type(error).__name__}: {error}".splitlines()[0], constants
        departures = [departure(case, found, values) for values in wanted if values is not None]
        if None not in departures:
            return "wrong", departures[0] or "", constants
        reason = "" if departures[0] is None else "agrees with onnxruntime, which departs from the case"
        return "host" if host else "native" if left else "known", reason, constants
    return "refused", refusals[-1], ""


def compute(model: onnx.ModelProto, inputs: Sequence[Any], target: str, host: bool) -> list[Any]:
    """What the emulated device computes, with `host` together with the CPU. Raises one of `REFUSALS`."""
    feeds = {info.name: value for info, value in zip(model.graph.input, inputs, strict=True)}
    shapes = {name: list(array.shape) for name, array in feeds.items() if isinstance(array, np.ndarray)}
    artifact = compile_model(model, target=target, precision="fp32", shapes=shapes, host=host)
    outputs = stepwell.run(artifact, feeds)
    return [outputs[info.name] for info in model.graph.output]


def summary(error: Exception) -> str:
    """The first problem, without the node's name and the advice."""
    lines = str(error).splitlines()
    line = lines[1] if isinstance(error, ImportProblems) and len(lines) > 1 else lines[0]
    return line.strip().split(": ", 1)[-1].rsplit("; ", 1)[0]


def departure(case: Any, found: Sequence[Any], wanted: Sequence[Any]) -> str | None:
    """Where results are others than the case's, by its own tolerances.

    Of narrow floats, two units in the last place are granted: cases round after every step, docs/numerics.md once.
    """
    if len(found) != len(wanted):
        return f"{len(found)} results, expected {len(wanted)}"
    for mine, theirs in zip(found, wanted, strict=True):
        if theirs is None or isinstance(theirs, list):
            if not isinstance(mine, list) or not isinstance(theirs, list):
                if mine is not theirs:
                    return f"{type(mine).__name__}, expected {type(theirs).__name__}"
            elif inner := departure(case, mine, theirs):
                return inner
            continue
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
            return f"{mine.dtype}{mine.shape}, expected {theirs.dtype}{theirs.shape}"
        if theirs.dtype.kind in "OUS":
            if not np.array_equal(mine, theirs):
                return "other texts"
            continue
        a, b = mine.astype(np.float64), theirs.astype(np.float64)
        rtol = max(case.rtol, 1e-5, 2 * NARROW.get(theirs.dtype.name, 0.0))
        close = np.isclose(a, b, rtol=rtol, atol=max(case.atol, 1e-6), equal_nan=True)
        if not close.all():
            place = int(np.flatnonzero(~close.reshape(-1))[0])
            return f"{int((~close).sum())} of {close.size} values, such as {a.flat[place]:.9g}, not {b.flat[place]:.9g}"
    return None


def by_onnxruntime(case: Any) -> list[list[Any]] | None:
    """What onnxruntime gives for each data set; None if it does not run the case."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    names, found = [info.name for info in case.model.graph.input], list[list[Any]]()
    try:
        session = onnxruntime.InferenceSession(case.model.SerializeToString(), options, ["CPUExecutionProvider"])
        for given, _ in case.data_sets:
            inputs = arrays(given)
            found.append(arrays(session.run(None, dict(zip(names, inputs, strict=True)))))
    except Exception:  # noqa: BLE001 - it does not run it, for whatever reason
        return None
    return found


@contextmanager
def at_most(seconds: int) -> Generator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# the page -------------------------------------------------------------------------------------------------------------
PAGE = Path(__file__).parents[1] / "docs" / "conformance.md"
HEAD = """# ONNX's operator cases

Generated by `python tests/onnx_cases.py`; `tests/conformance_test.py` runs every case again and compares.

Each of the {count} cases that the onnx package {version} makes (a node, or the nodes of its function) is compiled for
`tiny` with `precision="fp32"` and run on the emulated device. *native*: the device computes what the case expects.
*known*: the result depends on sizes alone and was computed at import. *host*: the device does not run all of it, and
the CPU helps. *refused*: the compiler says why, below. Shapes, axes and the like are constants where the operator asks
for it.

onnxruntime passes {passed} of the cases; of those {native} are native, {known} known, {host} on the host, {refused}
refused.
"""


def page(verdicts: Sequence[Verdict]) -> str:
    """docs/conformance.md."""
    passed = [verdict for verdict in verdicts if verdict.onnxruntime]
    states = Counter(verdict.state for verdict in passed)
    head = HEAD.format(
        count=len(verdicts),
        version=onnx.__version__,
        passed=len(passed),
        **{state: states[state] for state in ("native", "known", "host", "refused")},
    )
    by_operator: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_operator[verdict.operator].append(verdict)
    lines = ["| operator | cases | onnxruntime | native | known | host | refused |", "| --- " * 7 + "|"]
    lines += [row(operator, found) for operator, found in by_operator.items()]
    total = row("all", verdicts)
    reasons = [line for found in by_operator.values() for line in notes(found)]
    return (
        "\n".join([head, *lines, total, "", "## What is refused, and what departs from the case", "", *reasons]) + "\n"
    )


def row(operator: str, verdicts: Sequence[Verdict]) -> str:
    """The counts of an operator."""
    states = Counter(verdict.state for verdict in verdicts)
    numbers = [
        len(verdicts),
        sum(v.onnxruntime for v in verdicts),
        *(states[s] for s in ("native", "known", "host", "refused")),
    ]
    return f"| {operator} | " + " | ".join(str(number or "") for number in numbers) + " |"


def notes(verdicts: Sequence[Verdict]) -> list[str]:
    """The cases of an operator that have a reason, by reason; those that onnxruntime does not pass are in brackets."""
    by_reason: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.reason:
            by_reason[verdict.state, verdict.reason].append(verdict)
    return [
        f"- **{found[0].operator}**, {state}: {reason}: "
        + ", ".join(
            v.name.removeprefix("test_") if v.onnxruntime else f"({v.name.removeprefix('test_')})" for v in found
        )
        for (state, reason), found in by_reason.items()
    ]


def rows() -> Mapping[str, str]:
    """The table of the page: the line of each operator."""
    lines = PAGE.read_text(encoding="utf-8").splitlines() if PAGE.exists() else []
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines if line.startswith("| ")}


def main(names: Sequence[str]) -> None:
    """Runs cases; prints what is not native, or writes the page."""
    verdicts = [
        judge(operator, case) for operator, found in cases().items() if not names or operator in names for case in found
    ]
    for verdict in verdicts:
        if verdict.state in ("wrong", "crash") or (names and verdict.reason):
            print(f"{verdict.operator}: {verdict.name}: {verdict.state}: {verdict.reason}")
    print(dict(Counter(verdict.state for verdict in verdicts)))
    if not names:
        PAGE.write_text(page(verdicts), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
