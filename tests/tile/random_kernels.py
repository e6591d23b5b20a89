"""Random tile kernels: loops around operations of all engines on buffers of all memories, for the derivation of tokens.

What they compute means nothing; buffers may be read before anything is written to them.
"""

from random import Random

from stepwell.dialects.tile import KernelOp
from stepwell.dialects.tile.builder import Box, Buffer, KernelBuilder

N = 16
"""Every box is a square of this size."""
DTYPES = {"ub": "f16", "l1": "f16", "l0a": "f16", "l0b": "f16", "l0c": "f32"}
OPS = {
    "load": "ub gm", "load_l1": "l1 gm", "store": "gm ub", "map": "ub ub ub", "move": "l1 ub", "feed_a": "l0a l1",
    "feed_b": "l0b l1", "mma": "l0c l0a l0b", "drain": "ub l0c", "drain_l1": "l1 l0c", "drain_gm": "gm l0c",
}  # fmt: skip
"""Memories of the boxes of each operation, the destination first."""


class _Random:
    """Writes one kernel."""

    def __init__(self, random: Random, skewed: bool):
        self.random = random
        self.skewed = skewed
        self.k = KernelBuilder("random")
        self.arguments = [self.k.argument((N, N), "f16", name) for name in ("x", "y", "z")]
        self.scopes: list[list[Buffer]] = []
        self.loops = 0

    def block(self, depth: int) -> None:
        self.scopes.append([])
        for _ in range(self.random.randint(1, 4) + 2 * (depth == 0)):
            self.buffer(depth)
        for _ in range(self.random.randint(2, 5)):
            if depth < 3 and self.loops < 4 and self.random.random() < 0.35:
                self.loops += 1
                with self.k.loop(self.random.choice((0, 1, 2, 3, 4)), 1, add=self.random.choice((0, 0, 0, 1))):
                    self.block(depth + 1)
            else:
                self.op()
        self.scopes.pop()

    def buffer(self, depth: int) -> None:
        space = self.random.choice(list(DTYPES))
        slots = self.random.randint(1, 3) if depth else 1
        self.scopes[-1].append(
            self.k.alloc((N, N), DTYPES[space], space, slots, f"{space}_{len(self.scopes)}_{len(self.scopes[-1])}")
        )

    def box(self, space: str, writes: bool) -> Box | None:
        if space == "gm":
            return self.arguments[self.random.choice((1, 2) if writes else (0, 0, 2))][0, 0]
        found = [buffer for scope in self.scopes for buffer in scope if buffer.kind.space.data == space]
        if not found:
            return None
        buffer = self.random.choice(found)
        ago = self.random.choice((0, 0, 0, 1)) if self.skewed and buffer.kind.slots.data > 1 else 0
        return buffer.box(0, N, 1, ago=ago)

    def op(self) -> None:
        name = self.random.choice(list(OPS))
        boxes = [self.box(space, number == 0) for number, space in enumerate(OPS[name].split())]
        if None in boxes:
            return
        present = [box for box in boxes if box is not None]
        extents = (N, N)
        if name == "map":
            self.k.map("add", present[0], present[1], present[2], extents=extents)
        elif name == "mma":
            self.k.mma(present[0], present[1], present[2], (N, N, N), self.random.randint(0, 1))
        else:
            getattr(self.k, name.removesuffix("_l1").removesuffix("_gm"))(*present, extents)


def random_kernel(random: Random, skewed: bool = False) -> KernelOp:
    """A kernel of up to four loops. `skewed`: boxes may name earlier slots, which not every order of operations
    allows.
    """
    writer = _Random(random, skewed)
    writer.block(0)
    return writer.k.finish()
