"""Field expressions: the one form in which an instruction's field may vary while a kernel runs.

    value = base + Σ coef·x·y          x, y: loop index i0…i4, `core`, register r0…r31, or 1
    value = clamp(value, 0, T)         if there is a clamp
    value = value + ((ring(loop) + off) mod n)·slot      if there is a ring

Addresses, extents, trip counts and token ids all use it, so the device has one address generator and the compiler one
algebra. Text: `4096 + 128*i0 - 2*i1*r3 + ring(2, -1, 2)*8192`, `clamp(1000 - 128*i0, 128)`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

LEVELS = 5
"""Depth to which hardware loops nest."""
REGISTERS = 32
RINGS = 16
"""Loops of one kernel that may own a ring."""
MAX_SLOTS = 8

ONE = ""
VARIABLES: tuple[str, ...] = (
    ONE,
    *(f"i{level}" for level in range(LEVELS)),
    "core",
    *(f"r{register}" for register in range(REGISTERS)),
)
"""Variables by their code in the encoding; code 0 is the constant 1."""
INDICES = 16
"""Index operands that an op of the tile dialect may have, i0 to i15: there they stand for more than loops."""
CODE: Mapping[str, int] = {
    name: code for code, name in enumerate((*VARIABLES, *(f"i{index}" for index in range(LEVELS, INDICES))))
}


@dataclass(frozen=True, slots=True)
class Term:
    """`coef·x·y`; `y` is `ONE` for a plain linear term."""

    coef: int
    x: str
    y: str = ONE


@dataclass(frozen=True, slots=True)
class Ring:
    """`((iterations of the loop with this ring since kernel start + off) mod n)·slot`, in the unit of the field."""

    loop: int
    off: int
    n: int
    slot: int


@dataclass(frozen=True, slots=True)
class Expr:
    """The value of a field. `Expr(7)` is the constant 7."""

    base: int = 0
    terms: tuple[Term, ...] = ()
    clamp: int | None = None
    ring: Ring | None = None

    @property
    def is_constant(self) -> bool:
        return not self.terms and self.clamp is None and self.ring is None

    def __add__(self, other: "Expr | int") -> "Expr":
        """The sum of two expressions; a clamp or ring may stand on the left only."""
        if isinstance(other, int):
            other = Expr(other)
        if self.clamp is not None or other.clamp is not None or (self.ring and other.ring):
            raise ValueError(f"cannot add {self} and {other}: a clamp or a second ring")
        return Expr(self.base + other.base, merge(self.terms + other.terms), None, self.ring or other.ring)

    def __mul__(self, factor: int) -> "Expr":
        """The expression times a constant; not for clamped or ring expressions."""
        if self.clamp is not None or self.ring is not None:
            raise ValueError(f"cannot scale {self}")
        return Expr(self.base * factor, merge(tuple(replace(t, coef=t.coef * factor) for t in self.terms)))

    def value(self, variables: Mapping[str, int], rings: Sequence[int] = ()) -> int:
        """Evaluates by the definition above: the slow reference of the block generator."""
        total = self.base + sum(t.coef * variables.get(t.x, 1) * variables.get(t.y, 1) for t in self.terms)
        if self.clamp is not None:
            total = max(0, min(total, self.clamp))
        if self.ring is not None:
            total += (rings[self.ring.loop] + self.ring.off) % self.ring.n * self.ring.slot
        return total

    def __str__(self) -> str:
        text = _sum_text(self.base, self.terms)
        if self.clamp is not None:
            text = f"clamp({text}, {self.clamp})"
        if self.ring is not None:
            ring = f"ring({self.ring.loop}, {self.ring.off}, {self.ring.n})*{self.ring.slot}"
            text = ring if text == "0" else f"{text} + {ring}"
        return text


def var(name: str, coef: int = 1, times: str = ONE) -> Expr:
    """The expression `coef·name·times`."""
    for used in (name, times):
        if used not in CODE:
            raise ValueError(f"unknown variable {used!r}; there are i0…i{LEVELS - 1}, core, r0…r{REGISTERS - 1}")
    return Expr(0, (Term(coef, name, times),))


def merge(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Collects equal products, drops zeros, orders by variable code: equal expressions become equal objects."""
    sums: dict[tuple[str, str], int] = {}
    for term in terms:
        x, y = sorted((term.x, term.y), key=lambda name: -CODE[name] if name == ONE else CODE[name])
        x, y = (y, x) if x == ONE else (x, y)
        sums[x, y] = sums.get((x, y), 0) + term.coef
    kept = [Term(coef, x, y) for (x, y), coef in sums.items() if coef]
    return tuple(sorted(kept, key=lambda t: (CODE[t.x], CODE[t.y])))


def _sum_text(base: int, terms: tuple[Term, ...]) -> str:
    parts = [str(base)] if base or not terms else []
    for term in terms:
        magnitude = abs(term.coef)
        factors = ([str(magnitude)] if magnitude != 1 else []) + [term.x] + ([term.y] if term.y != ONE else [])
        sign = "-" if term.coef < 0 else "+" if parts else ""
        parts.append(f"{sign} {'*'.join(factors)}" if parts else f"{sign}{'*'.join(factors)}")
    return " ".join(parts)


_TOKEN = re.compile(r"\s*(?:(\d+)|([a-z_]\w*)|(.))")


class ExprSyntaxError(ValueError):
    """The text is no field expression; the message shows where reading stopped."""


class _Reader:
    """Recursive descent over the grammar  sum = ['-'] product {('+'|'-') product},  product = factor {'*' factor}."""

    def __init__(self, text: str):
        self.text = text
        self.tokens = [m.group(1) or m.group(2) or m.group(3) for m in _TOKEN.finditer(text) if m.group().strip()]
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if not token or (expected is not None and token != expected):
            raise ExprSyntaxError(f"expected {expected or 'a value'}, found {token or 'the end'!r} in {self.text!r}")
        self.at += 1
        return token

    def integer(self) -> int:
        sign = -1 if self.peek() == "-" and self.take() else 1
        token = self.take()
        if not token.isdigit():
            raise ExprSyntaxError(f"expected an integer, found {token!r} in {self.text!r}")
        return sign * int(token)

    def sum(self) -> Expr:
        total = Expr()
        sign = -1 if self.peek() == "-" and self.take() else 1
        while True:
            total = total + self.product(sign)
            if self.peek() not in ("+", "-"):
                return total
            sign = -1 if self.take() == "-" else 1

    def product(self, sign: int) -> Expr:
        if self.peek() == "clamp":
            return self.clamped(sign)
        if self.peek() == "ring":
            return self.ring(sign)
        coef, names = sign, list[str]()
        while True:
            token = self.take()
            if token.isdigit():
                coef *= int(token)
            elif token in CODE:
                names.append(token)
            else:
                raise ExprSyntaxError(f"unknown variable {token!r} in {self.text!r}")
            if self.peek() != "*":
                break
            self.take()
        if len(names) > 2:
            raise ExprSyntaxError(f"a term has at most two variables, found {'*'.join(names)} in {self.text!r}")
        return Expr(0, merge((Term(coef, *names),))) if names else Expr(coef)

    def clamped(self, sign: int) -> Expr:
        self.take("clamp")
        self.take("(")
        inner = self.sum()
        self.take(",")
        limit = self.integer()
        self.take(")")
        if sign < 0 or inner.ring:
            raise ExprSyntaxError(f"a clamp is neither negative nor over a ring, in {self.text!r}")
        return replace(inner, clamp=limit)

    def ring(self, sign: int) -> Expr:
        self.take("ring")
        self.take("(")
        loop = self.integer()
        self.take(",")
        off = self.integer()
        self.take(",")
        n = self.integer()
        self.take(")")
        self.take("*")
        return Expr(0, ring=Ring(loop, off, n, sign * self.integer()))


def parse(text: str) -> Expr:
    """Reads the text form; raises `ExprSyntaxError`."""
    reader = _Reader(text)
    total = reader.sum() if reader.peek() != "clamp" else _clamp_and_ring(reader)
    if reader.peek():
        raise ExprSyntaxError(f"unexpected {reader.peek()!r} in {text!r}")
    return total


def _clamp_and_ring(reader: _Reader) -> Expr:
    clamped = reader.product(1)
    if reader.peek() == "+":
        reader.take()
        clamped = replace(clamped, ring=reader.ring(1).ring)
    return clamped
