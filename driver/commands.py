"""`stepwell compile` and `stepwell run`."""

import argparse
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, cast
from zipfile import ZipFile

import numpy as np

from ..runtime.artifact import Artifact, load
from ..runtime.cpu import HostPart
from ..runtime.model import Model
from ..runtime.plan import Tensor
from ..runtime.problem import Kind
from . import inputs as files
from .agreement import Agreement, Array, agree_all, onnxruntime_run
from .constants import arrays_of, constants_of
from .errors import PROBLEM, CommandError
from .inputs import Pixels, Wanted
from .progress import Progress
from .report import OK, Report, names, plural, seconds, shape, size, table

if TYPE_CHECKING:
    from .passmanager import Settings

_BORDER = "inputs and outputs, as they are cast"
"""Work of no node."""
_MOST_NODES = 12


def compile_model(args: argparse.Namespace, progress: Progress) -> Report:
    """Writes the artifact of a model."""
    start = time.process_time()
    need_file(args.model)
    output: Path = args.output or args.model.with_suffix(".stw")
    _check_replaceable(output)
    if output.exists() and args.model.exists() and output.samefile(args.model):
        raise CommandError(
            f"-o {output}: is a file of its own (found the model itself, which would be lost); name another file"
        )
    artifact = compile_onnx(args.model, args, progress, _settings(args), keep_ir=args.keep_ir)
    try:
        path = artifact.save(output)
    except OSError as error:
        raise CommandError(_unwritable(output, error)) from None
    cpu = time.process_time() - start
    launches = sum(len(plan.launches) for plan in artifact.plans)
    weights, arena = artifact.bytes_of("weight"), artifact.plans[0].arena_bytes
    share = artifact.model.profile().host_share if artifact.host else None
    data = {
        "file": str(path),
        "bytes": path.stat().st_size,
        "target": artifact.target.name,
        "precision": args.precision,
        "kernels": len(artifact.kernels),
        "launches": launches,
        "arena_bytes": arena,
        "weight_bytes": weights,
        "cpu_seconds": cpu,
        "host": host_data(artifact.host),
        "host_share": share,
    }
    parts = host_lines(artifact.host, share)
    text = (
        f"{path}: {size(path.stat().st_size)} for {artifact.target.name}, {args.precision}; {cpu:.1f} s of CPU\n"
        f"  {plural(len(artifact.kernels), 'kernel')}, {plural(launches, 'launch')}; "
        f"weights {size(weights)}, arena {size(arena)}\n"
        + "".join(f"{line}\n" for line in parts)
        + f"next: {_next_commands(path)}"
    )
    return Report(data, text)


def _next_commands(path: Path) -> str:
    """What can be done with an artifact; only a .stw is known for one by its name."""
    if path.suffix != ".stw":
        return f"rename it to {path.with_suffix('.stw').name}; stepwell run and inspect know an artifact by this suffix"
    return f"stepwell run {quote(str(path))} --random 0   or   stepwell inspect {quote(str(path))}"


def need_file(model: Path) -> None:
    """Raises `CommandError` for what is no file."""
    if not model.is_file():
        found = "a folder" if model.is_dir() else "no such file"
        rule = f"{model}: is a file (found {found}); name an .onnx model or IR text (.mlir)"
        raise CommandError(rule, kind=Kind.FILE)


def compile_onnx(
    model: Path, args: argparse.Namespace, progress: Progress, settings: "Settings | None" = None, keep_ir: bool = False
) -> Artifact:
    """The artifact of an ONNX file, by the options of a command. Raises `CommandError` and the compiler's errors."""
    need_file(model)
    if model.suffix == ".stw":
        raise CommandError(f"{model}: is a model (found one that is compiled already); name the .onnx model")
    with progress.step(f"compiling {model.name} for {args.target}"):
        from . import api

        return api.compile(
            model,
            **chosen(args),
            weights=args.weights,
            keep_ir=keep_ir,
            settings=settings,
            on_stage=lambda stage: setattr(progress, "detail", stage),
        )


def chosen(args: argparse.Namespace) -> dict[str, Any]:
    """What the arguments say of how a model is compiled."""
    taken = {name: getattr(args, name) for name in ("target", "precision", "cores", "host")}
    return {**taken, "shapes": shapes_of(args), "constants": constants_of(args)}


def shapes_of(args: argparse.Namespace) -> dict[str, tuple[int, ...]]:
    """The shapes of `--shape` arguments. Raises `CommandError` for a name that is given twice."""
    counts = Counter(name for name, _ in args.shape)
    twice = [
        f"--shape {name}: is given once (found {count} times); leave out the others"
        for name, count in counts.items()
        if count > 1
    ]
    if twice:
        raise CommandError(*twice)
    return dict(args.shape)


def _settings(args: argparse.Namespace) -> "Settings":
    from .passmanager import Settings

    return Settings(verify="each" if args.verify_each else "end", dump_dir=args.dump_dir)


def run_model(args: argparse.Namespace, progress: Progress) -> Report:
    """Runs an artifact, or a model that it compiles first, and says what came out."""
    if args.output and args.output.suffix != ".npz":
        rule = f"-o {args.output}: must end in .npz (found {args.output.suffix or 'no suffix'})"
        raise CommandError(f"{rule}; write -o FILE.npz")
    if args.output:
        _check_replaceable(args.output)
    artifact = artifact_of(args, progress)
    model = artifact.model
    arrays = read_inputs(args, model.inputs)
    announce_compilation(progress)
    with progress.step(f"running on the emulated {artifact.target.name}"):
        outputs = model.run(arrays, seed=args.seed, on_launch=progress.at)
    agreements = _verify(args, artifact, arrays, outputs, progress) if args.verify else None
    if args.output:
        write_arrays(args.output, outputs)
    with progress.step("timing"):
        data = _run_data(model, outputs, agreements)
    text = _run_text(model, outputs, agreements, args.profile)
    failed = agreements is not None and not all(agreement.holds for agreement in agreements)
    return Report(data, text, PROBLEM if failed else OK)


def artifact_of(args: argparse.Namespace, progress: Progress) -> Artifact:
    """A compiled file, or what a model compiles to."""
    if args.model.suffix != ".stw":
        return compile_onnx(args.model, args, progress)
    with progress.step("verifying the file"):
        artifact = load(args.model)
    _check_settled(args, artifact)
    return artifact


def _check_settled(args: argparse.Namespace, artifact: Artifact) -> None:
    """Raises `CommandError` for options that come too late for a compiled file."""
    late: list[str] = []
    if args.target not in ("edge", artifact.target.name):
        late.append(f"--target {args.target}")
    if args.precision not in ("fp16", artifact.metadata.options.get("precision")):
        late.append(f"--precision {args.precision}")
    if args.cores not in (None, artifact.cores or artifact.target.cores):
        late.append(f"--cores {args.cores}")
    late += ["--no-host"] * (not args.host)
    late += ["--shape"] * bool(args.shape) + ["--const"] * bool(args.const) + ["--weights"] * (args.weights is not None)
    if late:
        rule = f"{args.model}: is compiled already, with options for {artifact.target.name}"
        raise CommandError(f"{rule} (found {', '.join(late)}); give these options to stepwell compile")


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """An .npz file, in whole or not at all. Raises `CommandError`."""
    content = BytesIO()
    stored = {name: _storable(path, name, array) for name, array in arrays.items()}
    with ZipFile(content, "w") as archive:
        for name, array in stored.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_bytes(content.getbuffer())
        partial.replace(path)
    except OSError as error:
        raise CommandError(_unwritable(path, error)) from None
    finally:
        partial.unlink(missing_ok=True)


def _storable(path: Path, name: str, value: Any) -> Array:
    """An array that needs no pickle: texts get a width in common. Raises `CommandError`."""
    if not isinstance(value, np.ndarray | np.generic):
        rule = f"{path}: an .npz file holds arrays (found {name}, a {type(value).__name__})"
        raise CommandError(f"{rule}; run the model from Python for this output")
    array = np.asanyarray(value)
    if array.dtype != np.object_:
        return array
    texts = array.astype(np.str_)
    if texts.tolist() != array.tolist():
        texts_rule = f"{path}: an .npz file holds texts without zeros at their ends (found some in {name})"
        raise CommandError(f"{texts_rule}; run the model from Python for this output")
    return texts


def _check_replaceable(path: Path) -> None:
    """Raises `CommandError` for a folder or a device: a file is written beside its place and moved there."""
    if path.exists() and not path.is_file():
        found = "a folder" if path.is_dir() else "a device"
        raise CommandError(f"-o {path}: must be a file (found {found}); name a file")


def _unwritable(path: Path, error: OSError) -> str:
    return f"-o {path}: can be written (found {error.strerror or error}); name a file in a folder that can be written"


def announce_compilation(progress: Progress) -> None:
    """From now on, shows which part of the emulator is being compiled because it is used for the first time."""
    from ..runtime import jit

    def listen(name: str, took: float | None) -> None:
        progress.detail = f"(first use: compiling {name})" if took is None else ""

    jit.on_compile(listen)


def read_inputs(args: argparse.Namespace, tensors: Sequence[Tensor]) -> dict[str, Array]:
    """The arrays for inputs, from files and from `--random`. Raises one `CommandError` for all that are missing."""
    wanted = {tensor.name: Wanted(tensor.border_dtype, tensor.shape) for tensor in tensors}
    found = files.read(args.input, wanted, Pixels(args.mean, args.std, args.bgr))
    if both := [name for name, _ in args.const if name in found]:
        rule = "is a constant or an input (found both in --const and in a file of --input)"
        raise CommandError(*(f"{name}: {rule}; leave one of them out" for name in both))
    missing = {name: spec for name, spec in wanted.items() if name not in found}
    if args.random is not None:
        return files.random(missing, args.random) | found
    if missing:
        others = [name for name in found if name not in wanted]
        raise CommandError(*(_missing(name, spec, others) for name, spec in missing.items()))
    return found


def _missing(name: str, spec: Wanted, others: Sequence[str]) -> str:
    """What is wrong if an input is not given; `others` are arrays that belong to no input."""
    rule = f"{name}: must be given, {spec.dtype}{list(spec.shape)}"
    if others:
        return f"{rule} (found only {names(others, 8)}); rename the array, or write --input {name}=FILE"
    return f"{rule} (found nothing); write --input {name}=FILE, or --random 0"


def _verify(
    args: argparse.Namespace,
    artifact: Artifact,
    arrays: Mapping[str, Array],
    outputs: Mapping[str, Array],
    progress: Progress,
) -> list[Agreement]:
    path: Path = args.verify
    if not path.is_file():
        raise CommandError(f"--verify {path}: is a file (found none); name the .onnx model", kind=Kind.FILE)
    with progress.step("running onnxruntime"):
        from ..frontend.model_file import read_model

        # by its path, for a model with weights in other files
        proto, _ = read_model(path, mapped=True)
        bound = arrays_of(artifact, proto.graph, constants_of(args))
        reference = onnxruntime_run(proto, {**arrays, **bound}, path=path)
    if reference.keys() != outputs.keys():
        found, expected = ", ".join(reference), ", ".join(outputs)
        raise CommandError(f"--verify {path}: must have the outputs {expected} (found {found}); name the same model")
    for name, value in reference.items():
        there, here = _form(value)[1], _form(outputs[name])[1]
        if there != here and not isinstance(value, list | dict):
            found, expected = shape(there), shape(here)
            rule = f"--verify {path}: {name} must have the shape {expected} (found {found})"
            raise CommandError(f"{rule}; name the model that was compiled", kind=Kind.SHAPE)
    return agree_all(outputs, reference)


def _run_data(model: Model, outputs: Mapping[str, Array], agreements: list[Agreement] | None) -> dict[str, Any]:
    profile = model.profile()
    return {
        "outputs": {
            name: {"dtype": _form(value)[0], "shape": list(_form(value)[1]), **_statistics(value)}
            for name, value in outputs.items()
        },
        "target": profile.target.name,
        "cores": profile.cores,
        "cycles": profile.cycles,
        "seconds": profile.seconds,
        "cube_utilisation": profile.cube_utilisation,
        "port_utilisation": profile.port_utilisation,
        "launches": len(profile.launches),
        "host": host_data(model.artifact.host),
        "host_share": profile.host_share,
        "nodes": [{"nodes": nodes, "cycles": cycles} for nodes, cycles in profile.by_node().items()],
        "overflow": [
            {"nodes": s.nodes, "kernel": s.kernel, "overflow": s.overflow, "invalid": s.invalid, "wide": s.wide}
            for s in model.sticky()
        ],
        "agreement": [agreement.to_dict() for agreement in agreements] if agreements is not None else None,
    }


def _form(value: Any) -> tuple[str, tuple[int, ...]]:
    """The type and the extents of an output; of a sequence or a map, how many items it has."""
    if isinstance(value, np.ndarray | np.generic):
        return str(value.dtype), value.shape
    if isinstance(value, list | dict):
        return "sequence" if isinstance(value, list) else "map", (len(cast("list[Any]", value)),)
    return "nothing" if value is None else type(value).__name__, ()


def _statistics(array: Any) -> dict[str, float]:
    if not isinstance(array, np.ndarray) or not array.size:
        return {}
    if array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16":
        return {}
    values = array.astype(np.float64)
    return {"min": float(values.min()), "mean": float(values.mean()), "max": float(values.max())}


def _run_text(model: Model, outputs: Mapping[str, Array], agreements: list[Agreement] | None, with_nodes: bool) -> str:
    profile = model.profile()
    rows = list[tuple[object, ...]]()
    for name, value in outputs.items():
        numbers = [f"{number:.6g}" for number in _statistics(value).values()] or ["–"] * 3
        kind, extents = _form(value)
        rows.append((name, kind, shape(extents), *numbers))
    lines = [table(("output", "type", "shape", "min", "mean", "max"), rows, indent="")]
    if agreements is not None:
        lines += ["", "against onnxruntime:"]
        lines += [f"  {'' if agreement.holds else 'DEPARTS '}{agreement}" for agreement in agreements]
    lines += ["", time_line(model), *host_lines(model.artifact.host, profile.host_share), overflow_line(model)]
    if with_nodes:
        by_node = list(profile.by_node().items())
        others = {"the CPU, and transfers": profile.host_cycles, "copies between launches": profile.copy_cycles}
        by_node += [((what,), cycles) for what, cycles in others.items() if cycles]
        by_node.sort(key=lambda item: -item[1])
        rows = [
            (f"{cycles:,.0f}", f"{cycles / profile.cycles:.1%}", names(nodes) if nodes else _BORDER)
            for nodes, cycles in by_node[:_MOST_NODES]
        ]
        rest = f"\n  and {len(by_node) - _MOST_NODES} more; all with --json" if len(by_node) > _MOST_NODES else ""
        lines += ["", table(("cycles", "share", "nodes"), rows) + rest]
    return "\n".join(lines)


def host_data(parts: Sequence[HostPart]) -> list[list[dict[str, str]]]:
    """The nodes of each part on the CPU."""
    return [
        [{"name": node.name, "operator": node.operator, "reason": node.reason} for node in part.nodes] for part in parts
    ]


def host_lines(parts: Sequence[HostPart], share: float | None = None) -> list[str]:
    """What runs on the CPU, and why; nothing if the device does all."""
    nodes = [node for part in parts for node in part.nodes]
    if not nodes:
        return []
    time = "" if share is None else f", {share:.1%} of the time"
    listed = [f"  {node.name} ({node.operator}): {node.reason}" for node in nodes[:_MOST_NODES]]
    rest = [f"  and {len(nodes) - _MOST_NODES} more; all with --json"] if len(nodes) > _MOST_NODES else []
    return [f"{plural(len(nodes), 'node')} on the CPU, in {plural(len(parts), 'part')}{time}:", *listed, *rest]


def time_line(model: Model) -> str:
    """Cycles, time, utilisation."""
    profile = model.profile()
    return (
        f"{profile.cycles:,.0f} cycles on {profile.target.name} ({plural(profile.cores, 'core')}), "
        f"{seconds(profile.seconds)} at {profile.target.clock_mhz:g} MHz; "
        f"cube {profile.cube_utilisation:.1%} used, memory port {profile.port_utilisation:.1%}"
    )


def overflow_line(model: Model) -> str:
    """What overflowed, became NaN, or is an integer that 32 bits do not hold, by ONNX nodes."""
    sticky = model.sticky()
    floats = [
        f"  {names(s.nodes) if s.nodes else _BORDER}: {plural(s.overflow, 'overflow')}, {plural(s.invalid, 'new NaN')}"
        for s in sticky
        if s.overflow or s.invalid
    ]
    integers = [f"  {names(s.nodes)}: {plural(s.wide, 'result')} beyond 32 bits" for s in sticky if s.wide]
    lines = ["overflowed:", *floats[:_MOST_NODES]] if floats else []
    if integers:
        lines += ["integers that left 32 bits (arithmetic wrapped, casts clamped):", *integers[:_MOST_NODES]]
    return "\n".join(lines or ["nothing overflowed"])
