"""`stepwell reduce`: the smallest part of a model that shows what is wrong with the whole.

Nodes are dropped by delta debugging (ddmin), beginning with those that the error names; values at the cuts become
inputs, recorded from onnxruntime's run of the whole. A node that holds graphs is replaced by what is in one of them, if
that shows the same. Every attempt runs in a process of its own: crashes and hangs are symptoms like others.
"""

import argparse
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper
from xdsl.ir import SSAValue

from ..dialects.graph.constants import NUMPY
from ..dialects.graph.host import host_type, is_host
from ..dialects.graph.host_model import inner_graphs
from ..dialects.graph.op import element, shape
from ..frontend.bound import bind
from ..frontend.cut import Border, Wiring, count_nodes, save
from ..frontend.hoist import flattened, hoisted
from ..frontend.inputs import read_inputs as declared_inputs
from ..frontend.node import Value
from ..frontend.onnx import import_onnx
from .agreement import onnxruntime_run
from .commands import read_inputs, shapes_of, write_arrays
from .compilation import options_of, start
from .constants import constants_of
from .constants import read as read_constants
from .errors import CommandError
from .extract import command_for, inputs_wanted, output_of
from .isolate import CrashError, HangError, isolated
from .progress import Progress
from .report import Report, names, plural
from .symptom import Symptom, symptoms

Array = NDArray[Any]
Part = frozenset[int]
_MOST_ROUNDS = 8
"""Of taking graphs apart."""


def reduce_model(args: argparse.Namespace, progress: Progress) -> Report:
    """Writes the part and its inputs."""
    model: Path = args.model
    output = output_of(args, "reduced")
    _check_options(args)
    with progress.step("reading the model"):
        wiring = Wiring.read(model)
    arrays, bound = _inputs(wiring, args)
    known_names = _names(wiring)
    with progress.step("looking for what is wrong"):
        found = symptoms(_given(args, model), ("compile", "compare"), known_names, args.timeout)
    if not found:
        rule = f"{model}: must fail to compile, or differ from onnxruntime (found that it compiles and agrees)"
        raise CommandError(f"{rule}; there is nothing to reduce")
    with TemporaryDirectory() as folder, progress.step("reducing"):
        search = Search(args, progress, found[0], Path(folder), known_names)
        best = search.run(wiring, {**arrays, **bound}, bound)
        save(best.model, output)
    inputs = output.with_suffix(".npz")
    write_arrays(inputs, best.inputs)
    return _report(args, found, wiring, best, output, inputs)


def _check_options(args: argparse.Namespace) -> None:
    """Raises the error of a target or an option that no model can be compiled with: the model is not what is wrong."""
    options_of(args.precision, args.cores, {})
    info = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    result = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "smallest", [info], [result])
    opset = helper.make_opsetid("", 17)
    start(helper.make_model(graph, opset_imports=[opset]), target=args.target, cores=args.cores, weights=args.weights)


def _report(
    args: argparse.Namespace, found: Sequence[Symptom], wiring: Wiring, best: "Candidate", output: Path, inputs: Path
) -> Report:
    symptom = found[0]
    compares = symptom.phase == "compare"
    command = command_for(symptom.phase, args, output, inputs if compares else None)
    nodes = [f"{node.name} ({node.op_type})" for node in best.model.graph.node]
    before, after = count_nodes(wiring.nodes), count_nodes(best.model.graph.node)
    data = {
        "symptom": {"kind": symptom.kind, "where": symptom.where, "text": symptom.text},
        "others": [other.text for other in found[1:]],
        "file": str(output),
        "inputs": {"file": str(inputs), "names": list(best.inputs)},
        "nodes": after,
        "of_nodes": before,
        "operators": [node.op_type for node in best.model.graph.node],
        "command": command,
    }
    lines = [
        f"{symptom.kind}{' ' if symptom.kind == 'departs' else ': '}{symptom.text}",
        *([f"  and {plural(len(found) - 1, 'other problem')}, not looked at"] if len(found) > 1 else []),
        f"{output}: {plural(after, 'node')} of {before} with the same symptom: {names(nodes, 8)}",
        f"  {inputs}: {names(list(best.inputs), 8)}, as they are inside the whole",
        f"next: {command}",
    ]
    return Report(data, "\n".join(lines))


def _inputs(wiring: Wiring, args: argparse.Namespace) -> tuple[dict[str, Array], dict[str, Array]]:
    """The inputs, and the constants. Raises `CommandError` for those of a wrong form: no part would be smaller."""
    constants = {name: constant.value for name, constant in read_constants(constants_of(args)).items()}
    graph, shapes = wiring.proto.graph, shapes_of(args)
    bound, problems = bind(graph, constants, shapes)
    problems += declared_inputs(graph, shapes, bound=constants, host=args.host)[1]
    if problems:
        raise CommandError(*problems)
    return read_inputs(args, inputs_wanted(wiring, args, constants)), bound


def _names(wiring: Wiring) -> list[str]:
    """Names of all nodes and values, those inside of graphs among them."""
    found = dict.fromkeys(wiring.inputs)

    def walk(nodes: Sequence[onnx.NodeProto]) -> None:
        for node in nodes:
            found.update(dict.fromkeys([node.name, *node.output]))
            for graph in inner_graphs(node):
                walk(graph.node)

    walk(wiring.nodes)
    return [name for name in found if name]


def _given(args: argparse.Namespace, model: Path, inputs: Path | None = None) -> argparse.Namespace:
    """The options of a command on a model: on the whole, or with `inputs` on a part, whose shapes are static."""
    given = argparse.Namespace(**vars(args))
    given.model = model
    if inputs is not None:
        given.shape, given.const, given.input, given.random = [], [], [str(inputs)], None
        given.mean, given.std, given.bgr = 0.0, 1.0, False
    return given


@dataclass(frozen=True, slots=True)
class Candidate:
    """A part as a model."""

    model: onnx.ModelProto
    inputs: Mapping[str, Array]


@dataclass
class Values:
    """What is known of the values of a model."""

    recorded: dict[str, Array]
    known: dict[str, Array]
    """By the importer, from shapes and constants alone."""


@dataclass
class Search:
    """The search for the smallest part with a symptom."""

    args: argparse.Namespace
    progress: Progress
    symptom: Symptom
    folder: Path
    names: Sequence[str]
    tries: int = 0
    seen: dict[Part, bool] = field(default_factory=dict[Part, bool])

    def run(self, wiring: Wiring, inputs: Mapping[str, Array], bound: Mapping[str, Array]) -> Candidate:
        """The smallest part. Raises `CommandError` if not even the whole, cut from its file, has the symptom."""
        wiring = self._flat(wiring, inputs, bound)
        hints = [wiring.numbers[name] for name in self.symptom.nodes if name in wiring.numbers]
        values = self._record(wiring, inputs, bound, hints)
        part = self._smallest(wiring, values, hints)
        for _ in range(_MOST_ROUNDS):
            smaller = self._apart(wiring, values, part)
            if smaller is None:
                break
            wiring, values, part = smaller
        best = candidate(wiring, values, part)
        assert best is not None
        return best

    def _flat(self, wiring: Wiring, inputs: Mapping[str, Array], bound: Mapping[str, Array]) -> Wiring:
        """The wiring with the branches that are taken in place of their If, as long as that has the symptom."""
        while True:
            known = self._record(wiring, inputs, bound).known
            proto = flattened(wiring.proto, known)
            if proto is None:
                return wiring
            flat = Wiring(proto, wiring.folder)
            values = self._record(flat, inputs, bound)
            made = candidate(flat, values, range(len(flat.nodes)))
            if made is None or not self._is_the_same(made):
                return wiring
            wiring = flat

    def _record(
        self, wiring: Wiring, inputs: Mapping[str, Array], bound: Mapping[str, Array], odd: Sequence[int] = ()
    ) -> Values:
        return record(wiring, inputs, bound, odd, self.args.timeout, self.args.host)

    def _smallest(self, wiring: Wiring, values: Values, hints: Sequence[int]) -> Part:
        self.seen = {}
        whole = frozenset(range(len(wiring.nodes)))
        start = next((part for part in _around(wiring, hints) if self._shows(wiring, values, part)), whole)
        if start == whole and not self._shows(wiring, values, whole):
            rule = f"{self.args.model}: must show the same when it is cut from its file (found that it does not)"
            raise CommandError(f"{rule}; report this, with what was seen: {self.symptom.text}")
        return ddmin(start, lambda part: self._shows(wiring, values, part))

    def _shows(self, wiring: Wiring, values: Values, part: Part) -> bool:
        """Whether a part has the symptom."""
        if part not in self.seen:
            made = candidate(wiring, values, part)
            self.seen[part] = made is not None and self._is_the_same(made)
        return self.seen[part]

    def _is_the_same(self, made: Candidate) -> bool:
        self.tries += 1
        self.progress.detail = f"attempt {self.tries}, {plural(len(made.model.graph.node), 'node')}"
        model, inputs = self.folder / self.args.model.name, self.folder / "inputs.npz"  # messages may name the model
        save(made.model, model)
        write_arrays(inputs, made.inputs)
        given = _given(self.args, model, inputs)
        return self.symptom.is_in(symptoms(given, (self.symptom.phase,), self.names, self.args.timeout))

    def _apart(self, wiring: Wiring, values: Values, part: Part) -> tuple[Wiring, Values, Part] | None:
        """A smaller part, with what is in a graph in place of the node that holds it; None if there is none."""
        size = count_nodes(wiring.nodes[i] for i in part)
        holders = [wiring.nodes[i] for i in sorted(part) if inner_graphs(wiring.nodes[i])]
        if not holders:
            return None
        made = candidate(wiring, values, part)
        assert made is not None
        for node in holders:
            for model in hoisted(made.model, node, values.recorded):
                inner = Wiring(model, None)
                found = self._inside(inner, made.inputs)
                if found is not None and count_nodes(inner.nodes[i] for i in found[1]) < size:
                    return inner, *found
        return None

    def _inside(self, wiring: Wiring, inputs: Mapping[str, Array]) -> tuple[Values, Part] | None:
        """The smallest part of a changed model; None if it has not the symptom."""
        values = self._record(wiring, inputs, {})
        self.seen = {}
        whole = frozenset(range(len(wiring.nodes)))
        if not self._shows(wiring, values, whole):
            return None
        return values, ddmin(whole, lambda part: self._shows(wiring, values, part))


def candidate(wiring: Wiring, values: Values, part: Collection[int]) -> Candidate | None:
    """A part as a model with recorded inputs; None if a value at its border is not recorded."""
    whole = wiring.with_constants(part, values.known.keys())
    borders = wiring.borders(whole, values.known.keys())
    if not whole or any(name not in values.recorded for name in borders):
        return None
    taken = wiring.readers.keys() | set(wiring.outputs)
    sinks = [name for name in wiring.sinks(whole) if name in taken]
    outputs = [name for name in sinks if name in wiring.dynamic and name not in values.known] or sinks
    if not outputs:
        return None
    arrays = {name: values.recorded[name] for name in borders}
    inputs = {name: Border(array, helper.np_dtype_to_tensor_dtype(array.dtype)) for name, array in arrays.items()}
    shapes = {name: values.recorded[name].shape for name in outputs if name in values.recorded}
    return Candidate(wiring.model(whole, inputs, outputs, values.known, shapes), arrays)


def _around(wiring: Wiring, hints: Sequence[int]) -> Iterator[Part]:
    """The nodes that are named, then with those around them, ever more."""
    part = frozenset(hints)
    while part and len(part) < len(wiring.nodes) // 2:
        yield part
        before = {wiring.makers[name] for i in part for name in wiring.reads[i] if name in wiring.makers}
        after = {r for i in part for name in wiring.nodes[i].output for r in wiring.readers.get(name, ())}
        if part.issuperset(before | after):
            return
        part |= before | after


def ddmin(part: Part, shows: Any) -> Part:
    """A smallest part that shows it, in that no node of it can be left out: Zeller's delta debugging."""
    nodes, pieces = sorted(part), 2
    while len(nodes) > 1:
        size = -(-len(nodes) // pieces)
        chunks = [nodes[i : i + size] for i in range(0, len(nodes), size)]
        rests = [[node for node in nodes if node not in chunk] for chunk in chunks] if len(chunks) > 2 else []
        smaller = next((chunk for chunk in chunks if shows(frozenset(chunk))), None)
        if smaller is not None:
            nodes, pieces = smaller, 2
            continue
        smaller = next((rest for rest in rests if shows(frozenset(rest))), None)
        if smaller is not None:
            nodes, pieces = smaller, max(2, len(chunks) - 1)
        elif size == 1:
            break
        else:
            pieces = min(len(nodes), 2 * pieces)
    return frozenset(nodes)


# values ---------------------------------------------------------------------------------------------------------------


def record(
    wiring: Wiring,
    inputs: Mapping[str, Array],
    bound: Mapping[str, Array],
    odd: Sequence[int],
    seconds: float,
    host: bool,
) -> Values:
    """The values of a model by onnxruntime; where it cannot run the model, of what does not depend on `odd` nodes.

    What is left then gets seeded values in the shapes that the importer has found.
    """
    known, sizes = _attempt(lambda: _imported(wiring, inputs, bound, host), seconds) or ({}, {})
    nodes = set(range(len(wiring.nodes)))
    late = {*odd, *wiring.after([name for i in odd for name in wiring.nodes[i].output])}
    recorded = dict(inputs)
    for part in (nodes, nodes - late):
        found = _attempt(lambda part=part: _run(wiring, inputs, part), seconds)
        if found is not None:
            recorded |= found
            break
    generator = np.random.default_rng(0)
    for name, (size, dtype) in sizes.items():
        if name not in recorded:
            recorded[name] = generator.standard_normal(size).astype(dtype)
    arrays = {k: v for k, v in recorded.items() if isinstance(v, np.ndarray) and v.dtype.kind in "biufO"}
    return Values(arrays, known)


def _attempt(work: Any, seconds: float) -> Any:
    """What the work returns; None if it fails."""

    def tried() -> Any:
        try:
            return work()
        except Exception:  # noqa: BLE001 - what cannot be known is left out
            return None

    try:
        return isolated(tried, seconds)
    except (CrashError, HangError):
        return None


def _imported(
    wiring: Wiring, inputs: Mapping[str, Array], bound: Mapping[str, Array], host: bool
) -> tuple[dict[str, Array], dict[str, tuple[tuple[int, ...], np.dtype[Any]]]]:
    """What the importer knows: arrays, and the shapes and types of what is computed, as far as both are."""
    values: dict[str, Value | None] = {}
    shapes = {name: array.shape for name, array in inputs.items() if name in wiring.inputs and name not in bound}
    with suppress(Exception):  # which may be the symptom
        import_onnx(wiring.proto, shapes=shapes, folder=wiring.folder, constants=bound, host=host, values=values)
    known = {k: v for k, v in values.items() if v is not None and not isinstance(v, SSAValue)}
    known = {k: v for k, v in known.items() if k in bound or k not in wiring.initializers}
    computed = {k: v for k, v in values.items() if isinstance(v, SSAValue)}
    sizes = {name: _form(value, wiring.elements.get(name)) for name, value in computed.items()}
    return known, {name: form for name, form in sizes.items() if form is not None}


def _form(value: SSAValue, declared: int | None) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
    """The shape and the type of an array, which ONNX's shape inference may know better; None if data decide it."""
    if is_host(value):
        kind = host_type(value)
        size, dtype = kind.shape if kind.is_static else None, kind.dtype
    else:
        size, dtype = shape(value), NUMPY[element(value)]
    if size is None or dtype is None:
        return None
    return size, helper.tensor_dtype_to_np_dtype(declared) if declared else dtype


def _run(wiring: Wiring, inputs: Mapping[str, Array], part: Collection[int]) -> dict[str, Any]:
    """Every value of a part by onnxruntime."""
    needed = {name for name in wiring.borders(part) if name in inputs}
    borders = {name: Border(inputs[name], helper.np_dtype_to_tensor_dtype(inputs[name].dtype)) for name in needed}
    outputs = [name for i in sorted(part) for name in wiring.nodes[i].output if name in wiring.dynamic]
    model = wiring.model(part, borders, outputs)
    return onnxruntime_run(model, {name: inputs[name] for name in needed})
