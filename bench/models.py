"""The models that Stepwell is measured with: seeded weights in the form that torch's exporter writes (opset 17).

    python bench/models.py bert          build it; print its file and how well its outputs discriminate

Files are kept in the cache folder, ~/.cache/stepwell/models/built, and made anew when this code changes.
"""

import hashlib
import inspect
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from stepwell.bench import convnets, decoder, encoders, writer
from stepwell.examples.models import cache

Array = NDArray[Any]
MODELS: Mapping[str, Callable[..., onnx.ModelProto]] = {
    "resnet50": convnets.resnet50,
    "mobilenetv2": convnets.mobilenetv2,
    "bert": encoders.bert,
    "vit": encoders.vit,
    "llama": decoder.llama,
}
"""Each takes `batch`, and sizes that make it small for a test."""


def build(name: str, **options: Any) -> onnx.ModelProto:
    """A model of `MODELS`; the options are its function's."""
    return MODELS[name](**options)


def built(name: str, **options: Any) -> Path:
    """The file of a model, built on the first call."""
    label = "-".join([name, *(f"{key}{value}" for key, value in sorted(options.items()) if value is not None)])
    folder = cache() / "models" / "built"
    file, note = folder / f"{label}.onnx", folder / f"{label}.json"
    made_by = {"sources": _digest(), "options": options}
    if file.exists() and note.exists() and json.loads(note.read_text(encoding="utf-8")) == made_by:
        return file
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{label}-", delete=False) as scratch:
        scratch.write(build(name, **options).SerializeToString())
    Path(scratch.name).rename(file)
    note.write_text(json.dumps(made_by), encoding="utf-8")
    return file


def _digest() -> str:
    """Of the code that the models are a function of."""
    sources = (inspect.getsource(module) for module in (convnets, decoder, encoders, writer))
    return hashlib.sha256("".join(sources).encode()).hexdigest()


def inputs(model: onnx.ModelProto | Path, seed: int = 0) -> dict[str, Array]:
    """Seeded inputs: images with structure, token ids, a mask whose last tenth is hidden, normal values."""
    proto = onnx.load(model) if isinstance(model, Path) else model
    random = np.random.default_rng(seed)
    sizes = {i.name: tuple(dim.dim_value for dim in i.type.tensor_type.shape.dim) for i in proto.graph.input}
    vocabulary = {t.name: t.dims[0] for t in proto.graph.initializer if t.name.endswith("word_embeddings.weight")}
    return {name: _values(name, shape, random, max(vocabulary.values(), default=0)) for name, shape in sizes.items()}


def _values(name: str, shape: tuple[int, ...], random: np.random.Generator, vocabulary: int) -> Array:
    if name == "input":
        return _images(shape, random)
    if name == "input_ids":
        return random.integers(0, vocabulary, shape)
    if name == "token_type_ids":
        return (np.indices(shape)[-1] >= shape[-1] // 2).astype(np.int64)
    if name == "position_ids":
        return np.broadcast_to(np.arange(shape[-1]) + 40, shape).copy()
    if name == "attention_mask" and len(shape) == 2:
        return (np.indices(shape)[-1] < max(1, shape[-1] * 0.9)).astype(np.int64)
    if name == "attention_mask":  # additive; each token sees the past and the tokens up to itself
        rows, columns = np.indices(shape)[-2:]
        return np.where(columns <= rows + shape[-1] - shape[-2], 0, encoders.HIDDEN_BY_MASK).astype(np.float32)
    return random.standard_normal(shape).astype(np.float32)


def _images(shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Of mean 0 and deviation 1, with structure at all scales."""
    image = np.zeros(shape)
    for cells in (2, 4, 8, 16, 32):
        coarse = random.standard_normal((*shape[:2], min(cells, shape[2]), min(cells, shape[3])))
        rows, columns = (np.arange(extent) * min(cells, extent) // extent for extent in shape[2:])
        image += coarse[:, :, rows][:, :, :, columns]
    image -= image.mean(axis=(1, 2, 3), keepdims=True)
    return (image / image.std(axis=(1, 2, 3), keepdims=True)).astype(np.float32)


def margin(rows: Array) -> float:
    """How far the largest value of a row is above the next, in deviations of the row: the least over all rows (last
    axis). An error below half of it cannot change the top 1."""
    flat = rows.reshape(-1, rows.shape[-1]).astype(np.float64)
    top = np.sort(flat, axis=1)[:, -2:]
    return float(((top[:, 1] - top[:, 0]) / flat.std(axis=1)).min())


def likeness(a: Array, b: Array) -> float:
    """The correlation of two results, 1 if a model cannot tell their inputs apart."""
    return float(np.corrcoef(a.reshape(-1), b.reshape(-1))[0, 1])


def describe(name: str) -> str:
    """The file of a model, the margin of its first output and how alike it is for two inputs."""
    import onnxruntime

    file = built(name)
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    first, other = (np.asarray(session.run(None, inputs(file, seed))[0]) for seed in (0, 1))
    text = f"top-1 margin {margin(first):.3g} deviations, other input {likeness(first, other):.3f} alike"
    return f"{name} {file} {file.stat().st_size / 1e6:.0f} MB, largest {np.abs(first).max():.3g}, {text}"


def main(names: list[str]) -> int:
    """Builds the named models, or all."""
    if unknown := sorted(set(names) - set(MODELS)):
        print(f"{', '.join(unknown)}: no such model; there are {', '.join(MODELS)}", file=sys.stderr)
        return 1
    for name in names or MODELS:
        print(describe(name), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
