"""Flash attention written in assembly: fits `flash_attention.asm` to a target, launches it, times it.

    kernel = fit(Target.load("edge"), d=64)
    timing = time(kernel, Attention(heads=12, queries=1000, keys=1000, d=64), Target.load("edge"))

Run as a program it prints how the engines of a target are used: `python examples/flash_attention/kernel.py edge`.
"""

import struct
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from string import Template

from stepwell.runtime.assembly import assemble
from stepwell.runtime.generator import launch_registers
from stepwell.runtime.isa import Engine
from stepwell.runtime.plan import Kernel
from stepwell.runtime.target import Target
from stepwell.runtime.timing import Timing, prepare, time_launch

TEXT = Path(__file__).with_name("flash_attention.asm")
BLOCK = 128
"""Keys of a block (docs/numerics.md §7)."""
TOKEN_IDS = 3
NEVER = 1 << 40
"""A position behind all keys."""

# The least slots of each buffer, and as many as help: a step towards the second costs memory and gains overlap.
PLENTY = {"q": 2, "k": 2, "v": 3, "p": 2, "q0": 2, "k0": 2, "v0": 2, "s0": 2, "o0": 2, "s": 2, "u": 1, "o": 1, "y": 1}
SOME = PLENTY | {"k": 1, "v": 2, "q0": 1, "v0": 1, "s0": 1, "o0": 1}
FEW = dict.fromkeys(PLENTY, 1)


@dataclass(frozen=True)
class Tiles:
    """`tile` queries and `part` keys of a block at a time in the cube, heads of `d`; `slots` by buffer."""

    tile: int
    part: int
    d: int
    slots: dict[str, int]

    def memories(self) -> dict[str, dict[str, int]]:
        """Bytes of a slot, by memory and buffer."""
        tile, part, d, d16 = self.tile, self.part, self.d, -(-self.d // 16) * 16
        vector, values = 4 * tile, 2 * BLOCK * d
        l1 = {"q": 2 * tile * d, "k": values, "v": values, "p": 2 * BLOCK * tile}
        single = {"acc": 4 * tile * d, "l": vector, "least": vector, "empty": tile, "band": BLOCK + 2 * tile}
        pairs = dict.fromkeys(("m", "a", "sum"), 2 * vector)
        ub = {"s": 4 * BLOCK * tile, "u": 2 * BLOCK * tile, "o": 4 * tile * d, "y": 2 * tile * d}
        return {
            "l1": l1,
            "ub": {**ub, **single, **pairs},
            "l0a": {"k0": 2 * part * d, "p0": 2 * tile * part},
            "l0b": {"q0": 2 * d * tile, "v0": 2 * part * d16},
            "l0c": {"s0": 4 * BLOCK * tile, "o0": 4 * tile * d16},
        }

    def layout(self, alignment: int) -> tuple[dict[str, int], dict[str, int]]:
        """The names of the text, and bytes used by memory."""
        slots = self.slots | {"p0": self.slots["v0"]}
        names = {f"{name}_slots": n for name, n in slots.items()}
        names |= {"tile": self.tile, "part": self.part, "d": self.d, "d16": -(-self.d // 16) * 16}
        names |= {"vector": 4 * self.tile, "never": NEVER}
        used: dict[str, int] = {}
        for memory, buffers in self.memories().items():
            at = 0
            for name, size in buffers.items():
                size = -(-size // alignment) * alignment
                names[name], names[f"{name}_bytes"] = at, size
                at += size * slots.get(name, 1)
            used[memory] = at
        return names, used


def candidates(d: int) -> list[Tiles]:
    """From the best to the least demanding."""
    return [
        Tiles(tile, part, d, slots)
        for tile, slots, part in product(range(128, 0, -16), (PLENTY, SOME, FEW), (128, 64, 32, 16))
    ]


def fit(target: Target, d: int, tiles: Tiles | None = None) -> Kernel:
    """The kernel for heads of `d`, with the first tiles that the target has room for. `ValueError` if none."""
    for chosen in [tiles] if tiles else candidates(d):
        names, used = chosen.layout(target.alignment)
        if all(size <= getattr(target, f"{memory}_bytes") for memory, size in used.items()):
            program = assemble(Template(TEXT.read_text(encoding="utf-8")).substitute(names))
            return Kernel("flash_attention", program, used["l1"], used["ub"], TOKEN_IDS)
    raise ValueError(f"flash_attention: heads of {d} on {target.name}: its memories hold no tile of 16 queries")


@dataclass(frozen=True)
class Attention:
    """A launch: shapes, masks and the layout [heads, length, d] or, if `heads_inside`, [length, heads, d]."""

    heads: int
    queries: int
    keys: int
    d: int
    causal: bool = False
    offset: int = 0
    """Position of the first query among the keys."""
    group: int = 1
    """Query heads that share a head of keys and values."""
    heads_inside: bool = False
    capacity: int = 0
    """Rows that K and V have room for, of which `keys` are in use; 0: no more than those."""

    @property
    def rows(self) -> int:
        return max(self.keys, self.capacity)

    @property
    def scale(self) -> float:
        return self.d**-0.5

    def strides(self, heads: int, length: int) -> tuple[int, int]:
        """Bytes between heads, and between rows, of an f16 array."""
        row = 2 * self.d
        return (row, row * heads) if self.heads_inside else (row * length, row)

    def arguments(self, q: int, k: int, v: int, y: int) -> tuple[int, ...]:
        """r0…r16, from the places of the arrays in global memory."""
        key_heads = self.heads // self.group
        ours, theirs = self.strides(self.heads, self.queries), self.strides(key_heads, self.rows)
        (scale,) = struct.unpack("<I", struct.pack("<f", self.scale))
        shape = (self.heads, self.queries, self.keys, int(self.causal), self.offset)
        return (q, k, v, y, *shape, *ours, *theirs, *ours, scale, self.group)


def time(kernel: Kernel, attention: Attention, target: Target, cores: int | None = None) -> Timing:
    """Cycles of a launch; they depend on no value."""
    registers = launch_registers(attention.arguments(0, 0, 0, 0), cores or target.cores)
    return time_launch(prepare(kernel.program), registers, target, cores)


def main(target_name: str = "edge") -> None:
    """Times 12 heads of 1000 queries and keys, without and with a causal mask."""
    target = Target.load(target_name)
    kernel = fit(target, d=64)
    for causal in (False, True):
        timing = time(kernel, Attention(heads=12, queries=1000, keys=1000, d=64, causal=causal), target)
        cycles, port = timing.cycles, timing.gm_bytes / target.gm_port
        cube, vector = timing.cube_cycles, timing.busy[:, Engine.VECTOR].max()
        print(
            f"{target.name}, {'causal' if causal else 'all keys'}: {cycles:.0f} cycles; "
            f"cube {cube / cycles:.1%}, vector {vector / cycles:.1%}, port {port / cycles:.1%}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
