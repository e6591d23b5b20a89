"""Arrays from files, pictures among them."""

import io
import zlib
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from PIL import Image

from stepwell.driver import png
from stepwell.driver.agreement import agree
from stepwell.driver.errors import CommandError
from stepwell.driver.inputs import Pixels, Wanted, from_pixels, random, read
from stepwell.driver.progress import PATIENCE, Progress
from stepwell.driver.report import names, plural, seconds, size, table

F32 = np.dtype(np.float32)


@pytest.mark.parametrize("mode", ["L", "RGB", "P"])
def test_png_reads_what_pillow_reads(tmp_path: Path, mode: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (19, 23, 3), np.uint8)
    pixels[5:12] = np.arange(23, dtype=np.uint8)[:, None] * 7  # smooth rows, so that every filter is used
    image = Image.fromarray(pixels).convert(mode)
    image.save(tmp_path / "a.png")
    expected = np.asarray(image.convert("RGB") if mode == "P" else image).reshape(19, 23, -1)
    assert np.array_equal(png.read(tmp_path / "a.png"), expected)


def test_alpha_is_laid_over_white(tmp_path: Path) -> None:
    image = Image.fromarray(np.array([[[10, 20, 30, 255], [10, 20, 30, 0], [0, 0, 0, 128]]], np.uint8), "RGBA")
    image.save(tmp_path / "a.png")
    assert png.read(tmp_path / "a.png").tolist() == [[[10, 20, 30], [255, 255, 255], [127, 127, 127]]]


@pytest.mark.parametrize("name", ["int4", "float8_e4m3fn", "bfloat16"])
def test_files_of_types_that_numpy_has_not(tmp_path: Path, name: str) -> None:
    """numpy.save writes their bytes and not their type."""
    array = np.array([1, -2, 3]).astype(getattr(ml_dtypes, name))
    np.save(tmp_path / "x.npy", array)
    found = read([f"x={tmp_path / 'x.npy'}"], {"x": Wanted(array.dtype, (3,))})["x"]
    assert found.dtype == array.dtype
    assert found.tolist() == array.tolist()


@pytest.mark.parametrize("kind", range(5))
def test_every_filter_of_png_is_undone(tmp_path: Path, kind: int) -> None:
    """Rows filtered here by the definition, against Pillow."""
    raw = np.random.default_rng(kind).integers(0, 256, (6, 5 * 3), np.uint8)
    data = zlib.compress(b"".join(bytes([kind]) + row.tobytes() for row in raw))

    def chunk(name: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4, "big") + name + body + zlib.crc32(name + body).to_bytes(4, "big")

    header = b"\0\0\0\x05\0\0\0\x06\x08\x02\0\0\0"
    file = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
    (tmp_path / "a.png").write_bytes(file)
    assert np.array_equal(png.read(tmp_path / "a.png"), np.asarray(Image.open(io.BytesIO(file))))


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"GIF89a")
    with pytest.raises(CommandError, match=r"a\.png: must be a PNG file \(found 47 49 46 38 39 61\); convert it"):
        png.read(path)
    Image.new("RGB", (4, 4)).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:42] + b"?" + whole[43:])
    with pytest.raises(CommandError, match=r"a sound PNG file \(found chunk b'IDAT' at byte 33\)"):
        png.read(path)
    Image.new("1", (4, 4)).save(path)
    with pytest.raises(CommandError, match=r"must have 8 bits a channel and no interlacing \(found 1 bits"):
        png.read(path)


IMAGE = np.array([[[0, 51, 255], [255, 0, 0]]], np.uint8)  # 1 × 2 pixels


def test_pixels_become_either_layout() -> None:
    first = from_pixels(IMAGE, Wanted(F32, (1, 3, 1, 2)), Pixels(), "a.png")
    assert first.dtype == np.float32
    assert first[0, :, 0, 0] == pytest.approx([0, 0.2, 1])
    last = from_pixels(IMAGE, Wanted(F32, (1, 1, 2, 3)), Pixels(0.5, 0.5, bgr=True), "a.png")
    assert last[0, 0, 0] == pytest.approx([1, -0.6, -1])
    grey = from_pixels(IMAGE, Wanted(np.dtype(np.uint8), (1, 1, 1, 2)), Pixels(), "a.png")
    assert grey.tolist() == [[[[59, 76]]]]


def test_pixels_must_fit() -> None:
    with pytest.raises(CommandError, match=r"a\.png: must be 320×48 pixels, as the input is \(found 2×1\)"):
        from_pixels(IMAGE, Wanted(F32, (1, 3, 48, 320)), Pixels(), "a.png")
    with pytest.raises(CommandError, match=r"an image needs an input of 1 or 3 channels \(found shape \[1, 64\]\)"):
        from_pixels(IMAGE, Wanted(F32, (1, 64)), Pixels(), "a.png")


def test_files_are_read_by_their_suffix(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    np.savez(tmp_path / "b.npz", y=np.ones(2), z=np.zeros(1))
    Image.new("RGB", (2, 1)).save(tmp_path / "c.png")
    wanted = {name: Wanted(F32, (3, 1, 2)) for name in ("p", "x", "z")}
    found = read([f"x={tmp_path / 'a.npy'}", str(tmp_path / "b.npz"), f"p={tmp_path / 'c.png'}"], wanted)
    assert {name: array.shape for name, array in found.items()} == {"x": (3,), "y": (2,), "z": (1,), "p": (3, 1, 2)}
    assert read([f"z={tmp_path / 'b.npz'}"], wanted)["z"].tolist() == [0]


def test_options_of_pixels_need_a_picture(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((3, 1, 2), np.float32))
    Image.new("RGB", (2, 1)).save(tmp_path / "c.PNG")
    wanted = {name: Wanted(F32, (3, 1, 2)) for name in ("p", "x")}
    array, image = f"x={tmp_path / 'a.npy'}", f"p={tmp_path / 'c.PNG'}"
    for arguments, found in (([array], array), ([], "no file")):
        with pytest.raises(CommandError) as caught:
            read(arguments, wanted, Pixels(mean=0.5, bgr=True))
        (problem,) = caught.value.problems
        assert problem.startswith(
            f"--mean, --bgr: a file of --input is a .png, whose pixels change (found {found}); give"
        )
    assert read([array, image], wanted, Pixels(std=2.0)).keys() == wanted.keys()


def test_all_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"no numpy")
    np.savez(tmp_path / "b.npz", y=np.ones(2))
    arguments = [f"x={tmp_path / 'a.npy'}", f"q={tmp_path / 'b.npz'}", str(tmp_path / "a.npy"), "none.npz"]
    with pytest.raises(CommandError) as caught:
        read(arguments, {name: Wanted(F32, (2,)) for name in ("x", "q")})
    problems = caught.value.problems
    assert len(problems) == 4
    assert "can be read as numpy arrays" in problems[0]
    assert "has no array q (found y)" in problems[1]
    assert "must say which input the file is for" in problems[2]
    assert "must name a file (found none at none.npz)" in problems[3]


def test_archives_that_are_none_are_told(tmp_path: Path) -> None:
    wanted = {"x": Wanted(np.dtype(np.float32), (2,))}
    np.save(tmp_path / "one.npy", np.ones(2, np.float32))
    np.savez(tmp_path / "many.npz", x=np.ones(2, np.float32))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "many.npz").read_bytes()[:100])
    (tmp_path / "one.npz").write_bytes((tmp_path / "one.npy").read_bytes())
    (tmp_path / "many.npy").write_bytes((tmp_path / "many.npz").read_bytes())
    for file, message in (
        ("cut.npz", "can be read as numpy arrays"),
        ("one.npz", "must be an .npz archive"),
        ("many.npy", "must be one array"),
    ):
        with pytest.raises(CommandError, match=message):
            read([f"x={tmp_path / file}"], wanted)


def test_a_name_may_hold_an_equals_sign(tmp_path: Path) -> None:
    np.save(tmp_path / "a=b.npy", np.ones(2, np.float32))
    wanted = {name: Wanted(np.dtype(np.float32), (2,)) for name in ("x", "x=1")}
    assert read([f"x=1={tmp_path / 'a=b.npy'}"], wanted).keys() == {"x=1"}
    assert read([f"x={tmp_path / 'a=b.npy'}"], wanted).keys() == {"x"}


def test_pickles_are_not_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{"code": 1}]), allow_pickle=True)
    with pytest.raises(CommandError, match="can be read as numpy arrays"):
        read([f"x={tmp_path / 'a.npy'}"], {"x": Wanted(F32, (1,))})


def test_random_inputs_have_the_types_asked_for() -> None:
    wanted = {"x": Wanted(F32, (2, 3)), "ids": Wanted(np.dtype(np.int64), (4,))}
    found, again = random(wanted, 1), random(wanted, 1)
    assert {name: (a.dtype, a.shape) for name, a in found.items()} == {n: (w.dtype, w.shape) for n, w in wanted.items()}
    assert all(np.array_equal(found[name], again[name]) for name in wanted)


# agreement


def test_agreement_is_measured() -> None:
    a = np.array([[1.0, 2.0], [3.0, 1.0]])
    same = agree("y", a, a)
    assert (same.cosine, same.max_abs_error, same.top1, same.holds) == (1, 0, 1, True)
    other = agree("y", a[:, ::-1], a)
    assert (other.max_abs_error, other.top1, other.holds) == (2, 0, False)
    assert str(other).startswith("y: cosine 0.66")


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_equal_odd_values_agree(value: float) -> None:
    assert agree("y", np.full(3, value), np.full(3, value)).cosine == 1


def test_nan_or_zeros_against_numbers_do_not_agree() -> None:
    assert not agree("y", np.full(3, np.nan), np.ones(3)).holds
    assert not agree("y", np.zeros(3), np.ones(3)).holds


# words


def test_quantities_in_words() -> None:
    assert [size(n) for n in (0, 999, 1000, 5_240_000, 3 << 40)] == ["0 B", "999 B", "1.0 kB", "5.2 MB", "3298.5 GB"]
    assert [seconds(s) for s in (2.5, 0.00135, 1e-7)] == ["2.5 s", "1.35 ms", "0.1 µs"]
    assert [plural(1, "launch"), plural(1200, "launch"), plural(0, "kernel")] == [
        "1 launch",
        "1,200 launches",
        "0 kernels",
    ]
    assert names(["a", "b", "c", "d"]) == "a, b, c and 1 more"
    assert names([]) == "–"
    assert table(("name", "n"), [("a", 5), ("bc", 10)], indent="") == "name   n\na      5\nbc    10"


class Terminal(io.StringIO):
    """A terminal that keeps what it shows."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_progress_is_shown_after_a_second_only(stream: Any) -> None:
    import time

    progress = Progress(stream)
    with progress.step("quick"):
        pass
    assert stream.getvalue() == ""
    with progress.step("slow"):
        progress.at(3, 9)
        time.sleep(PATIENCE + 0.5)
    shown = stream.getvalue()
    assert shown.startswith("\r\x1b[Kslow … 3/9 1 s" if stream.isatty() else "slow …\n")
    assert shown.endswith("s\n")
