"""The Python interface: a model in, an artifact or the IR of a stage out.

    artifact = compile("model.onnx", target="edge", shapes={"x": [1, 3, 48, 320]})
    module = lower("model.onnx", to="tile", target="edge")        # print it, edit it, and
    artifact = compile(module, target="edge")                     # go on from there

Running an artifact needs none of this: `runtime.artifact.load`, `runtime.device.run`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .errors import CommandError

if TYPE_CHECKING:
    from onnx import ModelProto
    from xdsl.dialects.builtin import ModuleOp

    from ..dialects.weights import WeightStore
    from ..runtime.artifact import Artifact
    from ..runtime.target import Target
    from .passmanager import Settings

Level = Literal["graph", "tile", "npu"]


def compile(
    model: "str | Path | bytes | ModelProto | ModuleOp",
    *,
    target: "str | Path | Target" = "edge",
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, Any] | None = None,
    precision: str = "fp16",
    cores: int | None = None,
    weights: str | Path | None = None,
    linked: bool = True,
    host: bool = True,
    keep_ir: bool = False,
    settings: "Settings | None" = None,
    on_stage: Callable[[str], None] | None = None,
    **options: Any,
) -> "Artifact":
    """An ONNX model (path, bytes, proto), or a module or IR text (path) of any level, compiled for a target.

    `shapes` gives inputs their sizes; `constants` binds inputs to values (a number for all elements, an array, or the
    path of an .npy file), and they are inputs no longer; `weights` is the file with the arrays that IR text names;
    `cores` uses fewer than the target has; `linked` False puts a barrier before each launch; `host` False refuses what
    the device does not run, instead of leaving it to the CPU; `keep_ir` stores the IR of each stage in the artifact;
    other options go to the passes that have them. Raises errors of the user that name nodes and say what to do:
    `CommandError`, `PipelineError`, `TargetError`, those of the importer, `ArgumentError` for one of another type.
    """
    from .compilation import compiled_to, link, options_of

    source: dict[str, Any] = {"target": target, "shapes": shapes, "constants": constants, "cores": cores}
    chosen = options_of(precision, cores, options, compile.__kwdefaults__)
    work = compiled_to("npu", model, chosen, settings, on_stage, keep_ir, host=host, weights=weights, **source)
    return link(work, {"precision": precision} | {key: str(value) for key, value in options.items()}, cores, linked)


def lower(
    model: "str | Path | bytes | ModelProto | ModuleOp",
    *,
    to: Level,
    target: "str | Path | Target" = "edge",
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, Any] | None = None,
    precision: str = "fp16",
    cores: int | None = None,
    host: bool = True,
    settings: "Settings | None" = None,
    **options: Any,
) -> "ModuleOp":
    """The module after a stage. It may be edited, and given to `lower`, `compile` or `weights_of` again."""
    from .compilation import compiled_to, options_of, remember
    from .pipeline import STAGES

    if to not in [stage.name for stage in STAGES]:
        raise CommandError(
            f"to: must be one of {', '.join(stage.name for stage in STAGES)} (found {to!r}); name a stage"
        )
    source: dict[str, Any] = {"target": target, "shapes": shapes, "constants": constants, "cores": cores}
    chosen = options_of(precision, cores, options, lower.__kwdefaults__)
    work = compiled_to(to, model, chosen, settings, host=host, **source)
    return remember(work)


def weights_of(module: "ModuleOp") -> "WeightStore":
    """The weights of a module that `lower` returned. Raises `CommandError` for any other."""
    from xdsl.dialects.builtin import ModuleOp

    from .compilation import origin_of

    origin = origin_of(module) if isinstance(module, ModuleOp) else None
    if origin is None:
        raise CommandError(
            "module: must come from stepwell.lower (found another); for IR text use stepwell-opt --weights"
        )
    return origin.ctx.weights
