"""What a tile op demands of its boxes: how many, in which memories, of which types, strides and sizes."""

from collections.abc import Iterator

from xdsl.utils.exceptions import VerifyException

from ...runtime.expr import Expr
from ...runtime.isa import BY_NAME
from ...runtime.numerics.functions import CODES, FUNCTIONS
from . import ops
from .attributes import LANES

INTEGERS = ("i8", "u8")
LEAST_BLOCK = 16
"""Elements that share a scale."""
_ARITY = {code: FUNCTIONS[name].arity for name, code in CODES.items()}


def verify_op(op: "ops.TileOp") -> None:
    """Raises `VerifyException` for the first rule that the op breaks."""
    for problem in problems(op):
        raise VerifyException(problem)


def problems(op: "ops.TileOp") -> Iterator[str]:
    """Every broken rule, as text without the name of the op; later rules assume the earlier ones."""
    required = [rule.role for rule in op.OPERANDS if not rule.optional]
    if not len(required) <= len(op.buffers) <= len(op.OPERANDS):
        optional = [f"[{rule.role}]" for rule in op.OPERANDS if rule.optional]
        yield f"the boxes are {', '.join(required + optional)} (found {len(op.buffers)})"
        return
    low, high = op.RANK
    if not low <= len(op.extents.data) <= high:
        yield f"there are {low if low == high else f'{low} to {high}'} extents (found {len(op.extents.data)})"
        return
    if not len(op.offsets.data) == len(op.strides.data) == len(op.buffers):
        yield f"each of the {len(op.buffers)} boxes has one offset and one list of strides"
        return
    if unknown := [name for name, _ in op.named if name not in op.FIELDS.split()]:
        yield f"no field {', '.join(unknown)}; it takes {op.FIELDS.replace(' ', ', ') or 'none'}"
        return
    for position in range(len(op.buffers)):
        yield from _box_problems(op, position)
    yield from _field_problems(op)
    if (check := _OWN.get(op.INSTRUCTION)) is not None:
        yield from check(op)


def _box_problems(op: "ops.TileOp", position: int) -> Iterator[str]:
    rule, kind, strides = op.OPERANDS[position], op.kind(position), op.strides.data[position]
    if kind.space.data not in rule.spaces.split():
        yield f"{rule.role} lives in {rule.spaces.replace(' ', ' or ')} (found {kind.space.data})"
    if rule.types and kind.dtype not in rule.types.split():
        yield f"{rule.role} is of {rule.types.replace(' ', ', ')} (found {kind.dtype})"
    if rule.like is not None and kind.dtype != (other := op.kind(op.roles[rule.like])).dtype:
        yield f"{rule.role} has the type of {rule.like}, {other.dtype} (found {kind.dtype})"
    if kind.per_byte > 1:
        yield from _half_problems(op, position)
    rank = rule.rank(len(op.extents.data))
    if rule.row:
        if not strides or strides[-1] != 1 or any(stride for stride in strides[:-1] if len(strides) > len(kind.dims)):
            yield f"{rule.role} is a contiguous row, its last stride is 1 (found {list(strides)})"
    elif len(strides) != rank:
        yield f"{rule.role} has {rank} strides (found {len(strides)}: {list(strides)})"
        return
    if op.offsets.data[position].clamp is not None:
        yield f"the offset of {rule.role} is a sum (found {op.offsets.data[position]})"
    if not 0 <= op.skew(position) <= kind.slots.data:
        yield f"{rule.role} names a slot of at most {kind.slots.data} iterations ago (found {op.skew(position)})"
    elif op.skew(position) and isinstance(op.buffers[position].owner.parent_op(), ops.KernelOp):
        yield f"{rule.role} has earlier slots only if its buffer belongs to a loop (found ago {op.skew(position)})"
    yield from _size_problems(op, position)


def _half_problems(op: "ops.TileOp", position: int) -> Iterator[str]:
    """Boxes of half bytes are whole bytes: their rows begin with one."""
    rule, kind, strides = op.OPERANDS[position], op.kind(position), op.strides.data[position]
    if op.INSTRUCTION not in ("load", "feed_q"):
        yield f"half bytes are loaded, and read by a tile.feed_q (found {rule.role} of {kind.dtype})"
    offset = op.offsets.data[position]
    odd = [value for value in (offset.base, *(s for s in strides if s != 1)) if value % 2]
    if odd or strides.count(1) != 1:
        found = f"offset {offset}, strides {list(strides)}"
        yield f"a box of {kind.dtype} begins with a byte, as do its rows (found {found})"


def _size_problems(op: "ops.TileOp", position: int) -> Iterator[str]:
    """A box whose place is a constant lies within its buffer."""
    rule, kind, offset = op.OPERANDS[position], op.kind(position), op.offsets.data[position]
    axes = rule.axes if rule.axes is not None else tuple(range(len(op.extents.data)))
    extents = [constant(op.extents.data[axis]) for axis in axes if axis >= 0]
    if not offset.is_constant or len(extents) != len(axes):
        return
    low = high = offset.base
    for extent, stride in zip(extents, op.strides.data[position][-len(axes) :], strict=True):
        if extent is None or extent < 1:
            return
        low, high = low + min(0, (extent - 1) * stride), high + max(0, (extent - 1) * stride)
    if low < 0 or high >= kind.elements:
        yield f"{rule.role} reaches elements {low} to {high} of a buffer of {kind.elements}"


def constant(value: Expr) -> int | None:
    """The value of an expression without variables."""
    return None if value.terms or value.ring else value.value({})


def _field_problems(op: "ops.TileOp") -> Iterator[str]:
    spec = BY_NAME[op.INSTRUCTION]
    for name, value in op.named:
        kind = spec.fields[spec.index(name)].kind
        if kind in ("fn", "reduction", "act", "float") and not value.is_constant:
            yield f"{name} is a constant (found {value})"


def _check_mma(op: "ops.TileOp") -> Iterator[str]:
    """Both operands of one type, or both of one byte; sums in f32 or i32."""
    dst, a, b = (op.kind(position).dtype for position in range(3))
    if a != b and not (a in INTEGERS and b in INTEGERS):
        yield f"a and b are of one type (found {a} and {b})"
    elif dst != (sums := "i32" if a in INTEGERS else "f32"):
        yield f"sums of {a} products are {sums} (found {dst})"
    for role in ("dst", "b"):
        yield from _lanes(op, role)


def _lanes(op: "ops.TileOp", role: str) -> Iterator[str]:
    rule, strides = op.OPERANDS[op.roles[role]], op.strides.data[op.roles[role]]
    if not rule.row and strides[0] % LANES:
        yield f"rows of {role} are a multiple of {LANES} elements apart (found {strides[0]})"


def _check_feed_b(op: "ops.TileOp") -> Iterator[str]:
    yield from _lanes(op, "dst")


def _check_feed_q(op: "ops.TileOp") -> Iterator[str]:
    """k contiguous, blocks of at least 16, zero points signed as the integers are."""
    yield from _lanes(op, "dst")
    for role, axis in (("src", 0), ("scale", 1), ("zero", 1)):
        if role in op.roles and (strides := op.strides.data[op.roles[role]])[axis] != 1:
            yield f"the stride of {role} along k is 1 (found {list(strides)})"
    of = op.kind(op.roles["src"]).dtype
    if "zero" in op.roles and (zero := op.kind(op.roles["zero"]).dtype) != f"{of[0]}8":
        yield f"zero points of {of} are {of[0]}8 (found {zero})"
    block = constant(op.field("block"))
    if block is None or block < LEAST_BLOCK:
        yield f"block is a constant of at least {LEAST_BLOCK} (found {op.field('block')})"


def _check_fold(op: "ops.TileOp") -> Iterator[str]:
    yield from _lanes(op, "dst")
    if op.strides.data[0] != op.strides.data[1]:
        yield f"dst and src have the same strides (found {list(op.strides.data[0])} and {list(op.strides.data[1])})"


def _check_map(op: "ops.TileOp") -> Iterator[str]:
    arity = _ARITY.get(op.field("fn").base)
    if arity is None:
        yield f"fn is one of {', '.join(CODES)} (found {op.field('fn')})"
    elif len(op.buffers) - 1 > arity:
        yield f"this function has {arity} operands (found {len(op.buffers) - 1} boxes)"


def _check_reduce(op: "ops.TileOp") -> Iterator[str]:
    whole = constant(op.field("first", 1)) == constant(op.field("last", 1)) == 1
    if not whole and "state" not in op.roles:
        yield "a reduction that is cut (first or last is not 1) has a state"
    if "state" in op.roles:
        lanes = "i32" if op.kind(1).dtype in ("i8", "u8", "i32", "b8") else "f32"
        if op.kind(op.roles["state"]).dtype != lanes:
            yield f"the lanes of {op.kind(1).dtype} are {lanes} (found {op.kind(op.roles['state']).dtype})"


def _check_indirect(op: "ops.TileOp") -> Iterator[str]:
    rows = constant(op.field("rows"))
    if rows is None or rows < 1:
        yield f"rows is a constant of at least 1 (found {op.field('rows')})"


_OWN = {
    "mma": _check_mma,
    "mma_dw": _check_mma,
    "feed_b": _check_feed_b,
    "feed_q": _check_feed_q,
    "fold": _check_fold,
    "vmap": _check_map,
    "vreduce": _check_reduce,
    "gather": _check_indirect,
    "scatter": _check_indirect,
}
"""Rules of single ops beyond those of `Operand`."""
