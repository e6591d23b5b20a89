"""The tokens of a loop nest as `replay` needs them: who waits for whom, from the buffers.

Two engines that touch a buffer meet in the innermost loop body that holds both. There one waits for the other: a reader
for the writer, and a writer, as many iterations later as the buffer has slots there, for writers and readers. What
a stricter token of the same two engines orders anyway has none of its own.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

Op: TypeAlias = tuple[int, int, tuple[tuple[int, bool], ...]]
"""Row, engine, and of each buffer whether it is written."""
Child: TypeAlias = "Op | tuple[int, int, int, tuple[Child, ...]]"
"""An op, or a loop: first row, last row, number, children."""


class Tokens(NamedTuple):
    """Rows to add."""

    before: dict[int, list[tuple[int, int]]]
    """Before a row: (engine that waits, class)."""
    behind: dict[int, list[tuple[int, int]]]
    """Behind a row: (engine that sets, class)."""
    granted: tuple[int, ...]
    """Tokens that a class begins with."""


class _Class(NamedTuple):
    """`first` must be done with child p of a body before `then` begins child q, `distance` iterations later."""

    body: int
    p: int
    first: int
    q: int
    then: int
    distance: int

    def implies(self, other: "_Class") -> bool:
        """Whether `other` holds, too: it is set earlier and waited for later."""
        same = (self.body, self.first, self.then) == (other.body, other.first, other.then)
        return same and self.p >= other.p and self.q <= other.q and self.distance <= other.distance


def tokens(children: tuple[Child, ...], buffers: tuple[tuple[int, int], ...]) -> Tokens:
    """The tokens of a nest whose buffers have a loop (-1: none) and slots."""
    bodies = dict(_bodies(-1, children))
    found: list[_Class] = []
    for buffer, (loop, slots) in enumerate(buffers):
        found += _meetings(loop, bodies[loop], buffer, slots)
    found = list(dict.fromkeys(found))
    kept = [c for n, c in enumerate(found) if not any(_over(o, c, m < n) for m, o in enumerate(found) if o is not c)]
    kept = [c for c in kept if c.body >= 0 or c.distance == 0]  # a body of one trip
    before: dict[int, list[tuple[int, int]]] = {}
    behind: dict[int, list[tuple[int, int]]] = {}
    for number, each in enumerate(kept):
        body = bodies[each.body]
        last = body[each.p]
        before.setdefault(body[each.q][0], []).append((each.then, number))
        behind.setdefault(last[1] if len(last) == 4 else last[0], []).append((each.first, number))
    return Tokens(before, behind, tuple(c.distance for c in kept))


def _over(one: _Class, other: _Class, earlier: bool) -> bool:
    """Whether `one` makes `other` superfluous; of two that imply each other the earlier remains."""
    return one.implies(other) and (earlier or not other.implies(one))


def loops(children: tuple[Child, ...]) -> Iterator[tuple[int, int]]:
    """First and last rows of the loops."""
    for child in children:
        if len(child) == 4:
            yield child[0], child[1]
            yield from loops(child[3])


def _bodies(loop: int, children: tuple[Child, ...]) -> Iterator[tuple[int, tuple[Child, ...]]]:
    yield loop, children
    for child in children:
        if len(child) == 4:
            yield from _bodies(child[2], child[3])


def _touches(child: Child, buffer: int) -> dict[int, bool]:
    """By engine that touches the buffer in a child, whether it writes it."""
    found: dict[int, bool] = {}
    if len(child) == 3:
        found.update((child[1], writes) for b, writes in child[2] if b == buffer)
        return found
    for inner in child[3]:
        for engine, writes in _touches(inner, buffer).items():
            found[engine] = found.get(engine, False) or writes
    return found


def _meetings(loop: int, body: tuple[Child, ...], buffer: int, slots: int) -> Iterator[_Class]:
    """The classes of a body, and of the loops in it, where the slot stands still."""
    order = [(number, touches) for number, child in enumerate(body) if (touches := _touches(child, buffer))]
    writers: list[tuple[int, int, int]] = []
    readers: list[tuple[int, int, int]] = []
    for generation in (0, slots):
        for number, touches in order:
            for engine, writes in touches.items():
                for earlier, child, other in writers + (readers if writes else []):
                    if other != engine:
                        yield _Class(loop, child, other, number, engine, generation - earlier)
            written = [(generation, number, engine) for engine, writes in touches.items() if writes]
            read = [(generation, number, engine) for engine, writes in touches.items() if not writes]
            writers, readers = (written, read) if written else (writers, readers + read)
    for number, touches in order:
        child = body[number]
        if len(child) == 4 and len(touches) > 1:
            yield from _meetings(child[2], child[3], buffer, 1)
