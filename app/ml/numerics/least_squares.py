"""Least squares with what the errors of its coefficients follow from.

References: Björck (1996), Numerical Methods for Least Squares Problems, ch. 2.8; Press et al. (2007),
Numerical Recipes, ch. 15.4.
"""

from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract import Matrix, Vector
from app.ml.numerics.linalg import EPS, Centred, centred, solve_ridge

WELL_CONDITIONED = 1e3
"""Below it the product aᵀa keeps ten digits."""


class LeastSquares(NamedTuple):
    coef: Matrix
    """(d, k)."""
    intercept: Vector
    """(k,)."""
    square: Vector
    """(k,) the weighted sum of squared residuals."""
    rank: int
    condition: float
    """As in `linalg.Solution`."""
    mean: Vector
    """(d,) what was subtracted from the inputs: their weighted mean, or zero without an intercept."""
    factor: Matrix
    """(d, r): FFᵀ is the covariance of the coefficients of rows with noise of variance 1/weight."""


def least_squares(x: Matrix, y: Matrix, weights: Vector, intercept: bool) -> LeastSquares:
    """Minimise Σ wᵢ‖yᵢ − xᵢβ − b‖² over β (d, k), and over b (k,) if there is an intercept.

    x: (n, d); y: (n, k); weights: (n,) positive. Of many answers the shortest β.
    """
    inputs, targets = (centred(part, weights) if intercept else _as_is(part) for part in (x, y))
    root = np.sqrt(weights)[:, None]
    a, b = inputs.x * root, targets.x * root
    coef, rank, condition = solve_ridge(a, b, 0.0)
    square = ((b - a @ coef) ** 2).sum(axis=0)
    constant = targets.mean - inputs.mean @ coef
    # In the order of storage: products of a stored factor round as those of this one.
    factor = np.ascontiguousarray(covariance_factor(a, condition))
    return LeastSquares(coef, constant, square, rank, condition, inputs.mean, factor)


def covariance_factor(a: Matrix, condition: float = np.inf) -> Matrix:
    """F (d, r) with FFᵀ = (aᵀa)⁺, the pseudo-inverse, for a (n, d) of rank r.

    From a triangular factor of `a`, whose singular values are those of `a`: the product aᵀa would lose half the digits,
    and is taken only where the condition number says that there are digits to spare.
    """
    n, d = a.shape
    length = np.sqrt((a * a).sum(axis=0))
    # Unit columns keep the rank clear of the choice of units; with more columns than rows units count.
    unit = np.where(length > 0, length, 1.0) if d <= n else np.ones(d)
    if d <= n and condition < WELL_CONDITIONED:
        return np.asarray(_inverse_root(a / unit) / unit[:, None])
    triangle = scipy.linalg.qr(a / unit, mode="r")[0][:d] if d <= n else a
    _, s, vt = scipy.linalg.svd(triangle, full_matrices=False)
    kept = s > max(n, d) * EPS * s.max(initial=0.0)
    factor: Matrix = vt[kept].T / s[kept] / unit[:, None]
    if d <= n and not kept.all():
        null, _ = np.linalg.qr((vt[~kept] / unit).T)
        factor -= null @ (null.T @ factor)
    return factor


def _inverse_root(a: Matrix) -> Matrix:
    """F with FFᵀ = (aᵀa)⁻¹: the inverse of the triangular Cholesky factor."""
    triangle = scipy.linalg.cholesky(a.T @ a)
    return np.asarray(scipy.linalg.solve_triangular(triangle, np.eye(len(triangle))))


def _as_is(x: Matrix) -> Centred:
    return Centred(x, np.zeros(x.shape[1]))
