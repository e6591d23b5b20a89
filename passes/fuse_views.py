"""Views that a product absorbs: its panels load with strides, its result is stored with strides."""

from collections.abc import Iterator

from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.rewriter import Rewriter as IRRewriter

from ..dialects.graph.contract import MatMulOp
from ..dialects.graph.op import GraphOp, shape
from ..dialects.graph.packed import PackedMatMulOp
from ..dialects.graph.views import ReshapeOp
from .tiling.access import Access, stored
from .tiling.body import NotTileable
from .tiling.operands import product
from .values import users

Absorbed = dict[GraphOp, list[GraphOp]]
"""By product: the views that only it uses, in order."""


def absorb_operands(block: Block) -> Absorbed:
    """Gives each product its own copy of the views that make its operands, as far as strides can say them. What no
    one else used is dead then."""
    absorbed: Absorbed = {}
    for op in [op for op in block.ops if isinstance(op, MatMulOp | PackedMatMulOp)]:
        places = [Access.whole(shape(v)) for v in op.operands[:2]]
        copies: list[GraphOp] = []
        for side in range(2):
            for chain in _chains(op.operands[side]):
                access = Access.of(shape(chain[0].operands[0]), chain)
                if access is not None and _is_product(op, [*places[:side], access, *places[side + 1 :]]):
                    places[side] = access
                    copies += _copy(chain, op, side)
                    break
        if copies:
            absorbed[op] = copies
    return absorbed


def _chains(value: SSAValue) -> Iterator[list[GraphOp]]:
    """The views that lead to a value, in order, the longest first; the first of them is more than a reshape."""
    chain: list[GraphOp] = []
    while isinstance(value.owner, GraphOp) and value.owner.structure() == "view" and len(value.owner.operands) == 1:
        chain.insert(0, value.owner)
        value = value.owner.operands[0]
    for first in range(len(chain)):
        if not isinstance(chain[first], ReshapeOp):
            yield chain[first:]


def _is_product(op: GraphOp, places: list[Access], result: Access | None = None) -> bool:
    left, right = places
    try:
        product(op, left, right, result or Access.whole(shape(op.results[0])))
    except NotTileable:
        return False
    return True


def _copy(chain: list[GraphOp], op: GraphOp, side: int) -> list[GraphOp]:
    copies: list[GraphOp] = []
    for view in chain:
        copy = view.clone()
        assert isinstance(copy, GraphOp)
        if copies:
            copy.operands[0] = copies[-1].results[0]
        IRRewriter.insert_op(copy, InsertPoint.before(op))
        copies.append(copy)
    op.operands[side] = copies[-1].results[0]
    return copies


def outward_views(op: GraphOp, last: GraphOp) -> list[GraphOp]:
    """The views after the last op of the kernel of a product with which its result can be stored."""
    if not isinstance(op, MatMulOp | PackedMatMulOp):
        return []
    chain: list[GraphOp] = []
    while len(found := users(last.results[0])) == 1:
        (user,) = found
        if not isinstance(user, GraphOp) or user.structure() != "view" or len(user.operands) != 1:
            break
        chain.append(user)
        last = user
    while chain:
        if not isinstance(chain[-1], ReshapeOp):
            access = stored(chain)
            places = [Access.whole(shape(v)) for v in op.operands[:2]]
            if access is not None and access.strides[-1] == 1 and _is_product(op, places, access):
                return chain
        chain.pop()
    return []
