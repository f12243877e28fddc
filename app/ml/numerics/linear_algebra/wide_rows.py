"""Least squares and ridge with more columns than rows, by equations as many as rows: (AAᵀ + λI)α = b, β = Aᵀα.

They are corrected once with the residuals of the data. Where they are not to be trusted, and there is no penalty, the
orthogonal factors of Aᵀ take over.

References: Björck (1996), Numerical Methods for Least Squares Problems, ch. 2.4 and 2.7; Saunders, Gammerman & Vovk
(1998), Proc. 15th Int. Conf. Machine Learning, 515.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.conditioned_columns import conditioning_of_products, rank_of_products
from app.ml.numerics.linear_algebra.positive_system import Factored

TRUSTED_SYSTEM = 1e-8
"""Reciprocal condition number of the equations with a penalty from which they are trusted."""
TRUSTED_TRIANGLE = 1e-9
"""Reciprocal condition number of the triangular factor of Aᵀ from which it is trusted."""


class UnshiftedSolution(NamedTuple):
    """Coefficients of inputs and targets that are centred already, or have no constant."""

    coef: Matrix
    """(d, k)."""
    rank: int
    condition: float
    """That of `Solution`; infinite for more columns than rows."""
    covariance_factor: Callable[[], Matrix]
    """Computes F (d, r) with FFᵀ = (aᵀa)⁺; for penalty 0."""


def without_mean_direction(a: Matrix, b: Matrix, weights: Vector) -> tuple[Matrix, Matrix]:
    """The same problem with one row less: a (n − 1, d) and b (n − 1, k) with the same products aᵀa and aᵀb.

    a, b: centred, each row times the root of its weight, so that the roots are a direction in which both are zero; a
    reflection makes it the last axis.
    """
    u = np.sqrt(weights / weights.sum())[:, None]
    return tuple(part[:-1] - u[:-1] * (part[-1] / (1 + u[-1])) for part in (a, b))


def solve_wide(a: Matrix, b: Matrix, penalty: float) -> UnshiftedSolution | None:
    """Minimise ‖b − aβ‖² + penalty‖β‖² for a (m, d) with m < d; without a penalty the shortest β.

    None where the rows depend on each other too much for this way.
    """
    products = a @ a.T
    system = Factored.of(products + penalty * np.eye(len(a)) if penalty else products)
    if not penalty and (system is None or not system.well_conditioned):
        return _by_orthogonal_factors(a, b)
    if system is None or system.reciprocal < TRUSTED_SYSTEM:
        return None
    dual = system.solve(b)
    dual += system.solve(b - a @ (a.T @ dual) - penalty * dual)
    return UnshiftedSolution(a.T @ dual, _rank(a, products, penalty), math.inf, lambda: system.solve(a).T)


def _by_orthogonal_factors(a: Matrix, b: Matrix) -> UnshiftedSolution | None:
    q, r = scipy.linalg.qr(a.T, mode="economic", check_finite=False)
    if not _trusted(r):
        return None
    coef = q @ scipy.linalg.solve_triangular(r, b, trans="T", check_finite=False)

    def factor() -> Matrix:
        return np.asarray(scipy.linalg.solve_triangular(r, q.T, check_finite=False).T)

    return UnshiftedSolution(coef, len(a), math.inf, factor)


def _trusted(triangle: Matrix) -> bool:
    if not triangle.size:
        return False
    reciprocal, _ = scipy.linalg.lapack.dtrcon(triangle)
    return bool(reciprocal >= TRUSTED_TRIANGLE)


def _rank(a: Matrix, products: Matrix, penalty: float) -> int:
    """Number of independent rows; without a penalty the system has shown that they are."""
    if not penalty or rank_of_products(products) == len(a):
        return len(a)
    length = np.sqrt((a * a).sum(axis=0))
    unit = a / np.where(length > 0, length, 1.0)  # the choice of units plays no part
    return conditioning_of_products(unit @ unit.T)[0]
