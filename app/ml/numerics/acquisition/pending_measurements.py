"""A random function as it will be when measurements that are under way have their results.

A measurement at x has the value f(x) plus noise. Given values v of the measurements at rows P, whose covariances are
C = k(P, P) + noise,

    mean(x) + k(x, P) C⁻¹ (v − mean(P))   and   variance(x) − k(x, P) C⁻¹ k(P, x)

are the mean and the variance at x. The variance does not depend on the values. Several possible values, drawn from
their joint distribution, give as many means: averaged over them, the improvement that one more measurement adds is that
of the whole batch, exactly in the limit of many draws (q-EI).

Source: Ginsbourger, Le Riche & Carraro (2010), Computational Intelligence in Expensive Optimization Problems: 131,
sections 4 and 5; Wilson, Hutter & Deisenroth (2018), NeurIPS 31.
"""

from typing import NamedTuple, Self

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.contract.random_function import RandomFunction
from app.ml.numerics.linear_algebra.solve import EPS


class Pending(NamedTuple):
    """Rows that are being measured, and possible values of them."""

    function: RandomFunction
    rows: Matrix
    """(q, d)."""
    lower: Matrix
    """(q, q) Cholesky factor of C."""
    values: Matrix
    """(s, q) values, each with the same weight."""
    changes: Matrix
    """(q, s) C⁻¹ (v − mean)."""

    @classmethod
    def none(cls, function: RandomFunction) -> Self:
        """Nothing is being measured: one mean."""
        d = function.rows.shape[1]
        return cls(function, np.empty((0, d)), np.empty((0, 0)), np.empty((1, 0)), np.empty((0, 1)))

    @classmethod
    def believed(cls, function: RandomFunction, rows: Matrix, lie: float | None) -> Self:
        """Each measurement is taken to find its mean (Kriging believer), or the same value (constant liar)."""
        lower, mean = _factor(function, rows), function.mean(rows)
        return cls._of(function, rows, lower, mean, (mean if lie is None else np.full(len(rows), lie))[None])

    @classmethod
    def drawn(cls, function: RandomFunction, rows: Matrix, normals: Matrix) -> Self:
        """normals: (s, at least q) draws of the standard normal distribution, for the values."""
        lower, mean = _factor(function, rows), function.mean(rows)
        return cls._of(function, rows, lower, mean, mean + normals[:, : len(rows)] @ lower.T)

    @classmethod
    def _of(cls, function: RandomFunction, rows: Matrix, lower: Matrix, mean: Vector, values: Matrix) -> Self:
        return cls(function, rows, lower, values, scipy.linalg.cho_solve((lower, True), (values - mean).T))

    def moments(self, x: Matrix) -> tuple[Matrix, Vector]:
        """Means (s, n) and standard deviation (n,) of the function at rows (n, d)."""
        means, variance = np.tile(self.function.mean(x), (len(self.values), 1)), self.function.variance(x)
        if len(self.rows):
            shared = self.function.covariance(x, self.rows)
            means += (shared @ self.changes).T
            explained = scipy.linalg.solve_triangular(self.lower, shared.T, lower=True)
            variance = np.maximum(variance - np.einsum("ij,ij->j", explained, explained), 0.0)
        return means, np.sqrt(variance)


def _factor(function: RandomFunction, rows: Matrix) -> Matrix:
    """Cholesky factor (q, q) of the covariances of measurements, with as little on the diagonal as rounding demands."""
    covariance, jitter = function.covariance(rows, rows), 0.0
    variance = np.maximum(function.variance(rows), 0.0)
    scale = float(np.max(variance + function.noise)) or 1.0
    while True:
        try:
            measured = covariance + np.diag(np.full(len(rows), function.noise + jitter * scale))
            lower: Matrix = np.linalg.cholesky((measured + measured.T) / 2).astype(np.float64, copy=False)
        except np.linalg.LinAlgError:
            jitter = max(10 * jitter, len(rows) * EPS)
        else:
            return lower
