"""Sizes that were chosen for open axes, and do not fit together."""

import warnings
from pathlib import Path

import onnx
import pytest
from onnx_models import text_model

from stepwell.driver.cli import main
from stepwell.driver.errors import problems_of
from stepwell.frontend.onnx import import_onnx
from stepwell.frontend.problems import BROKEN, ImportProblems, ShapeWarning


def sums(axis: str) -> onnx.ModelProto:
    """It does not matter whether both axes agree."""
    return text_model(
        "a = ReduceSum(x) c = ReduceSum(b) y = Add(a, c)", f"float[{axis},8] x, float[{axis},8] b", "float[1,1] y"
    )


def product(axis: str) -> onnx.ModelProto:
    return text_model("y = Mul(x, b)", f"float[{axis},8] x, float[{axis},8] b", f"float[{axis},8] y")


SHAPES = {"x": [2, 8], "b": [3, 8]}


def test_axes_of_one_name_and_several_sizes_are_a_warning() -> None:
    with pytest.warns(ShapeWarning, match=r"^axes of one name have one size \(found that 'n' is 2 in x and 3 in b\)$"):
        import_onnx(sums("n"), shapes=SHAPES)


def test_no_warning_without_a_name_or_a_difference() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        import_onnx(sums("n"), shapes={"x": [2, 8], "b": [2, 8]})
        model = sums("n")
        for info in model.graph.input:
            info.type.tensor_type.shape.dim[0].ClearField("dim_param")
        import_onnx(model, shapes=SHAPES)


@pytest.mark.parametrize(
    ("axis", "given", "advice"),
    [
        ("n", SHAPES, "make axes of one name equal ('n' is 2 in x and 3 in b) with --shape"),
        ("?", SHAPES, "give other sizes with --shape"),
        ("5", {}, BROKEN),
    ],
)
def test_what_does_not_fit_may_be_the_sizes(axis: str, given: dict[str, list[int]], advice: str) -> None:
    model = product("n")
    for info, fixed in zip(model.graph.input, (5, 4), strict=True):
        dim = info.type.tensor_type.shape.dim[0]
        dim.ClearField("dim_param")
        if axis == "n":
            dim.dim_param = axis
        elif axis != "?":
            dim.dim_value = fixed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ImportProblems) as caught:
            import_onnx(model, shapes=given)
    (problem,) = problems_of(caught.value)
    assert problem.startswith("Mul_0: operands must broadcast together")
    assert advice in problem
    assert problem.endswith(BROKEN)


def test_the_command_line_warns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(sums("n"), tmp_path / "m.onnx")
    given = ["--shape", "x=2,8", "--shape", "b=3,8", "--target", "tiny"]
    assert main(["compile", str(tmp_path / "m.onnx"), *given]) == 0
    assert "stepwell: warning: axes of one name have one size" in capsys.readouterr().err
