"""For tests of the graph dialect: text to modules, and inputs for them."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func, FuncOp
from xdsl.parser import Parser

from stepwell.dialects.graph import Graph
from stepwell.dialects.graph.constants import NUMPY
from stepwell.dialects.graph.op import GraphOp, element, shape

Array = NDArray[Any]

# The least input of functions that are not defined, or too steep, below.
POSITIVE = {
    "graph.log": 0.1,
    "graph.sqrt": 0.1,
    "graph.rsqrt": 0.1,
    "graph.pow": 0.1,
    "graph.batch_norm": 0.1,
    "graph.reciprocal": 0.1,
    "graph.reduce_log_sum": 0.1,
    "graph.acosh": 1.1,
}


def parse(text: str) -> ModuleOp:
    """A module of graph IR, verified."""
    context = Context()
    for dialect in (Builtin, Func, Graph):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def around(example: str) -> str:
    """A function whose arguments are the operands %0, %1, … of an example."""
    operands = sorted(set(re.findall(r"%\d+", example.partition(" = ")[2].partition("{\n")[0])))
    signature = re.search(r": \((.*?)\) ->", example)
    types = re.findall(r"tensor<[^>]*>", signature.group(1)) if signature else []
    arguments = ", ".join(f"{name}: {kind}" for name, kind in zip(operands, types, strict=True))
    return f"func.func @main({arguments}) {{\n{example}\nfunc.return\n}}"


def only_function(module: ModuleOp) -> FuncOp:
    (function,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    return function


def example_op(example: str) -> GraphOp:
    """The op of an example, in its function."""
    op = only_function(parse(around(example))).body.block.first_op
    assert isinstance(op, GraphOp)
    return op


def random_inputs(op: GraphOp, seed: int = 0) -> list[Array]:
    """Arrays of the types of an op's operands."""
    rng = np.random.default_rng(seed)
    found = list[Array]()
    for operand in op.operands:
        values = np.asarray(rng.standard_normal(shape(operand)))
        kind = NUMPY[element(operand)]
        if kind == np.bool_:
            found.append(values > 0)
        elif kind.kind in "iu":
            found.append(np.asarray(rng.integers(1 if kind.kind == "u" else -9, 10, shape(operand))).astype(kind))
        else:
            least = POSITIVE.get(op.name)
            found.append((values if least is None else np.abs(values) + least).astype(kind))
    return found
