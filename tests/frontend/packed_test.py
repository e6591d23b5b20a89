"""Products with weights of few bits: they stay packed where they are large, to the bits that floats would give."""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp

import stepwell
from stepwell.dialects.graph.contract import MatMulOp
from stepwell.dialects.graph.op import GraphOp
from stepwell.dialects.graph.packed import PackedMatMulOp
from stepwell.driver.assess import assess
from stepwell.frontend import packed
from stepwell.frontend.onnx import ImportProblems, import_onnx

pytestmark = pytest.mark.xdist_group("device")
Array = NDArray[Any]


def model_of(
    nodes: Sequence[onnx.NodeProto], known: dict[str, Array], m: Sequence[int], n: int, kind: int = TensorProto.FLOAT
) -> onnx.ModelProto:
    """x [.., k] to y [.., n]."""
    graph = helper.make_graph(
        nodes,
        "packed",
        [helper.make_tensor_value_info("x", kind, m)],
        [helper.make_tensor_value_info("y", kind, [*m[:-1], n])],
        [numpy_helper.from_array(value, name) for name, value in known.items()],
    )
    opsets = [helper.make_opsetid("", 25), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def nbits(
    m: Sequence[int],
    n: int,
    bits: int = 4,
    block: int = 32,
    zeros: str = "",
    kind: Any = np.float32,
    bias: bool = False,
) -> onnx.ModelProto:
    """One MatMulNBits; zero points are `packed`, `floats` or absent."""
    k = m[-1]
    rng, blocks = np.random.default_rng(n + k), -(-k // block)
    known: dict[str, Array] = {
        "w": rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8),
        "s": (np.abs(rng.standard_normal((n, blocks))) / 16).astype(kind),
    }
    names = ["x", "w", "s", "", "", ""]
    if zeros:
        names[3] = "z"
        packed_zeros = rng.integers(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8)
        known["z"] = packed_zeros if zeros == "packed" else (rng.standard_normal((n, blocks)) + 7).astype(kind)
    if bias:
        names[5], known["b"] = "b", rng.standard_normal(n).astype(kind)
    while not names[-1]:
        names.pop()
    node = helper.make_node(
        "MatMulNBits", names, ["y"], "product", domain="com.microsoft", N=n, K=k, bits=bits, block_size=block
    )
    return model_of([node], known, m, n, helper.np_dtype_to_tensor_dtype(np.dtype(kind)))


def dequantised(
    operator: str, m: int, n: int, k: int, weight: Any, axis: int | None, block: int = 0, zero: bool = True,
    transposes: bool = False, scale: Any = np.float32, domain: str = "", **attributes: Any,
) -> onnx.ModelProto:  # fmt: skip
    """A DequantizeLinear of a constant, and a MatMul or Gemm of it; `axis` None: one scale."""
    rng = np.random.default_rng(n + k)
    size = (n, k) if attributes.get("transB") or transposes else (k, n)
    low, high = {"int4": (-8, 8), "uint4": (0, 16), "int8": (-128, 128), "uint8": (0, 256)}[np.dtype(weight).name]
    known = {"q": rng.integers(low, high, size).astype(weight)}
    parameters: tuple[int, ...] = () if axis is None else (size[axis],)
    if block and axis is not None:
        parameters = tuple(-(-extent // block) if i == axis else extent for i, extent in enumerate(size))
    known["s"] = (np.abs(rng.standard_normal(parameters)) / 16 + 0.01).astype(scale)
    if zero:
        known["z"] = rng.integers(low, high, parameters).astype(weight)
    given: dict[str, Any] = {} if axis is None else {"axis": axis, **({"block_size": block} if block else {})}
    names = ["q", "s", "z"][: 2 + zero]
    nodes = [helper.make_node("DequantizeLinear", names, ["w"], "weights", domain=domain, **given)]
    if transposes:
        nodes.append(helper.make_node("Transpose", ["w"], ["wt"], "turn", perm=[1, 0]))
    operands = ["x", "wt" if transposes else "w"]
    if operator == "Gemm":
        operands, known["c"] = [*operands, "c"], rng.standard_normal(n).astype(scale)
    nodes.append(helper.make_node(operator, operands, ["y"], "product", **attributes))
    return model_of(nodes, known, [m, k], n, helper.np_dtype_to_tensor_dtype(np.dtype(scale)))


def products(model: onnx.ModelProto) -> list[type[GraphOp]]:
    module, _ = import_onnx(model)
    return kinds(module)


def kinds(module: ModuleOp) -> list[type[GraphOp]]:
    return [type(op) for op in module.walk() if isinstance(op, MatMulOp | PackedMatMulOp) or op.name == "graph.gemm"]  # type: ignore[misc]


def result(model: onnx.ModelProto, target: str = "edge", precision: str = "fp16") -> Array:
    return stepwell.run(stepwell.compile(model, target=target, precision=precision), {"x": operand(model)})["y"]


def operand(model: onnx.ModelProto) -> Array:
    info = model.graph.input[0].type.tensor_type
    size = [dim.dim_value for dim in info.shape.dim]
    values = np.random.default_rng(7).standard_normal(size)
    return values.astype(helper.tensor_dtype_to_np_dtype(info.elem_type))


def as_floats(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch, **how: str) -> Array:
    """The result with floats, as the import makes them of small weights."""
    with monkeypatch.context() as patch:
        patch.setattr(packed, "LEAST", 1 << 40)
        assert PackedMatMulOp not in products(model)
        return result(model, **how)


def same_bits(a: Array, b: Array) -> None:
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a.view(f"u{a.itemsize}"), b.view(f"u{b.itemsize}"))


FORMS = [
    nbits([1, 512], 160),
    nbits([7, 333], 201, block=16, zeros="packed"),
    nbits([128, 200], 330, block=64),
    nbits([2, 3, 520], 130, block=128, zeros="packed", bias=True),
    nbits([5, 256], 300, block=256, kind=np.float16),
    nbits([5, 272], 300, block=16, kind=np.float16, zeros="packed", bias=True),
    nbits([3, 400], 200, bits=8, block=32),
    nbits([3, 400], 200, bits=8, block=64, zeros="packed"),
    nbits([3, 400], 200, bits=2, block=32),
    nbits([3, 400], 200, bits=2, block=32, zeros="packed"),
    dequantised("MatMul", 3, 300, 250, ml_dtypes.int4, 0, 32),
    dequantised("MatMul", 3, 300, 250, ml_dtypes.uint4, 1),
    dequantised("MatMul", 1, 300, 251, ml_dtypes.int4, None, zero=False),
    dequantised("MatMul", 1, 300, 250, np.int8, 1, zero=False),
    dequantised("MatMul", 1, 300, 250, np.uint8, 0, 128),
    dequantised("MatMul", 2, 300, 250, ml_dtypes.int4, 1, 64, transposes=True),
    dequantised("MatMul", 2, 300, 250, np.uint8, 1, domain="com.microsoft"),
    dequantised("Gemm", 4, 300, 250, ml_dtypes.uint4, 0, 16),
    dequantised("Gemm", 4, 300, 250, ml_dtypes.int4, 1, 16, transB=1),
    dequantised("Gemm", 4, 300, 250, np.int8, 0, transB=1, scale=np.float16),
]


@pytest.mark.parametrize("precision", ["fp16", "fp32", "bf16"])
@pytest.mark.parametrize("number", range(len(FORMS)))
def test_the_bits_are_those_of_floats(number: int, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = FORMS[number]
    assert products(model) == [PackedMatMulOp]
    same_bits(result(model, precision=precision), as_floats(model, monkeypatch, precision=precision))


@pytest.mark.parametrize("m", [1, 7, 128])
@pytest.mark.parametrize("zeros", ["", "packed"])
@pytest.mark.parametrize("block", [16, 32, 64, 128])
def test_it_agrees_with_onnxruntime(block: int, zeros: str, m: int) -> None:
    """N and K are no multiples of 16 or of a block; whatever `accuracy_level` asks for, nothing is rounded to bytes."""
    model = nbits([m, 333], 201, block=block, zeros=zeros)
    wanted: Any = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": operand(model)})[0]
    found = result(model, precision="fp32")
    assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()
    model.graph.node[0].attribute.append(helper.make_attribute("accuracy_level", 4))
    same_bits(result(model, precision="fp32"), found)


@pytest.mark.parametrize(
    "model",
    [
        nbits([1, 100], 60),
        nbits([1, 512], 160, zeros="floats"),
        dequantised("MatMul", 1, 300, 250, ml_dtypes.int4, 0),
        dequantised("MatMul", 1, 300, 250, np.int8, 1, 32),
        dequantised("MatMul", 1, 60, 50, np.int8, 1),
        dequantised("Gemm", 2, 300, 250, np.int8, 1, alpha=2.0),
    ],
)
def test_what_does_not_stay_packed(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small weights, zero points that are floats, a scale for each k, blocks along n, a factor."""
    assert PackedMatMulOp not in products(model)
    same_bits(result(model, "tiny"), as_floats(model, monkeypatch, target="tiny"))


def test_a_product_of_bytes_with_bytes_stays_one() -> None:
    """Where the left operand was quantised too, the weight of 8 bits is left for a product of integers."""
    model = dequantised("MatMul", 3, 300, 250, np.int8, 1)
    known = [
        numpy_helper.from_array(np.array(0.02, np.float32), "sx"),
        numpy_helper.from_array(np.array(3, np.int8), "zx"),
    ]
    model.graph.initializer.extend(known)
    before = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["xq"], "down"),
        helper.make_node("DequantizeLinear", ["xq", "sx", "zx"], ["xd"], "up"),
    ]
    product = model.graph.node[-1]
    product.input[0] = "xd"
    nodes = [*before, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    assert PackedMatMulOp not in products(model)


def test_less_is_read_and_it_takes_less_time() -> None:
    """A step of decoding: bound by the bytes of the weight."""
    model = nbits([1, 1024], 1024, block=32, kind=np.float16)
    dense = helper.make_node("MatMul", ["x", "w"], ["y"], "product")
    weights = np.random.default_rng(0).standard_normal((1024, 1024)).astype(np.float16)
    plain = model_of([dense], {"w": weights}, [1, 1024], 1024, TensorProto.FLOAT16)
    packed_profile, dense_profile = (stepwell.compile(each, target="edge").model.profile() for each in (model, plain))
    moved = [sum(launch.gm_bytes for launch in p.launches) for p in (packed_profile, dense_profile)]
    assert moved[0] < 0.3 * moved[1]
    assert packed_profile.cycles < 0.5 * dense_profile.cycles


BEYOND = [
    (nbits([1, 1024], 1024, zeros="packed"), "packed_matmul"),
    (nbits([1, 1024], 1024, zeros="floats"), "matmul"),
    (nbits([1, 2048], 2049, bits=2), "packed_matmul"),
    (dequantised("MatMul", 1, 1024, 1025, ml_dtypes.int4, 1, 32, transposes=True), "packed_matmul"),
    (dequantised("Gemm", 1, 1024, 1025, np.uint8, 1, 32, transB=1), "packed_matmul"),
    (dequantised("MatMul", 1, 1024, 1025, np.int8, 0), "matmul"),
]
"""Models whose weights an assessment does not read."""


@pytest.mark.parametrize(("model", "wanted"), BEYOND)
def test_an_assessment_says_what_a_compilation_does(model: onnx.ModelProto, wanted: str) -> None:
    said = assess(model, target="edge")
    (product,) = (node for node in said.nodes if node.name == "product")
    assert product.kind == "native"
    assert product.into == (wanted,)
    assert [f"graph.{name}" for name in product.into] == [kind.name for kind in products(model)]
    floats = 2 * np.prod(model.graph.output[0].type.tensor_type.shape.dim[-1].dim_value * operand(model).shape[-1])
    assert said.nbytes is not None
    assert (said.nbytes < floats) == (wanted == "packed_matmul")


def test_a_bias_behind_the_product_becomes_its_own() -> None:
    """As that of a product of floats: it is added before the one rounding."""
    module = stepwell.lower(nbits([3, 512], 160, bias=True), to="graph")
    (op,) = (op for op in module.walk() if isinstance(op, PackedMatMulOp))
    assert op.bias is not None
    assert not any(op.name == "graph.add" for op in module.walk())


def test_an_operand_of_another_length_is_refused() -> None:
    model = nbits([1, 512], 160)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 500
    with pytest.raises(
        ImportProblems, match=r"the last axis of the left operand has K = 512 elements .found \[1, 500\]"
    ):
        import_onnx(model)
