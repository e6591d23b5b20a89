"""Evaluates nodes all of whose inputs are known: shapes, indices, weights that are computed once.

The usual ones are a line of numpy each; any other goes to onnxruntime, one node at a time, or, if it does not run it,
to onnx's own reference, which is wrong about some operators. One that takes onnxruntime long is not evaluated.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.shape_inference import InferenceError, infer_shapes

from ..dialects.graph.op import SizeError
from ..dialects.graph.views import sliced
from ..dialects.standin import StandIn, stand_in
from ..runtime.cpu import HostError
from .listed import Listed
from .model_file import Array, to_array
from .trial import TRIAL, SlowError

Attributes = Mapping[str, Any]
Fold = Callable[[Attributes, Sequence[Array | None], int], Array | None]

IR_VERSION = 10
RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
"""Operators whose result is another one each time: never evaluated here."""


SIZED = frozenset({"ConstantOfShape", "Expand", "EyeLike", "OneHot", "Pad", "Range", "Resize", "Tile", "Upsample"})
"""Operators whose result has the size that a value says."""
REPEATING = frozenset({"ConstantOfShape", "Expand"})
"""Of these, whose result is one view of what is repeated: large ones are left to the device."""
SMALL = 4096
"""Elements of which broadcasts and products are no larger than the square."""
MOST_BYTES = 2**28
"""Of a value that is evaluated here, and"""
MOST_GROWTH = 8
"""how often the bytes of what it is made of, if that is more."""
MOST_REPEATED = 2**32
"""Bytes of what is repeated on the device."""


def fold(
    node: onnx.NodeProto, attributes: Attributes, inputs: Sequence[Array | None], opset: int
) -> Sequence[Array] | None:
    """The outputs of a node, None if it cannot be evaluated, or only repeats values and is too large to be written out.

    An absent input is None.
    """
    if node.op_type in RANDOM or any(kind.type == onnx.AttributeProto.GRAPH for kind in node.attribute):
        return None
    if any(isinstance(value, Listed) for value in inputs):
        return None
    own = node.domain in ("", "ai.onnx")
    if own and (sum(value.size for value in inputs if value is not None) > SMALL or node.op_type in SIZED):
        if node.op_type in REPEATING and not _is_small(node, inputs, opset, MOST_BYTES):
            _check_size(node, inputs, opset, MOST_REPEATED)
            return None
        _check_size(node, inputs, opset, MOST_BYTES)
    rule = RULES.get(node.op_type) if own else None
    found = rule(attributes, inputs, opset) if rule and len(node.output) == 1 else None
    if found is not None:
        return [_canonical(found)]
    if any(isinstance(value, StandIn) for value in inputs):
        results = _by_shapes(node, inputs, opset)
        if results is not None:
            return results
    try:
        results = _by_onnxruntime(node, inputs, opset)
    except SlowError:
        return None
    except HostError:
        results = _by_reference(node, inputs, opset)
    return None if results is None else [_canonical(array) for array in results]


def _canonical(value: Array | np.generic) -> Array:
    """An array, of rank 0 too, where numpy gives a number; with NaN as the device writes it: x86 sets its sign."""
    array = np.asanyarray(value)
    if isinstance(array, StandIn) or array.dtype.kind != "f" or not (nan := np.isnan(array)).any():
        return array
    return np.where(nan, np.array(np.nan, array.dtype), array)


def _is_small(node: onnx.NodeProto, inputs: Sequence[Array | None], opset: int, most: int) -> bool:
    """Whether results pass the check."""
    try:
        _check_size(node, inputs, opset, most)
    except SizeError:
        return False
    return True


def _check_size(node: onnx.NodeProto, inputs: Sequence[Array | None], opset: int, least: int) -> None:
    """Raises `InferError` for a result that is not only large, but larger than what it is made of."""
    most = max(least, MOST_GROWTH * sum(value.nbytes for value in inputs if value is not None))
    for kind, dims in _result_types(node, inputs, opset):
        width = kind.itemsize if kind else 8
        dims = [max(size, 0) for size in dims]
        if math.prod(dims) * width > most:
            raise SizeError(f"a constant has at most {most:,} bytes (found {math.prod(dims) * width:,} for {dims})")


def _by_shapes(node: onnx.NodeProto, inputs: Sequence[Array | None], opset: int) -> Sequence[Array] | None:
    """Stand-ins for the outputs, as far as ONNX tells their types and shapes."""
    found = _result_types(node, inputs, opset)
    if len(found) != len(node.output) or any(kind is None or -1 in dims for kind, dims in found):
        return None
    return [stand_in(kind, dims) for kind, dims in found if kind is not None]


def _result_types(
    node: onnx.NodeProto, inputs: Sequence[Array | None], opset: int
) -> list[tuple["np.dtype[Any] | None", list[int]]]:
    """Type and shape (-1: unknown) of each output, as ONNX infers them."""
    given = {name: value for name, value in zip(node.input, inputs, strict=True) if name and value is not None}
    known = [
        onnx.numpy_helper.from_array(value, name)
        for name, value in given.items()
        if 0 < value.size <= SMALL and not isinstance(value, StandIn)
    ]
    infos = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in given.items()
    ]
    outputs = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in node.output if name
    ]
    graph = onnx.helper.make_graph([node], "one", infos, outputs, known)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, opset)])
    found = list[tuple["np.dtype[Any] | None", list[int]]]()
    is_plain = node.domain in ("", "ai.onnx") and (node.op_type in RULES or node.op_type in SIZED)
    infer = infer_shapes if is_plain else TRIAL.infer  # no inference of these crashes
    try:
        inferred = infer(model, data_prop=True).graph.output
    except InferenceError:  # a node of a wrong form
        return found
    for info in inferred:
        kind = info.type.tensor_type
        known = kind.HasField("shape")
        dims = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim] if known else [-1]
        found.append((onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type) if kind.elem_type else None, dims))
    return found


def _by_onnxruntime(node: onnx.NodeProto, inputs: Sequence[Array | None], opset: int) -> Sequence[Array] | None:
    """The outputs by onnxruntime; its import takes a while, and most models do without. Raises `HostError`."""
    feeds = _feeds(node, inputs)
    infos = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in feeds.items()
    ]
    results = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name]
    graph = onnx.helper.make_graph([node], "one", infos, results)
    opsets = [onnx.helper.make_opsetid(node.domain, opset)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    return _in_order(node, TRIAL.run(model.SerializeToString(), list(feeds.values())))


def _feeds(node: onnx.NodeProto, inputs: Sequence[Array | None]) -> dict[str, Array]:
    return {name: value for name, value in zip(node.input, inputs, strict=True) if name and value is not None}


def _in_order(node: onnx.NodeProto, results: Sequence[Any]) -> Sequence[Array] | None:
    """An array for each output, also for those that are left out; None if one is no array."""
    if not all(isinstance(result, np.ndarray | np.generic) for result in results):
        return None  # a sequence
    found = iter(results)
    return [np.asarray(next(found)) if name else np.zeros(0) for name in node.output]


def _by_reference(node: onnx.NodeProto, inputs: Sequence[Array | None], opset: int) -> Sequence[Array] | None:
    """The outputs by onnx.reference; its import takes a while as well."""
    from onnx.reference import ReferenceEvaluator

    feeds = _feeds(node, inputs)
    infos = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in feeds]
    results = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in node.output if name
    ]
    graph = onnx.helper.make_graph([node], "one", infos, results)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, opset)])
    try:
        results = ReferenceEvaluator(model).run(None, feeds)
    except Exception:  # noqa: BLE001 - whatever the reference does not do, the caller reports with the node's name
        return None
    return _in_order(node, list(results))


def constant_attribute(attributes: Attributes) -> Array:
    """The value of a Constant node."""
    (name, value), *_ = attributes.items()
    if name == "value":
        return _tensor(value)
    return np.array(value, dtype=np.float32 if name.startswith("value_float") else np.int64)


def _tensor(value: onnx.TensorProto | Array) -> Array:
    """The value of an attribute; one whose data lies in another file is an array already."""
    return to_array(value, None) if isinstance(value, onnx.TensorProto) else value


def shape_of(shape: Sequence[int], attributes: Attributes) -> Array:
    """A Shape node."""
    return np.array(shape[attributes.get("start", 0) : attributes.get("end", len(shape))], dtype=np.int64)


def _axes(attributes: Attributes, inputs: Sequence[Array | None]) -> tuple[int, ...] | None:
    """The axes of Squeeze and Unsqueeze: an attribute, later an input."""
    if "axes" in attributes:
        return tuple(attributes["axes"])
    given = inputs[1] if len(inputs) > 1 else None
    return None if given is None else tuple(given.reshape(-1).tolist())


def _cast(attributes: Attributes, inputs: Sequence[Array | None], opset: int) -> Array | None:
    (x,) = _known(inputs)
    target = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(attributes["to"]))
    return x.astype(target) if target.kind in "biuf" and x.dtype.kind in "biuf" else None


def _slice(attributes: Attributes, inputs: Sequence[Array | None], opset: int) -> Array | None:
    x, *rest = inputs
    lists = [None if value is None else value.reshape(-1).tolist() for value in rest]
    starts, ends, axes, steps = (*lists, None, None)[:4]
    if x is None or starts is None or ends is None:
        return None
    index = [slice(None)] * x.ndim
    for i, place in enumerate(range(len(starts)) if axes is None else axes):
        step = 1 if steps is None else steps[i]
        found = sliced(starts[i], ends[i], step, x.shape[place])
        index[place] = slice(found.start, found.stop if found.stop >= 0 else None, step)
    return x[tuple(index)]


def _reshape(attributes: Attributes, inputs: Sequence[Array | None], opset: int) -> Array | None:
    x, target = _known(inputs)
    if attributes.get("allowzero", 0):
        return x.reshape(target.tolist())
    return x.reshape([x.shape[i] if size == 0 else size for i, size in enumerate(target.tolist())])


def _constant_of_shape(attributes: Attributes, inputs: Sequence[Array | None], opset: int) -> Array | None:
    (size,) = _known(inputs)
    value = repeated_value(attributes)
    return np.full(size.tolist(), value.reshape(-1)[0], value.dtype)


def repeated_value(attributes: Attributes) -> Array:
    """What ConstantOfShape repeats."""
    return _tensor(attributes["value"]) if "value" in attributes else np.zeros(1, np.float32)


def _unsqueeze(attributes: Attributes, inputs: Sequence[Array | None], opset: int) -> Array | None:
    axes = _axes(attributes, inputs)
    return None if axes is None or inputs[0] is None else np.expand_dims(inputs[0], axes)


def _div(attributes: Attributes, inputs: Sequence[Array | None], opset: int) -> Array | None:
    x, y = _known(inputs)
    if x.dtype.kind == "f":
        return x / y
    return None if np.any(y == 0) else (np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))).astype(x.dtype)


def _known(inputs: Sequence[Array | None]) -> list[Array]:
    return [value for value in inputs if value is not None]


def _numpy(function: Callable[..., Any]) -> Fold:
    """A node that is one call on its inputs."""
    return lambda attributes, inputs, opset: np.asanyarray(function(*_known(inputs)))


RULES: Mapping[str, Fold] = {
    "Add": _numpy(np.add),
    "Cast": _cast,
    "Concat": lambda attributes, inputs, opset: np.concatenate(_known(inputs), axis=attributes["axis"]),
    "ConstantOfShape": _constant_of_shape,
    "Div": _div,
    "Equal": _numpy(np.equal),
    "Expand": lambda attributes, inputs, opset: _expand(*_known(inputs)),
    "Gather": lambda attributes, inputs, opset: np.take(*_known(inputs), axis=attributes.get("axis", 0)),
    "Identity": _numpy(lambda x: x),
    "Mul": _numpy(np.multiply),
    "Range": _numpy(lambda *limits: np.arange(*(limit.reshape(-1)[0] for limit in limits), dtype=limits[0].dtype)),
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": lambda attributes, inputs, opset: (
        None if inputs[0] is None else np.squeeze(inputs[0], _axes(attributes, inputs))
    ),
    "Sub": _numpy(np.subtract),
    "Transpose": lambda attributes, inputs, opset: np.transpose(_known(inputs)[0], attributes.get("perm")),
    "Unsqueeze": _unsqueeze,
    "Where": _numpy(np.where),
}
"""Operators that shape arithmetic and weights are made of."""


def _expand(x: Array, shape: NDArray[np.int64]) -> Array:
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(shape.tolist())))
