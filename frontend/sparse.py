"""Sparse constants of a model, `sparse_initializer` of graphs and `sparse_value` of Constant nodes, as dense ones.

A sparse tensor has values, and of each its place in the dense one: `indices` of shape [n] count elements in row-major
order, those of shape [n, rank] have a place along each axis. All other elements are 0.
"""

from collections.abc import Iterable, Iterator
from math import prod
from pathlib import Path

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, helper, numpy_helper

from ..dialects.graph.host_model import graphs_of
from ..runtime.problem import Kind, Problem
from .model_file import Array, to_array
from .problems import ImportProblems

MOST_BYTES = 2**30
"""Of all sparse constants of a model when they are written out."""

AGAIN = "mend the model or export it again"


def dense(model: ModelProto, folder: Path | None, most: int | None = None) -> ModelProto:
    """The model without sparse constants; the same one if it has none. With `most`, a dense initialiser of the main
    graph that is of more bytes has no data. Raises `ImportProblems` and `ModelFileError`."""
    if not _is_sparse(model.graph) and not any(_has_sparse(function.node) for function in model.functions):
        return model
    made = ModelProto()
    made.CopyFrom(model)
    work = _Dense(folder)
    work.graph(made.graph, most)
    for function in made.functions:
        work.nodes(function.node)
    if work.problems:
        raise ImportProblems(work.problems)
    return made


def _is_sparse(graph: GraphProto) -> bool:
    return bool(graph.sparse_initializer) or _has_sparse(graph.node)


def _has_sparse(nodes: Iterable[NodeProto]) -> bool:
    attributes = (attribute for node in nodes for attribute in node.attribute)
    return any(a.type == onnx.AttributeProto.SPARSE_TENSOR or any(map(_is_sparse, graphs_of(a))) for a in attributes)


class _Dense:
    """Changes graphs and nodes in place, and collects what is wrong."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._bytes = 0
        self.problems: list[Problem] = []

    def graph(self, graph: GraphProto, most: int | None = None) -> None:
        """The initialisers of a graph, and its nodes."""
        for sparse in graph.sparse_initializer:
            graph.initializer.append(self._tensor(sparse, sparse.values.name, most))
        graph.ClearField("sparse_initializer")
        self.nodes(graph.node)

    def nodes(self, nodes: Iterable[NodeProto]) -> None:
        """Constants among the nodes, and the graphs of the others."""
        for node in nodes:
            for attribute in node.attribute:
                if attribute.name == "sparse_value" and attribute.type == onnx.AttributeProto.SPARSE_TENSOR:
                    tensor = self._tensor(attribute.sparse_tensor, node.name or node.op_type)
                    attribute.CopyFrom(helper.make_attribute("value", tensor))
                for graph in graphs_of(attribute):
                    self.graph(graph)

    def _tensor(self, sparse: SparseTensorProto, name: str, most: int | None = None) -> TensorProto:
        """The dense tensor; one without data if that is too large or wrong."""
        shape, kind = list(sparse.dims), sparse.values.data_type
        made = TensorProto(name=name, data_type=kind, dims=shape)
        values = to_array(sparse.values, self._folder)
        for rule, found, of in _faults(values, shape):
            self.problems.append(Problem(f"{name}: {rule} (found {found}); {AGAIN}", of, name))
            return made
        nbytes = prod(shape) * values.itemsize
        self._bytes += nbytes
        if self._bytes > MOST_BYTES:
            rule = f"{name}: sparse constants have at most {MOST_BYTES:,} bytes together when they are written out"
            line = f"{rule} (found {self._bytes:,} with this one, of shape {shape}); take smaller sizes"
            self.problems.append(Problem(line, Kind.MEMORY, name))
            return made
        places = self._places(sparse.indices, shape, values.size)
        if isinstance(places, str):
            self.problems.append(Problem(f"{name}: {places}; {AGAIN}", Kind.FILE, name))
            return made
        if most is not None and nbytes > most:
            return made
        array = np.zeros(prod(shape), values.dtype)
        array[places] = values
        return numpy_helper.from_array(array.reshape(shape), name)

    def _places(self, indices: TensorProto, shape: list[int], count: int) -> "Array | str":
        """Of each value its place in row-major order; or what is wrong."""
        given = to_array(indices, self._folder)
        if given.dtype.kind != "i":
            return f"the indices of a sparse constant are integers (found {given.dtype})"
        if given.shape not in ((count,), (count, len(shape))):
            wanted = f"[{count}] or [{count}, {len(shape)}]"
            return f"the indices of {count} values are of shape {wanted} (found {list(given.shape)})"
        extents = np.array(shape if given.ndim == 2 else [prod(shape)])
        rows = given.reshape(count, extents.size)
        outside = ((rows < 0) | (rows >= extents)).any(axis=1)
        if outside.any():
            return f"the indices of a sparse constant lie in its shape {shape} (found {given[outside][0].tolist()})"
        places = np.ravel_multi_index(tuple(rows.T), tuple(extents)) if count else np.zeros(0, np.int64)
        found, often = np.unique(places, return_counts=True)
        if found.size < count:
            twice = given[places == found[often > 1][0]][0].tolist()
            return f"each index of a sparse constant is there once (found {twice} again)"
        return places


def _faults(values: Array, shape: list[int]) -> Iterator[tuple[str, object, Kind]]:
    if values.ndim != 1:
        yield "the values of a sparse constant have one axis", f"shape {list(values.shape)}", Kind.FILE
    if values.dtype.kind in "OUS":
        yield "a sparse constant holds numbers", "texts", Kind.DTYPE
    if not shape or min(shape) < 0:
        yield "a sparse constant has axes, of extents of 0 or more", f"shape {shape}", Kind.FILE
