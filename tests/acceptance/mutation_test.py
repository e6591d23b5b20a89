"""Compiled kernels with a token dropped, moved or swapped: the checker says clean exactly when no interleaving differs.

The truth comes from exploring all interleavings (exploration.py, itself compared with enumerating them one by one), and
is confirmed on the emulator: where nothing races, 40 interleavings and the most lopsided orders give the same bytes;
where something does, one of them, or the racing pair in flight at once, gives others or stops.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
import pytest
from acceptance.bench import Bench, Stuck, orders, outcomes
from acceptance.exploration import Expander, Exploration
from acceptance.subjects import TINY, Subject, by_hand, linked, run, subjects
from numpy.typing import NDArray
from tile import kernels

from stepwell.runtime import checker
from stepwell.runtime.assembly import disassemble
from stepwell.runtime.encoding import Program, Row
from stepwell.runtime.expr import Expr
from stepwell.runtime.faults import DeviceFault
from stepwell.runtime.memory import Memory

SEEDS = 40
SYNC = ("set", "wait", "grant")
BETWEEN_CORES = ("signal", "await")


def mutated(random: Random, program: Program, names: tuple[str, ...] = SYNC) -> tuple[str, Program]:
    """One change to the synchronisation: a row, or a token with its set and wait, dropped; a row moved or swapped."""
    rows = list(program)
    spots = [n for n, row in enumerate(rows) if row.name in names]
    kind, at = random.choice(("drop", "token", "token", "move", "move", "swap")), random.choice(spots)
    if kind == "drop":
        del rows[at]
        return f"without row {at}", tuple(rows)
    if kind == "token":
        same = [n for n in spots if _counted(rows[n]) == _counted(rows[at])]
        others = [n for n in same if rows[n].name != rows[at].name and rows[n].name != "grant"]
        dropped = {at, random.choice(others)} if others and random.random() < 0.7 else set(same)
        return f"without rows {sorted(dropped)}", tuple(row for n, row in enumerate(rows) if n not in dropped)
    if kind == "move":
        row = rows.pop(at)
        to = random.choice((max(0, at - 1), min(len(rows), at + 1), random.randrange(len(rows) + 1)))
        rows.insert(to, row)
        return f"row {at} moved to {to}", tuple(rows)
    other = random.choice([n for n in spots if n != at] or [at])
    rows[at], rows[other] = rows[other], rows[at]
    return f"rows {at} and {other} swapped", tuple(rows)


def _counted(row: Row) -> tuple[Expr, ...]:
    return row.fields[1:2] if row.name in BETWEEN_CORES else row.fields[:3]


@dataclass
class Verdict:
    """What exploration, emulator and checker say about a program."""

    truth: str
    """Why it is wrong; empty if it is not."""
    shown: str
    """How it showed on the emulator."""
    report: checker.Report
    text: str


def check(subject: Subject) -> checker.Report:
    size = len(subject.before)
    return checker.check(
        subject.program,
        arguments=subject.arguments,
        target=TINY,
        cores=subject.cores,
        gm_size=size,
        initialised=[(0, size)],
    )


class Judge:
    """Knows a subject's right outputs."""

    def __init__(self, subject: Subject) -> None:
        self.subject, self.memory = subject, Memory(TINY, len(subject.before))
        self.expander = Expander(TINY, len(subject.before))
        self.expected = run(subject, self.memory, None)
        self.orders = orders(subject.cores)

    def judge(self, what: str, program: Program) -> Verdict:
        subject = replace(self.subject, program=program)
        entries = self.expander.entries(program, subject.registers.tolist(), subject.cores)
        explored = Exploration(entries, TINY.queue_depth)
        truth = explored.fault()
        races = [] if truth in ("deadlock", "overflow") else list(explored.races())
        if races and not truth:
            a, b = (explored.entries[n] for n in races[0])
            truth = f"race of rows {a.row} and {b.row}"
        shown = self.seeds(subject) or self.lopsided(explored, races)
        report = check(subject)
        text = f"{subject.name}, {what}: truth {truth or 'clean'}, emulator {shown or 'the same'}, checker {report}"
        return Verdict(truth, shown, report, text)

    def differs(self, found: NDArray[np.uint8]) -> bool:
        return not np.array_equal(found, self.expected)

    def seeds(self, subject: Subject) -> str:
        """The first interleaving of the emulator that shows something."""
        for seed in range(SEEDS):
            try:
                if self.differs(run(subject, self.memory, seed)):
                    return f"differs under seed {seed}"
            except DeviceFault as fault:
                return fault.kind
        return ""

    def lopsided(self, explored: Exploration, races: list[tuple[int, int]]) -> str:
        """The first lopsided order, or racing pair at once, that shows something."""
        bench = Bench(explored, TINY, self.subject.before, self.memory)
        try:
            for order in self.orders:
                if self.differs(bench.run(order)):
                    return f"differs with queues {order}"
            for writer, other in races[:20]:
                if self.differs(bench.run_torn(writer, other, self.orders[0])):
                    return f"differs with row {explored.entries[writer].row} in flight"
        except Stuck as stuck:
            return str(stuck)
        return ""


def demand_agreement(verdict: Verdict) -> None:
    assert verdict.report.clean == (not verdict.truth), verdict.text
    assert bool(verdict.shown) == bool(verdict.truth), verdict.text


def judge_mutations(seed: int, count: int, among: Sequence[Subject], names: tuple[str, ...] = SYNC) -> Counter[str]:
    """Judges random mutations of random programs: how many there were of each kind."""
    random, judges, kinds = Random(seed), {subject.name: Judge(subject) for subject in among}, Counter[str]()
    while kinds.total() < count:
        subject = random.choice(among)
        judge = judges[subject.name]
        what, program = mutated(random, subject.program, names)
        verdict = judge.judge(what, program)
        demand_agreement(verdict)
        kinds[verdict.truth.partition(" ")[0] or "clean"] += 1
    return kinds


@pytest.mark.parametrize("among", [subjects, linked])
def test_programs_as_compiled_have_one_meaning(among: Callable[[], Sequence[Subject]]) -> None:
    for subject in among():
        verdict = Judge(subject).judge("as compiled", subject.program)
        demand_agreement(verdict)
        assert not verdict.truth, verdict.text


def test_exploration_agrees_with_every_single_interleaving() -> None:
    """Of programs so small that all can be run, one after the other."""
    random, kinds = Random(3), Counter[bool]()
    tiny = [by_hand("tiny", kernels.elementwise(rows, 16, slots=slots)) for rows, slots in ((64, 1), (96, 2))]
    for _ in range(24):
        subject = random.choice(tiny)
        what, program = mutated(random, subject.program)
        entries = Expander(TINY, len(subject.before)).entries(program, subject.registers.tolist())
        explored = Exploration(entries, len(entries))
        ends, stops = outcomes(Bench(explored, TINY, subject.before, Memory(TINY, len(subject.before))), 50_000)
        wrong = bool(explored.fault()) or any(explored.races())
        assert wrong == (stops or len(ends) > 1), f"{what}\n{disassemble(program)}"
        kinds[wrong] += 1
    assert min(kinds.values()) >= 4, kinds


def test_the_checker_agrees_on_mutated_kernels() -> None:
    kinds = judge_mutations(0, 40, subjects())
    assert kinds["race"] >= 5, kinds
    assert kinds["clean"] >= 5, kinds


@pytest.mark.parametrize("names", [SYNC, BETWEEN_CORES])
def test_the_checker_agrees_on_mutated_streams_of_two_cores(names: tuple[str, ...]) -> None:
    judge_mutations(0, 8, linked()[:1], names)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_the_checker_agrees_on_more_mutated_kernels(seed: int) -> None:
    """10 × 40."""
    judge_mutations(seed, 40, subjects())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("names", [SYNC, BETWEEN_CORES])
def test_the_checker_agrees_on_more_mutated_streams(seed: int, names: tuple[str, ...]) -> None:
    """2 × 5 × 20."""
    judge_mutations(seed, 20, linked(), names)
