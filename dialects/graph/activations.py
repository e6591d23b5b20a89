"""Elementwise functions of one operand."""

from collections.abc import Mapping, Sequence
from math import erf
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import FloatAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def
from xdsl.pattern_rewriter import PatternRewriter

from .arithmetic import AddOp, DivOp, MulOp
from .elementwise import Unary
from .emit import Emit
from .op import FLOATS, Array, DtypeError, GraphOp, InferError, Onnx, Tensor
from .properties import attributes, number


def _sigmoid(x: Array) -> Array:
    return 0.5 * (1 + np.tanh(0.5 * x))


def _erf(x: Array) -> Array:
    return np.array([erf(value) for value in x.reshape(-1).tolist()], dtype=np.float64).reshape(x.shape)


class Parameters(GraphOp):
    """A function with parameters: `DEFAULTS` are those of ONNX's attributes, in the order of the parameters."""

    DEFAULTS: ClassVar[tuple[tuple[str, float], ...]] = ()

    @property
    def parameters(self) -> tuple[float, ...]:
        """In the order of `DEFAULTS`."""
        return tuple(number(self.properties, name) for name, _ in self.DEFAULTS)

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        return [0], attributes(**{name: float(node.get(name, default)) for name, default in cls.DEFAULTS})


class WithFloats(Parameters, Unary):
    """A function of the vector engine with parameters: its immediates."""

    @property
    def immediates(self) -> tuple[float, ...]:
        return self.parameters


class Composite(GraphOp):
    """A function of one float operand, element by element, that decomposes into others."""

    x = operand_def(TensorType)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        if operands[0].element_type not in FLOATS:
            raise DtypeError(f"operands are floats (found {operands[0].element_type})")
        return [operands[0]]


@irdl_op_definition
class NegOp(Unary):
    """−x: the sign bit flips."""

    name = "graph.neg"
    FUNCTION: ClassVar[str] = "neg"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Neg", 6),)

    def reference(self, x: Array) -> Array:
        return -x


@irdl_op_definition
class AbsOp(Unary):
    """The magnitude of x."""

    name = "graph.abs"
    FUNCTION: ClassVar[str] = "abs"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Abs", 6),)

    def reference(self, x: Array) -> Array:
        return np.abs(x)


@irdl_op_definition
class ReluOp(Unary):
    """max(x, 0)."""

    name = "graph.relu"
    FUNCTION: ClassVar[str] = "relu"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Relu", 6),)

    def reference(self, x: Array) -> Array:
        return np.maximum(x, 0)


@irdl_op_definition
class SqrtOp(Unary):
    """√x."""

    name = "graph.sqrt"
    FUNCTION: ClassVar[str] = "sqrt"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Sqrt", 6),)

    def reference(self, x: Array) -> Array:
        return np.sqrt(x)


@irdl_op_definition
class RsqrtOp(Unary):
    """1 ÷ √x."""

    name = "graph.rsqrt"
    FUNCTION: ClassVar[str] = "rsqrt"

    def reference(self, x: Array) -> Array:
        return 1 / np.sqrt(x)


@irdl_op_definition
class ReciprocalOp(Unary):
    """1 ÷ x."""

    name = "graph.reciprocal"
    FUNCTION: ClassVar[str] = "reciprocal"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Reciprocal", 6),)

    def reference(self, x: Array) -> Array:
        return 1 / x


@irdl_op_definition
class ExpOp(Unary):
    """eˣ."""

    name = "graph.exp"
    FUNCTION: ClassVar[str] = "exp"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Exp", 6),)

    def reference(self, x: Array) -> Array:
        return np.exp(x)


@irdl_op_definition
class LogOp(Unary):
    """The natural logarithm."""

    name = "graph.log"
    FUNCTION: ClassVar[str] = "log"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Log", 6),)

    def reference(self, x: Array) -> Array:
        return np.log(x)


@irdl_op_definition
class SinOp(Unary):
    """The sine of x radians."""

    name = "graph.sin"
    FUNCTION: ClassVar[str] = "sin"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Sin", 7),)

    def reference(self, x: Array) -> Array:
        return np.sin(x)


@irdl_op_definition
class CosOp(Unary):
    """The cosine of x radians."""

    name = "graph.cos"
    FUNCTION: ClassVar[str] = "cos"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Cos", 7),)

    def reference(self, x: Array) -> Array:
        return np.cos(x)


@irdl_op_definition
class SinhOp(Unary):
    """The hyperbolic sine."""

    name = "graph.sinh"
    FUNCTION: ClassVar[str] = "sinh"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Sinh", 9),)

    def reference(self, x: Array) -> Array:
        return np.sinh(x)


@irdl_op_definition
class AsinhOp(Unary):
    """The inverse of sinh."""

    name = "graph.asinh"
    FUNCTION: ClassVar[str] = "asinh"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Asinh", 9),)

    def reference(self, x: Array) -> Array:
        return np.arcsinh(x)


@irdl_op_definition
class AtanOp(Unary):
    """The arc tangent, between −π/2 and π/2."""

    name = "graph.atan"
    FUNCTION: ClassVar[str] = "atan"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Atan", 7),)

    def reference(self, x: Array) -> Array:
        return np.arctan(x)


@irdl_op_definition
class TanhOp(Unary):
    """The hyperbolic tangent."""

    name = "graph.tanh"
    FUNCTION: ClassVar[str] = "tanh"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Tanh", 6),)

    def reference(self, x: Array) -> Array:
        return np.tanh(x)


@irdl_op_definition
class ErfOp(Unary):
    """The error function."""

    name = "graph.erf"
    FUNCTION: ClassVar[str] = "erf"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Erf", 9),)

    def reference(self, x: Array) -> Array:
        return _erf(x)


@irdl_op_definition
class SigmoidOp(Unary):
    """1 ÷ (1 + e⁻ˣ)."""

    name = "graph.sigmoid"
    FUNCTION: ClassVar[str] = "sigmoid"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Sigmoid", 6),)

    def reference(self, x: Array) -> Array:
        return _sigmoid(x)


@irdl_op_definition
class SiluOp(Unary):
    """x·sigmoid(x), also called Swish."""

    name = "graph.silu"
    FUNCTION: ClassVar[str] = "silu"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Swish", 24),)

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        if node.get("alpha", 1.0) != 1.0:
            raise InferError(f"Swish has alpha = 1 (found {node['alpha']})")
        return [0], {}

    def reference(self, x: Array) -> Array:
        return x * _sigmoid(x)


@irdl_op_definition
class GeluOp(Unary):
    """x·Φ(x), Φ the normal distribution by erf."""

    name = "graph.gelu"
    FUNCTION: ClassVar[str] = "gelu"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Gelu", 20),)

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        if node.get("approximate", "none") != "none":
            raise InferError(f"GELU is the exact one, by erf (found approximate = {node['approximate']})")
        return [0], {}

    def reference(self, x: Array) -> Array:
        return 0.5 * x * (1 + _erf(x / np.sqrt(2.0)))


@irdl_op_definition
class HardSwishOp(Unary):
    """x·max(0, min(6, x + 3)) ÷ 6."""

    name = "graph.hardswish"
    FUNCTION: ClassVar[str] = "hardswish"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("HardSwish", 14),)

    def reference(self, x: Array) -> Array:
        return x * np.clip(x + 3, 0, 6) / 6


@irdl_op_definition
class SoftplusOp(Unary):
    """log(1 + eˣ)."""

    name = "graph.softplus"
    FUNCTION: ClassVar[str] = "softplus"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Softplus", 1),)

    def reference(self, x: Array) -> Array:
        return np.logaddexp(x, 0)


@irdl_op_definition
class FloorOp(Unary):
    """Rounded down."""

    name = "graph.floor"
    FUNCTION: ClassVar[str] = "floor"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Floor", 6),)

    def reference(self, x: Array) -> Array:
        return np.floor(x)


@irdl_op_definition
class CeilOp(Unary):
    """Rounded up."""

    name = "graph.ceil"
    FUNCTION: ClassVar[str] = "ceil"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Ceil", 6),)

    def reference(self, x: Array) -> Array:
        return np.ceil(x)


@irdl_op_definition
class RoundOp(Unary):
    """Rounded to the nearest integer, ties to even."""

    name = "graph.round"
    FUNCTION: ClassVar[str] = "round"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Round", 11),)

    def reference(self, x: Array) -> Array:
        return np.rint(x)


@irdl_op_definition
class SignOp(Unary):
    """−1, 0 or 1."""

    name = "graph.sign"
    FUNCTION: ClassVar[str] = "sign"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Sign", 9),)

    def reference(self, x: Array) -> Array:
        return np.sign(x)


@irdl_op_definition
class IsNanOp(Unary):
    """Whether x is not a number."""

    name = "graph.isnan"
    FUNCTION: ClassVar[str] = "isnan"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("IsNaN", 9),)

    def reference(self, x: Array) -> Array:
        return np.isnan(x)


@irdl_op_definition
class IsInfOp(Unary):
    """Whether x is infinite."""

    name = "graph.isinf"
    FUNCTION: ClassVar[str] = "isinf"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("IsInf", 10),)

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        if not (node.get("detect_negative", 1) and node.get("detect_positive", 1)):
            raise InferError("both signs are detected (found detect_negative or detect_positive = 0)")
        return [0], {}

    def reference(self, x: Array) -> Array:
        return np.isinf(x)


@irdl_op_definition
class HardSigmoidOp(WithFloats):
    """max(0, min(1, α·x + β))."""

    name = "graph.hardsigmoid"
    FUNCTION: ClassVar[str] = "hardsigmoid"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("HardSigmoid", 6),)
    EXAMPLE: ClassVar[str] = "%1 = graph.hardsigmoid %0 {alpha = 0.2, beta = 0.5} : (tensor<4xf32>) -> tensor<4xf32>"
    DEFAULTS: ClassVar[tuple[tuple[str, float], ...]] = (
        ("alpha", 0.2),
        ("beta", 0.5),
    )

    alpha = prop_def(FloatAttr)
    beta = prop_def(FloatAttr)

    def reference(self, x: Array) -> Array:
        alpha, beta = self.immediates
        return np.clip(alpha * x + beta, 0, 1)


@irdl_op_definition
class EluOp(WithFloats):
    """x where positive, else α·(eˣ − 1)."""

    name = "graph.elu"
    FUNCTION: ClassVar[str] = "elu"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Elu", 6),)
    EXAMPLE: ClassVar[str] = "%1 = graph.elu %0 {alpha = 1.0} : (tensor<4xf32>) -> tensor<4xf32>"
    DEFAULTS: ClassVar[tuple[tuple[str, float], ...]] = (("alpha", 1.0),)

    alpha = prop_def(FloatAttr)

    def reference(self, x: Array) -> Array:
        return np.where(x > 0, x, self.immediates[0] * np.expm1(np.minimum(x, 0)))


@irdl_op_definition
class LeakyReluOp(WithFloats):
    """x where positive, else α·x."""

    name = "graph.leakyrelu"
    FUNCTION: ClassVar[str] = "leakyrelu"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("LeakyRelu", 6),)
    EXAMPLE: ClassVar[str] = "%1 = graph.leakyrelu %0 {alpha = 0.01} : (tensor<4xf32>) -> tensor<4xf32>"
    DEFAULTS: ClassVar[tuple[tuple[str, float], ...]] = (("alpha", 0.01),)

    alpha = prop_def(FloatAttr)

    def reference(self, x: Array) -> Array:
        return np.where(x > 0, x, self.immediates[0] * x)


@irdl_op_definition
class SoftsignOp(Composite):
    """x ÷ (1 + |x|)."""

    name = "graph.softsign"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Softsign", 1),)
    EXAMPLE: ClassVar[str] = "%1 = graph.softsign %0 : (tensor<4xf32>) -> tensor<4xf32>"

    def reference(self, x: Array) -> Array:
        return x / (1 + np.abs(x))

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        size = emit(AbsOp, self.x, element=emit.inner)
        return [emit(DivOp, self.x, emit(AddOp, size, emit.constant(1.0), element=emit.inner))]


@irdl_op_definition
class MishOp(Composite):
    """x·tanh(log(1 + eˣ))."""

    name = "graph.mish"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("Mish", 18),)
    EXAMPLE: ClassVar[str] = "%1 = graph.mish %0 : (tensor<4xf32>) -> tensor<4xf32>"

    def reference(self, x: Array) -> Array:
        return x * np.tanh(np.logaddexp(x, 0))

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit = Emit(self, rewriter)
        gate = emit(TanhOp, emit(SoftplusOp, self.x, element=emit.inner), element=emit.inner)
        return [emit(MulOp, self.x, gate)]
