"""Values without elements: all is known of them, so the graph holds none, whatever they are made of.

What a node makes is without elements if ONNX's shape inference says so. Where only some inputs are, and the result has
elements, the operator says what that means: a join of fewer parts, a sum over nothing, a table that keeps its rows.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.shape_inference import InferenceError
from xdsl.ir import SSAValue

from ..dialects.graph.arithmetic import AddOp, MulOp
from ..dialects.graph.constants import NUMPY
from ..dialects.graph.op import FLOATS, DtypeError, ShapeError, element
from ..dialects.graph.views import ExpandOp
from .model_file import Array
from .node import Node, Value, size_of
from .trial import TRIAL

MOST_KNOWN = 1024
"""Elements of an input whose values may decide a shape."""


def is_empty(value: Value | None) -> bool:
    """Whether a value is there and has no elements."""
    return value is not None and 0 in size_of(value)


def known_if_empty(value: Value) -> Value:
    """A value without elements is known."""
    if isinstance(value, SSAValue) and is_empty(value):
        return np.zeros(size_of(value), NUMPY[element(value)])
    return value


def empty_outputs(node: Node) -> Sequence[Array] | None:
    """The outputs of a node of which none has elements; None if it is not so, or not known."""
    given = {key: value for key, value in zip(node.proto.input, node.inputs, strict=True) if key and value is not None}
    known = [
        onnx.numpy_helper.from_array(value, key)
        for key, value in given.items()
        if not isinstance(value, SSAValue) and value.size <= MOST_KNOWN
    ]
    outputs = [helper.make_tensor_value_info(key, TensorProto.UNDEFINED, None) for key in node.proto.output if key]
    graph = helper.make_graph([node.proto], "one", [_info(key, given[key]) for key in given], outputs, known)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.proto.domain, node.opset)])
    try:
        kinds = [info.type.tensor_type for info in TRIAL.infer(model).graph.output]
    except InferenceError:  # a node of a wrong form
        return None
    sizes = [[dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim] for kind in kinds]
    if any(0 not in size or -1 in size for size in sizes):
        return None
    arrays = (
        np.zeros(size, helper.tensor_dtype_to_np_dtype(kind.elem_type)) for size, kind in zip(sizes, kinds, strict=True)
    )
    return [next(arrays) if key else np.zeros(0) for key in node.proto.output]


def _info(name: str, value: Value) -> onnx.ValueInfoProto:
    kind = NUMPY[element(value)] if isinstance(value, SSAValue) else value.dtype
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(kind), list(size_of(value)))


# operators ------------------------------------------------------------------------------------------------------------
def gemm(node: Node) -> Sequence[Value]:
    """A product over an empty axis is 0, which leaves β·c."""
    a, b = (size_of(node.given(index)) for index in (0, 1))
    if len(a) != 2 or len(b) != 2:
        raise ShapeError(f"a and b are matrices (found rank {len(a)} and {len(b)})")
    size = [a[1] if node.attributes.get("transA") else a[0], b[0] if node.attributes.get("transB") else b[1]]
    c = node.operand(2)
    if element(c) not in FLOATS:
        raise DtypeError(f"operands are floats (found {element(c)})")
    beta = node.materialize(np.array(node.attributes.get("beta", 1.0), np.float32))
    scaled = node.emit(MulOp, node.emit(ExpandOp, c, shape=size), beta, element=element(c))
    return [node.emit(AddOp, scaled, node.materialize(np.zeros((), np.float32)), element=element(c))]


def scatter(node: Node) -> Sequence[Value]:
    """No row is written."""
    if not is_empty(node.given(1)) or not is_empty(node.given(2)):
        raise ShapeError("there are as many updates as indices (found only one of them without elements)")
    return [node.given(0)]


PARTLY_EMPTY: Mapping[str, Callable[[Node], Sequence[Value]]] = {
    "Gemm": gemm,
    "Scatter": scatter,
    "ScatterElements": scatter,
    "ScatterND": scatter,
}
"""Operators whose result has elements though some of their inputs have none; Concat and Split do it themselves."""
