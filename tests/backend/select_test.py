"""Locations become slots; what no instruction can do is an error that names the op."""

import pytest
from tile.harness import TARGET
from xdsl.dialects.builtin import NameLoc, NoneAttr, StringAttr, UnknownLoc

from stepwell.backend import BackendError, compile_kernel
from stepwell.backend.select import RULES, select_kernel
from stepwell.dialects.tile import ENGINE_OPS
from stepwell.dialects.tile.builder import KernelBuilder
from stepwell.runtime.isa import BY_NAME


def node(name: str) -> NameLoc:
    return NameLoc(StringAttr(name), NoneAttr())


def test_every_tile_op_has_a_rule_for_all_fields() -> None:
    """The fields of an instruction come from extents, strides, types, memories, addresses, or by name."""
    assert set(RULES) == set(ENGINE_OPS)
    others = {"esize", "pitch", "trans", "biased", "bias", "bimm", "cimm", "zeros"}
    for op, rule in RULES.items():
        roles = {operand.role for operand in op.OPERANDS}
        found = {*rule.extents, *rule.dtypes, *rule.spaces, *roles, *op.FIELDS.split(), *others}
        found |= {field for strides in rule.strides.values() for field in strides.fields}
        assert {field.name for field in BY_NAME[op.INSTRUCTION].fields} <= found


def test_locations_become_slots() -> None:
    k = KernelBuilder("located", node("Relu_3"))
    x = k.argument((64,), "f16")
    t = k.alloc((64,), "f16", "ub")
    k.load(t[0], x[0], (64,))
    k.location = node("Neg_4")
    k.map("neg", t[0], t[0], extents=(64,))
    k.location = UnknownLoc()
    k.store(x[0], t[0], (64,))
    kernel = k.finish()
    compiled = compile_kernel(kernel, TARGET)
    assert compiled.slot_locations == (UnknownLoc(), node("Relu_3"), node("Neg_4"))
    slots = {row.name: row.slot for row in compiled.program if row.name in ("load", "vmap", "store")}
    assert slots == {"load": 1, "vmap": 2, "store": 0}
    assert compiled.numbers["slots"] == 3


def test_an_error_names_the_node() -> None:
    k = KernelBuilder("bad", node("Transpose_7"))
    x, t = k.argument((8, 8), "f16"), k.alloc((8, 8), "f16", "ub")
    k.load(t.box(0, 1, 8), x[0, 0], (8, 8))
    rule = r"tile.load of Transpose_7: the last stride of dst is 1 .found \[1, 8\]."
    with pytest.raises(BackendError, match=rule):
        select_kernel(k.finish())


def test_a_feed_reads_along_one_axis() -> None:
    k = KernelBuilder("feed")
    t, a = k.alloc((16, 32), "f16", "l1"), k.alloc((16, 16), "f16", "l0a")
    k.feed_a(a[0, 0], t.box(0, 32, 2), (16, 16))
    with pytest.raises(BackendError, match=r"tile.feed_a: one stride of src is 1 .found 32, 2."):
        select_kernel(k.finish())


def test_a_reduction_has_no_stride_along_the_reduced_axis() -> None:
    k = KernelBuilder("reduce")
    t, u = k.alloc((16, 16), "f16", "ub"), k.alloc((16,), "f16", "ub")
    k.reduce("sum", u.box(0, 1, 1, 0), t.box(0, 16, 1, 0), (8, 8, 1))
    with pytest.raises(BackendError, match=r"tile.reduce: the stride of dst along the reduced axis is 0 .found 1."):
        select_kernel(k.finish())


def test_there_are_registers_for_27_arguments() -> None:
    k = KernelBuilder("many")
    for _ in range(28):
        k.argument((4,), "f16")
    with pytest.raises(BackendError, match=r"tile.kernel: a kernel has at most 27 arguments, r0 to r26 .found 28."):
        select_kernel(k.finish())


def test_a_kernel_stays_as_it_is() -> None:
    k = KernelBuilder("same")
    x, t = k.argument((8,), "f16"), k.alloc((8,), "f16", "ub")
    k.load(t[0], x[0], (8,))
    kernel = k.finish()
    before = str(kernel)
    compile_kernel(kernel, TARGET)
    assert str(kernel) == before
