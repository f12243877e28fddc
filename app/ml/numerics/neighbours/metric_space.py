"""Metrics that depend on the training rows, or on angles, as Minkowski distances between mapped rows.

Every column is shifted and divided: by its range, by its standard deviation, or, for Mahalanobis, by the latter and
then turned by T with TTᵀ = R⁻¹, R the correlations of the training rows, so that ‖(u − v)T‖² = (u − v)R⁻¹(u − v)ᵀ. T
comes from R = LLᵀ as L⁻ᵀ. Where R is singular it has the directions of R that are not nil, each divided by its standard
deviation: the pseudo-inverse of R. Directions in which the training rows do not vary play no part.

For rows of length 1 the square of the Euclidean distance is 2 − 2·cos. A row of zeros has no direction: it gets one of
its own, in a further column, at a right angle to all others.

References: Mahalanobis (1936), Proc. Natl. Inst. Sci. India 2:49; Gower (1971), Biometrics 27:857.
"""

from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.solve import ILL_CONDITIONED, centred, each_row
from app.ml.numerics.scaling import standardised

MIN_VARIANCE_SHARE = ILL_CONDITIONED**-2
"""Variance of a direction, of columns of variance 1, below which it is rounding."""


class MetricSpace(NamedTuple):
    """Map of rows (n, d) to points (n, r)."""

    centre: Vector
    """(d,)"""
    scale: Vector
    """(d,); infinite for a column that plays no part, as it has one value."""
    turn: Matrix | None
    """(d, r) T; None: the columns as they are."""

    def points(self, x: Matrix) -> Matrix:
        """Each row by itself: its bits are those that it has alone."""
        u = standardised(x, self.centre, self.scale)
        return u if self.turn is None else each_row(u, self.turn)


def learned(metric: str, x: Matrix, weights: Vector) -> MetricSpace | None:
    """Space of these training rows (n, d) of weights (n,); None for a metric that does not depend on them."""
    match metric:
        case "range_euclidean" | "range_manhattan":
            return _ranges(x)
        case "seuclidean":
            return _deviations(x, weights)[0]
        case "mahalanobis":
            return _covariance(x, weights)
    return None


def unit_rows(x: Matrix) -> Matrix:
    """Rows of length 1 (n, d). Rows that point the same way are the same to the last bit; one of zeros ends in 1."""
    largest = np.abs(x).max(axis=1, initial=0.0, keepdims=True)
    u = x / np.where(largest > 0, largest, 1.0)
    u[:, -1] += largest[:, 0] == 0
    u /= np.sqrt(np.vecdot(u, u))[:, None]
    return u


def directions(x: Matrix) -> Matrix:
    """(n, d + 1): rows of length 1, the last column that of rows of zeros."""
    return unit_rows(np.column_stack([x, np.zeros(len(x))]))


def _ranges(x: Matrix) -> MetricSpace:
    """Columns from 0 to 1."""
    low = x.min(axis=0)
    with np.errstate(over="ignore"):
        return _space(low, x.max(axis=0) - low)


def _covariance(x: Matrix, weights: Vector) -> MetricSpace:
    """Columns whitened by their unbiased covariance."""
    space, freedom = _deviations(x, weights)
    u = space.points(x)
    correlation = (u * weights[:, None]).T @ u / freedom
    return space._replace(turn=_whitening(correlation))


def _deviations(x: Matrix, weights: Vector) -> tuple[MetricSpace, float]:
    """Factor of the standard deviations, and the weight by which squares are divided: n - 1 for n rows of weight 1."""
    total = float(weights.sum())
    freedom = max(total - float(weights @ weights) / total, 0.0) or 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        centred_rows, mean = centred(x, weights)
        largest = np.abs(centred_rows).max(axis=0)
        share = centred_rows / np.where(largest > 0, largest, 1.0)  # its squares do not overflow
        return _space(mean, largest * np.sqrt(weights @ np.square(share) / freedom)), freedom


def _space(centre: Vector, scale: Vector) -> MetricSpace:
    varies = (scale > 0) & np.isfinite(scale)
    return MetricSpace(np.where(varies, centre, 0.0), np.where(varies, scale, np.inf), None)


def _whitening(correlation: Matrix) -> Matrix:
    """T (d, r) of correlations (d, d), zero in the row and the column of a column that plays no part."""
    factor, failed = scipy.linalg.lapack.dpotrf(correlation, lower=True)
    if not failed and np.square(factor.diagonal()).min(initial=1.0) > MIN_VARIANCE_SHARE:
        return np.ascontiguousarray(scipy.linalg.solve_triangular(factor, np.eye(len(factor)), lower=True).T)
    values, vectors = np.linalg.eigh(correlation)
    significant = values > MIN_VARIANCE_SHARE * values.max(initial=0.0)
    return (
        np.ascontiguousarray(vectors[:, significant] / np.sqrt(values[significant]))
        if significant.any()
        else np.zeros((len(values), 1))
    )
