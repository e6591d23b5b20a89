"""The CPU beside the device: values that only it holds, and parts of a model that onnxruntime computes there.

A host value has a type in ONNX's words with its extents, `?` where they are known at run time only:
`tensor(int64)[2,?]`; without extents if even their number is not known: `tensor(float)`, `seq(tensor(string))`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from .target import Target

HOST = "host"
"""The element type of a tensor that has no place on the device."""

NUMPY: Mapping[str, "np.dtype[Any]"] = {
    name: np.dtype(kind)
    for name, kind in {
        "float": np.float32, "float16": np.float16, "double": np.float64, "bool": np.bool_, "string": np.object_,
        "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
        "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
    }.items()
}  # fmt: skip
"""numpy's type of each element type by ONNX's name, as far as arrays of it can be handed to onnxruntime."""
NAMES = {kind: name for name, kind in NUMPY.items()}
"""ONNX's name of each of numpy's types."""
_TEXT_BYTES = 16
"""Taken for a string when time is modelled."""


class HostError(RuntimeError):
    """What onnxruntime says of a part that it refuses, or cannot run."""

    def __init__(self, text: str, node: str = "", operator: str = "") -> None:
        super().__init__(text)
        self.node, self.operator = node, operator
        """Of the node that failed, as far as onnxruntime tells."""


@dataclass(frozen=True, slots=True)
class HostType:
    """A type as in the text: `kind` is `tensor(int64)`; `shape` has -1 for an unknown extent, None: any number."""

    kind: str
    shape: tuple[int, ...] | None = None

    @staticmethod
    def parse(text: str) -> "HostType":
        """The inverse of `str`. Raises `ValueError`."""
        kind, bracket, rest = text.partition("[")
        if not kind.endswith(")") or (bracket and not rest.endswith("]")):
            raise ValueError(f"a host type reads tensor(int64)[2,?] (found {text!r})")
        extents = [part for part in rest[:-1].split(",") if part]
        return HostType(kind, tuple(-1 if e == "?" else int(e) for e in extents) if bracket else None)

    @staticmethod
    def of(dtype: "np.dtype[Any]", shape: Sequence[int]) -> "HostType":
        """The type of an array. Raises `HostError`."""
        if dtype not in NAMES and dtype.kind not in "OUS":
            raise HostError(f"the CPU takes no arrays of {dtype.name}")
        return HostType(f"tensor({NAMES.get(dtype, 'string')})", tuple(shape))

    def __str__(self) -> str:
        if self.shape is None:
            return self.kind
        return f"{self.kind}[{','.join('?' if size < 0 else str(size) for size in self.shape)}]"

    @property
    def dtype(self) -> "np.dtype[Any] | None":
        """numpy's type of a tensor's elements; None for a sequence and the like."""
        return NUMPY.get(self.kind[len("tensor(") : -1]) if self.kind.startswith("tensor(") else None

    @property
    def is_known(self) -> bool:
        """Whether onnxruntime takes and gives such values."""
        inner = self.kind.rpartition("(")[2].partition(")")[0]
        return all(name in NUMPY for name in inner.split(","))

    @property
    def is_static(self) -> bool:
        """A tensor of known extents."""
        return self.dtype is not None and self.shape is not None and min(self.shape, default=0) >= 0

    def misfit(self, value: Any) -> str | None:
        """What is found in place of a value of this type; None if it fits."""
        dtype = self.dtype
        if dtype is None:
            return None  # onnxruntime checks sequences and maps itself
        if not isinstance(value, np.ndarray):
            return type(value).__name__
        fits = value.dtype == dtype or (dtype == np.object_ and value.dtype.kind in "US")
        sizes = self.shape is None or (
            len(self.shape) == value.ndim and all(e in (-1, s) for e, s in zip(self.shape, value.shape, strict=True))
        )
        return None if fits and sizes else f"{value.dtype}{list(value.shape)}"

    def nbytes(self) -> int:
        """Bytes of a value; an unknown extent counts as 1."""
        dtype = self.dtype or np.dtype(np.object_)
        size = _TEXT_BYTES if dtype == np.object_ else dtype.itemsize
        return prod(max(extent, 1) for extent in self.shape or ()) * size


@dataclass(frozen=True, slots=True)
class HostNode:
    """An ONNX node that runs on the CPU, why the device does not run it, and bytes of its operands and results."""

    name: str
    operator: str
    reason: str
    nbytes: int


@dataclass(frozen=True)
class HostPart:
    """An ONNX model whose nodes run on the CPU, in one go; its inputs and outputs go by position."""

    model: bytes
    nodes: tuple[HostNode, ...]

    def cycles(self, target: Target) -> float:
        """Time that is taken for the part, in cycles of the device: a charge for each node, and one for its bytes."""
        return sum(target.host_node + node.nbytes / target.host_rate for node in self.nodes)

    @cached_property
    def compiled(self) -> "Compiled":
        """The part, ready to run. Raises `HostError`."""
        return compiled(self.model)

    def run(self, values: Sequence[Any]) -> list[Any]:
        """The outputs for inputs in order. Raises `HostError`: `<node>: <rule> (found <what>)`."""
        try:
            return self.compiled.run(values)
        except HostError as error:
            rule = f"{self._failed(error)}: onnxruntime must run this part on the CPU"
            raise HostError(f"{rule} (found {error})", error.node, error.operator) from None

    def _failed(self, error: HostError) -> str:
        """The node that failed; the first few of the part if that is not known."""
        like = [node.name for node in self.nodes if node.operator == error.operator]
        if error.node or len(like) == 1:
            return error.node or like[0]
        return ", ".join(node.name for node in self.nodes[:4]) + (", …" if len(self.nodes) > 4 else "")


@dataclass(frozen=True, slots=True)
class Compiled:
    """An ONNX model in a session of onnxruntime."""

    session: Any

    def run(self, values: Sequence[Any]) -> list[Any]:
        """The outputs for inputs in order. Raises `HostError`."""
        inputs = [value.name for value in self.session.get_inputs()]
        return _attempt(lambda: self.session.run(None, dict(zip(inputs, values, strict=True))))


def compiled(model: bytes) -> Compiled:
    """An ONNX model on one thread of the CPU. Raises `HostError` for one that onnxruntime refuses."""
    import onnxruntime

    options: Any = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # What a node gives must not hang on its neighbours.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return Compiled(_attempt(lambda: onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])))


def _attempt(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Exception as error:  # noqa: BLE001 - onnxruntime's errors have no class in common
        raise explained(error) from None


_MOST_TEXT = 300
_STATUS = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ")
_RUNNING = re.compile(r"Non-zero status code returned while running (\S+) node\. Name:'(.*?)' Status Message: ")
_IN_MODEL = re.compile(r"^Node \((.*?)\) Op \((\w+)\) (?:\[\w+\] )?")
_SOURCE = re.compile(
    r"\S*\.(?:h|hpp|cc|cpp):\d+ "  # the file and the line, then the function by its name or with its signature
    r"(?:[^():]*::.*?\((?:[^()]|\([^()]*\))*\)(?: const)?(?: \[with [^\]]*\])? |\w+ )?"
    r"(?:.*? was false\. (?=\S))?"
)


def explained(error: Exception) -> HostError:
    """An error of onnxruntime: the innermost node that it names, and its text without codes and places in sources."""
    text = " ".join(str(error).split()) or type(error).__name__
    text, node, operator = _STATUS.sub("", text), "", ""
    if running := list(_RUNNING.finditer(text)):
        (operator, node), text = running[-1].groups(), text[running[-1].end() :]
    elif match := _IN_MODEL.match(text):
        (node, operator), text = match.groups(), text[match.end() :]
    text = _SOURCE.sub("", text, count=1)[:_MOST_TEXT] or type(error).__name__
    return HostError(f"{operator}: {text}" if operator and not node else text, node, operator)
