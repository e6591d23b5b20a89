"""ONNX's own test cases of every operator end as docs/conformance.md says: see `onnx_cases`.

pytest tests/conformance_test.py -k Softmax
"""

import re

import pytest
from onnx_cases import FUNCTION, PAGE, cases, judge, notes, row, rows

pytestmark = pytest.mark.xdist_group("conformance")  # one process makes the cases, which takes seconds
OPERATORS = [name for name in rows() if name not in ("operator", "---", "all")]
ON_THE_CPU = {
    *("Compress", "NonMaxSuppression", "NonZero", "TopK", "Unique"),  # shapes that data decide
    *("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer"),  # texts
    *("Loop", "Optional", "OptionalGetElement", "OptionalHasElement", "SplitToSequence", "If", "Identity"),
    *("ConcatFromSequence", "ReverseSequence", "SequenceAt", "SequenceInsert", "SequenceLength", "SequenceMap"),
    "ImageDecoder",
}
"""Operators that may leave the device, beside those of ai.onnx.ml: what is neither arithmetic nor moves tensors."""
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


def test_the_device_runs_what_is_arithmetic_or_moves_data() -> None:
    counts = {name: [int(cell.strip() or 0) for cell in rows()[name].split("|")[2:-1]] for name in OPERATORS}
    stem = {name: name.removesuffix(FUNCTION).strip() for name in OPERATORS}
    ours = [counts[name] for name in OPERATORS if stem[name] not in ON_THE_CPU and not name.startswith("ai.onnx.ml")]
    _, _, native, _, host, _ = (sum(column) for column in zip(*ours, strict=True))
    assert native / (native + host) >= 0.95
    assert len({stem[name] for name, row in counts.items() if row[2]}) >= 120


def test_what_onnxruntime_passes_runs() -> None:
    found = re.search(r"onnxruntime passes (\d+) of the cases; of those .* host, (\d+)\nrefused", PAGE.read_text())
    assert found is not None
    passed, refused = map(int, found.groups())
    assert refused <= 0.01 * passed
