"""The happens-before checker: does a program mean the same in every interleaving of its queues, and run to its end
in each?

It expands the launch as the device would, gives every queue of every core a vector clock, and lets only queue
order, tokens, counters and launches order things. It reports races, deadlocks, too many or left-over tokens,
accesses outside a memory, and reads of bytes that nobody wrote. It knows nothing of how a compiler inserted the
synchronisation.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from . import isa
from .assembly import row_text
from .checker_world import (
    GM,
    RING,
    SLOTS,
    W_BASE,
    W_READERS,
    W_SHIFT,
    W_TRACKED,
    WORDS,
    Cores,
    Shadow,
    Signals,
    Threads,
    Tokens,
    new_world,
)
from .encoding import Program
from .expr import LEVELS, RINGS, VARIABLES
from .findings import RACES, Finding, Place, Report, memory_finding, overflow, survey_finding, wanted
from .footprint import ENGINES, SPACES, Survey, granules, new_accesses, survey
from .generator import BLOCK, ROW, WIDTH, Flat, flatten, launch_registers, new_state
from .happens_before import is_firm, walk
from .shadow import FINDING_WIDTH, READERS
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
    restarts: bool = False
    """All counters are 0 before it."""


def check(
    program: Program,
    *,
    arguments: Sequence[int] = (),
    l1: int = 0,
    ub: int = 0,
    token: int = 0,
    target: Target,
    cores: int | None = None,
    gm_size: int,
    initialised: Intervals = (),
    outputs: Intervals = (),
    gm: NDArray[np.uint8] = NO_MEMORY,
) -> Report:
    """Checks one launch; see `check_launches`."""
    count = target.cores if cores is None else cores
    launch = Launch(program, launch_registers(tuple(arguments), count, l1, ub, token))
    return check_launches(
        [launch], target=target, cores=count, gm_size=gm_size, initialised=initialised, outputs=outputs, gm=gm
    )


def check_launches(
    launches: Sequence[Launch],
    *,
    target: Target,
    cores: int | None = None,
    gm_size: int,
    initialised: Intervals = (),
    outputs: Intervals = (),
    gm: NDArray[np.uint8] = NO_MEMORY,
) -> Report:
    """Checks launches that run one after the other on `cores` cores (all, if None), with `gm_size` bytes of global
    memory.

    Bytes of `initialised` [low, high) hold values before the first launch; those of `outputs` must be written after
    the last. `gm` serves `read` instructions and must hold what they read.
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

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Bytes of each space."""
        t = self.target
        return np.array([self.gm_size, t.l1_bytes, t.l0a_bytes, t.l0b_bytes, t.l0c_bytes, t.ub_bytes], np.int64)

    def run(self, initialised: Intervals, outputs: Intervals) -> Report:
        edges, sizes = [edge for interval in (*initialised, *outputs) for edge in interval], self.sizes
        flats = [flatten(launch.program) for launch in self.launches]
        surveys = [
            [survey(flat, launch.registers, core, self.gm, sizes) for core in range(self.cores)]
            for launch, flat in zip(self.launches, flats, strict=True)
        ]
        for launch, of_cores in zip(self.launches, surveys, strict=True):
            self.report_surveys(launch, of_cores)
        if self.findings:
            return Report(tuple(self.findings))
        bits, written = (np.zeros(SPACES, np.int64) for _ in range(2))
        for found in (found for of_cores in surveys for found in of_cores):
            bits |= found.bits
            written = np.maximum(written, found.written)
        bits[GM] |= np.bitwise_or.reduce([*edges, 0])
        loose = np.zeros((len(self.launches), isa.COUNTERS), np.uint8)
        while True:
            shadow = new_shadow(granules(bits), sizes, written, self.cores)
            shift = int(shadow.places[GM])
            for low, high in initialised:
                shadow.holds[low >> shift : high >> shift] = 1
            if self.walk(flats, surveys, shadow, loose):
                break
        if not self.findings:
            self.report_outputs(outputs, shadow)
        return Report(tuple(self.findings))

    def walk(self, flats: list[Flat], surveys: list[list[Survey]], shadow: Shadow, loose: NDArray[np.uint8]) -> bool:
        """Walks the launches up to the first with findings; False if a counter that was not `loose` is now, so that
        all must be walked anew."""
        counters = np.zeros(isa.COUNTERS, np.int64)
        ticks = np.zeros(self.cores * ENGINES, np.int64)
        for launch, flat, of_cores, loose_here in zip(self.launches, flats, surveys, loose, strict=True):
            if launch.restarts:
                counters[:] = 0
            signals = self.launch(launch, flat, of_cores, shadow, counters, ticks, loose_here)
            if signals is None:
                return False
            if self.findings:
                return True
            counters += signals.counts
        return True

    def launch(
        self,
        launch: Launch,
        flat: Flat,
        surveys: list[Survey],
        shadow: Shadow,
        counters: NDArray[np.int64],
        ticks: NDArray[np.int64],
        loose: NDArray[np.uint8],
    ) -> Signals | None:
        """Walks a launch: its signals, or None if a counter turned out to be loose."""
        shadow.holds[int(shadow.places[W_BASE - W_SHIFT + 1]) :] = 0
        cores, threads = new_cores(launch, self.cores), new_threads(surveys, ticks)
        tokens, signals = new_tokens(surveys), new_signals(surveys, counters, loose)
        found = np.zeros((MOST_FINDINGS + 1, FINDING_WIDTH), np.int64)
        found[0, 1] = MOST_FINDINGS
        accesses, depth = new_accesses(), self.target.queue_depth
        world = new_world(flat, self.gm, depth, cores, threads, tokens, signals, shadow, accesses, found)
        walk(world.ctypes.data)
        newly = [c for c in np.flatnonzero(signals.counts) if not loose[c] and not is_firm(signals, int(c))]
        if newly:
            loose[newly] = 1
            return None
        self.report(launch, threads, found[1 : 1 + int(found[0, 0])])
        overflowed, thread = found[0, 2:4].tolist()
        if overflowed:
            self.findings.append(overflow(self.place(launch, overflowed - 1, thread % ENGINES, thread // ENGINES)))
        elif np.any(cores.issued != cores.begun) or not cores.at[:, 2].all():
            self.report_deadlock(launch, cores)
        else:
            self.report_tokens(launch, tokens, threads)
        ticks[:] = threads.ticks
        return signals

    def place(self, launch: Launch, row: int, engine: int, core: int) -> Place:
        r = launch.program[row]
        return Place(launch.kernel, row, row_text(r), r.slot, isa.Engine(engine).name.lower(), core)

    def at_tick(self, launch: Launch, threads: Threads, thread: int, tick: int) -> Place:
        row = threads.rows[threads.first[thread] + tick - 1 - threads.started[thread]]
        return self.place(launch, int(row), thread % ENGINES, thread // ENGINES)

    def report(self, launch: Launch, threads: Threads, found: NDArray[np.int64]) -> None:
        """Turns occurrences into findings, one for each pair of rows and memory."""
        seen: set[tuple[object, ...]] = set()
        for kind, before, before_tick, after, after_tick, space, low, high in found.tolist():
            second = self.at_tick(launch, threads, after, after_tick)
            first = self.at_tick(launch, threads, before, before_tick) if kind in RACES else None
            key = (
                kind in RACES,
                first and (first.row, first.engine, first.core == second.core),
                second.row,
                second.engine,
                space,
            )
            if key not in seen:
                seen.add(key)
                self.findings.append(memory_finding(kind, first, second, isa.Space(space).name, low, high))

    def report_surveys(self, launch: Launch, surveys: list[Survey]) -> None:
        """What is wrong with single instructions, whatever the order."""
        seen: set[tuple[int, int]] = set()
        for core, found in enumerate(surveys):
            for kind, row, space, low, high in found.wrong[: int(found.faults[0])].tolist():
                if (kind, row) not in seen:
                    seen.add((kind, row))
                    place = self.place(launch, row, int(launch.program[row].instruction.engine or 0), core)
                    self.findings.append(survey_finding(kind, place, space, low, high, int(self.sizes[space % SPACES])))

    def report_deadlock(self, launch: Launch, cores: Cores) -> None:
        heads: list[str] = []
        places: list[Place] = []
        for core, engine in np.argwhere(cores.issued != cores.begun).tolist():
            record = cores.queues[core, engine, cores.begun[core, engine] & (SLOTS - 1)]
            places.append(self.place(launch, int(record[ROW]), engine, core))
            full = cores.issued[core, engine] - cores.begun[core, engine] == self.target.queue_depth
            waits = wanted(launch.program[int(record[ROW])].name, record)
            heads.append(f"core {core}: {places[-1]}{waits}{', its queue full' if full else ''}")
        self.findings.append(Finding("deadlock", "deadlock: " + "; ".join(heads) + ": none can go on", None, places[0]))

    def report_tokens(self, launch: Launch, tokens: Tokens, threads: Threads) -> None:
        """Left-over tokens, and counts that other interleavings drive too high."""
        kinds = tokens.given.shape[1]
        gives, takes = (
            _by_token(log[: int(length)], kinds)
            for log, length in zip((tokens.gives, tokens.takes), tokens.lengths, strict=True)
        )
        for pair in np.flatnonzero(tokens.number >= 0).tolist():
            src, dst = (isa.Engine(e).name.lower() for e in (pair // ENGINES, pair % ENGINES))
            for core in range(self.cores):
                for token in range(isa.TOKEN_IDS):
                    k = int(tokens.number[pair]) * isa.TOKEN_IDS + token
                    left = int(tokens.given[core, k] + tokens.granted[core, k] - tokens.taken[core, k])
                    if left:
                        text = f"core {core}: {left} token(s) {token} from {src} to {dst} are left over"
                        why = f"a wait in {dst} is missing, or a set or grant too many"
                        self.findings.append(Finding("left-over", f"{text}: {why}"))
                    elif tick := _overflows(gives(core, k), takes(core, k)):
                        engine = pair // ENGINES if tick > 0 else pair % ENGINES
                        self.findings.append(
                            overflow(self.at_tick(launch, threads, core * ENGINES + engine, abs(tick)))
                        )

    def report_outputs(self, outputs: Intervals, shadow: Shadow) -> None:
        shift = int(shadow.places[GM])
        for low, high in outputs:
            missing = np.flatnonzero(shadow.holds[low >> shift : high >> shift] == 0)
            if len(missing):
                first = low + (int(missing[0]) << shift)
                text = f"{len(missing) << shift} of the {high - low} output bytes from {low} on are never written"
                self.findings.append(Finding("output", f"{text}, the first at {first}", None, None, "GM", first, high))


def _overflows(gives: NDArray[np.int64], takes: NDArray[np.int64]) -> int:
    """Tick of the set (or minus that of the grant) whose token may be one too many in some interleaving; 0: none
    is. `gives` and `takes` are those of one token of one core.

    The count after set a is at most a + the largest Σ (grants − waits) over any point of the waiter's queue that a
    may meet: those from the ticks that come before the set on.
    """
    change = np.concatenate([[0], np.cumsum(takes[:, 3])])
    most = np.maximum.accumulate(change[::-1])[::-1]
    counts = np.arange(1, len(gives) + 1) + most[np.searchsorted(takes[:, 2], gives[:, 3], side="right")]
    if len(gives) and counts.max() > isa.TOKEN_LIMIT:
        return int(gives[int(np.argmax(counts > isa.TOKEN_LIMIT)), 2])
    if most[0] > isa.TOKEN_LIMIT:
        return -int(takes[int(np.argmax(change[1:] > isa.TOKEN_LIMIT)), 2])
    return 0


def _by_token(log: NDArray[np.int64], kinds: int) -> Callable[[int, int], NDArray[np.int64]]:
    """The entries of a log, in order, by core and token."""
    key = log[:, 0] * kinds + log[:, 1]
    order = np.argsort(key, kind="stable")
    log, key = log[order], key[order]

    def of(core: int, k: int) -> NDArray[np.int64]:
        low, high = np.searchsorted(key, [core * kinds + k, core * kinds + k + 1])
        return log[low:high]

    return of


def new_shadow(shift: NDArray[np.int64], sizes: NDArray[np.int64], written: NDArray[np.int64], cores: int) -> Shadow:
    """All granules, unwritten. Reads are kept of those below the end of what is ever `written`."""
    places = np.zeros(WORDS - W_SHIFT, np.int64)
    places[:SPACES] = shift
    tracked = places[W_TRACKED - W_SHIFT : W_BASE - W_SHIFT]
    tracked[:] = -(-written >> shift)
    bases, readers = places[W_BASE - W_SHIFT : W_READERS - W_SHIFT], places[W_READERS - W_SHIFT :]
    granule = int(sizes[GM] >> shift[GM]) + 1
    column = int(tracked[GM]) * cores * len(READERS[GM])
    for core in range(cores):
        for space in range(1, SPACES):
            at = core * SPACES + space
            bases[at], readers[at] = granule, column
            granule += int(sizes[space] >> shift[space])
            column += int(tracked[space]) * len(READERS[space])
    writer, ticks = np.full(granule, -1, np.int32), np.zeros(granule, np.int32)
    return Shadow(places, writer, ticks, np.zeros(column, np.int32), np.zeros(granule, np.uint8))


def new_threads(surveys: list[Survey], ticks: NDArray[np.int64]) -> Threads:
    """Clocks that begin where all threads stand."""
    entries = np.concatenate([found.entries for found in surveys])
    first = np.concatenate([[0], np.cumsum(entries)])
    return Threads(
        np.tile(ticks, (len(ticks), 1)),
        ticks.copy(),
        np.zeros(int(first[-1]) + 1, np.int32),
        first[:-1].astype(np.int64),
        ticks.copy(),
    )


def new_tokens(surveys: list[Survey]) -> Tokens:
    """Counts of 0, and room for all gives and takes."""
    cores, given, taken = len(surveys), _total(f.given for f in surveys), _total(f.taken for f in surveys)
    used = given + taken > 0
    number = np.where(used, np.cumsum(used) - 1, -1)
    kinds = max(1, int(used.sum())) * isa.TOKEN_IDS
    given_now, taken_now, granted = (np.zeros((cores, kinds), np.int64) for _ in range(3))
    clocks = np.zeros((cores, kinds, RING, cores * ENGINES), np.int64)
    gives, takes = (np.zeros((int(total.sum()) + 1, 4), np.int64) for total in (given, taken))
    lengths = np.zeros(2, np.int64)
    return Tokens(number.astype(np.int64), given_now, taken_now, granted, clocks, gives, takes, lengths)


def new_signals(surveys: list[Survey], initial: NDArray[np.int64], loose: NDArray[np.uint8]) -> Signals:
    """Room for the signals of a launch."""
    first = np.concatenate([[0], np.cumsum(_total(f.signals for f in surveys))]).astype(np.int64)
    size, threads = int(first[-1]) + 1, len(surveys) * ENGINES
    clocks, joined = (np.zeros((size, threads), np.int64) for _ in range(2))
    return Signals(
        first,
        np.zeros(isa.COUNTERS, np.int64),
        initial,
        clocks,
        joined,
        np.full(size, -1, np.int64),
        np.zeros(size, np.uint8),
        loose,
    )


def new_cores(launch: Launch, count: int) -> Cores:
    """Generators at their first rows, and empty queues."""
    variables = np.zeros((count, len(VARIABLES)), np.int64)
    for core in range(count):
        variables[core] = new_state(launch.registers, core).variables
    rings, trips, cursor, at, issued, begun = (
        np.zeros((count, n), np.int64) for n in (RINGS, LEVELS, 4, 3, ENGINES, ENGINES)
    )
    blocks, queues = np.zeros((count, BLOCK, WIDTH), np.int64), np.zeros((count, ENGINES, SLOTS, WIDTH + 1), np.int64)
    return Cores(variables, rings, trips, cursor, blocks, at, queues, issued, begun)


def _total(arrays: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.sum(list(arrays), axis=0)
