"""If, Loop and Scan that values decide, or that are too long to be written out: their graphs become functions of the
module (`dialects/graph/flow.py`)."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np
import onnx
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from ..dialects.graph.arithmetic import AddOp, SubOp
from ..dialects.graph.constants import ELEMENTS
from ..dialects.graph.flow import IfOp, LoopOp
from ..dialects.graph.gather import GatherOp
from ..dialects.graph.host import HostValueType, host_type, is_host
from ..dialects.graph.host_model import free_names
from ..dialects.graph.op import InferError, element, i1, i32, shape
from ..dialects.graph.views import ReshapeOp, SliceOp, TransposeOp
from ..runtime.border import WIDE
from ..runtime.cpu import HostError, HostNode, HostType
from ..runtime.problem import Problem
from .builder import Cache, GraphBuilder
from .hosting import Hosting
from .listed import Listed
from .model_file import Array
from .names import Names
from .node import INT32, Node, Value
from .problems import is_no_network
from .survey import Survey
from .unroll import Growth, Results, scanned_by

GROWS = "the number of its rows is known at run time"
"""Why the CPU holds a result."""
MOST_ROOM = 1 << 24
"""Elements of rows of which a run may leave some."""


class Mark(NamedTuple):
    """How far an import is: names that are taken, how many functions and problems there are, and steps of a survey."""

    names: set[str]
    functions: int
    problems: int
    steps: Mapping[int, int]


class Scope(Protocol):
    """What an import offers: values by name, and running a graph with its inputs and other values for names."""

    names: Names
    survey: Survey | None

    @property
    def builder(self) -> GraphBuilder: ...

    @property
    def hosting(self) -> Hosting | None: ...

    @property
    def tags(self) -> dict[SSAValue, "np.dtype[Any]"]: ...

    @property
    def problems(self) -> list[Problem]: ...

    def mark(self) -> Mark: ...

    def back_to(self, mark: Mark) -> None: ...

    def value(self, name: str, user: str) -> Value | None:
        """The value of a name around the node."""
        ...

    def inside(
        self, node: Node, graph: onnx.GraphProto, inputs: Sequence[Value], taken: Mapping[str, Value]
    ) -> Sequence[Value | None]:
        """The outputs of a graph that a node holds; None after a problem."""
        ...


def _whole(scope: Scope, value: Value | None, name: str) -> Value | None:
    """A list as a sequence of the CPU; any other value as it is."""
    if not isinstance(value, Listed):
        return value
    if scope.hosting is None:
        raise InferError("branches, and steps that a run counts, take and give tensors (found a sequence)")
    return _constant(scope.hosting, value, name)


class Function:
    """A function of the module in the making, for a graph that a node holds. It takes what its own inputs are, then
    what the graph uses of the values around it (`taken`)."""

    def __init__(self, node: Node, scope: Scope, graph: onnx.GraphProto, inputs: Sequence[Attribute]) -> None:
        self.graph = graph
        self.taken: list[SSAValue] = []
        self._node, self._scope = node, scope
        self._block, self._cache = Block(arg_types=inputs), Cache()
        self._arguments: dict[SSAValue, SSAValue] = {}
        values = {name: scope.value(name, node.name) for name in dict.fromkeys(free_names(graph))}
        values = {name: _whole(scope, value, name) for name, value in values.items()}
        self.around: dict[str, Value] = {
            name: self.take(value) if isinstance(value, SSAValue) else value
            for name, value in values.items()
            if value is not None
        }
        """What the graph uses of the values around it, by name, as they are inside."""

    @property
    def arguments(self) -> Sequence[SSAValue]:
        """Its own inputs and what it takes, so far."""
        return self._block.args

    def insert_input(self, kind: Attribute, place: int) -> SSAValue:
        """One more input of its own."""
        return self._block.insert_arg(kind, place)

    def take(self, value: SSAValue) -> SSAValue:
        """A value around the node, inside."""
        if value not in self._arguments:
            self.taken.append(value)
            self._arguments[value] = argument = self._block.insert_arg(value.type, len(self._block.args))
            _tag(self._scope, argument, value)
        return self._arguments[value]

    def run(self, inputs: Sequence[Value]) -> list[Value] | None:
        """The ops of the graph; its outputs, or None after a problem."""
        with self.open():
            outputs = self._scope.inside(self._node, self.graph, inputs, self.around)
            names = [info.name for info in self.graph.output]
            outputs = [_whole(self._scope, value, name) for value, name in zip(outputs, names, strict=True)]
        known = [value for value in outputs if value is not None]
        return known if len(known) == len(outputs) else None

    def open(self) -> Any:
        """What is built inside `with` belongs to the function."""
        return self._scope.builder.inside(self._block, self._cache)

    def close(self, stem: str, results: Sequence[SSAValue]) -> str:
        """Ends it; its name."""
        builder = self._scope.builder
        self._block.add_op(ReturnOp(*results))
        name = f"{stem}{len(builder.functions)}"
        signature = [argument.type for argument in self._block.args], [value.type for value in results]
        builder.functions.append(FuncOp(name, signature, Region(self._block)))
        return name


def _tag(scope: Scope, value: SSAValue, like: object) -> None:
    """A value that stands for one of the model's type, which the device may hold as another."""
    if isinstance(like, SSAValue) and like in scope.tags:
        scope.tags[value] = scope.tags[like]


# If -------------------------------------------------------------------------------------------------------------------


def branch(node: Node, scope: Scope) -> Results:
    """An If whose condition is computed."""
    condition = node.operand(0)
    if element(condition) != i1 or any(size != 1 for size in shape(condition)):
        raise InferError(f"the condition of If is one truth value (found {condition.type})")
    both = [_half(node, scope, name) for name in ("then_branch", "else_branch")]
    faults = [half.fault for half in both if half.fault]
    if faults and (scope.hosting is None or len(faults) == len(both)):
        scope.problems.extend(faults)
        raise InferError("both branches of If are networks for these shapes (found one that is none)")
    outputs = [half.outputs for half in both if half.outputs is not None]
    if len(outputs) + len(faults) < len(both):
        return [None] * len(node.proto.output)
    held = [_differ(*pair) for pair in zip(outputs[0], outputs[-1], strict=True)]
    results = [None if h.outputs is None else _returned(node, scope, h.function, h.outputs, held) for h in both]
    known = [found for found in results if found is not None]
    types = [
        HostValueType.of(_common(host_type(a), host_type(b))) if is_host(a) else a.type
        for a, b in zip(known[0], known[-1], strict=True)
    ]
    (then, a), (other, b) = (
        (half.function, _left(node, scope, half, known[0], held) if found is None else found)
        for half, found in zip(both, results, strict=True)
    )
    called = (then.close("branch", a), then.taken), (other.close("branch", b), other.taken)
    made: list[SSAValue] = list(scope.builder.insert(IfOp.of(condition, *called, types)).results)
    for value, inner in zip(made, outputs[0], strict=True):
        _tag(scope, value, inner)
    return made


class _Half(NamedTuple):
    """A branch of an If: its function with the outputs of the graph; None after a problem."""

    name: str
    function: Function
    outputs: list[Value] | None
    fault: Problem | None
    """Why it is no network for the shapes at hand, and its function is empty."""


def _half(node: Node, scope: Scope, name: str) -> _Half:
    before, graph = scope.mark(), node.attributes[name]
    function = Function(node, scope, graph, [])
    outputs = function.run([])
    fault = next(filter(is_no_network, scope.problems[before.problems :]), None)
    if outputs is not None or fault is None:
        return _Half(name, function, outputs, None)
    scope.back_to(before)
    return _Half(name, Function(node, scope, graph, []), None, fault)


def _left(node: Node, scope: Scope, half: _Half, likes: Sequence[SSAValue], held: Sequence[bool]) -> list[SSAValue]:
    """The results of a branch that is no network for the shapes at hand: the CPU says so if the branch is taken. They
    have the types of those of the other branch."""
    hosting, graph, found = scope.hosting, half.function.graph, list[SSAValue]()
    assert hosting is not None
    assert half.fault is not None
    fault = f"{half.fault.where}: {half.fault.expected}"
    reason = f"a branch is a network for the shapes at hand (found that {fault})"
    if scope.survey is not None:
        scope.survey.leave(graph, f"its branch is no network for these shapes ({fault})")
    left = HostNode(f"{node.name}.{half.name}", node.operator, reason, 0)
    with half.function.open():
        try:
            results = hosting.leave(graph, half.function.around, left, likes)
        except HostError as error:
            raise InferError(f"both branches of If are networks for these shapes (found {error})") from None
        for value, like, on_cpu in zip(results, likes, held, strict=True):
            found.append(value if on_cpu else hosting.on_device(value))
            if not on_cpu and found[-1].type != like.type:
                raise InferError(f"both branches of If give tensors of one type (found {like.type} and {value.type})")
    return found


def _differ(one: Value, other: Value) -> bool:
    """Whether two results have no common tensor type, so that only the CPU can hold them."""

    def kind(value: Value) -> object:
        if isinstance(value, SSAValue):
            return None if is_host(value) else (element(value), shape(value))
        found = i32 if value.dtype.kind in "iu" and value.dtype.itemsize > 1 else None
        return (found or ELEMENTS.get(value.dtype), value.shape)

    a, b = kind(one), kind(other)
    return a is None or a != b


def _returned(
    node: Node, scope: Scope, function: Function, outputs: Sequence[Value], held: Sequence[bool]
) -> list[SSAValue]:
    """The results of a branch: tensors, or values of the CPU where they are to be held there."""
    found = list[SSAValue]()
    with function.open():
        for info, value, on_cpu in zip(function.graph.output, outputs, held, strict=True):
            if not on_cpu:
                found.append(node.materialize(value))
                continue
            if scope.hosting is None:
                raise InferError("both branches of If give tensors of one type (found others)")
            try:
                if isinstance(value, SSAValue):
                    found.append(scope.hosting.on_host(value, info.name))
                else:
                    found.append(scope.hosting.constant(value, info.name, "a result of a branch"))
            except HostError as error:
                raise InferError(f"results of branches can be held by the CPU (found {error})") from None
    return found


def _common(one: HostType, other: HostType) -> HostType:
    if one.kind != other.kind:
        raise InferError(f"both branches of If give one type (found {one.kind} and {other.kind})")
    if one.shape is None or other.shape is None or len(one.shape) != len(other.shape):
        return HostType(one.kind)
    return HostType(one.kind, tuple(a if a == b else -1 for a, b in zip(one.shape, other.shape, strict=True)))


# Loop and Scan --------------------------------------------------------------------------------------------------------


def loop(node: Node, scope: Scope) -> Results:
    """A Loop whose number of steps is computed, or large. If it is not known, results that grow do so on the CPU."""
    graph, count, condition = node.attributes["body"], _single(node, 0), _single(node, 1)
    first = [_state(node, scope, node.given(n), graph.input[n].name) for n in range(2, len(node.inputs))]
    repeated = Repeated(node, scope, graph, first)
    step, going, *states = repeated.inputs
    found = repeated.function.run([step, going, *states])
    if found is None:
        return [None] * len(node.proto.output)
    tested, *outputs = found
    always = (isinstance(tested, np.ndarray) and bool(tested.reshape(-1)[0])) or tested is going
    endless = count is None or (isinstance(count, np.ndarray) and int(count.reshape(-1)[0]) > INT32.max)
    certain = always and not isinstance(count, SSAValue) and not isinstance(condition, SSAValue) and not endless
    steps = int(count.reshape(-1)[0]) if isinstance(count, np.ndarray) and not endless else 0
    rows = outputs[len(first) :]
    if not certain and repeated.fits(rows, steps):
        outputs = [*outputs[: len(first)], repeated.counted(), *rows]
    elif steps < 1 or not certain:
        steps, outputs = 0, [*outputs[: len(first)], *repeated.grow(rows)]
    most, first_test = (None if v is None else node.materialize(v) for v in (None if endless else count, condition))
    growths = [Growth(0, False)] * (len(outputs) - repeated.states)
    results = repeated.end(most, first_test, tested, outputs, growths, steps)
    if steps < 1 or certain:
        return results
    return [*results[: len(first)], *repeated.cut(results[len(first)], results[len(first) + 1 :])]


def scan(node: Node, scope: Scope) -> Results:
    """A Scan of any length."""
    plan = scanned_by(node)
    graph: onnx.GraphProto = node.attributes["body"]
    first = [_state(node, scope, value, info.name) for value, info in zip(plan.states, graph.input, strict=False)]
    repeated = Repeated(node, scope, graph, first)
    _, going, *states = repeated.inputs
    sequences = [repeated.function.take(node.materialize(each.value)) for each in plan.sequences]
    with repeated.function.open():
        slices = [
            node.emit(GatherOp, value, repeated.place(each.backward, plan.steps), axis=each.axis)
            for value, each in zip(sequences, plan.sequences, strict=True)
        ]
    outputs = repeated.function.run([*states, *slices])
    if outputs is None:
        return [None] * len(node.proto.output)
    count = node.materialize(np.array(plan.steps, np.int32))
    return repeated.end(count, None, going, outputs, plan.results, plan.steps)


class Repeated:
    """A loop in the making: its function takes the number of the step, whether it goes on, and the states."""

    def __init__(self, node: Node, scope: Scope, graph: onnx.GraphProto, first: Sequence[SSAValue]) -> None:
        self._node, self._scope, self._first = node, scope, list(first)
        types = [TensorType(i32, []), TensorType(i1, []), *(value.type for value in first)]
        self.function = Function(node, scope, graph, types)
        self.inputs = list(self.function.arguments[: len(types)])
        for state, value in zip(self.inputs[2:], first, strict=True):
            _tag(scope, state, value)

    def place(self, backward: bool, steps: int) -> SSAValue:
        """The number of the step, counted from the last one if it goes backward."""
        if not backward:
            return self.inputs[0]
        last = self._node.materialize(np.array(steps - 1, np.int32))
        return self._node.emit(SubOp, last, self.inputs[0], element=i32)

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self._first)

    def fits(self, rows: Sequence[Value], steps: int) -> bool:
        """Whether the device has room for a row of each of `steps` steps, of which a run makes the first."""
        made = [value for value in rows if isinstance(value, SSAValue) and not is_host(value)]
        size = sum(prod(shape(value)) for value in made)
        return (
            len(made) == len(rows) > 0
            and self._scope.hosting is not None
            and self._node.opset >= 10
            and 0 < steps * size <= MOST_ROOM
        )

    def counted(self) -> SSAValue:
        """A further state, the number of steps; what it is after a step."""
        self._first.append(self._node.materialize(np.zeros((), np.int32)))
        before = self.function.insert_input(TensorType(i32, []), len(self.inputs))
        self.inputs.append(before)
        with self.function.open():
            return self._node.emit(AddOp, before, self._node.materialize(np.array(1, np.int32)), element=i32)

    def cut(self, count: SSAValue, rows: Sequence[SSAValue]) -> list[SSAValue]:
        """The rows that there are."""
        hosting, names = self._scope.hosting, self._node.proto.output[-len(rows) :]
        assert hosting is not None
        try:
            named = [(value, name or self._node.name) for value, name in zip(rows, names, strict=True)]
            return [hosting.first_of(value, count, name, GROWS) for value, name in named]
        except HostError as error:
            raise InferError(f"results that grow can be held by the CPU (found {error})") from None

    def grow(self, rows: Sequence[Value]) -> list[SSAValue]:
        """Further states, held by the CPU: from none on, each step appends a row. What they are after a step."""
        if rows and self._scope.hosting is None:
            raise InferError(f"a loop that data end has states alone (found {len(rows)} results that grow)")
        inside, results = self.function.graph.output, [*self._node.proto.output, *[""] * len(rows)]
        first = len(inside) - len(rows)  # the condition goes before the states inside
        names = [name or self._node.name for name in results[first - 1 :]]
        return [self._append(row, inside[first + n].name, names[n]) for n, row in enumerate(rows)]

    def _append(self, row: Value, name: str, result: str) -> SSAValue:
        """A state that grows by a row; what it is after a step."""
        hosting = self._scope.hosting
        assert hosting is not None
        with self.function.open():
            held = _held(hosting, row, name)
        if not host_type(held).is_static:
            raise InferError(f"rows of a result that grows have known extents (found {host_type(held)})")
        try:
            first = hosting.none_of(host_type(held), result, GROWS)
            before = self.function.insert_input(first.type, len(self.inputs))
            with self.function.open():
                after = hosting.append(before, held, result, GROWS)
        except HostError as error:
            raise InferError(f"results that grow can be held by the CPU (found {error})") from None
        self._first.append(first)
        self.inputs.append(before)
        return after

    def end(
        self, count: SSAValue | None, condition: SSAValue | None, tested: Value, outputs: Sequence[Value],
        growths: Sequence[Growth], steps: int,
    ) -> list[SSAValue]:  # fmt: skip
        """Ends the function: whether it goes on, the next states, and rows of results that grow. The loop's results."""
        node, scope, function, states = self._node, self._scope, self.function, len(self._first)
        with function.open():
            likes = [*self._first, *[None] * (len(outputs) - states)]
            names = [info.name for info in function.graph.output[-len(outputs) :]]
            following = [_next(node, scope, *each) for each in zip(outputs, likes, names, strict=True)]
            going = _next(node, scope, tested, None, "")
            if going.type != TensorType(i1, []):
                going = node.emit(ReshapeOp, going, shape=[])
        wanted, found = ([str(v.type) for v in values] for values in (self._first, following[:states]))
        if wanted != found:
            rule = "the states of a loop keep their types"
            raise InferError(f"{rule} (found {', '.join(found)}, at first {', '.join(wanted)})")
        if any(is_host(value) for value in following[states:]):
            raise InferError("results of a loop that grow are tensors of the device (found one of the CPU)")
        grown = [TensorType(element(value), [steps, *shape(value)]) for value in following[states:]]
        name = function.close("body", [going, *following])
        op = scope.builder.insert(LoopOp.of(name, count, condition, self._first, function.taken, grown))
        for value, inner in zip(op.results, following, strict=True):
            _tag(scope, value, inner)
        whole = [self._stacked(v, growth) for v, growth in zip(op.results[states:], growths, strict=True)]
        return [*op.results[:states], *whole]

    def _stacked(self, value: SSAValue, growth: Growth) -> SSAValue:
        """A result with its rows in order, along its axis."""
        size, rank = shape(value), len(shape(value))
        if growth.backward:
            starts, steps = [size[0] - 1] + [0] * (rank - 1), [-1] + [1] * (rank - 1)
            value = self._node.emit(SliceOp, value, starts=starts, sizes=list(size), steps=steps)
        if axis := growth.axis % rank:
            order = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
            value = self._node.emit(TransposeOp, value, perm=order)
        return value


def _state(node: Node, scope: Scope, value: Value, name: str) -> SSAValue:
    """A state before the first step: a constant that only the CPU holds stays there."""
    if scope.hosting is None or isinstance(value, SSAValue) or value.dtype in ELEMENTS or value.dtype.kind in "iu":
        return node.materialize(value)
    return _constant(scope.hosting, value, name)


def _next(node: Node, scope: Scope, value: Value, like: SSAValue | None, name: str) -> SSAValue:
    """What a step gives, where the state before it is (`like`), else on the device if that can hold it.

    Wide integers of the CPU stay there: only a run would tell whether they fit.
    """
    hosting = scope.hosting
    if hosting is not None and like is not None and is_host(like):
        return _held(hosting, value, name)
    if hosting is None or not isinstance(value, SSAValue) or not is_host(value) or host_type(value).dtype in WIDE:
        return node.materialize(value)
    return hosting.on_device(value) if host_type(value).dtype in ELEMENTS else value


def _held(hosting: Hosting, value: Value, name: str) -> SSAValue:
    """A value on the CPU."""
    if not isinstance(value, SSAValue):
        return _constant(hosting, value, name)
    try:
        return hosting.on_host(value, name)
    except HostError as error:
        raise InferError(f"states can be held by the CPU (found {error})") from None


def _constant(hosting: Hosting, value: Array, name: str) -> SSAValue:
    try:
        if isinstance(value, Listed):
            return hosting.sequence(value, name)
        return hosting.constant(value, name, "the device has no such constant")
    except HostError as error:
        raise InferError(f"constants can be held by the CPU (found {error})") from None


def _single(node: Node, index: int) -> Value | None:
    """The count or the condition of a Loop; None if there is none."""
    value = node.optional(index)
    if value is None or isinstance(value, np.ndarray):
        return None if value is None else value.reshape(())
    if any(size != 1 for size in shape(value)):
        raise InferError(f"the count and the condition of Loop are single values (found {value.type})")
    return value
