"""Integrated gradients of the mean of a process: what each column adds to it, from the means of the columns on.

Along the straight line from the means to the row the slope of the mean by a column, times the way of that column, adds
up to its part; the parts add up to the change of the mean, but for the rounding of the sum over points of the line,
which is large where the kernel is rough or repeats itself (`matern12`, `periodic`). Slopes are central differences.

Reference: Sundararajan, Taly & Yan (2017), Axiomatic attribution for deep networks, ICML: 3319.
"""

from collections.abc import Callable, Iterator

import numpy as np

from app.ml.contract.algorithm import JSON, Matrix, Vector

POINTS = 64
"""Points of the line (Gauss)."""
STEP = 1e-4
"""Half of the step of a difference, in standard units of a column."""


def explained_means(mean: Callable[[Matrix], Vector], centre: Vector, scale: Vector, x: Matrix) -> Iterator[JSON]:
    """For each row (n, d) its mean as a sum of `base`, that of the centre, `contributions` of columns and `remainder`.

    centre: (d,) means of the columns. scale: (d,) 1/standard deviation of each; 0 of one that does not count.
    """
    base, means = float(mean(centre[None])[0]), mean(x)
    for row, value in zip(x, means.tolist(), strict=True):
        parts = _parts(mean, centre, scale, row)
        yield {
            "base": base,
            "score": value,
            "contributions": [{"column": j, "contribution": part} for j, part in enumerate(parts.tolist())],
            "remainder": value - base - float(parts.sum()),
        }


def _parts(mean: Callable[[Matrix], Vector], centre: Vector, scale: Vector, row: Vector) -> Vector:
    """(d,) part of each column in the change of the mean from the centre to the row (d,)."""
    points, shares = np.polynomial.legendre.leggauss(POINTS)
    way = row - centre
    line, parts = centre + np.outer((points + 1) / 2, way), np.zeros(row.size)
    for j in np.flatnonzero((scale > 0) & (way != 0)):
        step = np.zeros(row.size)
        step[j] = STEP / scale[j]
        above, below = line + step, line - step
        slopes = (mean(above) - mean(below)) / (above[:, j] - below[:, j])
        parts[j] = way[j] * (shares @ slopes) / 2
    return parts
