"""What a command has to say: as text for people, as data for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..runtime.plan import Tensor

OK = 0
COSINE = 0.9995
"""Least cosine of an fp16 result."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a command; `data` is what `--json` prints."""

    data: Mapping[str, Any]
    text: str
    exit_code: int = OK


def size(nbytes: float) -> str:
    """`5.2 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if nbytes < 1000 or unit == "GB":
            return f"{nbytes:.0f} B" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    raise AssertionError("unreachable")


def seconds(value: float) -> str:
    """`1.35 ms`."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale or unit == "µs":
            return f"{value / scale:.3g} {unit}"
    raise AssertionError("unreachable")


def plural(count: int, noun: str) -> str:
    """`1 kernel`, `2 kernels`, `3 launches`."""
    ending = "" if count == 1 else "es" if noun.endswith(("h", "s")) else "s"
    return f"{count:,} {noun}{ending}"


def shape(extents: Sequence[int]) -> str:
    """`1×3×48×320`."""
    return "×".join(map(str, extents)) or "scalar"


def extents(tensor: "Tensor") -> list[int | None] | None:
    """The extents of an input or output; None for one that only a run knows, or for all if the rank is not known."""
    if not tensor.is_host:
        return list(tensor.shape)
    known = tensor.host_type.shape
    return None if known is None else [None if size < 0 else size for size in known]


def form(tensor: "Tensor") -> tuple[str, str]:
    """The type of an input or output, and its shape: `tensor(int64)`, `2×?`."""
    if not tensor.is_host:
        return tensor.border, shape(tensor.shape)
    known = extents(tensor)
    sizes = "unknown" if known is None else "×".join("?" if size is None else str(size) for size in known) or "scalar"
    return tensor.host_type.kind, sizes


def beside(cosine: float, least: float = COSINE) -> str:
    """A cosine with as many digits, six or more, as show on which side of a bound it lies."""
    texts = (f"{cosine:.{digits}f}" for digits in range(6, 17))
    return next((text for text in texts if (float(text) < least) == (cosine < least)), repr(cosine))


def names(nodes: Sequence[str], most: int = 3) -> str:
    """Node names, the first few of them."""
    more = f" and {len(nodes) - most} more" if len(nodes) > most else ""
    return ", ".join(nodes[:most]) + more or "–"


def table(headings: Sequence[str], rows: Sequence[Sequence[object]], indent: str = "  ") -> str:
    """Columns as wide as they need to be; what begins with a digit stands at the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(headings), *cells]) for i in range(len(headings))]
    right = [bool(cells) and all(row[i][:1].isdigit() for row in cells) for i in range(len(headings))]
    lines: list[str] = []
    for row in [list(headings), *cells]:
        padded = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ]
        lines.append((indent + "  ".join(padded)).rstrip())
    return "\n".join(lines)
