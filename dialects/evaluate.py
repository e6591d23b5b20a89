"""Runs graph IR op by op: `evaluate` to the bit of docs/numerics.md, `reference` in float64 by the ops' own numpy.

    evaluate(module, [x], weights)            # the results of @main
    values = {}
    evaluate(module, [x], weights, values=values)      # and every value on the way

An operator is run by its structure: a loop nest by `run_nest`, a view by `run_view`, a recurrence by `run_recurrence`,
a composite by decomposing it in a scratch block and running the parts. So a new operator needs no code here.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from ..runtime.numerics import contract, host
from ..runtime.numerics.dtype import DType
from ..runtime.numerics.function import FN, RFN
from ..runtime.problem import Kind, UserError
from .evaluate_recurrence import run_recurrence
from .graph.constants import NUMPY, ConstantOp, WeightOp
from .graph.flow import IfOp, LoopOp
from .graph.host import DownloadOp, HostOp, UploadOp, is_host
from .graph.op import (
    Frame,
    GraphOp,
    Join,
    Lookup,
    Placement,
    Reshape,
    Strided,
    View,
    dtype_name,
    element,
    shape,
)
from .graph.structure import KernelOp, LaunchOp, YieldOp
from .loops import IndexMap, LoopNest, Map, MultiplyAdd, Reduce, Window
from .weights import WeightStore

Array = NDArray[Any]
Values = dict[SSAValue, Array]
Launch = Callable[[LaunchOp, Sequence[Array]], Sequence[Array]]
Run = Callable[[GraphOp, Sequence[Array]], Sequence[Array]]


class EvaluationError(UserError, ValueError):
    """IR that cannot be run: an op of another dialect, inputs that do not fit, a kernel that is missing."""

    KIND: ClassVar[Kind] = Kind.IR


# functions ------------------------------------------------------------------------------------------------------------


def evaluate(
    target: ModuleOp | FuncOp,
    inputs: Sequence[Array],
    weights: WeightStore | None = None,
    *,
    values: Values | None = None,
    launch: Launch | None = None,
) -> list[Array]:
    """The results of a function (of a module: `@main`), each rounded once per edge as docs/numerics.md says.

    `values` receives every value of the function itself. `launch` runs `graph.launch`; by default the kernel of that
    name in the same module is evaluated.
    """
    return _Run(entry(target), weights, _round, launch).function(inputs, values)


def reference(
    target: ModuleOp | FuncOp,
    inputs: Sequence[Array],
    weights: WeightStore | None = None,
    *,
    values: Values | None = None,
) -> list[Array]:
    """The same by the operators' `reference`: float64 throughout, integers as int64."""
    return _Run(entry(target), weights, _exact, None).function(inputs, values)


def entry(target: ModuleOp | FuncOp) -> FuncOp:
    """The function itself, or `@main` of a module."""
    return target if isinstance(target, FuncOp) else _lookup(target, "main")


def _lookup(module: Operation | None, name: str) -> FuncOp:
    if isinstance(module, ModuleOp):
        for op in module.body.block.ops:
            if isinstance(op, FuncOp) and op.sym_name.data == name:
                return op
    raise EvaluationError(f"@{name}: no function of the module has this name; name one that it holds")


def _round(op: GraphOp, operands: Sequence[Array]) -> Sequence[Array]:
    return op.evaluate_all(*operands)


def _exact(op: GraphOp, operands: Sequence[Array]) -> Sequence[Array]:
    """`reference` on values of 64 bits."""
    with np.errstate(all="ignore"):
        return [widened(array) for array in op.reference_all(*operands)]


def widened(array: Array) -> Array:
    """The type in which a reference computes: float64, int64 or bool."""
    if array.dtype == np.bool_:
        return array
    return array.astype(np.int64 if array.dtype.kind in "iu" else np.float64, copy=False)


class _Run:
    """One run of a function. A value is dropped after its last use, unless all are asked for."""

    def __init__(self, function: FuncOp, weights: WeightStore | None, run: Run, launch: Launch | None) -> None:
        self._function = function
        self._weights = weights
        self._run = run
        self._launch = launch
        self._convert = widened if run is _exact else np.asarray

    def function(self, inputs: Sequence[Array], values: Values | None) -> list[Array]:
        block = self._function.body.block
        if len(inputs) != len(block.args):
            name = self._function.sym_name.data
            raise EvaluationError(
                f"@{name}: takes {len(block.args)} inputs (found {len(inputs)}); give an array for each"
            )
        for i, (argument, array) in enumerate(zip(block.args, inputs, strict=True)):
            if is_host(argument):
                continue
            if array.shape != shape(argument) or (self._run is _round and array.dtype != NUMPY[element(argument)]):
                raise EvaluationError(
                    f"input {i}: is {argument.type} (found shape {list(array.shape)}, {array.dtype}); convert the array"
                )
        return self.block(block, inputs, {} if values is None else values, keep=values is not None)

    def block(self, block: Block, inputs: Sequence[Array], values: Values, keep: bool) -> list[Array]:
        """Runs a block; its terminator's operands are the results."""
        for argument, array in zip(block.args, inputs, strict=True):
            values[argument] = array if is_host(argument) else self._convert(array)
        left: dict[SSAValue, int] = {argument: _uses(argument) for argument in block.args}
        for op in block.ops:
            operands = [values[operand] for operand in op.operands]
            if isinstance(op, ReturnOp | YieldOp):
                return operands
            for result, array in zip(op.results, self.op(op, operands), strict=True):
                values[result] = array
                left[result] = _uses(result)
            for operand in () if keep else op.operands:
                left[operand] -= 1
                if left[operand] == 0:
                    del values[operand]
        raise EvaluationError("a function ends with func.return, a kernel with graph.yield (found neither)")

    def op(self, op: Operation, operands: Sequence[Array]) -> Sequence[Array]:
        """The results of one op."""
        match op:
            case GraphOp():
                return self._run(op, operands)
            case ConstantOp():
                return [self._convert(op.array)]
            case WeightOp():
                return [self._convert(self._weight(op))]
            case KernelOp():
                return self.block(op.block, operands, {}, keep=False)
            case LaunchOp():
                return self._launched(op, operands)
            case IfOp():
                (then, taken), (other, _) = op.branches
                split = 1 + len(taken)
                if operands[0].reshape(-1)[0]:
                    return self._call(then, operands[1:split])
                return self._call(other, operands[split:])
            case LoopOp():
                return self._loop(op, operands)
            case HostOp():
                return op.host_part(self._store(op)).run(operands)
            case UploadOp():
                return [self._convert(op.value(operands[0]))]
            case DownloadOp():
                return [op.value(operands[0])]
            case _:
                raise EvaluationError(
                    f"{op.name}: the graph evaluator does not run this op; evaluate the module before it"
                )

    def _call(self, name: str, operands: Sequence[Array]) -> Sequence[Array]:
        """The results of another function of the module."""
        function = _lookup(self._function.parent_op(), name)
        return _Run(function, self._weights, self._run, self._launch).function(operands, None)

    def _loop(self, op: LoopOp, operands: Sequence[Array]) -> Sequence[Array]:
        """The last states, and the rows of all steps; those of steps that there are none of are 0."""
        values = dict(zip(op.operands, operands, strict=True))
        states, rest = [values[v] for v in op.first_states], [values[v] for v in op.rest]
        most = None if op.count is None else int(values[op.count].reshape(-1)[0])
        going, step = op.condition is None or bool(values[op.condition].reshape(-1)[0]), 0
        rows: list[Sequence[Array]] = []
        while going and (most is None or step < most):
            number = self._convert(np.array(step, np.int32))
            found, *given = self._call(op.body.string_value(), [number, np.array(going), *states, *rest])
            states = given[: len(states)]
            rows.append(given[len(states) :])
            going, step = bool(found.reshape(-1)[0]), step + 1
        whole = [self._convert(np.zeros(shape(value), NUMPY[element(value)])) for value in op.results[len(states) :]]
        for place, made in enumerate(rows):
            for tensor, row in zip(whole, made, strict=True):
                tensor[place] = row
        return [*states, *whole]

    def _weight(self, op: WeightOp) -> Array:
        return self._store(op).get(op.handle.data)

    def _store(self, op: Operation) -> WeightStore:
        if self._weights is None:
            raise EvaluationError(f"{op.name}: no weight store was given; pass the one of this module")
        return self._weights

    def _launched(self, op: LaunchOp, operands: Sequence[Array]) -> Sequence[Array]:
        if self._launch is not None:
            return self._launch(op, operands)
        kernel = _lookup(self._function.parent_op(), op.callee)
        return _Run(kernel, self._weights, self._run, None).function(operands, None)


def _uses(value: SSAValue) -> int:
    return sum(1 for _ in value.uses)


# operators ------------------------------------------------------------------------------------------------------------


def evaluate_structure(op: GraphOp, operands: Sequence[Array]) -> Sequence[Array]:
    """The results of an operator by its structure."""
    kind = result_type(op)
    match op.structure():
        case "loops":
            return [run_nest(op.loops(), operands, shape(op.results[0]), kind)]
        case "view":
            return [run_view(op.view(), operands)]
        case "recurrence":
            return run_recurrence(op.recurrence(), operands)
        case _:
            return run_parts(op, operands)


def result_type(op: Operation) -> DType:
    """The type of an op's first result."""
    return DType.parse(dtype_name(op.results[0]))


def run_parts(op: GraphOp, operands: Sequence[Array]) -> Sequence[Array]:
    """A composite: its decomposition, built in a scratch block, and run."""
    block = Block(arg_types=op.operand_types)
    copy = op.clone(dict(zip(op.operands, block.args, strict=False)))
    copy.operands = block.args
    block.add_op(copy)
    results = copy.decompose(PatternRewriter(copy))
    values: Values = dict(zip(block.args, operands, strict=True))
    run = _Run(FuncOp("scratch", ([], [])), None, _round, None)
    for part in block.ops:
        if part is copy:
            break
        values.update(zip(part.results, run.op(part, [values[value] for value in part.operands]), strict=True))
    return [values[result] for result in results]


def run_view(view: View, operands: Sequence[Array]) -> Array:
    """The operands re-indexed."""
    match view:
        case Reshape():
            return np.ascontiguousarray(operands[0]).reshape(view.shape)
        case Join():
            return np.concatenate(operands, axis=view.axis)
        case Frame():
            return _framed(view, operands[0])
        case Lookup():
            return operands[0][_rows(view, view.shape, *operands)]
        case Placement():
            placed = np.array(operands[0])
            placed[_rows(view, operands[2].shape, placed, operands[1])] = operands[2]
            return placed
        case Strided():
            return _walked(view, operands[0])


def _framed(view: Frame, x: Array) -> Array:
    """What a frame cuts off is gone; the rest of it is the value."""
    framed = np.full(view.shape, view.value).astype(x.dtype)
    source, target = list[slice](), list[slice]()
    for here, there, place in zip(x.shape, view.shape, view.before, strict=True):
        low, high = max(0, place), min(there, here + place)
        target.append(slice(low, max(low, high)))
        source.append(slice(low - place, max(low, high) - place))
    framed[tuple(target)] = x[tuple(source)]
    return framed


def _rows(view: Lookup | Placement, size: Sequence[int], table: Array, index: Array) -> tuple[Array, ...]:
    """For each element of `size` its place in the table, an array for each axis. Raises `EvaluationError`."""
    order = [ax for ax in view.indices if ax is not None]
    spread = index.transpose(order)
    spread = spread.reshape([1 if ax is None else n for n, ax in zip(size, view.indices, strict=True)])
    rows = table.shape[view.axis]
    named = spread.astype(np.int64)
    if ((named < -rows) | (named >= rows)).any():
        wrong = named[(named < -rows) | (named >= rows)][0]
        raise EvaluationError(f"an index lies in [{-rows}, {rows}) (found {wrong})")
    places = dict.fromkeys(range(table.ndim), np.zeros([1] * len(size), np.int64))
    for j, ax in enumerate(view.axes):
        if ax is not None:
            places[ax] = np.arange(size[j]).reshape([-1 if i == j else 1 for i in range(len(size))])
    places[view.axis] = np.where(named < 0, named + rows, named)
    return tuple(places.values())


def _walked(view: Strided, x: Array) -> Array:
    """Each axis from its start by its step."""
    starts = [0] * x.ndim
    for i, start in zip(view.axes, view.starts, strict=True):
        if i is not None:
            starts[i] = start
    strides = [0 if i is None else step * x.strides[i] for i, step in zip(view.axes, view.steps, strict=True)]
    return _strided(x, starts, view.shape, strides).copy()


def run_nest(nest: LoopNest, operands: Sequence[Array], size: Sequence[int], kind: DType) -> Array:
    """A loop nest on arrays: a result of shape `size` and type `kind`."""
    match nest.kernel:
        case Map():
            views = [read(x, index, nest.bounds) for x, index in zip(operands, nest.inputs, strict=True)]
            fn, immediates = FN[nest.kernel.fn.upper()], _immediates(nest.kernel, operands)
            found = host.elementwise(fn, *views, *immediates, dtype=kind)
            return _written(found, range(len(nest.bounds)), nest, size)
        case Reduce():
            view = read(operands[0], nest.inputs[0], nest.bounds)
            found = host.reduce(RFN[nest.kernel.fn.upper()], view, nest.reduced, dtype=kind)
            return _written(found, _kept(nest), nest, size)
        case MultiplyAdd():
            return _contraction(nest, operands, size, kind)
        case Window():
            return _window(nest, operands[0], size, kind)


def read(x: Array, index: IndexMap, bounds: Sequence[int], fill: float = 0) -> Array:
    """x at `index` for every point of `bounds`, as a view; `fill` where the index lies outside x."""
    pads, starts, strides = list[tuple[int, int]](), list[int](), [0] * len(bounds)
    for size, ax in zip(x.shape, index, strict=True):
        reach = [coef * (bounds[dim] - 1) for dim, coef in ax.terms]
        low = ax.offset + sum(min(0, r) for r in reach)
        high = ax.offset + sum(max(0, r) for r in reach)
        pads.append((max(0, -low), max(0, high - size + 1)))
        starts.append(ax.offset + pads[-1][0])
    if any(before or after for before, after in pads):
        x = np.pad(x, pads, constant_values=fill)
    for place, ax in enumerate(index):
        for dim, coef in ax.terms:
            strides[dim] += coef * x.strides[place]
    return _strided(x, starts, bounds, strides)


def _strided(x: Array, starts: Sequence[int], size: Sequence[int], strides: Sequence[int]) -> Array:
    """A view of x from the element at `starts` on. Steps along an axis of extent 1 may be larger than any array."""
    base = x[tuple(slice(start, None) for start in starts)]
    strides = [stride if count > 1 else 0 for stride, count in zip(strides, size, strict=True)]
    return np.lib.stride_tricks.as_strided(base, tuple(size), strides, writeable=False)


def _immediates(kernel: Map, operands: Sequence[Array]) -> tuple[float | int, ...]:
    """The function's constants; of integers, clamped to their type."""
    if not kernel.immediates or DType.of(operands[0]).is_float:
        return kernel.immediates
    limits = np.iinfo(operands[0].dtype)
    return tuple(int(np.clip(value, limits.min, limits.max)) for value in kernel.immediates)


def _kept(nest: LoopNest) -> list[int]:
    """The dimensions of the result, in order."""
    return [dim for dim in range(len(nest.bounds)) if dim not in nest.reduced]


def _written(found: Array, dims: Sequence[int], nest: LoopNest, size: Sequence[int]) -> Array:
    """`found`, whose axes are `dims`, stored by the output map; what lies beyond `size` is dropped."""
    order = [dim for ax in nest.output for dim, _ in ax.terms]
    found = found.transpose([list(dims).index(dim) for dim in order])
    whole = [math.prod(nest.bounds[dim] for dim, _ in ax.terms) for ax in nest.output]
    found = found.reshape(whole)
    return found if tuple(whole) == tuple(size) else found[tuple(slice(n) for n in size)]


# contractions and windows ---------------------------------------------------------------------------------------------


def _contraction(nest: LoopNest, operands: Sequence[Array], size: Sequence[int], kind: DType) -> Array:
    """Σ a·b by `host.matmul` on [batch, m, k] and [batch, k, n], then the bias in f32 (i32) and the one rounding."""
    a, b = (read(x, index, nest.bounds) for x, index in zip(operands[:2], nest.inputs[:2], strict=True))
    used = [{dim for ax in index for dim, _ in ax.terms} for index in nest.inputs[:2]]
    kept = _kept(nest)
    batch = [dim for dim in kept if dim in used[0] and dim in used[1]]
    rows = [dim for dim in kept if dim not in used[1]]
    columns = [dim for dim in kept if dim not in used[0] and dim not in rows]
    wide = DType.F32 if DType.of(operands[0]).is_float else DType.I32
    left, right = _only(a, batch, rows, nest.reduced), _only(b, batch, nest.reduced, columns)
    if isinstance(nest.kernel, MultiplyAdd) and nest.kernel.depthwise and wide == DType.F32:
        sums = _by_channel(left, right)
    else:
        sums = host.matmul(left, right, dtype=wide)
    dims = [*batch, *rows, *columns]
    sums = sums.reshape([nest.bounds[dim] for dim in dims])
    if len(operands) < 3:
        return host.cast(_written(sums, dims, nest, size), kind)
    bias = read(operands[2], nest.inputs[2], nest.bounds)
    bias = bias[tuple(slice(None) if dim in kept else 0 for dim in range(len(nest.bounds)))]
    ordered = sums.transpose([dims.index(dim) for dim in kept])
    return _written(host.elementwise(FN.ADD, ordered, bias, dtype=kind), kept, nest, size)


def _only(view: Array, *groups: Sequence[int]) -> Array:
    """A matrix (a batch of them) from a view over all dimensions: a group is one axis, what is in none is at 0."""
    dims = [dim for group in groups for dim in group]
    picked = view[tuple(slice(None) if dim in dims else 0 for dim in range(view.ndim))]
    order = sorted(dims)
    extents = [math.prod(view.shape[dim] for dim in group) for group in groups]
    return picked.transpose([order.index(dim) for dim in dims]).reshape(extents)


def _by_channel(left: Array, right: Array) -> Array:
    """Depthwise: left [channels, m, taps], right [channels, taps, 1]; channels come in whole blocks of 16."""
    channels, rows, taps = left.shape
    blocks = channels // contract.BLOCK
    a = host.cast(left, DType.F32).reshape(blocks, contract.BLOCK, rows, taps)
    b = host.cast(right, DType.F32).reshape(blocks, contract.BLOCK, taps)
    a, b = np.ascontiguousarray(a.transpose(2, 0, 3, 1)), np.ascontiguousarray(b.transpose(0, 2, 1))
    sums = np.empty((rows, channels), np.float32)
    contract.depthwise(
        a.ctypes.data, channels * taps, b.ctypes.data, sums.ctypes.data, channels, rows, taps, channels, 1
    )
    return sums.T


def _window(nest: LoopNest, x: Array, size: Sequence[int], kind: DType) -> Array:
    """Taps combined one after the other; of a mean the sum is then divided by the count."""
    assert isinstance(nest.kernel, Window)
    largest = nest.kernel.fn == "max"
    view = read(x, nest.inputs[0], nest.bounds, -np.inf if largest else 0)
    kept, reduced = _kept(nest), nest.reduced
    taps = np.moveaxis(view, reduced, range(len(reduced)))
    extents = tuple(nest.bounds[dim] for dim in reduced)
    total = np.full(taps.shape[len(reduced) :], -np.inf if largest else 0, np.float32)
    for tap in np.ndindex(extents):
        total = host.elementwise(FN.MAX if largest else FN.ADD, total, taps[tap])
    if nest.kernel.fn != "mean":
        return _written(host.cast(total, kind), kept, nest, size)
    inside = read(np.ones(x.shape, np.float32), nest.inputs[0], nest.bounds)
    count = inside.sum(axis=reduced, dtype=np.float32)
    if nest.kernel.count_include_pad:
        count = np.full(count.shape, math.prod(extents), np.float32)
    return _written(host.elementwise(FN.DIV, total, count, dtype=kind), kept, nest, size)
