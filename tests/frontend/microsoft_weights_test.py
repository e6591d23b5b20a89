"""Weights of few bits by groups of columns, and tables whose scales or integers are computed."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import stepwell

from .microsoft_test import INT32, RNG, Array, Case, agree, blocks, feeds, floats, model_of, wanted, whole

pytestmark = pytest.mark.xdist_group("device")


def run(case: Case) -> None:
    """On the device alone."""
    model = model_of(case)
    found = stepwell.run(stepwell.compile(model, target="tiny", precision="fp32", host=False), feeds(case))
    agree(case, found["y0"], wanted(case, model)[0])


def by_groups(groups: Array, n: int = 6, zeros: bool = False) -> Case:
    """Of 4 bits, in blocks of 16. onnxruntime 1.32 takes packed zero points for 8 where there are groups."""
    k = groups.size
    given, attributes = blocks(4, 16, n, k)
    more = [whole(0, 256, n, -(-k // 32), kind=np.uint8) if zeros else None, groups.astype(INT32)]

    def product(x: Array, packed: Array, scales: Array, points: Array, groups: Array) -> list[Array]:
        q, points = (np.stack([v & 15, v >> 4], -1).reshape(n, -1) for v in (packed, points))
        return [(x @ ((q[:, :k] - points[:, groups].astype(np.float64)) * scales[:, groups]).T).astype(np.float32)]

    return Case("MatMulNBits", [floats(3, k)], [*given, *more], attributes, numpy=product if zeros else None, scale=2.0)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(("n", "k"), [(6, 40), (110, 600)])
@pytest.mark.parametrize("regular", [True, False])
def test_columns_belong_to_groups(regular: bool, n: int, k: int, zeros: bool) -> None:
    """Groups as large as blocks are stay packed, in another order, if the weight is large."""
    run(by_groups(RNG.permutation(np.arange(k) // 16) if regular else whole(0, -(-k // 16), k), n, zeros))


@pytest.mark.parametrize(("bits", "zeros"), [(4, False), (4, True), (8, True)])
def test_a_computed_table_is_taken_apart(bits: int, zeros: bool) -> None:
    given = [whole(0, 256, 9, 4 * bits, kind=np.uint8), whole(0, 9, 2, 3), np.abs(floats(9, 2))]
    more = [whole(0, 256, 9, bits // 4, kind=np.uint8)] if zeros else []
    run(Case("GatherBlockQuantized", [*given, *more], (), {"block_size": 16, "bits": bits}))


@pytest.mark.parametrize("axes", [(0, 1), (1, 1), (1, 0)])
@pytest.mark.parametrize("kind", [ml_dtypes.int4, ml_dtypes.uint4])
def test_a_known_table_has_computed_scales(kind: Any, axes: tuple[int, int]) -> None:
    """Which a model may make of others, for example by a tensor that is not quantised by blocks itself."""
    low, size = (-8 if kind is ml_dtypes.int4 else 0), (9, 3) if axes[1] else (1, 40)
    table, zeros = (whole(low, low + 16, *size, kind=np.int8).astype(kind) for size in ((9, 40), size))
    scales, attributes = np.abs(floats(*size)), {"block_size": 16, "gather_axis": axes[0], "quantize_axis": axes[1]}
    case = Case("GatherBlockQuantized", [], [table, whole(0, 9, 2, 3), scales, zeros], attributes)
    model = model_of(case)
    for moved in [known for known in model.graph.initializer if known.name == "x2"]:
        model.graph.initializer.remove(moved)
        model.graph.input.append(helper.make_tensor_value_info("x2", TensorProto.FLOAT, scales.shape))
    found = stepwell.run(stepwell.compile(model, target="tiny", precision="fp32", host=False), {"x2": scales})
    (theirs,) = wanted(case, model_of(case))
    agree(case, found["y0"], theirs)
