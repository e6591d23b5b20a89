"""The timing against the simulator in tests/simulator.py, and against what can be counted by hand."""

import dataclasses
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_programs import QUEUES, timed_program, timed_row
from simulator import Deadlock, Simulator

from stepwell.runtime import formulas, isa
from stepwell.runtime.assembly import assemble
from stepwell.runtime.generator import FIELDS, OPCODE, WIDTH, launch_registers
from stepwell.runtime.target import Target
from stepwell.runtime.timing import Timing, TimingError, by_slot, prepare, time_launch, time_plan

TINY, EDGE = Target.load("tiny"), Target.load("edge")


def launch(text: str, target: Target = TINY, cores: int | None = None, events: int = 0) -> Timing:
    return time_launch(prepare(assemble(text)), launch_registers(), target, cores, events=events)


def any_target(random: Random, cores: int) -> Target:
    base = random.choice([TINY, EDGE])
    path = random.choice([16.0, 32.0, 50.0])
    return dataclasses.replace(
        base,
        cores=cores,
        queue_depth=random.choice([4, 5, 16, 64]),
        gm_path=path,
        gm_port=path * random.choice([0.5, 1.0, 1.5, 4.0]),
        fixed_sync=random.choice([0, 1, 3]),
        fixed_load=random.choice([0, 7, 64]),
        signal_latency=random.choice([0, 30, 200]),
        launch=random.choice([0, 100]),
    )


def agree(seed: int, cores: int) -> None:
    random = Random(seed)
    program, target = timed_program(random, cores, random.randint(0, 6)), any_target(random, cores)
    registers = launch_registers(cores=cores)
    slow = Simulator(program, registers.tolist(), target, cores)
    try:
        expected = slow.run()
    except Deadlock:
        with pytest.raises(TimingError, match="deadlock"):
            time_launch(prepare(program), registers, target, cores)
        return
    timing = time_launch(prepare(program), registers, target, cores)
    rel = 1e-6 if cores == 1 else 1e-4  # sharing among many amplifies what rounding differs in
    assert timing.cycles == pytest.approx(expected, rel=rel)
    for name in ("busy", "token", "issue"):
        times = [[getattr(core.engines[e], name) for e in QUEUES] for core in slow.cores]
        np.testing.assert_allclose(getattr(timing, name)[:, 1:], times, rtol=rel, atol=1e3 * rel)


@pytest.mark.parametrize("seed", range(60))
def test_one_core_agrees_with_the_simulator(seed: int) -> None:
    agree(seed, 1)


@pytest.mark.parametrize("seed", range(30))
def test_several_cores_agree_with_the_simulator(seed: int) -> None:
    agree(seed, 2 + seed % 3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1500))
def test_one_core_agrees_with_the_simulator_more_often(seed: int) -> None:
    agree(seed, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2000, 2200))
def test_several_cores_agree_with_the_simulator_more_often(seed: int) -> None:
    agree(seed, 2 + seed % 4)


def test_an_empty_program_takes_the_launch() -> None:
    assert launch("mov rd=1 value=3\nloop count=4\nend").cycles == TINY.launch + 1 + 1 + 4


def test_a_load_takes_its_latency_and_its_bytes() -> None:
    timing = launch("load dst=0 space=l1 src=0 n4=640 esize=1 s4=1")
    assert timing.cycles == TINY.launch + 1 + TINY.fixed_load + 640 / TINY.gm_port
    assert (timing.gm_bytes, timing.busy[0, isa.Engine.LOAD]) == (640, TINY.fixed_load + 20)


def test_two_transfers_share_the_port_and_say_so() -> None:
    timing = launch("load dst=0 space=l1 src=0 n4=640 esize=1 s4=1\nstore dst=0 src=0 space=ub n4=640 esize=1 d4=1")
    # The store begins a cycle later: 20 cycles each, of which 19 are shared.
    assert timing.port[0, isa.Engine.LOAD] == 19
    assert timing.port[0, isa.Engine.STORE] == 19
    assert timing.cycles == TINY.launch + 1 + TINY.fixed_load + 40


def test_the_sequencer_waits_for_a_full_queue() -> None:
    rows = TINY.queue_depth + 8
    timing = launch(
        "load dst=0 space=l1 src=0 n4=6400 esize=1 s4=1\n" * rows + "vmap fn=copy dst=0 a=0 n2=1 td=f16 ta=f16",
        events=rows + 1,
    )
    by_engine = {int(e[1]): e for e in timing.trace}
    nth = timing.trace[timing.trace[:, 1] == isa.Engine.LOAD][rows - TINY.queue_depth - 1]
    assert by_engine[isa.Engine.VECTOR][3] == nth[4] + 1


def test_read_stalls_the_issue() -> None:
    timing = time_launch(
        prepare(assemble("read rd=1 src=0 width=4\nload dst=0 space=l1 src=0 n4=r1 esize=1 s4=1")),
        launch_registers(),
        TINY,
        gm=np.full(4, 1, np.uint8),
    )
    assert timing.gm_bytes == -(-0x01010101 // 32) * 32
    assert timing.issue[0, isa.Engine.LOAD] == 1 + TINY.fixed_read + 1


def test_deadlock_overflow_and_ranges_are_refused() -> None:
    for text, message in (
        ("wait src=load dst=feed id=0", "core 0: deadlock: every queue is blocked"),
        ("await engine=load counter=3 value=1", "core 0: deadlock"),
        ("loop count=16\nset src=load dst=feed id=0\nend", "core 0: row 1 set: more than 15 tokens of one kind"),
        ("grant src=load dst=feed id=0 n=16", "core 0: row 0 grant: more than 15"),
        ("set src=load dst=feed id=8", "core 0: row 0 set: a token id or counter out of range"),
        ("signal engine=load counter=1024", "core 0: row 0 signal: a token id or counter out of range"),
        ("grant src=load dst=feed id=0 n=-1", "a negative grant"),
        ("loop count=1 step=r0\nend", "core 0: row 0 loop: the step of a loop is not positive"),
        ("read rd=1 src=0 width=4", "core 0: row 0 read: the address lies outside global memory"),
    ):
        with pytest.raises(TimingError, match=message):
            launch(text)


def test_the_simulator_sees_a_deadlock_too() -> None:
    with pytest.raises(Deadlock):
        Simulator(assemble("wait src=load dst=feed id=0"), [0] * 32, TINY, 1).run()


def test_busy_cycles_by_row_and_slot() -> None:
    program = assemble(
        "loop count=3\nload dst=0 space=l1 src=0 n4=640 esize=1 s4=1 ; slot 2\nend\nmov rd=1 value=0\n"
        "vmap fn=copy dst=0 a=0 n2=1 td=f16 ta=f16 ; slot 1"
    )
    prepared = prepare(program)
    timing = time_launch(prepared, launch_registers(), TINY)
    assert timing.rows.tolist() == [0, 3 * 52, 0, 0, 9]
    assert by_slot(prepared, timing) == {0: 0, 1: 9, 2: 156}


def test_a_plan_carries_counters_and_times_equal_launches_once() -> None:
    signal, wait = (
        prepare(assemble("signal engine=load counter=5")),
        prepare(assemble("await engine=feed counter=5 value=4")),
    )
    plain = prepare(assemble("load dst=0 space=l1 src=0 n4=r0 esize=1 s4=1"))
    a, b = launch_registers((64,)), launch_registers((128,))
    timings = time_plan([(signal, a), (signal, a), (wait, a), (plain, a), (plain, a), (plain, b)], EDGE)
    assert timings[1].counters[5] == 4
    assert timings[3] is timings[4]
    assert timings[3].cycles < timings[5].cycles


@given(st.integers(0, 1 << 32))
def test_compiled_formulas_are_the_formulas(seed: int) -> None:
    random = Random(seed)
    instruction = random.choice([i for i in isa.INSTRUCTIONS if i.fields])
    fields = {spec.name: random.randint(1, 200) for spec in instruction.fields}
    fields.update(
        {spec.name: random.randrange(4) for spec in instruction.fields if spec.kind in ("dtype", "space", "fn", "flag")}
    )
    record, vector, costs = np.zeros(WIDTH, np.int64), formulas.constants(EDGE), np.zeros((2, 3))
    record[OPCODE], record[FIELDS : FIELDS + len(fields)] = isa.OPCODE[instruction.name], list(fields.values())
    formulas.cost(record.ctypes.data, vector.ctypes.data, costs.ctypes.data)
    formulas.plain()["cost"](record, vector, costs[1])
    if instruction.engine is not isa.Engine.SCALAR and instruction.name not in ("loop", "end"):
        expected = [formulas.evaluate(formula, fields, EDGE) for formula in (instruction.cycles, instruction.gm_bytes)]
        assert costs[0].tolist() == costs[1].tolist()
        assert costs[0, :2].tolist() == expected
    accesses, again = (np.zeros((formulas.MOST_ACCESSES, formulas.ACCESS_WIDTH), np.int64) for _ in range(2))
    count = formulas.footprint(record.ctypes.data, accesses.ctypes.data)
    assert count == formulas.plain()["footprint"](record, again.reshape(-1))
    assert accesses.tolist() == again.tolist()
    kept = [access for access in instruction.accesses if formulas.evaluate(access.when, fields, EDGE)]
    assert count == len(kept)
    for access, found in zip(kept, accesses, strict=False):
        assert found[formulas.LENGTH] == formulas.evaluate(access.length, fields, EDGE)
        assert bool(found[formulas.ACCESS] & formulas.WRITES) == access.writes


def test_costs_follow_the_fields_that_vary() -> None:
    program = (timed_row(Random(1), 1),)
    prepared = prepare(program)
    assert prepared.watch[0] >= 0
    text = "loop count=4\nload dst=0 space=l1 src=0 n4=32 + 32*i0 esize=1 s4=1\nend"
    assert launch(text).gm_bytes == 32 + 64 + 96 + 128
