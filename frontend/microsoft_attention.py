"""Attention and rotary embedding of the domain com.microsoft, said by those of ai.onnx.

A mask there is a number that is added for keys that are masked (`mask_filter_value`), not minus infinity.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ..dialects.graph.arithmetic import AddOp, AndOp, GeOp, GtOp, LtOp, MulOp, SubOp
from ..dialects.graph.contract import MatMulOp
from ..dialects.graph.elementwise import CastOp, WhereOp
from ..dialects.graph.op import InferError, element, f32, shape
from ..dialects.graph.views import ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp
from .attention import attention as softmax_attention
from .empty import is_empty
from .integer_products import matmul_bytes
from .movement import along
from .node import Node, Value, size_of
from .operators import apply, inner_node


def attention(node: Node) -> Sequence[Value]:
    """x·W + b as queries, keys and values; then attention. The second output is keys and values with those before."""
    x, weights, bias = node.operand(0), node.operand(1), node.optional(2)
    y = node.emit(MatMulOp, x, weights, element=f32 if bias is not None else None)
    if bias is not None:
        y = node.emit(AddOp, y, node.materialize(bias), element=element(x))
    return _self_attention(node, y, mask=node.optional(3), past=node.optional(4), bias=node.optional(5))


def q_attention(node: Node) -> Sequence[Value]:
    """As attention, x and W being bytes; their product is exact and scaled once."""
    y = matmul_bytes(node, (0, 6), (1, 7))
    scale = node.emit(MulOp, _f32(node, node.given(3)), _f32(node, node.given(4)))
    y = node.emit(MulOp, node.emit(CastOp, y, element=f32), scale)
    y = node.emit(AddOp, y, node.operand(2), element=element(node.operand(2)))
    return _self_attention(node, y, mask=node.optional(5), past=node.optional(8), bias=None)


def _f32(node: Node, value: Value) -> SSAValue:
    found = node.materialize(value)
    return found if element(found) == f32 else node.emit(CastOp, found, element=f32)


def _self_attention(
    node: Node, y: SSAValue, mask: Value | None, past: Value | None, bias: Value | None
) -> Sequence[Value]:
    """Attention over queries, keys and values side by side; `past` is [2, N, heads, positions, features]."""
    given, heads = node.attributes, node.attributes["num_heads"]
    _refuse(node, "do_rotary", "past_present_share_buffer")
    _, count, width = shape(y)
    sizes = given.get("qkv_hidden_sizes") or [width // 3] * 3
    if sum(sizes) != width or any(size % heads for size in sizes):
        raise InferError(f"queries, keys and values are whole heads (found sizes {sizes}, {heads} heads, {width})")
    starts = [sum(sizes[:i]) for i in range(3)]
    parts = [
        node.emit(SliceOp, y, starts=[start], ends=[start + size], axes=[2])
        for start, size in zip(starts, sizes, strict=True)
    ]
    q, k, v = (_split(node, part, heads) for part in parts)
    before: list[Value | None] = [None, None]
    if past is not None and not is_empty(past):
        size = size_of(past)
        halves = [node.emit(SliceOp, node.materialize(past), starts=[i], ends=[i + 1], axes=[0]) for i in range(2)]
        before = [node.emit(ReshapeOp, half, shape=size[1:]) for half in halves]
    keys = count + (0 if before[0] is None else size_of(before[0])[2])
    added = _added(node, mask, bias, keys)
    result, present_k, present_v = _attend(node, (q, k, v), added, before, full=bias is None)
    wide = [node.emit(ReshapeOp, part, shape=[1, *shape(part)]) for part in (present_k, present_v)]
    if len(node.proto.output) < 2 or not node.proto.output[1]:
        return [result]
    return [result, node.emit(ConcatOp, *wide, axis=0)]


def _refuse(node: Node, *names: str) -> None:
    """Raises `InferError` for attributes that are not 0."""
    for name in names:
        if node.attributes.get(name, 0):
            raise InferError(f"{name} is 0 (found {node.attributes[name]})")


def _split(node: Node, x: SSAValue, heads: int) -> SSAValue:
    """[N, positions, heads·features] as [N, heads, positions, features]."""
    n, count, width = shape(x)
    return node.emit(TransposeOp, node.emit(ReshapeOp, x, shape=[n, count, heads, width // heads]), perm=[0, 2, 1, 3])


def _merged(node: Node, x: SSAValue) -> SSAValue:
    """[N, heads, positions, features] as [N, positions, heads·features]."""
    n, heads, count, width = shape(x)
    return node.emit(ReshapeOp, node.emit(TransposeOp, x, perm=[0, 2, 1, 3]), shape=[n, count, heads * width])


def _attend(
    node: Node,
    qkv: tuple[SSAValue, SSAValue, SSAValue],
    added: Value | None,
    past: Sequence[Value | None],
    full: bool,
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """The result [N, positions, heads·features], and keys and values with those before.

    `full`: what is added is finite, so no query is without keys.
    """
    more: dict[str, Any] = {"is_causal": 1} if node.attributes.get("unidirectional", 0) else {}
    if scale := node.attributes.get("scale", 0.0):
        more["scale"] = float(scale)
    found = softmax_attention(inner_node(node, "Attention", *qkv, added, *past, outputs=3, **more), full, lowest=False)
    y, k, v = map(node.materialize, found[:3])
    return _merged(node, y), k, v


# masks ----------------------------------------------------------------------------------------------------------------
def _added(node: Node, mask: Value | None, bias: Value | None, keys: int) -> Value | None:
    """What is added to the scores [N, heads, queries, keys]: a bias, and a number for keys that the mask leaves out."""
    parts = [value for value in (_filtered(node, mask, keys), bias) if value is not None]
    if len(parts) == 2:
        return node.emit(AddOp, *(node.materialize(part) for part in parts), element=f32)
    return parts[0] if parts else None


def _filtered(node: Node, mask: Value | None, keys: int) -> SSAValue | None:
    """0 for keys that a mask keeps, else `mask_filter_value`: [N, 1, 1 or queries, keys]."""
    if mask is None:
        return None
    size, given = size_of(mask), node.materialize(mask)
    n = size_of(node.given(0))[0]
    places = node.builder.constant(along(np.arange(keys, dtype=np.int32), 3, 4))
    zero = node.builder.constant(np.array(0, np.int32))
    if len(size) in (2, 3) and size[-1] == keys:
        kept = node.emit(
            GtOp, node.emit(ReshapeOp, given, shape=[size[0], 1, *size[1:-1], *[1] * (3 - len(size)), keys]), zero
        )
    elif size == (n,):
        kept = node.emit(LtOp, places, node.emit(ReshapeOp, given, shape=[n, 1, 1, 1]))
    elif size == (2 * n,):
        ends, starts = (
            node.emit(ReshapeOp, node.emit(SliceOp, given, starts=[at], ends=[at + n], axes=[0]), shape=[n, 1, 1, 1])
            for at in (0, n)
        )
        kept = node.emit(AndOp, node.emit(LtOp, places, ends), node.emit(GeOp, places, starts))
    else:
        raise InferError(f"a mask is of {n} lengths, {n} ends and starts, or of {keys} keys (found shape {list(size)})")
    filling = np.array(node.attributes.get("mask_filter_value", -10000.0), np.float32)
    return node.emit(WhereOp, kept, node.builder.constant(np.array(0, np.float32)), node.builder.constant(filling))


# of several operands --------------------------------------------------------------------------------------------------
def multi_head_attention(node: Node) -> Sequence[Value]:
    """Attention of queries, keys and values, which may come packed, with a bias before and a mask."""
    if any(node.optional(index) is not None for index in (8, 9)):
        raise InferError("keys and values before are as long as their tensor (found past_sequence_length)")
    heads = node.attributes["num_heads"]
    parts = _unpacked(node, heads)
    bias = node.optional(3)
    if bias is not None:
        parts = _biased(node, parts, node.materialize(bias))
    q, k, v = (part if len(shape(part)) == 4 else _split(node, part, heads) for part in parts)
    before = [None if (p := node.optional(i)) is None or is_empty(p) else p for i in (6, 7)]
    keys = shape(k)[2] + (0 if before[0] is None else size_of(before[0])[2])
    added = _added(node, node.optional(4), node.optional(5), keys)
    if len(node.proto.output) > 3:
        raise InferError("the scores stay inside (found a use of the output qk)")
    return _attend(node, (q, k, v), added, before, full=node.optional(5) is None)


def _unpacked(node: Node, heads: int) -> list[SSAValue]:
    """Queries, keys and values [N, positions, heads·features]; keys and values may have heads apart already."""
    q, k, v = (node.optional(index) for index in range(3))
    first = node.operand(0)
    if len(shape(first)) == 5:  # [N, positions, heads, 3, features]
        return _slots(node, first, 3)
    if k is not None and len(size_of(k)) == 5:  # [N, positions, heads, 2, features]
        return [first, *_slots(node, node.materialize(k), 2)]
    if q is None or k is None or v is None:
        raise InferError("there are queries, keys and values (found one of them missing)")
    return [first, node.materialize(k), node.materialize(v)]


def _slots(node: Node, x: SSAValue, count: int) -> list[SSAValue]:
    """The tensors that stand side by side on axis 3."""
    n, places, heads, _, width = shape(x)
    found = [node.emit(SliceOp, x, starts=[i], ends=[i + 1], axes=[3]) for i in range(count)]
    return [node.emit(ReshapeOp, part, shape=[n, places, heads * width]) for part in found]


def _biased(node: Node, parts: Sequence[SSAValue], bias: SSAValue) -> list[SSAValue]:
    """Each with its part of the bias."""
    found, start = list[SSAValue](), 0
    for part in parts:
        four = len(shape(part)) == 4
        width = shape(part)[1] * shape(part)[3] if four else shape(part)[2]
        own = node.emit(SliceOp, bias, starts=[start], ends=[start + width], axes=[0])
        own = node.emit(ReshapeOp, own, shape=[shape(part)[1], 1, shape(part)[3]]) if four else own
        found.append(part if four else node.emit(AddOp, part, own, element=element(part)))
        start += width
    return found


# rotary embedding -----------------------------------------------------------------------------------------------------
def rotary_embedding(node: Node) -> Sequence[Value]:
    """Pairs of features turned by the angles of their places; one place stands for all from it on."""
    x, places, cos, sin = (node.given(index) for index in range(4))
    given = node.attributes
    _refuse(node, "is_packed_batching")
    if given.get("scale", 1.0) != 1.0:
        raise InferError(f"scale is 1 (found {given['scale']})")
    n, count = size_of(x)[0], size_of(x)[-2]
    turned, heads = given.get("rotary_embedding_dim", 0), given.get("num_heads", 0)
    if len(size_of(x)) == 3 and not heads:
        heads = size_of(x)[2] // (2 * size_of(cos)[1])
    if size_of(places) == (1,):
        steps = node.builder.constant(np.arange(count, dtype=np.int32).reshape(1, count))
        wide = node.emit(AddOp, steps, node.materialize(places))
        places = node.emit(AddOp, wide, node.builder.constant(np.zeros((n, 1), np.int32)))
    more = {"num_heads": heads} if heads else {}
    interleaved = given.get("interleaved", 0)
    y = apply(
        node, "RotaryEmbedding", x, cos, sin, places, interleaved=interleaved, rotary_embedding_dim=turned, **more
    )
    return [y]


# grouped queries ------------------------------------------------------------------------------------------------------
def group_query_attention(node: Node) -> Sequence[Value]:
    """Causal attention of heads that share keys, written behind those before: to the places that lengths say."""
    given = node.attributes
    _check_grouped(node)
    heads, shared = given["num_heads"], given["kv_num_heads"]
    q, k, v = _grouped(node, heads, shared)
    n, count = shape(q)[:2]
    lengths = node.emit(AddOp, node.emit(ReshapeOp, node.operand(5), shape=[n]), _one(node))
    starts = node.emit(SubOp, lengths, node.builder.constant(np.array(count, np.int32)))
    past = [None if (p := node.optional(i)) is None or is_empty(p) else p for i in (3, 4)]
    prompt = past[0] is None
    if given.get("do_rotary", 0):
        q, k = (_rotated(node, x, h, None if prompt else starts) for x, h in ((q, heads), (k, shared)))
    q, k, v = _split(node, q, heads), _split(node, k, shared), _split(node, v, shared)
    if not prompt:
        capacity = max(size_of(past[0])[2] if past[0] is not None else 0, _total(node))
        k, v = (_written(node, p, x, starts, capacity) for p, x in zip(past, (k, v), strict=True))
    bias = node.optional(10)
    more: dict[str, Any] = {"is_causal": 1} if given.get("causal", 1) else {}
    if given.get("local_window_size", -1) > 0:
        more["left_window_size"] = given["local_window_size"] - 1
    if given.get("softcap", 0.0):
        more["softcap"] = float(given["softcap"])
    if given.get("scale", 0.0):
        more["scale"] = float(given["scale"])
    # Of a prompt, rows beyond its length are padding behind it, which no row of the prompt sees.
    whole = inner_node(node, "Attention", q, k, v, bias, None, None, None if prompt else lengths, **more)
    y = node.materialize(softmax_attention(whole, full=bias is None, lowest=False, sink=_sink(node, heads))[0])
    return [_merged(node, y), k, v]


def _sink(node: Node, heads: int) -> SSAValue | None:
    """The score of a key without a value: of each head, or 0 with `smooth_softmax`."""
    given = node.optional(11)
    if given is not None:
        return node.emit(ReshapeOp, _f32(node, given), shape=[heads, 1, 1])
    smooth = node.attributes.get("smooth_softmax", 0) > 0
    return node.builder.constant(np.zeros((), np.float32)) if smooth else None


def _check_grouped(node: Node) -> None:
    given = node.attributes
    _refuse(node, "sliding_window_cache", "qk_output", "kv_cache_bit_width")
    kinds = {given.get(f"{side}_quant_type", "NONE") for side in "kv"}
    if kinds != {"NONE"} or any(node.optional(index) is not None for index in (12, 13)):
        raise InferError("keys and values before are floats (found them quantised)")
    if any(node.optional(index) is not None for index in (14, 15, 16)):
        raise InferError("queries come as they are (found q_norm_weight, k_norm_weight or query_seqlens)")


def _one(node: Node) -> SSAValue:
    return node.builder.constant(np.array(1, np.int32))


def _grouped(node: Node, heads: int, shared: int) -> list[SSAValue]:
    """Queries, keys and values [N, positions, heads·features]."""
    q, k, v = node.operand(0), node.optional(1), node.optional(2)
    if k is not None and v is not None:
        return [q, node.materialize(k), node.materialize(v)]
    width = shape(q)[2] // (heads + 2 * shared)
    ends = [0, heads * width, (heads + shared) * width, (heads + 2 * shared) * width]
    return [node.emit(SliceOp, q, starts=[start], ends=[end], axes=[2]) for start, end in pairwise(ends)]


def _rotated(node: Node, x: SSAValue, heads: int, starts: SSAValue | None) -> SSAValue:
    """Turned by the angles of its places: those given, or those from the start on."""
    n, count = shape(x)[:2]
    cos, sin, places = node.given(7), node.given(8), node.optional(9)
    steps = np.arange(count, dtype=np.int32).reshape(1, count)
    if places is None:
        first = node.builder.constant(np.zeros((n, 1), np.int32)) if starts is None else starts
        places = node.emit(AddOp, node.emit(ReshapeOp, first, shape=[n, 1]), node.builder.constant(steps))
    turned = 2 * size_of(cos)[1]
    interleaved = node.attributes.get("rotary_interleaved", 0)
    width = shape(x)[2] // heads
    dim = turned if turned < width else 0
    return apply(
        node,
        "RotaryEmbedding",
        x,
        cos,
        sin,
        places,
        num_heads=heads,
        interleaved=interleaved,
        rotary_embedding_dim=dim,
    )


def _total(node: Node) -> int:
    """How many keys there may be."""
    given = node.optional(6)
    if not isinstance(given, np.ndarray):
        raise InferError("total_sequence_length is a constant (found one that is computed)")
    return int(given.reshape(-1)[0])


def _written(node: Node, past: Value | None, x: SSAValue, starts: SSAValue, capacity: int) -> SSAValue:
    """What came before with x behind it, in a tensor of `capacity` places."""
    assert past is not None
    before = node.materialize(past)
    if (missing := capacity - shape(before)[2]) > 0:
        before = node.emit(PadOp, before, before=[0] * 4, after=[0, 0, missing, 0])
    return apply(node, "TensorScatter", before, x, starts, axis=2)


ATTENTION: Mapping[str, Any] = {
    "Attention": attention,
    "GroupQueryAttention": group_query_attention,
    "MultiHeadAttention": multi_head_attention,
    "QAttention": q_attention,
    "RotaryEmbedding": rotary_embedding,
}
"""By operator."""
