"""What an import made of each node of a model, those of graphs inside nodes among them.

    survey = Survey()
    import_onnx("model.onnx", host=True, survey=survey)     # reads no large weight
    survey.steps

A node in the body of a loop has a step for each time that it was gone through, one that no import reached has none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import onnx
from xdsl.dialects.builtin import NameLoc
from xdsl.ir import Operation, SSAValue

from ..dialects.graph.constants import NUMPY
from ..dialects.graph.flow import IfOp, LoopOp
from ..dialects.graph.host import HostOp, host_type, is_host
from ..dialects.graph.op import GraphOp, element
from ..runtime.problem import Problem
from .names import Placed, walk
from .node import Node, Value, size_of

LARGEST = 1 << 16
"""Bytes of an initialiser that is read."""


@dataclass(frozen=True, slots=True)
class Place:
    """A value that a node reads or makes."""

    shape: tuple[int, ...] | None
    """None: known at run time only."""
    nbytes: int
    is_known: bool


@dataclass(frozen=True, slots=True)
class Step:
    """A node, gone through once."""

    name: str
    """No other step has it."""
    inputs: tuple[Place | None, ...]
    outputs: tuple[Place | None, ...]
    """None after a problem, or for an output that the node does not have."""
    ops: tuple[type[GraphOp], ...]
    """What was made of it for the device."""
    on_host: str
    """Why the CPU runs it; empty if it does not."""
    problem: Problem | None
    blocked: bool
    """What it reads is not made."""

    @property
    def is_known(self) -> bool:
        """Whether everything that it makes was computed at import."""
        return any(self.outputs) and all(place.is_known for place in self.outputs if place is not None)


@dataclass
class Survey:
    """See the module."""

    largest: int = LARGEST
    steps: dict[int, list[Step]] = field(default_factory=dict[int, list[Step]])
    """By the position of the node in `nodes`."""
    nodes: list[Placed] = field(default_factory=list[Placed])
    """Every node, with the position of the one that it stands in."""
    left: dict[int, str] = field(default_factory=dict[int, str])
    """Nodes of branches that are no networks for the shapes at hand, and why."""
    _positions: dict[int, int] = field(default_factory=dict[int, int])

    def begin(self, nodes: Sequence[onnx.NodeProto]) -> None:
        """A new import of a model, with its functions in place of the nodes that call them."""
        self.steps, self.left, self.nodes = {}, {}, list(walk(nodes))
        self._positions = {id(proto): n for n, (proto, _) in enumerate(self.nodes)}

    def marks(self) -> dict[int, int]:
        """How many steps there are of each node."""
        return {place: len(steps) for place, steps in self.steps.items()}

    def back_to(self, marks: Mapping[int, int]) -> None:
        """Drops what was noted later."""
        self.steps = {place: self.steps[place][:count] for place, count in marks.items()}

    def leave(self, graph: onnx.GraphProto, reason: str) -> None:
        """A graph inside a node is no network."""
        self.left |= {self._positions[id(proto)]: reason for proto in graph.node}

    def note(
        self,
        node: Node,
        outputs: Sequence[Value | None],
        last: Operation | None,
        problem: Problem | None,
        blocked: bool,
    ) -> None:
        """A node; its ops are those behind `last`."""
        place = self._positions.get(id(node.proto))
        if place is None:
            return
        block = node.builder.block
        made = list(_since(last, block.first_op, node.name))
        ops = tuple(type(op) for op in made if isinstance(op, GraphOp))
        on_host = next((op.host_nodes()[0].reason for op in made if isinstance(op, HostOp)), "")
        if any(isinstance(op, IfOp | LoopOp) for op in made):  # the CPU holds some of its values
            on_host = ""
        places = [tuple(None if value is None else _place(value) for value in row) for row in (node.inputs, outputs)]
        step = Step(node.name, places[0], places[1], ops, on_host, problem, blocked)
        self.steps.setdefault(place, []).append(step)


def _since(last: Operation | None, first: Operation | None, name: str) -> Iterator[Operation]:
    """The ops of a node behind an op, or all."""
    op = first if last is None else last.next_op
    while op is not None:
        if isinstance(op.location, NameLoc) and op.location.desc.data == name:
            yield op
        op = op.next_op


def _place(value: Value) -> Place:
    if not isinstance(value, SSAValue):
        return Place(value.shape, value.nbytes, True)
    if is_host(value):
        kind = host_type(value)
        return Place(kind.shape if kind.is_static else None, kind.nbytes(), False)
    size = size_of(value)
    return Place(size, prod(size) * NUMPY[element(value)].itemsize, False)
