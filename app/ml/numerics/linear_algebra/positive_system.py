"""A positive definite system by Cholesky, where its condition allows that."""

from typing import NamedTuple, Self

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector

EPS = float(np.finfo(np.float64).eps)
SINGULAR = 1e-10
"""Reciprocal condition number of a system below which it is not to be trusted."""
SOUND = 1e-6
"""Reciprocal condition number from which a solution has ten digits."""


class Factored(NamedTuple):
    """The Cholesky factor of a system with unit diagonal: nearly the best scaling there is (van der Sluis 1969)."""

    factor: Matrix
    """(m, m) lower triangular."""
    scale: Vector
    """(m,) roots of the diagonal of the system."""
    reciprocal: float
    """Estimate of the reciprocal condition number of the scaled system."""

    @classmethod
    def of(cls, system: Matrix) -> Self | None:
        """None where the system is not to be trusted. system: (m, m) symmetric."""
        scale = np.sqrt(np.maximum(system.diagonal(), 0.0))
        if not (scale.size and scale.all() and np.isfinite(scale).all()):
            return None
        scaled = system / scale
        scaled /= scale[:, None]
        largest = np.abs(scaled).sum(axis=0).max()
        factor, failed = scipy.linalg.lapack.dpotrf(scaled.T, lower=True, overwrite_a=True, clean=False)
        if failed:
            return None
        reciprocal, _ = scipy.linalg.lapack.dpocon(factor, largest, uplo="L")
        return None if reciprocal < SINGULAR else cls(factor, scale, float(reciprocal))

    @property
    def well_conditioned(self) -> bool:
        return self.reciprocal >= SOUND

    def solve(self, right: Matrix) -> Matrix:
        """(m, k) solution for a right side (m, k)."""
        solution: Matrix = scipy.linalg.cho_solve((self.factor, True), right / self.scale[:, None], check_finite=False)
        return solution / self.scale[:, None]

    def solve_scaled(self, right: Vector) -> Vector:
        """(m,) solution of the system with unit diagonal."""
        solution: Vector = scipy.linalg.lapack.dpotrs(self.factor, right, lower=True)[0]
        return solution

    def root(self) -> Matrix:
        """F (m, m) with FFᵀ the inverse of the system: the inverse of its triangular factor."""
        inverse, _ = scipy.linalg.lapack.dtrtri(np.tril(self.factor), lower=True)
        return np.asarray(inverse.T / self.scale[:, None])
