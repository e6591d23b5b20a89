"""The shapes of a model's inputs: those that the file states, completed by the caller."""

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from shlex import quote
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto
from xdsl.ir import Attribute

from ..dialects.graph.constants import ELEMENTS as CONSTANTS
from ..dialects.graph.host_model import type_text
from ..dialects.graph.op import bf16, f16, f32, i1, i8, i16, i32, i64, u8, u16, u32, u64
from ..runtime.cpu import HostType
from ..runtime.problem import Kind, Problem
from .float8 import holder, inner_type

ELEMENTS: Mapping[int, Attribute] = {
    TensorProto.FLOAT: f32,
    TensorProto.FLOAT16: f16,
    TensorProto.BFLOAT16: bf16,
    TensorProto.INT8: i8,
    TensorProto.UINT8: u8,
    TensorProto.INT32: i32,
    TensorProto.INT64: i64,
    TensorProto.INT16: i16,
    TensorProto.UINT16: u16,
    TensorProto.UINT32: u32,
    TensorProto.UINT64: u64,
    TensorProto.BOOL: i1,
}
"""The element type of each ONNX type; those of `BORDER` stand at the border only."""

MOST_ELEMENTS = 2**40
"""Of one input: more than any device holds, and few enough for all arithmetic on sizes."""


@dataclass(frozen=True, slots=True)
class Input:
    """An input with a static shape; or one of a type that only the CPU holds, which has no `element`.

    `inner`: the type that callers see, where the device holds another one, the `element`.
    """

    name: str
    shape: tuple[int, ...]
    element: Attribute | None
    host: HostType | None = None
    inner: np.dtype[Any] | None = None


def read_inputs(
    graph: onnx.GraphProto, shapes: Mapping[str, Sequence[int]], bound: Collection[str] = (), host: bool = False
) -> tuple[list[Input], list[Problem]]:
    """The inputs that are not `bound`, and what is wrong with them or with `shapes`.

    An input that has an initialiser is that constant, unless `shapes` names it.

    `host`: types that the device does not have are those of the CPU.
    """
    given = {tensor.name for tensor in graph.initializer} - shapes.keys()
    infos = [info for info in graph.input if info.name not in given]
    names = [info.name for info in infos]
    problems = [
        Problem(
            f"{name}: shapes name inputs of the model (found none of this name); its inputs are {', '.join(names)}",
            Kind.COMMAND,
        )
        for name in shapes
        if name not in names
    ]
    problems += [
        Problem(f"{name}: every input has a name of its own (found {count} of this name); rename them", Kind.FILE)
        for name, count in Counter(names).items()
        if count > 1
    ]
    inputs = list[Input]()
    for info in (info for info in infos if info.name not in bound):
        found = read_input(info, shapes.get(info.name), host)
        if isinstance(found, Input):
            inputs.append(found)
        else:
            problems.append(found)
    return inputs, problems


def read_input(info: onnx.ValueInfoProto, wanted: Sequence[int] | None, host: bool = False) -> Input | Problem:
    """An input, or what is wrong with it."""
    kept = _on_host(info) if host else None
    if info.type.WhichOneof("value") != "tensor_type":
        if kept is not None:
            return Input(info.name, (), None, kept)
        found = info.type.WhichOneof("value")
        return Problem(f"{info.name}: an input is a tensor (found {found}); export the model without it", Kind.DTYPE)
    kind = info.type.tensor_type
    inner = inner_type(kind.elem_type)
    element = ELEMENTS.get(kind.elem_type) if inner is None else CONSTANTS[holder(inner)]
    if element is None and kept is None:
        numbers = TensorProto.DataType.items()
        found = next((name for name, number in numbers if number == kind.elem_type), f"type {kind.elem_type}")
        rule = f"{info.name}: inputs hold floats of at most 32 bits, integers or truth values"
        return Problem(f"{rule} (found {found}); convert the model", Kind.DTYPE)
    dims = declared_extents(info)
    if dims is None:
        if wanted is None:
            rule = f"{info.name}: an input has a shape (found none in the model)"
            advice = f"give {_shape_option(info.name, 'D0,D1,…')}, with a number for each axis"
            return Problem(f"{rule}; {advice}", Kind.SHAPE)
        dims = ["?"] * len(wanted)
    if wanted is None:
        dims = [0 if dim == "0" else dim for dim in dims]
    problem = misfit(info.name, dims, wanted)
    if problem:
        return Problem(problem, Kind.SHAPE)
    found = tuple(wanted if wanted is not None else [d for d in dims if isinstance(d, int)])
    if prod(found) > MOST_ELEMENTS:
        size = "×".join(map(str, found))
        rule = f"{info.name}: an input has at most 2^40 elements (found {size})"
        return Problem(f"{rule}; take smaller sizes", Kind.MEMORY)
    host_kind = HostType(type_text(info.type), found) if element is None else None
    return Input(info.name, found, element, host_kind, inner)


def _on_host(info: onnx.ValueInfoProto) -> HostType | None:
    """The type as the CPU has it; None if it has none, or the file does not say it whole."""
    try:
        kind = HostType(type_text(info.type))
    except ValueError:
        return None
    return kind if kind.is_known else None


def declared_extents(info: onnx.ValueInfoProto) -> list[int | str] | None:
    """The extents of a tensor, names where they are dynamic; None if it has no shape."""
    kind = info.type.tensor_type
    return [_extent(dim) for dim in kind.shape.dim] if kind.HasField("shape") else None


def _extent(dim: onnx.TensorShapeProto.Dimension) -> int | str:
    """A number, or the name of a dynamic extent; −1 and the like are dynamic too, and 0 is, if the caller gives it."""
    if dim.WhichOneof("value") == "dim_value":
        return dim.dim_value if dim.dim_value > 0 else str(dim.dim_value)
    return dim.dim_param or "?"


def misfit(name: str, dims: Sequence[int | str], wanted: Sequence[int] | None) -> str | None:
    """What is wrong with the shape of an input, the first axis of it."""
    form = [str(dim) if isinstance(dim, int) else _placeholder(dim, axis, dims) for axis, dim in enumerate(dims)]
    open_axes = list(dict.fromkeys(text for text, dim in zip(form, dims, strict=True) if isinstance(dim, str)))
    numbers = f", with numbers for {' and '.join(open_axes)}" if open_axes else ""
    python = f"shapes={{{json.dumps(name, ensure_ascii=False)}: [{', '.join(form)}]}}"
    advice = f"give {_shape_option(name, ','.join(form))} or {python}{numbers}"
    if wanted is None:
        axis = next((i for i, dim in enumerate(dims) if isinstance(dim, str)), None)
        return None if axis is None else f"{name}: axis {axis} has a static extent (found {dims[axis]!r}); {advice}"
    if len(wanted) != len(dims):
        return f"{name}: the shape has {len(dims)} axes (found {len(wanted)}); {advice}"
    for i, (dim, size) in enumerate(zip(dims, wanted, strict=True)):
        if size < 0:
            return f"{name}: axis {i} has an extent of 0 or more (found {size}); {advice}"
        if isinstance(dim, int) and dim != size:
            return f"{name}: axis {i} is fixed at {dim} by the model (found {size}); {advice}"
    return None


def _placeholder(dim: str, axis: int, dims: Sequence[int | str]) -> str:
    """What stands for an open extent until a number does: `SEQUENCE_LENGTH`; `D2` for an axis without a name."""
    words = _words(dim)
    if not words[:1].isalpha():
        return f"D{axis}" if not words or words.isdecimal() else f"D_{words}"
    like = {other for other in dims if isinstance(other, str) and _words(other) == words}
    return words if like == {dim} else f"{words}_{dims.index(dim)}"


def _words(name: str) -> str:
    return re.sub(r"[^A-Z0-9_]+", "_", name.upper()).strip("_")


def _shape_option(name: str, sizes: str) -> str:
    """`--shape x=N,3` for a shell, whatever the name holds."""
    word = quote(f"{name}=")
    if not name.isprintable():
        escaped = (c if c.isprintable() and c not in "\\'" else f"\\U{ord(c):08x}" for c in name)
        word = f"$'{''.join(escaped)}='"
    return f"--shape{'=' if name.startswith('-') else ' '}{word}{sizes}"
