r"""A small language of formulas over columns, read by our own rules and never given to Python.

    formula = term {("+" | "-") term}          term    = factor {("*" | "/") factor}
    factor  = ("+" | "-") factor | power       power   = operand ["**" factor]
    operand = number | column | function "(" formula {"," formula} ")" | "(" formula ")"

A column is named as it is if its name is a word of letters, digits and _ that begins with no digit; any other name
stands between backticks, a backtick in it doubled: `horse power`. As in Python, ** binds closer than a sign before
it and chains to the right. A formula becomes a list of steps for a stack, so that no length of it can exhaust anything.

Numbers that do not exist (log 0, 1/0, √−1) and those beyond float64 are missing: NaN.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
from pydantic import Field

from app.ml.contract.algorithm import Vector

MAX_LENGTH = 1000
"""Characters."""
MAX_DEPTH = 50
"""Parentheses, signs and exponents within each other."""
MAX_MULTIPLICATIONS = 64
"""Whole powers up to here are products: exact where the numbers are, and quick."""


class Misread(ValueError):
    """The text is no formula."""

    def __init__(self, position: int, sentence: str) -> None:
        super().__init__(f"At character {position}: {sentence}")


class Column(NamedTuple):
    name: Annotated[str, Field(description="Name of the column.")]


class Operation(NamedTuple):
    name: str
    arity: int


Step: TypeAlias = float | Column | Operation
Formula: TypeAlias = tuple[Step, ...]
"""Steps for a stack: push a number, push a column, or replace the uppermost by a result."""


def parse(text: str) -> Formula:
    """Raises Misread for what is no formula of this language."""
    if len(text) > MAX_LENGTH:
        raise Misread(MAX_LENGTH + 1, f"a formula has at most {MAX_LENGTH} characters.")
    return _Reader(list(_tokens(text))).formula()


def columns(formula: Formula) -> list[str]:
    """The columns it reads, each once, in their order."""
    return list(dict.fromkeys(step.name for step in formula if isinstance(step, Column)))


def evaluate(formula: Formula, values: Mapping[str, Vector]) -> Vector:
    """Values (n,) of contiguous columns (n,), each row's the same among any other rows; NaN where there is none."""
    stack: list[Any] = []
    with np.errstate(all="ignore"):
        for step in formula:
            match step:
                case Column(name):
                    stack.append(values[name])
                case Operation(name, arity):
                    arguments = stack[-arity:]
                    stack[-arity:] = [_OPERATIONS[name](*arguments)]
                case _:
                    stack.append(np.float64(step))
        (result,) = stack
        return np.where(np.isfinite(result), result, np.nan)


def quoted(name: str) -> str:
    """The column's name as a formula has it."""
    return name if re.fullmatch(r"[^\W\d]\w*", name) else f"`{name.replace('`', '``')}`"


def _power(base: Any, exponent: Any) -> Any:
    whole = np.ndim(exponent) == 0 and float(exponent).is_integer() and abs(exponent) <= MAX_MULTIPLICATIONS
    if not whole:
        return np.power(base, exponent)
    product, square, left = np.ones_like(base), base, int(abs(exponent))
    while left:
        if left % 2:
            product = product * square
        left //= 2
        square = square * square if left else square
    return product if exponent >= 0 else 1.0 / product


def _over_all(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *arguments: reduce(function, arguments)


_SIGNS: dict[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "**": _power,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "log": np.log,
    "log10": np.log10,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "abs": np.abs,
    "min": _over_all(np.minimum),
    "max": _over_all(np.maximum),
}
_OPERATIONS: dict[str, Callable[..., Any]] = {**_SIGNS, **_FUNCTIONS, "negative": np.negative}
_OF_MANY = {"min", "max"}


class _Token(NamedTuple):
    kind: str
    """number, name, sign or end."""
    text: str
    position: int
    """From 1."""
    quoted: bool = False


_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[^\W\d]\w*)|`(?P<quoted>(?:[^`]|``)+)`|(?P<sign>\*\*|[-+*/(),])"
)


def _tokens(text: str) -> Iterator[_Token]:
    place = 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        match = _TOKEN.match(text, place)
        if match is None:
            raise Misread(place + 1, "no number, name or sign begins here.")
        kind = str(match.lastgroup)
        if kind == "quoted":
            yield _Token("name", match[kind].replace("``", "`"), place + 1, quoted=True)
        else:
            yield _Token(kind, match[kind], place + 1)
        place = match.end()
    yield _Token("end", "", len(text) + 1)


class _Reader:
    """Recursive descent, writing the steps as it goes."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._place = 0
        self._depth = 0
        self._steps: list[Step] = []

    def formula(self) -> Formula:
        self._sum()
        if self._next.kind != "end":
            raise Misread(self._next.position, "a sign between two values is missing.")
        return tuple(self._steps)

    @property
    def _next(self) -> _Token:
        return self._tokens[self._place]

    def _taken(self, *signs: str) -> str | None:
        """The next token if it is one of these signs."""
        token = self._next
        if token.kind != "sign" or token.text not in signs:
            return None
        self._place += 1
        return token.text

    def _sum(self) -> None:
        self._chain(self._product, "+", "-")

    def _product(self) -> None:
        self._chain(self._factor, "*", "/")

    def _chain(self, part: Callable[[], None], *signs: str) -> None:
        part()
        while sign := self._taken(*signs):
            part()
            self._steps.append(Operation(sign, 2))

    def _factor(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Misread(self._next.position, f"more than {MAX_DEPTH} levels within each other.")
        if sign := self._taken("+", "-"):
            self._factor()
            self._steps += [Operation("negative", 1)] * (sign == "-")
        else:
            self._operand()
            if self._taken("**"):
                self._factor()
                self._steps.append(Operation("**", 2))
        self._depth -= 1

    def _operand(self) -> None:
        token = self._next
        if self._taken("("):
            self._sum()
            self._close(token)
            return
        if token.kind not in {"number", "name"}:
            raise Misread(token.position, "a number, a column, a function or ( is missing.")
        self._place += 1
        if token.kind == "number":
            self._number(token)
        elif not token.quoted and self._taken("("):
            self._call(token)
        else:
            self._steps.append(Column(token.text))

    def _number(self, token: _Token) -> None:
        if not np.isfinite(float(token.text)):
            raise Misread(token.position, "this number is beyond float64.")
        self._steps.append(float(token.text))

    def _call(self, function: _Token) -> None:
        if function.text not in _FUNCTIONS:
            names = ", ".join(sorted(_FUNCTIONS))
            raise Misread(function.position, f"there is no such function; there are {names}.")
        self._sum()
        arity = 1
        while self._taken(","):
            self._sum()
            arity += 1
        self._close(function)
        if (arity > 1) is not (function.text in _OF_MANY):
            wanted = "two or more arguments" if function.text in _OF_MANY else "one argument"
            raise Misread(function.position, f"{function.text} takes {wanted}.")
        self._steps.append(Operation(function.text, arity))

    def _close(self, opened: _Token) -> None:
        if not self._taken(")"):
            raise Misread(self._next.position, f"the ) of character {opened.position} is missing.")
