"""ONNX's own test cases of every operator end as docs/conformance.md says: see `onnx_cases`.

pytest tests/conformance_test.py -k Softmax
"""

import pytest
from onnx_cases import FUNCTION, PAGE, cases, judge, notes, row, rows

pytestmark = pytest.mark.xdist_group("conformance")  # one process makes the cases, which takes seconds
OPERATORS = [name for name in rows() if name not in ("operator", "---", "all")]
ONCE = [pytest.param(name, marks=pytest.mark.slow if name.endswith(FUNCTION) else ()) for name in OPERATORS]


@pytest.mark.parametrize("operator", ONCE)
def test_the_cases_of_an_operator_end_as_the_page_says(operator: str) -> None:
    verdicts = [judge(operator, case) for case in cases()[operator]]
    assert [v for v in verdicts if v.state in ("wrong", "crash")] == []
    assert row(operator, verdicts) == rows()[operator], "run python tests/onnx_cases.py"
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert notes(verdicts) == [line for line in lines if line.startswith(f"- **{operator}**")]


def test_every_case_is_on_the_page() -> None:
    assert list(cases()) == OPERATORS
    assert int(rows()["all"].split(" | ")[1]) == sum(map(len, cases().values()))
