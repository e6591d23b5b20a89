"""`GraphOp`: everything about an operator that holds for every machine stands in its one class.

    identity     name, docstring with the smallest IR example, operands, properties (IRDL)
    ONNX         ONNX: names with the first and last opset of this form; `from_onnx` reads the node's attributes
    shapes       infer: result shapes and default element type from the operands; used by builder, verifier and importer
    values       reference: numpy float64, sharing no code with the numerics; evaluate: the bits of docs/numerics.md
    structure    exactly one of loops (a loop nest), view (a re-indexing), recurrence (a loop nest in each of many time
                 steps), decompose (into other graph ops)

A class that lacks a facet, or has two structures, does not define: `TypeError` at import. So an ordinary operator is
one class and one test file.
"""

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, IntegerType, Signedness, TensorType, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, traits_def
from xdsl.parser import Parser
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...runtime.problem import Kind
from ..loops import LoopNest
from ..recurrence import Recurrence
from .syntax import parse_op, print_op

Array = NDArray[Any]
Tensor = TensorType[Attribute]

f16, bf16, f32 = Float16Type(), BFloat16Type(), Float32Type()
i8, i32, i64, u8 = IntegerType(8), IntegerType(32), IntegerType(64), IntegerType(8, Signedness.UNSIGNED)
i16, u16 = IntegerType(16), IntegerType(16, Signedness.UNSIGNED)
u32, u64 = IntegerType(32, Signedness.UNSIGNED), IntegerType(64, Signedness.UNSIGNED)
DTYPE_NAMES: dict[Attribute, str] = {
    f16: "f16",
    bf16: "bf16",
    f32: "f32",
    i8: "i8",
    u8: "u8",
    i32: "i32",
    i1: "b8",
    i64: "i64",
    i16: "i16",
    u16: "u16",
    u32: "u32",
    u64: "u64",
}
"""Element types of the dialect by their name in docs/numerics.md."""
BORDER = (i64, i16, u16, u32, u64)
"""Types that stand at the border of a model only: inside, they are i32."""
FLOATS = (f16, bf16, f32)


class InferError(ValueError):
    """The node is of a form that is not supported: `<rule> (found <what>)`. Callers add the node and what to do.

    `broken`: ONNX itself forbids it, so that the file is to be mended and not the operator to be avoided.
    """

    KIND: ClassVar[Kind] = Kind.OPERATOR
    BROKEN: ClassVar[bool] = False

    def __init__(self, rule: str, broken: bool | None = None) -> None:
        super().__init__(rule)
        self.broken = self.BROKEN if broken is None else broken


class ShapeError(InferError):
    """Shapes or sizes that do not fit together."""

    KIND: ClassVar[Kind] = Kind.SHAPE
    BROKEN: ClassVar[bool] = True


class DtypeError(InferError):
    """Types of elements that the operator does not take."""

    KIND: ClassVar[Kind] = Kind.DTYPE


class SizeError(InferError):
    """More than any memory is for."""

    KIND: ClassVar[Kind] = Kind.MEMORY


@dataclass(frozen=True, slots=True)
class Onnx:
    """An ONNX operator that an op class stands for, from opset `since` to `until` (None: still valid)."""

    name: str
    since: int = 1
    until: int | None = None
    domain: str = ""


@dataclass(frozen=True, slots=True)
class Reshape:
    """Same elements in row-major order under another shape: no bytes move."""

    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Strided:
    """out[i] = in[offset + Σ i·step] per axis, after a permutation.

    Axis j of out reads axis `axes[j]` of in from `starts[j]` by `steps[j]` (0: broadcast).
    """

    shape: tuple[int, ...]
    axes: tuple[int | None, ...]
    starts: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Join:
    """Operands laid one after the other along `axis`."""

    axis: int


@dataclass(frozen=True, slots=True)
class Frame:
    """The operand inside a larger tensor of one `value`: `before` elements of it on each axis, and what is left."""

    shape: tuple[int, ...]
    before: tuple[int, ...]
    value: float


@dataclass(frozen=True, slots=True)
class Lookup:
    """out[…] = in[…, row, …] where row = index[…], counted from the end if it is negative.

    Axis j of out walks axis `axes[j]` of in and axis `indices[j]` of index (None: none of it); `axis` is that of the
    rows.
    """

    shape: tuple[int, ...]
    axes: tuple[int | None, ...]
    indices: tuple[int | None, ...]
    axis: int


@dataclass(frozen=True, slots=True)
class Placement:
    """out = in, but out[…, row, …] = update[…] where row = index[…], counted from the end if it is negative; the last
    of several counts. Operands: in, index, update.

    Axis j of update walks axis `axes[j]` of out and axis `indices[j]` of index, as in a `Lookup`.
    """

    axes: tuple[int | None, ...]
    indices: tuple[int | None, ...]
    axis: int


View = Reshape | Strided | Join | Frame | Lookup | Placement

_STRUCTURES = ("loops", "view", "recurrence", "decompose")
_REQUIRED = ("infer", "reference")


class GraphOp(IRDLOperation, ABC):
    """Base of all operators of the graph dialect; see the module."""

    ONNX: ClassVar[tuple[Onnx, ...]] = ()
    EXAMPLE: ClassVar[str] = ""
    """The smallest IR example; printed into the documentation and parsed by the tests."""

    traits = traits_def(Pure())

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            return  # a family base, not an operator
        missing = [facet for facet in _REQUIRED if getattr(cls, facet) is getattr(GraphOp, facet)]
        structures = [facet for facet in _STRUCTURES if getattr(cls, facet) is not getattr(GraphOp, facet)]
        if missing or len(structures) != 1 or not (cls.__doc__ or "").strip():
            raise TypeError(
                f"{cls.__name__}: an operator defines infer, reference, a docstring, one of {', '.join(_STRUCTURES)}; "
                f"missing {', '.join(missing) or 'none'}, structures {', '.join(structures) or 'none'}"
            )

    # shapes -----------------------------------------------------------------------------------------------------------
    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        """Result types: shape, and the default element type. Raises `InferError`."""
        raise NotImplementedError

    @classmethod
    def normalize(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
        """The form of `properties` that IR holds: axes count from 0, what hangs on operands' shapes is filled in."""
        return properties

    @classmethod
    def build_op(
        cls,
        operands: Sequence[SSAValue],
        properties: Mapping[str, Attribute] | None = None,
        element: Attribute | None = None,
    ) -> Self:
        """The op with inferred result types; `element` overrides the element type of every result (the edge's type)."""
        inputs = [tensor(value) for value in operands]
        properties = dict(cls.normalize(inputs, properties or {}))
        types = cls.infer(inputs, properties)
        if element is not None:
            types = [TensorType(element, t.get_shape()) for t in types]
        return cls.create(operands=list(operands), properties=properties, result_types=list(types))

    def verify_(self) -> None:
        try:
            inferred = self.infer([tensor(value) for value in self.operands], self.properties)
        except InferError as error:
            raise VerifyException(str(error)) from None
        for result, expected in zip(self.results, inferred, strict=True):
            if tensor(result).get_shape() != expected.get_shape():
                raise VerifyException(
                    f"result has shape {shape_text(result)}, its operands give {shape_text(expected)}"
                )

    # text -------------------------------------------------------------------------------------------------------------
    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return parse_op(cls, parser)

    def print(self, printer: Printer) -> None:
        print_op(self, printer)

    # ONNX -------------------------------------------------------------------------------------------------------------
    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        """Reads a node: (indices of the node's inputs that become operands, properties).

        `constants` holds the value of each input that is a constant (None otherwise), of an absent one an empty array.
        Raises `InferError` for what the form does not support.
        """
        if node:
            raise InferError(f"no attributes are known here (found {', '.join(sorted(node))})")
        return list(range(len(constants))), {}

    # values -----------------------------------------------------------------------------------------------------------
    def reference(self, *operands: Any, **_: Any) -> Array:
        """The result in plain numpy, float64 inside; no rounding rules."""
        raise NotImplementedError

    def evaluate(self, *operands: Array) -> Array:
        """The result by docs/numerics.md, to the bit; from the structure (`dialects/evaluate.py`) unless overridden."""
        from ..evaluate import evaluate_structure

        return evaluate_structure(self, operands)[0]

    def reference_all(self, *operands: Any) -> Sequence[Array]:
        """Every result by `reference`; an op of several results defines this one."""
        return [self.reference(*operands)]

    def evaluate_all(self, *operands: Array) -> Sequence[Array]:
        """Every result by `evaluate`; an op of several results defines this one."""
        return [self.evaluate(*operands)]

    # structure --------------------------------------------------------------------------------------------------------
    def loops(self) -> LoopNest:
        """The operator as one loop nest."""
        raise NotImplementedError

    def view(self) -> View:
        """The operator as a re-indexing of its operand."""
        raise NotImplementedError

    def recurrence(self) -> Recurrence:
        """The operator as one cell, run step by step."""
        raise NotImplementedError

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        """Replacement values, built from other graph ops inserted through the rewriter before this op."""
        raise NotImplementedError

    @classmethod
    def structure(cls) -> str:
        """`loops`, `view`, `recurrence` or `decompose`."""
        return next(facet for facet in _STRUCTURES if getattr(cls, facet) is not getattr(GraphOp, facet))


def tensor(value: SSAValue | Attribute) -> Tensor:
    """The tensor type of a value; raises `VerifyException` for any other type."""
    kind = value.type if isinstance(value, SSAValue) else value
    if not isinstance(kind, TensorType):
        raise VerifyException(f"expected a ranked tensor, found {kind}")
    return kind  # pyright: ignore[reportUnknownVariableType]


def shape(value: SSAValue | Attribute) -> tuple[int, ...]:
    """The extents of a tensor."""
    return tensor(value).get_shape()


def element(value: SSAValue | Attribute) -> Attribute:
    """The type of a tensor's elements."""
    return tensor(value).element_type


def dtype_name(value: SSAValue | Attribute) -> str:
    """`f16`, `f32`, … of the value's elements."""
    return DTYPE_NAMES[element(value)]


def shape_text(value: SSAValue | Attribute) -> str:
    """The extents for a message: `2×3`."""
    return "×".join(map(str, shape(value))) or "scalar"


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """numpy broadcasting; raises `InferError`."""
    try:
        return tuple(np.broadcast_shapes(*map(tuple, shapes)))
    except ValueError:
        raise ShapeError(
            "operands must broadcast together (found "
            + ", ".join("×".join(map(str, s)) or "scalar" for s in shapes)
            + ")"
        ) from None


def promote(types: Sequence[Tensor]) -> Attribute:
    """Default element type of an arithmetic result: the widest float, else the first operand's."""
    floats = [t.element_type for t in types if t.element_type in FLOATS]
    return max(floats, key=FLOATS.index) if floats else types[0].element_type
