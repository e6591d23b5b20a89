"""Selection: each tile op becomes the instruction that does it, by one table.

Elements become bytes, loop indices hardware indices by depth (which count by 1, so a coefficient is multiplied by the
loop's step), kernel arguments registers r0, r1 …, coordinates of the core the registers behind them. Buffers stay
symbolic until `allocate`, and there are no tokens until `synchronise`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ..dialects import npu, tile
from ..runtime.expr import ONE, Expr, Term, merge, var
from ..runtime.isa import BY_NAME, NAMED_VALUES, Space
from ..runtime.plan import MOST_ARGUMENTS
from .errors import BackendError, place

Values = dict[str, Expr | int]


@dataclass(frozen=True, slots=True)
class Strides:
    """Fields that take the strides of a box, innermost last; `unit`: in elements, not bytes. The innermost stride is
    1 where there is no field for it (`""`).
    """

    fields: tuple[str, ...]
    unit: str = "bytes"


@dataclass(frozen=True, slots=True)
class Rule:
    """How a tile op becomes an instruction.

    extents: fields of the extents, innermost last; a box of fewer dimensions leaves the outer ones 1. strides: fields
    of the strides by role. dtypes, spaces: field → role whose type or memory it states. more: what remains.
    """

    extents: tuple[str, ...]
    strides: Mapping[str, Strides]
    dtypes: Mapping[str, str]
    spaces: Mapping[str, str]
    more: Callable[[tile.TileOp], Values]


def _rule(
    extents: str,
    strides: Mapping[str, Strides],
    dtypes: Mapping[str, str] | None = None,
    spaces: Mapping[str, str] | None = None,
    more: Callable[[tile.TileOp], Values] = lambda op: {},
) -> Rule:
    return Rule(tuple(extents.split()), strides, dtypes or {}, spaces or {}, more)


def _bytes(*fields: str) -> Strides:
    return Strides(fields)


def _elements(*fields: str) -> Strides:
    return Strides(fields, "elements")


def _esize(op: tile.TileOp) -> Values:
    return {"esize": op.kind(0).esize}


def _transposed(op: tile.TileOp) -> Values:
    """Pitch and `trans` of a feed: one of the two strides of the source is 1."""
    outer, inner = op.strides.data[1]
    if inner == 1:
        return {"pitch": outer * op.kind(1).esize}
    if outer == 1:
        return {"pitch": inner * op.kind(1).esize, "trans": 1}
    raise BackendError(f"{place(op)}: one stride of src is 1 (found {outer}, {inner})")


def _dequantised(op: tile.TileOp) -> Values:
    return {"zeros": 1} if "zero" in op.roles else {}


def _drained(op: tile.TileOp) -> Values:
    return {"biased": 1} if "bias" in op.roles else {}


def _mapped(op: tile.TileOp) -> Values:
    """Operands that are there are no immediates."""
    return {flag: 0 for role, flag in (("b", "bimm"), ("c", "cimm")) if role in op.roles}


def _reduced(op: tile.TileOp) -> Values:
    if op.strides.data[0][1] != 0:
        raise BackendError(
            f"{place(op)}: the stride of dst along the reduced axis is 0 (found {op.strides.data[0][1]})"
        )
    return {}


_VECTOR = "n0 n1 n2"
RULES: Mapping[type[tile.TileOp], Rule] = {
    tile.LoadOp: _rule(
        "n0 n1 n2 n3 n4",
        {"dst": _bytes("d0", "d1", "d2", "d3", ""), "src": _bytes("s0", "s1", "s2", "s3", "s4")},
        spaces={"space": "dst"},
        more=_esize,
    ),
    tile.FillOp: _rule(_VECTOR, {"dst": _bytes("d0", "d1", "")}, spaces={"space": "dst"}, more=_esize),
    tile.StoreOp: _rule(
        "n0 n1 n2 n3 n4",
        {"dst": _bytes("d0", "d1", "d2", "d3", "d4"), "src": _bytes("s0", "s1", "s2", "s3", "")},
        spaces={"space": "src"},
        more=_esize,
    ),
    tile.MoveOp: _rule(_VECTOR, {"dst": _bytes("d0", "d1", ""), "src": _bytes("s0", "s1", "")}, more=_esize),
    tile.FeedAOp: _rule("m k", {"dst": _elements("ld", "")}, {"dtype": "dst"}, more=_transposed),
    tile.FeedBOp: _rule("k n", {"dst": _elements("ld", "")}, {"dtype": "dst"}, more=_transposed),
    tile.FeedQOp: _rule(
        "k n",
        {
            "dst": _elements("ld", ""),
            "src": _bytes("", "pitch"),
            "scale": _bytes("spitch", ""),
            "zero": _bytes("zpitch", ""),
        },
        {"dtype": "dst", "of": "src", "ts": "scale"},
        more=_dequantised,
    ),
    tile.Im2colOp: _rule("m k", {"dst": _elements("ld", ""), "src": _bytes("row", "pixel", "")}, {"dtype": "dst"}),
    tile.MmaOp: _rule(
        "m n k", {"dst": _elements("ldc", ""), "a": _elements("lda", ""), "b": _elements("ldb", "")}, {"dtype": "a"}
    ),
    tile.MmaDwOp: _rule("m groups taps", {"dst": _elements("ldc", ""), "a": _elements("lda", "")}, {"dtype": "a"}),
    tile.FoldOp: _rule("m n", {"dst": _elements("ldc", "")}),
    tile.DrainOp: _rule(
        "m n",
        {"dst": _bytes("pitch", ""), "src": _elements("ldc", "")},
        {"dtype": "dst", "acc": "src"},
        {"space": "dst"},
        _drained,
    ),
    tile.MapOp: _rule(
        _VECTOR,
        {
            "dst": _bytes("d0", "d1", "d2"),
            "a": _bytes("a0", "a1", "a2"),
            "b": _bytes("b0", "b1", "b2"),
            "c": _bytes("c0", "c1", "c2"),
        },
        {"td": "dst", "ta": "a", "tb": "b", "tc": "c"},
        more=_mapped,
    ),
    tile.ReduceOp: _rule(
        _VECTOR,
        {"dst": _bytes("d0", "-", "d2"), "a": _bytes("a0", "a1", "a2")},
        {"td": "dst", "ta": "a"},
        more=_reduced,
    ),
    tile.IotaOp: _rule(_VECTOR, {"dst": _bytes("d0", "d1", "d2")}, {"td": "dst"}),
    tile.GatherOp: _rule(
        "n0 n1 n2 n3",
        {
            "dst": _bytes("d0", "d1", "d2", ""),
            "src": _bytes("pitch", "s0", "s1", "s2", ""),
            "index": _bytes("x0", "x1", "x2"),
        },
        spaces={"space": "dst"},
        more=_esize,
    ),
    tile.ScatterOp: _rule(
        "n0 n1 n2 n3",
        {
            "dst": _bytes("pitch", "d0", "d1", "d2", ""),
            "src": _bytes("s0", "s1", "s2", ""),
            "index": _bytes("x0", "x1", "x2"),
        },
        spaces={"space": "src"},
        more=_esize,
    ),
}
"""The instruction's fields that follow from the boxes; those an op gives by name are taken as they are."""


class _Kernel:
    """Where indices, arguments and buffers of a tile kernel went."""

    def __init__(self, kernel: tile.KernelOp):
        self.values: dict[SSAValue, tuple[str, int]] = {}
        """Variable and factor of an index; register of an argument."""
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.slots: dict[Attribute, int] = {UnknownLoc(): 0, kernel.location: 0}
        for register, argument in enumerate(kernel.body.block.args):
            self.values[argument] = (f"r{register}", 1)
        self.arguments = len(kernel.body.block.args)
        self.coordinates: list[SSAValue] = []

    def new_register(self, coordinate: SSAValue, op: tile.GridOp | tile.ScalarOp) -> tuple[int, str]:
        """A register for a coordinate of the core or a scalar: the first behind the arguments that none has which is
        still used."""
        taken = {self.values[other][0] for other in self.coordinates if self._is_used_after(other, op)}
        self.coordinates.append(coordinate)
        for register in range(self.arguments, MOST_ARGUMENTS):
            if (name := f"r{register}") not in taken:
                self.values[coordinate] = (name, 1)
                return register, name
        rule = f"arguments, coordinates and scalars of a kernel are in r0 to r{MOST_ARGUMENTS - 1}"
        raise BackendError(f"{place(op)}: {rule} (found {self.arguments} arguments, {len(taken)} others in use)")

    def _is_used_after(self, coordinate: SSAValue, op: tile.GridOp | tile.ScalarOp) -> bool:
        """Whether a register is one of the op's own, or is used by the outermost loop that the op is in or behind
        it."""
        if coordinate.owner is op:
            return True
        outermost = {top for use in coordinate.uses if (top := _outermost(use.operation)) is not None}
        later = _outermost(op)
        while later is not None and later not in outermost:
            later = later.next_op
        return later is not None

    def slot(self, op: Operation) -> int:
        """The location's place in the kernel's table."""
        return self.slots.setdefault(op.location, max(self.slots.values()) + 1)

    def expression(self, value: Expr, indices: Sequence[SSAValue], scale: int = 1) -> Expr:
        """`value` times `scale` over hardware indices and registers."""
        if not value.terms and scale == 1:
            return value
        terms: list[Term] = []
        for term in value.terms:
            (x, fx), (y, fy) = (self._variable(name, indices) for name in (term.x, term.y))
            terms.append(Term(term.coef * fx * fy * scale, x, y))
        return Expr(value.base * scale, merge(tuple(terms)), value.clamp)

    def _variable(self, name: str, indices: Sequence[SSAValue]) -> tuple[str, int]:
        if name == ONE or name == "core":
            return name, 1
        return self.values[indices[int(name[1:])]]


def _outermost(op: Operation) -> Operation | None:
    """The op of the kernel's own block that an op is in."""
    while (parent := op.parent_op()) is not None and not isinstance(parent, tile.KernelOp):
        op = parent
    return op if parent is not None else None


def select_kernel(kernel: tile.KernelOp) -> npu.KernelOp:
    """The npu kernel of a tile kernel. Raises `BackendError` for what no instruction can do."""
    state = _Kernel(kernel)
    kinds = ["gm" if isinstance(argument.type, tile.BufferType) else "index" for argument in kernel.body.block.args]
    if len(kinds) > MOST_ARGUMENTS:
        rule = f"a kernel has at most {MOST_ARGUMENTS} arguments, r0 to r{MOST_ARGUMENTS - 1}"
        raise BackendError(f"{place(kernel)}: {rule} (found {len(kinds)})")
    result = npu.KernelOp(kernel.sym_name.data, kinds)
    _select_block(kernel.body.block, result.body.block, 0, state)
    result.set_number("slots", max(state.slots.values()) + 1)
    result.location = kernel.location
    return result


def _select_block(source: Block, target: Block, depth: int, state: _Kernel) -> None:
    for op in source.ops:
        if isinstance(op, tile.ForOp):
            new = [_select_loop(op, depth, state)]
        elif isinstance(op, tile.AllocOp):
            new = [_select_buffer(op, state)]
        elif isinstance(op, tile.GridOp):
            new = _select_grid(op, state)
        elif isinstance(op, tile.ScalarOp):
            new = [_select_scalar(op, state)]
        elif isinstance(op, tile.TileOp):
            new = [_select_op(op, state)]
        else:
            raise BackendError(
                f"{place(op)}: a kernel holds loops, buffers, grids, scalars and tile ops only (found {op.name})"
            )
        for made in new:
            made.location = op.location
        target.add_ops(new)


def _select_loop(op: tile.ForOp, depth: int, state: _Kernel) -> Operation:
    count = state.expression(op.bound.data[0], op.indices)
    state.values[op.index] = (f"i{depth}", op.step.data)
    loop = npu.LoopOp.of(
        [count, Expr(op.step.data), Expr(op.more_trips), Expr(0)], state.slot(op), regions=[Region(Block())]
    )
    assert isinstance(loop, npu.LoopOp)
    _select_block(op.body.block, loop.body.block, depth + 1, state)
    return loop


def _select_buffer(op: tile.AllocOp, state: _Kernel) -> Operation:
    kind = op.buffer.type
    buffer = npu.BufferOp(kind.space.data, kind.bytes, kind.slots.data)
    buffer.handle.name_hint = op.buffer.name_hint
    state.buffers[op.buffer] = buffer.handle
    return buffer


def _select_grid(op: tile.GridOp, state: _Kernel) -> list[Operation]:
    """The coordinates of the core, in the registers behind the arguments."""
    rows: list[Operation] = []
    slot = state.slot(op)
    for coordinate, step, size in zip(op.coordinates, op.steps, (0, *op.sizes.data), strict=True):
        register, name = state.new_register(coordinate, op)
        value = var("core")
        if step > 1:
            rows.append(npu.row_op("div", slot, rd=register, a=value, b=step))
            value = var(name)
        if size:
            rows.append(npu.row_op("mod", slot, rd=register, a=value, b=size))
    return rows


def _select_scalar(op: tile.ScalarOp, state: _Kernel) -> Operation:
    """The row that computes a scalar in a register of its own."""
    a, b = (state.expression(value, op.indices) for value in op.values.data)
    register, _ = state.new_register(op.result, op)
    return npu.row_op(op.fn.data, state.slot(op), rd=register, a=a, b=b)


def _select_op(op: tile.TileOp, state: _Kernel) -> Operation:
    rule, spec = RULES[type(op)], BY_NAME[op.INSTRUCTION]
    roles = op.roles
    values: Values = {
        field: NAMED_VALUES[spec.fields[spec.index(field)].kind][op.kind(roles[role]).dtype]
        for field, role in rule.dtypes.items()
        if role in roles
    }
    values |= {field: Space[op.kind(roles[role]).space.data.upper()] for field, role in rule.spaces.items()}
    values |= {name: state.expression(value, op.indices) for name, value in op.named}
    values |= dict(
        zip(
            rule.extents[-len(op.extents.data) :],
            (state.expression(e, op.indices) for e in op.extents.data),
            strict=True,
        )
    )
    if op.kind(0).per_byte > 1:  # a load moves bytes
        values[rule.extents[-1]] = _halved(values[rule.extents[-1]], op)
    for role, strides in rule.strides.items():
        if role in roles:
            values |= _strides(op, roles[role], strides)
    values |= rule.more(op)
    buffers: list[SSAValue] = []
    places: list[tuple[int, int]] = []
    for role, position in roles.items():
        values[role] = _address(op, position, state)
        if (buffer := state.buffers.get(op.buffers[position])) is not None:
            buffers.append(buffer)
            places.append((spec.index(role), op.skew(position)))
    fields = [values.pop(field.name, field.default or 0) for field in spec.fields]
    assert not values, f"{op.name}: {values}"
    exprs = [value if isinstance(value, Expr) else Expr(value) for value in fields]
    return npu.OPS[spec.name].of(exprs, state.slot(op), buffers, places)


def _address(op: tile.TileOp, position: int, state: _Kernel) -> Expr:
    """The address in bytes; of an on-chip buffer, the offset from its beginning."""
    offset = op.offsets.data[position]
    if offset.clamp is not None:
        raise BackendError(f"{place(op)}: the offset of {op.OPERANDS[position].role} is a sum (found {offset})")
    value = state.expression(offset, op.indices, op.kind(position).esize)
    if op.kind(position).per_byte > 1:
        value = _halved(value, op)
    register = state.values.get(op.buffers[position])
    return value if register is None else value + Expr(0, (Term(1, register[0]),))


def _halved(value: Expr | int, op: tile.TileOp) -> Expr:
    """Bytes of so many half bytes, the last one whole."""
    value = value if isinstance(value, Expr) else Expr(value)
    if any(term.coef % 2 for term in value.terms):
        raise BackendError(f"{place(op)}: half bytes begin with a byte, whatever the indices (found {value})")
    terms = tuple(Term(term.coef // 2, term.x, term.y) for term in value.terms)
    clamp = None if value.clamp is None else -(-value.clamp // 2)
    return Expr(-(-value.base // 2), terms, clamp)


def _strides(op: tile.TileOp, position: int, rule: Strides) -> Values:
    """The fields of a box's strides. Extents left out are 1, so are their strides 0."""
    strides = op.strides.data[position]
    kind = op.kind(position)
    if kind.per_byte > 1:
        strides = tuple(stride if stride == 1 else stride // kind.per_byte for stride in strides)
    scale = kind.esize if rule.unit == "bytes" else 1
    values: Values = {}
    for field, stride in zip(rule.fields[-len(strides) :], strides, strict=True):
        if field == "" and stride != 1:
            raise BackendError(
                f"{place(op)}: the last stride of {op.OPERANDS[position].role} is 1 (found {list(strides)})"
            )
        if field not in ("", "-"):
            values[field] = stride * scale
    return values


@dataclass(frozen=True)
class Select(ModulePass):
    """Each tile op becomes the instruction that does it: elements become bytes, loop indices hardware indices.

    tile.for %m = 0 to "1000" step 128 {
      %t = tile.alloc : !tile.buffer<128x64xf16, ub, 2>
      tile.load %t["0" : 64, 1], %x["64*i0" : 64, 1] extents ["clamp(1000 - i0, 128)", "64"] at (%m)
    }
    ⟶
    npu.loop count=1000 step=128 {
      %t = npu.buffer ub 16384 x 2
      npu.load dst=%t space=ub src=16384*i0 + r0 n3=clamp(1000 - 128*i0, 128) n4=64 esize=2 d3=128 s3=128 s4=2
    }
    """

    name = "select"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.body.block.ops if isinstance(k, tile.KernelOp)]:
            op.body.block.insert_op_before(select_kernel(kernel), kernel)
            kernel.detach()
            kernel.erase()
