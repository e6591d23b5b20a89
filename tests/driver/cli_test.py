"""The command line: what it prints, how it fails, what it exits with."""

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from toy_artifact import N, toy_artifact, toy_input, toy_result

from stepwell.driver import api, cli, commands, errors, opt
from stepwell.driver.cli import main

pytestmark = pytest.mark.xdist_group("device")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line in this process: exit code, standard output, standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return toy_artifact().save(tmp_path / "toy.stw")


@pytest.fixture
def x(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", toy_input())
    return tmp_path / "x.npy"


# the form of errors


def test_help_names_every_command(run: Run) -> None:
    code, out, _ = run()
    assert code == 0
    for command in ("assess", "compile", "run", "compare", "extract", "reduce", "inspect", "targets"):
        assert f"    {command} " in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fly"], "argument COMMAND: is one of 'compile', 'run', "),
        (["run"], "the command line: names MODEL (found none); see stepwell run --help"),
        (["compile", "m.onnx", "--shape", "x"], "argument --shape: must be INPUT=D0,D1,… in whole numbers (found 'x')"),
        (
            ["compile", "m.onnx", "--precision", "fp8"],
            "argument --precision: is one of 'fp16', 'bf16', 'fp32' (found 'fp8')",
        ),
        (
            ["run", "m.stw", "--random", "-1"],
            "argument --random: must be a whole number from 0 to 2^63 - 1 (found '-1')",
        ),
        (["run", "m.stw", "--seed", str(2**63)], "argument --seed: must be a whole number from 0 to 2^63 - 1 (found "),
        (["run", "m.stw", "--mean", "nan"], "argument --mean: must be a number (found 'nan')"),
        (["run", "m.stw", "--std", "0"], "argument --std: must not be 0, as pixels are divided by it (found 0)"),
        (["compare", "m.onnx", "--cosine", "2"], "argument --cosine: must be from 0 to 1 (found '2')"),
        (["reduce", "m.onnx", "--cosine", "-0.1"], "argument --cosine: must be from 0 to 1 (found '-0.1')"),
        (["reduce", "m.onnx", "--timeout", "-1"], "argument --timeout: must be more than 0 s (found '-1')"),
        (["targets", "show"], "stepwell targets show: names a target or a .toml file (found none)"),
    ],
)
def test_a_wrong_command_line_exits_with_2(run: Run, arguments: list[str], message: str) -> None:
    code, out, err = run(*arguments)
    assert code == errors.USAGE
    assert out == ""
    assert err.startswith(f"stepwell: error: {message}")
    (line,) = err.splitlines()
    assert line.endswith(f"; see stepwell {arguments[0]} --help [E-command]".replace("fly ", ""))


def test_a_users_problem_exits_with_1_and_one_line_each(run: Run, toy: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("?")
    code, out, err = run("run", toy, "--input", tmp_path / "no.npz", "--input", f"x={tmp_path / 'bad.txt'}")
    assert (code, out) == (errors.PROBLEM, "")
    lines = err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"stepwell: error: --input {tmp_path / 'no.npz'}: must name a file")
    assert lines[1].endswith("must be .npy, .npz or .png (found .txt); convert it [E-command]")


def test_an_archive_without_the_input_is_told_with_what_it_has(run: Run, toy: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "out.npz", y=np.ones(2), z=np.ones(3))
    code, _, err = run("run", toy, "--input", tmp_path / "out.npz")
    assert code == errors.PROBLEM
    (line,) = err.splitlines()
    assert line.startswith("stepwell: error: x: must be given, float32[")
    assert line.endswith("(found only y, z); rename the array, or write --input x=FILE [E-command]")


def test_a_fault_of_ours_exits_with_3_without_a_traceback(run: Run, monkeypatch: pytest.MonkeyPatch, toy: Path) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(commands, "run_model", fail)
    code, _, err = run("run", toy)
    assert code == errors.INTERNAL
    assert err.splitlines()[0] == "stepwell: error: KeyError: 'lost'"
    assert "a fault of Stepwell, not yours; run the command again with --debug" in err
    assert "Traceback" not in err
    code, _, err = run("run", toy, "--debug")
    assert code == errors.INTERNAL
    assert "Traceback" in err


def test_an_error_is_json_if_asked_for(run: Run, tmp_path: Path) -> None:
    code, out, err = run("inspect", tmp_path / "none.stw", "--json")
    found = json.loads(out)["error"]
    assert code == found["exit_code"] == errors.PROBLEM
    assert found["kind"] == "ArtifactError"
    assert "No such file or directory" in found["problems"][0]
    assert found["problems"][0] in err


def test_an_interrupt_is_no_fault(run: Run, monkeypatch: pytest.MonkeyPatch, toy: Path) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "run_model", interrupt)
    assert run("run", toy)[::2] == (errors.PROBLEM, "stepwell: error: interrupted\n")


# targets


def test_targets_are_listed(run: Run) -> None:
    code, out, _ = run("targets")
    assert code == 0
    assert out.splitlines()[0].split() == ["target", "cores", "clock", "fp16", "TOP/s", "GM", "GB/s", "L1"]
    assert [line.split()[0] for line in out.splitlines()[1:]] == sorted(
        line.split()[0] for line in out.splitlines()[1:]
    )
    assert "edge" in out
    assert json.loads(run("targets", "--json")[1])["targets"][0]["name"] == "edge"


def test_a_target_is_shown(run: Run) -> None:
    code, out, _ = run("targets", "show", "edge")
    assert code == 0
    assert "l1_bytes        1,048,576" in out
    assert out.splitlines()[-1].startswith("2 cores at 1000 MHz, 16.38 TOP/s in fp16, with fp32")


def test_a_users_target_is_validated(run: Run, tmp_path: Path) -> None:
    from stepwell.runtime.target import TARGETS

    mine = tmp_path / "mine.toml"
    text = (TARGETS / "edge.toml").read_text(encoding="utf-8")
    mine.write_text(text)
    assert run("targets", "validate", mine)[1].startswith(f"{mine}: sound; 2 cores")
    mine.write_text(text.replace("cores = 2", "cores = 0\ncoers = 2").replace("alignment = 32", "alignment = 33"))
    code, _, err = run("targets", "validate", mine)
    assert code == errors.PROBLEM
    assert "a key is one of a target (found 'coers')" in err
    code, _, err = run("targets", "validate", "nosuch")
    assert (
        err == "stepwell: error: target 'nosuch': is a shipped one or a .toml file (found none of this name); "
        "shipped are edge, server, tiny, train [E-file]\n"
    )


# run


def test_run_computes_and_reports(run: Run, toy: Path, x: Path, tmp_path: Path) -> None:
    code, out, _ = run("run", toy, "--input", f"x={x}", "-o", tmp_path / "out.npz", "--profile")
    assert code == 0
    assert np.array_equal(np.load(tmp_path / "out.npz")["z"], toy_result(toy_input()))
    lines = out.splitlines()
    assert lines[0].split() == ["output", "type", "shape", "min", "mean", "max"]
    assert lines[1].split()[:3] == ["z", "float32", f"1×{N}"]
    assert "cycles on tiny (1 core)" in out
    assert "nothing overflowed" in out
    assert "Add_0" in out


def test_run_is_json_if_asked_for(run: Run, toy: Path) -> None:
    code, out, _ = run("run", toy, "--random", 3, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["outputs"]["z"]["shape"] == [1, N]
    assert found["cycles"] > 0
    assert [entry["nodes"] for entry in found["nodes"]] == [["Add_0"], ["Add_1"]]
    assert found["agreement"] is None


def test_overflows_are_told_by_node(run: Run, toy: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "big.npz", x=np.full((1, N), 60000, np.float32))
    out = run("run", toy, "--input", tmp_path / "big.npz")[1]
    assert f"overflowed:\n  Add_1: {N} overflows, 0 new NaNs" in out


def test_any_interleaving_may_be_picked(run: Run, toy: Path, x: Path) -> None:
    plain = json.loads(run("run", toy, "--input", f"x={x}", "--json")[1])
    seeded = json.loads(run("run", toy, "--input", f"x={x}", "--json", "--seed", 5)[1])
    assert plain == seeded


def test_missing_and_wrong_inputs_are_named(run: Run, toy: Path, tmp_path: Path) -> None:
    code, _, err = run("run", toy)
    assert code == errors.PROBLEM
    assert err == (
        f"stepwell: error: x: must be given, float32[1, {N}] (found nothing); write --input x=FILE, or --random 0"
        " [E-command]\n"
    )
    np.savez(tmp_path / "in.npz", x=np.zeros((1, N)), y=np.zeros(2))
    code, _, err = run("run", toy, "--input", tmp_path / "in.npz")
    assert code == errors.PROBLEM
    assert f"x: is float32[1, {N}] (found float64[1, {N}]); convert it" in err
    assert "y: is an input of the model (found y, but it has x); rename the array [E-command]" in err


def test_what_is_given_twice_or_to_no_input_is_refused(run: Run, toy: Path, x: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=toy_input())
    for arguments, message in (
        (
            ("run", toy, "--input", f"x={x}", "--input", f"x={x}"),
            f"--input x={x}: gives each input once",
        ),
        (("run", toy, "--input", tmp_path / "in.npz", "--input", f"x={x}"), f"--input x={x}: gives each input once"),
        (
            ("run", toy, "--random", 0, "--input", f"q={x}"),
            f"--input q={x}: must name an input of the model",
        ),
        (("compile", x, "--shape", "x=1", "--shape", "x=2"), "--shape x: is given once (found 2 times)"),
    ):
        code, _, err = run(*arguments)
        assert code == errors.PROBLEM
        assert err.startswith(f"stepwell: error: {message}")
        assert err.endswith(" [E-command]\n")
    assert opt.main([str(tmp_path / "m.onnx"), "--shape", "x=1", "--shape", "x=1"]) == 1


def test_the_next_command_is_one_that_works(run: Run, tmp_path: Path) -> None:
    from acceptance.hostile_models import one

    onnx.save(one("Relu", (4,))(), tmp_path / "m.onnx")
    code, out, _ = run("compile", tmp_path / "m.onnx", "--target", "tiny", "-o", tmp_path / "a b.stw")
    assert code == 0
    command = out.splitlines()[-1].removeprefix("next: stepwell ").split("   or   ")[0]
    assert run(*shlex.split(command))[0] == 0
    out = run("compile", tmp_path / "m.onnx", "--target", "tiny", "-o", tmp_path / "a.bin")[1]
    assert out.splitlines()[-1].startswith("next: rename it to a.stw;")


def test_verify_compares_with_onnxruntime(run: Run, toy: Path, x: Path, tmp_path: Path) -> None:
    code, out, _ = run("run", toy, "--input", f"x={x}", "--verify", toy_onnx(tmp_path, 2.0))
    assert code == 0
    assert "against onnxruntime:\n  z: cosine 1.000000" in out
    code, out, _ = run("run", toy, "--input", f"x={x}", "--verify", toy_onnx(tmp_path, -2.0), "--json")
    assert code == errors.PROBLEM
    assert json.loads(out)["agreement"][0]["holds"] is False


def toy_onnx(folder: Path, factor: float) -> Path:
    """What the toy computes, as ONNX: z = (x + w)·factor."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weight = toy_artifact().weights["w"].astype(np.float32)
    constants = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.array(factor, np.float32), "f")]
    nodes = [helper.make_node("Add", ["x", "w"], ["y"], "Add_0"), helper.make_node("Mul", ["y", "f"], ["z"], "Mul_0")]
    x, z = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, N]) for name in "xz")
    graph = helper.make_graph(nodes, "toy", [x], [z], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "toy.onnx")
    return folder / "toy.onnx"


# inspect


def relu(path: Path, shape: Sequence[int | str] = (4, 4), kind: int = TensorProto.FLOAT) -> Path:
    """A model of one node."""
    x, y = (helper.make_tensor_value_info(name, kind, shape) for name in ("x", "y"))
    node = helper.make_node("Relu" if kind == TensorProto.FLOAT else "Neg", ["x"], ["y"], "act")
    graph = helper.make_graph([node], "relu", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)
    return path


def test_a_reference_that_cannot_run_is_no_fault_of_ours(run: Run, toy: Path, tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("no model")
    code, _, err = run("run", toy, "--random", 0, "--verify", tmp_path / "text.onnx")
    assert code == errors.PROBLEM
    assert "text.onnx: is ONNX (found " in err
    code, _, err = run("run", toy, "--random", 0, "--verify", relu(tmp_path / "other.onnx"))
    assert code == errors.PROBLEM
    assert "other.onnx: onnxruntime, the reference, runs it (found " in err


def test_only_a_file_is_written_and_never_the_model(run: Run, toy: Path, tmp_path: Path) -> None:
    model = relu(tmp_path / "m.onnx")
    before = model.read_bytes()
    for output, message in (
        (model, "is a file of its own (found the model itself, which would be lost); name another file"),
        (tmp_path, "must be a file (found a folder); name a file"),
        ("/dev/null", "must be a file (found a device); name a file"),
        (
            tmp_path / "no" / "m.stw",
            "can be written (found No such file or directory); name a file in a folder",
        ),
    ):
        code, _, err = run("compile", model, "-o", output, "--target", "tiny")
        assert code == errors.PROBLEM
        assert err.startswith(f"stepwell: error: -o {output}: {message}")
    code, _, err = run("run", toy, "--random", 0, "-o", tmp_path / "out")
    assert code == errors.PROBLEM
    assert "must end in .npz (found no suffix); write -o FILE.npz" in err
    code, _, err = run("run", toy, "--random", 0, "-o", tmp_path / "no" / "out.npz")
    assert code == errors.PROBLEM
    assert "out.npz: can be written (found " in err
    assert model.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "toy.stw"]


def test_outputs_of_any_name_are_written(tmp_path: Path) -> None:
    arrays = {"file": np.ones(2), "allow_pickle": np.zeros(3), "a/b": np.arange(4)}
    commands.write_arrays(tmp_path / "out.npz", arrays)
    with np.load(tmp_path / "out.npz") as found:
        assert {name: found[name].tolist() for name in found.files} == {n: a.tolist() for n, a in arrays.items()}


def test_options_that_come_too_late_are_told(run: Run, toy: Path) -> None:
    code, _, err = run("run", toy, "--random", 0, "--precision", "bf16", "--shape", "x=1")
    assert code == errors.PROBLEM
    assert "is compiled already, with options for " in err
    assert "(found --precision bf16, --shape); give these options to stepwell compile" in err


def test_a_model_too_large_for_the_chip_is_told(run: Run, tmp_path: Path) -> None:
    model = relu(tmp_path / "m.onnx", (100_000, 100_000))
    code, _, err = run("compile", model, "--target", "tiny")
    assert code == errors.PROBLEM
    assert "m: must fit the 268,435,456 bytes of tiny's memory (found 10,000,000,000 elements of its inputs" in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "IR as UTF-8 text"),
        (b"builtin.module {" * 3000, "found too deep a nesting"),
    ],
)
def test_nonsense_is_no_ir(
    run: Run, content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.mlir"
    path.write_bytes(content)
    code, _, err = run("run", path, "--random", 0)
    assert code == errors.PROBLEM
    assert message in err
    assert opt.main([str(path)]) == 1
    said = capsys.readouterr().err
    assert message in said
    assert said.startswith("stepwell-opt: error: ")


def test_a_pass_that_fails_leaves_the_output_file_alone(tmp_path: Path) -> None:
    model, ir = relu(tmp_path / "m.onnx"), tmp_path / "m.mlir"
    assert opt.main([str(model), "-o", str(ir)]) == 0
    before = ir.read_text()
    assert opt.main([str(model), "-p", "stage-tile", "-o", str(ir)]) == 1
    assert ir.read_text() == before
    assert opt.main([str(ir), "-o", str(ir)]) == 0
    assert ir.read_text() == before


def test_shapes_are_whole_numbers_of_any_kind(tmp_path: Path) -> None:
    model = relu(tmp_path / "m.onnx", ("N", 4))
    wide: Any = np.int64(2)
    assert api.compile(model, target="tiny", shapes={"x": [wide, 4]}).tensors[0].shape == (2, 4)
    for wrong in ({"x": [1.5, 4]}, {"x": 5}, [1]):
        with pytest.raises(errors.CommandError, match="shapes: must be sizes by input"):
            api.compile(model, target="tiny", shapes=cast(Any, wrong))
    with pytest.raises(errors.CommandError, match="cores: must be a whole number"):
        api.compile(model, target="tiny", cores=cast(Any, "2"))


def test_weights_are_not_for_an_onnx_model(run: Run, tmp_path: Path) -> None:
    code, _, err = run("compile", relu(tmp_path / "m.onnx"), "--weights", tmp_path / "none")
    assert code == errors.PROBLEM
    assert "weights: are of IR text, an ONNX model has its own" in err


def test_json_has_no_nan() -> None:
    found = cli.finite({"a": [1.5, float("nan")], "b": {"c": float("inf")}, "d": "NaN"})
    assert found == {"a": [1.5, None], "b": {"c": None}, "d": "NaN"}


def test_integers_of_64_bits_are_compared(run: Run, tmp_path: Path) -> None:
    model = relu(tmp_path / "m.onnx", kind=TensorProto.INT64)
    code, out, _ = run("compare", model, "--random", 0, "--target", "tiny")
    assert (code, out.splitlines()[-1]) == (0, "every stage agrees")


def test_inspect_shows_sections_kernels_and_nodes(run: Run, toy: Path) -> None:
    code, out, _ = run("inspect", toy, "--kernel", "add", "--steps")
    assert code == 0
    for text in (
        " kB, for tiny (1 core), precision fp16",
        "weights  1 array, 128 B",
        f"input   x     float32   1×{N}  f16",
        "add        8   1248   0  384       1         2  Add_0, Add_1",
        "   1  add     y y z      Add_1",
        "kernel add\n; launched 2 times; the nodes are those of the first",
    ):
        assert text in out
    (row,) = (line for line in out.splitlines() if "vmap" in line)
    assert row.split(";")[1].strip() == "Add_0"
    found = json.loads(run("inspect", toy, "--json")[1])
    assert found["kernels"][0]["launches"] == 2
    assert found["steps"][1]["nodes"] == [[], ["Add_1"]]


def test_inspect_names_kernels_that_are_not_there(run: Run, toy: Path) -> None:
    code, _, err = run("inspect", toy, "--kernel", "sub", "--kernel", "mul")
    assert code == errors.PROBLEM
    assert err.splitlines() == [
        "stepwell: error: --kernel sub: is a kernel of the file (found none of this name); there are add [E-command]",
        "stepwell: error: --kernel mul: is a kernel of the file (found none of this name); there are add [E-command]",
    ]


def test_a_damaged_file_is_refused(run: Run, toy: Path) -> None:
    toy.write_bytes(toy.read_bytes()[:-9])
    code, _, err = run("run", toy, "--random", 0)
    assert code == errors.PROBLEM
    assert err.startswith(
        f"stepwell: error: {toy}: end of the archive: is the directory's end record (truncated?) (found other"
    )


# as a process


def test_the_command_starts_quickly_and_loads_little(tmp_path: Path) -> None:
    code = "import sys; from stepwell.driver.cli import main; main([]); print(*sys.modules)"
    runs: list[tuple[float, subprocess.CompletedProcess[str]]] = []
    for _ in range(3):
        start = time.perf_counter()
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
        runs.append((time.perf_counter() - start, ended))
    best, done = min(runs, key=lambda run: run[0])
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split("\n")[-2].split()
    assert not {"numpy", "numba", "onnx", "xdsl", "typer", "rich"} & set(loaded)
    assert best < 0.5  # 0.05 s where nothing else runs


def test_a_closed_pipe_is_no_error(toy: Path) -> None:
    command = f"{sys.executable} -m stepwell.driver.cli inspect {toy} --kernel add | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_exit_codes_reach_the_shell(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stepwell.driver.cli"]
    for arguments, code in (["--version"], 0), (["inspect", "nothing.stw"], 1), (["fly"], 2):
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == code, done.stderr


def test_shapes_are_read() -> None:
    assert cli.parse_shape("x=1,3,48,320") == ("x", (1, 3, 48, 320))
    assert cli.parse_shape("a=b=2") == ("a=b", (2,))
    assert cli.parse_shape("x=") == ("x", ())


def test_an_output_without_elements_has_no_statistics(run: Run, tmp_path: Path) -> None:
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", [4]), ("y", None))]
    bounds = helper.make_tensor("b", TensorProto.INT64, [1], [2])
    graph = helper.make_graph(
        [helper.make_node("Slice", ["x", "b", "b"], ["y"])], "none", infos[:1], infos[1:], [bounds]
    )
    file = tmp_path / "none.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
    assert run("compile", file, "--target", "tiny", "-o", tmp_path / "none.stw")[0] == 0
    code, out, _ = run("run", tmp_path / "none.stw", "--random", "0")
    assert code == 0
    assert "y       float32      0  –    –     –\n" in out
    assert run("compare", file, "--random", "0", "--target", "tiny")[0] == 0
