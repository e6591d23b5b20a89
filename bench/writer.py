"""Writes ONNX models as torch's exporter does: its names, its constants, its way with shapes."""

import zlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]
OPSET = 17


class Writer:
    """Nodes and initialisers of a model, in order. A value is the name of a node's output."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._scope: list[str] = []
        self._names: dict[str, int] = {}
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[onnx.TensorProto] = []

    @contextmanager
    def scope(self, name: str) -> Generator[None]:
        """Names within belong to a module: `/layer1/conv1/Conv`, `layer1.conv1.weight`."""
        self._scope.append(name)
        yield
        self._scope.pop()

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The result of a new node."""
        return self.nodes(operator, *inputs, outputs=1, **attributes)[0]

    def nodes(self, operator: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        """The results of a new node."""
        path = "/".join(["", *self._scope, operator])
        count = self._names.get(path, 0)
        self._names[path] = count + 1
        name = f"{path}_{count}" if count else path
        results = [f"{name}_output_{i}" for i in range(outputs)]
        self._nodes.append(helper.make_node(operator, list(inputs), results, name, **attributes))
        return results

    def constant(self, value: object, dtype: type[np.generic] = np.float32) -> str:
        """A `Constant` node, as the exporter writes scalars, shapes and indices."""
        return self.node("Constant", value=numpy_helper.from_array(np.asarray(value, dtype)))

    def weight(self, name: str, array: Array) -> str:
        """An initialiser of the module."""
        path = ".".join([*self._scope, name])
        self._initializers.append(numpy_helper.from_array(array, path))
        return path

    def normal(self, name: str, *shape: int, scale: float = 1.0, mean: float = 0.0) -> str:
        """An initialiser with normal values, which depend on the seed and its name alone."""
        return self.weight(name, self.random(name, *shape) * np.float32(scale) + np.float32(mean))

    def random(self, name: str, *shape: int) -> Array:
        """Standard normal values for a parameter."""
        key = zlib.crc32(".".join([*self._scope, name]).encode())
        return np.random.default_rng([self._seed, key]).standard_normal(shape, np.float32)

    def model(
        self,
        inputs: Mapping[str, tuple[type[np.generic], Sequence[int]]],
        outputs: Mapping[str, tuple[str, Sequence[int]]],
    ) -> onnx.ModelProto:
        """The model: inputs by name with their types and shapes, f32 outputs by name with their values and shapes."""
        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
            for name, (dtype, shape) in inputs.items()
        ]
        results = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, (_, shape) in outputs.items()
        ]
        renamed = {value: name for name, (value, _) in outputs.items()}
        for node in self._nodes:
            for names in (node.input, node.output):
                for i, name in enumerate(names):
                    names[i] = renamed.get(name, name)
        graph = helper.make_graph(self._nodes, "main_graph", infos, results)
        while self._initializers:  # moved, not copied, one by one
            graph.initializer.append(self._initializers.pop(0))
        model = helper.make_model_gen_version(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version, model.producer_name = 8, "stepwell.bench"
        return model
