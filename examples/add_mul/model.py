"""Writes add_mul.onnx: z = (x + y)·y, two nodes that have names of their own."""

import onnx
from onnx import TensorProto, helper

shape = [96, 64]
nodes = [
    helper.make_node("Add", ["x", "y"], ["s"], name="sum"),
    helper.make_node("Mul", ["s", "y"], ["z"], name="product"),
]
inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
outputs = [helper.make_tensor_value_info("z", TensorProto.FLOAT, shape)]
graph = helper.make_graph(nodes, "add_mul", inputs, outputs)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), "add_mul.onnx")
