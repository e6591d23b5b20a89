"""Scan and Loop whose number of steps is known: the nodes of the body, step after step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx
from xdsl.ir import SSAValue

from ..dialects.graph.op import InferError
from ..dialects.graph.views import ReshapeOp, SliceOp, normal_axis
from .movement import join
from .node import Node, Value, size_of

MOST_STEPS = 64
"""Steps that are written out; each of them is compiled once if they are alike, but launched on its own."""

Body = Callable[[onnx.GraphProto, Sequence[Value]], Sequence[Value | None]]
"""The outputs of a graph for its inputs; None after a problem, which has been noted."""
Results = Sequence[Value | None]
Upload = Callable[[Value], Value]
"""A value of the CPU as one of the device, any other as it is."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """A sequence that a Scan takes slice by slice."""

    value: Value
    axis: int
    backward: bool


@dataclass(frozen=True, slots=True)
class Growth:
    """A result that consists of what each step gives, along a new axis."""

    axis: int
    backward: bool


@dataclass(frozen=True, slots=True)
class Scanning:
    """What a Scan does."""

    states: Sequence[Value]
    sequences: Sequence[Scanned]
    results: Sequence[Growth]
    steps: int


def scanned_by(node: Node) -> Scanning:
    """What a Scan of opset 9 or later does; raises `InferError`."""
    given, count = node.attributes, int(node.attributes["num_scan_inputs"])
    inputs = [node.given(index) for index in range(len(node.inputs))]
    states, values = inputs[: len(inputs) - count], inputs[len(inputs) - count :]
    axes, backward = given.get("scan_input_axes", [0] * count), given.get("scan_input_directions", [0] * count)
    sequences = [
        Scanned(value, normal_axis(axis, len(size_of(value))), bool(back))
        for value, axis, back in zip(values, axes, backward, strict=True)
    ]
    lengths = {size_of(each.value)[each.axis] for each in sequences}
    if len(lengths) != 1 or not min(lengths):
        raise InferError(f"Scan has one length, of 1 or more steps (found {sorted(lengths)})")
    results = len(given["body"].output) - len(states)
    axes, backward = given.get("scan_output_axes", [0] * results), given.get("scan_output_directions", [0] * results)
    growths = [Growth(axis, bool(back)) for axis, back in zip(axes, backward, strict=True)]
    return Scanning(states, sequences, growths, min(lengths))


def scan(node: Node, run: Body, upload: Upload) -> Results:
    """Slices of the last inputs go in one by one, states from step to step, and slices of the results come out."""
    if node.opset < 9:
        return _batched(node, run, upload)
    plan, body, found = scanned_by(node), node.attributes["body"], list[Results]()
    if plan.steps > MOST_STEPS:
        raise InferError(f"Scan has at most {MOST_STEPS} steps (found {plan.steps})")
    states: Results = plan.states
    for step in range(plan.steps):
        places = [plan.steps - 1 - step if each.backward else step for each in plan.sequences]
        slices = [
            _slice(node, each.value, each.axis, place) for each, place in zip(plan.sequences, places, strict=True)
        ]
        outputs = _run(run, body, [*states, *slices])
        states = outputs[: len(states)]
        found.append(outputs[len(states) :])
    stacked = [
        _stack(node, parts[::-1] if growth.backward else parts, growth.axis, upload)
        for parts, growth in zip(zip(*found, strict=True), plan.results, strict=True)
    ]
    return [*states, *stacked]


def _batched(node: Node, run: Body, upload: Upload) -> Results:
    """Scan of opset 8: the first input may say how many steps each sequence has, and axis 0 of all others is theirs."""
    lengths = node.known(0)
    inputs = [node.given(index) for index in range(1, len(node.inputs))]
    batch, count = size_of(inputs[-1])[0], int(node.attributes["num_scan_inputs"])
    whole = size_of(inputs[-1])[1]
    if lengths is not None and any(lengths.reshape(-1) != whole):
        raise InferError(f"all sequences of Scan are as long as their tensor, {whole} (found {lengths.tolist()})")
    attributes = {"body": node.attributes["body"], "num_scan_inputs": count}
    if "directions" in node.attributes:
        attributes["scan_input_directions"] = node.attributes["directions"]
    parts = [
        scan(replace(node, opset=9, attributes=attributes, inputs=[_slice(node, x, 0, i) for x in inputs]), run, upload)
        for i in range(batch)
    ]
    return [_stack(node, results, 0, upload) for results in zip(*parts, strict=True)]


def loop(node: Node, run: Body, upload: Upload) -> Results:
    """Steps until the count is reached, or the condition does not hold; both are known."""
    body, count, condition = node.attributes["body"], node.known(0), node.known(1) if len(node.inputs) > 1 else None
    most = MOST_STEPS + 1 if count is None else int(count.reshape(-1)[0])
    states = list[Value | None](node.given(index) for index in range(2, len(node.inputs)))
    going: Value | None = np.array(True) if condition is None else condition.reshape(())
    found, step = list[Results](), 0
    while step < most and _holds(going):
        if step == MOST_STEPS:
            raise InferError(f"Loop has at most {MOST_STEPS} steps (found {most if count is not None else 'more'})")
        going, *outputs = _run(run, body, [np.array(step, np.int64), going, *states])
        states, step = outputs[: len(states)], step + 1
        found.append(outputs[len(states) :])
        if going is None:
            return [None] * len(node.proto.output)
    if not found and len(body.output) > len(states) + 1:
        raise InferError("Loop has a step, if results are collected (found none)")
    return [*states, *(_stack(node, parts, 0, upload) for parts in zip(*found, strict=True))]


def _run(run: Body, body: onnx.GraphProto, inputs: Sequence[Value | None]) -> Results:
    """The body, or nothing after a problem."""
    known = [value for value in inputs if value is not None]
    return run(body, known) if len(known) == len(inputs) else [None] * len(body.output)


def _holds(condition: Value | None) -> bool:
    if isinstance(condition, SSAValue):
        raise InferError("the condition of Loop is known when the model is imported (found one that is computed)")
    return condition is not None and bool(condition.reshape(-1)[0])


def _slice(node: Node, x: Value, axis: int, place: int) -> Value:
    """One place of an axis, which leaves."""
    if not isinstance(x, SSAValue):
        return np.take(x, place, axis)
    size = size_of(x)
    starts, sizes = [place if i == axis else 0 for i in range(len(size))], [*size[:axis], 1, *size[axis + 1 :]]
    part = node.emit(SliceOp, x, starts=starts, sizes=sizes, steps=[1] * len(size))
    return node.emit(ReshapeOp, part, shape=[*size[:axis], *size[axis + 1 :]])


def _stack(node: Node, parts: Results, axis: int, upload: Upload) -> Value | None:
    """The results of all steps along a new axis."""
    known = [upload(part) for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    arrays = [part for part in known if not isinstance(part, SSAValue)]
    place = normal_axis(axis, len(size_of(known[0])) + 1)
    if len(arrays) == len(known):
        return np.stack(arrays, place)
    size = size_of(known[0])
    wide = [*size[:place], 1, *size[place:]]
    return join(node, [node.emit(ReshapeOp, node.materialize(part), shape=wide) for part in known], place)
