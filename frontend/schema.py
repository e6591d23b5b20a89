"""What the ONNX standard says of a node: how many inputs and outputs, and the types of its attributes."""

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import AttributeProto
from onnx.defs import OpSchema, SchemaError, get_schema

from ..dialects.graph.op import InferError


def check_node(proto: onnx.NodeProto, opset: int) -> None:
    """Raises `InferError` for the first thing that the standard forbids; operators that it does not know pass."""
    if proto.domain not in ("", "ai.onnx"):
        return
    try:
        schema = get_schema(proto.op_type, min(opset, onnx.defs.onnx_opset_version()), "")
    except SchemaError:
        return
    _check_count(schema, "inputs", proto.input, schema.min_input, schema.max_input)
    _check_count(schema, "outputs", proto.output, schema.min_output, schema.max_output)
    for attribute in proto.attribute:
        known = schema.attributes.get(attribute.name)
        kind: Any = known.type if known is not None else None
        if kind is not None and attribute.type != kind.value:
            found = AttributeProto.AttributeType.Name(attribute.type)
            raise InferError(
                f"the attribute {attribute.name} of {schema.name} is {kind.name} (found {found})", broken=True
            )
    given = {attribute.name for attribute in proto.attribute}
    for name, known in schema.attributes.items():
        if known.required and name not in given:
            raise InferError(f"{schema.name} has the attribute {name} (found none)", broken=True)


def _check_count(schema: OpSchema, what: str, names: Sequence[str], least: int, most: int) -> None:
    """Names that are empty at the end count for nothing."""
    count = len(names)
    while count and not names[count - 1]:
        count -= 1
    if not least <= count <= most:
        span = f"{least}" if least == most else f"{least} or more" if most > least + 99 else f"{least} to {most}"
        what = what.removesuffix("s") if span == "1" else what
        raise InferError(f"{schema.name} has {span} {what} (found {count})", broken=True)
