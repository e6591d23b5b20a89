"""docs/supported-ops.md has every operator, and says of it what the code does."""

import onnx
import pytest

from stepwell.driver.supported_page import _raised, supported_page  # pyright: ignore[reportPrivateUsage]
from stepwell.frontend.extensions import EXTENSIONS
from stepwell.frontend.onnx import supported


@pytest.fixture(scope="module")
def rows() -> dict[str, list[str]]:
    """The cells of each row, by operator; those of com.microsoft with the domain."""
    found, domain = dict[str, list[str]](), ""
    for line in supported_page().splitlines():
        if line.startswith("## "):
            domain = "" if line == "## ai.onnx" else f"{line.removeprefix('## ')}."
        elif line.startswith("| ") and not line.startswith(("| operator", "| ---")):
            cells = [cell.strip() for cell in line.strip("|").replace("\\|", "∣").split("|")]
            found[domain + cells[0]] = cells[1:]
    return found


def test_every_operator_has_a_row(rows: dict[str, list[str]]) -> None:
    own = {schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain}
    more = {f"{domain}.{name}" for domain, names in EXTENSIONS.items() for name in names}
    assert rows.keys() >= own | more
    assert {name for name, cells in rows.items() if cells[1] == "host"} == rows.keys() - supported().keys()


@pytest.mark.parametrize(
    ("name", "place", "text"),
    [
        ("Relu", 1, "native: `graph.relu`"),
        ("Softmax", 1, "decomposed: `graph.softmax`"),
        ("Shape", 1, "known"),
        ("NonZero", 1, "host"),
        ("Conv", 3, "device"),
        ("BitShift", 4, "operands are integers of one type; direction is LEFT or RIGHT"),
        ("And", 2, "bool"),
    ],
)
def test_a_row_says_what_the_code_does(rows: dict[str, list[str]], name: str, place: int, text: str) -> None:
    assert text in rows[name][place]


def test_rules_are_read_from_the_source() -> None:
    source = (
        'def f(x):\n    if x:\n        raise ShapeError(f"axis {x} is " + "one (found {x})")\n    raise OSError("no")'
    )
    assert _raised(source) == ("axis … is one",)
