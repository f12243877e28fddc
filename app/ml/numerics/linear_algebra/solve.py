"""Least squares with and without a ridge, by factorisations; nothing is ever inverted."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.contract.sparse_rows import sparse
from app.ml.numerics.linear_algebra.conditioned_columns import conditioning, conditioning_of_products
from app.ml.numerics.linear_algebra.normal_equations import normal_equations, residuals_of_rows, solve_normal
from app.ml.numerics.linear_algebra.positive_system import EPS as EPS  # noqa: PLC0414 - for all who solve
from app.ml.numerics.linear_algebra.wide_rows import UnshiftedSolution, solve_wide, without_mean_direction

ILL_CONDITIONED = 1e6
"""Inputs known to six digits leave nothing of the solution beyond this condition number."""


class Centred(NamedTuple):
    x: Matrix
    """(n, d) with weighted column means of zero; a constant column is exactly zero."""
    mean: Vector
    """(d,)."""


class Solution(NamedTuple):
    """Coefficients of a linear fit, and how well the inputs determined them."""

    coef: Matrix
    """(d, k)."""
    intercept: Vector
    """(k,)."""
    rank: int
    """Independent directions among the centred inputs."""
    condition: float
    """Largest over smallest singular value of the centred inputs with columns of unit length (the choice
    of units plays no part); infinite when a column depends on the others."""
    square: Vector
    """(k,) weighted sums of squared residuals."""
    mean: Vector
    """(d,) what was subtracted from the inputs: their weighted mean, or zero without an intercept."""
    covariance_factor: Callable[[], Matrix]
    """Computes F (d, r) with FFᵀ the pseudo-inverse of the weighted products of the centred inputs; for penalty 0."""


def near_one(size: float) -> float:
    """The power of two that brings this between 1/2 and 1, or as near as may be."""
    return float(2.0 ** -min(max(math.frexp(size)[1], -1000), 1000))


def each_row(x: Matrix, coef: Vector | Matrix) -> NDArray[np.float64]:
    """X @ coef, (n,) for coef (d,), (n, k) for (d, k); each row by itself, so that its bits are those it has alone.

    A product of matrices sums in an order that depends on their shapes. As quick for one row, half as quick for many.
    Products of sparse rows are so anyway.
    """
    if (rows := sparse(x)) is not None:
        return rows @ coef
    if len(x) == 1 < len(coef) == coef.size:
        alone: NDArray[np.float64] = x.dot(coef)  # the same sum, sooner
        return alone
    if coef.ndim == 1:
        return np.asarray(np.vecdot(x, coef))
    if coef.shape[1] == 1:
        return np.asarray(np.vecdot(x, coef[:, 0])[:, None])
    return np.asarray(np.vecdot(x[:, None, :], np.ascontiguousarray(coef.T)))


def centred(x: Matrix, weights: Vector) -> Centred:
    """Subtract the weighted mean of each column.

    What is left of a constant column is rounding, a few units in the last place of its values. It is
    set to zero, lest something scales it up and learns from it.
    """
    mean = weights @ x / weights.sum()
    centred_rows = x - mean
    # Rounding of a weighted mean grows with log n (pairwise sums) to √n (plain ones).
    noise = 4 * EPS * np.sqrt(len(x)) * np.abs(mean)
    # What is constant is so in the first rows already: only few columns are looked at in full.
    for j in np.flatnonzero((np.abs(centred_rows[:64]) <= noise).all(axis=0)):
        if np.abs(centred_rows[:, j]).max() <= noise[j]:
            centred_rows[:, j] = 0.0
    return Centred(centred_rows, mean)


def weighted_ridge(x: Matrix, y: Matrix, weights: Vector, penalty: float, *, intercept: bool = True) -> Solution:
    """Minimise Σ wᵢ‖yᵢ − xᵢβ − b‖² + penalty‖β‖² over β (d, k) and the unpenalised b (k,), or with b = 0.

    x: (n, d); y: (n, k); weights: (n,) positive. With penalty 0 and dependent columns the solution is the shortest
    β, which is also the limit of a vanishing penalty.

    By the normal equations, or with more columns than rows by as many equations as rows, corrected once with the
    residuals; where these are not to be trusted, the singular value decomposition takes over.
    """
    n, d = x.shape
    if d <= n - intercept:
        equations = normal_equations(x, y, weights, intercept=intercept)
        solved = solve_normal(equations, penalty, partial(residuals_of_rows, x, y, weights, equations))
        if solved is not None:
            constant = equations.middle - equations.mean @ solved.coef
            system = solved.system
            result = conditioning_of_products(equations.gram, system, penalty)

            def factor() -> Matrix:
                if system.well_conditioned:
                    return system.root()
                return covariance_factor(weighted_rows(x, y, weights, intercept=intercept)[2])

            return Solution(solved.coef, constant, *result, solved.square, equations.mean, factor)
    inputs, targets, a, b = weighted_rows(x, y, weights, intercept=intercept)
    solution = None
    if d > n - intercept > 0:
        solution = solve_wide(*(without_mean_direction(a, b, weights) if intercept else (a, b)), penalty)
    coef, rank, condition, factor = solution or _by_svd(a, b, penalty)
    square = ((b - a @ coef) ** 2).sum(axis=0)
    return Solution(coef, targets.mean - inputs.mean @ coef, rank, condition, square, inputs.mean, factor)


def weighted_rows(x: Matrix, y: Matrix, weights: Vector, *, intercept: bool) -> tuple[Centred, Centred, Matrix, Matrix]:
    """Inputs and targets less their means if there is an intercept, and the same times the roots of the weights."""
    inputs, targets = ((centred if intercept else _as_is)(part, weights) for part in (x, y))
    if (weights == 1).all():
        return inputs, targets, inputs.x, targets.x
    root = np.sqrt(weights)[:, None]
    return inputs, targets, inputs.x * root, targets.x * root


def positive_solver(a: Matrix) -> Callable[[Vector], Vector]:
    """A function that solves ax = b for b, with a positive definite a (m, m): by Cholesky.

    Where rounding has made `a` indefinite, the directions at fault get the smallest curvature that is not rounding.
    """
    scale = np.sqrt(a.diagonal())
    scale = np.where(scale > 0, scale, 1.0)
    system = a / scale / scale[:, None]
    factor, failed = scipy.linalg.lapack.dpotrf(system, lower=True)
    if not failed:
        return lambda b: np.asarray(scipy.linalg.cho_solve((factor, True), b / scale) / scale)
    values, vectors = scipy.linalg.eigh(system)
    values = np.maximum(values, len(a) * EPS * values[-1])
    return lambda b: np.asarray(vectors @ (vectors.T @ (b / scale) / values) / scale)


def _as_is(x: Matrix, _weights: Vector) -> Centred:
    return Centred(x, np.zeros(x.shape[1]))


def covariance_factor(a: Matrix) -> Matrix:
    """F (d, r) with FFᵀ = (aᵀa)⁺, the pseudo-inverse, for a (n, d) of rank r.

    From a triangular factor of `a`, whose singular values are those of `a`: the product aᵀa would lose half the digits.
    """
    return _by_svd(a, np.zeros((len(a), 0)), 0.0).covariance_factor()


def _by_svd(a: Matrix, b: Matrix, penalty: float) -> UnshiftedSolution:
    n, d = a.shape
    length = np.sqrt((a * a).sum(axis=0))
    unit = np.where(length > 0, length, 1.0)
    # Only a fit without penalty is free to choose the units of its columns: they keep the rank clear of that choice.
    scale = unit if penalty == 0 and d <= n else np.ones(d)
    rows = a / scale
    if n > d + b.shape[1]:  # the same products in fewer rows
        both = scipy.linalg.qr(np.column_stack([rows, b]), mode="r", overwrite_a=True)[0][: d + b.shape[1]]
        rows, b = both[:, :d], both[:, d:]
    u, s, vt = scipy.linalg.svd(rows, full_matrices=False)
    large = s > max(n, d) * EPS * s.max(initial=0.0)
    null = np.linalg.qr((vt[~large] / scale).T)[0] if penalty == 0 and d <= n and not large.all() else np.zeros((d, 0))

    def shortest(part: Matrix) -> Matrix:
        part = part / scale[:, None]
        return np.asarray(part - null @ (null.T @ part))

    gain = np.where(large, s, 0.0) / np.where(large, s * s + penalty, 1.0)
    values = s if scale is unit else scipy.linalg.svdvals(rows * (scale / unit))
    return UnshiftedSolution(
        shortest(vt.T @ (gain[:, None] * (u.T @ b))),
        *conditioning(values, max(n, d) * EPS, d),
        lambda: shortest(vt[large].T / s[large]),
    )
