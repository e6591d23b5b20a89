"""Names for the nodes of a model, by which all reports speak of them."""

from collections.abc import Iterable, Iterator

import onnx

from ..dialects.graph.host_model import inner_graphs

Placed = tuple[onnx.NodeProto, int | None]
"""A node, and the position of the one in whose graph it stands."""


def walk(nodes: Iterable[onnx.NodeProto], outer: int | None = None, start: int = 0) -> Iterator[Placed]:
    """Nodes in the order of the file, each before those of its graphs."""
    for node in nodes:
        yield node, outer
        place = start
        start += 1
        for graph in inner_graphs(node):
            for inner in walk(graph.node, place, start):
                yield inner
                start += 1


class Names:
    """Gives a node its own name, or its operator and its position in the model; where that is taken, as by an earlier
    step of a loop that is written out, a number behind it."""

    def __init__(self, nodes: Iterable[onnx.NodeProto]) -> None:
        self._nodes = [node for node, _ in walk(nodes)]
        """Kept, since they are known by their ids."""
        self._stems = {id(node): node.name or f"{node.op_type}_{n}" for n, node in enumerate(self._nodes)}
        self._given = {node.name for node in self._nodes}
        self._taken = set[str]()

    def of(self, node: onnx.NodeProto) -> str:
        """A name that no other has."""
        stem = self._stems.get(id(node)) or node.name or f"{node.op_type}_{len(self._taken)}"
        name, count = stem, 1
        while name in self._taken or (name != node.name and name in self._given):
            count += 1
            name = f"{stem}_{count}"
        self._taken.add(name)
        return name

    def marks(self) -> set[str]:
        """What is taken."""
        return set(self._taken)

    def back_to(self, marks: set[str]) -> None:
        """Those that were given later are free again."""
        self._taken = marks
