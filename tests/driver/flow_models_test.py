"""Files whose nodes hold graphs or tensors: what lies in other files, and graphs that do not fit their node."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper
from onnx_models import text_model

import stepwell
from stepwell.driver import api
from stepwell.driver.assess import assess
from stepwell.driver.errors import problems_of
from stepwell.frontend.problems import ImportProblems, ModelFileError

pytestmark = pytest.mark.xdist_group("device")

K = np.arange(600, dtype=np.float32).reshape(2, 300) / 600
X = np.ones((2, 300), np.float32)


def outside(array: NDArray[Any], location: str) -> TensorProto:
    """`k`, whose bytes lie in another file."""
    tensor = TensorProto(name="k", data_type=TensorProto.FLOAT, dims=array.shape, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    return tensor


def body(tensor: TensorProto, grows: bool) -> onnx.ModelProto:
    """An initialiser of a body; one whose results grow by rows of extents that values decide is run by the CPU."""
    result, declared = (", int64[2,m] u", ", int64[q,2,m] v") if grows else ("", "")
    made = "u = NonZero(t)" if grows else ""
    model = text_model(
        f"""y{", v" if grows else ""} = Loop (n, , x) <body = g (int64 i, bool ci, float[2,300] s) =>
            (bool co, float[2,300] t{result}) {{ co = Identity(ci) t = Mul(s, k) {made} }}>""",
        "int64 n, float[2,300] x",
        f"float[2,300] y{declared}",
    )
    model.graph.node[0].attribute[0].g.initializer.append(tensor)
    return model


def constant(tensor: TensorProto) -> onnx.ModelProto:
    model = text_model(
        "k = Constant<value = float[1] {1}>() y = Mul(x, k)", "int64 n, float[2,300] x", "float[2,300] y"
    )
    model.graph.node[0].attribute[0].t.CopyFrom(tensor)
    return model


def fill(tensor: TensorProto) -> onnx.ModelProto:
    """An attribute of a node that the CPU runs."""
    model = text_model(
        "s = Concat<axis = 0>(m, n) k = ConstantOfShape<value = float[1] {1}>(s) y = Mul(x, k)",
        "int64[1] n, int64[1] m, float[2,300] x",
        "float[2,300] y",
    )
    model.graph.node[1].attribute[0].t.CopyFrom(tensor)
    return model


HOLDERS: dict[str, Callable[[TensorProto], onnx.ModelProto]] = {
    "a body": lambda tensor: body(tensor, grows=False),
    "a body on the CPU": lambda tensor: body(tensor, grows=True),
    "a constant": constant,
    "an attribute on the CPU": fill,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of models; the working directory is another one."""
    for name in ("models", "elsewhere"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "models"


@pytest.mark.parametrize("name", HOLDERS)
def test_tensors_of_nodes_may_lie_beside_the_model(folder: Path, name: str) -> None:
    array = np.array([2], np.float32) if name == "an attribute on the CPU" else K
    (folder / "k.bin").write_bytes(array.tobytes())
    path, inside = folder / "m.onnx", folder / "inside.onnx"
    onnx.save(HOLDERS[name](outside(array, "k.bin")), path)
    onnx.save(HOLDERS[name](numpy_helper.from_array(array, "k")), inside)
    given = {"n": np.array(2), "x": X}
    if name == "an attribute on the CPU":
        given |= {"n": np.array([300]), "m": np.array([2])}
    wanted = onnxruntime.InferenceSession(str(inside)).run(None, given)
    found = stepwell.run(api.compile(path, target="tiny", precision="fp32"), given)
    for one, other in zip(found.values(), wanted, strict=True):
        np.testing.assert_allclose(one, np.asarray(other), rtol=1e-6)
    assert not assess(path, target="tiny").problems


@pytest.mark.parametrize("where", ["k.bin", "../elsewhere/k.bin", "absolute"])
@pytest.mark.parametrize("name", HOLDERS)
def test_nothing_else_is_read(folder: Path, name: str, where: str) -> None:
    array = np.array([2], np.float32) if name == "an attribute on the CPU" else K
    Path("k.bin").write_bytes(array.tobytes())
    location = str(Path("k.bin").absolute()) if where == "absolute" else where
    onnx.save(HOLDERS[name](outside(array, location)), folder / "m.onnx")
    with pytest.raises(ModelFileError, match="k: its data lies in a file in the model's folder") as caught:
        api.compile(folder / "m.onnx", target="tiny")
    assert problems_of(caught.value)


LOOP = "body = g (int64 i, bool ci, float[4] s{more}) => (bool co, float[4] t) {{ co = Identity(ci) t = Neg(s) }}"
SCAN = "body = g (float[4] e) => (float[4] o) { o = Tanh(e) }"
ILL_FORMED = {
    "y = Loop (n, , x) <"
    + LOOP.format(more=", float[4] r")
    + ">": "body has as many inputs as Loop gives it, 3 (found 4)",
    "y = Loop (n, , x, x) <" + LOOP.format(more="") + ">": "body has as many inputs as Loop gives it, 4 (found 3)",
    "y, z = Loop (n, , x) <" + LOOP.format(more="") + ">": "body has as many outputs as Loop needs, 3 (found 2)",
    f"y = Scan <num_scan_inputs = 2, {SCAN}> (x2)": "num_scan_inputs is at most the number of inputs, 1 (found 2)",
    f"y = Scan <num_scan_inputs = 1, {SCAN}> (x2, x2)": "body has as many inputs as Scan gives it, 2 (found 1)",
    f"y = Scan <num_scan_inputs = 1, scan_input_axes = [0, 0], {SCAN}> (x2)": "for each sequence, 1 (found 2)",
    f"y = Scan <num_scan_inputs = 1, scan_output_axes = [0, 1], {SCAN}> (x2)": "for each result, 1 (found 2)",
    """y, z = If (c) <then_branch = t () => (float[4] a) { a = Neg(x) },
        else_branch = e () => (float[4] b) { b = Exp(x) }>""": "as many outputs as If needs, 2 (found 1)",
    """y = If (c) <then_branch = t () => (float[4] a) { a = Neg(x) },
        else_branch = e (float[4] q) => (float[4] b) { b = Exp(q) }>""": "as many inputs as If gives it, 0 (found 1)",
}


@pytest.mark.parametrize("text", ILL_FORMED)
def test_graphs_that_do_not_fit_their_node(text: str) -> None:
    model = text_model(text, "int64 n, bool c, float[4] x, float[5,4] x2", "float[q] y")
    with pytest.raises(ImportProblems) as caught:
        api.compile(model, target="tiny")
    (problem,) = caught.value.problems
    assert ILL_FORMED[text] in problem
    assert "mend the model" in problem
    assert [str(each) for each in assess(model, target="tiny").problems] == [str(problem)]


def test_an_attribute_that_is_no_text() -> None:
    model = text_model('y = Gelu<approximate = "tanh">(x)', "float[4] x", "float[4] y", opset=20)
    model.graph.node[0].attribute[0].s = b"\xff"
    with pytest.raises(ImportProblems, match=r"Gelu_0: .*\\xff"):
        api.compile(model, target="tiny", host=False)


@pytest.mark.parametrize("value", [b"FOO", b"\xff", b"same_upper"])
def test_a_padding_that_is_none(value: bytes) -> None:
    text = 'y = AveragePool<kernel_shape = [2,2], auto_pad = "VALID">(x)'
    model = text_model(text, "float[1,1,4,4] x", "float[1,1,3,3] y")
    (padding,) = (a for a in model.graph.node[0].attribute if a.name == "auto_pad")
    padding.s = value
    with pytest.raises(ImportProblems, match="AveragePool_0: auto_pad is NOTSET, SAME_UPPER, SAME_LOWER or VALID"):
        api.compile(model, target="tiny")
