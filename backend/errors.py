"""The backend's errors."""

from typing import ClassVar

from xdsl.dialects.builtin import FileLineColLoc, FusedLoc, NameLoc
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import DiagnosticException

from ..runtime.problem import Kind, UserError


class BackendError(UserError, DiagnosticException):
    """A kernel cannot become a program: `<op>: <rule> (found <what>)`, on one line."""

    KIND: ClassVar[Kind] = Kind.IR


class MemoryExceeded(BackendError):
    """The buffers of a kernel do not fit a memory of the target."""

    KIND: ClassVar[Kind] = Kind.MEMORY


def place(op: Operation) -> str:
    """An op for a message: `tile.load of Conv_3`, or `tile.load` where no ONNX node is known."""
    names = [name for name in _names(op.location) if name]
    return f"{op.name} of {', '.join(names[:3])}" if names else op.name


def buffer_name(value: SSAValue, position: int | None = None) -> str:
    """A buffer for a message, by its name in the text, else by its place among the kernel's buffers."""
    if value.name_hint:
        return f"%{value.name_hint}"
    return "a buffer" if position is None else f"buffer {position}"


def _names(location: Attribute) -> list[str]:
    if isinstance(location, FusedLoc):
        return [name for part in location.locations for name in _names(part)]  # pyright: ignore[reportGeneralTypeIssues]
    if isinstance(location, FileLineColLoc):
        return [f"{location.filename.data}:{location.line.data}:{location.column.data}"]
    return [location.desc.data] if isinstance(location, NameLoc) else []
