"""Locations: which ONNX nodes an op stands for, and keeping that through rewrites.

loc("Conv_0")                          one node
loc(fused["Conv_0", "Relu_1"])         an op made of several
loc("file.mlir":3:5)                   an op read from a text
"""

from collections.abc import Iterable

from xdsl.dialects.builtin import (
    ArrayAttr,
    FileLineColLoc,
    FusedLoc,
    LocationAttr,
    NameLoc,
    NoneAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, Operation

UNKNOWN = UnknownLoc()


def leaves(location: Attribute) -> list[LocationAttr]:
    """The locations of a fused one, in order, each once; none for an unknown one."""
    if isinstance(location, FusedLoc):
        parts = location.locations
        found = [leaf for part in parts for leaf in leaves(part)]  # pyright: ignore[reportGeneralTypeIssues]
        return list(dict.fromkeys(found))
    return [location] if isinstance(location, (NameLoc, FileLineColLoc)) else []


def fuse_locations(locations: Iterable[Attribute]) -> LocationAttr:
    """One location that holds all of them, each once."""
    parts = list(dict.fromkeys(leaf for location in locations for leaf in leaves(location)))
    if not parts:
        return UNKNOWN
    return parts[0] if len(parts) == 1 else FusedLoc(ArrayAttr(parts), NoneAttr())


def absorb(op: Operation, *others: Operation) -> None:
    """Adds the locations of `others`, which `op` now stands for as well."""
    op.location = fuse_locations([op.location, *(other.location for other in others)])


def node_names(location: Attribute) -> list[str]:
    """The ONNX nodes of a location, in order."""
    return [leaf.desc.data for leaf in leaves(location) if isinstance(leaf, NameLoc)]


def where(op: Operation) -> str:
    """An op for a message: `graph.matmul of MatMul_3, Add_4`, or `file.mlir:3:5: graph.matmul`."""
    names = node_names(op.location)
    if names:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return f"{op.name} of {', '.join(names[:3])}{more}"
    for leaf in leaves(op.location):
        if isinstance(leaf, FileLineColLoc):
            return f"{leaf.filename.data}:{leaf.line.data}:{leaf.column.data}: {op.name}"
    return op.name
