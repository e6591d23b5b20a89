"""Rows of attention of which every key is masked: what onnxruntime gives in f32, under each precision.

Where a whole row is minus infinity, its weights are no numbers in onnxruntime but for ONNX's Attention; those give 0.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

import stepwell

pytestmark = pytest.mark.xdist_group("device")
Array = NDArray[Any]
RNG = np.random.default_rng(11)
BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 3, 5, 7, 8
LOWEST = float(np.finfo(np.float32).min)
FILLINGS = (-10000.0, -65504.0, LOWEST)
ALLOWED = {"fp32": 1e-6, "fp16": 2e-3, "bf16": 1e-2}
"""Of the largest value."""


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


KEPT = RNG.random((BATCH, 1, QUERIES, KEYS)) < 0.7
KEPT[0, 0, 1], KEPT[1, 0, 3] = False, False
ROWS = {"q": floats(BATCH, QUERIES, HEADS * WIDTH)} | {x: floats(BATCH, KEYS, HEADS * WIDTH) for x in "kv"}
FOUR = {x: floats(BATCH, HEADS, QUERIES if x == "q" else KEYS, WIDTH) for x in "qkv"}


def masking(filling: float, kept: Array = KEPT) -> Array:
    return np.where(kept, 0.0, filling).astype(np.float32)


def model(nodes: Sequence[NodeProto], inputs: dict[str, Array], constants: dict[str, Any]) -> onnx.ModelProto:
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in inputs.items()
    ]
    known = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "one", infos, [helper.make_tensor_value_info("y", 1, None)], known)
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def check(nodes: Sequence[NodeProto], inputs: dict[str, Array], constants: dict[str, Any], precision: str) -> None:
    whole = model(nodes, inputs, constants)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(whole.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = np.asarray(session.run(None, inputs)[0])
    found = stepwell.run(stepwell.compile(whole, target="tiny", precision=precision, host=False), inputs)["y"]
    assert np.isfinite(wanted).all()
    assert np.isfinite(found).all()
    assert np.abs(found - wanted).max() <= ALLOWED[precision] * np.abs(wanted).max()


def written(masks: Sequence[NodeProto], masked: NodeProto) -> list[NodeProto]:
    """Attention as exporters write it; `masked` makes t of the scores s."""
    return [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["products"]),
        helper.make_node("Mul", ["products", "scale"], ["s"]),
        *masks,
        masked,
        helper.make_node("Softmax", ["t"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]


SCALE = {"scale": np.float32(WIDTH**-0.5)}
SUM = helper.make_node("Add", ["s", "m"], ["t"])
precisions = pytest.mark.parametrize("precision", ALLOWED)
fillings = pytest.mark.parametrize("filling", FILLINGS)


@precisions
@fillings
@pytest.mark.parametrize("computed", [True, False])
@pytest.mark.parametrize("operator", ["Attention", "MultiHeadAttention"])
def test_a_node_with_a_mask_that_is_added(operator: str, computed: bool, filling: float, precision: str) -> None:
    """ONNX's Attention takes the lowest number for minus infinity, so that the row is 0."""
    if operator == "Attention":
        node = helper.make_node(operator, ["q", "k", "v", "m"], ["y"], q_num_heads=HEADS, kv_num_heads=HEADS)
    else:
        names = ["q", "k", "v", "", "", "m"]
        node = helper.make_node(operator, names, ["y"], domain="com.microsoft", num_heads=HEADS)
    mask = {"m": masking(filling)}
    check([node], ROWS | mask if computed else ROWS, {} if computed else mask, precision)


@precisions
def test_a_node_whose_mask_says_which_keys_there_are(precision: str) -> None:
    kept = np.ones((BATCH, KEYS), np.int32)
    kept[0], kept[1, 4:] = 0, 0
    names = ["q", "k", "v", "", "kept"]
    node = helper.make_node("MultiHeadAttention", names, ["y"], domain="com.microsoft", num_heads=HEADS)
    check([node], ROWS | {"kept": kept}, {}, precision)


@precisions
@fillings
def test_a_mask_that_comes_in(filling: float, precision: str) -> None:
    check(written([], SUM), FOUR | {"m": masking(filling)}, SCALE, precision)


@precisions
@pytest.mark.parametrize("filling", FILLINGS[:2])
def test_two_masks(filling: float, precision: str) -> None:
    causal = masking(filling, np.tril(np.ones((1, 1, QUERIES, KEYS), bool)))
    both = helper.make_node("Add", ["m0", "m1"], ["m"])
    check(written([both], SUM), FOUR | {"m0": masking(filling), "m1": causal}, SCALE, precision)


@precisions
@fillings
def test_a_mask_of_the_keys_that_there_are(filling: float, precision: str) -> None:
    kept = np.ones((BATCH, 1, 1, KEYS), np.int64)
    kept[0], kept[1, ..., 4:] = 0, 0
    masks = [
        helper.make_node("Cast", ["kept"], ["ones"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["one", "ones"], ["hidden"]),
        helper.make_node("Mul", ["hidden", "filling"], ["m"]),
    ]
    constants = SCALE | {"one": np.float32(1), "filling": np.float32(filling)}
    check(written(masks, SUM), FOUR | {"kept": kept}, constants, precision)


@precisions
@fillings
@pytest.mark.parametrize("added", [True, False])
def test_a_mask_of_truth_values(added: bool, filling: float, precision: str) -> None:
    """Made a mask that is added, or put in place of scores."""
    where = helper.make_node("Where", ["kept", "zero" if added else "s", "filling"], ["m" if added else "t"])
    constants = SCALE | {"zero": np.float32(0), "filling": np.float32(filling)}
    nodes = written([where], SUM) if added else written([], where)
    check(nodes, FOUR | {"kept": KEPT}, constants, precision)


@precisions
def test_a_sum_that_is_held_above_the_lowest_number(precision: str) -> None:
    most = helper.make_node("Max", ["sum", "lowest"], ["t"])
    masks = [helper.make_node("Add", ["s", "m"], ["sum"])]
    check(written(masks, most), FOUR | {"m": masking(LOWEST)}, SCALE | {"lowest": np.float32(LOWEST)}, precision)
