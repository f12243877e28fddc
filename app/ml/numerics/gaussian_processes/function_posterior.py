"""The posterior of a Gaussian process at new rows: its mean, variance and covariances.

With the kernel k, points Z and k(x) = k(Z, x) the mean is k(x)ᵀβ. The variance is k(x, x) − ‖L⁻¹k(x)‖², where LLᵀ is
the covariance of the points: with noise if they are the training rows. If they are inducing points it is without noise,
and ‖M⁻¹L⁻¹k(x)‖² is added, which the rows leave open. Triangles are kept without their zeros, in the rectangular full
packed format of LAPACK.

Source: Rasmussen & Williams, Gaussian Processes for Machine Learning, algorithm 2.1; Titsias (2009), AISTATS: 567.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.gaussian_processes.covariance_cholesky import Cholesky
from app.ml.numerics.kernel_functions.kernel_function import KernelFunction
from app.ml.numerics.linear_algebra.solve import each_row

BLOCK = 2**21
"""Covariances of new rows with points that are held at once: 16 MiB."""


class FunctionPosterior(NamedTuple):
    """Posterior of the function without noise, stored."""

    points: Matrix
    """(m, d)."""
    coef: Vector
    """(m,) β."""
    factor: Vector
    """(m (m + 1)/2,) L, packed."""
    gain: Vector
    """(m (m + 1)/2,) M, packed; of an exact posterior (0,)."""

    def mean(self, kernel: KernelFunction, x: Matrix) -> Vector:
        """(n,) for rows (n, d)."""
        parts = [each_row(kernel.matrix(x[block], self.points), self.coef) for block in self._blocks(len(x))]
        return np.concatenate([np.zeros(0), *parts])

    def variance(self, kernel: KernelFunction, x: Matrix) -> Vector:
        """(n,) for rows (n, d), at least 0."""
        variances = kernel.diagonal(x)
        for block in self._blocks(len(x)):
            for sign, part in self._parts(kernel, x[block]):
                variances[block] += sign * np.einsum("ij,ij->j", part, part)
        return np.maximum(variances, 0.0)

    def covariance(self, kernel: KernelFunction, x: Matrix, y: Matrix) -> Matrix:
        """(n, m) for rows (n, d) and (m, d)."""
        covariances = kernel.matrix(x, y)
        for (sign, left), (_, right) in zip(self._parts(kernel, x), self._parts(kernel, y), strict=True):
            covariances += sign * (left.T @ right)
        return covariances

    def _blocks(self, rows: int) -> Iterator[slice]:
        step = max(1, BLOCK // len(self.points))
        return (slice(start, start + step) for start in range(0, rows, step))

    def _parts(self, kernel: KernelFunction, x: Matrix) -> Iterator[tuple[float, Matrix]]:
        """Signs and (m, n) parts whose products make up what the rows are known to have in common."""
        solved = packed_solve(self.factor, kernel.matrix(x, self.points).T)
        yield -1.0, solved
        if self.gain.size:
            yield 1.0, packed_solve(self.gain, solved)


def packed(factor: Cholesky) -> Vector:
    """(n (n + 1)/2,) the lower triangle."""
    triangle: Vector = scipy.linalg.lapack.dtrttf(factor.lower, uplo="L")[0]
    return triangle


def packed_solve(triangle: Vector, right: Matrix) -> Matrix:
    """(n, m) T⁻¹ right for the lower triangle T that is packed (n (n + 1)/2,)."""
    solved: Matrix = scipy.linalg.lapack.dtfsm(1.0, triangle, right, uplo="L")
    return solved


def exact_posterior(rows: Matrix, alpha: Vector, factor: Cholesky) -> FunctionPosterior:
    """Posterior of training rows (n, d) with the factor of their covariance and alpha (n,) = (K + N)⁻¹ targets."""
    return FunctionPosterior(rows, alpha, packed(factor), np.empty(0))
