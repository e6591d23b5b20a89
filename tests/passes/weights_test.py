"""Weights are repacked when a model is compiled, not when it runs."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from stepwell.dialects.graph.constants import ConstantOp, WeightOp
from stepwell.dialects.graph.structure import LaunchOp
from stepwell.driver import api


@pytest.mark.parametrize(("channels", "outputs", "groups"), [(20, 8, 1), (3, 40, 1), (33, 33, 33), (60, 960, 1)])
def test_no_launch_reads_constants_alone(channels: int, outputs: int, groups: int) -> None:
    weight = np.random.default_rng(0).standard_normal((outputs, channels // groups, 3, 3)).astype(np.float32)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = helper.make_node("Conv", ["x", "w"], ["y"], group=groups, pads=[1, 1, 1, 1])
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(weight, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    launches = [op for op in api.lower(model, to="graph").walk() if isinstance(op, LaunchOp)]
    assert launches
    for launch in launches:
        assert any(not isinstance(value.owner, (ConstantOp, WeightOp)) for value in launch.operands), launch
