"""lit's view of the IR tests: every .mlir file here holds its own RUN lines.

`stepwell`, `stepwell-opt` and `filecheck` are those of the environment that runs lit. They are found through PATH and
not by substitution, which would also hit `stepwell` in the middle of another word.
"""

import os
import sys
from pathlib import Path

import lit.formats

# lit runs this file with `config` and `lit_config` defined.
root = Path(__file__).parent

config.name = "stepwell"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = str(root)
config.test_exec_root = lit_config.params.get("scratch", str(root.parents[1] / "build" / "lit"))

config.environment |= {
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    "HOME": str(Path.home()),  # caches
    "COLUMNS": "120",
    "NO_COLOR": "1",
    **{name: value for name, value in os.environ.items() if name.startswith(("STEPWELL_", "NUMBA_"))},
}
