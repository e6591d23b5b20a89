"""What a plan does, step after step, and in which order.

Launches that follow each other are one stretch: `parts_of` has them as the range of their numbers. A branch or a loop
decides by values, so what runs is known only while it runs: `walk` gives the leaves one by one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TensorRef:
    """An argument that is an address: a tensor of the artifact by index, and bytes from its beginning."""

    tensor: int
    offset: int = 0


Argument = int | TensorRef


@dataclass(frozen=True, slots=True)
class Launch:
    """One run of a kernel on all cores."""

    kernel: int
    arguments: tuple[Argument, ...]
    nodes: tuple[tuple[str, ...], ...]
    """For each slot of the kernel the ONNX nodes that it stands for."""
    l1: int = 0
    """First byte of its part of L1."""
    ub: int = 0
    token: int = 0


@dataclass(frozen=True, slots=True)
class Copy:
    """The values of one tensor for another, by index; each of the two may be a value of the host."""

    source: int
    to: int
    row: int | None = None
    """A tensor of one element, by index: which row of `to` the values become."""


@dataclass(frozen=True, slots=True)
class HostCall:
    """One run of a part on the CPU: its inputs and outputs, values of the host by index."""

    part: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """Steps of one of two kinds, as a truth value says: a tensor of one element, by index."""

    condition: int
    then: "tuple[Step, ...]"
    otherwise: "tuple[Step, ...]"


@dataclass(frozen=True, slots=True)
class Repeat:
    """Steps again and again: as long as the condition holds that each gives (`next`), and at most so often.

    `count`, `condition` (that of the first step): tensors by index, None: no bound, true. `step`, `going`: where the
    number of the step and the condition stand for the steps.
    """

    count: int | None
    condition: int | None
    step: int
    going: int
    next: int
    steps: "tuple[Step, ...]"


Step = Launch | Copy | HostCall | Branch | Repeat
Leaf = range | Copy | HostCall
"""What runs at one go: launches that follow each other, by number, or one of the others."""


def every(steps: Sequence[Step]) -> Iterator[Step]:
    """All steps, each before those in it."""
    for step in steps:
        yield step
        for nested in inside(step):
            yield from every(nested)


def inside(step: Step) -> tuple[tuple[Step, ...], ...]:
    """The steps in a step: of each branch, or of the body."""
    match step:
        case Branch():
            return step.then, step.otherwise
        case Repeat():
            return (step.steps,)
        case _:
            return ()


def launches_of(steps: Sequence[Step]) -> list[Launch]:
    """All launches, in the order in which they stand."""
    return [step for step in every(steps) if isinstance(step, Launch)]


def tensors_of(step: Step) -> tuple[int, ...]:
    """The tensors that a step itself reads or writes."""
    match step:
        case Launch():
            return tuple(argument.tensor for argument in step.arguments if isinstance(argument, TensorRef))
        case Copy():
            return (step.source, step.to) if step.row is None else (step.source, step.to, step.row)
        case HostCall():
            return *step.inputs, *step.outputs
        case Branch():
            return (step.condition,)
        case Repeat():
            bounds = (step.count, step.condition)
            return *(n for n in bounds if n is not None), step.step, step.going, step.next


def parts_of(steps: Sequence[Step], first: int = 0) -> Iterator[tuple[Step | range, int]]:
    """The steps in order, launches that follow each other as the range of their numbers; with each the number of the
    first launch in it, or behind it."""
    end = first
    for step in steps:
        if isinstance(step, Launch):
            end += 1
            continue
        if end > first:
            yield range(first, end), first
        yield step, end
        first = end = end + len(launches_of([step]))
    if end > first:
        yield range(first, end), first


def runs_of(steps: Sequence[Step], first: int = 0) -> Iterator[range]:
    """The numbers of launches that follow each other."""
    for part, number in parts_of(steps, first):
        if isinstance(part, range):
            yield part
            continue
        for nested in inside(part):
            yield from runs_of(nested, number)
            number += len(launches_of(nested))


def walk(
    part: Step | range, first: int, read: Callable[[int], int], write: Callable[[int, int], None]
) -> Iterator[Leaf]:
    """What a part of a plan comes to, one by one; each is done before the next is asked for.

    `first`: the number of its first launch. `read(tensor)` gives the value of a tensor of one element on the device,
    `write(tensor, value)` sets it.
    """

    def steps(some: Sequence[Step], number: int) -> Iterator[Leaf]:
        for inner, start in parts_of(some, number):
            yield from walk(inner, start, read, write)

    match part:
        case range() | Copy() | HostCall():
            yield part
        case Branch():
            taken = bool(read(part.condition))
            behind = first + len(launches_of(part.then))
            yield from steps(part.then, first) if taken else steps(part.otherwise, behind)
        case Repeat():
            most = None if part.count is None else read(part.count)
            going, step = part.condition is None or bool(read(part.condition)), 0
            while going and (most is None or step < most):
                write(part.step, step)
                write(part.going, going)
                yield from steps(part.steps, first)
                going, step = bool(read(part.next)), step + 1
        case Launch():
            raise AssertionError("launches come as ranges")


def dearest(steps: Sequence[Step], cost: Callable[[Leaf], float], first: int = 0) -> list[Leaf]:
    """What runs if each loop goes round once, and each branch is the one whose leaves cost more."""
    found: list[Leaf] = []
    for part, number in parts_of(steps, first):
        match part:
            case range() | Copy() | HostCall():
                found.append(part)
            case Branch():
                then = dearest(part.then, cost, number)
                otherwise = dearest(part.otherwise, cost, number + len(launches_of(part.then)))
                found += max(then, otherwise, key=lambda leaves: sum(map(cost, leaves)))
            case Repeat():
                found += dearest(part.steps, cost, number)
            case Launch():
                raise AssertionError("launches come as ranges")
    return found
