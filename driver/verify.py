"""Checks a module: every op's own rules, and that each value is defined before its use, which xDSL does not check."""

from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import VerifyException

from ..passes.location import where
from ..runtime.problem import Kind, Problem, UserError


class IRError(UserError, ValueError):
    """The IR breaks a rule; `op` is where, `rule` what."""

    KIND: ClassVar[Kind] = Kind.IR

    def __init__(self, op: Operation, rule: str) -> None:
        super().__init__(rule)
        self.op = op
        self.rule = rule

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The one."""
        place = where(self.op)
        return (Problem.of_ir(f"{place}: {self.rule}", place, place, found=signature(self.op)),)


def signature(op: Operation) -> str:
    """An op in few words: its name and types."""
    operands, results = (", ".join(str(value.type) for value in values) for values in (op.operands, op.results))
    return f"{op.name} : ({operands}) -> ({results})"


def verify(module: ModuleOp) -> None:
    """Raises `IRError` for the first op that breaks a rule. Costs about 20 µs an op."""
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except (VerifyException, ValueError) as error:
            raise IRError(op, _first_line(error)) from None
    for region in module.regions:
        _check_dominance(region, set())


def _first_line(error: Exception) -> str:
    """xDSL puts the whole module into the notes of a verifier error; the rule is its first line."""
    text = str(error).strip()
    return text.splitlines()[0].removeprefix("Operation does not verify: ") if text else type(error).__name__


def _check_dominance(region: Region, outer: set[SSAValue]) -> None:
    """Every operand in `region` is defined above it, or in a region around it that it can see.

    Blocks are taken in order, which is dominance for the structured control flow of our dialects.
    """
    known = set(outer)
    for block in region.blocks:
        known.update(block.args)
        for op in block.ops:
            for index, operand in enumerate(op.operands):
                if operand not in known:
                    raise IRError(op, f"operand {index} is defined before it is used (found {_origin(operand)})")
            for inner in op.regions:
                _check_dominance(inner, set() if op.has_trait(IsolatedFromAbove) else known)
            known.update(op.results)


def _origin(value: SSAValue) -> str:
    if isinstance(value, BlockArgument):
        return "an argument of another block"
    owner = value.owner
    assert not isinstance(owner, Block)
    return (
        f"the result of a later {owner.name}" if owner.parent is not None else f"the result of an erased {owner.name}"
    )
