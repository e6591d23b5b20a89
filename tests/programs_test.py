"""Every program of filecheck/programs at every level: graph, fused graph, tile and npu give the same bits.

pytest tests/programs_test.py -k softmax

The slow tests run each on every target, on one core, two and all.
"""

from pathlib import Path

import levels
import numpy as np
import pytest
from chips import NAMES, core_counts

FOLDER = Path(__file__).parent / "filecheck" / "programs"
ADD = """// RUN-LEVELS: seed=1; targets=tiny
func.func @main(%x: tensor<4x6xf32>, %y: tensor<6xf32>) -> tensor<4x6xf32> {
  %0 = graph.add %x, %y : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  func.return %0 : tensor<4x6xf32>
}
"""


@pytest.mark.parametrize("file", [path.name for path in levels.programs(FOLDER)])
def test_every_level_gives_the_same_bits(file: str) -> None:
    levels.run_program(levels.Program.read(FOLDER / file))


@pytest.mark.slow
@pytest.mark.parametrize("file", [path.name for path in levels.programs(FOLDER)])
@pytest.mark.parametrize("target", NAMES)
def test_every_target_gives_the_same_bits(file: str, target: str) -> None:
    program = levels.Program.read(FOLDER / file)
    if target not in (program.directive.targets or NAMES):
        pytest.skip(f"it is for {', '.join(program.directive.targets)}")
    levels.run_program(program, {target: core_counts(target)})


def program(tmp_path: Path, text: str) -> levels.Program:
    path = tmp_path / "toy.mlir"
    path.write_text(text)
    return levels.Program.read(path)


def test_the_first_level_that_departs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = levels.evaluate_tiles

    def wrong(*arguments: object) -> list[levels.Array]:
        (found,) = original(*arguments)  # pyright: ignore[reportArgumentType]
        found[1, 2] += np.float32(0.5)
        return [found]

    monkeypatch.setattr(levels, "evaluate_tiles", wrong)
    message = (
        r"toy\.mlir: tile \(tiny, 1 core, fp32\): result 0 departs: "
        r"1 of 24 values, max difference 0\.5; the first at \[1, 2\]"
    )
    with pytest.raises(levels.DepartureError, match=message):
        levels.run_program(program(tmp_path, ADD))


def test_a_wrong_reference_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = levels.reference
    monkeypatch.setattr(levels, "reference", lambda *arguments: [array + 1 for array in original(*arguments)])
    with pytest.raises(levels.DepartureError, match=r"graph \(fp32\): result 0 departs from the reference: max error"):
        levels.run_program(program(tmp_path, ADD))


def test_what_compiles_now_is_pinned_no_longer(tmp_path: Path) -> None:
    with pytest.raises(levels.DepartureError, match=r"toy\.mlir: compiles now; remove fails=no tile form"):
        levels.run_program(program(tmp_path, ADD.replace("seed=1", "fails=no tile form")))


def test_a_directive_is_read_strictly(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="RUN-LEVELS: no part sede; there are seed, targets, precision"):
        program(tmp_path, ADD.replace("seed", "sede"))
    with pytest.raises(ValueError, match=r"toy\.mlir: one line // RUN-LEVELS: … \(found 0\)"):
        program(tmp_path, ADD.replace("RUN-LEVELS", "RUN"))
