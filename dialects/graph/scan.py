"""Running sums and products."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def
from xdsl.pattern_rewriter import PatternRewriter

from .arithmetic import AddOp, MulOp
from .elementwise import CastOp
from .emit import Emit
from .op import Array, GraphOp, InferError, Onnx, Tensor, element, shape
from .properties import attributes, flag, integer
from .views import PadOp, normal_axis


class RunningOp(GraphOp):
    """Common to what combines all elements up to each one along an axis."""

    COMBINE: ClassVar[type[GraphOp]]
    NEUTRAL: ClassVar[float]

    x = operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    exclusive = opt_prop_def(BoolAttr)
    reverse = opt_prop_def(BoolAttr)
    result = result_def(TensorType)

    @classmethod
    def normalize(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
        axis = normal_axis(integer(properties, "axis"), operands[0].get_num_dims())
        flags = {name: flag(properties, name) or None for name in ("exclusive", "reverse")}
        return attributes(axis=axis, **flags)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Mapping[str, Attribute]) -> Sequence[Tensor]:
        normal_axis(integer(properties, "axis"), operands[0].get_num_dims())
        return [operands[0]]

    @classmethod
    def from_onnx(
        cls, node: Mapping[str, Any], constants: Sequence[Array | None], opset: int
    ) -> tuple[list[int], dict[str, Attribute]]:
        axis = constants[1]
        if axis is None:
            raise InferError("the axis is a constant (found one that is computed)")
        flags = {name: bool(node.get(name, 0)) or None for name in ("exclusive", "reverse")}
        return [0], attributes(axis=int(axis.reshape(())), **flags)

    def decompose(self, rewriter: PatternRewriter) -> Sequence[SSAValue]:
        emit, axis = Emit(self, rewriter), integer(self.properties, "axis")
        extent, rank = shape(self.x)[axis], len(shape(self.x))

        def moved(value: SSAValue, by: int) -> SSAValue:
            ahead, behind = [[sign * by if i == axis else 0 for i in range(rank)] for sign in (1, -1)]
            if flag(self.properties, "reverse"):
                ahead, behind = behind, ahead
            return emit.keep(PadOp, value, before=ahead, after=behind, value=self.NEUTRAL or None)

        y = self.x if element(self.x) == emit.inner else emit(CastOp, self.x, element=emit.inner)
        if flag(self.properties, "exclusive"):
            y = moved(y, 1)
        step = 1
        while step < extent:
            y = emit(self.COMBINE, y, moved(y, step), element=emit.inner)
            step *= 2
        return [y if element(y) == emit.result else emit(CastOp, y)]


@irdl_op_definition
class CumSumOp(RunningOp):
    """Sums of all elements up to each one along an axis; `exclusive`: without that one; `reverse`: from the end on.

    In f32 (i32 for integers), by doubling: y ← y + (y moved by s) for s = 1, 2, 4, …
    """

    name = "graph.cumsum"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("CumSum", 11),)
    EXAMPLE: ClassVar[str] = "%1 = graph.cumsum %0 {axis = 1} : (tensor<2x5xf32>) -> tensor<2x5xf32>"
    COMBINE: ClassVar[type[GraphOp]] = AddOp
    NEUTRAL: ClassVar[float] = 0.0

    def reference(self, x: Array) -> Array:
        axis = integer(self.properties, "axis")
        turned = np.flip(x, axis) if flag(self.properties, "reverse") else x
        found = np.cumsum(turned, axis) - (turned if flag(self.properties, "exclusive") else 0)
        return np.flip(found, axis) if flag(self.properties, "reverse") else found


@irdl_op_definition
class CumProdOp(RunningOp):
    """Products of all elements up to each one along an axis, as `graph.cumsum`: y ← y·(y moved by s), with ones."""

    name = "graph.cumprod"
    ONNX: ClassVar[tuple[Onnx, ...]] = (Onnx("CumProd", 26),)
    EXAMPLE: ClassVar[str] = "%1 = graph.cumprod %0 {axis = 1} : (tensor<2x5xf32>) -> tensor<2x5xf32>"
    COMBINE: ClassVar[type[GraphOp]] = MulOp
    NEUTRAL: ClassVar[float] = 1.0

    def reference(self, x: Array) -> Array:
        axis = integer(self.properties, "axis")
        turned = np.moveaxis(np.flip(x, axis) if flag(self.properties, "reverse") else x, axis, -1)
        if flag(self.properties, "exclusive"):
            turned = np.concatenate([np.ones_like(turned[..., :1]), turned[..., :-1]], -1)
        found = np.moveaxis(np.cumprod(turned, -1), -1, axis)
        return np.flip(found, axis) if flag(self.properties, "reverse") else found
