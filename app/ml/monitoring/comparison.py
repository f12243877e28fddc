"""Comparison of counts with those of a reference: population stability with a p-value, distances, and a histogram."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.algorithm import Vector
from app.ml.monitoring.column_bins import BinCounts, ReferenceColumn
from app.ml.statistics.multiple_testing import holm
from app.ml.statistics.population_stability import TOLERANCE, compare_shares

Aspect: TypeAlias = Literal["values", "missing", "unseen", "prediction"]
ASPECT = (
    "Distribution that is compared: values of the column, its share of missing values, its share of categories that no "
    "reference row has, or a prediction of the model."
)


class Compared(NamedTuple):
    """Two distributions over the same bins."""

    column: str
    aspect: Aspect
    labels: Sequence[str]
    reference: Vector
    """(B,) counts."""
    current: Vector
    """(B,) counts."""
    ordered: bool = False
    """True where the bins are intervals of a number, ascending."""


class DriftBin(Wire):
    """A bin of a column, then and now."""

    label: str = Field(description="Interval of numbers, or a category; `(other)` are all other categories.")
    reference: float = Field(description="Share of the reference rows, from 0 to 1.")
    current: float = Field(description="Share of the current rows, from 0 to 1.")


class ColumnDrift(Wire):
    """Drift of one distribution of a column."""

    column: str = Field(description="Name of the column; of predictions `prediction` or `probability`.")
    aspect: Aspect = Field(description=ASPECT)
    psi: float = Field(description="Population stability index: 0 where the shares of all bins are equal.")
    p_value: float = Field(
        description="Probability of an index at least as large if the true one is at most the tolerance."
    )
    p_holm: float = Field(
        description="p-value corrected by Holm: the probability of any false alarm among the columns at or below it."
    )
    drifted: bool = Field(description="True where `p_holm` is at most the significance of the request.")
    method: str = Field(description="Method of the p-value: draws, or noncentral-chi-squared.")
    jensen_shannon: float = Field(
        description="Jensen-Shannon distance of the shares to base 2, from 0 for equal ones to 1 without a common bin."
    )
    kolmogorov_smirnov: float | None = Field(
        None,
        description="Largest difference of the cumulative shares at ends of bins. Null: the bins have no order.",
    )
    prediction_change: float | None = Field(
        None,
        description="Mean absolute change of the prediction when the column is put back to the distribution of the "
        "reference, the other columns as they are: in the target's unit, or of probabilities half the sum over the "
        "classes. Null: no model, or no input of it.",
    )
    reference_rows: float = Field(description="Number of reference rows that are compared.")
    current_rows: float = Field(description="Number of current rows that are compared.")
    histogram: list[DriftBin] = Field(description="Shares of each bin, then and now.")


def compared_parts(column: ReferenceColumn, current: BinCounts, *, prediction: bool = False) -> Iterator[Compared]:
    """The distributions that are compared of a column: its values, missing values, and unseen categories."""
    counts, reference, labels = current.counts, np.array(column.counts), column.labels
    aspect: Aspect = "prediction" if prediction else "values"
    unseen = column.kind == "categorical" and column.complete
    if unseen:
        values = Compared(column.name, aspect, labels[:-1], reference[:-1], counts[:-1])
    else:
        values = Compared(column.name, aspect, labels, reference, counts, column.kind == "numeric")
    if values.reference.sum() and values.reference.size > 1:
        yield values
    present = np.array([reference.sum(), counts.sum()])
    yield _share(column.name, "missing", present, np.array([column.missing, current.missing]))
    if unseen and not prediction:
        others = np.array([reference[-1], counts[-1]])
        yield _share(column.name, "unseen", present - others, others)


def _share(name: str, aspect: Aspect, usual: Vector, special: Vector) -> Compared:
    """usual, special: (2,) rows of the reference and current ones."""
    counts = np.stack([usual, special])
    return Compared(name, aspect, ("there" if aspect == "missing" else "seen", aspect), counts[:, 0], counts[:, 1])


class Limits(NamedTuple):
    """Limits of a comparison."""

    tolerance: float = TOLERANCE
    """PSI up to which a shift does not matter."""
    significance: float = 0.05


def drift_of(parts: Sequence[Compared], limits: Limits, rng: np.random.Generator) -> list[ColumnDrift]:
    """Drift of each, with p-values corrected for their number."""
    tests = [compare_shares(part.current, part.reference, rng, tolerance=limits.tolerance) for part in parts]
    corrected = holm(np.array([test.p for test in tests]))
    return [
        ColumnDrift(
            column=part.column,
            aspect=part.aspect,
            psi=test.psi,
            p_value=test.p,
            p_holm=p,
            drifted=p <= limits.significance,
            method=test.method,
            jensen_shannon=jensen_shannon(part.reference, part.current),
            kolmogorov_smirnov=kolmogorov_smirnov(part.reference, part.current) if part.ordered else None,
            reference_rows=float(part.reference.sum()),
            current_rows=float(part.current.sum()),
            histogram=histogram_bins(part),
        )
        for part, test, p in zip(parts, tests, corrected.tolist(), strict=True)
    ]


def histogram_bins(part: Compared) -> list[DriftBin]:
    """Shares of each bin, then and now."""
    reference, current = (_shares(counts).tolist() for counts in (part.reference, part.current))
    rows = zip(part.labels, reference, current, strict=True)
    return [DriftBin(label=label, reference=then, current=now) for label, then, now in rows]


def jensen_shannon(reference: Vector, current: Vector) -> float:
    """The distance to base 2, from 0 to 1; 0 where either has no rows.

    >>> round(jensen_shannon(np.array([1.0, 0.0]), np.array([0.0, 1.0])), 12)
    1.0
    """
    p, q = _shares(reference), _shares(current)
    middle = (p + q) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.where(share > 0, share * np.log2(share / middle), 0.0).sum() for share in (p, q)]
    return float(np.sqrt(max(0.0, sum(terms) / 2))) if reference.sum() and current.sum() else 0.0


def kolmogorov_smirnov(reference: Vector, current: Vector) -> float:
    """Largest difference of the cumulative shares."""
    return float(np.abs(np.cumsum(_shares(reference) - _shares(current))).max(initial=0.0))


def _shares(counts: Vector) -> Vector:
    """Shares of counts; zeros where there are none."""
    result: Vector = counts / max(float(counts.sum()), 1.0)
    return result
