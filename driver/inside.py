"""Values inside a compilation: which values of a model exist once `precision` has passed, and what they are.

    whole = Inside(proto, folder, options)
    found = whole.find(["a", "b"])                # the edges that these values have become
    arrays = whole.evaluate({"x": x})             # all edges, by docs/numerics.md

From `precision` on no pass changes a bit, so its edges are the values of every later stage. A value exists if reading
it changes nothing: it is returned from a copy of the module, and the edge that is returned must be computed in the copy
as some edge is in the module itself. One within a composite, or between a convolution and the scale that was folded
into its weights, is not.

What the CPU runs are the nodes themselves, not joined: a value of the CPU exists as the model has it.
"""

from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import onnx
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..dialects.evaluate import evaluate
from ..dialects.graph.constants import NUMPY
from ..dialects.graph.elementwise import CastOp
from ..dialects.graph.host import host_type, is_host
from ..dialects.graph.op import GraphOp, element, f32, shape
from ..dialects.graph.views import ViewOp
from ..frontend.node import Value
from ..frontend.onnx import import_onnx
from ..passes.context import CompileContext
from ..passes.location import node_names
from ..passes.precision import POLICIES
from ..runtime.cpu import HostType
from ..runtime.target import Target
from . import pipeline
from .compilation import main_of, on_the_cpu
from .passmanager import Settings, run

Array = NDArray[Any]
_LAST = "precision"
_WHY = "nodes"
"""The property of `graph.host` that says what runs, and why there."""


class Inside:
    """A model up to `precision`."""

    def __init__(
        self,
        proto: onnx.ModelProto,
        folder: Path | None,
        options: Mapping[str, Any],
        target: Target,
        shapes: Mapping[str, Sequence[int]] | None = None,
        constants: Mapping[str, Any] | None = None,
        host: bool = True,
        leave: Mapping[str, str] | None = None,
    ) -> None:
        self._imported: dict[str, Value | None] = {}
        given: dict[str, Any] = {"shapes": shapes, "constants": constants, "host": host, "leave": leave}
        self._module, weights = import_onnx(proto, folder=folder, values=self._imported, **given)
        self._target, self._host, self._leave, self._folder = target, host, leave, folder
        self._ctx = CompileContext(target=target)
        self._ctx.weights.update(weights)
        self._options = options
        self.low = POLICIES[options["policy"]]
        self.module = self._module.clone()
        self._lower(self.module)
        self.block = main_of(self.module).body.block
        self.marks = marks(self.block, {})
        self.edges = {mark: value for value, mark in reversed(self.marks.items())}
        """The first edge of each mark."""

    def again(self, part: onnx.ModelProto) -> "Inside":
        """A part of the model, compiled in the same way."""
        kept: dict[str, Any] = {"host": self._host, "leave": self._leave}
        return Inside(part, self._folder, self._options, self._target, **kept)

    @property
    def known(self) -> dict[str, Array]:
        """The values of the model that depend on shapes and constants alone, and are known when it is imported."""
        return {k: v for k, v in self._imported.items() if v is not None and not isinstance(v, SSAValue)}

    @property
    def held(self) -> dict[str, HostType]:
        """The values that only the CPU has."""
        return {k: host_type(v) for k, v in self._imported.items() if isinstance(v, SSAValue) and is_host(v)}

    def _lower(self, module: ModuleOp) -> None:
        steps = pipeline.stage_passes(pipeline.GRAPH, {"policy": self._options["policy"]})
        run(self._ctx, module, steps, Settings(stop_after=_LAST))

    def find(self, names: Sequence[str]) -> dict[str, SSAValue]:
        """Of each value the edge that it has become; those that do not exist are left out."""
        found = self._find(names)
        # One that does not exist changes the ops around it, so the others are looked at without it.
        left = [name for name in names if name not in found]
        while len(left) > 1 and len(left) < len(names):
            again = self._find(left)
            if not again:
                break
            found |= again
            left = [name for name in left if name not in again]
        for name in left if len(left) > 1 else ():
            found |= self._find([name])
        return found

    def _find(self, names: Sequence[str]) -> dict[str, SSAValue]:
        mapping: dict[SSAValue, SSAValue] = {}
        copy = self._module.clone(mapping)
        values = {name: value for name in names if isinstance(value := self._imported.get(name), SSAValue)}
        last = main_of(copy).body.block.last_op
        assert last is not None
        own = len(last.operands)
        last.operands = [*last.operands, *(mapping[value] for value in values.values())]
        _declare(main_of(copy), last)
        self._lower(copy)
        block = main_of(copy).body.block
        last = block.last_op
        assert last is not None
        read = [_before_output(last.operands[own + i], value, self.low) for i, value in enumerate(values.values())]
        marked = marks(block, {})
        edges = {name: self._edge(value, marked) for name, value in zip(values, read, strict=True)}
        return {name: edge for name, edge in edges.items() if edge is not None}

    def _edge(self, value: SSAValue, marked: Mapping[SSAValue, bytes]) -> SSAValue | None:
        """The edge of a value of a copy; a view of one, which may have been merged with others, is made again."""
        if marked[value] in self.edges:
            return self.edges[marked[value]]
        view = value.owner
        if not isinstance(view, ViewOp) or len(view.operands) != 1 or len(view.results) != 1:
            return None
        edge = self._edge(view.operands[0], marked)
        last = self.block.last_op
        if edge is None or last is None:
            return None
        again = view.clone({view.operands[0]: edge})
        self.block.insert_op_before(again, last)
        self.marks[again.results[0]] = marked[value]
        self.edges[marked[value]] = again.results[0]
        return again.results[0]

    def evaluate(self, inputs: Mapping[str, Array]) -> dict[SSAValue, Array]:
        """The value of every edge for inputs in the model's own types; `value_of` has those of views made since.

        Raises `CommandError` for inputs that the CPU's part of the model refuses.
        """
        values: dict[SSAValue, Array] = {}
        names = self.input_names()
        arrays = [
            inputs[name] if is_host(argument) else inputs[name].astype(NUMPY[element(argument)], copy=False)
            for name, argument in zip(names, self.block.args, strict=True)
        ]
        with on_the_cpu():
            evaluate(self.module, arrays, self._ctx.weights, values=values)
        return values

    def input_names(self) -> list[str]:
        """The inputs, in order."""
        from ..backend.plan import names_of

        return list(names_of(main_of(self.module))[0])

    def results(self) -> list[bytes]:
        """How the outputs of the model are computed."""
        last = self.block.last_op
        assert last is not None
        return [self.marks[value] for value in last.operands]

    def result(self, position: int) -> SSAValue:
        """The edge that an output of the model reads."""
        last = self.block.last_op
        assert isinstance(last, ReturnOp)
        return last.operands[position]

    def nodes_with(self, name: str) -> tuple[Operation, list[str]] | None:
        """The op that stands for a node and others as well, and all its nodes."""
        for op in self.block.ops:
            nodes = node_names(op.location)
            if name in nodes and len(nodes) > 1:
                return op, nodes
        return None


def value_of(edge: SSAValue, values: Mapping[SSAValue, Array]) -> Array:
    """The value of an edge, which may be a view of one that has been evaluated."""
    if edge in values:
        return values[edge]
    view = edge.owner
    assert isinstance(view, ViewOp)
    return view.evaluate_all(value_of(view.operands[0], values))[0]


def is_tensor(edge: SSAValue) -> bool:
    """Whether it is an array, of the device or of the CPU."""
    return not is_host(edge) or host_type(edge).dtype is not None


def extents(edge: SSAValue, rank: int) -> list[int | None]:
    """As far as they are known when a model is compiled; `rank` is that of its value."""
    known = host_type(edge).shape if is_host(edge) else shape(edge)
    return [None] * rank if known is None else [size if size >= 0 else None for size in known]


def island(edge: SSAValue, behind: bool) -> list[str]:
    """The nodes of the ops before an f32 edge (those behind it) that f32 edges connect with it."""
    found, left = dict[Operation, None](), [edge]
    while left:
        value = left.pop()
        ops = [use.operation for use in value.uses] if behind else [value.owner]
        for op in ops:
            if isinstance(op, GraphOp) and op not in found:
                found[op] = None
                left += [each for each in (op.results if behind else op.operands) if element(each) == f32]
    return [name for op in found for name in node_names(op.location)]


def _declare(main: FuncOp, last: Operation) -> None:
    main.properties["function_type"] = type(main.function_type).from_lists(
        [argument.type for argument in main.body.block.args], [value.type for value in last.operands]
    )


def _before_output(value: SSAValue, imported: SSAValue, low: Attribute) -> SSAValue:
    """What is returned, without the cast to the type that the model declares."""
    owner = value.owner
    if is_host(value):
        return value
    cast = isinstance(owner, CastOp) and element(owner.x) == low and element(value) == element(imported) != low
    return owner.x if cast and isinstance(owner, CastOp) else value


def marks(
    block: Block, given: Mapping[SSAValue, bytes], equal: Mapping[SSAValue, Attribute] | None = None
) -> dict[SSAValue, bytes]:
    """Of each value of a block a digest of how it is computed: ops, types, constants, down to the arguments.

    `given` are digests of arguments; a cast of such an argument to the type `equal` says for it has the same digest.
    """
    found: dict[SSAValue, bytes] = {}
    equal = equal or {}
    for position, argument in enumerate(block.args):
        found[argument] = given.get(argument) or _digest("argument", position, argument.type)
    for op in block.ops:
        if isinstance(op, CastOp) and op.x in equal and element(op.result) == equal[op.x]:
            found[op.result] = found[op.x]
            continue
        if isinstance(op, CastOp) and op.x.type == op.result.type:
            found[op.result] = found[op.x]
            continue
        fields = sorted((key, str(value)) for key, value in {**op.properties, **op.attributes}.items() if key != _WHY)
        operands = [found[operand] for operand in op.operands]
        whole = _digest(op.name, fields, [str(type_) for type_ in op.result_types], operands)
        for number, result in enumerate(op.results):
            found[result] = whole + bytes([number])
    return found


def _digest(*parts: object) -> bytes:
    return blake2b(repr(parts).encode(), digest_size=16).digest()


def cone(ends: Collection[SSAValue], starts: Collection[SSAValue]) -> list[Operation]:
    """The ops that `ends` depend on, without those that only `starts` do, in no order."""
    found, left = dict[Operation, None](), [value for value in ends if value not in starts]
    while left:
        owner = left.pop().owner
        if isinstance(owner, Operation) and owner not in found:
            found[owner] = None
            left += [operand for operand in owner.operands if operand not in starts]
    return list(found)
