"""The contract of a calculator: a number of learning theory with its formula, its source, its premises and a curve.

A file of `app/ml/theory/` is a query without a model, stated in one `QUERY` record; the file's name is the last part of
its path, `/v1/theory/<name>`. Its response is a `TheoryResult`, perhaps with fields of its own.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, TypeAlias

import numpy as np
from pydantic import Field

from app.base.wire import Wire

Delta: TypeAlias = Annotated[float, Field(ge=1e-300, lt=1)]
Risk: TypeAlias = Annotated[float, Field(ge=0, le=1)]
MOST_ROWS = 10**12
Rows: TypeAlias = Annotated[int, Field(ge=1, le=MOST_ROWS)]
DELTA = "Probability, between 0 and 1, with which the bound may fail."
RISK = "Share of errors on the training rows, from 0 to 1."
POINTS = 60
"""Points of a curve."""
VACUOUS = "The bound is at least 1, so it is vacuous: it promises nothing."
WORST_CASE = "The bound holds for the worst distribution; in practice far fewer rows are usually enough."
INDEPENDENT = "Rows are drawn independently from one distribution, the same in training and in use."


class TheoryValue(Wire):
    """One calculated number."""

    name: str = Field(description="Name of the value.")
    value: float | None = Field(description="The number; null: infinite or not defined, as `description` states.")
    description: str = Field(description="Meaning and unit of the value.")


class TheorySeries(Wire):
    """One line of a curve."""

    name: str = Field(description="Name of the line.")
    y: list[float | None] = Field(description="Vertical values; null where not finite.")


class TheoryCurve(Wire):
    """Lines over one variable, ready to draw."""

    title: str = Field(description="Title of the curve.")
    x_label: str = Field(description="Label of the horizontal axis, with the unit.")
    y_label: str = Field(description="Label of the vertical axis, with the unit.")
    x: list[float] = Field(description="Horizontal values, in ascending order.")
    series: list[TheorySeries] = Field(description="Lines, each with a value for every horizontal value.")


class TheoryResult(Wire):
    """Values of a calculator, and what they rest on."""

    calculator: str = Field(description="Name of the calculator.")
    values: list[TheoryValue] = Field(description="Calculated numbers, the main one first.")
    formula: str = Field(description="Formula in words and symbols.")
    source: str = Field(description="Books and papers that prove the formula.")
    assumptions: list[str] = Field(description="Premises: where one of them fails, the values promise nothing.")
    notes: list[str] = Field(description="Sentences on how to read the values; empty where there is none.")
    curves: list[TheoryCurve] = Field(description="Curves of the values over one variable.")


def value(name: str, number: float, description: str) -> TheoryValue:
    """The value; null where it is not finite."""
    return TheoryValue(name=name, value=_finite(number), description=description)


def curve(
    title: str, labels: tuple[str, str], x: Sequence[float], series: Mapping[str, Iterable[float]]
) -> TheoryCurve:
    """labels: of the horizontal and of the vertical axis."""
    lines = [TheorySeries(name=name, y=[_finite(number) for number in y]) for name, y in series.items()]
    return TheoryCurve(
        title=title, x_label=labels[0], y_label=labels[1], x=[float(number) for number in x], series=lines
    )


def counts(low: float, high: float) -> list[int]:
    """Different whole numbers between two, evenly spaced on a log scale."""
    return sorted({round(number) for number in np.geomspace(max(low, 1), max(high, 1), POINTS).tolist()})


def around(rows: int) -> list[int]:
    """Numbers of rows from a hundredth to a hundred times as many."""
    return counts(rows / 100, min(100 * rows, MOST_ROWS))


def notes(bound: float, *others: str) -> list[str]:
    """The sentences, after a warning where a bound of a risk is vacuous."""
    return [*([VACUOUS] if bound >= 1 else []), *others]


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None
