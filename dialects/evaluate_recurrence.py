"""Runs a recurrence on arrays, to the bit of docs/numerics.md §7a: time step by time step, as the device does."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..runtime.numerics import host
from ..runtime.numerics.dtype import DType
from ..runtime.numerics.function import FN, RFN
from .recurrence import Cell, Operand, Recurrence, Ref, Step

Array = NDArray[Any]
Registers = Mapping[str, Array]
"""Of each space its registers, an array [register, …] that broadcasts to [register, batch, hidden]."""


def run_recurrence(nest: Recurrence, operands: Sequence[Array]) -> list[Array]:
    """The rows y and the final registers; operands and results are those of `Recurrence`."""
    cell, size = nest.cell, (nest.batch, nest.hidden)
    gates, weight, *rest = operands
    starts, finals = len(nest.initial), cell.count("final")
    kind = weight.dtype if cell.y.space == "row" else np.float32
    y = np.empty((nest.time, len(nest.reverse), *size), kind)
    ends = [np.empty((len(nest.reverse), *size), np.float32) for _ in range(finals)]
    shape = (nest.time, nest.batch, len(nest.reverse), cell.gates, nest.hidden)
    inputs = np.ascontiguousarray(gates.reshape(shape).transpose(2, 0, 3, 1, 4))
    for direction, reverse in enumerate(nest.reverse):
        registers = _registers(nest, weight.dtype)
        for place, operand in zip(nest.initial, rest, strict=False):
            registers["initial"][place] = operand[direction]
        if count := cell.count("vector"):
            registers["vector"] = rest[starts][direction].reshape(count, 1, nest.hidden)
        lengths = rest[-1] if cell.count("mask") else None
        _sequence(
            nest, registers, inputs[direction], _weights(cell, weight[direction]), lengths, reverse, y[:, direction]
        )
        for end, found in zip(ends, registers["final"], strict=True):
            end[direction] = found
    return [y, *ends]


def _registers(nest: Recurrence, kind: Any) -> dict[str, Array]:
    size = (nest.batch, nest.hidden)
    made = {
        space: np.zeros((nest.cell.count(space), *size), np.float32) for space in ("initial", "temp", "state", "final")
    }
    made["scalar"] = np.zeros((nest.cell.count("scalar"), 1, 1), np.float32)
    return {**made, "row": np.zeros((nest.cell.count("row"), *size), kind)}


def _weights(cell: Cell, weight: Array) -> list[Array]:
    """Of each phase the matrix [hidden, gates·hidden]."""
    hidden = weight.shape[1]
    found: list[Array] = []
    for phase in cell.phases:
        rows = weight[phase.first * hidden : (phase.first + phase.gates) * hidden]
        found.append(
            np.ascontiguousarray(rows.reshape(hidden, phase.gates, hidden).transpose(2, 1, 0).reshape(hidden, -1))
        )
    return found


def _sequence(
    nest: Recurrence,
    registers: dict[str, Array],
    inputs: Array,
    weights: Sequence[Array],
    lengths: Array | None,
    reverse: bool,
    y: Array,
) -> None:
    """One direction: fills y and `final`."""
    _run(nest.cell.start, registers)
    _run(nest.cell.between, registers)
    for time in reversed(range(nest.time)) if reverse else range(nest.time):
        if lengths is not None:
            registers["mask"] = (time < lengths).reshape(1, -1, 1)
        for phase, weight in zip(nest.cell.phases, weights, strict=True):
            product = host.matmul(registers["row"][phase.row], weight, dtype=DType.F32)
            registers["product"] = product.reshape(nest.batch, phase.gates, nest.hidden).transpose(1, 0, 2)
            registers["input"] = inputs[time, phase.first : phase.first + phase.gates]
            _run(phase.steps, registers)
        _run(nest.cell.between, registers)
        y[time] = registers[nest.cell.y.space][nest.cell.y.index]
    _run(nest.cell.finish, registers)


def _run(steps: Sequence[Step], registers: Registers) -> None:
    for step in steps:
        place = step.out
        out = registers[place.space][place.index : place.index + step.width]
        if step.reduction:
            (operand,) = step.operands
            out[...] = host.reduce(RFN[step.reduction.upper()], np.asarray(_read(operand, 1, registers)), (0, 1, 2))
            continue
        host.elementwise(FN[step.fn.upper()], *(_read(x, step.width, registers) for x in step.operands), out=out)


def _read(operand: Operand, width: int, registers: Registers) -> Array | float:
    if not isinstance(operand, Ref):
        return operand
    return registers[operand.space][
        operand.index : operand.index + (1 if operand.space in ("mask", "scalar") else width)
    ]
