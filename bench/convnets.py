"""ResNet-50 and MobileNetV2, as torch's exporter writes them, with their batch normalisations.

Weights are scaled so that activations keep their size through any depth. Filters sum to zero: else all images look
alike after a few ReLUs. Residual branches are weak: else rounding errors grow from block to block as much as what
tells images apart.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from stepwell.bench.writer import Writer

RELU_MEAN = 0.4
"""Of the ReLU of a standard normal value, about."""


def _conv_norm(
    w: Writer,
    names: tuple[str, str],
    x: str,
    cin: int,
    cout: int,
    kernel: int = 1,
    stride: int = 1,
    group: int = 1,
    gain: float = 1.0,
) -> str:
    """Convolution without a bias and batch normalisation, modules of these names. Behind the ReLU of standard normal
    values the result is again of deviation `gain`: the filters sum to zero, or the normalisation takes the mean off."""
    shape = (cout, cin // group, kernel, kernel)
    with w.scope(names[0]):
        array, fan_in = w.random("weight", *shape), shape[1] * kernel * kernel
        if group == 1:
            array -= array.mean(axis=(1, 2, 3), keepdims=True)
        array *= np.float32(np.sqrt(2.9 / fan_in))
        sides, steps = [kernel] * 2, [stride] * 2
        attributes = {"dilations": [1, 1], "group": group, "kernel_shape": sides, "pads": [kernel // 2] * 4}
        x = w.node("Conv", x, w.weight("weight", array), **attributes, strides=steps)
    with w.scope(names[1]):
        return _batch_norm(w, x, array.sum(axis=(1, 2, 3)) * np.float32(RELU_MEAN), gain)


def _batch_norm(w: Writer, x: str, mean: NDArray[Any], gain: float) -> str:
    channels = len(mean)
    scale = w.normal("weight", channels, scale=0.1 * gain, mean=gain)
    shift = w.normal("bias", channels, scale=0.1)
    centre = w.weight("running_mean", mean + w.random("running_mean", channels) * np.float32(0.1))
    spread = w.weight("running_var", np.exp(w.random("running_var", channels) * np.float32(0.2)))
    return w.node("BatchNormalization", x, scale, shift, centre, spread, epsilon=1e-5, momentum=0.9)


def classifier(w: Writer, x: str, features: int, classes: int) -> str:
    """Rows of the weights sum to zero, so that the features' mean does not decide."""
    array = w.random("weight", classes, features)
    array -= array.mean(axis=1, keepdims=True)
    array *= np.float32(3 / np.sqrt(features))
    bias = w.normal("bias", classes, scale=0.1)
    return w.node("Gemm", x, w.weight("weight", array), bias, alpha=1.0, beta=1.0, transB=1)


def _bottleneck(w: Writer, x: str, cin: int, width: int, stride: int) -> str:
    y = w.node("Relu", _conv_norm(w, ("conv1", "bn1"), x, cin, width))
    y = w.node("Relu", _conv_norm(w, ("conv2", "bn2"), y, width, width, kernel=3, stride=stride))
    y = _conv_norm(w, ("conv3", "bn3"), y, width, 4 * width, gain=0.25)
    if stride != 1 or cin != 4 * width:
        with w.scope("downsample"):
            x = _conv_norm(w, ("downsample.0", "downsample.1"), x, cin, 4 * width, stride=stride)
    return w.node("Relu", w.node("Add", y, x))


def resnet50(
    batch: int = 1, size: int = 224, layers: Sequence[int] = (3, 4, 6, 3), width: int = 64, classes: int = 1000
) -> onnx.ModelProto:
    """ResNet-50 (v1.5: the 3×3 convolution has the stride) with its batch normalisations."""
    w = Writer(seed=53)
    x = w.node("Relu", _conv_norm(w, ("conv1", "bn1"), "input", 3, width, kernel=7, stride=2))
    pool = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2], "dilations": [1, 1], "ceil_mode": 0}
    with w.scope("maxpool"):
        x = w.node("MaxPool", x, **pool)
    channels = width
    for stage, count in enumerate(layers):
        inner = width << stage
        for block in range(count):
            with w.scope(f"layer{stage + 1}"), w.scope(f"layer{stage + 1}.{block}"):
                x = _bottleneck(w, x, channels, inner, 2 if stage and not block else 1)
            channels = 4 * inner
    with w.scope("avgpool"):
        x = w.node("GlobalAveragePool", x)
    x = w.node("Flatten", x, axis=1)
    with w.scope("fc"):
        x = classifier(w, x, channels, classes)
    return w.model({"input": (np.float32, (batch, 3, size, size))}, {"output": (x, (batch, classes))})


INVERTED = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""MobileNetV2's stages: expansion, channels, blocks, stride of the first."""


def _relu6(w: Writer, x: str) -> str:
    return w.node("Clip", x, w.constant(0.0), w.constant(6.0))


def _inverted_residual(w: Writer, x: str, cin: int, cout: int, expansion: int, stride: int) -> str:
    inner, y, place = cin * expansion, x, 0
    residual = stride == 1 and cin == cout
    with w.scope("conv"):
        if expansion != 1:
            with w.scope("conv.0"):
                y = _relu6(w, _conv_norm(w, ("conv.0.0", "conv.0.1"), y, cin, inner))
            place = 1
        with w.scope(f"conv.{place}"):
            names = (f"conv.{place}.0", f"conv.{place}.1")
            y = _relu6(w, _conv_norm(w, names, y, inner, inner, kernel=3, stride=stride, group=inner))
        y = _conv_norm(w, (f"conv.{place + 1}", f"conv.{place + 2}"), y, inner, cout, gain=0.25 if residual else 0.5)
    return w.node("Add", x, y) if residual else y


def mobilenetv2(
    batch: int = 1,
    size: int = 224,
    layers: Sequence[tuple[int, int, int, int]] = INVERTED,
    classes: int = 1000,
    last: int = 1280,
) -> onnx.ModelProto:
    """MobileNetV2 with its batch normalisations; ReLU6 as `Clip` with constants."""
    w = Writer(seed=2)
    with w.scope("features"):
        with w.scope("features.0"):
            x = _relu6(w, _conv_norm(w, ("features.0.0", "features.0.1"), "input", 3, 32, kernel=3, stride=2))
        channels, place = 32, 1
        for expansion, cout, count, stride in layers:
            for block in range(count):
                with w.scope(f"features.{place}"):
                    x = _inverted_residual(w, x, channels, cout, expansion, 1 if block else stride)
                channels, place = cout, place + 1
        with w.scope(f"features.{place}"):
            x = _relu6(w, _conv_norm(w, (f"features.{place}.0", f"features.{place}.1"), x, channels, last))
    x = w.node("Flatten", w.node("GlobalAveragePool", x), axis=1)
    with w.scope("classifier"), w.scope("classifier.1"):
        x = classifier(w, x, last, classes)
    return w.model({"input": (np.float32, (batch, 3, size, size))}, {"output": (x, (batch, classes))})
