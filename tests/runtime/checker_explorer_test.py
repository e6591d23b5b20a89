"""The checker against exhaustive exploration of small programs.

What a core has done is told by how far each of its queues has come, so the reachable *positions* of all queues
stand for all interleavings. Two conflicting accesses race if some reachable position has the first done and not the
second, and another the second and not the first. In the same way a fault is one if it happens in any position.
Nothing here comes from the checker: only rows, `Expr.value` and the footprints' text.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from stepwell.runtime import isa
from stepwell.runtime.assembly import disassemble
from stepwell.runtime.checker import Report, check
from stepwell.runtime.encoding import Program, Row, row
from stepwell.runtime.expr import Expr, var
from stepwell.runtime.formulas import evaluate
from stepwell.runtime.generator import launch_registers
from stepwell.runtime.target import Target

TARGET = replace(Target.load("tiny"), queue_depth=64)
GM_SIZE = 1024
HALF = 512
"""The lower half of global memory is initialised."""
QUEUE_FIELD = {"set": "src", "wait": "dst", "grant": "dst", "signal": "engine", "await": "engine"}
Byte = tuple[int, int, int]


@dataclass
class Entry:
    """An executed row with the bytes that it reads and writes: (core or -1 for GM, space, address)."""

    name: str
    values: dict[str, int]
    reads: set[Byte] = field(default_factory=set)
    writes: set[Byte] = field(default_factory=set)

    @property
    def token(self) -> tuple[int, int, int]:
        return self.values["src"], self.values["dst"], self.values["id"]


def queues_of(program: Program, cores: int) -> tuple[list[list[Entry]], list[int]]:
    """The entries of each queue of each core, and these cores; a program without loops."""
    queues: dict[tuple[int, int], list[Entry]] = {}
    for core in range(cores):
        variables = {"core": core, **{f"r{i}": int(v) for i, v in enumerate(launch_registers(cores=cores))}}
        for r in program:
            values = {spec.name: f.value(variables) for spec, f in zip(r.instruction.fields, r.fields, strict=True)}
            queue = values[QUEUE_FIELD[r.name]] if r.name in QUEUE_FIELD else int(r.instruction.engine or 0)
            entry = Entry(r.name, values)
            for access in r.instruction.accesses:
                touched = set(touches(access, values, core))
                if not access.writes or evaluate(access.reads, values, TARGET):
                    entry.reads |= touched
                if access.writes:
                    entry.writes |= touched
            queues.setdefault((core, queue), []).append(entry)
    return list(queues.values()), [core for core, _ in queues]


def touches(access: isa.Access, values: dict[str, int], core: int) -> Iterator[Byte]:
    if not evaluate(access.when, values, TARGET):
        return
    space = int(values[access.space] if isinstance(access.space, str) else access.space)
    offsets = [values[access.field]]
    for count, stride in access.runs:
        offsets = [
            at + i * int(evaluate(stride, values, TARGET))
            for at in offsets
            for i in range(int(evaluate(count, values, TARGET)))
        ]
    for at in offsets:
        for byte in range(int(evaluate(access.length, values, TARGET))):
            yield (-1 if space == isa.Space.GM else core, space, at + byte)


class Explorer:
    """All reachable positions of a program, and what is wrong in some of them."""

    def __init__(self, program: Program, cores: int) -> None:
        self.queues, self.cores = queues_of(program, cores)
        self.faults: set[str] = set()
        self.positions: set[tuple[int, ...]] = set()
        self.writers: dict[Byte, list[tuple[int, int]]] = {}
        for q, entries in enumerate(self.queues):
            for n, entry in enumerate(entries):
                for byte in entry.writes:
                    self.writers.setdefault(byte, []).append((q, n))
        self.explore()
        if "deadlock" not in self.faults and "overflow" not in self.faults:
            self.find_races()

    def explore(self) -> None:
        waiting = [(0,) * len(self.queues)]
        self.positions.add(waiting[0])
        while waiting:
            position = waiting.pop()
            moves = [q for q in range(len(self.queues)) if self.may_step(position, q)]
            if not moves and any(n < len(self.queues[q]) for q, n in enumerate(position)):
                self.faults.add("deadlock")
            elif not moves and any(self.tokens(position).values()):
                self.faults.add("left-over")
            for q in moves:
                after = (*position[:q], position[q] + 1, *position[q + 1 :])
                if any(count > isa.TOKEN_LIMIT for count in self.tokens(after).values()):
                    self.faults.add("overflow")
                elif after not in self.positions:
                    self.positions.add(after)
                    waiting.append(after)

    def done(self, position: tuple[int, ...]) -> Iterator[tuple[int, Entry]]:
        for q, n in enumerate(position):
            for entry in self.queues[q][:n]:
                yield self.cores[q], entry

    def tokens(self, position: tuple[int, ...]) -> dict[tuple[int, ...], int]:
        counts: dict[tuple[int, ...], int] = {}
        for core, entry in self.done(position):
            if entry.name in ("set", "wait", "grant"):
                change = {"set": 1, "wait": -1}.get(entry.name, entry.values.get("n", 0))
                counts[core, *entry.token] = counts.get((core, *entry.token), 0) + change
        return counts

    def may_step(self, position: tuple[int, ...], q: int) -> bool:
        if position[q] == len(self.queues[q]):
            return False
        entry = self.queues[q][position[q]]
        if entry.name == "wait":
            return self.tokens(position).get((self.cores[q], *entry.token), 0) > 0
        if entry.name == "await":
            counter = entry.values["counter"]
            return (
                sum(e.name == "signal" and e.values["counter"] == counter for _, e in self.done(position))
                >= entry.values["value"]
            )
        for byte in entry.reads:
            initial = byte[0] < 0 and byte[2] < HALF
            if not initial and not any(position[w] > n for w, n in self.writers.get(byte, [])):
                self.faults.add("unwritten")
        return True

    def find_races(self) -> None:
        entries = [(q, n, e) for q, queue in enumerate(self.queues) for n, e in enumerate(queue) if e.reads or e.writes]
        for q, n, a in entries:
            for p, m, b in entries:
                if q < p and (a.writes & (b.reads | b.writes) or a.reads & b.writes):
                    first = any(position[q] > n and position[p] <= m for position in self.positions)
                    second = any(position[p] > m and position[q] <= n for position in self.positions)
                    if first and second:
                        self.faults.add("race")


BLOCKS = 3
SIZE = 32


def small_program(random: Random, cores: int) -> list[Row]:
    """Copies between a few blocks of GM and UB, in program order, with a token for each pair of conflicting rows in
    different queues."""
    rows: list[Row] = []
    filled = range(BLOCKS if random.random() < 0.8 else 1)
    work = [row("load", dst=n * SIZE, space=5, src=n * SIZE, n4=SIZE // 2, esize=2, s4=2) for n in filled]
    work += [_copy(random) for _ in range(random.randint(1, 5 if cores == 1 else 3))]
    touched = [_blocks(r) for r in work]
    used: dict[tuple[int, int], int] = {}
    before: list[list[Row]] = [[] for _ in work]
    after: list[list[Row]] = [[] for _ in work]
    for j, (reads, writes) in enumerate(touched):
        for i in range(j):
            src, dst = int(work[i].instruction.engine or 0), int(work[j].instruction.engine or 0)
            if src != dst and (touched[i][1] & (reads | writes) or touched[i][0] & writes):
                token = used[src, dst] = used.get((src, dst), -1) + 1
                after[i].append(row("set", src=src, dst=dst, id=token % isa.TOKEN_IDS))
                before[j].append(row("wait", src=src, dst=dst, id=token % isa.TOKEN_IDS))
    for i, r in enumerate(work):
        rows += [*before[i], r, *after[i]]
    for _ in range(random.randint(0, 3) if cores > 1 else 0):
        _insert_signal(random, rows)
    return rows


def _insert_signal(random: Random, rows: list[Row]) -> None:
    counter = random.choice([Expr(0), Expr(1), var("core"), Expr(1) + var("core", -1)])
    engines = [int(r.instruction.engine) for r in rows if r.instruction.engine]
    new = row("signal", engine=random.choice(engines), counter=counter)
    if random.random() < 0.6:
        new = row("await", engine=random.choice(engines), counter=counter, value=random.randint(1, 2))
    rows.insert(random.randint(0, len(rows)), new)


def _copy(random: Random) -> Row:
    def block(space: str) -> Expr:
        base = random.randrange(BLOCKS) * SIZE
        if space == "gm":
            return Expr(base + random.choice([0, 0, 0, 0, 0, HALF])) + (
                var("core", SIZE * BLOCKS) if random.random() < 0.5 else Expr()
            )
        return Expr(base)

    kind = random.choice(["load", "load", "vmap", "store"])
    if kind == "load":
        return row("load", dst=block("ub"), space=5, src=block("gm"), n4=SIZE // 2, esize=2, s4=2)
    if kind == "store":
        return row("store", dst=block("gm"), src=block("ub"), space=5, n4=SIZE // 2, esize=2, d4=2)
    return row("vmap", fn=0, dst=block("ub"), a=block("ub"), n2=SIZE // 2, d2=2, a2=2, td=0, ta=0)


def _blocks(r: Row) -> tuple[set[str], set[str]]:
    """Reads and writes as names; GM addresses with `core` and without may be the same block, so all of GM is one."""
    names = {
        "load": ("gm", f"ub{r.fields[0].base}"),
        "store": (f"ub{r.fields[1].base}", "gm"),
        "vmap": (f"ub{r['a'].base}" if r.name == "vmap" else "", f"ub{r['dst'].base}"),
    }
    reads, writes = names[r.name]
    return {reads}, {writes}


def mutated(random: Random, rows: list[Row]) -> list[Row]:
    """Drops a token with its set and wait, or one of both; repeats, moves or renumbers a row; or leaves all alone."""
    rows = list(rows)
    sync = [i for i, r in enumerate(rows) if r.name in ("set", "wait", "signal", "await")]
    if not sync or random.random() < 0.2:
        return rows
    at = random.choice(sync)
    choice = random.choice([0, 1, 2, 3, 4, 5, 5, 5, 5])
    if choice == 5 and rows[at].name in ("set", "wait"):
        return [r for r in rows if r.name not in ("set", "wait") or r.fields != rows[at].fields]
    if choice == 0:
        del rows[at]
    elif choice == 1:
        rows.insert(random.randrange(len(rows)), rows[at])
    elif choice == 2:
        rows.insert(random.randrange(len(rows)), rows.pop(at))
    elif choice == 3 and rows[at].name in ("set", "wait"):
        src, dst, token = rows[at].fields
        rows[at] = Row(rows[at].name, (src, dst, Expr(token.base ^ 1)))
    elif rows[at].name == "set":
        src, dst, token = rows[at].fields
        rows[at] = Row("grant", (src, dst, token, Expr(random.choice([1, 1, 2, 15, 16]))))
    return rows


def checked(program: Program, cores: int) -> Report:
    return check(program, target=TARGET, cores=cores, gm_size=GM_SIZE, initialised=[(0, HALF)])


def compare(seed: int, cores: int) -> tuple[set[str], set[str], str]:
    random = Random(seed)
    program = tuple(mutated(random, small_program(random, cores)))
    truth = Explorer(program, cores).faults
    report = checked(program, cores)
    return (
        truth,
        {finding.kind for finding in report.findings},
        f"seed {seed}: {truth}\n{report}\n{disassemble(program)}",
    )


def agree(truth: set[str], found: set[str], text: str) -> None:
    """All that stops a program is found; and what is found is there, but for what follows from it."""
    stops = truth & {"deadlock", "overflow"}
    assert bool(truth) == bool(found), text
    if stops:
        assert found & stops, text
        return
    assert truth - found <= ({"unwritten"} if "race" in found else set()), text
    assert found - truth == set(), text


@pytest.mark.parametrize("block", range(10))
def test_one_core_agrees_with_all_interleavings(block: int) -> None:
    for seed in range(block * 30, block * 30 + 30):
        agree(*compare(seed, 1))


@pytest.mark.parametrize("block", range(5))
def test_two_cores_agree_with_all_interleavings(block: int) -> None:
    for seed in range(1000 + block * 20, 1000 + block * 20 + 20):
        agree(*compare(seed, 2))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_more_programs_agree(block: int) -> None:
    for seed in range(10000 + block * 50, 10000 + block * 50 + 50):
        agree(*compare(seed, 1 + seed % 2))


def test_the_random_programs_are_of_both_kinds() -> None:
    kinds = [compare(seed, 1)[0] for seed in range(100)]
    assert sum(not kind for kind in kinds) >= 15
    assert sum("race" in kind for kind in kinds) >= 10
    assert {"deadlock", "left-over", "unwritten"} <= set().union(*kinds)
