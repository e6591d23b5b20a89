"""Inputs that are bound to constants when a model is compiled, in the type and the shape of the input.

    arrays, problems = bind(graph, {"sr": 16000}, shapes={})

A number fills the whole input; an array has the input's shape, whose leading axes of extent 1 it may leave out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

from ..runtime.problem import Kind, Problem
from .inputs import ELEMENTS, declared_extents, misfit
from .model_file import Array

NUMBERS = frozenset({*ELEMENTS, TensorProto.DOUBLE, TensorProto.UINT32, TensorProto.UINT64})
"""ONNX types that a constant may have."""

MOST_ELEMENTS = 2**28
"""Of one constant; larger ones are weights."""

_ADVICE = "give --const {name}=VALUE, --const {name}=V0,V1,… or --const {name}=@FILE.npy"


@dataclass(frozen=True, slots=True)
class Unusable:
    """In place of a value: what is wrong with it, to be told with all that is wrong with the others."""

    problem: Problem


def bind(
    graph: onnx.GraphProto, constants: Mapping[str, Any], shapes: Mapping[str, Sequence[int]]
) -> tuple[dict[str, Array], list[Problem]]:
    """The arrays of the inputs that `constants` names, and what is wrong with the others of them."""
    infos = {info.name: info for info in graph.input}
    arrays, problems = dict[str, Array](), list[Problem]()
    for name, value in constants.items():
        if isinstance(value, Unusable):
            found = value.problem
        elif name not in infos:
            rule = f"{name}: constants name inputs of the model (found none of this name)"
            found = Problem(f"{rule}; its inputs are {', '.join(infos) or 'none'}", Kind.COMMAND)
        else:
            found = _bound(infos[name], value, shapes.get(name))
        if isinstance(found, Problem):
            problems.append(found)
        else:
            arrays[name] = found
    return arrays, problems


def _bound(info: onnx.ValueInfoProto, value: Any, wanted: Sequence[int] | None) -> Array | Problem:
    """The array of an input, or what is wrong."""
    name, kind = info.name, info.type.tensor_type.elem_type
    advice = _ADVICE.format(name=name)
    if info.type.WhichOneof("value") != "tensor_type" or kind not in NUMBERS:
        held = TensorProto.DataType.Name(kind) if kind else info.type.WhichOneof("value")
        rule = f"{name}: what is bound to a constant holds numbers or truth values (found {held})"
        return Problem(f"{rule}; leave --const out", Kind.DTYPE)
    try:
        given = np.asarray(value)
    except ValueError as error:
        return Problem(f"{name}: a constant is a number or an array (found {error}); {advice}", Kind.COMMAND)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    problem = _unfit(given, dtype)
    if problem:
        return Problem(f"{name}: {problem}; {advice}", Kind.DTYPE)
    size = _shape(info, given, wanted)
    if isinstance(size, Problem):
        return size
    if prod(size) > MOST_ELEMENTS:
        few = f"{name}: a constant has at most 2^28 elements (found {prod(size):,})"
        return Problem(f"{few}; take smaller sizes", Kind.MEMORY)
    with np.errstate(all="ignore"):
        array = given.astype(dtype)
    return np.array(np.broadcast_to(array.reshape(() if given.size == 1 else size), size), order="C")


def _unfit(given: Array, dtype: np.dtype[Any]) -> str | None:
    """Which rule the values break, if they are to become `dtype`."""
    values = given.reshape(-1)
    if values.dtype == ml_dtypes.bfloat16:
        values = values.astype(np.float32)
    if values.dtype.kind not in "biuf":
        found = f"{values.dtype.name} {values[0]}" if values.size else values.dtype.name
        return f"a constant for {dtype.name} is numbers of at most 64 bits (found {found})"
    if dtype == np.bool_:
        odd = values[(values != 0) & (values != 1)]
        return f"a constant for bool is true, false, 1 or 0 (found {odd[0]})" if odd.size else None
    if values.dtype == np.bool_:
        return f"a constant for {dtype.name} is numbers (found truth values)"
    if dtype.kind in "iu":
        return _unfit_integers(values, dtype)
    with np.errstate(all="ignore"):
        lost = values[np.isfinite(values) & ~np.isfinite(values.astype(dtype).astype(np.float64))]
    most = ml_dtypes.finfo(dtype).max
    return f"a constant for {dtype.name} is at most {most} (found {lost[0]})" if lost.size else None


def _unfit_integers(values: Array, dtype: np.dtype[Any]) -> str | None:
    if values.dtype.kind == "f":
        odd = values[~np.isfinite(values) | (values != np.floor(values))]
        if odd.size:
            return f"a constant for {dtype.name} is whole numbers (found {odd[0]})"
    limits = np.iinfo(dtype)
    ends = (values.min(), values.max()) if values.size else ()
    out = [value for value in ends if not limits.min <= int(value) <= limits.max]
    return f"a constant for {dtype.name} lies in [{limits.min}, {limits.max}] (found {out[0]})" if out else None


def _shape(info: onnx.ValueInfoProto, given: Array, wanted: Sequence[int] | None) -> tuple[int, ...] | Problem:
    """The shape of the input, or what is wrong with it or with the array's."""
    dims = declared_extents(info)
    if dims is None:
        dims = ["?"] * (given.ndim if wanted is None else len(wanted))
    problem = misfit(info.name, dims, wanted) if wanted is not None else None
    if problem:
        return Problem(problem, Kind.SHAPE)
    known = tuple(wanted) if wanted is not None else tuple(dim for dim in dims if isinstance(dim, int))
    left_out = len(dims) - given.ndim
    if len(known) == len(dims):
        size = known
    elif given.size == 1 and left_out:
        return Problem(misfit(info.name, dims, None) or "", Kind.SHAPE)
    else:
        size = (1,) * left_out + given.shape  # open axes are as the array has them, but for those that are left out
        known = tuple(
            dim if isinstance(dim, int) else 0 if axis < left_out else n
            for axis, (dim, n) in enumerate(zip(dims, size, strict=False))
        )
    if known == size and (given.size == 1 or size == (1,) * left_out + given.shape):
        return size
    form = ", ".join(str(dim) if isinstance(dim, int) else f"<{dim}>" for dim in (wanted or dims))
    rule = f"{info.name}: a constant has the input's shape [{form}], or is one number"
    return Problem(f"{rule} (found shape {list(given.shape)}); {_ADVICE.format(name=info.name)}", Kind.SHAPE)
