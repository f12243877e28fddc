"""Rules as conjunctions of conditions on one column each, and those that a user gives in the words of the table."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.base.suggestions import no_such
from app.base.wire import Body
from app.ml.contract.algorithm import Data, Matrix, Vector
from app.ml.contract.columns import ColumnKind
from app.ml.contract.labels import Class, Label

OPS = ("<=", ">", "in", "known", "missing", "<", ">=", "==", "!=")
"""Stored by their places."""
COMPARES = ("<=", ">", "<", ">=", "==", "!=")
Truths: TypeAlias = NDArray[np.bool_]


class Condition(NamedTuple):
    column: int
    op: int
    """Place in OPS."""
    value: float
    among: Truths
    """Mask of the categories for which it is true; empty for numbers."""

    def holds(self, x: Matrix) -> Truths:
        """For each row (n, d). Of a missing value nothing holds but that it is missing."""
        column, op = x[:, self.column], OPS[self.op]
        is_known = ~np.isnan(column)
        if op in {"known", "missing"}:
            return is_known if op == "known" else ~is_known
        if op in COMPARES:
            return is_known & _compared(column, op, self.value)
        held = np.zeros(len(x), np.bool_)
        held[is_known] = self.among[column[is_known].astype(np.intp)]
        return held


def _compared(column: Vector, op: str, value: float) -> Truths:
    signs = {
        "<=": np.less_equal,
        ">": np.greater,
        "<": np.less,
        ">=": np.greater_equal,
        "==": np.equal,
        "!=": np.not_equal,
    }
    return np.asarray(signs[op](column, value), np.bool_)


class Rule(NamedTuple):
    tests: tuple[Condition, ...]
    shares: Vector
    """(k,) of the classes among the training rows that it predicts: those on which no rule before it fires."""
    rows: float
    """Weight of the training rows on which it fires."""
    errors: float
    """Weight of those rows that are of another class."""

    def fires(self, x: Matrix) -> Truths:
        return together(self.tests, x)


def together(tests: Sequence[Condition], x: Matrix) -> Truths:
    held = np.ones(len(x), np.bool_)
    for test in tests:
        held &= test.holds(x)
    return held


class GivenTest(Body):
    """A condition on one input."""

    column: str = Field(description="An input by name.")
    op: Literal["<", "<=", ">", ">=", "==", "!=", "in", "not in", "known", "missing"] = Field(
        description="Numbers are compared, categories are equal to one or among several; any value is known or missing."
    )
    value: Label | None = Field(None, description="Number, truth value or category that the column is compared with.")
    values: list[str] | None = Field(None, min_length=1, max_length=1000, description="Categories, for in and not in.")


class GivenRule(Body):
    """Rule: where all tests hold, its class is predicted."""

    tests: list[GivenTest] = Field(max_length=100, description="Joined by and; without any the rule always fires.")
    then: Label = Field(description="A class of the target.")
    sure: float = Field(
        1.0, gt=0.5, le=1, description="Its probability; the rest is that of the other classes, by their training rows."
    )


def given_faults(rules: Sequence[GivenRule], kinds: Mapping[str, str]) -> Iterator[Fault]:
    """Tests of what is not there or has no such values. kinds: `ColumnKind` of each input by name."""
    for i, rule in enumerate(rules):
        for j, test in enumerate(rule.tests):
            yield from _test_faults(test, f"/given/{i}/tests/{j}", kinds)


def _test_faults(test: GivenTest, pointer: str, kinds: Mapping[str, str]) -> Iterator[Fault]:
    several, single = test.op in {"in", "not in"}, test.op in COMPARES
    if (test.value is not None) != single:
        yield Fault(f"{pointer}/value", f"{test.op} {'needs' if single else 'takes no'} value.")
    if (test.values is not None) != several:
        yield Fault(f"{pointer}/values", f"{test.op} {'needs' if several else 'takes no'} values.")
    if test.column not in kinds:
        yield Fault(f"{pointer}/column", no_such("The inputs have no column", test.column, kinds), "unknown_column")
    elif ColumnKind(kinds[test.column]).measured:
        if several:
            yield Fault(f"{pointer}/op", "Numbers are compared: a list of categories does not apply to them.")
        elif isinstance(test.value, str):
            yield Fault(
                f"{pointer}/value", "This column is compared with a number; times are seconds since 1970 in UTC."
            )
    elif single and test.op not in {"==", "!="}:
        yield Fault(f"{pointer}/op", "Categories have no order: they are equal, or among others, or not.")
    elif test.value is not None and not isinstance(test.value, str):
        yield Fault(f"{pointer}/value", "A category is a text.")


def understood(rules: Sequence[GivenRule], data: Data) -> tuple[list[Rule], list[str]]:
    """The rules in the numbers of `data`, and warnings about them.

    Raises InvalidData for classes, columns and tests that `data` does not have.
    """
    named = {name: place for place, name in enumerate(data.names)}
    kinds = {name: "categorical" if data.levels[place] else "numeric" for name, place in named.items()}
    faults = [fault._replace(pointer=f"/algorithm{fault.pointer}") for fault in given_faults(rules, kinds)]
    for i, rule in enumerate(rules):
        if code_of(rule.then, data) is None:
            faults.append(Fault(f"/algorithm/given/{i}/then", "No training row is of such a class.", "unknown_class"))
    if faults:
        raise InvalidData("The given rules do not fit the data.", faults=faults)
    warnings = [
        f"Test {j} of given rule {i} names a category that no training row has."
        for i, rule in enumerate(rules)
        for j, test in enumerate(rule.tests)
        if not set(_categories(test)) <= set(_words(data, named[test.column]))
    ]
    return [_counted(rule, named, data) for rule in rules], warnings


def code_of(label: Class, data: Data) -> int | None:
    """1 and 1.0 are one class, true and "1" are others. Without labels classes are called by their codes."""
    labels = data.labels or tuple(range(data.targets.shape[1]))
    for code, class_label in enumerate(labels):
        if class_label == label and isinstance(class_label, bool) == isinstance(label, bool):
            return code
    return None


def _counted(rule: GivenRule, named: Mapping[str, int], data: Data) -> Rule:
    tests = tuple(_condition(test, named[test.column], data) for test in rule.tests)
    named_class = np.eye(data.targets.shape[1])[code_of(rule.then, data) or 0]
    others = data.weights @ data.targets * (1 - named_class)
    other_shares = others / others.sum() if others.any() else named_class
    shares = rule.sure * named_class + (1 - rule.sure) * other_shares
    weights = data.weights * together(tests, data.x)
    return Rule(tests, shares, float(weights.sum()), float(weights @ (1 - data.targets @ named_class)))


def _condition(test: GivenTest, column: int, data: Data) -> Condition:
    nothing = np.zeros(0, np.bool_)
    if test.op in {"known", "missing"}:
        return Condition(column, OPS.index(test.op), 0.0, nothing)
    if not data.levels[column]:
        return Condition(column, OPS.index(test.op), float(test.value or 0), nothing)
    is_among = np.isin(
        np.arange(data.levels[column]), [_words(data, column).index(w) for w in _known(test, column, data)]
    )
    return Condition(column, OPS.index("in"), 0.0, is_among if test.op in {"==", "in"} else ~is_among)


def _known(test: GivenTest, column: int, data: Data) -> list[str]:
    return [word for word in _categories(test) if word in _words(data, column)]


def _categories(test: GivenTest) -> list[str]:
    return test.values or ([test.value] if isinstance(test.value, str) else [])


def _words(data: Data, column: int) -> tuple[str, ...]:
    """Names of the column's categories by code."""
    return data.words[column] if data.words else tuple(map(str, range(data.levels[column])))
