"""What a compiled model consists of (docs/program.md §2–4), as data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Literal, get_args

import ml_dtypes
import numpy as np

from .cpu import HOST, HostType
from .encoding import Program, encode
from .numerics.dtype import DType
from .steps import Branch, Launch, Repeat, Step, every, launches_of, tensors_of

ALIGNMENT = 64
"""Tensors begin at multiples of this in global memory."""
MOST_ARGUMENTS = 27
"""r0 to r26; the number of cores is in r27."""
R_L1, R_UB, R_TOKEN = 28, 29, 30
"""Registers with the first byte of a kernel's part of L1 and of UB, and with its first token id, at a launch."""

Role = Literal["input", "output", "temp", "weight", "state"]
ROLES: tuple[Role, ...] = get_args(Role)
BORDERS: Mapping[str, tuple[str, ...]] = {
    "float16": ("f16", "f32"),
    "bfloat16": ("bf16", "f32"),
    "float32": ("f16", "bf16", "f32"),
    "float64": ("f16", "bf16", "f32"),
    "int8": ("i8", "i32"),
    "uint8": ("u8", "i32"),
    "int32": ("i32",),
    "int64": ("i32",),
    "int16": ("i32",),
    "uint16": ("i32",),
    "uint32": ("i32",),
    "uint64": ("i32",),
    "bool": ("b8",),
    **dict.fromkeys(("int4", "int2"), ("i8",)),
    **dict.fromkeys(("uint4", "uint2"), ("u8",)),
    **dict.fromkeys((f"float8_{form}" for form in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")), ("f32",)),
}
"""Element types of ONNX that a caller passes, as numpy or ml_dtypes call them, and the device's types that may stand
for each."""


@dataclass(frozen=True)
class Kernel:
    """A program and what it occupies: bytes of L1 and UB, token ids, the size of its location table."""

    name: str
    program: Program
    l1: int = 0
    ub: int = 0
    ids: int = 0
    slots: int = 1

    @cached_property
    def code(self) -> bytes:
        """The encoded program."""
        return encode(self.program)


@dataclass(frozen=True, slots=True)
class Tensor:
    """An array in global memory, `offset` bytes from the start of the model's allocation; or a value that only the
    host holds (`dtype` is "host"), which has no place there."""

    name: str
    dtype: str
    """As in docs/numerics.md: `f16`; or `host`."""
    shape: tuple[int, ...]
    """Of a value of the host: () unless all extents are known."""
    role: Role
    offset: int
    border: str = ""
    """Of an input or output: the element type of the ONNX model, as numpy calls it. Of a value of the host: its type,
    as in `cpu.py`."""

    @property
    def is_host(self) -> bool:
        """It has no place on the device."""
        return self.dtype == HOST

    @property
    def nbytes(self) -> int:
        """Bytes in global memory."""
        return 0 if self.is_host else prod(self.shape) * DType.parse(self.dtype).size

    @property
    def host_type(self) -> HostType:
        """Of a value of the host."""
        return HostType.parse(self.border)

    @property
    def border_dtype(self) -> "np.dtype[np.generic]":
        """The element type that callers see; `object` for texts, sequences and the like."""
        if self.is_host:
            return self.host_type.dtype or np.dtype(np.object_)
        return np.dtype(getattr(ml_dtypes, self.border, self.border))


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps for one binding of the model's shapes. Inputs and outputs: tensors by index, in the model's order.

    `linked`: launches that follow each other run as one stream (`runtime/linker.py`), not with a barrier before each.
    """

    binding: Mapping[str, int]
    arena_bytes: int
    steps: tuple[Step, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    linked: bool = False

    @property
    def launches(self) -> tuple[Launch, ...]:
        """What the device computes, in order."""
        return tuple(launches_of(self.steps))

    @property
    def decides(self) -> bool:
        """Whether values decide which steps run."""
        return any(isinstance(step, Branch | Repeat) for step in self.steps)

    def passed(self, tensors: Sequence[Tensor]) -> dict[int, int]:
        """Outputs that are inputs as they came, in their place and of their type: of each the input. What has no bytes
        has no place."""
        touched = self.touched
        outputs, inputs = ([n for n in ns if tensors[n].nbytes] for ns in (self.outputs, self.inputs))
        written = {tensors[n].offset for n in outputs if n in touched}
        places = {(tensors[n].offset, tensors[n].border): n for n in inputs if not tensors[n].is_host}
        alone = [n for n in outputs if n not in touched]
        keys = {n: (tensors[n].offset, tensors[n].border) for n in alone}
        return {n: places[key] for n, key in keys.items() if key in places and key[0] not in written}

    def unread(self, tensors: Sequence[Tensor]) -> set[int]:
        """Inputs that no step reads, nor an output of another type."""
        touched, passed = self.touched, self.passed(tensors)
        other = {tensors[n].offset for n in self.outputs if n not in passed and tensors[n].nbytes}
        return {n for n in self.inputs if n not in touched and tensors[n].offset not in other}

    @property
    def touched(self) -> set[int]:
        """Tensors that steps read or write."""
        return {index for step in every(self.steps) for index in tensors_of(step)}


@dataclass(frozen=True, slots=True)
class Versions:
    """What made an artifact."""

    format: int
    isa: int
    compiler: str


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is known of a model beside its code: notes of the compiler, and the metadata of the ONNX file."""

    model: str = ""
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    onnx: Mapping[str, str] = field(default_factory=dict[str, str])
