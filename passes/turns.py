"""The CPU and the device take turns: which op runs in which, and an order of a block that has few of them."""

from collections.abc import Mapping

from xdsl.dialects.func import ReturnOp
from xdsl.ir import Block, Operation

from ..dialects.graph.host import DownloadOp, HostOp, UploadOp


def first_turns(block: Block) -> dict[Operation, int]:
    """The first turn in which each op can run; the device's turn n comes before the CPU's."""
    first: dict[Operation, int] = {}
    for op in block.ops:
        before = [first[v.owner] + _changes(v.owner, op) for v in op.operands if isinstance(v.owner, Operation)]
        first[op] = max(before, default=0)
    return first


def last_turns(block: Block) -> dict[HostOp, int]:
    """The last turn of the CPU in which each of its ops can run, in the order of the block."""
    ops, first = list(block.ops), first_turns(block)
    end = max((turn for op, turn in first.items() if isinstance(op, HostOp)), default=0)
    last: dict[Operation, int] = {}
    for op in reversed(ops):
        users = [use.operation for result in op.results for use in result.uses]
        bounds = [last[user] - _changes(op, user) for user in users if not isinstance(user, ReturnOp)]
        last[op] = min(bounds, default=end + (not isinstance(op, HostOp)))
    return {op: last[op] for op in ops if isinstance(op, HostOp)}


def _changes(producer: Operation, user: Operation) -> bool:
    """Whether the device takes over from the CPU."""
    return isinstance(producer, HostOp) and not isinstance(user, HostOp)


def take_turns(block: Block) -> None:
    """Puts together what the device does in a turn, so that its launches run in one stream."""
    if not any(isinstance(op, HostOp) for op in block.ops):
        return
    turns = first_turns(block)
    ops = sorted(block.ops, key=lambda op: (isinstance(op, ReturnOp), turns[op], _place(op)))
    for op in ops:
        op.detach()
    block.add_ops(ops)


def _place(op: Operation) -> int:
    """Within a turn: uploads, launches, downloads, what the CPU does."""
    places: Mapping[type[Operation], int] = {UploadOp: 0, DownloadOp: 2, HostOp: 3}
    return places.get(type(op), 1)
