"""Products with packed weights of random sizes, kinds and tilings, at every level: graph, tile, npu."""

from typing import Any

import levels
import numpy as np
import pytest

MACHINES = ({"tiny": (1, 2)}, {"odd": (3,)}, {"edge": (1, 2)})


def program(seed: int) -> levels.Program:
    """One product, with an epilogue or without; often an extent is 1, or no multiple of anything."""
    rng = np.random.default_rng(seed)
    m, n = (int(rng.choice([1, int(rng.integers(2, 40)), int(rng.integers(40, 150))])) for _ in range(2))
    k = int(
        rng.choice(
            [int(rng.integers(1, 16)), int(rng.integers(16, 300)), int(rng.integers(2000, 4200))], p=[0.2, 0.6, 0.2]
        )
    )
    kind, zeros, bias = str(rng.choice(["i4", "u4", "i8", "u8"])), bool(rng.integers(2)), bool(rng.integers(2))
    block, blocked = int(rng.choice([16, 32, 64, 100, 128, 256, k + 16])), bool(rng.integers(2))
    size, blocks = -(-k * int(kind[1]) // 8), -(-k // block)
    known = [("w", f"{n}x{size}xui8"), ("s", f"{n}x{blocks}xf32")]
    known += [("z", f"{n}x{blocks}x{'ui8' if kind[0] == 'u' else 'i8'}")] * zeros + [("b", f"{n}xf32")] * bias
    weights = [
        f'  %{name} = graph.weight "5eed000000000000000000000000000{i}" : tensor<{what}>'
        for i, (name, what) in enumerate(known)
    ]
    operands = ", ".join(f"%{name}" for name, _ in known)
    types = ", ".join(f"tensor<{what}>" for _, what in known)
    lead = f"3x{m}" if blocked else f"{m}"
    properties = f'kind = "{kind}", block = {block}' + ", zeros = true" * zeros
    x, y = f"tensor<{lead}x{k}xf32>", f"tensor<{lead}x{n}xf32>"
    text = "\n".join([
        f"// RUN-LEVELS: seed={seed}; precision=fp16; tolerance=2",
        f"func.func @main(%x: {x}) -> {y} {{",
        *weights,
        f"  %0 = graph.packed_matmul %x, {operands} {{{properties}}} : ({x}, {types}) -> {y}",
        f"  %1 = graph.relu %0 : ({y}) -> {y}",
        f"  func.return %{seed % 2} : {y}",
        "}",
    ])  # fmt: skip
    return levels.Program(f"packed {seed}", text, levels.Directive.parse(f"seed={seed}; precision=fp16; tolerance=2"))


@pytest.mark.parametrize("seed", range(12))
def test_every_level_gives_the_same_bits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third with the best tiling, the others with one that is not: panels that stand, or come by parts."""
    original: Any = levels.options_of

    def options_of(precision: str, cores: int | None, options: dict[str, Any]) -> dict[str, Any]:
        return original(precision, cores, options | {"variant": (0, 7, 40)[seed % 3]})

    monkeypatch.setattr(levels, "options_of", options_of)
    levels.run_program(program(seed), MACHINES[seed // 3 % 3])
