"""Files that are no sound model: one clear error, nothing read outside of the model's folder, memory bounded by the
file's size."""

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

import stepwell
from stepwell.driver.agreement import onnxruntime_run
from stepwell.driver.errors import PROBLEM, describe
from stepwell.frontend.onnx import import_onnx
from stepwell.runtime.problem import Kind, Problem

onnxruntime.set_default_logger_severity(4)


def model(
    *nodes: NodeProto, constants: Sequence[TensorProto] = (), outputs: Sequence[str] = "y", opset: int = 17, ir: int = 8
) -> ModelProto:
    """A model of the input x [4] and f32 outputs."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(nodes, "g", inputs, results, list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)


def node(operator: str, inputs: str, output: str) -> NodeProto:
    """Named after its output."""
    return helper.make_node(operator, inputs.split(), [output], output)


def constant(name: str, value: float = 1) -> TensorProto:
    return numpy_helper.from_array(np.full(4, value, np.float32), name)


def changed(**fields: object) -> ModelProto:
    """x + w with another constant w."""
    made = model(node("Add", "x w", "y"), constants=[constant("w")])
    tensor = made.graph.initializer[0]
    for name, value in fields.items():
        if isinstance(value, list):
            tensor.ClearField(name)  # type: ignore[arg-type]
            getattr(tensor, name).extend(value)
        else:
            setattr(tensor, name, value)
    return made


def problems(source: Path | bytes | ModelProto, host: bool = False) -> tuple[Problem, ...]:
    """What is told of a model that is refused, of which every problem must have all parts."""
    with pytest.raises(ValueError, match="found") as caught:
        import_onnx(source, host=host)
    failure = describe(caught.value)
    assert failure.exit_code == PROBLEM
    found = [problem for problem in failure.problems if isinstance(problem, Problem)]
    assert len(found) == len(failure.problems) > 0
    assert all(problem.is_whole and "\n" not in problem for problem in found)
    return tuple(found)


def with_text(place: str) -> bytes:
    """A model with a text that is no UTF-8 in some place."""
    made = model(node("Relu", "x", "y"))
    marked = "!mark!"
    match place:
        case "graph":
            made.graph.name = marked
        case "metadata":
            made.metadata_props.add(key="k", value=marked)
        case "value":
            made.graph.value_info.add(name=marked)
        case "extent of an output":
            made.graph.output[0].type.tensor_type.shape.dim.add(dim_param=marked)
        case _:
            made.opset_import.add(domain=marked, version=1)
    return made.SerializeToString().replace(b"!mark!", b"!mar\xe5!")


@pytest.mark.parametrize("place", ["graph", "metadata", "value", "extent of an output", "opset"])
def test_texts_are_utf_8_wherever_they_stand(place: str) -> None:
    (found,) = problems(with_text(place))
    assert found.kind is Kind.FILE
    assert found.startswith("the model: names are text in UTF-8 (found b'!mar\\xe5!'); ")


@pytest.mark.parametrize("outer", ["sequence_type", "optional_type", "map_type"])
def test_an_input_has_a_whole_type(outer: str) -> None:
    made = model(node("Relu", "x", "y"))
    kind = made.graph.input.add(name="odd").type
    getattr(kind, outer).SetInParent()
    with pytest.raises(ValueError, match="found") as caught:
        stepwell.compile(made, target="tiny")
    (found,) = describe(caught.value).problems
    assert found == f"odd: an input is a tensor (found {outer}); export the model without it"


def test_what_is_empty_was_found() -> None:
    made = model(helper.make_node("Resize", ["x", "", "s"], ["y"], "y", mode="nearest", nearest_mode=""))
    made.graph.initializer.append(numpy_helper.from_array(np.array([2], np.float32), "s"))
    (found,) = problems(made)
    assert "(found '')" in found


# names and order ------------------------------------------------------------------------------------------------------
REFUSED: dict[str, tuple[ModelProto, str]] = {
    "a cycle": (
        model(node("Add", "x u", "t"), node("Relu", "t", "u"), node("Neg", "u", "y")),
        "u: no node needs its own result (found a cycle through t, u)",
    ),
    "a node of its own result": (model(node("Add", "x y", "y")), "y: no node needs its own result (found a cycle"),
    "a constant made twice": (
        model(node("Neg", "x", "w"), node("Add", "x w", "y"), constants=[constant("w")]),
        "w: what a node makes has a name of its own (found that of a constant, w)",
    ),
    "an input made again": (
        model(node("Neg", "x", "x"), node("Relu", "x", "y")),
        "x: what a node makes has a name of its own (found that of an input, x)",
    ),
    "a value made twice": (model(node("Neg", "x", "y"), node("Relu", "x", "y")), "y_2: every value has one node that"),
    "nothing of this name": (model(node("Add", "x z", "y")), "y: values are defined before use (found no 'z')"),
    "no such output": (model(node("Neg", "x", "t")), "the output y: values are defined before use (found no 'y')"),
    "a future opset": (model(node("Neg", "x", "y"), opset=99), "the model: its opset is 1 to "),
    "opset 0": (model(node("Neg", "x", "y"), opset=0), "the model: its opset is 1 to "),
    "a future format": (model(node("Neg", "x", "y"), ir=99), "the model: the version of its format is at most "),
    "too few bytes": (changed(raw_data=b"1234567890123"), "w: the data fits the shape [4] and its type (found "),
    "a negative extent": (changed(dims=[-1]), "w: a constant has extents of 0 or more (found [-1])"),
    "a huge extent": (changed(dims=[2**40, 2**40]), "w: the data fits the shape "),
    "no type": (changed(data_type=99), "w: a constant has a type that ONNX knows (found number 99)"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_that_is_not_sound_is_refused(name: str) -> None:
    made, message = REFUSED[name]
    assert any(problem.startswith(message) for problem in problems(made)), problems(made)
    with pytest.raises(Exception, match=r"\w"):  # nor does onnxruntime take it
        onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"x": np.zeros(4, np.float32)})


@pytest.mark.parametrize("name", ["", "two\nlines", "a: b (found c); d", "\0"])
def test_any_name_is_told_on_one_line(name: str) -> None:
    made = changed(data_type=99, name=name)
    made.graph.node[0].input[1] = name
    made.graph.node[0].name = name
    assert all("number 99" in problem for problem in problems(made)[:1])


def test_a_constant_of_two_values_is_refused() -> None:
    """onnxruntime takes one of them."""
    made = model(node("Add", "x w", "y"), constants=[constant("w"), constant("w", 2)])
    assert problems(made) == ("w: a constant has a name of its own (found 2 of this name); rename them",)


def test_nodes_in_any_order_are_put_in_order() -> None:
    made = model(node("Add", "t u", "y"), node("Neg", "t", "u"), node("Mul", "x w", "t"), constants=[constant("w", 3)])
    x = np.arange(4, dtype=np.float32)
    expected = onnxruntime_run(made, {"x": x})["y"]
    found = stepwell.compile(made, target="tiny").model.run({"x": x})["y"]
    assert np.array_equal(found, expected)


def test_a_long_chain_in_reverse_is_put_in_order_without_recursion() -> None:
    names = ["x", *(f"v{i}" for i in range(5000)), "y"]
    nodes = [node("Identity", of, to) for of, to in pairwise(names)]
    start = time.perf_counter()
    import_onnx(model(*reversed(nodes)))
    assert time.perf_counter() - start < 20


# external data --------------------------------------------------------------------------------------------------------
Place = Callable[[Path], dict[str, str]]


def external(folder: Path, **entries: str) -> Path:
    made = changed()
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    folder.mkdir(exist_ok=True)
    path = folder / "m.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def linked(folder: Path, name: str, target: Path) -> dict[str, str]:
    folder.mkdir()
    (folder / name).symlink_to(target)
    return {"location": name}


def folder_linked(folder: Path) -> dict[str, str]:
    folder.mkdir()
    (folder / "sub").symlink_to(folder.parent, target_is_directory=True)
    return {"location": "sub/secret"}


def written(folder: Path, **entries: str) -> dict[str, str]:
    folder.mkdir()
    (folder / "w").write_bytes(np.ones(4, np.float32).tobytes())
    return {"location": "w", **entries}


PLACES: dict[str, tuple[Place, str]] = {
    "above": (lambda folder: {"location": "../secret"}, "found the path '../secret'"),
    "above, hidden": (lambda folder: {"location": "a/../../secret"}, "found the path"),
    "absolute": (lambda folder: {"location": str(folder.parent / "secret")}, "found the path"),
    "absolute, inside": (lambda folder: {"location": str(folder / "m.onnx")}, "found the path"),
    "a link": (lambda folder: linked(folder, "w", folder.parent / "secret"), "found a link out of it, w"),
    "a link to a link": (lambda folder: linked(folder, "w", Path("../link")), "found a link out of it, w"),
    "a link to a folder": (folder_linked, "found a link out of it, sub/secret"),
    "a device": (lambda folder: linked(folder, "w", Path("/dev/zero")), "found a link out of it, w"),
    "a loop of links": (lambda folder: linked(folder, "w", Path("w")), "found "),
    "the folder": (lambda folder: {"location": "."}, "found no file ."),
    "nothing": (lambda folder: {}, "found the path ''"),
    "no such file": (lambda folder: {"location": "w"}, "found no file w"),
    "a zero byte": (lambda folder: {"location": "w\0"}, "found the path"),
    "too long": (lambda folder: written(folder, length="99"), "found bytes 0 to 99 of 16"),
    "too short": (lambda folder: written(folder, length="8"), "w: the data fits the shape [4] and its type (found "),
    "odd": (lambda folder: written(folder, length="7"), "w: the data fits the shape [4] and its type (found "),
    "beyond": (lambda folder: written(folder, offset="16", length="16"), "found bytes 16 to 32 of 16"),
    "before": (lambda folder: written(folder, offset="-8"), "found bytes -8 to 8 of 16"),
    "negative": (lambda folder: written(folder, length="-4"), "found bytes 0 to -4 of 16"),
    "no number": (lambda folder: written(folder, offset="zero"), "offset and length are numbers (found "),
    "a huge number": (lambda folder: written(folder, offset="9" * 5000), "found "),
}


@pytest.mark.parametrize("name", PLACES)
def test_external_data_lies_in_the_folder_of_the_model(name: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(np.full(4, 1234.5, np.float32).tobytes())
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    place, message = PLACES[name]
    (found,) = problems(external(tmp_path / "model", **place(tmp_path / "model")))
    assert found.kind is Kind.FILE
    assert message in found
    assert "1234.5" not in found


def test_external_data_and_links_inside_of_the_folder_are_read(tmp_path: Path) -> None:
    entries = written(tmp_path / "model")
    (tmp_path / "model" / "v").symlink_to("w")
    for location in (entries["location"], "./w", "v"):
        artifact = stepwell.compile(external(tmp_path / "model", location=location), target="tiny")
        assert artifact.model.run({"x": np.full(4, 2, np.float32)})["y"].tolist() == [3] * 4


# whole files ----------------------------------------------------------------------------------------------------------
OTHERS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "found 0 bytes"),
    "a text": (b"no model at all", "is ONNX (found "),
    "a page": (b"<!DOCTYPE html><p>404", "found a page of text"),
    "an image": (b"\x89PNG\r\n\x1a\n" + bytes(99), "found a PNG image"),
    "an archive": (b"PK\3\4" + bytes(99), "found a ZIP archive"),
    "a pointer": (b"version https://git-lfs.github.com/spec/v1\n", "found a pointer of Git LFS"),
    "zeros": (bytes(5000), "is ONNX (found "),
    "no graph": (onnx.ModelProto(ir_version=8).SerializeToString(), "has a graph with outputs"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_files_are_known_for_what_they_are(name: str, tmp_path: Path) -> None:
    content, message = OTHERS[name]
    (tmp_path / "m.onnx").write_bytes(content)
    (found,) = problems(tmp_path / "m.onnx")
    assert found.kind is Kind.FILE
    assert found.where == str(tmp_path / "m.onnx")
    assert message in found


def test_names_are_text(tmp_path: Path) -> None:
    content = model(node("Neg", "x", "y")).SerializeToString().replace(b'"\x03Neg', b'"\x03N\xffg')
    (tmp_path / "m.onnx").write_bytes(content)
    (found,) = problems(tmp_path / "m.onnx")
    assert "names are text in UTF-8 (found b'N" in found


def test_every_truncation_of_a_model_is_refused(tmp_path: Path) -> None:
    whole = model(node("Add", "x w", "t"), node("Relu", "t", "y"), constants=[constant("w")]).SerializeToString()
    for size in range(len(whole) - len("x") - 40):
        (tmp_path / "m.onnx").write_bytes(whole[:size])
        assert problems(tmp_path / "m.onnx")


def _in_process(path: Path, megabytes: int) -> tuple[str, float, int]:
    """What is told of a file in a process of its own with so much memory; seconds, and its peak in megabytes."""
    text = f"""
import resource, sys, time
from pathlib import Path
from stepwell.driver.errors import describe
from stepwell.frontend.onnx import import_onnx
import_onnx
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
try:
    _, weights = import_onnx(Path({str(path)!r}))
    told = f"{{weights.nbytes}} bytes of weights"
except Exception as error:
    told = describe(error).problems[0]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(told, time.perf_counter() - start, (peak - base) // 1024, sep="|")
"""
    limit = megabytes * 2**20

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, preexec_fn=limited)
    told, seconds, peak = done.stdout.strip().split("|")
    return told, float(seconds), int(peak)


def test_a_file_of_more_than_2_gb_is_read_where_it_lies(tmp_path: Path) -> None:
    """A constant of 2.5 GB of zeros, which take no room on the disk; only its place is looked at."""
    from stepwell.frontend.wire import _message, _varint  # pyright: ignore[reportPrivateUsage]

    size = 2_500_000_000
    made = changed(dims=[size // 16, 4])
    made.graph.initializer[0].ClearField("raw_data")
    made.graph.node[0].CopyFrom(node("Shape", "w", "y"))
    made.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    tensor = made.graph.initializer[0].SerializeToString() + _varint(9 * 8 + 2) + _varint(size)
    made.graph.ClearField("initializer")
    graph = made.graph.SerializeToString()
    made.ClearField("graph")
    head = made.SerializeToString()
    inner = len(graph) + len(_varint(5 * 8 + 2)) + len(_varint(len(tensor) + size)) + len(tensor) + size
    head += _varint(7 * 8 + 2) + _varint(inner) + graph + _varint(5 * 8 + 2) + _varint(len(tensor) + size) + tensor
    assert _message(1, b"") == b"\n\0"
    with (tmp_path / "m.onnx").open("wb") as file:
        file.write(head)
        file.truncate(len(head) + size)
    told, seconds, peak = _in_process(tmp_path / "m.onnx", 1000)
    assert told.endswith("bytes of weights")
    assert seconds < 10
    assert peak < 300


def test_a_huge_file_of_nonsense_is_refused_at_once(tmp_path: Path) -> None:
    for content in (bytes(16), b"\x0a\x00" * 8):
        with (tmp_path / "m.onnx").open("wb") as file:
            file.write(content)
            file.truncate(3_000_000_000)
        told, seconds, peak = _in_process(tmp_path / "m.onnx", 1000)
        assert "is ONNX (found broken data" in told
        assert seconds < 10
        assert peak < 100


def test_a_small_file_does_not_ask_for_much_memory() -> None:
    shape = numpy_helper.from_array(np.array([100_000, 100_000, 4]), "s")
    wide = numpy_helper.from_array(np.zeros((60_000, 1), np.float32), "a")
    high = numpy_helper.from_array(np.zeros((1, 60_000), np.float32), "b")
    for made in (
        model(node("ConstantOfShape", "s", "t"), node("Add", "t x", "y"), constants=[shape]),
        model(node("Expand", "x0 s", "t"), node("Add", "t x", "y"), constants=[shape, constant("x0")]),
        model(node("Mul", "a b", "t"), node("ReduceSum", "t", "y"), constants=[wide, high]),
        model(node("MatMul", "a b", "t"), node("ReduceSum", "t", "y"), constants=[wide, high]),
    ):
        (found,) = problems(made)
        assert found.kind is Kind.MEMORY
        assert found.startswith("t: a constant has at most ")


def test_types_that_the_device_lacks_may_lie_in_the_file(tmp_path: Path) -> None:
    """Large constants are left in the file, whatever their type."""
    data: NDArray[np.uint64] = np.arange(2000, dtype=np.uint64).reshape(-1, 4)
    made = model(helper.make_node("Cast", ["w"], ["v"], to=TensorProto.FLOAT), node("Add", "x v", "y"))
    made.graph.initializer.append(numpy_helper.from_array(data, "w"))
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    found = stepwell.compile(tmp_path / "m.onnx", target="tiny", precision="fp32").model.run(
        {"x": np.ones(4, np.float32)}
    )
    assert np.array_equal(found["y"], data.astype(np.float32) + 1)


def untyped(*nodes: NodeProto, constants: Sequence[TensorProto] = ()) -> ModelProto:
    """A model that does not say of which type its result is."""
    made = model(*nodes, constants=constants)
    made.graph.output[0].ClearField("type")
    return made


def test_a_result_of_a_type_that_neither_the_device_nor_the_cpu_holds_is_one_problem() -> None:
    cast = helper.make_node("Cast", ["x0"], ["y"], "cast", to=TensorProto.FLOAT4E2M1)
    for host in (False, True):
        (found,) = problems(untyped(cast, constants=[constant("x0")]), host)
        assert found.kind is Kind.DTYPE
        assert found.startswith(
            "y: outputs hold floats of at most 32 bits, integers or truth values (found float4_e2m1fn)"
        )


def test_an_empty_result_may_have_extents_that_no_array_has() -> None:
    rows = helper.make_node("Reshape", ["x", "s"], ["t"], "reshape")
    space = helper.make_node("DepthToSpace", ["t"], ["y"], "space", blocksize=2**31)
    made = untyped(rows, space, constants=[numpy_helper.from_array(np.array([1, 4, 1, 1]), "s")])
    import_onnx(made, host=True)


def test_what_this_computer_has_no_memory_for_is_one_problem() -> None:
    regions = helper.make_node("RoiAlign", ["x", "r", "b"], ["y"], "regions", sampling_ratio=2**40)
    made = model(regions, constants=[numpy_helper.from_array(np.array([[0, 0, 2, 2]], np.float32), "r")])
    made.graph.initializer.append(numpy_helper.from_array(np.array([0]), "b"))
    made.graph.input[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, [1, 1, 4, 4]))
    for host in (False, True):
        (found,) = problems(made, host)
        assert found.kind is Kind.MEMORY
        assert found.startswith("regions: a node is computed in the memory of this computer (found Unable to allocate")
