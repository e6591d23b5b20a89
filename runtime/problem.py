"""What is wrong with what a user gave, in one line of one form, and of one of a few classes.

    conv1: the bias has 8 elements (found tensor<9xf32>); the file breaks a rule of ONNX: export it again [E-shape]
    where: expected                (found …            ); remedy                                           class

`docs/errors.md` has a section for each class.
"""

import re
from enum import Enum
from typing import ClassVar


class Kind(Enum):
    """The class of a problem; the value is its code."""

    OPERATOR = "E-operator"
    SHAPE = "E-shape"
    DTYPE = "E-dtype"
    MEMORY = "E-memory"
    FILE = "E-file"
    COMMAND = "E-command"
    IR = "E-ir"


_FORM = re.compile(r"(?P<where>.+?): (?P<expected>.+?) \(found (?P<found>.+)\); (?P<remedy>.+)", re.DOTALL)


class Problem(str):
    """One line, `<where>: <expected> (found <found>); <remedy>`, with its class.

    `where` is the node, input or file; it is told if the line has a colon before.
    """

    kind: Kind
    where: str
    expected: str
    found: str
    remedy: str

    def __new__(cls, line: str, kind: Kind, where: str = "") -> "Problem":
        if kind is not Kind.IR:  # of which a picture of several lines may be a part
            line = " ".join(line.splitlines())  # names may hold anything
        line = f"(no name){line}" if line.startswith(": ") else line
        line = line.replace("(found )", "(found '')")
        self = super().__new__(cls, line)
        self.kind = kind
        match = _FORM.fullmatch(f"-: {line.removeprefix(where + ': ')}" if where else line)
        parts = match.groupdict() if match else {"where": "", "expected": line, "found": "", "remedy": ""}
        self.where = where or parts["where"]
        self.expected, self.found, self.remedy = parts["expected"], parts["found"], parts["remedy"]
        return self

    @classmethod
    def of_ir(cls, text: str, place: str, where: str = "", kind: Kind = Kind.IR, found: str = "other IR") -> "Problem":
        """What is wrong with IR, as a rule that may leave out where, what was `found`, and what to do."""
        if (whole := cls(text, kind, where)).is_whole:
            return whole
        text, semicolon, remedy = text.partition("; ")
        if ": " not in text or "\n" in text:
            text = f"{place}: {text}"
        if not (text.endswith(")") and " (found " in text):
            text, count = re.subn(r",? (?:got|found) (.+)$", r" (found \1)", text)
            text = text if count else f"{text} (found {found})"
        remedy = remedy if semicolon else "change the IR as docs/ops.md and docs/passes.md say"
        return cls(f"{text}; {remedy}", kind, where)

    def to_dict(self) -> dict[str, str]:
        """Its parts, for JSON."""
        parts = {"where": self.where, "expected": self.expected, "found": self.found, "remedy": self.remedy}
        return {"class": self.kind.value, **parts}

    @property
    def is_whole(self) -> bool:
        """Whether it says where, what was expected, what was found and what to do."""
        return all((self.where, self.expected, self.found, self.remedy))


class UserError(Exception):
    """An error that a user can mend; its text is a problem, of IR one or several, one a line."""

    KIND: ClassVar[Kind] = Kind.COMMAND

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Each problem that it tells."""
        text = str(self).strip() or type(self).__name__
        if self.KIND is Kind.IR:
            return tuple(Problem.of_ir(line, "the IR") for line in text.splitlines())
        return (Problem(text, self.KIND),)


class ArgumentError(UserError, TypeError):
    """An argument of a function is of a type that it does not take."""

    @classmethod
    def of(cls, name: str, rule: str, value: object, remedy: str) -> "ArgumentError":
        """`<name>: <rule> (found <type of the value>); <remedy>`."""
        return cls(f"{name}: {rule} (found {'None' if value is None else type(value).__name__}); {remedy}")


class FileError(UserError, OSError):
    """A file cannot be written, or read; it has the number and the reason of what the system said."""

    KIND: ClassVar[Kind] = Kind.FILE

    def __init__(self, text: str, cause: OSError | None = None) -> None:
        super().__init__(text)
        if cause is not None:
            self.errno, self.strerror = cause.errno, cause.strerror

    def __str__(self) -> str:
        return self.args[0]
