"""The artifact of a module whose kernels are compiled: where each tensor lies in global memory, and the steps.

The function `main` after `graph-to-tile` holds constants, reshapes (which move nothing), launches, what the host does,
branches and loops, and a return (`planner.py`). Temporaries get places by their lives (`memory.py`).
"""

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from ..dialects.graph.host import is_host
from ..dialects.graph.op import dtype_name, shape
from ..dialects.graph.structure import LaunchOp
from ..dialects.weights import WeightStore
from ..runtime.artifact import Artifact
from ..runtime.cpu import HOST
from ..runtime.plan import ALIGNMENT, Kernel, Metadata, Plan, Tensor
from ..runtime.target import Target
from .errors import BackendError
from .memory import Interval, plan_memory
from .planner import Planner, Storage, storage_of

_NUMPY = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "i8": "int8", "u8": "uint8", "i32": "int32", "i64": "int64",
    "b8": "bool", "i16": "int16", "u16": "uint16", "u32": "uint32", "u64": "uint64",
}  # fmt: skip
"""numpy's names of the types that callers see."""


def build_artifact(
    module: ModuleOp,
    kernels: Sequence[Kernel],
    slots: Mapping[str, Sequence[tuple[str, ...]]],
    store: WeightStore,
    target: Target,
    cores: int,
    binding: Mapping[str, int],
    metadata: Metadata,
    linked: bool = True,
) -> Artifact:
    """The artifact of a module whose kernels are compiled; `slots` has the ONNX nodes of each kernel's slots.

    Raises `BackendError` for an output that no launch writes.
    """
    functions, first = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}, dict[str, LaunchOp]()
    main = functions["main"]
    for op in module.walk():
        if isinstance(op, LaunchOp):
            first.setdefault(op.callee, op)
    planner = Planner(store, {kernel.name: n for n, kernel in enumerate(kernels)}, slots, functions, first)
    inputs, outputs = names_of(main)
    for name, argument, border in zip(inputs, main.body.block.args, _borders(main, "input_borders"), strict=True):
        planner.add(argument, storage_of(argument, name, "input", border=border))
    steps = tuple(planner.steps(main.body.block))
    results = _mark_outputs(planner, main, outputs)
    tensors, arena = _place(planner.storages)
    plan = Plan(binding, arena, steps, tuple(range(len(inputs))), tuple(results), linked)
    weights = {s.name: s.value for s in planner.storages if s.value is not None}
    host = tuple(planner.parts)
    return Artifact(target, tuple(kernels), tuple(tensors), weights, (plan,), metadata, cores, host=host)


def names_of(main: FuncOp) -> tuple[list[str], list[str]]:
    """Names of the model's inputs and outputs."""

    def read(key: str, count: int) -> list[str]:
        found = main.attributes.get(key)
        if isinstance(found, ArrayAttr):
            return [item.data for item in found if isinstance(item, StringAttr)]
        return [f"{key.split('_')[0]}{n}" for n in range(count)]

    return read("input_names", len(main.function_type.inputs)), read("output_names", len(main.function_type.outputs))


def _borders(main: FuncOp, key: str) -> list[str]:
    """The element types that callers see, as numpy calls them."""
    found = main.attributes.get(key)
    if isinstance(found, ArrayAttr):
        return [_NUMPY.get(item.data, item.data) for item in found if isinstance(item, StringAttr)]
    last = main.body.block.last_op
    assert last is not None
    return [_NUMPY[dtype_name(value)] for value in (main.body.block.args if key == "input_borders" else last.operands)]


def _mark_outputs(planner: Planner, main: FuncOp, names: Sequence[str]) -> list[int]:
    """Makes the storages of returned values outputs; one that is an input, or returned before, gets a second name."""
    returned = main.body.block.last_op
    assert returned is not None
    results: list[int] = []
    for name, value, border in zip(names, returned.operands, _borders(main, "output_borders"), strict=True):
        n = planner.of[value]
        storage = planner.storages[n]
        storage.last = planner.clock
        if storage.role == "weight":
            raise BackendError(f"output {name}: it is a constant; the pass border copies it")
        if storage.role == "temp":
            storage.name, storage.role, storage.border = name, "output", border
            storage.shape = storage.shape if is_host(value) else shape(value)
            results.append(n)
        else:
            results.append(len(planner.storages))
            planner.storages.append(Storage(name, "output", storage.dtype, shape(value), border=border, same_as=n))
    return results


def _place(storages: Sequence[Storage]) -> tuple[list[Tensor], int]:
    """Offsets: the arena (inputs, outputs, temporaries), then the weights."""
    arena = [n for n, s in enumerate(storages) if s.role != "weight" and s.same_as is None and s.dtype != HOST]
    # Inputs are there before the first step; every role shares the arena by its life.
    offsets, size = plan_memory(
        [Interval(storages[n].nbytes, storages[n].first, storages[n].last) for n in arena], ALIGNMENT
    )
    places = dict(zip(arena, offsets, strict=True))
    end = size
    for n, storage in enumerate(storages):
        if storage.role == "weight":
            places[n] = end
            end += -(-storage.nbytes // ALIGNMENT) * ALIGNMENT
        elif storage.same_as is not None:
            places[n] = places[storage.same_as]
        elif storage.dtype == HOST:
            places[n] = 0
    return [Tensor(s.name, s.dtype, s.shape, s.role, places[n], s.border) for n, s in enumerate(storages)], size
