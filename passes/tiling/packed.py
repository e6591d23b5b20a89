"""What a product with a packed weight needs beside the panels of its operands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir import SSAValue

from ...dialects.graph.op import GraphOp, shape
from ...dialects.graph.packed import PackedMatMulOp, pitch_of
from ...dialects.graph.properties import integer, text
from ...dialects.tile.builder import Affine, Box, Buffer, Index, KernelBuilder
from .body import Dim
from .space import Spot


def packed_arguments(op: GraphOp) -> dict[SSAValue, tuple[int, str]]:
    """Elements and type of the packed weight, whose tensor is bytes."""
    if not isinstance(op, PackedMatMulOp):
        return {}
    return {op.w: (shape(op.w)[0] * pitch_of(op), text(op.properties, "kind"))}


@dataclass
class Scales:
    """What stands beside the columns of a packed weight, in L1: scales and zero points of all blocks of a column."""

    k: KernelBuilder
    sources: list[Buffer]
    blocks: int
    size: int
    """Elements of a block."""
    boxes: list[Box] = field(default_factory=list[Box])

    @staticmethod
    def of(k: KernelBuilder, op: GraphOp, buffers: Mapping[SSAValue, Buffer]) -> "Scales | None":
        """Those of an op, if its weight is packed."""
        if not isinstance(op, PackedMatMulOp):
            return None
        values = [op.scale, *((op.zero,) if op.zero is not None else ())]
        return Scales(k, [buffers[v] for v in values], shape(op.scale)[1], integer(op.properties, "block"))

    def load(self, columns: Dim, spot: Spot) -> None:
        """All blocks of the columns, which are one run."""
        run = scaled(columns.extent, self.blocks)
        self.boxes = []
        for source in self.sources:
            buffer = self.k.alloc((columns.tile * self.blocks,), source.kind.dtype, "l1", spot.slots)
            place = source.box(columns.start * self.blocks, 0, 1)
            self.k.load(buffer.box(0, 0, 1), place, (spot.reached(1), run))
            self.boxes.append(buffer.box(0, self.blocks, 1))

    def feed(self, dst: Box, src: Box, extents: Sequence[Index], position: Affine) -> None:
        """Feeds k from `position` on."""
        scale, zero = self.boxes[0], self.boxes[1] if len(self.boxes) > 1 else None
        self.k.feed_q(dst, src, scale, zero, extents, position, self.size)


def scaled(extent: Index, factor: int) -> Index:
    """Times a number, also what is clamped."""
    if isinstance(extent, int):
        return extent * factor
    limit = None if extent.limit is None else extent.limit * factor
    return replace(replace(extent, limit=None) * factor, limit=limit)
