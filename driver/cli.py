"""`stepwell`: compiles models, runs them, compares, inspects, lists targets. Exit codes: see `errors.py`."""

import argparse
import json
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, cast

from ..runtime.problem import Problem
from .errors import OK, Usage, describe, tell
from .progress import Progress
from .report import COSINE, Report

Run = Callable[[argparse.Namespace, Progress], Report]


ARGPARSE = (
    (r"^(argument .+?): invalid choice: (.+?) \(choose from (.+)\)$", r"\1: is one of \3 (found \2)"),
    (r"^(argument .+?): invalid \w+ value: (.+)$", r"\1: is a number (found \2)"),
    (r"^the following arguments are required: (.+)$", r"the command line: names \1 (found none)"),
    (r"^unrecognized arguments: (.+)$", r"the command line: has known arguments only (found \1)"),
    (r"^(argument .+?): expected (.+)$", r"\1: is followed by \2 (found none)"),
)
"""What argparse says, and the same in our form."""


class Parser(argparse.ArgumentParser):
    """argparse, with errors in our form."""

    def error(self, message: str) -> NoReturn:
        rule = next((re.sub(form, rule, message) for form, rule in ARGPARSE if re.search(form, message)), message)
        if "(found " not in rule:
            rule = f"the command line: is as {self.prog} takes it (found an error: {message})"
        raise Usage(f"{rule}; see {self.prog} --help")


def build_parser() -> Parser:
    """All commands and their options."""
    parser = Parser(
        prog="stepwell", description="ONNX models on an emulated NPU.", epilog="IR: see stepwell-opt --help"
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    for add in _COMMANDS.values():
        add(commands)
    return parser


def _command(commands: "argparse._SubParsersAction[Parser]", name: str, run: str, about: str) -> Parser:  # pyright: ignore[reportPrivateUsage]
    """A sub-command; `run` is `module:function`, imported when it is called."""
    parser = commands.add_parser(name, help=about, description=about)
    parser.set_defaults(run=run)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")
    parser.add_argument("--debug", action="store_true", help="print a traceback when something fails")
    return parser


def _compile_options(parser: Parser, weights: bool = True) -> None:
    add = parser.add_argument
    add("--target", default="edge", metavar="NAME", help="a shipped target or a .toml file (default: edge)")
    add("--no-host", dest="host", action="store_false", help="refuse what the device does not run; name all of it")
    add("--shape", action="append", default=[], type=parse_shape, metavar="INPUT=D0,D1,…", help="the shape of an input")
    about = "bind an input to a constant: V, V0,V1,… or @FILE.npy; the model has it as an input no longer"
    add("--const", action="append", default=[], type=parse_const, metavar="INPUT=VALUE", help=about)
    add("--precision", default="fp16", choices=("fp16", "bf16", "fp32"), help="of float edges (default: fp16)")
    add("--cores", type=int, metavar="N", help="use fewer cores than the target has")
    if weights:
        add("--weights", type=Path, metavar="FILE", help="of an .mlir model: the .safetensors file with its weights")


def _input_options(parser: Parser) -> None:
    add = parser.add_argument
    add("--input", action="append", default=[], metavar="INPUT=FILE", help=".npy, .npz or .png; a .npz alone has all")
    add("--random", type=parse_seed, metavar="SEED", help="fill inputs that are not given with seeded values")
    add("--mean", type=parse_number, default=0.0, help="pixels of a .png become (x/255 - mean)/std (default: 0)")
    add("--std", type=parse_divisor, default=1.0, help="see --mean (default: 1)")
    add("--bgr", action="store_true", help="the model takes blue first")


def _add_compile(commands: "argparse._SubParsersAction[Parser]") -> None:  # pyright: ignore[reportPrivateUsage]
    parser = _command(commands, "compile", "commands:compile_model", "Compiles an ONNX model into one file.")
    parser.add_argument("model", type=Path, metavar="MODEL", help="an .onnx file, or IR text of any level (.mlir)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: MODEL with suffix .stw")
    _compile_options(parser)
    parser.add_argument("--keep-ir", action="store_true", help="store the IR of each stage in the file")
    parser.add_argument("--verify-each", action="store_true", help="check the IR after every pass")
    parser.add_argument("--dump-dir", type=Path, metavar="DIR", help="write the IR after every pass here")


def _add_assess(commands: "argparse._SubParsersAction[Parser]") -> None:  # pyright: ignore[reportPrivateUsage]
    about = "Says of every node whether the device runs it, the CPU, or neither, and why. Weights are not read."
    parser = _command(commands, "assess", "assess:assess_model", about)
    parser.add_argument("model", type=Path, metavar="MODEL", help="an .onnx file")
    _compile_options(parser, weights=False)


def _add_run(commands: "argparse._SubParsersAction[Parser]") -> None:  # pyright: ignore[reportPrivateUsage]
    parser = _command(commands, "run", "commands:run_model", "Runs a model on the emulated device.")
    parser.add_argument("model", type=Path, metavar="MODEL", help="a .stw, or an .onnx or .mlir to compile first")
    _input_options(parser)
    add = parser.add_argument
    add("-o", "--output", type=Path, metavar="FILE.npz", help="write the outputs here")
    add("--verify", type=Path, metavar="ONNX", help="compare with what onnxruntime makes of this model")
    add("--seed", type=parse_seed, metavar="N", help="run a legal interleaving of the engines, picked by N")
    add("--profile", action="store_true", help="print the cycles of each ONNX node")
    _compile_options(parser)


def _add_check(commands: "argparse._SubParsersAction[Parser]") -> None:  # pyright: ignore[reportPrivateUsage]
    about = "Checks a program's synchronisation: does it mean the same in every interleaving of the engines?"
    parser = _command(commands, "check", "check:check_model", about)
    parser.add_argument("model", type=Path, metavar="MODEL", help="a .stw, or an .onnx or .mlir to compile first")
    _compile_options(parser)


def _add_compare(commands: "argparse._SubParsersAction[Parser]") -> None:  # pyright: ignore[reportPrivateUsage]
    about = "Runs a model at every stage and names the first op and stage that departs."
    parser = _command(commands, "compare", "compare:compare_model", about)
    parser.add_argument("model", type=Path, metavar="MODEL", help="an .onnx file")
    _input_options(parser)
    _compile_options(parser)
    _cosine_option(parser)


def _cosine_option(parser: Parser) -> None:
    about = f"least cosine against onnxruntime, from 0 to 1 (default: {COSINE})"
    parser.add_argument("--cosine", type=parse_cosine, default=COSINE, metavar="C", help=about)


def _add_extract(commands: "argparse._SubParsersAction[Parser]") -> None:  # pyright: ignore[reportPrivateUsage]
    about = "Cuts a part out of a model, with its inputs as they are inside the whole."
    parser = _command(commands, "extract", "extract:extract_model", about)
    add = parser.add_argument
    add("model", type=Path, metavar="MODEL", help="an .onnx file")
    named = "values, or nodes for their"
    add("--from", dest="starts", action="append", default=[], metavar="A,B,…", help=f"{named} inputs (default: inputs)")
    add("--to", dest="ends", action="append", default=[], metavar="C,D,…", help=f"{named} outputs (default: outputs)")
    add("-o", "--output", type=Path, metavar="FILE.onnx", help="default: MODEL-part.onnx; inputs go to FILE.npz")
    _input_options(parser)
    _compile_options(parser)


def _add_reduce(commands: "argparse._SubParsersAction[Parser]") -> None:  # pyright: ignore[reportPrivateUsage]
    about = (
        "Shrinks a model that fails to compile, or departs from onnxruntime, to the smallest part that does the same."
    )
    parser = _command(commands, "reduce", "reduce:reduce_model", about)
    add = parser.add_argument
    add("model", type=Path, metavar="MODEL", help="an .onnx file")
    add("-o", "--output", type=Path, metavar="FILE.onnx", help="default: MODEL-reduced.onnx; inputs go to FILE.npz")
    add("--timeout", type=parse_duration, default=300.0, metavar="S", help="what takes longer hangs (default: 300)")
    _input_options(parser)
    parser.set_defaults(random=0)
    _compile_options(parser)
    _cosine_option(parser)


def _add_inspect(commands: "argparse._SubParsersAction[Parser]") -> None:  # pyright: ignore[reportPrivateUsage]
    parser = _command(commands, "inspect", "inspect:inspect_artifact", "Shows what is in a compiled model.")
    parser.add_argument("artifact", type=Path, metavar="FILE.stw")
    parser.add_argument(
        "--kernel",
        action="append",
        default=[],
        metavar="NAME",
        help="disassemble a kernel, with the ONNX node of each row",
    )
    parser.add_argument("--steps", action="store_true", help="list the launches")


def _add_targets(commands: "argparse._SubParsersAction[Parser]") -> None:  # pyright: ignore[reportPrivateUsage]
    about = "Lists targets, shows one, or checks the description of one."
    parser = _command(commands, "targets", "targets:targets", about)
    parser.add_argument("action", choices=("list", "show", "validate"), nargs="?", default="list")
    parser.add_argument("target", nargs="?", metavar="TARGET", help="a shipped target or a .toml file")


_COMMANDS = {
    "compile": _add_compile,
    "run": _add_run,
    "assess": _add_assess,
    "check": _add_check,
    "compare": _add_compare,
    "extract": _add_extract,
    "reduce": _add_reduce,
    "inspect": _add_inspect,
    "targets": _add_targets,
}


def parse_seed(text: str) -> int:
    """A whole number of 63 bits."""
    if not text.isdecimal() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 2^63 - 1 (found {text!r})")
    return int(text)


def parse_number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a number (found {text!r})")
    return value


def parse_cosine(text: str) -> float:
    """A number from 0 to 1."""
    value = parse_number(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must be from 0 to 1 (found {text!r})")
    return value


def parse_divisor(text: str) -> float:
    """A finite number other than 0."""
    value = parse_number(text)
    if value == 0:
        raise argparse.ArgumentTypeError("must not be 0, as pixels are divided by it (found 0)")
    return value


def parse_duration(text: str) -> float:
    """Seconds, more than 0."""
    value = parse_number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"must be more than 0 s (found {text!r})")
    return value


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """`x=1,3,48,320`; `x=` is a scalar."""
    name, equals, sizes = text.rpartition("=")
    parts = [part.strip() for part in sizes.split(",")] if sizes else []
    if not equals or not name or not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"must be INPUT=D0,D1,… in whole numbers (found {text!r})")
    return name, tuple(int(part) for part in parts)


def parse_const(text: str) -> tuple[str, str]:
    """`sr=16000`, as name and text."""
    from .constants import parse

    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def main(arguments: Sequence[str] | None = None) -> int:
    """The entry point; gives the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            return _run(given)
    except BrokenPipeError:
        # Whoever read our output has left: nothing to say, and nothing to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - told in one form, by its kind
        failure = describe(error)
        if "--json" in given:
            told = {
                "kind": failure.kind,
                "problems": failure.problems,
                "parts": [problem.to_dict() for problem in failure.problems if isinstance(problem, Problem)],
                "exit_code": failure.exit_code,
            }
            print(json.dumps({"error": told}, ensure_ascii=False))
        tell(failure, error, "--debug" in given)
        return failure.exit_code


def _warn(message: Warning | str, category: type[Warning], *_: object) -> None:
    """In the form of errors."""
    print(f"stepwell: warning: {message}", file=sys.stderr)


def _run(given: Sequence[str]) -> int:
    parser = build_parser()
    args = parser.parse_args(given)
    if args.version:
        from .. import __version__

        print(__version__)
        return OK
    if not hasattr(args, "run"):
        parser.print_help()
        return OK
    module, name = args.run.split(":")
    command: Run = getattr(import_module(f".{module}", __package__), name)
    report = command(args, Progress(quiet=args.quiet))
    print(json.dumps(finite(report.data), ensure_ascii=False, indent=1) if args.json else report.text)
    sys.stdout.flush()
    return report.exit_code


def finite(value: Any) -> Any:
    """JSON has no NaN and no infinity; null stands for them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(each) for key, each in cast(Mapping[str, Any], value).items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in cast(Sequence[Any], value)]
    return value


if __name__ == "__main__":
    sys.exit(main())
