"""How far two results agree, and what onnxruntime says: the reference that everyone has."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from ..runtime.cpu import explained
from .errors import CommandError
from .report import COSINE, beside

if TYPE_CHECKING:
    from onnx import ModelProto

Array = NDArray[Any]
_NUMBER = (np.ndarray, np.generic, int, float)


@dataclass(frozen=True, slots=True)
class Agreement:
    """One output against its reference."""

    name: str
    cosine: float
    max_abs_error: float
    max_abs_reference: float
    top1: float
    """The share of rows (last axis) whose largest value stands at the same place."""

    @property
    def holds(self) -> bool:
        return self.cosine >= COSINE

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"holds": self.holds}

    def __str__(self) -> str:
        relation = f"max error {self.max_abs_error:.3g} of {self.max_abs_reference:.3g}"
        return f"{self.name}: cosine {beside(self.cosine)}, {relation}, same top-1 in {self.top1:.1%} of rows"


def agree(name: str, found: Any, reference: Any) -> Agreement:
    """Compares two arrays of one shape: the finite values, if NaNs and infinities are the same at the same places;
    otherwise the cosine is 0. Equal arrays, zeros among them, have cosine 1.

    Sequences and maps agree as the worst of their items. Of other values, and arrays of other shapes, the cosine is 1
    if they are the same and 0 if they differ.
    """
    items = _pairs(found, reference)
    if items:
        return _worst(name, [agree(name, one, other) for one, other in items])
    if isinstance(found, _NUMBER) and isinstance(reference, _NUMBER):
        a, b = np.asarray(found), np.asarray(reference)
        if a.shape == b.shape and _is_numeric(a) and _is_numeric(b):
            return _agree(name, a, b)
    equal = same(found, reference)
    return Agreement(name, float(equal), 0.0 if equal else float("inf"), 0.0, float(equal))


def _agree(name: str, found: Array, reference: Array) -> Agreement:
    a, b = found.astype(np.float64).reshape(-1), reference.astype(np.float64).reshape(-1)
    finite = np.isfinite(a) & np.isfinite(b)
    odd = bool(np.array_equal(a[~finite], b[~finite], equal_nan=True))
    a, b = a[finite], b[finite]
    norm = float(np.linalg.norm(a) * np.linalg.norm(b))
    cosine = 0.0 if not odd else 1.0 if np.array_equal(a, b) else float(a @ b) / norm if norm else 0.0
    error = float(np.abs(a - b).max(initial=0.0)) if odd else float("inf")
    return Agreement(name, cosine, error, float(np.abs(b).max(initial=0.0)), _top1(found, reference))


def _worst(name: str, items: Sequence[Agreement]) -> Agreement:
    return Agreement(
        name,
        min(item.cosine for item in items),
        max(item.max_abs_error for item in items),
        max(item.max_abs_reference for item in items),
        min(item.top1 for item in items),
    )


def _is_numeric(array: Array) -> bool:
    return array.dtype.kind in "biuf" or array.dtype.name == "bfloat16"


def _pairs(found: Any, reference: Any) -> list[tuple[Any, Any]] | None:
    """The items of two sequences of one length, or of two maps with the same keys; None for other values."""
    if isinstance(found, list) and isinstance(reference, list):
        ours, theirs = cast(list[Any], found), cast(list[Any], reference)
        return list(zip(ours, theirs, strict=True)) if len(ours) == len(theirs) else None
    if isinstance(found, dict) and isinstance(reference, dict):
        mine, other = cast(dict[Any, Any], found), cast(dict[Any, Any], reference)
        return [(mine[key], other[key]) for key in mine] if mine.keys() == other.keys() else None
    return None


def same(found: Any, reference: Any) -> bool:
    """Whether two values are the same: arrays by type, shape and bits, texts by what they say, others by items."""
    items = _pairs(found, reference)
    if items is not None:
        return all(same(one, other) for one, other in items)
    if isinstance(found, np.ndarray | np.generic) and isinstance(reference, np.ndarray | np.generic):
        a, b = np.asarray(found), np.asarray(reference)
        if a.dtype.kind in "OUS" and b.dtype.kind in "OUS":
            return a.shape == b.shape and a.tolist() == b.tolist()
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    return type(found) is type(reference) and bool(found == reference)


def _top1(found: Array, reference: Array) -> float:
    if not found.ndim or not found.size:
        return 1.0
    return float((found.argmax(-1) == reference.argmax(-1)).mean())


def agree_all(found: Mapping[str, Any], reference: Mapping[str, Any]) -> list[Agreement]:
    """Every output."""
    return [agree(name, found[name], array) for name, array in reference.items()]


def onnxruntime_run(
    model: "ModelProto",
    inputs: Mapping[str, Array],
    outputs: Sequence[str] | None = None,
    threads: int = 1,
    path: Path | None = None,
) -> dict[str, Any]:
    """What onnxruntime computes; `outputs` may name any values of the graph, which must be graph outputs of `model`.

    `path` is where the model lies, if the file is to be read again, with its external data. Raises `CommandError` for a
    model or an input that onnxruntime refuses.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    options.log_severity_level = 4  # what it says is told once, below
    source = str(path) if path is not None else model.SerializeToString()
    advice = "check the model with onnx.checker"
    try:
        session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        advice = "give other inputs"
        names = list(outputs or [output.name for output in session.get_outputs()])
        found: Sequence[Any] = session.run(names, dict(inputs))
    except Exception as error:  # noqa: BLE001 - its errors have no class in common
        told = explained(error)
        where = told.node or path or model.graph.name or "the model"
        raise CommandError(f"{where}: onnxruntime, the reference, runs it (found {told}); {advice}") from None
    return dict(zip(names, found, strict=True))
