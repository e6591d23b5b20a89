"""Functions of one float operand that decompose into others."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, prop_def
from xdsl.pattern_rewriter import PatternRewriter

from .activations import (
    AbsOp,
    AsinhOp,
    AtanOp,
    Composite,
    CosOp,
    EluOp,
    ExpOp,
    Parameters,
    ReluOp,
    SigmoidOp,
    SinOp,
    SqrtOp,
    TanhOp,
)
from .arithmetic import AddOp, DivOp, GtOp, LtOp, MinOp, MulOp, SubOp
from .constants import NUMPY
from .elementwise import CastOp, WhereOp
from .emit import Emit
from .op import FLOATS, Array, InferError, Onnx, Tensor, element, f32, i1, i8, i32, u8


class Inner(Emit):
    """Emits edges inside a composite, f32, but for what names another type."""

    def __call__(
        self, kind: Any, *operands: SSAValue | None, element: Attribute | None = None, **rest: Any
    ) -> SSAValue:
        return super().__call__(kind, *operands, element=element or self.inner, **rest)

    def last(self, kind: Any, *operands: SSAValue, **rest: Any) -> Sequence[SSAValue]:
        """The result of the composite: its one rounding."""
        return [super().__call__(kind, *operands, **rest)]


class Parametric(Parameters, Composite):
    """A composite with parameters."""


def _cofactor(inner: Inner, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """1 − x and 1 + x."""
    one = inner.constant(1.0)
    return inner(SubOp, one, x), inner(AddOp, one, x)


# trigonometry ---------------------------------------------------------------------------------------------------------
@irdl_op_definition
class TanOp(Composite):
    """The tangent of x radians: sin x ÷ cos x."""

    name = "graph.tan"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Tan", 7),)
    EXAMPLE: ClassVar[str] = "%1 = graph.tan %0 : (tensor<4xf32>) -> tensor<4xf32>"

    def reference(self, x: Array) -> Array:
        return np.tan(x)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        inner = Inner(self, rewriter)
        return inner.last(DivOp, inner(SinOp, self.x), inner(CosOp, self.x))


@irdl_op_definition
class AsinOp(Composite):
    """The arc sine: arctan(x ÷ √((1 − x)·(1 + x))); NaN where |x| > 1."""

    name = "graph.asin"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Asin", 7),)
    EXAMPLE: ClassVar[str] = "%1 = graph.asin %0 : (tensor<4xf32>) -> tensor<4xf32>"

    def reference(self, x: Array) -> Array:
        return np.arcsin(x)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        inner = Inner(self, rewriter)
        below, above = _cofactor(inner, self.x)
        return inner.last(AtanOp, inner(DivOp, self.x, inner(SqrtOp, inner(MulOp, below, above))))


@irdl_op_definition
class AcosOp(Composite):
    """The arc cosine: 2·arctan(√((1 − x) ÷ (1 + x))); NaN where |x| > 1."""

    name = "graph.acos"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Acos", 7),)
    EXAMPLE: ClassVar[str] = "%1 = graph.acos %0 : (tensor<4xf32>) -> tensor<4xf32>"

    def reference(self, x: Array) -> Array:
        return np.arccos(x)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        inner = Inner(self, rewriter)
        half = inner(AtanOp, inner(SqrtOp, inner(DivOp, *_cofactor(inner, self.x))))
        return inner.last(AddOp, half, half)


@irdl_op_definition
class CoshOp(Composite):
    """The hyperbolic cosine: h·(h ÷ 2) + (1 ÷ h)·(½ ÷ h) with h = e^(|x| ÷ 2), which overflows no sooner than it."""

    name = "graph.cosh"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Cosh", 9),)
    EXAMPLE: ClassVar[str] = "%1 = graph.cosh %0 : (tensor<4xf32>) -> tensor<4xf32>"

    def reference(self, x: Array) -> Array:
        return np.cosh(x)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        inner = Inner(self, rewriter)
        half = inner.constant(0.5)
        root = inner(ExpOp, inner(MulOp, inner(AbsOp, self.x), half))
        grown = inner(MulOp, inner(MulOp, root, half), root)
        return inner.last(AddOp, grown, inner(DivOp, inner(DivOp, half, root), root))


@irdl_op_definition
class AcoshOp(Composite):
    """The inverse of cosh: arsinh(√(x − 1)·√(x + 1)); NaN where x < 1."""

    name = "graph.acosh"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Acosh", 9),)
    EXAMPLE: ClassVar[str] = "%1 = graph.acosh %0 : (tensor<4xf32>) -> tensor<4xf32>"

    def reference(self, x: Array) -> Array:
        return np.arccosh(x)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        inner = Inner(self, rewriter)
        one = inner.constant(1.0)
        roots = [inner(SqrtOp, inner(kind, self.x, one)) for kind in (SubOp, AddOp)]
        return inner.last(AsinhOp, inner(MulOp, *roots))


@irdl_op_definition
class AtanhOp(Composite):
    """The inverse of tanh: arsinh(x ÷ √((1 − x)·(1 + x))); NaN where |x| > 1."""

    name = "graph.atanh"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Atanh", 9),)
    EXAMPLE: ClassVar[str] = "%1 = graph.atanh %0 : (tensor<4xf32>) -> tensor<4xf32>"

    def reference(self, x: Array) -> Array:
        return np.arctanh(x)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        inner = Inner(self, rewriter)
        below, above = _cofactor(inner, self.x)
        return inner.last(AsinhOp, inner(DivOp, self.x, inner(SqrtOp, inner(MulOp, below, above))))


# activations ----------------------------------------------------------------------------------------------------------
@irdl_op_definition
class SeluOp(Parametric):
    """γ·x where positive, else γ·α·(eˣ − 1)."""

    name = "graph.selu"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Selu", 6),)
    EXAMPLE: ClassVar[str] = "%1 = graph.selu %0 {alpha = 1.67, gamma = 1.05} : (tensor<4xf32>) -> tensor<4xf32>"
    DEFAULTS: ClassVar[tuple[tuple[str, float], ...]] = (
        ("alpha", 1.67326319217681884765625),
        ("gamma", 1.05070102214813232421875),
    )

    alpha = prop_def(FloatAttr)
    gamma = prop_def(FloatAttr)

    def reference(self, x: Array) -> Array:
        alpha, gamma = self.parameters
        return gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        inner = Inner(self, rewriter)
        alpha, gamma = self.parameters
        return inner.last(MulOp, inner(EluOp, self.x, alpha=alpha), inner.constant(gamma))


@irdl_op_definition
class CeluOp(Parametric):
    """x where positive, else α·(e^(x ÷ α) − 1)."""

    name = "graph.celu"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Celu", 12),)
    EXAMPLE: ClassVar[str] = "%1 = graph.celu %0 {alpha = 2.0} : (tensor<4xf32>) -> tensor<4xf32>"
    DEFAULTS: ClassVar[tuple[tuple[str, float], ...]] = (("alpha", 1.0),)

    alpha = prop_def(FloatAttr)

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        if not node.get("alpha", 1.0) > 0:
            raise InferError(f"alpha is positive (found {node['alpha']})")
        return super().from_onnx(node, constants, opset)

    def reference(self, x: Array) -> Array:
        (alpha,) = self.parameters
        return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha))

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        inner = Inner(self, rewriter)
        (alpha,) = self.parameters
        negative = inner(DivOp, inner(MinOp, self.x, inner.constant(0.0)), inner.constant(alpha))
        return inner.last(AddOp, inner(ReluOp, self.x), inner(EluOp, negative, alpha=alpha))


@irdl_op_definition
class ShrinkOp(Parametric):
    """x + bias below −λ, x − bias above λ, else 0; of integers in f32, truncated, then modulo 2ⁿ."""

    name = "graph.shrink"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Shrink", 9),)
    EXAMPLE: ClassVar[str] = "%1 = graph.shrink %0 {lambd = 0.5, bias = 0.25} : (tensor<4xf32>) -> tensor<4xf32>"
    DEFAULTS: ClassVar[tuple[tuple[str, float], ...]] = (
        ("lambd", 0.5),
        ("bias", 0.0),
    )

    lambd = prop_def(FloatAttr)
    bias = prop_def(FloatAttr)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        return [operands[0]] if operands[0].element_type in (i32, i8, u8) else super().infer(operands, properties)

    def reference(self, x: Array) -> Array:
        lambd, bias = self.parameters
        found = np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0))
        return found if x.dtype.kind == "f" else np.trunc(found).astype(np.int64).astype(NUMPY[element(self.x)])

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        inner = Inner(self, rewriter)
        if inner.result in FLOATS:
            return [self._shrunk(inner, self.x, inner.result)]
        found = self._shrunk(inner, inner(CastOp, self.x, element=f32), f32)
        whole = inner(CastOp, found, element=i32)
        return [whole if inner.result == i32 else inner(CastOp, whole, element=inner.result)]

    def _shrunk(self, inner: Inner, x: SSAValue, kind: Attribute) -> SSAValue:
        lambd, bias, zero = (inner.constant(value, f32) for value in (*self.parameters, 0.0))
        low = inner(LtOp, x, inner.constant(-self.parameters[0], f32), element=i1)
        high = inner(GtOp, x, lambd, element=i1)
        outside = inner(WhereOp, high, inner(SubOp, x, bias, element=f32), zero, element=f32)
        return inner(WhereOp, low, inner(AddOp, x, bias, element=f32), outside, element=kind)


@irdl_op_definition
class ThresholdedReluOp(Parametric):
    """x above α, else 0."""

    name = "graph.thresholdedrelu"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("ThresholdedRelu", 10),)
    EXAMPLE: ClassVar[str] = "%1 = graph.thresholdedrelu %0 {alpha = 1.0} : (tensor<4xf32>) -> tensor<4xf32>"
    DEFAULTS: ClassVar[tuple[tuple[str, float], ...]] = (("alpha", 1.0),)

    alpha = prop_def(FloatAttr)

    def reference(self, x: Array) -> Array:
        return np.where(x > self.parameters[0], x, 0)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        inner = Inner(self, rewriter)
        above = inner(GtOp, self.x, inner.constant(self.parameters[0]), element=i1)
        return inner.last(WhereOp, above, self.x, inner.constant(0.0))


@irdl_op_definition
class SwishOp(Parametric):
    """x·sigmoid(α·x); with α = 1 it is `graph.silu`."""

    name = "graph.swish"
    EXAMPLE: ClassVar[str] = "%1 = graph.swish %0 {alpha = 2.0} : (tensor<4xf32>) -> tensor<4xf32>"
    DEFAULTS: ClassVar[tuple[tuple[str, float], ...]] = (("alpha", 1.0),)

    alpha = prop_def(FloatAttr)

    def reference(self, x: Array) -> Array:
        return x * 0.5 * (1 + np.tanh(0.5 * self.parameters[0] * x))

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        inner = Inner(self, rewriter)
        scaled = inner(MulOp, self.x, inner.constant(self.parameters[0]))
        return inner.last(MulOp, self.x, inner(SigmoidOp, scaled))


@irdl_op_definition
class GeluTanhOp(Composite):
    """GELU's approximation x·½·(1 + tanh(√(2 ÷ π)·(x + 0.044715·x³)))."""

    name = "graph.gelu_tanh"
    EXAMPLE: ClassVar[str] = "%1 = graph.gelu_tanh %0 : (tensor<4xf32>) -> tensor<4xf32>"

    def reference(self, x: Array) -> Array:
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        inner = Inner(self, rewriter)
        root, one = float(np.sqrt(2 / np.pi)), inner.constant(1.0)
        bent = inner(MulOp, inner(MulOp, self.x, self.x), inner.constant(0.044715 * root))
        angle = inner(MulOp, inner(AddOp, bent, inner.constant(root)), self.x)
        gate = inner(AddOp, inner(TanhOp, angle), one)
        return inner.last(MulOp, inner(MulOp, self.x, inner.constant(0.5)), gate)
