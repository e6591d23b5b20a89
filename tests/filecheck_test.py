"""The IR tests, one pytest test per .mlir file: lit runs once for all the files selected, each test reads its result.

pytest tests/filecheck_test.py -k matmul
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

LIT = Path(sys.executable).with_name("lit")
FOLDER = Path(__file__).parent / "filecheck"
FILES = sorted(file.relative_to(FOLDER).as_posix() for file in FOLDER.rglob("*.mlir"))


class Result(NamedTuple):
    """What lit says of one file; `code` is PASS, FAIL, XFAIL, UNSUPPORTED, UNRESOLVED …"""

    code: str
    output: str


def run_lit(files: list[Path], config: Path, scratch: Path) -> dict[Path, Result]:
    """The result of each of `files`, tests of the suite in the folder `config`; lit writes into `scratch` only."""
    report = scratch / "report.json"
    options = ["-v", f"-j{os.cpu_count()}", "--order=lexical", f"-Dscratch={scratch}", "-o", report]
    done = subprocess.run([LIT, *options, *files], capture_output=True, text=True)
    if not report.exists():
        raise RuntimeError(f"lit did not run:\n{done.stdout}{done.stderr}")
    tests = json.loads(report.read_text())["tests"]
    return {config / test["name"].partition(" :: ")[2]: Result(test["code"], test["output"]) for test in tests}


@pytest.fixture(scope="session")
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Result]:
    tests = [item for item in request.session.items if isinstance(item, pytest.Function)]
    selected = [str(test.callspec.params["file"]) for test in tests if "results" in test.fixturenames]
    return run_lit([FOLDER / file for file in selected], FOLDER, tmp_path_factory.mktemp("lit"))


@pytest.mark.xdist_group("filecheck")  # one process asks lit for all of them
@pytest.mark.parametrize("file", FILES)
def test_ir(file: str, results: dict[Path, Result]) -> None:
    result = results[FOLDER / file]
    if result.code == "UNSUPPORTED":
        pytest.skip(result.output)
    assert result.code in ("PASS", "XFAIL", "FLAKYPASS"), f"\n{result.output}"


def test_a_failing_file_is_reported_with_its_output(tmp_path: Path) -> None:
    (tmp_path / "lit.cfg.py").write_text((FOLDER / "lit.cfg.py").read_text())
    good, bad = tmp_path / "good.mlir", tmp_path / "bad.mlir"
    good.write_text("// RUN: filecheck %s --input-file %s\n// CHECK: builtin.module\nbuiltin.module {}\n")
    bad.write_text("// RUN: filecheck %s --input-file %s\n// CHECK: {{^}}func.func\nbuiltin.module {}\n")
    found = run_lit([good, bad], tmp_path, tmp_path / "scratch")
    assert found[good].code == "PASS"
    assert found[bad].code == "FAIL"
    assert "bad.mlir" in found[bad].output
