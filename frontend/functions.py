"""Puts the functions of a model in place of the nodes that call them.

What `onnx.inliner` leaves out is done before: an attribute that a call does not give has the default of the function
(`attribute_proto`), and a function of another opset that says the same by both is one of the model's opset.
"""

from collections.abc import Iterable, Mapping, Sequence

import onnx
from onnx import FunctionProto, ModelProto, NodeProto
from onnx.defs import OpSchema, SchemaError, get_schema
from onnx.inliner import inline_local_functions

from ..dialects.graph.host_model import inner_graphs
from .node import AI_ONNX
from .problems import ModelFileError

Key = tuple[str, str, str]
"""Domain, name and overload of a function."""

AGAIN = "mend the model, or export it again without functions"


def inlined(model: ModelProto) -> ModelProto:
    """The model without functions; the same one if it has none. Raises `ModelFileError`."""
    if not model.functions:
        return model
    prepared = ModelProto()
    prepared.CopyFrom(model)
    _import_domains(prepared)
    for function in prepared.functions:
        _adopt_opset(function, prepared)
    if any(function.attribute_proto for function in prepared.functions):
        calls = _Calls(prepared.functions)
        calls.complete(prepared.graph.node, None)
        prepared.ClearField("functions")
        prepared.functions.extend(calls.variants.values())
    try:
        made = inline_local_functions(prepared, True)
    except Exception as error:  # noqa: BLE001 - of C++: classes of its own
        raise ModelFileError(f"the model: its functions can be inlined (found {_first(error)}); {AGAIN}") from None
    if made.functions:
        function = made.functions[0]
        found = ", ".join(f"{entry.domain or AI_ONNX} {entry.version}" for entry in function.opset_import)
        rule = f"the model: the function {function.name} is one of the model's opset (found {found})"
        raise ModelFileError(f"{rule}; {AGAIN}")
    return made


class _Calls:
    """Functions with the attributes that their calls give: of a function there is a variant for each set of these, in
    which nodes do without the others."""

    def __init__(self, functions: Iterable[FunctionProto]) -> None:
        self._functions: Mapping[Key, FunctionProto] = {_key(f.domain, f.name, f.overload): f for f in functions}
        self._overloads = {function.overload for function in self._functions.values()}
        self.variants = dict[tuple[Key, frozenset[str]], FunctionProto]()

    def complete(self, nodes: Sequence[NodeProto], given: frozenset[str] | None) -> None:
        """Gives each call its defaults and its variant. `given` are the attributes of the function around the nodes,
        None for those of the model."""
        for node in nodes:
            if given is not None:
                kept = [a for a in node.attribute if not a.ref_attr_name or a.ref_attr_name in given]
                if len(kept) < len(node.attribute):
                    bare = NodeProto(attribute=kept)
                    node.ClearField("attribute")
                    node.attribute.extend(bare.attribute)
            for graph in inner_graphs(node):
                self.complete(graph.node, given)
            function = self._functions.get(_key(node.domain, node.op_type, node.overload))
            if function is not None:
                names = {attribute.name for attribute in node.attribute}
                node.attribute.extend(a for a in function.attribute_proto if a.name not in names)
                node.overload = self._variant(function, frozenset(a.name for a in node.attribute)).overload

    def _variant(self, function: FunctionProto, given: frozenset[str]) -> FunctionProto:
        key = _key(function.domain, function.name, function.overload), given
        if key not in self.variants:
            made = FunctionProto()
            made.CopyFrom(function)
            if any(other[0] == key[0] for other in self.variants):
                made.overload = next(
                    text for n in range(len(self._overloads) + 1) if (text := f"given{n}") not in self._overloads
                )
                self._overloads.add(made.overload)
            self.variants[key] = made
            made.attribute.extend(default.name for default in made.attribute_proto)
            made.ClearField("attribute_proto")
            self.complete(made.node, given)
        return self.variants[key]


def _key(domain: str, name: str, overload: str) -> Key:
    return "" if domain == AI_ONNX else domain, name, overload


def _import_domains(model: ModelProto) -> None:
    """The model imports what its functions do."""
    known = {entry.domain or AI_ONNX for entry in model.opset_import}
    for entry in (entry for function in model.functions for entry in function.opset_import):
        if (entry.domain or AI_ONNX) not in known:
            known.add(entry.domain or AI_ONNX)
            model.opset_import.append(entry)


def _adopt_opset(function: FunctionProto, model: ModelProto) -> None:
    """A function whose nodes mean the same by the model's opset has that."""
    versions = {entry.domain or AI_ONNX: entry.version for entry in model.opset_import}
    for entry in function.opset_import:
        wanted = versions[entry.domain or AI_ONNX]
        if entry.version != wanted and _means_the_same(function.node, entry.domain, entry.version, wanted):
            entry.version = wanted


def _means_the_same(nodes: Sequence[NodeProto], domain: str, one: int, other: int) -> bool:
    for node in nodes:
        if (node.domain or AI_ONNX) == (domain or AI_ONNX) and _since(node, one) != _since(node, other):
            return False
        if not all(_means_the_same(graph.node, domain, one, other) for graph in inner_graphs(node)):
            return False
    return True


def _since(node: NodeProto, version: int) -> int:
    """The opset that an operator is of; 0 for one that ONNX does not know."""
    try:
        schema: OpSchema = get_schema(node.op_type, min(version, onnx.defs.onnx_opset_version()), node.domain)
    except SchemaError:
        return 0
    return schema.since_version


def _first(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
