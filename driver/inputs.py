"""Arrays from the command line: `x=file.npy`, `x=file.png`, `file.npz`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import png
from .errors import CommandError

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """An input of a model, and how to make one out of pixels."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pixels:
    """What becomes of a pixel x of 0 … 255: (x/255 − mean)/std; `bgr` swaps red and blue."""

    mean: float = 0.0
    std: float = 1.0
    bgr: bool = False


def read(arguments: Sequence[str], wanted: Mapping[str, Wanted], pixels: Pixels = Pixels()) -> dict[str, Array]:
    """The arrays of `--input` arguments. Raises one `CommandError` for all that cannot be read."""
    found: dict[str, Array] = {}
    problems = _without_image(arguments, pixels)
    for argument in arguments:
        try:
            arrays = _read(argument, wanted, pixels)
            problems += [
                f"--input {argument}: gives each input once (found {name} again); leave out one of them"
                for name in arrays
                if name in found
            ]
            found |= {name: _typed(array, wanted.get(name)) for name, array in arrays.items()}
        except CommandError as error:
            problems += error.problems
    if problems:
        raise CommandError(*problems)
    return found


def _without_image(arguments: Sequence[str], pixels: Pixels) -> list[str]:
    """What is wrong with options of pixels where no file has any."""
    changed = [f"--{one.name}" for one in fields(pixels) if getattr(pixels, one.name) != one.default]
    if not changed or any(argument.lower().endswith(".png") for argument in arguments):
        return []
    rule = f"{', '.join(changed)}: a file of --input is a .png, whose pixels change"
    return [f"{rule} (found {', '.join(arguments) or 'no file'}); give arrays as the model takes them, without this"]


def _typed(array: Array, wanted: Wanted | None) -> Array:
    """Texts as Python's, which have no width in common; bytes that numpy.save wrote of a type of another library as
    those of the input."""
    if array.dtype.kind == "V" and wanted is not None and array.dtype.itemsize == wanted.dtype.itemsize:
        return array.view(wanted.dtype)
    return array.astype(np.str_).astype(np.object_) if array.dtype.kind in "US" else array


def _read(argument: str, wanted: Mapping[str, Wanted], pixels: Pixels) -> dict[str, Array]:
    name, equals, file = _split(argument, wanted)
    if equals and name not in wanted:
        there = f"; the model has {', '.join(wanted)}"
        raise CommandError(f"--input {argument}: must name an input of the model (found {name!r}){there}")
    path = Path(file if equals else argument)
    if not path.is_file():
        raise CommandError(f"--input {argument}: must name a file (found none at {path}); write x=FILE or FILE.npz")
    if path.suffix == ".npz":
        arrays = _numpy(path)
        if "" in arrays:
            raise CommandError(f"{path}: must be an .npz archive (found the one array of an .npy file); rename it")
        return arrays if not equals else {name: _member(arrays, name, path)}
    if not equals:
        raise CommandError(f"--input {argument}: must say which input the file is for (found no name); write x={path}")
    if path.suffix == ".npy":
        return {name: read_npy(path)}
    if path.suffix.lower() != ".png":
        raise CommandError(
            f"--input {argument}: must be .npy, .npz or .png (found {path.suffix or 'no suffix'}); convert it"
        )
    return {name: from_pixels(png.read(path), wanted[name], pixels, str(path))}


def _split(argument: str, wanted: Mapping[str, Wanted]) -> tuple[str, str, str]:
    """Name, equals sign and file; names of inputs may hold the sign themselves."""
    names = [name for name in wanted if argument.startswith(f"{name}=")]
    if not names:
        return argument.partition("=")
    name = max(names, key=len)
    return name, "=", argument[len(name) + 1 :]


def _numpy(path: Path) -> dict[str, Array]:
    """The arrays of a file by name; the one of an .npy file has none."""
    try:
        loaded = np.load(path, allow_pickle=False)
        return {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except Exception as error:  # noqa: BLE001 - a damaged file makes numpy, zipfile and zlib raise a dozen kinds
        raise CommandError(
            f"{path}: can be read as numpy arrays (found {error}); write it with numpy.save or savez"
        ) from None


def read_npy(path: Path) -> Array:
    """The one array of a file. Raises `CommandError`."""
    if not path.is_file():
        raise CommandError(f"{path}: must be an .npy file (found none there); write it with numpy.save")
    arrays = _numpy(path)
    if "" not in arrays:
        raise CommandError(f"{path}: must be one array (found an archive of {len(arrays)}); rename it to .npz")
    return arrays[""]


def _member(arrays: Mapping[str, Array], name: str, path: Path) -> Array:
    if name not in arrays:
        raise CommandError(f"{path}: has no array {name} (found {', '.join(arrays)}); save it under this name")
    return arrays[name]


def from_pixels(image: NDArray[np.uint8], wanted: Wanted, pixels: Pixels, where: str) -> Array:
    """An image as the input [1, C, H, W] or [1, H, W, C] (without the 1 as well), of exactly that size."""
    shape = wanted.shape[1:] if len(wanted.shape) == 4 and wanted.shape[0] == 1 else wanted.shape
    layouts = [] if len(shape) != 3 else [axis for axis in (0, 2) if shape[axis] in (1, 3)]
    if not layouts:
        raise CommandError(
            f"{where}: an image needs an input of 1 or 3 channels (found shape {list(wanted.shape)}); give an array"
        )
    sizes = {axis: shape[1:] if axis == 0 else shape[:2] for axis in layouts}
    fitting = [axis for axis in layouts if sizes[axis] == image.shape[:2]]
    if not fitting:
        found, expected = "×".join(map(str, image.shape[1::-1])), "×".join(map(str, sizes[layouts[0]][::-1]))
        raise CommandError(f"{where}: must be {expected} pixels, as the input is (found {found}); scale or pad it")
    first, channels = fitting[0] == 0, shape[fitting[0]]
    values = (_channels(image, channels).astype(np.float32) / 255 - pixels.mean) / pixels.std
    values = values[:, :, ::-1] if pixels.bgr else values
    if np.issubdtype(wanted.dtype, np.integer):
        values = _channels(image, channels)
    values = values.transpose(2, 0, 1) if first else values
    return np.ascontiguousarray(values, dtype=wanted.dtype).reshape(wanted.shape)


def _channels(image: NDArray[np.uint8], channels: int) -> NDArray[np.uint8]:
    if image.shape[2] == channels:
        return image
    if channels == 3:
        return np.repeat(image, 3, axis=2)
    luma = image @ np.array([0.299, 0.587, 0.114])  # ITU-R BT.601
    return np.rint(luma)[:, :, None].astype(np.uint8)


def random(wanted: Mapping[str, Wanted], seed: int) -> dict[str, Array]:
    """Seeded values for inputs: standard normal; 0 and 1 for i32 and i64, which are places in tables and masks; else
    integers from 0 to 9, and their digits for texts."""
    generator = np.random.default_rng(seed)

    def made(spec: Wanted) -> Array:
        if np.issubdtype(spec.dtype, np.floating):
            return generator.standard_normal(spec.shape).astype(spec.dtype)
        integers = np.asarray(generator.integers(0, 2 if spec.dtype.name in ("int32", "int64") else 10, spec.shape))
        return integers.astype(np.str_ if spec.dtype == np.object_ else spec.dtype).astype(spec.dtype)

    return {name: made(spec) for name, spec in wanted.items()}
