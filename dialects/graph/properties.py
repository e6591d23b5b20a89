"""Between Python values and the attributes that properties are: one direction to build, the other to read.

    attribute([2, 2])                      array<i64: 2, 2>
    ints(op.properties, "strides")         (2, 2)

A reader's default stands for a property that is absent.
"""

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, FloatAttr, IntegerAttr, StringAttr, f64, i64
from xdsl.ir import Attribute

Value = bool | int | float | str | Sequence[int] | Attribute
Properties = Mapping[str, Attribute]


def attribute(value: Value) -> Attribute:
    """A Python value as a property; a number of whole value is i64, any other f64."""
    match value:
        case Attribute():
            return value
        case bool():
            return BoolAttr.from_bool(value)
        case int():
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, f64)
        case str():
            return StringAttr(value)
        case _:
            return DenseArrayBase.from_list(i64, [int(item) for item in value])


def attributes(**values: Value | None) -> dict[str, Attribute]:
    """Properties by name; those that are None are left out."""
    return {name: attribute(value) for name, value in values.items() if value is not None}


def ints(properties: Properties, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
    """A list of integers."""
    found = properties.get(name)
    return tuple(map(int, found.get_values())) if isinstance(found, DenseArrayBase) else tuple(default)


def integer(properties: Properties, name: str, default: int = 0) -> int:
    """An integer."""
    found = properties.get(name)
    return found.value.data if isinstance(found, IntegerAttr) else default


def number(properties: Properties, name: str, default: float = 0.0) -> float:
    """A float."""
    found = properties.get(name)
    return found.value.data if isinstance(found, FloatAttr) else default


def flag(properties: Properties, name: str) -> bool:
    """Whether a flag is there and true."""
    return bool(integer(properties, name))


def text(properties: Properties, name: str, default: str = "") -> str:
    """A string."""
    found = properties.get(name)
    return found.data if isinstance(found, StringAttr) else default
