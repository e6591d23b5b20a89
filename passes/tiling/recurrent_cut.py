"""How a recurrence is cut: blocks of the batch and of the hidden units, and where the weights of each block stay.

A step's time is estimated block by block, from the feed of the first weights to the move of the new h; the blocks
before the last hide what the last one does after the cube.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...dialects.recurrence import Phase, Recurrence, Ref, Space, Step
from ...dialects.tile import SIZES
from ...runtime.numerics.functions import FUNCTIONS
from ...runtime.target import Target
from .space import balanced, balanced16, even_parts, up16

F32 = 4
"""Bytes."""


@dataclass(frozen=True)
class Cut:
    """Batch rows and hidden units of a block, k of one feed; weights of the first `near` of k stay in L0A, those of
    the `held` behind them in L1, and the rest comes anew in each step."""

    rows: int
    units: int
    depth: int
    near: int
    held: int


@dataclass(frozen=True)
class Plan:
    """A cut of a recurrence on a target."""

    nest: Recurrence
    cut: Cut
    dtype: str
    target: Target

    @property
    def blocks(self) -> int:
        return -(-self.nest.hidden // self.cut.units)

    @property
    def pitch(self) -> int:
        """Elements from row to row of h in L1."""
        return up16(self.nest.hidden)

    @property
    def streamed(self) -> int:
        """k of the weights that come anew in each step."""
        return self.nest.hidden - self.cut.near - self.cut.held

    @property
    def feeds_once(self) -> bool:
        """Whether all of h fits L0B, so that a step feeds it once and not with each block."""
        size = self.pitch * up16(self.cut.rows) * SIZES[self.dtype] * len(self.nest.cell.phases)
        return size <= self.target.l0b_bytes

    @property
    def loads_once(self) -> bool:
        """Whether a step loads the gates of all blocks at once."""
        return 2 * self.nest.cell.gates * self.cut.rows * self.nest.hidden * F32 <= self.target.ub_bytes // 4

    @property
    def border(self) -> int:
        """Units of a block in which states come and go."""
        whole = self._staged() * self.nest.hidden
        return self.nest.hidden if whole <= self.target.ub_bytes // 8 else self.cut.units

    def _staged(self) -> int:
        """Bytes of the states of one unit at the border."""
        cell = self.nest.cell
        return (cell.count("initial") + cell.count("final")) * self.cut.rows * F32

    # memory -----------------------------------------------------------------------------------------------------------
    @property
    def fits(self) -> bool:
        """Whether the buffers fit, but for what alignment adds."""
        t = self.target
        if self.cut.near and not self.feeds_once:
            return False
        return self._l0() and self._ub() <= t.ub_bytes and self._l1() <= t.l1_bytes and self._l0c() <= t.l0c_bytes

    def _l0(self) -> bool:
        c, t, nest, esize = self.cut, self.target, self.nest, SIZES[self.dtype]
        rings = 2 * c.depth * ((c.held > 0) + (self.streamed > 0))
        a = nest.cell.gates * (nest.hidden * up16(c.near) + c.units * rings) * esize
        b = 0 if self.feeds_once else rings * up16(c.rows) * esize * len(nest.cell.phases)
        return a <= t.l0a_bytes and b <= t.l0b_bytes

    def _l0c(self) -> int:
        return 2 * up16(self.cut.rows) * self.cut.units * self.nest.cell.gates * F32

    def _l1(self) -> int:
        c, cell, esize = self.cut, self.nest.cell, SIZES[self.dtype]
        block = c.units * (2 * up16(self.streamed) + up16(c.near))
        return (cell.gates * (self.nest.hidden * up16(c.held) + block) + len(cell.fed) * c.rows * self.pitch) * esize

    def _ub(self) -> int:
        c, cell, hidden = self.cut, self.nest.cell, self.nest.hidden
        wide = c.rows * hidden * (cell.count("state") * F32 + cell.count("row") * SIZES[self.dtype])
        wide += cell.count("vector") * hidden * F32
        products = 1 + (self.blocks > 1)
        inputs = 2 * (hidden if self.loads_once else c.units) * cell.gates * c.rows
        block = sum(products * p.gates + registers(p.steps, "temp") for p in cell.phases)
        block += registers(cell.between, "temp")
        return wide + (block * c.rows * c.units + inputs) * F32 + self._staged() * self.border

    # time -------------------------------------------------------------------------------------------------------------
    def cycles(self, cores: int) -> float:
        """Of the busiest core."""
        t, nest, c = self.target, self.nest, self.cut
        directions, blocks = len(nest.reverse), -(-nest.batch // c.rows)
        parts = even_parts((directions, blocks), cores)
        turns = -(-directions // parts[0]) * -(-blocks // parts[1])
        bandwidth = min(t.gm_path, t.gm_port / math.prod(parts))
        phases = [self._phase(phase, bandwidth) for phase in nest.cell.phases]
        step, loads = (sum(times) for times in zip(*phases, strict=True))
        column = nest.cell.gates * SIZES[self.dtype] / bandwidth
        kept = (c.near + c.held) * nest.hidden * column
        first = kept + self.streamed * c.units * column  # before the first step can begin
        sequence = max(first + nest.time * step, kept + nest.time * loads + step / self.blocks)
        return turns * (sequence + 4 * t.fixed_load)

    def _phase(self, phase: Phase, bandwidth: float) -> tuple[float, float]:
        """One phase of a step, from h in L1 to the next h in L1, block after block through feed, cube, drain and
        vector engine; and what the load engine takes for it meanwhile."""
        t, c, hidden, esize = self.target, self.cut, self.nest.hidden, SIZES[self.dtype]
        lines, sync = c.units * phase.gates, 4 * t.fixed_sync
        chunks = -(-c.held // c.depth) + -(-self.streamed // c.depth)
        feed_a = chunks * (t.fixed_feed + sync) + up16(lines) * (hidden - c.near) * esize / t.feed_a_bytes
        feed_b = (1 if self.feeds_once else chunks) * (t.fixed_feed + sync)
        feed_b += up16(c.rows) * hidden * esize / t.feed_b_bytes
        deep, cost = (t.cube_k_f32, t.cube_cost_f32) if self.dtype == "f32" else (t.cube_k_f16, 1)
        tiles = -(-lines // t.cube_m) * -(-c.rows // t.cube_n)
        steps = chunks + (c.near > 0)
        mma = steps * (t.fixed_mma + sync) + tiles * -(-hidden // deep) * cost
        drain = t.fixed_drain + sync + lines * c.rows / t.drain_elements
        vector = sync + sum(
            t.fixed_vector + -(-s.width * c.rows * c.units * F32 // t.vector_bytes) * FUNCTIONS[s.fn].passes
            for s in phase.steps
        )
        loads = (1 if self.loads_once else self.blocks) * (t.fixed_load + sync)
        loads += phase.gates * hidden * c.rows * F32 / bandwidth
        if self.streamed:
            loads += self.blocks * (t.fixed_load + sync) + phase.gates * hidden * self.streamed * esize / bandwidth
        feeds, cube, drains, done = feed_b if self.feeds_once else 0.0, 0.0, 0.0, 0.0
        for _ in range(self.blocks):
            feeds += feed_a + (0 if self.feeds_once else feed_b)
            cube = max(cube + mma, feeds + mma / steps)
            drains = max(drains, cube) + drain
            done = max(done, drains) + vector
        move = t.fixed_move + sync + c.rows * hidden * esize / t.move_bytes
        move += sum(
            t.fixed_vector + sync / 4 + -(-self._between(s) * F32 // t.vector_bytes) * _passes(s)
            for s in self.nest.cell.between
        )
        return done + move + (loads + feeds + cube) / 32, loads  # what is not the busiest engine delays it a little

    def _between(self, step: Step) -> int:
        """Elements that a step between steps takes."""
        return 1 if step.out.space == "scalar" and not step.reduction else self.cut.rows * self.nest.hidden


def _passes(step: Step) -> int:
    """Cycles per vector of elements."""
    return 1 if step.reduction else FUNCTIONS[step.fn].passes


def cuts(nest: Recurrence, dtype: str, target: Target) -> Iterator[Plan]:
    """Cuts whose buffers fit; weights stay on chip as far as possible, or not at all."""
    choices = dict.fromkeys(balanced(nest.batch, min(n, nest.batch)) for n in _POWERS if n <= 256)
    for rows in [nest.batch] if nest.cell.between else choices:
        for units in dict.fromkeys(balanced(nest.hidden, min(n, nest.hidden)) for n in (2048, *_POWERS)):
            for depth in dict.fromkeys(balanced16(nest.hidden, n) for n in _POWERS if n >= 16):
                for near, held in _stays(nest, Cut(rows, units, depth, 0, 0), SIZES[dtype], target):
                    plan = Plan(nest, Cut(rows, units, depth, near, held), dtype, target)
                    if plan.fits:
                        yield plan


_POWERS = (1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1)


def _stays(nest: Recurrence, cut: Cut, esize: int, target: Target) -> Iterator[tuple[int, int]]:
    """How much of k may stay in L0A and in L1: nothing; all that fits L1; of that, a part in L0A."""
    hidden, gates = nest.hidden, nest.cell.gates
    line, block = gates * hidden * esize, gates * cut.units * esize
    room = target.l1_bytes - 2 * cut.rows * up16(hidden) * esize
    yield 0, 0
    near = hidden if line * up16(hidden) <= target.l0a_bytes else (target.l0a_bytes - 2 * block * cut.depth) // line
    near = min(hidden, near if near == hidden else near // 16 * 16)
    for first in dict.fromkeys((0, max(0, near))):
        rest = hidden - first
        if line * up16(rest) + block * up16(first) <= room:
            yield first, rest
        elif line > 2 * block:
            held = (room - block * up16(first) - 2 * block * up16(rest)) // (line - 2 * block) // 16 * 16
            if 0 < held < rest:
                yield first, held


def registers(steps: Sequence[Step], space: Space) -> int:
    """Registers of a space that steps name."""
    places = [(ref, step.width) for step in steps for ref in (step.out, *step.operands)]
    return max((r.index + width for r, width in places if isinstance(r, Ref) and r.space == space), default=0)
