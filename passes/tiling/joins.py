"""Joins of rows that lie next to each other in the result: whole rows are put together in UB, and stored as one run."""

import math

from ...dialects import tile
from ...dialects.graph.op import Join, dtype_name, shape
from ...dialects.tile.builder import Affine, KernelBuilder
from ...runtime.numerics.dtype import DType
from ...runtime.target import Target
from .body import Dim, Region
from .space import balanced, flat_arguments, open_tiles


def is_joinable(region: Region, view: Join, target: Target) -> bool:
    """There are many rows, and a pair of them with its parts takes little of UB."""
    rows, length = _rows(region, view)
    return rows > 1 and 4 * length * _esize(region) <= target.ub_bytes // 2


def _rows(region: Region, view: Join) -> tuple[int, int]:
    """Rows of the result, and elements of each: the joined axis and those within it."""
    size = shape(region.ops[0].results[0])
    return math.prod(size[: view.axis]), math.prod(size[view.axis :])


def _esize(region: Region) -> int:
    return DType.parse(dtype_name(region.ops[0].results[0])).size


def tile_join(name: str, region: Region, view: Join, limit: int, cores: int, burst: int) -> tile.KernelOp:
    """Tiles of rows. A part whose rows are shorter than a few bursts comes as one run and is spread in UB."""
    k = KernelBuilder(name)
    arguments, (output,) = flat_arguments(k, region)
    sources = dict(zip(region.arguments, arguments, strict=True))
    (op,) = region.ops
    rows, length = _rows(region, view)
    some = balanced(rows, max(1, min(limit // length, -(-rows // (2 * cores)))))
    dims = [Dim(rows, some, Affine(), rows)]
    with open_tiles(k, dims, [0] if some < rows else [], cores):
        extent, start = dims[0].extent, dims[0].start
        joined = k.alloc((some * length,), output.kind.dtype, "ub", 2)
        place = 0
        for operand in op.operands:
            width = math.prod(shape(operand)[view.axis :])
            source = sources[operand].box(start * width, width, 1)
            if width * output.kind.esize >= burst:
                k.load(joined.box(place, length, 1), source, (extent, width))
            else:
                staged = k.alloc((some * width,), output.kind.dtype, "ub", 2)
                run = width * some if isinstance(extent, int) else k.clamp((rows - start) * width, some * width)
                k.load(staged.box(0, 1), sources[operand].box(start * width, 1), (run,))
                # Columns are few: the longer axis is the inner one, along which a vector walks.
                k.map("copy", joined.box(place, 1, length), staged.box(0, 1, width), extents=(width, extent))
            place += width
        run = length * some if isinstance(extent, int) else k.clamp((rows - start) * length, some * length)
        k.store(output.box(start * length, 1), joined.box(0, 1), (run,))
    return k.finish()
