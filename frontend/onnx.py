"""Imports an ONNX model: `import_onnx` gives a module in the graph dialect and the store of its weights.

    module, weights = import_onnx("model.onnx", shapes={"x": [1, 3, 48, 320]})

Shapes are static from here on. What depends on constants and shapes alone is evaluated here, so no shape arithmetic is
left. Everything that is not supported is reported at once, by `ImportProblems`.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ..dialects.graph.constants import NUMPY
from ..dialects.graph.elementwise import CastOp
from ..dialects.graph.host import host_type, is_host
from ..dialects.graph.host_model import captured, inner_graphs
from ..dialects.graph.op import BORDER, InferError, ShapeError, SizeError, i32
from ..dialects.weights import WeightStore
from ..runtime.cpu import HostError
from ..runtime.problem import Kind, Problem
from . import flow, sizes
from .bags import bagged
from .bound import bind
from .builder import GraphBuilder
from .chosen import Chosen
from .expansions import EXPANSIONS
from .extensions import EXTENSIONS
from .float8 import INNER
from .fold import RULES, constant_attribute, fold, shape_of
from .functions import inlined
from .hosting import MOST_RESIDUE, Hosting
from .inputs import Input, read_inputs
from .model_file import Array, Source, read_model, to_array
from .names import Names
from .node import AI_ONNX, Node, Value, size_of
from .older import modern
from .operators import TABLE, class_of, expand
from .outputs import Outputs
from .packed import remember
from .problems import BROKEN, ImportProblems, ModelFileError, ShapeWarning, is_no_network
from .schema import check_node
from .shapes import check_values
from .sixteen import TAGGED, kinds_in, tagged
from .sparse import dense
from .structure import file_problems, in_order, sorted_inside
from .survey import Survey
from .trial import TRIAL, CrashError
from .unroll import Body, Results, Upload, loop, scan

__all__ = ["ImportProblems", "ModelFileError", "import_onnx", "supported"]

KNOWN_ONLY = ("Constant", "Shape", "Size")
"""Operators whose result is always known, since shapes are static."""

UNROLLED: Mapping[str, Callable[[Node, Body, Upload], Results]] = {"Loop": loop, "Scan": scan}
"""Operators whose steps are written out."""

FLOW = ("If", *UNROLLED)
"""Operators with graphs of their own."""

SUPPORTED = {*TABLE, *EXPANSIONS, *KNOWN_ONLY, *FLOW}

HEAVY = {
    *("Conv", "ConvInteger", "ConvTranspose", "QLinearConv", "DeformConv", "MatMul", "MatMulInteger", "QLinearMatMul"),
    *("Gemm", "Einsum", "LSTM", "GRU", "RNN", "Attention"),
}
"""Operators that are worth a transfer."""
DEFINED = "values are defined before use"

CONVERT = "convert the model to float32, or cast the values before this node"
"""What to do about types."""

SMALLER = "take smaller sizes"

FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError, VerifyException)
"""What a node of a form that nobody thought of raises."""


@TRIAL.open()
def import_onnx(
    source: Source,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    folder: Path | None = None,
    constants: Mapping[str, Any] | None = None,
    host: bool = False,
    leave: Mapping[str, str] | None = None,
    values: "dict[str, Value | None] | None" = None,
    survey: Survey | None = None,
) -> tuple[ModuleOp, WeightStore]:
    """A module with one function `@main`, and the weights. Raises `ModelFileError` or `ImportProblems`.

    `shapes` gives the extents of the inputs that the model leaves open, `folder` the place of the external data of a
    model that is no path, `constants` the inputs that become constants. With `host`, nodes that the device does not run
    are left to the CPU; so are those that `leave` names, each with a reason. `values` receives what each value of the
    graph became, also when problems are raised: an array if it is known, None behind a problem. With a `survey`, large
    weights are not read, and stand-ins take their place.
    """
    model, beside = read_model(source, mapped=True)
    folder = folder or beside
    model = inlined(dense(model, folder, survey and survey.largest))
    ordered, cycles = in_order(model.graph.node)
    nodes = [sorted_inside(node) for node in ordered]
    if survey is not None:
        survey.begin(nodes)
    known, unbound = bind(model.graph, constants or {}, shapes or {})
    inputs, problems = read_inputs(model.graph, shapes or {}, constants or {}, host)
    if problems := [*unbound, *problems, *file_problems(model), *cycles]:
        raise ImportProblems(problems)
    hosting = Hosting(model, folder) if host else None
    run = _Import(model, folder, hosting, leave or {}, {} if values is None else values, Names(nodes))
    run.survey, run.misfit = survey, sizes.remedy(model.graph, shapes or {})
    run.chosen = Chosen(model, nodes)
    for clash in sizes.clashes(model.graph, shapes or {}):
        warnings.warn(f"axes of one name have one size (found that {clash})", ShapeWarning, stacklevel=2)
    run.add_known(known)
    for item in inputs:
        run.add_input(item)
    for proto in nodes:
        run.add_node(proto)
    run.add_outputs(model.graph.output)
    if run.problems:
        raise ImportProblems(run.problems)
    return run.builder.module(), run.builder.weights


def supported() -> Mapping[str, str]:
    """ONNX operators that can be imported, each with the opsets from which on (or between which) it is."""
    rows = dict.fromkeys((*EXPANSIONS, *KNOWN_ONLY, *FLOW), "1 …")
    for name, forms in TABLE.items():
        rows[name] = ", ".join(f"{since} … {until or ''}".strip() for since, until, _ in forms)
    for domain, extensions in EXTENSIONS.items():
        rows |= {f"{domain}.{name}": "1 …" for name in extensions}
    return dict(sorted(rows.items()))


class _Import:
    """The state of one import: values by name, and the problems so far."""

    def __init__(
        self,
        model: onnx.ModelProto,
        folder: Path | None,
        hosting: Hosting | None,
        leave: Mapping[str, str],
        values: dict[str, Value | None],
        names: Names,
    ) -> None:
        self.names = names
        self.builder = hosting.builder if hosting else GraphBuilder()
        self.hosting = hosting
        self._leave = leave
        self.problems: list[Problem] = []
        self.survey: Survey | None = None
        self.chosen = Chosen(model, ())
        self.misfit = BROKEN
        """What to do about shapes that do not fit together."""
        self._folder = folder
        self._opsets = {entry.domain or AI_ONNX: entry.version for entry in model.opset_import}
        self._values = values
        """None stands for a value whose node has a problem: what depends on it is not checked further."""
        self._initializers = {tensor.name: tensor for tensor in model.graph.initializer}
        self.tags: dict[SSAValue, np.dtype[Any]] = {}
        """The types of integers of 16 bits, which are i32."""
        self._makers: dict[str, str] = {}
        """Of each value that a node makes, the node."""
        self._used = _names_used(model.graph)
        self._model = model

    # values -------------------------------------------------------------------------------------------------------
    def add_input(self, item: Input) -> None:
        """An argument; integers of the border are i32 right behind it, and one without elements is known."""
        name, shape, kind = item.name, item.shape, item.element
        if kind is None:
            assert item.host is not None
            self._values[name] = self.builder.host_input(name, item.host)
            return
        value = self.builder.input(name, shape, kind, item.inner.name if item.inner else "")
        if 0 in shape:
            self._values[name] = np.zeros(shape, item.inner or NUMPY[kind])
            return
        with self.builder.at(name):
            self._values[name] = inner = self.builder(CastOp, value, element=i32) if kind in BORDER else value
        if (seen := item.inner or NUMPY[kind]) in TAGGED:
            self.tags[inner] = seen

    def add_known(self, constants: Mapping[str, Array]) -> None:
        """Inputs that are bound."""
        self._values |= constants

    def add_outputs(self, outputs: Sequence[onnx.ValueInfoProto]) -> None:
        """The results, one of each name."""
        made = Outputs(self._model, self.builder, self.hosting, self.tags)
        for info in {info.name: info for info in outputs}.values():
            value = self.value(info.name, f"the output {info.name}")
            problem = None if value is None else made.add(info, value)
            if problem is not None:
                self.problems.append(problem)

    def value(self, name: str, user: str) -> Value | None:
        """The value of a name; None after a problem, which is this one or an earlier one."""
        if name not in self._values and name in self._initializers:
            self._values[name] = to_array(self._initializers[name], self._folder, self.survey and self.survey.largest)
        if name not in self._values:
            self.problems.append(Problem(f"{user}: {DEFINED} (found no {name!r}); {BROKEN}", Kind.FILE, user))
            self._values[name] = None
        return self._values[name]

    # nodes --------------------------------------------------------------------------------------------------------
    def add_node(self, proto: onnx.NodeProto) -> None:
        """Evaluates the node, or builds its ops; a problem is noted and its outputs are marked."""
        name = self.names.of(proto)
        inputs = {key: self.value(key, name) for key in proto.input if key}
        outputs: Sequence[Value | None] = [None] * len(proto.output)
        broken = any(value is None for value in inputs.values())
        opset = self._opsets.get(proto.domain or AI_ONNX, 0)
        attributes = {a.name: self._attribute(a) for a in proto.attribute}
        given = [inputs.get(key) for key in proto.input]
        node = Node(name, proto, attributes, given, opset, self.builder, kinds_in(given, self.tags))
        last, problem = self.builder.block.last_op, None
        try:
            self._check_outputs(proto, name)
            if broken:
                _check_supported(proto, opset)
                self.problems += self._unsupported_inside(proto)
            else:
                check_node(proto, opset)
                with self.builder.at(name):
                    outputs = self._place(node)
        except InferError as error:
            problem = self._problem(name, error, proto)
            self.problems += [problem, *self._unsupported_inside(proto)]
        if self.survey is not None:
            self.survey.note(node, outputs, last, problem, broken)
        self._values.update(zip(proto.output, outputs, strict=False))

    def _place(self, node: Node) -> Sequence[Value | None]:
        """The outputs of a node, by the device if it runs it, else by the CPU. Raises `InferError`."""
        if self.hosting is None:
            return self._on_device(node)
        outputs, failure, inner = self._attempt(node, self.hosting)
        if outputs is not None and not inner and not _is_residue(node, outputs):
            return outputs
        if node.operator == "If" and any(map(is_no_network, inner)):  # nor is it one on the CPU
            self.problems += inner
            return outputs or [None] * len(node.proto.output)
        if failure is not None and any(isinstance(v, SSAValue) and self.tags.get(v) in INNER for v in node.inputs):
            raise failure  # the CPU would get what the device holds for them
        reason = str(failure or (inner[0] if inner else "its operands are on the CPU, and its result is small"))
        names = (*filter(None, node.proto.input), *captured(node.proto))
        try:
            return self.hosting.run(node, {name: self.value(name, node.name) for name in names}, reason)
        except CrashError as error:
            rule = f"{node.operator} is of a form that the device or the CPU runs"
            raise InferError(f"{rule} (found {reason}; {error})", broken=True) from None
        except HostError:
            self.problems += inner
            if failure is not None:
                raise failure from None
            return outputs or ()

    def _on_device(self, node: Node) -> Sequence[Value | None]:
        """The outputs of a node by the device. Raises `InferError`."""
        try:
            return tagged(node, self._import(node), self.tags)
        except (InferError, ModelFileError):
            raise
        except MemoryError as error:
            raise SizeError(f"a node is computed in the memory of this computer (found {error})") from error
        except FAULTS as error:
            found = f"{type(error).__name__}: {error}"
            raise InferError(f"{node.operator} is not supported in this form (found {found})") from error

    def _attempt(
        self, node: Node, hosting: Hosting
    ) -> tuple[Sequence[Value | None] | None, InferError | None, list[Problem]]:
        """The outputs of a node by the device, or why there are none; and the problems of nodes inside it.

        Raises errors that the CPU is no remedy for.
        """
        outside, self.problems = self.problems, []
        functions = len(self.builder.functions)
        try:
            if node.name in self._leave:
                raise InferError(self._leave[node.name])
            keeps = node.operator in (*FLOW, "Identity")
            operands = [self._uploaded(v, hosting, keeps) if isinstance(v, SSAValue) else v for v in node.inputs]
            moved = replace(node, inputs=operands, kinds=kinds_in(operands, self.tags))
            return self._on_device(moved), None, self.problems
        except InferError as error:
            if error.broken or error.KIND is Kind.MEMORY:
                raise
            del self.builder.functions[functions:]
            return None, error, self.problems
        finally:
            self.problems = outside

    def _uploaded(self, value: SSAValue, hosting: Hosting, keeps: bool) -> SSAValue:
        """A value as a tensor of the device; one that cannot be stays on the CPU for a node that `keeps` such ones."""
        if not is_host(value):
            return value
        try:
            moved, dtype = hosting.on_device(value), host_type(value).dtype
        except InferError:
            if keeps:
                return value
            raise
        if dtype is not None and dtype in TAGGED:
            self.tags[moved] = dtype
        return moved

    def _unsupported_inside(self, proto: onnx.NodeProto) -> list[Problem]:
        """What is wrong with the operators of a node's graphs, which are not imported."""
        found = list[Problem]()
        for inner in (node for graph in inner_graphs(proto) for node in graph.node):
            try:
                if inner.op_type not in RULES:  # what is computed from shapes vanishes
                    _check_supported(inner, self._opsets.get(inner.domain or AI_ONNX, 0))
            except InferError as error:
                found.append(self._problem(inner.name or inner.op_type, error, inner))
            found += self._unsupported_inside(inner)
        return found

    def _problem(self, name: str, error: InferError, proto: onnx.NodeProto) -> Problem:
        """What is wrong with a node."""
        if error.broken:
            advice = self.misfit if error.KIND is Kind.SHAPE else BROKEN
        else:
            advice = {Kind.DTYPE: CONVERT, Kind.MEMORY: SMALLER}.get(error.KIND) or _advice(proto, self.hosting)
        return Problem(f"{name}: {error}; {advice}", error.KIND, name)

    def _attribute(self, proto: onnx.AttributeProto) -> Any:
        """Its value, strings as `str`; a tensor that lies in another file as an array. Raises `ModelFileError`."""
        value = onnx.helper.get_attribute_value(proto)
        if isinstance(value, onnx.TensorProto) and value.data_location == onnx.TensorProto.EXTERNAL:
            return to_array(value, self._folder, self.survey and self.survey.largest)
        return [_text(item) for item in proto.strings] if proto.type == onnx.AttributeProto.STRINGS else _text(value)

    def _check_outputs(self, proto: onnx.NodeProto, name: str) -> None:
        """Raises `InferError` if an output has the name of another node's, or of another of its own."""
        for place, key in enumerate(proto.output):
            maker = self._makers.setdefault(key, name) if key else name
            if maker != name or (key and key in proto.output[:place]):
                raise InferError(
                    f"every value has one node that makes it (found {key!r} of {maker} again)", broken=True
                )

    def _import(self, node: Node) -> Sequence[Value | None]:
        """The outputs of a node."""
        own = node.domain == AI_ONNX
        if node.operator in SUPPORTED:
            check_values(node)
        node = self.chosen.masked(modern(node))
        if node.operator == "If" and own:
            return self._branch(node)
        if node.operator in UNROLLED and own:
            return self._loop(node)
        found = self.chosen.places(node) or _known_outputs(node)
        if found is not None:
            remember(node, found)
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
            return flow.branch(node, self)
        if condition.size != 1:
            raise ShapeError(f"the condition of If is one truth value (found shape {list(condition.shape)})")
        graph = node.attributes["then_branch" if condition.reshape(-1)[0] else "else_branch"]
        return self.inside(node, graph, [])

    def _loop(self, node: Node) -> Sequence[Value | None]:
        """The outputs of a Loop or a Scan: step after step, else by steps that the runtime counts."""
        before = self.mark()
        try:
            return bagged(node, self) or UNROLLED[node.operator](node, partial(self.inside, node), self._on_npu)
        except InferError as error:
            if error.broken or (node.operator == "Scan" and node.opset < 9):
                raise
        self.back_to(before)
        return flow.loop(node, self) if node.operator == "Loop" else flow.scan(node, self)

    def _on_npu(self, value: Value) -> Value:
        """A value where the device is. Raises `InferError` for one that it cannot hold."""
        return self._uploaded(value, self.hosting, False) if self.hosting and isinstance(value, SSAValue) else value

    def mark(self) -> flow.Mark:
        """How far the import is."""
        steps = self.survey.marks() if self.survey else {}
        return flow.Mark(self.names.marks(), len(self.builder.functions), len(self.problems), steps)

    def back_to(self, mark: flow.Mark) -> None:
        """Nothing of what was imported since then counts; its ops are dead."""
        self.names.back_to(mark.names)
        del self.builder.functions[mark.functions :], self.problems[mark.problems :]
        if self.survey is not None:
            self.survey.back_to(mark.steps)

    def inside(
        self, node: Node, graph: onnx.GraphProto, inputs: Sequence[Value], taken: Mapping[str, Value] | None = None
    ) -> Sequence[Value | None]:
        """The outputs of a graph that a node holds; its names are its own, and it sees those around it, by `taken`
        instead if that has them."""
        outside = self._values, self._initializers, self._makers, self._used
        own = {tensor.name: tensor for tensor in graph.initializer}
        self._values = {name: value for name, value in self._values.items() if name not in own}
        self._values |= dict(taken or {})
        self._values |= {info.name: value for info, value in zip(graph.input, inputs, strict=True)}
        self._initializers, self._makers = self._initializers | own, {}
        self._used = self._used | _names_used(graph)
        try:
            nodes, cycles = in_order(graph.node)
            if cycles:
                self.problems += cycles
                return [None] * len(graph.output)
            for proto in nodes:
                self.add_node(proto)
            return [self.value(info.name, f"{node.name}, its output {info.name}") for info in graph.output]
        finally:
            self._values, self._initializers, self._makers, self._used = outside


def _is_residue(node: Node, outputs: Sequence[Value | None]) -> bool:
    """Little work on what is on the CPU already."""
    computed = [value for value in node.inputs if isinstance(value, SSAValue)]
    if not computed or not all(map(is_host, computed)) or node.operator in HEAVY or node.operator in FLOW:
        return False
    made = [value for value in outputs if isinstance(value, SSAValue) and not is_host(value)]
    return bool(made) and all(prod(size_of(value)) <= MOST_RESIDUE for value in made)


def _names_used(graph: onnx.GraphProto) -> set[str]:
    """What nodes, those of branches among them, and outputs of a graph read."""
    names = {output.name for output in graph.output}
    for node in graph.node:
        names.update(node.input)
        for inner in inner_graphs(node):
            names |= _names_used(inner)
    return names


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
    known = opsets and domain == AI_ONNX
    rule = f"{name} is supported in opsets {opsets}" if known else f"the device does not run {name}"
    raise InferError(f"{rule} (found {domain}, opset {opset})")


def _text(value: Any) -> Any:
    """Bytes as text; what is none is shown so."""
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value


def _advice(proto: onnx.NodeProto, hosting: Hosting | None) -> str:
    if proto.op_type in FLOW:
        return "bind the inputs that decide (--const NAME=VALUE), or export the model without control flow"
    if any(attribute.type == onnx.AttributeProto.GRAPH for attribute in proto.attribute):
        return "export the model without control flow"
    if hosting is not None:  # which onnxruntime did not take either
        return "export the model without it"
    return "export the model without it, or leave this part to the host"
