"""What the checker says of real kernels, of every way to break their tokens, and of each rule on its own."""

from dataclasses import replace

import numpy as np
import pytest

from stepwell.runtime import isa
from stepwell.runtime.assembly import assemble
from stepwell.runtime.checker import Launch, Report, check, check_launches
from stepwell.runtime.encoding import Program, Row
from stepwell.runtime.generator import launch_registers
from stepwell.runtime.target import Target

from .programs import Case, Conv, conv, depthwise, gemm

TINY, EDGE = Target.load("tiny"), Target.load("edge")
SYNC = ("set", "wait", "grant")


def of_case(case: Case, program: Program | None = None) -> Report:
    sizes = [array.nbytes for array in (*case.inputs, *case.expected)]
    places = [(at, at + size) for at, size in zip(case.arguments, sizes, strict=True)]
    inputs, outputs = places[: len(case.inputs)], places[len(case.inputs) :]
    return check(
        program or case.program,
        arguments=case.arguments,
        target=case.target,
        cores=case.cores,
        gm_size=case.gm_size,
        initialised=inputs,
        outputs=outputs,
    )


def of_text(
    text: str, target: Target = TINY, cores: int = 1, gm_size: int = 4096, initialised: int = 4096, **more: object
) -> Report:
    return check(assemble(text), target=target, cores=cores, gm_size=gm_size, initialised=[(0, initialised)], **more)  # type: ignore[arg-type]


def only(report: Report, kind: str) -> str:
    (finding,) = report.findings
    assert finding.kind == kind
    return finding.text


@pytest.mark.parametrize("k_trips", [0, 1, 2, 3, 9])
@pytest.mark.parametrize("n_trips", [1, 2, 3, 5])
def test_a_double_buffered_gemm_is_clean(k_trips: int, n_trips: int) -> None:
    if k_trips:
        assert str(of_case(gemm(40, 32 * k_trips - 5, 32 * n_trips - 3))) == "clean"
        return
    case = gemm(40, 32, 32 * n_trips)
    text = case.text.replace("loop count=1 ring=0", "loop count=0 ring=0")
    report = of_case(case, assemble(text))
    assert {finding.kind for finding in report.findings} == {"unwritten"}
    assert "(drain) reads L0C bytes 0 to" in str(report)


PADS = (1, 1, 1, 1)
CASES = (
    gemm(100, 40, 70, cores=2),
    gemm(1, 1, 1),
    conv(Conv(9, 9, 5, 20, pads=PADS)),
    depthwise(Conv(9, 9, 16, 16, pads=PADS)),
)


@pytest.mark.parametrize("case", CASES)
def test_kernels_are_clean(case: Case) -> None:
    assert str(of_case(case)) == "clean"


CASE = gemm(70, 72, 70)
ROWS = [i for i, r in enumerate(CASE.program) if r.name in SYNC]


@pytest.mark.parametrize("at", ROWS)
def test_each_token_is_needed(at: int) -> None:
    assert not of_case(CASE, CASE.program[:at] + CASE.program[at + 1 :]).clean


@pytest.mark.parametrize("at", [i for i in ROWS if CASE.program[i].name != "grant"])
def test_a_token_of_another_id_is_not_it(at: int) -> None:
    r = CASE.program[at]
    other = Row(r.name, (*r.fields[:2], r.fields[2] + 2))
    assert not of_case(CASE, (*CASE.program[:at], other, *CASE.program[at + 1 :])).clean


def _first(name: str, **fields: int) -> int:
    return next(
        i for i, r in enumerate(CASE.program) if r.name == name and all(r[f].base == v for f, v in fields.items())
    )


@pytest.mark.parametrize(
    ("moved", "behind", "before", "after", "missing"),
    [
        (
            _first("wait", src=isa.Engine.LOAD, dst=isa.Engine.FEED),
            "feed_a",
            "load",
            "feed_a",
            "a set/wait from load to feed is missing",
        ),
        (
            _first("wait", src=isa.Engine.FEED, dst=isa.Engine.CUBE),
            "mma",
            "feed_a",
            "mma",
            "a set/wait from feed to cube is missing",
        ),
        (
            _first("wait", src=isa.Engine.CUBE, dst=isa.Engine.FEED),
            "feed_b",
            "mma",
            "feed_a",
            "a set/wait from cube to feed is missing",
        ),
    ],
)
def test_a_wait_that_comes_too_late_is_a_race(moved: int, behind: str, before: str, after: str, missing: str) -> None:
    rows = list(CASE.program)
    wait = rows.pop(moved)
    rows.insert(next(i for i, r in enumerate(rows) if r.name == behind) + 1, wait)
    report = of_case(CASE, tuple(rows))
    finding = report.findings[0]
    assert finding.kind == "race"
    assert finding.before is not None
    assert finding.place is not None
    assert finding.before.text.startswith(before)
    assert finding.place.text.startswith(after)
    assert missing in finding.text


def test_a_race_names_both_instructions_the_bytes_and_the_missing_edge() -> None:
    text = """load dst=64 space=ub src=0 n4=32 esize=2 s4=2 ; slot 4
              vmap fn=copy dst=1024 a=96 n2=8 d2=2 a2=2 td=f16 ta=f16 ; slot 7"""
    report = of_text(text)
    assert str(report) == (
        "core 0: nothing orders row 0 `load dst=64 space=ub src=0 n4=32 esize=2 s4=2` (load) "
        "before row 1 `vmap fn=copy dst=1024 a=96 n2=8 d2=2 a2=2 td=f16 ta=f16` (vector): "
        "the first writes and the second reads UB bytes 96 to 111; a set/wait from load to vector is missing"
    )
    (finding,) = report.findings
    assert finding.before is not None
    assert finding.place is not None
    assert (finding.before.slot, finding.place.slot, finding.space, finding.low, finding.high) == (4, 7, "UB", 96, 112)


def test_only_shared_bytes_count() -> None:
    text = """load dst=0 space=ub src=0 n4=31 esize=1 s4=1
load dst=64 space=ub src=0 n3=2 n4=8 esize=1 s3=8 s4=1 d3=16
set src=load dst=vector id=0
wait src=load dst=vector id=0
load dst={} space=ub src=0 n3=2 n4=8 esize=1 s3=8 s4=1 d3=16
vmap fn=copy dst=128 a=64 n1=2 n2=4 d1=8 d2=2 a1=16 a2=2 td=f16 ta=f16"""
    assert of_text(text.format(72)).clean
    assert "UB bytes 70 to 71" in only(of_text(text.format(70)), "race")


def test_bytes_that_nobody_wrote() -> None:
    text = only(of_text("load dst=0 space=ub src=96 n4=64 esize=1 s4=1", initialised=128), "unwritten")
    row = "row 0 `load dst=0 space=ub src=96 n4=64 esize=1 s4=1` (load)"
    assert text == f"core 0: {row} reads GM bytes 128 to 159, which nobody wrote"
    assert "UB bytes 0 to 15, which nobody wrote" in only(
        of_text("vmap fn=copy dst=64 a=0 n2=8 d2=2 a2=2 td=f16 ta=f16"), "unwritten"
    )


def test_accesses_outside_a_memory() -> None:
    text = only(of_text("loop count=3\nload dst=0 space=ub src=2048*i0 n4=64 esize=1 s4=1\nend"), "outside")
    row = "row 1 `load dst=0 space=ub src=2048*i0 n4=64 esize=1 s4=1`"
    assert text == f"core 0: {row} touches GM bytes 4096 to 4159; GM has 4096"
    assert "touches L1 bytes -32 to" in only(of_text("load dst=-32 space=l1 src=0 n4=64 esize=1 s4=1"), "outside")
    assert "touches UB bytes 32767 to 32768" in only(of_text("fill dst=32767 space=ub n2=1 esize=2"), "outside")


def test_no_ops_touch_nothing() -> None:
    assert of_text("load dst=-32 space=l1 src=-5 n3=clamp(i0 - 1, 4) n4=64 esize=1 s4=1".replace("i0", "r0")).clean


def test_operands_of_the_cube_keep_their_dtype() -> None:
    text = """load dst=0 space=l1 src=0 n4=1024 esize=2 s4=2
set src=load dst=feed id=0
wait src=load dst=feed id=0
feed_a dst=0 src=0 m=16 k=16 ld=16 pitch=32 dtype={}
feed_b dst=0 src=0 k=16 n=16 ld=16 pitch=32 dtype={}
set src=feed dst=cube id=0
wait src=feed dst=cube id=0
mma dst=0 a=0 b=0 m=16 n=16 k=16 lda=16 ldb=16 ldc=16 init=1 dtype={}"""
    assert of_text(text.format("f16", "f16", "f16")).clean
    assert of_text(text.format("u8", "i8", "i8")).clean
    assert "reads L0A bytes 0 to 511, written with another dtype" in only(
        of_text(text.format("bf16", "f16", "f16")), "dtype"
    )


def test_a_token_may_overflow_in_another_interleaving() -> None:
    text = "loop count=16\nset src=load dst=feed id=0\nwait src=load dst=feed id=0\nend"
    assert "row 1 `set src=load dst=feed id=0` (load) can give more than 15 tokens" in only(of_text(text), "overflow")
    assert of_text(text.replace("16", "15")).clean
    bounded = """grant src=feed dst=load id=0 n=15
loop count=40
wait src=feed dst=load id=0
set src=load dst=feed id=0
wait src=load dst=feed id=0
set src=feed dst=load id=0
end
loop count=15
wait src=feed dst=load id=0
end"""
    assert of_text(bounded).clean
    assert only(of_text("grant src=feed dst=load id=1 n=16"), "overflow").startswith("core 0: row 0 `grant")


def test_tokens_left_over_and_tokens_out_of_range() -> None:
    assert "2 token(s) 3 from load to feed are left over" in only(
        of_text("set src=load dst=feed id=3\n" * 2), "left-over"
    )
    assert "names token 8; ids are 0 to 7" in only(of_text("set src=load dst=feed id=8"), "range")
    assert "names counter 1024" in only(of_text("signal engine=load counter=1024"), "range")
    assert "the divisor is not positive" in only(of_text("div rd=1 a=1 b=0"), "fault")


def test_a_deadlock_names_what_each_queue_waits_for() -> None:
    text = only(
        of_text(
            "wait src=feed dst=load id=2\nset src=load dst=feed id=0\nwait src=load dst=feed id=0\n"
            "set src=feed dst=load id=2\nawait engine=store counter=7 value=2"
        ),
        "deadlock",
    )
    assert "row 0 `wait src=feed dst=load id=2` (load) waits for token 2" in text
    assert "row 2 `wait src=load dst=feed id=0` (feed) waits for token 0" in text
    assert "row 4 `await engine=store counter=7 value=2` (store) waits for counter 7 to reach 2" in text


def test_a_full_queue_can_deadlock() -> None:
    text = (
        "wait src=feed dst=load id=0\n"
        + "load dst=0 space=l1 src=0 n4=64 esize=1 s4=1\n" * 20
        + "set src=feed dst=load id=0"
    )
    assert "its queue full" in only(of_text(text), "deadlock")
    assert of_text(text, replace(TINY, queue_depth=32)).clean


STORE = "load dst=0 space=ub src=0 n4=64 esize=1 s4=1\nset src=load dst=store id=0\nwait src=load dst=store id=0\n"


def test_cores_are_ordered_by_signals() -> None:
    race = STORE + "store dst=1024 src=0 space=ub n4=clamp(64 - 64*core, 64) esize=1 d4=1\n{}"
    race += "load dst=64 space=ub src=1024 n4=clamp(64*core, 64) esize=1 s4=1"
    text = only(of_text(race.format(""), EDGE, 2), "race")
    assert text.startswith("nothing orders row 3 `store")
    assert "(store) of core 0 before row 4 `load" in text
    assert text.endswith("a signal of store on core 0 and an await in load on core 1 are missing")
    assert of_text(
        race.format("signal engine=store counter=core\nawait engine=load counter=0 value=1\n"), EDGE, 2
    ).clean
    assert not of_text(
        race.format("signal engine=store counter=core\nawait engine=load counter=1 value=1\n"), EDGE, 2
    ).clean
    assert not of_text(
        race.format("signal engine=store counter=0\nawait engine=load counter=0 value=1\n"), EDGE, 2
    ).clean
    assert of_text(race.format("signal engine=store counter=0\nawait engine=load counter=0 value=2\n"), EDGE, 2).clean


def test_a_counter_of_all_cores_is_a_barrier() -> None:
    text = """loop count=4 ring=0
load dst=0 space=ub src=1024 + 64*core n4=64 esize=1 s4=1
set src=load dst=store id=0
wait src=load dst=store id=0
signal engine=store counter=0
await engine=store counter=0 value=2 + 4*i0
store dst=1088 - 64*core src=0 space=ub n4=64 esize=1 d4=1
signal engine=store counter=0
await engine=load counter=0 value=4 + 4*i0
end"""
    assert of_text(text, EDGE, 2).clean
    assert not of_text(text.replace("4 + 4*i0", "3 + 4*i0"), EDGE, 2).clean
    assert not of_text(text.replace("value=2 + 4*i0", "value=1 + 4*i0"), EDGE, 2).clean


def test_launches_are_ordered_and_memory_on_chip_does_not_last() -> None:
    write = assemble(STORE + "store dst=r0 src=0 space=ub n4=64 esize=1 d4=1")
    use = assemble("load dst=0 space=ub src=r0 n4=64 esize=1 s4=1")
    on_chip = assemble("vmap fn=copy dst=64 a=0 n2=8 d2=2 a2=2 td=f16 ta=f16")
    registers = launch_registers((2048,))

    def run(*programs: Program, outputs: tuple[tuple[int, int], ...] = ()) -> Report:
        launches = [Launch(program, registers, f"kernel {i}") for i, program in enumerate(programs)]
        return check_launches(launches, target=TINY, gm_size=4096, initialised=[(0, 64)], outputs=outputs)

    assert run(write, use, write, outputs=((2048, 2112),)).clean
    assert only(run(use, write), "unwritten").startswith("core 0: row 0 `load")
    report = run(write, on_chip)
    assert only(report, "unwritten")
    assert report.findings[0].place is not None
    assert report.findings[0].place.kernel == "kernel 1"
    assert (
        only(run(write, outputs=((2048, 2128),)), "output")
        == "16 of the 80 output bytes from 2048 on are never written, the first at 2112"
    )


def test_counters_go_on_from_launch_to_launch() -> None:
    signal, wait = assemble("signal engine=store counter=3"), assemble("await engine=load counter=3 value=2")
    launches = [Launch(program, launch_registers()) for program in (signal, signal, wait)]
    assert check_launches(launches, target=TINY, gm_size=64).clean
    assert only(check_launches([launches[0], launches[2]], target=TINY, gm_size=64), "deadlock")


def test_a_read_comes_before_what_is_issued_after_it() -> None:
    memory = np.zeros(4096, np.uint8)
    memory[0] = 64
    late = STORE.replace("src=0", "src=64") + "store dst={} src=0 space=ub n4=64 esize=1 d4=1\n"
    read = "read rd=4 src=0 width=4\n"
    assert of_text(read + late.format("r4"), gm=memory).clean
    assert of_text(read + late.format("r4 - 64"), gm=memory).clean
    assert "a read cannot wait for store" in only(of_text(late.format(0) + read, gm=memory), "race")
    assert "lies outside global memory" in only(of_text(read), "fault")
