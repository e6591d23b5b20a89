"""Tokens: the classes of the docstring's examples, mutation, random loop programs, too many ids."""

from random import Random

import pytest
from tile import kernels
from tile.harness import LARGE, TARGET, checked, compiled, inputs
from tile.random_kernels import random_kernel

from stepwell.backend import BackendError, encode
from stepwell.backend.allocate import allocate_kernel
from stepwell.backend.select import select_kernel
from stepwell.backend.synchronise import TokenClass, assign_ids, derive, insert, reduce_classes, synchronise_kernel
from stepwell.dialects.tile import ForOp, KernelOp
from stepwell.dialects.tile.builder import Buffer, KernelBuilder
from stepwell.runtime.encoding import Program
from stepwell.runtime.isa import TOKEN_IDS, Engine


def classes_of(kernel: KernelOp) -> list[str]:
    return sorted(str(each) for each in reduce_classes(derive(select_kernel(kernel))))


def test_one_buffer_gives_the_classes_of_the_docstring() -> None:
    k = KernelBuilder("relu")
    x, y = k.argument((1000, 64), "f16"), k.argument((1000, 64), "f16")
    with k.loop(1000, 128) as m:
        t = k.alloc((128, 64), "f16", "ub", 2, "t")
        k.load(t[0, 0], x[m, 0], (128, 64))
        k.map("relu", t[0, 0], t[0, 0], extents=(128, 64))
        k.store(y[m, 0], t[0, 0], (128, 64))
    expected = ["load 1 → vector 2, d = 0 (%t)", "store 3 → load 1, d = 2 (%t)", "vector 2 → store 3, d = 0 (%t)"]
    assert classes_of(k.finish()) == expected


def test_two_engines_in_an_inner_loop_hand_over_every_iteration() -> None:
    k = KernelBuilder("inner")
    x, y = k.argument((64,), "f16"), k.argument((64,), "f16")
    t = k.alloc((64,), "f16", "ub", name="t")
    with k.loop(4) as i:
        k.load(t[0], x[i * 16], (16,))
        k.store(y[i * 16], t[0], (16,))
    found = classes_of(k.finish())
    assert "load 0 → store 1, d = 0 (%t)" in found
    assert "store 1 → load 0, d = 1 (%t)" in found


def test_an_earlier_slot_lengthens_the_distance() -> None:
    k = KernelBuilder("skewed")
    x, y = k.argument((64,), "f16"), k.argument((64,), "f16")
    with k.loop(4, add=1) as i:
        t = k.alloc((16,), "f16", "ub", 2, "t")
        k.store(y[(i - 1) * 16], t.box(0, 1, ago=1), (k.clamp(i * 16, 16),))
        k.load(t[0], x[i * 16], (k.clamp((4 - i) * 16, 16),))
    assert classes_of(k.finish()) == ["load 2 → store 1, d = 1 (%t)", "store 1 → load 2, d = 1 (%t)"]


def test_a_state_that_a_later_iteration_reads_is_handed_on() -> None:
    """A recurrence: h lies in L1 outside the loop over time; the inner loop feeds weights and does not wait for h."""
    k = KernelBuilder("recurrence")
    weights, y = k.argument((32, 32), "f16"), k.argument((9, 32), "f16")
    state, panel = k.alloc((1, 32), "f16", "l1", name="state"), k.alloc((32, 32), "f16", "l1", name="panel")
    row = k.alloc((1, 32), "f16", "ub", name="row")
    k.load(panel[0, 0], weights[0, 0], (32, 32))
    k.iota(row[0, 0], (1, 32), 1, (0, 0))
    k.move(state[0, 0], row[0, 0], (1, 32))
    with k.loop(9) as t:
        right = k.alloc((32, 1), "f16", "l0b", name="right")
        k.feed_b(right[0, 0], state.box(0, 1, 32), (32, 1))
        with k.loop(32, step=16) as unit:
            left, acc = k.alloc((16, 32), "f16", "l0a", 2, "left"), k.alloc((16, 1), "f32", "l0c", 2, "acc")
            k.feed_a(left[0, 0], panel[unit, 0], (16, 32))
            k.mma(acc[0, 0], left[0, 0], right[0, 0], (16, 1, 32), 1)
            k.drain(row.box(unit, 1, 1), acc[0, 0], (16, 1))
        k.move(state[0, 0], row[0, 0], (1, 32))
        k.store(y[t, 0], row[0, 0], (1, 32))
    kernel = k.finish()
    found = classes_of(kernel)
    assert "store 3 → feed 1, d = 1 (%state)" in found
    assert not any("feed 2" in each and "%state" in each for each in found)
    assert checked(compiled(kernel).program, inputs(kernel), 1).clean


def test_an_argument_that_is_read_and_written_is_ordered() -> None:
    found = classes_of(kernels.update(50))
    assert any(each.startswith("store 3 → load 1, d = 1 (") and "argument 0" in each for each in found)


def test_too_few_slots_for_the_distance_is_an_error() -> None:
    k = KernelBuilder("late")
    x, y = k.argument((64,), "f16"), k.argument((64,), "f16")
    with k.loop(4) as i:
        t = k.alloc((16,), "f16", "ub", 1, "t")
        k.load(t[0], x[i * 16], (16,))
        k.store(y[i * 16], t.box(0, 1, ago=1), (16,))
    with pytest.raises(BackendError, match=r"%t: with 1 slots, load .* needs what store .* does only later"):
        derive(select_kernel(k.finish()))


def test_more_ids_than_there_are_is_an_error_that_names_the_buffers() -> None:
    """Two buffers, exchanged in a loop and in one around it: classes with a distance of nested bodies can neither share
    an id nor merge.
    """
    k = KernelBuilder("many")
    x, y = k.argument((16,), "f16"), k.argument((16,), "f16")
    with k.loop(4):
        exchange(k, x, y, 2, "t0")
        with k.loop(4):
            exchange(k, x, y, 2, "t1")
    with pytest.raises(BackendError, match=r"store → load: at most 1 token ids .found 2.; .* .found %t0, %t1"):
        synchronise_kernel(select_kernel(k.finish()), 1)


def exchange(k: KernelBuilder, x: Buffer, y: Buffer, slots: int, name: str) -> None:
    """A buffer that is loaded and stored."""
    t = k.alloc((16,), "f16", "ub", slots, name)
    k.load(t[0], x[0], (16,))
    k.store(y[0], t[0], (16,))


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_loops_that_follow_one_another_share_ids_when_they_run_out(slots: int) -> None:
    """Fourteen loops of 0 to 4 trips, half of them in another loop."""
    k = KernelBuilder("many")
    x, y = k.argument((16,), "f16"), k.argument((16,), "f16")
    with k.loop(3):
        for number in range(7):
            with k.loop(number % 5):
                exchange(k, x, y, slots, f"t{number}")
    for number in range(7, 14):
        with k.loop(number % 5):
            exchange(k, x, y, slots, f"t{number}")
    kernel = k.finish()
    classes = [c for c in reduce_classes(derive(select_kernel(kernel))) if c.pair == (Engine.STORE, Engine.LOAD)]
    assert len(classes) == 14
    assert {number for _, number in assign_ids(classes)} == {0}
    assert str(checked(compiled(kernel).program, inputs(kernel), 1)) == "clean"


def interleaved(buffers: int) -> KernelOp:
    """Each load next to the computation that uses it."""
    k = KernelBuilder("interleaved")
    x, y = k.argument((16,), "f16", "x"), k.argument((16,), "f16", "y")
    with k.loop(5):
        for number in range(buffers):
            t, u = k.alloc((16,), "f16", "ub", 2, f"t{number}"), k.alloc((16,), "f16", "ub", 2, f"u{number}")
            k.load(t[0], x[0], (16,))
            k.map("relu", u[0], t[0], extents=(16,))
            k.store(y[0], u[0], (16,))
    return k.finish()


def test_classes_in_the_same_order_share_ids() -> None:
    """15 tokens: seven classes of two slots each share one id."""
    kernel = interleaved(10)
    classes = [c for c in reduce_classes(derive(select_kernel(kernel))) if c.pair == (Engine.LOAD, Engine.VECTOR)]
    assert len(classes) == 10
    assert [number for _, number in assign_ids(classes)] == [0] * 7 + [1] * 3
    program = compiled(kernel)
    assert program.numbers["ids"] == 2
    assert str(checked(program.program, inputs(kernel), 1)) == "clean"


def test_classes_of_one_body_merge_when_ids_run_out() -> None:
    kernel = interleaved(10)
    selected = select_kernel(kernel)
    classes = [c for c in reduce_classes(derive(selected)) if c.pair == (Engine.VECTOR, Engine.LOAD)]
    assert {number for _, number in assign_ids(classes, 1)} == {0}
    assert len(assign_ids(classes, 1)) < len(assign_ids(classes, 2)) == len(classes)


def program_without(kernel: KernelOp, drop: int) -> tuple[Program, TokenClass, bool]:
    """The kernel's program without one class, that class, and whether it is one of the kernel's exit."""
    selected = select_kernel(kernel)
    classes = reduce_classes(derive(selected))
    dropped = classes.pop(drop)
    is_exit = dropped.body is selected.body.block and dropped.distance > 0
    insert(selected, assign_ids(classes))
    allocate_kernel(selected, TARGET)
    return encode.npu_to_program(selected), dropped, is_exit


MUTATED = {
    "elementwise": (lambda: kernels.elementwise(300), ["load 1 → vector 2 of %bias"]),
    "gemm": (lambda: kernels.gemm(130, 70, 600), ["drain 5 → cube 4 of %c", "load 3 → drain 5 of %row_bias"]),
    "gemm with folds": (
        lambda: kernels.gemm(70, 70, 4200),
        ["load 4 → drain 6 of %row_bias", "drain 6 → load 4 of %row_bias"],
    ),
    "convolution": (lambda: kernels.convolution(33, 6, 16, 20), ["load 1 → feed 2 of %weights"]),
    "depthwise": (lambda: kernels.depthwise(14, 5, 1, rows=2), ["feed 3 → cube 4 of %fed"]),
    "softmax": (lambda: kernels.softmax(40, 150), list[str]()),
    "chain": (lambda: kernels.chain(7), ["feed 3 → cube 4 of %q0"]),
    "update": (lambda: kernels.update(80), list[str]()),
}
"""Kernels, and the classes of an outer body that those of an inner loop happen to imply when it has iterations."""


@pytest.mark.parametrize("name", MUTATED)
def test_every_class_is_needed(name: str) -> None:
    """Without any one class (but the kernel's exit, which nothing in the kernel awaits) the checker finds a race."""
    make, unnoticed = MUTATED[name]
    kernel = make()
    arrays = inputs(kernel)
    found: list[str] = []
    for drop in range(len(reduce_classes(derive(select_kernel(kernel))))):
        program, dropped, is_exit = program_without(kernel, drop)
        if checked(program, arrays, 1).clean and not is_exit:
            found.append(f"{str(dropped).partition(',')[0]} of {', '.join(sorted(dropped.buffers))}")
    assert found == unnoticed


def races_of(kernel: KernelOp, ids: int = TOKEN_IDS) -> list[str]:
    """What the checker finds, apart from reads of bytes that a random program has not written."""
    selected = select_kernel(kernel)
    synchronise_kernel(selected, ids)
    allocate_kernel(selected, LARGE)
    report = checked(encode.npu_to_program(selected), inputs(kernel), 1, LARGE)
    return [str(finding) for finding in report.findings if finding.kind != "unwritten"]


@pytest.mark.parametrize("part", range(4))
def test_random_loops_with_the_fewest_ids_have_no_race(part: int) -> None:
    """25 kernels a part; most of them take fewer ids than each of their loops would by itself."""
    fewer = 0
    for seed in range(part * 25, part * 25 + 25):
        kernel = random_exchanges(Random(seed))
        for ids in range(1, 9):
            try:
                found = races_of(kernel, ids)
            except BackendError:
                continue
            fewer += ids < sum(1 for op in kernel.walk() if isinstance(op, ForOp))
            assert not found, f"seed {seed}, {ids} ids: {found[0]}\n{kernel}"
            break
    assert fewer >= 15


def random_exchanges(random: Random) -> KernelOp:
    """Loops one after the other, some of them in others; each loads a buffer and stores it, or what is made of it."""
    k = KernelBuilder("exchanges")
    x, y = k.argument((16,), "f16"), k.argument((16,), "f16")

    def loops(depth: int, count: int) -> None:
        for _ in range(count):
            with k.loop(random.choice((0, 1, 2, 3, 5))):
                if depth < 2 and random.random() < 0.3:
                    loops(depth + 1, random.randint(1, 3))
                t = k.alloc((16,), "f16", "ub", random.choice((1, 2, 2, 3)))
                k.load(t[0], x[0], (16,))
                if random.random() < 0.5:
                    k.map("relu", t[0], t[0], extents=(16,))
                k.store(y[0], t[0], (16,))

    loops(0, random.randint(2, 6))
    return k.finish()


@pytest.mark.parametrize("part", range(8))
def test_random_programs_have_no_race(part: int) -> None:
    """30 kernels a part; each runs with the trip counts that it drew, from 0 to 4."""
    for seed in range(part * 30, part * 30 + 30):
        kernel = random_kernel(Random(seed))
        found = races_of(kernel)
        assert not found, f"seed {seed}: {found[0]}\n{kernel}"


@pytest.mark.parametrize("part", range(4))
def test_random_skewed_programs_have_no_race(part: int) -> None:
    """Of 30 kernels a part, those whose order the slots allow."""
    allowed = 0
    for seed in range(part * 30, part * 30 + 30):
        kernel = random_kernel(Random(seed), skewed=True)
        if is_ordered(kernel):
            allowed += 1
            found = races_of(kernel)
            assert not found, f"seed {seed}: {found[0]}\n{kernel}"
    assert allowed >= 10


def is_ordered(kernel: KernelOp) -> bool:
    """Whether every access comes after what it needs."""
    try:
        derive(select_kernel(kernel))
    except BackendError:
        return False
    return True
