"""The pass `precision`: gives each edge its element type. After it, no pass changes a bit."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint
from xdsl.rewriter import Rewriter as IRRewriter

from ..dialects.graph.arithmetic import AddOp, MulOp
from ..dialects.graph.constants import ELEMENTS, NUMPY, constant
from ..dialects.graph.elementwise import CastOp, ClipOp, Elementwise
from ..dialects.graph.flow import IfOp, LoopOp, declared_types
from ..dialects.graph.gather import GatherOp, IndexedOp
from ..dialects.graph.host import DownloadOp, UploadOp, host_type
from ..dialects.graph.op import FLOATS, Array, GraphOp, bf16, element, f16, f32, i32, i64, shape
from ..dialects.graph.properties import flag, number
from ..dialects.graph.quantize import BYTES
from ..dialects.graph.structure import LaunchOp
from ..dialects.graph.views import ViewOp
from .context import CompileContext, PassError, compile_context
from .score_masks import masks_of_scores
from .values import array_of, users

POLICIES: dict[str, Attribute] = {"fp16": f16, "bf16": bf16, "fp32": f32}
MOST_F16 = 65504.0
LEAST_F16 = 2.0**-14

CONTRACTIONS = frozenset(
    {
        *("graph.matmul", "graph.packed_matmul", "graph.gemm", "graph.conv", "graph.conv_transpose"),
        *("graph.conv2d", "graph.group_conv2d", "graph.depthwise2d"),
    }
)
"""Their first two operands have the low type; the others, biases, are f32."""
KEPT = {"graph.packed_matmul": (2,)}
"""Operands that keep their type: what packed integers stand for is rounded to that of their scales."""
RECURRENT = frozenset({"graph.lstm", "graph.gru", "graph.rnn"})
"""Their first three operands and their first result have the low type; biases and states are f32."""
TABLES = frozenset({"graph.resample"})
"""They move elements like views, of their first operand."""
EXACT = frozenset({"graph.grid_sample", "graph.quantize", "graph.requantize", "graph.dequantize", "graph.round_float"})
"""Their second operand, places or a scale, is f32, also by way of views."""
PLACING = frozenset(
    {
        *("graph.add", "graph.sub", "graph.mul", "graph.div", "graph.affine", "graph.neg", "graph.abs", "graph.where"),
        *("graph.max", "graph.min", "graph.clip", "graph.floor", "graph.ceil", "graph.round", "graph.cast"),
        *("graph.exp", "graph.sigmoid", "graph.tanh", "graph.relu"),
    }
)
"""What computes places in an image of others; a product of at most `MOST_COORDINATES` does too."""
MOST_COORDINATES = 4
MOST_STEPS = 255
"""Between a byte and its zero point."""
ROUNDING = frozenset({"graph.quantize", "graph.dynamic_scale"})
"""What makes bytes of floats: those that were bytes are not rounded on the way."""
BOUNDED = CONTRACTIONS | {
    *("graph.softmax", "graph.log_softmax", "graph.sigmoid", "graph.tanh", "graph.erf", "graph.hardsigmoid"),
    *("graph.sin", "graph.cos", "graph.sign", "graph.log", "graph.cast"),
    *("graph.asin", "graph.acos", "graph.atan", "graph.asinh", "graph.acosh", "graph.softsign"),
    *("graph.layer_norm", "graph.group_norm", "graph.instance_norm", "graph.batch_norm", "graph.rms_norm"),
    *("graph.mean_variance_norm", "graph.lp_norm", "graph.round_float"),
}
"""Safe ops: their results fit the low type whatever comes in."""
WIDENING = frozenset(
    {
        *("graph.exp", "graph.sinh", "graph.cosh", "graph.pow", "graph.cumsum", "graph.cumprod"),
        *("graph.reduce_sum", "graph.reduce_prod", "graph.reduce_l1", "graph.reduce_sum_square"),
    }
)
"""Their results may leave the low type's range though the operands are in it."""
SPECTRAL = CONTRACTIONS | {
    *("graph.add", "graph.sub", "graph.mul", "graph.div", "graph.affine", "graph.neg", "graph.abs", "graph.max"),
    *("graph.clip", "graph.pow", "graph.sqrt", "graph.reduce_sum", "graph.reduce_mean", "graph.reduce_l2"),
    *("graph.reduce_sum_square", "graph.batch_norm"),
}
"""What turns a signal into the powers of its frequencies."""
SENSITIVE = frozenset({"graph.sqrt", "graph.rsqrt", "graph.reciprocal", "graph.log", "graph.div", "graph.pow"})
"""A tiny constant that protects their operand must not be lost."""


_TAKES_BOTH = (ReturnOp, DownloadOp, IfOp, LoopOp)
"""Ops whose operands keep the type that they come in with."""


@dataclass(frozen=True)
class Precision(ModulePass):
    """Gives every float edge the type of the policy, but for islands of f32.

    Under `fp16`, an edge is f16 unless it is in an island. An island begins at an op with a constant that f16 cannot
    hold (a mask of −1e9, an ε of 1e-12 under a root), or whose results outgrow f16 (exp, squares, sums, the float of
    an i32), and ends at the next op whose results are bounded (softmax, tanh, a normalisation, a contraction …).
    The way from an input to a logarithm of spectral powers (with an ε that f16 cannot hold), contractions included, is
    one too: their range is that of decibels, and quiet ones would drown in the rounding of loud ones.
    Under every policy these stay f32: masks that are added to the scores of a softmax, and the sums (so a row of which
    every key is masked keeps its weights, and minus the largest f32 is no infinity), places of samples and what is cast
    to i32, with what computes them of other places (between two numbers of f16 there may be pixels), the scale of a
    range, what integers of 16 or 32 bits stand for and what is cast from such, what was bytes and is rounded to bytes
    next, the gates of a recurrence, and what it gives if it rounds h to bytes. What comes in as f32 and is rounded to
    integers of 16 bits is taken as it is.
    Operands of contractions are cast, biases stay f32, and inside a composite its own f32 edges appear when it is
    decomposed. Inputs and outputs of the model keep their types. `bf16` has the range of f32, so it needs no islands;
    `fp32` leaves everything as it is.

        func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
          %0 = graph.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
          func.return %0 : tensor<4x8xf32>
        }

    becomes

        func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
          %0 = graph.cast %x : (tensor<4x8xf32>) -> tensor<4x8xf16>
          %1 = graph.relu %0 : (tensor<4x8xf16>) -> tensor<4x8xf16>
          %2 = graph.cast %1 : (tensor<4x8xf16>) -> tensor<4x8xf32>
          func.return %2 : tensor<4x8xf32>
        }
    """

    name: ClassVar[str] = "precision"

    policy: str = "fp16"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.policy not in POLICIES:
            raise PassError(f"policy is one of {', '.join(POLICIES)} (found {self.policy!r})")
        if launch := next((inner for inner in op.walk() if isinstance(inner, LaunchOp)), None):
            rule = "types are chosen before kernels are made (found a launch)"
            raise PassError(rule, launch, remedy="run this pass before fuse, once; this module has passed the stage")
        if self.policy == "fp32":
            return
        for function in op.walk():
            if isinstance(function, FuncOp) and function.body.blocks:
                _Typing(compile_context(ctx), POLICIES[self.policy]).run(function.body.block)


@dataclass
class _Typing:
    """The types of one function's edges: ops in order, each after its operands."""

    ctx: CompileContext
    low: Attribute
    islands: set[SSAValue] = field(default_factory=set[SSAValue])
    casts: dict[tuple[SSAValue, Attribute], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, Attribute], SSAValue]
    )

    def run(self, block: Block) -> None:
        body = list(block.ops)
        kept = {inner for op in body if op.name == "graph.recurrence" for inner in _gates(op)}
        kept |= masks_of_scores(body, self.ctx) | _places(body)
        if self.low == f16:
            kept |= self._spectra(body)
        for argument in block.args:
            self._enter(argument, block)
        for op in body:
            if op in kept:
                self._keep(op)
            elif isinstance(op, GraphOp):
                self._type(op)
            elif isinstance(op, UploadOp):
                self._enter(op.result, block)
            elif isinstance(op, DownloadOp):
                self._hand_over(op)
            elif isinstance(op, IfOp | LoopOp):
                self._call(op, block)
            elif isinstance(op, ReturnOp):
                self._leave(op, block)

    def _enter(self, argument: SSAValue, block: Block) -> None:
        """What comes in, as an input of the model or from the CPU, is cast once, there."""
        if (
            not isinstance(argument.type, TensorType)
            or element(argument) not in FLOATS
            or element(argument) == self.low
        ):
            return
        cast = CastOp.build_op([argument], element=self.low)
        IRRewriter.insert_op(cast, _after(argument))
        argument.replace_uses_with_if(
            cast.result, lambda use: use.operation is not cast and not isinstance(use.operation, _TAKES_BOTH)
        )

    def _leave(self, op: ReturnOp, block: Block) -> None:
        """A model output has the type it was declared with."""
        function = block.parent_op()
        assert isinstance(function, FuncOp)
        for index, declared in enumerate(function.function_type.outputs):
            if op.operands[index].type != declared:
                op.operands[index] = self._cast(op.operands[index], element(declared), op)

    def _call(self, op: IfOp | LoopOp, block: Block) -> None:
        """Functions take and give the model's own types."""
        for index, kind in enumerate(declared_types(op)):
            if op.operands[index].type != kind:
                op.operands[index] = self._cast(op.operands[index], element(kind), op)
        for result in op.results:
            self._enter(result, block)

    def _hand_over(self, op: DownloadOp) -> None:
        """The CPU gets f32 from any float; a value that the model has as f16 or bf16 must not come from the other."""
        kind = ELEMENTS.get(host_type(op.result).dtype or np.dtype(np.float32))
        if kind in (f16, bf16) and element(op.x) in (f16, bf16):
            op.operands[0] = self._as(op.x, kind, op)

    def _type(self, op: GraphOp) -> None:
        floats = [result for result in op.results if element(result) in FLOATS]
        if op.name in EXACT and len(op.operands) > 1:
            op.operands[1] = self._as(_before_cast(op.operands[1]), f32, op)
        if op.name == "graph.quantize" and element(op.results[0]) not in BYTES:
            op.operands[0] = _before_cast(op.operands[0], FLOATS)
        if isinstance(op, CastOp) and floats:
            wide = element(op.x) in (i32, i64)  # an integer may be larger than f16 reaches, and no type is as exact
            self._set(op, f32 if wide else self.low, island=wide)
        elif isinstance(op, ViewOp) and _is_scale(op):
            self._keep(op)
        elif isinstance(op, (ViewOp, IndexedOp)) or op.name in TABLES:
            self._move(op)
        elif op.name in RECURRENT:
            self._recur(op, range(3))
        elif op.name == "graph.recurrence":
            self._recur(op, range(1, 2))
        elif op.name == "graph.dynamic_scale":
            self._set(op, f32, island=True)
        elif op.name == "graph.dequantize" and self._is_wide(op):
            self._keep(op)
        elif floats:
            if op.name in CONTRACTIONS:
                self._contract(op, range(2))
            else:
                self._shrink_tensors(op)
            self._set(op, f32 if self._is_island(op) else self.low, island=self._is_island(op))

    def _is_wide(self, op: GraphOp) -> bool:
        """The low type does not do for what integers stand for: they have more than 8 bits, are rounded to integers
        next, or leave its range by their scale."""
        if element(op.operands[0]) not in BYTES or all(user.name in ROUNDING for user in _readers(op)):
            return True
        scale = array_of(op.operands[1], self.ctx)
        return scale is not None and not self._holds(MOST_STEPS * scale.astype(np.float64))

    def _set(self, op: Operation, kind: Attribute, island: bool) -> None:
        for result in list(op.results):
            if element(result) in FLOATS:
                new = IRRewriter.replace_value_with_new_type(result, TensorType(kind, shape(result)))
                if island:
                    self.islands.add(new)

    # operands -------------------------------------------------------------------------------------------------------
    def _contract(self, op: GraphOp, low: range) -> None:
        """The operands at the places `low` have the low type, the others f32."""
        for index, operand in enumerate(op.operands):
            if element(operand) in FLOATS and index not in KEPT.get(op.name, ()):
                op.operands[index] = self._as(operand, self.low if index in low else f32, op)

    def _recur(self, op: GraphOp, low: range) -> None:
        """The states stay f32 from one run of a stream to the next: what comes in as f32 is taken before its cast."""
        for index, operand in enumerate(op.operands):
            if index not in low:
                op.operands[index] = _before_cast(operand)
        self._contract(op, low)
        if flag(op.properties, "rounded"):
            self.islands.add(op.results[0])  # of type f32, so that the next one rounds h to bytes as this one does
        else:
            IRRewriter.replace_value_with_new_type(op.results[0], TensorType(self.low, shape(op.results[0])))

    def _move(self, op: GraphOp) -> None:
        """Elements move unchanged: the result has the type of the operands, f32 if one of several is."""
        moved = [
            operand for operand in (op.operands[:1] if op.name in TABLES else op.operands) if element(operand) in FLOATS
        ]
        if not moved:
            return
        constants = [operand for operand in moved if self._fits(operand)]
        others = {element(operand) for operand in moved if operand not in constants}
        kind = f32 if f32 in others or (not others and len(constants) < len(moved)) else self.low
        for index, operand in enumerate(op.operands):
            if operand in moved:
                op.operands[index] = self._as(operand, kind, op)
        self._set(op, kind, island=any(operand in self.islands for operand in moved))

    def _fits(self, value: SSAValue) -> bool:
        """A constant that the low type holds."""
        array = array_of(value, self.ctx)
        return array is not None and self._holds(array)

    def _holds(self, array: Array) -> bool:
        finite = np.abs(array[np.isfinite(array)])
        return self.low != f16 or not bool(np.any(finite > MOST_F16))

    def _shrink_tensors(self, op: GraphOp) -> None:
        """A constant of more than one axis takes half the room; vectors and numbers stay as exact as they are."""
        if not isinstance(op, Elementwise):
            return
        for index, operand in enumerate(op.operands):
            if element(operand) == f32 and sum(size > 1 for size in shape(operand)) > 1 and self._fits(operand):
                op.operands[index] = self._as(operand, self.low, op)

    def _as(self, value: SSAValue, kind: Attribute, user: Operation) -> SSAValue:
        return value if element(value) == kind else self._cast(value, kind, user)

    def _cast(self, value: SSAValue, kind: Attribute, user: Operation) -> SSAValue:
        """`value` as `kind`, made once: a constant is converted, anything else is cast right after it is made."""
        key = (value, kind)
        if key in self.casts:
            return self.casts[key]
        array = array_of(value, self.ctx)
        known = array is not None
        new: Operation = (
            constant(array.astype(NUMPY[kind]), self.ctx.weights) if known else CastOp.build_op([value], element=kind)
        )
        new.location = value.owner.location if isinstance(value.owner, Operation) else user.location
        IRRewriter.insert_op(new, _after(value))
        self.casts[key] = new.results[0]
        return new.results[0]

    # spectra --------------------------------------------------------------------------------------------------------
    def _spectra(self, body: Sequence[Operation]) -> set[Operation]:
        """The ops that lead from inputs alone to a logarithm with a tiny ε."""
        wanted = [
            op
            for op in body
            if isinstance(op, GraphOp) and self._has_tiny(op) and any(user.name == "graph.log" for user in _readers(op))
        ]
        before = set[Operation]()
        while wanted:
            op = wanted.pop()
            if op in before or (not isinstance(op, ViewOp) and op.name not in SPECTRAL):
                continue
            before.add(op)
            wanted += [operand.owner for operand in op.operands if isinstance(operand.owner, GraphOp)]
        found = set[Operation]()
        for op in body:
            if op in before and all(self._is_exact(operand, found) for operand in op.operands):
                found.add(op)
        return found

    def _is_exact(self, value: SSAValue, spectra: set[Operation]) -> bool:
        if isinstance(value.owner, Block):
            return element(value) == f32
        return value.owner in spectra or array_of(value, self.ctx) is not None

    def _keep(self, op: Operation) -> None:
        """An op whose float operands and results are f32."""
        for index, operand in enumerate(op.operands):
            if element(operand) in FLOATS:
                op.operands[index] = self._as(_before_cast(operand), f32, op)
        self._set(op, f32, island=True)

    # islands --------------------------------------------------------------------------------------------------------
    def _is_island(self, op: GraphOp) -> bool:
        if self.low != f16 or op.name in BOUNDED or _is_ratio(op, self.islands):
            return False
        sources = op.operands[:1] if op.name == "graph.grid_sample" else op.operands  # elements, and not their places
        if op.name in WIDENING or any(operand in self.islands for operand in sources):
            return True
        if op.name == "graph.mul" and op.operands[0] is op.operands[1]:
            return True
        return self._has_large(op) or self._has_tiny(op)

    def _numbers(self, op: GraphOp) -> list[Array]:
        """Constants that an elementwise op takes, operands and properties, without the bounds of a clip."""
        if not isinstance(op, Elementwise):
            return []
        arrays = [
            array
            for operand in op.operands
            if element(operand) in FLOATS and (array := array_of(operand, self.ctx)) is not None
        ]
        return arrays + ([] if isinstance(op, ClipOp) else [np.asarray(value) for value in op.immediates])

    def _has_large(self, op: GraphOp) -> bool:
        return not all(self._holds(array) for array in self._numbers(op))

    def _has_tiny(self, op: GraphOp) -> bool:
        """A constant too small for f16 that keeps a root, quotient or logarithm away from 0."""
        numbers = self._numbers(op)
        if isinstance(op, ClipOp):
            numbers = [np.asarray(number(op.properties, "lo"))]
        tiny = any(bool(np.any((np.abs(array) < LEAST_F16) & (array != 0))) for array in numbers)
        return tiny and any(user.name in SENSITIVE for user in _readers(op))


def _is_ratio(op: GraphOp, islands: set[SSAValue]) -> bool:
    """x ÷ y, or x·(1 ÷ y) and x·(1 ÷ √y), where y comes from an island: what normalises ends it."""
    if op.name == "graph.div":
        return op.operands[1] in islands
    inverses = ("graph.rsqrt", "graph.reciprocal")
    return op.name == "graph.mul" and any(
        operand in islands and isinstance(operand.owner, Operation) and operand.owner.name in inverses
        for operand in op.operands
    )


def _gates(op: Operation) -> set[Operation]:
    """What makes the gates of a recurrence of the products of its node: they are f32 as they are behind a matmul."""
    found, front = set[Operation](), [op.operands[0].owner]
    while front:
        this = front.pop()
        if isinstance(this, CastOp | AddOp | MulOp | ViewOp | GatherOp) and this.location == op.location:
            found.add(this)
            front += [operand.owner for operand in this.operands if element(operand) in (f32, i32)]
    return found


def _places(body: Sequence[Operation]) -> set[Operation]:
    """The ops that lead to places of samples and to what is cast to i32."""
    found, wanted = set[Operation](), list[SSAValue]()
    for op in body:
        if op.name == "graph.grid_sample":
            wanted.append(op.operands[1])
        elif isinstance(op, CastOp) and element(op.x) in FLOATS and element(op.result) in (i32, i64):
            wanted.append(op.x)
    while wanted:
        op = wanted.pop().owner
        if op not in found and isinstance(op, GraphOp) and _is_placing(op):
            found.add(op)
            wanted += [operand for operand in op.operands if element(operand) in FLOATS]
    return found


def _is_placing(op: GraphOp) -> bool:
    if op.name == "graph.matmul":
        return shape(op.operands[0])[-1] <= MOST_COORDINATES
    return isinstance(op, ViewOp | IndexedOp) or op.name in PLACING


def _is_scale(op: ViewOp) -> bool:
    """Its result, by way of other views, is nothing but the second operand of ops that take it as it is."""
    uses = [use for result in op.results for use in result.uses]
    return bool(uses) and all(
        _is_scale(use.operation)
        if isinstance(use.operation, ViewOp)
        else use.operation.name in EXACT and use.index == 1
        for use in uses
    )


def _readers(op: Operation) -> list[Operation]:
    return [user for result in op.results for user in users(result)]


def _before_cast(value: SSAValue, kinds: Sequence[Attribute] = (f32,)) -> SSAValue:
    """What comes in as one of the types, if `value` is the cast of it."""
    owner = value.owner
    return owner.x if isinstance(owner, CastOp) and element(owner.x) in kinds else value


def _after(value: SSAValue) -> InsertPoint:
    owner = value.owner
    if isinstance(owner, Block):
        first = owner.first_op
        return InsertPoint.before(first) if first is not None else InsertPoint.at_end(owner)
    return InsertPoint.after(owner)
