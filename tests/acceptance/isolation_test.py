"""A saved artifact runs where no compiler is: in a process that refuses to import xdsl, onnx or any of its folders."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from acceptance.zoo import MODELS, compiled, digest, inputs, save

import stepwell

SCRIPT = """
import sys

FORBIDDEN = {"xdsl", "onnx", "onnxruntime", "pytest"}
FOLDERS = ("dialects", "frontend", "passes", "backend", "driver")


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in FORBIDDEN or name.startswith(tuple(f"stepwell.{folder}" for folder in FOLDERS)):
            raise ImportError(f"an artifact must not need {name}")


sys.meta_path.insert(0, Refuse())

import hashlib
from pathlib import Path
import numpy as np
import stepwell

for name in ("onnx", "stepwell.driver.api", "stepwell.dialects.tile"):
    try:
        __import__(name)
    except ImportError as error:
        assert "must not need" in str(error)
    else:
        raise AssertionError(f"{name} can be imported after all")

for folder in map(Path, sys.argv[1:]):
    artifact = stepwell.load(folder / "model.stw")
    model = stepwell.Device(artifact.target).load(artifact)
    found = hashlib.sha256()
    for name, array in model.run(dict(np.load(folder / "inputs.npz")), seed=3).items():
        found.update(f"{name} {array.dtype} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes())
    print(found.hexdigest(), model.profile().cycles)
loaded = {name.partition(".")[0] for name in sys.modules}
assert not loaded & FORBIDDEN, loaded & FORBIDDEN
"""


def test_artifacts_run_without_the_compiler(tmp_path: Path) -> None:
    expected: list[str] = []
    for name in MODELS:
        (tmp_path / name).mkdir()
        artifact = compiled(name)
        artifact.save(tmp_path / name / "model.stw")
        save(tmp_path / name / "inputs.npz", inputs(name))
        outputs = artifact.model.run(inputs(name))
        expected += [digest(outputs), str(artifact.model.profile().cycles)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, sys.path))}
    command = [sys.executable, "-c", SCRIPT, *(str(tmp_path / name) for name in MODELS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == expected


@pytest.mark.parametrize("name", ["mlp", "small_cnn"])
def test_saving_twice_gives_the_same_file(name: str, tmp_path: Path) -> None:
    """Also of a second compilation, and of what was loaded."""
    first = compiled(name).save(tmp_path / "first.stw").read_bytes()
    again = stepwell.compile(MODELS[name].make(), target=compiled(name).target, shapes=MODELS[name].shapes, cores=2)
    assert again.save(tmp_path / "second.stw").read_bytes() == first
    assert stepwell.load(tmp_path / "first.stw").save(tmp_path / "third.stw").read_bytes() == first
