"""Encoding: an npu kernel with addresses and tokens is a program, row by row; and the way back."""

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import LocationAttr, UnknownLoc
from xdsl.ir import Block, Region

from ..dialects import npu, tile
from ..runtime import encoding
from ..runtime.encoding import Program, ProgramError, Row
from ..runtime.target import Target
from .allocate import allocate_kernel
from .errors import BackendError, place
from .select import select_kernel
from .synchronise import synchronise_kernel


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A kernel's program with what docs/program.md §2 says of it.

    numbers: `l1`, `ub` (bytes), `ids`, `slots`. slot_locations: what each slot of the location table stands for; 0 is
    the kernel itself.
    """

    name: str
    program: Program
    numbers: dict[str, int]
    slot_locations: tuple[LocationAttr, ...]

    @property
    def binary(self) -> bytes:
        """The encoded program."""
        return encoding.encode(self.program)


def compile_kernel(kernel: tile.KernelOp, target: Target) -> CompiledKernel:
    """A tile kernel down to its program. Raises `BackendError`; leaves the kernel as it is."""
    selected = select_kernel(kernel)
    try:
        synchronise_kernel(selected)
    except BackendError as error:
        raise BackendError(f"{place(kernel)} @{kernel.sym_name.data}: {error}") from None
    allocate_kernel(selected, target)
    return encode_kernel(selected)


def encode_kernel(kernel: npu.KernelOp) -> CompiledKernel:
    """The program of a kernel. Raises `BackendError` if buffers are left, or if a row breaks a rule of the encoding."""
    program = npu_to_program(kernel)
    return CompiledKernel(kernel.sym_name.data, program, kernel.numbers, _slot_locations(kernel))


def npu_to_program(kernel: npu.KernelOp) -> Program:
    """The rows of a kernel."""
    program = tuple(_rows(kernel.body.block))
    try:
        encoding.check(program)
    except ProgramError as error:
        raise BackendError(f"{place(kernel)} @{kernel.sym_name.data}: {error}") from None
    return program


def _rows(block: Block) -> Iterator[Row]:
    for op in block.ops:
        if not isinstance(op, npu.RowOp) or op.placed:
            raise BackendError(f"{place(op)}: buffers need addresses before encoding (found one without); run allocate")
        yield Row(op.INSTRUCTION.name, op.fields.data, op.slot_number)
        if isinstance(op, npu.LoopOp):
            yield from _rows(op.body.block)
            yield Row("end", (), op.slot_number)


def _slot_locations(kernel: npu.KernelOp) -> tuple[LocationAttr, ...]:
    """By slot, the location of the first op that has it."""
    table: list[LocationAttr] = [kernel.location, *[UnknownLoc()] * (kernel.slots.data - 1)]
    for op in kernel.body.walk():
        if isinstance(op, npu.RowOp) and op.slot_number and isinstance(table[op.slot_number], UnknownLoc):
            table[op.slot_number] = op.location
    return tuple(table)


def program_to_npu(
    program: Program, name: str, arguments: tuple[str, ...] = (), *, l1: int = 0, ub: int = 0, ids: int = 0
) -> npu.KernelOp:
    """The kernel of a program that `encoding.check` accepts: the inverse of `npu_to_program`.

    A program does not say what its arguments and numbers are; they are taken from the manifest.
    """
    slots = 1 + max((row.slot for row in program), default=0)
    kernel = npu.KernelOp(name, arguments, l1=l1, ub=ub, ids=ids, slots=slots)
    blocks = [kernel.body.block]
    for row in program:
        if row.name == "end":
            blocks.pop()
            continue
        if row.name == "loop":
            op = npu.LoopOp.of(row.fields, row.slot, regions=[Region(Block())])
            blocks[-1].add_op(op)
            blocks.append(op.regions[0].block)
        else:
            blocks[-1].add_op(npu.OPS[row.name].of(row.fields, row.slot))
    return kernel


__all__ = ["CompiledKernel", "compile_kernel", "encode_kernel", "npu_to_program", "program_to_npu"]
