"""Coordinates in which a scatter matrix is the unit matrix: from the matrix, or from a factor of it, which keeps all
digits of the directions that hardly vary.
"""

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.solve import EPS

TRUSTED = 1e-8
"""Reciprocal condition number of a scatter in columns of unit deviation above which it holds enough digits itself."""


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
    significant = values > max(n, d) * EPS * max(values.max(initial=0.0), 1.0)
    lost = d - int(significant.sum())
    warnings = [f"In {lost} of {d} directions no class varies: they are left out. Set `shrinkage` to keep them."]
    return axes[significant].T / values[significant], warnings if lost else []


def whitening_of(scatter: Matrix, shrinkage: float) -> Matrix | None:
    """(d, d) of coordinates in which a scatter matrix (d, d) is the unit matrix, shrunk as in `whitening`.

    scatter: in columns of unit deviation, whose sums are right to a rounding of 1. None: it has lost too many digits.
    """
    d = len(scatter)
    shrunk = (1 - shrinkage) * scatter + shrinkage * scatter.trace() / d * np.eye(d)
    factor, failed = scipy.linalg.lapack.dpotrf(shrunk, lower=True)
    if failed or not scipy.linalg.lapack.dpocon(factor, 1.0, uplo="L")[0] > TRUSTED:
        return None
    return np.asarray(scipy.linalg.solve_triangular(factor, np.eye(d), lower=True, check_finite=False).T)
