"""Coordinates in which a scatter matrix is the unit matrix, from a factor of it: the matrix itself is never formed."""

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.solve import EPS


def spread(x: Matrix, share: Vector) -> tuple[Vector, Vector]:
    """(d,) means, and deviations about them: 1 for a column that differs by rounding only."""
    mean = share @ x
    largest = np.abs(x - mean).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    deviation = unit * np.sqrt(share @ np.square((x - mean) / unit))
    varies = deviation > np.sqrt(len(x)) * 4 * EPS * np.abs(mean)
    return mean, np.where(varies, deviation, np.inf)


def whitening(factor: Matrix, shrinkage: float) -> tuple[Matrix, list[str]]:
    """(d, r) of coordinates in which the scatter within classes, FᵀF of the factor F (n, d), is the unit matrix.

    With a share of the mean variance in place of the same share of the scatter; and warnings.
    """
    n, d = factor.shape
    if shrinkage:
        ridge = np.sqrt(shrinkage * np.square(factor).sum() / max(d, 1)) * np.eye(d)
        factor = np.vstack([np.sqrt(1 - shrinkage) * factor, ridge])
    if len(factor) > d:
        (factor,) = scipy.linalg.qr(factor, mode="r", overwrite_a=True, check_finite=False)
        factor = factor[:d]
    _, values, axes = scipy.linalg.svd(factor, full_matrices=False)
    kept = values > max(n, d) * EPS * max(values.max(initial=0.0), 1.0)
    lost = d - int(kept.sum())
    warnings = [f"In {lost} of {d} directions no class varies: they are left out. Set `shrinkage` to keep them."]
    return axes[kept].T / values[kept], warnings if lost else []
