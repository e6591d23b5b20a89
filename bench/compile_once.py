"""Compiles one model in a process of its own, for bench/measure.py.

    python bench/compile_once.py '{"model": "x.onnx", "output": "x.stw", "target": "edge", "precision": "fp16"}'

Prints as JSON the ops after each stage, kernels and launches, the CPU seconds of the process when each step ended, and
its peak memory in bytes; or, to standard error, what is wrong with the model.
"""

import json
import resource
import sys
import time
from pathlib import Path

from stepwell.driver import compilation
from stepwell.driver.errors import describe

STATUS = Path("/proc/self/status")


def peak_bytes() -> int:
    """The most memory that the process has held. Linux counts it by itself; `getrusage` begins at the parent's."""
    if STATUS.exists():
        (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


def main(order: str) -> int:
    """Compiles, saves and prints."""
    asked = json.loads(order)
    cores, precision = asked.get("cores"), asked["precision"]
    seconds = {"load": time.process_time()}
    source, target, shapes = Path(asked["model"]), asked["target"], asked.get("shapes")
    work = compilation.start(source, target=target, shapes=shapes, cores=cores, host=False)  # a bench of the device
    seconds["import"] = time.process_time()
    for stage in ("graph", "tile", "npu"):
        compilation.advance(work, stage, compilation.options_of(precision, cores, {}))
        seconds[stage] = time.process_time()
    artifact = compilation.link(work, {"precision": precision}, cores)
    seconds["link"] = time.process_time()
    artifact.save(asked["output"])
    seconds["save"] = time.process_time()
    found = {"ops": work.ops, "kernels": len(artifact.kernels), "launches": len(artifact.plans[0].steps)}
    print(json.dumps(found | {"seconds": seconds, "peak_bytes": peak_bytes()}))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1]))
    except Exception as error:  # noqa: BLE001 - told in the form of the command line
        sys.exit("\n".join(describe(error).problems))
