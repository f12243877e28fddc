"""Nature makes no leaps, or does she: have rows that are near each other like values? (LION 2)

Every method here leans on it. For each column the others determine which row is nearest, and the difference from its
value is compared with that from any row:

    smoothness = 1 − mean |yᵢ − y_nearest(i)| / mean |yᵢ − yⱼ|,

1 where near rows agree, 0 where they are no more alike than any two; of categories |yᵢ − yⱼ| is 0 or 1. Distances are
sums of squared differences, each column's divided by their mean over all pairs, so that units play no part; a missing
value is at that mean distance from everything. Equally near rows are drawn from. Only a sample of the rows is compared,
so that what is small or needs many columns may escape it: where 2 of 20 columns, or 10 of 100, separate classes with
an AUC of .90 and .80 the interval holds 0 (`make_classification` of scikit-learn, 3,000 rows, `class_sep` 0.5). A value
near 0 is therefore no sign that there is little to learn, and no plan warns of it.

References: von Neumann (1941), Ann. Math. Stat. 12:367, for such a ratio along a line; Aronow, Samii & Assenova (2015),
Political Analysis 23:564, for the variance of a mean over pairs that share rows.
"""

from collections.abc import Mapping
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.statistics.intervals import Bounds
from app.ml.statistics.metric_value import Metric, metric

ROWS = 256
"""Compared, at most."""
COLUMNS = 100
"""Compared, at most: each costs several passes over all pairs of rows."""
MIN_ROWS = 10
"""Rows that must have a value."""
REACH = 1.959964
"""Standard deviations that hold 95 % of a normal law."""


class SampledColumn(NamedTuple):
    """A column of the sample."""

    values: Vector
    """(n,) numbers, or codes of categories; NaN where missing."""
    graded: bool
    """True if differences have a size."""

    @classmethod
    def of(cls, cells: pa.Array) -> Self:
        """Types as in `app.ml.contract.columns`."""
        graded = not pa.types.is_string(cells.type)
        if not graded:
            cells = cells.dictionary_encode().indices
        elif not pa.types.is_floating(cells.type):  # points in time have no way to float64 but through whole numbers
            cells = cells.cast(pa.int64())
        return cls(cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), graded)


def smoothness(columns: Mapping[str, SampledColumn]) -> dict[str, Metric]:
    """Smoothness of every column with enough values that vary, if another one varies too. All are of the same rows."""
    varying = {name: column for name, column in columns.items() if _varies(column.values)}
    if len(varying) < 2:
        return {}
    n = next(iter(varying.values())).values.size
    total = 1e-9 * np.random.Generator(np.random.PCG64(0)).random((n, n))  # draws among equals
    np.fill_diagonal(total, np.inf)
    for column in varying.values():
        total += _distances(_differences(column))
    return {name: _metric(_differences(column), total) for name, column in varying.items()}


def _varies(values: Vector) -> bool:
    there = values[~np.isnan(values)]
    return there.size >= MIN_ROWS and bool((there != there[0]).any())


def _differences(column: SampledColumn) -> Matrix:
    """(n, n) |yᵢ − yⱼ|, in parts of the largest value so that no square overflows; NaN where one is missing."""
    values = column.values / np.nanmax(np.abs(column.values))
    differences: Matrix = np.abs(np.subtract.outer(values, values))
    return differences if column.graded else np.sign(differences)


def _distances(differences: Matrix) -> Matrix:
    """(n, n) their squares, in parts of the mean; 1 for NaN."""
    squares: Matrix = differences * differences
    missing = np.isnan(squares)
    if not missing.any():
        squares /= squares.mean()
        return squares
    squares /= squares[~missing].mean()
    squares[missing] = 1.0
    return squares


def _metric(differences: Matrix, total: Matrix) -> Metric:
    """apart: differences of the column. total: distances by all columns, its own included."""
    here = np.flatnonzero(~np.isnan(differences.diagonal()))
    both, n = np.ix_(here, here), here.size
    nearest = (total - _distances(differences))[both].argmin(axis=1)
    differences = differences[both]
    near, any_two = differences[np.arange(n), nearest], differences.sum(axis=1) / (n - 1)
    ratio = near.mean() / any_two.mean()
    pull = near - near.mean() - 2 * ratio * (any_two - any_two.mean())
    reach = REACH * np.sqrt(_variance(pull, nearest)) / any_two.mean()
    bounds = Bounds(float(1 - ratio - reach), float(1 - ratio + reach))
    return metric("smoothness", float(1 - ratio), bounds, "normal (approximate)", n=n, label=None)


def _variance(pull: Vector, nearest: Labels) -> float:
    """Variance of the mean of values (n,), each of a row and its nearest: pairs that share a row vary together."""
    n = pull.size
    at_row = pull + np.bincount(nearest, pull, n)
    mutual = nearest[nearest] == np.arange(n)
    twice = pull @ pull + pull[mutual] @ pull[nearest[mutual]]  # pairs of pairs that share both rows
    return max(float(at_row @ at_row - twice), float(pull @ pull) / 2) / n**2
