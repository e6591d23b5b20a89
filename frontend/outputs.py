"""The results of a model: what stands before the return of `@main`."""

from collections.abc import Mapping

import numpy as np
import onnx
from xdsl.ir import Block, SSAValue

from ..dialects.graph.constants import ELEMENTS as CONSTANTS
from ..dialects.graph.constants import NUMPY, constant
from ..dialects.graph.elementwise import CastOp
from ..dialects.graph.host import is_host
from ..dialects.graph.op import BORDER, element, i32
from ..runtime.border import too_wide
from ..runtime.cpu import HostError
from ..runtime.problem import Kind, Problem
from .builder import GraphBuilder
from .float8 import INNER, holder
from .hosting import Hosting, element_types
from .inputs import ELEMENTS
from .listed import Listed
from .node import Value

RULE, CONVERT = "outputs hold floats of at most 32 bits, integers or truth values", "convert the model"


class Outputs:
    """Adds the results one by one. `tags`: the types of the model that the device holds as others."""

    def __init__(
        self,
        model: onnx.ModelProto,
        builder: GraphBuilder,
        hosting: Hosting | None,
        tags: Mapping[SSAValue, "np.dtype[np.generic]"],
    ) -> None:
        self._model = model
        self._builder = builder
        self._hosting = hosting
        self._tags = tags
        self._types: Mapping[str, int] | None = None

    def add(self, info: onnx.ValueInfoProto, value: Value) -> Problem | None:
        """A result, unless it is of a type that none is of; integers of the border get theirs here."""
        kind = self._tags.get(value) if isinstance(value, SSAValue) else value.dtype
        if kind is not None and kind in INNER:
            held = value if isinstance(value, SSAValue) else constant(value.astype(holder(kind)), self._builder.weights)
            with self._builder.at(info.name):
                value = held if isinstance(held, SSAValue) else self._builder.insert(held).results[0]
            self._builder.output(info.name, value, kind.name)
            return None
        with self._builder.at(info.name):
            try:
                held = self._held(info.name, value)
            except HostError as error:
                return _of_no_type(info.name, error if isinstance(value, SSAValue) else value.dtype)
            if held is None:
                if not isinstance(value, SSAValue) and value.size and value.dtype not in CONSTANTS:
                    return _of_no_type(info.name, value.dtype)
                held = self._at_border(value, self._declared(info, value))
            self._builder.output(info.name, held)
        return None

    def _declared(self, info: onnx.ValueInfoProto, value: Value) -> int:
        """The element type of an output, inferred if the file does not state it; 0 if nothing tells."""
        if info.type.tensor_type.elem_type:
            return info.type.tensor_type.elem_type
        if self._types is None:
            self._types = element_types(self._model)
        kind = self._tags.get(value) if isinstance(value, SSAValue) else None
        return self._types.get(info.name, 0) or (onnx.helper.np_dtype_to_tensor_dtype(kind) if kind else 0)

    def _held(self, name: str, value: Value) -> SSAValue | None:
        """An output that only the CPU holds; each has a value of its own."""
        if self._hosting is None:
            return None
        if isinstance(value, Listed):
            return self._hosting.sequence(value, name)
        if isinstance(value, SSAValue):
            if not is_host(value):
                return None
            used = isinstance(value.owner, Block) or any(value is other for other in self._builder.outputs)
            return self._hosting.copy(value, name, "the model returns it") if used else value
        if value.dtype in CONSTANTS and too_wide(value, name) is None:
            return None
        return self._hosting.constant(value, name, "the device has no such constant")

    def _at_border(self, value: Value, declared: int) -> SSAValue:
        if not isinstance(value, SSAValue):
            narrow = value.dtype == np.int32 and ELEMENTS.get(declared) in BORDER
            if (value.size == 0 and declared in ELEMENTS) or narrow:
                value = value.astype(NUMPY[ELEMENTS[declared]])
            return self._builder.insert(constant(value, self._builder.weights)).results[0]
        if ELEMENTS.get(declared) in BORDER and element(value) == i32:
            return self._builder(CastOp, value, element=ELEMENTS[declared])
        return value


def _of_no_type(name: str, found: object) -> Problem:
    return Problem(f"{name}: {RULE} (found {found}); {CONVERT}", Kind.DTYPE)
