"""Builds graph modules in Python.

    b = GraphBuilder()
    x = b.input("x", [1, 3, 8, 8])
    y = b(ReluOp, b(ConvOp, x, b.constant(weight), pads=[1, 1, 1, 1]))
    b.output("y", y)
    module, weights = b.module(), b.weights

Shapes and element types are inferred; `element=` gives a result another element type than the default.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr, LocationAttr, ModuleOp, NameLoc, StringAttr, TensorType, UnknownLoc
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ..dialects.graph.constants import constant
from ..dialects.graph.host import HostValueType
from ..dialects.graph.op import GraphOp, f32
from ..dialects.graph.properties import Value, attributes
from ..dialects.weights import WeightStore, digest
from ..runtime.cpu import HostType

Array = NDArray[Any]


class Cache:
    """What a block has once: constants by their digest, transfers by what they move."""

    def __init__(self) -> None:
        self.constants: dict[str, SSAValue] = {}
        self.uploads: dict[SSAValue, SSAValue] = {}
        self.downloads: dict[tuple[SSAValue, str], SSAValue] = {}


class GraphBuilder:
    """One function `@main`, op by op; see the module."""

    def __init__(self, weights: WeightStore | None = None) -> None:
        self.weights = WeightStore() if weights is None else weights
        self.block = Block()
        self._location: LocationAttr = UnknownLoc()
        self.cache = Cache()
        self.functions: list[FuncOp] = []
        """Of the module, besides `@main`."""
        self.packed: dict[int, tuple[Array, Any]] = {}
        """What known arrays were made of, by `id`; see `packed.py`."""
        self._inputs: list[str] = []
        self._outputs: list[tuple[str, SSAValue]] = []
        self._borders: tuple[list[str], list[str]] = [], []

    def input(self, name: str, shape: Sequence[int], element: Attribute = f32, border: str = "") -> SSAValue:
        """The next argument of the function. `border`: the type that callers see, if `element` is not that."""
        self._inputs.append(name)
        self._borders[0].append(border)
        return self.block.insert_arg(TensorType(element, shape), len(self.block.args))

    def host_input(self, name: str, kind: HostType) -> SSAValue:
        """The next argument of the function, a value that only the CPU holds."""
        self._inputs.append(name)
        self._borders[0].append("")
        return self.block.insert_arg(HostValueType.of(kind), len(self.block.args))

    def output(self, name: str, value: SSAValue, border: str = "") -> None:
        """The next result of the function. `border`: the type that callers see, if the value's is not that."""
        self._outputs.append((name, value))
        self._borders[1].append(border)

    @property
    def outputs(self) -> list[SSAValue]:
        """The results so far."""
        return [value for _, value in self._outputs]

    def __call__(
        self,
        kind: type[GraphOp],
        *operands: SSAValue | None,
        element: Attribute | None = None,
        **properties: Value | None,
    ) -> SSAValue:
        """The result of a new op; operands and properties that are None are left out. Raises `InferError`."""
        given = [operand for operand in operands if operand is not None]
        return self.insert(kind.build_op(given, attributes(**properties), element)).results[0]

    def constant(self, array: Array) -> SSAValue:
        """A constant: in the text if small, else in the weight store. Equal arrays are one value."""
        handle = digest(array)
        known = self.cache.constants
        if handle not in known:
            known[handle] = self.insert(constant(array, self.weights)).results[0]
        return known[handle]

    def insert(self, op: Operation) -> Operation:
        """Puts an op at the end, at the current location."""
        op.location = self._location
        self.block.add_op(op)
        return op

    @contextmanager
    def at(self, name: str) -> Generator[None]:
        """The ops that are built inside carry the location `name`."""
        outer, self._location = self._location, NameLoc(StringAttr(name), UnknownLoc())
        try:
            yield
        finally:
            self._location = outer

    @contextmanager
    def inside(self, block: Block, cache: Cache) -> Generator[None]:
        """The ops that are built inside go to another block."""
        outer, self.block, self.cache = (self.block, self.cache), block, cache
        try:
            yield
        finally:
            self.block, self.cache = outer

    def module(self) -> ModuleOp:
        """The module. The names of inputs and outputs are attributes of the function."""
        values = [value for _, value in self._outputs]
        self.block.add_op(ReturnOp(*values))
        signature = ([argument.type for argument in self.block.args], [value.type for value in values])
        function = FuncOp("main", signature, Region(self.block))
        function.attributes["input_names"] = ArrayAttr([StringAttr(name) for name in self._inputs])
        function.attributes["output_names"] = ArrayAttr([StringAttr(name) for name, _ in self._outputs])
        for side, borders in zip(("input", "output"), self._borders, strict=True):
            if any(borders):
                function.attributes[f"{side}_borders"] = ArrayAttr([StringAttr(border) for border in borders])
        return ModuleOp([function, *self.functions])
