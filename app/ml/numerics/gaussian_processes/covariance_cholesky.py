"""Cholesky factor of a covariance matrix of rows, with as little added to its diagonal as rounding demands.

Rows that are equal, or as good as, make the matrix singular. Its diagonal is then raised by a share of itself, which
depends on no unit: n times the rounding of a number, and ten times as much until the factor exists.
"""

from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.kernel_functions.kernel_function import KernelFunction
from app.ml.numerics.linear_algebra.solve import EPS


class Cholesky(NamedTuple):
    lower: Matrix
    """(n, n) in Fortran order: the factor L in its lower triangle, anything above."""
    jitter: float
    """Share of the diagonal of the kernel that was added to it."""

    def solve(self, target: Vector) -> Vector:
        """(n,) K⁻¹ target."""
        solved: Vector = scipy.linalg.lapack.dpotrs(self.lower, target, lower=True)[0]
        return solved

    def half_solve(self, right: Matrix, *, transposed: bool = False) -> Matrix:
        """(n, m) L⁻¹ right, or L⁻ᵀ right."""
        solved: Matrix = scipy.linalg.solve_triangular(
            self.lower, right, lower=True, trans=int(transposed), check_finite=False
        )
        return solved

    @property
    def log_determinant(self) -> float:
        """Logarithm of the determinant of K."""
        return float(2 * np.log(np.diag(self.lower)).sum())

    def inverse(self) -> Matrix:
        """(n, n) K⁻¹ in its upper triangle, in C order. It takes the place of the factor."""
        inverse, _ = scipy.linalg.lapack.dpotri(self.lower, lower=True, overwrite_c=True)
        return np.asarray(inverse).T


def covariance_cholesky(kernel: KernelFunction, rows: Matrix, noise: Vector) -> Cholesky:
    """LLᵀ = k(rows, rows) + diag(noise) for rows (n, d) and variances of their noise (n,)."""
    jitter = 0.0
    while True:
        covariance = kernel.matrix(rows, rows)
        covariance.flat[:: len(rows) + 1] += jitter * kernel.diagonal(rows) + noise
        lower, failed = scipy.linalg.lapack.dpotrf(covariance.T, lower=True, clean=False, overwrite_a=True)
        if not failed:
            return Cholesky(lower, jitter)
        jitter = max(10 * jitter, len(rows) * EPS)
