"""Ridge of sparse rows, as of texts and categories: by the normal equations for few columns, or conjugate gradients.

Solves (XᵀWX + λI)β = XᵀWy for columns less their means, which are taken from products, so that X stays sparse. The
number of iterations follows the square root of the condition number, which is at most 1 + σ²/λ with σ the largest
singular value of √W X.

Reference: Hestenes & Stiefel (1952), J. Res. Natl. Bur. Stand. 49:409; Golub & Van Loan, Matrix Computations, §11.3.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.contract.sparse_rows import SparseRows
from app.ml.numerics.linear_algebra.conditioned_columns import conditioning_of_products
from app.ml.numerics.linear_algebra.normal_equations import NormalEquations, solve_normal

MAX_EQUATIONS = 3_000
"""Columns up to which the normal equations are solved, if there are more rows."""
RESIDUAL = 1e-12
"""Length of the residual at the end, as a share of the right side's."""


class SparseRidge(NamedTuple):
    coef: Matrix
    """(d, k)"""
    intercept: Vector
    """(k,)"""
    rank: int
    """The most that it can be, after conjugate gradients."""
    condition: float
    """NaN after conjugate gradients."""
    iterations: int
    converged: bool


def sparse_ridge(
    rows: SparseRows, targets: Matrix, weights: Vector, penalty: float, *, intercept: bool, max_iter: int = 10_000
) -> SparseRidge:
    """The minimum of Σ w(y − xβ − b)² + λ‖β‖² for targets (n, k) and a penalty λ above 0; b is 0 without intercept."""
    d, total = rows.shape[1], weights.sum()
    mean = weights @ rows / total if intercept else np.zeros(d)
    middle = weights @ targets / total if intercept else np.zeros(targets.shape[1])
    if d <= min(MAX_EQUATIONS, len(rows) - 1):
        solved = _by_equations(rows, targets, weights, penalty, mean=mean, middle=middle)
        if solved is not None:
            return solved

    def back(pull: Vector) -> Vector:
        """Columns less their means, times the weighted rows (n,)."""
        return np.asarray(rows.T @ pull - mean * pull.sum())

    def product(coef: Vector) -> Vector:
        return back(weights * (rows @ coef - mean @ coef)) + penalty * coef

    squares = weights @ rows.map(np.square) - total * mean**2
    scale = 1 / (np.maximum(squares, 0.0) + penalty)
    matrix = scipy.sparse.linalg.LinearOperator((d, d), product, dtype=np.float64)
    nearby = scipy.sparse.linalg.LinearOperator((d, d), lambda x: scale * x, dtype=np.float64)
    coefs, steps, converged = np.zeros((d, targets.shape[1])), list[None](), True
    for column, target in zip(coefs.T, (targets - middle).T, strict=True):
        column[:], failed = scipy.sparse.linalg.cg(
            matrix, back(weights * target), rtol=RESIDUAL, atol=0.0, maxiter=max_iter, M=nearby,
            callback=lambda _: steps.append(None),
        )  # fmt: skip
        converged &= failed == 0
    return SparseRidge(coefs, middle - mean @ coefs, min(rows.shape), math.nan, len(steps), converged)


def _by_equations(
    rows: SparseRows, targets: Matrix, weights: Vector, penalty: float, *, mean: Vector, middle: Vector
) -> SparseRidge | None:
    """For columns less `mean` and targets less `middle`. None where the equations are not to be trusted."""
    d = rows.shape[1]
    scaled = rows.csr * np.sqrt(weights)[:, None]
    gram = (scaled.T @ scaled).toarray() - weights.sum() * np.outer(mean, mean)
    gram.flat[:: d + 1] = np.maximum(gram.diagonal(), 0.0)

    def residuals(coef: Matrix) -> tuple[Matrix, Vector]:
        residual = targets - (middle - mean @ coef) - rows @ coef
        weighted = weights[:, None] * residual
        return rows.T @ weighted - np.outer(mean, weighted.sum(axis=0)), (weighted * residual).sum(axis=0)

    equations = NormalEquations(gram, residuals(np.zeros((d, len(middle))))[0], mean, middle)
    solved = solve_normal(equations, penalty, residuals)
    if solved is None:
        return None
    rank, condition = conditioning_of_products(gram, solved.system, penalty)
    return SparseRidge(solved.coef, middle - mean @ solved.coef, rank, condition, 1, True)
