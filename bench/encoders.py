"""BERT-base and ViT-B/16, as torch's exporter writes them: attention and GELU in parts, layer norm as an operator or in
parts.

Queries and keys are large enough for attention to choose between tokens.
"""

from collections.abc import Sequence

import numpy as np
import onnx

from stepwell.bench.convnets import classifier
from stepwell.bench.writer import Writer

HIDDEN_BY_MASK = float(np.finfo(np.float32).min)


def _layer_norm(w: Writer, x: str, hidden: int, as_op: bool, epsilon: float) -> str:
    """The operator of opset 17, or its parts as before."""
    scale = w.normal("weight", hidden, scale=0.1, mean=1)
    shift = w.normal("bias", hidden, scale=0.1)
    if as_op:
        return w.node("LayerNormalization", x, scale, shift, axis=-1, epsilon=epsilon)
    centred = w.node("Sub", x, w.node("ReduceMean", x, axes=[-1]))
    variance = w.node("ReduceMean", w.node("Pow", centred, w.constant(2.0)), axes=[-1])
    deviation = w.node("Sqrt", w.node("Add", variance, w.constant(epsilon)))
    return w.node("Add", w.node("Mul", w.node("Div", centred, deviation), scale), shift)


def linear(w: Writer, name: str, x: str, k: int, n: int, gain: float = 1.0, bias: bool = True) -> str:
    """`MatMul` and `Add`, the bias first; the module `name`."""
    with w.scope(name):
        y = w.node("MatMul", x, w.normal("weight", k, n, scale=gain / float(np.sqrt(k))))
        return w.node("Add", w.normal("bias", n, scale=0.05), y) if bias else y


def _gelu(w: Writer, x: str) -> str:
    erf = w.node("Erf", w.node("Div", x, w.constant(np.sqrt(2.0))))
    return w.node("Mul", w.node("Mul", x, w.node("Add", erf, w.constant(1.0))), w.constant(0.5))


def _split_heads(w: Writer, x: str, heads: int, size: int, perm: Sequence[int]) -> str:
    """[batch, seq, hidden] by heads, its shape computed from that of `x`."""
    extents: list[str] = []
    for axis in (0, 1):
        extent = w.node("Gather", w.node("Shape", x), w.constant(axis, np.int64), axis=0)
        extents.append(w.node("Unsqueeze", extent, w.constant([0], np.int64)))
    shape = w.node("Concat", *extents, w.constant([heads], np.int64), w.constant([size], np.int64), axis=0)
    return w.node("Transpose", w.node("Reshape", x, shape), perm=list(perm))


def _bert_attention(w: Writer, x: str, mask: str, hidden: int, heads: int) -> str:
    size = hidden // heads
    with w.scope("self"):
        q = _split_heads(w, linear(w, "query", x, hidden, hidden, 2), heads, size, (0, 2, 1, 3))
        k = _split_heads(w, linear(w, "key", x, hidden, hidden, 2), heads, size, (0, 2, 3, 1))
        v = _split_heads(w, linear(w, "value", x, hidden, hidden), heads, size, (0, 2, 1, 3))
        scores = w.node("Div", w.node("MatMul", q, k), w.constant(np.sqrt(float(size))))
        weights = w.node("Softmax", w.node("Add", scores, mask), axis=-1)
        context = w.node("Transpose", w.node("MatMul", weights, v), perm=[0, 2, 1, 3])
        return w.node("Reshape", context, w.constant([0, 0, hidden], np.int64))


def _bert_layer(w: Writer, x: str, mask: str, hidden: int, heads: int, as_op: bool) -> str:
    with w.scope("attention"):
        y = _bert_attention(w, x, mask, hidden, heads)
        with w.scope("output"):
            y = w.node("Add", linear(w, "dense", y, hidden, hidden, 0.5), x)
            with w.scope("LayerNorm"):
                x = _layer_norm(w, y, hidden, as_op, 1e-12)
    with w.scope("intermediate"):
        y = linear(w, "dense", x, hidden, 4 * hidden)
        with w.scope("intermediate_act_fn"):
            y = _gelu(w, y)
    with w.scope("output"):
        y = w.node("Add", linear(w, "dense", y, 4 * hidden, hidden, 1.5), x)
        with w.scope("LayerNorm"):
            return _layer_norm(w, y, hidden, as_op, 1e-12)


def _bert_embeddings(w: Writer, seq: int, vocabulary: int, hidden: int, as_op: bool) -> str:
    """Of words, kinds of token and positions."""
    with w.scope("embeddings"):
        rows = {"word": ("input_ids", vocabulary), "token_type": ("token_type_ids", 2), "position": ("", max(512, seq))}
        parts: list[str] = []
        for name, (ids, count) in rows.items():
            with w.scope(f"{name}_embeddings"):
                ids = ids or w.constant(np.arange(seq)[None], np.int64)
                scale = 1.0 if name == "word" else 0.3
                parts.append(w.node("Gather", w.normal("weight", count, hidden, scale=scale), ids))
        x = w.node("Add", w.node("Add", parts[0], parts[1]), parts[2])
        with w.scope("LayerNorm"):
            return _layer_norm(w, x, hidden, as_op, 1e-12)


def bert(
    batch: int = 1,
    seq: int = 128,
    layers: int = 12,
    hidden: int = 768,
    heads: int = 12,
    vocabulary: int = 30522,
    norm_as_op: bool = True,
) -> onnx.ModelProto:
    """BERT-base with embeddings, attention mask and pooler: ids and mask in, hidden states and pooled output out."""
    w = Writer(seed=3)
    mask = w.node("Unsqueeze", "attention_mask", w.constant([1], np.int64))
    mask = w.node("Unsqueeze", mask, w.constant([2], np.int64))
    mask = w.node("Sub", w.constant(1.0), w.node("Cast", mask, to=onnx.TensorProto.FLOAT))
    mask = w.node("Mul", mask, w.constant(HIDDEN_BY_MASK))
    x = _bert_embeddings(w, seq, vocabulary, hidden, norm_as_op)
    for layer in range(layers):
        with w.scope("encoder"), w.scope(f"layer.{layer}"):
            x = _bert_layer(w, x, mask, hidden, heads, norm_as_op)
    with w.scope("pooler"):
        first = w.node("Gather", x, w.constant(0, np.int64), axis=1)
        with w.scope("dense"):
            weight, bias = w.normal("weight", hidden, hidden, scale=hidden**-0.5), w.normal("bias", hidden, scale=0.1)
            pooled = w.node("Gemm", first, weight, bias, alpha=1.0, beta=1.0, transB=1)
        pooled = w.node("Tanh", pooled)
    ids = (np.int64, (batch, seq))
    inputs = {"input_ids": ids, "attention_mask": ids, "token_type_ids": ids}
    outputs = {"last_hidden_state": (x, (batch, seq, hidden)), "pooler_output": (pooled, (batch, hidden))}
    return w.model(inputs, outputs)


def _vit_attention(w: Writer, x: str, batch: int, tokens: int, hidden: int, heads: int) -> str:
    """Queries, keys and values from one product, split apart."""
    size = hidden // heads
    x = linear(w, "qkv", x, hidden, 3 * hidden, 1.5)
    x = w.node("Reshape", x, w.constant([batch, tokens, 3, heads, size], np.int64))
    x = w.node("Transpose", x, perm=[2, 0, 3, 1, 4])
    parts = w.nodes("Split", x, w.constant([1, 1, 1], np.int64), outputs=3, axis=0)
    q, k, v = (w.node("Squeeze", part, w.constant([0], np.int64)) for part in parts)
    q = w.node("Mul", q, w.constant(float(size) ** -0.5))
    weights = w.node("Softmax", w.node("MatMul", q, w.node("Transpose", k, perm=[0, 1, 3, 2])), axis=-1)
    x = w.node("Transpose", w.node("MatMul", weights, v), perm=[0, 2, 1, 3])
    x = w.node("Reshape", x, w.constant([batch, tokens, hidden], np.int64))
    return linear(w, "proj", x, hidden, hidden, 0.5)


def _vit_block(w: Writer, x: str, batch: int, tokens: int, hidden: int, heads: int, as_op: bool) -> str:
    with w.scope("norm1"):
        y = _layer_norm(w, x, hidden, as_op, 1e-6)
    with w.scope("attn"):
        x = w.node("Add", x, _vit_attention(w, y, batch, tokens, hidden, heads))
    with w.scope("norm2"):
        y = _layer_norm(w, x, hidden, as_op, 1e-6)
    with w.scope("mlp"):
        y = linear(w, "fc1", y, hidden, 4 * hidden)
        with w.scope("act"):
            y = _gelu(w, y)
        return w.node("Add", x, linear(w, "fc2", y, 4 * hidden, hidden))


def vit(
    batch: int = 1,
    size: int = 224,
    layers: int = 12,
    hidden: int = 768,
    heads: int = 12,
    classes: int = 1000,
    norm_as_op: bool = True,
) -> onnx.ModelProto:
    """ViT-B/16: patches by a convolution, a class token, pre-norm layers."""
    w, patches = Writer(seed=16), (size // 16) ** 2
    with w.scope("patch_embed"):
        with w.scope("proj"):
            weight, bias = w.normal("weight", hidden, 3, 16, 16, scale=768**-0.5), w.normal("bias", hidden, scale=0.1)
            attributes = {
                "dilations": [1, 1],
                "group": 1,
                "kernel_shape": [16, 16],
                "pads": [0] * 4,
                "strides": [16, 16],
            }
            x = w.node("Conv", "input", weight, bias, **attributes)
        x = w.node("Reshape", x, w.constant([batch, hidden, patches], np.int64))
        x = w.node("Transpose", x, perm=[0, 2, 1])
    token = w.node("Expand", w.normal("cls_token", 1, 1, hidden), w.constant([batch, 1, hidden], np.int64))
    x = w.node("Concat", token, x, axis=1)
    x = w.node("Add", x, w.normal("pos_embed", 1, patches + 1, hidden, scale=0.5))
    for layer in range(layers):
        with w.scope("blocks"), w.scope(f"blocks.{layer}"):
            x = _vit_block(w, x, batch, patches + 1, hidden, heads, norm_as_op)
    with w.scope("norm"):
        x = _layer_norm(w, x, hidden, norm_as_op, 1e-6)
    with w.scope("head"):
        x = classifier(w, w.node("Gather", x, w.constant(0, np.int64), axis=1), hidden, classes)
    return w.model({"input": (np.float32, (batch, 3, size, size))}, {"output": (x, (batch, classes))})
