"""Measures the public models on `edge`: what of them runs on the NPU, and how far they agree with onnxruntime.

    python bench/public.py                      all, and docs/public-models.md anew (minutes)
    python bench/public.py vad-static pitch     these alone; the page stays as it is

`tests/acceptance/public_test.py` asserts what the page shows.
"""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

import stepwell
from stepwell.bench.public_models import PUBLIC, Arrays, Subject
from stepwell.driver.agreement import agree_all, onnxruntime_run
from stepwell.driver.assess import Assessment, assess
from stepwell.driver.compare import with_all_values
from stepwell.driver.docs import code, table
from stepwell.driver.report import shape
from stepwell.runtime.artifact import Artifact

Array = NDArray[Any]
PAGE = Path(__file__).parents[1] / "docs" / "public-models.md"
TARGET = "edge"
QUANTISED = frozenset(
    {
        *("DynamicQuantizeLinear", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "QuantizeLinear"),
        *("MatMulInteger", "MatMulIntegerToFloat", "ConvInteger", "QLinearConv", "QLinearMatMul", "QGemm"),
    }
)
"""Operators that make integers of floats, or multiply integers."""
LEVELS = 255
"""Quantisation steps from the least to the largest of a tensor's values."""


@dataclass(frozen=True, slots=True)
class Shares:
    """What a model is, and how much of it the NPU does, each from 0 to 1."""

    nodes: int
    host: Mapping[str, str]
    """Nodes on the CPU, and why."""
    macs: int
    on_npu: float
    """Of the multiplications with addition."""
    nbytes: int
    moved: float
    """Of the bytes of nodes' operands and results."""
    time: float
    """Of the modelled time."""
    assess_seconds: float


@dataclass(frozen=True, slots=True)
class Values:
    """The outputs in one policy against onnxruntime's."""

    cosine: float
    error: float
    """Largest, over the largest value of the output."""
    steps: float
    """Largest, in steps of 1/255 of the output's range, by which it would be quantised; integers as they are."""
    same: int
    decisions: int


# shares ---------------------------------------------------------------------------------------------------------------
@cache
def compiled(name: str, policy: str) -> Artifact:
    """The artifact of a subject."""
    return stepwell.compile(PUBLIC[name].file, target=TARGET, precision=policy, **_options(PUBLIC[name]))


def _options(subject: Subject) -> dict[str, Any]:
    given = subject.inputs()
    return {
        "shapes": {key: list(array.shape) for key, array in given.items() if key not in subject.constants},
        "constants": {key: given[key] for key in subject.constants},
    }


@cache
def assessed(name: str) -> tuple[Assessment, float]:
    """What `stepwell assess` says of a subject, and how many seconds of the CPU it takes."""
    subject = PUBLIC[name]
    file, options = subject.file, _options(subject)
    start = time.process_time()
    return assess(file, target=TARGET, precision=subject.half, **options), time.process_time() - start


@cache
def shares(name: str) -> Shares:
    """Work and bytes as `assess` counts them, time as the artifact is timed."""
    said, seconds = assessed(name)
    artifact = compiled(name, PUBLIC[name].half)
    macs, macs_host = _sums([(node.macs, node.kind) for node in said.nodes])
    nbytes, bytes_host = _sums([(node.nbytes, node.kind) for node in said.nodes])
    return Shares(
        nodes=len(said.nodes),
        host={node.name: node.reason for part in artifact.host for node in part.nodes},
        macs=macs,
        on_npu=1 - macs_host / macs if macs else 0.0,
        nbytes=nbytes,
        moved=1 - bytes_host / nbytes,
        time=1 - artifact.model.profile().host_share,
        assess_seconds=seconds,
    )


def _sums(counts: Sequence[tuple[int, str]]) -> tuple[int, int]:
    """Of all nodes, and of those on the CPU."""
    return sum(count for count, _ in counts), sum(count for count, kind in counts if kind == "host")


# values ---------------------------------------------------------------------------------------------------------------
@cache
def reference(name: str) -> Arrays:
    """What onnxruntime computes, on one thread."""
    subject = PUBLIC[name]
    return onnxruntime_run(onnx.load(subject.file), subject.inputs())


@cache
def values(name: str, policy: str) -> Values:
    """All outputs together."""
    subject, expected = PUBLIC[name], reference(name)
    given = {key: array for key, array in subject.inputs().items() if key not in subject.constants}
    found = compiled(name, policy).model.run(given)
    agreements = agree_all(found, expected)
    decisions = list(_decisions(subject, found, expected))
    return Values(
        cosine=min(each.cosine for each in agreements),
        error=max(each.max_abs_error / (each.max_abs_reference or 1) for each in agreements),
        steps=max(steps_apart(found[key], expected[key]) for key in expected),
        same=sum(int(same.sum()) for same in decisions),
        decisions=sum(same.size for same in decisions),
    )


def _decisions(subject: Subject, found: Arrays, expected: Arrays) -> Iterator[NDArray[np.bool_]]:
    """Of each decision whether it is the same."""
    for key in subject.classes:
        a, b = (each[key] if each[key].dtype.kind in "iu" else each[key].argmax(-1) for each in (found, expected))
        yield np.asarray(a == b)
    for key, bound in subject.over.items():
        yield np.asarray((found[key] > bound) == (expected[key] > bound))
    for key, bound in subject.regions.items():
        ours, theirs = (boxes(np.squeeze(each[key]) > bound) for each in (found, expected))
        yield np.array([box in theirs for box in ours] + [box in ours for box in theirs])


def boxes(mask: NDArray[np.bool_]) -> set[tuple[int, int, int, int]]:
    """Around each region of a map the first and the last row and column; neighbours touch with a side."""
    left, found = {(int(y), int(x)) for y, x in np.argwhere(mask)}, set[tuple[int, int, int, int]]()
    while left:
        region, front = set[tuple[int, int]](), [left.pop()]
        while front:
            y, x = front.pop()
            region.add((y, x))
            near = {(y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)} & left
            left -= near
            front += near
        rows, columns = zip(*region, strict=True)
        found.add((min(rows), max(rows), min(columns), max(columns)))
    return found


def steps_apart(found: Array, expected: Array) -> float:
    """The largest difference in quantisation steps: of integers their unit, of floats 1/255 of their range with 0."""
    apart = float(np.abs(found.astype(np.float64) - expected.astype(np.float64)).max(initial=0.0))
    if expected.dtype.kind in "iu":
        return apart
    step = (max(float(expected.max()), 0.0) - min(float(expected.min()), 0.0)) / LEVELS
    return apart / step if apart else 0.0


# quantised nodes by themselves ----------------------------------------------------------------------------------------
@cache
def quantised(name: str) -> Mapping[str, float]:
    """Of each node that quantises: the difference in steps to onnxruntime if both get the same operands.

    They are those that onnxruntime computes, so that nothing which a node before it rounds in another way counts here.
    """
    subject = PUBLIC[name]
    model, given = onnx.load(subject.file), subject.inputs()
    nodes = [node for node in model.graph.node if node.op_type in QUANTISED]
    if not nodes:
        return {}
    known = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    every = {**given, **onnxruntime_run(with_all_values(model), given)}
    return {node.name or node.output[0]: _alone(model, node, known, every) for node in nodes}


def _alone(model: onnx.ModelProto, node: onnx.NodeProto, known: Arrays, every: Arrays) -> float:
    operands = {key: every[key] for key in node.input if key and key not in known}
    graph = onnx.helper.make_graph(
        [node],
        node.name or "node",
        [_info(key, array) for key, array in operands.items()],
        [_info(key, every[key]) for key in node.output if key],
        [onnx.numpy_helper.from_array(known[key], key) for key in node.input if key in known],
    )
    part = onnx.helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    found = stepwell.compile(part, target=TARGET, precision="fp32").model.run(operands)
    return max(steps_apart(found[key], every[key]) for key in node.output if key)


def _info(key: str, array: Array) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(key, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


# the page -------------------------------------------------------------------------------------------------------------
HEAD = """# Public models on the NPU

Generated by `python bench/public.py`; asserted by `tests/acceptance/public_test.py`. Target `edge`, two cores.

Trained models from the Python package index (`examples/models.py`), with inputs that mean something to them
(`bench/public_models.py`), and the nine `light_*` models of the onnx package.

- *on the NPU*: the share of multiplications with addition, of the bytes of nodes' operands and results, both as
  `stepwell assess` counts them, and of the modelled time.
- *16 bits*: the least cosine of an output with onnxruntime's, and how many decisions are the same: the largest of a
  row of scores, on which side of a bound a value is, the box around each region above one. The policy is fp16; bf16 for
  the `light_*` models whose values are far beyond f16 (up to 3·10²⁹: each of their weights is 0.02), which fp16 reports
  as overflows.
- *fp32*: the largest error over the largest value.
- *steps*: of models with quantised operators, in fp32, the largest difference in steps of 1/255 of an output's range;
  behind it that of the quantised nodes by themselves, fed with the values that onnxruntime has there.
- *by value*: the sampling rate is an input, and an If takes a branch by it; else it is bound when compiling, `--const
  sr=16000`. The 8 kHz branch of `two-rates` takes 288 samples and is no network for the 576 of 16 kHz, since an LSTM in
  it gets five axes: it is left to the CPU as a whole, where nobody comes to it."""
HEADINGS = (
    "model",
    "inputs",
    "nodes",
    "on the CPU",
    "MMAC",
    "of MACs",
    "of bytes",
    "of time",
    "16 bits",
    "same",
    "fp32",
    "steps",
)


def row(name: str) -> list[str]:
    """The numbers of a model."""
    share, half, full = shares(name), values(name, PUBLIC[name].half), values(name, "fp32")
    alone = quantised(name)
    return [
        name,
        ", ".join(shape(array.shape) for array in PUBLIC[name].inputs().values()),
        f"{share.nodes:,}",
        f"{len(share.host):,}",
        f"{share.macs / 1e6:,.1f}",
        *(f"{part:.1%}" if share.macs else "–" for part in (share.on_npu,)),
        *(f"{part:.1%}" for part in (share.moved, share.time)),
        f"{half.cosine:.6f}" + ("" if PUBLIC[name].half == "fp16" else f" {PUBLIC[name].half}"),
        f"{half.same:,} of {half.decisions:,}" if half.decisions else "–",
        f"{full.error:.1e}",
        f"{full.steps:.1g}; {max(alone.values()):.1g}" if alone else "–",
    ]


def page(rows: Sequence[Sequence[str]]) -> str:
    """docs/public-models.md."""
    parts = [HEAD, table(HEADINGS, rows)]
    reasons = [(name, key, why) for name in PUBLIC for key, why in shares(name).host.items()]
    if reasons:
        told = table(("model", "node", "why"), [[name, code(key), why] for name, key, why in reasons])
        parts += ["## On the CPU", told]
    return "\n\n".join(parts) + "\n"


def main(names: Sequence[str]) -> int:
    """Measures, prints, and writes the page if all are measured."""
    if unknown := sorted(set(names) - set(PUBLIC)):
        print(f"models: must be of {', '.join(PUBLIC)} (found {', '.join(unknown)}); name these", file=sys.stderr)
        return 2
    rows = list[list[str]]()
    for name in names or PUBLIC:
        rows.append(row(name))
        print("  ".join(rows[-1]), f" assess {shares(name).assess_seconds:.1f} s", flush=True)
    if not names:
        PAGE.write_text(page(rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
