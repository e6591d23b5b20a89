"""What a user installs: only `stepwell`, all of it, light to import, at home in any directory."""

import ast
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS = ["backend", "dialects", "driver", "frontend", "passes", "runtime"]
HEAVY = {"google.protobuf", "llvmlite", "ml_dtypes", "numba", "numpy", "onnx", "onnxruntime", "rich", "typer", "xdsl"}


def python(code: str, cwd: Path, path: Path | None = None) -> str:
    """What `code` prints in a new interpreter, started in `cwd`, with `path` before what is installed."""
    launch = f"import sys; sys.path.insert(0, {str(path)!r})\n" if path else ""
    done = subprocess.run([sys.executable, "-P", "-c", launch + code], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout to build from, since a build leaves files beside its sources and packs stale ones."""
    copy = tmp_path_factory.mktemp("copy") / "checkout"
    ignored = ignore_patterns(".venv*", ".git", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis")
    copytree(ROOT, copy, ignore=ignored)
    return copy


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the checkout."""
    out = tmp_path_factory.mktemp("dist")
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--wheel-dir", str(out)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(checkout)], check=True)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for sys.path that holds what the wheel installs."""
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


pytestmark = pytest.mark.xdist_group("packaging")


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path, checkout: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    sources = [file for folder in FOLDERS for file in (checkout / folder).rglob("*.py")]
    targets = list((checkout / "runtime" / "targets").glob("*.toml"))
    wanted = [checkout / "__init__.py", checkout / "py.typed", *sources, *targets]
    assert names == {f"stepwell/{file.relative_to(checkout).as_posix()}" for file in wanted}


def test_the_wheel_carries_licence_and_commands(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name.partition("/")[2] for name in archive.namelist() if ".dist-info/" in name}
        (entry_points,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        commands = archive.read(entry_points).decode()
    assert "licenses/LICENSE" in names
    assert "stepwell = stepwell.driver.cli:main" in commands
    assert "stepwell-opt = stepwell.driver.opt:main" in commands


def test_the_installed_wheel_works_away_from_the_checkout(installed: Path, tmp_path: Path) -> None:
    code = "import stepwell, stepwell.runtime, stepwell.driver; print(stepwell.__file__, stepwell.__version__)"
    version = PROJECT["project"]["version"]
    assert python(code, tmp_path, installed) == f"{installed / 'stepwell' / '__init__.py'} {version}"


def test_the_face_imports_nothing_heavy(tmp_path: Path) -> None:
    code = "import sys; before = set(sys.modules); import stepwell; print(*sorted(set(sys.modules) - before))"
    loaded = python(code, tmp_path).split()
    assert "stepwell" in loaded
    assert not HEAVY & set(loaded)
    assert [name for name in loaded if name.startswith("stepwell.")] == []


def test_the_face_names_what_it_lacks(tmp_path: Path) -> None:
    code = "import stepwell\ntry: stepwell.nothing\nexcept AttributeError as error: print(error)"
    assert python(code, tmp_path) == "module 'stepwell' has no attribute 'nothing'"


def test_the_face_has_a_home_for_each_name(tmp_path: Path) -> None:
    code = "import stepwell; print([(name, getattr(stepwell, name) is not None) for name in stepwell.__all__])"
    assert all(found for _, found in ast.literal_eval(python(code, tmp_path)))
