"""The linker: the launches of a plan become one stream without barriers between them.

Every engine of every core counts the kernels that it has finished (`signal`, at the end of each kernel, in its queue).
Whatever one kernel must not do before another has done it is an `await` of such a count:

    on chip    kernels alternate between two halves of L1, UB and the token ids; a half is written again when all
               engines that used it are done.
               L0A, L0B and L0C are shared: feeding waits for the cube, the cube for the drain, of the kernels before
    memory     a read waits for the writers of the bytes it reads, a write for their readers and writers, on all cores

A kernel that needs more than half of a memory takes both halves. The waits that empty a kernel's token counts at its
end are put off until its half is used again, so that the next kernel's loads need not wait for them. The rows of an
await stand before the first row that needs them, so weights load early.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from . import isa
from .encoding import Program, Row, row
from .expr import Expr, var
from .isa import Engine, Space
from .plan import R_L1, R_TOKEN, R_UB, Kernel, Tensor
from .steps import Launch, TensorRef
from .target import Target

STRIDE = 8
"""Counters of a core: one for each engine, by its number."""
_ON_CHIP = (Space.L1, Space.UB)
_READ, _WRITE = 0, 1


@dataclass(frozen=True, slots=True)
class Linked:
    """A stream of launches. `starts[n]`: row at which launch n begins; `nodes`: ONNX nodes by slot, the slots of all
    launches one after the other."""

    program: Program
    starts: tuple[int, ...]
    nodes: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class _Traits:
    """What linking needs to know of a kernel; the same for all its launches."""

    body: Program
    trailing: Program
    """Waits that only empty its token counts."""
    users: Mapping[Space, frozenset[Engine]]
    writers: Mapping[Space, frozenset[Engine]]
    engines: frozenset[Engine]
    memory: Mapping[int, tuple[tuple[int, int], ...]]
    """Body row → (argument, read or write) of its accesses to global memory."""
    places: Mapping[int, tuple[int, bool]]
    """Body row → (row before which its awaits stand, whether that is outside all loops)."""


class LinkError(ValueError):
    """A launch that cannot stand in a linked stream."""


def link(
    launches: Sequence[Launch],
    kernels: Sequence[Kernel],
    tensors: Sequence[Tensor],
    base: int,
    target: Target,
    cores: int,
) -> Linked:
    """One program for all launches; tensors lie from address `base` on. Raises `LinkError` for a kernel that reads
    memory into registers."""
    traits = {n: _traits(kernels[n]) for n in {launch.kernel for launch in launches}}
    state = _Linker(target, cores, tensors, base)
    for launch in launches:
        state.add(launch, kernels[launch.kernel], traits[launch.kernel])
    state.rows += [*state.pending[0], *state.pending[1]]
    return Linked(tuple(state.rows), tuple(state.starts), tuple(state.nodes))


@dataclass
class _Log:
    """Accesses to global memory so far: first byte, end, kind, engine, and the count of that engine when the kernel is
    done."""

    entries: list[tuple[int, int, int, int, int]] = field(default_factory=list[tuple[int, int, int, int, int]])
    _array: "np.ndarray[tuple[int, int], np.dtype[np.int64]] | None" = None

    def add(self, low: int, high: int, kind: int, engine: Engine, count: int) -> None:
        self.entries.append((low, high, kind, int(engine), count))
        self._array = None

    def needed(self, low: int, high: int, kind: int) -> dict[Engine, int]:
        """Engine → count to await before an access of `kind` to these bytes: a read after writes, a write after all."""
        if not self.entries:
            return {}
        if self._array is None:
            self._array = np.array(self.entries, np.int64)
        table = self._array
        meets = (table[:, 0] < high) & (table[:, 1] > low) & ((table[:, 2] == _WRITE) | (kind == _WRITE))
        found: dict[Engine, int] = {}
        for engine, count in table[meets][:, 3:]:
            found[Engine(int(engine))] = max(found.get(Engine(int(engine)), 0), int(count))
        return found


class _Linker:
    """Appends launches to a stream."""

    def __init__(self, target: Target, cores: int, tensors: Sequence[Tensor], base: int):
        self.target, self.cores, self.tensors, self.base = target, cores, tensors, base
        self.rows: list[Row] = []
        self.starts: list[int] = []
        self.nodes: list[tuple[str, ...]] = []
        self.counts: dict[Engine, int] = dict.fromkeys(Engine, 0)
        self.pending: list[Program] = [(), ()]
        """Waits put off, by half."""
        self.users: list[dict[Space, dict[Engine, int]]] = [{}, {}]
        """By half: memory → engine → count after the last kernel there that used it."""
        self.half = 1
        self.log = _Log()
        self.awaited: dict[tuple[Engine, Engine, int], int] = {}
        """(waiter, engine, core or −1 for the waiter's own) → count that the waiter's queue is past for certain."""

    def add(self, launch: Launch, kernel: Kernel, traits: _Traits) -> None:
        self.starts.append(len(self.rows))
        halves = self._choose(kernel)
        first = halves[0] if len(halves) == 1 else 0
        self._registers(launch, first)
        for half in halves:
            self.rows += self.pending[half]
            self.pending[half] = ()
        self._on_chip(traits, halves)
        self._body(launch, traits)
        slot = len(self.nodes)
        for engine in sorted(traits.engines):
            self.counts[engine] += 1
            self.rows.append(row("signal", slot, engine=int(engine), counter=Expr(int(engine)) + var("core", STRIDE)))
        self._record(launch, traits, halves)
        token = first * (isa.TOKEN_IDS // 2)
        self.pending[first] = tuple(_with_token(r, token, slot) for r in traits.trailing)
        self.nodes += launch.nodes or ((),)

    def _choose(self, kernel: Kernel) -> tuple[int, ...]:
        """The halves that a kernel takes."""
        t = self.target
        if kernel.l1 <= t.l1_bytes // 2 and kernel.ub <= t.ub_bytes // 2 and kernel.ids <= isa.TOKEN_IDS // 2:
            self.half = 1 - self.half
            return (self.half,)
        return (0, 1)

    def _registers(self, launch: Launch, half: int) -> None:
        """Arguments, and the kernel's part of the memories and of the token ids."""
        t, slot = self.target, len(self.nodes)
        step = t.alignment
        values = {n: self._address(a) if isinstance(a, TensorRef) else a for n, a in enumerate(launch.arguments)}
        values |= {
            R_L1: half * (t.l1_bytes // 2 // step * step),
            R_UB: half * (t.ub_bytes // 2 // step * step),
            R_TOKEN: half * (isa.TOKEN_IDS // 2),
        }
        self.rows += [row("mov", slot, rd=register, value=value) for register, value in values.items()]

    def _address(self, reference: TensorRef) -> int:
        return self.base + self.tensors[reference.tensor].offset + reference.offset

    def _on_chip(self, traits: _Traits, halves: Sequence[int]) -> None:
        """Waits until the memories that the kernel writes are free."""
        needs: dict[tuple[Engine, Engine], int] = {}
        for space in _ON_CHIP:
            for half in halves:
                for user, count in self.users[half].get(space, {}).items():
                    for writer in traits.writers[space]:
                        needs[writer, user] = max(needs.get((writer, user), 0), count)
        for waiter, user, spaces in (
            (Engine.FEED, Engine.CUBE, (Space.L0A, Space.L0B)),
            (Engine.CUBE, Engine.DRAIN, (Space.L0C,)),
        ):
            if any(waiter in traits.users[space] for space in spaces):
                needs[waiter, user] = max(needs.get((waiter, user), 0), self.counts[user])
        for (waiter, user), count in needs.items():
            if waiter is not user:
                self._await(waiter, user, -1, count, certain=True)

    def _await(self, waiter: Engine, engine: Engine, core: int, count: int, certain: bool) -> None:
        """An await row, unless the queue is past that count. `core` −1: the waiter's own."""
        if count == 0 or self.awaited.get((waiter, engine, core), 0) >= count:
            return
        counter = Expr(int(engine)) + var("core", STRIDE) if core < 0 else Expr(int(engine) + STRIDE * core)
        self.rows.append(row("await", len(self.nodes), engine=int(waiter), counter=counter, value=count))
        if certain:
            self.awaited[waiter, engine, core] = count

    def _body(self, launch: Launch, traits: _Traits) -> None:
        """The kernel's rows, with awaits for what they read and write in global memory."""
        slot = len(self.nodes)
        before: dict[int, list[tuple[int, bool]]] = {}
        for number in traits.memory:
            at, certain = traits.places[number]
            before.setdefault(at, []).append((number, certain))
        for number, r in enumerate(traits.body):
            for needing, certain in before.get(number, ()):
                self._await_memory(launch, traits, needing, certain)
            self.rows.append(Row(r.name, r.fields, slot + r.slot))

    def _await_memory(self, launch: Launch, traits: _Traits, number: int, certain: bool) -> None:
        engine = traits.body[number].instruction.engine
        assert engine is not None
        for argument, kind in traits.memory[number]:
            low, high = self._range(launch, argument)
            for other, count in self.log.needed(low, high, kind).items():
                for core in range(self.cores):
                    self._await(engine, other, core, count, certain)

    def _range(self, launch: Launch, argument: int) -> tuple[int, int]:
        """Bytes of the tensor behind an argument; weights never change, so they conflict with nothing."""
        reference = launch.arguments[argument]
        if not isinstance(reference, TensorRef):
            raise LinkError(f"argument {argument} is a number where an address was expected")
        tensor = self.tensors[reference.tensor]
        return (0, 0) if tensor.role == "weight" else (tensor.offset, tensor.offset + tensor.nbytes)

    def _record(self, launch: Launch, traits: _Traits, halves: Sequence[int]) -> None:
        for number, accesses in traits.memory.items():
            engine = traits.body[number].instruction.engine
            assert engine is not None
            for argument, kind in accesses:
                low, high = self._range(launch, argument)
                if high > low:
                    self.log.add(low, high, kind, engine, self.counts[engine])
        for half in halves:
            self.users[half] = {space: {e: self.counts[e] for e in traits.users[space]} for space in _ON_CHIP}


def _with_token(r: Row, first: int, slot: int) -> Row:
    """A wait with its token id fixed, so that it can stand where r30 has another value."""
    index = r.instruction.index("id")
    identity = r.fields[index]
    plain = Expr(identity.base + first, tuple(term for term in identity.terms if term.x != f"r{R_TOKEN}"))
    return Row(r.name, (*r.fields[:index], plain, *r.fields[index + 1 :]), slot)


# kernels --------------------------------------------------------------------------------------------------------------
def _traits(kernel: Kernel) -> _Traits:
    end = len(kernel.program)
    while end and kernel.program[end - 1].name == "wait":
        end -= 1
    body = kernel.program[:end]
    users: dict[Space, set[Engine]] = {space: set() for space in Space}
    writers: dict[Space, set[Engine]] = {space: set() for space in Space}
    memory: dict[int, tuple[tuple[int, int], ...]] = {}
    for number, r in enumerate(body):
        if r.name == "read":
            raise LinkError(f"kernel {kernel.name}: row {number} reads memory into a register")
        engine = r.instruction.engine
        if engine is None or engine is Engine.SCALAR:
            continue
        found: list[tuple[int, int]] = []
        for access in r.instruction.accesses:
            space = access.space if isinstance(access.space, Space) else Space(r[access.space].base)
            if access.when.isidentifier() and r[access.when] == Expr(0):
                continue
            users[space].add(engine)
            if access.writes:
                writers[space].add(engine)
            if space is Space.GM:
                found.append((_argument(kernel, number, r[access.field]), _WRITE if access.writes else _READ))
        if found:
            memory[number] = tuple(found)
    engines = frozenset(engine for space in Space for engine in users[space])
    return _Traits(
        body,
        kernel.program[end:],
        {space: frozenset(of_space) for space, of_space in users.items()},
        {space: frozenset(of_space) for space, of_space in writers.items()},
        engines,
        memory,
        dict(_places(body, memory)),
    )


def _argument(kernel: Kernel, number: int, address: Expr) -> int:
    """The argument that an address in global memory is based on."""
    for term in address.terms:
        if term.x.startswith("r") and not term.y and term.coef == 1:
            return int(term.x[1:])
    raise LinkError(
        f"kernel {kernel.name}: row {number} has an address in global memory that no argument gives ({address})"
    )


def _places(body: Program, memory: Mapping[int, object]) -> Iterator[tuple[int, tuple[int, bool]]]:
    """Where the awaits of each row that accesses memory stand: before the row, or before its outermost loop if no row
    of its engine comes earlier in that."""
    depth, outermost = 0, 0
    seen: set[Engine] = set()
    for number, r in enumerate(body):
        if r.name == "loop":
            if depth == 0:
                outermost, seen = number, set()
            depth += 1
        elif r.name == "end":
            depth -= 1
        engine = r.instruction.engine
        if number in memory and engine is not None:
            if depth == 0:
                yield number, (number, True)
            elif engine not in seen:
                yield number, (outermost, True)
            else:
                yield number, (number, False)
        if engine is not None:
            seen.add(engine)
