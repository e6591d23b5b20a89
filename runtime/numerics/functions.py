"""The functions of the vector engine by code: the one list that assembly, dialects, emulator and cost read.

It imports nothing, so that tools which only name functions stay light; what each computes is in `function.py`.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

Kind = Literal["float", "number", "compare", "logic", "any"]


@dataclass(frozen=True, slots=True)
class Function:
    """An elementwise function.

    `kind`: float (operands widen to f32), number (f32, or exact integers), compare (gives b8), logic (b8, or
    the bits of integers), any (moves values unchanged)."""

    name: str
    arity: int
    kind: Kind
    passes: int
    """Vector cycles per vector of elements."""


FUNCTIONS: dict[str, Function] = {
    f.name: f
    for f in (
        Function("copy", 1, "any", 1),
        Function("add", 2, "number", 1),
        Function("sub", 2, "number", 1),
        Function("mul", 2, "number", 1),
        Function("div", 2, "number", 4),
        Function("max", 2, "number", 1),
        Function("min", 2, "number", 1),
        Function("mod", 2, "number", 4),
        Function("pow", 2, "number", 12),
        Function("eq", 2, "compare", 1),
        Function("ne", 2, "compare", 1),
        Function("lt", 2, "compare", 1),
        Function("le", 2, "compare", 1),
        Function("gt", 2, "compare", 1),
        Function("ge", 2, "compare", 1),
        Function("and", 2, "logic", 1),
        Function("or", 2, "logic", 1),
        Function("xor", 2, "logic", 1),
        Function("not", 1, "logic", 1),
        Function("where", 3, "any", 1),
        Function("clip", 3, "number", 1),
        Function("affine", 3, "float", 1),
        Function("neg", 1, "number", 1),
        Function("abs", 1, "number", 1),
        Function("relu", 1, "number", 1),
        Function("sqrt", 1, "float", 4),
        Function("rsqrt", 1, "float", 4),
        Function("reciprocal", 1, "float", 4),
        Function("exp", 1, "float", 4),
        Function("log", 1, "float", 4),
        Function("sin", 1, "float", 6),
        Function("cos", 1, "float", 6),
        Function("tanh", 1, "float", 6),
        Function("erf", 1, "float", 6),
        Function("sigmoid", 1, "float", 6),
        Function("silu", 1, "float", 7),
        Function("gelu", 1, "float", 8),
        Function("hardsigmoid", 3, "float", 2),
        Function("hardswish", 1, "float", 2),
        Function("softplus", 1, "float", 8),
        Function("elu", 2, "float", 5),
        Function("leakyrelu", 2, "float", 1),
        Function("floor", 1, "float", 1),
        Function("ceil", 1, "float", 1),
        Function("round", 1, "float", 1),
        Function("sign", 1, "number", 1),
        Function("isnan", 1, "compare", 1),
        Function("isinf", 1, "compare", 1),
        Function("fmod", 2, "number", 4),
        Function("atan", 1, "float", 8),
        Function("asinh", 1, "float", 8),
        Function("sinh", 1, "float", 8),
    )
}
CODES: dict[str, int] = {name: code for code, name in enumerate(FUNCTIONS)}


class FN(IntEnum):
    """The code of an elementwise function in an instruction: its place in `FUNCTIONS`."""

    COPY = 0
    ADD = 1
    SUB = 2
    MUL = 3
    DIV = 4
    MAX = 5
    MIN = 6
    MOD = 7
    POW = 8
    EQ = 9
    NE = 10
    LT = 11
    LE = 12
    GT = 13
    GE = 14
    AND = 15
    OR = 16
    XOR = 17
    NOT = 18
    WHERE = 19
    CLIP = 20
    AFFINE = 21
    NEG = 22
    ABS = 23
    RELU = 24
    SQRT = 25
    RSQRT = 26
    RECIPROCAL = 27
    EXP = 28
    LOG = 29
    SIN = 30
    COS = 31
    TANH = 32
    ERF = 33
    SIGMOID = 34
    SILU = 35
    GELU = 36
    HARDSIGMOID = 37
    HARDSWISH = 38
    SOFTPLUS = 39
    ELU = 40
    LEAKYRELU = 41
    FLOOR = 42
    CEIL = 43
    ROUND = 44
    SIGN = 45
    ISNAN = 46
    ISINF = 47
    FMOD = 48
    ATAN = 49
    ASINH = 50
    SINH = 51


class RFN(IntEnum):
    """The code of a reduction."""

    SUM = 0
    MAX = 1
    MIN = 2
    PROD = 3


assert {fn.name.lower(): int(fn) for fn in FN} == CODES, "FN is in the order of FUNCTIONS"
