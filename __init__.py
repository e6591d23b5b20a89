"""Stepwell: from an ONNX model, down three executable dialects, to an emulated NPU.

    import stepwell

    artifact = stepwell.compile("model.onnx", target="edge")
    result = stepwell.run(artifact, {"x": x})

Each name is imported on first use, so that `import stepwell` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .driver.api import compile, lower
    from .driver.assess import assess
    from .runtime.artifact import Artifact, load
    from .runtime.device import Device, run
    from .runtime.target import Target

__version__ = "0.1.0"
__all__ = ["assess", "compile", "load", "run", "lower", "Artifact", "Device", "Target", "__version__"]

_HOMES = {
    "assess": ".driver.assess",
    "compile": ".driver.api",
    "lower": ".driver.api",
    # What runs an artifact needs no compiler: these live in the runtime.
    "load": ".runtime.artifact",
    "run": ".runtime.device",
    "Artifact": ".runtime.artifact",
    "Device": ".runtime.device",
    "Target": ".runtime.target",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
