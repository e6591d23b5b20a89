"""`stepwell compare`: one model and one input at every stage, and the first op that departs.

| stage | what runs | against | departs if |
|---|---|---|---|
| import | the graph dialect as imported, in the model's own types | onnxruntime | an output's cosine is too small |
| graph | the kernels as graph ops, in the chosen precision | onnxruntime | an output's cosine is too small |
| tile | the kernels as loops over tiles | graph, kernel by kernel | a bit differs |
| npu | the encoded program on the emulated device | graph, kernel by kernel | a bit differs |

Where an output departs from onnxruntime's, the first op is named whose value is that of none of its ONNX nodes.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.external_data_helper import load_external_data_for_model
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Operation, SSAValue

from ..dialects import evaluate_tile, tile
from ..dialects.evaluate import evaluate
from ..dialects.graph.constants import NUMPY
from ..dialects.graph.host import is_host
from ..dialects.graph.op import element, shape
from ..dialects.graph.structure import LaunchOp
from ..frontend.model_file import read_model
from ..frontend.sparse import dense
from ..passes.location import node_names
from ..runtime.artifact import Artifact
from ..runtime.cpu import HostPart
from ..runtime.problem import Kind
from ..runtime.steps import TensorRef
from .agreement import Agreement, agree, onnxruntime_run
from .commands import announce_compilation, host_data, host_lines, read_inputs, shapes_of
from .compilation import (
    Compilation,
    advance,
    functions_of,
    inputs_of,
    link,
    main_of,
    more_to_leave,
    on_the_cpu,
    options_of,
    start,
)
from .constants import constants_of
from .errors import PROBLEM, CommandError
from .passmanager import PipelineError
from .progress import Progress
from .report import OK, Report, beside, names, table

Array = NDArray[Any]
Checked = tuple[str, tuple[str, ...], Array]
"""An op, the ONNX nodes it stands for, and its value."""
_MOST_AXES = 5
_NEAR = 0.99
_SAME_VALUES = 0.005
"""Sorted values that differ by less than this, of the largest, are taken for the same in another order."""


@dataclass(frozen=True, slots=True)
class Departure:
    """The first op of a stage whose values are not those of its reference."""

    op: str
    nodes: tuple[str, ...]
    found: str
    measure: float = 1.0
    """1 − cosine, or 1 where bits differ."""

    def __str__(self) -> str:
        return f"{self.op} of {names(self.nodes)}: {self.found}"


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage that ran: its outputs against onnxruntime's, and its ops against their reference."""

    name: str
    outputs: tuple[Agreement, ...]
    checked: int
    departure: Departure | None
    host: tuple[HostPart, ...] = ()
    """What ran on the CPU, at the last stage."""


def compare_model(args: argparse.Namespace, progress: Progress) -> Report:
    """Runs every stage. The exit code is 1 if one departs."""
    if not args.model.is_file():
        found = "a folder" if args.model.is_dir() else "no such file"
        raise CommandError(f"{args.model}: is a file (found {found}); name an .onnx model", kind=Kind.FILE)
    if args.model.suffix in (".stw", ".mlir"):
        raise CommandError(f"{args.model}: must be an .onnx model (found {args.model.suffix}); name the model")
    stages = run_stages(args, progress)
    parts = stages[-1].host
    departed = next((stage for stage in stages if stage.departure is not None), None)
    data = {
        "model": str(args.model),
        "stages": [
            {
                "name": stage.name,
                "outputs": [agreement.to_dict() for agreement in stage.outputs],
                "checked": stage.checked,
                "departure": None if stage.departure is None else _departure_data(stage.departure),
            }
            for stage in stages
        ],
        "departs": departed.name if departed else None,
        "host": host_data(parts),
    }
    return Report(
        data, "\n".join([_text(stages, departed, args.cosine), *host_lines(parts)]), PROBLEM if departed else OK
    )


def _departure_data(departure: Departure) -> dict[str, Any]:
    return {"op": departure.op, "nodes": departure.nodes, "found": departure.found}


def _text(stages: Sequence[Stage], departed: Stage | None, least: float) -> str:
    rows = [
        (
            stage.name,
            o.name,
            beside(o.cosine, least),
            f"{o.max_abs_error:.3g}",
            f"{o.top1:.1%}",
            stage.checked or "outputs only",
        )
        for stage in stages
        for o in stage.outputs
    ]
    heading = ("stage", "output", "cosine", "max error", "top-1", "ops checked")
    if departed is None:
        verdict = "every stage agrees"
    else:
        verdict = f"departs at {departed.name}: {departed.departure}"
    return f"{table(heading, rows, indent='')}\n\n{verdict}"


def run_stages(args: argparse.Namespace, progress: Progress) -> list[Stage]:
    """All stages."""
    return list({stage.name: stage for stage in stages_of(args, progress)}.values())


def stages_of(args: argparse.Namespace, progress: Progress) -> Iterator[Stage]:
    """The stages in order, each against its reference.

    They begin anew where a node turns out to have no kernel for the target, with that node on the CPU.
    """
    leave: Mapping[str, str] = {}
    while True:
        run = _Comparison(args, progress, leave)
        try:
            for stage in (run.imported, run.graph, run.tile, run.npu):
                yield stage()
            return
        except PipelineError as error:
            leave = more_to_leave(run.work, error)


class _Comparison:
    """One model on its way down, with the values that it is compared with."""

    def __init__(self, args: argparse.Namespace, progress: Progress, leave: Mapping[str, str]) -> None:
        self.args = args
        self.progress = progress
        with progress.step("importing"):
            read, folder = read_model(args.model)
            self.proto = dense(read, folder)
            model = self.proto if name_nodes(self.proto) else args.model
            self.work = start(
                model,
                target=args.target,
                shapes=shapes_of(args),
                constants=constants_of(args),
                cores=args.cores,
                host=args.host,
                leave=leave,
            )
        self.options = options_of(args.precision, args.cores, {})
        self.inputs = read_inputs(args, inputs_of(self.work))
        with progress.step("running onnxruntime"):
            complete = with_all_values(self.proto)
            load_external_data_for_model(complete, str(folder))
            bound = {name: constant.value for name, constant in self.work.origin.constants.items()}
            self.every = onnxruntime_run(complete, self.inputs | bound)
        self.by_node = {node.name: self.every[node.output[0]] for node in self.proto.graph.node if node.output[0]}
        self.expected: list[Launched] = []
        """The launches that the graph stage ran, in order."""

    def imported(self) -> Stage:
        """Every node as an op of the graph dialect."""
        with self.progress.step("running the imported graph"):
            results, values = self._evaluate()
        return self._against_onnxruntime("import", results, imported_ops(self.work, values))

    def graph(self) -> Stage:
        """Every kernel as graph ops."""
        with self.progress.step("running the graph stage"):
            advance(self.work, "graph", self.options)
            kernels = functions_of(self.work.module)

            def launch(op: LaunchOp, operands: Sequence[Array]) -> Sequence[Array]:
                found = evaluate(kernels[op.callee], operands, self.work.ctx.weights)
                title = f"launch {len(self.expected)} (@{op.callee})"
                self.expected.append(Launched(title, nodes_of(op), tuple(found)))
                return found

            with on_the_cpu():
                results = evaluate(self.work.module, self._arguments(), self.work.ctx.weights, launch=launch)
            ops = [(launched.title, launched.nodes, launched.results[0]) for launched in self.expected]
        return self._against_onnxruntime("graph", results, ops)

    def tile(self) -> Stage:
        """Every launch evaluated as a tile kernel, on the values that this stage made itself."""
        work = self.work
        with self.progress.step("running the tile stage"):
            advance(work, "tile", self.options)
            bits = _Bits(self.expected)
            run = _tile_runner(work, self.options["cores"] or work.target.cores)

            def launch(op: LaunchOp, operands: Sequence[Array]) -> Sequence[Array]:
                found = run(op, operands)
                bits.check(found)
                return found

            with on_the_cpu():
                results = evaluate(work.module, self._arguments(), work.ctx.weights, launch=launch)
        return self._stage("tile", results, bits.checked, bits.departure)

    def npu(self) -> Stage:
        """The artifact on the emulated device; the results of each launch are read when it ends."""
        with self.progress.step("running the npu stage"):
            announce_compilation(self.progress)
            advance(self.work, "npu", self.options)
            artifact = link(self.work, {"precision": self.args.precision}, self.args.cores)
            bits = _Bits(self.expected)

            def on_launch(done: int, _: int) -> None:
                bits.check(results_of(artifact, done - 1, bits.wanted))

            outputs = artifact.model.run(self.inputs, on_launch=on_launch, linked=False)
        results = [outputs[output.name] for output in self.proto.graph.output]
        return replace(self._stage("npu", results, bits.checked, bits.departure), host=artifact.host)

    def _evaluate(self) -> tuple[list[Array], dict[SSAValue, Array]]:
        values: dict[SSAValue, Array] = {}
        with on_the_cpu():
            return evaluate(self.work.module, self._arguments(), self.work.ctx.weights, values=values), values

    def _arguments(self) -> list[Array]:
        """The inputs, in the types that `main` has by now: a stage narrows i64."""
        arguments = zip(inputs_of(self.work), main_of(self.work.module).body.block.args, strict=True)
        return [
            self.inputs[t.name]
            if is_host(argument)
            else self.inputs[t.name].astype(NUMPY[element(argument)], copy=False)
            for t, argument in arguments
        ]

    def _against_onnxruntime(self, name: str, results: Sequence[Array], ops: Sequence[Checked]) -> Stage:
        checked, first = first_departing(ops, self.by_node, self.args.cosine)
        stage = self._stage(name, results, checked, None)
        wrong = [output for output in stage.outputs if output.cosine < self.args.cosine]
        if not wrong:
            return stage
        least = self.args.cosine
        found = f"cosine {beside(wrong[0].cosine, least)} with onnxruntime, {least} expected"
        other = Departure(f"output {wrong[0].name}", (), found, 1 - wrong[0].cosine)
        return replace(stage, departure=first or other)

    def _stage(self, name: str, results: Sequence[Array], checked: int, departure: Departure | None) -> Stage:
        names_of_outputs = [output.name for output in self.proto.graph.output]
        pairs = zip(names_of_outputs, results, strict=True)
        return Stage(name, tuple(agree(n, found, self.every[n]) for n, found in pairs), checked, departure)


# references -----------------------------------------------------------------------------------------------------------


def with_all_values(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose outputs are the first output of every node."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    known = {output.name for output in copy.graph.output}
    for node in copy.graph.node:
        for name in node.output:
            if name and name not in known:
                copy.graph.output.append(onnx.ValueInfoProto(name=name))
                known.add(name)
    return copy


def name_nodes(proto: onnx.ModelProto) -> bool:
    """Names the nodes that have no name; whether there were any."""
    unnamed = [(number, node) for number, node in enumerate(proto.graph.node) if not node.name]
    for number, node in unnamed:
        node.name = f"{node.op_type}_{number}"
    return bool(unnamed)


def imported_ops(work: Compilation, values: Mapping[SSAValue, Array]) -> list[Checked]:
    """The last op of each ONNX node, whose value is the node's output."""
    last: dict[str, Operation] = {}
    for op in main_of(work.module).body.block.ops:
        found = node_names(op.location)
        if len(found) == 1 and op.results and not is_host(op.results[0]):
            last[found[0]] = op
    return [(op.name, (name,), values[op.results[0]]) for name, op in last.items() if op.results[0] in values]


def first_departing(
    checked: Sequence[Checked], reference: Mapping[str, Array], least: float
) -> tuple[int, Departure | None]:
    """How many ops could be compared, and the first of them that agrees with no value of its nodes."""
    compared, first = 0, None
    for op, nodes, value in checked:
        cosines = [best_cosine(value, reference[node]) for node in nodes if node in reference]
        known = [cosine for cosine in cosines if cosine is not None]
        if not known:
            continue
        compared += 1
        if max(known) < least and first is None:
            found = f"cosine {beside(max(known), least)} with onnxruntime, {least} expected"
            first = Departure(op, nodes, found, 1 - max(known))
    return compared, first


def best_cosine(found: Array, reference: Array) -> float | None:
    """The cosine, in the order of axes that fits best: passes move axes. None where sizes differ.

    Values that are the reference's in an order which no move of axes gives have cosine 1.
    """
    if found.size != reference.size or found.dtype.kind not in "fiub" or not found.size:
        return None
    a, b = np.squeeze(found), np.squeeze(reference)
    orders = permutations(range(b.ndim)) if b.ndim <= _MOST_AXES else [tuple(range(b.ndim))]
    candidates = [b.transpose(order) for order in orders if b.transpose(order).shape == a.shape] or [b.reshape(a.shape)]
    best = max(agree("", a, candidate).cosine for candidate in candidates)
    x, y = np.sort(a.astype(np.float64), axis=None), np.sort(b.astype(np.float64), axis=None)
    permuted = best < _NEAR and np.abs(x - y).max() <= _SAME_VALUES * np.abs(y).max()
    return 1.0 if permuted else best


# kernels --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Launched:
    """A launch that ran, and what it gave."""

    title: str
    nodes: tuple[str, ...]
    results: tuple[Array, ...]


def nodes_of(op: LaunchOp) -> tuple[str, ...]:
    """All ONNX nodes of a launch."""
    slots = op.attributes.get("nodes")
    found = [slot for slot in slots if isinstance(slot, ArrayAttr)] if isinstance(slots, ArrayAttr) else []
    return tuple(dict.fromkeys(name.data for slot in found for name in slot if isinstance(name, StringAttr)))


class _Bits:
    """Compares the results of kernels with the graph's, bit for bit, one launch after the other."""

    def __init__(self, expected: Sequence[Launched]) -> None:
        self._expected = expected
        self.checked = 0
        self.departure: Departure | None = None

    @property
    def wanted(self) -> int:
        """How many results the next launch has."""
        return len(self._expected[self.checked].results) if self.checked < len(self._expected) else 0

    def check(self, found: Sequence[Array]) -> None:
        """The results of the next launch; of one that the graph did not run, since a value decided otherwise, none."""
        if self.checked == len(self._expected):
            return
        launched = self._expected[self.checked]
        self.checked += 1
        if self.departure is not None:
            return
        for array, wanted in zip(found, launched.results, strict=True):
            count = differing(array, wanted)
            if count and self.departure is None:
                place = f"{count} of {wanted.size} values differ from the graph's"
                self.departure = Departure(launched.title, launched.nodes, place)


def differing(found: Array, expected: Array) -> int:
    """How many values differ in a bit."""
    kind = np.dtype(f"u{expected.dtype.itemsize}")
    a, b = np.ascontiguousarray(found).reshape(-1).view(kind), np.ascontiguousarray(expected).reshape(-1).view(kind)
    return int((a != b).sum())


def _tile_runner(work: Compilation, cores: int) -> Callable[[LaunchOp, Sequence[Array]], list[Array]]:
    """Runs launches by the tile evaluator."""
    kernels = {op.sym_name.data: evaluate_tile.prepare(op) for op in work.module.ops if isinstance(op, tile.KernelOp)}

    def run(op: LaunchOp, operands: Sequence[Array]) -> list[Array]:
        results = [np.zeros(shape(result), NUMPY[element(result)]) for result in op.results]
        kernels[op.callee].run([*(np.array(operand, order="C") for operand in operands), *results], cores)
        return results

    return run


def results_of(artifact: Artifact, step: int, count: int) -> list[Array]:
    """What a launch wrote: its last arguments."""
    plan = artifact.plans[0]
    arguments = [a for a in plan.launches[step].arguments if isinstance(a, TensorRef)]
    return [artifact.model.peek(artifact.tensors[a.tensor]) for a in arguments[len(arguments) - count :]]
