"""Every problem that a user may see has a class, and says where, what was expected, what was found and what to do."""

import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from acceptance.hostile_models import made, one, zeros
from onnx_models import node_model

import stepwell
from stepwell.driver import error_page, errors
from stepwell.driver.error_page import Rule, rules
from stepwell.runtime.memory import HostMemoryError
from stepwell.runtime.problem import Kind, Problem, UserError

RULES = list(rules())
RULE = re.compile(r".+ \(found .*\)", re.DOTALL)
WHOLE = re.compile(r".+?: .+ \(.*found.*\)?; .+", re.DOTALL)


def test_the_rules_are_found() -> None:
    assert len(RULES) > 280
    assert {rule.kind for rule in RULES} >= set(Kind) - {Kind.IR}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.place}: {rule.text[:60]}")
def test_no_rule_lacks_a_part(rule: Rule) -> None:
    form = WHOLE if rule.is_whole else RULE
    assert form.fullmatch(rule.text), f"{rule.place}: {rule.text}"


def test_a_rule_that_lacks_a_part_is_seen() -> None:
    for text in ("x: is wrong", "x: is y (found z)", "x: is y; mend it"):
        assert not WHOLE.fullmatch(text)
    assert not RULE.fullmatch("is y")
    assert not Problem("x: is y (found z)", Kind.FILE).is_whole
    assert Problem("x: is y (found z); mend it", Kind.FILE).is_whole


def _subclasses(cls: type[BaseException]) -> set[type[BaseException]]:
    return {cls}.union(*map(_subclasses, cls.__subclasses__()))


def test_no_user_error_is_taken_for_a_fault_of_ours() -> None:
    for name in ("backend.errors", "driver.opt", "frontend.onnx", "passes.graph_to_tile"):
        import_module(f"stepwell.{name}")  # so that all classes are there
    found = _subclasses(UserError) - {UserError}
    assert len(found) > 14
    for cls in found:
        bare = type(
            cls.__name__,
            (cls,),
            {"__init__": lambda self: None, "__str__": lambda self: "a problem", "problems": UserError.problems},
        )()
        assert errors.describe(bare).exit_code == errors.PROBLEM, cls


INT = np.array
CASES: dict[str, tuple[Callable[[], object], Kind, str]] = {
    "operator": (one("NonZero", (3, 3)), Kind.OPERATOR, "node"),
    "shape": (made("node = Add(x, w)", x=[3, 4], w=zeros(5)), Kind.SHAPE, "node"),
    "bias": (
        lambda: node_model("Conv", [zeros(1, 3, 6, 6)], {}, 17, [zeros(5, 3, 3, 3), zeros(4)]),
        Kind.SHAPE,
        "node",
    ),
    "kernel": (lambda: node_model("Conv", [zeros(1, 3, 6, 6)], {}, 17, [zeros(5, 3, 7, 7)]), Kind.SHAPE, "node"),
    "lengths": (
        lambda: node_model(
            "LSTM", [zeros(3, 2, 4)], {"hidden_size": 5}, 17,
            [zeros(1, 20, 4), zeros(1, 20, 5), None, np.array([9, 2], np.int32)],
        ),
        Kind.SHAPE,
        "node",
    ),
    "dtype": (lambda: node_model("Sqrt", [np.zeros(3, np.int32)]), Kind.DTYPE, "node"),
    "input": (lambda: node_model("Relu", [np.zeros(3, np.float64)]), Kind.DTYPE, "x0"),
    "memory": (
        made("c = ConstantOfShape(s); y = Add(c, x)", s=np.array([100000, 100000, 4]), x=[4]),
        Kind.MEMORY,
        "c",
    ),
    "kernel memory": (one("Add", (2**20, 2**11), (1, 2**11)), Kind.MEMORY, "one"),
    "file": (lambda: b"no model", Kind.FILE, "the model"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_problem_is_of_its_class(name: str) -> None:
    make, kind, where = CASES[name]
    target = "tiny" if name == "kernel memory" else "edge"
    with pytest.raises(ValueError if name != "kernel memory" else Exception, match="found") as caught:
        stepwell.compile(make(), target=target, host=False)  # type: ignore[arg-type]
    failure = errors.describe(caught.value)
    assert failure.exit_code == errors.PROBLEM
    for problem in failure.problems:
        assert isinstance(problem, Problem)
        assert problem.is_whole
    assert failure.problems[0].kind is kind  # type: ignore[attr-defined]
    assert failure.problems[0].where.startswith(where)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["shape", "bias", "kernel", "lengths"])
def test_a_broken_model_is_not_to_be_exported_without_the_node(name: str) -> None:
    with pytest.raises(ValueError, match="the file breaks a rule of ONNX"):
        stepwell.compile(CASES[name][0]())  # type: ignore[arg-type]


def test_memory_of_this_machine_is_no_fault_of_ours() -> None:
    for error in (
        MemoryError("no more"),
        OSError(12, "Cannot allocate memory"),
        HostMemoryError(2**33, OSError(12, "?")),
    ):
        (problem,) = errors.describe(error).problems
        assert isinstance(problem, Problem)
        assert problem.is_whole
        assert problem.kind is Kind.MEMORY


def test_a_device_that_the_machine_has_no_memory_for_is_told() -> None:
    text = """
import resource, sys
from stepwell.driver.errors import describe
from stepwell.runtime.memory import Memory
from stepwell.runtime.target import Target
resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
try:
    Memory(Target.load("tiny"), 2**40)
except MemoryError as error:
    print(describe(error).problems[0])
"""
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout
    assert found.startswith(
        "the emulated device: this machine has memory for one of its 1,099,511,627,776 bytes (found"
    )


def test_the_page_has_a_section_for_each_class() -> None:
    page = error_page.errors_page()
    assert all(f"\n## {kind.value}\n" in page for kind in Kind)
    assert page == (Path(error_page.ROOT) / "docs" / "errors.md").read_text(encoding="utf-8")
