"""The public models that are measured (`bench/public.py`): files, and inputs that mean something to each.

The trained ones come from pinned wheels (`examples/models.py`), the `light_*` ones with the onnx package; these have
the structure of known networks, but every weight is 0.02, so that the output is the same whatever comes in.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepwell.examples.models import fetch
from stepwell.examples.ocr import demo

Array = NDArray[Any]
Arrays = Mapping[str, Array]
SEED = 11


# inputs ---------------------------------------------------------------------------------------------------------------
def noise(**shapes: Sequence[int]) -> Arrays:
    """Normal values."""
    random = np.random.default_rng(SEED)
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def line() -> Arrays:
    """The line of the OCR example."""
    return {"x": demo.picture(demo.PICTURE)}


def word() -> Arrays:
    """Its beginning."""
    return {"x": line()["x"][..., :192].copy()}


def page() -> Arrays:
    """That line on a white page."""
    pixels = np.ones((1, 3, 320, 320), np.float32)
    pixels[:, :, 136:184] = line()["x"]
    return {"x": pixels}


def photo() -> Arrays:
    """Soft blots of colour: 8 × 8 of them, in between is interpolated; the mean of each channel subtracted."""
    pixels = np.random.default_rng(SEED).integers(0, 256, (8, 8, 3)).astype(np.float64)
    for axis in (0, 1):
        places = np.linspace(0, 7, 224)
        before = np.minimum(places.astype(int), 6)
        part = (places - before).reshape(-1, *[1] * (2 - axis))
        pixels = np.take(pixels, before, axis) * (1 - part) + np.take(pixels, before + 1, axis) * part
    return {"input:0": (pixels - [104, 117, 123]).astype(np.float32)[None]}


def sound(samples: int, rate: int, *tones: float) -> Array:
    """16 bits of tones of falling loudness that come and go, and a little noise."""
    time, random = np.arange(samples) / rate, np.random.default_rng(SEED)
    waves = [np.sin(2 * np.pi * tone * time) * 0.3 / (i + 1) for i, tone in enumerate(tones)]
    loudness = 1 + 0.5 * np.sin(2 * np.pi * 4 * time)
    heard = sum(waves) * loudness + 0.01 * random.standard_normal(samples)
    return (np.rint(heard * 2**15) / 2**15).astype(np.float32)


def music() -> Arrays:
    """A chord."""
    return {"serving_default_input_2:0": sound(43844, 22050, 440, 554.4, 659.3).reshape(1, -1, 1)}


def voice(**more: Any) -> Arrays:
    """A window of 16 kHz sound, and a state."""
    return {"input": sound(576, 16000, 140, 280, 700).reshape(1, 576), **noise(state=[2, 1, 128]), **more}


def voices() -> Arrays:
    """Four windows."""
    return {"input": sound(4 * 576, 16000, 140, 700).reshape(4, 576), **noise(h=[1, 1, 128], c=[1, 1, 128])}


def brain_waves() -> Arrays:
    """Half a minute, and its spectrogram."""
    return noise(raw_signal=[1, 1, 7500], spectrogram=[1, 15, 7500])


def file_content() -> Arrays:
    """The first and last 1024 bytes of a PNG file."""
    content = np.frombuffer(demo.PICTURE.read_bytes(), np.uint8)
    return {"bytes": np.concatenate([content[:1024], content[-1024:]]).astype(np.int32)[None]}


SENTENCE = (101, 1996, 3007, 1997, 2605, 2003, 3000, 1012, 102)
"""`the capital of france is paris.` in BERT's words."""


def sentence() -> Arrays:
    """That sentence, and three places more that are masked."""
    words = np.array([[*SENTENCE, 0, 0, 0]])
    return {"input_ids": words, "attention_mask": (words > 0).astype(np.int64), "token_type_ids": np.zeros_like(words)}


TEXT = "ذهب الولد الى المدرسة في الصباح وقرأ كتابا جديدا عن العلوم"
"""`The boy went to school in the morning and read a new book about the sciences`, without vowels."""
_UNKNOWN = 1


def letters(alphabet: str, table: str, name: str) -> Callable[[], Arrays]:
    """That text by the table of an alphabet that came with the models."""

    def read() -> Arrays:
        numbers = json.loads(fetch("tashkeel")[alphabet].read_text(encoding="utf-8"))[table]
        return {name: np.array([[numbers.get(letter, _UNKNOWN) for letter in TEXT]])}

    return read


# models ---------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Subject:
    """A file, and inputs for it."""

    model: str
    """Of `examples/models.py`; or `light`."""
    part: str
    inputs: Callable[[], Arrays]
    classes: tuple[str, ...] = ()
    """Outputs that decide: rows of scores of classes, or integers."""
    over: Mapping[str, float] = field(default_factory=dict[str, float])
    """Outputs that decide by being above a bound."""
    regions: Mapping[str, float] = field(default_factory=dict[str, float])
    """Maps that decide by where regions above a bound are."""
    constants: tuple[str, ...] = ()
    """Inputs that are bound to their values when the model is compiled."""
    half: str = "fp16"
    """The policy of 16 bits: bf16 where values are beyond the range of f16."""

    @property
    def file(self) -> Path:
        """Fetched if need be; raises `FetchError`."""
        if self.model == "light":
            import onnx.backend.test

            return Path(onnx.backend.test.__file__).parent / "data" / "light" / f"light_{self.part}.onnx"
        return fetch(self.model)[self.part]


_SPEECH = {"output": 0.5}
_RATE = np.array(16000)
TRAINED: Mapping[str, Subject] = {
    "ocr-recognition": Subject("ocr", "recognition", line, ("softmax_11.tmp_0",)),
    "ocr-detection": Subject("ocr", "detection", page, regions={"sigmoid_0.tmp_0": 0.3}),
    "ocr-orientation": Subject("ocr", "orientation", word, ("save_infer_model/scale_0.tmp_1",)),
    "resnet-thin": Subject("resnet-thin", "classifier", photo, ("outputs",)),
    "pitch": Subject(
        "pitch", "notes", music, over={"StatefulPartitionedCall:1": 0.3, "StatefulPartitionedCall:2": 0.5}
    ),
    "vad-static": Subject("vad", "static", voice, over=_SPEECH),
    "vad-sequence": Subject("vad", "sequence", voices, over={"speech_probs": 0.5}),
    "vad-branches": Subject("vad", "branches", lambda: voice(sr=_RATE), over=_SPEECH),
    "vad-half": Subject("vad", "half", voice, over=_SPEECH),
    "vad-two-rates": Subject("vad", "two-rates", lambda: voice(sr=_RATE), over=_SPEECH, constants=("sr",)),
    "vad-one-branch": Subject("vad", "one-branch", lambda: voice(sr=_RATE), over=_SPEECH, constants=("sr",)),
    "eeg-seizure": Subject("eeg", "seizure", lambda: noise(x=[1, 100, 100]), ("logits", "probs")),
    "eeg-seizure-full": Subject("eeg", "seizure-full", lambda: noise(x=[1, 100, 100]), ("logits", "probs")),
    "eeg-spindle": Subject("eeg", "spindle", brain_waves, over={"segmentation": 0.0}),
    "eeg-spindle-intracranial": Subject("eeg", "spindle-intracranial", brain_waves, over={"segmentation": 0.0}),
    "filetype": Subject("filetype", "classifier", file_content, ("target_label",)),
    "minilm": Subject("minilm", "embedding", sentence),
    "tashkeel-bilstm": Subject("tashkeel", "bilstm", letters("bilstm-letters", "input", "input_ids"), ("logits",)),
    "tashkeel-rawi": Subject("tashkeel", "rawi", letters("rawi-letters", "char_to_idx", "input"), ("output",)),
    "tashkeel-rawi-2": Subject("tashkeel", "rawi-2", letters("rawi-2-letters", "char_to_idx", "input"), ("output",)),
    "tashkeel-rawi-3": Subject(
        "tashkeel", "rawi-3", letters("rawi-2-letters", "char_to_idx", "input"), ("value",), over={"presence": 0.0}
    ),
    "tashkeel-rawi-both": Subject(
        "tashkeel", "rawi-both", letters("rawi-2-letters", "char_to_idx", "input"), ("gated_cls",)
    ),
}
"""Each file of `examples/models.py`."""
BY_VALUE: Mapping[str, Subject] = {
    "vad-two-rates, by value": Subject("vad", "two-rates", lambda: voice(sr=_RATE), over=_SPEECH),
    "vad-one-branch, by value": Subject("vad", "one-branch", lambda: voice(sr=_RATE), over=_SPEECH),
}
"""Files once more whose If hangs on an input, which is one here."""


def _light(name: str, given: str, half: str = "fp16") -> Subject:
    return Subject("light", name, lambda: noise(**{given: [1, 3, 224, 224]}), half=half)


LIGHT: Mapping[str, Subject] = {
    f"light-{subject.part}": subject
    for subject in (
        _light("bvlc_alexnet", "data_0", "bf16"),
        _light("densenet121", "data_0"),
        _light("inception_v1", "data_0", "bf16"),
        _light("inception_v2", "data_0"),
        _light("resnet50", "gpu_0/data_0", "bf16"),
        _light("shufflenet", "gpu_0/data_0"),
        _light("squeezenet", "data_0", "bf16"),
        _light("vgg19", "data_0", "bf16"),
        _light("zfnet512", "gpu_0/data_0", "bf16"),
    )
}
PUBLIC: Mapping[str, Subject] = {**TRAINED, **BY_VALUE, **LIGHT}
