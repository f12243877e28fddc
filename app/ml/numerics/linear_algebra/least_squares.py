"""Least squares with what the errors of its coefficients follow from.

References: Björck (1996), Numerical Methods for Least Squares Problems, ch. 2.8; Press et al. (2007),
Numerical Recipes, ch. 15.4.
"""

from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.solve import EPS, Centred, Solution, centred, weighted_ridge

WELL_CONDITIONED = 1e3
"""Below it the product aᵀa keeps ten digits."""


class LeastSquares(NamedTuple):
    solution: Solution
    factor: Matrix
    """(d, r): FFᵀ is the covariance of the coefficients of rows with noise of variance 1/weight."""


def least_squares(x: Matrix, y: Matrix, weights: Vector, intercept: bool) -> LeastSquares:
    """Minimise Σ wᵢ‖yᵢ − xᵢβ − b‖² over β (d, k), and over b (k,) if there is an intercept.

    x: (n, d); y: (n, k); weights: (n,) positive. Of many solutions the shortest β.
    """
    found = weighted_ridge(x, y, weights, 0.0, intercept=intercept)
    if found.gram is not None and found.condition < WELL_CONDITIONED:
        factor = _inverse_root(found.gram)
    else:
        inputs = centred(x, weights) if intercept else Centred(x, found.mean)
        factor = covariance_factor(inputs.x * np.sqrt(weights)[:, None])
    # In the order of storage: products of a stored factor round as those of this one.
    return LeastSquares(found, np.ascontiguousarray(factor))


def covariance_factor(a: Matrix, condition: float = np.inf) -> Matrix:
    """F (d, r) with FFᵀ = (aᵀa)⁺, the pseudo-inverse, for a (n, d) of rank r.

    From a triangular factor of `a`, whose singular values are those of `a`: the product aᵀa would lose half the digits,
    and is taken only where the condition number shows that there are digits to spare.
    """
    n, d = a.shape
    length = np.sqrt((a * a).sum(axis=0))
    # Unit columns keep the rank clear of the choice of units; with more columns than rows units count.
    unit = np.where(length > 0, length, 1.0) if d <= n else np.ones(d)
    if d <= n and condition < WELL_CONDITIONED:
        return _inverse_root(a.T @ a)
    triangle = scipy.linalg.qr(a / unit, mode="r")[0][:d] if d <= n else a
    _, s, vt = scipy.linalg.svd(triangle, full_matrices=False)
    kept = s > max(n, d) * EPS * s.max(initial=0.0)
    factor: Matrix = vt[kept].T / s[kept] / unit[:, None]
    if d <= n and not kept.all():
        null, _ = np.linalg.qr((vt[~kept] / unit).T)
        factor -= null @ (null.T @ factor)
    return factor


def _inverse_root(gram: Matrix) -> Matrix:
    """F with FFᵀ the inverse of a positive definite matrix: the inverse of its triangular Cholesky factor."""
    unit = np.sqrt(gram.diagonal())
    triangle = scipy.linalg.cholesky(gram / unit / unit[:, None])
    return np.asarray(scipy.linalg.solve_triangular(triangle, np.eye(len(triangle))) / unit[:, None])
