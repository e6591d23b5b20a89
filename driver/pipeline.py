"""The story of a compilation: read this file first.

    model.onnx ─ frontend ─► graph ─ passes ─► tile ─ passes ─► npu ─ backend ─► model.stw

An ONNX model becomes a module of the **graph** dialect: tensors in SSA form, one op for each ONNX node. Its passes make
of it a list of launches of fused kernels. Each kernel becomes a function of the **tile** dialect: loops over tiles that
are moved on chip, and the compute between. Each of those becomes a program of the **npu** dialect: one op per
instruction.

A pass `some-name` is the class `SomeName` in `some_name.py`, in the folder its stage names; `docs/passes.md` shows each
one before and after. Every stage's IR can be printed (`stepwell-opt model.onnx -p stage-graph`) and executed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..passes.context import CompileContext
from .passmanager import DEFAULT, PipelineError, Settings, Timing, run


@dataclass(frozen=True, slots=True)
class Stage:
    """A run of passes within one dialect, and what may be left when it ends."""

    name: str
    folder: str
    """Where its passes live."""
    steps: tuple[tuple[str, str], ...]
    """(pass, why), in order."""
    leaves: frozenset[str]
    """Dialects that may be left behind."""


GRAPH = Stage(
    "graph",
    "passes",
    (
        # Up to `precision`, a pass may change bits: it works on the mathematics of the model.
        ("fold", "compute what is constant: shapes, weights; drop identities and what is dead"),
        ("recognise", "find layer norm, GELU, hardswish … in what exporters made of them; fold scales into weights"),
        ("fold", "fold what recognising left constant"),
        ("precision", "give each edge its type; from here on, no pass changes a bit"),
        # From here on, the same bits in another form.
        ("decompose", "rewrite ONNX's operators into the primitives that a kernel can be made of"),
        ("layout", "move transposes until they meet and cancel; transpose weights now"),
        ("fold", "drop what the moves left constant or dead"),
        ("border", "64-bit integers stop at the border; every output is written by an op"),
        ("host-parts", "join what the CPU runs into as few parts as possible"),
        ("fuse", "group ops into kernels, so that values between them stay on chip"),
        ("outline-kernels", "make each kernel a function; equal kernels are one"),
    ),
    frozenset({"builtin", "func", "graph"}),
)

TILE = Stage(
    "tile",
    "passes",
    (("graph-to-tile", "each kernel becomes loops over tiles, sized and buffered by the target's numbers"),),
    frozenset({"builtin", "func", "graph", "tile"}),
)

NPU = Stage(
    "npu",
    "backend",
    (
        ("select", "each tile operation becomes the instructions of its engine"),
        ("synchronise", "add the tokens that order the engines, which run on their own"),
        ("allocate", "give buffers on chip their addresses"),
    ),
    frozenset({"builtin", "func", "graph", "npu"}),
)

STAGES = (GRAPH, TILE, NPU)

ORDER: tuple[tuple[str, str, str], ...] = (
    ("fold", "recognise", "patterns look at constants, which must be constants and not shape arithmetic"),
    (
        "recognise",
        "precision",
        "folding a scale into weights changes bits, and a composite decides which edges are f32",
    ),
    ("precision", "decompose", "a composite takes the types of its edges and keeps f32 inside"),
    ("decompose", "layout", "the transposes to cancel come from decomposing convolutions and pools"),
    ("border", "fuse", "a cast at the border is none of a kernel's business"),
    ("layout", "fuse", "a transpose between two ops keeps them from being one kernel"),
    ("fuse", "outline-kernels", "only a finished kernel can be compared with others"),
    ("outline-kernels", "graph-to-tile", "each kernel is lowered once, however often it is launched"),
    ("graph-to-tile", "select", "instructions come from tiles"),
    ("select", "synchronise", "tokens stand between instructions"),
    ("synchronise", "allocate", "tokens are derived from buffers, which become addresses"),
)
"""Pairs whose order matters, with the reason."""


def check_order(steps: Sequence[str], order: Iterable[tuple[str, str, str]] = ORDER) -> None:
    """Raises `PipelineError` for a pair that stands in the wrong order: a pass needs another before its first run."""
    for first, then, reason in order:
        if first in steps and then in steps and steps.index(first) > steps.index(then):
            raise PipelineError(f"{first} must come before {then}: {reason}")


check_order([name for stage in STAGES for name, _ in stage.steps])


def load_pass(name: str, folder: str = "passes") -> type[ModulePass]:
    """The class of a pass, from its name."""
    module = import_module(f"..{folder}.{name.replace('-', '_')}", __package__)
    return getattr(module, "".join(word.capitalize() for word in name.split("-")))


def stage(name: str) -> Stage:
    """A stage by name. Raises `PipelineError`."""
    for candidate in STAGES:
        if candidate.name == name:
            return candidate
    raise PipelineError(f"{name}: is a stage (found none of this name); there are {', '.join(s.name for s in STAGES)}")


def stage_passes(this: Stage, options: Mapping[str, Any] | None = None) -> list[ModulePass]:
    """The passes of a stage. An option goes to every pass that has it: `{"policy": "fp32"}`. Raises `PipelineError`."""
    classes = [load_pass(name, this.folder) for name, _ in this.steps]
    options = dict(options or {})
    known = {field.name for cls in classes for field in fields(cls)}
    if unknown := sorted(set(options) - known):
        raise PipelineError(
            f"stage {this.name}: options are those of its passes (found {', '.join(unknown)}); "
            f"known: {', '.join(sorted(known))}"
        )
    return [
        cls(**{key: value for key, value in options.items() if key in {f.name for f in fields(cls)}}) for cls in classes
    ]


def check_leaves(module: ModuleOp, this: Stage) -> None:
    """Raises `PipelineError` if the stage left an op of another dialect."""
    left = sorted({op.name for op in module.walk() if op.name.split(".")[0] not in this.leaves})
    if left:
        raise PipelineError(
            f"stage {this.name} must leave only {', '.join(sorted(this.leaves))} (found {', '.join(left)})"
        )


def lower(
    ctx: CompileContext,
    module: ModuleOp,
    upto: str = "npu",
    options: Mapping[str, Any] | None = None,
    settings: Settings = DEFAULT,
) -> list[Timing]:
    """Takes an imported model through the stages up to and including `upto`, in place. Raises `PipelineError`.

    Options go to the passes that have them, of whatever stage.
    """
    return [timing for this in upto_stage(upto) for timing in run_stage(ctx, module, this, options, settings)]


def upto_stage(name: str) -> Iterator[Stage]:
    """The stages up to and including one."""
    last = stage(name)
    for this in STAGES:
        yield this
        if this is last:
            return


def run_stage(
    ctx: CompileContext,
    module: ModuleOp,
    this: Stage,
    options: Mapping[str, Any] | None = None,
    settings: Settings = DEFAULT,
) -> list[Timing]:
    """One stage, and the check of what it leaves behind."""
    known = {f.name for name, _ in this.steps for f in fields(load_pass(name, this.folder))}
    passes = stage_passes(this, {key: value for key, value in (options or {}).items() if key in known})
    if settings.dump_dir is not None:
        settings = replace(settings, dump_dir=settings.dump_dir / this.name)
    timings = run(ctx, module, passes, settings)
    if settings.stop_after is None:
        check_leaves(module, this)
    return timings
