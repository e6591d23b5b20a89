"""The memories of a device as host memory: global memory, and the five memories of each core."""

import mmap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from . import isa
from .execute import core as layout
from .execute.core import Words
from .execute.sync import PAIRS
from .generator import new_block
from .numerics.dtype import DType
from .problem import Kind, UserError
from .target import Target

Bytes = npt.NDArray[np.uint8]

_LINE = 64
"""Host alignment of a memory."""
_SLACK = 4 * _LINE
"""Bytes behind it, since vector instructions of the host may read past a row."""
_SCRATCH = 1 << 18
_LARGE = 1 << 21
"""Bytes of a large page."""
_MAP_NORESERVE = 0x4000
"""Linux: pages count only once they are touched."""


def _zeros(size: int) -> Bytes:
    """Memory whose pages exist once they are touched, large ones where the host has them."""
    room = (size // _LARGE + 2) * _LARGE
    try:
        area = mmap.mmap(-1, room, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
    except (OSError, OverflowError, MemoryError) as error:
        raise HostMemoryError(size, error) from None
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without them
            area.madvise(mmap.MADV_HUGEPAGE)
    raw = np.frombuffer(area, np.uint8)
    start = -raw.ctypes.data % _LARGE
    return raw[start : start + size]


def _allocate(sizes: Sequence[int]) -> list[Bytes]:
    """Arrays side by side, so that few pages hold them."""
    starts = [*accumulate((-(-size // _LINE) * _LINE + _SLACK for size in sizes), initial=0)]
    area = _zeros(starts.pop())
    return [area[start : start + size] for start, size in zip(starts, sizes, strict=True)]


class HostMemoryError(UserError, MemoryError):
    """The host has no memory for one of a device."""

    KIND: ClassVar[Kind] = Kind.MEMORY

    def __init__(self, size: int, error: Exception) -> None:
        rule = f"the emulated device: this machine has memory for one of its {size:,} bytes"
        found = getattr(error, "strerror", None) or error
        super().__init__(
            f"{rule} (found none: {found}); raise the limit (ulimit -v), or take a target with less memory"
        )


@dataclass(frozen=True)
class CoreMemory:
    """The memories of a core.

    L0A and L0B hold a word of 4 bytes an element: images for elements of 4, 2 and 1 bytes, one behind the other.
    `words` is the block that compiled code sees (`execute/core.py`), `tokens` the counts by source, destination and id.
    """

    l1: Bytes
    l0a: Bytes
    l0b: Bytes
    l0c: Bytes
    ub: Bytes
    words: Words
    tokens: Words
    scratch: Bytes
    carry: Bytes
    """Beside UB: what integer lanes there have beyond 32 bits."""
    block: Words
    """Records of the block generator."""
    address: int
    """Of `words`."""


@dataclass(frozen=True)
class Memory:
    """The memories of a device; address 0 is the first byte of `gm`."""

    target: Target
    gm_size: int
    gm: Bytes = field(init=False)
    cores: tuple[CoreMemory, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gm", _zeros(self.gm_size))
        object.__setattr__(self, "cores", tuple(self._core() for _ in range(self.target.cores)))

    def _core(self) -> CoreMemory:
        t = self.target
        tokens, words = np.zeros(PAIRS, np.int64), np.zeros(layout.WORDS, np.int64)
        sizes = t.l1_bytes, 7 * t.l0a_bytes, 7 * t.l0b_bytes, t.l0c_bytes, t.ub_bytes, _SCRATCH, 2 * t.ub_bytes
        l1, l0a, l0b, l0c, ub, scratch, carry = _allocate(sizes)
        made = CoreMemory(l1, l0a, l0b, l0c, ub, words, tokens, scratch, carry, new_block(), words.ctypes.data)
        places = {
            isa.Space.GM: self.gm,
            isa.Space.L1: l1,
            isa.Space.L0A: l0a,
            isa.Space.L0B: l0b,
            isa.Space.L0C: l0c,
            isa.Space.UB: ub,
        }
        sizes = {isa.Space.L0A: t.l0a_bytes, isa.Space.L0B: t.l0b_bytes}
        for space, array in places.items():
            words[layout.BASE + space] = array.ctypes.data
            words[layout.SIZE + space] = sizes.get(space, array.size)
            words[layout.TOP + space] = 0 if space == isa.Space.GM else words[layout.SIZE + space]
        words[layout.TOKENS], words[layout.SCRATCH] = tokens.ctypes.data, scratch.ctypes.data
        words[layout.CARRY] = carry.ctypes.data
        return made

    def write(self, address: int, values: npt.NDArray[Any]) -> None:
        """Puts an array into global memory, in its own element type."""
        data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        if address < 0 or address + data.size > self.gm.size:
            raise ValueError(f"bytes {address} to {address + data.size}; global memory has {self.gm.size}")
        self.gm[address : address + data.size] = data

    def read(self, address: int, dtype: DType, shape: Sequence[int]) -> npt.NDArray[Any]:
        """A copy of an array in global memory."""
        size = int(np.prod(shape, dtype=np.int64)) * dtype.size
        if address < 0 or address + size > self.gm.size:
            raise ValueError(f"bytes {address} to {address + size}; global memory has {self.gm.size}")
        return self.gm[address : address + size].view(dtype.numpy).reshape(shape).copy()
