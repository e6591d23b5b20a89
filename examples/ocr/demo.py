"""Reads the line of text in a picture on the emulated `edge` NPU: `make demo`.

The PP-OCRv4 recogniser is fetched (once), compiled, saved, loaded and run; onnxruntime reads the same picture.
"""

import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import stepwell

EXAMPLES = Path(__file__).parents[1]
sys.path.insert(0, str(EXAMPLES))

import models  # noqa: E402 - the neighbour of this folder

PICTURE = Path(__file__).with_name("line.png")
SHAPE = (1, 3, 48, 320)
TARGET = "edge"

Array = NDArray[Any]


def picture(path: Path) -> Array:
    """The picture as the model takes it: [1, 3, 48, 320], blue first, from -1 to 1."""
    from stepwell.driver.inputs import Pixels, Wanted, from_pixels
    from stepwell.driver.png import read

    pixels = Pixels(mean=0.5, std=0.5, bgr=True)
    return from_pixels(read(path), Wanted(np.dtype(np.float32), SHAPE), pixels, str(path))


def alphabet(metadata: str) -> list[str]:
    """The characters by class: the blank of CTC, those that the model file lists, the space."""
    return ["", *metadata.splitlines(), " "]


def text(probabilities: Array, characters: Sequence[str]) -> str:
    """CTC, greedily: the best class of each column [columns, classes], repetitions and blanks dropped."""
    best = probabilities.argmax(-1)
    kept = np.flatnonzero((best != 0) & (best != np.roll(best, 1)))
    first = [0] if best[0] and 0 not in kept else []
    return "".join(characters[int(best[column])] for column in [*first, *kept])


def cosine(a: Array, b: Array) -> float:
    """Of all values together."""
    x, y = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))


@contextmanager
def step(name: str) -> Generator[None]:
    """One line for a step: what is going on, then how long it took."""
    print(f"{name:<52}", end="", flush=True)
    start = time.perf_counter()
    yield
    print(f"{time.perf_counter() - start:7.1f} s", flush=True)


def onnxruntime_reads(model: Path, image: Array) -> Array:
    """The reference: fp32 on this machine."""
    import onnxruntime

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    outputs: Any = session.run(None, {session.get_inputs()[0].name: image})
    return outputs[0]


def main() -> int:
    """Runs the demo and gives the exit code: 0 if the text is the reference's."""
    try:
        with step("Fetching the PP-OCRv4 recogniser (once)"):
            model = models.fetch("ocr")["recognition"]
    except models.FetchError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    image = picture(PICTURE)
    with step("Reading the picture with onnxruntime, fp32"):
        reference = onnxruntime_reads(model, image)
    with step(f"Compiling for {TARGET}, fp16"):
        file = stepwell.compile(model, target=TARGET, shapes={"x": SHAPE}).save(models.cache() / "ocr-edge.stw")
    with step("Loading; a dry run (first use compiles the emulator)"):
        artifact = stepwell.load(file, TARGET)
        npu = stepwell.Device(TARGET).load(artifact)
        npu.run({"x": np.zeros(SHAPE, np.float32)})
        npu.profile()
    with step(f"Running {len(artifact.plans[0].launches)} launches on the emulated NPU"):
        (found,) = npu.run({"x": image}).values()
    characters = alphabet(artifact.metadata.onnx["character"])
    read, expected = text(found[0], characters), text(reference[0], characters)
    report(npu, read, expected, cosine(found, reference))
    where_next(file, model)
    return 0 if read == expected else 1


def report(npu: Any, read: str, expected: str, similarity: float) -> None:
    """What came out, how exact it is, and what it costs."""
    from stepwell.driver.commands import overflow_line
    from stepwell.driver.report import seconds

    profile = npu.profile()
    target = profile.target
    same = "the same text" if read == expected else f"onnxruntime reads {expected!r}"
    print(f"""
  text              {read}
  agreement         cosine {similarity:.6f} with onnxruntime fp32, {same}
  cycles            {profile.cycles:,.0f}
  time              {seconds(profile.seconds)} on {profile.cores} cores at {target.clock_mhz:g} MHz
  cube utilisation  {profile.cube_utilisation:.1%}
  memory port       {profile.port_utilisation:.1%} of {target.gm_port:g} bytes a cycle
  overflow          {overflow_line(npu)}""")


def where_next(file: Path, model: Path) -> None:
    """Commands that work as they stand."""
    command = relative(Path(sys.executable).with_name("stepwell"))
    print(f"""
Where to look next
  {command} inspect {file} --steps
  {command} run {file} --input x={relative(PICTURE)} --mean 0.5 --std 0.5 --bgr --profile
  {command} compare {model} --shape x={",".join(map(str, SHAPE))} --random 0
  {relative(EXAMPLES.parent / "driver" / "pipeline.py")}: the story of the compilation""")


def relative(path: Path) -> Path:
    """The path from here, if it lies below."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


if __name__ == "__main__":
    sys.exit(main())
