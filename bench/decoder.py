"""A decoder layer in the style of Llama, as torch's exporter writes it: RMS norm, rotary positions, grouped-query
attention, SwiGLU. Sizes by default are those of Llama 3.2 1B.
"""

import numpy as np
import onnx

from stepwell.bench.encoders import HIDDEN_BY_MASK, linear
from stepwell.bench.writer import Writer

THETA = 500_000.0
"""Base of the rotary frequencies."""


def _rms_norm(w: Writer, name: str, x: str, hidden: int) -> str:
    with w.scope(name):
        square = w.node("ReduceMean", w.node("Pow", x, w.constant(2.0)), axes=[-1])
        root = w.node("Sqrt", w.node("Add", square, w.constant(1e-5)))
        y = w.node("Mul", x, w.node("Div", w.constant(1.0), root))
        return w.node("Mul", w.normal("weight", hidden, scale=0.1, mean=1), y)


def _angles(w: Writer, positions: str, size: int) -> tuple[str, str]:
    """Cosine and sine [batch, 1, seq, size] of the rotary angles; `positions` are [batch, seq]."""
    with w.scope("rotary_emb"):
        frequencies = THETA ** (-np.arange(0, size, 2, dtype=np.float64) / size)
        row = w.node("Unsqueeze", positions, w.constant([1], np.int64))
        row = w.node("Cast", row, to=onnx.TensorProto.FLOAT)
        angles = w.node("MatMul", w.constant(frequencies[None, :, None]), row)
        angles = w.node("Transpose", angles, perm=[0, 2, 1])
        angles = w.node("Concat", angles, angles, axis=-1)
        axis = w.constant([1], np.int64)
        return w.node("Unsqueeze", w.node("Cos", angles), axis), w.node("Unsqueeze", w.node("Sin", angles), axis)


def _rotated(w: Writer, x: str, cos: str, sin: str, size: int) -> str:
    """`x`, whose halves are the parts of complex numbers, turned by the angles."""
    axis, middle = w.constant([3], np.int64), w.constant([size // 2], np.int64)
    end = w.constant([np.iinfo(np.int64).max], np.int64)
    first = w.node("Slice", x, w.constant([0], np.int64), middle, axis)
    second = w.node("Neg", w.node("Slice", x, middle, end, axis))
    half = w.node("Concat", second, first, axis=-1)
    return w.node("Add", w.node("Mul", x, cos), w.node("Mul", half, sin))


def _heads(w: Writer, name: str, x: str, hidden: int, shape: tuple[int, int, int, int], gain: float = 1.0) -> str:
    """A projection as [batch, heads, seq, size]; `shape` is [batch, seq, heads, size]."""
    x = linear(w, name, x, hidden, shape[2] * shape[3], gain, bias=False)
    return w.node("Transpose", w.node("Reshape", x, w.constant(shape, np.int64)), perm=[0, 2, 1, 3])


def _repeated(w: Writer, x: str, batch: int, kv_heads: int, times: int, length: int, size: int) -> str:
    """Each head of keys or values for the `times` heads of queries that share it."""
    x = w.node("Unsqueeze", x, w.constant([2], np.int64))
    x = w.node("Expand", x, w.constant([batch, kv_heads, times, length, size], np.int64))
    return w.node("Reshape", x, w.constant([batch, kv_heads * times, length, size], np.int64))


def _swiglu(w: Writer, x: str, hidden: int, inner: int) -> str:
    with w.scope("mlp"):
        gate = linear(w, "gate_proj", x, hidden, inner, bias=False)
        with w.scope("act_fn"):
            gate = w.node("Mul", gate, w.node("Sigmoid", gate))
        up = linear(w, "up_proj", x, hidden, inner, bias=False)
        return linear(w, "down_proj", w.node("Mul", gate, up), inner, hidden, bias=False)


def llama(
    batch: int = 1,
    seq: int = 128,
    past: int = 0,
    hidden: int = 2048,
    heads: int = 32,
    kv_heads: int = 8,
    inner: int = 8192,
) -> onnx.ModelProto:
    """One layer. Without `past` the prefill form: positions and the causal mask are constants. With `past` cached keys
    and values these are inputs, and so are positions [batch, seq] and an additive mask [batch, 1, seq, past + seq];
    keys and values of all tokens are outputs."""
    w, size, length = Writer(seed=8), hidden // heads, past + seq
    with w.scope("self_attn"):
        mask = "attention_mask" if past else w.constant(np.triu(np.full((1, 1, seq, seq), HIDDEN_BY_MASK), 1))
    cos, sin = _angles(w, "position_ids" if past else w.constant(np.arange(seq)[None], np.int64), size)
    y = _rms_norm(w, "input_layernorm", "hidden_states", hidden)
    with w.scope("self_attn"):
        q = _rotated(w, _heads(w, "q_proj", y, hidden, (batch, seq, heads, size), 1.5), cos, sin, size)
        k = _rotated(w, _heads(w, "k_proj", y, hidden, (batch, seq, kv_heads, size), 1.5), cos, sin, size)
        v = _heads(w, "v_proj", y, hidden, (batch, seq, kv_heads, size))
        if past:
            k, v = w.node("Concat", "past_key", k, axis=-2), w.node("Concat", "past_value", v, axis=-2)
        keys, values = (_repeated(w, x, batch, kv_heads, heads // kv_heads, length, size) for x in (k, v))
        scores = w.node("MatMul", q, w.node("Transpose", keys, perm=[0, 1, 3, 2]))
        scores = w.node("Add", w.node("Mul", scores, w.constant(float(size) ** -0.5)), mask)
        context = w.node("MatMul", w.node("Softmax", scores, axis=-1), values)
        context = w.node("Transpose", context, perm=[0, 2, 1, 3])
        context = w.node("Reshape", context, w.constant([batch, seq, hidden], np.int64))
        y = linear(w, "o_proj", context, hidden, hidden, bias=False)
    x = w.node("Add", "hidden_states", y)
    y = _swiglu(w, _rms_norm(w, "post_attention_layernorm", x, hidden), hidden, inner)
    inputs = {"hidden_states": (np.float32, (batch, seq, hidden))}
    outputs = {"output": (w.node("Add", x, y), (batch, seq, hidden))}
    if past:
        cached = (np.float32, (batch, kv_heads, past, size))
        inputs |= {"position_ids": (np.int64, (batch, seq)), "attention_mask": (np.float32, (batch, 1, seq, length))}
        inputs |= {"past_key": cached, "past_value": cached}
        grown = (batch, kv_heads, length, size)
        outputs |= {"present_key": (k, grown), "present_value": (v, grown)}
    return w.model(inputs, outputs)
