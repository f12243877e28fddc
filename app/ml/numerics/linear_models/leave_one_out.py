"""Leave-one-out predictions of linear fits, from one fit (LION 3.2).

A fit whose predictions are Hy, with H free of y, predicts row i without itself with the residual eᵢ/(1 − hᵢᵢ).

References: Allen (1974), Technometrics 16:125; Golub, Heath & Wahba (1979), Technometrics 21:215.
"""

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.positive_system import Factored
from app.ml.numerics.linear_algebra.solve import weighted_ridge, weighted_rows

UNDECIDED = 1e-4
"""Rows that keep less than this of their own residual: the others do not determine their prediction, or barely."""


def left_out(x: Matrix, y: Matrix, weights: Vector, penalty: float, *, intercept: bool) -> Matrix:
    """Predictions (n, k) for each row by the fit that minimises Σ wᵢ‖yᵢ − xᵢβ − b‖² + penalty‖β‖² over all the others.

    x: (n, d); y: (n, k); weights: (n,) positive. Without `intercept` b is 0. NaN in rows whose prediction the
    others leave open, or determine only just.
    """
    inputs, targets, a, _ = weighted_rows(x, y, weights, intercept=intercept)
    ridge = weighted_ridge(x, y, weights, penalty, intercept=intercept)
    leverage = leverages(a, penalty) if penalty else _squared_lengths(a @ ridge.covariance_factor())
    weight_shares = weights / weights.sum() if intercept else np.zeros(len(x))
    remaining = 1 - weight_shares - leverage
    remaining[remaining < UNDECIDED] = np.nan
    return np.asarray(y - (targets.x - inputs.x @ ridge.coef) / remaining[:, None])


def leverages(a: Matrix, penalty: float) -> Vector:
    """The diagonal (n,) of a(aᵀa + penalty)⁻¹aᵀ for a (n, d) and a penalty above 0."""
    n, d = a.shape
    products = a @ a.T if n < d else a.T @ a
    system = Factored.of(products + penalty * np.eye(len(products)))
    if system is not None and system.well_conditioned:
        root = system.root()
        return 1 - penalty * _squared_lengths(root) if n < d else _squared_lengths(a @ root)
    triangle = scipy.linalg.qr(np.vstack([a, np.sqrt(penalty) * np.eye(d)]), mode="r")[0][:d]
    return _squared_lengths(scipy.linalg.solve_triangular(triangle, a.T, trans="T").T)


def _squared_lengths(rows: Matrix) -> Vector:
    return np.asarray((rows**2).sum(axis=1))
