"""What passes share beside the module: the weights, the target, and the notes they leave for the user."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

from xdsl.context import Context
from xdsl.ir import Operation

from ..runtime.problem import Kind, UserError
from .location import node_names, where

if TYPE_CHECKING:
    from ..dialects.weights import WeightStore
    from ..runtime.target import Target


class PassError(UserError, ValueError):
    """A pass cannot do what it was asked: `<rule> (found <what>)`, with the op where it stopped; or several such."""

    KIND: ClassVar[Kind] = Kind.IR

    def __init__(
        self,
        message: str,
        op: Operation | None = None,
        kind: Kind = Kind.IR,
        remedy: str = "",
        parts: Sequence[Self] = (),
    ) -> None:
        super().__init__(message)
        self.op, self.kind, self.remedy, self.parts = op, kind, remedy, tuple(parts) or (self,)

    @property
    def refused(self) -> dict[str, str]:
        """ONNX nodes that the target has no kernel for, and why."""
        located = [part for part in self.parts if part.op is not None and part.kind is not Kind.IR]
        return {name: str(part.args[0]) for part in located if part.op for name in node_names(part.op.location)}

    def __str__(self) -> str:
        return f"{where(self.op)}: {self.args[0]}" if self.op is not None else str(self.args[0])


@dataclass(frozen=True, slots=True)
class Note:
    """Something that almost matched: which rewrite, at which nodes, the condition that failed and the value found."""

    rewrite: str
    place: str
    condition: str
    found: str

    def __str__(self) -> str:
        return f"{self.place}: not {self.rewrite}: {self.condition} (found {self.found})"


@dataclass
class CompileContext(Context):
    """xDSL's context, the bytes of the weights, the target (None before the tile stage) and the notes of the passes."""

    target: "Target | None" = field(default=None, kw_only=True)
    notes: list[Note] = field(default_factory=list[Note], kw_only=True)

    @cached_property
    def weights(self) -> "WeightStore":
        """The bytes of the weights; made on first use, so that a tool that needs none does not import numpy."""
        from ..dialects.weights import WeightStore

        return WeightStore()

    def clone(self) -> "CompileContext":
        """A copy for speculative passes; the weights are shared, since the store only grows."""
        copy = CompileContext(target=self.target, notes=list(self.notes))
        copy.__dict__ |= super().clone().__dict__
        if "weights" in self.__dict__:
            copy.__dict__["weights"] = self.weights
        return copy

    def note(self, rewrite: str, op: Operation, condition: str, found: object) -> None:
        """Records a near miss once."""
        note = Note(rewrite, where(op), condition, str(found))
        if note not in self.notes:
            self.notes.append(note)

    def need_target(self) -> "Target":
        """The target. Raises `PassError` if none was given."""
        if self.target is None:
            raise PassError("this pass needs a target (found none); give one with --target, for example --target edge")
        return self.target


def compile_context(ctx: Context) -> CompileContext:
    """`ctx` with the fields of Stepwell's passes. Raises `PassError` for a plain xDSL context."""
    if not isinstance(ctx, CompileContext):
        raise PassError("Stepwell's passes need a CompileContext (found a plain xDSL Context); use stepwell-opt")
    return ctx
