"""Writing tile kernels in Python: loops, buffers, boxes.

    k = KernelBuilder("scale")
    x, y = k.argument((1000, 64), "f16"), k.argument((1000, 64), "f16")
    with k.loop(1000, step=128) as m:
        t = k.alloc((128, 64), "f16", "ub", slots=2)
        rows = k.clamp(1000 - m, 128)
        k.load(t[0, 0], x[m, 0], (rows, 64))
        k.map("relu", t[0, 0], t[0, 0], extents=(rows, 64))
        k.store(y[m, 0], t[0, 0], (rows, 64))
    kernel = k.finish()                     # a tile.kernel op

Indices count elements (0, step, 2·step …) and combine with `+ − *` into affine expressions. Every op is verified when
it is built.
"""

import struct
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import floordiv
from typing import Any

from xdsl.builder import Builder
from xdsl.dialects.builtin import IndexType, LocationAttr, UnknownLoc
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from ...runtime.expr import Expr, Term, merge
from ...runtime.isa import ACTIVATIONS, BY_NAME, DTYPES, REDUCTIONS
from ...runtime.numerics.functions import CODES
from . import engine_ops, ops
from .attributes import BufferType

CORE = "core"


@dataclass(frozen=True, slots=True)
class Affine:
    """base + Σ coef·x·y over loop indices (SSA values) and "core", clamped to [0, limit] if there is a limit."""

    base: int = 0
    terms: tuple[tuple[int, SSAValue | str, SSAValue | str | None], ...] = ()
    limit: int | None = None

    def __add__(self, other: "Affine | int") -> "Affine":
        other = other if isinstance(other, Affine) else Affine(other)
        if self.limit is not None or other.limit is not None:
            raise ValueError("a clamped expression cannot be added to")
        return Affine(self.base + other.base, self.terms + other.terms)

    __radd__ = __add__

    def __neg__(self) -> "Affine":
        return self * -1

    def __sub__(self, other: "Affine | int") -> "Affine":
        return self + (-other)

    def __rsub__(self, other: int) -> "Affine":
        return -self + other

    def __mul__(self, other: "Affine | int") -> "Affine":
        """Times a constant, or the product of two plain indices."""
        if isinstance(other, int):
            return Affine(self.base * other, tuple((coef * other, x, y) for coef, x, y in self.terms))
        products = [(a * b, x, y) for a, x, xx in self.terms for b, y, yy in other.terms if xx is None and yy is None]
        if self.base or other.base or len(products) != len(self.terms) * len(other.terms):
            raise ValueError("only plain indices can be multiplied with each other")
        return Affine(0, tuple(products))

    __rmul__ = __mul__


Index = Affine | int


@dataclass(frozen=True, slots=True)
class Box:
    """A place in a buffer: element offset and element strides; `ago` selects an earlier slot (software pipelines)."""

    buffer: SSAValue
    offset: Affine
    strides: tuple[int, ...]
    ago: int = 0


@dataclass(frozen=True, slots=True)
class Buffer:
    """An argument or an on-chip buffer. `b[i, j]` is the row-major box that begins there."""

    value: SSAValue

    @property
    def kind(self) -> BufferType:
        assert isinstance(self.value.type, BufferType)
        return self.value.type

    @property
    def strides(self) -> tuple[int, ...]:
        """Row-major; rows of L0B and L0C are padded to 16 elements."""
        return self.kind.strides

    def __getitem__(self, starts: Index | tuple[Index, ...]) -> Box:
        starts = starts if isinstance(starts, tuple) else (starts,)
        if len(starts) != len(self.strides):
            raise IndexError(f"{len(starts)} indices for a buffer of rank {len(self.strides)}")
        offset = Affine()
        for start, stride in zip(starts, self.strides, strict=True):
            offset = offset + start * stride
        return Box(self.value, offset, self.strides)

    def box(self, offset: Index, *strides: int, ago: int = 0) -> Box:
        """A box by element offset and strides (0: broadcast)."""
        return Box(self.value, offset if isinstance(offset, Affine) else Affine(offset), strides, ago)


def float_bits(value: float) -> int:
    """The bits of an f32, as instruction fields hold them."""
    return struct.unpack("<I", struct.pack("<f", value))[0]


class KernelBuilder:
    """Builds one `tile.kernel`; see the module."""

    def __init__(self, name: str, location: LocationAttr | None = None):
        self.kernel = ops.KernelOp(name, [])
        self.location: LocationAttr = location or UnknownLoc()
        self._builder = Builder(InsertPoint.at_end(self.kernel.body.block))

    # structure ------------------------------------------------------------------------------------------------------
    def argument(self, shape: Sequence[int], dtype: str, name: str | None = None) -> Buffer:
        """A buffer in global memory; arguments are passed in this order."""
        block = self.kernel.body.block
        value = block.insert_arg(BufferType.of(shape, dtype, "gm"), len(block.args))
        value.name_hint = name
        return Buffer(value)

    def scalar(self, name: str | None = None) -> Affine:
        """An index scalar argument (a length, an offset); it may stand in any expression."""
        block = self.kernel.body.block
        value = block.insert_arg(IndexType(), len(block.args))
        value.name_hint = name
        return Affine(0, ((1, value, None),))

    @contextmanager
    def loop(self, bound: Index, step: int = 1, add: int = 0) -> Generator[Affine]:
        """A loop whose index runs 0, step, … below `bound` (+ `add` more iterations); yields the index."""
        expressions, indices = self._expressions([bound])
        op = ops.ForOp(expressions[0], step, indices, add)
        self._insert(op)
        outer, self._builder = self._builder, Builder(InsertPoint.at_end(op.body.block))
        try:
            yield Affine(0, ((1, op.index, None),))
        finally:
            self._builder = outer

    def alloc(self, shape: Sequence[int], dtype: str, space: str, slots: int = 1, name: str | None = None) -> Buffer:
        """An on-chip buffer that belongs to the loop being built; `slots` > 1: multi-buffered over its iterations."""
        op = ops.AllocOp(BufferType.of(shape, dtype, space, slots))
        op.buffer.name_hint = name
        self._insert(op)
        return Buffer(op.buffer)

    @staticmethod
    def clamp(value: Index, limit: int) -> Affine:
        """max(0, min(value, limit))."""
        value = value if isinstance(value, Affine) else Affine(value)
        return Affine(value.base, value.terms, limit)

    @staticmethod
    def core() -> Affine:
        """The number of the core that runs the kernel."""
        return Affine(0, ((1, CORE, None),))

    def grid(self, *sizes: int) -> tuple[Affine, ...]:
        """Coordinates of the core in a grid, the last one varies fastest; `sizes` of all but the first. Outside all
        loops."""
        op = ops.GridOp(sizes)
        self._insert(op)
        op.verify()
        return tuple(Affine(0, ((1, coordinate, None),)) for coordinate in op.coordinates)

    def smaller(self, a: Index, b: Index) -> Affine:
        """min(a, b), as an index."""
        return self._scalar("min", a, b)

    def larger(self, a: Index, b: Index) -> Affine:
        """max(a, b), as an index."""
        return self._scalar("max", a, b)

    def quotient(self, a: Index, b: int) -> Affine:
        """a / b rounded down, as an index; b > 0."""
        return self._scalar("div", a, b)

    def _scalar(self, fn: str, a: Index, b: Index) -> Affine:
        x, y = (value if isinstance(value, Affine) else Affine(value) for value in (a, b))
        if x == Affine(x.base) and y == Affine(y.base):
            return Affine({"min": min, "max": max, "div": floordiv}[fn](x.base, y.base))
        (first, second), indices = self._expressions([x, y])
        op = ops.ScalarOp(fn, first, second, indices)
        self._insert(op)
        op.verify()
        return Affine(0, ((1, op.result, None),))

    def finish(self) -> ops.KernelOp:
        """The finished kernel, verified: the ops of engines were when they were built."""
        for op in self.kernel.walk():
            if not isinstance(op, ops.TileOp):
                op.verify(verify_nested_ops=False)
        return self.kernel

    # engines --------------------------------------------------------------------------------------------------------
    # Each method emits the op of its name; `engine_ops.py` says what it does. Box offsets and strides are in elements.
    def load(self, dst: Box, src: Box, extents: Sequence[Index]) -> None:
        self._emit(engine_ops.LoadOp, [dst, src], extents)

    def store(self, dst: Box, src: Box, extents: Sequence[Index]) -> None:
        self._emit(engine_ops.StoreOp, [dst, src], extents)

    def move(self, dst: Box, src: Box, extents: Sequence[Index]) -> None:
        self._emit(engine_ops.MoveOp, [dst, src], extents)

    def fill(self, dst: Box, extents: Sequence[Index], pattern: int = 0) -> None:
        self._emit(engine_ops.FillOp, [dst], extents, pattern=pattern)

    def feed_a(self, dst: Box, src: Box, extents: Sequence[Index]) -> None:
        self._emit(engine_ops.FeedAOp, [dst, src], extents)

    def feed_b(self, dst: Box, src: Box, extents: Sequence[Index]) -> None:
        self._emit(engine_ops.FeedBOp, [dst, src], extents)

    def feed_q(
        self, dst: Box, src: Box, scale: Box, zero: Box | None, extents: Sequence[Index], k0: Index, block: int
    ) -> None:
        boxes = [dst, src, scale, *([zero] if zero else [])]
        self._emit(engine_ops.FeedQOp, boxes, extents, k0=k0, block=block)

    def im2col(self, dst: Box, src: Box, extents: Sequence[Index], **geometry: Index) -> None:
        """Geometry: the fields m0, k0, ow, kh, kw, channels, c0, sh, sw, dh, dw, ph, pw, row0, h, w, pad of the
        instruction.
        """
        self._emit(engine_ops.Im2colOp, [dst, src], extents, **geometry)

    def mma(self, dst: Box, a: Box, b: Box, extents: Sequence[Index], init: Index) -> None:
        self._emit(engine_ops.MmaOp, [dst, a, b], extents, init=init)

    def mma_dw(self, dst: Box, a: Box, b: Box, extents: Sequence[Index], init: Index) -> None:
        self._emit(engine_ops.MmaDwOp, [dst, a, b], extents, init=init)

    def fold(self, dst: Box, src: Box, extents: Sequence[Index], init: Index) -> None:
        self._emit(engine_ops.FoldOp, [dst, src], extents, init=init)

    def drain(
        self,
        dst: Box,
        src: Box,
        extents: Sequence[Index],
        *,
        bias: Box | None = None,
        scale: float | None = None,
        act: str = "none",
        lo: float = 0.0,
        hi: float = 0.0,
    ) -> None:
        fields: dict[str, Index] = {"act": ACTIVATIONS[act]}
        if scale is not None:
            fields |= {"scaled": 1, "scale": float_bits(scale)}
        if act == "clip":
            fields |= {"lo": float_bits(lo), "hi": float_bits(hi)}
        self._emit(engine_ops.DrainOp, [dst, src, *([bias] if bias else [])], extents, **fields)

    def map(
        self,
        fn: str,
        dst: Box,
        a: Box,
        b: Box | float | None = None,
        c: Box | float | None = None,
        *,
        extents: Sequence[Index],
    ) -> None:
        """dst = fn(a, b, c); a float is an immediate. If c is a box, b is one too (`where`: a is the condition)."""
        fields: dict[str, Index] = {"fn": CODES[fn]}
        boxes = [dst, a]
        if isinstance(c, Box) and not isinstance(b, Box):
            raise ValueError("map: if c is a box, b is one too")
        for name, operand in (("immb", b), ("immc", c)):
            if isinstance(operand, Box):
                boxes.append(operand)
            elif operand is not None:
                fields[name] = float_bits(operand)
        self._emit(engine_ops.MapOp, boxes, extents, **fields)

    def reduce(
        self,
        fn: str,
        dst: Box,
        a: Box,
        extents: Sequence[Index],
        *,
        state: Box | None = None,
        start: Index = 0,
        first: Index = 1,
        last: Index = 1,
    ) -> None:
        self._emit(
            engine_ops.ReduceOp,
            [dst, a, *([state] if state else [])],
            extents,
            fn=REDUCTIONS[fn],
            start=start,
            first=first,
            last=last,
        )

    def iota(self, dst: Box, extents: Sequence[Index], base: Index, coefficients: Sequence[int]) -> None:
        self._emit(
            engine_ops.IotaOp,
            [dst],
            extents,
            base=base,
            **{f"c{axis}": c for axis, c in enumerate(coefficients, 3 - len(extents))},
        )

    def gather(self, dst: Box, src: Box, index: Box, extents: Sequence[Index], rows: int) -> None:
        self._emit(engine_ops.GatherOp, [dst, src, index], extents, rows=rows)

    def scatter(self, dst: Box, src: Box, index: Box, extents: Sequence[Index], rows: int) -> None:
        self._emit(engine_ops.ScatterOp, [dst, src, index], extents, rows=rows)

    # ------------------------------------------------------------------------------------------------------------------
    def _emit(self, kind: type[ops.TileOp], boxes: Sequence[Box], extents: Sequence[Index], **fields: Index) -> None:
        values = [*extents, *(box.offset for box in boxes), *fields.values()]
        expressions, indices = self._expressions(values)
        n, b = len(extents), len(boxes)
        spec = BY_NAME[kind.INSTRUCTION]
        given = zip(fields, expressions[n + b :], strict=True)
        named = {name: value for name, value in given if value != Expr(spec.fields[spec.index(name)].default or 0)}
        op = kind(
            [box.buffer for box in boxes],
            indices,
            expressions[:n],
            expressions[n : n + b],
            [box.strides for box in boxes],
            named,
            [box.ago for box in boxes],
        )
        self._insert(op)
        op.verify()

    def _insert(self, op: Operation) -> None:
        op.location = self.location
        self._builder.insert(op)

    def _expressions(self, values: Sequence[Any]) -> tuple[list[Expr], list[SSAValue]]:
        """Field expressions over the op's own list of index operands."""
        order: list[SSAValue] = []

        def name(variable: SSAValue | str | None) -> str:
            if variable is None:
                return ""
            if isinstance(variable, str):
                return variable
            if variable not in order:
                order.append(variable)
            return f"i{order.index(variable)}"

        expressions: list[Expr] = []
        for value in values:
            affine = value if isinstance(value, Affine) else Affine(int(value))
            terms = merge(tuple(Term(coef, name(x), name(y)) for coef, x, y in affine.terms))
            expressions.append(Expr(affine.base, terms, affine.limit))
        return expressions, order


__all__ = ["DTYPES", "Affine", "Box", "Buffer", "Index", "KernelBuilder", "float_bits"]
