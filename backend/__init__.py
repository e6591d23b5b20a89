"""From tile kernels to encoded instructions: selection, synchronisation, addresses, the artifact."""

from .encode import CompiledKernel, compile_kernel, npu_to_program, program_to_npu
from .errors import BackendError

__all__ = ["BackendError", "CompiledKernel", "compile_kernel", "npu_to_program", "program_to_npu"]
