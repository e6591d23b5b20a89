"""Kernels of recurrences: the time steps of an LSTM, GRU or RNN, one after the other on the device.

for direction, block of the batch:                       shared out over the cores
  load weights (those that stay on chip), initial states
  for step:
    for phase, block of hidden units:
      feed weights and h, multiply, drain                a block's gates: [units·gates, batch] in L0C
      load x·W + b, run the cell on the block
    run what stands between time steps
    move h from UB to L1 for the next step, store y
  store the last states

The weights are the left operand of the cube, h the right one, so that the longer side is fed at the higher rate.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir import SSAValue

from ...dialects import tile
from ...dialects.graph.op import dtype_name
from ...dialects.graph.recurrence import RecurrenceOp
from ...dialects.recurrence import Operand, Phase, Ref, Space, Step
from ...dialects.tile.builder import Affine, Box, Buffer, Index, KernelBuilder
from .body import Dim, Machine, NotTileable, Region, first_fitting
from .contraction import maybe_loop, upto
from .product import SEGMENT
from .recurrent_cut import Plan, cuts, registers, up16
from .space import flat_arguments, open_tiles


def tile_recurrence(name: str, region: Region, machine: Machine) -> tile.KernelOp:
    """The kernel of a recurrence; the best cut by estimate whose buffers fit."""
    (op,) = region.ops
    assert isinstance(op, RecurrenceOp)
    nest, dtype = op.recurrence(), dtype_name(op.weight)
    machine.need_cube(dtype)
    if nest.hidden > SEGMENT:
        raise NotTileable(f"a recurrence has at most {SEGMENT} hidden units (found {nest.hidden})")
    ranked = sorted(cuts(nest, dtype, machine.target), key=lambda plan: plan.cycles(machine.cores))
    return first_fitting(
        (_Kernel(name, region, op, plan, machine.cores).build() for plan in ranked),
        machine,
        "the states and one block of the gates of a recurrence must fit on chip",
    )


# emission -------------------------------------------------------------------------------------------------------------
@dataclass
class _Kernel:
    """Writes the kernel of one cut."""

    name: str
    region: Region
    op: RecurrenceOp
    plan: Plan
    cores: int
    places: dict[Space, Buffer] = field(default_factory=dict[Space, Buffer])
    """Of each space its registers, in UB."""
    fed: dict[int, Buffer] = field(default_factory=dict[int, Buffer])
    """Of each row that is multiplied its copy in L1."""
    kept: dict[tuple[int, str], Buffer] = field(default_factory=dict[tuple[int, str], Buffer])
    """The weights that stay on chip, by phase and memory, [lines, k]."""

    def build(self) -> tile.KernelOp:
        nest, c = self.plan.nest, self.plan.cut
        self.nest, self.cut, self.pitch, self.dtype = nest, c, self.plan.pitch, self.plan.dtype
        self.k = KernelBuilder(self.name)
        inputs, outputs = flat_arguments(self.k, self.region)
        self.given = dict(zip(self.region.arguments, inputs, strict=True))
        self.made = dict(zip(self.region.results, outputs, strict=True))
        dims = [
            Dim(len(nest.reverse), 1, Affine(), 1),
            Dim(nest.batch, c.rows, Affine(), nest.batch),
        ]
        with open_tiles(self.k, dims, [d for d in (0, 1) if dims[d].blocks > 1], self.cores):
            self.direction, self.first, self.rows = dims[0].start, dims[1].start, dims[1].extent
            self._sequence()
        return self.k.finish()

    def _sequence(self) -> None:
        """One direction of one block of the batch."""
        k, nest, cell = self.k, self.nest, self.nest.cell
        self._begin()
        with k.loop(nest.time) as step:
            time = self._time(step)
            if "mask" in self.places:
                k.iota(self.tick[0], (1,), time, (0,))
                k.map("lt", self.places["mask"][0], self.tick.box(0, 0), self.lengths[0], extents=(self.rows,))
            for number, phase in enumerate(cell.phases):
                self._phase(number, phase, time)
                self._move({step.out.index for step in phase.steps if step.out.space == "row"})
            self._between()
            if (y := self.made.get(self.op.result)) is not None:
                place = (time * len(nest.reverse) + self.direction) * (nest.batch * nest.hidden)
                box = y.box(place + self.first * nest.hidden, nest.hidden, 1)
                k.store(box, self._wide(cell.y.space, cell.y.index), (self.rows, nest.hidden))
        self._end()

    def _time(self, step: Affine) -> Affine:
        """The time of a step: it runs backwards in some directions."""
        last, first = self.nest.time - 1, self.nest.reverse[0]
        if all(backwards == first for backwards in self.nest.reverse):
            return last - step if first else step
        assert self.nest.reverse == (False, True)
        return step + self.direction * last - step * self.direction * 2

    # begin and end --------------------------------------------------------------------------------------------------
    def _begin(self) -> None:
        k, nest, cell, rows = self.k, self.nest, self.nest.cell, self.cut.rows
        self._keep_weights()
        for row in sorted(cell.fed):
            self.fed[row] = k.alloc((rows, self.pitch), self.dtype, "l1")
        for space in ("state", "row"):
            if count := cell.count(space):
                dtype = self.dtype if space == "row" else "f32"
                self.places[space] = k.alloc((count, rows, nest.hidden), dtype, "ub")
        more = list(self.op.more)
        if count := cell.count("vector"):
            source = self.given[more[len(nest.initial)]]
            self.places["vector"] = k.alloc((count * nest.hidden,), "f32", "ub")
            size = count * nest.hidden
            k.load(self.places["vector"][0], source.box(self.direction * size, 1), (size,))
        if cell.count("mask"):
            self.lengths, self.tick = k.alloc((rows,), "i32", "ub"), k.alloc((1,), "i32", "ub")
            k.load(self.lengths[0], self.given[more[-1]].box(self.first, 1), (self.rows,))
            self.places["mask"] = k.alloc((rows,), "b8", "ub")
        if count := cell.count("scalar"):
            self.places["scalar"] = k.alloc((count,), "f32", "ub")
        self._start(more)
        self._between()
        self._move({0})

    def _start(self, states: Sequence[SSAValue]) -> None:
        """The registers that a sequence starts with, block by block; those that are not given are +0."""
        k, nest, block = self.k, self.nest, self.plan.border
        with maybe_loop(k, nest.hidden, block) as unit:
            units = upto(k, nest.hidden, unit, block)
            staged: dict[Space, Buffer] = {}
            if nest.initial:
                staged["initial"] = k.alloc((nest.cell.count("initial"), self.cut.rows, block), "f32", "ub")
            for place, value in zip(nest.initial, states, strict=False):
                source = self.given[value].box(self._state() + unit, nest.hidden, 1)
                k.load(self._local(staged["initial"], place), source, (self.rows, units))
            for step in nest.cell.start:
                absent = [x for x in step.operands if isinstance(x, Ref) and x.space == "initial"]
                if absent and absent[0].index not in nest.initial:
                    k.iota(self._box(step.out, unit, staged, 1), (step.width, self.rows, units), 0, (0, 0, 0))
                else:
                    self._run(step, unit, units, staged)

    def _end(self) -> None:
        """Stores the final registers that are wanted."""
        k, nest, finish = self.k, self.nest, self.nest.cell.finish
        wanted = [(step, self.op.results[1 + step.out.index]) for step in finish]
        wanted = [(step, value) for step, value in wanted if value in self.made]
        if not wanted:
            return
        block = self.plan.border
        with maybe_loop(k, nest.hidden, block) as unit:
            units = upto(k, nest.hidden, unit, block)
            staged = k.alloc((len(finish), self.cut.rows, block), "f32", "ub")
            for step, value in wanted:
                self._run(step, unit, units, {"final": staged})
                target = self.made[value].box(self._state() + unit, nest.hidden, 1)
                k.store(target, self._local(staged, step.out.index), (self.rows, units))

    def _local(self, staged: Buffer, index: int) -> Box:
        """A register of the current block."""
        return replace(staged[index, 0, 0], strides=staged.strides[1:])

    def _state(self) -> Affine:
        """Where this block's states begin in a tensor [directions, batch, hidden]."""
        return (self.direction * self.nest.batch + self.first) * self.nest.hidden

    def _wide(self, space: Space, index: int) -> Box:
        """All of a register."""
        size = self.cut.rows * self.nest.hidden
        return self.places[space].box(index * size, self.nest.hidden, 1)

    def _move(self, written: set[int]) -> None:
        """Takes rows that are multiplied to L1."""
        for row in sorted(written & self.nest.cell.fed):
            self.k.move(self.fed[row].box(0, self.pitch, 1), self._wide("row", row), (self.rows, self.nest.hidden))

    # weights --------------------------------------------------------------------------------------------------------
    def _weights(self, phase: Phase, unit: Affine, position: int) -> Box:
        """The weights of a phase from a unit and a k on, in global memory."""
        hidden = self.nest.hidden
        line = self.direction * (self.nest.cell.gates * hidden) + phase.first * hidden + unit * phase.gates
        return self.given[self.op.weight].box(line * hidden + position, hidden, 1)

    def _keep_weights(self) -> None:
        """Loads what stays for all steps; what is near comes by L1, block by block."""
        k, c, hidden = self.k, self.cut, self.nest.hidden
        for number, phase in enumerate(self.nest.cell.phases):
            lines = hidden * phase.gates
            if c.held:
                panel = k.alloc((lines, up16(c.held)), self.dtype, "l1")
                k.load(panel[0, 0], self._weights(phase, Affine(), c.near), (lines, c.held))
                self.kept[number, "l1"] = panel
            if not c.near:
                continue
            near = k.alloc((lines, up16(c.near)), self.dtype, "l0a")
            self.kept[number, "l0a"] = near
            with maybe_loop(k, hidden, c.units) as unit:
                count = upto(k, lines, unit * phase.gates, c.units * phase.gates)
                panel = k.alloc((c.units * phase.gates, up16(c.near)), self.dtype, "l1")
                k.load(panel[0, 0], self._weights(phase, unit, 0), (count, c.near))
                k.feed_a(near[unit * phase.gates, 0], panel[0, 0], (count, c.near))

    # a block --------------------------------------------------------------------------------------------------------
    def _phase(self, number: int, phase: Phase, time: Affine) -> None:
        """Of each block of units the gates, then the steps of the cell."""
        k, c, hidden = self.k, self.cut, self.nest.hidden
        whole = None
        if self.plan.feeds_once:
            # Not in the loop below, which then does not wait for h but in the cube.
            whole = k.alloc((self.pitch, c.rows), self.dtype, "l0b")
            self._feed(whole[0, 0], phase, Affine(), hidden)
        inputs = self._load(phase, time, Affine(), hidden, hidden) if self.plan.loads_once else None
        with maybe_loop(k, hidden, c.units) as unit:
            count = upto(k, hidden, unit, c.units)
            lines = upto(k, hidden * phase.gates, unit * phase.gates, c.units * phase.gates)
            acc = k.alloc((c.units * phase.gates, c.rows), "f32", "l0c", 2)
            self._multiply(number, phase, acc, unit, lines, whole)
            x = inputs or self._load(phase, time, unit, c.units, count)
            product = k.alloc((c.units * phase.gates, c.rows), "f32", "ub", 2 if c.units < hidden else 1)
            k.drain(product[0, 0], acc[0, 0], (lines, self.rows))
            local: dict[Space, Buffer] = {"input": x, "product": product}
            if temps := registers(phase.steps, "temp"):
                local["temp"] = k.alloc((temps, c.rows, c.units), "f32", "ub")
            for step in phase.steps:
                self._run(step, unit, count, local, phase.gates)

    def _load(self, phase: Phase, time: Affine, unit: Affine, units: int, count: Index) -> Buffer:
        """x·W + b of a time, from a unit on: [gates, rows, units] in UB."""
        nest, c = self.nest, self.cut
        x = self.k.alloc((phase.gates, c.rows, units), "f32", "ub", 2)
        own = nest.cell.gates * nest.hidden
        width = len(nest.reverse) * own
        place = (time * nest.batch + self.first) * width + self.direction * own + phase.first * nest.hidden
        source = self.given[self.op.gates].box(place + unit, nest.hidden, width, 1)
        self.k.load(x[0, 0, 0], source, (phase.gates, self.rows, count))
        return x

    def _multiply(
        self, number: int, phase: Phase, acc: Buffer, unit: Affine, lines: Index, whole: Buffer | None
    ) -> None:
        """acc = the block's weights times the row, k in order: what is near, what is in L1, what is streamed."""
        k, c = self.k, self.cut
        if c.near:
            assert whole is not None
            near = self.kept[number, "l0a"]
            k.mma(acc[0, 0], near[unit * phase.gates, 0], whole[0, 0], (lines, self.rows, c.near), 1)
        if c.held:
            panel = self.kept[number, "l1"][unit * phase.gates, 0]
            self._chunks(phase, acc, panel, lines, c.near, c.held, whole)
        if (size := self.plan.streamed) > 0:
            first = c.near + c.held
            panel = k.alloc((c.units * phase.gates, up16(size)), self.dtype, "l1", 2)
            k.load(panel[0, 0], self._weights(phase, unit, first), (lines, size))
            self._chunks(phase, acc, panel[0, 0], lines, first, size, whole)

    def _chunks(
        self, phase: Phase, acc: Buffer, panel: Box, lines: Index, first: int, size: int, whole: Buffer | None
    ) -> None:
        """Adds the products of k in [first, first + size), whose weights are a panel in L1."""
        k, c = self.k, self.cut
        with maybe_loop(k, size, c.depth) as inside:
            depth = upto(k, size, inside, c.depth)
            left = k.alloc((c.units * phase.gates, min(c.depth, up16(size))), self.dtype, "l0a", 2)
            k.feed_a(left[0, 0], replace(panel, offset=panel.offset + inside), (lines, depth))
            if whole is None:
                right = k.alloc((c.depth, c.rows), self.dtype, "l0b", 2)[0, 0]
                self._feed(right, phase, inside + first, depth)
            else:
                right = whole[inside + first, 0]
            begins = 0 if first else k.clamp(1 - inside, 1) if inside.terms else 1
            k.mma(acc[0, 0], left[0, 0], right, (lines, self.rows, depth), begins)

    def _feed(self, right: Box, phase: Phase, position: Affine, depth: Index) -> None:
        """Brings the row, from k = position on, to the right operand."""
        source = self.fed[phase.row].box(position, 1, self.pitch)
        self.k.feed_b(right, source, (depth, self.rows))

    # steps ----------------------------------------------------------------------------------------------------------
    def _between(self) -> None:
        """Scalars of all units, then the rows that are made with them, block by block; such cells have all sequences
        in one block."""
        k, nest, units = self.k, self.nest, self.cut.units
        for step in nest.cell.between:
            if step.reduction:
                (register,) = step.operands
                assert isinstance(register, Ref)
                size = nest.batch * nest.hidden
                source = self.places[register.space].box(register.index * size, 0, 1, 0)
                k.reduce(step.reduction, self._box(step.out, Affine(), {}, 1), source, (1, size, 1))
            elif step.out.space == "scalar":
                self._run(step, Affine(), 1, {}, rows=1)
        others = [step for step in nest.cell.between if step.out.space != "scalar"]
        if others:
            with maybe_loop(k, nest.hidden, units) as unit:
                count = upto(k, nest.hidden, unit, units)
                temp = k.alloc((registers(others, "temp"), self.cut.rows, units), "f32", "ub")
                for step in others:
                    self._run(step, unit, count, {"temp": temp})
        self._move({step.out.index for step in others if step.out.space == "row"})

    def _run(
        self,
        step: Step,
        unit: Affine,
        count: Index,
        local: dict[Space, Buffer],
        gates: int = 1,
        rows: Index | None = None,
    ) -> None:
        """One vector instruction over (width, rows, units), of all rows if nothing else is said."""

        def operand(value: Operand) -> Box | float:
            return self._box(value, unit, local, gates) if isinstance(value, Ref) else value

        target, first, *others = [operand(value) for value in (step.out, *step.operands)]
        assert isinstance(target, Box)
        assert isinstance(first, Box)
        self.k.map(step.fn, target, first, *others, extents=(step.width, self.rows if rows is None else rows, count))

    def _box(self, ref: Ref, unit: Affine, local: dict[Space, Buffer], gates: int) -> Box:
        """A register's part of the block, as (register, row, unit)."""
        hidden, rows = self.nest.hidden, self.cut.rows
        match ref.space:
            case "product":
                return local["product"].box(ref.index * rows, rows, 1, gates * rows)
            case "input":
                whole = unit if self.plan.loads_once else Affine()
                wide, row, one = local["input"].strides
                return local["input"].box(whole + ref.index * wide, wide, row, one)
            case "temp" | "initial" | "final":
                return local[ref.space][ref.index, 0, 0]
            case "mask":
                return self.places["mask"].box(0, 0, 1, 0)
            case "scalar":
                return self.places["scalar"].box(ref.index, 0, 0, 0)
            case "vector":
                return self.places["vector"].box(unit + ref.index * hidden, hidden, 0, 1)
            case _:
                return self.places[ref.space].box(unit + ref.index * rows * hidden, rows * hidden, hidden, 1)
