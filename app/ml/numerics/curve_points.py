"""Values of each column at which a curve over it is shown: some of its own, evenly by rank, from the least on."""

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector

MAX_POINTS = 50
"""Points of a curve."""
LISTED = 100_000
"""Points of all curves together."""


def curve_points(x: Matrix) -> Matrix:
    """(d, m) ascending values of the columns of x (n, d), at most `MAX_POINTS`, without missing ones; then NaN."""
    d = x.shape[1]
    chosen = [_evenly(np.unique(column[~np.isnan(column)]), max(2, min(MAX_POINTS, LISTED // d))) for column in x.T]
    points = np.full((d, max((part.size for part in chosen), default=0)), np.nan)
    for row, part in zip(points, chosen, strict=True):
        row[: part.size] = part
    return points


def _evenly(values: Vector, most: int) -> Vector:
    """At most so many of them, the first and the last among them."""
    places = np.linspace(0, values.size - 1, min(most, values.size)).round().astype(np.intp)
    return values[places]
