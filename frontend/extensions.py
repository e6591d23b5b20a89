"""Operators of other domains than ai.onnx: of com.microsoft by rules, of any other by the class that names it.

Of each: the rule, how many inputs it has and which of them may be absent, and the attributes that it knows. One that
the rule does not know is refused, since ignoring it would be a wrong result.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation
from xdsl.irdl import OptOperandDef, VarOperandDef

from ..dialects.graph import OPERATORS
from ..dialects.graph.op import GraphOp, InferError
from .empty import known_if_empty
from .microsoft import FUSED
from .microsoft_attention import ATTENTION
from .microsoft_integers import INTEGERS
from .microsoft_lstm import LSTM
from .microsoft_weights import WEIGHTS
from .node import Node, Value


@dataclass(frozen=True, slots=True)
class Extension:
    """An operator, called with its node. Raises `InferError`."""

    expand: Callable[[Node], Sequence[Value]]
    inputs: tuple[int, int]
    attributes: frozenset[str] | None
    """None: the rule itself refuses those that it does not know."""
    required: frozenset[str]
    absent: tuple[int, ...]
    """Which of the inputs that are counted, though not the last, may have an empty name."""

    def __call__(self, node: Node) -> Sequence[Value]:
        least, most = self.inputs
        count = max((i + 1 for i, value in enumerate(node.inputs) if value is not None), default=0)
        if not least <= count <= most:
            span = f"{least}" if least == most else f"{least} to {most}" if most < MANY else f"{least} or more"
            raise InferError(f"{node.operator} has {span} inputs (found {count})")
        for index in range(least):
            if node.inputs[index] is None and index not in self.absent:
                raise InferError(f"{node.operator} has an input {index} (found none)", broken=True)
        known = node.attributes.keys() if self.attributes is None else self.attributes | self.required
        if unknown := node.attributes.keys() - known:
            there = f"the attributes {', '.join(sorted(known))}" if known else "no attributes"
            raise InferError(f"{node.operator} has {there} (found {', '.join(sorted(unknown))})")
        if missing := self.required - node.attributes.keys():
            raise InferError(f"{node.operator} has the attribute {min(missing)} (found none)")
        return [known_if_empty(value) for value in self.expand(node)]


MANY = 1000
"""Inputs without a limit."""
_WINDOW = "auto_pad dilations group kernel_shape pads strides"
_TURNED = "alpha transA transB transBatchA transBatchB"
_FUNCTION = "activation_alpha activation_beta activation_gamma"
_MASKED = "do_rotary mask_filter_value past_present_share_buffer scale unidirectional"
_GROUPED = "causal do_rotary k_quant_type kv_cache_bit_width local_window_size qk_norm_epsilon qk_output"
_FORMS: Mapping[str, tuple[int, int, str]] = {
    "Attention": (2, 7, f"{_MASKED} num_heads! qkv_hidden_sizes rotary_embedding_dim"),
    "BiasAdd": (3, 3, ""),
    "BiasGelu": (2, 2, ""),
    "BiasSoftmax": (2, 2, "axis is_inner_broadcast!"),
    "BiasSplitGelu": (2, 2, ""),
    "CDist": (2, 2, "metric"),
    "CausalConvWithState": (2, 4, "activation ndim"),
    "ConvTransposeWithDynamicPads": (2, 4, "auto_pad dilations group kernel_shape output_padding strides"),
    "DequantizeLinear": (2, 3, "axis"),
    "DynamicQuantizeLSTM": (
        12,
        12,
        "activation_alpha activation_beta activations clip direction hidden_size input_forget",
    ),
    "DynamicQuantizeMatMul": (3, 5, ""),
    "EmbedLayerNormalization": (7, 9, "epsilon mask_index_type"),
    "ExpandDims": (2, 2, ""),
    "FastGelu": (1, 2, ""),
    "FusedConv": (2, 4, f"{_WINDOW} activation activation_params"),
    "FusedGemm": (2, 3, f"{_FUNCTION} activation alpha beta transA transB"),
    "FusedMatMul": (2, 2, _TURNED),
    "FusedMatMulActivation": (2, 2, f"{_TURNED} {_FUNCTION} activation! activation_axis"),
    "GatherBlockQuantized": (3, 4, "bits block_size gather_axis quantize_axis"),
    "GatherND": (2, 2, ""),
    "Gelu": (1, 1, ""),
    "GemmFastGelu": (2, 3, ""),
    "GridSample": (2, 2, "align_corners mode padding_mode"),
    "GroupNorm": (3, 3, "activation! channels_last epsilon groups!"),
    "GroupQueryAttention": (
        7,
        17,
        f"{_GROUPED} k_norm_epsilon kv_num_heads! num_heads! q_norm_epsilon rotary_interleaved scale"
        " sliding_window_cache smooth_softmax softcap v_quant_type",
    ),
    "LinearAttention": (3, 6, "chunk_size kv_num_heads! q_num_heads! scale update_rule"),
    "MatMulBnb4": (3, 3, "K! N! block_size! quant_type! training_mode transB"),
    "MatMulInteger16": (2, 2, ""),
    "MatMulIntegerToFloat": (4, 7, ""),
    "MatMulNBits": (3, 6, "K! N! accuracy_level bits block_size! weight_prepacked"),
    "MulInteger": (3, 4, ""),
    "MultiHeadAttention": (1, 10, "mask_filter_value num_heads! scale unidirectional"),
    "NhwcConv": (2, 3, _WINDOW),
    "NhwcFusedConv": (2, 4, f"{_WINDOW} activation activation_params"),
    "NhwcMaxPool": (1, 1, "auto_pad ceil_mode dilations kernel_shape! pads strides"),
    "Pad": (2, 3, "mode"),
    "QAttention": (5, 9, f"{_MASKED} num_heads!"),
    "QEmbedLayerNormalization": (13, 18, "epsilon"),
    "QGemm": (6, 9, "alpha transA transB"),
    "QLinearAdd": (7, 8, ""),
    "QLinearAveragePool": (4, 5, f"{_WINDOW} ceil_mode channels_last count_include_pad"),
    "QLinearConcat": (5, MANY, "axis!"),
    "QLinearConv": (8, 9, f"{_WINDOW} channels_last"),
    "QLinearGlobalAveragePool": (5, 5, "channels_last"),
    "QLinearLeakyRelu": (4, 5, "alpha"),
    "QLinearMul": (7, 8, ""),
    "QLinearReduceMean": (4, 5, "axes! keepdims!"),
    "QLinearSigmoid": (4, 5, ""),
    "QLinearSoftmax": (4, 5, "axis opset!"),
    "QLinearWhere": (9, 9, ""),
    "QuantizeLinear": (2, 3, "axis"),
    "QuickGelu": (1, 1, "alpha"),
    "Range": (2, 3, ""),
    "ReduceSumInteger": (1, 1, "axes! keepdims!"),
    "RotaryEmbedding": (4, 4, "interleaved is_packed_batching num_heads rotary_embedding_dim scale"),
    "ScaledSiLU": (1, 2, "alpha"),
    "SimplifiedLayerNormalization": (2, 2, "axis epsilon stash_type"),
    "SkipGroupNorm": (4, 5, "activation! channels_last epsilon groups!"),
    "SkipLayerNormalization": (3, 5, "epsilon"),
    "SkipSimplifiedLayerNormalization": (3, 4, "epsilon"),
    "SwiGLU": (1, 2, "activation_alpha activation_beta limit round_activation"),
    "TransposeMatMul": (2, 2, "alpha transA transB"),
    "Trilu": (1, 2, "upper"),
}
"""Of each operator of com.microsoft the least and the largest number of inputs, and its attributes (!: required)."""

_ABSENT: Mapping[str, tuple[int, ...]] = {
    "DynamicQuantizeLSTM": (3, 4, 5, 6, 7),
    "EmbedLayerNormalization": (1, 4),
    "GroupQueryAttention": (1, 2, 3, 4),
    "MulInteger": (1,),
    "QEmbedLayerNormalization": (1, 4, 7, 10),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), (2, 5)),
    **dict.fromkeys(("QLinearAveragePool", "QLinearLeakyRelu", "QLinearReduceMean", "QLinearSigmoid"), (2,)),
    "QLinearSoftmax": (2,),
}

_RULES: Mapping[str, Callable[[Node], Sequence[Value]]] = {**FUSED, **ATTENTION, **INTEGERS, **LSTM, **WEIGHTS}


def _extension(name: str) -> Extension:
    least, most, names = _FORMS[name]
    required = frozenset(item[:-1] for item in names.split() if item.endswith("!"))
    attributes = frozenset(item for item in names.split() if not item.endswith("!"))
    return Extension(_RULES[name], (least, most), attributes, required, _ABSENT.get(name, ()))


def by_classes(kinds: Sequence[type[GraphOp]]) -> Mapping[str, Mapping[str, Extension]]:
    """The operators of domains of their own that classes stand for, by domain and operator."""
    found: dict[str, dict[str, Extension]] = {}
    for kind in kinds:
        for form in kind.ONNX:
            if form.domain:
                found.setdefault(form.domain, {})[form.name] = _own(kind)
    return found


def _own(kind: type[GraphOp]) -> Extension:
    operands = [definition for _, definition in kind.get_irdl_definition().operands]
    several = any(isinstance(d, VarOperandDef) and not isinstance(d, OptOperandDef) for d in operands)
    least = sum(not isinstance(definition, VarOperandDef) for definition in operands)

    def expand(node: Node) -> Sequence[Value]:
        op = node.one(kind).owner
        assert isinstance(op, Operation)
        return op.results

    return Extension(expand, (least, MANY if several else len(operands)), None, frozenset(), ())


MICROSOFT = "com.microsoft"
EXTENSIONS: Mapping[str, Mapping[str, Extension]] = {
    MICROSOFT: {name: _extension(name) for name in _RULES},
    **by_classes(OPERATORS),
}
"""By domain and operator; com.microsoft in opset 1."""
