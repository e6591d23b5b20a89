"""Inputs that are bound to constants when a model is compiled."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import stepwell
from stepwell.driver import opt
from stepwell.driver.cli import main
from stepwell.driver.compilation import start
from stepwell.driver.constants import read, written
from stepwell.frontend.bound import Unusable, bind
from stepwell.frontend.onnx import ImportProblems

pytestmark = pytest.mark.xdist_group("device")

Run = Callable[..., tuple[int, str, str]]
INFO = helper.make_tensor_value_info


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line in this process: exit code, standard output, standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def rated() -> onnx.ModelProto:
    """x doubled at a rate of 16000, negated at any other; times a mask."""
    kinds = {"sr": (TensorProto.INT64, []), "mask": (TensorProto.FLOAT, [1, "n"]), "x": (TensorProto.FLOAT, [2, 3])}
    branches: dict[str, Any] = {
        "then_branch": helper.make_graph(
            [helper.make_node("Add", ["x", "x"], ["twice"])], "then", [], [INFO("twice", TensorProto.FLOAT, [2, 3])]
        ),
        "else_branch": helper.make_graph(
            [helper.make_node("Neg", ["x"], ["less"])], "else", [], [INFO("less", TensorProto.FLOAT, [2, 3])]
        ),
    }
    nodes = [
        helper.make_node("Equal", ["sr", "rate"], ["is_wide"], "Equal_0"),
        helper.make_node("If", ["is_wide"], ["chosen"], "If_0", **branches),
        helper.make_node("Mul", ["chosen", "mask"], ["y"], "Mul_0"),
    ]
    inputs = [INFO(name, kind, shape) for name, (kind, shape) in kinds.items()]
    rate = helper.make_tensor("rate", TensorProto.INT64, [], [16000])
    graph = helper.make_graph(nodes, "rated", inputs, [INFO("y", TensorProto.FLOAT, [2, 3])], [rate])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(("rate", "factor"), [(16000, 2), ("8000", -1), (np.int32(16000), 2), ([16000], 2)])
def test_a_branch_is_chosen_and_the_inputs_are_gone(rate: Any, factor: int) -> None:
    artifact = stepwell.compile(rated(), target="tiny", constants={"sr": rate, "mask": [1, 1, 0]})
    assert [tensor.name for tensor in artifact.tensors if tensor.role == "input"] == ["x"]
    assert np.array_equal(stepwell.run(artifact, {"x": X})["y"], X * factor * [1, 1, 0])
    assert artifact.metadata.options["const mask"] == "1,1,0"


def test_a_number_fills_an_input_of_the_shape_that_is_given() -> None:
    artifact = stepwell.compile(rated(), target="tiny", shapes={"mask": [1, 3]}, constants={"sr": 1, "mask": 0.5})
    assert np.array_equal(stepwell.run(artifact, {"x": X})["y"], X * -0.5)
    with pytest.raises(ImportProblems, match=r"mask: axis 1 has a static extent \(found 'n'\); give --shape mask=1,N "):
        stepwell.compile(rated(), target="tiny", constants={"sr": 1, "mask": 0.5})


@pytest.mark.parametrize("linked", ["run", "stw"])
def test_the_commands_take_constants(run: Run, tmp_path: Path, linked: str) -> None:
    """`run --verify` and `compare` give onnxruntime the same values, also those that a file has recorded."""
    model, mask = tmp_path / "m.onnx", tmp_path / "mask.npy"
    onnx.save(rated(), model)
    np.save(mask, np.array([[1, 0.5, 0]], np.float64))
    bound = ["--target", "tiny", "--const", "sr=16000", "--const", f"mask=@{mask}"]
    if linked == "run":
        code, out, err = run("run", model, *bound, "--random", 0, "--verify", model)
    else:
        assert run("compile", model, *bound)[0] == 0
        code, out, err = run("run", tmp_path / "m.stw", "--random", 0, "--verify", model)
    assert code == 0, err
    assert "cosine 1.000000" in out
    code, out, err = run("compare", model, *bound, "--random", 0)
    assert code == 0, err
    assert "every stage agrees" in out
    assert run("check", model, *bound)[0] == 0
    code, _, err = run("run", tmp_path / "m.stw", "--const", "sr=1", "--random", 0)
    assert code == 1
    assert linked == "run" or "(found --const); give these options to stepwell compile" in err


def test_everything_wrong_is_told_at_once(run: Run, tmp_path: Path) -> None:
    onnx.save(rated(), tmp_path / "m.onnx")
    texts = ["sr=1.5", "mask=1", "mask=2", "other=1", "x=@none.npy", "y=a,b"]
    options = [word for text in texts for word in ("--const", text)]
    code, _, err = run("compile", tmp_path / "m.onnx", *options)
    assert code == 1
    expected = (
        "sr: a constant for int64 is whole numbers (found 1.5); give --const sr=VALUE",
        "mask: is bound to one constant (found 1 and 2); give --const mask once",
        "other: constants name inputs of the model (found none of this name); its inputs are sr, mask, x",
        "--const x=@none.npy: none.npy: must be an .npy file (found none there); write it with numpy.save",
        "--const y=a,b: must be a number, true or false, several with commas between, or @FILE.npy (found 'a,b')",
    )
    lines = err.splitlines()
    assert len(lines) == len(expected)
    for line, start_of in zip(lines, expected, strict=True):
        assert line.startswith(f"stepwell: error: {start_of}")


def test_an_input_is_not_given_twice(run: Run, tmp_path: Path) -> None:
    onnx.save(rated(), tmp_path / "m.onnx")
    np.savez(tmp_path / "all.npz", x=X, sr=np.int64(1))
    given = ["run", tmp_path / "m.onnx", "--const", "mask=1,1,1", "--const", "sr=1"]
    code, _, err = run(*given, "--input", "sr=sr.npy")
    assert code == 1
    assert "sr: is a constant or an input (found --const sr=1 and --input sr=sr.npy); leave one of them out" in err
    code, _, err = run(*given, "--input", tmp_path / "all.npz")
    assert code == 1
    assert "sr: is a constant or an input (found both in --const and in a file of --input)" in err


@pytest.mark.parametrize("text", ["sr", "=1", "sr=", ""])
def test_a_constant_has_a_name_and_a_value(run: Run, text: str) -> None:
    code, _, err = run("compile", "m.onnx", "--const", text)
    assert code == 2
    assert f"must be INPUT=VALUE, INPUT=V0,V1,… or INPUT=@FILE.npy (found {text!r})" in err


def test_ir_takes_no_constants(run: Run, tmp_path: Path) -> None:
    (tmp_path / "k.mlir").write_text("builtin.module {}", encoding="utf-8")
    code, _, err = run("compile", tmp_path / "k.mlir", "--const", "sr=1")
    assert code == 1
    assert "constants: bind inputs of an ONNX model (found sr for IR)" in err


def test_stepwell_opt_takes_constants(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(rated(), tmp_path / "m.onnx")
    given = [str(tmp_path / "m.onnx"), "--const", "sr=16000", "--const", "mask=true,true,false"]
    assert opt.main(given) == 1
    assert "mask: a constant for float32 is numbers (found truth values)" in capsys.readouterr().err
    assert opt.main([*given[:-1], "mask=1,1,0"]) == 0
    assert "graph.neg" not in capsys.readouterr().out


def test_the_command_that_reproduces_a_failure_has_the_constants(tmp_path: Path) -> None:
    onnx.save(rated(), tmp_path / "m.onnx")
    wide = np.ones((1, 3))
    work = start(tmp_path / "m.onnx", target="tiny", constants={"sr": 16000, "mask": wide})
    assert work.origin.command.endswith("m.onnx --const sr=16000 --const 'mask=[[1.0, 1.0, 1.0]]' --target tiny")


@pytest.mark.parametrize(
    ("kind", "shape", "value", "found"),
    [
        (TensorProto.INT8, [], 128, "x: a constant for int8 lies in [-128, 127] (found 128)"),
        (TensorProto.UINT8, [2], [-1, 3], "x: a constant for uint8 lies in [0, 255] (found -1)"),
        (TensorProto.INT32, [], float("nan"), "x: a constant for int32 is whole numbers (found nan)"),
        (TensorProto.INT64, [], True, "x: a constant for int64 is numbers (found truth values)"),
        (TensorProto.INT64, [], 2**70, "x: a constant for int64 is numbers of at most 64 bits (found object"),
        (TensorProto.BOOL, [], 2, "x: a constant for bool is true, false, 1 or 0 (found 2)"),
        (TensorProto.FLOAT16, [], 1e6, "x: a constant for float16 is at most 65504.0 (found 1000000.0)"),
        (TensorProto.FLOAT, [], "a", "x: a constant for float32 is numbers of at most 64 bits (found str"),
        (
            TensorProto.FLOAT,
            [2, 3],
            [1, 2],
            "x: a constant has the input's shape [2, 3], or is one number (found shape",
        ),
        (TensorProto.FLOAT, [2, "n"], np.zeros((3, 3)), "x: a constant has the input's shape [2, <n>], or is one"),
        (TensorProto.STRING, [], 1, "x: what is bound to a constant holds numbers or truth values (found STRING)"),
        (TensorProto.FLOAT, [2], [[1], [1, 2]], "x: a constant is a number or an array (found "),
    ],
)
def test_a_constant_that_does_not_fit_is_refused(kind: int, shape: list[Any], value: Any, found: str) -> None:
    graph = helper.make_graph([], "g", [INFO("x", kind, shape)], [])
    arrays, problems = bind(graph, {"x": value}, {})
    assert not arrays
    assert len(problems) == 1
    assert problems[0].startswith(found)


@pytest.mark.parametrize(
    ("kind", "shape", "value", "expected"),
    [
        (TensorProto.BOOL, [2], [1, 0], np.array([True, False])),
        (TensorProto.INT64, [], 16000.0, np.array(16000, np.int64)),
        (TensorProto.FLOAT16, [1, 2], [0.1, np.inf], np.array([[0.1, np.inf]], np.float16)),
        (TensorProto.UINT64, [1], 2**63, np.array([2**63], np.uint64)),
        (TensorProto.INT16, ["n"], [7], np.array([7], np.int16)),
        (TensorProto.DOUBLE, [2, 2], 1e300, np.full((2, 2), 1e300)),
        (TensorProto.FLOAT, None, [[1, 2]], np.array([[1, 2]], np.float32)),
        (TensorProto.FLOAT, ["n", 4], np.zeros((0, 4)), np.zeros((0, 4), np.float32)),
    ],
)
def test_a_constant_gets_the_type_and_shape_of_the_input(kind: int, shape: Any, value: Any, expected: Any) -> None:
    graph = helper.make_graph([], "g", [INFO("x", kind, shape)], [])
    arrays, problems = bind(graph, {"x": value}, {})
    assert not problems
    assert arrays["x"].dtype == expected.dtype
    assert np.array_equal(arrays["x"], expected)


def test_an_initializer_that_is_an_input_too_can_be_bound() -> None:
    nodes = [helper.make_node("Mul", ["x", "scale"], ["y"])]
    inputs = [INFO("x", TensorProto.FLOAT, [2]), INFO("scale", TensorProto.FLOAT, [])]
    scale = helper.make_tensor("scale", TensorProto.FLOAT, [], [3])
    graph = helper.make_graph(nodes, "g", inputs, [INFO("y", TensorProto.FLOAT, [2])], [scale])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = np.ones(2, np.float32)
    for constants, factor in (({}, 3), ({"scale": 5}, 5)):
        artifact = stepwell.compile(model, target="tiny", constants=constants)
        assert np.array_equal(stepwell.run(artifact, {"x": x})["y"], x * factor)


@pytest.mark.parametrize("value", [3, -0.1, True, [1, 0], [[1.5, 2]], np.arange(3, dtype=np.int8), [7]])
def test_what_is_written_reads_back(value: Any) -> None:
    constant = read({"x": written("x", value)})["x"]
    assert not isinstance(constant.value, Unusable)
    assert np.array_equal(np.asarray(constant.value), np.asarray(value))
