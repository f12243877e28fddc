"""Leave-one-out predictions of linear fits, from one fit (LION 3.2).

A fit whose predictions are Hy, with H free of y, predicts row i without itself with the residual eᵢ/(1 − hᵢᵢ).

References: Allen (1974), Technometrics 16:125; Golub, Heath & Wahba (1979), Technometrics 21:215.
"""

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.least_squares import covariance_factor
from app.ml.numerics.linear_algebra.solve import Centred, centred, solve_ridge

UNDECIDED = 1e-4
"""Rows that keep less than this of their own residual: the others do not determine their prediction, or barely."""


def left_out(x: Matrix, y: Matrix, weights: Vector, penalty: float, *, intercept: bool) -> Matrix:
    """Predictions (n, k) for each row by the fit that minimises Σ wᵢ‖yᵢ − xᵢβ − b‖² + penalty‖β‖² over all the others.

    x: (n, d); y: (n, k); weights: (n,) positive. Without `intercept` b is 0. NaN in rows whose prediction the
    others leave open, or determine only just.
    """

    def moved(part: Matrix) -> Centred:
        return centred(part, weights) if intercept else Centred(part, np.zeros(part.shape[1]))

    inputs, targets = moved(x), moved(y)
    root = np.sqrt(weights)[:, None]
    a, b = inputs.x * root, targets.x * root
    coef, _, condition = solve_ridge(a, b, penalty)
    own = weights / weights.sum() if intercept else np.zeros(len(x))
    rest = 1 - own - leverages(a, penalty, condition)
    rest[rest < UNDECIDED] = np.nan
    return np.asarray(y - (targets.x - inputs.x @ coef) / rest[:, None])


def leverages(a: Matrix, penalty: float, condition: float = np.inf) -> Vector:
    """The diagonal (n,) of a(aᵀa + penalty)⁺aᵀ for a (n, d); `condition` as in `covariance_factor`."""
    if penalty == 0:
        return np.asarray(((a @ covariance_factor(a, condition)) ** 2).sum(axis=1))
    d = a.shape[1]
    triangle = scipy.linalg.qr(np.vstack([a, np.sqrt(penalty) * np.eye(d)]), mode="r")[0][:d]
    return np.asarray((scipy.linalg.solve_triangular(triangle, a.T, trans="T") ** 2).sum(axis=0))
