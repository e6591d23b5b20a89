"""A target: every number of a chip, read from a TOML file. No other code knows a number that a target can state."""

import dataclasses
import math
import tomllib
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from .problem import ArgumentError, Kind, Problem, UserError

TARGETS = Path(__file__).parent / "targets"
LEAST = {"l1_bytes": 4096, "l0a_bytes": 1024, "l0b_bytes": 1024, "l0c_bytes": 2048, "ub_bytes": 4096}
"""Bytes below which a memory holds no two tiles of 16 × 16."""


class TargetError(UserError, ValueError):
    """The description of a chip is wrong; the message lists every problem with what was found and expected."""

    KIND: ClassVar[Kind] = Kind.FILE

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self._lines = lines

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Each of them."""
        return tuple(Problem(line, self.KIND) for line in self._lines)


@dataclass(frozen=True, slots=True)
class Target:
    """A chip. Sizes in bytes, rates in bytes (or elements) per cycle, times in cycles unless the name says more."""

    name: str
    cores: int
    clock_mhz: float
    queue_depth: int
    # memories
    gm_bytes: int
    l1_bytes: int
    l0a_bytes: int
    l0b_bytes: int
    l0c_bytes: int
    ub_bytes: int
    alignment: int
    """On-chip buffers begin at multiples of this."""
    # cube
    cube_m: int
    cube_n: int
    cube_k_f16: int
    cube_k_i8: int
    cube_k_f32: int
    cube_cost_f32: int
    """Cycles per block of m × n × k_f32; 0: the chip has no fp32 mode."""
    # rates, per cycle
    gm_port: float
    """Bytes of all transfers of all cores together."""
    gm_path: float
    """Bytes of one transfer at most."""
    gm_burst: int
    """A run of bytes in GM is transferred in whole bursts."""
    feed_a_bytes: float
    feed_b_bytes: float
    drain_elements: float
    vector_bytes: int
    move_bytes: float
    fill_bytes: float
    fold_bytes: float
    # fixed costs, cycles
    fixed_load: int
    fixed_store: int
    fixed_move: int
    fixed_feed: int
    fixed_mma: int
    fixed_drain: int
    fixed_vector: int
    fixed_sync: int
    fixed_read: int
    launch: int
    """From the launch of a kernel to its first instruction."""
    signal_latency: int
    """From a signal to the awaits of other cores."""
    # host: its link, and its CPU
    host_bytes: float
    host_latency: int
    host_node: int
    """Cycles of an operator on the CPU, besides those of its bytes."""
    host_rate: float
    """Bytes of operands and results that an operator on the CPU goes through."""

    @staticmethod
    def load(name_or_path: "str | PathLike[str]") -> "Target":
        """A shipped target by name, or a TOML file by path. Raises `TargetError`, `ArgumentError` for neither."""
        if not isinstance(name_or_path, str | PathLike):
            remedy = f"shipped are {', '.join(Target.shipped())}"
            raise ArgumentError.of(
                "target", "is a Target, the name of a shipped one or a .toml file", name_or_path, remedy
            )
        path = Path(name_or_path)
        if path.suffix != ".toml":
            path = TARGETS / f"{name_or_path}.toml"
            if not path.is_file():
                raise TargetError(
                    f"target {str(name_or_path)!r}: is a shipped one or a .toml file (found none of this name); "
                    f"shipped are {', '.join(Target.shipped())}"
                )
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise TargetError(
                f"{path.name}: is a TOML file (found {error}); write it like those of runtime/targets"
            ) from None
        return Target.of(table, path.stem)

    @staticmethod
    def shipped() -> list[str]:
        """Names of the targets that come with Stepwell."""
        return sorted(path.stem for path in TARGETS.glob("*.toml"))

    @staticmethod
    def of(table: dict[str, Any], name: str) -> "Target":
        """Builds a target from the parsed TOML: keys may be grouped in sections. Raises `TargetError` listing every
        problem."""
        flat: dict[str, Any] = {"name": name}
        for key, value in table.items():
            flat.update(value if isinstance(value, dict) else {key: value})
        problems = [f"a key is one of a target (found {key!r})" for key in flat if key not in _TYPES]
        problems += [f"{key} is given (found nothing)" for key in _TYPES if key not in flat]
        problems += [
            f"{key} is {kind.__name__} (found {flat[key]!r})"
            for key, kind in _TYPES.items()
            if key in flat and not _fits(flat[key], kind)
        ]
        if problems:
            raise TargetError(*(f"target {name}: {problem}; correct the file" for problem in problems))
        target = Target(**{key: kind(flat[key]) for key, kind in _TYPES.items()})
        if problems := target.problems():
            raise TargetError(*(f"target {name}: {problem}; correct the file" for problem in problems))
        return target

    def problems(self) -> list[str]:
        """What no chip can be; empty for a sound target."""
        positive = [
            f
            for f in _TYPES
            if f not in ("name", "cube_cost_f32")
            and not f.startswith(("fixed_", "launch", "signal", "host_latency", "host_node"))
        ]
        found = [f"{key} is more than 0 (found {getattr(self, key)})" for key in positive if getattr(self, key) <= 0]
        found += [
            f"{key} is 0 or more (found {getattr(self, key)})"
            for key in _TYPES
            if key not in positive and key != "name" and getattr(self, key) < 0
        ]
        found += [
            f"{key} is a finite number (found {getattr(self, key)})"
            for key in _TYPES
            if _is_endless(getattr(self, key))
        ]
        found += [
            f"{key} is at least {least}, two of the smallest tiles (found {getattr(self, key)})"
            for key, least in LEAST.items()
            if 0 < getattr(self, key) < least
        ]
        if not 1 <= self.cores <= 64:
            found.append(f"cores is 1 to 64 (found {self.cores})")
        if not 4 <= self.queue_depth <= 64:
            found.append(f"queue_depth is 4 to 64 (found {self.queue_depth})")
        if self.alignment & (self.alignment - 1) or self.alignment < 32:
            found.append(f"alignment is a power of two of at least 32 (found {self.alignment})")
        if self.gm_bytes > 1 << 48:
            found.append(f"gm_bytes is at most 2^48, as addresses have 48 bits (found {self.gm_bytes})")
        return found

    def to_dict(self) -> dict[str, Any]:
        """The target as one flat table; `of` is the inverse."""
        return dataclasses.asdict(self)

    @property
    def macs_per_cycle_f16(self) -> int:
        """fp16 multiply-accumulates of one core in a cycle."""
        return self.cube_m * self.cube_n * self.cube_k_f16


_TYPES: dict[str, type] = {
    field.name: {"str": str, "int": int, "float": float}.get(str(field.type), field.type)
    for field in dataclasses.fields(Target)
}  # type: ignore[misc]


def _is_endless(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _fits(value: Any, kind: type) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, (int, float)) if kind is float else isinstance(value, kind)
