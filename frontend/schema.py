"""What the ONNX standard says of a node: how many inputs and outputs, which of them there must be, and the types of its
attributes."""

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import AttributeProto
from onnx.defs import OpSchema, SchemaError, get_schema

from ..dialects.graph.op import InferError

PADDINGS = (b"NOTSET", b"SAME_UPPER", b"SAME_LOWER", b"VALID", b"")
"""What `auto_pad` may say; by default nothing."""


def check_node(proto: onnx.NodeProto, opset: int) -> None:
    """Raises `InferError` for the first thing that the standard forbids; operators that it does not know pass."""
    if proto.domain not in ("", "ai.onnx"):
        return
    try:
        schema = get_schema(proto.op_type, min(opset, onnx.defs.onnx_opset_version()), "")
    except SchemaError:
        return
    _check_count(schema, "inputs", proto.input, schema.min_input, schema.max_input)
    for index, (form, name) in enumerate(zip(schema.inputs, proto.input, strict=False)):
        if not name and form.option == OpSchema.FormalParameterOption.Single:
            raise InferError(f"{schema.name} has an input {index}, {form.name} (found none)", broken=True)
    _check_count(schema, "outputs", proto.output, schema.min_output, schema.max_output)
    for attribute in proto.attribute:
        known = schema.attributes.get(attribute.name)
        kind: Any = known.type if known is not None else None
        if kind is not None and attribute.type != kind.value:
            found = AttributeProto.AttributeType.Name(attribute.type)
            raise InferError(
                f"the attribute {attribute.name} of {schema.name} is {kind.name} (found {found})", broken=True
            )
        if attribute.name == "auto_pad" and attribute.s not in PADDINGS:
            found = attribute.s.decode(errors="backslashreplace")
            raise InferError(f"auto_pad is NOTSET, SAME_UPPER, SAME_LOWER or VALID (found {found!r})", broken=True)
    given = {attribute.name for attribute in proto.attribute}
    for name, known in schema.attributes.items():
        if known.required and name not in given:
            raise InferError(f"{schema.name} has the attribute {name} (found none)", broken=True)
    _check_graphs(proto, opset)


def _check_graphs(proto: onnx.NodeProto, opset: int) -> None:
    """Raises `InferError` if the graphs of a node do not take what it gives them, or give less than it needs."""
    graphs = {a.name: a.g for a in proto.attribute if a.type == AttributeProto.GRAPH}
    inputs, outputs = len(proto.input), len(proto.output)
    match proto.op_type:
        case "If":
            takes, gives = 0, outputs
        case "Loop":
            takes, gives = inputs, 1 + max(outputs, inputs - 2)
        case "Scan":
            takes = inputs - (opset < 9)
            gives = max(outputs, takes - _check_scan(proto, takes))
        case _:
            return
    for name, graph in graphs.items():
        if len(graph.input) != takes:
            rule = f"the graph {name} has as many inputs as {proto.op_type} gives it, {takes}"
            raise InferError(f"{rule} (found {len(graph.input)})", broken=True)
        if len(graph.output) < gives:
            rule = f"the graph {name} has as many outputs as {proto.op_type} needs, {gives}"
            raise InferError(f"{rule} (found {len(graph.output)})", broken=True)


def _check_scan(proto: onnx.NodeProto, takes: int) -> int:
    """How many sequences there are; raises `InferError` if the attributes are of another number."""
    count = next(a.i for a in proto.attribute if a.name == "num_scan_inputs")
    if not 1 <= count <= takes:
        raise InferError(f"num_scan_inputs is at most the number of inputs, {takes} (found {count})", broken=True)
    results = next(len(a.g.output) for a in proto.attribute if a.name == "body") - (takes - count)
    for attribute in proto.attribute:
        if attribute.type != AttributeProto.INTS:
            continue
        entries = results if attribute.name.startswith("scan_output") else count
        if len(attribute.ints) != entries:
            what = "result" if attribute.name.startswith("scan_output") else "sequence"
            rule = f"{attribute.name} has an entry for each {what}, {entries}"
            raise InferError(f"{rule} (found {len(attribute.ints)})", broken=True)
    return count


def _check_count(schema: OpSchema, what: str, names: Sequence[str], least: int, most: int) -> None:
    """A name that is empty has a place; those at the end need none."""
    count = len(names)
    while count > most and not names[count - 1]:
        count -= 1
    if not least <= count <= most:
        span = f"{least}" if least == most else f"{least} or more" if most > least + 99 else f"{least} to {most}"
        what = what.removesuffix("s") if span == "1" else what
        raise InferError(f"{schema.name} has {span} {what} (found {count})", broken=True)
