"""The OCR demo and the bench, as far as they need no download; and the demo itself where the model can be had."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytestmark = pytest.mark.xdist_group("device")

ROOT = Path(__file__).parents[2]


def script(path: str) -> ModuleType:
    """A script of the repository as a module."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    return script("examples/ocr/demo.py")


def test_ctc_drops_repetitions_and_blanks(demo: ModuleType) -> None:
    characters = demo.alphabet("a\nb")
    assert characters == ["", "a", "b", " "]
    for classes, expected in (
        ([1, 1, 0, 1, 2, 2, 3, 0], "aab "),
        ([0, 0], ""),
        ([2], "b"),
        ([1, 0, 0, 1], "aa"),
        ([1, 1, 1], "a"),
    ):
        assert demo.text(np.eye(4)[classes], characters) == expected, classes


def test_the_picture_is_what_the_model_takes(demo: ModuleType) -> None:
    image = demo.picture(demo.PICTURE)
    assert (image.shape, image.dtype) == (demo.SHAPE, np.float32)
    assert image.max() == 1
    assert image.min() < -0.8


def test_the_demo_reads_the_line(demo: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        demo.models.fetch("ocr")
    except demo.models.FetchError as error:
        pytest.skip(str(error))
    assert demo.main() == 0
    out = capsys.readouterr().out
    facts = dict(
        line.strip().split("  ", 1) for line in out.splitlines() if line.startswith("  ") and "  " in line.strip()
    )
    assert facts["text"].strip() == "Compiler 2026"
    assert "the same text" in facts["agreement"]
    assert float(facts["agreement"].split()[1]) >= 0.9995
    assert facts["overflow"].strip() == "nothing overflowed"
    assert int(facts["cycles"].strip().replace(",", "")) < 2_000_000
