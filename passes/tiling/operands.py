"""The product that a `graph.matmul` is, its operands where they stand: views of them are strides of a load."""

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from ...dialects.graph.op import GraphOp, dtype_name, shape
from ...dialects.graph.packed import PackedMatMulOp, pitch_of
from ...dialects.graph.properties import flag, text
from ...dialects.tile import SIZES
from .access import Access, stored
from .body import NotTileable, Region
from .product import Matrix, Packing, Product


def product_of(region: Region) -> Product:
    """The product at the head of a region. Raises `NotTileable`."""
    op = region.ops[0]
    left, right = (access_of(value, region) for value in op.operands[:2])
    result = stored(region.outward) if region.outward else Access.whole(shape(op.results[0]))
    return product(op, left, right, result)


def access_of(value: SSAValue, region: Region) -> Access | None:
    """Where a value stands in the argument that it is a view of."""
    base, chain = region.chain(value)
    return Access.of(shape(base), chain)


def product(op: GraphOp, left: Access | None, right: Access | None, result: Access | None) -> Product:
    """Sizes and strides of a `graph.matmul`; a right operand without batch axes takes all rows of the left one as one
    matrix. Raises `NotTileable` where strides cannot say it."""
    if isinstance(op, PackedMatMulOp):
        return packed_product(op, left, result)
    a, b = shape(op.operands[0]), shape(op.operands[1])
    transposed = flag(op.properties, "trans_b")
    if len(a) < 2 or len(b) < 2:
        raise NotTileable(f"operands of a product are matrices (found rank {len(a)} and {len(b)})")
    if left is None or right is None or result is None:
        raise NotTileable("operands of a product stand at strides (found a view that no strides describe)")
    n, k = (b[-2], b[-1]) if transposed else (b[-1], b[-2])
    dtype = dtype_name(op.operands[0])
    if dtype != dtype_name(op.operands[1]):
        raise NotTileable(f"operands of a product have one type (found {dtype} and {dtype_name(op.operands[1])})")
    rank = len(a)
    batch = range(rank - 2)
    shared = math.prod(b[:-2]) == 1
    if shared:
        rows, batches, m = range(rank - 1), range(0), math.prod(a[:-1])
    elif a[:-2] == b[:-2]:
        rows, batches, m = range(rank - 2, rank - 1), batch, a[-2]
    else:
        raise NotTileable(f"batch axes of a product agree (found {a[:-2]} and {b[:-2]})")
    columns = (len(b) - 2, len(b) - 1) if transposed else (len(b) - 1, len(b) - 2)
    return Product(
        math.prod(a[i] for i in batches),
        m,
        n,
        k,
        dtype,
        _matrix(left, batches, rows, (rank - 1,)),
        _matrix(right, range(0) if shared else range(len(b) - 2), columns[:1], columns[1:]),
        _matrix(result, batches, rows, (rank - 1,)),
    )


def packed_product(op: PackedMatMulOp, left: Access | None, result: Access | None) -> Product:
    """As `product`; the columns of the packed weight stand one after the other, each from a byte on."""
    if left is None or result is None:
        raise NotTileable("operands of a product stand at strides (found a view that no strides describe)")
    *rows, k = shape(op.a)
    sizes = [SIZES[dtype_name(v)] for v in (op.scale, *((op.zero,) if op.zero is not None else ()))]
    packing = Packing(int(text(op.properties, "kind")[1]), tuple(size * shape(op.scale)[1] for size in sizes))
    a, c = (_matrix(access, range(0), range(len(rows)), (len(rows),)) for access in (left, result))
    w = Matrix(0, 0, pitch_of(op), 1)
    return Product(1, math.prod(rows), shape(op.w)[0], k, dtype_name(op.a), a, w, c, packing)


def _matrix(access: Access, batches: Sequence[int], rows: Sequence[int], columns: Sequence[int]) -> Matrix:
    strides = [access.merged(axes) for axes in (batches, rows, columns)]
    if None in strides:
        raise NotTileable(f"axes of a product walk as one (found {access.shape} at strides {access.strides})")
    batch, row, column = (stride or 0 for stride in strides)
    sizes = [math.prod(access.shape[i] for i in axes) for axes in (rows, columns)]
    # Of one element, any stride will do.
    row, column = (row if sizes[0] > 1 else sizes[1] * column or 1, column if sizes[1] > 1 else 1)
    if 1 not in (row, column):
        raise NotTileable(f"rows or columns of an operand are contiguous (found strides {row} and {column})")
    return Matrix(access.offset, batch, row, column)
