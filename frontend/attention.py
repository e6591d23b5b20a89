"""ONNX's Attention and RotaryEmbedding: products, masks and a softmax, which the passes after import make fast."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from onnx import TensorProto
from xdsl.ir import Attribute, SSAValue

from ..dialects.graph.activations import TanhOp
from ..dialects.graph.arithmetic import AddOp, AndOp, EqOp, GeOp, LeOp, LtOp, MulOp, SubOp
from ..dialects.graph.constants import NUMPY
from ..dialects.graph.contract import MatMulOp
from ..dialects.graph.elementwise import WhereOp
from ..dialects.graph.gather import GatherOp
from ..dialects.graph.op import FLOATS, DtypeError, InferError, ShapeError, broadcast_shapes, element, f32, i1, shape
from ..dialects.graph.reduce import ReduceMaxOp, SoftmaxOp
from ..dialects.graph.views import ConcatOp, ExpandOp, ReshapeOp, SliceOp, TransposeOp
from .movement import framed, repeat
from .node import Node, Value, size_of

NEVER = np.array(-np.inf, np.float32)
QK_RAW, QK_CAPPED, QK_BIASED, QK_WEIGHTS = range(4)
"""What the last output of Attention shows, by `qk_matmul_output_mode`."""


@dataclass(frozen=True, slots=True)
class Extents:
    """How many queries there are, how many keys, and how many of these came before the queries (None: run time)."""

    queries: int
    keys: int
    past: int | None


def attention(node: Node, full: bool = False, lowest: bool = True, sink: SSAValue | None = None) -> Sequence[Value]:
    """softmax(q·kᵀ·scale + bias)·v per head; further outputs are keys and values with those of the past, and scores.

    A query that no key is for gives 0; `full`: there is none. `lowest`: the least finite number of a mask's type is
    minus infinity. `sink`: a score for each head, [heads, 1, 1] or one, of a key without a value.
    """
    q, k, v = (_heads(node, index) for index in range(3))
    past = [_optional(node, index) for index in (4, 5)]
    if (past[0] is None) != (past[1] is None):
        raise InferError("past keys and values come together (found only one of them)", broken=True)
    keys, values = (
        own if before is None else node.emit(ConcatOp, before, own, axis=2)
        for own, before in zip((k, v), past, strict=True)
    )
    before = 0 if past[0] is None else shape(past[0])[2]
    lengths = _optional(node, 6)
    extents = Extents(shape(q)[2], shape(keys)[2], before if lengths is None or past[0] is not None else None)
    biases = _bias(node, extents, lengths, lowest)
    biases = (biases[0], None) if full or sink is not None else biases
    weights, shown = _weights(node, q, _shared(node, keys, q), *biases, sink)
    y = node.emit(MatMulOp, weights, _shared(node, values, q), element=element(q))
    y = _unless(node, biases[1], y)
    if len(size_of(node.given(0))) == 3:
        n, heads, queries, width = shape(y)
        y = node.emit(ReshapeOp, node.emit(TransposeOp, y, perm=[0, 2, 1, 3]), shape=[n, queries, heads * width])
    return [y, keys, values, shown]


def _optional(node: Node, index: int) -> SSAValue | None:
    given = node.inputs[index] if index < len(node.inputs) else None
    return None if given is None else node.materialize(given)


def _heads(node: Node, index: int) -> SSAValue:
    """q, k or v as [N, heads, positions, features]."""
    x = node.operand(index)
    if element(x) not in FLOATS or len(shape(x)) not in (3, 4):
        raise ShapeError(f"queries, keys and values are floats of rank 3 or 4 (found {x.type})")
    if len(shape(x)) == 4:
        return x
    heads, (n, count, width) = node.attributes.get("q_num_heads" if index == 0 else "kv_num_heads", 0), shape(x)
    if heads < 1 or width % heads:
        raise ShapeError(f"the heads divide the features of rank 3 (found {heads} and {width})")
    return node.emit(TransposeOp, node.emit(ReshapeOp, x, shape=[n, count, heads, width // heads]), perm=[0, 2, 1, 3])


def _shared(node: Node, x: SSAValue, q: SSAValue) -> SSAValue:
    """Keys or values with a head for each of the queries', which share them in groups."""
    heads, wanted = shape(x)[1], shape(q)[1]
    if wanted % heads:
        raise ShapeError(f"heads of keys divide those of queries (found {heads} and {wanted})")
    return x if heads == wanted else repeat(node, x, [1, wanted // heads, 1, 1])


def _weights(
    node: Node,
    q: SSAValue,
    k: SSAValue,
    bias: SSAValue | None,
    nothing: SSAValue | None,
    sink: SSAValue | None,
) -> tuple[SSAValue, SSAValue]:
    """The weight of each key for each query, and the scores that are shown."""
    given, kind = node.attributes, element(q)
    if given.get("softmax_precision", TensorProto.FLOAT) == TensorProto.DOUBLE:
        raise DtypeError("softmax is computed in f32 (found softmax_precision = DOUBLE)")
    scale, mode = given.get("scale") or 1 / math.sqrt(shape(q)[-1]), given.get("qk_matmul_output_mode", QK_RAW)
    scores = node.emit(MatMulOp, q, k, trans_b=True, element=f32)
    scores = node.emit(MulOp, scores, _number(node, scale), element=f32)
    stages = {QK_RAW: scores}
    if (cap := given.get("softcap", 0.0)) > 0:
        scaled = node.emit(MulOp, scores, _number(node, 1 / cap), element=f32)
        scores = node.emit(MulOp, node.emit(TanhOp, scaled, element=f32), _number(node, cap), element=f32)
    stages[QK_CAPPED] = scores
    if bias is not None and broadcast_shapes(shape(bias), shape(scores)) != shape(scores):
        raise ShapeError(f"a mask broadcasts to the scores, {list(shape(scores))} (found {bias.type})")
    biased = scores if bias is None else node.emit(AddOp, scores, bias, element=f32)
    stages[QK_BIASED] = biased
    if nothing is not None:  # scores of a query without keys are finite, so that no NaN is counted
        biased = node.emit(WhereOp, nothing, _number(node, 0.0), biased, element=f32)
    weights = _softmax(node, biased, sink, kind)
    if mode == QK_WEIGHTS:
        stages[mode] = _unless(node, nothing, weights)
    if mode not in stages:
        raise InferError(f"qk_matmul_output_mode is 0 to 3 (found {mode})", broken=True)
    shown = stages[mode]
    wanted = len(node.proto.output) > 3 and element(shown) != kind
    return weights, node.emit(MulOp, shown, _number(node, 1.0), element=kind) if wanted else shown


def _softmax(node: Node, scores: SSAValue, sink: SSAValue | None, kind: Attribute) -> SSAValue:
    """The weights of the keys; a sink has some too, which are left out."""
    if sink is None:
        return node.emit(SoftmaxOp, scores, axes=[3], element=kind)
    size = shape(scores)
    more = node.emit(ExpandOp, sink, shape=[*size[:3], 1])
    weights = node.emit(SoftmaxOp, node.emit(ConcatOp, scores, more, axis=3), axes=[3], element=kind)
    return node.emit(SliceOp, weights, starts=[0] * 4, sizes=size, steps=[1] * 4)


def _unless(node: Node, nothing: SSAValue | None, x: SSAValue) -> SSAValue:
    """0 for queries without keys."""
    if nothing is None:
        return x
    return node.emit(WhereOp, nothing, node.materialize(np.zeros((), np.float32)), x, element=element(x))


# masks ----------------------------------------------------------------------------------------------------------------
def _bias(
    node: Node, extents: Extents, lengths: SSAValue | None, lowest: bool
) -> tuple[SSAValue | None, SSAValue | None]:
    """What is added to the scores, −∞ for keys that are not for a query; and which queries no key is for."""
    fixed, computed = _allowed(node, extents, lengths)
    given = node.inputs[3] if len(node.inputs) > 3 else None
    mask = None if given is None else _mask(node, given, extents.keys)
    never = (
        np.finfo(np.float32).min if mask is None or element(mask) == i1 else ml_dtypes.finfo(NUMPY[element(mask)]).min
    )
    if mask is not None and element(mask) == i1:
        computed = [*computed, mask]
        mask = None
    if fixed is not None and not fixed.all():
        computed = [node.materialize(fixed), *computed]
    if not computed and mask is None:
        return None, None
    bias = mask
    if computed:
        allowed = computed[0]
        for other in computed[1:]:
            allowed = node.emit(AndOp, allowed, other, element=i1)
        added = _number(node, 0.0) if mask is None else mask
        bias = node.emit(WhereOp, allowed, added, node.materialize(NEVER), element=f32)
    assert bias is not None
    if fixed is not None and len(computed) == 1 and mask is None and given is None and fixed.any(-1).all():
        return bias, None
    most = node.emit(ReduceMaxOp, bias, axes=[len(shape(bias)) - 1], keepdims=True, element=f32)
    if lowest:
        return bias, node.emit(LeOp, most, _number(node, float(never)), element=i1)
    return bias, node.emit(EqOp, most, node.materialize(NEVER), element=i1)


def _mask(node: Node, given: Value, keys: int) -> SSAValue:
    """The mask with a place for each key: those that it leaves out are not allowed."""
    mask = node.materialize(given)
    missing = keys - shape(mask)[-1]
    if missing <= 0 or shape(mask)[-1] == 1:
        return mask
    after = [0] * (len(shape(mask)) - 1) + [missing]
    outside = np.zeros((), bool) if element(mask) == i1 else NEVER
    filling = node.materialize(outside.astype(NUMPY[element(mask)]))
    return framed(node, mask, [0] * len(after), after, filling)


def _allowed(
    node: Node, extents: Extents, lengths: SSAValue | None
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.bool_]] | None, list[SSAValue]]:
    """Which keys are for which query by their places: what is known, and what lengths at run time say."""
    left, right = (int(node.attributes.get(f"{side}_window_size", -1)) for side in ("left", "right"))
    right = 0 if node.attributes.get("is_causal", 0) and right != 0 else right
    places, queries = np.arange(extents.keys), np.arange(extents.queries)[:, None]
    computed = list[SSAValue]()
    if lengths is not None:
        lengths = node.emit(ReshapeOp, lengths, shape=[shape(lengths)[0], 1, 1, 1])
        keys = node.materialize(places.astype(np.int32))
        computed.append(node.emit(LtOp, keys, lengths, element=i1))
    if left < 0 and right < 0:
        return None, computed
    if extents.past is not None:
        distance = places - queries - extents.past
        return ((distance <= right) | (right < 0)) & ((-distance <= left) | (left < 0)), computed
    assert lengths is not None
    # place of a query = length − queries + its number, so a key's distance is number + queries − … − length
    ahead = node.materialize((places - queries + extents.queries).astype(np.int32))
    if right >= 0:
        latest = node.emit(AddOp, lengths, node.materialize(np.array(right, np.int32)))
        computed.append(node.emit(LeOp, ahead, latest, element=i1))
    if left >= 0:
        earliest = node.emit(SubOp, lengths, node.materialize(np.array(left, np.int32)))
        computed.append(node.emit(GeOp, ahead, earliest, element=i1))
    return None, computed


def _number(node: Node, value: float) -> SSAValue:
    return node.builder.constant(np.array(value, np.float32))


# rotary embedding -----------------------------------------------------------------------------------------------------
def rotary_embedding(node: Node) -> Sequence[Value]:
    """Pairs of features turned by angles: (c·a − s·b, s·a + c·b); the pairs are halves or neighbours."""
    x = _heads_last(node)
    kind, width = element(x), shape(x)[-1]
    turned = node.attributes.get("rotary_embedding_dim", 0) or width
    if turned % 2 or turned > width:
        raise InferError(f"features are turned in pairs, at most {width} of them (found {turned})")
    cos, sin = (_angles(node, index, turned // 2) for index in (1, 2))
    n, count, heads, _ = shape(x)
    interleaved = bool(node.attributes.get("interleaved", 0))
    pairs = [n, count, heads, turned // 2, 2] if interleaved else [n, count, heads, 2, turned // 2]
    split = _features(node, x, 0, turned)
    split = node.emit(ReshapeOp, split, shape=pairs)
    axis = 4 if interleaved else 3
    one = [*pairs[:axis], 1, *pairs[axis + 1 :]]
    a, b = (
        node.emit(SliceOp, split, starts=[i if j == axis else 0 for j in range(5)], sizes=one, steps=[1] * 5)
        for i in range(2)
    )
    cos, sin = (node.emit(ReshapeOp, t, shape=[*shape(t)[:2], 1, *one[3:]]) for t in (cos, sin))

    def product(p: SSAValue, t: SSAValue) -> SSAValue:
        return node.emit(MulOp, p, t, element=f32)

    real = node.emit(SubOp, product(a, cos), product(b, sin), element=kind)
    imaginary = node.emit(AddOp, product(a, sin), product(b, cos), element=kind)
    y = node.emit(ConcatOp, real, imaginary, axis=axis)
    y = node.emit(ReshapeOp, y, shape=[n, count, heads, turned])
    if turned < width:
        y = node.emit(ConcatOp, y, _features(node, x, turned, width), axis=3)
    if len(size_of(node.given(0))) == 4:
        return [node.emit(TransposeOp, y, perm=[0, 2, 1, 3])]
    return [node.emit(ReshapeOp, y, shape=size_of(node.given(0)))]


def _heads_last(node: Node) -> SSAValue:
    """The operand as [N, positions, heads, features]."""
    x = node.operand(0)
    if element(x) not in FLOATS or len(shape(x)) not in (3, 4):
        raise DtypeError(f"the operand holds floats of rank 3 or 4 (found {x.type})")
    if len(shape(x)) == 4:
        return node.emit(TransposeOp, x, perm=[0, 2, 1, 3])
    heads, (n, count, width) = node.attributes.get("num_heads", 0), shape(x)
    if heads < 1 or width % heads:
        raise ShapeError(f"the heads divide the features of rank 3 (found {heads} and {width})")
    return node.emit(ReshapeOp, x, shape=[n, count, heads, width // heads])


def _features(node: Node, x: SSAValue, start: int, end: int) -> SSAValue:
    return node.emit(SliceOp, x, starts=[0, 0, 0, start], sizes=[*shape(x)[:3], end - start], steps=[1] * 4)


def _angles(node: Node, index: int, pairs: int) -> SSAValue:
    """Cosines or sines [N, positions, pairs]; with position ids, rows of a table."""
    table, places = node.operand(index), _optional(node, 3)
    if shape(table)[-1] != pairs:
        raise ShapeError(f"there is an angle for each of {pairs} pairs (found {table.type})")
    return table if places is None else node.emit(GatherOp, table, places, axis=0)
