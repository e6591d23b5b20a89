"""The graph dialect: operations on whole tensors, one file per family.

| file | what is in it |
|---|---|
| `op.py` | `GraphOp`, the base: read it first |
| `elementwise.py`, `arithmetic.py`, `activations.py` | functions of the vector engine, element by element |
| `composites.py` | functions of one operand that are made of these |
| `contract.py` | matrix product and channels-last convolutions, as machines see them |
| `conv.py`, `conv_transpose.py`, `pool.py` | windows as ONNX has them, NCHW, and the primitive of pooling |
| `windows.py` | numbers of a window: defaults, `auto_pad`, more or fewer than two axes |
| `reduce.py`, `reduce_roots.py`, `norm.py` | reductions, and what is made of them: softmax, normalisations |
| `recurrent.py`, `recurrence.py` | LSTM, GRU, RNN, and the primitive that runs their time steps |
| `views.py` | what only moves elements |
| `gather.py` | what moves elements to or from where an index tensor says |
| `resize.py`, `sample.py`, `scan.py` | resampling of an axis; samples at computed places; running sums |
| `packed.py` | products with weights of packed integers |
| `quantize.py`, `float8.py` | between floats and the integers that stand for them; floats of 8 bits |
| `constants.py` | constants, in the text or in the weight store |
| `structure.py` | fused kernels and their launch |
| `host.py` | what stays on the CPU, and the transfers |
| `flow.py` | branches and loops that values decide |
| `syntax.py`, `properties.py`, `emit.py` | how an op reads, its properties in Python, how one decomposes |
"""

from xdsl.ir import Dialect

from . import (
    activations,
    arithmetic,
    composites,
    constants,
    contract,
    conv,
    conv_transpose,
    elementwise,
    float8,
    flow,
    gather,
    host,
    norm,
    packed,
    pool,
    quantize,
    recurrence,
    recurrent,
    reduce,
    reduce_roots,
    resize,
    sample,
    scan,
    structure,
    views,
)
from .op import GraphOp

FAMILIES = (
    *(elementwise, arithmetic, activations, composites),
    *(contract, packed, conv, conv_transpose, pool, reduce, reduce_roots, norm, recurrent, recurrence),
    views,
    gather,
    resize,
    sample,
    scan,
    quantize,
    float8,
)
"""The modules that hold operators, in the order of the documentation."""

OPERATORS: tuple[type[GraphOp], ...] = tuple(
    kind
    for family in FAMILIES
    for kind in vars(family).values()
    if isinstance(kind, type)
    and issubclass(kind, GraphOp)
    and "name" in vars(kind)
    and kind.__module__ == family.__name__
)
"""Every operator, that is every class of a family with a name."""

Graph = Dialect(
    "graph",
    [
        *OPERATORS,
        *(constants.ConstantOp, constants.WeightOp),
        *(structure.KernelOp, structure.YieldOp, structure.LaunchOp),
        *(host.HostOp, host.UploadOp, host.DownloadOp),
        *(flow.IfOp, flow.LoopOp),
    ],
    [host.HostValueType],
)

__all__ = ["FAMILIES", "OPERATORS", "Graph", "GraphOp"]
