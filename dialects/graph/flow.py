"""Control flow by values: branches and loops over functions of the module, which the runtime sequences.

    %3 = graph.if %c, %a, %b {then = @then0, otherwise = @else0, split = 1} : (tensor<i1>, …) -> tensor<4xf32>
    %4 = graph.loop %m, %c, %x, %w {body = @body0, states = 1, counted = true, tested = true} : (…) -> tensor<4xf32>

The functions take what they use as arguments, and are compiled like `@main`.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

from xdsl.dialects.builtin import (
    BoolAttr,
    FlatSymbolRefAttrConstr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    SymbolRefAttr,
    TensorType,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import AnyAttr, IRDLOperation, irdl_op_definition, prop_def, traits_def, var_operand_def, var_result_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .host import HostBase, HostValueType
from .op import element, i1, i32, shape


@irdl_op_definition
class IfOp(HostBase):
    """Runs one of two functions. Operands: the condition, then what `then` takes (`split` of them), then the rest."""

    name = "graph.if"
    EXAMPLE: ClassVar[str] = (
        "%2 = graph.if %0, %1 {then = @f, otherwise = @g, split = 1} : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>"
    )

    inputs = var_operand_def(AnyAttr())
    outputs = var_result_def(AnyAttr())
    then = prop_def(FlatSymbolRefAttrConstr)
    otherwise = prop_def(FlatSymbolRefAttrConstr)
    split = prop_def(IntegerAttr)
    traits = traits_def(Pure())

    @staticmethod
    def of(
        condition: SSAValue,
        then: tuple[str, Sequence[SSAValue]],
        otherwise: tuple[str, Sequence[SSAValue]],
        results: Sequence[Attribute],
    ) -> "IfOp":
        """Each function with what it takes."""
        properties: dict[str, Attribute] = {
            "then": SymbolRefAttr(then[0]),
            "otherwise": SymbolRefAttr(otherwise[0]),
            "split": IntegerAttr(len(then[1]), i64),
        }
        operands = [condition, *then[1], *otherwise[1]]
        return IfOp.create(operands=operands, result_types=results, properties=properties)

    def verify_(self) -> None:
        if not 1 <= 1 + int(self.split.value.data) <= len(self.operands):
            raise VerifyException(f"split: counts operands (found {self.split.value.data} of {len(self.operands)})")
        _check_single(self.condition, i1, "the condition")
        for name, taken in self.branches:
            function = _function(self, name)
            _check_types(f"operands for @{name}", [value.type for value in taken], list(function.inputs))
            _check_types(f"results of @{name}", list(function.outputs), self.result_types)

    @property
    def condition(self) -> SSAValue:
        """One truth value."""
        return self.operands[0]

    @property
    def branches(self) -> tuple[tuple[str, Sequence[SSAValue]], tuple[str, Sequence[SSAValue]]]:
        """Each function with what it takes: for true, for false."""
        end = 1 + int(self.split.value.data)
        taken, left = self.operands[1:end], self.operands[end:]
        return (self.then.string_value(), taken), (self.otherwise.string_value(), left)


@irdl_op_definition
class LoopOp(HostBase):
    """Runs a function again and again. Operands: how often at most (if `counted`), whether at all (if `tested`),
    `states` first states, and what else the function takes.

    The function takes the number of the step, whether it goes on, the states and the rest, and gives whether it goes
    on, the next states, and rows. The results are the last states, then of each row a tensor of those of all steps;
    what behind them no step has written means nothing.
    """

    name = "graph.loop"
    EXAMPLE: ClassVar[str] = (
        "%2 = graph.loop %0, %1 {body = @f, states = 1, counted = true, tested = false} : "
        "(tensor<i32>, tensor<4xf32>) -> tensor<4xf32>"
    )

    inputs = var_operand_def(AnyAttr())
    outputs = var_result_def(AnyAttr())
    body = prop_def(FlatSymbolRefAttrConstr)
    states = prop_def(IntegerAttr)
    counted = prop_def(BoolAttr)
    tested = prop_def(BoolAttr)
    traits = traits_def(Pure())

    @staticmethod
    def of(
        body: str,
        count: SSAValue | None,
        condition: SSAValue | None,
        states: Sequence[SSAValue],
        rest: Sequence[SSAValue],
        grown: Sequence[Attribute] = (),
    ) -> "LoopOp":
        """The results have the types of the first states; `grown` are those of the others."""
        properties: dict[str, Attribute] = {
            "body": SymbolRefAttr(body),
            "states": IntegerAttr(len(states), i64),
            "counted": BoolAttr.from_bool(count is not None),
            "tested": BoolAttr.from_bool(condition is not None),
        }
        operands = [value for value in (count, condition, *states, *rest) if value is not None]
        return LoopOp.create(operands=operands, result_types=[*(v.type for v in states), *grown], properties=properties)

    def verify_(self) -> None:
        if not 0 <= self._start + int(self.states.value.data) <= len(self.operands):
            raise VerifyException(f"states: counts operands (found {self.states.value.data} of {len(self.operands)})")
        for value, kind, what in ((self.count, i32, "the count"), (self.condition, i1, "the condition")):
            if value is not None:
                _check_single(value, kind, what)
        name, states = self.body.string_value(), [value.type for value in self.first_states]
        function, rest = _function(self, name), [value.type for value in self.rest]
        number, going = TensorType(i32, []), TensorType(i1, [])
        _check_types("the states", self.result_types[: len(states)], states)
        _check_types(f"what @{name} takes", list(function.inputs), [number, going, *states, *rest])
        rows = [_row(kind) for kind in self.result_types[len(states) :]]
        _check_types(f"what @{name} gives", list(function.outputs), [going, *states, *rows])

    @property
    def count(self) -> SSAValue | None:
        """How often at most."""
        return self.operands[0] if self._flag(self.counted) else None

    @property
    def condition(self) -> SSAValue | None:
        """Whether at all."""
        return self.operands[self._flag(self.counted)] if self._flag(self.tested) else None

    @property
    def first_states(self) -> Sequence[SSAValue]:
        """Before the first step."""
        return self.operands[self._start : self._start + int(self.states.value.data)]

    @property
    def rest(self) -> Sequence[SSAValue]:
        """What every step takes."""
        return self.operands[self._start + int(self.states.value.data) :]

    @property
    def _start(self) -> int:
        return self._flag(self.counted) + self._flag(self.tested)

    @staticmethod
    def _flag(value: Any) -> int:
        return int(bool(value))


def declared_types(op: IfOp | LoopOp) -> list[Attribute]:
    """The types of the operands by the functions that take them. Raises `VerifyException`."""
    if isinstance(op, IfOp):
        return [op.condition.type, *(kind for name, _ in op.branches for kind in _function(op, name).inputs)]
    inputs = list(_function(op, op.body.string_value()).inputs)
    return [value.type for value in (op.count, op.condition) if value is not None] + inputs[2:]


def _function(op: IRDLOperation, name: str) -> FunctionType:
    module = op.get_toplevel_object()
    for other in module.ops if isinstance(module, ModuleOp) else ():
        if isinstance(other, FuncOp) and other.sym_name.data == name:
            return other.function_type
    raise VerifyException(f"its functions are in the module (found no @{name})")


def _row(kind: Attribute) -> Attribute:
    if not isinstance(kind, TensorType) or not kind.get_shape():
        raise VerifyException(f"results that grow have rows (found {kind})")
    return TensorType(kind.element_type, kind.get_shape()[1:])  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


def _check_single(value: SSAValue, kind: Attribute, what: str) -> None:
    if not isinstance(value.type, TensorType) or element(value) != kind or prod(shape(value)) != 1:
        raise VerifyException(f"{what} is one value of {kind} (found {value.type})")


def _check_types(what: str, found: Sequence[Attribute], expected: Sequence[Attribute]) -> None:
    """Of values of the CPU only one is known as well as the other."""

    def fits(a: Attribute, b: Attribute) -> bool:
        return a == b or (isinstance(a, HostValueType) and isinstance(b, HostValueType))

    if len(found) != len(expected) or not all(map(fits, found, expected)):
        texts = (", ".join(map(str, types)) or "none" for types in (expected, found))
        raise VerifyException("{}: are {} (found {})".format(what, *texts))
