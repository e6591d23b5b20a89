"""Which rule makes ops of an ONNX node: an expansion of its domain, or the one class of the dialect that stands for it.

`apply` makes the ops of an operator of ai.onnx inside an expansion, so that operators are said by others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import onnx
from onnx import helper
from xdsl.ir import Operation, SSAValue

from ..dialects.graph import OPERATORS
from ..dialects.graph.host import is_host
from ..dialects.graph.op import GraphOp, InferError
from .empty import PARTLY_EMPTY, empty_outputs, is_empty, known_if_empty
from .expansions import EXPANSIONS
from .listed import Listed
from .node import Node, Value
from .older import OLDER
from .packed import product_of_packed
from .sequences import SEQUENCES

Expansion = Callable[[Node], Sequence[Value]]
Forms = Sequence[tuple[int, int | None, type[GraphOp]]]

TABLE: Mapping[str, Forms] = {
    name: [
        (1 if name in OLDER else form.since, form.until, kind)
        for kind in OPERATORS
        for form in kind.ONNX
        if form.name == name
    ]
    for name in sorted({form.name for kind in OPERATORS for form in kind.ONNX if not form.domain})
}
"""Of each operator of ai.onnx: first opset, last opset, and the class that stands for it."""


def class_of(name: str, opset: int) -> type[GraphOp] | None:
    """The class that stands for an operator of ai.onnx in an opset."""
    forms = TABLE.get(name, ())
    return next((kind for since, until, kind in forms if since <= opset and (until is None or opset <= until)), None)


def expand(node: Node) -> Sequence[Value]:
    """The outputs of a node of ai.onnx that is not known as a whole; those without elements are arrays."""
    if node.operator == "Identity" and (
        isinstance(value := node.given(0), Listed) or (isinstance(value, SSAValue) and is_host(value))
    ):
        return [value]
    if node.operator in SEQUENCES:
        return SEQUENCES[node.operator](node)
    some_empty = any(is_empty(value) for value in node.inputs)
    found = empty_outputs(node) if some_empty else None
    if found is not None:
        return found
    expansion = PARTLY_EMPTY.get(node.operator) if some_empty else None
    expansion = expansion or EXPANSIONS.get(node.operator) or _operator
    try:
        return [known_if_empty(value) for value in expansion(node)]
    except InferError:
        found = empty_outputs(node)
        if found is None:
            raise
        return found


def _operator(node: Node) -> Sequence[SSAValue]:
    """The results of the one op that stands for a node."""
    if (product := product_of_packed(node)) is not None:
        return [product]
    kind = class_of(node.operator, node.opset)
    if kind is None:
        raise InferError(f"{node.operator} is computed at import, from constants (found an operand that is computed)")
    op = node.one(kind).owner
    assert isinstance(op, Operation)
    return op.results


def apply_all(
    node: Node, operator: str, *inputs: Value | None, outputs: int = 1, opset: int = 0, **attributes: Any
) -> Sequence[Value]:
    """The outputs of an operator of ai.onnx, in an opset (0: the newest), as part of a node."""
    return expand(inner_node(node, operator, *inputs, outputs=outputs, opset=opset, **attributes))


def inner_node(
    node: Node, operator: str, *inputs: Value | None, outputs: int = 1, opset: int = 0, **attributes: Any
) -> Node:
    """A node of ai.onnx that is part of another one."""
    names = ["" if value is None else f"in{i}" for i, value in enumerate(inputs)]
    proto = helper.make_node(operator, names, [f"out{i}" for i in range(outputs)], node.name, **attributes)
    opset = opset or onnx.defs.onnx_opset_version()
    known = {id(value): kind for value, kind in zip(node.inputs, node.kinds, strict=False) if value is not None}
    kinds = [known.get(id(value)) for value in inputs]
    return replace(node, proto=proto, attributes=attributes, inputs=list(inputs), opset=opset, kinds=kinds)


def apply(node: Node, operator: str, *inputs: Value | None, opset: int = 0, **attributes: Any) -> SSAValue:
    """The one output of an operator of ai.onnx, as part of a node."""
    return node.materialize(apply_all(node, operator, *inputs, opset=opset, **attributes)[0])
