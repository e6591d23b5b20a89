"""How fast a model could be on a target, from the ONNX model and the target alone.

**Bound A** is the sum of the rooflines of kernels, in one fixed partition of the model:

- Conv, ConvTranspose, MatMul and Gemm each begin a kernel. An elementwise operator (batch normalisation is one) belongs
  to the kernel of its latest operand: product + bias + normalisation + activation + add are one kernel.
- Softmax, a normalisation, a pool, a reduction, a resize is a kernel with the elementwise operators that follow it.
  Reductions over the last axis with only elementwise operators between them are one: a normalisation written in parts.
  What they are of (the square of a value that is needed anyway) belongs to them.
- Elementwise operators of the model's inputs are a kernel, or belong to the reduction that follows.
- Views (reshape, transpose, slice, split, concat, expand …) and what is constant cost nothing.

The roofline of a kernel is the largest of

    cube      MACs ÷ peak rate of the cubes in use; depthwise ones ÷ the rate of `mma_dw`
    gm        bytes ÷ bandwidth: each operand and each result once, floats of the policy's size; of a table that is
              gathered from, the rows taken
    vector    passes × bytes ÷ vector bytes of the cores in use; passes are those of the ISA's functions. What a drain
              does in passing is free (bias, scale, normalisation, ReLU, clip of a product). Values inside kernels that
              reduce are f32 (docs/numerics.md §2), others of the policy's size

A is no lower bound: a compiler that keeps values on chip from one of these kernels to the next may be faster.

**Bound B** is one: of the whole network the larger of MACs ÷ peak and (weights + inputs + outputs) ÷ bandwidth.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

from stepwell.bench.onnx_graph import Graph, GraphError, Node, Value
from stepwell.runtime.numerics.functions import FUNCTIONS
from stepwell.runtime.target import Target

REDUCTIONS = frozenset(
    {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare", "ReduceProd"}
)
COMPOSITES = {
    "Softmax": 8 + FUNCTIONS["exp"].passes - 1,  # max, sub, exp, sum, div
    "LogSoftmax": 4 + FUNCTIONS["exp"].passes,
    "LayerNormalization": 6 + FUNCTIONS["div"].passes,  # mean, sub, mul, mean, div, mul, add
    "InstanceNormalization": 6 + FUNCTIONS["div"].passes,
    "GroupNormalization": 6 + FUNCTIONS["div"].passes,
}
"""Passes of operators that reduce and do more."""
FREE_IN_DRAIN = frozenset({"Add", "Sub", "Mul", "Div", "BatchNormalization", "Relu", "Clip", "Cast"})
"""What a drain does in passing, if the other operands are constant."""
_FUNCTION = {
    "BatchNormalization": "affine",
    "Cast": "copy",
    "Equal": "eq",
    "Gather": "copy",
    "Greater": "gt",
    "GreaterOrEqual": "ge",
    "Less": "lt",
    "LessOrEqual": "le",
    "PRelu": "leakyrelu",
    "Swish": "silu",
}
"""Elementwise operators that the ISA calls differently."""
_SIZES = {"fp16": 2, "bf16": 2, "fp32": 4}
_DEPTHWISE_CHANNELS = 16
"""Of `mma_dw`, in a cycle."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Rates of the cores in use, per cycle, at the precision of a policy."""

    cores: int
    macs: float
    depthwise: float
    gm_bytes: float
    vector_bytes: float
    size: int
    """Bytes of a float."""

    @staticmethod
    def of(target: Target, cores: int | None = None, precision: str = "fp16") -> "Machine":
        """Of all cores by default."""
        count = cores or target.cores
        wide = precision == "fp32"
        cost = (target.cube_cost_f32 or 1) if wide else 1
        rate = target.cube_m * target.cube_n * (target.cube_k_f32 if wide else target.cube_k_f16)
        return Machine(
            cores=count,
            macs=count * rate / cost,
            depthwise=count * target.cube_m * _DEPTHWISE_CHANNELS / cost,
            gm_bytes=min(target.gm_port, count * target.gm_path),
            vector_bytes=float(count * target.vector_bytes),
            size=_SIZES[precision],
        )


@dataclass
class Kernel:
    """A part of the partition, and what it has to do."""

    anchor: Node
    """The operator that it is named after."""
    nodes: list[Node] = field(default_factory=list[Node])
    macs: int = 0
    depthwise: int = 0
    gm_bytes: int = 0
    vector_bytes: float = 0.0
    """Passes × bytes."""

    @property
    def is_product(self) -> bool:
        return bool(self.macs or self.depthwise)

    @property
    def reduces(self) -> bool:
        return any(node.operator in REDUCTIONS or node.operator in COMPOSITES for node in self.nodes)

    def needs(self, machine: Machine) -> dict[str, float]:
        """Cycles by resource."""
        return {
            "cube": self.macs / machine.macs + self.depthwise / machine.depthwise,
            "gm": self.gm_bytes / machine.gm_bytes,
            "vector": self.vector_bytes / machine.vector_bytes,
        }

    def roofline(self, machine: Machine) -> float:
        """Cycles of the resource that is needed longest."""
        return max(self.needs(machine).values())


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of a model on a machine."""

    machine: Machine
    kernels: Sequence[Kernel]
    compulsory: int
    """Bytes of weights, inputs and outputs."""

    @property
    def macs(self) -> int:
        return sum(kernel.macs + kernel.depthwise for kernel in self.kernels)

    @property
    def a(self) -> float:
        """Cycles, in the fixed partition."""
        return sum(kernel.roofline(self.machine) for kernel in self.kernels)

    @property
    def b(self) -> float:
        """Cycles that no program can do without."""
        return max(self.macs / self.machine.macs, self.compulsory / self.machine.gm_bytes)


def bounds(graph: Graph, machine: Machine) -> Bounds:
    """Both bounds. Raises `GraphError` for an operator whose work is not known."""
    kernels = partition(graph)
    for kernel in kernels:
        kernel.vector_bytes = sum(_vector_bytes(kernel, node, machine.size) for node in kernel.nodes)
    read = _count_bytes(graph, kernels, machine.size)
    borders = {value.name: value for value in graph.inputs + graph.outputs}
    return Bounds(machine, kernels, read + sum(value.nbytes(machine.size) for value in borders.values()))


# the partition --------------------------------------------------------------------------------------------------------


def partition(graph: Graph) -> list[Kernel]:
    """The kernels of a model, in order. Raises `GraphError`."""
    kernels: list[Kernel] = []
    made_by: dict[str, int] = {}
    users = _users(graph)
    for node in graph.nodes:
        sources = [source for value in node.inputs for source in graph.sources(value)]
        latest = max((made_by[source.name] for source in sources if source.name in made_by), default=-1)
        if latest < 0 or not _joins(node, kernels[latest], sources, users):
            latest = len(kernels)
            kernels.append(Kernel(node))
        kernel = kernels[latest]
        kernel.nodes.append(node)
        if not _is_elementwise(node) and _is_elementwise(kernel.anchor):
            kernel.anchor = node
        macs, depthwise = _macs(node)
        kernel.macs, kernel.depthwise = kernel.macs + macs, kernel.depthwise + depthwise
        made_by |= {value.name: latest for value in node.outputs}
    return kernels


def _joins(node: Node, kernel: Kernel, sources: Sequence[Value], users: dict[str, list[Node]]) -> bool:
    """Whether an operator belongs to the kernel of its latest operand."""
    if node.operator in REDUCTIONS or node.operator in COMPOSITES:
        by_rows = _over_rows(node) and all(_over_rows(other) for other in kernel.nodes if not _is_elementwise(other))
        return by_rows and not kernel.is_product and (node.operator in REDUCTIONS or _is_elementwise(kernel.anchor))
    if not _is_elementwise(node):
        return False
    then = users.get(node.outputs[0].name, [])
    for_reduction = len(then) == 1 and then[0].operator in REDUCTIONS and kernel.is_product
    return not (for_reduction and all(len(users[source.name]) > 1 for source in sources if not source.constant))


def _is_elementwise(node: Node) -> bool:
    return _FUNCTION.get(node.operator, node.operator.lower()) in FUNCTIONS


def _over_rows(node: Node) -> bool:
    """Whether a reduction is over the last axis."""
    if node.operator not in REDUCTIONS:
        return node.operator in COMPOSITES and int(node.attributes.get("axis", -1)) in (
            -1,
            len(node.inputs[0].shape) - 1,
        )
    (value, *_), result = node.inputs, node.outputs[0].shape
    return len(result) in (len(value.shape), len(value.shape) - 1) and prod(result) * value.shape[-1] == value.elements


def _users(graph: Graph) -> dict[str, list[Node]]:
    """The nodes that take each value, also by way of views."""
    users: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in {source.name for value in node.inputs for source in graph.sources(value)}:
            users.setdefault(name, []).append(node)
    return users


# the work -------------------------------------------------------------------------------------------------------------


def _macs(node: Node) -> tuple[int, int]:
    """Multiply-accumulates, and depthwise ones."""
    if node.operator not in ("Conv", "ConvTranspose", "MatMul", "Gemm"):
        return 0, 0
    left, right, result = node.inputs[0], node.inputs[1], node.outputs[0]
    if node.operator == "MatMul":
        return result.elements * left.shape[-1], 0
    if node.operator == "Gemm":
        return result.elements * left.shape[0 if node.attributes.get("transA") else 1], 0
    taps = prod(right.shape[1:])  # of a transposed convolution: channels out of each group, times the kernel
    macs = (result if node.operator == "Conv" else left).elements * taps
    return (0, macs) if int(node.attributes.get("group", 1)) == left.shape[1] > 1 else (macs, 0)


def _passes(node: Node) -> float:
    """Vector passes × elements, of a node by itself. Raises `GraphError`."""
    (first, *others), result = node.inputs, node.outputs[0]
    if node.operator in COMPOSITES:
        return first.elements * COMPOSITES[node.operator]
    if node.operator in REDUCTIONS or node.operator.startswith("Global"):
        return first.elements
    if node.operator in ("MaxPool", "AveragePool"):
        return result.elements * prod(node.attributes["kernel_shape"])
    if node.operator == "Resize":
        return result.elements * (1 if node.attributes.get("mode", b"nearest") == b"nearest" else 4)
    if not _is_elementwise(node):
        raise GraphError(
            f"{node.name}: the vector passes of {node.operator} must be known to bench/bounds.py (found none)"
        )
    by_constant = node.operator in ("Div", "Pow") and all(value.constant for value in others)  # a product
    return result.elements * (
        1 if by_constant else FUNCTIONS[_FUNCTION.get(node.operator, node.operator.lower())].passes
    )


def _vector_bytes(kernel: Kernel, node: Node, size: int) -> float:
    if kernel.is_product:
        varying = sum(not value.constant for value in node.inputs)
        if node is kernel.anchor or (node.operator in FREE_IN_DRAIN and varying == 1):
            return 0.0
    return _passes(node) * (4 if kernel.reduces else size)


def _count_bytes(graph: Graph, kernels: Sequence[Kernel], size: int) -> int:
    """Sets the bytes of each kernel. The result: bytes of all weights."""
    made_by = {value.name: n for n, kernel in enumerate(kernels) for node in kernel.nodes for value in node.outputs}
    results = {source.name: source for value in graph.outputs for source in graph.sources(value)}
    weights: dict[str, int] = {}
    for number, kernel in enumerate(kernels):
        read: dict[str, tuple[int, dict[str, int]]] = {}
        for node in kernel.nodes:
            for value in _operands(node):
                for source in graph.sources(value):
                    if made_by.get(source.name) == number:
                        continue
                    results[source.name] = source
                    views = read.setdefault(source.name, (source.nbytes(size), {}))[1]
                    views[value.name] = value.nbytes(size)
        counted = {name: min(whole, sum(views.values())) for name, (whole, views) in read.items()}
        kernel.gm_bytes = sum(counted.values())
        for name in counted:
            if results[name].constant:
                weights[name] = max(weights.get(name, 0), counted[name])
    for name, value in results.items():
        if name in made_by:
            kernels[made_by[name]].gm_bytes += value.nbytes(size)
    return sum(weights.values())


def _operands(node: Node) -> Sequence[Value]:
    """What a node reads: of a batch normalisation no parameters, which are folded into the product; of a table as much
    as is taken."""
    if node.operator == "BatchNormalization":
        return node.inputs[:1]
    if node.operator == "Gather":
        table, indices = node.inputs
        return [replace(node.outputs[0], name=f"{table.name}/rows", constant=table.constant), indices]
    return node.inputs
