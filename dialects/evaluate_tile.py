"""Runs tile kernels on numpy arrays, in program order and without tokens, to the bit of docs/numerics.md.

    evaluate_kernel(kernel, [x, y])           # x and y change in place
    prepared = prepare(kernel)                # to run it often
    prepared.run([x, y], cores=2)

A kernel is translated to one Python function: loops and expressions become Python, each op a call into
`runtime/numerics`; the `tile.map` of the kernel in `tile/__init__.py` becomes

    n0 = max(0, min(1000 + -1*x0, 128))
    n1 = 64
    if n0 > 0 and n1 > 0:
        o = 0
        if o < 0 or o + (n0-1)*64 + (n1-1)*1 >= 8192: fail(1, 0, o, …)
        dst = P0 + (q0 - 0) % 2 * 16384 + o*2
        …
        vmap(24, 1, n0, n1, dst, 0, 128, 2, 0, a, …)

Every box is checked against its buffer. L0A and L0B hold words of 4 bytes, as numerics computes in them; the cores of
a kernel run one after the other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, SSAValue

from ..runtime.expr import ONE, Expr
from ..runtime.isa import BY_NAME, DTYPES
from ..runtime.numerics import contract, reduction, vector
from ..runtime.numerics.functions import CODES
from ..runtime.problem import Kind, UserError
from . import tile
from .tile import moves

Array = NDArray[Any]


class EvaluationError(UserError, ValueError):
    """A kernel reads or writes outside a buffer, or its arguments do not fit: `<op>: <rule> (<what was found>)`."""

    KIND: ClassVar[Kind] = Kind.IR


@dataclass(frozen=True, slots=True)
class Place:
    """A buffer in the generated function: the expression of its address, bytes of an element, elements, and their
    type.
    """

    address: str
    unit: int
    elements: int
    dtype: str

    @property
    def offset(self) -> str:
        """Bytes before element `o`."""
        return "o//2" if self.dtype in tile.HALVES else f"o*{self.unit}"


@dataclass(frozen=True)
class Prepared:
    """A kernel as a Python function."""

    kernel: tile.KernelOp
    source: str
    function: Callable[..., None]
    memories: tuple[Array, ...]
    """On-chip buffers; the function has their addresses."""

    def run(self, arguments: Sequence[Array | int], cores: int = 1) -> None:
        """Runs the kernel on each core in turn; arrays are contiguous, hold at least the elements of the argument,
        and change in place.
        """
        values = [self._value(number, given) for number, given in enumerate(self._matched(arguments))]
        for core in range(cores):
            self.function(core, *values)

    def _matched(self, arguments: Sequence[Array | int]) -> Sequence[Array | int]:
        expected = len(self.kernel.body.block.args)
        if len(arguments) != expected:
            raise EvaluationError(
                f"tile.kernel @{self.kernel.sym_name.data}: {expected} arguments (found {len(arguments)})"
            )
        return arguments

    def _value(self, number: int, given: Array | int) -> int:
        kind = self.kernel.body.block.args[number].type
        where = f"tile.kernel @{self.kernel.sym_name.data}: argument {number}"
        if isinstance(kind, IndexType):
            if isinstance(given, np.ndarray):
                raise EvaluationError(f"{where}: an index (found an array)")
            return int(given)
        assert isinstance(kind, tile.BufferType)
        if not isinstance(given, np.ndarray) or not given.flags.c_contiguous or not given.flags.writeable:
            raise EvaluationError(
                f"{where}: a contiguous, writeable array of {kind.dtype} (found {type(given).__name__})"
            )
        if given.dtype.itemsize != kind.esize or given.size * kind.per_byte < kind.elements:
            raise EvaluationError(
                f"{where}: {kind.elements} elements of {kind.dtype} (found {given.size} of {given.dtype})"
            )
        return given.ctypes.data


def evaluate_kernel(kernel: tile.KernelOp, arguments: Sequence[Array | int], cores: int = 1) -> None:
    """Runs a kernel once; arrays change in place. Raises `EvaluationError`."""
    prepare(kernel).run(arguments, cores)


def prepare(kernel: tile.KernelOp) -> Prepared:
    """Translates a kernel; about 0.2 ms an op."""
    writer = _Writer(kernel)
    source = writer.text()
    names: dict[str, Any] = {
        **_LIBRARY,
        "fail": writer.fail,
        "inf": np.inf,
        "nan": np.nan,
        **{f"P{n}": array.ctypes.data for n, array in writer.memories.items()},
    }
    scratch = np.zeros(vector.SCRATCH_BYTES // 8 + 16, np.int64)
    names |= {"S": scratch.ctypes.data, "C": scratch.ctypes.data + vector.SCRATCH_BYTES, "temporary": moves.Temporary()}
    exec(compile(source, f"<tile.kernel @{kernel.sym_name.data}>", "exec"), names)
    return Prepared(kernel, source, names["kernel"], (*writer.memories.values(), scratch))


_LIBRARY: dict[str, Any] = {
    "vmap": vector.vmap,
    "iota": vector.iota,
    "vreduce": reduction.vreduce,
    "gemm": contract.gemm,
    "gemm_int": contract.gemm_int,
    "depthwise": contract.depthwise,
    "fold": contract.fold,
    "copy": moves.copy,
    "fill": moves.fill,
    "dequantise": moves.dequantise,
    "im2col": moves.im2col,
    "indirect": moves.indirect,
    "max": max,
    "min": min,
    "range": range,
}
_IMAGES = ("l0a", "l0b")
INDIRECT = ("gather", "scatter")
_ABSENT = "0, 0, 0, 0, 2"
"""An operand that is not there: address, strides, type."""


class _Writer:
    """Writes the Python function of a kernel."""

    def __init__(self, kernel: tile.KernelOp):
        self.kernel = kernel
        self.lines: list[str] = []
        self.names: dict[SSAValue, str] = {}
        self.places: dict[SSAValue, Place] = {}
        self.rings: dict[SSAValue, str] = {}
        self.memories: dict[int, Array] = {}
        self.ops: list[tile.TileOp] = []
        self.loops = 0

    def text(self) -> str:
        block = self.kernel.body.block
        for number, argument in enumerate(block.args):
            self.names[argument] = f"A{number}"
            if isinstance(kind := argument.type, tile.BufferType):
                self.places[argument] = Place(f"A{number}", kind.esize, kind.elements, kind.dtype)
        self._block(block, 1, "")
        parameters = ", ".join(["core", *(self.names[argument] for argument in block.args)])
        rings = [f"    q{number} = 0" for number in range(self.loops)]
        return "\n".join([f"def kernel({parameters}):", "    pass", *rings, *self.lines, ""])

    def _line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def _block(self, block: Block, depth: int, ring: str) -> None:
        for op in block.ops:
            if isinstance(op, tile.ForOp):
                self._loop(op, depth)
            elif isinstance(op, tile.AllocOp):
                self._buffer(op, ring)
            elif isinstance(op, tile.GridOp):
                self._grid(op, depth)
            elif isinstance(op, tile.ScalarOp):
                self._scalar(op, depth)
            elif isinstance(op, tile.TileOp):
                self._op(op, depth)

    def _loop(self, op: tile.ForOp, depth: int) -> None:
        number, self.loops = self.loops, self.loops + 1
        step = op.step.data
        count = self.expression(op.bound.data[0], op.indices)
        self.names[op.index] = f"x{number}"
        self._line(depth, f"for x{number} in range(0, (-(-({count}) // {step}) + {op.more_trips}) * {step}, {step}):")
        self._block(op.body.block, depth + 1, f"q{number}")
        self._line(depth + 1, f"q{number} += 1")

    def _grid(self, op: tile.GridOp, depth: int) -> None:
        """The coordinates of the core."""
        for coordinate, step, size in zip(op.coordinates, op.steps, (None, *op.sizes.data), strict=True):
            name = self.names[coordinate] = f"g{len(self.names)}"
            self._line(depth, f"{name} = core // {step}" + (f" % {size}" if size is not None else ""))

    def _scalar(self, op: tile.ScalarOp, depth: int) -> None:
        a, b = (self.expression(value, op.indices) for value in op.values.data)
        name = self.names[op.result] = f"g{len(self.names)}"
        fn = op.fn.data
        self._line(depth, f"{name} = " + (f"({a}) // ({b})" if fn == "div" else f"{fn}({a}, {b})"))

    def _buffer(self, op: tile.AllocOp, ring: str) -> None:
        kind, number = op.buffer.type, len(self.memories)
        unit = 4 if kind.space.data in _IMAGES else kind.esize
        step = -(-kind.elements * unit // kind.per_byte // 64) * 64
        slots = kind.slots.data if ring else 1
        raw = np.full(step * slots + 192, 0xFF, np.uint8)
        self.memories[number] = raw[-raw.ctypes.data % 64 :]
        address = f"P{number} + ({ring} - {{ago}}) % {slots} * {step}" if slots > 1 else f"P{number}"
        self.places[op.buffer] = Place(address, unit, kind.elements, kind.dtype)

    def expression(self, value: Expr, indices: Sequence[SSAValue]) -> str:
        def name(variable: str) -> str:
            return self.names[indices[int(variable[1:])]] if variable.startswith("i") else variable

        terms = ["*".join([str(t.coef), *(name(v) for v in (t.x, t.y) if v != ONE)]) for t in value.terms]
        total = " + ".join([str(value.base), *terms])
        return f"max(0, min({total}, {value.clamp}))" if value.clamp is not None else total

    # ops ------------------------------------------------------------------------------------------------------------
    def _op(self, op: tile.TileOp, depth: int) -> None:
        number = len(self.ops)
        self.ops.append(op)
        for axis, extent in enumerate(op.extents.data):
            self._line(depth, f"n{axis} = {self.expression(extent, op.indices)}")
        self._line(depth, "if " + " and ".join(f"n{axis} > 0" for axis in range(len(op.extents.data))) + ":")
        if op.INSTRUCTION == "feed_q":
            self._line(depth + 1, f"k0 = {self.fields(op)['k0']}")
        for position in range(len(op.buffers)):
            self._box(op, number, position, depth + 1)
        for line in _CALLS[type(op)](self, op):
            self._line(depth + 1, line)

    def _box(self, op: tile.TileOp, number: int, position: int, depth: int) -> None:
        """The address of a box, checked."""
        place, role = self.places[op.buffers[position]], op.OPERANDS[position].role
        offset = self.expression(op.offsets.data[position], op.indices)
        self._line(depth, f"o = {offset}")
        reach = _reach(op, position)
        low = " + ".join(["o", *(f"({n}-1)*{s}" for n, s in reach if s < 0)])
        high = " + ".join(["o", *(f"({n}-1)*{s}" for n, s in reach if s > 0)])
        if op.INSTRUCTION != "im2col" or role != "src":
            leaves = f"{low} < 0 or {high} >= {place.elements}"
            self._line(depth, f"if {leaves}: fail({number}, {position}, {low}, {high})")
        self._line(depth, f"{role} = {place.address.format(ago=op.skew(position))} + {place.offset}")

    def fail(self, number: int, position: int, low: int, high: int) -> None:
        """Raises the error of a box that leaves its buffer."""
        op = self.ops[number]
        role, size = op.OPERANDS[position].role, op.kind(position).elements
        where = f"tile.kernel @{self.kernel.sym_name.data}: op {number}, {op.name}"
        raise EvaluationError(f"{where}: {role} lies within its {size} elements (found {low} to {high})")

    def fields(self, op: tile.TileOp) -> dict[str, str]:
        """Named fields as Python, with defaults."""
        spec = BY_NAME[op.INSTRUCTION]
        named = {f.name: str(f.default or 0) for f in spec.fields if f.name in op.FIELDS.split()}
        return named | {name: self.expression(value, op.indices) for name, value in op.named}

    def operand(self, op: tile.TileOp, role: str) -> str:
        """`address, stride, stride, stride, type` of a vector operand; zeros if it is not there."""
        position = op.roles.get(role)
        if position is None:
            return _ABSENT
        place = self.places[op.buffers[position]]
        strides = [0] * (3 - len(op.strides.data[position])) + [s * place.unit for s in op.strides.data[position]]
        return f"{role}, {', '.join(map(str, strides))}, {DTYPES[place.dtype]}"


def _reach(op: tile.TileOp, position: int) -> list[tuple[str, int]]:
    """(extent, stride) of the axes that a box walks."""
    rule, strides = op.OPERANDS[position], op.strides.data[position]
    if op.INSTRUCTION == "mma_dw":
        return {
            "dst": [("n0", strides[0]), ("n1*16", 1)],
            "a": [("n0", strides[0]), ("n1*n2*16", 1)],
            "b": [("n1*n2*16", 1)],
        }[rule.role]
    if op.INSTRUCTION in INDIRECT and op.kind(position).space.data == "gm":
        runs = zip(("n0", "n1", "n2", "n3"), strides[1:], strict=True)
        return [(str(op.field("rows").base), strides[0]), *runs]
    if rule.role in ("scale", "zero"):
        return [("n1", strides[0]), (f"((k0 + n0 - 1)//{op.field('block').base} + 1)", 1)]
    if rule.role == "state":
        return [("n0*n2*8", 1)]
    axes = rule.axes if rule.axes is not None else tuple(range(len(op.extents.data)))
    return [(f"n{axis}", stride) for axis, stride in zip(axes, strides[-len(axes) :], strict=True) if axis >= 0]


def _three(op: tile.TileOp) -> str:
    """Three extents, outer ones 1."""
    rank = len(op.extents.data)
    return ", ".join(["1"] * (3 - rank) + [f"n{axis}" for axis in range(rank)])


def _copied(w: _Writer, op: tile.TileOp) -> list[str]:
    extents = [f"n{axis}" for axis in range(len(op.extents.data))]
    dst, src = ([s * op.kind(p).esize for s in op.strides.data[p]] for p in (0, 1))
    if op.kind(0).dtype in tile.HALVES:
        extents[-1] = f"(n{len(extents) - 1} + 1)//2"
        dst, src = ([s if s == 1 else s // 2 for s in strides] for strides in (dst, src))
    return [f"copy(dst, {tuple(dst)}, src, {tuple(src)}, ({', '.join(extents)},), {op.kind(0).esize})"]


def _filled(w: _Writer, op: tile.TileOp) -> list[str]:
    extents = ", ".join(f"n{axis}" for axis in range(len(op.extents.data)))
    size = op.kind(0).esize
    return [
        f"fill(dst, {tuple(s * size for s in op.strides.data[0])}, ({extents},), {size}, {w.fields(op)['pattern']})"
    ]


def _fed(w: _Writer, op: tile.TileOp) -> list[str]:
    """Widened to words: f32 of floats, i32 of integers."""
    word = "i32" if op.kind(0).dtype in ("i8", "u8") else "f32"
    target, source = op.strides.data[0], op.strides.data[1]
    size = op.kind(1).esize
    a = f"src, 0, {source[0] * size}, {source[1] * size}, {DTYPES[op.kind(1).dtype]}"
    d = f"dst, 0, {target[0] * 4}, {target[1] * 4}, {DTYPES[word]}"
    return [f"vmap(0, 1, n0, n1, {d}, {a}, {_ABSENT}, {_ABSENT}, 0.0, 0.0, 1, 1, S, C)"]


def _dequantised(w: _Writer, op: tile.TileOp) -> list[str]:
    dst, src, scale = (op.kind(p) for p in range(3))
    source = f"src, {op.strides.data[1][1] * src.esize // src.per_byte}, {src.dtype!r}"
    scales = f"scale, {op.strides.data[2][0] * scale.esize}, {scale.dtype!r}"
    zeros = f"zero, {op.strides.data[3][0]}" if "zero" in op.roles else "0, 0"
    block = op.field("block").base
    return [
        f"dequantise(dst, {op.strides.data[0][0]}, {dst.dtype!r}, {source}, {scales}, {zeros}, n0, n1, k0, {block})"
    ]


def _unfolded(w: _Writer, op: tile.TileOp) -> list[str]:
    fields = w.fields(op)
    row, pixel, _ = op.strides.data[1]
    place = w.places[op.buffers[1]]
    geometry = ", ".join(f"{name}={value}" for name, value in fields.items())
    number = len(w.ops) - 1
    base = place.address.format(ago=op.skew(1))
    return [
        "def reach(low, high):",
        f"    if o + low < 0 or o + high >= {place.elements}: fail({number}, 1, o + low, o + high)",
        f"panel = {base}, o, {place.elements}, {row}, {pixel}, {place.dtype!r}",
        f"im2col(dst, {op.strides.data[0][0]}, *panel, n0, n1, reach, {geometry})",
    ]


def _multiplied(w: _Writer, op: tile.TileOp) -> list[str]:
    """The product writes whole blocks of 16 columns; one that begins inside a block goes by a temporary."""
    name = "gemm_int" if op.kind(0).dtype == "i32" else "gemm"
    c, a, b = (op.strides.data[p][0] for p in range(3))
    init, offset = w.fields(op)["init"], op.offsets.data[0]
    if not any(step % 16 for step in (offset.base, *(term.coef for term in offset.terms))):
        return [f"{name}(a, {a}, b, {b}, dst, {c}, n0, n2, n1, {init})"]
    here, there = f"dst, {(4 * c, 4)}", "T, (4*W, 4)"
    return [
        "W = -(-n1 // 16) * 16",
        "T = temporary(n0*W)",
        f"copy({there}, {here}, (n0, n1), 4)",
        f"{name}(a, {a}, b, {b}, T, W, n0, n2, n1, {init})",
        f"copy({here}, {there}, (n0, n1), 4)",
    ]


def _depthwise(w: _Writer, op: tile.TileOp) -> list[str]:
    c, a = op.strides.data[0][0], op.strides.data[1][0]
    return [f"depthwise(a, {a}, b, dst, {c}, n0, n2, n1 * 16, {w.fields(op)['init']})"]


def _folded(w: _Writer, op: tile.TileOp) -> list[str]:
    return [f"fold(dst, src, {op.strides.data[0][0]}, n0, n1, {w.fields(op)['init']})"]


def _drained(w: _Writer, op: tile.TileOp) -> list[str]:
    """Scale, bias, activation as vector functions over a temporary in f32; the last one casts."""
    f = w.fields(op)
    steps: list[tuple[int, str, str, str]] = []
    if f["scaled"] != "0":
        steps.append((CODES["mul"], _ABSENT, f"{_float(f['scale'])}, 0.0", "1"))
    if "bias" in op.roles:
        steps.append((CODES["add"], f"bias, 0, 0, {4 * op.strides.data[2][-1]}, 2", "0.0, 0.0", "0"))
    if f["act"] == "1":
        steps.append((CODES["relu"], _ABSENT, "0.0, 0.0", "1"))
    elif f["act"] == "2":
        steps.append((CODES["clip"], _ABSENT, f"{_float(f['lo'])}, {_float(f['hi'])}", "1"))
    if not steps or op.kind(1).dtype == "i32":
        steps.insert(0, (CODES["copy"], _ABSENT, "0.0, 0.0", "1"))
    current = f"src, 0, {op.strides.data[1][0] * 4}, 4, {DTYPES[op.kind(1).dtype]}"
    lines = ["T = temporary(n0*n1)"]
    for number, (fn, b, immediates, bimm) in enumerate(steps):
        target = "T, 0, n1*4, 4, 2"
        if number == len(steps) - 1:
            size = op.kind(0).esize
            target = (
                f"dst, 0, {op.strides.data[0][0] * size}, {op.strides.data[0][1] * size}, {DTYPES[op.kind(0).dtype]}"
            )
        lines.append(f"vmap({fn}, 1, n0, n1, {target}, {current}, {b}, {_ABSENT}, {immediates}, {bimm}, 1, S, C)")
        current = "T, 0, n1*4, 4, 2"
    return lines


def _float(bits: str) -> str:
    return f"float({np.array(int(bits), np.uint32).view(np.float32).item()!r})"


def _mapped(w: _Writer, op: tile.TileOp) -> list[str]:
    f = w.fields(op)
    operands = ", ".join(w.operand(op, role) for role in ("dst", "a", "b", "c"))
    flags = ", ".join("0" if role in op.roles else "1" for role in ("b", "c"))
    return [f"vmap({f['fn']}, {_three(op)}, {operands}, {_float(f['immb'])}, {_float(f['immc'])}, {flags}, S, C)"]


def _reduced(w: _Writer, op: tile.TileOp) -> list[str]:
    f = w.fields(op)
    d0, _, d2 = (s * op.kind(0).esize for s in op.strides.data[0])
    state = "state" if "state" in op.roles else "0"
    target = f"dst, {d0}, {d2}, {DTYPES[op.kind(0).dtype]}"
    cut = f"{state}, 0, {f['start']}, {f['first']}, {f['last']}"
    return [f"vreduce({f['fn']}, n0, n1, n2, {target}, {w.operand(op, 'a')}, {cut}, S, C)"]


def _counted(w: _Writer, op: tile.TileOp) -> list[str]:
    f = w.fields(op)
    return [f"iota({w.operand(op, 'dst')}, {_three(op)}, {f['base']}, {f['c0']}, {f['c1']}, {f['c2']}, S)"]


def _indirect(w: _Writer, op: tile.TileOp) -> list[str]:
    size, (dst, src, index) = op.kind(0).esize, op.strides.data
    boxes = [tuple(s * size for s in strides) for strides in (dst, src)]
    rows, gathers = op.field("rows").base, op.INSTRUCTION == "gather"
    places = f"index, {tuple(4 * s for s in index)}, {rows}"
    return [f"indirect(dst, {boxes[0]}, src, {boxes[1]}, {places}, (n0, n1, n2, n3), {size}, {gathers})"]


_CALLS: dict[type[tile.TileOp], Callable[[_Writer, Any], list[str]]] = {
    tile.LoadOp: _copied,
    tile.StoreOp: _copied,
    tile.MoveOp: _copied,
    tile.FillOp: _filled,
    tile.FeedAOp: _fed,
    tile.FeedBOp: _fed,
    tile.FeedQOp: _dequantised,
    tile.Im2colOp: _unfolded,
    tile.MmaOp: _multiplied,
    tile.MmaDwOp: _depthwise,
    tile.FoldOp: _folded,
    tile.DrainOp: _drained,
    tile.MapOp: _mapped,
    tile.ReduceOp: _reduced,
    tile.IotaOp: _counted,
    tile.GatherOp: _indirect,
    tile.ScatterOp: _indirect,
}
