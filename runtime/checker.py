"""The happens-before checker: does a program mean the same in every interleaving of its queues, and run to its end in each?

It expands the launch as the device would, gives every queue of every core a vector clock, and lets only queue order, tokens, counters
and launches order things. It reports races, deadlocks, too many or left-over tokens, accesses outside a memory, and reads of
bytes that nobody wrote. It knows nothing of how a compiler inserted the synchronisation.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from . import isa
from .assembly import row_text
from .encoding import Program
from .expr import LEVELS, RINGS, VARIABLES
from .footprint import BAD_COUNTER, BAD_TOKEN, ENGINES, OUTSIDE, SPACES, STOPPED, Survey, granules, new_accesses, survey
from .generator import BLOCK, FAULTS, FIELDS, ROW, WIDTH, Flat, flatten, launch_registers, new_state
from .happens_before import (
    DTYPE,
    FINDING_WIDTH,
    GM,
    GM_READERS,
    OVERFLOW,
    READ_WRITE,
    RING,
    SLOTS,
    UNWRITTEN,
    WRITE_READ,
    WRITE_WRITE,
    Cores,
    Shadow,
    Signals,
    Threads,
    Tokens,
    is_firm,
    walk,
)
from .target import Target

MOST_FINDINGS = 200
"""Occurrences that are looked at; equal ones become one finding."""
NO_MEMORY = np.zeros(0, np.uint8)
Intervals = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a sequence. `registers` are r0…r31, see `launch_registers`."""

    program: Program
    registers: NDArray[np.int64]
    kernel: str = "kernel"


@dataclass(frozen=True, slots=True)
class Place:
    """An instruction: where it stands, and whose queue on which core executed it."""

    kernel: str
    row: int
    text: str
    slot: int
    engine: str
    core: int

    def __str__(self) -> str:
        return f"row {self.row} `{self.text}` ({self.engine})"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong. `kind` is race, deadlock, overflow, left-over, outside, unwritten, dtype, range, fault or output."""

    kind: str
    text: str
    before: Place | None = None
    """For a race: the instruction that the walk met first."""
    place: Place | None = None
    space: str = ""
    low: int = 0
    high: int = 0

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Report:
    """What was found, the first occurrence of each."""

    findings: tuple[Finding, ...]

    @property
    def clean(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        return "\n".join(str(finding) for finding in self.findings) or "clean"


def check(program: Program, *, arguments: Sequence[int] = (), l1: int = 0, ub: int = 0, token: int = 0, target: Target, cores: int | None = None, gm_size: int,
          initialised: Intervals = (), outputs: Intervals = (), gm: NDArray[np.uint8] = NO_MEMORY) -> Report:  # fmt: skip
    """Checks one launch; see `check_launches`."""
    count = target.cores if cores is None else cores
    launch = Launch(program, launch_registers(tuple(arguments), count, l1, ub, token))
    return check_launches([launch], target=target, cores=count, gm_size=gm_size, initialised=initialised, outputs=outputs, gm=gm)


def check_launches(launches: Sequence[Launch], *, target: Target, cores: int | None = None, gm_size: int, initialised: Intervals = (),
                   outputs: Intervals = (), gm: NDArray[np.uint8] = NO_MEMORY) -> Report:  # fmt: skip
    """Checks launches that run one after the other on `cores` cores (all, if None), with `gm_size` bytes of global memory.

    Bytes of `initialised` [low, high) hold values before the first launch; those of `outputs` must be written after the last.
    `gm` serves `read` instructions and must hold what they read.
    """
    return _Check(launches, target, target.cores if cores is None else cores, gm_size, gm).run(initialised, outputs)


@dataclass
class _Check:
    """One run over a sequence of launches."""

    launches: Sequence[Launch]
    target: Target
    cores: int
    gm_size: int
    gm: NDArray[np.uint8]
    findings: list[Finding] = field(default_factory=list)

    def run(self, initialised: Intervals, outputs: Intervals) -> Report:
        t, edges = self.target, [edge for interval in (*initialised, *outputs) for edge in interval]
        sizes = np.array([self.gm_size, t.l1_bytes, t.l0a_bytes, t.l0b_bytes, t.l0c_bytes, t.ub_bytes], np.int64)
        flats = [flatten(launch.program) for launch in self.launches]
        surveys = [[survey(flat, launch.registers, core, self.gm, sizes) for core in range(self.cores)] for launch, flat in zip(self.launches, flats, strict=True)]
        for launch, of_cores in zip(self.launches, surveys, strict=True):
            self.report_surveys(launch, of_cores)
        if self.findings:
            return Report(tuple(self.findings))
        bits = np.bitwise_or.reduce([found.bits for of_cores in surveys for found in of_cores] or [np.zeros(SPACES, np.int64)])
        bits[GM] |= np.bitwise_or.reduce([*edges, 0])
        shadow = new_shadow(granules(bits), sizes, self.cores)
        shift = int(shadow.shift[GM])
        for low, high in initialised:
            shadow.holds[low >> shift : high >> shift] = 1
        counters = np.zeros(isa.COUNTERS, np.int64)
        ticks = np.zeros(self.cores * ENGINES, np.int64)
        for launch, flat, of_cores in zip(self.launches, flats, surveys, strict=True):
            counters = self.launch(launch, flat, of_cores, shadow, counters, ticks)
            if self.findings:
                break
        else:
            self.report_outputs(outputs, shadow)
        return Report(tuple(self.findings))

    def launch(self, launch: Launch, flat: Flat, surveys: list[Survey], shadow: Shadow, counters: NDArray[np.int64], ticks: NDArray[np.int64]) -> NDArray[np.int64]:  # fmt: skip
        """Walks a launch until the meaning of its counters is settled; the counters afterwards."""
        loose = np.zeros(isa.COUNTERS, np.uint8)
        uses_counters = any(found.signals.any() for found in surveys)
        shadow.holds[int(shadow.base[0, 1]) :] = 0
        while True:
            own = shadow if not uses_counters else Shadow(*shadow[:3], *(array.copy() for array in shadow[3:]))
            cores, threads = new_cores(launch, self.cores), new_threads(surveys, ticks)
            tokens, signals = new_tokens(surveys), new_signals(surveys, counters, loose)
            found, count = np.zeros((MOST_FINDINGS, FINDING_WIDTH), np.int64), np.zeros(1, np.int64)
            walk(flat, self.gm, cores, threads, tokens, signals, own, new_accesses(), self.target.queue_depth, found, count)
            newly = [c for c in np.flatnonzero(signals.counts) if not loose[c] and not is_firm(signals, int(c))]
            if not newly:
                break
            loose[newly] = 1
        for old, new in zip(shadow[3:], own[3:], strict=True):
            if old is not new:
                old[:] = new
        self.report(launch, threads, found[: int(count[0])])
        overflowed = any(finding.kind == "overflow" for finding in self.findings)
        if not overflowed and (np.any(cores.issued != cores.begun) or not cores.at[:, 2].all()):
            self.report_deadlock(launch, cores)
        elif not overflowed:
            self.report_tokens(launch, tokens, threads)
        ticks[:] = threads.ticks
        return counters + signals.counts

    def place(self, launch: Launch, row: int, engine: int, core: int) -> Place:
        r = launch.program[row]
        return Place(launch.kernel, row, row_text(r), r.slot, isa.Engine(engine).name.lower(), core)

    def at_tick(self, launch: Launch, threads: Threads, thread: int, tick: int) -> Place:
        row = threads.rows[threads.first[thread] + tick - 1 - threads.started[thread]]
        return self.place(launch, int(row), thread % ENGINES, thread // ENGINES)

    def report(self, launch: Launch, threads: Threads, found: NDArray[np.int64]) -> None:
        """Turns occurrences into findings, one for each pair of rows and memory."""
        seen: set[tuple[object, ...]] = set()
        for kind, before, before_tick, after, after_tick, space, low, high, _ in found.tolist():
            if kind == OVERFLOW:
                continue
            second = self.at_tick(launch, threads, after, after_tick)
            first = self.at_tick(launch, threads, before, before_tick) if kind in _RACES else None
            key = (kind in _RACES, first and (first.row, first.engine, first.core == second.core), second.row, second.engine, space)
            if key not in seen:
                seen.add(key)
                self.findings.append(_memory_finding(kind, first, second, isa.Space(space).name, low, high))
        for kind, _, _, thread, _, _, row, *_ in found.tolist():
            if kind == OVERFLOW:
                self.findings.append(_overflow(self.place(launch, row, thread % ENGINES, thread // ENGINES)))

    def report_surveys(self, launch: Launch, surveys: list[Survey]) -> None:
        seen: set[tuple[int, int]] = set()
        for core, found in enumerate(surveys):
            for kind, row, space, low, high in found.wrong[: int(found.count[0])].tolist():
                if (kind, row) in seen:
                    continue
                seen.add((kind, row))
                r = launch.program[row]
                place = self.place(launch, row, int(r.instruction.engine or 0), core)
                where = f"core {core}: row {row} `{place.text}`"
                if kind == OUTSIDE:
                    name, size = isa.Space(space).name, self.gm_size if space == GM else getattr(self.target, f"{isa.Space(space).name.lower()}_bytes")
                    self.findings.append(Finding("outside", f"{where} touches {name} bytes {low} to {high - 1}; {name} has {size}", None, place, name, low, high))
                elif kind == BAD_TOKEN:
                    self.findings.append(Finding("range", f"{where} names token {space}; ids are 0 to {isa.TOKEN_IDS - 1}, and a grant is not negative", None, place))
                elif kind == BAD_COUNTER:
                    self.findings.append(Finding("range", f"{where} names counter {space}; they are 0 to {isa.COUNTERS - 1}", None, place))
                elif kind == STOPPED:
                    self.findings.append(Finding("fault", f"{where}: {FAULTS[space]}", None, place))

    def report_deadlock(self, launch: Launch, cores: Cores) -> None:
        heads: list[str] = []
        places: list[Place] = []
        for core, engine in np.argwhere(cores.issued != cores.begun).tolist():
            record = cores.queues[core, engine, cores.begun[core, engine] & (SLOTS - 1)]
            places.append(self.place(launch, int(record[ROW]), engine, core))
            ended = "" if cores.issued[core, engine] - cores.begun[core, engine] < self.target.queue_depth else ", its queue full"
            heads.append(f"core {core}: {places[-1]}{_wanted(launch, record)}{ended}")
        self.findings.append(Finding("deadlock", "deadlock: " + "; ".join(heads) + ": none can go on", None, places[0]))

    def report_tokens(self, launch: Launch, tokens: Tokens, threads: Threads) -> None:
        """Left-over tokens, and counts that other interleavings drive too high."""
        for pair in np.flatnonzero(tokens.number >= 0).tolist():
            src, dst = (isa.Engine(e).name.lower() for e in (pair // ENGINES, pair % ENGINES))
            for core in range(self.cores):
                for token in range(isa.TOKEN_IDS):
                    k = int(tokens.number[pair]) * isa.TOKEN_IDS + token
                    left = int(tokens.given[core, k] + tokens.granted[core, k] - tokens.taken[core, k])
                    if left:
                        text = f"core {core}: {left} token(s) {token} from {src} to {dst} are left over: a wait in {dst} is missing, or a set or grant too many"
                        self.findings.append(Finding("left-over", text))
                    elif tick := _overflows(tokens, core, k):
                        engine = pair // ENGINES if tick > 0 else pair % ENGINES
                        self.findings.append(_overflow(self.at_tick(launch, threads, core * ENGINES + engine, abs(tick))))

    def report_outputs(self, outputs: Intervals, shadow: Shadow) -> None:
        shift = int(shadow.shift[GM])
        for low, high in outputs:
            missing = np.flatnonzero(shadow.holds[low >> shift : high >> shift] == 0)
            if len(missing):
                first = low + (int(missing[0]) << shift)
                text = f"{len(missing) << shift} of the {high - low} output bytes from {low} on are never written, the first at {first}"
                self.findings.append(Finding("output", text, None, None, "GM", first, high))


_RACES = {WRITE_READ: ("writes", "reads"), READ_WRITE: ("reads", "writes"), WRITE_WRITE: ("writes", "writes")}


def _memory_finding(kind: int, first: Place | None, second: Place, space: str, low: int, high: int) -> Finding:
    where = f"{space} bytes {low} to {high - 1}"
    if first is None:
        text = f"core {second.core}: {second} reads {where}, which nobody wrote"
        return Finding("unwritten", text, None, second, space, low, high)
    if kind == DTYPE:
        return Finding("dtype", f"core {second.core}: {second} reads {where}, written with another dtype", None, second, space, low, high)
    before, after = _RACES[kind]
    if first.core == second.core:
        here, missing = f"core {second.core}: ", f"a set/wait from {first.engine} to {second.engine} is missing"
        if first.engine == "scalar":
            missing = "the read has to come earlier in the program"
        if second.engine == "scalar":
            missing = f"a read cannot wait for {first.engine}; it belongs into a later launch"
        text = f"{here}nothing orders {first} before {second}"
    else:
        missing = f"a signal of {first.engine} on core {first.core} and an await in {second.engine} on core {second.core} are missing"
        text = f"nothing orders {first} of core {first.core} before {second} of core {second.core}"
    text += f": the first {before} and the second {after} {where}; {missing}"
    return Finding("race", text, first, second, space, low, high)


def _overflow(place: Place) -> Finding:
    text = f"core {place.core}: {place} can give more than {isa.TOKEN_LIMIT} tokens: the waiter may not have taken any yet"
    return Finding("overflow", text, None, place)


def _wanted(launch: Launch, record: NDArray[np.int64]) -> str:
    name = launch.program[int(record[ROW])].name
    if name == "await":
        return f" waits for counter {record[FIELDS + 1]} to reach {record[FIELDS + 2]}"
    return f" waits for token {record[FIELDS + 2]}" if name == "wait" else ""


def _overflows(tokens: Tokens, core: int, k: int) -> int:
    """Tick of the set (or minus that of the grant) whose token may be one too many in some interleaving; 0: none is.

    The count after set a is at most a + the largest Σ (grants − waits) over any point of the waiter's queue that a may meet: those from the ticks that come before
    the set on.
    """
    gives, takes = tokens.gives[: int(tokens.lengths[0])], tokens.takes[: int(tokens.lengths[1])]
    gives, takes = (x[(x[:, 0] == core) & (x[:, 1] == k)] for x in (gives, takes))
    change = np.concatenate([[0], np.cumsum(takes[:, 3])])
    most = np.maximum.accumulate(change[::-1])[::-1]
    counts = np.arange(1, len(gives) + 1) + most[np.searchsorted(takes[:, 2], gives[:, 3], side="right")]
    if len(gives) and counts.max() > isa.TOKEN_LIMIT:
        return int(gives[int(np.argmax(counts > isa.TOKEN_LIMIT)), 2])
    if most[0] > isa.TOKEN_LIMIT:
        return -int(takes[int(np.argmax(change[1:] > isa.TOKEN_LIMIT)), 2])
    return 0


def new_shadow(shift: NDArray[np.int64], sizes: NDArray[np.int64], cores: int) -> Shadow:
    """All granules, unwritten."""
    base, readers = np.zeros((cores, SPACES), np.int64), np.zeros((cores, SPACES), np.int64)
    granule, column = int(sizes[GM] >> shift[GM]) + 1, (int(sizes[GM] >> shift[GM]) + 1) * cores * len(GM_READERS)
    for core in range(cores):
        for space in range(1, SPACES):
            base[core, space], readers[core, space] = granule, column
            granule += int(sizes[space] >> shift[space])
            column += int(sizes[space] >> shift[space]) * ENGINES
    writer = np.full(granule, -1, np.int16)
    return Shadow(shift, base, readers, writer, np.zeros(granule, np.int32), np.zeros(column, np.int32), np.zeros(granule, np.uint8))


def new_threads(surveys: list[Survey], ticks: NDArray[np.int64]) -> Threads:
    entries = np.concatenate([found.entries for found in surveys])
    first = np.concatenate([[0], np.cumsum(entries)])
    return Threads(np.tile(ticks, (len(ticks), 1)), ticks.copy(), np.zeros(int(first[-1]) + 1, np.int32), first[:-1].astype(np.int64), ticks.copy())


def new_tokens(surveys: list[Survey]) -> Tokens:
    cores, given, taken = len(surveys), _total(f.given for f in surveys), _total(f.taken for f in surveys)
    used = given + taken > 0
    number = np.where(used, np.cumsum(used) - 1, -1)
    kinds = max(1, int(used.sum())) * isa.TOKEN_IDS
    counts = [np.zeros((cores, kinds), np.int64) for _ in range(3)]
    clocks = np.zeros((cores, kinds, RING, cores * ENGINES), np.int64)
    gives, takes = (np.zeros((int(total.sum()) + 1, 4), np.int64) for total in (given, taken))
    return Tokens(number.astype(np.int64), *counts, clocks, gives, takes, np.zeros(2, np.int64))


def new_signals(surveys: list[Survey], initial: NDArray[np.int64], loose: NDArray[np.uint8]) -> Signals:
    first = np.concatenate([[0], np.cumsum(_total(f.signals for f in surveys))]).astype(np.int64)
    size, threads = int(first[-1]) + 1, len(surveys) * ENGINES
    clocks, joined = (np.zeros((size, threads), np.int64) for _ in range(2))
    return Signals(first, np.zeros(isa.COUNTERS, np.int64), initial, clocks, joined, np.full(size, -1, np.int64), np.zeros(size, np.uint8), loose)


def new_cores(launch: Launch, count: int) -> Cores:
    variables = np.zeros((count, len(VARIABLES)), np.int64)
    for core in range(count):
        variables[core] = new_state(launch.registers, core).variables
    per_core = [np.zeros((count, n), np.int64) for n in (RINGS, LEVELS, 4)]
    blocks, queues = np.zeros((count, BLOCK, WIDTH), np.int64), np.zeros((count, ENGINES, SLOTS, WIDTH + 1), np.int64)
    places = [np.zeros((count, n), np.int64) for n in (3, ENGINES, ENGINES)]
    return Cores(variables, *per_core, blocks, places[0], queues, places[1], places[2])


def _total(arrays: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.sum(list(arrays), axis=0)


