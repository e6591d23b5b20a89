"""Constants for inputs, as people write them: `--const sr=16000`, `{"mask": "@mask.npy"}`, `{"mask": array}`.

A text is a number, `true` or `false`, several of them with commas between, nested lists as in JSON, or `@` and an .npy
file. What cannot be read becomes `Unusable`, so that the importer tells it together with all other problems.
"""

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..runtime.artifact import Artifact
from ..runtime.problem import Kind, Problem
from .errors import CommandError
from .inputs import read_npy

if TYPE_CHECKING:
    from onnx import GraphProto

Array = NDArray[Any]
_PREFIX = "const "
_MOST_WRITTEN = 64
"""Elements of an array that is written out in a command."""


@dataclass(frozen=True, slots=True)
class Constant:
    """What was given for an input, and the text that gives the same again."""

    value: Any
    text: str


def read(constants: Mapping[str, Any]) -> dict[str, Constant]:
    """Of each input what was given: a text, the path of an .npy file, or whatever numpy takes for an array.

    Raises `CommandError` for what is no mapping.
    """
    if not isinstance(constants, Mapping):
        raise CommandError(f'constants: must be values by input, {{"sr": 16000}} (found {constants!r}); write it so')
    return {name: _read(name, value) for name, value in constants.items()}


def _read(name: str, value: Any) -> Constant:
    from ..frontend.bound import Unusable

    if isinstance(value, Path):
        value = f"@{value}"
    if isinstance(value, str):
        return Constant(_parsed(name, value), value)
    return Constant(value, "" if isinstance(value, Unusable) else written(name, value))


def _parsed(name: str, text: str) -> Any:
    """The value of a text."""
    from ..frontend.bound import Unusable

    try:
        if text.startswith("@"):
            return read_npy(Path(text[1:]))
        if text.startswith("["):
            return json.loads(text)
        values = [_number(part.strip()) for part in text.split(",")]
    except CommandError as error:
        (problem,), where = error.problems, f"--const {name}={text}"
        return Unusable(Problem(": ".join((where, problem)), problem.kind, where))
    except ValueError:
        rule = f"--const {name}={text}: must be a number, true or false, several with commas between, or @FILE.npy"
        line = f"{rule} (found {text!r}); write --const {name}=1,0,1 for example"
        return Unusable(Problem(line, Kind.COMMAND, f"--const {name}={text}"))
    return values if "," in text else values[0]


def _number(text: str) -> int | float | bool:
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return float(text)


def written(name: str, value: Any) -> str:
    """The text for a value; a large array is meant to lie in a file of the input's name."""
    array = np.asarray(value)
    if array.size > _MOST_WRITTEN or array.size == 0:
        return f"@{name}.npy"
    if array.dtype.kind not in "biuf":
        array = array.astype(np.float64) if array.dtype.kind == "V" else array.astype(str)
    text = json.dumps(array.tolist())
    return text[1:-1].replace(" ", "") if array.ndim == 1 and array.size > 1 else text


def option(name: str, text: str) -> str:
    """The option that gives a constant again."""
    return f"--const {quote(f'{name}={text}')}"


def constants_of(args: argparse.Namespace) -> dict[str, Any]:
    """The values of `--const` by input, of a command that may have `--input` as well."""
    return given(args.const, getattr(args, "input", ())) if args.const else {}


def given(pairs: Sequence[tuple[str, str]], files: Sequence[str] = ()) -> dict[str, Any]:
    """The texts by input; one that is given twice, or as an input (`x=FILE`) too, is unusable."""
    from ..frontend.bound import Unusable

    counts = Counter(name for name, _ in pairs)
    found: dict[str, Any] = dict(pairs)
    for name, count in counts.items():
        texts = [text for key, text in pairs if key == name]
        inputs = [text for text in files if text.startswith(f"{name}=")]
        if count > 1:
            once = f"{name}: is bound to one constant (found {' and '.join(texts)})"
            found[name] = Unusable(Problem(f"{once}; give --const {name} once", Kind.COMMAND, name))
        elif inputs:
            either = f"{name}: is a constant or an input (found --const {name}={texts[0]} and --input {inputs[0]})"
            found[name] = Unusable(Problem(f"{either}; leave one of them out", Kind.COMMAND, name))
    return found


def recorded(constants: Mapping[str, Constant]) -> dict[str, str]:
    """The constants as options in the metadata of an artifact."""
    return {f"{_PREFIX}{name}": constant.text for name, constant in constants.items()}


def arrays_of(artifact: Artifact, graph: "GraphProto", given: Mapping[str, Any]) -> dict[str, Array]:
    """The constants that an artifact was compiled with, for a run of the model itself. Raises `CommandError`.

    `given` has those of the command that compiled it; of an artifact from a file, what it recorded is read.
    """
    from ..frontend.bound import bind

    options = artifact.metadata.options
    kept = {key.removeprefix(_PREFIX): text for key, text in options.items() if key.startswith(_PREFIX)}
    constants = read(given or kept)
    shapes = dict[str, list[int]]()
    for key, size in artifact.plans[0].binding.items():
        shapes.setdefault(key.rpartition("[")[0], []).append(size)
    arrays, problems = bind(graph, {name: constant.value for name, constant in constants.items()}, shapes)
    if problems:
        raise CommandError(*problems)
    return arrays


def parse(text: str) -> tuple[str, str]:
    """`sr=16000`, as the name and the text of the value. Raises `ValueError`."""
    name, equals, value = text.partition("=@") if "=@" in text else text.rpartition("=")
    if not name or not equals or not value:
        raise ValueError(f"must be INPUT=VALUE, INPUT=V0,V1,… or INPUT=@FILE.npy (found {text!r})")
    return name, f"@{value}" if equals == "=@" else value
