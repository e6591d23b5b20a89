"""What a program means under every interleaving, decided without the checker and without vector clocks.

Every token is taken by one queue only and counters only grow, so a step that can be done can never be prevented by
doing another: whatever order the steps come in, holding one entry back leads to one and the same *closure*, the set of
entries that can be done without it. So `b` can come before `a` if and only if `b` is in the closure that holds `a`, and
n closures decide about all interleavings of n entries. Two entries race if each can come before the other and they
touch a common byte, one of them writing.

Rows are expanded by `Expr.value`, footprints are the declared formulas, byte by byte: nothing here comes from the
generator, the emulator or the checker.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from stepwell.runtime import isa
from stepwell.runtime.encoding import Program, Row
from stepwell.runtime.expr import RINGS
from stepwell.runtime.formulas import evaluate
from stepwell.runtime.target import Target

QUEUE_FIELD = {"set": "src", "wait": "dst", "grant": "dst", "signal": "engine", "await": "engine"}
Token = tuple[int, ...]
"""Core, source, destination, id; of a counter its number."""
Mask = Mapping[int, int]
"""By memory (space + SPACES · core; 0: global memory) an integer with a bit for each byte."""
SPACES = len(isa.Space)


@dataclass(frozen=True)
class Entry:
    """An executed row of a queue; queues are numbered by core and engine."""

    row: int
    name: str
    core: int
    queue: int
    values: tuple[int, ...]
    noop: bool
    reads: Mask
    writes: Mask

    @property
    def token(self) -> Token:
        """What a row of synchronisation counts."""
        return (self.values[1],) if self.name in ("signal", "await") else (self.core, *self.values[:3])

    def conflicts(self, other: "Entry") -> bool:
        """Whether both touch a byte, one of them writing."""
        return meets(self.writes, other.writes) or meets(self.writes, other.reads) or meets(self.reads, other.writes)


def meets(one: Mask, other: Mask) -> bool:
    """Whether two masks have a byte in common."""
    return any(space in other and mask & other[space] for space, mask in one.items())


@dataclass
class Expander:
    """Rows to entries, footprints remembered: a mutated program does the same work."""

    target: Target
    gm_size: int
    known: dict[tuple[str, int, tuple[int, ...]], tuple[Mask, Mask]] = field(
        default_factory=dict[tuple[str, int, tuple[int, ...]], tuple[Mask, Mask]]
    )

    def entries(self, program: Program, registers: Sequence[int], cores: int = 1) -> list[Entry]:
        """The entries of all queues, core after core in program order."""
        found: list[Entry] = []
        for core in range(cores):
            walk = _Walk(program, {"core": core, **{f"r{i}": int(value) for i, value in enumerate(registers)}})
            found += [self.entry(core, number, program[number], values) for number, values in walk.rows(0, 0)]
        return found

    def entry(self, core: int, number: int, row: Row, values: dict[str, int]) -> Entry:
        engine = values[QUEUE_FIELD[row.name]] if row.name in QUEUE_FIELD else int(row.instruction.engine or 0)
        noop = any(values[name] <= 0 for name in row.instruction.extents)
        key = row.name, core, tuple(values.values())
        if key not in self.known:
            masks = ({}, {}) if noop else self.footprint(row.instruction, values)
            reads, writes = ({k + SPACES * core if k else 0: m for k, m in each.items()} for each in masks)
            self.known[key] = reads, writes
        return Entry(number, row.name, core, core * len(isa.Engine) + engine, key[2], noop, *self.known[key])

    def footprint(self, instruction: isa.Instruction, values: dict[str, int]) -> tuple[Mask, Mask]:
        """What is read and what is written."""
        reads: dict[int, int] = {}
        writes: dict[int, int] = {}
        for access in instruction.accesses:
            if not evaluate(access.when, values, self.target):
                continue
            space = int(values[access.space] if isinstance(access.space, str) else access.space)
            mask = self.mask(instruction, access, values, space)
            if not access.writes or evaluate(access.reads, values, self.target):
                reads[space] = reads.get(space, 0) | mask
            if access.writes:
                writes[space] = writes.get(space, 0) | mask
        return reads, writes

    def mask(self, instruction: isa.Instruction, access: isa.Access, values: dict[str, int], space: int) -> int:
        """The bytes of an access."""
        at = values[access.field] + int(evaluate(access.start, values, self.target))
        starts = np.array([at])
        for count, stride in access.runs:
            steps = np.arange(int(evaluate(count, values, self.target)))
            starts = (starts[:, None] + steps * int(evaluate(stride, values, self.target))).reshape(-1)
        length = int(evaluate(access.length, values, self.target))
        size = self.gm_size if space == isa.Space.GM else getattr(self.target, f"{isa.Space(space).name.lower()}_bytes")
        touched = np.zeros(size, np.bool_)
        touched[(np.unique(starts)[:, None] + np.arange(length)).reshape(-1)] = True
        return int.from_bytes(np.packbits(touched, bitorder="little").tobytes(), "little")


class _Walk:
    """The sequencer: rows for queues in the order in which they are issued."""

    def __init__(self, program: Program, variables: dict[str, int]) -> None:
        self.program, self.variables, self.rings = program, variables, [0] * RINGS

    def rows(self, number: int, level: int) -> Iterator[tuple[int, dict[str, int]]]:
        while number < len(self.program) and self.program[number].name != "end":
            row = self.program[number]
            values = {
                spec.name: expr.value(self.variables, self.rings)
                for spec, expr in zip(row.instruction.fields, row.fields, strict=True)
            }
            if row.name == "loop":
                for self.variables[f"i{level}"] in range(-(-values["count"] // values["step"]) + values["add"]):
                    yield from self.rows(number + 1, level + 1)
                    self.rings[values["ring"]] += 1
                number = self.behind(number) - 1
            elif row.instruction.engine is isa.Engine.SCALAR:
                self.variables[f"r{values['rd']}"] = scalar(row.name, values)
            else:
                yield number, values
            number += 1

    def behind(self, number: int) -> int:
        """The row behind the `end` of a loop."""
        depth = 1
        while depth:
            number += 1
            depth += {"loop": 1, "end": -1}.get(self.program[number].name, 0)
        return number + 1


def scalar(name: str, values: dict[str, int]) -> int:
    """The value of a scalar row but `read`, which compiled kernels do not use."""
    if name == "mov":
        return values["value"]
    a, b = values["a"], values["b"]
    if name in ("min", "max"):
        return min(a, b) if name == "min" else max(a, b)
    return int(a < b) if name == "less" else a // b if name == "div" else a % b


# closures -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Closure:
    """What can be done without an entry: entries done by queue, and the tokens that are then there."""

    done: tuple[int, ...]
    tokens: Mapping[Token, int]


@dataclass
class Exploration:
    """All interleavings of a program's queues."""

    entries: Sequence[Entry]
    depth: int
    """Places of a queue: they bound what is issued, which matters for deadlocks only."""
    queues: list[list[int]] = field(init=False)
    place: list[int] = field(init=False)
    """Of each entry in its queue."""

    def __post_init__(self) -> None:
        cores = 1 + max((entry.core for entry in self.entries), default=0)
        self.queues, self.place = [[] for _ in range(cores * len(isa.Engine))], []
        for number, entry in enumerate(self.entries):
            self.place.append(len(self.queues[entry.queue]))
            self.queues[entry.queue].append(number)

    def closure(self, held: int = -1) -> Closure:
        """All that can be done without `held`."""
        done, tokens, moved = [0] * len(self.queues), dict[Token, int](), True
        while moved:
            moved = False
            for q, queue in enumerate(self.queues):
                while done[q] < len(queue) and queue[done[q]] != held and self.advance(queue[done[q]], tokens):
                    done[q] += 1
                    moved = True
        return Closure(tuple(done), tokens)

    def advance(self, number: int, tokens: dict[Token, int]) -> bool:
        """Does an entry as far as tokens are concerned; False if it has to wait."""
        entry = self.entries[number]
        if entry.name == "wait":
            if not tokens.get(entry.token, 0):
                return False
            tokens[entry.token] -= 1
        elif entry.name == "await":
            return tokens.get(entry.token, 0) >= entry.values[2]
        elif entry.name in ("set", "grant", "signal"):
            tokens[entry.token] = tokens.get(entry.token, 0) + (entry.values[3] if entry.name == "grant" else 1)
        return True

    def runs_to_its_end(self) -> bool:
        """Whether all entries are done with queues of `depth` places."""
        done, issued, tokens = [0] * len(self.queues), [0] * len(self.queues), dict[Token, int]()
        streams = [[e.queue for e in self.entries if e.core == core] for core in {e.core for e in self.entries}]
        moved = True
        while moved:
            moved = False
            for stream in streams:
                while stream and issued[stream[0]] - done[stream[0]] < self.depth:
                    issued[stream.pop(0)] += 1
            for q, queue in enumerate(self.queues):
                while done[q] < issued[q] and self.advance(queue[done[q]], tokens):
                    done[q] += 1
                    moved = True
        return not any(streams) and done == issued

    @cached_property
    def whole(self) -> Closure:
        return self.closure()

    @cached_property
    def without(self) -> list[Closure]:
        """The closure that holds each entry."""
        return [self.closure(number) for number in range(len(self.entries))]

    def can_precede(self, first: int, then: int) -> bool:
        """Whether some interleaving does `first` and not, yet, `then`."""
        return self.without[then].done[self.entries[first].queue] > self.place[first]

    def races(self) -> Iterator[tuple[int, int]]:
        """Pairs (a, b) in different queues that nothing orders and that conflict; a writes."""
        touching = [n for n, entry in enumerate(self.entries) if entry.reads or entry.writes]
        for i, a in enumerate(touching):
            for b in touching[i + 1 :]:
                one, other = self.entries[a], self.entries[b]
                if one.queue == other.queue or not (self.can_precede(a, b) and self.can_precede(b, a)):
                    continue
                if one.conflicts(other):
                    yield (a, b) if one.writes and not meets(one.reads, other.writes) else (b, a)

    def fault(self) -> str:
        """What stops the program in some interleaving; empty if nothing does."""
        closures = (self.whole, *self.without)
        if any(n > isa.TOKEN_LIMIT for each in closures for token, n in each.tokens.items() if len(token) > 1):
            return "overflow"
        if not self.runs_to_its_end():
            return "deadlock"
        return "left-over" if any(n for token, n in self.whole.tokens.items() if len(token) > 1) else ""
