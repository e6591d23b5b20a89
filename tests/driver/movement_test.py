"""ONNX operators that move elements, with random attributes, against onnxruntime: compiled, and run on the device."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx_models import node_model

import stepwell
from stepwell.runtime.stream import StreamError

Array = NDArray[Any]
Random = np.random.Generator
Drawn = tuple[str, Sequence[Array], Sequence[Array | None], dict[str, Any], int, int]
"""Operator, inputs, constants, attributes, opset, outputs."""
EVERY = (np.float32, np.float16, np.int32, np.int8, np.uint8, np.bool_)
SOME = (np.float32, np.int32, np.uint8)
TIMES = 6
"""Draws of each operator."""


def values(r: Random, size: Sequence[int], kinds: Sequence[Any] = EVERY) -> Array:
    kind = np.dtype(kinds[int(r.integers(len(kinds)))])
    drawn = r.standard_normal(size) * 5
    return drawn > 0 if kind == np.bool_ else (np.abs(drawn) if kind == np.uint8 else drawn).astype(kind)


def extents(r: Random, low: int = 1, high: int = 7, least: int = 1, most: int = 5) -> tuple[int, ...]:
    return tuple(int(n) for n in r.integers(low, high, int(r.integers(least, most + 1))))


def resize(r: Random) -> Drawn:
    mode, rank = str(r.choice(["nearest", "linear", "cubic"])), 4
    rules = ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "half_pixel_symmetric"]
    given: dict[str, Any] = {
        "mode": mode,
        "coordinate_transformation_mode": str(r.choice([*rules, "tf_crop_and_resize"])),
        "nearest_mode": str(r.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])),
        "cubic_coeff_a": float(r.choice([-0.5, -0.75])),
        "exclude_outside": int(r.integers(2)) if mode == "cubic" else 0,
        "extrapolation_value": 2.5,
    }
    size = (1, int(r.choice([2, 17])), *(int(n) for n in r.integers(3, 9, 2)))
    low, high = np.array([0, 0, *r.uniform(0, 0.4, 2)]), np.array([1, 1, *r.uniform(0.6, 1.2, 2)])
    crops = given["coordinate_transformation_mode"] == "tf_crop_and_resize"
    roi = np.concatenate([low, high]).astype(np.float32) if crops else None
    factors = np.array([1, 1, *r.choice([0.5, 0.75, 1.5, 2, 2.3, 3], 2)], np.float32)
    sizes = np.array([*size[: rank - 2], *r.integers(1, 14, 2)])
    how = [roi, None, sizes] if r.integers(2) else [roi, factors]
    return "Resize", [values(r, size, [np.float32])], how, given, 19, 1


def upsample(r: Random) -> Drawn:
    factors = np.array([1, 1, r.choice([1, 2, 3]), r.choice([1, 2, 2.5])], np.float32)
    mode = str(r.choice(["nearest", "linear"]))
    return "Upsample", [values(r, (1, 2, 3, 4), [np.float32])], [factors], {"mode": mode}, 9, 1


def pad(r: Random) -> Drawn:
    mode, size = str(r.choice(["constant", "constant", "reflect", "edge", "wrap"])), extents(r)
    x = values(r, size, (*SOME, np.bool_, np.int8) if mode == "constant" else SOME)
    pads = np.array([int(r.integers(n if mode != "constant" else 5)) for n in (*size, *size)])
    if mode == "constant":
        cut = np.array([n > 2 and r.random() < 0.3 for n in (*size, *size)])
        pads[cut] = -1
    value = values(r, (), [x.dtype]) if mode == "constant" and r.integers(2) else None
    return "Pad", [x], [pads, value], {"mode": mode}, 19, 1


def take_slice(r: Random) -> Drawn:
    size, bounds = extents(r), list[tuple[int, int, int]]()
    while len(bounds) < len(size):
        n = size[len(bounds)]
        start, end, step = (
            int(r.integers(-n - 2, n + 2)),
            int(r.integers(-n - 3, n + 3)),
            int(r.choice([1, 2, 3, -1, -2])),
        )
        if len(range(n)[slice(start, None if step < 0 and end < -n else end, step)]):
            bounds.append((start, end, step))
    starts, ends, steps = (np.array(column) for column in zip(*bounds, strict=True))
    return "Slice", [values(r, size)], [starts, ends, np.arange(len(size)), steps], {}, 13, 1


def gather(r: Random) -> Drawn:
    size = extents(r)
    axis = int(r.integers(-len(size), len(size)))
    index = r.integers(-size[axis], size[axis], extents(r, least=0, most=2)).astype(
        (np.int32, np.int64)[int(r.integers(2))]
    )
    x, given = values(r, size), {"axis": axis}
    return ("Gather", [x, index], [], given, 13, 1) if r.integers(2) else ("Gather", [x], [index], given, 13, 1)


def gather_elements(r: Random) -> Drawn:
    size = extents(r)
    axis = int(r.integers(len(size)))
    inside = [int(r.integers(1, n + 1)) if i != axis else int(r.integers(1, 9)) for i, n in enumerate(size)]
    index = r.integers(-size[axis], size[axis], inside)
    return "GatherElements", [values(r, size), index], [], {"axis": axis}, 13, 1


def gather_nd(r: Random) -> Drawn:
    size, batch = extents(r, least=2, most=4), int(r.integers(2))
    count = int(r.integers(1, len(size) - batch + 1))
    index = np.stack([r.integers(-n, n, (*size[:batch], 3)) for n in size[batch : batch + count]], -1)
    return "GatherND", [values(r, size, (*SOME, np.bool_)), index], [], {"batch_dims": batch}, 13, 1


def scatter_elements(r: Random) -> Drawn:
    size = extents(r, 2, most=3)
    axis, x = int(r.integers(len(size))), values(r, size, SOME)
    place = np.arange(size[axis]).reshape([-1 if i == axis else 1 for i in range(len(size))])
    index = r.permuted(np.broadcast_to(place, size), axis=axis)
    index = np.ascontiguousarray(index[tuple(slice(int(r.integers(1, n + 1))) for n in size)])
    return "ScatterElements", [x, index, values(r, index.shape, [x.dtype])], [], {"axis": axis}, 13, 1


def scatter_nd(r: Random) -> Drawn:
    size = extents(r, 2, most=3)
    count, x = int(r.integers(1, len(size) + 1)), values(r, size, SOME)
    rows = r.permutation(int(np.prod(size[:count])))[: int(r.integers(1, 9))]
    index = np.stack(np.unravel_index(rows, size[:count]), -1).astype(np.int64)
    return "ScatterND", [x, index, values(r, (len(rows), *size[count:]), [x.dtype])], [], {}, 13, 1


def concat(r: Random) -> Drawn:
    size, kind = list(extents(r)), SOME[int(r.integers(3))]
    axis = int(r.integers(len(size)))
    parts = [[*size[:axis], int(r.integers(1, 5)), *size[axis + 1 :]] for _ in range(int(r.integers(1, 40)))]
    return "Concat", [values(r, part, [kind]) for part in parts], [], {"axis": axis - len(size)}, 13, 1


def split(r: Random) -> Drawn:
    size, parts = list(extents(r)), [int(n) for n in r.integers(1, 5, int(r.integers(1, 5)))]
    axis = int(r.integers(len(size)))
    size[axis] = sum(parts)
    return "Split", [values(r, size)], [np.array(parts)], {"axis": axis}, 13, len(parts)


def split_evenly(r: Random) -> Drawn:
    size, parts = list(extents(r)), int(r.integers(1, 5))
    axis, step = int(r.integers(len(size))), int(r.integers(2, 5))
    size[axis] = step * (parts - 1) + int(r.integers(1, step + 1)) if parts > 1 else step
    if -(-size[axis] // parts) * (parts - 1) >= size[axis]:
        size[axis] = parts * step
    return "Split", [values(r, size)], [], {"axis": axis, "num_outputs": parts}, 18, parts


def transpose(r: Random) -> Drawn:
    size = extents(r, 1, 5, most=7)
    return "Transpose", [values(r, size)], [], {"perm": r.permutation(len(size)).tolist()}, 13, 1


def tile(r: Random) -> Drawn:
    size = extents(r)
    return "Tile", [values(r, size)], [r.integers(1, 4, len(size))], {}, 13, 1


def expand(r: Random) -> Drawn:
    size = extents(r)
    target = np.array([*r.integers(1, 4, int(r.integers(2))), *size])
    return "Expand", [values(r, [1 if r.integers(2) else n for n in size])], [target], {}, 13, 1


def depth_to_space(r: Random) -> Drawn:
    block = int(r.integers(2, 4))
    x = values(r, (2, block**2 * int(r.integers(1, 4)), 4, 5), [np.float32])
    return "DepthToSpace", [x], [], {"blocksize": block, "mode": str(r.choice(["DCR", "CRD"]))}, 13, 1


def space_to_depth(r: Random) -> Drawn:
    block = int(r.integers(2, 4))
    return "SpaceToDepth", [values(r, (2, 3, block * 2, block * 3), [np.float32])], [], {"blocksize": block}, 13, 1


def trilu(r: Random) -> Drawn:
    x = values(r, extents(r, least=2, most=4), (np.float32, np.int64))
    return "Trilu", [x], [np.array(int(r.integers(-4, 5)))], {"upper": int(r.integers(2))}, 14, 1


def one_hot(r: Random) -> Drawn:
    size, depth = extents(r, most=3), int(r.integers(1, 9))
    given = {"axis": int(r.integers(-len(size) - 1, len(size) + 1))}
    return "OneHot", [r.integers(-depth, depth, size)], [np.array(depth), np.array([2, 5], np.float32)], given, 11, 1


def arg(r: Random) -> Drawn:
    x = r.integers(-3, 4, extents(r)).astype((np.float32, np.int32)[int(r.integers(2))])
    given = {"axis": int(r.integers(-x.ndim, x.ndim)), "keepdims": int(r.integers(2))}
    return str(r.choice(["ArgMax", "ArgMin"])), [x], [], {**given, "select_last_index": int(r.integers(2))}, 13, 1


def top_k(r: Random) -> Drawn:
    x = r.integers(-3, 4, extents(r)).astype(np.float32)
    axis = int(r.integers(x.ndim))
    k = np.array([int(r.integers(1, x.shape[axis] + 1))])
    return "TopK", [x], [k], {"axis": axis, "largest": int(r.integers(2))}, 11, 2


def cumsum(r: Random) -> Drawn:
    x = values(r, extents(r), (np.float32, np.int32))
    given = {"exclusive": int(r.integers(2)), "reverse": int(r.integers(2))}
    return "CumSum", [x], [np.array(int(r.integers(x.ndim)))], given, 11, 1


DRAWS: Sequence[Callable[[Random], Drawn]] = (
    resize, upsample, pad, take_slice, gather, gather_elements, gather_nd, scatter_elements, scatter_nd, concat, split,
    split_evenly, transpose, tile, expand, depth_to_space, space_to_depth, trilu, one_hot, arg, top_k, cumsum,
)  # fmt: skip


@pytest.mark.parametrize("draw", DRAWS, ids=lambda draw: draw.__name__)
def test_random_attributes_agree_with_onnxruntime(draw: Callable[[Random], Drawn]) -> None:
    random = np.random.default_rng(3)
    for number in range(TIMES):
        operator, inputs, constants, given, opset, outputs = draw(random)
        model = node_model(operator, inputs, given, opset, constants, outputs)
        feeds = {f"x{i}": value for i, value in enumerate(inputs)}
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        wanted = [np.asarray(value) for value in session.run(None, feeds)]
        artifact = stepwell.compile(model, target=("tiny", "edge")[number % 2], precision="fp32")
        found = list(stepwell.run(artifact, feeds).values())
        for mine, theirs in zip(found, wanted, strict=True):
            assert mine.dtype == theirs.dtype
            assert mine.shape == theirs.shape
            exact = operator not in ("Resize", "Upsample", "CumSum")
            np.testing.assert_allclose(mine, theirs, rtol=0 if exact else 3e-5, atol=0 if exact else 3e-5)


@pytest.mark.parametrize(("index", "found"), [(5, "5"), (-6, "-6")])
@pytest.mark.parametrize("operator", ["Gather", "GatherND", "ScatterND"])
def test_an_index_that_names_nothing_stops_the_device(operator: str, index: int, found: str) -> None:
    x, where = np.ones((5, 3), np.float32), np.array([[1], [index]], np.int32)
    if operator != "Gather":
        where, found = where.astype(np.int64), "5"  # a tuple outside its axes becomes the row behind the last one
    inputs = [x, where, np.ones((2, 3), np.float32)] if operator == "ScatterND" else [x, where]
    artifact = stepwell.compile(node_model(operator, inputs), target="tiny", precision="fp32")
    with pytest.raises(StreamError, match=f"value: index = {found}; -5 to 4 was expected .*node"):
        stepwell.run(artifact, {f"x{i}": value for i, value in enumerate(inputs)})
