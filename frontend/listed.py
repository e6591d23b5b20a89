"""Sequences as values of the importer."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from xdsl.ir import SSAValue

Held = np.ndarray[Any, Any] | SSAValue


class Listed(np.ndarray[Any, Any]):
    """A sequence as a value of the importer: it is known, as arrays are, and holds values that may be computed."""

    @staticmethod
    def of(values: Sequence[Held], kind: int = 0) -> "Listed":
        """Of values in order; `kind`: ONNX's type of the elements, for an empty one."""
        holder = np.empty((), object)
        holder[()] = (tuple(values), kind)
        return holder.view(Listed)

    @property
    def values(self) -> tuple[Held, ...]:
        """What it holds, in order."""
        return self.item()[0]

    @property
    def kind(self) -> int:
        """ONNX's type of the elements of one that is empty."""
        return self.item()[1] or onnx.TensorProto.FLOAT
