"""`stepwell extract`: a part of a model as a model, with its inputs as they are inside the whole.

    stepwell extract model.onnx --from a --to b --random 0 -o part.onnx

The part compiled with the same precision gives the bits that the values have inside the whole. What could keep it from
doing so:

- A value that the compiler does not compute: it lies within a recognised composite, or its scale went into weights. An
  end there is refused; a start there moves to the border of the composite.
- A start that is an f32 edge inside, in an island of fp16: an input would be rounded. It moves up to where edges are
  fp16 again, or to the inputs.
- A start of a type that no input has: what is no tensor, and integers that 32 bits do not hold. It moves up.
- An op that is compiled in another way, since the part lacks what is around it: the values that leave the part become
  outputs as well, and then the part grows.

Whether the bits are those of the whole is found out, by evaluating both at `precision`.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper
from xdsl.ir import Attribute, Block, SSAValue

from ..dialects.graph.constants import NUMPY
from ..dialects.graph.host import host_type, is_host
from ..dialects.graph.op import element, f32
from ..frontend.cut import Border, Wiring, save
from ..frontend.hoist import flattened
from ..frontend.inputs import read_inputs as declared_inputs
from ..frontend.onnx import ImportProblems
from ..passes.location import node_names
from ..runtime.border import too_wide
from ..runtime.cpu import HOST
from ..runtime.plan import Tensor
from ..runtime.problem import Kind, Problem
from ..runtime.target import Target
from .agreement import same
from .commands import read_inputs, shapes_of, write_arrays
from .compilation import compiled_to, options_of
from .constants import constants_of
from .constants import read as read_constants
from .errors import CommandError
from .inside import Inside, cone, extents, is_tensor, island, marks, value_of
from .passmanager import PipelineError
from .progress import Progress
from .report import COSINE, Report, names, plural

Array = NDArray[Any]
_MOST_STEPS = 40


@dataclass(frozen=True, slots=True)
class Part:
    """A sub-model, its inputs, what its outputs are inside the whole, and how it came to be larger than asked for."""

    model: onnx.ModelProto
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    notes: Sequence[str]


def extract_model(args: argparse.Namespace, progress: Progress) -> Report:
    """Writes the part, and its inputs and outputs beside it."""
    output = output_of(args, "part")
    with progress.step("reading the model"):
        wiring = Wiring.read(args.model)
    constants = {name: constant.value for name, constant in read_constants(constants_of(args)).items()}
    options, target = options_of(args.precision, args.cores, {}), Target.load(args.target)
    with progress.step("finding what the CPU runs"):
        given: dict[str, Any] = {"shapes": shapes_of(args), "constants": constants, "host": args.host}
        given["leave"] = left_to_cpu(args)
    with progress.step("compiling up to precision"):
        wiring, whole = opened(wiring, lambda proto, folder: Inside(proto, folder, options, target, **given))
    starts, ends = named(wiring, args.starts, args.ends)
    arrays = read_inputs(args, inputs_wanted(wiring, args, constants))
    with progress.step("running the whole"):
        values = whole.evaluate(arrays)
    with progress.step("cutting"):
        part = Extraction(wiring, whole, values, options, target).run(starts, ends)
    inputs, outputs = output.with_suffix(".npz"), output.with_name(f"{output.stem}.outputs.npz")
    save(part.model, output)
    write_arrays(inputs, part.inputs)
    write_arrays(outputs, part.outputs)
    command = command_for("run", args, output, inputs)
    count = len(part.model.graph.node)
    data = {
        "file": str(output),
        "inputs": {"file": str(inputs), "names": list(part.inputs)},
        "outputs": {"file": str(outputs), "names": list(part.outputs)},
        "nodes": count,
        "of_nodes": len(wiring.nodes),
        "notes": list(part.notes),
        "command": command,
    }
    lines = [
        f"{output}: {plural(count, 'node')} of {len(wiring.nodes)}, {names(list(part.inputs), 8)} → "
        f"{names(list(part.outputs), 8)}; as inside the whole, bit by bit",
        *(f"  {note}" for note in part.notes),
        f"  {inputs}: the inputs; {outputs}: the values inside the whole",
        f"next: {command}",
    ]
    return Report(data, "\n".join(lines))


def output_of(args: argparse.Namespace, ending: str) -> Path:
    """Where a part of the model goes; by default, `MODEL-<ending>.onnx`. Raises `CommandError`."""
    model: Path = args.model
    if model.suffix in (".stw", ".mlir"):
        raise CommandError(f"{model}: must be an .onnx model (found {model.suffix}); name the model")
    output: Path = args.output or model.with_name(f"{model.stem}-{ending}.onnx")
    if output.suffix != ".onnx":
        raise CommandError(f"-o {output}: must end in .onnx (found {output.suffix or 'no suffix'}); write -o FILE.onnx")
    if output.exists() and model.exists() and output.samefile(model):
        rule = f"-o {output}: is a file of its own (found the model itself, which would be lost)"
        raise CommandError(f"{rule}; name another file")
    return output


def left_to_cpu(args: argparse.Namespace) -> Mapping[str, str]:
    """The nodes of the whole that the target has no kernel for, if it compiles at all."""
    if not args.host:
        return {}
    source: dict[str, Any] = {"target": args.target, "shapes": shapes_of(args), "constants": constants_of(args)}
    try:
        work = compiled_to("tile", args.model, options_of(args.precision, args.cores, {}), cores=args.cores, **source)
    except PipelineError:
        return {}
    return work.origin.left or {}


def opened(wiring: Wiring, compiled: Callable[[onnx.ModelProto, Path | None], Inside]) -> tuple[Wiring, Inside]:
    """The wiring with the branches that are taken in place of their If, if that is compiled to the same."""
    whole = compiled(wiring.proto, wiring.folder)
    while (proto := flattened(wiring.proto, whole.known)) is not None:
        inner = compiled(proto, wiring.folder)
        if inner.results() != whole.results():
            break
        wiring, whole = Wiring(proto, wiring.folder), inner
    return wiring, whole


def command_for(name: str, args: argparse.Namespace, model: Path, inputs: Path | None) -> str:
    """The command that runs a part in the way its whole was run."""
    words = ["stepwell", name, str(model)]
    words += ["--input", str(inputs)] if inputs is not None else []
    words += ["--target", str(args.target), "--precision", args.precision]
    words += ["--cores", str(args.cores)] if args.cores is not None else []
    words += [] if args.host else ["--no-host"]
    words += ["--cosine", str(args.cosine)] if name == "compare" and args.cosine != COSINE else []
    return " ".join(map(quote, words))


def inputs_wanted(wiring: Wiring, args: argparse.Namespace, constants: Mapping[str, Any]) -> list[Tensor]:
    """The inputs of a model that are no constants."""
    items, _ = declared_inputs(wiring.proto.graph, shapes_of(args), bound=constants, host=args.host)
    return [
        Tensor(item.name, "", item.shape, "input", 0, str(NUMPY[item.element]))
        if item.element is not None
        else Tensor(item.name, HOST, item.shape, "input", 0, str(item.host))
        for item in items
    ]


def named(wiring: Wiring, starts: Sequence[str], ends: Sequence[str]) -> tuple[list[str], list[str]]:
    """The values of `--from` and `--to` (default: the outputs that depend on the former).

    Raises one `CommandError` for all that name nothing.
    """
    problems = list[str]()
    found = _named(wiring, starts, "--from", problems), _named(wiring, ends, "--to", problems)
    if problems:
        raise CommandError(*problems)
    behind = wiring.made(wiring.after(found[0]))
    outputs = [name for name in wiring.outputs if name in behind or not found[0]]
    return found[0], found[1] or outputs or wiring.outputs


def _named(wiring: Wiring, texts: Sequence[str], option: str, problems: list[str]) -> list[str]:
    """Names of values, or of nodes: their inputs are meant by `--from`, their outputs by `--to`."""
    known = wiring.makers.keys() | set(wiring.inputs)
    found = dict[str, None]()
    for text in texts:
        whole = text in known or text in wiring.numbers
        for name in (text,) if whole else (part.strip() for part in text.split(",")):
            if name in known:
                found[name] = None
            elif name in wiring.numbers:
                node = wiring.numbers[name]
                own = wiring.nodes[node].output if option == "--to" else wiring.reads[node]
                found |= dict.fromkeys(key for key in own if key in known)
            else:
                problems.append(f"{option} {name}: {_unknown(wiring, name)}")
    return list(found)


def _unknown(wiring: Wiring, name: str) -> str:
    from difflib import get_close_matches

    if name in wiring.initializers:
        return "must be a computed value (found an initialiser); name a value that depends on an input"
    near = get_close_matches(name, [*wiring.makers, *wiring.inputs, *wiring.numbers], n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "stepwell-opt MODEL --print-debuginfo shows the nodes"
    return f"must be a value or a node of the main graph (found none of this name); {hint}"


@dataclass
class Extraction:
    """The search for a part whose bits are those of the whole."""

    wiring: Wiring
    whole: Inside
    values: Mapping[SSAValue, Array]
    """Of every edge inside the whole."""
    options: Mapping[str, Any]
    target: Target
    notes: list[str] = field(default_factory=list[str])
    reasons: set[str] = field(default_factory=set[str])
    added: set[int] = field(default_factory=set[int])
    """Nodes that were taken along, though some are not needed in the end."""
    ends: Sequence[str] = ()
    more: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    """Outputs beside the ends."""
    step: int = 1

    def __post_init__(self) -> None:
        for name, kind in self.whole.held.items():
            if kind.dtype is not None:
                self.wiring.elements.setdefault(name, helper.np_dtype_to_tensor_dtype(kind.dtype))

    def run(self, starts: Sequence[str], ends: Sequence[str]) -> Part:
        """The part. Raises `CommandError` if there is none."""
        edges, self.ends = self._ends(ends), ends
        part = self.wiring.between(starts, ends)
        if apart := [name for name in ends if self.wiring.makers[name] not in part]:
            way = f"from {names(list(starts))}" if starts else "from the inputs"
            raise CommandError(f"--to {names(apart)}: must depend on --from (found no node {way}); name other values")
        if unused := [name for name in starts if not part.intersection(self.wiring.readers.get(name, ()))]:
            lines = [
                f"--from {name}: must lie on a way to --to (found no node that reads it on one); leave it out"
                for name in unused
            ]
            raise CommandError(*lines)
        for _ in range(_MOST_STEPS):
            part = self._needed(part)
            larger = self._attempt(part, edges)
            if isinstance(larger, Part):
                return larger
            self.added |= larger
            part = part | larger
        raise CommandError(self._other_bits("however much was added"))

    def _other_bits(self, where: str) -> Problem:
        rule = f"--to {names(list(self.ends))}: the part must give the bits of the whole (found other bits {where})"
        return Problem(f"{rule}; end at a later value, or extract it with --precision fp32", Kind.COMMAND)

    def _needed(self, part: set[int]) -> set[int]:
        """The part without what is known, such as the arithmetic of shapes, and with what makes constants."""
        known = self.whole.known.keys()
        computed = {i for i in part if any(name and name not in known for name in self.wiring.nodes[i].output)}
        return self.wiring.with_constants(computed, known)

    def _ends(self, ends: Sequence[str]) -> dict[str, SSAValue]:
        """The edges of the ends. Raises `CommandError` for those that the whole does not compute."""
        found = self.whole.find([name for name in ends if name in self.wiring.makers])
        if problems := [self._no_end(name) for name in ends if name not in found or not is_tensor(found[name])]:
            raise CommandError(*problems)
        return found

    def _no_end(self, name: str) -> str:
        if name in self.whole.known or name not in self.wiring.dynamic:
            return f"--to {name}: must depend on an input (found a constant); name another value"
        if name not in self.wiring.makers:
            return f"--to {name}: must be made by a node (found an input); name another value"
        if name in self.whole.held:
            rule = f"--to {name}: must be a tensor (found {self.whole.held[name]})"
            return f"{rule}; name a value before or behind it"
        node = self.wiring.nodes[self.wiring.makers[name]].name
        composite = self.whole.nodes_with(node)
        if composite is None:
            rule = f"--to {name}: must be a value that is computed (found that {node} was folded away)"
            return f"{rule}; name a value behind it"
        op, nodes = composite
        numbers = [self.wiring.numbers[key] for key in nodes if key in self.wiring.numbers]
        behind = [key for key in self.wiring.leaving(numbers) if key != name and key in self.whole.find([key])]
        rule = f"--to {name}: must be a value that is computed (found it within one {op.name} of {names(nodes, 8)})"
        return f"{rule}; end at {' or '.join(behind) or 'a value behind it'}"

    def _attempt(self, part: set[int], ends: Mapping[str, SSAValue]) -> Part | set[int]:
        """The part, if it has the bits of the whole; else the nodes that it takes in addition."""
        known = self.whole.known
        borders = self.wiring.borders(part, known.keys())
        edges = self.whole.find(borders)
        more = self._moved(part, borders, edges)
        if more:
            return more
        inputs = {name: self._border(name, edges[name]) for name in borders}
        outputs = [*ends, *self.more]
        sizes = {name: extents(edge, value_of(edge, self.values).ndim) for name, edge in {**ends, **self.more}.items()}
        model = self.wiring.model(part, inputs, outputs, known, sizes)
        arrays = {name: border.array for name, border in inputs.items()}
        try:
            inner = self.whole.again(model)
        except ImportProblems as error:
            raise CommandError(*error.problems) from None
        found = inner.evaluate(arrays)
        results = {name: found[inner.result(i)] for i, name in enumerate(outputs)}
        wanted = {name: self._as_declared(ends[name], results[name].dtype) for name in ends}
        if all(same(results[name], wanted[name]) for name in ends):
            return Part(model, arrays, wanted, tuple(self.notes))
        return self._grown(part, edges, list(ends.values()), inner)

    def _moved(self, part: set[int], borders: Sequence[str], edges: Mapping[str, SSAValue]) -> set[int]:
        """The nodes before the borders that cannot be inputs."""
        more = set[int]()
        for name in borders:
            maker = self.wiring.makers.get(name)
            if maker is None:
                continue
            if name not in edges:
                node = self.wiring.nodes[maker].name
                composite = self.whole.nodes_with(node)
                nodes = composite[1] if composite is not None else [node]
                kind = composite[0].name if composite is not None else "no op of its own"
                more |= self._numbers(nodes) | {maker}
                self._note(f"lies within {kind} ({names(nodes, 8)}): the part starts before it", name)
            elif reason := self._no_input(name, edges[name]):
                more |= {maker}
                self._note(f"{reason}: the part starts before it", name)
            elif self._is_island(edges[name]):
                more |= {maker} | self._numbers(island(edges[name], behind=False))
                self._note("is f32 inside, where an input would be rounded: the part starts before it", name)
        return more - part

    def _numbers(self, nodes: Sequence[str]) -> set[int]:
        return {self.wiring.numbers[name] for name in nodes if name in self.wiring.numbers}

    def _note(self, text: str, name: str = "") -> None:
        """Why the part is not what was asked for; of one reason for several values the first is told."""
        if text not in self.reasons:
            self.reasons.add(text)
            self.notes.append(f"{name} {text}".strip())

    def _is_island(self, edge: SSAValue) -> bool:
        """An edge that keeps more than the low type holds."""
        if is_host(edge) or isinstance(edge.owner, Block):
            return False
        return self.whole.low != f32 and element(edge) == f32

    def _no_input(self, name: str, edge: SSAValue) -> str | None:
        """Why a value of the CPU can be no input of a part."""
        if not is_host(edge):
            return None
        if not is_tensor(edge):
            return f"is {host_type(edge)}, no tensor"
        wide = too_wide(value_of(edge, self.values), name)
        return f"has integers that 32 bits do not hold ({wide.found})" if wide else None

    def _border(self, name: str, edge: SSAValue) -> Border:
        kind = self.wiring.elements.get(name)
        array = value_of(edge, self.values)
        kind = kind or helper.np_dtype_to_tensor_dtype(array.dtype)
        return Border(array.astype(helper.tensor_dtype_to_np_dtype(kind)), kind)

    def _as_declared(self, edge: SSAValue, dtype: np.dtype[Any]) -> Array:
        return value_of(edge, self.values).astype(dtype, copy=False)

    def _grown(
        self, part: set[int], edges: Mapping[str, SSAValue], ends: Sequence[SSAValue], inner: Inside
    ) -> set[int]:
        """What the part lacks, for an op that it compiles in another way."""
        borders = list(zip(inner.input_names(), inner.block.args, strict=True))
        given: dict[SSAValue, bytes] = {argument: self.whole.marks[edges[name]] for name, argument in borders}
        equal: dict[SSAValue, Attribute] = {
            argument: element(edges[name]) for name, argument in borders if not is_host(edges[name])
        }
        same = set(marks(inner.block, given, equal).values())
        other = [
            op for op in cone(ends, list(edges.values())) if op.results and self.whole.marks[op.results[0]] not in same
        ]
        order = {op: number for number, op in enumerate(self.whole.block.ops)}
        for op in sorted(other, key=lambda op: order[op]):
            lacking = self._numbers(node_names(op.location)) - part - self.added
            if lacking:
                self._note(f"{op.name} is computed as a whole ({names(node_names(op.location), 8)})")
                return lacking
            edge = op.results[0]
            behind = self._numbers(island(edge, behind=True)) if self._is_island(edge) else set[int]()
            behind -= part | self.added
            if behind:
                self._note(f"{op.name} is f32 inside, for what comes behind it: that is taken along")
                self._take_out(self.wiring.sinks(part | behind))
                return behind
        if not self.more:
            self._take_out(self.wiring.leaving(part))
            if self.more:
                self._note(f"{names(list(self.more))} leave the part, and are outputs as well")
                return set()
        return self._around(part)

    def _take_out(self, values: Sequence[str]) -> None:
        """Makes more outputs of those that are computed."""
        found = self.whole.find([name for name in values if name not in self.more and name not in self.ends])
        self.more |= {name: edge for name, edge in found.items() if is_tensor(edge)}

    def _around(self, part: set[int]) -> set[int]:
        """Nodes before and behind the part, twice as many levels as the last time."""
        grown = set(part)
        for _ in range(self.step):
            grown |= {self.wiring.makers[name] for name in self.wiring.borders(grown) if name in self.wiring.makers}
            grown |= {reader for name in self.wiring.leaving(grown) for reader in self.wiring.readers.get(name, ())}
        if grown == part:
            raise CommandError(self._other_bits("in all of it"))
        self.step *= 2
        self._take_out(self.wiring.sinks(grown))
        self._note("what is around the part decides how it is compiled: more of it is taken along")
        return grown - part
