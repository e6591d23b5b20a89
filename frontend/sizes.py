"""Sizes that the caller chose for axes which a model leaves open."""

from collections.abc import Mapping, Sequence

import onnx

from .inputs import declared_extents
from .problems import BROKEN


def clashes(graph: onnx.GraphProto, shapes: Mapping[str, Sequence[int]]) -> list[str]:
    """Names of axes that the given shapes make different sizes: "'n' is 2 in x and 3 in y"."""
    sizes: dict[str, dict[int, str]] = {}
    for info in graph.input:
        for axis, size in zip(declared_extents(info) or (), shapes.get(info.name, ()), strict=False):
            if isinstance(axis, str) and axis.isidentifier():
                sizes.setdefault(axis, {}).setdefault(size, info.name)
    return [
        f"{axis!r} is {' and '.join(f'{size} in {name}' for size, name in found.items())}"
        for axis, found in sizes.items()
        if len(found) > 1
    ]


def remedy(graph: onnx.GraphProto, shapes: Mapping[str, Sequence[int]]) -> str:
    """What to do about sizes that do not fit together: choose others, if they were chosen."""
    chosen = {info.name for info in graph.input if declared_extents(info) is None or _is_open(info)}
    if not chosen & shapes.keys():
        return BROKEN
    found = clashes(graph, shapes)
    other = f"make axes of one name equal ({', '.join(found)})" if found else "give other sizes"
    return f"{other} with --shape (shapes= in Python); if these are right, {BROKEN}"


def _is_open(info: onnx.ValueInfoProto) -> bool:
    return any(isinstance(axis, str) for axis in declared_extents(info) or ())
