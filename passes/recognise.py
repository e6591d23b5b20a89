"""The pass `recognise`: finds operators in what exporters made of them, and folds scales into weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ..dialects.graph.activations import NegOp
from ..dialects.graph.arithmetic import AddOp, DivOp, MulOp, SubOp
from ..dialects.graph.conv import ConvOp
from ..dialects.graph.elementwise import AffineOp
from ..dialects.graph.norm import BatchNormOp
from .context import compile_context
from .recognise_activations import (
    find_approximate_gelu,
    find_gelu,
    find_hardswish,
    find_hardswish_of_hardsigmoid,
    find_silu,
    note_approximate_gelu,
)
from .recognise_linear import (
    divide_by_multiplying,
    drop_zero,
    fold_into_conv,
    fold_into_matmul,
    fold_into_next_conv,
    merge_linear,
)
from .recognise_norms import find_layer_norm, scale_layer_norm, shift_layer_norm
from .rewrite import Pattern, rewrite

Table = dict[type[Operation], Sequence[Pattern]]


@dataclass(frozen=True)
class Recognise(ModulePass):
    """Finds layer normalisation, GELU, hardswish and SiLU, and folds linear ops into each other and into weights.

    Bits change: a composite keeps f32 inside, and folded constants are rounded once. What almost matched leaves a note
    that says which condition failed and what was found (`stepwell-opt --notes`). GELU's approximation with tanh has
    other values than GELU, up to 5e-4 apart, so it is replaced only with `approximate`.

        %0 = graph.sigmoid %x : (tensor<8xf32>) -> tensor<8xf32>
        %1 = graph.mul %x, %0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>

    becomes

        %1 = graph.silu %x : (tensor<8xf32>) -> tensor<8xf32>
    """

    name: ClassVar[str] = "recognise"

    approximate: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        context = compile_context(ctx)
        rewrite(context, op, composites(self.approximate))  # first: their constants must not be folded away
        rewrite(context, op, linears())


def composites(approximate: bool) -> Table:
    """Patterns by the op they end with."""
    tanh = find_approximate_gelu if approximate else note_approximate_gelu
    return {
        MulOp: (
            find_layer_norm,
            scale_layer_norm,
            find_silu,
            find_hardswish,
            find_hardswish_of_hardsigmoid,
            find_gelu,
            tanh,
        ),
        DivOp: (find_layer_norm, find_hardswish, find_gelu),
        AddOp: (shift_layer_norm,),
    }


def linears() -> Table:
    """Patterns by the op they end with."""
    into_weights = (fold_into_conv, fold_into_matmul)
    return {
        AddOp: (drop_zero, *into_weights, merge_linear),
        SubOp: (*into_weights, merge_linear),
        MulOp: (*into_weights, merge_linear),
        DivOp: (divide_by_multiplying,),
        NegOp: (merge_linear,),
        AffineOp: (*into_weights, merge_linear),
        BatchNormOp: (fold_into_conv,),
        ConvOp: (fold_into_next_conv,),
    }
