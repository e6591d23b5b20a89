"""The shapes of a model's inputs: those that the file states, completed by the caller."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import TensorProto
from xdsl.ir import Attribute

from ..dialects.graph.op import bf16, f16, f32, i1, i8, i32, i64, u8

ELEMENTS: Mapping[int, Attribute] = {
    TensorProto.FLOAT: f32,
    TensorProto.FLOAT16: f16,
    TensorProto.BFLOAT16: bf16,
    TensorProto.INT8: i8,
    TensorProto.UINT8: u8,
    TensorProto.INT32: i32,
    TensorProto.INT64: i64,
    TensorProto.BOOL: i1,
}
"""The element type of each ONNX type; `i64` stands at the border only."""


@dataclass(frozen=True, slots=True)
class Input:
    """An input with a static shape."""

    name: str
    shape: tuple[int, ...]
    element: Attribute


def read_inputs(graph: onnx.GraphProto, shapes: Mapping[str, Sequence[int]]) -> tuple[list[Input], list[str]]:
    """The inputs that are no initialisers, and what is wrong with them or with `shapes`."""
    given = {tensor.name for tensor in graph.initializer}
    infos = [info for info in graph.input if info.name not in given]
    names = [info.name for info in infos]
    problems = [
        f"{name}: shapes name inputs of the model (found none of this name); its inputs are {', '.join(names)}"
        for name in shapes
        if name not in names
    ]
    inputs = list[Input]()
    for info in infos:
        found = read_input(info, shapes.get(info.name))
        if isinstance(found, Input):
            inputs.append(found)
        else:
            problems.append(found)
    return inputs, problems


def read_input(info: onnx.ValueInfoProto, wanted: Sequence[int] | None) -> Input | str:
    """An input, or what is wrong with it."""
    if info.type.WhichOneof("value") != "tensor_type":
        return f"{info.name}: an input is a tensor (found {info.type.WhichOneof('value')}); export the model without it"
    kind = info.type.tensor_type
    element = ELEMENTS.get(kind.elem_type)
    if element is None:
        found = TensorProto.DataType.Name(kind.elem_type)
        return f"{info.name}: inputs hold f32, f16, bf16, integers or truth values (found {found}); convert the model"
    dims = [_extent(dim) for dim in kind.shape.dim]
    problem = _misfit(info.name, dims, wanted)
    if problem:
        return problem
    return Input(info.name, tuple(wanted if wanted is not None else [d for d in dims if isinstance(d, int)]), element)


def _extent(dim: onnx.TensorShapeProto.Dimension) -> int | str:
    """A number, or the name of a dynamic extent; 0, −1 and the like are dynamic too."""
    if dim.WhichOneof("value") == "dim_value" and dim.dim_value > 0:
        return dim.dim_value
    return dim.dim_param or "?"


def _misfit(name: str, dims: Sequence[int | str], wanted: Sequence[int] | None) -> str | None:
    """What is wrong with the shape of an input, the first axis of it."""
    form = ", ".join(str(dim) if isinstance(dim, int) else f"<{dim}>" for dim in dims)
    advice = f'give shapes={{"{name}": [{form}]}}, or --shape {name}={form.replace(", ", "x")}, with numbers'
    if wanted is None:
        axis = next((i for i, dim in enumerate(dims) if isinstance(dim, str)), None)
        return None if axis is None else f"{name}: axis {axis} has a static extent (found {dims[axis]!r}); {advice}"
    if len(wanted) != len(dims):
        return f"{name}: the shape has {len(dims)} axes (found {len(wanted)}); {advice}"
    for i, (dim, size) in enumerate(zip(dims, wanted, strict=True)):
        if size < 1:
            return f"{name}: axis {i} has an extent of 1 or more (found {size}); {advice}"
        if isinstance(dim, int) and dim != size:
            return f"{name}: axis {i} is fixed at {dim} by the model (found {size}); {advice}"
    return None
