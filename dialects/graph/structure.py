"""Fused kernels: where they stand inside a function, and how a function launches one that stands on its own."""

from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import FlatSymbolRefAttrConstr, SymbolRefAttr, TensorType
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from .syntax import parse_signature, print_dictionary, print_signature


@irdl_op_definition
class KernelOp(IRDLOperation):
    """Ops that one kernel of the machine computes. The body sees its arguments alone; its yield gives the results."""

    name = "graph.kernel"
    EXAMPLE: ClassVar[str] = """%2 = graph.kernel(%a = %0, %b = %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d = graph.relu %c : (tensor<4xf32>) -> tensor<4xf32>
  graph.yield %d : tensor<4xf32>
}"""

    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    body = region_def("single_block")
    traits = traits_def(Pure(), IsolatedFromAbove())

    @staticmethod
    def of(inputs: Sequence[SSAValue], result_types: Sequence[Attribute], region: Region | None = None) -> "KernelOp":
        """A kernel with an empty block of fitting arguments, unless a region is given."""
        region = region or Region(Block(arg_types=[value.type for value in inputs]))
        return KernelOp.create(operands=inputs, result_types=result_types, regions=[region])

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def results_inside(self) -> tuple[SSAValue, ...]:
        """What the body yields."""
        last = self.block.last_op
        return tuple(last.operands) if isinstance(last, YieldOp) else ()

    def verify_(self) -> None:
        outside, inside = list(self.operand_types), list(self.block.arg_types)
        if outside != inside:
            raise VerifyException(f"arguments have the operands' types (found {_types(inside)}; {_types(outside)})")
        if not isinstance(self.block.last_op, YieldOp):
            raise VerifyException("the body ends with graph.yield")
        given = [value.type for value in self.results_inside]
        if given != list(self.result_types):
            raise VerifyException(
                f"results have the yielded types (found {_types(self.result_types)}; {_types(given)})"
            )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_binding(parser))
        attributes = parser.parse_optional_attr_dict()
        inputs, outputs, position = parse_signature(parser)
        operands = parser.resolve_operands([outer for _, outer in pairs], inputs, position)
        arguments = [inner.resolve(type_) for (inner, _), type_ in zip(pairs, inputs, strict=True)]
        region = parser.parse_region(arguments)
        return cls.create(operands=operands, result_types=outputs, attributes=attributes, regions=[region])

    def print(self, printer: Printer) -> None:
        printer.print_string("(")
        for position, (inner, outer) in enumerate(zip(self.block.args, self.operands, strict=True)):
            printer.print_string(", " if position else "")
            printer.print_ssa_value(inner)
            printer.print_string(" = ")
            printer.print_ssa_value(outer)
        printer.print_string(")")
        print_dictionary(self.attributes, printer)
        printer.print_string(" : ")
        print_signature(self, printer)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


def _parse_binding(parser: Parser) -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
    """`%inside = %outside`."""
    inner = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    return inner, parser.parse_unresolved_operand()


def _types(kinds: Sequence[Attribute]) -> str:
    return ", ".join(map(str, kinds)) or "none"


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The results of the enclosing kernel."""

    name = "graph.yield"
    values = var_operand_def(TensorType)
    traits = traits_def(IsTerminator(), HasParent(KernelOp), Pure())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    @staticmethod
    def of(*values: SSAValue) -> "YieldOp":
        return YieldOp.create(operands=values)


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Runs the kernel of this name on the operands."""

    name = "graph.launch"
    EXAMPLE: ClassVar[str] = "%1 = graph.launch @kernel(%0) : (tensor<4xf32>) -> tensor<4xf32>"

    kernel = prop_def(FlatSymbolRefAttrConstr)
    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    traits = traits_def(Pure())

    @staticmethod
    def of(kernel: str, inputs: Sequence[SSAValue], result_types: Sequence[Attribute]) -> "LaunchOp":
        return LaunchOp.create(operands=inputs, result_types=result_types, properties={"kernel": SymbolRefAttr(kernel)})

    @property
    def callee(self) -> str:
        """The kernel's name."""
        return self.kernel.string_value()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        kernel = parser.parse_symbol_name()
        names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        inputs, outputs, position = parse_signature(parser)
        operands = parser.resolve_operands(names, inputs, position)
        return cls.create(
            operands=operands, result_types=outputs, attributes=attributes, properties={"kernel": SymbolRefAttr(kernel)}
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.callee)
        with printer.in_parens():
            printer.print_list(self.operands, printer.print_ssa_value)
        print_dictionary(self.attributes, printer)
        printer.print_string(" : ")
        print_signature(self, printer)
