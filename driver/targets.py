"""`stepwell targets`: the chips that models can be compiled for."""

import argparse
from typing import Any

from ..runtime.target import Target
from .errors import Usage
from .progress import Progress
from .report import Report, size, table


def targets(args: argparse.Namespace, progress: Progress) -> Report:
    """`list`, `show TARGET` or `validate TARGET`. Raises `TargetError` with every problem of a description."""
    del progress
    if args.action == "list":
        return _list()
    if args.target is None:
        raise Usage(
            f"stepwell targets {args.action}: names a target or a .toml file (found none); see stepwell targets --help"
        )
    target = Target.load(args.target)
    if args.action == "show":
        return _show(target)
    text = f"{args.target}: sound; {_summary(target)}"
    return Report({"target": target.name, "sound": True, **_facts(target)}, text)


def _list() -> Report:
    found = [Target.load(name) for name in Target.shipped()]
    rows = [(t.name, t.cores, f"{t.clock_mhz:g} MHz", *_rates(t), size(t.l1_bytes)) for t in found]
    text = table(("target", "cores", "clock", "fp16 TOP/s", "GM GB/s", "L1"), rows, indent="")
    return Report({"targets": [{"name": t.name, **_facts(t)} for t in found]}, text)


def _rates(target: Target) -> tuple[str, str]:
    facts = _facts(target)
    return f"{facts['peak_fp16_tops']:.2f}", f"{facts['gm_gb_per_s']:.0f}"


def _show(target: Target) -> Report:
    values = target.to_dict()
    width = max(map(len, values))
    lines = [
        f"{key:<{width}}  {value:,}" if isinstance(value, int) else f"{key:<{width}}  {value}"
        for key, value in values.items()
    ]
    return Report({**values, **_facts(target)}, "\n".join([*lines, "", _summary(target)]))


def _facts(target: Target) -> dict[str, Any]:
    """What follows from a target's numbers."""
    hertz = target.clock_mhz * 1e6
    return {
        "peak_fp16_tops": 2 * target.macs_per_cycle_f16 * target.cores * hertz / 1e12,
        "gm_gb_per_s": target.gm_port * hertz / 1e9,
        "fp32_mode": target.cube_cost_f32 > 0,
    }


def _summary(target: Target) -> str:
    facts = _facts(target)
    fp32 = "with" if facts["fp32_mode"] else "without"
    return (
        f"{target.cores} core{'s' * (target.cores > 1)} at {target.clock_mhz:g} MHz, "
        f"{facts['peak_fp16_tops']:.2f} TOP/s in fp16, {fp32} fp32, {facts['gm_gb_per_s']:.0f} GB/s"
    )
