"""Least squares with the covariance of its coefficients.

References: Björck (1996), Numerical Methods for Least Squares Problems, ch. 2.8; Press et al. (2007),
Numerical Recipes, ch. 15.4.
"""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.solve import Solution, weighted_ridge


class LeastSquares(NamedTuple):
    solution: Solution
    factor: Matrix
    """(d, r): FFᵀ is the covariance of the coefficients of rows with noise of variance 1/weight."""


def least_squares(x: Matrix, y: Matrix, weights: Vector, intercept: bool) -> LeastSquares:
    """Minimise Σ wᵢ‖yᵢ − xᵢβ − b‖² over β (d, k), and over b (k,) if there is an intercept.

    x: (n, d); y: (n, k); weights: (n,) positive. Of many solutions the shortest β.
    """
    solution = weighted_ridge(x, y, weights, 0.0, intercept=intercept)
    # In the order of storage: products of a stored factor round as those of this one.
    return LeastSquares(solution, np.ascontiguousarray(solution.covariance_factor()))
