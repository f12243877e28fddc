"""Two columns that give the target away together: their sum or difference, each in units of its own, is the target."""

from collections.abc import Iterator, Sequence

import numpy as np

from app.ml.contract.algorithm import Matrix
from app.ml.contract.columns import ColumnKind
from app.ml.evaluation.leaking_columns import COPY_TOLERANCE, MIN_CHECKED_ROWS, CheckedColumn, CheckedTarget, listed

MOST_COLUMNS = 500
"""Columns of which pairs are looked at."""
MIN_SHARE = 1 - 1e-6
"""Share of the variation of the target that an exact pair explains, but for rounding."""
MAX_SHARED = 1 - 1e-6
"""Squared correlation beyond which two columns count as one."""


def sum_warnings(columns: Sequence[CheckedColumn], target: CheckedTarget) -> Iterator[str]:
    """A warning of the pairs of columns without missing values of which the target is a linear function, in all rows.

    columns: none is a copy of the target by itself.
    """
    if target.classes or target.y.size < MIN_CHECKED_ROWS or np.ptp(target.y) == 0:
        return
    able = [column for column in columns if column.kind is not ColumnKind.CATEGORICAL and column.there.all()]
    able = [column for column in able if np.ptp(column.values) > 0][:MOST_COLUMNS]
    if len(able) < 2:
        return
    x = _standardised(np.column_stack([column.values for column in able]))
    y = _standardised(target.y[:, None])[:, 0]
    pairs = [sentence for i, j in _candidates(x, y) if (sentence := _exact(able[i], able[j], target))]
    if pairs:
        yield (
            f"The target {target.name!r} is {listed(pairs)}, in all {target.y.size} rows compared: a model that reads "
            "both learns nothing else. Leave them out of features, unless they are known before the target."
        )


def _standardised(x: Matrix) -> Matrix:
    """(n, p) columns of mean 0 and length 1; divided by their largest entry first, so that no square overflows."""
    centred = x - x.mean(axis=0)
    centred /= np.abs(centred).max(axis=0)
    return np.asarray(centred / np.linalg.norm(centred, axis=0))


def _candidates(x: Matrix, y: Matrix) -> list[tuple[int, int]]:
    """Pairs of columns that explain the target but for rounding, the first of them."""
    shared, explained = x.T @ x, x.T @ y
    unshared = np.clip(1 - shared**2, 0, None)
    numerator = explained[:, None] ** 2 + explained**2 - 2 * np.outer(explained, explained) * shared
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(shared**2 < MAX_SHARED, numerator / unshared, 0.0)
    first, second = np.nonzero(np.triu(share >= MIN_SHARE, 1))
    return list(zip(first.tolist(), second.tolist(), strict=True))[:MOST_COLUMNS]


def _exact(first: CheckedColumn, second: CheckedColumn, target: CheckedTarget) -> str | None:
    """The linear function that the target is of both; None: of one of them alone, or not in every row."""
    means = [values.mean() for values in (first.values, second.values, target.y)]
    x = np.column_stack([first.values - means[0], second.values - means[1]])
    y, reach = target.y - means[2], np.abs(x).max(axis=0)
    weights = np.linalg.lstsq(x / reach, y, rcond=None)[0] / reach
    tolerance = COPY_TOLERANCE * np.ptp(target.y)
    if np.abs(x @ weights - y).max() > tolerance or (np.abs(weights) * reach).min() <= tolerance:
        return None
    offset = means[2] - weights @ means[:2]
    sign = "plus" if weights[1] > 0 else "minus"
    constant = f" plus {offset:.6g}" if abs(offset) > tolerance else ""
    return f"{_times(weights[0], first.name)} {sign} {_times(abs(weights[1]), second.name)}{constant}"


def _times(weight: float, name: str) -> str:
    return repr(name) if f"{weight:.6g}" == "1" else f"{weight:.6g} times {name!r}"
