"""The timing model a second time, written from docs/timing.md alone: plain Python, every queue entry an object, no
shortcuts.

It shares only the declarations with the product: rows, `Expr.value`, the formulas' text. It steps from event to
event in the order of time.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from stepwell.runtime import isa
from stepwell.runtime.encoding import Program, Row
from stepwell.runtime.expr import RINGS
from stepwell.runtime.formulas import evaluate
from stepwell.runtime.target import Target

NEVER = float("inf")
QUEUE_FIELD = {"set": "src", "wait": "dst", "grant": "dst", "signal": "engine", "await": "engine"}


class Deadlock(Exception):
    """Nothing can go on."""


@dataclass(eq=False)
class Entry:
    """An instruction in a queue."""

    name: str
    fields: dict[str, int]
    cycles: float
    size: float
    entered: float = 0.0
    start: float = 0.0
    begins: float = NEVER
    """When it ends, or its transfer begins."""
    left: float = 0.0

    @property
    def token(self) -> tuple[int, int, int]:
        return self.fields["src"], self.fields["dst"], self.fields["id"]


@dataclass
class Engine:
    queue: deque[Entry] = field(default_factory=deque)
    running: Entry | None = None
    moving: bool = False
    free: float = 0.0
    busy: float = 0.0
    token: float = 0.0
    issue: float = 0.0


class Core:
    """One core: the walk over its rows, its engines, its tokens."""

    def __init__(self, program: Program, registers: list[int], number: int, target: Target) -> None:
        self.program, self.target, self.number = program, target, number
        self.variables = {"core": number, **{f"r{i}": value for i, value in enumerate(registers)}}
        self.rings = [0] * RINGS
        self.engines = {int(e): Engine(free=target.launch) for e in isa.Engine if e}
        self.tokens: dict[tuple[int, int, int], int] = {}
        self.seen: dict[int, int] = {}
        self.steps = self.walk(0, 0)
        self.clock = float(target.launch)
        self.pending: tuple[int, Entry] | None = None
        self.ended = False

    def walk(self, number: int, level: int) -> Iterator[tuple[int, Entry] | None]:
        """The rows in the order of execution: None for those that only take a cycle."""
        while number < len(self.program) and self.program[number].name != "end":
            row = self.program[number]
            values = {
                spec.name: expr.value(self.variables, self.rings)
                for spec, expr in zip(row.instruction.fields, row.fields, strict=True)
            }
            if row.name == "loop":
                yield None
                for self.variables[f"i{level}"] in range(-(-values["count"] // values["step"]) + values["add"]):
                    yield from self.walk(number + 1, level + 1)
                    yield None
                    self.rings[values["ring"]] += 1
                number = self.matching_end(number)
            elif row.name == "mov":
                self.variables[f"r{values['rd']}"] = values["value"]
                yield None
            else:
                yield self.entry(row, values)
            number += 1

    def matching_end(self, number: int) -> int:
        depth = 1
        while depth:
            number += 1
            depth += {"loop": 1, "end": -1}.get(self.program[number].name, 0)
        return number

    def entry(self, row: Row, values: dict[str, int]) -> tuple[int, Entry]:
        engine = values[QUEUE_FIELD[row.name]] if row.name in QUEUE_FIELD else int(row.instruction.engine or 0)
        if any(values[name] <= 0 for name in row.instruction.extents):
            return engine, Entry(row.name, values, 1, 0)
        cycles, size = (evaluate(f, values, self.target) for f in (row.instruction.cycles, row.instruction.gm_bytes))
        return engine, Entry(row.name, values, cycles, size)

    def sequence(self, now: float) -> float:
        """Issues what can be issued up to `now`; when to come back, if that is known."""
        while not self.ended:
            if self.pending is None:
                try:
                    self.pending = next(self.steps)
                except StopIteration:
                    self.ended = True
                    return NEVER
                self.clock += 1
            if self.pending is None:
                continue
            engine, entry = self.pending
            if self.clock > now:
                return self.clock
            if len(self.engines[engine].queue) >= self.target.queue_depth:
                return NEVER
            self.clock = entry.entered = max(self.clock, now)
            self.engines[engine].queue.append(entry)
            self.pending = None
        return NEVER

    def start(self, now: float) -> bool:
        """Starts every head that may start now."""
        progress = False
        for engine in self.engines.values():
            if engine.running or not engine.queue:
                continue
            head = engine.queue[0]
            if head.name == "wait" and not self.tokens.get(head.token, 0):
                continue
            if head.name == "await" and self.seen.get(head.fields["counter"], 0) < head.fields["value"]:
                continue
            if head.name == "wait":
                self.tokens[head.token] -= 1
            engine.queue.popleft()
            ready = max(head.entered, engine.free)
            engine.issue += ready - engine.free
            engine.token += now - ready
            head.start, head.begins, head.left = now, now + head.cycles, head.size
            engine.running, engine.moving = head, False
            progress = True
        return progress


class Simulator:
    """All cores of a launch."""

    def __init__(self, program: Program, registers: list[int], target: Target, cores: int) -> None:
        self.target = target
        self.cores = [Core(program, registers, number, target) for number in range(cores)]
        self.arrivals: list[tuple[float, int, int]] = []

    def run(self) -> float:
        now = 0.0
        while True:
            wake = self.settle(now)
            moving = [e for c in self.cores for e in c.engines.values() if e.moving]
            rate = min(self.target.gm_path, self.target.gm_port / max(1, len(moving)))
            times = [wake, *(arrival[0] for arrival in self.arrivals)]
            times += [now + e.running.left / rate for e in moving if e.running]
            times += [e.running.begins for c in self.cores for e in c.engines.values() if e.running and not e.moving]
            then = min(times)
            if then == NEVER:
                break
            for engine in moving:
                assert engine.running
                engine.running.left -= rate * (then - now)
            now = then
            self.happen(now)
        if any(not core.ended or e.queue for core in self.cores for e in core.engines.values()):
            raise Deadlock
        ends = [engine.free for core in self.cores for engine in core.engines.values()]
        return max(*ends, *(core.clock for core in self.cores))

    def settle(self, now: float) -> float:
        """Everything that can happen at `now` without time passing; when a sequencer has to be asked again."""
        while True:
            wake = min(core.sequence(now) for core in self.cores)
            started = [core.start(now) for core in self.cores]
            if not any(started):
                return wake

    def happen(self, now: float) -> None:
        """Ends and beginnings that are due."""
        for arrival in [a for a in self.arrivals if a[0] <= now]:
            self.arrivals.remove(arrival)
            for core in self.cores:
                if core.number != arrival[1]:
                    core.seen[arrival[2]] = core.seen.get(arrival[2], 0) + 1
        for core in self.cores:
            for engine in core.engines.values():
                entry = engine.running
                if entry is None:
                    continue
                if engine.moving:
                    if entry.left <= 1e-7:
                        self.end(core, engine, entry, now)
                elif entry.begins <= now:
                    if entry.size > 0:
                        engine.moving = True
                    else:
                        self.end(core, engine, entry, now)

    def end(self, core: Core, engine: Engine, entry: Entry, now: float) -> None:
        engine.busy += now - entry.start
        engine.free, engine.running, engine.moving = now, None, False
        if entry.name == "set":
            core.tokens[entry.token] = core.tokens.get(entry.token, 0) + 1
        elif entry.name == "grant":
            core.tokens[entry.token] = core.tokens.get(entry.token, 0) + entry.fields["n"]
        elif entry.name == "signal":
            counter = entry.fields["counter"]
            core.seen[counter] = core.seen.get(counter, 0) + 1
            self.arrivals.append((now + self.target.signal_latency, core.number, counter))
