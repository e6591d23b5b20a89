"""Imports an ONNX model: `import_onnx` gives a module in the graph dialect and the store of its weights.

    module, weights = import_onnx("model.onnx", shapes={"x": [1, 3, 48, 320]})

Shapes are static from here on. What depends on constants and shapes alone is evaluated here, so no shape arithmetic is
left. Everything that is not supported is reported at once, by `ImportProblems`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.inliner import inline_local_functions
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ..dialects.graph.constants import ELEMENTS as CONSTANTS
from ..dialects.graph.constants import NUMPY, constant
from ..dialects.graph.elementwise import CastOp
from ..dialects.graph.op import BORDER, InferError, element, i32
from ..dialects.weights import WeightStore
from .builder import GraphBuilder
from .expansions import EXPANSIONS
from .extensions import EXTENSIONS
from .fold import RULES, constant_attribute, fold, shape_of
from .inputs import ELEMENTS, read_inputs
from .model_file import Array, Source, read_model, to_array
from .node import AI_ONNX, Node, Value, size_of
from .older import modern
from .operators import TABLE, class_of, expand
from .problems import ImportProblems, ModelFileError
from .schema import check_node
from .sixteen import TAGGED, kinds_in, tagged
from .unroll import Body, Results, loop, scan

__all__ = ["ImportProblems", "ModelFileError", "import_onnx", "supported"]

KNOWN_ONLY = ("Constant", "Shape", "Size")
"""Operators whose result is always known, since shapes are static."""

UNROLLED: Mapping[str, Callable[[Node, Body], Results]] = {"Loop": loop, "Scan": scan}
"""Operators whose steps are written out."""

SUPPORTED = {*TABLE, *EXPANSIONS, *KNOWN_ONLY, *UNROLLED, "If"}

FAULTS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, VerifyException)
"""What a node of a form that nobody thought of raises."""


def import_onnx(
    source: Source, *, shapes: Mapping[str, Sequence[int]] | None = None, folder: Path | None = None
) -> tuple[ModuleOp, WeightStore]:
    """A module with one function `@main`, and the weights. Raises `ModelFileError` or `ImportProblems`.

    `shapes` gives the extents of the inputs that the model leaves open, `folder` the place of the external data of a
    model that is no path.
    """
    model, beside = read_model(source, mapped=True)
    folder = folder or beside
    if model.functions:
        model = inline_local_functions(model)
    inputs, problems = read_inputs(model.graph, shapes or {})
    problems += _newer(model) + _border_problems(model.graph)
    if problems:
        raise ImportProblems(problems)
    run = _Import(model, folder)
    for item in inputs:
        run.add_input(item.name, item.shape, item.element)
    for proto in model.graph.node:
        run.add_node(proto)
    run.add_outputs(model.graph.output)
    if run.problems:
        raise ImportProblems(run.problems)
    return run.builder.module(), run.builder.weights


def supported() -> Mapping[str, str]:
    """ONNX operators that can be imported, each with the opsets from which on (or between which) it is."""
    rows = dict.fromkeys((*EXPANSIONS, *KNOWN_ONLY, *UNROLLED, "If"), "1 …")
    for name, forms in TABLE.items():
        rows[name] = ", ".join(f"{since} … {until or ''}".strip() for since, until, _ in forms)
    for domain, extensions in EXTENSIONS.items():
        rows |= {f"{domain}.{name}": "1 …" for name in extensions}
    return dict(sorted(rows.items()))


def _newer(model: onnx.ModelProto) -> list[str]:
    """An opset of which nothing is known: its operators may mean something else."""
    newest = {AI_ONNX: onnx.defs.onnx_opset_version()} | dict.fromkeys(EXTENSIONS, 1)
    return [
        f"the model: {_opset(entry.domain)} is at most {known} (found {entry.version}); export it with an older one"
        for entry in model.opset_import
        if (known := newest.get(entry.domain or AI_ONNX)) is not None and entry.version > known
    ]


def _opset(domain: str) -> str:
    return "its opset" if domain in ("", AI_ONNX) else f"its opset of {domain}"


def _border_problems(graph: onnx.GraphProto) -> list[str]:
    """Outputs whose names are not their own."""
    inputs = {info.name for info in graph.input} - {tensor.name for tensor in graph.initializer}
    counts = Counter(info.name for info in graph.output)
    return [
        f"{name}: every output has a name of its own (found {count} of this name); rename them"
        for name, count in counts.items()
        if count > 1
    ] + [
        f"{name}: an output is made by a node (found an input of this name); put an Identity between them"
        for name in counts
        if name in inputs
    ]


class _Import:
    """The state of one import: values by name, and the problems so far."""

    def __init__(self, model: onnx.ModelProto, folder: Path | None) -> None:
        self.builder = GraphBuilder()
        self.problems: list[str] = []
        self._folder = folder
        self._opsets = {entry.domain or AI_ONNX: entry.version for entry in model.opset_import}
        self._values: dict[str, Value | None] = {}
        """None stands for a value whose node has a problem: what depends on it is not checked further."""
        self._initializers = {tensor.name: tensor for tensor in model.graph.initializer}
        self._tags: dict[SSAValue, np.dtype[Any]] = {}
        """The types of integers of 16 bits, which are i32."""
        self._names: set[str] = set()
        self._makers: dict[str, str] = {}
        """Of each value that a node makes, the node."""
        self._used = _names_used(model.graph)

    # values -------------------------------------------------------------------------------------------------------
    def add_input(self, name: str, shape: Sequence[int], kind: Any) -> None:
        """An argument; integers of the border are i32 right behind it, and one without elements is known."""
        value = self.builder.input(name, shape, kind)
        if 0 in shape:
            self._values[name] = np.zeros(shape, NUMPY[kind])
            return
        with self.builder.at(name):
            self._values[name] = inner = self.builder(CastOp, value, element=i32) if kind in BORDER else value
        if NUMPY[kind] in TAGGED:
            self._tags[inner] = NUMPY[kind]

    def add_outputs(self, outputs: Sequence[onnx.ValueInfoProto]) -> None:
        """The results; integers of the border get their type right before them."""
        for info in outputs:
            value = self._value(info.name, f"the output {info.name}")
            if value is None:
                continue
            if not isinstance(value, SSAValue) and value.size and value.dtype not in CONSTANTS:
                rule = "outputs hold f32, f16, bf16, integers or truth values"
                self.problems.append(f"{info.name}: {rule} (found {value.dtype}); convert the model")
                continue
            with self.builder.at(info.name):
                self.builder.output(info.name, self._at_border(value, info.type.tensor_type.elem_type))

    def _at_border(self, value: Value, declared: int) -> SSAValue:
        if not isinstance(value, SSAValue):
            if value.size == 0 and declared in ELEMENTS:
                value = value.astype(NUMPY[ELEMENTS[declared]])
            return self.builder.insert(constant(value, self.builder.weights)).results[0]
        if ELEMENTS.get(declared) in BORDER and element(value) == i32:
            return self.builder(CastOp, value, element=ELEMENTS[declared])
        return value

    def _value(self, name: str, user: str) -> Value | None:
        """The value of a name; None after a problem, which is this one or an earlier one."""
        if name not in self._values and name in self._initializers:
            self._values[name] = to_array(self._initializers[name], self._folder)
        if name not in self._values:
            self.problems.append(f"{user}: values are defined before use (found no {name!r}); check the model")
            self._values[name] = None
        return self._values[name]

    # nodes --------------------------------------------------------------------------------------------------------
    def add_node(self, proto: onnx.NodeProto) -> None:
        """Evaluates the node, or builds its ops; a problem is noted and its outputs are marked."""
        name = self._unique(proto)
        inputs = {key: self._value(key, name) for key in proto.input if key}
        outputs: Sequence[Value | None] = [None] * len(proto.output)
        broken = any(value is None for value in inputs.values())
        opset = self._opsets.get(proto.domain or AI_ONNX, 0)
        attributes = {a.name: _attribute(a) for a in proto.attribute}
        given = [inputs.get(key) for key in proto.input]
        node = Node(name, proto, attributes, given, opset, self.builder, kinds_in(given, self._tags))
        try:
            self._check_outputs(proto, name)
            if broken:
                _check_supported(proto, opset)
                self.problems += self._unsupported_inside(proto)
            else:
                with self.builder.at(name):
                    outputs = tagged(node, self._import(node), self._tags)
        except InferError as error:
            self.problems.append(f"{name}: {error}; {_advice(proto)}")
            self.problems += self._unsupported_inside(proto)
        except ModelFileError:
            raise
        except FAULTS as error:
            found = f"{type(error).__name__}: {error}"
            self.problems.append(
                f"{name}: {proto.op_type} is not supported in this form (found {found}); {_advice(proto)}"
            )
        self._values.update(zip(proto.output, outputs, strict=False))

    def _unsupported_inside(self, proto: onnx.NodeProto) -> list[str]:
        """What is wrong with the operators of a node's graphs, which are not imported."""
        found = list[str]()
        for inner in (node for attribute in proto.attribute for graph in _graphs(attribute) for node in graph.node):
            try:
                if inner.op_type not in RULES:  # what is computed from shapes vanishes
                    _check_supported(inner, self._opsets.get(inner.domain or AI_ONNX, 0))
            except InferError as error:
                found.append(f"{inner.name or inner.op_type}: {error}; {_advice(inner)}")
            found += self._unsupported_inside(inner)
        return found

    def _check_outputs(self, proto: onnx.NodeProto, name: str) -> None:
        """Raises `InferError` if an output has the name of another node's."""
        for key in filter(None, proto.output):
            maker = self._makers.setdefault(key, name)
            if maker != name:
                raise InferError(f"every value has one node that makes it (found {key!r} of {maker} again)")

    def _import(self, node: Node) -> Sequence[Value | None]:
        """The outputs of a node."""
        own = node.domain == AI_ONNX
        if node.operator in SUPPORTED:
            check_node(node.proto, node.opset)
        node = modern(node)
        if node.operator == "If" and own:
            return self._branch(node)
        if node.operator in UNROLLED and own:
            return UNROLLED[node.operator](node, lambda graph, inputs: self._inside(node, graph, inputs))
        found = _known_outputs(node)
        if found is not None:
            return found
        _check_supported(node.proto, node.opset)
        extra = [key for key in node.proto.output[1:] if key in self._used]
        extensions = EXTENSIONS.get(node.domain)
        results = expand(node) if extensions is None else extensions[node.operator](node)
        if len(extra) >= len(results) and extra:
            raise InferError(f"{node.operator} has one output (found a use of {extra[0]!r})")
        return results

    def _branch(self, node: Node) -> Sequence[Value | None]:
        """The outputs of the branch that an If takes."""
        condition = node.given(0)
        if isinstance(condition, SSAValue):
            raise InferError("the condition of If is known when the model is imported (found one that is computed)")
        if condition.size != 1:
            raise InferError(f"the condition of If is one truth value (found shape {list(condition.shape)})")
        graph = node.attributes["then_branch" if condition.reshape(-1)[0] else "else_branch"]
        return self._inside(node, graph, [])

    def _inside(self, node: Node, graph: onnx.GraphProto, inputs: Sequence[Value]) -> Sequence[Value | None]:
        """The outputs of a graph that a node holds; its names are its own, and it sees those around it."""
        outside = self._values, self._initializers, self._makers, self._used
        own = {tensor.name: tensor for tensor in graph.initializer}
        self._values = {name: value for name, value in self._values.items() if name not in own}
        self._values |= {info.name: value for info, value in zip(graph.input, inputs, strict=True)}
        self._initializers, self._makers = self._initializers | own, {}
        self._used = self._used | _names_used(graph)
        try:
            for proto in graph.node:
                self.add_node(proto)
            return [self._value(info.name, f"{node.name}, its output {info.name}") for info in graph.output]
        finally:
            self._values, self._initializers, self._makers, self._used = outside

    def _unique(self, proto: onnx.NodeProto) -> str:
        """The node's name, or its operator and a number; no two nodes have one name."""
        stem = proto.name or f"{proto.op_type}_{len(self._names)}"
        name, count = stem, 1
        while name in self._names:
            count += 1
            name = f"{stem}_{count}"
        self._names.add(name)
        return name


def _names_used(graph: onnx.GraphProto) -> set[str]:
    """What nodes, those of branches among them, and outputs of a graph read."""
    names = {output.name for output in graph.output}
    for node in graph.node:
        names.update(node.input)
        for inner in (inner for attribute in node.attribute for inner in _graphs(attribute)):
            names |= _names_used(inner)
    return names


def _graphs(attribute: onnx.AttributeProto) -> Sequence[onnx.GraphProto]:
    """The graphs that an attribute holds."""
    return [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs


def _known_outputs(node: Node) -> Sequence[Array] | None:
    """The outputs of a node that depends on shapes and constants alone."""
    own = node.domain == AI_ONNX
    if node.operator == "Constant" and own:
        return [constant_attribute(node.attributes)]
    if node.operator in ("Shape", "Size") and own:
        size = shape_of(size_of(node.given(0)), node.attributes)
        return [size if node.operator == "Shape" else size.prod()]
    if any(isinstance(value, SSAValue) for value in node.inputs):
        return None
    return fold(
        node.proto, node.attributes, [value for value in node.inputs if not isinstance(value, SSAValue)], node.opset
    )


def _check_supported(proto: onnx.NodeProto, opset: int) -> None:
    """Raises `InferError` unless some op stands for the operator."""
    name, domain = proto.op_type, proto.domain or AI_ONNX
    if name in EXTENSIONS.get(domain, ()):
        return
    if domain == AI_ONNX and (name in SUPPORTED - TABLE.keys() or name in EXPANSIONS or class_of(name, opset)):
        return
    opsets = ", ".join(f"{since} to {until or 'now'}" for since, until, _ in TABLE.get(name, ()))
    rule = f"{name} is supported in opsets {opsets}" if opsets and domain == AI_ONNX else f"{name} is not supported"
    raise InferError(f"{rule} (found {domain}, opset {opset})")


def _attribute(proto: onnx.AttributeProto) -> Any:
    """The value of an attribute, strings as `str`."""
    value = onnx.helper.get_attribute_value(proto)
    if proto.type == onnx.AttributeProto.STRINGS:
        return [item.decode() for item in value]
    return value.decode() if isinstance(value, bytes) else value


def _advice(proto: onnx.NodeProto) -> str:
    if any(attribute.type == onnx.AttributeProto.GRAPH for attribute in proto.attribute):
        return "export the model without control flow"
    return "export the model without it, or leave this part to the host"
