"""Every kind of fault, and what its message says."""

# ruff: noqa: E501 rows of assembly are long

from contextlib import suppress

import numpy as np
import pytest

from stepwell.runtime import isa
from stepwell.runtime.assembly import assemble
from stepwell.runtime.emulator import new_counters, run
from stepwell.runtime.encoding import row
from stepwell.runtime.expr import Expr
from stepwell.runtime.faults import AccessFault, DeadlockFault, DeviceFault, TokenFault, ValueFault
from stepwell.runtime.memory import Memory
from stepwell.runtime.target import Target

TINY = Target.load("tiny")


def provoke(text: str, seed: int | None = None) -> DeviceFault:
    with pytest.raises(DeviceFault) as caught:
        run(
            assemble(text),
            arguments=(),
            memory=Memory(TINY, 4096),
            target=TINY,
            counters=new_counters(),
            seed=seed,
            kernel="k",
            nodes=((), ("conv_1",)),
        )
    return caught.value


FAULTS: dict[str, tuple[str, type[DeviceFault], str]] = {
    "behind global memory": (
        "load dst=0 space=ub src=4000 n4=97 esize=1 s4=1",
        AccessFault,
        "out-of-bounds: src reaches bytes 4000 to 4097 of global memory; it has 4096 bytes [kernel k, core 0, row 0 (load): load dst=0",
    ),
    "before a memory": (
        "load dst=32 space=l1 src=0 n3=3 n4=4 esize=4 d3=-32 s4=4",
        AccessFault,
        "out-of-bounds: dst reaches bytes -32 to 48 of L1; it has 65536 bytes",
    ),
    "wild stride": (
        "load dst=0 space=ub src=0 n0=1000000000 n4=1 esize=1 s0=9223372036854775807 s4=1",
        AccessFault,
        "out-of-bounds: src reaches bytes 0 to 9000000000000000000 of global memory",
    ),
    "behind L0C": (
        "fold dst=0 src=0 m=64 n=65 ldc=64",
        AccessFault,
        "out-of-bounds: src reaches bytes 0 to 16388 of L0C; it has 16384 bytes",
    ),
    "misaligned": (
        "store dst=0 src=3 space=ub n4=2 esize=2 d4=2",
        AccessFault,
        "misaligned: src at byte 3 of UB or one of its strides is not aligned; multiples of 2 were expected",
    ),
    "misaligned stride": (
        "store dst=0 src=0 space=ub n4=2 esize=4 d4=6",
        AccessFault,
        "misaligned: dst at byte 0 of global memory or one of its strides",
    ),
    "leading dimension": (
        "mma dst=0 a=0 b=0 m=1 n=1 k=1 lda=1 ldb=24 ldc=16 dtype=f16",
        AccessFault,
        "misaligned: ldb = 24; a multiple of 16 was expected",
    ),
    "element size": (
        "load dst=0 space=ub src=0 n4=1 esize=3 s4=1",
        ValueFault,
        "value: esize = 3; 1 to 8 was expected",
    ),
    "space": ("load dst=0 space=l0a src=0 n4=1 esize=1 s4=1", ValueFault, "value: space = l0a; l1 or ub was expected"),
    "drain space": (
        "drain dst=0 space=l0b src=0 m=1 n=1 ldc=16 pitch=0 dtype=f16",
        ValueFault,
        "value: space = l0b; ub, l1 or gm was expected",
    ),
    "operand type": (
        "feed_a dst=0 src=0 m=1 k=1 ld=1 pitch=4 dtype=i32",
        ValueFault,
        "value: dtype = 5; 0 to 4 was expected",
    ),
    "function": ("vmap fn=200 dst=0 a=0 n2=1 td=f32 ta=f32", ValueFault, "value: fn = 200; 0 to "),
    "channel block": (
        "im2col dst=0 src=0 m=1 k=1 ld=1 m0=0 k0=0 ow=1 kh=1 kw=1 channels=1 c0=8 row0=0 h=1 w=1 row=0 pixel=0 dtype=f16",
        ValueFault,
        "value: c0 = 8; 4 to 16 was expected",
    ),
    "image width": (
        "im2col dst=0 src=0 m=1 k=1 ld=1 m0=0 k0=0 ow=0 kh=1 kw=1 channels=1 c0=4 row0=0 h=1 w=1 row=0 pixel=0 dtype=f16",
        ValueFault,
        "value: ow = 0; 1 to ",
    ),
    "token id": ("set src=load dst=feed id=8", ValueFault, "value: id = 8; 0 to 7 was expected"),
    "counter": ("signal engine=load counter=1024", ValueFault, "value: counter = 1024; 0 to 1023 was expected"),
    "token overflow": (
        "loop count=16\nset src=load dst=feed id=3\nend",
        TokenFault,
        "token-overflow: 15 + 1 tokens of load→feed id 3; a count stays in 0 to 15 [kernel k, core 0, row 1 (load): set src=load dst=feed id=3",
    ),
    "left-over token": (
        "set src=load dst=feed id=2",
        TokenFault,
        "token-left-over: 1 of load→feed id 2; every count is 0 at the end [kernel k, core 0]",
    ),
    "deadlock": (
        "wait src=load dst=feed id=0\nset src=feed dst=cube id=1\nawait engine=load counter=5 value=2",
        DeadlockFault,
        "deadlock: core 0 load: row 2 awaits counter 5 ≥ 2; core 0 feed: row 0 waits for load→feed id 0; at least one queue can go on",
    ),
    "loop step": ("loop count=1 step=0\nend", ValueFault, "value: the step of a loop is not positive"),
    "read": ("read rd=0 src=4093 width=4", AccessFault, "out-of-bounds: the address lies outside global memory"),
}


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("name", FAULTS)
def test_fault(name: str, seed: int | None) -> None:
    text, kind, message = FAULTS[name]
    fault = provoke(text, seed)
    assert isinstance(fault, kind)
    assert str(fault).startswith(message)
    assert str(fault).count("\n") == 0


def test_a_fault_names_the_node_of_its_slot() -> None:
    fault = provoke("load dst=0 space=ub src=9999 n4=1 esize=1 s4=1   ; slot 1")
    assert str(fault).endswith("node conv_1]")
    assert (fault.kernel, fault.core, fault.row, fault.engine, fault.slot) == ("k", 0, 0, "load", 1)


def test_a_full_queue_may_be_the_reason_of_a_deadlock() -> None:
    """The set that feed waits for stands behind more waiting rows than its queue holds."""
    waits = "wait src=load dst=feed id=0\n"
    many = TINY.queue_depth
    ends = "grant src=load dst=feed id=0 n=0\n"
    fine = waits + ends * (many - 1) + "set src=load dst=feed id=0"
    run(assemble(fine), arguments=(), memory=Memory(TINY, 64), target=TINY, counters=new_counters())
    assert isinstance(provoke(waits + ends * many + "set src=load dst=feed id=0"), DeadlockFault)


@pytest.mark.parametrize(
    "name",
    [
        "load",
        "store",
        "fill",
        "move",
        "feed_a",
        "feed_b",
        "feed_q",
        "im2col",
        "mma",
        "mma_dw",
        "fold",
        "drain",
        "vmap",
        "vreduce",
        "iota",
        "gather",
        "scatter",
    ],
)
def test_random_fields_never_crash_the_process(name: str) -> None:
    """Fields from small to wild: a fault or a result, whatever they are."""
    rng = np.random.default_rng(0)
    memory, spec = Memory(TINY, 4096), isa.BY_NAME[name]
    for trial in range(150):
        fields: dict[str, Expr | int] = {}
        for field in spec.fields:
            wild = rng.random() < 0.03
            value = (
                int(rng.integers(-(1 << 62), 1 << 62))
                if wild and field.kind != "extent"
                else int(rng.integers(0, 5 if field.kind != "address" else 64))
            )
            fields[field.name] = value * (16 if field.name in ("ldb", "ldc", "c0") and trial % 2 and not wild else 1)
            if names := isa.NAMED_VALUES.get(field.kind):
                fields[field.name] = int(rng.choice(list(names.values())))
        with suppress(DeviceFault):
            program = (row(name, 0, **fields),)
            run(program, arguments=(), memory=memory, target=TINY, counters=new_counters())
