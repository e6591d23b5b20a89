"""The Python interface, from ONNX to values."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx_models import bert_layer, mlp, small_cnn

import stepwell
from stepwell.driver import api
from stepwell.driver.agreement import agree_all, onnxruntime_run
from stepwell.driver.errors import CommandError, describe
from stepwell.driver.passmanager import PipelineError, Settings
from stepwell.runtime.artifact import ArtifactError
from stepwell.runtime.border import InputError
from stepwell.runtime.problem import UserError
from stepwell.runtime.target import Target, TargetError

pytestmark = pytest.mark.xdist_group("device")

Array = NDArray[Any]
MODELS = {"mlp": mlp(), "small_cnn": small_cnn(), "bert": bert_layer(seq=16, hidden=64, heads=4, ffn=128)}


def feeds(model: onnx.ModelProto, seed: int = 0) -> dict[str, Array]:
    """Seeded inputs; of a mask all but three are on."""
    random = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for info in model.graph.input:
        shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        values = random.standard_normal(shape) if info.name != "mask" else np.indices(shape)[-1] < shape[-1] - 3
        found[info.name] = values.astype(np.float32)
    return found


def same(found: Mapping[str, Array], expected: Mapping[str, Array]) -> bool:
    return found.keys() == expected.keys() and all(np.array_equal(found[name], expected[name]) for name in found)


@pytest.mark.parametrize("target", ["tiny", "edge"])
@pytest.mark.parametrize("name", MODELS)
def test_models_agree_with_onnxruntime(name: str, target: str) -> None:
    model = MODELS[name]
    inputs = feeds(model)
    expected = onnxruntime_run(model, inputs)
    half = stepwell.run(stepwell.compile(model, target=target), inputs)
    for agreement in agree_all(half, expected):
        assert agreement.cosine >= 0.9995
        assert agreement.top1 == 1
    full = stepwell.run(stepwell.compile(model, target=target, precision="fp32"), inputs)
    for agreement in agree_all(full, expected):
        assert agreement.max_abs_error <= 1e-4 * agreement.max_abs_reference


@pytest.mark.parametrize("name", MODELS)
def test_bits_depend_on_neither_target_nor_cores_nor_interleaving(name: str) -> None:
    model = MODELS[name]
    inputs = feeds(model, 1)
    expected = stepwell.run(stepwell.compile(model, target="tiny"), inputs)
    assert same(stepwell.run(stepwell.compile(model, target="edge"), inputs), expected)
    one = stepwell.compile(model, target="edge", cores=1)
    assert one.model.cores == 1
    assert same(stepwell.run(one, inputs), expected)
    assert same(one.model.run(inputs, seed=3), expected)


def test_a_model_may_be_a_path_bytes_or_a_proto(tmp_path: Path) -> None:
    model = MODELS["mlp"]
    onnx.save(model, tmp_path / "mlp.onnx")
    ways: list[Any] = [model, model.SerializeToString(), tmp_path / "mlp.onnx", str(tmp_path / "mlp.onnx")]
    found = [stepwell.compile(way, target="tiny") for way in ways]
    files = [artifact.save(tmp_path / "a.stw").stat().st_size for artifact in found]
    assert max(files) - min(files) < 16  # they differ in the model's name alone
    assert found[2].metadata.model == "mlp"
    assert {tuple(kernel.code for kernel in artifact.kernels) for artifact in found} == {
        tuple(kernel.code for kernel in found[0].kernels)
    }


def test_compiling_is_deterministic_and_a_file_is_the_artifact(tmp_path: Path) -> None:
    model, inputs = MODELS["bert"], feeds(MODELS["bert"])
    first, second = (stepwell.compile(model, target="tiny") for _ in range(2))
    a, b = first.save(tmp_path / "a.stw"), second.save(tmp_path / "b.stw")
    assert a.read_bytes() == b.read_bytes()
    loaded = stepwell.load(a, "tiny")
    assert same(stepwell.run(loaded, inputs), stepwell.run(first, inputs))
    with pytest.raises(ArtifactError, match=r"target: is edge \(.*\) \(found tiny"):
        stepwell.load(a, "edge")


def test_a_module_can_be_lowered_on_from_every_stage() -> None:
    model, inputs = MODELS["mlp"], feeds(MODELS["mlp"])
    expected = stepwell.run(stepwell.compile(model, target="tiny"), inputs)
    module = stepwell.lower(model, to="graph", target="tiny")
    assert "graph.launch" in str(module)
    module = stepwell.lower(module, to="tile", target="tiny")
    assert "tile.kernel" in str(module)
    assert len(api.weights_of(module)) > 0
    assert same(
        stepwell.run(stepwell.compile(stepwell.lower(module, to="npu", target="tiny"), target="tiny"), inputs), expected
    )


def test_a_module_that_is_past_a_stage_says_so() -> None:
    module = stepwell.lower(MODELS["mlp"], to="tile", target="tiny")
    with pytest.raises(CommandError, match="module: is past graph already"):
        stepwell.lower(module, to="graph", target="tiny")


def test_metadata_and_ir_go_along(tmp_path: Path) -> None:
    model = onnx.ModelProto()
    model.CopyFrom(MODELS["mlp"])
    onnx.helper.set_model_props(model, {"alphabet": "a\nb"})
    artifact = stepwell.compile(model, target="tiny", keep_ir=True)
    assert artifact.metadata.onnx == {"alphabet": "a\nb"}
    assert artifact.metadata.options["precision"] == "fp16"
    assert list(artifact.debug) == ["graph", "tile", "npu"]
    assert "npu.kernel" in stepwell.load(artifact.save(tmp_path / "a.stw")).debug["npu"]


def test_stages_are_told_and_dumped(tmp_path: Path) -> None:
    seen: list[str] = []
    settings = Settings(verify="each", dump_dir=tmp_path)
    stepwell.compile(MODELS["mlp"], target="tiny", settings=settings, on_stage=seen.append)
    assert seen == ["graph", "tile", "npu"]
    assert list(tmp_path.rglob("*.mlir"))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"precision": "fp8"}, CommandError, "precision: must be one of fp16, bf16, fp32 (found 'fp8')"),
        ({"tarket": 1}, CommandError, "(found none of this name); did you mean target? it has constants"),
        (
            {"shape": {}},
            TypeError,
            "shape: is a keyword of the function, or an option of a pass (found none of this name)",
        ),
        ({"shape": {}}, TypeError, "did you mean shapes? it has constants, cores"),
        ({"zzz": 1}, ValueError, "(found none of this name); it has constants, cores"),
        ({"target": None}, TypeError, "target: is a Target, the name of a shipped one or a .toml file (found None); s"),
        ({"weights": 5}, TypeError, "weights: is the path of a .safetensors file (found int); name the file"),
        (
            {"target": "nosuch"},
            TargetError,
            "target 'nosuch': is a shipped one or a .toml file (found none of this name); shipped are",
        ),
        ({"cores": 9}, CommandError, "cores: must be 1 to 1, as tiny has (found 9)"),
        ({"cores": 0}, CommandError, "cores: must be 1 to 1, as tiny has (found 0)"),
    ],
)
def test_wrong_options_are_named(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        stepwell.compile(MODELS["mlp"], **({"target": "tiny"} | options))
    assert message in str(caught.value)


ARTIFACT = stepwell.compile(MODELS["mlp"], target="tiny")
CALLS: dict[str, tuple[Any, type[Exception], str]] = {
    "compile nothing": (
        lambda _: stepwell.compile(None),  # type: ignore[arg-type]
        TypeError,
        "model: is the path, the bytes or the ModelProto of an ONNX model, or a module (found None); name the .onnx",
    ),
    "compile an array": (lambda _: stepwell.compile(np.zeros(3)), TypeError, "or a module (found ndarray); "),  # type: ignore[arg-type]
    "lower a graph": (
        lambda _: stepwell.lower(MODELS["mlp"].graph, to="graph"),  # type: ignore[arg-type]
        TypeError,
        "or a module (found GraphProto); ",
    ),
    "weights of nothing": (lambda _: api.weights_of(None), ValueError, "module: must come from stepwell.lower"),  # type: ignore[arg-type]
    "run nothing": (
        lambda _: stepwell.run(None, {}),  # type: ignore[arg-type]
        TypeError,
        "artifact: is a compiled model, or the path of one (found None); compile the model first: stepwell.compile",
    ),
    "run a proto": (lambda _: stepwell.run(MODELS["mlp"], {}), TypeError, "the path of one (found ModelProto); "),  # type: ignore[arg-type]
    "run a model": (
        lambda folder: stepwell.run(folder / "m.onnx", {}),
        ValueError,
        "m.onnx: is a compiled model, .stw (found a .onnx file); compile it first: stepwell.compile, or the command",
    ),
    "load nothing": (
        lambda _: stepwell.load(None),  # type: ignore[arg-type]
        TypeError,
        "source: is the path of a compiled model, or its bytes (found None); ",
    ),
    "load no file": (
        lambda folder: stepwell.load(folder / "no.stw"),
        ValueError,
        "no.stw: is a file that can be read (found No such file or directory); check the path",
    ),
    "load another file": (
        lambda folder: stepwell.load(folder / "bad.stw"),
        ValueError,
        "bad.stw: is a ZIP archive (50 4b 03 04) (found 62 61 64 at its beginning); name a file that Stepwell wrote",
    ),
    "load onto nothing": (
        lambda _: stepwell.Device("tiny").load(None),  # type: ignore[arg-type]
        TypeError,
        "artifact: is a compiled model (found None); ",
    ),
    "a device of nothing": (lambda _: stepwell.Device(None), TypeError, "target: is a Target, the name"),  # type: ignore[arg-type]
    "save to a folder": (
        lambda folder: ARTIFACT.save(folder / "dir.stw"),
        OSError,
        "dir.stw: is a file (found a folder); name a file, conventionally *.stw",
    ),
    "save to no folder": (
        lambda folder: ARTIFACT.save(folder / "nodir" / "x"),
        OSError,
        "nodir/x: can be written (found No such file or directory); name a file in a folder that can be written",
    ),
    "save nowhere": (lambda _: ARTIFACT.save(None), TypeError, "path: is that of the file to write (found None); "),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_argument_is_one_error_of_a_class_that_python_knows(name: str, tmp_path: Path) -> None:
    call, kind, message = CALLS[name]
    onnx.save(MODELS["mlp"], tmp_path / "m.onnx")
    (tmp_path / "bad.stw").write_bytes(b"bad")
    (tmp_path / "dir.stw").mkdir()
    with pytest.raises(kind) as caught:
        call(tmp_path)
    assert isinstance(caught.value, UserError)
    (problem,) = caught.value.problems
    assert problem.is_whole
    assert message in problem == str(caught.value)
    assert describe(caught.value).exit_code == 1


def test_an_unknown_stage_is_named() -> None:
    with pytest.raises(CommandError, match=r"to: must be one of graph, tile, npu \(found 'gpu'\)"):
        stepwell.lower(MODELS["mlp"], to="gpu")  # type: ignore[arg-type]


def test_unsupported_operators_are_told_at_once(tmp_path: Path) -> None:
    x, y = (onnx.helper.make_tensor_value_info(name, 1, [4]) for name in "xy")
    nodes = [
        onnx.helper.make_node("Multinomial", ["x"], ["m"], "A"),
        onnx.helper.make_node("Bernoulli", ["x"], ["y"], "B"),
    ]
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [x], [y]))
    with pytest.raises(ValueError, match="2 problems") as caught:
        stepwell.compile(model, target="tiny")
    failure = describe(caught.value)
    assert failure.exit_code == 1
    assert [problem.split(":")[0] for problem in failure.problems] == ["A", "B"]


def test_a_bug_in_a_pass_is_not_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    from stepwell.passes.fuse import Fuse

    def fail(*_: Any) -> None:
        raise IndexError("oops")

    monkeypatch.setattr(Fuse, "apply", fail)
    with pytest.raises(PipelineError, match="bug: IndexError: oops") as caught:
        stepwell.compile(MODELS["mlp"], target="tiny")
    assert describe(caught.value).exit_code == 3


def test_inputs_are_checked_by_name() -> None:
    artifact = stepwell.compile(MODELS["bert"], target="tiny")
    with pytest.raises(InputError) as caught:
        stepwell.run(artifact, {"x": np.zeros((1, 16, 64), np.float64)})
    problems = caught.value.problems
    assert problems[0].startswith("x: is float32[1, 16, 64] (found float64[1, 16, 64])")
    assert any(problem.where == "mask" and problem.found == "nothing" for problem in problems)


def test_a_users_target_is_a_target(tmp_path: Path) -> None:
    from stepwell.runtime.target import TARGETS

    text = (TARGETS / "tiny.toml").read_text(encoding="utf-8")
    (tmp_path / "mine.toml").write_text(text.replace("cores = 1", "cores = 3"))
    mine = Target.load(tmp_path / "mine.toml")
    model, inputs = MODELS["small_cnn"], feeds(MODELS["small_cnn"])
    artifact = stepwell.compile(model, target=tmp_path / "mine.toml")
    assert artifact.target == mine
    assert same(stepwell.run(artifact, inputs), stepwell.run(stepwell.compile(model, target="tiny"), inputs))


BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        folders = tuple(f"stepwell.{folder}" for folder in ("backend", "dialects", "driver", "frontend", "passes"))
        if name.split(".")[0] in ("xdsl", "onnx", "onnxruntime") or name.startswith(folders):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocker())
import numpy as np, stepwell
inputs = dict(np.load(sys.argv[2]))
np.savez(sys.argv[3], **stepwell.run(stepwell.load(sys.argv[1]), inputs))
"""


def test_a_compiled_model_runs_where_no_compiler_is(tmp_path: Path) -> None:
    model, inputs = MODELS["small_cnn"], feeds(MODELS["small_cnn"], 2)
    artifact = stepwell.compile(model, target="tiny")
    np.savez(tmp_path / "in.npz", allow_pickle=False, **inputs)
    paths = [str(artifact.save(tmp_path / "a.stw")), str(tmp_path / "in.npz"), str(tmp_path / "out.npz")]
    done = subprocess.run([sys.executable, "-c", BLOCKED, *paths], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert same(dict(np.load(tmp_path / "out.npz")), stepwell.run(artifact, inputs))


def test_a_failure_says_how_to_see_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line names commands that lead to the same failure."""
    from stepwell.backend.synchronise import Synchronise

    def fail(*_: Any) -> None:
        raise IndexError("oops")

    onnx.save(MODELS["bert"], tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Synchronise, "apply", fail)
    shapes = {"x": [1, 16, 64], "mask": [1, 1, 1, 16]}
    with pytest.raises(PipelineError) as caught:
        stepwell.compile("model.onnx", target="tiny", shapes=shapes)
    _, command = str(caught.value).split("reproduce with: ")
    assert command == (
        "stepwell-opt model.onnx --shape x=1,16,64 --shape mask=1,1,1,16 --target tiny "
        "-p 'stage-graph{policy=fp16},stage-tile{cores=0}' --weights-out before.safetensors "
        "-o before.mlir && stepwell-opt before.mlir --weights before.safetensors --target tiny -p select,synchronise"
    )
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    opt = f"{sys.executable} -m stepwell.driver.opt"
    done = subprocess.run(command.replace("stepwell-opt", opt), shell=True, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr  # where nothing is broken
    assert "npu.set" in done.stdout
